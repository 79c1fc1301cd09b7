"""The call trees of many recordings in one: above the functions stands what their thread is called and what its samples
weigh, so that equal threads of all recordings are one tree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traceferry.analysis.totals._trees import inclusive_by_row
from traceferry.analysis.totals.details import name_pattern
from traceferry.analysis.totals.portable import Amounts, Tree, thread_names, tree_frames
from traceferry.analysis.totals.rows import Key
from traceferry.analysis.totals.series import ALLOCATED, CALLS, FREED, OBJECTS, SAMPLES, TIME, Series
from traceferry.analysis.totals.trees import Trees
from traceferry.model import Array, Trace, sums

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
    threads = thread_names(trace)
    for series in trees.series:
        series_of.setdefault(_group(trace, threads, series), []).append(series)
    if not series_of:
        return Tree()
    frames: list[Key] = [*tree_frames(trace, trees), *series_of]
    above, first_group = trees.nodes.parent.tolist(), len(frames) - len(series_of)
    # Of each node the group that it was last found in, and its place among that group's nodes, from 1 on.
    seen, place = [-1] * len(above), np.zeros(len(above), np.int64)
    parents, keys, owns, n_before = [], [], [], 0
    for group, chosen in enumerate(series_of.values()):
        nodes = _with_ancestors(chosen, above, seen, group)
        place[nodes] = np.arange(1, len(nodes) + 1)
        up = trees.nodes.parent[nodes]
        parents.append(np.concatenate(([-1], n_before + np.where(up < 0, 0, place[up]))))
        keys.append(np.concatenate(([first_group + group], trees.nodes.key[nodes])))
        for series in chosen:
            measure = MEASURES.index(COLUMNS.get(series.measure, WEIGHT))
            owns.append((n_before + place[series.node], np.full(len(series.node), measure), series.amount))
        n_before += len(nodes) + 1
    return Tree.of(
        frames, np.concatenate(parents).astype(np.int32), np.concatenate(keys).astype(np.int32),
        [(name,) for name in MEASURES], Amounts.joined(owns),
    )  # fmt: skip


def _with_ancestors(chosen: list[Series], above: list[int], seen: list[int], group: int) -> Array:
    """int64, rising: the nodes of the series and all above them. seen: of each node the last group that has it."""
    found: list[int] = []
    for series in chosen:
        for node in series.node.tolist():
            while node >= 0 and seen[node] != group:
                seen[node] = group
                found.append(node)
                node = above[node]
    return np.array(sorted(found), np.int64)


def _group(trace: Trace, threads: list[list[str]], series: Series) -> Group:
    process, sampling = name_pattern(trace.processes[series.process].name), trace.sampling
    if not series.measure.is_timed:
        return process, "", name_pattern(series.measure.name), series.measure.unit
    names = process, threads[series.process][series.thread]
    if series.measure not in COLUMNS:
        return *names, series.measure.name, series.measure.unit
    return *names, "" if sampling is None else sampling.name, "" if sampling is None else sampling.unit


# ---------------------------------------------------------------- what a forest says


def roots_of(forest: Tree) -> Array:
    """int32 [nodes]: the root above each node, by doubling the distance that is looked at."""
    above: Array = np.where(forest.parent < 0, np.arange(len(forest.parent), dtype=np.int32), forest.parent)
    while not np.array_equal(further := above[above], above):
        above = further
    return above


def nodes_by_root(forest: Tree) -> Iterator[tuple[Group, Array]]:
    """Yields the frame of each root and the nodes below it, int64, rising."""
    roots = roots_of(forest)
    in_order = np.argsort(roots, kind="stable")
    starts = np.flatnonzero(np.diff(roots[in_order], prepend=-1))
    for nodes in np.split(in_order, starts[1:]) if len(starts) else ():
        # A root comes before the nodes below it.
        yield forest.frames[int(forest.frame[nodes[0]])], nodes[1:]


def functions_of(forest: Tree) -> tuple[list[Key], Array, Array]:
    """Returns the functions as (process, thread, event, unit, name, file, line, kind, tier), sorted, and of each, int64
    [functions, MEASURES], what it has itself and its total.

    The total of a recursive function is that of its outermost activation, whose tier it counts to. Allocations count to
    the function that allocated, not to their class, which is the leaf of their call path. Left out: what has nothing.
    """
    n = len(forest.parent)
    functions: dict[Key, int] = {}
    rows: dict[tuple[int, int, str | None], int] = {}
    root, frame = roots_of(forest), forest.frame
    # Functions, and the groups, are numbered over all trees; rows are (root, function, tier), without a tier of groups.
    func = np.array([functions.setdefault(key[:4], len(functions)) for key in forest.frames], np.int32)[frame]
    tiers = [str(key[5]) if len(key) > GROUP_LENGTH else None for key in forest.frames]
    nodes = zip(root.tolist(), func.tolist(), frame.tolist(), strict=True)
    row = np.array([rows.setdefault((r, f, tiers[k]), len(rows)) for r, f, k in nodes], np.int32)
    selves, totals = np.zeros((2, len(rows), len(MEASURES)), np.int64)
    for nth, name in enumerate(MEASURES):
        own = forest.column((name,))
        if not own.any():
            continue
        if name in ALLOCATION_COLUMNS:
            own = sums.total_by(forest.parent[own > 0], own[own > 0], n)
        selves[:, nth] = sums.total_by(row, own, len(rows))
        totals[:, nth] = inclusive_by_row(forest.parent, func, row, own, len(rows))
    names = [*functions]
    found = sorted(
        ((*forest.frames[int(frame[r])], *names[f], tier), i)
        for (r, f, tier), i in rows.items()
        if tier is not None and totals[i].any()
    )
    order = [i for _, i in found]
    return [key for key, _ in found], selves[order], totals[order]
