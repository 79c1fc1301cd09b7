"""What tests of `query` share: the engine, the command, a trace."""

import csv
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import traceferry
from traceferry.apps.cli import main
from traceferry.trace_processor.engine import VARIABLE

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
XRAY = FIXTURES / "xray/clang-19/fdr-c19-pie-pool-tsc.xray"

Run = Callable[..., Any]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> str:
    """The engine; skips where there is none."""
    named = os.environ.get("PERFETTO_TP_BIN") or shutil.which("trace_processor_shell")
    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    if not named:
        pytest.skip("no trace_processor_shell in PATH; set PERFETTO_TP_BIN")
    monkeypatch.setenv(VARIABLE, named)
    return named


@pytest.fixture
def query(found: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; returns its rows, from CSV, each a dict."""

    def run(*words: object, status: int = 0) -> Any:
        assert main(["query", "--quiet", *map(str, words)]) == status
        done = capsys.readouterr()
        return list(csv.DictReader(io.StringIO(done.out))) if status == 0 else done.err

    return run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A Perfetto trace, which trace_processor reads itself."""
    traceferry.convert(XRAY, tmp_path / "x.pftrace")
    return tmp_path / "x.pftrace"
