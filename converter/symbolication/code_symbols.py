"""The code objects of a loaded trace behind the interface: what JIT compilers made, by address.

A code object's own frame has the name that the compiler gave the code object: it is to the function's name what a
linkage name is to one of C++. Inlined functions have their names only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from traceferry.model import Array, Trace, distinct
from traceferry.symbolication.code_map import Call, CodeMap, CodeObject, Snapshot
from traceferry.symbolication.code_mapping import overlaid_by
from traceferry.symbolication.interface import NOTHING, Answer, Frames, Function, Inline, look_up

# Of inlined calls; what is deeper is cut.
MAX_DEPTH = 128
# Code objects whose frames are read together: reading any costs as much as the table of all frames is long.
GROUP = 1024


class CodeSymbols:
    """The code objects of a loaded trace as Symbols. at_ts: on the trace's clock, in ns: the code that lay there then;
    None: at each address the code that was put there last.

    `name` and `build_id` are those of the library that the recorder makes of its code objects, if it is one only.
    """

    def __init__(self, trace: Trace, at_ts: int | None = None) -> None:
        self._map = CodeMap(trace)
        self._chosen = Snapshot(trace, _chosen(trace, self._map, at_ts))
        libs = distinct(trace.symbols["lib"][trace.code["symbol"][self._chosen.code]])
        self.name, self.build_id = (
            trace.strings[int(trace.libs[column][libs[0]])] if len(libs) == 1 else "" for column in ("name", "code_id")
        )
        self.path = self.name
        self.base = int(self._chosen.start[0]) if len(self._chosen) else 0

    @property
    def gives(self) -> str:
        return "jitted code"

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        """No damage: it is in the trace's report."""
        return ()

    def lookup(self, addresses: Array) -> Frames:
        asked = distinct(np.asarray(addresses, np.uint64))
        rows = self._chosen.rows(asked)
        found = [(at, self._chosen.at(row)) for at, row in zip(asked.tolist(), rows.tolist(), strict=True) if row >= 0]
        stacks = [self._stack(code, at - code.start) for at, code in found]
        calls = self._map.calls(stacks)
        answers = {
            at: Answer(code.start, code.size, self._frames(code, [calls[frame] for frame in stack])[::-1])
            for (at, code), stack in zip(found, stacks, strict=True)
        }
        return look_up(addresses, lambda address: answers.get(address, NOTHING))

    def functions(self) -> Iterator[Function]:
        """Yields the code objects, whole."""
        for first in range(0, len(self._chosen), GROUP):
            group = [self._chosen.at(row) for row in range(first, min(first + GROUP, len(self._chosen)))]
            offsets = [self._map.boundaries(code.row) for code in group]
            stacks = [[self._stack(code, at) for at in ats] for code, ats in zip(group, offsets, strict=True)]
            calls = self._map.calls(stack for of_code in stacks for stack in of_code)
            for code, ats, of_code in zip(group, offsets, stacks, strict=True):
                frames = [tuple(self._frames(code, [calls[frame] for frame in stack])) for stack in of_code]
                yield self._function(code, _runs(ats, frames, code.size))

    def _function(self, code: CodeObject, runs: Sequence[Run]) -> Function:
        lines: list[tuple[int, str, int]] = []
        inlines = _Node()
        for run in runs:
            _, source, line = run.frames[-1]
            if not lines or lines[-1][1:] != (source, line):
                lines.append((code.start + run.begin, source, line))
            inlines.add(code.start + run.begin, code.start + run.end, run.frames)
        return Function(self._map.name(code.row), code.start, code.size, lines, inlines.inlines())

    def _stack(self, code: CodeObject, offset: int) -> tuple[int, ...]:
        return self._map.frames_at(code.row, offset)[:MAX_DEPTH]

    def _frames(self, code: CodeObject, calls: Sequence[Call]) -> list[Call]:
        """Returns the same with the code object's own name. calls: the outermost first."""
        _, source, line = calls[0]
        return [(self._map.name(code.row), source, line), *calls[1:]]


# ---------------------------------------------------------------- which code


def _chosen(trace: Trace, code_map: CodeMap, at_ts: int | None) -> Array:
    """Returns rows of the trace's mappings that do not overlap."""
    mappings = trace.code_mappings
    rows = np.flatnonzero(trace.code["size"][mappings["code"]] > 0)
    if at_ts is not None:
        rows = rows[code_map.are_alive(rows, at_ts)]
    rows = rows[np.argsort(mappings["start_ts"][rows], kind="stable")]
    sizes = trace.code["size"][mappings["code"][rows]].astype(np.uint64)
    return rows[overlaid_by(mappings["address"][rows], sizes) < 0]


# ---------------------------------------------------------------- what runs in a code object


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
        """Adds what runs in [begin, end). frames: from this function on."""
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
