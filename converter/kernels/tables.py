"""Tables that kernels intern into, which grow between their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def grow(self, n: int, wanted: int) -> None:
        """Makes the table at least `wanted` rows long, and the slots for it; n rows are there."""
        size = 1 << max(wanted - 1, 1).bit_length()
        self.columns = tuple(longer(column, size) for column in self.columns)
        self.slots = np.full(2 * size, -1, np.int32)
        self.enter(0, n)

    def enter(self, first: int, n: int) -> None:
        """The rows from `first` to n, which were written into the columns."""
        self._enter(*self.columns[: self._n_keys], first, n, self.slots)


def longer(column: Array, size: int) -> Array:
    """A copy with space for more rows."""
    return np.concatenate((column, np.empty(size - len(column), column.dtype)))
