"""Programs of Go that are stripped: the tables of its runtime name their functions, files, lines and inlined calls."""

import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from builders.go_tables import BASE, PCLNTAB, PCLNTAB_OF_PIE, TEXT, Call, Function, GoProgram
from conftest import one_in

from traceferry.common.errors import FormatError
from traceferry.files.source import Source, open_source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.interface import Frames

FILES = ["/src/main.go", "/src/util.go", "/go/runtime/asm.s"]
MAIN, UTIL, ASM = range(3)
ENTRY = Function("_rt0_amd64_linux", 0x10, [(0x10, ASM)], [(0x10, 8)])
# main.work calls util.Twice at line 21, into which util.add is inlined at line 5, from 0x08 to 0x18.
WORK = Function(
    "main.work",
    0x30,
    [(0x08, MAIN), (0x18, UTIL), (0x30, MAIN)],
    [(0x04, 20), (0x08, 21), (0x0C, 5), (0x14, 2), (0x18, 6), (0x30, 22)],
    [(0x08, -1), (0x0C, 0), (0x14, 1), (0x18, 0), (0x30, -1)],
    [Call("util.Twice", MAIN, 21, -1, 0x04), Call("util.add", UTIL, 5, 0, 0x08)],
)
LAST = Function("main.(*T).last", 0x20, [(0x20, MAIN)], [(0x20, 40)])
FUNCTIONS = [ENTRY, WORK, LAST]
WORK_AT, LAST_AT, END = TEXT + 0x10, TEXT + 0x40, TEXT + 0x60

LAYOUTS = list(itertools.product((2, 16, 18, 20), "<>", (32, 64)))
IN_WORK, IN_TWICE = ("main.work", "/src/main.go"), ("util.Twice", "/src/util.go")
EXPECTED = {
    TEXT: [("_rt0_amd64_linux", "/go/runtime/asm.s", 8)],
    WORK_AT: [(*IN_WORK, 20)],
    WORK_AT + 0x04: [(*IN_WORK, 21)],
    WORK_AT + 0x08: [(*IN_TWICE, 5), (*IN_WORK, 21)],
    WORK_AT + 0x0C: [("util.add", "/src/util.go", 2), (*IN_TWICE, 5), (*IN_WORK, 21)],
    WORK_AT + 0x13: [("util.add", "/src/util.go", 2), (*IN_TWICE, 5), (*IN_WORK, 21)],
    WORK_AT + 0x14: [(*IN_TWICE, 6), (*IN_WORK, 21)],
    WORK_AT + 0x18: [(*IN_WORK, 22)],
    WORK_AT + 0x2F: [(*IN_WORK, 22)],
    LAST_AT: [("main.(*T).last", "/src/main.go", 40)],
    END - 1: [("main.(*T).last", "/src/main.go", 40)],
    TEXT - 1: [],
    END: [],
}


def program(since: int = 20, order: str = "<", bits: int = 64, **options: bool) -> GoProgram:
    """File numbers are of the package's files from Go 1.16 on, before of a table whose first entry is its size."""
    functions = FUNCTIONS if since > 2 else [shifted(function) for function in FUNCTIONS]
    return GoProgram(functions, FILES, since, order, bits, **options)


def shifted(function: Function) -> Function:
    files = [(end, file + 1) for end, file in function.files]
    return function._replace(files=files, calls=[call._replace(file=call.file + 1) for call in function.calls])


def opened(data: bytes) -> ElfSymbols:
    return ElfSymbols(Binary(Source("app", memoryview(data))))


def answers(symbols: ElfSymbols, addresses: list[int]) -> dict[int, list[tuple[str, str, int]]]:
    found = symbols.lookup(np.array(addresses, np.uint64))
    return {address: frames_of(found, nth) for nth, address in enumerate(addresses)}


def frames_of(found: Frames, nth: int) -> list[tuple[str, str, int]]:
    def text(index: int) -> str:
        return found.texts[index] if index >= 0 else ""

    chosen = slice(found.first[nth], found.first[nth + 1])
    columns = (found.name[chosen].tolist(), found.source[chosen].tolist(), found.line[chosen].tolist())
    return [(text(name), text(source), line) for name, source, line in zip(*columns, strict=True)]


def without_calls(frames: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """What is known where inlined calls are not: the line that runs is of the function."""
    return [(frames[-1][0], *frames[0][1:])] if frames else []


@pytest.mark.parametrize(("since", "order", "bits"), LAYOUTS)
def test_functions_lines_and_inlined_calls(since: int, order: str, bits: int) -> None:
    symbols = opened(program(since, order, bits).elf())
    assert answers(symbols, list(EXPECTED)) == EXPECTED
    assert symbols.gives == "the tables of Go's runtime"
    assert symbols.problems == []
    assert symbols.has_lines


@pytest.mark.parametrize(("since", "order", "bits"), LAYOUTS)
def test_where_functions_begin_and_end(since: int, order: str, bits: int) -> None:
    found = opened(program(since, order, bits).elf()).lookup(np.array([WORK_AT + 9, LAST_AT], np.uint64))
    assert list(zip(found.start.tolist(), found.size.tolist(), strict=True)) == [(WORK_AT, 0x30), (LAST_AT, 0x20)]


def test_functions_for_a_writer() -> None:
    start, work, last = opened(program().elf()).functions()
    assert (start.name, start.start, start.size) == ("_rt0_amd64_linux", TEXT, 0x10)
    assert [(address - WORK_AT, source, line) for address, source, line in work.lines] == [
        (0, "/src/main.go", 20), (4, "/src/main.go", 21), (8, "/src/util.go", 5), (0xC, "/src/util.go", 2),
        (0x14, "/src/util.go", 6), (0x18, "/src/main.go", 22),
    ]  # fmt: skip
    (twice,) = work.inlines
    assert (twice.name, twice.ranges, twice.call_line) == ("util.Twice", ((WORK_AT + 8, WORK_AT + 0x18),), 21)
    (add,) = twice.children
    assert (add.name, add.ranges, add.call_line) == ("util.add", ((WORK_AT + 0xC, WORK_AT + 0x14),), 5)
    assert (last.name, last.inlines) == ("main.(*T).last", ())


# ---------------------------------------------------------------- where the tables are


@pytest.mark.parametrize("since", [2, 16, 18, 20])
@pytest.mark.parametrize("pie", [False, True])
@pytest.mark.parametrize(
    ("name", "before", "sections"),
    [
        (PCLNTAB, b"", True),
        (PCLNTAB_OF_PIE, b"", True),
        # What another linker makes of it: one section, in which there is more.
        (".data.rel.ro", bytes(64), True),
        (".rodata", b"\xf1\xff\xff\xff\0\0\1\x08".ljust(64, b"\xff"), True),
        (PCLNTAB, bytes(32), False),
    ],
)
def test_where_linkers_put_them(since: int, pie: bool, name: str, before: bytes, sections: bool) -> None:
    symbols = opened(program(since, pie=pie).elf(name, before=before, sections=sections))
    assert answers(symbols, list(EXPECTED)) == EXPECTED


def test_other_programs_are_not_searched_through() -> None:
    """A program of C that has the bytes of such a table."""
    data = program().elf(".rodata").replace(b".go.func", b".xx.func").replace(b".go.module", b".xx.module")
    symbols = opened(data)
    assert answers(symbols, [WORK_AT]) == {WORK_AT: []}
    assert symbols.gives == "the dynamic symbols"


# ---------------------------------------------------------------- where the code is of which they speak


@pytest.mark.parametrize("bits", [32, 64])
def test_since_go_1_26_the_module_says_where_the_code_begins(bits: int) -> None:
    assert answers(opened(program(bits=bits, header_text=False).elf()), list(EXPECTED)) == EXPECTED


def test_without_it_the_entry_point_does_and_inlined_calls_are_unknown() -> None:
    symbols = opened(program(header_text=False, module=False).elf())
    assert answers(symbols, list(EXPECTED)) == {at: without_calls(frames) for at, frames in EXPECTED.items()}


def test_without_that_functions_have_no_names_and_the_report_says_why() -> None:
    symbols = opened(program(header_text=False, module=False).elf(entry=WORK_AT))
    assert answers(symbols, [WORK_AT]) == {WORK_AT: []}
    assert symbols.problems == [(0, ".gopclntab: nothing tells where the code begins")]
    assert not symbols.has_lines


@pytest.mark.parametrize("since", [2, 16, 18, 20])
def test_calls_that_cannot_be_are_not_shown(since: int) -> None:
    """Names, lines and places of calls are looked at: what is inlined nowhere is not the array."""
    calls = [Call("util.Twice", MAIN, 21, -1, 0x1000), Call("util.add", UTIL, 5, 0, 0x1000)]
    functions = [ENTRY, WORK._replace(calls=calls), LAST]
    if since == 2:
        functions = [shifted(function) for function in functions]
    symbols = opened(GoProgram(functions, FILES, since).elf())
    assert answers(symbols, list(EXPECTED)) == {at: without_calls(frames) for at, frames in EXPECTED.items()}


# ---------------------------------------------------------------- other names


def test_a_symbol_goes_before_the_name_in_the_tables() -> None:
    """`go build -ldflags -w` keeps symbols, which have the types of generic functions; C has no others."""
    symbols = [("main.work[int]", WORK_AT, 0x30), ("c_function", BASE + 0x80, 0x20)]
    found = opened(program().elf(symbols=symbols))
    at = answers(found, [WORK_AT, WORK_AT + 0x08, LAST_AT])
    assert [frames[-1][0] for frames in at.values()] == ["main.work[int]", "main.work[int]", "main.(*T).last"]


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("since", one_in(2, [20, 18, 16, 2]))
def test_every_cut_is_read_or_refused(since: int) -> None:
    data = program(since).elf()
    for end in range(64, len(data), 7):
        try:
            symbols = opened(data[:end])
        except FormatError:
            continue
        assert set(answers(symbols, list(EXPECTED))) == set(EXPECTED)
        assert [function.start for function in symbols.functions()] == sorted(
            function.start for function in symbols.functions()
        )


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (0, b"\xf5", "it has another layout than those of Go 1.2 to 1.27"),
        (7, b"\x03", "it has another layout than those of Go 1.2 to 1.27"),
        (8, b"\xff\xff\xff\x7f", "it has no room for 2147483647 functions"),
        (32, b"\xff\xff\xff\x7f", "it has no room for 3 functions"),
    ],
)
def test_damaged_headers(at: int, value: bytes, problem: str) -> None:
    data = bytearray(program().elf())
    begin = data.index(b"\xf1\xff\xff\xff\0\0\1\x08")
    data[begin + at : begin + at + len(value)] = value
    symbols = opened(bytes(data))
    assert answers(symbols, [WORK_AT]) == {WORK_AT: []}
    assert symbols.problems == [(0, f".gopclntab: {problem}")]


# ---------------------------------------------------------------- Go itself

SOURCE = """package main

import (
	"fmt"
	"os"
	"sort"
)

type shape interface{ area() float64 }
type square struct{ side float64 }

func (s square) area() float64 { return times(s.side, s.side) }
func times(a, b float64) float64 { return a * b }

func each[T any](all []T, do func(T) float64) (sum float64) {
	for _, one := range all {
		sum += do(one)
	}
	return
}

func main() {
	names := append([]string{"b", "a"}, os.Args...)
	sort.Strings(names)
	shapes := []shape{square{2}, square{float64(len(names))}}
	fmt.Println(each(shapes, func(s shape) float64 { return s.area() }), names)
}
"""


# What Go has compiled of its own library is kept from one run to the next.
GO_CACHE = Path(__file__).parents[1] / "build" / "go"
GO_ENVIRONMENT = {"GOCACHE": str(GO_CACHE), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}


@pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")
@pytest.mark.parametrize("mode", one_in(2, ["exe", "pie"]))
def test_a_stripped_program_says_what_its_debug_information_says(tmp_path: Path, mode: str) -> None:
    """At every third byte of its code. Debug information has no functions in the space between functions, and not the
    inlined calls of functions that the compiler makes."""
    (tmp_path / "main.go").write_text(SOURCE)
    (tmp_path / "go.mod").write_text("module example.com/app\n\ngo 1.18\n")
    for name, flags in (("whole", ""), ("stripped", "-s -w")):
        command = ["go", "build", f"-buildmode={mode}", f"-ldflags={flags}", "-o", name, "."]
        subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, **GO_ENVIRONMENT})
    whole, stripped = (ElfSymbols(Binary(open_source(str(tmp_path / name)))) for name in ("whole", "stripped"))
    begin, end = whole.binary.code_ranges[0]
    addresses = np.arange(begin, end, 3).astype(np.uint64)
    by_debug, by_tables = whole.lookup(addresses), stripped.lookup(addresses)
    differ = 0
    for nth in np.flatnonzero(np.diff(by_debug.first)).tolist():
        one, other = ([shown(*frame) for frame in frames_of(found, nth)] for found in (by_debug, by_tables))
        differ += one != other
    assert differ < 0.001 * len(addresses)
    named = {name for nth in range(len(addresses)) for name, _, _ in frames_of(by_tables, nth)}
    assert {"main.main", "main.times", "main.each[...]", "main.square.area"} <= named


def shown(name: str, source: str, line: int) -> tuple[str, str, int]:
    """Symbols say which calling convention a function has, and the types of generic functions and arrays."""
    return re.sub(r"\[.*\]", "[...]", name.removesuffix(".abi0")), source.removeprefix("./"), line
