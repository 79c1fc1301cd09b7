"""The stubs of procedure linkage tables are called after the functions to which they jump, and no function reaches
beyond its section: as linkers lay them out, in look-ups with symbolic and without it, and in GSYM files."""

import io
import struct

import numpy as np
import pytest
from builders.dwarf import HIGH_PC, LOW_PC, NAME, SUBPROGRAM, Dwarf, die
from builders.plt import FUNC, INDIRECT, INIT, RESOLVER, TEXT, Layout, Symbol, elf, layouts

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.demangle import demangle
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.gsym.writer import write
from traceferry.symbolication.interface import Function, Symbols
from traceferry.symbolication.libraries import LibraryFile, LibraryFiles
from traceferry.symbolication.plt import may_be_stubs

LAYOUTS = layouts()
CODE = [Symbol("_init", INIT, 0, ".init"), Symbol("_start", TEXT, 0, ".text")]
MEMSET = Symbol("memset", RESOLVER, 4, ".text", INDIRECT)
STUBS = ["memcpy@plt", "_ZN3app4tickEv@plt", "memset@plt"]


def opened(data: bytes) -> ElfSymbols:
    return ElfSymbols(Binary(Source("app", memoryview(data))))


def as_gsym(symbols: ElfSymbols) -> Gsym:
    out = io.BytesIO()
    write(out, symbols.functions(), uuid=b"\1", base=symbols.base)
    return Gsym(Source("app.gsym", memoryview(out.getvalue())))


def names(symbols: Symbols, *addresses: int) -> list[str]:
    """What is at each, "" for nothing."""
    found = symbols.lookup(np.array(addresses, np.uint64))
    assert np.diff(found.first).max(initial=0) <= 1
    rows = iter(found.name.tolist())
    return [found.texts[next(rows)] if n else "" for n in np.diff(found.first).tolist()]


def stub_names(symbols: Symbols, layout: Layout) -> list[list[str]]:
    """Of each section, at the first and the last byte of each stub: both, if they differ."""
    found: list[list[str]] = []
    for _, begin, size, _ in layout.sections.values():
        starts = [begin + nth * size for nth in range(len(STUBS))]
        # GSYM names the whole of a stub, however long it is.
        pairs = zip(names(symbols, *starts), names(symbols, *(start + 7 for start in starts)), strict=True)
        found.append([" or ".join(dict.fromkeys(pair)) for pair in pairs])
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_stubs_have_the_names_of_their_functions(name: str) -> None:
    symbols = opened(elf(LAYOUTS[name], [*CODE, MEMSET]))
    wanted = [STUBS] * len(LAYOUTS[name].sections)
    assert stub_names(symbols, LAYOUTS[name]) == wanted
    assert stub_names(as_gsym(symbols), LAYOUTS[name]) == wanted


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_indirect_function_without_a_symbol_is_called_as_objdump_does(name: str) -> None:
    (first, *_) = stub_names(opened(elf(LAYOUTS[name])), LAYOUTS[name])
    assert first == [*STUBS[:2], "*ABS*+0x1808@plt"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_has_no_size_ends_with_its_section(name: str) -> None:
    """_init, of .init, is the symbol in front of .plt; _start is the last of all. In front of the first stub is a
    header, which jumps to the dynamic linker."""
    symbols = opened(elf(LAYOUTS[name], CODE))
    address, begin, _, _ = next(iter(LAYOUTS[name].sections.values()))
    asked = [INIT, INIT + 0x17, INIT + 0x18, TEXT, TEXT + 0x3F, TEXT + 0x40]
    for one in (symbols, as_gsym(symbols)):
        assert names(one, *asked) == ["_init", "_init", "", "_start", "_start", ""]
        assert set(names(one, *range(address, begin))) <= {""}


def test_an_indirect_function_whose_name_is_outside_the_table() -> None:
    layout = LAYOUTS["x86-64 bfd"]
    data = bytearray(elf(layout, [MEMSET]))
    struct.pack_into("<I", data, data.rindex(struct.pack("<QQ", RESOLVER, 4)) - 8, 1 << 24)
    assert stub_names(opened(bytes(data)), layout) == [[*STUBS[:2], "*ABS*+0x1808@plt"]]


def test_a_symbol_goes_before_the_stub() -> None:
    """mold writes symbols like memcpy$plt."""
    layout = LAYOUTS["x86-64 mold"]
    _, begin, size, _ = layout.sections[".plt"]
    symbols = opened(elf(layout, [Symbol("memcpy$plt", begin, size, ".plt", FUNC)]))
    assert stub_names(symbols, layout) == [["memcpy$plt", *STUBS[1:2], "*ABS*+0x1808@plt"]]


@pytest.mark.parametrize("says_where", [True, False], ids=["ranges", "no ranges"])
def test_debug_information_does_not_change_stubs(says_where: bool) -> None:
    """A unit that does not say where its code is can have code anywhere."""
    ranges = {"low_pc": TEXT, "high_pc": 8} if says_where else {}
    dwarf = Dwarf(5).unit(die(SUBPROGRAM, {NAME: "main", LOW_PC: TEXT, HIGH_PC: 8}), **ranges)
    layout = LAYOUTS["x86-64 bfd"]
    symbols = opened(elf(layout, [*CODE, MEMSET], dwarf.sections))
    assert stub_names(symbols, layout) == [STUBS]
    assert names(symbols, INIT + 0x17, INIT + 0x18, TEXT + 0x40) == ["_init", "", ""]


def test_symbols_in_another_file_do_not_name_stubs() -> None:
    """A debug file has no code, and what others make of it lets _init last through .plt: the binary itself knows."""
    layout = LAYOUTS["x86-64 bfd"]
    _, begin, size, _ = layout.sections[".plt"]
    out = io.BytesIO()
    write(out, [Function("_init", INIT, 0), Function("_start", TEXT, 4)], uuid=b"\1", base=0)
    apart = Gsym(Source("app.gsym", memoryview(out.getvalue())))
    file = LibraryFile(apart, opened(elf(layout, [MEMSET])).binary)
    asked = [INIT, *(begin + nth * size for nth in range(3)), TEXT]
    found = [function and function.frames[0][0] for function in LibraryFiles({0: file}).functions_at(0, asked)]
    assert found == ["_init", "memcpy@plt", "app::tick()@plt", "memset@plt", "_start"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_outside_of_their_sections_there_are_no_stubs(name: str) -> None:
    binary = opened(elf(LAYOUTS[name], [*CODE, MEMSET])).binary
    begins = [begin for _, begin, _, _ in LAYOUTS[name].sections.values()]
    assert all(may_be_stubs(binary, np.array([TEXT, begin], np.uint64)) for begin in begins)
    assert not may_be_stubs(binary, np.array([0, INIT, TEXT], np.uint64))


def test_names_of_stubs_are_demangled() -> None:
    assert demangle("_ZN3app4tickEv@plt") == "app::tick()@plt"


@pytest.mark.parametrize("name", ["x86-64 bfd", "i386 bfd", "AArch64 bfd"])
def test_damage_ends_in_other_names(name: str) -> None:
    """Bytes of headers and tables replaced: never an exception besides that for an unreadable file."""
    data = elf(LAYOUTS[name], CODE)
    for at in [*range(18, 64, 5), *range(0x2000, len(data), 31)]:
        for value in (0, 0xFF):
            damaged = bytearray(data)
            damaged[at] = value
            try:
                symbols = opened(bytes(damaged))
            except FormatError:
                continue
            names(symbols, INIT, TEXT, *range(0x1020, 0x1100, 8))
            list(symbols.functions())
