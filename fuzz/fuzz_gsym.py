"""Fuzzes the reader of GSYM files. Run by `make fuzz`.

Seeds are files that the tests' builder makes, in both versions and byte orders, and one in an ELF file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from common import MAX_FUNCTIONS, ROOT, run_symbols, said_by, stacks_of

sys.path.insert(0, str(ROOT / "tests"))

from builders.gsym import (
    ADDRESS_SIZES,
    BIG,
    LITTLE,
    SHT_PROGBITS,
    VERSIONS,
    Body,
    Call,
    ElfPart,
    GsymFile,
    Site,
    elf,
)


def everything(file: GsymFile) -> GsymFile:
    """Lines, inlined calls in each other, merged functions, call sites; equal starts, a size of 0."""
    inner = Call("inner", [(0x1020, 0x1024)], "b.h", 7)
    calls = [Call("first", [(0x1012, 0x1014)]), Call("outer", [(0x1018, 0x1028), (0x1034, 0x1036)], children=[inner])]
    lines = [(0x1010, "a.c", 10), (0x1018, "b.h", 300), (0x1018, "b.h", 301), (0x1030, "a.c", 0)]
    merged = [Body("same", 0x1010, 0x30, [(0x1010, "b.h", 50)]), Body("short", 0x1010, 4)]
    file.function("main", 0x1010, 0x30, lines, calls, merged, [Site(4, ["puts"]), Site(9, ["a.*", "b"], 2)])
    return file.function("f", 0x1060, 4, [(0x1060, "a.c", 1)]).function("g", 0x1060, 16).function("label", 0x1080, 0)


def seeds() -> Iterator[tuple[str, bytes]]:
    for version in VERSIONS:
        for tag, order in (("little", LITTLE), ("big", BIG)):
            for size in ADDRESS_SIZES:
                yield f"v{version}-{tag}-{size}", everything(GsymFile(version, order, size)).bytes()
    yield "elf", elf(ElfPart(".gsym", SHT_PROGBITS, everything(GsymFile()).bytes()))


def said(data: bytes) -> list[Any]:
    """All that the reader says of the bytes; a FormatError says that they are no such file."""
    from traceferry.common.errors import FormatError
    from traceferry.files.source import Source
    from traceferry.symbolication.gsym.reader import Gsym

    try:
        gsym = Gsym(Source("fuzz.gsym", memoryview(data)))
    except FormatError as error:
        return [error.message, error.offset]
    starts = [function.start for function in islice(gsym.functions(), MAX_FUNCTIONS)]
    merged = [([stacks_of(frames) for frames in gsym.merged(at)], gsym.call_sites(at)) for at in starts[:8]]
    return [merged, gsym.sizes(), said_by(gsym)]


if __name__ == "__main__":
    run_symbols("gsym", seeds, said)
