"""Map: code of Haskell that is in no function of the debug information, but in a block of one.

GHC (compiler/GHC/CmmToAsm/Dwarf.hs) gives a DW_TAG_subprogram the addresses of its first block
alone. The others are lexical blocks below it, with addresses outside of its own. Symbols are those of functions that
modules export: a local function is named by its entry.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.symbolication.dwarf.debug_info import DebugInfo, Piece
from traceferry.symbolication.dwarf.units import Entry, Unit
from traceferry.symbolication.interface import NOTHING, Answer
from traceferry.symbolication.symbol_table import SymbolTable

DW_LANG_HASKELL = 0x18


class Blocks:
    """Look-ups in the blocks of functions. table: has the names of those that are exported."""

    def __init__(self, info: DebugInfo, table: SymbolTable) -> None:
        self._info = info
        self._table = table
        # By the offset of the unit, by address.
        self._pieces: dict[int, list[Piece]] = {}

    def answer(self, unit: Unit, address: int) -> Answer:
        """Returns what runs at an address of a unit; as start and size those of the block."""
        pieces = self._pieces_of(unit)
        nth = bisect_right(pieces, address, key=lambda piece: piece.begin) - 1
        if nth < 0 or address >= pieces[nth].end:
            return NOTHING
        begin, end, entry = pieces[nth]
        name = self._name(entry)
        return Answer(begin, end - begin, [(name, *self._info.line_at(unit, address))]) if name else NOTHING

    def _pieces_of(self, unit: Unit) -> list[Piece]:
        if unit.offset not in self._pieces:
            self._pieces[unit.offset] = sorted(self._blocks(unit), key=lambda piece: (piece.begin, piece.end))
        return self._pieces[unit.offset]

    def _blocks(self, unit: Unit) -> Iterator[Piece]:
        """Yields the blocks with the functions that hold them."""
        try:
            for entry in unit.entries.values():
                function = entry
                while function.tag == "DW_TAG_lexical_block" and function.parent is not None:
                    self._info.sections.spend(1)
                    function = function.parent
                if entry.tag == "DW_TAG_lexical_block" and function.tag == "DW_TAG_subprogram":
                    yield from (Piece(begin, end, function) for begin, end in entry.ranges() if begin < end)
        except FormatError as error:
            self._info.lost(error)

    def _name(self, function: Entry) -> str:
        """Returns the symbol of a function; else its name in the source."""
        try:
            begin = next((begin for begin, _ in function.ranges()), 0)
            row = int(self._table.rows(np.array([begin], np.uint64))[0])
            if row >= 0 and self._table.extent(row)[0] == begin:
                return self._table.name(row)
            return function.text("DW_AT_name") or self._info.name_of(function)
        except FormatError as error:
            self._info.lost(error)
            return ""
