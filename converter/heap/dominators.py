"""What keeps a heap's objects alive: immediate dominators.

An object *dominates* another if every path from a root to the other goes through it: without it, the other would be
freed.
"""

from __future__ import annotations

import numpy as np

from traceferry.heap import _dominators
from traceferry.model import Array, HeapGraph, distinct


def root_kinds(graph: HeapGraph) -> Array:
    """Returns the kinds of roots that there are, as strings of the trace."""
    return distinct(graph.roots["kind"][graph.roots["object"] >= 0])


def immediate_dominators(graph: HeapGraph) -> Array:
    """Returns what dominates each object most closely, int32: an object; n objects + the row of `root_kinds`, if it is
    kept alive by roots of that kind only; n + the number of kinds, if no root reaches it; -1 for roots of several
    kinds.

    Each kind is a node that refers to its roots, and so is "nothing": then it is all a question of dominators. What no
    root reaches hangs together, too: objects to which nothing refers stand for roots there, and where a circle has
    none, its first object.
    """
    n, kinds = len(graph.objects), root_kinds(graph)
    roots = graph.roots.take(graph.roots["object"] >= 0)
    by_kind = roots.take(np.argsort(roots["kind"], kind="stable"))
    ends = np.searchsorted(by_kind["kind"], kinds, side="right")
    offsets = np.concatenate((graph.offsets, graph.offsets[-1] + ends)).astype(np.int64)
    references = np.concatenate((graph.references, by_kind["object"])).astype(np.int32)
    offsets, references = _with_unreached(offsets, references, np.arange(n, n + len(kinds), dtype=np.int32))
    return _dominators.immediate_dominators(offsets, references, np.arange(n, n + len(kinds) + 1, dtype=np.int32))[:n]


def _with_unreached(offsets: Array, references: Array, entries: Array) -> tuple[Array, Array]:
    """Returns the graph with one more node, which leads to all those to which the entries do not lead. These no longer
    refer to the others, so that they hold nothing that a root holds."""
    n = len(offsets) - 1
    number = np.zeros(n, np.int32)
    _dominators.reach(offsets, references, entries, number)
    is_reached = number > 0
    unreached = np.flatnonzero(~is_reached).astype(np.int32)
    if len(unreached):
        source = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
        is_kept = is_reached[source] == is_reached[references]
        references = references[is_kept]
        offsets = np.append(0, np.cumsum(np.bincount(source[is_kept], minlength=n)))
    is_referred = np.zeros(n, bool)
    is_referred[references] = True
    candidates = np.concatenate((unreached[~is_referred[unreached]], unreached))
    chosen = _dominators.reach(offsets, references, candidates, number)
    return np.append(offsets, len(references) + len(chosen)), np.concatenate((references, chosen))
