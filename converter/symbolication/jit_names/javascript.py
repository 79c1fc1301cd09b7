"""Places in the names of V8 and JavaScriptCore: `function file:line:column`."""

from __future__ import annotations

import re

from traceferry.symbolication.jit_names.patterns import Parts, position

# A space before a path, a drive or a scheme: `node:fs`, `file:///x`, `C:\x`, `../x`, `\\server`.
_BEFORE_PATH = re.compile(r" (?=\.{0,2}/|\\\\|[A-Za-z][A-Za-z0-9+.-]*:)")

_ACCESSORS = ("get ", "set ")


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


def js_location(text: str) -> Parts:
    """Parses V8's `function file:line:column`. A script without a position is ` file`."""
    placed = position(text)
    if placed is None:
        return ("", text[1:], 0, 0) if text.startswith(" ") else (text, "", 0, 0)
    head, line, column = placed
    space = _before_file(head)
    if space < 0:
        return text, "", 0, 0
    return head[:space], head[space + 1 :], line, column
