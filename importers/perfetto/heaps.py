"""Map: heap graphs become heap snapshots; heap profiles, and profiles without times, become samples of events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.perfetto.decode import Tables, dense
from traceferry.model import (
    HEAP_OBJECTS,
    HEAP_ROOTS,
    SAMPLES,
    Array,
    Event,
    HeapGraph,
    HeapSnapshot,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
    rows_by_key,
)
from traceferry.timeline.stack_profiles import as_samples

UNNAMED_CLASS = "[unknown class]"
# Units of pprof's sample types: the unit of the samples, and how many of it one is.
SAMPLE_UNITS = {
    "nanoseconds": ("ns", 1.0), "microseconds": ("ns", 1e3), "milliseconds": ("ns", 1e6), "seconds": ("ns", 1e9),
    "bytes": ("bytes", 1.0), "kilobytes": ("bytes", 1024.0), "megabytes": ("bytes", 1024.0**2),
}  # fmt: skip
MOST = 2.0**62


class Span(NamedTuple):
    """The trace's times. offset_ns: what is added to those of the tables."""

    offset_ns: int
    start: int
    end: int

    def of(self, ts: int) -> int:
        return min(max(ts + self.offset_ns, self.start), self.end)


# ---------------------------------------------------------------- heap graphs


class _Dump(NamedTuple):
    """A heap graph as the tables have it, objects by their rows; class_name, root: strings of the trace."""

    class_name: Array
    size: Array
    offsets: Array
    references: Array
    roots: Array
    root_kind: Array

    def graph(self, _: TraceBuilder) -> HeapGraph:
        columns = {"class_name": self.class_name, "size": self.size}
        n, n_roots = len(self.size), len(self.roots)
        objects = Table(
            HEAP_OBJECTS,
            columns | {"object": np.full(n, -1, np.int64), "address": np.zeros(n, np.uint64),
                       "site": np.full(n, -1, np.int32)},
        )  # fmt: skip
        roots = {"object": self.roots, "kind": self.root_kind, "name": np.full(n_roots, -1, np.int32)}
        return HeapGraph(objects, self.offsets, self.references, Table(HEAP_ROOTS, roots))


def snapshots(trace: TraceBuilder, tables: Tables, span: Span) -> dict[int, list[HeapSnapshot]]:
    """Returns the heap snapshots of each process, by its upid."""
    objects, graphs = tables["heap_objects"], tables["heap_graphs"]
    if not len(graphs):
        return {}
    upid, ts = objects["upid"].numbers(-1), objects["ts"].numbers(-1)
    number, size = dense(objects["id"].numbers(-1), len(objects)), np.maximum(objects["size"].numbers(), 0)
    intern = trace.strings.intern
    names = tables["heap_classes"]
    of_class = dict(zip(names["id"].numbers().tolist(), names["name"].texts(), strict=True))
    rows_of_class = {one: intern(encodable(name) or UNNAMED_CLASS) for one, name in of_class.items()}
    unnamed = intern(UNNAMED_CLASS)
    class_name = np.array(
        [rows_of_class.get(one, unnamed) for one in objects["type_id"].numbers(-1).tolist()], np.int32
    )
    roots = np.array([intern(_root(text)) if text else -1 for text in objects["root_type"].texts()], np.int32)
    owner, owned = (
        dense(tables["heap_references"][name].numbers(-1), len(objects)) for name in ("owner_id", "owned_id")
    )
    found: dict[int, list[HeapSnapshot]] = {}
    for process, when in zip(graphs["upid"].numbers().tolist(), graphs["ts"].numbers().tolist(), strict=True):
        mine = np.flatnonzero((upid == process) & (ts == when))
        offsets, references = _references(number[mine], owner, owned)
        is_root = np.flatnonzero(roots[mine] >= 0).astype(np.int32)
        dump = _Dump(class_name[mine], size[mine], offsets, references, is_root, roots[mine][is_root])
        found.setdefault(process, []).append(HeapSnapshot(span.of(when), span.of(when), dump.graph))
    return found


def _references(numbers: Array, owner: Array, owned: Array) -> tuple[Array, Array]:
    """Returns (offsets, references) of the objects of these numbers, which rise, among all references."""
    row = np.full(int(max(numbers.max(initial=-1), owner.max(initial=-1), owned.max(initial=-1))) + 2, -1, np.int32)
    row[numbers[numbers >= 0]] = np.flatnonzero(numbers >= 0)
    source, target = row[owner], row[owned]
    is_here = (source >= 0) & (target >= 0)
    source, target = source[is_here], target[is_here]
    offsets = np.append(0, np.cumsum(np.bincount(source, minlength=len(numbers)))).astype(np.int64)
    return offsets, target[np.argsort(source, kind="stable")]


def _root(kind: str) -> str:
    """Returns the name of a kind of roots for people: `ROOT_JNI_GLOBAL` is "JNI global"."""
    words = kind.removeprefix("ROOT_").lower().split("_")
    return " ".join(word.upper() if word in ("jni", "vm") else word for word in words)


# ---------------------------------------------------------------- heap profiles, and profiles without times


class Measure(NamedTuple):
    """The amounts of stacks of something that is counted. unit: of an event; callsite, weight: of each row, of which
    those of a stack are summed up."""

    name: str
    unit: str
    callsite: Array
    weight: Array

    def samples(self, stacks: Array, ts: int) -> Table:
        """Returns samples of what weighs more than nothing, all at one time."""
        stack = stacks[np.where((self.callsite >= 0) & (self.callsite < len(stacks)), self.callsite, -1)]
        held, nth = np.unique(stack, return_inverse=True)
        total = np.minimum(np.bincount(nth, self.weight, len(held)), MOST).round().astype(np.int64)
        kept = total > 0
        return Table(SAMPLES, {"ts": np.full(int(kept.sum()), ts), "stack": held[kept], "weight": total[kept]})


class HeapProfile(NamedTuple):
    """The samples of a heap profiler. name: of the heap; ts: of the last dump, as tables have it; measures: bytes and
    objects that are not freed, and all that were allocated."""

    name: str
    ts: int
    measures: list[Measure]


def heap_profiles(tables: Tables, upid: int) -> list[HeapProfile]:
    """Returns those of the heaps of a process."""
    answer = tables["heap_profiles"]
    is_mine = answer["upid"].numbers(-1) == upid
    names = np.array(answer["heap_name"].texts(), object)
    ts, callsite = (answer[name].numbers(-1) for name in ("ts", "callsite_id"))
    amounts = {"memory": ("bytes", answer["size"].numbers()), "objects": ("count", answer["count"].numbers())}
    found: list[HeapProfile] = []
    for heap in dict.fromkeys(names[is_mine].tolist()):
        rows = np.flatnonzero(is_mine & (names == heap))
        name = encodable(heap) or "heap"
        measures = [
            Measure(f"{title} {what} of {name}", unit, callsite[rows], of(amount[rows]).astype(np.float64))
            for what, (unit, amount) in amounts.items()
            for title, of in (("unreleased", np.asarray), ("allocated", partial(np.maximum, 0)))
        ]
        found.append(HeapProfile(name, int(ts[rows].max()), measures))
    return found


def add_views(measures: Sequence[Measure], stacks: Array, ts: int, process: Process) -> None:
    """Adds a view of each measure of bytes, for a trace that tells each allocation, too."""
    for measure in measures:
        samples = measure.samples(stacks, ts)
        if measure.unit == "bytes" and len(samples):
            process.threads.append(view_of(measure.name, measure.unit, samples, process))


def add_measures(
    trace: TraceBuilder, name: str, measures: Sequence[Measure], stacks: Array, ts: int, process: Process
) -> None:
    """Adds a thread whose samples have these, each an event. The first is what samples count, where nothing else was
    sampled."""
    rows = [_event_row(trace, measure) for measure in measures]
    samples = dict(zip(rows, (measure.samples(stacks, ts) for measure in measures), strict=True))
    n_samples = sum(map(len, samples.values()))
    if n_samples:
        data = partial(_of_events, samples)
        process.threads.append(Thread(_free_tid(process), name, not process.threads, ts, ts, data, n_samples))


def _of_events(samples: dict[int, Table], _: TraceBuilder) -> ThreadData:
    others = {row: table for row, table in samples.items() if row and len(table)}
    return ThreadData(samples=samples.get(0, Table(SAMPLES)), other_samples=others)


def _event_row(trace: TraceBuilder, measure: Measure) -> int:
    """Returns the row of the trace's event for a measure, which it may get."""
    keys = [event.key for event in trace.events]
    of_main, further = as_samples(measure.name, measure.unit), Event(measure.name, measure.unit)
    if keys[:1] == [of_main.key]:
        return 0
    event = further if keys else of_main
    if event.key not in keys:
        trace.events.append(event)
        return len(keys)
    return keys.index(event.key)


def view_of(name: str, unit: str, samples: Table, process: Process) -> Thread:
    """Returns a thread of the process with these samples, of which there is at least one."""
    first, last = int(samples["ts"][0]), int(samples["ts"][-1])
    return Thread(_free_tid(process), name, False, first, last, partial(_samples, samples), len(samples), unit)


def _free_tid(process: Process) -> int:
    return max((thread.tid for thread in process.threads), default=process.pid) + 1


def _samples(samples: Table, _: TraceBuilder) -> ThreadData:
    return ThreadData(samples=samples)


def add_profiles_without_times(trace: TraceBuilder, tables: Tables, stacks: Array, start_ts: int) -> None:
    """Adds a process for each file of pprof or of collapsed stacks. The last type of its samples is the main one, as
    pprof has it."""
    profiles, samples = tables["aggregate_profiles"], tables["aggregate_samples"]
    rows = rows_by_key(samples["profile"].numbers(-1))
    value, callsite = np.nan_to_num(samples["value"].reals()), samples["callsite_id"].numbers(-1)
    texts = (profiles[name].texts() for name in ("scope", "type", "unit"))
    measures: dict[str, list[Measure]] = {}
    for number, scope, kind, unit in zip(profiles["id"].numbers().tolist(), *texts, strict=True):
        mine = rows.get(number, np.zeros(0, np.int64))
        known, factor = SAMPLE_UNITS.get(unit, ("count", 1.0))
        measure = Measure(encodable(kind) or "samples", known, callsite[mine], value[mine] * factor)
        measures.setdefault(encodable(scope) or "profile", []).insert(0, measure)
    for name, of_file in measures.items():
        process = Process(0, name, start_ts, start_ts)
        add_measures(trace, name, of_file, stacks, start_ts, process)
        if process.threads:
            trace.processes.append(process)
