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
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.model import SAMPLES, Array, Event, Process, Table, Thread, Trace, distinct
from traceferry.native.arrays import grown

# Names without a colon, which the viewer takes for more than a name. The leaf of a callstack is the class of what was
# allocated, or the function that allocated where no class is known.
ALLOCATED, OF_FUNCTIONS = Event("allocations", "bytes", 0), Event("native allocations", "bytes", 0)
# Columns of totals, as the kernel has them.
BYTES, FREED_BYTES, COUNT, FREED_COUNT = range(4)


class Allocations:
    """Writes the allocations of a trace, thread after thread."""

    def __init__(self, trace: Trace, packets: Packets, samples: Samples) -> None:
        self._trace = trace
        self._packets = packets
        self._samples = samples
        self._totals: dict[tuple[int, Event], Array] = {}  # of each process, for each stack

    def write(self, process: Process, thread: Thread, allocations: Table) -> None:
        """Writes what allocates as samples. Frees only count: a sample cannot weigh less than nothing."""
        for piece in allocations.pieces():
            has_class = piece["class_name"] >= 0
            if has_class.all():
                self._write(process, thread, ALLOCATED, piece)
                continue
            is_class = has_class | self._are_unknown(piece["stack"])
            for event, rows in ((ALLOCATED, is_class), (OF_FUNCTIONS, ~is_class)):
                if rows.any():
                    self._write(process, thread, event, piece.take(rows))

    def _write(self, process: Process, thread: Thread, event: Event, piece: Table) -> None:
        made = np.flatnonzero(piece["size"] > 0)
        columns = {"ts": piece["ts"][made], "stack": piece["stack"][made], "weight": piece["size"][made]}
        self._samples.stream(event).write(process, thread, Table(SAMPLES, columns), [])
        key = process.pid, event
        totals = grown(self._totals.get(key, np.zeros((0, 4), np.int64)), len(self._trace.stacks))
        tally(piece["stack"], piece["size"], totals)
        self._totals[key] = totals

    def _are_unknown(self, stack: Array) -> Array:
        """Returns which stacks end in the frame of unknown classes, bool."""
        func = self._trace.frames["func"][self._trace.stacks["frame"][stack]]
        unknown = [one for one in distinct(func).tolist() if self._trace.func_name(one) == UNKNOWN_CLASS]
        return np.isin(func, unknown)

    def finish(self) -> None:
        """Writes a dump of each process, at the recording's end."""
        index = 0
        for process in self._trace.processes:
            for event in (ALLOCATED, OF_FUNCTIONS):
                totals = self._totals.pop((process.pid, event), None)
                if totals is not None:
                    index = self._dump(process, event, totals, index)

    def _dump(self, process: Process, event: Event, totals: Array, index: int) -> int:
        """Returns the index of the packet of profiles after the dump's. index: of its first; the last of a dump says
        so."""
        stream = self._samples.stream(event)
        # In a part of a recording more may be freed than was allocated in it; what is left is not negative.
        totals[:, FREED_BYTES] = np.minimum(totals[:, FREED_BYTES], totals[:, BYTES])
        totals[:, FREED_COUNT] = np.minimum(totals[:, FREED_COUNT], totals[:, COUNT])
        stacks = np.flatnonzero(totals[:, COUNT]).astype(np.int32)
        stream.callstacks.intern(stacks)
        head = pb.ProfilePacketProcessHeapSamples(
            pid=process.pid, heap_name=event.name, timestamp=self._trace.end_ts, start_timestamp=self._trace.start_ts,
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
