"""A part of a trace: some threads, a range of time, or only the calls that last. The trace itself is not changed."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceferry.common.errors import UsageError
from traceferry.common.shown_text import encodable
from traceferry.model import (
    CALLS,
    Array,
    CountedTable,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)

if TYPE_CHECKING:
    from traceferry.timeline.balance import Part

THREADS_LISTED = 30

LATEST = (1 << 63) - 1

Change = Callable[[TraceBuilder, ThreadData], ThreadData]


def select_range(trace: Trace, start_ts: int, end_ts: int) -> Trace:
    """Returns the part in [start_ts, end_ts), ns on the trace's clock: what happens where one range ends and another
    begins is in the second. Calls, markers, states and values that reach into the range are cut to it."""
    start_ts = max(start_ts, trace.start_ts)
    stop_ts = max(start_ts, min(end_ts, trace.end_ts + 1, LATEST))
    end_ts = max(start_ts, min(end_ts, trace.end_ts))
    off_cpu = events_lasting(trace)
    processes = _changed(trace, lambda _, data: tables_within(data, start_ts, stop_ts, off_cpu))
    for process in processes:
        process.start_ts, process.end_ts = _clamp(process.start_ts, process.end_ts, start_ts, end_ts)
        for thread in process.threads:
            thread.start_ts, thread.end_ts = _clamp(thread.start_ts, thread.end_ts, start_ts, end_ts)
        for counter in process.counters:
            counter.values = values_within(counter.values, start_ts, stop_ts)
        process.heap_snapshots = [
            s._replace(end_ts=min(s.end_ts, end_ts)) for s in process.heap_snapshots if start_ts <= s.start_ts < stop_ts
        ]
    return Trace(trace, processes=processes, bounds=(start_ts, end_ts))


def select_lasting(trace: Trace, min_ns: int) -> Trace:
    """Returns the trace without the calls shorter than min_ns; their time counts for their callers. Events stay. If no
    thread has calls, the report says so once all are loaded."""
    from traceferry.timeline.balance import calls_lasting

    some_thread_has_calls = False

    def change(trace: TraceBuilder, data: ThreadData) -> ThreadData:
        nonlocal some_thread_has_calls
        # To count the rows of a streamed table is to make them all; importers stream only what is there.
        has_calls = type(data.calls) is StreamedTable or len(data.calls) > 0
        some_thread_has_calls = some_thread_has_calls or has_calls
        trace.report.note("min_duration_unused", int(not some_thread_has_calls))
        return _with_calls(data, lambda calls: calls_lasting(calls, min_ns))

    return Trace(trace, processes=_changed(trace, change))


def select_threads(trace: Trace, wanted: Sequence[str]) -> Trace:
    """Returns the threads with one of these numbers or names, of each the best match: the number, decimal or 0x hex;
    else the name, or one that it had before; else a part of such a name. Their processes keep counters and heap
    snapshots. Raises UsageError."""
    chosen = {id(thread) for text in wanted for thread in _threads_called(trace, text)}
    processes = [
        replace(process, threads=threads)
        for process in trace.processes
        if (threads := [thread for thread in process.threads if id(thread) in chosen])
    ]
    return Trace(trace, processes=processes, bounds=(trace.start_ts, trace.end_ts))


def _threads_called(trace: Trace, text: str) -> list[Thread]:
    threads = [thread for _, thread in trace.threads]
    number, text = _number(text), encodable(text)
    matches: tuple[Callable[[Thread], bool], ...] = (
        lambda thread: thread.tid == number,
        lambda thread: thread.name == text,
        lambda thread: text in thread.former_names,
        lambda thread: text in thread.name,
        lambda thread: any(text in name for name in thread.former_names),
    )
    for match in matches:
        if found := [thread for thread in threads if match(thread)]:
            return found
    known = [f"{thread.tid} {thread.name}".strip() for thread in threads[:THREADS_LISTED]] or ["none"]
    more = len(threads) - THREADS_LISTED
    known += [f"and {more} more"] if more > 0 else []
    raise UsageError(f"no thread has the number or name {text!r}; threads: {', '.join(known)}")


def _number(text: str) -> int | None:
    try:
        return int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        return None


def _changed(trace: Trace, change: Change) -> list[Process]:
    """Returns copies of the processes, of which each thread is changed when it is loaded."""

    def changed(thread: Thread) -> Thread:
        return replace(thread, make=lambda trace: change(trace, thread.make(trace)))

    return [
        replace(p, threads=[changed(t) for t in p.threads], counters=[replace(c) for c in p.counters])
        for p in trace.processes
    ]


def _clamp(start: int, end: int, low: int, high: int) -> tuple[int, int]:
    return min(max(start, low), high), min(max(end, low), high)


def events_lasting(trace: Trace) -> set[int]:
    """Returns the rows of the events of which a sample begins at its time and lasts as many ns as it weighs."""
    return {row for row, event in enumerate(trace.events) if event.kind == "off-cpu"}


def tables_within(data: ThreadData, start_ts: int, stop_ts: int, lasting: Container[int]) -> ThreadData:
    """Returns the tables of a thread in [start_ts, stop_ts), with what reaches into it cut. lasting: as of
    `events_lasting`."""
    from traceferry.timeline.balance import calls_within

    def samples(row: int, table: Table) -> Table:
        return (_waits_within if row in lasting else _within)(table, start_ts, stop_ts)

    return replace(
        _with_calls(data, lambda calls: calls_within(calls, start_ts, stop_ts)),
        samples=samples(0, data.samples),
        other_samples={row: samples(row, table) for row, table in data.other_samples.items()},
        branches=_within(data.branches, start_ts, stop_ts),
        allocations=_within(data.allocations, start_ts, stop_ts),
        states=_states_within(data.states, data.states["track"], start_ts, stop_ts),
        scheduling=_states_within(data.scheduling, np.zeros(len(data.scheduling), np.int32), start_ts, stop_ts),
        markers={kind: _markers_within(table, start_ts, stop_ts) for kind, table in data.markers.items()},
    )


def _with_calls(data: ThreadData, part: Callable[[Table], Part]) -> ThreadData:
    """Returns the thread with a part of its calls, and the arguments of those. A streamed table without arguments stays
    one."""
    if isinstance(data.calls, StreamedTable) and not len(data.arguments):
        return replace(data, calls=StreamedTable(CALLS, lambda: (piece for piece, _ in part(data.calls))))
    counts, pieces = data.calls.counts(), list(part(data.calls))
    rows = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in pieces)])
    calls = StreamedTable(CALLS, lambda: iter([piece for piece, _ in pieces]))
    return replace(
        data,
        calls=Table(CALLS, calls.columns) if counts is None else CountedTable(CALLS, calls.columns, counts[rows]),
        arguments=_arguments_of(data.arguments, rows),
    )


def _arguments_of(arguments: Table, rows: Array) -> Table:
    """Returns the arguments of the calls that stay; rows: where these were, rising."""
    new_row = np.searchsorted(rows, arguments["call"])
    stays = np.append(rows, -1)[new_row] == arguments["call"]
    return arguments.take(stays).replaced(call=new_row[stays])


def _within(table: Table, start_ts: int, stop_ts: int) -> Table:
    """Returns the rows in the range; a streamed table stays one."""
    if isinstance(table, StreamedTable):
        pieces = table.pieces
        return StreamedTable(
            table.spec, lambda: (p for piece in pieces() if len(p := _within(piece, start_ts, stop_ts)))
        )
    return table.take((table["ts"] >= start_ts) & (table["ts"] < stop_ts))


def values_within(values: Table, start_ts: int, stop_ts: int) -> Table:
    """Returns the values in the range; the last one before it holds when the range begins."""
    first, stop = np.searchsorted(values["ts"], start_ts, "left"), np.searchsorted(values["ts"], stop_ts, "left")
    starts_anew = first < len(values) and values["ts"][first] == start_ts
    cut = values.take(slice(first - int(first > 0 and not starts_anew), stop))
    return cut.replaced(ts=np.maximum(cut["ts"], start_ts))


def _markers_within(table: Table, start_ts: int, stop_ts: int) -> Table:
    begins, ends = table["ts"], table["ts"] + table["dur"]
    cut = table.take((begins < stop_ts) & ((begins >= start_ts) | (ends > start_ts)))
    begins, ends = np.maximum(cut["ts"], start_ts), np.minimum(cut["ts"] + cut["dur"], stop_ts)
    return cut.replaced(ts=begins, dur=ends - begins)


def _waits_within(samples: Table, start_ts: int, stop_ts: int) -> Table:
    begins, ends = samples["ts"], samples["ts"] + samples["weight"]
    cut = samples.take((begins < stop_ts) & (ends > start_ts))
    begins, ends = np.maximum(cut["ts"], start_ts), np.minimum(cut["ts"] + cut["weight"], stop_ts)
    return cut.replaced(ts=begins, weight=ends - begins)


def _states_within(states: Table, tracks: Array, start_ts: int, stop_ts: int) -> Table:
    """Returns the states that begin in the range, and of each track (int, one for each row) the one that holds then."""
    ts = states["ts"]
    keep = (ts > start_ts) & (ts < stop_ts)
    before = np.flatnonzero(ts <= start_ts)
    last_of_track = {int(track): row for track, row in zip(tracks[before], before, strict=True)}
    keep[list(last_of_track.values())] = True
    cut = states.take(keep)
    return cut.replaced(ts=np.maximum(cut["ts"], start_ts))
