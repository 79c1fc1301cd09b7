"""The mappings of a process at one time, and the code objects in its memory."""

from __future__ import annotations

import numpy as np

from traceferry.model import Array

NO_MODULE = -1
TOP = (1 << 64) - 1
# Of each piece: start, end, bias, module, whether a compiler loaded it.
DTYPES = (np.uint64, np.uint64, np.uint64, np.int32, np.bool_)

Piece = tuple[int, int, int, int, bool]


class AddressSpace:
    """The executable mappings of a process and the code objects that JIT compilers loaded into them: pieces by address,
    without overlaps. Memory ends at 2^64 - 1.

    A mapping cuts or replaces the mappings that it overlaps. It ends the code objects there only where it changes what
    the memory is: a mapping of anonymous memory over anonymous memory, or of a file over itself, is what the kernel
    reports when it merges neighbours, or when a compiler changes the protection of its pages. What was loaded is
    still there.
    """

    def __init__(self) -> None:
        self._rows: list[Array] = [np.zeros(0, dtype) for dtype in DTYPES]
        self._n = 0
        self._is_shared = False

    def copy(self) -> AddressSpace:
        """Returns the initial mappings of a forked child. The rows are copied when one of the two changes."""
        child = AddressSpace()
        child._rows, child._n = self._rows, self._n
        child._is_shared = self._is_shared = True
        return child

    def map(self, start: int, end: int, bias: int, module: int) -> None:
        """Maps a file to be executed. bias: how much higher addresses are than in the file, modulo 2^64."""
        end, bias = min(end, TOP), bias & TOP
        if not self._has(start, end, bias, module):
            self._replace(start, end, [(start, end, bias, module, False)])
            return
        for begin, stop in self._holes(start, end):
            self._replace(begin, stop, [(begin, stop, bias, module, False)])

    def unmap(self, start: int, end: int, bias: int = 0, module: int = NO_MODULE) -> None:
        """Maps a file without executing it. bias, module: as in `map`, where it is a file with code: to take
        the right to execute it from its own pages changes nothing of what they hold."""
        if module == NO_MODULE or not self._has(start, min(end, TOP), bias & TOP, module):
            self._replace(start, min(end, TOP), [])

    def map_anonymous(self, start: int, end: int) -> None:
        """Maps memory without a file to be executed."""
        end = min(end, TOP)
        for begin, stop in [*self._files(start, end), *self._holes(start, end)]:
            self._replace(begin, stop, [(begin, stop, 0, NO_MODULE, False)])

    def unmap_anonymous(self, start: int, end: int) -> None:
        """Maps memory without a file, not to be executed. Compilers do so to write into it, while code that lies
        there waits for what it called."""
        for begin, stop in self._files(start, min(end, TOP)):
            self._replace(begin, stop, [])

    def load(self, start: int, end: int, bias: int, module: int) -> None:
        """Adds a code object. bias: how much higher addresses are than in its call-frame information, modulo 2^64."""
        end = min(end, TOP)
        self._replace(start, end, [(start, end, bias & TOP, module, True)])

    def unload(self, start: int, end: int) -> None:
        """Removes a code object, which leaves executable memory."""
        end = min(end, TOP)
        self._replace(start, end, [(start, end, 0, NO_MODULE, False)])

    def columns(self) -> tuple[Array, Array, Array, Array]:
        """Returns start, end, bias (uint64) and module (int32) of each piece, until the next change."""
        start, end, bias, module, _ = self._pieces()
        return start, end, bias, module

    def _pieces(self) -> list[Array]:
        return [column[: self._n] for column in self._rows]

    def _overlapped(self, start: int, end: int) -> slice:
        """Returns the pieces that have memory from start to end."""
        starts, ends, *_ = self._pieces()
        first = int(np.searchsorted(starts, np.uint64(start), "right")) - 1
        if first < 0 or int(ends[first]) <= start:
            first += 1
        return slice(first, max(first, int(np.searchsorted(starts, np.uint64(end)))))

    def _has(self, start: int, end: int, bias: int, module: int) -> bool:
        """Whether this file, mapped so, is all that is there besides code objects."""
        _, _, biases, modules, is_code = (column[self._overlapped(start, end)] for column in self._pieces())
        is_it = (biases == np.uint64(bias)) & (modules == module) & ~is_code
        return bool(is_it.any() and (is_it | is_code).all())

    def _files(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns the ranges from start to end where files are mapped."""
        starts, ends, _, modules, is_code = (column[self._overlapped(start, end)] for column in self._pieces())
        of_file = (modules != NO_MODULE) & ~is_code
        return [
            (max(begin, start), min(stop, end))
            for begin, stop in zip(starts[of_file].tolist(), ends[of_file].tolist(), strict=True)
        ]

    def _holes(self, start: int, end: int) -> list[tuple[int, int]]:
        """Returns the ranges from start to end where nothing is mapped."""
        starts, ends, *_ = (column[self._overlapped(start, end)] for column in self._pieces())
        begins, stops = np.append(np.uint64(start), ends), np.append(starts, np.uint64(end))
        holes = begins < stops
        return list(zip(begins[holes].tolist(), stops[holes].tolist(), strict=True))

    def _replace(self, start: int, end: int, new: list[Piece]) -> None:
        """Replaces what lies from start to end."""
        replaced = self._overlapped(start, end)
        first, last = replaced.start, replaced.stop
        if first < last:
            (begin, _, *before), (_, stop, *after) = (
                [column[nth].item() for column in self._rows] for nth in (first, last - 1)
            )
            if begin < start:
                new = [(begin, start, before[0], before[1], before[2]), *new]
            if stop > end:
                new = [*new, (end, stop, after[0], after[1], after[2])]
        elif not new:
            return
        n = self._n + len(new) - (last - first)
        if self._is_shared or n > len(self._rows[0]):
            self._rows = [np.append(column[: self._n], np.zeros(n, column.dtype)) for column in self._rows]
            self._is_shared = False
        for column, values in zip(self._rows, zip(*new, strict=True) if new else ((),) * len(DTYPES), strict=True):
            column[first + len(new) : n] = column[last : self._n]
            column[first : first + len(new)] = values
        self._n = n
