"""Tables of a page: one count, one order, and cells that can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import one_in
from pages import Called, Opened, browser, sampled
from test_page import RECORDINGS, pages_of_recordings, saved

NO_BREAK = ","
LONG = "Company.Product.Subsystem.Dictionary<System.String,System.Collections.Generic.List<Order>>:GetOrAddRange"
# Cells of more than three lines, words that are broken within, and lines that may end with "(", of what is shown.
UNREADABLE = """[...document.querySelectorAll(".panel:not([hidden]) td")].filter((cell) => {
    const lines = (node) => { const range = document.createRange(); range.selectNodeContents(node);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; };
    const tall = cell.clientHeight > 3 * 1.5 * parseFloat(getComputedStyle(cell).fontSize) + 14;
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    let broken = false;
    while (walker.nextNode()) broken ||= /^[\\w$]{1,24}$/.test(walker.currentNode.data.trim())
      && lines(walker.currentNode) > 1;
    const open = [...cell.querySelectorAll("wbr")].some((one) => /\\s[(<[]$/.test(one.previousSibling.textContent));
    return tall || broken || open; }).map((cell) => cell.textContent.slice(0, 80))"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    idle = sampled([(Called("main"), Called(LONG)), (Called("main"), Called("b"), Called("a"))], [])
    return {**pages_of_recordings(tmp_path_factory), "idle": saved(idle, tmp_path_factory.mktemp("idle"))}


def opened(chromium: Any, path: Path, fragment: str = "", width: int = 1000) -> Opened:
    return Opened(chromium.new_context(viewport={"width": width, "height": 900}), path.as_uri() + fragment)


@pytest.mark.parametrize("name", [*RECORDINGS, "idle"])
def test_cards_tables_and_menus_have_one_count(name: str, chromium: Any, pages: dict[str, Path]) -> None:
    shown = opened(chromium, pages[name])
    labels = shown.page.eval_on_selector_all(".cards dt", "all => all.map(one => one.textContent)")
    values = shown.page.eval_on_selector_all(".cards dd", "all => all.map(one => one.textContent)")
    card = dict(zip(labels, values, strict=True))
    if shown.page.locator(".threads summary").count():
        assert shown.page.inner_text(".threads summary") == f"All {card['Threads']} threads"
    shown.go(tab="functions")
    assert shown.page.inner_text("#functions h2").startswith(f"{card['Functions']} functions, ")
    shown.go(tab="threads")
    assert shown.page.inner_text("#threads h2").startswith(f"{card['Threads']} thread")
    assert shown.problems == []


def test_threads_without_anything_are_counted_in_the_menu(chromium: Any, pages: dict[str, Path]) -> None:
    shown = opened(chromium, pages["perf"])
    shown.page.click(".threads summary")
    shown.page.wait_for_selector(".thread-row")
    listed = shown.page.locator(".thread-row").count()
    idle = shown.eval("page.recording.nThreads") - listed
    assert idle > 0
    assert f"{idle} threads more have nothing." in shown.page.inner_text(".thread-list")


@pytest.mark.parametrize("width", one_in(2, [1000, 1600]))
@pytest.mark.parametrize("name", [*RECORDINGS, "idle"])
def test_cells_can_be_read(name: str, width: int, chromium: Any, pages: dict[str, Path]) -> None:
    shown = opened(chromium, pages[name], width=width)
    for tab in shown.page.eval_on_selector_all(".tabs a", "links => links.map(link => link.dataset.tab)"):
        if tab != "source":
            shown.go(tab=tab)
            assert shown.page.evaluate(UNREADABLE) == [], tab


def test_what_has_nothing_itself_is_ordered_by_what_it_has_in_all(chromium: Any, pages: dict[str, Path]) -> None:
    shown = opened(chromium, pages["perf"], "#tab=functions")
    if shown.page.locator("#functions .more button").count():
        shown.page.click("#functions .more button")
    rows = [
        (int(row[0].replace(NO_BREAK, "")), int(row[2].replace(NO_BREAK, ""))) for row in shown.functions().values()
    ]
    assert len(rows) > 100
    assert any(own == 0 for own, _ in rows)
    assert rows == sorted(rows, key=lambda row: (-row[0], -row[1]))


def test_functions_are_without_classes_and_have_what_these_have(chromium: Any, pages: dict[str, Path]) -> None:
    shown = opened(chromium, pages["mono"], "#tab=functions")
    found = shown.functions()
    assert "Leak:MakeOrder (int,Order)" in found
    assert not {"System.String", "System.Byte[]", "Order"} & set(found)
    assert sum(row[0] != "0 B" for row in found.values()) > 3, "who allocates has it"
    shown.go(measure=shown.eval("String(page.recording.measures.findIndex(m => m.name === 'heap shot 3'))"))
    assert "classes, by Heap shot 3" in shown.page.inner_text("#functions h2")
