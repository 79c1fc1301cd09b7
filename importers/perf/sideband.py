"""The sideband records, which are not samples: columns for context switches, typed records for the rest."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.events import SAMPLE_ID_WORDS, EventTable
from traceferry.importers.perf.fields import numbers_at, until_nul
from traceferry.importers.perf.layout import (
    BUILD_ID_SIZE,
    KSYMBOL_UNREGISTER,
    MAP_SHARED,
    MISC_COMM_EXEC,
    MISC_CPUMODE_MASK,
    MISC_FORK_EXEC,
    MISC_LOST_SAMPLES_BPF,
    MISC_MMAP_BUILD_ID,
    MISC_MMAP_DATA,
    MISC_SWITCH_OUT,
    MISC_SWITCH_OUT_PREEMPT,
    PROT_EXEC,
    RECORD_HEADER_SIZE,
    RecordType,
)
from traceferry.importers.perf.recording import (
    Comm,
    Deferred,
    Exit,
    Fork,
    Ksymbol,
    Losses,
    Mmap,
    Problem,
    Recording,
    Switches,
)
from traceferry.importers.perf.stream import Stream
from traceferry.model import Array, index_of

KERNEL_CPUMODES = (1, 4)
TIMES_END = 1 << 62
# NET_NS_INDEX and those after it, as /proc/PID/ns calls them.
NAMESPACES = ("net", "uts", "ipc", "pid", "user", "mnt", "cgroup")
# Reads the numbers at many offsets of a stream, all of which must be there: of the kind u2, i4 or u8.
Reader = Callable[[Array, str], Array]


@dataclass
class Others:
    """Columns of records that are not samples, by time. at, body_end: int64 offsets of the record and of its sample_id.
    What sample_id says: int32 pid, tid, cpu, -1 where it does not; int64 ts, 0 where it does not."""

    type: Array
    at: Array
    ts: Array
    pid: Array
    tid: Array
    cpu: Array
    misc: Array
    body_end: Array

    def take(self, rows: Array) -> Others:
        return Others(*(getattr(self, column.name)[rows] for column in fields(self)))


def read_sideband(recording: Recording, stream: Stream, table: EventTable) -> None:
    """Adds them to the recording, each by time, and what is wrong with them to its problems."""
    problems = recording.problems
    in_columns = [
        RecordType.SWITCH, RecordType.SWITCH_CPU_WIDE, RecordType.CALLCHAIN_DEFERRED, RecordType.NAMESPACES,
    ]  # fmt: skip
    wanted = np.isin(stream.other_type, [*TYPED, *in_columns])
    rows = _others(stream, table, stream.other_at[wanted], stream.other_type[wanted], problems)
    recording.switches, recording.deferred = _switches(rows), _deferred(stream, rows, problems)
    recording.namespaces = _namespaces(stream, rows)
    bad: list[int] = []
    n_lost = n_lost_by_kernel = n_of_sums = n_filtered = 0
    decoded = np.isin(rows.type, TYPED)
    columns = (rows.type, rows.at, rows.body_end, rows.misc, rows.ts)
    for kind, at, body_end, misc, ts in zip(*(column[decoded].tolist() for column in columns), strict=True):
        layout = LAYOUTS[stream.big][kind]
        text_at = at + RECORD_HEADER_SIZE + layout.size
        if body_end < text_at:
            bad.append(at)
            continue
        numbers = layout.unpack_from(stream.data, at + RECORD_HEADER_SIZE)
        if kind not in LOST_TYPES:
            _add(recording, kind, numbers, until_nul(bytes(stream.data[text_at:body_end])), misc, ts)
        # LOST counts records of any type, LOST_SAMPLES samples; both end with the number.
        elif kind == RecordType.LOST:
            n_lost += numbers[-1]
        elif misc & MISC_LOST_SAMPLES_BPF:
            n_filtered += numbers[-1]
        elif ts > 0:
            n_lost_by_kernel += numbers[-1]
        else:
            n_of_sums += numbers[-1]
    _note_rows(problems, "bad_record", bad, "records shorter than their fields")
    is_filtered = (rows.type == RecordType.LOST_SAMPLES) & (rows.misc & MISC_LOST_SAMPLES_BPF != 0)
    is_lost = np.isin(rows.type, LOST_TYPES) & ~is_filtered
    # perf asks at the end for the samples that each event lost (PERF_FORMAT_LOST), and writes them without a time: most
    # of these are in a LOST of the kernel already.
    n_lost = max(n_lost, n_of_sums) + n_lost_by_kernel
    recording.losses = Losses(rows.ts[is_lost], rows.cpu[is_lost])
    counts = (("lost_samples", n_lost, is_lost), ("samples_filtered", n_filtered, is_filtered))
    problems += [Problem(kind, n, int(rows.at[chosen].min())) for kind, n, chosen in counts if n]


def _others(stream: Stream, table: EventTable, at: Array, types: Array, problems: list[Problem]) -> Others:
    """stream.other_at says that the records are whole."""
    read = _reader(stream)
    n, no = len(at), np.full(len(at), -1, np.int32)
    end = at + read(at + 6, "u2").astype(np.int64)
    event = _event_of_records(table, read, at, end)
    layout = table.layouts[np.maximum(event, 0)]
    kinds, id_size = layout["sample_type"], layout["sample_id_size"].astype(np.int64)
    is_whole = end - at - RECORD_HEADER_SIZE >= id_size
    misc = read(at + 4, "u2").astype(np.int32)
    body_end = np.where(is_whole, end - id_size, -1)
    rows = Others(types, at, np.zeros(n, np.int64), no, no.copy(), no.copy(), misc, body_end)
    word_at = rows.body_end.copy()
    for kind in SAMPLE_ID_WORDS:
        has = np.flatnonzero(is_whole & (id_size > 0) & (kinds & np.uint64(kind) != 0))
        here = word_at[has]
        if kind == SampleType.TID:
            rows.pid[has], rows.tid[has] = read(here, "i4"), read(here + 4, "i4")
        elif kind == SampleType.TIME:
            time = read(here, "u8")
            rows.ts[has] = np.where(time < np.uint64(TIMES_END), time, np.uint64(0)).astype(np.int64)
        elif kind == SampleType.CPU:
            rows.cpu[has] = read(here, "i4")
        word_at[has] += 8
    _note_rows(problems, "bad_record", at[~is_whole], "records too short for sample_id")
    _note_rows(problems, "unknown_event_id", at[event < 0], "records of no event")
    if not table.has_sample_id:
        _take_times_of_bodies(stream, rows)
    rows = rows.take(np.argsort(rows.ts, kind="stable"))
    return rows.take(rows.body_end >= 0)


def _namespaces(stream: Stream, rows: Others) -> dict[int, str]:
    """Returns the last namespaces of each process: i32 pid, tid; u64 nr; nr times u64 dev, inode."""
    found: dict[int, str] = {}
    order = ">" if stream.big else "<"
    for nth in np.flatnonzero(rows.type == RecordType.NAMESPACES).tolist():
        at, end = int(rows.at[nth]) + RECORD_HEADER_SIZE, int(rows.body_end[nth])
        if end - at < 16:
            continue
        pid, _, n = struct.unpack_from(order + "iiQ", stream.data, at)
        n = min(n, len(NAMESPACES), (end - at - 16) // 16)
        inodes = struct.unpack_from(order + f"{2 * n}Q", stream.data, at + 16)[1::2]
        found[pid] = " ".join(f"{name}:[{inode}]" for name, inode in zip(NAMESPACES, inodes, strict=False))
    return found


def _reader(stream: Stream) -> Reader:
    data, order = np.frombuffer(stream.data, np.uint8), ">" if stream.big else "<"
    return lambda at, kind: numbers_at(data, at, order + kind)


def _event_of_records(table: EventTable, read: Reader, at: Array, end: Array) -> Array:
    """int32: the event of each record by the id in its sample_id; the first for the id 0 and where there is none, -1
    where no event has it."""
    event = np.zeros(len(at), np.int32)
    if len(table.layouts) > 1 and table.id_before_end >= 0 and table.has_sample_id:
        rows = np.flatnonzero(end - table.id_before_end >= at + RECORD_HEADER_SIZE)
        wanted = read(end[rows] - table.id_before_end, "u8")
        event[rows] = np.where(wanted == 0, 0, np.append(table.id_events, -1)[index_of(table.ids, wanted)])
    return event


def _note_rows(problems: list[Problem], kind: str, at: Array | Sequence[int], detail: str) -> None:
    if len(at):
        problems.append(Problem(kind, len(at), int(at[0]), detail))


def _take_times_of_bodies(stream: Stream, rows: Others) -> None:
    """Takes the times of these records: without sample_id_all no others have one."""
    order = ">" if stream.big else "<"
    for nth in np.flatnonzero(np.isin(rows.type, (RecordType.FORK, RecordType.EXIT))).tolist():
        at = int(rows.at[nth]) + RECORD_HEADER_SIZE
        if rows.body_end[nth] - at >= struct.calcsize("=IIIIQ"):
            (time,) = struct.unpack_from(order + "Q", stream.data, at + 16)
            rows.ts[nth] = time if time < 1 << 62 else 0


def _switches(rows: Others) -> Switches:
    mask = np.isin(rows.type, (RecordType.SWITCH, RecordType.SWITCH_CPU_WIDE))
    misc = rows.misc[mask]
    return Switches(
        rows.ts[mask],
        rows.pid[mask],
        rows.tid[mask],
        rows.cpu[mask],
        misc & MISC_SWITCH_OUT != 0,
        (misc & MISC_SWITCH_OUT != 0) & (misc & MISC_SWITCH_OUT_PREEMPT != 0),
    )


def _deferred(stream: Stream, rows: Others, problems: list[Problem]) -> Deferred:
    """u64 cookie, nr; u64 ips[nr]"""
    read, of_type = _reader(stream), rows.type == RecordType.CALLCHAIN_DEFERRED
    size = rows.body_end - rows.at - RECORD_HEADER_SIZE - 16
    chosen = np.flatnonzero(of_type & (size >= 0))
    n = read(rows.at[chosen] + 16, "u8")
    fits = n <= (size[chosen] // 8).astype(np.uint64)
    chosen, n = chosen[fits], n[fits].astype(np.int64)
    _note_rows(problems, "bad_record", rows.at[of_type][len(chosen) :], "deferred callchains shorter than they say")
    first = np.cumsum(n) - n
    at = np.repeat(rows.at[chosen] + 24 - 8 * first, n) + 8 * np.arange(int(n.sum()))
    return Deferred(
        rows.ts[chosen], rows.tid[chosen], read(rows.at[chosen] + 8, "u8"), n, first, read(at, "u8")
    )  # fmt: skip


LOST_TYPES = (RecordType.LOST, RecordType.LOST_SAMPLES)
# What is read record by record.
TYPED = (
    RecordType.COMM, RecordType.FORK, RecordType.EXIT, RecordType.MMAP, RecordType.MMAP2, RecordType.KSYMBOL,
    RecordType.THROTTLE, RecordType.UNTHROTTLE, RecordType.CGROUP, *LOST_TYPES,
)  # fmt: skip
LAYOUTS = [{int(kind): struct.Struct(order + kind.body.fields) for kind in RecordType if kind.body} for order in "<>"]


def _add(recording: Recording, kind: int, numbers: tuple[Any, ...], text: str, misc: int, ts: int) -> None:
    """Adds a record. numbers: those that its body begins with; text: what follows them; ts: of its sample_id."""
    match kind:
        case RecordType.MMAP | RecordType.MMAP2:
            is_exec, is_shared, build_id, file, generation = not misc & MISC_MMAP_DATA, False, "", b"", b""
            pid, _, start, length, pgoff, *more = numbers
            if kind == RecordType.MMAP2:
                inode, prot, flags = more
                is_shared = bool(flags & MAP_SHARED)
                # perf gives no prot to the kernel and its modules.
                is_exec = bool(prot & PROT_EXEC) or (is_exec and misc & MISC_CPUMODE_MASK in KERNEL_CPUMODES)
                if misc & MISC_MMAP_BUILD_ID:
                    build_id = inode[4 : 4 + min(inode[0], BUILD_ID_SIZE)].hex()
                else:
                    file, generation = inode[:16], inode[16:]
            order = len(recording.maps)
            mapped = Mmap(ts, pid, start, length, pgoff, text, is_exec, build_id, order, file, is_shared, generation)
            recording.maps.append(mapped)
        case RecordType.COMM:
            pid, tid = numbers
            recording.tasks.append(Comm(ts, pid, tid, text, bool(misc & MISC_COMM_EXEC)))
        case RecordType.FORK:
            pid, ppid, tid, ptid, _ = numbers
            recording.tasks.append(Fork(ts, pid, ppid, tid, ptid, bool(misc & MISC_FORK_EXEC)))
        case RecordType.EXIT:
            pid, _, tid, _, _ = numbers
            recording.tasks.append(Exit(ts, pid, tid))
        case RecordType.KSYMBOL:
            address, length, _, flags = numbers
            recording.ksymbols.append(Ksymbol(ts, address, length, text, bool(flags & KSYMBOL_UNREGISTER)))
        case RecordType.CGROUP:
            recording.cgroups[numbers[0]] = encodable(text)
        case RecordType.THROTTLE:
            recording.n_throttled += 1
