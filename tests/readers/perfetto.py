"""Reads Perfetto protobuf traces without the protobuf or perfetto packages, and says what is inconsistent.

The converter's tests compare its output with this reader, so it must not share code with the exporter. Field
numbers are those of Perfetto's .proto files; it reads sequences, clocks, track events, stack samples and their symbols,
V8 scripts, heap profiles, heap graphs and scheduling.
"""

import argparse
import bisect
import gzip
import struct
import sys
import zlib
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

# Builtin clock ids (1.2).
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
# TrackEvent types (1.3).
BEGIN, END, INSTANT, COUNTER, STATE = 1, 2, 3, 4, 5
# Sequence flags (1.1).
CLEARED, NEEDS = 1, 2
# trace_processor drops deeper slices (1.3).
MAX_DEPTH = 512


class MalformedTrace(ValueError):  # noqa: N818 - it is the file that is wrong, not the caller
    """The bytes are not protobuf messages."""


@dataclass(slots=True)
class Process:
    uuid: int
    pid: int
    name: str | None = None
    cmdline: list[str] = field(default_factory=list)
    start_ns: int | None = None
    labels: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Thread:
    uuid: int
    pid: int
    tid: int
    name: str | None = None


@dataclass(slots=True)
class Track:
    """A TrackDescriptor, merged from all packets that describe it; pid and tid come from parents too."""

    uuid: int
    parent: int | None = None
    name: str | None = None
    description: str | None = None
    kind: str = "slices"  # process, thread, counter, state or slices
    rank: int | None = None  # sibling_order_rank
    ordering: int | None = None  # child_ordering
    pid: int | None = None
    tid: int | None = None


@dataclass(slots=True)
class Source:
    file: str | None
    function: str | None
    line: int | None


@dataclass(slots=True)
class Slice:
    """`dur` is None while the slice is open; `args` holds the annotations of BEGIN, then those of END."""

    track: int
    pid: int | None
    tid: int | None
    ts: int
    dur: int | None
    depth: int
    name: str | None
    categories: tuple[str, ...]
    args: dict[str, Any]
    source: Source | None
    flows: tuple[int, ...] = ()
    callstack: list["Frame"] | None = None  # the root first


@dataclass(slots=True)
class Instant:
    track: int
    pid: int | None
    tid: int | None
    ts: int
    name: str | None
    categories: tuple[str, ...]
    args: dict[str, Any]
    source: Source | None
    flows: tuple[int, ...] = ()
    callstack: list["Frame"] | None = None  # the root first


@dataclass(slots=True)
class State:
    """One value of a state track; `dur` is None for the last value if nothing ends it."""

    track: int
    pid: int | None
    tid: int | None
    ts: int
    dur: int | None
    value: str
    categories: tuple[str, ...]
    args: dict[str, Any]


@dataclass(slots=True)
class Counter:
    """A counter track; values are absolute and multiplied by the unit multiplier."""

    track: int
    pid: int | None
    tid: int | None
    name: str | None
    unit: int = 0  # 1 ns, 2 count, 3 bytes
    unit_name: str | None = None
    unit_multiplier: int = 1
    incremental: bool = False
    values: list[tuple[int, int | float]] = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """An interned frame. lines: the functions there, the innermost first; ModuleSymbols say them at the end."""

    mapping: tuple[str, bytes, int, int] | None  # (name, build id, start, end)
    rel_pc: int
    kind: int
    lines: list[Source]


@dataclass(slots=True)
class Sample:
    """callstack: the root first, None where there is none; counters: name → (unit, value), the primary one first."""

    source: str | None
    sequence: int
    pid: int | None
    tid: int | None
    ts: int
    cpu: int | None
    mode: int | None  # 1 user, 2 kernel
    callstack: list[Frame] | None
    counters: dict[str, tuple[int | str, int]]

    @property
    def names(self) -> list[str | None]:
        """The functions, the innermost first, inlined ones among them."""
        return names_of(self.callstack)

    @property
    def weight(self) -> int | None:
        return next((value for _, value in self.counters.values()), None)


def names_of(callstack: list[Frame] | None) -> list[str | None]:
    return [line.function for frame in reversed(callstack or []) for line in frame.lines]


@dataclass(slots=True)
class Run:
    """A thread on a processor; `dur` and `end_state` are None where nothing tells the end."""

    tid: int
    cpu: int
    ts: int
    dur: int | None
    end_state: int | None  # 2 could run, 4 waits


@dataclass(slots=True)
class Script:
    pid: int
    name: str
    source: str


@dataclass(slots=True)
class HeapSample:
    """What was allocated with one callstack, and freed of it."""

    callstack: list[Frame] | None
    allocated: int
    freed: int
    count: int
    freed_count: int

    @property
    def names(self) -> list[str | None]:
        return names_of(self.callstack)


@dataclass(slots=True)
class HeapProfile:
    """One dump of a process's heap: what was allocated from start_ts to ts."""

    pid: int
    heap: str
    start_ts: int
    ts: int
    samples: list[HeapSample] = field(default_factory=list)


@dataclass(slots=True)
class HeapObject:
    type: str
    size: int
    references: list[int]


@dataclass(slots=True)
class HeapGraph:
    """One dump of a process's objects, by their ids; roots: (type of root, object)."""

    pid: int
    ts: int
    types: dict[int, tuple[str, int]] = field(default_factory=dict)  # id → (name, kind)
    objects: dict[int, HeapObject] = field(default_factory=dict)
    roots: list[tuple[int, int]] = field(default_factory=list)
    packets: int = 0


@dataclass(slots=True)
class Trace:
    """Times are nanoseconds of `clock_id`. Slices stand in the order of their BEGINs: parents first."""

    clock_id: int = BOOTTIME
    processes: dict[int, Process] = field(default_factory=dict)  # by track uuid
    threads: dict[int, Thread] = field(default_factory=dict)  # by track uuid
    tracks: dict[int, Track] = field(default_factory=dict)  # by uuid, those of processes and threads too
    slices: list[Slice] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    states: list[State] = field(default_factory=list)
    counters: dict[int, Counter] = field(default_factory=dict)  # by track uuid
    samples: list[Sample] = field(default_factory=list)  # in the order of time
    runs: list[Run] = field(default_factory=list)  # in the order of time
    scripts: list[Script] = field(default_factory=list)
    heap_profiles: list[HeapProfile] = field(default_factory=list)
    heap_graphs: list[HeapGraph] = field(default_factory=list)
    attributes: dict[str, str | int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    packets: int = 0
    other_packets: Tally[int] = field(default_factory=Tally)  # payload field number of what is not read


def read(path: str | Path) -> Trace:
    """The trace in a file, gzipped or not."""
    return parse(Path(path).read_bytes())


def parse(data: bytes) -> Trace:
    """The trace in memory."""
    trace = Trace()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:1] != b"\x0a":
        # 1.1: without this first byte no viewer recognises the file.
        trace.errors.append("the file does not start with byte 0x0a")
    reader = _Reader(trace)
    for packet in _packets(data):
        reader.packet(packet)
    reader.symbolize()
    reader.finish()
    _replay(trace, reader.events)
    _schedule(trace, reader.task_states)
    trace.samples.sort(key=lambda sample: sample.ts)
    return trace


# --- wire format --------------------------------------------------------------------------------------------

Value = int | bytes
_FIXED64, _FIXED32 = struct.Struct("<Q"), struct.Struct("<I")
_DOUBLE = struct.Struct("<d")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at `at`, and the offset behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise MalformedTrace(f"a varint of more than 10 bytes ends near byte {at} of its message")


def _fields(data: bytes) -> list[tuple[int, Value]]:
    """(field number, value) of one message: ints for varints and fixed values, else bytes."""
    found: list[tuple[int, Value]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = _varint(data, at - 1)
            wire = tag & 7
            value: Value
            if wire == 0:
                value = data[at]
                at += 1
                if value >= 0x80:
                    value, at = _varint(data, at - 1)
            elif wire == 2:
                size = data[at]
                at += 1
                if size >= 0x80:
                    size, at = _varint(data, at - 1)
                value = data[at : at + size]
                at += size
            elif wire == 1:
                value = _FIXED64.unpack_from(data, at)[0]
                at += 8
            elif wire == 5:
                value = _FIXED32.unpack_from(data, at)[0]
                at += 4
            else:
                raise MalformedTrace(f"wire type {wire} at byte {at} of a message")
            found.append((tag >> 3, value))
    except (IndexError, struct.error):
        raise MalformedTrace("a message ends inside a field") from None
    if at != end:
        raise MalformedTrace("a message ends inside a field")
    return found


def _packets(data: bytes) -> Iterator[bytes]:
    """The TracePackets of a Trace message (1.1), those inside compressed_packets too."""
    at, end = 0, len(data)
    try:
        while at < end:
            if data[at] != 0x0A:
                raise MalformedTrace(f"no packet at byte {at} of the trace")
            size = data[at + 1]
            at += 2
            if size >= 0x80:
                size, at = _varint(data, at - 1)
            if at + size > end:
                raise MalformedTrace(f"the packet at byte {at} is cut")
            packet = data[at : at + size]
            at += size
            if packet[:2] == b"\x92\x03":  # the tag of compressed_packets = 50
                yield from _packets(zlib.decompress(_bytes(_fields(packet)[0][1])))
            else:
                yield packet
    except IndexError:
        raise MalformedTrace("the trace ends inside a packet's length") from None


def _packed(value: Value) -> list[int]:
    """The numbers of a repeated varint field, packed or not."""
    if isinstance(value, int):
        return [value]
    numbers = []
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(number)
    return numbers


def _bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise MalformedTrace("a number stands where a message or string belongs")
    return value


def _int(value: Value) -> int:
    if not isinstance(value, int):
        raise MalformedTrace("a message or string stands where a number belongs")
    return value


def _signed(value: Value) -> int:
    number = _int(value)
    return number - (1 << 64) if number >> 63 else number


def _double(value: Value) -> float:
    result: float = _DOUBLE.unpack(_FIXED64.pack(_int(value)))[0]
    return result


# --- packets to events --------------------------------------------------------------------------------------

# InternedData: field number -> (what the errors call it) (1.3).
_CATEGORIES, _NAMES, _ARG_NAMES, _SOURCES, _ARG_STRINGS = 1, 2, 3, 4, 29
_INTERNED = {
    _CATEGORIES: "category",
    _NAMES: "event name",
    _ARG_NAMES: "annotation name",
    _SOURCES: "source location",
    _ARG_STRINGS: "string value",
}
# Those of stack samples (1.5) and V8 scripts (1.7).
_FUNCTIONS, _FRAMES, _CALLSTACKS, _BUILD_IDS, _PATHS, _SOURCE_PATHS, _MAPPINGS = 5, 6, 7, 16, 17, 18, 19
_TASKS, _EXECUTIONS, _COUNTERS = 48, 49, 50
_V8_NAMES, _V8_FUNCTIONS, _V8_SCRIPTS, _V8_ISOLATES = 31, 32, 33, 35
_INTERNED |= {_FUNCTIONS: "function name", _PATHS: "mapping path", _SOURCE_PATHS: "source path"}
_INTERNED_MESSAGES = {
    _BUILD_IDS: "build id",
    _FRAMES: "frame",
    _CALLSTACKS: "callstack",
    _MAPPINGS: "mapping",
    _TASKS: "task context",
    _EXECUTIONS: "execution context",
    _COUNTERS: "counter descriptor",
    _V8_NAMES: "V8 function name",
    _V8_FUNCTIONS: "V8 function",
    _V8_SCRIPTS: "V8 script",
    _V8_ISOLATES: "V8 isolate",
}
_INTERNED |= _INTERNED_MESSAGES

# Packet fields that carry no payload of their own (1.1).
_ENVELOPE = frozenset({6, 8, 10, 11, 12, 13, 41, 42, 58, 59, 60, 61, 79, 87, 99, 117, 126, 135})


@dataclass(slots=True)
class _Event:
    """A TrackEvent with everything interned resolved."""

    kind: int = 0
    track: int = 0
    name: str | None = None
    categories: tuple[str, ...] = ()
    args: dict[str, Any] = field(default_factory=dict)
    source: Source | None = None
    value: int | float | None = None
    extra: list[tuple[int, int | float]] = field(default_factory=list)
    flows: tuple[int, ...] = ()
    callstack: list[Frame] | None = None


class _Sequence:
    """The incremental state of one trusted_packet_sequence_id (1.1)."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.valid = False
        self.last_ts: int | None = None
        # Values of incremental clocks, set by snapshots (1.2). That CLEARED keeps them is assumed, no source.
        self.clocks: dict[int, int] = {}
        self.clear()

    def clear(self) -> None:
        """A new generation: CLEARED drops interned data and defaults (1.1)."""
        self.interned: dict[int, dict[int, Any]] = {kind: {} for kind in _INTERNED}
        self.clock_id = 0
        self.track = 0
        self.extra_tracks: list[int] = []
        self.extra_double_tracks: list[int] = []
        # Parsed events by their bytes: a trace repeats the same few, and an interned id keeps its meaning.
        self.seen: dict[bytes, _Event] = {}
        self.sample_source: str | None = None
        self.sample_counter: bytes | None = None
        self.sample_followers: list[bytes] = []
        # The fields of interned messages, by kind and id.
        self.messages: dict[tuple[int, int], list[tuple[int, Value]]] = {}
        self.frames: dict[int, Frame] = {}
        self.callstacks: dict[int, list[Frame] | None] = {}
        self.scripts: dict[int, Script] = {}
        self.profile_packets = 0
        self.open_profile: dict[tuple[int, str], HeapProfile] = {}
        self.open_graph: HeapGraph | None = None
        self.open_objects: list[tuple[int, int, list[tuple[int, Value]]]] = []  # (id, type, fields)


class _Clocks:
    """Clock snapshots (1.2): a clock is converted by the last snapshot at or before its value."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._primary: int | None = None
        self._known: set[tuple[int, int]] = set()
        self._incremental: dict[tuple[int, int], int] = {}
        # edges[a][b]: ascending (value of a, value of b) pairs of the snapshots that hold both clocks.
        self._edges: dict[tuple[int, int], dict[tuple[int, int], list[tuple[int, int]]]] = {}
        self._paths: dict[tuple[int, int], list[list[tuple[int, int]]]] = {}

    def snapshot(self, data: bytes, sequence: _Sequence | None) -> None:
        found: list[tuple[tuple[int, int], int]] = []
        for number, value in _fields(data):
            if number == 1:
                found.append(self._clock(_bytes(value), sequence))
            elif number == 2 and self._primary is None:
                self._primary = self._trace.clock_id = _int(value)
        for key, value in found:
            edges = self._edges.setdefault(key, {})
            for other, other_value in found:
                if other != key:
                    bisect.insort(edges.setdefault(other, []), (value, other_value))
        self._paths.clear()

    def _clock(self, data: bytes, sequence: _Sequence | None) -> tuple[tuple[int, int], int]:
        clock = value = 0
        incremental, multiplier = False, 1
        for number, content in _fields(data):
            if number == 1:
                clock = _int(content)
            elif number == 2:
                value = _int(content)
            elif number == 3:
                incremental = bool(content)
            elif number == 4:
                multiplier = _int(content)
        key = self._key(clock, sequence)
        if incremental:
            self._incremental[key] = multiplier
            if sequence is not None:
                sequence.clocks[clock] = value * multiplier
        elif multiplier != 1:
            self._trace.errors.append(f"clock {clock}: a unit multiplier without increments is not supported")
        return key, value * multiplier

    def _key(self, clock: int, sequence: _Sequence | None) -> tuple[int, int]:
        """(sequence or 0, clock id): ids 64 to 127 mean another clock on each sequence."""
        if not 64 <= clock <= 127:
            return 0, clock
        if sequence is None:
            self._trace.errors.append(f"clock {clock} belongs to sequences, its packet has none")
            return 0, clock
        return sequence.number, clock

    def convert(self, timestamp: int, clock: int, sequence: _Sequence | None) -> int | None:
        """Trace time, or None with an error. Clock 0 means that the timestamp is trace time already."""
        if clock in (0, self._trace.clock_id):
            return timestamp
        key = self._key(clock, sequence)
        multiplier = self._incremental.get(key)
        if multiplier is not None and sequence is not None:
            # A negative increment arrives as a huge unsigned one.
            step = timestamp - (1 << 64) if timestamp >> 63 else timestamp
            timestamp = sequence.clocks[clock] = sequence.clocks[clock] + step * multiplier
        path = self._paths.get(key)
        if path is None:
            path = self._paths[key] = self._path(key)
        if not path:
            self._trace.errors.append(f"no clock snapshot leads from clock {clock} to {self._trace.clock_id}")
            return None
        for pairs in path:
            index = 0 if len(pairs) == 1 else max(bisect.bisect_right(pairs, (timestamp, 1 << 65)) - 1, 0)
            ours, theirs = pairs[index]
            timestamp += theirs - ours
        return timestamp

    def is_own(self, sequence: _Sequence) -> bool:
        """Whether the sequence's clock is one of its own that does not count differences."""
        return 64 <= sequence.clock_id <= 127 and (sequence.number, sequence.clock_id) not in self._incremental

    def _path(self, start: tuple[int, int]) -> list[list[tuple[int, int]]]:
        """The snapshot pairs to go through, by breadth-first search."""
        goal = 0, self._trace.clock_id
        paths: dict[tuple[int, int], list[list[tuple[int, int]]]] = {start: []}
        queue = [start]
        for clock in queue:
            if clock == goal:
                break
            for other, pairs in self._edges.get(clock, {}).items():
                if other not in paths:
                    paths[other] = [*paths[clock], pairs]
                    queue.append(other)
        return paths.get(goal, [])


class _Reader:
    """Turns packets, in file order, into track descriptors and timed events."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.events: list[tuple[int, _Event]] = []
        self.task_states: list[tuple[int, int, int, int]] = []  # (ts, tid, cpu, state)
        self._frames: dict[tuple[tuple[str, bytes, int, int], int], dict[str | None, Frame]] = {}
        self._symbols: list[tuple[int, bytes]] = []
        self._last_callstack = -1
        self._clocks = _Clocks(trace)
        self._sequences: dict[int, _Sequence] = {}

    def error(self, message: str) -> None:
        self.trace.errors.append(f"packet {self.trace.packets}: {message}")

    def packet(self, data: bytes) -> None:
        timestamp = clock = None
        sequence_id = flags = 0
        event = descriptor = snapshot = interned = defaults = attributes = None
        sample = symbols = task_state = script_code = profile = graph = None
        for number, value in _fields(data):
            if number == 8:
                timestamp = _int(value)
            elif number == 10:
                sequence_id = _int(value)
            elif number == 11:
                event = _bytes(value)
            elif number == 13:
                flags = _int(value)
            elif number == 12:
                interned = _bytes(value)
            elif number == 58:
                clock = _int(value)
            elif number == 60:
                descriptor = _bytes(value)
            elif number == 6:
                snapshot = _bytes(value)
            elif number == 59:
                defaults = _bytes(value)
            elif number == 126:
                attributes = _bytes(value)
            elif number == 135:
                sample = _bytes(value)
            elif number == 61:
                symbols = _bytes(value)
            elif number == 117:
                task_state = _bytes(value)
            elif number == 99:
                script_code = _bytes(value)
            elif number == 37:
                profile = _bytes(value)
            elif number == 56:
                graph = _bytes(value)
            elif number not in _ENVELOPE:
                self.trace.other_packets[number] += 1

        sequence = self._sequence(sequence_id, flags)
        if flags & NEEDS and (sequence is None or not sequence.valid):
            self.error(f"sequence {sequence_id} needs incremental state but was never cleared: packet dropped")
            self.trace.packets += 1
            return
        if sequence is None and (interned is not None or defaults is not None):
            self.error("interned data or packet defaults without a sequence id")
        elif sequence is not None:
            if defaults is not None:
                self._defaults(defaults, sequence)
            if interned is not None:
                self._intern(interned, sequence)
        if snapshot is not None:
            self._clocks.snapshot(snapshot, sequence)
        time = None
        if timestamp is not None and snapshot is None:
            time = self._time(timestamp, clock, sequence, event)
        if descriptor is not None:
            self._describe(descriptor)
        if attributes is not None:
            self._attributes(attributes)
        if event is not None:
            self._event(event, time, timestamp, sequence)
        if any(one is not None for one in (sample, symbols, task_state, script_code, profile, graph)):
            if time is None or sequence is None:
                self.error("a sample, symbols, a task state, V8 code or a heap without time or sequence")
            elif profile is not None:
                self._profile(profile, time, sequence)
            elif graph is not None:
                self._graph(graph, time, sequence)
            elif sample is not None:
                self._sample(sample, time, sequence)
            elif symbols is not None:
                self._symbols.append((time, symbols))
            elif task_state is not None:
                self._task_state(task_state, time)
            elif script_code is not None:
                self._script_code(script_code, sequence)
        self.trace.packets += 1

    def _sequence(self, number: int, flags: int) -> _Sequence | None:
        if number == 0:
            if flags & CLEARED:
                self.error("CLEARED without a sequence id")
            return None
        sequence = self._sequences.get(number)
        if sequence is None:
            sequence = self._sequences[number] = _Sequence(number)
        if flags & CLEARED:
            sequence.clear()
            sequence.valid = True
        return sequence

    def _time(self, timestamp: int, clock: int | None, sequence: _Sequence | None, event: bytes | None) -> int | None:
        if clock is None:
            clock = sequence.clock_id if sequence is not None else 0
        time = self._clocks.convert(timestamp, clock, sequence)
        if time is None or sequence is None:
            return time
        if time < 0:
            self.error(f"sequence {sequence.number}: negative time {time}")
        # On a clock of its own that does not count differences, a sequence may go back: trace_processor sorts (1.1).
        in_order = not self._clocks.is_own(sequence)
        if in_order and sequence.last_ts is not None and time < sequence.last_ts:
            back = f"sequence {sequence.number}: time goes back from {sequence.last_ts} to {time}"
            ends = event is not None and (9, END) in _fields(event)
            self.error(back + (" at an END: negative duration" if ends else ""))
        sequence.last_ts = time
        return time

    def _defaults(self, data: bytes, sequence: _Sequence) -> None:
        """Defaults replace all earlier ones (1.1)."""
        sequence.clock_id, sequence.track = 0, 0
        sequence.extra_tracks, sequence.extra_double_tracks = [], []
        sequence.seen.clear()
        for number, value in _fields(data):
            if number == 58:
                sequence.clock_id = _int(value)
            elif number == 11:
                for inner, content in _fields(_bytes(value)):
                    if inner == 11:
                        sequence.track = _int(content)
                    elif inner == 31:
                        sequence.extra_tracks += _packed(content)
                    elif inner == 45:
                        sequence.extra_double_tracks += _packed(content)
            elif number == 100:
                for inner, content in _fields(_bytes(value)):
                    if inner == 1:
                        sequence.sample_source = self._text(content)
                    elif inner == 2:
                        sequence.sample_counter = _bytes(content)
                    elif inner == 3:
                        sequence.sample_followers.append(_bytes(content))

    def _intern(self, data: bytes, sequence: _Sequence) -> None:
        for kind, value in _fields(data):
            table = sequence.interned.get(kind)
            if table is None:
                continue
            iid, content = self._interned_entry(kind, _bytes(value))
            what = f"sequence {sequence.number}: interned {_INTERNED[kind]} {iid}"
            if iid == 0:
                self.error(f"{what} is not a valid id")
            elif iid in table and table[iid] != content:
                self.error(f"{what} changes from {table[iid]!r} to {content!r}")
            table[iid] = content
            sequence.messages.pop((kind, iid), None)
        # Events that were seen with an unknown id may be complete now.
        sequence.seen.clear()

    def _interned_entry(self, kind: int, data: bytes) -> tuple[int, Any]:
        iid = 0
        if kind in _INTERNED_MESSAGES:
            return next((_int(value) for number, value in _fields(data) if number == 1), 0), data
        if kind == _SOURCES:
            for number, value in _fields(data):
                if number == 1:
                    iid = _int(value)
            return iid, self._source(data, file=2, function=3, line=4)
        text = ""
        for number, value in _fields(data):
            if number == 1:
                iid = _int(value)
            elif number == 2:
                text = self._text(value)
        return iid, text

    def _text(self, value: Value) -> str:
        data = _bytes(value)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.error(f"string {data[:40]!r} is not UTF-8")
            return data.decode(errors="replace")

    def _source(self, data: bytes, file: int, function: int, line: int) -> Source:
        source = Source(None, None, None)
        for number, value in _fields(data):
            if number == file:
                source.file = self._text(value)
            elif number == function:
                source.function = self._text(value)
            elif number == line:
                source.line = _int(value)
        return source

    def _lookup(self, sequence: _Sequence | None, kind: int, iid: int) -> Any:
        table = sequence.interned[kind] if sequence is not None else {}
        if iid not in table:
            number = sequence.number if sequence is not None else 0
            self.error(f"sequence {number}: unknown interned {_INTERNED[kind]} {iid}")
            return None
        return table[iid]

    # --- descriptors and attributes ---

    def _describe(self, data: bytes) -> None:
        fields = _fields(data)
        uuid = next((_int(value) for number, value in fields if number == 1), None)
        if uuid is None:
            self.error("a track descriptor without uuid")
            return
        track = self.trace.tracks.setdefault(uuid, Track(uuid))
        for number, value in fields:
            if number == 5:
                self._set(track, "parent", _int(value))
            elif number in (2, 10, 13):
                # A later descriptor may rename the track.
                track.name = self._text(value)
            elif number == 14:
                track.description = self._text(value)
            elif number == 12:
                track.rank = _signed(value)
            elif number == 11:
                track.ordering = _int(value)
            elif number == 3:
                track.kind = "process"
                self._process(_bytes(value), track)
            elif number == 4:
                track.kind = "thread"
                self._thread(_bytes(value), track)
            elif number == 8:
                track.kind = "counter"
                self._counter(_bytes(value), track)
            elif number == 18:
                track.kind = "state"

    def _set(self, track: Track, attribute: str, value: int) -> None:
        old = getattr(track, attribute)
        if old not in (None, value):
            self.error(f"track {track.uuid}: {attribute} changes from {old} to {value}")
        setattr(track, attribute, value)

    def _process(self, data: bytes, track: Track) -> None:
        process = self.trace.processes.setdefault(track.uuid, Process(track.uuid, -1))
        for number, value in _fields(data):
            if number == 1:
                process.pid = _signed(value)
            elif number == 2:
                process.cmdline.append(self._text(value))
            elif number == 6:
                process.name = self._text(value)
            elif number == 7:
                process.start_ns = _signed(value)
            elif number == 8:
                process.labels.append(self._text(value))
        self._set(track, "pid", process.pid)

    def _thread(self, data: bytes, track: Track) -> None:
        thread = self.trace.threads.setdefault(track.uuid, Thread(track.uuid, -1, -1))
        for number, value in _fields(data):
            if number == 1:
                thread.pid = _signed(value)
            elif number == 2:
                thread.tid = _signed(value)
            elif number == 5:
                thread.name = self._text(value)
        self._set(track, "pid", thread.pid)
        self._set(track, "tid", thread.tid)

    def _counter(self, data: bytes, track: Track) -> None:
        counter = self.trace.counters.setdefault(track.uuid, Counter(track.uuid, None, None, None))
        for number, value in _fields(data):
            if number == 3:
                counter.unit = _int(value)
            elif number == 6:
                counter.unit_name = self._text(value)
            elif number == 4:
                counter.unit_multiplier = _signed(value)
            elif number == 5:
                counter.incremental = bool(value)

    def _attributes(self, data: bytes) -> None:
        for number, value in _fields(data):
            if number != 1:
                continue
            key: str = ""
            content: str | int = ""
            for inner, part in _fields(_bytes(value)):
                if inner == 1:
                    key = self._text(part)
                elif inner == 2:
                    content = _signed(part)
                elif inner == 3:
                    content = self._text(part)
            if key in self.trace.attributes:
                self.error(f"trace attribute {key!r} is given twice")
            self.trace.attributes[key] = content

    # --- events ---

    def _event(self, data: bytes, time: int | None, timestamp: int | None, sequence: _Sequence | None) -> None:
        if timestamp is None:
            self.error("a track event without timestamp")
        if time is None:
            return
        event = sequence.seen.get(data) if sequence is not None else None
        if event is None:
            errors = len(self.trace.errors)
            event = self._track_event(data, sequence)
            # An event with errors must report them each time; a long one hardly comes again.
            if sequence is not None and len(data) <= 24 and len(self.trace.errors) == errors:
                sequence.seen[data] = event
        if event.callstack is not None:
            self._last_callstack = max(self._last_callstack, time)
        self.events.append((time, event))

    def _track_event(self, data: bytes, sequence: _Sequence | None) -> _Event:
        event = _Event(track=sequence.track if sequence is not None else 0)
        categories: list[str] = []
        integers: list[int | float] = []
        doubles: list[int | float] = []
        extra_tracks: list[int] = []
        extra_double_tracks: list[int] = []
        for number, value in _fields(data):
            if number == 9:
                event.kind = _int(value)
            elif number == 11:
                event.track = _int(value)
            elif number == 10:
                event.name = self._lookup(sequence, _NAMES, _int(value))
            elif number == 23:
                event.name = self._text(value)
            elif number == 3:
                for iid in _packed(value):
                    category = self._lookup(sequence, _CATEGORIES, iid)
                    categories += [category] if category is not None else []
            elif number == 22:
                categories.append(self._text(value))
            elif number == 4:
                self._annotation(_bytes(value), event.args, sequence)
            elif number == 33:
                event.source = self._source(_bytes(value), file=2, function=3, line=4)
            elif number == 34:
                event.source = self._lookup(sequence, _SOURCES, _int(value))
            elif number == 30:
                event.value = _signed(value)
            elif number == 44:
                event.value = _double(value)
            elif number == 12:
                integers += [_signed(part) for part in _packed(value)]
            elif number == 46:
                doubles += self._doubles(value)
            elif number == 31:
                extra_tracks += _packed(value)
            elif number == 45:
                extra_double_tracks += _packed(value)
            elif number == 6:
                self.error("legacy track events are not read")
            elif number == 47:
                event.flows += (_int(value),)
            elif number == 56 and sequence is not None:
                event.callstack = self._callstack(_int(value), sequence)
        event.categories = tuple(categories)
        if sequence is not None:
            extra_tracks = extra_tracks or sequence.extra_tracks
            extra_double_tracks = extra_double_tracks or sequence.extra_double_tracks
        if len(integers) > len(extra_tracks) or len(doubles) > len(extra_double_tracks):
            self.error("more extra counter values than tracks")
        event.extra = [
            *zip(extra_tracks, integers, strict=False),
            *zip(extra_double_tracks, doubles, strict=False),
        ]
        return event

    def _doubles(self, value: Value) -> list[int | float]:
        if isinstance(value, int):
            return [_double(value)]
        return list(struct.unpack(f"<{len(value) // 8}d", value))

    def _annotation(self, data: bytes, args: dict[str, Any], sequence: _Sequence | None) -> None:
        name, value = self._annotation_value(data, sequence)
        if name is None:
            self.error("a debug annotation without name")
        elif name in args:
            self.error(f"debug annotation {name!r} is given twice in one event")
        else:
            args[name] = value

    def _annotation_value(self, data: bytes, sequence: _Sequence | None) -> tuple[str | None, Any]:
        """(name, value) of a DebugAnnotation; elements of arrays have no name."""
        name: str | None = None
        value: Any = None
        for number, content in _fields(data):
            if number == 1:
                name = self._lookup(sequence, _ARG_NAMES, _int(content))
            elif number == 10:
                name = self._text(content)
            elif number == 2:
                value = bool(content)
            elif number in (3, 7):
                value = _int(content)
            elif number == 4:
                value = _signed(content)
            elif number == 5:
                value = _double(content)
            elif number in (6, 9):
                value = self._text(content)
            elif number == 17:
                value = self._lookup(sequence, _ARG_STRINGS, _int(content))
            elif number == 11:
                value = {} if value is None else value
                self._annotation(_bytes(content), value, sequence)
            elif number == 12:
                value = [] if value is None else value
                value.append(self._annotation_value(_bytes(content), sequence)[1])
            else:
                self.error(f"debug annotation field {number} is not read")
        return name, value

    # --- stack samples ---

    def _sample(self, data: bytes, time: int, sequence: _Sequence) -> None:
        if sequence.sample_source is None:
            self.error("a stack sample without source: no viewer shows it")
        primary = sequence.sample_counter
        sample = Sample(sequence.sample_source, sequence.number, None, None, time, None, None, None, {})
        followers: list[bytes] = []
        weights: list[int] = []
        weight: int | None = None
        for number, value in _fields(data):
            if number in (1, 2):
                task = _fields(_bytes(value)) if number == 1 else self._message(sequence, _TASKS, _int(value))
                for inner, content in task:
                    if inner == 2:
                        sample.pid = _int(content)
                    elif inner == 3:
                        sample.tid = _int(content)
            elif number == 4:
                for inner, content in self._message(sequence, _EXECUTIONS, _int(value)):
                    if inner == 2:
                        sample.cpu = _int(content)
                    elif inner == 3:
                        sample.mode = _int(content)
            elif number == 6:
                sample.callstack = self._callstack(_int(value), sequence)
            elif number == 11:
                weight = _int(value)
            elif number == 13:
                followers += [self._lookup(sequence, _COUNTERS, iid) or b"" for iid in _packed(value)]
            elif number == 14:
                weights += _packed(value)
            else:
                self.error(f"stack sample field {number} is not read")
        followers = followers or sequence.sample_followers
        if weight is not None and primary is None:
            self.error("a stack sample without the descriptor of its counter")
        elif weight is not None:
            weights.insert(0, weight)
            followers = [primary or b"", *followers]
        if len(weights) > len(followers):
            self.error(f"{len(weights)} weights of {len(followers)} counters")
        for descriptor, value in zip(followers, weights, strict=False):
            name, unit = self._sample_counter(descriptor)
            sample.counters[name] = unit, value
        if sample.callstack is not None:
            self._last_callstack = max(self._last_callstack, time)
        self.trace.samples.append(sample)

    # --- heaps ---

    def _profile(self, data: bytes, time: int, sequence: _Sequence) -> None:
        """1.8: the packets of a sequence are numbered, the last one of a dump does not say `continued`."""
        index = continued = 0
        for number, value in _fields(data):
            if number == 5:
                self._process_heap(_bytes(value), sequence)
            elif number == 6:
                continued = _int(value)
            elif number == 7:
                index = _int(value)
            else:
                self.error(f"profile packet field {number} is not read")
        if index != sequence.profile_packets:
            self.error(f"profile packet {index} where {sequence.profile_packets} is next: heapprofd_missing_packet")
        sequence.profile_packets = index + 1
        self._last_callstack = max(self._last_callstack, time)
        if not continued:
            self.trace.heap_profiles += sequence.open_profile.values()
            sequence.open_profile = {}

    def _process_heap(self, data: bytes, sequence: _Sequence) -> None:
        pid, heap, times, samples = 0, "", {9: 0, 15: 0}, []
        for number, value in _fields(data):
            if number == 1:
                pid = _int(value)
            elif number == 11:
                heap = self._text(value)
            elif number in times:
                # On the coarse clock, whatever clock the sequence has (1.2).
                times[number] = self._clocks.convert(_int(value), 4, sequence) or 0
            elif number == 2:
                samples.append(self._heap_sample(_bytes(value), sequence))
            elif number not in (12, 13):
                self.error(f"process heap field {number} is not read")
        if not heap or ":" in heap:
            self.error(f"a heap named {heap!r}")
        profile = sequence.open_profile.setdefault((pid, heap), HeapProfile(pid, heap, times[15], times[9]))
        if (profile.start_ts, profile.ts) != (times[15], times[9]):
            self.error(f"heap {heap} of process {pid}: two times in one dump")
        profile.samples += samples

    def _heap_sample(self, data: bytes, sequence: _Sequence) -> HeapSample:
        fields = dict(_fields(data))
        allocated, freed, count, freed_count = (_int(fields.get(number, 0)) for number in (2, 3, 5, 6))
        if freed > allocated or freed_count > count:
            self.error("more is freed than allocated")
        return HeapSample(self._callstack(_int(fields.get(1, 0)), sequence), allocated, freed, count, freed_count)

    def _graph(self, data: bytes, time: int, sequence: _Sequence) -> None:
        """1.9: a dump's packets are numbered from 0, and of one process and time."""
        fields = _fields(data)
        pid, continued, index = (next((_int(v) for n, v in fields if n == number), 0) for number in (1, 5, 6))
        graph = sequence.open_graph
        if graph is None:
            graph = sequence.open_graph = HeapGraph(pid, time)
        if (graph.pid, graph.ts) != (pid, time):
            self.error(f"a heap graph of process {graph.pid} goes on with {pid} at {time}")
        if index != graph.packets:
            self.error(f"heap graph packet {index} where {graph.packets} is next: heap_graph_missing_packet")
        graph.packets += 1
        last_id = 0
        for number, value in fields:
            if number == 2:
                last_id = self._heap_object(_fields(_bytes(value)), last_id, sequence)
            elif number == 7:
                root = _fields(_bytes(value))
                kind = next((_int(v) for n, v in root if n == 2), 0)
                graph.roots += [(kind, one) for n, v in root if n == 1 for one in _packed(v)]
            elif number == 9:
                one = dict(_fields(_bytes(value)))
                graph.types[_int(one[1])] = self._text(one[3]), _int(one.get(7, 0))
            elif number not in (1, 4, 5, 6, 8, 10):  # names of fields, locations and a total of bytes
                self.error(f"heap graph field {number} is not read")
        if not continued:
            self._finish_graph(graph, sequence)

    def _heap_object(self, fields: list[tuple[int, Value]], last_id: int, sequence: _Sequence) -> int:
        """Its id; its type may come later."""
        number, type_id = last_id, 0
        for field_number, value in fields:
            if field_number == 1:
                number = _int(value)
            elif field_number == 7:
                number += _int(value)
            elif field_number == 2:
                type_id = _int(value)
            elif field_number not in (3, 4, 5, 6):
                self.error(f"heap object field {field_number} is not read")
        sequence.open_objects.append((number, type_id, fields))
        return number

    def _finish_graph(self, graph: HeapGraph, sequence: _Sequence) -> None:
        for number, type_id, fields in sequence.open_objects:
            name, kind = graph.types.get(type_id, ("", 0))
            size, base = (next((_int(v) for n, v in fields if n == wanted), 0) for wanted in (3, 6))
            references = [one + base if one else 0 for n, v in fields if n == 5 for one in _packed(v)]
            n_named = sum(len(_packed(v)) for n, v in fields if n == 4)
            if not name:
                self.error(f"heap object {number} has the unknown type {type_id}")
            if n_named != len(references) and (n_named or kind != 4):
                self.error(f"heap object {number}: {n_named} of {len(references)} references have a field's name")
            if number in graph.objects or number == 0:
                self.error(f"heap object {number} is there twice, or is none")
            graph.objects[number] = HeapObject(name, size, references)
        referred = [one for owner in graph.objects.values() for one in owner.references]
        for number in {*referred, *(one for _, one in graph.roots)} - graph.objects.keys():
            self.error(f"heap object {number} is referred to but not there")
        self.trace.heap_graphs.append(graph)
        sequence.open_graph, sequence.open_objects = None, []

    def finish(self) -> None:
        """What waits for a last packet is never shown."""
        for sequence in self._sequences.values():
            if sequence.open_profile:
                self.error(f"sequence {sequence.number}: a heap profile has no end")
            if sequence.open_graph is not None:
                self.error(f"sequence {sequence.number}: a heap graph has no end")

    def _message(self, sequence: _Sequence, kind: int, iid: int) -> list[tuple[int, Value]]:
        found = sequence.messages.get((kind, iid))
        if found is None:
            found = _fields(self._lookup(sequence, kind, iid) or b"")
            if iid in sequence.interned[kind]:
                sequence.messages[kind, iid] = found
        return found

    def _sample_counter(self, data: bytes) -> tuple[str, int | str]:
        name: str = ""
        unit: int | str = 0
        for number, value in _fields(data):
            if number == 2:
                name = self._text(value)
            elif number == 3:
                unit = _int(value)
            elif number == 4:
                unit = self._text(value)
        return name, unit

    def _callstack(self, iid: int, sequence: _Sequence) -> list[Frame] | None:
        if iid not in sequence.callstacks:
            frames = [
                self._frame(_int(value), sequence)
                for number, value in self._message(sequence, _CALLSTACKS, iid)
                if number == 2
            ]
            if not frames:
                self.error(f"sequence {sequence.number}: callstack {iid} is empty")
            sequence.callstacks[iid] = frames
        return sequence.callstacks[iid]

    def _frame(self, iid: int, sequence: _Sequence) -> Frame:
        """trace_processor takes frames of one mapping, address and name for one, with the first one's line (1.6)."""
        if iid in sequence.frames:
            return sequence.frames[iid]
        frame = Frame(None, 0, 0, [])
        line = Source(None, None, None)
        for number, value in self._message(sequence, _FRAMES, iid):
            if number == 2:
                line.function = self._lookup(sequence, _FUNCTIONS, _int(value))
            elif number == 3:
                frame.mapping = self._mapping(_int(value), sequence)
            elif number == 4:
                frame.rel_pc = _int(value)
            elif number == 5:
                line.file = self._lookup(sequence, _SOURCE_PATHS, _int(value))
            elif number == 6:
                line.line = _int(value)
            elif number == 7:
                frame.kind = _int(value)
        frame.lines = [line]
        if frame.mapping is not None:
            there = self._frames.setdefault((frame.mapping, frame.rel_pc), {})
            known = there.setdefault(line.function, frame)
            if known.lines != frame.lines:
                self.error(f"frame {iid}: two lines at {frame.rel_pc:#x} of {frame.mapping[0]}")
            frame = known
        sequence.frames[iid] = frame
        return frame

    def _mapping(self, iid: int, sequence: _Sequence) -> tuple[str, bytes, int, int]:
        name, build_id, start, end = "", b"", 0, 0
        for number, value in self._message(sequence, _MAPPINGS, iid):
            if number == 2:
                entry = self._message(sequence, _BUILD_IDS, _int(value))
                build_id = next((_bytes(content) for inner, content in entry if inner == 2), b"")
            elif number == 4:
                start = _int(value)
            elif number == 5:
                end = _int(value)
            elif number == 7:
                name += f"/{self._lookup(sequence, _PATHS, _int(value))}"
        if end < start:
            self.error(f"mapping {iid}: ends before it starts; trace_processor stops")
        return name[1:] if name.startswith("//") else name, build_id, start, end

    def symbolize(self) -> None:
        """Gives the frames the functions that ModuleSymbols say, once all are known."""
        frames: dict[tuple[str, bytes], dict[int, list[Frame]]] = {}
        for (mapping, rel_pc), named in self._frames.items():
            frames.setdefault(mapping[:2], {}).setdefault(rel_pc, []).extend(named.values())
        for time, data in self._symbols:
            path, build_id = "", b""
            addresses: list[bytes] = []
            for number, value in _fields(data):
                if number == 1:
                    path = self._text(value)
                elif number == 2:
                    build_id = _bytes(value)
                elif number == 3:
                    addresses.append(_bytes(value))
            if time < self._last_callstack:
                self.error(f"symbols of {path} before the last callstack")
            if (path, build_id) not in frames:
                self.error(f"symbols of {path}, which is not a mapping")
            for address in addresses:
                fields = _fields(address)
                rel_pc = next((_int(value) for number, value in fields if number == 1), 0)
                lines = [
                    self._source(_bytes(value), file=2, function=1, line=3) for number, value in fields if number == 2
                ]
                found = frames.get((path, build_id), {}).get(rel_pc, [])
                if not found:
                    self.error(f"symbols of {path} at {rel_pc:#x}, where no frame is")
                if len({frame.lines[0].function for frame in found}) > 1:
                    self.error(f"symbols of {path} at {rel_pc:#x}, where several functions are")
                for frame in found:
                    frame.lines = lines

    # --- scheduling and scripts ---

    def _task_state(self, data: bytes, time: int) -> None:
        fields = dict(_fields(data))
        if 3 not in fields or 4 not in fields:
            self.error("a task state without thread or state")
        cpu, tid, state = (_int(fields.get(number, 0)) for number in (1, 3, 4))
        self.task_states.append((time, tid, cpu, state))

    def _script_code(self, data: bytes, sequence: _Sequence) -> None:
        """1.7: code of an interpreted function brings its script into the trace."""
        code = dict(_fields(data))
        function = dict(self._message(sequence, _V8_FUNCTIONS, _int(code.get(3, 0))))
        script = dict(self._message(sequence, _V8_SCRIPTS, _int(function.get(3, 0))))
        isolate = dict(self._message(sequence, _V8_ISOLATES, _int(code.get(1, 0))))
        if 4 not in isolate:
            self.error("V8 code of an isolate without a code range")
        number = _int(script.get(2, 0))
        if number not in sequence.scripts:
            name, source = (self._v8_string(_bytes(script.get(number, b""))) for number in (4, 5))
            sequence.scripts[number] = Script(_int(isolate.get(2, 0)), name, source)
            self.trace.scripts.append(sequence.scripts[number])

    def _v8_string(self, data: bytes) -> str:
        for number, value in _fields(data):
            return _bytes(value).decode("latin-1" if number == 1 else "utf-16-le")
        self.error("a V8 string of no encoding")
        return ""


# --- events to slices ---------------------------------------------------------------------------------------


def _replay(trace: Trace, events: list[tuple[int, _Event]]) -> None:
    """Nest the events per track in time order; events of equal time keep their order in the file (1.1)."""
    for track in trace.tracks.values():
        _inherit(track, trace)
    for uuid, counter in trace.counters.items():
        track = trace.tracks[uuid]
        counter.name, counter.pid, counter.tid = track.name, track.pid, track.tid
    events.sort(key=itemgetter(0))
    replay = _Replay(trace)
    for time, event in events:
        replay.event(time, event)
    replay.finish()


def _inherit(track: Track, trace: Trace) -> None:
    """Take pid and tid from the nearest ancestors that have them."""
    seen = {track.uuid}
    parent = track.parent
    while parent:
        above = trace.tracks.get(parent)
        if above is None:
            trace.errors.append(f"track {track.uuid}: ancestor {parent} has no descriptor")
            return
        if above.uuid in seen:
            trace.errors.append(f"track {track.uuid}: its ancestors form a cycle")
            return
        seen.add(above.uuid)
        track.pid = above.pid if track.pid is None else track.pid
        # A process below a thread would be another process: its tracks have no thread.
        if track.tid is None and track.kind != "process":
            track.tid = above.tid
        parent = above.parent


def _schedule(trace: Trace, task_states: list[tuple[int, int, int, int]]) -> None:
    """1.10: who runs on a processor is closed by its own next state there, or by the next one who runs there."""
    on_cpu: dict[int, Run] = {}
    running: dict[int, Run] = {}
    last: dict[int, int] = {}
    for ts, tid, cpu, state in sorted(task_states, key=itemgetter(0)):
        if last.get(tid) == ts:
            trace.errors.append(f"thread {tid} does two things at {ts}")
        last[tid] = ts
        mine = running.get(tid)
        if state == 3:
            if mine is not None:
                trace.errors.append(f"thread {tid} runs already at {ts}")
            before = on_cpu.get(cpu)
            if before is not None and before.dur is None:
                before.dur = ts - before.ts
                running.pop(before.tid, None)
            on_cpu[cpu] = running[tid] = Run(tid, cpu, ts, None, None)
            trace.runs.append(on_cpu[cpu])
        elif mine is not None:
            del running[tid]
            # One that stops elsewhere is left open.
            if cpu == mine.cpu:
                mine.dur, mine.end_state = ts - mine.ts, state
        else:
            # Its processor was taken at this very time.
            for run in reversed(trace.runs):
                if run.tid == tid and run.dur is not None and run.ts + run.dur == ts and run.end_state is None:
                    run.end_state = state
                if run.tid == tid:
                    break


class _Replay:
    """The open slices and states of every track."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._open: dict[int, list[Slice]] = {}
        self._states: dict[int, State] = {}
        self._missing: set[int] = set()
        self._too_deep: Tally[int] = Tally()

    def error(self, message: str) -> None:
        self.trace.errors.append(message)

    def event(self, time: int, event: _Event) -> None:
        track = self.trace.tracks.get(event.track)
        if track is None:
            self._missing_track(event.track, time)
        elif event.kind == BEGIN:
            self._begin(time, event, track)
        elif event.kind == END:
            self._end(time, event, track)
        elif event.kind == INSTANT:
            self._on("slices", track)
            self.trace.instants.append(
                Instant(
                    track.uuid, track.pid, track.tid, time, event.name, event.categories, dict(event.args),
                    event.source, event.flows, event.callstack,
                )
            )  # fmt: skip
        elif event.kind == STATE:
            self._state(time, event, track)
        elif event.kind == COUNTER:
            if event.value is None:
                self.error(f"track {track.uuid}: a counter event without value at {time}")
            else:
                self._count(time, track.uuid, event.value)
        else:
            self.error(f"track {track.uuid}: event type {event.kind} at {time}")
        for uuid, value in event.extra:
            self._count(time, uuid, value)

    def _missing_track(self, uuid: int, time: int, what: str = "descriptor") -> None:
        """Once for each track: its events alone can be millions."""
        if uuid not in self._missing:
            self._missing.add(uuid)
            self.error(f"track {uuid} has no {what}, its first event is at {time}")

    def _on(self, kind: str, track: Track) -> None:
        """Slices and instants belong on any track that is neither a counter nor a state."""
        is_kind = track.kind not in ("counter", "state") if kind == "slices" else track.kind == kind
        if not is_kind:
            self.error(f"track {track.uuid}: an event of {kind} on a {track.kind} track")

    def _begin(self, time: int, event: _Event, track: Track) -> None:
        stack = self._open.get(track.uuid)
        if stack is None:
            self._on("slices", track)
            stack = self._open[track.uuid] = []
        if len(stack) >= MAX_DEPTH:
            self._too_deep[track.uuid] += 1
        begun = Slice(
            track.uuid, track.pid, track.tid, time, None, len(stack), event.name, event.categories,
            dict(event.args), event.source, event.flows, event.callstack,
        )  # fmt: skip
        stack.append(begun)
        self.trace.slices.append(begun)

    def _end(self, time: int, event: _Event, track: Track) -> None:
        """END closes the most recent open slice of its track (1.3)."""
        stack = self._open.get(track.uuid)
        if not stack:
            self.error(f"track {track.uuid}: END without BEGIN at {time}")
            return
        ended = stack.pop()
        ended.dur = time - ended.ts
        if event.args:
            ended.args.update(event.args)

    def _state(self, time: int, event: _Event, track: Track) -> None:
        """A state lasts until the track's next; one without name ends it (trace_processor: value == name)."""
        self._on("state", track)
        last = self._states.pop(track.uuid, None)
        if last is not None:
            last.dur = time - last.ts
        if event.name is None:
            return
        state = State(track.uuid, track.pid, track.tid, time, None, event.name, event.categories, dict(event.args))
        self._states[track.uuid] = state
        self.trace.states.append(state)

    def _count(self, time: int, uuid: int, value: int | float) -> None:
        """1.4: values of incremental counters add up."""
        counter = self.trace.counters.get(uuid)
        if counter is None:
            kind = "counter descriptor" if uuid in self.trace.tracks else "descriptor"
            self._missing_track(uuid, time, kind)
            return
        value *= counter.unit_multiplier
        if counter.incremental and counter.values:
            value += counter.values[-1][1]
        counter.values.append((time, value))

    def finish(self) -> None:
        for uuid, stack in self._open.items():
            for left in stack:
                self.error(f"track {uuid}: slice {left.name!r} begun at {left.ts} is left open")
        for uuid, number in self._too_deep.items():
            self.error(f"track {uuid}: {number} slices are deeper than {MAX_DEPTH}")


# --- command line -------------------------------------------------------------------------------------------


def summary(trace: Trace, most: int = 20) -> str:
    """A few lines that tell what a trace holds; at most `most` entries of each kind."""
    per_track = Tally(one.track for one in trace.slices)
    lines = [
        f"{trace.packets} packets, clock {trace.clock_id}, {len(trace.tracks)} tracks",
        f"{len(trace.slices)} slices, {len(trace.instants)} instants, {len(trace.states)} states, "
        f"{sum(len(counter.values) for counter in trace.counters.values())} counter values",
        f"{len(trace.samples)} samples, {len(trace.runs)} runs on processors, {len(trace.scripts)} scripts",
        f"{len(trace.heap_profiles)} heap profiles, {len(trace.heap_graphs)} heap graphs",
        f"attributes {trace.attributes}",
        f"other packets by field {dict(trace.other_packets)}",
    ]
    lines += [f"process {one.pid} {one.name!r}" for one in list(trace.processes.values())[:most]]
    lines += [
        f"thread {one.pid}/{one.tid} {one.name!r}: {per_track[one.uuid]} slices"
        for one in list(trace.threads.values())[:most]
    ]
    lines += [
        f"slice {'  ' * one.depth}{one.name!r} {one.ts}+{one.dur} {list(one.categories)} {one.args} "
        f"{one.source or ''}".rstrip()
        for one in trace.slices[:most]
    ]
    lines += [f"state {one.value!r} {one.ts}+{one.dur} on track {one.track}" for one in trace.states[:most]]
    lines += [f"{len(trace.errors)} errors", *trace.errors[:most]]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print the summary of a trace; 1 if something in it is inconsistent."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--most", type=int, default=20, help="entries of each kind (default: %(default)s)")
    options = parser.parse_args(arguments)
    trace = read(options.trace)
    print(summary(trace, options.most))
    return 1 if trace.errors else 0


if __name__ == "__main__":
    sys.exit(main())
