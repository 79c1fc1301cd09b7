"""Kernels of profiles of stacks: against a few lines of Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.importers.collapsed._lines import split_lines
from traceferry.importers.cpuprofile._ticks import stacks_in_turn
from traceferry.importers.firefox._stacks import count_outside, counts_of, narrowed, rounded, whole_numbers
from traceferry.native.rows import RowTable
from traceferry.native.texts import TextTable, joined, measured

TEXTS = st.lists(st.binary(max_size=20) | st.sampled_from([b"main", b"work", b"a" * 16, b"a" * 17]), max_size=600)


def places(texts: list[bytes]) -> tuple[bytes, np.ndarray, np.ndarray]:
    sizes = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(sizes)
    return b"".join(texts), ends - sizes, ends


@given(TEXTS, TEXTS)
def test_texts_are_numbered_once(first: list[bytes], second: list[bytes]) -> None:
    data, begins, ends = places(first + second)
    table = TextTable(data)
    n = len(first)
    found = [*table.intern(begins[:n], ends[:n]).tolist(), *table.intern(begins[n:], ends[n:]).tolist()]
    numbers = {text: nth for nth, text in enumerate(dict.fromkeys(first + second))}
    assert found == [numbers[text] for text in first + second]
    held = [data[begin:end] for begin, end in zip(table.begin.tolist(), table.end.tolist(), strict=True)]
    assert (held, len(table)) == ([*numbers], len(numbers))


@given(TEXTS)
def test_texts_that_end_with_a_zero_are_numbered_once(texts: list[bytes]) -> None:
    texts = [text.replace(b"\0", b"0") for text in texts]
    table = TextTable(b"".join(text + b"\0" for text in texts))
    numbers = {text: nth for nth, text in enumerate(dict.fromkeys(texts))}
    assert table.intern_terminated(len(texts)).tolist() == [numbers[text] for text in texts]


@pytest.mark.parametrize(("data", "n"), [(b"a\0b", 2), (b"a\0b\0", 1), (b"a\0", 2), (b"", 1), (b"a", 0)])
def test_texts_that_end_with_a_zero_are_as_many_as_expected(data: bytes, n: int) -> None:
    with pytest.raises(ValueError, match="number of texts"):
        TextTable(data).intern_terminated(n)


@given(TEXTS)
def test_texts_put_together(texts: list[bytes]) -> None:
    data, begins, ends = places(texts)
    assert joined(data, begins, ends, b"[,]").tobytes() == b"[" + b",".join(texts) + b"]"


NAMES = st.lists(st.text("_a@\0", max_size=12).map(str.encode), max_size=60)


@given(NAMES, st.integers(0, 9))
def test_texts_are_as_long_as_they_reach(names: list[bytes], most: int) -> None:
    """Up to a zero, a version or the end of all of them."""
    data, begins, ends = places(names)
    begins = np.append(begins, ends)
    length, n_underscores = measured(data, begins, ord("@"), most, ord("_"))
    shown = [re.split(b"[@\0]", data[begin:])[0][:most] for begin in begins.tolist()]
    assert length.tolist() == [len(text) for text in shown]
    assert n_underscores.tolist() == [len(text) - len(text.lstrip(b"_")) for text in shown]


def expected(text: bytes) -> list[tuple[int, bytes, list[bytes]]]:
    """Returns where each line begins, its number, and its names."""
    found, at = [], 0
    for line in text.split(b"\n"):
        begin, at = at, at + len(line) + 1
        line = line.strip()
        if not line or line.startswith((b"#", b"//")):
            continue
        *path, number = re.split(rb"[ \t\r\v\f](?=[^ \t\r\v\f]*$)", line)
        names = re.sub(rb"^[; \t\r\v\f]+|[; \t\r\v\f]+$", b"", path[0] if path else b"")
        found.append((begin, number.partition(b",")[0], names.split(b";") if names else []))
    return found


LINES = st.lists(
    st.sampled_from([b"a", b"b c", b";", b" ", b"\t", b"12", b"1.5", b"\n", b"\r\n", b"#", b"//", b",3", b"\0"])
)


@given(LINES.map(b"".join), st.integers(1, 40))
def test_lines_are_split(text: bytes, most: int) -> None:
    at, found = 0, []
    while at >= 0:
        at, line, numbers, names = split_lines(text, at, most)
        texts = [text[begin:end] for begin, end in names.tolist()]
        first = 0
        for (begin, number, end_of_number, end), value in zip(line.tolist(), numbers.tolist(), strict=True):
            said = text[number:end_of_number]
            assert value == (float(said) if re.fullmatch(rb"\d{1,15}", said) else -1)
            found.append((begin, said, texts[first:end]))
            first = end
        assert first == len(texts)
    assert found == expected(text)


@given(st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=5), st.data())
def test_lines_of_ticks_are_used_up_in_turn(ticks: list[list[int]], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(-1, len(ticks) - 1), max_size=30))
    first = np.cumsum([0, *(len(each) for each in ticks)])
    flat = [n for each in ticks for n in each]
    left = [
        [100 + int(begin) + nth for nth, n in enumerate(each) for _ in range(n)]
        for begin, each in zip(first, ticks, strict=False)
    ]
    wanted = [-1 if row < 0 else left[row].pop(0) if left[row] else row for row in rows]
    found = stacks_in_turn(
        np.array(rows, np.int64), np.arange(len(ticks), dtype=np.int32), first, np.array(flat, np.int64),
        np.arange(100, 100 + len(flat), dtype=np.int32),
    )  # fmt: skip
    assert found.tolist() == wanted


def test_what_does_not_fit_is_refused() -> None:
    one = np.array([0], np.int64)
    with pytest.raises(ValueError, match="outside"):
        TextTable(b"ab").intern(one, one + 3)
    with pytest.raises(ValueError, match="outside"):
        joined(b"ab", one + 2, one, b"[,]")
    with pytest.raises(ValueError, match="outside"):
        measured(b"ab", one + 3, 0, 9, 0)
    with pytest.raises(ValueError, match="marks"):
        joined(b"ab", one, one, b"[")
    with pytest.raises(ValueError, match="outside"):
        split_lines(b"a 1", -1, 10)
    empty = np.empty(0, np.int32)
    with pytest.raises(ValueError, match="no such node"):
        stacks_in_turn(one, empty, one, np.empty(0, np.int64), empty)
    with pytest.raises(ValueError, match="order"):
        stacks_in_turn(one, np.zeros(2, np.int32), np.array([0, 2, 1]), one, np.zeros(1, np.int32))


ROWS = st.lists(st.tuples(*[st.integers(-3, 3) | st.integers(-(1 << 63), (1 << 63) - 1)] * 3), max_size=600)


@given(ROWS, ROWS)
def test_rows_are_numbered_once(first: list[tuple[int, ...]], second: list[tuple[int, ...]]) -> None:
    table = RowTable(3)
    parts = (np.array(rows, np.int64).reshape(-1, 3) for rows in (first, second))
    found = [number for part in parts for number in table.intern(part).tolist()]
    numbers = {row: nth for nth, row in enumerate(dict.fromkeys(first + second))}
    assert found == [numbers[row] for row in first + second]
    assert (table.rows.tolist(), len(table)) == ([list(row) for row in numbers], len(numbers))


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="another width"):
        RowTable(2).intern(np.zeros((1, 3), np.int64))


NUMBERS = st.lists(st.floats(width=64) | st.sampled_from([0.5, -0.0, 2.0**62, -(2.0**62), 2.0**62 - 512]), max_size=50)


@given(NUMBERS)
def test_numbers_become_whole_ones(values: list[float]) -> None:
    whole, n_out = whole_numbers(np.array(values, np.float64), -7, 2.0**62)
    assert whole.tolist() == [int(value) if abs(value) < 2.0**62 else -7 for value in values]
    assert n_out == sum(abs(value) >= 2.0**62 for value in values)


@given(st.lists(st.integers(-3, 12), max_size=50), st.integers(0, 10))
def test_indices_outside_of_a_table_are_counted(indices: list[int], size: int) -> None:
    assert count_outside(np.array(indices, np.int64), size) == sum(not -1 <= index < size for index in indices)


@given(st.lists(st.floats(allow_nan=False, width=64)), st.sampled_from([1.0, 1e6]))
def test_values_are_rounded_and_limited(values: list[float], scale: float) -> None:
    found = rounded(np.array(values, np.float64), scale, 2.0**61)
    assert found.tolist() == [int(np.clip(np.rint(value * scale), -(2.0**61), 2.0**61)) for value in values]


@pytest.mark.parametrize(
    ("values", "kept", "dtype"),
    [
        ([], [], "i2"), ([7, 7], [7], "i2"), ([-(1 << 15), (1 << 15) - 1], None, "i2"), ([0, 1 << 15], None, "i4"),
        ([0, -(1 << 15) - 1], None, "i4"), ([0, (1 << 31) - 1], None, "i4"), ([0, 1 << 31], None, "i8"),
        ([-(1 << 31) - 1, 0], None, "i8"), ([1 << 40, 1 << 40], [1 << 40], "i8"),
    ],
)  # fmt: skip
def test_numbers_are_kept_in_the_smallest_type(values: list[int], kept: list[int] | None, dtype: str) -> None:
    found = narrowed(np.array(values, np.int64))
    assert (found.tolist(), found.dtype) == (values if kept is None else kept, np.dtype(dtype))


@given(st.lists(st.tuples(st.integers(-2, 6), st.integers(-9, 9))))
def test_rows_are_counted_with_their_weights(pairs: list[tuple[int, int]]) -> None:
    rows, weights = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    counts, sums = counts_of(rows, weights, 5)
    assert counts.tolist() == [sum(row == one for row, _ in pairs) for one in range(5)]
    assert sums.tolist() == [sum(weight for row, weight in pairs if row == one) for one in range(5)]
