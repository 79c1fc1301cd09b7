"""Arrays that become longer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def longer(array: Array, n: int) -> Array:
    """Returns the array if it has n rows, else a copy with n rows, of which the new ones are zero."""
    if len(array) >= n:
        return array
    copy = np.zeros((n, *array.shape[1:]), array.dtype)
    copy[: len(array)] = array
    return copy


def grown(array: Array, n: int) -> Array:
    """Returns the array if it has n rows, else a copy with at least n and twice as many rows as before, so that few
    calls copy."""
    return longer(array, max(n, 2 * len(array))) if n > len(array) else array


def doubled(array: Array) -> Array:
    """Returns a copy with twice as many rows."""
    return longer(array, 2 * len(array))
