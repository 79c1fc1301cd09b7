"""Profiles of stacks with amounts, as many tools write them: functions have names, samples mostly no times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from traceferry.common.shown_text import encodable
from traceferry.model import (
    ENDINGS,
    SAMPLES,
    Array,
    Clock,
    Event,
    Input,
    Process,
    Table,
    Thread,
    ThreadData,
    TraceBuilder,
)
from traceferry.model.categories import NATIVE, OTHER

MAX_NUMBER = (1 << 31) - 1
# Amounts are added up in 64 bits.
MOST = 1 << 53
MOST_DIGITS = 30
# A sample without a time lasts so long; all of them together not longer than the second.
UNTIMED_NS, LONGEST_NS = 10**6, 10**12
# Of source files, by their suffixes.
LANGUAGES = {
    ".py": "Python", ".pyx": "Python", ".rb": "Ruby", ".php": "PHP", ".java": "Java", ".kt": "Java", ".scala": "Java",
    ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".ts": "JavaScript", ".tsx": "JavaScript",
    ".jsx": "JavaScript", ".lua": "Lua", ".jl": "Julia", ".dart": "Dart", ".erl": "Erlang", ".ex": "Erlang",
    ".cs": ".NET", ".fs": ".NET", ".wasm": "WebAssembly",
}  # fmt: skip
LANGUAGES |= dict.fromkeys(
    (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".go", ".rs", ".s", ".swift", ".zig", ".m"), NATIVE
)
TIER_COLOR = "green"
# What CPython calls modules that are compiled into it.
FROZEN = "<frozen "


class Place(NamedTuple):
    """A function as it runs. path: of its source; line, column: what runs, 0 is unknown, first_line, first_column:
    where the function begins; category: "" is by the path; tier: "" is none; depth: 0, or how deep it is inlined; lib:
    the row of the trace's libs, -1 is none, and address: in it."""

    name: str
    path: str = ""
    line: int = 0
    column: int = 0
    first_line: int = 0
    first_column: int = 0
    category: str = ""
    tier: str = ""
    depth: int = 0
    lib: int = -1
    address: int = -1


class Frames:
    """The frames of an input, each place once."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._trace = trace
        self._rows: dict[Place, int] = {}
        self._sources: dict[str, tuple[int, str]] = {}
        self._categories: dict[str, int] = {}

    def row(self, place: Place) -> int:
        """Returns the trace's frame."""
        row = self._rows.get(place)
        if row is None:
            row = self._rows[place] = self._added(place)
        return row

    def at_lines(self, places: Sequence[Place], nth: Array, lines: Array) -> Array:
        """Returns int32: the frames of functions at lines, 0 is what the place says. nth: which of the places."""
        if not len(nth):
            return np.empty(0, np.int32)
        rows = dict[int, tuple[int, int, int]]()
        for one in nth.tolist():
            if one not in rows:
                rows[one] = self._function(places[one])
        func, category, tier = (list(column) for column in zip(*(rows[one] for one in nth.tolist()), strict=True))
        at = [(line, 0) if line else (places[one].line, places[one].column)
              for one, line in zip(nth.tolist(), lines.tolist(), strict=True)]  # fmt: skip
        return np.array(
            self._trace.frames.intern_all(
                len(nth), func=func, category=category, tier=tier, line=[_number(line) for line, _ in at],
                column=[_number(column) for _, column in at],
            ), np.int32,
        )  # fmt: skip

    def _added(self, place: Place) -> int:
        func, category, tier = self._function(place)
        return self._trace.frames.intern(
            func=func, category=category, tier=tier, line=_number(place.line), column=_number(place.column),
            inline_depth=place.depth, lib=place.lib, address=place.address,
        )  # fmt: skip

    def _function(self, place: Place) -> tuple[int, int, int]:
        """Returns the trace's function, category and tier, -1 is none."""
        trace, intern = self._trace, self._trace.strings.intern
        source, language = self._source(place.path)
        func = trace.funcs.intern(
            name=intern(place.name), source=source, line=_number(place.first_line), column=_number(place.first_column),
            is_js=(place.category or language) == "JavaScript",
        )  # fmt: skip
        tier = -1
        if place.tier:
            tier = trace.tiers.intern(name=intern(place.tier), family=intern(place.tier), color=intern(TIER_COLOR))
        return func, self._category(place.category or language), tier

    def _source(self, path: str) -> tuple[int, str]:
        """Returns the source, -1 is none, and its language."""
        if path not in self._sources:
            row = self._trace.sources.intern(path=self._trace.strings.intern(path)) if path else -1
            language = "Python" if path.startswith(FROZEN) else LANGUAGES.get(PurePosixPath(path).suffix.lower(), OTHER)
            self._sources[path] = row, language
        return self._sources[path]

    def _category(self, name: str) -> int:
        if name not in self._categories:
            self._categories[name] = self._trace.add_category(name)
        return self._categories[name]


def _named(name: str) -> str:
    """Returns what a process or a thread is called. name: its own, or that of the file, which is "-" of a pipe."""
    return "standard input" if name == "-" else name


class StackProfile:
    """One input on its way into a trace. clock: of its times, if they are on any; offset_ns: to be added to them; path:
    of the input, for the report."""

    def __init__(self, trace: TraceBuilder, of: Input, clock: Clock | None = None) -> None:
        self.trace, self.path = trace, of.path
        self.offset_ns = 0
        if clock is None:
            trace.begin_apart(None)
        else:
            self.offset_ns = trace.join_clock(clock)
        self.frames = Frames(trace)
        self.processes: dict[object, Process] = {}
        trace.inputs.append(of._replace(path=encodable(of.path), producer=encodable(of.producer)))
        self._pids = {process.pid for process in trace.processes}
        self._is_empty = True

    def add_event(self, event: Event) -> int:
        """Returns the row of an event: of one that the trace has, that one's."""
        keys = [one.key for one in self.trace.events]
        event = event._replace(name=encodable(event.name))
        if event.key not in keys:
            self.trace.events.append(event)
            return len(keys)
        return keys.index(event.key)

    def process(self, key: object, name: str, pid: int | None, start_ts: int, end_ts: int) -> Process:
        """Returns the process of this key, with the number if it is given and free."""
        if key not in self.processes:
            number = pid if pid is not None and 0 <= pid <= MOST and pid not in self._pids else None
            number = max((one for one in self._pids if one < MOST), default=0) + 1 if number is None else number
            self._pids.add(number)
            self.processes[key] = Process(number, _named(name), start_ts, end_ts)
            self.trace.processes.append(self.processes[key])
        found = self.processes[key]
        found.start_ts, found.end_ts = min(found.start_ts, start_ts), max(found.end_ts, end_ts)
        return found

    def add_thread(self, process: Process, name: str, tid: int | None, data: ThreadData, n_rows: int) -> Thread:
        """Adds a thread over its process's lifetime: with the number if it is given and free."""
        self._is_empty &= not any(map(len, (data.samples, data.calls, *data.other_samples.values())))
        taken = {thread.tid for thread in process.threads}
        is_free = tid is not None and 0 <= tid <= MOST and tid not in taken
        number = tid if tid is not None and is_free else max({process.pid - 1, *taken} - {MOST}) + 1
        thread = Thread(
            number, _named(name), not process.threads, process.start_ts, process.end_ts, lambda _: replace(data), n_rows
        )
        process.threads.append(thread)
        return thread

    def note_empty(self, why: str = "") -> None:
        """Reports, at the end, where no thread has anything."""
        self.trace.report.note("no_samples", int(self._is_empty), where=self.path, detail=why)


def samples_of(events: Sequence[Event], ts: Array, stack: Array, amounts: Mapping[int, Array]) -> ThreadData:
    """Returns a thread's samples. events: the trace's; ts: int64, rising; stack: int32, -1 is none; amounts: int64 of
    each row, by events. Rows without an amount of an event, nor of those that are counted with it, are left out."""
    data = ThreadData()
    for row, amount in amounts.items():
        leader = events[row].leader if events[row].leader in amounts else row
        with_it = [other for of, other in amounts.items() if leader in (of, events[of].leader)]
        kept = np.logical_or.reduce([other > 0 for other in with_it])
        table = Table(SAMPLES, {"ts": ts[kept], "stack": stack[kept], "weight": amount[kept]})
        if row == 0:
            data.samples = table
        elif len(table):
            data.other_samples[row] = table
    return data


def as_samples(name: str, unit: str) -> Event:
    """Returns the event of a profile's only amounts, or main ones. Times and sizes are counted as samples: so functions
    are ranked by what they took, and not by how many stacks have them."""
    return Event(name if name == unit else name + ENDINGS.get(unit, ""), "samples")


def spread(amount: Array, unit: str, start_ts: int, length_ns: int = 0) -> tuple[Array, int]:
    """Returns (int64: a time of each row, as if the amounts before it were the time that has passed; the end). unit:
    "ns", "bytes" or "samples"; length_ns: of the recording, 0 is unknown: then it is as long as the times are, or 1 ms
    for each sample, or for each row with bytes."""
    sums = np.concatenate([np.zeros(1), np.cumsum(amount.astype(np.float64))])
    length = length_ns
    if length <= 0:
        whole = float(np.count_nonzero(amount)) if unit == "bytes" else float(sums[-1])
        length = int(min(whole, MOST) if unit == "ns" else min(whole * UNTIMED_NS, LONGEST_NS))
    ts = np.rint(sums / max(sums[-1], 1.0) * length).astype(np.int64) + start_ts
    return ts[:-1], start_ts + max(length, 1)


def samples_in_parts(parts: int) -> Event:
    """Returns the event of samples of which so many are one of the recording's, as `whole_amounts` counts them."""
    return Event("samples" if parts == 1 else f"1/{parts} of a sample", "samples")


def whole_amounts(amounts: Array, parts: int = 1) -> tuple[Array, int]:
    """Returns (int64, as how much 1 is counted): numbers with decimals are counted in so many parts, or in more, at
    least in thousandths of the smallest; what is below 0 or no number is 0."""
    good = np.where(np.isfinite(amounts), np.clip(amounts, 0, MOST), 0)
    scale = parts
    while scale < 10**6 and np.any(np.abs(good * scale - np.rint(good * scale)) > 1e-9 * scale) and good.max() < 1e9:
        scale *= 10
    return np.rint(np.minimum(good * scale, MOST)).astype(np.int64), scale


def n_beyond(amounts: Array, scale: int = 1) -> int:
    """Returns how many amounts `whole_amounts` cuts. scale: as how much 1 is counted."""
    return int(np.count_nonzero(np.isfinite(amounts) & (amounts > MOST / scale)))


def number_of(text: str) -> int:
    """Returns a number as tools write those of threads: 42, 0042, 0x2A; of one too long for any thread, its begin."""
    return int(text[:MOST_DIGITS], 16 if text[:2].lower() == "0x" else 10)


def _number(value: int) -> int:
    return min(max(value, 0), MAX_NUMBER)
