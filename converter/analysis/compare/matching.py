"""Which function of one recording is which of another: by name, file and kind, across builds, addresses and tiers.

What has no counterpart by all three is looked for by less: without folders of the file, then without the file, then
without what compilers add to names and the lines that tools do, then without arguments, which debug information does
not tell of a function that is inlined wherever it is called, regular expressions without slashes and flags, then
without its kind where one has none, as those of viewers' files and of most profiles of stacks, and as symbols of V8's
builtins. Functions without a name of their own match by order in their file: alignment.py.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from traceferry.analysis.compare.alignment import Function, aligned
from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later
from traceferry.symbolication.short_names import short_name

Key = tuple[Any, ...]
T = TypeVar("T")
NAMELESS = compiled_later(r"^$|^[(<\[]?anonymous|^<lambda|\{lambda|\(anonymous (function|class)\)|\$_\d+|<lambda\w*>")
# ".constprop.0", ".isra.0", ".part.3", ".cold", ".llvm.1234": added by compilers to copies of functions.
# "fib (app.py:12)" of VizTracer, "module.py(1501): forward" of PyTorch's profiler.
LINE = compiled_later(r"(?<=.):\d+(?=\)$)|(?<=\.\w\w)\(\d+\)(?=: )")
PART = compiled_later(r" \(\.[\w.]+\)$")
REGEXP = compiled_later(r"/(?P<source>.*)/[a-z]*", re.DOTALL)
COPY = compiled_later(r"(\.(constprop|isra|part|llvm|lto_priv|cold|clone)(\.\d+)?)+|@@?[A-Z]+_[\d.]+$")


def is_nameless(name: str) -> bool:
    return bool(NAMELESS.search(name))


class Renames:
    """The names that are given as OLD=NEW. A * in OLD stands for any text, and the same * in NEW for that text. OLD is
    a name with its arguments or without: then NEW has them, too."""

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._rules: list[tuple[str, re.Pattern[str], list[str]]] = []
        for text in given:
            old, equals, new = text.partition("=")
            if not equals or not old or not new:
                raise UsageError(f"--rename {text!r}: write OLD=NEW, as parse=parseText or old::*=new::*")
            if new.count("*") > old.count("*"):
                raise UsageError(f"--rename {text!r}: NEW has more * than OLD")
            pattern = "(.*)".join(re.escape(part) for part in old.split("*"))
            self._rules.append((text, re.compile(pattern, re.DOTALL), new.split("*")))

    def __call__(self, name: str) -> str:
        for _, pattern, parts in self._rules:
            if (renamed := _renamed(name, pattern, parts)) is not None:
                return renamed
        return name

    def unused(self, names: Collection[str]) -> list[str]:
        """Returns what is given that renames none of the names."""
        return [
            text
            for text, pattern, parts in self._rules
            if all(_renamed(name, pattern, parts) is None for name in names)
        ]


def _renamed(name: str, pattern: re.Pattern[str], parts: Sequence[str]) -> str | None:
    match, arguments = pattern.fullmatch(name), ""
    if match is None:
        head, arguments = _without_arguments_of(name)
        match = pattern.fullmatch(head) if head != name else None
    if match is None:
        return None
    return "".join(a + b for a, b in zip(parts, [*match.groups(), *[""] * len(parts)], strict=False)) + arguments


def _without_arguments_of(name: str) -> tuple[str, str]:
    """("parse", "(long)") of `int parse(long)`"""
    short = COPY.sub("", PART.sub("", short_name(name)))
    _, found, after = name.partition(short)
    return (short, after) if found else (name, "")


def matched(
    base: Iterable[Function], new: Iterable[Function], renames: Renames
) -> tuple[dict[Function, Function], dict[Function, Function]]:
    """Returns what each function of the base and of the new side is called here: two with the same value are one. The
    value is the function as the new side has it, or as the base has it where the new side has none; lines of a name
    that is not anonymous are left out."""
    renamed = {f: (renames(f[0]), *f[1:]) for f in sorted(set(base))}
    of_base = {f: _identity(r) for f, r in renamed.items()}
    of_new = {f: _identity(f) for f in sorted(set(new))}
    named_base, named_new = ({i for i in of.values() if not _is_in_file(i)} for of in (of_base, of_new))
    found = _pairs(named_base, named_new, [lambda identity: identity, *BY_LESS])
    rest = _pairs(named_base - found.keys(), named_new - set(found.values()), WITHOUT_KIND)
    found |= {old: new for old, new in rest.items() if not (old[3] and new[3])}
    of_base = {f: found.get(i, i) for f, i in of_base.items()}
    anchors = _anchors({renamed[f]: i for f, i in of_base.items()}, of_new)
    by_line = _by_line(filter(_is_in_file, renamed.values()), list(filter(_is_in_file, of_new)), anchors)
    taken = set(of_new.values())
    for function, called in renamed.items():
        if _is_in_file(called):
            of_base[function] = by_line.get(called) or _apart(called, taken)
    return of_base, of_new


def _is_in_file(function: Function) -> bool:
    """Whether only its file and line tell which it is."""
    return bool(function[1]) and is_nameless(function[0])


def _apart(function: Function, taken: Collection[Function]) -> Function:
    """Returns a function that only the base has; where the new side has another one at its line, the file says which it
    is."""
    name, file, line, kind = function
    return (name, f"{file} (base)", line, kind) if function in taken else function


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


def _without_line(function: Function) -> Key | None:
    name, file, line, kind = function
    return None if is_nameless(name) else (LINE.sub("", name), file, line, kind)


def _without_arguments(function: Function) -> Key | None:
    name, file, line, kind = function
    return None if is_nameless(name) else (short_name(COPY.sub("", name)), re.split(r"[/\\]", file)[-1], line, kind)


def _without_flags(function: Function) -> Key | None:
    """V8 of Node.js 20 and older writes regular expressions without flags; other recorders, also without slashes."""
    name, file, line, kind = function
    if kind != "regexp":
        return None
    written = REGEXP.fullmatch(name)
    return written["source"] if written else name, file, line, kind


def _without_kind(function: Function) -> Key | None:
    return function[:3]


def _without_kind_and_folders(function: Function) -> Key | None:
    name, file, line, _ = function
    return name, re.split(r"[/\\]", file)[-1], line


def _without_kind_and_file(function: Function) -> Key | None:
    name, _, line, _ = function
    return None if is_nameless(name) else (name, line)


def _without_prefix(function: Function) -> Key | None:
    """Builtins_ArrayMap, a symbol of the library of V8, is what jitdumps call ArrayMap."""
    name, _, line, _ = function
    return None if is_nameless(name) else (name.removeprefix("Builtins_"), line)


BY_LESS = (_without_folders, _without_file, _without_copies, _without_line, _without_arguments, _without_flags)
WITHOUT_KIND = (_without_kind, _without_kind_and_folders, _without_kind_and_file, _without_prefix)


def _pairs(base: set[T], new: set[T], keys: Iterable[Callable[[T], Any]]) -> dict[T, T]:
    """Returns those that share a key with exactly one of the other side, and with none of their own: by the first key,
    of those that are left by the next. A key of None is none."""
    found: dict[T, T] = {}
    for key_of in keys:
        sides: list[dict[Any, list[T]]] = [defaultdict(list), defaultdict(list)]
        for side, groups in zip((base - found.keys(), new - set(found.values())), sides, strict=True):
            for each in side:
                groups[key_of(each)].append(each)
        found |= {
            members[0]: sides[1][key][0]
            for key, members in sides[0].items()
            if key is not None and len(members) == len(sides[1].get(key, ())) == 1
        }
    return found


def _anchors(
    of_base: Mapping[Function, Function], of_new: Mapping[Function, Function]
) -> dict[tuple[str, str], list[tuple[Function, Function]]]:
    """Returns the functions whose name and line are the same, by both files."""
    back: dict[Function, list[Function]] = defaultdict(list)
    for function, identity in of_new.items():
        back[identity].append(function)
    found: dict[tuple[str, str], list[tuple[Function, Function]]] = defaultdict(list)
    for old, identity in of_base.items():
        news = back.get(identity, [])
        if old[2] and len(news) == 1 and news[0][2] and not is_nameless(old[0]):
            found[old[1], news[0][1]].append((old, news[0]))
    return found


def _by_line(
    base: Iterable[Function],
    new: Iterable[Function],
    anchors: Mapping[tuple[str, str], Sequence[tuple[Function, Function]]],
) -> dict[Function, Function]:
    """Functions without a name, file by file."""
    by_file: list[dict[str, list[Function]]] = [defaultdict(list), defaultdict(list)]
    for groups, functions in zip(by_file, (base, new), strict=True):
        for function in functions:
            groups[function[1]].append(function)
    found: dict[Function, Function] = {}
    for old, fresh in _same_files(*by_file).items():
        found |= aligned(by_file[0][old], by_file[1][fresh], anchors.get((old, fresh), ()))
    return found


def _same_files(base: Iterable[str], new: Iterable[str]) -> dict[str, str]:
    """Returns those of the same path; then those whose last parts, as many as possible, are the same and no others'."""
    parts = {file: tuple(re.split(r"[/\\]", file)) for file in (*base, *new)}
    deepest = max(map(len, parts.values()), default=0)
    by_last = [lambda file, depth=depth: parts[file][-depth:] for depth in range(deepest, 0, -1)]
    return _pairs(set(base), set(new), [lambda file: file, *by_last])
