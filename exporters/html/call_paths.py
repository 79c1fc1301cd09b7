"""The call paths that a page shows and their amounts, as columns of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceferry.analysis.totals.series import Series
from traceferry.analysis.totals.trees import Trees, nearest_kept
from traceferry.model import Array

Json = dict[str, Any]


class Kept:
    """The call paths that the page shows, the first of those in `ranked`. The others are joined, below the nearest one
    that is kept. keys: those in use; parent, frame: of the new nodes; node: of each old one, -1 is none."""

    def __init__(self, trees: Trees, ranked: Array, most: int) -> None:
        parent, n = trees.nodes.parent, trees.nodes.n
        is_kept = np.zeros(n, bool)
        is_kept[ranked[:most]] = True
        rows = np.flatnonzero(is_kept)
        self.n_joined = len(ranked) - len(rows)
        self.node = np.full(n, -1, np.int64)
        self.node[rows] = np.arange(len(rows))
        self.keys, key = np.unique(trees.nodes.key[rows], return_inverse=True)
        above = parent[rows]
        parents = np.where(above < 0, -1, self.node[above])
        frames = key.reshape(-1)
        joined = np.sort(ranked[most:])
        if len(joined):
            nearest = nearest_kept(parent, is_kept)[joined]
            below = np.where(nearest < 0, -1, self.node[nearest])
            new, index = np.unique(below, return_inverse=True)
            self.node[joined] = len(rows) + index.reshape(-1)
            parents, frames = np.append(parents, new), np.append(frames, np.full(len(new), len(self.keys)))
        self.parent, self.frame = parents, frames


def nodes_of(kept: Kept) -> Json:
    """Returns the columns of the kept paths."""
    return {"parent": _steps_back(kept.parent), "frame": kept.frame.tolist()}


def _steps_back(parent: Array) -> list[int]:
    """Returns how many nodes before it each one's parent is; 0 is none."""
    steps: list[int] = np.where(parent < 0, 0, np.arange(len(parent)) - parent).tolist()
    return steps


def columns(series: Series) -> Json:
    """Returns rows by bucket, then node, as differences to the row before."""
    return {
        "bucket": _differences(series.bucket).tolist(),
        "node": _differences(series.node).tolist(),
        "amount": series.amount.tolist(),
    }


def _differences(column: Array) -> Array:
    """Returns by how much each is above the one before it, the first one above 0. As np.diff with prepend, which takes
    ten times as long for a few."""
    found: Array = column.copy()
    found[1:] -= column[:-1]
    return found
