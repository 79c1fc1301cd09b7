"""Names of PHP: ext/opcache/jit."""

from __future__ import annotations

import re

from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern, machinery, number, tier

_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\")


def _php_function(text: str) -> Parts:
    """Returns a function, or the file of which the code outside of functions runs; PHP calls that {main}."""
    # PHP's own names have no slashes: namespaces are separated by backslashes.
    return ("{main}", text, 0, 0) if "/" in text or _WINDOWS_PATH.match(text) else (text, "", 0, 0)


def _php_trace(text: str) -> Parts | None:
    """Parses `number$function$line`, where the line is that of the trace's first operation."""
    nth, dollar, rest = text.partition("$")
    named, second, digits = rest.rpartition("$")
    line = number(digits)
    if not (dollar and second and number(nth) >= 0 and line >= 0):
        return None
    function, file, _, _ = _php_function(named)
    return function, file, line, 0


PATTERNS: tuple[Pattern, ...] = (
    Pattern("TRACE-", "function", "PHP", tier("Tracing JIT", "green"), _php_trace, is_js=True),
    machinery("JIT$$", "stub"),
    machinery("jit$$", "stub"),
    Pattern("JIT$", "function", "PHP", tier("Function JIT", "blue"), _php_function, is_js=True),
    machinery("ESCAPE-", "stub", whole=True),
    GENERIC,
)  # fmt: skip
