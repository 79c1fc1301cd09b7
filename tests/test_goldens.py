"""What people read, as files under tests/goldens: `info` of each format, `dump`, errors, help. `make goldens` renews
them; a reviewer reads the difference."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.jitdump import JitDump
from builders.mono import Log
from builders.perf_data import PerfData
from conftest import REPO
from streams import fdr

from traceferry.apps import cli

GOLDENS = REPO / "tests" / "goldens"
RENEW = os.environ.get("TRACEFERRY_GOLDENS") == "renew"


def inputs(folder: Path) -> None:
    """Small recordings of each format, in the folder."""
    (folder / "app.xray").write_bytes(fdr("A B b c a", "A 500 a").bytes())
    (folder / "new.xray").write_bytes(fdr("A B b B b c a", "A 900 a").bytes())
    (folder / "damaged.xray").write_bytes(fdr("A B b a").bytes()[:-8])
    (folder / "old.xray").write_bytes(b"\x09" + fdr("A a").bytes()[1:])
    dump = JitDump(pid=7).debug_info(0x1000, [(0x1000, 3, 1, "a.js"), (0x1008, 4, 1, "a.js")])
    (folder / "jit-7.dump").write_bytes(dump.load("JS:*f a.js:1:1", 0x1000, 16, ts=20).bytes())
    recording = PerfData().event("cpu-clock", type=1, config=0, sample_type="IP|TID|TIME|CPU|PERIOD|CALLCHAIN")
    recording.comm(7, 7, "app", 10).sample(7, 7, 30, 0x1004, [(1 << 64) - 512, 0x1004], cpu=0, period=9)
    (folder / "perf.data").write_bytes(recording.bytes())
    log = Log(17).buffer(tid=0x7F30)
    log.jit(0x900, "A:f ()").enter(0x900).alloc(0x2000, 0x9000, 24).leave(0x900)
    (folder / "output.mlpd").write_bytes(log.bytes())
    (folder / "text").write_text("This is a text of some length, and not a recording at all.\n" * 3)


CASES = {
    "info-calls": ["info", "app.xray"],
    "info-code": ["info", "jit-7.dump"],
    "info-samples": ["info", "perf.data", "jit-7.dump"],
    "info-mono": ["info", "output.mlpd"],
    "info-json": ["info", "app.xray", "--json", "--top", "1"],
    "compare": ["compare", "app.xray", "new.xray", "--fail-on", "calls > 10%", "--fail-on", "self > 5%"],
    "error-gate": ["compare", "app.xray", "new.xray", "--fail-on", "self > 5 parsecs"],
    "check-damaged": ["check", "damaged.xray"],
    "dump-calls": ["dump", "app.xray"],
    "dump-code": ["dump", "jit-7.dump"],
    "dump-samples": ["dump", "perf.data"],
    "dump-mono": ["dump", "output.mlpd"],
    "dump-model": ["dump", "--model"],
    "convert-report": ["app.xray", "-o", "out.json"],
    "error-format": ["info", "text"],
    "error-version": ["info", "old.xray", "--from", "xray"],
    "error-command": ["inof", "app.xray"],
    "error-range": ["app.xray", "--range", "9s,"],
    "help": ["--help"],
    **{f"help-{name}": [name, "--help"] for name in cli.COMMANDS},
}


@pytest.fixture
def printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[list[str]], str]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    inputs(tmp_path)

    def run(words: list[str]) -> str:
        try:
            status = cli.main(words)
        except SystemExit as stopped:
            status = int(stopped.code or 0)
        out, err = capsys.readouterr()
        return f"$ traceferry {' '.join(words)}\n{out}{err}[exit status {status}]\n"

    return run


@pytest.mark.parametrize("name", CASES)
def test_golden(printed: Callable[[list[str]], str], name: str) -> None:
    if name.startswith("help") and sys.version_info >= (3, 13):
        pytest.skip("argparse lays out help in another way from Python 3.13 on")
    text, golden = printed(CASES[name]), GOLDENS / f"{name}.txt"
    if RENEW:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), "make goldens renews it"


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDENS.iterdir()} == set(CASES)
