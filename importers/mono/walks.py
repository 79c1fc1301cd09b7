"""Map: runs the kernels over the buffers of a thread, a piece at a time, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from traceferry.importers.mono import cursor_inlined as cursor
from traceferry.importers.mono import log_kernel
from traceferry.importers.mono.decode import FIRST_ITEMS, N_LISTS, PIECE, Log, windows
from traceferry.importers.mono.layout import SITED, Event
from traceferry.kernels.tables import Nodes, doubled
from traceferry.model import Array, Table
from traceferry.timeline.balance import Balancer, Raw, add_in_place
from traceferry.timeline.method_table import MethodTable
from traceferry.timeline.stacks import StackTable

FIRST_DEPTH = 1 << 8


# ---------------------------------------------------------------- calls


def call_pieces(
    log: Log, buffers: Array, methods: MethodTable, span: tuple[int, int], shift_ns: int, losses: dict[str, int]
) -> Iterator[Table]:
    """Balanced CALLS of a thread's buffers (as kernels take them). span: its first and last time on the event clock,
    which becomes the trace's by adding shift_ns. losses: by kind, are set when the last piece has been made.

    Leaves without an enter are left out: methods of the runtime have leaves without enters.
    """
    program, state = log.program, log.program.state()
    state[cursor.MAX_TS] = span[1]
    balancer = Balancer(span[0] + shift_ns)
    key = np.empty(PIECE, np.int32)
    for window in windows(log.source, buffers):
        stopped = cursor.ROWS
        while stopped != cursor.DONE:
            ts, frame, flags = (np.empty(PIECE, dtype) for dtype in ("i8", "i4", "u1"))
            stopped = log_kernel.calls(
                program.over(log.source.data, window, state), methods.arrays, shift_ns, ts, key, frame, flags,
            )  # fmt: skip
            n = int(state[cursor.N_ROWS])
            raw = Raw(cut(ts[:n]), key[:n], cut(frame[:n]), cut(flags[:n]))
            if len(made := add_in_place(balancer, raw, len(methods.frames))):
                yield made
            if stopped == cursor.NAMES:
                methods.name()
    losses["leave_without_enter"] = int(state[cursor.N_IGNORED]) + balancer.n_orphans
    losses["unwound"], losses["clock_backwards"] = balancer.n_unwound, balancer.n_backwards
    losses["open_at_end"] = balancer.depth
    if losses["open_at_end"]:
        yield balancer.close(span[1] + shift_ns)


def cut(column: Array) -> Array:
    """A part of an array, which does not hold the memory of a much larger one."""
    return column if column.base is None or 2 * len(column) >= len(column.base) else column.copy()


# ---------------------------------------------------------------- sites


class Sites(NamedTuple):
    """Of a thread, in the order of its buffers: allocations, with ts (int64 ns on the event clock), address, size
    (int64) and pair, of a stack and the number of a type (int32); of other events at (offsets) and other_stack. The
    allocations from row `first` on are new; is_block: none will be added to them, as they are PIECE with the others, or
    a window of the file ends."""

    ts: Array
    address: Array
    size: Array
    pair: Array
    at: Array
    other_stack: Array
    first: int
    is_block: bool


def site_pieces(
    log: Log, buffers: Array, methods: MethodTable, types: MethodTable, stacks: StackTable, pairs: Nodes
) -> Iterator[Sites]:
    """What happened on stacks in a thread's buffers, in pieces."""
    program, state = log.program, log.program.state(N_LISTS)
    open_calls, n_open = [np.empty(FIRST_DEPTH, np.int32) for _ in range(3)], np.zeros(0, np.int32)
    roles = np.zeros(256, np.uint8)
    roles[[Event.ALLOC, Event.ALLOC_BT]], roles[[*SITED]] = 1, 2
    items, counts = np.empty(FIRST_ITEMS, np.uint64), [cursor.N_ROWS, cursor.N_OTHERS]
    for window in windows(log.source, buffers):
        stopped = cursor.ROWS
        while stopped != cursor.DONE:
            if stopped == cursor.ROWS:
                allocations = [np.empty(PIECE, dtype) for dtype in ("i8", "u8", "i8", "i4")]
                others, state[counts] = [np.empty(PIECE, dtype) for dtype in ("i8", "i4")], 0
            first, first_other = state[counts].tolist()
            n_open = np.append(n_open, np.zeros(len(methods.frames) - len(n_open), np.int32))
            stacks.refresh()
            pairs.reserve(pairs.n + 1)
            stopped = log_kernel.sites(
                program.over(log.source.data, window, state), methods.arrays, types.arrays, stacks.arrays,
                pairs.arrays, (*open_calls, n_open), roles, tuple(allocations), tuple(others), items,
            )  # fmt: skip
            stacks.publish()
            if stopped == cursor.NAMES:
                methods.name()
            elif stopped == cursor.NODES:
                stacks.grow(2 * stacks.n)
            elif stopped == cursor.CALLS:
                open_calls = [doubled(column) for column in open_calls]
            elif stopped == cursor.POOL:
                items = doubled(items)
            types.name()
            n, n_others = state[counts].tolist()
            ts, address, size, pair = (column[:n] for column in allocations)
            at, other_stack = (column[first_other:n_others] for column in others)
            is_block = n > 0 and stopped in (cursor.ROWS, cursor.DONE)
            yield Sites(ts, address, size, pair, at, other_stack, first, is_block)
