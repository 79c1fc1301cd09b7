"""Benchmarks: a target that is missed fails the command, and no lucky repetition hides it."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from conftest import REPO

FOLDER = REPO / "benchmarks"
# Those that promise something.
PROMISING = sorted(path.stem for path in FOLDER.glob("*.py") if "Targets()" in path.read_text())
Named = Callable[[str], ModuleType]


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[Named]:
    """The module of a benchmark by its name; its command line is empty."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", ["benchmark"])
    yield importlib.import_module
    for name in ("common", "growth", "growth_cases", "view"):
        sys.modules.pop(name, None)


def test_a_missed_target_fails(named: Named) -> None:
    targets = named("common").Targets()
    assert targets.status() == 1  # nothing was measured
    targets.check("speed", "1x", True)
    assert targets.status() == 0
    targets.check("memory", "2x", False)
    targets.check("size", "1x", True)
    assert targets.status() == 1


@pytest.mark.parametrize("name", PROMISING)
def test_the_command_exits_with_the_status_of_its_targets(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text()
    assert text.count("return targets.status()") == text.count("sys.exit(main())") == 1


@pytest.mark.parametrize(("shown", "status"), [(1.5, 0), (1.7, 1)])
def test_view_is_late(named: Named, monkeypatch: pytest.MonkeyPatch, shown: float, status: int) -> None:
    view = named("view")
    monkeypatch.setattr(view, "converted", lambda folder: 1.0)
    monkeypatch.setattr(view, "shown", lambda folder: shown)
    assert view.main() == status


LINEAR, QUADRATIC = [0.0, 1.0, 4.0, 16.0], [0.0, 1.0, 16.0, 256.0]


@pytest.mark.parametrize(
    ("rounds", "status"),
    [
        (3 * [LINEAR], 0),
        ([QUADRATIC, LINEAR, LINEAR], 0),
        # Above the limit, it is measured again.
        ([LINEAR, QUADRATIC, QUADRATIC, LINEAR, LINEAR, LINEAR], 0),
        ([LINEAR, *11 * [QUADRATIC]], 1),  # what looks well once
        (12 * [QUADRATIC], 1),
    ],
)
def test_of_growth_the_median_counts(
    named: Named, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rounds: list[list[float]], status: int
) -> None:
    growth = named("growth")
    case = growth.Case("made up", "bin", 1, bytes, {"info": ["info"]})
    costs = (growth.Cost(seconds, 0) for each in rounds for seconds in each)
    monkeypatch.setattr(growth, "CASES", [case])
    monkeypatch.setattr(growth, "FOLDER", tmp_path)
    monkeypatch.setattr(growth, "child", lambda run: run())
    monkeypatch.setattr(growth, "cost", lambda *_: next(costs))
    assert growth.main() == status
    assert next(costs, None) is None, "all rounds are measured, whatever the first says"


@pytest.mark.parametrize("name", ["fleet: depth", pytest.param("", marks=pytest.mark.large)])
def test_what_growth_measures_can_be_run(
    named: Named, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """With one element: of each case `info`, and what calls the package's modules itself."""
    growth = named("growth")
    monkeypatch.setattr(growth, "ERRORS", tmp_path / "errors")
    chosen = [case for case in growth.CASES if name in case.name]
    for nth, case in enumerate(chosen):
        folder = tmp_path / str(nth) / "1"
        growth.write(case, 1, folder)
        for output, run in case.runs.items():
            if output == "info" or not isinstance(run, list):
                assert growth.cost(case, run, folder).peak > 0
    assert chosen


def test_growth_of_a_case_that_there_is_not(named: Named, monkeypatch: pytest.MonkeyPatch) -> None:
    growth = named("growth")
    monkeypatch.setattr(sys, "argv", ["growth.py", "no such case"])
    assert growth.main() == 1


def test_viewers_that_are_not_there_are_named(named: Named, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    viewers = named("viewers")
    for variable in ("FXP", "FXP_DIST", "PUI", "PERFETTO_TP_BIN"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    for show, missing in (
        (viewers.firefox_picture, "FXP_DIST"),
        (viewers.perfetto_picture, "PUI"),
        (lambda *_: viewers.engine(), "PERFETTO_TP_BIN"),
        (viewers.page_picture, "chromium|playwright"),
    ):
        with pytest.raises(viewers.NotThereError, match=missing):
            show(tmp_path / "recording", None)


def test_no_picture_without_a_recording(
    named: Named, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = named("picture")
    monkeypatch.setattr(picture, "RECORDINGS", {"unwinding": picture.Recording(lambda: None)})
    monkeypatch.setattr(picture, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["picture"])
    assert picture.main() == 1
    assert "unwinding: skipped: the recording is not there: benchmarks/unwind.py makes it" in capsys.readouterr().out
