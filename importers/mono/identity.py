"""Map: the identity of objects. Tracks all allocations through the collections and heap shots of a log, and so
determines the class of an object that is thrown or locked, where a live object was allocated, and in which collection
it died."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from traceferry.importers.mono.allocations import END_OF_LOG, KEPT, ClassSites, Numbers, ThreadAllocations
from traceferry.importers.mono.decode import Log, times
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import HANDLES, MONITOR_EVENTS, THROWS, Event, Gc
from traceferry.importers.mono.objects import ObjectTracker
from traceferry.importers.mono.shots import Shot, Shots
from traceferry.importers.mono.threads import NONE, ThreadLifetime
from traceferry.importers.mono.walks import Sites, StackTable
from traceferry.model import Array, Trace, positions

UNKNOWN = -1
NO_MOVES = np.empty((0, 3), np.uint64)
NO_SITES = Sites(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NO_MOVES, True)


@dataclass(frozen=True)
class Known:
    """The results of tracking the objects.

    made: the allocations of each thread; died: for each number the step in which it died, int32, -1: it
    survived, or unknown; step_ts: when each step was over, int64 on the event clock; shot_numbers,
    shot_sites: of each shot the numbers of its objects and the stacks of their allocations. Of each record, int32, -1
    is unknown: class_name, a string, the class of its object if that was asked for; stack, where it happened.
    """

    made: dict[ThreadLifetime, ThreadAllocations]
    died: Array
    step_ts: Array
    shot_numbers: list[Array]
    shot_sites: list[Array]
    class_name: Array
    stack: Array


class _Step(NamedTuple):
    """A collection or a heap shot: when it was over; shot: its index, -1 for a collection."""

    ts: int
    shot: int
    generation: int = 0


def follow(
    trace: Trace, log: Log, frames: Frames, threads: Sequence[ThreadLifetime], shots: Sequence[Shot], reader: Shots,
    asked_rows: Array,
) -> Known:  # fmt: skip
    """asked_rows: by time, the records of which the object's class is wanted."""
    stacks, pairs = StackTable(trace), ClassSites(trace, frames)
    class_name, stack = (np.full(len(log.records), UNKNOWN, np.int32) for _ in range(2))
    n_allocations = int(log.stats["alloc"].sum())
    feeds = [
        _Feed(ThreadAllocations(log, frames, stacks, pairs, thread, n_allocations <= KEPT), stack)
        for thread in _with_sites(log, threads)
    ]
    tracker = ObjectTracker(n_allocations > 0 and bool(log.stats["moves"].any()), n_allocations)
    asked_ts, asked_at = log.records.ts[asked_rows], log.records["object"][asked_rows]
    asked = np.full(len(asked_rows), UNKNOWN, np.int64)
    shot_numbers: list[Array] = [np.empty(0, np.int64)] * len(shots)
    steps = _steps(log, shots)
    answered = 0
    due = _Due(feeds)
    for step in [*steps, _Step(END_OF_LOG, -1)]:
        moved = [NO_MOVES]
        for feed in due.until(step.ts):
            moved += feed.advance(step.ts, tracker)
        until = int(np.searchsorted(asked_ts, min(step.ts, END_OF_LOG - 1), side="right"))
        asked[answered:until] = tracker.seen(asked_at[answered:until])
        answered = until
        if step.shot >= 0:
            shot_numbers[step.shot] = tracker.shot(*reader.objects(shots[step.shot]))
        elif step.ts < END_OF_LOG:
            moves = np.concatenate(moved)
            order = np.argsort(moves[:, 0], kind="stable")
            tracker.collect(step.generation, moves[order, 1], moves[order, 2])
    died = tracker.finish()
    for feed in feeds:
        # A row that frees nothing would not be one that frees.
        died[feed.empty] = UNKNOWN
        feed.made.numbers = feed.numbers()
    looked_up = _LookedUp(np.concatenate((asked, *shot_numbers)))
    if len(looked_up.numbers):
        for feed in feeds:
            looked_up.add(feed.made)
    class_name[asked_rows] = looked_up.classes[positions(looked_up.numbers, asked)]
    return Known(
        {feed.made.thread: feed.made for feed in feeds}, died, np.array([step.ts for step in steps], np.int64),
        shot_numbers, [looked_up.sites[positions(looked_up.numbers, of_shot)] for of_shot in shot_numbers], class_name,
        stack,
    )  # fmt: skip


class _LookedUp:
    """Classes (int32 strings) and stacks of some allocations. The last element of each column is that of none."""

    def __init__(self, numbers: Array) -> None:
        different = np.unique(numbers)
        self.numbers = different[different >= 0]
        self.classes, self.sites = (np.full(len(self.numbers) + 1, -1, np.int32) for _ in range(2))

    def add(self, made: ThreadAllocations) -> None:
        row = 0
        for piece in made.pieces():
            places = positions(self.numbers, made.numbers.of(row, len(piece.ts)))
            row += len(piece.ts)
            found = np.flatnonzero(places >= 0)
            self.sites[places[found]] = made.pairs.parent[piece.pair[found]]
            self.classes[places[found]] = made.pairs.class_names(piece.pair[found])


def _with_sites(log: Log, threads: Sequence[ThreadLifetime]) -> list[ThreadLifetime]:
    """The threads in which there is something of which the stack counts, or moves of allocated objects."""
    rows = log.records.of(*THROWS, Event.CLAUSE, *HANDLES, *MONITOR_EVENTS)
    has_sites = log.stats["alloc"] > 0
    if has_sites.any():
        has_sites |= log.stats["moves"] > 0
    has_sites[log.records.buffer[rows]] = True
    return [thread for thread in threads if has_sites[thread.buffers].any()]


def _steps(log: Log, shots: Sequence[Shot]) -> list[_Step]:
    """A collection goes on moving objects after its end, until the world is about to start; a heap shot, which begins
    before a collection of its own, ends in between."""
    records = log.records
    rows = records.of(Event.GC_EVENT)
    event, ts = records["event"][rows], records.ts[rows]
    ends = np.array([shot.end_ts for shot in shots], np.int64)
    overs = np.sort(np.append(ts[event == Gc.PRE_START_WORLD], ends))
    over = np.append(overs, END_OF_LOG - 1)[np.searchsorted(overs, ts[event == Gc.END])]
    generation = records["generation"][rows[event == Gc.END]]
    steps = [_Step(ts, -1, number) for ts, number in zip(over.tolist(), generation.tolist(), strict=True)]
    return sorted([*steps, *(_Step(shot.end_ts, i) for i, shot in enumerate(shots))], key=lambda step: step[:2])


class _Rows:
    """Rows of a thread in pieces, taken in the order of time. A row counts as no earlier than those before it."""

    def __init__(self, ts: Array) -> None:
        self._ts = ts if np.all(ts[1:] >= ts[:-1]) else np.maximum.accumulate(ts)
        self._at = 0

    @property
    def next_ts(self) -> int:
        return int(self._ts[self._at]) if self._at < len(self._ts) else END_OF_LOG

    def until(self, ts: int) -> slice:
        """The next rows, before the first one later than that."""
        first, self._at = self._at, int(np.searchsorted(self._ts, min(ts, END_OF_LOG - 1), side="right"))
        return slice(first, self._at)


class _Due:
    """Finds the feeds that have rows up to a time, without asking all of them at each step."""

    def __init__(self, feeds: Sequence[_Feed]) -> None:
        self._feeds = feeds
        self._queue = [(feed.next_ts, nth) for nth, feed in enumerate(feeds) if feed.next_ts < END_OF_LOG]
        heapify(self._queue)

    def until(self, ts: int) -> Iterator[_Feed]:
        """In their order; each must have taken its rows until then before the next."""
        due: list[int] = []
        while self._queue and self._queue[0][0] <= ts:
            due.append(heappop(self._queue)[1])
        for nth in sorted(due):
            yield self._feeds[nth]
            if (later := self._feeds[nth].next_ts) < END_OF_LOG:
                heappush(self._queue, (later, nth))


class _Feed:
    """Hands a thread's allocations to the tracker, in the order of time. stack: of each record, is filled in;
    empty: the numbers of objects without a size, which only damaged logs have."""

    def __init__(self, made: ThreadAllocations, stack: Array) -> None:
        self.made = made
        self.empty: list[int] = []
        self._stack = stack
        self._given: list[range] = []
        self._allocates = bool(made.log.stats["alloc"][made.thread.buffers].any())
        self._pieces = made.decoded()
        self._moved, self._moves = NO_MOVES, _Rows(NONE)
        self._is_done = False
        self._next_piece()

    def _next_piece(self) -> None:
        """The next one that has allocations, or moves if the thread allocates nothing; with the moves that are left."""
        moves = [self._moved[self._moves.until(END_OF_LOG)]]
        self._sites = NO_SITES
        while len(self._sites.ts) == 0 and (self._allocates or len(moves[-1]) == 0) and not self._is_done:
            sites = next(self._pieces, None)
            self._is_done = sites is None
            self._sites = sites or NO_SITES
            self._stack[np.searchsorted(self.made.log.records.at, self._sites.at)] = self._sites.other_stack
            moves.append(self._sites.moves)
        self._moved = np.concatenate(moves)
        self._rows, self._moves = _Rows(self._sites.ts), _Rows(times(self._moved[:, 0]))

    @property
    def next_ts(self) -> int:
        return min(self._rows.next_ts, self._moves.next_ts)

    def advance(self, ts: int, tracker: ObjectTracker) -> list[Array]:
        """Until that time; returns what was moved: uint64 rows of ts, old and new address."""
        moved: list[Array] = []
        while True:
            self._allocate(self._rows.until(ts), tracker)
            moved.append(self._moved[self._moves.until(ts)])
            if self._is_done or (self._rows if self._allocates else self._moves).next_ts < END_OF_LOG:
                return moved
            self._next_piece()

    def _allocate(self, rows: slice, tracker: ObjectTracker) -> None:
        if rows.start < rows.stop:
            size, classes = self._sites.size[rows], self.made.pairs.class_names(self._sites.pair[rows])
            given = tracker.allocate(self._sites.address[rows], size, classes)
            self._given.append(given)
            self.empty += (given.start + np.flatnonzero(size == 0)).tolist()

    def numbers(self) -> Numbers:
        sizes = [len(given) for given in self._given]
        return Numbers(np.array([given.start for given in self._given], np.int64), np.cumsum(sizes, dtype=np.int64))
