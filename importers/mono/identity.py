"""Map: the identity of objects. Tracks all allocations through the collections and heap shots of a log, and so
determines the class of an object that is thrown or locked, where a live object was allocated, and in which collection
it died."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge
from typing import NamedTuple

import numpy as np

from traceferry.heap.deaths import Deaths
from traceferry.heap.objects import Found, ObjectTracker
from traceferry.importers.mono.allocations import KEPT, ClassSites, ThreadAllocations
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.layout import SITED, Event, Gc
from traceferry.importers.mono.shots import Shot, Shots
from traceferry.importers.mono.threads import NONE, ThreadLifetime
from traceferry.model import Array, TraceBuilder
from traceferry.timeline.stacks import StackTable

UNKNOWN = -1
END_OF_LOG = (1 << 63) - 1
NO_MOVES = np.empty((0, 3), np.uint64)


class Known(NamedTuple):
    """The results of tracking the objects.

    made: the allocations of each thread, of which pairs are the sites; died: in which step each number died; step_ts:
    when each step was over, int64 on the event clock; shots: the objects of each shot. Of each record, int32, -1 is
    unknown: class_name, a string, the class of its object if that was asked for; stack, where it happened.
    """

    made: dict[ThreadLifetime, ThreadAllocations]
    pairs: ClassSites
    died: Deaths
    step_ts: Array
    shots: list[Found]
    class_name: Array
    stack: Array


class _Step(NamedTuple):
    """A collection or a heap shot: when it was over; shot: its index, -1 for a collection."""

    ts: int
    shot: int
    generation: int = 0


def follow(
    trace: TraceBuilder, log: Log, frames: Frames, threads: Sequence[ThreadLifetime], shots: Sequence[Shot],
    reader: Shots, asked_rows: Array,
) -> Known:  # fmt: skip
    """asked_rows: by time, the records of which the object's class is wanted."""
    stacks, pairs = StackTable(trace), ClassSites(frames)
    class_name, stack = (np.full(len(log.records), UNKNOWN, np.int32) for _ in range(2))
    n_allocations = int(log.stats["alloc"].sum())
    made = {
        thread: ThreadAllocations(log, frames, stacks, pairs, thread, n_allocations <= KEPT)
        for thread in _with_sites(log, threads)
    }
    tracker = ObjectTracker(n_allocations > 0 and bool(log.stats["moves"].any()), n_allocations)
    asked_ts, asked_at = log.records.ts[asked_rows], log.records["object"][asked_rows]
    asked_sites = np.full(len(asked_rows), UNKNOWN, np.int32)
    shot_found = [Found(NONE, NONE.astype(np.int32))] * len(shots)
    steps = _steps(log, shots)
    step_ts = np.array([*(step.ts for step in steps), END_OF_LOG], np.int64)
    # Objects without a size, which only damaged logs have: what frees one would be a row that frees nothing.
    empty: list[Array] = [NONE]
    allocated = [_allocated(of_thread, step_ts, stack) for of_thread in made.values()]
    moved_by = [_moved(log, thread, step_ts) for thread in threads if n_allocations]
    parts = merge(*allocated, *moved_by, key=lambda part: part.step)
    part, answered = next(parts, None), 0
    for nth, ts in enumerate(step_ts.tolist()):
        moved = [NO_MOVES]
        while part is not None and part.step == nth:
            if part.given is not None:
                numbers = tracker.allocate(part.address, part.size, part.pair)
                part.given.append(numbers)
                empty.append(numbers.start + np.flatnonzero(part.size == 0))
            moved.append(part.moves)
            part = next(parts, None)
        until = int(np.searchsorted(asked_ts, ts, side="right"))
        asked_sites[answered:until] = tracker.seen(asked_at[answered:until]).site
        answered = until
        if nth == len(steps):
            break
        if steps[nth].shot >= 0:
            shot_found[steps[nth].shot] = tracker.shot(*reader.objects(shots[steps[nth].shot]), pairs.class_name)
        else:
            moves = np.concatenate(moved)
            order = np.argsort(moves[:, 0], kind="stable")
            tracker.collect(steps[nth].generation, moves[order, 1], moves[order, 2])
    died = tracker.finish(np.concatenate(empty))
    class_name[asked_rows] = np.append(pairs.class_name, UNKNOWN)[asked_sites]
    return Known(made, pairs, died, step_ts, shot_found, class_name, stack)


def _with_sites(log: Log, threads: Sequence[ThreadLifetime]) -> list[ThreadLifetime]:
    """Returns the threads in which there is something of which the stack counts."""
    rows = log.records.of(*SITED)
    has_sites = log.stats["alloc"] > 0
    has_sites[log.records.buffer[rows]] = True
    return [thread for thread in threads if has_sites[thread.buffers].any()]


def _steps(log: Log, shots: Sequence[Shot]) -> list[_Step]:
    """Returns collections and heap shots in the order in which they are over. A collection goes on moving objects after
    its end, until the world is about to start; a heap shot, which begins before a collection of its own, ends in
    between."""
    records = log.records
    rows = records.of(Event.GC_EVENT)
    event, ts = records["event"][rows], records.ts[rows]
    ends = np.array([shot.end_ts for shot in shots], np.int64)
    overs = np.sort(np.append(ts[event == Gc.PRE_START_WORLD], ends))
    over = np.append(overs, END_OF_LOG - 1)[np.searchsorted(overs, ts[event == Gc.END])]
    generation = records["generation"][rows[event == Gc.END]]
    steps = [_Step(ts, -1, number) for ts, number in zip(over.tolist(), generation.tolist(), strict=True)]
    return sorted([*steps, *(_Step(shot.end_ts, i) for i, shot in enumerate(shots))], key=lambda step: step[:2])


class _Part(NamedTuple):
    """The objects that a thread allocated (address, size, pair) or moved (uint64 rows of ts, old and new address) up to
    a step, which is a row of the steps, and after the one before. given: takes the objects' numbers in ranges; None:
    moves."""

    step: int
    address: Array = NONE
    size: Array = NONE
    pair: Array = NONE
    moves: Array = NO_MOVES
    given: list[range] | None = None


def _allocated(made: ThreadAllocations, step_ts: Array, stack: Array) -> Iterator[_Part]:
    """Yields what a thread allocated, by step. stack: of each record, is filled in."""
    step, given = 0, list[range]()
    for sites in made.decoded():
        stack[np.searchsorted(made.log.records.at, sites.at)] = sites.other_stack
        ts, address, size, pair = (column[sites.first :] for column in sites[:4])
        by_step = _rows_by_step(ts, step_ts, step)
        for step, rows in by_step.items():
            yield _Part(step, address[rows], size[rows], pair[rows], given=given)
        if sites.is_block:
            made.given.append(given)
            given = []


def _moved(log: Log, thread: ThreadLifetime, step_ts: Array) -> Iterator[_Part]:
    """Yields what a thread's collections moved, by step."""
    step, buffers = 0, np.array(thread.buffers, np.int64)
    for records in log.pieces(buffers[log.stats["moves"][buffers] > 0], Event.GC_MOVE):
        places, lengths = records.lists(np.arange(len(records)))
        # A place without another one is damage.
        places = np.delete(places, np.cumsum(lengths)[lengths % 2 > 0] - 1)
        ts = np.repeat(records.ts, lengths // 2)
        moves = np.column_stack((ts.astype(np.uint64), places.reshape(-1, 2)))
        by_step = _rows_by_step(ts, step_ts, step)
        for step, rows in by_step.items():
            yield _Part(step, moves=moves[rows])


def _rows_by_step(ts: Array, step_ts: Array, first: int) -> dict[int, slice]:
    """Returns the rows up to each step from the first on. A row counts as no earlier than those before it."""
    ts, found, begin = np.maximum.accumulate(ts), dict[int, slice](), 0
    while begin < len(ts):
        first = max(first, int(np.searchsorted(step_ts, ts[begin])))
        end = int(np.searchsorted(ts, step_ts[first], side="right"))
        found[first] = slice(begin, end)
        begin = end
    return found
