"""The bytes of each code object by line."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceferry.kernels import tables_kernel
from traceferry.kernels.tables import Interned
from traceferry.model import Array
from traceferry.symbolication import shares_kernel


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
        self._longest = int((ends - begins).max(initial=0)) + 1
        n_out = int((ends - begins).sum()) + len(begins)
        self._out = (np.empty(n_out, np.int32), np.empty(n_out, np.int32), np.empty(n_out, np.int64))

    def run(self) -> Shares:
        # base, file, line; and where each was seen last: object, row
        keys = Interned(tables_kernel.enter_triples, 3, [np.empty(0, np.int32) for _ in range(5)])
        keys.grow(0, max(1 << 12, 2 * self._longest))
        state = np.zeros(3, np.int64)
        while True:
            arguments: list[Any] = [*self._input, state, *keys.columns, keys.slots, *self._out]
            shares_kernel.sizes(*arguments)
            if state[0] == len(self._input[0]):
                break
            keys.grow(int(state[1]), 4 * keys.size)
        n_keys, n_out = int(state[1]), int(state[2])
        self.key_base, self.key_file, self.key_line = (column[:n_keys] for column in keys.columns[:3])
        self.record, self.key, self.bytes = (column[:n_out] for column in self._out)
        return self
