"""Map: tracepoints that begin and end something become one interval, by the table PAIRS.

Source: the kernel's include/trace/events; perf's util/lock-contention and builtin-lock.c for a lock that is told to be
contended twice: once while it spins, once more before it sleeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np

from traceferry.importers.perf.recording import Event, Problem, Recording
from traceferry.importers.perf.tracepoint_rows import COMMON_PID, COMMON_SIZE
from traceferry.importers.perf.tracepoints import Field
from traceferry.model import Array

THREAD: Literal["thread"] = "thread"
CPU: Literal["cpu"] = "cpu"
ANYWHERE: Literal["anywhere"] = "anywhere"


class Pair(NamedTuple):
    """name, begin, end: of tracepoints, where * stands for the same text in all three. within: where a begin and its
    end are; keys: fields of equal value in both; agrees: a field that both have, -1 in an end that does not know it;
    again: the end's fields that tell what the begin has told; counts: which of several begins before an end; nested: of
    functions that call themselves, each begin has its own end, the last one first."""

    name: str
    begin: str
    end: str
    within: Literal["thread", "cpu", "anywhere"]
    keys: tuple[str, ...] = ()
    agrees: str = ""
    again: tuple[str, ...] = ()
    counts: Literal["first", "last", "nested"] = "last"


# Other tracepoints are instants, whatever their names end with. Probes: of `perf probe FUNCTION` and
# `perf probe FUNCTION%return`; of kprobe_events and uprobe_events without a name; and those that programs have
# (SystemTap's sdt.h), as CPython's, Ruby's, HotSpot's and PostgreSQL's.
PAIRS = (
    Pair("syscalls:*", "syscalls:sys_enter_*", "syscalls:sys_exit_*", THREAD, again=("__syscall_nr", "nr")),
    Pair("raw_syscalls", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", THREAD, agrees="id"),
    Pair(
        "lock:contention", "lock:contention_begin", "lock:contention_end", THREAD, ("lock_addr",), counts="first"
    ),
    Pair(
        "block:block_rq", "block:block_rq_issue", "block:block_rq_complete", ANYWHERE, ("dev", "sector"),
        again=("rwbs", "cmd", "ioprio"),
    ),
    Pair("block:block_io", "block:block_io_start", "block:block_io_done", ANYWHERE, ("dev", "sector"),
         again=("rwbs", "cmd", "ioprio", "comm")),
    Pair("irq:irq_handler", "irq:irq_handler_entry", "irq:irq_handler_exit", CPU, ("irq",)),
    Pair("irq:softirq", "irq:softirq_entry", "irq:softirq_exit", CPU, ("vec",)),
    Pair("irq:tasklet", "irq:tasklet_entry", "irq:tasklet_exit", CPU, ("tasklet",), again=("func",)),
    Pair("irq_vectors:*", "irq_vectors:*_entry", "irq_vectors:*_exit", CPU, again=("vector",)),
    Pair("ipi:ipi", "ipi:ipi_entry", "ipi:ipi_exit", CPU, again=("reason",)),
    Pair("timer:timer_expire", "timer:timer_expire_entry", "timer:timer_expire_exit", CPU, ("timer",)),
    Pair("timer:hrtimer_expire", "timer:hrtimer_expire_entry", "timer:hrtimer_expire_exit", CPU, ("hrtimer",)),
    Pair(
        "workqueue:workqueue_execute", "workqueue:workqueue_execute_start", "workqueue:workqueue_execute_end", THREAD,
        ("work",), again=("function",),
    ),
    Pair(
        "vmscan:mm_vmscan_*reclaim", "vmscan:mm_vmscan_*reclaim_begin", "vmscan:mm_vmscan_*reclaim_end", THREAD
    ),
    Pair("compaction:mm_compaction", "compaction:mm_compaction_begin", "compaction:mm_compaction_end", THREAD),
    Pair("ext4:ext4_sync_file", "ext4:ext4_sync_file_enter", "ext4:ext4_sync_file_exit", THREAD, ("ino",)),
    Pair("probe*", "probe*", "probe*__return", THREAD, counts="nested"),
    Pair("kprobes:*", "kprobes:p_*", "kprobes:r_*", THREAD, counts="nested"),
    Pair("uprobes:*", "uprobes:p_*", "uprobes:r_*", THREAD, counts="nested"),
    Pair("sdt_*", "sdt_*__entry", "sdt_*__return", THREAD, counts="nested"),
    Pair("sdt_*", "sdt_*__begin", "sdt_*__end", THREAD, counts="nested"),
    Pair("sdt_*", "sdt_*__start", "sdt_*__done", THREAD, counts="nested"),
)  # fmt: skip

# What Intervals.partner says of a sample that no end belongs to: it is as it was recorded; its begin has no end; it is
# the end of an interval.
ALONE, OPEN, TAKEN = -1, -2, -3


class Interval(NamedTuple):
    """Two events of a recording that are a pair. more: the end's fields beside those of the begin."""

    name: str
    begin: Event
    end: Event
    more: tuple[Field, ...]


class Intervals(NamedTuple):
    """of_begin: by the index of the event that begins them; partner: int32, of every sample the row of the end that
    belongs to it, or ALONE, OPEN, TAKEN."""

    of_begin: dict[int, Interval]
    partner: Array
    problems: tuple[Problem, ...] = ()


def intervals(recording: Recording) -> Intervals:
    """Matches begins with ends. Of a begin that another one of the same kind follows the end was lost: it stays an
    instant, as an end without a begin does; the last one is open."""
    found = {interval.begin.index: (pair, interval) for pair, interval in _declared(recording)}
    samples = recording.samples
    partner = np.full(len(samples) if found else 0, ALONE, np.int32)
    n_open = n_alone = 0
    first = len(recording.stream)
    for pair, interval in found.values():
        rows = np.flatnonzero((samples.event == interval.begin.index) | (samples.event == interval.end.index))
        partner[rows], n_repeated = _partners(recording, pair, interval, rows)
        left = partner[rows]
        n_open += int((left == OPEN).sum())
        n_alone += int((left == ALONE).sum()) - n_repeated
        first = min([first, *samples.offset[rows[(left == OPEN) | (left == ALONE)][:1]].tolist()])
    problems = []
    if n_open + n_alone:
        detail = f"{n_open} without an end at last, {n_alone} others"
        problems.append(Problem("interval_incomplete", n_open + n_alone, first, detail))
    return Intervals({index: interval for index, (_, interval) in found.items()}, partner, tuple(problems))


def _declared(recording: Recording) -> Iterator[tuple[Pair, Interval]]:
    """Yields the pairs of which both events were recorded with their formats; of events with one name the first."""
    by_name: dict[str, Event] = {}
    for event in recording.events:
        if event.tracepoint is not None:
            by_name.setdefault(event.tracepoint.full_name, event)
    for pair in PAIRS:
        before, star, after = pair.begin.partition("*")
        names = [pair.begin] if not star else [name for name in by_name if _fits(name, before, after)]
        for name in names:
            middle = name[len(before) : len(name) - len(after)] if star else ""
            begin, end = by_name.get(name), by_name.get(pair.end.replace("*", middle))
            if begin is None or end is None or begin is end:
                continue
            begins, ends = _fields(begin), _fields(end)
            needed = [begins.get(key) for key in pair.keys] + [ends.get(key) for key in pair.keys]
            if all(field is not None and field.kind == "integer" for field in needed):
                told = {*pair.keys, *pair.again, pair.agrees}
                more = tuple(field for key, field in ends.items() if key not in told or key not in begins)
                yield pair, Interval(pair.name.replace("*", middle), begin, end, more)


def _fits(name: str, before: str, after: str) -> bool:
    return len(name) >= len(before) + len(after) and name.startswith(before) and name.endswith(after)


def _fields(event: Event) -> dict[str, Field]:
    assert event.tracepoint is not None
    return {field.name: field for field in event.tracepoint.fields}


def _partners(recording: Recording, pair: Pair, interval: Interval, rows: Array) -> tuple[Array, int]:
    """Returns the partners of these samples, which are by time, and how many begins only tell of one again."""
    samples = recording.samples
    is_begin = samples.event[rows] == interval.begin.index
    columns = [_column(recording, interval, is_begin, rows, key) for key in pair.keys]
    if pair.within != ANYWHERE:
        tid, cpu = _tids(recording, rows), samples.cpu[rows]
        # The idle tasks of all processors have one number.
        columns += [tid, np.where(tid > 0, -1, cpu)] if pair.within == THREAD else [cpu]
    order = np.lexsort((np.arange(len(rows)), *columns))
    is_same = np.ones(max(len(rows) - 1, 0), bool)
    for column in columns:
        is_same &= column[order][1:] == column[order][:-1]
    begins = is_begin[order]
    n_repeated = 0
    if pair.counts == "first":
        is_repeated = np.append(False, is_same & begins[1:] & begins[:-1])[: len(rows)]
        n_repeated = int(is_repeated.sum())
        # What two neighbours of those that stay have in common, all between them have.
        group = np.cumsum(np.append(True, ~is_same)[: len(rows)])
        order, begins, group = order[~is_repeated], begins[~is_repeated], group[~is_repeated]
        is_same = group[1:] == group[:-1]
    is_pair = is_same & begins[:-1] & ~begins[1:]
    if pair.agrees in _fields(interval.begin):
        numbers = _column(recording, interval, is_begin, rows, pair.agrees)[order]
        is_pair &= (numbers[1:] == numbers[:-1]) | (numbers[1:] == -1)
    partner = np.full(len(rows), ALONE, np.int32)
    if pair.counts == "nested":
        return _nested(rows, order, begins, is_same), 0
    last = np.append(~is_same, True)[: len(order)]
    partner[order[begins & last]] = OPEN
    at = np.flatnonzero(is_pair)
    partner[order[at]] = rows[order[at + 1]]
    partner[order[at + 1]] = TAKEN
    return partner, n_repeated


def _nested(rows: Array, order: Array, begins: Array, is_same: Array) -> Array:
    """Returns the partners where each begin has its own end. Of a begin without one that others with their ends follow
    the end was lost, as that of a function which an exception left: only those behind them are open. order: by thread
    and time; begins: of these; is_same: of these, whether the next one is of the same thread."""
    partner = np.full(len(rows), ALONE, np.int32)
    opened: list[int] = []
    last_pair = -1
    for nth, (place, is_begin) in enumerate(zip(order.tolist(), begins.tolist(), strict=True)):
        if is_begin:
            opened.append(place)
        elif opened:
            last_pair = opened.pop()
            partner[last_pair], partner[place] = rows[place], TAKEN
        if nth == len(is_same) or not is_same[nth]:
            partner[[one for one in opened if one > last_pair]] = OPEN
            opened, last_pair = [], -1
    return partner


def _tids(recording: Recording, rows: Array) -> Array:
    """Returns the threads' numbers as tracepoints have them: samples have one number for all threads outside the
    recorder's pid namespace."""
    samples = recording.samples
    tid = samples.tid[rows].astype(np.int64)
    if np.all((samples.raw_at[rows] >= 0) & (samples.raw_size[rows] >= COMMON_SIZE)):
        tid[:] = recording.field(COMMON_PID, rows)
    return tid


def _column(recording: Recording, interval: Interval, is_begin: Array, rows: Array, key: str) -> Array:
    """int64: a field that begins and ends have."""
    column = np.empty(len(rows), np.int64)
    for event, of in ((interval.begin, is_begin), (interval.end, ~is_begin)):
        fields = _fields(event)
        column[of] = recording.field(fields[key], rows[of]).astype(np.int64) if key in fields else 0
    return column
