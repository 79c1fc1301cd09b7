"""Resolves pointers to methods and classes. Addresses are reused over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceferry.importers.mono import log_kernel
from traceferry.kernels.tables import doubled
from traceferry.model import Array


class Names:
    """The frames of pointers, as the kernels look for them: see `names_inlined`.

    pointers: uint64; ts: int64, when each was defined; frames: int32. A definition is valid from its time on, the first
    one also before: definitions may follow their first use. nameless: makes the frame of an undefined pointer.
    """

    def __init__(self, pointers: Array, ts: Array, frames: Array, nameless: Callable[[int], int]) -> None:
        self._nameless = nameless
        order = np.lexsort((ts, pointers))
        n, room = len(order), 2 * len(order) + 16
        self.frames, self._last = np.full(room, -1, np.int32), np.empty(room, np.int32)
        self._ts, self._pointers = np.zeros(room, np.int64), np.zeros(room, np.uint64)
        self.frames[:n], self._ts[:n], self._pointers[:n] = frames[order], ts[order], pointers[order]
        _, n_times = np.unique(pointers, return_counts=True)
        self._last[:n] = np.repeat(np.cumsum(n_times) - 1, n_times)
        self._n = np.array([n], np.int64)
        self._n_defined = self._n_named = n
        self._enter()

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
        """As the kernels take them, and add to them."""
        return self._keys, self._ids, self._pointers, self.frames, self._last, self._ts, self._n

    @property
    def n_unnamed(self) -> int:
        return self._n_named - self._n_defined

    def name(self) -> None:
        """Makes frames for the pointers that kernels have added, in their order, and room for more."""
        n = int(self._n[0])
        new = slice(self._n_named, n)
        self.frames[new] = [self._nameless(pointer) for pointer in self._pointers[new].tolist()]
        self._n_named = n
        self.make_room()

    def make_room(self) -> None:
        """For more pointers, if the arrays are full."""
        n = int(self._n[0])
        if n == len(self.frames):
            self.frames, self._last = doubled(self.frames), doubled(self._last)
            self._ts, self._pointers = doubled(self._ts), doubled(self._pointers)
            self.frames[n:], self._ts[n:] = -1, 0
            self._enter()

    def at(self, pointers: Array, ts: Array) -> Array:
        """The frames of pointers (uint64) at times (int64); those of unknown ones are made."""
        numbers = self._numbers(pointers, ts)
        return self.frames[numbers]

    def lasting(self, pointers: Array) -> Array | None:
        """The frames of pointers (uint64), if none of them was defined several times."""
        numbers = self._numbers(pointers, np.zeros(len(pointers), np.int64))
        return self.frames[numbers] if np.array_equal(self._last[numbers], numbers) else None

    def _numbers(self, pointers: Array, ts: Array) -> Array:
        wanted, times = np.ascontiguousarray(pointers, np.uint64), np.ascontiguousarray(ts, np.int64)
        found = np.empty(len(wanted), np.int32)
        row = 0
        while (row := row + log_kernel.find_names(wanted[row:], times[row:], self.arrays, found[row:])) < len(wanted):
            self.name()
        self.name()
        return found

    def _enter(self) -> None:
        size = 1 << (2 * len(self._last)).bit_length()
        self._keys, self._ids = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
        log_kernel.enter_names(self.arrays)
