"""Parts of a trace whose times have no known relation: they are moved so that all begin together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from traceferry.model import (
    ARGUMENTS,
    Clock,
    CountedTable,
    MarkerType,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
)


class _Group(NamedTuple):
    """Processes whose times are related. has_code: so are those of code objects, which cannot be moved."""

    clock: Clock | None
    processes: list[Process]
    has_code: bool

    @property
    def start_ts(self) -> int:
        return min(process.start_ts for process in self.processes)


def begin_together(trace: TraceBuilder) -> None:
    """Moves what has no known relation to the rest: to where that begins. The rest is what is on the trace's clock, or
    what has code objects; where nothing is on a clock, the first input is."""
    groups = _groups(trace)
    if not groups:
        return
    rest = next((group for group in groups if group.has_code), groups[0])
    trace.clock = rest.clock or trace.clock
    for group in groups:
        if group is not rest and not group.has_code:
            trace.report.note("clock_missing", int(group.clock is None), where=group.processes[0].name)
            _move(group.processes, rest.start_ts - group.start_ts)


def _groups(trace: TraceBuilder) -> list[_Group]:
    """Returns the groups that have processes, that on the trace's clock first."""
    parts = trace.clock_parts
    stops = [*(part.n_processes for part in parts[1:]), len(trace.processes)]
    code_stops = [*(part.n_code for part in parts[1:]), len(trace.code)]
    related, apart = _Group(trace.clock, [], False), list[_Group]()
    for part, stop, code_stop in zip(parts, stops, code_stops, strict=True):
        processes, has_code = trace.processes[part.n_processes : stop], code_stop > part.n_code
        if part.is_apart:
            apart.append(_Group(part.clock, processes, has_code))
        else:
            related = _Group(trace.clock, [*related.processes, *processes], related.has_code or has_code)
    return [group for group in (related, *_with_clocks_first(apart)) if group.processes]


def _with_clocks_first(groups: Sequence[_Group]) -> list[_Group]:
    return sorted(groups, key=lambda group: group.clock is None)


def _move(processes: Sequence[Process], by_ns: int) -> None:
    for process in processes:
        process.start_ts, process.end_ts = process.start_ts + by_ns, process.end_ts + by_ns
        process.threads[:] = [_moved_thread(thread, by_ns) for thread in process.threads]
        for counter in process.counters:
            counter.values = counter.values.replaced(ts=counter.values["ts"] + by_ns)
        process.heap_snapshots[:] = [
            one._replace(start_ts=one.start_ts + by_ns, end_ts=one.end_ts + by_ns) for one in process.heap_snapshots
        ]


def _moved_thread(thread: Thread, by_ns: int) -> Thread:
    def make(trace: TraceBuilder) -> ThreadData:
        return _moved(trace, thread.make(trace), by_ns)

    return replace(thread, start_ts=thread.start_ts + by_ns, end_ts=thread.end_ts + by_ns, make=make)


def _moved(trace: TraceBuilder, data: ThreadData, by_ns: int) -> ThreadData:
    return replace(
        data,
        calls=_later(data.calls, by_ns),
        samples=_later(data.samples, by_ns),
        branches=_later(data.branches, by_ns),
        allocations=_later(data.allocations, by_ns),
        states=_later(data.states, by_ns),
        scheduling=_later(data.scheduling, by_ns),
        other_samples={row: _later(table, by_ns) for row, table in data.other_samples.items()},
        arguments=_arguments_later(trace, data.arguments, by_ns),
        markers={kind: _markers_later(kind, table, by_ns) for kind, table in data.markers.items()},
    )


def _later(table: Table, by_ns: int) -> Table:
    """Returns the table with later times; a streamed table stays one."""
    if isinstance(table, StreamedTable):
        return StreamedTable(table.spec, partial(_pieces_later, table, by_ns), totals=table.totals)
    columns, counts = table.columns | {"ts": table["ts"] + by_ns}, table.counts()
    return Table(table.spec, columns) if counts is None else CountedTable(table.spec, columns, counts)


def _pieces_later(table: StreamedTable, by_ns: int) -> Iterator[Table]:
    return (_later(piece, by_ns) for piece in table.pieces())


def _markers_later(kind: MarkerType, table: Table, by_ns: int) -> Table:
    """Fields that are times are moved, too, but for those that are unknown."""
    moved = {
        field.key: np.where(table[field.key] == 0, 0, table[field.key] + by_ns) if field.optional
        else table[field.key] + by_ns
        for field in kind.fields if field.format == "time"
    }  # fmt: skip
    return _later(table, by_ns).replaced(**moved)


def _arguments_later(trace: TraceBuilder, arguments: Table, by_ns: int) -> Table:
    used = {int(row) for row in arguments["format"].tolist() if row >= 0}
    times = [row for row in used if trace.strings[row] == "time"]
    if not times:
        return arguments
    is_time = np.isin(arguments["format"], times) & (arguments["text"] < 0)
    value = np.where(is_time, (arguments["value"].view(np.int64) + by_ns).view(np.uint64), arguments["value"])
    return Table(ARGUMENTS, arguments.columns | {"value": value})
