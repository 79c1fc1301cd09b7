"""Build ids: of a file, and as the viewers want them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

NT_GNU_BUILD_ID = 3
HEADER_BYTES = 64
# A debug id holds 16 bytes of a build id, perf records 20.
DEBUG_ID_DIGITS, RECORDED_DIGITS = 32, 40
CODE = 1  # both PT_LOAD and SHT_PROGBITS


@dataclass(frozen=True)
class _Table:
    """Offsets of the fields of an ELF header that describe a table, and of those of its entries that describe notes.
    note: the type."""

    table_at: int
    counts: int
    word: str
    type_at: int
    note: int
    offset_at: int
    size_at: int


# Program headers (PT_NOTE), then sections (SHT_NOTE): what `perf inject` writes has notes in sections only.
TABLES = {
    1: (_Table(28, 42, "I", 0, 4, 4, 16), _Table(32, 46, "I", 4, 7, 16, 20)),
    2: (_Table(32, 54, "Q", 0, 4, 8, 32), _Table(40, 58, "Q", 4, 7, 24, 32)),
}


class Bytes(Protocol):
    """A memoryview, or what reads parts of a file elsewhere as they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> memoryview | bytes: ...


def build_id_of(data: Bytes) -> str:
    """Returns the build id of an ELF file in hex; "" if it has none. Only headers and notes are read, which costs far
    less than a library that reads all of the file: most files of a recording are not those of this machine."""
    try:
        header = bytes(data[:HEADER_BYTES])
        if header[:4] != b"\x7fELF":
            return ""
        order = "<" if header[5] == 1 else ">"
        for table in TABLES.get(header[4], ()):
            for notes in _notes(data, order, table):
                found = build_id_in(notes, order)
                if found:
                    return found
    except (struct.error, IndexError, OverflowError):
        pass
    return ""


def _notes(data: Bytes, order: str, table: _Table) -> Iterator[bytes]:
    """Yields notes, no more bytes together than the file has: those of an undamaged file do not overlap."""
    left = len(data)
    for begin, size in _parts(data, order, table, table.note):
        size = min(size, left)
        left -= size
        if size:
            yield bytes(data[begin : begin + size])


def _parts(data: Bytes, order: str, table: _Table, kind: int) -> Iterator[tuple[int, int]]:
    """Yields (offset, size) of the contents of the entries of this type."""
    header = data[:HEADER_BYTES]
    (at,) = struct.unpack_from(order + table.word, header, table.table_at)
    entry_size, n_entries = struct.unpack_from(order + "HH", header, table.counts)
    entries = data[at : at + n_entries * entry_size]
    for entry in (nth * entry_size for nth in range(n_entries)):
        if struct.unpack_from(order + "I", entries, entry + table.type_at)[0] == kind:
            (begin,) = struct.unpack_from(order + table.word, entries, entry + table.offset_at)
            (size,) = struct.unpack_from(order + table.word, entries, entry + table.size_at)
            yield begin, size


def has_code_at(data: memoryview, begin: int, end: int) -> bool:
    """Whether the code of an ELF file, or what follows it for unwinding, lies exactly there in the file."""
    try:
        if bytes(data[:4]) != b"\x7fELF":
            return False
        order = "<" if data[5] == 1 else ">"
        parts = [part for table in TABLES.get(data[4], ()) for part in _parts(data, order, table, CODE)]
    except (struct.error, IndexError, OverflowError):
        return False
    return any(at == begin for at, _ in parts) and any(at + size == end for at, size in parts)


def build_id_in(notes: bytes, byte_order: str) -> str:
    """Returns the build id among some ELF notes, in hex; "" if there is none."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(byte_order + "III", notes, at)
        begin = at + 12 + (name_size + 3 & ~3)
        if kind == NT_GNU_BUILD_ID and notes[at + 12 : at + 15] == b"GNU":
            return notes[begin : begin + size].hex()
        at = begin + (size + 3 & ~3)
    return ""


def debug_id_of(build_id: str, big_endian: bool = False) -> str:
    """Breakpad's form of a build id in hex: its first 16 bytes as a Microsoft GUID, whose numbers are in the byte order
    of the file that it is of, and an age of 0."""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    if not big_endian:
        raw = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]
    return raw.hex().upper() + "0"


def is_same_build(one: str, other: str) -> bool:
    """Whether two build ids in hex are of one file. An id from a debug id has the first 16 bytes only; perf records at
    most 20, and rounds their number up to a multiple of 4; each is filled up with zeros."""
    if not (one and other):
        return False
    is_from_debug_id = DEBUG_ID_DIGITS in (len(one), len(other))
    if is_from_debug_id and debug_id_of(one) == debug_id_of(other):
        return True
    is_cut = min(len(one), len(other)) <= RECORDED_DIGITS
    return one == other or (is_cut and _recorded(one) == _recorded(other))


def _recorded(build_id: str) -> str:
    return build_id[:RECORDED_DIGITS].ljust(RECORDED_DIGITS, "0")
