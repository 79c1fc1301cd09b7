"""Gecko profile, raw format, version 36: for tools that read what Firefox itself writes.

It has no weights, native symbols, addresses, inlined frames or source text: the report says what was left out. For
calls a sample stands at each change, so the stack chart is exact; a call tree counts the changes. Facts about the
format: src/types/gecko-profile.ts, src/profile-logic/process-profile.ts and docs-developer/gecko-profile-format.md of
the Firefox Profiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import orjson

from traceferry.exporters.firefox import profile as firefox
from traceferry.exporters.firefox.allocations import allocation_rows
from traceferry.exporters.firefox.markers import INSTANT, INTERVAL, Schemas, markers_of
from traceferry.exporters.firefox.meta import Activity, Categories, Part, meta, pids_of, product_of, write_threads
from traceferry.exporters.json.objects import MISSING, Member, Values
from traceferry.exporters.json.stream import JsonWriter
from traceferry.files.output import Output
from traceferry.model import Array, Process, Thread, ThreadData, Trace, TraceBuilder, distinct
from traceferry.timeline.paths import CallPaths

# The viewer refuses samples without an event delay.
SAMPLE_SCHEMA = ("stack", "time", "eventDelay")
FRAME_SCHEMA = ("location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category",
                "subcategory")  # fmt: skip


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the profile, a thread at a time. progress: called with the number of records done."""
    json = JsonWriter(out)
    schemas, categories, pids = Schemas(is_gecko=True), Categories(trace), pids_of(trace)
    frames, stacks = Frames(trace, categories), ThreadStacks(trace)
    n_weighed = 0

    def write_thread(process: Process, part: Part) -> None:
        nonlocal n_weighed
        n_weighed += _has_weights(trace, part)
        pid = pids.get(id(process), "0")
        _write_thread(json, trace, process, pid, part.thread, part.data, frames, stacks, schemas, categories)

    with json.object():
        with json.array("threads"):
            written = write_threads(trace, progress, write_thread)
            activities = [activity for _, activity in written]
            if not activities:
                # The viewer refuses a profile without a thread.
                thread = Thread(0, "empty recording", True, 0, 0, lambda _: ThreadData())
                write_thread(Process(0, "empty recording", 0, 0), Part(thread, ThreadData(), False, {}))
        json.member("meta", _meta(trace, activities, categories, schemas, product_of(written)))
        json.members({"libs": [], "pausedRanges": [], "processes": []})
        json.member("sources", _table(("id", "filename", "startLine", "startColumn", "sourceMapURL"), []))
    _note_losses(trace, n_weighed)


def _meta(
    trace: Trace, activities: list[Activity], categories: Categories, schemas: Schemas, product: str
) -> dict[str, Any]:
    processed = meta(trace, activities, categories, [], product)
    kept = ("version", "interval", "startTime", "profilingStartTime", "profilingEndTime", "processType", "product",
            "stackwalk", "categories", "sampleUnits")  # fmt: skip
    return {
        **{key: processed[key] for key in kept if key in processed},
        "shutdownTime": None,
        "debug": 0,
        "gcpoison": 0,
        "asyncstack": 0,
        "presymbolicated": True,
        # Fields are the last member of a schema.
        "markerSchema": [{"data" if key == "fields" else key: schema[key] for key in schema} for schema in schemas.all],
    }


def _has_weights(trace: Trace, part: Part) -> bool:
    """Returns whether the shares of functions in a thread are others if each of its samples, or changes, counts one."""
    if len(part.data.calls):
        return True
    weight = part.data.samples["weight"]
    if part.thread.sample_unit:
        return len(weight) > 0 and bool(np.any(weight != weight[0]))
    return bool(firefox.sample_weights(trace, part.data))


def _note_losses(trace: Trace, n_weighed: int) -> None:
    """n_weighed: threads that have weights."""
    trace.report.note("weights_dropped", n_weighed, where="gecko")
    frames = trace.frames
    elsewhere = (frames["source"] >= 0) & (frames["line"] > 0)
    dropped = {
        "addresses and libraries of functions": len(trace.libs),
        "which threads are shown at first": len(trace.threads),
        "counters": sum(len(process.counters) for process in trace.processes),
        "the text of sources": int(np.count_nonzero(trace.sources["text"] >= 0)),
        "that frames are inlined": int(np.count_nonzero(frames["inline_depth"] > 0)),
        "lines in other files than the function's": int(np.count_nonzero(elsewhere)),
    }
    trace.report.note("table_not_carried", len(trace.coverage), where="coverage", detail="coverage")
    has_threads = any(process.threads or process.heap_snapshots for process in trace.processes)
    trace.report.note("output_empty", int(not has_threads), where="gecko", detail="Gecko profile")
    for what, count in dropped.items():
        trace.report.note("columns_dropped", count, where=what, detail=what)


def _table(schema: tuple[str, ...], rows: list[Any]) -> dict[str, Any]:
    return {"schema": {name: i for i, name in enumerate(schema)}, "data": rows}


@contextmanager
def _streamed_table(json: JsonWriter, name: str, schema: tuple[str, ...]) -> Iterator[None]:
    """Writes a table, of which the caller writes the `data`."""
    with json.object(name):
        json.member("schema", {name: i for i, name in enumerate(schema)})
        yield


# ---------------------------------------------------------------- threads


def _write_thread(
    json: JsonWriter, trace: Trace, process: Process, pid: str, thread: Thread, data: ThreadData, frames: Frames,
    stacks: ThreadStacks, schemas: Schemas, categories: Categories,
) -> None:  # fmt: skip
    strings = ThreadStrings()
    stacks.begin(data)
    head = firefox.thread_head(trace, process, thread)
    kept = ("name", "processName", "processType", "registerTime", "unregisterTime", "tid")
    # By this name the viewer knows the main thread of a process; it shows the process's name instead.
    name = "GeckoMain" if thread.is_main else thread.name
    number = process.pid if pid == str(process.pid) else pid
    with json.object():
        json.members({key: head[key] for key in kept} | {"pid": number, "name": name})
        if len(data.calls):
            with _streamed_table(json, "samples", SAMPLE_SCHEMA):
                samples = stacks.paths.samples(data.calls)
                json.sample_rows("data", ((stack, ts - trace.start_ts) for ts, stack in samples))
        else:
            ts = data.samples["ts"] - trace.start_ts
            _write_samples(json, stacks.index[data.samples["stack"]], ts, data.samples["cpu_ns"])
        with _streamed_table(json, "markers", ("name", "startTime", "endTime", "phase", "category", "data")):
            backtraces = SyncProfiles(trace, process, thread, stacks)
            markers = _marker_rows(trace, thread, data, schemas, strings, backtraces, categories)
            json.rows("data", chain(markers, allocation_rows(trace, thread, data.allocations, strings, backtraces)))
        used, frame = np.unique(stacks.paths.key, return_inverse=True)
        json.member("frameTable", _table(FRAME_SCHEMA, frames.rows(used, strings)))
        with _streamed_table(json, "stackTable", ("prefix", "frame")):
            prefixes = (None if p < 0 else p for p in stacks.paths.parent.tolist())
            json.rows("data", zip(prefixes, frame.tolist(), strict=True))
        json.member("stringTable", list(strings))


def _write_samples(json: JsonWriter, stack: Array, ts: Array, cpu_ns: Array) -> None:
    if np.any(cpu_ns >= 0):
        with _streamed_table(json, "samples", (*SAMPLE_SCHEMA, "threadCPUDelta")):
            stacks = (None if s < 0 else s for s in stack.tolist())
            deltas = (None if c < 0 else c for c in cpu_ns.tolist())
            json.rows("data", ((s, t, 0, c) for s, t, c in zip(stacks, (ts / 1e6).tolist(), deltas, strict=True)))
    else:
        with _streamed_table(json, "samples", SAMPLE_SCHEMA):
            json.sample_rows("data", [(stack, ts)])


class ThreadStrings(dict[str, int]):
    """A thread's own string table: the index of each."""

    def intern(self, text: str) -> int:
        return self.setdefault(text, len(self))


class ThreadStacks:
    """The stacks that one thread uses, of one thread after the other. index: from a stack of the trace to the thread's
    own, -1 is none; paths: the thread's own, to which the paths of its calls are added."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._rows = np.zeros(0, np.int64)
        # Index -1, none, finds the last element.
        self.index = np.full(1, -1, np.int32)
        self.paths = CallPaths()

    def begin(self, data: ThreadData) -> None:
        """Finds those of a thread; what it costs does not depend on those of the others."""
        used = _used_stacks(data)
        prefix, frame = self._trace.stacks["prefix"], self._trace.stacks["frame"]
        self.index[self._rows] = -1
        if len(self.index) <= len(prefix):
            self.index = np.full(2 * len(prefix) + 1, -1, np.int32)
        fresh, found = used, [used]
        while len(fresh):
            self.index[fresh] = 0
            callers = prefix[fresh]
            callers = callers[callers >= 0]
            fresh = distinct(callers[self.index[callers] < 0])
            found.append(fresh)
        self._rows = np.sort(np.concatenate(found))
        self.index[self._rows] = np.arange(len(self._rows))
        self.paths = CallPaths()
        self.paths.append(self.index[prefix[self._rows]], frame[self._rows])


def _used_stacks(data: ThreadData) -> Array:
    """Returns the stacks of all tables but the calls, each once. Going through the allocations may add to the
    trace's."""
    columns = [data.samples["stack"], *(table["stack"] for table in data.markers.values())]
    columns += [distinct(piece["stack"]) for piece in data.allocations.pieces()]
    used = distinct(np.concatenate(columns))
    return used[used >= 0]


class Frames:
    """The frames as this format has them. The location of native code is a label, with its library if that is known;
    one of a script is `name (file:line:column)`, by which the viewer knows it."""

    def __init__(self, trace: Trace, categories: Categories) -> None:
        self._trace, self._categories = trace, categories
        self._locations: dict[tuple[int, int], str] = {}

    def rows(self, used: Array, strings: ThreadStrings) -> list[list[Any]]:
        """Returns the rows of these frames. Only when a thread is written they are all there."""
        self._categories.update()
        frames = self._trace.frames.take(used)
        elsewhere = frames["source"] >= 0
        line, column = (np.where(elsewhere, 0, frames[name]) for name in ("line", "column"))
        category, subcategory = self._categories.of_frames(frames)
        columns = (frames["func"], frames["lib"], line, column, category, subcategory)
        return [self._row(strings, *values) for values in zip(*(c.tolist() for c in columns), strict=True)]

    def _row(
        self, strings: ThreadStrings, func: int, lib: int, line: int, column: int, category: int, subcategory: int
    ) -> list[Any]:
        location = self._locations.get((func, lib))
        if location is None:
            location = self._locations[func, lib] = self._location(func, lib)
        return [strings.intern(location), False, 0, None, line or None, column or None, category, subcategory]

    def _location(self, func: int, lib: int) -> str:
        trace, funcs = self._trace, self._trace.funcs
        name = trace.func_name(func)
        source = int(funcs["source"][func])
        if funcs["is_js"][func] and source >= 0:
            path = trace.strings[int(trace.sources["path"][source])]
            column = int(funcs["column"][func])
            place = f"{path}:{int(funcs['line'][func])}" + (f":{column}" if column else "")
            return f"{name} ({place})"
        return f"{name} (in {trace.strings[int(trace.libs['name'][lib])]})" if lib >= 0 else name


# ---------------------------------------------------------------- markers


class SyncProfiles:
    """The stacks of a thread's markers: each is the only sample of a profile inside its marker."""

    def __init__(self, trace: Trace, process: Process, thread: Thread, stacks: ThreadStacks) -> None:
        self._start_ts, self._stacks = trace.start_ts, stacks
        profile = {"name": "SyncProfile", "pid": process.pid, "tid": thread.tid}
        samples = orjson.dumps(_table(("stack", "time"), [])).removesuffix(b"[]}")
        # A text, not objects: every allocation has one.
        self._template = orjson.dumps(profile)[:-1] + b',"samples":' + samples + b"[[%d,%r]]}}"

    def of(self, stack: Array, ts: Array) -> Member:
        at_ms = ((ts - self._start_ts) / 1e6).tolist()
        samples = zip(stack.tolist(), zip(self._stacks.index[stack].tolist(), at_ms, strict=True), strict=True)
        template = self._template
        profiles = (orjson.Fragment(template % rest) if one >= 0 else MISSING for one, rest in samples)
        return Values("stack", profiles)


def _marker_rows(
    trace: Trace, thread: Thread, data: ThreadData, schemas: Schemas, strings: ThreadStrings, backtraces: SyncProfiles,
    categories: Categories,
) -> Iterator[list[Any]]:  # fmt: skip
    for columns in markers_of(trace, thread, data, schemas, strings, backtraces):
        names, category = columns.name_rows(strings).tolist(), categories.of_markers(*columns.category)
        is_interval = columns.is_interval
        phase = INTERVAL if is_interval else INSTANT
        starts = (columns.ts - trace.start_ts) / 1e6
        ends = starts + columns.dur / 1e6
        for name, start, end, row in zip(names, starts.tolist(), ends.tolist(), columns.data.rows(), strict=True):
            yield [name, start, end if is_interval else None, phase, category, row]
