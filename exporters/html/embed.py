"""Bytes in a page: compressed, and as text that needs no escape in HTML."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from traceferry.io.output import Output
from traceferry.model import Trace

LEVEL = 6
# 85 characters, of which none means anything to HTML: four bytes are five of them. script/bytes.js decodes them.
ALPHABET = bytes(c for c in range(ord("!"), ord("~") + 1) if chr(c) not in "\"&'<>\\`{|")[:85]
DIGITS = np.frombuffer(ALPHABET, np.uint8)
# Bytes of an element's text: four fifths of it are encoded at once.
PIECE = 4 << 18


class TooLargeError(Exception):
    """More compressed bytes than asked for."""


class Compressed:
    """Compresses what is written into a temporary file, of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._gzip = zlib.compressobj(LEVEL, wbits=31)

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
    write: Callable[[Trace, Output, Callable[[int], None]], None],
    trace: Trace,
    limit: int,
    progress: Callable[[int], None],
) -> Compressed | None:
    """What an exporter writes, compressed; None if that is more than `limit` bytes."""
    sink = Compressed(limit)
    try:
        out = Output(sink, gzip=False)
        write(trace, out, progress)
        out.finish()
        sink.finish()
    except BaseException as error:
        sink.close()
        if isinstance(error, TooLargeError):
            return None
        raise
    return sink


def gzipped(data: bytes) -> bytes:
    """Without name and time: the same input, the same bytes."""
    packer = zlib.compressobj(LEVEL, wbits=31)
    return packer.compress(data) + packer.flush()


def as_text(data: bytes) -> bytes:
    """Five characters for each four bytes; the last ones are filled up with zeros."""
    left = np.frombuffer(data + b"\0" * (-len(data) % 4), ">u4").astype(np.uint32)
    digits = np.empty((len(left), 5), np.uint8)
    for place in range(4, -1, -1):
        left, digits[:, place] = left // 85, left % 85
    encoded: Any = DIGITS[digits]
    return bytes(encoded.tobytes())


def text_size(n_bytes: int) -> int:
    return (n_bytes + 3) // 4 * 5
