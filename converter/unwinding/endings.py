"""The frames under which incomplete stacks stand: they say why the callers are missing."""

from __future__ import annotations

import re

TRUNCATED = "(truncated stack)"
CONTRADICTION = "(contradictory unwind information)"
NO_INFORMATION = "(no unwind information: {})"
OTHER_STACK = "(callers on another stack: {})"
# In place of a file's name: code that a runtime put into memory.
OF_NO_FILE = "memory without a file"


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(re.escape(name).replace(r"\{\}", "(.*)"), re.DOTALL)


_FILE, _FUNCTION = _pattern(NO_INFORMATION), _pattern(OTHER_STACK)


def is_ending(name: str) -> bool:
    """Returns whether a function's name is that of such a frame."""
    return name in (TRUNCATED, CONTRADICTION) or bool(_FILE.fullmatch(name) or _FUNCTION.fullmatch(name))


def unwound_file(name: str) -> str:
    """Returns the file without unwind information that such a frame's name tells of, "" where it tells of none."""
    found = _FILE.fullmatch(name)
    return found[1] if found is not None else ""


def switching_function(name: str) -> str:
    """Returns the function that left the callers' stack, of which such a frame's name tells, "" where it tells of
    none."""
    found = _FUNCTION.fullmatch(name)
    return found[1] if found is not None else ""
