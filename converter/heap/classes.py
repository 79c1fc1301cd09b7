"""The objects of heap snapshots by class: the dominator tree merged by class, growth, and who allocated what lives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceferry.heap._dominators import merge_classes
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.heap.dominators import immediate_dominators, root_kinds
from traceferry.model import Array, HeapGraph, Trace, sums

MAX_DEPTH = 256  # frames of a stack of classes, with what holds it

SEVERAL_ROOTS = "[several roots]"
NO_ROOT = "[no recorded root]"


class ClassTree(NamedTuple):
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
    """Returns a tree in which the objects of one class that objects of one path of classes dominate are one row; a
    class that holds itself, as the links of a list do, is one row, too."""
    n, kinds, above = len(graph.objects), root_kinds(graph), immediate_dominators(graph)
    tops = [f"[{trace.strings[kind] or 'root'}]" for kind in kinds.tolist()] + [NO_ROOT, SEVERAL_ROOTS]
    top = np.where(above < 0, len(tops) - 1, above - n).astype(np.int32)
    dominator = np.where(above >= n, -1, above).astype(np.int32)
    class_of_object = np.ascontiguousarray(graph.objects["class_name"])
    parent, class_name, node_of, n_cut = merge_classes(dominator, top, class_of_object, len(tops), MAX_DEPTH)
    objects, sizes = counted(node_of, graph.objects["size"], len(parent))
    return ClassTree(tops, parent, class_name, objects, sizes, n_cut)


def counted(group: Array, size: Array, n_groups: int) -> tuple[Array, Array]:
    """Returns how many there are of each group, and the sum of their sizes; int64."""
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
    """Returns every class of either, those that grew by the most bytes first."""
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
    """The living objects that one place allocated. stack: of the trace, without the class at its leaf; -1 is none."""

    stack: int
    class_name: str
    objects: int
    bytes: int


def live_sites(trace: Trace, graph: HeapGraph) -> list[LiveSite]:
    """Returns the sites of the objects of a snapshot, those with the most bytes first; objects without a site are left
    out."""
    known = graph.objects.take(graph.objects["site"] >= 0)
    sites, first, group = np.unique(known["site"], return_index=True, return_inverse=True)
    objects, sizes = counted(group, known["size"], len(sites))
    classes = known["class_name"][first].tolist()
    prefixes = trace.stacks["prefix"][sites].tolist()
    order = np.argsort(-sizes, kind="stable").tolist()
    return [
        LiveSite(prefixes[i], trace.strings[classes[i]] or UNKNOWN_CLASS, int(objects[i]), int(sizes[i])) for i in order
    ]
