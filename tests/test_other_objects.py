"""Names in programs and debug information of macOS and Windows, compiled here with LLVM's tools."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from traceferry.common.errors import FormatError
from traceferry.files.source import Source, open_source
from traceferry.libraries.recorded_files import Recorded
from traceferry.libraries.search import Libraries
from traceferry.model import TraceBuilder
from traceferry.reading import ImportContext
from traceferry.symbolication import other_objects
from traceferry.symbolication.choose import files_in_folder, open_symbols
from traceferry.symbolication.demangle import Demangler
from traceferry.symbolication.other_objects import OtherObject, parts_of

pytest.importorskip("symbolic", reason="symbolic is not installed (pip install symbolic)")

PROGRAM = """
static inline __attribute__((always_inline)) int inlined(volatile int *x) { *x = *x * 3; return *x + 1; }
__attribute__((noinline)) int callee(int x) { volatile int y = x; return inlined(&y) + 2; }
int main(void) { return callee(4); }
"""


def tool(*names: str) -> str:
    found = next((path for name in names if (path := shutil.which(name))), None)
    return found or pytest.skip(f"{names[0]} is not installed")


def run(*words: str | Path) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60)
    if done.returncode:
        pytest.skip(f"{Path(str(words[0])).name} does not make it here: {done.stderr.strip()[:200]}")


def mach_o(folder: Path, arch: str = "x86_64") -> Path:
    """Makes a program with a .dSYM beside it."""
    clang, linker = tool("clang-19", "clang"), tool("ld64.lld-19", "ld64.lld")
    source, program = folder / f"{arch}.c", folder / arch
    source.write_text(PROGRAM)
    run(clang, f"--target={arch}-apple-darwin", "-g", "-O1", "-c", source, "-o", folder / f"{arch}.o")
    run(
        linker, "-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-e", "_main",
        "-undefined", "dynamic_lookup", "-o", program, folder / f"{arch}.o",
    )  # fmt: skip
    run(tool("dsymutil-19", "dsymutil"), program, "-o", folder / f"{arch}.dSYM")
    return program


def windows(folder: Path) -> Path:
    """Makes a program with a .pdb beside it."""
    clang, linker = tool("clang-19", "clang"), tool("lld-link-19", "lld-link")
    (folder / "app.c").write_text(PROGRAM)
    target = "--target=x86_64-pc-windows-msvc"
    run(clang, target, "-g", "-gcodeview", "-O1", "-c", folder / "app.c", "-o", folder / "app.obj")
    run(
        linker, "/debug", "/entry:main", "/subsystem:console", "/nodefaultlib",
        f"/out:{folder / 'app.exe'}", f"/pdb:{folder / 'app.pdb'}", folder / "app.obj",
    )  # fmt: skip
    return folder / "app.exe"


def dwarf_of(program: Path) -> Path:
    return program.parent / f"{program.name}.dSYM" / "Contents" / "Resources" / "DWARF" / program.name


def names_in(symbols: OtherObject, end: int = 0x2000) -> dict[tuple[str, ...], set[int]]:
    """Returns the functions at each address, the innermost first, and the lines."""
    found = symbols.lookup(np.arange(end, dtype=np.uint64))
    rows: dict[tuple[str, ...], set[int]] = {}
    for first, last in zip(found.first[:-1].tolist(), found.first[1:].tolist(), strict=True):
        if first < last:
            names = tuple(found.texts[name].partition("(")[0] for name in found.name[first:last].tolist())
            rows.setdefault(names, set()).update(found.line[first:last].tolist())
    return rows


def opened(path: Path) -> OtherObject:
    symbols = open_symbols(open_source(str(path)))
    assert isinstance(symbols, OtherObject)
    return symbols


def test_a_dsym_names_inlined_functions(tmp_path: Path) -> None:
    symbols = opened(dwarf_of(mach_o(tmp_path)))
    names = names_in(symbols)
    assert names["inlined", "callee"] == {2, 3}
    assert 4 in names["main",]
    assert (symbols.gives, symbols.arch, symbols.problems) == ("debug information", "x86_64", [])


def test_a_program_of_macos_names_functions_by_its_symbol_table(tmp_path: Path) -> None:
    symbols = opened(mach_o(tmp_path))
    assert {("callee",), ("main",)} <= set(names_in(symbols))
    assert symbols.gives == "the symbol table"


def test_a_pdb_names_functions_and_lines(tmp_path: Path) -> None:
    program = windows(tmp_path)
    names = names_in(opened(tmp_path / "app.pdb"))
    assert {name for frames in names for name in frames} >= {"callee", "main"}
    assert opened(tmp_path / "app.pdb").debug_id == opened(program).debug_id


def test_a_file_for_several_processors(tmp_path: Path) -> None:
    files = [dwarf_of(mach_o(tmp_path, arch)).read_bytes() for arch in ("x86_64", "arm64")]
    ats = [4096, 4096 + len(files[0])]
    entries = [struct.pack(">5I", 0, 0, at, len(data), 0) for at, data in zip(ats, files, strict=True)]
    head = other_objects.FAT_MAGIC + struct.pack(">I", 2) + b"".join(entries)
    fat = tmp_path / "fat"
    fat.write_bytes(head.ljust(4096, b"\0") + b"".join(files))
    found = [OtherObject(part) for part in parts_of(open_source(str(fat)))]
    assert [symbols.arch for symbols in found] == ["x86_64", "arm64"]
    assert len({symbols.debug_id for symbols in found}) == 2
    with pytest.raises(FormatError, match="ends beyond"):
        parts_of(Source("fat", memoryview(fat.read_bytes()[:5000])))


def test_names_by_uuid_among_files_of_a_folder(tmp_path: Path) -> None:
    """A folder with programs and .dSYM folders: of the library's build, and the one with lines."""
    program = mach_o(tmp_path)
    windows(tmp_path)
    trace = TraceBuilder()
    sources = [open_source(path) for path in files_in_folder(str(tmp_path))]
    libraries = Libraries(trace, ImportContext(symbols=sources))
    library = libraries.library(Recorded("/Users/me/x86_64", opened(program).build_id))
    assert library.symbols is not None
    assert library.symbols.gives == "debug information"
    start = int(library.symbols.lookup(np.arange(0x2000, dtype=np.uint64)).start.max())
    ((frames, found_start),) = library.names(np.array([start], np.uint64), Demangler())
    assert (frames[0][0].partition("(")[0], found_start) == ("main", start)
    libraries.note_problems()
    assert [issue.kind for issue in trace.report if issue.severity != "info"] == []
    assert libraries.library(Recorded("/Users/me/x86_64", "ab" * 16)).symbols is None


@pytest.mark.parametrize(
    "head", [other_objects.PE_MAGIC, other_objects.PDB_MAGIC, other_objects.FAT_MAGIC + b"\0\0\0\1"]
)
def test_damaged_files_are_refused(head: bytes) -> None:
    with pytest.raises(FormatError):
        [open_symbols(part) for part in parts_of(Source("x", memoryview(head + bytes(100))))]


def test_a_class_of_java_is_none_of_them() -> None:
    assert not other_objects.is_other_object(bytes.fromhex("cafebabe00000034") + bytes(30))


def test_what_reads_them_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_objects, "has_symbolic", lambda: False)
    with pytest.raises(FormatError, match=r"traceferry\[symbols\]"):
        open_symbols(Source("app.exe", memoryview(b"MZ" + bytes(100))))
