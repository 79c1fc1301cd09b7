"""GSYM files that are written: byte by byte, as our reader reads them, and as llvm-gsymutil does.

llvm-gsymutil 19 also makes such files from ELF files. What ours say otherwise, and why:

- Of several symbols of the same bytes it keeps any, by an unstable sort: two runs differ. Ours keep the last.
- Functions without a linkage name in the debug information have that of the symbol (`test_dwarf.py`).
"""

import io
import random
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import plain_gsym
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_gsym import MAX_INLINED
from recordings import content, names

from traceferry.common.errors import UsageError
from traceferry.files.source import Source, open_source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.build_id import build_id_of
from traceferry.symbolication.dwarf.functions import functions
from traceferry.symbolication.function_table import table_of
from traceferry.symbolication.gsym._writing import Infos
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.gsym.writer import Tables, Written, write
from traceferry.symbolication.interface import Function, Inline

PROGRAM = shutil.which("llvm-gsymutil-19")
needs_program = pytest.mark.skipif(PROGRAM is None, reason="llvm-gsymutil-19 is not installed (Debian: llvm-19)")
UUID = bytes(range(20))
A, B = "/src/a.c", "/src/b.h"


def written(*functions: Function, base: int = 0, uuid: bytes = UUID, version: int = 1, big: bool = False) -> bytes:
    out = io.BytesIO()
    report = write(out, functions, uuid=uuid, base=base, version=version, big=big)
    assert report.n_bytes == len(out.getvalue())
    return out.getvalue()


def reread(data: bytes) -> list[Function]:
    gsym = Gsym(Source("app.gsym", memoryview(data)))
    found = list(gsym.functions())
    assert gsym.problems == []
    return found


def stays(*given: Function) -> list[str]:
    """The names of the functions in the file."""
    return [f.name for f in reread(written(*given))]


# ---------------------------------------------------------------- the file


FILE_V1 = """
4d595347 0100 04 04 0010000000000000 01000000 4c000000 0e000000     magic, version, sizes, base, addresses, strings
deadbeef 00000000 00000000 00000000 00000000                        uuid
10000100                                                            address offsets
5c000000                                                            info offsets
02000000 00000000 00000000 03000000 08000000                        files
00 6600 2f73726300 612e6300 6700 0000                               strings: f, /src, a.c, g
20000000 01000000                                                   size, name
01000000 07000000                                                   line table: 0 to 2 lines, from line 10
00 02 0a 04 1c 12 00                                                  a row, 8 bytes, 4 bytes and 2 lines
02000000 15000000                                                   inline tree
01 00 20 01 01000000 00 00                                            f itself, which has children
01 08 08 00 0c000000 01 0b 00                                         g, of file 1, line 11; no more children
00000000 00000000                                                   end of list
"""


def test_a_file_of_version_1() -> None:
    """Ranges of inlined calls count from the first range of what they are in."""
    g = Inline("g", ((0x11018, 0x11020),), A, 11)
    f = Function("f", 0x11010, 0x20, [(0x11010, A, 10), (0x11018, A, 10), (0x1101C, A, 12)], [g])
    data = written(f, base=0x1000, uuid=bytes.fromhex("deadbeef"))
    assert data.hex() == "".join(line.partition("   ")[0] for line in FILE_V1.splitlines()).replace(" ", "")


CODINGS = [
    pytest.param(version, big, base, uuid, id=f"version {version}, {'big' if big else 'little'}, addresses of {size}")
    for version in (1, 2)
    for big in (False, True)
    for size, base, uuid in ((1, 0x1000, UUID), (2, 0xF00, b""), (4, 0, UUID[:16]))
]


@pytest.mark.parametrize(("version", "big", "base", "uuid"), CODINGS)
def test_what_is_written_is_read(version: int, big: bool, base: int, uuid: bytes) -> None:
    given = [
        Function("size 0", 0x1000, 0, []),
        Function("no lines", 0x1004, 4, []),
        Function("lines", 0x1008, 8, [(0x1008, A, 1), (0x1009, B, 1_000_000), (0x100C, "", 0), (0x100E, "plain", 2)]),
        Function("inlined", 0x1010, 0x30, [(0x1010, A, 7)], (tree(3), Inline("g", ((0x1030, 0x1038),), B, 1 << 30))),
        Function("last", 0x10FF, (1 << 32) - 1, [(0x10FF, "/x", 9)]),
    ]
    if base == 0:
        given.append(Function("far", 0xFFFF_FFFF, 1, []))
    data = written(*reversed(given), base=base, uuid=uuid, version=version, big=big)
    gsym = Gsym(Source("app.gsym", memoryview(data)))
    assert (gsym.version, gsym.little_endian, gsym.base, gsym.build_id) == (version, not big, base, uuid.hex())
    assert reread(data) == given


def tree(depth: int) -> Inline:
    children = (tree(depth - 1),) if depth > 1 else ()
    return Inline(f"call {depth}", ((0x1010, 0x1018), (0x1020, 0x1028)), A, depth, children)


@pytest.mark.parametrize(("start", "size"), [(0xFF, 1), (0x100, 2), (0xFFFF, 2), (0x10000, 4), (1 << 32, 8)])
def test_address_offsets_are_as_small_as_can_be(start: int, size: int) -> None:
    data = written(Function("f", start, 1))
    assert data[6] == size
    assert [f.start for f in reread(data)] == [start]


def test_texts_and_paths_are_there_once() -> None:
    lines = [(0x1000, A, 1), (0x1004, B, 1)]
    data = written(*(Function("same", 0x1000 + n, 0x10, [(a + n, s, k) for a, s, k in lines]) for n in range(4)))
    assert [data.count(text) for text in (b"same\0", b"/src\0", b"a.c\0", b"b.h\0")] == [1, 1, 1, 1]
    assert len(reread(data)) == 4


def test_no_function_is_a_file_too() -> None:
    assert [reread(written(version=version)) for version in (1, 2)] == [[], []]


def test_a_long_build_id_fits_into_version_2_only() -> None:
    assert Gsym(Source("app", memoryview(written(uuid=bytes(32), version=2)))).build_id == "00" * 32
    with pytest.raises(UsageError, match="a build id of 32 bytes does not fit into GSYM version 1"):
        written(uuid=bytes(32))


# ---------------------------------------------------------------- which functions


F, LINED = Function("f", 0x1000, 8), Function("lined", 0x1000, 8, [(0x1000, A, 1)])


@pytest.mark.parametrize(
    ("given", "stay"),
    [
        ([F, Function("g", 0x1000, 8)], ["g"]),
        ([LINED, F], ["lined"]),
        ([F, LINED], ["lined"]),
        ([Function("long", 0x1000, 16), F], ["f", "long"]),
        ([F, Function("inside", 0x1004, 2)], ["f", "inside"]),
        ([F, Function("empty", 0x1000, 0)], ["f"]),
        ([F, Function("empty", 0x1004, 0)], ["f", "empty"]),
        ([Function("a", 0x1000, 0), Function("b", 0x1000, 0)], ["b"]),
    ],
    ids=[
        "equal: the last", "the one with lines", "the one with lines, again", "another size", "overlapping",
        "size 0, at the start of another", "size 0, inside another", "size 0, both",
    ],
)  # fmt: skip
def test_functions_of_the_same_bytes(given: list[Function], stay: list[str]) -> None:
    assert stays(*given) == stay


def test_what_the_format_cannot_hold_is_counted() -> None:
    given = [F, Function("", 0x1000, 4), Function("below", 0xFFF, 1), Function("huge", 0x1000, 1 << 32)]
    out = io.BytesIO()
    assert write(out, given, uuid=b"", base=0x1000) == Written(1, 3, len(out.getvalue()))
    assert [f.name for f in reread(out.getvalue())] == ["f"]


# ---------------------------------------------------------------- lines


def line_table(rows: list[tuple[int, int, int]]) -> str:
    """The bytes of the line table of a function with rows of the first and the second file."""
    size = rows[-1][0] + 1
    lines = [(0x1000 + at, {1: A, 2: B}[file], line) for at, file, line in rows]
    table = table_of([Function("first", 0, 1, [(0, A, 1)]), Function("f", 0x1000, size, lines)])
    infos = Infos(table, Tables("<I"), 4, False)
    (at, _) = infos.write(np.array([1, 0])) if rows[0][1] == 1 else infos.write(np.array([0, 1]))[::-1]
    (length,) = struct.unpack_from("<I", infos.content(), at + 12)
    return infos.content()[at + 16 : at + 16 + length].hex()


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ([], (0, 0)),
        ([3], (3, 3)),
        ([-7, 7], (-7, 7)),
        ([-8, 7], (-8, -8)),
        ([-100, 1, 2, 1, 100, 15, 16], (1, 15)),
    ],
)
def test_special_opcodes_reach_most_of_the_changes(changes: list[int], lines: tuple[int, int]) -> None:
    numbers = accumulate([1000, *changes])
    table = line_table([(at, 1, line) for at, line in enumerate(numbers)])
    assert table.startswith("".join(plain_gsym.sleb(line).hex() for line in lines))
    assert plain_gsym.special_lines(changes) == lines


@pytest.mark.parametrize(
    ("rows", "table"),
    [
        ([(0, 1, 10)], "00 00 0a 04 00"),
        ([(0, 2, 10)], "00 00 0a 0102 04 00"),
        ([(0, 1, 10), (1, 1, 11), (2, 1, 10)], "7f 01 0a 05 09 07 00"),
        ([(0, 1, 10), (300, 1, 10)], "00 00 0a 04 02ac02 00"),
        ([(0, 1, 10), (1, 1, 1000), (2, 1, 10)], "a278 a278 0a 0200 03de07 0201 05 00"),
    ],
    ids=["one row", "another file", "special opcodes", "far address", "far line"],
)
def test_line_tables(rows: list[tuple[int, int, int]], table: str) -> None:
    assert line_table(rows) == table.replace(" ", "")


def test_rows_begin_with_the_function_and_end_with_it() -> None:
    """llvm-gsymutil does not know an address in front of the first row at all."""
    rows = [(0x0FF0, A, 1), (0x1002, A, 2), (0x1001, A, 3), (0x1004, A, 4), (0x1008, A, 5)]
    (function,) = reread(written(Function("f", 0x1000, 8, rows)))
    assert function.lines == [(0x1000, "", 0), (0x1002, A, 2), (0x1004, A, 4)]


# ---------------------------------------------------------------- against plain Python


NUMBERS = st.one_of(st.integers(0, 20), st.integers(0, 0x3000), st.integers((1 << 64) - 0x2000, (1 << 64) - 1))
SOURCES = st.sampled_from(["", A, B, "plain", "/src/c/d.h", r"C:\x\y.c", "/"])
LINES = st.one_of(st.integers(0, 40), st.integers(-3, 1 << 33))
NAMES = st.sampled_from(["f", "g", "zero\0inside", "\udc80", "/src"])


@st.composite
def calls(draw: st.DrawFn, around: tuple[int, int], depth: int = 0) -> Inline:
    """A call that lies inside of what is around it mostly."""
    inside = st.integers(max(around[0] - 2, 0), min(around[1] + 2, 1 << 64))
    ranges = draw(st.lists(st.tuples(inside, inside), max_size=3))
    within = next((one for one in ranges if one[0] < one[1]), around)
    n_children = draw(st.integers(0, 2)) if depth < 4 else 0
    children = tuple(draw(calls(within, depth + 1)) for _ in range(n_children))
    return Inline(draw(NAMES), tuple(ranges), draw(SOURCES), draw(LINES), children)


@st.composite
def any_functions(draw: st.DrawFn) -> list[Function]:
    found = []
    for _ in range(draw(st.integers(0, 4))):
        start, size = draw(NUMBERS), draw(st.one_of(st.integers(0, 300), st.just((1 << 32) - 1)))
        near = st.integers(max(start - 2, 0), min(start + min(size, 400) + 3, (1 << 64) - 1))
        lines = draw(st.lists(st.tuples(near, SOURCES, LINES), max_size=8))
        lines = sorted(lines) if draw(st.booleans()) else lines
        inlines = [draw(calls((start, start + size))) for _ in range(draw(st.integers(0, 3)))]
        found.append(Function(draw(NAMES), start, size, lines, inlines))
    return found


@given(functions=any_functions(), wide=st.booleans(), big=st.booleans())
def test_infos_are_those_of_plain_python(functions: list[Function], wide: bool, big: bool) -> None:
    order, offset = "<>"[big], "IQ"[wide]
    infos = Infos(table_of(functions), Tables(order + offset), 8 if wide else 4, big)
    places = infos.write(np.arange(len(functions))).tolist()
    expected = plain_gsym.infos(functions, order, offset)
    content = infos.content()
    assert [content[at : at + len(one)] for at, one in zip(places, expected, strict=True)] == expected
    ends = [at + len(one) for at, one in zip(places, expected, strict=True)]
    assert [*(end + -end % 4 for end in ends[:-1])] == places[1:]
    assert len(content) == (ends[-1] if ends else 0)


@given(functions=any_functions())
def test_columns_are_the_functions(functions: list[Function]) -> None:
    """But for lines, of which there are 32 bits, and ranges that are none."""

    def normal(call: Inline) -> Inline:
        ranges = tuple(one for one in call.ranges if one[0] < one[1])
        return Inline(
            call.name, ranges, call.call_source, call.call_line % (1 << 32), tuple(map(normal, call.children))
        )

    expected = [
        Function(
            f.name,
            f.start,
            f.size,
            [(*row[:2], row[2] % (1 << 32)) for row in f.lines] or (),
            tuple(map(normal, f.inlines)),
        )
        for f in functions
    ]
    assert list(table_of(functions).functions()) == expected


# ---------------------------------------------------------------- inlined calls


@pytest.mark.parametrize(
    ("ranges", "kept"),
    [
        ([(0x1000, 0x1010)], [(0x1000, 0x1010)]),
        ([(0x1008, 0x100C), (0x1000, 0x1004)], [(0x1000, 0x1004), (0x1008, 0x100C)]),
        ([(0x1000, 0x1004), (0x1004, 0x1008)], [(0x1000, 0x1008)]),
        ([(0x1000, 0x1004), (0x100C, 0x1014)], [(0x1000, 0x1004)]),
        ([(0x0FFC, 0x1004)], None),
        ([(0x1004, 0x1004)], None),
        ([], None),
    ],
    ids=["all of it", "in order", "adjacent ones are one", "one outside", "outside", "empty", "none"],
)
def test_ranges_of_inlined_calls(ranges: list[tuple[int, int]], kept: list[tuple[int, int]] | None) -> None:
    call = Inline("g", tuple(ranges), A, 1)
    (function,) = reread(written(Function("f", 0x1000, 0x10, [(0x1000, A, 1)], [call])))
    assert [list(inline.ranges) for inline in function.inlines] == ([] if kept is None else [kept])


def test_a_call_lies_in_the_call_around_it() -> None:
    outer = Inline("outer", ((0x1000, 0x1008),), A, 1, (Inline("inner", ((0x1004, 0x100C),), A, 2),))
    (function,) = reread(written(Function("f", 0x1000, 0x10, [(0x1000, A, 1)], [outer])))
    assert [inline.children for inline in function.inlines] == [()]


def test_nesting_ends_at_the_limit() -> None:
    (function,) = reread(written(Function("f", 0x1000, 0x40, [(0x1010, A, 1)], [tree(MAX_INLINED + 50)])))
    depth, inlines = 0, function.inlines
    while inlines:
        depth, inlines = depth + 1, inlines[0].children
    assert depth == MAX_INLINED


# ---------------------------------------------------------------- llvm-gsymutil


def converted(name: str, out: Path, version: int = 1) -> list[Function]:
    source = Source(name, memoryview(content(name)))
    binary = Binary(source)
    found = list(functions(binary))
    with out.open("wb") as file:
        uuid = bytes.fromhex(build_id_of(source.data))
        write(file, found, uuid=uuid, base=binary.base, version=version)
    return found


def answers(file: Path, addresses: Iterable[int]) -> dict[int, list[str]]:
    """Address → a line for each frame, the innermost first."""
    asked = "".join(f"{address:#x} {file}\n" for address in addresses)
    command = [str(PROGRAM), "--addresses-from-stdin"]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found: dict[int, list[str]] = {}
    frames: list[str] = []
    for line in done.stdout.replace(str(file), "").splitlines():
        if start := re.match(r"(0x[0-9a-f]+): (.*)", line):
            frames = found.setdefault(int(start[1], 16), [])
            frames.append(start[2])
        elif line.strip():
            frames.append(line.strip())
    return found


def around(found: Iterable[Function]) -> list[int]:
    """Starts, middles and ends, what lies in front and behind, and addresses between."""
    places = {
        f.start + at for f in found for at in (-1, 0, f.size // 3, f.size // 2, f.size - 1, f.size) if f.start + at >= 0
    }
    return sorted(places | set(random.Random(5).choices(sorted(places), k=1000)))


def aliases(found: Iterable[Function]) -> dict[str, set[str]]:
    """Name → all names of the same bytes."""
    names_at: dict[tuple[int, int], set[str]] = {}
    for f in found:
        names_at.setdefault((f.start, f.size), set()).add(f.name)
    return {name: both for both in names_at.values() for name in both if len(both) > 1}


@needs_program
@pytest.mark.parametrize("name", names(r"19/(pool|bigmix|except|recurse|typed|events)-pie"))
def test_look_ups_are_those_of_llvms_own_file(name: str, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.gsym", tmp_path / "ours.gsym"
    found = converted(name, ours)
    path = tmp_path / "binary"
    path.write_bytes(content(name))
    command = [str(PROGRAM), f"--convert={path}", f"--out-file={theirs}", "--quiet"]
    subprocess.run(command, capture_output=True, check=True)
    addresses = around(found)
    expected, got = answers(theirs, addresses), answers(ours, addresses)
    same_bytes = aliases(found)
    assert expected.keys() == got.keys()
    assert len(expected) == len(set(addresses)) > 2000
    sections = Binary(open_source(str(path))).code_ranges
    for address, frames in expected.items():
        # llvm-gsymutil lets _init, which has no size, last through .plt; there are stubs here, which its file has not.
        offset = re.search(r" \+ (\d+)", frames[-1])
        start = address - int(offset[1]) if offset else address
        if not any(begin <= start <= address < end for begin, end in sections):
            assert got[address][-1].endswith("not in GSYM") or "@plt" in got[address][-1]
        elif frames != got[address]:
            # Names and places begin alike from the first blank on.
            (our, their) = (re.split(r"(?= [+@])", frames[-1], maxsplit=1) for frames in (got[address], frames))
            assert got[address][:-1] == frames[:-1]
            assert our[1:] == their[1:]
            assert their[0] in same_bytes[our[0]]
    n_stubs = sum(function.name.endswith("@plt") for function in found)
    assert ours.stat().st_size <= theirs.stat().st_size + 64 * n_stubs


@needs_program
@pytest.mark.parametrize("name", names(r"19/(pool|bigmix)-pie"))
def test_our_reader_answers_as_llvms_does(name: str, tmp_path: Path) -> None:
    """Both versions of the file, of which llvm-gsymutil 19 reads the first."""
    from test_gsym import stacks

    first, second = tmp_path / "1.gsym", tmp_path / "2.gsym"
    addresses = around(converted(name, first))
    converted(name, second, version=2)
    one, two = (stacks(Gsym(open_source(str(file))).lookup(addresses)) for file in (first, second))
    assert one == two
    expected = answers(first, addresses)
    assert [len(stack) if stack else 1 for stack in one] == [len(expected[address]) for address in addresses]


@needs_program
@pytest.mark.parametrize("name", names(r"19/(pool|bigmix)-pie"))
def test_llvm_verifies_the_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "ours.gsym"
    converted(name, file)
    done = subprocess.run([str(PROGRAM), "--verify", str(file)], capture_output=True, text=True, check=True)
    assert "error:" not in done.stdout + done.stderr
    assert done.stdout.count("FunctionInfo @") == len(reread(file.read_bytes()))


@needs_program
def test_llvm_reads_what_no_compiler_makes(tmp_path: Path) -> None:
    """Rows that begin late, calls 128 deep, functions that overlap; big-endian, too."""
    given = [
        Function("late", 0x1000, 8, [(0x1004, A, 4)]),
        Function("deep", 0x1010, 0x30, [(0x1010, A, 1)], [tree(MAX_INLINED)]),
        Function("overlapping", 0x1018, 4),
    ]
    for big in (False, True):
        file = tmp_path / "ours.gsym"
        file.write_bytes(written(*given, big=big))
        found = answers(file, [0x1000, 0x1004, 0x1010, 0x1018, 0x1020])
        assert [len(frames) for frames in found.values()] == [1, 1, MAX_INLINED + 1, 1, 1]
        assert found[0x1004] == ["late + 4 @ /src/a.c:4"]


@pytest.mark.parametrize("name", names(r"19/(pool|bigmix)-pie"))
def test_the_same_functions_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    converted(name, tmp_path / "one")
    converted(name, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize("name", names(r"19/(pool|bigmix)-pie"))
def test_rows_of_a_file_rise_and_say_something_new(name: str, tmp_path: Path) -> None:
    converted(name, tmp_path / "ours")
    for function in reread((tmp_path / "ours").read_bytes()):
        assert all(one[0] < next_[0] and one[1:] != next_[1:] for one, next_ in pairwise(function.lines))
