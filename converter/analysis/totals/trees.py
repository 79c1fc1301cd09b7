"""Call trees with what each node has itself, over time: calls, samples, allocations and sizes of all threads in one
tree of call paths.

A node is a call path by function, category, tier and inlining: addresses and lines are left out. Amounts are those of
the node itself, without what is below; a consumer adds these up for the threads and the time that it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from traceferry.analysis.totals._trees import CallAmounts, add_to_ancestors, fold_stacks, inclusive_by_row
from traceferry.analysis.totals.series import (
    ALLOCATED,
    CALLS,
    FREED,
    OBJECTS,
    SAMPLES,
    TIME,
    Measure,
    Series,
    coarser,
    is_weighed,
    measure_of,
)
from traceferry.model import Array, Table, Thread, ThreadData, TraceBuilder, sums
from traceferry.native.arrays import longer
from traceferry.native.distinct import distinct_pairs, distinct_with_places
from traceferry.native.nodes import NodeTable

FIRST_BUCKETS = 512
# Amounts that are kept; with more, each two buckets of time become one.
MOST_AMOUNTS = 1 << 20
ROWS = 1 << 16
LARGEST = sums.LARGEST
KEY_COLUMNS = ("func", "category", "tier", "inlined")


class Keys:
    """The facts of each frame by which nodes are told apart: func, category, tier, and whether it is inlined. `rows`:
    int32 [keys, 4], in the order in which frames use them."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        self._index: dict[tuple[int, ...], int] = {}
        self.of_frame = np.empty(0, np.int32)

    @property
    def rows(self) -> Array:
        return np.array(list(self._index), np.int32).reshape(-1, len(KEY_COLUMNS))

    def update(self) -> Array:
        """Returns the key of each frame that the trace has by now."""
        known = len(self.of_frame)
        if len(self._trace.frames) > known:
            frames = self._trace.frames
            new = np.stack(
                [frames[name][known:] for name in KEY_COLUMNS[:3]] + [frames["inline_depth"][known:] > 0], axis=1
            )
            distinct, place = np.unique(new, axis=0, return_inverse=True)
            keys = [self._index.setdefault(tuple(row), len(self._index)) for row in distinct.tolist()]
            self.of_frame = np.concatenate((self.of_frame, np.array(keys, np.int32)[place.reshape(-1)]))
        return self.of_frame


class Trees:
    """The call trees of a trace. n_buckets: how many parts of equal length the recording's time has; width_ns: their
    length, by default the least with which they are the whole; of_stack: for each measure of samples the amounts of the
    trace's stacks, int64."""

    def __init__(
        self,
        trace: TraceBuilder,
        n_buckets: int = FIRST_BUCKETS,
        most_amounts: int = MOST_AMOUNTS,
        width_ns: int | None = None,
    ) -> None:
        self.keys = Keys(trace)
        self.nodes = NodeTable()
        self.series: list[Series] = []
        self.n_buckets = n_buckets
        self.width_ns = width_ns or max(sums.limited(trace.end_ts - trace.start_ts) // n_buckets + 1, 1)
        self.of_stack: dict[Measure, Array] = {}
        self._trace = trace
        self._most = most_amounts
        # The series of threads that are done, and their amounts.
        self._done, self._n_done = 0, 0
        # The thread that is added, and where its measures are in `series`.
        self._added: tuple[int, int] = -1, -1
        self._row_of: dict[Measure, int] = {}
        self._node_of_stack = np.empty(0, np.int32)
        # One for all threads: it has as much memory as there are nodes.
        self._amounts = CallAmounts(np.zeros(1, np.int64), self.nodes)
        self._end_of_bucket = np.empty(0, np.int64)

    # ------------------------------------------------------------ what is added

    def add(self, process: int, thread: int, data: ThreadData) -> int:
        """Adds the tables of a thread. Returns how many calls it has."""
        n_calls = self._add_calls(process, thread, data.calls)
        self._add_samples(process, thread, data.samples)
        for row, samples in data.other_samples.items():
            event = self._trace.events[row]
            if event.kind == "off-cpu":
                self._add_intervals(process, thread, measure_of(event), samples)
            else:
                self._add_weights(process, thread, measure_of(event), samples)
        self._add_allocations(process, thread, data.allocations)
        self._coarsen()
        self._finish()
        return n_calls

    def add_view(self, process: int, thread: Thread, data: ThreadData) -> None:
        """Adds a table of sizes that is shown as a thread: a measure of its own, without times."""
        measure = Measure(thread.name, thread.sample_unit, is_timed=False)
        for piece in data.samples.pieces():
            self._add_stacks(
                piece, np.zeros(len(piece), np.int32), [(self._one(process, -1, measure), piece["weight"])]
            )

    def _add_samples(self, process: int, thread: int, samples: Table) -> None:
        if not len(samples):
            return
        counted, sampling = self._one(process, thread, SAMPLES), self._trace.sampling
        weighed = None
        if sampling is not None and is_weighed(sampling):
            weighed = self._one(process, thread, measure_of(sampling))
        for piece in samples.pieces():
            n_samples = sampling.n_samples(piece) if sampling is not None else np.ones(len(piece), np.int64)
            weights = [(counted, n_samples), *([(weighed, piece["weight"])] if weighed is not None else [])]
            self._add_stacks(piece, self._bucket(piece["ts"]), weights)

    def _add_weights(self, process: int, thread: int, measure: Measure, samples: Table) -> None:
        weighed = self._one(process, thread, measure)
        for piece in samples.pieces():
            self._add_stacks(piece, self._bucket(piece["ts"]), [(weighed, piece["weight"])])

    def _add_intervals(self, process: int, thread: int, measure: Measure, samples: Table) -> None:
        """Adds samples that weigh how long they last: to each bucket of time what is in it."""
        weighed = self._one(process, thread, measure)
        for piece in samples.pieces():
            ts, weight = piece["ts"], np.maximum(piece["weight"], 0)
            end = ts + np.minimum(weight, np.maximum(self._trace.end_ts - ts, 0))
            first, last = self._bucket(ts), self._bucket(np.maximum(end - 1, ts))
            n = last - first + 1
            rows, nth = np.repeat(np.arange(len(n)), n), np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
            bucket, ends = first[rows] + nth, self._ends()
            begin = np.where(nth == 0, ts[rows], ends[np.maximum(bucket - 1, 0)])
            # What is beyond the recording's end is in its last bucket.
            until = np.where(nth == n[rows] - 1, ts[rows] + weight[rows], ends[bucket])
            self._add_stacks(piece.take(rows), bucket, [(weighed, until - begin)])

    def _add_allocations(self, process: int, thread: int, allocations: Table) -> None:
        if not len(allocations):
            return
        allocated, objects, freed = (self._one(process, thread, measure) for measure in (ALLOCATED, OBJECTS, FREED))
        for piece in allocations.pieces():
            bucket, size = self._bucket(piece["ts"]), piece["size"]
            amounts = [(allocated, np.maximum(size, 0)), (objects, (size > 0).astype(np.int64))]
            amounts += [(freed, sums.magnitudes(np.minimum(size, 0)))] if np.any(size < 0) else []
            self._add_stacks(piece, bucket, amounts)

    def _add_stacks(self, piece: Table, bucket: Array, amounts: Sequence[tuple[Series, Array]]) -> None:
        """Adds rows with stacks. amounts: what each row has of measures."""
        has_stack = piece["stack"] >= 0
        stack, bucket = piece["stack"][has_stack], bucket[has_stack]
        amounts = [(series, np.maximum(amount[has_stack], 0)) for series, amount in amounts]
        nodes = self._nodes_of_stacks()
        # Of the thread's stacks alone: the trace has those of all threads.
        used, place = distinct_with_places(np.ascontiguousarray(stack))
        for series, amount in amounts:
            total = self.of_stack.get(series.measure, np.zeros(0, np.int64))
            total = self.of_stack[series.measure] = longer(total, len(nodes))
            total[used] = sums.plus(total[used], sums.total_by(place, amount, len(used)))
        _add_rows(bucket, nodes[stack], amounts)

    def _add_calls(self, process: int, thread: int, calls: Table) -> int:
        """Halves the buckets on the way where the amounts become too many. Returns how many calls there are."""
        if not len(calls):
            return 0
        pending: list[tuple[Array, ...]] = []
        n_pending, shift, n_calls = 0, 0, 0
        for bucket, *rest in self._walked(calls):
            pending.append((bucket >> shift, *rest))
            n_pending += len(bucket)
            n_calls += sums.total(rest[-1])
            if n_pending > self._most:
                self._add_walked(process, thread, pending)
                pending, n_pending = [], 0
                before = self.n_buckets
                self._coarsen()
                shift += (before // self.n_buckets).bit_length() - 1
        if pending:
            self._add_walked(process, thread, pending)
        return sums.limited(n_calls)

    def _add_walked(self, process: int, thread: int, parts: list[tuple[Array, ...]]) -> None:
        bucket, node, ns, n_calls = (np.concatenate(column) for column in zip(*parts, strict=True))
        _add_rows(bucket, node, [(self._one(process, thread, TIME), ns), (self._one(process, thread, CALLS), n_calls)])

    def _walked(self, calls: Table) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yields (bucket, node, ns, calls) of a thread, in pieces."""
        amounts = self._amounts
        amounts.ends = self._ends()
        for piece in (p.take(slice(at, at + ROWS)) for p in calls.pieces() for at in range(0, len(p), ROWS)):
            columns = piece["ts"], piece["frame"], piece["flags"]
            found = amounts.add(*columns, self.keys.update(), piece.counts())
            if len(found[0]):
                yield found
        rest = amounts.rest()
        if len(rest[0]):
            yield rest

    # ------------------------------------------------------------ where it is added

    def _one(self, process: int, thread: int, measure: Measure) -> Series:
        if self._added != (process, thread):
            self._added, self._row_of = (process, thread), {}
        row = self._row_of.setdefault(measure, len(self.series))
        if row == len(self.series):
            self.series.append(Series(process, thread, measure))
        return self.series[row]

    def _bucket(self, ts: Array) -> Array:
        after_start = np.maximum(ts - np.int64(self._trace.start_ts), 0)
        bucket: Array = np.minimum(after_start // self.width_ns, self.n_buckets - 1).astype(np.int32)
        return bucket

    def _ends(self) -> Array:
        """Returns where the buckets of time end."""
        if len(self._end_of_bucket) != self.n_buckets:
            start, width = self._trace.start_ts, self.width_ns
            ends = [min(start + (i + 1) * width, LARGEST) for i in range(self.n_buckets)]
            self._end_of_bucket = np.array(ends, np.int64)
        return self._end_of_bucket

    def _nodes_of_stacks(self) -> Array:
        """Returns the node of each stack that the trace has by now."""
        first = len(self._node_of_stack)
        if len(self._trace.stacks) > first:
            stacks, key_of_frame = self._trace.stacks, self.keys.update()
            found = np.concatenate((self._node_of_stack, np.empty(len(stacks) - first, np.int32)))
            keys = key_of_frame[stacks["frame"]]
            fold_stacks(np.ascontiguousarray(stacks["prefix"]), keys, first, self.nodes, found)
            self._node_of_stack = found
        return self._node_of_stack

    def _coarsen(self) -> None:
        """Halves the buckets while there are too many amounts, counting only the series that are still added to."""
        while self.n_buckets > 1 and self._n_done + _n_amounts(self.series[self._done :]) > self._most:
            self.halve()

    def _finish(self) -> None:
        self._n_done += _n_amounts(self.series[self._done :])
        self._done = len(self.series)

    def coarsen_to(self, most_amounts: int) -> None:
        """Halves the buckets until there are at most so many amounts, or one bucket."""
        while self.n_buckets > 1 and _n_amounts(self.series) > most_amounts:
            self.halve()

    def halve(self) -> None:
        """Makes one bucket of each two."""
        self.n_buckets, self.width_ns, _ = self.coarser(self.n_buckets - 1)
        self.series = coarser(self.series, 1)
        self._n_done = _n_amounts(self.series[: self._done])

    # ------------------------------------------------------------ what comes out

    def coarser(self, most: int) -> tuple[int, int, int]:
        """Returns (number of buckets, their length in ns, how often each two become one so that they are at most so
        many)"""
        n, width_ns, halvings = self.n_buckets, self.width_ns, 0
        while n > most:
            n, width_ns, halvings = (n + 1) // 2, min(2 * width_ns, LARGEST), halvings + 1
        return n, width_ns, halvings

    def own(self, chosen: Callable[[Series], bool]) -> Array:
        """int64: what each node has itself in the chosen series together."""
        return self._own_of([each for each in self.series if chosen(each)])

    def own_by_measure(self) -> Iterator[tuple[Measure, Array]]:
        """Yields each measure, and what each node has itself of it: int64."""
        found: dict[Measure, list[Series]] = {}
        for series in self.series:
            found.setdefault(series.measure, []).append(series)
        for measure, of_measure in found.items():
            yield measure, self._own_of(of_measure)

    def _own_of(self, series: list[Series]) -> Array:
        if not series:
            return np.zeros(self.nodes.n, np.int64)
        node, amount = (np.concatenate(columns) for columns in zip(*((s.node, s.amount) for s in series), strict=True))
        return sums.total_by(node, amount, self.nodes.n)

    def calls_by_func(self) -> tuple[Array, Array, Array]:
        """Returns what `CallTotals.by_func` returns."""
        n_funcs, keys = len(self._trace.funcs), self.keys.rows
        func = np.ascontiguousarray(keys[:, 0])[self.nodes.key]
        n_calls, own_ns = (self.own(lambda s, m=measure: s.measure == m) for measure in (CALLS, TIME))  # type: ignore[misc]
        total_ns = inclusive_by_row(self.nodes.parent, func, func, own_ns, n_funcs)
        return sums.total_by(func, n_calls, n_funcs), total_ns, sums.total_by(func, own_ns, n_funcs)

    def total(self, own: Array) -> Array:
        """int64: what each node has with all below it."""
        found = own.copy()
        add_to_ancestors(self.nodes.parent, found)
        return found


def _add_rows(bucket: Array, node: Array, amounts: Sequence[tuple[Series, Array]]) -> None:
    """Adds the same rows to several series, each with amounts of its own, which are not negative."""
    buckets, nodes, place = distinct_pairs(*(np.ascontiguousarray(column, np.int32) for column in (bucket, node)))
    for series, amount in amounts:
        series.add(buckets, nodes, sums.total_by(place, amount, len(nodes)))


def _n_amounts(series: list[Series]) -> int:
    return sum(len(each.node) for each in series)


def nearest_kept(parent: Array, is_kept: Array) -> Array:
    """Returns for each node itself or the nearest one above that is kept, -1 is none."""
    at = np.where(is_kept, np.arange(len(parent)), parent)
    while True:
        further = np.where((at >= 0) & ~is_kept[at], at[at], at)
        if np.array_equal(further, at):
            return at
        at = further
