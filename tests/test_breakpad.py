"""Breakpad symbol files (docs/symbol_files.md of Breakpad): look-ups, functions, damage. The witness is symbolic."""

import random
import re
from typing import Any

import numpy as np
import pytest
from builders.breakpad import BUILD_ID, DEBUG_ID, SymFile
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.breakpad._records import Records
from traceferry.symbolication.breakpad.reader import Breakpad
from traceferry.symbolication.interface import Frames, Function, Inline


def opened(file: SymFile | bytes) -> Breakpad:
    data = file if isinstance(file, bytes) else file.bytes()
    return Breakpad(Source("folder/app.sym", memoryview(data)))


def text_of(frames: Frames, index: int) -> str:
    return frames.texts[index] if index >= 0 else ""


def shown(file: SymFile | bytes, *addresses: int) -> list[str]:
    """For each address "innermost source:line < outer source:line"."""
    found = opened(file).lookup(np.array(addresses, np.uint64))
    frames = [
        f"{text_of(found, name)} {text_of(found, source)}:{line}"
        for name, source, line in zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    ]
    return [" < ".join(frames[begin:end]) for begin, end in zip(found.first[:-1], found.first[1:], strict=True)]


def program() -> SymFile:
    """A function with two levels of inlined calls, one in two pieces, and bytes without a line."""
    file = SymFile().code_id().file(0, "/src/a b.c").file(7, "/src/c.h").origin(0, "inner one").origin(3, "deep<int>()")
    file.func(0x1000, 0x40, "outer(int, char)")
    file.inline(0, 12, 0, 0, (0x1010, 0x10), (0x1028, 8)).inline(1, 5, 7, 3, (0x1014, 4))
    for address, size, line, source in [
        (0x1000, 0x10, 11, 0), (0x1010, 4, 100, 7), (0x1014, 4, 200, 7), (0x1018, 8, 101, 7), (0x1020, 8, 0, 0),
        (0x1028, 8, 102, 7),
    ]:  # fmt: skip
        file.line(address, size, line, source)
    file.func(0x2000, 0x10, "merged", multiple=True).line(0x2000, 0x10, 3, 7)
    file.raw("STACK CFI INIT 1000 40 .cfa: $rsp 8 + .ra: .cfa -8 + ^").public(0x3000, "public name", multiple=True)
    return file.public(0x900, "early")


LOOKUPS = {
    0x8FF: "",
    0x900: "early :0",
    0xFFF: "early :0",
    0x1000: "outer(int, char) /src/a b.c:11",
    0x100F: "outer(int, char) /src/a b.c:11",
    0x1010: "inner one /src/c.h:100 < outer(int, char) /src/a b.c:12",
    0x1014: "deep<int>() /src/c.h:200 < inner one /src/c.h:5 < outer(int, char) /src/a b.c:12",
    0x1018: "inner one /src/c.h:101 < outer(int, char) /src/a b.c:12",
    0x1020: "outer(int, char) /src/a b.c:0",
    0x102F: "inner one /src/c.h:102 < outer(int, char) /src/a b.c:12",
    0x1030: "outer(int, char) :0",
    0x103F: "outer(int, char) :0",
    0x1040: "",
    0x2000: "merged /src/c.h:3",
    0x2010: "",
    0x3000: "public name :0",
    0xFFFF_FFFF_FFFF_FF00: "public name :0",
}


# ---------------------------------------------------------------- look-ups


def test_look_ups() -> None:
    assert dict(zip(LOOKUPS, shown(program(), *LOOKUPS), strict=True)) == LOOKUPS


def test_look_ups_in_any_order_and_again() -> None:
    addresses = [*LOOKUPS, *LOOKUPS]
    random.Random(1).shuffle(addresses)
    assert shown(program(), *addresses) == [LOOKUPS[address] for address in addresses]


def test_no_address() -> None:
    found = opened(program()).lookup(np.zeros(0, np.uint64))
    assert (found.first.tolist(), len(found.name), len(found.start)) == ([0], 0, 0)


def test_lines_end_with_carriage_returns() -> None:
    file = program()
    file.newline = "\r\n"
    assert shown(file, *LOOKUPS) == list(LOOKUPS.values())


def test_the_last_line_has_no_newline() -> None:
    assert shown(SymFile().public(0x10, "f").bytes().rstrip(), 0x10) == ["f :0"]


def test_starts_and_sizes() -> None:
    found = opened(program()).lookup(np.array([0x1014, 0x2001, 0x3010, 0x1040], np.uint64))
    assert found.start.tolist() == [0x1000, 0x2000, 0x3000, 0]
    assert found.size.tolist() == [0x40, 0x10, 0, 0]
    assert (found.start.dtype, found.size.dtype) == (np.uint64, np.uint64)
    assert {found.name.dtype, found.source.dtype, found.line.dtype} == {np.dtype(np.int32)}


def test_records_in_any_order() -> None:
    """Only lines and inlines belong to the function before them."""
    file = SymFile().func(0x10, 8, "f").line(0x10, 8, 5, 1).inline(0, 9, 1, 2, (0x10, 4)).origin(2, "g").file(1, "a.c")
    assert shown(file, 0x10, 0x14) == ["g a.c:5 < f a.c:9", "f a.c:5"]


CHOICES = {
    "a function, not the PUBLIC in it": (SymFile().func(0x10, 8, "f").public(0x12, "p"), 0x13, "f :0"),
    "a PUBLIC after a function's end": (SymFile().func(0x10, 8, "f").public(0x12, "p"), 0x18, "p :0"),
    "a PUBLIC that is a function's start": (SymFile().func(0x10, 8, "f").public(0x10, "p"), 0x18, ""),
    "a PUBLIC until the next function": (SymFile().public(0x10, "p").func(0x20, 8, "f"), 0x28, ""),
    "a PUBLIC until the next": (SymFile().public(0x20, "q").public(0x10, "p"), 0x1F, "p :0"),
    "the first of equal PUBLICs": (SymFile().public(0x10, "p").public(0x10, "q"), 0x10, "p :0"),
    "the first of equal functions": (SymFile().func(0x10, 8, "f").func(0x10, 8, "g"), 0x10, "f :0"),
    "the longest of those that start together": (SymFile().func(0x10, 4, "f").func(0x10, 8, "g"), 0x11, "g :0"),
    "of functions that overlap the last": (SymFile().func(0x10, 8, "f").func(0x12, 8, "g"), 0x12, "g :0"),
    "no function of size 0": (SymFile().func(0x10, 0, "f"), 0x10, ""),
    "a function without a name": (SymFile().func(0x10, 8, ""), 0x10, " :0"),
    "the last FILE of a number": (
        SymFile().file(1, "a.c").file(1, "b.c").func(0x10, 8, "f").line(0x10, 8, 3, 1), 0x10, "f b.c:3",
    ),
    "no line of another function": (
        SymFile().file(1, "a.c").func(0, 8, "f").line(0x10, 8, 3, 1).func(0x10, 8, "g"), 0x10, "g :0",
    ),
    "a line number that is none": (SymFile().file(1, "a.c").func(0, 8, "f").line(0, 8, 1 << 31, 1), 0, "f a.c:0"),
    "upper-case digits": (SymFile().file(1, "a.c").raw("FUNC AB 8 0 f").raw("AB 8 3 1"), 0xAB, "f a.c:3"),
    "digits that begin like a word": (SymFile().file(1, "a.c").func(0xF, 8, "f").raw("F 8 3 1"), 0xF, "f a.c:3"),
    "a function called m": (SymFile().raw("FUNC m 10 8 0 m"), 0x10, "m :0"),
    "a name that is no UTF-8": (SymFile().bytes() + b"PUBLIC 10 0 \xff\n", 0x10, "� :0"),
    "the highest address": (SymFile().func((1 << 64) - 9, 8, "f"), (1 << 64) - 2, "f :0"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHOICES)
def test_which_record_holds_an_address(case: str) -> None:
    file, address, wanted = CHOICES[case]
    assert shown(file, address) == [wanted]


def nested(levels: int) -> SymFile:
    file = SymFile().file(0, "a.c").func(0, levels + 1, "f")
    for level in range(levels):
        file.origin(level, f"i{level}").inline(level, level + 1, 0, level, (0, levels - level))
    return file


def test_inlines_are_nested_128_deep_at_most() -> None:
    (whole,) = shown(nested(200), 0)
    assert whole.count("<") == 128
    assert whole.startswith("i127 :0 < i126 a.c:128 <")
    assert [what for _, what in opened(nested(129)).problems] == [DAMAGED]


def test_an_inline_without_the_one_around_it_is_left_out() -> None:
    file = SymFile().file(0, "a.c").origin(0, "g").func(0, 8, "f").inline(1, 3, 0, 0, (0, 8))
    assert shown(file, 0) == ["f :0"]
    assert [function.inlines for function in opened(file).functions()] == [()]


# ---------------------------------------------------------------- the module

IDS = {
    "INFO CODE_ID": (SymFile().code_id(), BUILD_ID),
    "with a name": (SymFile().code_id(name="app.so"), BUILD_ID),
    "the debug id's 16 bytes": (SymFile(), BUILD_ID[:32]),
    "no id": (SymFile("0" * 33), ""),
    "an id that is too short": (SymFile("ABCDEF"), ""),
    "a code id that is no build id": (SymFile().code_id("5F3C0A6F100"), BUILD_ID[:32]),
}


@pytest.mark.parametrize("case", IDS)
def test_build_ids(case: str) -> None:
    file, wanted = IDS[case]
    assert opened(file).build_id == wanted


def test_the_module() -> None:
    symbols = opened(program())
    assert (symbols.path, symbols.name, symbols.base) == ("folder/app.sym", "app.sym", 0)
    assert (symbols.arch, symbols.debug_id) == ("x86_64", DEBUG_ID)


@pytest.mark.parametrize("data", [b"", b"MODULE", b"MODULE Linux x86_64", b"FUNC 10 8 0 f\n", b"MODULE a b xyz app\n"])
def test_no_breakpad_file(data: bytes) -> None:
    with pytest.raises(FormatError, match="MODULE") as caught:
        opened(data)
    assert (caught.value.offset, caught.value.path) == (0, "folder/app.sym")


# ---------------------------------------------------------------- whole functions


def test_functions() -> None:
    inner = Inline("deep<int>()", ((0x1014, 0x1018),), "/src/c.h", 5)
    first = Inline("inner one", ((0x1010, 0x1020), (0x1028, 0x1030)), "/src/a b.c", 12, (inner,))
    lines = [
        (0x1000, "/src/a b.c", 11), (0x1010, "/src/c.h", 100), (0x1014, "/src/c.h", 200), (0x1018, "/src/c.h", 101),
        (0x1020, "/src/a b.c", 0), (0x1028, "/src/c.h", 102), (0x1030, "", 0),
    ]  # fmt: skip
    assert list(opened(program()).functions()) == [
        Function("early", 0x900, 0, [], ()),
        Function("outer(int, char)", 0x1000, 0x40, lines, [first]),
        Function("merged", 0x2000, 0x10, [(0x2000, "/src/c.h", 3)], ()),
        Function("public name", 0x3000, 0, [], ()),
    ]


def test_functions_that_start_together_in_the_order_of_the_file() -> None:
    file = SymFile().func(0x10, 4, "f").func(0x10, 8, "g").func(0x10, 8, "h").public(0x10, "p").func(8, 4, "e")
    assert [function.name for function in opened(file).functions()] == ["e", "f", "g", "h"]


def test_gaps_between_lines_have_no_line() -> None:
    file = SymFile().file(1, "a.c").func(0x10, 0x20, "f").line(0x18, 4, 2, 1).line(0x20, 4, 3, 1).line(0x30, 4, 9, 1)
    (function,) = opened(file).functions()
    assert function.lines == [(0x18, "a.c", 2), (0x1C, "", 0), (0x20, "a.c", 3), (0x24, "", 0)]


def functions_at(functions: list[Function], address: int) -> list[tuple[str, str, int]]:
    """What whole functions say of an address, innermost first."""
    for function in functions:
        if function.start <= address < function.start + function.size:
            place = next((p[1:] for p in reversed(function.lines) if p[0] <= address), ("", 0))
            frames = [function.name]
            calls: list[tuple[str, int]] = []
            inlines = function.inlines
            while inlines:
                inline = next((i for i in inlines if any(b <= address < e for b, e in i.ranges)), None)
                if inline is None:
                    break
                frames.append(inline.name)
                calls.append((inline.call_source, inline.call_line))
                inlines = inline.children
            places = [*calls, place]
            return [(name, *at) for name, at in zip(frames, places, strict=True)][::-1]
    return []


RANGES = st.tuples(st.integers(0, 60), st.integers(0, 30))


@st.composite
def files(draw: st.DrawFn) -> SymFile:
    """Functions side by side, with lines and inlined calls that lie anywhere in them."""
    file = SymFile().file(0, "a.c").file(1, "b.c").origin(0, "i").origin(1, "j").origin(2, "k")
    for nth in range(draw(st.integers(1, 3))):
        start = 100 * nth
        file.func(start, draw(st.integers(1, 100)), f"f{nth}")
        at = start
        for gap, size, line in draw(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9)))):
            file.line(at + gap, size, line, line % 2)
            at += gap + size
        bounds = sorted(draw(st.sets(st.integers(0, 99), min_size=2, max_size=8)))
        for level, (begin, end) in enumerate(zip(bounds, reversed(bounds), strict=True)):
            if begin < end:
                file.inline(level, level + 1, level % 2, level % 3, (start + begin, end - begin))
    return file


@given(files())
def test_whole_functions_say_what_look_ups_say(file: SymFile) -> None:
    functions = list(opened(file).functions())
    for address, wanted in enumerate(shown(file, *range(320))):
        frames = functions_at(functions, address)
        assert " < ".join(f"{name} {source}:{line}" for name, source, line in frames) == wanted


@given(files())
def test_symbolic_says_the_same(file: SymFile) -> None:
    """Where there are lines: elsewhere it stretches the line before, or has no function. Its inlined calls end with the
    lines, too."""
    from symbolic import Archive

    data = file.bytes()
    cache = next(Archive.from_bytes(data).iter_objects()).make_symcache()
    for address, ours in enumerate(shown(file, *range(320))):
        theirs = [f"{f.symbol} {f.full_path or ''}:{f.line}" for f in cache.lookup(address)]
        if ours and not ours.split(" < ")[0].endswith(" :0"):
            assert ours.split(" < ") == theirs


# ---------------------------------------------------------------- damage

DAMAGED = "invalid record of a Breakpad symbol file, or record outside a function"
DAMAGE = {
    "an unknown word": ("NOTHING 1", DAMAGED),
    "a line of three fields": ("10 8 3", DAMAGED),
    "a line of five fields": ("10 8 3 0 0", DAMAGED),
    "a line that is no number": ("10 8 3 x", DAMAGED),
    "a line beyond the last address": ("ffffffffffffffff 8 3 0", DAMAGED),
    "a number of 17 digits": ("00000000000000010 8 3 0", DAMAGED),
    "a hex line number": ("10 8 a 0", DAMAGED),
    "a function without a size": ("FUNC 10", DAMAGED),
    "a function of no address": ("FUNC x 8 0 f", DAMAGED),
    "a function beyond the last address": ("FUNC ffffffffffffffff 8 0 f", DAMAGED),
    "a FILE without a number": ("FILE a.c", DAMAGED),
    "an INLINE_ORIGIN without a number": ("INLINE_ORIGIN f", DAMAGED),
    "a PUBLIC without an address": ("PUBLIC m", DAMAGED),
    "an INLINE without a range": ("INLINE 0 1 0 0", DAMAGED),
    "an INLINE with half a range": ("INLINE 0 1 0 0 10", DAMAGED),
    "an INLINE of a range and a half": ("INLINE 0 1 0 0 10 4 20", DAMAGED),
    "an INLINE beyond level 127": ("INLINE 128 1 0 0 10 4", DAMAGED),
    "an unknown FILE": ("10 8 3 99", "a line refers to an undeclared FILE"),
    "an unknown FILE of a call": ("INLINE 0 1 99 0 10 4", "an inlined call refers to an undeclared FILE"),
    "an unknown INLINE_ORIGIN": ("INLINE 0 1 0 99 10 4", "undeclared INLINE_ORIGIN"),
    "a word alone": ("FUNC", DAMAGED),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_line_is_counted_and_loses_itself(case: str) -> None:
    record, what = DAMAGE[case]
    before = SymFile().file(0, "a.c").origin(0, "g").func(0x10, 8, "f").line(0x10, 8, 1, 0)
    offset = len(before.bytes())
    file = before.raw(record).func(0x30, 8, "h").line(0x30, 8, 2, 0)
    assert opened(file).problems == [(offset, what)]
    assert shown(file, 0x14, 0x30)[1] == "h a.c:2"
    assert shown(file, 0x14)[0].endswith("f a.c:1") or "INLINE" in record


def test_lines_of_a_damaged_function_are_not_the_function_s_before() -> None:
    file = SymFile().file(0, "a.c").origin(0, "g").func(0x10, 0x80, "f").raw("FUNC 20").line(0x20, 8, 1, 0)
    file.inline(0, 1, 0, 0, (0x20, 8)).func(0x90, 8, "h").line(0x90, 8, 2, 0)
    assert len(opened(file).problems) == 3
    assert shown(file, 0x20, 0x90) == ["f :0", "h a.c:2"]


def test_nothing_is_damaged_in_a_whole_file() -> None:
    assert opened(program().raw("")).problems == []


def consistent(file: bytes) -> None:
    """Any bytes give symbols or a FormatError."""
    try:
        symbols = opened(file)
    except FormatError:
        return
    found = symbols.lookup(np.array([*LOOKUPS, 0, (1 << 64) - 1], np.uint64))
    assert found.first[0] == 0
    assert (np.diff(found.first) >= 0).all()
    assert found.first[-1] == len(found.name) == len(found.source) == len(found.line)
    assert found.name.max(initial=-1) < len(found.texts)
    assert (found.name >= -1).all()
    list(symbols.functions())
    assert all(0 <= offset < len(file) for offset, _ in symbols.problems)
    assert isinstance(symbols.build_id, str)


def test_files_cut_anywhere() -> None:
    whole = program().bytes()
    for cut in range(len(whole)):
        consistent(whole[:cut])


@given(st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(program().bytes())
    for at, value in changes:
        damaged[at % len(damaged)] = value
    consistent(bytes(damaged))


# ---------------------------------------------------------------- records

HEX, DECIMAL = rb"([0-9A-Fa-f]{1,16})", rb"([0-9]{1,16})"
NAMED = rb"(?: m(?= ))? +" + DECIMAL + rb"(?: (.*))?"
CODE = rb"(?: m(?= ))? +" + HEX + rb" +" + HEX
RECORDS = {
    "files": re.compile(rb"FILE" + NAMED),
    "origins": re.compile(rb"INLINE_ORIGIN" + NAMED),
    "functions": re.compile(rb"FUNC" + CODE + rb" +" + HEX + rb"(?: (.*))?"),
    "publics": re.compile(rb"PUBLIC" + CODE + rb"(?: (.*))?"),
    "lines": re.compile(HEX + rb" +" + HEX + rb" +" + DECIMAL + rb" +" + DECIMAL),
    "inlines": re.compile(rb"INLINE(?: m(?= ))?" + (rb" +" + DECIMAL) * 4 + rb"((?: +[0-9A-Fa-f]{1,16}){2,})"),
}
SKIPPED = re.compile(rb"(?:STACK|INFO|MODULE)(?: .*)?|")


def records_of(text: bytes) -> dict[str, list[Any]]:
    """As the format says, with regular expressions."""
    found: dict[str, list[Any]] = {"damaged": [], **{kind: [] for kind in RECORDS}, "ranges": []}
    at, function = 0, -1
    for ended in text.split(b"\n"):
        line = ended.removesuffix(b"\r")
        kind, match = next(((k, m) for k, p in RECORDS.items() if (m := p.fullmatch(line))), ("", None))
        row = row_of(kind, match, at, len(line), function) if match is not None else None
        if line.split(b" ")[0] == b"FUNC":
            function = len(found["functions"]) if row is not None else -1
        if row is not None:
            found["ranges"] += [[*one, len(found["inlines"])] for one in row.pop()] if kind == "inlines" else []
            found[kind].append(row)
        elif not SKIPPED.fullmatch(line):
            found["damaged"].append(at)
        at += len(ended) + 1
    return found


def row_of(kind: str, match: re.Match[bytes], at: int, size: int, function: int) -> list[Any] | None:
    fields = match.groups()
    name = [at + (size if fields[-1] is None else match.start(match.lastindex or 0)), at + size]
    if kind in ("files", "origins"):
        return [int(fields[0]), *name]
    if kind in ("functions", "publics"):
        address, length = int(fields[0], 16), int(fields[1], 16) if kind == "functions" else 0
        return [address, length, *name] if address + length < 1 << 64 else None
    if kind == "lines":
        address, length = int(fields[0], 16), int(fields[1], 16)
        is_good = function >= 0 and address + length < 1 << 64
        return [address, length, int(fields[2]), int(fields[3]), function, at] if is_good else None
    numbers = [int(number, 16) for number in fields[4].split()]
    ranges = list(zip(numbers[::2], numbers[1::2], strict=False))
    is_good = len(numbers) % 2 == 0 and all(address + length < 1 << 64 for address, length in ranges)
    is_good &= function >= 0 and int(fields[0]) < 128
    return [*map(int, fields[:4]), function, at, ranges] if is_good else None


WORDS = [b"FUNC", b"PUBLIC", b"FILE", b"INLINE", b"INLINE_ORIGIN", b"STACK", b"INFO", b"m", b"", b"x", b"\r"]
NUMBERS = [b"0", b"1", b"7", b"9f", b"F0", b"127", b"128", b"f" * 16, b"f" * 17, b"9" * 16]
ANY_LINE = st.lists(st.sampled_from(WORDS + NUMBERS * 2), max_size=8).map(b" ".join)
GOOD_LINES = [b"FUNC 10 20 0 f g", b"FUNC m 10 f 0 f", b"10 4 1 0", b"INLINE 0 1 0 0 10 4 20 4", b"FILE 0 /a b.c", b""]


@examples(300)
@given(st.lists(st.sampled_from(GOOD_LINES) | ANY_LINE, max_size=8).map(b"\n".join))
def test_records_are_those_of_regular_expressions(text: bytes) -> None:
    records = Records(np.frombuffer(text, np.uint8))
    found = {kind: getattr(records, kind) for kind in records_of(b"")}
    assert {kind: np.array(table.tolist()).tolist() for kind, table in found.items()} == records_of(text)


# ---------------------------------------------------------------- sizes


def test_a_long_name_is_held_once() -> None:
    """20 bytes for a call, and 60,000 for the name of what is inlined."""
    file = SymFile().file(0, "/a.c").origin(0, "n" * 60_000).func(0x1000, 0x8000, "f")
    for nth in range(1000):
        file.inline(0, 3, 0, 0, (0x1000 + 16 * nth, 8))
    (function,) = Breakpad(Source("x.sym", memoryview(file.bytes()))).functions()
    assert len(function.inlines) == 1000
    assert len({id(call.name) for call in function.inlines}) == 1
