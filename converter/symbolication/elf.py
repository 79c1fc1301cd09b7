"""An ELF binary behind the interface: names and sizes from the symbol table; where there is debug information, names,
lines and inlined functions from that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import merge
from typing import TYPE_CHECKING

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Array, distinct_and_places
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_links import MINI_DEBUG_INFO, NO_FILES, LinkedFiles, mini_debug_info
from traceferry.symbolication.function_table import FunctionTable, table_of
from traceferry.symbolication.interface import Frames, Function, Symbols, look_up_apart
from traceferry.symbolication.symbol_table import SymbolTable, symbols_of

if TYPE_CHECKING:
    from traceferry.symbolication.dwarf.lookup import DwarfLookup
    from traceferry.symbolication.go.lookup import GoLookup
    from traceferry.symbolication.gsym.reader import Gsym

GSYM_SECTION = ".gsym"
# What gives the names of a file that is not stripped.
DEBUG_INFORMATION, SYMBOL_TABLE = "debug information", "the symbol table"


class ElfSymbols:
    """Names as the symbol table and the debug information have them, C++ ones mangled. linked: finds the files to which
    parts of the debug information were moved."""

    def __init__(self, binary: Binary, linked: LinkedFiles = NO_FILES) -> None:
        self.binary = binary
        self.linked = linked
        self.path, self.name, self.base = binary.path, binary.name, binary.base
        self._problems: set[tuple[int, str]] = set()

    @property
    def build_id(self) -> str:
        return self.binary.build_id

    @cached_property
    def embedded(self) -> Gsym | None:
        """The GSYM data that the file holds, which then answers for it."""
        try:
            if self.binary.section(GSYM_SECTION) is None:
                return None
            from traceferry.symbolication.gsym.reader import Gsym

            return Gsym(Source(self.path, self.binary.data))
        except FormatError as error:
            self._lost(error)
            return None

    def lookup(self, addresses: Array) -> Frames:
        addresses = np.asarray(addresses, np.uint64)
        if self.embedded is not None:
            are_stubs = self.table.are_stubs(addresses)
            return look_up_apart(addresses, are_stubs, self.table.lookup, self.embedded.lookup)
        if not self.has_debug_info:
            return self._without_debug_info(addresses)
        return look_up_apart(addresses, self.table.are_stubs(addresses), self.table.lookup, self._dwarf.lookup)

    def _without_debug_info(self, addresses: Array) -> Frames:
        if self._go is None:
            return self.table.lookup(addresses)
        return look_up_apart(addresses, self._go.holds(addresses), self._go.lookup, self.table.lookup)

    @cached_property
    def table(self) -> SymbolTable:
        try:
            return SymbolTable(self.binary, mini_debug_info(self.binary))
        except FormatError as error:
            self._lost(error)
            return SymbolTable(self.binary)

    @cached_property
    def _dwarf(self) -> DwarfLookup:
        from traceferry.symbolication.dwarf.lookup import DwarfLookup

        return DwarfLookup(self.binary, self.table, self._lost, self.linked)

    @cached_property
    def _go(self) -> GoLookup | None:
        """The tables of Go's runtime, in a program without debug information."""
        from traceferry.symbolication.go.layout import find_tables

        try:
            tables = find_tables(self.binary) if not self.has_debug_info else None
            if tables is None:
                return None
            from traceferry.symbolication.go.lookup import GoLookup

            return GoLookup(self.binary, tables, self.table)
        except FormatError as error:
            self._lost(error)
            return None

    @property
    def has_debug_info(self) -> bool:
        """Whether the file has debug information itself."""
        names = {section.name for section in self.binary.sections}
        return not names.isdisjoint((".debug_info", ".zdebug_info"))

    @property
    def has_lines(self) -> bool:
        """Whether the file has debug information itself, or what takes its place: GSYM data, or tables of Go."""
        has_gsym = any(section.name == GSYM_SECTION for section in self.binary.sections)
        return self.has_debug_info or has_gsym or self._go is not None

    @property
    def gives(self) -> str:
        if self.has_lines:
            return DEBUG_INFORMATION if self._go is None else "the tables of Go's runtime"
        if len(symbols_of(self.binary, ".symtab")) > 1:
            return SYMBOL_TABLE
        has_mini = any(section.name == MINI_DEBUG_INFO for section in self.binary.sections)
        return "MiniDebugInfo" if has_mini else "the dynamic symbols"

    def functions(self) -> Iterator[Function]:
        if self.embedded is not None:
            return self.embedded.functions()
        found = self._function_table().functions()
        return found if self._go is None else self._with_those_of_go(self._go, found)

    def function_table(self) -> FunctionTable:
        """Returns the functions as columns."""
        if self.embedded is not None or self._go is not None:
            return table_of(self.functions())
        return self._function_table()

    def _function_table(self) -> FunctionTable:
        from traceferry.symbolication.dwarf.functions import function_table

        return function_table(self.binary, self._lost, self.linked)

    def _with_those_of_go(self, go: GoLookup, others: Iterator[Function]) -> Iterator[Function]:
        """Yields the functions of Go and what else there is, by address."""
        found = list(others)
        is_go = go.holds(np.array([function.start for function in found], np.uint64)).tolist()
        rest = [function for function, held in zip(found, is_go, strict=True) if not held]
        return merge(go.functions(), rest, key=lambda function: (function.start, function.size))

    def declared_lines(self, names: set[str]) -> dict[str, int]:
        """Returns the lines at which functions of these linkage names are declared."""
        from traceferry.symbolication.dwarf.debug_info import debug_info

        info = debug_info(self.binary, self._lost, self.linked) if self.embedded is None else None
        return info.declared_lines(names) if info is not None else {}

    def _lost(self, error: FormatError) -> None:
        self._problems.add((error.offset or 0, str(error.message)))

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        embedded = self.embedded.problems if self.embedded is not None else ()
        return [*sorted(self._problems), *embedded]

    def names_at(self, starts: Array) -> list[str]:
        """Returns what look-ups call the functions that start there, of several names one; "" where none starts.
        starts: uint64."""
        if self.embedded is not None:
            return [""] * len(starts)
        found = self.table.lookup(starts)
        is_start = (np.diff(found.first) > 0) & (found.start == starts)
        # Of a function without frames the index is that of another, or outside.
        outermost = np.append(found.name, np.int32(-1))[np.where(is_start, found.first[1:] - 1, len(found.name))]
        return [found.texts[name] if name >= 0 else "" for name in outermost.tolist()]


def named_functions(symbols: Symbols) -> FunctionTable:
    """Returns the functions; of several names of one, the one that look-ups in the file itself give."""
    if not isinstance(symbols, ElfSymbols):
        return table_of(symbols.functions())
    found = symbols.function_table()
    starts, which = distinct_and_places(found.start)
    names = np.array([found.texts.number(name) for name in symbols.names_at(starts)], np.int32)[which]
    return replace(found, name=np.where(names >= 0, names, found.name))
