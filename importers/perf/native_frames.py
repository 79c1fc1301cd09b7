"""Map: what symbols say of addresses in libraries becomes frames of the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from traceferry.libraries.library import MAX_OFFSET, Library
from traceferry.model import Array, TraceBuilder, distinct_and_places
from traceferry.symbolication.function_table import Texts
from traceferry.symbolication.interface import Frames
from traceferry.symbolication.libraries import unnamed


class _Once(NamedTuple):
    """Values of n rows, each value once, numbered in the order in which they come. number: int32 [n]; first: int64,
    rising: of each value the row where it comes first."""

    number: Array
    first: Array

    def between(self, begin: int, end: int) -> slice:
        """Returns the values (numbers) that come first in these rows."""
        return slice(*np.searchsorted(self.first, (begin, end)).tolist())


class NativeFrames:
    """Frames at addresses (uint64) in libraries. rows: of these among all that are looked up, rising; found: the
    frames, with texts as they are shown, and starts, from 2^63 on those below 0; library: int64, their numbers in
    `libraries`."""

    def __init__(
        self, rows: Array, address: Array, found: Frames, library: Array, libraries: Sequence[Library]
    ) -> None:
        self._rows = rows
        self._libraries = libraries
        self._library = library
        self._texts = Texts()
        n_found = np.diff(found.first)
        self._n_frames = np.maximum(n_found, 1)
        self._first = np.concatenate(([0], np.cumsum(self._n_frames)))
        self._depth = np.arange(self._first[-1]) - np.repeat(self._first[:-1], self._n_frames)
        is_named = np.repeat(n_found > 0, self._n_frames)
        # The outermost is the last in what was found.
        at = (np.repeat(found.first[1:] - 1, self._n_frames) - self._depth)[is_named]
        number = np.array([*(self._texts.number(text) for text in found.texts), -1], np.int32)
        self._name, self._source, self._line = (np.full(len(is_named), none, np.int32) for none in (-1, -1, 0))
        self._name[is_named], self._source[is_named] = number[found.name[at]], number[found.source[at]]
        self._line[is_named] = found.line[at]
        start = found.start.astype(np.int64)
        nameless = np.flatnonzero(n_found == 0)
        self._name[self._first[nameless]] = self._stand_ins(nameless, address, start)
        self._shown = [*self._texts.held, ""]
        self._start = np.where((n_found == 0) & (start == 0), address.view(np.int64), start)
        self._has_symbol = (self._start >= 0) & (address < MAX_OFFSET)
        self._address = np.where(self._has_symbol, address.view(np.int64), -1)
        self._functions = _once(self._name.astype(np.int64) << 32 | self._source.astype(np.uint32))
        self._symbols = self._symbols_of(self._name[self._first[:-1]])
        categories = Texts()
        of_library = np.array([categories.number(one.category) for one in libraries], np.int32)
        self._category = _once(of_library[library])
        self._function_rows = np.zeros(len(self._functions.first), np.int32)
        self._symbol_rows = np.full(len(self._symbols.first) + 1, -1, np.int32)
        self._category_rows = np.zeros(len(self._category.first), np.int32)

    def _stand_ins(self, nameless: Array, address: Array, start: Array) -> list[int]:
        """Returns the numbers of what stands for the names of functions: the library's and the address."""
        columns = (self._library[nameless].tolist(), address[nameless].tolist(), start[nameless].tolist())
        return [
            self._texts.number(f"{name} {unnamed(begin)}" if begin else f"{name}+{at:#x}")
            for name, at, begin in ((self._libraries[n].name, at, begin) for n, at, begin in zip(*columns, strict=True))
        ]

    def _symbols_of(self, name: Array) -> _Once:
        """Returns the symbol of each row, by library, name and start; of those without one the last."""
        _, of_library = distinct_and_places(self._library << 32 | name)
        _, of_start = distinct_and_places(self._start)
        key = of_library.astype(np.int64) << 32 | of_start
        found = _once(key[self._has_symbol])
        number = np.full(len(key), len(found.first), np.int32)
        number[self._has_symbol] = found.number
        return _Once(number, np.flatnonzero(self._has_symbol)[found.first])

    def made(self, begin: int, end: int, trace: TraceBuilder, category_of: Callable[[str], int]) -> tuple[Array, Array]:
        """Returns how many frames each of the rows begin:end has (int64), and these, the outermost of each first
        (int32). category_of: gives the category of a name."""
        begin, end = np.searchsorted(self._rows, (begin, end)).tolist()
        first, last = self._first[[begin, end]].tolist()
        self._enter(begin, end, first, last, trace, category_of)
        n_frames, number = self._n_frames[begin:end], slice(first, last)
        of_rows = (
            self._category_rows[self._category.number[begin:end]], self._symbol_rows[self._symbols.number[begin:end]],
            np.where(self._has_symbol[begin:end], self._lib_rows(self._library[begin:end]), -1),
            self._address[begin:end],
        )  # fmt: skip
        category, symbol, lib, address = (np.repeat(column, n_frames).tolist() for column in of_rows)
        frames = trace.frames.intern_all(
            last - first, func=self._function_rows[self._functions.number[number]].tolist(),
            line=self._line[number].tolist(), category=category, symbol=symbol, lib=lib, address=address,
            inline_depth=self._depth[number].tolist(),
        )  # fmt: skip
        return n_frames, np.array(frames, np.int32)

    def _lib_rows(self, libraries: Array) -> list[int]:
        """Returns the rows of the trace's libs, which are entered as they are met."""
        return [self._libraries[nth].row for nth in libraries.tolist()]

    def _enter(
        self, begin: int, end: int, first: int, last: int, trace: TraceBuilder, category_of: Callable[[str], int]
    ) -> None:
        """Enters texts, functions, symbols and categories that come first in the rows begin:end, whose frames are
        first:last: texts in the order of the rows."""
        intern, texts = trace.strings.intern, self._shown
        functions, categories = self._functions.between(first, last), self._category.between(begin, end)
        waiting = [(int(self._first[row]), row) for row in self._category.first[categories].tolist()]
        names, sources = [], []

        def enter_categories(until: int) -> None:
            while waiting and waiting[0][0] <= until:
                at, row = waiting.pop(0)
                intern(texts[self._name[at]])
                category = category_of(self._libraries[int(self._library[row])].category)
                self._category_rows[self._category.number[row]] = category

        for at in self._functions.first[functions].tolist():
            enter_categories(at)
            path = texts[self._source[at]]
            names.append(intern(texts[self._name[at]]))
            sources.append(trace.sources.intern(path=intern(path)) if path else -1)
        enter_categories(last)
        symbols = self._symbols.between(begin, end)
        rows = self._symbols.first[symbols]
        self._symbol_rows[symbols] = trace.symbols.intern_all(
            len(rows), lib=self._lib_rows(self._library[rows]),
            name=[intern(texts[nth]) for nth in self._name[self._first[rows]].tolist()],
            address=self._start[rows].tolist(),
        )  # fmt: skip
        self._function_rows[functions] = trace.funcs.intern_all(
            len(names), kind=intern("function"), name=names, source=sources
        )


def _once(values: Array) -> _Once:
    """values: integers."""
    found, place = distinct_and_places(values)
    first = np.empty(len(found), np.int64)
    # Of several the last to be assigned stays.
    first[place[::-1]] = np.arange(len(values))[::-1]
    order = np.argsort(first)
    number = np.empty(len(found), np.int32)
    number[order] = np.arange(len(found))
    return _Once(number[place], first[order])
