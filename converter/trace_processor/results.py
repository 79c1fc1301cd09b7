"""Answers as columns. Source: perfetto/protos/perfetto/trace_processor/trace_processor.proto, QueryResult."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array
from traceferry.native.texts import TextTable
from traceferry.trace_processor import _cells

# CellsBatch.CellType
NULL, INTEGER, FLOAT, STRING, BLOB = 1, 2, 3, 4, 5
# Of an answer, in bytes as the engine sends it: what is more is kept in a file.
KEPT_IN_MEMORY = 64 << 20
LENGTH_BYTES = FLOAT_BYTES = 8
# Bytes of a varint but for its last have this bit.
CONTINUES = 0x80
OTHER_VALUES = "an answer has other values than its cells say"


@dataclass(frozen=True)
class Column:
    """One column of an answer. kinds: uint8, the type of each cell; the values of each type stand in the order of their
    cells; text: int32, which of the `known` texts, each of which is there once."""

    name: str
    kinds: Array
    integers: Array
    floats: Array
    text: Array
    known: Sequence[str]
    blobs: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.kinds)

    def values(self) -> list[Any]:
        """Returns int, float, str, bytes or None for each cell."""
        of_one = self._of_one_kind()
        if of_one is not None:
            return of_one
        left = {INTEGER: iter(self.integers.tolist()), FLOAT: iter(self.floats.tolist()), STRING: iter(self._strings()),
                BLOB: iter(self.blobs)}  # fmt: skip
        return [next(left[kind]) if kind in left else None for kind in self.kinds.tolist()]

    def _of_one_kind(self) -> list[Any] | None:
        n = len(self.kinds)
        numbers = (values.tolist() for values in (self.integers, self.floats) if len(values) == n)
        texts = (self._strings() for _ in range(len(self.text) == n))
        blobs = (list(self.blobs) for _ in range(len(self.blobs) == n))
        return next(iter((*numbers, *texts, *blobs)), None) if n else []

    def _strings(self) -> list[str]:
        return list(map(self.known.__getitem__, self.text.tolist()))

    def numbers(self, absent: int = 0) -> Array:
        """int64; `absent` where the cell is no integer."""
        if len(self.integers) == len(self):
            return self.integers
        found = np.full(len(self), absent, np.int64)
        found[self.kinds == INTEGER] = self.integers
        return found

    def reals(self) -> Array:
        """float64; NaN where the cell is no number."""
        found = np.full(len(self), np.nan)
        found[self.kinds == INTEGER] = self.integers
        found[self.kinds == FLOAT] = self.floats
        return found

    def text_numbers(self) -> Array:
        """int32: which of `known`; -1 where the cell is no text."""
        if len(self.text) == len(self):
            return self.text
        found = np.full(len(self), -1, np.int32)
        found[self.kinds == STRING] = self.text
        return found

    def texts(self) -> list[str]:
        """Returns "" where the cell is no text."""
        texts = [*self.known, ""]
        return [texts[number] for number in self.text_numbers().tolist()]


@dataclass(frozen=True)
class Answer:
    """The rows of a statement, by columns."""

    columns: tuple[Column, ...]

    def __getitem__(self, name: str) -> Column:
        """Returns the column of this name, an empty one where there is none."""
        found = [column for column in self.columns if column.name == name] or columns_of([name], [], 0)
        return found[0]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]


@dataclass(frozen=True)
class Batch:
    """Whole rows of an answer, as they are sent.

    n_columns: of a row; kinds: uint8, the type of each cell, row by row; packed: uint8, the varints of the integers;
    floats: float64; text: uint8, UTF-8 with a zero behind each text; blobs. The values of each type stand in the order
    of their cells. counts: int64, by column, how many cells of each type it has.
    """

    n_columns: int
    kinds: Array
    packed: Array
    floats: Array
    text: Array
    blobs: list[bytes]
    counts: Array

    def __len__(self) -> int:
        return len(self.kinds) // self.n_columns

    @property
    def integers(self) -> Array:
        """int64. Raises FormatError."""
        try:
            return _cells.integers(self.packed, int(self.counts[:, INTEGER].sum()))
        except ValueError:
            raise FormatError(OTHER_VALUES) from None

    def by_column(self) -> tuple[Array, Array]:
        """Returns the types, uint8, and the values, int64, of the cells, a row for each column: an integer, a float's
        bits, which of the texts or blobs it is."""
        shape = self.n_columns, len(self)
        kinds, values = np.empty(shape, np.uint8), np.empty(shape, np.int64)
        self.fill(kinds, values, 0, 0, 0)
        return kinds, values

    def fill(self, kinds: Array, values: Array, first_row: int, n_texts: int, n_blobs: int) -> None:
        """Writes them into longer columns. n_texts, n_blobs: of the rows in front of these. Raises FormatError."""
        floats = self.floats.view(np.int64)
        try:
            _cells.fill_columns(self.kinds, self.packed, floats, kinds, values, first_row, n_texts, n_blobs)
        except ValueError:
            raise FormatError(OTHER_VALUES) from None


def columns_of(names: Sequence[str], batches: Iterable[Batch], n_rows: int) -> list[Column]:
    """Returns the rows of an answer's batches, of which there are so many, by columns, which get these names."""
    shape = len(names), n_rows
    kinds, values = np.empty(shape, np.uint8), np.empty(shape, np.int64)
    counts, texts, blobs = np.zeros((len(names), BLOB + 1), np.int64), list[Array](), list[bytes]()
    at = n_texts = 0
    for batch in batches:
        batch.fill(kinds, values, at, n_texts, len(blobs))
        at, n_texts = at + len(batch), n_texts + int(batch.counts[:, STRING].sum())
        counts += batch.counts[:, : BLOB + 1]
        texts.append(batch.text)
        blobs += batch.blobs
    number, known = _distinct(np.concatenate([np.zeros(0, np.uint8), *texts]), n_texts)
    return [_column(*facts, number, known, blobs) for facts in zip(names, kinds, values, counts, strict=True)]


def _column(
    name: str, kinds: Array, values: Array, counts: Array, number: Array, known: Sequence[str], blobs: Sequence[bytes]
) -> Column:
    """kinds, values: as of a batch; counts: how many cells of each type there are; number: of each of the answer's
    texts; known, blobs: of the answer."""
    whole, real, text, blob = (
        values if counts[kind] == len(values) else values[kinds == kind] if counts[kind] else values[:0]
        for kind in (INTEGER, FLOAT, STRING, BLOB)
    )
    numbers = number if len(text) == len(number) else number[text]
    return Column(name, kinds, whole, real.view(np.float64), numbers, known, [blobs[i] for i in blob.tolist()])


def _distinct(text: Array, n: int) -> tuple[Array, list[str]]:
    """Returns the number of each of n texts, int32, and the texts that there are. text: UTF-8, a zero behind each."""
    table = TextTable(text)
    number = table.intern_terminated(n)
    return number, [text[a:b].tobytes().decode() for a, b in zip(table.begin.tolist(), table.end.tolist(), strict=True)]


def batch_of(n_columns: int, message: Any) -> Batch:
    """Decodes a CellsBatch message, whose packed numbers are bytes. Raises FormatError where it has no whole rows, or
    not the values of its cells."""
    kinds = np.frombuffer(b"".join(message.cells), np.uint8)
    if not n_columns or len(kinds) % n_columns:
        raise FormatError(f"an answer of {n_columns} columns has {len(kinds)} cells")
    reals, texts, blobs = b"".join(message.float64_cells), _utf8(message.string_cells), list(message.blob_cells)
    floats = np.frombuffer(reals, "<f8", count=len(reals) // FLOAT_BYTES)
    text = np.frombuffer(texts, np.uint8)
    counts = _cells.counts(kinds, n_columns)
    packed = np.frombuffer(b"".join(message.varint_cells), np.uint8)
    n_nulls, *counted = counts.sum(axis=0)[NULL : BLOB + 1].tolist()
    n_values = [np.count_nonzero(packed < CONTINUES), len(floats), len(text) - np.count_nonzero(text), len(blobs)]
    is_whole = texts[-1:] in (b"", b"\0") and not np.any(packed[-1:] >= CONTINUES)
    if not is_whole or n_nulls + sum(counted) != len(kinds) or counted != n_values:
        raise FormatError(OTHER_VALUES)
    return Batch(n_columns, kinds, packed, floats, text, blobs, counts)


def joined(batches: Sequence[Batch]) -> Batch:
    """Returns the rows of batches of one answer, at least one, as one."""
    return Batch(
        n_columns=batches[0].n_columns,
        kinds=np.concatenate([batch.kinds for batch in batches]),
        packed=np.concatenate([batch.packed for batch in batches]),
        floats=np.concatenate([batch.floats for batch in batches]),
        text=np.concatenate([batch.text for batch in batches]),
        blobs=[blob for batch in batches for blob in batch.blobs],
        counts=np.sum([batch.counts for batch in batches], axis=0),
    )


def _utf8(data: bytes) -> bytes:
    """Returns the bytes with U+FFFD in place of what is not UTF-8: names in traces may be any bytes."""
    if data.isascii():
        return data
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data


class Rows:
    """The rows of a statement, of any number: what is more than KEPT_IN_MEMORY is kept in a file.

    names: of the columns; kinds: of each column, which types its cells have; n_rows.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names: list[str] = list(names)
        self.kinds: list[set[int]] = [set() for _ in self.names]
        self.n_rows = 0
        self._batches: list[Batch] = []
        self._n_bytes = 0
        self._file: Any = None

    def add(self, message: Any, n_bytes: int) -> None:
        """Adds a CellsBatch message of that size. Raises FormatError."""
        if not message.cells:
            return
        batch = batch_of(len(self.names), message)
        self.n_rows += len(batch)
        for nth, seen in enumerate(self.kinds):
            seen.update(np.flatnonzero(batch.counts[nth]).tolist())
        self._n_bytes += n_bytes
        if self._n_bytes <= KEPT_IN_MEMORY:
            self._batches.append(batch)
            return
        self._file = self._file or TemporaryFile()  # noqa: SIM115 - goes with this object
        data = message.SerializeToString()
        self._file.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    def batches(self) -> Iterator[Batch]:
        """Yields the rows in their order; again each time."""
        yield from self._batches
        if self._file is None:
            return
        from traceferry.trace_processor.protocol import parsed

        self._file.seek(0)
        while head := self._file.read(LENGTH_BYTES):
            data = self._file.read(int.from_bytes(head, "little"))
            yield batch_of(len(self.names), parsed("CellsBatch", data))

    def answer(self) -> Answer:
        """Returns all of them by columns, in memory."""
        return Answer(tuple(columns_of(self.names, self.batches(), self.n_rows)))
