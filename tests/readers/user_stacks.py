"""An independent reader of what `perf record --call-graph dwarf` leaves behind: registers, stack dumps, mappings.

Little endian, one event, uncompressed files: what the shared recordings are. And of jitdumps: loads with their
unwinding information.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

# PERF_SAMPLE_*: those that stand in front of what is wanted.
IP, TID, TIME, ADDR, ID, CPU, PERIOD, STREAM_ID, IDENTIFIER = (1 << n for n in (0, 1, 2, 3, 6, 7, 8, 9, 16))
CALLCHAIN = 1 << 5
MMAP, COMM, FORK, SAMPLE, MMAP2 = 1, 3, 7, 9, 10


@dataclass(frozen=True)
class Event:
    """order: in the file; kind: map, fork, exec, sample or code; the rest as the kind wants it."""

    ts: int
    order: int
    kind: str
    pid: int
    values: dict[str, object] = field(default_factory=dict)

    def __getitem__(self, name: str) -> int:
        return self.values[name]  # type: ignore[return-value]


@dataclass(frozen=True)
class UserStackRecording:
    """registers: bits of the mask, rising; events by time."""

    data: bytes
    registers: list[int]
    events: list[Event]


def read(data: bytes) -> UserStackRecording:
    attr_size, attr_at = struct.unpack_from("<QQ", data, 16)
    data_at, data_size = struct.unpack_from("<QQ", data, 40)
    assert attr_size >= 96
    (sample_type,) = struct.unpack_from("<Q", data, attr_at + 24)
    (mask,) = struct.unpack_from("<Q", data, attr_at + 80)
    registers = [bit for bit in range(64) if mask >> bit & 1]
    events = list(_events(data, data_at, data_at + data_size, sample_type, len(registers)))
    return UserStackRecording(data, registers, sorted(events, key=lambda event: (event.ts, event.order)))


def _events(data: bytes, at: int, end: int, sample_type: int, n_registers: int) -> Iterator[Event]:
    order = 0
    while at < end:
        kind, misc, size = struct.unpack_from("<IHH", data, at)
        order += 1
        if kind in (MMAP, MMAP2):
            pid, _, start, length, offset = struct.unpack_from("<iiQQQ", data, at + 8)
            protection = struct.unpack_from("<I", data, at + 64)[0] if kind == MMAP2 else 3 if misc & 0x2000 else 4
            name = data[at + (72 if kind == MMAP2 else 40) : at + size].split(b"\0")[0].decode()
            yield Event(_trailing_ts(data, at + size, sample_type), order, "map", pid, {
                "start": start, "end": start + length, "offset": offset, "is_exec": protection & 4, "path": name,
            })  # fmt: skip
        elif kind == FORK:
            pid, parent, _, _, ts = struct.unpack_from("<iiiiQ", data, at + 8)
            if pid != parent:
                yield Event(ts, order, "fork", pid, {"parent": parent})
        elif kind == COMM and misc & 0x2000:
            (pid,) = struct.unpack_from("<i", data, at + 8)
            yield Event(_trailing_ts(data, at + size, sample_type), order, "exec", pid)
        elif kind == SAMPLE:
            yield _sample(data, at, order, misc & 7, sample_type, n_registers)
        at += size


def _trailing_ts(data: bytes, end: int, sample_type: int) -> int:
    behind = sum(8 for bit in (ID, STREAM_ID, CPU, IDENTIFIER) if sample_type & bit)
    return int(struct.unpack_from("<Q", data, end - behind - 8)[0])


def _sample(data: bytes, at: int, order: int, mode: int, sample_type: int, n_registers: int) -> Event:
    p = at + 8 + sum(8 for bit in (IDENTIFIER, IP) if sample_type & bit)
    pid, tid, ts = struct.unpack_from("<iiQ", data, p)
    p += 16 + sum(8 for bit in (ADDR, ID, STREAM_ID, CPU, PERIOD) if sample_type & bit)
    if sample_type & CALLCHAIN:
        p += 8 + 8 * struct.unpack_from("<Q", data, p)[0]
    (abi,) = struct.unpack_from("<Q", data, p)
    registers_at = p + 8
    p = registers_at + (8 * n_registers if abi else 0)
    (size,) = struct.unpack_from("<Q", data, p)
    n_real = struct.unpack_from("<Q", data, p + 8 + size)[0] if size else 0
    return Event(ts, order, "sample", pid, {
        "tid": tid, "abi": abi, "registers_at": registers_at, "dump_at": p + 8, "size": size, "n_real": n_real,
        "is_kernel_mode": mode == 1,
    })  # fmt: skip


def read_code(data: bytes) -> Iterator[Event]:
    """The loads of a jitdump that have unwinding information: blob, and the size of its `.eh_frame`."""
    at = struct.unpack_from("<I", data, 8)[0]
    blob, frame_size = b"", 0
    while at + 16 <= len(data):
        kind, size, ts = struct.unpack_from("<IIQ", data, at)
        if size < 16:
            return
        if kind == 4:
            unwinding_size, header_size, _ = struct.unpack_from("<QQQ", data, at + 16)
            blob, frame_size = data[at + 40 : at + 40 + unwinding_size], unwinding_size - header_size
        elif kind == 0:
            pid, _, _, address, code_size, _ = struct.unpack_from("<IIQQQQ", data, at + 16)
            if frame_size > 0 and any(blob[:frame_size]):
                yield Event(ts, at, "code", pid, {
                    "start": address, "size": code_size, "blob": blob, "frame_size": frame_size,
                })  # fmt: skip
            blob, frame_size = b"", 0
        at += size
