"""The names and paths of a GSYM file: strings of its string table, and files of its file table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceferry.model import Array
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
        self._names: dict[int, str] = {}
        self._paths: dict[int, str] = {}

    def name(self, offset: int) -> str:
        """Returns the string at an offset of the string table; "" where there is none."""
        if offset not in self._names:
            self._names[offset] = self._kept(self._string(offset))
        return self._names[offset]

    def path(self, file: int) -> str:
        """Returns directory and name of a file of the file table; "" where it has neither."""
        if file not in self._paths:
            self._paths[file] = self._kept(self._path(file))
        return self._paths[file]

    def names_of(self, offsets: Array) -> Array:
        """Returns which of `all` the strings at these offsets are: int32, -1 is unknown."""
        return self._indices(offsets, self.name)

    def paths_of(self, files: Array) -> Array:
        """Returns which of `all` the paths of these files are: int32, -1 is unknown."""
        return self._indices(files, self.path)

    def _indices(self, values: Array, text_of: Callable[[int], str]) -> Array:
        distinct = np.unique(values)
        indices = np.full(len(distinct), -1, np.int32)
        for nth, value in enumerate(distinct.tolist()):
            text = text_of(value)
            if text:
                indices[nth] = len(self.all)
                self.all.append(text)
        return indices[np.searchsorted(distinct, values)]

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
