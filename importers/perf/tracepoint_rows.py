"""The samples of some tracepoints with their fields as columns, for all that is told of them: read in one pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceferry.importers.perf._fields import read_raw
from traceferry.importers.perf._records import SampleType
from traceferry.importers.perf.fields import windows
from traceferry.importers.perf.recording import Event, Recording
from traceferry.importers.perf.tracepoints import Field, Format
from traceferry.model import Array

# What all tracepoints begin with (Documentation/trace/events.rst): the thread that met it, by its number in the first
# pid namespace, and how.
COMMON_PID, COMMON_FLAGS = Field("common_pid", 4, 4, True, "integer"), Field("common_flags", 2, 1, False, "integer")
COMMON_SIZE = 8
# Of how many samples the raw data stays in the processor's cache while one field after the other is read.
AT_ONCE = 1 << 12


@dataclass(frozen=True)
class TracepointRows:
    """The samples of one tracepoint. rows: int64, of the recording's samples, rising; is_whole: bool, whether the
    sample has what all tracepoints begin with; fields: integers by name, in the type that they are recorded with, 0
    where a sample is too short."""

    event: Event
    tracepoint: Format
    rows: Array
    is_whole: Array
    fields: dict[str, Array]

    @property
    def name(self) -> str:
        return self.tracepoint.full_name

    @property
    def common_pid(self) -> Array:
        return self.fields[COMMON_PID.name]

    @property
    def common_flags(self) -> Array:
        return self.fields[COMMON_FLAGS.name]


def read_tracepoints(recording: Recording, wanted: Mapping[str, Sequence[str]]) -> list[TracepointRows]:
    """Returns the tracepoints of these names that have samples, in the recording's order. wanted: by a tracepoint's
    name those of its integers that are read, where it has them."""
    found: list[TracepointRows] = []
    samples = recording.samples
    for event in recording.events:
        if event.tracepoint is None or event.tracepoint.full_name not in wanted:
            continue
        rows = np.flatnonzero(samples.event == event.index)
        if len(rows) and event.sample_type & SampleType.RAW:
            names = wanted[event.tracepoint.full_name]
            own = [one for one in event.tracepoint.fields if one.name in names and one.kind == "integer"]
            fields = {
                one.name: np.empty(len(rows), f"{'i' if one.signed else 'u'}{one.size}")
                for one in (COMMON_PID, COMMON_FLAGS, *own)
            }
            is_whole = samples.raw_size[rows] >= COMMON_SIZE
            found.append(TracepointRows(event, event.tracepoint, rows, is_whole, fields))
    _read(recording, found)
    return found


def _read(recording: Recording, found: Sequence[TracepointRows]) -> None:
    """Fills the fields of all of them, in the order of the samples."""
    if not found:
        return
    for part in windows(recording.stream, recording.samples.offset):
        for one in found:
            begin, end = np.searchsorted(one.rows, [part.start, part.stop]).tolist()
            for at in range(begin, end, AT_ONCE):
                _read_part(recording, one, slice(at, min(at + AT_ONCE, end)))


def _read_part(recording: Recording, one: TracepointRows, part: slice) -> None:
    samples = recording.samples
    kinds = {field.name: field for field in (*one.tracepoint.fields, COMMON_PID, COMMON_FLAGS)}
    for name, column in one.fields.items():
        numbers = column[part].view(f"u{column.itemsize}")
        read_raw(
            recording.stream, samples.raw_at, samples.raw_size, one.rows[part], kinds[name].offset,
            recording.byte_order == "big", numbers,
        )  # fmt: skip
