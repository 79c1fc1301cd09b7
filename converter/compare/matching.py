"""Which function of one recording is which of another: by name, file and kind, across builds, addresses and tiers.

What has no counterpart by all three is looked for by less: without folders of the file, then without the file, then
without what compilers add to names. Functions without a name of their own match by file and nearest line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from traceferry.errors import UsageError

# (name, file, line, kind)
Function = tuple[str, str, int, str]
Key = tuple[Any, ...]
NAMELESS = re.compile(r"^$|^[(<\[]?anonymous|^<lambda|\{lambda|\(anonymous (function|class)\)|\$_\d+|<lambda\w*>")
# ".constprop.0", ".isra.0", ".part.3", ".cold", ".llvm.1234": added by compilers to copies of functions.
COPY = re.compile(r"(\.(constprop|isra|part|llvm|lto_priv|cold|clone)(\.\d+)?)+|@@?[A-Z]+_[\d.]+$")
# "$f3", "_12": numbers that differ from build to build.
NUMBERED = re.compile(r"\d+")


def is_nameless(name: str) -> bool:
    return bool(NAMELESS.search(name))


class Renames:
    """What is given as OLD=NEW. A * in OLD stands for any text, and the same * in NEW for that text."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._rules: list[tuple[re.Pattern[str], list[str]]] = []
        for text in given:
            old, equals, new = text.partition("=")
            if not equals or not old or not new:
                raise UsageError(f"--rename {text!r}: write OLD=NEW, as parse=parseText or old::*=new::*")
            if new.count("*") > old.count("*"):
                raise UsageError(f"--rename {text!r}: NEW has more * than OLD")
            pattern = "(.*)".join(re.escape(part) for part in old.split("*"))
            self._rules.append((re.compile(pattern, re.DOTALL), new.split("*")))

    def __call__(self, name: str) -> str:
        for pattern, parts in self._rules:
            match = pattern.fullmatch(name)
            if match:
                return "".join(a + b for a, b in zip(parts, [*match.groups(), *[""] * len(parts)], strict=False))
        return name


def matched(
    base: Iterable[Function], new: Iterable[Function], renames: Renames
) -> tuple[dict[Function, Function], dict[Function, Function]]:
    """What each function of the base and of the new side is called here: two with the same value are one. The value is
    the function as the new side has it, or as the base has it where the new side has none; lines of a name that is not
    anonymous are left out."""
    renamed = {f: (renames(f[0]), *f[1:]) for f in sorted(set(base))}
    of_base = {f: _identity(r) for f, r in renamed.items()}
    of_new = {f: _identity(f) for f in sorted(set(new))}
    left_base, left_new = set(of_base.values()) - set(of_new.values()), set(of_new.values()) - set(of_base.values())
    found: dict[Function, Function] = {}
    for key_of in (_without_folders, _without_file, _without_copies):
        pairs = _pairs(left_base, left_new, key_of)
        found |= pairs
        left_base, left_new = left_base - pairs.keys(), left_new - set(pairs.values())
    for pairs in _nearest(left_base, left_new):
        found |= pairs
    return {f: found.get(i, i) for f, i in of_base.items()}, of_new


def _identity(function: Function) -> Function:
    name, file, line, kind = function
    return name, file, line if is_nameless(name) else 0, kind


def _without_folders(function: Function) -> Key | None:
    name, file, line, kind = function
    return name, re.split(r"[/\\]", file)[-1], line, kind


def _without_file(function: Function) -> Key | None:
    name, _, line, kind = function
    return None if is_nameless(name) else (name, line, kind)


def _without_copies(function: Function) -> Key | None:
    name, file, line, kind = function
    return None if is_nameless(name) else (COPY.sub("", name), re.split(r"[/\\]", file)[-1], line, kind)


def _pairs(
    base: set[Function], new: set[Function], key_of: Callable[[Function], Key | None]
) -> dict[Function, Function]:
    """Those that share a key with exactly one of the other side, and with none of their own."""
    sides: list[dict[Key, list[Function]]] = []
    for functions in (base, new):
        groups: dict[Key, list[Function]] = defaultdict(list)
        for function in functions:
            key = key_of(function)
            if key is not None:
                groups[key].append(function)
        sides.append(groups)
    return {
        members[0]: sides[1][key][0]
        for key, members in sides[0].items()
        if len(members) == 1 and len(sides[1].get(key, ())) == 1
    }


def _nearest(base: set[Function], new: set[Function]) -> Iterable[dict[Function, Function]]:
    """Functions without a name, of one file and kind: in the order of distance of their lines."""
    groups: dict[Key, tuple[list[Function], list[Function]]] = defaultdict(lambda: ([], []))
    for nth, functions in enumerate((base, new)):
        for function in functions:
            if is_nameless(function[0]) and function[1]:
                name, file, _, kind = function
                groups[NUMBERED.sub("", name), re.split(r"[/\\]", file)[-1], kind][nth].append(function)
    for olds, news in groups.values():
        yield _by_distance(olds, news)


def _by_distance(olds: Sequence[Function], news: Sequence[Function]) -> dict[Function, Function]:
    distances = sorted((abs(a[2] - b[2]), a, b) for a in olds for b in news)
    found: dict[Function, Function] = {}
    taken: set[Function] = set()
    for _, old, new in distances:
        if old not in found and new not in taken:
            found[old] = new
            taken.add(new)
    return found
