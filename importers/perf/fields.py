"""Reads the fields of headers and rare records one after the other, never beyond their end; words at many offsets."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.files.source import release
from traceferry.importers.perf import _fields
from traceferry.model import Array

# Of a file, in bytes: what is in memory at once of parts that are read once, or seldom.
WINDOW = 1 << 25


class CutError(Exception):
    """The fields end before they should. Never leaves this package's readers."""


class Fields:
    """A position in a part of the data; everything read moves it on. Raises CutError where the part ends."""

    def __init__(self, data: memoryview, order: str, at: int, end: int) -> None:
        self.data = data
        self.order = order
        self.at = at
        self.end = min(end, len(data))

    @property
    def left(self) -> int:
        return max(0, self.end - self.at)

    def take(self, size: int) -> int:
        """Skips a number of bytes; returns where they begin."""
        if self.at + size > self.end:
            raise CutError(f"{size} bytes are needed where {self.left} are left")
        at = self.at
        self.at += size
        return at

    def unpack(self, layout: str) -> tuple[int, ...]:
        at = self.take(struct.calcsize(self.order + layout))
        return struct.unpack_from(self.order + layout, self.data, at)

    def u32(self) -> int:
        return self.unpack("I")[0]

    def u64(self) -> int:
        return self.unpack("Q")[0]

    def u64s(self, n: int) -> tuple[int, ...]:
        at = self.take(8 * n)
        return struct.unpack_from(f"{self.order}{n}Q", self.data, at)

    def bytes(self, size: int) -> bytes:
        at = self.take(size)
        return bytes(self.data[at : at + size])

    def text(self) -> str:
        """perf_header_string: u32 len, a string with NULs up to there."""
        return encodable(until_nul(self.bytes(self.u32())))

    def line(self) -> str:
        """Reads a string up to its NUL, which must be there."""
        at = self.at
        while self.left:
            piece = bytes(self.data[self.at : min(self.at + 256, self.end)])
            nul = piece.find(b"\0")
            if nul >= 0:
                self.at += nul + 1
                return encodable(until_nul(bytes(self.data[at : self.at - 1])))
            self.at += len(piece)
        raise CutError("a string has no end")


def until_nul(text: bytes) -> str:
    """Returns a name of the recording. It may be a file's, whose bytes need not be UTF-8: it can be opened by this."""
    return text.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def numbers_at(data: memoryview | Array, at: Array, dtype: str) -> Array:
    """Returns the number at each of these offsets of bytes, in the machine's byte order. data: of a file, whose pages
    are given back where the offsets go through many, or uint8; dtype: as it is in the data, "<i4" for example; all its
    bytes must be there."""
    kind, at = np.dtype(dtype), np.ascontiguousarray(at, np.int64)
    found = np.empty(len(at), f"u{kind.itemsize}")
    for part in windows(data, at):
        found[part] = _fields.numbers(data, at[part], kind.itemsize, dtype.startswith(">"))
    return found.view(kind.newbyteorder("="))


def windows(data: memoryview | Array, at: Array) -> Iterator[slice]:
    """Yields parts of the offsets, which go through a window each where they rise. Its pages are given back where there
    is more than one."""
    span = int(at.max()) - int(at.min()) if len(at) else 0
    n_parts = min(1 + span // WINDOW, len(at)) or 1
    for begin, end in pairwise(len(at) * nth // n_parts for nth in range(n_parts + 1)):
        yield slice(begin, end)
        if n_parts > 1 and isinstance(data, memoryview):
            release(data, int(at[begin:end].min()), int(at[begin:end].max()))
