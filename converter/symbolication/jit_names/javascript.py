"""Names of JavaScript and WebAssembly code: V8 (Node, Deno, Chrome), logging/log.cc and objects/code-kind.cc;
JavaScriptCore (Bun, WebKit); SpiderMonkey, jit/PerfSpewer.cpp."""

from __future__ import annotations

import re

from traceferry.common.patterns import compiled_later
from traceferry.symbolication.jit_names.patterns import (
    GENERIC,
    Parts,
    Pattern,
    Split,
    fields,
    js,
    machinery,
    plain,
    tier,
)

_INTERPRETER = tier("Interpreter", "magenta")
_BASELINE = tier("Baseline", "blue")
_TRAMPOLINE = tier("Trampoline", "darkgrey")

# ---------------------------------------------------------------- positions

# A space before a path, a drive or a scheme: `node:fs`, `file:///x`, `C:\x`, `../x`, `\\server`.
_BEFORE_PATH = compiled_later(r" (?=\.{0,2}/|\\\\|[A-Za-z][A-Za-z0-9+.-]*:)")
_ACCESSORS = ("get ", "set ")


def _number(digits: str) -> int:
    """Returns -1 for anything but up to nine digits."""
    return int(digits) if len(digits) <= 9 and digits.isascii() and digits.isdecimal() else -1


def _position(text: str) -> tuple[str, int, int] | None:
    """Returns `file:12:3` as file, 12 and 3."""
    pieces = text.rsplit(":", 2)
    if len(pieces) < 3:
        return None
    line, column = _number(pieces[1]), _number(pieces[2])
    return (pieces[0], line, column) if line >= 0 and column >= 0 else None


def _before_file(text: str) -> int:
    """Returns where the space is between function and file in `get f /my files/x.js`; -1 without any space.

    Both may contain spaces, and either may be empty. The file begins with the first piece that looks like a path or
    URL. A bare file name is taken to begin behind the first word, or the second after get and set.
    """
    first = text.find(" ")
    if first <= 0 or text.find(" ", first + 1) < 0:
        return first
    if text.endswith(" "):
        return len(text) - 1
    path = _BEFORE_PATH.search(text)
    if path:
        return path.start()
    second = text.find(" ", 4) if text.startswith(_ACCESSORS) else -1
    return second if second >= 0 else first


# ---------------------------------------------------------------- V8


def _v8_location(text: str) -> Parts:
    """Parses `function file:line:column`. A script without a position is ` file`."""
    placed = _position(text)
    if placed is None:
        return ("", text[1:], 0, 0) if text.startswith(" ") else (text, "", 0, 0)
    head, line, column = placed
    space = _before_file(head)
    if space < 0:
        return text, "", 0, 0
    return head[:space], head[space + 1 :], line, column


def _v8_wasm(tier: str) -> Split:
    """Parses `name-index-tier` as samply writes it."""
    match = re.compile(f"(.*)-([0-9]{{1,9}})-{tier}", re.DOTALL).fullmatch

    def split(text: str) -> Parts | None:
        found = match(text)
        return plain(f"{found[1]} (WASM:{found[2]})") if found else None

    return split


def _v8_regexp(text: str) -> Parts:
    """Parses `(a|b)' flags: 'g'`, what is between the quotes written as JavaScript does."""
    source, between, flags = text.removesuffix("'").rpartition("' flags: '")
    return plain(f"/{source}/{flags}" if between else text)


def _v8_source(text: str) -> Parts | None:
    """Parses `(a|b)`. `RegExp::match` may be a function of C++."""
    return plain(f"/{text}/") if not text.startswith(":") else None


_V8_MARKERS = (
    ("~", _INTERPRETER),
    ("^", _BASELINE),
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
_V8_MARKED = compiled_later(
    f"(?P<tag>{'|'.join(_V8_TAGS)})(?:{'|'.join(re.escape(m) for m, _ in sorted(_V8_MARKERS, reverse=True))})"
)
# wasm-to-js-<anonymous>-none: code of a WebAssembly module that is not one of its functions.
_V8_WRAPPER = "(?P<function>.*)-<anonymous>-(?:none|liftoff|turbofan)"


def without_tier(name: str) -> str:
    """Returns the name of the same function's code in a tier that nothing tells."""
    return _V8_MARKED.sub(r"\g<tag>?", name, count=1) if _V8_MARKED.match(name) else name


V8: tuple[Pattern, ...] = (
    *(js(tag + marker, tier, _v8_location) for tag in _V8_TAGS for marker, tier in _V8_MARKERS),
    Pattern("JS:", "wasm", "WebAssembly", tier("Liftoff (wasm)", "blue"), _v8_wasm("liftoff"), is_js=True),
    Pattern("JS:", "wasm", "WebAssembly", tier("Turbofan (wasm)", "green"), _v8_wasm("turbofan"), is_js=True),
    Pattern("JS:", "trampoline", "JIT", None, fields(_V8_WRAPPER)),
    # Without a marker: interpreted, and never to be optimized (ComputeMarker in log.cc).
    js("JS:", _INTERPRETER, _v8_location),
    *(js(tag, _INTERPRETER, _v8_location, own=False) for tag in _V8_TAGS[1:]),
    Pattern("Builtin:", "builtin", "JavaScript", tier("Builtin", "brown")),
    # samply calls these Interpreter too, but in another colour: a family of their own.
    Pattern("BytecodeHandler:", "stub", "JavaScript", tier("Interpreter", "red", family="BytecodeHandler")),
    # What is behind the dot keeps pprof from taking the name for one of C++: `<` from V8 15 on.
    *(Pattern(f"RegExp.{sign} src: '", "regexp", "RegExp", None, _v8_regexp) for sign in "><"),
    # Node 20 and older, of which flags are not known.
    Pattern("RegExp:", "regexp", "RegExp", None, _v8_source),
    Pattern("RegExp:", "regexp", "RegExp", own=False),
    machinery("Stub:", "stub", own=False),
    machinery("Handler:", "inline cache", own=False),
    machinery("Callback:", "trampoline", own=False),
    GENERIC,
)

# ---------------------------------------------------------------- JavaScriptCore

# A hash has six letters and digits; private names begin with # too.
_JSC_HASH = compiled_later(r"#[^\W_]{6}\Z")


def _jsc_location(text: str) -> Parts:
    """Parses `name#hash`, `name[Call (StrictMode)]`, and either of them with ` file:line:column` behind it."""
    bracket = text.find("[Call")
    if bracket < 0:
        bracket = text.find("[Construct")
    if bracket < 0:
        function, file, line, column = _v8_location(text)
    else:
        behind = text[bracket:].partition("]")[2].removeprefix(" ")
        function = text[:bracket]
        file, line, column = _position(behind) or (behind, 0, 0)
    return _JSC_HASH.sub("", function), file, line, column


_THUNKS = ("Thunk", "LLIntThunk", "ExtraCTIThunk", "DFGThunk", "FTLThunk", "WasmThunk")
_TRAMPOLINES = ("DFGOSREntry", "DFGOSRExit", "FTLOSRExit", "JumpIsland")

JAVASCRIPTCORE: tuple[Pattern, ...] = (
    js("JSC-Baseline: ", _BASELINE, _jsc_location),
    js("JSC-DFG: ", tier("DFG", "magenta"), _jsc_location),
    js("JSC-FTL: ", tier("FTL", "green"), _jsc_location),
    Pattern("JSC-WasmBBQ: ", "wasm", "WebAssembly", tier("BBQ", "blue"), _jsc_location, is_js=True),
    Pattern("JSC-WasmOMG: ", "wasm", "WebAssembly", tier("OMG", "green"), _jsc_location, is_js=True),
    Pattern("JSC-YarrJIT: ", "regexp", "RegExp"),
    machinery("JSC-InlineCache: ", "inline cache", tier("IC", "brown")),
    *(machinery(f"JSC-{name}: ", "stub", tier(name, "darkgrey")) for name in _THUNKS),
    *(machinery(f"JSC-{name}: ", "trampoline", tier(name, "darkgrey")) for name in _TRAMPOLINES),
    machinery("JSC-CSSJIT: ", "stub", tier("CSSJIT", "red")),
    machinery("JSC-Uncategorized: ", "stub", tier("Uncategorized", "darkgrey")),
    machinery("JSC-", "stub"),
    # What it wrote before each name began with JSC-; for Baseline, see SpiderMonkey.
    machinery("BaselineThunk: ", "stub", _TRAMPOLINE),
    Pattern("PolymorphicCallStubBaseline: ", "stub", "JIT", _TRAMPOLINE, _jsc_location, is_js=True),
    Pattern("PolymorphicAccessStubBaseline: ", "stub", "JIT", _TRAMPOLINE, _jsc_location, is_js=True),
    GENERIC,
)

# ---------------------------------------------------------------- SpiderMonkey

_ESCAPED = compiled_later(r"(?:\\x[0-9A-F]{2}|\\u[0-9A-F]{4})+")


def _unescape(match: re.Match[str]) -> str:
    units = match[0].encode("ascii").decode("unicode_escape")
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sm_location(text: str) -> Parts:
    """Parses `function (file:line:column)`; `*` is a script or a function without a name, and whatever is beyond ASCII
    in a function's name is written as \xfc or \u30e1."""
    head, line, column = (_position(text[:-1]) if text.endswith(")") else None) or ("", 0, 0)
    function, bracket, file = head.partition(" (")
    if not bracket:
        return text, "", 0, 0
    if "\\" in function:
        function = _ESCAPED.sub(_unescape, function)
    return ("" if function == "*" else function), file, line, column


def _sm_ion_ic(text: str) -> Parts | None:
    """Parses `type : function (file:line:column)`."""
    _, colon, function = text.partition(" : ")
    return _sm_location(function) if colon else None


_BLINTERP = tier("BaselineInterpreter", "magenta")
_SM_STUBS = (
    "RegExpMatcherStub", "RegExpSearcherStub", "RegExpExecMatchStub", "RegExpExecTestStub", "StringConcatStub",
    "DebugTrapHandler",
)  # fmt: skip
# file:bytecode offset: Function name.
_SM_WASM = "(?P<file>.*?)(?::[0-9]{1,9})?: Function (?P<function>.*)"

SPIDERMONKEY: tuple[Pattern, ...] = (
    js("Interpreter: ", tier("Interpreter", "red"), _sm_location),
    js("BaselineInterpreter: ", _BLINTERP, _sm_location),
    js("Baseline: ", _BASELINE, _sm_location),
    js("Ion: ", tier("Ion", "green"), _sm_location),
    Pattern("Wasm: ", "wasm", "WebAssembly", tier("Wasm", "blue"), is_js=True),
    Pattern("BlinterpOp: ", "stub", "JavaScript", tier("BlinterpOp", "magenta", family="BaselineInterpreter")),
    Pattern("IonIC: ", "inline cache", "JIT", tier("IonIC", "brown"), _sm_ion_ic, is_js=True),
    machinery("IonIC: ", "inline cache", tier("IonIC", "brown")),
    machinery("BaselineIC: ", "inline cache", tier("BaselineIC", "brown")),
    machinery("BaselineICFallback: ", "inline cache", tier("BaselineICFallback", "brown", family="BaselineIC")),
    machinery("IC: ", "inline cache", tier("IC", "brown")),
    machinery("Trampoline: ", "trampoline", _TRAMPOLINE),
    machinery("WasmTrampoline: ", "trampoline", tier("WasmTrampoline", "darkgrey", family="Trampoline")),
    machinery("VMWrapper: ", "trampoline", tier("VMWrapper", "darkgrey", family="Trampoline")),
    Pattern("", "stub", "JavaScript", _BLINTERP, fields("BaselineInterpreter"), own=False),
    Pattern("", "regexp", "RegExp", None, fields("RegExp"), own=False),
    Pattern("", "stub", "JIT", None, fields("|".join(_SM_STUBS)), own=False),
    Pattern("", "wasm", "WebAssembly", tier("Wasm", "blue"), fields(_SM_WASM), is_js=True, own=False),
    GENERIC,
)
