"""The layout of GSYM files, versions 1 and 2, as LLVM's include/llvm/DebugInfo/GSYM documents it, and as it was first
meant, the proposal of 2018 (llvm-commits, D53379)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

MAGIC = 0x4753594D
ADDRESS_SIZES = {1: "B", 2: "H", 4: "I", 8: "Q"}
# Bytes of an info offset, and of a string offset, by version.
OFFSET_SIZES = {1: 4, 2: 8}

HEADER = "IHBBQI"


class Header(NamedTuple):
    """The header at offset 0. uuid_size: in version 2 it is the encoding of the string table, of which 0 is known.

    In version 1 HEADER_REST follows, then the address table, at the next multiple of 4 the table of info offsets, and
    at the next one the file table. In version 2 the table of sections follows."""

    magic: int
    version: int
    addr_off_size: int
    uuid_size: int
    base_address: int
    num_addrs: int


# The rest of the header of version 1: offset and size of the string table, and the bytes for the uuid, which are always
# there, and of which uuid_size bytes count.
HEADER_REST = "II20s"
MAX_UUID_V1 = 20

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


class InfoType(IntEnum):
    """The types of the data in a function info."""

    END = 0
    LINE_TABLE = 1
    INLINE_TREE = 2
    MERGED_FUNCTIONS = 3
    CALL_SITES = 4


class DamagedInfoError(Exception):
    """Says what is wrong with a function info."""


# The first field of an info, without which there is none; the count of merged functions, and of call sites.
INFO_SIZE = COUNT_SIZE = 4
# CallSite.flags.
INTERNAL_CALL, EXTERNAL_CALL = 1, 2


class Problem(NamedTuple):
    """Damage. offset: in the GSYM data, in bytes."""

    offset: int
    what: str
