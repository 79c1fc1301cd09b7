"""ELF binaries as symbols: look-ups of many addresses at once say what a look-up of each says, and what symbolic
says."""

import io
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from builders.dwarf import (
    ADDR,
    CALL_FILE,
    CALL_LINE,
    FUNC,
    HASKELL,
    HIGH_PC,
    INLINED,
    LEXICAL_BLOCK,
    LINKAGE_NAME,
    LOW_PC,
    NAME,
    ORIGIN,
    RANGES,
    RUST,
    SUBPROGRAM,
    Die,
    Dwarf,
    Symbol,
    die,
)
from builders.gsym import SHT_PROGBITS, ElfPart, elf
from builders.xray import ENTER, EXIT, MACHINES, elf_with_instr_map
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from recordings import content, names, path_of

from traceferry.apps.cli.symbol_files import debug_bytes
from traceferry.common.errors import FormatError
from traceferry.files.source import Source, open_source
from traceferry.symbolication import binary as binary_module
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.build_id import build_id_of
from traceferry.symbolication.dwarf.debug_info import NAMELESS_CALLS
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.gsym.writer import write
from traceferry.symbolication.interface import Answer, Frames, look_up
from traceferry.symbolication.symbol_table import Texts
from traceferry.symbolication.symbol_versions import Order, hidden_versions, names_of_versions

PROGRAMS = names(r"\d+/.*")
SLEDS = [ENTER, EXIT]
FUNCTIONS = [("main", 0x2000, SLEDS), ("_Z4workiPKc", 0x3000, SLEDS), ("late", 0x3040, SLEDS)]


def opened(data: bytes, name: str = "app") -> ElfSymbols:
    return ElfSymbols(Binary(Source(name, memoryview(data))))


def text_of(frames: Frames, index: int) -> str:
    return frames.texts[index] if index >= 0 else ""


def stacks(found: Frames) -> list[list[tuple[str, str, int]]]:
    """Of each address, innermost first."""
    columns = zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    frames = [(text_of(found, name), text_of(found, source), line) for name, source, line in columns]
    return [frames[begin:end] for begin, end in zip(found.first[:-1], found.first[1:], strict=True)]


@pytest.mark.parametrize("machine", MACHINES)
def test_symbol_tables_of_every_shape(machine: str) -> None:
    """32 and 64 bit, both byte orders."""
    symbols = opened(elf_with_instr_map(FUNCTIONS, machine=machine))
    assert stacks(symbols.lookup(np.array([0x3001, 0x2000], np.uint64))) == [
        [("_Z4workiPKc", "", 0)],
        [("main", "", 0)],
    ]


def test_addresses_outside_have_no_frames() -> None:
    symbols = opened(elf_with_instr_map(FUNCTIONS, pie=False))
    found = symbols.lookup(np.array([0, symbols.base - 1, symbols.base + (1 << 32), (1 << 64) - 1], np.uint64))
    assert symbols.base > 0
    assert (found.first.tolist(), found.start.tolist(), found.size.tolist()) == ([0] * 5, [0] * 4, [0] * 4)


def test_no_address() -> None:
    assert opened(elf_with_instr_map(FUNCTIONS)).lookup(np.zeros(0, np.uint64)).first.tolist() == [0]


OBJECT, IFUNC = 1, 10  # STT_*
STARTS, SIZES = st.integers(0x1000, 0x1030), st.integers(0, 24)
KINDS = st.sampled_from([FUNC, FUNC, FUNC, OBJECT, IFUNC])
SYMBOL = st.builds(
    Symbol, st.sampled_from(["", "a", "b", "__c", "_Z1fv", "longer@@V1"]), STARTS, SIZES, KINDS,
    st.sampled_from([1, 1, 1, 0]), st.sampled_from([0, 1, 2]),
)  # fmt: skip


def best_name(symbols: Sequence[Symbol]) -> str:
    """As perf has it: not weak, global, few underscores in front, long; without a version."""

    def rank(one: Symbol) -> tuple[bool, bool, int, int]:
        name = one.name.split("@")[0]
        return one.bind != 2, one.bind == 1, len(name.lstrip("_")) - len(name), len(name)

    return max(symbols, key=rank).name.split("@")[0]


@examples(200)
@given(st.lists(SYMBOL, max_size=8), st.booleans(), st.booleans())
def test_symbol_tables_alone_say_what_symbolic_says(rows: list[Symbol], described: bool, big: bool) -> None:
    """Symbols that overlap, start together, have no size or no name; debug information of a part of the code. Of names
    of one function symbolic takes the first."""
    pytest.importorskip("symbolic")
    named = {row.address for row in rows if row.name}
    rows = [row for row in rows if row.name or row.address not in named]
    dwarf = Dwarf(5, big=big)
    if described:
        # symbolic lets a symbol end where a function without a symbol begins.
        rows = [row for row in rows if row.address >= 0x1018 or (row.size and row.address + row.size <= 0x1010)]
        dwarf.unit(die(SUBPROGRAM, {NAME: "described", LOW_PC: 0x1010, HIGH_PC: 8}), low_pc=0x1010, high_pc=8)
    data = dwarf.elf(rows)
    symbols = opened(data)
    addresses = np.arange(0xFF0, 0x1060, dtype=np.uint64)[::-1]
    found, wanted = symbols.lookup(addresses), look_up(addresses, answer_of_symbolic(data, symbols.base))
    for nth, (one, other) in enumerate(zip(stacks(found), stacks(wanted), strict=True)):
        start = int(wanted.start[nth])
        if described and 0x1010 <= addresses[nth] < 0x1018:
            # symbolic lets such a function end where a symbol in front of it does.
            start, other = 0x1010, [("described", "", 0)]
        assert found.start[nth] == start
        here = [row for row in rows if row.address == start and row.kind == FUNC and row.section == 1]
        names = [best_name(here)] if here and other else [name for name, _, _ in other]
        assert [name for name, _, _ in one] == names
        assert [place for _, *place in one] == [place for _, *place in other]


LABEL = 0
LABELS: dict[str, tuple[list[Symbol], dict[int, str]]] = {
    "alone": ([Symbol("spin", 0x1010, 0, LABEL), Symbol("next", 0x1018, 0, LABEL)],
              {0x100F: "", 0x1010: "spin", 0x1017: "spin", 0x1018: "next", 0x1FFF: "next"}),
    "ends a function without a size": ([Symbol("f", 0x1008, 0), Symbol("spin", 0x1010, 0, LABEL)],
                                       {0x1008: "f", 0x100F: "f", 0x1010: "spin", 0x1020: "spin"}),
    "inside of a function": ([Symbol("f", 0x1008, 16), Symbol("loop", 0x1010, 0, LABEL)], {0x1010: "f", 0x1018: ""}),
    "behind a function": ([Symbol("f", 0x1008, 8), Symbol("spin", 0x1010, 0, LABEL)], {0x100F: "f", 0x1010: "spin"}),
    "where a function is": ([Symbol("f", 0x1008, 0), Symbol("a_label", 0x1008, 0, LABEL)], {0x1008: "f"}),
    "of NASM inside of a label": ([Symbol("spin", 0x1010, 0, LABEL), Symbol("spin.again", 0x1018, 0, LABEL)],
                                  {0x1018: "spin"}),
    "of NASM inside of a function": ([Symbol("f", 0x1008, 0), Symbol("f.again", 0x1010, 0, LABEL)], {0x1010: "f"}),
    "of another with a dot": ([Symbol("f", 0x1008, 0), Symbol("g.h", 0x1010, 0, LABEL)], {0x1010: "g.h"}),
    "of compilers and linkers": ([Symbol("f", 0x1008, 0), Symbol(".L3", 0x1010, 0, LABEL),
                                  Symbol("$x", 0x1018, 0, LABEL)], {0x1010: "f", 0x1018: "f"}),
    "of no code": ([Symbol("f", 0x1008, 0), Symbol("end", 0x2000, 0, LABEL), Symbol("zero", 0x1010, 0, LABEL, 0)],
                   {0x1010: "f", 0x1FFF: "f", 0x2000: ""}),
    "the global one of two": ([Symbol("local", 0x1010, 0, LABEL, bind=0), Symbol("global", 0x1010, 0, LABEL)],
                              {0x1010: "global"}),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "wanted"), LABELS.values(), ids=LABELS)
def test_labels_of_assembler_name_code(rows: list[Symbol], wanted: dict[int, str]) -> None:
    """As perf has it; symbolic reads no labels. They are in a GSYM file that is made of it, too."""
    data = Dwarf(5).elf(rows)
    symbols, addresses = opened(data), np.array([*wanted], np.uint64)
    found = {
        at: stack[0][0] if stack else "" for at, stack in zip(wanted, stacks(symbols.lookup(addresses)), strict=True)
    }
    assert found == wanted
    labels = {row.name for row in rows if row.kind == LABEL}
    written = {one.name for one in symbols.functions()} & labels
    assert written == set(wanted.values()) & labels


VERSIONS = {
    "clock_gettime@@GLIBC_2.17": "clock_gettime", "memcpy@GLIBC_2.2.5": "memcpy", "f@": "f",
    "*Int32@Int#abs:Int32": "*Int32@Int#abs:Int32", "~proc@a/b.cr:3": "~proc@a/b.cr:3",
}  # fmt: skip


@pytest.mark.parametrize("name", VERSIONS)
def test_versions_are_not_in_names_but_types_of_crystal_are(name: str) -> None:
    symbols = opened(Dwarf(5).elf([Symbol(name, 0x1000, 16)]))
    assert stacks(symbols.lookup(np.array([0x1004], np.uint64))) == [[(VERSIONS[name], "", 0)]]


def answer_of_symbolic(data: bytes, base: int) -> Callable[[int], Answer]:
    from symbolic import Archive

    cache = next(Archive.from_bytes(data).iter_objects()).make_symcache()

    def answer(address: int) -> Answer:
        found = [frame for frame in cache.lookup(address - base) if frame.symbol] if address >= base else []
        start = found[-1].sym_addr + base if found else 0
        return Answer(start, 0, [(frame.symbol, frame.full_path or "", frame.line or 0) for frame in found])

    return answer


def test_files_without_debug_information_are_not_read_as_if_they_had_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traceferry.symbolication.dwarf.lookup.DwarfLookup", lambda *_: pytest.fail("it was read"))
    symbols = opened(elf_with_instr_map(FUNCTIONS))
    found = symbols.lookup(np.array([0x3000, 0x2000, 0x3000, 0x2000, 0x2000], np.uint64))
    assert [stack[0][0] for stack in stacks(found)] == ["_Z4workiPKc", "main", "_Z4workiPKc", "main", "main"]


def test_look_ups_of_many_are_those_of_each(tmp_path: Path) -> None:
    """At the start, middle and end of each function, and behind it; ids and processors, too, are those of symbolic."""
    from symbolic import Archive

    n_inlined = 0
    for name in PROGRAMS:
        symbols, data = program(name, tmp_path), content(name)
        bounds = sizes_of(symbols.binary).items()
        places = sorted({start + at for start, size in bounds for at in (0, size // 3, size // 2, size - 1, size)})
        asked = np.array(places, np.uint64)
        asked = asked[~symbols.table.are_stubs(asked)]
        found, wanted = symbols.lookup(asked), look_up(asked, symbols._dwarf.answer)
        for address, one, other in zip(asked.tolist(), stacks(found), stacks(wanted), strict=True):
            assert one == other, f"{name} {address:#x}"
            n_inlined += len(one) > 1
        assert (found.start == wanted.start).all()
        assert (found.size == wanted.size).all()
        assert symbols.problems == []
        archive = next(Archive.from_bytes(data).iter_objects())
        assert symbols.binary.arch == archive.arch
        if archive.code_id:
            debug_id = archive.debug_id.replace("-", "").upper() + "0"
            assert (symbols.binary.build_id, symbols.binary.debug_id) == (archive.code_id, debug_id)
    assert n_inlined > 100


def test_each_part_of_a_function_has_its_symbol_s_name() -> None:
    """Compilers move the code of f that hardly ever runs to f.cold, in front of all hot code. Of g that part has no
    symbol."""
    dwarf = Dwarf(5)
    f, g = (dwarf.ranges((hot, hot + 32), (cold, cold + 16)) for hot, cold in ((0x1100, 0x1000), (0x1200, 0x1010)))
    dwarf.unit(
        die(SUBPROGRAM, {NAME: "f", RANGES: f}), die(SUBPROGRAM, {NAME: "g", RANGES: g}), low_pc=0x1000, high_pc=0x220
    )
    data = dwarf.elf([Symbol("f", 0x1100, 32), Symbol("f.cold", 0x1000, 16), Symbol("g", 0x1200, 32)])
    addresses = np.array([0x1000, 0x100F, 0x1010, 0x1100, 0x111F, 0x1200], np.uint64)
    found = opened(data).lookup(addresses)
    assert [stack[-1][0] for stack in stacks(found)] == ["f.cold", "f.cold", "g", "f", "f", "g"]
    assert found.start.tolist() == [0x1000, 0x1000, 0x1010, 0x1100, 0x1100, 0x1200]


def with_nameless_calls(described: dict[int, Any]) -> Dwarf:
    """A function into which a call is inlined, in line 30, that refers to nothing, and into that a call of h."""
    dwarf = Dwarf()
    rows = dwarf.lines([(0x1000, 0, 20), (0x1004, 1, 24), (0x1006, 1, 25), (0x1008, 0, 21)], end=16)
    inner = die(INLINED, {NAME: "h", LOW_PC: 0x1006, HIGH_PC: 2, CALL_FILE: 1, CALL_LINE: 22})
    outer = die(INLINED, {ORIGIN: NOWHERE, LOW_PC: 0x1004, HIGH_PC: 4, CALL_FILE: 0, CALL_LINE: 30}, inner)
    function = die(SUBPROGRAM, {**described, LOW_PC: 0x1000, HIGH_PC: 16}, outer)
    return dwarf.unit(function, stmt_list=rows, low_pc=0x1000, high_pc=16)


NOWHERE = 0
BY_SYMBOL = [Symbol("f", 0x1000, 16)]


@pytest.mark.parametrize(("described", "symbols"), [({NAME: "f"}, []), ({ORIGIN: NOWHERE}, BY_SYMBOL)])
def test_what_is_inlined_without_a_name_is_a_part_of_its_caller(
    described: dict[int, Any], symbols: list[Symbol]
) -> None:
    """GCC describes calls and functions so with -flto and -gsplit-dwarf. The line is that of the call."""
    of_function, of_call, of_inner = ("f", "/src/a.cc", 20), ("f", "/src/a.cc", 30), ("h", "/src/b.h", 25)
    wanted = {0x1000: [of_function], 0x1005: [of_call], 0x1007: [of_inner, of_call], 0x1009: [("f", "/src/a.cc", 21)]}
    asked = np.array(list(wanted), np.uint64)
    elf_file = opened(with_nameless_calls(described).elf(symbols))
    out = io.BytesIO()
    write(out, elf_file.function_table(), uuid=b"", base=0x1000)
    alone = look_up(asked, elf_file._dwarf.answer)
    for found in (elf_file.lookup(asked), alone, Gsym(Source("f.gsym", memoryview(out.getvalue()))).lookup(asked)):
        assert stacks(found) == list(wanted.values())
        assert (found.start.tolist(), found.size.tolist()) == ([0x1000] * 4, [16] * 4)
    assert elf_file.problems == [(0, NAMELESS_CALLS)]


@pytest.mark.parametrize("missing", ["name", "calls"])
def test_nothing_is_said_of_calls_that_are_not_shown(missing: str) -> None:
    """A function that nothing names is none; one that calls nothing in what is asked for lacks nothing."""
    data = with_nameless_calls({ORIGIN: NOWHERE} if missing == "name" else {NAME: "f"}).elf()
    asked = np.array([0x1000, 0x1009], np.uint64)
    elf_file = opened(data)
    found = elf_file.lookup(asked)
    assert stacks(found) == stacks(look_up(asked, elf_file._dwarf.answer))
    assert found.size.tolist() == ([16, 16] if missing == "calls" else [0, 0])
    assert elf_file.problems == []


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("language", "wanted"), [
    (HASKELL, [["r4gw_info:7"], ["area':7"], ["Main_f_info:9"], ["area':8"], []]),
    (RUST, [["r4gw_info:7"], [], [], [], []]),
])  # fmt: skip
def test_blocks_of_functions_of_ghc_lie_outside_of_these(language: int, wanted: list[list[str]], at_once: bool) -> None:
    """A function has the addresses of its first block. A local one has no symbol."""
    dwarf = Dwarf(3)

    def block(low: int, *children: Die) -> Die:
        return die(LEXICAL_BLOCK, {NAME: "_c4Kh", LOW_PC: low, HIGH_PC: (ADDR, low + 8)}, *children)

    rows = [(0x1000, 1, 7), (0x1020, 1, 9), (0x1028, 1, 8)]
    local = {NAME: "area'", LINKAGE_NAME: "r4gw_info", LOW_PC: 0x1000, HIGH_PC: (ADDR, 0x1002)}
    exported = {NAME: "f", LINKAGE_NAME: "Main_f_info", LOW_PC: 0x1010, HIGH_PC: (ADDR, 0x1018)}
    dwarf.unit(
        die(SUBPROGRAM, local, block(0x1008, block(0x1028))), die(SUBPROGRAM, exported, block(0x1020)),
        language=language, low_pc=0x1000, high_pc=(ADDR, 0x1100), stmt_list=dwarf.lines(rows),
    )  # fmt: skip
    symbols = opened(dwarf.elf([Symbol("Main_f_info", 0x1010, 8)]))
    if not at_once:
        symbols._dwarf.__dict__["_bulk"] = None
    found = stacks(symbols.lookup(np.array([0x1001, 0x1008, 0x1020, 0x102F, 0x1030], np.uint64)))
    assert [[f"{name}:{line}" for name, _, line in frames] for frames in found] == wanted


VERSIONED = """
__attribute__((noinline)) int first(int n) { return n + 1; }
__attribute__((noinline)) int second(int n) { return n + 2; }
__attribute__((alias("second"))) int again(int n);
int lone_old(int n) { return n + 3; }
__asm__(".symver first,foo@V1"); __asm__(".symver again,foo@V2"); __asm__(".symver second,foo@@V3");
__asm__(".symver lone_old,lone@V1");
"""


@pytest.mark.parametrize("option", ["-Wl,--strip-all", "-Wl,--strip-debug", "-g"])
def test_a_function_of_an_old_version_is_another_than_the_one_of_its_name(option: str, tmp_path: Path) -> None:
    """Programs that were linked before call foo@V1, others foo@@V3. Where a name is one function's, it is the name."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    source, versions, library = (tmp_path / name for name in ("a.c", "a.map", "a.so"))
    source.write_text(VERSIONED)
    versions.write_text("V1 { global: foo; lone; local: *; }; V2 { global: foo; } V1; V3 { global: foo; } V2;")
    command = ["gcc", "-shared", "-fPIC", "-O1", option, f"-Wl,--version-script={versions}", source, "-o", library]
    subprocess.run(command, check=True, timeout=60)
    symbols = opened(library.read_bytes())
    found = symbols.lookup(symbols.table._start)
    names = {stack[-1][0] for stack in stacks(found) if stack}
    assert {name for name in names if name.startswith(("foo", "lone"))} == {"foo", "foo@V1", "lone"}


@pytest.mark.parametrize("order", ["<", ">"])
def test_versions_of_symbols(order: Order) -> None:
    versym = struct.pack(order + "4H", 0, 2, 0x8003, 0x8002)
    assert hidden_versions(versym, order, 4).tolist() == [0, 0, 3, 2]
    assert hidden_versions(versym[:-1], order, 4).tolist() == [0, 0, 3, 0], "cut off"
    one, two = (
        struct.pack(order + "4H3I2I", 1, 0, n, 1, 0, 20, following, 10 * n, 0) for n, following in ((2, 28), (3, 0))
    )
    assert names_of_versions(one + two, order) == {2: 20, 3: 30}
    assert names_of_versions((one + two)[:-8], order) == {2: 20}, "cut off"


@pytest.mark.parametrize("machine", MACHINES)
def test_every_shape_of_symbol_table(machine: str) -> None:
    symbols = opened(elf_with_instr_map(FUNCTIONS, machine=machine))
    asked = np.array([0x3001, 0x2000, 0, (1 << 64) - 1], np.uint64)
    assert stacks(symbols.lookup(asked)) == [[("_Z4workiPKc", "", 0)], [("main", "", 0)], [], []]


def program(name: str, folder: Path) -> ElfSymbols:
    path = folder / "program"
    path.write_bytes(content(name))
    return ElfSymbols(Binary(open_source(str(path))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_real_programs(name: str, tmp_path: Path) -> None:
    """Names, lines, inlined functions and starts at every function's start, middle and end: what symbolic says of each,
    but for functions with several names; sizes, and these names: what pyelftools says."""
    from symbolic import Archive

    symbols, data = program(name, tmp_path), content(name)
    archive = Archive.from_bytes(data)
    cache = next(archive.iter_objects()).make_symcache()
    sizes, symbols_at = sizes_of(symbols.binary), functions_of(symbols.binary)
    addresses = [start + offset for start, size in sizes.items() for offset in (0, size // 2, size - 1)]
    found = symbols.lookup(np.array(addresses, np.uint64))
    assert len(addresses) > 20
    for nth, (address, stack) in enumerate(zip(addresses, stacks(found), strict=True)):
        one = [frame for frame in cache.lookup(address - symbols.base) if frame.symbol]
        wanted = [(frame.symbol, frame.full_path or "", frame.line) for frame in one]
        start = one[-1].sym_addr + symbols.base if one else 0
        if start in symbols_at:
            old, best = wanted[-1][0], best_name(symbols_at[start])
            wanted = [(best if name == old else name, *place) for name, *place in wanted]
        assert stack == wanted
        assert (found.start[nth], found.size[nth]) == (start, sizes.get(start, 0))


def functions_of(binary: Binary) -> dict[int, list[Symbol]]:
    """Returns the symbols of functions by address, those of .symtab first."""
    from elftools.elf.elffile import ELFFile

    found: dict[int, list[Symbol]] = {}
    elf = ELFFile(io.BytesIO(binary.data))
    for table in filter(None, map(elf.get_section_by_name, (".symtab", ".dynsym"))):
        for row in table.iter_symbols():
            if row["st_info"]["type"] == "STT_FUNC" and isinstance(row["st_shndx"], int):
                bind = {"STB_LOCAL": 0, "STB_GLOBAL": 1, "STB_WEAK": 2}[row["st_info"]["bind"]]
                symbol = Symbol(row.name, row["st_value"], row["st_size"], bind=bind)
                found.setdefault(symbol.address, []).append(symbol)
    return found


def sizes_of(binary: Binary) -> dict[int, int]:
    longest = {start: max(symbol.size for symbol in symbols) for start, symbols in functions_of(binary).items()}
    return {start: size for start, size in longest.items() if size}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_build_id(name: str, tmp_path: Path) -> None:
    symbols = program(name, tmp_path)
    assert symbols.build_id == build_id_of(memoryview(content(name)))
    assert symbols.build_id


def test_names_and_paths_are_the_file_s() -> None:
    symbols = opened(elf_with_instr_map(FUNCTIONS), "folder/app.zst")
    assert (symbols.path, symbols.name) == ("folder/app.zst", "app")


def test_whole_functions(tmp_path: Path) -> None:
    path_of("19/pool-pie")
    found = {function.name: function for function in program("19/pool-pie", tmp_path).functions()}
    assert found["main"].size > 0
    assert any(function.inlines for function in found.values())


def test_damaged_symbol_tables_have_no_sizes() -> None:
    from elftools.elf.elffile import ELFFile

    whole = elf_with_instr_map(FUNCTIONS)
    symbols = opened(whole)
    at = ELFFile(io.BytesIO(symbols.binary.data)).get_section_by_name(".symtab").header
    damaged = bytearray(whole)
    row = whole.index(at["sh_offset"].to_bytes(8, "little") + at["sh_size"].to_bytes(8, "little"))
    damaged[row + 8 : row + 16] = b"\xff" * 7 + b"\x0f"
    found = opened(bytes(damaged)).lookup(np.array([0x2000], np.uint64))
    assert found.size.tolist() == [0]


@pytest.mark.parametrize(("at", "field"), [(40, "e_shoff"), (58, "e_shentsize"), (60, "e_shnum"), (62, "e_shstrndx")])
def test_damaged_section_headers(at: int, field: str) -> None:
    """Whatever is asked of the file, there is an answer, or none."""
    damaged = bytearray(elf_with_instr_map(FUNCTIONS))
    for value in (0, 1, 0x7FFF, 0xFFFF):
        damaged[at : at + 2] = value.to_bytes(2, "little")
        symbols = opened(bytes(damaged))
        assert len(symbols.lookup(np.array([0x1000, 0x2000], np.uint64)).first) == 3
        assert len([*symbols.functions()]) <= len(FUNCTIONS)
        assert debug_bytes(symbols.binary) == 0


def test_files_cut_anywhere() -> None:
    """Symbols or a FormatError."""
    from traceferry.common.errors import FormatError

    whole = elf_with_instr_map(FUNCTIONS)
    for cut in range(0, len(whole), 61):
        try:
            symbols = opened(whole[:cut])
        except FormatError:
            continue
        assert len(symbols.lookup(np.array([0x2000, 0x3000], np.uint64)).first) == 3


def compressed(size: int, kind: int | None, packed: bytes) -> bytes:
    """A file with symbols whose .debug_info declares so many bytes; kind: ELFCOMPRESS_*, None: a .zdebug section."""
    if kind is None:
        part = ElfPart(".zdebug_info", SHT_PROGBITS, b"ZLIB" + size.to_bytes(8, "big") + packed)
        return elf(part)
    data = bytearray(elf(ElfPart(".debug_info", SHT_PROGBITS, struct.pack("<IIQQ", kind, 0, size, 1) + packed)))
    headers_at = int.from_bytes(data[40:48], "little")
    data[headers_at + 64 + 8 : headers_at + 64 + 16] = (0x800).to_bytes(8, "little")  # SHF_COMPRESSED
    return bytes(data)


BOMB = zlib.compress(bytes(1 << 23), 9)
TOO_LARGE = {
    "more than any memory": (1 << 60, zlib.compress(b"abc")),
    "more than this machine's": (100 << 30, zlib.compress(b"abc")),
    "a thousand times as many": (1 << 23, BOMB),
    "not as many": (999, zlib.compress(b"abc")),
    "no zlib": (999, b"abc"),
}


@pytest.mark.parametrize("kind", [1, 2, 3, None])
@pytest.mark.parametrize("why", TOO_LARGE)
def test_compressed_sections_hold_no_more_than_their_bytes_can(why: str, kind: int | None) -> None:
    symbols = opened(compressed(TOO_LARGE[why][0], kind, TOO_LARGE[why][1]))
    assert len(symbols.lookup(np.array([0x1000], np.uint64)).name) == 0
    assert list(symbols.functions()) == []
    assert len(symbols.problems) == 1


def test_a_section_that_is_compressed_in_both_ways() -> None:
    """Its Elf64_Chdr declares nothing, the same bytes as those of a .zdebug section more than any memory."""
    data = bytearray(compressed(0, int.from_bytes(b"ZLIB", "little"), bytes(99)))
    data[data.index(b"ZLIB") + 4] = 0x7F
    symbols = opened(bytes(data))
    assert len(symbols.lookup(np.array([0x1000], np.uint64)).name) == 0
    assert list(symbols.functions()) == []


@pytest.mark.parametrize("kind", [1, 2, None])
def test_compressed_sections(kind: int | None) -> None:
    text = b"some text " * 9
    packed = zstandard.compress(text) if kind == 2 else zlib.compress(text)
    binary = opened(compressed(len(text), kind, packed)).binary
    section = binary.section(".zdebug_info" if kind is None else ".debug_info")
    assert section is not None
    assert bytes(section[1]) == text


@pytest.mark.parametrize("field", [(56, 2), (60, 2)])
def test_counts_of_headers_are_not_trusted(field: tuple[int, int]) -> None:
    """Neither e_phnum nor e_shnum."""
    at, size = field
    damaged = bytearray(elf_with_instr_map(FUNCTIONS))
    damaged[at : at + size] = b"\xf0\xff"
    with pytest.raises(FormatError, match="no room for 65520 headers"):
        _ = opened(bytes(damaged)).binary.section_headers


def test_names_that_are_the_same_bytes_are_cut() -> None:
    """Thousands of symbols whose names end together: 64 kB for each of 24."""
    texts = Texts(b"\0" + b"x" * 60_000 + b"\0")
    lengths = [len(texts.at(place)) for place in range(1, 1001)]
    assert lengths[0] == 60_000
    assert sum(lengths) < 17 * 60_000 + 1000 * 64


@pytest.mark.parametrize("error", [TypeError, AttributeError, AssertionError, KeyError])
def test_a_bug_is_no_damage(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise error

    for name in ("_name_at", "_headers"):
        with monkeypatch.context() as within:
            within.setattr(*((binary_module, name) if name == "_name_at" else (Binary, name)), fail)
            with pytest.raises(error):
                opened(elf_with_instr_map(FUNCTIONS)).lookup(np.array([0x2000], np.uint64))
