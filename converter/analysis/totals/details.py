"""What only a comparison adds up: how long events last, time off the CPU, code by function, retained memory, and what
the threads of each name have."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np

from traceferry.analysis.totals._trees import inclusive_by_row
from traceferry.heap.classes import UNKNOWN_CLASS, by_class
from traceferry.model import Array, MarkerType, Process, Table, Thread, ThreadData, Trace, TraceBuilder, sums
from traceferry.model.schema import PREEMPTED, WAITING

Key = tuple[Any, ...]
NUMBERS = re.compile(r"\d+")
# A histogram's bucket holds durations of which the longest is at most 1/64 above the shortest.
STEPS = 64
STEP_BITS = 6
# States of threads, in the order of the amounts of `off_cpu`.
OFF_CPU = (WAITING, PREEMPTED)


def name_pattern(name: str) -> str:
    """Returns a name of a thread or process without its numbers: "worker 12" and "worker 3" are "worker N"."""
    return NUMBERS.sub("N", name)


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
    """Added up thread by thread, as `collect` goes through a trace."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        # By the name of the marker type: (count, ns, the longest) and how many are in each bucket.
        self.events: dict[str, list[int]] = {}
        self.durations: dict[str, Counter[int]] = {}
        # By process and thread, without numbers: ns waiting and preempted.
        self.off_cpu: dict[Key, list[int]] = {}
        self.sample_weight = 0

    def add(self, process: Process, thread: Thread, data: ThreadData) -> None:
        for marker_type, table in data.markers.items():
            self._add_events(marker_type, table)
        self._add_off_cpu(process, thread, data.scheduling)
        self.sample_weight = sums.limited(self.sample_weight + sums.total(data.samples["weight"]))

    def _add_events(self, marker_type: MarkerType, table: Table) -> None:
        if not len(table):
            return
        dur = np.maximum(table["dur"], 0)
        known = self.events.setdefault(marker_type.name, [0, 0, 0])
        known[0] += len(table)
        known[1] = sums.limited(known[1] + sums.total(dur))
        known[2] = max(known[2], int(dur.max()))
        found, counts = np.unique(bucket_of(dur), return_counts=True)
        of_type = self.durations.setdefault(marker_type.name, Counter())
        of_type.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))

    def _add_off_cpu(self, process: Process, thread: Thread, scheduling: Table) -> None:
        if not len(scheduling):
            return
        ts, state = scheduling["ts"], scheduling["state"]
        lasts = np.diff(ts, append=max(thread.end_ts, int(ts[-1])))
        known = self.off_cpu.setdefault((name_pattern(process.name), name_pattern(thread.name)), [0] * len(OFF_CPU))
        for nth, wanted in enumerate(OFF_CPU):
            known[nth] = sums.limited(known[nth] + sums.total(lasts[state == wanted]))


def retained_by_class(trace: Trace) -> dict[str, list[int]]:
    """Returns, by class of the last heap snapshot of each process, objects, bytes, bytes that they keep alive. Of
    objects that hold others of their class only the outermost count for these."""
    trace, found = trace.opened(), dict[str, list[int]]()
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
            known = found.setdefault(name, [0, 0, 0])
            known[:] = [sums.limited(a + int(column[row])) for a, column in zip(known, columns, strict=True)]
    return found
