"""Map: all functions of the debug information as columns, by compiled readers of entries and line programs: also of
units that are completed in files of their own, or refer to a file that several share.

Units that these do not read, since they are damaged or of unusual codings, are read one by one (`DebugInfo`), to whose
answers those here are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array
from traceferry.symbolication.dwarf._columns import Functions
from traceferry.symbolication.dwarf._entries import Entries
from traceferry.symbolication.dwarf._line_rows import LineRows
from traceferry.symbolication.dwarf.debug_info import QUALIFIED_LANGUAGES, DebugInfo
from traceferry.symbolication.dwarf.entries import (
    SECTIONS_OF_ENTRIES,
    SHARED,
    SPLIT,
    UNUSUAL,
    Names,
    entries_of,
    text_of,
)
from traceferry.symbolication.dwarf.forms import EFFORT, Sections
from traceferry.symbolication.dwarf.paths import Paths
from traceferry.symbolication.dwarf.units import Unit, Units
from traceferry.symbolication.function_table import Calls, FunctionTable, Rows, Texts, joined, table_of


def described_functions(info: DebugInfo, texts: Texts) -> FunctionTable:
    """Returns all functions, also those without a name, in the order of the units and their entries."""
    return _Described(info, texts).all()


class _Described:
    """All that `info` describes; texts: of the columns."""

    def __init__(self, info: DebugInfo, texts: Texts) -> None:
        self._info = info
        self._texts = texts
        self._text = np.array(info.text, np.uint64).reshape(-1, 2)
        self._units = _Units(info, info.units_of, self._text, texts)
        self._lines = _Lines(info.sections, self._units.entries, texts)
        # By unit, the functions that are not in `_units`.
        self._apart: dict[int, FunctionTable] = {}

    def all(self) -> FunctionTable:
        entries = self._units.entries
        if not entries.survey():
            return table_of(self._info.functions(), self._texts)
        numbers = [self._read(nth, state) for nth, state in enumerate(entries.states.tolist())]
        n_apart = np.array([len(table) for table in self._apart.values()], np.int64)
        of_apart = np.repeat(np.array(list(self._apart), np.int64), n_apart)
        unit = np.concatenate((np.repeat(np.arange(len(numbers)), np.array(numbers, np.int64)), of_apart))
        found = joined([self._units.columns(), *self._apart.values()])
        return found.taken(np.argsort(unit, kind="stable"))

    def _read(self, nth: int, state: int) -> int:
        """Returns how many functions of a unit were added to `_units`. Those of one that is completed in another file,
        or is read one by one, are then in `_apart`."""
        try:
            split = self._info.split.unit_of(self._info.units[nth]) if state == SPLIT else None
            if split is not None:
                self._apart[nth] = self._of_split(self._info.units[nth], split)
                return 0
            number = self._units.read(nth, lambda: self._lines.of(nth)) if state != UNUSUAL else -1
        except FormatError:
            number = -1
        if number < 0:
            self._apart[nth] = table_of(self._info.functions_of(self._info.units[nth]), self._texts)
        return max(number, 0)

    def _of_split(self, skeleton: Unit, unit: Unit) -> FunctionTable:
        """Returns the functions of the unit that completes a skeleton. Raises FormatError where it cannot be read."""
        units = _Units(self._info, unit.units, self._text, self._texts)
        units.entries.complete(*skeleton.bases)
        try:
            nth = units.entries.number_of(unit.offset) if units.entries.find() else -1
            if nth < 0 or units.read(nth, lambda: self._lines.of_split(skeleton)) < 0:
                raise FormatError("the unit cannot be read", unit.offset, ".debug_info")
        finally:
            # Several skeletons may name one unit, and units the same bytes of others.
            self._info.sections.spend(units.entries.spent)
        return units.columns()


# ---------------------------------------------------------------- entries


class _Units:
    """The units of one .debug_info, from which functions are read; text: sections with code, uint64 [n, 2]."""

    def __init__(self, info: DebugInfo, units: Units, text: Array, texts: Texts) -> None:
        self._info = info
        self._texts = texts
        self.entries = entries_of(units.sections)
        self._names_of = Names(info, units, self.entries)
        allowed = sum(len(units.sections.held[name]) for name in (*SECTIONS_OF_ENTRIES, "line"))
        self._functions = Functions(self.entries, text, allowed)

    def read(self, nth: int, lines_of: Callable[[], LinesOfUnit]) -> int:
        """Returns how many functions of a unit were added, -1: it cannot be read. lines_of: asked for where there are
        some. Raises FormatError where lines cannot be read."""
        n_pieces = self._functions.find(nth)
        root = self.entries.root(nth) if n_pieces > 0 else None
        if root is None:
            return -1 if n_pieces else 0
        lines = lines_of()
        return self._functions.read(nth, lines.rows, lines, root[0] in QUALIFIED_LANGUAGES)

    def columns(self) -> FunctionTable:
        """Returns all that was read."""
        names = np.append(self._names(), np.int32(-1))
        name, start, size, first_row, first_call = self._functions.of_functions()
        call_name, source, line, depth, first_range, begin, end = self._functions.of_calls()
        rows = Rows(*self._functions.of_rows())
        calls = Calls(names[call_name], source, line, depth, first_range, begin, end)
        return FunctionTable(
            self._texts, names[name], start, size,
            first_row[:-1], first_row[1:], first_call[:-1], first_call[1:], rows, calls,
        )  # fmt: skip

    def _names(self) -> Array:
        """Returns the names (int32, of the texts) that the functions have; -1 of those that cannot be read."""
        columns = (column.tolist() for column in self._functions.names_wanted())
        return np.array([self._number_of_name(*one) for one in zip(*columns, strict=True)], np.int32)

    def _number_of_name(self, kind: int, at: int, entry: int, is_qualified: bool) -> int:
        try:
            name = self._names_of.qualified(kind, at, entry) if is_qualified else self._names_of.text(kind, at)
        except FormatError as error:
            self._info.lost(error)
            return -1
        return self._texts.number(name)


# ---------------------------------------------------------------- lines


class _Lines:
    """The line programs of units, and the paths of their files. texts: of these."""

    def __init__(self, sections: Sections, entries: Entries, texts: Texts) -> None:
        self._sections = sections
        self._entries = entries
        self._texts = texts
        self._paths = Paths(sections)
        # Units that have a program in common mostly follow each other.
        self._last: tuple[int, LineRows | None] = (-1, None)
        self._left = EFFORT * len(sections.line)

    def of(self, unit: int) -> LinesOfUnit:
        """Returns those of a unit, which is in the file that several share where it has the bit SHARED. Raises
        FormatError where they cannot be read."""
        if unit >= SHARED:
            return self._of_shared.of(unit % SHARED)
        root = self._entries.root(unit)
        if root is None:
            raise FormatError("the unit cannot be read", None, ".debug_info")
        _, at, kind, place, _ = root
        return self._at(at, text_of(self._sections, kind, place))

    def of_split(self, skeleton: Unit) -> LinesOfUnit:
        """Returns those of the units that complete a skeleton, which are the skeleton's."""
        root = skeleton.root
        lines = self._at(root.number("DW_AT_stmt_list"), root.text("DW_AT_comp_dir"))
        return lines._replace(are_of_all=True)

    @cached_property
    def _of_shared(self) -> _Lines:
        sections, entries = self._sections.shared, self._entries.shared
        if sections is None or entries is None:
            raise FormatError("the unit is in another file", None, ".debug_info")
        return _Lines(sections, entries, self._texts)

    def _at(self, at: int | None, folder: str) -> LinesOfUnit:
        """Returns those of a unit that names the program at `at`, None is none. folder: of the compiler."""
        return LinesOfUnit(self, self._rows(at), folder)

    def _rows(self, at: int | None) -> LineRows | None:
        if at is None or at == self._last[0]:
            return self._last[1] if at is not None else None
        rows = LineRows(self._sections.line.bytes, at, self._sections.order == "big")
        self._left -= rows.n_spent
        if not rows.is_read or self._left < 0:
            raise FormatError("the line program cannot be read", at, ".debug_line")
        self._last = at, rows
        return rows

    def source(self, rows: LineRows | None, number: int, folder: str) -> int:
        """Returns the number of a file's path, -1: there is none."""
        return self._texts.number(self._paths.of(rows, number, folder)) if rows is not None else -1


class LinesOfUnit(NamedTuple):
    """rows: None of a unit without lines; folder: of the compiler; are_of_all: other units of the same file have the
    same lines."""

    lines: _Lines
    rows: LineRows | None
    folder: str
    are_of_all: bool = False

    def source(self, number: int) -> int:
        return self.lines.source(self.rows, number, self.folder)

    def source_elsewhere(self, unit: int, number: int) -> int:
        return self.source(number) if self.are_of_all else self.lines.of(unit).source(number)
