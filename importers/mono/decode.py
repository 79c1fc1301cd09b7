"""Decode: a file becomes buffers, counts of their events, and those events that are rare."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.files.source import Source
from traceferry.importers.mono import layout as mlpd
from traceferry.importers.mono._cursor import BUFFER, CUT_OFF, DAMAGE
from traceferry.importers.mono._log import STATISTICS, EventReader
from traceferry.importers.mono.events import Layout, Program, program_of
from traceferry.importers.mono.layout import BUFFER_MAGIC, BUFFER_SIZE, Event, Header, Metadata
from traceferry.importers.mono.magic import MAGIC
from traceferry.model import Array
from traceferry.timeline.running import RunningTotals

PIECE = 1 << 16
WINDOW = 1 << 24
LARGE = 1 << 27
N_LISTS = 1 << 12
# Logs of this data version have one of two layouts.
HYBRID = 15
# No clock gets there; times beyond are damage.
MAX_TS = 1 << 62
NEVER = (1 << 64) - 1
TEXT, NEXT_BUFFER = compiled_later(b"[^\0]*"), compiled_later(re.escape(BUFFER_MAGIC))
NO_TIDS = np.empty(0, np.uint64)


def times(ts: Array) -> Array:
    """Times on the event clock, uint64, as int64."""
    lowered: Array = np.minimum(ts, MAX_TS).astype(np.int64)
    return lowered


class Problem(NamedTuple):
    kind: str
    offset: int
    detail: str = ""


# What is too frequent to be kept: it is only counted, or not even that.
COUNTED: dict[str, tuple[Event, ...]] = {
    "enter": (Event.ENTER,), "alloc": (Event.ALLOC, Event.ALLOC_BT), "moves": (Event.GC_MOVE,), "hits": (Event.HIT,),
}  # fmt: skip
LEFT_OUT = (Event.LEAVE, Event.EXC_LEAVE, Event.HEAP_OBJECT, Event.HEAP_ROOT)
COLUMNS = (*STATISTICS, *COUNTED)
# What the first pass finds in each buffer; first_ts is NEVER in one without events that have a time.
STATS = np.dtype([(name, np.uint64) for name in COLUMNS])
NO_STATS = np.empty(0, STATS)


class Records:
    """Events, in the order of the file. kind: the first byte; buffer: which one; at: the offset; ts: int64 ns on the
    event clock."""

    def __init__(self, table: Array, pool: Array, program: Program) -> None:
        self.at, self.ts = table["at"].copy(), times(table["ts"])
        self.kind, self.buffer = table["kind"].copy(), table["buffer"].astype(np.int64)
        self.declared = table["declared"].copy()
        self._begin = np.append(table["first_value"], len(pool)).astype(np.int64)
        self._pool = pool
        self._program = program
        self._columns: dict[str, Array] = {}

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, name: str) -> Array:
        """Returns a field of `layout.Event`, uint64; 0 for events that do not have it. Of a text its offset in the
        file."""
        if name not in self._columns:
            place = self._program.place_of(name)[self.declared]
            column = np.zeros(len(self), np.uint64)
            column[place >= 0] = self._pool[(self._begin[:-1] + place)[place >= 0]]
            self._columns[name] = column
        return self._columns[name]

    def of(self, *kinds: int) -> Array:
        """Returns the rows of these kinds."""
        is_wanted = np.zeros(256, bool)
        is_wanted[list(kinds)] = True
        return np.flatnonzero(is_wanted[self.kind])

    def metadata(self, what: Metadata, *events: Event) -> Array:
        """Returns the rows that name, load or unload such things."""
        rows = self.of(*events)
        found: Array = rows[self["what"][rows] == what]
        return found

    def in_time(self, rows: Array) -> Array:
        """Returns the rows in the order of time."""
        ordered: Array = rows[np.argsort(self.ts[rows], kind="stable")]
        return ordered

    def values(self, row: int) -> Array:
        """Returns all values of an event, as they are declared."""
        return self._pool[self._begin[row] : self._begin[row + 1]]

    def lists(self, rows: Array) -> tuple[Array, Array]:
        """Returns the values of the lists of these events one after the other, and how many each has, int64."""
        begin = self._begin[rows] + self._program.n_single[self.declared[rows]]
        lengths = self._begin[rows + 1] - begin
        shift = np.repeat(begin - np.cumsum(lengths) + lengths, lengths)
        return self._pool[shift + np.arange(len(shift))], lengths


@dataclass
class Log:
    """A file. tids: uint64, for each buffer; buffers: BUFFER of each, up to its last whole event; stats: STATS of each;
    call_sums: of no thread, unless it was asked for."""

    source: Source
    header: Header
    layout: Layout
    program: Program
    tids: Array
    buffers: Array
    stats: Array
    records: Records
    call_sums: RunningTotals
    problems: list[Problem] = field(default_factory=list)

    def text(self, at: int) -> str:
        """Returns the text that begins there; the first pass has seen its end. at: 0 is none."""
        found = TEXT.match(self.source.data, at) if at else None
        return found[0].decode("utf-8", "replace") if found else ""

    def texts(self, rows: Array, name: str = "name") -> list[str]:
        """Returns that field of records; "" where they have none."""
        return [self.text(at) for at in self.records[name][rows].tolist()]

    def pieces(self, rows: Array, *kinds: Event) -> Iterator[Records]:
        """Yields the events of these kinds in some of the buffers."""
        columns = np.full(256, -1, np.int32)
        columns[list(kinds)] = 0
        return read(self.source, self.buffers[rows], self.program, columns, most=PIECE)


def header_of(source: Source) -> Header:
    """Raises FormatError for an invalid header or an unknown version."""
    data, error = source.data, partial(FormatError, record="ProfHeader", path=source.path)
    try:
        if bytes(data[:4]) != MAGIC[: len(data)]:
            raise error("the magic number of a Mono log profiler recording is missing", 0)
        header = mlpd.read_header(data)
    except struct.error:
        raise error("the file ends inside its header", len(data)) from None
    if header.major not in mlpd.MAJORS:
        raise error(f"header version {header.major}.{header.minor} is not supported (0.1 to 3.0 are)", 4)
    if header.data_version not in mlpd.DATA_VERSIONS:
        raise error(f"data version {header.data_version} is not supported (1 to 17 are)", 6)
    if header.pointer_size not in mlpd.POINTER_SIZES:
        raise error(f"pointers of {header.pointer_size} bytes are not supported (4 and 8 are)", 7)
    return header


def read_log(source: Source, adds_calls: bool = False) -> Log:
    """Raises FormatError for an invalid header. adds_calls: adds up the calls at the same time."""
    header = header_of(source)
    tids, buffers, problems = find_buffers(source, header.size)
    layout = Layout(header.data_version, header.data_version, header.pointer_size)
    log = _scanned(source, header, layout, tids, buffers, adds_calls)
    if header.data_version == HYBRID and not len(log.records.metadata(Metadata.VTABLE, Event.LOAD)):
        older = Layout(HYBRID - 1, HYBRID, header.pointer_size)
        other = _scanned(source, header, older, tids, buffers, adds_calls)
        if len([*_bad_events(other, problems)]) <= len([*_bad_events(log, problems)]):
            log = other
    return replace(log, problems=[*problems, *_bad_events(log, problems)])


# ---------------------------------------------------------------- buffers


def find_buffers(source: Source, at: int) -> tuple[Array, Array, list[Problem]]:
    """Returns thread ids, BUFFER of each, and what is wrong with them.

    A buffer that ends where none begins is damaged: if one begins inside it, its length is wrong.
    """
    data = source.data
    held = at
    tids: list[int] = []
    rows: list[tuple[int, ...]] = []
    problems: list[Problem] = []
    while at < len(data):
        # Around each header that is read, the system brings the pages beside it.
        if at - held > WINDOW and len(data) > LARGE:
            source.release(held, at)
            held = at
        if len(data) - at < BUFFER_SIZE:
            problems.append(Problem("truncated", at, "inside the header of a buffer"))
            break
        magic, length, time_base, ptr_base, obj_base, tid, method_base = mlpd.BUFFER.unpack_from(data, at)
        if magic != BUFFER_MAGIC:
            problems.append(Problem("bad_buffer", at))
            at = _next_magic(data, at + 1, len(data))
            continue
        begin = at + BUFFER_SIZE
        end = begin + length if length >= 0 else len(data) + 1
        if not _is_boundary(data, end):
            inside = _next_magic(data, begin, min(end, len(data)))
            if inside < min(end, len(data)):
                problems.append(Problem("extents_repaired", at))
                end = inside
            elif end > len(data):
                problems.append(Problem("truncated", at))
                end = len(data)
        tids.append(tid)
        rows.append((begin, end, time_base, ptr_base, obj_base, method_base))
        at = end
    return np.array(tids, np.uint64), np.array(rows, BUFFER), problems


def _is_boundary(data: memoryview, at: int) -> bool:
    return at == len(data) or (at < len(data) and bytes(data[at : at + 4]) == BUFFER_MAGIC[: len(data) - at])


def _next_magic(data: memoryview, at: int, end: int) -> int:
    """Returns where the next buffer begins, or `end`."""
    found = NEXT_BUFFER.search(data, at, end)
    return found.start() if found else end


def _bad_events(log: Log, problems: Sequence[Problem]) -> Iterator[Problem]:
    """Yields the damaged events. One that the end of the file cuts is none of them."""
    cut = {problem.offset + BUFFER_SIZE for problem in problems if problem.kind == "truncated"}
    bad = log.stats["bad"]
    for row in np.flatnonzero(bad).tolist():
        reason = int(bad[row])
        if reason not in CUT_OFF or int(log.buffers["begin"][row]) not in cut:
            yield Problem("bad_record", int(log.stats["bad_at"][row]), DAMAGE.get(reason, ""))


# ---------------------------------------------------------------- the first pass


def _scanned(source: Source, header: Header, layout: Layout, tids: Array, buffers: Array, adds_calls: bool) -> Log:
    stats = np.zeros(len(buffers), STATS)
    stats["first_ts"] = NEVER
    columns = np.zeros(256, np.int32)
    columns[list(LEFT_OUT)] = -1
    for name, kinds in COUNTED.items():
        columns[list(kinds)] = COLUMNS.index(name)
    program, call_sums = program_of(layout), RunningTotals(tids if adds_calls else tids[:0])
    (records,) = read(source, buffers, program, columns, stats, call_sums)
    whole = buffers.copy()
    damaged = stats["bad"] > 0
    whole["end"][damaged] = stats["bad_at"][damaged]
    return Log(source, header, layout, program, tids, whole, stats, records, call_sums)


def read(
    source: Source, buffers: Array, program: Program, columns: Array, stats: Array = NO_STATS,
    call_sums: RunningTotals | None = None, most: int = 0,
) -> Iterator[Records]:  # fmt: skip
    """Reads buffers with an `EventReader`. most: rows and values of a piece, if one event does not have more; 0: all in
    one."""
    # Backtraces of allocations are known by their bytes, unless they are kept.
    cursor = program.cursor(source.data, buffers, N_LISTS if columns[Event.ALLOC_BT] else 0)
    counted = stats.view(np.uint64).reshape(-1, len(COLUMNS))
    reader = EventReader(cursor, columns, counted, (call_sums or RunningTotals(NO_TIDS)).sums, most)
    for n_buffers in windows(source, buffers):
        while not reader.read(n_buffers):
            yield Records(*reader.take(), program)
    yield Records(*reader.take(), program)


def windows(source: Source, buffers: Array) -> Iterator[int]:
    """Returns how many of the buffers are in one part of the file, then in that and the next one, and so on until it is
    all of them. Only what lies in a part is in memory, if the file is large."""
    begins, ends = buffers["begin"].astype(np.int64), buffers["end"].astype(np.int64)
    first = 0
    while first < len(buffers):
        last = max(first + 1, int(np.searchsorted(ends, begins[first] + WINDOW, side="right")))
        extent = int(begins[first]), int(ends[last - 1])
        source.prefetch(*extent)
        yield last
        if len(source.data) > LARGE:
            source.release(*extent)
        first = last
