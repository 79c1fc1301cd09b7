"""The frames that pointers stand for. Addresses are reused over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceferry.kernels import tables_kernel
from traceferry.kernels.tables import Interned
from traceferry.model import Array


class MethodTable:
    """The frames of pointers, as the kernels look for them: see `kernels.names`.

    pointers: uint64; ts: int64, when each was defined; frames: int32. A definition is valid from its time on, the first
    one also before: definitions may follow their first use. nameless: makes the frame of an undefined pointer.
    """

    def __init__(self, pointers: Array, ts: Array, frames: Array, nameless: Callable[[int], int]) -> None:
        order, n = np.lexsort((ts, pointers)), len(pointers)
        _, first, n_times = np.unique(pointers[order], return_index=True, return_counts=True)
        nth, last = np.arange(n) - np.repeat(first, n_times), np.repeat(first + n_times - 1, n_times)
        columns = (nth.astype(np.int32), pointers[order], frames[order], last.astype(np.int32), ts[order])
        self._table = Interned(tables_kernel.enter_addresses, 2, columns)
        self._table.grow(n, 2 * n + 16)
        self._count = np.array([n], np.int64)
        self._n_defined = self._n_named = n
        self._nameless = nameless

    def mark(self) -> int:
        return self._n_named

    def cut(self, mark: int) -> tuple[Array, ...] | None:
        """See `model.Grown`: the pointers that were named since are unknown."""
        if mark == self._n_named:
            return None
        rest = tuple(column[mark : self._n_named].copy() for column in self._table.columns)
        self._table.grow(mark, self._table.size)
        self._count[0] = self._n_named = mark
        return rest

    def put_back(self, rest: tuple[Array, ...]) -> None:
        """See `model.Grown`."""
        first, n = self._n_named, self._n_named + len(rest[0])
        for column, values in zip(self._table.columns, rest, strict=True):
            column[first:n] = values
        self._table.enter(first, n)
        self._count[0] = self._n_named = n

    @property
    def arrays(self) -> tuple[Array, ...]:
        """As the kernels take them, and add to them."""
        return *self._table.columns, self._table.slots, self._count

    @property
    def frames(self) -> Array:
        """int32, by number; longer than there are numbers."""
        return self._table.columns[2]

    @property
    def n_unnamed(self) -> int:
        return self._n_named - self._n_defined

    def name(self) -> None:
        """Makes frames for the pointers that kernels have added, in their order, and room for more."""
        self.make_room()
        new = slice(self._n_named, int(self._count[0]))
        self.frames[new] = [self._nameless(pointer) for pointer in self._table.columns[1][new].tolist()]
        self._n_named = new.stop

    def make_room(self) -> None:
        """For more pointers, if the table is full."""
        n = int(self._count[0])
        if n == self._table.size:
            self._table.grow(n, 2 * n)

    def at(self, pointers: Array, ts: Array) -> Array:
        """The frames of pointers (uint64) at times (int64); those of unknown ones are made."""
        numbers = self._numbers(pointers, ts)
        return self.frames[numbers]

    def lasting(self, pointers: Array) -> Array | None:
        """The frames of pointers (uint64), if none of them was defined several times."""
        numbers = self._numbers(pointers, np.zeros(len(pointers), np.int64))
        return self.frames[numbers] if np.array_equal(self._table.columns[3][numbers], numbers) else None

    def _numbers(self, pointers: Array, ts: Array) -> Array:
        wanted, times = np.ascontiguousarray(pointers, np.uint64), np.ascontiguousarray(ts, np.int64)
        found = np.empty(len(wanted), np.int32)
        done = 0
        while (done := tables_kernel.find_names(wanted, times, self.arrays, found, done)) < len(wanted):
            self.name()
        self.name()
        return found
