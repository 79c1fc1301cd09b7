"""The records of a log one by one, in file order: for `traceferry dump` and for detection."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from traceferry.importers.xray.decode import Gap, find_buffers
from traceferry.importers.xray.layout import (
    BASIC_ARGUMENT,
    BASIC_KINDS,
    BASIC_NORMAL,
    BASIC_SIZE,
    FUNCTION_SIZE,
    HEADER_SIZE,
    METADATA_RECORDS,
    METADATA_SIZE,
    Function,
    Header,
    Metadata,
    basic_record,
    metadata_byte,
    metadata_format,
)
from traceferry.importers.xray.magic import TYPE_FDR

FUNCTION_NAMES = {Function.ENTER: "Enter", Function.EXIT: "Exit", Function.TAIL_EXIT: "TailExit",
                  Function.ENTER_ARG: "EnterArg"}  # fmt: skip


def first_record_is_plausible(head: memoryview, header: Header) -> bool:
    """Strict: an XRay header is only four bytes that look like small numbers."""
    if not 0 < header.cycle_frequency < 1 << 40:
        return False
    if len(head) == HEADER_SIZE:
        return True
    first = head[HEADER_SIZE]
    if header.type == TYPE_FDR:
        expected = Metadata.NEW_BUFFER if header.version == 1 else Metadata.BUFFER_EXTENTS
        return first == metadata_byte(expected, header.big)
    if len(head) < HEADER_SIZE + BASIC_SIZE:
        return True
    (record,) = struct.unpack_from(header.order + "H", head, HEADER_SIZE)
    return record == BASIC_NORMAL and head[HEADER_SIZE + 3] < BASIC_KINDS


def describe_header(header: Header) -> str:
    flags = [name for name in ("constant_tsc", "nonstop_tsc") if getattr(header, name)]
    order = "big" if header.big else "little"
    size = f" buffer_size={header.buffer_size}" if header.type == TYPE_FDR else ""
    return (
        f"{0:#010x}  XRayFileHeader {header.mode} version={header.version} {order}-endian "
        f"cycle_frequency={header.cycle_frequency}{size} {' '.join(flags)}".rstrip()
    )


def records(data: memoryview, header: Header, offset: int) -> Iterator[str]:
    if header.type != TYPE_FDR:
        yield from _basic_records(data, header, offset)
        return
    for found in find_buffers(data, header):
        if isinstance(found, Gap):
            if found.end > offset:
                yield f"{found.begin:#010x}  no buffer: {found.end - found.begin} bytes skipped"
            continue
        if found.end <= offset:
            continue
        if header.version > 1 and found.begin - METADATA_SIZE >= offset:
            yield _line(found.begin - METADATA_SIZE, f"BufferExtents size={found.end - found.begin}")
        for at, text in _buffer_records(data, header, found.begin, found.end):
            if at >= offset:
                yield _line(at, text)


def _line(at: int, text: str) -> str:
    return f"{at:#010x}  {text}"


def _buffer_records(data: memoryview, header: Header, at: int, end: int) -> Iterator[tuple[int, str]]:
    while at < end:
        is_metadata = data[at] & 0x80 if header.big else data[at] & 1
        size = METADATA_SIZE if is_metadata else FUNCTION_SIZE
        if at + size > end:
            yield at, f"cut: {end - at} bytes of a record of {size}"
            return
        if not is_metadata:
            yield at, _function_text(data, header, at)
            at += size
            continue
        kind = data[at] & 0x7F if header.big else data[at] >> 1
        if kind not in METADATA_RECORDS:
            yield at, f"unknown metadata kind {kind}; the rest of the buffer is not read"
            return
        kind = Metadata(kind)
        text, _, names = METADATA_RECORDS[kind]
        values = struct.unpack_from(metadata_format(kind, header), data, at + 1)
        fields = dict(zip(names, values, strict=False))
        text += "".join(f" {name}={value}" for name, value in fields.items())
        if kind == Metadata.END_OF_BUFFER:
            yield at, f"{text}; {end - at - size} stale bytes follow"
            return
        payload = fields["size"] if kind in (Metadata.CUSTOM_EVENT, Metadata.TYPED_EVENT) else 0
        if payload < 0:
            yield at, f"{text}; the rest of the buffer is not read"
            return
        if payload:
            shown = bytes(data[at + size : min(at + size + payload, end)])
            text += f" payload={shown[:64].hex()}{'...' if len(shown) > 64 else ''}"
            if at + size + payload > end:
                text += f" cut: {len(shown)} of {payload} bytes"
        yield at, text
        at += size + payload


def _function_text(data: memoryview, header: Header, at: int) -> str:
    word, delta = struct.unpack_from(header.order + "II", data, at)
    kind, function = (word >> 28, word & 0x0FFFFFFF) if header.big else (word >> 1 & 7, word >> 4)
    name = FUNCTION_NAMES[Function(kind)] if kind < BASIC_KINDS else f"unknown function kind {kind}"
    return f"{name} function={function} delta={delta}"


def _basic_records(data: memoryview, header: Header, offset: int) -> Iterator[str]:
    layout = basic_record(header.order)
    first = max(0, offset - HEADER_SIZE + BASIC_SIZE - 1) // BASIC_SIZE
    for at in range(HEADER_SIZE + first * BASIC_SIZE, len(data), BASIC_SIZE):
        if at + BASIC_SIZE > len(data):
            yield _line(at, f"cut: {len(data) - at} bytes of a record of {BASIC_SIZE}")
            return
        yield _line(at, _basic_text(np.frombuffer(data, layout, 1, at)[0]))


def _basic_text(record: np.void) -> str:
    if record["record"] == BASIC_NORMAL and record["kind"] < BASIC_KINDS:
        name = FUNCTION_NAMES[Function(record["kind"])]
        fields = ("func", "tsc", "cpu", "tid", "pid")
        return f"{name} " + " ".join(f"{field}={record[field]}" for field in fields)
    if record["record"] == BASIC_ARGUMENT:
        return f"Argument func={record['func']} tid={record['argument_tid']} value={record['argument']}"
    return f"unknown record type {record['record']} kind {record['kind']}"
