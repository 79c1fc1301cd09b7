"""Tables in memory: fixed, streamed in pieces, or growing while importers add rows; and the strings they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise, repeat
from typing import Any

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.model.schema import Array, TableSpec
from traceferry.native.distinct import distinct_with_places, rows_of_places

# Of numbers that are looked up: the distance between two of them, on average at most.
MOST_SPARSE = 4
READ_ONLY = "a trace that was loaded does not change; what is opened of it can be added to"


class Table:
    """Columns of one length, as the spec declares them; columns that are not given take their default."""

    def __init__(self, spec: TableSpec, columns: dict[str, Any] | None = None) -> None:
        self.spec = spec
        self.columns: dict[str, Array] = _columns(spec, columns) if columns else dict(spec.no_rows)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def pieces(self) -> Iterator[Table]:
        """The rows in tables one after the other; none is empty. Here it is one."""
        if len(self):
            yield self

    def seal(self) -> None:
        """Makes its arrays read-only."""
        for column in self.columns.values():
            column.flags.writeable = False

    def totals(self) -> Array | None:
        """The sums of all rows, for a consumer that only adds them up, where they are known without making these; None:
        they are not. int64, of calls rows of func, enters, ns in outermost calls, ns on top; of allocations rows of
        class_name, stack, bytes allocated and freed, objects allocated and freed."""
        return None

    def counts(self) -> Array | None:
        """Returns how many each row stands for, int64, where a recorder adds up; None: each is one. Of calls, those of
        enters count."""
        return None

    def take(self, rows: Array | slice) -> Table:
        """The table with those rows only: a mask, an index array or a slice."""
        if isinstance(rows, slice):
            return Table(self.spec, {name: column[rows] for name, column in self.columns.items()})
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Table(self.spec, {name: column.take(at) for name, column in self.columns.items()})

    def merged(self, *others: Table) -> Table:
        """The rows of all, by time."""
        names = self.columns.keys()
        whole = Table(self.spec, {name: np.concatenate([t[name] for t in (self, *others)]) for name in names})
        return whole.take(np.argsort(whole["ts"], kind="stable"))

    def replaced(self, **columns: Array) -> Table:
        """The table with other values in some columns."""
        return Table(self.spec, {**self.columns, **columns})


def _columns(spec: TableSpec, given: dict[str, Any]) -> dict[str, Array]:
    n = len(next(iter(given.values())))
    return {
        c.name: np.asarray(given[c.name], c.numpy_dtype) if c.name in given else np.full(n, c.default, c.numpy_dtype)
        for c in spec.columns
    }


class CountedTable(Table):
    """A table in one piece of which a row stands for as many as `counts` says: int64, one for each row."""

    def __init__(self, spec: TableSpec, columns: dict[str, Any], counts: Array) -> None:
        super().__init__(spec, columns)
        self._counts = counts

    def counts(self) -> Array:
        return self._counts

    def seal(self) -> None:
        super().seal()
        self._counts.flags.writeable = False

    def take(self, rows: Array | slice) -> CountedTable:
        return CountedTable(self.spec, super().take(rows).columns, self._counts[rows])


class StreamedTable(Table):
    """A table that may not fit into memory. Consumers iterate over `pieces`, repeatedly if they need to; the pieces are
    made again each time. Asking for a column joins all pieces and keeps the result as long as the table.

    make: the pieces; n_rows: how many rows they have together; None: counted on demand; totals: see `Table.totals`.
    """

    def __init__(
        self,
        spec: TableSpec,
        make: Callable[[], Iterator[Table]],
        n_rows: int | None = None,
        totals: Callable[[], Array | None] = lambda: None,
    ) -> None:
        self.spec = spec
        self._make = make
        self._n_rows = n_rows
        self._totals = totals

    @cached_property
    def columns(self) -> dict[str, Array]:  # type: ignore[override]  # made at the first use
        pieces = [piece.columns for piece in self._make()]
        return {c.name: np.concatenate([p[c.name] for p in pieces] or [c.empty()]) for c in self.spec.columns}

    def __len__(self) -> int:
        if self._n_rows is None:
            self._n_rows = sum(len(piece) for piece in self._make())
        return self._n_rows

    def pieces(self) -> Iterator[Table]:
        return self._make()

    def seal(self) -> None:
        """Leaves the pieces as they are: they are made again each time."""

    def totals(self) -> Array | None:
        return self._totals()


def distinct(values: Array) -> Array:
    """Those that occur, rising, each once. As np.unique, which imports numpy.ma: that takes a tenth of the time of a
    small conversion."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_first]


def distinct_and_places(values: Array) -> tuple[Array, Array]:
    """Returns the integers that occur, rising, each once, and of each value its place among them (int32). As np.unique
    with return_inverse, which takes longer and imports numpy.ma."""
    if values.dtype != np.uint64:
        found, places = distinct_with_places(np.ascontiguousarray(values, np.int64))
        return found.astype(values.dtype, copy=False), places
    # The order of unsigned numbers is that of signed ones whose highest bit is the other one.
    highest = np.uint64(1 << 63)
    found, places = distinct_with_places((values ^ highest).view(np.int64))
    return found.view(np.uint64) ^ highest, places


def index_of(ordered: Array, wanted: Array) -> Array:
    """int64: where the wanted values stand among rising, distinct ones; -1 is nowhere."""
    if len(ordered) == 0:
        return np.full(len(wanted), -1)
    first, n_numbers = int(ordered[0]), int(ordered[-1]) - int(ordered[0]) + 1
    if ordered.dtype.kind == wanted.dtype.kind == "i" and n_numbers == len(ordered):
        # None is missing between them: the place is the distance, which wraps around to a large one before the first.
        distance = wanted.astype(np.int64) - first
        return np.where(distance.view(np.uint64) < np.uint64(n_numbers), distance, -1)
    if ordered.dtype.kind == wanted.dtype.kind == "i" and n_numbers <= MOST_SPARSE * len(ordered):
        # Numbers close to each other, as most are: looked up, which is several times as fast as a search.
        place = np.full(n_numbers + 1, -1)
        place[ordered - ordered[0]] = np.arange(len(ordered))
        return place[np.where((wanted >= first) & (wanted <= ordered[-1]), wanted - ordered[0], -1)]
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[place] == wanted, place, -1)


def containing_interval(begins: Array, sizes: Array, addresses: Array) -> Array:
    """int64: of the ranges (uint64, by rising begin) the last one that begins at or before each address, if the address
    lies in it; -1 is none."""
    nearest = np.searchsorted(begins, addresses, side="right") - 1
    begin, size = (np.append(column, np.uint64(0))[nearest] for column in (begins, sizes))
    return np.where(addresses - begin < size, nearest, -1)


def rows_by_key(keys: Array) -> dict[int, Array]:
    """The rows (int64, rising) of each integer key."""
    values, place = distinct_with_places(np.ascontiguousarray(keys, np.int64))
    if keys.dtype == np.uint64:
        values = values.view(np.uint64)
    rows, ends = rows_of_places(place, len(values))
    # As np.split, which takes ten times as long for each.
    bounds = pairwise([0, *ends.tolist()])
    return {value: rows[begin:end] for value, (begin, end) in zip(values.tolist(), bounds, strict=True)}


class GrowingTable(Table):
    """A global table while importers add to it: rows one by one, of which equal ones are one row, or many at once.

    base: its rows come first; it must not grow as long as this table is used.
    """

    def __init__(self, spec: TableSpec, base: GrowingTable | None = None) -> None:
        self.spec = spec
        self._base = base
        self._index: dict[tuple[Any, ...], int] = {}
        self._defaults = {c.name: c.default for c in spec.columns}
        self._parts: list[dict[str, Array]] = [base.columns] if base is not None else []
        self._pending: list[tuple[Any, ...]] = []
        self._n = len(base) if base is not None else 0
        self._is_sealed = False

    def __len__(self) -> int:
        return self._n

    def intern(self, **values: Any) -> int:
        """Returns the index of the row with these values; columns not named take their default."""
        row = tuple((self._defaults | values).values())
        if len(row) != len(self._defaults):
            raise KeyError(*(values.keys() - self._defaults.keys()))
        if self._base is not None or self._is_sealed:
            index = self._index.get(row)
            return self._added(row) if index is None else index
        # Most tables begin with nothing: then one look into the index is enough.
        index = self._index.setdefault(row, self._n)
        if index == self._n:
            self._pending.append(row)
            self._n += 1
        return index

    def intern_all(self, n: int, **columns: Any) -> list[int]:
        """Returns the indices of n rows in turn. columns: a list of n values, or one value for all."""
        given = {name: values if isinstance(values, list) else repeat(values, n) for name, values in columns.items()}
        cells = (given.get(name, repeat(default, n)) for name, default in self._defaults.items())
        rows = zip(*cells, strict=True)
        if self._base is not None or self._is_sealed:
            known = self._index.get
            return [self._added(row) if (index := known(row)) is None else index for row in rows]
        indices, enter, pending = list[int](), self._index.setdefault, self._pending
        for row in rows:
            index = enter(row, self._n)
            if index == self._n:
                pending.append(row)
                self._n += 1
            indices.append(index)
        return indices

    def extend(self, **columns: Any) -> int:
        """Appends rows without looking for equal ones; returns the index of the first."""
        self._check_open()
        part = Table(self.spec, columns)
        self._flush()
        self._parts.append(part.columns)
        self._n += len(part)
        return self._n - len(part)

    def replace(self, name: str, values: Array) -> None:
        """Gives a column other values. Rows are still found by those that they were added with."""
        self._check_open()
        column = {name: np.asarray(values, self.columns[name].dtype)}
        self._parts = [self.columns | column]

    @property
    def columns(self) -> dict[str, Array]:  # type: ignore[override]  # joined when they are asked for
        self._flush()
        if len(self._parts) != 1:
            parts = [part for part in self._parts if len(next(iter(part.values())))] or [Table(self.spec).columns]
            self._parts = [{name: np.concatenate([part[name] for part in parts]) for name in self._defaults}]
        return self._parts[0]

    def seal(self) -> None:
        super().seal()
        self._is_sealed = True

    def _added(self, row: tuple[Any, ...]) -> int:
        """Returns the index of a row that is not in the index of this table."""
        index = self._base._find(row) if self._base is not None else None
        if index is None:
            self._check_open()
            index = self._n
            self._pending.append(row)
            self._n += 1
        self._index[row] = index
        return index

    def _find(self, row: tuple[Any, ...]) -> int | None:
        index = self._index.get(row)
        return self._base._find(row) if index is None and self._base is not None else index

    def _check_open(self) -> None:
        if self._is_sealed:
            raise TypeError(f"{self.spec.name}: {READ_ONLY}")

    def _flush(self) -> None:
        if self._pending:
            columns = dict(zip(self._defaults, zip(*self._pending, strict=True), strict=True))
            self._parts.append(Table(self.spec, columns).columns)
            self._pending = []


class Strings:
    """All short texts, each once, as UTF-8 can hold them; index -1 is none. base: its texts come first."""

    def __init__(self, base: Strings | None = None) -> None:
        self._base = base
        self._index: dict[str, int] = {}
        # The base's own list, until one is added.
        self._list: list[str] = base._list if base is not None else []
        self._is_sealed = False

    def intern(self, text: str) -> int:
        """Returns the text's index."""
        index = self._index.get(text)
        if index is None:
            text = encodable(text)
            index = self._find(text)
            if index is None:
                index = self._added(text)
            self._index[text] = index
        return index

    def seal(self) -> None:
        self._is_sealed = True

    def _find(self, text: str) -> int | None:
        index = self._index.get(text)
        return self._base._find(text) if index is None and self._base is not None else index

    def _added(self, text: str) -> int:
        if self._is_sealed:
            raise TypeError(f"strings: {READ_ONLY}")
        if self._base is not None and self._list is self._base._list:
            self._list = self._list.copy()
        self._list.append(text)
        return len(self._list) - 1

    def of(self, indices: Array) -> list[str]:
        """Returns the texts of these indices."""
        texts = self._list
        return [texts[index] if index >= 0 else "" for index in indices.tolist()]

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, index: int) -> str:
        return self._list[index] if index >= 0 else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._list)
