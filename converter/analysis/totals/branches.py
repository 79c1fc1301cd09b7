"""Adds up the branches that a processor recorded: by edge, by place and by function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from traceferry.analysis.totals._edges import EdgeTable
from traceferry.model import BRANCH_MISPREDICTED, BRANCH_PREDICTED, Array, Event, Table, Trace, distinct, sums


class Edges(NamedTuple):
    """Edges, each once. start, begin, end: int32 rows of the trace's stacks, as the columns start, from and to of
    `branches`; -1 is unknown. int64: taken, how often each was; mispredicted and predicted, of those of which
    that is known; cycles since the branch before, and timed, of how many they are known."""

    start: Array
    begin: Array
    end: Array
    taken: Array
    mispredicted: Array
    predicted: Array
    cycles: Array
    timed: Array

    def __len__(self) -> int:
        return len(self.start)


AMOUNTS = Edges._fields[3:]
# What functions have of branches, as comparisons count it beside what samples weigh, by the column of AMOUNTS. Cycles
# are those since the branch before.
EVENTS = {
    "taken": Event("taken-branches", "count", kind="branches"),
    "mispredicted": Event("mispredicted-branches", "count", kind="branches"),
    "cycles": Event("branch-cycles", "cycles", kind="branches"),
}


class EdgeGroups(NamedTuple):
    """Edges added up by a key. keys: int64 [n, m], each once, rising; amounts: int64 [n, 5], columns as AMOUNTS."""

    keys: Array
    amounts: Array


class BranchTotals:
    """Adds up branches of threads; the order in which they come does not matter."""

    def __init__(self) -> None:
        self._edges = EdgeTable()

    def add(self, branches: Table) -> Array:
        """Adds a thread's branches; returns what they have together: int64, as AMOUNTS."""
        found = np.zeros(len(AMOUNTS), np.int64)
        for piece in branches.pieces():
            outcome, cycles = piece["outcome"], piece["cycles"]
            self._edges.add(piece["start"], piece["from"], piece["to"], outcome, cycles)
            n_of = [np.count_nonzero(outcome == one) for one in (BRANCH_MISPREDICTED, BRANCH_PREDICTED)]
            amounts = len(piece), *n_of, sums.total(cycles), np.count_nonzero(cycles > 0)
            found = sums.plus(found, np.array(amounts, np.int64))
        return found

    def edges(self) -> Edges:
        """Returns what was added, by start, begin and end."""
        keys = self._edges.keys
        order = np.lexsort(keys.T[::-1])
        return Edges(*keys[order].T, *self._edges.amounts[order].T)


def _added_up(keys: Array, amounts: Array) -> EdgeGroups:
    """Returns equal keys as one, with the sum of what they have."""
    if not len(keys):
        return EdgeGroups(keys, amounts)
    order = np.lexsort(keys.T[::-1])
    keys, amounts = keys[order], amounts[order]
    is_first = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))
    return EdgeGroups(keys[is_first], np.add.reduceat(amounts, np.flatnonzero(is_first), axis=0))


def amounts_of(edges: Edges) -> Array:
    """int64 [n, 5]: the columns of AMOUNTS."""
    return np.stack([getattr(edges, name) for name in AMOUNTS], axis=1)


def by_place(trace: Trace, edges: Edges) -> EdgeGroups:
    """Returns the sums by the frame of the innermost function at the branch, and of that to which it went: -1 is
    unknown. The addresses of one line are one place."""
    keys = np.stack([_places(trace, side) for side in (edges.begin, edges.end)], axis=1)
    return _added_up(keys, amounts_of(edges))


def by_function(trace: Trace, edges: Edges) -> EdgeGroups:
    """Returns the sums by the function that holds the branch, and its code object: -1 is unknown."""
    frame = _innermost(trace, edges.begin)
    known = frame >= 0
    keys = [np.where(known, trace.frames[name][frame], -1).astype(np.int64) for name in ("func", "code")]
    return _added_up(np.stack(keys, axis=1), amounts_of(edges))


class OfFunction(NamedTuple):
    """The amount that a function has of an event of EVENTS. n: in how many branches at most."""

    event: Event
    func: int
    n: int
    amount: int


def of_functions(trace: Trace, totals: BranchTotals) -> Iterator[OfFunction]:
    """Yields what the functions that hold the branches have, without zeros."""
    groups = by_function(trace, totals.edges())
    funcs = distinct(groups.keys[:, 0])
    for func in funcs[funcs >= 0].tolist():
        amounts = groups.amounts[groups.keys[:, 0] == func].sum(axis=0).tolist()
        for name, event in EVENTS.items():
            if amount := amounts[AMOUNTS.index(name)]:
                yield OfFunction(event, func, min(amount, amounts[0]), amount)


def _innermost(trace: Trace, stack: Array) -> Array:
    return np.where(stack >= 0, np.append(trace.stacks["frame"], np.int32(-1))[stack], np.int32(-1))


def _places(trace: Trace, stack: Array) -> Array:
    """int64: of each stack one frame that stands for all of the same function, line and code object; where no line is
    known, of the same address."""
    frame = _innermost(trace, stack)
    used = distinct(frame[frame >= 0])
    if not len(used):
        return frame.astype(np.int64)
    columns = [trace.frames[name][used].astype(np.int64) for name in ("func", "line", "source", "code", "address")]
    columns[-1][columns[1] > 0] = -1
    _, first, group = np.unique(np.stack(columns, axis=1), axis=0, return_index=True, return_inverse=True)
    of_used = used[first][group.reshape(-1)]
    found: Array = np.where(frame >= 0, of_used[np.searchsorted(used, np.maximum(frame, used[0]))], -1)
    return found.astype(np.int64)
