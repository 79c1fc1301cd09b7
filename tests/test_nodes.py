"""Numbered nodes against a dictionary."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.analysis.totals.sums_of_trace import SampleTotals
from traceferry.model import TraceBuilder
from traceferry.model.tables import index_of
from traceferry.native.nodes import NodeTable

KEYS = st.integers(-(1 << 31), (1 << 31) - 1)
ROWS = st.lists(st.tuples(st.integers(-1, 40), st.integers(0, 1 << 62)))
LISTS = st.lists(st.lists(st.one_of(st.integers(0, 3), KEYS), max_size=30), max_size=30)


@given(LISTS, st.integers(0, 200))
def test_lists_are_paths_that_are_numbered_in_their_order(lists: list[list[int]], n_more: int) -> None:
    """The root comes last in a list. Some nodes are there before."""
    lists += [[nth] for nth in range(n_more)]
    nodes: dict[tuple[int, int], int] = {}
    wanted = []
    for keys in lists:
        node = -1
        for key in reversed(keys):
            node = nodes.setdefault((node, key), len(nodes))
        wanted.append(node)
    table = NodeTable()
    for part in (lists[: len(lists) // 2], lists):
        ends = np.cumsum([len(keys) for keys in part], dtype=np.int64)
        found = table.intern_lists(np.array([key for keys in part for key in keys], np.int32), ends)
        assert found.tolist() == wanted[: len(part)]
    assert list(zip(table.parent.tolist(), table.key.tolist(), strict=True)) == list(nodes)
    other = NodeTable()
    other.append(table.parent, table.key)
    ends = np.cumsum([len(keys) for keys in lists], dtype=np.int64)
    assert other.intern_lists(np.array([key for keys in lists for key in keys], np.int32), ends).tolist() == wanted
    assert other.n == len(nodes) <= other.capacity


def test_what_does_not_fit_is_refused() -> None:
    table, two = NodeTable(), np.zeros(2, np.int32)
    for ends in ([3], [2, 1], [-1]):
        with pytest.raises(ValueError, match="outside the keys"):
            table.intern_lists(two, np.array(ends, np.int64))
    with pytest.raises(ValueError, match="different lengths"):
        table.append(two, two[:1])


def test_a_tree_with_rows_that_are_no_nodes() -> None:
    table = NodeTable()
    parents, keys = np.array([-1, 0, 1, 0, 2], np.int64), np.array([-1, 7, 8, 7, -1], np.int32)
    assert table.intern_tree(parents, keys).tolist() == [-1, 0, 1, 0, 1]
    assert (table.parent.tolist(), table.key.tolist()) == ([-1, 0], [7, 8])
    with pytest.raises(ValueError, match="before the row above it"):
        table.intern_tree(np.array([0], np.int64), np.array([7], np.int32))


@given(st.lists(st.integers(-50, 50)), st.lists(st.integers(-60, 60)), st.sampled_from([1, 1000]))
def test_numbers_are_found_whether_close_or_not(numbers: list[int], wanted: list[int], factor: int) -> None:
    ordered = np.array(sorted({number * factor for number in numbers}), np.int64)
    found = index_of(ordered, np.array(wanted, np.int64))
    place = {number: nth for nth, number in enumerate(ordered.tolist())}
    assert found.tolist() == [place.get(number, -1) for number in wanted]


@given(st.lists(st.tuples(ROWS, st.booleans()), max_size=5))
def test_samples_of_several_threads_add_up(threads: list[tuple[list[tuple[int, int]], bool]]) -> None:
    totals, expected = SampleTotals(TraceBuilder()), Counter[int]()
    for rows, weighs in threads:
        stack, weight = (np.array([row[nth] for row in rows], dtype) for nth, dtype in enumerate((np.int32, np.int64)))
        if weighs:
            totals.add_weights(stack, weight)
        else:
            totals.add(stack)
        for row, amount in rows:
            expected[row] = min(expected[row] + (amount if weighs else 1), (1 << 63) - 1)
    found = totals.by_stack()[1].tolist()
    assert found == [expected[row] for row in range(len(found))]
    assert sum(expected[row] for row in range(len(found), 50)) == 0


def test_places_among_numbers_without_gaps() -> None:
    wanted = np.array([4, 5, 8, 9, -(1 << 63), (1 << 63) - 1, 7])
    assert index_of(np.arange(5, 9), wanted).tolist() == [-1, 0, 3, -1, -1, -1, 2]
