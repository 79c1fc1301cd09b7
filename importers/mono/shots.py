"""Map: heap shots: live objects, their references and roots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.importers.mono.decode import Log, Records, times
from traceferry.importers.mono.frames import Frames, leaves
from traceferry.importers.mono.layout import ROOT_KINDS, ROOT_SOURCES, Event
from traceferry.model import HEAP_OBJECTS, HEAP_ROOTS, Array, HeapGraph, Table, Trace

ROOT_BITS = (1, 2, 4, 8, 16)
ROOT_FLAGS_FROM = 0x100
STATIC, THREAD_STATIC = 3, 4
END_OF_TIME = (1 << 63) - 1


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
    """The contents of a heap shot. objects: uint64 [n, 4]: ts, address, class or vtable, size; n_references: int64;
    references: uint64 addresses, one object's after the other's; roots: uint64 [n, 3]: ts, address or kind, object."""

    objects: Array
    n_references: Array
    references: Array
    roots: Array


class Shots:
    """Reads heap shots into graphs."""

    def __init__(self, trace: Trace, log: Log, frames: Frames) -> None:
        self._trace = trace
        self._log = log
        self._frames = frames
        self._regions = Regions(trace, log, frames) if log.layout.events >= 15 else None

    def objects(self, shot: Shot) -> tuple[Array, Array]:
        """(distinct uint64 addresses, int32 classes as strings) in the order in which the shot lists them."""
        rows = self._rows(shot)
        first = rows.objects[_first_rows(rows.objects[:, 1])[0]]
        return np.ascontiguousarray(first[:, 1]), self._classes(first)

    def graph(self, shot: Shot, numbers: Array, sites: Array) -> HeapGraph:
        """numbers: int64, for each object which one it is, -1 is unknown; sites: int32, where each was allocated, -1 is
        unknown."""
        rows = self._rows(shot)
        addresses = rows.objects[:, 1]
        first, of_row = _first_rows(addresses)
        objects = rows.objects[first]
        classes = self._class_frames(objects)
        stacks, is_known = sites.copy(), sites >= 0
        stacks[is_known] = leaves(self._trace, sites[is_known], classes[is_known])
        size = np.bincount(of_row, rows.objects[:, 3].astype(np.float64), len(first)).astype(np.int64)
        table = Table(
            HEAP_OBJECTS,
            {
                "object": numbers,
                "address": objects[:, 1],
                "class_name": self._frames.class_names(classes),
                "size": size,
                "site": stacks,
            },
        )
        owners = np.repeat(of_row, rows.n_references)
        known = _RowOf(objects[:, 1])
        target = known.rows(rows.references)
        kept = target >= 0
        self._trace.report.note(
            "reference_dangles", int(np.count_nonzero(~kept)), where=f"{self._log.source.path} {shot.start_ts}"
        )
        owners, target = owners[kept], target[kept]
        order = np.argsort(owners, kind="stable")
        offsets = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=len(objects)))))
        return HeapGraph(table, offsets.astype(np.int64), target[order], self._roots(rows.roots, known))

    def _rows(self, shot: Shot) -> HeapRows:
        """Of the buffers, what is within the shot's time."""
        empty = HeapRows(np.empty((0, 4), "u8"), np.empty(0, "i8"), np.empty(0, "u8"), np.empty((0, 3), "u8"))
        pieces = self._log.pieces(shot.buffers, Event.HEAP_OBJECT, Event.HEAP_ROOT)
        parts = [vars(part).values() for part in (empty, *(self._within(shot, piece) for piece in pieces))]
        return HeapRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _within(self, shot: Shot, records: Records) -> HeapRows:
        is_object = records.kind == Event.HEAP_OBJECT
        inside = (records.ts >= shot.start_ts) & (records.ts <= shot.end_ts)
        values, lengths = records.all_lists()
        rows = np.flatnonzero(is_object & inside)
        objects = np.column_stack((records.ts.view(np.uint64), *(records[key] for key in ("object", "type", "size"))))
        # Before version 15: object, kind, something more; from then on: address, object.
        held = np.flatnonzero(~is_object & inside)
        listed = values[np.repeat(~is_object & inside, lengths)]
        place_and_object = listed.reshape(-1, 2) if self._regions is not None else listed.reshape(-1, 3)[:, 1::-1]
        ts = np.repeat(records.ts[held].view(np.uint64), lengths[held] // (2 if self._regions is not None else 3))
        roots = np.column_stack((ts, place_and_object))
        return HeapRows(objects[rows], lengths[rows], values[np.repeat(is_object & inside, lengths)], roots)

    def _classes(self, objects: Array) -> Array:
        return self._frames.class_names(self._class_frames(objects))

    def _class_frames(self, objects: Array) -> Array:
        return self._frames.types.at(objects[:, 2], times(objects[:, 0]))

    def _roots(self, held: Array, known: _RowOf) -> Table:
        intern = self._trace.strings.intern
        target = known.rows(held[:, 2])
        if self._regions is not None:
            kind, name = self._regions.at(held[:, 1], times(held[:, 0]))
        else:
            words = {value: intern(self._kind_word(value)) for value in set(held[:, 1].tolist())}
            kind = np.array([words[value] for value in held[:, 1].tolist()], np.int32)
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
