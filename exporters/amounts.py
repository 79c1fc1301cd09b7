"""What the call paths of a trace have themselves, for formats of stacks with numbers: no time, no order.

A path is one of functions; addresses and lines are left out. Amounts are those of `info`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.trees import CALLS, SAMPLES, TIME, Measure, Trees
from traceferry.model import Array, TraceBuilder, distinct


class Paths(NamedTuple):
    """parent: int32 of each path, -1 is none, smaller than the path; func: int32, its function."""

    parent: Array
    func: Array

    def of(self, path: int) -> Iterator[int]:
        """Yields the functions of a path, the innermost first."""
        while path >= 0:
            yield int(self.func[path])
            path = int(self.parent[path])


class ThreadAmounts(NamedTuple):
    """The amounts of a thread, or of what belongs to none of a process's. process, thread: names, "" is none; amounts:
    int64 of each measure and path that has some, as (path, amount of each measure)."""

    process: str
    thread: str
    amounts: Iterator[tuple[int, list[int]]]


class Amounts:
    """Goes through the trace once. measures: what it has, the main one first: time of calls, or samples."""

    def __init__(self, trace: TraceBuilder, progress: Callable[[int], None]) -> None:
        self.trace = trace
        self._trees = Trees(trace, n_buckets=1)
        collect(trace, self._trees, progress)
        found = dict.fromkeys(series.measure for series in self._trees.series)
        first = [measure for measure in (TIME, SAMPLES) if measure in found][:1]
        self.measures: list[Measure] = [*first, *(one for one in found if one not in first and one != CALLS)]
        self.measures += [one for one in found if one == CALLS]
        func = self._trees.keys.rows[:, 0]
        self.paths = Paths(self._trees.nodes.parent, func[self._trees.nodes.key])

    def of_threads(self) -> Iterator[ThreadAmounts]:
        """Yields the threads in the trace's order; their paths rise."""
        owners = dict.fromkeys((series.process, series.thread) for series in self._trees.series)
        for process, thread in sorted(owners):
            of = self.trace.processes[process]
            threads = [one for one in of.threads if not one.sample_unit]
            name = f"{threads[thread].name} ({threads[thread].tid})" if thread >= 0 else ""
            yield ThreadAmounts(f"{of.name} ({of.pid})", name, self._rows(process, thread))

    def _rows(self, process: int, thread: int) -> Iterator[tuple[int, list[int]]]:
        mine = [one for one in self._trees.series if (one.process, one.thread) == (process, thread)]
        path = distinct(np.concatenate([series.node for series in mine]))
        table = np.zeros((len(path), len(self.measures)), np.int64)
        for series in mine:
            table[np.searchsorted(path, series.node), self.measures.index(series.measure)] += series.amount
        yield from zip(path.tolist(), table.tolist(), strict=True)
