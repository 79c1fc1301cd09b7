"""Markers and states of a thread."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from converter.model import FieldFormat, MarkerType, Table, ThreadData, Trace
from exporters.perfetto_packets import Annotation, Descriptor, Event, EventType, Packets
from exporters.perfetto_samples import Samples
from exporters.proto import fixed64, integer, message, text


def write_events(data: ThreadData, thread_track: int, packets: Packets, samples: Samples) -> None:
    """Instants on the thread's own track, inside the call that they happened in; intervals on tracks of theirs."""
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
            for ts, fields in zip(table["ts"].tolist(), events, strict=True):
                packets.write_event(sequence, ts, EventType.INSTANT, thread_track, *fields)


def _event_fields(marker_type: MarkerType, table: Table, callstacks: list[int]) -> Iterator[list[bytes]]:
    """Of each row. trace_processor draws an arrow from each event to the next with the same flow id; to one that has
    its number for itself, none."""
    head = text(Event.NAME, marker_type.name) + text(Event.CATEGORIES, "event")
    named = [(field.format, text(Annotation.NAME, field.key)) for field in marker_type.fields]
    columns = [table[field.key].tolist() for field in marker_type.fields]
    rows = zip(*columns, strict=True) if columns else ((),) * len(table)
    for values, callstack, flow in zip(rows, callstacks, table["flow"].tolist(), strict=True):
        fields = [head, *_annotations(named, values)]
        if callstack:
            fields.append(integer(Event.CALLSTACK_IID, callstack))
        if flow > 0:
            fields.append(fixed64(Event.FLOW_IDS, flow))
        yield fields


def _write_intervals(
    marker_type: MarkerType, table: Table, events: list[list[bytes]], thread_track: int, packets: Packets, sequence: int
) -> None:
    """Slices of a track must nest: intervals that overlap go to tracks of one name, which the viewer shows as one."""
    ts, dur = table["ts"], table["dur"]
    order = np.lexsort((-dur, ts))
    begins, ends = ts[order].tolist(), (ts + dur)[order].tolist()
    tracks: list[int] = []
    for row, begin, end, lane in zip(order.tolist(), begins, ends, _lanes(begins, ends), strict=True):
        if lane == len(tracks):
            parent = integer(Descriptor.PARENT_UUID, thread_track)
            tracks.append(packets.write_track(parent, text(Descriptor.NAME, marker_type.name)))
        packets.write_event(sequence, begin, EventType.SLICE_BEGIN, tracks[lane], *events[row])
        packets.write_event(sequence, end, EventType.SLICE_END, tracks[lane])


def _lanes(begins: list[int], ends: list[int]) -> Iterator[int]:
    """A lane for each interval, so that those of one lane nest or follow each other. They come in the order of their
    begins, the longer one first."""
    open_ends: list[list[int]] = []  # of each lane, the outermost first
    free: list[tuple[int, int]] = []  # (when, lane)
    last = -1
    for begin, end in zip(begins, ends, strict=True):
        if last >= 0:
            nested = open_ends[last]
            while len(nested) > 1 and nested[-1] <= begin:
                nested.pop()
            if begin < nested[-1] and end <= nested[-1]:
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


def write_states(trace: Trace, states: Table, thread_track: int, packets: Packets) -> None:
    strings = trace.strings
    for name in np.unique(states["track"]).tolist():
        track = packets.write_track(
            integer(Descriptor.PARENT_UUID, thread_track),
            text(Descriptor.NAME, strings[name]),
            message(Descriptor.STATE),
        )
        sequence = packets.sequence()
        rows = states.take(states["track"] == name)
        for ts, value in zip(rows["ts"].tolist(), rows["value"].tolist(), strict=True):
            packets.write_event(sequence, ts, EventType.STATE, track, text(Event.NAME, strings[value]))


def _annotations(fields: list[tuple[FieldFormat, bytes]], values: tuple[Any, ...]) -> list[bytes]:
    """fields: the format of each, and its name as it is written."""
    annotations: list[bytes] = []
    for (shown_as, name), value in zip(fields, values, strict=True):
        if shown_as == "text":
            shown = text(Annotation.STRING_VALUE, value)
        elif shown_as == "hex":
            shown = integer(Annotation.POINTER_VALUE, value)
        else:
            shown = integer(Annotation.INT_VALUE, value)
        annotations.append(message(Event.DEBUG_ANNOTATIONS, name, shown))
    return annotations
