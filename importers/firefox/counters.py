"""Map: the counters of a profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from traceferry.importers.firefox.columns import BadRows, Columns, rows_to_columns
from traceferry.importers.firefox.times import Times
from traceferry.model import COUNTER_VALUES, Array, Counter, Table

SUMS, AMOUNTS, MEMORY, BYTES = "line-accumulated", "line-rate", "Memory", "bytes"
MAX_GROUPS = 64


# This project's profiles begin each counter with a 0, so much earlier, and end it with its last value.
LEAD_NS = 1000


# Where they have what a counter was, beside what it changed by: of a range, that alone tells.
TOTALS = "number"


def without_lead(counter: Counter, end_ts: int | None) -> Counter:
    """Returns a counter of a profile of this project with the values that the recording had. end_ts: of the recording,
    None is unknown."""
    if counter.adds_up:
        return counter
    ts, value = counter.values["ts"], counter.values["value"]
    first = int(len(ts) > 1 and value[0] == 0 and ts[1] - ts[0] <= LEAD_NS)
    is_at_end = len(ts) > first + 1 and (end_ts is None or ts[-1] >= end_ts)
    last = len(ts) - int(is_at_end and value[-1] == value[-2])
    return replace(counter, values=counter.values.take(slice(first, last)))


def read_counters(counter: dict[str, Any], path: str, times: Times, bad: BadRows, totals: str = "") -> list[Counter]:
    """Returns a counter, or one for each of its groups, which it has until version 47. totals: the column that has what
    it was, of those that have what it changed by; "" is none."""
    groups = counter.get("samples", counter.get("sampleGroups"))
    if isinstance(groups, dict) and "groups" in groups:
        groups = groups["groups"]
    listed = groups if isinstance(groups, list) else [groups]
    made: list[Counter] = []
    for nth, group in enumerate(listed[:MAX_GROUPS]):
        within = group.get("samples") if isinstance(group, dict) and "samples" in group else group
        table = Columns(rows_to_columns(within), f"{path}.samples", bad)
        if table.n:
            made.append(_counter(counter, f" {nth + 1}" if len(listed) > 1 else "", table, times, totals))
    return made


def _counter(counter: dict[str, Any], suffix: str, table: Columns, times: Times, totals: str) -> Counter:
    display = counter.get("display")
    shown = display if isinstance(display, dict) else {}
    are_sums = shown.get("graphType") == SUMS or (not shown and counter.get("category") == MEMORY)
    unit, color = shown.get("unit"), shown.get("color")
    name, doc = counter.get("name"), counter.get("description")
    return Counter(
        (name if isinstance(name, str) and name else "counter") + suffix,
        unit if isinstance(unit, str) and unit else BYTES if are_sums and not shown else "count",
        doc if isinstance(doc, str) else "",
        _values(table, are_sums, times, totals),
        adds_up=shown.get("graphType") == AMOUNTS,
        **({"color": color} if isinstance(color, str) and color else {}),
    )


def _values(table: Columns, are_sums: bool, times: Times, totals: str) -> Table:
    if "time" in table or "timeDeltas" not in table:
        ms = table.floats("time")
        is_timed = ~np.isnan(ms)
        ts = times.on_clock(np.where(is_timed, ms, 0))
    else:
        is_timed = np.ones(table.n, bool)
        ts = np.cumsum(times.durations(table.floats("timeDeltas", 0))) + times.on_clock(np.zeros(1))
    has_totals = are_sums and totals in table
    value: Array = np.clip(table.floats(totals if has_totals else "count", 0), -1e300, 1e300)
    order = np.argsort(ts[is_timed], kind="stable")
    ts, value = ts[is_timed][order], value[is_timed][order]
    return Table(COUNTER_VALUES, {"ts": ts, "value": np.cumsum(value) if are_sums and not has_totals else value})
