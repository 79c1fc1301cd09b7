"""What `info` says of memory, events, counters, code coverage, heap snapshots: sums that are worked out by hand."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import REPO, examples
from hypothesis import given
from hypothesis import strategies as st

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.analysis.totals.sums_of_trace import SampleTotals
from traceferry.model import (
    ALLOCATIONS,
    CALLS,
    COUNTER_VALUES,
    HEAP_OBJECTS,
    HEAP_ROOTS,
    LEAVE,
    SAMPLES,
    Clock,
    Counter,
    HeapGraph,
    HeapSnapshot,
    MarkerField,
    MarkerType,
    Process,
    StreamedTable,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
)
from traceferry.timeline.select import select_range

END = 1000
GC = MarkerType(
    "Collection",
    "the collector ran",
    (MarkerField("generation", "Generation", "integer"), MarkerField("why", "Reason", "text"),
     MarkerField("freed", "Freed", "bytes"), MarkerField("moved", "Moved", "bytes")),
    group_by=("generation", "why"),
)  # fmt: skip
LOAD = MarkerType("Load", "an image was loaded", (MarkerField("size", "Size", "bytes"),))
NOTE = MarkerType("Note", "a text", (MarkerField("text", "Text", "text"),))


class Built(TraceBuilder):
    """A process with two threads, the functions main < work < String, and main < Object."""

    def __init__(self, *threads: ThreadData) -> None:
        super().__init__()
        self.clock = Clock("monotonic")
        self.main, self.work, self.string, self.object = (
            self.frames.intern(func=self.funcs.intern(name=self.strings.intern(name)))
            for name in ("main", "work", "String", "Object")
        )
        self.in_main = self.stacks.intern(frame=self.main)
        self.in_work = self.stacks.intern(frame=self.work, prefix=self.in_main)
        self.string_at = self.stacks.intern(frame=self.string, prefix=self.in_work)
        self.object_at = self.stacks.intern(frame=self.object, prefix=self.in_main)
        self.object_nowhere = self.stacks.intern(frame=self.object)
        self.process = Process(1, "app", 0, END)
        self.processes.append(self.process)

    def thread(self, name: str = "main", **tables: Any) -> "Built":
        data = ThreadData(**tables)
        tid = len(self.process.threads) + 1
        self.process.threads.append(Thread(tid, name, tid == 1, 0, END, lambda _: data))
        return self

    def allocations(self, *rows: tuple[int, int, str, int]) -> Table:
        """Of (ts, size, class, stack)."""
        ts, size, names, stack = zip(*rows, strict=True)
        of_class = [self.strings.intern(name) if name else -1 for name in names]
        return Table(ALLOCATIONS, {"ts": list(ts), "size": list(size), "class_name": of_class, "stack": list(stack)})


def table_of(marker_type: MarkerType, **columns: list[Any]) -> dict[MarkerType, Table]:
    return {marker_type: Table(marker_type.spec, columns)}


# ---------------------------------------------------------------- allocations


def allocating() -> Built:
    trace = Built()
    trace.thread(
        allocations=trace.allocations(
            (10, 100, "String", trace.string_at), (20, 30, "Object", trace.object_at),
            (30, -100, "String", trace.string_at), (40, 50, "String", trace.string_at),
        )
    )  # fmt: skip
    return trace.thread(
        "other",
        allocations=trace.allocations((15, 7, "Object", trace.object_nowhere), (25, 1, "", -1)),
    )


def amounts(count: int, n_bytes: int, freed_count: int = 0, freed_bytes: int = 0) -> dict[str, int]:
    return {"count": count, "bytes": n_bytes, "freed_count": freed_count, "freed_bytes": freed_bytes}


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_samples_count_for_each_function_on_their_stacks_once(rows: list[tuple[int, int, int]]) -> None:
    """Of a random tree of stacks: (prefix, function, samples)."""
    trace = TraceBuilder()
    frames = [trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(f"f{i}"))) for i in range(4)]
    paths: list[list[int]] = []
    counts = []
    for above, func, n in rows:
        prefix = above if above < len(paths) else -1
        trace.stacks.extend(prefix=[prefix], frame=[frames[func]])
        paths.append([*(paths[prefix] if prefix >= 0 else []), func])
        counts.append(n)
    totals = SampleTotals(trace)
    totals.add(np.repeat(np.arange(len(paths), dtype=np.int32), counts))
    for groups in ([0, 1, 2, 3], [0, 1, 1, 0]):
        own, total = totals.by_func(np.array(groups, np.int32))
        grouped = [([groups[f] for f in path], n) for path, n in zip(paths, counts, strict=True)]
        assert own.tolist() == [sum(n for path, n in grouped if path[-1] == f) for f in range(4)]
        assert total.tolist() == [sum(n for path, n in grouped if f in path) for f in range(4)]


def test_allocations_by_class_and_site() -> None:
    assert summarize(allocating())["allocations"] == {
        **amounts(5, 188, 1, 100),
        "classes": [
            {"name": "String", **amounts(2, 150, 1, 100)},
            {"name": "Object", **amounts(2, 37)},
            {"name": "[unknown class]", **amounts(1, 1)},
        ],
        "sites": [
            {"stack": ["work", "main"], **amounts(2, 150, 1, 100)},
            {"stack": ["main"], **amounts(1, 30)},
            {"stack": [], **amounts(2, 8)},
        ],
    }


def test_allocations_of_each_thread() -> None:
    (process,) = summarize(allocating())["processes"]
    assert [t["allocations"] for t in process["threads"]] == [{"count": 3, "bytes": 180}, {"count": 2, "bytes": 8}]


def test_allocations_of_a_range() -> None:
    found = summarize(select_range(allocating(), 15, 31))["allocations"]
    assert {row["name"]: (row["bytes"], row["freed_bytes"]) for row in found["classes"]} == {
        "Object": (37, 0), "String": (0, 100), "[unknown class]": (1, 0),
    }  # fmt: skip


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-1, 3), st.integers(-1, 4)), max_size=40), st.integers(1, 9))
def test_allocations_do_not_depend_on_the_pieces(rows: list[tuple[int, int, int]], size: int) -> None:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    table = Table(ALLOCATIONS, dict(zip(("size", "class_name", "stack"), map(list, columns), strict=True)))

    def make() -> Iterator[Table]:
        return (table.take(slice(at, at + size)) for at in range(0, len(table), size))

    whole = summarize(Built().thread(allocations=table))
    assert summarize(Built().thread(allocations=StreamedTable(ALLOCATIONS, make))) == whole
    assert whole["allocations"]["bytes"] == sum(size for size, *_ in rows if size > 0)
    for key in ("classes", "sites"):
        assert sum(row["bytes"] for row in whole["allocations"][key]) == whole["allocations"]["bytes"]


def test_sums_beyond_the_integers_of_a_float() -> None:
    trace = Built()
    trace.thread(allocations=trace.allocations(*[(0, 2**52 + 1, "String", trace.string_at)] * 3))
    assert summarize(trace)["allocations"]["bytes"] == 3 * (2**52 + 1)


# ---------------------------------------------------------------- functions


def calling() -> Built:
    """main: 1 call of 30 ns, 10 of its own, 3 samples; work: 4 calls of 5 ns, 1 sample."""
    trace = Built()
    enters, leaves = (trace.work, 0), (trace.work, LEAVE)
    rows = [(trace.main, 0), *[enters, leaves] * 4, (trace.main, LEAVE)]
    frame, flags = zip(*rows, strict=True)
    calls = Table(CALLS, {"ts": [0, 0, 5, 5, 10, 10, 15, 15, 20, 30], "frame": list(frame), "flags": list(flags)})
    stacks = [trace.in_main] * 3 + [trace.in_work]
    return trace.thread(calls=calls, samples=Table(SAMPLES, {"ts": [1, 2, 3, 4], "stack": stacks}))


RANKED = {"self": ["work", "main"], "total": ["main", "work"], "calls": ["work", "main"], "samples": ["main", "work"]}


@pytest.mark.parametrize(("sort", "names"), RANKED.items(), ids=RANKED)
def test_functions_are_ranked(sort: str, names: list[str]) -> None:
    assert [row["name"] for row in summarize(calling(), sort=sort)["functions"]["top"]] == names


# ---------------------------------------------------------------- markers


def collecting() -> Built:
    one = table_of(
        GC, ts=[0, 10, 20], dur=[5, 7, 6], generation=[0, 1, 0], why=["full", "full", "full"], freed=[1, 2, 4],
        moved=[0, 0, 9],
    )  # fmt: skip
    two = table_of(GC, ts=[1], dur=[30], generation=[0], why=["full"], freed=[8], moved=[1])
    return Built().thread(markers=one).thread(markers=two)


def lasting() -> Built:
    call = MarkerType("call", "", ())
    built = Built().thread(markers=table_of(call, ts=[0, 10], dur=[5, 70]))
    built.thread(markers=table_of(call, ts=[1], dur=[6]) | table_of(MarkerType("read", "", ()), ts=[2], dur=[90]))
    return built.thread(markers=table_of(MarkerType("instant", "", ()), ts=[3], dur=[0]))


def test_intervals() -> None:
    """Of types that are not grouped, in all threads; what has no duration is not among them."""
    assert summarize(lasting())["intervals"] == [
        {"type": "read", "count": 1, "total_ns": 90, "longest_ns": 90},
        {"type": "call", "count": 3, "total_ns": 81, "longest_ns": 70},
    ]
    assert summarize(lasting(), top=1)["intervals"][0]["type"] == "read"
    assert summarize(collecting())["intervals"] == []


def test_markers_by_group() -> None:
    assert summarize(collecting())["markers"] == [
        {
            "type": "Collection", "group_by": ["generation", "why"], "groups": 2,
            "top": [
                {"by": {"generation": 0, "why": "full"}, "count": 3, "total_ns": 41, "longest_ns": 30,
                 "sums": {"freed": 13, "moved": 10}},
                {"by": {"generation": 1, "why": "full"}, "count": 1, "total_ns": 7, "longest_ns": 7,
                 "sums": {"freed": 2, "moved": 0}},
            ],
        }
    ]  # fmt: skip


def test_markers_without_groups_sum_up_their_bytes() -> None:
    trace = Built().thread(markers=table_of(LOAD, ts=[1, 2], size=[10, 20]))
    (found,) = summarize(trace)["markers"]
    assert found["top"] == [{"by": {}, "count": 2, "total_ns": 0, "longest_ns": 0, "sums": {"size": 30}}]


def test_markers_with_neither_are_only_counted() -> None:
    summary = summarize(Built().thread(markers=table_of(NOTE, ts=[1], text=["a"])))
    assert summary["markers"] == []
    assert summary["processes"][0]["threads"][0]["markers"] == {"Note": 1}


def test_many_groups_are_cut_to_the_longest() -> None:
    n = 50
    columns: dict[str, list[Any]] = {"ts": [0] * n, "dur": list(range(n)), "generation": list(range(n))}
    trace = Built().thread(markers=table_of(GC, **columns, why=["x"] * n, freed=[0] * n, moved=[0] * n))
    (found,) = summarize(trace, top=2)["markers"]
    assert found["groups"] == n
    assert [row["by"]["generation"] for row in found["top"]] == [49, 48]


# ---------------------------------------------------------------- counters and coverage


def test_counters() -> None:
    trace = Built()
    values = Table(COUNTER_VALUES, {"ts": [0, 1, 2], "value": [5, -1.5, 3]})
    trace.process.counters = [Counter("heap", "bytes", "", values), Counter("none", "count", "", Table(COUNTER_VALUES))]
    (process,) = summarize(trace)["processes"]
    assert process["counters"] == [
        {"name": "heap", "unit": "bytes", "values": 3, "first": 5.0, "last": 3.0, "min": -1.5, "max": 5.0,
         "total": None},
        {"name": "none", "unit": "count", "values": 0, "first": None, "last": None, "min": None, "max": None,
         "total": None},
    ]  # fmt: skip


def covered() -> Built:
    trace = Built()
    for assembly, class_name, method, statements, ran in (
        ("app", "A", "f ()", 10, 10), ("app", "A", "g ()", 5, 0), ("app", "B", "f ()", 4, 1),
        ("lib", "A", "f ()", 2, 2),
    ):  # fmt: skip
        trace.coverage.intern(
            assembly=trace.strings.intern(assembly), class_name=trace.strings.intern(class_name),
            method=trace.strings.intern(method), statements=statements, covered=ran,
        )  # fmt: skip
    return trace


def test_coverage_by_assembly_class_and_method() -> None:
    found = summarize(covered(), top=3)["coverage"]
    assert (found["statements"], found["covered"]) == (21, 13)
    assert [(r["assembly"], r["covered"], r["statements"]) for r in found["assemblies"]] == [
        ("app", 11, 19), ("lib", 2, 2),
    ]  # fmt: skip
    assert [(r["assembly"], r["class"], r["covered"], r["statements"]) for r in found["classes"]] == [
        ("app", "A", 10, 15), ("app", "B", 1, 4), ("lib", "A", 2, 2),
    ]  # fmt: skip
    assert [(r["class"], r["method"], r["covered"], r["statements"]) for r in found["methods"]] == [
        ("A", "g ()", 0, 5), ("B", "f ()", 1, 4), ("A", "f ()", 10, 10),
    ]  # fmt: skip


def test_no_coverage() -> None:
    assert summarize(Built())["coverage"] is None


# ---------------------------------------------------------------- heap snapshots


def graph_of(trace: Built, objects: list[tuple[str, int, int]], roots: list[tuple[int, str]]) -> HeapGraph:
    """Objects (class, size, site) of which each refers to the next; roots (object, kind)."""
    n = len(objects)
    names, sizes, sites = zip(*objects, strict=True)
    columns: dict[str, Any] = {
        "address": list(range(n)), "class_name": [trace.strings.intern(name) for name in names], "size": list(sizes),
        "site": list(sites),
    }  # fmt: skip
    root_columns = {"object": [o for o, _ in roots], "kind": [trace.strings.intern(kind) for _, kind in roots]}
    return HeapGraph(
        Table(HEAP_OBJECTS, columns),
        np.minimum(np.arange(n + 1), n - 1).astype(np.int64),
        np.arange(1, n, dtype=np.int32),
        Table(HEAP_ROOTS, root_columns),
    )


def with_snapshots() -> Built:
    trace = Built()
    string, thing = trace.string_at, trace.object_at
    before = graph_of(trace, [("String", 10, string), ("Object", 8, thing)], [(0, "stack")])
    after = graph_of(
        trace,
        [("String", 10, string), ("String", 30, string), ("List", 100, -1)],
        [(0, "stack"), (1, "static"), (2, "static")],
    )
    trace.process.heap_snapshots = [
        HeapSnapshot(100, 110, lambda _: before), HeapSnapshot(500, 520, lambda _: after),
    ]  # fmt: skip
    return trace


def test_heap_snapshots() -> None:
    first, second = summarize(with_snapshots())["processes"][0]["heap_snapshots"]
    keys = ("ts_ns", "at_ns", "objects", "bytes", "references", "roots")
    assert [first[key] for key in keys] == [100, 100, 2, 18, 1, 1]
    assert [second[key] for key in keys] == [500, 500, 3, 140, 2, 3]
    assert second["root_kinds"] == [{"kind": "static", "count": 2}, {"kind": "stack", "count": 1}]
    assert second["classes"] == [
        {"name": "List", "objects": 1, "bytes": 100}, {"name": "String", "objects": 2, "bytes": 40},
    ]  # fmt: skip


def test_growth_between_heap_snapshots() -> None:
    first, second = summarize(with_snapshots())["processes"][0]["heap_snapshots"]
    assert first["growth"] is None
    assert second["growth"] == [
        {"name": "List", "objects_before": 0, "bytes_before": 0, "objects_after": 1, "bytes_after": 100},
        {"name": "String", "objects_before": 1, "bytes_before": 10, "objects_after": 2, "bytes_after": 40},
        {"name": "Object", "objects_before": 1, "bytes_before": 8, "objects_after": 0, "bytes_after": 0},
    ]


def test_sites_of_what_is_alive() -> None:
    _, second = summarize(with_snapshots())["processes"][0]["heap_snapshots"]
    assert second["sites"] == [{"name": "String", "stack": ["work", "main"], "objects": 2, "bytes": 40}]


# ---------------------------------------------------------------- for people

LINES = {
    "functions": (
        calling,
        ["4 functions, of 30ns and 4 samples:", "self % total % calls samples % with callees % function",
         "20ns 66.7% 20ns 66.7% 4 1 25.0% 1 25.0% work"],
    ),
    "allocations by class": (
        allocating, ["188 bytes in 5 allocations, by class:", "150 2 50 1 String", "1 1 1 1 [unknown class]"],
    ),
    "allocations by site": (allocating, ["150 2 50 1 work < main", "8 2 8 2 unknown"]),
    "markers": (collecting, ["Collection, by generation, why:", "3 41ns 30ns 13ns 13 10 0, full"]),
    "intervals": (lasting, ["intervals:", "1 90ns 90ns 90ns read", "3 81ns 70ns 27ns call"]),
    "coverage": (covered, ["code coverage: 61.9%, 13 of 21 statements", "0.0% 0 5 A:g ()", "100.0% 2 2 lib"]),
    "heap shots": (with_snapshots, ["500ns 140 3 2 3 2 static, 1 stack", "+100 +1 100 1 List", "-8 -1 0 0 Object"]),
    "sites": (with_snapshots, ["heap shot 2, by allocation site:", "40 2 String work < main"]),
}  # fmt: skip


@pytest.mark.parametrize(("build", "lines"), LINES.values(), ids=LINES)
def test_text(build: Any, lines: list[str]) -> None:
    found = [" ".join(line.split()) for line in as_text(summarize(build())).splitlines()]
    assert [line for line in lines if line not in found] == []


def test_text_has_no_section_for_nothing() -> None:
    assert as_text(summarize(Built().thread())).splitlines() == [
        "1us on the monotonic clock", "", "the recording holds nothing to show", "", "1 thread of process app 1:",
        "  1 idle thread", "", "4 functions",
    ]  # fmt: skip


def test_long_stacks_are_cut_in_the_text_alone() -> None:
    trace = Built()
    stack = -1
    for n in range(9):
        frame = trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(f"f{n}")))
        stack = trace.stacks.intern(prefix=stack, frame=frame)
    summary = summarize(trace.thread(allocations=trace.allocations((0, 1, "f8", stack))))
    assert summary["allocations"]["sites"][0]["stack"] == [f"f{n}" for n in range(7, -1, -1)]
    assert "f7 < f6 < f5 < f4 < ..." in as_text(summary)


def test_of_many_kinds_of_markers_a_thread_has_the_largest_in_the_text() -> None:
    markers = {
        MarkerType(f"kind {n}", "", ()): Table(MarkerType(f"kind {n}", "", ()).spec, {"ts": [0] * n * 1000})
        for n in range(1, 8)
    }
    text = as_text(summarize(Built().thread(markers=markers)))
    assert "main 1: 7,000 kind 7, 6,000 kind 6, 5,000 kind 5, 4,000 kind 4, 6,000 of 3 other kinds" in text


def test_of_many_counters_the_text_has_those_that_were_recorded_most_often() -> None:
    trace = Built().thread()
    n_values = {"size": 1, "never": 3, "heap": 3, "jobs": 2, "depth": 1}
    trace.processes[0].counters = [
        Counter(name, "count", "", Table(COUNTER_VALUES, {"ts": range(n), "value": [float(name != "never")] * n}))
        for name, n in n_values.items()
    ]
    summary = summarize(trace)
    lines = [" ".join(line.split()) for line in as_text(summary, top=2).splitlines()]
    at = lines.index("counters:")
    assert lines[at + 2 : at + 6] == [
        "1 1 1 1 3 heap (count)", "1 1 1 1 2 jobs (count)", "2 more: --top 4 shows all", "1 more stayed 0",
    ]  # fmt: skip
    assert len(summary["processes"][0]["counters"]) == 5


def test_sites_without_the_wrappers_of_allocations() -> None:
    """Mono allocates a class through one wrapper or another: who called them is one site."""
    trace = traceferry.load(REPO / "fixtures/mono/mono-6.8/heap.mlpd.zst")
    found = summarize(trace, top=1 << 30)
    of_run = found["allocations"]
    assert sum(site["count"] for site in of_run["sites"]) == of_run["count"]
    assert sum(site["bytes"] for site in of_run["sites"]) == of_run["bytes"]
    (process,) = found["processes"]
    shot = process["heap_snapshots"][-1]
    for rows, key in ((of_run["sites"], ()), (shot["sites"], ("name",))):
        stacks = [(tuple(row["stack"]), *(row[part] for part in key)) for row in rows if row["stack"]]
        assert len(stacks) > 5
        assert not any(stack[0].startswith("(wrapper alloc)") for stack, *_ in stacks)
        assert sorted(rows, key=lambda row: -row["bytes"]) == rows
    makers = [row for row in of_run["sites"] if row["stack"] and row["stack"][0].startswith("Leak:MakeOrder")]
    assert len(makers) == 1, "of two wrappers before"
