"""Fuzzes the reader of GSYM files: any bytes give symbols or a FormatError, look-ups say what the whole functions say,
and the compiled kernel gives what the interpreted one gives. Run by `make fuzz`.

Seeds are files that the tests' builder makes, in both versions and byte orders, and one in an ELF file.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import atheris
from common import MAX_SIZE, ROOT, _interpreted, _kernels

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

KERNEL = "converter.symbols.gsym_kernel"
MAX_FUNCTIONS = 300


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


def asked(data: bytes) -> list[Any]:
    """All that the reader says of the bytes; a FormatError says that they are no such file."""
    import numpy as np

    from converter.errors import FormatError
    from converter.source import Source
    from converter.symbols.gsym import Gsym

    try:
        gsym = Gsym(Source("fuzz.gsym", memoryview(data)))
    except FormatError as error:
        return [error.message, error.offset]
    functions = list(islice(gsym.functions(), MAX_FUNCTIONS))
    addresses = {gsym.base, 0, (1 << 64) - 1}
    for function in functions:
        middle = function.start + function.size // 2
        addresses |= {at % (1 << 64) for at in (function.start - 1, function.start, middle, function.start + 0x12)}
    frames = gsym.lookup(np.array(sorted(addresses), np.uint64))
    assert frames.first[0] == 0
    assert frames.first[-1] == len(frames.name) == len(frames.source) == len(frames.line)
    for indices in (frames.name, frames.source):
        assert ((indices >= -1) & (indices < len(frames.texts))).all()
    answers = [column.tolist() for column in (frames.first, frames.name, frames.source, frames.line, frames.start)]
    merged = [(len(gsym.merged(f.start)), gsym.call_sites(f.start)) for f in functions[:8]]
    return [functions, answers, list(frames.texts), merged, gsym.sizes(), gsym.problems]


def main() -> None:
    with atheris.instrument_imports(include=["converter"]):
        importlib.import_module("converter.symbols.gsym")
    compiled = {KERNEL: importlib.import_module(KERNEL)}
    interpreted = {KERNEL: _interpreted(KERNEL)}

    def one_input(data: bytes) -> None:
        with _kernels(compiled, interpreted):
            slow = asked(data[:MAX_SIZE])
        assert slow == asked(data[:MAX_SIZE]), "the compiled kernel gives another result than the interpreted one"

    corpus = ROOT / "fuzz" / "corpus" / "gsym"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in seeds():
        (corpus / f"seed-{name}").write_bytes(data[:MAX_SIZE])
    seconds = os.environ.get("FUZZ_SECONDS", "600")
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_SIZE}", "-timeout=20", "-rss_limit_mb=3000"]
    options += ["-artifact_prefix=" + str(ROOT / "fuzz") + "/finding-", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, *sys.argv[1:], str(corpus)], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
