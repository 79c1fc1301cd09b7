"""Answers as columns. Source: perfetto/protos/perfetto/trace_processor/trace_processor.proto, QueryResult."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traceferry.model import Array

# CellsBatch.CellType
NULL, INTEGER, FLOAT, STRING, BLOB = 1, 2, 3, 4, 5


@dataclass(frozen=True)
class Column:
    """One column of an answer. kinds: uint8, the type of each cell; the values of each type stand in the order of their
    cells."""

    name: str
    kinds: Array
    integers: Array
    floats: Array
    strings: Sequence[str]
    blobs: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.kinds)

    def values(self) -> list[Any]:
        """Returns int, float, str, bytes or None for each cell."""
        of_one = self._of_one_kind()
        if of_one is not None:
            return of_one
        left = {INTEGER: iter(self.integers.tolist()), FLOAT: iter(self.floats.tolist()), STRING: iter(self.strings),
                BLOB: iter(self.blobs)}  # fmt: skip
        return [next(left[kind]) if kind in left else None for kind in self.kinds.tolist()]

    def _of_one_kind(self) -> list[Any] | None:
        n = len(self.kinds)
        numbers = (values.tolist() for values in (self.integers, self.floats) if len(values) == n)
        texts = (list(values) for values in (self.strings, self.blobs) if len(values) == n)
        return next(iter((*numbers, *texts)), None) if n else []

    def numbers(self, absent: int = 0) -> Array:
        """int64; `absent` where the cell is no integer."""
        found = np.full(len(self), absent, np.int64)
        found[self.kinds == INTEGER] = self.integers
        return found

    def reals(self) -> Array:
        """float64; NaN where the cell is no number."""
        found = np.full(len(self), np.nan)
        found[self.kinds == INTEGER] = self.integers
        found[self.kinds == FLOAT] = self.floats
        return found

    def texts(self) -> list[str]:
        """Returns "" where the cell is no text."""
        left = iter(self.strings)
        return [next(left) if kind == STRING else "" for kind in self.kinds.tolist()]


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, by columns."""

    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        """Returns the column of this name, an empty one where there is none."""
        return next((column for column in self.columns if column.name == name), _joined(name, []))

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


def answer_of(names: Sequence[str], batches: Iterable[Any]) -> Answer:
    """Makes columns of CellsBatch messages, whose cells go row by row. A batch has whole rows."""
    parts = [_columns(len(names), batch) for batch in batches if len(names) and len(batch.cells)]
    return Answer(tuple(_joined(name, [part[nth] for part in parts]) for nth, name in enumerate(names)))


def _columns(n: int, batch: Any) -> list[Column]:
    kinds = np.array(batch.cells, np.uint8)
    place = np.zeros(len(kinds), np.int64)
    for kind in (INTEGER, FLOAT, STRING, BLOB):
        is_kind = kinds == kind
        place[is_kind] = np.arange(int(is_kind.sum()))
    integers, floats = np.array(batch.varint_cells, np.int64), np.array(batch.float64_cells, np.float64)
    strings = batch.string_cells.split("\0")[:-1]
    found = []
    for nth in range(n):
        of, at = kinds[nth::n], place[nth::n]
        texts = [strings[i] for i in at[of == STRING].tolist()]
        blobs = [bytes(batch.blob_cells[i]) for i in at[of == BLOB].tolist()]
        found.append(Column("", of, integers[at[of == INTEGER]], floats[at[of == FLOAT]], texts, blobs))
    return found


def _joined(name: str, parts: Sequence[Column]) -> Column:
    def of(key: str, dtype: type[np.generic]) -> Array:
        return np.concatenate([np.zeros(0, dtype), *(getattr(part, key) for part in parts)])

    return Column(
        name, of("kinds", np.uint8), of("integers", np.int64), of("floats", np.float64),
        [text for part in parts for text in part.strings], [blob for part in parts for blob in part.blobs],
    )  # fmt: skip
