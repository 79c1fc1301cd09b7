"""The kernel's records that are no samples: columns for context switches, typed records for the rest."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.importers.perf import perf_kernel
from traceferry.importers.perf.events import EventTable
from traceferry.importers.perf.fields import until_nul
from traceferry.importers.perf.layout import (
    BODY_FIELDS,
    BUILD_ID_SIZE,
    KSYMBOL_UNREGISTER,
    MISC_COMM_EXEC,
    MISC_CPUMODE_MASK,
    MISC_MMAP_BUILD_ID,
    MISC_MMAP_DATA,
    MISC_SWITCH_OUT,
    MISC_SWITCH_OUT_PREEMPT,
    PROT_EXEC,
    RECORD_HEADER_SIZE,
    RecordType,
)
from traceferry.importers.perf.recording import Comm, Exit, Fork, Ksymbol, Lost, Mmap, Problem, Switches, Task, Throttle
from traceferry.importers.perf.stream import Stream
from traceferry.model import Array

FOUND = perf_kernel.FOUND_SLOTS
KERNEL_CPUMODES = (1, 4)
COLUMNS = {
    "ts": np.int64, "pid": np.int32, "tid": np.int32, "cpu": np.int32, "event": np.int32, "misc": np.int32,
    "body_end": np.int64, "first": np.int32, "second": np.int32,
}  # fmt: skip


@dataclass
class Others:
    """One column for each of perf_kernel.others', by time, and type and offset."""

    type: Array
    at: Array
    ts: Array
    pid: Array
    tid: Array
    cpu: Array
    event: Array
    misc: Array
    body_end: Array
    first: Array
    second: Array


@dataclass
class Rare:
    """What `read_rare` finds, each by time."""

    switches: Switches
    tasks: list[Task] = field(default_factory=list)
    maps: list[Mmap] = field(default_factory=list)
    ksymbols: list[Ksymbol] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    throttles: list[Throttle] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class Row(NamedTuple):
    """One record: the numbers that its body begins with, the text after them, and what sample_id says."""

    type: int
    numbers: tuple[int, ...]
    inode: bytes
    text: str
    misc: int
    ts: int
    cpu: int
    event: int


def read_rare(stream: Stream, table: EventTable) -> Rare:
    problems: list[Problem] = []
    wanted = np.isin(stream.other_type, [*READERS, RecordType.SWITCH, RecordType.SWITCH_CPU_WIDE])
    rows = _others(stream, table, stream.other_at[wanted], stream.other_type[wanted], problems)
    rare = Rare(_switches(rows), problems=problems)
    first_bad, n_bad = None, 0
    decoded = np.isin(rows.type, list(READERS))
    columns = (rows.type, rows.at, rows.body_end, rows.misc, rows.ts, rows.cpu, rows.event)
    for kind, at, body_end, *shared in zip(*(column[decoded].tolist() for column in columns), strict=True):
        row = _row(stream, kind, at, body_end, shared)
        if row is None:
            n_bad += 1
            first_bad = at if first_bad is None else first_bad
        else:
            READERS[kind](rare, row)
    if n_bad:
        problems.append(Problem("bad_record", n_bad, first_bad, "records shorter than their fields"))
    _note_lost(rare, rows)
    return rare


def _others(stream: Stream, table: EventTable, at: Array, types: Array, problems: list[Problem]) -> Others:
    columns = {name: np.empty(len(at), dtype) for name, dtype in COLUMNS.items()}
    found = np.zeros(len(FOUND), np.int64)
    perf_kernel.others(
        stream.data, stream.big, at, table.layouts, table.id_before_end, table.ids, table.id_events, found,
        *columns.values(),
    )  # fmt: skip
    problems += problems_of(found, "records too short for sample_id")
    rows = Others(types, at, **columns)
    if not table.has_sample_id:
        _take_times_of_bodies(stream, rows)
    order = np.argsort(rows.ts, kind="stable")
    ordered = {name: column[order] for name, column in columns.items()}
    usable = ordered["body_end"] >= 0
    return Others(types[order][usable], at[order][usable], **{name: c[usable] for name, c in ordered.items()})


def problems_of(found: Array, detail: str) -> list[Problem]:
    """What a kernel says that it could not read."""
    problems = []
    if found[FOUND["n_bad"]]:
        problems.append(Problem("bad_record", int(found[FOUND["n_bad"]]), int(found[FOUND["first_bad"]]), detail))
    if found[FOUND["n_no_event"]]:
        n, at = int(found[FOUND["n_no_event"]]), int(found[FOUND["first_no_event"]])
        problems.append(Problem("unknown_event_id", n, at, "records of no event"))
    return problems


def _take_times_of_bodies(stream: Stream, rows: Others) -> None:
    """Without sample_id_all only these records have a time."""
    order = ">" if stream.big else "<"
    for nth in np.flatnonzero(np.isin(rows.type, (RecordType.FORK, RecordType.EXIT))).tolist():
        at = int(rows.at[nth]) + RECORD_HEADER_SIZE
        if rows.body_end[nth] - at >= struct.calcsize("=IIIIQ"):
            (time,) = struct.unpack_from(order + "Q", stream.data, at + 16)
            rows.ts[nth] = time if time < 1 << 62 else 0


def _switches(rows: Others) -> Switches:
    wide = rows.type == RecordType.SWITCH_CPU_WIDE
    mask = wide | (rows.type == RecordType.SWITCH)
    misc = rows.misc[mask]
    return Switches(
        rows.ts[mask],
        rows.pid[mask],
        rows.tid[mask],
        rows.cpu[mask],
        misc & MISC_SWITCH_OUT != 0,
        (misc & MISC_SWITCH_OUT != 0) & (misc & MISC_SWITCH_OUT_PREEMPT != 0),
        np.where(wide[mask], rows.first[mask], np.int32(-1)),
        np.where(wide[mask], rows.second[mask], np.int32(-1)),
        rows.at[mask],
    )


def _row(stream: Stream, kind: int, at: int, body_end: int, shared: list[int]) -> Row | None:
    """None where the body is too short. shared: misc, ts, cpu, event"""
    layout = LAYOUTS[stream.big][kind]
    text_at = at + RECORD_HEADER_SIZE + layout.size
    if body_end < text_at:
        return None
    values = layout.unpack_from(stream.data, at + RECORD_HEADER_SIZE)
    inode = b""
    if kind == RecordType.MMAP2:
        *place, inode, prot, flags = values
        values = (*place, prot, flags)
    return Row(kind, values, inode, until_nul(bytes(stream.data[text_at:body_end])), *shared)


# ---------------------------------------------------------------- one function for each type


def _comm(rare: Rare, row: Row) -> None:
    pid, tid = row.numbers
    rare.tasks.append(Comm(row.ts, pid, tid, row.text, bool(row.misc & MISC_COMM_EXEC)))


def _fork(rare: Rare, row: Row) -> None:
    pid, ppid, tid, ptid, _ = row.numbers
    rare.tasks.append(Fork(row.ts, pid, ppid, tid, ptid))


def _exit(rare: Rare, row: Row) -> None:
    pid, ppid, tid, ptid, _ = row.numbers
    rare.tasks.append(Exit(row.ts, pid, ppid, tid, ptid))


def _mmap(rare: Rare, row: Row) -> None:
    pid, tid, start, length, pgoff = row.numbers
    _add_map(rare, row, (pid, tid, start, length, pgoff, 0, 0), not row.misc & MISC_MMAP_DATA, "")


def _mmap2(rare: Rare, row: Row) -> None:
    prot = row.numbers[5]
    # perf gives no prot to the kernel and its modules.
    of_kernel = row.misc & MISC_CPUMODE_MASK in KERNEL_CPUMODES and not row.misc & MISC_MMAP_DATA
    build_id = ""
    if row.misc & MISC_MMAP_BUILD_ID:
        build_id = row.inode[4 : 4 + min(row.inode[0], BUILD_ID_SIZE)].hex()
    _add_map(rare, row, row.numbers, bool(prot & PROT_EXEC) or of_kernel, build_id)


def _add_map(rare: Rare, row: Row, numbers: tuple[int, ...], is_exec: bool, build_id: str) -> None:
    pid, tid, start, length, pgoff, prot, flags = numbers
    cpumode = row.misc & MISC_CPUMODE_MASK
    rare.maps.append(
        Mmap(
            row.ts, pid, tid, start, length, pgoff, row.text, prot, flags, is_exec, cpumode,
            build_id, len(rare.maps),
        )
    )  # fmt: skip


def _ksymbol(rare: Rare, row: Row) -> None:
    address, length, kind, flags = row.numbers
    rare.ksymbols.append(Ksymbol(row.ts, address, length, row.text, kind, bool(flags & KSYMBOL_UNREGISTER)))


def _lost(rare: Rare, row: Row) -> None:
    rare.lost.append(Lost(row.ts, row.cpu, row.event, row.numbers[1], False))


def _lost_samples(rare: Rare, row: Row) -> None:
    rare.lost.append(Lost(row.ts, row.cpu, row.event, row.numbers[0], True))


def _throttle(rare: Rare, row: Row) -> None:
    rare.throttles.append(Throttle(row.ts, row.cpu, row.event, row.type == RecordType.UNTHROTTLE))


READERS: dict[int, Callable[[Rare, Row], None]] = {
    RecordType.COMM: _comm,
    RecordType.FORK: _fork,
    RecordType.EXIT: _exit,
    RecordType.MMAP: _mmap,
    RecordType.MMAP2: _mmap2,
    RecordType.KSYMBOL: _ksymbol,
    RecordType.LOST: _lost,
    RecordType.LOST_SAMPLES: _lost_samples,
    RecordType.THROTTLE: _throttle,
    RecordType.UNTHROTTLE: _throttle,
}
LAYOUTS = [{int(kind): struct.Struct(order + BODY_FIELDS[kind]) for kind in BODY_FIELDS} for order in "<>"]


def _note_lost(rare: Rare, rows: Others) -> None:
    n = sum(lost.count for lost in rare.lost)
    if n:
        at = rows.at[np.isin(rows.type, (RecordType.LOST, RecordType.LOST_SAMPLES))]
        rare.problems.append(Problem("lost_samples", n, int(at.min())))
