"""Where the tables of a GSYM file lie: its header, in version 2 its sections, and what holds it.

The data is a file of its own or a section of an ELF file; its string table can then be one of the ELF file's. The
proposal does not say what offsets count from there; here it is the header, as when a file was put into a section, but
the offset of a string table that begins like one of the ELF file's is one in that file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.build_id import Bytes
from traceferry.symbolication.gsym.layout import (
    ADDRESS_SIZES,
    ELF_MAGIC,
    ELF_SECTION,
    HEADER_V1,
    HEADER_V2,
    MAGIC,
    MAX_UUID,
    SECTION,
    HeaderV1,
    HeaderV2,
    Layout,
    Section,
    SectionKind,
)


@dataclass(frozen=True)
class Tables:
    """A file whose tables are inside. data: begins with the header; strings: the string table; owns_strings: whether it
    is in `data`; uuid: the build id."""

    data: memoryview
    strings: memoryview
    owns_strings: bool
    version: int
    uuid: bytes
    layout: Layout

    @property
    def order(self) -> str:
        """The order of bytes in numbers: "<" or ">"."""
        return ">" if self.layout.big else "<"


@dataclass(frozen=True)
class Container:
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
    order, version = _kind_of(container)
    return (_tables_v1 if version == 1 else _tables_v2)(container, order)


def uuid_of(data: Bytes) -> bytes:
    """Returns the build id of a GSYM file, of which only the header and the list of sections are read. Raises
    FormatError where there is no GSYM header."""
    container = Container(data, data)
    order, version = _kind_of(container)
    if version == 1:
        return _uuid_v1(_header_v1(container, order))
    return _uuid_v2(container, _sections_v2(container, order))


def _kind_of(container: Container) -> tuple[str, int]:
    """Returns the order of bytes in numbers, and the version."""
    order = _order_of(container.data)
    if not order:
        raise FormatError("not a GSYM file: wrong magic number", 0, "header")
    version = int(container.unpack(order + "H", 4, "header")[0])
    if version not in (1, 2):
        raise FormatError(f"GSYM of version {version} is not known", 4, "header")
    return order, version


def _order_of(data: Bytes) -> str:
    return next((order for order in "<>" if bytes(data[:4]) == struct.pack(order + "I", MAGIC)), "")


def _tables_v1(container: Container, order: str) -> Tables:
    data = memoryview(container.data[:])
    header = _header_v1(container, order)
    addresses = struct.calcsize(order + HEADER_V1)
    offsets = _aligned(addresses + _address_size(header) * header.num_addrs)
    files = _aligned(offsets + 4 * header.num_addrs)
    n_files = int(container.unpack(order + "I", files, "file table")[0])
    _inside(data, files + 4, 8 * n_files, "file table")
    strings, is_own = _strings(container, header.strtab_offset, header.strtab_size)
    layout = Layout(
        big=order == ">",
        base=header.base_address,
        addresses=addresses,
        address_size=header.addr_off_size,
        n_addresses=header.num_addrs,
        offsets=offsets,
        offset_size=4,
        infos=0,
        infos_end=len(data),
        string_size=4,
        n_strings=len(strings),
        files=files + 4,
        n_files=n_files,
    )
    return Tables(data, strings, is_own, 1, _uuid_v1(header), layout)


def _header_v1(container: Container, order: str) -> HeaderV1:
    header = HeaderV1(*container.unpack(order + HEADER_V1, 0, "header"))
    if header.uuid_size > len(header.uuid):
        raise FormatError(f"a uuid of {header.uuid_size} bytes", 7, "header")
    return header


def _uuid_v1(header: HeaderV1) -> bytes:
    return header.uuid[: header.uuid_size]


def _tables_v2(container: Container, order: str) -> Tables:
    data = memoryview(container.data[:])
    header = HeaderV2(*container.unpack(order + HEADER_V2, 0, "header"))
    if header.strtab_encoding:
        raise FormatError(f"a string table of encoding {header.strtab_encoding}", 7, "header")
    sections = _sections_v2(container, order)
    files = sections.get(SectionKind.FILE_TABLE, Section(SectionKind.FILE_TABLE, 0, 0))
    n_files = int(container.unpack(order + "I", files.offset, "file table")[0]) if files.size >= 4 else 0
    n_address_bytes = _address_size(header) * header.num_addrs
    infos = _section(data, sections, SectionKind.FUNCTION_INFOS)
    texts = sections.get(SectionKind.STRING_TABLE, Section(SectionKind.STRING_TABLE, 0, 0))
    strings, is_own = _strings(container, texts.offset, texts.size)
    layout = Layout(
        big=order == ">",
        base=header.base_address,
        addresses=_section(data, sections, SectionKind.ADDRESS_OFFSETS, n_address_bytes).offset,
        address_size=header.addr_off_size,
        n_addresses=header.num_addrs,
        offsets=_section(data, sections, SectionKind.INFO_OFFSETS, 8 * header.num_addrs).offset,
        offset_size=8,
        infos=infos.offset,
        infos_end=infos.offset + infos.size,
        string_size=8,
        n_strings=len(strings),
        files=_section(data, sections, SectionKind.FILE_TABLE, 4 + 16 * n_files).offset + 4 if n_files else 0,
        n_files=n_files,
    )
    return Tables(data, strings, is_own, 2, _uuid_v2(container, sections), layout)


def _uuid_v2(container: Container, sections: dict[int, Section]) -> bytes:
    uuid, end = sections.get(SectionKind.UUID, Section(SectionKind.UUID, 0, 0)), len(container.data)
    at = min(uuid.offset, end)
    return bytes(container.part(at, min(uuid.size, MAX_UUID, end - at), "uuid"))


def _sections_v2(container: Container, order: str) -> dict[int, Section]:
    sections: dict[int, Section] = {}
    at = struct.calcsize(order + HEADER_V2)
    while True:
        section = Section(*container.unpack(order + SECTION, at, "sections"))
        if section.type == SectionKind.END_OF_SECTIONS:
            return sections
        sections[section.type] = section
        at += struct.calcsize(order + SECTION)


def _section(data: memoryview, sections: dict[int, Section], kind: SectionKind, least: int = 0) -> Section:
    """Returns a section that has to be there. least: how many bytes it needs."""
    name = kind.name.lower().replace("_", " ")
    if kind not in sections:
        raise FormatError(f"no section of {name}", None, "sections")
    section = sections[kind]
    _inside(data, section.offset, section.size, name)
    if section.size < least:
        raise FormatError(f"{section.size} bytes, where {least} are needed", section.offset, name)
    return section


def _address_size(header: HeaderV1 | HeaderV2) -> int:
    if header.addr_off_size not in ADDRESS_SIZES:
        raise FormatError(f"address offsets of {header.addr_off_size} bytes", 6, "header")
    return header.addr_off_size


def _strings(container: Container, offset: int, size: int) -> tuple[memoryview, bool]:
    """Returns (the string table, whether it is the GSYM data's own): the ELF file's, if one of them begins there."""
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
