"""Fuzzes the sections that tell where the names of a stripped file are: .gnu_debuglink, .gnu_debugaltlink and
.gnu_debugdata, compressed and what is in it. Run by `make fuzz`.

The first byte of an input chooses the section, the rest is its content.
"""

from __future__ import annotations

import lzma
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from common import MAX_FUNCTIONS, ROOT, asked_of, run_symbols, said_by

sys.path.insert(0, str(ROOT / "tests"))

from builders.dwarf import Dwarf, Symbol

# What the first byte means; the last is compressed here, so that what is inside comes through.
SECTIONS = (".gnu_debuglink", ".gnu_debugaltlink", ".gnu_debugdata", ".gnu_debugdata")
INSIDE = len(SECTIONS) - 1
# Without a checksum, of which the fuzzer knows nothing.
CHECK = lzma.CHECK_NONE


def inside() -> bytes:
    return Dwarf().elf([Symbol("work", 0x1000, 0x20), Symbol("_ZN1n1fEv", 0x1020, 8)])


def seeds() -> Iterator[tuple[str, bytes]]:
    yield "link", b"\0libx.so.debug\0\0\0\x12\x34\x56\x78"
    yield "up", b"\0../../x\0\0\0\0\0\0\0\0"
    yield "alternative", b"\1../../.dwz/common.debug\0" + bytes(range(20))
    yield "absolute", b"\1/usr/lib/debug/.dwz/x.debug\0" + bytes(20)
    yield "compressed", b"\2" + lzma.compress(inside(), check=CHECK)
    yield "two streams", b"\2" + lzma.compress(inside(), check=CHECK) + lzma.compress(b"more")
    yield "alone", b"\2" + lzma.compress(inside(), lzma.FORMAT_ALONE)
    yield "inside", b"\3" + inside()


def stripped(data: bytes) -> bytes:
    """Returns an ELF file without names that has such a section."""
    kind, content = (data[0] % len(SECTIONS), data[1:]) if data else (0, b"")
    dwarf = Dwarf()
    dwarf.add(SECTIONS[kind], lzma.compress(content, check=CHECK, preset=0) if kind == INSIDE else content)
    return dwarf.elf()


def said(data: bytes) -> list[object]:
    """All that is found through the section; nothing outside an empty file tree."""
    from traceferry.common.errors import FormatError
    from traceferry.common.report import Report
    from traceferry.files.source import Source
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.debug_files import DebugFiles
    from traceferry.symbolication.elf import ElfSymbols

    with tempfile.TemporaryDirectory() as root:
        binary = Binary(Source(f"{root}/libx.so", memoryview(stripped(data))))
        symbols = ElfSymbols(binary)
        report = Report()
        files = DebugFiles(report, [root])
        assert files.debug_file(binary, "/opt/libx.so", "libx.so") is None
        assert files.alternative(binary) is None
        assert not list(Path(root).iterdir())
        try:
            functions = list(islice(symbols.functions(), MAX_FUNCTIONS))
            asked_of(functions)
            return [said_by(symbols), len(functions)]
        except FormatError as error:
            return [error.message, error.offset]


if __name__ == "__main__":
    run_symbols("debug_links", seeds, said)
