"""Time on a page: its parts, the order in which one thread ran, and the heatmap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import Called, Opened, browser, data_of, many_paths, sampled
from test_page import RECORDINGS, own_of, saved

from traceferry.exporters.html.recording import FEWEST_COLUMNS, MOST_PARTS, time_parts
from traceferry.model import Event, Trace

MS = 1_000_000
MAIN, PARSE, PRINT = Called("main"), Called("parse"), Called("print")


def lasting(duration_ns: int, events: bool = True) -> Trace:
    trace = sampled([(MAIN,)])
    trace.bounds = (0, duration_ns)
    trace.events = [Event("cpu-clock", "ns", 1000, "clock")] if events else []
    return trace


# ---------------------------------------------------------------- parts of time


@pytest.mark.parametrize(
    ("duration_ns", "column_ns", "width_ns"),
    [
        (60 * 10**9, 10**9, 10**9 // 128),
        (4_370_000_000, 10**8, 10**8 // 128),
        (20 * 10**9, 10**9, 10**9 // 256),
        (199 * 10**9, 10**9, 10**9 // 32),
        (3600 * 10**9, 10**11, 10**11 // 128),
        (1, 1, 1),
        (19, 1, 1),
        (10_000, 100, 25),
    ],
)
def test_parts_of_time_are_parts_of_a_round_one(duration_ns: int, column_ns: int, width_ns: int) -> None:
    n, width, column = time_parts(lasting(duration_ns))
    assert (column, width) == (column_ns, width_ns)
    assert n * width > duration_ns
    assert n <= MOST_PARTS
    assert duration_ns < FEWEST_COLUMNS or FEWEST_COLUMNS <= duration_ns / column < 10 * FEWEST_COLUMNS + 10


def test_every_sample_of_a_small_recording_has_a_time_of_its_own(tmp_path: Path) -> None:
    data = data_of(saved(sampled([(MAIN, PARSE), (MAIN, PRINT)] * 50), tmp_path))
    (series,) = (series for series in data["series"] if data["measures"][series["measure"]]["name"] == "samples")
    assert len(series["bucket"]) == 100
    assert data["time"]["column_ns"] % data["time"]["width_ns"] == 0


def test_parts_of_time_are_joined_where_there_is_no_room_and_sums_stay(tmp_path: Path) -> None:
    path = saved(many_paths(60_000), tmp_path, without=["firefox", "perfetto"])
    data = data_of(path)
    assert data["time"]["buckets"] < MOST_PARTS
    assert sum(own_of(data, "samples").values()) == 240_000


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


def opened(chromium: Any, path: Path, fragment: str = "") -> Opened:
    return Opened(chromium.new_context(viewport={"width": 1280, "height": 900}), path.as_uri() + fragment)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """parse, print, parse, and another thread that does nothing but print."""
    in_turn = [(MAIN, PARSE)] * 40 + [(MAIN, PRINT)] * 20 + [(MAIN, PARSE)] * 40
    return saved(sampled(in_turn, [(PRINT,)] * 30), tmp_path_factory.mktemp("time"))


SPANS = """page.flame.graph.rows[argument].map(({ node }) => [page.flame.tree.nameOf(node),
    ...page.flame.tree.spanOf(node).map((x) => Math.round(100 * x)), page.flame.tree.totalOf(node)])"""


def test_one_thread_in_the_order_of_time(chromium: Any, page: Path) -> None:
    shown = opened(chromium, page, "#from=time")
    whole = shown.eval("page.recording.nBuckets * page.recording.bucketNs") / MS
    at = [round(100 * ms / whole) for ms in (0, 40, 60, 100)]
    assert shown.eval(SPANS, 1) == [["main", at[0], at[3], 100]]
    assert shown.eval(SPANS, 2) == [
        ["parse", at[0], at[1], 40], ["print", at[1], at[2], 20], ["parse", at[2], at[3], 40],
    ]  # fmt: skip
    assert shown.page.input_value(".in-order select") == shown.eval("page.recording.threads[0].id")
    shown.page.select_option(".in-order select", label="thread2 2")
    shown.settle()
    assert shown.names(1) == ["print"]
    assert shown.page.inner_text(".threads summary") == "1 of 2 threads"


def test_a_range_is_dragged_in_the_order_of_time(chromium: Any, page: Path) -> None:
    shown = opened(chromium, page, "#from=time")
    box = shown.page.locator(".flame").bounding_box()
    across = box["width"] * 100 * MS / shown.eval("page.recording.nBuckets * page.recording.bucketNs")
    shown.page.mouse.move(box["x"] + 0.45 * across, box["y"] + 30)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 0.55 * across, box["y"] + 30, steps=4)
    shown.page.mouse.up()
    shown.settle()
    first, last = shown.eval("page.flame.range")
    width = shown.eval("page.recording.bucketNs")
    assert (first * width / MS, (last + 1) * width / MS) == (pytest.approx(45, abs=1), pytest.approx(55, abs=1))
    assert shown.names(2) == ["print"]
    assert shown.eval("page.flame.graph.window") == [0, 1]
    shown.go(**{"from": "roots"})
    assert shown.names(2) == ["print"], "the other views are of the same range"
    assert shown.problems == []


def test_calls_in_the_order_of_time_are_as_long_as_they_ran(chromium: Any, tmp_path: Path) -> None:
    shown = opened(chromium, saved(RECORDINGS["xray"](), tmp_path), "#from=time")
    thread = shown.page.input_value(".in-order select")
    shown.go(threads=thread)
    ran = shown.eval("page.flame.tree.base.reduce((sum, _, node) => sum + page.flame.tree.selfOf(node), 0)")
    assert ran == shown.eval("page.flame.merged.whole") > 0
    spans = np.array(shown.eval("page.flame.tree.base.map((_, node) => page.flame.tree.spanOf(node))"))
    parents = shown.eval("page.flame.tree.parent")
    assert (spans[:, 0] <= spans[:, 1]).all()
    for (start, end), parent in zip(spans, parents, strict=True):
        assert parent < 0 or (spans[parent][0] <= start and end <= spans[parent][1] + 1e-9)


def test_a_range_goes_from_cell_to_cell_of_the_heatmap(chromium: Any, page: Path) -> None:
    shown = opened(chromium, page, "#activity=heatmap")
    columns, rows, in_cell = shown.eval(
        "[page.flame.heatmap.nColumns, page.flame.heatmap.nRows, page.flame.heatmap.inCell]"
    )
    total = shown.eval("page.flame.heatmap.values.reduce((a, b) => a + b)")
    assert total == 130
    box = shown.page.locator(".heatmap").bounding_box()
    wide, high = box["width"] / columns, (box["height"] - 16) / rows
    shown.page.mouse.move(box["x"] + 2.5 * wide, box["y"] + (rows - 0.5) * high)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + 3.5 * wide, box["y"] + 0.5 * high, steps=3)
    shown.page.mouse.up()
    shown.settle()
    assert shown.eval("page.flame.range") == [2 * rows * in_cell, 4 * rows * in_cell - 1], "two whole columns"
    shown.page.focus(".heatmap")
    for key, first in (("ArrowRight", 3 * rows), ("ArrowUp", 3 * rows + 1), ("ArrowDown", 3 * rows)):
        shown.page.keyboard.press(key)
        shown.settle()
        assert shown.eval("page.flame.range[0]") == first * in_cell
    shown.page.keyboard.press("Shift+ArrowUp")
    shown.settle()
    assert shown.eval("page.flame.range[1]") == (5 * rows + 1) * in_cell - 1
    shown.page.keyboard.press("Escape")
    shown.settle()
    assert shown.eval("page.flame.range") is None
    assert "activity=heatmap" in shown.page.url
    assert shown.problems == []
