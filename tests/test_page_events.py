"""What a page shows of several events: weights in order, ratios, time off the processors, many tracepoints as one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import saved as written
from pages import Opened, browser, data_of
from readers import perfetto
from test_page import own_of, saved

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.trees import Trees
from traceferry.exporters.tracepoints import MOST_TRACEPOINTS
from traceferry.model import (
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    SAMPLES,
    SCHEDULING,
    WAITING,
    Clock,
    Event,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)
from traceferry.model.laws import check
from traceferry.timeline import off_cpu

START, END = 10**9, 10**9 + 512_000
CLOCK = Event("cpu-clock", "ns", 1000, "clock")
CYCLES = Event("cycles", "cycles", kind="hardware", period=1000)
INSTRUCTIONS = Event("instructions", "count", kind="hardware", period=1000)
FAULTS = Event("page-faults", "count", kind="software")
SWITCHES = Event("sched:sched_switch", "count", kind="tracepoint", period=1)
Rows = list[tuple[int, str, int]]
# (time from the start on, state, reason, waker)
STATES = [
    (0, RUNNING, "", -1), (100_000, WAITING, "S", -1), (300_000, RUNNABLE, "", 8), (310_000, RUNNING, "", -1),
    (400_000, PREEMPTED, "R", -1), (405_000, RUNNING, "", -1),
]  # fmt: skip


def recorded(samples: Mapping[Event, Rows], states: Any = ()) -> Trace:
    """Samples of functions below main: (time from the start on, function, weight)."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    trace.events = list(samples)

    def frame(name: str) -> int:
        return trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(name)))

    main = trace.stacks.intern(frame=frame("main"))

    def table(rows: Rows) -> Table:
        stacks = [trace.stacks.intern(prefix=main, frame=frame(name)) for _, name, _ in rows]
        return Table(SAMPLES, {
            "ts": np.array([START + ts for ts, _, _ in rows], np.int64), "stack": np.array(stacks, np.int32),
            "weight": np.array([weight for *_, weight in rows], np.int64),
        })  # fmt: skip

    tables = [table(rows) for rows in samples.values()]
    reasons = [trace.strings.intern(reason) if reason else -1 for _, _, reason, _ in states]
    scheduling = Table(SCHEDULING, {
        "ts": np.array([START + ts for ts, *_ in states], np.int64),
        "state": np.array([state for _, state, _, _ in states], np.uint8),
        "reason": np.array(reasons, np.int32), "waker": np.array([waker for *_, waker in states], np.int64),
        "stack": np.array([main if state in (WAITING, PREEMPTED) else -1 for _, state, _, _ in states], np.int32),
    })  # fmt: skip
    off = [row for row, event in enumerate(samples) if event.kind == "off-cpu" and states]

    def load(trace: TraceBuilder) -> ThreadData:
        others = {row: t for row, t in enumerate(tables) if row and len(t)}
        others |= {row: off_cpu.off_cpu_samples(trace, scheduling, END) for row in off}
        return ThreadData(samples=tables[0], other_samples=others, scheduling=scheduling)

    threads = [
        Thread(7, "worker", True, START, END, load, 1),
        Thread(8, "waker", False, START, END, lambda _: ThreadData()),
    ]
    trace.processes.append(Process(7, "app", START, END, threads))
    return trace.done()


def several() -> Trace:
    spread = [(10_000 * nth, f"f{nth % 3}", 1000) for nth in range(30)]
    return recorded(
        {
            CLOCK: spread, SWITCHES: [(0, "f0", 1)], FAULTS: [(5, "f1", 300), (9, "f2", 40)], CYCLES: spread,
            INSTRUCTIONS: [*spread, *((ts, "f1", 1000) for ts in range(300_000, 300_010))], off_cpu.EVENT: [],
        },
        STATES,
    )  # fmt: skip


def many(n: int) -> Trace:
    points = [Event(f"syscalls:sys_enter_{nth:03}", "count", kind="tracepoint", period=1) for nth in range(n)]
    return recorded({point: [(nth, f"f{nth % 3}", 1)] * (nth + 1) for nth, point in enumerate(points)})


def test_the_traces_are_valid() -> None:
    assert [check(trace) for trace in (several(), many(12))] == [[], []]


def test_weights_are_offered_with_the_clock_first_and_tracepoints_last(tmp_path: Path) -> None:
    data = data_of(saved(several(), tmp_path))
    assert [measure["name"] for measure in data["measures"]] == [
        "samples", "cpu-clock", "cycles", "instructions", "page-faults", "off-CPU", "sched:sched_switch",
    ]  # fmt: skip
    by_name = {measure["name"]: measure for measure in data["measures"]}
    assert (by_name["page-faults"]["samples"], by_name["page-faults"]["exact"]) == (2, False)
    assert by_name["sched:sched_switch"]["exact"]
    (ratio,) = data["ratios"]
    names = [data["measures"][ratio[key]]["name"] for key in ("numerator", "denominator")]
    assert (ratio["name"], names) == ("instructions per cycle", ["instructions", "cycles"])


def test_time_off_the_processors_is_when_it_passed() -> None:
    """Half a ms of 512 parts, of which each has what passed in it."""
    trace = several().opened()
    trees = Trees(trace)
    collect(trace, trees)
    (series,) = (each for each in trees.series if each.measure.name == "off-CPU")
    found = np.zeros(trees.n_buckets, np.int64)
    np.add.at(found, series.bucket, series.amount)
    edges = np.arange(trees.n_buckets + 1) * trees.width_ns
    expected = sum(
        np.clip(np.minimum(edges[1:], end) - np.maximum(edges[:-1], begin), 0, None)
        for begin, end in ((100_000, 310_000), (400_000, 405_000))
    )
    assert found.tolist() == expected.tolist()


def test_costs_of_time_off_the_processors_are_of_the_function_that_waits() -> None:
    told = as_text(summarize(several())).partition("largest costs of 215us off the CPU:\n")[2].splitlines()[:2]
    assert [line.strip() for line in told] == ["95.3%  main itself", "4.65%  outside of your code"]


def test_intervals_beyond_the_end_keep_their_length() -> None:
    waits = off_cpu.EVENT
    trace = recorded(
        {CLOCK: [(0, "f0", 1)], waits._replace(name="own"): [(500_000, "f1", 1 << 62), (511_999, "f1", 7)]}
    )
    trees = Trees(trace.opened())
    collect(trace, trees)
    (series,) = (each for each in trees.series if each.measure.name == "own")
    assert int(series.amount.sum()) == (1 << 62) + 7


def test_the_longest_waits_with_who_ended_them(tmp_path: Path) -> None:
    data = data_of(saved(several(), tmp_path))
    assert data["waits"]["n"] == 2
    first, second = data["waits"]["longest"]
    assert (first["ns"], first["runnable_ns"], first["at_ns"], first["waker"]) == (210_000, 10_000, 100_000, "waker 8")
    assert (first["why"], first["thread"], first["stack"]) == ("sleeping", "worker 7", ["main"])
    assert (second["ns"], second["why"], second["waker"]) == (5000, "preempted", "")


@pytest.mark.parametrize("n", [MOST_TRACEPOINTS, 300])
def test_many_tracepoints_are_one_weight_and_that_is_reported(n: int, tmp_path: Path) -> None:
    trace, whole, is_joined = many(n), n * (n + 1) // 2, n > MOST_TRACEPOINTS
    data = data_of(saved(trace, tmp_path))
    names = [measure["name"] for measure in data["measures"]]
    if is_joined:
        assert len(names) == MOST_TRACEPOINTS + 2
        assert names[:3] == ["tracepoints", "samples", f"syscalls:sys_enter_{n - 1:03}"]
        assert sum(own_of(data, "tracepoints").values()) == whole
    else:
        assert "tracepoints" not in names
    profile = json.loads(written(many(n), tmp_path / "x.json").read_bytes())
    threads = {t["name"]: t["samples"] for t in profile["threads"] if t["samples"]["length"]}
    assert len(threads) == (2 if is_joined else n)
    if is_joined:
        assert sum(threads["worker: tracepoints"]["weight"]) == whole
        assert profile["meta"]["initialVisibleThreads"] == [0]
    written(many(n), tmp_path / "x.pftrace")
    sources = [sample.source for sample in perfetto.read(tmp_path / "x.pftrace").samples]
    assert len(set(sources)) == (2 if is_joined else n)
    assert sources.count("tracepoints") == (whole if is_joined else 0)
    issues = {issue["kind"]: issue["count"] for issue in data["info"]["issues"]}
    assert issues.get("tracepoints_joined", 0) == (n if is_joined else 0)


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


def opened(chromium: Any, path: Path) -> Opened:
    return Opened(chromium.new_context(viewport={"width": 1280, "height": 900}), path.as_uri())


def test_the_page_of_several_events(tmp_path: Path, chromium: Any) -> None:
    shown = opened(chromium, saved(several(), tmp_path, without=["firefox", "perfetto"]))
    nth = shown.eval("page.recording.measures.findIndex(({ kind }) => kind === 'off-cpu')")
    shown.go(measure=str(nth))
    assert shown.page.inner_text(".costs").splitlines() == ["95.3% main itself", "4.65% outside of your code"]
    shown.go(measure="")
    options = shown.page.eval_on_selector_all("#flame .toolbar option", "all => all.map(one => one.textContent)")
    assert options == [
        "Samples of cpu-clock", "cpu-clock (time)", "cycles", "instructions", "page-faults", "Time off the CPU",
        "sched:sched_switch",
    ]  # fmt: skip
    assert "Samples of cpu-clock" in shown.page.inner_text("#head")
    assert "only" not in shown.page.inner_text(".activity .readout")
    shown.go(measure="4")
    assert "2 samples only: each bar is of several" in shown.page.inner_text(".activity .readout")
    assert shown.eval("page.flame.strip.values.length") == 1
    shown.go(measure="5")
    assert "only" not in shown.page.inner_text(".activity .readout")
    striped = shown.page.eval_on_selector_all(".legend .entry:has(.striped)", "all => all.map(one => one.textContent)")
    assert [text.rstrip("0123456789.%") for text in striped] == ["Sleeping", "Runnable", "Preempted"]
    shown.go(tab="functions", measure="3")
    heads = shown.page.eval_on_selector_all("#functions th", "all => all.map(one => one.textContent)")
    at = next(nth for nth, head in enumerate(heads) if head.startswith("Instructions per cycle"))
    assert [shown.functions()[name][at] for name in ("f0", "f1", "main")] == ["1.00", "2.00", ""]
    shown.go(tab="waits")
    assert "2 waits" in shown.page.inner_text("#waits")
    assert "waker 8" in shown.page.inner_text("#waits")
    assert shown.problems == []


def test_the_page_of_many_tracepoints(tmp_path: Path, chromium: Any) -> None:
    shown = opened(chromium, saved(many(300), tmp_path, without=["firefox", "perfetto"]))
    label = shown.page.get_attribute("#flame optgroup", "label")
    assert label == "Tracepoints: all 300, and the largest"
    assert shown.page.locator("#flame .toolbar option").count() == MOST_TRACEPOINTS + 2
    assert "Samples of 300 tracepoints" in shown.page.inner_text("#head")
    assert shown.eval("page.flame.merged.whole") == 300 * 301 // 2
    assert shown.problems == []
