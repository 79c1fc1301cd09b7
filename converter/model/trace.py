"""The objects of a trace: processes, threads, counters, heap snapshots, and the trace that holds them and the tables.

Heavy tables belong to a thread and exist only while they are used: `Thread.load()` makes them, and they go when
the caller drops them.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from traceferry.common.report import Notes, Report
from traceferry.common.shown_text import encodable
from traceferry.model.schema import (
    ALLOCATIONS,
    ARGUMENTS,
    CALLS,
    CATEGORIES,
    CODE,
    CODE_MAPPINGS,
    COVERAGE,
    FRAMES,
    FUNCS,
    LIBS,
    SAMPLES,
    SCHEDULING,
    SOURCES,
    STACKS,
    STATES,
    SYMBOLS,
    TIERS,
    Array,
    MarkerType,
)  # fmt: skip
from traceferry.model.tables import GrowingTable, Grown, Strings, Table

ClockKind = Literal["monotonic", "monotonic_raw", "realtime", "boot", "sched", "tsc"]


class Clock(NamedTuple):
    """kind: which clock the time stamps are on ("sched": the scheduler's own, close to monotonic; "tsc": a counter with
    an unspecified start).

    unix_zero_ns: the Unix time, in ns, at which the clock showed 0; None if unknown.
    """

    kind: ClockKind
    unix_zero_ns: int | None = None


class Sampling(NamedTuple):
    """What the samples of the trace's threads count. event: its name, as cpu-clock; unit: of `weight`, as "ns",
    "cycles" or "count"; interval_ns: the usual time between two samples, 0 is unknown."""

    event: str
    unit: str
    interval_ns: int


@dataclass
class ThreadData:
    """The heavy tables of one thread; each is there only if the recording has it."""

    calls: Table = field(default_factory=lambda: Table(CALLS))
    arguments: Table = field(default_factory=lambda: Table(ARGUMENTS))
    samples: Table = field(default_factory=lambda: Table(SAMPLES))
    allocations: Table = field(default_factory=lambda: Table(ALLOCATIONS))
    states: Table = field(default_factory=lambda: Table(STATES))
    scheduling: Table = field(default_factory=lambda: Table(SCHEDULING))
    markers: dict[MarkerType, Table] = field(default_factory=dict)

    def tables(self) -> Iterator[Table]:
        yield from (self.calls, self.arguments, self.samples, self.allocations, self.states, self.scheduling)
        yield from self.markers.values()

    def with_markers_of(self, other: ThreadData) -> ThreadData:
        """These tables, and the other's markers with them."""
        markers = dict(self.markers)
        for marker_type, table in other.markers.items():
            markers[marker_type] = markers[marker_type].merged(table) if marker_type in markers else table
        return replace(self, markers=markers)


@dataclass
class Thread:
    """One thread over its lifetime: a reused thread id is another Thread.

    start_ts, end_ts: its first and last time stamp; load: makes its tables again at every call;
    n_records: how much it holds, for the progress bar; sample_unit: what its samples weigh, where that is not what the
    trace's samples weigh: "bytes" makes a view of sizes, "ns" and "samples" are of many recordings together.
    """

    tid: int
    name: str
    is_main: bool
    start_ts: int
    end_ts: int
    load: Callable[[], ThreadData]
    n_records: int = 0
    sample_unit: str = ""

    def __post_init__(self) -> None:
        self.name = encodable(self.name)


@dataclass
class Counter:
    """values: a table of COUNTER_VALUES; unit: "bytes", "count"...; color: one of the Firefox Profiler's names."""

    name: str
    unit: str
    doc: str
    values: Table
    color: str = "blue"


class HeapGraph(NamedTuple):
    """The live objects and what keeps them alive. objects: HEAP_OBJECTS; roots: HEAP_ROOTS; references: int32 rows of
    objects: those of object i are references[offsets[i]:offsets[i + 1]], offsets being int64."""

    objects: Table
    offsets: Array
    references: Array
    roots: Table


class HeapSnapshot(NamedTuple):
    """The heap at one moment. start_ts, end_ts: when the recorder walked it; load: makes its graph again at every
    call."""

    start_ts: int
    end_ts: int
    load: Callable[[], HeapGraph]


@dataclass
class Process:
    pid: int
    name: str
    start_ts: int
    end_ts: int
    threads: list[Thread] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    heap_snapshots: list[HeapSnapshot] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = encodable(self.name)


class CodeReader(Protocol):
    """Reads the code objects of one input. rows: which rows of `code` are its own; opened_ts: ns, the time in the
    input's header, None where it has none. Not all producers take it from the clock of the code."""

    rows: range

    @property
    def opened_ts(self) -> int | None: ...

    def frames_at(self, code: int, offset: int) -> tuple[int, ...]:
        """The frames of a byte of a code object, the outermost function first; never empty."""

    def lines_at(self, code: int, offset: int) -> tuple[int, ...]:
        """As frames_at, but without the byte's address: the bytes of one place in the sources have the same frames."""

    def function_of(self, code: int) -> int:
        """The frame of its function alone, without place and address."""

    def boundaries(self, code: int) -> Sequence[int]:
        """The offsets in a code object at which the frames may change, rising; the first is 0."""

    def bytes_of(self, code: int) -> memoryview:
        """Its machine code; empty where the input does not hold it."""

    def unwinding_of(self, code: int) -> tuple[memoryview, int] | None:
        """(call-frame information, how many bytes of it are `.eh_frame`), None where there is none. It counts as placed
        behind the code, at a multiple of 8."""


class NativeFunction(NamedTuple):
    """What runs at an address of a library. frames: (name, source, line), the outermost first, "" and 0 are unknown;
    start: of the outermost function, relative to the library's start; size: in bytes, 0 is unknown."""

    frames: tuple[tuple[str, str, int], ...]
    start: int
    size: int


class LibraryReader(Protocol):
    """Reads the files of the libraries of one input. lib: a row of `libs`, another input's has no files here;
    addresses: relative to the library's start, as in `frames`."""

    def functions_at(self, lib: int, addresses: Sequence[int]) -> Sequence[NativeFunction | None]:
        """None where nothing is known."""

    def bytes_of(self, lib: int, address: int, size: int) -> bytes:
        """The library's machine code, as far as its file is available and has it."""

    def holder_of(self, pid: int, ts: int, address: int) -> tuple[int, int] | None:
        """(library, address in it) of an absolute address in a process, at a time on the trace's clock."""


class Input(NamedTuple):
    """The source of a part of the trace: a file's name, as UTF-8 can hold it, its format, the format's version, who
    wrote it."""

    path: str
    format: str
    version: str
    producer: str


class Trace:
    """A whole recording. Importers intern into the global tables and append processes; exporters read.

    start_ts, end_ts: the first and the last time stamp of the recording; attributes: its provenance, as text;
    code_readers: for each input with code objects, what reads them; library_readers: for each input with libraries of
    which files are here, what reads those.
    """

    def __init__(self) -> None:
        self.clock: Clock | None = None
        self.sampling: Sampling | None = None
        self.strings = Strings()
        self.texts = Strings()
        self.sources = GrowingTable(SOURCES)
        self.libs = GrowingTable(LIBS)
        self.symbols = GrowingTable(SYMBOLS)
        self.categories = GrowingTable(CATEGORIES)
        self.tiers = GrowingTable(TIERS)
        self.funcs = GrowingTable(FUNCS)
        self.code = GrowingTable(CODE)
        self.code_mappings = GrowingTable(CODE_MAPPINGS)
        self.frames = GrowingTable(FRAMES)
        self.stacks = GrowingTable(STACKS)
        self.coverage = GrowingTable(COVERAGE)
        self.code_readers: list[CodeReader] = []
        self.library_readers: list[LibraryReader] = []
        self.processes: list[Process] = []
        self.inputs: list[Input] = []
        self.attributes: dict[str, str] = {}
        self.report = Report()
        self.bounds: tuple[int, int] | None = None
        self._grown: list[weakref.ref[Grown]] = []
        self._marks: list[tuple[Grown, Any]] = []
        self._noted: list[Notes] = []

    @property
    def threads(self) -> list[tuple[Process, Thread]]:
        return [(process, thread) for process in self.processes for thread in process.threads]

    @property
    def start_ts(self) -> int:
        return self.bounds[0] if self.bounds else min((p.start_ts for p in self.processes), default=0)

    @property
    def end_ts(self) -> int:
        return self.bounds[1] if self.bounds else max((p.end_ts for p in self.processes), default=0)

    @property
    def unix_start_ns(self) -> int | None:
        """The Unix time at which the recording starts, if the file tells."""
        if self.clock is None or self.clock.unix_zero_ns is None:
            return None
        return self.clock.unix_zero_ns + self.start_ts

    def code_reader(self, code: int) -> CodeReader:
        """Of a row of `code`. Importers add readers in the order of their rows."""
        nth = bisect_right(self.code_readers, code, key=lambda reader: reader.rows.start) - 1
        return self.code_readers[nth]

    def join_clock(self, clock: Clock, within_ns: int = 0) -> int:
        """Puts the trace on `clock` if it has none yet. Returns what an importer adds to its time stamps, in ns: 0 for
        clocks of one kind that seem to be less than within_ns apart, which are one."""
        if self.clock is None or (self.clock.kind == clock.kind and self.clock.unix_zero_ns is None):
            self.clock = clock
        if self.clock == clock or (self.clock.kind == clock.kind and clock.unix_zero_ns is None):
            return 0
        if self.clock.unix_zero_ns is not None and clock.unix_zero_ns is not None:
            apart = clock.unix_zero_ns - self.clock.unix_zero_ns
            return 0 if self.clock.kind == clock.kind and abs(apart) < within_ns else apart
        if self.clock.kind != clock.kind:
            self.report.note("clock_unrelated", where=clock.kind, detail=f"{clock.kind} and {self.clock.kind}")
        return 0

    def sort(self) -> None:
        """Processes by their start; threads with the main one first, then by start. Ties go by number. Fixes the
        bounds: exporters ask for them with every thread."""
        for process in self.processes:
            process.threads.sort(key=lambda t: (not t.is_main, t.start_ts, t.tid))
        self.processes.sort(key=lambda p: (p.start_ts, p.pid))
        self.bounds = self.start_ts, self.end_ts

    def grows(self, grown: Grown) -> None:
        """Says that something holds rows of the trace's tables, and adds to them when threads are loaded."""
        if not self._marks:
            self._grown.append(weakref.ref(grown))

    def mark_loaded(self) -> None:
        """Importers have added what they add when a trace is loaded: each `as_loaded` begins here."""
        kept = [grown for ref in self._grown if (grown := ref()) is not None]
        tables: list[Grown] = [self.strings, self.texts, *self.global_tables()]
        # Lists that the parts of this trace share: see `select`.
        self._marks[:] = [(grown, grown.mark()) for grown in (*tables, *kept)]
        self._noted[:] = [self.report.mark()]

    @contextmanager
    def as_loaded(self) -> Iterator[None]:
        """The tables and the report are as they were when the trace was loaded, whatever has been loaded or saved
        since; then as they were before, and the report has what was noted in between, too. Not for several threads at
        once."""
        if not self._marks:
            self.mark_loaded()
        rests = [(grown, mark, grown.cut(mark)) for grown, mark in self._marks]
        try:
            with self.report.as_at(self._noted[0]):
                yield
        finally:
            for grown, mark, rest in rests:
                grown.cut(mark)
                if rest is not None:
                    grown.put_back(rest)

    def add_category(self, name: str, color: str) -> int:
        """A row of `categories`."""
        return self.categories.intern(name=self.strings.intern(name), color=self.strings.intern(color))

    def func_name(self, func: int) -> str:
        return self.strings[int(self.funcs["name"][func])]

    def global_tables(self) -> Sequence[GrowingTable]:
        return (
            self.sources, self.libs, self.symbols, self.categories, self.tiers, self.funcs, self.code,
            self.code_mappings, self.frames, self.stacks, self.coverage,
        )  # fmt: skip
