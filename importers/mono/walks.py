"""Map: runs the kernels over the buffers of a thread, a piece at a time, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceferry.calls.balance import Balancer, Raw
from traceferry.importers.mono import calls_kernel, heap_kernel, sites_kernel
from traceferry.importers.mono.decode import FIRST_ITEMS, Log, grown, room_for, times, windows
from traceferry.importers.mono.names import Names
from traceferry.importers.mono.state_inlined import (
    ASKED,
    ASKS_METHOD,
    DEPTH_FULL,
    DONE,
    ITEMS_FULL,
    MAX_TS,
    N_IGNORED,
    N_ITEMS,
    N_POOL,
    N_ROWS,
    N_SECOND,
    N_STACKS,
    POOL_FULL,
    ROWS_FULL,
    SECOND_FULL,
    STACKS_FULL,
)
from traceferry.model import Array, Table, Trace

PIECE = 1 << 16
FIRST_DEPTH = 1 << 8


class StackTable:
    """The trace's stacks with a hash table, for kernels that add to them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._n = -1
        self.refresh()

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self._prefix, self._frame, self._slots

    def refresh(self) -> int:
        """Adds rows that others have interned. Returns how many there are."""
        stacks = self._trace.stacks
        if len(stacks) != self._n:
            self._n = len(stacks)
            self._make_room(stacks["prefix"], stacks["frame"], max(1 << 10, 2 * self._n))
        return self._n

    def grow(self) -> None:
        """After a kernel found no room; what it has added is known by then."""
        self._make_room(self._prefix[: self._n], self._frame[: self._n], 2 * len(self._prefix))

    def add(self, n: int) -> None:
        """The kernel has added stacks until there were n."""
        if n > self._n:
            self._trace.stacks.extend(prefix=self._prefix[self._n : n], frame=self._frame[self._n : n])
            self._n = n

    def _make_room(self, prefix: Array, frame: Array, room: int) -> None:
        more = np.empty(room - len(prefix), np.int32)
        self._prefix, self._frame = np.concatenate((prefix, more)), np.concatenate((frame, more))
        self._slots = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
        sites_kernel.enter_stacks(self._prefix, self._frame, self._n, self._slots)


@dataclass
class _Stop:
    """buffers: what a kernel may go through; why: why it stopped."""

    buffers: Array
    why: int = ROWS_FULL


def _stops(log: Log, buffers: Array) -> Iterator[_Stop]:
    """Again and again until a kernel is done with the buffers."""
    for window in windows(log.source, buffers):
        stop = _Stop(window)
        while stop.why != DONE:
            yield stop


# ---------------------------------------------------------------- calls


@dataclass
class CallCounts:
    """Irregularities in the calls of a thread: leaves without an enter, calls closed by a leave below them, time stamps
    that fell, calls open at the end."""

    ignored: int = 0
    unwound: int = 0
    backwards: int = 0
    open_at_end: int = 0


def call_pieces(
    log: Log, buffers: Array, methods: Names, span: tuple[int, int], shift_ns: int, counts: CallCounts
) -> Iterator[Table]:
    """Balanced CALLS of a thread's buffers (as kernels take them). span: its first and last time on the event clock,
    which becomes the trace's by adding shift_ns. counts are set when the last piece has been made.

    Leaves without an enter are left out: methods of the runtime have leaves without enters.
    """
    state = log.layout.state()
    state[MAX_TS] = span[1]
    balancer = Balancer(span[0] + shift_ns)
    items = np.empty(FIRST_ITEMS, np.uint64)
    ts, key, frame, flags = (np.empty(PIECE, dtype) for dtype in ("i8", "i4", "i4", "u1"))
    for stop in _stops(log, buffers):
        stopped = stop.why = calls_kernel.calls(
            log.source.data, stop.buffers, *methods.arrays, shift_ns, ts, key, frame, flags, items, state
        )
        n = int(state[N_ROWS])
        if n:
            made = balancer.add(Raw(ts[:n], key[:n], frame[:n], flags[:n]), len(methods.frames))
            if len(made):
                yield made
        if stopped == ASKS_METHOD:
            methods.ask(int(state[ASKED]))
        elif stopped == ITEMS_FULL:
            items = room_for(items, int(state[N_ITEMS]))
    counts.ignored = int(state[N_IGNORED]) + balancer["n_orphans"]
    counts.unwound, counts.backwards = balancer["n_unwound"], balancer["n_backwards"]
    counts.open_at_end = balancer["depth"]
    if counts.open_at_end:
        yield balancer.close(span[1] + shift_ns)


def _as_long(numbers: Array, n: int) -> Array:
    """With zeros up to that length: who else goes through the log may name methods in between."""
    return numbers if len(numbers) == n else np.concatenate((numbers, np.zeros(n - len(numbers), np.int32)))


# ---------------------------------------------------------------- sites


@dataclass(frozen=True)
class Sites:
    """Rows of events and where they happened. at: offset; kind: first byte; ts: int64 ns on the event clock; a, b,
    c: the event's fields (of an allocation class or vtable, object, size); stack: int32."""

    at: Array
    kind: Array
    ts: Array
    a: Array
    b: Array
    c: Array
    stack: Array

    def take(self, rows: Array) -> Sites:
        return Sites(*(column[rows] for column in vars(self).values()))


def site_pieces(log: Log, buffers: Array, methods: Names, stacks: StackTable) -> Iterator[Sites]:
    """Allocations, throws, clauses, monitor and handle events of a thread's buffers."""
    state = log.layout.state()
    open_ids, open_frames, open_stacks = (np.empty(FIRST_DEPTH, np.int32) for _ in range(3))
    n_open = np.zeros(len(methods.frames), np.int32)
    items = np.empty(FIRST_ITEMS, np.uint64)
    for stop in _stops(log, buffers):
        n_open = _as_long(n_open, len(methods.frames))
        out, stack = np.empty(6 * PIECE, np.uint64), np.empty(PIECE, np.int32)
        state[N_STACKS] = stacks.refresh()
        stopped = stop.why = sites_kernel.sites(
            log.source.data, stop.buffers, *methods.arrays, open_ids, open_frames, open_stacks, n_open,
            *stacks.arrays, out, stack, items, state,
        )  # fmt: skip
        stacks.add(int(state[N_STACKS]))
        if stopped == ASKS_METHOD:
            methods.ask(int(state[ASKED]))
        elif stopped == DEPTH_FULL:
            open_ids, open_frames, open_stacks = grown(open_ids), grown(open_frames), grown(open_stacks)
        elif stopped == STACKS_FULL:
            stacks.grow()
        elif stopped == ITEMS_FULL:
            items = room_for(items, int(state[N_ITEMS]))
        if n := int(state[N_ROWS]):
            at, kind, ts, a, b, c = np.ascontiguousarray(out[: 6 * n].reshape(n, 6).T)
            yield Sites(at.view(np.int64), kind.astype(np.uint8), times(ts), a, b, c, stack[:n])


# ---------------------------------------------------------------- samples


@dataclass(frozen=True)
class Hits:
    """Samples, in the order of the file. ts: int64 ns on the event clock; tid: uint64, 0 before data version 11;
    stack: of the managed frames, -1 where there is none; addresses (uint64) of the i-th sample, the leaf first, are
    addresses[first[i]:first[i] + n[i]]."""

    ts: Array
    tid: Array
    stack: Array
    first: Array
    n: Array
    addresses: Array


def read_hits(log: Log, methods: Names, stacks: StackTable) -> Hits:
    state = log.layout.state()
    n_hits = int(log.stats["hits"].sum())
    out, stack = np.empty(4 * n_hits, np.uint64), np.empty(n_hits, np.int32)
    pool, items = np.empty(max(FIRST_ITEMS, n_hits), np.uint64), np.empty(FIRST_ITEMS, np.uint64)
    for stop in _stops(log, log.rows_with("hits")):
        state[N_STACKS] = stacks.refresh()
        stopped = stop.why = sites_kernel.hits(
            log.source.data, stop.buffers, *methods.arrays, *stacks.arrays, out, stack, pool, items, state
        )
        stacks.add(int(state[N_STACKS]))
        if stopped == ASKS_METHOD:
            methods.ask(int(state[ASKED]))
        elif stopped == STACKS_FULL:
            stacks.grow()
        elif stopped == POOL_FULL:
            pool = grown(pool, int(state[N_POOL]) + int(state[N_ITEMS]))
        elif stopped == ITEMS_FULL:
            items = room_for(items, int(state[N_ITEMS]))
    ts, tid, first, n = np.ascontiguousarray(out.reshape(-1, 4).T)
    return Hits(times(ts), tid, stack, first.view(np.int64), n.view(np.int64), pool[: int(state[N_POOL])])


# ---------------------------------------------------------------- moves, heap shots


def move_pieces(log: Log, buffers: Array) -> Iterator[Array]:
    """The moved objects of a thread's buffers: uint64 rows of the time on the event clock, old and new address."""
    state = log.layout.state()
    items, room = np.empty(FIRST_ITEMS, np.uint64), PIECE
    for stop in _stops(log, buffers):
        out = np.empty(3 * room, np.uint64)
        stopped = stop.why = heap_kernel.moves(log.source.data, stop.buffers, out, items, state)
        if stopped == ITEMS_FULL:
            items = room_for(items, int(state[N_ITEMS]))
        elif stopped == ROWS_FULL and state[N_ROWS] == 0:
            room *= 2
        if n := int(state[N_ROWS]):
            yield out[: 3 * n].reshape(n, 3)


@dataclass(frozen=True)
class HeapRows:
    """The contents of heap shots. objects: uint64 [n, 5]: time, address, class or vtable, size, how many references;
    references: uint64 addresses, one object's after the other's; roots: uint64 [n, 4], see `heap_kernel.heap`."""

    objects: Array
    references: Array
    roots: Array


def read_heap(log: Log, rows: Array) -> HeapRows:
    """rows: of the buffers."""
    state = log.layout.state()
    objects = np.empty(5 * int(log.stats["objects"][rows].sum()), np.uint64)
    references, held = np.empty(FIRST_ITEMS, np.uint64), np.empty(FIRST_ITEMS, np.uint64)
    items = np.empty(FIRST_ITEMS, np.uint64)
    for stop in _stops(log, log.buffers[rows].ravel()):
        stopped = stop.why = heap_kernel.heap(log.source.data, stop.buffers, objects, references, held, items, state)
        if stopped == POOL_FULL:
            references = grown(references, int(state[N_POOL]) + int(state[N_ITEMS]))
        elif stopped == SECOND_FULL:
            held = grown(held, 4 * (int(state[N_SECOND]) + int(state[N_ITEMS])))
        elif stopped == ITEMS_FULL:
            items = room_for(items, int(state[N_ITEMS]))
    return HeapRows(
        objects[: 5 * int(state[N_ROWS])].reshape(-1, 5),
        references[: int(state[N_POOL])],
        held[: 4 * int(state[N_SECOND])].reshape(-1, 4),
    )
