"""Map: samples, and calls where samples are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from traceferry.importers.firefox._stacks import calls_between, cpu_times, narrowed
from traceferry.importers.firefox.columns import BadRows, Columns
from traceferry.importers.firefox.times import NS_OF_MS, Times
from traceferry.model import CALLS, SAMPLES, Array, Table, TraceBuilder

SAMPLES_UNIT, NS, BYTES = "samples", "ns", "bytes"
# Time stamps are written as decimal numbers of ms, of which some have few digits.
TOLERANCE_NS = 1000
EXACT_PART = 0.99
# Threads with fewer gaps do not tell by themselves whether samples last until the next one: some do by chance.
ENOUGH_GAPS = 100
CPU_SCALE = {"ns": 1, "µs": 1000, "μs": 1000}


class Gaps(NamedTuple):
    """The gaps between a thread's samples that weigh times. n_other: those in which the sample before weighs another
    time; end_ts: the end of the last one, if each lasts as long as it weighs."""

    n: int
    n_other: int
    end_ts: int

    @property
    def are_exact(self) -> bool:
        """Whether each lasts until the next one: samples are calls then."""
        return self.n > 0 and self.n_other <= (1 - EXACT_PART) * self.n


def threads_of_calls(gaps: Sequence[Gaps | None]) -> list[bool]:
    """Returns which threads of a profile have samples that are calls. gaps: of each thread, or None. A thread with
    few is what all are together."""
    known = [one for one in gaps if one is not None]
    together = Gaps(sum(one.n for one in known), sum(one.n_other for one in known), 0).are_exact
    return [one is not None and (one.are_exact if one.n >= ENOUGH_GAPS else together) for one in gaps]


class Rows(NamedTuple):
    """The samples of a thread by time. ts: ns on the trace's clock; stack: rows of the thread's stacks, -1 is none;
    weight: in the unit, which is "samples", "ns" or "bytes"; cpu_ns: -1 is unknown; n_sorted: whose times fell; n_lost:
    without a time, or with a CPU time in another unit."""

    ts: Array
    stack: Array
    weight: Array
    unit: str
    cpu_ns: Array
    n_sorted: int
    n_lost: int

    @property
    def gaps(self) -> Gaps | None:
        """Returns the gaps between samples that weigh times; None: they do not, or none has a stack."""
        if self.unit != NS or not len(self.ts) or bool((self.stack < 0).all()):
            return None
        # What has no stack weighs nothing, in whatever gap it stands.
        differs = (np.abs(np.diff(self.ts) - self.weight[:-1]) > TOLERANCE_NS) & (self.stack[:-1] >= 0)
        return Gaps(len(differs), int(np.count_nonzero(differs)), self.end_ts)

    @property
    def end_ts(self) -> int:
        """The end of the last one, of calls."""
        return int(self.ts[-1] + (max(int(self.weight[-1]), 0) if self.stack[-1] >= 0 else 0))


class KeptRows(NamedTuple):
    """The samples of a thread in as few bytes as their values need. narrow: what `Rows` has, with gaps in ns in place
    of times, and of a column of which all n values are the same only that."""

    n: int
    first_ts: int
    narrow: Rows

    @classmethod
    def of(cls, rows: Rows) -> KeptRows:
        first = int(rows.ts[0]) if len(rows.ts) else 0
        return cls(len(rows.ts), first, _with_columns(rows._replace(ts=np.diff(rows.ts, prepend=first)), narrowed))

    @property
    def n_bytes(self) -> int:
        return sum(one.nbytes for one in (self.narrow.ts, self.narrow.stack, self.narrow.weight, self.narrow.cpu_ns))

    def rows(self) -> Rows:
        rows = _with_columns(self.narrow, lambda values: widened(values, self.n))
        return rows._replace(ts=np.cumsum(rows.ts) + self.first_ts)


def _with_columns(rows: Rows, change: Callable[[Array], Array]) -> Rows:
    return rows._replace(
        ts=change(rows.ts), stack=change(rows.stack), weight=change(rows.weight), cpu_ns=change(rows.cpu_ns)
    )


def widened(values: Array, n: int) -> Array:
    """Returns n values as int64: these, or the first one n times."""
    return values.astype(np.int64) if len(values) == n else np.full(n, values[0], np.int64)


def read_rows(members: dict[str, Any], path: str, n_stacks: int, times: Times, cpu_unit: Any, bad: BadRows) -> Rows:
    """Returns the samples of a thread. n_stacks: how many stacks its table has."""
    table = Columns(members.get("samples"), f"{path}.samples", bad)
    ts, is_timed = _times_of(table, times)
    weight, unit = _weights(table, times)
    columns = [ts, table.index("stack", n_stacks), weight, _cpu_ns(table, cpu_unit)]
    n_untimed = 0 if is_timed is None else int(np.count_nonzero(~is_timed))
    if n_untimed:
        columns = [column[is_timed] for column in columns]
    ts = columns[0]
    n_sorted = int(np.count_nonzero(ts[1:] < ts[:-1]))
    if n_sorted:
        order = np.argsort(ts, kind="stable")
        columns = [column[order] for column in columns]
    return Rows(columns[0], columns[1], columns[2], unit, columns[3], n_sorted, n_untimed)


def _times_of(table: Columns, times: Times) -> tuple[Array, Array | None]:
    """Returns (times on the trace's clock, which rows have one); None: all have."""
    if "time" in table or "timeDeltas" not in table:
        ms = table.floats("time")
        is_timed = ~np.isnan(ms)
        return times.on_clock(np.where(is_timed, ms, 0)), is_timed
    # Deltas are rounded before they are summed, so that errors do not add up.
    deltas = times.durations(table.floats("timeDeltas", 0))
    return np.cumsum(deltas) + times.on_clock(np.zeros(1)), None


def _weights(table: Columns, times: Times) -> tuple[Array, str]:
    """Returns weights and their unit. Until version 28 a column of durations stands for exact samples."""
    kind = table.member("weightType")
    name = "weight" if "weight" in table else "duration"
    if name not in table:
        return np.ones(table.n, np.int64), BYTES if kind == "bytes" else SAMPLES_UNIT
    if kind == "tracing-ms" or name == "duration":
        return times.durations(table.floats(name, 0)), NS
    if kind == "bytes":
        return table.ints(name, 0), BYTES
    weight = table.ints(name, 1)
    table.bad(name, int(np.count_nonzero(weight < 0)))
    return np.maximum(weight, 0), SAMPLES_UNIT


def _cpu_ns(table: Columns, unit: Any) -> Array:
    """Returns ns since the previous sample; of the first one it is not known."""
    scale = CPU_SCALE.get(unit) if isinstance(unit, str) else None
    if "threadCPUDelta" not in table or scale is None:
        return np.full(table.n, -1)
    found = cpu_times(np.ascontiguousarray(table.floats("threadCPUDelta"), np.float64), scale)
    found[:1] = -1
    return found


def table_of(rows: Rows, stacks: Array) -> Table:
    """Returns SAMPLES. stacks: the trace's of each of the thread's and, behind them, none."""
    columns = {"ts": rows.ts, "stack": stacks[rows.stack], "weight": rows.weight, "cpu_ns": rows.cpu_ns}
    return Table(SAMPLES, columns)


def calls_of(trace: TraceBuilder, rows: Rows, stacks: Array) -> Table:
    """Returns CALLS: of each frame of a stack that the next stack does not continue."""
    found = np.append(stacks[rows.stack], np.int32(-1)).astype(np.int32)
    ts, frame, flags = calls_between(
        trace.stacks["prefix"], trace.stacks["frame"], found, np.append(rows.ts, rows.end_ts)
    )
    return Table(CALLS, {"ts": ts, "frame": frame, "flags": flags})


def interval_ns(meta: dict[str, Any]) -> int:
    interval = meta.get("interval")
    is_good = isinstance(interval, (int, float)) and 0 < interval < 1e9
    return round(interval * NS_OF_MS) if is_good and isinstance(interval, (int, float)) else 0
