"""Layout: tables, as columns that are taken as far as they go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from traceferry.common.report import Report
from traceferry.importers.firefox._stacks import count_outside, whole_numbers
from traceferry.model import Array

# Beyond it a float64 does not tell neighbours apart, and before it an int64 is exact.
MAX_INTEGER = 1 << 62


class BadRows:
    """Counts values that cannot be used, by their place."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()

    def add(self, path: str, count: int) -> None:
        if count:
            self._of[path] = max(self._of[path], int(count))

    def note(self, report: Report, where: str) -> None:
        for path, count in self._of.items():
            report.note("bad_rows", count, where=f"{where} {path}", detail=f"{path}: {count}")


class Columns:
    """The columns of a table. path: of the table, for the report; n: how many rows it has."""

    def __init__(self, table: Any, path: str, bad: BadRows) -> None:
        self.path, self._bad = path, bad
        self._columns: dict[str, Any] = table if isinstance(table, dict) else {}
        lengths = [len(column) for column in self._columns.values() if isinstance(column, (list, np.ndarray))]
        longest, declared = max(lengths, default=0), self._columns.get("length")
        is_count = isinstance(declared, int) and not isinstance(declared, bool) and declared >= 0
        # A declared length allocates nothing that the text does not hold.
        self.n = min(longest, declared) if is_count and isinstance(declared, int) else longest

    def __contains__(self, name: str) -> bool:
        """A column without values in a table with rows is none: the viewer leaves such where it has nothing to say."""
        column = self._columns.get(name)
        return isinstance(column, (list, np.ndarray)) and (len(column) > 0 or not self.n)

    def member(self, name: str) -> Any:
        """Returns what is no column, as weightType."""
        return None if name in self else self._columns.get(name)

    def values(self, name: str) -> list[Any]:
        """Returns a column as it is, with None for what is missing."""
        column = self._columns[name] if name in self else None
        if isinstance(column, np.ndarray):
            column = [None if value != value else value for value in column.tolist()]  # NaN is null
        if not isinstance(column, list):
            return [None] * self.n
        if len(column) == self.n:
            return column
        self._bad.add(f"{self.path}.{name}", abs(len(column) - self.n))
        return column[: self.n] + [None] * (self.n - len(column))

    def floats(self, name: str, default: float = np.nan) -> Array:
        """float64; null is the default."""
        found = self._numbers(name)
        return found if np.isnan(default) else np.where(np.isnan(found), default, found)

    def ints(self, name: str, default: int = -1) -> Array:
        """int64; null is the default."""
        column = self._columns.get(name)
        if isinstance(column, np.ndarray) and column.dtype == np.int64 and len(column) == self.n:
            return column
        if not isinstance(column, (list, np.ndarray)):
            return np.full(self.n, default)
        found = self._numbers(name)
        if found.dtype.kind == "i":
            return found
        whole, n_out = whole_numbers(np.ascontiguousarray(found, np.float64), default, MAX_INTEGER)
        self._bad.add(f"{self.path}.{name}", n_out)
        return whole

    def index(self, name: str, size: int, used: Array | None = None) -> Array:
        """int64 indices into a table of that size; -1 is none. used: the rows that have one, where that is known."""
        found = self.ints(name) if used is None else np.where(used, self.ints(name), -1)
        if n_bad := count_outside(np.ascontiguousarray(found), size):
            self._bad.add(f"{self.path}.{name}", n_bad)
            found = np.where((found >= size) | (found < -1), -1, found)
        return found

    def flagged(self, flag: int) -> Array | None:
        """Returns the rows with a flag; None: the table has no flags."""
        return (self.ints("flags", 0) & flag) > 0 if "flags" in self else None

    def bools(self, name: str) -> Array:
        return self.ints(name, 0) > 0

    def bad(self, name: str, count: int) -> None:
        """Counts rows whose value in a column cannot be used."""
        self._bad.add(f"{self.path}.{name}", count)

    def _numbers(self, name: str) -> Array:
        """Returns int64 where all are whole, else float64 with NaN for what is none."""
        column = self._columns[name] if name in self else None
        if not isinstance(column, (list, np.ndarray)):
            return np.full(self.n, np.nan)
        numbers = column if isinstance(column, np.ndarray) else self._parsed(name, column)
        if len(numbers) == self.n:
            return numbers.astype(np.int64) if numbers.dtype.kind in "iub" and numbers.dtype != np.int64 else numbers
        self._bad.add(f"{self.path}.{name}", abs(len(numbers) - self.n))
        missing = np.full(max(self.n - len(numbers), 0), np.nan)
        return np.concatenate((numbers[: self.n].astype(np.float64), missing))

    def _parsed(self, name: str, column: list[Any]) -> Array:
        kinds = set(map(type, column))
        if kinds <= {int, bool}:
            try:
                return np.array(column, np.int64)
            except OverflowError:
                pass
        if not kinds <= {int, bool, float, type(None)}:
            self._bad.add(f"{self.path}.{name}", sum(not _is_number(value) and value is not None for value in column))
            column = [value if _is_number(value) else None for value in column]
        try:
            return np.array(column, np.float64)
        except OverflowError:
            return np.array([_finite(value) for value in column], np.float64)


def with_none(values: Array, none: int = -1) -> Array:
    """Returns the values and, behind them, what the index -1, which is none, has."""
    found = np.empty(len(values) + 1, values.dtype)
    found[:-1], found[-1] = values, none
    return found


def text_of(value: Any) -> str:
    """Returns a text; "" for another value."""
    return value if isinstance(value, str) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _finite(value: Any) -> Any:
    try:
        return None if value is None else float(value)
    except OverflowError:
        return None


def rows_to_columns(table: Any, keep: Callable[[str], bool] = lambda _: True) -> Any:
    """Returns the columns of a table of Gecko's: {"schema": {name: place}, "data": rows}. Another table stays."""
    if not isinstance(table, dict) or not isinstance(table.get("data"), list):
        return table
    schema = table.get("schema")
    if not isinstance(schema, dict):
        return table
    rows = [row if isinstance(row, list) else [] for row in table["data"]]
    columns: dict[str, Any] = {}
    for name, place in schema.items():
        if isinstance(place, int) and not isinstance(place, bool) and 0 <= place < 64 and keep(name):
            columns[name] = [row[place] if len(row) > place else None for row in rows]
    return columns | {"length": len(rows)}
