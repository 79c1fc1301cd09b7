"""The mappings of a process at one time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from traceferry.model import Array

NO_MODULE = -1


class AddressSpace:
    """The executable mappings of a process: by address, without overlaps. What is mapped later cuts or replaces what
    it overlaps."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._rest: list[tuple[int, int, int]] = []  # (end, bias, module)
        self._columns: tuple[Array, Array, Array, Array] | None = None

    def copy(self) -> AddressSpace:
        """The initial mappings of a forked child."""
        child = AddressSpace()
        child._starts, child._rest, child._columns = list(self._starts), list(self._rest), self._columns
        return child

    def map(self, start: int, end: int, bias: int, module: int) -> None:
        """bias: what addresses have more than in the module's file, modulo 2^64; module: NO_MODULE for memory that is
        executable and has no file."""
        self.unmap(start, end)
        self._columns = None
        nth = bisect_left(self._starts, start)
        self._starts.insert(nth, start)
        self._rest.insert(nth, (end, bias & (1 << 64) - 1, module))

    def unmap(self, start: int, end: int) -> None:
        """A mapping that is not executable has the same effect."""
        first = bisect_right(self._starts, start) - 1
        if first < 0 or self._rest[first][0] <= start:
            first += 1
        last = bisect_left(self._starts, end)
        if first >= last:
            return
        self._columns = None
        kept: list[tuple[int, tuple[int, int, int]]] = []
        begin, (_, bias, module) = self._starts[first], self._rest[first]
        if begin < start:
            kept.append((begin, (start, bias, module)))
        stop, bias, module = self._rest[last - 1]
        if stop > end:
            kept.append((end, (stop, bias, module)))
        self._starts[first:last] = [place for place, _ in kept]
        self._rest[first:last] = [rest for _, rest in kept]

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """start, end, bias (uint64), module (int32) of each mapping; the same arrays until something changes."""
        if self._columns is None:
            self._columns = (
                np.array(self._starts, np.uint64),
                np.array([end for end, _, _ in self._rest], np.uint64),
                np.array([bias for _, bias, _ in self._rest], np.uint64),
                np.array([module for _, _, module in self._rest], np.int32),
            )
        return self._columns
