"""An ELF binary behind the interface: names and sizes from the symbol table; where there is debug information, names,
lines and inlined functions through symbolic, or without it through the project's own reader of DWARF; whole functions
from DWARF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Array
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_links import MINI_DEBUG_INFO, NO_FILES, LinkedFiles, mini_debug_info
from traceferry.symbolication.interface import (
    NOTHING,
    Answer,
    Frames,
    Function,
    Symbols,
    frames_of,
    line_number,
    look_up,
    look_up_apart,
    taken,
)
from traceferry.symbolication.symbol_table import LAST, SymbolTable, symbols_of

if TYPE_CHECKING:
    from traceferry.symbolication.dwarf.lookup import DwarfLookup, Overview
    from traceferry.symbolication.gsym.reader import Gsym

# symbolic's addresses have 32 bits.
MAX_RELATIVE = 1 << 32
# What it gives as the address of an inlined function.
NO_START = (1 << 32) - 1
GSYM_SECTION = ".gsym"
OPERATOR = "operator"


class ElfSymbols:
    """Names as the symbol table and the debug information have them, C++ ones mangled. linked: finds the files to which
    parts of the debug information were moved."""

    def __init__(self, binary: Binary, linked: LinkedFiles = NO_FILES) -> None:
        self.binary = binary
        self.linked = linked
        self.path, self.name, self.base = binary.path, binary.name, binary.base
        self._problems: set[tuple[int, str]] = set()
        self._was_described = False

    @property
    def build_id(self) -> str:
        return self.binary.build_id

    @cached_property
    def embedded(self) -> Gsym | None:
        """The GSYM data that the file holds, which then answers for it."""
        try:
            if self.binary.section(GSYM_SECTION) is None:
                return None
            from traceferry.symbolication.gsym.reader import Gsym

            return Gsym(Source(self.path, self.binary.data))
        except FormatError as error:
            self._lost(error)
            return None

    def lookup(self, addresses: Array) -> Frames:
        addresses = np.asarray(addresses, np.uint64)
        if self.embedded is not None:
            are_stubs = self.table.are_stubs(addresses)
            return look_up_apart(addresses, are_stubs, self.table.lookup, self.embedded.lookup)
        described = self._are_described(addresses) & ~self.table.are_stubs(addresses)
        return look_up_apart(addresses, described, self._lookup_described, self.table.lookup)

    def _are_described(self, addresses: Array) -> Array:
        """Whether the debug information can have something to say of each."""
        if self._overview.code is None:
            return np.ones(len(addresses), bool)
        begins, ends = np.array(self._overview.code, np.uint64).reshape(-1, 2).T
        first, end = self.table.surroundings(addresses)
        nth = np.searchsorted(ends, first, "right")
        return np.concatenate((begins, LAST))[nth] < end

    def _lookup_described(self, addresses: Array) -> Frames:
        self._was_described = True
        # symbolic reads one file.
        if not has_symbolic() or self._overview.is_in_several_files or self.binary.symcache is None:
            return look_up(addresses, self._own.answer)
        distinct, which = np.unique(addresses, return_inverse=True)
        answers = [self._answer_of_symbolic(address) for address in distinct.tolist()]
        start = np.array([answer.start for answer in answers], np.uint64)
        # symbolic lets a symbol without a size last until the next one, through other sections.
        is_inside = self.table.are_of_one_section(start, distinct) | (start == 0)
        found = frames_of([one if ok else NOTHING for one, ok in zip(answers, is_inside.tolist(), strict=True)])
        named = self.table.lookup(distinct)
        has_frames, has_name = np.diff(found.first) > 0, np.diff(named.first) > 0
        # symbolic calls all parts of a function by the symbol of one of them, as the hot part f by that of f.cold.
        renamed = has_frames & has_name & (found.start == named.start)
        # Parts of a function that are inlined into its rest have its name, too.
        of_address = np.repeat(np.arange(len(renamed)), np.diff(found.first))
        outermost = np.append(found.name, np.int32(-1))[found.first[1:][of_address] - 1]
        better = np.full(len(renamed), -1, np.int32)
        better[has_name] = named.name
        is_renamed = renamed[of_address] & (found.name == outermost)
        name = np.where(is_renamed, better[of_address] + np.int32(len(found.texts)), found.name)
        size = np.where(has_frames, self.table.sizes_at(found.start), np.uint64(0))
        renamed_frames = replace(found, name=name, size=size, texts=[*found.texts, *named.texts])
        return taken(self._with_whole_operators(renamed_frames, distinct), which)

    def _with_whole_operators(self, found: Frames, addresses: Array) -> Frames:
        """Returns the frames with the namespaces and classes of operators without a linkage name, such as those of
        lambdas, which symbolic leaves out: all are `operator()`. found: of these addresses."""
        bare = [nth for nth, text in enumerate(found.texts) if text.startswith(OPERATOR)]
        frames = np.flatnonzero(np.isin(found.name, np.array(bare, np.int32)))
        nth = np.unique(np.searchsorted(found.first, frames, "right") - 1)
        name, texts = found.name.copy(), list(found.texts)
        for row in nth.tolist():
            mine = range(int(found.first[row]), int(found.first[row + 1]))
            own = self._own.answer(int(addresses[row])).frames
            for frame, (whole, _, _) in zip(mine, own, strict=False):
                shown = texts[name[frame]]
                if len(own) == len(mine) and shown.startswith(OPERATOR) and whole.endswith(f"::{shown}"):
                    name[frame] = len(texts)
                    texts.append(whole)
        return replace(found, name=name, texts=texts)

    @cached_property
    def table(self) -> SymbolTable:
        try:
            return SymbolTable(self.binary, mini_debug_info(self.binary))
        except FormatError as error:
            self._lost(error)
            return SymbolTable(self.binary)

    @cached_property
    def _overview(self) -> Overview:
        from traceferry.symbolication.dwarf.lookup import overview

        return overview(self.binary)

    @cached_property
    def _own(self) -> DwarfLookup:
        from traceferry.symbolication.dwarf.lookup import DwarfLookup

        return DwarfLookup(self.binary, self.table, self._lost, self.linked)

    @property
    def has_lines(self) -> bool:
        """Whether the file has debug information itself, or GSYM data, which takes its place."""
        names = {section.name for section in self.binary.sections}
        return not names.isdisjoint((".debug_info", ".zdebug_info", GSYM_SECTION))

    @property
    def gives(self) -> str:
        if self.has_lines:
            return "debug information"
        if len(symbols_of(self.binary, ".symtab")) > 1:
            return "the symbol table"
        has_mini = any(section.name == MINI_DEBUG_INFO for section in self.binary.sections)
        return "MiniDebugInfo" if has_mini else "the dynamic symbols"

    @property
    def is_slow(self) -> bool:
        """Whether symbolic would have answered look-ups faster, were it installed."""
        return self._was_described and not has_symbolic() and not self._overview.is_in_several_files

    def functions(self) -> Iterator[Function]:
        from traceferry.symbolication.dwarf.functions import functions

        return functions(self.binary, self._lost, self.linked) if self.embedded is None else self.embedded.functions()

    def _lost(self, error: FormatError) -> None:
        self._problems.add((error.offset or 0, str(error.message)))

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        embedded = self.embedded.problems if self.embedded is not None else ()
        return [*sorted(self._problems), *embedded]

    @cached_property
    def _answer_of_symbolic(self) -> Callable[[int], Answer]:
        """Returns what symbolic says of an address (as the linker wrote it): all but the size of the function, which is
        0."""
        from symbolic.exceptions import SymbolicError

        base, symcache = self.base, self.binary.symcache

        def answer(address: int) -> Answer:
            relative = address - base
            if symcache is None or not 0 <= relative < MAX_RELATIVE:
                return NOTHING
            try:
                found = [frame for frame in symcache.lookup(relative) if frame.symbol]
            except SymbolicError:
                return NOTHING
            if not found:
                return NOTHING
            outermost = int(found[-1].sym_addr)
            start = (outermost + base) % (1 << 64) if outermost != NO_START else 0
            return Answer(start, 0, [(frame.symbol, frame.full_path or "", line_number(frame.line)) for frame in found])

        return answer

    def names_at(self, starts: Array) -> list[str]:
        """Returns what look-ups call the functions that start there, of several names one; "" where none starts.
        starts: uint64."""
        if self.embedded is not None:
            return [""] * len(starts)
        found = self.lookup(starts) if has_symbolic() else self.table.lookup(starts)
        is_start = (np.diff(found.first) > 0) & (found.start == starts)
        # Of a function without frames the index is that of another, or outside.
        outermost = np.append(found.name, np.int32(-1))[np.where(is_start, found.first[1:] - 1, len(found.name))]
        return [found.texts[name] if name >= 0 else "" for name in outermost.tolist()]


def named_functions(symbols: Symbols) -> list[Function]:
    """Returns the functions; of several names of one, the one that look-ups in the file itself give."""
    functions = list(symbols.functions())
    if not isinstance(symbols, ElfSymbols):
        return functions
    names = symbols.names_at(np.array([function.start for function in functions], np.uint64))
    return [function._replace(name=name or function.name) for function, name in zip(functions, names, strict=True)]


@cache
def has_symbolic() -> bool:
    """Whether symbolic is installed: pip install 'traceferry[symbols]'."""
    return find_spec("symbolic") is not None
