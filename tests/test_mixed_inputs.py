"""A recording of perf and a profile of the same run, as another sampler would have made it, are one trace on one
clock."""

from __future__ import annotations

import json
from pathlib import Path

import firefox_profiles as made
import numpy as np
import pyarrow
import pytest
from conftest import REPO
from outputs import saved
from support import load_checked
from test_firefox_laws import contents

import traceferry
from traceferry.model import Process, Trace

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


# ---------------------------------------------------------------- clocks without a known relation

XRAY = REPO / "fixtures" / "xray" / "clang-19" / "fdr-c19-pie-typed.xray"
COLLAPSED = "main;work 3\nmain 2\n"


def of_input(trace: Trace, name: str) -> list[Process]:
    return [process for process in trace.processes if process.name == name]


@pytest.mark.parametrize("order", [1, -1])
def test_times_that_are_made_up_begin_where_the_recording_does(order: int, tmp_path: Path) -> None:
    (tmp_path / "stacks.folded").write_text(COLLAPSED)
    trace = load_checked([RECORDING, tmp_path / "stacks.folded"][::order])
    alone = load_checked(RECORDING)
    assert (trace.start_ts, trace.end_ts, trace.clock) == (alone.start_ts, alone.end_ts, alone.clock)
    (process,) = of_input(trace, "stacks.folded")
    assert (process.start_ts, process.end_ts) == (alone.start_ts, alone.start_ts + 5_000_000)
    (thread,) = process.threads
    tables = thread.load(trace)
    ts = tables.other_samples[1]["ts"] if tables.other_samples else tables.samples["ts"]
    assert (ts - alone.start_ts).tolist() == [0, 2_000_000]
    assert [issue.count for issue in trace.report if issue.kind == "clock_missing"] == [1]
    assert "clock_unrelated" not in {issue.kind for issue in trace.report}


def test_inputs_without_a_clock_alone_begin_at_zero(tmp_path: Path) -> None:
    for name in ("a.folded", "b.folded"):
        (tmp_path / name).write_text(COLLAPSED)
    trace = load_checked([tmp_path / "a.folded", tmp_path / "b.folded"])
    assert [process.start_ts for process in trace.processes] == [0, 0]


@pytest.mark.parametrize("order", [1, -1])
def test_two_clocks_without_a_relation_begin_together(order: int, tmp_path: Path) -> None:
    given = made.profile(startTime=0)
    given["threads"][0]["markers"]["data"][0]["at"] = 2  # ms
    given["meta"]["markerSchema"][0]["data"].append({"key": "at", "format": "time"})
    path = made.written(given, tmp_path / "p.json")
    both, one = load_checked([RECORDING, path][::order]), load_checked(path)
    assert "clock_unrelated" in {issue.kind for issue in both.report}
    assert both.end_ts - both.start_ts == max(t.end_ts - t.start_ts for t in (one, load_checked(RECORDING)))
    (process,), (alone,) = of_input(both, "demo"), one.processes
    moved = process.start_ts - alone.start_ts
    assert process.start_ts == both.start_ts
    assert process.end_ts == alone.end_ts + moved
    assert np.array_equal(process.counters[0].values["ts"], alone.counters[0].values["ts"] + moved)
    found, expected = (t.load(of) for t, of in ((process.threads[0], both), (alone.threads[0], one)))
    assert {kind.name for kind in found.markers} == {kind.name for kind in expected.markers} >= {"Load"}
    for kind, table in expected.markers.items():
        mine = found.markers[kind]
        for name in ("ts", *(field.key for field in kind.fields if field.format == "time")):
            assert np.array_equal(mine[name], table[name] + moved), (kind.name, name)
    samples = next(iter(found.other_samples.values()), found.samples)
    assert np.array_equal(samples["ts"], expected.samples["ts"] + moved)


def test_calls_arguments_and_states_are_moved_with_their_clock(tmp_path: Path) -> None:
    saved(load_checked(XRAY), tmp_path / "xray.json")
    profile = made.parsed(tmp_path / "xray.json")
    profile["meta"] |= {"startTime": 0, MONOTONIC: None}
    path = made.written(profile, tmp_path / "unrelated.json")
    both, alone = load_checked([RECORDING, path]), load_checked(path)
    found, expected = contents(both), contents(alone)
    assert expected.items() <= {key: found[key] for key in expected}.items()
