"""What is compared: tables of amounts, a row for each function, class, kind of event..., a column for each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from traceferry.analysis.compare.alignment import Function
from traceferry.analysis.compare.matching import Renames, matched
from traceferry.analysis.compare.runs import Run, counts_work
from traceferry.analysis.totals.details import middle_of
from traceferry.analysis.totals.rows import Rows
from traceferry.heap.class_names import UNKNOWN_CLASS
from traceferry.model import Array

Key = tuple[Any, ...]
# samples: drawn at random; weights: of samples that are; measured: vary from run to run; exact: the same in every run
# of a deterministic program; ratio: of two of these.
Model = Literal["samples", "weights", "measured", "exact", "ratio"]
Unit = Literal["samples", "ns", "bytes", "count", "ratio"]
# What samples are called that are amounts, by their unit.
MEASURED = {"bytes": "bytes", "ns": "time"}
# Columns of the totals of functions in which samples are counted.
SAMPLED = ("samples", "total_samples")
STATISTICS = ("count", "sum", "p50", "p99", "max")


@dataclass(frozen=True)
class Amounts:
    """name: as gates have it; of: what it is of; is_shared: whether the rows add up to the runs' wholes; keys: (name,
    file, line, kind) of functions, else (name,); values: float64 [rows, runs], the base's runs first; counts: as these,
    how many things each of them is of, as the calls that took a time; part_of: the name of the table to whose wholes
    this one's rows add up, "" is its own; per_sample: float64 [runs], of weights, what a sample weighs; is_time:
    whether a slower machine has more of it, so that it is brought to the level of its functions; other_units: of rows
    that are not of the table's unit."""

    name: str
    title: str
    unit: Unit
    model: Model
    keys: tuple[Key, ...]
    values: Array
    counts: Array
    is_shared: bool = False
    part_of: str = ""
    per_sample: Array | None = None
    is_time: bool = False
    other_units: Mapping[Key, Unit] = field(default_factory=dict)

    def unit_of(self, key: Key) -> Unit:
        """Returns the unit of a row."""
        return self.other_units.get(key, self.unit)

    @property
    def is_sampled(self) -> bool:
        return self.model in ("samples", "weights")

    @property
    def rates(self) -> Array:
        """float64 [runs]: how many times as many samples as in a usual run are of the same weight."""
        return np.ones(self.values.shape[1]) if self.per_sample is None else self.per_sample.mean() / self.per_sample


class Measure(NamedTuple):
    """A measure that samples are counts of. name: what all samples of a run are called together; per_sample: float64
    [runs], how much of it one stands for."""

    name: str
    unit: Unit
    per_sample: Array


# How long recordings lasted, beside what was done in them: of the recorder's machine as much as of the program.
DURATION = "duration of the recording"
TIME_OF_CALLS = "time of calls"


class Metric(NamedTuple):
    """name, title, unit, model: as in Amounts; kind: which of the Totals; column: of its amounts; things: the column
    that says of how many things an amount is."""

    name: str
    title: str
    unit: Unit
    model: Model
    kind: str
    column: str
    things: str


# The totals whose keys begin with a function.
BY_FUNCTION = ("functions", "sites", "code")
METRICS = (
    Metric("self", "self time", "ns", "measured", "functions", "self_ns", "calls"),
    Metric("self", "self samples", "samples", "samples", "functions", "samples", "samples"),
    Metric("total", "total time", "ns", "measured", "functions", "total_ns", "calls"),
    Metric("total", "total samples", "samples", "samples", "functions", "total_samples", "total_samples"),
    Metric("calls", "calls", "count", "exact", "functions", "calls", "calls"),
    Metric("allocated_bytes", "allocated bytes by class", "bytes", "exact", "classes", "bytes", "count"),
    Metric("allocated_objects", "allocated objects by class", "count", "exact", "classes", "count", "count"),
    Metric("site_bytes", "allocated bytes by site", "bytes", "exact", "sites", "bytes", "count"),
    Metric("retained_bytes", "retained bytes by class", "bytes", "exact", "retained", "retained_bytes", "objects"),
    Metric("retained_objects", "live objects by class", "count", "exact", "retained", "objects", "objects"),
    Metric("code_size", "code size by function", "bytes", "exact", "code", "bytes", "objects"),
    Metric("tier_size", "code size by tier", "bytes", "exact", "tiers", "bytes", "objects"),
)
METRICS_OF_THREADS = (
    Metric("off_cpu", "time off the CPU, waiting, by thread", "ns", "measured", "threads", "waiting_ns", "threads"),
    Metric(
        "preempted", "time off the CPU, ready to run, by thread", "ns", "measured", "threads", "preempted_ns", "threads"
    ),
)
METRICS_OF_EVENTS = (
    Metric("event.count", "events: count", "count", "exact", "statistics", "count", "count"),
    *(Metric(f"event.{of}", f"events: {of}", "ns", "measured", "statistics", of, "count") for of in STATISTICS[1:]),
)
# With more groups of events, as every method that was compiled, they are not compared one by one.
MOST_GROUPS = 2000


@dataclass(frozen=True)
class LastTier:
    """The tier in which a function was last compiled, in each run; "" where it was not."""

    function: Function
    base: tuple[str, ...]
    new: tuple[str, ...]


class Sides:
    """Both sides' runs, with functions matched."""

    def __init__(self, base: Sequence[Run], new: Sequence[Run], renames: Renames) -> None:
        self.base, self.new = list(base), list(new)
        functions = [{key for run in side for key in _functions_of(run)} for side in (base, new)]
        of_base, of_new = matched(functions[0], functions[1], renames)
        self._called = [of_base] * len(base) + [of_new] * len(new)
        self._renames = [renames] * len(base) + [lambda name: name] * len(new)
        # What --rename names, and no run of the base has.
        classes = {
            str(key[0]) for run in base for rows in (run.totals.classes, run.totals.retained) for key in rows.keys
        }
        self.unused_renames = renames.unused({function[0] for function in functions[0]} | classes)
        self._statistics = [_statistics_of(run) for run in self.runs]

    @property
    def runs(self) -> list[Run]:
        return self.base + self.new

    def tables(self) -> Iterator[Amounts]:
        """Those that either side has anything in."""
        tables = map(self._of_metric, (*METRICS, *METRICS_OF_EVENTS, *METRICS_OF_THREADS))
        yield from (table for table in tables if table.values.any())

    def whole(self) -> Amounts:
        """Returns what each run has in all."""
        runs = self.runs
        sums = [run.totals.functions.amounts.reshape(-1, 5).sum(axis=0).tolist() for run in runs]
        measure = self.measure or Measure("samples", "samples", np.zeros(len(runs)))
        sampled = np.array([of_run[3] / run.parts for of_run, run in zip(sums, runs, strict=True)]) * measure.per_sample
        called = np.array([of_run[2] for of_run in sums], np.float64)
        is_timed = all(run.is_timed for run in runs)
        lasted = np.array([run.duration_ns * is_timed for run in runs], np.float64)
        rows = {measure.name: sampled, TIME_OF_CALLS: called, DURATION: lasted}
        if self.measured_unit:
            # Their times are made.
            rows = {MEASURED[self.measured_unit]: sampled}
        kept = {name: values for name, values in rows.items() if values.any()}
        of_samples: Unit = self.measured_unit or measure.unit
        unit: Unit = of_samples if len(kept) == 1 and sampled.any() else "ns"
        other_units = {(measure.name,): of_samples} if unit != of_samples else {}
        values = np.array(list(kept.values())).reshape(len(kept), len(runs))
        return Amounts(
            "time", "whole", unit, "measured",
            tuple((name,) for name in kept), values, np.sign(values), other_units=other_units,
        )  # fmt: skip

    @cached_property
    def measure(self) -> Measure | None:
        """Returns what samples of the main event are counts of in all runs; None where that is not the same: as where
        those of some runs stand for time, and those of others do not say for what."""
        times = [run.sample_ns for run in self.runs]
        weights = [run.sample_weight / max(run.n_samples, 1) for run in self.runs]
        events = {run.sampling.key for run in self.runs if run.sampling is not None}
        if (each := self._of_each_sample(times)) is not None:
            return Measure("time of samples", "ns", each)
        if len(events) == 1 and (each := self._of_each_sample(weights)) is not None:
            return Measure(events.pop()[0], "count", each)
        return None if any(times) or any(weights) else Measure("samples", "samples", np.ones(len(times)))

    def _of_each_sample(self, of_run: Sequence[float]) -> Array | None:
        """Returns what a sample of each run stands for, float64: where a run has none, what those of others do; None
        where that is not known of all."""
        has_samples = np.array([run.n_samples > 0 for run in self.runs])
        known = np.array(of_run, np.float64)
        found = np.where(has_samples, known, known[has_samples].mean() if has_samples.any() else known)
        return found if (found > 0).all() else None

    @property
    def measured_unit(self) -> Literal["", "bytes", "ns"]:
        """Returns what the samples of all runs are amounts of, as bytes of heaps; "" where any counts samples."""
        units = {run.sampling.sample_unit if run.sampling is not None else "" for run in self.runs}
        return "bytes" if units == {"bytes"} else "ns" if units == {"ns"} else ""

    @property
    def are_even(self) -> bool:
        """Whether samples stand for as much in one function as in another, or for as little too much on both sides: of
        work, as page faults, recorders that were asked for a frequency choose other numbers while a program runs."""
        main = [run.sampling for run in self.runs if run.sampling is not None]
        asked_for = {(event.period, event.interval_ns) for event in main if counts_work(event)}
        return len(asked_for) < 2 or all(period for period, _ in asked_for)

    @property
    def count_work(self) -> bool:
        """Whether the samples of all runs count work: a slower machine does no more of it."""
        return all(run.sampling is not None and counts_work(run.sampling) for run in self.runs)

    @property
    def callerless(self) -> tuple[float, float]:
        """Returns in what part of the samples of each side the innermost function hides its caller."""
        base, new = (
            sum(min(run.callerless / max(run.n_samples, 1), 1.0) for run in side) / len(side)
            for side in (self.base, self.new)
        )
        return base, new

    def function_of(self, nth: int, function: Function) -> Function:
        """Returns what a function of the run of that number is called here."""
        return self._called[nth].get(function, function)

    def sample_rates(self, unit: Unit) -> Array:
        """float64: how many times as much of the unit as a usual run each run has for the same work: 1 but of samples
        that say what they stand for."""
        if unit != "samples" or self.measure is None:
            return np.ones(len(self.runs))
        found: Array = self.measure.per_sample.mean() / self.measure.per_sample
        return found

    def in_kernel(self) -> frozenset[Function]:
        """The kernel's functions, as they are called here."""
        return frozenset(self.function_of(nth, key) for nth, run in enumerate(self.runs) for key in run.in_kernel)

    # ------------------------------------------------------------ tables

    def _of_metric(self, metric: Metric) -> Amounts:
        """Returns the rows of all runs by what they are called here, without those that have nothing in the column."""
        if metric.model == "samples" and self.measured_unit:
            unit = self.measured_unit
            title = metric.title.replace("samples", MEASURED[unit])
            metric = metric._replace(unit=unit, model="measured", title=title)
        is_of_work = metric.unit == "samples" and self.count_work
        place: dict[Key, int] = {}
        cells: list[tuple[Array, Array]] = []
        for nth, run in enumerate(self.runs):
            rows: Rows = self._statistics[nth] if metric in METRICS_OF_EVENTS else getattr(run.totals, metric.kind)
            which = [rows.columns.index(column) for column in (metric.column, metric.things)]
            amounts = rows.amounts.reshape(-1, len(rows.columns))[:, which].astype(np.float64)
            # Samples that are counted in parts of one are compared with whole ones.
            amounts[:, [column in SAMPLED for column in (metric.column, metric.things)]] /= run.parts
            at = [place.setdefault(self._key(nth, metric.kind, key), len(place)) for key in rows.keys]
            cells.append((np.array(at, np.int64), amounts))
        values = np.zeros((len(place), len(cells), 2))
        for nth, (rows_at, amounts) in enumerate(cells):
            np.add.at(values[:, nth], rows_at, amounts)
        keys = list(place)
        order = [i for i in sorted(range(len(keys)), key=lambda i: keys[i]) if values[i, :, 0].any()]
        return Amounts(
            metric.name, metric.title, metric.unit, metric.model, tuple(keys[i] for i in order),
            values[order, :, 0], values[order, :, 1], is_shared=metric.name == "self",
            part_of="self" if metric.name == "total" else "",
            is_time=metric.name in ("self", "total") and metric.unit != "bytes" and not is_of_work,
        )  # fmt: skip

    def _key(self, nth: int, kind: str, key: Key) -> Key:
        """Returns what a key of the totals of the run of that number is called here."""
        if kind in ("threads", "statistics"):
            return (" / ".join(key),)
        if kind in BY_FUNCTION:
            return self.function_of(nth, key[:4])
        return (self._renames[nth](str(key[0] or UNKNOWN_CLASS)),)

    def last_tiers(self) -> list[LastTier]:
        """Returns those functions that both sides compiled in every run whose runs do not agree."""
        by_run = [self._last_tiers_of(nth, run) for nth, run in enumerate(self.runs)]
        n = len(self.base)
        found = []
        for function in sorted({function for of_run in by_run for function in of_run}):
            tiers = tuple(of_run.get(function, "") for of_run in by_run)
            if all(tiers) and len(set(tiers)) > 1:
                found.append(LastTier(function, tiers[:n], tiers[n:]))
        return found

    def _last_tiers_of(self, nth: int, run: Run) -> dict[Function, str]:
        """Returns the tiers by the code that was loaded last; without code, by where most samples are."""
        best: dict[Function, tuple[tuple[int, int], str]] = {}
        for (*function, tier), (objects, _, samples, loaded) in zip(
            run.totals.code.keys, run.totals.code.amounts.tolist(), strict=True
        ):
            if not tier:
                continue
            called = self.function_of(nth, tuple(function))
            rank = (loaded + 1 if objects else 0, samples)
            if called not in best or rank > best[called][0]:
                best[called] = (rank, tier)
        return {function: tier for function, (_, tier) in best.items()}


def _functions_of(run: Run) -> Iterator[Function]:
    yield from run.totals.functions.keys
    for key in run.totals.sites.keys:
        yield key[:4]
    for key in run.totals.code.keys:
        yield key[:4]
    for frame in run.trees.frames:
        yield frame[:4]


def _statistics_of(run: Run) -> Rows:
    """Returns STATISTICS, float64, by the type of event, and by type and group. Percentiles are known by type, to one
    64th."""
    totals = run.totals
    buckets: dict[str, list[tuple[int, int]]] = {}
    for (name, bucket), (count,) in zip(totals.durations.keys, totals.durations.amounts.tolist(), strict=True):
        buckets.setdefault(name, []).append((bucket, count))
    found: dict[Key, tuple[float, ...]] = {}
    for (name,), (count, total, longest) in zip(totals.events.keys, totals.events.amounts.tolist(), strict=True):
        of_type = np.array(sorted(buckets[name]), np.int64)
        p50, p99 = (min(percentile(of_type[:, 0], of_type[:, 1], part), longest) for part in (0.5, 0.99))
        found[name,] = (count, total, p50, p99, longest)
    groups = totals.markers if len(totals.markers.keys) <= MOST_GROUPS else Rows(totals.markers.columns)
    for (name, *values), (count, total, longest) in zip(groups.keys, groups.amounts.tolist(), strict=True):
        if values:
            found[f"{name}: {', '.join(map(str, values))}",] = (count, total, 0.0, 0.0, longest)
    return Rows(STATISTICS, tuple(found), np.array(list(found.values()), np.float64))


def percentile(bucket: Array, count: Array, part: float) -> float:
    """The duration that this part of all do not exceed, from a histogram, in ns."""
    sums = np.cumsum(count)
    return float(middle_of(bucket)[int(np.searchsorted(sums, part * sums[-1]))])
