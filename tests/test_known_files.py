"""A file that is no recording is named for what it is."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from traceferry.apps import cli
from traceferry.files.known_files import known_file


def elf(kind: int, order: str = "<") -> bytes:
    return b"\x7fELF" + bytes([2, 1 if order == "<" else 2, 1]) + bytes(9) + struct.pack(order + "H", kind) + bytes(40)


FILES = {
    "a.out": (elf(3), "this is a program or library (ELF): it names the functions of a recording"),
    "big": (elf(2, ">"), "this is a program (ELF)"),
    "x.o": (elf(1), "this is an object file (ELF)"),
    "core": (elf(4), "this is a core dump (ELF): a debugger reads it"),
    "strange": (elf(9), "this is a file (ELF)"),
    "x.jfr": (b"FLR\0\0\2\0\0", "a recording of Java Flight Recorder: jfrconv -o collapsed FILE"),
    "new.data": (b"PERFILE3" + bytes(80), "a perf.data of another version than 2"),
    "x.zip": (b"PK\3\4" + bytes(40), "a zip archive: unpack it"),
    "x.tar": (bytes(257) + b"ustar" + bytes(9), "a tar archive: unpack it"),
    "perf.data.tar": (
        b".build-id/48/dc540c8b".ljust(257, b"\0") + b"ustar" + bytes(9),
        "an archive of perf archive, the binaries of a recording: give both: traceferry "),
    "x.pcap": (b"\xd4\xc3\xb2\xa1" + bytes(20), "captured packets of a network"),
    "x.etl": (bytes(40) + b"\xff" * 9, "a trace of Event Tracing for Windows"),
    "x.nettrace": (b"Nettrace" + bytes(9), "a trace of .NET's EventPipe: dotnet-trace convert"),
    "x.sqlite": (b"SQLite format 3\0" + bytes(9), "an SQLite database"),
    "page.html": (b"<!DOCTYPE html>\n<title>x</title>", "a page for a browser: traceferry view opens it"),
    "viztracer.html": (
        b'<!DOCTYPE html>\n<script>\nr.match(/^<script class="trace-data" type="application\\/text">$/)</script>',
        "a page for a browser: traceferry view opens it"),
    "x.dmp": (b"MDMP" + bytes(20), "a crash dump of Windows or Breakpad"),
    "x.sym": (b"MODULE Linux x86_64 0 app\n", "a file of symbols, as Breakpad writes it"),
    "x.exe": (b"MZ" + bytes(20), "a program or library of Windows"),
    "x.afdo.txt": (b"# sample profile: 1\nmain:1:0\n", "a profile for compilers"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_what_a_file_is(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, packed: bool) -> None:
    data, said = FILES[name]
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert cli.main(["info", str(path)]) == 2
    error = capsys.readouterr().err
    assert said.split(":")[0] in error
    assert said in error or packed
    assert ("compressed (.gz)" in error) == packed


def test_an_archive_of_perf_stands_beside_its_recording() -> None:
    archive = memoryview(FILES["perf.data.tar"][0])
    assert known_file(archive, "a b/x.data.tar.bz2").endswith("traceferry 'a b/x.data' --symbols 'a b/x.data.tar.bz2'")


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\2\1", b"P", b"hello", bytes(300)])
def test_what_is_not_known(data: bytes) -> None:
    assert known_file(memoryview(data), "x") == ""


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("notes", b"#include <stdio.h>\n\tint main(void);\n", ": text (see"),
        ("notes.gz", "schön\r\n".encode(), ": text, compressed (.gz) (see"),
        ("blob.gz", bytes(300), ": compressed (.gz) (see"),
        ("blob", bytes(300), " (see"),
        ("x.mlpd", b"no recording", ": text; its suffix is that of mono"),
    ],
)
def test_what_is_said_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert cli.main(["info", str(tmp_path / name)]) == 2
    assert f"unrecognised input format{said}" in capsys.readouterr().err


def test_what_holds_nothing_for_viewers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["convert", "x.data", "--without", "firefox", "-o", str(tmp_path / "x.json")]) == 2
    assert capsys.readouterr().err == (
        "traceferry: --without firefox: the output is of the format firefox, and only a page (.html) holds files for "
        "viewers\n"
    )
