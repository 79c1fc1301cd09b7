"""Fuzzes the reader of Breakpad symbol files. Run by `make fuzz`.

Seeds are files that the tests' builder makes, of each kind of record alone and of all together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from common import ROOT, run_symbols, said_by

sys.path.insert(0, str(ROOT / "tests"))

from builders.breakpad import SymFile

TOP = (1 << 64) - 16


def everything(newline: str = "\n") -> SymFile:
    """Lines, inlined calls in each other and in pieces, functions that overlap, public names, damage."""
    file = SymFile(newline=newline).code_id().file(0, "/src/a b.c").file(7, "c.h").origin(0, "inner").origin(3, "deep")
    file.func(0x1000, 0x40, "outer(int, char)")
    file.inline(0, 12, 0, 0, (0x1010, 0x10), (0x1028, 8)).inline(1, 5, 7, 3, (0x1014, 4))
    file.line(0x1000, 0x10, 11, 0).line(0x1010, 8, 100, 7).line(0x1018, 8, 0, 0).line(0x1028, 8, 102, 9)
    file.func(0x1020, 8, "inside", multiple=True, parameters=4).func(0x1000, 0x40, "again").func(0x1100, 0, "empty")
    return file.public(0x2000, "public", multiple=True).public(0x1000, "outer").raw("STACK CFI INIT 1000 40 .cfa: $rsp")


def built() -> Iterator[tuple[str, SymFile]]:
    yield "everything", everything()
    yield "everything-crlf", everything("\r\n")
    yield "function", SymFile().func(0x1000, 0x10, "f")
    yield "line", SymFile("0" * 33).file(1, "a.c").func(0x1000, 0x10, "f").line(0x1000, 0x10, 3, 1)
    inlined = SymFile().file(1, "a.c").origin(2, "g").func(0x1000, 0x10, "f").line(0x1000, 0x10, 3, 1)
    yield "inlined", inlined.inline(0, 7, 1, 2, (0x1004, 4))
    windows = SymFile().file(1, "c:\\src\\a.c").file(2, "c:\\src/b.h")
    yield "windows", windows.func(0, 8, "f").line(0, 4, 1, 1).line(4, 4, 1, 2)
    yield "public", SymFile().public(0x1000, "a").public(0x1000, "b").public(0x1010, "c")
    yield "top", SymFile().file(1, "a.c").func(TOP, 15, "f").line(TOP, 15, 1 << 31, 1).public(TOP + 15, "last")
    deep = SymFile().file(1, "a.c").origin(2, "g").func(0, 0x10, "f").line(0, 0x10, 3, 1)
    for level in range(140):
        deep.inline(level, 7, 1, 2, (0, 0x10))
    yield "deep", deep
    yield "damaged", SymFile().raw("FUNC").raw("1000 10 1 1").raw("INLINE 0").raw("").raw("FILE x").raw("PUBLIC 0 0")


def seeds() -> Iterator[tuple[str, bytes]]:
    for name, file in built():
        yield name, file.bytes()


def said(data: bytes) -> list[Any]:
    """All that the reader says of the bytes; a FormatError says that they are no such file."""
    from traceferry.common.errors import FormatError
    from traceferry.files.source import Source
    from traceferry.symbolication.breakpad.reader import Breakpad

    try:
        return said_by(Breakpad(Source("fuzz.sym", memoryview(data))))
    except FormatError as error:
        return [error.message, error.offset]


if __name__ == "__main__":
    run_symbols("breakpad", seeds, said, plain=["traceferry.symbolication.breakpad.reader"])
