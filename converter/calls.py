"""From the enters and leaves as they were recorded to balanced calls, and questions about balanced calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from converter import calls_kernel
from converter.model import (
    CALLS,
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_START,
    Array,
    Table,
    ThreadData,
)
from converter.report import Report

NOT_FOUND = 128


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


@dataclass(frozen=True)
class CallTotals:
    """For each function (index of the table funcs): enters, ns in its outermost activations, ns on top of the stack."""

    n_calls: Array
    total_ns: Array
    self_ns: Array


class TotalsBuilder:
    """Adds up threads into CallTotals."""

    def __init__(self, func_of_frame: Array, n_funcs: int) -> None:
        self._func_of_frame = np.ascontiguousarray(func_of_frame, np.int32)
        self._n_funcs = n_funcs
        self.totals = CallTotals(*(np.zeros(n_funcs, np.int64) for _ in range(3)))

    def add(self, calls: Table) -> None:
        if len(calls) == 0:
            return
        calls_kernel.totals(
            calls["ts"], calls["frame"], calls["flags"], self._func_of_frame,
            np.empty(len(calls) // 2 + 1, np.int32), np.zeros(self._n_funcs, np.int64),
            np.zeros(self._n_funcs, np.int64), self.totals.n_calls, self.totals.total_ns, self.totals.self_ns,
        )  # fmt: skip


def n_calls(calls: Table) -> int:
    return len(calls) // 2


def keep_rows(data: ThreadData, keep: Array) -> ThreadData:
    """The thread with those rows of `calls` only (a mask), and the arguments of the calls that stay."""
    new_row = np.cumsum(keep) - 1
    stays = keep[data.arguments["call"]]
    arguments = data.arguments.take(stays)
    return ThreadData(
        calls=data.calls.take(keep),
        arguments=arguments.replaced(call=new_row[arguments["call"]]),
        samples=data.samples,
        allocations=data.allocations,
        states=data.states,
        markers=data.markers,
    )


def lasting(calls: Table, min_ns: int) -> Array:
    """A mask over the rows: the calls that last at least min_ns. A call is never longer than its caller."""
    keep = np.zeros(len(calls), np.uint8)
    calls_kernel.long_enough(calls["ts"], calls["flags"], min_ns, np.empty(len(calls) // 2 + 1, np.int64), keep)
    return keep.astype(bool)
