"""What a page shows first: the user's code, with the frames of runtimes folded, the largest costs in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import NO_SHARED, REPO, SHARED
from pages import Called, Opened, browser, sampled
from test_page import RECORDINGS, saved

import traceferry
from traceferry.exporters.html.own_code import own_keys
from traceferry.model import Trace
from traceferry.model.categories import KERNEL, LANGUAGE_COLORS, MACHINE_COLORS, NATIVE, RUNTIME, SYSTEM
from traceferry.symbolication.short_names import short_names

# ---------------------------------------------------------------- whose code is it


@pytest.mark.parametrize(
    ("called", "is_own"),
    [
        (Called("main"), True),
        (Called("sort_rows", source="/home/me/app/rows.c"), True),
        (Called("_start"), False),
        (Called("std::vector<int>::push_back(int const&)"), False),
        (Called("core::fmt::write"), False),
        (Called("void std::__introsort_loop<int*, long>(int*, int*, long)"), False),
        (Called("bool __gnu_cxx::__ops::_Iter_less_iter::operator()<int*, int*>(int*, int*) const"), False),
        (Called("std::vector<int> load<int>(char const*)"), True),
        (Called("std_dev"), True),
        (Called("node::Start(int, char**)", "Runtime"), False),
        (Called("qsort", "System library"), False),
        (Called("do_syscall_64", "Kernel"), False),
        (Called("[unknown]", "Other"), False),
        (Called("handle", "JavaScript", "/srv/app.js"), True),
        (Called("Module._load", "JavaScript", "node:internal/modules/cjs/loader"), False),
        (Called("StringPrototypeSplit", "JavaScript", kind="builtin"), False),
        (Called("CEntry", "JavaScript", kind="stub"), False),
        (Called("Hot.work(int)", "Java"), True),
        (Called("java.util.TimSort.sort(Object[])", "Java"), False),
        (Called("javanese.Text.of()", "Java"), True),
        (Called("Leak:Step ()", "Managed"), True),
        (Called("System.IO.File:Open (string)", "Managed"), False),
        (Called("string:Concat (object[])", "Managed"), False),
        (Called("instance void [System.Private.CoreLib]System.String::Join()", ".NET"), False),
        (Called("Program::Main()", ".NET"), True),
        (Called("hotp:loop/2", "Erlang"), True),
        (Called("lists:foldl/3", "Erlang"), False),
        (Called("loads", "Python", "/usr/lib/python3.11/json/__init__.py"), False),
        (Called("main", "Python", "/usr/lib/python3/dist-packages/app.py"), True),
        (Called("get", "Python", "/srv/venv/lib/python3.11/site-packages/requests/api.py"), True),
        (Called("_find_and_load", "Python", "<frozen importlib._bootstrap>"), False),
        (Called("System.String", "Objects"), False),
    ],
    ids=lambda value: value.name if isinstance(value, Called) else "",
)
def test_whose_code_a_function_is(called: Called, is_own: bool) -> None:
    trace = sampled([(called,)])
    rows = np.stack([trace.frames[key] for key in ("func", "category", "tier")] + [np.zeros(1, np.int32)], axis=1)
    assert own_keys(trace, rows).tolist() == [is_own]


def test_without_categories_functions_are_the_users() -> None:
    trace = RECORDINGS["xray"]().opened()
    for _, thread in trace.threads:
        thread.load(trace)
    rows = np.stack([trace.frames[key] for key in ("func", "category", "tier")] + [trace.frames["func"]], axis=1)
    assert own_keys(trace, rows).any()


def test_the_users_code_the_runtime_the_system_and_the_kernel_have_colours_apart() -> None:
    machine = {MACHINE_COLORS[name] for name in (RUNTIME, SYSTEM, KERNEL)}
    assert len(machine) == 3
    assert not machine & {*LANGUAGE_COLORS.values(), MACHINE_COLORS[NATIVE]}
    assert LANGUAGE_COLORS["Python"] != MACHINE_COLORS[NATIVE]


# ---------------------------------------------------------------- in a browser

START = Called("_start", lib="node")
NODE = tuple(Called(f"node::start_{nth}", "Runtime", lib="node") for nth in range(4))
TIMERS = tuple(Called(f"v8::timers_{nth}", "Runtime", lib="node") for nth in range(3))
LOAD = Called("Module._load", "JavaScript", "node:internal/modules/cjs/loader")
MAIN, HANDLE, LATER = (Called(name, "JavaScript", "/srv/app.js") for name in ("main", "handle", "later"))
SPLIT = Called("StringPrototypeSplit", "JavaScript", kind="builtin")
UNKNOWN = Called("[unknown]", "Other")
WORKER = (Called("start_thread", "System library", lib="libc.so.6"), Called("v8::collect", "Runtime", lib="node"))

WAITING = (
    Called("v8::work", "Runtime", lib="node"),
    Called("pthread_cond_wait", "System library", lib="libc.so.6"),
    Called("do_futex", "Kernel", lib="[kernel.kallsyms]"),
    Called("__schedule", "Kernel", lib="[kernel.kallsyms]"),
)


def of_node() -> Trace:
    """Two ways into the user's code, and a worker without any."""
    loaded = (START, *NODE, LOAD)
    return sampled(
        [(*loaded, MAIN, HANDLE, SPLIT)] * 40 + [(*loaded, MAIN)] * 10 + [(START, *TIMERS, LATER)] * 20
        + [(START, NODE[0])] * 4,
        [WORKER] * 26,
    )  # fmt: skip


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(of_node(), tmp_path_factory.mktemp("node"))


def opened(chromium: Any, path: Path, fragment: str = "", **options: Any) -> Opened:
    return Opened(chromium.new_context(viewport={"width": 1280, "height": 900}, **options), path.as_uri() + fragment)


def test_the_first_screen_is_of_the_users_code(chromium: Any, page: Path) -> None:
    shown = opened(chromium, page)
    assert shown.names(1) == ["4 to 6 frames of node, V8", "start_thread"]
    assert shown.names(2) == ["main", "later", "v8::collect"]
    assert shown.names(3) == ["handle"]
    assert shown.eval("page.flame.tree.whole") == 100
    assert shown.eval("page.flame.tree.selfOf(page.flame.tree.childrenOf(-1)[0])") == 4, "what is folded keeps its own"


def test_a_click_unfolds_and_a_button_folds_again(chromium: Any, page: Path) -> None:
    shown = opened(chromium, page)
    shown.click_on("4 to 6 frames of node, V8")
    assert shown.names(1) == ["_start", "start_thread"]
    assert "fold=0" in shown.page.url
    assert opened(chromium, page, "#fold=0").names(1) == ["_start", "start_thread"]
    shown.page.click("#flame button:text-is('Fold runtime')")
    shown.settle()
    assert shown.names(2) == ["main", "later", "v8::collect"]
    shown.go(by="thread")
    assert shown.names(3) == ["4 to 6 frames of node, V8", "start_thread"]
    shown.go(**{"from": "leaves"})
    assert not shown.page.is_visible("#flame button:text-is('Fold runtime')")


def test_the_largest_costs_are_in_words_with_links(chromium: Any, page: Path) -> None:
    shown = opened(chromium, page)
    assert shown.page.inner_text(".costs").splitlines() == [
        "40.0% handle app.js:7: most in StringPrototypeSplit (40.0%)",
        "30.0% outside of your code: most under v8::collect (26.0%)",
        "20.0% later app.js:7 itself",
    ]
    order = shown.page.evaluate("""['.costs', '.legend', '.flame'].map(
        (one) => document.querySelector(one).getBoundingClientRect().top)""")
    assert order == sorted(order), "words, then the legend, then the graph"
    shown.page.click(".costs a:text-is('later')")
    shown.settle()
    assert shown.page.input_value(".search input") == "later"
    assert shown.page.inner_text(".matches").startswith("20.0%")
    assert shown.problems == []


@pytest.mark.parametrize(
    ("stacks", "words"),
    [
        ([(MAIN,)], ["100.0% main app.js:7 itself"]),
        ([(MAIN, HANDLE)] * 9 + [(MAIN,)], ["90.0% handle app.js:7 itself", "10.0% main app.js:7 itself"]),
        ([WORKER] * 3, ["100.0% v8::collect itself"]),
        ([WAITING] * 3, ["100.0% pthread_cond_wait: most in do_futex (100.0%)"]),
        ([WAITING[2:]], ["100.0% do_futex: most in __schedule (100.0%)"]),
        ([(MAIN, UNKNOWN, SPLIT), (UNKNOWN,)], ["50.0% main app.js:7", "50.0% outside of your code"]),
        (
            [(MAIN, SPLIT), (MAIN, TIMERS[0]), (MAIN,)],
            ["100.0% main app.js:7: 33.3% itself, most in StringPrototypeSplit (33.3%)"],
        ),
    ],
)  # fmt: skip
def test_words_of_costs(stacks: Any, words: list[str], chromium: Any, tmp_path: Path) -> None:
    shown = opened(chromium, saved(sampled(stacks), tmp_path))
    assert shown.page.inner_text(".costs").splitlines() == words


def test_a_chain_of_runtime_frames_is_folded_where_nothing_is_the_users(chromium: Any, tmp_path: Path) -> None:
    leaves = [(*NODE, Called(f"v8::leaf_{nth}", "Runtime", lib="node")) for nth in range(5)]
    shown = opened(chromium, saved(sampled(leaves), tmp_path))
    assert shown.names(1) == ["4 frames of node"]
    assert len(shown.names(2)) == 5


def test_what_the_kernel_was_asked_for_is_not_folded(chromium: Any, tmp_path: Path) -> None:
    shown = opened(chromium, saved(sampled([WAITING] * 3), tmp_path))
    assert [shown.names(row) for row in range(1, 4)] == [["2 frames of V8, libc"], ["do_futex"], ["__schedule"]]


def test_a_node_program_shows_its_own_functions(chromium: Any, tmp_path: Path) -> None:
    path = SHARED / "captures/jit/node24/perf.data.zst"
    if not path.exists():
        pytest.skip(NO_SHARED)
    trace = traceferry.load(path)
    shown = opened(chromium, saved(trace, tmp_path))
    height = shown.eval("page.flame.graph.element.clientHeight / 20 | 0")
    seen = {name for row in range(min(height, 8)) for name in shown.names(row)}
    own = shown.eval("""page.recording.funcs.name.filter((_, func) => page.recording.frames.func.some(
        (f, frame) => f === func && page.recording.frames.own[frame] === 1))""")
    assert seen & set(short_names(own))
    assert any("frames of" in name for name in shown.names(1))


def test_tiers_of_one_family_are_one_entry_of_the_legend(chromium: Any, tmp_path: Path) -> None:
    trace = traceferry.load(REPO / "fixtures/jit/node24-functions/jit-27512.dump.zst")
    shown = opened(chromium, saved(trace, tmp_path))
    entries = shown.page.eval_on_selector_all(
        ".legend .entry[title]", "all => all.map(one => [one.childNodes[1].data, one.title])"
    )
    names = [name for name, _ in entries]
    assert len(names) == len(set(names))
    joined = {name: title for name, title in entries if ", " in title}
    assert joined, "a family with several tiers"
    assert all(title.count(name) >= 2 for name, title in joined.items())


def test_classes_are_below_the_functions_that_allocate_them(chromium: Any, tmp_path: Path) -> None:
    """And wrappers of the runtime are left out."""
    shown = opened(chromium, saved(RECORDINGS["mono"](), tmp_path))
    assert (
        shown.page.inner_text(".costs")
        .splitlines()[0]
        .startswith("41.4% Leak:MakeOrder: the largest part in string:Concat")
    )
    deep = len(shown.eval("page.flame.graph.rows"))
    assert not any("(wrapper alloc)" in name for row in range(deep) for name in shown.names(row))
    shown.go(fold="0")
    deep = len(shown.eval("page.flame.graph.rows"))
    assert any("(wrapper alloc)" in name for row in range(deep) for name in shown.names(row))
