"""Tables that kernels intern into, which grow between their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceferry.kernels import tables_kernel

Array = NDArray[Any]


class Interned:
    """Columns, of which the first n_keys are the key, and the hash table of their rows: see interning.py.

    enter: enters rows, a function of tables_kernel. A kernel says how many rows there are: the columns are longer.
    """

    def __init__(self, enter: Callable[..., None], n_keys: int, columns: Sequence[Array]) -> None:
        self.columns = tuple(columns)
        self._enter = enter
        self._n_keys = n_keys
        self.slots = np.empty(0, np.int32)

    @property
    def size(self) -> int:
        """How many rows fit."""
        return len(self.columns[0])

    def grow(self, n: int, size: int) -> None:
        """Makes the table that long, and slots for it; n rows are there."""
        self.columns = tuple(longer(column, size) for column in self.columns)
        self.slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
        self.enter(0, n)

    def enter(self, first: int, n: int) -> None:
        """The rows from `first` to n, which were written into the columns."""
        self._enter(*self.columns[: self._n_keys], first, n, self.slots)


class Nodes:
    """Pairs of a parent, which is a smaller node, -1 is none, and a key; n: how many a kernel has entered, which some
    write to `count`, int64 [1]."""

    def __init__(self) -> None:
        self.count = np.zeros(1, np.int64)
        self._table = Interned(tables_kernel.enter_pairs, 2, (np.empty(0, np.int32), np.empty(0, np.int32)))
        self._table.grow(0, 1 << 10)

    @property
    def n(self) -> int:
        return int(self.count[0])

    @n.setter
    def n(self, n: int) -> None:
        self.count[0] = n

    @property
    def capacity(self) -> int:
        return self._table.size

    @property
    def parent(self) -> Array:
        return self._table.columns[0][: self.n]

    @property
    def key(self) -> Array:
        return self._table.columns[1][: self.n]

    @property
    def columns(self) -> tuple[Array, Array, Array]:
        """parent, key and slots, with capacity for more."""
        parent, key = self._table.columns
        return parent, key, self._table.slots

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """The columns and the count, for kernels that count."""
        return *self.columns, self.count

    def reserve(self, wanted: int) -> None:
        if wanted > self.capacity:
            self.grow(1 << (wanted - 1).bit_length())

    def grow(self, size: int) -> None:
        self._table.grow(self.n, size)

    def append(self, parent: Array, key: Array) -> None:
        """Adds other pairs than there are, as they are."""
        first = self.n
        self.reserve(first + len(parent))
        self.n += len(parent)
        self.parent[first:], self.key[first:] = parent, key
        self._table.enter(first, self.n)


class Growing:
    """A column to which rows are appended, at a cost that does not depend on how many there are."""

    def __init__(self, values: Array) -> None:
        self._rows = values
        self._n = len(values)

    def __len__(self) -> int:
        return self._n

    @property
    def values(self) -> Array:
        """What was appended so far; not a copy."""
        return self._rows[: self._n]

    def extend(self, values: Array) -> None:
        n = self._n + len(values)
        if n > len(self._rows):
            self._rows = longer(self.values, max(n, 2 * self._n))
        self._rows[self._n : n] = values
        self._n = n


def longer(column: Array, size: int) -> Array:
    """A copy with space for more rows."""
    return np.concatenate((column, np.empty(size - len(column), column.dtype)))


def doubled(column: Array) -> Array:
    """A copy with space for as much again."""
    return longer(column, 2 * len(column))
