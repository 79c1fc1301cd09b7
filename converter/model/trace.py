"""The objects of a trace: processes, threads, counters, heap snapshots, and the trace that holds them and the tables.

Heavy tables belong to a thread and exist only while they are used: `Thread.load` makes them, and they go when
the caller drops them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

from traceferry.common.report import Report
from traceferry.common.shown_text import encodable
from traceferry.model.categories import CATEGORY_COLORS
from traceferry.model.clocks import Clock, ClockPart
from traceferry.model.events import Event
from traceferry.model.schema import (
    ALLOCATIONS,
    ARGUMENTS,
    BRANCHES,
    CALLS,
    GLOBAL_TABLES,
    SAMPLES,
    SCHEDULING,
    STATES,
    Array,
    MarkerType,
)
from traceferry.model.tables import READ_ONLY, GrowingTable, Strings, Table

Kept = TypeVar("Kept")
Key = TypeVar("Key")


class Sealed:
    """An object that can be written to until it belongs to a trace that was loaded. After that it is a TypeError."""

    _is_sealed = False

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_sealed:
            raise TypeError(f"{type(self).__name__}.{name}: {READ_ONLY}")
        object.__setattr__(self, name, value)

    def seal(self) -> None:
        object.__setattr__(self, "_is_sealed", True)


class SealedList(list[Any]):
    """A list of a trace that was loaded."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(READ_ONLY)

    append = extend = insert = remove = pop = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse


@dataclass
class ThreadData:
    """The heavy tables of one thread; each is there only if the recording has it. samples: of the first event of the
    trace; other_samples: tables of SAMPLES, by the rows of their events in `Trace.events`; trace: has the rows that all
    refer to."""

    calls: Table = field(default_factory=lambda: Table(CALLS))
    arguments: Table = field(default_factory=lambda: Table(ARGUMENTS))
    samples: Table = field(default_factory=lambda: Table(SAMPLES))
    other_samples: dict[int, Table] = field(default_factory=dict)
    branches: Table = field(default_factory=lambda: Table(BRANCHES))
    allocations: Table = field(default_factory=lambda: Table(ALLOCATIONS))
    states: Table = field(default_factory=lambda: Table(STATES))
    scheduling: Table = field(default_factory=lambda: Table(SCHEDULING))
    markers: dict[MarkerType, Table] = field(default_factory=dict)
    trace: TraceBuilder = field(init=False, repr=False, compare=False)

    def tables(self) -> Iterator[Table]:
        yield from (self.calls, self.arguments, self.samples, self.branches)
        yield from (self.allocations, self.states, self.scheduling)
        yield from self.other_samples.values()
        yield from self.markers.values()

    def samples_of(self, row: int) -> Table | None:
        """Returns the samples of an event of the trace, None where the thread has none."""
        return self.samples if row == 0 else self.other_samples.get(row)

    def with_markers_of(self, other: ThreadData) -> ThreadData:
        """Returns these tables, and the other's markers with them."""
        return replace(self, markers=_merged(self.markers, other.markers))

    def merged(self, other: ThreadData) -> ThreadData:
        """Returns the rows of both, by time. Raises ValueError where the other has calls, whose rows arguments name."""
        if len(other.calls):
            raise ValueError("threads with calls cannot be merged")
        names = ("samples", "branches", "allocations", "states", "scheduling")
        tables = {name: getattr(self, name).merged(getattr(other, name)) for name in names}
        others = _merged(self.other_samples, other.other_samples)
        return replace(self, **tables, other_samples=others, markers=_merged(self.markers, other.markers))


def _merged(first: Mapping[Key, Table], second: Mapping[Key, Table]) -> dict[Key, Table]:
    merged = dict(first)
    for key, table in second.items():
        merged[key] = merged[key].merged(table) if key in merged else table
    return merged


@dataclass
class Thread(Sealed):
    """One thread over its lifetime: a reused thread id is another Thread.

    start_ts, end_ts: its first and last time stamp; make: makes its tables at every call, and adds what they refer to
    and the trace does not have; n_records: how much it holds, for the progress bar; sample_unit: what its samples
    weigh, where that is not what the trace's samples weigh: "bytes" makes a view of sizes, "ns" and "samples" are of
    many recordings together; former_names: those that it had before, where it was seen under them.
    """

    tid: int
    name: str
    is_main: bool
    start_ts: int
    end_ts: int
    make: Callable[[TraceBuilder], ThreadData]
    n_records: int = 0
    sample_unit: str = ""
    former_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.name = encodable(self.name)

    def load(self, trace: Trace) -> ThreadData:
        """Makes the tables again at every call. What they refer to and the trace does not have is added to `trace`, or
        where that is read-only to a continuation of its own: see `ThreadData.trace`."""
        into = trace.opened()
        data = self.make(into)
        data.trace = into
        for table in data.tables():
            table.seal()
        return data


@dataclass
class Counter(Sealed):
    """values: a table of COUNTER_VALUES; unit: "bytes", "count"...; color: one of the Firefox Profiler's names;
    adds_up: each value is an amount since the one before, of which the first begins, and not what there is then."""

    name: str
    unit: str
    doc: str
    values: Table
    color: str = "blue"
    adds_up: bool = False

    def seal(self) -> None:
        self.values.seal()
        super().seal()


class HeapGraph(NamedTuple):
    """The live objects and what keeps them alive. objects: HEAP_OBJECTS; roots: HEAP_ROOTS; references: int32 rows of
    objects: those of object i are references[offsets[i]:offsets[i + 1]], offsets being int64."""

    objects: Table
    offsets: Array
    references: Array
    roots: Table


class HeapSnapshot(NamedTuple):
    """The heap at one moment. start_ts, end_ts: when the recorder walked it; load: makes its graph at every call, and
    adds what it refers to and the trace does not have."""

    start_ts: int
    end_ts: int
    load: Callable[[TraceBuilder], HeapGraph]


@dataclass
class Process(Sealed):
    """One process. cgroup: the path of its control group, namespaces: those that it is in, as `pid:[4026531836]`; ""
    where they are not recorded; files: the names of those whose code was mapped in it, none where that is not."""

    pid: int
    name: str
    start_ts: int
    end_ts: int
    threads: list[Thread] = field(default_factory=list)
    counters: list[Counter] = field(default_factory=list)
    heap_snapshots: list[HeapSnapshot] = field(default_factory=list)
    cgroup: str = ""
    namespaces: str = ""
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.name = encodable(self.name)

    def seal(self) -> None:
        for part in (*self.threads, *self.counters):
            part.seal()
        for name in ("threads", "counters", "heap_snapshots"):
            object.__setattr__(self, name, SealedList(getattr(self, name)))
        super().seal()


class CodeUnwinding(NamedTuple):
    """Call-frame information of a code object. eh_frame: bytes as in a section `.eh_frame`; offset: where the first of
    them counts as placed, relative to the code; at: its offset in the input, which code objects that share it have in
    common."""

    eh_frame: memoryview
    offset: int
    at: int


class CodeReader(Protocol):
    """Reads the code objects of one input. rows: which rows of `code` are its own; opened_ts: ns, the time in the
    input's header, None where it has none. Not all producers take it from the clock of the code."""

    rows: range

    @property
    def opened_ts(self) -> int | None: ...

    def frames_at(self, trace: TraceBuilder, code: int, offset: int) -> tuple[int, ...]:
        """Returns the frames of a byte of a code object, the outermost function first; never empty. Those that the
        trace does not have are added to it."""

    def lines_at(self, trace: TraceBuilder, code: int, offset: int) -> tuple[int, ...]:
        """Returns the same without the byte's address: the bytes of one place in the sources have the same frames."""

    def function_of(self, trace: TraceBuilder, code: int) -> int:
        """Returns the frame of its function alone, without place and address."""

    def boundaries(self, code: int) -> Sequence[int]:
        """The offsets in a code object at which the frames may change, rising; the first is 0."""

    def bytes_of(self, code: int) -> memoryview:
        """Its machine code; empty where the input does not hold it."""

    def unwinding_of(self, code: int) -> CodeUnwinding | None:
        """Its call-frame information, None where there is none."""


class NativeFunction(NamedTuple):
    """The code at an address of a library. frames: (name, source, line), the outermost first, "" and 0 are unknown;
    start: of the outermost function, relative to the library's start; size: in bytes, 0 is unknown."""

    frames: tuple[tuple[str, str, int], ...]
    start: int
    size: int


class LinkedFrame(NamedTuple):
    """A function by its linkage name. line: that runs, or of the call of the next; discriminator: which code of the
    line, as the compiler wrote it, 0 where it did not; first_line: of the function."""

    name: str
    line: int
    discriminator: int
    first_line: int


# The functions at an address of a library, the outermost first. Empty where no lines are known.
LinkedPlace = tuple[LinkedFrame, ...]


class LibraryReader(Protocol):
    """Reads the files of the libraries of one input. lib: a row of `libs`, another input's has no files here;
    addresses: relative to the library's start, as in `frames`."""

    def functions_at(self, lib: int, addresses: Sequence[int]) -> Sequence[NativeFunction | None]:
        """None where nothing is known."""

    def linked_at(self, lib: int, addresses: Sequence[int]) -> Sequence[LinkedPlace]:
        """Returns the functions by the names that the linker knows, for what is given to compilers."""

    def bytes_of(self, lib: int, address: int, size: int) -> bytes:
        """The library's machine code, as far as its file is available and has it."""

    def holder_of(self, pid: int, ts: int, address: int) -> tuple[int, int] | None:
        """Returns the library and the address in it of an absolute address in a process, at a time on the trace's
        clock. A library that the trace does not have has a number that only this reader knows."""


class Input(NamedTuple):
    """The source of a part of the trace: a file's name, as UTF-8 can hold it, its format, the format's version, who
    wrote it."""

    path: str
    format: str
    version: str
    producer: str


class Trace:
    """A whole recording, as it was loaded: nothing changes it. Writing to it, or adding to its tables, is a TypeError.

    What is added when threads are loaded or a trace is saved goes into a continuation of it: see `opened`. Its report
    alone grows by what is found then.

    Attributes
    ----------
    processes : sequence of Process
        With their threads, counters and heap snapshots.
    report : Report
        What was lost, repaired or guessed.
    clock : Clock or None
        What the time stamps are on, which are in ns.
    events : sequence of Event
        What samples count. `ThreadData.samples` are of the first one, the clock where one was recorded.
    inputs : sequence of Input
        The files that were read.
    attributes : mapping of str to str
        The recording's provenance.
    strings, texts : Strings
        Names, and the texts of sources, to which tables refer by number.
    sources, libs, symbols, categories, tiers, funcs, code, code_mappings, frames, stacks, coverage : Table
        What all threads share; ``traceferry dump --model`` describes the columns.
    code_readers : sequence of CodeReader
        For each input with code objects, what reads them.
    library_readers : sequence of LibraryReader
        For each input with libraries of which files are here, what reads those.
    bounds : tuple of (int, int) or None
        The first and the last time stamp, in ns, where those of the processes do not tell.
    """

    clock: Clock | None
    events: Sequence[Event]
    strings: Strings
    texts: Strings
    sources: Table
    libs: Table
    symbols: Table
    categories: Table
    tiers: Table
    funcs: Table
    code: Table
    code_mappings: Table
    frames: Table
    stacks: Table
    coverage: Table
    code_readers: Sequence[CodeReader]
    library_readers: Sequence[LibraryReader]
    processes: Sequence[Process]
    inputs: Sequence[Input]
    attributes: Mapping[str, str]
    report: Report
    bounds: tuple[int, int] | None

    def __init__(self, like: Trace, **others: Any) -> None:
        """Makes a trace with the content of one that is complete. others: attributes that have other values."""
        content = {name: vars(like)[name] for name in Trace.__annotations__} | others
        for name in ("events", "code_readers", "library_readers", "processes", "inputs"):
            content[name] = SealedList(content[name])
        content["attributes"] = MappingProxyType(dict(content["attributes"]))
        vars(self).update(content)
        parts: tuple[Strings | Table | Process | Report, ...]
        parts = (self.strings, self.texts, *self.global_tables(), *self.processes, self.report)
        for part in parts:
            part.seal()

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(f"Trace.{name}: {READ_ONLY}")

    def opened(self) -> TraceBuilder:
        """Returns a continuation of the trace that can be added to: rows from the length of a table of the trace on are
        those that only the continuation has."""
        return TraceBuilder(self)

    @property
    def threads(self) -> list[tuple[Process, Thread]]:
        """The threads of all processes, each with its process."""
        return [(process, thread) for process in self.processes for thread in process.threads]

    @property
    def sampling(self) -> Event | None:
        """The first event, which `ThreadData.samples` count; None where nothing was sampled."""
        return self.events[0] if self.events else None

    @property
    def sample_unit(self) -> str:
        """Returns what samples of the first event are: "samples", "bytes" or "ns"."""
        return self.sampling.sample_unit if self.sampling is not None else "samples"

    def n_samples(self, data: ThreadData, row: int) -> Array:
        """Returns how many samples each row of a thread's samples of an event stands for: int64. Those of a member of a
        group are its leader's, of which a row may be several, as in pprof's profiles."""
        event, samples = self.events[row], data.samples_of(row)
        leading = data.samples_of(event.leader) if event.leader >= 0 else None
        if leading is not None and (leader := self.events[event.leader]).sample_unit == "samples":
            return leader.n_samples(leading)
        return event.n_samples(Table(SAMPLES) if samples is None else samples)

    @property
    def start_ts(self) -> int:
        """The first time stamp of the recording, in ns on its clock."""
        return self.bounds[0] if self.bounds else min((p.start_ts for p in self.processes), default=0)

    @property
    def end_ts(self) -> int:
        """The last time stamp of the recording, in ns on its clock."""
        return self.bounds[1] if self.bounds else max((p.end_ts for p in self.processes), default=0)

    @property
    def unix_start_ns(self) -> int | None:
        """The Unix time at which the recording starts, in ns, if the file tells."""
        if self.clock is None or self.clock.unix_zero_ns is None:
            return None
        return self.clock.unix_zero_ns + self.start_ts

    def code_reader(self, code: int) -> CodeReader:
        """Returns what reads a row of `code`. Importers add readers in the order of their rows."""
        nth = bisect_right(self.code_readers, code, key=lambda reader: reader.rows.start) - 1
        return self.code_readers[nth]

    def func_name(self, func: int) -> str:
        """Returns the name of a row of `funcs`."""
        return self.strings[int(self.funcs["name"][func])]

    def func_names(self, funcs: Array) -> list[str]:
        """Returns the names of rows of `funcs`."""
        return self.strings.of(self.funcs["name"][funcs])

    def global_tables(self) -> Sequence[Table]:
        """Returns the tables that all threads share."""
        return [getattr(self, spec.name) for spec in GLOBAL_TABLES]


class TraceBuilder(Trace):
    """A trace while it is made: importers intern into the global tables and append processes. Of another trace, its
    continuation: its tables begin with the other's rows, and what is noted in its report is noted in the other's, too.
    """

    sources: GrowingTable
    libs: GrowingTable
    symbols: GrowingTable
    categories: GrowingTable
    tiers: GrowingTable
    funcs: GrowingTable
    code: GrowingTable
    code_mappings: GrowingTable
    frames: GrowingTable
    stacks: GrowingTable
    coverage: GrowingTable
    events: list[Event]
    code_readers: list[CodeReader]
    library_readers: list[LibraryReader]
    processes: list[Process]
    inputs: list[Input]
    attributes: dict[str, str]

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __init__(self, of: Trace | None = None) -> None:
        self._of = of
        self.clock = of.clock if of else None
        self.events = list(of.events) if of else []
        self.bounds = of.bounds if of else None
        self.strings = Strings(of.strings if of else None)
        self.texts = Strings(of.texts if of else None)
        for spec in GLOBAL_TABLES:
            setattr(self, spec.name, GrowingTable(spec, getattr(of, spec.name, None)))
        self.code_readers = list(of.code_readers) if of else []
        self.library_readers = list(of.library_readers) if of else []
        self.processes = list(of.processes) if of else []
        self.inputs = list(of.inputs) if of else []
        self.attributes = dict(of.attributes) if of else {}
        self.report = Report(of.report if of else None)
        self._kept: dict[int, tuple[object, Any]] = {}
        self.clock_parts: list[ClockPart] = []

    def done(self) -> Trace:
        """Returns the trace that was made. This builder, whose tables it has, is read-only from now on."""
        if self.clock_parts:
            # Without any clock, times have passed since the start, as those of a monotonic one.
            self.clock = self.clock or Clock("monotonic")
        self.sort()
        return Trace(self)

    def sort(self) -> None:
        """Brings processes into the order of their start; threads with the main one first, then by start. Ties go by
        number. Fixes the bounds: exporters ask for them with every thread."""
        for process in self.processes:
            process.threads.sort(key=lambda t: (not t.is_main, t.start_ts, t.tid))
        self.processes.sort(key=lambda p: (p.start_ts, p.pid))
        self.bounds = self.start_ts, self.end_ts

    def opened(self) -> TraceBuilder:
        return self

    def again(self) -> TraceBuilder:
        """Returns another continuation of what this one continues. What is noted there is noted here, too."""
        other = TraceBuilder(self._of)
        other.report = Report(self.report)
        return other

    def kept(self, owner: object, make: Callable[[], Kept]) -> Kept:
        """Returns what `owner` keeps about this trace, made at the first call: as which rows it has added."""
        if id(owner) not in self._kept:
            self._kept[id(owner)] = owner, make()
        found: Kept = self._kept[id(owner)][1]
        return found

    def join_clock(self, clock: Clock, within_ns: int = 0) -> int:
        """Puts the trace on `clock` if it has none yet. Returns what an importer adds to its time stamps, in ns: 0 for
        clocks of one kind that seem to be less than within_ns apart, which are one, and for those without a known
        relation. To be called before the processes with these times are added."""
        if self.clock is None or (self.clock.kind == clock.kind and self.clock.unix_zero_ns is None):
            self.clock = clock
        apart_ns = 0
        if self.clock.unix_zero_ns is not None and clock.unix_zero_ns is not None:
            apart_ns = clock.unix_zero_ns - self.clock.unix_zero_ns
            apart_ns = 0 if self.clock.kind == clock.kind and abs(apart_ns) < within_ns else apart_ns
        elif self.clock.kind != clock.kind:
            self.report.note("clock_unrelated", where=clock.kind, detail=f"{clock.kind} and {self.clock.kind}")
            self.begin_apart(clock)
            return 0
        self.clock_parts.append(ClockPart(len(self.processes), len(self.code), clock, is_apart=False))
        return apart_ns

    def begin_apart(self, clock: Clock | None) -> None:
        """Says that the times of what is added now have no known relation to the trace's clock. clock: theirs, None is
        none, as where times are made up."""
        self.clock_parts.append(ClockPart(len(self.processes), len(self.code), clock, is_apart=True))

    def add_category(self, name: str, color: str = "", parent: int = -1) -> int:
        """Returns the row of `categories`. color: by default that of CATEGORY_COLORS, which then has the name; parent:
        the row of which this is a part."""
        name_row, color_row = (self.strings.intern(text) for text in (name, color or CATEGORY_COLORS[name]))
        return self.categories.intern(name=name_row, color=color_row, parent=parent)
