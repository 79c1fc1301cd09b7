"""The real Mono recordings: where they lie; and what a trace says of them, as texts and numbers that tests can compare.

Small ones are in fixtures/mono; the shared folder has all of them, and what an independent reader says about them.
"""

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import zstandard
from conftest import NEITHER, REPO, SHARED, or_skipped
from support import frame_names, load_opened

from traceferry.analysis.info.summary import summarize
from traceferry.common.report import Report
from traceferry.model import Table, Thread, ThreadData, Trace, TraceBuilder

ROOTS = [SHARED / "captures" / "mono", REPO / "fixtures" / "mono"]
NO_FILES = NEITHER.format("fixtures/mono")
# 328 MB, 79 million events.
LARGE = "large/"
ALL = 1 << 30
ZSTD = b"\x28\xb5\x2f\xfd"


@cache
def _files() -> dict[str, Path]:
    """Folder/name without .zst → where it is."""
    return {
        f"{path.parent.name}/{path.name.removesuffix('.zst')}": path
        for root in ROOTS
        for path in sorted(root.glob("*/*"))
    }


def names(suffix: str, folder: str = "") -> list[Any]:
    """The files with that suffix, for `parametrize`; the large ones are marked."""
    chosen = sorted(name for name in _files() if name.endswith(suffix) and name.startswith(folder))
    marked = [pytest.param(name, marks=pytest.mark.large) if name.startswith(LARGE) else name for name in chosen]
    return or_skipped(marked, f"{folder}*{suffix}: {NO_FILES}")


def path_of(name: str) -> Path:
    """name: folder/file without .zst. Skips the test where there is no such file."""
    if name not in _files():
        pytest.skip(f"{name}: {NO_FILES}")
    return _files()[name]


def content(name: str) -> bytes:
    data = path_of(name).read_bytes()
    return zstandard.ZstdDecompressor().stream_reader(data).read() if data[:4] == ZSTD else data


def expected_of(name: str) -> dict[str, Any]:
    """What an independent reader says: shared/captures/EXPECTED.md."""
    return dict(json.loads(content(name.removesuffix(".mlpd") + ".expected.json")))


@cache
def trace_of(name: str) -> TraceBuilder:
    return load_opened(path_of(name))


def apart(name: str) -> TraceBuilder:
    """The trace of a recording with a report of its own: what an exporter loses is no loss of the recording."""
    trace = TraceBuilder(trace_of(name))
    trace.report = Report()
    return trace


@cache
def summary_of(name: str) -> dict[str, Any]:
    """With every function, class and site. What is found only when threads are loaded is in the trace's report then."""
    return summarize(trace_of(name), top=ALL)


@cache
def threads_of(name: str) -> list[tuple[Thread, ThreadData]]:
    trace = trace_of(name)
    return [(thread, thread.load(trace)) for _, thread in trace.threads]


def markers_of(name: str, marker_type: str) -> list[tuple[Thread, Table]]:
    """The tables of one type of marker, with their threads."""
    return [
        (thread, table)
        for thread, data in threads_of(name)
        for found, table in data.markers.items()
        if found.name == marker_type
    ]


def n_markers(data: ThreadData, marker_type: str) -> int:
    return sum(len(table) for found, table in data.markers.items() if found.name == marker_type)


def values_of(name: str, marker_type: str, key: str) -> Counter[Any]:
    """How often a field of the markers has each value."""
    return Counter(value for _, table in markers_of(name, marker_type) for value in table[key].tolist())


class Spent(NamedTuple):
    times: int
    total_ns: int
    max_ns: int


def spent_by(name: str, marker_type: str, key: str) -> dict[Any, Spent]:
    """The durations of markers, by the values of a field."""
    found: dict[Any, Spent] = {}
    for _, table in markers_of(name, marker_type):
        for value, dur in zip(table[key].tolist(), table["dur"].tolist(), strict=True):
            known = found.get(value, Spent(0, 0, 0))
            found[value] = Spent(known.times + 1, known.total_ns + dur, max(known.max_ns, dur))
    return found


class Function(NamedTuple):
    calls: int
    total_ns: int
    self_ns: int
    samples: int


def functions_of(summary: dict[str, Any]) -> dict[str, Function]:
    return {f["name"]: Function(*(f[key] for key in Function._fields)) for f in summary["functions"]["top"]}


class Amount(NamedTuple):
    bytes: int
    objects: int


def allocated_of(summary: dict[str, Any]) -> dict[str, Amount]:
    """What each class allocated."""
    return {row["name"]: Amount(row["bytes"], row["count"]) for row in summary["allocations"]["classes"]}


def alive_of(shot: dict[str, Any]) -> dict[str, Amount]:
    """What each class has in a heap shot of `info`."""
    return {row["name"]: Amount(row["bytes"], row["objects"]) for row in shot["classes"]}


def stack_names(trace: Trace, stacks: Iterable[int]) -> list[tuple[str, ...]]:
    """The functions of each stack, the outermost first."""
    prefix, frame = (trace.stacks[column].tolist() for column in ("prefix", "frame"))
    names = frame_names(trace)
    known: dict[int, tuple[str, ...]] = {-1: ()}

    def names_of(stack: int) -> tuple[str, ...]:
        unknown = []
        while stack not in known:
            unknown.append(stack)
            stack = prefix[stack]
        found = known[stack]
        for each in reversed(unknown):
            found = known[each] = (*found, names[frame[each]])
        return found

    return [*map(names_of, stacks)]


def report_of(name: str) -> dict[str, int]:
    """Kind → count of the losses, also of those found when threads and heap shots are loaded."""
    return {issue["kind"]: issue["count"] for issue in summary_of(name)["issues"]}


def is_managed(trace: Trace, stack: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether the leaf is a method, not native code; False for stacks of -1."""
    kinds = np.array([trace.strings[int(name)] in ("Managed", "Wrapper") for name in trace.categories["name"]])
    # Where a method waits, its frame is idle.
    methods = np.unique(trace.frames["func"][kinds[trace.frames["category"]]])
    known = stack >= 0
    leaf = trace.stacks["frame"][np.where(known, stack, 0)]
    managed: np.ndarray[Any, Any] = known & np.isin(trace.frames["func"][leaf], methods)
    return managed
