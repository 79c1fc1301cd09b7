"""Functions of an ELF file, from its debug information and its symbol table (DWARF 5; LLVM 19 as the example)."""

import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.dwarf import (
    ADDR,
    ADDRX,
    BLOCK2,
    C_PLUS_PLUS_14,
    CALL_FILE,
    CALL_LINE,
    DATA1,
    DECL_FILE,
    DECL_LINE,
    FLAG_PRESENT,
    HIGH_PC,
    IMPLICIT_CONST,
    INDIRECT,
    INLINED,
    LEXICAL_BLOCK,
    LINE_STRP,
    LINKAGE_NAME,
    LOW_PC,
    NAME,
    NAMESPACE,
    OBJECT,
    ORIGIN,
    RANGES,
    REF_ADDR,
    RNGLISTX,
    RUST,
    SKELETON,
    SPECIFICATION,
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
    sleb,
    uleb,
)
from recordings import content, names

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.dwarf.columns import described_functions
from traceferry.symbolication.dwarf.debug_info import MAX_INLINED, debug_info
from traceferry.symbolication.dwarf.functions import functions
from traceferry.symbolication.function_table import Texts, table_of
from traceferry.symbolication.interface import Function, Inline

A, B = "/src/a.cc", "/src/b.h"
SYMBOLIZER = shutil.which("llvm-symbolizer-19")


def read(data: bytes) -> tuple[list[Function], list[FormatError]]:
    """The functions, and what is lost. Compiled code says what the reader of single units says, which shares none."""
    binary = Binary(Source("app", memoryview(data)))
    described, one_by_one = debug_info(binary, lambda _: None), debug_info(binary, lambda _: None)
    if described is not None and one_by_one is not None:
        together = list(described_functions(described, Texts()).functions())
        assert together == list(table_of(one_by_one.functions()).functions())
    return read_once(data)


def read_once(data: bytes) -> tuple[list[Function], list[FormatError]]:
    lost: list[FormatError] = []
    return list(functions(Binary(Source("app", memoryview(data))), lost.append)), lost


def functions_of(data: bytes) -> list[Function]:
    found, lost = read(data)
    assert lost == []
    return found


def names_of(data: bytes) -> list[tuple[int, int, str]]:
    return [(f.start, f.size, f.name) for f in functions_of(data)]


def code(low: int, size: int, *children: Die, **more: Any) -> Die:
    """A function `f` of that range."""
    label = more.pop("label", "")
    attributes = {NAME: "f", LOW_PC: low, HIGH_PC: size}
    return die(SUBPROGRAM, attributes | more.pop("attributes", {}), *children, label=label)


def call(low: int, size: int, *children: Die, line: int = 5, name: str = "g", file: int = 1) -> Die:
    attributes = {NAME: name, LOW_PC: low, HIGH_PC: size, CALL_FILE: file, CALL_LINE: line}
    return die(INLINED, attributes, *children)


# ---------------------------------------------------------------- one function, however it is coded


CODINGS = [
    pytest.param(version, big, wide, id=f"DWARF {version}{', big' * big}{', 64-bit' * wide}")
    for version in (2, 3, 4, 5)
    for big in (False, True)
    for wide in (False, True)
    if version > 2 or not wide
]


@pytest.mark.parametrize(("version", "big", "wide"), CODINGS)
def test_a_function_with_lines_and_an_inlined_call(version: int, big: bool, wide: bool) -> None:
    dwarf = Dwarf(version, big=big, wide=wide)
    # Before version 5, file 1 is the first, and what follows the folders' list counts from 1, too.
    first = 0 if version >= 5 else 1
    files = [("a.cc", 0), ("x/b.h", 0)]
    at = dwarf.lines([(0x1000, first, 10), (0x1008, first + 1, 3), (0x1010, first, 12)], folders=["/src"], files=files)
    dwarf.unit(code(0x1000, 0x20, call(0x1008, 8, line=11, file=first)), stmt_list=at, comp_dir="/src")
    inlined = Inline("g", ((0x1008, 0x1010),), A, 11)
    lines = [(0x1000, A, 10), (0x1008, "/src/x/b.h", 3), (0x1010, A, 12)]
    assert functions_of(dwarf.elf()) == [Function("f", 0x1000, 0x20, lines, (inlined,))]


@pytest.mark.parametrize(
    "attributes",
    [
        {HIGH_PC: (ADDR, 0x1020)},
        {HIGH_PC: (UDATA, 0x20)},
        {HIGH_PC: (IMPLICIT_CONST, 0x20)},
        {HIGH_PC: (INDIRECT, (DATA1, 0x20))},
        {LOW_PC: (ADDRX, 1)},
        {NAME: (STRP, 1)},
        {NAME: (LINE_STRP, 1)},
        {NAME: (STRX, 1)},
        *({NAME: (form, 1)} for form in range(0x25, 0x29)),
        *({LOW_PC: (form, 1)} for form in range(0x29, 0x2D)),
        {0x2100: (BLOCK2, b"\x01\x02\x03")},
        {0x2100: (FLAG_PRESENT, None)},
    ],
    ids=lambda attributes: " ".join(f"{name:#x}: form {form:#x}" for name, (form, _) in attributes.items()),
)
def test_forms(attributes: dict[int, Any]) -> None:
    dwarf = Dwarf()
    dwarf.add(".debug_addr", bytes(8) + dwarf.pack("QQ", 0x5000, 0x1000))
    dwarf.add(".debug_str", b"\0f\0")
    dwarf.add(".debug_line_str", b"\0f\0")
    dwarf.add(".debug_str_offsets", bytes(8) + dwarf.pack("II", 0, 1))
    dwarf.unit(code(0x1000, 0x20, die(VARIABLE), attributes=attributes), code(0x1100, 1), addr_base=8)
    assert names_of(dwarf.elf()) == [(0x1000, 0x20, "f"), (0x1100, 1, "f")]


# ---------------------------------------------------------------- ranges


def ranged(*ranges: tuple[int, int], **unit: Any) -> Dwarf:
    dwarf = Dwarf()
    attributes = {NAME: "f", RANGES: dwarf.ranges(*ranges)}
    return dwarf.unit(die(SUBPROGRAM, attributes), **unit)


def test_each_range_is_a_function() -> None:
    assert names_of(ranged((0x1800, 0x1810), (0x1000, 0x1020)).elf()) == [(0x1000, 0x20, "f"), (0x1800, 0x10, "f")]


def test_an_empty_range_is_none_and_the_others_stay() -> None:
    """llvm-gsymutil 19 leaves out what follows it."""
    assert names_of(ranged((0x1800, 0x1800), (0x1000, 0x1020)).elf()) == [(0x1000, 0x20, "f")]


@pytest.mark.parametrize("low", [0, 0xFFF, 0x2000, (1 << 64) - 1, (1 << 64) - 2])
def test_what_was_not_linked_in_does_not_lie_in_code(low: int) -> None:
    assert names_of(Dwarf().unit(code(low, 0x10)).elf()) == []


def test_pairs_of_offsets_count_from_the_base() -> None:
    dwarf = Dwarf(4)
    pairs = [(0, 0x10), ((1 << 64) - 1, 0x1800), (4, 8), (0, 0)]
    at = dwarf.add(".debug_ranges", b"".join(dwarf.pack("QQ", *pair) for pair in pairs))
    dwarf.unit(die(SUBPROGRAM, {NAME: "f", RANGES: at}), low_pc=0x1000)
    assert names_of(dwarf.elf()) == [(0x1000, 0x10, "f"), (0x1804, 4, "f")]


RANGE_ENTRIES = {
    "base_addressx, offset_pair": b"\x01\x00\x04\x00\x10",
    "startx_endx": b"\x02\x00\x01",
    "startx_length": b"\x03\x00\x10",
    "offset_pair": b"\x04\x00\x10",
    "base_address, offset_pair": b"\x05\x00\x10\0\0\0\0\0\0\x04\x00\x10",
    "start_end": b"\x06\x00\x10\0\0\0\0\0\0\x10\x10\0\0\0\0\0\0",
    "start_length": b"\x07\x00\x10\0\0\0\0\0\0\x10",
}


@pytest.mark.parametrize("entry", RANGE_ENTRIES.values(), ids=RANGE_ENTRIES)
def test_every_kind_of_range(entry: bytes) -> None:
    dwarf = Dwarf()
    dwarf.add(".debug_addr", dwarf.pack("QQ", 0x1000, 0x1010))
    dwarf.add(".debug_rnglists", dwarf.pack("I", 4) + entry + b"\0")
    unit = {"low_pc": 0x1000, "rnglists_base": 0}
    dwarf.unit(die(SUBPROGRAM, {NAME: "f", RANGES: (RNGLISTX, 0)}), **unit)
    assert names_of(dwarf.elf()) == [(0x1000, 0x10, "f")]


# ---------------------------------------------------------------- names


def named(*dies: Die, language: int = C_PLUS_PLUS_14, symbols: list[Symbol] | None = None) -> str:
    """Of the one function."""
    (function,) = functions_of(Dwarf().unit(*dies, language=language).elf(symbols or []))
    return function.name


def test_the_linkage_name_is_the_name() -> None:
    assert named(code(0x1000, 4, attributes={LINKAGE_NAME: "_Z1fv"})) == "_Z1fv"


@pytest.mark.parametrize("reference", [ORIGIN, SPECIFICATION])
def test_the_name_is_where_the_entry_refers_to(reference: int) -> None:
    declared = die(SUBPROGRAM, {NAME: "f", LINKAGE_NAME: "_Z1fv"}, label="declared")
    assert named(die(SUBPROGRAM, {reference: "declared", LOW_PC: 0x1000, HIGH_PC: 4}), declared) == "_Z1fv"


def test_a_reference_leads_into_another_unit() -> None:
    dwarf = Dwarf().unit(die(SUBPROGRAM, {ORIGIN: (REF_ADDR, "far"), LOW_PC: 0x1000, HIGH_PC: 4}))
    dwarf.unit(die(SUBPROGRAM, {NAME: "far away"}, label="far"))
    assert names_of(dwarf.elf()) == [(0x1000, 4, "far away")]


def test_in_c_plus_plus_namespaces_and_classes_are_in_front() -> None:
    inner = die(NAMESPACE, {}, die(STRUCTURE, {NAME: "<K>"}, code(0x1000, 4)))
    assert named(die(NAMESPACE, {NAME: "n"}, inner)) == "n::{K}::f"


def test_in_other_languages_they_are_not() -> None:
    assert named(die(NAMESPACE, {NAME: "n"}, code(0x1000, 4)), language=RUST) == "f"


def test_a_declaration_has_the_namespaces() -> None:
    declared = die(NAMESPACE, {NAME: "n"}, die(SUBPROGRAM, {NAME: "f"}, label="declared"))
    assert named(declared, die(SUBPROGRAM, {SPECIFICATION: "declared", LOW_PC: 0x1000, HIGH_PC: 4})) == "n::f"


def test_a_symbol_has_the_linkage_name_that_the_debug_information_leaves_out() -> None:
    """llvm-gsymutil 19 keeps `n::f`, later ones do as we."""
    dies = die(NAMESPACE, {NAME: "n"}, code(0x1000, 4))
    assert named(dies, symbols=[Symbol("_ZN1nL1fEi", 0x1000, 4)]) == "_ZN1nL1fEi"
    assert named(dies, symbols=[Symbol("_ZN1nL3abcEi", 0x1000, 4)]) == "n::f"


def test_entries_that_refer_to_each_other_have_no_name() -> None:
    loop = die(SUBPROGRAM, {ORIGIN: "loop", LOW_PC: 0x1000, HIGH_PC: 4}, label="loop")
    assert names_of(Dwarf().unit(loop).elf([Symbol("symbol", 0x1000, 4)])) == [(0x1000, 4, "symbol")]


# ---------------------------------------------------------------- lines


def lines_of(dwarf: Dwarf, at: int, low: int = 0x1010, size: int = 0x10, **attributes: Any) -> list[Any]:
    (function,) = functions_of(
        dwarf.unit(code(low, size, attributes=attributes.get("of", {})), stmt_list=at, comp_dir="/src").elf()
    )
    return [(address - low, source, line) for address, source, line in function.lines]


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([(0x1000, 0, 1), (0x1010, 0, 2), (0x1020, 0, 3)], [(0, A, 2)]),
        ([(0x1000, 0, 1), (0x1018, 0, 2)], [(0, A, 1), (8, A, 2)]),
        ([(0x1010, 0, 1), (0x1010, 0, 2)], [(0, A, 2)]),
        ([(0x1010, 0, 1), (0x1014, 0, 1), (0x1018, 1, 1)], [(0, A, 1), (8, B, 1)]),
        ([(0x1010, 0, 1), (0x1014, 0, 0), (0x1018, 0, 1)], [(0, A, 1), (4, A, 0), (8, A, 1)]),
        ([(0x1010, 7, 1)], [(0, "", 1)]),
    ],
    ids=["only its own", "that before it", "the last of an address", "no repetition", "line 0", "no such file"],
)
def test_rows_of_a_function(rows: list[tuple[int, int, int]], lines: list[Any]) -> None:
    dwarf = Dwarf()
    assert lines_of(dwarf, dwarf.lines(rows)) == lines


def test_sequences_one_behind_the_other_are_one_table() -> None:
    dwarf = Dwarf()
    at = dwarf.lines([(0x1018, 0, 2)], [(0x1010, 0, 1)], end=8)
    assert lines_of(dwarf, at) == [(0, A, 1), (8, A, 2)]


def test_every_opcode_of_a_line_program() -> None:
    """From address 0x1010, line 1: special 44 is 2 bytes and 4 lines, const_add_pc 20 bytes, fixed_advance_pc 3."""
    dwarf = Dwarf()
    program = b"\0\x09\x02" + dwarf.pack("Q", 0x1010) + b"\x04\x00\x01" + bytes([44]) + b"\x08\x01\x09\x03\x00\x01"
    program += b"\x05\x07\x06\x07\x0a\x0b\x0c\x05" + b"\x03" + sleb(-2) + b"\x02\x04\x01" + b"\0\x02\x80\x01"
    program += b"\x02\x10\0\x01\x01"
    assert lines_of(dwarf, dwarf.lines(program=program), size=0x40) == [(0, A, 1), (2, A, 5), (29, A, 3)]


@pytest.mark.parametrize(
    ("version", "folders", "files", "path"),
    [
        (4, ["/inc", "sub"], [("a", 0)], "/src/a"),
        (4, ["/inc", "sub"], [("a", 1)], "/inc/a"),
        (4, ["/inc", "sub"], [("a", 2)], "/src/sub/a"),
        (4, ["/inc", "sub"], [("/abs/a", 2)], "/abs/a"),
        (5, [".", "sub"], [("", 0), ("a", 0)], "./a"),
        (5, ["/top", "sub"], [("", 0), ("a", 1)], "/src/sub/a"),
        (5, ["/top", "sub"], [("", 0), ("../a", 0)], "/top/../a"),
        (5, ["/top", "sub"], [("", 0), ("a", 9)], "/src/a"),
    ],
)
def test_paths(version: int, folders: list[str], files: list[tuple[str, int]], path: str) -> None:
    """comp_dir is /src; nothing is resolved."""
    dwarf = Dwarf(version)
    assert lines_of(dwarf, dwarf.lines([(0x1010, 1, 1)], folders=folders, files=files)) == [(0, path, 1)]


def test_without_rows_the_declaration_has_the_line() -> None:
    dwarf = Dwarf()
    at = dwarf.lines([(0x1800, 0, 1)])
    assert lines_of(dwarf, at, of={DECL_FILE: 1, DECL_LINE: 77}) == [(0, B, 77)]


# ---------------------------------------------------------------- inlined calls


def inlined_in(*children: Die, ranges: tuple[tuple[int, int], ...] = ((0x1000, 0x1100),)) -> list[Any]:
    """Of each function what is inlined, as (name, ranges less 0x1000, call line, what is inlined there)."""
    dwarf = Dwarf()
    at = dwarf.lines([(0x1000, 0, 1)])
    function = die(SUBPROGRAM, {NAME: "f", RANGES: dwarf.ranges(*ranges)}, *children)
    return [drawn(f.inlines) for f in functions_of(dwarf.unit(function, stmt_list=at).elf())]


def drawn(inlines: Any) -> list[Any]:
    return [
        (
            i.name,
            [(b - 0x1000, e - 0x1000) for b, e in i.ranges],
            i.call_line,
            *([drawn(i.children)] if i.children else []),
        )
        for i in inlines
    ]


def test_calls_are_inlined_into_calls() -> None:
    tree = call(0x1010, 0x20, call(0x1010, 8, name="h", line=6), call(0x1020, 8, name="i", line=7))
    assert inlined_in(tree) == [[("g", [(0x10, 0x30)], 5, [("h", [(0x10, 0x18)], 6), ("i", [(0x20, 0x28)], 7)])]]


def test_lexical_blocks_are_looked_through_and_nested_functions_are_not() -> None:
    block = die(LEXICAL_BLOCK, {}, die(LEXICAL_BLOCK, {}, call(0x1010, 8)), call(0x1020, 8, name="h"))
    nested = die(SUBPROGRAM, {NAME: "nested"}, call(0x1030, 8))
    assert inlined_in(block, nested) == [[("g", [(0x10, 0x18)], 5), ("h", [(0x20, 0x28)], 5)]]


@pytest.mark.parametrize("low", [0x0FFC, 0x10FC, 0x1200])
def test_a_call_outside_its_function_is_left_out(low: int) -> None:
    assert inlined_in(call(low, 8, call(0x1010, 8))) == [[]]


def test_each_part_of_a_function_has_its_own_calls() -> None:
    parts = ((0x1000, 0x1020), (0x1080, 0x10A0))
    assert inlined_in(call(0x1000, 4), call(0x1090, 4), ranges=parts) == [
        [("g", [(0, 4)], 5)],
        [("g", [(0x90, 0x94)], 5)],
    ]


def test_a_call_across_adjacent_parts_is_in_both() -> None:
    """llvm-gsymutil 19 joins the ranges of the call first, which then lie in no part: it leaves the call out."""
    dwarf = Dwarf()
    ranges = dwarf.ranges((0x1010, 0x1020), (0x1020, 0x1028))
    g = die(INLINED, {NAME: "g", RANGES: ranges, CALL_LINE: 5})
    function = die(SUBPROGRAM, {NAME: "f", RANGES: dwarf.ranges((0x1000, 0x1020), (0x1020, 0x1040))}, g)
    found = functions_of(dwarf.unit(function).elf())
    assert [drawn(f.inlines) for f in found] == [[("g", [(0x10, 0x20)], 5)], [("g", [(0x20, 0x28)], 5)]]


def inlined_in_one_of_class(instance: dict[int, Any], *, line: int = 9) -> list[Any]:
    """What is inlined in a destructor with code, in a call of the abstract one in this line, which declares both."""
    declared = die(SUBPROGRAM, {NAME: "~S", DECL_LINE: 9}, label="declared")
    abstract = die(SUBPROGRAM, {SPECIFICATION: "declared", LINKAGE_NAME: "_ZN1SD2Ev"}, label="abstract")
    inlined = die(INLINED, {ORIGIN: "abstract", LOW_PC: 0x1004, HIGH_PC: 4, CALL_LINE: line})
    with_code = die(SUBPROGRAM, {**instance, LOW_PC: 0x1000, HIGH_PC: 16}, inlined)
    dwarf = Dwarf().unit(die(STRUCTURE, {NAME: "S"}, declared), abstract, with_code, language=C_PLUS_PLUS_14)
    (function,) = functions_of(dwarf.elf())
    return drawn(function.inlines)


@pytest.mark.parametrize("refers", [{SPECIFICATION: "declared"}, {ORIGIN: "abstract"}])
def test_a_destructor_that_another_of_its_class_calls_is_inlined(refers: dict[int, Any]) -> None:
    """As Clang and GCC describe it: what deletes the object calls what does not."""
    assert inlined_in_one_of_class({**refers, LINKAGE_NAME: "_ZN1SD0Ev"}) == [("_ZN1SD2Ev", [(4, 8)], 9)]


def test_the_rest_of_a_function_is_no_call() -> None:
    assert inlined_in_one_of_class({ORIGIN: "abstract"}) == []
    assert inlined_in_one_of_class({ORIGIN: "abstract"}, line=10) == [("_ZN1SD2Ev", [(4, 8)], 10)]
    same_text = {ORIGIN: "abstract", LINKAGE_NAME: "_ZN1SD2Ev"}
    assert inlined_in_one_of_class(same_text) == []


def test_nesting_ends_at_the_limit() -> None:
    tree = call(0x1000, 8)
    for _ in range(2 * MAX_INLINED):
        tree = call(0x1000, 8, tree)
    depth, (inlines,) = 0, [f.inlines for f in functions_of(Dwarf().unit(code(0x1000, 0x10, tree)).elf())]
    while inlines:
        depth, inlines = depth + 1, inlines[0].children
    assert depth == MAX_INLINED


# ---------------------------------------------------------------- the symbol table


@pytest.mark.parametrize(
    ("symbols", "found"),
    [
        ([Symbol("s", 0x1100, 8)], [(0x1000, 0x10, "f"), (0x1100, 8, "s")]),
        ([Symbol("s", 0x1000, 0x10)], [(0x1000, 0x10, "f")]),
        ([Symbol("s", 0x1000, 0x20)], [(0x1000, 0x10, "f"), (0x1000, 0x20, "s")]),
        ([Symbol("s", 0x1100, 8), Symbol("t", 0x1100, 8)], [(0x1000, 0x10, "f"), (0x1100, 8, "s"), (0x1100, 8, "t")]),
        ([Symbol("s", 0x0FF0, 0)], [(0x1000, 0x10, "f")]),
        ([Symbol("s", 0x1F00, 0)], [(0x1000, 0x10, "f"), (0x1F00, 0x100, "s")]),
        ([Symbol("s", 0x1100, 0), Symbol("t", 0x1F00, 8)], [(0x1000, 0x10, "f"), (0x1100, 0, "s"), (0x1F00, 8, "t")]),
        ([Symbol("s", 0x1100, 8, OBJECT)], [(0x1000, 0x10, "f")]),
        ([Symbol("s", 0x1100, 8, section=0)], [(0x1000, 0x10, "f")]),
        ([Symbol("", 0x1100, 8)], [(0x1000, 0x10, "f")]),
    ],
    ids=[
        "in a gap", "the same range", "another size", "two of a range", "not in code", "the last of size 0",
        "another of size 0", "no function", "of another file", "no name",
    ],
)  # fmt: skip
def test_symbols_add_what_the_debug_information_does_not_have(symbols: list[Symbol], found: list[Any]) -> None:
    assert names_of(Dwarf().unit(code(0x1000, 0x10)).elf(symbols)) == found


def test_without_debug_information_there_are_the_symbols() -> None:
    assert functions_of(Dwarf().elf([Symbol("s", 0x1000, 8)])) == [Function("s", 0x1000, 8)]


# ---------------------------------------------------------------- damage


def whole() -> Dwarf:
    dwarf = Dwarf()
    at = dwarf.lines([(0x1000, 0, 10), (0x1008, 1, 3)])
    dwarf.unit(code(0x1000, 0x20, call(0x1008, 8)), code(0x1020, 0x10), stmt_list=at)
    split = die(SUBPROGRAM, {NAME: "split", RANGES: dwarf.ranges((0x1100, 0x1110), (0x1200, 0x1210))})
    return dwarf.unit(split, stmt_list=dwarf.lines([(0x1100, 0, 1)]))


@pytest.mark.parametrize("section", [".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists"])
def test_what_is_cut_off_is_lost_and_said(section: str) -> None:
    sections = whole().sections
    second_unit = 4 + int.from_bytes(sections[".debug_info"][:4], "little")
    for size in range(len(sections[section])):
        dwarf = whole()
        dwarf.sections[section] = sections[section][:size]
        found, lost = read(dwarf.elf([Symbol("s", 0x1800, 4)]))
        assert found[-1].name == "s"
        assert all(error.record for error in lost)
        assert lost or (section, size) in ((".debug_info", 0), (".debug_info", second_unit))


def test_a_damaged_unit_costs_only_what_follows_in_it() -> None:
    dwarf = whole()
    info = bytearray(dwarf.sections[".debug_info"])
    second = info.index(b"f\0", info.index(b"f\0") + 2) - 1
    info[second] = 0x7F
    dwarf.sections[".debug_info"] = bytes(info)
    found, (error,) = read(dwarf.elf())
    assert [(f.start, f.name) for f in found] == [(0x1000, "f"), (0x1100, "split"), (0x1200, "split")]
    assert str(error) == f"the abbreviation 127 is not declared at offset {second} (.debug_info)"


def test_a_unit_whose_header_is_cut_off_costs_no_other() -> None:
    dwarf = whole()
    end = dwarf.add(".debug_info", struct.pack("<IHBBI", 8, 5, SKELETON, 8, 0))
    found, (error,) = read(dwarf.elf())
    assert [(f.start, f.name) for f in found] == [(0x1000, "f"), (0x1020, "f"), (0x1100, "split"), (0x1200, "split")]
    assert str(error).startswith("a number of 8 bytes lies beyond the end")
    assert error.offset == end + 12


def test_a_damaged_line_program_keeps_the_sequences_in_front() -> None:
    dwarf = Dwarf()
    at = dwarf.lines([(0x1000, 0, 10)], end=8)
    table = dwarf.sections[".debug_line"]
    bad = Dwarf()
    bad.sections[".debug_line"] = bytearray(table) + b"\0\x7f"
    bad.sections[".debug_line"][0] += 2
    bad.sections[".debug_line"] = bytes(bad.sections[".debug_line"])
    (function,), lost = read(bad.unit(code(0x1000, 8), stmt_list=at).elf())
    assert function.lines == [(0x1000, A, 10)]
    assert [error.record for error in lost] == [".debug_line"]


def test_no_count_of_files_is_believed() -> None:
    dwarf = Dwarf()
    at = dwarf.lines([(0x1000, 0, 10)], folders=[], files=[])
    table = dwarf.sections[".debug_line"]
    places = table.index(b"\x01\x01\x08\x00")
    dwarf.sections[".debug_line"] = table[: places + 3] + uleb(1 << 27) + table[places + 3 + 4 :]
    (function,), lost = read(dwarf.unit(code(0x1000, 8), stmt_list=at).elf())
    assert not function.lines
    assert [str(error) for error in lost] == [
        f"{1 << 27} names do not fit into the header at offset {places + 7} (.debug_line)"
    ]


def greedy_tables() -> Dwarf:
    """Units that have two tables in turn."""
    dwarf = Dwarf()
    tables = [dwarf.lines(program=b"\x01" * 20_000) for _ in range(2)]
    for nth in range(300):
        dwarf.unit(code(0x1000, 8), stmt_list=tables[nth % 2])
    return dwarf


def greedy_rows() -> Dwarf:
    dwarf = Dwarf()
    at = dwarf.lines([(0x1000 + n, 0, n) for n in range(0, 0x1000, 2)], end=0x1000)
    return dwarf.unit(*(code(0x1000, 0x1000) for _ in range(500)), stmt_list=at)


def greedy_ranges() -> Dwarf:
    dwarf = Dwarf()
    at = dwarf.ranges(*((0x1000, 0x1001) for _ in range(500)))
    return dwarf.unit(*(die(SUBPROGRAM, {NAME: "f", RANGES: at}) for _ in range(500)))


def greedy_names() -> Dwarf:
    dwarf = Dwarf()
    dwarf.add(".debug_str", b"x" * 20_000 + b"\0")
    return dwarf.unit(*(code(0x1000, 1, attributes={NAME: (STRP, n)}) for n in range(500)))


def greedy_paths() -> Dwarf:
    """Line tables of which each has a long folder in many paths."""
    dwarf = Dwarf(4)
    for _ in range(3):
        files = [(f"a{n}", 1) for n in range(2000)]
        rows = [(0x1000 + n, 1 + n, 1) for n in range(2000)]
        at = dwarf.lines(rows, folders=["/" + "x" * 4000], files=files, end=2000)
        dwarf.unit(code(0x1000, 2000), stmt_list=at, comp_dir="/src")
    return dwarf


@pytest.mark.parametrize("greedy", [greedy_paths, greedy_tables, greedy_rows, greedy_ranges, greedy_names])
def test_what_refers_to_the_same_bytes_again_and_again_is_stopped(greedy: Callable[[], Dwarf]) -> None:
    found, lost = read_once(greedy().elf())
    assert 0 < len(found) < 10_000
    assert {error.message for error in lost} == {"the debug information refers to the same bytes too often"}


def test_debug_information_in_another_file_is_said() -> None:
    found, (error,) = read(Dwarf().unit(kind=SKELETON, dwo_name="a.dwo").elf([Symbol("s", 0x1000, 4)]))
    assert (found, error.message) == (
        [Function("s", 0x1000, 4)], "the debug information of a unit is in another file, a.dwo",
    )  # fmt: skip


# ---------------------------------------------------------------- real binaries


@pytest.mark.skipif(SYMBOLIZER is None, reason="llvm-symbolizer-19 is not installed (Debian: llvm-19)")
@pytest.mark.parametrize("name", names("19/(pool|except|typed)-pie"))
def test_rows_and_inlined_calls_are_those_of_llvm_symbolizer(name: str, tmp_path: Path) -> None:
    """At the first byte of every row of every function with debug information."""
    path = tmp_path / "binary"
    path.write_bytes(content(name))
    with_lines = [f for f in functions_of(content(name)) if f.lines]
    addresses = [address for f in with_lines for address, _, _ in f.lines]
    ours = {address: frames_at(f, address) for f in with_lines for address, _, _ in f.lines}
    asked = "".join(f"{address:#x}\n" for address in addresses)
    command = [str(SYMBOLIZER), "--obj", str(path), "--no-demangle", "--output-style=LLVM"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    blocks = done.stdout.strip().split("\n\n")
    assert len(blocks) == len(addresses) > 100
    for address, block in zip(addresses, blocks, strict=True):
        words = block.splitlines()
        theirs = [(n, *p.rsplit(":", 2)[:2]) for n, p in zip(words[::2], words[1::2], strict=True)]
        assert [frame[1:] for frame in ours[address]] == [(file, int(line)) for _, file, line in theirs]
        # The symbols of functions that the compiler made twice have a suffix.
        both = zip(ours[address], theirs, strict=True)
        assert all(their[0].partition(".specialized")[0] == our[0] for our, their in both)


def frames_at(function: Function, address: int) -> list[tuple[str, str, int]]:
    """(name, source, line), the innermost first."""
    source, line = next((s, n) for at, s, n in reversed(list(function.lines)) if at <= address)
    frames = [(function.name, source, line)]
    calls = function.inlines
    while call := next((c for c in calls if any(b <= address < e for b, e in c.ranges)), None):
        frames = [(call.name, source, line), (frames[0][0], call.call_source, call.call_line), *frames[1:]]
        calls = call.children
    return frames
