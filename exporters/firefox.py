"""Firefox Profiler, processed profile format, version 70.

Version 70 is the lowest that has what JIT code needs, and every later front-end upgrades it. Facts about the format:
src/types/profile.ts and docs-developer/CHANGELOG-formats.md of the Firefox Profiler.

Calls become `tracing-ms` samples: one at each change, its weight the time until the next. The stack chart draws a
sample until the next one, so a gap begins with a null sample and a thread ends with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from converter.model import Array, Process, Table, Thread, ThreadData, Trace
from converter.output import Output
from converter.stacks import CallPaths
from exporters.firefox_markers import INSTANT, INTERVAL, MarkerColumns, markers_of
from exporters.json_stream import JsonWriter

GECKO_VERSION = 36
PROCESSED_VERSION = 70
# Frame addresses go through an Int32Array.
MAX_ADDRESS = 2**31 - 1
INTERVAL_MS = 0.001
GRAPH_PIXELS = 1000
CARRIED = {"calls", "arguments", "samples", "states"}


def write(trace: Trace, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the profile: threads one after the other, the shared tables last. progress: told of records done."""
    json = JsonWriter(out)
    strings = StringArray(trace)
    paths = CallPaths()
    paths.add_table(trace.stacks["prefix"], trace.stacks["frame"])
    schemas: dict[str, dict[str, Any]] = {}
    json.open(b"{")
    json.key("threads")
    json.open(b"[")
    for index, (process, thread) in enumerate(trace.threads):
        json.item()
        data = thread.load()
        progress(thread.n_records // 2)
        _write_thread(json, trace, process, thread, data, paths, strings, schemas, index)
        # Peak memory is one thread: this one goes before the next comes.
        del data
        progress(thread.n_records - thread.n_records // 2)
    if not trace.processes:
        json.item()
        _write_empty_thread(json)
    json.close(b"]")
    json.key("meta")
    json.value(meta(trace, list(schemas.values())))
    json.member("libs", _libs(trace))
    json.member("counters", [_counter(trace, p, c) for p in trace.processes for c in p.counters])
    _write_shared(json, trace, paths, strings)
    json.close(b"}")


class StringArray:
    """shared.stringArray: the trace's strings keep their indices, others follow."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def index(self, text: str) -> int:
        return self._trace.strings.intern(text)

    def __iter__(self) -> Iterator[str]:
        return iter(self._trace.strings)


# ---------------------------------------------------------------- meta


def meta(trace: Trace, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    duration = trace.end_ts - trace.start_ts
    values: dict[str, Any] = {
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": PROCESSED_VERSION,
        "interval": INTERVAL_MS,
        "startTime": (trace.unix_start_ns or 0) / 1e6,
        "profilingStartTime": 0,
        # Samples at the end itself would be outside, and what runs until the end would not be drawn.
        "profilingEndTime": duration / 1e6 + INTERVAL_MS,
        "processType": 0,
        "product": ", ".join(dict.fromkeys(p.name for p in trace.processes)) or "traceferry",
        "importedFrom": ", ".join(dict.fromkeys(f"{i.producer} {i.version}" for i in trace.inputs)),
        "stackwalk": 0,
        "symbolicated": True,
        "symbolicationNotSupported": True,
        "sourceCodeIsNotOnSearchfox": True,
        "usesOnlyOneStackType": True,
        "keepProfileThreadOrder": True,
        "initialVisibleThreads": list(range(max(len(trace.threads), 1))),
        "categories": categories(trace),
        "markerSchema": schemas,
        "extra": [{"label": "Recording", "entries": _entries(trace)}],
    }
    if trace.clock is not None and trace.clock.kind == "monotonic":
        values["startTimeAsClockMonotonicNanosecondsSinceBoot"] = trace.start_ts
    return values


def categories(trace: Trace) -> list[dict[str, Any]]:
    """Index 0 is "Other", which must be grey; the trace's categories follow."""
    table = trace.categories.table()
    named = [
        {"name": trace.strings[int(n)], "color": trace.strings[int(c)], "subcategories": ["Other"]}
        for n, c in zip(table["name"], table["color"], strict=True)
    ]
    return [{"name": "Other", "color": "grey", "subcategories": ["Other"]}, *named]


def _entries(trace: Trace) -> list[dict[str, str]]:
    clock = trace.clock.kind if trace.clock else "unknown"
    entries = {"inputs": ", ".join(i.path for i in trace.inputs), "clock": clock, **trace.attributes}
    return [{"label": label, "format": "string", "value": value} for label, value in entries.items() if value]


def _libs(trace: Trace) -> list[dict[str, Any]]:
    table = trace.libs.table()
    libs = []
    for name, debug_id, code_id, arch in zip(*(table[c] for c in ("name", "debug_id", "code_id", "arch")), strict=True):
        file = trace.strings[int(name)]
        libs.append(
            {
                "arch": trace.strings[int(arch)],
                "name": file,
                "path": file,
                "debugName": file,
                "debugPath": file,
                "breakpadId": trace.strings[int(debug_id)],
                "codeId": trace.strings[int(code_id)] or None,
            }
        )
    return libs


def _counter(trace: Trace, process: Process, counter: Any) -> dict[str, Any]:
    values = counter.values
    main = next(i for i, (p, _) in enumerate(trace.threads) if p.pid == process.pid)
    return {
        "name": counter.name,
        "category": "Other",
        "description": counter.doc,
        "pid": str(process.pid),
        "mainThreadIndex": main,
        "samples": {
            "time": ((values["ts"] - trace.start_ts) / 1e6).tolist(),
            "count": np.diff(values["value"], prepend=0).tolist(),
            "length": len(values),
        },
        "display": {
            "graphType": "line-accumulated",
            "unit": counter.unit,
            "color": "blue",
            "markerSchemaLocation": None,
            "sortWeight": 0,
            "label": counter.name,
            "tooltipRows": [
                {"type": "value", "source": "accumulated", "format": {"unit": "number"}, "label": counter.name}
            ],
        },
    }


# ---------------------------------------------------------------- threads


def _write_thread(
    json: JsonWriter,
    trace: Trace,
    process: Process,
    thread: Thread,
    data: ThreadData,
    paths: CallPaths,
    strings: StringArray,
    schemas: dict[str, dict[str, Any]],
    index: int,
) -> None:
    for table in data.tables():
        if len(table) and table.spec.name not in CARRIED and not _is_marker(data, table):
            trace.report.note("table_not_carried", len(table), where=f"{index}", detail=table.spec.name)
    json.open(b"{")
    json.members(thread_head(trace, process, thread))
    json.key("samples")
    json.open(b"{")
    if len(data.calls) or not len(data.samples):
        _write_calls(json, trace, paths.samples(data.calls))
    else:
        _write_samples(json, trace, data.samples)
    json.close(b"}")
    json.key("markers")
    _write_markers(json, trace, markers_of(trace, data, schemas), strings)
    json.close(b"}")


def _is_marker(data: ThreadData, table: Table) -> bool:
    return any(table is markers for markers in data.markers.values())


def thread_head(trace: Trace, process: Process, thread: Thread) -> dict[str, Any]:
    def ms(ts: int) -> float:
        return (ts - trace.start_ts) / 1e6

    return {
        "name": thread.name,
        "isMainThread": thread.is_main,
        "processName": process.name,
        "processType": "default",
        "pid": str(process.pid),
        "tid": thread.tid,
        "processStartupTime": ms(process.start_ts),
        "processShutdownTime": None,
        "registerTime": ms(thread.start_ts),
        "unregisterTime": None,
        "pausedRanges": [],
        "showMarkersInTimeline": True,
    }


def _write_empty_thread(json: JsonWriter) -> None:
    """The viewer refuses a profile without threads."""
    nobody = Process(0, "empty recording", 0, 0)
    json.open(b"{")
    json.members(thread_head(Trace(), nobody, Thread(0, "empty recording", True, 0, 0, ThreadData)))
    json.member("samples", {"stack": [], "time": [], "weight": None, "weightType": "samples", "length": 0})
    json.member(
        "markers",
        {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0},
    )
    json.close(b"}")


def _write_calls(json: JsonWriter, trace: Trace, samples: tuple[Array, Array]) -> None:
    ts, stack = samples
    weight = np.diff(ts, append=ts[-1:])
    weight[stack < 0] = 0
    # The track graph paints a sample as far as the middle between it and the next. What lasts long enough to be seen
    # there is said again where it ends, with no weight.
    seen = np.flatnonzero(np.diff(ts) > (trace.end_ts - trace.start_ts) // GRAPH_PIXELS)
    if len(seen):
        ts, stack, weight = (
            np.insert(ts, seen + 1, ts[seen + 1]),
            np.insert(stack, seen + 1, stack[seen]),
            np.insert(weight, seen + 1, 0),
        )
    json.ints("stack", stack)
    json.millis("time", ts - trace.start_ts)
    json.millis("weight", weight)
    json.members({"weightType": "tracing-ms", "length": len(ts)})


def _write_samples(json: JsonWriter, trace: Trace, samples: Table) -> None:
    json.ints("stack", samples["stack"])
    json.millis("time", samples["ts"] - trace.start_ts)
    json.plain_ints("weight", samples["weight"])
    json.members({"weightType": "samples", "length": len(samples)})


# ---------------------------------------------------------------- markers


def _write_markers(json: JsonWriter, trace: Trace, columns: list[MarkerColumns], strings: StringArray) -> None:
    ts = np.concatenate([c.ts for c in columns] or [np.zeros(0, np.int64)]) - trace.start_ts
    dur = np.concatenate([c.dur for c in columns] or [np.zeros(0, np.int64)])
    names = np.repeat(
        np.array([strings.index(c.name) for c in columns], np.int32), np.array([len(c.ts) for c in columns], np.int64)
    )
    is_interval = np.repeat(
        np.array([bool(c.dur.any()) for c in columns]), np.array([len(c.ts) for c in columns], np.int64)
    ) if columns else np.zeros(0, bool)  # fmt: skip
    json.open(b"{")
    json.key("data")
    json.rows(row for c in columns for row in c.data)
    json.ints("name", names)
    json.millis("startTime", ts)
    json.millis("endTime", np.where(is_interval, ts + dur, -1))
    json.ints("phase", np.where(is_interval, INTERVAL, INSTANT))
    json.ints("category", np.zeros(len(ts), np.int32))
    json.member("length", len(ts))
    json.close(b"}")


# ---------------------------------------------------------------- shared tables


def _write_shared(json: JsonWriter, trace: Trace, paths: CallPaths, strings: StringArray) -> None:
    frames, funcs = trace.frames.table(), trace.funcs.table()
    resources = [trace.strings[int(name)] for name in trace.libs["name"]]
    has_address = (frames["lib"] >= 0) & (frames["address"] >= 0) & (frames["address"] <= MAX_ADDRESS)
    symbols, symbol_of_frame = _native_symbols(trace, has_address)
    n = len(frames)

    json.key("shared")
    json.open(b"{")
    json.key("stackTable")
    json.open(b"{")
    json.ints("frame", paths.frame)
    json.ints("prefixOffset", np.where(paths.prefix < 0, 0, np.arange(paths.n) - paths.prefix))
    json.member("length", paths.n)
    json.close(b"}")

    json.key("frameTable")
    json.open(b"{")
    json.plain_ints("address", np.where(has_address, frames["address"], -1))
    json.plain_ints("lib", np.where(has_address, frames["lib"], -1))
    json.ints("inlineDepth", frames["inline_depth"])
    json.ints("category", frames["category"] + 1)
    json.ints("subcategory", np.zeros(n, np.int32))
    json.ints("func", frames["func"])
    json.ints("nativeSymbol", symbol_of_frame)
    json.ints("innerWindowID", np.zeros(n, np.int32))
    json.ints("line", _null_if_zero(frames["line"]))
    json.ints("column", _null_if_zero(frames["column"]))
    json.ints("originalLocation", np.full(n, -1, np.int32))
    json.member("length", n)
    json.close(b"}")

    n = len(funcs)
    json.key("funcTable")
    json.open(b"{")
    json.ints("name", funcs["name"])
    json.member("isJS", funcs["is_js"].tolist())
    json.member("relevantForJS", [False] * n)
    json.plain_ints("resource", _resource_of_func(frames, n))
    json.ints("source", funcs["source"])
    json.ints("lineNumber", _null_if_zero(funcs["line"]))
    json.ints("columnNumber", _null_if_zero(funcs["column"]))
    json.ints("originalLocation", np.full(n, -1, np.int32))
    json.member("length", n)
    json.close(b"}")

    json.member(
        "resourceTable",
        {
            "name": [strings.index(name) for name in resources],
            "host": [None] * len(resources),
            "type": [1] * len(resources),
            "length": len(resources),
        },
    )
    json.member("nativeSymbols", symbols)
    json.member("sources", _sources(trace))
    json.member("sourceLocationTable", {"source": [], "line": [], "column": [], "length": 0})
    json.key("stringArray")
    json.rows(strings)
    json.close(b"}")


def _null_if_zero(values: Array) -> Array:
    return np.where(values == 0, -1, values)


def _resource_of_func(frames: Table, n_funcs: int) -> Array:
    """The library of the first frame that has one: a function knows no library of its own."""
    resource = np.full(n_funcs, -1, np.int32)
    with_lib = np.flatnonzero(frames["lib"] >= 0)[::-1]
    resource[frames["func"][with_lib]] = frames["lib"][with_lib]
    return resource


def _native_symbols(trace: Trace, has_address: Array) -> tuple[dict[str, Any], Array]:
    """One native symbol for each frame with an address: XRay and JIT frames stand for whole functions."""
    frames = trace.frames.table()
    rows = np.flatnonzero(has_address)
    of_frame = np.full(len(frames), -1, np.int32)
    of_frame[rows] = np.arange(len(rows))
    symbols = {
        "libIndex": frames["lib"][rows].tolist(),
        "address": frames["address"][rows].tolist(),
        "name": trace.funcs["name"][frames["func"][rows]].tolist(),
        "functionSize": [None] * len(rows),
        "length": len(rows),
    }
    return symbols, of_frame


def _sources(trace: Trace) -> dict[str, Any]:
    table = trace.sources.table()
    n = len(table)
    return {
        "id": [None] * n,
        "filename": table["path"].tolist(),
        "startLine": [1] * n,
        "startColumn": [1] * n,
        "sourceMapURL": [None] * n,
        "content": [trace.strings[int(t)] if t >= 0 else None for t in table["text"]],
        "length": n,
    }
