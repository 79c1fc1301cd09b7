"""Map: which object is which. Follows all allocations through the collections and heap shots of a log, and so knows the
class of an object that is thrown or locked, where a live object was allocated, and in which collection it died."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from converter.model import Array
from importers.mono.decode import Log
from importers.mono.frames import Frames
from importers.mono.layout import Event, Gc
from importers.mono.objects import ObjectTracker
from importers.mono.shots import Shot, Shots
from importers.mono.threads import Life
from importers.mono.walks import Sites, StackTable, read_moves, site_pieces

END_OF_LOG = (1 << 63) - 1
UNKNOWN = -1


@dataclass(frozen=True)
class Numbers:
    """The numbers of one thread's allocations, in their order: ranges, as numbers are given from collection to
    collection. first: of each range; until: how many allocations lie in it and those before."""

    first: Array
    until: Array

    def of(self, row: int, n: int) -> Array:
        """Those of n allocations from `row` on; int64."""
        rows = np.arange(row, row + n)
        part = np.searchsorted(self.until, rows, side="right")
        begins = np.concatenate(([0], self.until[:-1]))
        numbers: Array = self.first[part] + rows - begins[part]
        return numbers


@dataclass(frozen=True)
class Known:
    """What following the objects has shown.

    numbers: by `id` of a Life; died_ts: for each number when it died, int64 on the event clock, -1: it lived on, or
    nothing tells; classes: int32 strings by number; shot_numbers, shot_sites: of each shot the numbers of its
    objects and the stacks of their allocations; sites: by `id` of a Life what happened in it that is no allocation.
    """

    numbers: dict[int, Numbers]
    died_ts: Array
    classes: Array
    shot_numbers: list[Array]
    shot_sites: list[Array]
    sites: dict[int, Sites]
    asked: Array

    def class_of(self, row: int) -> int:
        """The class, as a string, of the object that the `row`-th question was about; -1 is unknown."""
        number = int(self.asked[row])
        return int(self.classes[number]) if number >= 0 else -1


@dataclass(frozen=True)
class _Step:
    """A collection or a heap shot: when it was over; generation: -1 for a shot; shot: its index."""

    ts: int
    generation: int
    shot: int


def follow(
    log: Log, frames: Frames, stacks: StackTable, lives: Sequence[Life], shots: Sequence[Shot], reader: Shots,
    questions: tuple[Array, Array],
) -> Known:  # fmt: skip
    """questions: (int64 ts, rising; uint64 address) of objects whose class is wanted."""
    feeds = [_Feed(log, frames, stacks, life) for life in lives if _has_sites(log, life)]
    has_allocations = bool(log.stats["alloc"].sum())
    move_ts, old, new = read_moves(log) if has_allocations else (questions[0][:0], questions[1][:0], questions[1][:0])
    tracker = ObjectTracker(moves_recorded=len(move_ts) > 0)
    asked = np.full(len(questions[0]), UNKNOWN, np.int64)
    shot_numbers: list[Array] = [np.empty(0, np.int64)] * len(shots)
    steps = _steps(log, shots)
    moved = answered = 0
    for step in [*steps, _Step(END_OF_LOG, 0, -1)]:
        for feed in feeds:
            feed.allocate_until(step.ts, tracker)
        until = int(np.searchsorted(questions[0], min(step.ts, END_OF_LOG - 1), side="right"))
        asked[answered:until] = tracker.seen(questions[1][answered:until])
        answered = until
        if step.shot >= 0:
            shot_numbers[step.shot] = tracker.shot(*reader.objects(shots[step.shot]))
        elif step.ts < END_OF_LOG:
            until = int(np.searchsorted(move_ts, step.ts, side="right"))
            tracker.collect(step.generation, old[moved:until], new[moved:until])
            moved = until
    died = tracker.finish()
    died_ts = np.append(np.array([step.ts for step in steps], np.int64), -1)[died]
    n = len(died)
    classes, sites = np.full(n, -1, np.int32), np.full(n + 1, -1, np.int32)
    for feed in feeds:
        for first, some_classes, some_sites in feed.given:
            classes[first : first + len(some_classes)] = some_classes
            sites[first : first + len(some_sites)] = some_sites
        # A row that frees nothing would not be one that frees.
        died_ts[feed.empty] = -1
    return Known(
        {id(feed.life): feed.numbers() for feed in feeds},
        died_ts,
        classes,
        shot_numbers,
        [sites[numbers] for numbers in shot_numbers],
        {id(feed.life): feed.other_sites() for feed in feeds},
        asked,
    )


def _has_sites(log: Log, life: Life) -> bool:
    """Whether there is something in it of which the stack counts."""
    if not life.buffers:
        return False
    if log.stats["alloc"][life.buffers].any():
        return True
    rows = log.records.of(
        Event.THROW, Event.THROW_BT, Event.CLAUSE, Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT,
        Event.HANDLE_DESTROYED, Event.HANDLE_DESTROYED_BT,
    )  # fmt: skip
    monitors = np.flatnonzero((log.records.kind & 15) == Event.MONITOR)
    with_sites = log.records.buffer[np.concatenate((rows, monitors))]
    return bool(np.isin(with_sites, life.buffers).any())


def _steps(log: Log, shots: Sequence[Shot]) -> list[_Step]:
    """A collection goes on moving objects after its end, until the world is about to start; a heap shot, which begins
    before a collection of its own, ends in between."""
    records = log.records
    rows = records.of(Event.GC_EVENT)
    ends = rows[records.a[rows] == Gc.END]
    overs = np.sort(
        np.concatenate((records.ts[rows[records.a[rows] == Gc.PRE_START_WORLD]], [shot.end_ts for shot in shots]))
    ).astype(np.int64)
    place = np.searchsorted(overs, records.ts[ends])
    over = np.append(overs, END_OF_LOG - 1)[place]
    steps = [_Step(ts, int(records.b[row]), -1) for ts, row in zip(over.tolist(), ends.tolist(), strict=True)]
    steps += [_Step(shot.end_ts, -1, i) for i, shot in enumerate(shots)]
    return sorted(steps, key=lambda step: (step.ts, step.shot))


class _Feed:
    """Hands a thread's allocations to the tracker, in the order of time. given: (first number, classes, sites); empty:
    the numbers of objects without a size, which only damaged logs have."""

    def __init__(self, log: Log, frames: Frames, stacks: StackTable, life: Life) -> None:
        self.life = life
        self.given: list[tuple[int, Array, Array]] = []
        self.empty: list[int] = []
        self._frames = frames
        self._others: list[Sites] = []
        self._pieces = self._allocations(site_pieces(log, log.buffers[life.buffers].ravel(), frames.methods, stacks))
        self._piece: Sites | None = next(self._pieces, None)
        self._at = 0

    def allocate_until(self, ts: int, tracker: ObjectTracker) -> None:
        while self._piece is not None:
            piece = self._piece
            latest = np.maximum.accumulate(piece.ts[self._at :])
            n = int(np.searchsorted(latest, min(ts, END_OF_LOG - 1), side="right"))
            some = piece.take(np.arange(self._at, self._at + n))
            if n:
                classes = self._frames.class_names(self._frames.types.at(some.a, some.ts))
                given = tracker.allocate(some.b, some.c.astype(np.int64), classes)
                self.given.append((given.start, classes, some.stack))
                self.empty += (given.start + np.flatnonzero(some.c == 0)).tolist()
            self._at += n
            if self._at < len(piece.ts):
                return
            self._piece, self._at = next(self._pieces, None), 0

    def numbers(self) -> Numbers:
        sizes = [len(classes) for _, classes, _ in self.given]
        return Numbers(np.array([first for first, _, _ in self.given], np.int64), np.cumsum(sizes, dtype=np.int64))

    def other_sites(self) -> Sites:
        empty = Sites(*(np.empty(0, dtype) for dtype in ("i8", "u1", "i8", "u8", "u8", "u8", "i4")))
        parts = [empty, *self._others]
        return Sites(*(np.concatenate(columns) for columns in zip(*(vars(p).values() for p in parts), strict=True)))

    def _allocations(self, pieces: Iterator[Sites]) -> Iterator[Sites]:
        for piece in pieces:
            is_allocation = (piece.kind == Event.ALLOC) | (piece.kind == Event.ALLOC_BT)
            if not is_allocation.all():
                self._others.append(piece.take(np.flatnonzero(~is_allocation)))
            if is_allocation.any():
                yield piece.take(np.flatnonzero(is_allocation))
