"""The program that a log is named after names its functions, if it can be the one that was recorded; of folders, what
fits is used."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from builders.xray import ENTER, EXIT, Fdr, elf_with_instr_map
from clients import clang
from streams import NS, START, fdr
from support import all_calls

import traceferry
from traceferry.common.report import Report
from traceferry.importers.xray.functions import Function, _category_name, _first_lines
from traceferry.model import Array, Trace
from traceferry.symbolication.interface import Answer, Frames, look_up

SLEDS = [ENTER, EXIT]
PROGRAM = elf_with_instr_map([("main", 0x2000, SLEDS), ("work", 0x3000, SLEDS)], pie=False)
SMALLER = elf_with_instr_map([("main", 0x2000, SLEDS)], pie=False)
NAMED, NUMBERED = ["main", "work"], ["function 1", "function 2"]
LOG = fdr("A B b a").bytes()
# When the log was written, in seconds since 1970.
WRITTEN = 1_000_000_000

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Writes a file below a folder of its own, so many seconds after the log; the working folder is another one."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def write(name: str, content: bytes = LOG, after: int = 0) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WRITTEN + after, WRITTEN + after))
        return path

    return write


def called(trace: Trace) -> list[str]:
    return [call.name for calls in all_calls(trace) for call in calls]


def details(trace: Trace) -> dict[str, str]:
    return {issue.kind: issue.detail for issue in trace.report}


@pytest.mark.parametrize(
    ("log", "program"),
    [
        ("logs/xray-log.app.Ab12_Z", "logs/app"),
        ("logs/xray-log.app.Ab12_Z", "here/app"),
        ("logs/xray-log.app.v1.2.Ab12xZ", "logs/app.v1.2"),
        ("logs/xray-log.app.Ab12xZ.gz", "logs/app"),
        ("logs/xray-log.app.Ab12xZ", "logs/app.gz"),
        ("logs/xray-log.app.Ab12xZ.xray", "logs/app"),
        ("logs/host.xray-log.app.Ab12xZ", "logs/app"),
        ("logs/app.Ab12xZ", "logs/app"),
        ("logs/run-3_app.Ab12xZ", "logs/app"),
        ("logs/app.xray", "logs/app"),
    ],
)
def test_the_program_of_a_log_is_used(put: Put, log: str, program: str) -> None:
    path = put(log, gzip.compress(LOG) if log.endswith(".gz") else LOG)
    beside = put(program, gzip.compress(PROGRAM) if program.endswith(".gz") else PROGRAM, after=-1)
    trace = traceferry.load(path)
    assert called(trace) == NAMED
    found = details(trace)
    place = beside.name if program.startswith("here") else str(beside)
    assert found["program_unverified"] == place
    assert f"of {place}" in found["symbols_used"]
    assert "program_unused" not in found
    assert trace.processes[0].name == beside.name.removesuffix(".gz")


@pytest.mark.parametrize(
    ("content", "after", "why"),
    [
        (PROGRAM, 1, "newer than the log"),
        (SMALLER, 0, "the recording has function 2, this binary's map ends at 1"),
        (b"#!/bin/sh\n", 0, "not a readable ELF"),
        (PROGRAM.replace(b"xray_instr_map", b"xray_instr_xxx"), 0, "it has no xray_instr_map"),
    ],
)
def test_a_program_that_cannot_be_it_is_named(put: Put, content: bytes, after: int, why: str) -> None:
    path, program = put("logs/xray-log.app.Ab12xZ"), put("logs/app", content, after)
    trace = traceferry.load(path)
    assert called(trace) == NUMBERED
    found = details(trace)
    assert found["program_unused"].startswith(f"{program}: {why}")
    assert "program_unverified" not in found


def test_a_second_place_is_looked_at(put: Put) -> None:
    path = put("logs/xray-log.app.Ab12xZ")
    put("logs/app", SMALLER)
    put("here/app", PROGRAM)
    trace = traceferry.load(path)
    assert called(trace) == NAMED
    assert "program_unused" not in details(trace)


def test_without_the_working_folder(put: Put) -> None:
    path = put("logs/xray-log.app.Ab12xZ")
    put("here/app", PROGRAM)
    trace = traceferry.load(path, options=traceferry.LoadOptions(search_working_folder=False))
    assert called(trace) == NUMBERED


def test_each_log_has_its_program(put: Put) -> None:
    log = Fdr(frequency=NS)
    log.buffer(9, 9, records=[log.new_cpu(0, START), log.enter(1, 1), log.exit(1, 1)])
    logs = [put("xray-log.app.Ab12xZ"), put("xray-log.tool.Ab12xZ", log.bytes()), put("xray-log.gone.Ab12xZ")]
    put("app", PROGRAM)
    put("tool", elf_with_instr_map([("run", 0x2000, SLEDS)], pie=False))
    trace = traceferry.load(logs[:2])
    assert sorted(called(trace)) == ["main", "run", "work"]
    assert {process.name: process.pid == 9 for process in trace.processes} == {"app": False, "tool": True}
    assert called(traceferry.load(logs[2])) == NUMBERED


def test_what_the_user_names_counts(put: Put) -> None:
    path = put("xray-log.app.Ab12xZ")
    put("app", PROGRAM)
    other = put("other", elf_with_instr_map([("one", 0x2000, SLEDS), ("two", 0x3000, SLEDS)], pie=False), after=9)
    trace = traceferry.load(path, symbols=other)
    assert called(trace) == ["one", "two"]
    assert "program_unverified" not in details(trace)


# ---------------------------------------------------------------- folders


def test_a_folder_may_hold_other_programs(put: Put) -> None:
    path = put("xray-log.app.Ab12xZ")
    chosen = put("build/bin/app", PROGRAM)
    tests = put("build/bin/a_test", PROGRAM)
    small = put("build/bin/small", SMALLER)
    trace = traceferry.load(path, symbols=path.parent / "build")
    assert called(trace) == NAMED
    found = details(trace)
    assert f"of {chosen}" in found["symbols_used"]
    assert f"{tests}: the log is of {chosen}" in found["symbols_unused"]
    assert f"{small}: the recording has function 2" in found["symbols_unused"]


def test_one_that_fits_needs_no_name(put: Put) -> None:
    path = put("some.log")
    put("build/app", PROGRAM)
    put("build/small", SMALLER)
    assert called(traceferry.load(path, symbols=path.parent / "build")) == NAMED
    put("build/more", PROGRAM)
    trace = traceferry.load(path, symbols=path.parent / "build")
    assert called(trace) == NUMBERED
    assert "several executables fit" in details(trace)["symbols_unused"]


def test_symbols_of_other_programs_in_a_folder(put: Put) -> None:
    path = put("xray-log.app.Ab12xZ")
    put("build/app", PROGRAM)
    other = put("build/lib.sym", b"MODULE Linux x86_64 000000000000000000000000000000000 lib\nFUNC 0 10 0 f\n")
    broken = put("build/zz", b"\x7fELF but no more")
    trace = traceferry.load(path, symbols=path.parent / "build")
    assert called(trace) == NAMED
    unused = details(trace)["symbols_unused"]
    assert f"{other}: of no binary of the log" in unused
    assert str(broken) in unused


@pytest.mark.skipif(shutil.which("cmake") is None or not clang.with_xray(), reason=f"{clang.WHY_NOT}, and cmake")
def test_a_build_folder_of_cmake(tmp_path: Path) -> None:
    (tmp_path / "app.cpp").write_text(
        "__attribute__((noinline)) int work(int n) { return n * 3; }\n"
        "int main(int n, char **) { return work(n) != 3; }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(p CXX)\n"
        "add_compile_options(-fxray-instrument -fxray-instruction-threshold=1 -g)\n"
        "add_link_options(-fxray-instrument)\n"
        "add_executable(app app.cpp)\nadd_executable(other app.cpp)\n"
    )  # fmt: skip
    build = tmp_path / "build"
    configure = ["cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_CXX_COMPILER={clang.with_xray()}"]
    for command in (configure, ["cmake", "--build", build]):
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    options = "patch_premain=true xray_mode=xray-basic xray_naive_log_func_duration_threshold_us=0"
    subprocess.run([build / "app"], cwd=tmp_path, env={"XRAY_OPTIONS": options}, check=True, timeout=60)
    (log,) = tmp_path.glob("xray-log.app.*")
    trace = traceferry.load(log, symbols=build)
    assert {"main", "work(int)"} <= set(called(trace))
    assert str(build / "app") in details(trace)["symbols_used"]


# ---------------------------------------------------------------- stripped programs


@pytest.mark.skipif(shutil.which("gcc") is None or shutil.which("objcopy") is None, reason="needs gcc and objcopy")
@pytest.mark.parametrize("given", [True, False])
def test_the_debug_file_of_a_stripped_program(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.setattr("traceferry.symbolication.debug_files.SYSTEM", os.sep)
    path = put("logs/xray-log.app.Ab12xZ")
    (tmp_path / "app.s").write_text(
        ".text\n.globl main\nmain: ret\n.local work\n.type work, @function\n.type main, @function\nwork: ret\n"
        ".size main, 1\n.size work, 1\n"
        '.section xray_instr_map, "a", @progbits\n'
        + "".join(f".quad {name} - .\n.quad {name} - .\n.byte 0, 1, 2\n.zero 13\n" for name in ("main", "work"))
    )
    program = tmp_path / "logs" / "app"
    commands = [
        ["gcc", "-g", "-Wl,--build-id", "-o", program, tmp_path / "app.s"],
        ["objcopy", "--only-keep-debug", program, f"{program}.dbg"],
        ["objcopy", "--strip-all", f"--add-gnu-debuglink={program}.dbg", program],
    ]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    os.utime(program, (WRITTEN, WRITTEN))
    trace = traceferry.load(path, symbols=program if given else ())
    assert called(trace) == NAMED
    assert "app.dbg" in details(trace)["symbols_used"]


# ---------------------------------------------------------------- what --symbols gave nothing


def test_files_that_gave_nothing_are_named(put: Put, tmp_path: Path) -> None:
    """Of a format whose recordings name their functions themselves."""
    from builders.jitdump import JitDump

    dump = put("jit-7.dump", JitDump(pid=7).load("f", 0x1000).bytes())
    notes, program, empty = put("notes.txt", b"text"), put("app", PROGRAM), tmp_path / "empty"
    empty.mkdir()
    trace = traceferry.load(dump, symbols=[notes, program, empty])
    unused = next(issue for issue in trace.report if issue.kind == "symbols_unused")
    assert unused.details == (
        f"{notes}: not a readable ELF, GSYM, Breakpad, Mach-O, PE or PDB file",
        f"{program}: nothing that was recorded is of its build, which is unknown",
        f"{empty}: it has no file of symbols",
    )


def test_compare_names_what_gave_nothing_to_any_recording(put: Put, capsys: pytest.CaptureFixture[str]) -> None:
    from traceferry.apps import cli

    base, new = put("base/xray-log.app.Ab12xZ"), put("new/xray-log.app.Ab12xZ")
    put("base/app", PROGRAM)
    folder = base.parent.parent / "empty"
    folder.mkdir()
    symbols = put("build/app", PROGRAM)
    words = ["compare", base, new, "--symbols", folder, "--new-symbols", symbols]
    assert cli.main([str(word) for word in words]) == 0
    said = capsys.readouterr().err
    assert f"{folder}: it has no file of symbols [symbols_unused, 1 time]" in said
    assert str(symbols) not in said


def test_aggregate_names_files_that_are_no_symbols(put: Put, capfd: pytest.CaptureFixture[str]) -> None:
    from traceferry.apps.cli.aggregate import _print_unreadable

    notes, program = put("notes.txt", b"text"), put("app", PROGRAM)
    _print_unreadable([str(notes), str(program)])
    said = capfd.readouterr().err
    assert f"{notes}: not a readable ELF, GSYM, Breakpad, Mach-O, PE or PDB file" in said
    assert str(program) not in said


def test_each_advice_of_a_kind_is_given() -> None:
    """As where the packages that name two libraries differ."""
    report = Report()
    for name in ("libc6-dbg", "libz-dbgsym", "libc6-dbg"):
        report.note("names_partly_missing", where=f"{name} {len(list(report))}", advice=f"install {name}")
    (issue,) = report
    assert issue.advice == "install libc6-dbg; install libz-dbgsym"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("/home/x/app/main.cpp", ("folder", "x/app")),
        ("/usr/src/app/main.cpp", ("folder", "src/app")),
        ("/usr/src/app/lib/main.cpp", ("folder", "app/lib")),
        ("/opt/build/app/main.cpp", ("folder", "build/app")),
        ("/usr/include/c++/12/bits/stl_map.h", ("cpp", "C++ library")),
        ("/usr/include/boost/any.hpp", ("rest", "Other")),
        ("/opt/homebrew/include/fmt/core.h", ("rest", "Other")),
        ("/usr/lib/llvm-19/lib/clang/19/include/immintrin.h", ("rest", "Other")),
        ("/nix/store/abc-boost/include/boost/any.hpp", ("rest", "Other")),
        ("/usr/src/debug/zlib/inflate.c", ("rest", "Other")),
        ("", ("rest", "Other")),
    ],
)
def test_a_program_is_the_users_wherever_it_is_built(source: str, wanted: tuple[str, str]) -> None:
    """In containers often below /usr/src or /opt."""
    assert _category_name(Function(1, None, None, "work", source, 7)) == wanted


class Lines:
    """Functions of 512 bytes, one behind the other: line 0 up to an offset, line 7 behind it."""

    def __init__(self, offsets: list[int]) -> None:
        self.offsets = offsets

    def lookup(self, addresses: Array) -> Frames:
        return look_up(addresses, self._answer)

    def _answer(self, address: int) -> Answer:
        nth, offset = divmod(address, 512)
        line = 7 if offset >= self.offsets[nth] else 0
        return Answer(512 * nth, 512, [(f"function {nth}", "a.c", line)])


@pytest.mark.parametrize("inside", [0, 400])
def test_the_first_line_behind_code_of_line_0(inside: int) -> None:
    """At every offset within reach, in steps of eight; never the line of the next function."""
    offsets = [*range(1, 300)]
    lines = Lines([offset + inside for offset in offsets] + [0])
    starts = 512 * np.arange(len(offsets), dtype=np.uint64) + np.uint64(inside)
    names = np.array([f"function {nth}" for nth in range(len(offsets))], object)
    wanted = [7 if offset <= min(248, (511 - inside) // 8 * 8) else 0 for offset in offsets]
    assert _first_lines(lines, starts, names).tolist() == wanted
