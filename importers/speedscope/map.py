"""Map: each profile of a file becomes a thread: its samples, or calls where it has events with times.

The format: https://www.speedscope.app/file-format-schema.json. Before version 0.1.2 there were only events; the first
files have one member `profile`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.patterns import compiled_later
from traceferry.common.shown_text import encodable
from traceferry.files.json_text import JsonText, Range
from traceferry.files.source import Source
from traceferry.model import LEAVE, Array, Event, Input, Table, ThreadData, TraceBuilder
from traceferry.timeline.balance import Balancer, Raw
from traceferry.timeline.paths import path_samples
from traceferry.timeline.stack_profiles import (
    UNTIMED_NS,
    Place,
    StackProfile,
    as_samples,
    n_beyond,
    number_of,
    samples_in_parts,
    samples_of,
    spread,
    whole_amounts,
)
from traceferry.timeline.stacks import StackTable, intern_paths

NS_OF = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
# py-spy's names of profiles; and with --threads and --subprocesses the outermost frames, which are no functions.
THREAD = compiled_later(r'(?:Process (?P<pid>\d+) )?Thread (?P<tid>0x[0-9A-Fa-f]+|\d+)(?: "(?P<name>.*)")?')
OWNER = compiled_later(r'thread \((?P<tid>0x[0-9A-Fa-f]+|\d+)\)(?:: (?P<name>.*))?|process \d+:".*"')
MOST_NS = 1 << 60
MOST_REAL = 1e18
THOUSANDTHS = 1000
KINDS = ("sampled", "evented")
# What may be long is not parsed with the rest.
COLUMNS = ("samples", "weights", "events")
NOWHERE = Range(0, 0)
# What pyinstrument calls the part of a function that is in none that it calls: no function.
SELF = "[self]"
OPENED, CLOSED = ord("O"), ord("C")


class _Rows(NamedTuple):
    """ts: float64, in the profile's unit; stack: int32; amount: float64."""

    ts: Array
    stack: Array
    amount: Array


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the profiles. Raises FormatError where frames or profiles are missing, or none can be read."""
    text = JsonText(source.data, source.path)
    root = text.root()
    members = text.members(root) if text.is_object(root) else {}
    shared = members.get("shared", root)
    frames = text.members(shared).get("frames", NOWHERE) if text.is_object(shared) else NOWHERE
    found = text.elements(members["profiles"]) if text.is_list(members.get("profiles", NOWHERE)) else []
    if "profile" in members and "profiles" not in members:
        found = [members["profile"]]
    if not found or not text.is_list(frames):
        raise FormatError("shared.frames or profiles is missing", 0, path=source.path)
    known = [text.members(one) for one in found if text.is_object(one)]
    known = [one for one in known if "type" in one and text.parsed(one["type"]) in KINDS]
    if len(known) < len(found):
        trace.report.note("bad_rows", len(found) - len(known), where=source.path, detail="profiles of another type")
    version, exporter, name = (
        text_of(text.parsed(members[key])) if key in members else "" for key in ("version", "exporter", "name")
    )
    mapping = _Mapping(text, StackProfile(trace, Input(source.name, "speedscope", version, exporter)))
    mapping.add_frames(text.parsed(frames), exporter)
    for nth, one in enumerate(known):
        mapping.add(one, name or source.name, nth)
    mapping.profile.note_empty()
    mapping.note()


class _Mapping:
    def __init__(self, text: JsonText, profile: StackProfile) -> None:
        self.text, self.profile, self.trace = text, profile, profile.trace
        self.frames = np.empty(0, np.int32)
        # By number, of frames that stand for them.
        self.threads: dict[int, str] = {}
        self.n_bad = self.n_below = self.n_cut = self.n_untimed = 0

    def add_frames(self, frames: list[Any], exporter: str) -> None:
        """exporter: some have frames that are no functions, of which stacks have nothing."""
        rows = []
        for held in frames:
            one = held if isinstance(held, dict) else {"name": held}
            line, column = (_whole(one.get(name)) for name in ("line", "col"))
            place = Place(text_of(one.get("name")) or "[unknown]", text_of(one.get("file")), line, column)
            rows.append(-1 if self._is_no_function(place, exporter) else self.profile.frames.row(place))
        self.frames = np.array(rows, np.int32)

    def _is_no_function(self, place: Place, exporter: str) -> bool:
        if exporter.startswith("pyinstrument"):
            return place.name == SELF
        found = OWNER.fullmatch(place.name) if exporter.startswith("py-spy") and not place.path else None
        tid = number_of(found["tid"]) if found and found["tid"] else None
        if found and tid is not None and found["name"]:
            self.threads[tid] = found["name"]
        return found is not None

    def add(self, members: dict[str, Range], title: str, nth: int) -> None:
        """Adds a profile as a thread."""
        one = {key: self.text.parsed(at) for key, at in members.items() if key not in COLUMNS}
        unit, start = text_of(one.get("unit")), _real(one.get("startValue"))
        scale = NS_OF.get(unit)
        name = text_of(one.get("name")) or f"profile {nth + 1}"
        found = THREAD.fullmatch(name)
        pid, tid = (number_of(found[part]) if found and found[part] else None for part in ("pid", "tid"))
        if one["type"] == "evented" and scale is not None:
            data = ThreadData(calls=self._calls(members, start, _real(one.get("endValue")), scale))
            ts = data.calls["ts"]
            first, last, n_rows = int(ts[0]) if len(ts) else 0, int(ts[-1]) if len(ts) else 0, len(ts)
        else:
            is_sampled = one["type"] == "sampled"
            rows = (
                self._samples(members, start) if is_sampled else self._steps(members, start, _real(one.get("endValue")))
            )
            data, first, last = self._sampled(rows, scale, unit)
            n_rows = len(rows.ts)
        process = self.profile.process(pid, title if pid is None else f"process {pid}", pid, first, last)
        known = (found and found["name"]) or (self.threads.get(tid) if tid is not None else None)
        self.profile.add_thread(process, known or name.removesuffix(' ""'), tid, data, n_rows)

    def note(self) -> None:
        """Reports, at the end, what was left out or made up of all profiles."""
        report, path = self.trace.report, self.trace.inputs[-1].path
        report.note("bad_rows", self.n_bad, where=f"{self.text.path} rows", detail="samples or events")
        report.note("below_zero", self.n_below, where=path, detail=f"{path}: samples")
        report.note("amounts_cut", self.n_cut, where=path, detail=f"{path}: weights")
        report.note("times_made", self.n_untimed, where=path)

    def _sampled(self, rows: _Rows, scale: int | None, unit: str) -> tuple[ThreadData, int, int]:
        amount, parts = whole_amounts(rows.amount * (scale or 1))
        if unit == "bytes":
            ts, last = spread(amount, unit, 0)
        else:
            ts = np.clip(np.rint(rows.ts * (scale or UNTIMED_NS)), -MOST_NS, MOST_NS).astype(np.int64)
            ts = np.maximum.accumulate(ts)
            last = int(ts[-1]) + int(amount[-1] if scale else UNTIMED_NS) if len(ts) else 0
        if scale is not None:
            amount = np.rint(np.clip(rows.amount, 0, MOST_NS // scale) * scale).astype(np.int64)
            usual = int(np.median(amount[amount > 0])) if np.any(amount > 0) else 0
            # Equal samples behind each other may be one.
            times = np.rint(amount / max(usual, 1)).astype(np.int64)
            are_joined = usual > 0 and bool(np.all(np.abs(times * usual - amount) <= usual // 50 + 1))
            event = Event("samples", "samples", usual) if are_joined else as_samples("time", "ns")
            amount = times if are_joined else amount
        elif unit == "bytes":
            event = as_samples("bytes", "bytes")
        else:
            event = samples_in_parts(parts)
        if scale is None:
            self.n_cut += n_beyond(rows.amount, parts)
            self.n_untimed += len(ts)
        row = self.profile.add_event(event)
        return samples_of(self.trace.events, ts, rows.stack, {row: amount}), int(ts[0]) if len(ts) else 0, last

    def _samples(self, members: dict[str, Range], start: float) -> _Rows:
        flat, ends = self.text.lists(members.get("samples", NOWHERE))
        weights = self.text.numbers(members.get("weights", NOWHERE)) if "weights" in members else np.ones(len(ends))
        weights = weights if len(weights) else np.ones(len(ends))
        self.n_bad += abs(len(ends) - len(weights))
        n = min(len(ends), len(weights))
        is_known = (flat >= 0) & (flat < len(self.frames))
        self.n_bad += int(np.count_nonzero(~is_known))
        is_known[is_known] = self.frames[flat[is_known]] >= 0
        stops = np.append(0, np.cumsum(is_known))[np.append(0, ends[:n])]
        frames = self.frames[flat[is_known][: stops[-1]]]
        table = StackTable(self.trace)
        stack = intern_paths(table, frames, np.diff(stops))
        table.publish()
        reals = _reals(weights[:n])
        self.n_bad += int(np.count_nonzero(reals != weights[:n]))
        amount = np.maximum(reals, 0)
        self.n_below += int(np.count_nonzero(weights[:n] < 0))
        return _Rows(start + np.append(0, np.cumsum(amount))[:-1], stack, amount)

    def _calls(self, members: dict[str, Range], start: float, end: float, scale: float) -> Table:
        """Returns CALLS of the events, by time; what is left out of turn is left with what it called."""
        values, begins, _ = self.text.rows(members.get("events", NOWHERE), "at", "frame", "type")
        kind = np.frombuffer(self.text.data, np.uint8)[begins[:, 2] + 1] if len(begins) else np.empty(0, np.uint8)
        frame = np.nan_to_num(values[:, 1], nan=-1, posinf=-1, neginf=-1)
        is_known = (
            (frame >= 0) & (frame < len(self.frames)) & (begins[:, 2] >= 0) & ((kind == OPENED) | (kind == CLOSED))
        )
        self.n_bad += int(np.count_nonzero(~is_known))
        is_known[is_known] = self.frames[frame[is_known].astype(np.int32)] >= 0
        at, frame, kind = _reals(values[is_known, 0]), frame[is_known].astype(np.int32), kind[is_known]
        order = np.argsort(at, kind="stable")
        at, frame, kind = at[order], frame[order], kind[order]
        last = max(end, float(at[-1])) if len(at) else start
        ts = np.rint(np.clip(np.append(at, last) * scale, -MOST_NS, MOST_NS)).astype(np.int64)
        balancer = Balancer()
        flags = np.where(kind == CLOSED, LEAVE, 0).astype(np.uint8)
        calls = balancer.add(Raw(ts[:-1], frame, self.frames[frame], flags), len(self.frames))
        self.n_bad += balancer.n_orphans
        closed = balancer.close(int(ts[-1]))
        return Table(calls.spec, {name: np.concatenate([calls[name], closed[name]]) for name in calls.columns})

    def _steps(self, members: dict[str, Range], start: float, end: float) -> _Rows:
        """Returns what is between two events as a sample: of amounts that are no times, in thousandths."""
        calls = self._calls(members, start, end, THOUSANDTHS)
        table = StackTable(self.trace)
        pieces = [(np.empty(0, np.int64), np.empty(0, np.int32)), *path_samples(table, calls.pieces())]
        ts, stack = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
        table.publish()
        amount = np.diff(ts, append=ts[-1:])
        is_in = stack >= 0
        return _Rows(ts[is_in] / THOUSANDTHS, stack[is_in], amount[is_in] / THOUSANDTHS)


def text_of(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and -1e9 < value < 1e9 else 0


def _reals(values: Array) -> Array:
    """Returns float64 without those that are no numbers, or too large."""
    reals = values.astype(np.float64)
    return np.where(np.abs(reals) < MOST_REAL, reals, 0.0)


def _real(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and -MOST_REAL < value < MOST_REAL else 0.0
