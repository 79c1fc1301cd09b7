"""Ticks become nanoseconds here and nowhere else."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

import numpy as np

from traceferry.model import Array, ClockKind
from traceferry.timeline import _ticks

NS = 1_000_000_000
MAX_TICK = 2**63 - 1
# No counter ticks faster; up to here the kernel's products stay in 63 bits.
MAX_FREQUENCY = 9_000_000_000

# Of a `Counter`: what 64 bits are shifted by, and the latest time.
MAX_SHIFT = 63
TIMES_END = 1 << 62

# A header that is off by less is believed: two clocks of one machine differ by parts in 10^5.
TOLERANCE = 0.01
# A pair's two clocks are read one after the other; the thread may be interrupted in between.
JITTER_NS = 2_000_000


class TickRate(NamedTuple):
    """frequency: ticks in a second, 1..MAX_FREQUENCY; offset_ns: what is added after the conversion."""

    frequency: int
    offset_ns: int = 0

    def to_ns(self, ticks: Array) -> Array:
        """Returns int64 ns of int64 ticks: floor(ticks · 10^9 / frequency) + offset_ns, exact. May return
        `ticks` itself."""
        if self.frequency == NS:
            return ticks if self.offset_ns == 0 else ticks + self.offset_ns
        common = gcd(NS, self.frequency)
        out = np.empty_like(ticks)
        _ticks.scale(ticks, NS // common, self.frequency // common, self.offset_ns, out)
        return out

    def to_ns_within(self, ticks: Array, start_ts: int, end_ts: int) -> Array:
        """Returns what `to_ns` does, for any ticks: what lies before start_ts or after end_ts is put there."""
        first, last = ((ts - self.offset_ns) * self.frequency // NS for ts in (start_ts, end_ts + 1))
        near = np.clip(ticks, max(first, 0), min(last + 1, MAX_TICK))
        return np.clip(self.to_ns(near), start_ts, end_ts)

    def tick_to_ns(self, tick: int) -> int:
        return tick * NS // self.frequency + self.offset_ns


class Counter(NamedTuple):
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


def measured_frequency(pairs: list[tuple[int, int]], frequency: int) -> int | None:
    """Returns the counter's real frequency in Hz, where (tick, wall-clock ns) pairs show that `frequency` is wrong.

    None where the pairs agree with it, or are too few or too close to tell: the difference must be more than TOLERANCE
    and, over the pairs' span, more than the JITTER_NS by which one pair may be off.
    """
    if len(pairs) < 2:
        return None
    pairs = sorted(pairs)
    half = len(pairs) // 2
    slopes = [
        (pairs[i + half][0] - pairs[i][0]) / (pairs[i + half][1] - pairs[i][1])
        for i in range(len(pairs) - half)
        if pairs[i + half][1] > pairs[i][1]
    ]
    ticks, span_ns = pairs[-1][0] - pairs[0][0], pairs[-1][1] - pairs[0][1]
    if not slopes or span_ns <= 0:
        return None
    # Two pairs give one slope; with many, the median ignores the interrupted ones.
    slope = sorted(slopes)[len(slopes) // 2] if len(pairs) > 4 else ticks / span_ns
    measured = round(slope * NS)
    if not 0 < measured <= MAX_FREQUENCY:
        return None
    claimed_ns = ticks * NS / frequency
    if abs(measured - frequency) <= TOLERANCE * measured or abs(claimed_ns - ticks / slope) <= JITTER_NS:
        return None
    return measured


def offset_to_wall(pairs: list[tuple[int, int]], frequency: int) -> int:
    """Returns the ns to add to ticks in ns, to be on the wall clock of the pairs.

    The recorder reads the counter first, then the wall clock; the smallest difference is the least disturbed one.
    """
    return min(wall - tick * NS // frequency for tick, wall in pairs)
