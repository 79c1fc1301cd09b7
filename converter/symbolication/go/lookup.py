"""Map: what runs at an address of a program of Go, from the tables that its runtime has. They are in programs that are
stripped, too (`go build -ldflags "-s -w"`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.model import Array
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.demangle import shown_path
from traceferry.symbolication.go.functions import GoFunction, GoModule
from traceferry.symbolication.go.layout import Tables
from traceferry.symbolication.interface import NOTHING, Answer, Frames, Function, frames_of, taken
from traceferry.symbolication.runs import function_of, runs_of
from traceferry.symbolication.symbol_table import SymbolTable


class GoLookup:
    """Names functions. The symbol of one goes before its other name, which lacks the types of generic functions: so it
    is with debug information. tables, table: of the file. Raises FormatError where the tables have another layout, or
    nothing tells where the code is of which they speak."""

    def __init__(self, binary: Binary, tables: Tables, table: SymbolTable) -> None:
        self._module = GoModule(binary, tables)
        self._table = table
        self._known: dict[int, GoFunction] = {}

    def holds(self, addresses: Array) -> Array:
        """Whether a function of Go holds each address (uint64)."""
        held: Array = self._module.rows(addresses) >= 0
        return held

    def lookup(self, addresses: Array) -> Frames:
        """Returns the frames at addresses (uint64, in any order)."""
        distinct, which = np.unique(np.asarray(addresses, np.uint64), return_inverse=True)
        rows = self._module.rows(distinct).tolist()
        answers = [self._answer(row, address) for row, address in zip(rows, distinct.tolist(), strict=True)]
        return taken(frames_of(answers), which)

    def functions(self) -> Iterator[Function]:
        """Yields the functions, by address."""
        for row in np.flatnonzero(self._module.is_function).tolist():
            function = self._function(row)
            offsets = function.boundaries()
            runs = runs_of(offsets, [function.frames(offset) for offset in offsets], function.size)
            yield function_of(function.name, function.start, runs, function.size)

    def _answer(self, row: int, address: int) -> Answer:
        if row < 0:
            return NOTHING
        if row not in self._known:
            self._known[row] = self._function(row)
        function = self._known[row]
        frames = function.frames(address - function.start)[::-1]
        return Answer(function.start, function.size, [(name, shown_path(path), line) for name, path, line in frames])

    def _function(self, row: int) -> GoFunction:
        start = self._module.start[row : row + 1]
        (symbol,) = self._table.rows(start).tolist()
        is_own = symbol >= 0 and self._table.extent(symbol)[0] == int(start[0])
        return GoFunction(self._module, row, self._table.name(symbol) if is_own else "")
