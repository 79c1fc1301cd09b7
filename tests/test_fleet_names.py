"""Names in fleets: `aggregate` gives each recording the names that `info` does, whichever way they are found."""

from __future__ import annotations

import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from support import NAMELESS
from test_debuginfod import send, server, status
from test_perf_map import PID, PROGRAM, SECOND, START, Elf, X, recorded

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.reading import LoadOptions

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'traceferry[fleet]'")
pytest.importorskip("distributed", reason="distributed is not installed: pip install 'traceferry[fleet]'")

CODE, JITTED = 0x5500_0000, 0x7000_0000
FULL = {"outer", "inner", "deep"}


class Way(NamedTuple):
    """A way to find names. make: puts files into the folder of --symbols; named: whether functions then have names of
    debug information, else only `outer` has one; None: none has."""

    make: Callable[[Files], None]
    named: bool | None = True


class Files:
    """A program of its own build, and where its parts go: symbols, the folder of --symbols; beside the recording; root,
    the --sysroot of all; served, what a server has, by path."""

    def __init__(self, folder: Path, nth: int, served: dict[str, bytes]) -> None:
        self.served = served
        self.root = folder / "root"
        self.id = f"{nth:02x}" + "ab" * 19
        self.here, self.symbols, self.beside = (folder / part / f"way{nth}" for part in ("made", "symbols", "runs"))
        for one in (self.here, self.symbols, self.beside):
            one.mkdir(parents=True)
        (self.symbols / "no-symbols.txt").write_text("a folder is not empty")
        self.path, self.build_id, self.maps_dump = "/gone/app", self.id, False
        self.app = self.link("app")

    def link(self, name: str, *options: str, build_id: bool = True) -> Path:
        (self.here / "app.c").write_text(PROGRAM)
        compile_ = ["gcc", "-O2", "-gdwarf-4", *options, "-c", "app.c", "-o", f"{name}.o"]
        id_ = f"--build-id=0x{self.id}" if build_id else "--build-id=none"
        for command in (compile_, ["gcc", "-O2", f"{name}.o", "-o", name, f"-Wl,{id_}"]):
            subprocess.run(command, cwd=self.here, check=True, timeout=60)
        return self.here / name

    def objcopy(self, *words: object) -> Path:
        subprocess.run(["objcopy", *map(str, words)], cwd=self.here, check=True, timeout=60)
        return self.here / str(words[-1])

    @property
    def debug(self) -> Path:
        return self.objcopy("--only-keep-debug", self.app, "app.debug")

    @property
    def stripped(self) -> Path:
        return self.objcopy("--strip-all", self.app, "stripped")

    def by_build(self, folder: Path) -> Path:
        path = folder / ".build-id" / self.id[:2] / f"{self.id[2:]}.debug"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def recording(self) -> PerfData:
        elf = Elf(self.here / "whole") if (self.here / "whole").exists() else Elf(self.app)
        id_ = bytes.fromhex(self.build_id) if self.build_id else None
        data = recorded().mmap2(PID, PID, CODE, elf.length, elf.pgoff, self.path, build_id=id_, ts=0)
        for nth in range(elf.size):
            data.sample(PID, PID, START + 1 + nth, CODE + elf.at - elf.pgoff + nth)
        data.mmap2(PID, PID, JITTED, 4096, 0, "//anon", ts=0)
        if self.maps_dump:
            data.mmap2(PID, PID, X, 4096, 0, f"/gone/jit-{PID}.dump", ts=START)
        return data.sample(PID, PID, START + SECOND, JITTED + 16)


def put(path: Path, folder: Path, name: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, folder / (name or path.name))


def stripped_as_app(of: Files) -> None:
    put(of.stripped, of.symbols, "app")


def whole(of: Files) -> None:
    put(of.app, of.symbols)


def whole_by_name(of: Files) -> None:
    of.build_id = ""
    put(of.app, of.symbols)


def debug_file(of: Files) -> None:
    put(of.debug, of.symbols, "any-name")


def debug_file_by_build(of: Files) -> None:
    stripped_as_app(of)
    put(of.debug, of.by_build(of.symbols).parent, of.by_build(of.symbols).name)


def debug_link(of: Files) -> None:
    """Neither has a build id."""
    of.app, of.build_id = of.link("unnamed", build_id=False), ""
    debug = of.objcopy("--only-keep-debug", of.app, "app.dbg")
    put(of.objcopy("--strip-all", f"--add-gnu-debuglink={debug.name}", of.app, "linked"), of.symbols, "app")
    put(debug, of.symbols / ".debug")
    shutil.copy(of.link("whole"), of.here / "whole.o")


def sysroot(of: Files) -> None:
    stripped_as_app(of)
    path = of.by_build(of.root / "usr/lib/debug")
    put(of.debug, path.parent, path.name)


def sysroot_alone(of: Files) -> None:
    of.path = "/opt/of-sysroot"
    put(of.app, of.root / "opt", "of-sysroot")


def served(of: Files) -> None:
    stripped_as_app(of)
    of.served[f"/buildid/{of.id}/debuginfo"] = of.debug.read_bytes()


def served_alone(of: Files) -> None:
    of.served[f"/buildid/{of.id}/executable"] = of.app.read_bytes()


def mini(of: Files) -> None:
    symbols = of.objcopy("--strip-debug", of.app, "symbols")
    (of.here / "mini.xz").write_bytes(lzma.compress(symbols.read_bytes()))
    put(of.objcopy("--strip-all", "--add-section=.gnu_debugdata=mini.xz", of.app, "with-mini"), of.symbols, "app")


def split_units(of: Files) -> None:
    of.app = of.link("split", "-gsplit-dwarf")
    put(of.app, of.symbols, "app")
    put(of.here / "split.dwo", of.symbols / "objects")
    (of.here / "split.dwo").unlink()


def package(of: Files) -> None:
    of.app = of.link("split", "-gsplit-dwarf")
    command = ["dwp", "-e", "split", "-o", of.symbols / "app.dwp"]
    subprocess.run(command, cwd=of.here, check=True, timeout=60)
    put(of.app, of.symbols, "app")
    (of.here / "split.dwo").unlink()


def shared_by_dwz(of: Files) -> None:
    shutil.copy(of.app, of.here / "whole")
    shutil.copy(of.app, of.here / "app2")
    subprocess.run(["dwz", "-m", "common.debug", "app", "app2"], cwd=of.here, check=True, timeout=60)
    put(of.app, of.symbols / "bin")
    put(of.here / "common.debug", of.symbols)


def gsym(of: Files) -> None:
    command = [sys.executable, "-m", "traceferry", "symbols", of.app, "-o", of.symbols / "a.gsym"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def gsym_beside(of: Files) -> None:
    command = [sys.executable, "-m", "traceferry", "symbols", of.app, "-o", of.beside / "app.gsym"]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def recorded_path(of: Files) -> None:
    of.path = str(of.app)


def cache_of_perf(of: Files) -> None:
    put(of.app, of.symbols / "gone" / "app" / of.id, "elf")
    link = of.symbols / ".build-id" / of.id[:2] / of.id[2:]
    link.parent.mkdir(parents=True)
    link.symlink_to(Path("../../gone/app") / of.id)


def map_file(of: Files) -> None:
    (of.symbols / f"perf-{PID}.map").write_text(f"{JITTED:x} 100 jitted_by_map\n")


def jitdump(of: Files) -> None:
    of.maps_dump = True
    (of.symbols / f"jit-{PID}.dump").write_bytes(JitDump(pid=PID, start=START).load("jitted", JITTED, 64).bytes())


WAYS = {
    "whole": Way(whole),
    "whole by name": Way(whole_by_name),
    "debug file": Way(debug_file),
    "debug file by build id": Way(debug_file_by_build),
    ".gnu_debuglink": Way(debug_link),
    "sysroot": Way(sysroot),
    "sysroot alone": Way(sysroot_alone),
    "server": Way(served),
    "server alone": Way(served_alone),
    "MiniDebugInfo": Way(mini, named=False),
    "split units": Way(split_units),
    "package": Way(package),
    "dwz": Way(shared_by_dwz),
    "GSYM": Way(gsym),
    "GSYM beside": Way(gsym_beside),
    "recorded path": Way(recorded_path),
    "perf's cache": Way(cache_of_perf),
    "call-frame information": Way(stripped_as_app, named=None),
    "map file": Way(map_file, named=None),
    "jitdump": Way(jitdump, named=None),
    "nothing": Way(lambda of: None, named=None),
}


def functions_of(rows: Any, name: str) -> dict[str, tuple[int, int]]:
    """Returns (samples, total samples) by name; those without one, which `info` has in one row, are added up."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        of = "nameless" if NAMELESS.fullmatch(row[name]) else row[name]
        own, total = found.get(of, (0, 0))
        found[of] = (own + row["samples"], total + row["total_samples"])
    return found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Yields (the folder with recordings in runs/WAY and symbols in symbols/WAY, a server's address)."""
    needed = ("gcc", "objcopy", "dwz", "dwp")
    missing = [name for name in needed if not shutil.which(name)]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    folder, files = tmp_path_factory.mktemp("fleet"), dict[str, bytes]()
    (folder / "root").mkdir()
    for nth, way in enumerate(WAYS.values()):
        of = Files(folder, nth, files)
        way.make(of)
        (of.beside / "perf.data").write_bytes(of.recording().bytes())
    with server(lambda asked: send(files[asked.path])(asked) if asked.path in files else status(404)(asked)) as (
        url,
        _,
    ):
        yield folder, url


@pytest.fixture(scope="module")
def aggregated(fleet: tuple[Path, str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Returns functions by the folder of the recording, of an `aggregate` of all."""
    folder, url = fleet
    words = [folder / "runs/{way}/perf.data", "--symbols", folder / "symbols/{way}", "--sysroot", folder / "root",
             "--debuginfod", url, "-o", folder / "out", "--workers", "2", "--quiet"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "traceferry", "aggregate", *map(str, words)],
        env=os.environ | {"DEBUGINFOD_CACHE_PATH": str(folder / "cache")}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    rows = parquet.read_table(folder / "out" / "functions").to_pylist()
    return {
        way: functions_of((row for row in rows if row["way"] == way), "function") for way in {r["way"] for r in rows}
    }


@pytest.mark.parametrize("way", WAYS)
def test_a_fleet_has_the_names_of_each_recording(
    way: str, fleet: tuple[Path, str], aggregated: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the symbols' folder, beside the recording, a file tree, a server, or where nothing names anything."""
    folder, url = fleet
    monkeypatch.setattr("traceferry.symbolication.debug_files.SYSTEM", os.sep)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(folder / "cache"))
    name = f"way{list(WAYS).index(way)}"
    options = LoadOptions(sysroots=folder / "root", debuginfod=[url])
    trace = traceferry.load(folder / "runs" / name / "perf.data", symbols=folder / "symbols" / name, options=options)
    of_info = functions_of(summarize(trace, 10**6)["functions"]["top"], "name")
    assert aggregated[name] == of_info
    named = WAYS[way].named
    wanted = set() if named is None else FULL if named else {"outer"}
    assert of_info.keys() & FULL == wanted, of_info
