"""Calls as samples of their call paths, and call paths as a table of (prefix, frame): for exporters that show
instrumented calls as stacks.

Calls are read in pieces, so that memory does not grow with a thread's length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from traceferry.kernels.tables import Nodes, doubled
from traceferry.model import Array, Table
from traceferry.timeline import paths_kernel as stacks_kernel

FOREVER = 2**63 - 1
ROWS = 1 << 16  # of calls, at a time
STATE_SIZE = 9
MOST = 1 << 26
# Indices into the kernels' state.
ROW, N_OUT, LAST, LAST_TS, N_SAMPLES, SAMPLE_TS, SAMPLE, N_STACKS = 0, 1, 3, 4, 5, 6, 7, 8


class CallPaths(Nodes):
    """Interns the call paths of any number of threads. A prefix is always smaller than its stack."""

    prefix, frame = Nodes.parent, Nodes.key

    def samples(self, calls: Table, longest: int = FOREVER) -> Iterator[tuple[Array, Array]]:
        """(int64 ts in ns, int32 stack) after each change that lasts, in pieces; stack -1 while no call is open. A
        stack that lasts more than `longest` ns is repeated at its end. See `walk_calls`."""
        state, path = np.zeros(STATE_SIZE, np.int64), np.empty(1 << 8, np.int32)
        for piece in _pieces(calls):
            n = len(piece)
            out_ts, out_stack = np.empty(2 * n, np.int64), np.empty(2 * n, np.int32)
            state[ROW], state[N_OUT], state[N_STACKS] = 0, 0, self.n
            while True:
                stacks_kernel.walk_calls(
                    piece["ts"], piece["frame"], piece["flags"], longest, state, path, *self.columns, out_ts, out_stack
                )
                self.n = int(state[N_STACKS])
                if state[ROW] == n:
                    break
                if self.n == self.capacity:
                    self.reserve(self.n + 1)
                else:
                    path = doubled(path)
            yield out_ts[: state[N_OUT]], out_stack[: state[N_OUT]]
        if state[LAST]:
            again = int(state[N_SAMPLES] and state[LAST_TS] - state[SAMPLE_TS] > longest)
            stack = np.array([state[SAMPLE], -1], np.int32)[1 - again :]
            yield np.full(len(stack), state[LAST_TS]), stack


class SampleTimes:
    """The times of samples, for a writer of columns: `stacks` gives the samples' stacks, then `pieces` their times.

    Up to MOST samples are kept, two bytes each; times of more are made from the calls again.
    """

    def __init__(self, make: Callable[[], Iterator[tuple[Array, Array]]]) -> None:
        """make: the samples, as `CallPaths.samples` gives them."""
        self._make = make
        self._packed: list[tuple[Array, Array]] = []
        self._first_ts = self.n = 0

    def stacks(self) -> Iterator[Array]:
        """int32, in pieces; to be gone through once, and then n is how many they were."""
        for packed, stack in self._pack():
            if self.n + len(stack) <= MOST:
                self._packed.append(packed)
            else:
                self._packed.clear()
            self.n += len(stack)
            yield stack

    def pieces(self) -> Iterator[tuple[Array, Array]]:
        """(int64 ts, int64 duration) in ns: for how long a call is open from there on."""
        ts = self._first_ts
        for packed, long_ns in self._packed if self.n <= MOST else (packed for packed, _ in self._pack()):
            out_ts, out_ns = np.empty(len(packed), np.int64), np.empty(len(packed), np.int64)
            ts = stacks_kernel.unpack_times(packed, long_ns, ts, out_ts, out_ns)
            yield out_ts, out_ns
        if self.n:
            # Of the last one, after all calls.
            yield np.array([ts]), np.zeros(1, np.int64)

    def _pack(self) -> Iterator[tuple[tuple[Array, Array], Array]]:
        """((times, long ones), stacks)"""
        state = np.zeros(4, np.int64)
        for ts, stack in self._make():
            if state[0] == 0 and len(ts):
                self._first_ts = int(ts[0])
            packed, long_ns = np.empty(len(ts), np.uint16), np.empty(len(ts), np.int64)
            n = stacks_kernel.pack_times(ts, stack, state, packed, long_ns)
            yield (packed[:n].copy(), long_ns[: state[3]].copy()), stack


def _pieces(calls: Table) -> Iterator[Table]:
    """Of at most ROWS rows, so that what is made of them stays in the processor's cache."""
    for piece in calls.pieces():
        for at in range(0, len(piece), ROWS):
            yield piece.take(slice(at, at + ROWS))
