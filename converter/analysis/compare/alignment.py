"""Which function without a name of its own is which: the file of both sides is gone through in order, as a diff does.

Lines that were added move all functions below them by the same number. So the new side's file is followed at an offset
from the base's. Of all ways to go through both files the cheapest is taken, where an offset that changes costs more
than a function that only one side has, and less than two of them. Only the cheapest ways are followed from each line to
the next: time and memory grow with the number of functions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import pairwise
from math import log
from typing import Any, NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later

# (name, file, line, kind)
Function = tuple[str, str, int, str]
# The name, without numbers where it is not the function's own, and the kind: only what has the same can be the same.
Token = tuple[str, str]
# What a function is of which a format does not tell the kind.
FUNCTION = "function"
NUMBER = compiled_later(r"\d+")
# What a function that one side lacks costs; what an offset that changes may cost.
ALONE, MOVED = 2, (3, 8, 20)
# Where so many functions are on both sides, the first of these costs is right.
MOSTLY_SAME = 0.9
# So many ways are followed from a line to the next, and the cheapest few of them are continued at other offsets.
MOST_WAYS, MOST_MOVED = 8, 2
# Other offsets are those of so many lines around, and the most frequent of the whole file, among so many pairs of
# lines: ways at these are always followed.
NEAR, FREQUENT, MOST_PAIRS = 2, 4, 1 << 20


class Lines:
    """The functions of a file: numbers of lines, rising; tokens: of each line; n_before: how many functions are on
    lines before each, and in all."""

    def __init__(self, functions: Iterable[tuple[int, Token]]) -> None:
        by_line: dict[int, Counter[Token]] = defaultdict(Counter)
        for line, token in functions:
            by_line[line][token] += 1
        self.numbers = sorted(by_line)
        self.tokens = [by_line[line] for line in self.numbers]
        self.places = {line: nth for nth, line in enumerate(self.numbers)}
        self.n_before = [0, *np.cumsum([tokens.total() for tokens in self.tokens]).tolist()]


class Way(NamedTuple):
    """A way through both files, to a line of the base. passed: how many lines of the new side are behind; matched: the
    places of the last lines that are the same, and those before them."""

    cost: int
    passed: int
    matched: tuple[int, int, Any] | None


def aligned(
    base: Sequence[Function], new: Sequence[Function], anchors: Sequence[tuple[Function, Function]]
) -> dict[Function, Function]:
    """base, new: the functions of one file without a name of their own; anchors: those with a name, which are known to
    be the same."""
    of_line: list[dict[int, list[Function]]] = [defaultdict(list), defaultdict(list)]
    lines = []
    for nth, functions in enumerate((base, new)):
        for function in sorted(functions, key=_in_line):
            of_line[nth][function[2]].append(function)
        named = [(pair[nth][2], (str(number), "anchor")) for number, pair in enumerate(anchors)]
        lines.append(Lines([*((function[2], _token(function)) for function in functions), *named]))
    moved_to = {a[2]: b[2] for a, b in anchors}
    found: dict[Function, Function] = {}
    for old, fresh in aligned_lines(lines[0], lines[1], moved_to):
        found |= _of_one_line(of_line[0].get(old, []), of_line[1].get(fresh, []))
    return found


def kind_of(function: Function) -> str:
    return function[3] or FUNCTION


def _token(function: Function) -> Token:
    return NUMBER.sub("", function[0]), kind_of(function)


def _in_line(function: Function) -> tuple[list[int], str]:
    """`$_9` is before `$_10`."""
    return [int(number[:18]) for number in NUMBER.findall(function[0])], function[0]


def _of_one_line(olds: Sequence[Function], news: Sequence[Function]) -> dict[Function, Function]:
    """Those of the same name; then the others in order."""
    by_name = {(new[0], kind_of(new)): new for new in news}
    found = {old: by_name[key] for old in olds if (key := (old[0], kind_of(old))) in by_name}
    taken = set(found.values())
    waiting: dict[Token, list[Function]] = defaultdict(list)
    for new in reversed(news):
        if new not in taken:
            waiting[_token(new)].append(new)
    for old in olds:
        if old not in found and waiting[_token(old)]:
            found[old] = waiting[_token(old)].pop()
    return found


# ---------------------------------------------------------------- lines


def aligned_lines(base: Lines, new: Lines, moved_to: Mapping[int, int]) -> list[tuple[int, int]]:
    """The lines of the base and of the new side that are the same, both rising. moved_to: where functions that are
    known are on the new side, by their line of the base.

    Samples do not show all functions: where each side lacks many of the other's, one that is alone says little, and a
    change of the offset has to be worth more. What it has to be worth is what makes the shortest description."""
    frequent = _frequent_offsets(base.numbers, new.numbers)
    found: list[tuple[float, list[tuple[int, int]]]] = []
    for moved in MOVED:
        pairs = _cheapest(base, new, frequent, moved_to, moved)
        found.append((_description(base, new, pairs), pairs))
        if len(pairs) >= MOSTLY_SAME * min(len(base.numbers), len(new.numbers)):
            break
    return min(found)[1]


def _description(base: Lines, new: Lines, pairs: Sequence[tuple[int, int]]) -> float:
    """Returns how much has to be said to tell the new side's lines by the base's, in nats: which of the base's are
    there, where others are, and at which lines the offset changes by how much."""
    n, m, same = len(base.numbers), len(new.numbers), len(pairs)
    reach = new.numbers[-1] - new.numbers[0] + 1
    offsets = [0, *(b - a for a, b in pairs)]
    n_moves = sum(x != y for x, y in pairwise(offsets))
    which = sum(-k * log(k / n) for k in (same, n - same) if k)
    return which + (m - same) * log(1 + reach / m) + n_moves * (log(n + 1) + log(reach + 1))


def _cheapest(
    base: Lines, new: Lines, frequent: Sequence[int], moved_to: Mapping[int, int], moved: int
) -> list[tuple[int, int]]:
    ways = {0: Way(0, 0, None)} | {offset: Way(moved, 0, None) for offset in frequent if offset}
    for place in range(len(base.numbers)):
        ways = _next_ways(ways, place, base, new, frequent, moved_to, moved)

    def cost_at_end(offset: int) -> tuple[int, int, int]:
        way = ways[offset]
        return way.cost + ALONE * (new.n_before[-1] - new.n_before[way.passed]), abs(offset), offset

    found, matched = [], ways[min(ways, key=cost_at_end)].matched
    while matched is not None:
        found.append((base.numbers[matched[0]], new.numbers[matched[1]]))
        matched = matched[2]
    return found[::-1]


def _next_ways(
    ways: Mapping[int, Way], place: int, base: Lines, new: Lines, frequent: Sequence[int],
    moved_to: Mapping[int, int], moved: int,
) -> dict[int, Way]:  # fmt: skip
    """The ways past a line of the base: at the same offset, or from the cheapest ones at others."""
    line, tokens = base.numbers[place], base.tokens[place]
    n_old = base.n_before[place + 1] - base.n_before[place]

    def matched(way: Way, offset: int, cost: int) -> Way | None:
        """The way on which this line is that of the new side at the offset; None where that is not possible."""
        target = new.places.get(line + offset, -1)
        if target < way.passed:
            return None
        n_same = _n_same(tokens, new.tokens[target])
        if n_same == 0:
            return None
        n_alone = n_old + new.n_before[target + 1] - new.n_before[way.passed] - 2 * n_same
        return Way(way.cost + cost + ALONE * n_alone, target + 1, (place, target, way.matched))

    def rank(offset: int) -> tuple[int, int, int]:
        # Lines of the new side that are behind this one at the offset, and not passed, will cost as well.
        way = found[offset]
        reached = max(bisect_left(new.numbers, line + offset + 1), way.passed)
        return way.cost + ALONE * (new.n_before[reached] - new.n_before[way.passed]), abs(offset), offset

    found = {
        offset: matched(way, offset, 0) or way._replace(cost=way.cost + ALONE * n_old) for offset, way in ways.items()
    }
    ranked = sorted(found, key=rank)
    for offset in {*frequent, *_near_offsets(ranked[0], line, new, moved_to)}:
        for before in ranked[:MOST_MOVED]:
            way = matched(ways[before], offset, moved) if offset != before else None
            if way is not None and (offset not in found or way.cost < found[offset].cost):
                found[offset] = way
    kept = nsmallest(MOST_WAYS, found, key=rank)
    return {offset: found[offset] for offset in dict.fromkeys([*kept, *frequent]) if offset in found}


def _near_offsets(expected: int, line: int, new: Lines, moved_to: Mapping[int, int]) -> Iterator[int]:
    """Those at which a line of the new side near the expected one is this line; and of what is known to have moved."""
    if line in moved_to:
        yield moved_to[line] - line
    at = bisect_left(new.numbers, line + expected)
    for number in new.numbers[max(at - NEAR, 0) : at + NEAR + 1]:
        yield number - line


def _n_same(a: Counter[Token], b: Counter[Token]) -> int:
    return min(a.total(), b.total()) if a.keys() == b.keys() and len(a) == 1 else (a & b).total()


def _frequent_offsets(base: Sequence[int], new: Sequence[int]) -> list[int]:
    """Those between most pairs of lines, the smaller ones first; of a part of the base's lines where these are many."""
    step = 1 + len(base) * len(new) // MOST_PAIRS
    pairs = np.subtract.outer(np.array(new, np.int64), np.array(base[::step], np.int64))
    offsets, counts = np.unique(pairs, return_counts=True)
    order = np.lexsort((offsets, np.abs(offsets), -counts))
    return [int(offset) for offset in offsets[order[:FREQUENT]]]
