"""Perfetto protobuf traces.

Each thread's calls are slices on a packet sequence of their own: names, categories and source locations interned, an
incremental clock, about 15 bytes an event, encoded by `perfetto_kernel`. Everything rare is on sequence 1 with absolute
times. Samples, scheduling, markers and sources each have a room of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from converter.model import (
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    UNWOUND,
    Array,
    Counter,
    Process,
    Thread,
    ThreadData,
    Trace,
)
from converter.output import Output
from exporters import perfetto_kernel
from exporters.perfetto_events import write_events, write_states
from exporters.perfetto_packets import (
    BOOT,
    CLOCKS,
    INCREMENTAL,
    MONOTONIC_COARSE,
    PIECE,
    REALTIME,
    Annotation,
    Defaults,
    Descriptor,
    Event,
    EventType,
    Interned,
    Packet,
    Packets,
    interned_text,
)
from exporters.perfetto_samples import Samples
from exporters.perfetto_scheduling import Scheduling
from exporters.perfetto_sources import write_sources
from exporters.proto import integer, message, text

# trace_processor drops what is nested deeper (src/trace_processor/importers/common/slice_tracker.h).
MAX_DEPTH = 512

NOTES = {UNWOUND: "unwound", OPEN_AT_END: "open_at_end", OPEN_AT_START: "open_at_start", ENTRY_LOST: "entry_lost"}
FUNCTION_ID = "function_id"
# Interned names of annotations: these on every thread's sequence, then those of the arguments.
ANNOTATION_IIDS = {name: iid for iid, name in enumerate([*NOTES.values(), FUNCTION_ID], start=1)}
COUNTER_UNITS = {"ns": 1, "count": 2, "bytes": 3}  # perfetto.protos.CounterDescriptor.Unit
CARRIED = {"calls", "arguments", "samples", "states", "scheduling"}


def write(trace: Trace, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the trace, a thread at a time. progress: told of records done."""
    writer = _Writer(trace, out)
    writer.clocks()
    writer.attributes()
    for process in trace.processes:
        writer.process(process)
    writer.sources()
    for index, (process, thread) in enumerate(trace.threads):
        writer.whole_thread(process, thread, index, progress)
    writer.finish()


def _note_losses(trace: Trace, data: ThreadData, index: int) -> None:
    markers = {id(table) for table in data.markers.values()}
    for table in data.tables():
        if len(table) and table.spec.name not in CARRIED and id(table) not in markers:
            trace.report.note("table_not_carried", len(table), where=f"{index}", detail=table.spec.name)


class _Writer:
    def __init__(self, trace: Trace, out: Output) -> None:
        self._trace = trace
        self._clock = CLOCKS[trace.clock.kind if trace.clock else "monotonic"]
        self._packets = Packets(out, self._clock, trace.start_ts)
        self._samples = Samples(trace, self._packets)
        self._scheduling = Scheduling(trace, self._packets)
        self._process_tracks: dict[int, int] = {}
        self._events_of_frames: tuple[Array, Array] | None = None

    # ------------------------------------------------------------ the trace

    def clocks(self) -> None:
        """One snapshot ties the clocks together. trace_processor wants to get from the boot clock to the trace's, and
        reads heap dumps on the coarse one; nothing here is on either, so their values may be the trace's own."""
        start = self._trace.start_ts
        unix = self._trace.unix_start_ns
        values = {self._clock: start, BOOT: start, MONOTONIC_COARSE: start}
        if unix is not None:
            values[REALTIME] = unix
        clocks = [message(1, integer(1, clock_id), integer(2, ts)) for clock_id, ts in sorted(values.items())]
        primary = integer(2, self._clock)
        self._packets.write(message(Packet.CLOCK_SNAPSHOT, *clocks, primary))

    def attributes(self) -> None:
        inputs = ", ".join(i.path for i in self._trace.inputs)
        formats = ", ".join(dict.fromkeys(f"{i.format} {i.version}" for i in self._trace.inputs))
        clock = self._trace.clock.kind if self._trace.clock else "unknown"
        own = {"converted_by": "traceferry", "inputs": inputs, "formats": formats, "clock": clock}
        if self._trace.sampling:
            own["sampled_event"] = self._trace.sampling.event
            own["sampling_interval_ns"] = str(self._trace.sampling.interval_ns)
        attributes = {**own, **self._trace.attributes}
        self._packets.write(
            message(
                Packet.TRACE_ATTRIBUTES,
                *(message(1, text(1, key), text(3, value)) for key, value in attributes.items()),
            )
        )

    def sources(self) -> None:
        write_sources(self._trace, self._packets)

    def finish(self) -> None:
        """What refers to all that was written."""
        self._samples.finish()
        columns = self._trace.frames["column"]
        self._trace.report.note(
            "columns_dropped", int(np.count_nonzero(columns)), where="columns", detail="columns of source positions"
        )

    def process(self, process: Process) -> None:
        track = self._packets.write_track(
            message(Descriptor.PROCESS, integer(1, process.pid), text(6, process.name))  # pid, process_name
        )
        self._process_tracks[process.pid] = track
        for counter in process.counters:
            self._counter(counter, track)

    def _counter(self, counter: Counter, process_track: int) -> None:
        known = COUNTER_UNITS.get(counter.unit)
        unit = integer(3, known) if known else text(6, counter.unit)  # unit, unit_name
        track = self._packets.write_track(
            integer(Descriptor.PARENT_UUID, process_track),
            text(Descriptor.NAME, counter.name),
            message(Descriptor.COUNTER, unit),
        )
        lead = integer(Packet.TRUSTED_PACKET_SEQUENCE_ID, self._packets.sequence())
        lead += integer(Packet.TIMESTAMP_CLOCK_ID, self._packets.clock)
        event = integer(Event.TYPE, EventType.COUNTER) + integer(Event.TRACK_UUID, track)
        bits = counter.values["value"].view(np.uint64)
        room, state = bytearray(PIECE), np.zeros(1, np.int64)
        while state[0] < len(bits):
            size = perfetto_kernel.counter_values(counter.values["ts"], bits, lead, event, state, room)
            self._packets.out.write(memoryview(room)[:size])

    def thread(self, process: Process, thread: Thread, index: int) -> int:
        identity = (integer(1, process.pid), integer(2, thread.tid), text(5, thread.name))  # pid, tid, thread_name
        return self._packets.write_track(
            integer(Descriptor.PARENT_UUID, self._process_tracks[process.pid]),
            message(Descriptor.THREAD, *identity),
            integer(Descriptor.SIBLING_ORDER_RANK, index),
        )

    def whole_thread(self, process: Process, thread: Thread, index: int, progress: Callable[[int], None]) -> None:
        """Its tables exist only in here: peak memory is one thread."""
        track = self.thread(process, thread, index)
        data = thread.load()
        progress(thread.n_records // 2)
        _note_losses(self._trace, data, index)
        self.calls(data, track, self._packets.sequence(), index)
        self._samples.write(process, thread, data.samples)
        self._scheduling.write(thread, track, data.scheduling)
        write_events(data, track, self._packets, self._samples)
        write_states(self._trace, data.states, track, self._packets)
        progress(thread.n_records - thread.n_records // 2)

    # ------------------------------------------------------------ calls

    def calls(self, data: ThreadData, track: int, sequence: int, index: int) -> None:
        calls, arguments = data.calls, data.arguments
        if len(calls) == 0:
            return
        start = int(calls["ts"][0])
        used = np.flatnonzero(np.bincount(calls["frame"]))
        n_positions = int(arguments["position"].max()) + 1 if len(arguments) else 0
        first_argument = len(ANNOTATION_IIDS) + 1
        argument_iids = {f"arg{i}": first_argument + i for i in range(n_positions)}
        self._begin_sequence(sequence, track, start, used, ANNOTATION_IIDS | argument_iids)

        head, head_length, event_at = _heads(*self._event_fields, sequence)
        note, note_length = self._note_fields
        iids = (arguments["position"] + first_argument).astype(np.int32)
        most = int(np.bincount(_run_numbers(arguments["call"])).max()) if len(arguments) else 0
        room = bytearray(PIECE + perfetto_kernel.ARGUMENT_ROOM * most)
        view = memoryview(room)
        state = np.array([0, 0, start, 0, 0], np.int64)
        # An event inside the deepest call nests one deeper than it.
        max_depth = MAX_DEPTH - 1 if data.markers else MAX_DEPTH
        while state[0] < len(calls):
            size = perfetto_kernel.slices(
                calls["ts"], calls["frame"], calls["flags"], arguments["call"], iids, arguments["value"],
                head, head_length, event_at, note, note_length, max_depth, state, room,
            )  # fmt: skip
            self._packets.out.write(view[:size])
        cut = int(state[4])
        self._trace.report.note("depth_cut", cut, where=f"{index}", detail=f"deeper than {max_depth}")

    def _begin_sequence(
        self, sequence: int, track: int, start: int, used: Array, annotation_iids: dict[str, int]
    ) -> None:
        """The sequence's clock, then its names. Index + 1 is the interned id of a frame's name and location."""
        self._packets.begin(
            sequence,
            INCREMENTAL,
            start,
            message(Defaults.TRACK_EVENT_DEFAULTS, integer(Event.TRACK_UUID, track)),
            self._interned(used, annotation_iids),
        )

    def _interned(self, used: Array, annotation_iids: dict[str, int]) -> list[bytes]:
        trace = self._trace
        frames, funcs = trace.frames.table(), trace.funcs.table()
        entries = [interned_text(Interned.DEBUG_ANNOTATION_NAMES, iid, name) for name, iid in annotation_iids.items()]
        for category in np.unique(frames["category"][used]).tolist():
            if category >= 0:
                name = trace.strings[int(trace.categories["name"][category])]
                entries.append(interned_text(Interned.EVENT_CATEGORIES, category + 1, name))
        for frame in used.tolist():
            func = int(frames["func"][frame])
            name = trace.func_name(func)
            entries.append(interned_text(Interned.EVENT_NAMES, frame + 1, name))
            source = int(funcs["source"][func])
            if source >= 0:
                file = trace.strings[int(trace.sources["path"][source])]
                location = (integer(1, frame + 1), text(2, file), text(3, name), integer(4, int(frames["line"][frame])))
                entries.append(message(Interned.SOURCE_LOCATIONS, *location))
        return entries

    @property
    def _event_fields(self) -> tuple[Array, Array]:
        """For each frame the serialised fields of its begin event, then those of an end event; and their lengths."""
        frames, funcs = self._trace.frames.table(), self._trace.funcs.table()
        if self._events_of_frames is not None and len(self._events_of_frames[0]) == len(frames) + 1:
            return self._events_of_frames
        has_source = funcs["source"][frames["func"]] >= 0
        number = funcs["number"][frames["func"]]
        rows: list[bytes] = []
        for frame in range(len(frames)):
            fields = integer(Event.TYPE, EventType.SLICE_BEGIN) + integer(Event.NAME_IID, frame + 1)
            category = int(frames["category"][frame])
            if category >= 0:
                fields += integer(Event.CATEGORY_IIDS, category + 1)
            if has_source[frame]:
                fields += integer(Event.SOURCE_LOCATION_IID, frame + 1)
            if number[frame] >= 0:
                name = integer(Annotation.NAME_IID, ANNOTATION_IIDS[FUNCTION_ID])
                value = integer(Annotation.UINT_VALUE, int(number[frame]))
                fields += message(Event.DEBUG_ANNOTATIONS, name, value)
            rows.append(fields)
        rows.append(integer(Event.TYPE, EventType.SLICE_END))
        self._events_of_frames = _padded(rows, 48)
        return self._events_of_frames

    @cached_property
    def _note_fields(self) -> tuple[Array, Array]:
        """For each value of the flags of a row, the serialised annotations that say so, and their length."""
        rows: list[bytes] = []
        for flags in range(256):
            fields = b""
            for flag, name in NOTES.items():
                of_leave = flag in (UNWOUND, OPEN_AT_END)
                if flags & flag and of_leave == bool(flags & LEAVE):
                    yes = integer(Annotation.NAME_IID, ANNOTATION_IIDS[name]) + integer(Annotation.BOOL_VALUE, 1)
                    fields += message(Event.DEBUG_ANNOTATIONS, yes)
            rows.append(fields)
        return _padded(rows, 32)


def _heads(fields: Array, lengths: Array, sequence: int) -> tuple[Array, Array, int]:
    """(whole packets but for their time, their lengths, where the event's fields begin in each)."""
    lead = b"\x0a\0" + integer(Packet.TRUSTED_PACKET_SEQUENCE_ID, sequence) + bytes([Packet.TRACK_EVENT << 3 | 2])
    leads = np.broadcast_to(np.frombuffer(lead, np.uint8), (len(fields), len(lead)))
    heads = np.concatenate((leads, lengths[:, np.newaxis].astype(np.uint8), fields), axis=1)
    event_at = len(lead) + 1
    return heads, lengths + np.int32(event_at), event_at


def _padded(rows: list[bytes], width: int) -> tuple[Array, Array]:
    lengths = np.array([len(row) for row in rows], np.int32)
    text = b"".join(row.ljust(width, b"\0") for row in rows)
    return np.frombuffer(text, np.uint8).reshape(len(rows), width), lengths


def _run_numbers(values: Array) -> Array:
    """0, 0, 1, 2, 2: numbers the runs of equal values."""
    runs: Array = np.cumsum(np.concatenate(([0], values[1:] != values[:-1])))
    return runs
