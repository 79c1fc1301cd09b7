"""Names of processes in stacks: texts of stacks begin with them, as stackcollapse-perf.pl and this project write them,
and nothing tells them from functions. Compared with a recording of the same program, they are none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from traceferry.analysis.compare.alignment import Function
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.totals.details import name_pattern
from traceferry.analysis.totals.portable import Amounts, Tree


def without_processes(runs: Sequence[Run], others: Sequence[Run]) -> list[Run]:
    """Returns the runs without functions that are called as a process of the other side is, and are no function there:
    of other formats than the other side's. Those of one format have the same in their stacks."""
    formats, other_formats = (frozenset().union(*(run.formats for run in side)) for side in (runs, others))
    if not formats or not other_formats or formats & other_formats:
        return list(runs)
    processes = {process for run in others for process, _ in run.totals.threads.keys}
    functions = {function[0] for run in others for function in run.totals.functions.keys}
    return [_without(run, processes, functions) for run in runs]


def _without(run: Run, processes: Collection[str], functions: Collection[str]) -> Run:
    rows = run.totals.functions
    left_out = {key for key in rows.keys if _is_process(key, processes) and key[0] not in functions}
    if not left_out:
        return run
    kept = [nth for nth, key in enumerate(rows.keys) if key not in left_out]
    functions_left = replace(rows, keys=tuple(rows.keys[nth] for nth in kept), amounts=rows.amounts[kept])
    totals = replace(run.totals, functions=functions_left)
    return replace(run, totals=totals, trees=_without_roots(run.trees, left_out))


def _is_process(function: Function, processes: Collection[str]) -> bool:
    name, file, line, _ = function
    return not file and not line and name_pattern(name) in processes


def _without_roots(tree: Tree, left_out: Collection[Function]) -> Tree:
    """Returns the tree in which what these functions call is outermost."""
    is_of_process = np.array([frame[:4] in left_out for frame in tree.frames], bool)
    is_kept = (tree.parent >= 0) | ~is_of_process[tree.frame] if len(tree.frame) else np.ones(0, bool)
    place = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
    parent, own = tree.parent[is_kept], tree.own
    has = is_kept[own.node]
    amounts = Amounts(place[own.node[has]], own.measure[has], own.value[has])
    parent = np.where(parent < 0, -1, place[parent]).astype(np.int32)
    return Tree.of(tree.frames, parent, tree.frame[is_kept], tree.measures, amounts)
