"""The bytes of each code object by line."""

from __future__ import annotations

import numpy as np

from traceferry.jit import shares_kernel
from traceferry.model import Array


class Shares:
    """The bytes of code objects by the lines of their line tables. begins, ends: int64, the rows of each object in
    offsets, files and lines (int32, rising offsets within an object); size: int64 bytes of each; bases: int32, what
    lines are told apart by besides file and line: the function.

    After `run` key_base, key_file, key_line are the distinct lines; record, key, bytes: of each object and line that
    are together."""

    def __init__(
        self, begins: Array, ends: Array, size: Array, bases: Array, offsets: Array, files: Array, lines: Array
    ) -> None:
        self._input: tuple[Array, Array, Array, Array, Array, Array, Array] = (
            begins, ends, size, bases, offsets, files, lines,
        )  # fmt: skip
        self._room = 1 << 12
        while self._room < 2 * int((ends - begins).max(initial=0)) + 2:
            self._room *= 2
        room = int((ends - begins).sum()) + len(begins)
        self._out = (np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int64))
        self._keys = [np.empty(self._room, np.int32) for _ in range(5)]  # base, file, line, seen in, seen at

    def run(self) -> Shares:
        state = np.zeros(3, np.int64)
        n = len(self._input[0])
        while state[0] < n:
            n_keys = int(state[1])
            slots = np.full(2 * self._room, -1, np.int32)
            base, file, line, seen_in, seen_row = self._keys
            shares_kernel.enter_keys(base, file, line, n_keys, slots)
            shares_kernel.sizes(*self._input, state, base, file, line, seen_in, seen_row, slots, *self._out)
            if state[0] < n:
                self._room *= 4
                self._keys = [np.concatenate((k, np.empty(self._room - len(k), np.int32))) for k in self._keys]
        n_keys, n_out = int(state[1]), int(state[2])
        self.key_base, self.key_file, self.key_line = (k[:n_keys] for k in self._keys[:3])
        self.record, self.key, self.bytes = (column[:n_out] for column in self._out)
        return self
