"""The layout of GSYM files, versions 1 and 2, as LLVM's include/llvm/DebugInfo/GSYM documents it, and as it was first
meant, the proposal of 2018 (llvm-commits, D53379)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

MAGIC = 0x4753594D
ADDRESS_SIZES = (1, 2, 4, 8)

HEADER_V1 = "IHBBQIII20s"


class HeaderV1(NamedTuple):
    """The header at offset 0. Behind it come the address table, at the next multiple of 4 the table of info offsets,
    and at the next one the file table. The bytes for the uuid are always there, of which uuid_size bytes count."""

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
    """The header at offset 0. Behind it comes the table of sections."""

    magic: int
    version: int
    addr_off_size: int
    strtab_encoding: int
    base_address: int
    num_addrs: int


SECTION = "IQQ"


class Section(NamedTuple):
    """An entry of the list of sections of version 2: where something lies, counted from the header. The table ends with
    type 0."""

    type: int
    offset: int
    size: int


class SectionKind(IntEnum):
    """Section.type"""

    END_OF_SECTIONS = 0
    ADDRESS_OFFSETS = 1
    INFO_OFFSETS = 2
    STRING_TABLE = 3
    FILE_TABLE = 4
    FUNCTION_INFOS = 5
    UUID = 6


# Version 2 has no limit for it; the longest digests have so many bytes.
MAX_UUID = 64

ELF_MAGIC = b"\x7fELF"
ELF_SECTION = ".gsym"


class DamagedInfoError(Exception):
    """Says what is wrong with a function info."""


# The first field of an info, without which there is none.
INFO_SIZE = 4
# CallSite.flags.
INTERNAL_CALL, EXTERNAL_CALL = 1, 2


class Layout(NamedTuple):
    """The places of a file's tables, as the compiled code needs it: offsets and sizes in bytes.

    big: whether numbers are big endian; base: what addresses count from; infos: what info offsets count from, none is
    read from infos_end on; string_size: of a string offset; n_strings: bytes of the string table; files: the first
    entry of the file table, behind its count.
    """

    big: bool
    base: int
    addresses: int
    address_size: int
    n_addresses: int
    offsets: int
    offset_size: int
    infos: int
    infos_end: int
    string_size: int
    n_strings: int
    files: int
    n_files: int


class Problem(NamedTuple):
    """Damage. offset: in the GSYM data, in bytes."""

    offset: int
    what: str
