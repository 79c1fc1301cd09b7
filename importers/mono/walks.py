"""Map: runs the kernels over the buffers of a thread, a piece at a time, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceferry.calls.balance import Balancer, Raw
from traceferry.importers.mono import cursor_inlined as cursor
from traceferry.importers.mono import log_kernel, sites_kernel
from traceferry.importers.mono.decode import FIRST_ITEMS, PIECE, Log, grown, times, windows
from traceferry.importers.mono.names import Names
from traceferry.kernels import tables_kernel
from traceferry.model import CALLS, Array, Table, Trace

# So many records of calls are balanced one by one after one that does not nest.
IRREGULAR_PIECE = 1 << 10
FIRST_DEPTH = 1 << 8
FIRST_NODES = 1 << 10
MOVE_WIDTH = 3


# ---------------------------------------------------------------- calls


@dataclass
class CallCounts:
    """Irregularities in the calls of a thread: leaves without an enter, calls closed by a leave below them, time stamps
    that fell, calls open at the end."""

    ignored: int = 0
    unwound: int = 0
    backwards: int = 0
    open_at_end: int = 0


def call_pieces(
    log: Log, buffers: Array, methods: Names, span: tuple[int, int], shift_ns: int, counts: CallCounts
) -> Iterator[Table]:
    """Balanced CALLS of a thread's buffers (as kernels take them). span: its first and last time on the event clock,
    which becomes the trace's by adding shift_ns. counts are set when the last piece has been made.

    Leaves without an enter are left out: methods of the runtime have leaves without enters.
    """
    program, state = log.program, log.program.state()
    state[cursor.MAX_TS] = span[1]
    balancer = Balancer(span[0] + shift_ns)
    n_read, parts = 0, list[Table]()
    stopped = cursor.ROWS
    for window in windows(log.source, buffers):
        while True:
            room = min(PIECE - n_read, IRREGULAR_PIECE if stopped == cursor.IRREGULAR else PIECE)
            open_calls = balancer.open_calls(room, len(methods.frames)) if stopped != cursor.IRREGULAR else None
            ts, key, frame, flags = (np.empty(room, dtype) for dtype in ("i8", "i4", "i4", "u1"))
            state[cursor.DEPTH] = balancer["depth"]
            stopped = log_kernel.calls(
                log.source.data, window, program.steps, program.starts, methods.arrays, shift_ns,
                *(open_calls or (key[:0], key[:0])), balancer["now"], ts, key, frame, flags, state,
            )  # fmt: skip
            n = int(state[cursor.N_ROWS])
            n_read += n
            if n and open_calls:
                balancer.balanced(n, int(state[cursor.DEPTH]), int(ts[n - 1]))
                parts.append(Table(CALLS, {"ts": _cut(ts, n), "frame": _cut(frame, n), "flags": _cut(flags, n)}))
            elif n:
                parts.append(balancer.add(Raw(ts[:n], key[:n], frame[:n], flags[:n]), len(methods.frames)))
            if stopped == cursor.NAMES:
                methods.name()
            if n_read == PIECE or stopped in (cursor.NAMES, cursor.DONE):
                yield from _joined(parts)
                n_read, parts = 0, []
            if stopped == cursor.DONE:
                break
    counts.ignored = int(state[cursor.N_IGNORED]) + balancer["n_orphans"]
    counts.unwound, counts.backwards = balancer["n_unwound"], balancer["n_backwards"]
    counts.open_at_end = balancer["depth"]
    if counts.open_at_end:
        yield balancer.close(span[1] + shift_ns)


def _joined(parts: list[Table]) -> Iterator[Table]:
    """One table of all of them, if they have rows."""
    if len(parts) > 1:
        parts = [Table(CALLS, {c.name: np.concatenate([part[c.name] for part in parts]) for c in CALLS.columns})]
    yield from (part for part in parts if len(part))


def _cut(column: Array, n: int) -> Array:
    """The first n values, which do not hold the memory of many more."""
    return column[:n] if 2 * n >= len(column) else column[:n].copy()


# ---------------------------------------------------------------- sites


class Nodes:
    """Pairs of a parent, which may be a node, and a number, each once: numbered in the order in which they come."""

    def __init__(self) -> None:
        self.n = 0
        self._load(np.empty(0, np.int32), np.empty(0, np.int32), FIRST_NODES)

    @property
    def parent(self) -> Array:
        return self._parent[: self.n]

    @property
    def number(self) -> Array:
        return self._number[: self.n]

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """As the kernels take them, and add to them."""
        return self._parent, self._number, self._slots

    def grow(self) -> None:
        self._load(self.parent, self.number, 2 * len(self._parent))

    def of(self, parent: Array, number: Array) -> Array:
        """The nodes of pairs; all int32."""
        found, row = np.empty(len(parent), np.int32), 0
        state = np.zeros(cursor.N_STATE, np.uint64)
        while True:
            state[cursor.N_NODES] = self.n
            row += sites_kernel.pairs(parent[row:], number[row:], *self.arrays, found[row:], state)
            self.n = int(state[cursor.N_NODES])
            if row == len(parent):
                return found
            self.grow()

    def _load(self, parent: Array, number: Array, room: int) -> None:
        more = np.empty(room - len(parent), np.int32)
        self._parent, self._number = np.concatenate((parent, more)), np.concatenate((number, more))
        self._slots = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
        tables_kernel.enter_pairs(self._parent, self._number, 0, len(parent), self._slots)


class StackTable(Nodes):
    """The trace's stacks: pairs of a prefix and a frame."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._stacks = trace.stacks

    def refresh(self) -> None:
        """Takes in the rows that others have added."""
        if len(self._stacks) != self.n:
            self.n = len(self._stacks)
            self._load(self._stacks["prefix"], self._stacks["frame"], max(FIRST_NODES, 2 * self.n))

    def extend(self, n: int) -> None:
        """After a kernel has added stacks until there were n."""
        if n > self.n:
            new = slice(self.n, n)
            self._stacks.extend(prefix=self._parent[new], frame=self._number[new])
            self.n = n


@dataclass(frozen=True)
class Sites:
    """Of a thread, in the order of its buffers: allocations, with ts (int64 ns on the event clock), type (class or
    vtable), address, size and stack (int32); of other events at (offsets), row (how many allocations come before) and
    other_stack; moves: uint64 rows of ts, old and new address. is_last: of a window."""

    ts: Array
    type: Array
    address: Array
    size: Array
    stack: Array
    at: Array
    row: Array
    other_stack: Array
    moves: Array
    is_last: bool


def site_pieces(log: Log, buffers: Array, methods: Names, stacks: StackTable) -> Iterator[Sites]:
    """What happened on stacks in a thread's buffers, at most PIECE rows at a time."""
    program, state = log.program, log.program.state()
    keys, frames, open_stacks = (np.empty(FIRST_DEPTH, np.int32) for _ in range(3))
    n_open = np.zeros(0, np.int32)
    items, room = np.empty(FIRST_ITEMS, np.uint64), MOVE_WIDTH * PIECE
    for window in windows(log.source, buffers):
        stopped = cursor.ROWS
        while stopped != cursor.DONE:
            ts, type_, address, size, moves = (np.empty(n, np.uint64) for n in (PIECE, PIECE, PIECE, PIECE, room))
            stack, at, row, other_stack = (np.empty(PIECE, dtype) for dtype in ("i4", "i8", "i8", "i4"))
            n_open = np.append(n_open, np.zeros(len(methods.frames) - len(n_open), np.int32))
            stacks.refresh()
            state[cursor.N_NODES] = stacks.n
            stopped = sites_kernel.sites(
                log.source.data, window, program.steps, program.starts, methods.arrays, keys, frames, open_stacks,
                n_open, *stacks.arrays, np.empty(len(items), np.int32), ts, type_, address, size, stack, at, row,
                other_stack, moves, items, state,
            )  # fmt: skip
            stacks.extend(int(state[cursor.N_NODES]))
            counts = [cursor.N_ROWS, cursor.N_OTHERS, cursor.N_MOVES]
            n, n_others, n_moves = state[counts].tolist()
            state[counts] = 0
            if stopped == cursor.NAMES:
                methods.name()
            elif stopped == cursor.NODES:
                stacks.grow()
            elif stopped == cursor.CALLS:
                keys, frames, open_stacks = grown(keys), grown(frames), grown(open_stacks)
            elif stopped == cursor.POOL:
                items = grown(items)
            elif stopped == cursor.MOVES and n_moves == 0:
                room *= 2
            yield Sites(
                times(ts[:n]), type_[:n], address[:n], size[:n], stack[:n], at[:n_others], row[:n_others],
                other_stack[:n_others], moves.reshape(-1, MOVE_WIDTH)[:n_moves], stopped == cursor.DONE,
            )  # fmt: skip


def intern_stacks(trace: Trace, frames: Array, lengths: Array) -> Array:
    """The stacks of lists of frames one after the other, the innermost of each first; int32, -1 is none."""
    table = StackTable(trace)
    table.refresh()
    n_known = table.n
    known: dict[bytes, int] = {}
    stacks = np.full(len(lengths), -1, np.int32)
    ends = np.cumsum(lengths)
    for nth, (begin, end) in enumerate(zip((ends - lengths).tolist(), ends.tolist(), strict=True)):
        key = frames[begin:end].tobytes()
        if key not in known:
            stack = np.full(1, -1, np.int32)
            for at in range(end - 1, begin - 1, -1):
                stack = table.of(stack, frames[at : at + 1])
            known[key] = int(stack[0])
        stacks[nth] = known[key]
    n, table.n = table.n, n_known
    table.extend(n)
    return stacks
