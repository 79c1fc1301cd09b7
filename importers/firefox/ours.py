"""Map: what this project's own profiles tell beside the format: events, threads that are parts of others, and markers
that stand for arguments of calls, states and scheduling."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.firefox.attributes import WRITER
from traceferry.importers.firefox.columns import BadRows, Columns
from traceferry.importers.firefox.markers import Rows, keys_of
from traceferry.importers.firefox.times import NS_OF_MS, Times
from traceferry.model import (
    ARGUMENTS,
    FIELD_DTYPES,
    LEAVE,
    PREEMPTED,
    RUNNABLE,
    RUNNING,
    SCHEDULING,
    STATES,
    UNKNOWN,
    WAITING,
    Array,
    Event,
    Table,
    TraceBuilder,
)
from traceferry.model.events import EventKind

CALL, STATE, OFF_CPU = "call", "state", "scheduling"
MARKER = "marker"  # of a type that the viewer would treat by code of its own
# Rows of samples whose weights are in the unit of their event.
OF_EVENT = "of event"
NOT_ARGUMENTS = ("type", "function", "flow", "cause")
POSITIONAL = compiled_later(r"arg([0-9]{1,3})")
LAST_POSITION = 15  # whose field has all arguments from there on
THREAD_NUMBER = compiled_later(r"thread ([0-9]{1,15})|.*\(([0-9]{1,15})\)", re.DOTALL)
MAX_INTEGER = 1 << 62
KINDS: dict[Any, EventKind] = {kind: kind for kind in get_args(EventKind)}

Members = dict[str, Any]
Schema = Mapping[str, Any]


def mark_of(members: Any) -> Members:
    """Returns what a member of the profile says to us, {} where it says nothing."""
    found = members.get(WRITER) if isinstance(members, dict) else None
    return found if isinstance(found, dict) else {}


def whole(value: Any, default: int) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_INTEGER
    return int(value) if is_whole else default


def weights_of(mark: Members, n: int) -> Array | None:
    """Returns, int64, what each of the n samples of a thread weighs, where the viewer counts them; None: it is not
    told, or not of as many, as where the viewer has left some out."""
    if (weight := whole(mark.get("weight"), -1)) >= 0:
        return np.full(n, weight)
    weights = Columns({"weights": mark.get("weights")}, "weights", BadRows()).ints("weights")
    return weights if len(weights) == n and bool((weights >= 0).all()) else None


def events_of(meta: Members) -> list[Event]:
    """Returns the events of the recording, the first one first; [] where one is damaged."""
    listed = mark_of(meta).get("events")
    events = [_event(one) for one in listed] if isinstance(listed, list) else []
    return [event for event in events if event is not None] if None not in events else []


def _event(one: Any) -> Event | None:
    held = one if isinstance(one, dict) else {}
    name, unit, kind = (held.get(key) for key in ("name", "unit", "kind"))
    if not (isinstance(name, str) and isinstance(unit, str) and kind in KINDS):
        return None
    interval, period = (max(whole(held.get(key), 0), 0) for key in ("interval_ns", "period"))
    leader = max(whole(held.get("leader"), -1), -1)
    return Event(name, unit, interval, KINDS[kind], period, leader, held.get("is_scaled") is True)


def end_of(meta: Members, times: Times) -> int | None:
    """Returns when the profile's recording ended, ns on the trace's clock; None: the profile does not tell."""
    last = whole(mark_of(meta).get("end"), -1)
    return times.base_ns + last if last >= 0 else None


class Range(NamedTuple):
    """A range of time, ns on the trace's clock. stop_ts: the end, or behind it where what is at the end is in it."""

    start_ts: int
    end_ts: int
    stop_ts: int


def range_of(meta: Members, times: Times) -> Range | None:
    """Returns the range to which the viewer has cut a profile; None: it is whole, or does not tell."""
    start, end = (times.one(meta.get(name)) for name in ("profilingStartTime", "profilingEndTime"))
    end_ts = end_of(meta, times)
    if start is None or end is None or end_ts is None or not times.base_ns <= start <= end:
        return None
    if start == times.base_ns and end > end_ts:
        return None
    return Range(min(start, end_ts), min(end, end_ts), min(end, end_ts + 1))


def tiers_of(meta: Members, bad: BadRows) -> dict[tuple[int, int], tuple[int, int]] | None:
    """Returns which (category, subcategory) are tiers, and the category of their frames; None: it is not told."""
    listed = mark_of(meta).get("tiers")
    if not isinstance(listed, list):
        return None
    rows = [one for one in listed if isinstance(one, list) and len(one) == 4 and all(whole(n, -1) >= 0 for n in one)]
    bad.add("meta.tiers", len(listed) - len(rows))
    return {(category, part): (of, part_of) for category, part, of, part_of in rows}


def kinds_of(schemas: Any) -> dict[str, Schema]:
    """Returns the schemas of markers that are none in the model, by their names."""
    listed = schemas if isinstance(schemas, list) else []
    named = {one["name"]: one for one in listed if isinstance(one, dict) and isinstance(one.get("name"), str)}
    return {name: one for name, one in named.items() if mark_of(one).get("kind") in (CALL, STATE, OFF_CPU)}


def types_of(schemas: Any) -> dict[str, str]:
    """Returns the types of markers that have another name in the profile than in the model, by that name."""
    named = {one["name"]: one for one in _listed(schemas) if isinstance(one.get("name"), str)}
    marks = {name: mark_of(one) for name, one in named.items()}
    types = {name: mark.get("type") for name, mark in marks.items() if mark.get("kind") == MARKER}
    return {name: kind for name, kind in types.items() if isinstance(kind, str) and kind}


def schemas_of(schemas: Any, types: Mapping[str, str]) -> list[Schema]:
    """Returns the schemas under the names that the model has for them. types: as of `types_of`."""
    moved = [one | {"name": types[one["name"]]} for one in _listed(schemas) if one.get("name") in types]
    return [*moved, *(one for one in _listed(schemas) if one.get("name") not in types)]


def _listed(schemas: Any) -> list[Members]:
    return [one for one in schemas if isinstance(one, dict)] if isinstance(schemas, list) else []


def chosen(rows: Rows, keep: Array) -> Rows:
    """Returns some of the markers of a thread."""
    data = [rows.data[row] for row in np.flatnonzero(keep).tolist()]
    return Rows(
        rows.name.at(keep), rows.type.at(keep), data, rows.ts[keep], rows.end[keep], rows.has_start[keep],
        rows.has_end[keep], rows.category[keep], rows.stack[keep], keys_of(data),
    )  # fmt: skip


def of_kind(rows: Rows, kinds: Mapping[str, Schema], kind: str) -> Array:
    """Returns which of the markers are of a kind, bool."""
    names = {name for name, schema in kinds.items() if mark_of(schema)["kind"] == kind}
    return rows.type.among(names) & rows.has_start & rows.has_end


# ---------------------------------------------------------------- arguments


def arguments_of(
    trace: TraceBuilder, calls: Table, rows: Rows, flow: Array, kinds: Mapping[str, Schema], texts: Sequence[str],
    times: Times,
) -> tuple[Table, Array]:  # fmt: skip
    """Returns ARGUMENTS, and which of the markers are calls that are there. flow: of each marker, 0 is none."""
    waiting: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    enters = np.flatnonzero(calls["flags"] & LEAVE == 0)[::-1]
    funcs = trace.frames["func"][calls["frame"][enters]]
    names = {func: trace.func_name(func) for func in set(funcs.tolist())}
    for row, ts, func in zip(enters.tolist(), calls["ts"][enters].tolist(), funcs.tolist(), strict=True):
        waiting[ts, names[func]].append(row)
    is_there = np.zeros(len(rows.ts), bool)
    made: list[tuple[int, int, int, int, int, int, int]] = []
    types = rows.type.listed()
    for nth, (ts, data, number) in enumerate(zip(rows.ts.tolist(), rows.data, flow.tolist(), strict=True)):
        found = waiting.get((ts, str(data.get("function"))))
        if found:
            call = found.pop()
            is_there[nth] = True
            values = _arguments(trace, data, kinds[types[nth]], texts, times)
            first = values or ([(-1, 0, -1, -1, -1)] if number else [])
            made += [(call, *value, number if not at else 0) for at, value in enumerate(first)]
    made.sort(key=lambda row: row[0])
    columns = list(zip(*made, strict=True)) if made else [()] * len(ARGUMENTS.columns)
    named = dict(zip(("call", "position", "value", "key", "text", "format", "flow"), columns, strict=True))
    return Table(
        ARGUMENTS, {name: np.array(column, ARGUMENTS[name].numpy_dtype) for name, column in named.items()}
    ), is_there


def _arguments(
    trace: TraceBuilder, data: Members, schema: Schema, texts: Sequence[str], times: Times
) -> list[tuple[int, int, int, int, int]]:
    """Returns (position, value, key, text, format) of each argument of a call."""
    listed = schema.get("fields")
    fields = {str(one.get("key")): one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)}
    made: list[tuple[int, int, int, int, int]] = []
    for key, shown in data.items():
        if key in NOT_ARGUMENTS or key not in fields:
            continue
        form = fields[key].get(WRITER)
        if isinstance(form, str):
            label = fields[key].get("label")
            name = trace.strings.intern(label if isinstance(label, str) else key)
            made.append((len(made), *_value(trace, shown, form, name, texts, times)))
        elif (number := POSITIONAL.fullmatch(key)) and isinstance(shown, str):
            parts = shown.split(", ") if int(number[1]) == LAST_POSITION else [shown]
            made += [(len(made) + nth, *_raw(trace, part, -1)) for nth, part in enumerate(parts)]
    return made


def _raw(trace: TraceBuilder, shown: Any, key: int) -> tuple[int, int, int, int]:
    """Returns (value, key, text, format) of a raw value, or of a text."""
    try:
        value = int(shown, 0)
    except (TypeError, ValueError):
        value = -1
    return (value, key, -1, -1) if 0 <= value < 1 << 64 else (0, key, trace.strings.intern(str(shown)), -1)


def _value(
    trace: TraceBuilder, shown: Any, form: str, key: int, texts: Sequence[str], times: Times
) -> tuple[int, int, int, int]:
    dtype = FIELD_DTYPES.get(form, "")  # type: ignore[call-overload]
    if not dtype:
        return _raw(trace, shown, key)
    number = trace.strings.intern(form)
    if dtype == "text":
        return 0, key, trace.strings.intern(shown if isinstance(shown, str) else str(shown)), number
    try:
        if form == "flow":
            value: Any = int(texts[shown])
        elif form == "hex":
            value = int(shown, 16)
        elif form in ("duration", "time"):
            value = round(shown * NS_OF_MS) + (times.base_ns if form == "time" else 0)
        else:
            value = float(shown) if dtype == "float64" else int(shown)
        bits = int(np.array([value], dtype).view(np.uint64)[0])
    except (TypeError, ValueError, OverflowError, IndexError):
        # What is no number of the format is a text of none.
        return 0, key, trace.strings.intern(str(shown)), -1
    return bits, key, -1, number


# ---------------------------------------------------------------- states, scheduling


def states_of(trace: TraceBuilder, rows: Rows, kinds: Mapping[str, Schema], end_ts: int) -> Table:
    """Returns STATES: a marker's value from its start on, and none where no other begins at its end."""
    made: list[tuple[int, int, int]] = []
    intern = trace.strings.intern
    types = rows.type.listed()
    for kind in dict.fromkeys(types):
        named = mark_of(kinds[kind]).get("track")
        track = intern(named if isinstance(named, str) else kind)
        mine = [row for row, one in enumerate(types) if one == kind]
        mine.sort(key=lambda row: rows.ts[row])
        starts = [int(rows.ts[row]) for row in mine]
        for nth, row in enumerate(mine):
            value, end = rows.data[row].get("value"), int(rows.end[row])
            made.append((starts[nth], track, intern(value if isinstance(value, str) else str(value))))
            if end < (starts[nth + 1] if nth + 1 < len(starts) else end_ts):
                made.append((end, track, -1))
    made.sort(key=lambda row: row[0])
    ts, track_of, value_of = zip(*made, strict=True)
    columns = {"ts": np.array(ts, np.int64), "track": np.array(track_of, np.int32)}
    return Table(STATES, columns | {"value": np.array(value_of, np.int32)})


def scheduling_of(
    trace: TraceBuilder, rows: Rows, stack: Array, kinds: Mapping[str, Schema], running_ts: int | None, end_ts: int
) -> Table:
    """Returns SCHEDULING. stack: of each marker, of what woke the thread; running_ts: from when on it ran where no
    marker says otherwise, None is from the first marker on."""
    order = np.argsort(rows.ts, kind="stable").tolist()
    starts = [int(rows.ts[row]) for row in order]
    made: list[tuple[int, int, int, int, int, int]] = []
    if running_ts is not None and (not starts or running_ts < starts[0]):
        made.append((running_ts, RUNNING, -1, -1, -1, -1))
    types = rows.type.listed()
    codes = {kind: _codes(trace, kinds[kind]) for kind in set(types)}
    for nth, row in enumerate(order):
        data, end = rows.data[row], int(rows.end[row])
        state, reason = codes[types[row]].get(str(data.get("state")), (UNKNOWN, -1))
        cpu = _cpu(data.get("cpu"))
        if cpu >= 0 and made and made[-1][1] == RUNNING:
            made[-1] = (*made[-1][:2], cpu, *made[-1][3:])
        woken = (_waker(data.get("waker")), int(stack[row]))
        waited = data.get("runnable")
        ready = end - (round(waited * NS_OF_MS) if isinstance(waited, (int, float)) and 0 < waited < 1e12 else 0)
        is_woken = state == WAITING and starts[nth] <= ready < end
        made.append((starts[nth], state, cpu, reason, *((-1, -1) if is_woken else woken)))
        if is_woken:
            made.append((ready, RUNNABLE, cpu, -1, *woken))
        if end < (starts[nth + 1] if nth + 1 < len(starts) else end_ts):
            made.append((end, RUNNING, _cpu(data.get("moved", data.get("cpu"))), -1, -1, -1))
    made.sort(key=lambda row: row[0])
    names = ("ts", "state", "cpu", "reason", "waker", "waker_stack")
    columns = dict(zip(names, zip(*made, strict=True), strict=True))
    table = {name: np.array(column, SCHEDULING[name].numpy_dtype) for name, column in columns.items()}
    return Table(SCHEDULING, table | {"stack": np.full(len(made), -1, np.int32)})


def _cpu(shown: Any) -> int:
    return max(min(whole(shown, -1), (1 << 31) - 1), -1)


def _codes(trace: TraceBuilder, schema: Schema) -> dict[str, tuple[int, int]]:
    """Returns (state, reason) of each text that says why a thread did not run."""
    listed, found = mark_of(schema).get("states"), dict[str, tuple[int, int]]()
    for text, pair in listed.items() if isinstance(listed, dict) else ():
        if isinstance(pair, list) and len(pair) == 2 and pair[0] in (WAITING, PREEMPTED, RUNNABLE, UNKNOWN):
            reason = trace.strings.intern(pair[1]) if isinstance(pair[1], str) else -1
            found[text] = int(pair[0]), reason
    return found


def _waker(shown: Any) -> int:
    found = THREAD_NUMBER.fullmatch(shown) if isinstance(shown, str) else None
    return int(found[1] or found[2]) if found else -1
