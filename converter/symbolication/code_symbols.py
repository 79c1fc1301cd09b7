"""The code objects of a loaded trace behind the interface: what JIT compilers made, by address.

A code object's own frame has the name that the compiler gave the code object: it is to the function's name what a
linkage name is to one of C++. Inlined functions have their names only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traceferry.model import Array, Trace, distinct
from traceferry.symbolication.code_map import CodeMap, CodeObject, Snapshot
from traceferry.symbolication.code_mapping import overlaid_by
from traceferry.symbolication.interface import NOTHING, Answer, Frames, Function, look_up
from traceferry.symbolication.runs import Call, function_of, runs_of

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
                yield function_of(self._map.name(code.row), code.start, runs_of(ats, frames, code.size), code.size)

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
