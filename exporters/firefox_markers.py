"""What the Firefox Profiler shows as markers, for both of its formats: calls with arguments, events, and states.

Facts: src/types/markers.ts and docs-developer/markers.md of the Firefox Profiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from converter.model import LEAVE, Array, MarkerType, Table, ThreadData, Trace

INSTANT, INTERVAL = 0, 1  # a marker's phase
FORMATS = {"text": "string", "integer": "integer", "hex": "string", "bytes": "bytes", "duration": "duration"}
MAX_ARGUMENTS = 16


@dataclass(frozen=True)
class MarkerColumns:
    """The markers of one thread and one type: int64 ts and dur in ns, their name, and each one's data in that order."""

    ts: Array
    dur: Array
    name: str
    data: Iterator[dict[str, Any]]


def markers_of(trace: Trace, data: ThreadData, schemas: dict[str, dict[str, Any]]) -> list[MarkerColumns]:
    """Everything of a thread that is shown as markers; adds the schemas of their types."""
    columns: list[MarkerColumns] = []
    if len(data.arguments):
        columns.append(_call_markers(trace, data, schemas))
    for marker_type, table in data.markers.items():
        columns.append(_event_markers(marker_type, table, schemas))
    for track in np.unique(data.states["track"]).tolist():
        columns.append(_state_markers(trace, data.states.take(data.states["track"] == track), schemas))
    return columns


def _call_markers(trace: Trace, data: ThreadData, schemas: dict[str, dict[str, Any]]) -> MarkerColumns:
    calls, arguments = data.calls, data.arguments
    rows, n_of_row = np.unique(arguments["call"], return_counts=True)
    previous = schemas.get("Call")
    known = len(previous["fields"]) - 1 if previous else 0
    n_fields = max(min(int(n_of_row.max()), MAX_ARGUMENTS), known)
    schemas["Call"] = {
        "name": "Call",
        "description": "A call of which the arguments were recorded, as raw values",
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "tooltipLabel": "{marker.data.function}",
        "tableLabel": "{marker.data.function}: {marker.data.arg0}",
        "chartLabel": "{marker.data.function}",
        "fields": [
            {"key": "function", "label": "Function", "format": "string"},
            *({"key": f"arg{i}", "label": f"Argument {i}", "format": "string"} for i in range(n_fields)),
        ],
    }
    leave_of = leaves_of(calls, rows)
    func_of_frame = trace.frames["func"]

    def rows_data() -> Iterator[dict[str, Any]]:
        values = arguments["value"].tolist()
        at = 0
        for row, n in zip(rows.tolist(), n_of_row.tolist(), strict=True):
            function = trace.func_name(int(func_of_frame[calls["frame"][row]]))
            # A 64-bit number does not survive JavaScript: text, and hex where it looks like a pointer.
            shown = [raw_value(value) for value in values[at : at + n]]
            # The last field takes what is beyond it.
            shown[MAX_ARGUMENTS - 1 :] = [", ".join(shown[MAX_ARGUMENTS - 1 :])] if n >= MAX_ARGUMENTS else []
            yield {"type": "Call", "function": function, **{f"arg{i}": value for i, value in enumerate(shown)}}
            at += n

    return MarkerColumns(calls["ts"][rows], calls["ts"][leave_of] - calls["ts"][rows], "Call", rows_data())


def leaves_of(calls: Table, enter_rows: Array) -> Array:
    """For each of some rising rows that enter, the row that leaves: the next at its depth."""
    depth = np.cumsum(np.where(calls["flags"] & LEAVE, -1, 1).astype(np.int32))
    order = np.argsort(depth + (calls["flags"] & LEAVE), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    leaves: Array = order[place[enter_rows] + 1]
    return leaves


def raw_value(value: int) -> str:
    return str(value) if value < 1 << 32 else hex(value)


def _event_markers(marker_type: MarkerType, table: Table, schemas: dict[str, dict[str, Any]]) -> MarkerColumns:
    label = marker_type.label
    for field in marker_type.fields:
        label = label.replace("{" + field.key + "}", "{marker.data." + field.key + "}")
    schemas[marker_type.name] = {
        "name": marker_type.name,
        "description": marker_type.doc,
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "tooltipLabel": marker_type.name,
        "tableLabel": label,
        "chartLabel": label,
        "fields": [{"key": f.key, "label": f.label, "format": FORMATS[f.format]} for f in marker_type.fields],
    }

    def rows_data() -> Iterator[dict[str, Any]]:
        columns = [
            [hex(v) for v in table[f.key].tolist()] if f.format == "hex" else table[f.key].tolist()
            for f in marker_type.fields
        ]
        keys = [f.key for f in marker_type.fields]
        for values in zip(*columns, strict=True):
            yield {"type": marker_type.name, **dict(zip(keys, values, strict=True))}

    return MarkerColumns(table["ts"], table["dur"], marker_type.name, rows_data())


def _state_markers(trace: Trace, states: Table, schemas: dict[str, dict[str, Any]]) -> MarkerColumns:
    """Each state until the track's next one; the last until the end of the recording."""
    track = trace.strings[int(states["track"][0])]
    schemas[track] = {
        "name": track,
        "display": ["marker-chart", "marker-table"],
        "tooltipLabel": "{marker.data.value}",
        "tableLabel": "{marker.data.value}",
        "chartLabel": "{marker.data.value}",
        "fields": [{"key": "value", "label": track, "format": "string"}],
    }
    ends = np.append(states["ts"][1:], trace.end_ts)
    is_state = states["value"] >= 0

    def rows_data() -> Iterator[dict[str, Any]]:
        for value in states["value"][is_state].tolist():
            yield {"type": track, "value": trace.strings[value]}

    ts = states["ts"][is_state]
    return MarkerColumns(ts, ends[is_state] - ts, track, rows_data())
