"""Names of JavaScriptCore (Bun, WebKit)."""

from __future__ import annotations

from traceferry.symbolication.jit_names.javascript import js_location
from traceferry.symbolication.jit_names.patterns import (
    BASELINE,
    GENERIC,
    TRAMPOLINE,
    Parts,
    Pattern,
    js,
    machinery,
    position,
    tier,
)


def _without_hash(function: str) -> str:
    """Returns the name of JavaScriptCore's `name#hash`, where the hash has six letters and digits; private names begin
    with # too."""
    name, hash_mark, digest = function.rpartition("#")
    return name if hash_mark and len(digest) == 6 and digest.isalnum() else function


def _jsc_location(text: str) -> Parts:
    """Parses `name#hash`, `name[Call (StrictMode)]`, and either of them with ` file:line:column` behind it."""
    bracket = text.find("[Call")
    if bracket < 0:
        bracket = text.find("[Construct")
    if bracket < 0:
        function, file, line, column = js_location(text)
    else:
        behind = text[bracket:].partition("]")[2].removeprefix(" ")
        function = text[:bracket]
        file, line, column = position(behind) or (behind, 0, 0)
    return _without_hash(function), file, line, column


_THUNKS = ("Thunk", "LLIntThunk", "ExtraCTIThunk", "DFGThunk", "FTLThunk", "WasmThunk")
_TRAMPOLINES = ("DFGOSREntry", "DFGOSRExit", "FTLOSRExit", "JumpIsland")

PATTERNS: tuple[Pattern, ...] = (
    js("JSC-Baseline: ", BASELINE, _jsc_location),
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
    machinery("BaselineThunk: ", "stub", TRAMPOLINE),
    Pattern("PolymorphicCallStubBaseline: ", "stub", "JIT", TRAMPOLINE, _jsc_location, is_js=True),
    Pattern("PolymorphicAccessStubBaseline: ", "stub", "JIT", TRAMPOLINE, _jsc_location, is_js=True),
    GENERIC,
)  # fmt: skip
