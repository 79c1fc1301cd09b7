"""Adds up accesses to memory that were sampled: by function, and by the level from which the data came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.model import Array, Trace, sums
from traceferry.model.categories import MEMORY_LEVEL


def access_events(trace: Trace) -> list[int]:
    """Returns the rows of the events whose samples are accesses, or tell how long something took."""
    rows = (
        row if event.leader < 0 else event.leader for row, event in enumerate(trace.events) if event.kind == "memory"
    )
    return sorted(set(rows))


def latency_event(trace: Trace, row: int) -> int | None:
    """Returns the row of the event that has the latencies of an event's samples, None where they are not known."""
    of_row = (at for at, event in enumerate(trace.events) if event.leader == row and event.kind == "memory")
    return next(of_row, None)


class LevelSums(NamedTuple):
    """Sums by function and level, each pair once. func: int64; level: of each, "" where it is not known; int64:
    samples; latency in cycles, and timed, of how many samples it is known."""

    func: Array
    level: list[str]
    samples: Array
    latency: Array
    timed: Array


class AccessTotals:
    """Adds up the samples of one event by stack."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._amounts = np.zeros((0, 3), np.int64)

    def add(self, stack: Array, latency: Array | None) -> None:
        """Adds a thread's samples. latency: of each, in cycles, 0 is unknown."""
        n = len(self._trace.stacks)
        self._amounts = np.concatenate((self._amounts, np.zeros((n - len(self._amounts), 3), np.int64)))
        known = stack >= 0
        cycles = np.zeros(len(stack), np.int64) if latency is None else latency
        for column, amount in enumerate((np.ones(len(stack), np.int64), cycles, (cycles > 0).astype(np.int64))):
            added = sums.total_by(stack[known], amount[known], n)
            self._amounts[:, column] = sums.plus(self._amounts[:, column], added)

    def by_level(self) -> LevelSums:
        """Returns the sums by function and level, in the order of both."""
        stacks = np.flatnonzero(self._amounts[:, 0])
        frame = self._trace.stacks["frame"][stacks]
        keys = np.stack([self._trace.frames[name][frame].astype(np.int64) for name in ("func", "category")], axis=1)
        pairs, of = np.unique(keys, axis=0, return_inverse=True)
        amounts = [sums.total_by(of.reshape(-1), column, len(pairs)) for column in self._amounts[stacks].T]
        names = [self._trace.strings[int(self._trace.categories["name"][row])] for row in pairs[:, 1].tolist()]
        levels = [name.removeprefix(MEMORY_LEVEL) if name.startswith(MEMORY_LEVEL) else "" for name in names]
        return LevelSums(pairs[:, 0], levels, *amounts)
