"""Map: the branches that a processor recorded with samples (perf record -b, -j) become a thread's branches.

Source: linux/perf_event.h, struct perf_branch_entry and PERF_SAMPLE_BRANCH_*. An entry is u64 from, to and flags, which
are laid out as C lays out bit fields: mispred, predicted, in_tx, abort, 16 bits of cycles. The latest branch is first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traceferry.importers.perf import _branches
from traceferry.importers.perf._branches import Places
from traceferry.importers.perf.chains import ragged
from traceferry.importers.perf.frames import frames_of
from traceferry.importers.perf.layout import BRANCH_ANY, BRANCH_CALL_STACK
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Event, Mmap, Recording
from traceferry.importers.perf.spaces import FIRST_PROGRAM, KERNEL_SPACE, Memory, resolve_addresses
from traceferry.model import (
    BRANCHES,
    Array,
    StreamedTable,
    Table,
    TraceBuilder,
    rows_by_key,
)
from traceferry.native.nodes import NodeTable

ENTRY_SIZE = 24
# Samples whose branches are in memory at once.
AT_ONCE = 1 << 13
MAX_INLINED = 1024
# Processors that record branches have the kernel in the upper half.
KERNEL_FROM = np.uint64(1 << 63)


@dataclass(frozen=True)
class Entries:
    """Columns of branches. of: int64, which of the asked samples; nth: int64, 0 is the latest of a sample; begin, end:
    uint64 addresses of the branch and of its target."""

    of: Array
    nth: Array
    begin: Array
    end: Array


def entries_of(recording: Recording, rows: Array) -> Entries:
    """Returns the branches of these samples, the latest of each first."""
    of, nth = ragged(recording.samples.branch_n[rows].astype(np.int64))
    return Entries(of, nth, *_branches.entries(*_places_of(recording, rows)))


def _places_of(recording: Recording, rows: Array) -> tuple[Array, Array, Array, bool]:
    """Returns the data, where in it the branches of these samples begin, how many they are, and the byte order."""
    samples, data = recording.samples, np.frombuffer(recording.stream, np.uint8)
    return data, samples.branch_at[rows], samples.branch_n[rows], recording.order == ">"


def has_call_branches(event: Event) -> bool:
    """Whether the branches of the event's samples are calls that have not returned, and no way that was gone."""
    return bool(event.attr.branch_sample_type & BRANCH_CALL_STACK)


class Branches:
    """The branches of a recording, and what all their addresses stand for."""

    def __init__(
        self, recording: Recording, memory: Memory, natives: Natives, trace: TraceBuilder, offset_ns: int
    ) -> None:  # fmt: skip
        self._recording = recording
        self._offset_ns = offset_ns
        self._program = memory.programs.of_samples
        events = recording.events
        self._is_way = np.array([not has_call_branches(event) for event in events])
        # Between two branches of a kind there may be others.
        self._is_any = np.array([bool(event.attr.branch_sample_type & BRANCH_ANY) for event in events])
        self._places = self._resolved(memory, natives, trace)

    def table(self, rows: Array) -> Table:
        """Returns the branches of a thread's samples, whose rows these are. They are decoded again at each use."""
        mine = self._with_ways(rows)
        if not len(mine):
            return Table(BRANCHES)
        n_rows = _branches.count_known(*_places_of(self._recording, mine))
        return StreamedTable(BRANCHES, lambda: self._pieces(mine), n_rows)

    def _with_ways(self, rows: Array) -> Array:
        samples = self._recording.samples
        found: Array = rows[(samples.branch_n[rows] > 0) & self._is_way[samples.event[rows]]]
        return found

    def _pieces(self, rows: Array) -> Iterator[Table]:
        for first in range(0, len(rows), AT_ONCE):
            columns = self._columns(rows[first : first + AT_ONCE])
            if len(columns["ts"]):
                yield Table(BRANCHES, columns)

    def _columns(self, rows: Array) -> dict[str, Array]:
        """Returns the columns of `branches`, the oldest of each sample first."""
        samples = self._recording.samples
        ts = samples.ts[rows] + self._offset_ns
        is_any = self._is_any[samples.event[rows]].astype(np.uint8)
        space = (FIRST_PROGRAM + self._program[rows]).astype(np.int32)
        of_sample, *columns = self._places.table(*_places_of(self._recording, rows), ts, space, is_any)
        return dict(zip(("ts", "start", "from", "to", "outcome", "cycles"), (ts[of_sample], *columns), strict=True))

    def _resolved(self, memory: Memory, natives: Natives, trace: TraceBuilder) -> Places:
        """Looks all addresses up, each as long as its program was sampled."""
        samples = self._recording.samples
        rows = self._with_ways(np.arange(len(samples)))
        data, at, n, is_big = _places_of(self._recording, rows)
        space = (FIRST_PROGRAM + self._program[rows]).astype(np.int32)
        spaces, found = _branches.addresses(data, at, n, space, int(KERNEL_FROM), KERNEL_SPACE, is_big)
        addresses = {number: np.sort(found[mine]) for number, mine in sorted(rows_by_key(spaces).items())}
        return _resolved(addresses, self._times(rows, addresses), memory, natives, self._recording.maps, trace)

    def _times(self, rows: Array, spaces: Sequence[int] | dict[int, Array]) -> dict[int, tuple[int, int]]:
        """Returns the first and the last time, on the trace's clock, when each space was sampled."""
        ts = self._recording.samples.ts[rows] + self._offset_ns
        times = {KERNEL_SPACE: (int(ts.min()), int(ts.max()))} if len(ts) else {}
        for number, mine in rows_by_key(self._program[rows]).items():
            times[FIRST_PROGRAM + number] = int(ts[mine[0]]), int(ts[mine[-1]])
        return {space: times[space] for space in spaces}


def _resolved(
    addresses: dict[int, Array], times: dict[int, tuple[int, int]], memory: Memory, natives: Natives,
    maps: Sequence[Mmap], trace: TraceBuilder,
) -> Places:  # fmt: skip
    """Looks up what addresses stand for over time: rows of the trace's stacks, of the functions at the address."""
    sizes = [len(of) for of in addresses.values()]
    spaces = np.repeat(np.array(list(addresses), np.int32), sizes)
    joined = np.concatenate([np.zeros(0, np.uint64), *addresses.values()])
    bounds = np.array([times[space] for space in addresses], np.int64).reshape(-1, 2)
    first, last = (np.repeat(bound, sizes) for bound in bounds.T)
    found = resolve_addresses(spaces, joined, first, last, memory)
    first_frame, frames = frames_of(found, maps, natives, trace, MAX_INLINED)
    n_before, stacks = len(trace.stacks), NodeTable()
    stacks.append(trace.stacks["prefix"], trace.stacks["frame"])
    # A list has its root last.
    backwards = np.repeat(first_frame[:-1] + first_frame[1:] - 1, np.diff(first_frame)) - np.arange(len(frames))
    stack = stacks.intern_lists(frames[backwards], np.ascontiguousarray(first_frame[1:]))
    trace.stacks.extend(prefix=stacks.parent[n_before:].copy(), frame=stacks.key[n_before:].copy())
    frame = np.append(trace.stacks["frame"], np.int32(-1))[stack]
    lib, address = (
        np.append(trace.frames[name], trace.frames[name].dtype.type(-1))[frame] for name in ("lib", "address")
    )
    first_version = np.searchsorted(found.key, np.arange(len(joined) + 1))
    return Places(spaces, joined, first_version, found.start, stack, lib, address, int(KERNEL_FROM), KERNEL_SPACE)
