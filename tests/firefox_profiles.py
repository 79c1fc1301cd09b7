"""Profiles of the Firefox Profiler for tests: those of others in ../shared, and small ones, made here."""

from __future__ import annotations

import gzip
import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from conftest import NO_SHARED, SHARED
from support import load_checked

from traceferry.model import Trace

VIEWERS = SHARED / "captures" / "viewers"
MAGIC = bytes.fromhex("dcdf4a534c420100")


def entries(*kinds: str) -> list[dict[str, Any]]:
    """What the manifest says of the files of these kinds; without the files, one that makes its test skip."""
    if not (VIEWERS / "manifest.json").exists():
        return [{"file": ""}]
    return [one for one in json.loads((VIEWERS / "manifest.json").read_text()) if one["kind"] in kinds]


def path_of(entry: dict[str, Any]) -> Path:
    if not entry["file"]:
        pytest.skip(f"captures/viewers: {NO_SHARED}")
    return VIEWERS / entry["file"]


def parsed(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


# ---------------------------------------------------------------- made here


def profile(version: int = 49, n_threads: int = 1, **meta: Any) -> dict[str, Any]:
    """A processed profile with the tables in its threads, as samply writes it until version 55: main → work (inlined)
    → work; a weighted sample, markers of all phases, a counter."""
    return {
        "meta": {
            "preprocessedProfileVersion": version, "version": 29, "interval": 1, "startTime": 1_600_000_000_000.5,
            "product": "demo", "symbolicated": True,
            "categories": [
                {"name": "Other", "color": "grey", "subcategories": ["Other"]},
                {"name": "JavaScript", "color": "yellow", "subcategories": ["Other", "Ion", "Baseline"]},
            ],
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
            "markerSchema": [
                {"name": "Load", "display": [], "tableLabel": "{marker.data.url}", "data": [
                    {"key": "url", "label": "URL", "format": "unique-string"}, {"key": "took", "format": "duration"},
                    {"key": "size", "format": "bytes"},
                ]},
            ],
        } | meta,
        "libs": [{
            "name": "demo", "path": "/demo", "debugName": "demo", "debugPath": "/demo", "arch": "x86_64",
            "breakpadId": "0" * 32 + "A", "codeId": "00112233445566778899aabbccddeeff00112233",
        }],
        "counters": [{
            "name": "malloc", "category": "Memory", "description": "memory", "pid": "7", "mainThreadIndex": 0,
            "samples": {"time": [0, 2], "count": [100, -40], "length": 2},
        }],
        "threads": [thread(nth) for nth in range(n_threads)],
    }  # fmt: skip


def thread(nth: int = 0) -> dict[str, Any]:
    return {
        "name": f"thread {nth}", "isMainThread": nth == 0, "processName": "demo", "processType": "default",
        "pid": "7", "tid": 7 + nth, "processStartupTime": 0, "processShutdownTime": None, "registerTime": 0,
        "unregisterTime": None, "pausedRanges": [],
        "stringArray": ["main", "work", "inner", "a.c", "Load", "http://x/", "Text", "Wait"],
        "funcTable": {
            "name": [0, 1, 2], "isJS": [False, True, False], "relevantForJS": [False] * 3, "resource": [0, -1, 0],
            "fileName": [3, 3, None], "lineNumber": [1, 5, None], "columnNumber": [None, 3, None], "length": 3,
        },
        "resourceTable": {"lib": [0], "name": [0], "host": [None], "type": [1], "length": 1},
        "nativeSymbols": {"libIndex": [0], "address": [16], "name": [0], "functionSize": [64], "length": 1},
        "frameTable": {
            "address": [16, 16, -1], "inlineDepth": [0, 1, 0], "category": [0, None, 1], "subcategory": [0, None, 1],
            "func": [0, 2, 1], "nativeSymbol": [0, 0, None], "innerWindowID": [0, 0, 0],
            "implementation": [None] * 3, "line": [2, 9, None], "column": [None, None, 4], "length": 3,
        },
        "stackTable": {"prefix": [None, 0, 1], "frame": [0, 1, 2], "length": 3},
        "samples": {
            "stack": [2, 0, None, 1], "time": [0, 1, 2.5, 4], "weight": [1, 3, 1, 1], "weightType": "samples",
            "threadCPUDelta": [0, 500, 10, None], "length": 4,
        },
        "markers": {
            "name": [4, 6, 7, 7, 7], "startTime": [1, 2, 1, 2, None], "endTime": [3, None, None, None, 4],
            "phase": [1, 0, 2, 2, 3], "category": [0, 0, 1, 1, 1],
            "data": [
                {"type": "Load", "url": 5, "took": 1.5, "size": 10, "cause": {"time": 0, "stack": 1}}, None,
                {"type": "Wait", "n": 1, "why": "x"}, {"type": "Wait", "n": 2, "why": {"a": [1]}},
                {"type": "Wait", "n": 3},
            ],
            "length": 5,
        },
    }  # fmt: skip


def as_shared(given: dict[str, Any], version: int = 58) -> dict[str, Any]:
    """The same with one set of tables, of the first thread, as from version 56 on; files are a table, as from 58 on."""
    first = given["threads"][0]
    names = ("stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols")
    shared = {name: dict(first[name]) for name in names} | {"stringArray": first["stringArray"]}
    shared["funcTable"]["source"] = [0 if file is not None else None for file in shared["funcTable"].pop("fileName")]
    shared["sources"] = {"filename": [3], "id": [None], "length": 1}
    taken = (*names, "stringArray")
    threads = [{key: value for key, value in one.items() if key not in taken} for one in given["threads"]]
    meta = given["meta"] | {"preprocessedProfileVersion": version}
    return given | {"meta": meta, "shared": shared, "threads": threads}


def as_75(given: dict[str, Any]) -> dict[str, Any]:
    """The same with offsets of prefixes and with flags."""
    made = as_shared(given, 75)
    shared = made["shared"]
    prefix = shared["stackTable"].pop("prefix")
    shared["stackTable"]["prefixOffset"] = [0 if p is None else nth - p for nth, p in enumerate(prefix)]
    frames, funcs = shared["frameTable"], shared["funcTable"]
    frames["lib"] = [0, 0, 0]
    frames["flags"] = [
        (depth > 0) | 2 * (address >= 0) | 4 * (category is not None) | 8 * (symbol is not None)
        | 16 * (line is not None) | 32 * (column is not None)
        for depth, address, category, symbol, line, column in zip(
            *(frames[name] for name in ("inlineDepth", "address", "category", "nativeSymbol", "line", "column")),
            strict=True,
        )
    ]  # fmt: skip
    del frames["inlineDepth"], frames["implementation"], shared["resourceTable"]["lib"]
    funcs["flags"] = [
        js | 4 * (resource >= 0) | 8 * (source is not None) | 16 * (line is not None) | 32 * (column is not None)
        for js, resource, source, line, column in zip(
            *(funcs[name] for name in ("isJS", "resource", "source", "lineNumber", "columnNumber")), strict=True
        )
    ]
    del funcs["isJS"], funcs["relevantForJS"]
    for table in (frames, funcs):
        for name, column in table.items():
            if isinstance(column, list):
                table[name] = [0 if value in (None, -1) else value for value in column]
    return made


def as_jslb(given: dict[str, Any]) -> bytes:
    """The same as slabs: threads and the stack table's columns apart."""
    slabs: list[tuple[int, bytes]] = []

    def slab(kind: int, data: bytes) -> dict[str, int]:
        slabs.append((kind, data))
        return {"$s": len(slabs) - 1}

    root = dict(given)
    if "shared" in root:
        stacks = dict(root["shared"]["stackTable"])
        for name in ("frame", "prefixOffset"):
            stacks[name] = slab(4, struct.pack(f"<{len(stacks[name])}i", *stacks[name]))
        root["shared"] = root["shared"] | {"stackTable": stacks}
    threads = []
    for one in given["threads"]:
        times = one["samples"]["time"]
        samples = one["samples"] | {"time": slab(7, struct.pack(f"<{len(times)}d", *times))}
        threads.append(one | {"samples": samples})
    root["threads"] = slab(10, json.dumps(threads).encode())
    slabs.append((10, json.dumps(root).encode()))
    return packed_slabs(slabs, len(slabs) - 1)


def packed_slabs(slabs: list[tuple[int, bytes]], root: int, version: int = 1) -> bytes:
    head, body = b"", b""
    begin = 20 + 12 * len(slabs)
    for kind, data in slabs:
        body += b"\0" * (-(begin + len(body)) % 8)
        head += struct.pack("<3I", kind, begin + len(body), len(data))
        body += data
    return MAGIC + struct.pack("<3I", version, len(slabs), root) + head + body


def gecko(version: int = 29) -> dict[str, Any]:
    """A Gecko profile with a JavaScript function, an address in a library, a label, and markers of every phase."""
    schema = {"location": 0, "relevantForJS": 1, "innerWindowID": 2, "implementation": 3, "line": 4, "column": 5,
              "category": 6, "subcategory": 7}  # fmt: skip
    sample = {"schema": {"stack": 0, "time": 1, "eventDelay": 2}, "data": [[2, 1, 0], [1, 2], [None, 3, 0]]}
    cause = {"name": "SyncProfile", "samples": {"schema": {"stack": 0, "time": 1}, "data": [[1, 1]]}}
    return {
        "meta": {"version": version, "startTime": 1_600_000_000_000, "interval": 1, "product": "Firefox",
                 "markerSchema": [],
                 "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}]},
        "libs": [{"name": "xul", "start": 0x1000, "end": 0x2000, "offset": 0x100, "breakpadId": "A" * 33}],
        "threads": [{
            "name": "GeckoMain", "pid": 9, "tid": 9, "registerTime": 0, "unregisterTime": None,
            "stringTable": ["(root)", "0x1234", "f (https://a/b.js:3:7)", "Wait"],
            "frameTable": {"schema": schema, "data": [[0], [1], [2, True, 0, None, 4, 2, 0, 0]]},
            "stackTable": {"schema": {"prefix": 0, "frame": 1}, "data": [[None, 0], [0, 1], [1, 2]]},
            "samples": sample,
            "markers": {
                "schema": {"name": 0, "startTime": 1, "endTime": 2, "phase": 3, "category": 4, "data": 5},
                "data": [[3, 1, None, 2, 0, {"type": "tracing", "stack": cause}],
                         [3, None, 2, 3, 0, {"type": "tracing"}]],
            },
        }],
        "processes": [], "pausedRanges": [],
    }  # fmt: skip


def written(content: Any, path: Path) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


# ---------------------------------------------------------------- totals


def func_path(trace: Trace, stack: int) -> tuple[str, ...]:
    """The functions of a stack, the outermost first."""
    found: list[str] = []
    prefix, frame, func = trace.stacks["prefix"], trace.stacks["frame"], trace.frames["func"]
    while stack >= 0:
        found.append(trace.func_name(int(func[frame[stack]])))
        stack = int(prefix[stack])
    return tuple(reversed(found))


def totals(trace: Trace) -> dict[str, Any]:
    """What has to be equal in two versions of a profile: by thread, weights and CPU time of call paths, markers with
    their fields, counters and allocations; times from the start on."""
    made: dict[str, Any] = {}
    start = trace.start_ts
    for nth, (process, thread) in enumerate(trace.threads):
        data = thread.load(trace)
        inside = data.trace
        paths: Counter[Any] = Counter()
        for table in (data.samples, *data.other_samples.values()):
            rows = zip(*(table[name].tolist() for name in ("ts", "stack", "weight", "cpu_ns")), strict=True)
            for ts, stack, weight, cpu in rows:
                paths[ts - start, func_path(inside, stack), weight, cpu] += 1
        markers: Counter[Any] = Counter()
        for kind, table in data.markers.items():
            keys = sorted(field.key for field in kind.fields)
            columns = [table[key].tolist() for key in ("ts", "dur", *keys)]
            for ts, dur, *fields in zip(*columns, strict=True):
                shown = tuple(
                    (key, str(value)) for key, value in zip(keys, fields, strict=True) if value not in ("", 0)
                )
                markers[kind.name, ts - start, dur, shown] += 1
        allocated = [
            tuple(row) for row in zip(*(data.allocations[c].tolist() for c in ("size", "object")), strict=True)
        ]
        made[f"{nth} {process.pid} {thread.name}"] = (paths, markers, allocated)
    for process in trace.processes:
        for counter in process.counters:
            made[f"{process.pid} {counter.name}"] = [
                (counter.values["ts"] - start).tolist(),
                counter.values["value"].tolist(),
            ]
    return made


def loaded(content: Any, tmp_path: Path, name: str = "p.json", **options: Any) -> Trace:
    """Loads a profile, which obeys the laws."""
    return load_checked(written(content, tmp_path / name), **options)
