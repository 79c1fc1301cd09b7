"""The fields of code object names, and the patterns by which a producer's table parses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

ANONYMOUS = "(anonymous)"

# The file of SpiderMonkey's own JavaScript, which samply keeps out of the JavaScript-only view.
SELF_HOSTED = "self-hosted"

CATEGORY_COLORS = {
    "JavaScript": "yellow",
    "WebAssembly": "blue",
    "Java": "yellow",
    "PHP": "lightblue",
    "Erlang": "lightred",
    "Python": "blue",
    "RegExp": "red",
    "JIT": "purple",
}


class Tier(NamedTuple):
    """name: the producer's word for it, as Turbofan (OSR); family: what is one colour and one category in the viewer,
    as Turbofan; color: one of the Firefox Profiler's colour names.

    A producer's families have one colour each. Two producers may differ: V8's and SpiderMonkey's Interpreter do.
    """

    name: str
    family: str
    color: str


class Name(NamedTuple):
    """function: never empty; kind: function, builtin, stub, trampoline, regexp, inline cache or wasm; category: one of
    CATEGORY_COLORS; file: as the producer writes it; line, column: from 1, 0 is unknown; is_js: belongs into the
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


def number(digits: str) -> int:
    """Returns -1 for anything but up to nine digits."""
    return int(digits) if len(digits) <= 9 and digits.isascii() and digits.isdecimal() else -1


def position(text: str) -> tuple[str, int, int] | None:
    """Returns `file:12:3` as file, 12 and 3."""
    pieces = text.rsplit(":", 2)
    if len(pieces) < 3:
        return None
    line, column = number(pieces[1]), number(pieces[2])
    return (pieces[0], line, column) if line >= 0 and column >= 0 else None


def plain(text: str) -> Parts:
    return text, "", 0, 0


def only(*names: str) -> Split:
    def split(text: str) -> Parts | None:
        return plain(text) if text in names else None

    return split


@dataclass(frozen=True)
class Pattern:
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

INTERPRETER = tier("Interpreter", "magenta")

INTERPRETER_CODE = tier("Interpreter", "red")

BASELINE = tier("Baseline", "blue")

TRAMPOLINE = tier("Trampoline", "darkgrey")
