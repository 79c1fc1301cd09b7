"""A path or standard input becomes a Source: bytes in memory or mapped, with gzip and zstd undone."""

from __future__ import annotations

import mmap
import sys
from dataclasses import dataclass, field
from pathlib import Path

from converter.errors import FormatError, UsageError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
COMPRESSED_SUFFIXES = (".gz", ".zst")


@dataclass(frozen=True)
class Source:
    """One input.

    path: as the user named it ("-" for standard input); data: the bytes, read-only, decompressed;
    neighbours: the folder in which related files may lie, or None; damage: how the compression is broken, or "".
    """

    path: str
    data: memoryview = field(repr=False)
    neighbours: Path | None = None
    damage: str = ""

    @property
    def name(self) -> str:
        """The file's name without folders and without the suffix of a compression."""
        name = Path(self.path).name
        for suffix in COMPRESSED_SUFFIXES:
            name = name.removesuffix(suffix)
        return name


def open_source(path: str) -> Source:
    """Maps the file at `path`, or reads standard input for "-".

    Raises UsageError if it cannot be read, FormatError if it is empty or its compression is damaged at the start.
    """
    if path == "-":
        data, damage = _decompress(sys.stdin.buffer.read(), path)
        return Source(path, data, None, damage)
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            raw: bytes | mmap.mmap = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from None
    data, damage = _decompress(raw, path)
    return Source(path, data, Path(path).parent, damage)


def _decompress(raw: bytes | mmap.mmap, path: str) -> tuple[memoryview, str]:
    """(the bytes, how the compression is broken): what comes before the damage counts."""
    if len(raw) == 0:
        raise _named(FormatError("the file is empty", 0), path)
    head = raw[:4]
    if head.startswith(GZIP_MAGIC):
        data, damage = _gunzip(raw)
    elif head == ZSTD_MAGIC:
        data, damage = _unzstd(raw)
    else:
        return memoryview(raw), ""
    if not data:
        raise _named(FormatError(f"the compression holds no data: {damage or 'it is empty'}", 0), path)
    return memoryview(data), damage


def _gunzip(raw: bytes | mmap.mmap) -> tuple[bytes, str]:
    """All members, one after the other, and every whole block of one whose end is missing."""
    from isal import igzip_lib, isal_zlib

    view = memoryview(raw)
    parts: list[bytes] = []
    at, piece = 0, 1 << 20
    try:
        while at < len(view) and bytes(view[at : at + 2]) == GZIP_MAGIC:
            inflate = isal_zlib.decompressobj(wbits=31)
            while at < len(view) and not inflate.eof:
                parts.append(inflate.decompress(view[at : at + piece]))
                at = min(at + piece, len(view)) - len(inflate.unused_data)
            if not inflate.eof:
                return b"".join(parts), "the gzip data ends too early"
    except igzip_lib.IsalError as error:  # type: ignore[misc]
        return b"".join(parts), f"damaged gzip data: {error}"
    return b"".join(parts), ""


def _unzstd(raw: bytes | mmap.mmap) -> tuple[bytes, str]:
    import zstandard

    view = memoryview(raw)
    parts: list[bytes] = []
    at, piece = 0, 1 << 20
    try:
        while at < len(view) and bytes(view[at : at + 4]) == ZSTD_MAGIC:
            frame = zstandard.ZstdDecompressor().decompressobj()
            while at < len(view) and not frame.eof:
                parts.append(frame.decompress(view[at : at + piece]))
                at = min(at + piece, len(view)) - len(frame.unused_data)
            if not frame.eof:
                return b"".join(parts), "the zstd data ends too early"
    except zstandard.ZstdError as error:
        return b"".join(parts), f"damaged zstd data: {error}"
    return b"".join(parts), ""


def _named(error: FormatError, path: str) -> FormatError:
    error.path = path
    return error
