"""Fuzzes the conversion of profiles of the Firefox Profiler: JSON, JSLB, changes of values. Run by `make fuzz`.

Seeds are profiles that the tests' builder makes. An input that begins with a byte below 8 stands for one of them with
other values at some places, so that what is tried is JSON, or slabs, and mostly a profile.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from common import ROOT, run

sys.path.insert(0, str(ROOT / "tests"))

import firefox_profiles as made
from options import WithOptions

if TYPE_CHECKING:
    from traceferry.files.source import Source
    from traceferry.reading import ImportContext, Reading
    from traceferry.registry import ImporterModule

VALUES: tuple[Any, ...] = (
    None, -1, 0, 1, 2, 3, 7, 255, 256, 1 << 31, 1 << 53, 1 << 64, -(1 << 63), 10**30, 0.5, -2.25, 1e300, "", "x", "7",
    "0x10", "7.1", True, [], {}, [None], [0, 1, 2], {"$s": 0}, "start", "end", "tracing", "bytes", "tracing-ms",
    "samples", "Perfetto",
    {"stack": 1}, {"samples": {"schema": {"stack": 0}, "data": [[1]]}}, "\ud800", "a" * 300,
)  # fmt: skip
NAMES = (
    "time", "timeDeltas", "weight", "duration", "prefix", "prefixOffset", "flags", "category", "type", "interval",
    "startTime", "endTime", "id", "status", "cause", "stack", "windowID", "url", "length", "weightType", "data",
    "schema",
    "nativeAllocations", "jsAllocations", "memoryAddress", "className", "libs", "pausedRanges", "processes",
    "implementation", "originalLocation", "stringTable", "stringArray", "sampleGroups", "symbolicated",
    "traceferry", "events", "event", "running", "kind", "states", "track", "extra", "importedFrom",
)  # fmt: skip
OLD = (0, 3, 12, 17, 23, 29, 35, 37, 41, 47)


def bases() -> list[dict[str, Any]]:
    """Profiles of which others are made, by the first byte of an input."""
    exact = made.profile()
    exact["threads"][0]["samples"] |= {"time": [0, 1, 2, 3], "weight": [1, 1, 1, 1], "weightType": "tracing-ms"}
    allocating = made.profile(43)
    allocating["threads"][0]["nativeAllocations"] = {
        "time": [0, 1, 2], "weight": [8, 8, -8], "stack": [1, None, 2], "memoryAddress": [1, 2, 1], "length": 3,
    }  # fmt: skip
    allocating["threads"][0]["jsAllocations"] = {
        "time": [0],
        "weight": [8],
        "stack": [1],
        "className": ["A"],
        "length": 1,
    }
    return [
        made.profile(n_threads=2), made.as_shared(made.profile(), 58), made.as_75(made.profile()), made.gecko(),
        made.gecko(9), exact, allocating, marked(),
    ]  # fmt: skip


def marked() -> dict[str, Any]:
    """A profile with what only our own tell: events, arguments of calls, states, scheduling, threads of an event."""
    root = made.profile(60, 3, importedFrom="traceferry")
    call = [{"key": "function", "format": "string"}, {"key": "arg0", "format": "string"}, {"key": "flow"},
            {"key": "size", "label": "size", "format": "bytes", "traceferry": "bytes"}]  # fmt: skip
    off = {"kind": "scheduling", "states": {"futex": [2, "futex"], "preempted": [1, None]}}
    root["meta"] |= {
        "extra": [{"label": "traceferry", "entries": [{"label": "version", "value": "1"}]}],
        "traceferry": {"events": [
            {"name": "cycles", "unit": "cycles", "kind": "hardware", "interval_ns": 0, "period": 9, "leader": -1},
            {"name": "misses", "unit": "events", "kind": "hardware", "interval_ns": 0, "period": 9, "leader": 0},
        ]},
        "markerSchema": [
            {"name": "Call", "display": [], "fields": call, "traceferry": {"kind": "call"}},
            {"name": "Mode", "display": [], "fields": [], "traceferry": {"kind": "state", "track": "Mode"}},
            {"name": "Off CPU", "display": [], "fields": [], "traceferry": off},
        ],
    }  # fmt: skip
    calls, further, plain = root["threads"]
    calls["samples"] |= {"time": [0, 1, 2, 3], "weight": [1, 1, 1, 1], "weightType": "tracing-ms"}
    calls["markers"] |= {"startTime": [0, 1, 1, 2, 3], "endTime": [1, 2, 3, 3, 4], "phase": [1] * 5, "data": [
        {"type": "Call", "function": "main", "arg0": "0x10", "size": 4}, {"type": "Call", "function": "work"},
        {"type": "Mode", "value": "on"},
        {"type": "Off CPU", "state": "futex", "cpu": 1, "runnable": 0.5, "waker": "x (7)"},
        {"type": "Off CPU", "state": "preempted"},
    ]}  # fmt: skip
    calls["traceferry"] = {"running": 0}
    further["traceferry"] = {"event": 1, "weight": 9, "tid": "7", "pid": "7", "process": "demo"}
    plain["traceferry"] = {"event": 0, "weight": 3}
    return root


def changed(data: bytes) -> bytes:
    """The profile that an input of the second kind stands for: three bytes choose a place, a value, and what becomes of
    the place. The second byte of all chooses the version and the container."""
    root = bases()[data[0] % 8]
    places = list(_places(root))
    for at in range(2, min(len(data) - 3, 120), 4):
        number, value, how = int.from_bytes(data[at : at + 2], "little"), data[at + 2], data[at + 3]
        holder, key = places[number % len(places)]
        new = VALUES[value % len(VALUES)]
        if isinstance(holder, dict) and how % 8 == 1:
            holder[NAMES[value % len(NAMES)]] = holder.get(key)
        elif isinstance(holder, dict) and how % 8 == 2:
            holder.pop(key, None)
        elif isinstance(holder, list) and how % 8 == 3:
            holder.append(new)
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = new
    choice = data[1]
    if choice % 4 == 1 and isinstance(root.get("meta"), dict) and "preprocessedProfileVersion" in root["meta"]:
        root["meta"]["preprocessedProfileVersion"] = OLD[choice % len(OLD)]
    if choice % 4 == 2:
        try:
            return made.as_jslb(root)
        except (TypeError, KeyError, ValueError, AttributeError, struct.error):
            pass  # other values than columns have
    return json.dumps(root).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every member and element, with what holds it."""
    for key, one in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(one, (dict, list)):
            yield from _places(one)


class _Grammar:
    """An importer that also takes inputs that stand for profiles."""

    def __init__(self, importer: ImporterModule) -> None:
        self._importer = importer

    def sniff(self, head: memoryview) -> bool:
        return self._importer.sniff(head)

    def read(self, sources: Sequence[Source]) -> Reading:
        return self._importer.read([_profile_of(source) for source in sources])

    def dump(self, source: Source, offset: int) -> Iterator[str]:
        return self._importer.dump(_profile_of(source), offset)


def _profile_of(source: Source) -> Source:
    data = bytes(source.data)
    return replace(source, data=memoryview(changed(data))) if data[:1] < b"\x08" and len(data) > 5 else source


def seeds() -> Iterator[tuple[str, bytes]]:
    for nth, base in enumerate(bases()):
        yield f"text-{nth}", json.dumps(base).encode()
        for choice in range(4):
            yield f"changes-{nth}-{choice}", bytes([nth, choice]) + bytes(range(40, 72)) * 2
    yield "slabs", made.as_jslb(made.as_75(made.profile()))
    yield "wrapper", json.dumps({"profile": made.gecko()}).encode()


def options(context: ImportContext, choice: int) -> ImportContext:
    return context


def within(importer: ImporterModule) -> Any:
    return WithOptions(_Grammar(importer), options)


if __name__ == "__main__":
    make: Callable[[], Any] = seeds
    run("firefox", make, within)
