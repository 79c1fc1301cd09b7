"""Addresses of a library that nothing names are one row of tables: in `info` and on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders.perf_data import PerfData
from pages import Opened, browser
from support import load_checked
from test_page import saved

from traceferry.analysis.info.summary import summarize
from traceferry.model import Trace

LIB, OTHER = 0x40_0000, 0x80_0000


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Of libx.so three addresses, of liby.so one; in two samples one address of libx.so called another."""
    data = PerfData().event().comm(7, 7, "app", ts=0)
    data.mmap2(7, 7, LIB, 0x10000, 0, "/nowhere/libx.so", ts=0).mmap2(7, 7, OTHER, 0x10000, 0, "/nowhere/liby.so", ts=0)
    chains = [[LIB + 0x20, LIB + 0x11], [LIB + 0x20, LIB + 0x11], [LIB + 0x30], [OTHER + 0x40, LIB + 0x11], [0x10]]
    for ts, chain in enumerate(chains, start=1):
        data.sample(7, 7, ts, chain[0], chain)
    (tmp_path / "perf.data").write_bytes(data.bytes())
    return load_checked(tmp_path / "perf.data")


ROWS = {"libx.so (3 addresses without a name)": (3, 4), "liby.so+0x40": (1, 1), "[unknown]": (1, 1)}


@pytest.mark.parametrize("sort", ["self", "total", "samples"])
def test_info_has_a_row_for_a_library_and_counts_each_sample_once(trace: Trace, sort: str) -> None:
    top = summarize(trace, sort=sort)["functions"]["top"]
    assert {row["name"]: (row["samples"], row["total_samples"]) for row in top} == ROWS
    assert top[0]["name"] == "libx.so (3 addresses without a name)"


def test_the_page_has_the_same_rows_and_the_flame_graph_each_address(trace: Trace, tmp_path: Path) -> None:
    with browser() as chromium:
        context: Any = chromium.new_context(viewport={"width": 1280, "height": 900})
        shown = Opened(context, saved(trace, tmp_path).as_uri() + "#tab=functions")
        assert {name: (int(row[0]), int(row[2])) for name, row in shown.functions().items()} == ROWS
        shown.page.click("#functions tbody button:has-text('3 addresses')")
        shown.settle()
        assert shown.page.inner_text(".matches").startswith("80")
        names = "page.flame.graph.rows.flat().filter(one => one.node >= 0).map(one => page.flame.tree.nameOf(one.node))"
        assert {"libx.so+0x10", "libx.so+0x20", "libx.so+0x30"} <= set(shown.eval(names))
        assert shown.problems == []
        context.close()
