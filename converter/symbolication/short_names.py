"""Short forms of functions' names: without the lists of their arguments, or digests of these, which fill the boxes of a
flame graph, and without the types that templates return; in sentences without the types that templates are made for,
too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from traceferry.common.patterns import compiled_later

# What follows the arguments of a member of a class in C++.
_QUALIFIERS = (" const", " volatile", " &&", " &", " noexcept")
_CALL_OPERATOR = "operator()"
_OPERATOR = "operator"
# Between which an operator's name stands.
_SIGNS = ':<>=!+-*/%^&|~()[], "'
# What a name, its template arguments, tags or lambdas end with, besides letters and digits: other signs in front of a
# bracket are no signature's, as in Haskell's `GHC.Base.(.)` and V8's `exports.(anonymous)`.
_ENDS_OF_NAMES = "_>]}'$"
# The type that a function of Crystal returns, behind the types of its arguments: `new<Int32>:Array(Int32)`.
_CRYSTAL_TYPE = compiled_later(r">:[A-Z]")
_OTHER_THINGS = (" to", " for")
# What native images of GraalVM have behind a method, and its stubs behind the method's: digests of the signature.
_DIGESTS = compiled_later(r"(?:__?[0-9a-f]{40}){1,2}\Z")


class ShortForms(dict[str, str]):
    """The short form of each name, found when it is first asked for."""

    def __missing__(self, name: str) -> str:
        self[name] = short_name(name)
        return self[name]


def short_names(names: Sequence[str], forms: ShortForms | None = None) -> list[str]:
    """Returns the short form of each of the functions of a profile; the name itself where another function's short form
    is the same, as those of overloaded functions are. forms: of another call for functions of the same profile."""
    forms = ShortForms() if forms is None else forms
    shorts = {name: forms[name] for name in dict.fromkeys(names)}
    counts = Counter(shorts.values())
    return [shorts[name] if counts[shorts[name]] == 1 else name for name in names]


def short_name(name: str) -> str:
    """Returns `geo::scale(double) const (.cold)` as `geo::scale (.cold)`, and `void each<int>(int)` as `each<int>`, in
    linear time; a name without arguments as it is."""
    if digests := _DIGESTS.search(name, max(len(name) - 84, 1)):
        return name[: digests.start()]
    end = _without_suffixes(name)
    suffix = name[end:]
    while word := next((word for word in _QUALIFIERS if name.endswith(word, 0, end)), ""):
        end -= len(word)
    begin = _opening(name, end) if name.endswith(")", 0, end) else -1
    if begin <= 0:
        return name
    shown = name[:begin]
    # `operator()` itself; a function that returns one, `void (*f(int))(char)`; `(anonymous)` and `f (2)`, no arguments.
    if shown.endswith(" "):
        return shown[:-1] + suffix if _is_method(shown, name[begin:end]) else name
    if shown.endswith("operator") or (shown.endswith(")") and not shown.endswith(_CALL_OPERATOR)):
        return name
    return shown[_after_type(shown) :] + suffix if _ends_as_name(shown) and not _CRYSTAL_TYPE.search(shown) else name


def brief_name(name: str, longest: int) -> str:
    """Returns a name, a short form of one or not, in at most this many characters: `std::map<int, std::less<int>>::at`
    as `std::map<…>::at` where it is longer."""
    if len(name) > longest:
        name = _without_template_arguments(name)
    opening = name.replace(_CALL_OPERATOR, _OPERATOR + "__").find("(")
    before = name[: max(opening, 0)]
    # Not `main.(*Server).handle` of Go, `<impl Fn(A)>::call` of Rust, `/^(a|b)/`.
    if len(name) > longest and before and _ends_as_name(before) and before.count("<") <= before.count(">"):
        name = f"{before}(…)"
    return f"{name[: longest - 1]}…" if len(name) > longest else name


def _ends_as_name(shown: str) -> bool:
    """Whether what is in front of a bracket can be the name of a function with arguments."""
    if shown[-1].isalnum() or shown[-1] in _ENDS_OF_NAMES:
        return True
    at = shown.rfind(_OPERATOR)
    return at >= 0 and _is_operator(shown, at)


def _without_template_arguments(name: str) -> str:
    """Returns a name with `<…>` for the arguments of templates; from an operator on, whose name may have such signs, as
    it is. What begins a name, or a part of it, is none: `<T as Trait>::f` of Rust."""
    kept: list[str] = []
    depth = 0  # within arguments
    are_arguments: list[bool] = []
    for at, letter in enumerate(name):
        if depth == 0 and _is_operator(name, at):
            return "".join(kept) + name[at:]
        if letter == ">" and are_arguments and name[at - 1] not in "-=":
            depth -= are_arguments.pop()
            if depth == 0 and kept[-1:] == ["<"]:
                kept.append("…")
        if depth == 0:
            kept.append(letter)
        if letter == "<":
            are_arguments.append(depth > 0 or name[at - 1 : at].isalnum() or name[at - 1 : at] == "_")
            depth += are_arguments[-1]
    return name if are_arguments else "".join(kept)


def _after_type(shown: str) -> int:
    """Returns where a name begins behind the type that the function returns, which only names of templates have:
    0 without one. shown: without arguments."""
    if " " not in shown:
        return 0
    depth, begin = 0, 0
    for at, letter in enumerate(shown):
        if letter in "<([{":
            depth += 1
        elif letter in ">)]}":
            depth -= 1
        elif depth == 0 and letter == " ":
            # `virtual thunk to f` is no type, and tells of another function than f.
            if shown.endswith(_OTHER_THINGS, 0, at):
                return 0
            begin = at + 1
        elif depth == 0 and _is_operator(shown, at):
            return begin  # its name can have blanks and brackets
    return begin if depth == 0 and "<" in shown[begin:] else 0


def _is_operator(shown: str, at: int) -> bool:
    """Whether the name of an operator begins here."""
    end = at + len(_OPERATOR)
    return shown.startswith(_OPERATOR, at) and not (shown[at - 1 : at] + shown[end : end + 1]).strip(_SIGNS)


def _is_method(shown: str, arguments: str) -> bool:
    """Whether it is a method, `Class:Method (int)`: no WebAssembly function, `f (WASM:3)`, nor Perl's `main::f (x)`."""
    name = shown[:-1].rpartition(" ")[2]
    return ":" in name and "::" not in name and not arguments.startswith("(WASM:")


def _without_suffixes(name: str) -> int:
    """Returns the end of a name without what compilers put behind it: ` (.cold)`, ` [clone .part.0]`."""
    end = len(name)
    for opening, closing in ((" (.", ")"), (" [clone ", "]")):
        while name.endswith(closing, 0, end) and (at := name.rfind(opening[0:2], 0, end)) > 0:
            if not name.startswith(opening, at) or name.find(closing, at, end) != end - 1:
                break
            end = at
    return end


def _opening(name: str, end: int) -> int:
    """Returns where the bracket is that the last one before `end` closes, -1 without any."""
    depth = 0
    for at in range(end - 1, -1, -1):
        if name[at] == ")":
            depth += 1
        elif name[at] == "(":
            depth -= 1
            if depth == 0:
                return at
    return -1
