"""Pages for the tests: built traces, what a page holds, read by a reader of its own, and a browser that opens pages."""

from __future__ import annotations

import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from traceferry.model import (
    ALLOCATIONS,
    CALLS,
    COUNTER_VALUES,
    LEAVE,
    SAMPLES,
    Clock,
    Counter,
    Input,
    MarkerField,
    MarkerType,
    Process,
    Table,
    Thread,
    ThreadData,
    Trace,
    TraceBuilder,
)
from traceferry.model.categories import CATEGORY_COLORS

# The headless shell first: the whole browser also draws the pages of its own window, and takes twice as long.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
NO_BROWSER = "no page is opened: chromium is not installed (apt install chromium-headless-shell)"
NO_DRIVER = "no page is opened: the package playwright is not installed (pip install playwright)"
OF_PICTURES = {"width": 1280, "height": 860}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Of the text of embedded bytes, from low to high.
ALPHABET = "".join(c for c in map(chr, range(33, 127)) if c not in "<>&")


def bytes_of(text: str, n_bytes: int) -> bytes:
    """Two characters are 13 bits."""
    digit = np.full(128, 255, np.uint8)
    digit[list(ALPHABET.encode())] = range(len(ALPHABET))
    digits = digit[np.frombuffer(text.encode("ascii"), np.uint8)].reshape(-1, 2)
    assert np.all(digits < len(ALPHABET))
    bits = np.unpackbits((digits @ np.array([91, 1], ">u2")).astype(">u2").view(np.uint8)).reshape(-1, 16)[:, 3:]
    return np.packbits(bits.ravel()[: 8 * n_bytes]).tobytes()


def packed_in(page: str, name: str) -> bytes | None:
    """The bytes of an embedded file as they are, compressed; None if the page has none."""
    pieces = re.findall(rf'<script type="text/plain" id="{name}-\d+" data-bytes="(\d+)">([^<]*)</script>', page)
    return b"".join(bytes_of(text, int(n)) for n, text in pieces) if pieces else None


def embedded_in(page: str, name: str) -> bytes | None:
    """The decompressed bytes of an embedded file; None if the page has none."""
    packed = packed_in(page, name)
    return None if packed is None else zlib.decompress(packed, wbits=31)


def data_of(path: Path) -> dict[str, Any]:
    data = embedded_in(path.read_text(encoding="utf-8"), "data")
    assert data is not None
    found: dict[str, Any] = json.loads(data)
    return found


# ---------------------------------------------------------------- built traces

MARKUP = '<script>window.hit=1</script><img src=x onerror="window.hit=2">\'"`&amp;</script>'
HOSTILE = MARKUP + "\u2028\u2029\x00\x1b\r\n]]>-->"


def named(text: str, n_functions: int = 3) -> Trace:
    """A trace with calls, samples, allocations, markers, counters and a source, in which everything has this name."""
    trace = TraceBuilder()
    trace.clock = Clock("monotonic", 0)
    word = trace.strings.intern(text)
    trace.inputs.append(Input(text, text, text, text))
    trace.attributes[text] = text
    source = trace.sources.intern(path=word, text=trace.texts.intern(f"{text}\nfirst\n{text}"))
    lib = trace.libs.intern(name=word, debug_id=word, code_id=word, arch=word)
    category = trace.categories.intern(name=word, color=trace.strings.intern("blue"))
    tier = trace.tiers.intern(name=word, family=word, color=word)
    frames = [
        trace.frames.intern(
            func=trace.funcs.intern(name=trace.strings.intern(text + "x" * i), source=source, line=1 + i, kind=word),
            category=category, tier=tier if i else -1, lib=lib, line=1 + i, inline_depth=i % 2,
        )
        for i in range(n_functions)
    ]  # fmt: skip
    stack = -1
    for frame in frames:
        stack = trace.stacks.intern(prefix=stack, frame=frame)
    kind = MarkerType(text, text, (MarkerField("why", text, "text"),), group_by=("why",))
    process = Process(1, text, 0, 100)
    counter = Table(COUNTER_VALUES, {"ts": [0, 50], "value": [1.0, 2.0]})
    process.counters.append(Counter(text, text, text, counter))
    calls = Table(CALLS, {"ts": [0, 10, 60, 100], "frame": [frames[0], frames[1], frames[1], frames[0]],
                          "flags": [0, 0, LEAVE, LEAVE]})  # fmt: skip
    allocations = Table(ALLOCATIONS, {"ts": [5], "size": [64], "class_name": [word], "stack": [stack]})
    markers = Table(kind.spec, {"ts": [3], "dur": [4], "why": [text]})
    samples = Table(SAMPLES, {"ts": [20, 90], "stack": [stack, stack], "weight": [1, 1]})
    data = ThreadData(calls=calls, samples=samples, allocations=allocations, markers={kind: markers})
    process.threads.append(Thread(7, text, True, 0, 100, lambda _: data))
    trace.processes.append(process)
    trace.report.note("files_read", 1, where=text, detail=text)
    return trace


def one_sample() -> Trace:
    trace = TraceBuilder()
    func = trace.funcs.intern(name=trace.strings.intern("only"))
    stack = trace.stacks.intern(frame=trace.frames.intern(func=func))
    samples = Table(SAMPLES, {"ts": [5], "stack": [stack], "weight": [1]})
    thread = Thread(1, "main", True, 5, 5, lambda _: ThreadData(samples=samples))
    trace.processes.append(Process(1, "app", 5, 5, [thread]))
    return trace


def many_threads(n: int, n_functions: int = 500, n_leaves: int = 0) -> Trace:
    """Each with two samples of a function below `main`, and two of each of so many below it."""
    trace = TraceBuilder()

    def frame_of(name: str) -> int:
        return trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(name)))

    top = trace.stacks.intern(frame=frame_of("main"))
    leaves = [frame_of(f"leaf {i}") for i in range(n_leaves)]
    stacks = []
    for i in range(n):
        own = trace.stacks.intern(prefix=top, frame=frame_of(f"f{i % n_functions}"))
        stacks.append([own, *(trace.stacks.intern(prefix=own, frame=leaf) for leaf in leaves)])

    def load(nth: int) -> Callable[[TraceBuilder], ThreadData]:
        stack = 2 * stacks[nth]
        columns = {"ts": [nth, 2 * nth] * (len(stack) // 2), "stack": stack, "weight": [1] * len(stack)}
        return lambda _: ThreadData(samples=Table(SAMPLES, columns))

    threads = [Thread(i + 1, f"worker {i}", i == 0, 0, 2 * n, load(i)) for i in range(n)]
    trace.processes.append(Process(1, "app", 0, 2 * n, threads))
    return trace


def many_paths(n: int, depth: int = 60) -> Trace:
    """Random call paths, of which most are small; deeper than they are wide."""
    random = np.random.default_rng(5)
    trace = TraceBuilder()
    frames = [
        trace.frames.intern(func=trace.funcs.intern(name=trace.strings.intern(f"function_{i}"))) for i in range(300)
    ]
    stacks: list[int] = []
    for i in range(n):
        prefix = stacks[int(random.integers(max(0, i - depth), i))] if i else -1
        stacks.append(trace.stacks.intern(prefix=prefix, frame=frames[int(random.integers(300))]))
    samples = Table(SAMPLES, {"ts": np.arange(4 * n), "stack": random.choice(stacks, 4 * n), "weight": np.ones(4 * n)})
    thread = Thread(1, "main", True, 0, 4 * n, lambda _: ThreadData(samples=samples))
    trace.processes.append(Process(1, "app", 0, 4 * n, [thread]))
    return trace


class Called(NamedTuple):
    """A frame of a stack: a function of a category, in a file of sources and a library, "" where it has none."""

    name: str
    category: str = "Native"
    source: str = ""
    lib: str = ""
    kind: str = "function"


def sampled(*threads: list[tuple[Called, ...]], period_ns: int = 1_000_000) -> Trace:
    """For each thread its stacks, the root first, one sample of each after every period."""
    trace = TraceBuilder()
    text = trace.strings.intern
    colors = CATEGORY_COLORS | {"Objects": "green"}

    def frame(called: Called) -> int:
        source = trace.sources.intern(path=text(called.source)) if called.source else -1
        func = trace.funcs.intern(name=text(called.name), source=source, line=7, kind=text(called.kind))
        category = trace.categories.intern(name=text(called.category), color=text(colors[called.category]))
        lib = trace.libs.intern(name=text(called.lib)) if called.lib else -1
        return trace.frames.intern(func=func, category=category, lib=lib)

    def stack(calls: tuple[Called, ...]) -> int:
        found = -1
        for called in calls:
            found = trace.stacks.intern(prefix=found, frame=frame(called))
        return found

    def load(stacks: list[int]) -> Callable[[TraceBuilder], ThreadData]:
        n = len(stacks)
        columns = {"ts": np.arange(n) * period_ns, "stack": stacks, "weight": np.ones(n, np.int64)}
        return lambda _: ThreadData(samples=Table(SAMPLES, columns))

    end = max(len(stacks) for stacks in threads) * period_ns
    made = [
        Thread(nth + 1, f"thread{nth + 1}", nth == 0, 0, end, load([stack(calls) for calls in stacks]), len(stacks))
        for nth, stacks in enumerate(threads)
    ]
    trace.processes.append(Process(1, "app", 0, end, made))
    return trace


# ---------------------------------------------------------------- a browser

SETTLED = """() => new Promise((resolve) =>
  setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve))), 10))"""


class Opened:
    """A page in the browser. problems: what it said on the console, and what it asked anybody for."""

    def __init__(self, context: Any, url: str) -> None:
        self.problems: list[str] = []
        self.page = context.new_page()
        self.page.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.problems.append(request.url) if _leaves(request.url) else None)
        self.page.emulate_media(reduced_motion="reduce")  # nothing slides
        self.page.goto(url)
        self.page.wait_for_selector("html[data-ready]", timeout=60000)

    def eval(self, script: str, argument: Any = None) -> Any:
        """Of an expression in which `page` is the page."""
        return self.page.evaluate(f"(argument) => {{ const page = window.traceferryPage; return {script}; }}", argument)

    def go(self, **values: str) -> None:
        """Shows something else, as a click on a control would."""
        self.page.evaluate("(values) => window.traceferryPage.state.go(values)", values)
        self.settle()

    def settle(self) -> None:
        """Waits until what was asked for is shown: a change of the address is told later, and drawn with a frame."""
        self.page.evaluate(SETTLED)

    def names(self, row: int) -> list[str]:
        """What the flame graph shows in a row, 0 is that of everything, by size or time."""
        found: list[str] = self.eval(
            "(page.flame.graph.rows[argument] ?? []).map(({ node }) => page.flame.tree.nameOf(node))", row
        )
        return found

    def functions(self) -> dict[str, list[str]]:
        """The rows of the table of functions, by the whole name, which a tooltip has."""
        rows = self.page.eval_on_selector_all(
            "#functions tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
        )
        tooltips = self.page.eval_on_selector_all("#functions button.name", "all => all.map(one => one.title)")
        return {tooltip.partition("\n")[0]: row for tooltip, row in zip(tooltips, rows, strict=True)}

    def click_on(self, name: str) -> None:
        """On the widest frame of that name in the flame graph."""
        at = self.eval(
            """(() => { const graph = page.flame.graph; const box = graph.element.getBoundingClientRect();
            for (const [depth, row] of graph.rows.entries()) for (const each of row) {
              if (each.node >= 0 && graph.tree.nameOf(each.node) === argument)
                return [box.left + Math.max(each.x, 0) + Math.min(each.width, 40) / 2, box.top + depth * 20 + 9];
            } })()""",
            name,
        )
        assert at is not None, f"no frame {name!r} in the flame graph"
        self.page.mouse.click(*at)
        self.settle()


def _leaves(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "about:"))


@contextmanager
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip(NO_BROWSER)
    driver = pytest.importorskip("playwright.sync_api", reason=NO_DRIVER)
    with driver.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


AXE = Path(__file__).parent / "clients/node_modules/axe-core/axe.min.js"
VIOLATIONS = """axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`))"""


class Axe:
    """axe-core in an opened page. Where it is not installed, the test that asks for it is skipped."""

    def __init__(self, page: Any) -> None:
        if not AXE.exists():
            pytest.skip("not checked: axe-core is not installed (npm ci --prefix tests/clients)")
        self._page = page
        page.evaluate(AXE.read_text(encoding="utf-8"))

    def findings(self) -> list[str]:
        """Those that are serious or critical, with the markup that they are about."""
        found: list[str] = self._page.evaluate(VIOLATIONS)
        return found


def reached_by_tab(page: Any, most: int = 60) -> list[tuple[str, str]]:
    """What the key Tab leads to from the link that skips the head on: (the style of its outline, its name)."""
    page.focus(".skip")
    reached = []
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        outline, text = page.evaluate("""(() => { const at = document.activeElement; return [
            getComputedStyle(at).outlineStyle, at.getAttribute("aria-label") ?? at.textContent.slice(0, 99)]; })()""")
        reached.append((outline, text))
    return reached


def picture(page: Path, output: Path, fragment: str = "", scheme: str = "light") -> None:
    """Of a page as it opens. fragment: what stands behind its address, as #tab=functions; scheme: "light" or "dark"."""
    with browser() as opened:
        context = opened.new_context(viewport=OF_PICTURES, device_scale_factor=1, color_scheme=scheme)
        shown = Opened(context, page.as_uri() + fragment)
        shown.settle()
        shown.page.screenshot(path=output)
