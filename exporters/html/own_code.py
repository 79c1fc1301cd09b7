"""Tells the user's own functions from those of runtimes, standard libraries and the system, so that a page begins where
the user's code begins."""

from __future__ import annotations

import re

import numpy as np

from traceferry.model import Array, Trace
from traceferry.model.categories import GENERATED_COLORS, KERNEL, NATIVE, OTHER, RUNTIME, SYSTEM
from traceferry.symbolication.short_names import short_name

# Objects and roots are what is allocated and what holds it: no code.
_NOT_OWN = {*GENERATED_COLORS, KERNEL, OTHER, RUNTIME, SYSTEM, "Objects", "Roots"}
# Kinds of functions that a runtime generates for itself (the model's `funcs.kind`).
_MACHINERY = {"builtin", "stub", "trampoline", "inline cache"}
# Scripts that come with a runtime, by their paths: Node's, Deno's and Bun's; CPython's frozen and standard modules.
_RUNTIME_SCRIPT = re.compile(
    r"(?:node|bun|ext|deno|internal|native):|internal/|<frozen "
    r"|.*/lib/(?:python|pypy)[\d.]+/(?!(?:site|dist)-packages/)"
)
# What stands for frames that nobody could name or read.
_PLACEHOLDER = re.compile(r"\[unknown\]|\(truncated stack\)")
_DOTNET = re.compile(
    r"(?:\w+ )*\[?(?:System|Mono|Microsoft|Internal|Interop)[.\]/].*|(?:string|object|int|char|byte|long|bool):.*"
)
# Standard libraries whose code is compiled into the user's or has no file, and what runs before `main`, by category.
_RUNTIME_FUNCTION = {
    NATIVE: re.compile(
        r"_start|_dl_start\w*|__libc_start\w+|generic_start_main|start_thread|__?clone3?"
        r"|(?:<?(?:std|core|alloc)|__gnu_cxx|__cxxabiv1|__rustc?)::.*"
    ),
    "Java": re.compile(r"(?:\w+ )*(?:java|javax|jdk|sun|com\.sun)[./].*"),
    "Managed": _DOTNET,
    ".NET": _DOTNET,
    "Erlang": re.compile(
        r"(?:erlang|init|lists|proc_lib|gen_server|gen|supervisor|maps|ets|io|io_lib|file|code|code_server|erl_\w+"
        r"|application_controller|logger\w*|user_\w+|prim_\w+):.*"
    ),
}


def own_keys(trace: Trace, rows: Array) -> Array:
    """Returns whether each row is the user's own code. rows: int32 [n, 4], func, category, tier and whether it is
    inlined, as `Keys.rows`. Without a category, as in recordings of calls, functions are the user's own."""
    strings, funcs, paths = trace.strings, trace.funcs, trace.sources["path"]
    categories = [*(strings[n] for n in trace.categories["name"].tolist()), ""]
    columns = (funcs[key][rows[:, 0]].tolist() for key in ("name", "kind", "source"))
    return np.array(
        [
            _is_own(
                strings[name], strings[kind] if kind >= 0 else "", strings[int(paths[source])] if source >= 0 else "",
                categories[category],
            )
            for name, kind, source, category in zip(*columns, rows[:, 1].tolist(), strict=True)
        ],
        bool,
    )  # fmt: skip


def _is_own(name: str, kind: str, path: str, category: str) -> bool:
    if kind in _MACHINERY or category in _NOT_OWN or _PLACEHOLDER.fullmatch(name):
        return False
    of_runtime = _RUNTIME_FUNCTION.get(category)
    if category == NATIVE:
        name = short_name(name)  # names of templates begin with the type that they return
    return not (of_runtime is not None and of_runtime.fullmatch(name)) and not _RUNTIME_SCRIPT.match(path)
