"""Functions of which is known what runs at each of their addresses: their lines and inlined calls, as trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from traceferry.symbolication.interface import Function, Inline

# (name, source, the line that runs).
Call = tuple[str, str, int]


class Run(NamedTuple):
    """Bytes [begin, end) of a function in which the same runs; frames: the outermost first, at least one."""

    begin: int
    end: int
    frames: tuple[Call, ...]


def runs_of(offsets: Sequence[int], frames: Sequence[tuple[Call, ...]], size: int) -> list[Run]:
    """offsets: where other frames than before begin, rising; size: of the function."""
    runs: list[Run] = []
    for begin, end, running in zip(offsets, [*offsets[1:], size], frames, strict=True):
        if runs and runs[-1].frames == running:
            runs[-1] = runs[-1]._replace(end=end)
        else:
            runs.append(Run(begin, end, running))
    return runs


def function_of(name: str, start: int, runs: Sequence[Run], size: int) -> Function:
    lines: list[tuple[int, str, int]] = []
    inlines = _Node()
    for run in runs:
        _, source, line = run.frames[-1]
        if not lines or lines[-1][1:] != (source, line):
            lines.append((start + run.begin, source, line))
        inlines.add(start + run.begin, start + run.end, run.frames)
    return Function(name, start, size, lines, inlines.inlines())


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
