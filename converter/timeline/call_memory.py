"""Memory for the calls of one thread after the other."""

from __future__ import annotations

import weakref

import numpy as np

from traceferry.model import CALLS, Array

DTYPES = [np.dtype(column.numpy_dtype) for column in CALLS.columns]
BYTES = sum(dtype.itemsize for dtype in DTYPES)


class CallMemory:
    """Columns of CALLS in memory that those of the next thread get again: what was never touched, the system has to
    clear page by page, which takes as long as to decode what is written there."""

    def __init__(self) -> None:
        # Not an array, which would take the place of `whole` as the base of its parts.
        self._memory = memoryview(b"")
        self._given: weakref.ref[Array] | None = None

    def columns(self, n: int) -> list[Array]:
        """Returns arrays of n rows, with any values. As long as one of them, or a part of it, is in use, the next ones
        have memory of their own."""
        is_in_use = self._given is not None and self._given() is not None
        if is_in_use or n == 0:
            return [np.empty(n, dtype) for dtype in DTYPES]
        if not n * BYTES <= len(self._memory) <= 2 * n * BYTES:
            self._memory = memoryview(b"")  # goes before the other one comes
            # The next thread may be somewhat longer: memory that is not touched is none.
            self._memory = np.empty(n * BYTES * 3 // 2, np.uint8).data
        whole = np.frombuffer(self._memory, np.uint8, n * BYTES)
        self._given = weakref.ref(whole)
        ends = np.cumsum([dtype.itemsize for dtype in DTYPES]) * n
        return [part.view(dtype) for part, dtype in zip(np.split(whole, ends[:-1]), DTYPES, strict=True)]
