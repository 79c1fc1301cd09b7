"""Map: the samples of each thread become one of the model.

The format is Chrome's Trace Event Format, "Global Samples" and "Stack Frames": a frame has a name and a parent, a
sample the number of a frame, `sf`, and its time in µs. Hermes writes numbers as texts, too, and a function's place into
its name: `f(http://localhost:8081/index.bundle:1:100)`. Its events are the names of processes and threads only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.files.json_text import JsonText
from traceferry.files.source import Source
from traceferry.model import Array, Clock, Event, Input, TraceBuilder, rows_by_key
from traceferry.timeline.stack_profiles import MOST, Place, StackProfile, samples_of

NS_OF_US = 1000
PLACED = compiled_later(r"(?P<name>.*?)\((?P<path>[^()]*):(?P<line>\d{1,9}):(?P<column>\d{1,9})\)", re.DOTALL)
NUMBER = compiled_later(r"-?\d{1,15}(?:\.\d{1,9})?")
# What stands for the whole program: a sample there is in no function, and functions are in none.
ROOT, NOTHING, ANONYMOUS = "[root]", "(root)", "(anonymous)"
CATEGORIES = {"JavaScript": "JavaScript", "Native": "Native"}
METADATA, PROCESS_NAME, THREAD_NAME = "M", "process_name", "thread_name"


class _Samples(NamedTuple):
    """Columns of samples: process, thread, ts: int64 ns; stack: int32; weight: int64."""

    process: Array
    thread: Array
    ts: Array
    stack: Array
    weight: Array


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the samples. Raises FormatError where these are no list, or frames no object."""
    text = JsonText(source.data, source.path)
    root = text.root()
    members = text.members(root) if text.is_object(root) else {}
    listed, frames, events = (
        text.parsed(members[key]) if key in members else None for key in ("samples", "stackFrames", "traceEvents")
    )
    if not isinstance(listed, list) or not isinstance(frames, dict):
        raise FormatError("samples is no list, or stackFrames no object", root.begin, path=source.path)
    events = [one for one in events if isinstance(one, dict)] if isinstance(events, list) else []
    names, n_others = _names(events)
    profile = StackProfile(trace, Input(source.name, "hermes", "", "Hermes"), Clock("monotonic"))
    samples, n_bad = _samples(listed, _stacks(profile, frames), profile.offset_ns)
    order = np.lexsort((samples.ts, samples.thread, samples.process))
    samples = _Samples(*(column[order] for column in samples))
    by_thread = list(rows_by_key(_numbered(samples)).values())
    row = profile.add_event(Event("samples", "samples", _interval(samples, by_thread)))
    for rows in by_thread:
        pid, tid = int(samples.process[rows[0]]), int(samples.thread[rows[0]])
        ts = samples.ts[rows]
        process = profile.process(pid, names.get((pid, None), f"process {pid}"), pid, int(ts[0]), int(ts[-1]) + 1)
        data = samples_of(trace.events, ts, samples.stack[rows], {row: samples.weight[rows]})
        profile.add_thread(process, names.get((pid, tid), f"thread {tid}"), tid, data, len(rows))
    for process in profile.processes.values():
        for thread in process.threads:
            thread.start_ts, thread.end_ts = process.start_ts, process.end_ts
    profile.note_empty()
    trace.report.note("bad_rows", n_bad, where=f"{source.path} samples", detail="samples")
    trace.report.note("events_left_out", n_others, where=f"{source.path} traceEvents", detail=f"{n_others} events")


def _interval(samples: _Samples, by_thread: Sequence[Array]) -> int:
    """Returns the ns from one sample of a thread to its next, on average, 0 if no thread has two. by_thread: the rows
    of each thread, rising by time."""
    passed = sum(int(samples.ts[rows[-1]] - samples.ts[rows[0]]) for rows in by_thread)
    # The last sample of a thread says nothing of how long it stood.
    n = sum(int(samples.weight[rows[:-1]].sum()) for rows in by_thread)
    return passed // n if n else 0


def _numbered(samples: _Samples) -> Array:
    """Returns a number for each process and thread, int64."""
    is_first = np.ones(len(samples.ts), bool)
    is_first[1:] = (np.diff(samples.process) != 0) | (np.diff(samples.thread) != 0)
    return np.cumsum(is_first)


def _names(events: list[dict[str, Any]]) -> tuple[dict[tuple[int, int | None], str], int]:
    """Returns the names of processes and of their threads, and how many other events there are."""
    names: dict[tuple[int, int | None], str] = {}
    n_others = 0
    for one in events:
        said = one.get("args")
        name = said.get("name") if isinstance(said, dict) else None
        if one.get("ph") != METADATA:
            n_others += 1
        elif isinstance(name, str) and one.get("name") in (PROCESS_NAME, THREAD_NAME):
            tid = _number(one.get("tid")) if one["name"] == THREAD_NAME else None
            names[_number(one.get("pid")) or 0, tid] = encodable(name)
    return names, n_others


def _samples(listed: list[Any], stacks: dict[str, int], offset_ns: int) -> tuple[_Samples, int]:
    """Returns the samples, and how many are left out: without a time, or of an unknown frame."""
    rows = []
    for one in listed:
        ts = _number(one.get("ts"), NS_OF_US) if isinstance(one, dict) else None
        stack = stacks.get(str(one.get("sf"))) if ts is not None else None
        if ts is not None and stack is not None:
            pid, tid, weight = (_number(one.get(key)) for key in ("pid", "tid", "weight"))
            rows.append((pid or 0, tid or 0, ts + offset_ns, stack, 1 if weight is None else max(weight, 0)))
    columns = np.array(rows, np.int64).reshape(len(rows), len(_Samples._fields)).T
    process, thread, ts_of, stack_of, weight_of = columns
    found = _Samples(process, thread, ts_of, stack_of.astype(np.int32), weight_of)
    return found, len(listed) - len(rows)


def _stacks(profile: StackProfile, frames: dict[str, Any]) -> dict[str, int]:
    """Returns the trace's stack of each frame by its number, -1 is none. Of frames that are their own callers the
    first is the outermost."""
    found: dict[str, int] = {}
    for key in frames:
        path: dict[str, None] = {}
        while key in frames and key not in found and key not in path:
            path[key] = None
            key = _parent(frames[key])
        for one in reversed(path):
            caller = _parent(frames[one])
            is_outermost = caller in frames and _name(frames[caller]) == ROOT
            found[one] = _stack(profile, frames[one], -1 if is_outermost else found.get(caller, -1))
    return found


def _stack(profile: StackProfile, frame: Any, caller: int) -> int:
    said = frame if isinstance(frame, dict) else {}
    name, category = _name(frame), said.get("category")
    category = category if isinstance(category, str) else ""
    placed = PLACED.fullmatch(name)
    if name == ROOT:
        caller, name = -1, NOTHING
    if placed is None:
        place = Place(encodable(name) or ANONYMOUS, category=CATEGORIES.get(category, ""))
    else:
        line, column = int(placed["line"]), int(placed["column"])
        of = encodable(placed["name"]) or ANONYMOUS, encodable(placed["path"]), line, column
        place = Place(*of, line, column, CATEGORIES.get(category, ""))
    return profile.trace.stacks.intern(prefix=caller, frame=profile.frames.row(place))


def _name(frame: Any) -> str:
    name = frame.get("name") if isinstance(frame, dict) else None
    return name if isinstance(name, str) else ""


def _parent(frame: Any) -> str:
    return str(frame.get("parent", "")) if isinstance(frame, dict) else ""


def _number(value: Any, scale: int = 1) -> int | None:
    """Returns a number, or a text of one; None for anything else."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = int(value) if "." not in value else float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < MOST / scale:
        return None
    return round(value * scale)
