"""Totals of traces: trees agree with functions, narrower time with wider, and merged totals do not depend on order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from conftest import REPO, examples
from hypothesis import given
from hypothesis import strategies as st
from outputs import NAMES, trace_named
from streams import fdr

import traceferry
from traceferry import LoadOptions
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.totals.collect import Collected, collect
from traceferry.analysis.totals.details import Details, bucket_of, middle_of
from traceferry.analysis.totals.per_run import stable_name
from traceferry.analysis.totals.portable import Amounts, Totals, Tree, portable
from traceferry.analysis.totals.rows import Rows
from traceferry.analysis.totals.series import ALLOCATED, CALLS, OBJECTS, SAMPLES, TIME, Measure
from traceferry.analysis.totals.sums_of_trace import ranked
from traceferry.analysis.totals.trees import Trees
from traceferry.model import Trace, sums

FIXTURES = REPO / "fixtures"
RECORDINGS = [
    "jit/java17/perf.data.zst", "jit/bun-src/jit-10873-10871.dump.zst", "jit/php82/perf.data.zst",
    "mono/mono-6.8/calls.mlpd.zst", "mono/mono-6.8/heap.mlpd.zst", "mono/mono-6.8/samples.mlpd.zst",
]  # fmt: skip


def collected(trace: Trace, **options: Any) -> Collected:
    opened = trace.opened()
    return collect(opened, Trees(opened, **options), details=Details(opened))


def own_by_func(found: Collected, measure: Measure) -> list[int]:
    assert found.trees is not None
    func = found.trees.keys.rows[found.trees.nodes.key, 0]
    return sums.total_by(func, found.trees.own(lambda s: s.measure == measure), len(found.trace.funcs)).tolist()


def total_by_func(found: Collected, measure: Measure) -> list[int]:
    """Worked out path by path: of a recursive function, the outermost activation only."""
    trees, totals = found.trees, [0] * len(found.trace.funcs)
    assert trees is not None
    func, parent = trees.keys.rows[trees.nodes.key, 0].tolist(), trees.nodes.parent.tolist()
    for node, amount in enumerate(trees.own(lambda s: s.measure == measure).tolist()):
        on_path = set()
        while node >= 0:
            on_path.add(func[node])
            node = parent[node]
        for each in on_path:
            totals[each] += amount
    return totals


@pytest.mark.parametrize("name", [*NAMES, *RECORDINGS])
def test_a_tree_has_what_the_functions_have(name: str, load: Callable[..., Trace]) -> None:
    trace = traceferry.load(FIXTURES / name) if name in RECORDINGS else trace_named(name, load)
    found, without_tree = collected(trace), collect(trace)
    by_func = {key: column.tolist() for key, column in without_tree.by_func().items()}
    assert {key: column.tolist() for key, column in found.by_func().items()} == by_func
    assert found.processes == without_tree.processes
    assert own_by_func(found, TIME) == by_func["self_ns"]
    assert own_by_func(found, CALLS) == by_func["calls"]
    assert own_by_func(found, SAMPLES) == by_func["samples"]
    assert total_by_func(found, TIME) == by_func["total_ns"]
    assert total_by_func(found, SAMPLES) == by_func["total_samples"]
    whole = found.allocations.by_class.sum(axis=0).tolist()
    assert [sum(own_by_func(found, OBJECTS)), sum(own_by_func(found, ALLOCATED))] == whole[:2]


def test_time_in_buckets_is_the_time_between_their_bounds(load: Callable[..., Trace]) -> None:
    """A from 0 to 130 ns, in it B from 20 to 100, in four buckets of 33 ns; B lies over the bounds of three."""
    trace = load(fdr("A 10 B 70 b 20 a"))
    trees = collected(trace, n_buckets=4).trees
    assert trees is not None
    assert trees.width_ns == 33
    time = next(s for s in trees.series if s.measure == TIME)
    assert list(zip(time.bucket.tolist(), time.node.tolist(), time.amount.tolist(), strict=True)) == [
        (0, 0, 20), (0, 1, 13), (1, 1, 33), (2, 1, 33), (3, 0, 30), (3, 1, 1),
    ]  # fmt: skip
    calls = next(s for s in trees.series if s.measure == CALLS)
    assert list(zip(calls.bucket.tolist(), calls.node.tolist(), calls.amount.tolist(), strict=True)) == [
        (0, 0, 1), (0, 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", RECORDINGS[3:5])
def test_halved_buckets_are_what_fewer_buckets_would_be(name: str) -> None:
    trace = traceferry.load(FIXTURES / name)
    few, many = collected(trace, n_buckets=64), collected(trace, n_buckets=256, most_amounts=20)
    assert many.trees is not None
    assert many.trees.n_buckets < 64, "it was halved on the way"
    assert content(portable(many)) == content(portable(few))


NAMED = st.sampled_from(["main", "work", "a<b>", "", "\u2028"])
KINDS_OF_ROWS = [field.name for field in fields(Totals) if field.name != "tree"]
AMOUNT = st.one_of(st.integers(0, 100), st.integers(2**62, 2**63 - 1))


@st.composite
def totals(draw: st.DrawFn) -> Totals:
    none = Totals()

    def rows(kind: Rows, key: Any) -> Rows:
        keys = draw(st.lists(key, max_size=4))
        amounts = [[draw(AMOUNT) for _ in kind.columns] for _ in keys]
        return kind.of(keys, amounts)

    frames = draw(st.lists(st.tuples(NAMED, st.integers(0, 2)), min_size=1, max_size=4))
    n = draw(st.integers(0, 8))
    parent = np.array([draw(st.integers(-1, i - 1)) for i in range(n)], np.int32)
    frame = np.array([draw(st.integers(0, len(frames) - 1)) for _ in range(n)], np.int32)
    measures = draw(st.lists(st.tuples(NAMED, st.just("ns")), max_size=2, unique=True))
    own = np.array([[draw(AMOUNT) for _ in measures] for _ in range(n)], np.int64).reshape(n, len(measures))
    key = st.tuples(NAMED, st.one_of(NAMED, st.integers(0, 2)))
    kinds = {name: rows(getattr(none, name), key) for name in KINDS_OF_ROWS}
    return Totals(tree=Tree.of(frames, parent, frame, measures, Amounts.of_columns(own)), **kinds)


def content(found: Totals) -> list[Any]:
    """Everything, down to the bytes."""
    rows = [getattr(found, name) for name in KINDS_OF_ROWS]
    tree = found.tree
    arrays = [*(r.amounts for r in rows), tree.parent, tree.frame, *vars(tree.own).values()]
    return [*((r.columns, r.keys, r.largest) for r in rows), tree.frames, tree.measures, *(
        (a.dtype.str, a.tobytes()) for a in arrays
    )]  # fmt: skip


@examples(60)
@given(st.lists(totals(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_merged_totals_do_not_depend_on_order_and_grouping(parts: list[Totals], random: Any) -> None:
    whole = content(Totals().merged(*parts))
    left = list(parts)
    while len(left) > 1:
        random.shuffle(left)
        left.append(left.pop().merged(left.pop()))
    assert content(Totals().merged(*left)) == whole


def test_parts_of_a_recording_merge_to_the_whole() -> None:
    """Threads loaded alone, together."""
    path = FIXTURES / "jit" / "php82" / "perf.data.zst"
    whole = traceferry.load(path)
    tids = [str(thread.tid) for _, thread in whole.threads if not thread.sample_unit]
    parts = [portable(collected(traceferry.load(path, options=LoadOptions(threads=tid)))) for tid in tids]
    together, expected = Totals().merged(*parts), portable(collected(whole))
    assert together.functions.keys == expected.functions.keys
    assert np.array_equal(together.functions.amounts, expected.functions.amounts)
    samples = [tree.column(("samples", "count")).sum() for tree in (together.tree, expected.tree)]
    assert samples[0] == samples[1] == expected.functions.amounts[:, 3].sum()


@examples(60)
@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=8))
def test_durations_of_a_bucket_are_alike_and_buckets_rise(durations: list[int]) -> None:
    ns = np.array(sorted(durations), np.int64)
    bucket = bucket_of(ns)
    assert np.all(np.diff(bucket) >= 0)
    assert np.all(np.abs(middle_of(bucket) - ns) <= ns / 64)


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2), st.sampled_from("ab"))), st.integers(0, 30))
def test_rows_are_ranked_by_value_then_name_then_row(rows: list[tuple[int, int, str]], most: int) -> None:
    columns = [np.array([row[nth] for row in rows], np.int64) for nth in (0, 1)]
    chosen = np.arange(0, len(rows), 2)
    wanted = sorted(chosen.tolist(), key=lambda row: (-rows[row][0], -rows[row][1], rows[row][2], row))
    assert ranked(chosen, columns, lambda row: rows[row][2], most) == wanted[:most]


def test_details_are_those_of_the_recording() -> None:
    """Of a recording whose sums `info` gives: allocations by site, code, events, retained bytes."""
    trace = traceferry.load(FIXTURES / "mono" / "mono-6.8" / "heap.mlpd.zst")
    found = portable(collected(trace))
    info = summarize(trace, top=1000)
    by_site = Counter[str]()
    for key, n_bytes in zip(found.sites.keys, found.sites.amounts[:, 1].tolist(), strict=True):
        by_site[key[0]] += n_bytes
    # Without wrappers of allocations; those that were made by nobody have no site here.
    of_info = Counter[str]()
    for site in info["allocations"]["sites"]:
        of_info.update({stable_name(name): site["bytes"] for name in site["stack"][:1]})
    assert by_site == of_info
    assert not any(name.startswith("(wrapper alloc)") for name in by_site)
    assert found.classes.amounts[:, 1].sum() == info["allocations"]["bytes"]
    pauses = next(m for m in info["markers"] if m["type"] == "GC pause")["top"]
    of_pauses = found.events.amounts[found.events.keys.index(("GC pause",))].tolist()
    assert of_pauses == [
        sum(p["count"] for p in pauses), sum(p["total_ns"] for p in pauses), max(p["longest_ns"] for p in pauses),
    ]  # fmt: skip
    shot = {c["name"]: c for c in info["processes"][0]["heap_snapshots"][-1]["classes"]}
    lines = dict(zip(found.retained.keys, found.retained.amounts.tolist(), strict=True))
    assert {key[0]: row[:2] for key, row in lines.items()} == {n: [c["objects"], c["bytes"]] for n, c in shot.items()}
    assert all(row[2] >= row[1] for row in lines.values())
    assert found.code.amounts[:, 0].sum() == info["code_objects"]
