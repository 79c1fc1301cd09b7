"""Heap snapshots as threads: their samples are stacks of classes, or of allocating functions, and weigh bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np

from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.heap.classes import ClassTree, by_class, counted
from traceferry.model import SAMPLES, Array, HeapSnapshot, Process, Table, Thread, ThreadData, TraceBuilder

NO_SITE = "[no recorded site]"
OBJECTS = ("Objects", "green")
ROOTS = ("Roots", "grey")


def views_of(trace: TraceBuilder, process: Process) -> list[Thread]:
    """Returns a thread for each heap snapshot whose samples are the tree of classes and weigh bytes; and one of the
    stacks that allocated the objects, where they are known. Loads each snapshot once, to see if they are."""
    for category in (OBJECTS, ROOTS):
        trace.add_category(*category)
    threads: list[Thread] = []
    used = {thread.tid for thread in process.threads}
    free = (tid for tid in count(1) if tid not in used)

    def add(name: str, snapshot: HeapSnapshot, make: Callable[[TraceBuilder], ThreadData]) -> None:
        start, end = snapshot.start_ts, snapshot.end_ts
        threads.append(Thread(next(free), name, False, start, end, make, sample_unit="bytes"))

    for nth, snapshot in enumerate(process.heap_snapshots, 1):
        name = f"heap shot {nth}"
        add(name, snapshot, partial(_tree_samples, name, snapshot))
        if np.any(snapshot.load(trace).objects["site"] >= 0):
            add(f"{name} by allocation site", snapshot, partial(_site_samples, snapshot))
    return threads


def _tree_samples(name: str, snapshot: HeapSnapshot, trace: TraceBuilder) -> ThreadData:
    tree = by_class(trace, snapshot.load(trace))
    trace.report.note("heap_depth_cut", tree.n_cut, where=name, detail=name)
    stacks = _stacks(trace, tree)
    held = tree.objects > 0
    return _samples(snapshot, stacks[held], tree.bytes[held])


def _stacks(trace: TraceBuilder, tree: ClassTree) -> Array:
    """Returns a stack of the trace for each row; -1 for tops that hold nothing."""
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


def _site_samples(snapshot: HeapSnapshot, trace: TraceBuilder) -> ThreadData:
    """Returns samples of what lives by the stack that allocated it; by class where that is not known."""
    objects = snapshot.load(trace).objects
    site, size, class_name = objects["site"], objects["size"], objects["class_name"]
    stacks, group = np.unique(site[site >= 0], return_inverse=True)
    classes, class_group = np.unique(class_name[site < 0], return_inverse=True)
    if len(classes):
        nowhere = trace.stacks.intern(frame=_frame(trace, NO_SITE, ROOTS))
    of_classes = [trace.stacks.intern(prefix=nowhere, frame=class_frame(trace, nth)) for nth in classes.tolist()]
    of_known = counted(group, size[site >= 0], len(stacks))[1]
    of_unknown = counted(class_group, size[site < 0], len(classes))[1]
    return _samples(snapshot, np.append(stacks, of_classes), np.append(of_known, of_unknown))


def _samples(snapshot: HeapSnapshot, stacks: Array, sizes: Array) -> ThreadData:
    ts = np.full(len(stacks), snapshot.start_ts, np.int64)
    return ThreadData(samples=Table(SAMPLES, {"ts": ts, "stack": stacks, "weight": sizes}))


def class_frame(trace: TraceBuilder, class_name: int) -> int:
    """Returns the frame that stands for a class's objects, in stacks of allocations and of heaps. class_name: a string
    of the trace, -1 is unknown."""
    return _frame(trace, trace.strings[class_name] or UNKNOWN_CLASS, OBJECTS)


def _frame(trace: TraceBuilder, name: str, category: tuple[str, str]) -> int:
    func = trace.funcs.intern(name=trace.strings.intern(name))
    return trace.frames.intern(func=func, category=trace.add_category(*category))
