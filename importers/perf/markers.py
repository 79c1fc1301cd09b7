"""Map: tracepoints become markers with their fields and stacks, and so do samples with the address of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.accesses import access_columns, access_fields, has_accesses
from traceferry.importers.perf.recording import Event, Recording
from traceferry.importers.perf.scheduling import TOLD
from traceferry.importers.perf.tracepoints import Field
from traceferry.importers.perf.weights import unique_name
from traceferry.model import Array, FieldFormat, MarkerField, MarkerType, Table

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
    recording: Recording, main: int, rows: Array, stack: Array, offset_ns: int
) -> dict[MarkerType, Table]:
    """One type for each event. main: the event that says where time goes; rows: a thread's samples; stack: of every
    sample."""
    markers: dict[MarkerType, Table] = {}
    shown = [
        event
        for event in recording.events
        if (event.tracepoint is not None and event.tracepoint.full_name not in TOLD)
        or (event.sample_type & SampleType.ADDR and (event.index != main or has_accesses(event)))
    ]
    event_of_row = recording.samples.event[rows] if shown else rows
    for event in shown:
        mine = rows[event_of_row == event.index]
        if len(mine) == 0:
            continue
        fields = _fields(event)
        name = unique_name(event, recording.events)
        group_by = ("operation", "level") if has_accesses(event) else ()
        category = _category(event)
        marker_type = MarkerType(name, "An event that perf recorded", fields, label(fields), group_by, category)
        samples = recording.samples
        columns: dict[str, Any] = {"ts": samples.ts[mine] + offset_ns, "stack": stack[mine], "cpu": samples.cpu[mine]}
        if event.tracepoint is None:
            columns |= {"period": samples.period[mine], "addr": samples.addr[mine]}
            columns |= access_columns(recording, event, mine)
        else:
            columns |= _decoded(recording, event, mine)
        markers[marker_type] = Table(marker_type.spec, columns)
    return markers


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
    shown = [field.key for field in fields if field.key != "cpu"][:3]
    return ", ".join(f"{key.removeprefix('_')}={{{key}}}" for key in shown)


def _fields(event: Event) -> tuple[MarkerField, ...]:
    cpu = MarkerField("cpu", "CPU", "integer")
    if event.tracepoint is None:
        address = MarkerField("period", "Period", "integer"), MarkerField("addr", "Address", "hex")
        return (*address, *access_fields(event), cpu)
    return (*(MarkerField(_key(f), f.name, _format(f)) for f in event.tracepoint.fields), cpu)


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
    return {_key(field): recording.field(field, rows) for field in event.tracepoint.fields}
