"""Layout: the records of a jitdump, in the terms of its specification and of samply's extensions.

Sources: tools/perf/Documentation/jitdump-specification.txt; "Jitdump extensions for samply" (2023) for
DEBUG_INFO2, JIT_TIER and EMBEDDED_SOURCE_FILE; FORMATS.md for what that text leaves open.
"""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from traceferry.importers.jitdump.magic import MAGIC

HEADER_SIZE = 40
RECORD_HEADER_SIZE = 16
VERSIONS = (1, 2)
FLAGS_ARCH_TIMESTAMP = 1  # time stamps are a processor's counter

# Linux gives no larger thread ids: BEAM writes those of a library, and the main thread stands for them.
MAX_TID = 1 << 22

# V8 fills the header's padding with this, which tells its dumps from others.
V8_PADDING = 0xDEADBEEF


class Id(IntEnum):
    """JIT_CODE_* and SAMPLY_*."""

    LOAD = 0
    MOVE = 1
    DEBUG_INFO = 2
    CLOSE = 3
    UNWINDING_INFO = 4
    INLINE_INFO = 5  # variant C: a draft
    DEBUG_INFO2 = 827346259  # variant A: "SMP1"
    TIER = 827346260  # or variant B: two proposals took the same number
    EMBEDDED_SOURCE_FILE = 827346261


DEBUG_ENTRY_SIZE = 16  # code_addr, line, discrim; then the name and a NUL
SAME_FILE = b"\xff"  # instead of the name: the one before


class Structs(NamedTuple):
    """Every fixed part of a record, for one byte order."""

    header: struct.Struct  # magic, version, total_size, elf_mach, pad1, pid, timestamp, flags
    record: struct.Struct  # id, total_size, timestamp
    load: struct.Struct  # pid, tid, vma, code_addr, code_size, code_index; then the name, a NUL, and the code
    move: struct.Struct  # pid, tid, vma, old_code_addr, new_code_addr, code_size, code_index
    pair64: struct.Struct  # of DEBUG_INFO: code_addr, nr_entry
    unwinding: struct.Struct  # unwinding_size, eh_frame_hdr_size, mapped_size
    pair32: struct.Struct  # of TIER: tier_id, color_index
    info2_a: struct.Struct  # file_count, file_list_size, function_names_count, function_names_list_size,
    #                         function_count, inline_call_record_count, range_count, line_record_count
    function_a: struct.Struct  # function_name_index, file_index, start_line, start_column, flags
    call_a: struct.Struct  # depth, range_count, function_index, call_line_number, call_column_number
    line_a: struct.Struct  # code_offset, file_index, line_number, column_number
    info2_b: struct.Struct  # code_addr, code_offset_count, source_position_count, string_count
    position_b: struct.Struct  # see inlines.POSITION_B
    word: struct.Struct


@cache
def structs(byte_order: str) -> Structs:
    """Returns the structures. byte_order: "<" or ">"."""
    layouts = ("IIIIIIQQ", "IIQ", "IIQQQQ", "IIQQQQQ", "QQ", "QQQ", "II", "8I", "5I", "5I", "4I", "QQQQ", "iIiIIII",
               "I")  # fmt: skip
    return Structs(*(struct.Struct(byte_order + layout) for layout in layouts))


class Header(NamedTuple):
    """byte_order: "<" or ">"; timestamp: when the dump was opened, on a clock of the writer's choice."""

    byte_order: str
    version: int
    total_size: int
    elf_mach: int
    pad1: int
    pid: int
    timestamp: int
    flags: int

    @property
    def has_ticks(self) -> bool:
        """Whether time stamps are a processor's counter. Other bits mean nothing: where they are set, LLVM's ORC has
        left the word as it was in memory, and writes the times of CLOCK_MONOTONIC."""
        return self.flags == FLAGS_ARCH_TIMESTAMP


def read_header(data: memoryview) -> Header | None:
    """Returns the header, or None if it is not a supported one."""
    if len(data) < HEADER_SIZE:
        return None
    for byte_order in "<>":
        magic, version, total_size, elf_mach, pad1, pid, timestamp, flags = structs(byte_order).header.unpack_from(data)
        if magic == MAGIC and version in VERSIONS and total_size >= HEADER_SIZE:
            return Header(byte_order, version, total_size, elf_mach, pad1, pid, timestamp, flags)
    return None


def may_be_called(header: Header, name: str) -> bool:
    """Whether the process that wrote the dump can have called it so: jit-PID.dump, Bun's jit-TID-PID.dump."""
    return str(header.pid) in re.findall("[0-9]+", name)


# TIER.color_index: samply's list of colours. The Firefox Profiler knows no light green.
TIER_COLORS = (
    "transparent", "lightblue", "red", "lightred", "orange", "blue", "green", "purple", "yellow", "brown", "magenta",
    "green", "grey", "darkgrey",
)  # fmt: skip

# e_machine of the ELF specification → the name that viewers know.
ARCHITECTURES = {3: "x86", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390x", 40: "arm", 62: "x86_64", 183: "arm64",
                 243: "riscv64", 258: "loongarch64"}  # fmt: skip
