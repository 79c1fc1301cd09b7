"""Map: what runs at an address of an ELF file, from its debug information and its symbol table. Only the units of
.debug_info that are asked for are decoded, by compiled code (`bulk.py`) where these are whole and of a usual coding.

The symbol of a function goes before the name in the debug information, as in symbolic, and paths have no "..".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array, distinct_and_places
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_links import NO_FILES, LinkedFiles
from traceferry.symbolication.demangle import shown_path
from traceferry.symbolication.dwarf.blocks import DW_LANG_HASKELL, Blocks
from traceferry.symbolication.dwarf.bulk import BulkLookup
from traceferry.symbolication.dwarf.debug_info import DebugInfo, Piece, debug_info
from traceferry.symbolication.dwarf.units import Lost, Unit
from traceferry.symbolication.interface import (
    NOTHING,
    Answer,
    Frames,
    Function,
    Inline,
    line_number,
    look_up,
    look_up_apart,
    taken,
)
from traceferry.symbolication.symbol_table import SymbolTable

Held = TypeVar("Held")


class Spans(Generic[Held]):
    """Things by the addresses that they hold: (first address, end, thing), in any order. Where some overlap, the last
    that starts holds an address, of those that start together the shortest, of equal ones the first."""

    def __init__(self, spans: Iterable[tuple[int, int, Held]]) -> None:
        self._spans = list(spans)[::-1]
        self._spans.sort(key=lambda span: (span[0], -span[1]))
        self._starts = [begin for begin, _, _ in self._spans]
        # How far those up to each reach together: where that is not to an address, looking further back is of no use.
        self._reach = list(accumulate((end for _, end, _ in self._spans), max))

    def at(self, address: int) -> Held | None:
        nth = bisect_right(self._starts, address) - 1
        while nth >= 0 and self._reach[nth] > address:
            if address < self._spans[nth][1]:
                return self._spans[nth][2]
            nth -= 1
        return None


class DwarfLookup:
    """table: what names functions of which the debug information knows nothing. lost: called for what is damaged or
    missing; linked: finds the files to which parts of the debug information were moved."""

    def __init__(self, binary: Binary, table: SymbolTable, lost: Lost, linked: LinkedFiles = NO_FILES) -> None:
        self._binary = binary
        self._table = table
        self._lost = lost
        self._linked = linked
        self._pieces: dict[int, Spans[Piece]] = {}
        self._functions: dict[tuple[int, int, int], Function | None] = {}

    def lookup(self, addresses: Array) -> Frames:
        """Returns the frames at addresses (uint64, in any order)."""
        found = self._in_functions(addresses)
        units = self._units_of_haskell(addresses[np.diff(found.first) == 0])
        if not units:
            return found
        is_in_unit = np.isin(addresses, np.array(list(units), np.uint64))
        others = taken(found, np.flatnonzero(~is_in_unit))
        return look_up_apart(addresses, is_in_unit, partial(self._in_blocks, units), lambda _: others)

    def _in_functions(self, addresses: Array) -> Frames:
        if self._bulk is None:
            return look_up(addresses, self.answer)
        distinct, which = distinct_and_places(addresses)
        found, is_left = self._bulk.lookup(distinct)
        if is_left.any():
            others = taken(found, np.flatnonzero(~is_left))
            found = look_up_apart(distinct, is_left, lambda left: look_up(left, self.answer), lambda _: others)
        return taken(found, which)

    def _in_blocks(self, units: dict[int, Unit], addresses: Array) -> Frames:
        """units: by address."""
        blocks = self._blocks
        return look_up(addresses, lambda at: blocks.answer(units[at], at) if blocks is not None else NOTHING)

    def answer(self, address: int) -> Answer:
        table = self._table
        row = int(table.rows(np.array([address], np.uint64))[0])
        function = self._function_at(address)
        symbol = table.name(row) if row >= 0 else ""
        if function is None or not (function.name or symbol):
            return Answer(*table.extent(row), [(symbol, *self._line_at(address))]) if row >= 0 else NOTHING
        is_renamed = symbol and (not function.name or table.extent(row)[0] == function.start)
        extent = (function.start, function.size) if function.name else table.extent(row)
        frames = frames_at(function, symbol if is_renamed else function.name, address)
        named = [frame for frame in frames if frame[0]]
        if self._info is not None and len(named) < len(frames):
            self._info.note_nameless_calls()
        return Answer(*extent, named)

    # ------------------------------------------------ the debug information

    @cached_property
    def _info(self) -> DebugInfo | None:
        return debug_info(self._binary, self._lost, self._linked)

    @cached_property
    def _bulk(self) -> BulkLookup | None:
        """Returns None where the compiled reader does not read the file."""
        found = BulkLookup(self._info, self._table) if self._info is not None else None
        return found if found is not None and found.is_usable else None

    @cached_property
    def _blocks(self) -> Blocks | None:
        return Blocks(self._info, self._table) if self._info is not None else None

    def _units_of_haskell(self, addresses: Array) -> dict[int, Unit]:
        """Returns the units of Haskell that hold addresses, by address."""
        if self._info is None or not len(addresses):
            return {}
        if self._bulk is None:
            units = {at: unit for at in addresses.tolist() if (unit := self._units[0].at(at)) is not None}
            return {at: unit for at, unit in units.items() if unit.root.number("DW_AT_language") == DW_LANG_HASKELL}
        numbers = self._bulk.units_at(addresses, DW_LANG_HASKELL)
        rows = zip(addresses.tolist(), numbers.tolist(), strict=True)
        return {at: self._info.units[nth] for at, nth in rows if nth >= 0}

    @cached_property
    def _units(self) -> tuple[Spans[Unit], list[Unit]]:
        """Returns (the units that say where their code is, those that do not)."""
        spans: list[tuple[int, int, Unit]] = []
        others: list[Unit] = []
        for unit in self._info.units if self._info else ():
            try:
                ranges = unit.root.ranges()
                if unit.is_partial:
                    continue
            except FormatError as error:
                self._lost(error)
                ranges = []
            spans += [(begin, end, unit) for begin, end in ranges]
            if not ranges:
                others.append(unit)
        return Spans(spans), others

    def _function_at(self, address: int) -> Function | None:
        if self._info is None:
            return None
        spans, others = self._units
        unit = spans.at(address)
        for candidate in others if unit is None else [unit]:
            piece = self._pieces_of(self._info, candidate).at(address)
            if piece is not None:
                key = (candidate.offset, piece.entry.offset, piece.begin)
                if key not in self._functions:
                    self._functions[key] = self._info.function(piece)
                return self._functions[key]
        return None

    def _line_at(self, address: int) -> tuple[str, int]:
        """Returns what the lines say of an address whose function is described in a file that is not here."""
        unit = self._units[0].at(address)
        return self._info.line_at(unit, address) if self._info is not None and unit is not None else ("", 0)

    def _pieces_of(self, info: DebugInfo, unit: Unit) -> Spans[Piece]:
        if unit.offset not in self._pieces:
            self._pieces[unit.offset] = Spans((p.begin, p.end, p) for p in info.code_of(unit))
        return self._pieces[unit.offset]


def frames_at(function: Function, name: str, address: int) -> list[tuple[str, str, int]]:
    """Returns the frames of an address of the function, the innermost first: (name, source, line).
    What is inlined may have no name."""
    rows = function.lines
    nth = bisect_right(rows, address, key=lambda row: row[0]) - 1
    _, source, line = rows[nth] if nth >= 0 else (0, "", 0)
    frames = [(name, source, line_number(line))]
    calls: Sequence[Inline] = function.inlines
    while call := next((call for call in calls if any(b <= address < e for b, e in call.ranges)), None):
        outer, source, line = frames[0]
        frames[0] = (outer, call.call_source, line_number(call.call_line))
        frames.insert(0, (call.name, source, line))
        calls = call.children
    return [(name, shown_path(source), line) for name, source, line in frames]
