# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Allocations, and where else something happened. Cython's pure-Python mode: also runs interpreted; `log_kernel`."""

import cython

from traceferry.importers.mono.cursor_inlined import (
    CALLS,
    DEPTH,
    DONE,
    ENTER,
    EXC_LEAVE,
    MOVES,
    N_MOVES,
    N_NODES,
    N_OTHERS,
    N_ROWS,
    NAMES,
    NODES,
    POOL,
    ROWS,
    Cursor,
)
from traceferry.importers.mono.names_inlined import NameTable
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.interning import intern_pair

# First bytes. Throws and monitors have a bit for a backtrace, handle events are a range of GC's.
GC_MOVE = cython.declare(cython.uint, 0x31)
THROW = cython.declare(cython.uint, 0x04)
CLAUSE = cython.declare(cython.uint, 0x14)
WITH_BACKTRACE = cython.declare(cython.uint, 0x80)
HANDLE_CREATED = cython.declare(cython.uint, 0x41)
HANDLE_DESTROYED_BT = cython.declare(cython.uint, 0x71)
# Their low four bits.
ALLOC_TYPE = cython.declare(cython.uint, 0)
GC_TYPE = cython.declare(cython.uint, 1)
METHOD_TYPE = cython.declare(cython.uint, 3)
MONITOR_TYPE = cython.declare(cython.uint, 5)


@c_inline
def node_of(
    parent: cython.int,
    number: cython.int,
    node_parent: cython.int[::1],
    node_number: cython.int[::1],
    slots: cython.int[::1],
    s: cython.ulonglong[::1],
) -> cython.int:
    """The row of a pair; -1 where the table is full."""
    n: cython.int = s[N_NODES]
    node: cython.int
    if n >= node_parent.shape[0]:
        return -1
    node = intern_pair(node_parent, node_number, slots, n, parent, number)
    s[N_NODES] = n + (node == n)
    return node


@c_function
def is_node_table(
    node_parent: cython.const[cython.int][::1],
    node_number: cython.const[cython.int][::1],
    slots: cython.const[cython.int][::1],
    s: cython.const[cython.ulonglong][::1],
) -> cython.bint:
    """Whether the lengths fit together."""
    room: cython.Py_ssize_t = node_parent.shape[0]
    n: cython.Py_ssize_t = s[N_NODES]
    size: cython.Py_ssize_t = slots.shape[0]
    return node_number.shape[0] == room and n <= room and size >= 2 * room and size > 0 and size & (size - 1) == 0


def pairs(
    parent: cython.const[cython.int][::1],
    number: cython.const[cython.int][::1],
    node_parent: cython.int[::1],
    node_number: cython.int[::1],
    slots: cython.int[::1],
    found: cython.int[::1],
    s: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """The nodes of pairs, which are new if they have to be. Returns the row of the first for which nodes are full, or
    how many they are."""
    n: cython.Py_ssize_t = parent.shape[0]
    if (
        number.shape[0] != n
        or found.shape[0] != n
        or s.shape[0] <= N_NODES
        or not is_node_table(node_parent, node_number, slots, s)
    ):
        raise ValueError("pairs: an array has the wrong length")
    i: cython.Py_ssize_t
    node: cython.int
    with cython.nogil:
        for i in range(n):
            node = node_of(parent[i], number[i], node_parent, node_number, slots, s)
            if node < 0:
                n = i
                break
            found[i] = node
    return n


def sites(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    steps: cython.const[cython.int][::1],
    starts: cython.const[cython.int][::1],
    names: tuple,
    open_key: cython.int[::1],
    open_frame: cython.int[::1],
    open_stack: cython.int[::1],
    n_open: cython.int[::1],
    prefix: cython.int[::1],
    frame_of: cython.int[::1],
    slots: cython.int[::1],
    stack_before: cython.int[::1],
    allocation_ts: cython.ulonglong[::1],
    allocation_type: cython.ulonglong[::1],
    allocation_object: cython.ulonglong[::1],
    allocation_size: cython.ulonglong[::1],
    allocation_stack: cython.int[::1],
    other_at: cython.longlong[::1],
    other_row: cython.longlong[::1],
    other_stack: cython.int[::1],
    moves: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """Where things happened in the buffers of one thread, a piece at a time, and what moved.

    allocation_*: time, class or vtable, object, size; others, which are throws, clauses, monitor and handle
    events: their offsets, and how many allocations come before. The stack of each is its own backtrace, or else the
    calls that are open then; -1 where neither is known. moves: rows of time, old and new address. s[N_ROWS],
    s[N_OTHERS], s[N_MOVES] of them are set; there is room for as many allocations and others together as for others.

    open_*: the open calls; n_open: of each number. prefix, frame_of: s[N_NODES] stacks, to which new ones are added.
    stack_before: as long as items: of the backtrace before, of which the next one mostly shares the outer part.

    Returns DONE, ROWS, NAMES where methods are not known, which got numbers and want frames, or what is full: NODES,
    CALLS, MOVES, POOL for items.
    """
    c: Cursor = Cursor(d, buffers, steps, starts, items, s)
    table: NameTable = NameTable(names)
    room: cython.Py_ssize_t = other_at.shape[0]
    deepest: cython.Py_ssize_t = open_key.shape[0]
    depth: cython.Py_ssize_t = s[DEPTH]
    n: cython.Py_ssize_t = s[N_ROWS]
    n_others: cython.Py_ssize_t = s[N_OTHERS]
    n_moves: cython.Py_ssize_t = s[N_MOVES]
    if (
        depth > deepest
        or open_frame.shape[0] != deepest
        or open_stack.shape[0] != deepest
        or n_open.shape[0] < table.last.shape[0]
        or not is_node_table(prefix, frame_of, slots, s)
        or stack_before.shape[0] != items.shape[0]
        or n + n_others > room
        or allocation_stack.shape[0] < room
        or allocation_ts.shape[0] < room
        or allocation_type.shape[0] < room
        or allocation_object.shape[0] < room
        or allocation_size.shape[0] < room
        or other_stack.shape[0] < room
        or other_row.shape[0] < room
        or 3 * n_moves > moves.shape[0]
    ):
        raise ValueError("sites: an array has the wrong length")
    i: cython.Py_ssize_t
    result: cython.int = DONE
    n_before: cython.Py_ssize_t = 0
    n_frames: cython.Py_ssize_t
    q: cython.Py_ssize_t
    number: cython.int
    frame: cython.int
    stack: cython.int = -1
    low: cython.uint
    is_same: cython.bint
    with cython.nogil:
        while result == DONE and c.begin():
            if not c.next(0):
                c.at = c.end
                continue
            low = c.kind & 15
            if c.kind == ENTER:
                number = table.add(c.method)
                frame = table.frame_at(number, c.ts)
                if frame < 0:
                    result = NAMES
                elif depth == deepest:
                    result = CALLS
                else:
                    open_key[depth] = number
                    open_frame[depth] = frame
                    open_stack[depth] = -1
                    n_open[number] += 1
                    depth += 1
            elif low == METHOD_TYPE and c.kind <= EXC_LEAVE:
                number = table.find(c.method)
                if number >= 0 and n_open[number] > 0:
                    q = -1
                    while depth > 0 and q != number:
                        depth -= 1
                        q = open_key[depth]
                        n_open[q] -= 1
            elif c.kind == GC_MOVE:
                if c.n_items > c.n_room:
                    result = POOL
                elif 3 * (n_moves + (c.n_items >> 1)) > moves.shape[0]:
                    result = MOVES
                else:
                    for i in range(c.n_items >> 1):
                        moves[3 * n_moves] = c.event_ts
                        moves[3 * n_moves + 1] = items[2 * i]
                        moves[3 * n_moves + 2] = items[2 * i + 1]
                        n_moves += 1
            elif (
                low == ALLOC_TYPE
                or c.kind == THROW
                or c.kind == THROW | WITH_BACKTRACE
                or c.kind == CLAUSE
                or low == MONITOR_TYPE
                or (low == GC_TYPE and HANDLE_CREATED <= c.kind <= HANDLE_DESTROYED_BT)
            ):
                n_frames = c.n_items - c.n_single
                if n + n_others == room:
                    result = ROWS
                elif c.n_items > c.n_room:
                    result = POOL
                elif n_frames > 0:
                    # The outer part that is as in the backtrace before needs no look-up.
                    q = n_before if n_before < c.n_same else c.n_same
                    q = q if q < n_frames else n_frames
                    stack = stack_before[q - 1] if q > 0 else -1
                    n_before = q
                    is_same = True
                    while q < n_frames:
                        number = table.add(items[c.n_single + q])
                        frame = table.frame_at(number, c.ts)
                        if frame < 0:
                            result = NAMES
                            break
                        stack = node_of(stack, frame, prefix, frame_of, slots, s)
                        if stack < 0:
                            result = NODES
                            break
                        is_same = is_same and table.last[number] == number
                        if is_same:
                            stack_before[q] = stack
                            n_before = q + 1
                        q += 1
                    c.n_same = n_before
                else:
                    q = depth
                    while q > 0 and open_stack[q - 1] < 0:
                        q -= 1
                    stack = open_stack[q - 1] if q > 0 else -1
                    while q < depth:
                        stack = node_of(stack, open_frame[q], prefix, frame_of, slots, s)
                        if stack < 0:
                            result = NODES
                            break
                        open_stack[q] = stack
                        q += 1
                if result == DONE and low == ALLOC_TYPE:
                    allocation_ts[n] = c.event_ts
                    allocation_type[n] = items[0]
                    allocation_object[n] = items[1]
                    allocation_size[n] = items[2]
                    allocation_stack[n] = stack
                    n += 1
                elif result == DONE:
                    other_at[n_others] = c.event_at
                    other_row[n_others] = n
                    other_stack[n_others] = stack
                    n_others += 1
            if result != DONE:
                c.rewind()
    c.save(s)
    s[DEPTH] = depth
    s[N_ROWS] = n
    s[N_OTHERS] = n_others
    s[N_MOVES] = n_moves
    return result


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    pairs = plain_integers(pairs)
    sites = plain_integers(sites)
