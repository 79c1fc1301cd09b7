"""The functions that the symbol tables of an ELF file name, by address. Where one ends, and which of several symbols
names it, follows symbolic: with debug information it answers, and without it the answers must be the same."""

from __future__ import annotations

import numpy as np

from traceferry.errors import FormatError
from traceferry.model import Array, distinct
from traceferry.symbols.binary import Binary
from traceferry.symbols.interface import Frames

# Each with the texts of its names.
TABLES = {".symtab": ".strtab", ".dynsym": ".dynstr"}
# Elf64_Sym and Elf32_Sym, by the size of a word.
FIELDS = {
    8: "st_name:u4 st_info:u1 st_other:u1 st_shndx:u2 st_value:u8 st_size:u8",
    4: "st_name:u4 st_value:u4 st_size:u4 st_info:u1 st_other:u1 st_shndx:u2",
}
TYPE_BITS = 15
STT_FUNC, STT_GNU_IFUNC = 2, 10
MAX_NAME = 1 << 16
LONGEST = np.uint64(1 << 32)
FIRST, LAST = np.zeros(1, np.uint64), np.full(1, (1 << 64) - 1, np.uint64)


class SymbolTable:
    """A function has the name of the first symbol that starts there. It lasts until the next one starts, or one whose
    size is known ends; the last one, where that is not known, for LONGEST bytes."""

    def __init__(self, binary: Binary) -> None:
        self._binary = binary
        parts = [_symbols(binary, table) for table in TABLES]
        texts = [_content(binary, names) for names in TABLES.values()]
        self._texts = b"".join(texts)
        is_named = np.concatenate([self._are_named(part, len(t)) for part, t in zip(parts, texts, strict=True)])
        value, size, name = (
            np.concatenate([part[field].astype(np.uint64) for part in parts])
            for field in ("st_value", "st_size", "st_name")
        )
        is_dynamic = np.arange(len(value)) >= len(parts[0])
        name[is_dynamic] += np.uint64(len(texts[0]))
        order = np.argsort(value, kind="stable")
        groups = np.flatnonzero(np.diff(value[order], prepend=value[order][:1] - np.uint64(1)))
        self._value = value[order][groups]
        # Of several sizes the longest, .dynsym's before those of .symtab.
        dynamic, static = (_largest(np.where(chosen, size, 0)[order], groups) for chosen in (is_dynamic, ~is_dynamic))
        self._size = np.where(dynamic > 0, dynamic, static)
        first = -_largest(-np.where(is_named[order], np.arange(len(order)), len(order)), groups)
        self._start = self._value[first < len(order)]
        self._name_at = name[order][first[first < len(order)]]
        ends = (value + size)[is_named & (size > 0)]
        last_end = np.minimum(self._start[-1:], LAST - LONGEST) + LONGEST
        self._bounds = distinct(np.concatenate((self._start, ends, last_end)))
        self._holder = np.full(len(self._bounds) + 1, -1)
        has_name = np.frombuffer(self._texts, np.uint8)[self._name_at] > 0
        self._holder[np.searchsorted(self._bounds, self._start) + 1] = np.where(has_name, np.arange(len(has_name)), -1)

    def _are_named(self, symbols: Array, n_texts: int) -> Array:
        """Whether each names code that is loaded."""
        chosen: Array = (symbols["st_info"] & TYPE_BITS == STT_FUNC) & (symbols["st_value"] >= self._binary.base)
        chosen &= np.isin(symbols["st_shndx"], self._binary.code_sections)
        return chosen & (symbols["st_name"] < n_texts)

    def rows(self, addresses: Array) -> Array:
        """int64: the function that holds each address (uint64), -1 where none does."""
        found: Array = self._holder[np.searchsorted(self._bounds, addresses, "right")]
        return found

    def surroundings(self, addresses: Array) -> tuple[Array, Array]:
        """(first, end), uint64: what is between these has the same answer as the address."""
        bounds = np.concatenate((FIRST, self._bounds, LAST))
        nth = np.searchsorted(self._bounds, addresses, "right")
        return bounds[nth], bounds[nth + 1]

    def name(self, row: int) -> str:
        return self.names(np.array([row]))[0]

    def names(self, rows: Array) -> list[str]:
        texts = self._texts
        ends = ((at, max(texts.find(b"\0", at, at + MAX_NAME), at)) for at in self._name_at[rows].tolist())
        return [texts[at:end].decode("utf-8", "replace") for at, end in ends]

    def extent(self, row: int) -> tuple[int, int]:
        """(start, size) of a function."""
        return int(self._start[row]), int(self.sizes_at(self._start[row : row + 1])[0])

    def sizes_at(self, starts: Array) -> Array:
        """The sizes of the functions that start there, 0 where none is known. starts: uint64."""
        nth = np.searchsorted(np.concatenate((self._value, LAST)), starts)
        is_there = np.concatenate((self._value, LAST))[nth] == starts
        return np.where(is_there, np.concatenate((self._size, FIRST))[nth], np.uint64(0))

    def lookup(self, addresses: Array) -> Frames:
        """addresses: uint64, in any order. Where a function holds one, it has a frame that knows its name alone."""
        rows = self.rows(addresses)
        known = rows >= 0
        used, name = np.unique(rows[known], return_inverse=True)
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


def _largest(values: Array, groups: Array) -> Array:
    """Of each group of values, which begins there."""
    largest: Array = np.maximum.reduceat(values, groups) if len(groups) else values[:0]
    return largest


def _symbols(binary: Binary, table: str) -> Array:
    """The functions of a table, with the fields of FIELDS."""
    order = "<" if binary.little_endian else ">"
    fields = (field.split(":") for field in FIELDS[binary.word_size].split())
    entry = np.dtype([(name, order + code) for name, code in fields])
    data = _content(binary, table)
    symbols = np.frombuffer(data, entry, len(data) // entry.itemsize)
    functions: Array = symbols[np.isin(symbols["st_info"] & TYPE_BITS, (STT_FUNC, STT_GNU_IFUNC))]
    return functions


def _content(binary: Binary, section: str) -> bytes:
    """No bytes where the section is missing or damaged."""
    try:
        found = binary.section(section)
    except FormatError:
        found = None
    return found[1] if found is not None else b""
