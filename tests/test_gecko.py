"""The Gecko profile, raw format, version 36."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outputs import NAMES, saved, trace_named
from support import calls_of, events_of, kinds, load_checked
from test_firefox import ns, states_by_time
from test_foreign_content import weighted

from traceferry.common.issue_kinds import KINDS
from traceferry.model import Trace

Load = Callable[..., Trace]
EVERY = pytest.mark.parametrize("name", NAMES)
SCHEMAS = {
    "samples": ("stack", "time"),
    "frameTable": (
        "location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category", "subcategory",
    ),
    "stackTable": ("prefix", "frame"),
    "markers": ("name", "startTime", "endTime", "phase", "category", "data"),
}  # fmt: skip


@pytest.fixture
def both(load: Load, tmp_path: Path) -> Callable[[str], tuple[Trace, dict[str, Any]]]:
    def convert(name: str) -> tuple[Trace, dict[str, Any]]:
        trace = trace_named(name, load)
        return trace, json.loads(saved(trace, tmp_path / "out.gecko.json").read_bytes())

    return convert


Both = Callable[[str], tuple[Trace, dict[str, Any]]]


def rows(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Each row by its schema's names."""
    return [{key: row[at] if at < len(row) else None for key, at in table["schema"].items()} for row in table["data"]]


@EVERY
def test_structure(both: Both, name: str) -> None:
    trace, profile = both(name)
    assert profile["meta"]["version"] == 36
    assert profile["meta"]["presymbolicated"] is True
    assert profile["meta"]["interval"] > 0
    assert profile["libs"] == profile["processes"] == []
    assert all("data" in schema for schema in profile["meta"]["markerSchema"])
    assert len(profile["threads"]) == max(len(trace.threads), 1)
    for thread in profile["threads"]:
        for table, columns in SCHEMAS.items():
            assert set(thread[table]["schema"]) >= set(columns)
        n_stacks, n_frames = len(thread["stackTable"]["data"]), len(thread["frameTable"]["data"])
        n_strings = len(thread["stringTable"])
        for i, stack in enumerate(rows(thread["stackTable"])):
            assert stack["prefix"] is None or 0 <= stack["prefix"] < i
            assert 0 <= stack["frame"] < n_frames
        for frame in rows(thread["frameTable"]):
            assert 0 <= frame["location"] < n_strings
            assert 0 <= frame["category"] < len(profile["meta"]["categories"])
        assert all(s["stack"] is None or 0 <= s["stack"] < n_stacks for s in rows(thread["samples"]))
        assert all(0 <= m["name"] < n_strings for m in rows(thread["markers"]))


@EVERY
def test_samples_are_the_calls(both: Both, name: str) -> None:
    """Every stack that lasts, at its time; a library may stand behind the name."""
    trace, profile = both(name)
    for (_, thread), written in zip(trace.threads, profile["threads"], strict=False):
        names = [written["stringTable"][frame["location"]] for frame in rows(written["frameTable"])]
        paths: list[tuple[str, ...]] = []
        for stack in rows(written["stackTable"]):
            paths.append((*(paths[stack["prefix"]] if stack["prefix"] is not None else ()), names[stack["frame"]]))
        lasting: list[tuple[int, tuple[str, ...]]] = []
        for sample in rows(written["samples"]):
            time = ns(sample["time"])
            if lasting and lasting[-1][0] == time:
                lasting.pop()
            path = () if sample["stack"] is None else paths[sample["stack"]]
            lasting.append((time, tuple(function.split(" (in ")[0] for function in path)))
        assert lasting == states_by_time(trace, thread.load(trace))


@EVERY
def test_markers(both: Both, name: str) -> None:
    trace, profile = both(name)
    types = {schema["name"] for schema in profile["meta"]["markerSchema"]}
    for (_, thread), written in zip(trace.threads, profile["threads"], strict=False):
        data = thread.load(trace)
        found = rows(written["markers"])
        n_calls = sum(bool(call.args) for call in calls_of(trace, data))
        assert len(found) == n_calls + sum(map(len, events_of(data).values())) + len(data.states)
        for marker in found:
            assert marker["data"]["type"] in types
            assert marker["phase"] == (0 if marker["endTime"] is None else 1)
            assert marker["endTime"] is None or marker["endTime"] >= marker["startTime"] >= 0


def test_what_it_cannot_carry_is_reported(both: Both) -> None:
    trace, _ = both("fdr-c19-pie-events.xray")
    assert {"weights_dropped", "columns_dropped"} <= kinds(trace.report)


@pytest.mark.parametrize(("weights", "are_dropped"), [((7, 1), True), ((3, 3), True), ((1, 1), False)])
def test_weights_of_samples_are_told(weights: tuple[int, int], are_dropped: bool, tmp_path: Path) -> None:
    """Each sample counts one here, also one that stands for several."""
    trace = weighted(*weights).trace
    saved(trace, tmp_path / "x.gecko.json")
    assert ("weights_dropped" in kinds(trace.report)) == are_dropped
    assert KINDS["weights_dropped"].is_told
    # The delays, without which the viewer refuses samples, are none.
    assert "members_not_read" not in kinds(load_checked(tmp_path / "x.gecko.json").report)


def test_the_processed_format_loses_nothing(load: Load, tmp_path: Path) -> None:
    trace = trace_named("fdr-c19-pie-events.xray", load)
    saved(trace, tmp_path / "out.json")
    assert not trace.report.lossy
