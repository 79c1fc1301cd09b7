"""A part of a trace: of calls and allocations in one piece or in many, and of threads.

What a part must be is worked out here row by row from the pairs of enters and leaves.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.common.errors import UsageError
from traceferry.model import (
    ALLOCATIONS,
    ARGUMENTS,
    CALLS,
    COUNTER_VALUES,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    SAMPLES,
    SCHEDULING,
    STATES,
    TAIL,
    Clock,
    Counter,
    HeapSnapshot,
    MarkerType,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
    laws,
)
from traceferry.timeline.balance import CallTotals, count_lasting
from traceferry.timeline.select import select_lasting, select_range, select_threads

END = 10_000
Row = tuple[int, int, int]  # ts, frame, flags


def calls_table(rows: list[Row]) -> Table:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return Table(CALLS, dict(zip(("ts", "frame", "flags"), map(list, columns), strict=True)))


def rows_of(calls: Table) -> list[Row]:
    return list(zip(*(calls[name].tolist() for name in ("ts", "frame", "flags")), strict=True))


def in_pieces(table: Table, size: int) -> StreamedTable:
    def make() -> Iterator[Table]:
        for start in range(0, len(table), size):
            yield table.take(slice(start, start + size))

    return StreamedTable(table.spec, make)


def trace_of(data: ThreadData, *others: Thread, **process: Any) -> Trace:
    trace = TraceBuilder()
    trace.clock = Clock("monotonic")
    for n in range(3):
        trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(f"f{n}")))
    trace.stacks.intern(frame=0)
    thread = Thread(7, "main", True, 0, END, lambda _: data)
    trace.processes.append(Process(1, "app", 0, END, [thread, *others], **process))
    return trace


def data_of(trace: Trace) -> ThreadData:
    return trace.processes[0].threads[0].load(trace)


@st.composite
def call_rows(draw: st.DrawFn) -> list[Row]:
    """Balanced, with steps of no time among others."""
    ts, open_frames, rows = 0, [], []
    for step, frame in draw(st.lists(st.tuples(st.sampled_from([0, 0, 1, 7, 30]), st.integers(-2, 2)), max_size=60)):
        ts += step
        if frame >= 0:
            open_frames.append(frame)
            rows.append((ts, frame, 0))
        elif open_frames:
            rows.append((ts, open_frames.pop(), LEAVE | (TAIL if frame == -2 else 0)))
    return [*rows, *((ts + 1, frame, LEAVE) for frame in reversed(open_frames))]


def partners(rows: list[Row]) -> list[int]:
    """For each row, the other row of its call."""
    found, open_rows = [0] * len(rows), []
    for row, (_, _, flags) in enumerate(rows):
        if flags & LEAVE:
            found[row] = open_rows.pop()
            found[found[row]] = row
        else:
            open_rows.append(row)
    return found


def cut_by_hand(rows: list[Row], start: int, end: int) -> list[Row]:
    """A call that ends at the start is there only if it has made one that begins then."""
    cut = []
    for row, ((ts, frame, flags), other) in enumerate(zip(rows, partners(rows), strict=True)):
        enters, leaves = sorted((ts, rows[other][0]))
        inside = rows[min(row, other) : max(row, other) + 1]
        if enters < end and (leaves > start or any(ts == start and not flags & LEAVE for ts, _, flags in inside)):
            is_leave = flags & LEAVE
            mark = OPEN_AT_START * (not is_leave and ts < start) | OPEN_AT_END * (bool(is_leave) and ts > end)
            cut.append((min(max(ts, start), end), frame, flags | mark))
    return cut


def lasting_by_hand(rows: list[Row], min_ns: int) -> list[Row]:
    return [row for row, other in zip(rows, partners(rows), strict=True) if abs(rows[other][0] - row[0]) >= min_ns]


SIZES = st.integers(1, 20)


@given(call_rows(), st.integers(0, 500), st.integers(1, 500), SIZES)
def test_calls_in_a_range(rows: list[Row], start: int, length: int, size: int) -> None:
    wanted = cut_by_hand(rows, start, start + length)
    for calls in (calls_table(rows), in_pieces(calls_table(rows), size)):
        part = select_range(trace_of(ThreadData(calls=calls)), start, start + length)
        assert rows_of(data_of(part).calls) == wanted
        assert laws.check(part) == []


@given(call_rows(), st.integers(1, 100), SIZES)
def test_calls_that_last(rows: list[Row], min_ns: int, size: int) -> None:
    wanted = lasting_by_hand(rows, min_ns)
    for calls in (calls_table(rows), in_pieces(calls_table(rows), size)):
        part = select_lasting(trace_of(ThreadData(calls=calls)), min_ns)
        assert rows_of(data_of(part).calls) == wanted
        assert len(data_of(part).calls) == len(wanted)


@given(call_rows(), st.lists(st.integers(1, 100), min_size=1, max_size=4, unique=True).map(sorted), SIZES)
def test_how_many_calls_last(rows: list[Row], limits: list[int], size: int) -> None:
    counts = count_lasting(in_pieces(calls_table(rows), size), np.array(limits, np.int64), 1 << 20)
    assert counts.tolist() == [len(lasting_by_hand(rows, limit)) // 2 for limit in limits]


@given(call_rows(), SIZES)
def test_totals_do_not_depend_on_the_pieces(rows: list[Row], size: int) -> None:
    trace = trace_of(ThreadData())
    whole, pieces = (CallTotals(trace.frames, trace.funcs) for _ in range(2))
    assert whole.add(calls_table(rows)) == pieces.add(in_pieces(calls_table(rows), size)) == len(rows) // 2
    for one, other in zip(whole.by_func(), pieces.by_func(), strict=True):
        assert one.tolist() == other.tolist()


def test_functions_that_are_named_while_pieces_are_made() -> None:
    trace = trace_of(ThreadData())
    totals = CallTotals(trace.frames, trace.funcs)

    def make() -> Iterator[Table]:
        yield calls_table([(0, 0, 0), (1, 1, 0)])
        late = trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern("late")))
        yield calls_table([(2, late, 0), (5, late, LEAVE), (6, 1, LEAVE), (7, 0, LEAVE)])

    assert totals.add(StreamedTable(CALLS, make)) == 3
    assert [column.tolist() for column in totals.by_func()] == [[1, 1, 0, 1], [7, 5, 0, 3], [2, 2, 0, 3]]


@given(call_rows(), st.data())
def test_arguments_stay_with_the_calls_that_stay(rows: list[Row], data: st.DataObject) -> None:
    enters = [row for row, (_, _, flags) in enumerate(rows) if not flags & LEAVE]
    of_rows = sorted(data.draw(st.lists(st.sampled_from(enters), max_size=8))) if enters else []
    arguments = Table(ARGUMENTS, {"call": of_rows, "position": [0] * len(of_rows), "value": of_rows})
    stays = [row for row, other in enumerate(partners(rows)) if abs(rows[other][0] - rows[row][0]) >= 8]
    for calls in (calls_table(rows), in_pieces(calls_table(rows), 3)):
        part = data_of(select_lasting(trace_of(ThreadData(calls=calls, arguments=arguments)), 8))
        assert part.arguments["value"].tolist() == [row for row in of_rows if row in stays]
        assert [stays[call] for call in part.arguments["call"].tolist()] == part.arguments["value"].tolist()


@given(st.lists(st.integers(0, 50), max_size=30).map(sorted), st.integers(0, 60), st.integers(1, 60), SIZES)
def test_allocations_in_a_range(times: list[int], start: int, length: int, size: int) -> None:
    table = Table(ALLOCATIONS, {"ts": times, "size": times, "class_name": [0] * len(times), "stack": [0] * len(times)})
    wanted = [ts for ts in times if start <= ts < start + length]
    for allocations in (table, in_pieces(table, size)):
        part = select_range(trace_of(ThreadData(allocations=allocations)), start, start + length)
        assert data_of(part).allocations["ts"].tolist() == wanted
        assert all(len(piece) for piece in data_of(part).allocations.pieces())


def test_parts_of_streamed_tables_are_streamed() -> None:
    """And made anew at each pass, so that memory does not depend on their length."""
    passes: list[str] = []

    def make(name: str, table: Table) -> StreamedTable:
        def pieces() -> Iterator[Table]:
            passes.append(name)
            yield table

        return StreamedTable(table.spec, pieces)

    calls = make("calls", calls_table([(0, 0, 0), (9, 0, LEAVE)]))
    allocations = make("allocations", Table(ALLOCATIONS, {"ts": [1], "size": [8]}))
    trace = trace_of(ThreadData(calls=calls, allocations=allocations))
    part = data_of(select_lasting(select_range(trace, 2, 8), 1))
    assert passes == []
    for _ in range(2):
        (piece,) = part.calls.pieces()
        assert rows_of(piece) == [(2, 0, OPEN_AT_START), (8, 0, LEAVE | OPEN_AT_END)]
    assert list(part.allocations.pieces()) == []
    assert passes == ["calls", "calls", "allocations"]


def test_states_in_a_range() -> None:
    """Those that begin in it; and of each track the one that holds when it begins, from then on."""
    states = Table(STATES, {"ts": [1, 2, 5, 10, 15, 20, 21], "track": [1, 2, 1, 2, 1, 1, 2], "value": range(7)})
    scheduling = Table(SCHEDULING, {"ts": [4, 9, 12, 25], "state": [0, 1, 0, 1]})
    part = data_of(select_range(trace_of(ThreadData(states=states, scheduling=scheduling)), 10, 20))
    assert list(zip(*(part.states[name].tolist() for name in ("ts", "value")), strict=True)) == [
        (10, 2), (10, 3), (15, 4),
    ]  # fmt: skip
    assert list(zip(*(part.scheduling[name].tolist() for name in ("ts", "state")), strict=True)) == [(10, 1), (12, 0)]


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 0, 3])), max_size=20).map(sorted), st.integers(1, 39))
def test_of_two_ranges_one_has_what_happens_between_them(events: list[tuple[int, int]], border: int) -> None:
    """Calls and markers without duration, samples, allocations, states, heap snapshots; those that last are cut."""
    ts, dur = [at for at, _ in events], [of for _, of in events]
    marker = MarkerType("m", "", ())
    stack = {"stack": [0] * len(ts)}
    calls = [row for at in ts for row in ((at, 0, 0), (at, 0, LEAVE))]
    trace = trace_of(
        ThreadData(
            calls=calls_table(calls),
            samples=Table(SAMPLES, {"ts": ts, **stack}),
            allocations=Table(ALLOCATIONS, {"ts": ts, "size": ts, "class_name": [0] * len(ts), **stack}),
            markers={marker: Table(marker.spec, {"ts": ts, "dur": dur})},
        ),
        heap_snapshots=[HeapSnapshot(at, at + of, NotImplemented) for at, of in events],
    )
    trace.bounds = (0, 43)
    parts = [select_range(trace, 0, border), select_range(trace, border, 44)]
    first, second = map(data_of, parts)
    for name in ("samples", "allocations"):
        assert [*getattr(first, name)["ts"], *getattr(second, name)["ts"]] == ts
    assert [*rows_of(first.calls), *rows_of(second.calls)] == calls
    instants = [at for data in (first, second) for table in data.markers.values()
                for at, of in zip(table["ts"], table["dur"], strict=True) if of == 0]  # fmt: skip
    assert instants == [at for at, of in events if of == 0]
    assert [s.start_ts for part in parts for s in part.processes[0].heap_snapshots] == ts
    assert sum(int(data.markers[marker]["dur"].sum()) for data in (first, second)) == sum(dur)


def test_short_calls_go_and_everything_else_stays() -> None:
    scheduling = Table(SCHEDULING, {"ts": [3], "state": [1]})
    part = data_of(select_lasting(trace_of(ThreadData(scheduling=scheduling)), 5))
    assert part.scheduling["ts"].tolist() == [3]


def test_heap_snapshots_and_counters_in_a_range() -> None:
    snapshots = [HeapSnapshot(start, start + 10, NotImplemented) for start in (0, 20, 35, 50)]
    counter = Counter("heap", "bytes", "", Table(COUNTER_VALUES, {"ts": [0, 20, 50], "value": [1, 2, 3]}))
    (part,) = select_range(trace_of(ThreadData(), heap_snapshots=snapshots, counters=[counter]), 20, 40).processes
    assert [(snapshot.start_ts, snapshot.end_ts) for snapshot in part.heap_snapshots] == [(20, 30), (35, 40)]
    assert part.counters[0].values["value"].tolist() == [2]


COUNTERS = {
    (0, 60): [(0, 1), (20, 2), (50, 3)],
    (10, 60): [(10, 1), (20, 2), (50, 3)],
    (20, 40): [(20, 2)],
    (21, 40): [(21, 2)],
    (51, 60): [(51, 3)],
    (21, 50): [(21, 2)],
    (21, 51): [(21, 2), (50, 3)],
}


def test_a_counter_keeps_the_value_that_it_has_when_the_range_begins() -> None:
    values = Table(COUNTER_VALUES, {"ts": [0, 20, 50], "value": [1, 2, 3]})
    late = Table(COUNTER_VALUES, {"ts": [55, 55], "value": [1, 2]})
    counters = [Counter("heap", "bytes", "", values), Counter("late", "bytes", "", late)]
    for (start, end), wanted in COUNTERS.items():
        part = select_range(trace_of(ThreadData(), counters=counters), start, end)
        heap, after = (counter.values for counter in part.processes[0].counters)
        assert list(zip(heap["ts"].tolist(), heap["value"].tolist(), strict=True)) == wanted, (start, end)
        assert after["ts"].tolist() == ([55, 55] if end >= 55 else [])
        assert laws.check(part) == []


def test_a_duration_without_calls_is_reported() -> None:
    """Once all threads are loaded: the first ones may have none."""
    calling = ThreadData(calls=calls_table([(0, 0, 0), (9, 0, LEAVE)]))
    for data, wanted in ((ThreadData(), ["min_duration_unused"]), (calling, [])):
        part = select_lasting(trace_of(ThreadData(), Thread(8, "", False, 0, END, lambda _, data=data: data)), 5)  # type: ignore[misc]
        for _, thread in part.threads:
            thread.load(part)
        assert [issue.kind for issue in part.report] == wanted


# ---------------------------------------------------------------- threads

THREADS = [(7, "main"), (8, "worker"), (9, "worker-1"), (0x7F00_0000_0010, "pool"), (8, "worker"), (12, "9")]
CHOICES = {
    "a number": (["7"], [0]),
    "a number in hex": (["0x7f0000000010"], [3]),
    "a number that several threads had": (["8"], [1, 4]),
    "a number wins over a name": (["9"], [2]),
    "a name": (["worker"], [1, 4]),
    "a part of names": (["work"], [1, 2, 4]),
    "a part of one name": (["-1"], [2]),
    "several, in the order of the trace": (["pool", "main"], [0, 3]),
    "the same twice": (["main", "7"], [0]),
}


def with_threads(**process: Any) -> Trace:
    others = [Thread(tid, name, False, 0, END, lambda _: ThreadData()) for tid, name in THREADS[1:]]
    return trace_of(ThreadData(), *others, **process)


@pytest.mark.parametrize(("wanted", "chosen"), CHOICES.values(), ids=CHOICES)
def test_threads_by_number_or_name(wanted: list[str], chosen: list[int]) -> None:
    (process,) = select_threads(with_threads(), wanted).processes
    assert [(thread.tid, thread.name) for thread in process.threads] == [THREADS[i] for i in chosen]


@pytest.mark.parametrize(("wanted", "chosen"), [("early", 1), ("earl", 1), ("main", 0), ("mai", 0)])
def test_threads_by_a_name_that_they_had(wanted: str, chosen: int) -> None:
    """The last one counts first."""
    trace = with_threads()
    trace.processes[0].threads[1].former_names = ("early", "main")
    (process,) = select_threads(trace, [wanted]).processes
    assert [thread.tid for thread in process.threads] == [THREADS[chosen][0]]


@pytest.mark.parametrize("wanted", ["nobody", "77", "0xzz", "Worker"])
def test_no_such_thread(wanted: str) -> None:
    with pytest.raises(UsageError, match=f"number or name '{wanted}'; threads: 7 main, 8 worker, 9 worker-1"):
        select_threads(with_threads(), ["main", wanted])


def test_of_many_threads_some_are_listed() -> None:
    trace = with_threads()
    trace.processes[0].threads *= 10
    with pytest.raises(UsageError, match=r"12 9, and 30 more$"):
        select_threads(trace, ["nobody"])


def test_the_processes_of_the_threads_keep_what_is_theirs() -> None:
    snapshot = HeapSnapshot(1, 2, NotImplemented)
    counter = Counter("heap", "bytes", "", Table(COUNTER_VALUES, {"ts": [0], "value": [1]}))
    trace = with_threads(heap_snapshots=[snapshot], counters=[counter])
    trace.processes.append(Process(2, "other", 0, 2 * END, [Thread(70, "other", True, 0, END, lambda _: ThreadData())]))
    part = select_threads(trace, ["main"])
    (process,) = part.processes
    assert (process.heap_snapshots, [c.name for c in process.counters]) == ([snapshot], ["heap"])
    assert (part.start_ts, part.end_ts) == (0, 2 * END)
    assert len(trace.processes) == 2
