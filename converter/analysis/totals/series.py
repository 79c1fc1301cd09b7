"""What is measured, and its amounts over time by call path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals._trees import halved
from traceferry.analysis.totals.rows import by_pair
from traceferry.model import Array, Event, Trace


@dataclass(frozen=True)
class Measure:
    """A kind of amounts. unit: "ns", "bytes", "count", or that of the samples' weights; is_timed: whether its amounts
    have times."""

    name: str
    unit: str
    is_timed: bool = True


TIME = Measure("time of calls", "ns")
CALLS = Measure("calls", "count")
SAMPLES = Measure("samples", "count")
ALLOCATED = Measure("allocated bytes", "bytes")
OBJECTS = Measure("allocated objects", "count")
FREED = Measure("freed bytes", "bytes")
# Said of an event whose counts were extrapolated.
SCALED = " (scaled)"


def measure_of(event: Event) -> Measure:
    """Returns the measure of the weights of an event's samples."""
    return Measure(event.name + SCALED * event.is_scaled, event.unit)


def unit_of(trace: Trace, measure: Measure) -> str:
    """Returns the unit of a measure of the trace: of samples that are amounts, theirs."""
    is_amount = measure == SAMPLES and trace.sample_unit != "samples"
    return trace.sample_unit if is_amount else measure.unit


def is_weighed(event: Event) -> bool:
    """Returns whether the samples of a trace's first event weigh something else than how many they are."""
    return event.unit != "samples" and (event.unit != "count" or event.kind not in ("tracepoint", "other"))


@dataclass
class Series:
    """Amounts of one measure in one thread, sorted by bucket, then node; each pair once.

    process: its place in the trace; thread: its place among the process's threads without views of sizes, -1 for a
    measure of a process; bucket: 0 in a measure without times; amount: int64, above 0.
    """

    process: int
    thread: int
    measure: Measure
    bucket: Array = field(default_factory=lambda: np.empty(0, np.int32))
    node: Array = field(default_factory=lambda: np.empty(0, np.int32))
    amount: Array = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, bucket: Array, node: Array, amount: Array) -> None:
        """Adds rows by bucket, then node, each pair once."""
        if not len(self.node):
            kept = amount > 0
            self.bucket, self.node, self.amount = bucket[kept], node[kept], amount[kept]
            return
        self.set(*(np.concatenate(pair) for pair in ((self.bucket, bucket), (self.node, node), (self.amount, amount))))

    def set(self, bucket: Array, node: Array, amount: Array) -> None:
        """Adds up what has the same bucket and node."""
        kept = amount > 0
        self.bucket, self.node, self.amount = by_pair(bucket[kept], node[kept], amount[kept])

    def part(self, n_rows: int) -> Series:
        """Returns so many rows of it, from the middle."""
        rows = slice((len(self.node) - n_rows) // 2, (len(self.node) + n_rows) // 2)
        columns = (column[rows] for column in (self.bucket, self.node, self.amount))
        return self.of(*columns)

    def of(self, bucket: Array, node: Array, amount: Array) -> Series:
        """Returns other amounts of the same measure and thread."""
        return Series(self.process, self.thread, self.measure, bucket, node, amount)


def coarser(series: Sequence[Series], halvings: int) -> list[Series]:
    """Returns them with parts of time of which each two become one, so many times."""
    found = []
    for batch in _batches(series, halvings):
        columns = batch.place, batch.node, batch.amount
        for _ in range(halvings):
            columns = halved(*columns)
        found += batch.apart(*columns, batch.bits - halvings)
    return found


def renumbered(series: Sequence[Series], node_of: Array) -> list[Series]:
    """Returns them with node_of[node] in place of each node, and the sums of what has the same one then."""
    found = []
    for batch in _batches(series):
        columns = by_pair(batch.place, node_of[batch.node], batch.amount)
        found += batch.apart(*columns, batch.bits)
    return found


class _Batch(NamedTuple):
    """Several series as one: a thread may have few amounts, and a recording many threads. bits: of a bucket's number;
    place: int32, which of the series, and below it the bucket."""

    series: Sequence[Series]
    bits: int
    place: Array
    node: Array
    amount: Array

    def apart(self, place: Array, node: Array, amount: Array, bits: int) -> list[Series]:
        """Returns the series with other amounts. bits: of the numbers of their buckets."""
        ends = np.searchsorted(place, np.arange(len(self.series) + 1, dtype=np.int64) << bits).tolist()
        bucket = place & np.int32((1 << bits) - 1)
        return [
            series.of(bucket[begin:end], node[begin:end], amount[begin:end])
            for series, begin, end in zip(self.series, ends[:-1], ends[1:], strict=True)
        ]


def _batches(series: Sequence[Series], least_bits: int = 0) -> Iterator[_Batch]:
    """Yields the series, as many at once as 31 bits can number with their buckets."""
    last = max((int(each.bucket[-1]) for each in series if len(each.bucket)), default=0)
    bits = max(last.bit_length(), least_bits)
    most = 1 << (31 - bits)
    for at in range(0, len(series), most):
        some = series[at : at + most]
        lengths = [len(each.bucket) for each in some]
        bucket, node, amount = (
            np.concatenate(columns) for columns in zip(*((s.bucket, s.node, s.amount) for s in some), strict=True)
        )
        nth = np.repeat(np.arange(len(some), dtype=np.int32), lengths)
        yield _Batch(some, bits, nth << np.int32(bits) | bucket, node, amount)
