"""Map: the functions of an ELF file, from its debug information (DWARF 2 to 5) and its symbol table.

What counts as a function, and what it looks like, follows `llvm-gsymutil --convert` of LLVM 19, but where the tests say
why not:

- Of the debug information there are those of `debug_info.py`.
- Symbols of functions add what the debug information does not have. One of size 0 lasts until the next function, the
  last one of a section until its end.
- So do those of .gnu_debugdata, where the file has no .symtab.
- The stubs of the procedure linkage table are functions, too: NAME@plt.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_links import NO_FILES, LinkedFiles, mini_debug_info
from traceferry.symbolication.dwarf.columns import described_functions
from traceferry.symbolication.dwarf.debug_info import MAX_SIZE, debug_info
from traceferry.symbolication.dwarf.units import Lost
from traceferry.symbolication.function_table import FunctionTable, Texts, groups_of, joined, table_of, without_lines
from traceferry.symbolication.interface import Function
from traceferry.symbolication.ranges import Ranges, merged
from traceferry.symbolication.symbol_table import (
    STT_FUNC,
    TABLES,
    TYPE_BITS,
    SymbolNames,
    SymbolTable,
    are_inside,
    content_of,
    symbols_of,
)

SHN_UNDEF = 0


def functions(binary: Binary, lost: Lost = lambda error: None, linked: LinkedFiles = NO_FILES) -> Iterator[Function]:
    """Yields what `function_table` returns."""
    return function_table(binary, lost, linked).functions()


def function_table(binary: Binary, lost: Lost = lambda error: None, linked: LinkedFiles = NO_FILES) -> FunctionTable:
    """Returns all functions, by address, the smaller first. Those of the same address and size are all there, in the
    file's order; but a symbol is not, where the debug information has such a function.

    lost: called for what is damaged or missing in the debug information; everything else is there. linked: finds the
    files to which parts of it were moved. Never raises.
    """
    texts = Texts()
    info, text = debug_info(binary, lost, linked), merged(binary.code_ranges)
    found = described_functions(info, texts) if info is not None else table_of((), texts)
    symbols = joined(
        [
            symbol_functions(binary, text, texts),
            mini_functions(binary, text, texts, lost),
            table_of(other_functions(binary), texts),
        ]
    )
    group = groups_of((found.start, found.size), (symbols.start, symbols.size))
    of_found, of_symbols = group[: len(found)], group[len(found) :]
    found = with_linkage_names(found, of_found, symbols, of_symbols)
    # A function that nothing names is none.
    found, of_found = found.taken(found.name >= 0), of_found[found.name >= 0]
    if info is not None and np.any(found.calls.name < 0):
        info.note_nameless_calls()
    both = joined([found, symbols.taken(~np.isin(of_symbols, of_found))])
    both = both.taken(np.lexsort((both.size, both.start)))
    return within_sections(both, binary.code_ranges)


# ---------------------------------------------------------------- the symbol table


def symbol_functions(binary: Binary, text: Ranges, texts: Texts) -> FunctionTable:
    """Returns functions in the order of .symtab, or of .dynsym where a file has no other."""
    table = next((name for name in TABLES if any(section.name == name for section in binary.sections)), "")
    if not table:
        return table_of((), texts)
    symbols, names = symbols_of(binary, table), SymbolNames(content_of(binary, TABLES[table]))
    is_here = (symbols["st_info"] & TYPE_BITS == STT_FUNC) & (symbols["st_shndx"] != SHN_UNDEF)
    symbols = symbols[is_here & (symbols["st_size"].astype(np.uint64) < MAX_SIZE)]
    # The lowest bit says that it is Thumb code.
    start = symbols["st_value"].astype(np.uint64) & ~np.uint64(binary.machine == "EM_ARM")
    is_code = are_inside(text, start)
    symbols, start = symbols[is_code], start[is_code]
    name = np.array([texts.number(names.at(at)) for at in symbols["st_name"].tolist()], np.int32)
    found = without_lines(texts, name, start, symbols["st_size"])
    return found.taken(name >= 0)


def mini_functions(binary: Binary, text: Ranges, texts: Texts, lost: Lost) -> FunctionTable:
    """Returns the functions of .gnu_debugdata, which names what .dynsym does not, where a file has no .symtab."""
    try:
        mini = mini_debug_info(binary) if len(symbols_of(binary, ".symtab")) <= 1 else None
    except FormatError as error:
        lost(error)
        mini = None
    return symbol_functions(mini, text, texts) if mini is not None else table_of((), texts)


def other_functions(binary: Binary) -> Iterator[Function]:
    """Yields the stubs of the procedure linkage table that have no symbol, and labels where no function is."""
    table = SymbolTable(binary)
    yield from (Function(*one) for one in (*table.stubs(), *table.labels()))


def within_sections(found: FunctionTable, sections: Ranges) -> FunctionTable:
    """Returns the functions, which rise by address; one of size 0 that is the last of its section with the size that
    reaches to the section's end."""
    size = found.size.copy()
    for row in np.flatnonzero(size == 0).tolist():
        start = int(found.start[row])
        following = int(np.searchsorted(found.start, found.start[row], "right"))
        end = next((end for begin, end in sections if begin <= start < end), 0)
        if following == len(found) or int(found.start[following]) >= end > start:
            size[row] = max(end - start, 0)
    return replace(found, size=size)


def with_linkage_names(found: FunctionTable, group: Array, symbols: FunctionTable, of_symbols: Array) -> FunctionTable:
    """Returns the functions with their linkage names. Compilers leave out the linkage names of functions that only one
    file sees; the symbol of the same bytes has it, if it holds the name as mangled names do: with its length in front.
    A function without a name has the symbol's. group, of_symbols: the same number for the same bytes."""
    texts = found.texts
    held = texts.held
    candidates = np.isin(of_symbols, group)
    mangled = {
        number: name
        for number, name in zip(of_symbols[candidates].tolist(), symbols.name[candidates].tolist(), strict=True)
        if held[name].startswith("_Z")
    }
    of_group = np.full(max((*group, *of_symbols), default=-1) + 1, -1, np.int32)
    of_group[of_symbols[::-1]] = symbols.name[::-1]
    named = np.where(found.name < 0, of_group[group], found.name)
    for row in np.flatnonzero(np.isin(group, np.array(list(mangled), np.int64))).tolist():
        name, mangled_name = held[named[row]], mangled[int(group[row])]
        short = name.partition("<")[0].rpartition("::")[2]
        if not name.startswith("_Z") and f"{len(short)}{short}" in held[mangled_name]:
            named[row] = mangled_name
    return replace(found, name=named)
