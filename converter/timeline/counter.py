"""Conversion of a processor's counter to the clock of the kernel's events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.model import Array, ClockKind

MAX_SHIFT = 63
TIMES_END = 1 << 62


@dataclass(frozen=True)
class Counter:
    """ns = time_zero + (ticks * time_mult >> time_shift), as the Linux kernel describes it; kind: the clock that
    these ns are on."""

    time_shift: int
    time_mult: int
    time_zero: int
    kind: ClockKind = "sched"

    def to_ns(self, ticks: Array) -> Array:
        """Returns int64 ns of uint64 ticks, as the kernel calculates them: in 64 bits. Times beyond 2^62 become
        2^62."""
        shift = np.uint64(min(self.time_shift, MAX_SHIFT))
        mult, zero = np.uint64(self.time_mult), np.uint64(self.time_zero)
        ticks = np.asarray(ticks, np.uint64)
        rest = ticks & ((np.uint64(1) << shift) - np.uint64(1))
        ns = zero + (ticks >> shift) * mult + (rest * mult >> shift)
        return np.minimum(ns, np.uint64(TIMES_END)).astype(np.int64)
