"""Decompresses gzip, zstd, xz and bzip2 up to a limit; what comes before the limit or before damage is kept."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Buffer = bytes | memoryview

GZIP_MAGIC = b"\x1f\x8b"
XZ_MAGIC = b"\xfd7zX"
BZIP2_MAGIC = b"BZh"
# Behind it stands the size of its blocks, a digit; text can begin with these letters.
BZIP2_MAGICS = tuple(BZIP2_MAGIC + b"%d" % size for size in range(1, 10))
ZSTD_MAGIC = 0xFD2FB528
# 0x184D2A50 to 0x184D2A5F: frames that hold no data, as pzstd and the seekable format write them.
SKIPPABLE_MAGIC = 0x184D2A5
COMPRESSED_SUFFIXES = (".gz", ".zst", ".xz", ".bz2")
# The largest header of a zstd frame, and the type of a block that is one byte, repeated.
FRAME_HEADER_SIZE = 18
RLE_BLOCK = 1
GIVEN = 1 << 20
PIECE = 1 << 17
# What the dictionary of an xz stream may take: `xz -9` has 64 MiB.
DICTIONARY = 128 << 20
# So much of a stream becomes 64 MB at most: a block of 128 kB takes 4 bytes or more.
FEW = 1 << 11


class Limit(NamedTuple):
    """A limit of what one input may decompress to: `size` bytes, and `ratio` times its compressed size or `FREE` bytes,
    whichever is more; ratio None: any."""

    size: int = 16 << 30
    ratio: int | None = 1000

    def of(self, n_compressed: int) -> int:
        """The limit in bytes."""
        return self.size if self.ratio is None else min(self.size, max(FREE, self.ratio * n_compressed))


# Recordings of the same few samples over and over reach 440 to 1.
FREE = 16 << 20
DEFAULT_LIMIT = Limit()


def limit_of(size: int | None) -> Limit:
    """Returns the user's limit: a number of bytes, for any ratio; the default if None."""
    return DEFAULT_LIMIT if size is None else Limit(size, None)


class Outcome(NamedTuple):
    """The end of a decompression: damage, limited: as text, "" if it did not end that way."""

    damage: str = ""
    limited: str = ""


class _DamageError(Exception):
    """The compressed data ends too early or cannot be read."""


def is_compressed(head: Buffer) -> bool:
    return bytes(head[:4]).startswith((GZIP_MAGIC, XZ_MAGIC, *BZIP2_MAGICS)) or _is_zstd(_u32(head, 0))


def without_compression(name: str) -> str:
    """Returns a file's name without the suffix of its compression."""
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def decompress(raw: bytes | mmap.mmap, into: bytearray, at_most: int) -> Outcome:
    """Appends what a file holds, of gzip members, zstd frames, or streams of xz or bzip2: at most at_most bytes."""
    view = memoryview(raw)
    head = bytes(view[:4])
    of_magic = {GZIP_MAGIC: _gunzipped, XZ_MAGIC: _unxz, BZIP2_MAGIC: _bunzip2}
    read = next((read for magic, read in of_magic.items() if head.startswith(magic)), _unzstd_file)
    return _collect(read(view), into, at_most)


def decompress_stream(pieces: Iterable[bytes], into: bytearray, at_most: int) -> Outcome:
    """Decompresses a zstd stream that comes in pieces. It may end anywhere."""
    return _collect(_unzstd_pieces(pieces), into, at_most)


def _collect(found: Iterable[memoryview], into: bytearray, at_most: int) -> Outcome:
    end = len(into) + at_most
    try:
        for piece in found:
            if len(into) + len(piece) > end:
                into += piece[: end - len(into)]
                return Outcome(limited=f"only the first {at_most} bytes are decompressed")
            into += piece
    except _DamageError as error:
        return Outcome(damage=f"the compressed data {error}")
    return Outcome()


def _gunzipped(view: memoryview) -> Iterator[memoryview]:
    from isal import igzip_lib

    isal_error: type[Exception] = igzip_lib.IsalError  # type: ignore[assignment]  # its stub declares an instance
    return _streams(view, GZIP_MAGIC, lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP), isal_error)


def _unxz(view: memoryview) -> Iterator[memoryview]:
    import lzma

    return _streams(view, XZ_MAGIC, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, DICTIONARY), lzma.LZMAError)


def _bunzip2(view: memoryview) -> Iterator[memoryview]:
    import bz2

    return _streams(view, BZIP2_MAGIC, bz2.BZ2Decompressor, OSError)


def _streams(
    view: memoryview, magic: bytes, decompressor: Callable[[], Any], error_type: type[Exception]
) -> Iterator[memoryview]:
    """Yields what one or more streams hold."""
    at = 0
    while bytes(view[at : at + len(magic)]) == magic:
        stream = decompressor()
        while not stream.eof:
            given = view[at : at + GIVEN] if stream.needs_input else b""
            if stream.needs_input and not len(given):
                raise _DamageError("ends too early")
            at += len(given)
            try:
                yield memoryview(stream.decompress(given, PIECE))
            except error_type as error:
                raise _DamageError(f"is damaged: {error}") from None
        at -= len(stream.unused_data)
    _check_rest(view, at)


def _unzstd_file(view: memoryview) -> Iterator[memoryview]:
    end, is_whole = _end_of_frames(view)
    yield from _unzstd(view[:end]) if is_whole else _unzstd_pieces([view[:end]])
    if not is_whole:
        raise _DamageError("ends too early")
    _check_rest(view, end)


def _unzstd(source: Any) -> Iterator[memoryview]:
    """source: bytes, or a file. What is yielded holds until the next."""
    import zstandard

    piece = bytearray(PIECE)
    reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)
    try:
        while size := reader.readinto1(piece):
            yield memoryview(piece)[:size]
    except zstandard.ZstdError as error:
        raise _DamageError(f"is damaged: {error}") from None


def _unzstd_pieces(pieces: Iterable[Buffer]) -> Iterator[memoryview]:
    """A reader of zstandard, as above, stops where the input ends: of a frame that has no end, as perf writes them, it
    would leave out what its own buffer did not fit in."""
    import zstandard

    stream = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
    for piece in pieces:
        for at in range(0, len(piece), FEW):
            try:
                yield memoryview(stream.decompress(piece[at : at + FEW]))
            except zstandard.ZstdError as error:
                raise _DamageError(f"is damaged: {error}") from None


def _end_of_frames(view: memoryview) -> tuple[int, bool]:
    """Returns where the last zstd frame ends, and whether it is whole: zstandard does not tell where it stopped."""
    import zstandard

    at = 0
    while _is_zstd(magic := _u32(view, at)):
        try:
            at = at + 8 + _u32(view, at + 4) if magic != ZSTD_MAGIC else _end_of_blocks(view, at)
        except zstandard.ZstdError:  # a cut header, or one that the reader refuses
            return len(view), False
        if at > len(view):
            return len(view), False
    return at, True


def _end_of_blocks(view: memoryview, at: int) -> int:
    import zstandard

    header = bytes(view[at : at + FRAME_HEADER_SIZE])
    checksum_size = 4 if zstandard.get_frame_parameters(header).has_checksum else 0
    at += zstandard.frame_header_size(header)
    is_last = False
    while not is_last and at < len(view):
        # bit 0: the last block; bits 1, 2: its type; from bit 3 on: its size
        block = int.from_bytes(view[at : at + 3], "little")
        is_last = bool(block & 1)
        at += 3 + (1 if block >> 1 & 3 == RLE_BLOCK else block >> 3)
    return at + checksum_size if is_last else len(view) + 1


def _is_zstd(magic: int) -> bool:
    return magic == ZSTD_MAGIC or magic >> 4 == SKIPPABLE_MAGIC


def _u32(view: Buffer, at: int) -> int:
    return int.from_bytes(view[at : at + 4], "little")


def _check_rest(view: memoryview, at: int) -> None:
    """Raises _DamageError unless only zeros follow, which may fill a file up."""
    if any(bytes(view[begin : begin + GIVEN]).strip(b"\0") for begin in range(at, len(view), GIVEN)):
        raise _DamageError(f"ends {len(view) - at} bytes before the file, and what follows is not compressed")
