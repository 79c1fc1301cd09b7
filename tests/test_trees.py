"""Trees of call paths: compiled code against sums over dictionaries and unit steps of time."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from traceferry.analysis.totals._trees import (
    CallAmounts,
    add_to_ancestors,
    count_above,
    fold_stacks,
    halved,
    inclusive_by_row,
    mark_ancestors,
    nearest_above,
    roots,
)
from traceferry.analysis.totals.series import SAMPLES, Measure, Series, coarser, renumbered
from traceferry.model import Array
from traceferry.native.nodes import NodeTable

LEAVE = 1
LARGEST = (1 << 63) - 1
Path = tuple[int, ...]
# For each node a number from which its parent, any node before or none, is made.
FORESTS = st.lists(st.integers(0, 1 << 16), max_size=12).map(
    lambda numbers: np.array([number % (nth + 1) - 1 for nth, number in enumerate(numbers)], np.int32)
)


def path(parent: Array, key: Array, node: int) -> Path:
    found: Path = ()
    while node >= 0:
        found, node = (int(key[node]), *found), int(parent[node])
    return found


class Call(NamedTuple):
    ts: int
    frame: int
    is_leave: bool


@st.composite
def streams(draw: st.DrawFn) -> list[Call]:
    """A balanced stream of calls; deep ones, too."""
    ts, depth, found = draw(st.integers(0, 5)), 0, []
    for frame, lasts, is_leave in draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=30)
    ):
        found.append(Call(ts, frame, is_leave and depth > 0))
        depth += -1 if found[-1].is_leave else 1
        ts += lasts
    return found


@examples(300)
@given(streams(), st.lists(st.integers(1, 60), min_size=1, max_size=6, unique=True).map(sorted), st.integers(0, 30))
def test_amounts_of_calls(calls: list[Call], ends: list[int], cut: int) -> None:
    """Nanosecond by nanosecond: each counts for the path that is on the stack, and for the bucket that it is in."""
    key_of_frame = np.array([0, 1, 2, 1], np.int32)
    columns = (
        np.array([call.ts for call in calls], np.int64),
        np.array([call.frame for call in calls], np.int32),
        np.array([LEAVE * call.is_leave for call in calls], np.uint8),
    )
    nodes = NodeTable()
    amounts = CallAmounts(np.array(ends, np.int64), nodes)
    parts = [amounts.add(*(column[:cut] for column in columns), key_of_frame)]
    parts += [amounts.add(*(column[cut:] for column in columns), key_of_frame), amounts.rest()]

    bucket_at = lambda ts: min(sum(end <= ts for end in ends), len(ends) - 1)  # noqa: E731
    ns, entered, stack = Counter[tuple[int, Path]](), Counter[tuple[int, Path]](), []
    for call, following in zip(calls, [*calls[1:], calls[-1]] if calls else [], strict=True):
        if call.is_leave:
            stack.pop()
        else:
            stack.append(int(key_of_frame[call.frame]))
            entered[bucket_at(call.ts), tuple(stack)] += 1
        if stack:
            ns.update((bucket_at(ts), tuple(stack)) for ts in range(call.ts, following.ts))
    found_ns, found_calls = Counter[tuple[int, Path]](), Counter[tuple[int, Path]]()
    for part in parts:
        for bucket, node, its_ns, its_calls in zip(*(column.tolist() for column in part), strict=True):
            at = bucket, path(nodes.parent, nodes.key, node)
            assert at not in found_calls
            found_ns[at], found_calls[at] = its_ns, its_calls
    assert (+found_ns, +found_calls) == (ns, entered)


def test_deep_calls_and_many_paths() -> None:
    """Deeper, and more paths, than there is room for at first."""
    n, nodes = 3000, NodeTable()
    amounts = CallAmounts(np.array([1], np.int64), nodes)
    assert len(amounts.add(*calls_of([(nth, nth, 0) for nth in range(n)]), np.arange(n, dtype=np.int32))[0]) == 0
    bucket, node, ns, calls = amounts.rest()
    assert nodes.n == n
    assert path(nodes.parent, nodes.key, n - 1) == tuple(range(n))
    assert (set(bucket.tolist()), sorted(node.tolist()), int(ns.sum()), int(calls.sum())) == (
        {0}, list(range(n)), n - 1, n,
    )  # fmt: skip


def calls_of(rows: list[tuple[int, int, int]]) -> tuple[Array, Array, Array]:
    ts, frame, flags = zip(*rows, strict=True)
    return np.array(ts, np.int64), np.array(frame, np.int32), np.array(flags, np.uint8)


@pytest.mark.parametrize("row", [(0, 0, LEAVE), (0, -1, 0), (0, 1, 0)], ids=["leave", "no frame", "frame too large"])
def test_streams_that_are_not_balanced(row: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="not balanced"):
        CallAmounts(np.array([1], np.int64), NodeTable()).add(*calls_of([row]), np.zeros(1, np.int32))


@examples(200)
@given(FORESTS, st.lists(st.integers(0, 2), min_size=12, max_size=12), st.integers(0, 12))
def test_stacks_become_nodes(prefix: Array, keys: list[int], cut: int) -> None:
    """The node of a stack has its path of keys; equal paths are one node, also of stacks that come later."""
    n, nodes = len(prefix), NodeTable()
    key, found = np.array(keys[:n], np.int32), np.full(n, -1, np.int32)
    cut = min(cut, n)
    fold_stacks(prefix[:cut], key[:cut], 0, nodes, found[:cut])
    fold_stacks(prefix, key, cut, nodes, found)
    paths = [path(prefix, key, stack) for stack in range(n)]
    assert [path(nodes.parent, nodes.key, node) for node in found.tolist()] == paths
    assert nodes.n == len(set(paths))


AMOUNTS = st.lists(st.one_of(st.integers(0, 9), st.integers(0, LARGEST)), min_size=12, max_size=12)


def below(parent: Array, node: int) -> list[int]:
    """A node and all below it."""
    found = [node]
    for nth in range(node + 1, len(parent)):
        if parent[nth] in found:
            found.append(nth)
    return found


@examples(200)
@given(st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 3)), st.integers(0, LARGEST)))
def test_each_two_buckets_become_one(amounts: dict[Path, int]) -> None:
    """Sums end at the largest number."""
    wanted: Counter[Path] = Counter()
    for (bucket, node), amount in amounts.items():
        wanted[bucket // 2, node] = min(wanted[bucket // 2, node] + amount, LARGEST)
    pairs = np.array(sorted(amounts), np.int32).reshape(-1, 2)
    values = np.array([amounts[pair] for pair in sorted(amounts)], np.int64)
    bucket, node, amount = halved(*(np.ascontiguousarray(column) for column in pairs.T), values)
    assert list(zip(bucket.tolist(), node.tolist(), amount.tolist(), strict=True)) == [
        (*pair, wanted[pair]) for pair in sorted(wanted)
    ]


Amounts = dict[tuple[int, int], int]
# Buckets of so many bits that few series have room beside each other, too.
SERIES_OF_AMOUNTS = st.lists(
    st.dictionaries(
        st.tuples(st.one_of(st.integers(0, 9), st.integers(0, (1 << 30) - 1)), st.integers(0, 3)),
        st.integers(1, LARGEST),
    )
)


def series_of(amounts: Amounts, thread: int) -> Series:
    found = Series(0, thread, SAMPLES)
    pairs = np.array(sorted(amounts), np.int32).reshape(-1, 2)
    found.set(pairs[:, 0], pairs[:, 1], np.array([amounts[pair] for pair in sorted(amounts)], np.int64))
    return found


def rows_of(series: Sequence[Series]) -> list[tuple[int, Measure, list[tuple[int, int, int]]]]:
    return [
        (s.thread, s.measure, list(zip(s.bucket.tolist(), s.node.tolist(), s.amount.tolist(), strict=True)))
        for s in series
    ]


def summed(amounts: Amounts, moved: Callable[[int, int], tuple[int, int]]) -> list[tuple[int, int, int]]:
    found: Counter[tuple[int, int]] = Counter()
    for (bucket, node), amount in amounts.items():
        found[moved(bucket, node)] = min(found[moved(bucket, node)] + amount, LARGEST)
    return [(*pair, found[pair]) for pair in sorted(found)]


@examples(200)
@given(SERIES_OF_AMOUNTS, st.integers(0, 4), st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_series_are_changed_together_as_each_alone(given: list[Amounts], halvings: int, node_of: list[int]) -> None:
    series = [series_of(amounts, nth) for nth, amounts in enumerate(given)]
    longer = [summed(amounts, lambda bucket, node: (bucket >> halvings, node)) for amounts in given]
    assert rows_of(coarser(series, halvings)) == [(nth, SAMPLES, rows) for nth, rows in enumerate(longer)]
    other = [summed(amounts, lambda bucket, node: (bucket, node_of[node])) for amounts in given]
    assert rows_of(renumbered(series, np.array(node_of))) == [(nth, SAMPLES, rows) for nth, rows in enumerate(other)]


@examples(200)
@given(FORESTS, AMOUNTS)
def test_amounts_with_all_below(parent: Array, amounts: list[int]) -> None:
    n = len(parent)
    whole = np.array(amounts[:n], np.int64)
    add_to_ancestors(parent, whole)
    assert whole.tolist() == [min(sum(amounts[i] for i in below(parent, nth)), LARGEST) for nth in range(n)]
    parts = np.array([amount % 64 / 2 for amount in amounts[:n]])
    add_to_ancestors(parent, parts)
    assert parts.tolist() == [sum(amounts[i] % 64 / 2 for i in below(parent, nth)) for nth in range(n)]


@examples(200)
@given(FORESTS, AMOUNTS, st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_amounts_of_functions(prefix: Array, amounts: list[int], funcs: list[int]) -> None:
    """Of recursive functions the outermost activation counts: every stack counts once for each function in it."""
    n = len(prefix)
    func, row = np.array(funcs[:n], np.int32), np.array([f // 2 for f in funcs[:n]], np.int32)
    small = [amount % 1000 for amount in amounts[:n]]
    wanted = [0, 0]
    for stack in range(n):
        for f in set(path(prefix, func, stack)):
            wanted[f // 2] += small[stack]
    assert inclusive_by_row(prefix, func, row, np.array(small, np.int64), 2).tolist() == wanted


def test_sums_end_at_the_largest_number() -> None:
    prefix, own = np.array([-1, 0, 0], np.int32), np.array([1, LARGEST, LARGEST])
    func = np.zeros(3, np.int32)
    assert inclusive_by_row(prefix, func, func, own, 1).tolist() == [LARGEST]
    assert own[0] == 1


@examples(200)
@given(FORESTS, st.lists(st.integers(0, 1 << 16), max_size=5))
def test_ancestors_are_marked_once(parent: Array, numbers: list[int]) -> None:
    n = len(parent)
    wanted = [number % n for number in numbers] if n else []
    is_marked, out = np.zeros(n, np.uint8), np.zeros(n, np.int32)
    n_found = mark_ancestors(parent, np.array(wanted, np.int32), is_marked, out)
    above = {node for node in range(n) if set(below(parent, node)) & set(wanted)}
    assert sorted(out[:n_found].tolist()) == sorted(above) == np.flatnonzero(is_marked).tolist()


@examples(200)
@given(FORESTS, st.lists(st.integers(-1, 2), min_size=12, max_size=12))
def test_what_stands_above(parent: Array, numbers: list[int]) -> None:
    """How many on the way up are so, what the nearest one has that has something, and where the way ends."""
    n = len(parent)
    own = np.array(numbers[:n], np.int32)
    ways = [path(parent, np.arange(n), node) for node in range(n)]
    assert count_above(parent, (own > 0).astype(np.uint8)).tolist() == [sum(own[i] > 0 for i in way) for way in ways]
    found = [next((int(own[i]) for i in reversed(way) if own[i] >= 0), -1) for way in ways]
    assert nearest_above(parent, own).tolist() == found
    assert roots(parent).tolist() == [way[0] for way in ways]


BAD_PARENTS = [[0], [-2], [-1, 1], [-1, 5]]


@pytest.mark.parametrize("parent", BAD_PARENTS, ids=str)
def test_parents_that_are_not_smaller(parent: list[int]) -> None:
    bad, n = np.array(parent, np.int32), len(parent)
    zeros, node = np.zeros(n, np.int32), np.array([n - 1], np.int32)
    for call in (
        lambda: fold_stacks(bad, zeros, 0, NodeTable(), zeros.copy()),
        lambda: add_to_ancestors(bad, np.zeros(n, np.int64)),
        lambda: add_to_ancestors(bad, np.zeros(n)),
        lambda: mark_ancestors(bad, node, np.zeros(n, np.uint8), zeros.copy()),
        lambda: inclusive_by_row(bad, zeros, zeros, np.zeros(n, np.int64), 1),
        lambda: count_above(bad, np.zeros(n, np.uint8)),
        lambda: nearest_above(bad, zeros),
        lambda: roots(bad),
    ):
        with pytest.raises(ValueError, match="invalid"):
            call()


@pytest.mark.parametrize(("func", "row"), [(-1, 0), (0, -1), (0, 1)])
def test_functions_and_rows_that_are_not_there(func: int, row: int) -> None:
    one = np.array([-1], np.int32)
    with pytest.raises(ValueError, match="invalid function or row"):
        inclusive_by_row(one, one + func + 1, one + row + 1, np.zeros(1, np.int64), 1)
