"""Breakpad symbol files, which dump_syms writes: text, a record a line, as Breakpad's docs/symbol_files.md says.

Addresses are relative to where the module is loaded: `base` is 0, whatever the linker wrote. Names are as dump_syms
writes them, of most compilers demangled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source
from traceferry.model import Array, containing_interval, distinct
from traceferry.symbolication.breakpad._records import Records
from traceferry.symbolication.build_id import build_id_of_debug_id
from traceferry.symbolication.interface import Frames, Function, Inline

# ---------------------------------------------------------------- layout

# MODULE operatingsystem architecture id name
MODULE = compiled_later(rb"MODULE (\S+) (\S+) ([0-9A-Fa-f]+)(?: |\r?\n|$)")
MAX_HEAD = 1 << 12
# Whole bytes: on Windows it can be a number that is not a build id.
CODE_ID = compiled_later(rb"\nINFO CODE_ID ((?:[0-9A-Fa-f]{2})+)(?=[ \r\n]|$)")
MAX_LINE = (1 << 31) - 1
LAST = np.uint64((1 << 64) - 1)


# ---------------------------------------------------------------- map


class _Pieces:
    """Pieces of code, found by address: the last that starts there or before; of those that start together the longest,
    of equal ones the first. address, size: uint64; rows: int64, what `at` calls them."""

    def __init__(self, address: Array, size: Array, rows: Array) -> None:
        order = np.lexsort((-rows, size, address))
        self._start, self._size, self._rows = address[order], size[order], np.append(rows[order], -1)

    def at(self, addresses: Array) -> Array:
        """Returns the row of the piece that holds each address, int64, -1 where none does."""
        found: Array = self._rows[containing_interval(self._start, self._size, addresses)]
        return found


class Breakpad:
    """A Breakpad symbol file. Raises FormatError if the first line is not a MODULE record; the rest is read on demand.

    No two functions should overlap; where they do, the last that starts holds an address. A PUBLIC record holds what
    comes before the next FUNC or PUBLIC.
    """

    base = 0

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.name = source.name
        module = MODULE.match(bytes(source.data[:MAX_HEAD]))
        if module is None:
            message = "not a readable Breakpad file: its first line is not a MODULE record"
            raise FormatError(message, 0, "MODULE", path=source.path)
        self.arch = module[2].decode("ascii", "replace")
        self.debug_id = module[3].decode("ascii").upper()
        self._texts: dict[int, str] = {}
        self.source = source

    @cached_property
    def build_id(self) -> str:
        """The build id of INFO CODE_ID; else of the debug id, which has only the first 16 bytes of it."""
        found = CODE_ID.search(self.source.data)
        return found[1].decode("ascii").lower() if found is not None else build_id_of_debug_id(self.debug_id)

    @property
    def gives(self) -> str:
        return "Breakpad symbols"

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        """(offset, what) of each record that is lost or lacks something, by offset."""
        records = self._records
        lines, inlines, files = records.lines, records.inlines, records.files
        kinds = (
            (records.damaged, "invalid record of a Breakpad symbol file, or record outside a function"),
            (lines["at"][_rows_of(lines["file"], files) < 0], "a line refers to an undeclared FILE"),
            (inlines["at"][_rows_of(inlines["call_file"], files) < 0], "an inlined call refers to an undeclared FILE"),
            (inlines["at"][_rows_of(inlines["origin"], records.origins) < 0], "undeclared INLINE_ORIGIN"),
        )
        return sorted((offset, what) for offsets, what in kinds for offset in offsets.tolist())

    # ------------------------------------------------------------ look-ups

    def lookup(self, addresses: Array) -> Frames:
        addresses = np.ascontiguousarray(addresses, np.uint64)
        code, lines, (inlines, _) = self._code, self._lines, self._inlines
        held_by = self._code_at(addresses)
        chain = list(self._inlines_at(addresses, held_by))
        depth = np.zeros(len(addresses), np.int64)
        for nth, _ in chain:
            depth[nth] += 1
        known = np.flatnonzero(held_by >= 0)
        first = np.concatenate(([0], np.cumsum(np.where(held_by >= 0, depth + 1, 0))))
        name, source, line = (np.full(first[-1], default, np.int64) for default in (-1, -1, 0))
        name[first[known] + depth[known]] = self._first_code_name + held_by[known]
        lined, row = self._lines_at(addresses, held_by)
        source[first[lined]], line[first[lined]] = lines["file"][row], lines["line"][row]
        for level, (nth, row) in enumerate(chain):
            at = first[nth] + depth[nth] - 1 - level
            name[at] = inlines["origin"][row]
            source[at + 1], line[at + 1] = inlines["call_file"][row], inlines["call_line"][row]
        start, size = np.zeros((2, len(addresses)), np.uint64)
        start[known], size[known] = code["address"][held_by[known]], code["size"][held_by[known]]
        texts, (name, source) = self._used_texts(name, source)
        return Frames(first, name, source, line.astype(np.int32), start, size, texts)

    def _code_at(self, addresses: Array) -> Array:
        """Returns the row of the FUNC or PUBLIC record that holds each address, -1 where none does."""
        held_by = self._functions.at(addresses)
        public = self._publics.at(addresses)
        others = np.flatnonzero((held_by < 0) & (public >= 0))
        held_by[others] = public[others]
        return held_by

    def _lines_at(self, addresses: Array, held_by: Array) -> tuple[Array, Array]:
        """Returns (which of the addresses have a line record of the function that holds them, its row)."""
        row = self._line_pieces.at(addresses)
        found = np.flatnonzero(row >= 0)
        found = found[self._lines["function"][row[found]] == held_by[found]]
        return found, row[found]

    def _inlines_at(self, addresses: Array, held_by: Array) -> Iterator[tuple[Array, Array]]:
        """Yields for each nest level (which of the addresses are in an inlined function there, its row), until none
        is."""
        within = np.flatnonzero(held_by >= 0)
        for pieces in self._inline_pieces:
            row = self._inlined_at(pieces, addresses[within], held_by[within])
            within, row = within[row >= 0], row[row >= 0]
            if len(within) == 0:
                return
            yield within, row

    def _inlined_at(self, pieces: _Pieces, addresses: Array, functions: Array) -> Array:
        """Returns the row of what is inlined into each function at an address of it, -1 where nothing is."""
        row = pieces.at(addresses)
        return np.where(np.append(self._inlines[0]["function"], -1)[row] == functions, row, -1)

    # ------------------------------------------------------------ whole functions

    def functions(self) -> Iterator[Function]:
        """Yields functions, of PUBLIC records only where no function is. A function that is hidden behind another has
        its name only."""
        code, rows = self._code, np.arange(len(self._code))
        shown = np.flatnonzero((rows < len(self._records.functions)) | (self._code_at(code["address"]) == rows))
        lines, inlines = self._rows_of_lines(), self._inline_trees()
        for row in shown[np.argsort(code["address"][shown], kind="stable")].tolist():
            start, size = int(code["address"][row]), int(code["size"][row])
            table = self._line_table(lines[row], start, start + size)
            yield Function(self._text(self._first_code_name + row), start, size, table, inlines.get(row, ()))

    def _rows_of_lines(self) -> list[Array]:
        """Returns for each row of the code the rows of its line records, by address."""
        lines = self._lines
        order = np.lexsort((lines["address"], lines["function"]))
        return np.split(order, np.searchsorted(lines["function"][order], np.arange(1, len(self._code))))

    def _line_table(self, rows: Array, start: int, end: int) -> list[tuple[int, str, int]]:
        """Returns (address, source, line) of a function. Line records end; where none follows, a line of 0 says that
        there is none."""
        table: list[tuple[int, str, int]] = []
        reached = start
        for address, size, line, source, _, _ in self._lines[rows].tolist():
            if size and start <= address < end:
                if table and reached < address:
                    table.append((reached, "", 0))
                table.append((address, self._text(source), line))
                reached = address + size
        if table and reached < end:
            table.append((reached, "", 0))
        return table

    def _inline_trees(self) -> dict[int, list[Inline]]:
        """Returns the inlined calls by row of the code. A record belongs into the one of the level above that holds its
        first byte."""
        inlines, pieces = self._inlines
        first = np.searchsorted(pieces["inline"], np.arange(len(inlines) + 1)).tolist()
        ranges = list(zip(pieces["address"].tolist(), (pieces["address"] + pieces["size"]).tolist(), strict=True))
        rows, parents = inlines.tolist(), self._parents().tolist()
        trees: dict[int, list[Inline]] = {}
        children: dict[int, list[Inline]] = {}
        for row in np.argsort(-inlines["level"], kind="stable").tolist():
            level, line, source, name, function, _ = rows[row]
            inner, own = tuple(children.pop(row, ())), tuple(ranges[first[row] : first[row + 1]])
            inline = Inline(self._text(name), own, self._text(source), line, inner)
            if level == 0:
                trees.setdefault(function, []).append(inline)
            elif parents[row] >= 0:
                children.setdefault(parents[row], []).append(inline)
        return trees

    def _parents(self) -> Array:
        """Returns for each INLINE record the row of the one around it, -1 where none is."""
        inlines, ranges = self._inlines
        begin = ranges["address"][np.searchsorted(ranges["inline"], np.arange(len(inlines)))]
        parents = np.full(len(begin), -1, np.int64)
        for level, pieces in enumerate(self._inline_pieces, start=1):
            rows = np.flatnonzero(inlines["level"] == level)
            parents[rows] = self._inlined_at(pieces, begin[rows], inlines["function"][rows])
        return parents

    # ------------------------------------------------------------ tables

    @cached_property
    def _records(self) -> Records:
        return Records(np.frombuffer(self.source.data, np.uint8))

    @cached_property
    def _spans(self) -> Array:
        """The bounds of the names of FILE, INLINE_ORIGIN, FUNC and PUBLIC records. A *text* is a row of these."""
        records = self._records
        named = (records.files, records.origins, self._code)
        return np.concatenate([np.stack((table["name_at"], table["name_end"]), 1) for table in named])

    @cached_property
    def _first_code_name(self) -> int:
        """The text that the first row of the code is called."""
        return len(self._records.files) + len(self._records.origins)

    @cached_property
    def _code(self) -> Array:
        """The FUNC records, then the PUBLIC ones. A size of 0 is unknown."""
        code: Array = np.concatenate((self._records.functions, self._records.publics))
        return code

    @cached_property
    def _functions(self) -> _Pieces:
        rows = np.flatnonzero(self._code["size"])
        return _Pieces(self._code["address"][rows], self._code["size"][rows], rows)

    @cached_property
    def _publics(self) -> _Pieces:
        """The PUBLIC records, each until the next address that a FUNC or PUBLIC record names; none that only names a
        function again."""
        functions, publics = self._records.functions["address"], self._records.publics["address"]
        rows = np.flatnonzero(~np.isin(publics, functions))
        named = distinct(self._code["address"])
        following = np.append(named, LAST)[np.searchsorted(named, publics[rows], "right")]
        return _Pieces(publics[rows], following - publics[rows], len(functions) + rows)

    @cached_property
    def _is_found(self) -> Array:
        """Whether for each row of the code a look-up of its address finds it: else nothing of it counts."""
        found: Array = self._functions.at(self._code["address"]) == np.arange(len(self._code))
        return found

    @cached_property
    def _lines(self) -> Array:
        """The line records without those that are outside their function; `file` is the text, -1 for none, and an
        invalid line 0."""
        lines: Array = self._records.lines
        function = self._code[lines["function"]]
        inside = lines["address"] - function["address"] < function["size"]
        lines = lines[inside & self._is_found[lines["function"]]]
        lines["file"] = _rows_of(lines["file"], self._records.files)
        lines["line"][lines["line"] > MAX_LINE] = 0
        return lines

    @cached_property
    def _line_pieces(self) -> _Pieces:
        return _Pieces(self._lines["address"], self._lines["size"], np.arange(len(self._lines)))

    @cached_property
    def _inlines(self) -> tuple[Array, Array]:
        """The INLINE records of known functions, `call_file` and `origin` being texts, -1 for none, an invalid line 0;
        and the ranges of these."""
        inlines, ranges, files = self._records.inlines, self._records.ranges, self._records.files
        origin = _rows_of(inlines["origin"], self._records.origins)
        kept = (origin >= 0) & self._is_found[inlines["function"]]
        ranges = ranges[kept[ranges["inline"]]]
        ranges["inline"] = (np.cumsum(kept) - 1)[ranges["inline"]]
        inlines = inlines[kept]
        inlines["origin"] = origin[kept] + len(files)
        inlines["call_file"] = _rows_of(inlines["call_file"], files)
        inlines["call_line"][inlines["call_line"] > MAX_LINE] = 0
        return inlines, ranges

    @cached_property
    def _inline_pieces(self) -> list[_Pieces]:
        """The ranges of each nest level."""
        inlines, ranges = self._inlines
        level_of = inlines["level"][ranges["inline"]]
        levels = (ranges[level_of == level] for level in range(int(level_of.max(initial=-1)) + 1))
        return [_Pieces(of_level["address"], of_level["size"], of_level["inline"]) for of_level in levels]

    # ------------------------------------------------------------ texts

    def _text(self, row: int) -> str:
        """Returns the text, which is held once, however many records refer to it."""
        if row < 0:
            return ""
        if row not in self._texts:
            begin, end = self._spans[row].tolist()
            self._texts[row] = bytes(self.source.data[begin:end]).decode("utf-8", "replace")
        return self._texts[row]

    def _used_texts(self, *columns: Array) -> tuple[list[str], list[Array]]:
        """Returns (texts, the columns as int32 indices of these); -1 for an invalid or empty text."""
        used, which = np.unique(np.concatenate(columns), return_inverse=True)
        texts = [self._text(row) for row in used.tolist()]
        indices = np.where(np.array([bool(text) for text in texts], bool), np.arange(len(texts)), -1).astype(np.int32)
        return texts, np.split(indices[which], len(columns))


def _rows_of(numbers: Array, named: Array) -> Array:
    """Returns the rows of the FILE or INLINE_ORIGIN records with those numbers, the last of several; int64, -1 is
    none."""
    order = np.argsort(named["number"], kind="stable")
    known = named["number"][order]
    nth = np.searchsorted(known, numbers, "right") - 1
    rows: Array = np.where(np.append(known, -1)[nth] == numbers, np.append(order, -1)[nth], -1)
    return rows
