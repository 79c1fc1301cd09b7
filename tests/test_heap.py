"""Heap graphs: what dominates what, what it retains, trees by class, growth, sites; and the laws of such graphs.

Notation. "static>a stack>b a>c,d" is a graph: roots of two kinds, and references. An object's class is its letter in
capitals, so a1 and a2 are two objects of class A; they are numbered in the order of their first mention, and the n-th
has a size of 2 to the power of n bytes, so that every sum tells who is in it.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceferry.heap import _dominators
from traceferry.heap._allocations import tally
from traceferry.heap._dominators import bottom_up
from traceferry.heap.classes import by_class, growth, live_sites
from traceferry.heap.dominators import immediate_dominators, root_kinds
from traceferry.heap.views import class_frame, views_of
from traceferry.model import (
    ALLOCATIONS,
    HEAP_OBJECTS,
    HEAP_ROOTS,
    Array,
    Clock,
    HeapGraph,
    HeapSnapshot,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
    laws,
)

KINDS = ("static", "stack")


def objects_of(text: str) -> dict[str, int]:
    """Name → row."""
    words = [word for side in text.replace(">", " ").replace(",", " ").split() if (word := side) not in KINDS]
    return {name: row for row, name in enumerate(dict.fromkeys(words))}


def edges_of(text: str) -> list[tuple[str, str]]:
    pairs = (word.partition(">") for word in text.split())
    return [(source, target) for source, _, targets in pairs for target in targets.split(",") if target]


def graph_of(text: str, trace: Trace | None = None, sites: dict[str, int] | None = None) -> HeapGraph:
    intern = (trace or TraceBuilder()).strings.intern
    rows = objects_of(text)
    edges = [(rows[a], rows[b]) for a, b in edges_of(text) if a not in KINDS]
    held = [(intern(a), rows[b]) for a, b in edges_of(text) if a in KINDS]
    edges.sort(key=lambda edge: edge[0])
    counts = np.bincount([a for a, _ in edges], minlength=len(rows)) if edges else np.zeros(len(rows), np.int64)
    columns = {
        "address": np.arange(len(rows), dtype=np.uint64) * 16 + 0x1000,
        "class_name": [intern(name[0].upper()) for name in rows],
        "size": [1 << row for row in rows.values()],
        "site": [(sites or {}).get(name, -1) for name in rows],
    }
    return HeapGraph(
        Table(HEAP_OBJECTS, columns if rows else {}),
        np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        np.array([b for _, b in edges], np.int32),
        Table(HEAP_ROOTS, {"object": [o for _, o in held], "kind": [k for k, _ in held]} if held else {}),
    )


# What `dominators` says of an object that no object dominates: roots hold it; no recorded root reaches it.
BY_ROOTS = -1
BY_NOTHING = -2


def dominators(graph: HeapGraph) -> Array:
    """int32: for each object the row of the one that dominates it most closely, BY_ROOTS or BY_NOTHING."""
    found, n = immediate_dominators(graph), len(graph.objects)
    assert found.dtype == np.int32
    above = np.where(found == n + len(root_kinds(graph)), BY_NOTHING, BY_ROOTS)
    return np.where((found < 0) | (found >= n), above, found).astype(np.int32)


def retained_sizes(graph: HeapGraph, dominator: Array) -> list[int]:
    """For each object its own size and the sizes of all that it dominates."""
    retained: list[int] = graph.objects["size"].tolist()
    for row in bottom_up(dominator).tolist():
        if dominator[row] >= 0:
            retained[dominator[row]] += retained[row]
    return retained


def in_words(text: str, dominator: Array) -> str:
    """The dominator of each object: a letter, "*" for roots, "-" for nothing."""
    names = {row: name for name, row in objects_of(text).items()} | {BY_ROOTS: "*", BY_NOTHING: "-"}
    return " ".join(f"{names[row]}>{names[above]}" for row, above in enumerate(dominator.tolist()))


DOMINATORS = {
    "nothing": ("", ""),
    "a chain": ("static>a a>b b>c", "a>* b>a c>b"),
    "two ways": ("static>a a>b,c b>d c>d", "a>* b>a c>a d>a"),
    "two ways, and one beside": ("static>a a>b,c b>d c>d d>e", "a>* b>a c>a d>a e>d"),
    "two roots": ("static>a stack>b a>c b>c c>d", "a>* b>* c>* d>c"),
    "two roots of one kind": ("static>a,b a>c b>c", "a>* b>* c>*"),
    "a root inside": ("static>a a>b b>c stack>b", "a>* b>* c>b"),
    "a root of two kinds": ("static>a stack>a a>b", "a>* b>a"),
    "a circle": ("static>a a>b b>c c>a", "a>* b>a c>b"),
    "to itself, and twice": ("static>a a>a,b,b", "a>* b>a"),
    "back edges, from Georgiadis": (
        "static>r r>a,b,c a>d b>a,d,e c>f,g d>l e>h f>i g>i,j h>e,k i>k j>i k>i,r l>h",
        "r>* a>r b>r c>r d>r e>r f>c g>c l>d h>r i>r j>g k>r",
    ),
    "no root": ("a>b b>c", "a>- b>a c>b"),
    "no root, a circle": ("a>b b>c c>a", "a>- b>a c>b"),
    "no root, a circle with a way into it": ("b>c c>b a>b", "b>a c>b a>-"),
    "no root, to what a root holds": ("static>a b>a,c", "a>* b>- c>b"),
    "alone": ("a", "a>-"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), DOMINATORS.values(), ids=DOMINATORS)
def test_dominators(text: str, wanted: str) -> None:
    assert in_words(text, dominators(graph_of(text))) == wanted


def test_a_long_list() -> None:
    """No recursion, and linear."""
    n = 100_000
    objects = Table(HEAP_OBJECTS, {"class_name": np.zeros(n, np.int32), "size": np.ones(n, np.int64)})
    offsets = np.minimum(np.arange(n + 1), n - 1)
    roots = Table(HEAP_ROOTS, {"object": [0]})
    graph = HeapGraph(objects, offsets, np.arange(1, n, dtype=np.int32), roots)
    dominator = dominators(graph)
    assert np.array_equal(dominator, np.arange(-1, n - 1))
    assert retained_sizes(graph, dominator) == list(range(n, 0, -1))


NODES = "abcdefghij"
EDGES = st.lists(st.tuples(st.sampled_from((*KINDS, *NODES)), st.sampled_from(NODES)), max_size=30)


def reached(edges: list[tuple[str, str]], without: str = "") -> set[str]:
    """What the roots lead to, if one object is not there."""
    found = set(KINDS)
    while more := {b for a, b in edges if a in found and b != without} - found:
        found |= more
    return found - set(KINDS)


@given(EDGES)
def test_dominators_are_what_nothing_is_reached_without(edges: list[tuple[str, str]]) -> None:
    text = " ".join([*NODES, *(f"{a}>{b}" for a, b in edges)])
    graph = graph_of(text)
    assert laws._check_graph(graph) == []
    dominator = dominators(graph)
    retained = retained_sizes(graph, dominator)
    alive = reached(edges)
    for row, name in enumerate(NODES):
        above = {other for other in alive - {name} if name in alive - reached(edges, without=other)}
        chain = []
        at = row
        while dominator[at] >= 0:
            at = int(dominator[at])
            chain.append(NODES[at])
        assert (dominator[at] == BY_ROOTS) == (name in alive)
        if name in alive:
            assert set(chain) == above
            lost = alive - reached(edges, without=name)
            assert retained[row] == sum(1 << NODES.index(other) for other in lost)


# ---------------------------------------------------------------- trees by class


def tree_text(text: str) -> str:
    """Path and bytes of each row that has objects of its own."""
    trace = TraceBuilder()
    tree = by_class(trace, graph_of(text, trace))
    paths: list[str] = []
    for parent, class_name in zip(tree.parent.tolist(), tree.class_name.tolist(), strict=True):
        nth = len(paths)
        paths.append(tree.tops[nth] if parent < 0 else f"{paths[parent]}/{trace.strings[class_name]}")
    rows = zip(paths, tree.objects.tolist(), tree.bytes.tolist(), strict=True)
    return " ".join(sorted(f"{path}={objects}:{size}" for path, objects, size in rows if objects))


TREES = {
    "nothing": ("", ""),
    "a path": ("static>a a>b", "[static]/A/B=1:2 [static]/A=1:1"),
    "of one class": ("static>a a>b1,b2 b1>c1 b2>c2", "[static]/A/B/C=2:24 [static]/A/B=2:6 [static]/A=1:1"),
    "of one class under two": ("static>a1,a2 a1>b1 a2>b2", "[static]/A/B=2:12 [static]/A=2:3"),
    "a list": ("static>a1 a1>a2 a2>a3 a3>b", "[static]/A/B=1:8 [static]/A=3:7"),
    "a list of two classes": (
        "static>a1 a1>b1 b1>a2 a2>b2",
        "[static]/A/B/A/B=1:8 [static]/A/B/A=1:4 [static]/A/B=1:2 [static]/A=1:1",
    ),
    "both kinds hold it": ("static>a stack>a a>b", "[several roots]/A/B=1:2 [several roots]/A=1:1"),
    "both kinds reach it": (
        "static>a stack>b a>c b>c", "[several roots]/C=1:4 [stack]/B=1:2 [static]/A=1:1",
    ),
    "two roots of one kind": ("static>a,b a>c b>c", "[static]/A=1:1 [static]/B=1:2 [static]/C=1:4"),
    "no root": ("static>a b>c", "[no recorded root]/B/C=1:4 [no recorded root]/B=1:2 [static]/A=1:1"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), TREES.values(), ids=TREES)
def test_by_class(text: str, wanted: str) -> None:
    assert tree_text(text) == wanted


def test_a_tree_is_cut_at_its_depth() -> None:
    """Two classes in turn: with the top, 256 rows are the deepest path, and what is below counts for the last."""
    trace = TraceBuilder()
    n = 400
    classes = [trace.strings.intern("AB"[nth % 2]) for nth in range(n)]
    objects = Table(HEAP_OBJECTS, {"class_name": classes, "size": np.ones(n)})
    roots = Table(HEAP_ROOTS, {"object": [0], "kind": [trace.strings.intern("static")]})
    offsets = np.minimum(np.arange(n + 1), n - 1)
    graph = HeapGraph(objects, offsets, np.arange(1, n, dtype=np.int32), roots)
    tree = by_class(trace, graph)
    assert (len(tree.parent) - len(tree.tops) + 1, tree.n_cut) == (256, n - 255)
    assert tree.objects.tolist()[-2:] == [1, n - 254]
    trace.processes = [process_with(graph)]
    views_of(trace, trace.processes[0])[0].load(trace)
    assert [(issue.kind, issue.count) for issue in trace.report] == [("heap_depth_cut", n - 255)]


# ---------------------------------------------------------------- views


def process_with(*graphs: HeapGraph, tids: tuple[int, ...] = ()) -> Process:
    process = Process(7, "app", 0, 1000)
    process.threads = [Thread(tid, "main", True, 0, 1000, lambda _: ThreadData()) for tid in tids]
    for nth, graph in enumerate(graphs, 1):
        process.heap_snapshots.append(HeapSnapshot(100 * nth, 100 * nth + 5, lambda _, graph=graph: graph))  # type: ignore[misc]
    return process


def samples_text(trace: Trace, thread: Thread) -> list[str]:
    """Root first, and bytes."""
    samples = thread.load(trace).samples
    lines = []
    for stack, weight in zip(samples["stack"].tolist(), samples["weight"].tolist(), strict=True):
        names: list[str] = []
        while stack >= 0:
            names.insert(0, trace.func_name(int(trace.frames["func"][trace.stacks["frame"][stack]])))
            stack = int(trace.stacks["prefix"][stack])
        lines.append(f"{'/'.join(names)} {weight}")
    return lines


def a_trace_with_sites() -> tuple[Trace, Process]:
    """a was allocated by Main, b1 and b2 by Work, called by Main; c is not known."""
    trace = TraceBuilder()
    trace.clock = Clock("monotonic")
    intern = trace.strings.intern
    frames = {n: trace.frames.intern(func=trace.funcs.intern(name=intern(n))) for n in ("Main", "Work")}
    class_a, class_b = (class_frame(trace, intern(name)) for name in "AB")
    main = trace.stacks.intern(frame=frames["Main"])
    work = trace.stacks.intern(prefix=main, frame=frames["Work"])
    of_a = trace.stacks.intern(prefix=main, frame=class_a)
    of_b = trace.stacks.intern(prefix=work, frame=class_b)
    with_sites = graph_of("static>a a>b1,b2 b1>c", trace, sites={"a": of_a, "b1": of_b, "b2": of_b})
    without = graph_of("stack>a", trace)
    trace.processes = [process_with(without, with_sites, tids=(1, 3))]
    return trace, trace.processes[0]


def test_views() -> None:
    trace, process = a_trace_with_sites()
    views = views_of(trace, process)
    assert [(t.tid, t.name, t.sample_unit, t.start_ts, t.end_ts) for t in views] == [
        (2, "heap shot 1", "bytes", 100, 105),
        (4, "heap shot 2", "bytes", 200, 205),
        (5, "heap shot 2 by allocation site", "bytes", 200, 205),
    ]
    assert samples_text(trace, views[0]) == ["[stack]/A 1"]
    assert samples_text(trace, views[1]) == ["[static]/A 1", "[static]/A/B 6", "[static]/A/B/C 8"]
    assert samples_text(trace, views[2]) == ["Main/A 1", "Main/Work/B 6", "[no recorded site]/C 8"]
    assert views[1].load(trace).samples["ts"].tolist() == [200, 200, 200]


def test_views_obey_the_laws() -> None:
    trace, process = a_trace_with_sites()
    process.threads += views_of(trace, process)
    assert laws.check(trace) == []


def test_views_add_nothing_when_they_are_loaded_again() -> None:
    trace, process = a_trace_with_sites()
    views = views_of(trace, process)
    first = [view.load(trace).samples.columns for view in views]
    sizes = [len(table) for table in trace.global_tables()]
    second = [view.load(trace).samples.columns for view in views_of(trace, process)]
    assert [len(table) for table in trace.global_tables()] == sizes
    assert all(np.array_equal(a[name], b[name]) for a, b in zip(first, second, strict=True) for name in a)


def test_views_of_no_snapshots() -> None:
    trace = TraceBuilder()
    assert views_of(trace, process_with(graph_of(""))) != []
    assert views_of(trace, process_with()) == []


def test_frames_tell_classes_from_roots() -> None:
    trace, process = a_trace_with_sites()
    stack = views_of(trace, process)[0].load(trace).samples["stack"][0]
    frames = [trace.stacks["frame"][s] for s in (trace.stacks["prefix"][stack], stack)]
    assert [trace.strings[trace.categories["name"][trace.frames["category"][f]]] for f in frames] == [
        "Roots", "Objects",
    ]  # fmt: skip


# ---------------------------------------------------------------- comparisons


def test_growth() -> None:
    """Sizes: a1 1, a2 2, b 4 before; a1 1, c 2, d1 4, d2 8 after."""
    trace = TraceBuilder()
    before, after = graph_of("static>a1,a2,b", trace), graph_of("static>a1,c,d1,d2", trace)
    rows = growth(trace, before, after)
    assert [(row.class_name, row.objects, row.bytes) for row in rows] == [
        ("D", 2, 12), ("C", 1, 2), ("A", -1, -2), ("B", -1, -4),
    ]  # fmt: skip
    assert rows[2] == ("A", 2, 3, 1, 1)


def test_growth_of_equal_bytes_goes_by_name() -> None:
    trace = TraceBuilder()
    graph = graph_of("static>b,a,c", trace)
    assert [(row.class_name, row.bytes) for row in growth(trace, graph, graph)] == [("A", 0), ("B", 0), ("C", 0)]


def test_live_sites() -> None:
    trace, process = a_trace_with_sites()
    without, with_sites = (snapshot.load(trace) for snapshot in process.heap_snapshots)
    found = live_sites(trace, with_sites)
    frames = [trace.stacks["frame"][row.stack] for row in found]
    assert [trace.func_name(int(trace.frames["func"][frame])) for frame in frames] == ["Work", "Main"]
    assert [row[1:] for row in found] == [("B", 2, 6), ("A", 1, 1)]
    assert live_sites(trace, without) == []


# ---------------------------------------------------------------- arrays that do not fit

OFFSETS, REFERENCES = np.array([0, 1, 2], np.int64), np.array([1, 0], np.int32)
NOT_GRAPHS = {
    "no offsets": (OFFSETS[:0], REFERENCES),
    "offsets fall": (OFFSETS[[0, 2, 1]], REFERENCES),
    "offsets begin late": (OFFSETS[1:], REFERENCES),
    "a reference too many": (OFFSETS, np.array([1, 0, 0], np.int32)),
    "a reference too high": (OFFSETS, np.array([1, 2], np.int32)),
    "a reference below zero": (OFFSETS, np.array([1, -1], np.int32)),
}


@pytest.mark.parametrize(("offsets", "references"), NOT_GRAPHS.values(), ids=NOT_GRAPHS)
def test_what_is_no_graph_is_refused(offsets: Array, references: Array) -> None:
    with pytest.raises(ValueError, match="not a graph"):
        _dominators.immediate_dominators(offsets, references, ints())
    with pytest.raises(ValueError, match="not a graph"):
        _dominators.reach(offsets, references, ints(), np.zeros(max(len(offsets) - 1, 0), np.int32))


def test_nodes_that_are_not_there_are_refused() -> None:
    for node in (-1, 2):
        with pytest.raises(ValueError, match="not a graph"):
            _dominators.immediate_dominators(OFFSETS, REFERENCES, ints(node))
    with pytest.raises(ValueError, match="wrong length"):
        _dominators.reach(OFFSETS, REFERENCES, ints(0), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="not a node"):
        _dominators.bottom_up(ints(1, 2))
    for dominator, top, class_name in ((ints(1, 0), ints(0, 0), ints(0, 0)), (ints(-1), ints(0, 0), ints(0))):
        with pytest.raises(ValueError, match="wrong length"):
            _dominators.merge_classes(dominator, top, class_name, 1, 9)
    with pytest.raises(ValueError, match="not a top"):
        _dominators.merge_classes(ints(-1), ints(1), ints(0), 1, 9)


ROWS = st.lists(st.tuples(st.integers(-1, 4), st.integers(-(1 << 63), (1 << 63) - 1)), max_size=20)


@given(ROWS)
def test_allocations_are_added_up(rows: list[tuple[int, int]]) -> None:
    """Up to 2^63 - 1 bytes."""
    totals, wanted = np.zeros((5, 4), np.int64), [[0] * 4 for _ in range(5)]
    for index, size in rows:
        if index >= 0 and size:
            wanted[index][size < 0] = min(wanted[index][size < 0] + abs(size), (1 << 63) - 1)
            wanted[index][2 + (size < 0)] += 1
    index, size = ints(*(row[0] for row in rows)), ints(*(row[1] for row in rows), dtype=np.int64)
    tally(index, size, totals)
    assert totals.tolist() == wanted
    for arguments in ((index + ints(5), size, totals), (index, size[1:], totals), (index, size, totals[:, :3].copy())):
        if len(rows) and max(rows)[0] >= 0:
            with pytest.raises(ValueError, match="tally"):
                tally(*arguments)


# ---------------------------------------------------------------- laws


def broken_laws(**changes: object) -> list[str]:
    trace, process = a_trace_with_sites()
    snapshot = process.heap_snapshots[1]
    graph = snapshot.load(trace)
    parts = {"objects": graph.objects, "offsets": graph.offsets, "references": graph.references, "roots": graph.roots}
    changed = HeapGraph(**{**parts, **changes})  # type: ignore[arg-type]
    process.heap_snapshots[1] = HeapSnapshot(snapshot.start_ts, snapshot.end_ts, lambda _: changed)
    return laws.check(trace)


def objects(**columns: object) -> Table:
    return graph_of("a a>b1,b2 b1>c").objects.replaced(**{name: np.array(c) for name, c in columns.items()})


def ints(*values: int, dtype: type = np.int32) -> Array:
    return np.array(values, dtype)


def root(row: int) -> Table:
    return Table(HEAP_ROOTS, {"object": [row], "kind": [-1]})


WHERE = "heap snapshot 7/2"
DIVISION = f"{WHERE}: offsets that do not divide the references among 4 objects"
LAWS = {
    "nothing is broken": ({}, []),
    "offsets fall": ({"offsets": ints(0, 3, 2, 3, 3, dtype=np.int64)}, [DIVISION]),
    "offsets begin late": ({"offsets": ints(1, 2, 3, 3, 3, dtype=np.int64)}, [DIVISION]),
    "offsets end early": ({"offsets": ints(0, 2, 2, 2, 2, dtype=np.int64)}, [DIVISION]),
    "too few offsets": ({"offsets": ints(0, 2, 3, 3, dtype=np.int64)}, [DIVISION]),
    "offsets of another type": (
        {"offsets": ints(0, 2, 3, 3, 3)}, [f"{WHERE}: offsets are int32 and references int32, not int64 and int32"],
    ),
    "a reference too high": ({"references": ints(1, 2, 4)}, [f"{WHERE}: a reference to no object"]),
    "a reference below zero": ({"references": ints(1, 2, -1)}, [f"{WHERE}: a reference to no object"]),
    "a root too high": ({"roots": root(4)}, [f"{WHERE}: heap_roots.object: an index outside heap_objects"]),
    "a root that is none": ({"roots": root(-1)}, [f"{WHERE}: a root that is not an object"]),
    "a class that is none": (
        {"objects": objects(class_name=ints(0, 1, 1, 999))},
        [f"{WHERE}: heap_objects.class_name: an index outside strings"],
    ),
    "a negative size": (
        {"objects": objects(size=ints(1, 1, 1, -1, dtype=np.int64))}, [f"{WHERE}: an object of negative size"],
    ),
    "an object twice": (
        {"objects": objects(object=ints(-1, -1, 5, 5, dtype=np.int64))}, [f"{WHERE}: an object that is listed twice"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "wanted"), LAWS.values(), ids=LAWS)
def test_laws(changes: dict[str, object], wanted: list[str]) -> None:
    assert broken_laws(**changes) == wanted


def test_a_snapshot_lies_within_its_process() -> None:
    trace, process = a_trace_with_sites()
    process.end_ts = 150
    process.threads = []
    assert laws.check(trace) == [f"{WHERE}: a time outside the process's, or an end before the start"]


# ts, size, class, stack and number of each row.
ALLOCATION_LAWS = {
    "allocated and freed": ([(1, 8, 0, 0, 5), (3, -8, 0, 0, 5)], []),
    "allocated and freed at once": ([(1, 8, 0, 0, 5), (1, -8, 0, 0, 5)], []),
    "allocated before the range": ([(3, -8, 0, 0, 5)], []),
    "objects that are not known": ([(1, 8, 0, 0, -1), (2, 8, 0, 0, -1), (3, -4, 0, 0, -1)], []),
    "allocated twice": ([(1, 8, 0, 0, 5), (2, 8, 0, 0, 5)], ["an object that is allocated twice"]),
    "freed twice": ([(1, -8, 0, 0, 5), (2, -8, 0, 0, 5)], ["an object that is freed twice"]),
    "another size": ([(1, 8, 0, 0, 5), (3, -16, 0, 0, 5)], ["an object that is freed with another size"]),
    "another class": ([(1, 8, 0, 0, 5), (3, -8, 1, 0, 5)], ["an object that is freed with another class_name"]),
    "another stack": ([(1, 8, 0, 0, 5), (3, -8, 0, 1, 5)], ["an object that is freed with another stack"]),
    "freed first": ([(1, -8, 0, 0, 5), (3, 8, 0, 0, 5)], ["an object that is freed before it is allocated"]),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "wanted"), ALLOCATION_LAWS.values(), ids=ALLOCATION_LAWS)
def test_laws_of_allocations(rows: list[tuple[int, ...]], wanted: list[str]) -> None:
    trace, process = a_trace_with_sites()
    names = ("ts", "size", "class_name", "stack", "object")
    table = Table(ALLOCATIONS, dict(zip(names, zip(*rows, strict=True), strict=True)))
    process.threads = [Thread(1, "main", True, 0, 1000, lambda _: ThreadData(allocations=table))]
    assert laws.check(trace) == [f"thread 7/1: {law}" for law in wanted]


def test_pieces_are_as_many_rows_as_the_table_says_and_none_is_empty() -> None:
    trace, process = a_trace_with_sites()
    piece = Table(ALLOCATIONS, {"ts": [1, 2], "size": [8, 8], "stack": [0, 0]})
    for pieces, n_rows in (([piece], 3), ([piece, piece.take(slice(0))], 2)):
        table = StreamedTable(ALLOCATIONS, lambda made=pieces: iter(made), n_rows)  # type: ignore[misc]
        process.threads = [Thread(1, "main", True, 0, 1000, lambda _, of=table: ThreadData(allocations=of))]  # type: ignore[misc]
        sizes = [len(made) for made in pieces]
        assert f"thread 7/1: allocations: {n_rows} rows in pieces of {sizes}" in laws.check(trace)
