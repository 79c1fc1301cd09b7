"""Map: what a dump shows without any samples: a marker for each load, counters of live code, a tree of code sizes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.importers.jitdump.code import Code
from traceferry.importers.jitdump.inlines import InlineTable
from traceferry.importers.jitdump.layout import MAX_TID
from traceferry.importers.jitdump.owners import program_of
from traceferry.model import (
    COUNTER_VALUES,
    Array,
    Counter,
    MarkerField,
    MarkerType,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
    distinct,
    rows_by_key,
)
from traceferry.reading import MappedFile
from traceferry.symbolication.code_mapping import live_bytes
from traceferry.symbolication.code_sizes import Weights, by_line, by_stretch, view_of

LOADED = MarkerType(
    "JIT code",
    "The JIT compiler loaded a function's code",
    (
        MarkerField("function", "Function", "text"),
        MarkerField("tier", "Tier", "text", optional=True),
        MarkerField("kind", "Kind", "text"),
        MarkerField("size", "Size", "bytes"),
        MarkerField("address", "Address", "hex"),
        MarkerField("file", "File", "text", optional=True),
        MarkerField("line", "Line", "integer", optional=True),
        MarkerField("inlined", "Inlined functions", "text", optional=True),
    ),
    label="{function} {tier}",
    category="JIT",
    named_by="function",
    colored_by="tier",
)
MAX_INLINED = 32  # names of inlined functions in one marker
# No thread has a number as large as this one and more.
CODE_SIZE_TID = MAX_TID


class Processes:
    """The processes of a trace by their numbers and what they ran, and their threads. mapped: the dumps, as recorded
    processes mapped them."""

    def __init__(self, trace: TraceBuilder, mapped: Sequence[MappedFile]) -> None:
        self._trace = trace
        self._mapped = mapped
        # Of what else is known, which is not by program; of several with one number the first.
        self._others = {process.pid: process for process in reversed(trace.processes)}
        # By number and program.
        self._by_program: dict[tuple[int, int], Process] = {}
        # By the identity of the process.
        self._threads: dict[int, dict[int, Thread]] = {}
        self._markers: dict[tuple[int, int], _LoadMarkers] = {}
        self._view_tids: dict[int, int] = {}
        self._viewed: set[int] = set()

    @cached_property
    def flow_of_func(self) -> Array:
        """Returns for each func a number that its code objects share, if they are of more than one tier, else 0."""
        code, n = self._trace.code, len(self._trace.funcs)
        pairs = distinct(code["func"].astype(np.int64) << 32 | (code["tier"] + 1))
        n_tiers = np.bincount(pairs >> 32, minlength=n)
        return np.where(n_tiers > 1, np.arange(1, n + 1), 0)

    def of(self, pid: int, program: int, name: str, start: int, end: int) -> Process:
        """Returns the process, which lasts at least from start to end."""
        process = self._by_program.get((pid, program)) or self._others.pop(pid, None)
        if process is None:
            process = Process(pid, name, start, end)
            self._trace.processes.append(process)
        self._by_program[pid, program] = process
        process.start_ts, process.end_ts = min(process.start_ts, start), max(process.end_ts, end)
        return process

    def of_number(self, pid: int, name: str, start: int, end: int) -> Process:
        """Returns the process that has loaded code into the dump of another."""
        return self.of(pid, program_of(pid, self._mapped), name, start, end)

    def add_thread(self, process: Process, thread: Thread, markers: _LoadMarkers) -> None:
        """Adds a thread; of several dumps with one thread, and of what else is known of it, it gets all markers."""
        known = self._threads_of(process).setdefault(thread.tid, thread)
        earlier = self._markers.setdefault((id(process), thread.tid), markers)
        if known is thread:
            process.threads.append(thread)
            return
        known.start_ts, known.end_ts = min(known.start_ts, thread.start_ts), max(known.end_ts, thread.end_ts)
        known.n_records += thread.n_records
        if earlier is not markers:
            earlier.more.append(markers)
            return
        others = known.make
        known.make = lambda trace: others(trace).with_markers_of(markers(trace))

    def free_tid(self, process: Process) -> tuple[int, bool]:
        """Returns the number of a view of the process, which none of the same number has, and whether it is its
        first."""
        tid = self._view_tids.get(process.pid, CODE_SIZE_TID + process.pid)
        threads = self._threads_of(process)
        while tid in threads:
            tid += MAX_TID
        self._view_tids[process.pid] = tid + MAX_TID
        is_first = id(process) not in self._viewed
        self._viewed.add(id(process))
        return tid, is_first

    def _threads_of(self, process: Process) -> dict[int, Thread]:
        """Returns threads by their numbers, of several with one number the first."""
        found = self._threads.get(id(process))
        if found is None:
            found = self._threads[id(process)] = {thread.tid: thread for thread in reversed(process.threads)}
        return found


def add_views(code: Code, trace: TraceBuilder, processes: Processes) -> None:
    """Adds the process with its compiling threads, its counters, and a pseudo-thread of code sizes. A process can have
    several dumps: one of each compiler in it."""
    dump = code.dump
    loads = dump.loads
    rows = np.arange(code.rows.start, code.rows.stop)
    ts = trace.code["loaded_at"][rows]
    # Code can move after the last load.
    mappings = trace.code_mappings.take(slice(code.mappings.start, code.mappings.stop))
    moved = mappings["start_ts"]
    times = np.concatenate((ts, moved)) if len(rows) else np.array([trace.start_ts])
    start, end = int(times.min()), int(times.max())
    name = code.producer if code.producer != "unknown" else dump.name
    process = processes.of(code.owner.pid, code.owner.program, name, start, end)
    tids = trace.code["tid"][rows]
    by_time = np.argsort(ts, kind="stable")
    for key, mine in rows_by_key(code.loaded_by[by_time] << 32 | tids[by_time]).items():
        loader, tid = key >> 32, key & 0xFFFFFFFF
        mine = by_time[mine]
        first, last = int(ts[mine[0]]), int(ts[mine[-1]])
        is_main = tid == loader
        thread_name = name if is_main else f"JIT compiler {tid}"
        markers = _LoadMarkers(code, processes, mine)
        thread = Thread(tid, thread_name, is_main, first, last, markers, len(mine))
        of_thread = process if loader == code.pid else processes.of_number(loader, name, first, last)
        processes.add_thread(of_thread, thread, markers)
    process.counters += _counters(trace, mappings)
    if len(loads):
        process.threads.append(_code_size(code, trace, process, *processes.free_tid(process)))


class _LoadMarkers:
    """Makes the markers of one compiling thread. mine: numbers of its loads, by time; more: of other dumps."""

    def __init__(self, code: Code, processes: Processes, mine: Array) -> None:
        self._code = code
        self._processes = processes
        self._mine = mine
        self.more: list[_LoadMarkers] = []

    def __call__(self, _: TraceBuilder) -> ThreadData:
        tables = [part._table() for part in (self, *self.more)]
        table = tables[0]
        if self.more:
            table = Table(LOADED.spec, {name: np.concatenate([t[name] for t in tables]) for name in table.columns})
            table = table.take(np.argsort(table["ts"], kind="stable"))
        return ThreadData(markers={LOADED: table})

    def _table(self) -> Table:
        code, trace = self._code, self._code.trace
        rows = self._mine + code.rows.start
        funcs = trace.code["func"][rows]
        tiers = np.append(trace.tiers["name"], -1)[trace.code["tier"][rows]]
        sources = trace.funcs["source"][funcs]
        files = np.append(trace.sources["path"], -1)[sources]
        loads = [code.dump.loads[nth] for nth in self._mine.tolist()]
        return Table(
            LOADED.spec,
            {
                "ts": trace.code["loaded_at"][rows],
                "flow": self._processes.flow_of_func[funcs],
                "function": _texts(trace, trace.funcs["name"][funcs]),
                "tier": _texts(trace, tiers),
                "kind": _texts(trace, trace.funcs["kind"][funcs]),
                "size": trace.code["size"][rows],
                "address": np.array([load.address for load in loads], np.uint64),
                "file": _texts(trace, files),
                "line": trace.funcs["line"][funcs],
                "inlined": np.array([_inlined_names(load.inlines) for load in loads], object),
            },
        )


def _texts(trace: TraceBuilder, strings: Array) -> Array:
    """Returns the strings of these indices as a column; "" for none."""
    column = np.empty(len(strings), object)
    column[:] = [trace.strings[index] for index in strings.tolist()]
    return column


def _inlined_names(inlines: InlineTable | None) -> str:
    names = list(inlines.functions()) if inlines is not None else []
    more = f", and {len(names) - MAX_INLINED} more" if len(names) > MAX_INLINED else ""
    return encodable(", ".join(names[:MAX_INLINED]) + more)


# ---------------------------------------------------------------- counters


def _counters(trace: TraceBuilder, mine: Table) -> list[Counter]:
    """Returns counters of live bytes of code in these mappings: all of it, then each tier's, by their names."""
    size, tier = trace.code["size"][mine["code"]], trace.code["tier"][mine["code"]]
    counters = [_counter("JIT code", "Live machine code of the JIT compiler", "purple", mine, size)]
    names = np.append(trace.tiers["family"], -1)[tier]
    for name in sorted(distinct(names[names >= 0]).tolist(), key=trace.strings.__getitem__):
        chosen = names == name
        color = trace.strings[int(trace.tiers["color"][tier[chosen][0]])]
        doc = f"Live machine code of the tier {trace.strings[name]}"
        counters.append(_counter(f"JIT code: {trace.strings[name]}", doc, color, mine.take(chosen), size[chosen]))
    return [counter for counter in counters if len(counter.values)]


def _counter(name: str, doc: str, color: str, mappings: Table, size: Array) -> Counter:
    ts, live = live_bytes(mappings["start_ts"], mappings["end_ts"], size)
    return Counter(name, "bytes", doc, Table(COUNTER_VALUES, {"ts": ts, "value": live}), color)


# ---------------------------------------------------------------- code sizes


def _code_size(code: Code, trace: TraceBuilder, process: Process, tid: int, is_first: bool) -> Thread:
    """Returns a thread whose samples weigh bytes: function → inlined functions → lines, at the time of the load."""
    inlined = [row for row, load in zip(code.rows, code.dump.loads, strict=True) if load.inlines is not None]
    parts = (_of_lines(code, trace), by_stretch(trace, code, inlined, code.dump.name))
    return view_of(parts, process, tid, "code size" if is_first else f"code size of {code.dump.name}")


def _of_lines(code: Code, trace: TraceBuilder) -> Weights:
    """Returns the weights of the code objects that have a plain line table, or none."""
    loads, lines = code.dump.loads, code.dump.lines
    record = np.array([load.lines if load.inlines is None else -1 for load in loads], np.int64)
    starts, stops = np.append(lines.starts, 0), np.append(lines.stops, 0)
    begins, ends = starts[record], stops[record]
    size = np.array([load.size if load.inlines is None else 0 for load in loads], np.int64)
    numbers = {base: i for i, base in enumerate(dict.fromkeys(code.bases))}
    bases = np.array([numbers[base] for base in code.bases], np.int32)
    shared = by_line(begins, ends, size, bases, lines.offsets, lines.files, lines.lines)
    every = list(numbers)
    func, category, tier = (
        np.array([getattr(b, name) for b in every], np.int32)[shared.base] for name in ("func", "category", "tier")
    )
    own = trace.funcs["source"][func]
    latest = max((load.nth for load in loads), default=0)
    # Of those that a line has: names that were repaired are no files.
    source_of_file = np.full(len(lines.file_names) + 1, -1, np.int32)
    for number in distinct(shared.file[shared.file >= 0]).tolist():
        source_of_file[number] = code.texts.row(trace, lines.file_names[number], latest + 1)
    source = source_of_file[shared.file]
    path = np.append(trace.sources["path"], -1)
    # The same file, even where it was embedded again with another text later.
    source = np.where(path[source] == path[own], -1, source)
    first_frame = trace.frames.extend(func=func, category=category, tier=tier, source=source, line=shared.line)
    n = len(func)
    first_stack = trace.stacks.extend(prefix=np.full(n, -1, np.int32), frame=np.arange(first_frame, first_frame + n))
    loaded_at = trace.code["loaded_at"][code.rows.start : code.rows.stop]
    return Weights(loaded_at[shared.record], shared.key + np.int32(first_stack), shared.n_bytes)
