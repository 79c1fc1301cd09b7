"""Our own Firefox profiles that the viewer has cut to a range of time: "upload with the current range"."""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import firefox_profiles as made
import pytest
from conftest import REPO
from outputs import saved
from test_firefox_laws import CAPTURES, contents

import traceferry
from traceferry.model import (
    COUNTER_VALUES,
    PREEMPTED,
    RUNNING,
    SCHEDULING,
    STATES,
    WAITING,
    Clock,
    Counter,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)
from traceferry.timeline.select import select_range

MS = 1_000_000
START = 5_000 * MS
END_MS = 100
Profile = dict[str, Any]


def recording() -> Trace:
    """A thread that runs, waits and moves between processors, one that begins and ends in between; a counter."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    reason, cpu, one, two = (trace.strings.intern(text) for text in ("S", "CPU", "1", "2"))
    busy = [(0, RUNNING, 0), (20, WAITING, 0), (40, RUNNING, 2), (60, PREEMPTED, 2), (61, RUNNING, 2), (90, WAITING, 2)]
    late = [(30, WAITING, 1), (35, RUNNING, 1), (50, WAITING, 1), (70, RUNNING, 3)]
    process = Process(7, "app", START, START + END_MS * MS)
    for tid, rows, end, then in ((7, busy, END_MS, two), (8, late, 80, -1)):
        ts, state, processor = zip(*rows, strict=True)
        scheduling = Table(SCHEDULING, {
            "ts": [START + at * MS for at in ts], "state": state, "cpu": processor,
            "reason": [reason if code == WAITING else -1 for code in state],
        })  # fmt: skip
        first, last = START + ts[0] * MS, START + end * MS
        states = Table(STATES, {"ts": [first, START + 45 * MS], "track": [cpu] * 2, "value": [one, then]})
        data = ThreadData(scheduling=scheduling, states=states)
        process.threads.append(Thread(tid, f"thread {tid}", tid == 7, first, last, partial(tables_of, data)))
    counted = {"ts": [START + at * MS for at in (0, 10, 45, 50, 95)], "value": [5e6, 6e6, 7e6, 7e6, 1e6]}
    process.counters.append(Counter("heap", "bytes", "", Table(COUNTER_VALUES, counted)))
    trace.processes.append(process)
    return trace.done()


def tables_of(data: ThreadData, _: TraceBuilder) -> ThreadData:
    return data


def cut_by_the_viewer(profile: Profile, start: float, end: float) -> Profile:
    """What sanitizePII of the viewer does with a range of time: markers that reach into it stay as they are, and of
    counters the values before and after it stay, too."""
    threads = []
    for thread in profile["threads"]:
        if thread["registerTime"] > end or (thread["unregisterTime"] and thread["unregisterTime"] < start):
            continue
        samples, markers = thread["samples"], thread["markers"]
        if "timeDeltas" in samples:
            samples = samples | {"time": [*accumulate(samples["timeDeltas"])]}
            del samples["timeDeltas"]
        rows = slice(bisect_left(samples["time"], start), bisect_left(samples["time"], end))
        times = zip(*(markers[name] for name in ("startTime", "endTime", "phase")), strict=True)
        spans = [(a, b if phase else a) for a, b, phase in times]
        kept = [nth for nth, (a, b) in enumerate(spans) if a < end and b >= start]
        threads.append(thread | {
            "samples": columns(samples, lambda column, rows=rows: column[rows]),
            "markers": columns(markers, lambda column, kept=kept: [column[nth] for nth in kept]),
        })  # fmt: skip
    counters = []
    for counter in profile["counters"]:
        time = counter["samples"]["time"]
        rows = slice(max(bisect_left(time, start) - 1, 0), bisect_left(time, end) + 1)
        counters.append(counter | {"samples": columns(counter["samples"], lambda column, rows=rows: column[rows])})
    meta = profile["meta"] | {"profilingStartTime": start, "profilingEndTime": end}
    return profile | {"meta": meta, "threads": threads, "counters": counters}


def columns(table: dict[str, Any], part: Any) -> dict[str, Any]:
    cut = {name: part(column) if isinstance(column, list) else column for name, column in table.items()}
    return cut | {"length": len(next(column for column in cut.values() if isinstance(column, list)))}


def processors(trace: Trace) -> Any:
    """When each thread ran, and where."""
    found: dict[int, list[tuple[int, int]]] = {}
    for _, thread in trace.threads:
        table = thread.load(trace).scheduling
        runs = table.take(table["state"] == RUNNING)
        found[thread.tid] = [*zip((runs["ts"] - trace.start_ts).tolist(), runs["cpu"].tolist(), strict=True)]
    return found


RANGES = [(0, 50), (10, 75), (20, 40), (25, 100), (41, 59), (45, 75), (92, 100), (0, 100)]


@pytest.mark.parametrize(("start", "end"), RANGES)
def test_a_range_has_what_the_recording_has_in_it(start: float, end: float, tmp_path: Path) -> None:
    trace = recording()
    profile = made.parsed(saved(trace, tmp_path / "whole.json"))
    again = made.loaded(cut_by_the_viewer(profile, start, end), tmp_path)
    within = select_range(trace, START + int(start) * MS, START + int(end) * MS)
    expected = contents(within)
    assert again.end_ts - again.start_ts == (end - start) * MS
    found = contents(again)
    assert found == {key: content for key, content in expected.items() if key in found}
    assert {key for key in expected if key[-1] in ("thread 7", "heap")} <= set(found)
    if (start, end) != (41, 59):  # where nothing changes, nothing tells the processor
        assert processors(again).items() <= processors(within).items()
    for suffix in (".pftrace", ".html", ".json"):
        saved(again, tmp_path / f"again{suffix}")


@pytest.mark.parametrize("part", [(0.0, 0.5), (0.25, 0.75), (0.9, 1.0)])
def test_scheduling_of_a_recording_is_that_of_the_range(part: tuple[float, float], tmp_path: Path) -> None:
    found = CAPTURES / "perf-events" / "sched.data.zst"
    if not found.exists():
        pytest.skip("../shared is not here")
    trace = traceferry.load(found)
    profile = made.parsed(saved(trace, tmp_path / "whole.json"))
    length = trace.end_ts - trace.start_ts
    start, end = (round(one * length) for one in part)
    again = made.loaded(cut_by_the_viewer(profile, start / MS, end / MS), tmp_path)
    within = contents(select_range(trace, trace.start_ts + start, trace.start_ts + end + (part[1] == 1)))
    for key, content in contents(again).items():
        ours, theirs = ([row[:4] for row in one["scheduling"]] for one in (content, within[key]) if "scheduling" in one)
        assert ours == theirs, key
    saved(again, tmp_path / "again.pftrace")


@pytest.mark.parametrize(
    "changed",
    [{"running": 1 << 60}, {"running": 0}, {"running": -5}, {"running": "x"}, {"running": 200 * MS}],
    ids=lambda changed: str(changed["running"]),
)
def test_a_time_that_is_damaged_leaves_a_lawful_trace(changed: dict[str, Any], tmp_path: Path) -> None:
    profile = made.parsed(saved(recording(), tmp_path / "whole.json"))
    for thread in profile["threads"]:
        thread["traceferry"] |= changed
    for name, meta in (
        ("whole", {}),
        ("later", {"profilingStartTime": 50}),
        ("negative", {"profilingStartTime": -50}),
        ("after", {"profilingStartTime": 900, "profilingEndTime": 950}),
        ("no times", {"profilingStartTime": None, "profilingEndTime": None}),
    ):
        damaged = profile | {"meta": profile["meta"] | meta}
        saved(made.loaded(damaged, tmp_path, f"{name}.json"), tmp_path / "damaged.pftrace")


def test_calls_that_had_begun_before_the_range_are_told_of(tmp_path: Path) -> None:
    trace = traceferry.load(REPO / "fixtures/xray/clang-19/fdr-c19-pie-recurse.xray")
    profile = made.parsed(saved(trace, tmp_path / "whole.json"))
    length = (trace.end_ts - trace.start_ts) / MS
    kinds = [
        [issue.count for issue in made.loaded(cut_by_the_viewer(profile, start, length / 2), tmp_path).report
         if issue.kind == "range_cut"]
        for start in (0, length / 4)
    ]  # fmt: skip
    assert kinds == [[], [1]]
