"""Sampled stacks, as stack samples.

A viewer takes each packet sequence with stack samples for a recording of its own. So all threads' samples that count
the same stand on one sequence, thread after thread: their times are absolute, and TraceProcessor sorts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from traceferry.exporters.depths import OUTERMOST
from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import executions_of, write_samples
from traceferry.exporters.perfetto.packets import MAX_CPUS, RELATIVE, Packets
from traceferry.exporters.perfetto.physical_frames import CATEGORY_KINDS, PhysicalFrames
from traceferry.exporters.perfetto.stacks import Callstacks, write_symbols
from traceferry.exporters.tracepoints import TRACEPOINTS, joined_tracepoints
from traceferry.model import ENDINGS, Array, Event, Process, Table, Thread, ThreadData, Trace, distinct

UNITS = {
    "ns": pb.StackSampleUnit.UNIT_NANOSECONDS,
    "cycles": pb.StackSampleUnit.UNIT_CPU_CYCLES,
    "instructions": pb.StackSampleUnit.UNIT_INSTRUCTIONS,
    "bytes": pb.StackSampleUnit.UNIT_BYTES,
    "page-faults": pb.StackSampleUnit.UNIT_PAGE_FAULTS,
    "cache-misses": pb.StackSampleUnit.UNIT_CACHE_MISSES,
    "cache-references": pb.StackSampleUnit.UNIT_CACHE_REFERENCES,
    "branch-misses": pb.StackSampleUnit.UNIT_BRANCH_MISSES,
    "count": pb.StackSampleUnit.UNIT_COUNT,
}
UNKNOWN, USER = pb.StackSampleMode.MODE_UNKNOWN, pb.StackSampleMode.MODE_USER
KERNEL = pb.StackSampleMode.MODE_KERNEL
N_MODES = KERNEL + 1
# Counters of one sample beside the first, CPU time among them; further ones of a group have samples of their own.
MOST_FOLLOWERS = 6
# The viewer makes a title of the event: "Cpu Clock", "Code Size". What has none it does not show.
UNNAMED = Event("samples", "count", 0)
BYTES = "bytes"  # what is weighed in them ran on no processor
CPU_TIME = 1  # the interned id of a counter
NO_THREAD = -1


def counter(name: str, unit: str, iid: int | None = None) -> bytes:
    """Returns a StackSample.CounterDescriptor. The viewer shows the name without the unit."""
    return pb.StackSampleCounterDescriptor(
        iid=iid, name=f"{name}, {unit}", unit=UNITS.get(unit), unit_str=None if unit in UNITS else unit
    )


def task_context(iid: int, pid: int, tid: int) -> bytes:
    """Returns the interned data of a thread, or of a process where tid is NO_THREAD."""
    context = pb.StackSampleTaskContext(iid=iid, pid=pid, tid=tid if tid != NO_THREAD else None)
    return pb.InternedData(stack_sample_task_contexts=context)


class Samples:
    """The streams of stack samples of a trace, and the callstacks that its events refer to."""

    def __init__(self, trace: Trace, packets: Packets) -> None:
        self._trace = trace
        self._packets = packets
        self._frames = PhysicalFrames(trace, OUTERMOST)
        self._streams: dict[Event, Stream] = {}
        self._followers = _followers(trace.events)
        # How many views of each kind are still to come.
        self._n_views = Counter(self._sampling(thread) for _, thread in trace.threads if thread.sample_unit)

    def write(self, process: Process, thread: Thread, data: ThreadData) -> None:
        """Writes the samples of a thread; to be called once for each."""
        sampling = self._sampling(thread)
        if len(data.samples):
            followers = [] if thread.sample_unit else self._followers.get(0, [])
            counts = [data.other_samples[row]["weight"] for row in followers if row in data.other_samples]
            self.stream(sampling).write(process, thread, data.samples, counts)
        self._write_others(process, thread, data)
        if thread.sample_unit:
            self._n_views[sampling] -= 1
            if not self._n_views[sampling]:
                # Nothing else refers to what it has interned, which has an entry for each of the trace's stacks.
                self._streams.pop(sampling, None)

    def _write_others(self, process: Process, thread: Thread, data: ThreadData) -> None:
        """Writes the samples of the other events, each on a sequence of its own; those that a leader's samples count
        are written with it."""
        are_written = {row for rows in self._followers.values() for row in rows}
        joined = joined_tracepoints(self._trace.events)
        self._trace.report.note("tracepoints_joined", len(joined), where="events")
        if 0 in joined and len(data.samples):
            self.stream(TRACEPOINTS).write(process, thread, data.samples, [])
        for row, samples in data.other_samples.items():
            if row in joined:
                self.stream(TRACEPOINTS).write(process, thread, samples, [])
            elif row not in are_written:
                counts = [data.other_samples[member]["weight"] for member in self._followers.get(row, [])]
                self.stream(self._trace.events[row]).write(process, thread, samples, counts)

    def callstacks(self, stacks: Array) -> tuple[int, list[int]]:
        """Interns the stacks; returns the sequence on which they are known, and each one's number, 0 for none."""
        stream = self.stream(self._trace.sampling or UNNAMED)
        stream.callstacks.intern(stacks)
        iids = np.where(stacks >= 0, stream.callstacks.iids[stacks], 0)
        return stream.sequence, iids.tolist()

    def finish(self) -> None:
        write_symbols(self._trace, self._packets, self._frames, self._trace.end_ts + 1)

    def _sampling(self, thread: Thread) -> Event:
        """Returns what a thread's samples count. One whose samples weigh something else is a view; its name says of
        what: "code size", "code size of jit-1.dump". The viewer sorts the tracks by this word: those of views follow
        those of what ran."""
        unit = thread.sample_unit
        if not unit:
            return self._trace.sampling or UNNAMED
        words = thread.name.partition(" of ")[0].lower().split()
        return Event("_".join(["total", *words]), unit, 0)

    def stream(self, sampling: Event) -> Stream:
        if sampling not in self._streams:
            events = self._trace.events
            row = events.index(sampling) if sampling in events else -1
            followers = [events[member] for member in self._followers.get(row, [])]
            self._streams[sampling] = Stream(self._trace, self._packets, self._frames, sampling, followers)
        return self._streams[sampling]


def _followers(events: Sequence[Event]) -> dict[int, list[int]]:
    """Returns the members of each group that are counted with its leader's samples, by the leader's row."""
    found: dict[int, list[int]] = {}
    for row, event in enumerate(events):
        if event.leader >= 0 and len(found.setdefault(event.leader, [])) < MOST_FOLLOWERS - 1:
            found[event.leader].append(row)
    return found


class Stream:
    """Samples of one kind, on a sequence of their own. followers: events that its samples count, too."""

    def __init__(
        self, trace: Trace, packets: Packets, frames: PhysicalFrames, sampling: Event, followers: Sequence[Event]
    ) -> None:
        self.sequence = packets.sequence()
        self.callstacks = Callstacks(trace, packets, frames, self.sequence)
        self._trace = trace
        self._packets = packets
        self._tasks: dict[tuple[int, int], int] = {}  # interned ids of processes and threads
        self._execution_iids = np.zeros((MAX_CPUS + 1) * N_MODES, np.int32)
        self._n_executions = self._n_stackless = 0
        is_amount = sampling.sample_unit != "samples"
        unit = sampling.sample_unit if is_amount else sampling.unit
        self._has_processors = unit != BYTES and not is_amount
        event = _shown_name(sampling)
        plain = event.removesuffix(ENDINGS.get(sampling.sample_unit, ""))
        shown = plain.replace("_", " ") if sampling.kind == "other" else event
        primary = counter(shown, unit)
        defaults = pb.StackSampleDefaults(source=event, primary_descriptor=primary)
        counters = [("CPU time", "ns"), *((_shown_name(event), event.unit) for event in followers)]
        described = [
            pb.InternedData(stack_sample_counter_descriptors=counter(*of, iid))
            for iid, of in enumerate(counters, CPU_TIME)
        ]
        packets.begin(self.sequence, RELATIVE, pb.TracePacketDefaults(stack_sample_defaults=defaults), described)

    def write(self, process: Process, thread: Thread, samples: Table, counts: Sequence[Array]) -> None:
        """Writes samples of a thread. counts: of the followers, for each sample."""
        self.callstacks.intern(samples["stack"])
        # TraceProcessor leaves those out that have no callstack.
        self._n_stackless += int(np.count_nonzero(samples["stack"] < 0))
        where = f"samples {self.sequence}"
        self._trace.report.note("columns_dropped", self._n_stackless, where=where, detail="samples without a stack")
        entries: list[bytes] = []
        task = self._task(process, thread, entries)
        executions = self._executions(samples, entries)
        self._packets.intern(self.sequence, entries)

        write_samples(
            self._packets, self.sequence, task, self._packets.start_ts, samples["ts"], samples["weight"],
            np.stack([samples["cpu_ns"], *counts], axis=1), executions, samples["stack"], self.callstacks.iids,
        )  # fmt: skip

    def _task(self, process: Process, thread: Thread, entries: list[bytes]) -> int:
        """Returns the interned id of a thread; of a view, that of its process."""
        key = process.pid, thread.tid if not thread.sample_unit else NO_THREAD
        if key not in self._tasks:
            self._tasks[key] = len(self._tasks) + 1
            entries.append(task_context(self._tasks[key], *key))
        return self._tasks[key]

    def _executions(self, samples: Table, entries: list[bytes]) -> Array:
        """Returns the interned id of each sample's processor and mode, 0 where neither is known."""
        if not self._has_processors:
            return np.zeros(len(samples), np.int32)
        trace = self._trace
        which = executions_of(
            samples["cpu"], samples["stack"], trace.stacks["frame"], trace.frames["category"], self._modes(), MAX_CPUS,
            N_MODES,
        )  # fmt: skip
        executions: Array = self._execution_iids[which]
        new = which[(executions == 0) & (which > 0)]
        if not len(new):
            return executions
        for number in distinct(new).tolist():
            processor, mode = divmod(number, N_MODES)
            self._n_executions += 1
            self._execution_iids[number] = self._n_executions
            context = pb.StackSampleExecutionContext(
                iid=self._n_executions, cpu=processor - 1 if processor else None, mode=mode or None
            )
            entries.append(pb.InternedData(stack_sample_execution_contexts=context))
        return np.asarray(self._execution_iids[which])

    def _modes(self) -> Array:
        """Returns the mode of each category, of which the leaf of a stack has one: the kernel's, where that is in it;
        behind them that of none, int32."""
        names = [self._trace.strings[name] for name in self._trace.categories["name"].tolist()]
        kinds = map(CATEGORY_KINDS.get, names)
        of_category = [KERNEL if kind == pb.FrameKind.KIND_KERNEL else USER for kind in kinds]
        return np.array([*of_category, UNKNOWN], np.int32)


def _shown_name(event: Event) -> str:
    return (event.name or UNNAMED.name) + " (scaled)" * event.is_scaled
