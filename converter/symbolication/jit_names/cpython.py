"""Names of CPython."""

from __future__ import annotations

from traceferry.symbolication.jit_names.patterns import GENERIC, Parts, Pattern


def _python_location(text: str) -> Parts:
    """Parses `qualified name:file`; a qualified name has no colon."""
    function, _, file = text.partition(":")
    return function, file, 0, 0


PATTERNS: tuple[Pattern, ...] = (
    Pattern("py::", "function", "Python", None, _python_location, is_js=True),
    GENERIC,
)  # fmt: skip
