"""What all modules of the Perfetto exporter write with: field numbers, sequences, tracks and clocks.

Field numbers: protos/perfetto/trace of google/perfetto, v59.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import chain, islice, repeat

from traceferry.exporters.perfetto.proto import (
    LENGTH,
    VARINT,
    integer,
    lengths,
    message,
    messages,
    text,
    texts,
    varint,
    varints,
)
from traceferry.files.output import Output
from traceferry.model import Array, ClockKind, Process, Thread

CLOCKS: dict[ClockKind, int] = {
    "realtime": 1, "monotonic": 3, "monotonic_raw": 5, "boot": 6, "sched": 10, "tsc": 6,
}  # fmt: skip
REALTIME, MONOTONIC_COARSE, BOOT = 1, 4, 6
# Clocks of a sequence's own. RELATIVE counts from the recording's start, which makes times short and, unlike
# differences, lets them stand in any order.
INCREMENTAL, RELATIVE = 64, 65
CLEARED = 1
DESCRIPTORS = 1  # the sequence of what has no time; each series of events has one of its own, in order of time
PIECE = 1 << 18
ROWS = 1 << 14  # that are put together at once
PACKET_TAG = varint(1 << 3 | LENGTH)  # Trace.packet
# trace_processor stops for a processor beyond (src/trace_processor/importers/common/cpu_tracker.h).
MAX_CPUS = 4096


# ---------------------------------------------------------------- field numbers


class Packet(IntEnum):
    """perfetto.protos.TracePacket; a trace is a sequence of its field 1."""

    CLOCK_SNAPSHOT = 6
    TIMESTAMP = 8
    TRUSTED_PACKET_SEQUENCE_ID = 10
    TRACK_EVENT = 11
    INTERNED_DATA = 12
    SEQUENCE_FLAGS = 13
    PROFILE_PACKET = 37
    HEAP_GRAPH = 56
    TIMESTAMP_CLOCK_ID = 58
    TRACE_PACKET_DEFAULTS = 59
    TRACK_DESCRIPTOR = 60
    MODULE_SYMBOLS = 61
    V8_JS_CODE = 99
    GENERIC_KERNEL_TASK_STATE_EVENT = 117
    TRACE_ATTRIBUTES = 126
    STACK_SAMPLE = 135


class Defaults(IntEnum):
    """perfetto.protos.TracePacketDefaults"""

    TRACK_EVENT_DEFAULTS = 11
    TIMESTAMP_CLOCK_ID = 58
    STACK_SAMPLE_DEFAULTS = 100


class Descriptor(IntEnum):
    """perfetto.protos.TrackDescriptor"""

    UUID = 1
    NAME = 2
    PROCESS = 3
    THREAD = 4
    PARENT_UUID = 5
    COUNTER = 8
    SIBLING_ORDER_RANK = 12
    DESCRIPTION = 14
    STATE = 18


class Event(IntEnum):
    """perfetto.protos.TrackEvent"""

    CATEGORY_IIDS = 3
    DEBUG_ANNOTATIONS = 4
    TYPE = 9
    NAME_IID = 10
    TRACK_UUID = 11
    CATEGORIES = 22
    NAME = 23
    SOURCE_LOCATION_IID = 34
    DOUBLE_COUNTER_VALUE = 44
    FLOW_IDS = 47
    CORRELATION_ID_STR = 53
    CALLSTACK_IID = 56


class EventType(IntEnum):
    SLICE_BEGIN = 1
    SLICE_END = 2
    INSTANT = 3
    COUNTER = 4
    STATE = 5


class Annotation(IntEnum):
    """perfetto.protos.DebugAnnotation"""

    NAME_IID = 1
    BOOL_VALUE = 2
    UINT_VALUE = 3
    INT_VALUE = 4
    STRING_VALUE = 6
    POINTER_VALUE = 7
    NAME = 10


class Interned(IntEnum):
    """perfetto.protos.InternedData: each entry has iid 1; strings and names have their text in 2."""

    EVENT_CATEGORIES = 1
    EVENT_NAMES = 2
    DEBUG_ANNOTATION_NAMES = 3
    SOURCE_LOCATIONS = 4  # iid 1, file_name 2, function_name 3, line_number 4
    FUNCTION_NAMES = 5
    FRAMES = 6
    CALLSTACKS = 7
    BUILD_IDS = 16
    MAPPING_PATHS = 17
    SOURCE_PATHS = 18
    MAPPINGS = 19
    V8_JS_FUNCTION_NAME = 31
    V8_JS_FUNCTION = 32
    V8_JS_SCRIPT = 33
    V8_ISOLATE = 35
    STACK_SAMPLE_TASK_CONTEXTS = 48
    STACK_SAMPLE_EXECUTION_CONTEXTS = 49
    STACK_SAMPLE_COUNTER_DESCRIPTORS = 50


# ---------------------------------------------------------------- writing


def interned_text(field: Interned, iid: int, value: str) -> bytes:
    return message(field, integer(1, iid), text(2, value))


def interned_texts(field: Interned, iids: Sequence[int], values: Iterable[str]) -> list[bytes]:
    """`interned_text` of each of them."""
    heads = (integer(1, iid) for iid in iids)
    return messages(field, list(map(b"".join, zip(heads, texts(2, values), strict=True))))


def in_pieces(fields: list[bytes]) -> Iterator[list[bytes]]:
    """For packets of moderate size."""
    piece: list[bytes] = []
    size = 0
    for one in fields:
        piece.append(one)
        size += len(one)
        if size > PIECE:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


Kernel = Callable[..., tuple[int, ...]]


def filled(kernel: Kernel, n_rows: int, *state: int) -> Iterator[tuple[memoryview, list[int]]]:
    """What a kernel writes of n_rows rows: (bytes, state) of each piece; the bytes hold until the next one.

    kernel: takes the row to go on at, `state` and a buffer; returns how many bytes it wrote, and the row and the state
    to go on with. Where one row needs more than the buffer, the first number is the negative of what it needs.
    """
    buffer = bytearray(PIECE)
    position = [0, *state]
    while position[0] < n_rows:
        size, *position = kernel(*position, buffer)
        if size < 0:
            buffer = bytearray(-size)
        else:
            yield memoryview(buffer)[:size], position[1:]


class Packets:
    """Writes packets, and gives numbers to tracks and sequences.

    clock: Perfetto's number of the trace's clock; start_ts: the recording's first time stamp, in ns.
    """

    def __init__(self, out: Output, clock: int, start_ts: int) -> None:
        self.out = out
        self.clock = clock
        self.start_ts = start_ts
        self._n_tracks = 0
        self._n_sequences = DESCRIPTORS

    def sequence(self) -> int:
        self._n_sequences += 1
        return self._n_sequences

    def write(self, *fields: bytes, sequence: int = DESCRIPTORS) -> None:
        self.out.write(message(1, integer(Packet.TRUSTED_PACKET_SEQUENCE_ID, sequence), *fields))

    def write_event(self, sequence: int, ts: int, event_type: EventType, track: int, *fields: bytes) -> None:
        event = (integer(Event.TYPE, event_type), integer(Event.TRACK_UUID, track), *fields)
        self.write_at(ts, message(Packet.TRACK_EVENT, *event), sequence=sequence)

    def write_events(
        self, sequence: int, ts: Array, event_type: EventType, track: int, events: Iterable[bytes]
    ) -> None:
        """Many events of one type and track; events: the other fields of each."""
        head = integer(Event.TYPE, event_type) + integer(Event.TRACK_UUID, track)
        lead = integer(Packet.TRUSTED_PACKET_SEQUENCE_ID, sequence)
        lead += integer(Packet.TIMESTAMP_CLOCK_ID, self.clock) + varint(Packet.TIMESTAMP << 3 | VARINT)
        event_tag = varint(Packet.TRACK_EVENT << 3 | LENGTH)
        rest = iter(events)
        for at in range(0, len(ts), ROWS):
            times, fields = varints(ts[at : at + ROWS]), list(islice(rest, ROWS))
            n_event = lengths(fields) + len(head)
            event_lengths = varints(n_event)
            n_packet = len(lead) + lengths(times) + len(event_tag) + lengths(event_lengths) + n_event
            n = len(times)
            packets = zip(
                repeat(PACKET_TAG, n), varints(n_packet), repeat(lead, n), times,
                repeat(event_tag, n), event_lengths, repeat(head, n), fields, strict=True,
            )  # fmt: skip
            self.out.write(b"".join(chain.from_iterable(packets)))

    def write_at(self, ts: int, *fields: bytes, sequence: int) -> None:
        """At a time on the trace's clock, whatever clock the sequence has."""
        self.write(
            integer(Packet.TIMESTAMP, ts), integer(Packet.TIMESTAMP_CLOCK_ID, self.clock), *fields, sequence=sequence
        )

    def write_filled(self, kernel: Kernel, n_rows: int, *state: int) -> list[int]:
        """What a kernel writes, which is whole packets: see `filled`. Returns its state after the last row."""
        last = list(state)
        for piece, after in filled(kernel, n_rows, *state):
            self.out.write(piece)
            last = after
        return last

    def write_clocks(self, values: dict[int, int], *fields: bytes) -> None:
        """One snapshot ties clocks together: the time on each of them, by its number."""
        clocks = (message(1, integer(1, clock), integer(2, ts)) for clock, ts in sorted(values.items()))
        self.write(message(Packet.CLOCK_SNAPSHOT, *clocks, *fields))

    def write_attributes(self, attributes: dict[str, str]) -> None:
        written = (message(1, text(1, key), text(3, value)) for key, value in attributes.items())
        self.write(message(Packet.TRACE_ATTRIBUTES, *written))

    def write_track(self, *fields: bytes, parent: int = 0, name: str = "") -> int:
        """Returns its number; 0 and "" are no parent and no name."""
        self._n_tracks += 1
        head = integer(Descriptor.UUID, self._n_tracks)
        head += integer(Descriptor.PARENT_UUID, parent) if parent else b""
        head += text(Descriptor.NAME, name) if name else b""
        self.write(message(Packet.TRACK_DESCRIPTOR, head, *fields))
        return self._n_tracks

    def write_process(self, process: Process) -> int:
        identity = message(Descriptor.PROCESS, integer(1, process.pid), text(6, process.name))  # pid, process_name
        return self.write_track(identity)

    def write_states(self, thread: Thread, thread_track: int, name: str, ts: Array, states: Iterable[str]) -> None:
        """A track of states below the thread's, at least one. The last one holds until the thread's end: the viewer
        takes an empty one for none."""
        track, sequence = self.write_track(message(Descriptor.STATE), parent=thread_track, name=name), self.sequence()
        times = [*ts.tolist(), max(thread.end_ts, int(ts[-1]))]
        for time, state in zip(times, (*states, ""), strict=True):
            self.write_event(sequence, time, EventType.STATE, track, text(Event.NAME, state))

    def begin(self, sequence: int, clock: int, defaults: bytes, interned: list[bytes]) -> None:
        """Gives a sequence its clock, INCREMENTAL or RELATIVE, and its defaults. The viewer marks each time at which a
        clock starts, so all start with the recording."""
        start_ts = self.start_ts
        zero = start_ts if clock == INCREMENTAL else 0
        own = integer(1, clock) + integer(2, zero) + (integer(3, 1) if clock == INCREMENTAL else b"")  # is_incremental
        self.write(
            integer(Packet.SEQUENCE_FLAGS, CLEARED),
            message(
                Packet.CLOCK_SNAPSHOT,
                message(1, integer(1, self.clock), integer(2, start_ts)),
                message(1, own),
            ),
            message(Packet.TRACE_PACKET_DEFAULTS, integer(Defaults.TIMESTAMP_CLOCK_ID, clock), defaults),
            message(Packet.INTERNED_DATA, *interned),
            sequence=sequence,
        )

    def intern(self, sequence: int, entries: list[bytes]) -> None:
        for piece in in_pieces(entries):
            self.write(message(Packet.INTERNED_DATA, *piece), sequence=sequence)
