"""Calls of a thread, as slices on a packet sequence of their own.

Names, categories and source locations are interned, the clock counts differences, about 13 bytes an event, encoded by
`SliceWriter`. A thread's calls come in pieces and may be more than fit into memory; frames may be added to the
trace while the pieces are made, so before each piece those of its frames are interned that the sequence does not know
yet.
"""

from __future__ import annotations

import numpy as np

from traceferry.exporters.perfetto._calls import SliceWriter
from traceferry.exporters.perfetto._packets import mark
from traceferry.exporters.perfetto.fields import (
    DebugAnnotation,
    InternedData,
    SourceLocation,
    TracePacket,
    TracePacketDefaults,
    TrackEvent,
    TrackEventType,
)
from traceferry.exporters.perfetto.packets import INCREMENTAL, Packets, interned_text
from traceferry.exporters.perfetto.proto import integer, message, text, varint
from traceferry.model import (
    ENTRY_LOST,
    LEAVE,
    OPEN_AT_END,
    OPEN_AT_START,
    UNWOUND,
    Array,
    Table,
    ThreadData,
    Trace,
    distinct,
)

# trace_processor drops what is nested deeper (src/trace_processor/importers/common/slice_tracker.h).
MAX_DEPTH = 512

NOTES = {UNWOUND: "unwound", OPEN_AT_END: "open_at_end", OPEN_AT_START: "open_at_start", ENTRY_LOST: "entry_lost"}
FUNCTION_ID = "function_id"
# Interned names of annotations: these on every thread's sequence, then those of the arguments.
ANNOTATION_IIDS = {name: iid for iid, name in enumerate([*NOTES.values(), FUNCTION_ID], start=1)}
FIRST_ARGUMENT = len(ANNOTATION_IIDS) + 1
FRAME_FIELDS, NOTE_FIELDS = 48, 32  # the longest, in bytes


class Calls:
    """Writes the calls of one thread after the other."""

    def __init__(self, trace: Trace, packets: Packets) -> None:
        self._trace = trace
        self._packets = packets
        self._fields = _FrameFields(trace)
        self._notes = _note_fields()

    def write(self, data: ThreadData, track: int, index: int) -> None:
        """index: of the thread, for the report."""
        names = _Names(self._trace)
        arguments = data.arguments
        argument_names = {f"arg{i}": FIRST_ARGUMENT + i for i in range(int(arguments["position"].max(initial=-1)) + 1)}
        sequence = self._packets.sequence()
        writer = SliceWriter(self._packets, *self._notes, MAX_DEPTH, self._packets.start_ts)
        first_row, n_frames = 0, -1
        for calls in data.calls.pieces():
            entries = names.new(calls["frame"])
            if first_row == 0:
                entries = [*_annotation_names(ANNOTATION_IIDS | argument_names), *entries]
                defaults = message(TracePacketDefaults.track_event_defaults, integer(TrackEvent.track_uuid, track))
                self._packets.begin(sequence, INCREMENTAL, defaults, entries)
            else:
                self._packets.intern(sequence, entries)
            if n_frames != len(self._trace.frames):
                n_frames = len(self._trace.frames)
                writer.set_heads(*_heads(*self._fields.table(), sequence))
            of_piece = _arguments_of(arguments, first_row, len(calls))
            iids = (of_piece["position"] + FIRST_ARGUMENT).astype(np.int32)
            writer.write(calls["ts"], calls["frame"], calls["flags"], of_piece["call"], iids, of_piece["value"])
            first_row += len(calls)
        self._trace.report.note("depth_cut", writer.n_cut, where=f"{index}", detail=f"deeper than {MAX_DEPTH}")


class _Names:
    """What one sequence has interned. Index + 1 is the interned id of a frame's name and location, and a category's."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known = np.zeros(0, np.uint8)  # of each frame
        self._known_categories: set[int] = set()

    def new(self, frames: Array) -> list[bytes]:
        """The entries of those of the frames, and of their categories, that are not interned yet."""
        known = np.zeros(len(self._trace.frames), np.uint8)
        known[: len(self._known)] = self._known
        self._known = known.copy()
        mark(frames, self._known)
        used = np.flatnonzero(self._known != known)
        return [*self._categories(used), *self._frames(used)]

    def _categories(self, frames: Array) -> list[bytes]:
        trace = self._trace
        entries: list[bytes] = []
        for category in distinct(trace.frames["category"][frames]).tolist():
            if category >= 0 and category not in self._known_categories:
                self._known_categories.add(category)
                name = trace.strings[int(trace.categories["name"][category])]
                entries.append(interned_text(InternedData.event_categories, category + 1, name))
        return entries

    def _frames(self, used: Array) -> list[bytes]:
        trace = self._trace
        frames, funcs = trace.frames, trace.funcs
        entries: list[bytes] = []
        for frame in used.tolist():
            func = int(frames["func"][frame])
            name = trace.func_name(func)
            entries.append(interned_text(InternedData.event_names, frame + 1, name))
            source = int(funcs["source"][func])
            if source >= 0:
                file = trace.strings[int(trace.sources["path"][source])]
                location = (
                    integer(SourceLocation.iid, frame + 1),
                    text(SourceLocation.file_name, file),
                    text(SourceLocation.function_name, name),
                    integer(SourceLocation.line_number, int(frames["line"][frame])),
                )
                entries.append(message(InternedData.source_locations, *location))
        return entries


class _FrameFields:
    """For each frame of the trace the serialised fields of its begin event."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._n = 0
        end = integer(TrackEvent.type, TrackEventType.TYPE_SLICE_END)
        self._end = _padded([end], FRAME_FIELDS)
        self._fields = np.empty((0, FRAME_FIELDS), np.uint8)
        self._lengths = np.empty(0, np.int32)

    def table(self) -> tuple[Array, Array]:
        """(fields, their lengths): a row for each frame, then one for all end events."""
        if self._n < len(self._trace.frames):
            fields, lengths = _padded(self._rows(self._n), FRAME_FIELDS)
            self._fields = np.concatenate((self._fields[: self._n], fields, self._end[0]))
            self._lengths = np.concatenate((self._lengths[: self._n], lengths, self._end[1]))
            self._n = len(self._trace.frames)
        return self._fields, self._lengths

    def _rows(self, first: int) -> list[bytes]:
        funcs = self._trace.funcs
        frames = self._trace.frames.take(slice(first, None))
        has_source = (funcs["source"][frames["func"]] >= 0).tolist()
        number = funcs["number"][frames["func"]].tolist()
        rows: list[bytes] = []
        for nth, category in enumerate(frames["category"].tolist()):
            iid = first + nth + 1
            fields = integer(TrackEvent.type, TrackEventType.TYPE_SLICE_BEGIN) + integer(TrackEvent.name_iid, iid)
            if category >= 0:
                fields += integer(TrackEvent.category_iids, category + 1)
            if has_source[nth]:
                fields += integer(TrackEvent.source_location_iid, iid)
            if number[nth] >= 0:
                name = integer(DebugAnnotation.name_iid, ANNOTATION_IIDS[FUNCTION_ID])
                fields += message(TrackEvent.debug_annotations, name, integer(DebugAnnotation.uint_value, number[nth]))
            rows.append(fields)
        return rows


def _annotation_names(iids: dict[str, int]) -> list[bytes]:
    return [interned_text(InternedData.debug_annotation_names, iid, name) for name, iid in iids.items()]


def _note_fields() -> tuple[Array, Array]:
    """For each value of the flags of a row, the serialised annotations that say so, and their length."""
    rows: list[bytes] = []
    for flags in range(256):
        fields = b""
        for flag, name in NOTES.items():
            of_leave = flag in (UNWOUND, OPEN_AT_END)
            if flags & flag and of_leave == bool(flags & LEAVE):
                yes = integer(DebugAnnotation.name_iid, ANNOTATION_IIDS[name]) + integer(DebugAnnotation.bool_value, 1)
                fields += message(TrackEvent.debug_annotations, yes)
        rows.append(fields)
    return _padded(rows, NOTE_FIELDS)


def _arguments_of(arguments: Table, first_row: int, n_rows: int) -> Table:
    """Those of a piece of the calls, with the rows counted from its first."""
    low, high = np.searchsorted(arguments["call"], (first_row, first_row + n_rows))
    taken = arguments.take(slice(int(low), int(high)))
    return taken.replaced(call=taken["call"] - first_row)


def _heads(fields: Array, lengths: Array, sequence: int) -> tuple[Array, Array, int]:
    """(whole packets but for their time, their lengths, where the event's fields begin in each)."""
    lead = b"\x0a\0" + integer(TracePacket.trusted_packet_sequence_id, sequence) + varint(TracePacket.track_event)
    leads = np.broadcast_to(np.frombuffer(lead, np.uint8), (len(fields), len(lead)))
    heads = np.concatenate((leads, lengths[:, np.newaxis].astype(np.uint8), fields), axis=1)
    event_at = len(lead) + 1
    return heads, lengths + np.int32(event_at), event_at


def _padded(rows: list[bytes], width: int) -> tuple[Array, Array]:
    lengths = np.array([len(row) for row in rows], np.int32)
    text_of_rows = b"".join(row.ljust(width, b"\0") for row in rows)
    return np.frombuffer(text_of_rows, np.uint8).reshape(len(rows), width), lengths
