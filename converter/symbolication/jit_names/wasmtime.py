"""Names of wasmtime: its jitdump agent."""

from __future__ import annotations

import re

from traceferry.symbolication.jit_names.patterns import Parts, Pattern, machinery

_WASMTIME = re.compile(r"wasm\[[0-9]+\]::function\[[0-9]+\](?:::(.+))?", re.DOTALL)


def _wasmtime_function(text: str) -> Parts | None:
    found = _WASMTIME.fullmatch(text)
    return (found[1] or text, "", 0, 0) if found else None


PATTERNS: tuple[Pattern, ...] = (
    Pattern("wasm[", "wasm", "WebAssembly", None, _wasmtime_function, whole=True),
    machinery("wasm[", "trampoline", whole=True),
    machinery("signatures[", "trampoline", whole=True),
    Pattern("", "wasm", "WebAssembly", own=False),
)  # fmt: skip
