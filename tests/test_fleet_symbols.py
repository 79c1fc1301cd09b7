"""Symbols that workers share: the same traces as with the files themselves, made once, never half."""

import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHARED
from support import load_checked, report_of
from test_perf_map import PROGRAM, Elf, running, stacks

import traceferry
from traceferry.apps.cli.symbol_files import frames_by_address, make_gsym
from traceferry.common.errors import FormatError, UsageError
from traceferry.registry import IMPORTERS

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'traceferry[fleet]'")

from fsspec.implementations.memory import MemoryFileSystem

from traceferry.apps.fleet import places, storage, symbols
from traceferry.apps.fleet.symbols import SymbolStore
from traceferry.files.source import open_source
from traceferry.symbolication.choose import open_symbols


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose addresses are not its offsets, as lld places code; and what tools make of it."""
    compiler, objcopy = shutil.which("gcc"), shutil.which("objcopy")
    if compiler is None or objcopy is None:
        pytest.skip("no gcc and objcopy here to make a program and its debug file")
    folder = tmp_path_factory.mktemp("binaries")
    aliases = [f'int {name}(volatile int *) __attribute__((alias("outer")));' for name in ("a", "zz", "outer_2")]
    (folder / "tiny.c").write_text("\n".join([PROGRAM, "#ifdef ALIASED", *aliases, "#endif", ""]))
    build = [compiler, "-g", "-O2", "-no-pie", "-Wl,-Ttext-segment=0x7000000", "tiny.c", "-o"]
    for command in (
        [*build, "tiny", "-Wl,--build-id=sha1"],
        [*build, "unnamed", "-Wl,--build-id=none"],
        [*build, "aliased", "-Wl,--build-id=sha1", "-DALIASED"],
        [objcopy, "--only-keep-debug", "tiny", "tiny.debug"],
        [objcopy, "--strip-all", "tiny", "stripped"],
    ):
        subprocess.run(command, check=True, cwd=folder)
    # What has parts elsewhere, none of which is where it was made.
    (folder / "apart").mkdir()
    parts = [compiler, "-gdwarf-4", "-O2", "-no-pie", "-Wl,--build-id=sha1", "-Wl,-Ttext-segment=0x7000000"]
    subprocess.run([*parts, "-gsplit-dwarf", "-c", "../tiny.c", "-o", "tiny.o"], check=True, cwd=folder / "apart")
    subprocess.run([*parts, "tiny.o", "-o", "../split"], check=True, cwd=folder / "apart")
    subprocess.run([*parts, "-g", "tiny.c", "-o", "shared"], check=True, cwd=folder)
    (folder / "apart/tiny.dwo").rename(folder / "tiny.dwo")
    if shutil.which("dwz"):
        shutil.copy(folder / "shared", folder / "apart/other")
        subprocess.run(["dwz", "-m", "apart/common.debug", "shared", "apart/other"], check=True, cwd=folder)
        (folder / "apart/common.debug").rename(folder / "common.debug")
    source = open_source(str(folder / "tiny"))
    make_gsym(open_symbols(source), source, str(folder / "tiny.gsym"))
    return folder


class Fleet:
    """Places and a cache in some storage, and a recording of the program."""

    def __init__(self, tmp_path: Path, binaries: Path, root: str) -> None:
        self.root, self.binaries, self.tmp_path = root, binaries, tmp_path
        self.program = Elf(binaries / "tiny")
        self.build_id = self.program.build_id.hex()
        self.recording = tmp_path / "perf.data"
        self.recorded("/gone/tiny", self.program.build_id)
        (tmp_path / "given").mkdir()

    def recorded(self, path: str, build_id: bytes | None) -> None:
        self.recording.write_bytes(running(self.binaries / "tiny", path, build_id).bytes())

    def have(self, **files: str) -> None:
        """Files of the binaries under names of the places, `_` for a dot, in folders; and in one for --symbols."""
        for name, origin in files.items():
            data = (self.binaries / origin).read_bytes()
            (self.tmp_path / "given" / name.replace("_", ".")).write_bytes(data)
            storage.write(storage.joined(self.root, f"places/deep/{name.replace('_', '.')}"), data)

    def store(self, cache: str = "") -> SymbolStore:
        return SymbolStore([storage.joined(self.root, "places")], cache or storage.joined(self.root, "cache"))

    def output(self, **options: Any) -> tuple[bytes, dict[str, int]]:
        trace = load_checked(self.recording, **options)
        traceferry.save(trace, self.tmp_path / "out.pftrace")
        report = report_of(trace)
        # Which files these were differs, and what their code says: a storage has names and lines alone.
        for kind in ("symbols_used", "symbols_unused", "files_read", "callers_missing"):
            report.pop(kind, None)
        return (self.tmp_path / "out.pftrace").read_bytes(), report

    def as_given(self) -> tuple[bytes, dict[str, int]]:
        return self.output(symbols=self.tmp_path / "given")

    def cached(self) -> list[str]:
        return storage.names_in(storage.joined(self.root, "cache/gsym"))


ROOTS = ["a folder", "memory://fleet"]


@pytest.fixture(params=ROOTS)
def fleet(request: pytest.FixtureRequest, tmp_path: Path, binaries: Path) -> Iterator[Fleet]:
    root = str(tmp_path / "storage") if request.param == ROOTS[0] else request.param
    yield Fleet(tmp_path, binaries, root)
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


# ---------------------------------------------------------------- the same traces


@pytest.mark.parametrize(
    "files",
    [
        {"tiny": "tiny"},
        {"other": "tiny"},
        {"tiny": "stripped", "tiny_debug": "tiny.debug"},
        {"tiny": "stripped"},
        {"tiny_gsym": "tiny.gsym"},
        {"a_gsym": "tiny.gsym", "b": "tiny"},
    ],
)
def test_traces_are_those_of_the_files_themselves(fleet: Fleet, files: dict[str, str]) -> None:
    """With a cold cache and a warm one, by build id and, where none was recorded, by name."""
    fleet.have(**files)
    for build_id in (fleet.program.build_id, None):
        fleet.recorded("/gone/tiny", build_id)
        expected = fleet.as_given()
        assert (expected != fleet.output()) == (build_id is not None or any(name.startswith("tiny") for name in files))
        assert fleet.output(find_symbols=fleet.store().find) == expected
        assert fleet.output(find_symbols=fleet.store().find) == expected
    assert {Path(name).stem for name in fleet.cached()} == {fleet.build_id}


@pytest.mark.parametrize(
    ("program", "parts"), [("split", {"tiny_dwo": "tiny.dwo"}), ("shared", {"common_debug": "common.debug"})]
)
def test_parts_of_debug_information_in_other_files(fleet: Fleet, program: str, parts: dict[str, str]) -> None:
    """Cold and warm; where a part comes later, too."""
    if program == "shared" and not shutil.which("dwz"):
        pytest.skip("dwz is not installed")
    elf_file = Elf(fleet.binaries / program)
    fleet.program = elf_file
    fleet.recording.write_bytes(running(fleet.binaries / program, "/gone/tiny", elf_file.build_id).bytes())
    fleet.have(tiny=program)
    outputs = [fleet.output(find_symbols=fleet.store().find) for _ in range(2)]
    # GSYM has no lines of functions that only the symbol table names.
    assert [report for _, report in outputs] == [{"debug_files_missing": 1}] * 2 == [fleet.as_given()[1]] * 2
    assert set(stacks(load_checked(fleet.recording, find_symbols=fleet.store().find))) == {"outer"}
    fleet.have(**parts)
    whole = fleet.as_given()
    assert "debug_files_missing" not in whole[1]
    assert len(set(stacks(load_checked(fleet.recording, find_symbols=fleet.store().find)))) == 3
    for _ in range(2):
        assert fleet.output(find_symbols=fleet.store().find) == whole
    storage.remove(storage.joined(fleet.root, "places"))
    assert fleet.output(find_symbols=fleet.store().find) == whole


def test_a_debug_file_that_comes_later(fleet: Fleet) -> None:
    """What was kept of a stripped binary is not the last word."""
    fleet.have(tiny="stripped")
    nameless = fleet.output(find_symbols=fleet.store().find)
    fleet.have(tiny_debug="tiny.debug")
    for _ in range(2):
        assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given() != nameless
    # Without the places, what is kept counts.
    storage.remove(storage.joined(fleet.root, "places"))
    assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()


def test_a_binary_without_a_build_id_is_kept_by_its_content(fleet: Fleet) -> None:
    fleet.have(tiny="unnamed")
    fleet.recorded("/gone/tiny", None)
    for _ in range(2):
        assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()
    gsym, about = fleet.cached()
    assert gsym.startswith("content-")
    assert about == f"{Path(gsym).stem}.zip"


def test_compressed_files(fleet: Fleet) -> None:
    import gzip

    fleet.have(tiny="tiny")
    packed = gzip.compress((fleet.binaries / "tiny").read_bytes())
    storage.remove(storage.joined(fleet.root, "places"))
    storage.write(storage.joined(fleet.root, "places/tiny.gz"), packed)
    assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()


def test_of_several_names_it_is_that_of_the_file(fleet: Fleet) -> None:
    fleet.have(aliased="aliased")
    itself = open_symbols(open_source(str(fleet.binaries / "aliased")))
    starts = np.array([function.start for function in itself.functions()], np.uint64)
    found = fleet.store().find(itself.build_id, "aliased")
    assert found is not None
    one, other = found.symbols.lookup(starts), itself.lookup(starts)
    assert list(frames_by_address(one)) == list(frames_by_address(other))


UNWIND = SHARED / "captures/unwind"


@pytest.mark.skipif(not UNWIND.is_dir(), reason="no recordings with copies of stacks here")
def test_stacks_are_unwound_as_with_the_files_themselves(tmp_path: Path) -> None:
    """Call-frame information of binaries and of debug files: x86-64, i386, AArch64; compressed files."""
    root = UNWIND / "root"
    # Without build ids in a recording, names tell libraries apart.
    of_32_bits = [root / "usr/lib32", root / "home", root / "vdso32.so"]
    for name, places_of in {"mix-clang-static-64k": [root], "big32": of_32_bits, "arm64-pac": [root]}.items():
        store, outputs = SymbolStore(places_of, tmp_path / "cache"), set()
        for options in ({"sysroots": root, "symbols": root}, {"find_symbols": store.find}):
            trace = load_checked(UNWIND / name / "perf.data.zst", **options)
            traceferry.save(trace, tmp_path / "out.json")
            outputs.add((tmp_path / "out.json").read_bytes())
        assert len(outputs) == 1
        assert b"(no unwind information: libc" not in outputs.pop()


@pytest.mark.skipif(not UNWIND.is_dir(), reason="no recordings with copies of stacks here")
def test_stacks_through_functions_of_which_only_the_code_tells_end_there(tmp_path: Path) -> None:
    """A storage has no code."""
    root, lines = UNWIND / "root", []
    for options in ({"sysroots": root, "symbols": root}, {"find_symbols": SymbolStore([root], tmp_path).find}):
        trace = load_checked(UNWIND / "debugframe/perf.data.zst", **options)
        traceferry.save(trace, tmp_path / "out.folded")
        lines.append(set((tmp_path / "out.folded").read_text().splitlines()))
    of_files, of_storage = lines
    assert of_storage - of_files == {"debugframe;(no unwind information: debugframe);bare_asm 36"}
    (whole,) = of_files - of_storage
    assert whole.startswith("debugframe;_start;")
    assert whole.endswith(";main;bare_asm 36")


def test_files_of_another_build_are_refused(fleet: Fleet) -> None:
    fleet.have(tiny="tiny")
    fleet.recorded("/gone/tiny", bytes(20))
    assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()
    with pytest.raises(FormatError, match=fleet.build_id):
        fleet.store().find("00" * 20, "tiny")
    assert fleet.store().find("11" * 20, "libother.so") is None


def test_a_file_that_the_user_names_comes_first(fleet: Fleet) -> None:
    fleet.have(tiny="stripped")
    expected = fleet.output(symbols=fleet.binaries / "tiny")
    assert (
        fleet.output(symbols=fleet.binaries / "tiny", find_symbols=fleet.store().find) == expected != fleet.as_given()
    )


def test_who_asks_for_symbols_by_build_id() -> None:
    assert [importer.name for importer in IMPORTERS if importer.finds_symbols] == ["perf", "pprof", "firefox"]


# ---------------------------------------------------------------- once


def test_a_warm_cache_needs_neither_the_places_nor_their_files(fleet: Fleet) -> None:
    fleet.have(tiny="tiny")
    expected = fleet.output(find_symbols=fleet.store().find)
    storage.remove(storage.joined(fleet.root, "places"))
    assert fleet.output(find_symbols=fleet.store().find) == expected


def test_an_index_that_another_worker_made_is_read(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is opened for its build id again, until one changes."""
    fleet.have(tiny="stripped", other="unnamed")
    asked: list[str] = []
    identified = places.identified

    def counted(file: places.Listed) -> places.SymbolFile | None:
        asked.append(Path(file.url).name)
        return identified(file)

    monkeypatch.setattr(places, "identified", counted)
    for _ in range(2):
        assert fleet.store().find(fleet.build_id, "tiny") is not None
        assert fleet.store().find("", "libother.so") is None
    assert sorted(asked) == ["other", "tiny"]
    fleet.have(more="tiny.debug")
    assert fleet.store().find("", "libother.so") is None
    assert len(asked) == 5


def test_a_store_keeps_what_it_opened(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The damage that look-ups meet is that of each recording alone."""
    fleet.have(tiny="tiny")
    store = fleet.store()
    first = store.find(fleet.build_id, "tiny")
    monkeypatch.setattr(storage, "read", None)
    second = store.find(fleet.build_id.upper(), "tiny")
    assert first is not None
    assert second is not None
    assert second.symbols is not first.symbols
    assert second.binary is first.binary
    copy = pickle.loads(pickle.dumps(store))
    assert (copy.places, copy.cache) == (store.places, store.cache)


def _at_once(arguments: tuple[SymbolStore, str, Any]) -> str:
    store, build_id, barrier = arguments
    barrier.wait(60)
    found = store.find(build_id, "tiny")
    assert found is not None
    return found.symbols.build_id


def test_two_processes_with_one_cold_cache(tmp_path: Path, binaries: Path) -> None:
    """Both may make it; what is there in the end is whole, and nothing else is."""
    fleet = Fleet(tmp_path, binaries, str(tmp_path / "storage"))
    fleet.have(tiny="tiny")
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(2) as pool:
        barrier = manager.Barrier(2)
        found = pool.map(_at_once, [(fleet.store(), fleet.build_id, barrier)] * 2, chunksize=1)
    assert found == [fleet.build_id] * 2
    assert sorted(os.listdir(tmp_path / "storage/cache/gsym")) == [f"{fleet.build_id}.gsym", f"{fleet.build_id}.zip"]
    before = {path: path.read_bytes() for path in (tmp_path / "storage/cache").rglob("*.*")}
    assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()
    shutil.rmtree(tmp_path / "storage/cache")
    assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()
    assert {path: path.read_bytes() for path in (tmp_path / "storage/cache").rglob("*.*")} == before


def test_a_bucket(tmp_path: Path, binaries: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cold and warm, of a server of S3 on this machine."""
    for module in ("s3fs", "boto3"):
        pytest.importorskip(module, reason=f"{module} is not installed: pip install s3fs 'moto[server]'")
    server = pytest.importorskip("moto.server", reason="moto is not installed: pip install 'moto[server]'")
    import boto3
    import s3fs

    moto = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    try:
        _, port = moto.get_host_and_port()
        environment = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
        }  # fmt: skip
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="fleet")
        s3fs.S3FileSystem.clear_instance_cache()
        fleet = Fleet(tmp_path, binaries, "s3://fleet")
        fleet.have(tiny="stripped", tiny_debug="tiny.debug")
        expected = fleet.as_given()
        for _ in range(2):
            assert fleet.output(find_symbols=fleet.store().find) == expected
        assert fleet.cached() == [f"{fleet.build_id}.gsym", f"{fleet.build_id}.zip"]
    finally:
        moto.stop()
        s3fs.S3FileSystem.clear_instance_cache()


# ---------------------------------------------------------------- what goes wrong


def test_what_is_damaged_in_the_cache_is_made_again(fleet: Fleet) -> None:
    fleet.have(tiny="tiny")
    expected = fleet.output(find_symbols=fleet.store().find)
    for name in fleet.cached():
        url = storage.joined(fleet.root, f"cache/gsym/{name}")
        whole = storage.read(url)
        storage.remove(url)
        assert fleet.output(find_symbols=fleet.store().find) == expected
        assert storage.read(url) == whole
    storage.write(storage.joined(fleet.root, f"cache/gsym/{fleet.build_id}.zip"), b"PK and no more")
    assert fleet.output(find_symbols=fleet.store().find) == expected


def test_a_file_that_was_cut_in_a_cache_folder(tmp_path: Path, binaries: Path) -> None:
    fleet = Fleet(tmp_path, binaries, str(tmp_path / "storage"))
    fleet.have(tiny="tiny")
    expected = fleet.output(find_symbols=fleet.store().find)
    path = tmp_path / f"storage/cache/gsym/{fleet.build_id}.gsym"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert fleet.output(find_symbols=fleet.store().find) == expected
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written(fleet: Fleet) -> None:
    """Every recording says so."""
    fleet.have(tiny="tiny")
    (fleet.tmp_path / "file").write_text("no folder")
    store = fleet.store(str(fleet.tmp_path / "file/cache"))
    expected, report = fleet.as_given()
    for _ in range(2):
        assert fleet.output(find_symbols=store.find) == (expected, report | {"symbols_not_cached": 1})


def test_what_cannot_be_converted_is_read_itself(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: Any, **__: Any) -> None:
        raise UsageError("the symbols need 4 GiB or more")

    fleet.have(tiny="tiny")
    monkeypatch.setattr(symbols.writer, "write", too_large)
    store = fleet.store()
    expected, report = fleet.as_given()
    for _ in range(2):
        assert fleet.output(find_symbols=store.find) == (expected, report | {"symbols_not_converted": 1})
    assert fleet.cached() == []


def test_storage_that_fails_now_and_then(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is asked again; when it goes on failing, the recording is not read without names."""
    fleet.have(tiny="tiny")
    fs, _ = storage.filesystem_of(fleet.root)
    failing = [0, 1, 1, 0, 1, 0, 0, 1]
    read = type(fs).cat_file

    def unsteady(self: Any, *arguments: Any, **options: Any) -> Any:
        if failing and failing.pop():
            raise OSError(5, "503 Slow Down")
        return read(self, *arguments, **options)

    monkeypatch.setattr(type(fs), "cat_file", unsteady)
    monkeypatch.setattr(storage, "FIRST_PAUSE_S", 0.0)
    assert fleet.output(find_symbols=fleet.store().find) == fleet.as_given()
    failing[:] = [1] * 1000
    storage.remove(storage.joined(fleet.root, "cache"))
    with pytest.raises(OSError, match="503"):
        fleet.output(find_symbols=fleet.store().find)


def test_places_that_are_not_there(fleet: Fleet) -> None:
    with pytest.raises(FileNotFoundError):
        fleet.store().find(fleet.build_id, "tiny")


def test_without_a_store_fsspec_is_not_imported(tmp_path: Path, binaries: Path) -> None:
    fleet = Fleet(tmp_path, binaries, str(tmp_path))
    code = f"import sys, traceferry; traceferry.load({str(fleet.recording)!r}); print('fsspec' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
