"""The container: slabs of numbers and of JSON, and a root of JSON that refers to them.

    DC DF 4A 53 4C 42 01 00; u32 version 1, number of slabs, number of the root slab;
    for each slab u32 type, start, length in bytes; then the slabs, each at a multiple of 8. All little-endian.

An object whose only member is "$s" stands for the slab of that number. Types are 0 to 9 for int8, uint8, int16, uint16,
int32, uint32, float32, float64, int64 and uint64, and 10 for JSON. Source: what the Firefox Profiler's client 0.10.0
reads, and src/types/profile.ts of the front-end for which columns of version 70 may be binary.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Any

import numpy as np

from traceferry.common.errors import UsageError
from traceferry.exporters.json._numbers import Differences
from traceferry.exporters.json.stream import Column, JsonWriter, parts
from traceferry.files.output import Output
from traceferry.model import Array

MAGIC = b"\xdc\xdfJSLB\x01\x00"
VERSION = 1
HEADER, ENTRY = struct.Struct("<8sIII"), struct.Struct("<III")
INT32, UINT8, FLOAT64, JSON = 4, 1, 7, 10
ALIGNMENT = 8
MOST_BYTES = (1 << 32) - 1
# A shorter column stays in the root: a slab has an entry and padding.
SHORT = 64
# Slabs are kept in memory up to this size together, then in a temporary file.
IN_MEMORY = 1 << 26
COPIED_AT_ONCE = 1 << 20
NS_PER_MS = 1e6

# The columns of version 70 that may be binary, by the table and their name.
TYPES: dict[tuple[str, str], int] = {
    ("stackTable", "frame"): INT32, ("stackTable", "prefixOffset"): INT32, ("frameTable", "func"): INT32,
    ("frameTable", "address"): INT32, ("frameTable", "lib"): INT32, ("frameTable", "inlineDepth"): UINT8,
    ("samples", "time"): FLOAT64, ("samples", "timeDeltas"): FLOAT64,
    ("markers", "startTime"): FLOAT64, ("markers", "endTime"): FLOAT64,
    ("jsAllocations", "time"): FLOAT64, ("nativeAllocations", "time"): FLOAT64,
}  # fmt: skip
DTYPES: dict[int, np.dtype[Any]] = {INT32: np.dtype("<i4"), UINT8: np.dtype("u1"), FLOAT64: np.dtype("<f8")}


class _Text:
    """The root's JSON."""

    def __init__(self) -> None:
        self.text = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.text += data


class SlabWriter(JsonWriter):
    """Writes one document as JsonWriter does, its columns as slabs. Used with `with`: at its end the file is written.
    Raises UsageError where it would be longer than the format can say."""

    def __init__(self, out: Output) -> None:
        self._root = _Text()
        super().__init__(self._root)
        self._file = out
        self._spool = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - __exit__ closes it
        self._slabs: list[tuple[int, int]] = []  # type, length
        self._inside: list[str] = [""]

    def __enter__(self) -> SlabWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        try:
            if kind is None:
                self._slab(JSON, [self._root.text])
                self._finish()
        finally:
            self._spool.close()

    @contextmanager
    def object(self, name: str = "") -> Iterator[None]:
        self._inside.append(name)
        with super().object(name):
            yield
        self._inside.pop()

    # ------------------------------------------------------------ columns

    def ints(self, name: str, values: Column) -> None:
        if not self._binary(name, parts(values, np.int32)):
            super().ints(name, values)

    def longs(self, name: str, values: Column, null: int = -(2**63)) -> None:
        if not self._binary(name, parts(values, np.int64)):
            super().longs(name, values, null)

    def millis(self, name: str, values: Column) -> None:
        in_ms = (np.maximum(part, 0) / NS_PER_MS for part in parts(values, np.int64))
        if not self._binary(name, in_ms):
            super().millis(name, values)

    def differences(self, name: str, values: Column) -> None:
        if not self._binary(name, map(Differences().millis, parts(values, np.int64))):
            super().differences(name, values)

    def _binary(self, name: str, pieces: Iterable[Array]) -> bool:
        """Writes a column as binary numbers, if it may be."""
        kind = TYPES.get((self._inside[-1], name))
        if kind is None:
            return False
        self._refer(name, self._slab(kind, (piece.astype(DTYPES[kind]).data for piece in pieces)))
        return True

    def _column(self, name: str, texts: Iterable[bytes | memoryview]) -> None:
        """Writes an array of JSON, of which each text is a part; a short one stays in the root."""
        left = iter(texts)
        begun = list(map(bytes, islice(left, 2)))  # the next text takes the memory of the one before
        if len(begun) < 2 and sum(map(len, begun)) < SHORT:
            super()._column(name, begun)
        else:
            self._refer(name, self._slab(JSON, _array(chain(begun, left))))

    def _refer(self, name: str, slab: int) -> None:
        self.member(name, {"$s": slab})

    # ------------------------------------------------------------ slabs

    def _slab(self, kind: int, pieces: Iterable[bytes | bytearray | memoryview]) -> int:
        """Keeps a slab; returns its number."""
        n_bytes = 0
        for piece in pieces:
            n_bytes += memoryview(piece).nbytes
            self._spool.write(piece)
        self._spool.write(bytes(-n_bytes % ALIGNMENT))
        self._slabs.append((kind, n_bytes))
        return len(self._slabs) - 1

    def _finish(self) -> None:
        n = len(self._slabs)
        at = first = _aligned(HEADER.size + n * ENTRY.size)
        table = bytearray(HEADER.pack(MAGIC, VERSION, n, n - 1))
        for kind, n_bytes in self._slabs:
            if at + n_bytes > MOST_BYTES:
                raise UsageError(
                    "the profile is longer than 4 GB, which JSLB cannot hold: write .json, or a part of it"
                )
            table += ENTRY.pack(kind, at, n_bytes)
            at += _aligned(n_bytes)
        self._file.write(table + bytes(first - len(table)))
        self._spool.seek(0)
        while piece := self._spool.read(COPIED_AT_ONCE):
            self._file.write(piece)


def _aligned(n_bytes: int) -> int:
    return n_bytes + -n_bytes % ALIGNMENT


def _array(texts: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    separator = b"["
    for text in texts:
        yield separator
        yield text
        separator = b","
    yield b"]"
