"""What keeps a heap's objects alive: dominator trees, their sizes by class, growth, and who allocated what lives.

An object *dominates* another if every path from a root to the other goes through it: without it, the other would go.
Its *retained size* is its own and that of all it dominates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from traceferry.heap import heap_kernel
from traceferry.model import SAMPLES, Array, HeapGraph, HeapSnapshot, Process, Table, Thread, ThreadData, Trace

# What dominators() says of an object that no object dominates: roots hold it; no recorded root reaches it.
BY_ROOTS = -1
BY_NOTHING = -2

MAX_DEPTH = 256  # frames of a stack of classes, with what holds it

SEVERAL_ROOTS = "[several roots]"
NO_ROOT = "[no recorded root]"
NO_SITE = "[no recorded site]"
UNKNOWN_CLASS = "[unknown class]"
OBJECTS = ("Objects", "green")
ROOTS = ("Roots", "grey")


# ---------------------------------------------------------------- dominators


def dominators(graph: HeapGraph) -> Array:
    """int32: for each object the row of the one that dominates it most closely, BY_ROOTS or BY_NOTHING.

    What no root reaches hangs together, too: objects to which nothing refers stand for roots there, and where a circle
    has none, its first object.
    """
    holders = _holders(graph)
    n, n_kinds = len(graph.objects), len(_root_kinds(graph))
    top = np.where(holders == n + n_kinds, BY_NOTHING, BY_ROOTS)
    return np.where((holders < 0) | (holders >= n), top, holders).astype(np.int32)


def retained_sizes(graph: HeapGraph, dominator: Array) -> Array:
    """int64: for each object its own size and the sizes of all that it dominates, in bytes. dominator: as found by
    `dominators`."""
    retained: Array = graph.objects["size"].astype(np.int64)
    heap_kernel.add_up(_bottom_up(dominator), dominator, retained)
    return retained


def _bottom_up(dominator: Array) -> Array:
    order = np.empty(len(dominator), np.int32)
    n = heap_kernel.bottom_up(dominator, np.zeros(len(dominator), np.int32), order)
    return order[:n]


def _root_kinds(graph: HeapGraph) -> Array:
    """The kinds of roots that there are, as strings of the trace."""
    return np.unique(graph.roots["kind"][graph.roots["object"] >= 0])


def _holders(graph: HeapGraph) -> Array:
    """int32: what dominates each object most closely: an object; n objects + the row of `_root_kinds`, if it is kept
    alive by roots of that kind only; n + the number of kinds, if no root reaches it; -1 for roots of several kinds.

    Each kind is a node that refers to its roots, and so is "nothing": then it is all a question of dominators.
    """
    n, kinds = len(graph.objects), _root_kinds(graph)
    roots = graph.roots.take(graph.roots["object"] >= 0)
    by_kind = roots.take(np.argsort(roots["kind"], kind="stable"))
    ends = np.searchsorted(by_kind["kind"], kinds, side="right")
    offsets = np.concatenate((graph.offsets, graph.offsets[-1] + ends)).astype(np.int64)
    references = np.concatenate((graph.references, by_kind["object"])).astype(np.int32)
    offsets, references = _with_unreached(offsets, references, np.arange(n, n + len(kinds), dtype=np.int32))
    return _dominators(offsets, references, np.arange(n, n + len(kinds) + 1, dtype=np.int32))[:n]


def _with_unreached(offsets: Array, references: Array, entries: Array) -> tuple[Array, Array]:
    """The graph with one more node, which leads to all those to which the entries do not lead. These no longer refer to
    the others, so that they hold nothing that a root holds."""
    n = len(offsets) - 1
    visited, path, chosen = np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32)
    heap_kernel.cover(offsets, references, entries, visited, path, chosen)
    unreached = np.flatnonzero(visited == 0).astype(np.int32)
    if len(unreached):
        source = np.repeat(np.arange(n, dtype=np.int32), np.diff(offsets))
        is_kept = visited[source] == visited[references]
        references = references[is_kept]
        offsets = np.append(0, np.cumsum(np.bincount(source[is_kept], minlength=n)))
    is_referred = np.zeros(n, bool)
    is_referred[references] = True
    candidates = np.concatenate((unreached[~is_referred[unreached]], unreached))
    chosen = np.empty(len(candidates), np.int32)
    n_chosen = heap_kernel.cover(offsets, references, candidates, visited, path, chosen)
    return np.append(offsets, len(references) + n_chosen), np.concatenate((references, chosen[:n_chosen]))


def _dominators(offsets: Array, references: Array, entries: Array) -> Array:
    """int32: the node that dominates each node most closely, -1 for none. Nothing refers to an entry."""
    n = len(offsets) - 1
    number, order, parent = np.zeros(n, np.int32), np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    n_reached = heap_kernel.preorder(offsets, references, entries, number, order, parent, np.empty(n + 1, np.int64))
    first, referrer = np.zeros(n_reached + 3, np.int64), np.empty(len(references), np.int32)
    heap_kernel.invert(offsets, references, number, order, n_reached, first, referrer)
    rooms = [np.empty(n_reached + 1, np.int32) for _ in range(5)]
    heap_kernel.dominate(parent, first, referrer, n_reached, *rooms)
    order[0] = -1
    by_node = np.full(n, -1, np.int32)
    by_node[order[1 : n_reached + 1]] = order[rooms[-1][1:]]
    return by_node


# ---------------------------------------------------------------- the tree of classes


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
    n, kinds, holders = len(graph.objects), _root_kinds(graph), _holders(graph)
    tops = [f"[{trace.strings[kind] or 'root'}]" for kind in kinds.tolist()] + [NO_ROOT, SEVERAL_ROOTS]
    top = np.where(holders < 0, len(tops) - 1, holders - n).astype(np.int32)
    dominator = np.where(holders >= n, -1, holders).astype(np.int32)
    room = n + len(tops)
    parent, class_name, depth = (np.full(room, start, np.int32) for start in (-1, -2, 1))
    slots = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
    node_of, state = np.empty(n, np.int32), np.array([len(tops), 0], np.int64)
    heap_kernel.merge_classes(
        _bottom_up(dominator), dominator, top, np.ascontiguousarray(graph.objects["class_name"]), MAX_DEPTH,
        parent, class_name, depth, slots, node_of, state,
    )  # fmt: skip
    n_rows, n_cut = state.tolist()
    objects, sizes = _counted(node_of, graph.objects["size"], n_rows)
    return ClassTree(tops, parent[:n_rows], class_name[:n_rows], objects, sizes, n_cut)


def _counted(group: Array, size: Array, n_groups: int) -> tuple[Array, Array]:
    """(how many there are, sum of their sizes) of each group, int64."""
    sizes = np.zeros(n_groups, np.int64)
    np.add.at(sizes, group, size)
    return np.bincount(group, minlength=n_groups), sizes


# ---------------------------------------------------------------- views


def views(trace: Trace, process: Process) -> list[Thread]:
    """A thread for each heap snapshot whose samples are the tree of classes and weigh bytes; and one of the stacks that
    allocated the objects, where they are known. Loads each snapshot once, to see if they are."""
    for category in (OBJECTS, ROOTS):
        _category(trace, category)
    threads: list[Thread] = []
    for nth, snapshot in enumerate(process.heap_snapshots, 1):
        name = f"heap shot {nth}"
        _add_view(process, threads, name, snapshot, partial(_tree_samples, trace, name, snapshot))
        if np.any(snapshot.load().objects["site"] >= 0):
            samples = partial(_site_samples, trace, snapshot)
            _add_view(process, threads, f"{name} by allocation site", snapshot, samples)
    return threads


def _add_view(
    process: Process, threads: list[Thread], name: str, snapshot: HeapSnapshot, load: Callable[[], ThreadData]
) -> None:
    used = {thread.tid for thread in [*process.threads, *threads]}
    tid = next(tid for tid in range(1, len(used) + 2) if tid not in used)
    threads.append(Thread(tid, name, False, snapshot.start_ts, snapshot.end_ts, load, sample_unit="bytes"))


def _tree_samples(trace: Trace, name: str, snapshot: HeapSnapshot) -> ThreadData:
    tree = by_class(trace, snapshot.load())
    trace.report.note("heap_depth_cut", tree.n_cut, where=name, detail=name)
    stacks = _stacks(trace, tree)
    held = tree.objects > 0
    return _samples(snapshot, stacks[held], tree.bytes[held])


def _stacks(trace: Trace, tree: ClassTree) -> Array:
    """A stack of the trace for each row; -1 for tops that hold nothing."""
    is_used = tree.objects > 0
    is_used[tree.parent[len(tree.tops) :]] = True
    stacks: list[int] = []
    for parent, class_name, used in zip(tree.parent.tolist(), tree.class_name.tolist(), is_used.tolist(), strict=True):
        nth = len(stacks)
        if not used:
            stacks.append(-1)
        elif parent < 0:
            stacks.append(trace.stacks.intern(frame=_frame(trace, tree.tops[nth], ROOTS)))
        else:
            stacks.append(trace.stacks.intern(prefix=stacks[parent], frame=class_frame(trace, class_name)))
    return np.array(stacks, np.int32)


def _site_samples(trace: Trace, snapshot: HeapSnapshot) -> ThreadData:
    """What lives by the stack that allocated it; by class where that is not known."""
    objects = snapshot.load().objects
    site, size, class_name = objects["site"], objects["size"], objects["class_name"]
    stacks, group = np.unique(site[site >= 0], return_inverse=True)
    classes, class_group = np.unique(class_name[site < 0], return_inverse=True)
    if len(classes):
        nowhere = trace.stacks.intern(frame=_frame(trace, NO_SITE, ROOTS))
    of_classes = [trace.stacks.intern(prefix=nowhere, frame=class_frame(trace, nth)) for nth in classes.tolist()]
    of_known = _counted(group, size[site >= 0], len(stacks))[1]
    of_unknown = _counted(class_group, size[site < 0], len(classes))[1]
    return _samples(snapshot, np.append(stacks, of_classes), np.append(of_known, of_unknown))


def _samples(snapshot: HeapSnapshot, stacks: Array, sizes: Array) -> ThreadData:
    ts = np.full(len(stacks), snapshot.start_ts, np.int64)
    return ThreadData(samples=Table(SAMPLES, {"ts": ts, "stack": stacks, "weight": sizes}))


def class_frame(trace: Trace, class_name: int) -> int:
    """The frame that stands for a class's objects, in stacks of allocations and of heaps. class_name: a string of the
    trace, -1 is unknown."""
    return _frame(trace, trace.strings[class_name] or UNKNOWN_CLASS, OBJECTS)


def _frame(trace: Trace, name: str, category: tuple[str, str]) -> int:
    func = trace.funcs.intern(name=trace.strings.intern(name))
    return trace.frames.intern(func=func, category=_category(trace, category))


def _category(trace: Trace, category: tuple[str, str]) -> int:
    name, color = (trace.strings.intern(word) for word in category)
    return trace.categories.intern(name=name, color=color)


# ---------------------------------------------------------------- comparisons


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
        for column in _counted(graph.objects["class_name"] + 1, graph.objects["size"], n)
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
    objects, sizes = _counted(group, known["size"], len(sites))
    classes = known["class_name"][first].tolist()
    prefixes = trace.stacks["prefix"][sites].tolist()
    order = np.argsort(-sizes, kind="stable").tolist()
    return [
        LiveSite(prefixes[i], trace.strings[classes[i]] or UNKNOWN_CLASS, int(objects[i]), int(sizes[i])) for i in order
    ]
