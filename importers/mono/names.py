"""Resolves pointers to methods and classes. Addresses are reused over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceferry.importers.mono import names_kernel
from traceferry.importers.mono.state_inlined import N_STATE
from traceferry.model import Array


class Names:
    """The frames of pointers, as the kernels look for them.

    pointers: uint64; ts: int64, when each was defined; frames: int32. A definition is valid from its time on, the first
    one also before: definitions may follow their first use. nameless: makes the frame of an undefined pointer.
    """

    def __init__(self, pointers: Array, ts: Array, frames: Array, nameless: Callable[[int], int]) -> None:
        self._nameless = nameless
        order = np.lexsort((ts, pointers))
        pointers, ts, frames = pointers[order], ts[order], frames[order]
        keys, first, n_times = np.unique(pointers, return_index=True, return_counts=True)
        several = np.flatnonzero(n_times > 1)
        is_several = np.repeat(n_times > 1, n_times)
        self.defined_ts = ts[is_several].astype(np.int64)
        self.defined = frames[is_several].astype(np.int32)
        self.defined_at = np.concatenate(([0], np.cumsum(n_times[several]))).astype(np.int32)
        of_key = frames[first].astype(np.int32)
        of_key[several] = -2 - np.arange(len(several))
        self.n_unnamed = 0
        self._checked = np.zeros(N_STATE, np.uint64)
        self._n = len(keys)
        # Room for more; nothing refers to it yet.
        self.frames = np.concatenate((of_key, np.zeros(len(keys) + 16, np.int32)))
        self._pointers = np.concatenate((keys, np.zeros(len(keys) + 16, np.uint64)))
        self._enter()

    def ask(self, pointer: int) -> None:
        """Adds a frame for an unknown pointer."""
        if self._n == len(self.frames):
            self.frames = np.concatenate((self.frames, np.zeros(self._n, np.int32)))
            self._pointers = np.concatenate((self._pointers, np.zeros(self._n, np.uint64)))
        self.frames[self._n] = self._nameless(pointer)
        self._pointers[self._n] = pointer
        self._n += 1
        self.n_unnamed += 1
        if 2 * self._n > len(self.keys):
            self._enter()
        else:
            names_kernel.add_key(pointer, self._n - 1, self.keys, self.ids)

    def at(self, pointers: Array, ts: Array) -> Array:
        """The frames of pointers (uint64) at times (int64); those of unknown ones are made."""
        wanted = np.ascontiguousarray(pointers, np.uint64)
        found = np.empty(len(wanted), np.int32)
        times = np.ascontiguousarray(ts, np.int64)
        row = 0
        while row < len(wanted):
            row += names_kernel.frames_of(wanted[row:], times[row:], *self.arrays, found[row:], self._checked)
            if row < len(wanted):
                self.ask(int(wanted[row]))
        return found

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """As the kernels take them."""
        return self.keys, self.ids, self.frames, self.defined_at, self.defined_ts, self.defined

    def _enter(self) -> None:
        size = 1 << (4 * self._n + 15).bit_length()
        self.keys, self.ids = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
        names_kernel.enter_keys(self._pointers[: self._n], self.keys, self.ids)
