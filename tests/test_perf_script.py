"""Recordings of programs that fork, execute and rename themselves, against `perf script`: each sample has the thread's
name, the process and the frames that perf has. Reads ../shared, where it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import shared
from perf_script import compare
from test_unwind_captures import unpacked

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
# How many samples there are, by the recording.
RECORDINGS = {"exec-comm/perf.data": 230, "pid-reuse-exec/perf.data": 398, "stale-map/stale.data": 376}


@needs_perf
@pytest.mark.parametrize("name", RECORDINGS)
def test_samples_are_those_of_perf_script(name: str, tmp_path: Path) -> None:
    recording = shared(f"captures/strange/{name}.zst")
    path = tmp_path / Path(name).name
    path.write_bytes(unpacked(recording))
    for listed in recording.parent.glob("perf-*.map"):
        shutil.copyfile(listed, tmp_path / listed.name)
    found = compare(path, 1)
    assert (found.n_own, found.n_perf, found.missing) == (RECORDINGS[name],) * 2 + (0,)
    assert (found.names, found.pids) == ({}, {})
    # perf may have names from files with debug information, which are not read here unless they are given.
    assert found.reasons.keys() <= {"named by perf only"}, found.examples
