"""Packets, with what all modules of the Perfetto exporter need of them: sequences, tracks and clocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import (
    OutputBuffer,
    integer,
    message,
    text,
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
# trace_processor stops for a processor beyond (src/trace_processor/importers/common/cpu_tracker.h).
MAX_CPUS = 4096


def clock_at(clock: int, ts: int) -> bytes:
    return integer(pb.ClockSnapshotClock.clock_id, clock) + integer(pb.ClockSnapshotClock.timestamp, ts)


def interned_text(tag: int, iid: int, value: str) -> bytes:
    """Returns an entry of interned data: all that are names have the fields of strings."""
    return message(tag, integer(pb.InternedString.iid, iid), text(pb.InternedString.str, value))


def in_pieces(fields: list[bytes]) -> Iterator[list[bytes]]:
    """Yields the fields in lists that make packets of moderate size."""
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
        self.out.write(message(pb.Trace.packet, integer(pb.TracePacket.trusted_packet_sequence_id, sequence), *fields))

    def write_event(self, sequence: int, ts: int, event_type: int, track: int, *fields: bytes) -> None:
        event = (integer(pb.TrackEvent.type, event_type), integer(pb.TrackEvent.track_uuid, track), *fields)
        self.write_at(ts, message(pb.TracePacket.track_event, *event), sequence=sequence)

    def write_events(self, sequence: int, ts: Array, event_type: int, track: int, events: Iterable[bytes]) -> None:
        """Writes events of one type and track; events: the other fields of each."""
        head = integer(pb.TrackEvent.type, event_type) + integer(pb.TrackEvent.track_uuid, track)
        lead = integer(pb.TracePacket.trusted_packet_sequence_id, sequence)
        lead += integer(pb.TracePacket.timestamp_clock_id, self.clock)
        for time, fields in zip(ts.tolist(), events, strict=True):
            event = message(pb.TracePacket.track_event, head, fields)
            self.out.write(message(pb.Trace.packet, lead, integer(pb.TracePacket.timestamp, time), event))

    def write_at(self, ts: int, *fields: bytes, sequence: int) -> None:
        """Writes a packet at a time on the trace's clock, whatever clock the sequence has."""
        self.write(
            integer(pb.TracePacket.timestamp, ts),
            integer(pb.TracePacket.timestamp_clock_id, self.clock),
            *fields,
            sequence=sequence,
        )

    def write_clocks(self, values: dict[int, int], *fields: bytes) -> None:
        """Ties clocks together by one snapshot: the time on each of them, by its number."""
        clocks = (message(pb.ClockSnapshot.clocks, clock_at(clock, ts)) for clock, ts in sorted(values.items()))
        self.write(message(pb.TracePacket.clock_snapshot, *clocks, *fields))

    def write_attributes(self, attributes: dict[str, str]) -> None:
        written = (
            message(
                pb.TraceAttributes.attribute,
                text(pb.TraceAttributesAttribute.key, key),
                text(pb.TraceAttributesAttribute.string_value, value),
            )
            for key, value in attributes.items()
        )
        self.write(message(pb.TracePacket.trace_attributes, *written))

    def write_track(self, *fields: bytes, parent: int = 0, name: str = "") -> int:
        """Returns its number; 0 and "" are no parent and no name."""
        self._n_tracks += 1
        head = integer(pb.TrackDescriptor.uuid, self._n_tracks)
        head += integer(pb.TrackDescriptor.parent_uuid, parent) if parent else b""
        head += text(pb.TrackDescriptor.name, name) if name else b""
        self.write(message(pb.TracePacket.track_descriptor, head, *fields))
        return self._n_tracks

    def write_process(self, process: Process) -> int:
        pid, name = (
            integer(pb.ProcessDescriptor.pid, process.pid),
            text(pb.ProcessDescriptor.process_name, process.name),
        )
        return self.write_track(message(pb.TrackDescriptor.process, pid, name))

    def write_states(self, thread: Thread, thread_track: int, name: str, ts: Array, states: Iterable[str]) -> None:
        """Writes a track of states below the thread's, at least one. The last one holds until the thread's end: the
        viewer takes an empty one for none."""
        track = self.write_track(message(pb.TrackDescriptor.state), parent=thread_track, name=name)
        sequence = self.sequence()
        times = [*ts.tolist(), max(thread.end_ts, int(ts[-1]))]
        for time, state in zip(times, (*states, ""), strict=True):
            self.write_event(sequence, time, pb.TrackEventType.TYPE_STATE, track, text(pb.TrackEvent.name, state))

    def begin(self, sequence: int, clock: int, defaults: bytes, interned: list[bytes]) -> None:
        """Gives a sequence its clock, INCREMENTAL or RELATIVE, and its defaults. The viewer marks each time at which a
        clock starts, so all start with the recording."""
        own = clock_at(clock, 0)
        if clock == INCREMENTAL:
            own = clock_at(clock, self.start_ts) + integer(pb.ClockSnapshotClock.is_incremental, 1)
        clocks = [message(pb.ClockSnapshot.clocks, one) for one in (clock_at(self.clock, self.start_ts), own)]
        defaults = integer(pb.TracePacketDefaults.timestamp_clock_id, clock) + defaults
        self.write(
            integer(pb.TracePacket.sequence_flags, CLEARED),
            message(pb.TracePacket.clock_snapshot, *clocks),
            message(pb.TracePacket.trace_packet_defaults, defaults),
            message(pb.TracePacket.interned_data, *interned),
            sequence=sequence,
        )

    def intern(self, sequence: int, entries: list[bytes]) -> None:
        for piece in in_pieces(entries):
            self.write(message(pb.TracePacket.interned_data, *piece), sequence=sequence)
