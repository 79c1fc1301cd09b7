"""Markers of the Firefox Profiler, for both of its formats: calls with arguments, events, states, and when
a thread was off the processors.

Facts: src/types/markers.ts and docs-developer/markers.md of the Firefox Profiler.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from traceferry.exporters.firefox._off_cpu import OffCpu, off_cpu_rows
from traceferry.exporters.firefox.own_types import NESTED, OWN_TYPES, Shaped, own_shape
from traceferry.exporters.json._numbers import ABSENT, HEX, MILLIS
from traceferry.exporters.json.objects import (
    MISSING,
    Dicts,
    Member,
    Numbers,
    ObjectColumns,
    Objects,
    Texts,
    Values,
    millis_member,
    text_member,
)
from traceferry.model import (
    FIELD_DTYPES,
    LEAVE,
    MARKER_COLORS,
    OWN_NAME,
    Array,
    FieldFormat,
    MarkerField,
    MarkerType,
    Table,
    Thread,
    ThreadData,
    Trace,
    distinct,
    rows_by_key,
)
from traceferry.native.distinct import distinct_with_places, edges_of_places
from traceferry.timeline.off_cpu import until_next, why

INSTANT, INTERVAL = 0, 1  # a marker's phase
# "hex": a 64-bit number does not survive JavaScript.
FORMATS: dict[FieldFormat, str] = {
    "text": "string", "integer": "integer", "hex": "string", "bytes": "bytes", "duration": "duration",
    "decimal": "decimal", "percentage": "percentage", "time": "time", "url": "url", "path": "file-path",
    "flow": "flow-id", "json": "string",
}  # fmt: skip
MAX_ARGUMENTS = 16
MAX_KEYS = 64  # of named arguments
# Of markers of calls: name, description, and what of them is shown beside the function.
SINGLE = "Call", "A call of which the arguments were recorded, as raw values", "arg0"
SUMMED = "Calls", "All calls of a call path, added up by the recorder", "summed calls"
# The member of a schema, or of a field, with what readers of our own profiles need.
MARK = "traceferry"
AMBIGUOUS = ("hex", "json")  # which are texts there
LABELS = ("tooltipLabel", "tableLabel", "chartLabel")  # of a schema
# The chart takes the colour of a marker from its data, not from its category.
COLOR: dict[str, Any] = {"key": "color", "label": "Color", "format": "string", "hidden": True}
# The viewer takes these members of a marker's data for something else than a field.
RESERVED = ("type", "cause", "stack", "flow", "innerWindowID", "color")
# Counters and markers know fewer colours than categories.
GRAPH_COLORS = {"blue", "green", "grey", "ink", "magenta", "orange", "purple", "red", "teal", "yellow"}
NEAREST_COLOR = {"lightblue": "teal", "brown": "orange", "lightred": "red"}
OTHER, SCHEDULING_MARKERS = ((name, MARKER_COLORS[name]) for name in ("Other", "Scheduling"))


def graph_color(color: str) -> str:
    """Returns the colour nearest to a category's."""
    nearest = NEAREST_COLOR.get(color, color)
    return nearest if nearest in GRAPH_COLORS else "grey"


class StringTable(Protocol):
    def intern(self, text: str) -> int: ...


class Backtraces(Protocol):
    """The stacks of markers, as a member of their data; -1 is none. ts: when each was taken."""

    def of(self, stack: Array, ts: Array) -> Member: ...


class MarkerColumns(NamedTuple):
    """The markers of one thread and one type: int64 ts and dur in ns, their name, their category with its
    colour, and each one's data in that order; names: of each, where they are not all called by the one name;
    lasts: they are intervals even if none takes any time."""

    ts: Array
    dur: Array
    name: str
    category: tuple[str, str]
    data: Objects
    names: Sequence[str] = ()
    lasts: bool = False

    @property
    def is_interval(self) -> bool:
        return self.lasts or bool(self.dur.any())

    def name_rows(self, strings: StringTable) -> Array:
        """Returns the text of each one's name, int32."""
        if not self.names:
            return np.full(len(self.ts), strings.intern(self.name), np.int32)
        rows = {name: strings.intern(name) for name in dict.fromkeys(self.names)}
        return np.array([rows[name] for name in self.names], np.int32)


class Schemas:
    """The schemas of all marker types met so far, each under a name of its own. is_gecko: of a Gecko profile."""

    def __init__(self, is_gecko: bool = False) -> None:
        self.is_gecko = is_gecko
        self._of: dict[Hashable, dict[str, Any]] = {}
        self._arguments: dict[tuple[str, str], str] = {}
        self._thread_names: dict[int, str] = {}

    def thread_names(self, trace: Trace) -> dict[int, str]:
        """Returns what threads are called, by their numbers."""
        if not self._thread_names:
            self._thread_names = {thread.tid: f"{thread.name} ({thread.tid})" for _, thread in trace.threads}
        return self._thread_names

    def get(self, owner: Hashable, name: str, *fields: dict[str, Any], **rest: Any) -> dict[str, Any]:
        """Returns the schema of `owner`: at the first call, made of the rest. Its name is none of the viewer's own."""
        if owner not in self._of:
            taken = OWN_TYPES.union(schema["name"] for schema in self._of.values())
            free = (f"{name} {n}" if n > 1 else name for n in range(1, len(taken) + 2))
            unique = next(name for name in free if name not in taken)
            surfaces = rest.pop("display", ["marker-chart", "marker-table", "timeline-overview"])
            self._of[owner] = {"name": unique, "display": surfaces, **rest, "fields": list(fields)}
        return self._of[owner]

    def own(self, name: str, fields: Sequence[dict[str, Any]], **rest: Any) -> dict[str, Any]:
        """Returns the schema of one of the viewer's own types, with these fields and those of earlier calls."""
        surfaces = ["marker-chart", "marker-table", "timeline-overview"]
        found = self._of.setdefault(("own", name), {"name": name, "display": surfaces, **rest, "fields": []})
        known = {field["key"] for field in found["fields"]}
        found["fields"] += [field for field in fields if field["key"] not in known]
        return found

    def add_field(self, schema: dict[str, Any], key: str, label: str, form: str, **mark: str) -> str:
        """Gives a schema a field, if it has none of this label and format. Returns its key, this or a free one."""
        fields = schema["fields"]
        found = next(
            (
                field["key"]
                for field in fields
                if (field["label"], field["format"], field.get(MARK)) == (label, form, mark.get(MARK))
            ),
            None,
        )
        if found is None:
            taken = {*RESERVED, *(field["key"] for field in fields)}
            found = next(one for one in (key + "_" * n for n in count()) if one not in taken)
            fields.append({"key": found, "label": label, "format": form} | mark)
        return str(found)

    def flow_field(self, schema: dict[str, Any]) -> str:
        """Returns the key of what links markers; it is not shown."""
        if all(field["key"] != "flow" for field in schema["fields"]):
            schema["fields"].append({"key": "flow", "label": "Flow", "format": "flow-id", "hidden": True})
        return "flow"

    def argument_field(self, schema: dict[str, Any], name: str, form: str) -> str:
        """Returns the key of arguments of this name and format, "" is a raw value. Beyond MAX_KEYS, all share one."""
        if (name, form) not in self._arguments:
            is_full = len(self._arguments) >= MAX_KEYS
            shown = ("more", "More", "string") if is_full else (name, name, FORMATS.get(form, "string"))  # type: ignore[call-overload]
            self._arguments[name, form] = self.add_field(schema, *shown, **{MARK: "" if is_full else form or "raw"})
        return self._arguments[name, form]

    @property
    def all(self) -> list[dict[str, Any]]:
        return list(self._of.values())


def markers_of(
    trace: Trace, thread: Thread, data: ThreadData, schemas: Schemas, strings: StringTable, backtraces: Backtraces
) -> list[MarkerColumns]:
    """Returns all markers of a thread; adds the schemas of their types."""
    columns: list[MarkerColumns] = []
    flows = _shared_flows(data, strings)
    if len(data.arguments):
        columns.append(_call_markers(trace, data, schemas, strings, flows))
    for marker_type, table in data.markers.items():
        event = _Events(trace, marker_type, schemas, strings, flows, backtraces)
        own: list[Shaped] = []
        if marker_type.name in OWN_TYPES:
            own, table = own_shape(marker_type, table, trace.start_ts, schemas.is_gecko)
        columns += [event.own_columns(shaped) for shaped in own]
        columns += [event.columns(table)] if len(table) or not own else []
    for track in distinct(data.states["track"]).tolist():
        columns.append(_state_markers(trace, thread, data.states.take(data.states["track"] == track), schemas))
    if len(data.scheduling):
        columns.append(_off_cpu_markers(trace, thread, data.scheduling, schemas, backtraces))
    return columns


# ---------------------------------------------------------------- calls


def _call_markers(
    trace: Trace, data: ThreadData, schemas: Schemas, strings: StringTable, flows: dict[int, int]
) -> MarkerColumns:
    calls, arguments = data.calls, data.arguments
    rows, n_of_row = np.unique(arguments["call"], return_counts=True)
    schema = _call_schema(schemas, *(SUMMED if calls.counts() is not None else SINGLE))
    numbered = arguments["call"][(arguments["key"] < 0) & (arguments["position"] >= 0)]
    n_numbered = int(np.unique(numbered, return_counts=True)[1].max(initial=0))
    for i in range(min(n_numbered, MAX_ARGUMENTS)):
        schemas.add_field(schema, f"arg{i}", f"Argument {i}", "string")
    leave_of = leaves_of(calls, rows)
    functions = trace.func_names(trace.frames["func"][calls["frame"][rows]])
    values = _argument_values(trace, arguments, strings)

    def rows_data() -> Iterator[dict[str, Any]]:
        columns = (arguments[name].tolist() for name in ("position", "key", "format", "flow"))
        of_arguments = zip(*columns, values, strict=True)
        for function, n in zip(functions, n_of_row.tolist(), strict=True):
            shown: list[Any] = []
            named: dict[str, Any] = {}
            for position, key, form, flow, value in islice(of_arguments, n):
                if flow in flows:
                    named |= {schemas.flow_field(schema): flows[flow]}
                if key >= 0:
                    named |= {schemas.argument_field(schema, trace.strings[key], trace.strings[form]): value}
                elif position >= 0:
                    shown.append(value)
            # The last field takes what is beyond it.
            shown[MAX_ARGUMENTS - 1 :] = (
                [", ".join(map(str, shown[MAX_ARGUMENTS - 1 :]))] if len(shown) >= MAX_ARGUMENTS else []
            )
            yield {"type": schema["name"], "function": function, **{f"arg{i}": v for i, v in enumerate(shown)}, **named}

    return MarkerColumns(
        calls["ts"][rows], calls["ts"][leave_of] - calls["ts"][rows], "Call", OTHER, Dicts(rows_data())
    )


def _call_schema(schemas: Schemas, name: str, description: str, shown: str) -> dict[str, Any]:
    return schemas.get(
        name,
        name,
        {"key": "function", "label": "Function", "format": "string"},
        description=description,
        tooltipLabel="{marker.data.function}",
        tableLabel=f"{{marker.data.function}}: {{marker.data.{shown}}}",
        chartLabel="{marker.data.function}",
        **{MARK: {"kind": "call"}},
    )


# What an argument is that has no format.
RAW, TEXT = -1, -2


def _argument_values(trace: Trace, arguments: Table, strings: StringTable) -> list[Any]:
    """Returns the arguments, as fields have them. A raw value is a text, since a 64-bit number does not survive
    JavaScript: hex where it looks like a pointer."""
    value, text, form = (arguments[name] for name in ("value", "text", "format"))
    found: list[Any] = [None] * len(arguments)
    for kind, rows in rows_by_key(np.where(text >= 0, TEXT, form)).items():
        values = _values_of(trace, kind, (text if kind == TEXT else value)[rows], strings)
        for row, one in zip(rows.tolist(), values, strict=True):
            found[row] = None if one is MISSING else one
    return found


def _values_of(trace: Trace, kind: int, column: Array, strings: StringTable) -> Iterable[Any]:
    """Returns arguments of one kind: TEXT, RAW, or the number of their format. column: numbers of texts, int32, or
    values, uint64."""
    if kind == TEXT:
        return trace.strings.of(column)
    if kind == RAW:
        return map(raw_value, column.tolist())
    form: Any = trace.strings[kind]
    return _member("", column.view(FIELD_DTYPES[form]), form, trace.start_ts, strings).each()


def leaves_of(calls: Table, enter_rows: Array) -> Array:
    """Returns for each of some rising rows that enter the row that leaves: the next at its depth."""
    depth = np.cumsum(np.where(calls["flags"] & LEAVE, -1, 1).astype(np.int32))
    order = np.argsort(depth + (calls["flags"] & LEAVE), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    leaves: Array = order[place[enter_rows] + 1]
    return leaves


def raw_value(value: int) -> str:
    return str(value) if value < 1 << 32 else hex(value)


# ---------------------------------------------------------------- events


def _shared_flows(data: ThreadData, strings: StringTable) -> dict[int, int]:
    """Returns the index of the text of each flow that several of the thread's markers and calls belong to."""
    flows = np.concatenate([data.arguments["flow"], *(table["flow"] for table in data.markers.values())])
    numbers, counts = np.unique(flows[flows > 0], return_counts=True)
    return {number: strings.intern(str(number)) for number in numbers[counts > 1].tolist()}


class _Events:
    """The markers of a thread and a type. flows: the index of the text of each flow that is written."""

    def __init__(
        self, trace: Trace, kind: MarkerType, schemas: Schemas, strings: StringTable, flows: dict[int, int],
        backtraces: Backtraces,
    ) -> None:  # fmt: skip
        self._trace, self._kind, self._schemas = trace, kind, schemas
        self._strings, self._flows, self._backtraces = strings, flows, backtraces
        self._fields = [field for field in kind.fields if field.key != OWN_NAME]
        self._keys = _safe_keys(self._fields)
        self._category = kind.category, kind.shown_color
        self._is_colored = self._category != OTHER

    def columns(self, table: Table) -> MarkerColumns:
        """Returns these markers, under a type of which the viewer knows nothing but the schema."""
        mark = {MARK: {"kind": "marker", "type": self._kind.name}} if self._kind.name in OWN_TYPES else {}
        schema = self._schemas.get(self._kind, self._kind.name, *self._schema_fields(), **self._head(), **mark)
        return self._made(schema, Shaped(table, {}))

    def own_columns(self, shaped: Shaped) -> MarkerColumns:
        """Returns these markers, under one of the viewer's own types."""
        fields = self._schema_fields(hidden=NESTED.get(self._kind.name, ""))
        schema = self._schemas.own(self._kind.name, fields, **self._head())
        return self._made(schema, shaped)

    def _schema_fields(self, hidden: str = "") -> list[dict[str, Any]]:
        """hidden: the key of the one that is an object."""
        fields = [_schema_field(field, key) for field, key in zip(self._fields, self._keys, strict=True)]
        fields = [field | ({"hidden": True} if field["key"] == hidden else {}) for field in fields]
        return fields + ([COLOR] if self._is_colored else [])

    def _head(self) -> dict[str, Any]:
        label = self._kind.label
        for field, key in zip(self._fields, self._keys, strict=True):
            label = label.replace("{" + field.key + "}", "{marker.data." + key + "}")
        head = {
            "description": self._kind.doc, "tooltipLabel": self._kind.name, "tableLabel": label, "chartLabel": label,
        }  # fmt: skip
        return head | ({"colorField": COLOR["key"]} if self._is_colored else {})

    def _made(self, schema: dict[str, Any], shaped: Shaped) -> MarkerColumns:
        table, kind = shaped.table, self._kind
        has_names = len(self._fields) < len(kind.fields)
        color = {COLOR["key"]: graph_color(kind.shown_color)} if self._is_colored else {}
        others = {*shaped.constant, *(member.key for member in shaped.members)}
        members = [
            _member(key, table[field.key], field.format, self._trace.start_ts, self._strings, field.optional)
            for field, key in zip(self._fields, self._keys, strict=True)
            if key not in others
        ]
        flow_of_row = [self._flows.get(flow, -1) for flow in table["flow"].tolist()] if self._flows else []
        if any(flow >= 0 for flow in flow_of_row):
            self._schemas.flow_field(schema)
            flows = np.array([flow if flow >= 0 else ABSENT for flow in flow_of_row], np.int64)
            members.append(Numbers("flow", flows))
        if np.any(table["stack"] >= 0):
            members.append(self._backtraces.of(table["stack"], table["ts"]))
        constant = {"type": schema["name"]} | color | shaped.constant
        rows = ObjectColumns(len(table), constant, [*members, *shaped.members])
        names = table[OWN_NAME].tolist() if has_names else ()
        return MarkerColumns(table["ts"], table["dur"], kind.name, self._category, rows, names, shaped.lasts)


def _schema_field(field: MarkerField, key: str) -> dict[str, Any]:
    mark = {MARK: field.format} if field.format in AMBIGUOUS else {}
    return {"key": key, "label": field.label, "format": FORMATS[field.format], **mark}


def _safe_keys(fields: Sequence[MarkerField]) -> list[str]:
    """Returns the fields' keys; those that the viewer takes for something else get an underscore or more."""
    keys = [field.key for field in fields]
    for i, key in enumerate(keys):
        while keys[i] in RESERVED or keys[i] in keys[:i] or (keys[i] != key and keys[i] in keys[i + 1 :]):
            keys[i] += "_"
    return keys


def _member(
    key: str, column: Array, form: FieldFormat, start_ts: int, strings: StringTable, may_lack: bool = False
) -> Member:
    """Returns a field's values as a member of objects, which has none where there is no flow. may_lack: times of 0 are
    none, either."""
    if form == "flow":
        flows = distinct(column)
        index_of = [strings.intern(str(flow)) if flow else ABSENT for flow in flows.tolist()]
        return Numbers(key, np.array(index_of, np.int64)[np.searchsorted(flows, column)])
    if form == "time" and may_lack and not column.all():
        return Values(key, [(ts - start_ts) / 1e6 if ts else MISSING for ts in column.tolist()])
    if form in ("duration", "time"):
        return millis_member(key, column - start_ts if form == "time" else column)
    if form == "hex":
        return Numbers(key, column, HEX)
    if FIELD_DTYPES[form] == "text":
        return text_member(key, column.tolist())
    is_plain = FIELD_DTYPES[form] == "int64" and not np.any(column == ABSENT)
    return Numbers(key, column) if is_plain else Values(key, column.tolist())


# ---------------------------------------------------------------- states


def _state_markers(trace: Trace, thread: Thread, states: Table, schemas: Schemas) -> MarkerColumns:
    """Returns each state, until the track's next one; the last lasts until the thread's end."""
    track = trace.strings[int(states["track"][0])]
    schema = schemas.get(
        ("state", track),
        track,
        {"key": "value", "label": track, "format": "string"},
        display=["marker-chart", "marker-table"],
        **dict.fromkeys(LABELS, "{marker.data.value}"),
        **{MARK: {"kind": "state", "track": track}},
    )
    is_state = states["value"] >= 0
    values = text_member("value", map(trace.strings.__getitem__, states["value"][is_state].tolist()))
    data = ObjectColumns(len(values.nth), {"type": schema["name"]}, [values])
    ts, dur = states["ts"][is_state], until_next(states, thread.end_ts)[is_state]
    return MarkerColumns(ts, dur, track, SCHEDULING_MARKERS if track == "CPU" else OTHER, data)


def _off_cpu_markers(
    trace: Trace, thread: Thread, scheduling: Table, schemas: Schemas, backtraces: Backtraces
) -> MarkerColumns:
    """Returns when the thread was off the processors: why, and who ended it, whose stack is the cause. A wait and the
    time from its end to the next run are one marker. The CPU graph shows what runs."""
    schema = schemas.get(
        "Scheduling",
        "Scheduling",
        {"key": "state", "label": "Why", "format": "string"},
        {"key": "waker", "label": "Woken by", "format": "string"},
        {"key": "runnable", "label": "Waited for a CPU", "format": "duration"},
        {"key": "cpu", "label": "Taken off CPU", "format": "integer"},
        {"key": "moved", "label": "Moved to CPU", "format": "integer"},
        description="The thread was not on a processor: it waited, or others were preferred. The stack is the waker's",
        display=["marker-chart", "marker-table"],
        **dict.fromkeys(LABELS, "{marker.data.state}") | {"tooltipLabel": "Off CPU: {marker.data.state}"},
        **{MARK: {"kind": "scheduling", "states": {}}},
    )
    off = off_cpu_rows(
        scheduling["ts"], scheduling["state"], scheduling["cpu"], scheduling["reason"], scheduling["waker"],
        scheduling["waker_stack"], thread.end_ts,
    )  # fmt: skip
    shown = _shown_states(trace, off)
    for (code, reason), text in shown.states.items():
        schema[MARK]["states"].setdefault(text, [code, trace.strings[reason] if reason >= 0 else None])
    members: list[Member] = [shown.member, Numbers("cpu", off.cpu), Numbers("moved", off.moved)]
    if np.any(off.waker >= 0):
        members.append(_wakers(schemas.thread_names(trace), off.waker))
    members.append(Numbers("runnable", off.runnable, MILLIS))
    if np.any(off.waker_stack >= 0):
        members.append(backtraces.of(off.waker_stack, off.woken_at))
    rows = ObjectColumns(len(off.ts), {"type": schema["name"]}, members)
    return MarkerColumns(off.ts, off.dur, "Off CPU", SCHEDULING_MARKERS, rows)


class _ShownStates(NamedTuple):
    """states: by (state, reason) their texts, the first one that occurs first."""

    states: dict[tuple[int, int], str]
    member: Texts


def _shown_states(trace: Trace, off: OffCpu) -> _ShownStates:
    key = off.state.astype(np.int64)
    key <<= 32
    key += off.reason
    keys, nth = distinct_with_places(key)
    first, _ = edges_of_places(nth, len(keys))
    pairs = [(int(off.state[row]), int(off.reason[row])) for row in first.tolist()]
    texts = [why(state, trace.strings[reason]) for state, reason in pairs]
    order = np.argsort(first).tolist()
    return _ShownStates({pairs[one]: texts[one] for one in order}, Texts("state", nth, texts))


def _wakers(names: dict[int, str], waker: Array) -> Texts:
    tids, nth = distinct_with_places(waker)
    nth[waker < 0] = -1
    return Texts("waker", nth, [names.get(tid, f"thread {tid}") for tid in tids.tolist()])
