"""Writes GSYM files: version 1 as LLVM 19 writes and reads it, version 2 as LLVM's main branch reads it.

The same functions give the same bytes.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from traceferry.common.errors import UsageError
from traceferry.files.output import Sink
from traceferry.model import Array
from traceferry.symbolication.function_table import FunctionTable, table_of
from traceferry.symbolication.gsym._writing import Infos
from traceferry.symbolication.gsym.layout import (
    ADDRESS_SIZES,
    HEADER,
    HEADER_REST,
    MAGIC,
    MAX_UUID_V1,
    OFFSET_SIZES,
    SECTION,
    Section,
    SectionKind,
)
from traceferry.symbolication.interface import Function

# ---------------------------------------------------------------- layout

# Longer build ids do not fit into version 1.
VERSIONS = (1, 2)
MAX_V1 = 1 << 32  # bytes: offsets have 32 bits

MAX_SIZE = 1 << 32
MAX_ADDRESS = 1 << 64


@dataclass(frozen=True)
class Written:
    """n_functions: in the file; n_left_out: those that the format cannot hold: without a name, below the base, of 4 GiB
    or more; n_bytes: of the file."""

    n_functions: int
    n_left_out: int
    n_bytes: int


def write(
    out: Sink,
    functions: Iterable[Function] | FunctionTable,
    *,
    uuid: bytes,
    base: int,
    version: int = 1,
    big: bool = False,
) -> Written:
    """Writes the functions, in any order.

    Of functions with the same range the one with most debug information stays, of equal ones the last; one of size 0
    gives way to one that holds its address. Inlined calls that are not inside the function, or inside the call around
    them, are left out, and so are those inlined more than 128 deep. A call without a source is written, but makes no
    frame: so the format has it.

    uuid: the build id, b"" is none; base: what addresses count from, the lowest that is loaded; big: the byte order.
    Raises UsageError if version 1 cannot hold a uuid of this length, or for files of 4 GiB.
    """  # fmt: skip
    table, n_given = fitting(functions, base)
    kept = distinct(table)
    order = ">" if big else "<"
    tables = Tables(order + ADDRESS_SIZES[OFFSET_SIZES[version]])
    infos = Infos(table, tables, OFFSET_SIZES[version], big)
    places = infos.write(kept)
    offsets = table.start[kept] - np.uint64(base)
    n_bytes = write_file(out, version, order, base, uuid, offsets, places, tables, infos.content())
    return Written(len(kept), n_given - len(table), n_bytes)


def write_fitting(
    out: io.BytesIO | BinaryIO, functions: Iterable[Function] | FunctionTable, *, uuid: bytes, base: int, big: bool
) -> None:
    """Writes the oldest version that holds the functions: see `write`. Raises UsageError if none does."""
    given = functions if isinstance(functions, FunctionTable) else list(functions)
    for version in VERSIONS:
        try:
            out.seek(0)
            write(out, given, uuid=uuid, base=base, version=version, big=big)
            return
        except UsageError:
            if version == VERSIONS[-1]:
                raise


def fitting(functions: Iterable[Function] | FunctionTable, base: int) -> tuple[FunctionTable, int]:
    """Returns (the functions that the format can hold, how many were given)."""
    if isinstance(functions, FunctionTable):
        fits = (functions.name >= 0) & (functions.start >= base) & (functions.size < MAX_SIZE)
        return functions.taken(fits), len(functions)
    given = list(functions)
    return table_of(f for f in given if f.name and base <= f.start < MAX_ADDRESS and 0 <= f.size < MAX_SIZE), len(given)


def distinct(table: FunctionTable) -> Array:
    """Returns the numbers of functions by address: of each range one, the richest."""
    n_rows = table.end_row - table.first_row
    order = np.lexsort((n_rows, direct_calls(table), table.size, table.start))
    start, size = table.start[order], table.size[order]
    is_replaced = (start[1:] == start[:-1]) & ((size[1:] == size[:-1]) | (size[:-1] == 0))
    kept: Array = order[np.append(~is_replaced, True)[: len(order)]]
    return kept


def direct_calls(table: FunctionTable) -> Array:
    """Returns how many calls are inlined into each function itself."""
    is_direct = np.cumsum(np.append(np.int64(0), table.calls.depth == 1))
    n: Array = is_direct[table.end_call] - is_direct[table.first_call]
    return n


# ---------------------------------------------------------------- strings and files


@dataclass
class Tables:
    """Each text and each path once. offset: how a string offset is packed."""

    offset: str
    strings: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    files: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    _offsets: dict[str, int] = field(default_factory=lambda: {"": 0})
    _numbers: dict[str, int] = field(default_factory=lambda: {"": 0})
    _unknown: int = 0

    def string(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self.strings)
            # A zero would end the text here.
            self.strings += text.replace("\0", "\ufffd").encode("utf-8", "replace") + b"\0"
        return self._offsets[text]

    def file(self, path: str) -> int:
        if path not in self._numbers:
            folder, _, name = path.rpartition("/")
            self._numbers[path] = len(self.files)
            # Readers join the two with the folder's own separator, if there is a folder.
            if not folder or ("\\" in folder and "/" not in folder):
                folder, name = "", path
            self.files.append((self.string(folder), self.string(name)))
        return self._numbers[path]

    def row_file(self, path: str) -> int:
        """Returns the file number of a row. llvm-gsymutil takes file 0 for an address that is not in the line table at
        all, and then says nothing of the function: a row without a source has an empty file of another number."""
        if path:
            return self.file(path)
        if not self._unknown:
            self._unknown = len(self.files)
            self.files.append((0, 0))
        return self._unknown

    def packed_files(self) -> bytes:
        places = [offset for file in self.files for offset in file]
        packed = struct.pack(f"{self.offset[0]}{len(places)}{self.offset[1:]}", *places)
        return struct.pack(self.offset[0] + "I", len(self.files)) + packed


# ---------------------------------------------------------------- files


def write_file(
    out: Sink,
    version: int,
    order: str,
    base: int,
    uuid: bytes,
    offsets: Array,
    places: Array,
    tables: Tables,
    infos: bytes,
) -> int:
    """Writes the header, in version 2 the list of sections, and the sections, of which version 1 has the same tables;
    returns how many bytes. offsets: of the functions, uint64, from `base`; places: of their infos, int64. Info offsets
    count from the file in version 1, else from the first info."""  # fmt: skip
    if version == 1 and len(uuid) > MAX_UUID_V1:
        raise UsageError(f"a build id of {len(uuid)} bytes does not fit into GSYM version 1, which holds at most 20")
    size = next(size for size in ADDRESS_SIZES if not len(offsets) or int(offsets[-1]) < 1 << 8 * size)
    offset_size = OFFSET_SIZES[version]
    head_size = struct.calcsize(order + HEADER)
    contents: list[tuple[SectionKind, int, bytes | bytearray]] = [
        *([(SectionKind.UUID, 1, uuid)] if uuid and version == 2 else []),
        (SectionKind.ADDRESS_OFFSETS, size, offsets.astype(f"{order}u{size}").tobytes()),
        (SectionKind.INFO_OFFSETS, offset_size, bytes(offset_size * len(offsets))),
        (SectionKind.FILE_TABLE, offset_size, tables.packed_files()),
        (SectionKind.STRING_TABLE, 1, tables.strings),
        (SectionKind.FUNCTION_INFOS, offset_size, infos),
    ]
    head_size += struct.calcsize(order + (HEADER_REST if version == 1 else SECTION * (len(contents) + 1)))
    end, sections = head_size, {}
    for kind, alignment, data in contents:
        sections[kind] = Section(kind, end + -end % alignment, len(data))
        end = sections[kind].offset + len(data)
    if version == 1 and end >= MAX_V1:
        raise UsageError("the symbols need 4 GiB or more, more than GSYM version 1 can address")
    head = struct.pack(order + HEADER, MAGIC, version, size, len(uuid) if version == 1 else 0, base, len(offsets))
    if version == 1:
        _, *strings = sections[SectionKind.STRING_TABLE]
        head += struct.pack(order + HEADER_REST, *strings, uuid)
    else:
        head += b"".join(struct.pack(order + SECTION, *section) for section in sections.values())
    first_info = sections[SectionKind.FUNCTION_INFOS].offset if version == 1 else 0
    out.write(head.ljust(head_size, b"\0"))
    end = head_size
    for kind, _, data in contents:
        if kind == SectionKind.INFO_OFFSETS:
            data = (places + first_info).astype(f"{order}u{offset_size}").tobytes()
        out.write(bytes(sections[kind].offset - end))
        out.write(data)
        end = sections[kind].offset + len(data)
    return end
