"""Perfetto protobuf traces.

Calls, samples, allocations, heap snapshots, scheduling, markers and sources each have a module of their own. What is
rare is on sequence 1 with absolute times.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from traceferry.exporters.counters import shown_counters
from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto.allocations import Allocations
from traceferry.exporters.perfetto.calls import Calls
from traceferry.exporters.perfetto.events import write_events, write_states
from traceferry.exporters.perfetto.heap import write_snapshot
from traceferry.exporters.perfetto.packets import BOOT, CLOCKS, MONOTONIC_COARSE, REALTIME, Packets
from traceferry.exporters.perfetto.samples import Samples
from traceferry.exporters.perfetto.scheduling import Scheduling
from traceferry.exporters.perfetto.sources import write_sources
from traceferry.exporters.perfetto.threads import renumbered
from traceferry.exporters.tiers import category_of_tiers
from traceferry.files.output import Output
from traceferry.model import Counter, Process, StreamedTable, Thread, ThreadData, Trace, TraceBuilder

# (unit, unit_name, how many of the recorded unit it is). The viewer writes a prefix to seconds and bytes: "700 us", "64
# KB", but "700e3 ns"; and to a number without unit none, but "65 count".
COUNTER_UNITS = {
    "ns": (pb.CounterDescriptor(unit_name="s"), 1e9),
    "count": (b"", 1.0),
    "bytes": (pb.CounterDescriptor(unit=pb.CounterDescriptorUnit.UNIT_SIZE_BYTES), 1.0),
}
CARRIED = {"calls", "arguments", "samples", "allocations", "states", "scheduling"}


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the trace, a thread at a time. progress: called with the number of records done."""
    writer = _Writer(trace, out)
    writer.clocks()
    writer.attributes()
    for process in writer.numbered.processes:
        writer.process(process)
    write_sources(writer.numbered, writer.packets)
    for index, (process, thread) in enumerate(writer.numbered.threads):
        writer.thread(process, thread, index, progress)
    for process in writer.numbered.processes:
        for snapshot in process.heap_snapshots:
            write_snapshot(trace, process, snapshot, writer.packets)
    writer.finish()


def _note_losses(trace: Trace, data: ThreadData, index: int) -> None:
    markers = {id(table) for table in data.markers.values()}
    for table in data.tables():
        if table.spec.name not in CARRIED and id(table) not in markers and len(table):
            trace.report.note("table_not_carried", len(table), where=f"{index}", detail=table.spec.name)


def _tiers(trace: Trace) -> list[list[Any]]:
    """Returns what a trace has no place for: (name, family, colour, category, its colour, whether it runs scripts)."""
    funcs, frames, strings = trace.funcs, trace.frames, trace.strings
    runs_scripts = np.zeros(len(trace.tiers) + 1, bool)
    runs_scripts[frames["tier"][funcs["is_js"][frames["func"]] & (frames["func"] >= 0)]] = True
    tiers = ([strings[text] for text in trace.tiers[column].tolist()] for column in ("name", "family", "color"))
    columns = (trace.categories[column] for column in ("name", "color"))
    of = category_of_tiers(trace)
    categories = ([strings[int(column[row])] if row >= 0 else "" for row in of.tolist()] for column in columns)
    return [list(row) for row in zip(*tiers, *categories, runs_scripts[:-1].tolist(), strict=True)]


class _Writer:
    """numbered: the trace, with the numbers of processes and threads that are written."""

    def __init__(self, trace: TraceBuilder, out: Output) -> None:
        self._trace = trace
        self.numbered = renumbered(trace)
        self._recorded_tids = [thread.tid for _, thread in trace.threads]
        self._clock = CLOCKS[trace.clock.kind if trace.clock else "monotonic"]
        self.packets = Packets(out, self._clock, trace.start_ts)
        self._calls = Calls(trace, self.packets)
        self._samples = Samples(trace, self.packets)
        self._allocations = Allocations(trace, self.packets, self._samples)
        self._scheduling = Scheduling(self.numbered, self.packets)
        self._process_tracks: dict[int, int] = {}

    # ------------------------------------------------------------ the trace

    def clocks(self) -> None:
        """trace_processor wants to get from the boot clock to the trace's, and
        reads heap dumps on the coarse one; nothing here is on either, so their values may be the trace's own."""
        start = self._trace.start_ts
        unix = self._trace.unix_start_ns
        values = {self._clock: start, BOOT: start, MONOTONIC_COARSE: start}
        if unix is not None:
            values[REALTIME] = unix
        self.packets.write_clocks(values, self._clock)

    def attributes(self) -> None:
        inputs = ", ".join(i.path for i in self._trace.inputs)
        formats = ", ".join(dict.fromkeys(f"{i.format} {i.version}" for i in self._trace.inputs))
        clock = self._trace.clock.kind if self._trace.clock else "unknown"
        own = {"converted_by": "traceferry", "inputs": inputs, "formats": formats, "clock": clock}
        if self._trace.sampling:
            own["sampled_event"] = self._trace.sampling.name
            own["sampling_interval_ns"] = str(self._trace.sampling.interval_ns)
        self.packets.write_attributes({**own, **self._trace.attributes})

    def finish(self) -> None:
        """Writes what refers to all that was written."""
        self._allocations.finish()
        self._samples.finish()
        if tiers := _tiers(self._trace):
            self.packets.write_attributes({"tiers": json.dumps(tiers)})
        if stopped := sorted(self._scheduling.stopped):
            self.packets.write_attributes({"stopped_threads": json.dumps(stopped)})
        columns = self._trace.frames["column"]
        coverage = len(self._trace.coverage)
        self._trace.report.note("table_not_carried", coverage, where="coverage", detail="coverage")
        self._trace.report.note(
            "columns_dropped", int(np.count_nonzero(columns)), where="columns", detail="columns of source positions"
        )

    def process(self, process: Process) -> None:
        track = self.packets.write_process(process)
        self._process_tracks[process.pid] = track
        # The first part of a counter's name, "Mono GC: collections", is a track around all that have it.
        groups: dict[str, int] = {}
        for counter in shown_counters(self._trace, process):
            section, _, rest = counter.name.partition(": ")
            if rest and section not in groups:
                groups[section] = self.packets.write_track(track, section)
            counter_track = self._counter(counter, groups[section] if rest else track)
            groups.setdefault(counter.name, counter_track)

    def _counter(self, counter: Counter, parent: int) -> int:
        unit, divisor = COUNTER_UNITS.get(counter.unit, (pb.CounterDescriptor(unit_name=counter.unit), 1.0))
        track = self.packets.write_track(parent, counter.name, counter=unit)
        value, ts = counter.values["value"] / divisor, counter.values["ts"]
        if counter.adds_up:
            # A value lasts until the next one there: what was counted until then; nothing is counted after the last.
            value = np.append(value[1:], np.zeros(min(len(value), 1)))
        # Doubles, by their 64 bits.
        values = np.asarray(value, np.float64).view(np.int64)
        events = (pb.TrackEvent(double_counter_value=value) for value in values.tolist())
        event_type = pb.TrackEventType.TYPE_COUNTER
        self.packets.write_events(self.packets.sequence(), ts, event_type, track, events)
        return track

    def _track(self, process: Process, thread: Thread, index: int) -> int:
        # The viewer shows the number beside the name.
        name = thread.name if thread.name != f"thread {thread.tid}" else None
        recorded = self._recorded_tids[index]
        description = f"recorded thread number {recorded:#x}" if recorded != thread.tid else None
        identity = pb.ThreadDescriptor(pid=process.pid, tid=thread.tid, thread_name=name)
        return self.packets.write_track(
            self._process_tracks[process.pid], thread=identity, sibling_order_rank=index, description=description
        )

    def thread(self, process: Process, thread: Thread, index: int, progress: Callable[[int], None]) -> None:
        """Its tables exist only in here: peak memory is one thread, or a piece of one that is streamed."""
        # What weighs bytes is a view of the process.
        track = 0 if thread.sample_unit else self._track(process, thread, index)
        data = thread.load(self._trace)
        progress(thread.n_records // 2)
        _note_losses(self._trace, data, index)
        self._calls.write(data, track, index)
        self._samples.write(process, thread, data)
        self._allocations.write(process, thread, data.allocations)
        has_states = self._scheduling.write(process, thread, track, data.scheduling) or len(data.states) > 0
        write_events(data, track, self.packets, self._samples, self._trace.report)
        write_states(self._trace, thread, data.states, track, self.packets)
        if has_states and not _is_listed(data):
            # The viewer fails at a state of a thread that it does not list.
            name, sequence = pb.TrackEvent(name="first record"), self.packets.sequence()
            self.packets.write_event(sequence, thread.start_ts, pb.TrackEventType.TYPE_INSTANT, track, name)
        progress(thread.n_records - thread.n_records // 2)


def _is_listed(data: ThreadData) -> bool:
    """Whether the viewer lists the thread: if it has slices, instants or samples."""
    # To count the rows of a streamed table is to make them all; importers stream only what is there.
    if type(data.calls) is StreamedTable or type(data.allocations) is StreamedTable:
        return True
    has_samples = (bool(np.any(table["stack"] >= 0)) for table in (data.samples, *data.other_samples.values()))
    return any(has_samples) or any(map(len, (data.calls, data.allocations, *data.markers.values())))
