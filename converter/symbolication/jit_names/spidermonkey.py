"""Names of SpiderMonkey: jit/PerfSpewer.cpp."""

from __future__ import annotations

import re

from traceferry.symbolication.jit_names.patterns import (
    BASELINE,
    GENERIC,
    INTERPRETER_CODE,
    TRAMPOLINE,
    Parts,
    Pattern,
    js,
    machinery,
    number,
    only,
    position,
    tier,
)

_ESCAPED = re.compile(r"(?:\\x[0-9A-F]{2}|\\u[0-9A-F]{4})+")


def _unescape(match: re.Match[str]) -> str:
    units = match[0].encode("ascii").decode("unicode_escape")
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _sm_location(text: str) -> Parts:
    """Parses `function (file:line:column)`; `*` is a script or a function without a name, and whatever is beyond ASCII
    in a function's name is written as \xFC or \u30E1."""
    head, line, column = (position(text[:-1]) if text.endswith(")") else None) or ("", 0, 0)
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


def _sm_wasm(text: str) -> Parts | None:
    """Parses `file:bytecode offset: Function name`."""
    file, infix, function = text.partition(": Function ")
    if not infix:
        return None
    head, colon, offset = file.rpartition(":")
    return function, (head if colon and number(offset) >= 0 else file), 0, 0


_BASELINE_INTERPRETER = tier("BaselineInterpreter", "magenta")

_SM_STUBS = (
    "RegExpMatcherStub", "RegExpSearcherStub", "RegExpExecMatchStub", "RegExpExecTestStub", "StringConcatStub",
    "DebugTrapHandler",
)  # fmt: skip

PATTERNS: tuple[Pattern, ...] = (
    js("Interpreter: ", INTERPRETER_CODE, _sm_location),
    js("BaselineInterpreter: ", _BASELINE_INTERPRETER, _sm_location),
    js("Baseline: ", BASELINE, _sm_location),
    js("Ion: ", tier("Ion", "green"), _sm_location),
    Pattern("Wasm: ", "wasm", "WebAssembly", tier("Wasm", "blue"), is_js=True),
    Pattern("BlinterpOp: ", "stub", "JavaScript", tier("BlinterpOp", "magenta", family="BaselineInterpreter")),
    Pattern("IonIC: ", "inline cache", "JIT", tier("IonIC", "brown"), _sm_ion_ic, is_js=True),
    machinery("IonIC: ", "inline cache", tier("IonIC", "brown")),
    machinery("BaselineIC: ", "inline cache", tier("BaselineIC", "brown")),
    machinery("BaselineICFallback: ", "inline cache", tier("BaselineICFallback", "brown", family="BaselineIC")),
    machinery("IC: ", "inline cache", tier("IC", "brown")),
    machinery("Trampoline: ", "trampoline", TRAMPOLINE),
    machinery("WasmTrampoline: ", "trampoline", tier("WasmTrampoline", "darkgrey", family="Trampoline")),
    machinery("VMWrapper: ", "trampoline", tier("VMWrapper", "darkgrey", family="Trampoline")),
    Pattern("", "stub", "JavaScript", _BASELINE_INTERPRETER, only("BaselineInterpreter"), own=False),
    Pattern("", "regexp", "RegExp", None, only("RegExp"), own=False),
    Pattern("", "stub", "JIT", None, only(*_SM_STUBS), own=False),
    Pattern("", "wasm", "WebAssembly", tier("Wasm", "blue"), _sm_wasm, is_js=True, own=False),
    GENERIC,
)  # fmt: skip
