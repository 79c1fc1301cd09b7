"""Decode: the rows of a thread's marker table, of every version, as intervals: starts are paired with ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np

from traceferry.importers.firefox.columns import BadRows, Columns, rows_to_columns
from traceferry.importers.firefox.layout import Phase
from traceferry.importers.firefox.times import Times
from traceferry.model import Array
from traceferry.native.values import are_of, interned, member, rows_with, shapes

Data = dict[str, Any]
NO_TYPE = "Marker"
NETWORK, SCREENSHOT = "Network", "CompositorScreenshot"
NETWORK_START, NETWORK_STOPS = "STATUS_START", ("STATUS_STOP", "STATUS_REDIRECT", "STATUS_CANCEL")
PICTURE_SIZE = "picture_bytes"
# What stands in the data of old markers, but is no field.
TIMES = ("startTime", "endTime")
# Members without a schema that are times, as startTime is.
TIMES_OF_REQUESTS = (
    "domainLookupStart", "domainLookupEnd", "connectStart", "tcpConnectEnd", "secureConnectionStart", "connectEnd",
    "requestStart", "responseStart", "responseEnd",
)  # fmt: skip
ALLOCATIONS = frozenset(("JS allocation", "Native allocation"))


class Intervals(NamedTuple):
    """The times of markers, as in `Rows`, and their stacks."""

    ts: Array
    end: Array
    has_start: Array
    has_end: Array
    stack: Array


class Numbered(NamedTuple):
    """A text of each row, of which few differ. number: of each row's in `texts`, int64, -1 is ""."""

    texts: list[str]
    number: Array

    @classmethod
    def of(cls, listed: list[str]) -> Numbered:
        known: dict[str, int] = {}
        number = interned(listed, known)
        return cls(list(known), number)

    def listed(self) -> list[str]:
        texts = self.texts if self.number.min(initial=0) >= 0 else [*self.texts, ""]
        return list(map(texts.__getitem__, self.number.tolist()))

    def among(self, texts: Container[str]) -> Array:
        """Returns which rows have one of these texts, bool; none of which is ""."""
        return np.array([*(text in texts for text in self.texts), False], bool)[self.number]

    def rows_of(self, text: str) -> Array:
        """Returns the rows of a text that is not "", int64."""
        return np.flatnonzero(self.among((text,))) if text in self.texts else np.zeros(0, np.int64)

    def at(self, rows: Array) -> Numbered:
        return self._replace(number=self.number[rows])


class Rows(NamedTuple):
    """The markers of a thread. name, type, data: one of each; ts, end: ns on the trace's clock; has_start, has_end:
    where the profile does not tell, these are 0; category: -1 is none; stack: of the thread's, -1 is none; keys: the
    members of the data, with how many have them."""

    name: Numbered
    type: Numbered
    data: list[Data]
    ts: Array
    end: Array
    has_start: Array
    has_end: Array
    category: Array
    stack: Array
    keys: dict[str, int]

    def intervals(self) -> Intervals:
        return Intervals(self.ts, self.end, self.has_start, self.has_end, self.stack)

    def span(self) -> tuple[int, int] | None:
        """Returns the first and the last time; None: there is none."""
        known = np.concatenate((self.ts[self.has_start], self.end[self.has_end]))
        return (int(known.min()), int(known.max())) if len(known) else None

    @property
    def n_open(self) -> int:
        return int(np.count_nonzero(~(self.has_start & self.has_end)))


_NONE, _NO_TIMES = np.zeros(0, bool), np.zeros(0, np.int64)
_NO_TEXTS = Numbered([], _NO_TIMES)
NO_MARKERS = Rows(_NO_TEXTS, _NO_TEXTS, [], _NO_TIMES, _NO_TIMES, _NONE, _NONE, _NO_TIMES, _NO_TIMES, {})


class _Table(NamedTuple):
    """The table as it is. begin, end: ms, NaN is none; phase: as `Phase`."""

    name: Array
    begin: Array
    end: Array
    phase: Array
    category: Array
    data: list[Data]


def read_markers(members: Data, path: str, texts: list[str], n_stacks: int, times: Times, bad: BadRows) -> Rows:
    """Returns the markers of a thread; texts: the profile's strings; n_stacks: how many stacks the thread refers to."""
    columns = Columns(members.get("markers"), f"{path}.markers", bad)
    if not columns.n:
        return NO_MARKERS
    table = _with_phases(columns, len(texts)) if "phase" in columns else _without_phases(columns, len(texts))
    types = _types_of(table.data)
    rows, begin, end, data = _paired(table, types)
    types = types if data is table.data else _types_of(data)
    keys = keys_of(data)
    stack = np.full(len(data), -1)
    for key in ("cause", "stack"):
        for row in rows_with(data, key).tolist() if key in keys else ():
            stack[row] = _stack_of(data[row])
    is_bad = (stack >= n_stacks) | (stack < -1)
    columns.bad("data.cause.stack", int(np.count_nonzero(is_bad)))
    has_start, has_end = ~np.isnan(begin), ~np.isnan(end)
    ts = np.where(has_start, times.on_clock(np.where(has_start, begin, 0)), 0)
    until = np.where(has_end, times.on_clock(np.where(has_end, end, 0)), 0)
    until = np.where(has_start & has_end, np.maximum(ts, until), until)
    found = Rows(
        Numbered(texts, table.name[rows]), types, data, ts, until, has_start, has_end, table.category[rows],
        np.where(is_bad, -1, stack), keys,
    )  # fmt: skip
    return _until_the_next(found, texts)


def keys_of(data: list[Data]) -> dict[str, int]:
    """Returns the members of objects, with how many have them."""
    counts: dict[str, int] = {}
    for keys, n in shapes(data).items():
        for key in keys:
            counts[key] = counts.get(key, 0) + n
    return counts


def _payloads(columns: Columns) -> list[Data]:
    values = columns.values("data")
    if are_of(values, dict):
        return values
    n_bad = sum(value is not None and not isinstance(value, dict) for value in values)
    columns.bad("data", n_bad)
    return [value if isinstance(value, dict) else {} for value in values]


def _with_phases(columns: Columns, n_texts: int) -> _Table:
    phase = columns.ints("phase", Phase.INSTANT)
    begin, end = columns.floats("startTime"), columns.floats("endTime")
    # From version 68 on, what the phase does not use may be anything.
    begin = np.where(phase == Phase.END, np.nan, begin)
    end = np.where(phase == Phase.INSTANT, begin, np.where(phase == Phase.START, np.nan, end))
    is_bad = ((phase == Phase.INSTANT) | (phase == Phase.START)) & np.isnan(begin) | (phase < 0) | (phase > Phase.END)
    is_bad |= (phase == Phase.END) & np.isnan(end) | (phase == Phase.INTERVAL) & np.isnan(begin) & np.isnan(end)
    columns.bad("phase", int(np.count_nonzero(is_bad)))
    table = _Table(
        columns.index("name", n_texts), begin, end, phase, columns.ints("category"), _payloads(columns)
    )  # fmt: skip
    return _only(table, ~is_bad)


def _without_phases(columns: Columns, n_texts: int) -> _Table:
    """Until version 29 there is one time, and the data tell whether it is a start, an end or neither."""
    data = [_old_payload(one) for one in _payloads(columns)]
    name = "time" if "time" in columns else "startTime"
    begin = columns.floats(name)
    end = columns.floats("duration") + begin if "duration" in columns else begin.copy()
    phase = np.full(columns.n, int(Phase.INSTANT))
    for nth, one in enumerate(data):
        times = [one.get(key) for key in TIMES]
        if one.get("type") == "tracing" and one.get("interval") in ("start", "end"):
            phase[nth] = Phase.START if one["interval"] == "start" else Phase.END
        elif all(isinstance(time, (int, float)) for time in times):
            phase[nth], begin[nth], end[nth] = Phase.INTERVAL, *times
    end = np.where(phase == Phase.END, begin, end)
    end = np.where(phase == Phase.INSTANT, np.where(np.isnan(end), begin, end), end)
    begin, end = np.where(phase == Phase.END, np.nan, begin), np.where(phase == Phase.START, np.nan, end)
    is_bad = np.isnan(begin) & np.isnan(end)
    columns.bad(name, int(np.count_nonzero(is_bad)))
    table = _Table(columns.index("name", n_texts), begin, end, phase, columns.ints("category"), data)
    return _only(table, ~is_bad)


def _old_payload(data: Data) -> Data:
    """Returns the data with a type: the first versions have a category instead."""
    if "type" in data or not ("interval" in data or "category" in data):
        return data
    if "interval" in data:
        return {**data, "type": "tracing"}
    return {key: value for key, value in data.items() if key != "category"} | {"type": data["category"]}


def _only(table: _Table, keep: Array) -> _Table:
    if keep.all():
        return table
    rows = np.flatnonzero(keep)
    name, begin, end, phase, category = (column[rows] for column in table[:5])
    return _Table(name, begin, end, phase, category, [table.data[nth] for nth in rows.tolist()])


def _types_of(data: list[Data]) -> Numbered:
    found = member(data, "type", NO_TYPE)
    types = Numbered.of(found if are_of(found, str) else [one if isinstance(one, str) else NO_TYPE for one in found])
    return types if "" not in types.texts else Numbered.of([text or NO_TYPE for text in types.listed()])


def _stack_of(data: Data) -> int:
    """Returns the stack of the cause, or of the thread of one sample that stands for it."""
    cause = data.get("cause")
    stack = cause.get("stack") if isinstance(cause, dict) else None
    if cause is None and isinstance(within := data.get("stack"), dict):
        samples = rows_to_columns(within.get("samples"))
        column = samples.get("stack") if isinstance(samples, dict) else None
        stack = column[0] if isinstance(column, list) and column else None
    is_index = isinstance(stack, int) and not isinstance(stack, bool) and abs(stack) < 1 << 31
    return stack if is_index and isinstance(stack, int) else -1


# ---------------------------------------------------------------- pairs


def _paired(table: _Table, types: Numbered) -> tuple[Array, Array, Array, list[Data]]:
    """Returns (rows, begin, end, data), with ends at their starts: last in, first out, by name."""
    requests = types.rows_of(NETWORK).tolist()
    rows = np.flatnonzero((table.phase == Phase.START) | (table.phase == Phase.END))
    if not requests and not len(rows):
        return np.arange(len(table.data)), table.begin, table.end, table.data
    begin, end, data = table.begin.copy(), table.end.copy(), list(table.data)
    is_gone = np.zeros(len(data), bool)
    waiting: defaultdict[int, list[int]] = defaultdict(list)
    for row, phase, name in zip(rows.tolist(), table.phase[rows].tolist(), table.name[rows].tolist(), strict=True):
        if phase == Phase.START:
            waiting[name].append(row)
        elif waiting[name]:
            _join(waiting[name].pop(), row, begin, end, data, is_gone)
    started: dict[Any, int] = {}
    for row in requests:
        one = data[row]
        if isinstance(one.get("id"), (int, str)):
            if one.get("status") == NETWORK_START:
                started[one["id"]] = row
            elif one.get("status") in NETWORK_STOPS and one["id"] in started:
                _join(started.pop(one["id"]), row, begin, end, data, is_gone)
    kept = np.flatnonzero(~is_gone)
    return kept, begin[kept], end[kept], [data[row] for row in kept.tolist()]


def _join(first: int, last: int, begin: Array, end: Array, data: list[Data], is_gone: Array) -> None:
    """Makes two rows one. Members of the last one win, but for where it was."""
    end[first], is_gone[last] = end[last], True
    place: Data = {key: data[first][key] for key in ("cause", "stack") if key in data[first]}
    data[first] = {**data[first], **data[last], **place}


def _until_the_next(rows: Rows, texts: list[str]) -> Rows:
    """Makes screenshots last until the next one of their window, and leaves out the pictures."""
    latest: dict[Any, int] = {}
    shots = rows.type.rows_of(SCREENSHOT).tolist()
    data = list(rows.data) if shots else rows.data
    for row in shots:
        one = data[row]
        window, picture = one.get("windowID"), one.get("url")
        if isinstance(picture, int) and 0 <= picture < len(texts):
            picture = texts[picture]
        if isinstance(picture, str) and picture.startswith("data:"):
            rest = {key: value for key, value in one.items() if key != "url"}
            data[row] = {**rest, PICTURE_SIZE: len(picture)}
        key = window if isinstance(window, (int, str)) else None
        if key in latest and rows.has_start[row]:
            before = latest[key]
            rows.end[before] = max(int(rows.end[before]), int(rows.ts[row]))
        latest[key] = row
    return rows._replace(data=data, keys=keys_of(data)) if shots else rows
