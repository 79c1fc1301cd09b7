"""Markers and states of a thread."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, Literal, TypeVar

import numpy as np

from traceferry.common.report import Report
from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto.packets import MAX_DEPTH, Packets
from traceferry.exporters.perfetto.samples import Samples
from traceferry.model import (
    Array,
    FieldFormat,
    MarkerField,
    MarkerType,
    Table,
    Thread,
    ThreadData,
    Trace,
    distinct,
)

T = TypeVar("T", int, str)
# The viewer shows the name of an argument and a number.
UNITS: dict[FieldFormat, str] = {"duration": "_ns", "bytes": "_bytes", "time": "_ns"}
VALUES = {
    "string_value": ("text", "url", "path"),
    "legacy_json_value": ("json",),
    "double_value": ("decimal", "percentage"),
    "pointer_value": ("hex",),
    "int_value": ("integer", "bytes", "duration", "time"),
    "uint_value": ("",),
}


def write_events(data: ThreadData, thread_track: int, packets: Packets, samples: Samples, report: Report) -> None:
    """Writes each type on tracks of its own below the thread's: instants between calls would hide them."""
    for marker_type, table in data.markers.items():
        if len(table) == 0:
            continue
        if np.any(table["stack"] >= 0):
            # Where the callstacks are known; times stand in any order there.
            sequence, callstacks = samples.callstacks(table["stack"])
        else:
            sequence, callstacks = packets.sequence(), [0] * len(table)
        events = _event_fields(marker_type, table, callstacks)
        if np.any(table["dur"]):
            _write_intervals(marker_type, table, list(events), thread_track, packets, sequence)
        else:
            _write_instants(marker_type, table["ts"], events, thread_track, packets, sequence, report)


def _write_instants(
    marker_type: MarkerType, ts: Array, events: Iterator[bytes], thread_track: int, packets: Packets, sequence: int,
    report: Report,
) -> None:  # fmt: skip
    """Writes instants. trace_processor takes those of one time for nested ones, and tracks of one name for one: what it
    would drop is a ns later."""
    later = _nth_at_one_time(ts) // MAX_DEPTH
    track = packets.write_track(thread_track, marker_type.name)
    packets.write_events(sequence, ts + later, pb.TrackEventType.TYPE_INSTANT, track, events)
    report.note("moved_apart", int(np.count_nonzero(later)), where=f"{thread_track} {marker_type.name}")


def _nth_at_one_time(ts: Array) -> Array:
    """Returns how many rows before each have its time: int64."""
    order = np.argsort(ts, kind="stable")
    ordered, places = ts[order], np.arange(len(ts))
    first = np.maximum.accumulate(np.where(np.append(True, ordered[1:] != ordered[:-1]), places, 0))
    found = np.empty(len(ts), np.int64)
    found[order] = places - first
    return found


def _event_fields(marker_type: MarkerType, table: Table, callstacks: list[int]) -> Iterator[bytes]:
    """Yields the fields of each row. trace_processor draws an arrow from each event to the next with the same flow id;
    to one that has its number for itself, none."""
    category = pb.TrackEvent(categories=marker_type.category)
    names = _texts(lambda name: pb.TrackEvent(name=name), table, marker_type.named_by, marker_type.name)
    # The viewer chooses the colour by it; without it, by the name.
    otherwise = "" if marker_type.named_by else marker_type.category
    colors = _texts(
        lambda color: pb.TrackEvent(correlation_id_str=color), table, marker_type.colored_by, otherwise
    )  # fmt: skip
    columns = [_annotations(field, table[field.key]) for field in marker_type.fields]
    stacks = _optional(lambda iid: pb.TrackEvent(callstack_iid=iid), callstacks)
    flows = _optional(lambda flow: pb.TrackEvent(flow_ids=flow), np.maximum(table["flow"], 0).tolist())
    return map(b"".join, zip(names, repeat(category, len(table)), colors, *columns, stacks, flows, strict=True))


def _optional(write: Callable[[T], bytes], values: list[T]) -> Iterator[bytes]:
    """Yields what is written for each value, which is nothing for 0 and for an empty text."""
    written = {value: write(value) if value else b"" for value in dict.fromkeys(values)}
    return map(written.__getitem__, values)


def _texts(write: Callable[[str], bytes], table: Table, key: str, otherwise: str) -> Iterator[bytes]:
    """Yields what is written for each row's text in the column `key`, or the other text; nothing where both are
    empty."""
    return _optional(write, [value or otherwise for value in table[key].tolist()] if key else [otherwise] * len(table))


def _write_intervals(
    marker_type: MarkerType, table: Table, events: list[bytes], thread_track: int, packets: Packets, sequence: int
) -> None:
    """Writes slices. Those of a track must nest: intervals that overlap go to tracks of one name, which the viewer
    shows as one."""
    ts, dur = table["ts"], table["dur"]
    order = np.lexsort((-dur, ts))
    begins, ends = ts[order].tolist(), (ts + dur)[order].tolist()
    tracks: list[int] = []
    for row, begin, end, lane in zip(order.tolist(), begins, ends, _lanes(begins, ends), strict=True):
        if lane == len(tracks):
            tracks.append(packets.write_track(thread_track, marker_type.name))
        packets.write_event(sequence, begin, pb.TrackEventType.TYPE_SLICE_BEGIN, tracks[lane], events[row])
        packets.write_event(sequence, end, pb.TrackEventType.TYPE_SLICE_END, tracks[lane])


def _lanes(begins: list[int], ends: list[int]) -> Iterator[int]:
    """Yields a lane for each interval, so that those of one lane nest or follow each other. They come in the order of
    their begins, the longer one first."""
    open_ends: list[list[int]] = []  # of each lane, the outermost first
    free: list[tuple[int, int]] = []  # (when, lane)
    last = -1
    for begin, end in zip(begins, ends, strict=True):
        if last >= 0:
            nested = open_ends[last]
            while len(nested) > 1 and nested[-1] <= begin:
                nested.pop()
            if begin < nested[-1] and end <= nested[-1] and len(nested) < MAX_DEPTH:
                nested.append(end)
                yield last
                continue
        if free and free[0][0] <= begin:
            last = heapq.heappop(free)[1]
            open_ends[last] = [end]
        else:
            last = len(open_ends)
            open_ends.append([end])
        heapq.heappush(free, (end, last))
        yield last


def write_states(trace: Trace, thread: Thread, states: Table, thread_track: int, packets: Packets) -> None:
    for track in distinct(states["track"]).tolist():
        rows = states.take(states["track"] == track)
        values = distinct(rows["value"])
        names = [trace.strings[value] for value in values.tolist()]
        state = np.searchsorted(values, rows["value"])
        packets.write_states(thread, thread_track, trace.strings[track], rows["ts"], state, names)


def _annotations(field: MarkerField, values: Array) -> Iterator[bytes]:
    """Yields what is written for each row, nothing where the value is unknown. Values come again and again, so each is
    written once."""
    name = field.key + UNITS.get(field.format, "") * (not field.key.endswith("_ns"))
    write, rows = field_writer(name, field.format), values.tolist()
    written = {value: write(value) for value in dict.fromkeys(rows)}
    if field.optional:
        written |= {0: b"", "": b""}
    return map(written.__getitem__, rows)


def field_of(name: str, form: FieldFormat | Literal[""], value: Any) -> bytes:
    """Returns what an event has of a value, as `field_writer` says."""
    return field_writer(name, form)(value)


def field_writer(name: str, form: FieldFormat | Literal[""]) -> Callable[[Any], bytes]:
    """Returns what writes a value as an event has it, nothing for no flow; "" is the format of a raw number."""
    if form == "flow":
        return lambda flow: pb.TrackEvent(flow_ids=flow) if flow else b""
    member = next(member for member, forms in VALUES.items() if form in forms)
    head = pb.DebugAnnotation(name=name)

    def write(value: Any) -> bytes:
        if member == "double_value":
            value = int(np.float64(value).view(np.int64))  # its bits
        return pb.TrackEvent(debug_annotations=head + pb.DebugAnnotation(**{member: value}))

    return write
