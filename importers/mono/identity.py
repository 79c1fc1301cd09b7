"""Map: the identity of objects. Tracks all allocations through the collections and heap shots of a log, and so
determines the class of an object that is thrown or locked, where a live object was allocated, and in which collection
it died."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

import numpy as np

from traceferry.importers.mono.decode import Log, times
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import Event, Gc
from traceferry.importers.mono.objects import ObjectTracker
from traceferry.importers.mono.shots import Shot, Shots
from traceferry.importers.mono.threads import NONE, Life
from traceferry.importers.mono.walks import Sites, StackTable, move_pieces, site_pieces
from traceferry.model import Array

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
        return np.concatenate([np.empty(0, np.int64), *(np.arange(*part) for part in self.ranges(row, n))])

    def ranges(self, row: int, n: int) -> Iterator[tuple[int, int]]:
        """The same as (first number, the one after the last)."""
        part = int(np.searchsorted(self.until, row, side="right"))
        end = row + n
        while row < end:
            until = int(self.until[part])
            after = int(self.first[part]) + until - (int(self.until[part - 1]) if part else 0)
            yield after - (until - row), after - max(until - end, 0)
            row, part = until, part + 1


@dataclass(frozen=True)
class Known:
    """The results of tracking the objects.

    numbers: by `id` of a Life; died: for each number the step in which it died, int32, -1: it survived, or unknown;
    step_ts: when each step was over, int64 on the event clock; asked: int32 strings, the class of the object that each
    question was about; shot_numbers, shot_sites: of each shot the numbers of its objects and the stacks of their
    allocations; sites: by `id` of a Life its events other than allocations.
    """

    numbers: dict[int, Numbers]
    died: Array
    step_ts: Array
    asked: Array
    shot_numbers: list[Array]
    shot_sites: list[Array]
    sites: dict[int, Sites]

    def class_of(self, row: int) -> int:
        """The class, as a string, of the object that the `row`-th question was about; -1 is unknown."""
        return int(self.asked[row])


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
    feeds = [_Feed(log, frames, stacks, life) for life in _with_sites(log, lives)]
    has_allocations = bool(log.stats["alloc"].sum())
    movers = [_Mover(log, life) for life in lives if has_allocations and _has_moves(log, life)]
    tracker = ObjectTracker(moves_recorded=bool(movers))
    asked = np.full(len(questions[0]), UNKNOWN, np.int64)
    shot_numbers: list[Array] = [np.empty(0, np.int64)] * len(shots)
    steps = _steps(log, shots)
    answered = 0
    due_feeds, due_movers = _Due(feeds), _Due(movers)
    for step in [*steps, _Step(END_OF_LOG, 0, -1)]:
        for feed in due_feeds.until(step.ts):
            feed.allocate_until(step.ts, tracker)
        until = int(np.searchsorted(questions[0], min(step.ts, END_OF_LOG - 1), side="right"))
        asked[answered:until] = tracker.seen(questions[1][answered:until])
        answered = until
        if step.shot >= 0:
            shot_numbers[step.shot] = tracker.shot(*reader.objects(shots[step.shot]))
        elif step.ts < END_OF_LOG:
            tracker.collect(step.generation, *_moved_until(step.ts, due_movers.until(step.ts)))
    died = tracker.finish()
    for feed in feeds:
        # A row that frees nothing would not be one that frees.
        died[feed.empty] = UNKNOWN
    numbers = {id(feed.life): feed.numbers() for feed in feeds}
    looked_up = _LookedUp(np.concatenate((asked, *shot_numbers)))
    if len(looked_up.numbers):
        for feed in feeds:
            looked_up.add(frames, numbers[id(feed.life)], _allocations(log, frames, stacks, feed.life))
    return Known(
        numbers,
        died,
        np.array([step.ts for step in steps], np.int64),
        looked_up.classes[looked_up.places(asked)],
        shot_numbers,
        [looked_up.sites[looked_up.places(of_shot)] for of_shot in shot_numbers],
        {id(feed.life): feed.other_sites() for feed in feeds},
    )


class _LookedUp:
    """Classes (int32 strings) and stacks of some allocations, which going through all of them once more shows: to keep
    those of all would take much memory. The last element of each column is that of no allocation."""

    def __init__(self, numbers: Array) -> None:
        different = np.unique(numbers)
        self.numbers = different[different >= 0]
        self.classes, self.sites = (np.full(len(self.numbers) + 1, -1, np.int32) for _ in range(2))

    def add(self, frames: Frames, numbers: Numbers, pieces: Iterator[Sites]) -> None:
        """Those of a thread."""
        row = 0
        for piece in pieces:
            n = len(piece.ts)
            places = self.places(numbers.of(row, n))
            row += n
            found = np.flatnonzero(places >= 0)
            wanted = piece.take(found)
            self.classes[places[found]] = frames.class_names(frames.types.at(wanted.a, wanted.ts))
            self.sites[places[found]] = wanted.stack

    def places(self, numbers: Array) -> Array:
        """Where they stand in the columns; -1 for others."""
        if len(self.numbers) == 0:
            return np.full(len(numbers), -1, np.int64)
        place = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[place] == numbers, place, -1)


def _with_sites(log: Log, lives: Sequence[Life]) -> list[Life]:
    """The threads in which there is something of which the stack counts."""
    rows = log.records.of(
        Event.THROW, Event.THROW_BT, Event.CLAUSE, Event.HANDLE_CREATED, Event.HANDLE_CREATED_BT,
        Event.HANDLE_DESTROYED, Event.HANDLE_DESTROYED_BT,
    )  # fmt: skip
    monitors = np.flatnonzero((log.records.kind & 15) == Event.MONITOR)
    has_sites = log.stats["alloc"] > 0
    has_sites[log.records.buffer[np.concatenate((rows, monitors))]] = True
    return [life for life in lives if has_sites[life.buffers].any()]


def _has_moves(log: Log, life: Life) -> bool:
    return bool(log.stats["moves"][life.buffers].any()) if life.buffers else False


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


class _Rows:
    """Rows of a thread in pieces, taken in the order of time. A row counts as no earlier than those before it."""

    def __init__(self, ts: Array) -> None:
        self._ts = np.maximum.accumulate(ts)
        self._at = 0

    @property
    def next_ts(self) -> int | None:
        return int(self._ts[self._at]) if self._at < len(self._ts) else None

    def until(self, ts: int) -> slice:
        """The next rows, before the first one later than that."""
        first, self._at = self._at, int(np.searchsorted(self._ts, min(ts, END_OF_LOG - 1), side="right"))
        return slice(first, self._at)


class _Taker(Protocol):
    """Has rows to be taken; next_ts: of the next one, None where there is none."""

    @property
    def next_ts(self) -> int | None: ...


Taken = TypeVar("Taken", bound=_Taker)


class _Due(Generic[Taken]):
    """Finds those that have rows up to a time, without asking all of them at each step."""

    def __init__(self, takers: Sequence[Taken]) -> None:
        self._takers = takers
        self._queue = [(ts, nth) for nth, taker in enumerate(takers) if (ts := taker.next_ts) is not None]
        heapify(self._queue)

    def until(self, ts: int) -> Iterator[Taken]:
        """In their order; each must have taken its rows until then before the next."""
        due: list[int] = []
        while self._queue and self._queue[0][0] <= ts:
            due.append(heappop(self._queue)[1])
        for nth in sorted(due):
            yield self._takers[nth]
            if (later := self._takers[nth].next_ts) is not None:
                heappush(self._queue, (later, nth))


class _Feed:
    """Hands a thread's allocations to the tracker, in the order of time. empty: the numbers of objects without a size,
    which only damaged logs have."""

    def __init__(self, log: Log, frames: Frames, stacks: StackTable, life: Life) -> None:
        self.life = life
        self.empty: list[int] = []
        self._given: list[range] = []
        self._frames = frames
        self._others: list[Sites] = []
        self._pieces = _allocations(log, frames, stacks, life, self._others)
        self._next_piece()

    def _next_piece(self) -> None:
        self._piece: Sites | None = next(self._pieces, None)
        self._rows = _Rows(self._piece.ts if self._piece is not None else NONE)

    @property
    def next_ts(self) -> int | None:
        return self._rows.next_ts

    def allocate_until(self, ts: int, tracker: ObjectTracker) -> None:
        while self._piece is not None:
            rows = self._rows.until(ts)
            some = Sites(*(column[rows] for column in vars(self._piece).values()))
            if len(some.ts):
                classes = self._frames.class_names(self._frames.types.at(some.a, some.ts))
                given = tracker.allocate(some.b, some.c.astype(np.int64), classes)
                self._given.append(given)
                self.empty += (given.start + np.flatnonzero(some.c == 0)).tolist()
            if self._rows.next_ts is not None:
                return
            self._next_piece()

    def numbers(self) -> Numbers:
        sizes = [len(given) for given in self._given]
        return Numbers(np.array([given.start for given in self._given], np.int64), np.cumsum(sizes, dtype=np.int64))

    def other_sites(self) -> Sites:
        empty = Sites(*(np.empty(0, dtype) for dtype in ("i8", "u1", "i8", "u8", "u8", "u8", "i4")))
        parts = [empty, *self._others]
        return Sites(*(np.concatenate(columns) for columns in zip(*(vars(p).values() for p in parts), strict=True)))


class _Mover:
    """What a thread moved, as the collector, in the order of time."""

    def __init__(self, log: Log, life: Life) -> None:
        self._pieces = move_pieces(log, log.buffers[life.buffers].ravel())
        self._next_piece()

    def _next_piece(self) -> None:
        self._piece: Array | None = next(self._pieces, None)
        self._rows = _Rows(times(self._piece[:, 0]) if self._piece is not None else NONE)

    @property
    def next_ts(self) -> int | None:
        return self._rows.next_ts

    def until(self, ts: int) -> Array:
        """Rows that were not given before: uint64 ts, old and new address."""
        parts = [np.empty((0, 3), np.uint64)]
        while self._piece is not None:
            parts.append(self._piece[self._rows.until(ts)])
            if self._rows.next_ts is not None:
                break
            self._next_piece()
        return np.concatenate(parts)


def _moved_until(ts: int, movers: Iterable[_Mover]) -> tuple[Array, Array]:
    """Old and new addresses, by time."""
    rows = np.concatenate([np.empty((0, 3), np.uint64), *(mover.until(ts) for mover in movers)])
    order = np.argsort(rows[:, 0], kind="stable")
    return rows[order, 1], rows[order, 2]


def _allocations(
    log: Log, frames: Frames, stacks: StackTable, life: Life, others: list[Sites] | None = None
) -> Iterator[Sites]:
    """others: gets events other than allocations."""
    for piece in site_pieces(log, log.buffers[life.buffers].ravel(), frames.methods, stacks):
        is_allocation = (piece.kind == Event.ALLOC) | (piece.kind == Event.ALLOC_BT)
        if others is not None and not is_allocation.all():
            others.append(piece.take(np.flatnonzero(~is_allocation)))
        if is_allocation.any():
            yield piece.take(np.flatnonzero(is_allocation))
