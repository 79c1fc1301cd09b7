"""Decode: the bytes of a perf.data into a Recording: columns, records and offsets, in the specification's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.shown_text import encodable
from traceferry.files.decompress import DEFAULT_LIMIT, Limit
from traceferry.importers.perf.counts import CountSetup, read_counts
from traceferry.importers.perf.events import Attrs, event_table, file_attrs, make_events, record_attr
from traceferry.importers.perf.features import FeatureReader, read_build_id
from traceferry.importers.perf.fields import CutError, Fields, until_nul
from traceferry.importers.perf.layout import (
    UPDATE_NAME,
    USER_TYPES_FROM,
    AttrType,
    Feature,
    Header,
    RecordType,
    feature_name,
    read_header,
    record_name,
)
from traceferry.importers.perf.not_read import was_not_started, what_is_not_read
from traceferry.importers.perf.off_cpu import with_off_cpu
from traceferry.importers.perf.recording import Event, Problem, Recording
from traceferry.importers.perf.samples import read_samples
from traceferry.importers.perf.sideband import read_sideband
from traceferry.importers.perf.stream import Stream, decompress, open_stream
from traceferry.importers.perf.tracepoints import read_formats
from traceferry.timeline.ticks import Counter

DATA_SIZE_AT = 48  # in the header
# Of CPU_MAP.
CPUS_LIST, CPUS_MASK, CPUS_RANGE = range(3)
WORDS = {4: "I", 8: "Q"}


def read(data: memoryview, extra: Sequence[tuple[str, memoryview]] = (), limit: Limit = DEFAULT_LIMIT) -> Recording:
    """A perf.data file or pipe; extra: the names and bytes of the files beside it in the directory that
    `perf record --threads` writes; limit: of what is compressed inside.

    Raises FormatError where there is no header, or no event.
    """
    found = scan(data, extra, limit)
    header, stream, reader = found.header, found.stream, found.reader
    table = event_table(found.events)
    samples = read_samples(stream, found.events, table, reader.problems)
    samples = with_off_cpu(samples, stream, found.events, reader.problems)
    counts = read_counts(stream, table, reader.count_setup, reader.problems)
    is_directory = bool(extra) or Feature.DIR_FORMAT in header.features
    recording = Recording(
        byte_order="big" if header.big else "little",
        mode="pipe" if header.pipe else "directory" if is_directory else "file",
        features=reader.features.features,
        events=found.events,
        samples=samples,
        counter=reader.counter,
        problems=found.problems(),
        not_read=list(what_is_not_read(stream, found.events, samples, counts)),
        stream=stream.data,
        n_records=len(stream.sample_at) + len(stream.other_at),
        cpus=reader.cpus,
        counts=counts,
    )
    read_sideband(recording, stream, table)
    recording.problems += _unknown_records(stream)
    return recording


@dataclass
class Scan:
    """Everything except the kernel's records, of which only offsets and events are found. missing: bytes of data that
    the file should have."""

    header: Header
    stream: Stream
    reader: UserRecords
    events: list[Event]
    unfinalized: bool
    missing: int

    def problems(self) -> list[Problem]:
        problems = [*self.stream.problems, *self.reader.features.problems, *self.reader.problems]
        if self.missing and not any(problem.kind == "truncated" for problem in problems):
            problems.insert(0, Problem("truncated", 1, len(self.stream.data), f"{self.missing} bytes of data"))
        if self.unfinalized and not was_not_started(self.stream):
            problems.append(Problem("unfinalized", 1, DATA_SIZE_AT))
        return problems


def scan(data: memoryview, extra: Sequence[tuple[str, memoryview]] = (), limit: Limit = DEFAULT_LIMIT) -> Scan:
    header = read_header(data)
    begin, end = min(header.data.offset, len(data)), len(data)
    # The recorder writes the size when it ends; where it was killed, the rest is data.
    unfinalized = not header.pipe and not header.data.size
    if header.data.size:
        end = header.data.end
    stream = open_stream(data, header, begin, end, extra)
    reader = UserRecords(stream, header)
    if not header.pipe:
        reader.attrs = file_attrs(data, header, reader.problems)
        if not unfinalized and end <= len(data):
            reader.features.read_sections()
    reader.read()
    decompress(stream, header, reader.features.features.mmap_len, limit)
    reader.read()
    if not reader.attrs:
        raise FormatError("the header describes no events", header.attrs.offset, "perf_event_attr")
    reader.read_tracing_data()
    events = make_events(reader.attrs, reader.features.features, reader.updated_names)
    return Scan(header, stream, reader, events, unfinalized, max(0, end - len(data)))


def _unknown_records(stream: Stream) -> list[Problem]:
    known = np.isin(stream.other_type, list(RecordType))
    if known.all():
        return []
    types, firsts, counts = np.unique(stream.other_type[~known], return_index=True, return_counts=True)
    at = stream.other_at[~known][firsts]
    return [
        Problem("unknown_record", int(n), int(first), f"type {kind}")
        for kind, first, n in zip(types.tolist()[:8], at, counts, strict=False)
    ]


# ---------------------------------------------------------------- perf's own records


class UserRecords:
    """The content of the records from type 64 on, and in the sections of a file that say the same."""

    def __init__(self, stream: Stream, header: Header) -> None:
        self.stream = stream
        self.header = header
        self.features = FeatureReader(stream.data, header)
        self.attrs: Attrs = []
        self.updated_names: dict[int, str] = {}
        self.counter: Counter | None = None
        self.cpus: frozenset[int] = frozenset()
        self.count_setup = CountSetup()
        self.problems: list[Problem] = []
        self._n_read = 0

    def read(self) -> None:
        """The records that the stream has got since the last call."""
        self.features.data = self.stream.data
        types, offsets = self.stream.other_type[self._n_read :], self.stream.other_at[self._n_read :]
        self._n_read += len(types)
        for at in offsets[np.isin(types, USER_TYPES_READ)].tolist():
            fields = Fields(self.stream.data, self.header.order, at, at + 8)
            kind, misc, size = fields.unpack("IHH")
            fields.end = at + size
            try:
                self._read_one(kind, misc, fields)
            except CutError as error:
                self.problems.append(Problem("bad_record", 1, at, f"{record_name(kind)}: {error}"))

    def _read_one(self, kind: int, misc: int, fields: Fields) -> None:
        match kind:
            case RecordType.HEADER_ATTR if self.header.pipe:
                self.attrs.append(record_attr(fields, self.header.big))
            case RecordType.HEADER_TRACING_DATA:
                size = fields.u32()
                self.features.read(Feature.TRACING_DATA, fields.end, fields.end + size)
            case RecordType.HEADER_BUILD_ID:
                read_build_id(self.features.features, fields, misc)
            case RecordType.EVENT_UPDATE:
                update, number = fields.unpack("QQ")
                if update == UPDATE_NAME:
                    self.updated_names[number] = encodable(until_nul(fields.bytes(fields.left)))
                self.count_setup.read_update(update, number, fields)
            case RecordType.THREAD_MAP:
                self.count_setup.read_threads(fields)
            case RecordType.STAT_CONFIG:
                self.count_setup.read_config(fields)
            case RecordType.TIME_CONV:
                shift, mult, zero = fields.u64s(3)
                self.counter = Counter(shift, mult, zero)
            case RecordType.CPU_MAP:
                self.cpus = cpus_of_map(fields)
            case RecordType.BPF_METADATA:
                self._bpf_metadata(fields)
            case RecordType.HEADER_FEATURE:
                number = fields.u64()
                self.features.read(number, fields.at, fields.end)

    def _bpf_metadata(self, fields: Fields) -> None:
        """char prog_name[16]; u64 nr; nr times char key[64], value[256]"""
        name = encodable(until_nul(fields.bytes(16)))
        for _ in range(min(fields.u64(), fields.left // 320)):
            key, value = (encodable(until_nul(fields.bytes(size))) for size in (64, 256))
            self.features.features.bpf_metadata[f"bpf {name} {key}"] = value

    def read_tracing_data(self) -> None:
        """Reads the formats of the tracepoints that were recorded."""
        wanted = {attr.config for attr, _ in self.attrs if attr.type == AttrType.TRACEPOINT}
        for at, end in self.features.tracing_data if wanted else ():
            try:
                fields = Fields(self.stream.data, self.header.order, at, end)
                read_formats(fields, wanted, self.features.features.formats)
            except CutError as error:
                detail = f"{feature_name(Feature.TRACING_DATA)}: {error}"
                self.problems.append(Problem("bad_record", 1, at, detail))


def cpus_of_map(fields: Fields) -> frozenset[int]:
    """Returns the processors of a CPU_MAP: u16 type, then a list, u16 nr, i16 cpu[nr]; a mask, u16 nr, long_size, 4
    more bytes before words of 8, words; or a range, u8 any_cpu, pad, u16 first, last. Those below 0 stand for all.

    Source: tools/lib/perf/include/perf/event.h."""
    kind = fields.unpack("H")[0]
    if kind == CPUS_LIST:
        (n,) = fields.unpack("H")
        found = frozenset(fields.unpack(f"{min(n, fields.left // 2)}h"))
    elif kind == CPUS_RANGE:
        is_any, _, first, last = fields.unpack("BBHH")
        found = frozenset() if is_any else frozenset(range(first, last + 1))
    elif kind == CPUS_MASK:
        n, size = fields.unpack("HH")
        if size not in WORDS:
            return frozenset()
        fields.bytes(size - 4)
        words = fields.unpack(f"{min(n, fields.left // size)}{WORDS[size]}")
        bits = [(nth * 8 * size, word) for nth, word in enumerate(words)]
        found = frozenset(at + bit for at, word in bits for bit in range(8 * size) if word >> bit & 1)
    else:
        return frozenset()
    return frozenset() if any(cpu < 0 for cpu in found) else found


USER_TYPES_READ = (
    RecordType.HEADER_ATTR, RecordType.HEADER_TRACING_DATA, RecordType.HEADER_BUILD_ID, RecordType.EVENT_UPDATE,
    RecordType.TIME_CONV, RecordType.HEADER_FEATURE, RecordType.BPF_METADATA,
    RecordType.CPU_MAP, RecordType.THREAD_MAP, RecordType.STAT_CONFIG,
)  # fmt: skip
assert min(USER_TYPES_READ) >= USER_TYPES_FROM
