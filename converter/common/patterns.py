"""Regular expressions that are compiled when they are first used: most conversions need few of them, and each takes
0.2 to 2 ms, in all a tenth of the start-up."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def compiled_later(text: AnyStr, flags: int | re.RegexFlag = 0) -> re.Pattern[AnyStr]:
    """Returns what can be used as `re.compile(text, flags)`, whose errors come at the first use, too."""
    return cast("re.Pattern[AnyStr]", _Later(text, flags))


class _Later:
    """Stands for a pattern, but not where `re` itself takes one: as the first argument of re.sub."""

    def __init__(self, text: str | bytes, flags: int | re.RegexFlag) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        # Asked for what is not here: only the first time, and never for what copying and pickling look for.
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value
