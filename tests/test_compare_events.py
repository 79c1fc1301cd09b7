"""Comparisons of events beside the main one: what functions have of each, ratios, and gates on both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import load_checked

from traceferry.analysis.compare import figures
from traceferry.analysis.compare.as_json import as_json
from traceferry.analysis.compare.comparison import Comparison, Options, Row, compare
from traceferry.analysis.compare.events import ALL, MOST_EVENTS, unlike
from traceferry.analysis.compare.factors import Method
from traceferry.analysis.compare.gate import evaluate, parse
from traceferry.analysis.compare.markdown import as_markdown
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.compare.text import as_text
from traceferry.analysis.compare.trees import diff_tree
from traceferry.common.errors import UsageError
from traceferry.model import SAMPLES, Array, Clock, Event, Process, Table, Thread, ThreadData, TraceBuilder

CLOCK = Event("cpu-clock", "ns", 10**6, "clock")
CYCLES = Event("cycles", "cycles", kind="hardware", period=1000)
INSTRUCTIONS = Event("instructions", "count", kind="hardware", period=1000)
MISSES = Event("cache-misses", "count", kind="hardware", period=100)
FAULTS = Event("page-faults", "count", kind="software", period=1)
WAITS = Event("off-CPU", "ns", kind="off-cpu")
N = 12
START, END = 10**9, 2 * 10**9


def run_with(weights: Mapping[Event, Sequence[Sequence[int]]], with_trees: bool = False, is_timed: bool = True) -> Run:
    """A run of functions f0, f1... below main. weights: of each event, for each function, those of its samples."""
    trace = TraceBuilder()
    trace.join_clock(Clock("monotonic"))
    trace.events = list(weights)

    def frame(name: str) -> int:
        return trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(name)))

    main = trace.stacks.intern(frame=frame("main"))
    stacks = [trace.stacks.intern(prefix=main, frame=frame(f"f{nth}")) for nth in range(N)]

    def table(of: Sequence[Sequence[int]]) -> Table:
        stack = np.repeat(np.array(stacks, np.int32)[: len(of)], [len(weights) for weights in of])
        weight = np.array([w for weights in of for w in weights], np.int64)
        return Table(SAMPLES, {"ts": START + np.arange(len(stack)), "stack": stack, "weight": weight})

    tables = [table(of) for of in weights.values()]
    data = ThreadData(samples=tables[0], other_samples={n: t for n, t in enumerate(tables) if n and len(t)})
    trace.processes.append(Process(7, "app", START, END, [Thread(7, "app", True, START, END, lambda _: data, 1)]))
    trace.report.note("times_made", int(not is_timed))
    return Run.of("run", trace.done(), with_trees)


COUNTED = Event("samples", "samples", 10**7)
CPU = Event("cpu", "ns", kind="clock", leader=0)
IN_USE, OBJECTS = Event("inuse_space (bytes)", "samples"), Event("inuse_objects", "count")


def aggregated(of: Array) -> list[list[int]]:
    """Of each function one row."""
    return [[int(n)] for n in of]


def test_samples_that_are_one_row_are_as_exact_as_if_each_had_one() -> None:
    """As in pprof's profiles of Go: the CPU time is 10 ms for each sample, so both are known as well."""
    rng = np.random.default_rng(12)

    def made(factor: float) -> Mapping[Event, Sequence[Sequence[int]]]:
        n = counts(rng, 60, {3: factor})
        return {COUNTED: aggregated(n), CPU: aggregated(10**7 * n)}

    found = compare(side(lambda: made(1)), side(lambda: made(2)))
    mine, of_event = rows(found, "self")["f3"], rows(found, "cpu")["f3"]
    assert (of_event.verdict, of_event.low, of_event.high) == ("slower", mine.low, mine.high)
    (whole,) = found.tables_named("events")[0].rows
    assert whole.low is not None
    assert 0 < whole.low < whole.change < 0.2


def test_sums_of_unknown_numbers_of_samples_are_as_exact_as_runs_agree() -> None:
    """As the objects of heaps."""
    rng = np.random.default_rng(13)

    def made(factor: float) -> Mapping[Event, Sequence[Sequence[int]]]:
        n = 1000 * (1 + 0.01 * rng.standard_normal(N)) * np.where(np.arange(N) == 3, factor, 1)
        return {IN_USE: aggregated(64 * n), OBJECTS: aggregated(n)}

    def runs(factor: float) -> list[Run]:
        return [run_with(made(factor), is_timed=False) for _ in range(5)]

    found = compare(runs(1), runs(1.3))
    row = rows(found, "inuse_objects")["f3"]
    assert row.low is not None
    assert row.high is not None
    assert 0.2 < row.low < 0.3 < row.high < 0.4
    assert {name for table, name, _ in changed(found) if table == "inuse_objects"} == {"f3"}


def test_the_process_that_collapsed_stacks_begin_with_is_no_function(tmp_path: Path) -> None:
    """They are the same stacks as before; what is a function there, as main, stays."""
    rng = np.random.default_rng(15)
    samples = {Event("samples", "samples"): aggregated(counts(rng, 60))}
    base = replace(run_with(samples, with_trees=True), formats=frozenset({"perf.data"}))
    lines = [f"app;main;f{nth} {weights[0]}\n" for nth, weights in enumerate(next(iter(samples.values())))]
    (tmp_path / "x.folded").write_text("".join(lines))
    run = Run.of("x.folded", load_checked([str(tmp_path / "x.folded")]), True)
    for sides in ((base, run), (run, base)):
        found = compare([sides[0]], [sides[1]])
        assert {row.name for row in found.tables_named("total")[0].rows} == {"main", *(f"f{nth}" for nth in range(N))}
        assert all(row.difference == 0 for row in found.tables_named("total")[0].rows)
        tree = diff_tree(found)
        assert {tree.frames[frame][0] for frame in tree.frame[tree.parent < 0].tolist()} == {"main"}
    both = compare([run], [run])
    assert "app" in {row.name for row in both.tables_named("total")[0].rows}


def counts(rng: np.random.Generator, mean: float, factors: Mapping[int, float] | None = None) -> Array:
    return rng.poisson([mean * (factors or {}).get(nth, 1.0) for nth in range(N)])


def of_period(n_samples: Array, period: int) -> list[list[int]]:
    return [[period] * int(n) for n in n_samples]


def rows(comparison: Comparison, metric: str) -> dict[str, Row]:
    return {row.name: row for table in comparison.tables_named(metric) for row in table.rows}


def changed(comparison: Comparison) -> set[tuple[str, str, str]]:
    return {(table.name, row.name, row.verdict) for table in comparison.tables for row in table.changed}


def side(make: Callable[[], Mapping[Event, Sequence[Sequence[int]]]], n: int = 5) -> list[Run]:
    return [run_with(make()) for _ in range(n)]


def multi(rng: np.random.Generator, misses: float = 1.0, ipc: float = 1.0) -> Mapping[Event, Sequence[Sequence[int]]]:
    """All functions alike; f3 with so many times as many misses, f4 with so many times as many instructions."""
    return {
        CLOCK: of_period(counts(rng, 400), 10**6),
        CYCLES: of_period(counts(rng, 300), 1000),
        INSTRUCTIONS: of_period(counts(rng, 600, {4: ipc}), 1000),
        MISSES: of_period(counts(rng, 200, {3: misses}), 100),
    }


def test_a_function_with_more_cache_misses_is_found_and_no_other() -> None:
    rng = np.random.default_rng(1)
    found = compare(side(lambda: multi(rng)), side(lambda: multi(rng, misses=1.5)))
    assert changed(found) - {("cache-misses per 1,000 instructions", "f3", "more")} == {
        ("cache-misses", "f3", "more"), ("cache-misses.total", "f3", "more"),
    }  # fmt: skip
    row = rows(found, "cache-misses")["f3"]
    assert row.low is not None
    assert row.high is not None
    assert row.low < 0.5 < row.high
    assert 15_000 < row.base < 25_000  # misses, not samples
    assert rows(found, "cache-misses.total")["main"].base == pytest.approx(N * 20_000, rel=0.05)
    assert found.notes == ()


def test_nothing_is_called_changed_where_nothing_changed() -> None:
    rng = np.random.default_rng(2)
    for _ in range(8):
        assert changed(compare(side(lambda: multi(rng)), side(lambda: multi(rng)))) == set()


def test_gates_on_events_and_ratios() -> None:
    rng = np.random.default_rng(3)
    found = compare(side(lambda: multi(rng)), side(lambda: multi(rng, misses=1.5, ipc=0.5)))
    for text, status in {
        "cache-misses('f3') > 5%": "failed", "cache-misses('f2') > 30%": "passed", "cache-misses > 90%": "passed",
        "cache-misses.self('f3') > 1000": "failed", "cache-misses.total('f3') > 5%": "failed",
        "'cache-misses'('f3') > 5%": "failed", "events('cache-misses') > 50%": "passed",
        "ipc('f4') < 1.2": "failed", "ipc('f4') < 0.8": "passed", "ipc('f4') < -10%": "failed",
        "ipc('f2') < 1.5": "passed", "ipc < 1.5": "passed", "ipc < 2.5": "failed", "ipc > 5%": "passed",
        "'instructions per cycle'('f4') < 1.2": "failed", "ipc('f*') < 1.2": "failed",
        "'cache-misses per 1,000 instructions'('f3') > 45": "failed", "ipc('f4') > 1.5": "passed",
        # The main event's samples are the tables self and total.
        "cpu-clock > 50%": "passed", "cpu-clock.total('main') > 50%": "passed",
    }.items():  # fmt: skip
        outcome = evaluate(parse(text), found)
        assert outcome.status == status, (text, outcome.lines)
    (line,) = evaluate(parse("ipc('f4') < 1.2"), found).lines
    assert line.startswith("instructions per cycle of f4: ")


def test_a_ratio_of_one_run_is_not_decided() -> None:
    rng = np.random.default_rng(4)
    found = compare(side(lambda: multi(rng), 1), side(lambda: multi(rng, ipc=0.1), 1))
    assert rows(found, "instructions per cycle")["f4"].new == pytest.approx(0.2, rel=0.3)
    assert evaluate(parse("ipc('f4') < 1.2"), found).status == "undecided"


NOTHING = {
    "cache-missis('f3') > 5%": "neither side has cache-missis; they have",
    "ipc('nosuch') < 1": "of 13 names, none of them near",
    "branch-misses > 5%": "branch-misses: recorded by the new side only, and not compared",
    "'sched:sched_switch'.total > 1": "neither side has sched:sched_switch.total",
    "cycles > 5MB": "cycles counts count, not bytes",
}


@pytest.mark.parametrize("text", NOTHING)
def test_a_gate_on_an_event_that_is_not_compared_is_an_error(text: str) -> None:
    rng = np.random.default_rng(5)
    branches = Event("branch-misses", "count", kind="hardware", period=7)
    new = side(lambda: {**multi(rng), branches: of_period(counts(rng, 5), 7)}, 2)
    found = compare(side(lambda: multi(rng), 2), new)
    with pytest.raises(UsageError) as error:
        evaluate(parse(text), found)
    assert NOTHING[text] in str(error.value)


def test_names_of_events_in_expressions() -> None:
    for text, metric, statistic in (
        ("cycles:u.total > 1%", "cycles:u", "total"),
        ("cpu_core/cycles/('x') > 1%", "cpu_core/cycles/", ""),
        ("'sched:sched_switch' > 1", "sched:sched_switch", ""),
        ("\"a.b\"('x') > 1", "a.b", ""),
        ("ipc > 1", "instructions per cycle", ""),
    ):
        gate = parse(text)
        assert (gate.metric, gate.statistic, gate.is_of_kind) == (metric, statistic, False)


def test_another_period_is_no_change_and_is_said() -> None:
    rng = np.random.default_rng(6)
    rare = MISSES._replace(period=1000)
    new = side(lambda: {**multi(rng), rare: of_period(counts(rng, 20), 1000)})
    # The event of another period is the same event.
    new = [run_with({rare if e is MISSES else e: of_period(counts(rng, 20), 1000) if e is MISSES else of
                     for e, of in multi(rng).items()}) for _ in new]  # fmt: skip
    found = compare(side(lambda: multi(rng)), new)
    assert changed(found) == set()
    assert rows(found, "cache-misses")["f3"].new == pytest.approx(20_000, rel=0.3)
    (note,) = found.notes
    assert note.startswith("cache-misses: a sample is of 100 in the base and of 1000 on the new side")
    assert all(note in text for text in (as_text(found, 5), as_markdown(found), "".join(as_json(found)["notes"])))


def test_samples_of_unlike_weights_vary_as_much_as_they_do() -> None:
    """One sample of ten weighs a hundred times as much. Taken for as many samples of equal weight as there are, half of
    all functions would be called changed."""

    def unlike(rng: np.random.Generator) -> Mapping[Event, Sequence[Sequence[int]]]:
        heavy = [[100_000 if rng.random() < 0.1 else 1000 for _ in range(n)] for n in counts(rng, 60)]
        return {CLOCK: of_period(counts(rng, 400), 10**6), INSTRUCTIONS._replace(period=0): heavy}

    rng = np.random.default_rng(7)
    n_changed = sum(
        bool(changed(compare(side(lambda: unlike(rng), 3), side(lambda: unlike(rng), 3)))) for _ in range(10)
    )
    assert n_changed <= 1
    run = run_with(unlike(rng))
    (_, event) = run.events
    assert event.weight / event.per_sample < 0.2 * event.samples


def test_events_of_which_each_is_recorded_are_exact() -> None:
    def of(n: int) -> Mapping[Event, Sequence[Sequence[int]]]:
        rng = np.random.default_rng(8)
        return {CLOCK: of_period(counts(rng, 50), 10**6), FAULTS: of_period(np.array([40, 40, n] + [40] * (N - 3)), 1)}

    found = compare(side(lambda: of(40)), side(lambda: of(44)))
    assert {row for row in changed(found) if row[0] == "page-faults"} == {("page-faults", "f2", "more")}
    assert rows(found, "page-faults")["f2"].is_exact
    assert rows(found, "page-faults")["f1"].verdict == "same"
    assert evaluate(parse("page-faults('f2') > 3"), found).status == "failed"
    assert evaluate(parse("page-faults('f1') > 0"), found).status == "passed"


def test_time_off_the_cpu_is_compared_by_function() -> None:
    rng = np.random.default_rng(9)

    def of(factor: float) -> Mapping[Event, Sequence[Sequence[int]]]:
        waits = [[round(10**6 * (factor if nth == 5 else 1) * (1 + 0.02 * rng.standard_normal()))] * 20
                 for nth in range(N)]  # fmt: skip
        return {CLOCK: of_period(counts(rng, 50), 10**6), WAITS: waits}

    found = compare(side(lambda: of(1)), side(lambda: of(1.5)))
    assert {row for row in changed(found) if row[0] == "off-CPU"} == {("off-CPU", "f5", "slower")}
    assert evaluate(parse("off-cpu('f5') > 5ms"), found).status == "failed"
    assert evaluate(parse("off-cpu('f5') > 12ms"), found).status == "passed"
    assert evaluate(parse("off-CPU('f4') > 10%"), found).status == "passed"
    assert evaluate(parse("off-cpu.total('f5') > 5ms"), found).status == "failed"


def test_other_main_events_are_said() -> None:
    rng = np.random.default_rng(10)
    new = side(lambda: dict(list(multi(rng).items())[1:]), 2)
    found = compare(side(lambda: multi(rng), 2), new)
    assert any(
        note.startswith("samples are of cpu-clock in the base and of cycles on the new side") for note in found.notes
    )
    assert "cpu-clock: recorded by the base only, and not compared" in found.notes
    # What is the main event of one side only is compared by its weights.
    assert rows(found, "cycles")


NAMES_OF_ONE_EVENT = {
    ("cpu-clock:pppH", "cpu-clock"): True, ("cycles:P", "cycles"): True, ("cycles:pppu", "cycles:u"): True,
    ("cycles:u", "cycles:k"): False, ("cycles:u", "cycles"): False, ("cycles", "instructions"): False,
}  # fmt: skip


@pytest.mark.parametrize("names", NAMES_OF_ONE_EVENT)
def test_an_event_is_the_same_however_exact_its_addresses_are(names: tuple[str, str]) -> None:
    base, new = ([run_with({CLOCK._replace(name=name): [[10**6] * 9]})] for name in names)
    assert (not list(unlike(compare(base, new).sides))) == NAMES_OF_ONE_EVENT[names]


def faults(rng: np.random.Generator, period: int, interval_ns: int = 0, f0: float = 1.0) -> Run:
    """1,200 page faults of each function, of which each that many is a sample, or as many as come in that time."""
    event = FAULTS._replace(period=0 if interval_ns else period, interval_ns=interval_ns)
    return run_with({event: of_period(counts(rng, 1200 / period, {0: f0}), period)})


def test_another_period_of_the_only_event_is_no_change_and_is_said() -> None:
    """Samples were taken for time: with 20 as the period there was 95 % less."""
    rng = np.random.default_rng(21)
    base, new = [faults(rng, 1) for _ in range(4)], [faults(rng, 20) for _ in range(4)]
    found = compare(base, new)
    assert changed(found) == set()
    assert rows(found, "time")["page-faults"].verdict in ("same", "unknown")
    assert rows(found, "time")["page-faults"].new == pytest.approx(12 * 1200, rel=0.1)
    assert found.notes == (
        "page-faults: a sample is of 1 in the base and of 20 on the new side; weights are compared, of which one side "
        "has fewer samples",
    )
    assert evaluate(parse("time < -5%"), found).status != "failed"
    shown, _ = figures.base_and_new(rows(found, "self")["f1"], found.tables_named("self")[0], found)
    assert int(shown) == pytest.approx(1200, rel=0.1)
    more = compare(base, [faults(rng, 20, f0=3) for _ in range(4)])
    assert {name for metric, name, _ in changed(more) if metric == "self"} == {"f0"}


@pytest.mark.parametrize(
    "event", [FAULTS, INSTRUCTIONS, Event("kmem:mm_page_alloc", "count", kind="tracepoint", period=1)]
)
@pytest.mark.parametrize(("method", "factors"), [("typical", "none"), ("none", "none"), ("whole", "whole")])
def test_work_has_no_level_as_the_only_event(event: Event, method: Method, factors: str) -> None:
    """No machine does more of it by being slow: one function that has nearly all of it does twice as much."""

    def made(factor: int) -> Run:
        of_each = np.full(N, 20)
        of_each[0] = 20_000 * factor
        return run_with({event: of_period(of_each, max(event.period, 1))})

    found = compare([made(1) for _ in range(5)], [made(2) for _ in range(5)], Options(method=method))
    tables = [found.tables_named(name)[0] for name in ("self", "total")]
    assert {(table.level, table.factors.method) for table in tables} == {(None, factors)}
    row = rows(found, "self")["f0"]
    if method != "whole":
        assert (row.verdict, row.base, row.new) == ("more", 20_000, 40_000)
        assert {name for metric, name, _ in changed(found) if metric == "total"} == {"f0", "main"}
        assert evaluate(parse("total('f0') > 5%"), found).status == "failed"


def test_functions_are_not_tested_where_the_recorder_chose_other_numbers() -> None:
    rng = np.random.default_rng(22)
    base, new = [faults(rng, 1) for _ in range(4)], [faults(rng, 20, 250_000, f0=30) for _ in range(4)]
    found = compare(base, new)
    assert changed(found) == set()
    assert {row.p for row in rows(found, "self").values()} == {None}
    assert found.notes[0].startswith("page-faults: a sample is of 1 in the base and of as many as come in 250us on the")
    assert found.notes[1].endswith("functions are not tested")
    assert changed(compare([faults(rng, 1, 250_000) for _ in range(4)], [faults(rng, 1, 250_000, f0=3) for _ in new]))


def test_times_of_samples_at_another_frequency_are_known_as_exactly_as_samples_are() -> None:
    """Runs of a side agree to the millisecond. What is missed between two samples is not in how much they vary."""

    def side(n: int, interval_ns: int) -> list[Run]:
        event = CLOCK._replace(interval_ns=interval_ns)
        return [run_with({event: of_period(np.array([n, n, n + nth % 2]), interval_ns)}) for nth in range(4)]

    found = compare(side(333, 10**6), side(16, 2 * 10**7))
    row = rows(found, "time")["time of samples"]
    assert row.verdict == "unknown"
    assert row.low is not None
    assert row.low < -0.1
    assert found.notes[0].startswith("cpu-clock: a sample is of 1ms in the base and of 20ms on the new side; times")
    alike = rows(compare(side(333, 10**6), side(320, 10**6)), "time")["time of samples"]
    assert alike.verdict == "faster"


def test_many_tracepoints_are_compared_as_a_whole_but_those_that_gates_name() -> None:
    rng = np.random.default_rng(11)
    points = [Event(f"syscalls:sys_enter_{n:03}", "count", kind="tracepoint", period=1) for n in range(60)]

    def of() -> Mapping[Event, Sequence[Sequence[int]]]:
        made: dict[Event, Sequence[Sequence[int]]] = {CLOCK: of_period(counts(rng, 50), 10**6)}
        return made | {point: of_period(np.full(N, 60 - nth), 1) for nth, point in enumerate(points)}

    base, new = side(of, 2), side(of, 2)
    found = compare(base, new)
    assert sum(table.name.startswith("syscalls:") for table in found.tables) == 2 * MOST_EVENTS
    assert len(rows(found, "events")) == 60
    assert [note for note in found.notes if note.startswith(f"{60 - MOST_EVENTS} of 60 events are compared as a whole")]
    text = "'syscalls:sys_enter_059'('f1') > 0"
    with pytest.raises(UsageError):
        evaluate(parse(text), found)
    wanted = compare(base, new, Options(events=frozenset({parse(text).metric})))
    assert evaluate(parse(text), wanted).status == "passed"


def test_the_tree_has_each_event_that_is_compared() -> None:
    rng = np.random.default_rng(12)
    runs = [run_with(multi(rng), with_trees=True) for _ in range(4)]
    lacking = [run_with({e: of for e, of in multi(rng).items() if e is not MISSES}, True) for _ in range(2)]
    found = compare(runs[:2], runs[2:])
    tree = {measured.name: measured for measured in diff_tree(found).measured}
    assert set(tree) == {"samples", "cycles", "instructions", "cache-misses"}
    whole = rows(found, "cache-misses")
    assert tree["cache-misses"].base.sum() == pytest.approx(sum(row.base for row in whole.values()))
    assert "cache-misses" not in {measured.name for measured in diff_tree(compare(runs[:2], lacking)).measured}


def test_all_functions_are_a_row_of_a_ratio() -> None:
    rng = np.random.default_rng(13)
    found = compare(side(lambda: multi(rng)), side(lambda: multi(rng)))
    row = rows(found, "instructions per cycle")[ALL[0]]
    assert row.base == pytest.approx(2.0, rel=0.05)
    assert row.reach is not None
    assert row.reach[0] < row.new < row.reach[1]


def test_one_event_has_no_further_tables() -> None:
    rng = np.random.default_rng(14)
    run = run_with({CLOCK: of_period(counts(rng, 50), 10**6)})
    assert run.events == ()
    assert not run.totals.weights.keys
    found = compare([run] * 2, [replace(run)] * 2)
    assert {table.name for table in found.tables} == {"self", "total"}
