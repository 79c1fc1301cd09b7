"""Map: reads the buffers of a thread a piece at a time, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from traceferry.importers.mono._log import CallReader, SiteReader
from traceferry.importers.mono.decode import N_LISTS, PIECE, Log, windows
from traceferry.importers.mono.layout import SITED
from traceferry.model import Array, Table
from traceferry.native.nodes import NodeTable
from traceferry.timeline.balance import Balancer, Raw, add_in_place
from traceferry.timeline.method_table import MethodTable
from traceferry.timeline.stacks import StackTable

# ---------------------------------------------------------------- calls


def call_pieces(
    log: Log, buffers: Array, methods: MethodTable, span: tuple[int, int], shift_ns: int, losses: dict[str, int]
) -> Iterator[Table]:
    """Returns the balanced CALLS of a thread's buffers. span: its first and last time on the event clock,
    which becomes the trace's by adding shift_ns. losses: by kind, are set when the last piece has been made.

    Leaves without an enter are left out: methods of the runtime have leaves without enters.
    """
    reader = CallReader(log.program.cursor(log.source.data, buffers), methods, shift_ns, span[1])
    balancer = Balancer(span[0] + shift_ns)
    key = np.empty(PIECE, np.int32)
    for n_buffers in windows(log.source, buffers):
        is_done = False
        while not is_done:
            ts, frame, flags = (np.empty(PIECE, dtype) for dtype in ("i8", "i4", "u1"))
            n, is_done = reader.read(n_buffers, ts, key, frame, flags)
            raw = Raw(cut(ts[:n]), key[:n], cut(frame[:n]), cut(flags[:n]))
            if len(made := add_in_place(balancer, raw, len(methods.frames))):
                yield made
    losses["leave_without_enter"] = reader.n_ignored + balancer.n_orphans
    losses["unwound"], losses["clock_backwards"] = balancer.n_unwound, balancer.n_backwards
    losses["open_at_end"] = balancer.depth
    if losses["open_at_end"]:
        yield balancer.close(span[1] + shift_ns)


def cut(column: Array) -> Array:
    """Returns a part of an array, which does not hold the memory of a much larger one."""
    return column if column.base is None or 2 * len(column) >= len(column.base) else column.copy()


# ---------------------------------------------------------------- sites


class Sites(NamedTuple):
    """The sites of a thread, in the order of its buffers: allocations, with ts (int64 ns on the event clock), address,
    size (int64) and pair, of a stack and the number of a type (int32); of other events at (offsets) and other_stack.
    The allocations from row `first` on are new; is_block: none will be added to them, as they are PIECE with the
    others, or a window of the file ends."""

    ts: Array
    address: Array
    size: Array
    pair: Array
    at: Array
    other_stack: Array
    first: int
    is_block: bool


def site_pieces(
    log: Log, buffers: Array, methods: MethodTable, types: MethodTable, stacks: StackTable, pairs: NodeTable
) -> Iterator[Sites]:
    """Returns what happened on stacks in a thread's buffers, in pieces."""
    is_sited = np.zeros(256, np.uint8)
    is_sited[[*SITED]] = 1
    reader = SiteReader(log.program.cursor(log.source.data, buffers, N_LISTS), methods, types, is_sited, PIECE)
    for n_buffers in windows(log.source, buffers):
        is_done = False
        while not is_done:
            stacks.refresh()
            pairs.reserve(pairs.n + 1)
            is_done = reader.read(n_buffers, stacks, pairs)
            stacks.publish()
            if reader.wants_nodes:
                stacks.grow(2 * stacks.n)
            yield Sites(*reader.found())
