"""Totals that name what they count, and so outlive their trace: of any number of recordings they can be merged, in any
order and grouping, with equal results.

Amounts are int64 and not negative; sums end at 2^63 - 1. Keys and nodes have one order, so that equal totals are equal
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from traceferry.analysis.totals._trees import count_above
from traceferry.analysis.totals.branches import of_functions
from traceferry.analysis.totals.collect import Collected
from traceferry.analysis.totals.details import Details, name_pattern, retained_by_class, thread_key
from traceferry.analysis.totals.per_run import stable_file, stable_name
from traceferry.analysis.totals.rows import Key, Pair, Rows, by_pair, key_order, sorted_places
from traceferry.analysis.totals.series import Series
from traceferry.analysis.totals.sites import allocators
from traceferry.analysis.totals.sums_of_trace import AMOUNT_NAMES, MARKERS, TIERS, code_by_tier
from traceferry.analysis.totals.trees import Trees
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.model import Array, Trace, distinct
from traceferry.native.distinct import distinct_pairs


@dataclass(frozen=True)
class Amounts:
    """The amounts that nodes have themselves, without zeros: a column for each measure would grow with measures x
    nodes. node, measure: int32, their numbers in a tree; value: int64, above 0."""

    node: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    measure: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    value: Array = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of_columns(cls, columns: Array) -> Amounts:
        """columns: int64 [nodes, measures]"""
        measure, node = np.nonzero(columns.T)
        return cls(node.astype(np.int32), measure.astype(np.int32), columns[node, measure])

    @classmethod
    def joined(cls, parts: Iterable[tuple[Array, Array, Array]]) -> Amounts:
        """Joins parts of (node, measure, value), in their order."""
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return cls(columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2]) if columns else cls()

    def summed(self) -> Amounts:
        """Sorted by measure, then node; each pair once."""
        measure, node, value = by_pair(self.measure, self.node, self.value)
        return Amounts(node, measure, value)


@dataclass(frozen=True)
class Tree:
    """Call paths. frames: (name, file, line, kind, category, tier, inlined), sorted; parent: int32, always a smaller
    node, -1 is none; frame: int32; measures: keys, as (name, unit), sorted; own: what each node has itself, sorted by
    measure, then node. Nodes are sorted by depth, then parent, then frame."""

    frames: tuple[Key, ...] = ()
    parent: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    frame: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    measures: tuple[Key, ...] = ()
    own: Amounts = field(default_factory=Amounts)

    @classmethod
    def of(cls, frames: Sequence[Key], parent: Array, frame: Array, measures: Sequence[Key], own: Amounts) -> Tree:
        """Frames, measures and nodes in any order, also repeated, but a node's parent comes before it."""
        used, nth_used = np.unique(frame, return_inverse=True)
        names, place_of_frame = sorted_places([frames[nth] for nth in used.tolist()])
        units, place_of_measure = sorted_places(measures)
        node_of, parents, keys = _canonical(parent, place_of_frame[nth_used.reshape(-1)])
        summed = Amounts(node_of[own.node], place_of_measure[own.measure], own.value).summed()
        return cls(tuple(names), parents, keys, tuple(units), summed)

    def amounts(self, measure: Key) -> tuple[Array, Array]:
        """Returns (int32, rising: the nodes that have something of a measure themselves; int64: how much)"""
        place = self._places.get(measure, len(self.measures))
        start, end = np.searchsorted(self.own.measure, (place, place + 1))
        return self.own.node[start:end], self.own.value[start:end]

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {measure: nth for nth, measure in enumerate(self.measures)}

    def column(self, measure: Key) -> Array:
        """int64 [nodes]: what each node has of a measure itself."""
        node, value = self.amounts(measure)
        found = np.zeros(len(self.parent), np.int64)
        found[node] = value
        return found

    def merged(self, *others: Tree) -> Tree:
        filled = [tree for tree in (self, *others) if len(tree.parent) or tree.measures]
        if not filled:
            return self
        measures = sorted({key for tree in filled for key in tree.measures}, key=key_order)
        n_nodes = sum(len(tree.parent) for tree in filled)
        parent, frame = np.empty(n_nodes, np.int32), np.empty(n_nodes, np.int32)
        place = {key: nth for nth, key in enumerate(measures)}
        frames: list[Key] = []
        own, first = [], 0
        for tree in filled:
            end = first + len(tree.parent)
            parent[first:end] = np.where(tree.parent < 0, -1, tree.parent + first)
            frame[first:end] = tree.frame + len(frames)
            places = np.array([place[key] for key in tree.measures], np.int32)
            own.append((tree.own.node + first, places[tree.own.measure], tree.own.value))
            frames += tree.frames
            first = end
        return Tree.of(frames, parent, frame, measures, Amounts.joined(own))


@dataclass(frozen=True)
class Totals:
    """All totals of one recording, or of several."""

    functions: Rows = Rows(("calls", "total_ns", "self_ns", "samples", "total_samples"))
    classes: Rows = Rows(AMOUNT_NAMES)
    markers: Rows = MARKERS
    marker_sums: Rows = Rows(("bytes",))
    tiers: Rows = TIERS
    tree: Tree = Tree()
    # Of these a recording that was collected without details has nothing.
    sites: Rows = Rows(AMOUNT_NAMES)
    events: Rows = MARKERS
    durations: Rows = Rows(("count",))
    code: Rows = Rows(("objects", "bytes", "samples", "loaded_ns"), largest=frozenset({"loaded_ns"}))
    retained: Rows = Rows(("objects", "bytes", "retained_bytes"))
    threads: Rows = Rows(("threads", "samples", "calls", "allocated_bytes", "waiting_ns", "preempted_ns"))
    # By process and thread, and by function where several events were recorded, and (name, unit, kind) of the event.
    recorded: Rows = Rows(("samples", "weight"))
    weights: Rows = Rows(("samples", "total_samples", "weight", "total_weight"))
    losses: Rows = Rows(("count",))
    # How viewers show categories and tiers: ("category" or "tier", name, family, color).
    colors: Rows = Rows(("recordings",))

    def merged(self, *others: Totals) -> Totals:
        """Returns the totals of all together; their order does not matter."""
        return Totals(
            *(getattr(self, f.name).merged(*(getattr(other, f.name) for other in others)) for f in fields(self))
        )


def portable(collected: Collected, with_tree: bool = True) -> Totals:
    """Returns the totals of one trace. Functions with equal name, file, line and kind are one, without what only this
    run has in them. with_tree: with the call trees, where they were made."""
    trace, none = collected.trace, Totals()
    functions = _functions(trace)
    by_func = collected.by_func(_same_functions(functions))
    seen = np.flatnonzero((by_func["calls"] > 0) | (by_func["total_samples"] > 0))
    by_class = collected.allocations.by_class
    classes = np.flatnonzero(by_class.any(axis=1))
    named_classes = [(trace.strings[row - 1] or UNKNOWN_CLASS,) for row in classes.tolist()]
    n = len(MARKERS.columns)
    markers, marker_sums = list[Pair](), list[Pair]()
    for marker_type, groups in collected.markers.by_type().items():
        for values, amounts in zip(groups.keys, groups.amounts.tolist(), strict=True):
            key = marker_type.name, *values
            markers.append((key, amounts[:n]))
            marker_sums += [((*key, name), [of]) for name, of in zip(groups.columns[n:], amounts[n:], strict=True)]
    return Totals(
        none.functions.of(
            [functions[func] for func in seen.tolist()], np.stack([by_func[name][seen] for name in by_func], axis=1)
        ),
        none.classes.of(named_classes, by_class[classes]),
        none.markers.of_pairs(markers),
        none.marker_sums.of_pairs(marker_sums),
        code_by_tier(trace),
        Tree() if collected.trees is None or not with_tree else tree_of(trace, collected.trees, _measure),
        **({} if collected.details is None else _details(collected, collected.details, functions)),
    )


def _measure(series: Series) -> Key:
    return series.measure.name, series.measure.unit


def tree_of(trace: Trace, trees: Trees, measure_of: Callable[[Series], Key | None]) -> Tree:
    """Returns the call paths with a measure for each value of measure_of; series of which it is None are left out."""
    measures: dict[Key, int] = {}
    own = []
    for series in trees.series:
        if (key := measure_of(series)) is not None:
            nth = measures.setdefault(key, len(measures))
            own.append((series.node, np.full(len(series.node), nth), series.amount))
    frames, nodes = tree_frames(trace, trees), trees.nodes
    return Tree.of(frames, nodes.parent, nodes.key, [*measures], Amounts.joined(own))


def _details(collected: Collected, details: Details, functions: Sequence[Key]) -> dict[str, Rows]:
    trace = collected.trace
    threads = [
        (
            thread_key(process.name, thread["name"]),
            [1, thread["samples"], thread["calls"], thread["allocations"]["bytes"], 0, 0],
        )
        for process, counts in zip(trace.processes, collected.processes, strict=True)
        for thread in counts.threads
    ]
    pairs: dict[str, list[Pair]] = {
        **details.pairs,
        "threads": threads + details.pairs["threads"],
        "sites": _sites(collected, functions),
        "code": _code(collected, functions),
        "weights": _weights(collected, details, functions),
        "retained": retained_by_class(trace),
        "colors": [(key, [1]) for key in _colors(trace)],
        "losses": [((issue.kind,), [issue.count]) for issue in trace.report if issue.severity != "info"],
    }
    return {name: getattr(Totals(), name).of_pairs(found) for name, found in pairs.items()}


def _weights(collected: Collected, details: Details, functions: Sequence[Key]) -> list[Pair]:
    """Returns what each function has of each event, itself and with what it calls."""
    trace = collected.trace
    group = _same_functions(functions)
    found: list[Pair] = []
    for row, weights in collected.weights.items():
        counts = details.counts.get(row, collected.samples)
        columns = np.stack([*counts.by_func(group), *weights.by_func(group)], axis=1)
        key = trace.events[row].key
        found += [((*functions[func], *key), columns[func]) for func in np.flatnonzero(columns[:, 1]).tolist()]
    # Who called a function is not recorded with its branches.
    found += [
        ((*functions[of.func], *of.event.key), [of.n, of.n, of.amount, of.amount])
        for of in of_functions(trace, collected.branches)
    ]
    return found


def _colors(trace: Trace) -> list[Key]:
    strings, categories, tiers = trace.strings, trace.categories, trace.tiers
    pairs = zip(categories["name"].tolist(), categories["color"].tolist(), strict=True)
    found: list[Key] = [("category", strings[name], "", strings[color]) for name, color in pairs]
    triples = zip(tiers["name"].tolist(), tiers["family"].tolist(), tiers["color"].tolist(), strict=True)
    found += [("tier", strings[name], strings[family], strings[color]) for name, family, color in triples]
    return sorted(set(found))


def _sites(collected: Collected, functions: Sequence[Key]) -> list[Pair]:
    """Allocations by the function that allocated and the class, which is the innermost frame of their stacks."""
    trace = collected.trace
    by_stack = collected.allocations.by_stack(trace)
    prefix, func = trace.stacks["prefix"][: len(by_stack)], trace.frames["func"][trace.stacks["frame"]]
    used = np.flatnonzero(by_stack.any(axis=1) & (prefix >= 0))
    allocator = func[allocators(trace)[prefix[used]]]
    columns = (of.tolist() for of in (allocator, func[used], by_stack[used]))
    return [((*functions[site], trace.func_name(name)), amounts) for site, name, amounts in zip(*columns, strict=True)]


def _code(collected: Collected, functions: Sequence[Key]) -> list[Pair]:
    """Returns, by function and tier, code objects, their bytes, samples, and when the last one was loaded, since the
    start."""
    trace = collected.trace
    code, names = trace.code, [*(trace.strings[name] for name in trace.tiers["name"].tolist()), ""]
    loaded = np.maximum(code["loaded_at"] - trace.start_ts, 0)
    columns = (of.tolist() for of in (code["func"], code["tier"], code["size"], loaded))
    rows: list[Pair] = [
        ((*functions[func], names[tier]), [1, size, 0, at])
        for func, tier, size, at in zip(*columns, strict=True)
        if func >= 0
    ]
    by_tier = collected.samples.by_tier()
    return rows + [((*functions[func], names[tier]), [0, 0, n, 0]) for func, tier, n in by_tier]


def thread_names(trace: Trace) -> list[list[str]]:
    """Returns for each process the names, without numbers, of its threads, as `Series.thread` counts these."""
    return [
        [name_pattern(thread.name) for thread in process.threads if not thread.sample_unit]
        for process in trace.processes
    ]


def tree_frames(trace: Trace, trees: Trees) -> list[Key]:
    """Returns (name, file, line, kind, category, tier, inlined) of each key of the trees."""
    # The last one is none's, whose number is -1.
    categories, tiers = ([*trace.strings.of(table["name"]), ""] for table in (trace.categories, trace.tiers))
    rows = trees.keys.rows
    return [
        (*function, categories[category], tiers[tier], inlined)
        for function, (_, category, tier, inlined) in zip(_functions(trace, rows[:, 0]), rows.tolist(), strict=True)
    ]


def functions_of(trace: Trace, category: str) -> frozenset[Key]:
    """Returns the functions that have frames of a category, as (name, file, line, kind)."""
    names = [trace.strings[name] for name in trace.categories["name"].tolist()]
    wanted = [nth for nth, name in enumerate(names) if name == category]
    funcs = trace.frames["func"][np.isin(trace.frames["category"], wanted)]
    return frozenset(_functions(trace, distinct(funcs)))


def _same_functions(functions: Sequence[Key]) -> Array:
    """Returns for each func, int32, the first one that is the same function in all runs."""
    first: dict[Key, int] = {}
    return np.array([first.setdefault(function, func) for func, function in enumerate(functions)], np.int32)


def _functions(trace: Trace, funcs: Array | None = None) -> list[Key]:
    """Returns (name, file, line, kind) of each func, or of some, without what only this run has in them; "" and 0 are
    unknown."""
    strings, table = trace.strings, trace.funcs
    rows = np.arange(len(table)) if funcs is None else funcs
    # The last one is that of functions without a source, whose number is -1.
    files = [*(stable_file(path) for path in strings.of(trace.sources["path"])), ""]
    names, kinds = (strings.of(table[column][rows]) for column in ("name", "kind"))
    columns = names, table["source"][rows].tolist(), table["line"][rows].tolist(), kinds
    return [(stable_name(name), files[source], line, kind) for name, source, line, kind in zip(*columns, strict=True)]


def _canonical(parent: Array, frame: Array) -> tuple[Array, Array, Array]:
    """Returns (the new node of each, and the parents and frames of the new nodes), level by level."""
    n = len(parent)
    # One more than the new node of each; that of none is 0.
    node_of = np.zeros(n + 1, np.int32)
    by_depth = np.argsort(depth := depths(parent), kind="stable")
    bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=-1)) + 2))
    parents, frames, first = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 1
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = by_depth[start:end]
        above, keys = node_of[parent[rows]], frame[rows]
        place: Array | int = 0
        # Deep recursion has thousands of levels of one.
        if len(rows) > 1:
            above, keys, place = distinct_pairs(above, keys)
        node_of[rows] = first + place
        parents.append(above - 1)
        frames.append(keys)
        first += len(above)
    return node_of[:n] - 1, np.concatenate(parents), np.concatenate(frames)


def depths(parent: Array) -> Array:
    """int32: how many nodes are above each. parent: int32, always a smaller node."""
    return count_above(np.ascontiguousarray(parent), np.ones(len(parent), np.uint8)) - 1
