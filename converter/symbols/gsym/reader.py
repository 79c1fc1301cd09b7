"""GSYM symbol files, versions 1 and 2: layout and decode. Documented by LLVM's include/llvm/DebugInfo/GSYM and, as it
was first meant, by the proposal of 2018 (llvm-commits, D53379).

The data is a file of its own or a section of an ELF file; its string table can then be one of the ELF file's. The
proposal does not say what offsets count from there; here it is the header, as when a file was put into a section, but
the offset of a string table that begins like one of the ELF file's is one in that file.

Look-ups decode only the functions that they touch, in gsym_kernel.py; what is damaged there loses the function, and
`problems` says so.
"""

from __future__ import annotations

import io
import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from traceferry.errors import FormatError
from traceferry.io.source import Source
from traceferry.model import Array
from traceferry.symbols.gsym import gsym_kernel
from traceferry.symbols.interface import Frames, Function, Inline

# ---------------------------------------------------------------- layout

MAGIC = 0x4753594D
ADDRESS_SIZES = (1, 2, 4, 8)


HEADER_V1 = "IHBBQIII20s"


class HeaderV1(NamedTuple):
    """At offset 0. Behind it come the address table, at the next multiple of 4 the table of info offsets, and at the
    next one the file table. The room of the uuid is always there, of which uuid_size bytes count."""

    magic: int
    version: int
    addr_off_size: int
    uuid_size: int
    base_address: int
    num_addrs: int
    strtab_offset: int
    strtab_size: int
    uuid: bytes


HEADER_V2 = "IHBBQI"


class HeaderV2(NamedTuple):
    """At offset 0. Behind it comes the table of sections."""

    magic: int
    version: int
    addr_off_size: int
    strtab_encoding: int
    base_address: int
    num_addrs: int


SECTION = "IQQ"


class Section(NamedTuple):
    """Of version 2: where something lies, counted from the header. The table ends with type 0."""

    type: int
    offset: int
    size: int


# Section.type.
END_OF_SECTIONS, ADDRESS_OFFSETS, INFO_OFFSETS, STRING_TABLE, FILE_TABLE, FUNCTION_INFOS, UUID = range(7)
SECTION_NAMES = ("", "address offsets", "info offsets", "string table", "file table", "function infos", "uuid")


ELF_MAGIC = b"\x7fELF"
ELF_SECTION = ".gsym"


class Info(NamedTuple):
    """A function info: u32 size, the name's string offset; then for each type of data u32 type, u32 length and that
    many bytes, until type 0. Infos need not be aligned. Here with where the data of each type begins and ends."""

    size: int
    name: int
    end: int
    line_table: int
    line_table_end: int
    inlines: int
    inlines_end: int
    merged: int
    merged_end: int
    call_sites: int
    call_sites_end: int


# Its first number, without which there is none.
INFO_SIZE = 4
# CallSite.flags.
INTERNAL_CALL, EXTERNAL_CALL = 1, 2

# What the kernel says is wrong with a function info.
DAMAGES = (
    "",
    "its offset is outside the function infos",
    "it ends too early",
    "a number in it does not end",
    "it has no name",
    "a string in it is outside the string table",
    "a file in it is outside the file table",
    "its line table has no range of lines",
    "its inlined calls are nested too deep",
    "the function infos lie over each other",
)
OUTSIDE, CUT = 1, 2

# ---------------------------------------------------------------- limits

# Version 2 has no limit for it; the longest digests have so many bytes.
MAX_UUID = 64
# Linkage names of templates are long, but not that long.
MAX_TEXT = 1 << 16
TEXT_PIECE = 256
# Strings may lie over each other, so short data could make long texts without an end.
MAX_TEXTS = 64
MIN_TEXTS_ROOM = 1 << 24
# The kernels' words: how many, and the one that says where infos end.
STATE_WORDS, INFOS_END = 310, 8
# The least that a node of an inline tree needs, and one of its ranges.
NODE_BYTES, RANGE_BYTES = 10, 2

# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Tables:
    """Where everything lies in `data`, which begins with the header. order: "<" or ">"; string_size: of a string
    offset; infos: what info offsets count from; files: the first entry of the file table, behind its count."""

    data: memoryview
    strings: memoryview
    owns_strings: bool
    version: int
    order: str
    base: int
    uuid: bytes
    addresses: int
    address_size: int
    n_addresses: int
    offsets: int
    offset_size: int
    infos: int
    infos_end: int
    string_size: int
    files: int
    n_files: int

    def state(self) -> Array:
        """The kernels' words, in their order."""
        words = np.zeros(STATE_WORDS, np.uint64)
        words[:13] = (
            self.order == ">", self.base, self.addresses, self.address_size, self.n_addresses, self.offsets,
            self.offset_size, self.infos, self.infos_end, self.string_size, len(self.strings), self.files, self.n_files,
        )  # fmt: skip
        return words


@dataclass(frozen=True)
class Container:
    """data: begins with the GSYM header; file: what holds it, the same or an ELF file; string_tables: (offset, size) of
    the ELF file's own, in `file`."""

    file: memoryview
    data: memoryview
    string_tables: tuple[tuple[int, int], ...] = ()


def read_tables(file: memoryview) -> Tables:
    """file: a GSYM file, or an ELF file with GSYM data in a section. Raises FormatError where there is no GSYM header,
    or where its tables are not inside."""
    container = _in_elf(file) if bytes(file[:4]) == ELF_MAGIC else Container(file, file)
    data = container.data
    order = _order_of(data)
    if not order:
        raise FormatError("no GSYM file: it begins with another number", 0, "header")
    version = int(_unpack(data, order + "H", 4, "header")[0])
    if version not in (1, 2):
        raise FormatError(f"GSYM of version {version} is not known", 4, "header")
    return (_tables_v1 if version == 1 else _tables_v2)(container, order)


def _order_of(data: memoryview) -> str:
    return next((order for order in "<>" if bytes(data[:4]) == struct.pack(order + "I", MAGIC)), "")


def _tables_v1(container: Container, order: str) -> Tables:
    data = container.data
    header = HeaderV1(*_unpack(data, order + HEADER_V1, 0, "header"))
    if header.uuid_size > len(header.uuid):
        raise FormatError(f"a uuid of {header.uuid_size} bytes", 7, "header")
    addresses = struct.calcsize(order + HEADER_V1)
    offsets = _aligned(addresses + _address_size(header) * header.num_addrs)
    files = _aligned(offsets + 4 * header.num_addrs)
    n_files = int(_unpack(data, order + "I", files, "file table")[0])
    _inside(data, files + 4, 8 * n_files, "file table")
    strings, is_own = _strings(container, header.strtab_offset, header.strtab_size)
    return Tables(
        data=data,
        strings=strings,
        owns_strings=is_own,
        version=1,
        order=order,
        base=header.base_address,
        uuid=header.uuid[: header.uuid_size],
        addresses=addresses,
        address_size=header.addr_off_size,
        n_addresses=header.num_addrs,
        offsets=offsets,
        offset_size=4,
        infos=0,
        infos_end=len(data),
        string_size=4,
        files=files + 4,
        n_files=n_files,
    )


def _tables_v2(container: Container, order: str) -> Tables:
    data = container.data
    header = HeaderV2(*_unpack(data, order + HEADER_V2, 0, "header"))
    if header.strtab_encoding:
        raise FormatError(f"a string table of encoding {header.strtab_encoding}", 7, "header")
    sections = _sections_v2(data, order)
    files = sections.get(FILE_TABLE, Section(FILE_TABLE, 0, 0))
    n_files = int(_unpack(data, order + "I", files.offset, "file table")[0]) if files.size >= 4 else 0
    uuid = sections.get(UUID, Section(UUID, 0, 0))
    infos = _section(data, sections, FUNCTION_INFOS)
    texts = sections.get(STRING_TABLE, Section(STRING_TABLE, 0, 0))
    strings, is_own = _strings(container, texts.offset, texts.size)
    return Tables(
        data=data,
        strings=strings,
        owns_strings=is_own,
        version=2,
        order=order,
        base=header.base_address,
        uuid=bytes(data[uuid.offset : uuid.offset + min(uuid.size, MAX_UUID)]),
        addresses=_section(data, sections, ADDRESS_OFFSETS, _address_size(header) * header.num_addrs).offset,
        address_size=header.addr_off_size,
        n_addresses=header.num_addrs,
        offsets=_section(data, sections, INFO_OFFSETS, 8 * header.num_addrs).offset,
        offset_size=8,
        infos=infos.offset,
        infos_end=infos.offset + infos.size,
        string_size=8,
        files=_section(data, sections, FILE_TABLE, 4 + 16 * n_files).offset + 4 if n_files else 0,
        n_files=n_files,
    )


def _sections_v2(data: memoryview, order: str) -> dict[int, Section]:
    sections: dict[int, Section] = {}
    at = struct.calcsize(order + HEADER_V2)
    while True:
        section = Section(*_unpack(data, order + SECTION, at, "sections"))
        if section.type == END_OF_SECTIONS:
            return sections
        sections[section.type] = section
        at += struct.calcsize(order + SECTION)


def _section(data: memoryview, sections: dict[int, Section], type_: int, least: int = 0) -> Section:
    """A section that has to be there. least: how many bytes it needs."""
    name = SECTION_NAMES[type_]
    if type_ not in sections:
        raise FormatError(f"no section of {name}", None, "sections")
    section = sections[type_]
    _inside(data, section.offset, section.size, name)
    if section.size < least:
        raise FormatError(f"{section.size} bytes, where {least} are needed", section.offset, name)
    return section


def _address_size(header: HeaderV1 | HeaderV2) -> int:
    if header.addr_off_size not in ADDRESS_SIZES:
        raise FormatError(f"address offsets of {header.addr_off_size} bytes", 6, "header")
    return header.addr_off_size


def _strings(container: Container, offset: int, size: int) -> tuple[memoryview, bool]:
    """(the string table, whether it is the GSYM data's own): the ELF file's, if one of them begins there."""
    if any(begin == offset and size <= room for begin, room in container.string_tables):
        return container.file[offset : offset + size], False
    _inside(container.data, offset, size, "string table")
    return container.data[offset : offset + size], True


def _unpack(data: memoryview, form: str, at: int, record: str) -> tuple[Any, ...]:
    _inside(data, at, struct.calcsize(form), record)
    return struct.unpack_from(form, data, at)


def _inside(data: memoryview, at: int, size: int, record: str) -> None:
    if at + size > len(data):
        raise FormatError(f"the data ends before its {record}", min(at, len(data)), record)


def _aligned(at: int) -> int:
    return -(-at // 4) * 4


# ---------------------------------------------------------------- a section of an ELF file


def _in_elf(file: memoryview) -> Container:
    """The section .gsym, or the first that begins like a GSYM file. Raises FormatError where there is neither."""
    from elftools.elf.elffile import ELFFile

    from traceferry.symbols.binary import ELF_DAMAGE

    mapped = file.obj
    stream = mapped if isinstance(mapped, mmap.mmap) and len(mapped) == len(file) else io.BytesIO(file)
    try:
        sections = [
            (section.name, section["sh_type"], int(section["sh_offset"]), int(section["sh_size"]))
            for section in ELFFile(stream).iter_sections()
        ]
    except ELF_DAMAGE as error:
        raise FormatError(f"no readable ELF file: {error or type(error).__name__}", 0, "ELF") from None
    string_tables = [(offset, size) for _, type_, offset, size in sections if type_ == "SHT_STRTAB"]
    contents = [(name != ELF_SECTION, offset, size) for name, type_, offset, size in sections if type_ != "SHT_NOBITS"]
    for _, offset, size in sorted(contents):
        data = file[offset : offset + size]
        if _order_of(data):
            return Container(file, data, tuple(string_tables))
    raise FormatError("an ELF file without GSYM data", None, "ELF")


# ---------------------------------------------------------------- decode


class Problem(NamedTuple):
    """offset: in the GSYM data, in bytes."""

    offset: int
    what: str


@dataclass(frozen=True)
class CallSite:
    """A call that a function makes. address: where it returns to; flags: INTERNAL_CALL, EXTERNAL_CALL; callees: names,
    or regular expressions of names, of what it can call."""

    address: int
    flags: int
    callees: tuple[str, ...]


class Gsym:
    """The symbols of a GSYM file, or of GSYM data in a section of an ELF file.

    Raises FormatError when there is no GSYM header or its tables are not inside. After that nothing is raised:
    what is damaged has no frames, and is in `problems` once it was looked at.

    version: 1 or 2; little_endian: of its numbers; base: of its address table, which is the lowest loaded address.
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.name = source.name
        try:
            self._tables = read_tables(source.data)
        except FormatError as error:
            error.path = source.path
            raise
        self.version = self._tables.version
        self.little_endian = self._tables.order == "<"
        self.base = self._tables.base
        self.build_id = self._tables.uuid.hex()
        self._problems: set[Problem] = set()

    @property
    def problems(self) -> Sequence[Problem]:
        """What was damaged where look-ups and `functions` came by, by offset."""
        return sorted(self._problems)

    # ------------------------------------------------------------ look-ups

    def lookup(self, addresses: Array) -> Frames:
        """addresses: uint64, in any order. Of functions that start at one address it is the first that holds the
        address. An address without a row in the line table has the function alone."""
        state = self._tables.state()
        asked = np.ascontiguousarray(addresses, np.uint64)
        order = np.argsort(asked)
        found = self._find(state, asked[order])
        return self._frames(state, found, order)

    def merged(self, address: int) -> list[Frames]:
        """What runs at an address, once for each function that was merged with the one there: first the one that
        `lookup` gives. [] where nothing is known."""
        state = self._tables.state()
        found = self._find(state, np.array([address], np.uint64))
        if found.infos[0] < 0 or found.damage[0]:
            return []
        order = np.zeros(1, np.int64)
        answers = [self._frames(state, found, order)]
        for at, end in self._merged_infos(state, int(found.infos[0])):
            child = replace(found, infos=np.array([at], np.int64))
            answers.append(self._frames(_until(state, end), child, order))
        return [frames for frames in answers if _holds(frames, address)]

    def call_sites(self, address: int) -> list[CallSite]:
        """The calls, as far as they were written down, of the function that holds the address."""
        state = self._tables.state()
        found = self._find(state, np.array([address], np.uint64))
        info = self._info(state, int(found.infos[0])) if found.infos[0] >= 0 and not found.damage[0] else None
        return list(self._call_sites(info, int(found.starts[0]))) if info else []

    def _find(self, state: Array, addresses: Array) -> Found:
        """addresses: sorted."""
        n = len(addresses)
        found = Found(addresses, np.empty(n, np.int64), np.empty(n, np.uint64), np.empty(n, np.uint8))
        gsym_kernel.find(self._tables.data, state, addresses, found.infos, found.starts, found.damage)
        return found

    def _frames(self, state: Array, found: Found, order: Array) -> Frames:
        """order: which of the asked addresses each found one is."""
        n = len(order)
        sizes, names, inside = (np.empty(n, np.uint64) for _ in range(3))
        files = np.empty(n, np.uint32)
        lines, counts = np.empty(n, np.int32), np.empty(n, np.int32)
        where = (self._tables.data, state, found.addresses, found.infos, found.starts)
        gsym_kernel.count(*where, sizes, names, files, lines, counts, inside, found.damage)
        self._note_damage(found)
        first = np.zeros(n + 1, np.int64)
        first[1:][order] = counts
        np.cumsum(first, out=first)
        name, source = np.empty(int(first[-1]), np.uint64), np.empty(int(first[-1]), np.uint32)
        line = np.empty(int(first[-1]), np.int32)
        begins = first[:-1][order]
        ends = np.empty(n, np.int64)
        gsym_kernel.fill(*where, names, files, lines, counts, inside, begins, ends, name, source, line)
        known = counts > 0
        start, size = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        start[order], size[order] = np.where(known, found.starts, 0), np.where(known, sizes, 0)
        texts = Texts(self._tables, self._problems)
        return Frames(first, texts.names_of(name), texts.paths_of(source), line, start, size, texts.all)

    def _note_damage(self, found: Found) -> None:
        damaged = np.flatnonzero(found.damage)
        places = np.stack((found.infos[damaged], found.damage[damaged].astype(np.int64)), axis=1)
        self._problems |= {Problem(offset, DAMAGES[what]) for offset, what in np.unique(places, axis=0).tolist()}

    # ------------------------------------------------------------ whole functions

    def functions(self) -> Iterator[Function]:
        """By address; equal addresses in the file's order, a function that was merged into another after that one."""
        state = self._tables.state()
        texts = Texts(self._tables, self._problems)
        for start, at in self._entries():
            yield from self._function(state, texts, at, start)
            for child_at, end in self._merged_infos(state, at):
                yield from self._function(_until(state, end), texts, child_at, start)

    def sizes(self) -> dict[str, int]:
        """The bytes of each part. "other" is what sizes and names of functions need, the sections of version 2, and
        alignment; a string table of the ELF file's counts nothing."""
        t = self._tables
        form = HEADER_V1 if t.version == 1 else HEADER_V2
        sizes = {
            "header": struct.calcsize("<" + form),
            "address table": t.address_size * t.n_addresses,
            "info offsets": t.offset_size * t.n_addresses,
            "file table": 4 + 2 * t.string_size * t.n_files,
            "string table": len(t.strings) if t.owns_strings else 0,
            "line tables": 0,
            "inline trees": 0,
            "merged functions": 0,
            "call sites": 0,
        }
        state = t.state()
        for _, at in self._entries():
            info = self._info(state, at)
            if info is not None:
                sizes["line tables"] += info.line_table_end - info.line_table
                sizes["inline trees"] += info.inlines_end - info.inlines
                sizes["merged functions"] += info.merged_end - info.merged
                sizes["call sites"] += info.call_sites_end - info.call_sites
        return {**sizes, "other": max(len(t.data) - sum(sizes.values()), 0)}

    def _entries(self) -> Iterator[tuple[int, int]]:
        """(start of the function, offset of its info), for each whose offset is inside."""
        t = self._tables
        starts = np.frombuffer(t.data, f"{t.order}u{t.address_size}", t.n_addresses, t.addresses)
        offsets = np.frombuffer(t.data, f"{t.order}u{t.offset_size}", t.n_addresses, t.offsets)
        for entry in range(t.n_addresses):
            at = t.infos + int(offsets[entry])
            if at + INFO_SIZE <= t.infos_end:
                yield (t.base + int(starts[entry])) % (1 << 64), at
            else:
                self._note(t.offsets + entry * t.offset_size, OUTSIDE)

    def _info(self, state: Array, at: int) -> Info | None:
        """The function info at `at`; None where it is damaged."""
        out = np.empty(len(Info._fields), np.uint64)
        damage = gsym_kernel.parts(self._tables.data, state, at, out)
        if damage:
            self._note(at, damage)
            return None
        return Info(*out.tolist())

    def _function(self, state: Array, texts: Texts, at: int, start: int) -> Iterator[Function]:
        """The function whose info is at `at`, unless that is damaged."""
        info = self._info(state, at)
        if info is None:
            return
        try:
            lines = self._lines(state, texts, info, start)
            inlines = self._inlines(state, texts, info, start)
        except DamagedInfoError as error:
            self._note(at, error.damage)
        else:
            yield Function(texts.name(info.name), start, info.size, lines, inlines)

    def _lines(self, state: Array, texts: Texts, info: Info, start: int) -> list[tuple[int, str, int]]:
        room = info.line_table_end - info.line_table
        addresses, files, lines = np.empty(room, np.uint64), np.empty(room, np.uint32), np.empty(room, np.int32)
        place = (info.line_table, info.line_table_end, start)
        n = _undamaged(gsym_kernel.rows(self._tables.data, state, *place, addresses, files, lines)) if room else 0
        rows = zip(addresses[:n].tolist(), files[:n].tolist(), lines[:n].tolist(), strict=True)
        return [(address, texts.path(file), line) for address, file, line in rows]

    def _inlines(self, state: Array, texts: Texts, info: Info, start: int) -> tuple[Inline, ...]:
        """What is inlined into the function. The root of the tree is the function itself, and not called."""
        size = info.inlines_end - info.inlines
        if not size:
            return ()
        room, ranges_room = size // NODE_BYTES + 1, size // RANGE_BYTES + 1
        levels, lines = np.empty(room, np.int32), np.empty(room, np.int32)
        names, files = np.empty(room, np.uint64), np.empty(room, np.uint32)
        first = np.empty(room + 1, np.int64)
        starts, ends = np.empty(ranges_room, np.uint64), np.empty(ranges_room, np.uint64)
        place = (info.inlines, info.inlines_end, start)
        nodes = (levels, names, files, lines, first, starts, ends)
        n = _undamaged(gsym_kernel.nodes(self._tables.data, state, *place, *nodes))
        ranges = list(zip(starts.tolist(), ends.tolist(), strict=True))
        # By level, those whose parent is still to come: from the last node to the root.
        waiting: dict[int, list[Inline]] = {}
        for node in reversed(range(n)):
            level = int(levels[node])
            inline = Inline(
                texts.name(int(names[node])),
                tuple(ranges[int(first[node]) : int(first[node + 1])]),
                texts.path(int(files[node])),
                int(lines[node]),
                tuple(reversed(waiting.pop(level + 1, []))),
            )
            waiting.setdefault(level, []).append(inline)
        roots = waiting.get(0, [])
        return tuple(roots) if roots and roots[0].call_source else tuple(c for root in roots for c in root.children)

    # ------------------------------------------------------------ merged functions, call sites

    def _merged_infos(self, state: Array, at: int) -> Iterator[tuple[int, int]]:
        """(offset, end) of the infos of the functions that were merged with the one at `at`: u32 count; for each u32
        bytes, then that many of an info."""
        info = self._info(state, at)
        if info is None or info.merged_end - info.merged < 4:
            return
        word = struct.Struct(self._tables.order + "I")
        (count,) = word.unpack_from(self._tables.data, info.merged)
        child = info.merged + 4
        for _ in range(count):
            if child + 4 > info.merged_end:
                return self._note(child, CUT)
            (size,) = word.unpack_from(self._tables.data, child)
            child += 4
            if size > info.merged_end - child:
                return self._note(child, CUT)
            yield child, child + size
            child += size

    def _call_sites(self, info: Info, start: int) -> Iterator[CallSite]:
        """u32 count; for each u64 return offset, u8 flags, u32 number of callees and as many string offsets; packed."""
        t = self._tables
        if info.call_sites_end - info.call_sites < 4:
            return
        texts = Texts(t, self._problems)
        site = struct.Struct(t.order + "QBI")
        (count,) = struct.unpack_from(t.order + "I", t.data, info.call_sites)
        at = info.call_sites + 4
        for _ in range(count):
            if at + site.size > info.call_sites_end:
                return self._note(at, CUT)
            offset, flags, n_callees = site.unpack_from(t.data, at)
            at += site.size
            if n_callees > (info.call_sites_end - at) // t.string_size:
                return self._note(at, CUT)
            callees = np.frombuffer(t.data, f"{t.order}u{t.string_size}", n_callees, at).tolist()
            yield CallSite((start + offset) % (1 << 64), flags, tuple(texts.name(callee) for callee in callees))
            at += n_callees * t.string_size

    def _note(self, offset: int, damage: int) -> None:
        self._problems.add(Problem(offset, DAMAGES[damage]))


@dataclass(frozen=True)
class Found:
    """What `find` says of sorted addresses; a row for each."""

    addresses: Array
    infos: Array
    starts: Array
    damage: Array


class DamagedInfoError(Exception):
    """damage: what is wrong with a function info, an index of DAMAGES."""

    def __init__(self, damage: int) -> None:
        super().__init__(DAMAGES[damage])
        self.damage = damage


def _undamaged(n: int) -> int:
    """A kernel's result, which below 0 is damage."""
    if n < 0:
        raise DamagedInfoError(-n)
    return n


def _until(state: Array, end: int) -> Array:
    """The kernels' words, with infos that end there."""
    changed = state.copy()
    changed[INFOS_END] = end
    return changed


class Texts:
    """The names and paths that answers refer to. all: each once, as far as it is known.

    A string ends after MAX_TEXT bytes; when all together have outgrown what files hold, the rest is unknown.
    """

    def __init__(self, tables: Tables, problems: set[Problem]) -> None:
        self.all: list[str] = []
        self._tables = tables
        self._problems = problems
        self._room = max(MIN_TEXTS_ROOM, MAX_TEXTS * len(tables.data))
        self._names: dict[int, str] = {}
        self._paths: dict[int, str] = {}

    def name(self, offset: int) -> str:
        """The string at an offset of the string table; "" where there is none."""
        if offset not in self._names:
            self._names[offset] = self._kept(self._string(offset))
        return self._names[offset]

    def path(self, file: int) -> str:
        """Directory and name of a file of the file table; "" where it has neither."""
        if file not in self._paths:
            self._paths[file] = self._kept(self._path(file))
        return self._paths[file]

    def names_of(self, offsets: Array) -> Array:
        """Which of `all` the strings at these offsets are: int32, -1 is unknown."""
        return self._indices(offsets, self.name)

    def paths_of(self, files: Array) -> Array:
        """Which of `all` the paths of these files are: int32, -1 is unknown."""
        return self._indices(files, self.path)

    def _indices(self, values: Array, text_of: Callable[[int], str]) -> Array:
        distinct = np.unique(values)
        indices = np.full(len(distinct), -1, np.int32)
        for nth, value in enumerate(distinct.tolist()):
            text = text_of(value)
            if text:
                indices[nth] = len(self.all)
                self.all.append(text)
        return indices[np.searchsorted(distinct, values)]

    def _kept(self, text: str) -> str:
        self._room -= len(text)
        if self._room >= 0:
            return text
        self._problems.add(Problem(0, "the strings lie over each other"))
        return ""

    def _string(self, offset: int) -> str:
        strings = self._tables.strings
        size = TEXT_PIECE
        while True:
            piece = bytes(strings[offset : offset + size])
            end = piece.find(0)
            if end >= 0 or len(piece) < size or size >= MAX_TEXT:
                return (piece if end < 0 else piece[:end]).decode(errors="replace")
            size *= 4

    def _path(self, file: int) -> str:
        """As LLVM joins them: with the directory's own separator."""
        if file >= self._tables.n_files:
            return ""
        t = self._tables
        form = t.order + ("II" if t.string_size == 4 else "QQ")
        directory, name = struct.unpack_from(form, t.data, t.files + file * struct.calcsize(form))
        folder, base = self._string(directory), self._string(name)
        separator = "\\" if "\\" in folder and "/" not in folder else "/"
        return f"{folder}{separator}{base}" if folder else base


def _holds(frames: Frames, address: int) -> bool:
    size = int(frames.size[0])
    return len(frames.name) > 0 and (size == 0 or address - int(frames.start[0]) < size)
