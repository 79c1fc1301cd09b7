"""Map: rows of the trace by what the profile says of them. Threads have tables of their own, which say the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.model import Array, TraceBuilder
from traceferry.model.tables import GrowingTable
from traceferry.native.arrays import grown
from traceferry.native.rows import RowTable
from traceferry.native.values import interned

ADDRESS = compiled_later(r"0x[0-9a-f]{1,16}")
UNKNOWN = "(unknown)"


class _Known:
    """Rows of `width` whole numbers that were met, and what the trace has for each: threads share most of theirs."""

    def __init__(self, width: int) -> None:
        self._met = RowTable(width)
        self._found = np.empty(0, np.int32)  # for each that was met

    def of(self, values: Array, add: Callable[[Array], list[int]]) -> Array:
        """Returns what the trace has for each of these rows (int64), int32. add: makes it for rows that are new."""
        n_known = len(self._met)
        numbers = self._met.intern(values)
        if len(self._met) > n_known:
            self._found = grown(self._found, len(self._met))
            self._found[n_known : len(self._met)] = add(self._met.rows[n_known:])
        return self._found[numbers]


class RowMemo:
    """The rows of a table of the trace, by the values of some of its columns."""

    def __init__(self, table: GrowingTable, *columns: str) -> None:
        self._table, self._columns = table, columns
        self._known = _Known(len(columns))

    def rows(self, n: int, columns: dict[str, Array | int]) -> Array:
        """Returns the rows with these values, int32. columns: n values, or one for all."""
        values = np.empty((n, len(columns)), np.int64)
        for nth, name in enumerate(self._columns):
            values[:, nth] = columns[name]
        return self._known.of(values, self._added)

    def _added(self, rows: Array) -> list[int]:
        return self._table.intern_all(len(rows), **dict(zip(self._columns, rows.T.tolist(), strict=True)))


class FuncNames:
    """The names of functions, as strings of the trace. Those that are only addresses are called after their library,
    as libc.so.6+0x1234."""

    PLAIN = -1  # in the place of library and address, where the name is more than an address

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        self._numbers: dict[str, int] = {}  # of each name
        self._texts: list[str] = []
        self._are_addresses = np.zeros(0, bool)
        self._known = _Known(3)  # by number, library and address

    def rows(self, names: list[str], lib: Array, begin: Array) -> tuple[Array, Array]:
        """Returns (the trace's string, int32; whether it is only an address) of each function. lib: rows of the
        trace's, -1 is none; begin: their addresses."""
        n_known = len(self._numbers)
        number = interned(names, self._numbers)
        if len(self._numbers) > n_known:
            self._take_in(len(self._numbers) - n_known)
        is_address = self._are_addresses[number] & (lib >= 0)
        values = np.full((len(names), 3), self.PLAIN)
        values[:, 0] = number
        values[is_address, 1], values[is_address, 2] = lib[is_address], begin[is_address]
        return self._known.of(values, self._added), is_address

    def _take_in(self, n_new: int) -> None:
        """Takes note of the latest names."""
        texts = list(islice(reversed(self._numbers), n_new))[::-1]
        is_address = [text.startswith("0x") and ADDRESS.fullmatch(text) is not None for text in texts]
        n_known = len(self._texts)
        self._texts += texts
        self._are_addresses = grown(self._are_addresses, len(self._texts))
        self._are_addresses[n_known : len(self._texts)] = is_address

    def _added(self, rows: Array) -> list[int]:
        return [self._string(*row) for row in rows.tolist()]

    def _string(self, number: int, lib: int, begin: int) -> int:
        strings = self._trace.strings
        if lib == self.PLAIN:
            return strings.intern(self._texts[number] or UNKNOWN)
        return strings.intern(f"{strings[int(self._trace.libs['name'][lib])]}+{begin:#x}")
