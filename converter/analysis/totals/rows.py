"""Amounts by key, of which any number can be added up in any order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from traceferry.model import Array, sums
from traceferry.native.distinct import distinct_pairs

Key = tuple[Any, ...]
Pair = tuple[Key, list[int]]


@dataclass(frozen=True)
class Rows:
    """One kind of totals. keys: sorted, each once; columns: the names of the amounts; largest: those of which a merge
    takes the larger one, where it adds up the others; amounts: int64 [keys, columns]."""

    columns: tuple[str, ...]
    keys: tuple[Key, ...] = ()
    amounts: Array = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    largest: frozenset[str] = frozenset()

    def of(self, keys: Sequence[Key], amounts: Any) -> Rows:
        """Totals of this kind: keys in any order, also repeated, each with a row of amounts."""
        given = np.asarray(amounts, np.int64).reshape(len(keys), len(self.columns))
        distinct, group = sorted_places(keys)
        summed = np.zeros((len(distinct), len(self.columns)), np.int64)
        for nth, column in enumerate(self.columns):
            if column in self.largest:
                np.maximum.at(summed[:, nth], group, given[:, nth])
            else:
                summed[:, nth] = sums.total_by(group, given[:, nth], len(distinct))
        return replace(self, keys=tuple(distinct), amounts=summed)

    def of_pairs(self, rows: Iterable[tuple[Key, Any]]) -> Rows:
        """Returns the same, of (key, amounts)."""
        pairs = list(rows)
        return self.of([key for key, _ in pairs], [amounts for _, amounts in pairs])

    def merged(self, *others: Rows) -> Rows:
        for other in others:
            if (self.columns, self.largest) != (other.columns, other.largest):
                raise ValueError(f"totals of {self.columns} cannot be merged with totals of {other.columns}")
        filled = [rows for rows in (self, *others) if rows.keys]
        if len(filled) <= 1:
            return filled[0] if filled else self
        keys = [key for rows in filled for key in rows.keys]
        return self.of(keys, np.concatenate([rows.amounts for rows in filled]))


def key_order(key: Key) -> list[tuple[str, Any]]:
    """Keys of one kind may hold numbers in one recording and texts in another."""
    return [(type(value).__name__, value) for value in key]


def sorted_places(keys: Sequence[Any]) -> tuple[list[Any], Array]:
    """Returns the distinct keys, sorted, and the place of each given one among them."""
    distinct = set(keys)
    # Where the types are the same, the order of the values is that of key_order, and found sooner.
    is_uniform = len({tuple(map(type, key)) for key in distinct}) == 1
    found = sorted(distinct, key=None if is_uniform else key_order)
    place = {key: nth for nth, key in enumerate(found)}
    return found, np.array([place[key] for key in keys], np.int32)


def by_pair(major: Array, minor: Array, values: Array) -> tuple[Array, Array, Array]:
    """Returns the distinct pairs, int32, sorted, and the sum of the values of each. major, minor: not negative."""
    majors, minors, place = distinct_pairs(*(np.ascontiguousarray(column, np.int32) for column in (major, minor)))
    return majors, minors, sums.total_by(place, values, len(minors))
