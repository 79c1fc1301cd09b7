"""The stacks of a trace, as compiled loops look for them and add to them."""

from __future__ import annotations

import numpy as np

from traceferry.model import Array, TraceBuilder
from traceferry.native.nodes import NodeTable

FIRST_NODES = 1 << 10


class StackTable(NodeTable):
    """The trace's stacks: pairs of a prefix and a frame."""

    def __init__(self, trace: TraceBuilder) -> None:
        self._stacks = trace.stacks
        self.refresh()

    def refresh(self) -> None:
        """Takes in the rows that others have added."""
        new = slice(self.n, len(self._stacks))
        if new.start < new.stop:
            self.grow(max(FIRST_NODES, 2 * new.stop))
            self.append(self._stacks["prefix"][new], self._stacks["frame"][new])

    def publish(self) -> None:
        """Adds the rows that loops have added to the trace."""
        new = slice(len(self._stacks), self.n)
        if new.start < new.stop:
            self._stacks.extend(prefix=self.parent[new], frame=self.key[new])


def intern_stacks(trace: TraceBuilder, frames: Array, lengths: Array) -> Array:
    """Returns the stacks of lists of frames one after the other, the innermost of each first: int32, -1 is none."""
    table = StackTable(trace)
    stacks = table.intern_lists(frames, np.cumsum(lengths, dtype=np.int64))
    table.publish()
    return stacks


def intern_paths(table: StackTable, frames: Array, lengths: Array) -> Array:
    """Returns the stacks of lists of frames one after the other, the outermost of each first: int32, -1 is none. They
    are the trace's once they are published."""
    # The innermost first, as tables take them: all the other way round.
    return table.intern_lists(np.ascontiguousarray(frames[::-1]), np.cumsum(lengths[::-1], dtype=np.int64))[::-1]
