"""What the model offers to look things up in columns."""

import numpy as np
import pytest

from traceferry.model import TIERS, containing_interval
from traceferry.model.tables import GrowingTable, Strings

LAST = (1 << 64) - 1


def held_by(ranges: list[tuple[int, int]], *addresses: int) -> list[int]:
    begins, sizes = np.array(ranges, np.uint64).reshape(-1, 2).T
    return [int(row) for row in containing_interval(begins, sizes, np.array(addresses, np.uint64))]


def test_texts_of_a_column() -> None:
    strings = Strings()
    assert [strings.intern(text) for text in ("a", "b")] == [0, 1]
    assert strings.of(np.array([1, -1, 0, 1], np.int32)) == ["b", "", "a", "b"]


def test_the_range_that_holds_an_address() -> None:
    assert held_by([(10, 5), (20, 5)], 9, 10, 14, 15, 20, 24, 25) == [-1, 0, 0, -1, 1, 1, -1]


def test_the_last_range_that_begins_before_an_address_counts() -> None:
    """Also where an earlier one reaches further."""
    assert held_by([(10, 100), (20, 5), (20, 2)], 20, 22, 30) == [2, -1, -1]


@pytest.mark.parametrize("ranges", [[], [(10, 0)]])
def test_nothing_holds_an_address(ranges: list[tuple[int, int]]) -> None:
    assert held_by(ranges, 0, 10, LAST) == [-1, -1, -1]


def test_a_range_at_the_end_of_memory() -> None:
    assert held_by([(LAST - 1, LAST)], 0, LAST - 1, LAST) == [-1, 0, 0]


def test_a_column_that_is_replaced() -> None:
    """Rows are found by what they were added with: who has added one knows it by that."""
    table = GrowingTable(TIERS)
    rows = [table.intern(name=nth, family=nth, color=nth) for nth in range(3)]
    table.replace("name", np.array([5, 6, 7]))
    assert table["name"].tolist() == [5, 6, 7]
    assert [table.intern(name=nth, family=nth, color=nth) for nth in range(4)] == [*rows, 3]
    assert table["name"].tolist() == [5, 6, 7, 3]
    table.seal()
    with pytest.raises(TypeError):
        table.replace("name", table["name"])


def test_columns_that_a_table_does_not_have() -> None:
    with pytest.raises(KeyError, match="nothing"):
        GrowingTable(TIERS).intern(nothing=1)
