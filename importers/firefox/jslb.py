"""Layout: JSLB (JsonSlabs), the container of a profile whose large columns are arrays of numbers.

u32le: version 1, number of slabs, the root's number; then type, start, length in bytes of each slab.
"""

from __future__ import annotations

from struct import unpack_from
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.json_text import JsonText, Range
from traceferry.importers.firefox.layout import (
    JSLB_ALIGNMENT,
    JSLB_ENTRY,
    JSLB_HEADER,
    JSLB_JSON,
    JSLB_VERSION,
    MAX_SLAB_DEPTH,
    SLAB,
    SLAB_DTYPES,
)
from traceferry.importers.firefox.magic import JSLB_MAGIC
from traceferry.model import Array

COLUMN_DEPTH = 2
# Deeper than any column.
IN_LIST = 1 << 16


class Slab(NamedTuple):
    """type: as in SLAB_DTYPES, or JSLB_JSON; begin, end: its bytes in the file."""

    type: int
    begin: int
    end: int


class Slabs:
    """The slabs of a file. Each is decoded once. Raises FormatError, with the number and offset of the slab."""

    def __init__(self, data: memoryview, path: str) -> None:
        self._data, self._path = data, path
        if len(data) < JSLB_HEADER:
            raise FormatError(f"{len(data)} bytes are too few for the header of JSLB", 0, "JSLB", path=path)
        version, n, self.root = unpack_from("<3I", data, len(JSLB_MAGIC))
        if version != JSLB_VERSION:
            raise FormatError(f"version {version} of JSLB; this reads version {JSLB_VERSION}", 8, "JSLB", path=path)
        if n > (len(data) - JSLB_HEADER) // JSLB_ENTRY:
            raise FormatError(f"{n} slabs are more than the file has room for", 12, "JSLB", path=path)
        self._slabs = [self._checked(number) for number in range(n)]
        self._decoded: dict[tuple[int, int], Any] = {}
        self._open: list[int] = []

    def _checked(self, number: int) -> Slab:
        at = JSLB_HEADER + number * JSLB_ENTRY
        kind, begin, length = unpack_from("<3I", self._data, at)
        problem = ""
        if kind > JSLB_JSON:
            problem = f"type {kind} is unknown"
        elif begin + length > len(self._data):
            problem = f"it ends at {begin + length}, outside of the file"
        elif begin % JSLB_ALIGNMENT:
            problem = f"it begins at {begin}, which is no multiple of {JSLB_ALIGNMENT}"
        elif kind < JSLB_JSON and length % np.dtype(SLAB_DTYPES[kind]).itemsize:
            problem = f"its length, {length}, is no multiple of the size of its numbers"
        if problem:
            raise FormatError(f"slab {number}: {problem}", at, f"slab {number}", path=self._path)
        return Slab(kind, begin, begin + length)

    def text(self, number: Any) -> tuple[JsonText, Range]:
        """Returns the text of a slab, and where it is. Raises FormatError for a slab that is no JSON."""
        slab = self._slab(number)
        if slab.type != JSLB_JSON:
            raise FormatError(f"slab {number} holds numbers, not JSON", slab.begin, path=self._path)
        return JsonText(self._data[: slab.end], self._path), Range(slab.begin, slab.end)

    def resolved(self, value: Any, depth: int = 0) -> Any:
        """Returns a value with the slabs in the place of what refers to them. depth: of the value in what is parsed:
        numbers are arrays where columns are, in an object within the outermost one, else lists."""
        if isinstance(value, dict):
            if len(value) == 1 and SLAB in value:
                found = self._value(value[SLAB], depth)
                return found.tolist() if isinstance(found, np.ndarray) and depth != COLUMN_DEPTH else found
            return {
                key: self.resolved(one, depth + 1) if isinstance(one, (dict, list)) else one
                for key, one in value.items()
            }
        if isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
            return [self.resolved(one, IN_LIST) for one in value]
        return value

    def _slab(self, number: Any) -> Slab:
        if not isinstance(number, int) or not 0 <= number < len(self._slabs):
            raise FormatError(f"there is no slab {number}: there are {len(self._slabs)}", 12, path=self._path)
        return self._slabs[number]

    def _value(self, number: Any, depth: int) -> Any:
        slab = self._slab(number)
        if (number, depth) in self._decoded:
            return self._decoded[number, depth]
        if number in self._open or len(self._open) == MAX_SLAB_DEPTH:
            why = "refers to itself" if number in self._open else f"is nested more than {MAX_SLAB_DEPTH} levels deep"
            raise FormatError(f"slab {number} {why}", slab.begin, f"slab {number}", path=self._path)
        if slab.type != JSLB_JSON:
            return self._numbers(slab)
        self._open.append(number)
        try:
            text, at = self.text(number)
            value = self.resolved(text.parsed(at), depth)
        finally:
            self._open.pop()
        self._decoded[number, depth] = value
        return value

    def _numbers(self, slab: Slab) -> Array:
        return np.frombuffer(self._data[slab.begin : slab.end], SLAB_DTYPES[slab.type])
