"""Packets, with what all modules of the Perfetto exporter need of them: sequences, tracks and clocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, repeat

from traceferry.exporters.perfetto._packets import OutputBuffer
from traceferry.exporters.perfetto.fields import (
    ClockSnapshot,
    ClockSnapshotClock,
    InternedString,
    ProcessDescriptor,
    Trace,
    TraceAttributes,
    TraceAttributesAttribute,
    TracePacket,
    TracePacketDefaults,
    TrackDescriptor,
    TrackEvent,
    TrackEventType,
)
from traceferry.exporters.perfetto.proto import (
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
# trace_processor stops for a processor beyond (src/trace_processor/importers/common/cpu_tracker.h).
MAX_CPUS = 4096


def clock_at(clock: int, ts: int) -> bytes:
    return integer(ClockSnapshotClock.clock_id, clock) + integer(ClockSnapshotClock.timestamp, ts)


def interned_text(tag: int, iid: int, value: str) -> bytes:
    """Returns an entry of interned data: all that are names have the fields of strings."""
    return message(tag, integer(InternedString.iid, iid), text(InternedString.str, value))


def interned_texts(tag: int, iids: Sequence[int], values: Iterable[str]) -> list[bytes]:
    """Returns `interned_text` of each of them."""
    heads = (integer(InternedString.iid, iid) for iid in iids)
    return messages(tag, list(map(b"".join, zip(heads, texts(InternedString.str, values), strict=True))))


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


class Packets(OutputBuffer):
    """Writes packets, and gives numbers to tracks and sequences.

    clock: Perfetto's number of the trace's clock; start_ts: the recording's first time stamp, in ns.
    """

    def __init__(self, out: Output, clock: int, start_ts: int) -> None:
        super().__init__(out.write)
        self.out = out
        self.clock = clock
        self.start_ts = start_ts
        self._n_tracks = 0
        self._n_sequences = DESCRIPTORS

    def sequence(self) -> int:
        self._n_sequences += 1
        return self._n_sequences

    def write(self, *fields: bytes, sequence: int = DESCRIPTORS) -> None:
        self.out.write(message(Trace.packet, integer(TracePacket.trusted_packet_sequence_id, sequence), *fields))

    def write_event(self, sequence: int, ts: int, event_type: int, track: int, *fields: bytes) -> None:
        event = (integer(TrackEvent.type, event_type), integer(TrackEvent.track_uuid, track), *fields)
        self.write_at(ts, message(TracePacket.track_event, *event), sequence=sequence)

    def write_events(self, sequence: int, ts: Array, event_type: int, track: int, events: Iterable[bytes]) -> None:
        """Many events of one type and track; events: the other fields of each."""
        head = integer(TrackEvent.type, event_type) + integer(TrackEvent.track_uuid, track)
        lead = integer(TracePacket.trusted_packet_sequence_id, sequence)
        lead += integer(TracePacket.timestamp_clock_id, self.clock) + varint(TracePacket.timestamp)
        event_tag = varint(TracePacket.track_event)
        rest = iter(events)
        for at in range(0, len(ts), ROWS):
            times, fields = varints(ts[at : at + ROWS]), list(islice(rest, ROWS))
            n_event = lengths(fields) + len(head)
            event_lengths = varints(n_event)
            n_packet = len(lead) + lengths(times) + len(event_tag) + lengths(event_lengths) + n_event
            n = len(times)
            packets = zip(
                repeat(varint(Trace.packet), n), varints(n_packet), repeat(lead, n), times,
                repeat(event_tag, n), event_lengths, repeat(head, n), fields, strict=True,
            )  # fmt: skip
            self.out.write(b"".join(chain.from_iterable(packets)))

    def write_at(self, ts: int, *fields: bytes, sequence: int) -> None:
        """At a time on the trace's clock, whatever clock the sequence has."""
        self.write(
            integer(TracePacket.timestamp, ts),
            integer(TracePacket.timestamp_clock_id, self.clock),
            *fields,
            sequence=sequence,
        )

    def write_clocks(self, values: dict[int, int], *fields: bytes) -> None:
        """One snapshot ties clocks together: the time on each of them, by its number."""
        clocks = (message(ClockSnapshot.clocks, clock_at(clock, ts)) for clock, ts in sorted(values.items()))
        self.write(message(TracePacket.clock_snapshot, *clocks, *fields))

    def write_attributes(self, attributes: dict[str, str]) -> None:
        written = (
            message(
                TraceAttributes.attribute,
                text(TraceAttributesAttribute.key, key),
                text(TraceAttributesAttribute.string_value, value),
            )
            for key, value in attributes.items()
        )
        self.write(message(TracePacket.trace_attributes, *written))

    def write_track(self, *fields: bytes, parent: int = 0, name: str = "") -> int:
        """Returns its number; 0 and "" are no parent and no name."""
        self._n_tracks += 1
        head = integer(TrackDescriptor.uuid, self._n_tracks)
        head += integer(TrackDescriptor.parent_uuid, parent) if parent else b""
        head += text(TrackDescriptor.name, name) if name else b""
        self.write(message(TracePacket.track_descriptor, head, *fields))
        return self._n_tracks

    def write_process(self, process: Process) -> int:
        identity = integer(ProcessDescriptor.pid, process.pid) + text(ProcessDescriptor.process_name, process.name)
        return self.write_track(message(TrackDescriptor.process, identity))

    def write_states(self, thread: Thread, thread_track: int, name: str, ts: Array, states: Iterable[str]) -> None:
        """A track of states below the thread's, at least one. The last one holds until the thread's end: the viewer
        takes an empty one for none."""
        track, sequence = (
            self.write_track(message(TrackDescriptor.state), parent=thread_track, name=name),
            self.sequence(),
        )
        times = [*ts.tolist(), max(thread.end_ts, int(ts[-1]))]
        for time, state in zip(times, (*states, ""), strict=True):
            self.write_event(sequence, time, TrackEventType.TYPE_STATE, track, text(TrackEvent.name, state))

    def begin(self, sequence: int, clock: int, defaults: bytes, interned: list[bytes]) -> None:
        """Gives a sequence its clock, INCREMENTAL or RELATIVE, and its defaults. The viewer marks each time at which a
        clock starts, so all start with the recording."""
        start_ts = self.start_ts
        zero = start_ts if clock == INCREMENTAL else 0
        own = clock_at(clock, zero) + (integer(ClockSnapshotClock.is_incremental, 1) if clock == INCREMENTAL else b"")
        clocks = (message(ClockSnapshot.clocks, one) for one in (clock_at(self.clock, start_ts), own))
        self.write(
            integer(TracePacket.sequence_flags, CLEARED),
            message(TracePacket.clock_snapshot, *clocks),
            message(
                TracePacket.trace_packet_defaults, integer(TracePacketDefaults.timestamp_clock_id, clock), defaults
            ),
            message(TracePacket.interned_data, *interned),
            sequence=sequence,
        )

    def intern(self, sequence: int, entries: list[bytes]) -> None:
        for piece in in_pieces(entries):
            self.write(message(TracePacket.interned_data, *piece), sequence=sequence)
