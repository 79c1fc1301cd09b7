"""Goes through a trace once, thread by thread, and adds up what `info`, the page and comparisons need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traceferry.analysis.totals.details import Details
from traceferry.analysis.totals.sums_of_trace import BYTES, COUNT, AllocationTotals, MarkerTotals, SampleTotals
from traceferry.analysis.totals.trees import Trees
from traceferry.model import Array, Process, Thread, ThreadData, Trace, TraceBuilder, sums
from traceferry.timeline.balance import CallTotals


@dataclass(frozen=True)
class ThreadCounts:
    """How much a thread has of everything. markers: rows by the name of their type."""

    tid: int
    name: str
    samples: int
    calls: int
    markers: dict[str, int]
    allocations: int
    allocated_bytes: int


@dataclass(frozen=True)
class ViewCounts:
    """A table of sizes that is shown as a thread. total: of the samples' weights, in `unit`."""

    name: str
    unit: str
    samples: int
    total: int


@dataclass(frozen=True)
class ProcessCounts:
    threads: list[ThreadCounts]
    views: list[ViewCounts]


class Collected:
    """The sums of a trace, by its own indices. processes: in the trace's order; trees, details: None unless asked
    for."""

    def __init__(self, trace: TraceBuilder, trees: Trees | None = None, details: Details | None = None) -> None:
        self.trace = trace
        self.trees = trees
        self.details = details
        self.calls = CallTotals(trace.frames, trace.funcs)
        self.samples = SampleTotals(trace)
        self.allocations = AllocationTotals()
        self.markers = MarkerTotals()
        self.processes: list[ProcessCounts] = []

    def by_func(self) -> dict[str, Array]:
        """int64 for each function: calls counts enters; total_ns and total_samples count the outermost activation of a
        recursive function only."""
        calls, total_ns, self_ns = self.calls.by_func()
        samples, total_samples = self.samples.by_func()
        return {
            "calls": calls,
            "total_ns": total_ns,
            "self_ns": self_ns,
            "samples": samples,
            "total_samples": total_samples,
        }

    def _add(self, process: Process, thread: Thread, data: ThreadData) -> ThreadCounts:
        allocated = self.allocations.add(data.allocations)
        self.markers.add(data.markers)
        self.samples.add(data.samples["stack"])
        if self.details is not None:
            self.details.add(process, thread, data)
        return ThreadCounts(
            thread.tid,
            thread.name,
            len(data.samples),
            self.calls.add(data.calls),
            {marker_type.name: len(table) for marker_type, table in data.markers.items()},
            int(allocated[COUNT]),
            int(allocated[BYTES]),
        )

    def load(self, progress: Callable[[int], None]) -> None:
        """Loads each thread once, one at a time."""
        for nth, process in enumerate(self.trace.processes):
            counts = ProcessCounts([], [])
            self.processes.append(counts)
            for thread in process.threads:
                data = thread.load(self.trace)
                if thread.sample_unit:
                    total = sums.total(data.samples["weight"])
                    counts.views.append(ViewCounts(thread.name, thread.sample_unit, len(data.samples), total))
                    if self.trees is not None:
                        self.trees.add_view(nth, thread, data)
                else:
                    counts.threads.append(self._add(process, thread, data))
                    if self.trees is not None:
                        self.trees.add(nth, len(counts.threads) - 1, data)
                del data
                progress(thread.n_records)


def collect(
    trace: Trace,
    trees: Trees | None = None,
    progress: Callable[[int], None] = lambda _: None,
    details: Details | None = None,
) -> Collected:
    """Returns the sums of a trace. trees, details: where to add the call trees and what a comparison needs, too;
    progress: called with the number of records done.

    Loads each thread once; a thread's tables are gone through in pieces, once, or twice with trees.
    """
    collected = Collected(trace.opened(), trees, details)
    collected.load(progress)
    return collected
