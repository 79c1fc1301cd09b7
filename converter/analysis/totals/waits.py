"""Adds up when threads ran, could have run, and waited: of each thread, the longest waits, and where they were."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.model import RUNNABLE, RUNNING, UNKNOWN, Array, Process, Thread, ThreadData, distinct, sums
from traceferry.timeline.off_cpu import ENDED, Durations, durations, off_cpu_event, until_next

# Of how many waits a thread is asked.
MOST_WAITS = 100


class ThreadTimes(NamedTuple):
    pid: int
    tid: int
    name: str
    times: Durations


class Wait(NamedTuple):
    """duration_ns: until it ran again, of which runnable_ns after it was woken; state, reason: as in `scheduling`;
    stack, waker_stack: of the trace; waker: -1 is none."""

    duration_ns: int
    ts: int
    pid: int
    tid: int
    runnable_ns: int
    state: int
    reason: int
    stack: int
    waker: int
    waker_stack: int = -1


class WaitTotals:
    """threads: those of which the recording tells when they ran; n: how many waits there are, of which `longest` has
    some. by_stack: rows of (ns, times) for each stack of the
    samples of time off the processors."""

    def __init__(self) -> None:
        self.threads: list[ThreadTimes] = []
        self.n = 0
        self.longest: list[Wait] = []
        self.by_stack = np.zeros((0, 2), np.int64)

    def add(self, process: Process, thread: Thread, data: ThreadData) -> None:
        if not len(data.scheduling):
            return
        times = durations(data.scheduling, thread.end_ts)
        self.threads.append(ThreadTimes(process.pid, thread.tid, thread.name, times))
        n, longest = _longest(process, thread, data)
        self.n += n
        self.longest = sorted([*self.longest, *longest], key=lambda one: (-one[0], one))
        del self.longest[MOST_WAITS:]
        row = off_cpu_event(data.trace)
        samples = data.samples_of(row)
        if samples is not None and len(samples):
            self._add_stacks(samples["stack"], samples["weight"])

    def _add_stacks(self, stack: Array, weight: Array) -> None:
        n = max(int(stack.max()) + 1, len(self.by_stack))
        if n > len(self.by_stack):
            self.by_stack = np.concatenate((self.by_stack, np.zeros((n - len(self.by_stack), 2), np.int64)))
        known = stack >= 0
        self.by_stack[:, 0] += sums.total_by(stack[known], weight[known], n)
        self.by_stack[:, 1] += np.bincount(stack[known], minlength=n)


def _longest(process: Process, thread: Thread, data: ThreadData) -> tuple[int, list[Wait]]:
    """Returns how often the thread was off the processors, from a switch to the next run, and the longest of these."""
    scheduling = data.scheduling
    state, ts, lasts = scheduling["state"], scheduling["ts"], until_next(scheduling, thread.end_ts)
    follows = np.append(False, (state[1:] == RUNNABLE) & (state[:-1] != RUNNING) & (state[:-1] != UNKNOWN))
    ended = [nth for nth in distinct(scheduling["reason"]).tolist() if data.trace.strings[nth] in ENDED]
    is_first = (state != RUNNING) & (state != UNKNOWN) & ~follows & ~np.isin(scheduling["reason"], ended)
    rows = np.flatnonzero(is_first)
    after = np.minimum(rows + 1, len(state) - 1)
    runnable = np.where(np.append(follows[1:], False)[rows], lasts[after], 0)
    whole = lasts[rows] + runnable
    n = int(np.count_nonzero(whole > 0))
    if len(rows) > MOST_WAITS:
        chosen = np.argpartition(whole, len(rows) - MOST_WAITS)[len(rows) - MOST_WAITS :]
        rows, after, runnable, whole = rows[chosen], after[chosen], runnable[chosen], whole[chosen]
    runnable = np.where(state[rows] == RUNNABLE, whole, runnable)
    columns = (whole, ts[rows], runnable, state[rows], scheduling["reason"][rows], scheduling["stack"][rows])
    woken = np.where(follows[after], after, rows)
    wakers = (scheduling[name][woken] for name in ("waker", "waker_stack"))
    return n, [
        Wait(whole, at, process.pid, thread.tid, could, state, reason, stack, waker, waker_stack)
        for whole, at, could, state, reason, stack, waker, waker_stack in zip(
            *(column.tolist() for column in (*columns, *wakers)), strict=True
        )
        if whole > 0
    ]
