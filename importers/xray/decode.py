"""Decode: the bytes of an FDR log into buffers, and a thread's buffers into pieces of columns, in the specification's
terms."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.importers.xray import fdr_kernel
from traceferry.importers.xray.layout import (
    HEADER_SIZE,
    METADATA_SIZE,
    Function,
    Header,
    Metadata,
    metadata_byte,
)
from traceferry.model import Array

SLOT = fdr_kernel.STATE_SLOTS
STATUS = fdr_kernel.STATUS_CODES
STATUS_NAMES = {code: name for name, code in STATUS.items()}
SCRATCH = 1 << 15  # rows that stay in the cache
MAX_TICK = 2**63 - 1


@dataclass
class Buffer:
    """One thread buffer: where it lies in the file, whose it is, and how much it holds.

    begin, end: offsets of its records; first_tsc: the first absolute TSC, None where it has none (v1, v2 runtimes);
    base_tick: the tick that its first delta adds to; n_metadata: how many of each Metadata kind;
    status: how its decoding ended, a key of STATUS; stopped_at: the offset there; truncated: the file ends in it;
    repaired: its size was damaged, and its end is where the next one begins.
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


@dataclass
class Gap:
    """Bytes between two buffers that belong to no buffer."""

    begin: int
    end: int


class Columns(NamedTuple):
    """Function records: int64 ticks, int32 value (of the id), uint8 kind (as `Ids.assign` wants
    it). Metadata: see `fdr_kernel.decode`."""

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


class Ids:
    """The function ids of a log. After the scan, `assign` says what decoding writes for each id and each kind."""

    def __init__(self) -> None:
        self.kind_values = np.arange(4, dtype=np.uint8)
        self.keys = np.full(1 << 10, 0xFFFFFFFF, np.uint32)
        self.values = np.zeros(1 << 10, np.int32)
        self.n = 0

    @property
    def enters(self) -> Array:
        """What stands in the columns for a record that enters a function."""
        return self.kind_values[[Function.ENTER, Function.ENTER_ARG]]

    def arrays(self) -> tuple[Array, Array, Array]:
        return self.keys, self.values, self.kind_values

    def grow(self) -> None:
        used = self.keys != 0xFFFFFFFF
        keys, values = self.keys[used], self.values[used]
        n_slots = 2 * len(self.keys)
        self.keys = np.full(n_slots, 0xFFFFFFFF, np.uint32)
        self.values = np.zeros(n_slots, np.int32)
        shift = np.uint32(32 - (n_slots.bit_length() - 1))
        home = (keys * np.uint32(2654435769)) >> shift
        for key, value, slot in zip(keys.tolist(), values.tolist(), home.tolist(), strict=True):
            while self.keys[slot] != 0xFFFFFFFF:
                slot = (slot + 1) & (n_slots - 1)
            self.keys[slot] = key
            self.values[slot] = value

    def in_order(self) -> list[int]:
        """The ids in the order of their first appearance."""
        used = np.flatnonzero(self.keys != 0xFFFFFFFF)
        order = used[np.argsort(self.values[used])]
        return [int(key) for key in self.keys[order]]

    def assign(self, value_of_nth: Array, kind_values: Array) -> None:
        """value_of_nth: int32, for each id in the order of `in_order`; kind_values: uint8, for each Function kind."""
        self.kind_values = kind_values
        used = self.keys != 0xFFFFFFFF
        self.values[used] = value_of_nth[self.values[used]]


# ---------------------------------------------------------------- finding the buffers


def find_buffers(data: memoryview, header: Header, at: int = HEADER_SIZE) -> Iterator[Buffer | Gap]:
    """The thread buffers from `at` on in file order, and the gaps between them."""
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
    """v1: each buffer takes buffer_size bytes; after EndOfBuffer the rest is stale memory."""
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
    """v2+: BufferExtents says how many bytes follow. They can be too few (typed events), never too many."""
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
    """BufferExtents NewBuffer Walltime (v2), then Pid (v3+), by their first bytes."""
    kinds = [Metadata.BUFFER_EXTENTS, Metadata.NEW_BUFFER, Metadata.WALLTIME]
    if header.version >= 3:
        kinds.append(Metadata.PID)
    firsts = [re.escape(bytes([metadata_byte(kind, header.big)])) for kind in kinds]
    return re.compile(b".{15}".join(firsts), re.DOTALL)


# ---------------------------------------------------------------- scanning and decoding


def scan_buffer(data: memoryview, header: Header, buffer: Buffer, ids: Ids, scratch: Columns) -> None:
    """Fills in what the buffer holds, and adds its function ids to `ids`."""
    state = _state(buffer)
    while True:
        state[SLOT["n_rows"]] = state[SLOT["n_aux"]] = 0
        before = int(state[SLOT["pos"]])
        state[SLOT["n_ids"]] = ids.n
        fdr_kernel.decode(data, header.big, header.version, state, *ids.arrays(), *scratch)
        ids.n = int(state[SLOT["n_ids"]])
        n_rows, n_aux = int(state[SLOT["n_rows"]]), int(state[SLOT["n_aux"]])
        buffer.n_rows += n_rows
        buffer.n_aux += n_aux
        _note_metadata(data, header, buffer, scratch, n_aux)
        status = STATUS_NAMES[int(state[SLOT["status"]])]
        if status == "ids_full":
            ids.grow()
        elif status not in ("rows_full", "aux_full"):
            break
        elif int(state[SLOT["pos"]]) == before:
            raise AssertionError("the scan does not advance")
    buffer.status = status
    buffer.stopped_at = int(state[SLOT["pos"]])
    buffer.last_tick = int(state[SLOT["tick"]])
    buffer.min_tick, buffer.max_tick = int(state[SLOT["min_tick"]]), int(state[SLOT["max_tick"]])


def _state(buffer: Buffer) -> Array:
    state = np.zeros(len(SLOT), np.int64)
    state[SLOT["pos"]] = buffer.begin
    state[SLOT["end"]] = buffer.end
    state[SLOT["tick"]] = buffer.base_tick
    state[SLOT["min_tick"]] = MAX_TICK
    state[SLOT["max_tick"]] = 0
    return state


def _note_metadata(data: memoryview, header: Header, buffer: Buffer, columns: Columns, n_aux: int) -> None:
    """The first of each: tid, pid, wall time, CPU with its TSC."""
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
    """The tid of the NewBuffer record that a buffer begins with."""
    if buffer.end - buffer.begin < METADATA_SIZE:
        return None
    if data[buffer.begin] != metadata_byte(Metadata.NEW_BUFFER, header.big):
        return None
    (tid,) = struct.unpack_from(header.order + "i", data, buffer.begin + 1)
    return int(tid)


def decode_pieces(data: memoryview, header: Header, buffers: list[Buffer], ids: Ids, n_rows: int) -> Iterator[Columns]:
    """The records of one thread: its buffers, in the given order, at most n_rows of them at a time. The arrays are
    used again for the next piece."""
    columns = Columns.empty(n_rows, n_rows)
    rows = aux = 0
    for buffer in buffers:
        state = _state(buffer)
        status = "rows_full"
        while status in ("rows_full", "aux_full"):
            state[SLOT["n_rows"]], state[SLOT["n_aux"]], state[SLOT["n_ids"]] = rows, aux, ids.n
            fdr_kernel.decode(data, header.big, header.version, state, *ids.arrays(), *columns)
            rows, aux = int(state[SLOT["n_rows"]]), int(state[SLOT["n_aux"]])
            status = STATUS_NAMES[int(state[SLOT["status"]])]
            if status in ("rows_full", "aux_full"):
                yield columns.first(rows, aux)
                rows = aux = 0
    yield columns.first(rows, aux)
