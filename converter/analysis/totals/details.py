"""What only a comparison adds up: how long events last, time off the CPU, code by function, retained memory, and what
the threads of each name have."""

from __future__ import annotations

import numpy as np

from traceferry.analysis.totals._trees import inclusive_by_row
from traceferry.analysis.totals.branches import AMOUNTS, EVENTS
from traceferry.analysis.totals.rows import Key, Pair
from traceferry.analysis.totals.sums_of_trace import SampleTotals
from traceferry.common.patterns import compiled_later
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.heap.classes import by_class
from traceferry.model import Array, Event, Process, Table, Thread, ThreadData, Trace, TraceBuilder, sums
from traceferry.model.schema import PREEMPTED, RUNNABLE, WAITING

NUMBERS = compiled_later(r"\d+")
# A histogram's bucket holds durations of which the longest is at most 1/64 above the shortest.
STEPS = 64
STEP_BITS = 6
# States of threads, in the order of the amounts of `off_cpu`.
OFF_CPU = ((WAITING,), (PREEMPTED, RUNNABLE))


def name_pattern(name: str) -> str:
    """Returns a name of a thread or process without its numbers: "worker 12" and "worker 3" are "worker N"."""
    return NUMBERS.sub("N", name)


def thread_key(process: str, thread: str) -> Key:
    """Returns what threads of different recordings are taken for one by: names without numbers."""
    return name_pattern(process), name_pattern(thread)


def bucket_of(ns: Array) -> Array:
    """int64: the bucket of each duration. Below STEPS each duration has its own; above, each power of two has STEPS."""
    values = np.maximum(ns, 0)
    exponent = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1 - STEP_BITS, 0)
    # The nearest float64 of a large number can have one bit more than the number.
    exponent -= (exponent > 0) & (values >> exponent < STEPS)
    found: Array = exponent * STEPS + (values >> exponent)
    return found


def middle_of(bucket: Array) -> Array:
    """float64: the duration in ns in the middle of each bucket."""
    exponent = np.maximum(bucket // STEPS - 1, 0)
    first = bucket - exponent * STEPS
    found: Array = (first + np.where(exponent > 0, 0.5, 0.0)) * np.exp2(exponent)
    return found


class Details:
    """Added up thread by thread, as `collect` goes through a trace. pairs: keys and amounts of the Totals of these
    names; sample_weight: of the first event; counts: the samples of each further event; squares: of each event, where
    there are several, the sum of the squares of what its samples weigh; of_branches: what the recording
    has of each of the events of branches."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        self.pairs: dict[str, list[Pair]] = {"events": [], "durations": [], "threads": [], "recorded": []}
        self.sample_weight = 0
        self.of_branches: dict[Event, int] = {}
        n_events = len(trace.events)
        self.counts = {row: SampleTotals(trace) for row in range(1, n_events)}
        self.squares = dict.fromkeys(range(n_events) if n_events > 1 else (), 0.0)

    def add(self, process: Process, thread: Thread, data: ThreadData) -> None:
        for marker_type, table in data.markers.items():
            if len(table):
                self._add_events(marker_type.name, np.maximum(table["dur"], 0))
        if len(data.scheduling):
            self._add_off_cpu(process, thread, data.scheduling)
        self.sample_weight = sums.limited(self.sample_weight + sums.total(data.samples["weight"]))
        key = thread_key(process.name, thread.name)
        for row, event in enumerate(self._trace.events):
            samples = data.samples_of(row)
            if samples is None or not len(samples):
                continue
            n_samples, weight = self._trace.n_samples(data, row), samples["weight"]
            self.pairs["recorded"].append(((*key, *event.key), [sums.total(n_samples), sums.total(weight)]))
            if row in self.squares:
                # Of several samples in a row each weighs as much as the others, as far as anybody knows.
                self.squares[row] += float((np.square(weight.astype(np.float64)) / np.maximum(n_samples, 1)).sum())
            if row:
                self.counts[row].add_weights(samples["stack"], n_samples)

    def add_branches(self, process: Process, thread: Thread, amounts: Array) -> None:
        """amounts: as the columns AMOUNTS of branches."""
        n, key = int(amounts[0]), thread_key(process.name, thread.name)
        for name, event in EVENTS.items():
            if amount := int(amounts[AMOUNTS.index(name)]):
                self.pairs["recorded"].append(((*key, *event.key), [n, amount]))
                self.of_branches[event] = sums.limited(self.of_branches.get(event, 0) + amount)

    def _add_events(self, name: str, dur: Array) -> None:
        self.pairs["events"].append(((name,), [len(dur), sums.total(dur), int(dur.max())]))
        buckets, counts = np.unique(bucket_of(dur), return_counts=True)
        of_type = zip(buckets.tolist(), counts.tolist(), strict=True)
        self.pairs["durations"] += [((name, bucket), [n]) for bucket, n in of_type]

    def _add_off_cpu(self, process: Process, thread: Thread, scheduling: Table) -> None:
        ts, state = scheduling["ts"], scheduling["state"]
        lasts = np.diff(ts, append=max(thread.end_ts, int(ts[-1])))
        off_cpu = [sums.total(lasts[np.isin(state, wanted)]) for wanted in OFF_CPU]
        self.pairs["threads"].append((thread_key(process.name, thread.name), [0, 0, 0, 0, *off_cpu]))


def retained_by_class(trace: Trace) -> list[Pair]:
    """Returns, by class of the last heap snapshot of each process, objects, bytes, bytes that they keep alive. Of
    objects that hold others of their class only the outermost count for these."""
    trace, found = trace.opened(), list[Pair]()
    for process in trace.processes:
        if not process.heap_snapshots:
            continue
        tree = by_class(trace, process.heap_snapshots[-1].load(trace))
        group = np.ascontiguousarray(tree.class_name + 2, np.int32)
        n_groups = len(trace.strings) + 2
        retained = inclusive_by_row(np.ascontiguousarray(tree.parent), group, group, tree.bytes, n_groups)
        columns = [sums.total_by(group, column, n_groups) for column in (tree.objects, tree.bytes)] + [retained]
        for row in sorted(set(group[len(tree.tops) :].tolist())):
            name = UNKNOWN_CLASS if row < 2 else trace.strings[row - 2]
            found.append(((name,), [int(column[row]) for column in columns]))
    return found
