"""Goes through a trace once, thread by thread, and adds up what `info`, the page and comparisons need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from traceferry.analysis.totals.accesses import AccessTotals, access_events, latency_event
from traceferry.analysis.totals.branches import BranchTotals
from traceferry.analysis.totals.details import Details
from traceferry.analysis.totals.own_code import OwnCode
from traceferry.analysis.totals.sums_of_trace import (
    BYTES,
    COUNT,
    AllocationTotals,
    MarkerTotals,
    SampleTotals,
    process_of,
)
from traceferry.analysis.totals.trees import Trees
from traceferry.analysis.totals.waits import WaitTotals
from traceferry.model import Array, Process, Thread, ThreadData, Trace, TraceBuilder, sums
from traceferry.timeline.balance import CallTotals

Json = dict[str, Any]


class ProcessCounts(NamedTuple):
    """The counts of each thread and each view of sizes of a process, as `info --json` shows it."""

    threads: list[Json]
    views: list[Json]


class EventAmounts(NamedTuple):
    """The samples of an event, and what they weigh together."""

    samples: int = 0
    weight: int = 0

    def plus(self, samples: int, weight: int) -> EventAmounts:
        return EventAmounts(self.samples + samples, sums.limited(self.weight + weight))


class Collected:
    """The sums of a trace, by its own indices. processes: in the trace's order; trees, details: None unless asked
    for."""

    def __init__(self, trace: TraceBuilder, trees: Trees | None = None, details: Details | None = None) -> None:
        self.trace = trace
        self.trees = trees
        self.details = details
        self.calls = CallTotals(trace.frames, trace.funcs)
        self.samples = SampleTotals(trace)
        self.own_code = OwnCode(trace)
        self.of_events = [EventAmounts() for _ in trace.events]
        # Where one event was recorded, its samples tell what its weights would.
        self.weights = {row: SampleTotals(trace) for row in range(len(trace.events)) if len(trace.events) > 1}
        self.branches = BranchTotals()
        self.accesses = {row: AccessTotals(trace) for row in access_events(trace)}
        self.waits = WaitTotals()
        self.allocations = AllocationTotals()
        self.markers = MarkerTotals()
        self.processes: list[ProcessCounts] = []

    @property
    def n_samples(self) -> int:
        return sum(thread["samples"] for process in self.processes for thread in process.threads)

    def by_func(self, group: Array | None = None) -> dict[str, Array]:
        """Returns int64 for each function: calls counts enters; total_ns and total_samples count the outermost
        activation of a recursive function only. group: the func (int32) to which the samples of each count, by default
        itself."""
        names = ("calls", "total_ns", "self_ns", "samples", "total_samples")
        of = np.arange(len(self.trace.funcs), dtype=np.int32) if group is None else group
        return dict(zip(names, (*self.calls_by_func(), *self.samples.by_func(of)), strict=True))

    def calls_by_func(self) -> tuple[Array, Array, Array]:
        """Returns what `CallTotals.by_func` returns."""
        return self.calls.by_func() if self.trees is None else self.trees.calls_by_func()

    def weights_by_func(self, group: Array) -> dict[int, tuple[Array, Array]]:
        """Returns for each event the weight of each function itself, and with what it calls: int64. group: as in
        `by_func`."""
        return {row: totals.by_func(group) for row, totals in self.weights.items()}

    def _add_events(self, data: ThreadData) -> Json:
        """Adds the samples of all events. Returns what the thread has of each, where there are several."""
        found = []
        for row, event in enumerate(self.trace.events):
            samples = data.samples_of(row)
            if samples is None or not len(samples):
                continue
            weight = sums.total(samples["weight"])
            if row in self.accesses:
                self.accesses[row].add(samples["stack"], self._latencies(data, row))
            n = sums.total(self.trace.n_samples(data, row))
            self.of_events[row] = self.of_events[row].plus(n, weight)
            if row in self.weights:
                self.weights[row].add_weights(samples["stack"], samples["weight"])
            found.append({"event": event.name, "samples": n, "weight": weight})
        return {"events": found} if self.weights else {}

    def _latencies(self, data: ThreadData, row: int) -> Array | None:
        latency = latency_event(self.trace, row)
        table = None if latency is None else data.other_samples.get(latency)
        return None if table is None else table["weight"]

    def add(self, process: Process, thread: Thread, data: ThreadData, n_calls: int) -> Json:
        """Adds a thread, whose calls were added up before. Returns what it has."""
        allocated = self.allocations.add(data.allocations)
        self.markers.add(data.markers)
        ran = process_of(self.trace, process)
        n_samples = self.samples.add_table(self.trace.sampling, data.samples, ran)
        branches = self.branches.add(data.branches)
        self.waits.add(process, thread, data)
        if self.details is not None:
            self.details.add(process, thread, data)
            self.details.add_branches(process, thread, branches)
        return {
            "tid": thread.tid,
            "name": thread.name,
            "samples": n_samples,
            **self._add_events(data),
            "calls": n_calls,
            "markers": {marker_type.name: len(table) for marker_type, table in data.markers.items()},
            "allocations": {"count": int(allocated[COUNT]), "bytes": int(allocated[BYTES])},
        }


def collect(
    trace: Trace,
    trees: Trees | None = None,
    progress: Callable[[int], None] = lambda _: None,
    details: Details | None = None,
) -> Collected:
    """Returns the sums of a trace. trees, details: where to add the call trees and what a comparison needs, too;
    progress: called with the number of records done.

    Loads each thread once, one at a time; a thread's tables are gone through in pieces, its calls once.
    """
    collected = Collected(trace.opened(), trees, details)
    for nth, process in enumerate(collected.trace.processes):
        counts = ProcessCounts([], [])
        collected.processes.append(counts)
        for thread in process.threads:
            data = thread.load(collected.trace)
            if thread.sample_unit:
                counts.views.append(
                    {
                        "name": thread.name,
                        "unit": thread.sample_unit,
                        "samples": len(data.samples),
                        "total": sums.total(data.samples["weight"]),
                    }
                )
                if trees is not None:
                    trees.add_view(nth, thread, data)
            else:
                # Trees have what calls are by function, too: one pass through these is enough.
                n_calls = (
                    collected.calls.add(data.calls) if trees is None else trees.add(nth, len(counts.threads), data)
                )
                counts.threads.append(collected.add(process, thread, data, n_calls))
            del data
            progress(thread.n_records)
    return collected
