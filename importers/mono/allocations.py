"""Map: the allocations of a thread, with the frees derived from tracking the objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.heap._allocations import tally
from traceferry.heap.deaths import Deaths
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.frames import Frames
from traceferry.importers.mono.threads import ThreadLifetime
from traceferry.importers.mono.walks import Sites, cut, site_pieces
from traceferry.model import ALLOCATIONS, Array, Table, TraceBuilder, rows_by_key
from traceferry.native.nodes import NodeTable
from traceferry.timeline.stacks import StackTable

# Allocations of a log that are kept, 16 bytes each; more of them are decoded again for each consumer.
KEPT = 1 << 23
# When an object is freed that does not die: later than all times.
NEVER = (1 << 63) - 1


class ClassSites(NodeTable):
    """Sites and types of allocations: pairs of a stack and the number of a type, numbered. All of a log are known when
    it is loaded."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._class_name = np.empty(0, np.int32)

    def in_trace(self, trace: TraceBuilder) -> SiteStacks:
        """Returns their stacks in a trace."""
        return trace.kept(self, lambda: SiteStacks(self, trace))

    def leaves(self, pairs: Array) -> tuple[Array, Array]:
        """Returns the stack and the class's frame of each pair."""
        return self.parent[pairs], self._frames.types.frames[self.key[pairs]]

    @property
    def class_name(self) -> Array:
        """Returns a string for each pair."""
        if len(self._class_name) < self.n:
            self._class_name = self._frames.class_names(self._frames.types.frames[self.key])
        return self._class_name


class SiteStacks:
    """The stacks of sites in a trace, with the class as the leaf: they are made for those sites that are used."""

    def __init__(self, sites: ClassSites, trace: TraceBuilder) -> None:
        self._sites = sites
        self._trace = trace
        self._leaf = np.full(sites.n, -1, np.int32)

    def intern(self, pairs: Array) -> None:
        """Makes their stacks now: a table must not add stacks when its columns are read."""
        if self._leaf.min(initial=0) >= 0:
            return
        new = np.flatnonzero((np.bincount(pairs, minlength=len(self._leaf)) > 0) & (self._leaf < 0))
        prefix, frame = self._sites.leaves(new)
        for nth in np.lexsort((frame, prefix)).tolist():
            self._leaf[new[nth]] = self._trace.stacks.intern(prefix=int(prefix[nth]), frame=int(frame[nth]))

    def of(self, pairs: Array) -> Array:
        """Returns the stacks of pairs that `intern` knows."""
        return self._leaf.take(pairs)


class Rows(NamedTuple):
    """Allocations. ts: int64; size: int64, in bytes; pair: of ClassSites; number: int64, that of the object."""

    ts: Array
    size: Array
    pair: Array
    number: Array

    def take(self, rows: Array) -> Rows:
        return Rows._make(column.take(rows) for column in self)


class _Made(NamedTuple):
    """Allocations of a block, one behind the other: rows of a table."""

    block: Rows
    begin: int
    end: int

    @property
    def n(self) -> int:
        return self.end - self.begin

    def column(self, name: str) -> Array:
        column: Array = getattr(self.block, name)[self.begin : self.end]
        return column


class _Freed(NamedTuple):
    """Objects of a block that are freed at one time: rows of a table."""

    block: Rows
    rows: Array
    ts: int

    @property
    def n(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Array:
        if name == "ts":
            return np.full(self.n, self.ts)
        column: Array = getattr(self.block, name).take(self.rows)
        return -column if name == "size" else column

    def alone(self) -> _Freed:
        """Returns the same, which does not hold what else there is of the block."""
        return _Freed(self.block.take(self.rows), np.arange(self.n), self.ts)


@dataclass
class ThreadAllocations:
    """The allocations of one thread, decoded once if they are kept. given: for each block the numbers of its objects,
    in ranges, as they are given from collection to collection."""

    log: Log
    frames: Frames
    stacks: StackTable
    pairs: ClassSites
    thread: ThreadLifetime
    keeps: bool
    given: list[list[range]] = field(default_factory=list)
    _kept: list[tuple[Array, ...]] | None = None

    def decoded(self) -> Iterator[Sites]:
        """Yields them as they are decoded, with what else there is."""
        kept: list[tuple[Array, ...]] = []
        buffers = self.log.buffers[self.thread.buffers]
        methods, types = self.frames.methods, self.frames.types
        for sites in site_pieces(self.log, buffers, methods, types, self.stacks, self.pairs):
            if self.keeps and sites.is_block:
                size = sites.size.astype(np.uint32 if sites.size.max() < 1 << 32 else np.int64)
                kept.append((cut(sites.ts), size, cut(sites.pair)))
            yield sites
        self._kept = kept if self.keeps else None

    def pieces(self) -> Iterator[Rows]:
        """ts: on the event clock."""
        blocks = self._kept or ((of.ts, of.size, of.pair) for of in self.decoded() if of.is_block)
        for (ts, size, pair), given in zip(blocks, self.given, strict=True):
            numbers = np.concatenate([np.arange(part.start, part.stop) for part in given])
            yield Rows(ts, size.astype(np.int64), pair, numbers)


@dataclass
class Allocations:
    """The rows of the allocations of one thread. died, step_ts: see `identity.Known`; span: the first and last time of
    the log, on the event clock. freed: of each block that is kept and was gone through, the rows of the objects that
    are freed, by time: 2 bytes each."""

    made: ThreadAllocations
    stacks: SiteStacks
    died: Deaths
    step_ts: Array
    span: tuple[int, int]
    shift_ns: int
    freed: list[dict[int, Array]] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        died = (self.died.take(np.arange(part.start, part.stop)) for parts in self.made.given for part in parts)
        return sum(len(part) + int(np.count_nonzero(part >= 0)) for part in died)

    def pieces(self) -> Iterator[Table]:
        """Yields ALLOCATIONS, by time: a free has the time of the collection in which the object died."""
        # Frees that are later than what was yielded, by time: a collection frees many objects at once.
        waiting: defaultdict[int, list[_Freed]] = defaultdict(list)
        now = self.span[0] + self.shift_ns
        # Step -1, none, finds the last element.
        step_ts = np.append(self._on_trace(self.step_ts), NEVER)
        for nth, block in enumerate(self.made.pieces()):
            made = block._replace(ts=self._rising(block.ts, now))
            now = int(made.ts[-1])
            if nth < len(self.freed):
                freed_rows = self.freed[nth]
            else:
                self.stacks.intern(made.pair)
                freed_rows = self._freed_rows(made, step_ts)
            for ts, rows in freed_rows.items():
                freed = _Freed(made, rows, ts)
                waiting[ts].append(freed if ts <= now else freed.alone())
            due = sorted(ts for ts in waiting if ts <= now)
            yield self._table(list(_merged(made, [part for ts in due for part in waiting.pop(ts)])))
        if waiting:
            yield self._table([part for ts in sorted(waiting) for part in waiting[ts]])

    def totals(self) -> Array:
        """See `Table.totals`: by pair, without bringing allocations and frees in the order of time."""
        pairs, amounts = self.made.pairs, np.zeros((0, 4), np.int64)
        for made in self.made.pieces():
            amounts = np.concatenate((amounts, np.zeros((pairs.n - len(amounts), 4), np.int64)))
            tally(made.pair, made.size, amounts)
            self.stacks.intern(np.flatnonzero(amounts.any(axis=1)))
            tally(made.pair, np.where(self.died.take(made.number) >= 0, -made.size, 0), amounts)
        used = np.flatnonzero(amounts.any(axis=1))
        return np.column_stack((pairs.class_name[used], self.stacks.of(used), amounts[used]))

    def _freed_rows(self, made: Rows, step_ts: Array) -> dict[int, Array]:
        """Returns the rows of a block whose objects are freed, by time, and keeps them if blocks are kept."""
        freed_ts = np.maximum(step_ts.take(self.died.take(made.number)), made.ts)
        dtype = np.min_scalar_type(len(made.ts) - 1)
        found = {ts: rows.astype(dtype) for ts, rows in rows_by_key(freed_ts).items() if ts != NEVER}
        if self.made.keeps:
            self.freed.append(found)
        return found

    def _on_trace(self, ts: Array) -> Array:
        return np.clip(ts, *self.span) + self.shift_ns

    def _rising(self, ts: Array, first: int) -> Array:
        """Returns times on the trace's clock, none of them before the first one or the one before it."""
        if len(ts) and first <= ts[0] + self.shift_ns and ts[-1] <= self.span[1] and np.all(ts[1:] >= ts[:-1]):
            return ts + self.shift_ns  # already so, as mostly
        return np.maximum.accumulate(np.maximum(self._on_trace(ts), first))

    def _table(self, parts: Sequence[_Made | _Freed]) -> Table:
        def column(name: str) -> Array:
            return np.concatenate([part.column(name) for part in parts])

        return _LazyTable(sum(part.n for part in parts), {
            "ts": lambda: column("ts"), "size": lambda: column("size"), "object": lambda: column("number"),
            "class_name": lambda: self.made.pairs.class_name.take(column("pair")),
            "stack": lambda: self.stacks.of(column("pair")),
        })  # fmt: skip


def _merged(made: Rows, freed: Sequence[_Freed]) -> Iterator[_Made | _Freed]:
    """Yields all by time; that of freed rises. What is allocated comes before what is freed at the same time."""
    begin = 0
    for part in freed:
        end = int(np.searchsorted(made.ts, part.ts, side="right"))
        yield from (_Made(made, begin, end), part)
        begin = end
    yield _Made(made, begin, len(made.ts))


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
