"""Map: tracepoints become markers with their fields and stacks, and so do samples with the address of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.accesses import access_columns, access_fields, has_accesses
from traceferry.importers.perf.pairs import ALONE, OPEN, Interval, Intervals
from traceferry.importers.perf.recording import Event, Recording
from traceferry.importers.perf.scheduling import TOLD
from traceferry.importers.perf.syscalls import has_number, names_of
from traceferry.importers.perf.tracepoints import Field
from traceferry.model import Array, FieldFormat, MarkerField, MarkerType, Table, rows_by_key

# What the tracepoints of a subsystem of the kernel are about.
SUBSYSTEMS: dict[str, str] = {
    "I/O": "block ext4 xfs btrfs f2fs nfs jbd2 iomap io_uring writeback filemap scsi nvme net sock skb tcp udp",
    "Scheduling": "sched irq softirq workqueue timer power signal task cgroup",
    "Locks": "lock rcu futex",
    "Exceptions": "exceptions mce",
    "Memory": "kmem vmscan compaction oom migrate huge_memory tlb percpu",
    "Loader": "module initcall",
}
CATEGORIES = {subsystem: category for category, names in SUBSYSTEMS.items() for subsystem in names.split()}
# Of the kernel's own counters.
FAULTS = ("page-faults", "minor-faults", "major-faults", "faults")


def event_markers(
    recording: Recording, main: int, rows: Array, stack: Array, offset_ns: int, pairs: Intervals, end_ts: int
) -> dict[MarkerType, Table]:
    """One type for each event, and for each pair of events. main: the event that says where time goes; rows: a thread's
    samples; stack: of every sample; end_ts: of the thread, where open intervals end."""
    markers: dict[MarkerType, Table] = {}
    shown = [event for event in recording.events if _is_shown(event)]
    of_event = rows_by_key(recording.samples.event[rows]) if shown else {}
    for event in shown:
        mine = rows[of_event.get(event.index, rows[:0])]
        if event.index in pairs.of_begin:
            of_pair = pairs.of_begin[event.index]
            markers |= _intervals(recording, of_pair, mine, pairs.partner, stack, offset_ns, end_ts)
        if len(pairs.partner):
            mine = mine[pairs.partner[mine] == ALONE]
        if len(mine) == 0 or (_may_lack_addresses(event, main) and not recording.samples.addr[mine].any()):
            continue
        fields = _fields(event)
        name = recording.event_names[event.index]
        group_by = ("operation", "level") if has_accesses(event) else ()
        category = _category(event)
        marker_type = MarkerType(name, "An event that perf recorded", fields, label(fields), group_by, category)
        samples = recording.samples
        columns: dict[str, Any] = {"ts": samples.ts[mine] + offset_ns, "stack": stack[mine]}
        columns |= _processors(recording, event, mine)
        if event.tracepoint is None:
            columns |= {"period": samples.period[mine], "addr": samples.addr[mine]}
            columns |= access_columns(recording, event, mine)
        else:
            columns |= _decoded(recording, event, mine)
        markers[marker_type] = Table(marker_type.spec, columns)
    return markers


def _intervals(
    recording: Recording, of: Interval, mine: Array, partner: Array, stack: Array, offset_ns: int, end_ts: int
) -> Iterator[tuple[MarkerType, Table]]:
    """Yields what these begins have ends of, in one type with the fields of both, and what has no end, in another."""
    samples, category = recording.samples, _category(of.begin)
    begun = _fields(of.begin)
    keys = {field.key for field in begun}
    more = {field: f"end_{_key(field)}" if _key(field) in keys else _key(field) for field in of.more}
    told = tuple(MarkerField(key, key.removeprefix("_"), _format(field)) for field, key in more.items())
    shown = [field for field in begun if field.key not in UNSHOWN]
    text = f"{label(shown[: 3 - bool(told)])}, {label(told[:1])}".strip(", ")
    group_by = (SYSCALL.key,) if has_number(of.begin) else ()
    for name, doc, rows in (
        (of.name, "Between two events that perf recorded", mine[partner[mine] >= 0]),
        (f"{of.name} (no end)", "It had begun when its thread or the recording ended", mine[partner[mine] == OPEN]),
    ):
        if not len(rows):
            continue
        has_end = name == of.name
        ts, ends = samples.ts[rows] + offset_ns, partner[rows]
        columns: dict[str, Any] = {"ts": ts, "stack": stack[rows], **_processors(recording, of.begin, rows)}
        columns["dur"] = samples.ts[ends] + offset_ns - ts if has_end else np.maximum(end_ts - ts, 0)
        columns |= _decoded(recording, of.begin, rows)
        if has_end:
            columns |= {key: recording.field(field, ends) for field, key in more.items()}
        fields = (*begun, *told) if has_end else begun
        marker_type = MarkerType(name, doc, fields, text if has_end else label(shown), group_by, category)
        yield marker_type, Table(marker_type.spec, columns)


def _is_shown(event: Event) -> bool:
    if event.tracepoint is not None:
        return event.tracepoint.full_name not in TOLD
    return bool(event.sample_type & SampleType.ADDR)


def _may_lack_addresses(event: Event, main: int) -> bool:
    """Whether an event is one of time, recorded with -d, as clocks are: a marker would say no more than its sample."""
    return event.tracepoint is None and event.index == main and not has_accesses(event)


def _processors(recording: Recording, event: Event, rows: Array) -> dict[str, Array]:
    """Returns the column of the processors, if they were recorded."""
    return {"cpu": recording.samples.cpu[rows]} if event.sample_type & SampleType.CPU else {}


def _category(event: Event) -> str:
    subsystem, _, tracepoint = event.name.partition(":")
    if tracepoint:
        return CATEGORIES.get(subsystem, "Other")
    if event.name == "context-switches" or event.name.startswith("cpu-migrations"):
        return "Scheduling"
    return "Memory" if event.name in FAULTS or has_accesses(event) else "Other"


def label(fields: Sequence[MarkerField]) -> str:
    if any(field.key == "level" for field in fields):
        return "{operation} {level} at {addr}"
    if SYSCALL in fields:
        return f"{{{SYSCALL.key}}}"
    shown = [field.key for field in fields if field.key != "cpu"][:3]
    return ", ".join(f"{key.removeprefix('_')}={{{key}}}" for key in shown)


def _fields(event: Event) -> tuple[MarkerField, ...]:
    cpu = (MarkerField("cpu", "CPU", "integer"),) if event.sample_type & SampleType.CPU else ()
    if event.tracepoint is None:
        address = MarkerField("period", "Period", "integer"), MarkerField("addr", "Address", "hex")
        return (*address, *access_fields(event), *cpu)
    named = (SYSCALL,) if has_number(event) else ()
    return (*named, *(MarkerField(_key(f), f.name, _format(f)) for f in event.tracepoint.fields), *cpu)


SYSCALL = MarkerField("syscall", "System call", "text")
# The number of a system call, which is in the name of its type.
UNSHOWN = frozenset({"cpu", "__syscall_nr", "nr"})
RESERVED = frozenset({"ts", "dur", "stack", "flow", "cpu", "type"})


def _key(field: Field) -> str:
    """Returns the name of a field's column: a marker has some columns of its own."""
    return f"_{field.name}" if field.name in RESERVED else field.name


def _format(field: Field) -> FieldFormat:
    if field.kind != "integer":
        return "text"
    return "integer" if field.signed or field.size < 8 else "hex"


def _decoded(recording: Recording, event: Event, rows: Array) -> dict[str, Any]:
    assert event.tracepoint is not None
    columns: dict[str, Any] = {_key(field): recording.field(field, rows) for field in event.tracepoint.fields}
    if has_number(event):
        columns[SYSCALL.key] = names_of(recording.features.arch, columns["id"])
    return columns
