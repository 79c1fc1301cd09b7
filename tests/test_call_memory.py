"""Memory for calls is given again when nothing uses it, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from traceferry.model import CALLS
from traceferry.timeline.call_memory import CallMemory


def place(memory: CallMemory, n: int) -> int:
    """Returns where columns of n rows were, which nothing uses any more."""
    return int(memory.columns(n)[0].__array_interface__["data"][0])


def test_columns_are_those_of_calls() -> None:
    columns = CallMemory().columns(5)
    assert [column.dtype for column in columns] == [column.numpy_dtype for column in CALLS.columns]
    assert [len(column) for column in columns] == [5, 5, 5]
    for value, column in enumerate(columns):
        column[:] = value
    assert [column.tolist() for column in columns] == [[0] * 5, [1] * 5, [2] * 5]


def test_memory_is_given_again() -> None:
    memory = CallMemory()
    first, shorter, longer = (place(memory, n) for n in (1000, 800, 1200))
    assert first == shorter == longer


@pytest.mark.parametrize("nth", range(3))
def test_what_is_in_use_is_not_given_again(nth: int) -> None:
    memory = CallMemory()
    part = memory.columns(1000)[nth][10:20].view(np.uint8)[1:3]
    part[:] = 7
    for column in memory.columns(1000):
        column[:] = 0
    assert part.tolist() == [7, 7]


def test_much_more_memory_than_needed_is_given_back() -> None:
    memory = CallMemory()
    memory.columns(1 << 20)
    memory.columns(10)
    columns = memory.columns(10)
    assert len(columns[0].base.base) == 15 * 13


def test_no_rows() -> None:
    assert [len(column) for column in CallMemory().columns(0)] == [0, 0, 0]
