"""Environment variables stand for options that are not given."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from traceferry.apps.cli import main
from traceferry.apps.cli.environment import fill_in
from traceferry.common.errors import UsageError

CHOICES = {"viewer": ("firefox", "perfetto", "page")}


@pytest.mark.parametrize(
    ("arguments", "environment", "filled"),
    [
        ({"symbols": []}, {"TRACEFERRY_SYMBOLS": "build"}, {"symbols": ["build"]}),
        ({"symbols": []}, {"TRACEFERRY_SYMBOLS": "build:/opt/lib:"}, {"symbols": ["build", "/opt/lib"]}),
        ({"symbols": []}, {"TRACEFERRY_SYMBOLS": "s3://b/lib:x"}, {"symbols": ["s3://b/lib", "x"]}),
        ({"symbols": ["app"]}, {"TRACEFERRY_SYMBOLS": "build"}, {"symbols": ["app"]}),
        ({"symbols": []}, {"TRACEFERRY_SYMBOLS": ""}, {"symbols": []}),
        ({}, {"TRACEFERRY_SYMBOLS": "build"}, {}),
        ({"source_root": []}, {"TRACEFERRY_SOURCE_ROOT": "src"}, {"source_root": ["src"]}),
        ({"viewer": None}, {"TRACEFERRY_IN": "perfetto"}, {"viewer": "perfetto"}),
        ({"viewer": "page"}, {"TRACEFERRY_IN": "perfetto"}, {"viewer": "page"}),
    ],
)  # fmt: skip
def test_variables(arguments: dict[str, object], environment: dict[str, str], filled: dict[str, object]) -> None:
    given = Namespace(**arguments)
    lines = fill_in(given, environment, CHOICES)
    assert vars(given) == filled
    assert len(lines) == (arguments != filled)


def test_a_viewer_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"TRACEFERRY_IN=perfeto: not one of .*; did you mean perfetto"):
        fill_in(Namespace(viewer=None), {"TRACEFERRY_IN": "perfeto"}, CHOICES)


def test_a_log_has_the_names_of_the_variable_and_verbose_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fixtures = Path(__file__).parent.parent / "fixtures/xray/clang-19"
    monkeypatch.setenv("TRACEFERRY_SYMBOLS", str(fixtures / "pool-pie.zst"))
    assert main(["info", str(fixtures / "fdr-c19-pie-pool-tsc.xray"), "--verbose"]) == 0
    printed = capsys.readouterr()
    assert "main" in printed.out
    assert f"--symbols is {fixtures / 'pool-pie.zst'}, of the variable TRACEFERRY_SYMBOLS" in printed.err
