"""GSYM files, built byte for byte: what each address is, what the functions are, and what is left of damaged files."""

import random
import struct
import tracemalloc
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from builders.gsym import (
    ADDRESS_SIZES,
    BIG,
    ELF_CONTENT,
    EXTERNAL,
    INLINE_INFO,
    INTERNAL,
    LINE_TABLE,
    LITTLE,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_STRTAB,
    VERSIONS,
    Body,
    Call,
    ElfPart,
    GsymFile,
    Row,
    Site,
    elf,
    sleb,
    uleb,
)
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.gsym.reader import CallSite, Gsym, Problem
from traceferry.symbolication.interface import Frames, Function, Inline

Stack = list[tuple[str, str, int]]
BASE = 0x1000
A, B = "src/a.c", "inc/b.h"
TOP = (1 << 64) - 1


def opened(file: GsymFile | bytes) -> Gsym:
    return Gsym(Source("app.gsym", memoryview(file if isinstance(file, bytes) else file.bytes())))


def stacks(frames: Frames) -> list[Stack]:
    """(name, source, line) of the frames of each address, the innermost first; "" is unknown."""
    texts = [*frames.texts, ""]
    rows = [(texts[n], texts[s], line) for n, s, line in zip(frames.name, frames.source, frames.line, strict=True)]
    return [rows[first:end] for first, end in zip(frames.first, frames.first[1:], strict=False)]


def told(file: GsymFile | bytes | Gsym, *addresses: int) -> list[Stack]:
    gsym = file if isinstance(file, Gsym) else opened(file)
    return stacks(gsym.lookup(np.array(addresses, np.uint64)))


def names_at(file: GsymFile | bytes | Gsym, *addresses: int) -> list[str]:
    """The functions at each address, the innermost first."""
    return [" ".join(name for name, _, _ in stack) for stack in told(file, *addresses)]


def places_at(file: GsymFile | bytes | Gsym, *addresses: int) -> list[str]:
    return [" ".join(f"{source}:{line}" for _, source, line in stack) for stack in told(file, *addresses)]


# ---------------------------------------------------------------- every shape

LAST: list[Row] = [(0x10F0, A, 70_000), (0x10F1, A, 3)]
LINES: list[Row] = [(0x1010, A, 10), (0x1014, A, 0), (0x1018, B, 300), (0x1018, B, 301), (0x1030, A, 11)]
INNER = Call("inner", [(0x1020, 0x1024)], B, 7)
OUTER = Call("outer", [(0x1018, 0x1028), (0x1034, 0x1036)], A, 12, [INNER])
TREE = [Call("first", [(0x1012, 0x1014)], A, 9), OUTER]
KINDS = list(product(VERSIONS, (LITTLE, BIG)))
SHAPES = list(product(VERSIONS, (LITTLE, BIG), ADDRESS_SIZES))


def everything(file: GsymFile) -> GsymFile:
    """A function with all there is, one with nothing, equal starts, a size of 0, merged functions, call sites."""
    merged = [Body("same", 0x1010, 0x30, [(0x1010, B, 50)]), Body("short", 0x1010, 4)]
    sites = [Site(0x14, ["puts"]), Site(0x18, ["a.*", "b"], EXTERNAL), Site(0x20, [], INTERNAL)]
    file.function("main", 0x1010, 0x30, LINES, TREE, merged, sites, extra=[(9, b"new"), (7, b"")])
    file.function("bare", 0x1050, 8)
    file.function("with lines", 0x1060, 4, [(0x1060, A, 1)]).function("longer", 0x1060, 16)
    return file.function("label", 0x1080, 0).function("last", 0x10F0, 4, LAST)


ANSWERS: dict[int, Stack] = {
    0xFFF: [],
    0x100F: [],
    0x1010: [("main", A, 10)],
    0x1013: [("first", A, 10), ("main", A, 9)],
    0x1014: [("main", A, 0)],
    0x1018: [("outer", B, 301), ("main", A, 12)],
    0x1023: [("inner", B, 301), ("outer", B, 7), ("main", A, 12)],
    0x1024: [("outer", B, 301), ("main", A, 12)],
    0x1030: [("main", A, 11)],
    0x1035: [("outer", A, 11), ("main", A, 12)],
    0x103F: [("main", A, 11)],
    0x1040: [],
    0x1057: [("bare", "", 0)],
    0x1058: [],
    0x1063: [("with lines", A, 1)],
    0x1064: [("longer", "", 0)],
    0x1070: [],
    0x1081: [("label", "", 0)],
    0x10EF: [("label", "", 0)],
    0x10F0: [("last", A, 70_000)],
    0x10F3: [("last", A, 3)],
    0x10F4: [],
    TOP: [],
}


@pytest.mark.parametrize(("version", "order", "address_size"), SHAPES)
def test_look_ups(version: int, order: str, address_size: int) -> None:
    file = everything(GsymFile(version, order, address_size))
    assert dict(zip(ANSWERS, told(file, *ANSWERS), strict=True)) == ANSWERS


def test_addresses_come_in_any_order_and_more_than_once() -> None:
    addresses = [*ANSWERS, *ANSWERS] * 2
    random.Random(1).shuffle(addresses)
    assert told(everything(GsymFile()), *addresses) == [ANSWERS[address] for address in addresses]


def test_no_address() -> None:
    frames = opened(everything(GsymFile())).lookup(np.array([], np.uint64))
    assert (frames.first.tolist(), len(frames.name), len(frames.start)) == ([0], 0, 0)


def test_the_function_that_holds_an_address() -> None:
    frames = opened(everything(GsymFile())).lookup(np.array([0x1065, 0x1023, 0x1040, 0x1081], np.uint64))
    assert frames.start.tolist() == [0x1060, 0x1010, 0, 0x1080]
    assert frames.size.tolist() == [16, 0x30, 0, 0]


@pytest.mark.parametrize(("version", "order"), KINDS)
def test_functions_whole(version: int, order: str) -> None:
    inner = Inline("inner", ((0x1020, 0x1024),), B, 7)
    outer = Inline("outer", ((0x1018, 0x1028), (0x1034, 0x1036)), A, 12, (inner,))
    assert list(opened(everything(GsymFile(version, order))).functions()) == [
        Function("main", 0x1010, 0x30, LINES, (Inline("first", ((0x1012, 0x1014),), A, 9), outer)),
        Function("same", 0x1010, 0x30, [(0x1010, B, 50)], ()),
        Function("short", 0x1010, 4, [], ()),
        Function("bare", 0x1050, 8, [], ()),
        Function("with lines", 0x1060, 4, [(0x1060, A, 1)], ()),
        Function("longer", 0x1060, 16, [], ()),
        Function("label", 0x1080, 0, [], ()),
        Function("last", 0x10F0, 4, LAST, ()),
    ]


@pytest.mark.parametrize(("version", "order"), KINDS)
def test_what_a_file_says_of_itself(version: int, order: str) -> None:
    gsym = opened(GsymFile(version, order, base=0x400000, uuid=bytes(range(20))))
    assert (gsym.version, gsym.little_endian, gsym.base) == (version, order == LITTLE, 0x400000)
    assert gsym.build_id == "000102030405060708090a0b0c0d0e0f10111213"
    assert (gsym.path, gsym.name, told(gsym, 0x400000)) == ("app.gsym", "app.gsym", [[]])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("alignment", [1, 2, 3, 4, 8])
def test_infos_at_any_offset(version: int, alignment: int) -> None:
    file = everything(GsymFile(version, alignment=alignment))
    assert told(file, *ANSWERS) == list(ANSWERS.values())


@pytest.mark.parametrize("deltas", [(-4, 10), (0, 0), (-300, -290), (5, 255), (-128, 127)])
def test_special_opcodes_of_any_range(deltas: tuple[int, int]) -> None:
    file = everything(GsymFile(deltas=deltas))
    assert told(file, *ANSWERS) == list(ANSWERS.values())


def test_addresses_at_the_end_of_the_address_space() -> None:
    file = GsymFile(base=TOP - 0xFF).function("top", TOP - 15, 16, [(TOP - 15, A, 1), (TOP, A, 2)])
    assert places_at(file, TOP - 16, TOP - 15, TOP - 1, TOP) == ["", f"{A}:1", f"{A}:1", f"{A}:2"]


@pytest.mark.parametrize("version", VERSIONS)
def test_sizes_of_the_parts(version: int) -> None:
    file = everything(GsymFile(version))
    sizes = opened(file).sizes()
    word = 4 if version == 1 else 8
    assert sum(sizes.values()) == len(file.bytes())
    assert sizes["address table"] == 6 * 4
    assert sizes["info offsets"] == 6 * word
    assert sizes["file table"] == 4 + 3 * 2 * word
    assert sizes["string table"] == len(file.strings)
    assert sizes["line tables"] == sum(
        len(file.line_table(rows[0][0], rows)) for rows in (LINES, [(0x1060, A, 1)], LAST)
    )
    assert sizes["call sites"] == 4 + 3 * 13 + 3 * word


# ---------------------------------------------------------------- lines


def rows(*lines: Row) -> GsymFile:
    return GsymFile().function("f", 0x1010, 16, list(lines))


def test_of_rows_at_one_address_the_last_counts() -> None:
    assert places_at(rows((0x1010, A, 1), (0x1010, B, 2), (0x1012, A, 3)), 0x1010, 0x1011) == [f"{B}:2"] * 2


def test_an_address_before_the_first_row_has_the_function_alone() -> None:
    file = GsymFile().function("f", 0x1010, 16, [(0x1014, A, 1)], [Call("g", [(0x1010, 0x1018)])])
    assert told(file, 0x1012, 0x1014) == [[("f", "", 0)], [("g", A, 1), ("f", A, 1)]]


def test_without_a_line_table_the_inline_tree_is_not_asked() -> None:
    assert names_at(GsymFile().function("f", 0x1010, 16, None, [Call("g", [(0x1010, 0x1018)])]), 0x1012) == ["f"]


def test_a_row_of_file_0_is_none() -> None:
    assert told(rows((0x1010, A, 1), (0x1012, "", 5)), 0x1011, 0x1012) == [[("f", A, 1)], [("f", "", 5)]]


@pytest.mark.parametrize(("directory", "path"), [("C:\\src", "C:\\src\\a.c"), ("C:\\src/x", "C:\\src/x/a.c")])
def test_windows_paths_keep_their_separator(directory: str, path: str) -> None:
    assert places_at(rows((0x1010, f"{directory}/a.c", 1)), 0x1010) == [f"{path}:1"]


def test_lines_beyond_31_bits_are_unknown() -> None:
    table = sleb(0) + sleb(0) + uleb(0xFFFFFFFF) + bytes([2, 0, 3, 2, 2, 4, 0])
    file = rows_of(table)
    assert [row[2] for row in next(opened(file).functions()).lines] == [0, 1]
    assert places_at(file, 0x1011, 0x1014) == [f"{A}:0", f"{A}:1"]


# ---------------------------------------------------------------- inlined calls


def tree(*calls: Call) -> GsymFile:
    return GsymFile().function("f", 0x1010, 0x100, [(0x1010, A, 99)], calls)


@pytest.mark.parametrize(
    ("calls", "address", "expected"),
    [
        ([Call("g", [(0x1020, 0x1030)])], 0x101F, "f"),
        ([Call("g", [(0x1020, 0x1030)])], 0x1020, "g f"),
        ([Call("g", [(0x1020, 0x1030)])], 0x1030, "f"),
        ([Call("g", [(0x1020, 0x1020)])], 0x1020, "f"),
        ([Call("g", [(0x1020, 0x1030), (0x1050, 0x1060)])], 0x105F, "g f"),
        # Of siblings that hold an address the first does, with its children.
        ([Call("g", [(0x1020, 0x1030)]), Call("h", [(0x1020, 0x1040)])], 0x1028, "g f"),
        ([Call("g", [(0x1020, 0x1030)]), Call("h", [(0x1020, 0x1040)])], 0x1038, "h f"),
        (
            [Call("g", [(0x1020, 0x1030)]), Call("h", [(0x1020, 0x1040)], A, 1, [Call("i", [(0x1020, 0x1040)])])],
            0x1028,
            "g f",
        ),
        # A child holds nothing that its parent does not.
        ([Call("g", [(0x1020, 0x1030)], A, 1, [Call("h", [(0x1020, 0x1040)])])], 0x1028, "h g f"),
        ([Call("g", [(0x1020, 0x1030)], A, 1, [Call("h", [(0x1020, 0x1040)])])], 0x1038, "f"),
        # Children count from the first range of their parent.
        ([Call("g", [(0x1020, 0x1030), (0x1050, 0x1060)], A, 1, [Call("h", [(0x1058, 0x1059)])])], 0x1058, "h g f"),
        # Without a call file it makes no frame, and its children do.
        ([Call("g", [(0x1020, 0x1030)], "")], 0x1028, "f"),
        ([Call("g", [(0x1020, 0x1030)], "", 0, [Call("h", [(0x1020, 0x1030)])])], 0x1028, "h f"),
    ],
)
def test_inlined_calls(calls: list[Call], address: int, expected: str) -> None:
    assert names_at(tree(*calls), address) == [expected]


def nested(depth: int) -> Call:
    call = Call(f"f{depth}", [(0x1020, 0x1030)])
    for level in reversed(range(1, depth)):
        call = Call(f"f{level}", [(0x1020, 0x1030)], A, level, [call])
    return call


def test_128_calls_can_be_inlined_into_each_other_and_no_more() -> None:
    assert names_at(tree(nested(128)), 0x1028) == [" ".join([*(f"f{n}" for n in reversed(range(1, 129))), "f"])]
    too_deep = opened(tree(nested(129)).function("g", 0x2000, 4))
    assert names_at(too_deep, 0x1028, 0x1010, 0x2000) == ["", "", "g"]
    assert [problem.what for problem in too_deep.problems] == ["its inlined calls are nested too deep"]


RANGES = st.lists(st.tuples(st.integers(0, 24), st.integers(0, 6)), min_size=1, max_size=3).map(
    lambda pairs: [(0x1010 + begin, 0x1010 + begin + size) for begin, size in sorted(pairs)]
)


def calls_from(children: st.SearchStrategy[list[Call]]) -> st.SearchStrategy[list[Call]]:
    """Children lie behind the first range's start, as ranges are unsigned numbers."""
    return st.lists(
        st.builds(Call, st.sampled_from("gh"), RANGES, st.sampled_from([A, ""]), st.integers(0, 300), children).filter(
            lambda call: all(begin >= call.ranges[0][0] for c in call.children for begin, _ in c.ranges)
        ),
        max_size=3,
    )


def walked(calls: tuple[Inline, ...], address: int) -> Iterator[Inline]:
    """The calls that are inlined around an address, the outermost first."""
    for call in calls:
        if any(begin <= address < end for begin, end in call.ranges):
            yield call
            yield from walked(call.children, address)
            return


@examples(150)
@given(
    st.lists(st.tuples(st.integers(0, 8), st.sampled_from([A, B]), st.integers(0, 400)), max_size=8),
    st.recursive(st.just([]), calls_from, max_leaves=12),
)
def test_look_ups_say_what_the_whole_function_says(steps: list[Row], calls: list[Call]) -> None:
    lines, now = [], 0x1010
    for step, path, line in steps:
        now += step
        lines.append((now, path, line))
    gsym = opened(GsymFile().function("f", 0x1010, 40, lines, calls))
    (function,) = gsym.functions()
    addresses = range(0x1010, 0x1010 + 40)
    for address, stack in zip(addresses, told(gsym, *addresses), strict=True):
        row = next((row for row in reversed(list(function.lines)) if row[0] <= address), None)
        chain = [call for call in walked(tuple(function.inlines), address) if call.call_source] if row else []
        names = ["f", *(call.name for call in chain)]
        places = [*((call.call_source, call.call_line) for call in chain), row[1:] if row else ("", 0)]
        assert stack == [(name, *place) for name, place in reversed(list(zip(names, places, strict=True)))]


# ---------------------------------------------------------------- merged functions, call sites


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (0x1012, [[("first", A, 10), ("main", A, 9)], [("same", B, 50)], [("short", "", 0)]]),
        (0x1030, [[("main", A, 11)], [("same", B, 50)]]),
        (0x1050, [[("bare", "", 0)]]),
        (0x1040, []),
        (0x10, []),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_merged_functions(version: int, address: int, expected: list[Stack]) -> None:
    assert [stacks(f)[0] for f in opened(everything(GsymFile(version))).merged(address)] == expected


@pytest.mark.parametrize(("version", "order"), KINDS)
def test_call_sites(version: int, order: str) -> None:
    gsym = opened(everything(GsymFile(version, order)))
    assert gsym.call_sites(0x1010) == gsym.call_sites(0x103F) == [
        CallSite(0x1024, 0, ("puts",)),
        CallSite(0x1028, EXTERNAL, ("a.*", "b")),
        CallSite(0x1030, INTERNAL, ()),
    ]  # fmt: skip
    assert gsym.call_sites(0x1050) == gsym.call_sites(0x1040) == []


# ---------------------------------------------------------------- in ELF files


@pytest.mark.parametrize("name", [".gsym", "__gsym"])
@pytest.mark.parametrize(("version", "order"), KINDS)
@pytest.mark.parametrize("bits", [32, 64])
def test_a_section_of_an_elf_file(name: str, bits: int, order: str, version: int) -> None:
    parts = [
        ElfPart(".text", SHT_PROGBITS, b"\x90" * 21),
        ElfPart(".bss", SHT_NOBITS, bytes(99)),
        ElfPart(name, SHT_PROGBITS, everything(GsymFile(version, order)).bytes()),
    ]
    assert told(elf(*parts, order=order, bits=bits), *ANSWERS) == list(ANSWERS.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_string_table_of_the_elf_file(version: int) -> None:
    """Its offset is one in the ELF file then."""
    file = GsymFile(version)
    for text in ("other", "main", "outer", "src", "inc"):
        file.string(text)
    everything(file).bytes()
    file.strings_at = ELF_CONTENT
    parts = [
        ElfPart(".strtab", SHT_STRTAB, bytes(file.strings)),
        ElfPart(".gsym", SHT_PROGBITS, file.bytes()),
    ]
    gsym = opened(elf(*parts))
    assert told(gsym, *ANSWERS) == list(ANSWERS.values())
    assert gsym.sizes()["string table"] == 0


@pytest.mark.parametrize(
    "data",
    [
        elf(ElfPart(".text", SHT_PROGBITS, b"\x90" * 64)),
        elf(ElfPart(".gsym", SHT_PROGBITS, b"")),
        elf(ElfPart(".gsym", SHT_NOBITS, GsymFile().bytes())),
        elf(ElfPart(".gsym", SHT_PROGBITS, GsymFile().bytes()))[:80],
        b"\x7fELF",
        b"\x7fELF\x02\x01\x01" + bytes(60),
    ],
)
def test_elf_files_without_gsym_data(data: bytes) -> None:
    with pytest.raises(FormatError):
        opened(data)


# ---------------------------------------------------------------- headers that are none


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


V1, V2 = (everything(GsymFile(version)).bytes() for version in VERSIONS)
HUGE = struct.pack("<I", 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("data", "message", "offset"),
    [
        (b"", "wrong magic number", 0),
        (b"GSY", "wrong magic number", 0),
        (b"ELF?" + V1[4:], "wrong magic number", 0),
        (V1[:47], "ends before its header", 0),
        (changed(V1, 4, b"\3\0"), "version 3 is not known", 4),
        (changed(V1, 6, b"\3"), "address offsets of 3 bytes", 6),
        (changed(V1, 7, b"\x15"), "a uuid of 21 bytes", 7),
        (changed(V1, 16, HUGE), "ends before its file table", len(V1)),
        (changed(V1, 20, HUGE), "ends before its string table", len(V1)),
        (changed(V1, 24, HUGE), "ends before its string table", None),
        (changed(V1, 48 + 6 * 8, HUGE), "ends before its file table", 100),
        (V2[:19], "ends before its header", 0),
        (changed(V2, 7, b"\1"), "encoding 1", 7),
        (changed(V2, 16, HUGE), "where 17179869180 are needed", None),
        (changed(V2, 20, b"\0"), "no section of function infos", None),
        (V2[:50], "ends before its sections", 40),
        (changed(V2, 44, HUGE), "ends before its address offsets", None),
    ],
)
def test_headers_that_are_none(data: bytes, message: str, offset: int | None) -> None:
    with pytest.raises(FormatError, match=message) as raised:
        opened(data)
    assert raised.value.path == "app.gsym"
    assert offset in (None, raised.value.offset)


# ---------------------------------------------------------------- damaged infos


def rows_of(table: bytes) -> GsymFile:
    """f with that line table, and g, which is good."""
    file = GsymFile().function("f", 0x1010, 16, extra=[(LINE_TABLE, table)]).function("g", 0x1100, 4)
    file.file(A)
    return file


def tree_of(tree: bytes) -> GsymFile:
    """f with that inline tree, and g, which is good."""
    file = GsymFile().function("f", 0x1010, 16, [(0x1010, A, 1)], extra=[(INLINE_INFO, tree)])
    return file.function("g", 0x1100, 4)


ROOT = uleb(1) + uleb(0) + uleb(16)
ENDLESS = b"\xff" * 11


@pytest.mark.parametrize(
    ("file", "what"),
    [
        (rows_of(b""), None),
        (rows_of(b"\0\0"), "ends too early"),
        (rows_of(b"\0\0\1"), "ends too early"),
        (rows_of(b"\0\0\1\2"), "ends too early"),
        (rows_of(ENDLESS + b"\0\0\0"), "a number in it does not end"),
        (rows_of(b"\0\0\1\3" + ENDLESS), "a number in it does not end"),
        (rows_of(b"\0\x7f\1\x05\0"), "no range of lines"),
        (rows_of(b"\0\0\1\1\x09\2\0\0"), "outside the file table"),
        (tree_of(b"\0"), None),
        (tree_of(ROOT), "ends too early"),
        (tree_of(uleb(1 << 40)), "ends too early"),
        (tree_of(ENDLESS), "a number in it does not end"),
        (tree_of(ROOT + b"\0" + b"\xff\xff\0\0" + b"\0\0"), "outside the string table"),
        (tree_of(ROOT + b"\0" + b"\1\0\0\0" + b"\x09\0"), "outside the file table"),
        (tree_of(ROOT + b"\1" + b"\1\0\0\0" + b"\0\0"), "ends too early"),
    ],
)
def test_a_damaged_info_loses_its_function(file: GsymFile, what: str | None) -> None:
    gsym = opened(file)
    lost = what is not None
    assert names_at(gsym, 0x101F, 0x1100) == ["" if lost else "f", "g"]
    assert [f.name for f in gsym.functions()] == ["g"] if lost else ["f", "g"]
    assert [problem.what for problem in gsym.problems if what is None or what not in problem.what] == []
    assert len(gsym.problems) == lost


def info_at(data: bytes, entry: int) -> int:
    """Of a file of version 1 with six functions."""
    return int(struct.unpack_from("<I", data, 48 + 6 * 4 + 4 * entry)[0])


BARE, MAIN = info_at(V1, 1), info_at(V1, 0)


@pytest.mark.parametrize(
    ("data", "offset", "what"),
    [
        (changed(V1, 48 + 6 * 4 + 4, HUGE), 48 + 6 * 4 + 4, "its offset is outside the function infos"),
        (changed(V1, BARE + 4, bytes(4)), BARE, "it has no name"),
        (changed(V1, BARE + 4, HUGE), BARE, "a string in it is outside the string table"),
        (changed(V1, BARE + 12, HUGE), BARE, "it ends too early"),
    ],
)
def test_the_rest_is_kept(data: bytes, offset: int, what: str) -> None:
    gsym = opened(data)
    assert names_at(gsym, 0x1010, 0x1050, 0x1060) == ["main", "", "with lines"]
    assert gsym.problems == [Problem(offset, what)]
    assert [f.name for f in gsym.functions()] == ["main", "same", "short", "with lines", "longer", "label", "last"]


def test_merged_functions_that_end_too_early() -> None:
    gsym = opened(GsymFile().function("f", 0x1010, 16, extra=[(3, struct.pack("<III", 9, 0, 99))]))
    assert (names_at(gsym, 0x1010), [f.name for f in gsym.functions()]) == (["f"], ["f"])
    assert {problem.what for problem in gsym.problems} == {"it ends too early"}


@pytest.mark.parametrize("sites", [b"\1\0\0\0", struct.pack("<IQBI", 1, 4, 0, 1 << 30), b"\1"])
def test_call_sites_that_end_too_early(sites: bytes) -> None:
    gsym = opened(GsymFile().function("f", 0x1010, 16, extra=[(4, sites)]))
    assert gsym.call_sites(0x1010) == []
    assert names_at(gsym, 0x1010) == ["f"]


def test_infos_that_lie_over_each_other_are_not_decoded_without_an_end() -> None:
    """Every function has the info of the first, which is as long as all else."""
    file = GsymFile().function("long", 0x1010, 1, extra=[(9, bytes(20_000))])
    for nth in range(1, 500):
        file.function("f", 0x1010 + nth, 1)
    data, table = file.bytes(), 48 + 4 * 500
    gsym = opened(changed(data, table, data[table : table + 4] * 500))
    assert 10 < len(list(gsym.functions())) < 100
    assert 10 < names_at(gsym, *range(0x1010, 0x1010 + 500)).count("long") < 100
    assert [problem.what for problem in gsym.problems] == ["the function infos lie over each other"]


def test_strings_that_lie_over_each_other_do_not_make_texts_without_an_end() -> None:
    """A name ends after 64 KiB, and all together after 16 MiB, of a file that is small."""
    file = GsymFile()
    file.strings += b"x" * 66_000
    for nth in range(400):
        file.string_at(f"f{nth}", 1 + nth)
        file.function(f"f{nth}", 0x1010 + nth, 1)
    gsym = opened(file)
    lengths = [len(name) for name in names_at(gsym, *range(0x1010, 0x1010 + 400))]
    assert lengths == [1 << 16] * 256 + [0] * 144
    assert [problem.what for problem in gsym.problems] == ["the strings lie over each other"]


# ---------------------------------------------------------------- any functions


@st.composite
def calls_in(draw: st.DrawFn, begin: int, end: int, depth: int = 0) -> list[Call]:
    """Calls that may lie over each other, and reach beyond what is around them."""
    calls = []
    for _ in range(draw(st.integers(0, 3 - depth))):
        bounds = st.tuples(st.integers(begin, end), st.integers(0, 8)).map(lambda r: (r[0], r[0] + r[1]))
        ranges = sorted(draw(st.lists(bounds, min_size=1, max_size=2)))
        children = draw(calls_in(ranges[0][0], end, depth + 1)) if ranges[0][0] < end else []
        file = draw(st.sampled_from([A, B, ""]))
        calls.append(Call(draw(st.sampled_from("xyz")), ranges, file, draw(st.integers(0, 5)), children))
    return calls


@st.composite
def bodies(draw: st.DrawFn) -> list[Body]:
    """Functions that may start together, reach into the next, and have no size."""
    found: list[Body] = []
    start = 0x1010
    for nth in range(draw(st.integers(0, 5))):
        start += draw(st.integers(0, 12))
        size = draw(st.integers(0, 16))
        rows = st.tuples(st.integers(start, start + 16), st.sampled_from([A, B]), st.integers(0, 90_000))
        lines = draw(st.none() | st.lists(rows, max_size=5).map(lambda rows: sorted(rows, key=lambda row: row[0])))
        found.append(Body(f"f{nth}", start, size, lines, draw(calls_in(start, start + max(size, 1)))))
    return found


def looked_up(functions: list[Body], address: int) -> Stack:
    """What the format says, for one address."""
    starts = [function.start for function in functions]
    together = functions[bisect_left(starts, starts[bisect_right(starts, address) - 1]) :] if starts else []
    holding = (f for f in together if f.start == together[0].start and (f.size == 0 or address - f.start < f.size))
    function = next(holding, None) if starts and starts[0] <= address else None
    if function is None:
        return []
    rows = function.lines or []
    nth = bisect_right([row[0] for row in rows], address)
    if not nth:
        return [(function.name, "", 0)]
    # The root of the tree is the function.
    calls = (function.inlines or []) if address < function.start + max(function.size, 1) else []
    names, places = [function.name], []
    while call := next((c for c in calls if any(begin <= address < end for begin, end in c.ranges)), None):
        calls = call.children
        if call.file:
            names.append(call.name)
            places.append((call.file, call.line))
    return [(name, *place) for name, place in zip(names, [*places, rows[nth - 1][1:]], strict=True)][::-1]


@examples(100)
@given(bodies(), st.sampled_from(SHAPES))
def test_look_ups_are_those_of_plain_python(functions: list[Body], shape: tuple[int, str, int]) -> None:
    file = GsymFile(*shape)
    for function in functions:
        file.function(*function)
    addresses = range(0x1000, 0x1080)
    assert told(file, *addresses) == [looked_up(functions, address) for address in addresses]
    tables = [(f.start, f.size, f.name, list(f.lines or [])) for f in functions]
    assert [(f.start, f.size, f.name, list(f.lines)) for f in opened(file).functions()] == tables


# ---------------------------------------------------------------- any bytes


def use(data: bytes) -> None:
    """Everything that can be asked."""
    try:
        gsym = opened(data)
    except FormatError:
        return
    told(gsym, *ANSWERS)
    for function in gsym.functions():
        gsym.merged(function.start)
        gsym.call_sites(function.start)
    gsym.sizes()
    assert all(0 <= problem.offset <= len(data) and problem.what for problem in gsym.problems)


@pytest.mark.parametrize(("version", "order"), KINDS)
def test_files_cut_anywhere(version: int, order: str) -> None:
    data = everything(GsymFile(version, order)).bytes()
    for size in range(len(data)):
        use(data[:size])


@examples(300)
@given(
    st.sampled_from([V1, V2, elf(ElfPart(".gsym", SHT_PROGBITS, V1))]),
    st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_files_with_any_bytes_changed(data: bytes, changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(data)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    use(bytes(damaged))


@pytest.mark.parametrize("at", [*range(16, 28), *range(96, 100)])
def test_no_count_is_believed(at: int) -> None:
    tracemalloc.start()
    use(changed(V1, at, b"\x7f"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 22
