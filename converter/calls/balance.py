"""From the enters and leaves as they were recorded to balanced calls, and questions about balanced calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from traceferry.calls import calls_kernel
from traceferry.model import (
    CALLS,
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_START,
    Array,
    GrowingTable,
    StreamedTable,
    Table,
)
from traceferry.report import Report

NOT_FOUND = 128
# Of the four sums of a function.
ENTERS, TOTAL_NS, SELF_NS, ACTIVE = range(4)


class Balancer:
    """Takes the stream of one thread piece by piece, and makes a table of CALLS that obeys the model's laws.

    n_rows: how many rows will come at most; frames must be below n_frames.
    """

    def __init__(self, n_rows: int, n_frames: int) -> None:
        # Room for the worst case; memory that is not written is not used.
        self._ts, self._frame = np.empty(2 * n_rows, np.int64), np.empty(2 * n_rows, np.int32)
        self._flags = np.empty(2 * n_rows, np.uint8)
        self._stack, self._n_open = np.empty(n_rows, np.int64), np.zeros(n_frames, np.int32)
        self._state = np.zeros(9, np.int64)
        self._marks: list[Array] = []

    def add(self, ts: Array, frame: Array, flags: Array, marks: Array) -> None:
        """int64 ts in ns, int32 frame, uint8 flags (0, LEAVE, LEAVE | TAIL, LEAVE | UNWOUND); marks: int64, rising rows
        of the piece whose place in the result `finish` tells, -1 for the last row before the piece."""
        if self._state[0] == 0 and len(ts):
            self._state[6] = ts[0]
        out_marks = np.empty(len(marks), np.int64)
        calls_kernel.match(
            ts,
            frame,
            flags,
            self._ts,
            self._frame,
            self._flags,
            self._stack,
            self._n_open,
            marks,
            out_marks,
            self._state,
        )
        if len(marks):
            self._marks.append(out_marks)

    def finish(self, end_ts: int, report: Report, where: str) -> tuple[Table, Array]:
        """The table, and the rows of all marks in it. What is open is left at end_ts; what had to be added or closed is
        noted in the report under `where`."""
        calls_kernel.close(end_ts, self._ts, self._frame, self._flags, self._stack, self._state)
        n_rows, n_unwound, n_open, n_backwards, n_orphans, max_backwards = (int(n) for n in self._state[:6])
        calls = Table(CALLS, {"ts": self._ts[:n_rows], "frame": self._frame[:n_rows], "flags": self._flags[:n_rows]})
        marks = np.concatenate([np.zeros(0, np.int64), *self._marks])
        report.note("unwound", n_unwound, where=where)
        report.note("open_at_end", n_open, where=where)
        report.note("clock_backwards", n_backwards, where=where, detail=f"by at most {max_backwards} ns")
        if n_orphans:
            calls, marks = _adopt_orphans(calls, marks, n_orphans, report, where)
        return calls, marks


def _adopt_orphans(calls: Table, marks: Array, n_orphans: int, report: Report, where: str) -> tuple[Table, Array]:
    """Gives every leave that has no enter one: see `calls_kernel.adopt` for where."""
    n = len(calls)
    ts, frame, flags = np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.uint8)
    enter_at = np.empty(n_orphans, np.int64)
    new_marks = np.empty(len(marks), np.int64)
    counts = np.zeros(6, np.int64)
    calls_kernel.adopt(
        calls["ts"], calls["frame"], calls["flags"], ts, frame, flags,
        np.empty(n + 1, np.int64), np.empty(n, np.uint8), enter_at, marks, new_marks, counts,
    )  # fmt: skip
    ts, frame, flags = ts[: counts[0]], frame[: counts[0]], flags[: counts[0]]
    leave_at = np.flatnonzero(flags & NOT_FOUND)
    flags[leave_at] &= ~np.uint8(NOT_FOUND)
    from_start = np.flatnonzero(enter_at < 0)
    inside = np.flatnonzero(enter_at >= 0)
    report.note("entry_missing", len(from_start), where=where)
    report.note("entry_lost", len(inside), where=where)

    # The last one left was entered first.
    outermost_first = from_start[::-1]
    place = np.concatenate((np.zeros(len(from_start), np.int64), enter_at[inside]))
    entered = np.concatenate((leave_at[outermost_first], leave_at[inside]))
    before = np.where(flags[place] & LEAVE, np.maximum(place - 1, 0), place)
    new_flags = np.repeat(np.array([OPEN_AT_START, ENTRY_LOST], np.uint8), (len(from_start), len(inside)))
    order = np.argsort(place, kind="stable")
    place = place[order]
    table = Table(
        CALLS,
        {
            "ts": np.insert(ts, place, ts[before[order]]),
            "frame": np.insert(frame, place, frame[entered[order]]),
            "flags": np.insert(flags, place, new_flags[order]),
        },
    )
    return table, new_marks + np.searchsorted(place, new_marks, side="right")


class CallStream(StreamedTable):
    """A stream of calls that can be added up without making its rows. add_up: does so."""

    def __init__(self, make: Callable[[], Iterator[Table]], n_rows: int, add_up: Callable[[CallTotals], None]) -> None:
        super().__init__(CALLS, make, n_rows)
        self.add_up = add_up


class CallTotals:
    """Adds up the calls of any number of threads for each function: the index of the table funcs.

    frames, funcs: of the trace; both may grow while the pieces of a thread are made.
    """

    def __init__(self, frames: GrowingTable, funcs: GrowingTable) -> None:
        self._frames = frames
        self._funcs = funcs
        self._func_of_frame = np.zeros(0, np.int32)
        self._sums = np.zeros((0, 4), np.int64)
        self._entered = self._in_callees = np.empty(0, np.int64)

    def add(self, calls: Table) -> int:
        """Adds a thread; returns how many calls it has."""
        if isinstance(calls, CallStream):
            calls.add_up(self)
            return len(calls) // 2
        n_rows = 0
        state = np.zeros(2, np.int64)
        for piece in calls.pieces():
            n_rows += len(piece)
            self._make_room(int(state[0]) + len(piece))
            calls_kernel.totals(
                piece["ts"], piece["frame"], piece["flags"], self._func_of_frame, self._entered, self._in_callees,
                self._sums.reshape(-1), state,
            )  # fmt: skip
        _check_balanced(state)
        return n_rows // 2

    def tables(self) -> tuple[Array, Array]:
        """For who adds up by other means: int32 func of each frame so far; int64 sums, four for each func: enters,
        total ns, self ns, how often it is open now."""
        self._make_room(0)
        return self._func_of_frame, self._sums.reshape(-1)

    def _make_room(self, depth: int) -> None:
        if len(self._func_of_frame) < len(self._frames):
            self._func_of_frame = np.ascontiguousarray(self._frames["func"], np.int32)
        if len(self._sums) < len(self._funcs):
            self._sums = np.concatenate((self._sums, np.zeros((len(self._funcs) - len(self._sums), 4), np.int64)))
        if len(self._entered) < depth:
            self._entered, self._in_callees = _longer(self._entered, depth), _longer(self._in_callees, depth)

    def by_func(self) -> tuple[Array, Array, Array]:
        """int64 for each function: enters, ns in its outermost activations, ns on top of the stack."""
        self._make_room(0)
        return self._sums[:, 0], self._sums[:, 1], self._sums[:, 2]


def count_lasting(calls: Table, limits_ns: Array, most: int) -> Array:
    """How many calls last at least as long as each of the limits: int64, as these, which rise. Of longer tables than
    `most` rows, what so many of the first ones let expect."""
    n_seen = 0
    counts, state, entered = np.zeros(len(limits_ns), np.int64), np.zeros(1, np.int64), np.empty(0, np.int64)
    for piece in calls.pieces():
        entered = _longer(entered, int(state[0]) + len(piece))
        calls_kernel.count_lasting(piece["ts"], piece["flags"], limits_ns, entered, counts, state)
        n_seen += len(piece)
        if n_seen >= most:
            return counts[::-1].cumsum()[::-1] * len(calls) // n_seen
    _check_balanced(state)
    return counts[::-1].cumsum()[::-1]


Part = Iterator[tuple[Table, Array]]


def calls_within(calls: Table, start_ts: int, end_ts: int) -> Part:
    """The calls of which some part lies in [start_ts, end_ts], cut to it, in pieces: the piece, and which rows of
    `calls` its rows were, int64, rising."""
    return _part(calls, calls_kernel.cut, start_ts, end_ts)


def calls_lasting(calls: Table, min_ns: int) -> Part:
    """The calls that last at least min_ns, in pieces as those of `calls_within`. A call is never longer than its
    caller."""
    return _part(calls, calls_kernel.keep_lasting, min_ns)


def _part(calls: Table, kernel: Callable[..., None], *limits: int) -> Part:
    """kernel: takes the columns of a piece, the limits, the columns of open calls, those of the output, the state."""
    state = np.zeros(4, np.int64)
    open_calls = _call_columns(0)
    for piece in calls.pieces():
        room = int(state[0]) + len(piece)
        open_calls = [_longer(column, room) for column in open_calls]
        out = _call_columns(room)
        kernel(piece["ts"], piece["frame"], piece["flags"], *limits, *open_calls, *out, state)
        ts, frame, flags, row = (column[: state[2]] for column in out)
        if len(ts):
            yield Table(CALLS, {"ts": ts, "frame": frame, "flags": flags}), row
    _check_balanced(state)


def _call_columns(n: int) -> list[Array]:
    """Room for ts, frame, flags and row of n rows of calls."""
    return [np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.int64)]


def _longer(array: Array, n: int) -> Array:
    """The array, or a copy with room for n values."""
    return array if len(array) >= n else np.concatenate((array, np.empty(2 * n - len(array), array.dtype)))


def _check_balanced(state: Array) -> None:
    """At a stream's end no call may be open: state[0] is their number."""
    if state[0]:
        raise ValueError("the stream of calls is not balanced")
