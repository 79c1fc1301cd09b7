"""Fuzzes what ELF files say: debug information (DWARF 2 to 5), symbol tables, GSYM data. Run by `make fuzz`.

Seeds are ELF files that the tests' builder makes, in every version and byte order, and one with GSYM data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from common import MAX_FUNCTIONS, ROOT, asked_of, run_symbols, said_by, stacks_of

sys.path.insert(0, str(ROOT / "tests"))

from builders.dwarf import (
    ADDRX,
    BLOCK2,
    C_PLUS_PLUS_14,
    CALL_FILE,
    CALL_LINE,
    DATA1,
    DECL_FILE,
    DECL_LINE,
    GNU_REF_ALT,
    GNU_STRP_ALT,
    HIGH_PC,
    IMPLICIT_CONST,
    INDIRECT,
    INLINED,
    LEXICAL_BLOCK,
    LINKAGE_NAME,
    LOW_PC,
    NAME,
    NAMESPACE,
    ORIGIN,
    RANGES,
    REF_ADDR,
    RNGLISTX,
    SKELETON,
    SPECIFICATION,
    SPLIT,
    STRP,
    STRUCTURE,
    STRX,
    SUBPROGRAM,
    UDATA,
    VARIABLE,
    Die,
    Dwarf,
    Symbol,
    die,
)
from builders.gsym import GsymFile

SYMBOLS = [Symbol("_ZN1n1fEv", 0x1000, 0x20), Symbol("other", 0x1100, 0), Symbol("same", 0x1000, 0x20)]
SEPARATOR = b"\nthe other file\n"
TYPES = 0x2100  # an attribute that nobody knows


def code(name: str, low: int, size: int, *children: Die) -> Die:
    return die(SUBPROGRAM, {NAME: name, LOW_PC: low, HIGH_PC: size}, *children, label=name)


def call(name: str, low: int, size: int, *children: Die) -> Die:
    return die(INLINED, {NAME: name, LOW_PC: low, HIGH_PC: size, CALL_FILE: 1, CALL_LINE: 9}, *children)


def everything(version: int, *, big: bool = False, wide: bool = False) -> Dwarf:
    """Lines of two sequences, inlined calls in each other and in pieces, ranges, names from elsewhere."""
    dwarf = Dwarf(version, big=big, wide=wide)
    rows = [(0x1000, 1, 10), (0x1008, 2, 300), (0x1008, 2, 301), (0x1010, 1, 0), (0x1018, 1, 4)]
    lines = dwarf.lines(rows, [(0x1100, 1, 7)], files=[("a.cc", 0), ("x/b.h", 1), ("/c.h", 0)])
    pieces = die(INLINED, {ORIGIN: "abstract", RANGES: dwarf.ranges((0x1004, 0x1006), (0x1010, 0x1014)), CALL_LINE: 3})
    block = die(LEXICAL_BLOCK, {}, call("g", 0x1008, 8, call("h", 0x100A, 2)))
    dwarf.unit(
        die(NAMESPACE, {NAME: "n"}, code("f", 0x1000, 0x20, block, pieces), die(STRUCTURE, {NAME: "s"})),
        die(SUBPROGRAM, {NAME: "abstract", DECL_FILE: 1, DECL_LINE: 2}, label="abstract"),
        die(SUBPROGRAM, {SPECIFICATION: "abstract", LOW_PC: 0x1180, HIGH_PC: 4}),
        die(VARIABLE),
        stmt_list=lines, comp_dir="/src", language=C_PLUS_PLUS_14,
    )  # fmt: skip
    return dwarf.unit(die(SUBPROGRAM, {ORIGIN: (REF_ADDR, "f"), LINKAGE_NAME: "_Z1fv", LOW_PC: 0x1100, HIGH_PC: 8}))


def forms() -> Dwarf:
    """What only version 5 has: indices, lists with headers, constants in abbreviations."""
    dwarf = Dwarf()
    dwarf.add(".debug_addr", bytes(8) + dwarf.pack("QQ", 0x5000, 0x1000))
    dwarf.add(".debug_str", b"\0f\0")
    dwarf.add(".debug_str_offsets", bytes(8) + dwarf.pack("II", 0, 1))
    entries = b"\x01\x01\x04\x00\x10\x02\x01\x01\x03\x01\x10\x05\x00\x10\0\0\0\0\0\0\x06" + dwarf.pack(
        "QQ", 0x1000, 0x1010
    )
    dwarf.add(".debug_rnglists", dwarf.pack("I", 4) + entries + b"\x07" + dwarf.pack("Q", 0x1040) + b"\x10\0")
    attributes = {NAME: (STRX, 1), LOW_PC: (ADDRX, 1), HIGH_PC: (IMPLICIT_CONST, 0x20), TYPES: (BLOCK2, b"\1\2")}
    dwarf.unit(
        die(SUBPROGRAM, attributes),
        die(SUBPROGRAM, {NAME: (STRP, 1), RANGES: (RNGLISTX, 0)}),
        code("g", 0x1080, 4),
        die(SUBPROGRAM, {NAME: "h", LOW_PC: 0x1090, HIGH_PC: (INDIRECT, (DATA1, 0x20)), DECL_LINE: (UDATA, 1 << 40)}),
        addr_base=8, rnglists_base=0, str_offsets_base=8, low_pc=0x1000,
    )  # fmt: skip
    return dwarf.unit(dwo_name="x.dwo")


def seeds() -> Iterator[tuple[str, bytes]]:
    for version in (2, 3, 4, 5):
        yield f"v{version}", everything(version).elf(SYMBOLS)
    yield "v5-big", everything(5, big=True).elf(SYMBOLS)
    yield "v4-wide", everything(4, wide=True).elf(SYMBOLS)
    yield "v5-wide", everything(5, wide=True).elf(SYMBOLS)
    yield "forms", forms().elf(SYMBOLS)
    embedded = everything(4)
    embedded.add(".gsym", GsymFile().function("g", 0x1000, 8, [(0x1000, "a.c", 1)]).bytes())
    yield "embedded", embedded.elf(SYMBOLS)
    yield "symbols", Dwarf().elf(SYMBOLS)
    yield from parts()
    yield "small", Dwarf(4).unit(code("f", 0x1000, 0x10, call("g", 0x1004, 4))).elf()


def parts() -> Iterator[tuple[str, bytes]]:
    """Debug information in two files, the other one behind SEPARATOR: a split unit, its package, what `dwz` shares."""
    main, split = Dwarf(5), Dwarf(5)
    main.add(".debug_addr", bytes(8) + main.pack("QQ", 0x1000, 0x1100))
    main.unit(kind=SKELETON, split_id=7, dwo_name="a.dwo", addr_base=8, low_pc=0x1000, high_pc=0x200)
    split.add(".debug_str", b"\0f\0g\0")
    split.add(".debug_str_offsets", bytes(8) + split.pack("III", 0, 1, 3))
    split.add(".debug_rnglists", bytes(12) + split.pack("I", 4) + b"\x03\x01\x10\0")
    split.unit(
        die(SUBPROGRAM, {NAME: (STRX, 1), LOW_PC: (ADDRX, 0), HIGH_PC: 16}, call("h", 0x1004, 4)),
        die(SUBPROGRAM, {NAME: (STRX, 2), RANGES: (RNGLISTX, 0)}),
        kind=SPLIT, split_id=7,
    )  # fmt: skip
    yield "split", main.elf(SYMBOLS) + SEPARATOR + split.elf(suffix=".dwo")
    columns = {1: ".debug_info", 3: ".debug_abbrev", 6: ".debug_str_offsets", 8: ".debug_rnglists"}
    index = split.pack("HHIIIQQII", 5, 0, 4, 1, 2, 0, 7, 0, 1)
    index += split.pack("12I", *columns, *[0] * 4, *(len(split.sections[name]) for name in columns.values()))
    package = split.elf(suffix=".dwo", plain={".debug_cu_index": index})
    yield "package", main.elf(SYMBOLS) + SEPARATOR + package
    shared, user = Dwarf(4), Dwarf(4)
    shared.add(".debug_str", b"\0moved\0")
    shared.unit(die(SUBPROGRAM, {NAME: "inlined"}))
    at = 11 + 1  # behind the header of the unit, and its root
    inlined = die(INLINED, {ORIGIN: (GNU_REF_ALT, at), LOW_PC: 0x1004, HIGH_PC: 4, CALL_FILE: 1, CALL_LINE: 9})
    user.unit(die(SUBPROGRAM, {NAME: (GNU_STRP_ALT, 1), LOW_PC: 0x1000, HIGH_PC: 16}, inlined))
    user.add(".gnu_debugaltlink", b"common\0" + bytes(20))
    yield "shared", user.elf(SYMBOLS) + SEPARATOR + shared.elf()


class Other:
    """A LinkedFiles: the other file is whatever is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def alternative(self, debug: Any) -> Any:
        from traceferry.common.errors import FormatError
        from traceferry.files.source import Source
        from traceferry.symbolication.binary import Binary

        try:
            return Binary(Source("other", memoryview(self._data))) if self._data else None
        except FormatError:
            return None

    package = alternative

    def split_files(self, debug: Any, name: str, folder: str) -> Iterator[Any]:
        found = self.alternative(debug)
        if found is not None:
            yield found

    def note_missing(self, debug: Any, name: str, split_id: str, others: Any) -> bool:
        return False


def said(data: bytes) -> list[Any]:
    """All that readers of many addresses and of one say of the bytes; a FormatError: they are no such file."""
    import numpy as np

    from traceferry.common.errors import FormatError
    from traceferry.files.source import Source
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.elf import ElfSymbols
    from traceferry.symbolication.interface import look_up

    data, _, other = data.partition(SEPARATOR)
    try:
        symbols = ElfSymbols(Binary(Source("fuzz", memoryview(data))), Other(other))
        addresses = np.array(asked_of(list(islice(symbols.functions(), MAX_FUNCTIONS))), np.uint64)
        alone = stacks_of(look_up(addresses, symbols._dwarf.answer))
        return [alone, said_by(ElfSymbols(Binary(Source("fuzz", memoryview(data))), Other(other)))]
    except FormatError as error:
        return [error.message, error.offset]


if __name__ == "__main__":
    run_symbols("dwarf", seeds, said)
