"""Parses the names of code objects: function, tier, file, line and column.

The patterns of each producer say which beginnings there are and what they mean. Tiers, their names and colours are
those of samply's jit_category_manager.rs (cd24993) wherever it has one.

Names are hostile input of any length: nothing here takes more than linear time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from traceferry.common.patterns import compiled_later
from traceferry.common.report import Report
from traceferry.symbolication.demangle import Demangler
from traceferry.symbolication.jit_names.dotnet import DOTNET
from traceferry.symbolication.jit_names.dynamic import DART, JULIA, LUAJIT, RUBY
from traceferry.symbolication.jit_names.javascript import JAVASCRIPTCORE, SPIDERMONKEY, V8, without_tier
from traceferry.symbolication.jit_names.languages import BEAM, CPYTHON, HOTSPOT, NUMBA, PHP, WASMTIME
from traceferry.symbolication.jit_names.mono import MONO
from traceferry.symbolication.jit_names.patterns import (
    ANONYMOUS,
    GENERIC,
    SELF_HOSTED,
    Name,
    Parts,
    Pattern,
)
from traceferry.symbolication.tiers import Tier

__all__ = ["PATTERNS", "Name", "Producer", "Tier", "demangled", "producer_of", "without_tier"]

PATTERNS: dict[str, tuple[Pattern, ...]] = {
    "V8": V8,
    "JavaScriptCore": JAVASCRIPTCORE,
    "SpiderMonkey": SPIDERMONKEY,
    "HotSpot": HOTSPOT,
    "PHP": PHP,
    "BEAM": BEAM,
    "CPython": CPYTHON,
    "Numba": NUMBA,
    "wasmtime": WASMTIME,
    "CoreCLR": DOTNET,
    "Mono": MONO,
    "Ruby": RUBY,
    "LuaJIT": LUAJIT,
    "Julia": JULIA,
    "Dart": DART,
    "LLVM": (GENERIC,),
}
PATTERNS["unknown"] = (*(p for patterns in PATTERNS.values() for p in patterns if p.own), GENERIC)

# A recording's names are judged by this many of them, evenly spread: HotSpot's first hundreds are stubs only.
MAX_JUDGED = 2000
# Producers that also write bare names are known by the few others, as wasmtime by its trampolines.
SHARE_AMONG_BARE = 0.01
SHARE = 0.25


class Producer(NamedTuple):
    """name: a key of PATTERNS."""

    name: str

    def parse(self, name: str) -> Name:
        pattern, (function, file, line, column) = self.find(name)
        is_js = pattern.is_js and file != SELF_HOSTED
        return Name(function or ANONYMOUS, pattern.kind, pattern.category, pattern.tier, file, line, column, is_js)

    def find(self, name: str) -> tuple[Pattern, Parts]:
        """Returns the first of the producer's patterns that fits, and what it makes of the name."""
        patterns, starts, first = _compiled(self.name)
        found = starts.match(name)
        assert found is not None, "the last pattern fits every name"
        for pattern in patterns[first[found[0]] :]:
            if name.startswith(pattern.start):
                parts = pattern.split(name if pattern.whole else name[len(pattern.start) :])
                if parts is not None:
                    return pattern, parts
        raise AssertionError("the last pattern refuses nothing")


@cache
def _compiled(producer: str) -> tuple[tuple[Pattern, ...], re.Pattern[str], dict[str, int]]:
    """Returns a producer's patterns; all their beginnings in that order; the number of the first pattern of each."""
    patterns = PATTERNS.get(producer, PATTERNS["unknown"])
    first: dict[str, int] = {}
    for number, pattern in enumerate(patterns):
        first.setdefault(pattern.start, number)
    return patterns, re.compile("|".join(map(re.escape, first))), first


def demangled(parsed: Mapping[str, Name], where: str, report: Report) -> dict[str, Name]:
    """Returns names with their functions demangled: LLVM and Cranelift compile C++ and Rust in memory, too. where: the
    file, for the report."""
    demangle = Demangler()
    demangle.learn(name.function for name in parsed.values())
    demangle.note_kept(report, where)
    shown = {text: demangle(name.function) for text, name in parsed.items()}
    # Most are of languages whose names are not mangled.
    changed = {
        text: name._replace(function=shown[text]) for text, name in parsed.items() if name.function != shown[text]
    }
    return {**parsed, **changed}


_SYMBOL = compiled_later(r"[\w.$@?]+")


def producer_of(names: Sequence[str]) -> Producer:
    """Returns the producer of a file with these names, or with these among others.

    LLVM's are the names of any symbols: so is called what has nothing else but such.
    """
    judged = names[:: len(names) // MAX_JUDGED + 1]
    own = _own_patterns()
    find = Producer("unknown").find
    counts = Counter(own.get(find(name)[0], "") for name in judged)
    del counts[""]
    for producer, count in counts.most_common(1):
        writes_bare_names = PATTERNS[producer][-1] is not GENERIC
        if count >= (SHARE_AMONG_BARE if writes_bare_names else SHARE) * len(judged):
            return Producer(producer)
    symbols = sum(_SYMBOL.fullmatch(name) is not None for name in judged)
    return Producer("LLVM" if symbols > 0.9 * len(judged) else "unknown")


@cache
def _own_patterns() -> dict[Pattern, str]:
    """Returns the producer of each pattern that only one has."""
    return {p: name for name, patterns in PATTERNS.items() if name != "unknown" for p in patterns if p.own}
