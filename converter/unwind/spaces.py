"""The mappings of a process at one time."""

from __future__ import annotations

import numpy as np

from traceferry.kernels.tables import longer
from traceferry.model import Array

NO_MODULE = -1
TOP = (1 << 64) - 1
# Of each mapping: start, end, bias, module.
DTYPES = (np.uint64, np.uint64, np.uint64, np.int32)


class AddressSpace:
    """The executable mappings of a process: by address, without overlaps. What is mapped later cuts or replaces what
    it overlaps. Memory ends at 2^64 - 1."""

    def __init__(self) -> None:
        self._rows: list[Array] = [np.zeros(0, dtype) for dtype in DTYPES]
        self._n = 0
        self._is_shared = False

    def copy(self) -> AddressSpace:
        """The initial mappings of a forked child. The rows are copied when one of the two changes."""
        child = AddressSpace()
        child._rows, child._n = self._rows, self._n
        child._is_shared = self._is_shared = True
        return child

    def map(self, start: int, end: int, bias: int, module: int) -> None:
        """bias: what addresses have more than in the module's file, modulo 2^64; module: NO_MODULE for memory that is
        executable and has no file."""
        self._replace(start, min(end, TOP), [(start, min(end, TOP), bias & TOP, module)])

    def unmap(self, start: int, end: int) -> None:
        """A mapping that is not executable has the same effect."""
        self._replace(start, min(end, TOP), [])

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """start, end, bias (uint64), module (int32) of each mapping, until the next change."""
        start, end, bias, module = (column[: self._n] for column in self._rows)
        return start, end, bias, module

    def _replace(self, start: int, end: int, new: list[tuple[int, int, int, int]]) -> None:
        """What lies from start to end."""
        starts, ends, biases, modules = self.columns()
        first = int(np.searchsorted(starts, np.uint64(start), "right")) - 1
        if first < 0 or int(ends[first]) <= start:
            first += 1
        last = max(first, int(np.searchsorted(starts, np.uint64(end))))
        if first < last:
            if int(starts[first]) < start:
                new = [(int(starts[first]), start, int(biases[first]), int(modules[first])), *new]
            if int(ends[last - 1]) > end:
                new = [*new, (end, int(ends[last - 1]), int(biases[last - 1]), int(modules[last - 1]))]
        elif not new:
            return
        n = self._n + len(new) - (last - first)
        if self._is_shared or n > len(self._rows[0]):
            self._rows = [longer(column[: self._n], max(2 * n, self._n)) for column in self._rows]
            self._is_shared = False
        for column, values in zip(self._rows, zip(*new, strict=True) if new else ((),) * len(DTYPES), strict=True):
            column[first + len(new) : n] = column[last : self._n]
            column[first : first + len(new)] = values
        self._n = n
