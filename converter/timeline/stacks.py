"""The stacks of a trace, as compiled loops look for them and add to them."""

from __future__ import annotations

import numpy as np

from traceferry.kernels import tables_kernel
from traceferry.kernels.tables import Nodes
from traceferry.model import Array, TraceBuilder

FIRST_NODES = 1 << 10


class StackTable(Nodes):
    """The trace's stacks: pairs of a prefix and a frame."""

    def __init__(self, trace: TraceBuilder) -> None:
        super().__init__()
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
    stacks, ends, done = np.empty(len(lengths), np.int32), np.cumsum(lengths, dtype=np.int64), 0
    while (done := tables_kernel.enter_lists(frames, ends, table.arrays, stacks, done)) < len(lengths):
        table.grow(2 * table.n)
    table.publish()
    return stacks
