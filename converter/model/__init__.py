"""The model of a trace: every table, every column, and the objects that hold them.

The tables are declared once, in GLOBAL_TABLES and THREAD_TABLES. `traceferry.model.laws.check`, the text of
`traceferry dump --model` and the arrays themselves derive from that declaration.

Terms. ts and dur are int64 nanoseconds on the trace's one clock. An index column is int32 and -1 is none. A *frame* is
a function as it runs: with its category, tier, library and address. Heavy tables belong to a thread and exist only
while somebody uses them: `Thread.load()` produces them, and they go when the caller drops them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from traceferry.report import Report

Array = NDArray[Any]
ClockKind = Literal["monotonic", "monotonic_raw", "realtime", "boot", "sched", "tsc"]


# ---------------------------------------------------------------- the declaration


@dataclass(frozen=True)
class Column:
    """dtype: a NumPy dtype, or "text" for Python strings; refers_to: the table that an index column points into;
    absent: the value of a number that is not known."""

    name: str
    dtype: str
    doc: str
    unit: str = ""
    refers_to: str = ""
    absent: int = 0

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        return np.dtype(object if self.dtype == "text" else self.dtype)

    def empty(self) -> Array:
        return np.empty(0, self.numpy_dtype)

    @property
    def default(self) -> Any:
        if self.dtype == "text":
            return ""
        return -1 if self.refers_to else self.absent


@dataclass(frozen=True)
class TableSpec:
    """sorted_by: a column whose values never fall."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    sorted_by: str = ""

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


def _index(name: str, refers_to: str, doc: str) -> Column:
    return Column(name, "int32", doc, refers_to=refers_to)


TS = Column("ts", "int64", "when, on the trace's clock", "ns")

SOURCES = TableSpec(
    "sources",
    "source files",
    (_index("path", "strings", "as the symbols name it"), _index("text", "texts", "the text, if it is embedded")),
)
LIBS = TableSpec(
    "libs",
    "executables, shared objects and JIT dumps",
    (
        _index("name", "strings", "file name without folders"),
        _index("debug_id", "strings", "Breakpad's form of the build id"),
        _index("code_id", "strings", "the build id in hex"),
        _index("arch", "strings", "as x86_64"),
    ),
)
SYMBOLS = TableSpec(
    "symbols",
    "pieces of machine code that have a name: a function in a library, a code object in a JIT dump",
    (
        _index("lib", "libs", "the library that holds it"),
        _index("name", "strings", "the outermost function, or the code object as the JIT compiler calls it"),
        Column("address", "int64", "of its first byte, relative to the library's start"),
        Column("size", "int64", "0 is unknown", "bytes"),
    ),
)
CATEGORIES = TableSpec(
    "categories",
    "what kind of code runs: JavaScript, Java, native, kernel, GC, and where native code comes from",
    (
        _index("name", "strings", "shown to people"),
        _index("color", "strings", "one of the Firefox Profiler's colour names"),
    ),
)
TIERS = TableSpec(
    "tiers",
    "how a JIT compiler or interpreter runs a function",
    (
        _index("name", "strings", "as Turbofan (OSR)"),
        _index("family", "strings", "what it is a variety of, as Turbofan"),
        _index("color", "strings", "one of the Firefox Profiler's colour names"),
    ),
)
FUNCS = TableSpec(
    "funcs",
    "functions",
    (
        _index("name", "strings", "demangled"),
        _index("source", "sources", "the file that defines it"),
        Column("line", "int32", "first line, 0 is unknown"),
        Column("column", "int32", "first column, 0 is unknown"),
        Column("is_js", "bool", "JavaScript or another scripting language"),
        _index("kind", "strings", "function, builtin, stub, trampoline, regexp, inline cache, wasm"),
        Column("number", "int64", "the recorder's own number of a function without a name, else -1", absent=-1),
    ),
)
CODE = TableSpec(
    "code",
    "code objects made by a JIT compiler",
    (
        _index("func", "funcs", "the function compiled"),
        _index("symbol", "symbols", "its machine code, with the name that the compiler gave it"),
        _index("tier", "tiers", "interpreter, baseline, optimised..."),
        Column("pid", "int64", "the process"),
        Column("tid", "int64", "the thread that compiled it"),
        Column("size", "int64", "length of the code", "bytes"),
        Column("loaded_at", "int64", "when", "ns"),
        Column("bytes_at", "int64", "where its bytes lie in its input's file, -1 is nowhere", absent=-1),
    ),
)
PLACES = TableSpec(
    "places",
    "where code objects lay, and from when to when; in one process at one time no two overlap",
    (
        _index("code", "code", "the code object"),
        Column("address", "uint64", "of its first byte"),
        Column("start_ts", "int64", "loaded, or moved there", "ns"),
        Column("end_ts", "int64", "moved away, or replaced; -1 is never", "ns", absent=-1),
    ),
)
FRAMES = TableSpec(
    "frames",
    "functions as they run: the same function in two tiers is one function and two frames",
    (
        _index("func", "funcs", "the function"),
        _index("category", "categories", "what kind of code"),
        _index("tier", "tiers", "interpreter, baseline, optimised..."),
        _index("source", "sources", "the file of line and column, where it is not the function's own"),
        Column("line", "int32", "the line that runs, 0 is unknown"),
        Column("column", "int32", "the column that runs, 0 is unknown"),
        _index("code", "code", "the JIT code object"),
        _index("symbol", "symbols", "the machine code that holds the address"),
        _index("lib", "libs", "the library that holds the address"),
        Column("address", "int64", "relative to the library's start, -1 is unknown", absent=-1),
        Column("inline_depth", "int32", "0 is a real frame; 1, 2... are inlined into the one before"),
    ),
)
STACKS = TableSpec(
    "stacks",
    "call paths as a tree: a stack is its prefix and one more frame",
    (_index("prefix", "stacks", "the caller's stack, always a smaller index"), _index("frame", "frames", "the leaf")),
)
COVERAGE = TableSpec(
    "coverage",
    "which statements of a method ran, as a recorder of code coverage counts them",
    (
        _index("assembly", "strings", "the executable or library"),
        _index("class_name", "strings", "the method's class"),
        _index("method", "strings", "with its signature"),
        _index("path", "strings", "the source file"),
        Column("statements", "int64", "how many there are"),
        Column("covered", "int64", "how many of them ran"),
    ),
)
GLOBAL_TABLES = (SOURCES, LIBS, SYMBOLS, CATEGORIES, TIERS, FUNCS, CODE, PLACES, FRAMES, STACKS, COVERAGE)

# The flags of a row of `calls`.
LEAVE = 1  # the row leaves the frame; without it, it enters
TAIL = 2  # a leave by a tail call
UNWOUND = 4  # a leave without a record of its own: a function below was left (exception, longjmp, thread exit)
OPEN_AT_END = 8  # a leave at the recording's end: the call was still open
OPEN_AT_START = 16  # an enter at the thread's start: the entry is not in the recording
ENTRY_LOST = 32  # an enter whose record was lost inside the recording: the latest moment it may have been

CALLS = TableSpec(
    "calls",
    "every enter and leave of instrumented functions, balanced: each enter has its leave, strictly nested",
    (
        TS,
        _index("frame", "frames", "what is entered or left"),
        Column("flags", "uint8", "LEAVE 1, TAIL 2, UNWOUND 4, OPEN_AT_END 8, OPEN_AT_START 16, ENTRY_LOST 32"),
    ),
    sorted_by="ts",
)
ARGUMENTS = TableSpec(
    "arguments",
    "arguments of calls, in the order of their calls and positions",
    (
        Column("call", "int64", "row of `calls` that enters", refers_to="calls"),
        Column("position", "int32", "0 is the first argument, or `this`"),
        Column("value", "uint64", "the raw value: a number or a pointer"),
    ),
    sorted_by="call",
)
SAMPLES = TableSpec(
    "samples",
    "sampled stacks",
    (
        TS,
        _index("stack", "stacks", "what ran"),
        Column("weight", "int64", "in the thread's sample_unit"),
        Column("cpu", "int32", "the processor, -1 is unknown", absent=-1),
        Column("cpu_ns", "int64", "CPU time since the thread's sample before, -1 is unknown", "ns", absent=-1),
    ),
    sorted_by="ts",
)
ALLOCATIONS = TableSpec(
    "allocations",
    "memory allocated and freed",
    (
        TS,
        Column("size", "int64", "positive allocated, negative freed", "bytes"),
        _index("class_name", "strings", "the object's class"),
        _index("stack", "stacks", "where; the leaf is a frame of the class, so that no allocation is without one"),
        Column("object", "int64", "which object of the process it is, also where it moves; -1 is unknown", absent=-1),
    ),
    sorted_by="ts",
)
STATES = TableSpec(
    "states",
    "what the thread was doing from ts on, for each track until the track's next row",
    (
        TS,
        _index("track", "strings", "which aspect: CPU, GC..."),
        _index("value", "strings", "the state, -1 is none"),
    ),
    sorted_by="ts",
)
# What a row of `scheduling` says.
WAITING = 0
RUNNING = 1
PREEMPTED = 2

SCHEDULING = TableSpec(
    "scheduling",
    "the thread is put on a processor or taken off it",
    (
        TS,
        Column("state", "uint8", "from ts on: WAITING 0, RUNNING 1, PREEMPTED 2 (it could run)"),
        Column("cpu", "int32", "the processor, -1 is unknown", absent=-1),
    ),
    sorted_by="ts",
)
THREAD_TABLES = (CALLS, ARGUMENTS, SAMPLES, ALLOCATIONS, STATES, SCHEDULING)

HEAP_OBJECTS = TableSpec(
    "heap_objects",
    "the objects of a heap snapshot",
    (
        Column("object", "int64", "which object of the process it is, as in `allocations`; -1 is unknown", absent=-1),
        Column("address", "uint64", "where it lies"),
        _index("class_name", "strings", "its class"),
        Column("size", "int64", "its own", "bytes"),
        _index("site", "stacks", "where it was allocated, as the allocation's stack"),
    ),
)
HEAP_ROOTS = TableSpec(
    "heap_roots",
    "what keeps objects of a heap snapshot alive",
    (
        Column("object", "int32", "row of `heap_objects`", refers_to="heap_objects"),
        _index("kind", "strings", "stack, static, GC handle..."),
        _index("name", "strings", "which one of that kind, if it has a name"),
    ),
)
HEAP_TABLES = (HEAP_OBJECTS, HEAP_ROOTS)

COUNTER_VALUES = TableSpec("counter", "a counter's values", (TS, Column("value", "float64", "at ts")), sorted_by="ts")

FieldFormat = Literal["text", "integer", "hex", "bytes", "duration"]
FIELD_DTYPES: dict[FieldFormat, str] = {
    "text": "text",
    "integer": "int64",
    "hex": "uint64",
    "bytes": "int64",
    "duration": "int64",
}


@dataclass(frozen=True)
class MarkerField:
    """key: the column's name; label: for people; format: how to show it."""

    key: str
    label: str
    format: FieldFormat


@dataclass(frozen=True)
class MarkerType:
    """What an importer declares of its own events. label: a template for a short text, fields in braces;
    group_by: the fields by whose values `info` counts them."""

    name: str
    doc: str
    fields: tuple[MarkerField, ...]
    label: str = ""
    group_by: tuple[str, ...] = ()

    @property
    def spec(self) -> TableSpec:
        fields = tuple(Column(f.key, FIELD_DTYPES[f.format], f.label) for f in self.fields)
        return TableSpec(self.name, self.doc, (*MARKER_COLUMNS, *fields), sorted_by="ts")


MARKER_COLUMNS = (
    TS,
    Column("dur", "int64", "0 is an instant", "ns"),
    _index("stack", "stacks", "where"),
    Column("flow", "int64", "rows of one number belong together, in the order of time; 0 is none"),
)


# ---------------------------------------------------------------- tables


class Table:
    """Columns of one length, as the spec declares them; columns that are not given take their default."""

    def __init__(self, spec: TableSpec, columns: dict[str, Any] | None = None) -> None:
        given = columns or {}
        n = len(next(iter(given.values()))) if given else 0
        self.spec = spec
        self.columns: dict[str, Array] = {
            c.name: np.asarray(given[c.name], c.numpy_dtype)
            if c.name in given
            else np.full(n, c.default, c.numpy_dtype)
            for c in spec.columns
        }

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def pieces(self) -> Iterator[Table]:
        """The rows in tables one after the other; none is empty. Here it is one."""
        if len(self):
            yield self

    def take(self, rows: Array | slice) -> Table:
        """The table with those rows only: a mask, an index array or a slice."""
        return Table(self.spec, {name: column[rows] for name, column in self.columns.items()})

    def merged(self, other: Table) -> Table:
        """The rows of both, by time."""
        both = Table(self.spec, {name: np.concatenate((c, other[name])) for name, c in self.columns.items()})
        return both.take(np.argsort(both["ts"], kind="stable"))

    def replaced(self, **columns: Array) -> Table:
        """The table with other values in some columns."""
        return Table(self.spec, {**self.columns, **columns})


class StreamedTable(Table):
    """A table that may not fit into memory: whoever can, goes through its pieces, as often as he needs; they are made
    anew each time. Whoever asks for a column gets them joined, and keeps them as long as the table.

    make: the pieces; n_rows: how many rows they have together, None: counted when somebody asks.
    """

    def __init__(self, spec: TableSpec, make: Callable[[], Iterator[Table]], n_rows: int | None = None) -> None:
        self.spec = spec
        self._make = make
        self._n_rows = n_rows

    @cached_property
    def columns(self) -> dict[str, Array]:  # type: ignore[override]  # made at the first use
        pieces = [piece.columns for piece in self._make()]
        return {c.name: np.concatenate([p[c.name] for p in pieces] or [c.empty()]) for c in self.spec.columns}

    def __len__(self) -> int:
        if self._n_rows is None:
            self._n_rows = sum(len(piece) for piece in self._make())
        return self._n_rows

    def pieces(self) -> Iterator[Table]:
        return self._make()


class GrowingTable:
    """A global table while importers add to it: rows one by one, of which equal ones are one row, or many at once."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec
        self._index: dict[tuple[Any, ...], int] = {}
        self._defaults = [c.default for c in spec.columns]
        self._places = {c.name: place for place, c in enumerate(spec.columns)}
        self._parts: list[Table] = []
        self._pending: list[tuple[Any, ...]] = []
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def intern(self, **values: Any) -> int:
        """The index of the row with these values; columns not named take their default."""
        cells = self._defaults.copy()
        for name, value in values.items():
            cells[self._places[name]] = value
        row = tuple(cells)
        index = self._index.setdefault(row, self._n)
        if index == self._n:
            self._pending.append(row)
            self._n += 1
        return index

    def extend(self, **columns: Any) -> int:
        """Appends rows without looking for equal ones; returns the index of the first."""
        part = Table(self.spec, columns)
        self._flush()
        self._parts.append(part)
        self._n += len(part)
        return self._n - len(part)

    def table(self) -> Table:
        self._flush()
        if len(self._parts) != 1:
            names = [c.name for c in self.spec.columns]
            joined = {n: np.concatenate([p[n] for p in self._parts]) for n in names} if self._parts else {}
            self._parts = [Table(self.spec, joined)]
        return self._parts[0]

    def __getitem__(self, name: str) -> Array:
        return self.table()[name]

    def _flush(self) -> None:
        if self._pending:
            names = [c.name for c in self.spec.columns]
            self._parts.append(Table(self.spec, dict(zip(names, zip(*self._pending, strict=True), strict=True))))
            self._pending = []


class Strings:
    """All short texts, each once; index -1 is none."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._list: list[str] = []

    def intern(self, text: str) -> int:
        index = self._index.setdefault(text, len(self._list))
        if index == len(self._list):
            self._list.append(text)
        return index

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, index: int) -> str:
        return self._list[index] if index >= 0 else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._list)


# ---------------------------------------------------------------- the objects


@dataclass(frozen=True)
class Clock:
    """kind: which clock the time stamps are on ("sched": the scheduler's own, close to monotonic; "tsc": a counter with
    an unspecified start).

    unix_zero_ns: the Unix time, in ns, at which the clock showed 0; None where nothing tells.
    """

    kind: ClockKind
    unix_zero_ns: int | None = None


@dataclass(frozen=True)
class Sampling:
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
    """One thread, for as long as it was one: a thread id that is used again is another Thread.

    start_ts, end_ts: its first and last time stamp; load: makes its tables anew at every call;
    n_records: how much it holds, for the progress bar; sample_unit: what its samples weigh, where that is not what the
    trace's samples weigh: "bytes" makes a view of sizes.
    """

    tid: int
    name: str
    is_main: bool
    start_ts: int
    end_ts: int
    load: Callable[[], ThreadData]
    n_records: int = 0
    sample_unit: str = ""


@dataclass
class Counter:
    """values: a table of COUNTER_VALUES; unit: "bytes", "count"...; color: one of the Firefox Profiler's names."""

    name: str
    unit: str
    doc: str
    values: Table
    color: str = "blue"


@dataclass(frozen=True)
class HeapGraph:
    """What was alive, and why. objects: HEAP_OBJECTS; roots: HEAP_ROOTS; references: int32 rows of objects: those of
    object i are references[offsets[i]:offsets[i + 1]], offsets being int64."""

    objects: Table
    offsets: Array
    references: Array
    roots: Table


@dataclass(frozen=True)
class HeapSnapshot:
    """The heap at one moment. start_ts, end_ts: when the recorder walked it; load: makes its graph, at every call."""

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


class CodeReader(Protocol):
    """Reads the code objects of one input. rows: which rows of `code` are its own."""

    rows: range

    def frames_at(self, code: int, offset: int) -> tuple[int, ...]:
        """The frames of a byte of a code object, the outermost function first; never empty."""

    def boundaries(self, code: int) -> Sequence[int]:
        """The offsets in a code object at which the frames may change, rising; the first is 0."""

    def bytes_of(self, code: int) -> memoryview:
        """Its machine code; empty where the input does not hold it."""


@dataclass(frozen=True)
class Input:
    """Where a part of the trace comes from: a file's name, its format, the format's version, who wrote it."""

    path: str
    format: str
    version: str
    producer: str


class Trace:
    """A whole recording. Importers intern into the global tables and append processes; exporters read.

    start_ts, end_ts: the first and the last time stamp of the recording; attributes: its provenance, in words;
    code_readers: for each input with code objects, what reads them.
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
        self.places = GrowingTable(PLACES)
        self.frames = GrowingTable(FRAMES)
        self.stacks = GrowingTable(STACKS)
        self.coverage = GrowingTable(COVERAGE)
        self.code_readers: list[CodeReader] = []
        self.processes: list[Process] = []
        self.inputs: list[Input] = []
        self.attributes: dict[str, str] = {}
        self.report = Report()
        self.bounds: tuple[int, int] | None = None

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

    def join_clock(self, clock: Clock) -> int:
        """Puts the trace on `clock` if it has none yet. Returns what an importer adds to its time stamps, in ns."""
        if self.clock is None or (self.clock.kind == clock.kind and self.clock.unix_zero_ns is None):
            self.clock = clock
        if self.clock == clock or (self.clock.kind == clock.kind and clock.unix_zero_ns is None):
            return 0
        if self.clock.unix_zero_ns is not None and clock.unix_zero_ns is not None:
            return clock.unix_zero_ns - self.clock.unix_zero_ns
        if self.clock.kind != clock.kind:
            self.report.note("clock_unrelated", where=clock.kind, detail=f"{clock.kind} and {self.clock.kind}")
        return 0

    def sort(self) -> None:
        """Processes by their start; threads with the main one first, then by start. Ties go by number."""
        for process in self.processes:
            process.threads.sort(key=lambda t: (not t.is_main, t.start_ts, t.tid))
        self.processes.sort(key=lambda p: (p.start_ts, p.pid))

    def func_name(self, func: int) -> str:
        return self.strings[int(self.funcs["name"][func])]

    def global_tables(self) -> Sequence[GrowingTable]:
        return (
            self.sources, self.libs, self.symbols, self.categories, self.tiers, self.funcs, self.code, self.places,
            self.frames, self.stacks, self.coverage,
        )  # fmt: skip


def describe() -> str:
    """The declaration as text: what `traceferry dump --model` prints."""
    lines: list[str] = []
    for title, specs in (
        ("of the trace", GLOBAL_TABLES),
        ("of a thread", THREAD_TABLES),
        ("of a heap snapshot", HEAP_TABLES),
        ("others", (COUNTER_VALUES,)),
    ):
        lines.append(f"Tables {title}")
        for spec in specs:
            lines += ["", f"  {spec.name}: {spec.doc}"]
            for c in spec.columns:
                notes = [c.dtype, c.unit, f"→ {c.refers_to}" if c.refers_to else ""]
                lines.append(f"    {c.name:12} {' '.join(n for n in notes if n):20} {c.doc}")
        lines.append("")
    return "\n".join(lines)
