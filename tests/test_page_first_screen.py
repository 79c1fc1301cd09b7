"""What a page shows first: the user's code, with the frames of runtimes folded, the largest costs in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders.perf_data import PerfData
from conftest import NO_SHARED, REPO, SHARED
from pages import Called, Opened, browser, sampled
from test_page import RECORDINGS, saved
from test_perf_map import read

import traceferry
from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.analysis.totals.own_code import IDLE as IDLE_TIME
from traceferry.analysis.totals.own_code import (
    INTERRUPT,
    KERNEL_ENTRY,
    NAMELESS,
    OF_KERNEL,
    OUTSIDE,
    OWN,
    PASSING,
    OwnCode,
    whose_code,
)
from traceferry.model import Trace
from traceferry.model.categories import KERNEL, LANGUAGE_COLORS, MACHINE_COLORS, NATIVE, RUNTIME, SYSTEM
from traceferry.symbolication.short_names import short_names

# ---------------------------------------------------------------- whose code is it


@pytest.mark.parametrize(
    ("called", "whose"),
    [
        (Called("main"), OWN),
        (Called("sort_rows", source="/home/me/app/rows.c"), OWN),
        (Called("_start"), PASSING),
        (Called("start_thread", "System library"), PASSING),
        (Called("std::vector<int>::push_back(int const&)"), OUTSIDE),
        (Called("core::fmt::write"), OUTSIDE),
        (Called("core[9d6f94]::fmt::write"), OUTSIDE),
        (Called("<alloc::vec::Vec<T> as core::clone::Clone>::clone"), OUTSIDE),
        (Called("<app::Row as core::fmt::Display>::fmt"), OWN),
        (Called("void std::__introsort_loop<int*, long>(int*, int*, long)"), OUTSIDE),
        (Called("bool __gnu_cxx::__ops::_Iter_less_iter::operator()<int*, int*>(int*, int*) const"), OUTSIDE),
        (Called("operator new(unsigned long)"), OUTSIDE),
        (Called("_int_malloc"), OUTSIDE),
        (Called("std::vector<int> load<int>(char const*)"), OWN),
        (Called("std_dev"), OWN),
        (Called("memory_of"), OWN),
        (Called("Eigen::MatrixBase<double>::dot", source="/usr/include/eigen3/Eigen/src/Core/Dot.h"), OUTSIDE),
        (Called("rows::sort", source="/home/me/rows/include/rows/sort.hpp"), OWN),
        (Called("Py_DECREF", source="/home/me/.pyenv/versions/3.11.7/include/python3.11/object.h"), OUTSIDE),
        (Called("__Pyx_PyObject_SetAttrStr", source="/home/me/work.c"), OUTSIDE),
        (Called("__Pyx_Coroutine_SendEx.constprop.0"), OUTSIDE),
        (Called("__pyx_tp_new_4work_Row"), OUTSIDE),
        (Called("__pyx_pf_4work_3Row_2add", source="/home/me/work.c"), OWN),
        (Called("CPyTagged_Multiply", source="/srv/lib/python3.11/site-packages/mypyc/lib-rt/CPy.h"), OUTSIDE),
        (Called("CPyList_GetItem"), OUTSIDE),
        (Called("CPyDef_Row___add"), OWN),
        (Called("CPyPy_Row___add"), OWN),
        (Called("impl_work$$$function__2_add"), OWN),
        (Called("Nuitka_Generator_send"), OUTSIDE),
        (Called("sort.pdq", source="/opt/zig-x86_64-linux-0.14.0/lib/std/sort/pdq.zig"), OUTSIDE),
        (Called("sort.pdq", source="/usr/lib/zig/std/sort/pdq.zig"), OUTSIDE),
        (Called("compiler_rt.memcpy.memcpyFast"), OUTSIDE),
        (Called("work.main", source="/home/me/zig/work.zig"), OWN),
        (Called("std::ffi::_get_global", source="Mojo/stdlib/std/ffi/__init__.mojo"), OUTSIDE),
        (Called("Array(Int32)#sort", source="/usr/lib/crystal/lib/array.cr"), OUTSIDE),
        (Called("sort_by", source="/rustc/a1b2c3/library/alloc/src/slice.rs"), OUTSIDE),
        (Called("core::ptr::drop_in_place<alloc::string::String>"), OUTSIDE),
        (Called("<core::iter::adapters::map::Map<I,F> as core::iter::Iterator>::fold"), OUTSIDE),
        (Called("core::Engine::step(double)"), OWN),
        (Called("core::Engine::step", source="/home/me/engine.cc"), OWN),
        (Called("void alloc::each<int>(int)"), OWN),
        (Called("time.Now", source="time/time.go"), OUTSIDE),
        (Called("net/http.(*conn).serve", source="/usr/lib/go-1.19/src/net/http/server.go"), OUTSIDE),
        (Called("main.busy", source="./main.go"), OWN),
        (Called("example.com/sort.Rows", source="/home/me/sort/rows.go"), OWN),
        (Called("go.uber.org/zap.New", source="/home/me/go/pkg/mod/go.uber.org/zap/logger.go"), OWN),
        (Called("runtime.memmove", source="/usr/local/go/src/runtime/memmove_amd64.s"), OUTSIDE),
        (Called("time.Now", source="time.c"), OWN),
        (Called("caml_alloc_small"), OUTSIDE),
        (Called("node::Start(int, char**)", "Runtime"), PASSING),
        (Called("node::fs::ReadFileUtf8(v8::FunctionCallbackInfo<v8::Value> const&)", "Runtime"), OUTSIDE),
        (Called("_PyEval_EvalFrameDefault", "Runtime"), PASSING),
        (Called("cfunction_vectorcall_O", "Runtime"), PASSING),
        (Called("PyNumber_Add", "Runtime"), OUTSIDE),
        (Called("time_sleep", "Runtime"), OUTSIDE),
        (Called("execute_ex", "Runtime"), PASSING),
        (Called("qsort", "System library"), OUTSIDE),
        (Called("__x64_sys_futex", "Kernel"), OF_KERNEL),
        (Called("do_syscall_64", "Kernel"), KERNEL_ENTRY),
        (Called("asm_sysvec_apic_timer_interrupt", "Kernel"), INTERRUPT),
        (Called("[unknown]", "Other"), NAMELESS),
        (Called("(no unwind information: app)", "Other"), NAMELESS),
        (Called("(program)"), NAMELESS),
        (Called("(garbage collector)"), OUTSIDE),
        (Called("(idle)"), IDLE_TIME),
        (Called("do_idle", "Kernel"), IDLE_TIME),
        (Called("do_idle"), OWN),
        (Called("poll", "Idle", lib="libc.so.6"), IDLE_TIME),
        (Called("handle", "JavaScript", "/srv/app.js"), OWN),
        (Called("_clone", "JavaScript", "/srv/app.js"), OWN),
        (Called("Module._load", "JavaScript", "node:internal/modules/cjs/loader"), OUTSIDE),
        (Called("StringPrototypeSplit", "JavaScript", kind="builtin"), OUTSIDE),
        (Called("LdaGlobalHandler", "JavaScript", kind="stub"), PASSING),
        (Called("CEntry", "JavaScript", kind="stub"), PASSING),
        (Called("GetById Load handler", "JIT", kind="inline cache"), PASSING),
        (Called("compiled", "JIT"), OWN),
        (Called("Hot.work(int)", "Java"), OWN),
        (Called("java.util.TimSort.sort(Object[])", "Java"), OUTSIDE),
        (Called("kotlin.collections.CollectionsKt.map", "Java"), OUTSIDE),
        (Called("org.jruby.runtime.Helpers.invokedynamic", "Java"), OUTSIDE),
        (Called("$_dot_dot_.app.RUBY$method$collatz$2", "Java"), OWN),
        (Called("org.codehaus.groovy.runtime.InvokerHelper.format", "Java"), OUTSIDE),
        (Called("org.python.core.PyObject.__call__", "Java"), OUTSIDE),
        (Called("org.python.pycode._pyx0.f$0", "Java"), OWN),
        (Called("org.mozilla.javascript.gen._app_js_1._c_fib_1", "Java"), OWN),
        (Called("jdk.nashorn.internal.scripts.Script$app.fib", "Java"), OWN),
        (Called("org.jrubyists.App.main", "Java"), OWN),
        (Called("numba.cpython.builtins.ol_sum.<locals>.impl", "Python"), OUTSIDE),
        (Called("Interpreter", "Java", kind="stub"), PASSING),
        (Called("javanese.Text.of()", "Java"), OWN),
        (Called("Leak:Step ()", "Managed"), OWN),
        (Called("System.IO.File:Open (string)", "Managed"), OUTSIDE),
        (Called("string:Concat (object[])", "Managed"), OUTSIDE),
        (Called("(wrapper runtime-invoke) object:runtime_invoke_void (object)", "Wrapper"), PASSING),
        (Called("(wrapper managed-to-native) object:__icall_wrapper_mono_gc_alloc_vector (int)", "Wrapper"), PASSING),
        (Called("(wrapper managed-to-native) System.GC:InternalCollect (int)", "Wrapper"), OUTSIDE),
        (Called("instance void [System.Private.CoreLib]System.String::Join()", ".NET"), OUTSIDE),
        (Called("Program::Main()", ".NET"), OWN),
        (Called("hotp:loop/2", "Erlang"), OWN),
        (Called("lists:foldl/3", "Erlang"), OUTSIDE),
        (Called("gb_sets:add/2", "Erlang"), OUTSIDE),
        (Called("'Elixir.Enum':map/2", "Erlang"), OUTSIDE),
        (Called("'Elixir.Shop.Enum':map/2", "Erlang"), OWN),
        (Called("'Elixir.EnumOfRows':map/2", "Erlang"), OWN),
        (Called("gen_tcp:send/2", "Erlang"), OUTSIDE),
        (Called("codec:decode/1", "Erlang"), OWN),
        (Called("user_cache:get/1", "Erlang"), OWN),
        (Called("file_store:read/1", "Erlang"), OWN),
        (Called("loads", "Python", "/usr/lib/python3.11/json/__init__.py"), OUTSIDE),
        (Called("encode", "Python", "json/encoder.py"), OUTSIDE),
        (Called("run", "Python", "threading.py"), OUTSIDE),
        (Called("run", "Python", "shop/threading.py"), OWN),
        (Called("main", "Python", "/usr/lib/python3/dist-packages/app.py"), OWN),
        (Called("get", "Python", "/srv/venv/lib/python3.11/site-packages/requests/api.py"), OWN),
        (Called("_find_and_load", "Python", "<frozen importlib._bootstrap>"), OUTSIDE),
        (Called("each", "Ruby", "/usr/lib/ruby/3.1.0/set.rb"), OUTSIDE),
        (Called("each", "Ruby", "/usr/lib/ruby/gems/3.1.0/gems/shop/cart.rb"), OWN),
        (Called("Integer#times", "Ruby", "<internal:numeric>"), OUTSIDE),
        (Called("Integer#times", "Ruby"), OUTSIDE),
        (Called("Integer#collatz", "Ruby", "/srv/app.rb"), OWN),
        (Called("Object#loop", "Ruby"), OUTSIDE),
        (Called("Object#fib", "Ruby"), OWN),
        (Called("Object#block in <main>", "Ruby"), OWN),
        (Called("Base.sort!", "Julia"), OUTSIDE),
        (Called("Based_on_rows", "Julia"), OWN),
        (Called("System.String", "Objects"), OUTSIDE),
    ],
    ids=lambda value: f"{value.name} {value.source}" if isinstance(value, Called) else "",
)
def test_whose_code_a_function_is(called: Called, whose: int) -> None:
    trace = sampled([(called,)])
    rows = np.stack([trace.frames[key] for key in ("func", "category", "tier")] + [np.zeros(1, np.int32)], axis=1)
    assert whose_code(trace, rows).tolist() == [whose]


@pytest.mark.parametrize(
    ("called", "whose"),
    [
        (Called("__schedule", "Blocked", lib="[kernel.kallsyms]"), OF_KERNEL),
        (Called("clock_nanosleep", "Sleeping", lib="libc.so.6"), OUTSIDE),
        (Called("spin", "Preempted", lib="app"), OWN),
        (Called("[no stack at the switch]", "Blocked"), NAMELESS),
    ],
    ids=lambda value: value.name if isinstance(value, Called) else "",
)
def test_where_a_thread_waits_is_whose_code_it_is_elsewhere(called: Called, whose: int) -> None:
    """The category of such a frame tells why the thread was off the processors."""
    trace = sampled([(called,)])
    rows = np.stack([trace.frames[key] for key in ("func", "category", "tier")] + [np.zeros(1, np.int32)], axis=1)
    assert whose_code(trace, rows).tolist() == [whose]


def test_without_categories_functions_are_the_users() -> None:
    trace = RECORDINGS["xray"]().opened()
    for _, thread in trace.threads:
        thread.load(trace)
    rows = np.stack([trace.frames[key] for key in ("func", "category", "tier")] + [trace.frames["func"]], axis=1)
    assert (whose_code(trace, rows) == OWN).any()


def test_whose_code_is_found_once() -> None:
    trace = sampled([(Called("main", "Native"), Called("malloc", "Native"), Called("read", "Kernel"))])
    rows = np.stack([trace.frames[key] for key in ("func", "category", "tier")] + [trace.frames["func"] * 0], axis=1)
    own_code, wanted = OwnCode(trace), whose_code(trace, rows).tolist()
    assert own_code.of(rows[[1, 1]]).tolist() == [wanted[1]] * 2
    assert own_code.of(rows).tolist() == wanted
    assert own_code.of(rows[:0]).tolist() == []


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


@pytest.mark.parametrize(
    ("samples", "title"),
    [
        ({"sh": 1, "app": 300, "cc1": 200}, "app, cc1 and 1 more"),
        ({"sh": 0, "app": 1}, "app and 1 more"),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, "d, c, b and 1 more"),
        ({"sh": 0, "app": 0}, "sh, app"),
    ],
)
def test_the_title_names_the_processes_that_ran(
    samples: dict[str, int], title: str, chromium: Any, tmp_path: Path
) -> None:
    """A shell that starts them comes first in time, and has nothing."""
    data = PerfData().event()
    for pid, name in enumerate(samples, start=5):
        data.comm(pid, pid, name)
    for pid, n in enumerate(samples.values(), start=5):
        for nth in range(n):
            data.sample(pid, pid, ip=0x1100 + nth)
    assert opened(chromium, saved(read(data), tmp_path)).page.inner_text("h1") == title


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


EVAL = Called("_PyEval_EvalFrameDefault", "Runtime", lib="libpython3.12.so.1.0")
CALL = Called("cfunction_vectorcall_O", "Runtime", lib="libpython3.12.so.1.0")
ADD = Called("PyNumber_Add", "Runtime", lib="libpython3.12.so.1.0")
PY = Called("load", "Python", "/srv/app.py")
SORT = Called("__GI___qsort_r", "System library", lib="libc.so.6")
SYSCALL = Called("entry_SYSCALL_64_after_hwframe", "Kernel", lib="[kernel.kallsyms]")
FUTEX = Called("__x64_sys_futex", "Kernel", lib="[kernel.kallsyms]")
TICK = Called("asm_sysvec_apic_timer_interrupt", "Kernel", lib="[kernel.kallsyms]")
BLOCKED = Called("__schedule", "Blocked", lib="[kernel.kallsyms]")
IN_MEMORY, OTHER_MEMORY = Called("[code in //anon]", "Other"), Called("[code in /memfd:jit]", "Other")
CALLER, EMBEDDED = (Called(name, lib="libapp.so") for name in ("call_it", "Builtins_JSEntryTrampoline"))
TRAMPOLINE = Called("Builtins_InterpreterEntryTrampoline", "Runtime", lib="node")
IDLE = tuple(
    Called(name, "Kernel", lib="[kernel.kallsyms]") for name in ("cpu_startup_entry", "do_idle", "pv_native_safe_halt")
)
PROGRAM_IDLE = Called("(idle)", "Other")
MANY = Called(f"Compile::Compile({'ciEnv*, ' * 9}bool)", "Runtime", lib="libjvm.so")
TABLE = "app::Table<std::basic_string<char, std::char_traits<char>>, std::allocator<int>>"
ADDRESSES = [Called(f"app+0x{nth}", lib="app") for nth in range(4)]
# Of each thread its stacks and the words.
WORDS: list[tuple[list[tuple[Called, ...]], list[str]]] = [
    ([(MAIN,)], ["100.0% main app.js:7 itself"]),
    ([(MAIN, HANDLE)] * 9 + [(MAIN,)], ["90.0% handle app.js:7 itself", "10.0% main app.js:7 itself"]),
    ([WORKER] * 3, ["100.0% v8::collect itself"]),
    ([WAITING] * 3, ["100.0% pthread_cond_wait: most in do_futex (100.0%)"]),
    ([WAITING[2:]], ["100.0% do_futex: most in __schedule (100.0%)"]),
    ([(MAIN, UNKNOWN, SPLIT), (UNKNOWN,)], ["50.0% main app.js:7: most in StringPrototypeSplit (50.0%)",
                                            "50.0% outside of your code"]),
    ([(MAIN, UNKNOWN)], ["100.0% main app.js:7"]),
    # What is a small part of a cost does not explain it.
    ([(MAIN, UNKNOWN)] * 19 + [(MAIN, SPLIT)], ["100.0% main app.js:7"]),
    ([(MAIN, UNKNOWN)] * 19 + [(MAIN, SPLIT)] + [(MAIN,)] * 10, ["100.0% main app.js:7: 33.3% itself"]),
    (
        [(MAIN, SPLIT), (MAIN, TIMERS[0]), (MAIN,)],
        ["100.0% main app.js:7: 33.3% itself, most in StringPrototypeSplit (33.3%)"],
    ),
    # An interpreter executes the function.
    ([(EVAL, PY, EVAL), (EVAL, PY, EVAL, CALL, ADD)],
     ["100.0% load app.py:7: 50.0% itself, most in PyNumber_Add (50.0%)"]),
    ([(EVAL,), (EVAL,), (PY, EVAL)], ["66.7% outside of your code: most in libpython3.12 (66.7%)",
                                      "33.3% load app.py:7 itself"]),
    ([(MAIN, SORT)], ["100.0% main app.js:7: most in qsort_r (100.0%)"]),
    # What a runtime compiled without a word to anybody.
    ([(MAIN,), (IN_MEMORY,), (IN_MEMORY,), (EVAL,)],
     ["50.0% code in memory without names", "25.0% main app.js:7 itself",
      "25.0% outside of your code: most in libpython3.12 (25.0%)"]),
    ([(MAIN,), (IN_MEMORY,), (EVAL,), (EVAL,), (EVAL,)],
     ["60.0% outside of your code: most in libpython3.12 (60.0%)", "20.0% main app.js:7 itself",
      "20.0% code in memory without names"]),
    # With what it calls; within a function of the user's, it is that function's.
    ([(IN_MEMORY, SORT), (OTHER_MEMORY,), (OTHER_MEMORY,), (MAIN, IN_MEMORY), (MAIN, IN_MEMORY, SORT)],
     ["60.0% code in memory without names: 40.0% itself, most in qsort_r (20.0%)",
      "40.0% main app.js:7: most in qsort_r (20.0%)"]),
    # But where compiled code calls it: that is no stub of its own.
    ([(CALLER, IN_MEMORY)] * 3 + [(CALLER, SORT, IN_MEMORY)],
     ["75.0% code in memory without names", "25.0% call_it: most in qsort_r (25.0%)"]),
    # V8 inside of a library of any name.
    ([(EMBEDDED, IN_MEMORY), (CALLER, EMBEDDED, IN_MEMORY), (CALLER,)],
     ["66.7% code in memory without names", "33.3% call_it itself"]),
    # Not the trampoline's that calls it, also where nothing is the user's.
    ([(TRAMPOLINE, IN_MEMORY)] * 7 + [(TRAMPOLINE,)] * 2 + [(TRAMPOLINE, IN_MEMORY, SORT)],
     ["70.0% code in memory without names", "20.0% Builtins_InterpreterEntryTrampoline itself",
      "10.0% qsort_r itself"]),
    # Where nothing was done: behind the others, and not for what interrupts it.
    ([IDLE] * 2 + [(PROGRAM_IDLE,), (MAIN,)], ["25.0% main app.js:7 itself", "75.0% idle"]),
    ([(*IDLE, TICK, FUTEX), IDLE], ["50.0% outside of your code: most in the kernel (50.0%)", "50.0% idle"]),
    ([(MAIN, Called("poll", "Idle", lib="libc.so.6"))] * 3 + [(MAIN,)], ["25.0% main app.js:7 itself", "75.0% idle"]),
    ([IDLE] * 99 + [(MAIN,)] * 2, ["1.98% main app.js:7 itself", "98.0% idle"]),
    # Where a thread waits, and where its processor was taken.
    ([(MAIN, SORT, SYSCALL, FUTEX, BLOCKED)], ["100.0% main app.js:7: most in qsort_r (100.0%)"]),
    ([(MAIN, SYSCALL, FUTEX, BLOCKED)], ["100.0% main app.js:7: most in __x64_sys_futex (100.0%)"]),
    ([(SORT, SYSCALL, FUTEX, BLOCKED)], ["100.0% qsort_r: most in __x64_sys_futex (100.0%)"]),
    ([(MAIN, TICK, FUTEX, BLOCKED)], ["100.0% main app.js:7 itself"]),
    ([(MAIN,), (MANY, UNKNOWN)], ["50.0% main app.js:7 itself",
                                  "50.0% outside of your code: most under Compile::Compile(…) (50.0%)"]),
    # The arguments of templates are left out where names are long.
    ([(Called(f"{TABLE}::at"),)], ["100.0% app::Table<…>::at itself"]),
    ([(Called(f"{TABLE}::operator<<"),)], ["100.0% app::Table<…>::operator<< itself"]),
    ([(Called(f"{TABLE}::{'x' * 60}"),)], [f"100.0% app::Table<…>::{'x' * 44}… itself"]),
    # Overloaded, so that its arguments tell it from another.
    ([(Called("Compile::Compile(bool)", "Runtime", lib="libjvm.so"),)], ["100.0% Compile::Compile(bool) itself"]),
    ([(one,) for one in ADDRESSES] + [(ADDRESSES[0], SORT)],
     ["100.0% functions of app without names: 80.0% themselves, most in qsort_r (20.0%)"]),
]  # fmt: skip


@pytest.mark.parametrize(("stacks", "words"), WORDS)
def test_words_of_costs_in_a_terminal(stacks: list[tuple[Called, ...]], words: list[str]) -> None:
    trace = sampled(stacks)
    names = [trace.func_name(func) for func in range(len(trace.funcs))]
    if "Compile" in words[-1]:
        names.append("Compile::Compile(int)")  # overloaded
    told = [line.split(maxsplit=1) for line in told_costs(trace, names)]
    assert [f"{share} {rest}" for share, rest in told] == words


def told_costs(trace: Trace, names: list[str]) -> list[str]:
    lines = as_text(summarize(trace), names).splitlines()
    begin = next(nth for nth, line in enumerate(lines) if line.startswith("largest costs of ")) + 1
    return lines[begin : lines.index("", begin)]


def test_words_of_costs(chromium: Any, tmp_path: Path) -> None:
    """Each on its own, as a thread of the same recording."""
    shown = opened(chromium, saved(sampled(*(stacks for stacks, _ in WORDS)), tmp_path))
    found = []
    for nth in range(len(WORDS)):
        shown.page.evaluate(
            """(threads) => new Promise((done) => {
                addEventListener("hashchange", done, { once: true }); traceferryPage.state.go({ threads }); })""",
            f"0.{nth}",
        )
        found.append(shown.page.inner_text(".costs").splitlines())
    assert found == [words for _, words in WORDS]
    assert shown.problems == []


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
    # Bytecode handlers and functions in the interpreter are tiers of one name.
    labels = shown.page.eval_on_selector_all(
        ".legend .entry[title]", "all => all.map(one => one.childNodes[1].textContent)"
    )
    assert len(labels) == len({*labels}) > 5
    shown.go(tab="functions")
    rows = shown.functions().values()
    assert all(kind.count(",") <= 1 for *_, kind, _ in rows)
    assert any(kind.endswith(" more") for *_, kind, _ in rows), "a function that was compiled by three compilers"


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
    shown.go(tab="functions")
    names = [*shown.functions()]
    assert any(name.startswith("Leak:MakeOrder") for name in names[:10])
    assert not any("(wrapper alloc)" in name or "__icall_wrapper_mono_gc_alloc" in name for name in names)
    heads = shown.page.eval_on_selector_all("#functions th", "all => all.map(one => one.textContent)")
    assert "Place" not in heads, "no place of any is known"
