"""Many JSON objects with the same members, as columns: their text is made by a kernel, or they become dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson

from traceferry.exporters.json._numbers import ABSENT, HEX, INTEGER, LITERAL, MILLIS, TEXT, NumberText
from traceferry.model import Array
from traceferry.native.values import interned

AT_ONCE = 4096
# What stands for a value in a dict that does not have the member.
MISSING: Any = object()
# In ns: below it, a double holds every number of ms exactly as it is written.
EXACT = 10**15


class Objects(Protocol):
    """Some objects, which can be gone through once."""

    def rows(self) -> Iterator[dict[str, Any]]: ...

    def texts(self, text: NumberText) -> Iterator[bytes | memoryview]:
        """Yields the objects as JSON, with commas between them but not around what is yielded at once; each holds
        until the next one."""
        ...


class Dicts(NamedTuple):
    """Objects as they are."""

    each: Iterator[dict[str, Any]]

    def rows(self) -> Iterator[dict[str, Any]]:
        return self.each

    def texts(self, text: NumberText) -> Iterator[bytes | memoryview]:
        return (orjson.dumps(piece)[1:-1] for piece in iter(lambda: list(islice(self.each, AT_ONCE)), []))


# ---------------------------------------------------------------- members


class Numbers(NamedTuple):
    """A member with numbers, int64; ABSENT is no member. kind: INTEGER; MILLIS, which are ns from 0 to EXACT; or HEX,
    whose uint64 is a text."""

    key: str
    values: Array
    kind: int = INTEGER

    def each(self) -> Iterable[Any]:
        if self.kind == HEX:
            return map(hex, self.values.view(np.uint64).tolist())
        values: list[Any] = (self.values / 1e6 if self.kind == MILLIS else self.values).tolist()
        for nth in np.flatnonzero(self.values == ABSENT).tolist():
            values[nth] = MISSING
        return values


class Texts(NamedTuple):
    """A member with texts. nth: of each object, in `texts`; -1 is no member."""

    key: str
    nth: Array
    texts: Sequence[str]

    def each(self) -> Iterable[Any]:
        return map([*self.texts, MISSING].__getitem__, self.nth.tolist())


class Values(NamedTuple):
    """A member with any values. MISSING is no member."""

    key: str
    values: Iterable[Any]

    def each(self) -> Iterable[Any]:
        return self.values


class Inner(NamedTuple):
    """A member that is an object itself; there is none where the first of its own members is ABSENT. constant: members
    that are the same in all, behind the others."""

    key: str
    members: Sequence[Numbers]
    constant: dict[str, Any]

    def each(self) -> Iterable[Any]:
        keys = [member.key for member in self.members]
        for values in zip(*(member.each() for member in self.members), strict=True):
            yield MISSING if values[0] is MISSING else dict(zip(keys, values, strict=True)) | self.constant


Member = Numbers | Texts | Values | Inner


def text_member(key: str, values: Iterable[str]) -> Texts:
    """Returns a member with these texts, each distinct one kept once."""
    texts: dict[str, int] = {}
    nth = interned(values, texts)
    return Texts(key, nth, list(texts))


def millis_member(key: str, ns: Array) -> Member:
    """Returns a member with ns as ms."""
    if len(ns) and not 0 <= int(ns.min()) <= int(ns.max()) < EXACT:
        return Values(key, (ns / 1e6).tolist())
    return Numbers(key, ns, MILLIS)


# ---------------------------------------------------------------- objects


class _Part(NamedTuple):
    """Holds what an object's text has of a member: a text, then a value. need: the place, from this one on, of the part
    whose value must be there; None: it always is."""

    text: bytes
    kind: int = LITERAL
    values: Array | None = None
    need: int | None = None
    choices: Sequence[str] = ()


class ObjectColumns:
    """n objects: members that are the same in all, at least one, then those of columns."""

    def __init__(self, n: int, constant: dict[str, Any], members: Sequence[Member]) -> None:
        self._n, self._constant, self._members = n, constant, members

    def rows(self) -> Iterator[dict[str, Any]]:
        keys = [member.key for member in self._members]
        columns = [member.each() for member in self._members] or [[None] * self._n]
        for values in zip(*columns, strict=True):
            found = zip(keys, values, strict=False)
            yield self._constant | {key: value for key, value in found if value is not MISSING}

    def texts(self, text: NumberText) -> Iterator[bytes | memoryview]:
        if any(isinstance(member, Values) for member in self._members):
            yield from Dicts(self.rows()).texts(text)
            return
        parts = [_Part(orjson.dumps(self._constant)[:-1]), *(p for m in self._members for p in _parts(m)), _Part(b"}")]
        all_texts, first_choice = [part.text for part in parts], []
        for part in parts:
            first_choice.append(len(all_texts))
            all_texts += map(orjson.dumps, part.choices)
        kinds = np.array([part.kind for part in parts], np.uint8)
        needs = np.array([-1 if p.need is None else nth + p.need for nth, p in enumerate(parts)], np.int32)
        text_at = np.cumsum([0, *map(len, all_texts)], dtype=np.int64)
        joined = np.frombuffer(b"".join(all_texts), np.uint8)
        for begin in range(0, self._n, AT_ONCE):
            columns = np.zeros((len(parts), min(AT_ONCE, self._n - begin)), np.int64)
            for part, first, column in zip(parts, first_choice, columns, strict=True):
                if part.values is not None:
                    values = part.values[begin : begin + AT_ONCE]
                    column[:] = np.where(values < 0, np.int64(ABSENT), values + first) if part.kind == TEXT else values
            yield text.objects(kinds, needs, columns, joined, text_at)


def _parts(member: Member) -> Iterator[_Part]:
    match member:
        case Numbers(key, values, kind):
            # A hexadecimal number has no value that stands for none.
            yield _Part(_named(key), kind, values.view(np.int64), None if kind == HEX else 0)
        case Texts(key, nth, texts):
            yield _Part(_named(key), TEXT, nth, 0, texts)
        case Inner(key, members, constant):
            for place, inner in enumerate(members):
                name = _named(inner.key) if place else _named(key) + b"{" + _named(inner.key)[1:]
                yield _Part(name, inner.kind, inner.values, -place)
            yield _Part(b"," + orjson.dumps(constant)[1:], need=-len(members))


def _named(key: str) -> bytes:
    return b"," + orjson.dumps(key) + b":"
