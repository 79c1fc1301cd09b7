"""Balances recorded enters and leaves into calls, and computes totals and ranges of balanced calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from traceferry.common.report import Report
from traceferry.model import CALLS, ENTRY_LOST, LEAVE, OPEN_AT_START, Array, StreamedTable, Table, sums
from traceferry.native.arrays import grown, longer
from traceferry.timeline._balance import MISSING_ENTER
from traceferry.timeline._balance import Balancer as Balancer
from traceferry.timeline._calls import FUNC_SUMS, OpenCalls
from traceferry.timeline.call_memory import CallMemory

# Balanced calls of a thread that are kept; of longer threads they are made again each time.
KEPT_ROWS = 1 << 24
# So many rows are balanced one by one from one on that does not nest.
IRREGULAR_PIECE = 1 << 13
NO_ROWS = np.empty(0, np.int64)
CALL_COLUMNS = [column.name for column in CALLS.columns]


class Raw(NamedTuple):
    """A piece of what was recorded of a thread.

    ts: int64, in ns; key: int32, by which a leave finds its enter; frame: int32, of enters (of leaves without an enter,
    too, where these are noted); flags: uint8: 0, LEAVE, LEAVE | TAIL, LEAVE | UNWOUND; marks: int64, rising rows of the
    piece that enter and of which the rows in the result are wanted; -1 is the last row before the piece.
    """

    ts: Array
    key: Array
    frame: Array
    flags: Array
    marks: Array = NO_ROWS


def add_in_place(balancer: Balancer, raw: Raw, n_keys: int) -> Table:
    """Returns what `balancer.add` returns, of a balancer that has a start and notes and misses nothing. The raw columns
    become those of the calls, if all rows nest."""
    parts = list[Table]()
    while len(raw.ts):
        done = balancer.add_in_place(*raw[:4], n_keys)
        parts.append(Table(CALLS, {name: getattr(raw, name)[:done] for name in CALL_COLUMNS}))
        if done < len(raw.ts):
            parts.append(balancer.add(Raw(*(column[done : done + IRREGULAR_PIECE] for column in raw)), n_keys))
        raw = Raw(*(column[done + IRREGULAR_PIECE :] for column in raw))
    if len(parts) == 1:
        return parts[0]
    return Table(CALLS, {name: np.concatenate([part[name] for part in parts]) for name in CALL_COLUMNS if parts})


def missing_enters(orphans: Array) -> Array:
    """Returns the enters that were lost, for a second `Balancer`. orphans: what the first one noted.

    An orphan that nothing outlives was open since the thread's start: the last one left was entered first.
    """
    is_inside = orphans["inside"] != 0
    from_start = np.flatnonzero(~is_inside)[::-1]
    ordered = np.concatenate((from_start, np.flatnonzero(is_inside)))
    missing = np.empty(len(orphans), MISSING_ENTER)
    for name in ("row", "key", "frame"):
        missing[name] = orphans[name][ordered]
    missing["row"][: len(from_start)] = 0
    missing["flags"] = np.where(is_inside[ordered], ENTRY_LOST, OPEN_AT_START)
    return missing[np.argsort(missing["row"], kind="stable")]


class RecordedCalls(NamedTuple):
    """The calls of one thread of a recording that can be read repeatedly.

    n_rows: how many rows `read` yields; n_keys: one more than the largest key; before_fork: where a fork began the
    thread, what its parent's thread had recorded by then, in the same form.
    """

    read: Callable[[], Iterator[Raw]]
    n_rows: int
    n_keys: int
    end_ts: int
    before_fork: Callable[[], Iterator[Raw]] | None = None

    def balanced(self, first: Iterable[Raw], report: Report, where: str, memory: CallMemory) -> tuple[Table, Array]:
        """Returns CALLS, and int64 rows of the marks. first: an iterator of `read` that has begun; memory: for what is
        kept. Open calls are closed at end_ts; added and closed calls are reported under `where`, but for those that
        were open at the fork."""
        balancer = Balancer(notes_orphans=True)
        kept = self._kept(balancer, first, memory)
        report.note("unwound", balancer.n_unwound, where=where)
        report.note("open_at_end", balancer.depth, where=where)
        report.note(
            "clock_backwards", balancer.n_backwards, where=where, detail=f"by at most {balancer.max_backwards} ns"
        )
        orphans = balancer.orphans
        if len(orphans) == 0:
            return self._table(kept, balancer.n_written, None), balancer.marks
        n_inside = int(np.count_nonzero(orphans["inside"]))
        of_start = orphans["frame"][orphans["inside"] == 0].tolist()
        report.note("entry_missing", len(of_start) - self._n_open_at_fork(of_start), where=where)
        report.note("entry_lost", n_inside, where=where)
        missing = missing_enters(orphans)
        second = Balancer(missing=missing)
        del kept
        kept = self._kept(second, self.read(), memory)
        return self._table(kept, second.n_written, missing), second.marks

    def _n_open_at_fork(self, frames: list[int]) -> int:
        """Returns how many of these calls, in the order in which they were left, were open at the fork."""
        if self.before_fork is None or not frames:
            return 0
        balancer = Balancer(notes_orphans=True)
        for raw in self.before_fork():
            balancer.add(raw, self.n_keys)
        innermost_first = iter(balancer.close(0)["frame"].tolist())
        return sum(frame in innermost_first for frame in frames)

    def _kept(self, balancer: Balancer, pieces: Iterable[Raw], memory: CallMemory) -> Table | None:
        """Returns the calls, None where they are too many to keep."""
        columns, n_kept = memory.columns(min(self.n_rows, KEPT_ROWS)), 0
        for piece in self._pass(balancer, pieces):
            if balancer.n_written > KEPT_ROWS:
                columns, n_kept = memory.columns(0), 0
                continue
            start, n_kept = n_kept, n_kept + len(piece)
            columns = [grown(column, n_kept) for column in columns]
            for column, name in zip(columns, CALL_COLUMNS, strict=True):
                column[start:n_kept] = piece[name]
        if balancer.n_written > KEPT_ROWS:
            return None
        return Table(CALLS, {name: column[:n_kept] for name, column in zip(CALL_COLUMNS, columns, strict=True)})

    def _table(self, kept: Table | None, n_rows: int, missing: Array | None) -> Table:
        if kept is not None:
            return kept
        return StreamedTable(CALLS, lambda: self._pass(Balancer(missing=missing), self.read()), n_rows)

    def _pass(self, balancer: Balancer, pieces: Iterable[Raw]) -> Iterator[Table]:
        for raw in pieces:
            if len(made := balancer.add(raw, self.n_keys)):
                yield made
        if len(made := balancer.close(self.end_ts)):
            yield made


class CallTotals:
    """Adds up the calls of any number of threads for each function: the index of the table funcs.

    frames, funcs: of the trace; both may grow while the pieces of a thread are made.
    """

    def __init__(self, frames: Table, funcs: Table) -> None:
        self._frames = frames
        self._funcs = funcs
        self._func_of_frame = np.zeros(0, np.int32)
        self._sums = np.zeros(0, FUNC_SUMS)

    def add(self, calls: Table) -> int:
        """Adds a thread; returns its number of calls."""
        if (totals := calls.totals()) is not None:
            self._reserve()
            for name, added in zip(("n_calls", "total_ns", "self_ns"), totals[:, 1:].T, strict=True):
                self._sums[name][totals[:, 0]] = sums.plus(self._sums[name][totals[:, 0]], added)
            return int(totals[:, 1].sum())
        n_calls, open_calls = 0, OpenCalls()
        for piece in calls.pieces():
            self._reserve()
            open_calls.add_up(piece["ts"], piece["frame"], piece["flags"], self._func_of_frame, self._sums)
            enters = np.flatnonzero((piece["flags"] & LEAVE) == 0)
            n_calls += len(enters)
            if (counts := piece.counts()) is not None:
                n_calls += self._add_more(piece["frame"][enters], counts[enters])
        open_calls.check_closed()
        return sums.limited(n_calls)

    def _add_more(self, frame: Array, counts: Array) -> int:
        """Adds the calls that each enter stands for beside itself. Returns how many these are."""
        n_calls = self._sums["n_calls"]
        n_calls -= sums.total_by(self._func_of_frame[frame], np.ones(len(frame), np.int64), len(n_calls))
        n_calls[:] = sums.plus(n_calls, sums.total_by(self._func_of_frame[frame], counts, len(n_calls)))
        return sums.total(counts) - len(frame)

    def _reserve(self) -> None:
        if len(self._func_of_frame) < len(self._frames):
            self._func_of_frame = np.ascontiguousarray(self._frames["func"], np.int32)
        self._sums = longer(self._sums, len(self._funcs))

    def by_func(self) -> tuple[Array, Array, Array]:
        """Returns int64 for each function: enters, ns in its outermost activations, ns on top of the stack."""
        self._reserve()
        return self._sums["n_calls"], self._sums["total_ns"], self._sums["self_ns"]


def count_lasting(calls: Table, limits_ns: Array, most: int) -> Array:
    """Returns how many calls last at least as long as each of the limits: int64, as these, which rise. Tables longer
    than `most` rows are estimated from their first `most` rows."""
    n_seen, counts, open_calls = 0, np.zeros(len(limits_ns), np.int64), OpenCalls()
    for piece in calls.pieces():
        open_calls.count_lasting(piece["ts"], piece["flags"], limits_ns, counts)
        n_seen += len(piece)
        if n_seen >= most:
            return counts[::-1].cumsum()[::-1] * len(calls) // n_seen
    open_calls.check_closed()
    return counts[::-1].cumsum()[::-1]


Part = Iterator[tuple[Table, Array]]


def calls_within(calls: Table, start_ts: int, stop_ts: int) -> Part:
    """Yields the calls of which some part lies in [start_ts, stop_ts), cut to it, in pieces: the piece, and which rows
    of `calls` its rows were, int64, rising."""
    return _part(calls, OpenCalls.within, start_ts, stop_ts)


def calls_lasting(calls: Table, min_ns: int) -> Part:
    """Yields the calls that last at least min_ns, in pieces as those of `calls_within`. A call is never longer than its
    caller."""
    return _part(calls, OpenCalls.lasting, min_ns)


def _part(calls: Table, part_of: Callable[..., tuple[Array, Array, Array, Array]], *limits: int) -> Part:
    open_calls = OpenCalls()
    for piece in calls.pieces():
        ts, frame, flags, row = part_of(open_calls, piece["ts"], piece["frame"], piece["flags"], *limits)
        if len(ts):
            yield Table(CALLS, {"ts": ts, "frame": frame, "flags": flags}), row
    open_calls.check_closed()
