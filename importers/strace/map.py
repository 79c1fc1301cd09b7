"""Map: calls become markers that last, signals and exits instants, of the threads of processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.files.source import Source
from traceferry.importers.strace.decode import Log, Rows
from traceferry.importers.strace.layout import frame_of
from traceferry.model import Array, Clock, Input, MarkerField, MarkerType, Table, ThreadData, TraceBuilder
from traceferry.model.categories import category_of_file
from traceferry.timeline.stack_profiles import Place, StackProfile
from traceferry.timeline.stacks import StackTable

NAME, ARGUMENTS, RESULT = range(3)
# Types of markers by kind, with what their fields are of a row's texts.
TYPES: dict[str, tuple[MarkerType, dict[str, int]]] = {
    "call": (
        MarkerType(
            "system call", "A call of the kernel",
            (MarkerField("name", "Name", "text"), MarkerField("arguments", "Arguments", "text"),
             MarkerField("result", "Result", "text")),
            "{name}({arguments}) = {result}", ("name",), named_by="name",
        ),
        {"name": NAME, "arguments": ARGUMENTS, "result": RESULT},
    ),
    "signal": (
        MarkerType(
            "signal", "A signal that the thread got",
            (MarkerField("name", "Name", "text"), MarkerField("details", "Details", "text")),
            "{name} {details}", ("name",), named_by="name",
        ),
        {"name": NAME, "details": ARGUMENTS},
    ),
    "exit": (
        MarkerType("exit", "The end of the thread", (MarkerField("how", "How", "text"),), "{how}", ("how",)),
        {"how": ARGUMENTS},
    ),
}  # fmt: skip
EXECUTES = ("execve", "execveat")
PATH = compiled_later(r'"((?:[^"\\]|\\.)*)"')
# Of a call that does not return, as exit_group.
NO_RESULT = "?"


def to_trace(sources: Sequence[Source], trace: TraceBuilder) -> None:
    """Adds the threads of one run. Raises FormatError where no line is one of strace's with a time."""
    log, path = Log(sources), sources[0].path
    if not log.rows:
        raise FormatError("no line is one of strace's with a time", 0, path=path)
    name = sources[0].name
    profile = StackProfile(trace, Input(name, "strace", "", "strace"), Clock("realtime", 0) if log.is_dated else None)
    names, frames, stacks = _Names(log, name), _Frames(profile), StackTable(trace)
    for tid, rows in sorted(log.rows.items(), key=lambda item: (log.process_of(item[0]), item[0])):
        pid = log.process_of(tid)
        ts, dur = np.array(rows.ts) + profile.offset_ns, np.maximum(np.array(rows.dur), 0)
        start, end = int(ts.min()), int((ts + dur).max()) + 1
        process = profile.process(pid, names.of(pid), pid if pid >= 0 else None, start, end)
        data = _thread_data(rows, ts, dur, frames.stacks(stacks, rows))
        thread = profile.add_thread(process, names.of(tid), tid if tid >= 0 else None, data, len(ts))
        thread.is_main, thread.start_ts, thread.end_ts = tid == pid, start, end
    stacks.publish()
    n_untimed = sum(map(_n_untimed, log.rows.values()))
    trace.report.note("call_times_missing", n_untimed, where=path)
    detail, advice = "lines that are no call, signal or exit", "strace -o FILE keeps the program's own output apart"
    trace.report.note("members_not_read", log.n_unknown, where=f"{path} lines", detail=detail, advice=advice)


def _n_untimed(rows: Rows) -> int:
    """Returns how many calls have returned, nobody knows when."""
    columns = zip(rows.kind, rows.dur, rows.texts, strict=True)
    return sum(kind == "call" and dur < 0 and not text[RESULT].startswith(NO_RESULT) for kind, dur, text in columns)


def _thread_data(rows: Rows, ts: Array, dur: Array, stack: Array) -> ThreadData:
    data = ThreadData()
    kinds = np.array(rows.kind)
    texts = np.empty((len(rows.texts), 3), object)
    texts[:] = [[encodable(part) for part in text] for text in rows.texts]
    for kind, (marker_type, fields) in TYPES.items():
        chosen = np.flatnonzero(kinds == kind)
        chosen = chosen[np.argsort(ts[chosen], kind="stable")]
        if len(chosen):
            columns = {key: texts[chosen, nth] for key, nth in fields.items()}
            columns |= {"ts": ts[chosen], "dur": dur[chosen], "stack": stack[chosen]}
            data.markers[marker_type] = Table(marker_type.spec, columns)
    return data


class _Names(NamedTuple):
    """Names of threads. file: of the log."""

    log: Log
    file: str

    def of(self, tid: int) -> str:
        """Returns a thread's own name, that of the program that it executed last, or of what made it."""
        seen: set[int] = set()
        while tid not in seen:
            seen.add(tid)
            if tid in self.log.rows and (name := _name_of(self.log.rows[tid])):
                return name
            tid = self.log.parents.get(tid, (tid, False))[0]
        return self.file


def _name_of(rows: Rows) -> str:
    if rows.comm:
        return rows.comm
    for name, arguments, result in reversed(rows.texts):
        path = PATH.search(arguments) if name in EXECUTES and result.startswith("0") else None
        if path is not None:
            return PurePosixPath(path[1]).name
    return ""


class _Frames:
    """The lines of stacks, and the trace's frame of each."""

    def __init__(self, profile: StackProfile) -> None:
        self._profile = profile
        self._rows: dict[bytes, int] = {}

    def stacks(self, stacks: StackTable, rows: Rows) -> Array:
        """Returns int32: the trace's stack of each row, -1 is none."""
        flat = [self._row(text) for frames in rows.frames for text in frames]
        ends = np.cumsum([len(frames) for frames in rows.frames])
        found: Array = stacks.intern_lists(np.array(flat, np.int32), ends)
        return found

    def _row(self, text: bytes) -> int:
        if text not in self._rows:
            file, name = frame_of(text) or ("", "")
            place = Place(encodable(name or f"[{PurePosixPath(file).name}]"), category=category_of_file(file))
            self._rows[text] = self._profile.frames.row(place)
        return self._rows[text]
