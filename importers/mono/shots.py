"""Map: heap shots: live objects, their references and roots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traceferry.heap.objects import Found
from traceferry.importers.mono.allocations import ClassSites
from traceferry.importers.mono.decode import Log, Records
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import ROOT_KINDS, ROOT_SOURCES, Event
from traceferry.model import HEAP_OBJECTS, HEAP_ROOTS, Array, HeapGraph, Table, Trace, positions, rows_by_key

ROOT_BITS = (1, 2, 4, 8, 16)
ROOT_FLAGS_FROM = 0x100
STATIC, THREAD_STATIC = 3, 4
END_OF_TIME = (1 << 63) - 1


@dataclass(frozen=True)
class Shot:
    """Where a heap shot is. buffers: the rows of the buffers it is in; first_at, last_at: the offsets between which its
    events are; start_ts, end_ts: on the event clock."""

    tid: int
    start_ts: int
    end_ts: int
    buffers: Array
    first_at: int
    last_at: int


def find_shots(log: Log, end_ts: int) -> list[Shot]:
    """From each start to its end on the same thread, or where that is missing, to the thread's next start or its
    end."""
    records = log.records
    rows = records.of(Event.HEAP_START, Event.HEAP_END)
    shots: list[Shot] = []
    for tid, nth in rows_by_key(log.tids[records.buffer[rows]]).items():
        mine, buffers = rows[nth], np.flatnonzero(log.tids == tid)
        ts, at = (
            np.append(records.ts[mine], end_ts).tolist(),
            np.append(records.at[mine], len(log.source.data)).tolist(),
        )
        first = np.searchsorted(buffers, records.buffer[mine])
        last = np.append(first[1:], len(buffers) - 1)
        for i in np.flatnonzero(records.kind[mine] == Event.HEAP_START).tolist():
            until = max(ts[i], min(ts[i + 1], end_ts))
            shots.append(Shot(tid, ts[i], until, buffers[first[i] : last[i] + 1], at[i], at[i + 1]))
    return sorted(shots, key=lambda shot: (shot.start_ts, shot.tid))


class HeapRows(NamedTuple):
    """The contents of heap shots, in the order of the file. Of each object: at, its offset; ts: int64; address, type: a
    class or vtable, size: uint64; end: where its references end, which begin with those of the first object.
    references: uint64 addresses. Of each root: root_at, root_ts; holder: uint64, an address or a kind; held: the
    object's address."""

    at: Array
    ts: Array
    address: Array
    type: Array
    size: Array
    end: Array
    references: Array
    root_at: Array
    root_ts: Array
    holder: Array
    held: Array

    def between(self, first_at: int, last_at: int) -> HeapRows:
        """What is between these offsets."""
        rows, roots = (slice(*np.searchsorted(at, (first_at, last_at)).tolist()) for at in (self.at, self.root_at))
        first, last = (int(self.end[row - 1]) if row else 0 for row in (rows.start, rows.stop))
        at, ts, address, types, size, end = (column[rows] for column in self[:6])
        of_roots = [column[roots] for column in self[7:]]
        return HeapRows._make((at, ts, address, types, size, end - first, self.references[first:last], *of_roots))


class Addresses:
    """The distinct addresses of objects, numbered in the order in which they first come. rows: where they do; of_row:
    the number of each row's address."""

    def __init__(self, addresses: Array) -> None:
        self._sorted, first, inverse = np.unique(addresses, return_index=True, return_inverse=True)
        self.rows = np.sort(first)
        # The number of none is the last.
        self._number = np.append(np.searchsorted(self.rows, first), -1).astype(np.int32)
        self.of_row = self._number[inverse]

    def find(self, addresses: Array) -> Array:
        """Their numbers, int32; -1 is none."""
        return self._number[positions(self._sorted, addresses)]


class Shots:
    """Reads heap shots into graphs."""

    def __init__(self, trace: Trace, log: Log, frames: Frames) -> None:
        self._trace = trace
        self._log = log
        self._frames = frames
        self._regions = Regions(trace, log, frames) if log.layout.events >= 15 else None
        # A buffer with several shots, and its rows.
        self._kept: tuple[int, HeapRows] | None = None

    def objects(self, shot: Shot) -> tuple[Array, Array]:
        """(distinct uint64 addresses, int32 classes as strings) in the order in which the shot lists them."""
        rows = self._rows(shot)
        first = Addresses(rows.address).rows
        return rows.address[first], self._frames.class_names(self._frames.types.at(rows.type[first], rows.ts[first]))

    def graph(self, shot: Shot, found: Found, pairs: ClassSites) -> HeapGraph:
        """found: which object each is; pairs: of their sites."""
        rows = self._rows(shot)
        known = Addresses(rows.address)
        first, n = known.rows, len(known.rows)
        classes = self._frames.types.at(rows.type[first], rows.ts[first])
        stacks = np.full(n, -1, np.int32)
        has_stack = np.append(pairs.parent, -1)[found.site] >= 0
        pairs.intern(found.site[has_stack])
        stacks[has_stack] = pairs.stacks(found.site[has_stack])
        size = np.bincount(known.of_row, rows.size.astype(np.float64), n).astype(np.int64)
        class_name = self._frames.class_names(classes)
        columns = {"object": found.number, "address": rows.address[first], "class_name": class_name, "size": size}
        owner, target = np.repeat(known.of_row, np.diff(rows.end, prepend=0)), known.find(rows.references)
        kept = target >= 0
        dangling, where = int(np.count_nonzero(~kept)), f"{self._log.source.path} {shot.start_ts}"
        self._trace.report.note("reference_dangles", dangling, where=where)
        owner, target = owner[kept], target[kept]
        offsets = np.append(0, np.cumsum(np.bincount(owner, minlength=n)))
        references = target[np.argsort(owner, kind="stable")]
        return HeapGraph(Table(HEAP_OBJECTS, columns | {"site": stacks}), offsets, references, self._roots(rows, known))

    def _rows(self, shot: Shot) -> HeapRows:
        """Of the buffers, what is in the shot."""
        buffer = int(shot.buffers[0]) if len(shot.buffers) == 1 else -1
        known = self._kept[1] if self._kept is not None and self._kept[0] == buffer else self._decoded(shot.buffers)
        rows = known.between(shot.first_at, shot.last_at)
        if buffer >= 0 and len(rows.at) < len(known.at):
            self._kept = buffer, known
        return rows

    def _decoded(self, buffers: Array) -> HeapRows:
        """All of some buffers."""
        pieces = self._log.pieces(buffers, Event.HEAP_OBJECT, Event.HEAP_ROOT)
        rows = HeapRows._make(np.concatenate(parts) for parts in zip(*map(self._read, pieces), strict=True))
        return rows._replace(end=np.cumsum(rows.end))

    def _read(self, records: Records) -> tuple[Array, ...]:
        """As HeapRows has them, but how many references each object has in place of their end."""
        objects, roots = records.of(Event.HEAP_OBJECT), records.of(Event.HEAP_ROOT)
        references, n_references = records.lists(objects)
        # Before version 15: object, kind, something more; from then on: address, object.
        width, holder, held = (2, 0, 1) if self._regions is not None else (3, 1, 0)
        listed, lengths = records.lists(roots)
        listed, root_rows = listed.reshape(-1, width), np.repeat(roots, lengths // width)
        return (
            records.at[objects], records.ts[objects], *(records[name][objects] for name in ("object", "type", "size")),
            n_references, references, records.at[root_rows], records.ts[root_rows], listed[:, holder], listed[:, held],
        )  # fmt: skip

    def _roots(self, rows: HeapRows, known: Addresses) -> Table:
        intern = self._trace.strings.intern
        target = known.find(rows.held)
        if self._regions is not None:
            kind, name = self._regions.at(rows.holder, rows.root_ts)
        else:
            words = {value: intern(self._kind_word(value)) for value in set(rows.holder.tolist())}
            kind = np.array([words[value] for value in rows.holder.tolist()], np.int32)
            name = np.full(len(kind), -1, np.int32)
        kept = target >= 0
        return Table(HEAP_ROOTS, {"object": target[kept], "kind": kind[kept], "name": name[kept]})

    def _kind_word(self, value: int) -> str:
        """Versions 3 to 13 number the kinds, 14 has a bit for each."""
        low = value % ROOT_FLAGS_FROM
        if self._log.layout.events >= 14:
            return next((word for bit, word in zip(ROOT_BITS, ROOT_KINDS, strict=True) if low & bit), "other")
        return ROOT_KINDS[low] if low < len(ROOT_KINDS) else "other"


class Regions:
    """Registered regions of roots, by address and time. A region may be registered again, or for something else."""

    def __init__(self, trace: Trace, log: Log, frames: Frames) -> None:
        records = log.records
        rows = records.of(Event.ROOT_REGISTER, Event.ROOT_UNREGISTER)
        rows = rows[np.lexsort((records.ts[rows], records["start"][rows]))]
        start = records["start"][rows]
        until = np.full(len(rows), END_OF_TIME)
        until[:-1] = np.where(start[1:] == start[:-1], records.ts[rows[1:]], END_OF_TIME)
        registers = records.kind[rows] == Event.ROOT_REGISTER
        rows, self._until = rows[registers], until[registers]
        self._start, self._ts = records["start"][rows], records.ts[rows]
        self._end = self._start + records["size"][rows]
        intern = trace.strings.intern
        words = [ROOT_SOURCES[s] if s < len(ROOT_SOURCES) else "other" for s in records["source"][rows].tolist()]
        self._kind = np.array([*(intern(word) for word in words), intern("other")], np.int32)
        names = log.texts(rows)
        of_class = np.isin(records["source"][rows], [STATIC, THREAD_STATIC]) & (records["key"][rows] > 0)
        of_class = np.flatnonzero(of_class)
        classes = frames.class_names(frames.types.at(records["key"][rows[of_class]], records.ts[rows[of_class]]))
        for row, name in zip(of_class.tolist(), classes.tolist(), strict=True):
            names[row] = trace.strings[name] or names[row]
        self._name = np.array([*(intern(name) if name else -1 for name in names), -1], np.int32)

    def at(self, addresses: Array, ts: Array) -> tuple[Array, Array]:
        """(kind, name) as strings, for a heap shot with roots at times `ts`: of the regions that are registered then.
        Collectors also scan stacks that were given up a moment ago."""
        now = ts.max(initial=0)
        row = np.full(len(addresses), len(self._start))
        for regions in ((self._ts <= now) & (now < self._until), self._ts <= now):
            unknown = np.flatnonzero(row == len(self._start))
            row[unknown] = self._rows_of(addresses[unknown], np.flatnonzero(regions))
        return self._kind[row], self._name[row]

    def _rows_of(self, addresses: Array, regions: Array) -> Array:
        """In which of these regions the addresses lie: rows, or one more than the last row."""
        none = len(self._start)
        place = np.searchsorted(self._start[regions], addresses, side="right") - 1
        found = np.append(regions, none)[place]
        return np.where(addresses < np.append(self._end, np.uint64(0))[found], found, none)
