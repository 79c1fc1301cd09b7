"""The controls of a page: keyboard, menus, links that keep what is shown, names for readers of the screen."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import Axe, Called, Opened, browser, reached_by_tab, sampled
from test_page import pages_of_recordings, saved
from test_page_events import several

DEEP = tuple(Called(f"level_{nth}") for nth in range(60))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {"events": several(), "deep": sampled([DEEP] * 30, [DEEP[:2]] * 10, [DEEP[:1]] * 5)}
    own = {name: saved(trace, tmp_path_factory.mktemp(name)) for name, trace in made.items()}
    return pages_of_recordings(tmp_path_factory) | own


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Any]:
    contexts = []

    def opened(path: Path, fragment: str = "", **options: Any) -> Opened:
        contexts.append(chromium.new_context(viewport={"width": 1280, "height": 700}, **options))
        return Opened(contexts[-1], path.as_uri() + fragment)

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def keyed(chromium: Any, pages: dict[str, Path]) -> Iterator[Opened]:
    context = chromium.new_context(viewport={"width": 1280, "height": 700})
    yield Opened(context, pages["mono"].as_uri())
    context.close()


# ---------------------------------------------------------------- the graph


def test_upwards_the_graph_opens_at_its_base(pages: dict[str, Path], open_page: Any) -> None:
    scrolled = "(({ scrollTop, scrollHeight, clientHeight }) => [scrollTop, scrollHeight - clientHeight])"
    shown = open_page(pages["deep"])
    assert shown.eval(f"{scrolled}(page.flame.graph.element)")[0] == 0
    shown.page.click("button:text-is('Up')")
    shown.settle()
    top, most = shown.eval(f"{scrolled}(page.flame.graph.element)")
    assert top == most > 0
    top, most = open_page(pages["deep"], "#up=1&from=leaves").eval(f"{scrolled}(page.flame.graph.element)")
    assert top == most
    shown.page.click("button:text-is('Down')")
    shown.settle()
    assert shown.eval("page.flame.graph.element.scrollTop") == 0


def test_the_tooltip_goes_when_the_page_or_the_graph_scrolls(pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["deep"])
    box = shown.page.locator(".flame").bounding_box()
    for scroll in ("document.querySelector('.flame').scrollTop += 60", "window.scrollBy(0, 40)"):
        shown.page.mouse.move(box["x"] + 30, box["y"] + 30)
        shown.page.mouse.move(box["x"] + 40, box["y"] + 32)
        assert shown.page.is_visible(".tooltip")
        shown.page.evaluate(scroll)
        shown.settle()
        assert not shown.page.is_visible(".tooltip")


@pytest.mark.parametrize(
    ("press", "kept"),
    [
        ("shown.page.keyboard.press('ArrowDown')", "sel="),
        ("shown.page.keyboard.press('Enter')", "zoom="),
        ("shown.page.fill('.search input', 'level_1')", "find=level_1"),
        ("(shown.page.focus('.strip'), shown.page.keyboard.press('ArrowRight'))", "range=0-"),
        ("shown.go(up='1')", "up=1"),
    ],
)
def test_a_link_keeps_what_is_shown(press: str, kept: str, pages: dict[str, Path], open_page: Any) -> None:
    """Also from disk: all of it is in the address's fragment."""
    shown = open_page(pages["deep"])
    shown.page.focus(".flame")
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowDown")
    eval(press)
    shown.settle()
    assert kept in shown.page.url
    again = open_page(pages["deep"], "#" + shown.page.url.partition("#")[2])
    state = "[page.flame.graph.selected, page.flame.graph.zoomed, page.flame.range, page.state.values]"
    assert again.eval(state) == shown.eval(state)
    assert again.eval("page.flame.graph.selected") >= 0
    assert again.page.inner_text(".detail strong") == shown.page.inner_text(".detail strong")


# ---------------------------------------------------------------- keyboard


def test_keys_search_help_and_escape(pages: dict[str, Path], open_page: Any) -> None:
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent"
    shown = open_page(pages["perf"])
    shown.page.keyboard.press("?")
    assert shown.page.is_visible("dialog.help")
    assert "Search functions" in shown.page.inner_text("dialog.help")
    shown.page.keyboard.press("Escape")
    assert not shown.page.is_visible("dialog.help")
    for tab, label in (("flame", "Search functions"), ("functions", "Filter functions"), ("threads", "Filter threads")):
        shown.go(tab=tab)
        shown.page.evaluate("document.activeElement.blur()")
        shown.page.keyboard.press("/")
        assert shown.page.evaluate(focused).startswith(label)
        shown.page.keyboard.type("?/")
        assert not shown.page.is_visible("dialog.help"), "who types a question mark gets one"
    shown.go(tab="flame")
    shown.page.focus(".threads summary")
    shown.page.keyboard.press("Enter")
    assert shown.page.is_visible(".thread-list")
    shown.settle()
    shown.page.keyboard.press("Tab")
    shown.page.keyboard.press("Escape")
    shown.page.wait_for_selector(".thread-list", state="hidden")
    assert shown.page.evaluate(focused).startswith("All ")


@pytest.mark.parametrize("name", ["perf", "mono", "jit"])
def test_the_keyboard_reaches_everything_and_one_sees_where(name: str, pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages[name])
    reached = reached_by_tab(shown.page)
    assert all(outline != "none" for outline, _ in reached), reached
    controls = shown.page.eval_on_selector_all(
        "header button, nav a, #flame button, #flame select, #flame input, #flame [tabindex]",
        "all => all.filter(one => one.checkVisibility()).map(one => one.getAttribute('aria-label') ?? one.textContent)",
    )
    assert {*controls} <= {text for _, text in reached}


@pytest.mark.parametrize(
    ("tab", "control", "key", "goes_to"),
    [
        ("flame", ".costs a", "Enter", None),
        ("flame", "button:text-is('Fold runtime')", "Enter", None),
        ("flame", "select[aria-label='Weight']", "ArrowDown", None),
        ("functions", "tbody button.name", "Enter", ".flame"),
        ("functions", "select", "ArrowDown", None),
        ("memory", "select[aria-label='From heap shot']", "ArrowDown", None),
        ("memory", ".choice button:text-is('Allocated by class')", "Enter", None),
        ("memory", "button:text-is('Who allocated it')", "Enter", ".flame"),
    ],
)
def test_a_key_leaves_the_focus_where_the_next_one_is_of_use(
    tab: str, control: str, key: str, goes_to: str | None, keyed: Opened
) -> None:
    """On the control itself, which may be another element then, or on what it leads to."""
    page = keyed.page
    keyed.go(tab=tab, fold="", find="", measure="", shots="")
    of_tab = f"#{tab} {control} >> nth=0"
    page.focus(of_tab)
    page.keyboard.press(key)
    keyed.settle()
    focused = page.query_selector(f"#flame {goes_to}" if goes_to else of_tab)
    assert page.evaluate("(one) => one === document.activeElement && one.checkVisibility()", focused)


# ---------------------------------------------------------------- threads


def test_no_thread_says_so_and_one_thread_is_one_click(pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["deep"])
    shown.page.click(".threads summary")
    shown.page.wait_for_selector(".thread-row")
    for box in shown.page.query_selector_all(".thread-list input[type=checkbox]"):
        box.click()
        shown.settle()
    assert shown.page.inner_text(".threads summary") == "No thread"
    assert shown.page.inner_text(".nothing").startswith("No thread is chosen.")
    assert not shown.page.is_visible(".flame")
    shown.page.keyboard.press("Escape")
    shown.page.click(".nothing button")
    shown.settle()
    assert shown.page.is_visible(".flame")
    assert shown.eval("page.flame.merged.whole") == 45
    shown.page.click(".threads summary")
    shown.page.click("button[aria-label='Only this thread: thread2 2']")
    shown.settle()
    assert shown.eval("page.flame.merged.whole") == 10
    assert shown.page.inner_text(".threads summary") == "1 of 3 threads"
    boxes = "all => all.map(one => one.checked)"
    assert shown.page.eval_on_selector_all(".thread-list input", boxes) == [False, True, False]
    shown.go(threads="7.7")
    assert shown.page.inner_text(".nothing").startswith("No thread is chosen."), "a link to another recording's thread"
    shown.go(threads="", range="31-31", measure="0")
    assert shown.problems == []


# ---------------------------------------------------------------- viewers and readers of the screen


@pytest.mark.parametrize("viewer", ["firefox", "perfetto"])
def test_without_a_network_a_page_says_so_soon(viewer: str, pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["xray"])
    shown.page.context.set_offline(True)
    shown.page.wait_for_function("!navigator.onLine")  # the browser tells its pages of it later
    began = time.monotonic()
    shown.page.click(f"#open-{viewer}")
    shown.page.wait_for_selector("#handing:has-text('does not answer')")
    assert time.monotonic() - began < 5
    assert shown.page.inner_text("#handing").startswith("There is no network.")


def test_a_viewer_that_is_not_reached_is_told_of_soon(pages: dict[str, Path], open_page: Any) -> None:
    """Though the machine has a network."""
    shown = open_page(pages["xray"])
    shown.page.context.route("https://**", lambda route: route.abort())
    began = time.monotonic()
    shown.page.click("#open-firefox")
    shown.page.wait_for_selector("#handing:has-text('does not answer')")
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("xray", "light"),
        ("mono", "dark"),
        ("events", "light"),
        pytest.param("jit", "dark", marks=pytest.mark.large),
    ],
)
def test_no_serious_finding_of_axe(name: str, scheme: str, pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages[name], color_scheme=scheme)
    axe = Axe(shown.page)
    tabs = shown.page.eval_on_selector_all(".tabs a", "links => links.map(link => link.dataset.tab)")
    assert name != "events" or {"waits", "report"} <= {*tabs}
    for tab in tabs:
        shown.go(tab=tab)
        assert axe.findings() == [], tab
    shown.go(tab="flame")
    shown.page.click(".keys")
    assert axe.findings() == []
