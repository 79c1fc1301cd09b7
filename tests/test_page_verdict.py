"""The verdict on a page: one line, quiet where the recording is good, and commands to copy where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import Called, Opened, browser, data_of, sampled
from test_page import RECORDINGS, saved

from traceferry.model import Trace


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


def damaged() -> Trace:
    trace = sampled([(Called("main"),)])
    trace.report.note("truncated", 1, where="x")
    return trace


@pytest.mark.parametrize(
    ("load", "badge"), [(RECORDINGS["perf"], None), (RECORDINGS["mono"], None), (damaged, "damaged")]
)
def test_the_verdict_stands_above_all(load: Any, badge: str | None, chromium: Any, tmp_path: Path) -> None:
    path = saved(load(), tmp_path)
    verdict = data_of(path)["info"]["verdict"]
    shown = Opened(chromium.new_context(viewport={"width": 1280, "height": 900}), path.as_uri())
    line = shown.page.inner_text("header .verdict-line")
    assert verdict["headline"] in line
    commands = [advice["command"] for advice in verdict["advice"] if advice["command"]]
    assert (
        shown.page.eval_on_selector_all("header .verdict-line code", "all => all.map(e => e.textContent)") == commands
    )
    found = shown.page.inner_text("header .verdict-line .badge")
    assert found == (badge or ("good" if verdict["kind"] == "good" else "to improve"))
    border = "getComputedStyle(document.querySelector('header .verdict-line')).borderLeftWidth"
    assert (shown.page.evaluate(border) == "0px") == (verdict["kind"] == "good"), "a healthy recording has no box"
    shown.go(tab="report")
    assert shown.page.is_visible("header .verdict-line"), "above every tab"
    assert shown.problems == []
