"""Memory on a page: what lives over time, growth between any two heap shots in one table, ways into the graph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import Opened, browser, named
from test_page import RECORDINGS, saved

from traceferry.analysis.info.summary import summarize

NO_BREAK = ","


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def leak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(RECORDINGS["mono"](), tmp_path_factory.mktemp("leak"))


@pytest.fixture(scope="module")
def shots() -> list[Any]:
    return summarize(RECORDINGS["mono"](), top=10**6)["processes"][0]["heap_snapshots"]  # type: ignore[no-any-return]


def opened(chromium: Any, path: Path, fragment: str = "#tab=memory") -> Opened:
    return Opened(chromium.new_context(viewport={"width": 1280, "height": 900}), path.as_uri() + fragment)


def rows(shown: Opened) -> dict[str, list[str]]:
    """By the last column."""
    cells = shown.page.eval_on_selector_all(
        "#memory tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    return {row[-1]: row[:-1] for row in cells}


def test_memory_is_a_chart_and_one_table(chromium: Any, leak: Path) -> None:
    """20,874 px and 25 tables before."""
    shown = opened(chromium, leak)
    assert shown.page.locator("#memory table").count() == 1
    assert shown.page.evaluate("document.documentElement.scrollHeight") < 2500
    assert shown.page.locator("#memory svg polygon").count() == 9, "the largest eight classes, and the others"
    legend = shown.page.eval_on_selector_all("#memory .legend .entry", "all => all.map(one => one.textContent)")
    assert any(text.startswith("System.Byte[]28.1 kB") for text in legend)
    assert legend[-1].startswith("others")
    assert shown.problems == []


@pytest.mark.parametrize(("from_", "to"), [(1, 3), (1, 2), (2, 3), (3, 1), (2, 2)])
def test_growth_is_between_any_two_heap_shots(from_: int, to: int, chromium: Any, leak: Path, shots: Any) -> None:
    shown = opened(chromium, leak)
    shown.page.select_option("select[aria-label='From heap shot']", str(from_ - 1))
    shown.settle()
    shown.page.select_option("select[aria-label='To heap shot']", str(to - 1))
    shown.settle()
    if shown.page.locator("#memory .more button").count():
        shown.page.click("#memory .more button")
    assert f"From heap shot {from_} to {to}: " in shown.page.inner_text("#memory")
    before, after = ({c["name"]: c for c in shots[nth - 1]["classes"]} for nth in (from_, to))
    found = rows(shown)
    assert set(found) == set(before) | set(after)
    for name, cells in found.items():
        counts = [classes.get(name, {"objects": 0})["objects"] for classes in (before, after)]
        grown = counts[1] - counts[0]
        assert cells[3].replace(NO_BREAK, "") == (f"+{grown}" if grown > 0 else str(grown))
        assert cells[4].replace(NO_BREAK, "") == str(counts[1])
    assert opened(chromium, leak, f"#tab=memory&shots={from_}-{to}").page.inner_text("#memory h2 >> nth=1") == (
        shown.page.inner_text("#memory h2 >> nth=1")
    )


def test_a_click_on_the_chart_chooses_a_heap_shot(chromium: Any, leak: Path) -> None:
    shown = opened(chromium, leak)
    box = shown.page.locator("#memory svg").bounding_box()
    shown.page.mouse.click(box["x"] + 75, box["y"] + 100)
    shown.settle()
    assert "shots=1-" in shown.page.url
    assert "shots=1-3" not in shown.page.url


def test_ways_into_the_graph_and_few_weights(chromium: Any, leak: Path) -> None:
    """The dominator tree, and who allocated what lives; of heap shots only one is among the weights."""
    shown = opened(chromium, leak)
    shown.page.click("button:text-is('What keeps heap shot 3 alive')")
    shown.settle()
    options = "#flame select[aria-label=Weight] option"
    titles = shown.page.eval_on_selector_all(options, "all => all.map(one => one.textContent)")
    assert titles == [
        "Allocated bytes", "Allocated objects", "Heap shot 3", "Heap shot 3 by allocation site", "Bytes not freed"
    ]  # fmt: skip
    assert shown.eval("page.recording.measures[page.flame.measureIndex].name") == "heap shot 3"
    assert "[static]" in shown.names(1)
    shown.page.select_option("select[aria-label='Heap shot']", label="1")
    shown.settle()
    assert shown.eval("page.recording.measures[page.flame.measureIndex].name") == "heap shot 1"
    shown.go(tab="memory")
    shown.page.click("button:text-is('Who allocated it')")
    shown.settle()
    assert shown.eval("page.recording.measures[page.flame.measureIndex].name") == "heap shot 3 by allocation site"


def test_sites_are_shown_without_wrappers(chromium: Any, leak: Path) -> None:
    shown = opened(chromium, leak)
    shown.page.click("#memory button:text-is('Allocated by site')")
    shown.settle()
    assert shown.page.locator("#memory table").count() == 1
    assert any(site.startswith("Leak:MakeOrder") for site in rows(shown))
    assert not any("(wrapper alloc)" in site for site in rows(shown))


def test_without_heap_shots_the_chart_is_of_allocations(chromium: Any, tmp_path: Path) -> None:
    shown = opened(chromium, saved(named("Word"), tmp_path))
    assert "Allocated so far, by class" in shown.page.inner_text("#memory")
    assert shown.page.locator("#memory svg polygon").count() == 1
    assert shown.page.inner_text("#memory h2 >> nth=1") == "64 B in 1 allocation, by class"
    assert shown.problems == []


def test_one_word_for_heap_shots(chromium: Any, leak: Path) -> None:
    shown = opened(chromium, leak)
    for tab in ("memory", "flame", "report"):
        shown.go(tab=tab)
        assert "snapshot" not in shown.page.inner_text("body").lower()
