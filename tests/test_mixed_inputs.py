"""A recording of perf and a profile of the same run, as another sampler would have made it, are one trace on one
clock."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from conftest import REPO
from support import load_checked

import traceferry
from traceferry.model import Trace

RECORDING = REPO / "fixtures" / "jit" / "php82" / "perf.data.zst"
MONOTONIC = "startTimeAsClockMonotonicNanosecondsSinceBoot"


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mixed") / "profile.json"
    traceferry.save(traceferry.load(RECORDING), path)
    return path


def times_of_threads(trace: Trace) -> dict[int, list[np.ndarray]]:
    found: dict[int, list[np.ndarray]] = {}
    for _, thread in trace.threads:
        found.setdefault(thread.tid, []).append(thread.load(trace).samples["ts"])
    return found


@pytest.mark.parametrize(("left_out", "most_ns"), [((), 0), ((MONOTONIC,), 1000)], ids=["monotonic", "wall clock"])
def test_samples_of_both_have_the_same_times(
    profile: Path, tmp_path: Path, left_out: tuple[str, ...], most_ns: int
) -> None:
    content = json.loads(profile.read_bytes())
    content["meta"] = {key: value for key, value in content["meta"].items() if key not in left_out}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content))
    alone = times_of_threads(load_checked(RECORDING))
    together = times_of_threads(load_checked([RECORDING, other]))
    for tid, (ts,) in alone.items():
        assert len(together[tid]) == 2
        for of_one in together[tid]:
            assert np.abs(of_one - ts).max(initial=0) <= most_ns


def test_totals_of_both_add_up(profile: Path) -> None:
    alone, both = totals_of(RECORDING), totals_of(RECORDING, profile)
    assert both == {function: 2 * n for function, n in alone.items()}


def totals_of(*paths: Path) -> dict[str, int]:
    """Returns how many samples each function has itself."""
    rows = pyarrow.table(traceferry.load(paths).functions()).to_pylist()
    found: dict[str, int] = {}
    for row in rows:
        found[row["function"]] = found.get(row["function"], 0) + row["samples"]
    return found
