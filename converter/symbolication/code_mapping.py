"""Addresses and lifetimes of jitted code: loads and moves become mappings, no two of which overlap at one time."""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from traceferry.model import Array, TraceBuilder, sums
from traceferry.symbolication.tiers import Tier


def add_tier(trace: TraceBuilder, tier: Tier) -> int:
    """Returns a row of `tiers`."""
    intern = trace.strings.intern
    return trace.tiers.intern(name=intern(tier.name), family=intern(tier.family), color=intern(tier.color))


class CodeMappings:
    """Collects the addresses of the code objects of one process in time order, and determines when they ended.

    Code put onto another object's addresses ends that whole object. Code of size 0 ends nothing.
    """

    def __init__(self) -> None:
        self._code: list[int] = []
        self._address: list[int] = []
        self._size: list[int] = []
        self._start: list[int] = []
        self._end: list[int] = []
        self._latest: dict[int, int] = {}

    def put(self, code: int, address: int, size: int, ts: int) -> None:
        """Puts the object at this address from ts on, and no longer at its previous one."""
        before = self._latest.get(code)
        if before is not None:
            self._end[before] = ts
        self._latest[code] = len(self._code)
        self._code.append(code)
        self._address.append(address)
        self._size.append(size)
        self._start.append(ts)
        self._end.append(-1)

    def put_all(self, code: Array, address: Array, size: Array, ts: Array) -> None:
        """Puts objects that had no address before and are not moved later."""
        order = np.argsort(ts, kind="stable")
        self._code += code[order].tolist()
        self._address += address[order].tolist()
        self._size += size[order].tolist()
        self._start += ts[order].tolist()
        self._end += [-1] * len(order)

    def address_of(self, code: int) -> int:
        """Returns the latest address of the object."""
        return self._address[self._latest[code]]

    def add_to(self, trace: TraceBuilder) -> None:
        """Adds rows to the table `code_mappings`."""
        if not self._code:
            return
        address = np.array(self._address, np.uint64)
        overlaid = overlaid_by(address, np.array(self._size, np.uint64))
        for row in np.flatnonzero(overlaid >= 0).tolist():
            ts = self._start[overlaid[row]]
            if self._end[row] < 0 or self._end[row] > ts:
                self._end[row] = ts
        trace.code_mappings.extend(code=self._code, address=address, start_ts=self._start, end_ts=self._end)


def overlaid_by(address: Array, size: Array) -> Array:
    """Returns for each of these pieces of memory (uint64, in the order of time) the first later one that overlaps it;
    int64, -1 is none. Pieces of size 0 overlap none."""
    found = np.full(len(address), -1)
    for rows in _overlapping(address, size):
        begins, sizes = address[rows].tolist(), size[rows].tolist()
        starts: list[int] = []
        latest: dict[int, tuple[int, int]] = {}
        for row, begin, n_bytes in zip(rows, begins, sizes, strict=True):
            first = bisect_left(starts, begin)
            if first and latest[starts[first - 1]][1] > begin:
                first -= 1
            last = bisect_left(starts, begin + n_bytes)
            for start in starts[first:last]:
                found[latest.pop(start)[0]] = row
            del starts[first:last]
            insort(starts, begin)
            latest[begin] = (row, begin + n_bytes)
    return found


def _overlapping(address: Array, size: Array) -> list[list[int]]:
    """Returns groups of rows that touch each other's addresses, each in the order of rows; rows on their own are left
    out."""
    order = np.argsort(address, kind="stable")
    order = order[size[order] > 0]
    if len(order) == 0:
        return []
    # The last byte, since what lies at the end of memory has no end in 64 bits.
    last = address[order] + (size[order] - np.uint64(1))
    last[last < address[order]] = np.iinfo(np.uint64).max
    reach = np.maximum.accumulate(last)
    is_new = np.concatenate(([True], address[order][1:] > reach[:-1]))
    group = np.cumsum(is_new) - 1
    sizes = np.bincount(group)
    shared = order[sizes[group] > 1]
    of_shared = group[sizes[group] > 1]
    return [sorted(rows.tolist()) for rows in np.split(shared, np.flatnonzero(np.diff(of_shared)) + 1) if len(rows)]


def live_bytes(start_ts: Array, end_ts: Array, size: Array) -> tuple[Array, Array]:
    """Returns (ts, bytes) of the code that is loaded, at each change; end_ts -1 is never."""
    ended = end_ts >= 0
    ts = np.concatenate((start_ts, end_ts[ended]))
    change = np.concatenate((size, -size[ended]))
    order = np.argsort(ts, kind="stable")
    ts, total = ts[order], sums.running(change[order])
    last = np.concatenate((ts[1:] != ts[:-1], [True])) if len(ts) else np.zeros(0, bool)
    return ts[last], total[last]
