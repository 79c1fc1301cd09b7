"""Calls as samples of their call paths: for exporters that show instrumented calls as stacks.

Calls are read in pieces, so that memory does not grow with a thread's length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from traceferry.common.ahead import made_ahead
from traceferry.model import Array, Table
from traceferry.native.nodes import NodeTable
from traceferry.timeline._paths import PathWalk, TimePacker, unpack_differences, unpack_durations

FOREVER = 2**63 - 1
ROWS = 1 << 16  # of calls, at a time
MOST = 1 << 26


class CallPaths(NodeTable):
    """Interns the call paths of any number of threads: a parent is the path of the caller, a key is a frame."""

    def samples(self, calls: Table, longest: int = FOREVER, jobs: int = 1) -> Iterator[tuple[Array, Array]]:
        """See `path_samples`. jobs: with several, calls are made, and followed, in threads of their own."""
        if jobs == 1:
            return path_samples(self, _pieces(calls), longest)
        return made_ahead(path_samples(self, made_ahead(_pieces(calls)), longest))


def path_samples(tree: NodeTable, calls: Iterable[Table], longest: int = FOREVER) -> Iterator[tuple[Array, Array]]:
    """Yields (int64 ts in ns, int32 path) after each change that lasts, in pieces; path -1 while no call is open. A
    path that lasts more than `longest` ns is repeated at its end. See `PathWalk`. tree: of paths; calls: in pieces."""
    walk = PathWalk(tree, longest)
    for piece in calls:
        yield walk.add(piece["ts"], piece["frame"], piece["flags"])
    last = walk.end()
    if len(last[0]):
        yield last


class SampleTimes:
    """The times of samples, for a writer of columns: `stacks` gives the samples' stacks, then
    `differences` and `durations` the others.

    Up to MOST samples are kept, two bytes each; times of more are made from the calls again.
    """

    def __init__(self, make: Callable[[], Iterator[tuple[Array, Array]]]) -> None:
        """make: the samples, as `CallPaths.samples` gives them."""
        self._make = make
        self._packed: list[tuple[Array, Array]] = []
        self._first_ts = self.n = 0

    def stacks(self) -> Iterator[Array]:
        """Yields int32, in pieces; to be gone through once, and then n is how many they were."""
        for packed, stack in self._pack():
            if self.n + len(stack) <= MOST:
                self._packed.append(packed)
            else:
                self._packed.clear()
            self.n += len(stack)
            yield stack

    def differences(self, zero: int = 0) -> Iterator[Array]:
        """Yields int64 ns since the sample before, of the first since `zero`, in pieces."""
        if self.n:
            yield np.array([self._first_ts - zero])
        for packed in self._all_packed():
            yield unpack_differences(*packed)

    def durations(self) -> Iterator[Array]:
        """Yields int64 ns, in pieces: for how long a call is open from there on."""
        for packed in self._all_packed():
            yield unpack_durations(*packed)
        if self.n:
            yield np.zeros(1, np.int64)

    def _all_packed(self) -> Iterable[tuple[Array, Array]]:
        return self._packed if self.n <= MOST else (packed for packed, _ in self._pack())

    def _pack(self) -> Iterator[tuple[tuple[Array, Array], Array]]:
        """Yields ((times, long ones), stacks)."""
        packer = TimePacker()
        for ts, stack in self._make():
            packed = packer.add(ts, stack)
            self._first_ts = packer.first_ts
            yield packed, stack


def _pieces(calls: Table) -> Iterator[Table]:
    """Yields at most ROWS rows at a time, so that what is made of them stays in the processor's cache."""
    for piece in calls.pieces():
        for at in range(0, len(piece), ROWS):
            yield piece.take(slice(at, at + ROWS))
