"""The functions that the symbol tables of an ELF file name, by address, and the stubs of its procedure linkage table.
Where a function ends, and which of several symbols names it, follows symbolic: with debug information it answers, and
without it the answers must be the same. But no function reaches beyond its section, which symbolic lets one of size 0
do: the last of .init, _init, through .plt."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.model import Array, distinct, distinct_and_places, index_of
from traceferry.native.texts import measured
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.interface import Frames
from traceferry.symbolication.plt import stubs_of
from traceferry.symbolication.ranges import Ranges, merged
from traceferry.symbolication.symbol_versions import VERDEF, VERSYM, Order, hidden_versions, names_of_versions

# Each with the texts of its names.
TABLES = {".symtab": ".strtab", ".dynsym": ".dynstr"}
# Elf64_Sym and Elf32_Sym, by the size of a word.
FIELDS = {
    8: "st_name:u4 st_info:u1 st_other:u1 st_shndx:u2 st_value:u8 st_size:u8",
    4: "st_name:u4 st_value:u4 st_size:u4 st_info:u1 st_other:u1 st_shndx:u2",
}
TYPE_BITS = 15
STT_NOTYPE, STT_FUNC, STT_GNU_IFUNC = 0, 2, 10
VISIBILITY_BITS = 3
STV_DEFAULT, STV_PROTECTED = 0, 3
BIND_SHIFT = 4
STB_GLOBAL, STB_WEAK = 1, 2
# No name that a compiler writes has more in front.
MOST_UNDERSCORES = 8
MAX_NAME = 1 << 16
# How many characters names may have together, for each byte of the string table; and, beyond these, a name.
EFFORT = 16
CUT_NAME = 64
# What stands behind NAME@ or NAME@@, of the second one on.
VERSION = compiled_later(rb"@?[\w.+-]*")
LONGEST = np.uint64(1 << 32)
FIRST, LAST = np.zeros(1, np.uint64), np.full(1, (1 << 64) - 1, np.uint64)


class Texts:
    """A string table. Texts of undamaged files share no bytes, or the ends of a few: where many are the same long
    bytes, they are cut, so that they do not take more memory than a file of this size can need."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = EFFORT * len(data)
        self._known: dict[int, str] = {}

    def at(self, offset: int) -> str:
        """Returns the text that begins there; "" where it does not end."""
        if offset not in self._known:
            end = max(self._data.find(b"\0", offset, offset + MAX_NAME), offset)
            self._left -= end - offset
            if self._left < 0:
                end = min(end, offset + CUT_NAME)
            self._known[offset] = self._shown(self._data[offset:end]).decode("utf-8", "replace")
        return self._known[offset]

    def _shown(self, text: bytes) -> bytes:
        return text


class SymbolNames(Texts):
    """The string table of symbols, whose names are without versions."""

    def _shown(self, text: bytes) -> bytes:
        return without_version(text)


def without_version(name: bytes) -> bytes:
    """Returns clock_gettime for clock_gettime@@GLIBC_2.17. Crystal's names have a type behind the same sign:
    *Int32@Int#abs:Int32."""
    plain, _, version = name.partition(b"@")
    return plain if VERSION.fullmatch(version) else name


def hidden_version(name: str) -> str:
    """Returns @V1 for foo@V1, which a library keeps beside foo@@V2; "" for other names."""
    _, sign, version = name.partition("@")
    is_hidden = not version.startswith("@") and VERSION.fullmatch(version.encode()) is not None
    return sign + version if version and is_hidden else ""


class SymbolTable:
    """A function has the name of the best symbol that starts there. It lasts until the next one starts, one whose size
    is known ends, or the section ends; outside of sections the last one, where its size is not known, for LONGEST
    bytes. A stub of the procedure linkage table is called NAME@plt after the function to which it jumps. Where no
    function is known to be, a label names the code up to the next: NASM and many who write assembler give no types to
    symbols. Symbolic does not read them, perf does. A function of a hidden version is called NAME@VERSION where another
    one has its name, too; else names are without versions.

    mini: what `mini_debug_info` finds, whose .symtab counts where the file has none.
    """

    def __init__(self, binary: Binary, mini: Binary | None = None) -> None:
        self._binary = binary
        self._order: Order = "<" if binary.little_endian else ">"
        self._has_versions = _has_section(binary, VERDEF)
        # The first entry of a table stands for no symbol.
        with_names = binary if mini is None or len(symbols_of(binary, ".symtab")) > 1 else mini
        files = (with_names, binary)
        tables = [symbols_of(file, table) for file, table in zip(files, TABLES, strict=True)]
        texts = [content_of(file, names) for file, names in zip(files, TABLES.values(), strict=True)]
        self._texts = b"".join(texts)
        self._text = SymbolNames(self._texts).at
        self._stubs = stubs_of(binary, tuple(TABLES))
        are_functions = [np.isin(table["st_info"] & TYPE_BITS, (STT_FUNC, STT_GNU_IFUNC)) for table in tables]
        parts = [table[chosen] for table, chosen in zip(tables, are_functions, strict=True)]
        is_named = np.concatenate(
            [self._are_named(file, part, len(t)) for file, part, t in zip(files, parts, texts, strict=True)]
        )
        value, size, name = (
            np.concatenate([part[field].astype(np.uint64) for part in parts])
            for field in ("st_value", "st_size", "st_name")
        )
        is_dynamic = np.arange(len(value)) >= len(parts[0])
        name[is_dynamic] += np.uint64(len(texts[0]))
        is_indirect = np.concatenate([part["st_info"] & TYPE_BITS == STT_GNU_IFUNC for part in parts])
        indirect = value[is_indirect], name[is_indirect]
        # A symbol at a stub, which some linkers write, goes before the stub.
        value, size, name, is_named, is_dynamic = (
            np.concatenate(columns)
            for columns in zip(
                (value, size, name, is_named, is_dynamic), self._stub_columns(tables, texts, *indirect), strict=True
            )
        )
        is_stub = np.arange(len(value)) >= len(value) - len(self._stubs.start)
        version = np.zeros(len(value), np.int64)
        version[len(parts[0]) :][: len(parts[1])] = self._hidden_versions(tables[1], are_functions[1])
        bind = np.concatenate([*(part["st_info"] >> BIND_SHIFT for part in parts), np.zeros(len(self._stubs.start))])
        preferred = np.where(is_named, self._preference(name, bind), np.int64(-1))
        order = np.lexsort((is_stub, -preferred, value))
        groups = np.flatnonzero(np.diff(value[order], prepend=value[order][:1] - np.uint64(1)))
        self._value = value[order][groups]
        # Of several sizes the longest, .dynsym's before those of .symtab.
        dynamic, static = (_largest(np.where(chosen, size, 0)[order], groups) for chosen in (is_dynamic, ~is_dynamic))
        self._size = np.where(dynamic > 0, dynamic, static)
        first = groups[is_named[order][groups]]
        self._start = value[order][first]
        self._name_at = name[order][first]
        self._is_stub = is_stub[order][first]
        self._versions = self._told_versions(value, name, version, order[first], len(texts[0]))
        ends = (value + size)[is_named & (size > 0)]
        last_end = np.minimum(self._start[-1:], LAST - LONGEST) + LONGEST
        self._section_ends = np.array(sorted(min(end, int(LAST[0])) for _, end in binary.code_ranges), np.uint64)
        self._bounds = distinct(np.concatenate((self._start, ends, last_end, self._section_ends)))
        self._holder = np.full(len(self._bounds) + 1, -1)
        has_name = self._first_letters(self._name_at, beyond=1) > 0
        self._holder[np.searchsorted(self._bounds, self._start) + 1] = np.where(has_name, np.arange(len(has_name)), -1)
        self._n_functions = len(self._start)
        self._add_labels(with_names, tables[0], len(texts[0]))

    def _hidden_versions(self, dynamic: Array, is_function: Array) -> Array:
        """Returns the number of the version of each function of .dynsym, if that is hidden, 0 otherwise: int64."""
        versym = content_of(self._binary, VERSYM) if self._has_versions else b""
        return hidden_versions(versym, self._order, len(dynamic))[is_function]

    def _told_versions(self, value: Array, name: Array, version: Array, chosen: Array, n_static: int) -> dict[int, str]:
        """Returns what tells functions of hidden versions from others of their name, by row: @V1. value, name, version:
        of all symbols, versions by number, 0 is none; chosen: the symbol of each row; n_static: the size of .symtab's
        texts, in which versions are."""
        if not self._has_versions:
            return {}
        found = self._versions_in_texts(np.flatnonzero(self._name_at < n_static))
        _, same = distinct_and_places(self._name_at)
        rows = np.flatnonzero((version[chosen] > 0) & (np.bincount(same)[same] > 1))
        names = names_of_versions(content_of(self._binary, VERDEF), self._order) if len(rows) else {}
        texts = Texts(self._texts[n_static:])
        for row, number in zip(rows.tolist(), version[chosen[rows]].tolist(), strict=True):
            if number in names and (version_name := texts.at(names[number])):
                found[row] = f"@{version_name}"
        # A function may be the hidden and the default one.
        raw = Texts(self._texts)
        here = np.flatnonzero(np.isin(value, self._start[list(found)]) & (version == 0) & (name < len(self._texts)))
        defaults = {
            (at, self._text(text))
            for at, text in zip(value[here].tolist(), name[here].tolist(), strict=True)
            if not hidden_version(raw.at(text))
        }
        return {row: one for row, one in found.items() if (int(self._start[row]), self._name_of(row)) not in defaults}

    def _name_of(self, row: int) -> str:
        return self._text(int(self._name_at[row]))

    def _versions_in_texts(self, rows: Array) -> dict[int, str]:
        """Returns the same of rows whose names are in .symtab's texts, as foo@V1 and foo@@V2."""
        data = np.frombuffer(self._texts, np.uint8)
        signs, ends = (np.append(np.flatnonzero(data == sign), len(data)) for sign in (ord("@"), 0))
        begins = self._name_at[rows].astype(np.int64)
        is_versioned = signs[np.searchsorted(signs, begins)] < ends[np.searchsorted(ends, begins)]
        raw = Texts(self._texts)
        of_name: dict[str, list[int]] = {}
        for row in rows[is_versioned].tolist():
            of_name.setdefault(self._name_of(row), []).append(row)
        several = (row for alike in of_name.values() if len(alike) > 1 for row in alike)
        versions = ((row, hidden_version(raw.at(int(self._name_at[row])))) for row in several)
        return {row: version for row, version in versions if version}

    def _add_labels(self, file: Binary, symbols: Array, n_texts: int) -> None:
        """Adds symbols without a type, but inside of functions whose size is known. file: the one with this table."""
        is_label = (symbols["st_info"] & TYPE_BITS == STT_NOTYPE) & (symbols["st_value"] >= self._binary.base)
        is_label &= np.isin(symbols["st_other"] & VISIBILITY_BITS, (STV_DEFAULT, STV_PROTECTED))
        is_label &= np.isin(symbols["st_shndx"], file.code_sections) & (symbols["st_name"] < n_texts)
        symbols = symbols[is_label]
        value, name = (symbols[field].astype(np.uint64) for field in ("st_value", "st_name"))
        letter = self._first_letters(name, beyond=0)
        # Of compilers (".L3"), and of the linker, which tells code from data by them ("$x").
        is_meant = (letter > 0) & (letter != ord(".")) & (letter != ord("$"))
        row = self._holder[np.searchsorted(self._bounds, value, "right")]
        begin = np.append(self._start, np.uint64(0))[row]
        is_meant &= (row < 0) | (~np.append(self._is_stub, True)[row] & (value > begin) & (self.sizes_at(begin) == 0))
        is_meant &= are_inside(merged(self._binary.code_ranges), value)
        value, name, bind, row = (column[is_meant] for column in (value, name, symbols["st_info"] >> BIND_SHIFT, row))
        is_outer = ~self._are_local(name, row)
        value, name, bind = (column[is_outer] for column in (value, name, bind))
        order = np.lexsort((-self._preference(name, bind), value))
        order = order[np.diff(value[order], prepend=value[order][:1] - np.uint64(1)) > 0]
        value, name = value[order], name[order]
        bounds = distinct(np.concatenate((self._bounds, value)))
        held = np.append(self._holder[0], self._holder[np.searchsorted(self._bounds, bounds, "right")])
        held[np.searchsorted(bounds, value) + 1] = len(self._start) + np.arange(len(value))
        self._bounds, self._holder = bounds, held
        self._start, self._name_at = np.concatenate((self._start, value)), np.concatenate((self._name_at, name))
        self._is_stub = np.append(self._is_stub, np.zeros(len(value), bool))

    def _are_local(self, names: Array, rows: Array) -> Array:
        """Whether each is a label inside of another, as NASM calls them: spin.again, where there is a label spin. rows:
        the functions of unknown size in which they are, -1 is none."""
        found = [self._text(at) for at in names.tolist()]
        known = {*found, *(self._text(at) for at in self._name_at[distinct(rows[rows >= 0])].tolist())}
        return np.array([name.partition(".")[0] in known and "." in name for name in found], bool)

    def labels(self) -> Iterator[tuple[str, int, int]]:
        """Yields (name, start, size) of each label that names code, up to what follows."""
        for row in range(self._n_functions, len(self._start)):
            start = self._start[row : row + 1]
            yield self.name(row), int(start[0]), int(self.surroundings(start)[1][0] - start[0])

    def _preference(self, names: Array, bind: Array) -> Array:
        """Returns (int64) how well each symbol names a function that has several, as perf's symbol__choose_best has it:
        no weak symbol, then a global one, then fewer underscores in front, then the longest name."""
        begins = np.minimum(names, np.uint64(len(self._texts))).astype(np.int64)
        # What follows "@" is a version, for which Crystal's names are taken too: they are seldom of one address.
        length, n_underscores = measured(self._texts, begins, ord("@"), MAX_NAME - 1, ord("_"))
        rank = (bind != STB_WEAK) * 2 + (bind == STB_GLOBAL)
        rank = rank * (MOST_UNDERSCORES + 1) + MOST_UNDERSCORES - np.minimum(n_underscores, MOST_UNDERSCORES)
        found: Array = rank * MAX_NAME + length
        return found

    def _first_letters(self, names: Array, beyond: int) -> Array:
        """Returns the first byte of each name (uint8), `beyond` of one outside of the texts."""
        letters = np.frombuffer(self._texts or b"\0", np.uint8)
        at = np.minimum(names, np.uint64(len(letters) - 1)).astype(np.int64)
        return np.where(names < np.uint64(len(self._texts)), letters[at], np.uint8(beyond))

    def _are_named(self, file: Binary, symbols: Array, n_texts: int) -> Array:
        """Whether each names code that is loaded. file: the one with this table, whose sections are its own."""
        chosen: Array = (symbols["st_info"] & TYPE_BITS == STT_FUNC) & (symbols["st_value"] >= self._binary.base)
        chosen &= np.isin(symbols["st_shndx"], file.code_sections)
        return chosen & (symbols["st_name"] < n_texts)

    def _stub_columns(
        self, tables: list[Array], texts: list[bytes], indirect: Array, indirect_name: Array
    ) -> tuple[Array, ...]:
        """Returns the stubs with the columns of functions: value, size, name, is_named, is_dynamic. indirect,
        indirect_name: where the resolvers of indirect functions are, and their names."""
        stubs = self._stubs
        name = np.full(len(stubs.start), len(self._texts), np.uint64)
        for nth, (table, own) in enumerate(zip(tables, texts, strict=True)):
            mine = np.flatnonzero((stubs.table == nth) & (stubs.symbol < len(table)))
            at = table["st_name"][stubs.symbol[mine]].astype(np.uint64)
            name[mine] = np.where(at < len(own), at + np.uint64(nth * len(texts[0])), name[mine])
        resolver, nth_resolver = distinct_and_places(indirect)
        first = np.zeros(len(resolver), np.int64)
        # Of several the last to be assigned stays.
        first[nth_resolver[::-1]] = np.arange(len(indirect))[::-1]
        row = index_of(resolver, stubs.resolver)
        is_known = (row >= 0) & (stubs.resolver > 0)
        name[is_known] = np.minimum(indirect_name[first[row[is_known]]], len(self._texts))
        is_named = (name < len(self._texts)) | (stubs.resolver > 0)
        return stubs.start, stubs.end - stubs.start, name, is_named, np.ones(len(name), bool)

    def rows(self, addresses: Array) -> Array:
        """Returns (int64) the function that holds each address (uint64), -1 where none does."""
        found: Array = self._holder[np.searchsorted(self._bounds, addresses, "right")]
        return found

    def surroundings(self, addresses: Array) -> tuple[Array, Array]:
        """Returns (first, end), uint64: what is between these has the same answer as the address."""
        bounds = np.concatenate((FIRST, self._bounds, LAST))
        nth = np.searchsorted(self._bounds, addresses, "right")
        return bounds[nth], bounds[nth + 1]

    def name(self, row: int) -> str:
        return self.names(np.array([row]))[0]

    def names(self, rows: Array) -> list[str]:
        columns = zip(
            rows.tolist(), self._name_at[rows].tolist(), self._is_stub[rows].tolist(), self._start[rows].tolist(),
            strict=True,
        )  # fmt: skip
        return [
            self._stub_name(at, start) if is_stub else self._text(at) + self._versions.get(row, "")
            for row, at, is_stub, start in columns
        ]

    def _stub_name(self, at: int, start: int) -> str:
        """Returns the name that objdump gives it."""
        if at < len(self._texts):
            return f"{self._text(at)}@plt"
        nth = int(np.searchsorted(self._stubs.start, np.uint64(start)))
        return f"*ABS*+{int(self._stubs.resolver[nth]):#x}@plt"

    def are_stubs(self, addresses: Array) -> Array:
        """Whether a stub of the procedure linkage table holds each address (uint64)."""
        rows = self.rows(addresses)
        found: Array = (rows >= 0) & np.append(self._is_stub, False)[rows]
        return found

    def stubs(self) -> Iterator[tuple[str, int, int]]:
        """Yields (name, start, size) of each."""
        rows = np.flatnonzero(self._is_stub & (self._holder[np.searchsorted(self._bounds, self._start) + 1] >= 0))
        for row in rows.tolist():
            yield self.name(row), *self.extent(row)

    def are_of_one_section(self, starts: Array, addresses: Array) -> Array:
        """Whether no section of code ends between each start and its address."""
        found: Array = np.searchsorted(self._section_ends, starts, "right") == np.searchsorted(
            self._section_ends, addresses, "right"
        )
        return found

    def extent(self, row: int) -> tuple[int, int]:
        """Returns (start, size) of a function."""
        return int(self._start[row]), int(self.sizes_at(self._start[row : row + 1])[0])

    def starts(self, rows: Array) -> Array:
        """Returns (uint64) where functions begin."""
        starts: Array = self._start[rows]
        return starts

    def sizes_at(self, starts: Array) -> Array:
        """Returns the sizes of the functions that start there, 0 where none is known. starts: uint64."""
        sizes: Array = np.concatenate((self._size, FIRST))[index_of(self._value, starts)]
        return sizes

    def lookup(self, addresses: Array) -> Frames:
        """Returns the frames at addresses (uint64, in any order). Where a function holds one, it has a frame that knows
        its name alone."""
        rows = self.rows(addresses)
        known = rows >= 0
        used, name = distinct_and_places(rows[known])
        start = np.zeros(len(rows), np.uint64)
        start[known] = self._start[rows[known]]
        size = np.where(known, self.sizes_at(start), np.uint64(0))
        n, first = len(name), np.concatenate(([0], np.cumsum(known)))
        return Frames(
            first,
            name.reshape(-1).astype(np.int32),
            np.full(n, -1, np.int32),
            np.zeros(n, np.int32),
            start,
            size,
            self.names(used),
        )


def are_inside(ranges: Ranges, addresses: Array) -> Array:
    """Whether each address (uint64) is in one of merged ranges."""
    begin, end = np.array([(begin, min(end, int(LAST[0]))) for begin, end in ranges], np.uint64).reshape(-1, 2).T
    nth = np.searchsorted(begin, addresses, "right") - 1
    found: Array = (nth >= 0) & (addresses < np.append(end, np.uint64(0))[nth])
    return found


def _largest(values: Array, groups: Array) -> Array:
    """Returns the largest of each group of values, which begins there."""
    largest: Array = np.maximum.reduceat(values, groups) if len(groups) else values[:0]
    return largest


def symbols_of(binary: Binary, table: str) -> Array:
    """Returns the symbols of a table by number, with the fields of FIELDS."""
    order = "<" if binary.little_endian else ">"
    fields = (field.split(":") for field in FIELDS[binary.word_size].split())
    entry = np.dtype([(name, order + code) for name, code in fields])
    data = content_of(binary, table)
    return np.frombuffer(data, entry, len(data) // entry.itemsize)


def _has_section(binary: Binary, name: str) -> bool:
    """Whether a file has a section of this name, be it without bytes as in a debug file."""
    try:
        return binary.section_named(name) is not None
    except FormatError:
        return False


def content_of(binary: Binary, section: str) -> bytes:
    """Returns the bytes of a section, none where it is missing or damaged."""
    try:
        found = binary.section(section)
    except FormatError:
        found = None
    return bytes(found[1]) if found is not None else b""
