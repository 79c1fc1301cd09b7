"""Sums of damaged times and sizes end at the largest number of 64 bits, and the report says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from conftest import shared
from hypothesis import given
from hypothesis import strategies as st
from support import load_checked
from test_info import Built

from traceferry.analysis.info.summary import summarize
from traceferry.common.report import Report
from traceferry.heap.classes import by_class
from traceferry.model import CALLS, HEAP_OBJECTS, HEAP_ROOTS, LEAVE, HeapGraph, Table, TraceBuilder, sums
from traceferry.symbolication.code_mapping import live_bytes
from traceferry.timeline._calls import FUNC_SUMS, OpenCalls

LARGEST = 2**63 - 1
NUMBERS = st.one_of(st.integers(-100, 100), st.integers(-LARGEST - 1, LARGEST))


def limited(exact: int) -> int:
    return max(-LARGEST, min(exact, LARGEST))


@given(st.lists(st.tuples(st.integers(0, 3), NUMBERS), max_size=30))
def test_sums_are_exact_or_the_limit(rows: list[tuple[int, int]]) -> None:
    group, values = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    exact = [sum(value for at, value in rows if at == nth) for nth in range(4)]
    assert sums.total_by(group, values, 4).tolist() == list(map(limited, exact))
    assert sums.total(values) == limited(sum(values.tolist()))
    assert sums.running(values).tolist() == [limited(sum(values.tolist()[: n + 1])) for n in range(len(values))]
    assert sums.magnitudes(values).tolist() == [min(abs(value), LARGEST) for value in values.tolist()]
    reverse = values[::-1].copy()
    assert sums.plus(values, reverse).tolist() == [
        limited(a + b) for a, b in zip(values.tolist(), reverse.tolist(), strict=True)
    ]


def test_only_numbers_at_the_limit_are_counted() -> None:
    report = Report()
    sums.note_saturated(report, {"a": [1, True, None, 2.5, {"b": LARGEST - 1}]}, "here")
    assert list(report) == []
    sums.note_saturated(report, {"a": [LARGEST, {"b": -LARGEST, "c": "d"}]}, "here")
    assert [(issue.kind, issue.count) for issue in report] == [("sums_saturated", 2)]


def test_calls_of_many_centuries() -> None:
    """Three threads with one call of 2^62 ns each."""
    trace = Built()
    for _ in range(3):
        rows = {"ts": [0, 2**62], "frame": [trace.main] * 2, "flags": [0, LEAVE]}
        trace.thread(calls=Table(CALLS, rows))
    summary = summarize(trace)
    (function,) = summary["functions"]["top"]
    assert (function["self_ns"], function["total_ns"], function["calls"]) == (LARGEST, LARGEST, 3)
    assert [(issue["kind"], issue["count"]) for issue in summary["issues"]] == [("sums_saturated", 3)]


def test_totals_of_calls() -> None:
    """Also where a damaged stream begins before time zero, and for callees that last longer than their caller can."""
    found, open_calls = np.zeros(2, FUNC_SUMS), OpenCalls()
    ts = np.array([-LARGEST, -5, LARGEST, LARGEST], np.int64)
    frame, flags = np.array([0, 1, 1, 0], np.int32), np.array([0, 0, 1, 1], np.uint8)
    for _ in range(2):
        open_calls.add_up(ts, frame, flags, np.arange(2, dtype=np.int32), found)
    assert found.tolist() == [(2, LARGEST, 0, 0), (2, LARGEST, LARGEST, 0)]


def test_allocations_and_markers_and_code() -> None:
    trace = Built()
    rows = [(0, 2**62, "Buffer", -1), (1, 2**62, "Buffer", -1), (2, -(2**62), "Buffer", -1), (3, -(2**63), "List", -1)]
    summary = summarize(trace.thread(allocations=trace.allocations(*rows)))
    whole = summary["allocations"]
    assert (whole["bytes"], whole["freed_bytes"]) == (LARGEST, LARGEST)
    assert [(row["name"], row["bytes"], row["freed_bytes"]) for row in whole["classes"]] == [
        ("Buffer", LARGEST, 2**62), ("List", 0, LARGEST),
    ]  # fmt: skip
    never = np.array([-1, -1])
    assert live_bytes(np.array([1, 2]), never, np.array([2**62, 2**62]))[1].tolist() == [2**62, LARGEST]


def test_sizes_of_classes() -> None:
    """Three objects of one class, held by a root."""
    trace = TraceBuilder()
    objects = Table(HEAP_OBJECTS, {"size": [2**62] * 3})
    graph = HeapGraph(objects, np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), Table(HEAP_ROOTS, {"object": [0]}))
    assert by_class(trace, graph).bytes.max() == LARGEST


def test_the_recording_that_was_found_by_fuzzing() -> None:
    path: Path = shared("captures/bad/basic-sums-overflow.xray")
    top = summarize(load_checked(path))["functions"]["top"]
    assert [(row["name"], row["self_ns"], row["total_ns"]) for row in top] == [
        ("function 1", 4683743612465315850, LARGEST), ("function 2", 4683743612465315845, 4683743612465315845),
    ]  # fmt: skip
