"""Layout of Mono log profiler recordings (.mlpd): the file's header, the buffers' headers, and the numbers of events.

Facts: mono/profiler/log.h and proflog.h of Mono from 2010 (data version 1) to 6.14 (17), and of dotnet/runtime.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

MAGIC = b"\x01ZPM"  # 0x4D505A01
BUFFER_MAGIC = b"\x01LPM"  # 0x4D504C01
MAJORS = range(0, 4)
DATA_VERSIONS = range(1, 18)
POINTER_SIZES = (4, 8)
# magic, major, minor, data version, pointer size, startup ms, then from major 3 on the event clock's ns
HEAD = struct.Struct("<4sBBBBQ")
CLOCK = struct.Struct("<Q")
# timer overhead ns, flags, pid, port
PROCESS = struct.Struct("<IIIH")
LENGTH = struct.Struct("<i")
# magic, length, time_base, ptr_base, obj_base, thread id, method_base
BUFFER = struct.Struct("<4siQQQQQ")
BUFFER_SIZE = BUFFER.size


@dataclass(frozen=True)
class Header:
    """start_unix_ms: 0 where it is not recorded; start_clock_ns: the event clock at that time, None before major 3;
    pid: 0 where it is not recorded; arguments: the profiler's option string; size: in bytes."""

    major: int
    minor: int
    data_version: int
    pointer_size: int
    start_unix_ms: int
    start_clock_ns: int | None
    timer_overhead_ns: int
    flags: int
    pid: int
    port: int
    arguments: str
    architecture: str
    system: str
    size: int


class TruncatedError(Exception):
    """The header is longer than the file."""


def read_header(data: memoryview) -> Header:
    """The header; its layout follows from `major`. Raises TruncatedError; checks nothing else."""
    try:
        _, major, minor, data_version, pointer_size, start_ms = HEAD.unpack_from(data)
        at = HEAD.size
        clock_ns = None
        if major >= 3:
            (clock_ns,) = CLOCK.unpack_from(data, at)
            at += CLOCK.size
        overhead, flags, pid, port = PROCESS.unpack_from(data, at)
        at += PROCESS.size
        arguments = architecture = system = ""
        if major == 0:
            at += 2  # the system's number, which is always 0
        else:
            arguments, at = _text(data, at)
            architecture, at = _text(data, at)
            system, at = _text(data, at)
    except struct.error:
        raise TruncatedError from None
    if at > len(data):
        raise TruncatedError
    return Header(
        major, minor, data_version, pointer_size, start_ms, clock_ns, overhead, flags, pid, port,
        arguments, architecture, system, at,
    )  # fmt: skip


def _text(data: memoryview, at: int) -> tuple[str, int]:
    """Its length counts the NUL at its end. Returns the text and where it ends."""
    (length,) = LENGTH.unpack_from(data, at)
    at += LENGTH.size
    if not 0 <= length <= len(data) - at:
        raise TruncatedError
    return bytes(data[at : at + length]).rstrip(b"\0").decode("utf-8", "replace"), at + length


# ---------------------------------------------------------------- events: the first byte, extended info << 4 | type


class Event(IntEnum):
    ALLOC = 0x00
    ALLOC_BT = 0x10
    GC_EVENT = 0x11
    GC_RESIZE = 0x21
    GC_MOVE = 0x31
    HANDLE_CREATED = 0x41
    HANDLE_DESTROYED = 0x51
    HANDLE_CREATED_BT = 0x61
    HANDLE_DESTROYED_BT = 0x71
    FINALIZE_START = 0x81
    FINALIZE_END = 0x91
    FINALIZE_OBJECT_START = 0xA1
    FINALIZE_OBJECT_END = 0xB1
    NAME = 0x02
    LOAD = 0x22
    UNLOAD = 0x42
    LEAVE = 0x13
    ENTER = 0x23
    EXC_LEAVE = 0x33
    JIT = 0x43
    THROW = 0x04
    THROW_BT = 0x84
    CLAUSE = 0x14
    MONITOR = 0x05
    HEAP_START = 0x06
    HEAP_END = 0x16
    HEAP_OBJECT = 0x26
    HEAP_ROOT = 0x36
    ROOT_REGISTER = 0x46
    ROOT_UNREGISTER = 0x56
    HIT = 0x07
    USYM = 0x17
    UBIN = 0x27
    COUNTERS_DESC = 0x37
    COUNTERS = 0x47
    JITHELPER = 0x18
    COVERAGE_ASSEMBLY = 0x09
    COVERAGE_METHOD = 0x19
    COVERAGE_STATEMENT = 0x29
    COVERAGE_CLASS = 0x39
    SYNC_POINT = 0x0A
    AOT_ID = 0x1A


# Before data version 14 the extended info of a monitor event is its kind, and 8 with a backtrace.
MONITOR_EVENTS = (0x05, 0x85, 0x15, 0x95, 0x25, 0xA5, 0x35, 0xB5)


THROWS = (Event.THROW, Event.THROW_BT)
HANDLES_CREATED = (Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT)
HANDLES = (*HANDLES_CREATED, Event.HANDLE_DESTROYED, Event.HANDLE_DESTROYED_BT)


class Metadata(IntEnum):
    CLASS = 1
    IMAGE = 2
    ASSEMBLY = 3
    DOMAIN = 4
    THREAD = 5
    CONTEXT = 6
    VTABLE = 7


class Gc(IntEnum):
    """Kinds of GC_EVENT."""

    START = 0
    MARK_START = 1
    MARK_END = 2
    RECLAIM_START = 3
    RECLAIM_END = 4
    END = 5
    PRE_STOP_WORLD = 6
    POST_STOP_WORLD = 7
    PRE_START_WORLD = 8
    POST_START_WORLD = 9
    PRE_STOP_WORLD_LOCKED = 10
    POST_START_WORLD_UNLOCKED = 11


class Monitor(IntEnum):
    CONTENTION = 1
    DONE = 2
    FAIL = 3


HANDLE_KINDS = ("weak", "weak, tracks resurrection", "normal", "pinned")
CLAUSE_KINDS = {0: "catch", 1: "filter", 2: "finally", 4: "fault"}
CATCH = 0
# From data version 14 on; before, each is one more and 0 is unknown.
HELPER_KINDS = (
    "method", "method trampoline", "unbox trampoline", "interface method trampoline", "generics trampoline",
    "specific trampoline", "helper", "monitor", "delegate invoke", "exception handling",
)  # fmt: skip
SYNC_KINDS = ("periodic", "world stop", "world start")
# Of ROOT_REGISTER, from data version 15 on.
ROOT_SOURCES = (
    "external", "stack", "finalizer queue", "static", "thread static", "context static", "GC handle", "JIT",
    "threading", "domain", "reflection", "marshal", "thread pool", "debugger", "handle", "ephemeron",
    "toggle reference",
)  # fmt: skip
# Of HEAP_ROOT: the low byte in data versions 3 to 13, one bit each in 14.
ROOT_KINDS = ("stack", "finalizer queue", "handle", "other", "miscellaneous")
COUNTER_SECTIONS = {
    8: "jit", 9: "gc", 10: "metadata", 11: "generics", 12: "security", 13: "runtime", 14: "system", 15: "performance",
    16: "profiler", 17: "interpreter",
}  # fmt: skip
PERFORMANCE_SECTION = 1 << 15
# The unit stands in bits 24 and up: (unit of the model's counter, its value in it).
COUNTER_UNITS = {0: ("count", 1), 1: ("bytes", 1), 2: ("ns", 100), 3: ("count", 1), 4: ("percent", 1)}


class CounterType(IntEnum):
    INT = 0
    UINT = 1
    WORD = 2
    LONG = 3
    ULONG = 4
    DOUBLE = 5
    STRING = 6
    TIME_INTERVAL = 7  # in microseconds
