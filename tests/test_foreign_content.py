"""What other tools' recordings have beside ours: named arguments of any kind, subcategories, fields of further formats,
categories of markers by any name, and rows that stand for several samples. Traces are built here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outputs import saved
from readers import perfetto
from test_perfetto_heap import START, Built, thread

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.series import SAMPLES as SAMPLED
from traceferry.analysis.totals.trees import Trees
from traceferry.model import (
    ARGUMENTS,
    SAMPLES,
    Event,
    FieldFormat,
    MarkerField,
    MarkerType,
    Table,
    ThreadData,
)
from traceferry.model.laws import check

MS = 10**6


def bits(value: float | int) -> int:
    dtype: Any = np.float64 if isinstance(value, float) else np.int64
    return int(np.array([value], dtype).view(np.uint64)[0])


# (key, format, value, what Firefox's field has, Perfetto's annotation)
NAMED: list[tuple[str, str, Any, tuple[str, Any], tuple[str, Any]]] = [
    ("who", "text", "me", ("string", "me"), ("who", "me")),
    ("size", "bytes", 4096, ("bytes", 4096), ("size_bytes", 4096)),
    ("delta", "integer", -5, ("integer", -5), ("delta", -5)),
    ("took", "duration", 1_500_000, ("duration", 1.5), ("took_ns", 1_500_000)),
    ("share", "percentage", 0.25, ("percentage", 0.25), ("share", 0.25)),
    ("ratio", "decimal", -1.5, ("decimal", -1.5), ("ratio", -1.5)),
    ("at", "hex", 1 << 63, ("string", hex(1 << 63)), ("at", 1 << 63)),
    ("when", "time", START + 2 * MS, ("time", 2.0), ("when_ns", START + 2 * MS)),
    ("page", "url", "https://example.org/", ("url", "https://example.org/"), ("page", "https://example.org/")),
    ("file", "path", "/tmp/a", ("file-path", "/tmp/a"), ("file", "/tmp/a")),
    ("type", "text", "kept apart", ("string", "kept apart"), ("type", "kept apart")),
    ("raw", "", 7, ("string", "7"), ("raw", 7)),
]


def with_arguments() -> Built:
    """A call has all of NAMED, and an argument without a name; it and another call and a marker are one flow."""
    built = Built()
    n, text = len(NAMED), built.text
    arguments = Table(
        ARGUMENTS,
        {
            "call": [0] * (n + 1) + [1],
            "position": [*range(n + 1), -1],
            "key": [text(key) for key, *_ in NAMED] + [-1, -1],
            "format": [text(form) if form else -1 for _, form, *_ in NAMED] + [-1, -1],
            "text": [text(value) if isinstance(value, str) else -1 for _, _, value, *_ in NAMED] + [-1, -1],
            "value": np.array(
                [0 if isinstance(v, str) else v if f in ("hex", "") else bits(v) for _, f, v, *_ in NAMED] + [99, 0],
                np.uint64,
            ),
            "flow": [0] * n + [5, 5],
        },
    )
    thread(built.process(), ThreadData(calls=built.calls("A B b a", 0), arguments=arguments))
    return built


def firefox_of(built: Built, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(saved(built.trace, folder / "out.json").read_bytes())
    return found


def rows_of(profile: dict[str, Any], nth: int = 0) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = profile["threads"][nth]["markers"]["data"]
    return rows


def schema_of(profile: dict[str, Any], name: str) -> dict[str, Any]:
    return next(schema for schema in profile["meta"]["markerSchema"] if schema["name"] == name)


def test_named_arguments_in_firefox(tmp_path: Path) -> None:
    built = with_arguments()
    assert check(built.trace) == []
    profile = firefox_of(built, tmp_path)
    fields = {field["label"]: field for field in schema_of(profile, "Call")["fields"]}
    outer, inner = rows_of(profile)
    for key, _, _, (form, value), _ in NAMED:
        assert (fields[key]["format"], outer[fields[key]["key"]]) == (form, value)
    assert outer["arg0"] == "99"
    assert outer["type"] == "Call"  # and the argument of this name is elsewhere
    strings = profile["shared"]["stringArray"]
    assert strings[outer["flow"]] == strings[inner["flow"]] == "5"
    assert set(inner) == {"type", "function", "flow"}


def test_named_arguments_in_perfetto(tmp_path: Path) -> None:
    built = with_arguments()
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    outer, inner = read.slices
    assert outer.args == {**{name: value for *_, (name, value) in NAMED}, f"arg{len(NAMED)}": 99}
    assert inner.args == {}


def test_arrows_between_calls_in_trace_processor(tmp_path: Path, trace_processor: Any) -> None:
    with trace_processor(saved(with_arguments().trace, tmp_path / "out.pftrace")) as tp:
        found = tp.query(
            "SELECT o.name AS a, i.name AS b FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in"
        )
        assert [(row.a, row.b) for row in found] == [("A", "B")]
        values = {row.key: row.display_value for row in tp.query("SELECT key, display_value FROM args")}
        assert float(values["debug.ratio"]) == -1.5


def test_more_names_than_a_schema_has(tmp_path: Path) -> None:
    built = Built()
    names = [built.text(f"key {i}") for i in range(100)]
    arguments = Table(ARGUMENTS, {"call": [0] * 100, "position": np.arange(100), "key": names, "value": np.arange(100)})
    thread(built.process(), ThreadData(calls=built.calls("A a", 0), arguments=arguments))
    profile = firefox_of(built, tmp_path)
    assert len(schema_of(profile, "Call")["fields"]) == 1 + 64 + 1


# ---------------------------------------------------------------- markers

FORMS: dict[FieldFormat, tuple[Any, Any]] = {
    "decimal": (-0.5, -0.5), "percentage": (0.75, 0.75), "time": (START + MS, 1.0), "url": ("http://a/", "http://a/"),
    "path": ("/a", "/a"), "json": ('{"a":[1]}', '{"a":[1]}'),
}  # fmt: skip
FREE = MarkerType(
    "Paint", "Of another tool",
    (*(MarkerField(form, form.title(), form) for form in FORMS), MarkerField("f", "F", "flow")),
    category="Graphics", color="teal",
)  # fmt: skip


def with_markers(**changes: Any) -> Built:
    built = Built()
    columns = {
        form: np.array([value] * 2, object if isinstance(value, str) else None) for form, (value, _) in FORMS.items()
    }
    table = Table(FREE.spec, {"ts": START + np.arange(2), **columns, "f": [0, 3], **changes})
    thread(built.process(), ThreadData(markers={FREE: table}))
    return built


def test_fields_of_further_formats_and_free_categories(tmp_path: Path) -> None:
    built = with_markers()
    assert check(built.trace) == []
    profile = firefox_of(built, tmp_path)
    first, second = rows_of(profile)
    assert {form: first[form] for form in FORMS} == {form: shown for form, (_, shown) in FORMS.items()}
    assert "f" not in first
    assert profile["shared"]["stringArray"][second["f"]] == "3"
    assert first["color"] == "teal"
    (category,) = set(profile["threads"][0]["markers"]["category"])
    assert profile["meta"]["categories"][category] == {"name": "Graphics", "color": "teal", "subcategories": ["Other"]}
    formats = {field["key"]: field["format"] for field in schema_of(profile, "Paint")["fields"]}
    assert (formats["path"], formats["f"], formats["time"]) == ("file-path", "flow-id", "time")
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert read.errors == []
    one, _ = read.instants
    assert one.categories == ("Graphics",)
    assert (one.args["decimal"], one.args["time_ns"], one.args["url"]) == (-0.5, START + MS, "http://a/")


def test_json_becomes_nested_arguments(tmp_path: Path, trace_processor: Any) -> None:
    with trace_processor(saved(with_markers().trace, tmp_path / "out.pftrace")) as tp:
        found = {row.key: row.display_value for row in tp.query("SELECT key, display_value FROM args")}
    assert found["debug.json.a[0]"] == "1"


@pytest.mark.parametrize(("changes", "law"), [
    ({"decimal": [np.nan, 0]}, "not finite"),
    ({"percentage": [0, np.inf]}, "not finite"),
    ({"json": np.array(["{", ""], object)}, "not JSON"),
])  # fmt: skip
def test_markers_that_break_a_law(changes: dict[str, Any], law: str) -> None:
    (broken,) = check(with_markers(**changes).trace)
    assert law in broken


@pytest.mark.parametrize(("columns", "law"), [
    ({"format": "colour"}, "of the format"),
    ({"format": "decimal", "text": "a"}, "format of a number"),
    ({"position": -1}, "without a position"),
    ({"key": 10**6}, "outside strings"),
])  # fmt: skip
def test_arguments_that_break_a_law(columns: dict[str, Any], law: str) -> None:
    built = Built()
    row = {name: [built.text(value) if isinstance(value, str) else value] for name, value in columns.items()}
    arguments = Table(ARGUMENTS, {"call": [0], "position": [0], **row})
    thread(built.process(), ThreadData(calls=built.calls("A a", 0), arguments=arguments))
    (broken,) = check(built.trace)
    assert law in broken


# ---------------------------------------------------------------- subcategories


def with_parts() -> Built:
    built = Built()
    trace = built.trace
    parent = trace.add_category("Layout", "purple")
    stacks = []
    for name in ("Layout", "Flow", "Text"):
        category = parent if name == "Layout" else trace.add_category(name, "purple", parent)
        frame = trace.frames.intern(func=trace.funcs.intern(name=built.text(name)), category=category)
        stacks.append(trace.stacks.intern(frame=frame))
    trace.events = [Event("cpu-clock", "ns")]
    thread(built.process(), ThreadData(samples=Table(SAMPLES, {"ts": START + np.arange(3), "stack": stacks})))
    return built


def test_parts_of_categories(tmp_path: Path) -> None:
    built = with_parts()
    assert check(built.trace) == []
    profile = firefox_of(built, tmp_path)
    layout = {"name": "Layout", "color": "purple", "subcategories": ["Other", "Flow", "Text"]}
    number = profile["meta"]["categories"].index(layout)
    frames = profile["shared"]["frameTable"]
    assert frames["category"] == [number] * 3
    assert frames["subcategory"] == [0, 1, 2]


def test_a_part_of_a_part_is_no_category() -> None:
    built = with_parts()
    built.trace.add_category("Line", "purple", 1)
    assert check(built.trace) == ["categories: a parent that has a parent"]


# ---------------------------------------------------------------- rows that stand for several samples


def weighted(*weights: int) -> Built:
    built = Built()
    built.trace.events = [Event("samples", "samples", MS)]
    stacks = [built.stack("main", name) for name in ("a", "b")]
    ts = START + np.arange(len(weights)) * MS
    samples = Table(SAMPLES, {"ts": ts, "stack": stacks[: len(weights)], "weight": weights})
    thread(built.process(), ThreadData(samples=samples))
    return built


def test_a_row_of_several_samples(tmp_path: Path) -> None:
    built = weighted(7, 1)
    assert check(built.trace) == []
    told = summarize(built.trace)
    assert told["processes"][0]["threads"][0]["samples"] == 8
    assert {f["name"]: (f["samples"], f["total_samples"]) for f in told["functions"]["top"]} == {
        "a": (7, 7), "b": (1, 1), "main": (0, 8),
    }  # fmt: skip
    samples = firefox_of(built, tmp_path)["threads"][0]["samples"]
    assert (samples["weight"], samples["weightType"]) == ([7, 1], "samples")
    read = perfetto.read(saved(built.trace, tmp_path / "out.pftrace"))
    assert sorted(sample.weight for sample in read.samples) == [1, 7]


def test_rows_of_one_sample_have_no_weights_in_firefox(tmp_path: Path) -> None:
    assert firefox_of(weighted(1, 1), tmp_path)["threads"][0]["samples"]["weight"] is None


def test_trees_count_samples_by_weight() -> None:
    trace = weighted(7, 1).trace
    trees = Trees(trace)
    collected = collect(trace, trees)
    assert collected.n_samples == collected.of_events[0].samples == 8
    (series,) = trees.series
    assert (series.measure, sorted(series.amount.tolist())) == (SAMPLED, [1, 7])


def test_no_row_stands_for_fewer_than_no_samples() -> None:
    assert any("fewer" in law for law in check(weighted(-1, 1).trace))
