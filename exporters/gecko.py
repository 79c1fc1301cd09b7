"""Gecko profile, raw format, version 36: for tools that read what Firefox itself writes.

It has no weights, native symbols, addresses, inlined frames or source text: the report says what was left out. A
sample stands at each change, so the stack chart is exact; a call tree counts the changes. Facts about the format:
src/types/gecko-profile.ts and docs-developer/gecko-profile-format.md of the Firefox Profiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from converter.model import Process, Thread, ThreadData, Trace
from converter.output import Output
from converter.stacks import CallPaths
from exporters import firefox
from exporters.firefox_markers import INSTANT, INTERVAL, markers_of
from exporters.json_stream import JsonWriter

FRAME_SCHEMA = ("location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category",
                "subcategory")  # fmt: skip


def write(trace: Trace, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the profile, a thread at a time. progress: told of records done."""
    json = JsonWriter(out)
    schemas: dict[str, dict[str, Any]] = {}
    json.open(b"{")
    json.key("threads")
    json.open(b"[")
    for index, (process, thread) in enumerate(trace.threads):
        json.item()
        _write_thread(json, trace, process, thread, thread.load(), schemas, index)
        progress(thread.n_records)
    if not trace.processes:
        nobody = Process(0, "empty recording", 0, 0)
        json.item()
        _write_thread(
            json, trace, nobody, Thread(0, "empty recording", True, 0, 0, ThreadData), ThreadData(), schemas, 0
        )
    json.close(b"]")
    json.member("meta", _meta(trace, list(schemas.values())))
    json.members({"libs": [], "pausedRanges": [], "processes": []})
    json.member("sources", _table(("id", "filename", "startLine", "startColumn", "sourceMapURL"), []))
    json.close(b"}")
    _note_losses(trace)


def _meta(trace: Trace, schemas: list[dict[str, Any]]) -> dict[str, Any]:
    processed = firefox.meta(trace, [])
    kept = ("version", "interval", "startTime", "profilingStartTime", "profilingEndTime", "processType", "product",
            "stackwalk", "categories")  # fmt: skip
    return {
        **{key: processed[key] for key in kept},
        "shutdownTime": None,
        "debug": 0,
        "gcpoison": 0,
        "asyncstack": 0,
        "presymbolicated": True,
        "markerSchema": [{**_without_fields(s), "data": s["fields"]} for s in schemas],
    }


def _without_fields(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "fields"}


def _note_losses(trace: Trace) -> None:
    trace.report.note("weights_dropped", sum(1 for _ in trace.threads), where="gecko")
    dropped = {
        "addresses and libraries of functions": len(trace.libs),
        "which threads are shown at first": len(trace.threads),
        "counters": sum(len(process.counters) for process in trace.processes),
        "the text of sources": int(np.count_nonzero(trace.sources["text"] >= 0)),
        "inlined frames": int(np.count_nonzero(trace.frames["inline_depth"] > 0)),
    }
    for what, count in dropped.items():
        trace.report.note("columns_dropped", count, where=what, detail=what)


def _table(schema: tuple[str, ...], rows: list[Any]) -> dict[str, Any]:
    return {"schema": {name: i for i, name in enumerate(schema)}, "data": rows}


def _write_thread(
    json: JsonWriter,
    trace: Trace,
    process: Process,
    thread: Thread,
    data: ThreadData,
    schemas: dict[str, dict[str, Any]],
    index: int,
) -> None:
    if len(data.allocations):
        trace.report.note("table_not_carried", len(data.allocations), where=f"{index}", detail="allocations")
    strings = ThreadStrings()
    paths = CallPaths()
    if len(data.samples) and not len(data.calls):
        paths.add_table(trace.stacks["prefix"], trace.stacks["frame"])
        ts, stack = data.samples["ts"], data.samples["stack"]
    else:
        ts, stack = paths.samples(data.calls)
    head = firefox.thread_head(trace, process, thread)
    kept = ("name", "processName", "processType", "registerTime", "unregisterTime", "tid")
    json.open(b"{")
    # By this name the viewer knows the main thread of a process; it shows the process's name instead.
    name = "GeckoMain" if thread.is_main else thread.name
    json.members({key: head[key] for key in kept} | {"pid": process.pid, "name": name})
    json.key("samples")
    # The viewer refuses samples without an event delay.
    _open_table(json, ("stack", "time", "eventDelay"))
    json.sample_rows(stack, ts - trace.start_ts)
    json.close(b"}")
    json.key("markers")
    _open_table(json, ("name", "startTime", "endTime", "phase", "category", "data"))
    json.rows(_marker_rows(trace, data, schemas, strings))
    json.close(b"}")
    used, frame = np.unique(paths.frame, return_inverse=True)
    json.member("frameTable", _table(FRAME_SCHEMA, [_frame_row(trace, int(f), strings) for f in used]))
    json.key("stackTable")
    _open_table(json, ("prefix", "frame"))
    prefixes = (None if p < 0 else p for p in paths.prefix.tolist())
    json.rows(zip(prefixes, frame.tolist(), strict=True))
    json.close(b"}")
    json.member("stringTable", strings.list)
    json.close(b"}")


def _open_table(json: JsonWriter, schema: tuple[str, ...]) -> None:
    json.open(b"{")
    json.member("schema", {name: i for i, name in enumerate(schema)})
    json.key("data")


class ThreadStrings:
    """A thread's own string table."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}

    def index(self, text: str) -> int:
        return self._index.setdefault(text, len(self._index))

    @property
    def list(self) -> list[str]:
        return list(self._index)


def _frame_row(trace: Trace, frame: int, strings: ThreadStrings) -> list[Any]:
    """The location of native code is a bare label; one of scripts is `name (file:line)`."""
    frames, funcs = trace.frames.table(), trace.funcs.table()
    func = int(frames["func"][frame])
    name = trace.func_name(func)
    source = int(funcs["source"][func])
    if funcs["is_js"][func] and source >= 0:
        name += f" ({trace.strings[int(trace.sources['path'][source])]}:{int(funcs['line'][func])})"
    elif int(frames["lib"][frame]) >= 0:
        name += f" (in {trace.strings[int(trace.libs['name'][frames['lib'][frame]])]})"
    line = int(frames["line"][frame]) or None
    column = int(frames["column"][frame]) or None
    return [strings.index(name), False, 0, None, line, column, int(frames["category"][frame]) + 1, 0]


def _marker_rows(
    trace: Trace,
    data: ThreadData,
    schemas: dict[str, dict[str, Any]],
    strings: ThreadStrings,
) -> Iterator[list[Any]]:
    for columns in markers_of(trace, data, schemas):
        name = strings.index(columns.name)
        is_interval = bool(columns.dur.any())
        starts = (columns.ts - trace.start_ts) / 1e6
        ends = starts + columns.dur / 1e6
        for start, end, row in zip(starts.tolist(), ends.tolist(), columns.data, strict=True):
            phase = INTERVAL if is_interval else INSTANT
            yield [name, start, end if is_interval else None, phase, 0, row]
