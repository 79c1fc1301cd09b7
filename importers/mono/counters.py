"""Map: what the runtime counts: its counters, the size of the managed heap, and code coverage."""

from __future__ import annotations

from collections import Counter as Tally
from typing import NamedTuple

import numpy as np

from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import COUNTER_SECTIONS, COUNTER_UNITS, PERFORMANCE_SECTION, CounterType, Event
from traceferry.model import COUNTER_VALUES, Array, Counter, Table, TraceBuilder, index_of, rows_by_key

DESCRIPTION_WIDTH, VALUE_WIDTH = 7, 3
MS = 1_000_000
LONGEST_MS = 1 << 42
UNITS_BIT = 24
HEAP = ("managed heap", "bytes", "size of the garbage-collected heap")


class _Description(NamedTuple):
    """title, unit, doc: of the counter; scale: what a value is multiplied with, to be in the unit; is_absolute: its
    whole numbers are no differences."""

    title: str
    unit: str
    doc: str
    scale: int
    is_absolute: bool


def counters(trace: TraceBuilder, log: Log, span: tuple[int, int], shift_ns: int) -> list[Counter]:
    """Returns the counters in the order of their numbers. Descriptions come first: the first values may have an earlier
    time than they."""
    rows = log.records.of(Event.COUNTERS)
    values, lengths = log.records.lists(rows)
    ts = np.repeat(_times(log, rows), lengths // VALUE_WIDTH)
    index, type_, value = values.reshape(-1, VALUE_WIDTH).T
    known = sorted(_described(log).items())
    of = index_of(np.array([number for number, _ in known], np.uint64), index)
    of[type_ == CounterType.STRING] = -1
    n_unknown = int(np.count_nonzero(of < 0))
    trace.report.note("counter_unknown", n_unknown, where=log.source.path)
    order = np.argsort(of, kind="stable")[n_unknown:]
    ts, of, type_, value = (column[order] for column in (ts, of, type_, value))
    is_absolute = np.array([description.is_absolute for _, description in known], bool)[of]
    scale = np.array([description.scale for _, description in known], np.int64)[of]
    numbers = _numbers(of, type_, value, is_absolute, log.layout.pointer_size) * scale
    made: list[Counter] = []
    for nth, rows in rows_by_key(of).items():
        title, unit, doc, *_ = known[nth][1]
        made.append(Counter(title, unit, doc, _table(ts[rows], numbers[rows], span, shift_ns)))
    rows = log.records.of(Event.GC_RESIZE)
    if len(rows):
        sizes = _table(log.records.ts[rows], log.records["size"][rows], span, shift_ns)
        made.append(Counter(*HEAP, sizes, color="green"))
    return made


def _described(log: Log) -> dict[int, _Description]:
    known: dict[int, _Description] = {}
    values, _ = log.records.lists(log.records.of(Event.COUNTERS_DESC))
    for section, section_at, name_at, type_, unit, _, index in values.reshape(-1, DESCRIPTION_WIDTH).tolist():
        section_name = log.text(section_at) or COUNTER_SECTIONS.get(section.bit_length() - 1, "")
        title = f"{section_name}: {log.text(name_at)}" if section_name else log.text(name_at)
        unit_name, scale = COUNTER_UNITS.get(unit >> UNITS_BIT, ("count", 1))
        if type_ == CounterType.TIME_INTERVAL:
            unit_name, scale = "ns", 1000
        doc = f"counter of the runtime, section {section_name}"
        known.setdefault(index, _Description(title, unit_name, doc, scale, section == PERFORMANCE_SECTION))
    return known


def _times(log: Log, rows: Array) -> Array:
    """Returns int64 on the event clock. Before version 13 an event says how many ms it is after the first one, and is
    never before the events in front of it."""
    ts: Array = log.records.ts[rows]
    if log.layout.events >= 13 or len(rows) == 0:
        return ts
    since_first = np.minimum(log.records["ms"][rows], LONGEST_MS).astype(np.int64) * MS
    times: Array = since_first + (ts - since_first).max()
    return times


def _numbers(of: Array, type_: Array, value: Array, is_absolute: Array, pointer_size: int) -> Array:
    """Returns the values of counters, float64. of: the counter, rising; type_, value: uint64. Whole numbers are
    differences from the one before of the same counter, unless they are absolute, and wrap around at the size of their
    type."""
    doubles = np.nan_to_num(value.view(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    is_double = type_ == CounterType.DOUBLE
    sums = np.cumsum(np.append(np.uint64(0), np.where(is_double, 0, value)), dtype=np.uint64)
    raw = np.where(is_absolute, value, sums[1:] - sums[np.searchsorted(of, of)])
    is_32 = np.isin(type_, (CounterType.INT, CounterType.UINT)) | (pointer_size == 4) & (type_ == CounterType.WORD)
    unused = np.where(is_32, 32, 0).astype(np.uint64)
    signed = (raw << unused).view(np.int64) >> unused.astype(np.int64)
    is_unsigned = np.isin(type_, (CounterType.UINT, CounterType.ULONG))
    return np.select([is_double, is_unsigned], [doubles, (raw << unused >> unused).astype(np.float64)], signed)


def _table(ts: Array, values: Array, span: tuple[int, int], shift_ns: int) -> Table:
    order = np.argsort(ts, kind="stable")
    return Table(COUNTER_VALUES, {"ts": np.clip(ts[order], *span) + shift_ns, "value": values[order]})


def add_coverage(trace: TraceBuilder, log: Log) -> None:
    """Adds a row of `coverage` for each method, which data versions 10 to 15 have. How many of its statements ran is
    counted from the statements."""
    records, intern = log.records, trace.strings.intern
    methods, statements = records.of(Event.COVERAGE_METHOD), records.of(Event.COVERAGE_STATEMENT)
    covered = Tally(records["number"][statements[records["times"][statements] > 0]].tolist())
    numbers, counts = (records[name][methods].tolist() for name in ("number", "statements"))
    names = zip(log.texts(methods), log.texts(methods, "signature"), strict=True)
    trace.coverage.intern_all(
        len(methods),
        assembly=[intern(name) for name in log.texts(methods, "assembly")],
        class_name=[intern(name) for name in log.texts(methods, "class")],
        method=[intern(f"{name} ({signature})") for name, signature in names],
        path=[intern(path) if path else -1 for path in log.texts(methods, "file")],
        statements=[min(n, 1 << 62) for n in counts],
        covered=[min(covered[number], n) for number, n in zip(numbers, counts, strict=True)],
    )
