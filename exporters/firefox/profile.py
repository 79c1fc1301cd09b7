"""Firefox Profiler, processed profile format, version 70.

Version 70 is the lowest that has what JIT code needs, and every later front-end upgrades it. Facts about the format:
src/types/profile.ts and docs-developer/CHANGELOG-formats.md of the Firefox Profiler.

Calls become `tracing-ms` samples: one at each change, its weight the time until the next. There are millions of them,
so their times are differences, which are short and often the same. The stack chart draws a sample until the next one,
so a gap begins with a null sample and a thread ends with one. Samples stay samples; only those of a thread of sizes
have weights. A thread that has both becomes two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from traceferry.exporters.firefox.allocations import write_allocations
from traceferry.exporters.firefox.markers import INSTANT, INTERVAL, MarkerColumns, Schemas, markers_of
from traceferry.exporters.firefox.meta import (
    MARK,
    Categories,
    Part,
    counters,
    libs,
    meta,
    pids_of,
    product_of,
    write_threads,
)
from traceferry.exporters.firefox.tables import Stacks, write_shared
from traceferry.exporters.json._numbers import ABSENT, MILLIS
from traceferry.exporters.json.objects import Inner, Member, Numbers
from traceferry.exporters.json.stream import JsonWriter
from traceferry.files.output import Output
from traceferry.model import Array, Process, Table, Thread, ThreadData, Trace, TraceBuilder
from traceferry.timeline.paths import SampleTimes

GRAPH_PIXELS = 1000
NO_MARKERS = {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0}


def write(trace: TraceBuilder, out: Output, progress: Callable[[int], None]) -> None:
    """Streams the profile. progress: called with the number of records done."""
    write_profile(trace, JsonWriter(out), progress, out.jobs)


def write_profile(trace: TraceBuilder, json: JsonWriter, progress: Callable[[int], None], jobs: int = 1) -> None:
    """Writes the profile's content: threads one after the other, the shared tables last. jobs: threads that may work at
    it."""
    shared = Shared(trace, Stacks(trace, jobs), Schemas(), Categories(trace), pids_of(trace))
    with json.object():
        with json.array("threads"):
            written = write_threads(trace, progress, partial(_write_thread, json, shared))
            if not written:
                _write_empty_thread(json)
        # Only now: while threads were loaded and gone through, functions may have been added.
        shared.categories.update()
        activities = [activity for _, activity in written]
        json.member("meta", meta(trace, activities, shared.categories, shared.schemas.all, product_of(written)))
        json.member("libs", libs(trace))
        json.member("counters", counters(trace, [process for process, _ in written], shared.pids))
        write_shared(json, trace, shared.stacks, shared.categories)
    trace.report.note("table_not_carried", len(trace.coverage), where="coverage", detail="coverage")


# ---------------------------------------------------------------- threads


class Shared(NamedTuple):
    """The tables that all threads of a profile refer to. pids: as `pids_of` has them."""

    trace: Trace
    stacks: Stacks
    schemas: Schemas
    categories: Categories
    pids: dict[int, str]


def _write_thread(json: JsonWriter, shared: Shared, process: Process, part: Part) -> None:
    trace, stacks, thread, data = shared.trace, shared.stacks, part.thread, part.data
    with json.object():
        pid = shared.pids[id(process)]
        is_view = thread.sample_unit == "bytes"
        mark = part.mark | ({"pid": pid, "process": process.name, "tid": thread.tid} if is_view else {})
        json.members(thread_head(trace, process, thread) | {"pid": pid} | _view_head(process, thread, pid))
        if mark:
            json.member(MARK, mark)
        with json.object("samples"):
            if len(data.calls) or not (len(data.samples) or trace.sampling):
                _write_calls(json, trace, data.calls, stacks)
            else:
                _write_samples(json, trace, data.samples, stacks, thread.sample_unit or sample_weights(trace, data))
        write_allocations(json, trace, thread, data.allocations, stacks)
        causes = Causes(trace.start_ts, thread.tid, stacks)
        _write_markers(json, shared, markers_of(trace, thread, data, shared.schemas, trace.strings, causes))


def thread_head(trace: Trace, process: Process, thread: Thread) -> dict[str, Any]:
    def ms(ts: int) -> float:
        return (ts - trace.start_ts) / 1e6

    def ended(ts: int) -> float | None:
        return ms(ts) if ts < trace.end_ts else None

    return {
        "name": thread.name,
        "isMainThread": thread.is_main,
        "processName": f"{process.name} ({process.cgroup})" if process.cgroup else process.name,
        "processType": "default",
        "pid": str(process.pid),
        "tid": thread.tid,
        "processStartupTime": ms(process.start_ts),
        "processShutdownTime": ended(process.end_ts),
        "registerTime": ms(thread.start_ts),
        "unregisterTime": ended(thread.end_ts),
        "pausedRanges": [],
        "showMarkersInTimeline": True,
    }


def _view_head(process: Process, thread: Thread, pid: str) -> dict[str, Any]:
    """Returns what is different of views of sizes, which are not threads: they have a process of their own, after that
    of the others."""
    if thread.sample_unit != "bytes":
        return {}
    return {"pid": f"{pid} sizes", "processName": f"{process.name}: sizes", "tid": thread.name}


def _write_empty_thread(json: JsonWriter) -> None:
    """Writes a thread: the viewer refuses a profile without one."""
    process = Process(0, "empty recording", 0, 0)
    thread = Thread(0, "empty recording", True, 0, 0, lambda _: ThreadData())
    with json.object():
        json.members(thread_head(TraceBuilder(), process, thread))
        json.member("samples", {"stack": [], "time": [], "weight": None, "weightType": "samples", "length": 0})
        json.member("markers", NO_MARKERS)


def _write_calls(json: JsonWriter, trace: Trace, calls: Table, stacks: Stacks) -> None:
    # The track graph paints a sample as far as the middle between it and the next. What lasts long enough to be seen
    # there is repeated where it ends, with no weight.
    longest = (trace.end_ts - trace.start_ts) // GRAPH_PIXELS
    samples = SampleTimes(lambda: stacks.of_calls(calls, longest))
    json.ints("stack", samples.stacks())
    json.differences("timeDeltas", samples.differences(trace.start_ts))
    json.millis("weight", samples.durations())
    json.members({"weightType": "tracing-ms", "length": samples.n})


def sample_weights(trace: Trace, data: ThreadData) -> str:
    """Returns the unit of a thread's samples where some stand for several, else ""."""
    is_weighed = trace.sampling is not None and np.any(trace.sampling.n_samples(data.samples) != 1)
    return trace.sample_unit if is_weighed else ""


def _write_samples(json: JsonWriter, trace: Trace, samples: Table, stacks: Stacks, unit: str) -> None:
    json.ints("stack", stacks.of_column(samples["stack"]))
    json.millis("time", samples["ts"] - trace.start_ts)
    if unit == "ns":
        json.millis("weight", samples["weight"])
        json.member("weightType", "tracing-ms")
    elif unit:
        json.longs("weight", samples["weight"])
        json.member("weightType", "bytes" if unit == "bytes" else "samples")
    else:
        json.members({"weight": None, "weightType": "samples"})
    if np.any(samples["cpu_ns"] >= 0):
        json.longs("threadCPUDelta", samples["cpu_ns"], null=-1)
    json.member("length", len(samples))


# ---------------------------------------------------------------- markers


class Causes:
    """The stacks of a thread's markers."""

    def __init__(self, start_ts: int, tid: int, stacks: Stacks) -> None:
        self._start_ts, self._tid, self._stacks = start_ts, tid, stacks

    def of(self, stack: Array, ts: Array) -> Member:
        written = self._stacks.of_column(stack).astype(np.int64)
        written[stack < 0] = ABSENT
        members = (Numbers("stack", written), Numbers("time", ts - self._start_ts, MILLIS))
        return Inner("cause", members, {"tid": self._tid})


def _write_markers(json: JsonWriter, shared: Shared, columns: list[MarkerColumns]) -> None:
    ts = np.concatenate([np.zeros(0, np.int64), *(c.ts for c in columns)])
    ts -= shared.trace.start_ts
    end = np.concatenate([np.zeros(0, np.int64), *(c.dur for c in columns)])
    end += ts
    n_rows = np.array([len(c.ts) for c in columns], np.int64)
    nothing = np.zeros(0, np.int32)
    names = np.concatenate([nothing, *(c.name_rows(shared.trace.strings) for c in columns)])
    category = np.repeat(np.array([shared.categories.of_markers(*c.category) for c in columns], np.int32), n_rows)
    is_interval = np.repeat(np.array([c.is_interval for c in columns], bool), n_rows)
    end[~is_interval] = -1
    with json.table("markers", len(ts)):
        json.objects("data", (c.data for c in columns))
        json.ints("name", names)
        json.millis("startTime", ts)
        json.millis("endTime", end)
        json.ints("phase", np.where(is_interval, INTERVAL, INSTANT))
        json.ints("category", category)
