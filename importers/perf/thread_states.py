"""Map: the switches of one thread become its states: when it ran, waited for what, could have run, and who woke it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.importers.perf._thread_states import Letter, scheduling_columns, seen_running, states
from traceferry.importers.perf.losses import Losses
from traceferry.importers.perf.scheduling import IN, NEVER_TS, OF_COUNTER, OF_RECORD, OUT, Steps, Switching, Wakes
from traceferry.model import (
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    SCHEDULING,
    UNKNOWN,
    WAITING,
    Array,
    Table,
    TraceBuilder,
)
from traceferry.native.distinct import at_places
from traceferry.timeline.off_cpu import guessed


@dataclass(frozen=True)
class ThreadSwitches:
    """The switches of a thread within one life. start, end: of the thread, on the recording's clock; seen: the rows of
    its samples, by time; is_new: whether it was made in the recording; stack: of every sample; guesses: whether a
    switch without a stack has that of the thread's sample before."""

    switching: Switching
    steps: Steps
    wakes: Wakes
    start: int
    end: int
    seen: Array
    is_new: bool
    stack: Array = field(repr=False)
    guesses: bool = False

    @cached_property
    def n_missing(self) -> int:
        """Counts the switches that the recording lacks between two others: a thread leaves twice, or goes on twice. The
        recorder begins with one processor after the other, and ends so: what it lacks of its own then is none."""
        steps = self.steps.take(merged(self.steps))
        twice = np.flatnonzero(steps.what[1:] == steps.what[:-1])
        if not len(twice):
            return 0
        left, cpu = steps.what[twice] == OUT, _cpus(self, steps)
        begin, end = self.switching.recorded(np.where(left, cpu[twice + 1], cpu[twice]))
        is_outside = np.where(left, begin > steps.ts[twice], end < steps.ts[twice + 1])
        return int((~is_outside).sum())

    @cached_property
    def n_guessed(self) -> int:
        """Counts the switches that get the stack of the sample before."""
        if not self.guesses:
            return 0
        first = merged(self.steps)
        left = _left_at(self.steps, first)[self.steps.what[first] == OUT]
        ts = self.steps.ts[first][self.steps.what[first] == OUT]
        lacks = np.where(left >= 0, self.stack[np.maximum(left, 0)], -1) < 0 if len(left) else left
        return int((self._stack_before(ts[lacks]) >= 0).sum()) if len(left) else 0

    def _stack_before(self, ts: Array) -> Array:
        """int32: the stacks of the thread's last samples until these times, -1 where there is none."""
        rows = self.seen[self.stack[self.seen] >= 0]
        at = np.searchsorted(self.switching.recording.samples.ts[rows], ts, "right") - 1
        return np.where(at >= 0, self.stack[np.append(rows, 0)[at]], -1).astype(np.int32)

    def table(self, trace: TraceBuilder, offset_ns: int) -> Table:
        """Returns the rows of `scheduling`: from the start of the thread on, each ns has a state."""
        if len(self.steps.ts) == 0:
            return Table(SCHEDULING)
        rows = _with_losses(_rows_of_thread(self), self.switching.losses, self.end)
        rows = _waits(rows) if self.switching.filter else rows
        reasons = np.array([trace.strings.intern(text) if text else -1 for text in self.switching.letters], np.int32)
        columns = scheduling_columns(rows, offset_ns, reasons, self.stack, self.switching.waker)
        if self.guesses:
            stack = columns.get("stack", np.full(len(rows.ts), -1, np.int32))
            lacks = (stack < 0) & (rows.state != RUNNING) & (rows.state != UNKNOWN)
            stack[lacks] = guessed(trace, self._stack_before(rows.ts[lacks]))
            columns["stack"] = stack
        return Table(SCHEDULING, columns)


def merged(steps: Steps) -> Array | slice:
    """Returns one row for each switch: where several sources tell of it, one after the other, that of the best one."""
    n = len(steps.ts)
    if n == 0 or (steps.source == steps.source[0]).all():
        return slice(None)
    starts = np.flatnonzero(np.append(True, steps.what[1:] != steps.what[:-1]))
    best = np.minimum.reduceat(steps.source, starts)
    return np.flatnonzero(steps.source == np.repeat(best, np.diff(np.append(starts, n))))


class _Rows(NamedTuple):
    """Rows of `scheduling` on the recording's clock, by time. letter: of Switching.letters; left, wake: rows of the
    samples where the thread left its processor, and where it was woken; -1 is none."""

    ts: Array
    state: Array
    cpu: Array
    letter: Array
    left: Array
    wake: Array

    def take(self, rows: Array) -> _Rows:
        return _Rows(*(column[rows] for column in self))


def _rows_of_thread(thread: ThreadSwitches) -> _Rows:
    switching, wakes = thread.switching, thread.wakes
    first = merged(thread.steps)
    steps = thread.steps.take(first)
    cpu, left = _cpus(thread, steps), _left_at(thread.steps, first)
    samples = switching.recording.samples
    seen, seen_cpu = seen_running(thread.seen, samples.event, switching.tells_nothing, samples.ts, samples.cpu)
    rows = states(
        (steps.ts, steps.what, steps.letter, cpu, left), _properties(switching.letters), (seen, seen_cpu),
        (wakes.ts, wakes.row, switching.proofs(wakes.row)), _idle_before(switching, steps, cpu),
        max(thread.end, int(steps.ts[-1])), switching.tells_returns,
    )  # fmt: skip
    rows.put_before(_before(thread, _Rows(*rows.columns), seen))
    return _Rows(*rows.columns)


def _properties(letters: Sequence[str]) -> Array:
    """uint8: what _thread_states.Letter says of each letter."""
    return np.array(
        [Letter.COULD_RUN * (text[:1] == "R") | Letter.HAS_ENDED * (text[:1] in ("X", "Z")) for text in letters],
        np.uint8,
    )


def _idle_before(switching: Switching, steps: Steps, cpu: Array) -> Array | None:
    """int64: where a thread leaves twice in a row, since when the processor of the second time had been idle then."""
    if not switching.tells_of_all:
        return None
    found = np.full(len(steps.ts), NEVER_TS)
    twice = np.flatnonzero((steps.what[:-1] == OUT) & (steps.what[1:] == OUT))
    found[twice] = switching.idle_since(cpu[twice + 1], steps.ts[twice + 1])
    return found


def _all(state: int, rows: Array) -> Array:
    return np.full(len(rows), state, np.uint8)


def _cpus(thread: ThreadSwitches, steps: Steps) -> Array:
    recording = thread.switching.recording
    is_record = steps.source == OF_RECORD
    cpu = np.full(len(steps.ts), -1, np.int32)
    cpu[is_record] = recording.switches.cpu[steps.row[is_record]]
    is_sample = ~is_record & (steps.row >= 0)
    if is_sample.all():
        cpu = at_places(recording.samples.cpu, np.ascontiguousarray(steps.row, np.int32))
    else:
        cpu[is_sample] = recording.samples.cpu[steps.row[is_sample]]
    # A thread leaves the processor that it got.
    got = np.flatnonzero((cpu[:-1] < 0) & (steps.what[:-1] == IN) & (steps.what[1:] == OUT))
    cpu[got] = cpu[got + 1]
    return cpu


def _left_at(steps: Steps, first: Array | slice) -> Array:
    """int32: the samples at which the thread left its processor, of its steps in these rows. The sample of a counter
    comes before the record of its switch."""
    row = np.where((steps.what[first] == OUT) & (steps.source[first] != OF_RECORD), steps.row[first], np.int32(-1))
    if isinstance(first, slice):
        return row
    before = np.maximum(first - 1, 0)
    of_counter = (
        (steps.what[first] == OUT) & (steps.source[first] == OF_RECORD) & (first > 0)
        & (steps.what[before] == OUT) & (steps.source[before] == OF_COUNTER)
    )  # fmt: skip
    return np.where(of_counter, steps.row[before], row).astype(np.int32)


def _before(thread: ThreadSwitches, rows: _Rows, seen: Array) -> _Rows:
    """Returns what the thread did from its start to its first switch, which `rows` begins with."""
    first, ts = rows.take(np.zeros(1, np.int64)), int(rows.ts[0])
    first = first._replace(letter=np.zeros(1, np.uint8), left=np.full(1, -1, np.int32))
    if thread.start >= ts:
        return first.take(np.zeros(0, np.int64))
    at_start = first._replace(ts=np.array([thread.start], np.int64))
    nth = int(np.searchsorted(thread.wakes.ts, thread.start))
    is_woken = nth < len(thread.wakes.ts) and thread.wakes.ts[nth] < ts
    wake = thread.wakes.row[nth : nth + 1]
    if first.state[0] != RUNNING:
        return _before_leaving(thread, at_start, ts, int(thread.wakes.ts[nth]) if is_woken else -1)
    n_seen = int(np.searchsorted(seen, ts))
    if n_seen:
        since = max(int(seen[n_seen - 1]), thread.start)
        return _joined(at_start, first._replace(ts=np.array([since]), state=_all(UNKNOWN, first.ts)))
    if thread.switching.is_partial:
        return at_start._replace(state=_all(UNKNOWN, first.ts))
    if thread.is_new:
        return at_start._replace(state=_all(RUNNABLE, first.ts), wake=wake if is_woken else first.wake)
    waiting = at_start._replace(state=_all(WAITING, first.ts))
    if not is_woken:
        return waiting
    at = thread.wakes.ts[nth : nth + 1]
    return _joined(waiting, first._replace(ts=at, state=_all(RUNNABLE, first.ts), wake=wake))


def _before_leaving(thread: ThreadSwitches, at_start: _Rows, ts: int, woken_at: int) -> _Rows:
    """Returns what a thread did that leaves its processor first, at ts: it ran, but not before a time in which the
    processor was idle. woken_at: -1 where nothing tells."""
    running = at_start._replace(state=_all(RUNNING, at_start.ts))
    idle = int(thread.switching.idle_since(at_start.cpu, np.array([ts]))[0]) if thread.switching.tells_of_all else ts
    if thread.is_new or not thread.start < idle < ts:
        return running
    if thread.start > woken_at or thread.switching.is_partial:
        return at_start._replace(state=_all(UNKNOWN, at_start.ts))
    waiting = at_start._replace(state=_all(WAITING, at_start.ts))
    return _joined(waiting, running._replace(ts=np.array([max(idle, woken_at)])))


def _waits(rows: _Rows) -> _Rows:
    """Returns the rows of which switches tell that a filter left, which lacks others: how waits begin. All else is
    unknown: a thread that got a processor may have lost it again."""
    state = np.where((rows.left >= 0) & np.isin(rows.state, (WAITING, PREEMPTED)), rows.state, UNKNOWN)
    goes_on = np.append(False, (state[1:] == UNKNOWN) & (state[:-1] == UNKNOWN))
    return rows._replace(state=state.astype(np.uint8)).take(~goes_on)


def _joined(*rows: _Rows) -> _Rows:
    return _Rows(*map(np.concatenate, zip(*rows, strict=True)))


def _with_losses(rows: _Rows, losses: Losses, end: int) -> _Rows:
    """Returns the rows, unknown where records were lost."""
    edges = losses.edges(int(rows.ts[0]), max(end, int(rows.ts[-1]))) if len(losses) else rows.ts[:0]
    if len(losses) == 0:
        return rows
    of_edge = np.searchsorted(rows.ts, edges, "right") - 1
    order = np.argsort(np.concatenate((np.arange(len(rows.ts)), of_edge)), kind="stable")
    is_edge = order >= len(rows.ts)
    both = rows.take(np.concatenate((np.arange(len(rows.ts)), of_edge))[order])
    both = both._replace(ts=np.concatenate((rows.ts, edges))[order])
    state = np.where(losses.holds(both.ts, both.state, both.cpu), UNKNOWN, both.state).astype(np.uint8)
    is_same = np.zeros(len(order), bool)
    is_same[1:] = is_edge[1:] & (state[1:] == state[:-1])
    return both._replace(state=state).take(~is_same)
