"""JSON in pieces: small values through orjson, number columns through the kernels, never the whole text at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

import numpy as np
import orjson

from traceferry.exporters.json._numbers import Differences, NumberText
from traceferry.exporters.json.objects import AT_ONCE, Objects
from traceferry.files.output import Sink
from traceferry.model import Array, distinct
from traceferry.native.arrays import grown, longer

PIECE = 1 << 15
SMALLEST = -(2**63)
Column = Array | Iterable[Array]  # in pieces


class JsonWriter:
    """Writes one JSON document. `object` and `array` are a member of that name, or without one an element of the
    current array, or the document. `key` begins a member, `raw` writes text as it is."""

    def __init__(self, out: Sink) -> None:
        self._out = out
        self._text = NumberText()
        self._comma = False

    def raw(self, text: bytes | memoryview) -> None:
        self._out.write(text)

    @contextmanager
    def object(self, name: str = "") -> Iterator[None]:
        self._begin(name, b"{")
        yield
        self._end(b"}")

    @contextmanager
    def array(self, name: str = "") -> Iterator[None]:
        self._begin(name, b"[")
        yield
        self._end(b"]")

    @contextmanager
    def table(self, name: str, n: int) -> Iterator[None]:
        """Writes an object of columns, with their length."""
        with self.object(name):
            yield
            self.member("length", n)

    def _begin(self, name: str, bracket: bytes) -> None:
        if name:
            self.key(name)
        else:
            self._separate()
        self.raw(bracket)
        self._comma = False

    def _end(self, bracket: bytes) -> None:
        self.raw(bracket)
        self._comma = True

    def _separate(self) -> None:
        if self._comma:
            self.raw(b",")
        self._comma = True

    def key(self, name: str) -> None:
        self._separate()
        self.raw(b'"' + name.encode() + b'":')

    def value(self, value: Any) -> None:
        self.raw(orjson.dumps(value))
        self._comma = True

    def member(self, name: str, value: Any) -> None:
        self.key(name)
        self.value(value)

    def members(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self.member(name, value)

    def ints(self, name: str, values: Column) -> None:
        """Writes a column of int32; a negative value is null."""
        self._column(name, map(self._text.ints, parts(values, np.int32)))

    def longs(self, name: str, values: Column, null: int = SMALLEST) -> None:
        """Writes a column of int64 as they are; one that is `null` is null."""
        self._column(name, (self._text.longs(part, null) for part in parts(values, np.int64)))

    def millis(self, name: str, values: Column) -> None:
        """Writes a column of int64 ns as exact ms; a negative value is null."""
        self._column(name, map(self._text.millis, parts(values, np.int64)))

    def differences(self, name: str, values: Column) -> None:
        """Writes a column of differences of times, int64 ns, as ms; a negative one is 0. See `Differences`."""
        sums = Differences()
        self._column(name, (self._text.differences(part, sums) for part in parts(values, np.int64)))

    def bools(self, name: str, values: Array) -> None:
        flags = np.ascontiguousarray(values, bool)
        self._column(
            name, (orjson.dumps(flags, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1] for _ in range(len(flags) > 0))
        )

    def sample_rows(self, name: str, pieces: Iterable[tuple[Array, Array]]) -> None:
        """Writes an array of rows of samples. pieces: (stack, ns)."""
        self._column(
            name,
            (
                self._text.sample_rows(stack[at : at + PIECE], ts[at : at + PIECE])
                for stack, ts in pieces
                for at in range(0, len(stack), PIECE)
            ),
        )

    def texts(self, name: str, nth: Iterable[Array], texts: TextList) -> None:
        """Writes a column of texts. nth: int32, of each the place in `texts`, -1 is an empty one; in pieces, between
        which `texts` may get longer."""
        known = TextTable(texts)
        places = map(known.places, parts(nth, np.int32, AT_ONCE))
        self._column(name, (self._text.texts(part, *known.joined) for part in places))

    def repeated(self, name: str, value: Any, n: int) -> None:
        """Writes a column of n times the same."""
        text = orjson.dumps(value) + b","
        many = memoryview(text * min(PIECE, n))
        self._column(name, (many[: len(text) * min(PIECE, n - at) - 1] for at in range(0, n, PIECE)))

    def rows(self, name: str, rows: Iterable[Any], at_once: int = 4096) -> None:
        """Writes an array of values, some at a time."""
        left = iter(rows)
        self._column(name, (orjson.dumps(piece)[1:-1] for piece in iter(lambda: list(islice(left, at_once)), [])))

    def objects(self, name: str, parts: Iterable[Objects]) -> None:
        """Writes an array of objects."""
        self._column(name, (text for part in parts for text in part.texts(self._text)))

    def _column(self, name: str, texts: Iterable[bytes | memoryview]) -> None:
        with self.array(name):
            for text in texts:
                self._separate()
                self.raw(text)


class TextList(Protocol):
    """Texts that are found by their place."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> str: ...


class TextTable:
    """The JSON of texts, of those that were asked for so far."""

    def __init__(self, texts: TextList) -> None:
        self._texts = texts
        # Of -1 and of each text, the place of its JSON; 0: not asked for yet.
        self._place = np.zeros(1, np.int32)
        self._json, self._begin = np.empty(0, np.uint8), np.zeros(2, np.int64)
        self._n = 1

    @property
    def joined(self) -> tuple[Array, Array]:
        """Returns (all, each with a comma behind it, uint8; where each begins and the last ends, int64)."""
        return self._json, self._begin[: self._n + 1]

    def places(self, nth: Array) -> Array:
        """Returns where these are in `joined`, int32. nth: in the texts, -1 is an empty one."""
        self._place = longer(self._place, len(self._texts) + 1)
        places = self._place.take(nth + 1)
        if not places.all():
            self._add(distinct(nth[places == 0]))
            places = self._place.take(nth + 1)
        return places

    def _add(self, new: Array) -> None:
        added = [orjson.dumps(self._texts[nth] if nth >= 0 else "") + b"," for nth in new.tolist()]
        first, self._n = self._n, self._n + len(added)
        self._place[new + 1] = np.arange(first, self._n)
        self._begin = grown(self._begin, self._n + 1)
        ends = self._begin[first] + np.cumsum([len(text) for text in added])
        self._begin[first + 1 : self._n + 1] = ends
        self._json = grown(self._json, int(ends[-1]))
        self._json[self._begin[first] : ends[-1]] = np.frombuffer(b"".join(added), np.uint8)


class Counted:
    """Pieces of a column that can be gone through once. n: how many values they had so far."""

    def __init__(self, pieces: Iterable[Array]) -> None:
        self.n = 0
        self._pieces = pieces

    def __iter__(self) -> Iterator[Array]:
        for piece in self._pieces:
            self.n += len(piece)
            yield piece


def parts(column: Column, dtype: type[np.generic], most: int = 0) -> Iterator[Array]:
    """Yields the values of a column, in parts of at most `most`; 0: PIECE."""
    step = most or PIECE
    for piece in (column,) if isinstance(column, np.ndarray) else column:
        values = np.ascontiguousarray(piece, dtype)
        for at in range(0, len(values), step):
            yield values[at : at + step]
