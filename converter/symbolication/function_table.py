"""Functions as columns, with their rows of lines and inlined calls: how those that are many go to a writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from traceferry.model import Array
from traceferry.symbolication.interface import Function, Inline

BYTES_64 = 1 << 64
LINE_MASK = (1 << 32) - 1


class Texts:
    """Texts by number, each once; -1 is an empty one."""

    def __init__(self) -> None:
        self.held: list[str] = []
        self._numbers: dict[str, int] = {"": -1}

    def number(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.held)
            self.held.append(text)
        return found


class Rows(NamedTuple):
    """Rows of lines. address: uint64; source: int32, of texts; line: uint32."""

    address: Array
    source: Array
    line: Array


class Calls(NamedTuple):
    """Inlined calls, each in front of those that are inlined into it. name, source: int32, of texts; line: uint32;
    depth: int32, 1 of those inlined directly into a function, of others one more than of that around them. The ranges
    of the j-th call are first_range[j]:first_range[j + 1] (int64), each [begin, end): uint64; an end of 0 is 2^64."""

    name: Array
    source: Array
    line: Array
    depth: Array
    first_range: Array
    begin: Array
    end: Array


@dataclass(frozen=True)
class FunctionTable:
    """n functions. texts: what names and sources are numbers of. name: int32 [n]; start, size: uint64; the rows of the
    i-th are first_row[i]:end_row[i], its calls first_call[i]:end_call[i] (int64)."""

    texts: Texts
    name: Array
    start: Array
    size: Array
    first_row: Array
    end_row: Array
    first_call: Array
    end_call: Array
    rows: Rows
    calls: Calls

    def __len__(self) -> int:
        return len(self.name)

    def taken(self, which: Array) -> FunctionTable:
        """Returns some of the functions, by number or mask, with the rows and calls of all."""
        name, start, size = self.name[which], self.start[which], self.size[which]
        first_row, end_row = self.first_row[which], self.end_row[which]
        first_call, end_call = self.first_call[which], self.end_call[which]
        return FunctionTable(
            self.texts, name, start, size, first_row, end_row, first_call, end_call, self.rows, self.calls
        )  # fmt: skip

    def with_texts_of(self, other: FunctionTable) -> FunctionTable:
        """Returns the same functions, with texts that this table and another then have in common."""
        number = np.array([*(other.texts.number(text) for text in self.texts.held), -1], np.int32)
        calls = self.calls._replace(name=number[self.calls.name], source=number[self.calls.source])
        rows = self.rows._replace(source=number[self.rows.source])
        return replace(self, texts=other.texts, name=number[self.name], rows=rows, calls=calls)

    def functions(self) -> Iterator[Function]:
        """Yields the functions."""
        texts = [*self.texts.held, ""]  # index -1
        rows, calls = self.rows, self.calls
        columns = (self.name, self.start, self.size, self.first_row, self.end_row, self.first_call, self.end_call)
        for name, start, size, row, end_row, call, end_call in zip(*(c.tolist() for c in columns), strict=True):
            of_rows = (rows.address[row:end_row].tolist(), rows.source[row:end_row].tolist())
            lines = rows.line[row:end_row].tolist()
            found = [(at, texts[source], line) for at, source, line in zip(*of_rows, lines, strict=True)]
            inlines = _inlines(texts, calls, call, end_call)
            yield Function(texts[name], start, size, found or (), inlines)


def _inlines(texts: Sequence[str], calls: Calls, first: int, end: int) -> tuple[Inline, ...]:
    """Returns a function's calls as trees. Those of a call are known before it when they are gone through backwards."""
    if first == end:
        return ()
    columns = (calls.name, calls.source, calls.line, calls.depth)
    names, sources, lines, depths = (column[first:end].tolist() for column in columns)
    bounds = calls.first_range[first : end + 1].tolist()
    begins, ends = calls.begin[bounds[0] : bounds[-1]].tolist(), calls.end[bounds[0] : bounds[-1]].tolist()
    # Of each depth, those that wait for the call around them, the last first.
    waiting: list[list[Inline]] = [[] for _ in range(max(depths) + 2)]
    for nth in range(end - first - 1, -1, -1):
        some = slice(bounds[nth] - bounds[0], bounds[nth + 1] - bounds[0])
        ranges = tuple((begin, end or BYTES_64) for begin, end in zip(begins[some], ends[some], strict=True))
        depth = depths[nth]
        children = tuple(reversed(waiting[depth + 1]))
        waiting[depth + 1] = []
        waiting[depth].append(Inline(texts[names[nth]], ranges, texts[sources[nth]], lines[nth], children))
    return tuple(reversed(waiting[1]))


def joined(tables: Sequence[FunctionTable]) -> FunctionTable:
    """Returns the functions of tables, of which there is at least one, and all have the same texts."""

    def of_functions(column: str, counted: Sequence[int] | None = None) -> Array:
        parts = [getattr(table, column) for table in tables]
        if counted is not None:
            parts = [part + np.int64(before) for part, before in zip(parts, before_each(counted), strict=True)]
        return np.concatenate(parts)

    if len(tables) == 1:
        return tables[0]
    n_rows, n_calls = [len(t.rows.address) for t in tables], [len(t.calls.name) for t in tables]
    n_ranges = [len(t.calls.begin) for t in tables]
    rows = Rows(*(np.concatenate([getattr(t.rows, c) for t in tables]) for c in ("address", "source", "line")))
    name, source, line, depth, begin, end = (
        np.concatenate([getattr(t.calls, c) for t in tables])
        for c in ("name", "source", "line", "depth", "begin", "end")
    )
    bounds = [t.calls.first_range[1:] + n for t, n in zip(tables, before_each(n_ranges), strict=True)]
    first_range = np.concatenate([np.zeros(1, np.int64), *bounds])
    return FunctionTable(
        tables[0].texts, of_functions("name"), of_functions("start"), of_functions("size"),
        of_functions("first_row", n_rows), of_functions("end_row", n_rows),
        of_functions("first_call", n_calls), of_functions("end_call", n_calls),
        rows, Calls(name, source, line, depth, first_range, begin, end),
    )  # fmt: skip


def before_each(counts: Sequence[int]) -> list[int]:
    """Returns how many there are before each part, of which these are the counts."""
    return [0, *np.cumsum(counts[:-1], dtype=np.int64).tolist()] if len(counts) else []


def without_lines(texts: Texts, name: Array, start: Array, size: Array) -> FunctionTable:
    """Returns functions of which only these columns are known."""
    nothing = np.zeros(len(name), np.int64)
    numbers, texts_of, lines = np.zeros(0, np.uint64), np.zeros(0, np.int32), np.zeros(0, np.uint32)
    calls = Calls(texts_of, texts_of, lines, texts_of, np.zeros(1, np.int64), numbers, numbers)
    rows = Rows(numbers, texts_of, lines)
    return FunctionTable(
        texts, name.astype(np.int32), start.astype(np.uint64), size.astype(np.uint64),
        nothing, nothing, nothing, nothing, rows, calls,
    )  # fmt: skip


def table_of(functions: Iterable[Function], texts: Texts | None = None) -> FunctionTable:
    """Returns functions as columns. Addresses and sizes are those of 64 bits; of a line there are 32. What is not of
    64 bits is left out of rows and ranges."""
    texts = Texts() if texts is None else texts
    number = texts.number
    names, starts, sizes, row_ends, call_ends, range_ends = [], [], [], [0], [0], [0]
    rows: list[tuple[int, int, int]] = []
    calls: list[tuple[int, int, int, int]] = []
    ranges: list[tuple[int, int]] = []
    for function in functions:
        names.append(number(function.name))
        starts.append(function.start)
        sizes.append(function.size)
        rows += [(at, number(source), line & LINE_MASK) for at, source, line in function.lines if 0 <= at < BYTES_64]
        pending = [(call, 1) for call in reversed(function.inlines)]
        while pending:
            call, depth = pending.pop()
            calls.append((number(call.name), number(call.call_source), call.call_line & LINE_MASK, depth))
            ranges += [(begin, end % BYTES_64) for begin, end in call.ranges if 0 <= begin < end <= BYTES_64]
            range_ends.append(len(ranges))
            pending += [(child, depth + 1) for child in reversed(call.children)]
        row_ends.append(len(rows))
        call_ends.append(len(calls))
    address, source, line = zip(*rows, strict=True) if rows else ((), (), ())
    columns = zip(*calls, strict=True) if calls else ((), (), (), ())
    call_name, call_source, call_line, depth_of = columns
    begin_of, end_of = zip(*ranges, strict=True) if ranges else ((), ())
    of_rows, of_calls = np.array(row_ends, np.int64), np.array(call_ends, np.int64)
    return FunctionTable(
        texts, np.array(names, np.int32), np.array(starts, np.uint64), np.array(sizes, np.uint64),
        of_rows[:-1], of_rows[1:], of_calls[:-1], of_calls[1:],
        Rows(np.array(address, np.uint64), np.array(source, np.int32), np.array(line, np.uint32)),
        Calls(
            np.array(call_name, np.int32), np.array(call_source, np.int32), np.array(call_line, np.uint32),
            np.array(depth_of, np.int32), np.array(range_ends, np.int64), np.array(begin_of, np.uint64),
            np.array(end_of, np.uint64),
        ),
    )  # fmt: skip


def groups_of(*parts: tuple[Array, Array]) -> Array:
    """Returns a number for each pair of (start, size), the same for equal ones: int64."""
    start, size = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((size, start))
    is_new = (np.diff(start[order]) > 0) | (np.diff(size[order]) > 0)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(np.append(False, is_new))[: len(order)]
    return group
