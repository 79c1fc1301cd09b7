"""Sums over all threads of a trace, by its own indices: samples, allocations, markers, code. Calls: `CallTotals`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from traceferry.analysis.totals._trees import inclusive_by_row
from traceferry.analysis.totals.rows import Rows, by_pair
from traceferry.heap._allocations import tally
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.model import Array, Event, MarkerType, Process, Table, Trace, TraceBuilder, sums
from traceferry.native.arrays import grown


class Ran(NamedTuple):
    """A process, by the name of what ran in it last and its number."""

    program: str
    pid: int


def process_of(trace: Trace, process: Process) -> Ran | None:
    """Returns what a process is in `SampleTotals.of_processes`: None where the trace has no other."""
    return Ran(process.name, process.pid) if len(trace.processes) > 1 else None


class SampleTotals:
    """Adds up samples by function: those with it as the leaf, and those with it anywhere."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        self._sums, self._n_stacks = np.zeros(0, np.int64), 0
        self._of_processes: dict[Ran, list[tuple[Array, Array]]] = {}

    @property
    def _of_stack(self) -> Array:
        return self._sums[: self._n_stacks]

    def add(self, stack: Array, ran: Ran | None = None) -> None:
        """Counts samples, one each. ran: in which process, None where it does not matter."""
        rows = stack[stack >= 0]
        if len(rows):
            self._add(rows, np.bincount(rows - rows.min()), ran)

    def add_weights(self, stack: Array, weight: Array, ran: Ran | None = None) -> None:
        """Adds up what samples weigh; weight: int64, not negative."""
        has = stack >= 0
        rows = stack[has]
        if len(rows):
            first, last = int(rows.min()), int(rows.max())
            self._add(rows, sums.total_by(rows - first, weight[has], last - first + 1), ran)

    def _add(self, rows: Array, of_rows: Array, ran: Ran | None) -> None:
        """of_rows: int64, from the first of these stacks to the last: those of a thread stand together mostly, so that
        a thread costs what it has, not what the trace has."""
        first = int(rows.min())
        last = first + len(of_rows)
        self._sums, self._n_stacks = grown(self._sums, last), max(self._n_stacks, last)
        self._sums[first:last] = sums.plus(self._sums[first:last], of_rows)
        if ran is not None:
            has = np.flatnonzero(of_rows)
            self._of_processes.setdefault(ran, []).append((has + first, of_rows[has]))

    def add_table(self, event: Event | None, samples: Table, ran: Ran | None = None) -> int:
        """Counts the samples of an event, None where none was recorded. Returns how many they are."""
        if event is None or event.unit != "samples":
            self.add(samples["stack"], ran)
            return len(samples)
        n_samples = event.n_samples(samples)
        self.add_weights(samples["stack"], n_samples, ran)
        return sums.total(n_samples)

    def of_processes(self) -> dict[Ran, int]:
        """Returns how many samples with stacks each process has."""
        parts = self._of_processes.items()
        return {ran: sum(sums.total(of_rows) for _, of_rows in of_process) for ran, of_process in parts}

    def stacks_of(self, ran: Ran) -> Array:
        """Returns the stacks that a process has samples of, each at least once: int64."""
        return np.concatenate([rows for rows, _ in self._of_processes[ran]])

    def by_stack_of(self, processes: Iterable[Ran]) -> Array:
        """Returns how many samples of these processes each of the trace's first stacks has: int64."""
        of_stack = np.zeros(self._n_stacks, np.int64)
        for ran in processes:
            for rows, of_rows in self._of_processes[ran]:
                of_stack[rows] = sums.plus(of_stack[rows], of_rows)
        return of_stack

    def by_stack(self) -> tuple[TraceBuilder, Array]:
        """Returns the trace that has the stacks, and how many samples each of its first stacks has: int64."""
        return self._trace, self._of_stack

    def by_func(self, group: Array) -> tuple[Array, Array]:
        """Returns (own, total) of each func, int64. group: the func (int32) to which each counts."""
        trace, n = self._trace, len(self._of_stack)
        n_funcs = len(trace.funcs)
        func = group[trace.frames["func"][trace.stacks["frame"][:n]]]
        prefix = trace.stacks["prefix"][:n]
        own = sums.total_by(func, self._of_stack, n_funcs)
        return own, inclusive_by_row(prefix, func, func, self._of_stack, n_funcs)

    def by_tier(self) -> list[tuple[int, int, int]]:
        """Returns (function, tier, how many samples end there), of those that have a tier."""
        trace, n = self._trace, len(self._of_stack)
        frame = trace.stacks["frame"][:n]
        func, tier = trace.frames["func"][frame], trace.frames["tier"][frame]
        has = (self._of_stack > 0) & (tier >= 0)
        columns = by_pair(func[has], tier[has], self._of_stack[has])
        return list(zip(*(column.tolist() for column in columns), strict=True))


# The columns of an array of amounts, and where `tally` has them.
AMOUNTS = [2, 0, 3, 1]
AMOUNT_NAMES = ("count", "bytes", "freed_count", "freed_bytes")
COUNT, BYTES, _, _ = range(4)
MARKERS = Rows(("count", "total_ns", "longest_ns"), largest=frozenset({"longest_ns"}))
TIERS = Rows(("objects", "bytes"))


class AllocationTotals:
    """Adds up allocations by class and by stack. Amounts are int64 rows of count, bytes, freed count, freed bytes; the
    first row is of what has no class or no site, so that the class or the stack i is in row i + 1."""

    def __init__(self) -> None:
        self.by_class = np.zeros((1, 4), np.int64)
        # By stack, of the allocations that have a class, which is the leaf, and of those that have none.
        self._classed, self._classless = np.zeros((1, 4), np.int64), np.zeros((1, 4), np.int64)

    def add(self, allocations: Table) -> Array:
        """Adds a thread; returns its amounts, int64[4]."""
        of_class, classed, classless = (np.zeros((1, 4), np.int64) for _ in range(3))
        totals = allocations.totals()
        if totals is not None:
            lacks = totals[:, 0] < 0
            of_class, classed, classless = (
                _by_index(rows[:, nth], rows[:, 2:])
                for rows, nth in ((totals, 0), (totals[~lacks], 1), (totals[lacks], 1))
            )
        for piece in allocations.pieces() if totals is None else ():
            class_name, stack, size = (piece[name] for name in ("class_name", "stack", "size"))
            of_class, lacks = _tallied(of_class, class_name, size), class_name < 0
            if lacks.any():
                classless = _tallied(classless, stack[lacks], size[lacks])
                stack, size = stack[~lacks], size[~lacks]
            classed = _tallied(classed, stack, size)
        self.by_class = _summed(self.by_class, of_class[:, AMOUNTS])
        self._classed = _summed(self._classed, classed[:, AMOUNTS])
        self._classless = _summed(self._classless, classless[:, AMOUNTS])
        return total_amounts(of_class[:, AMOUNTS])

    def by_stack(self, trace: Trace) -> Array:
        """Returns the amounts of each stack that allocated; its leaf is the class, where that is known."""
        return _summed(self._classed, self._classless)[1 : len(trace.stacks) + 1]

    def by_site(self, trace: Trace) -> Array:
        """Returns the amounts of the stacks that allocated: those of the allocations without their leaf, the class. The
        leaf of what has no class is the function that allocated, unless it stands for unknown classes."""
        n = len(self.by_stack(trace)) + 1
        site_row = np.concatenate((np.zeros(1, np.int64), trace.stacks["prefix"][: n - 1].astype(np.int64) + 1))
        own_row = np.arange(n)
        for row in np.flatnonzero(self._classless[1:n].any(axis=1)).tolist():
            if trace.func_name(int(trace.frames["func"][trace.stacks["frame"][row]])) == UNKNOWN_CLASS:
                own_row[row + 1] = site_row[row + 1]
        classed, classless = self._classed[:n], self._classless[:n]
        return _summed(_by_row(site_row[: len(classed)], classed, n), _by_row(own_row[: len(classless)], classless, n))


def _tallied(totals: Array, index: Array, size: Array) -> Array:
    """Adds to the totals that `tally` makes; row i is of index i - 1. They grow where they are too short."""
    rows = index + np.int32(1)
    missing = int(rows.max(initial=0)) + 1 - len(totals)
    if missing > 0:
        totals = np.concatenate((totals, np.zeros((missing + len(totals), 4), np.int64)))
    tally(rows, size, totals)
    return totals


def _by_index(index: Array, amounts: Array) -> Array:
    """Returns the sums of amounts of the same index; row i is of index i - 1."""
    return _by_row(index + 1, amounts, int(index.max(initial=-1)) + 2)


def _by_row(row: Array, amounts: Array, n: int) -> Array:
    """Returns the sums of amounts of the same row, of n rows."""
    return np.stack([sums.total_by(row, column, n) for column in amounts.T], axis=1)


def total_amounts(amounts: Array) -> Array:
    """int64[4]: the sum of rows of amounts."""
    return np.array([sums.total(column) for column in amounts.T], np.int64)


def _summed(one: Array, other: Array) -> Array:
    """Returns the sum of two arrays of amounts; a row that one of them lacks is zero."""
    summed = np.zeros((max(len(one), len(other)), 4), np.int64)
    summed[: len(one)] = one
    summed[: len(other)] = sums.plus(summed[: len(other)], other)
    return summed


class MarkerTotals:
    """Adds up markers by type and by the values of the type's group_by. Of types that declare neither that nor a number
    of bytes those that last are added up by name, others are only counted."""

    def __init__(self) -> None:
        self._parts: dict[MarkerType, list[Rows]] = {}
        self._lasting: list[Rows] = []

    def add(self, markers: dict[MarkerType, Table]) -> None:
        for marker_type, table in markers.items():
            if not len(table):
                continue
            if marker_type.group_by or byte_fields(marker_type):
                self._parts.setdefault(marker_type, []).append(_groups(marker_type, table))
            elif table["dur"].any():
                ns = sums.total(table["dur"]), int(table["dur"].max())
                self._lasting.append(MARKERS.of([(marker_type.name,)], np.array([[len(table), *ns]], np.int64)))

    def lasting(self) -> Rows:
        """Returns the columns of MARKERS by the names of types that are not grouped and whose markers last."""
        return MARKERS.merged(*self._lasting)

    def by_type(self) -> dict[MarkerType, Rows]:
        """Returns the groups of each type: the columns of MARKERS, then a sum for each field that counts bytes."""
        return {marker_type: parts[0].merged(*parts[1:]) for marker_type, parts in self._parts.items()}


def byte_fields(marker_type: MarkerType) -> list[str]:
    return [field.key for field in marker_type.fields if field.format == "bytes"]


def _groups(marker_type: MarkerType, table: Table) -> Rows:
    names, dur = byte_fields(marker_type), table["dur"]
    kind = replace(MARKERS, columns=(*MARKERS.columns, *names))
    keys = list(zip(*(table[key].tolist() for key in marker_type.group_by), strict=True)) or [()] * len(table)
    return kind.of(keys, np.stack([np.ones_like(dur), dur, dur, *(table[name] for name in names)], axis=1))


def ranked(rows: Array, columns: Sequence[Array], name: Callable[[int], Any], most: int) -> list[int]:
    """Returns the first rows, at most so many, by falling values of the columns; ties go by name, then by row. rows:
    rising; columns: int64, above -2^63."""
    values = np.stack([-column[rows] for column in columns])
    order = np.lexsort(values[::-1])
    values, found = values[:, order], list[int]()
    begins = np.append(np.flatnonzero(np.append(True, (values[:, 1:] != values[:, :-1]).any(axis=0))), len(rows))
    for begin, end in pairwise(begins.tolist() if len(rows) else []):
        if begin >= most:
            break
        # Rows of the same values are rising.
        alike = rows[order[begin:end]].tolist()
        found += sorted(alike, key=name) if len(alike) > 1 else alike
    return found[:most]


def code_by_tier(trace: Trace) -> Rows:
    """Returns the number and the bytes of code objects by the tier's name."""
    rows, group = np.unique(trace.code["tier"], return_inverse=True)
    names = [*(trace.strings[name] for name in trace.tiers["name"].tolist()), "none"]
    amounts = [sums.total_by(group, column, len(rows)) for column in (np.ones_like(group), trace.code["size"])]
    return TIERS.of([(names[row],) for row in rows.tolist()], np.stack(amounts, axis=1))
