"""Fuzzes packs and archives of `perf archive`. Run by `make fuzz`.

The first byte of an input chooses what the rest is: an archive of perf; a pack; the manifest of a pack, or an answer in
it, whose other files are always the same. Any bytes give a trace that obeys the laws, or a FormatError.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from common import ROOT, fuzz, imported

sys.path.insert(0, str(ROOT / "tests"))

from test_debug_files import BUILD_ID, WORK, elf

LOG = ROOT / "fixtures/xray/clang-19/fdr-c19-pie-except.xray"
PROGRAM = ROOT / "fixtures/xray/clang-19/except-pie.zst"
ARCHIVE, PACK, MANIFEST_ONLY = range(3)


@cache
def members() -> dict[str, bytes]:
    from traceferry import packing

    return {name: bytes(data) for name, data in packing.gather(LOG, symbols=PROGRAM).members.items()}


def pack_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    for name, data in files.items():
        header = tarfile.TarInfo(name)
        header.size = len(data)
        out.write(header.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512))
    return out.getvalue() + bytes(1024)


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.files.pack import MANIFEST

    packed = pack_of({f"usr/lib/libx.so/{BUILD_ID.hex()}/elf": elf(WORK, build_id=BUILD_ID)})
    yield "archive", bytes([ARCHIVE]) + packed
    small = {name: data for name, data in members().items() if len(data) < 1 << 13}
    yield "pack", bytes([PACK]) + pack_of(small)
    yield "manifest", bytes([MANIFEST_ONLY]) + members()[MANIFEST]


def one_input(data: bytes) -> None:
    from traceferry.common.errors import FormatError, UsageError
    from traceferry.files.pack import MANIFEST
    from traceferry.files.source import Source
    from traceferry.loading import load_inputs
    from traceferry.model import laws
    from traceferry.reading import LoadOptions
    from traceferry.symbolication.archives import files_of
    from traceferry.symbolication.choose import open_symbols

    kind, rest = (data[0] % 3 if data else PACK), data[1:]
    try:
        if kind == ARCHIVE:
            for source in files_of(Source("a.tar", memoryview(rest))):
                open_symbols(source)
            return
        packed = rest if kind == PACK else pack_of({**members(), MANIFEST: rest})
        with tempfile.NamedTemporaryFile(suffix=".tfpack") as file:
            Path(file.name).write_bytes(packed)
            trace = load_inputs(file.name, (), LoadOptions(), None, None)
            assert laws.check(trace) == []
    except (FormatError, UsageError):
        pass


if __name__ == "__main__":
    imported(
        ["traceferry.files.pack", "traceferry.files.answers", "traceferry.loading", "traceferry.unwinding.packed",
         "traceferry.symbolication.archives", "traceferry.importers.xray.packed"]
    )  # fmt: skip
    fuzz("pack", seeds, one_input)
