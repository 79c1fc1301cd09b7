"""Which file of symbols names which library; and that importers say the same with every kind of them."""

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders.breakpad import BUILD_ID, DEBUG_ID, SymFile
from builders.gsym import GsymFile
from builders.xray import ENTER, EXIT, Fdr, elf_with_instr_map
from recordings import binaries_of, content, loaded, path_of
from streams import fdr
from support import all_calls, load_checked, report_of
from test_perf_map import Elf, context_with, program, read, running, stacks  # noqa: F401 - a fixture
from test_perf_map import reported as reported_of_perf

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Trace, laws
from traceferry.symbolication.breakpad.reader import Breakpad
from traceferry.symbolication.choose import SymbolIndex, is_same_build, library_name, open_symbols, symbol_files
from traceferry.symbolication.demangle import shown_path
from traceferry.symbolication.elf import ElfSymbols
from traceferry.symbolication.gsym.reader import Gsym

SLEDS = [ENTER, EXIT]
OTHER_ID = "ff" * 20


# ---------------------------------------------------------------- kinds of files

FILES = {
    "elf": (elf_with_instr_map([("main", 0x2000, SLEDS)]), ElfSymbols),
    "gsym": (GsymFile().bytes(), Gsym),
    "gsym-big": (GsymFile(order=">").bytes(), Gsym),
    "sym": (SymFile().bytes(), Breakpad),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_are_told_apart_by_their_first_bytes(kind: str) -> None:
    data, provider = FILES[kind]
    assert type(open_symbols(Source("any.name", memoryview(data)))) is provider


@pytest.mark.parametrize("data", [b"", b"text", b"MODULE", b"\x7fEL", b"GSY", b"\x7fELF", b"MYSG", b"MODULE \n"])
def test_files_that_are_none(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        open_symbols(Source("folder/file", memoryview(data)))
    assert caught.value.path == "folder/file"


def test_folders_stand_for_the_symbols_in_them(tmp_path: Path) -> None:
    for kind, (data, _) in FILES.items():
        (tmp_path / f"app.{kind}").write_bytes(data)
    (tmp_path / "notes.txt").write_text("MODULES")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    found = symbol_files([str(tmp_path), "a/file", str(tmp_path / "notes.txt")])
    assert found == [
        *(str(tmp_path / f"app.{kind}") for kind in sorted(FILES)), "a/file", str(tmp_path / "notes.txt"),
    ]  # fmt: skip


# ---------------------------------------------------------------- which one matches


@dataclass(frozen=True)
class Known:
    """As much of symbols as matching looks at."""

    name: str
    build_id: str
    path: str = "folder/file"


CHOICES = {
    "by build id": ([Known("x", OTHER_ID), Known("y", BUILD_ID)], 1),
    "by build id before the name": ([Known("app", ""), Known("y", BUILD_ID)], 1),
    "the first of two of that build": ([Known("y", BUILD_ID), Known("app", BUILD_ID)], 0),
    "by 16 bytes of a debug id": ([Known("y", BUILD_ID[:32])], 0),
    "by name, if it has no build id": ([Known("app", "")], 0),
    "by name with a suffix": ([Known("app.gsym", "")], 0),
    "by name, though another of that name differs": ([Known("app", OTHER_ID), Known("app.sym", "")], 1),
    "nothing of another name": ([Known("y", ""), Known("z", OTHER_ID)], None),
    "nothing of nothing": ([], None),
}


@pytest.mark.parametrize("case", CHOICES)
def test_what_matches(case: str) -> None:
    symbols, wanted = CHOICES[case]
    found = SymbolIndex(symbols).matching(BUILD_ID, "app")  # type: ignore[arg-type]  # they are not looked into
    assert found is (symbols[wanted] if wanted is not None else None)  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("name", ["app", "app.gsym", "app.sym", "app.debug"])
def test_a_file_of_another_build_is_refused(name: str) -> None:
    with pytest.raises(FormatError) as caught:
        SymbolIndex([Known(name, OTHER_ID)]).matching(BUILD_ID, "app")  # type: ignore[list-item]
    assert caught.value.path == "folder/file"
    assert OTHER_ID in caught.value.message
    assert BUILD_ID in caught.value.message


def test_a_library_without_a_build_id_is_matched_by_name() -> None:
    symbols = [Known("app", OTHER_ID)]
    assert SymbolIndex(symbols).matching("", "app") is symbols[0]  # type: ignore[arg-type, comparison-overlap]
    assert SymbolIndex(symbols).matching("", "other") is None  # type: ignore[arg-type]


BUILDS = {
    "equal": (BUILD_ID, BUILD_ID, True),
    "different": (BUILD_ID, OTHER_ID, False),
    "unknown": ("", "", False),
    "unknown on one side": (BUILD_ID, "", False),
    "the 16 bytes of a debug id": (BUILD_ID, BUILD_ID[:32], True),
    "other 16 bytes": (BUILD_ID, OTHER_ID[:32], False),
    "8 bytes in a debug id": (BUILD_ID[:16], BUILD_ID[:16] + "0" * 16, True),
    "a part that is no debug id": (BUILD_ID, BUILD_ID[:30], False),
    "3 bytes, as perf records them": ("abcdef", "abcdef00", True),
    "5 bytes in a record of 20": ("0123456789", "0123456789" + 30 * "0", True),
    "20 bytes of 23": (BUILD_ID + "010203", BUILD_ID, True),
    "others behind 20 bytes": (BUILD_ID + "010203", BUILD_ID + "010204", False),
}


@pytest.mark.parametrize("case", BUILDS)
def test_which_builds_are_the_same(case: str) -> None:
    one, other, wanted = BUILDS[case]
    assert is_same_build(one, other) is is_same_build(other, one) is wanted


LIBRARIES = {"libc.so.6": "libc.so.6", "libc.so.6.debug": "libc.so.6", "app.exe.gsym": "app.exe", "app.sym": "app"}


@pytest.mark.parametrize("name", LIBRARIES)
def test_names_of_libraries(name: str) -> None:
    assert library_name(name) == LIBRARIES[name]


PATHS = {"/a/../b/./c.h": "/b/c.h", "a/c.h": "a/c.h", "../c.h": "../c.h", "": "", "/a/.x/c.h": "/a/.x/c.h"}


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_shown_without_detours(path: str) -> None:
    assert shown_path(path) == PATHS[path]


# ---------------------------------------------------------------- XRay

NAMELESS = elf_with_instr_map([(None, 0x2000, SLEDS), (None, 0x3000, SLEDS), (None, 0x4000, SLEDS)])
BASE = 0x1000
Write = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(name: str, data: bytes | SymFile) -> Path:
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.bytes())
        return tmp_path / name

    return write


def sym() -> SymFile:
    """Relative to where the file is loaded. The second function's line begins after its sled."""
    file = SymFile("0" * 33).file(0, "/src/x/../a.cc")
    file.func(0x2000 - BASE, 0x20, "main").line(0x2000 - BASE, 0x20, 7, 0)
    file.func(0x3000 - BASE, 0x40, "_Z4workiPKc").line(0x3000 - BASE, 0x21, 0, 0).line(0x3021 - BASE, 9, 22, 0)
    return file.line(0x302A - BASE, 9, 23, 0)


def functions_of(trace: Trace) -> list[tuple[str, str, int]]:
    assert laws.check(trace) == []
    funcs = trace.funcs
    return [
        (trace.func_name(nth), trace.strings[int(trace.sources["path"][source])] if source >= 0 else "", int(line))
        for nth, (source, line) in enumerate(zip(funcs["source"].tolist(), funcs["line"].tolist(), strict=True))
    ]


NAMES = [("main", "/src/a.cc", 7), ("work(int, char const*)", "/src/a.cc", 22), ("function 3", "", 0)]


def test_a_program_s_names_come_from_a_breakpad_file(load: Callable[..., Trace], written: Write) -> None:
    """Lines too: the first that is not 0."""
    trace = load(fdr("A B b C c a"), symbols=[written("app", NAMELESS), written("app.sym", sym())])
    assert functions_of(trace) == NAMES
    assert trace.processes[0].name == "app"
    assert report_of(trace)["function_without_name"] == 1


def test_each_object_has_names_of_its_own(load: Callable[..., Trace], written: Write) -> None:
    log = Fdr(frequency=10**9)
    calls = [log.enter(i, 1) + log.exit(i, 1) for i in (1, 1 << 24 | 1)]
    log.buffer(1, 1, records=[log.new_cpu(0, 10**9), *calls])
    executable = elf_with_instr_map([(None, 0x2000, SLEDS)], pie=False)
    other = SymFile("0" * 33).func(0x2000 - BASE, 0x20, "other")
    files = [written("libx.so", NAMELESS), written("libx.so.sym", other), written("app", executable)]
    trace = load(log, symbols=[*files, written("app.sym", sym())])
    assert [call.name for calls in all_calls(trace) for call in calls] == ["main", "other"]


def refused(load: Callable[..., Trace], *symbols: Path) -> FormatError:
    with pytest.raises(FormatError) as caught:
        load(fdr("A a"), symbols=list(symbols))
    return caught.value


def test_names_alone_do_not_tell_what_the_numbers_are(load: Callable[..., Trace], written: Write) -> None:
    error = refused(load, written("app.sym", sym()))
    assert "give the program" in str(error)
    assert error.path.endswith("app.sym")


def test_names_of_another_program_are_refused(load: Callable[..., Trace], written: Write) -> None:
    error = refused(load, written("app", NAMELESS), written("other.sym", SymFile().code_id()))
    assert BUILD_ID in str(error)
    assert error.path.endswith("other.sym")


CLONE = re.compile(r" \(\.specialized\.\d+\)$")
LOGS = [
    "fdr-c14-nopie-pool.xray", "fdr-c19-pie-events.xray", "fdr-c19-pie-except.xray", "fdr-c19-pie-pool.xray",
    "fdr-c19-pie-recurse.xray", "fdr-c19-pie-typed.xray", "fdr-c22-dso.xray",
]  # fmt: skip


def stripped(name: str, folder: Path) -> Path:
    strip = shutil.which("strip") or shutil.which("llvm-strip")
    if strip is None:
        pytest.skip("no strip here to take the names out of a program")
    path = folder / name.rpartition("/")[2]
    path.write_bytes(content(name))
    subprocess.run([strip, "--strip-all", path], check=True)
    return path


def gsym_of(binary: Path, folder: Path) -> Path:
    gsymutil = next((found for n in (19, 22, 16, 14) if (found := shutil.which(f"llvm-gsymutil-{n}"))), None)
    if gsymutil is None:
        pytest.skip("no llvm-gsymutil here to convert a program")
    path = folder / f"{binary.name}.gsym"
    subprocess.run([gsymutil, f"--convert={binary}", f"--out-file={path}"], check=True, capture_output=True)
    return path


@pytest.mark.parametrize("log", LOGS)
def test_names_and_lines_of_gsym_are_those_of_the_binary(log: str, tmp_path: Path) -> None:
    """But that a binary's symbol table names a clone, which DWARF and so GSYM call by the function's name."""
    symbols: list[Path] = []
    (tmp_path / "whole").mkdir()
    for path in binaries_of(log):
        name = f"{re.sub('[a-z]+-?', '', path.parent.name)}/{path.name.removesuffix('.zst')}"
        whole = tmp_path / "whole" / path.name.removesuffix(".zst")
        whole.write_bytes(content(name))
        symbols += [gsym_of(whole, tmp_path), stripped(name, tmp_path)]
    found = functions_of(load_checked(path_of(log), symbols=symbols))
    assert found == [(CLONE.sub("", name), source, line) for name, source, line in functions_of(loaded(log))]
    assert any(line for _, _, line in found)


# ---------------------------------------------------------------- perf


def lines_of(trace: Trace) -> list[tuple[str, str, int, int, int]]:
    frames = trace.frames
    columns = zip(*(frames[c].tolist() for c in ("func", "line", "address", "inline_depth")), strict=True)
    names = functions_of(trace)
    return [(*names[func][:2], line, address, depth) for func, line, address, depth in columns]


@pytest.mark.parametrize("has_build_id", [True, False])
def test_native_frames_of_gsym_are_those_of_the_binary(
    program: Path,  # noqa: F811
    tmp_path: Path,
    has_build_id: bool,
) -> None:
    """Where the recorded file is gone, too."""
    elf = Elf(program)
    data = running(program, "/gone/tiny", elf.build_id if has_build_id else None)
    by_binary = read(data, context=context_with(program))
    for files in ([gsym_of(program, tmp_path)], [program, tmp_path / "tiny.gsym"]):
        by_gsym = read(data, context=context_with(*files))
        assert stacks(by_gsym) == stacks(by_binary)
        assert "outer > (inner) > (deep)" in stacks(by_gsym)
        assert lines_of(by_gsym) == lines_of(by_binary)
        assert reported_of_perf(by_gsym) == ({"symbols_by_offset": 1} if len(files) == 1 else {})


def test_native_frames_of_breakpad(program: Path, written: Write) -> None:  # noqa: F811
    elf = Elf(program)
    file = SymFile().code_id(elf.build_id.hex()).file(3, "/src/x/../a.c").origin(9, "deep")
    file.func(elf.address, elf.size, "outer").inline(0, 5, 3, 9, (elf.address, 2)).line(elf.address, elf.size, 8, 3)
    trace = read(running(program, "/gone/tiny", elf.build_id), context=context_with(written("any.sym", file)))
    assert stacks(trace) == ["outer > (deep)"] * 2 + ["outer"] * (elf.size - 2)
    assert lines_of(trace)[-3:] == [
        ("outer", "/src/a.c", 8, elf.address + at, 0) for at in range(elf.size - 3, elf.size)
    ]
    assert {row[2] for row in lines_of(trace) if row[4] == 1} == {8}


def test_symbols_of_another_build_are_refused(program: Path, written: Write) -> None:  # noqa: F811
    """The report has both ids; functions are shown by address."""
    file = SymFile(DEBUG_ID).func(0, 1 << 20, "wrong")
    trace = read(running(program, "/gone/tiny", bytes(20)), context=context_with(written("tiny.sym", file)))
    assert all(text.startswith("tiny+0x") for text in stacks(trace))
    assert reported_of_perf(trace) == {"build_id_differs": 1}
    (issue,) = (issue for issue in trace.report if issue.kind == "build_id_differs")
    assert BUILD_ID[:32] in issue.detail
    assert "00" * 20 in issue.detail
