"""Map: each profile of a file becomes a thread: its samples, or calls where it has events with times.

The format: https://www.speedscope.app/file-format-schema.json. Before version 0.1.2 there were only events; the first
files have one member `profile`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.shown_text import encodable
from traceferry.files.json_text import JsonText
from traceferry.files.source import Source
from traceferry.model import CALLS, LEAVE, OPEN_AT_END, UNWOUND, Array, Event, Input, Table, ThreadData, TraceBuilder
from traceferry.timeline.stack_profiles import UNTIMED_NS, Place, StackProfile, samples_of, whole_amounts

NS_OF = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}
# py-spy's names of profiles.
THREAD = re.compile(r'(?:Process (?P<pid>\d+) )?Thread (?P<tid>0x[0-9A-Fa-f]+|\d+)(?: "(?P<name>.*)")?')
MOST_NS = 1 << 60
# Where a frame is of several places, the file's end tells more than its begin.
KINDS = ("sampled", "evented")


class _Rows(NamedTuple):
    """ts: float64, in the profile's unit; stack: int32; amount: float64."""

    ts: Array
    stack: Array
    amount: Array


def to_trace(source: Source, trace: TraceBuilder) -> None:
    """Adds the profiles. Raises FormatError where frames or profiles are missing, or none can be read."""
    text = JsonText(source.data, source.path)
    root = text.parsed(text.root())
    shared = root.get("shared", root)
    frames = shared.get("frames") if isinstance(shared, dict) else None
    profiles = root.get("profiles", [root["profile"]] if "profile" in root else None)
    if not isinstance(frames, list) or not isinstance(profiles, list):
        raise FormatError("shared.frames or profiles is missing", 0, path=source.path)
    known = [one for one in profiles if isinstance(one, dict) and one.get("type") in KINDS]
    if len(known) < len(profiles):
        trace.report.note("bad_rows", len(profiles) - len(known), where=source.path, detail="profiles of another type")
    version = str(root.get("version", ""))
    mapping = _Mapping(StackProfile(trace, Input(source.name, "speedscope", version, str(root.get("exporter") or ""))))
    mapping.add_frames(frames)
    for nth, one in enumerate(known):
        mapping.add(one, text_of(root.get("name")) or source.name, nth)
    trace.report.note("bad_rows", mapping.n_bad, where=f"{source.path} rows", detail="samples or events")


class _Mapping:
    def __init__(self, profile: StackProfile) -> None:
        self.profile, self.trace = profile, profile.trace
        self.frames: list[int] = []
        self.n_bad = 0
        self._of: dict[tuple[int, int], int] = {}

    def add_frames(self, frames: list[Any]) -> None:
        for held in frames:
            one = held if isinstance(held, dict) else {"name": held}
            line, column = (_whole(one.get(name)) for name in ("line", "col"))
            place = Place(text_of(one.get("name")) or "[unknown]", text_of(one.get("file")), line, column)
            self.frames.append(self.profile.frames.row(place))

    def add(self, one: dict[str, Any], title: str, nth: int) -> None:
        """Adds a profile as a thread."""
        scale, start = NS_OF.get(text_of(one.get("unit"))), _real(one.get("startValue"))
        name = text_of(one.get("name")) or f"profile {nth + 1}"
        found = THREAD.fullmatch(name)
        pid, tid = (int(found[part], 0) if found and found[part] else None for part in ("pid", "tid"))
        if one["type"] == "evented" and scale is not None:
            data = ThreadData(calls=self._calls(one, scale))
            ts = data.calls["ts"]
            first, last = (int(ts[0]), int(ts[-1])) if len(ts) else (0, 0)
            n_rows = len(ts)
        else:
            rows = self._samples(one, start) if one["type"] == "sampled" else self._steps(one)
            data, first, last = self._sampled(rows, scale, text_of(one.get("unit")))
            n_rows = len(rows.ts)
        process = self.profile.process(pid, title if pid is None else f"process {pid}", pid, first, last)
        self.profile.add_thread(process, (found and found["name"]) or name.removesuffix(' ""'), tid, data, n_rows)

    def _sampled(self, rows: _Rows, scale: int | None, unit: str) -> tuple[ThreadData, int, int]:
        amount, parts = whole_amounts(rows.amount * (scale or 1))
        ts = np.clip(np.rint(rows.ts * (scale or UNTIMED_NS)), -MOST_NS, MOST_NS).astype(np.int64)
        ts = np.maximum.accumulate(ts)
        last = int(ts[-1]) + int(amount[-1] if scale else UNTIMED_NS) if len(ts) else 0
        if scale is not None:
            amount = np.rint(np.clip(rows.amount, 0, MOST_NS // scale) * scale).astype(np.int64)
            usual = int(np.median(amount[amount > 0])) if np.any(amount > 0) else 0
            # Equal samples behind each other may be one.
            times = np.rint(amount / max(usual, 1)).astype(np.int64)
            are_joined = usual > 0 and bool(np.all(np.abs(times * usual - amount) <= usual // 50 + 1))
            event, amount = (Event("samples", "samples", usual), times) if are_joined else (Event("time", "ns"), amount)
        elif unit == "bytes":
            event = Event("bytes", "bytes")
        else:
            event = Event("samples" if parts == 1 else f"1/{parts} of a sample", "samples")
        row = self.profile.add_event(event)
        self.trace.report.note("times_made", 0 if scale else len(ts), where=self.trace.inputs[-1].path)
        return samples_of(self.trace.events, ts, rows.stack, {row: amount}), int(ts[0]) if len(ts) else 0, last

    def _samples(self, one: dict[str, Any], start: float) -> _Rows:
        samples, weights = ([*held] if isinstance(held := one.get(key), list) else [] for key in ("samples", "weights"))
        if not weights:
            weights = [1] * len(samples)
        self.n_bad += abs(len(samples) - len(weights))
        n = min(len(samples), len(weights))
        amount = np.array([max(_real(weight), 0.0) for weight in weights[:n]], np.float64)
        stack = np.array([self._stack(sample) for sample in samples[:n]], np.int32)
        return _Rows(start + np.concatenate([np.zeros(1), np.cumsum(amount)])[:-1], stack, amount)

    def _stack(self, sample: Any) -> int:
        stack, known, n = -1, self._of, len(self.frames)
        for frame in sample if isinstance(sample, list) else ():
            found = known.get((stack, frame)) if type(frame) is int else None
            if found is None:
                if type(frame) is not int or not 0 <= frame < n:
                    self.n_bad += 1
                    continue
                found = known[stack, frame] = self.trace.stacks.intern(prefix=stack, frame=self.frames[frame])
            stack = found
        return stack

    def _events(self, one: dict[str, Any]) -> list[tuple[float, int, bool]]:
        """Returns (when, the frame's number, whether it is left) of events that rise."""
        found: list[tuple[float, int, bool]] = []
        for event in held if isinstance(held := one.get("events"), list) else []:
            frame = event.get("frame") if isinstance(event, dict) else None
            if type(frame) is not int or not 0 <= frame < len(self.frames) or event.get("type") not in ("O", "C"):
                self.n_bad += 1
                continue
            found.append((_real(event.get("at")), frame, event["type"] == "C"))
        return sorted(found, key=lambda row: row[0])

    def _nested(self, one: dict[str, Any]) -> list[tuple[float, int, int]]:
        """Returns (when, the frame's number, flags of CALLS), each enter with its leave: what is left out of turn is
        left with what it called."""
        found: list[tuple[float, int, int]] = []
        within: list[int] = []
        last = _real(one.get("startValue"))
        for at, frame, leaves in self._events(one):
            last = at
            if not leaves:
                within.append(frame)
                found.append((at, frame, 0))
                continue
            if frame not in within:
                self.n_bad += 1
                continue
            while (top := within.pop()) != frame:
                found.append((at, top, LEAVE | UNWOUND))
            found.append((at, frame, LEAVE))
        end = max(last, _real(one.get("endValue")))
        return found + [(end, frame, LEAVE | OPEN_AT_END) for frame in reversed(within)]

    def _calls(self, one: dict[str, Any], scale: int) -> Table:
        rows = self._nested(one)
        ts = np.clip(np.rint(np.array([row[0] for row in rows], np.float64) * scale), -MOST_NS, MOST_NS)
        columns = {
            "ts": ts.astype(np.int64), "frame": [self.frames[row[1]] for row in rows], "flags": [row[2] for row in rows]
        }  # fmt: skip
        return Table(CALLS, columns)

    def _steps(self, one: dict[str, Any]) -> _Rows:
        """Returns what is between two events as a sample: of amounts that are no times."""
        stacks, ts, rows, amounts = [-1], list[float](), list[int](), list[float]()
        last = _real(one.get("startValue"))
        for at, frame, flags in self._nested(one):
            if at > last and len(stacks) > 1:
                ts.append(last)
                rows.append(stacks[-1])
                amounts.append(at - last)
            last = max(last, at)
            if flags & LEAVE:
                stacks.pop()
            else:
                stacks.append(self.trace.stacks.intern(prefix=stacks[-1], frame=self.frames[frame]))
        return _Rows(np.array(ts, np.float64), np.array(rows, np.int32), np.array(amounts, np.float64))


def text_of(value: Any) -> str:
    return encodable(value) if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, (int, float)) and -1e9 < value < 1e9 else 0


def _real(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and -1e18 < value < 1e18 else 0.0
