"""A path or standard input becomes a Source: bytes in memory or mapped, with gzip and zstd undone."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from traceferry.errors import FormatError, UsageError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
COMPRESSED_SUFFIXES = (".gz", ".zst")
PIECE = 1 << 20
# Linux 5.14; the module mmap does not name it.
MADV_POPULATE_READ = 22 if sys.platform == "linux" else None
# `perf record --threads` writes such folders.
FOLDER_MAIN = "data"


@dataclass(frozen=True)
class Source:
    """One input.

    path: as the user named it ("-" for standard input); data: the bytes, read-only, decompressed;
    damage: how the compression is broken, or ""; parts: where the input is a folder, its numbered files: data.0...
    """

    path: str
    data: memoryview = field(repr=False)
    damage: str = ""
    parts: tuple[memoryview, ...] = field(default=(), repr=False)

    def prefetch(self, start: int = 0, end: int | None = None) -> None:
        """Says that these bytes are read next. A mapped file's pages then come at once instead of one by one."""
        self._advise(MADV_POPULATE_READ, start, len(self.data) if end is None else end)

    def release(self, start: int, end: int) -> None:
        """Says that these bytes are not needed for now: a mapped file's go out of this process's memory, and come back
        when they are read again."""
        self._advise(getattr(mmap, "MADV_DONTNEED", None), start, end)

    def _advise(self, advice: int | None, start: int, end: int) -> None:
        mapped = self.data.obj
        if not isinstance(mapped, mmap.mmap) or len(mapped) != len(self.data) or advice is None or end <= start:
            return
        start -= start % mmap.PAGESIZE
        # An older system does not know the advice, and does without it.
        with suppress(OSError):
            mapped.madvise(advice, start, end - start)

    @property
    def name(self) -> str:
        """The file's name without folders and without the suffix of a compression."""
        name = Path(self.path).name
        for suffix in COMPRESSED_SUFFIXES:
            name = name.removesuffix(suffix)
        return name


def open_source(path: str) -> Source:
    """Maps the file at `path`, or reads standard input for "-".

    A recording can also be a folder: its file `data`, with data.0 and so on as parts.

    Raises UsageError if it cannot be read, FormatError if it is empty or its compression is damaged at the start.
    """
    if path == "-":
        data, damage = _decompress(sys.stdin.buffer.read(), path)
        return Source(path, data, damage)
    main = Path(path) / FOLDER_MAIN
    if main.is_file():
        numbered = sorted(Path(path).glob(f"{FOLDER_MAIN}.[0-9]*"), key=lambda p: (len(p.name), p.name))
        parts = tuple(memoryview(_raw(str(part))) for part in numbered)
        return Source(path, memoryview(_raw(str(main))), parts=parts)
    raw = _raw(path)
    data, damage = _decompress(raw, path)
    return Source(path, data, damage)


def _raw(path: str) -> bytes | mmap.mmap:
    try:
        with open(path, "rb") as file:
            return _map_or_read(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from None


def _map_or_read(file: BinaryIO) -> bytes | mmap.mmap:
    """A pipe cannot be mapped, nor can an empty file."""
    if file.seekable() and file.seek(0, 2):
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return file.read()


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
    from isal import igzip_lib, isal_zlib

    damage: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub declares an instance
    return _decompress_frames(raw, GZIP_MAGIC, lambda: isal_zlib.decompressobj(wbits=31), damage)


def _unzstd(raw: bytes | mmap.mmap) -> tuple[bytes, str]:
    import zstandard

    return _decompress_frames(
        raw, ZSTD_MAGIC, lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError
    )


def _decompress_frames(
    raw: bytes | mmap.mmap, magic: bytes, decompressor: Callable[[], Any], damage: type[Exception]
) -> tuple[bytes, str]:
    """All frames (gzip: members), one after the other, and every whole block of one whose end is missing."""
    view = memoryview(raw)
    parts: list[bytes] = []
    at = 0
    try:
        while at < len(view) and bytes(view[at : at + len(magic)]) == magic:
            frame = decompressor()
            while at < len(view) and not frame.eof:
                parts.append(frame.decompress(view[at : at + PIECE]))
                at = min(at + PIECE, len(view)) - len(frame.unused_data)
            if not frame.eof:
                return b"".join(parts), "the compressed data ends too early"
    except damage as error:
        return b"".join(parts), f"the compressed data is damaged: {error}"
    return b"".join(parts), ""


def _named(error: FormatError, path: str) -> FormatError:
    error.path = path
    return error
