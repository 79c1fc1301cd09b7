"""Pages in a real browser, opened from disk: they show what `info` counts, ask nobody for anything, and hand the
recording to the viewers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from pages import HOSTILE, Opened, browser, many_paths, named, one_sample, packed_in
from test_page import RECORDINGS, pages_of_recordings, saved

from traceferry.analysis.info.summary import summarize
from traceferry.model import SAMPLES, Event, Process, Table, Thread, ThreadData, Trace, TraceBuilder
from traceferry.timeline.select import select_range

TABS = ["flame", "functions", "memory", "events", "waits", "code", "source", "threads", "report"]
NO_BREAK = ","


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return pages_of_recordings(tmp_path_factory)


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Any]:
    contexts = []

    def opened(path: Path, fragment: str = "", **options: Any) -> Opened:
        contexts.append(chromium.new_context(viewport={"width": 1280, "height": 900}, **options))
        return Opened(contexts[-1], path.as_uri() + fragment)

    yield opened
    for context in contexts:
        context.close()


def number(text: str) -> int:
    return int(text.replace(NO_BREAK, ""))


# ---------------------------------------------------------------- what is shown


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_page_opens_without_a_message_or_a_request(name: str, pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages[name])
    there = shown.page.eval_on_selector_all(".tabs a", "links => links.map(link => link.dataset.tab)")
    assert set(there) <= set(TABS)
    for tab in there:
        shown.page.click(f".tabs a[data-tab={tab}]")
        shown.settle()
        assert shown.page.is_visible(f"#{tab}")
        assert shown.page.inner_text(f"#{tab}").strip()
    assert shown.problems == []


def test_functions_are_those_of_info(pages: dict[str, Path], open_page: Any) -> None:
    top = summarize(RECORDINGS["xray"]())["functions"]["top"]
    rows = open_page(pages["xray"], "#tab=functions").functions()
    for func in top:
        row = rows[func["name"]]
        assert number(row[4]) == func["calls"]
    shown = open_page(pages["xray"], "#tab=functions")
    merged = "page.flame.merged.byFunction()[argument]"
    names = shown.eval("page.recording.funcs.name")
    for key in ("self", "total"):
        amounts = dict(zip(names, shown.eval(f"[...{merged}]", key), strict=True))
        assert [amounts[func["name"]] for func in top] == [func[f"{key}_ns"] for func in top]


def test_samples_are_those_of_info(pages: dict[str, Path], open_page: Any) -> None:
    top = summarize(RECORDINGS["perf"]())["functions"]["top"]
    rows = open_page(pages["perf"], "#tab=functions").functions()
    for func in top:
        row = rows[func["name"]]
        assert (number(row[0]), number(row[2])) == (func["samples"], func["total_samples"])


def test_a_table_sorts_and_filters(pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["xray"], "#tab=functions")
    shown.page.click("#functions th button:text-is('Calls')")
    calls = [number(row[4]) for row in shown.functions().values()]
    assert calls == sorted(calls, reverse=True)
    shown.page.click("#functions th button:text-is('Calls')")
    assert [number(row[4]) for row in shown.functions().values()] == calls[::-1]
    shown.page.fill("#functions .filter", "pool::")
    assert shown.functions()
    assert all("Pool::" in name for name in shown.functions())


def test_zoom_back_and_a_link(pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["xray"])
    whole = shown.eval("page.flame.graph.window")
    shown.click_on("Pool::finish")
    zoomed = shown.eval("page.flame.graph.window")
    share = shown.eval("page.flame.tree.totalOf(page.flame.graph.zoomed) / page.flame.tree.whole")
    assert zoomed[1] - zoomed[0] == pytest.approx(share)
    assert "Pool::finish" in shown.page.inner_text(".path")
    again = open_page(pages["xray"], "#" + shown.page.url.partition("#")[2])
    assert again.eval("page.flame.graph.window") == pytest.approx(zoomed)
    shown.page.go_back()
    shown.settle()
    assert shown.eval("page.flame.graph.window") == pytest.approx(whole)


def test_a_search_says_its_share(pages: dict[str, Path], open_page: Any) -> None:
    """Of a recursive or nested match, the outermost counts."""
    info = summarize(RECORDINGS["perf"](), top=10**6)
    interpreter = next(f for f in info["functions"]["top"] if f["name"] == "Interpreter")
    samples = sum(t["samples"] for p in info["processes"] for t in p["threads"])
    shown = open_page(pages["perf"])
    shown.page.fill(".search input", "/^interpreter$/")
    shown.settle()
    expected = f"{100 * interpreter['total_samples'] / samples:.1f}%"
    assert shown.page.inner_text(".matches").startswith(expected)
    shown.page.fill(".search input", "/(/")
    shown.settle()
    assert shown.page.inner_text(".matches") == "not a regular expression"


def test_functions_are_shown_without_arguments_and_found_with_them(tmp_path: Path, open_page: Any) -> None:
    """Overloaded ones keep them."""
    trace = TraceBuilder()
    stack = -1
    for name in ("geo::scale(double) const", "draw(int)", "draw(char)"):
        func = trace.funcs.intern(name=trace.strings.intern(name))
        stack = trace.stacks.intern(prefix=stack, frame=trace.frames.intern(func=func))
    thread = Thread(
        1,
        "main",
        True,
        5,
        5,
        lambda _: ThreadData(samples=Table(SAMPLES, {"ts": [5], "stack": [stack], "weight": [1]})),
    )
    trace.processes.append(Process(1, "app", 5, 5, [thread]))
    shown = open_page(saved(trace, tmp_path))
    names = "page.flame.graph.rows.flat().filter(one => one.node >= 0).map(one => page.flame.tree.nameOf(one.node))"
    assert shown.eval(names) == ["geo::scale", "draw(int)", "draw(char)"]
    shown.click_on("geo::scale")
    assert shown.page.inner_text(".tooltip strong") == "geo::scale(double) const"
    for search in ("scale(double)", "/scale$/"):
        shown.page.fill(".search input", search)
        shown.settle()
        assert shown.page.inner_text(".matches").startswith("100")
    rows = open_page(saved(trace, tmp_path), "#tab=functions").functions()
    assert {name: row[4] for name, row in rows.items()} == {
        "geo::scale(double) const": "geo::scale", "draw(int)": "draw(int)", "draw(char)": "draw(char)",
    }  # fmt: skip


def test_a_range_of_time_narrows(pages: dict[str, Path], open_page: Any) -> None:
    """To what `info` says of the same range, exactly."""
    shown = open_page(pages["xray"])
    n, width = shown.eval("[page.recording.nBuckets, page.recording.bucketNs]")
    first, last = n // 3, n // 2
    box = shown.page.locator(".strip").bounding_box()
    y = box["y"] + 20
    shown.page.mouse.move(box["x"] + (first + 0.5) / n * box["width"], y)
    shown.page.mouse.down()
    shown.page.mouse.move(box["x"] + (last + 0.5) / n * box["width"], y, steps=4)
    shown.page.mouse.up()
    shown.settle()
    assert shown.page.url.endswith(f"range={first}-{last}")
    trace = RECORDINGS["xray"]()
    start = trace.start_ts + first * width
    part = select_range(trace, start, start + (last - first + 1) * width)
    names = shown.eval("page.recording.funcs.name")
    own = dict(zip(names, shown.eval("[...page.flame.merged.byFunction().self]"), strict=True))
    expected = {f["name"]: f["self_ns"] for f in summarize(part, top=10**6)["functions"]["top"] if f["self_ns"]}
    assert {name: amount for name, amount in own.items() if amount} == expected
    shown.page.click("text=Whole time >> visible=true")


def test_one_thread_by_thread_and_callers(pages: dict[str, Path], open_page: Any) -> None:
    trace = RECORDINGS["perf"]()
    counts = {f"{t.name} {t.tid}": len(t.load(trace).samples) for _, t in trace.threads if not t.sample_unit}
    shown = open_page(pages["perf"])
    shown.go(by="thread")
    amount = "[page.flame.tree.nameOf(each.node), page.flame.tree.totalOf(each.node)]"
    rows = f"page.flame.graph.rows[2].map(each => {amount})"
    found = dict(shown.eval(rows))
    assert found == {name: counts[name] for name in found}
    busiest = max(counts, key=counts.__getitem__)
    shown.page.click(".threads summary")
    shown.page.click(".thread-list button:text-is('Busiest')")
    shown.settle()
    assert shown.eval("page.flame.merged.whole") == counts[busiest]
    shown.go(**{"from": "leaves", "by": "all", "threads": ""})
    top = summarize(trace)["functions"]["top"][0]
    roots = "[...page.flame.tree.childrenOf(-1)].map(n => [page.flame.tree.nameOf(n), page.flame.tree.totalOf(n)])"
    of_top = [amount for name, amount in shown.eval(roots) if name == top["name"]]
    assert sum(of_top) == top["samples"], "a function in two tiers is two frames"
    below = "(n => [...page.flame.tree.childrenOf(n)].reduce((s, c) => s + page.flame.tree.totalOf(c), 0))"
    assert shown.eval(f"{below}(page.flame.tree.childrenOf(-1)[0])") <= max(of_top)


def test_the_flame_graph_by_keyboard(pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["xray"])
    shown.page.focus(".flame")
    shown.page.keyboard.press("ArrowDown")
    largest = shown.eval("page.flame.tree.nameOf(page.flame.tree.childrenOf(-1)[0])")
    assert shown.page.inner_text(".detail strong") == largest
    shown.page.keyboard.press("Enter")
    shown.settle()
    assert largest in shown.page.inner_text(".path")
    shown.page.keyboard.press("Escape")
    shown.settle()
    assert shown.eval("page.flame.graph.zoomed") == -1
    shown.page.keyboard.press("/")
    assert shown.page.evaluate("document.activeElement.type") == "search"
    shown.page.focus(".strip")
    shown.page.keyboard.press("ArrowRight")
    shown.settle()
    assert "range=" in shown.page.url


def test_sources_are_shown_with_the_weight_of_lines(pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages["jit"], "#tab=source")
    hot = shown.page.eval_on_selector_all(
        "#source tr.hot", "rows => rows.map(r => [...r.cells].map(c => c.textContent))"
    )
    assert ["3.23 kB", "3.23 kB", "6"] in [row[:3] for row in hot]
    assert shown.page.locator("#source .code").count() > 30


# ---------------------------------------------------------------- the viewers

STAND_IN = {
    "firefox": """
        window.addEventListener("message", ({ source, data }) => {
          if (data.name === "ready:request") source.postMessage({ name: "ready:response" }, "*");
          if (data.name === "inject-profile") keep(data.profile, "");
        });""",
    "perfetto": """
        window.addEventListener("message", ({ source, data }) => {
          if (data === "PING") source.postMessage("PONG", "*");
          if (data.perfetto) keep(data.perfetto.buffer, data.perfetto.title);
        });""",
}
KEEP = """
    async function keep(buffer, title) {
      const digest = await crypto.subtle.digest("SHA-256", buffer);
      const hex = [...new Uint8Array(digest)].map((b) => b.toString(16).padStart(2, "0")).join("");
      document.title = JSON.stringify([hex, buffer.byteLength, title]);
    }"""
SITES = {"firefox": "https://profiler.firefox.com/**", "perfetto": "https://ui.perfetto.dev/**"}


@pytest.mark.parametrize("name", ["xray", "mono"])
@pytest.mark.parametrize("viewer", SITES)
def test_a_button_hands_over_the_bytes(viewer: str, name: str, pages: dict[str, Path], open_page: Any) -> None:
    """To a stand-in that speaks the viewer's protocol at the viewer's address, and is slow to begin."""
    shown = open_page(pages[name])
    body = f"<!doctype html><script>setTimeout(() => {{ {STAND_IN[viewer]} }}, 300); {KEEP}</script>"
    shown.page.context.route(SITES[viewer], lambda route: route.fulfill(body=body, content_type="text/html"))
    with shown.page.context.expect_page() as opened:
        shown.page.click(f"#open-{viewer}")
    opened.value.wait_for_function("document.title.startsWith('[')")
    digest, size, title = opened.value.evaluate("JSON.parse(document.title)")
    shown.page.wait_for_function("document.getElementById('handing').textContent.endsWith('has the recording.')")
    packed = packed_in(pages[name].read_text(), viewer)
    assert packed is not None
    assert (digest, size) == (hashlib.sha256(packed).hexdigest(), len(packed))
    assert title == ("" if viewer == "firefox" else shown.page.inner_text("h1"))


# ---------------------------------------------------------------- hostile, small and large


def test_hostile_names_are_text(tmp_path: Path, open_page: Any) -> None:
    shown = open_page(saved(named(HOSTILE), tmp_path))
    for tab in TABS:
        shown.go(tab=tab)
        assert "<script>window.hit=1</script><img" in shown.page.inner_text("#main" if tab != "flame" else "body")
    shown.go(tab="flame", find=HOSTILE[:20])
    shown.click_on(HOSTILE)
    assert shown.page.evaluate("window.hit") is None
    assert shown.page.evaluate("document.querySelectorAll('img').length") == 0
    assert shown.problems == []


def test_names_that_every_object_has_are_names(tmp_path: Path, open_page: Any) -> None:
    """An event, a weight, a colour... called as what a page's objects have from birth; and links that ask for such."""
    for name in ("constructor", "__proto__"):
        trace = named(name)
        trace.events = [Event(name, "cycles", 0)]
        path = saved(trace, tmp_path, without=["firefox", "perfetto"])
        shown = open_page(path, f"#measure={name}&threads={name}&tab={name}")
        for tab, measure in zip(TABS, cycle(("", name, "0", "3")), strict=False):
            shown.go(tab=tab, measure=measure)
        measures = shown.eval("page.recording.measures.map(m => `${m.name}, ${m.unit}`)")
        assert f"{name}, cycles" in measures
        shown.go(tab="source", measure=str(measures.index(f"{name}, cycles")))
        assert f"{name} (cycles)".lower() in shown.page.inner_text("#source select >> nth=1").lower()
        assert shown.problems == []


@pytest.mark.parametrize(
    "trace", [TraceBuilder(), one_sample(), named("n" * 1_000_000)], ids=["empty", "one sample", "long"]
)
def test_next_to_nothing_and_long_names(trace: Trace, tmp_path: Path, open_page: Any) -> None:
    shown = open_page(saved(trace, tmp_path, without=["firefox", "perfetto"]))
    for tab in shown.page.eval_on_selector_all(".tabs a", "links => links.map(link => link.dataset.tab)"):
        shown.go(tab=tab)
        assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab
    assert shown.problems == []


def test_a_large_tree_is_drawn_in_a_moment(tmp_path: Path, open_page: Any) -> None:
    """What is drawn depends on the window, not on the tree. Deep stacks scroll."""
    shown = open_page(saved(many_paths(30_000), tmp_path, without=["firefox", "perfetto"]))
    assert shown.eval("page.recording.nNodes") > 1000
    assert shown.eval("page.flame.graph.rows.reduce((n, row) => n + row.length, 0)") < 40_000
    assert shown.problems == []


# ---------------------------------------------------------------- narrow, dark, printed


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_narrow_window(name: str, pages: dict[str, Path], open_page: Any) -> None:
    shown = open_page(pages[name])
    shown.page.set_viewport_size({"width": 390, "height": 844})
    for tab in shown.page.eval_on_selector_all(".tabs a", "links => links.map(link => link.dataset.tab)"):
        shown.go(tab=tab)
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390, tab


def test_dark_and_light(pages: dict[str, Path], open_page: Any) -> None:
    color = "getComputedStyle(document.body).backgroundColor"
    shown = open_page(pages["xray"], color_scheme="dark")
    dark = shown.page.evaluate(color)
    assert dark != open_page(pages["xray"]).page.evaluate(color)
    shown.page.click(".theme")
    assert shown.page.evaluate(color) != dark


def test_printed(pages: dict[str, Path], open_page: Any, tmp_path: Path) -> None:
    """All sections, the flame graph among them."""
    shown = open_page(pages["mono"], color_scheme="dark")
    paper = shown.page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") + paper.count(b"/Type /Page /") + paper.count(b"/Type /Page>") >= 2
    shown.settle()
    assert shown.page.is_visible("#flame")
    assert not shown.page.is_visible("#memory")
    assert shown.problems == []
