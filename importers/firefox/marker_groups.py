"""Map: the markers of a thread by type, as they were parsed or in few bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from traceferry.importers.firefox._stacks import narrowed
from traceferry.importers.firefox.markers import Intervals
from traceferry.importers.firefox.samples import widened
from traceferry.model import Array
from traceferry.native.distinct import distinct_with_places
from traceferry.native.values import interned, member

# Bytes of a Python object beside what it holds.
OBJECT_BYTES = 64
# What is kept once for all that have it. A float may be equal to another one, as 0 is to -0.
KINDS = ({int}, {str})


class Group(NamedTuple):
    """The markers of one type. kind: the type; rows: of the thread's markers, int64, rising; names: of each, None: they
    are called as the type; category: -1 is none; flow: the number of each marker's, 0 is none; data: of each."""

    kind: str
    rows: Array
    names: list[str] | None
    category: Array
    flow: Array
    data: list[dict[str, Any]]
    keys: dict[str, int]

    def cells(self, key: str, default: Any = None) -> list[Any]:
        """Returns a member of each; default: where there is none."""
        return member(self.data, key, default)


class Cells(NamedTuple):
    """A member of each marker. values: the numbers themselves, or each value once; numbers: where in `values` that of
    each marker is, None: these are they."""

    values: Array | list[Any]
    numbers: Array | None

    @classmethod
    def of(cls, cells: list[Any]) -> Cells | None:
        """Returns the values of a member; None: they are not numbers of one kind, and neither whole numbers nor texts
        with None among them."""
        kinds = set(map(type, cells))
        if kinds in ({int}, {float}) and (plain := _array_of(cells)) is not None:
            return cls(plain, None)
        if kinds - {type(None)} not in KINDS:
            return None
        known: dict[Any, int] = {}
        numbers = interned(cells, known)
        return cls(list(known), narrowed(numbers))

    @classmethod
    def of_texts(cls, rows: list[int], texts: list[str]) -> Cells:
        """Returns the texts of rows of texts, all of which there are."""
        used, numbers = distinct_with_places(np.array(rows, np.int64))
        return cls(list(map(texts.__getitem__, used.tolist())), narrowed(numbers.astype(np.int64)))

    @property
    def n_bytes(self) -> int:
        held = 0 if self.numbers is None else self.numbers.nbytes
        if isinstance(self.values, np.ndarray):
            return held + self.values.nbytes
        return held + sum(OBJECT_BYTES + (len(one) if isinstance(one, str) else 0) for one in self.values)

    def listed(self, n: int) -> list[Any]:
        """Returns the values of n markers. One value alone, as `narrowed` leaves it, is that of each."""
        values = self.values.tolist() if isinstance(self.values, np.ndarray) else self.values
        if self.numbers is not None:
            return list(map(values.__getitem__, widened(self.numbers, n).tolist()))
        return values if len(values) == n else values * n


class KeptGroup(NamedTuple):
    """The markers of one type, as in `Group`, without their data. narrow_flow: the flows in as few bytes as they
    need."""

    kind: str
    rows: Array
    names: list[str] | None
    narrow_flow: Array
    columns: dict[str, Cells]

    @property
    def n_bytes(self) -> int:
        names = 0 if self.names is None else len(self.names) * OBJECT_BYTES
        return names + self.rows.nbytes + self.narrow_flow.nbytes + sum(one.n_bytes for one in self.columns.values())

    @property
    def flow(self) -> Array:
        return widened(self.narrow_flow, len(self.rows))

    def cells(self, key: str) -> list[Any]:
        return self.columns[key].listed(len(self.rows)) if key in self.columns else [None] * len(self.rows)


class KeptMarkers(NamedTuple):
    """The markers of a thread. narrow: their intervals, with times after the first start and with durations; groups:
    the rest."""

    n: int
    first_ts: int
    narrow: Intervals
    groups: list[KeptGroup]

    @classmethod
    def of(cls, intervals: Intervals, groups: list[KeptGroup]) -> KeptMarkers:
        first = int(intervals.ts[0]) if len(intervals.ts) else 0
        ts, dur = narrowed(intervals.ts - first), narrowed(intervals.end - intervals.ts)
        narrow = intervals._replace(ts=ts, end=dur, stack=narrowed(intervals.stack))
        return cls(len(intervals.ts), first, narrow, groups)

    @property
    def n_bytes(self) -> int:
        return sum(one.nbytes for one in self.narrow) + sum(one.n_bytes for one in self.groups)

    def intervals(self) -> Intervals:
        ts = widened(self.narrow.ts, self.n) + self.first_ts
        return self.narrow._replace(
            ts=ts, end=ts + widened(self.narrow.end, self.n), stack=widened(self.narrow.stack, self.n)
        )


def _array_of(cells: list[Any]) -> Array | None:
    """Returns numbers of one kind; None: some have more than 64 bits."""
    if type(cells[0]) is float:
        return np.array(cells, np.float64)
    try:
        return narrowed(np.array(cells, np.int64))
    except OverflowError:
        return None
