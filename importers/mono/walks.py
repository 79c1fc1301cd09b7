"""Map: runs the kernels over the buffers of a thread, a piece at a time, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceferry.calls.balance import Balancer, Raw
from traceferry.importers.mono import cursor_inlined as cursor
from traceferry.importers.mono import log_kernel, sites_kernel
from traceferry.importers.mono.decode import FIRST_ITEMS, N_LISTS, PIECE, Log, windows
from traceferry.importers.mono.names import Names
from traceferry.kernels.tables import Nodes, doubled
from traceferry.model import Array, Table, Trace

FIRST_DEPTH = 1 << 8
FIRST_NODES = 1 << 10
MOVE_WIDTH = 3


# ---------------------------------------------------------------- calls


def call_pieces(
    log: Log, buffers: Array, methods: Names, span: tuple[int, int], shift_ns: int, losses: dict[str, int]
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
                log.source.data, window, program.steps, program.starts, methods.arrays, shift_ns, ts, key, frame, flags,
                state,
            )  # fmt: skip
            n = int(state[cursor.N_ROWS])
            raw = Raw(_cut(ts, n), key[:n], _cut(frame, n), _cut(flags, n))
            if len(made := balancer.add_in_place(raw, len(methods.frames))):
                yield made
            if stopped == cursor.NAMES:
                methods.name()
    losses["leave_without_enter"] = int(state[cursor.N_IGNORED]) + balancer["n_orphans"]
    losses["unwound"], losses["clock_backwards"] = balancer["n_unwound"], balancer["n_backwards"]
    losses["open_at_end"] = balancer["depth"]
    if losses["open_at_end"]:
        yield balancer.close(span[1] + shift_ns)


def _cut(column: Array, n: int) -> Array:
    """The first n values, which do not hold the memory of many more."""
    return column[:n] if 2 * n >= len(column) else column[:n].copy()


# ---------------------------------------------------------------- sites


class StackTable(Nodes):
    """The trace's stacks: pairs of a prefix and a frame."""

    def __init__(self, trace: Trace) -> None:
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
        """The rows that kernels have added become the trace's."""
        new = slice(len(self._stacks), self.n)
        if new.start < new.stop:
            self._stacks.extend(prefix=self.parent[new], frame=self.key[new])


@dataclass(frozen=True)
class Sites:
    """Of a thread, in the order of its buffers: allocations, with ts (int64 ns on the event clock), address, size
    (int64) and pair, of a stack and the number of a type (int32); of other events at (offsets) and other_stack; moves:
    uint64 rows of ts, old and new address. block: ts, size and pair of all allocations since the last block; () until
    they are PIECE with the others, or a window of the file ends."""

    ts: Array
    address: Array
    size: Array
    pair: Array
    at: Array
    other_stack: Array
    moves: Array
    block: tuple[Array, ...]


def site_pieces(
    log: Log, buffers: Array, methods: Names, types: Names, stacks: StackTable, pairs: Nodes
) -> Iterator[Sites]:
    """What happened on stacks in a thread's buffers, in pieces."""
    program, state = log.program, log.program.state(N_LISTS)
    open_calls, n_open = [np.empty(FIRST_DEPTH, np.int32) for _ in range(3)], np.zeros(0, np.int32)
    items, room = np.empty(FIRST_ITEMS, np.uint64), MOVE_WIDTH * PIECE
    counts = [cursor.N_ROWS, cursor.N_OTHERS, cursor.N_MOVES]
    for window in windows(log.source, buffers):
        stopped = cursor.ROWS
        while stopped != cursor.DONE:
            if stopped == cursor.ROWS:
                allocations = tuple(np.empty(PIECE, dtype) for dtype in ("i8", "u8", "i8", "i4"))
                others = tuple(np.empty(PIECE, dtype) for dtype in ("i8", "i4"))
                state[counts] = 0
            first, first_other, _ = state[counts].tolist()
            moves, state[cursor.N_MOVES] = np.empty(room, np.uint64), 0
            n_open = np.append(n_open, np.zeros(len(methods.frames) - len(n_open), np.int32))
            stacks.refresh()
            stopped = cursor.PAIRS
            while stopped == cursor.PAIRS:
                types.make_room()
                pairs.reserve(pairs.n + 1)
                stopped = sites_kernel.sites(
                    log.source.data, window, program.steps, program.starts, methods.arrays, types.arrays, stacks.arrays,
                    pairs.arrays, (*open_calls, n_open), allocations, others, moves, items, state,
                )  # fmt: skip
            stacks.publish()
            n, n_others, n_moves = state[counts].tolist()
            if stopped == cursor.NAMES:
                methods.name()
            elif stopped == cursor.NODES:
                stacks.grow(2 * stacks.n)
            elif stopped == cursor.CALLS:
                open_calls = [doubled(column) for column in open_calls]
            elif stopped == cursor.POOL:
                items = doubled(items)
            elif stopped == cursor.MOVES and n_moves == 0:
                room *= 2
            types.name()
            ts, address, size, pair = (column[first:n] for column in allocations)
            at, other_stack = (column[first_other:n_others] for column in others)
            moved = moves.reshape(-1, MOVE_WIDTH)[:n_moves]
            is_block = stopped in (cursor.ROWS, cursor.DONE) and n > 0
            block = tuple(_cut(allocations[nth], n) for nth in (0, 2, 3)) if is_block else ()
            yield Sites(ts, address, size, pair, at, other_stack, moved, block)


def intern_stacks(trace: Trace, frames: Array, lengths: Array) -> Array:
    """The stacks of lists of frames one after the other, the innermost of each first; int32, -1 is none."""
    table = StackTable(trace)
    stacks, ends, done = np.empty(len(lengths), np.int32), np.cumsum(lengths, dtype=np.int64), 0
    while (done := sites_kernel.lists(frames, ends, table.arrays, stacks, done)) < len(lengths):
        table.grow(2 * table.n)
    table.publish()
    return stacks
