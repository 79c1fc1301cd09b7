"""Map: counters, and the size of the managed heap."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import COUNTER_SECTIONS, COUNTER_UNITS, PERFORMANCE_SECTION, CounterType, Event
from traceferry.model import COUNTER_VALUES, Array, Counter, Table
from traceferry.report import Report

DESCRIPTION_WIDTH, VALUE_WIDTH = 7, 3
MS = 1_000_000
LONGEST_MS = 1 << 42
UNITS_BIT = 24
U32, U64 = 1 << 32, 1 << 64


@dataclass
class _Counter:
    """section: a bit, or its name; ts, values: so far, on the event clock and in the unit of the model."""

    name: str
    section: str
    unit: str
    scale: int
    is_absolute: bool
    raw: int = 0
    ts: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def counters(log: Log, report: Report, span: tuple[int, int], shift_ns: int) -> list[Counter]:
    """In the order of their numbers. Descriptions come first: the first values may have an earlier time than they."""
    known = _described(log)
    report.note("counter_unknown", _read_values(log, known), where=log.source.path)
    made = [_made(counter, span, shift_ns) for _, counter in sorted(known.items()) if counter.values]
    return [*made, *_heap_size(log, span, shift_ns)]


def _described(log: Log) -> dict[int, _Counter]:
    known: dict[int, _Counter] = {}
    for row in log.records.of(Event.COUNTERS_DESC).tolist():
        for cells in log.records.lists(row).reshape(-1, DESCRIPTION_WIDTH).tolist():
            section, section_at, name_at, type_, unit, _, index = cells
            bit = section.bit_length() - 1
            section_name = log.text(section_at) if section_at else COUNTER_SECTIONS.get(bit, "")
            unit_name, scale = COUNTER_UNITS.get(unit >> UNITS_BIT, ("count", 1))
            if type_ == CounterType.TIME_INTERVAL:
                unit_name, scale = "ns", 1000
            is_absolute = section == PERFORMANCE_SECTION
            known.setdefault(index, _Counter(log.text(name_at), section_name, unit_name, scale, is_absolute))
    return known


def _read_values(log: Log, known: dict[int, _Counter]) -> int:
    """Whole numbers are differences from the value before, except those of performance counters. Returns how many
    values are of counters without a description, or texts."""
    n_left_out = 0
    rows = log.records.of(Event.COUNTERS)
    limits: dict[int, int] = {
        CounterType.INT: U32, CounterType.UINT: U32, CounterType.WORD: log.layout.pointer_mask + 1,
    }  # fmt: skip
    for row, ts in zip(rows.tolist(), _times(log, rows).tolist(), strict=True):
        for index, type_, value in log.records.lists(row).reshape(-1, VALUE_WIDTH).tolist():
            counter = known.get(index)
            if counter is None or type_ == CounterType.STRING:
                n_left_out += 1
                continue
            counter.ts.append(ts)
            counter.values.append(_number(counter, type_, value, limits) * counter.scale)
    return n_left_out


def _times(log: Log, rows: Array) -> Array:
    """Before version 13 an event says how many ms it is after the first one, and is never before the events in front of
    it; int64 on the event clock."""
    ts: Array = log.records.ts[rows]
    if log.layout.events >= 13 or len(rows) == 0:
        return ts
    since_first = np.minimum(log.records["ms"][rows], LONGEST_MS).astype(np.int64) * MS
    times: Array = since_first + (ts - since_first).max()
    return times


def _number(counter: _Counter, type_: int, value: int, limits: dict[int, int]) -> float:
    """limits: where the numbers of a type wrap around."""
    if type_ == CounterType.DOUBLE:
        number = float(np.array(value, np.uint64).view(np.float64))
        return number if np.isfinite(number) else 0.0
    counter.raw = value if counter.is_absolute else counter.raw + value
    limit = limits.get(type_, U64)
    counter.raw %= limit
    if type_ in (CounterType.UINT, CounterType.ULONG):
        return counter.raw
    return counter.raw - limit if counter.raw >= limit // 2 else counter.raw


def _made(counter: _Counter, span: tuple[int, int], shift_ns: int) -> Counter:
    title = f"{counter.section}: {counter.name}" if counter.section else counter.name
    return Counter(title, counter.unit, f"counter of the runtime, section {counter.section}",
                   _values(np.array(counter.ts, np.int64), counter.values, span, shift_ns))  # fmt: skip


def _heap_size(log: Log, span: tuple[int, int], shift_ns: int) -> list[Counter]:
    rows = log.records.of(Event.GC_RESIZE)
    if len(rows) == 0:
        return []
    values = _values(log.records.ts[rows], log.records["size"][rows].tolist(), span, shift_ns)
    return [Counter("managed heap", "bytes", "size of the garbage-collected heap", values, color="green")]


def _values(ts: Array, values: list[float], span: tuple[int, int], shift_ns: int) -> Table:
    order = np.argsort(ts, kind="stable")
    ts = np.clip(ts[order], *span) + shift_ns
    return Table(COUNTER_VALUES, {"ts": ts, "value": np.array(values, np.float64)[order]})
