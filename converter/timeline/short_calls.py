"""A trace of at most so many events: long calls stay as they are, short ones are summed in place.

Between two rows of long calls, the short ones of each path become one call, as long as they are together, which says
how many it stands for. So time by function, in total and on top, and numbers of calls stay those of the recording, for
each thread. What counts as short is the same for all threads. Samples, allocations, markers and states stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np

from traceferry.common.units import format_duration
from traceferry.model import (
    ARGUMENTS,
    CALLS,
    LEAVE,
    Array,
    CountedTable,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
    distinct,
)
from traceferry.timeline._short_calls import CallRanks, ShortCallsSummed, SummedCounts

# How many limits are tried at once.
N_LIMITS = 24
# Rows of calls whose ranks are kept, a byte each.
MOST_KEPT = 1 << 27
# Above the rank of every duration.
ALL_RANKS = 255
# Of the argument that says how many calls one stands for.
SUMMED_CALLS = "summed calls"
# Ranks of durations below 4 ns are these.
SMALLEST_RANKS = 4
# In place of a row: a call that stands for several, and is in none that does.
OUTERMOST = -1


def shortest_of(rank: int) -> int:
    """Returns the shortest duration of a rank, in ns."""
    if rank < SMALLEST_RANKS:
        return rank
    return (4 + rank % 4) << (rank // 4 - 1)


class Ranks:
    """The ranks of the durations of each thread's calls: found once where there is room to keep them."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Array, Array]] = {}
        self._n_kept = 0

    def of(self, nth: int, calls: Table) -> tuple[Array, Array]:
        """Returns the rank of each row (uint8) of the calls of the nth thread of the trace, and how many calls there
        are of each rank."""
        if nth in self._kept:
            return self._kept[nth]
        ranks = CallRanks()
        for piece in calls.pieces():
            ranks.add(piece["ts"], piece["flags"])
        found = ranks.done(), ranks.of_calls
        if self._n_kept + len(found[0]) <= MOST_KEPT:
            self._kept[nth] = found
            self._n_kept += len(found[0])
        return found


@dataclass(frozen=True)
class Events:
    """Numbers of events of a trace. of_ranks: calls by the rank of their duration, int64[256]; n_others: rows of all
    other tables; ranks: of its threads."""

    of_ranks: Array
    n_others: int
    ranks: Ranks

    @property
    def n(self) -> int:
        return int(self.of_ranks.sum()) + self.n_others


def events_of(trace: Trace) -> Events:
    """Loads each thread once."""
    of_ranks, n_others, ranks = np.zeros(256, np.int64), 0, Ranks()
    for nth, (_, thread) in enumerate(trace.threads):
        data = thread.load(trace)
        of_ranks += ranks.of(nth, data.calls)[1]
        n_others += _n_others(data)
    n_others += sum(len(counter.values) for process in trace.processes for counter in process.counters)
    return Events(of_ranks, n_others, ranks)


@dataclass(frozen=True)
class Summing:
    """A limit for short calls of a trace. limit: the rank from which on calls are long, 0: all are; n_left: how many
    calls there are with it."""

    trace: Trace
    events: Events
    limit: int
    n_left: int

    @property
    def is_least(self) -> bool:
        """Whether no fewer events are possible."""
        return self.limit == ALL_RANKS or not self.events.of_ranks[self.limit :].any()

    def note_calls(self) -> None:
        """Says in the trace's report what became of its calls."""
        short = self.events.of_ranks[: self.limit]
        n_short = int(short.sum())
        n_made = self.n_left - (int(self.events.of_ranks.sum()) - n_short)
        shorter = "" if self.limit == ALL_RANKS else f" shorter than {format_duration(shortest_of(self.limit))}"
        self.trace.report.note(
            "short_calls_summed", n_short - n_made, detail=f"{n_short:,} calls{shorter} are {n_made:,}"
        )

    def summed(self) -> Trace:
        """Returns the trace with its short calls summed."""
        if self.limit == 0:
            return self.trace

        numbers = count()

        def summed(thread: Thread) -> Thread:
            ranks = partial(self.events.ranks.of, next(numbers))
            return replace(thread, make=lambda trace: _summed(trace, thread, self.limit, ranks))

        processes = [
            replace(p, threads=[summed(t) for t in p.threads], counters=[replace(c) for c in p.counters])
            for p in self.trace.processes
        ]
        return Trace(self.trace, processes=processes)


def select_events(trace: Trace, most: int) -> Trace:
    """Returns the trace with at most so many events, if summing short calls makes them so few; else with all calls
    summed. The report says what became of how many. Loads each thread twice at most."""
    summing = summing_to(trace, most, events_of(trace))
    summing.note_calls()
    is_larger = summing.n_left + summing.events.n_others > most
    detail = f"{summing.n_left:,} calls and {summing.events.n_others:,} other events instead of {most:,}"
    trace.report.note("budget_exceeded", is_larger, detail=detail)
    return summing.summed()


def summing_to(trace: Trace, most: int, events: Events) -> Summing:
    """Returns how the trace gets at most so many events. events: of the trace. Loads each thread once at most."""
    n_calls = events.n - events.n_others
    if events.n <= most:
        return Summing(trace, events, 0, n_calls)
    limits = _limits_to_try(events.of_ranks, most - events.n_others)
    counts = np.zeros(len(limits), np.int64)
    for of_thread, (_, thread) in enumerate(trace.threads):
        calls = thread.load(trace).calls
        counts += _counts_of(calls, events.ranks.of(of_thread, calls)[0], limits)
    fitting = np.flatnonzero(counts <= most - events.n_others)
    nth = int(fitting[0]) if len(fitting) else len(limits) - 1
    return Summing(trace, events, int(limits[nth]), int(counts[nth]))


def _limits_to_try(of_ranks: Array, most: int) -> Array:
    """Returns rising ranks, from the first of which on the long calls alone are few enough; the last sums all."""
    n_long = of_ranks.sum() - np.append(0, np.cumsum(of_ranks)[:-1])
    first = int(np.searchsorted(-n_long, -max(most, 0)))
    used = np.flatnonzero(of_ranks)
    candidates = np.append(used[used >= first], ALL_RANKS)
    spread = np.linspace(0, len(candidates) - 1, min(N_LIMITS, len(candidates))).astype(np.int64)
    return distinct(candidates[spread]).astype(np.uint8)


def _pieces(calls: Table) -> Iterator[tuple[Table, slice]]:
    """Yields the pieces of a table, each with its rows in the whole."""
    n = 0
    for piece in calls.pieces():
        yield piece, slice(n, n + len(piece))
        n += len(piece)


def _counts_of(calls: Table, ranks: Array, limits: Array) -> Array:
    """Returns how many calls each limit leaves."""
    counts = SummedCounts(limits)
    for piece, rows in _pieces(calls):
        counts.add(piece["frame"], piece["flags"], ranks[rows])
    return counts.of_limits


def _n_others(data: ThreadData) -> int:
    tables = (data.samples, data.branches, data.allocations, data.states, data.scheduling)
    others = (*data.other_samples.values(), *data.markers.values())
    return sum(len(table) for table in (*tables, *others))


def _summed(
    trace: TraceBuilder, thread: Thread, limit: int, ranks_of: Callable[[Table], tuple[Array, Array]]
) -> ThreadData:
    data = thread.make(trace)
    ranks, of_ranks = ranks_of(data.calls)
    if not of_ranks[:limit].any():
        return data
    made = ShortCallsSummed(limit)
    for piece, rows in _pieces(data.calls):
        ts, frame, flags, counts = piece["ts"], piece["frame"], piece["flags"], piece.counts()
        enters = (flags & LEAVE) == 0
        made.add(ts, frame, flags, enters * np.int64(1) if counts is None else enters * counts, ranks[rows])
    ts, frame, flags, counts, row = made.done()
    calls = CountedTable(CALLS, {"ts": ts, "frame": frame, "flags": flags}, counts)
    return replace(data, calls=calls, arguments=_arguments(trace, data.arguments, calls, row, thread))


def _arguments(trace: TraceBuilder, arguments: Table, calls: CountedTable, row: Array, of: Thread) -> Table:
    """Returns the arguments of the calls that stay one; and of the outermost of those that were summed, of how many.
    row: as of `ShortCallsSummed.done`."""
    kept = np.flatnonzero(row >= 0)
    kept = kept[np.argsort(row[kept], kind="stable")]
    place = np.minimum(np.searchsorted(row[kept], arguments["call"]), max(len(kept) - 1, 0))
    stays = row[kept][place] == arguments["call"] if len(kept) else np.zeros(len(arguments), bool)
    n_lost = len(arguments) - int(np.count_nonzero(stays))
    trace.report.note("arguments_summed", n_lost, where=f"{of.tid} {of.name}")
    of_kept = arguments.take(stays).replaced(call=kept[place[stays]] if len(kept) else kept)
    outermost = np.flatnonzero(row == OUTERMOST)
    key, form = (trace.strings.intern(text) for text in (SUMMED_CALLS, "integer"))
    n = len(outermost)
    of_summed = Table(
        ARGUMENTS,
        {
            "call": outermost,
            "position": np.zeros(n, np.int32),
            "value": calls.counts()[outermost].astype(np.uint64),
            "key": np.full(n, key, np.int32),
            "text": np.full(n, -1, np.int32),
            "format": np.full(n, form, np.int32),
        },
    )
    both = Table(ARGUMENTS, {c.name: np.concatenate([of_kept[c.name], of_summed[c.name]]) for c in ARGUMENTS.columns})
    return both.take(np.argsort(both["call"], kind="stable"))
