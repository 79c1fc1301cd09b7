"""Map: the switches of a recording, by thread: when threads left their processors and why, and who woke them.

Sources: records of context switches, the tracepoints of the subsystem sched, and samples of the event context-switches;
each alone or together. Facts: linux/perf_event.h; trace/events/sched.h, where pid_t counts in the first pid namespace;
kernel/sched/core.c: prepare_task_switch has the tracepoint first, then the sample of context-switches, then SWITCH.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.importers.perf._thread_states import Proof, steps_by_thread
from traceferry.importers.perf.events import SOFTWARE_NAMES
from traceferry.importers.perf.filters import filter_of
from traceferry.importers.perf.layout import AttrType
from traceferry.importers.perf.losses import Losses
from traceferry.importers.perf.recording import Recording
from traceferry.importers.perf.sched_stats import AFTER, BEFORE, OF_STATISTIC, REASONS, RUNTIME, Off, times_off
from traceferry.importers.perf.sched_stats import NAMES as STATISTICS
from traceferry.importers.perf.tracepoint_rows import TracepointRows, read_tracepoints
from traceferry.importers.perf.tracepoints import Format
from traceferry.model import Array, distinct, index_of
from traceferry.native.distinct import distinct_with_places, edges_of_places, rows_of_places

SWITCH, WAKES = "sched:sched_switch", ("sched:sched_waking", "sched:sched_wakeup", "sched:sched_wakeup_new")
# What the table of scheduling tells, and markers would tell again.
TOLD = (SWITCH, *WAKES)
OF_SWITCH = ("prev_pid", "prev_state", "next_pid")
# What is read of each tracepoint.
READ = {SWITCH: OF_SWITCH, **dict.fromkeys(WAKES, ("pid",)), **dict.fromkeys(STATISTICS, OF_STATISTIC)}
CONTEXT_SWITCHES = SOFTWARE_NAMES.index("context-switches")
# Tracepoints between a thread's switch and the next one's first instruction are of the thread that left.
OF_SWITCHES = ("sched:sched_switch", "tlb:", "x86_fpu:", "sched:sched_stat_runtime")
# Where an event of a thread comes from: the better one first.
OF_TRACEPOINT, OF_RECORD, OF_COUNTER, OF_STATISTICS = 0, 1, 2, 3
IN, OUT = 0, 1
PREEMPT = 1  # a letter of Switching.letters
# common_flags of a tracepoint: the thread was interrupted by what is recorded.
IN_INTERRUPT = 0x08 | 0x10
# TASK_REPORT of kernels since 4.14, for recordings without the text of the format.
LETTERS = ((1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"), (0x80, "I"))
NEVER_TS = (1 << 63) - 1


class Steps(NamedTuple):
    """Columns of what a thread did, by time. ts int64; what uint8: IN, OUT; source uint8; row int32: of the samples, or
    of the switches where a record tells it, -1 where there is none; letter uint8: of Switching.letters, why it left."""

    ts: Array
    what: Array
    source: Array
    row: Array
    letter: Array

    def take(self, rows: Array | slice) -> Steps:
        return Steps(*(column[rows] for column in self))


class Wakes(NamedTuple):
    """Columns of when a thread was woken, by time. ts int64; row int32: of the samples."""

    ts: Array
    row: Array


NO_STEPS = Steps(*(np.zeros(0, kind) for kind in (np.int64, np.uint8, np.uint8, np.int32, np.uint8)))
NO_WAKES = Wakes(np.zeros(0, np.int64), np.zeros(0, np.int32))


class ByThread:
    """Columns of many threads, of which each one's rows are a slice. tids: int64, rising; ends: int64, where each one's
    rows end; columns: the first one is the time, rising in each thread."""

    def __init__(self, tids: Array, ends: Array, columns: Sequence[Array]) -> None:
        self.tids = tids
        self._columns = columns
        edges = [0, *ends.tolist()]
        self._slices = dict(zip(tids.tolist(), map(slice, edges[:-1], edges[1:]), strict=True))

    @classmethod
    def sorted(cls, tid: Array, columns: Sequence[Array]) -> ByThread:
        """tid: of each row; columns: by time."""
        tids, place = distinct_with_places(np.ascontiguousarray(tid, np.int32))
        rows, ends = rows_of_places(place, len(tids))
        return cls(tids, ends, [column.take(rows) for column in columns])

    def of(self, tid: int, start: int, until: int) -> list[Array]:
        """Returns the columns of a thread between two times."""
        mine = self._slices.get(tid, slice(0, 0))
        first, last = np.searchsorted(self._columns[0][mine], [start, until])
        part = slice(mine.start + int(first), mine.start + int(last))
        return [column[part] for column in self._columns]


class _Switches(NamedTuple):
    """Columns of the switches that a tracepoint tells, by time. before, after int32: the threads that left a processor,
    and that got it; row int64: of the samples; letter uint8: of Switching.letters, why the former left."""

    before: Array
    after: Array
    row: Array
    letter: Array

    def threads(self) -> Array:
        """int32: of each switch the one that left, and the other one."""
        return _in_turn(np.int32, self.before, self.after)

    def steps(self, ts: Array) -> Steps:
        """Returns the steps of `threads`. ts: of every sample."""
        n, at = len(self.row), ts[self.row]
        return Steps(
            _in_turn(np.int64, at, at), np.tile(np.array([OUT, IN], np.uint8), n),
            np.full(2 * n, OF_TRACEPOINT, np.uint8), _in_turn(np.int32, self.row, self.row),
            _in_turn(np.uint8, self.letter, np.zeros(n, np.uint8)),
        )  # fmt: skip

    def steps_by_thread(self, ts: Array) -> ByThread:
        """Returns the same, by thread. ts: of every sample."""
        tids, place = distinct_with_places(self.threads())
        ends, at, what, row, letter = steps_by_thread(place, len(tids), ts, self.row, self.letter)
        return ByThread(tids, ends, Steps(at, what, np.broadcast_to(np.uint8(OF_TRACEPOINT), len(at)), row, letter))


def _in_turn(kind: type, first: Array, second: Array) -> Array:
    """Returns the values of both, in turn."""
    found: Array = np.empty(2 * len(first), kind)
    found[0::2], found[1::2] = first, second
    return found


class Switching:
    """All switches of a recording, by thread. letters: of states, by the numbers of Steps.letter; tells_returns:
    whether the recording tells when threads go on; tells_of_all: whether it does so by the switches of all others. Not
    all kernels tell of those of the idle thread. is_partial: whether only some of the machine's processors were
    recorded; filter: that left some of the switches out, so that those which are recorded only tell when a wait began;
    "" where nothing else is missing. waker: int32, for each sample of a wake the thread that it is of, -1 where an
    interrupt has woken."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.filter = filter_of(recording.features, SWITCH) if not len(recording.switches) else ""
        self.letters = ["", "R"]
        self.is_partial = bool(recording.cpus) and len(recording.cpus) < (recording.features.n_cpus_online or 0)
        told = read_tracepoints(recording, READ)
        switches = [one for one in told if one.name == SWITCH]
        wakes = [one for one in told if one.name in WAKES]
        self._names = _Names(recording, told)
        self.n_left_out = sum(_n_left_out(recording.samples.period[one.rows]) for one in switches)
        # The tracepoint was recorded on processors, not in some threads, where the idle thread leaves, too.
        is_of_all = any(bool((recording.samples.tid[one.rows] == 0).any()) for one in switches)
        self.tells_of_all = not len(recording.switches) and is_of_all and not self.filter
        of_tracepoints = list(self._of_tracepoints(switches))
        others = [*self._of_records(), *self._of_counter()]
        # Beside switches, what is measured tells only when a thread went on.
        measured = (RUNTIME,) if of_tracepoints or others else STATISTICS
        off = list(times_off(recording, [one for one in told if one.name in measured], self._names.here))
        others += self._of_statistics(off, (IN,) if of_tracepoints or others else (OUT, IN))
        self._steps = self._by_thread(of_tracepoints, others)
        self._idle = ByThread.sorted(*self._of_processors(switches if self.tells_of_all else ()))
        self._wakes = ByThread.sorted(*self._of_wakes(wakes, off))
        self.waker = self._wakers([one for one in told if one.name != SWITCH])
        self.losses = Losses(recording)
        is_told = len(recording.switches) > 0 or self.tells_of_all or len(off) > 0
        self.tells_returns = is_told and not self.filter

    @cached_property
    def tids(self) -> list[int]:
        """Threads that switches name, rising: the idle thread and what has no number are none."""
        found: list[int] = self._steps.tids[self._steps.tids > 0].tolist()
        return found

    def tells_stacks(self, stack: Array) -> bool:
        """Returns whether any thread left its processor in a sample with a stack. stack: of each sample."""
        for tid in self.tids:
            steps = self.steps(tid, -NEVER_TS, NEVER_TS)
            rows = steps.row[(steps.source != OF_RECORD) & (steps.row >= 0)]
            if np.any(stack[rows] >= 0):
                return True
        return False

    def recorded(self, cpu: Array) -> tuple[Array, Array]:
        """Returns from when to when (ns, int64) the recording has samples of these processors; of those without, from
        the first time to the last."""
        cpus, begin, end = self._recorded
        row = index_of(cpus, cpu)
        return begin[row], end[row]

    @cached_property
    def _recorded(self) -> tuple[Array, Array, Array]:
        """Returns the processors that have samples, and of each, and behind them of others, `recorded`."""
        samples = self.recording.samples
        n_timeless = int(np.searchsorted(samples.ts, 0, "right"))
        ts = samples.ts[n_timeless:]
        cpus, place = distinct_with_places(np.ascontiguousarray(samples.cpu[n_timeless:], np.int32))
        first, last = edges_of_places(place, len(cpus))
        known = cpus >= 0
        return cpus[known], np.append(ts[first[known]], -NEVER_TS), np.append(ts[last[known]], NEVER_TS)

    def idle_since(self, cpu: Array, ts: Array) -> Array:
        """int64: since when these processors had been idle at these times; NEVER_TS where they had not been."""
        found = np.full(len(ts), NEVER_TS)
        for one in distinct(cpu).tolist():
            rows = np.flatnonzero(cpu == one)
            switched, is_idle = self._idle.of(one, -NEVER_TS, NEVER_TS)
            last = np.searchsorted(switched, ts[rows]) - 1
            known = (last >= 0) & is_idle[last] if len(switched) else np.zeros(len(rows), bool)
            found[rows[known]] = switched[last[known]]
        return found

    def steps(self, tid: int, start: int, until: int) -> Steps:
        return Steps(*self._steps.of(tid, start, until)) if tid > 0 else NO_STEPS

    def wakes(self, tid: int, start: int, until: int) -> Wakes:
        return Wakes(*self._wakes.of(tid, start, until))

    def proofs(self, rows: Array) -> Array | None:
        """uint8: what these samples of wakes prove where others of the machine's processors were not recorded: bits of
        _thread_states.Proof. None where all were.

        The processor in sched_waking is the last one on which the thread could have run (trace/events/sched.h), that in
        sched_wakeup the one on which it will."""
        if not self.is_partial:
            return None
        found, cpus = np.zeros(len(rows), np.uint8), list(self.recording.cpus)
        for event in self.recording.events:
            tracepoint = event.tracepoint
            if tracepoint is None or tracepoint.full_name not in WAKES:
                continue
            target = next((one for one in tracepoint.fields if one.name == "target_cpu"), None)
            mine = np.flatnonzero(self.recording.samples.event[rows] == event.index)
            if target is not None and len(mine):
                is_here = np.isin(self.recording.field(target, rows[mine]).astype(np.int64), cpus)
                found[mine[is_here]] = Proof.WAITED if tracepoint.full_name == WAKES[0] else Proof.WAITS_HERE
        return found

    # ------------------------------------------------------------ sources

    def _by_thread(self, of_tracepoints: Sequence[_Switches], others: Sequence[tuple[Array, Steps]]) -> ByThread:
        """Returns the steps of all sources, by thread. others: each the threads of its steps, and the steps."""
        ts = np.ascontiguousarray(self.recording.samples.ts, np.int64)
        if len(of_tracepoints) == 1 and not others:
            return of_tracepoints[0].steps_by_thread(ts)
        return ByThread.sorted(*_by_time([*((one.threads(), one.steps(ts)) for one in of_tracepoints), *others]))

    def _of_tracepoints(self, switches: Sequence[TracepointRows]) -> Iterator[_Switches]:
        samples = self.recording.samples
        for one in switches:
            if not one.fields.keys() >= set(OF_SWITCH):
                continue
            before, state, after = (one.fields[name] for name in OF_SWITCH)
            # The kernel has no number for a thread that has ended.
            own = samples.tid[one.rows]
            before = np.where((own > 0) | (before == 0), own, self._names.here(before))
            yield _Switches(before, self._names.here(after), one.rows, self._letters(one.tracepoint, state))

    def _of_processors(self, switches: Sequence[TracepointRows]) -> tuple[Array, list[Array]]:
        """Returns the processors of switches, their times, and whether nothing was left to run then."""
        samples = self.recording.samples
        parts = [(np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, bool))]
        for one in switches:
            if "next_pid" in one.fields:
                parts.append((samples.cpu[one.rows], samples.ts[one.rows], one.fields["next_pid"] == 0))
        cpu, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        return cpu, columns

    def _letters(self, tracepoint: Format, state: Array) -> Array:
        """Returns the letter of each state. What has none of these bits could have run on."""
        flags = [flag for flag in tracepoint.flags if flag[0] > 0] or LETTERS
        known, highest = sum(bit for bit, _ in flags), max(bit for bit, _ in flags)
        values, place = distinct_with_places(np.ascontiguousarray(state, np.int64))
        numbers = np.empty(len(values), np.uint8)
        for nth, value in enumerate(values.tolist()):
            text = "|".join(letter for bit, letter in flags if value & bit) or "R"
            if value > 2 * highest - 1 and not value & known:
                # Above the letters there is one more bit, of a thread that was preempted before it could wait.
                numbers[nth] = PREEMPT
                continue
            if text not in self.letters and len(self.letters) < 255:
                self.letters.append(text)
            numbers[nth] = self.letters.index(text) if text in self.letters else 0
        found: Array = numbers[place]
        return found

    def _of_records(self) -> Iterator[tuple[Array, Steps]]:
        switches = self.recording.switches
        if len(switches):
            n = len(switches)
            letter = np.where(switches.preempt, PREEMPT, 0).astype(np.uint8)
            what = np.where(switches.out, OUT, IN).astype(np.uint8)
            source = np.full(n, OF_RECORD, np.uint8)
            yield switches.tid, Steps(switches.ts, what, source, np.arange(n, dtype=np.int32), letter)

    def _of_counter(self) -> Iterator[tuple[Array, Steps]]:
        samples = self.recording.samples
        for event in self.recording.events:
            attr = event.attr
            if attr.type != AttrType.SOFTWARE or attr.config != CONTEXT_SWITCHES:
                continue
            rows = np.flatnonzero(samples.event == event.index)
            # Of several at once only the last one is sampled.
            if len(rows) and (len(self.recording.switches) or (not event.is_freq and attr.sample_period == 1)):
                n, no = len(rows), np.zeros(len(rows), np.uint8)
                what, source = np.full(n, OUT, np.uint8), np.full(n, OF_COUNTER, np.uint8)
                yield samples.tid[rows], Steps(samples.ts[rows], what, source, rows.astype(np.int32), no)

    def _of_statistics(self, off: Sequence[tuple[int, Off]], wanted: Sequence[int]) -> Iterator[tuple[Array, Steps]]:
        numbers = np.array([self._number(reason) for reason in REASONS], np.uint8)
        for tid, times in off:
            n = len(times.begin)
            ts, row, letter = np.empty(2 * n, np.int64), np.full(2 * n, -1, np.int32), np.zeros(2 * n, np.uint8)
            ts[0::2], ts[1::2] = times.begin, times.end
            row[0::2], letter[0::2] = times.left, numbers[times.reason]
            what = np.tile(np.array([OUT, IN], np.uint8), n)
            steps = Steps(ts, what, np.full(2 * n, OF_STATISTICS, np.uint8), row, letter)
            known = (ts != BEFORE) & (ts != AFTER) & np.isin(what, wanted)
            yield np.full(int(known.sum()), tid, np.int32), steps.take(known)

    def _number(self, letters: str) -> int:
        if letters not in self.letters:
            self.letters.append(letters)
        return self.letters.index(letters)

    def _of_wakes(self, wakes: Sequence[TracepointRows], off: Sequence[tuple[int, Off]]) -> tuple[Array, Wakes]:
        parts = []
        for number, times in off:
            woken = times.wake >= 0
            if woken.any():
                order = np.argsort(times.wake[woken], kind="stable")
                parts.append((np.full(len(order), number, np.int32), times.wake[woken][order]))
        for one in wakes:
            if "pid" in one.fields:
                parts.append((self._names.here(one.fields["pid"]), one.rows.astype(np.int32)))
        if not parts:
            return np.zeros(0, np.int32), NO_WAKES
        tid, row = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        if len(parts) > 1:
            order = np.argsort(row, kind="stable")
            tid, row = tid[order], row[order]
        return tid, Wakes(self.recording.samples.ts[row], row)

    # ------------------------------------------------------------ threads that wake others

    def _wakers(self, told: Sequence[TracepointRows]) -> Array:
        """Returns `waker`.

        The last thread of a process wakes its parent when it has no number any more (kernel/exit.c: release_task); the
        tracepoint still has it."""
        waker = self.recording.samples.tid.astype(np.int32)
        for one in told:
            gone = np.flatnonzero(one.is_whole & (waker[one.rows] < 0))
            waker[one.rows[gone]] = self._names.here(one.common_pid[gone])
            waker[one.rows[one.is_whole & (one.common_flags & IN_INTERRUPT != 0)]] = -1
        return waker

    @cached_property
    def tells_nothing(self) -> Array:
        """uint8, for each event: whether a sample of it does not say that its thread ran then."""
        return np.array(
            [
                event.name.startswith(OF_SWITCHES)
                or (event.attr.type == AttrType.SOFTWARE and event.attr.config == CONTEXT_SWITCHES)
                for event in self.recording.events
            ],
            np.uint8,
        )


class _Names:
    """Tracepoints have numbers of threads in the first pid namespace, samples those in the recorder's own."""

    def __init__(self, recording: Recording, told: Sequence[TracepointRows]) -> None:
        self._there = self._here = np.zeros(0, np.int32)
        self._is_other = any(_is_other(recording, one) for one in told)
        if self._is_other:
            parts = [_numbers(recording, one) for one in told]
            there, here = (np.concatenate(column) for column in zip(*parts, strict=True))
            self._there, first = np.unique(there, return_index=True)
            self._here = here[first]

    def here(self, tid: Array) -> Array:
        """int32: as samples call them; -1 where these do not know a thread."""
        if not self._is_other:
            return tid.astype(np.int32, copy=False)
        nth = np.minimum(np.searchsorted(self._there, tid), len(self._there) - 1)
        return np.where(self._there[nth] == tid, self._here[nth], np.where(tid == 0, 0, -1)).astype(np.int32)


def _by_time(parts: Sequence[tuple[Array, Steps]]) -> tuple[Array, Steps]:
    """Returns the threads of all steps, and the steps. parts: each by time."""
    if not parts:
        return np.zeros(0, np.int32), NO_STEPS
    if len(parts) == 1:
        return parts[0]
    tid = np.concatenate([tid for tid, _ in parts])
    steps = Steps(*(np.concatenate(columns) for columns in zip(*(steps for _, steps in parts), strict=True)))
    order = np.argsort(steps.ts, kind="stable")
    return tid[order], steps.take(order)


def _n_left_out(period: Array) -> int:
    """Returns how many switches samples stand for beside their own. period: of each sample; written over."""
    period -= 1
    return int(np.maximum(period, 0, out=period).sum())


def _is_other(recording: Recording, told: TracepointRows) -> bool:
    """Returns whether `_numbers` differ."""
    here = recording.samples.tid[told.rows]
    return bool(np.any((told.common_pid != here) & told.is_whole & (here > 0)))


def _numbers(recording: Recording, told: TracepointRows) -> tuple[Array, Array]:
    """Returns what the tracepoint and what its samples call the same threads."""
    here = recording.samples.tid[told.rows]
    known = told.is_whole & (here > 0)
    return told.common_pid[known], here[known]
