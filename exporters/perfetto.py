"""Perfetto protobuf traces.

Each thread's calls are slices on a packet sequence of their own: names, categories and source locations interned, an
incremental clock, about 15 bytes an event, encoded by `perfetto_kernel`. Everything rare goes through protobuf on
sequence 1 with absolute times. Facts: protos/perfetto/trace of google/perfetto.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from converter.model import (
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    UNWOUND,
    Array,
    ClockKind,
    MarkerType,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
)
from converter.output import Output
from exporters import perfetto_kernel

# trace_processor drops what is nested deeper (src/trace_processor/importers/common/slice_tracker.h).
MAX_DEPTH = 512
PIECE = 1 << 18
PER_ARGUMENT = 24

CLOCKS: dict[ClockKind, int] = {"realtime": 1, "monotonic": 3, "boot": 6, "tsc": 6}
REALTIME, MONOTONIC_COARSE, INCREMENTAL = 1, 4, 64
CLEARED, NEEDS = 1, 2
RARE = 1  # the sequence of everything that is rare; the threads' follow
NOTES = {UNWOUND: "unwound", OPEN_AT_END: "open_at_end", OPEN_AT_START: "open_at_start", ENTRY_LOST: "entry_lost"}
FUNCTION_ID = "function_id"
CARRIED = {"calls", "arguments", "states"}


def write(trace: Trace, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the trace, a thread at a time. progress: told of records done."""
    writer = _Writer(trace, out)
    writer.clocks()
    writer.attributes()
    for process in trace.processes:
        writer.process(process)
    for index, (process, thread) in enumerate(trace.threads):
        track = writer.thread(process, thread, index)
        data = thread.load()
        _note_losses(trace, data, index)
        writer.calls(data, track, thread, RARE + 1 + index, index)
        writer.events(data, track)
        writer.states(data, track)
        progress(thread.n_records)


def _note_losses(trace: Trace, data: ThreadData, index: int) -> None:
    markers = {id(table) for table in data.markers.values()}
    for table in data.tables():
        if len(table) and table.spec.name not in CARRIED and id(table) not in markers:
            trace.report.note("table_not_carried", len(table), where=f"{index}", detail=table.spec.name)


class _Writer:
    def __init__(self, trace: Trace, out: Output) -> None:
        self._trace = trace
        self._out = out
        self._clock = CLOCKS[trace.clock.kind if trace.clock else "monotonic"]
        self._n_tracks = 0
        self._process_tracks: dict[int, int] = {}
        self._begin_cache: tuple[Array, Array] | None = None

    def _track(self) -> int:
        self._n_tracks += 1
        return self._n_tracks

    def _packet(self, ts: int | None = None) -> Any:
        packet = pb.TracePacket()
        packet.trusted_packet_sequence_id = RARE
        if ts is not None:
            packet.timestamp = ts
            packet.timestamp_clock_id = self._clock
        return packet

    def _write(self, packet: Any) -> None:
        data = packet.SerializeToString(deterministic=True)
        self._out.write(b"\x0a" + _varint(len(data)) + data)

    # ------------------------------------------------------------ the trace

    def clocks(self) -> None:
        """One snapshot ties the clocks together; the coarse clock is what trace_processor reads heap dumps on."""
        packet = self._packet()
        snapshot = packet.clock_snapshot
        snapshot.primary_trace_clock = self._clock
        start = self._trace.start_ts
        unix = self._trace.unix_start_ns
        values = {self._clock: start}
        if self._clock != REALTIME:
            values[MONOTONIC_COARSE] = start
            if unix is not None:
                values[REALTIME] = unix
        for clock_id, ts in sorted(values.items()):
            snapshot.clocks.add(clock_id=clock_id, timestamp=ts)
        self._write(packet)

    def attributes(self) -> None:
        packet = self._packet()
        inputs = ", ".join(i.path for i in self._trace.inputs)
        formats = ", ".join(dict.fromkeys(f"{i.format} {i.version}" for i in self._trace.inputs))
        clock = self._trace.clock.kind if self._trace.clock else "unknown"
        own = {"converted_by": "traceferry", "inputs": inputs, "formats": formats, "clock": clock}
        for key, value in {**own, **self._trace.attributes}.items():
            packet.trace_attributes.attribute.add(key=key, string_value=value)
        self._write(packet)

    def process(self, process: Process) -> None:
        track = self._process_tracks[process.pid] = self._track()
        packet = self._packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.process.pid = process.pid
        packet.track_descriptor.process.process_name = process.name
        self._write(packet)
        for counter in process.counters:
            self._counter(counter, track)

    def _counter(self, counter: Any, process_track: int) -> None:
        track = self._track()
        packet = self._packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.parent_uuid = process_track
        packet.track_descriptor.name = counter.name
        packet.track_descriptor.counter.unit_name = counter.unit
        self._write(packet)
        for ts, value in zip(counter.values["ts"].tolist(), counter.values["value"].tolist(), strict=True):
            packet = self._packet(ts)
            packet.track_event.type = pb.TrackEvent.TYPE_COUNTER
            packet.track_event.track_uuid = track
            packet.track_event.double_counter_value = value
            self._write(packet)

    def thread(self, process: Process, thread: Thread, index: int) -> int:
        track = self._track()
        packet = self._packet()
        descriptor = packet.track_descriptor
        descriptor.uuid = track
        descriptor.parent_uuid = self._process_tracks[process.pid]
        descriptor.thread.pid = process.pid
        descriptor.thread.tid = thread.tid
        descriptor.thread.thread_name = thread.name
        descriptor.sibling_order_rank = index
        self._write(packet)
        return track

    # ------------------------------------------------------------ calls

    def calls(self, data: ThreadData, track: int, thread: Thread, sequence: int, index: int) -> None:
        calls, arguments = data.calls, data.arguments
        if len(calls) == 0:
            return
        start = int(calls["ts"][0])
        used = np.flatnonzero(np.bincount(calls["frame"]))
        n_positions = int(arguments["position"].max()) + 1 if len(arguments) else 0
        names = [*NOTES.values(), FUNCTION_ID, *(f"arg{i}" for i in range(n_positions))]
        annotation_iids = {name: iid for iid, name in enumerate(names, start=1)}
        self._begin_sequence(sequence, track, start, used, annotation_iids)

        begin, begin_length = self._begin_fields(annotation_iids)
        note, note_length = _note_fields(annotation_iids)
        iids = (arguments["position"] + (len(NOTES) + 2)).astype(np.int32)
        most = int(np.bincount(_run_numbers(arguments["call"])).max()) if len(arguments) else 0
        room = bytearray(PIECE + PER_ARGUMENT * most)
        view = memoryview(room)
        state = np.array([0, 0, start, 0, 0], np.int64)
        # An event inside the deepest call nests one deeper than it.
        max_depth = MAX_DEPTH - 1 if data.markers else MAX_DEPTH
        while state[0] < len(calls):
            size = perfetto_kernel.slices(
                calls["ts"], calls["frame"], calls["flags"], arguments["call"], iids, arguments["value"],
                begin, begin_length, note, note_length, sequence, max_depth, state, room,
            )  # fmt: skip
            self._out.write(view[:size])
        cut = int(state[4])
        self._trace.report.note("depth_cut", cut, where=f"{index}", detail=f"deeper than {max_depth}")

    def _begin_sequence(
        self, sequence: int, track: int, start: int, used: Array, annotation_iids: dict[str, int]
    ) -> None:
        """The sequence's clock, then its names. Index + 1 is the interned id of a frame's name and location."""
        trace, packet = self._trace, self._packet()
        packet.trusted_packet_sequence_id = sequence
        packet.sequence_flags = CLEARED
        packet.clock_snapshot.clocks.add(clock_id=self._clock, timestamp=start)
        packet.clock_snapshot.clocks.add(clock_id=INCREMENTAL, timestamp=start, is_incremental=True)
        packet.trace_packet_defaults.timestamp_clock_id = INCREMENTAL
        packet.trace_packet_defaults.track_event_defaults.track_uuid = track
        interned = packet.interned_data
        for name, iid in annotation_iids.items():
            interned.debug_annotation_names.add(iid=iid, name=name)
        frames, funcs = trace.frames.table(), trace.funcs.table()
        for category in np.unique(frames["category"][used]).tolist():
            if category >= 0:
                interned.event_categories.add(
                    iid=category + 1, name=trace.strings[int(trace.categories["name"][category])]
                )
        for frame in used.tolist():
            func = int(frames["func"][frame])
            name = trace.func_name(func)
            interned.event_names.add(iid=frame + 1, name=name)
            source = int(funcs["source"][func])
            if source >= 0:
                interned.source_locations.add(
                    iid=frame + 1,
                    file_name=trace.strings[int(trace.sources["path"][source])],
                    function_name=name,
                    line_number=int(frames["line"][frame]),
                )
        self._write(packet)

    def _begin_fields(self, annotation_iids: dict[str, int]) -> tuple[Array, Array]:
        """For each frame the serialised fields of its begin event, and their length."""
        if self._begin_cache is not None:
            return self._begin_cache
        frames, funcs = self._trace.frames.table(), self._trace.funcs.table()
        has_source = funcs["source"][frames["func"]] >= 0
        number = funcs["number"][frames["func"]]
        rows: list[bytes] = []
        for frame in range(len(frames)):
            fields = bytearray(b"\x48\x01\x50") + _varint(frame + 1)  # type: slice begin; name_iid
            category = int(frames["category"][frame])
            if category >= 0:
                fields += b"\x18" + _varint(category + 1)  # category_iids
            if has_source[frame]:
                fields += b"\x90\x02" + _varint(frame + 1)  # source_location_iid
            if number[frame] >= 0:
                annotation = b"\x08" + _varint(annotation_iids[FUNCTION_ID]) + b"\x18" + _varint(int(number[frame]))
                fields += b"\x22" + _varint(len(annotation)) + annotation
            rows.append(bytes(fields))
        self._begin_cache = _padded(rows, 64)
        return self._begin_cache

    # ------------------------------------------------------------ events and states

    def events(self, data: ThreadData, track: int) -> None:
        """Instants on the thread's own track, inside the call that they happened in; intervals on tracks of theirs."""
        for marker_type, table in data.markers.items():
            interval_track = self._child(track, marker_type.name) if np.any(table["dur"]) else 0
            columns = [table[field.key].tolist() for field in marker_type.fields]
            for row, (ts, dur) in enumerate(zip(table["ts"].tolist(), table["dur"].tolist(), strict=True)):
                packet = self._packet(ts)
                event = packet.track_event
                event.type = pb.TrackEvent.TYPE_SLICE_BEGIN if interval_track else pb.TrackEvent.TYPE_INSTANT
                event.track_uuid = interval_track or track
                event.name = marker_type.name
                event.categories.append("event")
                _annotate(event, marker_type, [column[row] for column in columns])
                self._write(packet)
                if interval_track:
                    end = self._packet(ts + dur)
                    end.track_event.type = pb.TrackEvent.TYPE_SLICE_END
                    end.track_event.track_uuid = interval_track
                    self._write(end)

    def _child(self, parent: int, name: str) -> int:
        track = self._track()
        packet = self._packet()
        packet.track_descriptor.uuid = track
        packet.track_descriptor.parent_uuid = parent
        packet.track_descriptor.name = name
        self._write(packet)
        return track

    def states(self, data: ThreadData, thread_track: int) -> None:
        states: Table = data.states
        strings = self._trace.strings
        for name in np.unique(states["track"]).tolist():
            track = self._track()
            packet = self._packet()
            packet.track_descriptor.uuid = track
            packet.track_descriptor.parent_uuid = thread_track
            packet.track_descriptor.name = strings[name]
            packet.track_descriptor.state.SetInParent()
            self._write(packet)
            rows = states.take(states["track"] == name)
            for ts, value in zip(rows["ts"].tolist(), rows["value"].tolist(), strict=True):
                packet = self._packet(ts)
                packet.track_event.type = pb.TrackEvent.TYPE_STATE
                packet.track_event.track_uuid = track
                packet.track_event.name = strings[value]
                self._write(packet)


def _annotate(event: Any, marker_type: MarkerType, values: list[Any]) -> None:
    for field, value in zip(marker_type.fields, values, strict=True):
        annotation = event.debug_annotations.add(name=field.key)
        if field.format == "text":
            annotation.string_value = value
        elif field.format == "hex":
            annotation.pointer_value = value
        else:
            annotation.int_value = value


def _note_fields(annotation_iids: dict[str, int]) -> tuple[Array, Array]:
    """For each value of the flags of a row, the serialised annotations that say so, and their length."""
    rows: list[bytes] = []
    for flags in range(256):
        fields = b""
        for flag, name in NOTES.items():
            of_leave = flag in (UNWOUND, OPEN_AT_END)
            if flags & flag and of_leave == bool(flags & LEAVE):
                annotation = b"\x08" + _varint(annotation_iids[name]) + b"\x10\x01"  # name_iid, bool_value
                fields += b"\x22" + _varint(len(annotation)) + annotation
        rows.append(fields)
    return _padded(rows, 32)


def _padded(rows: list[bytes], width: int) -> tuple[Array, Array]:
    lengths = np.array([len(row) for row in rows], np.int32)
    text = b"".join(row.ljust(width, b"\0") for row in rows)
    return np.frombuffer(text, np.uint8).reshape(len(rows), width), lengths


def _run_numbers(values: Array) -> Array:
    """0, 0, 1, 2, 2: numbers the runs of equal values."""
    runs: Array = np.cumsum(np.concatenate(([0], values[1:] != values[:-1])))
    return runs


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
