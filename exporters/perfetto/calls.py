"""Calls of a thread, as slices on a packet sequence of their own.

Names, categories and source locations are interned, the clock counts differences, about 13 bytes an event, encoded by
`SliceWriter`. A thread's calls come in pieces and may be more than fit into memory; frames may be added to the
trace while the pieces are made, so before each piece those of its frames are interned that the sequence does not know
yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._calls import SliceWriter
from traceferry.exporters.perfetto._packets import mark
from traceferry.exporters.perfetto.events import UNITS, field_of, field_writer
from traceferry.exporters.perfetto.packets import INCREMENTAL, MAX_DEPTH, Packets, interned
from traceferry.model import (
    ENTRY_LOST,
    FIELD_DTYPES,
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

NOTES = {UNWOUND: "unwound", OPEN_AT_END: "open_at_end", OPEN_AT_START: "open_at_start", ENTRY_LOST: "entry_lost"}
FUNCTION_ID = "function_id"
# Interned names of annotations: these on every thread's sequence, then those of the arguments.
ANNOTATION_IIDS = {name: iid for iid, name in enumerate([*NOTES.values(), FUNCTION_ID], start=1)}
FIRST_ARGUMENT = len(ANNOTATION_IIDS) + 1
# What 64 bits of an argument are, by the type of its format.
NUMBERS: dict[str, Callable[[int], float]] = {
    "int64": lambda bits: bits - (bits >> 63 << 64),
    "uint64": lambda bits: bits,
    "float64": lambda bits: float(np.uint64(bits).view(np.float64)),
}


class Calls:
    """Writes the calls of one thread after the other."""

    def __init__(self, trace: Trace, packets: Packets) -> None:
        self._trace = trace
        self._packets = packets
        self._events = _Events(trace)
        self._notes = [_notes_of(flags) for flags in range(256)]
        # By position, key, whether it is a text, and format: of thousands of calls they are the same.
        self._writers: dict[tuple[int, int, bool, int], Callable[[int], bytes]] = {}

    def write(self, data: ThreadData, track: int, index: int) -> None:
        """Writes the calls of a thread on its track. index: of the thread, for the report."""
        names = _Names(self._trace)
        arguments = data.arguments
        by_position = arguments["position"][arguments["key"] < 0]
        argument_names = {f"arg{i}": FIRST_ARGUMENT + i for i in range(int(by_position.max(initial=-1)) + 1)}
        sequence = self._packets.sequence()
        lead = pb.TracePacket(trusted_packet_sequence_id=sequence)
        writer = SliceWriter(self._packets, lead, self._notes, MAX_DEPTH, self._packets.start_ts)
        first_row, n_frames = 0, -1
        for calls in data.calls.pieces():
            entries = names.new(calls["frame"])
            if first_row == 0:
                entries = [*_annotation_names(ANNOTATION_IIDS | argument_names), *entries]
                defaults = pb.TracePacketDefaults(track_event_defaults=pb.TrackEvent(track_uuid=track))
                self._packets.begin(sequence, INCREMENTAL, defaults, entries)
            else:
                self._packets.intern(sequence, entries)
            if n_frames != len(self._trace.frames):
                n_frames = len(self._trace.frames)
                writer.set_events(self._events.of_frames())
            of_piece = _arguments_of(arguments, first_row, len(calls))
            iids, text, text_at = self._fields_of(of_piece)
            writer.write(
                calls["ts"], calls["frame"], calls["flags"], of_piece["call"], iids, of_piece["value"], text, text_at
            )
            first_row += len(calls)
        self._trace.report.note("depth_cut", writer.n_cut, where=f"{index}", detail=f"deeper than {MAX_DEPTH}")

    def _fields_of(self, arguments: Table) -> tuple[Array, Array, Array]:
        """Returns (the interned id of each argument's name, 0 where it is not a raw value that its position names; the
        fields of the others; where each begins, and where the last ends): int32, uint8, int64."""
        columns = [arguments[name] for name in ("position", "value", "key", "text", "format", "flow")]
        is_raw = (np.maximum.reduce(columns[2:5]) < 0) & (arguments["flow"] == 0)
        iids = np.where(is_raw, arguments["position"] + FIRST_ARGUMENT, 0).astype(np.int32)
        others = np.flatnonzero(~is_raw)
        rows = zip(*(column[others].tolist() for column in columns), strict=True)
        fields = [self._argument(*row) for row in rows]
        sizes = np.zeros(len(arguments) + 1, np.int64)
        sizes[others + 1] = [len(field) for field in fields]
        return iids, np.frombuffer(b"".join(fields), np.uint8), np.cumsum(sizes)

    def _argument(self, position: int, value: int, key: int, text: int, form: int, flow: int) -> bytes:
        fields = b""
        if position >= 0:
            kind = position, key, text >= 0, form
            if kind not in self._writers:
                self._writers[kind] = self._writer(*kind)
            fields = self._writers[kind](text if text >= 0 else value)
        if flow > 0:
            fields += field_of("", "flow", flow)
        return fields

    def _writer(self, position: int, key: int, has_text: bool, form: int) -> Callable[[int], bytes]:
        """Returns what writes an argument, of its value or its text's number."""
        strings = self._trace.strings
        name = strings[key] if key >= 0 else f"arg{position}"
        format_name: Any = strings[form] or "text" * has_text
        write = field_writer(name + UNITS.get(format_name, ""), format_name)
        if has_text:
            return lambda text: write(strings[text])
        if form < 0:
            return write
        number = NUMBERS[FIELD_DTYPES[format_name]]
        return lambda value: write(number(value))


class _Names:
    """The names that one sequence has interned. Index + 1 is the interned id of a frame's name and location, and a
    category's."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._known = np.zeros(0, np.uint8)  # of each frame
        self._known_categories: set[int] = set()

    def new(self, frames: Array) -> list[bytes]:
        """Returns the entries of those of the frames, and of their categories, that are not interned yet."""
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
                entries.append(interned("event_categories", category + 1, name))
        return entries

    def _frames(self, used: Array) -> list[bytes]:
        trace = self._trace
        frames, funcs = trace.frames, trace.funcs
        entries: list[bytes] = []
        for frame in used.tolist():
            func = int(frames["func"][frame])
            name = trace.func_name(func)
            entries.append(interned("event_names", frame + 1, name))
            source = int(funcs["source"][func])
            if source >= 0:
                file = trace.strings[int(trace.sources["path"][source])]
                line = int(frames["line"][frame])
                location = pb.SourceLocation(iid=frame + 1, file_name=file, function_name=name, line_number=line)
                entries.append(pb.InternedData(source_locations=location))
        return entries


class _Events:
    """The serialised fields of events."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._begins: list[bytes] = []

    def of_frames(self) -> list[bytes]:
        """Returns those of each frame's begin event, then those of all end events."""
        n = len(self._begins)
        if n < len(self._trace.frames):
            self._begins += self._begins_of(self._trace.frames.take(slice(n, None)), n + 1)
        return [*self._begins, pb.TrackEvent(type=pb.TrackEventType.TYPE_SLICE_END)]

    def _begins_of(self, frames: Table, first_iid: int) -> Iterator[bytes]:
        funcs = self._trace.funcs
        columns = (frames["category"], funcs["source"][frames["func"]], funcs["number"][frames["func"]])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for iid, (category, source, number) in enumerate(rows, start=first_iid):
            annotation = pb.DebugAnnotation(name_iid=ANNOTATION_IIDS[FUNCTION_ID], uint_value=number)
            yield pb.TrackEvent(
                type=pb.TrackEventType.TYPE_SLICE_BEGIN,
                name_iid=iid,
                category_iids=category + 1 if category >= 0 else None,
                source_location_iid=iid if source >= 0 else None,
                debug_annotations=annotation if number >= 0 else None,
            )


def _annotation_names(iids: dict[str, int]) -> list[bytes]:
    return [interned("debug_annotation_names", iid, name) for name, iid in iids.items()]


def _notes_of(flags: int) -> bytes:
    """Returns the serialised annotations that say what the flags of a row say."""
    fields = b""
    for flag, name in NOTES.items():
        of_leave = flag in (UNWOUND, OPEN_AT_END)
        if flags & flag and of_leave == bool(flags & LEAVE):
            fields += pb.TrackEvent(debug_annotations=pb.DebugAnnotation(name_iid=ANNOTATION_IIDS[name], bool_value=1))
    return fields


def _arguments_of(arguments: Table, first_row: int, n_rows: int) -> Table:
    """Returns those of a piece of the calls, with the rows counted from its first."""
    low, high = np.searchsorted(arguments["call"], (first_row, first_row + n_rows))
    taken = arguments.take(slice(int(low), int(high)))
    return taken.replaced(call=taken["call"] - first_row)
