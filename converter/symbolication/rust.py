"""Names of Rust functions, as people write them.

Sources: the legacy mangling is Itanium's with a hash as the last part, rustc's symbol_names/legacy.rs; the v0 mangling
is RFC 2603 and the rustc book, "v0 Symbol Format".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from traceferry.common.patterns import compiled_later

# What rustc's code generation puts behind a name that it makes visible to other units.
LLVM_SUFFIX = compiled_later(r"\.llvm\.[0-9A-Fa-f]+(?=\.|$)")
LEGACY = compiled_later(r"_?_?_ZN((?:[1-9][0-9]*[^0-9].*)?)17h([0-9a-f]{16})E((?:\..*)?)", re.ASCII)
PART_LENGTH = compiled_later(r"[1-9][0-9]{0,5}")
# A hash has many different digits; a C++ function called h0000000000000000 has not.
FEWEST_DIGITS = 5
ESCAPES = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}
ESCAPE = compiled_later(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u([0-9a-f]{1,6}))\$|(\.\.)|\.")

V0 = compiled_later(r"_?_R([A-Z][0-9A-Za-z_]*)(\..*)?", re.ASCII)
# What follows the letter that a path, type or constant begins with. p, t, c: one of these; i: an identifier; m: the
# path of an `impl`, with a disambiguator in front; A: generic arguments, T: types, D: the bounds of `dyn`, each until
# an E; l, g, u, k: a lifetime, how many lifetimes are bound, `unsafe`, an ABI, which may each be missing; r: a
# reference back; h: a number in hexadecimal digits; ".": one byte.
PATHS = {"C": "i", "M": "mt", "X": "mtp", "Y": "tp", "N": ".pi", "I": "pA", "B": "r"}
TYPES = {
    "A": "tc", "S": "t", "T": "T", "R": "lt", "Q": "lt", "P": "t", "O": "t", "F": "gukTt", "D": "gDl",
    **dict.fromkeys("abcdefhijlmnopstuvxyz", ""), **PATHS,
}  # fmt: skip
CONSTANTS = {"p": "", "B": "r", **dict.fromkeys("abchijlmnostxy", "h")}
DIGITS_62 = {digit: nth for nth, digit in enumerate("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")}
MOST_NESTED = 100
# A byte of a mangled name stands for a few bytes of text: `{closure#0}` for NC and a number. But references alone can
# let the text grow as 2 to their number, which those of no compiler do.
TEXT_OF_BYTE = 16
TEXT_OF_ANY, TEXT_OF_NAME = 1 << 16, 512


class NotRustError(ValueError):
    """The bytes are no name of this mangling, or stand for too long a text."""


def rust_name(name: str) -> str | None:
    """Returns the name as people write it, without hash and crate's number; None where it is not Rust's."""
    legacy = LEGACY.fullmatch(name)
    if legacy is not None and len(set(legacy[2])) >= FEWEST_DIGITS:
        parts = _parts(legacy[1])
        return "::".join(map(_unescaped, parts)) + _suffix(legacy[3]) if parts else None
    v0 = V0.fullmatch(name)
    if v0 is None:
        return None
    try:
        _Size(v0[1]).check()
    except NotRustError:
        return None
    from pycxxfilt import rust_demangle

    try:
        text = rust_demangle(f"_R{v0[1]}")
    except ValueError:
        return None
    return f"{text}{_suffix(v0[2] or '')}" if text else None


def _suffix(text: str) -> str:
    """Returns a suffix as LLVM writes it behind names of C++: ` (.cold)`."""
    text = LLVM_SUFFIX.sub("", text)
    return f" ({text})" if text else ""


def _parts(path: str) -> list[str]:
    """Returns the parts, each of which has its length in front; none if the path does not consist of these."""
    parts: list[str] = []
    at = 0
    while length := PART_LENGTH.match(path, at):
        at = length.end() + int(length[0])
        parts.append(path[length.end() : at])
    return parts if at == len(path) else []


def _unescaped(part: str) -> str:
    def text_of(escape: re.Match[str]) -> str:
        if escape[2]:
            code = int(escape[2], 16)
            is_character = code < 0x110000 and chr(code).isprintable()
            return chr(code) if is_character else escape[0]
        return ESCAPES[escape[1]] if escape[1] else "::" if escape[3] else "."

    # A part that would begin with `$` has an underscore in front.
    return ESCAPE.sub(text_of, part[1:] if part.startswith("_$") else part)


class _Size:
    """The length of the text that a name of the v0 mangling stands for at most, found without making it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._at = 0
        self._depth = 0
        # Of the text that references stand for.
        self._referred = 0
        # By where something begins that was read to its end.
        self._sizes: dict[int, int] = {}

    def check(self) -> None:
        """Raises NotRustError for what is no path, which that of the crate that has made the code may follow, and for
        too long a text."""
        while self._at < len(self._name):
            self._one_of(PATHS)

    def _one_of(self, rules: Mapping[str, str]) -> None:
        begin, referred = self._at, self._referred
        self._depth += 1
        rule = rules.get(self._byte())
        if rule is None or self._depth > MOST_NESTED:
            raise NotRustError
        for part in rule:
            self._read(part)
        self._depth -= 1
        size = TEXT_OF_BYTE * (self._at - begin) + self._referred - referred
        if size > TEXT_OF_ANY + TEXT_OF_NAME * len(self._name):
            raise NotRustError
        self._sizes[begin] = size

    def _read(self, part: str) -> None:
        match part:
            case "p":
                self._one_of(PATHS)
            case "t":
                self._one_of(TYPES)
            case "c":
                self._one_of(CONSTANTS)
            case "r":
                self._refer()
            case "i":
                self._identifier()
            case "m":
                self._disambiguator()
                self._one_of(PATHS)
            case "A" | "T" | "D":
                while not self._takes("E"):
                    self._element(part)
            case "l":
                if self._takes("L"):
                    self._number()
            case "g":
                # LLVM writes no more lifetimes than the name has bytes.
                if self._takes("G"):
                    self._referred += TEXT_OF_BYTE * min(self._number() + 1, len(self._name))
            case "u":
                self._takes("U")
            case "k":
                if self._takes("K") and not self._takes("C"):
                    self._identifier()
            case "h":
                while self._byte() != "_":
                    pass
            case _:
                self._byte()

    def _element(self, of: str) -> None:
        if of == "D":
            self._one_of(PATHS)
            while self._takes("p"):
                self._identifier()
                self._one_of(TYPES)
        elif of == "A" and self._takes("L"):
            self._number()
        else:
            self._one_of(CONSTANTS if of == "A" and self._takes("K") else TYPES)

    def _refer(self) -> None:
        size = self._sizes.get(self._number())
        if size is None:
            raise NotRustError
        self._referred += size

    def _disambiguator(self) -> None:
        if self._takes("s"):
            self._number()

    def _identifier(self) -> None:
        """Reads [disambiguator] [u] length [_] bytes"""
        self._disambiguator()
        self._takes("u")
        length = 0
        while self._name[self._at : self._at + 1].isdigit() and length <= len(self._name):
            length = 10 * length + int(self._byte())
        self._takes("_")
        self._at += length
        if self._at > len(self._name):
            raise NotRustError

    def _number(self) -> int:
        """Reads a number in base 62: `_` is 0, `0_` is 1."""
        value = -1
        while (digit := self._byte()) != "_":
            if digit not in DIGITS_62 or value > 1 << 64:
                raise NotRustError
            value = max(value, 0) * 62 + DIGITS_62[digit]
        return value + 1

    def _byte(self) -> str:
        if self._at >= len(self._name):
            raise NotRustError
        self._at += 1
        return self._name[self._at - 1]

    def _takes(self, letter: str) -> bool:
        found = self._name.startswith(letter, self._at)
        self._at += found
        return found
