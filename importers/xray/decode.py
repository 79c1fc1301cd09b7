"""Decode: the bytes of an FDR log into buffers, and a thread's buffers into pieces of columns, in the specification's
terms."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.importers.xray._fdr import Decoder, Ids
from traceferry.importers.xray.layout import HEADER_SIZE, METADATA_SIZE, Header, Metadata, metadata_byte
from traceferry.model import Array

SCRATCH = 1 << 15  # rows that stay in the cache
MAX_TICK = 2**63 - 1


@dataclass
class Buffer:
    """One thread buffer: where it lies in the file, whose it is, and how much it holds.

    begin, end: offsets of its records; first_tsc: the first absolute TSC, None where it has none (v1, v2 runtimes);
    base_tick: the tick that its first delta adds to; n_metadata: how many of each Metadata kind;
    status: how its decoding ended, see `Decoder.status`; stopped_at: the offset there; truncated: the file ends in it;
    repaired: its size was damaged, and its end is where the next one begins; before: what the thread that a forked
    process goes on with had recorded by the fork.
    """

    begin: int
    end: int
    tid: int | None = None
    pid: int | None = None
    walltime_ns: int | None = None
    first_tsc: int | None = None
    base_tick: int = 0
    last_tick: int = 0
    min_tick: int = MAX_TICK
    max_tick: int = -1
    n_rows: int = 0
    n_aux: int = 0
    n_metadata: Array = field(default_factory=lambda: np.zeros(10, np.int64))
    status: str = "whole"
    stopped_at: int = 0
    truncated: bool = False
    repaired: bool = False
    before: list[Buffer] = field(default_factory=list)

    @property
    def size(self) -> int:
        return self.end - self.begin


@dataclass
class Gap:
    """Bytes between two buffers that belong to no buffer."""

    begin: int
    end: int


class Columns(NamedTuple):
    """Function records: int64 ticks, int32 value (of the id), uint8 kind (as `Ids.assign` wants
    it). Metadata: see `Decoder.decode`."""

    ticks: Array
    value: Array
    kind: Array
    aux_kind: Array
    aux_row: Array
    aux_ticks: Array
    aux_value: Array

    @classmethod
    def empty(cls, n_rows: int, n_aux: int) -> Columns:
        rows, aux = (np.int64, np.int32, np.uint8), (np.uint8, np.int64, np.int64, np.uint64)
        return cls._make([*(np.empty(n_rows, dtype) for dtype in rows), *(np.empty(n_aux, dtype) for dtype in aux)])

    def first(self, n_rows: int, n_aux: int) -> Columns:
        return Columns._make([*(column[:n_rows] for column in self[:3]), *(column[:n_aux] for column in self[3:])])


# ---------------------------------------------------------------- finding the buffers


def find_buffers(data: memoryview, header: Header, at: int = HEADER_SIZE) -> Iterator[Buffer | Gap]:
    """Yields the thread buffers from `at` on in file order, and the gaps between them."""
    if header.version == 1:
        yield from _fixed_size_buffers(data, header, at)
    else:
        yield from _buffers_by_extents(data, header, at)


def begins_another(data: memoryview, header: Header, buffer: Buffer) -> bool:
    """Whether the decoding of a buffer stopped at the beginning of the next: then its extents were damaged."""
    if header.version == 1 or buffer.status != "unknown_kind":
        return False
    return _start_pattern(header).match(data, buffer.stopped_at) is not None


def _fixed_size_buffers(data: memoryview, header: Header, at: int) -> Iterator[Buffer | Gap]:
    """Yields those of v1: each buffer takes buffer_size bytes; after EndOfBuffer the rest is stale memory."""
    size = header.buffer_size
    if size < 2 * METADATA_SIZE:
        size = max(len(data) - HEADER_SIZE, 1)
    new_buffer = metadata_byte(Metadata.NEW_BUFFER, header.big)
    for begin in range(at, len(data), size):
        end = min(begin + size, len(data))
        if data[begin] == new_buffer:
            yield Buffer(begin, end, truncated=begin + size > len(data))
        else:
            yield Gap(begin, end)


def _buffers_by_extents(data: memoryview, header: Header, at: int) -> Iterator[Buffer | Gap]:
    """Yields those of v2 and later: BufferExtents says how many bytes follow. They can be too few (typed events), never
    too many."""
    big, n = header.big, len(data)
    extents = metadata_byte(Metadata.BUFFER_EXTENTS, big)
    starts = _start_pattern(header)
    while at < n:
        if n - at < METADATA_SIZE:
            yield Buffer(at, n, truncated=True)
            return
        if data[at] != extents:
            found = starts.search(data, at + 1)
            next_at = found.start() if found else n
            yield Gap(at, next_at)
            at = next_at
            continue
        (size,) = struct.unpack_from(header.order + "Q", data, at + 1)
        begin = at + METADATA_SIZE
        end = begin + size
        if end > n:
            # Either the file was cut or this size is damaged: then another buffer starts before the end.
            found = starts.search(data, begin)
            end = found.start() if found else n
            yield Buffer(begin, end, truncated=not found, repaired=bool(found))
        else:
            yield Buffer(begin, end)
        at = end


def _start_pattern(header: Header) -> re.Pattern[bytes]:
    """Returns what matches the start of a buffer: BufferExtents NewBuffer Walltime (v2), then Pid (v3+), by their first
    bytes."""
    kinds = [Metadata.BUFFER_EXTENTS, Metadata.NEW_BUFFER, Metadata.WALLTIME]
    if header.version >= 3:
        kinds.append(Metadata.PID)
    firsts = [re.escape(bytes([metadata_byte(kind, header.big)])) for kind in kinds]
    return re.compile(b".{15}".join(firsts), re.DOTALL)


# ---------------------------------------------------------------- scanning and decoding


def scan_buffer(data: memoryview, header: Header, buffer: Buffer, ids: Ids, scratch: Columns) -> None:
    """Fills in what the buffer holds, and adds its function ids to `ids`."""
    decoder = Decoder(data, header.big, header.version, ids)
    decoder.begin(buffer.begin, buffer.end, buffer.base_tick)
    is_full = True
    while is_full:
        decoder.n_rows = decoder.n_aux = 0
        is_full = decoder.decode(scratch)
        buffer.n_rows += decoder.n_rows
        buffer.n_aux += decoder.n_aux
        _note_metadata(data, header, buffer, scratch, decoder.n_aux)
    buffer.status, buffer.stopped_at, buffer.last_tick = decoder.status, decoder.at, decoder.tick
    buffer.min_tick, buffer.max_tick = decoder.min_tick, decoder.max_tick


def _note_metadata(data: memoryview, header: Header, buffer: Buffer, columns: Columns, n_aux: int) -> None:
    """Fills in the first of each: tid, pid, wall time, CPU with its TSC."""
    if n_aux == 0:
        return
    kinds = columns.aux_kind[:n_aux]
    buffer.n_metadata += np.bincount(kinds, minlength=10)
    first = {int(kind): int(row) for kind, row in zip(*np.unique(kinds, return_index=True), strict=True)}
    if buffer.tid is None and Metadata.NEW_BUFFER in first:
        buffer.tid = _signed32(int(columns.aux_value[first[Metadata.NEW_BUFFER]]))
    if buffer.pid is None and Metadata.PID in first:
        buffer.pid = _signed32(int(columns.aux_value[first[Metadata.PID]]))
    if buffer.walltime_ns is None and Metadata.WALLTIME in first:
        at = int(columns.aux_value[first[Metadata.WALLTIME]])
        seconds, micros = struct.unpack_from(header.order + "qi", data, at + 1)
        buffer.walltime_ns = seconds * 1_000_000_000 + micros * 1000
    if buffer.first_tsc is None and Metadata.NEW_CPU_ID in first:
        buffer.first_tsc = int(columns.aux_ticks[first[Metadata.NEW_CPU_ID]])


def _signed32(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def peek_tid(data: memoryview, header: Header, buffer: Buffer) -> int | None:
    """Returns the tid of the NewBuffer record that a buffer begins with."""
    if buffer.end - buffer.begin < METADATA_SIZE:
        return None
    if data[buffer.begin] != metadata_byte(Metadata.NEW_BUFFER, header.big):
        return None
    (tid,) = struct.unpack_from(header.order + "i", data, buffer.begin + 1)
    return int(tid)


def decode_pieces(data: memoryview, header: Header, buffers: list[Buffer], ids: Ids, n_rows: int) -> Iterator[Columns]:
    """Yields the records of one thread: its buffers, in the given order, at most n_rows of them at a time. The arrays
    are used again for the next piece."""
    columns = Columns.empty(n_rows, n_rows)
    decoder = Decoder(data, header.big, header.version, ids)
    for buffer in buffers:
        decoder.begin(buffer.begin, buffer.end, buffer.base_tick)
        while decoder.decode(columns):
            yield columns.first(decoder.n_rows, decoder.n_aux)
            decoder.n_rows = decoder.n_aux = 0
    yield columns.first(decoder.n_rows, decoder.n_aux)
