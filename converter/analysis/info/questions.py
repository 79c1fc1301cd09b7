"""Questions about call paths and lines: the call tree, who calls a function and whom it calls, and its lines.

Each answer is plain data: `title`, `unit`, `whole`, `rows`, and `left_out`, how many rows there are besides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from traceferry.analysis.totals.collect import collect
from traceferry.analysis.totals.series import ALLOCATED, SAMPLES, TIME, Measure
from traceferry.analysis.totals.sums_of_trace import SampleTotals
from traceferry.analysis.totals.trees import Trees
from traceferry.common.errors import UsageError
from traceferry.common.suggestions import did_you_mean
from traceferry.model import Array, Trace, TraceBuilder, distinct, sums
from traceferry.symbolication.short_names import brief_name, short_names

Json = dict[str, Any]
# Of what recordings have, the first is asked about.
MEASURES = (SAMPLES, TIME, ALLOCATED)
# Call paths with less of the whole are left out.
SMALLEST = 0.005
# How many functions are named where a name fits several.
MOST_NAMED, LONGEST_NAME = 5, 60
LONGEST_PATH = 200


class Paths:
    """The call paths of a trace by function, with what each has itself and with all below it.

    Attributes
    ----------
    trace : TraceBuilder
        Which has the functions.
    measure : Measure
        What is counted: samples, else the time of calls, else allocated bytes.
    parent, func : array of int32
        Of each path the one above, always a smaller row or -1, and its innermost function.
    own, total : array of int64
        Amounts.
    """

    def __init__(self, trace: Trace, progress: Callable[[int], None] = lambda _: None) -> None:
        self.trace: TraceBuilder = trace.opened()
        trees = Trees(self.trace, n_buckets=1)
        self.samples: SampleTotals = collect(self.trace, trees, progress).samples
        found = {series.measure for series in trees.series if len(series.node)}
        measure = next((measure for measure in MEASURES if measure in found), None)
        if measure is None:
            raise UsageError("the recording has no samples, calls or allocations: there are no call paths")
        self.measure: Measure = measure
        n = trees.nodes.n
        self.parent: Array = trees.nodes.parent[:n]
        self.func: Array = trees.keys.rows[trees.nodes.key[:n], 0]
        self.own: Array = trees.own(lambda series: series.measure == measure)[:n].astype(np.int64)
        self.total: Array = trees.total(self.own)[:n].astype(np.int64)

    @property
    def whole(self) -> int:
        return sums.total(self.own)

    def functions_called(self, text: str) -> set[int]:
        """Returns the functions of a name: whole, or short as `info` shows it, else the one that has it as a part.
        Raises UsageError where there is none, or several."""
        seen = distinct(self.func).tolist()
        names = {func: self.trace.func_name(func) for func in seen}
        shorts = dict(zip(names, short_names(list(names.values())), strict=True))
        exact = {func for func in seen if text in (names[func], shorts[func])}
        if exact:
            return exact
        parts = {func for func in seen if text in names[func]}
        found = list(dict.fromkeys(shorts[func] for func in parts))
        if len(found) == 1:
            return parts
        if not parts:
            raise UsageError(f"{text}: no function is called so{did_you_mean(text, shorts.values())}")
        total = np.bincount(self.func, weights=self.total, minlength=max(seen) + 1)
        largest = sorted(parts, key=lambda func: (-total[func], shorts[func]))
        listed = ", ".join(dict.fromkeys(brief_name(shorts[func], LONGEST_NAME) for func in largest[:MOST_NAMED]))
        more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        raise UsageError(f"{text}: {len(found)} functions have this in their names: {listed}{more}")


def tree(paths: Paths, most: int) -> Json:
    """Returns the call tree, the outermost functions first. most: rows."""
    return _answer(paths, "call tree", paths.parent, paths.func, paths.own, paths.total, most)


def callees(paths: Paths, text: str, most: int) -> Json:
    """Returns what a function calls, and they, all its call paths taken together."""
    wanted = paths.functions_called(text)
    nodes, of = _Merged(), np.full(len(paths.func), -1, np.int64)
    for node, (above, func) in enumerate(zip(paths.parent.tolist(), paths.func.tolist(), strict=True)):
        inside = int(of[above]) if above >= 0 else -1
        if inside >= 0 or func in wanted:
            of[node] = nodes.add(inside, func)
    has = of >= 0
    own = sums.total_by(of[has], paths.own[has], nodes.n)
    return nodes.answer(paths, f"{text} and what it calls", own, most)


def callers(paths: Paths, text: str, most: int) -> Json:
    """Returns who calls a function, and them: below each is who calls that. Of a recursive function, its outermost
    call counts."""
    wanted = paths.functions_called(text)
    parent, func = paths.parent.tolist(), paths.func.tolist()
    is_inside = np.zeros(len(func), bool)
    nodes, amounts = _Merged(), []
    for node, (above, of) in enumerate(zip(parent, func, strict=True)):
        inside_above = above >= 0 and bool(is_inside[above])
        is_inside[node] = inside_above or of in wanted
        if of not in wanted or inside_above or not paths.total[node]:
            continue
        at, row = node, -1
        for _ in range(LONGEST_PATH):
            row = nodes.add(row, func[at])
            at = parent[at]
            if at < 0:
                break
        amounts.append((row, int(paths.total[node])))
    rows, totals = (np.array(column, np.int64) for column in zip(*amounts, strict=True)) if amounts else ([], [])
    own = sums.total_by(np.asarray(rows, np.int64), np.asarray(totals, np.int64), nodes.n)
    return nodes.answer(paths, f"callers of {text}", own, most)


def lines(paths: Paths, text: str, most: int) -> Json:
    """Returns the lines of a function with the samples that end in them, and those that go through them."""
    wanted = paths.functions_called(text)
    trace, of_stack = paths.samples.by_stack()
    used, n = np.flatnonzero(of_stack), len(of_stack)
    frame, prefix = trace.stacks["frame"][:n], trace.stacks["prefix"][:n]
    is_wanted = np.isin(trace.frames["func"], np.array(sorted(wanted)))
    found: dict[tuple[int, int], list[int]] = {}
    for stack in used.tolist():
        at, is_leaf, amount = stack, True, int(of_stack[stack])
        while at >= 0 and not is_wanted[frame[at]]:
            at, is_leaf = int(prefix[at]), False
        if at < 0:
            continue
        row = int(frame[at])
        source = int(trace.frames["source"][row])
        source = source if source >= 0 else int(trace.funcs["source"][trace.frames["func"][row]])
        amounts = found.setdefault((source, int(trace.frames["line"][row])), [0, 0])
        amounts[0] += amount if is_leaf else 0
        amounts[1] += amount
    texts = {source: _text_of(trace, source) for source, _ in found}
    largest = sorted(found, key=lambda place: (-found[place][1], place))[:most]
    rows = [
        {
            "file": trace.strings[int(trace.sources["path"][source])] if source >= 0 else None,
            "line": line or None, "self": found[source, line][0], "total": found[source, line][1],
            "text": texts[source][line - 1] if 0 < line <= len(texts[source]) else None,
        }
        for source, line in sorted(largest)
    ]  # fmt: skip
    whole = int(of_stack.sum())
    n_left_out = len(found) - len(rows)
    unit = trace.sample_unit
    return {"title": f"lines of {text}", "unit": unit, "whole": whole, "rows": rows, "left_out": n_left_out}


def _text_of(trace: Trace, source: int) -> list[str]:
    text = int(trace.sources["text"][source]) if source >= 0 else -1
    return trace.texts[text].splitlines() if text >= 0 else []


class _Merged:
    """Call paths that are made of others."""

    def __init__(self) -> None:
        self._index: dict[tuple[int, int], int] = {}

    @property
    def n(self) -> int:
        return len(self._index)

    def add(self, parent: int, func: int) -> int:
        return self._index.setdefault((parent, func), len(self._index))

    def answer(self, paths: Paths, title: str, own: Array, most: int) -> Json:
        parent, func = (np.array([key[nth] for key in self._index], np.int64) for nth in (0, 1))
        total = own.copy()
        for node in range(self.n - 1, -1, -1):
            if parent[node] >= 0:
                total[parent[node]] += total[node]
        return _answer(paths, title, parent, func, own, total, most)


def _answer(paths: Paths, title: str, parent: Array, func: Array, own: Array, total: Array, most: int) -> Json:
    """Returns the paths with most, each below the one above it, the larger of two first."""
    trace, whole = paths.trace, paths.whole
    large = np.flatnonzero(total >= max(SMALLEST * whole, 1))
    kept = large[np.lexsort((large, -total[large]))][:most]
    below: dict[int, list[int]] = {}
    for node in sorted(kept.tolist(), key=lambda node: (-int(total[node]), trace.func_name(int(func[node])), node)):
        below.setdefault(int(parent[node]), []).append(node)

    def walk() -> Iterator[tuple[int, int]]:
        waiting = [(node, 0) for node in reversed(below.get(-1, []))]
        while waiting:
            node, depth = waiting.pop()
            yield node, depth
            waiting += [(one, depth + 1) for one in reversed(below.get(node, []))]

    rows = []
    shorts = dict(zip(names := list(map(trace.func_name, range(len(trace.funcs)))), short_names(names), strict=True))
    for node, depth in walk():
        source = int(trace.funcs["source"][func[node]])
        rows.append(
            {
                "depth": depth, "name": trace.func_name(int(func[node])),
                "short": shorts[trace.func_name(int(func[node]))],
                "file": trace.strings[int(trace.sources["path"][source])] if source >= 0 else None,
                "self": int(own[node]), "total": int(total[node]),
            }
        )  # fmt: skip
    unit = trace.sample_unit if paths.measure == SAMPLES else paths.measure.unit
    n_all = int(np.count_nonzero(total))
    return {"title": title, "unit": unit, "whole": whole, "rows": rows, "left_out": n_all - len(rows)}
