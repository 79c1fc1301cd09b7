"""Makes the GSYM files beside fixtures: `python tests/fixture_symbols.py [FOLDER...]`, `make fixture-symbols`.

A file NAME.gsym has the functions of a library that the samples of perf.data hit, and no others, without lines. Names
come from the library itself, where it is installed here in the recorded build, else from what `perf script` printed on
the machine that was recorded (script.jit.txt.zst). A function that neither names, but the call-frame information of the
library tells of, is called as the converter calls it. What is there is replaced only by what names as much: on a
machine without the libraries nothing is lost.
"""

from __future__ import annotations

import io
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import zstandard

import traceferry
from traceferry.files.source import open_source
from traceferry.importers.perf.natives import KERNEL, Natives
from traceferry.libraries.library import Library
from traceferry.model import Array
from traceferry.symbolication.choose import open_symbols
from traceferry.symbolication.gsym import writer
from traceferry.symbolication.interface import Function
from traceferry.symbolication.libraries import unnamed

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "jit"
# As perf 6.1 prints a frame: `103578b wasm_config_new+0x30 (/usr/lib/_libwasmtime.so)`.
PRINTED = re.compile(r"\s+([0-9a-f]+) (.+)\+0x([0-9a-f]+) \((.+)\)")
KERNEL_TEXT = 0xFFFFFFFF81000000
Functions = dict[int, Function]


def printed_functions(folder: Path) -> dict[str, Functions]:
    """Returns the functions of each library, by their start, as far as `perf script` printed them: each ends behind the
    last of its bytes that is printed."""
    found: dict[str, Functions] = defaultdict(dict)
    for path in folder.glob("script.jit.txt.zst"):
        text = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read().decode()
        for match in filter(None, map(PRINTED.fullmatch, text.splitlines())):
            address, name, offset, file = int(match[1], 16), match[2], int(match[3], 16), match[4]
            start = address - offset - (KERNEL_TEXT if file == KERNEL else 0)
            before = found[Path(file).name].get(start)
            size = max(offset + 1, before.size if before is not None else 0)
            found[Path(file).name][start] = Function(name, start, size)
    return found


def own_functions(library: Library, addresses: Array) -> Iterator[Function]:
    """Yields the functions of a library that is installed here, at addresses relative to its lowest."""
    starts, sizes = library.file.extents(addresses)
    ranges = list(zip(starts.tolist(), sizes.tolist(), strict=True))
    if library.symbols is not None:
        found = library.file.lookup(addresses)
        columns = (found.first[1:], found.start, found.size)
        for nth, (end, start, size) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if found.first[nth] < end:
                name = found.texts[int(found.name[end - 1])]
                inside = int(addresses[nth]) - start + 1
                yield Function(name, start, max(size, inside))
                ranges[nth] = 0, 0
    for start, size in ranges:
        if size:
            yield Function(f"{library.name} {unnamed(start)}", start, size)


def hit_functions(library: Library, offsets: Array, printed: Functions) -> Functions:
    """Returns what holds the bytes of the file at these offsets."""
    # A function that is returned to at its first byte is asked for in front of it.
    asked = np.unique(np.concatenate((offsets, offsets + np.uint64(1))))
    addresses, loaded = library.addresses(asked)
    if not np.array_equal(addresses[loaded], asked[loaded]):
        print(f"  {library.name}: left out, its addresses are not offsets in its file")
        return {}
    is_own = library.binary is not None or library.symbols is not None
    functions = {one.start: one for one in own_functions(library, asked[loaded])} if is_own else {}
    spoken = {start: one for start, one in printed.items() if not holders(functions, one.start)}
    return {**functions, **spoken}


def holders(functions: Functions, address: int) -> list[Function]:
    """Returns the functions with a name that hold an address."""
    held = (one for one in functions.values() if one.start <= address < one.start + one.size)
    return [one for one in held if "function at 0x" not in one.name]


def make(folder: Path) -> None:
    asked: dict[int, list[Array]] = defaultdict(list)
    libraries: dict[int, Library] = {}
    kernels: set[str] = set()
    found_at = Library.found_at

    def recorded(self: Library, offsets: Array, *rest: object) -> object:
        libraries[self.number] = self
        asked[self.number].append(offsets)
        return found_at(self, offsets, *rest)  # type: ignore[arg-type]

    def kernel(self: Natives, *_: object) -> list[tuple[int, str]]:
        kernels.add(self._kernel_build_id)
        return [(0, "")] * len(_[1])  # type: ignore[arg-type]

    nothing = (None, "")
    with (
        patch.object(Library, "found_at", recorded),
        patch.object(Natives, "_kernel_functions", kernel),
        patch.object(Natives, "_symbols_beside", lambda *_: nothing),
    ):
        traceferry.load(folder / "perf.data.zst")
    printed = printed_functions(folder)
    made = [
        (one.name, one.build_id, hit_functions(one, np.concatenate(asked[number]), printed.get(one.name, {})))
        for number, one in sorted(libraries.items())
    ]
    for name, build_id, functions in [*made, *((KERNEL, build_id, printed.get(KERNEL, {})) for build_id in kernels)]:
        if functions:
            write(folder / f"{name}.gsym", build_id, functions)


def write(path: Path, build_id: str, functions: Functions) -> None:
    """Writes the file, unless one is there that has as many names."""
    n_named = len([one for one in functions.values() if "function at 0x" not in one.name])
    if path.exists():
        there = list(open_symbols(open_source(str(path))).functions())
        if len([one for one in there if "function at 0x" not in one.name]) > n_named:
            print(f"  {path.name}: left as it is, it names more than what is here")
            return
    buffer = io.BytesIO()
    written = writer.write(buffer, functions.values(), uuid=bytes.fromhex(build_id), base=0)
    path.write_bytes(buffer.getvalue())
    print(f"  {path.name}: {written.n_functions} functions, {written.n_bytes} bytes")


if __name__ == "__main__":
    for folder in [Path(name) for name in sys.argv[1:]] or sorted(
        {path.parent for path in FIXTURES.glob("*/perf.data*")}
    ):
        print(folder.name)
        make(folder)
