"""Bytes in a page: compressed, and as text that needs no escape in HTML."""

from __future__ import annotations

import tempfile
import zlib
from bisect import bisect_left
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


def _gzip() -> Any:
    return zlib.compressobj(LEVEL, wbits=31, memLevel=9)


def as_text(data: bytes) -> bytes:
    """Returns 16 characters for each 13 bytes; the last ones are filled up with zeros."""
    return pairs_of(data + b"\0" * (-len(data) % GROUP), PAIRS)


def text_size(n_bytes: int) -> int:
    return -(-n_bytes // GROUP) * 16


def first_that_fits(steps: Sequence[Step], make: Callable[[Step], bytes], most_characters: int) -> tuple[Step, bytes]:
    """Returns the first of the steps with which `make` gives so many characters of text, and what it gives; the last
    step where none does. steps: more than one, each giving less than the one before: between the first and the last
    it is looked for by halves, so that few are made."""
    made: dict[int, bytes] = {}

    def fits(nth: int) -> bool:
        made[nth] = make(steps[nth])
        return text_size(len(made[nth])) <= most_characters

    last = len(steps) - 1
    nth = 0 if fits(0) else bisect_left(range(last), True, lo=1, key=fits)
    return steps[nth], made[nth] if nth in made else make(steps[nth])
