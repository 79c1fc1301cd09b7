"""Map: heap graphs become heap snapshots; heap profiles, and profiles without times, become views."""

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
    HeapGraph,
    HeapSnapshot,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
    rows_by_key,
)

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


# ---------------------------------------------------------------- views


def add_heap_views(tables: Tables, stacks: Array, span: Span, process: Process, upid: int) -> None:
    """Adds views of each heap of a process that a heap profiler sampled: bytes that are not freed, and all that were
    allocated. They stand at the time of the last dump."""
    answer = tables["heap_profiles"]
    is_mine = answer["upid"].numbers(-1) == upid
    if not is_mine.any():
        return
    names = np.array(answer["heap_name"].texts(), object)
    ts, size, callsite = (answer[name].numbers(-1) for name in ("ts", "size", "callsite_id"))
    for heap in dict.fromkeys(names[is_mine].tolist()):
        rows = np.flatnonzero(is_mine & (names == heap))
        at = span.of(int(ts[rows].max()))
        for title, weight in (("unreleased", size[rows]), ("allocated", np.maximum(size[rows], 0))):
            view = View(f"{title} memory of {encodable(heap) or 'heap'}", "bytes", at)
            process.threads += view.thread(callsite[rows], weight.astype(np.float64), stacks, process)


class View(NamedTuple):
    """A thread that says what stacks have in all. ts: when that was."""

    name: str
    unit: str
    ts: int

    def thread(self, callsite: Array, weight: Array, stacks: Array, process: Process) -> Sequence[Thread]:
        """Returns a thread of the process with what weighs more than nothing, none where nothing does. weight: of each
        row, which are summed up by stack."""
        stack = stacks[np.where((callsite >= 0) & (callsite < len(stacks)), callsite, -1)]
        held, nth = np.unique(stack, return_inverse=True)
        total = np.minimum(np.bincount(nth, weight, len(held)), MOST).round().astype(np.int64)
        kept = total > 0
        if not kept.any():
            return ()
        columns = {"ts": np.full(int(kept.sum()), self.ts), "stack": held[kept], "weight": total[kept]}
        return (view_of(self.name, self.unit, Table(SAMPLES, columns), process),)


def view_of(name: str, unit: str, samples: Table, process: Process) -> Thread:
    """Returns a thread of the process with these samples, of which there is at least one."""
    tid = max((thread.tid for thread in process.threads), default=process.pid) + 1
    first, last = int(samples["ts"][0]), int(samples["ts"][-1])
    return Thread(tid, name, False, first, last, partial(_samples, samples), len(samples), unit)


def _samples(samples: Table, _: TraceBuilder) -> ThreadData:
    return ThreadData(samples=samples)


def profiles_without_times(tables: Tables, stacks: Array, start_ts: int) -> list[Process]:
    """Returns a process of views for each file of pprof or of collapsed stacks: a view for each type of its samples."""
    profiles, samples = tables["aggregate_profiles"], tables["aggregate_samples"]
    rows = rows_by_key(samples["profile"].numbers(-1))
    value, callsite = np.nan_to_num(samples["value"].reals()), samples["callsite_id"].numbers(-1)
    texts = (profiles[name].texts() for name in ("scope", "type", "unit"))
    found: dict[str, Process] = {}
    for number, scope, kind, unit in zip(profiles["id"].numbers().tolist(), *texts, strict=True):
        name = encodable(scope) or "profile"
        process = found.setdefault(name, Process(0, name, start_ts, start_ts))
        mine = rows.get(number, np.zeros(0, np.int64))
        known, factor = SAMPLE_UNITS.get(unit, ("samples", 1.0))
        view = View(encodable(kind) or "samples", known, start_ts)
        process.threads += view.thread(callsite[mine], value[mine] * factor, stacks, process)
    return [process for process in found.values() if process.threads]
