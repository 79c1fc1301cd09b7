"""Map: heap shots: live objects, their references and roots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from traceferry.heap.objects import Found
from traceferry.importers.mono.allocations import ClassSites
from traceferry.importers.mono.decode import Log, Records
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import ROOT_KINDS, ROOT_SOURCES, Event
from traceferry.model import (
    HEAP_OBJECTS,
    HEAP_ROOTS,
    Array,
    HeapGraph,
    Table,
    TraceBuilder,
    containing_interval,
    index_of,
    rows_by_key,
)

ROOT_FLAGS_FROM = 0x100
STATIC, THREAD_STATIC = 3, 4
IN_SHOTS = (Event.HEAP_OBJECT, Event.HEAP_ROOT)
END_OF_TIME = (1 << 63) - 1


class Shot(NamedTuple):
    """The position of a heap shot. buffers: the rows of the buffers it is in; first_at, last_at: the offsets between
    which its events are; start_ts, end_ts: on the event clock."""

    tid: int
    start_ts: int
    end_ts: int
    buffers: Array
    first_at: int
    last_at: int


def find_shots(log: Log, end_ts: int) -> list[Shot]:
    """Returns the heap shots, from each start to its end on the same thread, or where that is missing, to the thread's
    next start or its end."""
    records = log.records
    rows = records.of(Event.HEAP_START, Event.HEAP_END)
    shots: list[Shot] = []
    for tid, nth in rows_by_key(log.tids[records.buffer[rows]]).items():
        mine, buffers = rows[nth], np.flatnonzero(log.tids == tid)
        ts, at = [*records.ts[mine].tolist(), end_ts], [*records.at[mine].tolist(), len(log.source.data)]
        first = np.searchsorted(buffers, records.buffer[mine])
        last = np.append(first[1:], len(buffers) - 1)
        for i in np.flatnonzero(records.kind[mine] == Event.HEAP_START).tolist():
            until = max(ts[i], min(ts[i + 1], end_ts))
            shots.append(Shot(tid, ts[i], until, buffers[first[i] : last[i] + 1], at[i], at[i + 1]))
    return sorted(shots, key=lambda shot: (shot.start_ts, shot.tid))


class Addresses:
    """The distinct addresses of objects, numbered in the order in which they first come. first: where they do; of_row:
    the number of each row's address."""

    def __init__(self, addresses: Array) -> None:
        self._sorted, first, inverse = np.unique(addresses, return_index=True, return_inverse=True)
        self.first = np.sort(first)
        # The number of none is the last.
        self._number = np.append(np.searchsorted(self.first, first), -1).astype(np.int32)
        self.of_row = self._number[inverse]

    def find(self, addresses: Array) -> Array:
        """Returns their numbers, int32; -1 is none."""
        return self._number[index_of(self._sorted, addresses)]


class Contents(NamedTuple):
    """The columns of the objects of a shot, in the order of the file: address, type (a class or vtable) and size:
    uint64; ts: int64; references: uint64, those of one after those of another; n_references: how many each has. roots:
    uint64, the values of its HEAP_ROOTs; roots_ts: int64, when these were recorded."""

    address: Array
    type: Array
    size: Array
    ts: Array
    references: Array
    n_references: Array
    roots: Array
    roots_ts: Array


class Shots:
    """Reads heap shots into graphs."""

    def __init__(self, trace: TraceBuilder, log: Log, frames: Frames) -> None:
        self._log, self._frames = log, frames
        self._regions = Regions(trace, log, frames) if log.layout.events >= 15 else None
        self._kept: dict[int, list[Records]] = {}

    def objects(self, shot: Shot) -> tuple[Array, Array]:
        """Returns (distinct uint64 addresses, int32 classes as strings) in the order in which the shot lists them."""
        listed = self._contents(shot)
        first = Addresses(listed.address).first
        return listed.address[first], self._frames.type_names(listed.type[first], listed.ts[first])

    def graph(self, shot: Shot, found: Found, pairs: ClassSites, trace: TraceBuilder) -> HeapGraph:
        """found: which object each is; pairs: of their sites."""
        listed = self._contents(shot)
        known = Addresses(listed.address)
        first, n = known.first, len(known.first)
        site = np.full(n, -1, np.int32)
        has_site = np.append(pairs.parent, -1)[found.site] >= 0
        stacks = pairs.in_trace(trace)
        stacks.intern(found.site[has_site])
        site[has_site] = stacks.of(found.site[has_site])
        size = np.bincount(known.of_row, listed.size.astype(np.float64), n).astype(np.int64)
        class_name = self._frames.of(trace).type_names(listed.type[first], listed.ts[first])
        columns = {"object": found.number, "address": listed.address[first], "class_name": class_name, "size": size}
        owner, target = np.repeat(known.of_row, listed.n_references), known.find(listed.references)
        kept = target >= 0
        dangling, where = int(np.count_nonzero(~kept)), f"{self._log.source.path} {shot.start_ts}"
        trace.report.note("reference_dangles", dangling, where=where)
        owner, target = owner[kept], target[kept]
        offsets = np.append(0, np.cumsum(np.bincount(owner, minlength=n)))
        references, roots = target[np.argsort(owner, kind="stable")], self._roots(trace, listed, known)
        return HeapGraph(Table(HEAP_OBJECTS, columns | {"site": site}), offsets, references, roots)

    def _contents(self, shot: Shot) -> Contents:
        parts: list[tuple[Array, ...]] = []
        for records in self._pieces(shot):
            first, last = np.searchsorted(records.at, (shot.first_at, shot.last_at)).tolist()
            is_object = records.kind[first:last] == Event.HEAP_OBJECT
            rows, root_rows = first + np.flatnonzero(is_object), first + np.flatnonzero(~is_object)
            address, types, size = (records[name][rows] for name in ("object", "type", "size"))
            roots, _ = records.lists(root_rows)
            parts.append((address, types, size, records.ts[rows], *records.lists(rows), roots, records.ts[root_rows]))
        return Contents._make(map(np.concatenate, zip(*parts, strict=True)))

    def _pieces(self, shot: Shot) -> Iterable[Records]:
        """Returns what the buffers of a shot hold. One buffer is kept as a whole: it may hold several shots."""
        if len(shot.buffers) > 1:
            return self._log.pieces(shot.buffers, *IN_SHOTS)
        buffer = int(shot.buffers[0])
        kept = self._kept
        if buffer not in kept:
            self._kept = kept = {buffer: list(self._log.pieces(shot.buffers, *IN_SHOTS))}
        return kept[buffer]

    def _roots(self, trace: TraceBuilder, listed: Contents, known: Addresses) -> Table:
        if self._regions is not None:
            address, held = listed.roots.reshape(-1, 2).T
            kind, name = self._regions.at(address, int(listed.roots_ts.max(initial=0)))
        else:
            held, number, _ = listed.roots.reshape(-1, 3).T
            kind = np.array([self._kind(trace, value) for value in number.tolist()], np.int32)
            name = np.full(len(kind), -1, np.int32)
        target = known.find(held)
        kept = target >= 0
        return Table(HEAP_ROOTS, {"object": target[kept], "kind": kind[kept], "name": name[kept]})

    def _kind(self, trace: TraceBuilder, value: int) -> int:
        """Returns the kind of a root as a string of the trace. Versions 3 to 13 number the kinds, 14 has a bit for
        each, of which the lowest counts."""
        number = value % ROOT_FLAGS_FROM
        if self._log.layout.events >= 14:
            number = (number & -number).bit_length() - 1
        return trace.strings.intern(ROOT_KINDS[number] if 0 <= number < len(ROOT_KINDS) else "other")


class Regions:
    """Registered regions of roots, by address and time. A region may be registered again, or for something else."""

    def __init__(self, trace: TraceBuilder, log: Log, frames: Frames) -> None:
        records, intern = log.records, trace.strings.intern
        rows = records.of(Event.ROOT_REGISTER, Event.ROOT_UNREGISTER)
        rows = rows[np.lexsort((records.ts[rows], records["start"][rows]))]
        start, until = records["start"][rows], np.full(len(rows), END_OF_TIME)
        until[:-1] = np.where(start[1:] == start[:-1], records.ts[rows[1:]], END_OF_TIME)
        registers = records.kind[rows] == Event.ROOT_REGISTER
        rows, self._until = rows[registers], until[registers]
        self._start, self._size, self._ts = records["start"][rows], records["size"][rows], records.ts[rows]
        source, key = records["source"][rows], records["key"][rows]
        words = [ROOT_SOURCES[nth] if nth < len(ROOT_SOURCES) else "other" for nth in source.tolist()]
        # The last ones are of no region.
        self._kind = np.array([*map(intern, words), intern("other")], np.int32)
        self._name = np.full(len(rows) + 1, -1, np.int32)
        is_class = np.isin(source, (STATIC, THREAD_STATIC)) & (key > 0)
        of_class, others = np.flatnonzero(is_class), np.flatnonzero(~is_class)
        self._name[of_class] = frames.type_names(key[of_class], self._ts[of_class])
        self._name[others] = [intern(name) if name else -1 for name in log.texts(rows[others])]

    def at(self, addresses: Array, ts: int) -> tuple[Array, Array]:
        """Returns (kind, name) as strings of the trace: of the regions that are registered then. Collectors also scan
        stacks that were given up a moment ago."""
        nth = np.full(len(addresses), -1)
        for is_there in ((self._ts <= ts) & (ts < self._until), self._ts <= ts):
            regions, unknown = np.flatnonzero(is_there), np.flatnonzero(nth < 0)
            found = containing_interval(self._start[regions], self._size[regions], addresses[unknown])
            nth[unknown] = np.append(regions, -1)[found]
        return self._kind[nth], self._name[nth]
