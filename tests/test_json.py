"""Columns of numbers as JSON, against the json module and Python's exact decimals."""

import json
from collections.abc import Iterator
from decimal import Decimal
from io import BytesIO
from itertools import accumulate
from math import ulp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.exporters.json import stream
from traceferry.exporters.json._numbers import Differences, NumberText
from traceferry.exporters.json.stream import Column, JsonWriter
from traceferry.files.output import Output
from traceferry.model import Array

LONGEST = 2**63 - 1
# Numbers of every length: a power of ten, and one less or more.
OF_ALL_LENGTHS = [10**n + more for n in range(19) for more in (-1, 0, 1)]
INTS = st.lists(st.integers(-(2**31), 2**31 - 1) | st.sampled_from([n for n in OF_ALL_LENGTHS if n < 2**31]))
LONGS = st.lists(st.integers(-LONGEST - 1, LONGEST) | st.sampled_from(OF_ALL_LENGTHS) | st.integers(-5, 2_000_000))
PIECES = st.integers(1, 7)


@pytest.fixture(autouse=True, scope="module")
def short_pieces() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stream, "PIECE", 3)
        patched.setattr(stream, "AT_ONCE", 3)
        yield


def written(method: str, *arguments: Any) -> str:
    file = BytesIO()
    out = Output(file, gzip=False)
    getattr(JsonWriter(out), method)("", *arguments)
    out.finish()
    return file.getvalue().decode()


def in_pieces(column: Array, size: int) -> Column:
    return column if size == 7 else [column[at : at + size] for at in range(0, len(column), size)]


def in_ms(ns: int) -> Decimal:
    return Decimal(ns).scaleb(-6)


@given(INTS, PIECES)
def test_integers(values: list[int], size: int) -> None:
    text = written("ints", in_pieces(np.array(values, np.int32), size))
    assert text == json.dumps([None if v < 0 else v for v in values], separators=(",", ":"))


@given(LONGS, st.sampled_from([-LONGEST - 1, -1, 0]), PIECES)
def test_long_integers(values: list[int], null: int, size: int) -> None:
    text = written("longs", in_pieces(np.array(values, np.int64), size), null)
    assert text == json.dumps([None if v == null else v for v in values], separators=(",", ":"))


@given(LONGS, PIECES)
def test_nanoseconds_as_exact_milliseconds(values: list[int], size: int) -> None:
    text = written("millis", in_pieces(np.array(values, np.int64), size))
    assert json.loads(text, parse_float=Decimal) == [None if v < 0 else in_ms(v) for v in values]
    # As few characters as there can be.
    assert not any(number.endswith(("0", ".")) for number in text[1:-1].split(",") if "." in number)


@given(st.lists(st.integers(0, 2**40) | st.sampled_from([0, 1, 40, 999_999, 2**50])), PIECES)
def test_differences_of_times(values: list[int], size: int) -> None:
    """Each to be rounded to ns; and their sums as doubles are not off by more than half a ns."""
    found = json.loads(written("differences", in_pieces(np.array(values, np.int64), size)), parse_float=Decimal)
    assert [round(Decimal(ms) * 10**6) for ms in found] == values
    for at, ns in zip(accumulate(map(float, found)), accumulate(values), strict=True):
        assert abs(Decimal(at) - in_ms(ns)) <= in_ms(1) / 2 + Decimal(ulp(at))


def test_a_negative_difference_is_0() -> None:
    values = np.array([5, -7, -(2**63), 3])
    assert written("differences", values) == "[0.000005,0,0,0.000003]"
    assert np.array_equal(Differences().millis(values), [5e-6, 0, 0, 3e-6])


@pytest.mark.parametrize("first", [0, 3600 * 10**9, 86_400 * 10**9])
def test_a_sum_of_many_differences_is_exact_after_a_day(first: int) -> None:
    """Without corrections a million of them are 16 ns off after an hour, and 5,000 ns after a day."""
    values = np.full(1_000_000, 40)
    values[0] = first
    sums = np.cumsum(np.array(json.loads(written("differences", values))))
    assert np.abs(sums * 1e6 - np.cumsum(values)).max() <= 0.5
    assert np.array_equal(sums, np.cumsum(Differences().millis(values)))


@given(INTS, st.data())
def test_rows_of_samples(stacks: list[int], data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(-5, LONGEST), min_size=len(stacks), max_size=len(stacks)))
    text = written("sample_rows", [(np.array(stacks, np.int32), np.array(times, np.int64))])
    wanted = [[None if s < 0 else s, in_ms(max(t, 0)), 0] for s, t in zip(stacks, times, strict=True)]
    assert json.loads(text, parse_float=Decimal) == wanted


def test_columns_of_different_lengths() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        written("sample_rows", [(np.zeros(2, np.int32), np.zeros(1, np.int64))])


@given(st.lists(st.text(max_size=3), min_size=1), st.data(), PIECES)
def test_texts(texts: list[str], data: st.DataObject, size: int) -> None:
    nth = data.draw(st.lists(st.integers(-1, len(texts) - 1)))
    text = written("texts", in_pieces(np.array(nth, np.int32), size), texts)
    assert json.loads(text) == ["" if n < 0 else texts[n] for n in nth]


def test_texts_that_come_while_others_are_written() -> None:
    texts = ["a"]

    def pieces() -> Iterator[Array]:
        for nth in range(100):
            texts.append(f"text {nth}")
            yield np.array([0, nth + 1, nth // 2], np.int32)

    found = json.loads(written("texts", pieces(), texts))
    assert found == [text for nth in range(100) for text in ("a", f"text {nth}", texts[nth // 2])]


@pytest.mark.parametrize("nth", [-1, 2])
def test_a_text_that_there_is_not(nth: int) -> None:
    with pytest.raises(ValueError, match="no such text"):
        NumberText().texts(np.array([nth], np.int32), np.zeros(4, np.uint8), np.array([0, 2, 4]))


@pytest.mark.parametrize("text_at", [[0, 5], [-1, 2], [3, 2]])
def test_a_text_that_is_not_in_the_texts(text_at: list[int]) -> None:
    with pytest.raises(ValueError, match="beyond the end"):
        NumberText().texts(np.zeros(1, np.int32), np.zeros(4, np.uint8), np.array(text_at))


@given(st.text(max_size=3), st.integers(0, 10))
def test_a_value_that_is_repeated(value: str, n: int) -> None:
    assert json.loads(written("repeated", value, n)) == [value] * n
