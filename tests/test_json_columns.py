"""Lists of numbers in JSON text as arrays: the same numbers as a parser gives, and the same refusals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry import FormatError
from traceferry.files.json_text import JsonText, Range

NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), st.none(), st.booleans(),
    st.decimals(-10**6, 10**6, places=6).map(float),
)  # fmt: skip
TEXTS = st.text(max_size=4)
COLUMNS = st.one_of(st.lists(NUMBERS, max_size=6), st.lists(st.one_of(NUMBERS, TEXTS, st.lists(NUMBERS, max_size=2))))
VALUES = st.one_of(NUMBERS, TEXTS, st.lists(NUMBERS, max_size=3), st.dictionaries(TEXTS, COLUMNS, max_size=4))


def tables(text: str | bytes, *left_out: bytes) -> Any:
    data = memoryview(text.encode() if isinstance(text, str) else text)
    source = JsonText(data)
    return source.tables(source.root(), frozenset(left_out))


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [None if number != number else number for number in value.tolist()]
    return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.sampled_from([None, 1]))
@examples(300)
def test_numbers_are_those_of_a_parser(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert plain(tables(text)) == orjson.loads(text)


LONG = st.lists(NUMBERS, min_size=40).flatmap(
    lambda numbers: st.sampled_from([[], ["]"], ['"'], [[1]], [{"a": 1}], ["[{"]]).map(lambda last: numbers + last)
)


@given(st.dictionaries(TEXTS, LONG, min_size=1, max_size=2), st.sampled_from([None, 1]), st.data())
@examples(200)
def test_long_lists_end_where_they_end(value: dict[str, Any], indent: int | None, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert JsonText(memoryview(text)).root() == (0, len(text))
    assert plain(tables(text)) == orjson.loads(text)
    cut = JsonText(memoryview(text[: data.draw(st.integers(0, len(text) - 1))]))
    with pytest.raises(FormatError, match="ends too early"):
        cut.root()


def test_a_bracket_of_another_kind_is_refused_in_a_long_list() -> None:
    with pytest.raises(FormatError, match="no JSON text"):
        JsonText(memoryview(b'{"a": [' + b"1," * 50 + b"2}, 3]}")).root()


def test_lists_of_numbers_are_arrays() -> None:
    found = tables('{"a": {"n": [1, -2, 999999999999999999], "f": [1, 2.5, null, -1e-3, 0.1], "t": ["x", 1], "e": []}}')
    assert (found["a"]["n"].dtype, found["a"]["n"].tolist()) == (np.int64, [1, -2, 999999999999999999])
    assert found["a"]["f"].dtype == np.float64
    np.testing.assert_array_equal(found["a"]["f"], [1, 2.5, np.nan, -1e-3, 0.1])
    assert (found["a"]["t"], found["a"]["e"]) == (["x", 1], [])
    assert tables('{"a": [1, 2], "b": {"c": {"d": [1]}}}') == {"a": [1, 2], "b": {"c": {"d": [1]}}}


def test_members_that_are_left_out_are_none() -> None:
    text = '{"a" : {"n": [1], "b": 1}, "b": {"n": [2], "x": "\\"]"}, "c": "b", "d": 4}'
    assert plain(tables(text, b'"b"')) == {"a": {"n": [1], "b": 1}, "b": None, "c": "b", "d": 4}


@pytest.mark.parametrize(
    "column",
    ["[01]", "[1.]", "[.5]", "[1e]", "[-]", "[1,,2]", "[1,]", "[,1]", "[1 2]", "[+1]", "[nul]", "[1;2]", "[0x1]",
     "[truefalse]", "[1}"],
)  # fmt: skip
def test_what_is_no_number_is_refused_where_it_is(column: str) -> None:
    with pytest.raises(FormatError) as caught:
        tables('{"a": {"good": [1, 2],\n "n": ' + column + "}}")
    assert "line 2" in str(caught.value)


@pytest.mark.parametrize("column", ["[NaN, 1]", "[Infinity]", "[1e999, 1]"])
def test_numbers_that_are_not_finite_are_those_of_the_lenient_parser(column: str) -> None:
    found = plain(tables('{"a": {"n": ' + column + "}}"))
    assert found["a"]["n"][0] in (None, float("inf"))


# ---------------------------------------------------------------- lists, lists of lists, lists of objects


def opened(value: Any, indent: int | None) -> tuple[JsonText, Any]:
    text = JsonText(memoryview(json.dumps(value, indent=indent).encode()))
    return text, text.root()


@given(st.lists(st.one_of(NUMBERS, TEXTS)), st.sampled_from([None, 1]))
@examples(200)
def test_numbers_of_a_list(values: list[Any], indent: int | None) -> None:
    text, root = opened(values, indent)
    expected = [float(one) if isinstance(one, (int, float)) else np.nan for one in values]
    np.testing.assert_array_equal(text.numbers(root).astype(np.float64), np.array(expected, np.float64))


@given(st.lists(st.one_of(st.lists(st.integers(0, 9)), st.lists(st.one_of(st.integers(0, 9), VALUES)), TEXTS)))
@examples(200)
def test_lists_of_a_list(values: list[Any]) -> None:
    text, root = opened(values, None)
    flat, ends = text.lists(root)
    begins = [0, *ends.tolist()]
    found = [flat[begin:end].tolist() for begin, end in zip(begins, ends.tolist(), strict=False)]
    # What is no whole number is -1; true is 1 or -1.
    clean = [[one if type(one) is int and 0 <= one < 1 << 60 else -1 for one in held] for held in found]
    expected = [
        [one if type(one) is int and 0 <= one < 1 << 60 else -1 for one in held] if isinstance(held, list) else []
        for held in values
    ]
    if not any(isinstance(one, bool) for held in values if isinstance(held, list) for one in held):
        assert clean == expected
    assert [len(held) for held in found] == [len(held) for held in expected]


@given(
    st.lists(st.one_of(st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES), NUMBERS, TEXTS)),
    st.sampled_from([None, 1]),
)
@examples(200)
def test_members_of_objects_in_a_list(values: list[Any], indent: int | None) -> None:
    text, root = opened(values, indent)
    numbers, begins, ends = text.rows(root, "a", "b")
    assert len(numbers) == len(values)
    for nth, value in enumerate(values):
        for column, key in enumerate(["a", "b"]):
            member = value.get(key) if isinstance(value, dict) else None
            if not isinstance(value, dict) or key not in value:
                assert begins[nth, column] == ends[nth, column] == -1
                assert np.isnan(numbers[nth, column])
                continue
            assert json.loads(bytes(text.data[begins[nth, column] : ends[nth, column]])) == member
            is_number = isinstance(member, (int, float)) and not isinstance(member, bool)
            if is_number and abs(member) < 1e15:
                assert numbers[nth, column] == member
            elif not is_number:
                assert np.isnan(numbers[nth, column])


def test_where_a_list_is_cut() -> None:
    """Within an element, between two, and behind the last one: at each of its bytes."""
    whole = b' [{"a": ["]"]}, [1], "x,\\"",]  '
    ends = [2, 14, 19, 27]
    for cut in range(2, whole.index(b",]") + 2):
        end, at = JsonText(memoryview(whole[:cut])).whole_elements(0)
        assert end == max(one for one in ends if one <= cut)
        rest = whole[end:cut].lstrip(b", ")
        assert at == cut - len(rest)
    assert JsonText(memoryview(whole)).whole_elements(0) == (27, -1)
    assert JsonText(memoryview(b"[]")).whole_elements(0) == (1, -1)


@pytest.mark.parametrize("text", [b"", b"{}", b"[{]", b"[1, }"])
def test_what_is_no_list_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError):
        JsonText(memoryview(text)).whole_elements(0)


def test_damaged_objects_are_refused() -> None:
    whole = b'[{"a": 1, "b": [2]}, {"a": "x"}]'
    for cut in range(len(whole)):
        text = JsonText(memoryview(whole[:cut]))
        if whole[:1] == text.data[:1]:
            with pytest.raises(FormatError):
                text.rows(Range(0, cut), "a", "b")
