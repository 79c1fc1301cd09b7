"""Decode: a file becomes buffers, counts of their events, and those events that are rare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from traceferry.errors import FormatError
from traceferry.importers.mono import scan_kernel
from traceferry.importers.mono.layout import (
    BUFFER,
    BUFFER_MAGIC,
    BUFFER_SIZE,
    DATA_VERSIONS,
    MAGIC,
    MAJORS,
    POINTER_SIZES,
    Event,
    Header,
    Metadata,
    TruncatedError,
    read_header,
)
from traceferry.importers.mono.state_inlined import (
    B_WIDTH,
    BAD_COUNT,
    COUNTERS_VERSION,
    CUT,
    DONE,
    ENDLESS,
    ITEMS_FULL,
    N_ITEMS,
    N_POOL,
    N_ROWS,
    N_STATE,
    POOL_FULL,
    PTR_MASK,
    R_A,
    R_AT,
    R_BUFFER,
    R_ITEMS_AT,
    R_KIND,
    R_N_ITEMS,
    R_TEXT,
    R_TS,
    R_WIDTH,
    ROWS_FULL,
    S_BAD,
    S_BAD_AT,
    S_WIDTH,
    UNKNOWN_EVENT,
    UNKNOWN_VALUE,
    VERSION,
)
from traceferry.io.source import Source
from traceferry.model import Array

# Why an event is damaged; what the end of the file cuts, for one of CUT_OFF.
CUT_OFF = (CUT, BAD_COUNT)
REASONS = {
    CUT: "the event is truncated",
    ENDLESS: "a number of more than ten bytes",
    UNKNOWN_EVENT: "an unknown event",
    BAD_COUNT: "a count larger than the buffer",
    UNKNOWN_VALUE: "a value of unknown type",
}
FIRST_ITEMS = 1 << 12
FIRST_RECORDS = 1 << 14
SEARCH_PIECE = 1 << 20
WINDOW = 1 << 26
LARGE = 1 << 29


# No clock gets there; times beyond are damage.
MAX_TS = 1 << 62


def times(ts: Array) -> Array:
    """Times on the event clock, uint64, as int64."""
    lowered: Array = np.minimum(ts, MAX_TS).astype(np.int64)
    return lowered


@dataclass(frozen=True)
class Problem:
    kind: str
    offset: int
    detail: str = ""


@dataclass(frozen=True)
class Stats:
    """What the first pass counted in each buffer: uint64 columns; first_ts is the largest number in a buffer without
    events that have a time."""

    table: Array

    def __getitem__(self, name: str) -> Array:
        names = ("first_ts", "last_ts", "events", "enter", "leave", "exc_leave", "alloc", "moves", "objects", "roots",
                 "hits", "bad", "bad_at")  # fmt: skip
        return self.table[:, names.index(name)]


class Records:
    """The rare events, in the order of the file. kind: the first byte; buffer: which one; at: the offset; ts: int64 ns
    on the event clock; a to d: fields as `events_inlined.step` describes them; text_at: of its text; items: of one
    event."""

    def __init__(self, table: Array, pool: Array) -> None:
        self.kind = table[:, R_KIND].astype(np.uint8)
        self.buffer = table[:, R_BUFFER].astype(np.int64)
        self.at = table[:, R_AT].astype(np.int64)
        self.ts = times(table[:, R_TS])
        self.a, self.b, self.c, self.d = (table[:, R_A + i] for i in range(4))
        self.text_at = table[:, R_TEXT].astype(np.int64)
        self._items_at = table[:, R_ITEMS_AT].astype(np.int64)
        self._n_items = table[:, R_N_ITEMS].astype(np.int64)
        self._pool = pool

    def __len__(self) -> int:
        return len(self.kind)

    def of(self, *kinds: Event) -> Array:
        """The rows of these kinds."""
        return np.flatnonzero(np.isin(self.kind, [int(kind) for kind in kinds]))

    def metadata(self, event: Event, what: Metadata) -> Array:
        """The rows that name, load or unload such a thing."""
        return np.flatnonzero((self.kind == event) & (self.a == what))

    def items(self, row: int) -> Array:
        at = self._items_at[row]
        return self._pool[at : at + self._n_items[row]]


@dataclass(frozen=True)
class Layout:
    """events: the data version that tells how events are laid out; counters: the one for counters. They differ in logs
    of a branch of 2017 that says 15."""

    events: int
    counters: int
    pointer_size: int

    @property
    def pointer_mask(self) -> int:
        return (1 << 8 * self.pointer_size) - 1

    def state(self) -> Array:
        """For a kernel to begin with."""
        state = np.zeros(N_STATE, np.uint64)
        state[VERSION], state[COUNTERS_VERSION], state[PTR_MASK] = self.events, self.counters, self.pointer_mask
        return state


HYBRID = 15


@dataclass
class Log:
    """A file. tids: uint64, for each buffer; buffers: uint64 [n, 6], as the kernels take them, up to the last whole
    event of each; kinds: int64 [256], how many events begin with a byte."""

    source: Source
    header: Header
    layout: Layout
    tids: Array
    buffers: Array
    stats: Stats
    records: Records
    kinds: Array
    problems: list[Problem] = field(default_factory=list)

    def text(self, at: int) -> str:
        """The text that begins there; the first pass has seen its end."""
        data = self.source.data
        end = at
        while True:
            piece = bytes(data[end : end + 256])
            nul = piece.find(0)
            if nul >= 0:
                return bytes(data[at : end + nul]).decode("utf-8", "replace")
            end += len(piece)

    def rows_with(self, count: str) -> Array:
        """The buffers, as kernels take them, in which there are such events."""
        return self.buffers[self.stats[count] > 0].ravel()


def header_of(source: Source) -> Header:
    """Raises FormatError for an invalid header or an unknown version."""
    data = source.data
    try:
        if bytes(data[:4]) != MAGIC[: len(data)]:
            raise _error(source, "the magic number of a Mono log profiler recording is missing", 0)
        header = read_header(data)
    except TruncatedError:
        raise _error(source, "the file ends inside its header", len(data)) from None
    if header.major not in MAJORS:
        raise _error(source, f"header version {header.major}.{header.minor} is not supported (0.1 to 3.0 are)", 4)
    if header.data_version not in DATA_VERSIONS:
        raise _error(source, f"data version {header.data_version} is not supported (1 to 17 are)", 6)
    if header.pointer_size not in POINTER_SIZES:
        raise _error(source, f"pointers of {header.pointer_size} bytes are not supported (4 and 8 are)", 7)
    return header


def _error(source: Source, message: str, offset: int) -> FormatError:
    error = FormatError(message, offset, "ProfHeader")
    error.path = source.path
    return error


def read_log(source: Source) -> Log:
    """Raises FormatError for an invalid header."""
    header = header_of(source)
    tids, buffers, problems = find_buffers(source, header.size)
    layout = Layout(header.data_version, header.data_version, header.pointer_size)
    log = _scanned(source, header, layout, tids, buffers)
    if header.data_version == HYBRID and not len(log.records.metadata(Event.LOAD, Metadata.VTABLE)):
        older = _scanned(source, header, Layout(HYBRID - 1, HYBRID, header.pointer_size), tids, buffers)
        if len(list(_bad_events(older, problems))) <= len(list(_bad_events(log, problems))):
            log = older
    return replace(log, problems=[*problems, *_bad_events(log, problems)])


# ---------------------------------------------------------------- buffers


def find_buffers(source: Source, at: int) -> tuple[Array, Array, list[Problem]]:
    """(thread ids, buffers as the kernels take them, what is wrong with them).

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
        magic, length, time_base, ptr_base, obj_base, tid, method_base = BUFFER.unpack_from(data, at)
        if magic != BUFFER_MAGIC:
            problems.append(Problem("bad_buffer", at))
            at = _next_magic(data, at + 1, len(data))
            continue
        begin, end = at + BUFFER_SIZE, at + BUFFER_SIZE + length
        if length < 0 or not _is_boundary(data, end):
            inside = _next_magic(data, begin, min(end, len(data)) if length >= 0 else len(data))
            if inside < len(data) and (inside < end or length < 0):
                problems.append(Problem("extents_repaired", at))
                end = inside
            elif end > len(data) or length < 0:
                problems.append(Problem("truncated", at))
                end = len(data)
        tids.append(tid)
        rows.append((begin, end, time_base, ptr_base, obj_base, method_base))
        at = end
    return np.array(tids, np.uint64), np.array(rows, np.uint64).reshape(-1, B_WIDTH), problems


def _is_boundary(data: memoryview, at: int) -> bool:
    return at == len(data) or (at < len(data) and bytes(data[at : at + 4]) == BUFFER_MAGIC[: len(data) - at])


def _next_magic(data: memoryview, at: int, end: int) -> int:
    """Where the next buffer begins, or `end`."""
    while at < end:
        found = bytes(data[at : min(at + SEARCH_PIECE, end)]).find(BUFFER_MAGIC)
        if found >= 0:
            return at + found
        at += SEARCH_PIECE - len(BUFFER_MAGIC) + 1
    return end


def _bad_events(log: Log, problems: Sequence[Problem]) -> Iterator[Problem]:
    """One that the end of the file cuts is none of them."""
    cut = {problem.offset + BUFFER_SIZE for problem in problems if problem.kind == "truncated"}
    bad = log.stats["bad"]
    for row in np.flatnonzero(bad).tolist():
        reason = int(bad[row])
        if reason not in CUT_OFF or int(log.buffers[row, 0]) not in cut:
            yield Problem("bad_record", int(log.stats["bad_at"][row]), REASONS.get(reason, ""))


# ---------------------------------------------------------------- the first pass


def _scanned(source: Source, header: Header, layout: Layout, tids: Array, buffers: Array) -> Log:
    stats, kinds = np.zeros((len(buffers), S_WIDTH), np.uint64), np.zeros(256, np.int64)
    records, pool = np.empty(FIRST_RECORDS * R_WIDTH, np.uint64), np.empty(FIRST_ITEMS, np.uint64)
    items = np.empty(FIRST_ITEMS, np.uint64)
    state = layout.state()
    for window in windows(source, buffers.ravel()):
        stopped = ROWS_FULL
        while stopped != DONE:
            stopped = scan_kernel.scan(source.data, window, stats.ravel(), records, pool, items, kinds, state)
            if stopped == ROWS_FULL:
                records = grown(records)
            elif stopped == POOL_FULL:
                pool = grown(pool, int(state[N_POOL]) + int(state[N_ITEMS]))
            elif stopped == ITEMS_FULL:
                items = room_for(items, int(state[N_ITEMS]))
    table = records[: int(state[N_ROWS]) * R_WIDTH].reshape(-1, R_WIDTH)
    whole = buffers.copy()
    damaged = stats[:, S_BAD] > 0
    whole[damaged, 1] = stats[damaged, S_BAD_AT]
    return Log(source, header, layout, tids, whole, Stats(stats), Records(table, pool), kinds)


def windows(source: Source, buffers: Array) -> Iterator[Array]:
    """The buffers (as kernels take them, flat) up to a point in the file, then up to a later one, and so on until it is
    all of them: kernels go on where they were. Only what lies between two points is in memory, if the file is large."""
    rows = buffers.reshape(-1, B_WIDTH)
    begins, ends = rows[:, 0].astype(np.int64), rows[:, 1].astype(np.int64)
    first = 0
    while first < len(rows):
        last = max(first + 1, int(np.searchsorted(ends, begins[first] + WINDOW, side="right")))
        extent = int(begins[first]), int(ends[last - 1])
        source.prefetch(*extent)
        yield buffers[: last * B_WIDTH]
        if len(source.data) > LARGE:
            source.release(*extent)
        first = last


def grown(array: Array, least: int = 0) -> Array:
    """Twice as long, at least `least`, with what is in it."""
    return np.concatenate((array, np.empty(max(len(array), least - len(array)), array.dtype)))


def room_for(items: Array, n: int) -> Array:
    """Another array for items, with room for n at least."""
    return np.empty(max(2 * len(items), n), items.dtype)
