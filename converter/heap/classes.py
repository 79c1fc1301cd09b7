"""The objects of heap snapshots by class: the dominator tree merged by class, growth, and who allocated what lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from traceferry.heap import heap_kernel
from traceferry.heap.dominators import bottom_up, immediate_holders, root_kinds
from traceferry.model import Array, HeapGraph, Trace, sums

MAX_DEPTH = 256  # frames of a stack of classes, with what holds it

SEVERAL_ROOTS = "[several roots]"
NO_ROOT = "[no recorded root]"
UNKNOWN_CLASS = "[unknown class]"


@dataclass(frozen=True)
class ClassTree:
    """The dominator tree, merged by class from the roots down. Its first rows say what holds the objects.

    tops: the words of these rows; parent: int32, the row above, always smaller, -1 above the tops; class_name: int32,
    strings of the trace, -1 is unknown, and -2 for tops; objects, bytes: int64, those of the row itself, without what
    is below; n_cut: objects that are deeper than the tree, and count for the row above them.
    """

    tops: list[str]
    parent: Array
    class_name: Array
    objects: Array
    bytes: Array
    n_cut: int


def by_class(trace: Trace, graph: HeapGraph) -> ClassTree:
    """The objects of one class that objects of one path of classes dominate are one row; a class that holds itself, as
    the links of a list do, is one row, too."""
    n, kinds, holders = len(graph.objects), root_kinds(graph), immediate_holders(graph)
    tops = [f"[{trace.strings[kind] or 'root'}]" for kind in kinds.tolist()] + [NO_ROOT, SEVERAL_ROOTS]
    top = np.where(holders < 0, len(tops) - 1, holders - n).astype(np.int32)
    dominator = np.where(holders >= n, -1, holders).astype(np.int32)
    capacity = n + len(tops)
    parent, class_name, depth = (np.full(capacity, start, np.int32) for start in (-1, -2, 1))
    slots = np.full(1 << (2 * capacity - 1).bit_length(), -1, np.int32)
    node_of, state = np.empty(n, np.int32), np.array([len(tops), 0], np.int64)
    heap_kernel.merge_classes(
        bottom_up(dominator), dominator, top, np.ascontiguousarray(graph.objects["class_name"]), MAX_DEPTH,
        parent, class_name, depth, slots, node_of, state,
    )  # fmt: skip
    n_rows, n_cut = state.tolist()
    objects, sizes = counted(node_of, graph.objects["size"], n_rows)
    return ClassTree(tops, parent[:n_rows], class_name[:n_rows], objects, sizes, n_cut)


def counted(group: Array, size: Array, n_groups: int) -> tuple[Array, Array]:
    """(how many there are, sum of their sizes) of each group, int64."""
    return np.bincount(group, minlength=n_groups), sums.total_by(group, size, n_groups)


class ClassGrowth(NamedTuple):
    """One class in two snapshots."""

    class_name: str
    objects_before: int
    bytes_before: int
    objects_after: int
    bytes_after: int

    @property
    def objects(self) -> int:
        return self.objects_after - self.objects_before

    @property
    def bytes(self) -> int:
        return self.bytes_after - self.bytes_before


def growth(trace: Trace, before: HeapGraph, after: HeapGraph) -> list[ClassGrowth]:
    """Every class of either, those that grew by the most bytes first."""
    n = len(trace.strings) + 1
    columns = [
        column.tolist()
        for graph in (before, after)
        for column in counted(graph.objects["class_name"] + 1, graph.objects["size"], n)
    ]
    names = [UNKNOWN_CLASS, *trace.strings]
    rows = [ClassGrowth(*row) for row in zip(names, *columns, strict=True) if row[1] or row[3]]
    return sorted(rows, key=lambda row: (-row.bytes, row.class_name))


class LiveSite(NamedTuple):
    """What one place allocated that lives. stack: of the trace, without the class at its leaf; -1 is none."""

    stack: int
    class_name: str
    objects: int
    bytes: int


def live_sites(trace: Trace, graph: HeapGraph) -> list[LiveSite]:
    """The sites of the objects of a snapshot, those with the most bytes first; objects without a site are left out."""
    known = graph.objects.take(graph.objects["site"] >= 0)
    sites, first, group = np.unique(known["site"], return_index=True, return_inverse=True)
    objects, sizes = counted(group, known["size"], len(sites))
    classes = known["class_name"][first].tolist()
    prefixes = trace.stacks["prefix"][sites].tolist()
    order = np.argsort(-sizes, kind="stable").tolist()
    return [
        LiveSite(prefixes[i], trace.strings[classes[i]] or UNKNOWN_CLASS, int(objects[i]), int(sizes[i])) for i in order
    ]
