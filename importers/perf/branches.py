"""Map: the branches that a processor recorded with samples (perf record -b, -j) become a thread's branches.

Source: linux/perf_event.h, struct perf_branch_entry and PERF_SAMPLE_BRANCH_*. An entry is u64 from, to and flags, which
are laid out as C lays out bit fields: mispred, predicted, in_tx, abort, 16 bits of cycles. The latest branch is first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traceferry.importers.perf import _branches
from traceferry.importers.perf.chains import ragged
from traceferry.importers.perf.frames import frames_of
from traceferry.importers.perf.layout import BRANCH_ANY, BRANCH_CALL_STACK
from traceferry.importers.perf.natives import Natives
from traceferry.importers.perf.recording import Event, Mmap, Recording
from traceferry.importers.perf.spaces import FIRST_PROGRAM, KERNEL_SPACE, Memory, resolve_addresses
from traceferry.model import (
    BRANCH_MISPREDICTED,
    BRANCH_PREDICTED,
    BRANCHES,
    Array,
    StreamedTable,
    Table,
    TraceBuilder,
    index_of,
    rows_by_key,
)
from traceferry.native.nodes import NodeTable

ENTRY_SIZE = 24
# Samples whose branches are in memory at once.
AT_ONCE = 1 << 13
MAX_INLINED = 1024
# Processors that record branches have the kernel in the upper half.
KERNEL_FROM = np.uint64(1 << 63)
# What goes on for longer between two branches is no run of code: branches are missing between them.
LONGEST_RUN = 1 << 20


@dataclass(frozen=True)
class Entries:
    """Columns of branches. of: int64, which of the asked samples; nth: int64, 0 is the latest of a sample; begin, end:
    uint64 addresses of the branch and of its target; mispredicted, predicted: bool, neither where it is not recorded;
    cycles: int64 since the branch before, 0 is unknown."""

    of: Array
    nth: Array
    begin: Array
    end: Array
    mispredicted: Array
    predicted: Array
    cycles: Array


def entries_of(recording: Recording, rows: Array) -> Entries:
    """Returns the branches of these samples, the latest of each first."""
    of, nth = ragged(recording.samples.branch_n[rows].astype(np.int64))
    begin, end, flags = _branches.entries(*_places_of(recording, rows))
    return Entries(of, nth, begin, end, *_flags(flags, recording.order == ">"))


def _places_of(recording: Recording, rows: Array) -> tuple[Array, Array, Array, bool]:
    """Returns the data, where in it the branches of these samples begin, how many they are, and the byte order."""
    samples, data = recording.samples, np.frombuffer(recording.stream, np.uint8)
    return data, samples.branch_at[rows], samples.branch_n[rows], recording.order == ">"


def _flags(flags: Array, big: bool) -> tuple[Array, Array, Array]:
    """Returns (mispredicted, predicted, cycles). Compilers of big-endian machines begin with the highest bit."""
    mispredicted, predicted, cycles = (63, 62, 44) if big else (0, 1, 4)
    bits = [(flags >> np.uint64(bit)) & np.uint64(1) != 0 for bit in (mispredicted, predicted)]
    return bits[0], bits[1], (flags >> np.uint64(cycles) & np.uint64(0xFFFF)).astype(np.int64)


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
        entries = entries_of(self._recording, rows)
        ts = samples.ts[rows][entries.of] + self._offset_ns
        space = (FIRST_PROGRAM + self._program[rows])[entries.of]
        begin, end = (self._places.at(space, side, ts) for side in (entries.begin, entries.end))
        start = self._starts(entries, end, self._is_any[samples.event[rows]][entries.of])
        outcome = np.where(entries.mispredicted, BRANCH_MISPREDICTED, BRANCH_PREDICTED * entries.predicted)
        columns = {"ts": ts, "start": start, "from": begin, "to": end, "outcome": outcome, "cycles": entries.cycles}
        order = np.lexsort((-entries.nth, entries.of))
        order = order[((begin >= 0) | (end >= 0))[order]]
        columns = {name: column[order] for name, column in columns.items()}
        columns["start"] = self._places.within(columns["start"], columns["from"])
        return columns

    def _starts(self, entries: Entries, end: Array, is_any: Array) -> Array:
        """int32: to where the branch before went, -1 where it is not recorded, or did not go to the same code."""
        if not len(end):
            return end
        before = np.append(np.arange(1, len(end)), len(end) - 1)
        follows = (np.append(entries.of[1:], -1) == entries.of) & is_any
        target = entries.end[before]
        follows &= (target <= entries.begin) & (entries.begin - target < np.uint64(LONGEST_RUN))
        starts: Array = np.where(follows, end[before], -1).astype(np.int32)
        return starts

    def _resolved(self, memory: Memory, natives: Natives, trace: TraceBuilder) -> _Places:
        """Looks all addresses up, each as long as its program was sampled."""
        samples = self._recording.samples
        rows = self._with_ways(np.arange(len(samples)))
        data, at, n, is_big = _places_of(self._recording, rows)
        space = (FIRST_PROGRAM + self._program[rows]).astype(np.int32)
        spaces, found = _branches.addresses(data, at, n, space, int(KERNEL_FROM), KERNEL_SPACE, is_big)
        addresses = {number: np.sort(found[mine]) for number, mine in sorted(rows_by_key(spaces).items())}
        return _Places(addresses, self._times(rows, addresses), memory, natives, self._recording.maps, trace)

    def _times(self, rows: Array, spaces: Sequence[int] | dict[int, Array]) -> dict[int, tuple[int, int]]:
        """Returns the first and the last time, on the trace's clock, when each space was sampled."""
        ts = self._recording.samples.ts[rows] + self._offset_ns
        times = {KERNEL_SPACE: (int(ts.min()), int(ts.max()))} if len(ts) else {}
        for number, mine in rows_by_key(self._program[rows]).items():
            times[FIRST_PROGRAM + number] = int(ts[mine[0]]), int(ts[mine[-1]])
        return {space: times[space] for space in spaces}


def spaces_of(space: Array, addresses: Array) -> Array:
    """Returns the address space of each address. space: of the program that ran; an address of the kernel is in its."""
    return np.where(addresses >= KERNEL_FROM, KERNEL_SPACE, space)


class _Places:
    """Looks up what addresses stand for over time: rows of the trace's stacks, of the functions at the address."""

    def __init__(
        self, addresses: dict[int, Array], times: dict[int, tuple[int, int]], memory: Memory, natives: Natives,
        maps: Sequence[Mmap], trace: TraceBuilder,
    ) -> None:  # fmt: skip
        self._addresses = addresses
        self._first_key: dict[int, int] = {}
        n = 0
        for space, of in addresses.items():
            self._first_key[space] = n
            n += len(of)
        sizes = [len(of) for of in addresses.values()]
        spaces = np.repeat(np.array(list(addresses), np.int32), sizes)
        joined = np.concatenate([np.zeros(0, np.uint64), *addresses.values()])
        bounds = np.array([times[space] for space in addresses], np.int64).reshape(-1, 2)
        first, last = (np.repeat(bound, sizes) for bound in bounds.T)
        found = resolve_addresses(spaces, joined, first, last, memory)
        first_frame, frames = frames_of(found, maps, natives, trace, MAX_INLINED)
        self._first_version = np.searchsorted(found.key, np.arange(n + 1))
        self._starts, rank = np.unique(found.start, return_inverse=True)
        # Versions by key and time, as one number each.
        self._order = found.key * (len(self._starts) + 1) + rank.reshape(-1) + 1
        n_before, stacks = len(trace.stacks), NodeTable()
        stacks.append(trace.stacks["prefix"], trace.stacks["frame"])
        # A list has its root last.
        backwards = np.repeat(first_frame[:-1] + first_frame[1:] - 1, np.diff(first_frame)) - np.arange(len(frames))
        self._stack = stacks.intern_lists(frames[backwards], np.ascontiguousarray(first_frame[1:]))
        trace.stacks.extend(prefix=stacks.parent[n_before:].copy(), frame=stacks.key[n_before:].copy())
        self._trace = trace

    def at(self, space: Array, addresses: Array, ts: Array) -> Array:
        """int32: the stack of each address at a time (ns), -1 of the address 0, which is unknown."""
        key = np.full(len(addresses), -1, np.int64)
        for number, mine in rows_by_key(spaces_of(space, addresses)).items():
            key[mine] = self._first_key[number] + index_of(self._addresses[number], addresses[mine])
        version = self._first_version[key]
        changes = np.flatnonzero(self._first_version[key + 1] - version > 1)
        if len(changes):
            wanted = key[changes] * (len(self._starts) + 1) + np.searchsorted(self._starts, ts[changes], "right")
            last = np.searchsorted(self._order, wanted, "right") - 1
            version[changes] = np.maximum(last, version[changes])
        stacks: Array = np.where(addresses == 0, np.int32(-1), self._stack[version])
        return stacks

    def within(self, start: Array, end: Array) -> Array:
        """Returns where runs of code start, -1 for those that do not end in the library in which they start."""
        frame, lib, address = self._trace.stacks["frame"], self._trace.frames["lib"], self._trace.frames["address"]
        first, last = frame[np.maximum(start, 0)], frame[np.maximum(end, 0)]
        fits = (start >= 0) & (end >= 0) & (lib[first] == lib[last]) & (lib[first] >= 0)
        fits &= (address[first] >= 0) & (address[first] <= address[last])
        return np.where(fits, start, np.int32(-1))
