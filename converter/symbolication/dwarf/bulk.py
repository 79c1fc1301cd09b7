"""Map: look-ups of many addresses at once in the debug information, by compiled readers of entries and line programs.

What these do not read, damaged bytes and unusual codings, is left to the reader of single addresses (`lookup.py`), to
whose answers those here are equal.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array, distinct, distinct_and_places
from traceferry.symbolication.demangle import shown_path
from traceferry.symbolication.dwarf._line_rows import LineRows
from traceferry.symbolication.dwarf.debug_info import QUALIFIED_LANGUAGES, DebugInfo
from traceferry.symbolication.dwarf.entries import ELSEWHERE, QUALIFIED, READABLE, WITHOUT_CODE, Names, entries_of
from traceferry.symbolication.dwarf.forms import Sections
from traceferry.symbolication.dwarf.paths import Paths
from traceferry.symbolication.function_table import Texts
from traceferry.symbolication.interface import Frames, line_number
from traceferry.symbolication.symbol_table import SymbolTable

NO_FILE = 0xFFFF_FFFF


class Found(NamedTuple):
    """The functions at addresses in one unit. begin, end: uint64 [n], of the piece of a function, 0 where none is
    described. For each of their frames, the innermost first, address: int64, which; name, source: int64, of Texts, -1
    is none, which only the name of the outermost may be; line, discriminator: int32. row_source, row_line: what the
    lines say of each address."""

    begin: Array
    end: Array
    address: Array
    name: Array
    source: Array
    line: Array
    discriminator: Array
    row_source: Array
    row_line: Array


class Spans:
    """Units by the addresses that they hold. Where some overlap, the last that starts holds an address, of those that
    start together the shortest, of equal ones the first. unit: int64; begin, end: uint64."""

    def __init__(self, unit: Array, begin: Array, end: Array) -> None:
        order = np.lexsort((-np.arange(len(unit)), ~end, begin))
        self._unit, self._begin, self._end = unit[order], begin[order], end[order]
        # How far those up to each reach together: where that is not to an address, looking further back is of no use.
        self._reach = np.maximum.accumulate(self._end)

    def at(self, addresses: Array) -> Array:
        """Returns the unit that holds each address (uint64), -1 where none does."""
        found = np.full(len(addresses), -1, np.int64)
        pending = np.arange(len(addresses))
        nth = np.searchsorted(self._begin, addresses, "right") - 1
        while len(pending):
            is_open = (nth >= 0) & (self._reach[nth] > addresses[pending]) if len(self._reach) else nth < -1
            pending, nth = pending[is_open], nth[is_open]
            is_held = self._end[nth] > addresses[pending]
            found[pending[is_held]] = self._unit[nth[is_held]]
            pending, nth = pending[~is_held], nth[~is_held] - 1
        return found


def shifted(column: Array) -> Array:
    """Returns a column of which each row has what the one in front had, the first 0."""
    found = np.zeros_like(column)
    found[1:] = column[:-1]
    return found


class BulkLookup:
    """Look-ups in what `info` describes. sections: of the file with the units; table: what else names functions."""

    def __init__(self, info: DebugInfo, table: SymbolTable) -> None:
        self._sections = info.sections
        self._text = np.array(info.text, np.uint64).reshape(-1, 2)
        self._info = info
        self._table = table
        self._entries = entries_of(info.sections)
        self._names_of = Names(info, info.units_of, self._entries)
        self._texts = Texts()
        self._paths = Paths(info.sections)
        self._name_of: dict[tuple[int, int], int] = {}

    @cached_property
    def is_usable(self) -> bool:
        """Whether all units that have code can be read."""
        return bool(self._entries.survey() and np.all(self._entries.states <= WITHOUT_CODE))

    @cached_property
    def _spans(self) -> Spans:
        return Spans(*self._entries.code)

    @cached_property
    def _others(self) -> list[int]:
        """The units that do not say where their code is."""
        has_code = np.zeros(len(self._entries.states), bool)
        has_code[self._entries.code[0]] = True
        return np.flatnonzero(~has_code & (self._entries.states == READABLE)).tolist()

    def lookup(self, addresses: Array) -> tuple[Frames, Array]:
        """Returns the frames of addresses (uint64, rising, none twice), and which of them (bool) are left to others,
        whose frames are none."""
        self._entries.renew()
        unit = self._spans.at(addresses)
        is_left = np.zeros(len(addresses), bool)
        parts: list[tuple[Array, Found]] = []
        order = np.argsort(unit, kind="stable")
        bounds = np.flatnonzero(np.diff(unit[order], prepend=-2, append=len(self._entries.states)))
        for first, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            rows = order[first:end]
            nth = int(unit[rows[0]])
            look_up = partial(self._in_unit, nth) if nth >= 0 else self._elsewhere
            parts += look_up(rows, addresses, is_left)
        return self._joined(addresses, parts), is_left

    def _in_unit(self, nth: int, rows: Array, addresses: Array, is_left: Array) -> list[tuple[Array, Found]]:
        try:
            found = self._found(nth, addresses[rows])
        except FormatError:
            found = None
        if found is None:
            is_left[rows] = True
            return []
        return [(rows, found)]

    def _elsewhere(self, rows: Array, addresses: Array, is_left: Array) -> list[tuple[Array, Found]]:
        """Looks in units that do not say where their code is."""
        parts = []
        for nth in self._others:
            for of_part, found in self._in_unit(nth, rows, addresses, is_left):
                is_found = found.end > 0
                if is_found.any():
                    parts.append((of_part, found))
                rows = of_part[~is_found]
            if is_left[rows].any() or not len(rows):
                break
        return parts

    def units_at(self, addresses: Array, language: int) -> Array:
        """Returns which unit holds each address (uint64): int64, -1 where none in this language (DW_LANG_*) does."""
        unit = self._spans.at(addresses)
        roots = {nth: self._entries.root(nth) for nth in distinct(unit).tolist() if nth >= 0}
        wanted = [nth for nth, root in roots.items() if root is not None and root[0] == language]
        return np.where(np.isin(unit, wanted), unit, -1)

    # ------------------------------------------------ one unit

    def _found(self, nth: int, asked: Array) -> Found | None:
        looked_up = self._entries.look_up(nth, asked, self._text)
        if looked_up is None:
            return None
        begin, end, first, entry, file, line, discriminator = looked_up
        root = self._entries.root(nth)
        if root is None:
            return None
        language, lines_at, folder_kind, folder_at, is_of_gcc = root
        is_qualified = language in QUALIFIED_LANGUAGES
        distinct, which = distinct_and_places(entry)
        name = self._names(nth, distinct, is_qualified)[which]
        is_rest = self._are_rests(first, entry, line, name, self._entries.instances(nth, distinct)[which])
        n_rests = np.add.reduceat(np.append(is_rest, False), first[:-1], dtype=np.int64) * (np.diff(first) > 0)
        entry, file, line, discriminator, name = (
            column[~is_rest] for column in (entry, file, line, discriminator, name)
        )
        first = np.concatenate(([0], np.cumsum(np.diff(first) - n_rests)))
        has_function = end > 0
        lines = _Lines(self._sections, lines_at, self._names_of.text(folder_kind, folder_at), self._texts, self._paths)
        if not lines.is_read:
            return None
        begin_of_rows = np.where(has_function, begin, asked)
        end_of_rows = np.where(has_function, end, asked + np.uint64(1))
        row_file, row_line, row_discriminator = lines.rows(begin_of_rows, end_of_rows, asked)
        # Padding in front of its first row may be of a function.
        is_behind = row_file == NO_FILE
        row_file[is_behind], row_line[is_behind], row_discriminator[is_behind] = lines.rows(
            asked[is_behind], asked[is_behind] + np.uint64(1), asked[is_behind]
        )
        # A frame is where the call of the one inside of it is.
        file, line, discriminator = shifted(file), shifted(line), shifted(discriminator)
        innermost = first[:-1][has_function]
        file[innermost], line[innermost] = row_file[has_function], row_line[has_function]
        discriminator[innermost] = row_discriminator[has_function]
        # GCC counts from 1 on what LLVM makes of several numbers.
        discriminator[is_of_gcc | (discriminator >= 1 << 31)] = 0
        source, row_source = lines.sources(file), lines.sources(row_file)
        for row in np.flatnonzero(has_function & (row_file == NO_FILE)).tolist():
            declared, declared_line = self._declared(int(entry[first[row + 1] - 1]), int(begin[row]))
            source[first[row]], line[first[row]] = self._texts.number(declared), declared_line
        of_address = np.repeat(np.arange(len(asked)), np.diff(first))
        # A symbol may name a function; nothing else names what is inlined.
        is_inlined = np.append(of_address[1:] == of_address[:-1], False)
        is_kept = has_function[of_address] & ((name >= 0) | ~is_inlined)
        if np.any(has_function[of_address] & ~is_kept):
            self._info.note_nameless_calls()
        line[line >= 1 << 31] = 0
        line, discriminator = (column[is_kept].astype(np.int32) for column in (line, discriminator))
        frames = of_address[is_kept], name[is_kept], source[is_kept], line, discriminator
        begin[~has_function] = end[~has_function] = 0
        row_line[row_line >= 1 << 31] = 0
        return Found(begin, end, *frames, row_source, row_line)

    def _names(self, nth: int, entries: Array, is_qualified: bool) -> Array:
        """Returns the names (int64, of Texts) of entries of a unit, which are given by their offsets (uint64)."""
        kinds, values, targets = (column.tolist() for column in self._entries.names(nth, entries))
        found = []
        for kind, value, target, entry in zip(kinds, values, targets, entries.tolist(), strict=True):
            is_text = kind != ELSEWHERE and kind < QUALIFIED
            key = (kind, value) if is_text else (QUALIFIED + is_qualified, target)
            number = self._name_of.get(key)
            if number is None:
                name = self._names_of.text(kind, value) if is_text else self._name(kind, value, target, entry)
                number = self._name_of[key] = self._texts.number(name)
            found.append(number)
        return np.array(found, np.int64)

    def _are_rests(self, first: Array, entry: Array, line: Array, name: Array, instance: Array) -> Array:
        """Returns which frames are of the rest of the function that the next frame is of, as `DebugInfo.is_rest_of`
        says: bool. line: of the call; instance: of which functions the entries are, uint64."""
        is_rest = np.zeros(len(entry), bool)
        is_outermost = np.zeros(len(entry), bool)
        is_outermost[first[1:][np.diff(first) > 0] - 1] = True
        is_of_one = (name[:-1] == name[1:]) & (name[:-1] >= 0) & (instance[:-1] == instance[1:])
        alike = np.flatnonzero(is_of_one & ~is_outermost[:-1])
        if not len(alike):
            return is_rest
        rows = np.stack((entry[alike], entry[alike + 1], line[alike]), axis=1)
        pairs, which = np.unique(rows, axis=0, return_inverse=True)
        is_rest[alike] = np.array([self._is_rest(*pair) for pair in pairs.tolist()], bool)[which.reshape(-1)]
        return is_rest

    def _is_rest(self, call: int, entry: int, line: int) -> bool:
        """Whether a call, in this line, of the function that `entry` is of, too, is the rest of that."""
        found = self._entries.declaration(call)
        if found is not None:
            declared, column, called = found
            return declared == line > 0 and (not column or not called or column == called)
        one, other = self._info.units_of.entry_at(call), self._info.units_of.entry_at(entry)
        return one is not None and other is not None and self._info.is_rest_of(one, other)

    def _name(self, kind: int, value: int, target: int, entry: int) -> str:
        """Returns a name that has others in front, or that compiled code does not read. target: an entry that has the
        same."""
        if kind == ELSEWHERE:
            return self._names_of.of(entry)
        return self._names_of.qualified(kind - QUALIFIED, value, target)

    def _declared(self, entry: int, begin: int) -> tuple[str, int]:
        """Returns (source, line) of the declaration of a function, of which no line is known."""
        found = self._info.units_of.entry_at(entry)
        rows = self._info.declared_at(found, begin) if found is not None else []
        return (shown_path(rows[0][1]), line_number(rows[0][2])) if rows else ("", 0)

    # ------------------------------------------------ all units

    def _joined(self, addresses: Array, parts: list[tuple[Array, Found]]) -> Frames:
        """Returns the frames of all units by address. Where no function is described, the symbol table may name one."""
        n = len(addresses)
        begin, end = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        row_source, row_line = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        for rows, part in parts:
            begin[rows], end[rows] = part.begin, part.end
            row_source[rows], row_line[rows] = part.row_source, part.row_line
        named = self._table.rows(addresses)
        has_symbol = named >= 0
        used, which = distinct_and_places(named[has_symbol])
        symbol = np.full(n, -1, np.int64)
        symbol[has_symbol] = np.array([self._texts.number(name) for name in self._table.names(used)], np.int64)[which]
        symbol_start = np.zeros(n, np.uint64)
        symbol_start[has_symbol] = self._table.starts(used)[which]
        is_nameless = np.zeros(n, bool)
        for rows, part in parts:
            is_nameless[rows[part.address[part.name < 0]]] = True
        has_function = (end > 0) & (~is_nameless | (symbol >= 0))
        alone = np.flatnonzero(has_symbol & ~has_function)
        of_parts = [_frames_of(rows, part, has_function) for rows, part in parts]
        of_parts.append((alone, symbol[alone], row_source[alone], row_line[alone], np.zeros(len(alone), np.int64)))
        of_address, *columns = (np.concatenate(column) for column in zip(*of_parts, strict=True))
        order = np.argsort(of_address, kind="stable")
        name, source, line, discriminator = (column[order] for column in columns)
        first = np.concatenate(([0], np.cumsum(np.bincount(of_address, minlength=n))))
        outermost = first[1:] - 1
        is_renamed = has_function & (symbol >= 0) & (is_nameless | (symbol_start == begin))
        name[outermost[is_renamed]] = symbol[is_renamed]
        has_extent = has_function & ~is_nameless
        start = np.where(has_extent, begin, symbol_start)
        size = np.where(has_extent, end - begin, self._table.sizes_at(symbol_start))
        size[~has_function & ~has_symbol] = 0
        name, source, line, discriminator = (column.astype(np.int32) for column in (name, source, line, discriminator))
        return Frames(first, name, source, line, start, size, list(self._texts.held), discriminator)


def _frames_of(rows: Array, part: Found, is_kept: Array) -> tuple[Array, ...]:
    """Returns the columns of the frames in a unit, of the addresses that are kept (bool [n]). rows: those asked for."""
    address = rows[part.address]
    columns = address, part.name, part.source, part.line, part.discriminator
    return tuple(column[is_kept[address]] for column in columns)


class _Lines:
    """The lines of a unit. at: where its program is, None where it has none; folder: of the compiler."""

    def __init__(self, sections: Sections, at: int | None, folder: str, texts: Texts, paths: Paths) -> None:
        self._paths = paths
        self._sources: dict[int, int] = {}
        self._folder = folder
        self._texts = texts
        self._rows = LineRows(sections.line.bytes, at, sections.order == "big") if at is not None else None
        self.is_read = self._rows is None or self._rows.is_read

    def rows(self, begins: Array, ends: Array, addresses: Array) -> tuple[Array, Array, Array]:
        """Returns (file, line, discriminator), uint64, of addresses of functions: NO_FILE where nothing is known."""
        if self._rows is None:
            nothing = np.zeros(len(begins), np.uint64)
            return np.full(len(begins), NO_FILE, np.uint64), nothing, nothing
        file, line, discriminator = self._rows.at(begins, ends, addresses)
        return file.astype(np.uint64), line.astype(np.uint64), discriminator.astype(np.uint64)

    def sources(self, files: Array) -> Array:
        """Returns the paths (int64, of Texts) of files by their numbers."""
        known = self._sources
        numbers = files.tolist()
        for number in numbers:
            if number not in known:
                known[number] = self._texts.number(self._path(number))
        return np.array([known[number] for number in numbers], np.int64)

    def _path(self, number: int) -> str:
        return shown_path(self._paths.of(self._rows, number, self._folder)) if self._rows is not None else ""
