"""The declaration of the model: every table and every column, with dtype, unit and meaning.

`traceferry.model.laws.check`, the text of `traceferry dump --model` and the arrays themselves derive from it. The
tables of a trace are in GLOBAL_TABLES, those of a thread in THREAD_TABLES.

ts and dur are int64 nanoseconds on the trace's one clock. An index column is int32, and -1 is none. A *frame* is a
function as it runs: with its category, tier, library and address.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Column(NamedTuple):
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
        return _numpy_dtype(self.dtype)

    def empty(self) -> Array:
        return np.empty(0, self.numpy_dtype)

    @property
    def default(self) -> Any:
        if self.dtype == "text":
            return ""
        return -1 if self.refers_to else self.absent


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(object if name == "text" else name)


@dataclass(frozen=True)
class TableSpec:
    """sorted_by: a column whose values never fall."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    sorted_by: str = ""

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    @cached_property
    def no_rows(self) -> dict[str, Array]:
        """Returns the columns without a row, which tables share."""
        return {column.name: column.empty() for column in self.columns}


def _index(name: str, refers_to: str, doc: str) -> Column:
    return Column(name, "int32", doc, refers_to=refers_to)


TS = Column("ts", "int64", "time on the trace's clock", "ns")

SOURCES = TableSpec(
    "sources",
    "source files",
    (_index("path", "strings", "as the symbols name it"), _index("text", "texts", "the embedded text, if any")),
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
    "named ranges of machine code: a function in a library, a code object in a JIT dump",
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
        _index("name", "strings", "display name"),
        _index("color", "strings", "one of the Firefox Profiler's colour names"),
        _index("parent", "categories", "the category that this is a part of, which has no parent itself"),
    ),
)
TIERS = TableSpec(
    "tiers",
    "how a JIT compiler or interpreter runs a function",
    (
        _index("name", "strings", "as Turbofan (OSR)"),
        _index("family", "strings", "the group of tiers it belongs to, as Turbofan"),
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
        Column("number", "int64", "the recorder's number of a function without a name, else -1", absent=-1),
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
        Column("bytes_at", "int64", "offset of its bytes in its input's file, -1 is unknown", absent=-1),
    ),
)
CODE_MAPPINGS = TableSpec(
    "code_mappings",
    "address ranges of code objects over time; at one time no two of a process overlap",
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
        _index("source", "sources", "the file of line and column, where it differs from the function's"),
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
GLOBAL_TABLES = (SOURCES, LIBS, SYMBOLS, CATEGORIES, TIERS, FUNCS, CODE, CODE_MAPPINGS, FRAMES, STACKS, COVERAGE)

# Its flags: native/call_flags.pxd.
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
        Column("position", "int32", "0 is the first argument, or `this`; -1: no argument, the row has a flow only"),
        Column("value", "uint64", "the raw value, a number or a pointer; of a format, the bits of its dtype"),
        _index("key", "strings", "its name, -1: known by position"),
        _index("text", "strings", "the value of a text, -1: the number counts"),
        _index("format", "strings", "as those of marker fields, -1: a raw value"),
        Column("flow", "int64", "links the call with calls and markers of this number, in time order; 0 is none"),
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
        Column("cpu_ns", "int64", "CPU time since the thread's previous sample, -1 is unknown", "ns", absent=-1),
    ),
    sorted_by="ts",
)
# What a row of `branches` says.
BRANCH_UNKNOWN = 0
BRANCH_PREDICTED = 1
BRANCH_MISPREDICTED = 2

BRANCHES = TableSpec(
    "branches",
    "taken branches that the processor recorded with samples. A place in the code is a stack of the functions that are "
    "inlined there, without callers",
    (
        Column("ts", "int64", "time of the sample", "ns"),
        _index("start", "stacks", "where the straight run of code began that ends with this branch; -1 is unknown"),
        _index("from", "stacks", "the place of the branch"),
        _index("to", "stacks", "the place to which it went"),
        Column("outcome", "uint8", "BRANCH_UNKNOWN 0, BRANCH_PREDICTED 1, BRANCH_MISPREDICTED 2"),
        Column("cycles", "int64", "since the branch before it; 0 is unknown", "cycles"),
    ),
    sorted_by="ts",
)  # fmt: skip
ALLOCATIONS = TableSpec(
    "allocations",
    "memory allocated and freed",
    (
        TS,
        Column("size", "int64", "positive allocated, negative freed", "bytes"),
        _index("class_name", "strings", "the object's class"),
        _index("stack", "stacks", "the allocating stack; its leaf is a frame of the class, so none is empty"),
        Column("object", "int64", "number of the object in its process, also after moves; -1 is unknown", absent=-1),
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
RUNNABLE = 3
UNKNOWN = 4

SCHEDULING = TableSpec(
    "scheduling",
    "context switches of the thread",
    (
        TS,
        Column(
            "state",
            "uint8",
            "from ts on: WAITING 0, RUNNING 1, PREEMPTED 2 (it could run), RUNNABLE 3 (it was woken), UNKNOWN 4 (lost)",
        ),
        Column("cpu", "int32", "the processor that it runs on, or ran on before; -1 is unknown", absent=-1),
        _index("reason", "strings", "why it left the processor: the kernel's letter of its state, as S or D"),
        _index("stack", "stacks", "where it left the processor"),
        Column("waker", "int64", "the thread that woke it, -1 is unknown", absent=-1),
        _index("waker_stack", "stacks", "where that thread was then"),
    ),
    sorted_by="ts",
)
THREAD_TABLES = (CALLS, ARGUMENTS, SAMPLES, BRANCHES, ALLOCATIONS, STATES, SCHEDULING)

HEAP_OBJECTS = TableSpec(
    "heap_objects",
    "the objects of a heap snapshot",
    (
        Column("object", "int64", "number of the object in its process, as in `allocations`; -1 is unknown", absent=-1),
        Column("address", "uint64", "its address"),
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

# percentage: 1 is all of it; time: ns on the trace's clock; flow: a number that links rows; json: a nested value or a
# list, as text.
FieldFormat = Literal[
    "text", "integer", "hex", "bytes", "duration", "decimal", "percentage", "time", "url", "path", "flow", "json"
]
FIELD_DTYPES: dict[FieldFormat, str] = {
    "text": "text",
    "integer": "int64",
    "hex": "uint64",
    "bytes": "int64",
    "duration": "int64",
    "decimal": "float64",
    "percentage": "float64",
    "time": "int64",
    "url": "text",
    "path": "text",
    "flow": "int64",
    "json": "text",
}


class MarkerField(NamedTuple):
    """key: the column's name; label: for people; format: how to show it; optional: 0 and "" say that it is unknown."""

    key: str
    label: str
    format: FieldFormat
    optional: bool = False


# The key of the field of a type whose markers have names of their own beside it, as in the Firefox Profiler; it is in
# MarkerType.named_by, too.
OWN_NAME = "marker_name"

# What markers of ours are about, each with one of the Firefox Profiler's colour names.
MARKER_COLORS: dict[str, str] = {
    "GC": "orange", "JIT": "purple", "Locks": "magenta", "Exceptions": "red", "Loader": "yellow", "I/O": "lightblue",
    "Memory": "green", "Scheduling": "darkgrey", "Other": "grey",
}  # fmt: skip


class MarkerType(NamedTuple):
    """A kind of events, as an importer declares it. label: a template for a short text, fields in braces; group_by: the
    fields by whose values `info` counts them; category: the name of what they are about; named_by, colored_by: the
    fields that name an event, and that choose its colour, in a viewer that shows only names; color: of the category,
    one of the Firefox Profiler's names, "" is that of MARKER_COLORS, or grey."""

    name: str
    doc: str
    fields: tuple[MarkerField, ...]
    label: str = ""
    group_by: tuple[str, ...] = ()
    category: str = "Other"
    named_by: str = ""
    colored_by: str = ""
    color: str = ""

    @property
    def shown_color(self) -> str:
        return self.color or MARKER_COLORS.get(self.category, "grey")

    @property
    def spec(self) -> TableSpec:
        fields = tuple(Column(f.key, FIELD_DTYPES[f.format], f.label) for f in self.fields)
        return TableSpec(self.name, self.doc, (*MARKER_COLUMNS, *fields), sorted_by="ts")


MARKER_COLUMNS = (
    TS,
    Column("dur", "int64", "0 is an instant", "ns"),
    _index("stack", "stacks", "where"),
    Column("flow", "int64", "links rows with the same number, in time order; 0 is none"),
)


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
                notes = [c.dtype, c.unit, f"-> {c.refers_to}" if c.refers_to else ""]
                lines.append(f"    {c.name:12} {' '.join(n for n in notes if n):20} {c.doc}")
        lines.append("")
    return "\n".join(lines)
