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


@dataclass(frozen=True)
class RawCalls:
    """The stream of one thread as it was recorded: int64 ts in ns, int32 frame, uint8 flags (0, LEAVE, LEAVE | TAIL,
    LEAVE | UNWOUND); marks: rising rows of enters whose place in the result the caller wants to know."""

    ts: Array
    frame: Array
    flags: Array
    marks: Array


def balance(raw: RawCalls, end_ts: int, n_frames: int, report: Report, where: str) -> tuple[Table, Array]:
    """A table of CALLS that obeys the model's laws, and the rows of `raw.marks` in it.

    Frames must be below n_frames. What had to be added or closed is noted in the report under `where`.
    """
    n = len(raw.ts)
    ts, frame, flags = np.empty(2 * n, np.int64), np.empty(2 * n, np.int32), np.empty(2 * n, np.uint8)
    marks = np.empty(len(raw.marks), np.int64)
    counts = np.zeros(6, np.int64)
    stack, n_open = np.empty(n + 1, np.int64), np.zeros(n_frames, np.int32)
    calls_kernel.match(
        raw.ts, raw.frame, raw.flags, end_ts, ts, frame, flags, stack, n_open, raw.marks, marks, counts
    )
    n_rows, n_unwound, n_open_at_end, n_backwards, n_orphans, max_backwards = (int(c) for c in counts)
    calls = Table(CALLS, {"ts": ts[:n_rows], "frame": frame[:n_rows], "flags": flags[:n_rows]})
    report.note("unwound", n_unwound, where=where)
    report.note("open_at_end", n_open_at_end, where=where)
    report.note("clock_backwards", n_backwards, where=where, detail=f"by at most {max_backwards} ns")
    if n_orphans:
        calls, marks = _adopt_orphans(calls, marks, n_orphans, report, where)
    return calls, marks


def _adopt_orphans(
    calls: Table, marks: Array, n_orphans: int, report: Report, where: str
) -> tuple[Table, Array]:
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
    calls_kernel.long_enough(
        calls["ts"], calls["flags"], min_ns, np.empty(len(calls) // 2 + 1, np.int64), keep
    )
    return keep.astype(bool)
