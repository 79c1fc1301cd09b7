"""Writes GSYM files: version 1 as LLVM 19 writes and reads it, version 2 as LLVM's main branch reads it.

The same functions give the same bytes.
"""

from __future__ import annotations

import io
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO

from traceferry.common.errors import UsageError
from traceferry.files.output import Sink
from traceferry.symbolication.gsym.layout import (
    ADDRESS_SIZES,
    HEADER,
    HEADER_REST,
    MAGIC,
    MAX_UUID_V1,
    OFFSET_SIZES,
    SECTION,
    InfoType,
    Section,
    SectionKind,
)
from traceferry.symbolication.interface import Function, Inline
from traceferry.symbolication.ranges import holder, merged

# ---------------------------------------------------------------- layout

# Longer build ids do not fit into version 1.
VERSIONS = (1, 2)
MAX_V1 = 1 << 32  # bytes: offsets have 32 bits

LINE_END = 0
LINE_SET_FILE = 1
LINE_ADVANCE_PC = 2
LINE_ADVANCE_LINE = 3
LINE_FIRST_SPECIAL = 4
# Special opcodes have a byte for both differences: the more lines they reach, the fewer addresses.
MAX_LINE_RANGE = 15
FIRST_FILE = 1  # that of the state in front of the first row

MAX_SIZE = 1 << 32
MAX_ADDRESS = 1 << 64
LINE_MASK = (1 << 32) - 1
MAX_INLINED = 128  # calls inlined into each other


@dataclass(frozen=True)
class Written:
    """n_functions: in the file; n_left_out: those that the format cannot hold: without a name, below the base, of 4 GiB
    or more; n_bytes: of the file."""

    n_functions: int
    n_left_out: int
    n_bytes: int


def write(
    out: Sink, functions: Iterable[Function], *, uuid: bytes, base: int, version: int = 1, big: bool = False
) -> Written:
    """Writes the functions, in any order.

    Of functions with the same range the one with most debug information stays, of equal ones the last; one of size 0
    gives way to one that holds its address. Inlined calls that are not inside the function, or inside the call around
    them, are left out, and so are those inlined more than 128 deep. A call without a source is written, but makes no
    frame: so the format has it.

    uuid: the build id, b"" is none; base: what addresses count from, the lowest that is loaded; big: the byte order.
    Raises UsageError if version 1 cannot hold a uuid of this length, or for files of 4 GiB.
    """
    given = list(functions)
    fitting = [f for f in given if f.name and base <= f.start < MAX_ADDRESS and 0 <= f.size < MAX_SIZE]
    kept = distinct(fitting)
    order = ">" if big else "<"
    tables = Tables(order + ADDRESS_SIZES[OFFSET_SIZES[version]])
    infos = Infos(order, tables)
    for function in kept:
        infos.add(function)
    offsets = [function.start - base for function in kept]
    file = file_of(version, order, base, uuid, offsets, infos)
    out.write(file)
    return Written(len(kept), len(given) - len(fitting), len(file))


def write_fitting(
    out: io.BytesIO | BinaryIO, functions: Iterable[Function], *, uuid: bytes, base: int, big: bool
) -> None:
    """Writes the oldest version that holds the functions: see `write`. Raises UsageError if none does."""
    given = list(functions)
    for version in VERSIONS:
        try:
            out.seek(0)
            write(out, given, uuid=uuid, base=base, version=version, big=big)
            return
        except UsageError:
            if version == VERSIONS[-1]:
                raise


def distinct(functions: Iterable[Function]) -> list[Function]:
    """Returns functions by address: of each range one, the richest."""
    kept: list[Function] = []
    for function in sorted(functions, key=richness):
        last = kept[-1] if kept else None
        end = function.start + function.size
        same = last is not None and (last.start, last.size) == (function.start, function.size)
        if same or (last is not None and last.size == 0 and function.start <= last.start < end):
            kept[-1] = function
        else:
            kept.append(function)
    return kept


def richness(function: Function) -> tuple[int, int, int, int]:
    """Returns what sorts functions by range, and the more debug information the later."""
    return function.start, function.size, len(function.inlines), len(function.lines)


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

    def packed_string(self, text: str) -> bytes:
        return struct.pack(self.offset, self.string(text))

    def packed_files(self) -> bytes:
        packed = [struct.pack(self.offset, offset) for file in self.files for offset in file]
        return struct.pack(self.offset[0] + "I", len(self.files)) + b"".join(packed)


# ---------------------------------------------------------------- function infos


@dataclass
class Infos:
    """The function infos, each at a multiple of four. offsets: of each, from the first."""

    order: str
    tables: Tables
    data: bytearray = field(default_factory=bytearray)
    offsets: list[int] = field(default_factory=list)

    def add(self, function: Function) -> None:
        self.data += bytes(-len(self.data) % 4)
        self.offsets.append(len(self.data))
        self.data += struct.pack(self.order + "I", function.size) + self.tables.packed_string(function.name)
        rows = rows_of(function, self.tables)
        if rows:
            self._add_data(InfoType.LINE_TABLE, line_table(function.start, rows))
        tree = self._inline_tree(function)
        if tree:
            self._add_data(InfoType.INLINE_TREE, tree)
        self._add_data(InfoType.END, b"")

    def _add_data(self, kind: int, data: bytes) -> None:
        self.data += struct.pack(self.order + "II", kind, len(data)) + data

    def _inline_tree(self, function: Function) -> bytes:
        """Returns the inline tree. The function itself is the root of what is inlined into it; b"" if nothing is."""
        whole = ((function.start, function.start + function.size),)
        children = self._nodes(function.inlines, whole, 1)
        if not children:
            return b""
        return self._node(Inline(function.name, whole, "", 0), whole, function.start, children)

    def _nodes(self, calls: Sequence[Inline], around: Sequence[tuple[int, int]], depth: int) -> bytes:
        """Returns the nodes of those of the calls that are inside the ranges around them, whose first address is their
        base."""
        nodes = b""
        for call in calls if depth <= MAX_INLINED else ():
            ranges = merged(r for r in call.ranges if holder(around, *r))
            if ranges:
                nodes += self._node(call, ranges, around[0][0], self._nodes(call.children, ranges, depth + 1))
        return nodes

    def _node(self, call: Inline, ranges: Sequence[tuple[int, int]], base: int, children: bytes) -> bytes:
        node = bytearray(uleb(len(ranges)))
        for begin, end in ranges:
            node += uleb(begin - base) + uleb(end - begin)
        node.append(bool(children))
        node += self.tables.packed_string(call.name)
        node += uleb(self.tables.file(call.call_source)) + uleb(call.call_line & LINE_MASK)
        return bytes(node + children + uleb(0) if children else node)


Row = tuple[int, int, int]


def rows_of(function: Function, tables: Tables) -> list[Row]:
    """Returns (address, file, line), the first at the function's start: readers give up where an address has no row."""
    end = function.start + function.size if function.size else MAX_ADDRESS
    rows: list[Row] = []
    for address, source, line in function.lines:
        if function.start <= address < end and (not rows or address >= rows[-1][0]):
            rows.append((address, tables.row_file(source), line & LINE_MASK))
    begins_late = bool(rows) and rows[0][0] > function.start
    return [(function.start, tables.row_file(""), 0), *rows] if begins_late else rows


def line_table(start: int, rows: Sequence[Row]) -> bytes:
    """Returns the opcodes that make the rows, with the smallest and the largest difference of lines that one byte
    holds."""
    low, high = special_lines([b[2] - a[2] for a, b in pairwise(rows)])
    n_lines = high - low + 1
    address, file, line = start, FIRST_FILE, rows[0][2]
    table = bytearray(sleb(low) + sleb(high) + uleb(line))
    for row_address, row_file, row_line in rows:
        advance, change = row_address - address, row_line - line
        if row_file != file:
            table.append(LINE_SET_FILE)
            table += uleb(row_file)
        special = LINE_FIRST_SPECIAL + advance * n_lines + change - low
        if low <= change <= high and special <= 255:
            table.append(special)
        else:
            if change:
                table.append(LINE_ADVANCE_LINE)
                table += sleb(change)
            table.append(LINE_ADVANCE_PC)
            table += uleb(advance)
        address, file, line = row_address, row_file, row_line
    table.append(LINE_END)
    return bytes(table)


def special_lines(changes: Sequence[int]) -> tuple[int, int]:
    """Returns (smallest, largest): the range of at most 15 lines that holds most of the changes."""
    counts = sorted(Counter(changes).items())
    best = (0, 0, 0)
    first = held = 0
    for change, count in counts:
        held += count
        while change - counts[first][0] >= MAX_LINE_RANGE:
            held -= counts[first][1]
            first += 1
        if held > best[0]:
            best = (held, counts[first][0], change)
    return best[1:]


def uleb(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def sleb(value: int) -> bytes:
    data = bytearray()
    while not -0x40 <= value < 0x40:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value & 0x7F)
    return bytes(data)


# ---------------------------------------------------------------- files


def file_of(version: int, order: str, base: int, uuid: bytes, offsets: Sequence[int], infos: Infos) -> bytes:
    """Returns the header, in version 2 the list of sections, and the sections, of which version 1 has the same tables.
    offsets: of the functions, from `base`. Info offsets count from the file in version 1, else from the first info."""
    if version == 1 and len(uuid) > MAX_UUID_V1:
        raise UsageError(f"a build id of {len(uuid)} bytes does not fit into GSYM version 1, which holds at most 20")
    size = next(size for size in ADDRESS_SIZES if not offsets or offsets[-1] < 1 << 8 * size)
    offset_size = OFFSET_SIZES[version]
    addresses = packed(order, ADDRESS_SIZES[size], offsets)
    sections = [
        *([(SectionKind.UUID, 1, uuid)] if uuid and version == 2 else []),
        (SectionKind.ADDRESS_OFFSETS, size, addresses),
        (SectionKind.INFO_OFFSETS, offset_size, bytes(offset_size * len(offsets))),
        (SectionKind.FILE_TABLE, offset_size, infos.tables.packed_files()),
        (SectionKind.STRING_TABLE, 1, bytes(infos.tables.strings)),
        (SectionKind.FUNCTION_INFOS, offset_size, bytes(infos.data)),
    ]
    n_head = struct.calcsize(order + HEADER)
    n_head += struct.calcsize(order + (HEADER_REST if version == 1 else SECTION * (len(sections) + 1)))
    file = bytearray(n_head)
    places = {}
    for kind, alignment, data in sections:
        file += bytes(-len(file) % alignment)
        places[kind] = Section(kind, len(file), len(data))
        file += data
    if version == 1 and len(file) >= MAX_V1:
        raise UsageError("the symbols need 4 GiB or more, more than GSYM version 1 can address")
    head = struct.pack(order + HEADER, MAGIC, version, size, len(uuid) if version == 1 else 0, base, len(offsets))
    if version == 1:
        _, *strings = places[SectionKind.STRING_TABLE]
        head += struct.pack(order + HEADER_REST, *strings, uuid)
    else:
        head += b"".join(struct.pack(order + SECTION, *place) for place in places.values())
    file[: len(head)] = head
    first_info = places[SectionKind.FUNCTION_INFOS].offset if version == 1 else 0
    info_offsets = packed(order, infos.tables.offset[1:], [first_info + offset for offset in infos.offsets])
    at = places[SectionKind.INFO_OFFSETS].offset
    file[at : at + len(info_offsets)] = info_offsets
    return bytes(file)


def packed(order: str, kind: str, numbers: Sequence[int]) -> bytes:
    return struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
