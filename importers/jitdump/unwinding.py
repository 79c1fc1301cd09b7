"""Decode: JIT_CODE_UNWINDING_INFO, the call-frame information of one load, or of all that were compiled together."""

from __future__ import annotations

import struct

from traceferry.importers.jitdump.layout import RECORD_HEADER_SIZE, Structs
from traceferry.model import CodeUnwinding

# DW_EH_PE_absptr and DW_EH_PE_sdata8: `.eh_frame_hdr` has the address of `.eh_frame` itself, not a distance.
ABSOLUTE = (0x00, 0x04, 0x0C)


def unwinding_of_load(data: memoryview, layout: Structs, at: int, address: int, size: int) -> CodeUnwinding | None:
    """Returns what the record in front of a load says of it. at: the record's offset; address, size: of the code. None
    where it is damaged, or where it is zeros, which V8 writes where it has nothing to tell."""
    parts = _parts(data, layout, at)
    if parts is None:
        return None
    record, header_size = parts
    if _begins_with_header(record, layout):
        return of_batch(data, layout, at, address)
    frame = record[: len(record) - header_size]
    return CodeUnwinding(frame, -(-size // 8) * 8, at) if any(frame) else None


def of_batch(data: memoryview, layout: Structs, at: int, address: int) -> CodeUnwinding | None:
    """Returns what a record says of one of the loads that follow it, or None. LLVM's ORC writes one for all functions
    that it compiled together: the header in front, with the address at which `.eh_frame` lies."""
    parts = _parts(data, layout, at)
    if parts is None or not _begins_with_header(parts[0], layout):
        return None
    record, header_size = parts
    if header_size < 12 or record[1] not in ABSOLUTE:
        return None
    (frame_at,) = struct.unpack_from(layout.word.format[0] + "Q", record, 4)
    return CodeUnwinding(record[header_size:], frame_at - address, at)


def _parts(data: memoryview, layout: Structs, at: int) -> tuple[memoryview, int] | None:
    """Returns (`.eh_frame` and `.eh_frame_hdr`, the size of the latter)."""
    _, record_size, _ = layout.record.unpack_from(data, at)
    payload = data[at + RECORD_HEADER_SIZE : at + record_size]
    if len(payload) < layout.unwinding.size:
        return None
    size, header_size, _ = layout.unwinding.unpack_from(payload)
    record = payload[layout.unwinding.size :][:size]
    return (record, header_size) if len(record) == size and 0 <= header_size < size else None


def _begins_with_header(record: memoryview, layout: Structs) -> bool:
    """Whether `.eh_frame_hdr` is in front, as the specification says: its version and encodings are no length that a
    record of `.eh_frame` can have here. Most write it behind, where perf reads it."""
    (length,) = layout.word.unpack_from(record) if len(record) >= 4 else (0,)
    return record[0] == 1 and int(length) > len(record)
