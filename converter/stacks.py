"""Call paths as a table of (prefix, frame): for exporters that show instrumented calls as stacks."""

from __future__ import annotations

import numpy as np

from converter import stacks_kernel
from converter.model import Array, Table


class CallPaths:
    """Interns the call paths of any number of threads. A prefix is always smaller than its stack."""

    def __init__(self) -> None:
        self.n = 0
        self._prefix = np.empty(1 << 12, np.int32)
        self._frame = np.empty(1 << 12, np.int32)
        self._slots = np.full(1 << 13, -1, np.int32)

    @property
    def prefix(self) -> Array:
        return self._prefix[: self.n]

    @property
    def frame(self) -> Array:
        return self._frame[: self.n]

    def add_table(self, prefix: Array, frame: Array) -> None:
        """Begins with the stacks of a trace, so that their indices stay. Only for a table that is still empty."""
        while len(self._prefix) < len(prefix):
            self._grow()
        self.n = len(prefix)
        self._prefix[: self.n], self._frame[: self.n] = prefix, frame
        stacks_kernel.rehash(self._prefix, self._frame, self.n, self._slots)

    def samples(self, calls: Table) -> tuple[Array, Array]:
        """(ts in ns, stack) after each change that lasts; stack -1 while no call is open. See `walk_calls`."""
        n = len(calls)
        out_ts, out_stack = np.empty(n, np.int64), np.empty(n, np.int32)
        path = np.empty(n // 2 + 1, np.int32)
        state = np.array([0, 0, self.n, 0], np.int64)
        while state[0] < n:
            if self.n == len(self._prefix):
                self._grow()
            stacks_kernel.walk_calls(
                calls["ts"], calls["frame"], calls["flags"], state, path,
                self._prefix, self._frame, self._slots, out_ts, out_stack,
            )  # fmt: skip
            self.n = int(state[2])
        return out_ts[: state[3]], out_stack[: state[3]]

    def _grow(self) -> None:
        room = len(self._prefix)
        self._prefix = np.concatenate((self._prefix, np.empty(room, np.int32)))
        self._frame = np.concatenate((self._frame, np.empty(room, np.int32)))
        self._slots = np.full(4 * room, -1, np.int32)
        stacks_kernel.rehash(self._prefix, self._frame, self.n, self._slots)
