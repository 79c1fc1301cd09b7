"""Sums of int64 that end at the largest number, 2^63 - 1, instead of wrapping; likewise at -(2^63 - 1).

Times and sizes of a damaged recording add up to anything. `note_saturated` reports sums that stand at the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from traceferry.common.report import Report

Array = NDArray[Any]
LARGEST = (1 << 63) - 1
LOW = 32
LOW_MASK = (1 << LOW) - 1


def total(values: Array) -> int:
    """Returns the sum of integers."""
    if _fits(values):
        return int(values.sum(dtype=np.int64))
    return int(total_by(np.zeros(len(values), np.int64), values, 1)[0])


def total_by(group: Array, values: Array, n_groups: int) -> Array:
    """Returns int64: the sum of the values of each group. group: for each value, 0 to n_groups - 1; fewer than 2^31
    values."""
    if _fits(values):
        sums = np.zeros(n_groups, np.int64)
        np.add.at(sums, group, values)
        return sums
    # The halves of the values add up without overflow.
    low, high = np.zeros(n_groups, np.int64), np.zeros(n_groups, np.int64)
    np.add.at(low, group, values & LOW_MASK)
    np.add.at(high, group, values >> LOW)
    return _joined(high, low)


def plus(a: Array, b: Array) -> Array:
    """Returns int64: the sums of two arrays, element by element."""
    if _largest(a) + _largest(b) <= LARGEST:
        return np.asarray(a + b, np.int64)
    return _joined((a >> LOW) + (b >> LOW), (a & LOW_MASK) + (b & LOW_MASK))


def running(values: Array) -> Array:
    """Returns int64: the sum of the values up to each."""
    if _fits(values):
        return np.cumsum(values)
    return _joined(np.cumsum(values >> LOW), np.cumsum(values & LOW_MASK))


def magnitudes(values: Array) -> Array:
    """Returns int64: the absolute values; of -2^63, 2^63 - 1."""
    found: Array = np.abs(np.maximum(values, -LARGEST))
    return found


def limited(value: int) -> int:
    """Returns the number, or the limit that it is beyond."""
    return max(-LARGEST, min(value, LARGEST))


def note_saturated(report: Report, found: Any, where: str) -> None:
    """Reports how many numbers in `found`, which is as JSON has it, stand at a limit."""
    report.note("sums_saturated", _n_saturated(found), where=where)


def _n_saturated(found: Any) -> int:
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list):
        return sum(map(_n_saturated, found))
    return int(isinstance(found, int) and abs(found) == LARGEST)


def _fits(values: Array) -> bool:
    """Whether no sum of some of them can overflow."""
    return _largest(values) * len(values) <= LARGEST


def _largest(values: Array) -> int:
    """Returns the largest absolute value, 0 of none."""
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def _joined(high: Array, low: Array) -> Array:
    """Returns high * 2^32 + low, at most the largest number."""
    high, low = high + (low >> LOW), low & LOW_MASK
    limit = LARGEST >> LOW
    sums = (np.clip(high, -limit - 1, limit) << LOW) | low
    sums[high > limit] = LARGEST
    sums[high < -limit - 1] = -LARGEST
    limited: Array = np.maximum(sums, -LARGEST)
    return limited
