"""Map: all functions of the debug information as columns, by compiled readers of entries and line programs.

Units that these do not read, since they are damaged, of unusual codings, or in files of their own, are read one by one
(`DebugInfo`), to whose answers those here are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array
from traceferry.symbolication.dwarf._columns import Functions
from traceferry.symbolication.dwarf._entries import Entries
from traceferry.symbolication.dwarf._line_rows import LineRows
from traceferry.symbolication.dwarf.bulk import LAMBDA, TEXT_SECTIONS, forms
from traceferry.symbolication.dwarf.debug_info import QUALIFIED_LANGUAGES, DebugInfo, context_name, lambda_name
from traceferry.symbolication.dwarf.forms import EFFORT, Sections, text_at
from traceferry.symbolication.dwarf.paths import Paths
from traceferry.symbolication.function_table import Calls, FunctionTable, Rows, Texts, joined, table_of

# What _entries.pyx calls units that it does not read.
UNUSUAL = 2
ENTRIES_SECTIONS = ("info", "abbrev", "ranges", "rnglists", "addr", "str_offsets", "str", "line_str")


def described_functions(info: DebugInfo, texts: Texts) -> FunctionTable:
    """Returns all functions in the order of the units and their entries."""
    return _Described(info, texts).all()


class _Described:
    """All that `info` describes; texts: of the columns."""

    def __init__(self, info: DebugInfo, texts: Texts) -> None:
        self._info = info
        self._texts = texts
        self._sections = info.sections
        parts = [self._sections.held[name].bytes for name in ENTRIES_SECTIONS]
        self._entries = Entries(parts, forms(), self._sections.order == "big")
        text = np.array(info.text, np.uint64).reshape(-1, 2)
        allowed = sum(map(len, parts)) + len(self._sections.line)
        self._functions = Functions(self._entries, text, allowed)
        self._lines = _Lines(self._sections, self._entries, texts)

    def all(self) -> FunctionTable:
        if not self._entries.survey():
            return table_of(self._info.functions(), self._texts)
        states = self._entries.states.tolist()
        numbers = np.array([self._read(nth) if state < UNUSUAL else -1 for nth, state in enumerate(states)], np.int64)
        left = np.flatnonzero(numbers < 0)
        others = [table_of(self._info.functions_of(self._info.units[nth]), self._texts) for nth in left.tolist()]
        numbers[left] = 0
        n_left = np.array([len(table) for table in others], np.int64)
        unit = np.concatenate((np.repeat(np.arange(len(numbers)), numbers), np.repeat(left, n_left)))
        found = joined([self._columns(), *others])
        # A function without a name is none.
        order = np.argsort(unit, kind="stable")
        return found.taken(order[found.name[order] >= 0])

    def _read(self, nth: int) -> int:
        """Returns how many functions of a unit were added, -1: it cannot be read."""
        n_pieces = self._functions.find(nth)
        root = self._entries.root(nth) if n_pieces > 0 else None
        if root is None:
            return -1 if n_pieces else 0
        try:
            lines = self._lines.of(nth)
            return self._functions.read(nth, lines.rows, lines, root[0] in QUALIFIED_LANGUAGES)
        except FormatError:
            return -1

    # ------------------------------------------------ columns

    def _columns(self) -> FunctionTable:
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

    def _number_of_name(self, kind: int, at: int, target: int, is_qualified: bool) -> int:
        try:
            name = self._qualified(kind, at, target) if is_qualified else text_of(self._sections, kind, at)
        except FormatError as error:
            self._info.lost(error)
            return -1
        return self._texts.number(name)

    def _qualified(self, kind: int, at: int, target: int) -> str:
        """Returns a name with those of what is around an entry in front."""
        contexts = self._entries.contexts(target)
        if contexts is None:
            found = self._info.units_of.entry_at(target)
            return self._info.name_of(found) if found is not None else ""
        around = [self._context(*context) for context in reversed(contexts)]
        name = "::".join([*around, text_of(self._sections, kind, at)])
        self._sections.spend(len(name))
        return name

    def _context(self, kind: int, value: int) -> str:
        return lambda_name(value) if kind == LAMBDA else context_name(text_of(self._sections, kind, value))


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

    def of(self, unit: int) -> _LinesOfUnit:
        """Raises FormatError where they cannot be read."""
        root = self._entries.root(unit)
        if root is None:
            raise FormatError("the unit cannot be read", None, ".debug_info")
        _, at, kind, place, _ = root
        folder = text_of(self._sections, kind, place)
        return _LinesOfUnit(self, self._rows(at), folder)

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


class _LinesOfUnit(NamedTuple):
    """rows: None of a unit without lines; folder: of the compiler."""

    lines: _Lines
    rows: LineRows | None
    folder: str

    def source(self, number: int) -> int:
        return self.lines.source(self.rows, number, self.folder)

    def source_elsewhere(self, unit: int, number: int) -> int:
        return self.lines.of(unit).source(number)


def text_of(sections: Sections, kind: int, at: int) -> str:
    """Returns a text where compiled code found it: see `Entries.names`."""
    if kind < 2:
        return text_at(sections.info, at)[0] if kind else ""
    return sections.text(TEXT_SECTIONS[kind], at)
