"""Map: counters, and the size of the managed heap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import COUNTER_SECTIONS, COUNTER_UNITS, PERFORMANCE_SECTION, CounterType, Event
from traceferry.model import COUNTER_VALUES, Array, Counter, Table
from traceferry.report import Report

DESCRIPTION_WIDTH, VALUE_WIDTH = 7, 3
MS = 1_000_000
LONGEST_MS = 1 << 42
UNITS_BIT = 24


@dataclass(frozen=True)
class _Description:
    """scale: what a value is multiplied with, to be in the unit; is_absolute: its whole numbers are no differences."""

    name: str
    section: str
    unit: str
    scale: int
    is_absolute: bool


def counters(log: Log, report: Report, span: tuple[int, int], shift_ns: int) -> list[Counter]:
    """In the order of their numbers. Descriptions come first: the first values may have an earlier time than they."""
    rows = log.records.of(Event.COUNTERS)
    values, lengths = log.records.lists(rows)
    ts = np.repeat(_times(log, rows), lengths // VALUE_WIDTH)
    index, type_, value = values.reshape(-1, VALUE_WIDTH).T
    known = _described(log)
    is_known = (type_ != CounterType.STRING) & np.isin(index, np.array(list(known), np.uint64))
    report.note("counter_unknown", int(np.count_nonzero(~is_known)), where=log.source.path)
    order = np.flatnonzero(is_known)[np.argsort(index[is_known], kind="stable")]
    ts, index, type_, value = (column[order] for column in (ts, index, type_, value))
    first = np.flatnonzero(np.diff(index, prepend=index[:1] + np.uint64(1)))
    descriptions, n_values = [known[number] for number in index[first].tolist()], np.diff(first, append=len(index))
    is_absolute, scale = (
        np.repeat([getattr(of, name) for of in descriptions], n_values) for name in ("is_absolute", "scale")
    )
    numbers = _numbers(type_, value, np.repeat(first, n_values), is_absolute, log.layout.pointer_size) * scale
    made: list[Counter] = []
    for of, begin, n in zip(descriptions, first.tolist(), n_values.tolist(), strict=True):
        title = f"{of.section}: {of.name}" if of.section else of.name
        table = _table(ts[begin : begin + n], numbers[begin : begin + n], span, shift_ns)
        made.append(Counter(title, of.unit, f"counter of the runtime, section {of.section}", table))
    return [*made, *_heap_size(log, span, shift_ns)]


def _described(log: Log) -> dict[int, _Description]:
    known: dict[int, _Description] = {}
    values, _ = log.records.lists(log.records.of(Event.COUNTERS_DESC))
    for section, section_at, name_at, type_, unit, _, index in values.reshape(-1, DESCRIPTION_WIDTH).tolist():
        section_name = log.text(section_at) or COUNTER_SECTIONS.get(section.bit_length() - 1, "")
        unit_name, scale = COUNTER_UNITS.get(unit >> UNITS_BIT, ("count", 1))
        if type_ == CounterType.TIME_INTERVAL:
            unit_name, scale = "ns", 1000
        is_absolute = section == PERFORMANCE_SECTION
        known.setdefault(index, _Description(log.text(name_at), section_name, unit_name, scale, is_absolute))
    return known


def _times(log: Log, rows: Array) -> Array:
    """Before version 13 an event says how many ms it is after the first one, and is never before the events in front of
    it; int64 on the event clock."""
    ts: Array = log.records.ts[rows]
    if log.layout.events >= 13 or len(rows) == 0:
        return ts
    since_first = np.minimum(log.records["ms"][rows], LONGEST_MS).astype(np.int64) * MS
    times: Array = since_first + (ts - since_first).max()
    return times


def _numbers(type_: Array, value: Array, first: Array, is_absolute: Array, pointer_size: int) -> Array:
    """float64. type_, value: uint64; first: the row of the first value of the same counter. Whole numbers are
    differences from the one before, unless they are absolute, and wrap around at the size of their type."""
    doubles = np.nan_to_num(value.view(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    is_double = type_ == CounterType.DOUBLE
    sums = np.cumsum(np.append(np.uint64(0), np.where(is_double, 0, value)), dtype=np.uint64)
    raw = np.where(is_absolute, value, sums[1:] - sums[first])
    is_32 = np.isin(type_, (CounterType.INT, CounterType.UINT)) | (pointer_size == 4) & (type_ == CounterType.WORD)
    unused = np.where(is_32, 32, 0).astype(np.uint64)
    signed = (raw << unused).view(np.int64) >> unused.astype(np.int64)
    is_unsigned = np.isin(type_, (CounterType.UINT, CounterType.ULONG))
    return np.select([is_double, is_unsigned], [doubles, (raw << unused >> unused).astype(np.float64)], signed)


def _heap_size(log: Log, span: tuple[int, int], shift_ns: int) -> list[Counter]:
    rows = log.records.of(Event.GC_RESIZE)
    if len(rows) == 0:
        return []
    size = log.records["size"][rows].astype(np.float64)
    values = _table(log.records.ts[rows], size, span, shift_ns)
    return [Counter("managed heap", "bytes", "size of the garbage-collected heap", values, color="green")]


def _table(ts: Array, values: Array, span: tuple[int, int], shift_ns: int) -> Table:
    order = np.argsort(ts, kind="stable")
    return Table(COUNTER_VALUES, {"ts": np.clip(ts[order], *span) + shift_ns, "value": values[order]})
