"""Sets of addresses: lists of (first address, end)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

Ranges = list[tuple[int, int]]


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Returns ranges by address; what touches is one range. Empty ones go."""
    joined: Ranges = []
    for begin, end in sorted(ranges):
        if begin >= end:
            continue
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def holder(ranges: Sequence[tuple[int, int]], begin: int, end: int) -> tuple[int, int] | None:
    """Returns the one of merged ranges that holds [begin, end)."""
    nth = bisect_right(ranges, begin, key=lambda held: held[0]) - 1
    return ranges[nth] if nth >= 0 and end <= ranges[nth][1] else None
