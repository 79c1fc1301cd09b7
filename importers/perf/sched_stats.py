"""Map: waits that the kernel has measured, of recordings without switches: sched_stat_sleep, _blocked, _iowait, _wait,
and _runtime. Each tells, when it ends, how long a time of one thread was.

Source: the kernel's include/trace/events/sched.h and kernel/sched/stats.c: the first three are recorded where the
thread is woken, of which blocked and iowait tell of one time; _wait where it gets a processor; _runtime where it leaves
one, and at ticks, with the stack it has then. All but _runtime need the sysctl kernel.sched_schedstats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from traceferry.importers.perf.recording import Recording
from traceferry.importers.perf.tracepoint_rows import TracepointRows
from traceferry.model import Array, rows_by_key

SLEEP, BLOCKED, IOWAIT = "sched:sched_stat_sleep", "sched:sched_stat_blocked", "sched:sched_stat_iowait"
WAIT, RUNTIME = "sched:sched_stat_wait", "sched:sched_stat_runtime"
# Why a thread was off, by the event that tells it.
REASON = {SLEEP: "S", BLOCKED: "D", IOWAIT: "D", WAIT: "R"}
NAMES = (*REASON, RUNTIME)
OF_STATISTIC = ("pid", "delay", "runtime")
# The kernel takes the time of a sample a little later than the one that it has measured to.
JITTER_NS = 20_000
BEFORE, AFTER = -1, (1 << 63) - 1


class Off(NamedTuple):
    """Times off the processors of one thread, by time. begin, end int64: ns on the recording's clock, BEFORE and AFTER
    where they are not within it; reason: index in REASONS; left, wake int32: rows of the samples with the stack where
    it left, and of the thread that woke it; -1 is none."""

    begin: Array
    end: Array
    reason: Array
    left: Array
    wake: Array


REASONS = ("", "S", "D", "R")
Named = Callable[[Array], Array]


def times_off(recording: Recording, measured: Sequence[TracepointRows], here: Named) -> Iterator[tuple[int, Off]]:
    """Yields (thread, its times off). measured: samples of NAMES with the fields OF_STATISTIC; here: gives the numbers
    that samples have for those that tracepoints have."""
    parts = [part for one in measured if (part := _measured(recording, one)) is not None]
    if not parts:
        return
    tid, reason, begin, end, row = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    waits, tid = reason >= 0, here(tid)
    for thread, rows in rows_by_key(tid).items():
        told = rows[waits[rows]]
        # Where waits are measured, gaps between runs say nothing more, also of a thread that never waited.
        if waits.any() and not len(told):
            continue
        if waits.any():
            off = _joined(begin[told], end[told], reason[told], row[told])
        else:
            off = _gaps(begin[rows], end[rows], row[rows])
            # Who wakes a thread on another processor measures what runs there.
            own = recording.samples.tid[np.maximum(off.left, 0)] == thread
            off = off._replace(left=np.where(own, off.left, -1))
        if len(off.begin):
            yield thread, off


def _measured(recording: Recording, one: TracepointRows) -> tuple[Array, Array, Array, Array, Array] | None:
    """Returns (thread, reason, begin, end, row) of each sample; the reason of a run is -1."""
    is_run = one.name == RUNTIME
    lasted = "runtime" if is_run else "delay"
    if not {"pid", lasted} <= one.fields.keys():
        return None
    end = recording.samples.ts[one.rows]
    amount = one.fields[lasted].astype(np.uint64)
    begin = end - np.minimum(amount, end.astype(np.uint64)).astype(np.int64)
    reason = np.full(len(one.rows), -1 if is_run else REASONS.index(REASON[one.name]), np.int8)
    return one.fields["pid"].astype(np.int32), reason, begin, end, one.rows.astype(np.int32)


def _joined(begin: Array, end: Array, reason: Array, row: Array) -> Off:
    """Returns measured waits; a sleep, and the wait for a processor that follows, are one time."""
    order = np.lexsort((reason == REASONS.index("R"), begin, end))
    begin, end, reason, row = begin[order], end[order], reason[order], row[order]
    # blocked and iowait tell of one time, which begins and ends as the other.
    same = np.zeros(len(end), bool)
    same[1:] = (reason[1:] == reason[:-1]) & (begin[1:] < end[:-1])
    begin, end, reason, row = (column[~same] for column in (begin, end, reason, row))
    is_wait = reason == REASONS.index("R")
    follows = np.zeros(len(end), bool)
    follows[1:] = is_wait[1:] & ~is_wait[:-1] & (np.abs(begin[1:] - end[:-1]) <= JITTER_NS)
    first = np.flatnonzero(~follows)
    last = np.append(first[1:], len(end)) - 1
    wake = np.where(is_wait[first], -1, row[first])
    # A time cannot begin before the one before it has ended.
    since = np.maximum(begin[first], np.append(np.int64(0), end[last][:-1]) if len(first) else 0)
    none = np.full(len(first), -1, np.int32)
    return Off(since, end[last], reason[first], none, wake)


def _gaps(begin: Array, end: Array, row: Array) -> Off:
    """Returns the times before, between and after measured runs, each with the sample that ends the run before."""
    order = np.argsort(end, kind="stable")
    begin, end, row = begin[order], end[order], row[order]
    nth = np.flatnonzero(begin[1:] - end[:-1] > JITTER_NS)
    left = np.append(row[nth], row[-1])
    none = np.full(len(left) + 1, -1, np.int32)
    return Off(
        np.concatenate(([BEFORE], end[nth], end[-1:])), np.concatenate((begin[:1], begin[nth + 1], [AFTER])),
        np.zeros(len(none), np.int8), np.append(np.int32(-1), left).astype(np.int32), none,
    )  # fmt: skip
