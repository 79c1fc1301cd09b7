"""Where the tables of a GSYM file lie: its header, in version 2 its sections, and what holds it.

The data is a file of its own or a section of an ELF file; its string table can then be one of the ELF file's. The
proposal does not say what offsets count from there; here it is the header, as when a file was put into a section, but
the offset of a string table that begins like one of the ELF file's is one in that file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Array
from traceferry.symbolication.build_id import Bytes
from traceferry.symbolication.gsym._infos import Decoder
from traceferry.symbolication.gsym.layout import (
    ADDRESS_SIZES,
    ELF_MAGIC,
    ELF_SECTION,
    HEADER,
    HEADER_REST,
    MAGIC,
    MAX_UUID,
    MAX_UUID_V1,
    OFFSET_SIZES,
    SECTION,
    Header,
    Section,
    SectionKind,
)

Sections = dict[int, Section]
NO_SECTION = Section(0, 0, 0)


@dataclass(frozen=True)
class Tables:
    """A file whose tables are inside. data: begins with the header; order: of the bytes in numbers, "<" or ">".

    strings: the string table; owns_strings: whether it is in `data`; uuid: the build id; base: what `addresses`
    count from; offsets: of the infos, which count from `infos`, and none is read from infos_end on; offsets_at:
    where these offsets are in `data`; files: (directory, name) of each, in offsets of strings.
    """

    data: memoryview
    order: str
    version: int
    uuid: bytes
    base: int
    addresses: Array
    offsets: Array
    offsets_at: int
    infos: int
    infos_end: int
    files: Array
    strings: memoryview
    owns_strings: bool

    @cached_property
    def starts(self) -> Array:
        """The addresses as uint64, which rise even where the table is damaged."""
        return np.asarray(np.maximum.accumulate(self.addresses.astype(np.uint64)))

    def decoder(self) -> Decoder:
        """Returns a decoder for one pass through the infos."""
        is_big, offset_size = self.order == ">", self.offsets.itemsize
        return Decoder(self.data, is_big, offset_size, len(self.strings), self._has_path)

    @cached_property
    def _has_path(self) -> Array:
        return np.asarray((self.files[:, 0] != 0) | (self.files[:, 1] != 0))


class Container(NamedTuple):
    """data: begins with the GSYM header; whole: what holds it, the same or an ELF file; string_tables: (offset, size)
    of the ELF file's own, in `whole`."""

    whole: Bytes
    data: Bytes
    string_tables: tuple[tuple[int, int], ...] = ()

    def part(self, at: int, size: int, record: str) -> memoryview | bytes:
        """Raises FormatError where it is not inside."""
        _inside(self.data, at, size, record)
        return self.data[at : at + size]

    def unpack(self, form: str, at: int, record: str) -> tuple[Any, ...]:
        return struct.unpack(form, self.part(at, struct.calcsize(form), record))


def read_tables(whole: memoryview) -> Tables:
    """Reads the tables of a GSYM file, or of an ELF file with GSYM data in a section. Raises FormatError where there is
    no GSYM header, or where its tables are not inside."""
    container = _in_elf(whole) if bytes(whole[:4]) == ELF_MAGIC else Container(whole, whole)
    order, header, sections = _parts(container)
    data, n, size = memoryview(container.data[:]), header.num_addrs, header.addr_off_size
    offset_size = OFFSET_SIZES[header.version]
    files = sections.get(SectionKind.FILE_TABLE, NO_SECTION)
    if size not in ADDRESS_SIZES:
        raise FormatError(f"address offsets of {size} bytes", 6, "header")
    n_files = int(container.unpack(order + "I", files.offset, "file table")[0]) if files.size >= 4 else 0
    files_at = files.offset + 4 if n_files else 0
    infos = _section(data, sections, SectionKind.FUNCTION_INFOS)
    addresses_at = _section(data, sections, SectionKind.ADDRESS_OFFSETS, size * n).offset
    offsets_at = _section(data, sections, SectionKind.INFO_OFFSETS, offset_size * n).offset
    if n_files:
        _inside(data, files_at, 2 * offset_size * n_files, "file table")
        _section(data, sections, SectionKind.FILE_TABLE, 4 + 2 * offset_size * n_files)
    strings, owns_strings = _strings(container, sections.get(SectionKind.STRING_TABLE, NO_SECTION))
    return Tables(
        data=data,
        order=order,
        version=header.version,
        uuid=_uuid(container, sections),
        base=header.base_address,
        addresses=np.frombuffer(data, f"{order}u{size}", n, addresses_at),
        offsets=np.frombuffer(data, f"{order}u{offset_size}", n, offsets_at),
        offsets_at=offsets_at,
        infos=infos.offset,
        infos_end=infos.offset + infos.size,
        files=np.frombuffer(data, f"{order}u{offset_size}", 2 * n_files, files_at).reshape(-1, 2),
        strings=strings,
        owns_strings=owns_strings,
    )


def uuid_of(data: Bytes) -> bytes:
    """Returns the build id of a GSYM file, of which only the header and the list of sections are read. Raises
    FormatError where there is no GSYM header."""
    container = Container(data, data)
    return _uuid(container, _parts(container)[2])


def _uuid(container: Container, sections: Sections) -> bytes:
    uuid, end = sections.get(SectionKind.UUID, NO_SECTION), len(container.data)
    at = min(uuid.offset, end)
    return bytes(container.part(at, min(uuid.size, MAX_UUID, end - at), "uuid"))


def _parts(container: Container) -> tuple[str, Header, Sections]:
    """Returns the order of bytes in numbers, the header, and where everything is."""
    order = _order_of(container.data)
    if not order:
        raise FormatError("not a GSYM file: wrong magic number", 0, "header")
    version = int(container.unpack(order + "H", 4, "header")[0])
    if version not in OFFSET_SIZES:
        raise FormatError(f"GSYM of version {version} is not known", 4, "header")
    header = Header(*container.unpack(order + HEADER, 0, "header"))
    return order, header, (_sections_v1 if version == 1 else _sections_v2)(container, order, header)


def _order_of(data: Bytes) -> str:
    return next((order for order in "<>" if bytes(data[:4]) == struct.pack(order + "I", MAGIC)), "")


def _sections_v1(container: Container, order: str, header: Header) -> Sections:
    """Returns the sections that the tables of version 1 would be; the infos can be anywhere."""
    addresses = struct.calcsize(order + HEADER + HEADER_REST)
    *_, strtab_offset, strtab_size, _ = container.unpack(order + HEADER + HEADER_REST, 0, "header")
    if header.uuid_size > MAX_UUID_V1:
        raise FormatError(f"a uuid of {header.uuid_size} bytes", 7, "header")
    offsets = _aligned(addresses + header.addr_off_size * header.num_addrs)
    files, end = _aligned(offsets + 4 * header.num_addrs), len(container.data)
    sections = (
        Section(SectionKind.ADDRESS_OFFSETS, addresses, offsets - addresses),
        Section(SectionKind.INFO_OFFSETS, offsets, files - offsets),
        Section(SectionKind.FILE_TABLE, files, max(end - files, 4)),
        Section(SectionKind.STRING_TABLE, strtab_offset, strtab_size),
        Section(SectionKind.FUNCTION_INFOS, 0, end),
        Section(SectionKind.UUID, addresses - MAX_UUID_V1, header.uuid_size),
    )
    return {section.type: section for section in sections}


def _sections_v2(container: Container, order: str, header: Header) -> Sections:
    if header.uuid_size:
        raise FormatError(f"a string table of encoding {header.uuid_size}", 7, "header")
    sections: Sections = {}
    at = struct.calcsize(order + HEADER)
    while True:
        section = Section(*container.unpack(order + SECTION, at, "sections"))
        if section.type == SectionKind.END_OF_SECTIONS:
            return sections
        sections[section.type] = section
        at += struct.calcsize(order + SECTION)


def _section(data: memoryview, sections: Sections, kind: SectionKind, least: int = 0) -> Section:
    """Returns a section that has to be there. least: how many bytes it needs."""
    name = kind.name.lower().replace("_", " ")
    if kind not in sections:
        raise FormatError(f"no section of {name}", None, "sections")
    section = sections[kind]
    _inside(data, section.offset, section.size, name)
    if section.size < least:
        raise FormatError(f"{section.size} bytes, where {least} are needed", section.offset, name)
    return section


def _strings(container: Container, table: Section) -> tuple[memoryview, bool]:
    """Returns (the string table, whether it is the GSYM data's own): the ELF file's, if one of them begins there."""
    _, offset, size = table
    if any(begin == offset and size <= length for begin, length in container.string_tables):
        return memoryview(container.whole[offset : offset + size]), False
    _inside(container.data, offset, size, "string table")
    return memoryview(container.data[offset : offset + size]), True


def _inside(data: Bytes, at: int, size: int, record: str) -> None:
    if at + size > len(data):
        raise FormatError(f"the data ends before its {record}", min(at, len(data)), record)


def _aligned(at: int) -> int:
    return -(-at // 4) * 4


# ---------------------------------------------------------------- a section of an ELF file


def _in_elf(whole: memoryview) -> Container:
    """Returns the section .gsym, or the first that begins like a GSYM file. Raises FormatError where there is
    neither."""
    from traceferry.symbolication.binary import Binary

    sections = Binary(Source("", whole)).section_headers
    string_tables = [(one.offset, one.size) for one in sections if one.type == "SHT_STRTAB"]
    contents = [(one.name != ELF_SECTION, one.offset, one.size) for one in sections if one.type != "SHT_NOBITS"]
    for _, offset, size in sorted(contents):
        data = whole[offset : offset + size]
        if _order_of(data):
            return Container(whole, data, tuple(string_tables))
    raise FormatError("an ELF file without GSYM data", None, "ELF")
