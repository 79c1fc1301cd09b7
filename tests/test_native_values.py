"""Python's values in lists: the kernels equal what a line of Python says."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.native.values import are_of, interned, member, rows_of, rows_with, shapes

VALUES = st.lists(st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "a", "b"])))
OBJECTS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 2), max_size=3))


@given(OBJECTS)
def test_members(objects: list[dict[str, int]]) -> None:
    assert member(objects, "a") == [one.get("a") for one in objects]
    assert member(objects, "a", 7) == [one.get("a", 7) for one in objects]
    assert rows_with(objects, "b").tolist() == [row for row, one in enumerate(objects) if "b" in one]
    assert shapes(objects) == Counter(map(tuple, objects))


@given(VALUES, st.sampled_from([None, 0, 1, "", "a"]))
def test_values(values: list[Any], wanted: Any) -> None:
    assert rows_of(values, wanted).tolist() == [row for row, value in enumerate(values) if value == wanted]
    for kind in (int, str, bool):
        assert are_of(values, kind) == all(type(value) is kind for value in values)


@given(VALUES, VALUES)
def test_interned(first: list[Any], then: list[Any]) -> None:
    known: dict[Any, int] = {}
    numbers = interned(first, known).tolist() + interned(iter(then), known).tolist()
    assert list(known.values()) == list(range(len(known)))
    assert [list(known)[number] for number in numbers] == [*first, *then]


def test_keys_of_equal_texts_are_one_shape() -> None:
    assert shapes([{"ab": 1}, {"".join(("a", "b")): 2}, {}, {"ab": 3}]) == {("ab",): 3, (): 1}


def test_what_is_no_object() -> None:
    for call in (lambda: member([1], "a"), lambda: rows_with(["a"], "a"), lambda: shapes([None])):
        with pytest.raises(TypeError):
            call()
