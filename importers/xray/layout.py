"""Layout of LLVM XRay logs: headers and records as the runtime writes them (compiler-rt/lib/xray, LLVM 14 to 22)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

HEADER_SIZE = 32
FDR_VERSIONS = range(1, 6)
BASIC_VERSIONS = range(1, 4)
TYPE_BASIC, TYPE_FDR = 0, 1


@dataclass(frozen=True)
class Header:
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
    def order(self) -> str:
        """The byte order, as formats of struct and NumPy have it."""
        return ">" if self.big else "<"


def read_header(data: memoryview) -> Header | None:
    """Returns the header, if version and type are valid in one of the byte orders. There is no magic number."""
    if len(data) < HEADER_SIZE:
        return None
    for order in "<>":
        version, kind, flags, frequency, buffer_size = struct.unpack_from(order + "HHIQQ", data)
        big = order == ">"
        versions = {TYPE_BASIC: BASIC_VERSIONS, TYPE_FDR: FDR_VERSIONS}.get(kind, range(0))
        if version in versions:
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

    NEW_BUFFER = 0  # i32 tid
    END_OF_BUFFER = 1  # v1 only
    NEW_CPU_ID = 2  # u16 cpu, u64 tsc: absolute, a new base for deltas
    TSC_WRAP = 3  # u64 tsc: absolute, a new base for deltas
    WALLTIME = 4  # i64 seconds, i32 microseconds, of CLOCK_MONOTONIC
    CUSTOM_EVENT = 5  # v1-v3: i32 size, u64 tsc; v4: and u16 cpu; v5: i32 size, i32 delta. Then the payload
    CALL_ARGUMENT = 6  # u64 value, after its function's entry
    BUFFER_EXTENTS = 7  # v2+: u64 bytes that follow
    TYPED_EVENT = 8  # v3, v4: i32 size, u64 tsc, u16 type; v5: i32 size, i32 delta, u16 type. Then the payload
    PID = 9  # v3+: i32 pid


METADATA_NAMES = {
    Metadata.NEW_BUFFER: "NewBuffer",
    Metadata.END_OF_BUFFER: "EndOfBuffer",
    Metadata.NEW_CPU_ID: "NewCPUId",
    Metadata.TSC_WRAP: "TSCWrap",
    Metadata.WALLTIME: "Walltime",
    Metadata.CUSTOM_EVENT: "CustomEvent",
    Metadata.CALL_ARGUMENT: "CallArgument",
    Metadata.BUFFER_EXTENTS: "BufferExtents",
    Metadata.TYPED_EVENT: "TypedEvent",
    Metadata.PID: "Pid",
}
METADATA_SIZE = 16
FUNCTION_SIZE = 8


def metadata_byte(kind: Metadata, big: bool) -> int:
    """Returns the first byte of a metadata record."""
    return 0x80 | kind if big else kind << 1 | 1


def metadata_fields(kind: Metadata, version: int) -> str:
    """Returns the struct format of the bytes after the first, without byte order."""
    match kind:
        case Metadata.NEW_BUFFER | Metadata.PID:
            return "i"
        case Metadata.NEW_CPU_ID:
            return "HQ"
        case Metadata.TSC_WRAP | Metadata.CALL_ARGUMENT | Metadata.BUFFER_EXTENTS:
            return "Q"
        case Metadata.WALLTIME:
            return "qi"
        case Metadata.CUSTOM_EVENT:
            return "ii" if version >= 5 else "iQH" if version == 4 else "iQ"
        case Metadata.TYPED_EVENT:
            return "iiH" if version >= 5 else "iQH"
        case _:
            return ""


METADATA_FIELD_NAMES = {
    Metadata.NEW_BUFFER: ("tid",),
    Metadata.END_OF_BUFFER: (),
    Metadata.NEW_CPU_ID: ("cpu", "tsc"),
    Metadata.TSC_WRAP: ("tsc",),
    Metadata.WALLTIME: ("seconds", "microseconds"),
    Metadata.CUSTOM_EVENT: ("size", "tsc", "cpu"),
    Metadata.CALL_ARGUMENT: ("value",),
    Metadata.BUFFER_EXTENTS: ("size",),
    Metadata.TYPED_EVENT: ("size", "tsc", "type"),
    Metadata.PID: ("pid",),
}

BASIC_SIZE = 32
BASIC_NORMAL, BASIC_ARGUMENT = 0, 1
BASIC_KINDS = 4


def basic_record(order: str) -> np.dtype[np.void]:
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
    return np.dtype(
        {
            "names": list(fields),
            "formats": [order + kind if kind != "u1" else kind for kind, _ in fields.values()],
            "offsets": [at for _, at in fields.values()],
            "itemsize": BASIC_SIZE,
        }
    )


# Runtimes since LLVM 20 number the functions of each shared object apart: id = object << 24 | function.
OBJECT_SHIFT = 24
