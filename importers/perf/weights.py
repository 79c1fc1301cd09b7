"""Map: the recorded events become those of the trace, and each sample counts them: its own event by its period, all
members of a group by what the counters had counted since they were read before.

Sources: perf_event_open(2) for PERF_FORMAT_*; perf's util/session.c (deliver_sample_value) takes the same differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from traceferry.common.report import Report
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.accesses import has_accesses, latency_of
from traceferry.importers.perf.fields import numbers_at
from traceferry.importers.perf.layout import AttrType, ReadFormat
from traceferry.importers.perf.off_cpu import is_off_cpu
from traceferry.importers.perf.recording import Event as RecordedEvent
from traceferry.importers.perf.recording import Recording
from traceferry.importers.perf.sched_stats import NAMES as STATISTICS
from traceferry.model import Array, Event, EventKind, TraceBuilder, distinct, index_of

# PERF_TYPE_SOFTWARE's cpu-clock and task-clock count ns.
CLOCK_EVENTS = (0, 1)
KINDS: dict[int, EventKind] = {
    AttrType.HARDWARE: "hardware", AttrType.SOFTWARE: "software", AttrType.TRACEPOINT: "tracepoint",
    AttrType.HW_CACHE: "cache", AttrType.RAW: "raw", AttrType.BREAKPOINT: "breakpoint",
}  # fmt: skip
TIMES = (ReadFormat.TOTAL_TIME_ENABLED, ReadFormat.TOTAL_TIME_RUNNING)
# The order of the kinds of events in a trace, others in their middle: a clock's samples say where time goes, those of a
# tracepoint where a few lines of the kernel are called.
FIRST, LAST = ("clock",), ("tracepoint", "off-cpu")


# ---------------------------------------------------------------- the events of a trace


class Counted(NamedTuple):
    """An event of the trace in one recording. row: in `Trace.events`; event_index: of the recorded event whose samples
    count it; weight: int64, of every sample of the recording, where it is not the sample's period."""

    row: int
    event_index: int
    weight: Array | None = None

    def weights(self, recording: Recording, rows: Array) -> Array:
        """int64: how much these samples count."""
        if self.weight is not None:
            return self.weight[rows]
        period = recording.samples.period[rows]
        return np.maximum(period, 1, out=period)


class _Found(NamedTuple):
    """An event with samples. event_index, weight: as in Counted; n_samples: how many it has; leader: of its group,
    whose samples it has, where it does not lead it."""

    event: Event
    event_index: int
    n_samples: int
    weight: Array | None = None
    leader: Event | None = None


def count_events(recordings: Sequence[tuple[str, Recording]], trace: TraceBuilder) -> list[list[Counted]]:
    """Adds the events of the recordings to the trace, a clock before the others. Returns for each recording what its
    samples count. recordings: each with its name, for the report."""
    all_found = [list(_found(recording, where, trace.report)) for where, recording in recordings]
    rows = {event.key: row for row, event in enumerate(trace.events)}
    for one in _in_order([one for found in all_found for one in found]):
        if one.event.key not in rows:
            rows[one.event.key] = len(rows)
            trace.events.append(one.event)
    for found in all_found:
        leaders = {one.event_index: rows[one.event.key] for one in found if one.leader is None}
        for one in (one for one in found if one.leader is not None):
            row = rows[one.event.key]
            trace.events[row] = trace.events[row]._replace(leader=leaders[one.event_index])
    return [[Counted(rows[one.event.key], one.event_index, one.weight) for one in found] for found in all_found]


def _in_order(found: Sequence[_Found]) -> list[_Found]:
    """Sorts events by their kinds, and puts the first tracepoint that many samples are of before the others: of
    `-e 'syscalls:*'` the file's first one may occur once. Half of the most are many, so that of a system call that is
    entered and left as often the same one is first in each run."""
    kinds = (*FIRST, "", *LAST)
    n_samples: dict[tuple[str, str, str], int] = {}
    for one in found:
        if one.event.kind == "tracepoint":
            n_samples[one.event.key] = n_samples.get(one.event.key, 0) + one.n_samples
    most = max(n_samples.values(), default=0)
    first = next((key for key, n in n_samples.items() if 2 * n >= most), None)

    def order(one: _Found) -> tuple[int, bool]:
        kind = one.event.kind if one.leader is None or one.event.kind in FIRST else one.leader.kind
        return kinds.index(kind if kind in kinds else ""), one.event.key != first

    return sorted(found, key=order)


def _found(recording: Recording, where: str, report: Report) -> Iterator[_Found]:
    """Yields the events that have samples, in the file's order, each followed by the members of its group."""
    samples, events = recording.samples, recording.events
    names = recording.event_names
    counts = samples.n_of_events(len(events))
    for event, count in zip(events, counts, strict=True):
        if not count or event.is_dummy:
            continue
        amounts = _group_amounts(recording, event)
        own = amounts.pop(event.index, None)
        leader = _event_of(event, own, names[event.index])
        yield _Found(leader, event.index, count, None if own is None else own.weight)
        for index, amount in amounts.items():
            member = events[index]
            if not amount.ran:
                report.note("event_never_ran", where=f"{where} {member.name}", detail=member.name)
            elif not counts[index]:
                yield _Found(_event_of(member, amount, names[index]), event.index, count, amount.weight, leader)
        latency = latency_of(recording, event)
        if latency is not None:
            name = f"{names[event.index]} latency"
            yield _Found(Event(name, "cycles", kind="memory"), event.index, count, latency, leader)


def _event_of(event: RecordedEvent, amount: _Amount | None, name: str) -> Event:
    unit = "ns" if _is_clock(event) or event.name in STATISTICS else "cycles" if "cycles" in event.name else "count"
    interval, period = 0, 0
    if event.is_freq:
        interval = 1_000_000_000 // max(event.attr.sample_period, 1)
    else:
        period = min(event.attr.sample_period, (1 << 63) - 1)
        interval = period if _is_clock(event) else 0
    kind: EventKind = KINDS.get(event.attr.type, "pmu")
    if _is_clock(event) or has_accesses(event):
        kind = "clock" if _is_clock(event) else "memory"
    if is_off_cpu(event):
        unit, kind, interval = "ns", "off-cpu", 0
    is_scaled = amount is not None and amount.is_scaled
    return Event(name, unit, interval, kind, period, is_scaled=is_scaled)


def _is_clock(event: RecordedEvent) -> bool:
    return event.attr.type == AttrType.SOFTWARE and event.attr.config in CLOCK_EVENTS


# ---------------------------------------------------------------- counters that are read with a sample


class _Amount(NamedTuple):
    """weight: int64 for every sample of the recording; ran: whether the counter ever did; is_scaled: whether it did for
    a part of the time only, and the weights were extrapolated."""

    weight: Array
    ran: bool
    is_scaled: bool


class _Values(NamedTuple):
    """Values of counters, one for each sample and member of the group: int64 row of the sample; uint64 id; float64 or
    int64 value, enabled and running in ns as they stood then."""

    row: Array
    id: Array
    value: Array
    enabled: Array
    running: Array


def _group_amounts(recording: Recording, event: RecordedEvent) -> dict[int, _Amount]:
    """Returns what the event's samples count of each member of its group, by the member's index; none where the values
    are not recorded. A sample counts what was added since the counter was read before."""
    is_read = event.sample_type & SampleType.READ and event.attr.read_format & ReadFormat.GROUP
    if not is_read or not event.attr.read_format & ReadFormat.ID:
        return {}
    rows = np.flatnonzero((recording.samples.event == event.index) & (recording.samples.read_at >= 0))
    if not len(rows):
        return {}
    values = _values(recording, event, rows)
    ids = np.array([number for other in recording.events for number in other.ids], np.uint64)
    index_of_id = np.array([other.index for other in recording.events for _ in other.ids] + [-1], np.int32)
    order = np.argsort(ids, kind="stable")
    member = np.append(index_of_id[:-1][order], -1)[index_of(ids[order], values.id)]
    amounts, is_scaled, did_run = _differences(recording, event, values)
    found = {}
    for index in distinct(member[member >= 0]).tolist():
        of = member == index
        weight = np.zeros(len(recording.samples), np.int64)
        np.add.at(weight, values.row[of], amounts[of])
        found[index] = _Amount(weight, bool(did_run[of].any()), bool(is_scaled[of].any()))
    return found


def _values(recording: Recording, event: RecordedEvent, rows: Array) -> _Values:
    """u64 nr; u64 time_enabled, time_running if they are recorded; nr times u64 value, id and, if recorded, lost."""
    data = np.frombuffer(recording.stream, np.uint8)
    kind = (">" if recording.byte_order == "big" else "<") + "u8"
    read_format, at = ReadFormat(event.attr.read_format & 31), recording.samples.read_at[rows]
    n_members = numbers_at(data, at, kind).astype(np.int64)
    at, times = at + 8, []
    for flag in TIMES:
        times.append(numbers_at(data, at, kind) if flag in read_format else np.zeros(len(rows), np.uint64))
        at = at + 8 * (flag in read_format)
    of = np.repeat(np.arange(len(rows)), n_members)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(n_members) - n_members, n_members)
    value_at = at[of] + nth * (24 if ReadFormat.LOST in read_format else 16)
    numbers = (numbers_at(data, value_at, kind), *(time[of] for time in times))
    value, enabled, running = (number.astype(np.int64) for number in numbers)
    return _Values(rows[of], numbers_at(data, value_at + 8, kind), value, enabled, running)


def _differences(recording: Recording, event: RecordedEvent, values: _Values) -> tuple[Array, Array, Array]:
    """Returns (int64 what was counted since the counter was read before; bool whether that was extrapolated; bool
    whether the counter ran). Counters of inherited events are read for each thread apart."""
    tid = recording.samples.tid[values.row] if "inherit" in event.attr.flags else np.zeros(len(values.row), np.int32)
    order = np.lexsort((np.arange(len(tid)), tid, values.id))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (values.id[order][1:] != values.id[order][:-1]) | (tid[order][1:] != tid[order][:-1])
    value, enabled, running = (_since_before(column[order], is_first) for column in values[2:])
    if not all(flag & event.attr.read_format for flag in TIMES):
        running = enabled = np.ones_like(value)
    is_scaled = (running > 0) & (running < enabled)
    scaled = np.minimum(np.rint(value * (enabled / np.maximum(running, 1))), float(1 << 62))
    amount = np.where(is_scaled, scaled.astype(np.int64), value * (running > 0))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return amount[back], is_scaled[back], (running > 0)[back]


def _since_before(column: Array, is_first: Array) -> Array:
    """Returns what each value has more than the one before it; one that is smaller was reset."""
    more = np.diff(column, prepend=0)
    fresh: Array = np.where(is_first | (more < 0), column, more)
    return np.maximum(fresh, 0)
