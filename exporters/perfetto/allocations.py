"""Allocations: each as a stack sample that weighs its bytes, and all of a process as a heap profile.

The samples show when and on which thread; only of the profile trace_processor knows what was freed, so that it can tell
what is left. Both stand on one sequence and share their callstacks.
"""

from __future__ import annotations

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._packets import OutputBuffer
from traceferry.exporters.perfetto.packets import Packets
from traceferry.exporters.perfetto.samples import Samples
from traceferry.heap._allocations import tally
from traceferry.model import SAMPLES, Array, Event, Process, Table, Thread, Trace
from traceferry.native.arrays import grown

ALLOCATED = Event("allocations", "bytes", 0)
HEAP = "allocations"  # without a colon, which the viewer takes for more than a name
# Columns of totals, as the kernel has them.
BYTES, FREED_BYTES, COUNT, FREED_COUNT = range(4)


class Allocations:
    """Writes the allocations of a trace, thread after thread."""

    def __init__(self, trace: Trace, packets: Packets, samples: Samples) -> None:
        self._trace = trace
        self._packets = packets
        self._samples = samples
        self._totals: dict[int, Array] = {}  # of each process, for each stack

    def write(self, process: Process, thread: Thread, allocations: Table) -> None:
        """Writes what allocates as samples. Frees only count: a sample cannot weigh less than nothing."""
        for piece in allocations.pieces():
            made = np.flatnonzero(piece["size"] > 0)
            columns = {"ts": piece["ts"][made], "stack": piece["stack"][made], "weight": piece["size"][made]}
            self._samples.stream(ALLOCATED).write(process, thread, Table(SAMPLES, columns), [])
            totals = grown(self._totals.get(process.pid, np.zeros((0, 4), np.int64)), len(self._trace.stacks))
            tally(piece["stack"], piece["size"], totals)
            self._totals[process.pid] = totals

    def finish(self) -> None:
        """Writes a dump of each process, at the recording's end."""
        index = 0
        for process in self._trace.processes:
            totals = self._totals.pop(process.pid, None)
            if totals is not None:
                index = self._dump(process, totals, index)

    def _dump(self, process: Process, totals: Array, index: int) -> int:
        """Returns the index of the packet of profiles after the dump's. index: of its first; the last of a dump says
        so."""
        stream = self._samples.stream(ALLOCATED)
        # In a part of a recording more may be freed than was allocated in it; what is left is not negative.
        totals[:, FREED_BYTES] = np.minimum(totals[:, FREED_BYTES], totals[:, BYTES])
        totals[:, FREED_COUNT] = np.minimum(totals[:, FREED_COUNT], totals[:, COUNT])
        stacks = np.flatnonzero(totals[:, COUNT]).astype(np.int32)
        stream.callstacks.intern(stacks)
        head = pb.ProfilePacketProcessHeapSamples(
            pid=process.pid, heap_name=HEAP, timestamp=self._trace.end_ts, start_timestamp=self._trace.start_ts,
            sampling_interval_bytes=1, orig_sampling_interval_bytes=1,
        )  # fmt: skip
        pieces: list[bytes] = []
        of_stacks = totals[stacks]
        pb.ProfilePacketHeapSample.write_rows(
            OutputBuffer(lambda piece: pieces.append(bytes(piece))), pb.ProfilePacketProcessHeapSamples, "samples",
            callstack_id=stream.callstacks.iids[stacks], self_allocated=of_stacks[:, BYTES],
            self_freed=of_stacks[:, FREED_BYTES], alloc_count=of_stacks[:, COUNT], free_count=of_stacks[:, FREED_COUNT],
        )  # fmt: skip
        for nth, piece in enumerate(pieces, start=1):
            profile = pb.ProfilePacket(process_dumps=head + piece, continued=int(nth < len(pieces)), index=index)
            self._packets.write_at(self._trace.end_ts, stream.sequence, profile_packet=profile)
            index += 1
        return index
