"""Events beside the first: their weights by function, ratios of counters, and how both viewers show them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import saved
from readers import perfetto

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.analysis.totals.ratios import ratios_of
from traceferry.common.errors import UsageError
from traceferry.model import SAMPLES, Clock, Event, Process, Table, Thread, ThreadData, Trace, TraceBuilder
from traceferry.model.laws import check
from traceferry.timeline.select import select_range

START, END = 10**9, 2 * 10**9
CLOCK = Event("cpu-clock", "ns", 10**6, "clock")
CYCLES, INSTRUCTIONS = (
    Event("cycles", "cycles", kind="hardware"),
    Event("instructions", "count", kind="hardware", leader=1),
)
FAULTS = Event("page-faults", "count", kind="software", period=3)


def recorded() -> Trace:
    """A thread, main > work: 4 samples of the clock, 2 of the group {cycles,instructions}, 1 of page faults."""
    trace = TraceBuilder()
    trace.clock = Clock("monotonic")
    trace.events = [CLOCK, CYCLES, INSTRUCTIONS, FAULTS]
    main, work = (
        trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(name))) for name in ("main", "work")
    )
    in_main = trace.stacks.intern(frame=main)
    in_work = trace.stacks.intern(prefix=in_main, frame=work)

    def samples(*rows: tuple[int, int, int]) -> Table:
        """(time from the start on, stack, weight)"""
        ts, stack, weight = zip(*rows, strict=True)
        return Table(SAMPLES, {"ts": np.array(ts) + START, "stack": np.array(stack), "weight": np.array(weight)})

    data = ThreadData(
        samples=samples(*((nth, in_work, 10**6) for nth in range(4))),
        other_samples={
            1: samples((1, in_main, 100), (2, in_work, 200)),
            2: samples((1, in_main, 50), (2, in_work, 600)),
            3: samples((3, in_main, 3)),
        },
    )
    thread = Thread(7, "worker", True, START, END, lambda _: data, 8)
    trace.processes.append(Process(7, "app", START, END, [thread]))
    return trace.done()


def test_the_trace_is_valid() -> None:
    assert check(recorded()) == []
    assert check(select_range(recorded(), START + 2, END)) == []


BROKEN = {
    "a leader that is none": [CLOCK, CYCLES._replace(leader=2), INSTRUCTIONS, FAULTS],
    "one event twice": [CLOCK, CYCLES, CYCLES, FAULTS],
    "samples of no event": [CLOCK],
    "a member that has other samples": [CLOCK, CYCLES, INSTRUCTIONS, FAULTS._replace(leader=0)],
}


@pytest.mark.parametrize("events", BROKEN.values(), ids=BROKEN)
def test_laws_of_events(events: list[Event]) -> None:
    assert check(Trace(recorded(), events=events)) != []


def test_info_has_each_event() -> None:
    summary = summarize(recorded())
    assert [(e["name"], e["samples"], e["weight"], e["leader"]) for e in summary["events"]["recorded"]] == [
        ("cpu-clock", 4, 4 * 10**6, None), ("cycles", 2, 300, None), ("instructions", 2, 650, "cycles"),
        ("page-faults", 1, 3, None),
    ]  # fmt: skip
    assert summary["events"]["ratios"] == [{"name": "instructions per cycle", "value": 650 / 300}]
    (thread,) = summary["processes"][0]["threads"]
    assert thread["events"][3] == {"event": "page-faults", "samples": 1, "weight": 3}
    by_name = {row["name"]: row for row in summary["functions"]["top"]}
    weights = {(name, w["event"]): (w["self"], w["total"]) for name, row in by_name.items() for w in row["weights"]}
    assert (weights["main", "cycles"], weights["work", "cycles"]) == ((100, 300), (200, 200))
    assert (weights["main", "page-faults"], weights["work", "page-faults"]) == ((3, 3), (0, 0))
    assert by_name["work"]["ratios"] == [{"name": "instructions per cycle", "value": 3.0}]
    assert "instructions per cycle" in as_text(summary)


def test_functions_sorted_by_an_event() -> None:
    def first(sort: str) -> str:
        return str(summarize(recorded(), sort=sort)["functions"]["top"][0]["name"])

    assert (first("self"), first("page-faults"), first("cycles")) == ("work", "main", "work")
    with pytest.raises(UsageError, match="page-faults"):
        summarize(recorded(), sort="faults")


# names of events, the ratios of amounts 1, 2, 4, 8...
RATIOS = {
    "perf stat's": (["cycles:u", "instructions:u"], {"instructions per cycle": 2.0}),
    "of a PMU": (["cpu_core/cycles/", "cpu_core/instructions/u"], {"instructions per cycle": 2.0}),
    "of two PMUs": (
        ["cpu_core/cycles/", "cpu_atom/cycles/", "cpu_atom/instructions/"], {"cpu_atom instructions per cycle": 2.0}),
    "misses": (
        ["instructions", "cache-misses", "cache-references"],
        {"cache-misses per 1,000 instructions": 2000.0, "cache-misses rate": 0.5}),
    "branches": (["branches", "branch-misses"], {"branch-misses rate": 2.0}),
    "a cache's": (["L1-dcache-loads", "L1-dcache-load-misses"], {"L1-dcache-load-misses rate": 2.0}),
    "prefetches": (["LLC-prefetches", "LLC-prefetch-misses"], {"LLC-prefetch-misses rate": 2.0}),
    "top down": (["slots", "topdown-retiring"], {"retiring share": 2.0}),
    "stalls": (["cycles", "stalled-cycles-backend"], {"backend stalls share": 2.0}),
    "nothing to divide by": (["cache-misses", "sched:sched_switch"], {}),
}  # fmt: skip


@pytest.mark.parametrize(("names", "wanted"), RATIOS.values(), ids=RATIOS)
def test_ratios(names: list[str], wanted: dict[str, float]) -> None:
    amounts = {row: 1 << row for row in range(len(names))}
    assert {r.name: r.of(amounts) for r in ratios_of([Event(name, "count") for name in names])} == wanted


def test_a_ratio_of_nothing_has_no_value() -> None:
    (ratio,) = ratios_of([Event("cycles", "cycles"), Event("instructions", "count")])
    assert ratio.of({1: 5}) is None


def profile_of(trace: Trace, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(saved(trace, folder / "x.json").read_bytes())
    return found


def test_firefox_has_a_hidden_thread_for_each_event(tmp_path: Path) -> None:
    profile = profile_of(recorded(), tmp_path)
    threads = {t["name"]: t["samples"] for t in profile["threads"]}
    assert list(threads) == ["worker", "worker: cycles", "worker: instructions", "worker: page-faults"]
    assert [threads[f"worker: {name}"]["weight"] for name in ("cycles", "instructions")] == [[100, 200], [50, 600]]
    assert (profile["meta"]["initialVisibleThreads"], profile["meta"]["initialSelectedThreads"]) == ([0], [0])


def test_perfetto_has_a_recording_for_each_event(tmp_path: Path) -> None:
    """Members of a group are counters of the leader's samples."""
    path = tmp_path / "x.pftrace"
    saved(recorded(), path)
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for sample in perfetto.read(path).samples:
        for name, (_, count) in sample.counters.items():
            n, total = found.get((sample.source, name), (0, 0))
            found[sample.source, name] = n + 1, total + count
    assert found == {
        ("cpu-clock", "cpu-clock, ns"): (4, 4 * 10**6), ("cycles", "cycles, cycles"): (2, 300),
        ("cycles", "instructions, count"): (2, 650), ("page-faults", "page-faults, count"): (1, 3),
    }  # fmt: skip
