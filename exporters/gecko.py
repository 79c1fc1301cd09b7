"""Gecko profile, raw format, version 36: for tools that read what Firefox itself writes.

It has no weights, native symbols, addresses, inlined frames or source text: the report says what was left out. For
calls a sample stands at each change, so the stack chart is exact; a call tree counts the changes. Facts about the
format: src/types/gecko-profile.ts, src/profile-logic/process-profile.ts and docs-developer/gecko-profile-format.md of
the Firefox Profiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from converter.model import Array, Process, Table, Thread, ThreadData, Trace
from converter.output import Output
from exporters import firefox
from exporters.firefox_markers import INSTANT, INTERVAL, Schemas, markers_of
from exporters.firefox_meta import Activity, Categories, meta, threads_of
from exporters.firefox_tables import Stacks
from exporters.json_stream import JsonWriter

FRAME_SCHEMA = ("location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category",
                "subcategory")  # fmt: skip


def write(trace: Trace, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the profile, a thread at a time. progress: told of records done."""
    json = JsonWriter(out)
    schemas, categories = Schemas(), Categories(trace)
    frames = Frames(trace, categories)
    threads = threads_of(trace)
    activities: list[Activity] = []
    json.open(b"{")
    json.key("threads")
    json.open(b"[")
    for process, thread in threads or [_nobody()]:
        json.item()
        data = thread.load()
        firefox.note_losses(trace, data, len(activities))
        activities.append(Activity.of(thread, data))
        _write_thread(json, trace, process, thread, data, frames, schemas)
        del data
        progress(thread.n_records)
    json.close(b"]")
    json.member("meta", _meta(trace, activities, categories, schemas))
    json.members({"libs": [], "pausedRanges": [], "processes": []})
    json.member("sources", _table(("id", "filename", "startLine", "startColumn", "sourceMapURL"), []))
    json.close(b"}")
    _note_losses(trace, activities)


def _nobody() -> tuple[Process, Thread]:
    """The viewer refuses a profile without threads."""
    return Process(0, "empty recording", 0, 0), Thread(0, "empty recording", True, 0, 0, ThreadData)


def _meta(trace: Trace, activities: list[Activity], categories: Categories, schemas: Schemas) -> dict[str, Any]:
    processed = meta(trace, activities, categories, [])
    kept = ("version", "interval", "startTime", "profilingStartTime", "profilingEndTime", "processType", "product",
            "stackwalk", "categories", "sampleUnits")  # fmt: skip
    return {
        **{key: processed[key] for key in kept if key in processed},
        "shutdownTime": None,
        "debug": 0,
        "gcpoison": 0,
        "asyncstack": 0,
        "presymbolicated": True,
        "markerSchema": [{**_without_fields(s), "data": s["fields"]} for s in schemas.all],
    }


def _without_fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "fields"}


def _note_losses(trace: Trace, activities: list[Activity]) -> None:
    trace.report.note("weights_dropped", sum(a.calls > 0 or a.in_bytes for a in activities), where="gecko")
    frames = trace.frames.table()
    elsewhere = (frames["source"] >= 0) & (frames["line"] > 0)
    dropped = {
        "addresses and libraries of functions": len(trace.libs),
        "which threads are shown at first": len(trace.threads),
        "counters": sum(len(process.counters) for process in trace.processes),
        "the text of sources": int(np.count_nonzero(trace.sources["text"] >= 0)),
        "that frames are inlined": int(np.count_nonzero(frames["inline_depth"] > 0)),
        "lines in other files than the function's": int(np.count_nonzero(elsewhere)),
    }
    for what, count in dropped.items():
        trace.report.note("columns_dropped", count, where=what, detail=what)


def _table(schema: tuple[str, ...], rows: list[Any]) -> dict[str, Any]:
    return {"schema": {name: i for i, name in enumerate(schema)}, "data": rows}


def _open_table(json: JsonWriter, schema: tuple[str, ...]) -> None:
    json.open(b"{")
    json.member("schema", {name: i for i, name in enumerate(schema)})
    json.key("data")


# ---------------------------------------------------------------- threads


def _write_thread(
    json: JsonWriter,
    trace: Trace,
    process: Process,
    thread: Thread,
    data: ThreadData,
    frames: Frames,
    schemas: Schemas,
) -> None:
    strings, all_stacks = ThreadStrings(), Stacks(trace)
    if len(data.calls):
        ts, stack = all_stacks.of_calls(data.calls)
    else:
        ts, stack = data.samples["ts"], data.samples["stack"]
    stacks = ThreadStacks(all_stacks, np.concatenate([stack, *(table["stack"] for table in data.markers.values())]))
    head = firefox.thread_head(trace, process, thread)
    kept = ("name", "processName", "processType", "registerTime", "unregisterTime", "tid")
    json.open(b"{")
    # By this name the viewer knows the main thread of a process; it shows the process's name instead.
    name = "GeckoMain" if thread.is_main else thread.name
    json.members({key: head[key] for key in kept} | {"pid": process.pid, "name": name})
    json.key("samples")
    cpu_ns = data.samples["cpu_ns"]
    _write_samples(json, stacks.index[stack], ts - trace.start_ts, None if len(data.calls) else cpu_ns)
    json.key("markers")
    _open_table(json, ("name", "startTime", "endTime", "phase", "category", "data"))
    backtraces = SyncProfiles(trace, process, thread, stacks)
    json.rows(_marker_rows(trace, thread, data, schemas, strings, backtraces))
    json.close(b"}")
    used, frame = np.unique(stacks.frame, return_inverse=True)
    json.member("frameTable", _table(FRAME_SCHEMA, [frames.row(f, strings) for f in used.tolist()]))
    json.key("stackTable")
    _open_table(json, ("prefix", "frame"))
    prefixes = (None if p < 0 else p for p in stacks.prefix.tolist())
    json.rows(zip(prefixes, frame.tolist(), strict=True))
    json.close(b"}")
    json.member("stringTable", strings.list)
    json.close(b"}")


def _write_samples(json: JsonWriter, stack: Array, ts: Array, cpu_ns: Array | None) -> None:
    """The viewer refuses samples without an event delay."""
    if cpu_ns is not None and np.any(cpu_ns >= 0):
        _open_table(json, ("stack", "time", "eventDelay", "threadCPUDelta"))
        stacks = (None if s < 0 else s for s in stack.tolist())
        deltas = (None if c < 0 else c for c in cpu_ns.tolist())
        json.rows((s, t, 0, c) for s, t, c in zip(stacks, (ts / 1e6).tolist(), deltas, strict=True))
    else:
        _open_table(json, ("stack", "time", "eventDelay"))
        json.sample_rows(stack, ts)
    json.close(b"}")


class ThreadStrings:
    """A thread's own string table."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def index(self, text: str) -> int:
        return self._index.setdefault(text, len(self._index))

    @property
    def list(self) -> list[str]:
        return list(self._index)


class ThreadStacks:
    """The stacks that one thread uses. index: from a stack of all to the thread's own, -1 is none; prefix, frame: the
    thread's own."""

    def __init__(self, stacks: Stacks, used: Array) -> None:
        prefix, frame = stacks.prefix, stacks.frame
        is_used = np.zeros(len(prefix), bool)
        fresh = np.unique(used[used >= 0])
        while len(fresh):
            is_used[fresh] = True
            callers = prefix[fresh]
            callers = callers[callers >= 0]
            fresh = np.unique(callers[~is_used[callers]])
        rows = np.flatnonzero(is_used)
        # Index -1, none, finds the last element.
        self.index = np.full(len(prefix) + 1, -1, np.int32)
        self.index[rows] = np.arange(len(rows))
        self.prefix = self.index[prefix[rows]]
        self.frame = frame[rows]


class Frames:
    """The frames as this format has them. The location of native code is a label, with its library if that is known;
    one of a script is `name (file:line:column)`, by which the viewer knows it."""

    def __init__(self, trace: Trace, categories: Categories) -> None:
        frames = trace.frames.table()
        elsewhere = frames["source"] >= 0
        line, column = (np.where(elsewhere, 0, frames[name]) for name in ("line", "column"))
        category, subcategory = categories.of_frames(frames)
        self._trace = trace
        self._funcs: Table = trace.funcs.table()
        self._locations: dict[tuple[int, int], str] = {}
        self._columns = [c.tolist() for c in (frames["func"], frames["lib"], line, column, category, subcategory)]

    def row(self, frame: int, strings: ThreadStrings) -> list[Any]:
        func, lib, line, column, category, subcategory = (values[frame] for values in self._columns)
        location = self._locations.get((func, lib))
        if location is None:
            location = self._locations[func, lib] = self._location(func, lib)
        return [strings.index(location), False, 0, None, line or None, column or None, category, subcategory]

    def _location(self, func: int, lib: int) -> str:
        trace, funcs = self._trace, self._funcs
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

    key = "stack"

    def __init__(self, trace: Trace, process: Process, thread: Thread, stacks: ThreadStacks) -> None:
        self._start_ts, self._stacks = trace.start_ts, stacks
        self._head = {"name": "SyncProfile", "pid": process.pid, "tid": thread.tid}

    def of(self, stack: Array, ts: Array) -> Iterator[Any]:
        at_ms = ((ts - self._start_ts) / 1e6).tolist()
        for sample in zip(self._stacks.index[stack].tolist(), at_ms, strict=True):
            yield {**self._head, "samples": _table(("stack", "time"), [sample])}


def _marker_rows(
    trace: Trace,
    thread: Thread,
    data: ThreadData,
    schemas: Schemas,
    strings: ThreadStrings,
    backtraces: SyncProfiles,
) -> Iterator[list[Any]]:
    for columns in markers_of(trace, thread, data, schemas, strings, backtraces):
        name = strings.index(columns.name)
        is_interval = bool(columns.dur.any())
        phase = INTERVAL if is_interval else INSTANT
        starts = (columns.ts - trace.start_ts) / 1e6
        ends = starts + columns.dur / 1e6
        for start, end, row in zip(starts.tolist(), ends.tolist(), columns.data, strict=True):
            yield [name, start, end if is_interval else None, phase, 0, row]
