"""The names and paths of a GSYM file: strings of its string table, and files of its file table."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from traceferry.model import Array
from traceferry.native.distinct import distinct_with_places
from traceferry.symbolication.gsym.layout import Problem
from traceferry.symbolication.gsym.tables import Tables

# Linkage names of templates are long, but not that long.
MAX_TEXT = 1 << 16
TEXT_PIECE = 256
# Strings may lie over each other, so short data could make long texts without an end.
MAX_TEXTS = 64
MIN_TEXTS_SIZE = 1 << 24


class Texts:
    """The names and paths that answers refer to. all: each once, as far as it is known.

    A string ends after MAX_TEXT bytes; when all together have outgrown what files hold, the rest is unknown.
    """

    def __init__(self, tables: Tables, problems: set[Problem]) -> None:
        self.all: list[str] = []
        self._tables = tables
        self._problems = problems
        self._left = max(MIN_TEXTS_SIZE, MAX_TEXTS * len(tables.data))
        # Of an offset of the string table, and of a number of the file table; "" where there is nothing.
        self.name = cache(lambda offset: self._kept(self._string(offset)))
        self.path = cache(lambda file: self._kept(self._path(file)))

    def indices(self, values: Array, text_of: Callable[[int], str]) -> Array:
        """Returns which of `all` their texts are, which `name` or `path` gives: int32, -1 is unknown."""
        distinct, which = distinct_with_places(values.astype(np.int64))
        indices = np.full(len(distinct), -1, np.int32)
        for nth, value in enumerate(distinct.astype(values.dtype).tolist()):
            text = text_of(value)
            if text:
                indices[nth] = len(self.all)
                self.all.append(text)
        return indices[which]

    def _kept(self, text: str) -> str:
        self._left -= len(text)
        if self._left >= 0:
            return text
        self._problems.add(Problem(0, "the strings lie over each other"))
        return ""

    def _string(self, offset: int) -> str:
        strings = self._tables.strings
        size = TEXT_PIECE
        while True:
            piece = bytes(strings[offset : offset + size])
            end = piece.find(0)
            if end >= 0 or len(piece) < size or size >= MAX_TEXT:
                return (piece if end < 0 else piece[:end]).decode(errors="replace")
            size *= 4

    def _path(self, file: int) -> str:
        """Returns the path as LLVM joins it: with the directory's own separator."""
        if file >= len(self._tables.files):
            return ""
        directory, name = self._tables.files[file].tolist()
        folder, base = self._string(directory), self._string(name)
        separator = "\\" if "\\" in folder and "/" not in folder else "/"
        return f"{folder}{separator}{base}" if folder else base
