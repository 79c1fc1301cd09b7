"""Fuzzes what is compressed: files of gzip members and zstd frames, and sections of ELF files. Run by `make fuzz`.

The first byte of an input chooses what the rest is. What comes out is no more than the limit, and what a library says
of the whole where it finds no damage.
"""

from __future__ import annotations

import gzip
import struct
import sys
import zlib
from collections.abc import Iterator

import zstandard
from common import ROOT, fuzz, imported

sys.path.insert(0, str(ROOT / "tests"))

from builders.gsym import SHT_PROGBITS, ElfPart, elf

TEXT = bytes(range(256)) * 40 + bytes(5000)
FILE, SECTION, OLD_SECTION = range(3)
SHF_COMPRESSED = 0x800
# Of the header of section 1: sh_flags.
HEADER, FLAGS = 64, 8


def seeds() -> Iterator[tuple[str, bytes]]:
    packed = {"gzip": gzip.compress(TEXT, mtime=0), "zstd": zstandard.compress(TEXT)}
    packed["members"] = (
        gzip.compress(b"a" * 99, mtime=0) + gzip.compress(b"", mtime=0) + gzip.compress(TEXT[:300], 0, mtime=0)
    )
    packed["checksum"] = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT[:500])
    packed["frames"] = packed["zstd"] + struct.pack("<II", 0x184D2A50, 4) + b"skip" + packed["checksum"]
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    packed["stream"] = stream.compress(TEXT[:3000]) + stream.flush()
    packed["bomb"] = zlib.compress(bytes(1 << 22), 9)
    packed["gzip-bomb"] = gzip.compress(bytes(1 << 22), mtime=0)
    packed["zstd-bomb"] = zstandard.compress(bytes(1 << 22))
    for name, data in packed.items():
        yield name, bytes([FILE]) + data
    for name, kind, data in (("zlib", 1, zlib.compress(TEXT)), ("zstd", 2, zstandard.compress(TEXT))):
        yield f"section-{name}", bytes([SECTION]) + struct.pack("<IIQQ", kind, 0, len(TEXT), 1) + data
    yield "old-section", bytes([OLD_SECTION]) + b"ZLIB" + struct.pack(">Q", len(TEXT)) + zlib.compress(TEXT)


def read_file(data: bytes) -> None:
    from traceferry.common.errors import FormatError
    from traceferry.files.decompress import DEFAULT_LIMIT, is_compressed
    from traceferry.files.source import source_of

    try:
        source = source_of("fuzz.gz", data, DEFAULT_LIMIT)
    except FormatError:
        return
    assert len(source.data) <= max(DEFAULT_LIMIT.of(len(data)), len(data))
    if not is_compressed(data[:4]) or source.damage or source.limited:
        return
    try:
        whole = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else _of_frames(data)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
        return
    assert source.data == whole


def _of_frames(data: bytes) -> bytes:
    return bytes(zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read())


def read_section(data: bytes, name: str) -> None:
    from traceferry.common.errors import FormatError
    from traceferry.files.source import Source
    from traceferry.symbolication.binary import FREE, MAX_RATIO, Binary
    from traceferry.symbolication.elf import ElfSymbols

    file = bytearray(elf(ElfPart(name, SHT_PROGBITS, data)))
    if not name.startswith(".z"):
        flags_at = int.from_bytes(file[40:48], "little") + HEADER + FLAGS
        file[flags_at : flags_at + 8] = SHF_COMPRESSED.to_bytes(8, "little")
    source = Source("fuzz", memoryview(bytes(file)))
    try:
        section = Binary(source).section(name)
        assert section is not None
        assert len(section[1]) <= max(FREE, MAX_RATIO * len(data))
    except FormatError:
        pass
    assert list(ElfSymbols(Binary(source)).functions()) == []


def one_input(data: bytes) -> None:
    kind = data[0] % 3 if data else FILE
    if kind == FILE:
        read_file(data[1:])
    else:
        read_section(data[1:], ".debug_info" if kind == SECTION else ".zdebug_info")


if __name__ == "__main__":
    imported(["traceferry.files.source", "traceferry.files.decompress", "traceferry.symbolication.elf"])
    fuzz("compressed", seeds, one_input)
