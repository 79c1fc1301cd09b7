"""The files of the libraries that an input names: functions at addresses, and their machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceferry.model import Array, LinkedFrame, LinkedPlace, NativeFunction, distinct, distinct_and_places, index_of
from traceferry.symbolication.demangle import Demangler, shown_frames, shown_path
from traceferry.symbolication.interface import Frames, Lookup, Symbols, look_up_apart, look_up_nothing, taken
from traceferry.symbolication.plt import may_be_stubs

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.elf import ElfSymbols

ADDRESSES = 1 << 64


@dataclass(frozen=True)
class LibraryFile:
    """symbols: what names its functions; binary: the ELF file with its code; None where they are not available.
    Addresses are relative to the lowest that is loaded. ranges: tells where functions begin and end, named or not:
    uint64, rising, as linked."""

    symbols: Symbols | None
    binary: Binary | None
    ranges: Callable[[], tuple[Array, Array]] | None = None

    def lookup(self, addresses: Array) -> Frames:
        """Returns the frames at addresses (uint64; so are the starts of functions), each function with one file: see
        `in_own_files`. There must be symbols."""
        n, starts = len(addresses), self._starts_of_symbols(addresses)
        # Most functions begin where a symbol does: their starts are looked up together with the addresses.
        found = self.frames_at(np.concatenate((addresses, starts)))
        own = taken(found, np.arange(n, n + len(starts)))

        def lookup(wanted: Array) -> Frames:
            row = index_of(starts, wanted)
            return look_up_apart(wanted, row >= 0, lambda _: taken(own, row[row >= 0]), self.frames_at)

        return in_own_files(taken(found, np.arange(n)), lookup)

    def _starts_of_symbols(self, addresses: Array) -> Array:
        """Returns where symbols begin that hold addresses and may be described by debug information: uint64, rising,
        none twice."""
        from traceferry.symbolication.elf import ElfSymbols

        if not isinstance(self.symbols, ElfSymbols) or not self.symbols.has_debug_info:
            return addresses[:0]
        table, base = self.symbols.table, np.uint64(self.symbols.base)
        rows = table.rows(addresses + base)
        starts = distinct(table.starts(distinct(rows[rows >= 0])))
        return starts[starts >= base] - base

    def frames_at(self, addresses: Array) -> Frames:
        """Returns the frames at addresses as the symbols have them."""
        assert self.symbols is not None
        by_symbols = partial(_relative, self.symbols)
        if self._stubs is None or not may_be_stubs(self._stubs.binary, addresses + np.uint64(self._stubs.base)):
            return by_symbols(addresses)
        are_stubs = self._stubs.table.are_stubs(addresses + np.uint64(self._stubs.base))
        return look_up_apart(addresses, are_stubs, partial(_relative, self._stubs), by_symbols)

    def first_lines(self, names: set[str]) -> dict[str, int]:
        """Returns the lines at which functions of these linkage names are declared, where debug information tells."""
        from traceferry.symbolication.elf import ElfSymbols

        missing = names - self._first_lines.keys()
        if missing and isinstance(self.symbols, ElfSymbols):
            self._first_lines.update(dict.fromkeys(missing, 0) | self.symbols.declared_lines(missing))
        return self._first_lines

    @cached_property
    def _first_lines(self) -> dict[str, int]:
        return {}

    def extents(self, addresses: Array) -> tuple[Array, Array]:
        """Returns (start, size), uint64, of the functions that hold addresses (uint64), whether they have names or not;
        0 where none is known."""
        base = np.uint64(self.binary.base if self.binary is not None else 0)
        if not len(addresses):  # nothing is read then
            return addresses, addresses
        starts, ends = self._ranges
        nth = np.searchsorted(starts, addresses + base, "right") - 1
        start, end = (np.concatenate((column, [0])).astype(np.uint64)[nth] for column in (starts, ends))
        is_inside = (nth >= 0) & (addresses + base < end) & (start > base)
        nothing = np.uint64(0)
        return np.where(is_inside, start - base, nothing), np.where(is_inside, end - start, nothing)

    @cached_property
    def _ranges(self) -> tuple[Array, Array]:
        nothing = np.zeros(0, np.uint64)
        return self.ranges() if self.ranges is not None else (nothing, nothing)

    @cached_property
    def _stubs(self) -> ElfSymbols | None:
        """Symbols that know the stubs of the procedure linkage table, where the symbols, being in another file, do
        not."""
        if self.binary is None:
            return None
        from traceferry.symbolication.elf import ElfSymbols

        is_own = isinstance(self.symbols, ElfSymbols) and self.symbols.binary is self.binary
        return None if is_own else ElfSymbols(self.binary)


def unnamed(start: int) -> str:
    """Returns what a function without a name is called. start: its address in the library."""
    return f"function at {start:#x}"


class LibraryFiles:
    """A LibraryReader. files: by the libraries' rows."""

    def __init__(self, files: Mapping[int, LibraryFile]) -> None:
        self._files = dict(files)
        self._demangle = Demangler()

    def functions_at(self, lib: int, addresses: Sequence[int]) -> list[NativeFunction | None]:
        file = self._files.get(lib)
        if file is None or file.symbols is None or not addresses:
            return [None] * len(addresses)
        asked = np.array([address % ADDRESSES for address in addresses], np.uint64)
        found = file.lookup(asked)
        frames, first = shown_frames(found, self._demangle), found.first.tolist()
        columns = zip(first[:-1], first[1:], found.start.tolist(), found.size.tolist(), strict=True)
        named = [
            NativeFunction(tuple(frames[begin:end][::-1]), start, size) if begin < end else None
            for begin, end, start, size in columns
        ]
        extents = (column.tolist() for column in file.extents(asked))
        return [
            one or (NativeFunction(((unnamed(start), "", 0),), start, size) if start else None)
            for one, start, size in zip(named, *extents, strict=True)
        ]

    def linked_at(self, lib: int, addresses: Sequence[int]) -> list[LinkedPlace]:
        file = self._files.get(lib)
        if file is None or file.symbols is None or not addresses:
            return [()] * len(addresses)
        found = file.frames_at(np.array([address % ADDRESSES for address in addresses], np.uint64))
        names = {found.texts[nth] for nth in distinct(found.name[found.name >= 0]).tolist()}
        first_lines = file.first_lines(names)
        shown = [found.texts[nth] for nth in found.name.tolist()]
        columns = zip(shown, found.line.tolist(), found.discriminators.tolist(), strict=True)
        frames = [LinkedFrame(name, line, which, first_lines.get(name, 0)) for name, line, which in columns]
        places = [tuple(frames[begin:end][::-1]) for begin, end in pairwise(found.first.tolist())]
        return [place if all(one.line and one.first_line for one in place) else () for place in places]

    def bytes_of(self, lib: int, address: int, size: int) -> bytes:
        binary = self._files[lib].binary if lib in self._files else None
        return binary.code(address, size) if binary is not None else b""

    def holder_of(self, pid: int, ts: int, address: int) -> tuple[int, int] | None:
        """Returns None: it is not recorded."""
        return None


def in_own_files(found: Frames, lookup: Lookup) -> Frames:
    """Returns the frames with each function in the file in which its first instruction stands, which is the one that
    declares it (of 3,287 functions of glibc's, all but one).

    Instructions inside may stand in other files: those of templates in C that are included, and, as clang writes
    them, some of functions that were inlined. The function would have as many files, and be as many functions. Their
    lines, being of another file, are unknown then. lookup: what found them.
    """
    outermost = found.first[1:][(np.diff(found.first) > 0) & (found.start > 0)] - 1
    start = found.start[(np.diff(found.first) > 0) & (found.start > 0)]
    starts, nth = distinct_and_places(start[found.source[outermost] >= 0])
    outermost = outermost[found.source[outermost] >= 0]
    if not len(starts):
        return found
    own = lookup(starts)
    is_start = (np.diff(own.first) > 0) & (own.start == starts)
    own_source = np.where(is_start, np.append(own.source, np.int32(-1))[own.first[1:] - 1], -1)[nth]
    pairs, which = distinct_and_places(found.source[outermost].astype(np.int64) << 32 | own_source.astype(np.uint32))
    texts = list(found.texts)
    moved = np.full(len(pairs), -1, np.int32)
    for pair, (one, other) in enumerate(zip((pairs >> 32).tolist(), pairs.astype(np.int32).tolist(), strict=True)):
        if other >= 0 and shown_path(found.texts[one]) != shown_path(own.texts[other]):
            moved[pair] = len(texts)
            texts.append(own.texts[other])
    moved = moved[which]
    source, line = found.source.copy(), found.line.copy()
    source[outermost[moved >= 0]], line[outermost[moved >= 0]] = moved[moved >= 0], 0
    return found._replace(source=source, line=line, texts=texts)


def _relative(symbols: Symbols, addresses: Array) -> Frames:
    base = np.uint64(symbols.base)

    def found(inside: Array) -> Frames:
        frames = symbols.lookup(inside + base)
        return frames._replace(start=frames.start - np.minimum(frames.start, base))

    # Beyond 2^64 there is nothing.
    return look_up_apart(addresses, addresses <= np.uint64(ADDRESSES - 1) - base, found, look_up_nothing)
