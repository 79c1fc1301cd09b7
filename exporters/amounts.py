"""What the call paths of a trace have themselves, for formats of stacks with numbers: no time, no order.

A path is one of functions; addresses and lines are left out. Amounts are those of `info`. These formats list all
functions of each path. Where they are too many together, deep paths lose those in their middle, and are one where they
are equal then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.portable import depths
from traceferry.analysis.totals.series import CALLS, SAMPLES, TIME, Measure, Series
from traceferry.analysis.totals.trees import Trees, nearest_kept
from traceferry.exporters.depths import CUT, INNERMOST, MAX_DEPTH
from traceferry.model import Array, TraceBuilder, distinct, sums
from traceferry.native.nodes import NodeTable

# Functions of all paths together, some seconds' work: with more, paths that are deeper than MAX_DEPTH are cut.
MOST_FUNCTIONS = 1 << 22
# Of these one path keeps so many, the first number with which those that are cut have no more together.
KEPT_OF_DEEP = (MAX_DEPTH, MAX_DEPTH // 4, MAX_DEPTH // 16)
# Paths that are cut at once.
PIECE = 1 << 12


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
        whole = Paths(self._trees.nodes.parent, func[self._trees.nodes.key])
        self.paths, self._path_of = self._fitting(whole)

    def _fitting(self, whole: Paths) -> tuple[Paths, Array]:
        """Returns the paths as they are written, and which of them each node is, int32."""
        depth = depths(whole.parent) + 1
        used = distinct(np.concatenate([series.node for series in self._trees.series] or [np.zeros(0, np.int32)]))
        deep = used[depth[used] > MAX_DEPTH]
        if not len(deep) or sums.total(depth[used]) <= MOST_FUNCTIONS:
            return whole, np.arange(len(depth), dtype=np.int32)
        strings, funcs = self.trace.strings, self.trace.funcs
        between = funcs.intern(name=strings.intern(CUT), kind=strings.intern("function"))
        for kept in KEPT_OF_DEEP:
            fitting, path_of, is_fitting = _cut(whole, depth, deep, between, kept)
            if is_fitting:
                break
        detail = f"deeper than {MAX_DEPTH}, to {kept} functions, where all have more than {MOST_FUNCTIONS:,} together"
        self.trace.report.note("callstack_cut", len(deep), where="paths", detail=detail)
        return fitting, path_of

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
        path = distinct(np.concatenate([self._path_of[series.node] for series in mine]))
        table = np.zeros((len(path), len(self.measures)), np.int64)
        for series in mine:
            table[:, self.measures.index(series.measure)] += self._by_path(series, path)
        yield from zip(path.tolist(), table.tolist(), strict=True)

    def _by_path(self, series: Series, path: Array) -> Array:
        return sums.total_by(np.searchsorted(path, self._path_of[series.node]), series.amount, len(path))


def _cut(whole: Paths, depth: Array, deep: Array, between: int, kept: int) -> tuple[Paths, Array, bool]:
    """Returns the paths of which those in `deep` keep so many functions, outermost and innermost ones as callstacks do;
    which of them each one was, int32; and whether those have no more functions together than MOST_FUNCTIONS, without
    which it ends early, unless they keep the least."""
    table = NodeTable()
    path_of = table.intern_tree(whole.parent.astype(np.int64), np.where(depth <= MAX_DEPTH, whole.func, -1))
    n_inner = kept * (INNERMOST + 1) // MAX_DEPTH - 1
    n_outer = kept - n_inner - 1
    last_outer = nearest_kept(whole.parent, depth <= n_outer)
    n_whole = table.n
    for at in range(0, len(deep), PIECE):
        piece = deep[at : at + PIECE]
        functions = [
            *_innermost(whole, piece, n_inner),
            np.full(len(piece), between, np.int32),
            *_innermost(whole, last_outer[piece], n_outer),
        ]
        lists = np.stack(functions, axis=1).reshape(-1)
        path_of[piece] = table.intern_lists(lists, kept * np.arange(1, len(piece) + 1, dtype=np.int64))
        if kept > KEPT_OF_DEEP[-1] and table.n - n_whole > MOST_FUNCTIONS:
            return whole, path_of, False
    return Paths(table.parent, table.key), path_of, len(distinct(path_of[deep])) * kept <= MOST_FUNCTIONS


def _innermost(paths: Paths, at: Array, n: int) -> Iterator[Array]:
    """Yields the functions of paths, from themselves on, n of each."""
    for _ in range(n):
        yield paths.func[at]
        at = paths.parent[at]
