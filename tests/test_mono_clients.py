"""The real Mono recordings in the viewers' own programs: profiler-cli, the independent reader, and trace_processor,
each against the Trace that was written.

Of Perfetto's every call, sample, allocation, heap shot, marker and counter is compared; of Firefox's every thread, and
of the biggest ones every function.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from clients.firefox import ProfilerCli
from conftest import one_in
from mono_recordings import LARGE, names, path_of, trace_of
from outputs import saved
from readers import perfetto
from support import calls_of, load_opened
from test_heap import dominators, retained_sizes
from test_jit_clients import Paths, Sums, functions_of, needs_client, sums
from test_perfetto import NOTES, STATS
from test_perfetto_heap import UNKNOWN_ROOT, classes_of, recorded_roots, references_of
from test_perfetto_samples import CALLSITES

from traceferry.exporters.counters import shown_counters
from traceferry.heap.classes import UNKNOWN_CLASS
from traceferry.heap.views import NO_SITE
from traceferry.model import LEAVE, HeapGraph, MarkerType, Process, Table, Thread, ThreadData, Trace, TraceBuilder
from traceferry.model import Counter as ModelCounter

# In this one each of the viewers' programs takes ten seconds; the others have its events.
LONG = "mid/everything.mlpd"
# Logs that are alike but for their version or their damage: one of each kind stands for all, which test_mono_captures
# loads, compares and writes.
ALIKE = ("versions/", "transcoded/", "broken/")
OF_ALIKE = ("versions/v17_all_ptr4.mlpd", "transcoded/v01_all_seed.mlpd", "broken/mid_buf.mlpd")


def marked(name: Any) -> Any:
    is_large = name == LONG or (isinstance(name, str) and name.startswith(ALIKE) and name not in OF_ALIKE)
    return pytest.param(name, marks=pytest.mark.large) if is_large else name


RECORDINGS = [marked(name) for name in names(".mlpd")]
# The one viewer of two formats has a recording in one of them, in turn, and in the other with the large ones.
in_firefox, in_gecko = (pytest.mark.parametrize("name", one_in(2, RECORDINGS, first)) for first in (0, 1))
# Of the large recording, which no viewer opens as a whole.
PART_NS = (1_000_000_000, 1_100_000_000)
MOST = 3  # threads of each kind whose functions are asked for; of logs that are alike, 1
TraceProcessor = Callable[[Path], Any]


def loaded(name: str) -> TraceBuilder:
    return load_opened(path_of(name), time_range=PART_NS) if name.startswith(LARGE) else trace_of(name)


# ---------------------------------------------------------------- what a trace says


def times_of(trace: Trace, calls: Table) -> Sums:
    """Function → (self, total) in ns, of those that take time; recursion counts once."""
    own: Counter[int] = Counter()
    total: Counter[int] = Counter()
    n_open: Counter[int] = Counter()
    open_calls: list[list[int]] = []  # start, time in callees
    func_of = trace.frames["func"].tolist()
    for ts, frame, flags in zip(*(calls[column].tolist() for column in ("ts", "frame", "flags")), strict=True):
        func = func_of[frame]
        if not flags & LEAVE:
            n_open[func] += 1
            open_calls.append([ts, 0])
            continue
        start, in_callees = open_calls.pop()
        n_open[func] -= 1
        own[func] += ts - start - in_callees
        total[func] += 0 if n_open[func] else ts - start
        if open_calls:
            open_calls[-1][1] += ts - start
    return {func: (own[func], ns) for func, ns in total.items() if ns}


def weights_by_stack(rows: Table, column: str) -> Counter[int]:
    weights: Counter[int] = Counter()
    for stack, weight in zip(rows["stack"].tolist(), rows[column].tolist(), strict=True):
        weights[stack] += weight
    return weights


def allocated_by_strategy(allocations: Table) -> dict[str, Counter[int]]:
    """Stack → bytes, by each of the viewer's strategies. What is freed is a row of the same thread and stack."""
    made = weights_by_stack(allocations.take(allocations["size"] > 0), "size")
    freed = weights_by_stack(allocations.take(allocations["size"] < 0), "size")
    retained = Counter(made)
    retained.update(freed)
    return {
        "js-allocations": made,
        "native-allocations": made,
        "native-retained-allocations": retained,
        "native-deallocations-memory": freed,
        "native-deallocations-sites": freed,
    }


def n_markers(data: ThreadData) -> int:
    return sum(map(len, data.markers.values()))


class View(NamedTuple):
    """A thread as Firefox shows it. tables: what its functions are counted from, by kind."""

    name: str
    n_markers: int
    tables: dict[str, Any]
    is_main: bool = False

    def size_of(self, kind: str) -> int:
        table = self.tables.get(kind, ())
        return len(table.objects if isinstance(table, HeapGraph) else table)


def views_of(trace: Trace) -> Iterator[View]:
    """What has calls and samples is two threads; heap shots come after the threads of their process."""
    for process in trace.processes:
        for thread in process.threads:
            data = thread.load(trace)
            tables = {"calls": data.calls, "samples": data.samples, "allocations": data.allocations}
            tables = {kind: table for kind, table in tables.items() if len(table)}
            sampled = {"samples": tables.pop("samples")} if {"calls", "samples"} <= tables.keys() else {}
            yield View(thread.name, n_markers(data), tables, thread.is_main)
            if sampled:
                yield View(f"{thread.name} (samples)", 0, sampled)
        for number, snapshot in enumerate(process.heap_snapshots, 1):
            graph = snapshot.load(trace)
            yield View(f"heap shot {number}", 0, {"heap shot": graph})
            if np.any(graph.objects["site"] >= 0):
                yield View(f"heap shot {number} by allocation site", 0, {"sites": graph})


def bytes_by_class(trace: Trace, graph: HeapGraph) -> dict[str, int]:
    found: Counter[str] = Counter()
    sizes = graph.objects["size"].tolist()
    for name, size in zip(graph.objects["class_name"].tolist(), sizes, strict=True):
        found[trace.strings[name] or UNKNOWN_CLASS] += size
    return {name: size for name, size in found.items() if size}


def sums_by_site(trace: Trace, paths: Paths, graph: HeapGraph) -> Sums:
    """By the names of functions: of an object without a site its class stands below a frame that says so."""
    own: Counter[tuple[str, ...]] = Counter()
    columns = (graph.objects[column].tolist() for column in ("site", "class_name", "size"))
    for site, class_name, size in zip(*columns, strict=True):
        nowhere = (trace.strings[class_name] or UNKNOWN_CLASS, NO_SITE)
        own[paths.names(site) if site >= 0 else nowhere] += size
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, size in own.items():
        found[path[0]][0] += size
        for function in set(path):
            found[function][1] += size
    return {name: (own_size, total) for name, (own_size, total) in found.items() if total}


# ---------------------------------------------------------------- Firefox


def by_name(cli: ProfilerCli, thread: str, strategy: str = "") -> Sums:
    """Function → (self, total), of those that weigh something."""
    return {
        function["name"]: (function["selfSamples"], function["totalSamples"])
        for function in cli.functions(thread, include_idle=True, strategy=strategy)
        if function["totalSamples"]
    }


@dataclass(frozen=True)
class Shown:
    """A profile in the client."""

    cli: ProfilerCli
    trace: Trace
    paths: Paths

    def calls(self, handle: str, calls: Table) -> None:
        functions = functions_of(self.cli, handle)
        in_ns = {func: (round(own * 1e6), round(total * 1e6)) for func, (own, total) in functions.items()}
        assert in_ns == times_of(self.trace, calls)

    def samples(self, handle: str, samples: Table) -> None:
        assert functions_of(self.cli, handle) == sums(weights_by_stack(samples, "weight"), self.paths.funcs)

    def allocations(self, handle: str, allocations: Table) -> None:
        for strategy, weights in allocated_by_strategy(allocations).items():
            functions = functions_of(self.cli, handle, strategy)
            assert functions == sums(weights, self.paths.funcs), strategy
            assert sum(own for own, _ in functions.values()) == weights.total()

    def heap_shot(self, handle: str, graph: HeapGraph) -> None:
        """Classes have their own bytes; what holds them has none."""
        functions = by_name(self.cli, handle)
        assert {name: own for name, (own, _) in functions.items() if own} == bytes_by_class(self.trace, graph)

    def sites(self, handle: str, graph: HeapGraph) -> None:
        assert by_name(self.cli, handle) == sums_by_site(self.trace, self.paths, graph)


def biggest(name: str, views: dict[str, View], kind: str) -> list[tuple[str, Any]]:
    """Handles and tables of threads: each answer takes the client a new process, so not of all."""
    order = sorted(views, key=lambda handle: -views[handle].size_of(kind))
    most = 1 if name.startswith(ALIKE) else MOST
    return [(handle, views[handle].tables[kind]) for handle in order[:most] if views[handle].size_of(kind)]


CHECKS: dict[str, Callable[[Shown, str, Any], None]] = {
    "calls": Shown.calls,
    "samples": Shown.samples,
    "allocations": Shown.allocations,
    "heap shot": Shown.heap_shot,
    "sites": Shown.sites,
}


@needs_client
@in_firefox
def test_firefox_shows_every_thread(name: str, tmp_path: Path) -> None:
    """And of the biggest ones each function, its own and all: of calls the time to the nanosecond, of samples the
    number, of allocations and heap shots the bytes."""
    trace = loaded(name)
    with ProfilerCli(saved(trace, tmp_path / "out.json.gz")) as cli:
        threads = cli.threads()
        views = {row["threadHandle"]: view for row, view in zip(threads, views_of(trace), strict=True)}
        assert [(row["name"], row["markerCount"]) for row in threads] == [view[:2] for view in views.values()]
        shown = Shown(cli, trace, Paths(trace))
        for kind, check in CHECKS.items():
            for handle, table in biggest(name, views, kind):
                check(shown, handle, table)


# ---------------------------------------------------------------- Gecko

MAIN = "GeckoMain"  # by this name the viewer knows a main thread of this format


@needs_client
@in_gecko
def test_gecko_shows_every_thread(name: str, tmp_path: Path) -> None:
    """Its format has no weights: calls and heap shots have their places there, but neither times nor bytes."""
    trace = loaded(name)
    with ProfilerCli(saved(trace, tmp_path / "out.gecko.json")) as cli:
        paths = Paths(trace)
        threads = cli.threads()
        views = {row["threadHandle"]: view for row, view in zip(threads, views_of(trace), strict=True)}
        assert [(row["name"], row["markerCount"]) for row in threads] == [
            (MAIN if view.is_main else view.name, view.n_markers) for view in views.values()
        ]
        for handle, samples in biggest(name, views, "samples"):
            assert by_name(cli, handle) == sums(weights_by_stack(samples, "weight"), paths.names)
        for handle, allocations in biggest(name, views, "allocations")[:1]:
            for strategy, weights in allocated_by_strategy(allocations).items():
                assert by_name(cli, handle, strategy) == sums(weights, paths.names), strategy


# ---------------------------------------------------------------- Perfetto: the independent reader


class Converted(NamedTuple):
    """number_of: process and thread, as Perfetto numbers them → the thread's place in the trace."""

    trace: Trace
    threads: list[tuple[Process, Thread, ThreadData]]
    path: Path
    read: perfetto.Trace
    number_of: dict[tuple[int | None, int | None], int | None]


@pytest.fixture(scope="module", params=RECORDINGS)
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Converted:
    trace = loaded(request.param)
    path = saved(trace, tmp_path_factory.mktemp("mono") / "out.pftrace")
    read = perfetto.read(path)
    numbers = {(thread.pid, thread.tid): read.tracks[uuid].rank for uuid, thread in read.threads.items()}
    threads = [(process, thread, thread.load(trace)) for process, thread in trace.threads]
    return Converted(trace, threads, path, read, numbers)


def test_perfetto_is_read_without_errors(converted: Converted) -> None:
    assert converted.read.errors == []
    assert sorted(converted.number_of.values()) == list(range(len(converted.threads)))


def test_perfetto_slices_are_the_calls(converted: Converted) -> None:
    """Name, time, duration and depth; and which ones an exception, or the end, left."""
    found: dict[int | None, list[tuple[Any, ...]]] = defaultdict(list)
    for s in converted.read.slices:
        if s.track in converted.read.threads:
            notes = {note for note in NOTES.values() if s.args.get(note)}
            found[converted.number_of[s.pid, s.tid]].append((s.name, s.ts, s.dur, s.depth, notes))
    for number, (_, _, data) in enumerate(converted.threads):
        wanted = [
            (c.name, c.start, c.end - c.start, c.depth, {note for flag, note in NOTES.items() if c.flags & flag})
            for c in calls_of(converted.trace, data)
        ]
        assert found[number] == wanted


UNITS_OF_FIELDS = {"duration": "_ns", "bytes": "_bytes"}


def shown_keys(marker_type: MarkerType) -> list[str]:
    return [field.key + UNITS_OF_FIELDS.get(field.format, "") for field in marker_type.fields]


def test_perfetto_slices_and_instants_are_the_markers(converted: Converted) -> None:
    """With their fields and stacks."""
    read, paths = converted.read, Paths(converted.trace)
    found = Counter(
        (converted.number_of[one.pid, one.tid], read.tracks[one.track].name, one.name, one.categories, one.ts,
         getattr(one, "dur", 0), frozenset(one.args.items()), tuple(perfetto.names_of(one.callstack)))
        for one in (*read.slices, *read.instants)
        if one.track not in read.threads
    )  # fmt: skip
    wanted = Counter(
        (
            number,
            marker_type.name,
            dict(zip(keys, fields, strict=True)).get(marker_type.named_by, marker_type.name),
            (marker_type.category,),
            ts,
            dur,
            frozenset(zip(shown_keys(marker_type), fields, strict=True)),
            paths.names(stack),
        )
        for number, (_, _, data) in enumerate(converted.threads)
        for marker_type, table in data.markers.items()
        for keys in [[field.key for field in marker_type.fields]]
        for ts, dur, stack, *fields in zip(
            *(table[column].tolist() for column in ("ts", "dur", "stack", *keys)), strict=True
        )
    )
    assert found == wanted


def test_perfetto_samples_are_the_samples_and_allocations(converted: Converted) -> None:
    """Thread, time, weight and functions."""
    found = Counter(
        (s.source, converted.number_of[s.pid, s.tid], s.ts, s.weight, tuple(s.names)) for s in converted.read.samples
    )
    paths = Paths(converted.trace)
    wanted = Counter(
        (source, number, ts, weight, paths.names(stack))
        for number, (_, _, data) in enumerate(converted.threads)
        for source, table, weights in (
            (source_of(converted.trace), data.samples, "weight"),
            ("allocations", data.allocations.take(data.allocations["size"] > 0), "size"),
        )
        for ts, weight, stack in zip(*(table[column].tolist() for column in ("ts", weights, "stack")), strict=True)
    )
    assert found == wanted


def source_of(trace: Trace) -> str:
    """What Perfetto calls the samples."""
    return trace.sampling.name if trace.sampling else "samples"


def heap_profile_of(converted: Converted) -> dict[tuple[int, tuple[str, ...]], list[int]]:
    """(pid, path) → bytes allocated and freed, objects allocated and freed"""
    paths = Paths(converted.trace)
    totals: dict[tuple[int, tuple[str, ...]], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for process, _, data in converted.threads:
        for size, stack in zip(*(data.allocations[column].tolist() for column in ("size", "stack")), strict=True):
            one = totals[process.pid, paths.names(stack)]
            one[size < 0] += abs(size)
            one[2 + (size < 0)] += 1
    return dict(totals)


def test_perfetto_heap_profile_is_the_allocations(converted: Converted) -> None:
    found: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for profile in converted.read.heap_profiles:
        for s in profile.samples:
            row = found[profile.pid, tuple(s.names)]
            for i, value in enumerate((s.allocated, s.freed, s.count, s.freed_count)):
                row[i] += value
    assert found == heap_profile_of(converted)


def graphs_of(trace: Trace) -> list[tuple[int, int, HeapGraph]]:
    """(pid, ts, graph)"""
    return [(p.pid, snapshot.start_ts, snapshot.load(trace)) for p in trace.processes for snapshot in p.heap_snapshots]


def test_perfetto_heap_graphs_are_the_heap_shots(converted: Converted) -> None:
    """Objects, classes, sizes, references and roots."""
    for (pid, ts, graph), found in zip(graphs_of(converted.trace), converted.read.heap_graphs, strict=True):
        assert (found.pid, found.ts) == (pid, ts)
        objects = [(o.type, o.size, [number - 1 for number in o.references]) for _, o in sorted(found.objects.items())]
        sizes = graph.objects["size"].tolist()
        assert objects == list(zip(classes_of(converted.trace, graph), sizes, references_of(graph), strict=True))
        roots = Counter((kind, number - 1) for kind, number in found.roots if kind != UNKNOWN_ROOT)
        assert roots == recorded_roots(converted.trace, graph)


# What the viewer writes well: seconds and bytes with prefixes, plain numbers without a unit.
UNITS = {"ns": ("s", 1e9), "count": ("None", 1), "bytes": ("3", 1)}


def values_of(counter: ModelCounter) -> list[tuple[int, float]]:
    return list(zip(counter.values["ts"].tolist(), counter.values["value"].tolist(), strict=True))


def test_perfetto_counters_are_the_counters(converted: Converted) -> None:
    found = sorted((c.pid, c.name, str(c.unit or c.unit_name), c.values) for c in converted.read.counters.values())
    wanted = sorted(
        (process.pid, c.name, unit, [(ts, value / divisor) for ts, value in values_of(c)])
        for process in converted.trace.processes
        for c in process.counters
        if len(process.counters) <= 32 or len({value for _, value in values_of(c)}) > 1
        for unit, divisor in [UNITS.get(c.unit, (c.unit, 1))]
    )
    assert found == wanted


# ---------------------------------------------------------------- Perfetto: trace_processor

EVENTS = """
SELECT pid, tid, thread_track.name IS NOT NULL AS is_marker, coalesce(thread_track.name, '') AS name,
  count(*) AS n, sum(dur) AS dur, min(dur) AS shortest
FROM slice JOIN thread_track ON track_id = thread_track.id JOIN thread USING (utid) JOIN process USING (upid)
GROUP BY 1, 2, 3, 4
"""
LEAVES = """
SELECT sample.source AS source, pid, tid, sample.callsite_id AS callsite, count(*) AS n
FROM stack_sample AS sample JOIN stack_sample_task_context AS task ON task.id = sample.task_context_id
JOIN thread USING (utid) JOIN process USING (upid) GROUP BY 1, 2, 3, 4
"""
HEAP_PROFILE = """
SELECT pid, callsite_id AS callsite, sum(max(size, 0)) AS made, -sum(min(size, 0)) AS freed,
  sum(max(count, 0)) AS n, -sum(min(count, 0)) AS n_freed
FROM heap_profile_allocation JOIN process USING (upid) GROUP BY 1, 2
"""
HEAP_OBJECTS = """
SELECT class.name AS class_name, self_size, reachable, root_type IS NOT NULL AS is_root
FROM heap_graph_object AS object JOIN heap_graph_class AS class ON object.type_id = class.id
JOIN process USING (upid) WHERE graph_sample_ts = {ts} AND pid = {pid} ORDER BY object.id
"""
REFERENCES = """
SELECT owner_id AS owner, owned_id AS owned FROM heap_graph_reference JOIN heap_graph_object AS object
ON owner_id = object.id JOIN process USING (upid) WHERE graph_sample_ts = {ts} AND pid = {pid} ORDER BY owner_id
"""
RETAINED = """
INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree;
SELECT class.name AS class_name, dominated_size_bytes AS retained
FROM heap_graph_dominator_tree AS tree JOIN heap_graph_object AS object USING (id)
JOIN heap_graph_class AS class ON object.type_id = class.id JOIN process USING (upid)
WHERE object.graph_sample_ts = {ts} AND pid = {pid}
"""
COUNTERS = """
SELECT pid, track.name AS name, count(*) AS n, sum(value) AS total
FROM counter JOIN process_counter_track AS track ON track.id = counter.track_id JOIN process USING (upid)
GROUP BY track.id
"""


@pytest.fixture(scope="module")
def processor(converted: Converted, trace_processor: TraceProcessor) -> Iterator[Any]:
    with trace_processor(converted.path) as opened:
        yield opened


def test_trace_processor_finds_no_error(processor: Any) -> None:
    assert [(row.name, row.value) for row in processor.query(STATS)] == []
    (row,) = processor.query("SELECT count(*) AS n FROM slice WHERE dur < 0")
    assert row.n == 0


def test_trace_processor_has_the_calls_and_markers(converted: Converted, processor: Any) -> None:
    """Of each thread how many, and how long they take together; markers by type."""
    found = {(converted.number_of[row.pid, row.tid], row.name): (row.n, row.dur) for row in processor.query(EVENTS)}
    wanted = {}
    for number, (_, _, data) in enumerate(converted.threads):
        leaves = (data.calls["flags"] & LEAVE) > 0
        if len(data.calls):
            took = int(data.calls["ts"][leaves].sum() - data.calls["ts"][~leaves].sum())
            wanted[number, ""] = len(data.calls) // 2, took
        for marker_type, table in data.markers.items():
            if len(table):
                wanted[number, marker_type.name] = len(table), int(table["dur"].sum())
    assert found == wanted


def leaves_of(processor: Any) -> dict[int, str]:
    """Callsite → the innermost function."""
    symbols: dict[int, str] = {}
    for row in processor.query("SELECT symbol_set_id AS id, name FROM stack_profile_symbol ORDER BY id"):
        symbols.setdefault(row.id, row.name)
    return {row.id: symbols.get(row.symbols, row.name) for row in processor.query(CALLSITES)}


def test_trace_processor_has_the_samples_and_allocations(converted: Converted, processor: Any) -> None:
    """Of each thread, how many have which function or class at the leaf."""
    leaf, paths = leaves_of(processor), Paths(converted.trace)
    found: Counter[Any] = Counter()
    for row in processor.query(LEAVES):
        found[row.source, converted.number_of[row.pid, row.tid], leaf[row.callsite]] += row.n
    wanted: Counter[Any] = Counter()
    for number, (_, _, data) in enumerate(converted.threads):
        made = data.allocations["stack"][data.allocations["size"] > 0]
        for source, stacks in ((source_of(converted.trace), data.samples["stack"]), ("allocations", made)):
            for stack, n in Counter(stacks[stacks >= 0].tolist()).items():
                wanted[source, number, paths.names(stack)[0]] += n
    assert found == wanted


def test_trace_processor_has_the_heap_profile(converted: Converted, processor: Any) -> None:
    leaf = leaves_of(processor)
    found = Counter(
        (row.pid, leaf[row.callsite], row.made, row.freed, row.n, row.n_freed) for row in processor.query(HEAP_PROFILE)
    )
    assert found == Counter((pid, path[0], *row) for (pid, path), row in heap_profile_of(converted).items())


def test_trace_processor_has_the_heap_shots(converted: Converted, processor: Any) -> None:
    """Every object is reachable, also those that no recorded root keeps alive."""
    for pid, ts, graph in graphs_of(converted.trace):
        objects = list(processor.query(HEAP_OBJECTS.format(pid=pid, ts=ts)))
        sizes = graph.objects["size"].tolist()
        assert Counter((row.class_name, row.self_size) for row in objects) == Counter(
            zip(classes_of(converted.trace, graph), sizes, strict=True)
        )
        assert all(row.reachable for row in objects)
        assert sum(row.is_root for row in objects) >= len(np.unique(graph.roots["object"]))
        references = list(processor.query(REFERENCES.format(pid=pid, ts=ts)))
        assert len(references) == len(graph.references)
        assert all(row.owned is not None for row in references)


def test_trace_processor_retains_the_same(converted: Converted, processor: Any) -> None:
    for pid, ts, graph in graphs_of(converted.trace):
        found = Counter((row.class_name, row.retained) for row in processor.query(RETAINED.format(pid=pid, ts=ts)))
        retained = retained_sizes(graph, dominators(graph))
        assert found == Counter(zip(classes_of(converted.trace, graph), retained, strict=True))


def test_trace_processor_has_the_counters(converted: Converted, processor: Any) -> None:
    found = sorted((row.pid, row.name, row.n, row.total) for row in processor.query(COUNTERS))
    wanted = sorted(
        (process.pid, c.name, len(c.values), float(c.values["value"].sum()) / (1e9 if c.unit == "ns" else 1))
        for process in converted.trace.processes
        for c in shown_counters(converted.trace, process)
    )
    assert found == [(pid, name, n, pytest.approx(total)) for pid, name, n, total in wanted]
