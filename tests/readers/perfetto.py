"""Reads Perfetto protobuf traces without the protobuf or perfetto packages, and says what is inconsistent.

The converter's tests compare its output with this reader, so it must not share code with the exporter. Field
numbers and rules: specs/perfetto-trace.md, sections 1.1 (sequences), 1.2 (clocks) and 1.3 (track events).
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
    _replay(trace, reader.events)
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

# Packet fields that carry no payload of their own (1.1).
_ENVELOPE = frozenset({6, 8, 10, 11, 12, 13, 41, 42, 58, 59, 60, 79, 87, 126})


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
        self._clocks = _Clocks(trace)
        self._sequences: dict[int, _Sequence] = {}

    def error(self, message: str) -> None:
        self.trace.errors.append(f"packet {self.trace.packets}: {message}")

    def packet(self, data: bytes) -> None:
        timestamp = clock = None
        sequence_id = flags = 0
        event = descriptor = snapshot = interned = defaults = attributes = None
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
            elif number not in _ENVELOPE:
                self.trace.other_packets[number] += 1

        sequence = self._sequence(sequence_id, flags)
        if flags & NEEDS and (sequence is None or not sequence.valid):
            self.error(
                f"sequence {sequence_id} needs incremental state but was never cleared: packet dropped"
            )
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

    def _time(
        self, timestamp: int, clock: int | None, sequence: _Sequence | None, event: bytes | None
    ) -> int | None:
        if clock is None:
            clock = sequence.clock_id if sequence is not None else 0
        time = self._clocks.convert(timestamp, clock, sequence)
        if time is None or sequence is None:
            return time
        if time < 0:
            self.error(f"sequence {sequence.number}: negative time {time}")
        if sequence.last_ts is not None and time < sequence.last_ts:
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
        # Events that were seen with an unknown id may be complete now.
        sequence.seen.clear()

    def _interned_entry(self, kind: int, data: bytes) -> tuple[int, Any]:
        iid = 0
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

    def _event(
        self, data: bytes, time: int | None, timestamp: int | None, sequence: _Sequence | None
    ) -> None:
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
                    event.source,
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
            dict(event.args), event.source,
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
        state = State(
            track.uuid, track.pid, track.tid, time, None, event.name, event.categories, dict(event.args)
        )
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
