"""The fields of code object names, and the patterns by which a producer's table parses them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from traceferry.symbolication.tiers import Tier

ANONYMOUS = "(anonymous)"

# The file of SpiderMonkey's own JavaScript, which samply keeps out of the JavaScript-only view.
SELF_HOSTED = "self-hosted"


class Name(NamedTuple):
    """function: never empty; kind: function, builtin, stub, trampoline, regexp, inline cache or wasm; category: one of
    model.categories; file: as the producer writes it; line, column: from 1, 0 is unknown; is_js: belongs into the
    viewer's JavaScript-only view, as functions of any scripting language do."""

    function: str
    kind: str
    category: str
    tier: Tier | None
    file: str = ""
    line: int = 0
    column: int = 0
    is_js: bool = False


Parts = tuple[str, str, int, int]  # function, file, line, column

Split = Callable[[str], Parts | None]  # None: not of this pattern


def plain(text: str) -> Parts:
    return text, "", 0, 0


def fields(expression: str) -> Split:
    """Parses what an expression matches as a whole: its groups function and file are these; without a function it is
    the text."""
    match = re.compile(expression, re.DOTALL).fullmatch

    def split(text: str) -> Parts | None:
        found = match(text)
        if found is None:
            return None
        groups = found.groupdict("")
        return groups.get("function", text), groups.get("file", ""), 0, 0

    return split


class Pattern(NamedTuple):
    """start: how such names begin; split: parses what follows, or the whole name with `whole`, and may reject it;
    own: no other producer writes such names, so that they tell who wrote a file."""

    start: str
    kind: str
    category: str
    tier: Tier | None = None
    split: Split = plain
    is_js: bool = False
    whole: bool = False
    own: bool = True


def tier(name: str, color: str, *, family: str = "") -> Tier:
    return Tier(name, family or name, color)


def js(start: str, tier: Tier | None, split: Split, *, own: bool = True) -> Pattern:
    return Pattern(start, "function", "JavaScript", tier, split, is_js=True, own=own)


def machinery(start: str, kind: str, tier: Tier | None = None, *, whole: bool = False, own: bool = True) -> Pattern:
    return Pattern(start, kind, "JIT", tier, whole=whole, own=own)


GENERIC = Pattern("", "function", "JIT", own=False)
