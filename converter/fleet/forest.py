"""The call trees of many recordings in one: above the functions stands what their thread is called and what its samples
weigh, so that equal threads of all recordings are one tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceferry import sums
from traceferry.model import Array, Trace
from traceferry.totals import tree_kernel
from traceferry.totals.details import name_pattern
from traceferry.totals.portable import Key, Tree, tree_frames
from traceferry.totals.trees import ALLOCATED, CALLS, FREED, OBJECTS, SAMPLES, TIME, Measure, Series, Trees

# The measures of a forest. Weight is in the unit that the group names: of samples, or of a view of sizes.
WEIGHT = "weight"
COLUMNS = {
    TIME: "time_ns", CALLS: "calls", SAMPLES: "samples", ALLOCATED: "allocated_bytes", OBJECTS: "allocated_objects",
    FREED: "freed_bytes",
}  # fmt: skip
MEASURES = ("time_ns", "calls", "samples", WEIGHT, "allocated_bytes", "allocated_objects", "freed_bytes")
ALLOCATION_COLUMNS = ("allocated_bytes", "allocated_objects", "freed_bytes")
# (process, thread, event, unit), the names without numbers: the frame of a root.
Group = tuple[str, str, str, str]
GROUP_LENGTH = 4


def forest_of(trace: Trace, trees: Trees) -> Tree:
    """The trees of all threads of a trace. Its measures are MEASURES; its roots are groups."""
    series_of: dict[Group, list[Series]] = {}
    for series in trees.series:
        series_of.setdefault(_group(trace, series), []).append(series)
    of_functions = tree_frames(trace, trees)
    frames: list[Key] = [*of_functions]
    parents, keys, owns, n_before = [], [], [], 0
    for group, chosen in series_of.items():
        own = _own(trees.nodes.n, chosen)
        used = np.asarray(own.any(axis=1), np.int64)
        tree_kernel.add_to_ancestors(trees.nodes.parent, used)
        nodes = np.flatnonzero(used)
        place = np.full(trees.nodes.n, -1, np.int64)
        place[nodes] = np.arange(len(nodes)) + n_before + 1
        above = trees.nodes.parent[nodes]
        parents.append(np.concatenate(([-1], np.where(above < 0, n_before, place[above]))))
        keys.append(np.concatenate(([len(frames)], trees.nodes.key[nodes])))
        owns.append(np.concatenate((np.zeros((1, len(MEASURES)), np.int64), own[nodes])))
        frames.append(group)
        n_before += len(nodes) + 1
    if not parents:
        return Tree()
    return Tree.of(
        frames, np.concatenate(parents).astype(np.int32), np.concatenate(keys).astype(np.int32),
        [(name,) for name in MEASURES], np.concatenate(owns),
    )  # fmt: skip


def _group(trace: Trace, series: Series) -> Group:
    process = trace.processes[series.process]
    if not series.measure.is_timed:
        return name_pattern(process.name), "", name_pattern(series.measure.name), series.measure.unit
    threads = [thread for thread in process.threads if not thread.sample_unit]
    names = name_pattern(process.name), name_pattern(threads[series.thread].name)
    sampling = trace.sampling
    return *names, "" if sampling is None else sampling.event, "" if sampling is None else sampling.unit


def _own(n_nodes: int, chosen: list[Series]) -> Array:
    """int64 [nodes, MEASURES]"""
    own = np.zeros((n_nodes, len(MEASURES)), np.int64)
    for series in chosen:
        column = MEASURES.index(_column(series.measure))
        own[:, column] = sums.plus(own[:, column], sums.total_by(series.node, series.amount, n_nodes))
    return own


def _column(measure: Measure) -> str:
    return COLUMNS.get(measure, WEIGHT)


# ---------------------------------------------------------------- what a forest says


@dataclass(frozen=True)
class FunctionRow:
    """A function in a group. function: (name, file, line, kind); self_, total: of each of MEASURES; the total of a
    recursive function is that of its outermost activation, whose tier it counts to."""

    group: Group
    function: Key
    tier: str
    self_: tuple[int, ...]
    total: tuple[int, ...]


def own_of(forest: Tree, name: str) -> Array:
    """int64 [nodes]: a measure of each node itself."""
    key = (name,)
    if key not in forest.measures:
        return np.zeros(len(forest.parent), np.int64)
    column: Array = np.ascontiguousarray(forest.own[:, forest.measures.index(key)])
    return column


def roots_of(forest: Tree) -> Array:
    """int32 [nodes]: the root above each node."""
    root = np.arange(len(forest.parent), dtype=np.int32)
    above = forest.parent
    # Nodes are sorted by depth: each step decides one level.
    while True:
        next_root = np.where(above >= 0, root[np.maximum(above, 0)], root)
        if np.array_equal(next_root, root):
            return root
        root = next_root


def functions_of(forest: Tree) -> Iterator[FunctionRow]:
    """By group, function and tier. Allocations count to the function that allocated, not to their class, which is the
    leaf of their call path. Left out: what has nothing."""
    n = len(forest.parent)
    if not n:
        return
    is_group = np.array([len(frame) == GROUP_LENGTH for frame in forest.frames])
    functions: dict[Key, int] = {}
    rows: dict[tuple[int, int, str], int] = {}
    root, frame = roots_of(forest), forest.frame
    # Functions are numbered over all groups, rows are (root, function, tier).
    func_of_frame = np.array(
        [
            0 if of_group else functions.setdefault(key[:4], len(functions) + 1)
            for of_group, key in zip(is_group.tolist(), forest.frames, strict=True)
        ],
        np.int32,
    )
    func = func_of_frame[frame]
    tier_of_frame = ["" if is_group[i] else str(key[5]) for i, key in enumerate(forest.frames)]
    row = np.array(
        [
            rows.setdefault((r, f, tier_of_frame[k]), len(rows))
            for r, f, k in zip(root.tolist(), func.tolist(), frame.tolist(), strict=True)
        ],
        np.int32,
    )
    selves, totals = np.zeros((len(rows), len(MEASURES)), np.int64), np.zeros((len(rows), len(MEASURES)), np.int64)
    for nth, name in enumerate(MEASURES):
        own = own_of(forest, name)
        if not own.any():
            continue
        if name in ALLOCATION_COLUMNS:
            own = sums.total_by(forest.parent[own > 0], own[own > 0], n)
        selves[:, nth] = sums.total_by(row, own, len(rows))
        tree_kernel.add_to_callers(
            forest.parent, func, row, own.copy(), np.empty(n + 1, np.int32), np.empty(n, np.int32),
            np.zeros(len(functions) + 1, np.int32), (total := np.zeros(len(rows), np.int64)),
        )  # fmt: skip
        totals[:, nth] = total
    names = [(), *functions]
    found = [
        FunctionRow(forest.frames[int(frame[r])], names[f], tier, tuple(selves[i].tolist()), tuple(totals[i].tolist()))
        for (r, f, tier), i in rows.items()
        if f and totals[i].any()
    ]
    yield from sorted(found, key=lambda each: (each.group, each.function, each.tier))
