"""Our own Perfetto traces come back as they were written, but for what FORMATS.md lists."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import load_checked
from test_firefox_laws import contents, recordings

import traceferry
from traceferry.importers.perfetto.slices import INSTANT
from traceferry.model import RUNNING, Trace
from traceferry.trace_processor.engine import VARIABLE


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips where there is no trace_processor."""
    named = os.environ.get("PERFETTO_TP_BIN") or shutil.which("trace_processor_shell")
    pytest.importorskip("perfetto", reason="the package perfetto is not installed")
    if not named:
        pytest.skip("no trace_processor_shell in PATH; set PERFETTO_TP_BIN")
    monkeypatch.setenv(VARIABLE, named)


@pytest.mark.parametrize("path", recordings())
def test_our_own_traces_come_back(path: Path, tmp_path: Path) -> None:
    trace = load_checked(path)
    traceferry.save(trace, tmp_path / "again.pftrace")
    has_long = any(thread.tid > LONGEST for _, thread in trace.threads)
    again = named(contents(load_checked(tmp_path / "again.pftrace"), 0), has_long)
    before = named(contents(trace, 0), has_long)
    pids = Counter(process.pid for process in trace.processes)
    # Of processes with one number all but one get another; sizes of allocations come back as views of the process.
    kept = {key for key in before if len(key) == 3 and pids[key[0]] == 1}
    assert {key for key in kept if key[1]} == {key for key in again if len(key) == 3 and key[1]} - renumbered(
        pids, again
    )
    followers = {event.name for event in trace.events if event.leader >= 0}
    for key in kept & set(again):
        for what, value in shown(before[key], followers).items():
            if what not in EXEMPT and (what not in SCHEDULED or knows_processors(trace)):
                assert shown(again[key], followers)[what] == value, (key, what)
    for key in {key for key in before if len(key) == 2} & set(again):
        ts, values = zip(*before[key]["values"], strict=True)
        assert [ts for ts, _ in again[key]["values"]] == [*ts]
        assert [value for _, value in again[key]["values"]] == pytest.approx(values)


# Perfetto's numbers of threads are int32; longer ones are others there, which names tell.
LONGEST = (1 << 31) - 1


def named(found: dict[Any, Any], has_long: bool) -> dict[Any, Any]:
    """The same without the numbers of threads, where some are too long."""
    if not has_long:
        return found
    return {(key[0], key[1] != "", key[2]) if len(key) == 3 else key: value for key, value in found.items()}


# When threads began and ended is not written.
EXEMPT = {"life"}
# Without processors, what threads did is a state, and what they waited for is not written.
SCHEDULED = {"scheduling", "states"}


def shown(content: dict[str, Any], followers: set[str]) -> dict[str, Any]:
    """What a trace has of a thread: of the events of a group the first; calls that last no time are instants; a state
    that nothing follows has an end; what is freed is in the process's views."""
    states = {track: [row for row in rows if row[1] is not None] for track, rows in content["states"].items()}
    samples = {key: n for key, n in content["samples"].items() if key[0] not in followers}
    markers = {key: n for key, n in content["markers"].items() if key[0] != INSTANT}
    made = [row for row in content["allocations"] if row[1] > 0]
    return content | {"states": states, "samples": samples, "markers": markers, "allocations": made}


def renumbered(pids: Counter[int], again: dict[Any, Any]) -> set[Any]:
    return {key for key in again if len(key) == 3 and pids[key[0]] != 1}


def knows_processors(trace: Trace) -> bool:
    tables = (thread.load(trace).scheduling for _, thread in trace.threads)
    return all(np.all(table["cpu"][table["state"] == RUNNING] >= 0) for table in tables)
