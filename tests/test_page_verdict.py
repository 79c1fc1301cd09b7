"""The verdict on a page: one line, quiet where the recording is good, and commands to copy where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import REPO
from pages import Called, Opened, browser, data_of, sampled
from test_page import RECORDINGS, saved

import traceferry
from traceferry.model import Trace


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


def test_a_command_is_copied_or_selected(chromium: Any, tmp_path: Path) -> None:
    path = saved(traceferry.load(REPO / "fixtures/jit/php82/perf.data.zst"), tmp_path)
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    shown = Opened(context, path.as_uri())
    command = shown.page.inner_text("header .verdict-line code >> nth=0")
    assert command.startswith(("perf record", "traceferry"))
    shown.page.click("header .copy >> nth=0")
    shown.page.wait_for_selector("header .copy:text-is('Copied')")
    assert shown.page.evaluate("navigator.clipboard.readText()") == command
    shown = Opened(context, path.as_uri())
    shown.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    shown.page.click("header .copy >> nth=0")
    shown.settle()
    assert shown.page.evaluate("getSelection().toString()") == command


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
