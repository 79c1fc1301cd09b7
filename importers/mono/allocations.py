"""Map: the allocations of a thread, with the frees derived from tracking the objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from traceferry.heap import heap_kernel
from traceferry.importers.mono.decode import PIECE, Log
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.threads import NONE, ThreadLifetime
from traceferry.importers.mono.walks import Nodes, Sites, StackTable, site_pieces
from traceferry.model import ALLOCATIONS, Array, Table, Trace

# Allocations of a log that are kept, 16 bytes each; more of them are decoded again for each consumer.
KEPT = 1 << 23
END_OF_LOG = (1 << 63) - 1


@dataclass(frozen=True)
class Numbers:
    """The numbers of one thread's allocations, in their order: ranges, as numbers are given from collection to
    collection. first: of each range; until: how many allocations lie in it and those before."""

    first: Array
    until: Array

    def of(self, row: int, n: int) -> Array:
        """Those of n allocations from `row` on; int64."""
        return np.concatenate([NONE, *(np.arange(*part) for part in self.ranges(row, n))])

    def taken(self, column: Array, row: int, n: int) -> Array:
        """The values of a column of all numbers for those."""
        return np.concatenate([column[:0], *(column[first:after] for first, after in self.ranges(row, n))])

    def ranges(self, row: int, n: int) -> Iterator[tuple[int, int]]:
        """The same as (first number, the one after the last)."""
        part = int(np.searchsorted(self.until, row, side="right"))
        end = row + n
        while row < end:
            until = int(self.until[part])
            after = int(self.first[part]) + until - (int(self.until[part - 1]) if part else 0)
            yield after - (until - row), after - max(until - end, 0)
            row, part = until, part + 1


class ClassSites(Nodes):
    """Where allocated and of which type: pairs of a stack and the number of a type, numbered."""

    def __init__(self, trace: Trace, frames: Frames) -> None:
        super().__init__()
        self._trace = trace
        self._frames = frames
        self._leaf = self._class_name = np.empty(0, np.int32)

    def intern(self, pairs: Array) -> None:
        """Makes their stacks now: a table must not add stacks when its columns are read."""
        if len(self._leaf) == len(self) and self._leaf.min() >= 0:
            return
        self._leaf = np.append(self._leaf, np.full(len(self) - len(self._leaf), -1, np.int32))
        new = np.flatnonzero((np.bincount(pairs, minlength=len(self)) > 0) & (self._leaf < 0))
        prefix, frame = self.parent[new], self._frames.types.frames[self.number[new]]
        for nth in np.lexsort((frame, prefix)).tolist():
            self._leaf[new[nth]] = self._trace.stacks.intern(prefix=int(prefix[nth]), frame=int(frame[nth]))

    def stacks(self, pairs: Array) -> Array:
        """The stacks with the class as the leaf, of pairs that `intern` knows."""
        return self._leaf.take(pairs)

    def class_names(self, pairs: Array) -> Array:
        """Strings."""
        if len(self._class_name) < len(self):
            self._class_name = self._frames.class_names(self._frames.types.frames[self.number])
        return self._class_name.take(pairs)


@dataclass(frozen=True)
class Made:
    """A piece of a thread's allocations. ts: int64 on the event clock; size: in bytes, int64, or uint32 if all are
    small; pair: of ClassSites."""

    ts: Array
    size: Array
    pair: Array


@dataclass
class ThreadAllocations:
    """The allocations of one thread, decoded once if they are kept. numbers: those of the objects."""

    log: Log
    frames: Frames
    stacks: StackTable
    pairs: ClassSites
    thread: ThreadLifetime
    keeps: bool
    numbers: Numbers = field(default_factory=lambda: Numbers(NONE, NONE))
    _kept: list[Made] | None = None

    def decoded(self) -> Iterator[Sites]:
        """As they are decoded, with what else there is."""
        blocks, kept = _Blocks(), list[Made]()
        buffers = self.log.buffers[self.thread.buffers].ravel()
        methods, types = self.frames.methods, self.frames.types
        for sites in site_pieces(self.log, buffers, methods, types, self.stacks, self.pairs):
            if self.keeps:
                kept += blocks.add(sites)
            yield sites
        self._kept = kept if self.keeps else None

    def pieces(self) -> Iterator[Made]:
        """In blocks."""
        if self._kept is not None:
            yield from self._kept
        else:
            blocks = _Blocks()
            for sites in self.decoded():
                yield from blocks.add(sites)


class _Blocks:
    """Allocations in blocks of PIECE rows, counting with them the other events, and none longer than a window."""

    def __init__(self) -> None:
        self._parts: list[Made] = []
        self._n = 0

    def add(self, sites: Sites) -> Iterator[Made]:
        """The blocks that are complete now."""
        edge, left = 0, PIECE - self._n
        self._n += len(sites.ts) + len(sites.row)
        if self._n > PIECE:
            edge = left - int(np.searchsorted(sites.row + np.arange(len(sites.row)), left))
            yield from self._taken(sites, 0, edge)
            self._n -= PIECE
        if sites.is_last:
            yield from self._taken(sites, edge, len(sites.ts))
            self._n = 0
        else:
            self._put(sites, edge, len(sites.ts))

    def _put(self, sites: Sites, begin: int, end: int) -> None:
        if begin < end:
            size = sites.size[begin:end]
            size = size.astype(np.uint32 if size.max() < 1 << 32 else np.int64)
            self._parts.append(Made(sites.ts[begin:end], size, sites.pair[begin:end]))

    def _taken(self, sites: Sites, begin: int, end: int) -> Iterator[Made]:
        """With these rows, one block."""
        self._put(sites, begin, end)
        if self._parts:
            columns = zip(*(vars(part).values() for part in self._parts), strict=True)
            yield Made(*(np.concatenate(column) for column in columns))
            self._parts = []


@dataclass(frozen=True)
class Allocations:
    """The rows of the allocations of one thread. died, step_ts: see `identity.Known`; span: the first and last time of
    the log, on the event clock."""

    made: ThreadAllocations
    died: Array
    step_ts: Array
    span: tuple[int, int]
    shift_ns: int

    @property
    def n_rows(self) -> int:
        n = int(self.made.log.stats["alloc"][self.made.thread.buffers].sum())
        ranges = self.made.numbers.ranges(0, n)
        return n + sum(int(np.count_nonzero(self.died[first:after] >= 0)) for first, after in ranges)

    def pieces(self) -> Iterator[Table]:
        """ALLOCATIONS, by time: a free has the time of the collection in which the object died."""
        row = 0
        waiting = _Waiting()
        now = self.span[0] + self.shift_ns
        for made in self.made.pieces():
            ts = np.maximum.accumulate(np.maximum(np.clip(made.ts, *self.span) + self.shift_ns, now))
            now = int(ts[-1])
            numbers = self.made.numbers.of(row, len(ts))
            died = self.made.numbers.taken(self.died, row, len(ts))
            row += len(ts)
            allocated = (ts, made.size.astype(np.int64), made.pair, numbers)
            self.made.pairs.intern(made.pair)
            waiting.add(*self._frees(*allocated, died))
            yield self._table(list(_merged(allocated, waiting.until(now))))
        if left := waiting.until(END_OF_LOG):
            yield self._table(left)

    def totals(self) -> Array:
        """See `Table.totals`: by pair, without bringing allocations and frees in the order of time."""
        pairs, row = self.made.pairs, 0
        amounts = np.zeros((0, 4), np.int64)
        for made in self.made.pieces():
            size = made.size.astype(np.int64)
            died = self.made.numbers.taken(self.died, row, len(size))
            row += len(size)
            amounts = np.concatenate((amounts, np.zeros((len(pairs) - len(amounts), 4), np.int64)))
            heap_kernel.tally(made.pair, size, amounts)
            pairs.intern(np.flatnonzero(amounts.any(axis=1)))
            heap_kernel.tally(made.pair, np.where(died >= 0, -size, 0), amounts)
        used = np.flatnonzero(amounts.any(axis=1))
        return np.column_stack((pairs.class_names(used), pairs.stacks(used), amounts[used]))

    def _frees(self, ts: Array, size: Array, pair: Array, numbers: Array, died: Array) -> Rows:
        dead = np.flatnonzero(died >= 0)
        step_ts = np.clip(self.step_ts, *self.span) + self.shift_ns
        return np.maximum(step_ts[died[dead]], ts[dead]), -size[dead], pair[dead], numbers[dead]

    def _table(self, parts: Sequence[Rows]) -> Table:
        pairs = self.made.pairs
        ts, size, pair, numbers = (partial(_joined, columns) for columns in zip(*parts, strict=True))
        return _LazyTable(sum(len(part[0]) for part in parts), {
            "ts": ts, "size": size, "class_name": lambda: pairs.class_names(pair()),
            "stack": lambda: pairs.stacks(pair()), "object": numbers,
        })  # fmt: skip


class _LazyTable(Table):
    """ALLOCATIONS, of which each column is made when it is asked for: writers of columns ask for one of them."""

    def __init__(self, n: int, make: dict[str, Callable[[], Array]]) -> None:
        self.spec = ALLOCATIONS
        self._n = n
        self._make = make
        self._made: dict[str, Array] = {}

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, name: str) -> Array:
        if name not in self._made:
            self._made[name] = self._make[name]()
        return self._made[name]

    @property
    def columns(self) -> dict[str, Array]:  # type: ignore[override]
        return {column.name: self[column.name] for column in self.spec.columns}


def _joined(columns: Sequence[Array]) -> Array:
    return np.concatenate(columns)


Rows = tuple[Array, Array, Array, Array]  # ts on the trace's clock, size, pair, number


def _merged(allocated: Rows, freed: Sequence[Rows]) -> Iterator[Rows]:
    """By time; the rows of each part of freed have one time, which rises from part to part. What is allocated comes
    before what is freed at the same time."""
    begin = 0
    for part in freed:
        end = int(np.searchsorted(allocated[0], part[0][0], side="right"))
        ts, size, pair, numbers = (column[begin:end] for column in allocated)
        yield ts, size, pair, numbers
        yield part
        begin = end
    ts, size, pair, numbers = (column[begin:] for column in allocated)
    yield ts, size, pair, numbers


class _Waiting:
    """Frees that are later than what was yielded, by their time: a collection frees many objects at once. Of each part
    all rows have one time."""

    def __init__(self) -> None:
        self._at: dict[int, list[Rows]] = {}

    def add(self, ts: Array, *others: Array) -> None:
        order = np.argsort(ts, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(ts[order])) + 1) if len(order) else []:
            size, pair, numbers = (column[rows] for column in others)
            self._at.setdefault(int(ts[rows[0]]), []).append((ts[rows], size, pair, numbers))

    def until(self, ts: int) -> list[Rows]:
        """Those of up to this time, which wait no longer."""
        due = sorted(time for time in self._at if time <= ts)
        return [rows for time in due for rows in self._at.pop(time)]
