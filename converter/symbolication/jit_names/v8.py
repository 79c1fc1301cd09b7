"""Names of V8 (Node, Deno, Chrome): logging/log.cc and objects/code-kind.cc."""

from __future__ import annotations

from traceferry.symbolication.jit_names.javascript import js_location
from traceferry.symbolication.jit_names.patterns import (
    BASELINE,
    GENERIC,
    INTERPRETER,
    Parts,
    Pattern,
    Split,
    js,
    machinery,
    number,
    tier,
)


def _v8_wasm(tier: str) -> Split:
    """Parses `name-index-tier` as samply writes it."""

    def split(text: str) -> Parts | None:
        if not text.endswith(tier):
            return None
        name, dash, index = text[: -len(tier)].rpartition("-")
        return (f"{name} (WASM:{index})", "", 0, 0) if dash and number(index) >= 0 else None

    return split


def _v8_wrapper(text: str) -> Parts | None:
    """Parses `wasm-to-js-<anonymous>-none`: code of a WebAssembly module that is not one of its functions."""
    name, infix, tier = text.rpartition("-<anonymous>-")
    return (name, "", 0, 0) if infix and tier in ("none", "liftoff", "turbofan") else None


def _v8_regexp(text: str) -> Parts:
    """Parses `(a|b)' flags: 'g'`, what is between the quotes written as JavaScript does."""
    source, between, flags = text.removesuffix("'").rpartition("' flags: '")
    return (f"/{source}/{flags}" if between else text), "", 0, 0


_V8_MARKERS = (
    ("~", INTERPRETER),
    ("^", BASELINE),
    ("+'", tier("Maglev (context specialized)", "green", family="Maglev")),
    ("+", tier("Maglev", "green")),
    ("o+", tier("Maglev (OSR)", "green", family="Maglev")),
    ("*'", tier("Turbofan (context specialized)", "green", family="Turbofan")),
    ("*", tier("Turbofan", "green")),
    ("o*", tier("Turbofan (OSR)", "green", family="Turbofan")),
    ("?", None),
)

# Node 16 and older write LazyCompile: and Function: where newer ones write JS:.
_V8_TAGS = ("JS:", "Script:", "Eval:", "LazyCompile:", "Function:")

PATTERNS: tuple[Pattern, ...] = (
    *(js(tag + marker, tier, js_location) for tag in _V8_TAGS for marker, tier in _V8_MARKERS),
    Pattern("JS:", "wasm", "WebAssembly", tier("Liftoff (wasm)", "blue"), _v8_wasm("-liftoff"), is_js=True),
    Pattern("JS:", "wasm", "WebAssembly", tier("Turbofan (wasm)", "green"), _v8_wasm("-turbofan"), is_js=True),
    Pattern("JS:", "trampoline", "JIT", None, _v8_wrapper),
    # Without a marker: interpreted, and never to be optimized (ComputeMarker in log.cc).
    js("JS:", INTERPRETER, js_location),
    *(js(tag, INTERPRETER, js_location, own=False) for tag in _V8_TAGS[1:]),
    Pattern("Builtin:", "builtin", "JavaScript", tier("Builtin", "brown")),
    # samply calls these Interpreter too, but in another colour: a family of their own.
    Pattern("BytecodeHandler:", "stub", "JavaScript", tier("Interpreter", "red", family="BytecodeHandler")),
    Pattern("RegExp.> src: '", "regexp", "RegExp", None, _v8_regexp),
    Pattern("RegExp:", "regexp", "RegExp", own=False),  # Node 16 and older
    machinery("Stub:", "stub", own=False),
    machinery("Handler:", "inline cache", own=False),
    machinery("Callback:", "trampoline", own=False),
    GENERIC,
)  # fmt: skip
