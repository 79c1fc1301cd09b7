"""The code objects of a loaded trace behind the interface: what JIT compilers made, by address.

A code object's own frame has the name that the compiler gave the code object: it is to the function's name what a
linkage name is to one of C++. Inlined functions have their names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from traceferry.model import Array, Trace, distinct
from traceferry.symbolication.interface import Frames, Function, Inline
from traceferry.symbolication.one_by_one import NOTHING, Answer, look_up

# Of inlined calls; what is deeper is cut.
MAX_DEPTH = 128
# Code objects whose frames are read together: reading any costs as much as the table of all frames is long.
GROUP = 1024


class CodeSymbols:
    """at_ts: on the trace's clock, in ns: the code that lay there then; None: at each address the code that was put
    there last.

    `name` and `build_id` are those of the library that the recorder makes of its code objects, if it is one only.
    """

    def __init__(self, trace: Trace, at_ts: int | None = None) -> None:
        self._trace = trace
        mappings = trace.code_mappings.table().take(_chosen(trace, at_ts))
        mappings = mappings.take(np.argsort(mappings["address"], kind="stable"))
        self._start: Array = mappings["address"]
        self._code: Array = mappings["code"]
        self._size: Array = trace.code["size"][self._code].astype(np.uint64)
        self._symbol: Array = trace.code["symbol"][self._code]
        self._libs = distinct(trace.symbols["lib"][self._symbol])

    @property
    def path(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return self._of_lib("name")

    @property
    def base(self) -> int:
        return int(self._start[0]) if len(self._start) else 0

    @property
    def build_id(self) -> str:
        return self._of_lib("code_id")

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        """Damage is in the trace's report."""
        return ()

    def lookup(self, addresses: Array) -> Frames:
        asked = distinct(np.asarray(addresses, np.uint64))
        nth = np.searchsorted(self._start, asked, "right") - 1
        held = np.flatnonzero(nth >= 0)
        held = held[asked[held] - self._start[nth[held]] < self._size[nth[held]]]
        stacks = [
            self._stack(row, address - int(self._start[row]))
            for row, address in zip(nth[held].tolist(), asked[held].tolist(), strict=True)
        ]
        calls = self._calls(stacks)
        answers = {
            address: Answer(
                int(self._start[row]), int(self._size[row]), self._frames(row, [calls[f] for f in stack])[::-1]
            )
            for address, row, stack in zip(asked[held].tolist(), nth[held].tolist(), stacks, strict=True)
        }
        return look_up(addresses, lambda address: answers.get(address, NOTHING))

    def functions(self) -> Iterator[Function]:
        """The code objects, whole."""
        for first in range(0, len(self._start), GROUP):
            group = range(first, min(first + GROUP, len(self._start)))
            offsets = [self._offsets(row) for row in group]
            stacks = [[self._stack(row, at) for at in ats] for row, ats in zip(group, offsets, strict=True)]
            calls = self._calls(stack for of_place in stacks for stack in of_place)
            for row, ats, of_place in zip(group, offsets, stacks, strict=True):
                frames = [tuple(self._frames(row, [calls[frame] for frame in stack])) for stack in of_place]
                yield self._function(row, _runs(ats, frames, int(self._size[row])))

    # ------------------------------------------------------------ code objects; row: a row of the chosen mappings

    def _function(self, row: int, runs: Sequence[Run]) -> Function:
        start = int(self._start[row])
        lines: list[tuple[int, str, int]] = []
        inlines = _Node()
        for run in runs:
            _, source, line = run.frames[-1]
            if not lines or lines[-1][1:] != (source, line):
                lines.append((start + run.begin, source, line))
            inlines.add(start + run.begin, start + run.end, run.frames)
        return Function(self._name(row), start, int(self._size[row]), lines, inlines.inlines())

    def _offsets(self, row: int) -> Sequence[int]:
        """At which the frames may change."""
        code = int(self._code[row])
        return self._trace.code_reader(code).boundaries(code)

    def _stack(self, row: int, offset: int) -> tuple[int, ...]:
        """Rows of the trace's frames, the outermost first."""
        code = int(self._code[row])
        return self._trace.code_reader(code).frames_at(code, offset)[:MAX_DEPTH]

    def _calls(self, stacks: Iterable[tuple[int, ...]]) -> dict[int, Call]:
        """Of each of their frames."""
        trace, frames = self._trace, self._trace.frames.table()
        rows = np.array(sorted({frame for stack in stacks for frame in stack}), np.int64)
        func, source = frames["func"][rows], frames["source"][rows]
        source = np.where(source >= 0, source, trace.funcs["source"][func])
        paths = np.append(trace.sources["path"], -1)[source]
        columns = (rows, trace.funcs["name"][func], paths, frames["line"][rows])
        return {
            row: (trace.strings[name], trace.strings[path], line)
            for row, name, path, line in zip(*(column.tolist() for column in columns), strict=True)
        }

    def _frames(self, row: int, calls: Sequence[Call]) -> list[Call]:
        """The same with the code object's own name. calls: the outermost first."""
        _, source, line = calls[0]
        return [(self._name(row), source, line), *calls[1:]]

    def _name(self, row: int) -> str:
        return self._trace.strings[int(self._trace.symbols["name"][self._symbol[row]])]

    def _of_lib(self, column: str) -> str:
        return self._trace.strings[int(self._trace.libs[column][self._libs[0]])] if len(self._libs) == 1 else ""


# ---------------------------------------------------------------- which code


def _chosen(trace: Trace, at_ts: int | None) -> Array:
    """Rows of the trace's mappings that do not overlap."""
    mappings = trace.code_mappings.table()
    rows = np.flatnonzero(trace.code["size"][mappings["code"]] > 0)
    if at_ts is not None:
        start, end = mappings["start_ts"][rows], mappings["end_ts"][rows]
        rows = rows[(start <= at_ts) & ((end < 0) | (at_ts < end))]
    rows = rows[np.argsort(mappings["start_ts"][rows], kind="stable")]
    begin = mappings["address"][rows]
    return rows[~_overlaid(begin, begin + trace.code["size"][mappings["code"][rows]].astype(np.uint64))]


def _overlaid(begin: Array, end: Array) -> Array:
    """Which of some pieces of memory a later one overlaps. begin, end: uint64, in the order of time."""
    overlaid = np.zeros(len(begin), bool)
    ends = end.tolist()
    # Those that begin before, as heaps: of pieces that may still be overlaid the earliest, of all the latest.
    earliest: list[int] = []
    latest: list[int] = []
    for nth in np.argsort(begin, kind="stable").tolist():
        at = int(begin[nth])
        while latest and ends[-latest[0]] <= at:
            heappop(latest)
        overlaid[nth] = bool(latest) and -latest[0] > nth
        while earliest and earliest[0] < nth:
            before = heappop(earliest)
            overlaid[before] |= ends[before] > at
        heappush(earliest, nth)
        heappush(latest, -nth)
    return overlaid


# ---------------------------------------------------------------- what runs in a code object

# (name, source, the line that runs)
Call = tuple[str, str, int]


class Run(NamedTuple):
    """Bytes [begin, end) of a code object in which the same runs; frames: the outermost first."""

    begin: int
    end: int
    frames: tuple[Call, ...]


def _runs(offsets: Sequence[int], frames: Sequence[tuple[Call, ...]], size: int) -> list[Run]:
    runs: list[Run] = []
    for begin, end, running in zip(offsets, [*offsets[1:], size], frames, strict=True):
        if runs and runs[-1].frames == running:
            runs[-1] = runs[-1]._replace(end=end)
        else:
            runs.append(Run(begin, end, running))
    return runs


@dataclass
class _Node:
    """A function and what is inlined into it, by (name, source and line of the call)."""

    ranges: list[tuple[int, int]] = field(default_factory=list)
    children: dict[Call, _Node] = field(default_factory=dict)

    def add(self, begin: int, end: int, frames: Sequence[Call]) -> None:
        """frames: from this function on."""
        node = self
        for (_, source, line), (name, _, _) in pairwise(frames):
            node = node.children.setdefault((name, source, line), _Node())
            if node.ranges and node.ranges[-1][1] == begin:
                node.ranges[-1] = (node.ranges[-1][0], end)
            else:
                node.ranges.append((begin, end))

    def inlines(self) -> tuple[Inline, ...]:
        return tuple(
            Inline(name, tuple(node.ranges), source, line, node.inlines())
            for (name, source, line), node in self.children.items()
        )
