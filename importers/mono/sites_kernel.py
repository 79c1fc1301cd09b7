# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Allocations, and where else something happened. Cython's pure-Python mode: also runs interpreted; `log_kernel`."""

import cython

from traceferry.importers.mono.cursor_inlined import (
    CALLS,
    DEPTH,
    DONE,
    ENTER,
    EXC_LEAVE,
    LATEST_TS,
    N_OTHERS,
    N_ROWS,
    NAMES,
    NODES,
    PAIRS,
    POOL,
    ROWS,
    Cursor,
)
from traceferry.kernels.hashing import mix_pair
from traceferry.kernels.names import NameTable
from traceferry.kernels.nodes import NodeTable

# First bytes. Throws and monitors have a bit for a backtrace, handle events are a range of GC's.
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


# Pairs of a stack and a type that are kept at hand.
N_AT_HAND = cython.declare(cython.ulonglong, 1024)


def sites(
    log: tuple,
    method_names: tuple,
    type_names: tuple,
    stack_nodes: tuple,
    pair_nodes: tuple,
    open_calls: tuple,
    allocations: tuple,
    others: tuple,
    items: cython.ulonglong[::1],
):
    """Where things happened in the buffers of one thread, a piece at a time.

    stack_nodes: pairs of a stack and a frame; pair_nodes: of a stack and the number of a type. open_calls: columns of
    the open calls, method, frame and stack; and of each method how many are open. allocations: columns of time, object,
    size, pair; others, which are throws, clauses, monitor and handle events: their offsets and stacks. The stack of
    each is its own backtrace, or else the calls that are open then; -1 where neither is known. s[N_ROWS] and
    s[N_OTHERS] rows are set; there is room for as many allocations and others together as for others.

    Returns DONE, ROWS, NAMES where methods are not known, which got numbers and want frames, or what is full: NODES of
    stacks, PAIRS, also for types, CALLS, POOL for items. Types that are not known get numbers, too.
    """
    c: Cursor = Cursor(log, items)
    s: cython.ulonglong[::1] = c.state
    methods: NameTable = NameTable(method_names)
    types: NameTable = NameTable(type_names)
    stacks: NodeTable = NodeTable(stack_nodes)
    pairs: NodeTable = NodeTable(pair_nodes)
    open_key: cython.int[::1]
    open_frame: cython.int[::1]
    open_stack: cython.int[::1]
    n_open: cython.int[::1]
    open_key, open_frame, open_stack, n_open = open_calls
    out_ts: cython.longlong[::1]
    out_object: cython.ulonglong[::1]
    out_size: cython.longlong[::1]
    out_pair: cython.int[::1]
    out_ts, out_object, out_size, out_pair = allocations
    other_at: cython.longlong[::1]
    other_stack: cython.int[::1]
    other_at, other_stack = others
    room: cython.Py_ssize_t = other_at.shape[0]
    deepest: cython.Py_ssize_t = open_key.shape[0]
    depth: cython.Py_ssize_t = s[DEPTH]
    n: cython.Py_ssize_t = s[N_ROWS]
    n_others: cython.Py_ssize_t = s[N_OTHERS]
    if (
        depth > deepest
        or open_frame.shape[0] != deepest
        or open_stack.shape[0] != deepest
        or n_open.shape[0] < methods.last.shape[0]
        or n + n_others > room
        or out_ts.shape[0] < room
        or out_object.shape[0] < room
        or out_size.shape[0] < room
        or out_pair.shape[0] < room
        or other_stack.shape[0] < room
    ):
        raise ValueError("sites: an array has the wrong length")
    # The latest pairs of types that have one definition.
    hand_type = cython.declare(cython.ulonglong[1024])
    hand_stack = cython.declare(cython.int[1024])
    hand_pair = cython.declare(cython.int[1024])
    h: cython.Py_ssize_t
    for h in range(N_AT_HAND):
        hand_type[h] = 0
        hand_stack[h] = -1
        hand_pair[h] = -1
    result: cython.int = DONE
    stack: cython.int = -1
    with cython.nogil:
        while result == DONE and c.begin():
            if not c.next(0):
                c.at = c.end
                continue
            low: cython.uint = c.kind & 15
            if c.kind == ENTER:
                number: cython.int = methods.add(c.method)
                frame: cython.int = methods.frame_at(number, c.ts)
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
                number = methods.find(c.method)
                if number >= 0 and n_open[number] > 0:
                    q: cython.Py_ssize_t = -1
                    while depth > 0 and q != number:
                        depth -= 1
                        q = open_key[depth]
                        n_open[q] -= 1
            elif (
                low == ALLOC_TYPE
                or c.kind == THROW
                or c.kind == THROW | WITH_BACKTRACE
                or c.kind == CLAUSE
                or low == MONITOR_TYPE
                or (low == GC_TYPE and HANDLE_CREATED <= c.kind <= HANDLE_DESTROYED_BT)
            ):
                if n + n_others == room:
                    result = ROWS
                elif c.n_items > c.n_room:
                    result = POOL
                elif c.known >= 0:
                    stack = c.known
                elif c.n_items > c.n_single:
                    stack = -1
                    is_lasting: cython.bint = True
                    for q in range(c.n_single, c.n_items):
                        number = methods.add(items[q])
                        frame = methods.frame_at(number, c.ts)
                        if frame < 0:
                            result = NAMES
                            break
                        stack = stacks.of(stack, frame)
                        if stack < 0:
                            result = NODES
                            break
                        is_lasting = is_lasting and methods.last[number] == number
                    if result == DONE and is_lasting:
                        c.lists.remember(c.data, stack, c.method)
                else:
                    q = depth
                    while q > 0 and open_stack[q - 1] < 0:
                        q -= 1
                    stack = open_stack[q - 1] if q > 0 else -1
                    while q < depth:
                        stack = stacks.of(stack, open_frame[q])
                        if stack < 0:
                            result = NODES
                            break
                        open_stack[q] = stack
                        q += 1
                pair: cython.int = -1
                if result == DONE and low == ALLOC_TYPE:
                    h = mix_pair(stack, items[0]) & (N_AT_HAND - 1)
                    pair = hand_pair[h]
                    if pair < 0 or hand_stack[h] != stack or hand_type[h] != items[0]:
                        number = types.add(items[0])
                        pair = pairs.of(stack, types.definition_at(number, c.event_ts)) if number >= 0 else -1
                        if pair < 0:
                            result = PAIRS
                        elif types.last[number] == number:
                            hand_type[h] = items[0]
                            hand_stack[h] = stack
                            hand_pair[h] = pair
                if result == DONE and low == ALLOC_TYPE:
                    out_ts[n] = c.event_ts if c.event_ts < LATEST_TS else LATEST_TS
                    out_object[n] = items[1]
                    out_size[n] = items[2]
                    out_pair[n] = pair
                    n += 1
                elif result == DONE:
                    other_at[n_others] = c.event_at
                    other_stack[n_others] = stack
                    n_others += 1
            if result != DONE:
                c.rewind()
    c.save()
    s[DEPTH] = depth
    s[N_ROWS] = n
    s[N_OTHERS] = n_others
    return result


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    sites = plain_integers(sites)
