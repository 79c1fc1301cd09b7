"""Packets, with what all modules of the Perfetto exporter need of them: sequences, tracks and clocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import OutputBuffer, write_track_events
from traceferry.files.output import Output
from traceferry.model import Array, ClockKind, Process, Thread

Value = int | str | bytes | memoryview | Sequence[bytes] | None  # of a field
CLOCKS: dict[ClockKind, int] = {
    "realtime": 1, "monotonic": 3, "monotonic_raw": 5, "boot": 6, "tai": 6, "sched": 10, "tsc": 6,
}  # fmt: skip
REALTIME, MONOTONIC_COARSE, BOOT = 1, 4, 6
# Clocks of a sequence's own. RELATIVE counts from the recording's start, which makes times short and, unlike
# differences, lets them stand in any order.
INCREMENTAL, RELATIVE = 64, 65
CLEARED = 1
DESCRIPTORS = 1  # the sequence of what has no time; each series of events has one of its own, in order of time
PIECE = 1 << 18
AT_ONCE = 1 << 14  # events whose fields are in memory
# trace_processor stops for a processor beyond (src/trace_processor/importers/common/cpu_tracker.h).
MAX_CPUS = 4096
# It drops what is nested deeper (src/trace_processor/importers/common/slice_tracker.h), of instants at one time, too.
MAX_DEPTH = 512


def interned(field: str, iid: int, value: str | bytes) -> bytes:
    """Returns an entry of a field of interned data: all that are names have the fields of strings."""
    return pb.InternedData.text(iid, **{field: value})


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

    def write(self, sequence: int = DESCRIPTORS, **fields: Value) -> None:
        self.out.write(pb.Trace(packet=pb.TracePacket(trusted_packet_sequence_id=sequence, **fields)))

    def write_event(self, sequence: int, ts: int, event_type: int, track: int, fields: bytes = b"") -> None:
        self.write_at(ts, sequence, track_event=pb.TrackEvent(type=event_type, track_uuid=track) + fields)

    def write_events(self, sequence: int, ts: Array, event_type: int, track: int, events: Iterable[bytes]) -> None:
        """Writes events of one type and track; events: the other fields of each."""
        head = pb.TrackEvent(type=event_type, track_uuid=track)
        lead = pb.TracePacket(trusted_packet_sequence_id=sequence, timestamp_clock_id=self.clock)
        left = iter(events)
        for begin in range(0, len(ts), AT_ONCE):
            bodies = list(islice(left, AT_ONCE))
            part = np.ascontiguousarray(ts[begin : begin + AT_ONCE], np.int64)
            write_track_events(self, lead, b"", head, part, np.arange(len(part), dtype=np.int32), bodies)

    def write_at(self, ts: int, sequence: int, **fields: Value) -> None:
        """Writes a packet at a time on the trace's clock, whatever clock the sequence has."""
        self.write(sequence, timestamp=ts, timestamp_clock_id=self.clock, **fields)

    def write_clocks(self, values: dict[int, int], primary: int | None = None) -> None:
        """Ties clocks together by one snapshot: the time on each of them, by its number."""
        clocks = [pb.ClockSnapshotClock(clock_id=clock, timestamp=ts) for clock, ts in sorted(values.items())]
        self.write(clock_snapshot=pb.ClockSnapshot(clocks=clocks, primary_trace_clock=primary))

    def write_attributes(self, attributes: dict[str, str]) -> None:
        written = [pb.TraceAttributesAttribute(key=key, string_value=value) for key, value in attributes.items()]
        self.write(trace_attributes=pb.TraceAttributes(attribute=written))

    def write_track(self, parent: int = 0, name: str = "", **fields: Value) -> int:
        """Returns its number; 0 and "" are no parent and no name."""
        self._n_tracks += 1
        descriptor = pb.TrackDescriptor(uuid=self._n_tracks, parent_uuid=parent or None, name=name or None, **fields)
        self.write(track_descriptor=descriptor)
        return self._n_tracks

    def write_process(self, process: Process) -> int:
        labels = {"process_labels": process.cgroup} if process.cgroup else {}
        descriptor = pb.ProcessDescriptor(pid=process.pid, process_name=process.name, **labels)
        return self.write_track(process=descriptor)

    def write_states(
        self, thread: Thread, thread_track: int, name: str, ts: Array, state: Array, states: Sequence[str]
    ) -> None:
        """Writes a track of states below the thread's, at least one. state: of each time, in `states`. The last one
        holds until the thread's end: the viewer takes an empty one for none."""
        track = self.write_track(thread_track, name, state=b"")
        lead = pb.TracePacket(trusted_packet_sequence_id=self.sequence())
        clock = pb.TracePacket(timestamp_clock_id=self.clock)
        head = pb.TrackEvent(type=pb.TrackEventType.TYPE_STATE, track_uuid=track)
        times = np.append(ts, max(thread.end_ts, int(ts[-1])))
        bodies = [pb.TrackEvent(name=text) for text in (*states, "")]
        write_track_events(self, lead, clock, head, times, np.append(state, len(states)).astype(np.int32), bodies)

    def begin(self, sequence: int, clock: int, defaults: bytes, entries: list[bytes]) -> None:
        """Gives a sequence its clock, INCREMENTAL or RELATIVE, and its defaults. The viewer marks each time at which a
        clock starts, so all start with the recording."""
        own = pb.ClockSnapshotClock(clock_id=clock, timestamp=0)
        if clock == INCREMENTAL:
            own = pb.ClockSnapshotClock(clock_id=clock, timestamp=self.start_ts, is_incremental=1)
        clocks = [pb.ClockSnapshotClock(clock_id=self.clock, timestamp=self.start_ts), own]
        self.write(
            sequence,
            sequence_flags=CLEARED,
            clock_snapshot=pb.ClockSnapshot(clocks=clocks),
            trace_packet_defaults=pb.TracePacketDefaults(timestamp_clock_id=clock) + defaults,
            interned_data=b"".join(entries),
        )

    def intern(self, sequence: int, entries: list[bytes]) -> None:
        for piece in in_pieces(entries):
            self.write(sequence, interned_data=b"".join(piece))
