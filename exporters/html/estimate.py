"""How many bytes a page needs with more or less detail, before it is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import orjson

from traceferry.analysis.totals.series import Series, coarser
from traceferry.analysis.totals.trees import Trees
from traceferry.exporters.html.call_paths import Json, Kept, columns, nodes_of
from traceferry.exporters.html.embed import gzipped
from traceferry.model import Array

# Of a call path with the names that it needs, compressed.
BYTES_PER_NODE = 5.5
# Amounts, and call paths with their names, which are compressed to see what others need.
AMOUNTS_TRIED = 1 << 15
NODES_TRIED = 1 << 12


class Estimate:
    """Estimates what the data of a page needs, compressed. ranked: the call paths, the most important first; names:
    gives what names some of them; most: how many of them are ever shown."""

    def __init__(self, trees: Trees, ranked: Array, names: Callable[[Kept], Json], most: int) -> None:
        self._trees = trees
        self._ranked = ranked
        self._names = names
        self._most = most
        # By how often two parts of time became one; and the amounts of the last of these.
        self._by_halvings: list[_Amounts] = []
        self._coarsest: list[Series] = []

    def bytes_of(self, most_nodes: int, most_buckets: int) -> float:
        """Returns about how many bytes so many call paths and parts of time need, compressed."""
        *_, halvings = self._trees.coarser(most_buckets)
        n_nodes = min(most_nodes, len(self._ranked))
        amounts = self._amounts(halvings)
        return self._bytes_of_paths(n_nodes) + amounts.bytes_each * int(amounts.n_by_rank[n_nodes])

    def _bytes_of_paths(self, n: int) -> float:
        """Returns what the first so many of the ranked call paths need with their names, compressed: as in a usual
        recording where there are few in all, otherwise by what some of the names, and most of the paths, need."""
        if len(self._ranked) <= NODES_TRIED:
            return BYTES_PER_NODE * n
        per_name, per_path, n_keys = self._bytes_of_names_and_paths
        return per_name * int(n_keys[n]) + per_path * n

    @cached_property
    def _bytes_of_names_and_paths(self) -> tuple[float, float, Array]:
        """Returns (compressed bytes of a name, of a path without its name, how many different names the first so many
        of the ranked call paths have)."""
        some, most = (Kept(self._trees, self._ranked[:n], n) for n in (NODES_TRIED, self._most))
        names, paths = (len(gzipped(orjson.dumps(tried))) for tried in (self._names(some), nodes_of(most)))
        keys = self._trees.nodes.key[self._ranked]
        is_first = np.zeros(len(keys), np.int64)
        is_first[np.unique(keys, return_index=True)[1]] = 1
        return names / len(some.keys), paths / len(most.parent), np.append(0, np.cumsum(is_first))

    def _amounts(self, halvings: int) -> _Amounts:
        """Returns what the amounts are, where each two parts of time become one so many times."""
        while len(self._by_halvings) <= halvings:
            self._coarsest = coarser(self._coarsest, 1) if self._by_halvings else self._trees.series
            nodes = np.concatenate([np.empty(0, np.int32), *(series.node for series in self._coarsest)])
            of_node = np.bincount(nodes, minlength=self._trees.nodes.n)
            n_by_rank = np.append(0, np.cumsum(of_node[self._ranked]))
            self._by_halvings.append(_Amounts(n_by_rank, _bytes_per_amount(self._coarsest)))
        return self._by_halvings[halvings]


class _Amounts(NamedTuple):
    """n_by_rank: how many the first so many of the ranked call paths have, int64, one more than there are paths;
    bytes_each: what one needs with its place, compressed."""

    n_by_rank: Array
    bytes_each: float


def _bytes_per_amount(series: list[Series]) -> float:
    """Returns what an amount needs with its place, compressed: of some of each series."""
    part = min(AMOUNTS_TRIED / max(sum(len(each.node) for each in series), 1), 1.0)
    tried = [each.part(int(part * len(each.node))) for each in series]
    n_tried = sum(len(each.node) for each in tried)
    return len(gzipped(orjson.dumps([columns(each) for each in tried]))) / n_tried if n_tried else 0.0
