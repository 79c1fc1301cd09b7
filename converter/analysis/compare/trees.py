"""The call trees of both sides in one: what each call path has in a run of the base and in one of the new side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from traceferry.analysis.compare.amounts import Key
from traceferry.analysis.compare.comparison import Comparison
from traceferry.analysis.compare.runs import Run
from traceferry.analysis.totals._trees import add_to_ancestors, mark_ancestors
from traceferry.analysis.totals.portable import Tree
from traceferry.analysis.totals.series import ALLOCATED, SAMPLES, SCALED, TIME
from traceferry.analysis.totals.trees import nearest_kept
from traceferry.model import Array, Process, Trace, TraceBuilder

SMALLER = ("(smaller call paths)", "", 0, "", "")
Label = tuple[str, str, str, str]
# Measures that are no further events.
OTHERS = frozenset({TIME.name, SAMPLES.name, ALLOCATED.name})


@dataclass(frozen=True)
class Measured:
    """One measure in the threads of one name. node: int32, rising, those that have something themselves on a side;
    base, new: float64, how much in a run on average, at the level of the base."""

    process: str
    thread: str
    name: str
    unit: str
    node: Array
    base: Array
    new: Array


@dataclass(frozen=True)
class DiffTree:
    """frames: (name, file, line, kind, category); parent: int32, always a smaller node, -1 is none; frame: int32."""

    frames: tuple[Key, ...]
    parent: Array
    frame: Array
    measured: tuple[Measured, ...]
    n_joined: int = 0

    def totals(self, node: Array, *owns: Array) -> tuple[Array, list[Array]]:
        """(int32: the nodes and all above them; float64, of each of the amounts: what each has with all below it)"""
        is_marked, found, place = self._scratch
        nodes = np.sort(found[: mark_ancestors(self.parent, node, is_marked, found)])
        is_marked[nodes] = 0
        place[nodes] = np.arange(len(nodes), dtype=np.int32)
        above = self.parent[nodes]
        parent = np.where(above < 0, np.int32(-1), place[above])
        totals = []
        for own in owns:
            total = np.zeros(len(nodes))
            total[place[node]] = own
            add_to_ancestors(parent, total)
            totals.append(total)
        return nodes, totals

    @cached_property
    def _scratch(self) -> tuple[Array, Array, Array]:
        """Returns arrays with a row for each node: whether it is marked, 0 before and after use; what is marked; its
        place among these."""
        n = len(self.parent)
        return np.zeros(n, np.uint8), np.empty(n, np.int32), np.empty(n, np.int32)

    @cached_property
    def _ranked(self) -> Array:
        """The nodes, those with the largest part of any measure first. A parent has at least what its child has, and
        comes before it."""
        weight = np.zeros(len(self.parent))
        for measured in self.measured:
            owns = measured.base, measured.new
            nodes, totals = self.totals(measured.node, *owns)
            for own, total in zip(owns, totals, strict=True):
                weight[nodes] = np.maximum(weight[nodes], total / max(own.sum(), 1e-300))
        return np.lexsort((np.arange(len(weight)), -weight))

    def largest(self, n: int) -> DiffTree:
        """Returns the tree with the n nodes that have most in any measure; what others have is that of a node of their
        own below the nearest one that is kept."""
        if len(self.parent) <= n:
            return self
        is_kept = np.zeros(len(self.parent), bool)
        is_kept[self._ranked[:n]] = True
        kept, joined = np.flatnonzero(is_kept), np.flatnonzero(~is_kept)
        place = np.full(len(self.parent), -1, np.int64)
        place[kept] = np.arange(n)
        holder, first, of_holder = np.unique(
            nearest_kept(self.parent, is_kept)[joined], return_index=True, return_inverse=True
        )
        # In the order in which they are first needed.
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        place[joined] = n + rank[of_holder.reshape(-1)]
        above = np.concatenate((self.parent[kept], holder[np.argsort(first)]))
        frame = np.append(self.frame[kept], np.full(len(first), len(self.frames), np.int32))
        return DiffTree(
            (*self.frames, SMALLER), np.where(above < 0, -1, place[above]).astype(np.int32), frame,
            tuple(_moved(measured, place) for measured in self.measured), len(joined),
        )  # fmt: skip


def _moved(measured: Measured, place: Array) -> Measured:
    """place: the new number of each node, of several possibly the same."""
    nodes, which = np.unique(place[measured.node], return_inverse=True)
    base, new = (np.bincount(which.reshape(-1), own, len(nodes)) for own in (measured.base, measured.new))
    return replace(measured, node=nodes.astype(np.int32), base=base, new=new)


def diff_tree(comparison: Comparison) -> DiffTree:
    """Functions, processes, threads matched as in the tables: the amounts of a function's nodes add up to its row."""
    sides = comparison.sides
    n_base = len(sides.base)
    trees = [_renamed(comparison, nth, run) for nth, run in enumerate(sides.runs)]
    names = _paired([label for tree in trees[:n_base] for label in tree.measures],
                    [label for tree in trees[n_base:] for label in tree.measures])  # fmt: skip
    named = []
    for nth, tree in enumerate(trees):
        side = 0 if nth < n_base else 1
        labels = [(side, *(names.get(label, label) if side == 0 else label)) for label in tree.measures]
        named.append(replace(tree, measures=tuple(labels)))
    whole = Tree().merged(*named)
    measured = []
    compared = dict.fromkeys(label[1:] for label in whole.measures if _is_compared(comparison, label[1:]))
    # What the tables `self` have comes first.
    for label in sorted(compared, key=lambda label: label[2] not in OTHERS):
        sides_of_label = [whole.amounts((side, *label)) for side in range(2)]
        nodes = np.union1d(*(node for node, _ in sides_of_label))
        base, new = (
            _placed(nodes, node, value.astype(np.float64) / level)
            for (node, value), level in zip(sides_of_label, _levels(comparison, label), strict=True)
        )
        process, thread, name, unit = label
        measured.append(Measured(process, thread, name, unit, nodes, base, new))
    return DiffTree(tuple(frame[:5] for frame in whole.frames), whole.parent, whole.frame, tuple(measured))


def _placed(nodes: Array, node: Array, value: Array) -> Array:
    """float64: of each of the nodes its value, 0 where it has none."""
    found = np.zeros(len(nodes))
    found[np.searchsorted(nodes, node)] = value
    return found


def _is_compared(comparison: Comparison, label: Label) -> bool:
    """Events that one side lacks would be new or gone everywhere."""
    return label[2] in OTHERS or _event_of(label) in comparison.events.names


def _event_of(label: Label) -> str:
    return label[2].removesuffix(SCALED)


def _levels(comparison: Comparison, label: Label) -> tuple[float, float]:
    """Returns what the sums of both sides are divided by: the sums of the factors of their runs."""
    n_base = len(comparison.sides.base)
    of_run = np.ones(len(comparison.sides.runs))
    of_event = comparison.tables_named(_event_of(label)) if label[2] not in OTHERS else []
    if of_event:
        of_run = of_event[0].factors.of_run
    for table in comparison.tables_named("self") if not of_event else ():
        # Other weights of samples, as cycles, are at the level of the samples.
        if (table.amounts.unit == "ns") == (label[3] == "ns") and label[2] != "allocated bytes":
            of_run = table.factors.of_run
    parts = _parts(comparison) if label[2] == SAMPLES.name else 1
    return float(of_run[:n_base].sum()) * parts, float(of_run[n_base:].sum()) * parts


def _renamed(comparison: Comparison, nth: int, run: Run) -> Tree:
    """Returns the tree with frames by what they are called here: without tiers and inlining, which are not the
    function's."""
    tree = run.trees
    frames = [(*comparison.sides.function_of(nth, frame[:4]), frame[4], "", 0) for frame in tree.frames]
    # Samples are counted in the smallest parts of any run.
    is_counted = np.array([label[2] == SAMPLES.name for label in tree.measures], bool)[tree.own.measure]
    value = tree.own.value * np.where(is_counted, _parts(comparison) // run.parts, 1)
    return Tree.of(frames, tree.parent, tree.frame, tree.measures, replace(tree.own, value=value))


def _parts(comparison: Comparison) -> int:
    return max(run.parts for run in comparison.sides.runs)


def _paired(base: Sequence[Label], new: Sequence[Label]) -> dict[Label, Label]:
    """Returns what labels of the base are called on the new side: the only process or thread that one side has is the
    only one that the other has, whatever its name."""
    processes = _only({label[0] for label in base}, {label[0] for label in new})
    found: dict[Label, Label] = {}
    for process in {label[0] for label in base}:
        other = processes.get(process, process)
        threads = _only({x[1] for x in base if x[0] == process}, {x[1] for x in new if x[0] == other})
        for label in base:
            if label[0] == process:
                found[label] = (other, threads.get(label[1], label[1]), *label[2:])
    return found


def _only(base: set[str], new: set[str]) -> dict[str, str]:
    left, right = base - new, new - base
    return {left.pop(): right.pop()} if len(left) == len(right) == 1 else {}


# ---------------------------------------------------------------- as a trace


def as_trace(comparison: Comparison, tree: DiffTree) -> TraceBuilder:
    """The tables that exporters write frames and stacks from: stack i of the trace is node i of the tree. Each measure
    is a thread, whose samples weigh nothing: what they weigh is in the tree."""
    trace = TraceBuilder()
    strings = trace.strings
    rows = []
    for name, file, line, kind, category in tree.frames:
        source = trace.sources.intern(path=strings.intern(file)) if file else -1
        color = strings.intern("blue")
        of_category = trace.categories.intern(name=strings.intern(category), color=color) if category else -1
        rows.append((strings.intern(name), source, line, strings.intern(kind) if kind else -1, of_category))
    names, sources, lines, kinds, categories = ([row[i] for row in rows] for i in range(5))
    trace.funcs.extend(name=names, source=sources, line=lines, kind=kinds)
    trace.frames.extend(func=list(range(len(rows))), category=categories)
    trace.stacks.extend(prefix=tree.parent, frame=tree.frame)
    duration = max((run.duration_ns for run in (*comparison.base, *comparison.new)), default=0)
    for name in dict.fromkeys(measured.process for measured in tree.measured):
        trace.processes.append(Process(len(trace.processes) + 1, name or "process", 0, duration))
    trace.bounds = (0, duration)
    trace.attributes = {
        "base": ", ".join(run.path for run in comparison.base), "new": ", ".join(run.path for run in comparison.new),
    }  # fmt: skip
    return trace


def process_of(trace: Trace, measured: Measured) -> Process:
    return next(process for process in trace.processes if process.name == (measured.process or "process"))
