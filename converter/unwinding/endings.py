"""The frames under which incomplete stacks stand: they say why the callers are missing."""

from __future__ import annotations

import re

TRUNCATED = "(truncated stack)"
CONTRADICTION = "(contradictory unwind information)"
NO_INFORMATION = "(no unwind information: {})"
# In place of a file's name: code that a runtime put into memory.
OF_NO_FILE = "memory without a file"
_ENDINGS = re.compile(
    "|".join(re.escape(name).replace(r"\{\}", "(.*)") for name in (TRUNCATED, CONTRADICTION, NO_INFORMATION)), re.DOTALL
)


def is_ending(name: str) -> bool:
    """Returns whether a function's name is that of such a frame."""
    return _ENDINGS.fullmatch(name) is not None


def unwound_file(name: str) -> str:
    """Returns the file without unwind information that such a frame's name tells of, "" where it tells of none."""
    found = _ENDINGS.fullmatch(name)
    return (found[1] or "") if found is not None else ""
