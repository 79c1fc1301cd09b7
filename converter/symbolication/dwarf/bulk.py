"""Map: look-ups of many addresses at once in the debug information, by compiled readers of entries and line programs.

What these do not read, damaged bytes and unusual codings, is left to the reader of single addresses (`lookup.py`), to
whose answers those here are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array, distinct, distinct_and_places, rows_by_key
from traceferry.symbolication.demangle import shown_path
from traceferry.symbolication.dwarf._entries import LookUps
from traceferry.symbolication.dwarf._line_rows import LineRows
from traceferry.symbolication.dwarf.debug_info import QUALIFIED_LANGUAGES, DebugInfo
from traceferry.symbolication.dwarf.entries import ELSEWHERE, QUALIFIED, READABLE, WITHOUT_CODE, Names, entries_of
from traceferry.symbolication.dwarf.paths import Paths
from traceferry.symbolication.function_table import Texts
from traceferry.symbolication.interface import Frames, line_number
from traceferry.symbolication.symbol_table import SymbolTable

NO_FILE = 0xFFFF_FFFF
NO_ROWS = np.zeros(0, np.int64)


class Places(NamedTuple):
    """Calls and functions in which addresses are. unit: int64; entry: uint64, its offset; file, line, discriminator:
    uint64, of a call where it is; name, source: int64, of Texts, -1 is none."""

    unit: Array
    entry: Array
    file: Array
    line: Array
    discriminator: Array
    name: Array
    source: Array


class Held(NamedTuple):
    """Units and functions that hold n addresses. unit: int64 [n], -1 is none; begin, end: uint64 [n], of the piece of a
    function, 0 where none is described; file, line, discriminator: what the unit's lines say, uint64 [n]; source: of
    the file, int64 [n], of Texts, -1 is none."""

    unit: Array
    begin: Array
    end: Array
    file: Array
    line: Array
    discriminator: Array
    source: Array


class Described(NamedTuple):
    """Frames in functions that are described, by address, the innermost first. address: int64, its row; name, source:
    int64, of Texts, -1 is none, which only the name of the outermost may be; line, discriminator: uint64, below
    2^31."""

    address: Array
    name: Array
    source: Array
    line: Array
    discriminator: Array


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
        whose frames mean nothing."""
        self._entries.renew()
        held, places, address, place, is_left = self._found(addresses)
        unreadable: set[int] = set()
        self._name(places, unreadable)
        self._read_lines(addresses, held, places, unreadable)
        described = self._described(held, places, address, place, unreadable)
        is_left |= _are_among(held.unit, unreadable)
        return self._joined(addresses, held, described), is_left

    def _found(self, addresses: Array) -> tuple[Held, Places, Array, Array, Array]:
        """Returns what holds addresses, without names and lines; of each frame the address and the place (rows); and
        which addresses are in units that cannot be read: bool."""
        unit = self._spans.at(addresses)
        found, is_left = self._look_up(addresses, unit)
        begin, end, first, place = found.frames()
        used, place = distinct_and_places(place)
        of_unit, entry, file, line, discriminator = (column[used] for column in found.places())
        # Those in a unit that does not say where its code is.
        elsewhere = np.flatnonzero((unit < 0) & (end > 0))
        unit[elsewhere] = of_unit[place[first[elsewhere + 1] - 1]]
        n = len(addresses)
        name, source, row_source = (np.full(n_rows, -1, np.int64) for n_rows in (len(used), len(used), n))
        row_file, row_line, row_discriminator = (np.full(n, value, np.uint64) for value in (NO_FILE, 0, 0))
        places = Places(of_unit, entry, file, line, discriminator, name, source)
        held = Held(unit, begin, end, row_file, row_line, row_discriminator, row_source)
        return held, places, np.repeat(np.arange(n), np.diff(first)), place, is_left

    def _look_up(self, addresses: Array, unit: Array) -> tuple[LookUps, Array]:
        """Returns what is found, and which addresses are in units that cannot be read: bool."""
        found = LookUps(self._entries, addresses, self._text)
        is_left = np.zeros(len(addresses), bool)
        for nth, rows in rows_by_key(unit).items():
            for one in [nth] if nth >= 0 else self._others:
                if not found.read(one, rows):
                    is_left[rows[~found.is_found[rows]]] = True
                    break
        return found, is_left

    def units_at(self, addresses: Array, language: int) -> Array:
        """Returns which unit holds each address (uint64): int64, -1 where none in this language (DW_LANG_*) does."""
        unit = self._spans.at(addresses)
        roots = {nth: self._entries.root(nth) for nth in distinct(unit).tolist() if nth >= 0}
        wanted = [nth for nth, root in roots.items() if root is not None and root[0] == language]
        return np.where(_are_among(unit, wanted), unit, -1)

    # ------------------------------------------------ calls and functions

    def _name(self, places: Places, unreadable: set[int]) -> None:
        """Stores the names of calls and functions. unreadable: gets the units of those that cannot be read."""
        roots = ((nth, self._entries.root(nth)) for nth in distinct(places.unit).tolist())
        qualified = {nth for nth, root in roots if root is not None and root[0] in QUALIFIED_LANGUAGES}
        columns = (*self._entries.names(places.unit, places.entry), places.entry, places.unit)
        for row, (kind, value, target, entry, unit) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
            is_text = kind != ELSEWHERE and kind < QUALIFIED
            key = (kind, value) if is_text else (QUALIFIED + (unit in qualified), target)
            try:
                number = self._name_of.get(key)
                if number is None:
                    text = self._names_of.text(kind, value) if is_text else self._other_name(kind, value, target, entry)
                    number = self._name_of[key] = self._texts.number(text)
                places.name[row] = number
            except FormatError:
                unreadable.add(unit)

    def _read_lines(self, addresses: Array, held: Held, places: Places, unreadable: set[int]) -> None:
        """Stores what the lines of units say of addresses, and the paths of files. unreadable: gets the units whose
        lines cannot be read."""
        of_unit = rows_by_key(places.unit)
        for nth, rows in rows_by_key(held.unit).items():
            try:
                lines = self._lines_of(nth) if nth >= 0 else None
                if lines is not None:
                    program, path = lines
                    program.find(rows, held.begin, held.end, addresses, held.file, held.line, held.discriminator)
                    program.number_files(rows, held.file, held.source, path)
                    program.number_files(of_unit.get(nth, NO_ROWS), places.file, places.source, path)
            except FormatError:
                unreadable.add(nth)

    def _lines_of(self, nth: int) -> tuple[LineRows, Callable[[int], int]] | None:
        """Returns the lines of a unit, and what gives the number (of Texts) of the path of a file of theirs; None where
        there are none. Raises FormatError where they cannot be read."""
        root = self._entries.root(nth)
        if root is None:
            raise FormatError("the unit cannot be read", None, ".debug_info")
        _, at, kind, place, _ = root
        if at is None:
            return None
        folder = self._names_of.text(kind, place)
        rows = LineRows(self._sections.line.bytes, at, self._sections.order == "big")
        if not rows.is_read:
            raise FormatError("the line program cannot be read", at, ".debug_line")
        return rows, lambda number: self._texts.number(shown_path(self._paths.of(rows, number, folder)))

    # ------------------------------------------------ frames

    def _described(self, held: Held, places: Places, address: Array, place: Array, unreadable: set[int]) -> Described:
        """Returns frames of which the addresses and places (rows) are given. unreadable: gets units that cannot be
        read."""
        is_outermost = np.append(address[1:] != address[:-1], True)
        is_rest = self._are_rests(places, place, is_outermost, unreadable)
        address, place, is_outermost = (column[~is_rest] for column in (address, place, is_outermost))
        is_innermost = shifted(is_outermost)
        is_innermost[:1] = True
        # A frame is where the call of the one inside of it is.
        source, line, discriminator = (
            np.where(is_innermost, by_line[address], shifted(of_call[place]))
            for by_line, of_call in (
                (held.source, places.source), (held.line, places.line), (held.discriminator, places.discriminator),
            )
        )  # fmt: skip
        # GCC counts from 1 on what LLVM makes of several numbers.
        discriminator[self._are_of_gcc(held.unit)[address] | (discriminator >= 1 << 31)] = 0
        for row in np.flatnonzero(is_innermost & (held.file[address] == NO_FILE)).tolist():
            outermost = row + int(np.argmax(is_outermost[row:]))
            at, unit = int(held.begin[address[row]]), int(held.unit[address[row]])
            try:
                declared, line[row] = self._declared(int(places.entry[place[outermost]]), at)
                source[row] = self._texts.number(declared)
            except FormatError:
                unreadable.add(unit)
        # A symbol may name a function; nothing else names what is inlined.
        is_kept = (places.name[place] >= 0) | is_outermost
        if not is_kept.all():
            self._info.note_nameless_calls()
        line[line >= 1 << 31] = 0
        columns = address, places.name[place], source, line, discriminator
        return Described(*(column[is_kept] for column in columns))

    def _are_of_gcc(self, unit: Array) -> Array:
        """Returns whether GCC compiled each unit (-1: none), from C or C++: bool."""
        roots = ((nth, self._entries.root(nth)) for nth in distinct(unit).tolist() if nth >= 0)
        return _are_among(unit, [nth for nth, root in roots if root is not None and root[4]])

    def _are_rests(self, places: Places, place: Array, is_outermost: Array, unreadable: set[int]) -> Array:
        """Returns which frames are of the rest of the function that the next frame is of, as `DebugInfo.is_rest_of`
        says: bool. unreadable: gets units in which that cannot be read."""
        is_rest = np.zeros(len(place), bool)
        name = places.name[place]
        alike = np.flatnonzero((name[:-1] == name[1:]) & (name[:-1] >= 0) & ~is_outermost[:-1])
        pairs, which = distinct_and_places(place[alike].astype(np.int64) << 32 | place[alike + 1])
        calls, around = pairs >> 32, pairs & 0xFFFF_FFFF
        instance, other = (self._entries.instances(places.unit[of], places.entry[of]) for of in (calls, around))
        are_rests = instance == other
        for nth in np.flatnonzero(are_rests).tolist():
            call, function = int(calls[nth]), int(around[nth])
            try:
                entries = int(places.entry[call]), int(places.entry[function])
                are_rests[nth] = self._is_rest(*entries, int(places.line[call]))
            except FormatError:
                unreadable.add(int(places.unit[call]))
        is_rest[alike] = are_rests[which]
        return is_rest

    def _is_rest(self, call: int, entry: int, line: int) -> bool:
        """Whether a call, in this line, of the function that `entry` is of, too, is the rest of that."""
        found = self._entries.declaration(call)
        if found is not None:
            declared, column, called = found
            return declared == line > 0 and (not column or not called or column == called)
        one, other = self._info.units_of.entry_at(call), self._info.units_of.entry_at(entry)
        return one is not None and other is not None and self._info.is_rest_of(one, other)

    def _other_name(self, kind: int, value: int, target: int, entry: int) -> str:
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

    # ------------------------------------------------ symbols

    def _joined(self, addresses: Array, held: Held, described: Described) -> Frames:
        """Returns the frames by address. Where no function is described, the symbol table may name one."""
        n, begin, end = len(addresses), held.begin, held.end
        named = self._table.rows(addresses)
        has_symbol = named >= 0
        used, which = distinct_and_places(named[has_symbol])
        symbol = np.full(n, -1, np.int64)
        symbol[has_symbol] = np.array([self._texts.number(name) for name in self._table.names(used)], np.int64)[which]
        symbol_start = np.zeros(n, np.uint64)
        symbol_start[has_symbol] = self._table.starts(used)[which]
        is_nameless = np.zeros(n, bool)
        is_nameless[described.address[described.name < 0]] = True
        has_function = (end > 0) & (~is_nameless | (symbol >= 0))
        alone = np.flatnonzero(has_symbol & ~has_function)
        is_kept = has_function[described.address]
        line = np.where(held.line < 1 << 31, held.line, np.uint64(0))
        of_alone = alone, symbol[alone], held.source[alone], line[alone], np.zeros(len(alone), np.uint64)
        of_address, *columns = (
            np.concatenate((column[is_kept], more)) for column, more in zip(described, of_alone, strict=True)
        )
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


def _are_among(units: Array, wanted: Collection[int]) -> Array:
    """Returns which units are among the wanted ones: bool. As integers, also where there are none: np.isin imports
    numpy.ma for an empty list, which is one of doubles."""
    return np.isin(units, np.array([*wanted], np.int64))
