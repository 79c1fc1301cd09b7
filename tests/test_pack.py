"""Packs: what is read of a recording elsewhere is what is read of it here."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import zstandard
from conftest import REPO, one_in
from test_debug_files import BUILD_ID, WORK, elf
from test_debuginfod import send, server
from test_perf_map import PROGRAM as TINY
from test_perf_map import Elf, running

import traceferry
from traceferry import packing
from traceferry.apps import cli
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.report import Report
from traceferry.files.answers import Keeping
from traceferry.files.decompress import DEFAULT_LIMIT
from traceferry.files.pack import MANIFEST, inputs_of
from traceferry.files.source import Source, source_of
from traceferry.importers.perf.kallsyms import KernelSymbols
from traceferry.reading import LoadOptions
from traceferry.symbolication import demangle
from traceferry.symbolication.archives import files_of
from traceferry.symbolication.interface import Answer, frames_of
from traceferry.unwinding.packed import PackedSymbols, Used, packed_symbols

ELSEWHERE = REPO / "tests" / "elsewhere.py"
# A page holds the files for both viewers.
OUTPUTS = ("o.html", "o.gecko.json")
JAVA = REPO / "fixtures/jit/java17"
WASMTIME = REPO / "fixtures/jit/wasmtime"
XRAY = REPO / "fixtures/xray/clang-19"
PROGRAM = """
#include <stdlib.h>
#include <string.h>
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) int fill(int *v, int n) { for (int i = 0; i < n; i++) v[i] = rand(); return v[n / 2]; }
int main(void) {
    static int v[100000];
    int sum = 0;
    for (int r = 0; r < 8; r++) { sum += fill(v, 100000); qsort(v, 100000, sizeof *v, less); }
    return sum == 1;
}
"""


def elsewhere(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs a command on a machine that has nothing but the folder."""
    environment = os.environ | {"HOME": "/nonexistent", "TMPDIR": str(folder), "COLUMNS": "80"}
    command = [sys.executable, str(ELSEWHERE), str(folder), "--", *map(str, words)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def check_same_elsewhere(tmp_path: Path, recording: Path, *options: object) -> None:
    """All outputs of a pack, and what is said of them, are those of the recording."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    words = [str(recording), *map(str, options)]
    run = [sys.executable, "-m", "traceferry"]
    subprocess.run([*run, "pack", *words, "-o", str(there / "app.tfpack"), "--quiet"], check=True, timeout=300)
    for output in OUTPUTS:
        done = subprocess.run(
            [*run, "convert", *words, "-o", output], cwd=here, check=True, capture_output=True, text=True, timeout=300
        )
        moved = elsewhere(there, "convert", "app.tfpack", "-o", output)
        assert (moved.returncode, moved.stderr) == (0, done.stderr)
        assert (there / output).read_bytes() == (here / output).read_bytes()
    info = subprocess.run([*run, "info", "--json", *words], check=True, capture_output=True, text=True, timeout=300)
    assert elsewhere(there, "info", "--json", "app.tfpack").stdout == info.stdout


@pytest.mark.parametrize("call_graph", one_in(2, ["dwarf,4096", "fp"]))
def test_a_recording_of_this_machine_is_the_same_elsewhere(tmp_path: Path, call_graph: str) -> None:
    compiler, perf = shutil.which("gcc"), shutil.which("perf")
    if compiler is None or perf is None:
        pytest.skip("gcc or perf is not installed")
    (tmp_path / "app.c").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "-g", tmp_path / "app.c", "-o", tmp_path / "app"], check=True)
    data = tmp_path / "perf.data"
    recorded = subprocess.run(
        [perf, "record", "-q", "-F", "499", "--call-graph", call_graph, "-o", data, tmp_path / "app"],
        capture_output=True, timeout=60,
    )  # fmt: skip
    if recorded.returncode != 0:
        pytest.skip("perf cannot record here")
    check_same_elsewhere(tmp_path, data)
    listed = elsewhere(tmp_path / "there", "info", "app.tfpack").stdout
    assert "less" in listed
    assert "app.c" in listed


@pytest.mark.parametrize(
    ("recording", "options"),
    [
        pytest.param(JAVA / "perf.data.zst", (), marks=pytest.mark.large),
        pytest.param(WASMTIME / "perf.data.zst", (), marks=pytest.mark.large),
        pytest.param(XRAY / "fdr-c19-pie-except.xray", ("--symbols", XRAY / "except-pie.zst"), marks=pytest.mark.large),
        (REPO / "fixtures/mono/mono-6.8/threads.mlpd.zst", ()),
    ],
    ids=["java", "wasmtime", "xray", "mono"],
)
def test_fixtures_are_the_same_elsewhere(tmp_path: Path, recording: Path, options: tuple[object, ...]) -> None:
    if not recording.exists():
        pytest.skip(f"{recording.name} is not there")
    check_same_elsewhere(tmp_path, recording, *options)


def test_the_same_recording_makes_the_same_bytes_and_every_command_reads_them(tmp_path: Path) -> None:
    data, one, two = JAVA / "perf.data.zst", tmp_path / "one.tfpack", tmp_path / "two.tfpack"
    for output in (one, two):
        assert cli.main(["pack", str(data), "-o", str(output), "--quiet"]) == 0
    assert one.read_bytes() == two.read_bytes()
    assert cli.main(["check", str(one), "--fail-on", "damage"]) == 0
    assert cli.main(["dump", str(one), "--limit", "2"]) == 0
    assert cli.main(["compare", str(data), str(one)]) == 0
    with pytest.raises(UsageError, match="it is of a pack"):
        packing.gather(one)


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX's")
@pytest.mark.parametrize(
    ("recording", "jitdump", "pack"), [(0o600, 0o644, 0o600), (0o644, 0o640, 0o640), (0o444, 0o644, 0o644)]
)
def test_who_may_read_a_pack_is_who_may_read_all_in_it(tmp_path: Path, recording: int, jitdump: int, pack: int) -> None:
    """Also where a pack is replaced."""
    from builders.jitdump import JitDump
    from builders.perf_data import PerfData

    dump, data, output = tmp_path / "jit-7.dump", tmp_path / "perf.data", tmp_path / "a.tfpack"
    dump.write_bytes(JitDump(pid=7).load("f", 64, ts=5).bytes())
    data.write_bytes(
        PerfData(start=0).event().mmap2(7, 7, 0x1000, 4096, 0, str(dump), ts=0).sample(7, 7, 5, 64).bytes()
    )
    data.chmod(recording)
    dump.chmod(jitdump)
    for _ in range(2):
        assert cli.main(["pack", str(data), "-o", str(output), "--quiet"]) == 0
        assert output.stat().st_mode & 0o777 == pack
        output.chmod(0o666 if pack == 0o600 else pack)
    assert any("jit-7.dump" in name for name in packing.gather(data).members)


@pytest.fixture
def moved(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Returns (the pack of a recording of a stripped program, that program, its debug file), which are here no more."""
    compiler, objcopy = shutil.which("gcc"), shutil.which("objcopy")
    if compiler is None or objcopy is None:
        pytest.skip("no gcc and objcopy here to make a program and its debug file")
    (tmp_path / "tiny.c").write_text(TINY)
    subprocess.run([compiler, "-g", "-O2", "-Wl,--build-id=sha1", "tiny.c", "-o", "tiny"], check=True, cwd=tmp_path)
    subprocess.run([objcopy, "--only-keep-debug", "tiny", "debug"], check=True, cwd=tmp_path)
    stripped, data = tmp_path / "here" / "tiny", tmp_path / "perf.data"
    stripped.parent.mkdir()
    subprocess.run([objcopy, "--strip-all", tmp_path / "tiny", stripped], check=True)
    build_id = Elf(tmp_path / "tiny").build_id
    data.write_bytes(running(tmp_path / "tiny", str(stripped), build_id).bytes())
    packing.write(packing.gather(data), tmp_path / "a.tfpack")
    shutil.rmtree(stripped.parent)
    return tmp_path / "a.tfpack", tmp_path / "tiny", tmp_path / "debug"


def test_a_server_names_what_a_pack_has_of_a_stripped_program(
    moved: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack, program, debug = moved
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    assert "outer" not in list(traceferry.load(pack).strings)
    with server(send(debug.read_bytes())) as (url, asked):
        found = traceferry.load(pack, options=LoadOptions(debuginfod=[url]))
    assert {"outer", "inner", "deep"} <= {name.strip("()") for name in found.strings}
    assert asked == [f"/buildid/{Elf(program).build_id.hex()}/debuginfo"]


def test_a_program_that_the_user_gives_shows_the_code_of_a_pack(moved: tuple[Path, Path, Path]) -> None:
    pack, program, debug = moved
    for symbols, has_code in (([program], True), ([debug], False), ([], False)):
        trace = traceferry.load(pack, symbols=symbols)
        assert ("outer" in list(trace.strings)) == bool(symbols)
        (reader,) = trace.library_readers
        assert bool(reader.bytes_of(0, Elf(program).address, 16)) == has_code


def test_whole_keeps_functions_that_the_recording_does_not_have(tmp_path: Path) -> None:
    log, program = XRAY / "fdr-c19-pie-except.xray", XRAY / "except-pie.zst"
    few, all_ = (packing.gather(log, symbols=program, whole=whole) for whole in (False, True))
    assert all_.sizes["names"] > few.sizes["names"]
    packing.write(all_, tmp_path / "all.tfpack")
    found = traceferry.load(tmp_path / "all.tfpack")
    assert list(found.strings) == list(traceferry.load(log, symbols=program).strings)


def test_what_is_missing_is_told_before_anything_is_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # perf's cache may have the library
    data = tmp_path / "perf.data.zst"
    shutil.copy(WASMTIME / "perf.data.zst", data)
    assert cli.main(["pack", str(data), "-o", str(tmp_path / "no" / "app.tfpack")]) == 2
    said = capfd.readouterr().err
    assert "not found: " in said
    assert "build id" in said
    assert said.index("not found: ") < said.index("cannot be written")


def test_sources_are_packed_where_they_are_embedded(tmp_path: Path) -> None:
    from builders.jitdump import JitDump

    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "a.js"
    source.write_text("the text\n")
    dump = tmp_path / "jit-7.dump"
    dump.write_bytes(JitDump(pid=7).debug_info(64, [(64, 1, 1, str(source))]).load("f", 64).bytes())
    contents = packing.gather(dump, options=LoadOptions(embed_sources=tmp_path / "src"))
    packing.write(contents, tmp_path / "a.tfpack")
    source.unlink()
    traceferry.convert(tmp_path / "a.tfpack", tmp_path / "o.json")
    assert b"the text" in (tmp_path / "o.json").read_bytes()
    assert contents.sizes["sources"] == 9


# ---------------------------------------------------------------- libraries


class Answering:
    """Symbols with the answers of one address each."""

    path = name = "lib.so"
    base, build_id, gives, problems = 0x1000, "ab" * 20, "the symbol table", ()

    def __init__(self, answers: dict[int, Answer]) -> None:
        self.answers = answers

    def lookup(self, addresses: Any) -> Any:
        return frames_of([self.answers[address] for address in addresses.tolist()])

    def functions(self) -> Any:
        return iter(())


def shown(found: Any) -> list[Any]:
    texts = [*found.texts, ""]
    first = found.first.tolist()
    frames = [
        (texts[name], texts[source], line)
        for name, source, line in zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    ]
    return [
        (start, size, frames[begin:end])
        for begin, end, start, size in zip(
            first[:-1], first[1:], found.start.tolist(), found.size.tolist(), strict=True
        )
    ]


ANSWERS = {
    "plain": {0x1010: Answer(0x1000, 32, [("f", "/a.c", 7)])},
    "inlined": {0x1010: Answer(0x1000, 32, [("g", "/g.h", 3), ("h", "/h.h", 4), ("f", "/a.c", 7)])},
    "inlined without a source": {0x1010: Answer(0x1000, 32, [("g", "", 0), ("f", "", 0)])},
    "without a start": {0x1010: Answer(0, 0, [("f", "", 0)])},
    "without a name": {0x1010: Answer(0x1000, 32, [("", "/a.c", 1)])},
    "nothing": {0x1010: Answer(0, 0, [])},
    "two names of one function": {
        0x1010: Answer(0x1000, 32, [("f", "", 0)]),
        0x1018: Answer(0x1000, 32, [("F", "", 0)]),
    },
    "overlapping": {0x1010: Answer(0x1000, 32, [("f", "", 0)]), 0x100C: Answer(0x1008, 8, [("g", "", 0)])},
    "other sizes": {0x1010: Answer(0x1000, 32, [("f", "", 0)]), 0x1011: Answer(0x1000, 0, [("f", "", 0)])},
    "zeros in names": {0x1010: Answer(0x1000, 32, [("f\0g", "a\0b", 5)])},
}


@pytest.mark.parametrize("case", ANSWERS)
def test_every_answer_is_given_again(case: str) -> None:
    answers = ANSWERS[case]
    symbols = Answering(answers)
    addresses = np.array(list(answers), np.uint64)
    value = packed_symbols(Used(symbols, symbols.lookup, [addresses]), big=False)
    value["gsym"] = memoryview(value["gsym"].data)
    found = PackedSymbols(orjson.loads(orjson.dumps({**value, "gsym": None})) | {"gsym": value["gsym"]})
    assert shown(found.lookup(addresses)) == shown(symbols.lookup(addresses))
    assert (found.path, found.base, found.gives) == ("lib.so", 0x1000, "the symbol table")


def test_used_lines_of_kallsyms_answer_as_all_do() -> None:
    lines = [f"{0xFFFF0000 + 16 * nth:016x} {kind} name{nth}" for nth, kind in enumerate("tTdwWt" * 50)]
    lines += [f"{0xFFFF0000:016x} T _text", f"{0xFFFF1000:016x} t _etext", f"{0xFFFFA000:016x} t of [module]"]
    whole = KernelSymbols("\n".join(lines).encode() + b"\n")
    asked = np.array([0, 0xFFFF0005, 0xFFFF0104, 0xFFFF1FFF, 0xFFFFB000], np.uint64)
    answers = [(whole.lookup(module, asked), whole.address_of("_text")) for module in ("", "module", "none")]
    used = whole.used()
    few = KernelSymbols(used)
    assert [(few.lookup(module, asked), few.address_of("_text")) for module in ("", "module", "none")] == answers
    assert len(used.splitlines()) < 8
    assert not KernelSymbols(KernelSymbols(b"0" * 15 + b"1 T f\n").used()).is_empty


def test_names_that_another_library_demangled_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may not be installed where the pack is read."""
    log, program = tmp_path / "a.xray", tmp_path / "program"
    shutil.copy(XRAY / "fdr-c19-pie-except.xray", log)
    program.write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress((XRAY / "except-pie.zst").read_bytes()))
    names = [one for one in traceferry.load(log, symbols=program).strings if one.startswith("main")]
    monkeypatch.setattr(demangle, "SWIFT_AND_D", re.compile("main"))
    monkeypatch.setattr(demangle, "other_demangler", lambda: lambda name: f"other({name})")
    packing.write(packing.gather(log, symbols=program), tmp_path / "a.tfpack")
    monkeypatch.setattr(demangle, "other_demangler", lambda: None)
    found = traceferry.load(tmp_path / "a.tfpack")
    assert names
    assert f"other({names[0]})" in list(found.strings)
    assert "names_of_other_languages" not in {issue.kind for issue in found.report}
    assert "names_of_other_languages" in {issue.kind for issue in traceferry.load(log, symbols=program).report}


# ---------------------------------------------------------------- packs of others


def pack_of(manifest: Any, *members: tuple[str, bytes], end: bool = True) -> bytes:
    out = io.BytesIO()
    for name, data in ((MANIFEST, orjson.dumps(manifest)), *members):
        header = tarfile.TarInfo(name)
        header.size = len(data)
        out.write(header.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512))
    return out.getvalue() + bytes(1024) * end


INPUT = {"path": "a", "data": {"member": "m"}, "parts": [], "damage": "", "limited": ""}


@pytest.mark.parametrize(
    "data",
    [
        pack_of([]),
        pack_of({"version": 2, "inputs": [], "answers": {}}),
        pack_of({"version": 1, "inputs": [], "answers": {}}),
        pack_of({"version": 1, "inputs": [INPUT], "answers": {}}),
        pack_of({"version": 1, "inputs": [INPUT | {"path": 7}], "answers": {}}, ("m", b"x")),
        pack_of({"version": 1, "inputs": [INPUT | {"data": "m"}], "answers": {}}, ("m", b"x")),
        pack_of({"version": 1, "inputs": [INPUT], "answers": []}, ("m", b"x")),
        pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, ("m", b"x"), ("m", b"y")),
        pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, ("m", b"x"), ("../m", b"y")),
        pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, ("m", b"x"), end=False),
        pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, ("m", b"x"))[:1700],
        pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, ("m", b"x"))[:1000] + b"\1" * 1000,
    ],
)
def test_damaged_packs_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError) as raised:
        inputs_of(Source("x.tfpack", memoryview(data)))
    assert raised.value.path == "x.tfpack"


def test_links_and_devices_in_packs_are_refused() -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE):
        link = tarfile.TarInfo("m")
        link.type, link.linkname = kind, "/etc/passwd"
        data = pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, end=False)
        with pytest.raises(FormatError, match="no member"):
            inputs_of(Source("x", memoryview(data + link.tobuf(tarfile.GNU_FORMAT) + bytes(1024))))


@pytest.mark.parametrize(
    "answer",
    [
        7,
        [],
        [[["no kind", 1, None, "", "", None]], []],
        [[["files_read", "1", None, "", "", None]], []],
        [[["files_read", -1, None, "", "", None]], []],
        [[], {"member": "none"}],
        [[["files_read", 1]], []],
        [[], [{"number": 0}]],
    ],
)
def test_damaged_answers_are_refused(tmp_path: Path, answer: Any) -> None:
    log = (XRAY / "fdr-c19-pie-pool-tsc.xray").read_bytes()
    file = tmp_path / "a.tfpack"
    file.write_bytes(pack_of({"version": 1, "inputs": [INPUT], "answers": {"a: program": answer}}, ("m", log)))
    with pytest.raises(FormatError, match="damaged pack"):
        traceferry.load(file)


def test_a_pack_does_not_expand_beyond_the_limit(tmp_path: Path) -> None:
    log = bytes(64 << 20)
    file = tmp_path / "a.tfpack"
    file.write_bytes(zstandard.compress(pack_of({"version": 1, "inputs": [INPUT], "answers": {}}, ("m", log)), level=3))
    assert file.stat().st_size < 64 << 10
    with pytest.raises(FormatError, match="damaged pack"):
        traceferry.load(file, options=LoadOptions(decompress_limit=1 << 20))


def test_notes_of_a_question_are_noted_again() -> None:
    keeping, report = Keeping(), Report()

    def find() -> int:
        report.note("files_read", where="a", detail="a")
        return 5

    assert keeping.of("in").ask("key", report, find) == 5
    notes, value = keeping.asked["in: key"]
    assert ([note[0] for note in notes], value()) == (["files_read"], 5)


# ---------------------------------------------------------------- perf archive


def archive(*members: tuple[str, bytes], link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as packed:
        for name, data in members:
            header = tarfile.TarInfo(name)
            header.size = len(data)
            packed.addfile(header, io.BytesIO(data))
        if link:
            header = tarfile.TarInfo(f".build-id/a0/{BUILD_ID.hex()[2:]}/elf")
            header.type, header.linkname = tarfile.SYMTYPE, link
            packed.addfile(header)
    return out.getvalue()


LIBRARY = elf(WORK, build_id=BUILD_ID)


@pytest.mark.parametrize("compress", [bytes, bz2.compress, lzma.compress], ids=["tar", "bz2", "xz"])
def test_archives_of_perf_are_read_in_memory(compress: Callable[[bytes], bytes]) -> None:
    inside = (f"usr/lib/libx.so/{BUILD_ID.hex()}/elf", LIBRARY)
    packed = archive(inside, ("usr/lib/libx.so/probes", b""), ("x/elf", b"no ELF file"), link="/etc/passwd")
    (found,) = files_of(source_of("perf.data.tar.bz2", compress(packed), DEFAULT_LIMIT))
    assert (found.path, bytes(found.data)) == (f"perf.data.tar.bz2/{inside[0]}", LIBRARY)


def test_damaged_archives_are_refused_and_other_files_stay() -> None:
    other = Source("libx.so", memoryview(LIBRARY))
    assert files_of(other) == [other]
    packed = archive(("a/elf", LIBRARY), ("b/elf", bytes(64 << 20)))
    # The last one decompresses to more than a thousand times its size.
    for data in (packed[:-9000], bz2.compress(packed)[:-30], bz2.compress(packed)):
        with pytest.raises(FormatError, match="damaged archive"):
            files_of(source_of("a.tar.bz2", data, DEFAULT_LIMIT))
