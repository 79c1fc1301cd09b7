"""Map: heap shots: live objects, their references and roots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.importers.mono.decode import Log, Records
from traceferry.importers.mono.frames import Frames, leaves
from traceferry.importers.mono.layout import ROOT_KINDS, ROOT_SOURCES, Event
from traceferry.model import HEAP_OBJECTS, HEAP_ROOTS, Array, HeapGraph, Table, Trace

ROOT_BITS = (1, 2, 4, 8, 16)
ROOT_FLAGS_FROM = 0x100
STATIC, THREAD_STATIC = 3, 4
END_OF_TIME = (1 << 63) - 1
# As `Shots._read` returns it.
NOTHING = (
    np.empty(0, np.int64), np.empty((0, 3), np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64),
    np.empty(0, np.int64), np.empty((0, 2), np.uint64),
)  # fmt: skip


@dataclass(frozen=True)
class Shot:
    """Where a heap shot is. buffers: the rows of the buffers it is in; start_ts, end_ts: on the event clock."""

    tid: int
    start_ts: int
    end_ts: int
    buffers: Array


def find_shots(log: Log, end_ts: int) -> list[Shot]:
    """From each start to its end on the same thread, or where that is missing, to the thread's next start or its
    end."""
    records = log.records
    rows = records.of(Event.HEAP_START, Event.HEAP_END)
    tids = log.tids[records.buffer[rows]]
    shots: list[Shot] = []
    for tid in sorted(set(tids.tolist())):
        mine = rows[tids == tid]
        buffers = np.flatnonzero(log.tids == tid)
        for i, row in enumerate(mine.tolist()):
            if records.kind[row] != Event.HEAP_START:
                continue
            start, last, first = int(records.ts[row]), end_ts, int(records.buffer[row])
            last_buffer = int(buffers[-1])
            if i + 1 < len(mine):
                last, last_buffer = int(records.ts[mine[i + 1]]), int(records.buffer[mine[i + 1]])
            chosen = slice(np.searchsorted(buffers, first), np.searchsorted(buffers, last_buffer, side="right"))
            shots.append(Shot(tid, start, max(start, min(last, end_ts)), buffers[chosen]))
    return sorted(shots, key=lambda shot: (shot.start_ts, shot.tid))


@dataclass(frozen=True)
class HeapRows:
    """The contents of heap shots, by time. ts: int64 of each object; objects: uint64 [n, 3]: address, class or vtable,
    size; begin: int64 [n + 1], where the references of each object begin; references: uint64 addresses; root_ts: int64
    of each root; roots: uint64 [m, 2]: address or kind, object."""

    ts: Array
    objects: Array
    begin: Array
    references: Array
    root_ts: Array
    roots: Array

    def between(self, start_ts: int, end_ts: int) -> HeapRows:
        """Both times included."""
        rows, roots = (_inside(ts, start_ts, end_ts) for ts in (self.ts, self.root_ts))
        begin = self.begin[rows.start : rows.stop + 1]
        return HeapRows(
            self.ts[rows], self.objects[rows], begin - begin[0], self.references[begin[0] : begin[-1]],
            self.root_ts[roots], self.roots[roots],
        )  # fmt: skip


def _inside(ts: Array, start_ts: int, end_ts: int) -> slice:
    """Of rising times those of a span, both ends included."""
    return slice(int(np.searchsorted(ts, start_ts, side="left")), int(np.searchsorted(ts, end_ts, side="right")))


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
        first = _first_rows(rows.objects[:, 0])[0]
        classes = self._class_frames(rows.objects[first, 1], rows.ts[first])
        return rows.objects[first, 0], self._frames.class_names(classes)

    def graph(self, shot: Shot, numbers: Array, sites: Array) -> HeapGraph:
        """numbers: int64, for each object which one it is, -1 is unknown; sites: int32, where each was allocated, -1 is
        unknown."""
        rows = self._rows(shot)
        first, of_row = _first_rows(rows.objects[:, 0])
        addresses = rows.objects[first, 0]
        classes = self._class_frames(rows.objects[first, 1], rows.ts[first])
        stacks, is_known = sites.copy(), sites >= 0
        stacks[is_known] = leaves(self._trace, sites[is_known], classes[is_known])
        size = np.bincount(of_row, rows.objects[:, 2].astype(np.float64), len(first)).astype(np.int64)
        table = Table(
            HEAP_OBJECTS,
            {
                "object": numbers,
                "address": addresses,
                "class_name": self._frames.class_names(classes),
                "size": size,
                "site": stacks,
            },
        )
        owners = np.repeat(of_row, np.diff(rows.begin))
        known = _RowOf(addresses)
        target = known.rows(rows.references)
        kept = target >= 0
        self._trace.report.note(
            "reference_dangles", int(np.count_nonzero(~kept)), where=f"{self._log.source.path} {shot.start_ts}"
        )
        owners, target = owners[kept], target[kept]
        order = np.argsort(owners, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(addresses)))))
        return HeapGraph(table, offsets.astype(np.int64), target[order], self._roots(rows, known))

    def _rows(self, shot: Shot) -> HeapRows:
        """Of the buffers, what is within the shot's time."""
        if len(shot.buffers) > 1:
            return self._decoded(shot.buffers).between(shot.start_ts, shot.end_ts)
        [buffer] = shot.buffers.tolist()
        known = self._kept[1] if self._kept is not None and self._kept[0] == buffer else self._decoded(shot.buffers)
        rows = known.between(shot.start_ts, shot.end_ts)
        if len(rows.ts) < len(known.ts):
            self._kept = buffer, known
        return rows

    def _decoded(self, buffers: Array) -> HeapRows:
        """All of some buffers."""
        pieces = [self._read(piece) for piece in self._log.pieces(buffers, Event.HEAP_OBJECT, Event.HEAP_ROOT)]
        columns = zip(NOTHING, *pieces, strict=True)
        ts, objects, n_references, references, root_ts, roots = (np.concatenate(parts) for parts in columns)
        if np.any(ts[1:] < ts[:-1]):
            order = np.argsort(ts, kind="stable")
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            references = references[np.argsort(np.repeat(place, n_references), kind="stable")]
            ts, objects, n_references = ts[order], objects[order], n_references[order]
        if np.any(root_ts[1:] < root_ts[:-1]):
            order = np.argsort(root_ts, kind="stable")
            root_ts, roots = root_ts[order], roots[order]
        begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(n_references)))
        return HeapRows(ts, objects, begin, references, root_ts, roots)

    def _read(self, records: Records) -> tuple[Array, ...]:
        """As HeapRows has them, but with the numbers of references."""
        is_object = records.kind == Event.HEAP_OBJECT
        values, lengths = records.all_lists()
        objects = np.column_stack([records[key][is_object] for key in ("object", "type", "size")])
        # Before version 15: object, kind, something more; from then on: address, object.
        listed = values[np.repeat(~is_object, lengths)]
        width, columns = (2, slice(None)) if self._regions is not None else (3, slice(1, None, -1))
        root_ts = np.repeat(records.ts[~is_object], lengths[~is_object] // width)
        return (
            records.ts[is_object], objects, lengths[is_object], values[np.repeat(is_object, lengths)], root_ts,
            listed.reshape(-1, width)[:, columns],
        )  # fmt: skip

    def _class_frames(self, types: Array, ts: Array) -> Array:
        return self._frames.types.at(types, ts)

    def _roots(self, rows: HeapRows, known: _RowOf) -> Table:
        intern = self._trace.strings.intern
        held = rows.roots
        target = known.rows(held[:, 1])
        if self._regions is not None:
            kind, name = self._regions.at(held[:, 0], rows.root_ts)
        else:
            words = {value: intern(self._kind_word(value)) for value in set(held[:, 0].tolist())}
            kind = np.array([words[value] for value in held[:, 0].tolist()], np.int32)
            name = np.full(len(held), -1, np.int32)
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
        names = [log.text(at) for at in records["name"][rows].tolist()]
        of_class = np.flatnonzero(
            np.isin(records["source"][rows], [STATIC, THREAD_STATIC]) & (records["key"][rows] > 0)
        )
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
        rows = np.full(len(addresses), len(self._start))
        place = np.searchsorted(self._start[regions], addresses, side="right") - 1
        above = np.flatnonzero(place >= 0)
        found = regions[place[above]]
        inside = addresses[above] < self._end[found]
        rows[above[inside]] = found[inside]
        return rows


class _RowOf:
    """Finds the rows of distinct addresses."""

    def __init__(self, addresses: Array) -> None:
        self._order = np.argsort(addresses, kind="stable")
        self._sorted = addresses[self._order]

    def rows(self, wanted: Array) -> Array:
        """int32, -1 where there is none."""
        if len(self._sorted) == 0:
            return np.full(len(wanted), -1, np.int32)
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        return np.where(self._sorted[place] == wanted, self._order[place], -1).astype(np.int32)


def _first_rows(addresses: Array) -> tuple[Array, Array]:
    """(rows at which an address comes for the first time, for each row the number of its address among these)."""
    _, first, inverse = np.unique(addresses, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()]
