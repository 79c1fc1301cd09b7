"""Decode: a whole FDR log: its buffers scanned once, grouped into threads, which decode piece by piece."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from traceferry.common.report import Problems
from traceferry.importers.xray._fdr import Ids
from traceferry.importers.xray.decode import (
    MAX_TICK,
    SCRATCH,
    Buffer,
    Columns,
    Gap,
    begins_another,
    decode_pieces,
    find_buffers,
    peek_tid,
    scan_buffer,
)
from traceferry.importers.xray.layout import HEADER_SIZE, METADATA_SIZE, Function, Header, Metadata, metadata_format
from traceferry.importers.xray.log import Aside, Event, Log, Piece, ThreadLog, rows_of_arguments

NO_KIND = 255


@dataclass
class FdrFile:
    """A scanned file. name: identifies it in the report; buffers: in file order, those that are another file's already
    taken out by `forks.separate`."""

    name: str
    data: memoryview
    header: Header
    buffers: list[Buffer] = field(default_factory=list)
    ids: Ids = field(default_factory=Ids)
    problems: Problems = field(default_factory=Problems)


def scan_fdr(data: memoryview, header: Header, name: str) -> FdrFile:
    """Reads the file once: what each buffer holds, the function ids, and what is wrong."""
    file = FdrFile(name, data, header)
    scratch = Columns.empty(SCRATCH, SCRATCH)
    last_tick: dict[int, int] = {}
    buffers = find_buffers(data, header)
    while (found := next(buffers, None)) is not None:
        if isinstance(found, Gap):
            file.problems.add("bad_buffer", 1, found.begin, f"{found.end - found.begin} bytes")
            continue
        # A buffer of the oldest runtimes may begin without a time: its thread's last one holds.
        tid = peek_tid(data, header, found)
        found.base_tick = last_tick.get(tid, 0) if tid is not None else 0
        scan_buffer(data, header, found, file.ids, scratch)
        if found.tid is not None:
            last_tick[found.tid] = found.last_tick
        if begins_another(data, header, found):
            found.end, found.status, found.repaired = found.stopped_at, "whole", True
            buffers = find_buffers(data, header, found.end)
        _note_damage(found, file.problems)
        file.buffers.append(found)
    if len(data) == HEADER_SIZE:
        file.problems.add("log_empty", offset=HEADER_SIZE)
    return file


def _note_damage(buffer: Buffer, problems: Problems) -> None:
    if buffer.repaired:
        problems.add("extents_repaired", 1, buffer.begin - METADATA_SIZE)
    n_typed = int(buffer.n_metadata[Metadata.TYPED_EVENT])
    if buffer.status == "cut":
        problems.add("truncated" if buffer.truncated else "cut_record", 1, buffer.stopped_at)
    elif buffer.status in ("unknown_kind", "bad_size"):
        what = "an unknown kind of record" if buffer.status == "unknown_kind" else "an event with a negative size"
        problems.add("bad_record", 1, buffer.stopped_at, what)
    elif buffer.truncated and buffer.status != "end_of_buffer":
        problems.add("truncated", 1, buffer.stopped_at)
    elif n_typed:
        problems.add("maybe_cut", n_typed, buffer.stopped_at)
    if buffer.tid is None and buffer.end > buffer.begin and buffer.status == "whole":
        problems.add("empty_buffer", 1, buffer.begin)


def to_log(file: FdrFile) -> Log:
    timed = [one for buffer in file.buffers for one in (*buffer.before, buffer)]
    pairs = [(b.first_tsc, b.walltime_ns) for b in timed if b.first_tsc is not None and b.walltime_ns is not None]
    return Log(file.name, file.header, _threads(file), file.ids.in_order(), file.ids.assign, pairs, file.problems)


def _threads(file: FdrFile) -> list[ThreadLog]:
    """Returns buffers grouped by thread, each thread's ordered by their first absolute TSC; one without follows the
    buffer that is before it in the file."""
    of_thread: dict[tuple[int | None, int], list[tuple[int, int, Buffer]]] = {}
    for nth, buffer in enumerate(file.buffers):
        if buffer.tid is None:
            continue
        group = of_thread.setdefault((buffer.pid, buffer.tid), [])
        start = buffer.first_tsc
        if start is None:
            start = group[-1][0] if group else buffer.base_tick
        group.append((start, nth, buffer))
    threads: list[ThreadLog] = []
    for (pid, tid), group in of_thread.items():
        ordered = [buffer for _, _, buffer in sorted(group, key=lambda entry: entry[:2])]
        with_time = [b for b in ordered if b.min_tick <= b.max_tick]
        if not with_time:
            continue
        threads.append(
            ThreadLog(
                pid,
                tid,
                min(b.min_tick for b in with_time),
                max(b.max_tick for b in with_time),
                sum(b.n_rows for b in ordered),
                partial(_pieces, file.data, file.header, ordered, file.ids),
                partial(_pieces, file.data, file.header, before, file.ids) if (before := ordered[0].before) else None,
            )
        )
    return threads


def _pieces(data: memoryview, header: Header, buffers: list[Buffer], ids: Ids) -> Iterator[Piece]:
    extents = sorted((buffer.begin, buffer.end) for buffer in buffers)
    # Before version 5 an event's time is checked against the records around it: they must be in one piece.
    n_rows = SCRATCH if header.version >= 5 else max(sum(b.n_rows for b in buffers), sum(b.n_aux for b in buffers), 1)
    enters = ids.kinds[[Function.ENTER, Function.ENTER_ARG]]
    before = NO_KIND
    for c in decode_pieces(data, header, buffers, ids, n_rows):
        arguments = np.flatnonzero(c.aux_kind == Metadata.CALL_ARGUMENT)
        rows, has_entry = rows_of_arguments(c.kind, c.aux_row[arguments], before, enters)
        cpus = np.flatnonzero(c.aux_kind == Metadata.NEW_CPU_ID)
        events, n_guessed = _events(data, header, c, extents)
        cpu = c.aux_value[cpus].astype(np.uint16)
        n_stray = int(len(arguments) - has_entry.sum())
        aside = Aside(c.aux_value[arguments[has_entry]], c.aux_ticks[cpus], cpu, events, n_stray, n_guessed)
        before = int(c.kind[-1]) if len(c.kind) else before
        yield Piece(c.ticks, c.value, c.kind, rows, aside)


def _events(data: memoryview, header: Header, c: Columns, extents: list[tuple[int, int]]) -> tuple[list[Event], int]:
    """Returns custom and typed events, and how many of them have no usable time.

    The v3 writer never stores a custom event's TSC (a pointer bug), so before v5 it counts only where it lies between
    its neighbours; else the event is placed at the record before it.
    """
    rows = np.flatnonzero((c.aux_kind == Metadata.CUSTOM_EVENT) | (c.aux_kind == Metadata.TYPED_EVENT))
    begins = np.array([begin for begin, _ in extents], np.int64)
    events: list[Event] = []
    n_guessed = 0
    for i in rows.tolist():
        at, row, ticks = int(c.aux_value[i]), int(c.aux_row[i]), int(c.aux_ticks[i])
        end = extents[int(np.searchsorted(begins, at, "right")) - 1][1]
        kind = Metadata(int(c.aux_kind[i]))
        size, *_, last = struct.unpack_from(metadata_format(kind, header), data, at + 1)
        if header.version < 5:
            low = int(c.ticks[row - 1]) if row else 0
            high = int(c.ticks[row]) if row < len(c.ticks) else MAX_TICK
            before = int(c.aux_ticks[i - 1]) if i else 0
            if not low <= ticks <= high:
                n_guessed += 1
                ticks = max(low, before if low <= before <= high else low)
        payload = bytes(data[at + METADATA_SIZE : min(at + METADATA_SIZE + size, end)])
        events.append(Event(last if kind == Metadata.TYPED_EVENT else None, ticks, row, payload, size))
    return events, n_guessed
