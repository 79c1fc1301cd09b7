"""An ELF binary behind the interface: names, lines and inlined functions of addresses through symbolic, sizes from the
symbol table, whole functions from DWARF. Without symbolic, the project's own reader of DWARF answers look-ups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from traceferry.errors import FormatError
from traceferry.io.source import Source
from traceferry.model import Array
from traceferry.symbols.binary import Binary
from traceferry.symbols.interface import Frames, Function
from traceferry.symbols.one_by_one import NOTHING, Answer, look_up

if TYPE_CHECKING:
    from traceferry.symbols.dwarf.lookup import DwarfLookup
    from traceferry.symbols.gsym.reader import Gsym

SYMBOL_TABLES = (".symtab", ".dynsym")
STRING_TABLES = {".symtab": ".strtab", ".dynsym": ".dynstr"}
# Elf64_Sym and Elf32_Sym, without their names.
SYMBOL_64 = (
    ("st_name", "u4"),
    ("st_info", "u1"),
    ("st_other", "u1"),
    ("st_shndx", "u2"),
    ("st_value", "u8"),
    ("st_size", "u8"),
)
SYMBOL_32 = (
    ("st_name", "u4"),
    ("st_value", "u4"),
    ("st_size", "u4"),
    ("st_info", "u1"),
    ("st_other", "u1"),
    ("st_shndx", "u2"),
)
TYPE_BITS = 15
STT_FUNC, STT_GNU_IFUNC = 2, 10
SHN_UNDEF = 0
MAX_NAME = 1 << 16
# symbolic's addresses have 32 bits.
MAX_RELATIVE = 1 << 32
# What it gives as the address of an inlined function.
NO_START = (1 << 32) - 1
GSYM_SECTION = ".gsym"


class ElfSymbols:
    """Names as the symbol table and the debug information have them, C++ ones mangled."""

    def __init__(self, binary: Binary) -> None:
        self.binary = binary
        self._problems: set[tuple[int, str]] = set()

    @property
    def path(self) -> str:
        return self.binary.path

    @property
    def name(self) -> str:
        return self.binary.name

    @property
    def base(self) -> int:
        return self.binary.base

    @property
    def build_id(self) -> str:
        return self.binary.build_id

    @cached_property
    def embedded(self) -> Gsym | None:
        """The GSYM data that the file holds, which then answers for it."""
        try:
            if self.binary.section(GSYM_SECTION) is None:
                return None
            from traceferry.symbols.gsym.reader import Gsym

            return Gsym(Source(self.path, self.binary.data))
        except FormatError as error:
            self._lost(error)
            return None

    def lookup(self, addresses: Array) -> Frames:
        if self.embedded is not None:
            return self.embedded.lookup(addresses)
        if not has_symbolic():
            return look_up(addresses, self._own.answer)
        found = look_up(addresses, self._answer_of_symbolic)
        return replace(found, size=np.where(np.diff(found.first) > 0, self._sizes_at(found.start), np.uint64(0)))

    @cached_property
    def _own(self) -> DwarfLookup:
        from traceferry.symbols.dwarf.lookup import DwarfLookup

        return DwarfLookup(self.binary, self._named_functions(), self._lost)

    @property
    def is_slow(self) -> bool:
        """Whether symbolic would answer look-ups faster, were it installed."""
        return self.embedded is None and not has_symbolic()

    def functions(self) -> Iterator[Function]:
        from traceferry.symbols.dwarf.functions import functions

        return functions(self.binary, self._lost) if self.embedded is None else self.embedded.functions()

    def _lost(self, error: FormatError) -> None:
        self._problems.add((error.offset or 0, str(error.message)))

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        embedded = self.embedded.problems if self.embedded is not None else ()
        return [*sorted(self._problems), *embedded]

    def _answer_of_symbolic(self, address: int) -> Answer:
        """Without the size."""
        from symbolic.exceptions import SymbolicError

        relative = address - self.base
        if self.binary.symcache is None or not 0 <= relative < MAX_RELATIVE:
            return NOTHING
        try:
            found = [frame for frame in self.binary.symcache.lookup(relative) if frame.symbol]
        except SymbolicError:
            return NOTHING
        if not found:
            return NOTHING
        outermost = int(found[-1].sym_addr)
        start = (outermost + self.base) % (1 << 64) if outermost != NO_START else 0
        return Answer(start, 0, [(frame.symbol, frame.full_path or "", _line(frame.line)) for frame in found])

    def _sizes_at(self, starts: Array) -> Array:
        """The sizes of the functions that start there, 0 where none is known; of several the longest, .dynsym's before
        those of .symtab. starts: uint64."""
        sizes = np.zeros(len(starts), np.uint64)
        for symbols in self._sized_symbols if len(starts) else ():
            nth = np.searchsorted(symbols["st_value"], starts, "right") - 1
            is_there = (nth >= 0) & (symbols["st_value"][nth] == starts)
            sizes = np.where(is_there, symbols["st_size"][nth], sizes)
        return sizes

    @cached_property
    def _sized_symbols(self) -> list[Array]:
        """The functions of each symbol table whose size is known, by start, then by size."""
        tables = [table[table["st_size"] > 0] for table in map(self._functions_in, SYMBOL_TABLES)]
        return [table[np.lexsort((table["st_size"], table["st_value"]))] for table in tables if len(table)]

    def _named_functions(self) -> Iterator[tuple[int, int, str]]:
        """(start, size, name) of the functions of .symtab, or of .dynsym where a file has no other."""
        for table in SYMBOL_TABLES:
            symbols = self._functions_in(table)
            if len(symbols):
                break
        names = self._content(STRING_TABLES[table])
        symbols = symbols[(symbols["st_shndx"] != SHN_UNDEF) & (symbols["st_name"] < len(names))]
        columns = (symbols["st_value"].tolist(), symbols["st_size"].tolist(), symbols["st_name"].tolist())
        for start, size, at in zip(*columns, strict=True):
            name = names[at : max(names.find(b"\0", at, at + MAX_NAME), at)].decode("utf-8", "replace")
            if name:
                yield start, size, name

    def names_at(self, starts: Array) -> list[str]:
        """What look-ups call the functions that start there, of several names one; "" where none starts. starts:
        uint64."""
        if self.embedded is not None:
            return [""] * len(starts)
        if not has_symbolic():
            names: dict[int, str] = {}
            for start, _, name in self._named_functions():
                names.setdefault(start, name)
            return [names.get(start, "") for start in starts.tolist()]
        found = self.lookup(starts)
        is_start = (np.diff(found.first) > 0) & (found.start == starts)
        # Of a function without frames the index is that of another, or outside.
        outermost = np.append(found.name, np.int32(-1))[np.where(is_start, found.first[1:] - 1, len(found.name))]
        return [found.texts[name] if name >= 0 else "" for name in outermost.tolist()]

    def _functions_in(self, table: str) -> Array:
        """The functions of a symbol table, with the fields of SYMBOL_64."""
        order = "<" if self.binary.little_endian else ">"
        fields = SYMBOL_64 if self.binary.word_size == 8 else SYMBOL_32
        entry = np.dtype([(name, order + code) for name, code in fields])
        data = self._content(table)
        symbols = np.frombuffer(data, entry, len(data) // entry.itemsize)
        return symbols[np.isin(symbols["st_info"] & TYPE_BITS, (STT_FUNC, STT_GNU_IFUNC))]

    def _content(self, section: str) -> bytes:
        """No bytes where the section is missing or damaged."""
        try:
            found = self.binary.section(section)
        except FormatError:
            found = None
        return found[1] if found is not None else b""


@cache
def has_symbolic() -> bool:
    """Whether symbolic is installed: pip install 'traceferry[symbols]'."""
    return find_spec("symbolic") is not None


def _line(number: int | None) -> int:
    """What damaged debug information makes too large is unknown."""
    return number if number is not None and number < 1 << 31 else 0
