"""Fuzzes the tables of functions in programs of Go, in each layout, byte order and size of addresses, with inlined
calls. Run by `make fuzz`. Seeds are programs that the tests' builder makes."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from itertools import islice

from common import MAX_FUNCTIONS, ROOT, asked_of, run_symbols, said_by

sys.path.insert(0, str(ROOT / "tests"))

from builders.go_tables import Call, Function, GoProgram

FILES = ["/src/main.go", "/src/util.go"]
INLINED = [Call("util.Twice", 1, 21, -1, 0x04), Call("util.add", 1, 5, 0, 0x08)]
FUNCTIONS = [
    Function("_rt0_amd64_linux", 0x10, [(0x10, 1)], [(0x10, 8)]),
    Function(
        "main.work",
        0x30,
        [(0x08, 0), (0x18, 1), (0x30, 0)],
        [(0x04, 20), (0x08, 21), (0x14, 2), (0x30, 22)],
        [(0x08, -1), (0x0C, 0), (0x14, 1), (0x30, -1)],
        INLINED,
    ),
]


def seeds() -> Iterator[tuple[str, bytes]]:
    for since, order, bits in itertools.product((2, 16, 18, 20), "<>", (32, 64)):
        program = GoProgram(FUNCTIONS, FILES, since, order, bits)
        yield f"{since}-{'big' if order == '>' else 'little'}-{bits}", program.elf()
    yield "of the loader", GoProgram(FUNCTIONS, FILES, pie=True).elf(".data.rel.ro", before=bytes(16))
    yield "without sections", GoProgram(FUNCTIONS, FILES, header_text=False).elf(sections=False)
    yield "by its entry point", GoProgram(FUNCTIONS, FILES, header_text=False, module=False).elf()


def said(data: bytes) -> list[object]:
    """All that it says; nothing of what is no ELF file."""
    from traceferry.common.errors import FormatError
    from traceferry.files.source import Source
    from traceferry.symbolication.binary import Binary
    from traceferry.symbolication.elf import ElfSymbols

    try:
        symbols = ElfSymbols(Binary(Source("app", memoryview(data))))
        functions = list(islice(symbols.functions(), MAX_FUNCTIONS))
        asked_of(functions)
        return [said_by(symbols), len(functions)]
    except FormatError as error:
        return [error.message, error.offset]


if __name__ == "__main__":
    run_symbols("go_tables", seeds, said)
