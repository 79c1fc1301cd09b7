"""Files that are read in parts: bytes as long as the file, of which only the blocks that were asked for are there."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array

# What is fetched stays in memory.
BLOCK = 1 << 13
# Blocks that lie so near to each other come with what is between them, in one request: it takes as much of the
# processor's time as some ten KB of an answer, and as long as some hundred, but many are under way at once.
MAX_GAP = 1 << 14

# The bytes of each of these parts of the file: (start, end), in bytes, rising. Raises OSError.
Fetch = Callable[[Sequence[tuple[int, int]]], Sequence[bytes]]


class SparseFile:
    """A file elsewhere.

    size: in bytes; data: as many, zeros where nothing was fetched yet, in pages that take no memory; fetch: what reads
    parts of it, many at once; block: how many bytes are fetched at least; n_bytes, n_requests: how much was fetched.
    Raises FormatError if the address space has no room for the file.
    """

    def __init__(self, size: int, fetch: Fetch, block: int = BLOCK) -> None:
        self.size = size
        self.block = block
        self.n_bytes = 0
        self.n_requests = 0
        self._fetch = fetch
        self._there = np.zeros(-(-size // block), bool)
        self._memory = _room(size) if size else None
        self.data = memoryview(self._memory).toreadonly() if self._memory is not None else memoryview(b"")

    def need(self, start: int, end: int) -> bool:
        """Fetches [start, end) of the file, in bytes, as far as it is there. Returns whether a part of it was missing.
        Raises OSError."""
        first, last = start // self.block, -(-min(end, self.size) // self.block)
        if start >= end or self._there[first:last].all():
            return False
        return self.need_all(np.array([start], np.int64), np.array([end], np.int64))

    def need_all(self, starts: Array, ends: Array) -> bool:
        """As `need`, of many parts at once. starts, ends: int64, not negative."""
        ends = np.minimum(ends, self.size)
        some = starts < ends
        n = len(self._there)
        steps = np.bincount(starts[some] // self.block, minlength=n + 1)
        steps -= np.bincount(-(-ends[some] // self.block), minlength=n + 1)
        missing = (np.cumsum(steps)[:n] > 0) & ~self._there
        if not missing.any():
            return False
        self._read(self._runs(missing))
        return True

    def need_everything(self) -> None:
        self.need(0, self.size)

    def _runs(self, missing: Array) -> list[tuple[int, int]]:
        """The parts of the file that have these blocks."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], missing, [False]))))
        begins, ends = edges[::2], edges[1::2]
        apart = np.flatnonzero((begins[1:] - ends[:-1]) * self.block > MAX_GAP)
        begins = np.concatenate((begins[:1], begins[apart + 1])) * self.block
        ends = np.concatenate((ends[apart], ends[-1:])) * self.block
        return list(zip(begins.tolist(), np.minimum(ends, self.size).tolist(), strict=True))

    def _read(self, parts: list[tuple[int, int]]) -> None:
        assert self._memory is not None
        for (start, end), piece in zip(parts, self._fetch(parts), strict=True):
            if len(piece) != end - start:
                raise OSError(f"{len(piece)} bytes came where {end - start} are, at {start}: the file was changed")
            self._memory[start:end] = piece
            self._there[start // self.block : -(-end // self.block)] = True
            self.n_bytes += len(piece)
        self.n_requests += len(parts)


def _room(size: int) -> mmap.mmap:
    try:
        if not hasattr(mmap, "MAP_PRIVATE"):
            return mmap.mmap(-1, size)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        return mmap.mmap(-1, size, flags=flags)
    except (OSError, ValueError, OverflowError) as error:
        raise FormatError(f"no room for a file of {size} bytes: {error}") from None
