"""A comparison for the Firefox Profiler: for each matched thread the base, the new side, and the comparison of both.

The comparison thread is what the front-end's own `/compare/` makes (src/profile-logic/merge-compare.ts): the samples of
the first with negative weights, then those of the second, and `processType: "comparison"`, for which the viewer shows
the call tree with signed values. Each sample is a node of the call tree with what the node has itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.analysis.compare.comparison import Comparison
from traceferry.analysis.compare.trees import DiffTree, Measured, as_trace, diff_tree, process_of
from traceferry.exporters.firefox.markers import Schemas
from traceferry.exporters.firefox.meta import Activity, Categories, libs, meta
from traceferry.exporters.firefox.profile import NO_MARKERS, thread_head
from traceferry.exporters.firefox.tables import Stacks, StringArray, write_shared
from traceferry.exporters.json.stream import JsonWriter
from traceferry.files.output import Output
from traceferry.model import Array, Process, Thread, ThreadData, Trace

NS_PER_MS = 1e6


@dataclass(frozen=True)
class Weights:
    """The samples of a thread: nodes, and what they weigh in the unit of the viewer."""

    stack: Array
    weight: Array


def write_comparison(comparison: Comparison, out: Output) -> None:
    tree = diff_tree(comparison)
    trace = as_trace(comparison, tree)
    json = JsonWriter(out)
    strings, stacks, categories = StringArray(trace), Stacks(trace), Categories(trace)
    n_threads = 3 * len(tree.measured)
    with json.object():
        with json.array("threads"):
            for nth, measured in enumerate(tree.measured):
                _write_threads(json, trace, tree, measured, nth)
        categories.update()
        values = meta(trace, [Activity(samples=1)] * n_threads, categories, Schemas().all)
        shown = {"initialVisibleThreads": list(range(n_threads)), "initialSelectedThreads": [_first(tree)]}
        json.member("meta", values | shown | {"product": "comparison", "importedFrom": "traceferry compare"})
        json.member("libs", libs(trace))
        json.member("counters", [])
        write_shared(json, trace, stacks, strings, categories)


def _first(tree: DiffTree) -> int:
    """Returns the comparison of the thread with most in it, of time or samples before others."""
    whole = [(m.unit != "bytes", float(m.base.sum() + m.new.sum())) for m in tree.measured]
    return 3 * whole.index(max(whole)) + 2 if whole else 0


def _write_threads(json: JsonWriter, trace: Trace, tree: DiffTree, measured: Measured, nth: int) -> None:
    process = process_of(trace, measured)
    base, new = (_weights(measured.node, own, measured.unit) for own in (measured.base, measured.new))
    order = np.argsort(np.concatenate((base.stack, new.stack)), kind="stable")
    both = Weights(
        np.concatenate((base.stack, new.stack))[order], np.concatenate((-base.weight, new.weight))[order]
    )  # fmt: skip
    what = "" if measured.name in ("samples", "time of calls") else f" ({measured.name})"
    name = (measured.thread or "thread") + what
    _write_thread(json, trace, process, 3 * nth + 1, f"{name}: base", measured.unit, base)
    _write_thread(json, trace, process, 3 * nth + 2, f"{name}: new", measured.unit, new)
    _write_thread(json, trace, process, 3 * nth + 3, f"{name}: new - base", measured.unit, both, "comparison")


def _weights(node: Array, own: Array, unit: str) -> Weights:
    return Weights(node[own > 0], own[own > 0] / (NS_PER_MS if unit == "ns" else 1.0))


def _write_thread(
    json: JsonWriter, trace: Trace, process: Process, tid: int, name: str, unit: str, samples: Weights,
    kind: str = "default",
) -> None:  # fmt: skip
    thread = Thread(tid, name, False, trace.start_ts, trace.end_ts, lambda _: ThreadData())
    n = len(samples.stack)
    with json.object():
        json.members(thread_head(trace, process, thread) | {"processType": kind})
        with json.table("samples", n):
            json.ints("stack", samples.stack)
            # They stand for no moment: they are spread over the time of a run.
            json.millis("time", np.arange(n, dtype=np.int64) * max((trace.end_ts - trace.start_ts) // max(n, 1), 1))
            json.member("weight", samples.weight.tolist())
            json.member("weightType", {"ns": "tracing-ms", "bytes": "bytes"}.get(unit, "samples"))
        json.member("markers", NO_MARKERS)
