"""Layout of Mono log profiler recordings (.mlpd): the file's header, the buffers' headers, and the numbers of events.

Facts: mono/profiler/log.h and proflog.h of Mono from 2010 (data version 1) to 6.14 (17), and of dotnet/runtime.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

BUFFER_MAGIC = b"\x01LPM"  # 0x4D504C01
MAJORS = range(0, 4)
DATA_VERSIONS = range(1, 18)
POINTER_SIZES = (4, 8)
# magic, major, minor, data version, pointer size, startup ms, then from major 3 on the event clock's ns
HEAD = struct.Struct("<4sBBBBQ")
CLOCK = struct.Struct("<Q")
# timer overhead ns, flags, pid, port
PROCESS = struct.Struct("<IIIH")
# In place of the texts, in major 0: the system's number, which is always 0.
NO_TEXTS = struct.Struct("<H")
LENGTH = struct.Struct("<i")
# magic, length, time_base, ptr_base, obj_base, thread id, method_base
BUFFER = struct.Struct("<4siQQQQQ")
BUFFER_SIZE = BUFFER.size


class Header(NamedTuple):
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


def read_header(data: memoryview) -> Header:
    """Returns the header; its layout follows from `major`. Raises struct.error where the file ends inside it; checks
    nothing else."""
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
        NO_TEXTS.unpack_from(data, at)
        at += NO_TEXTS.size
    else:
        arguments, at = _text(data, at)
        architecture, at = _text(data, at)
        system, at = _text(data, at)
    return Header(
        major, minor, data_version, pointer_size, start_ms, clock_ns, overhead, flags, pid, port,
        arguments, architecture, system, at,
    )  # fmt: skip


def _text(data: memoryview, at: int) -> tuple[str, int]:
    """Its length counts the NUL at its end. Returns the text and where it ends."""
    (length,) = LENGTH.unpack_from(data, at)
    at += LENGTH.size
    (text,) = struct.unpack_from(f"{length}s", data, at)
    return text.rstrip(b"\0").decode("utf-8", "replace"), at + length


# ---------------------------------------------------------------- events

LATEST = DATA_VERSIONS[-1]
ALLOCATION = "type:pointer object:object size:size"
HANDLE = "type:uleb handle:uleb"
# The outermost caller first: methods from version 13 on, pointers before.
BACKTRACE = "_:uleb@-12 _:count *frames:pointer@-12 *frames:method@13-"
SMALL = "{0}:uleb@-12 {0}:byte@13-"
WORDS = " ".join(f"*{name}:uleb#-12 *{name}:byte#13-14 *{name}:uleb#15-" for name in ("type", "unit", "variance"))


class Event(IntEnum):
    """The first byte of an event, extended info << 4 | type, and what follows it: fields.

    A field is `name:encoding`, with `@14-` from data version 14 on, `@-12` until 12, `@13-13` in 13 only, and so is a
    declaration as a whole; `#` instead of `@` asks for the version of counters: see `events.Layout`. `_` is a field
    that is not kept, and `*` one of the group that is repeated as often as the count before it says. Encodings are
    those of `_cursor`; `text=5` is a text, if the event's first field is 5; `=1` is not in the file: the value
    is 1. A type is a class, from version 15 on a vtable.
    """

    fields: tuple[str, ...]

    def __new__(cls, first_byte: int, *fields: str) -> Event:
        event = int.__new__(cls, first_byte)
        event._value_, event.fields = first_byte, fields
        return event

    ALLOC = 0x00, ALLOCATION
    ALLOC_BT = 0x10, f"{ALLOCATION} {BACKTRACE}"
    GC_EVENT = 0x11, f"{SMALL.format('event')} {SMALL.format('generation')}"
    GC_RESIZE = 0x21, "size:size"
    GC_MOVE = 0x31, "_:count *moves:object"  # old and new places in turn
    HANDLE_CREATED = 0x41, f"{HANDLE} object:object"
    HANDLE_DESTROYED = 0x51, HANDLE
    HANDLE_CREATED_BT = 0x61, f"{HANDLE} object:object {BACKTRACE}"
    HANDLE_DESTROYED_BT = 0x71, f"{HANDLE} {BACKTRACE}"
    FINALIZE_START = 0x81, "@13-"
    FINALIZE_END = 0x91, "@13-"
    FINALIZE_OBJECT_START = 0xA1, "@13- object:object"
    FINALIZE_OBJECT_END = 0xB1, "@13- object:object"
    NAME = 0x02  # this and the next two: see METADATA
    LOAD = 0x22
    UNLOAD = 0x42
    LEAVE = 0x13, "method:method"
    ENTER = 0x23, "method:method"
    EXC_LEAVE = 0x33, "method:method"
    JIT = 0x43, "method:method code:pointer size:uleb name:text"
    THROW = 0x04, "object:object"
    THROW_BT = 0x84, f"object:object {BACKTRACE}"
    CLAUSE = 0x14, f"{SMALL.format('type')} index:uleb method:method object:object@14-"
    MONITOR = 0x05, "@14- event:byte object:object"  # before: see MONITORS
    MONITOR_BT = 0x85, f"@14- event:byte object:object {BACKTRACE}"
    HEAP_START = 0x06, ""
    HEAP_END = 0x16, ""
    HEAP_OBJECT = (
        0x26,
        "object:object type:pointer size:size generation:byte@16- _:count *_:uleb@2- *references:object",
    )
    HEAP_ROOT = (
        0x36,
        "@3-14 _:count collections:uleb *object:object *kind:uleb@-12 *kind:byte@13-13 *kind:uleb@14- *extra:uleb",
        "@15- _:count *address:pointer *object:object",
    )
    ROOT_REGISTER = 0x46, "@15- start:pointer size:uleb source:byte key:pointer name:text"
    ROOT_UNREGISTER = 0x56, "@15- start:pointer"
    HIT = (
        0x07,
        "@4- type:uleb@-12 _:time@-12 type:byte@13-13 thread:pointer@11- n_ips:count *ips:pointer "
        "_:count@6- *methods:method@6- *_:sleb@6-12 *_:sleb@6-12",
    )
    USYM = 0x17, "@4- address:pointer size:uleb name:text"
    UBIN = 0x27, "@4-15 address:signed@-13 address:pointer@14- offset:uleb size:uleb name:text"
    COUNTERS_DESC = 0x37, f"@5- _:count *section:section *name:text {WORDS} *index:uleb"
    COUNTERS = 0x47, "@5- ms:uleb@-12 values:values=0#-12 values:values=1#13-14 values:values=0#15-"
    JITHELPER = 0x18, f"@8- {SMALL.format('type')} address:pointer size:size name:text=6@-13 name:text=5@14-"
    COVERAGE_ASSEMBLY = 0x09, "@10-15 name:text guid:text file:text methods:uleb whole:uleb partial:uleb"
    COVERAGE_METHOD = (
        0x19,
        "@10-15 assembly:text class:text name:text signature:text file:text token:uleb number:uleb statements:uleb",
    )
    COVERAGE_STATEMENT = 0x29, "@10-15 number:uleb offset:uleb times:uleb line:uleb column:uleb"
    COVERAGE_CLASS = 0x39, "@10-15 assembly:text name:text methods:uleb whole:uleb partial:uleb"
    SYNC_POINT = 0x0A, "@13- kind:byte"
    AOT_ID = 0x1A, "@16- text:text"


# Before data version 14, the event of a monitor stands in the first byte, and only contentions have backtraces.
MONITORS = {
    0x05 | bit | event << 4: f"@-13 event:={event} object:object" + f" {BACKTRACE}" * (bit > 0 and event == 1)
    for bit in (0, 0x80)
    for event in range(4)
}
MONITOR_EVENTS = tuple(MONITORS)
THROWS = (Event.THROW, Event.THROW_BT)
HANDLES_CREATED = (Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT)
HANDLES = (*HANDLES_CREATED, Event.HANDLE_DESTROYED, Event.HANDLE_DESTROYED_BT)
# Events of which the stack counts, besides allocations.
SITED = (*THROWS, Event.CLAUSE, *HANDLES, *MONITOR_EVENTS)


Metadata = IntEnum("Metadata", "CLASS IMAGE ASSEMBLY DOMAIN THREAD CONTEXT VTABLE")
# Of NAME, LOAD and UNLOAD; in front of these stand `what:byte pointer:pointer`.
METADATA: tuple[tuple[tuple[int, ...], Metadata, int, str], ...] = (
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.CLASS, 1, "image:pointer _:uleb@-12 name:text"),
    ((Event.NAME, Event.UNLOAD), Metadata.IMAGE, 1, "_:uleb@-12 name:text"),
    ((Event.LOAD,), Metadata.IMAGE, 1, "_:uleb@-12 name:text mvid:text@16-"),
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.ASSEMBLY, 1, "image:pointer@14- _:uleb@-12 name:text"),
    ((Event.NAME,), Metadata.DOMAIN, 1, "_:uleb@-12 name:text"),
    ((Event.LOAD, Event.UNLOAD), Metadata.DOMAIN, 1, "_:uleb@-12"),
    ((Event.NAME,), Metadata.THREAD, 1, "_:uleb@-12 name:text"),
    ((Event.LOAD, Event.UNLOAD), Metadata.THREAD, 1, "_:uleb@-12"),
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.CONTEXT, 1, "_:uleb@-12 domain:pointer"),
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.VTABLE, 15, "domain:pointer class:pointer"),
)


# Kinds of GC_EVENT.
Gc = IntEnum(
    "Gc",
    "START MARK_START MARK_END RECLAIM_START RECLAIM_END END PRE_STOP_WORLD POST_STOP_WORLD PRE_START_WORLD "
    "POST_START_WORLD PRE_STOP_WORLD_LOCKED POST_START_WORLD_UNLOCKED",
    start=0,
)
Monitor = IntEnum("Monitor", "CONTENTION DONE FAIL")
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
# TIME_INTERVAL is in microseconds.
CounterType = IntEnum("CounterType", "INT UINT WORD LONG ULONG DOUBLE STRING TIME_INTERVAL", start=0)
