"""Layout of LLVM XRay logs: headers and records as the runtime writes them (compiler-rt/lib/xray, LLVM 14 to 22)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Literal, NamedTuple

import numpy as np

from traceferry.importers.xray.magic import TYPE_FDR, is_version

HEADER_SIZE = 32


class Header(NamedTuple):
    """XRayFileHeader. Flag bits beyond the two are garbage in basic logs; so is `buffer_size` there.

    u16 version, u16 type, u32 flags, u64 cycle_frequency, u64 buffer_size (FDR), 8 unused
    """

    version: int
    type: int
    big: bool
    constant_tsc: bool
    nonstop_tsc: bool
    cycle_frequency: int
    buffer_size: int

    @property
    def mode(self) -> str:
        return "FDR" if self.type == TYPE_FDR else "basic"

    @property
    def order(self) -> Literal["<", ">"]:
        """The byte order, as formats of struct and NumPy have it."""
        return ">" if self.big else "<"


def read_header(data: memoryview) -> Header | None:
    """Returns the header, if version and type are valid in one of the byte orders. There is no magic number."""
    if len(data) < HEADER_SIZE:
        return None
    for order in "<>":
        version, kind, flags, frequency, buffer_size = struct.unpack_from(order + "HHIQQ", data)
        big = order == ">"
        if is_version(version, kind):
            # Bit fields are laid out from the most significant bit on big-endian machines.
            constant, nonstop = (31, 30) if big else (0, 1)
            return Header(
                version, kind, big, bool(flags >> constant & 1), bool(flags >> nonstop & 1), frequency, buffer_size
            )
    return None


class Function(IntEnum):
    """Kinds of FDR function records, 8 bytes: u1 = 0, u3 kind, u28 function id, u32 TSC delta."""

    ENTER = 0
    EXIT = 1
    TAIL_EXIT = 2
    ENTER_ARG = 3


class Metadata(IntEnum):
    """Kinds of FDR metadata records, 16 bytes: u1 = 1, u7 kind, 15 bytes of which the unused are garbage."""

    NEW_BUFFER = 0
    END_OF_BUFFER = 1  # v1 only
    NEW_CPU_ID = 2  # absolute, a new base for deltas
    TSC_WRAP = 3  # absolute, a new base for deltas
    WALLTIME = 4  # of CLOCK_MONOTONIC
    CUSTOM_EVENT = 5  # the payload follows
    CALL_ARGUMENT = 6  # after its function's entry
    BUFFER_EXTENTS = 7  # v2+: how many bytes follow
    TYPED_EVENT = 8  # v3+; the payload follows
    PID = 9  # v3+


# LLVM's name of each kind, the struct format of the bytes after the first, and its fields.
METADATA_RECORDS = {
    Metadata.NEW_BUFFER: ("NewBuffer", "i", ("tid",)),
    Metadata.END_OF_BUFFER: ("EndOfBuffer", "", ()),
    Metadata.NEW_CPU_ID: ("NewCPUId", "HQ", ("cpu", "tsc")),
    Metadata.TSC_WRAP: ("TSCWrap", "Q", ("tsc",)),
    Metadata.WALLTIME: ("Walltime", "qi", ("seconds", "microseconds")),
    Metadata.CUSTOM_EVENT: ("CustomEvent", "iQ", ("size", "tsc", "cpu")),
    Metadata.CALL_ARGUMENT: ("CallArgument", "Q", ("value",)),
    Metadata.BUFFER_EXTENTS: ("BufferExtents", "Q", ("size",)),
    Metadata.TYPED_EVENT: ("TypedEvent", "iQH", ("size", "tsc", "type")),
    Metadata.PID: ("Pid", "i", ("pid",)),
}
# Later versions of events: v4 adds the CPU to custom ones, from v5 on the time is a difference.
EVENT_FORMATS = {(Metadata.CUSTOM_EVENT, 4): "iQH", (Metadata.CUSTOM_EVENT, 5): "ii", (Metadata.TYPED_EVENT, 5): "iiH"}


def metadata_format(kind: Metadata, header: Header) -> str:
    """Returns the struct format of the bytes after the first."""
    return header.order + EVENT_FORMATS.get((kind, header.version), METADATA_RECORDS[kind][1])


METADATA_SIZE = 16
FUNCTION_SIZE = 8


def metadata_byte(kind: Metadata, big: bool) -> int:
    """Returns the first byte of a metadata record."""
    return 0x80 | kind if big else kind << 1 | 1


BASIC_SIZE = 32
BASIC_NORMAL, BASIC_ARGUMENT = 0, 1
BASIC_KINDS = 4


def basic_record(order: Literal["<", ">"]) -> np.dtype[np.void]:
    """Both basic-mode records in one: `argument` overlays the fields that an argument record has elsewhere.

    normal:   u16 0, u8 cpu, u8 kind, i32 func, u64 tsc, u32 tid, u32 pid, 8 pad
    argument: u16 1, 2 pad,           i32 func, u32 tid, u32 pid, u64 value, 8 pad
    """
    fields = {
        "record": ("u2", 0),
        "cpu": ("u1", 2),
        "kind": ("u1", 3),
        "func": ("i4", 4),
        "tsc": ("u8", 8),
        "tid": ("u4", 16),
        "pid": ("u4", 20),
        "argument_tid": ("u4", 8),
        "argument_pid": ("u4", 12),
        "argument": ("u8", 16),
    }
    kinds, offsets = zip(*fields.values(), strict=True)
    return np.dtype({"names": list(fields), "formats": kinds, "offsets": offsets, "itemsize": BASIC_SIZE}).newbyteorder(
        order
    )


# Runtimes since LLVM 20 number the functions of each shared object apart: id = object << 24 | function.
OBJECT_SHIFT = 24
