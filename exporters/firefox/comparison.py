"""A comparison for the Firefox Profiler: for each matched thread the base, the new side, and the comparison of both.

The comparison thread is what the front-end's own `/compare/` makes (src/profile-logic/merge-compare.ts): the samples of
the first with negative weights, then those of the second, and `processType: "comparison"`, for which the viewer shows
the call tree with signed values. Each sample is a node of the call tree with what the node has itself.
"""

from __future__ import annotations

import numpy as np

from traceferry.analysis.compare.comparison import Comparison
from traceferry.analysis.compare.trees import DiffTree, Measured, as_trace, diff_tree, process_of
from traceferry.analysis.totals.series import SAMPLES
from traceferry.exporters.firefox.markers import Schemas
from traceferry.exporters.firefox.meta import Activity, Categories, libs, meta
from traceferry.exporters.firefox.profile import NO_MARKERS, thread_head
from traceferry.exporters.firefox.tables import Stacks, write_shared
from traceferry.exporters.json.stream import JsonWriter
from traceferry.files.output import Output
from traceferry.model import Array, Thread, ThreadData, Trace

NS_PER_MS = 1e6


def write_comparison(comparison: Comparison, out: Output) -> None:
    tree = diff_tree(comparison)
    trace = as_trace(comparison, tree)
    json = JsonWriter(out)
    stacks, categories = Stacks(trace), Categories(trace)
    n_threads = 3 * len(tree.measured)
    with json.object():
        with json.array("threads"):
            for nth, measured in enumerate(tree.measured):
                _write_threads(json, trace, tree, measured, nth)
        categories.update()
        values = meta(trace, [Activity(samples=1)] * n_threads, categories, Schemas().all, "comparison")
        shown = {"initialVisibleThreads": list(range(n_threads)), "initialSelectedThreads": [_first(tree)]}
        json.member("meta", values | shown | {"importedFrom": "traceferry compare"})
        json.member("libs", libs(trace))
        json.member("counters", [])
        write_shared(json, trace, stacks, categories)


def _first(tree: DiffTree) -> int:
    """Returns the comparison of the thread with most in it, of time or samples before others."""
    whole = [(m.unit != "bytes" or m.name == SAMPLES.name, float(m.base.sum() + m.new.sum())) for m in tree.measured]
    return 3 * whole.index(max(whole)) + 2 if whole else 0


def _write_threads(json: JsonWriter, trace: Trace, tree: DiffTree, measured: Measured, nth: int) -> None:
    process = process_of(trace, measured)
    divisor = NS_PER_MS if measured.unit == "ns" else 1.0
    stacks = [measured.node[own > 0] for own in (measured.base, measured.new)]
    weights = [own[own > 0] / divisor for own in (measured.base, measured.new)]
    both, signed = np.concatenate(stacks), np.concatenate((-weights[0], weights[1]))
    order = np.argsort(both, kind="stable")
    what = "" if measured.name in ("samples", "time of calls") else f" ({measured.name})"
    for place, (words, kind, stack, weight) in enumerate(
        (
            ("base", "default", stacks[0], weights[0]),
            ("new", "default", stacks[1], weights[1]),
            ("new - base", "comparison", both[order], signed[order]),
        )
    ):
        name = f"{measured.thread or 'thread'}{what}: {words}"
        thread = Thread(3 * nth + place + 1, name, False, trace.start_ts, trace.end_ts, lambda _: ThreadData())
        with json.object():
            json.members(thread_head(trace, process, thread) | {"processType": kind})
            _write_samples(json, trace, measured.unit, stack, weight)
            json.member("markers", NO_MARKERS)


def _write_samples(json: JsonWriter, trace: Trace, unit: str, stack: Array, weight: Array) -> None:
    n = len(stack)
    with json.table("samples", n):
        json.ints("stack", stack)
        # They stand for no moment: they are spread over the time of a run.
        json.millis("time", np.arange(n, dtype=np.int64) * max((trace.end_ts - trace.start_ts) // max(n, 1), 1))
        json.member("weight", weight.tolist())
        json.member("weightType", {"ns": "tracing-ms", "bytes": "bytes"}.get(unit, "samples"))
