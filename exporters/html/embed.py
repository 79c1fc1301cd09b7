"""Bytes in a page: compressed, and as text that needs no escape in HTML."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, TypeVar

import numpy as np

from traceferry.exporters.html._digits import pairs_of
from traceferry.files.output import Output
from traceferry.model import TraceBuilder

LEVEL = 6
# Of what fills most of a page, with ISA-L: a twentieth of the time of zlib, 10 to 50 % more bytes; level 3 takes twice
# the time for 1 to 7 % fewer.
FAST_LEVEL = 2
# The printable characters without those that mean something to HTML: two of them are 13 bits, the high ones first.
# web/bytes.js decodes them.
ALPHABET = bytes(c for c in range(ord("!"), ord("~") + 1) if chr(c) not in "<>&")
DIGITS = np.frombuffer(ALPHABET, np.uint8)
PAIRS = DIGITS[np.stack(np.divmod(np.arange(1 << 13), len(ALPHABET)), axis=1)].view(np.uint16).ravel()
GROUP = 13  # bytes that are 16 characters
# Bytes of one element.
PIECE = GROUP << 16
# Bytes that become text at a time.
BLOCK = GROUP << 11
# Bytes that are compressed at a time, where it may end early.
CHUNK = 1 << 17
# Steps that are chosen by what they are estimated to give, of those that are made to find one.
MOST_GUESSES = 4
Step = TypeVar("Step")


class TooLargeError(Exception):
    """More compressed bytes than asked for."""


class Compressed:
    """Compresses what is written into a temporary file, of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        from isal import isal_zlib

        self.size = 0
        self._limit = limit
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._gzip = isal_zlib.compressobj(FAST_LEVEL, wbits=31)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._emit(self._gzip.compress(data))

    def finish(self) -> None:
        self._emit(self._gzip.flush())

    def _emit(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._limit:
            raise TooLargeError
        self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def close(self) -> None:
        self._file.close()


def exported(
    write: Callable[[TraceBuilder, Output, Callable[[int], None]], None],
    trace: TraceBuilder,
    limit: int,
    progress: Callable[[int], None],
) -> Compressed | None:
    """Returns the bytes that the exporter would write into a file of its own, compressed; None if they are more than
    `limit` bytes."""
    sink = Compressed(limit)
    try:
        out = Output(sink, gzip=False)
        write(trace.again(), out, progress)
        out.finish()
        sink.finish()
    except BaseException as error:
        sink.close()
        if isinstance(error, TooLargeError):
            return None
        raise
    return sink


def gzipped(data: bytes) -> bytes:
    """Compresses without name and time: the same input, the same bytes."""
    packer = _gzip()
    return bytes(packer.compress(data) + packer.flush())


def gzipped_within(data: bytes, most: int) -> tuple[bytes | None, int]:
    """Returns what `gzipped` returns, and how many bytes these are; where they are more than `most`, None and an
    estimate, from as much as was compressed until then."""
    packer, parts, size = _gzip(), list[bytes](), 0
    for end in range(CHUNK, len(data) + CHUNK, CHUNK):
        parts.append(packer.compress(data[end - CHUNK : end]))
        size += len(parts[-1])
        if size > most:
            return None, max(size * len(data) // min(end, len(data)), most + 1)
    parts.append(packer.flush())
    size += len(parts[-1])
    return (b"".join(parts) if size <= most else None), size


def _gzip() -> Any:
    return zlib.compressobj(LEVEL, wbits=31, memLevel=9)


def as_text(data: bytes) -> bytes:
    """Returns 16 characters for each 13 bytes; the last ones are filled up with zeros."""
    return pairs_of(data + b"\0" * (-len(data) % GROUP), PAIRS)


def text_size(n_bytes: int) -> int:
    return -(-n_bytes // GROUP) * 16


def first_that_fits(
    steps: Sequence[Step], made: Callable[[Step], bytes], estimated: Callable[[Step], float], most_characters: int
) -> tuple[Step, bytes]:
    """Returns the first of the steps of which what is made has so many characters of text when it is compressed, and
    that; of the last step where none has. steps: more than one, each giving less than the one before; estimated: about
    how many bytes it is, compressed. The first ones to be made are chosen by that, then by halves, so that few are."""
    most = most_characters // 16 * GROUP
    below, found, data, n_made, factor = -1, len(steps) - 1, b"", 0, 1.0
    while found - below > 1:
        nth = (below + found) // 2
        if n_made < MOST_GUESSES:
            tried = range(below + 1, found - 1)
            nth = next((nth for nth in tried if factor * estimated(steps[nth]) <= most), found - 1)
        packed, size = gzipped_within(made(steps[nth]), most)
        n_made, factor = n_made + 1, size / max(estimated(steps[nth]), 1)
        if packed is None:
            below = nth
        else:
            found, data = nth, packed
    return steps[found], data or gzipped(made(steps[found]))
