"""Debug information that is in more than one file: what `dwz` moved to a file that several share, split units in .dwo
files and .dwp packages."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from builders.dwarf import (
    ADDRX,
    CALL_FILE,
    CALL_LINE,
    DECL_FILE,
    DECL_LINE,
    GNU_REF_ALT,
    GNU_STRP_ALT,
    HIGH_PC,
    INLINED,
    LOW_PC,
    NAME,
    ORIGIN,
    RANGES,
    REF_SUP4,
    RNGLISTX,
    SKELETON,
    SPLIT,
    STRP_SUP,
    STRX,
    SUBPROGRAM,
    Dwarf,
    Symbol,
    die,
)
from builders.perf_data import PerfData
from support import load_checked

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.source import open_source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.choose import completes_others, files_in_folder, open_symbols
from traceferry.symbolication.debug_files import DebugFiles
from traceferry.symbolication.dwarf.columns import described_functions
from traceferry.symbolication.dwarf.debug_info import DebugInfo, debug_info
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.function_table import Texts, table_of
from traceferry.symbolication.interface import Function, look_up

Stack = list[tuple[str, str, int]]

BUILD_ID = bytes(range(20))
HEADER = """
namespace shared {
inline __attribute__((always_inline)) int scale(int x) { return x * 7 + (x >> 3); }
extern "C" inline __attribute__((always_inline)) int plain(int x) { volatile int k = x * 3; return k; }
struct Box { int n; inline __attribute__((always_inline)) int twice() const { return scale(n) * 2 + plain(n); } };
}
"""
ONE = """#include "shared.h"
int other(int n);
static inline __attribute__((always_inline)) int mix(int a) {
  int s = 0;
  for (int i = 0; i < a; i++) s += shared::scale(i ^ a);
  return s;
}
namespace { __attribute__((noinline)) int hidden(int n) { if (n > 5) throw n; return mix(n) + 1; } }
int main(int argc, char** argv) { return hidden(argc) + other(argc) + shared::Box{argc}.twice(); }
"""
OTHER = """#include "shared.h"
int other(int n) { volatile int k = n; return shared::Box{k}.twice() + shared::scale(k); }
"""


def stacks_of(symbols: ElfSymbols, addresses: np.ndarray) -> list[Stack]:
    found = symbols.lookup(addresses)
    texts = [*found.texts, ""]
    frames = [
        (texts[name], texts[source], line)
        for name, source, line in zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    ]
    first = found.first.tolist()
    return [frames[begin:end] for begin, end in pairwise(first)]


def opened(path: Path, report: Report, folders: tuple[str, ...] = ()) -> ElfSymbols:
    symbols = open_symbols(open_source(str(path)), DebugFiles(report, ["/"], folders).beside(str(path)))
    assert isinstance(symbols, ElfSymbols)
    return symbols


def code_of(symbols: ElfSymbols) -> np.ndarray:
    found = symbols.binary.section(".text")
    assert found is not None
    return np.arange(found[0], found[0] + len(found[1]), dtype=np.uint64)


def check_columns(symbols: ElfSymbols) -> list[Function]:
    """Compiled code reads all units, and says of them what the reader of single units says, which shares none. Returns
    the functions that they describe."""
    lost: list[FormatError] = []
    described, alone = (debug_info(symbols.binary, lost.append, symbols.linked) for _ in range(2))
    assert described is not None
    assert alone is not None
    leave_to_compiled_code(described)
    found = list(described_functions(described, Texts()).functions())
    assert found == list(table_of(alone.functions()).functions())
    assert lost == []
    return found


def leave_to_compiled_code(info: DebugInfo) -> None:
    """Lets the test fail where a unit or a name is read by the reader of single units."""
    for name in ("functions_of", "name_of", "qualified"):
        setattr(info, name, lambda *_: pytest.fail("a unit was read one by one"))


def missing(report: Report) -> list[str]:
    return [issue.detail for issue in report if issue.kind == "debug_files_missing"]


def needed(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def compiled(folder: Path, compiler: str, version: int, *options: str) -> Path:
    """Builds app in the folder, of which the sources are in another."""
    needed(compiler)
    sources = folder.parent / "src"
    sources.mkdir(exist_ok=True)
    folder.mkdir()
    for name, text in {"shared.h": HEADER, "one.cc": ONE, "other.cc": OTHER}.items():
        (sources / name).write_text(text)
    for name in ("one", "other"):
        flags = ["-O2", f"-gdwarf-{version}", *options, "-c", f"../src/{name}.cc", "-o", f"{name}.o"]
        subprocess.run([compiler, *flags], cwd=folder, check=True, timeout=60)
    link = [compiler, "one.o", "other.o", "-o", "app", "-Wl,--build-id"]
    subprocess.run(link, cwd=folder, check=True, timeout=60)
    return folder / "app"


@pytest.fixture(scope="module", params=[f"{c} {v}" for c in ("g++", "clang++-19") for v in (4, 5)])
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Returns a program with its debug information, and the same with split units."""
    compiler, version = request.param.split()
    folder = tmp_path_factory.mktemp("split")
    whole = compiled(folder / "whole", compiler, int(version), "-g")
    return whole, compiled(folder / "split", compiler, int(version), "-g", "-gsplit-dwarf")


def expected(whole: Path) -> tuple[np.ndarray, list[Stack]]:
    """Returns addresses, and what the reader of one file says of them."""
    symbols = opened(whole, Report())
    addresses = code_of(symbols)
    alone = ElfSymbols(symbols.binary)
    alone.lookup = lambda wanted: look_up(wanted, alone._dwarf.answer)  # type: ignore[method-assign]
    stacks = stacks_of(alone, addresses)
    assert max(map(len, stacks)) >= 3
    return addresses, [[(name, source.replace("/whole", "/split"), line) for name, source, line in s] for s in stacks]


def test_split_units_beside_the_objects(programs: tuple[Path, Path], tmp_path: Path) -> None:
    whole, split = programs
    addresses, wanted = expected(whole)
    # The program is elsewhere, its .dwo files are where the compiler wrote them.
    moved = shutil.copy(split, tmp_path / "app")
    report = Report()
    symbols = opened(Path(moved), report)
    assert stacks_of(symbols, addresses) == wanted
    assert (missing(report), list(symbols.problems)) == ([], [])
    assert check_columns(symbols)
    # What is written as GSYM says the same.
    inlined = {call.name for function in symbols.functions() for call in function.inlines}
    assert {"mix", "_ZNK6shared3Box5twiceEv"} <= inlined or {"mix", "shared::Box::twice"} <= inlined or {
        "_ZL3mixi", "_ZNK6shared3Box5twiceEv"
    } <= inlined  # fmt: skip


@pytest.mark.parametrize("place", ["beside", "below a folder of symbols"])
def test_a_package(programs: tuple[Path, Path], tmp_path: Path, place: str) -> None:
    whole, split = programs
    is_clang = "clang" in subprocess.run(["readelf", "-p", ".comment", split], capture_output=True, text=True).stdout
    is_new = (
        "Version:       5"
        in subprocess.run(["readelf", "--debug-dump=info", split], capture_output=True, text=True).stdout
    )
    if is_new and not is_clang:
        pytest.skip("neither LLVM's dwp 19 nor binutils' 2.40 can pack what GCC 12 writes as DWARF 5")
    dwp = "llvm-dwp-19" if is_clang else "dwp"
    needed(dwp)
    addresses, wanted = expected(whole)
    away = tmp_path / "app"
    away.write_bytes(split.read_bytes().replace(os.fsencode(split.parent), b"/" * len(os.fsencode(split.parent))))
    wanted = [[(n, s.replace(str(split.parent), "/"), line) for n, s, line in stack] for stack in wanted]
    folder = tmp_path if place == "beside" else tmp_path / "symbols" / "below"
    folder.mkdir(parents=True, exist_ok=True)
    package = str(folder / "app.dwp")
    subprocess.run([dwp, "-e", str(split), "-o", package], cwd=split.parent, check=True, timeout=60)
    report = Report()
    symbols = opened(away, report, (str(tmp_path / "symbols"),))
    names = [[(name, line) for name, _, line in stack] for stack in stacks_of(symbols, addresses)]
    assert names == [[(name, line) for name, _, line in stack] for stack in wanted]
    assert missing(report) == []
    assert check_columns(symbols)


def test_a_package_of_the_user_s_debug_file_may_be_beside_the_recorded_path(tmp_path: Path) -> None:
    needed("dwp", "g++", "objcopy", "strip")
    split = compiled(tmp_path / "split", "g++", 4, "-g", "-gsplit-dwarf")
    recorded, given = tmp_path / "installed" / "app", tmp_path / "given" / "app.debug"
    for folder in (recorded.parent, given.parent):
        folder.mkdir()
    commands = [
        ["dwp", "-e", split, "-o", recorded.with_name("app.dwp")],
        ["objcopy", "--only-keep-debug", split, given],
    ]
    for command in [*commands, ["strip", "-o", recorded, split]]:
        subprocess.run([str(part) for part in command], cwd=split.parent, check=True, timeout=60)
    for unit in split.parent.rglob("*.dwo"):
        unit.unlink()
    binary = Binary(open_source(str(given)))
    text = next(section for section in binary.sections if section.name == ".text")
    data = PerfData().event("cpu-clock", freq=997).comm(7, 7, "app")
    build_id = bytes.fromhex(binary.build_id)
    data.mmap2(7, 7, 0x40000000, text.address + text.size, 0, str(recorded), build_id=build_id)
    for at in range(text.size):
        data.sample(7, 7, ip=0x40000000 + text.address + at)
    path = tmp_path / "perf.data"
    path.write_bytes(data.bytes())
    trace = load_checked(path, symbols=[given])
    named = {trace.strings[name] for name in trace.funcs["name"]}
    assert any("Box::twice" in name for name in named)
    assert missing(trace.report) == []


def test_split_units_that_are_not_here(programs: tuple[Path, Path], tmp_path: Path) -> None:
    """Names and lines are then those of the symbol table and the linked file."""
    whole, split = programs
    addresses, wanted = expected(whole)
    away = tmp_path / "app"
    away.write_bytes(split.read_bytes().replace(os.fsencode(split.parent), b"/" * len(os.fsencode(split.parent))))
    report = Report()
    symbols = opened(away, report)
    found = stacks_of(symbols, addresses)
    assert {len(stack) for stack in found} <= {0, 1}
    outermost = [stack[-1][0] for stack in wanted if stack]
    assert [stack[0][0] for stack in found if stack] == outermost
    assert [stack[0][2] for stack in found if stack] == [stack[0][2] for stack in wanted if stack]
    assert len(missing(report)) >= 1
    assert "one.dwo (id " in missing(report)[0]
    check_columns(symbols)


@pytest.mark.parametrize("options", [["g++", "4", "dwz"], ["clang++-19", "4", "dwz"], ["g++", "5", "dwz", "--dwarf-5"]])
def test_what_dwz_shares(tmp_path: Path, options: list[str]) -> None:
    compiler, version, *dwz = options
    needed("dwz", compiler)
    whole = compiled(tmp_path / "whole", compiler, int(version), "-g")
    addresses, wanted = expected(whole)
    folder = tmp_path / "split"
    folder.mkdir()
    for name in ("app", "app2"):
        shutil.copy(whole, folder / name)
    subprocess.run([*dwz, "-m", "common.debug", "app", "app2"], cwd=folder, check=True, timeout=60)
    wanted = [[(name, source.replace("/split", "/whole"), line) for name, source, line in s] for s in wanted]
    report = Report()
    symbols = opened(folder / "app", report)
    assert symbols._dwarf._info is not None
    leave_to_compiled_code(symbols._dwarf._info)
    assert stacks_of(symbols, addresses) == wanted
    assert (missing(report), list(symbols.problems)) == ([], [])
    assert check_columns(symbols)
    shutil.move(folder / "common.debug", tmp_path / "common.debug")
    assert stacks_of(opened(folder / "app", report, (str(tmp_path),)), addresses) == wanted
    assert missing(report) == []
    # Without it the symbols' names are there.
    symbols = opened(folder / "app", report)
    found = stacks_of(symbols, addresses)
    assert [stack[-1][0] for stack in found if stack] == [stack[-1][0] for stack in wanted if stack]
    assert "common.debug (with the build id " in missing(report)[0]
    check_columns(symbols)


# ---------------------------------------------------------------- built


def shared_file(is_new: bool) -> tuple[bytes, int]:
    """Returns (a file that several share, where its function's entry is)."""
    shared = Dwarf(5 if is_new else 4)
    shared.add(".debug_str", b"\0moved\0")
    shared.unit(die(SUBPROGRAM, {NAME: "inlined"}, label="f"))
    if is_new:
        shared.add(".debug_sup", b"\5\0\1\0\x14" + BUILD_ID)
    else:
        shared.add(".note.gnu.build-id", struct.pack("<III4s", 4, 20, 3, b"GNU\0") + BUILD_ID)
    return shared.elf(), shared._labels["f"]


@pytest.mark.parametrize("is_new", [False, True])
def test_references_to_a_shared_file(tmp_path: Path, is_new: bool) -> None:
    data, at = shared_file(is_new)
    (tmp_path / "common").write_bytes(data)
    text, reference = (STRP_SUP, REF_SUP4) if is_new else (GNU_STRP_ALT, GNU_REF_ALT)
    call = die(INLINED, {ORIGIN: (reference, at), LOW_PC: 0x1004, HIGH_PC: 4, CALL_FILE: 1, CALL_LINE: 9})
    main = Dwarf(5 if is_new else 4)
    main.unit(die(SUBPROGRAM, {NAME: (text, 1), LOW_PC: 0x1000, HIGH_PC: 16}, call))
    if is_new:
        main.add(".debug_sup", b"\5\0\0common\0\x14" + BUILD_ID)
    else:
        main.add(".gnu_debugaltlink", b"common\0" + BUILD_ID)
    (tmp_path / "app").write_bytes(main.elf())
    report = Report()
    symbols = opened(tmp_path / "app", report)
    at_call = np.array([0x1000, 0x1005], np.uint64)
    assert [[frame[0] for frame in stack] for stack in stacks_of(symbols, at_call)] == [["moved"], ["inlined", "moved"]]
    assert check_columns(symbols)
    # The one of another build is not it.
    (tmp_path / "common").write_bytes(data.replace(BUILD_ID, bytes(20)))
    symbols = opened(tmp_path / "app", report)
    assert stacks_of(symbols, at_call) == [[], []]
    assert len(missing(report)) == 1


def test_a_declaration_in_a_shared_file(tmp_path: Path) -> None:
    """Its file is one of the shared file's lines."""
    shared, main = Dwarf(4), Dwarf(4)
    lines = shared.lines(files=[("own.c", 0), ("shared.c", 0)])
    function = die(SUBPROGRAM, {NAME: "f", DECL_FILE: 2, DECL_LINE: 7}, label="f")
    shared.unit(function, stmt_list=lines, comp_dir="/build")
    shared.add(".note.gnu.build-id", struct.pack("<III4s", 4, 20, 3, b"GNU\0") + BUILD_ID)
    main.unit(die(SUBPROGRAM, {ORIGIN: (GNU_REF_ALT, shared._labels["f"]), LOW_PC: 0x1000, HIGH_PC: 16}))
    main.add(".gnu_debugaltlink", b"common\0" + BUILD_ID)
    (tmp_path / "common").write_bytes(shared.elf())
    (tmp_path / "app").write_bytes(main.elf())
    (found,) = check_columns(opened(tmp_path / "app", Report()))
    assert (found.name, found.lines) == ("f", [(0x1000, "/build/shared.c", 7)])


def split_pair(split_id: int = 0x1234_5678_9ABC_DEF0) -> tuple[Dwarf, Dwarf]:
    """Returns (the linked file, that of the split unit): addresses, names and ranges by index."""
    main, split = Dwarf(5), Dwarf(5)
    main.add(".debug_addr", bytes(8) + main.pack("QQ", 0x1000, 0x1100))
    main.unit(kind=SKELETON, split_id=split_id, dwo_name="a.dwo", addr_base=8, low_pc=0x1000, high_pc=0x200)
    split.add(".debug_str", b"\0f\0g\0")
    split.add(".debug_str_offsets", bytes(8) + split.pack("III", 0, 1, 3))
    split.add(".debug_rnglists", bytes(12) + split.pack("I", 4) + b"\x03\x01\x10\0")
    split.unit(
        die(SUBPROGRAM, {NAME: (STRX, 1), LOW_PC: (ADDRX, 0), HIGH_PC: 16}),
        die(SUBPROGRAM, {NAME: (STRX, 2), RANGES: (RNGLISTX, 0)}),
        kind=SPLIT, split_id=split_id,
    )  # fmt: skip
    return main, split


def package_of(split: Dwarf, split_id: int, version: int = 5) -> bytes:
    """Returns a package of one unit, before whose pieces something else stands."""
    columns = {1: ".debug_info", 3: ".debug_abbrev", 6: ".debug_str_offsets", 8: ".debug_rnglists"}
    sizes = [len(split.sections[name]) for name in columns.values()]
    for name in columns.values():
        split.sections[name] = b"\xff" * 7 + split.sections[name]
    index = struct.pack("<HHIII", version, 0, len(columns), 1, 2) + struct.pack("<QQII", 0, split_id, 0, 1)
    index += struct.pack("<12I", *columns, *[7] * 4, *sizes)
    return split.elf(suffix=".dwo", plain={".debug_cu_index": index})


ASKED = np.array([0x1004, 0x1104, 0x1180], np.uint64)
BY_SYMBOLS = [["s"], ["s"], ["s"]]
SYMBOLS = [Symbol("s", 0x1001, 0x1FF)]


def names_in(folder: Path, files: Mapping[str, bytes]) -> tuple[list[list[str]], Report, ElfSymbols]:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    report = Report()
    symbols = opened(folder / "app", report)
    return [[frame[0] for frame in stack] for stack in stacks_of(symbols, ASKED)], report, symbols


@pytest.mark.parametrize("kind", ["dwo", "dwp"])
def test_indices_in_split_units(tmp_path: Path, kind: str) -> None:
    main, split = split_pair()
    data = split.elf(suffix=".dwo") if kind == "dwo" else package_of(split, 0x1234_5678_9ABC_DEF0)
    name = "a.dwo" if kind == "dwo" else "app.dwp"
    found, report, symbols = names_in(tmp_path, {"app": main.elf(SYMBOLS), name: data})
    assert found == [["f"], ["g"], ["s"]]
    assert (missing(report), list(symbols.problems)) == ([], [])
    assert check_columns(symbols)
    assert sorted(function.name for function in symbols.functions()) == ["f", "g", "s"]


def test_several_units_in_one_file(tmp_path: Path) -> None:
    """As link time optimization makes them."""
    main, split = Dwarf(5), Dwarf(5)
    main.add(".debug_addr", bytes(8) + main.pack("QQ", 0x1000, 0x1100))
    for nth, name in enumerate("fg"):
        main.unit(kind=SKELETON, split_id=nth, dwo_name="a.dwo", addr_base=8)
        split.unit(die(SUBPROGRAM, {NAME: name, LOW_PC: (ADDRX, nth), HIGH_PC: 16}), kind=SPLIT, split_id=nth)
    found, report, symbols = names_in(tmp_path, {"app": main.elf(SYMBOLS), "a.dwo": split.elf(suffix=".dwo")})
    assert found == [["f"], ["g"], ["s"]]
    assert missing(report) == []
    assert [(function.name, function.start) for function in check_columns(symbols)] == [("f", 0x1000), ("g", 0x1100)]


def test_a_split_unit_of_another_build(tmp_path: Path) -> None:
    main, _ = split_pair(1)
    _, split = split_pair(2)
    found, report, _ = names_in(tmp_path, {"app": main.elf(SYMBOLS), "a.dwo": split.elf(suffix=".dwo")})
    assert found == BY_SYMBOLS
    assert missing(report) == [
        f"app: a.dwo (with the id 0000000000000001; here of another build: {tmp_path / 'a.dwo'})"
    ]


def test_every_cut_of_a_package(tmp_path: Path) -> None:
    """Whatever is left of the index and the sections, the look-up ends, with the symbols' names at least."""
    main, split = split_pair()
    data = package_of(split, 0x1234_5678_9ABC_DEF0)
    index_at = data.index(struct.pack("<HHIII", 5, 0, 4, 1, 2))
    said = set()
    for at in range(index_at, index_at + 88):
        changed = data[:at] + b"\xff" + data[at + 1 :]
        found, report, symbols = names_in(tmp_path, {"app": main.elf(SYMBOLS), "app.dwp": changed})
        assert all(names in (["s"], [name]) for names, name in zip(found, "fgs", strict=True))
        said.update(message for _, message in symbols.problems)
        if found[:2] != [["f"], ["g"]]:
            assert missing(report) or symbols.problems
    assert "a unit's piece ends beyond the section" in said
    assert "version 255 of the index is not supported" in said


def test_many_skeletons_of_one_unit_are_bounded(tmp_path: Path) -> None:
    """Each reads the unit again: the work that this makes is counted."""
    main, split = Dwarf(5), Dwarf(5)
    for nth in range(500):
        main.unit(kind=SKELETON, split_id=7, dwo_name="a.dwo", low_pc=0x1000 + nth, high_pc=1)
    split.unit(
        *[die(SUBPROGRAM, {NAME: f"f{nth}", LOW_PC: 0x1000, HIGH_PC: 1}) for nth in range(500)], kind=SPLIT, split_id=7
    )
    main.add(".debug_addr", bytes(16))
    (tmp_path / "app").write_bytes(main.elf())
    (tmp_path / "a.dwo").write_bytes(split.elf(suffix=".dwo"))
    symbols = opened(tmp_path / "app", Report())
    assert 500 <= len(list(symbols.functions())) < 50_000
    assert {message for _, message in symbols.problems} == {"the debug information refers to the same bytes too often"}


def test_parts_are_not_symbols_of_libraries(tmp_path: Path) -> None:
    main, split = split_pair()
    (tmp_path / "app").write_bytes(main.elf())
    (tmp_path / "a.dwo").write_bytes(split.elf(suffix=".dwo"))
    (tmp_path / "b").write_bytes(split.elf(suffix=".dwo"))
    assert files_in_folder(str(tmp_path)) == [str(tmp_path / "app"), str(tmp_path / "b")]
    are_parts = [completes_others(opened(tmp_path / name, Report()).binary) for name in ("app", "b")]
    assert are_parts == [False, True]
