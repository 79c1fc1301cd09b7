"""Sampled stacks, as stack samples.

A viewer takes each packet sequence with stack samples for a recording of its own. So all threads' samples that count
the same stand on one sequence, thread after thread: their times are absolute, and TraceProcessor sorts them.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np

from traceferry.exporters.perfetto import records_kernel
from traceferry.exporters.perfetto.packets import (
    MAX_CPUS,
    RELATIVE,
    Defaults,
    Interned,
    Packet,
    Packets,
)
from traceferry.exporters.perfetto.proto import integer, message, text, varint
from traceferry.exporters.perfetto.stacks import CATEGORY_KINDS, Callstacks, Kind, Runs, write_symbols
from traceferry.model import Array, Process, Sampling, Table, Thread, Trace

# perfetto.protos.StackSample.Unit
UNITS = {
    "ns": 1, "cycles": 2, "instructions": 3, "bytes": 4, "page-faults": 5, "cache-misses": 6, "cache-references": 7,
    "branch-misses": 8, "count": 9,
}  # fmt: skip
UNKNOWN, USER, KERNEL = 0, 1, 2  # perfetto.protos.StackSample.Mode
N_MODES = 3
# The viewer makes a title of the event: "Cpu Clock", "Code Size". What has none it does not show.
UNNAMED = Sampling("samples", "count", 0)
BYTES = "bytes"  # what is weighed in them ran on no processor
CPU_TIME = 1  # the interned id of a counter
NO_THREAD = -1


class Samples:
    """The streams of stack samples of a trace, and the callstacks that its events refer to."""

    def __init__(self, trace: Trace, packets: Packets) -> None:
        self._trace = trace
        self._packets = packets
        self._runs = Runs(trace)
        self._streams: dict[Sampling, Stream] = {}
        # How many views of each kind are still to come.
        self._n_views = Counter(self._sampling(thread) for _, thread in trace.threads if thread.sample_unit)

    def write(self, process: Process, thread: Thread, samples: Table) -> None:
        """To be called once for each thread."""
        sampling = self._sampling(thread)
        if len(samples):
            self.stream(sampling).write(process, thread, samples)
        if thread.sample_unit:
            self._n_views[sampling] -= 1
            if not self._n_views[sampling]:
                # Nothing else refers to what it has interned, which has an entry for each of the trace's stacks.
                self._streams.pop(sampling, None)

    def callstacks(self, stacks: Array) -> tuple[int, list[int]]:
        """Interns the stacks; returns the sequence on which they are known, and each one's number, 0 for none."""
        stream = self.stream(self._trace.sampling or UNNAMED)
        stream.callstacks.intern(stacks)
        iids = np.where(stacks >= 0, stream.callstacks.iids[stacks], 0)
        return stream.sequence, iids.tolist()

    def finish(self) -> None:
        write_symbols(self._trace, self._packets, self._runs, self._trace.end_ts + 1)

    def _sampling(self, thread: Thread) -> Sampling:
        """A thread whose samples weigh something else is a view; its name says of what: "code size", "code size of
        jit-1.dump". The viewer sorts the tracks by this word: those of views follow those of what ran."""
        unit = thread.sample_unit
        if not unit:
            return self._trace.sampling or UNNAMED
        words = thread.name.partition(" of ")[0].lower().split()
        return Sampling("_".join(["total", *words]), unit, 0)

    def stream(self, sampling: Sampling) -> Stream:
        if sampling not in self._streams:
            self._streams[sampling] = Stream(self._trace, self._packets, self._runs, sampling)
        return self._streams[sampling]


class Stream:
    """Samples of one kind, on a sequence of their own."""

    def __init__(self, trace: Trace, packets: Packets, runs: Runs, sampling: Sampling) -> None:
        self.sequence = packets.sequence()
        self.callstacks = Callstacks(trace, packets, runs, self.sequence)
        self._trace = trace
        self._packets = packets
        self._tasks: dict[tuple[int, int], int] = {}  # interned ids of processes and threads
        self._execution_iids = np.zeros((MAX_CPUS + 1) * N_MODES, np.int32)
        self._n_executions = 0
        self._has_processors = sampling.unit != BYTES
        event = sampling.event or UNNAMED.event
        unit = integer(3, UNITS[sampling.unit]) if sampling.unit in UNITS else text(4, sampling.unit)
        # The viewer shows the name of a counter without its unit.
        counter = message(2, text(2, f"{event.replace('_', ' ')}, {sampling.unit}"), unit)
        cpu_time = (integer(1, CPU_TIME), text(2, "CPU time, ns"), integer(3, UNITS["ns"]))
        packets.begin(
            self.sequence,
            RELATIVE,
            message(Defaults.STACK_SAMPLE_DEFAULTS, text(1, event), counter),
            [message(Interned.STACK_SAMPLE_COUNTER_DESCRIPTORS, *cpu_time)],
        )

    def write(self, process: Process, thread: Thread, samples: Table) -> None:
        self.callstacks.intern(samples["stack"])
        entries: list[bytes] = []
        task = self._task(process, thread, entries)
        executions = self._executions(samples, entries)
        self._packets.intern(self.sequence, entries)

        lead = bytearray(integer(Packet.TRUSTED_PACKET_SEQUENCE_ID, self.sequence))
        lead += varint(Packet.STACK_SAMPLE << 3 | 2) + b"\0"
        fields_at = len(lead)
        lead += integer(2, task)  # task_context_iid
        kernel = partial(
            records_kernel.samples, samples["ts"], samples["stack"], samples["weight"], samples["cpu_ns"], executions,
            self.callstacks.iids, self._packets.start_ts, lead, fields_at,
        )  # fmt: skip
        self._packets.write_filled(kernel, len(samples))

    def _task(self, process: Process, thread: Thread, entries: list[bytes]) -> int:
        """The interned id of a thread; of a view, that of its process."""
        key = process.pid, thread.tid if not thread.sample_unit else NO_THREAD
        if key not in self._tasks:
            self._tasks[key] = len(self._tasks) + 1
            task = [integer(1, self._tasks[key]), integer(2, process.pid)]
            if key[1] != NO_THREAD:
                task.append(integer(3, thread.tid))
            entries.append(message(Interned.STACK_SAMPLE_TASK_CONTEXTS, *task))
        return self._tasks[key]

    def _executions(self, samples: Table, entries: list[bytes]) -> Array:
        """The interned id of each sample's processor and mode, 0 where neither is known."""
        if not self._has_processors:
            return np.zeros(len(samples), np.int32)
        cpu = samples["cpu"]
        cpu = np.where((cpu >= 0) & (cpu < MAX_CPUS), cpu, -1)
        which = (cpu + 1) * N_MODES + self._modes(samples["stack"])
        new = np.flatnonzero(np.bincount(which, minlength=len(self._execution_iids)) * (self._execution_iids == 0))
        for number in new.tolist():
            processor, mode = divmod(number, N_MODES)
            if number == 0:
                continue
            self._n_executions += 1
            self._execution_iids[number] = self._n_executions
            fields = [integer(1, self._n_executions)]
            fields += [integer(2, processor - 1)] if processor else []
            fields += [integer(3, mode)] if mode else []
            entries.append(message(Interned.STACK_SAMPLE_EXECUTION_CONTEXTS, *fields))
        executions: Array = self._execution_iids[which]
        return executions

    def _modes(self, stacks: Array) -> Array:
        """Of the kernel, where a stack's leaf is."""
        trace = self._trace
        names = [trace.strings[name] for name in trace.categories["name"].tolist()]
        of_category = [KERNEL if CATEGORY_KINDS.get(name) == Kind.KERNEL else USER for name in names]
        modes = np.full(len(stacks), UNKNOWN, np.int32)
        leaves = trace.stacks["frame"][stacks[stacks >= 0]]
        modes[stacks >= 0] = np.array([*of_category, UNKNOWN], np.int32)[trace.frames["category"][leaves]]
        return modes
