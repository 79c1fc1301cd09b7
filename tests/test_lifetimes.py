"""Each ns of a thread's life has one state, in every recording of perf that has switches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import or_skipped
from recordings import SHARED
from support import load_checked

from traceferry.model import Trace
from traceferry.timeline.off_cpu import durations

FOLDERS = ("perf-events", "jit", "strange")
# Longer ones take minutes.
MAX_SIZE = 8 << 20


def recordings() -> list[Path]:
    found = (path for folder in FOLDERS for path in (SHARED / "captures" / folder).rglob("*.data*"))
    return sorted(path for path in found if path.suffix in (".data", ".zst") and path.stat().st_size < MAX_SIZE)


def broken(trace: Trace) -> tuple[list[str], int]:
    """Returns what does not hold, and how many threads have states."""
    found, n = [], 0
    for process, thread in trace.threads:
        rows = thread.load(trace).scheduling
        if not len(rows):
            continue
        n += 1
        ts, where = rows["ts"], f"thread {process.pid}/{thread.tid}"
        if int(ts[0]) != thread.start_ts or int(ts[-1]) > thread.end_ts or bool((np.diff(ts) < 0).any()):
            found.append(f"{where}: its states are not those of its life")
        if sum(durations(rows, thread.end_ts)) != thread.end_ts - thread.start_ts:
            found.append(f"{where}: its states are longer or shorter than its life")
    return found, n


def marks(path: Path) -> list[pytest.MarkDecorator]:
    """Beside one of bigjit lies a dump of 468 MB."""
    return [pytest.mark.large] if path.parent.name == "bigjit" else []


@pytest.mark.parametrize(
    "path",
    or_skipped(pytest.param(path, id=f"{path.parent.name}-{path.name}", marks=marks(path)) for path in recordings()),
)
def test_states_are_the_whole_life(path: Path) -> None:
    assert broken(load_checked(path))[0] == []


@pytest.mark.skipif(not SHARED.exists(), reason="the captures are not here")
def test_some_captures_have_states() -> None:
    assert broken(load_checked(SHARED / "captures" / "perf-events" / "sched.data.zst"))[1] > 2
