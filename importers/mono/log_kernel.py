# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Goes through the buffers of Mono log profiler recordings. Cython's pure-Python mode: also runs interpreted.

A kernel keeps its place in `s`, an array of N_STATE unsigned numbers, from call to call. It returns why it stopped;
called again, with a longer array where one was full, it goes on where it was.
"""

import cython

from traceferry.importers.mono.cursor_inlined import (
    CALLS,
    DEPTH,
    DONE,
    ENTER,
    EXC_LEAVE,
    LATEST_TS,
    LEAVE,
    MAX_TS,
    N_IGNORED,
    N_OTHERS,
    N_POOL,
    N_ROWS,
    NAMES,
    NODES,
    PAIRS,
    POOL,
    ROWS,
    Cursor,
    decode_packed,
)
from traceferry.kernels.functions import c_function
from traceferry.kernels.hashing import mix_pair
from traceferry.kernels.integers import wrapped
from traceferry.kernels.names import NameTable
from traceferry.kernels.nodes import NodeTable
from traceferry.kernels.words import load8
from traceferry.timeline.running_inlined import RunningSums, entered, left

# Columns of `stats`, a row for each buffer; further ones count events.
FIRST_TS, LAST_TS, EVENTS, BAD, BAD_AT = range(5)
STATS_WIDTH = cython.declare(cython.int, 13)
# Columns of `records`: offset, time, first byte | declaration << 8 | buffer << 32, where its values are in the pool.
RECORD_WIDTH = cython.declare(cython.int, 4)
WIDTHS = {"record": 4}

# Flags of a call.
LEAVES = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)

# Pairs of a stack and a type that are kept at hand.
N_PAIRS = cython.declare(cython.ulonglong, 1024)
# Methods whose frames are kept at hand, by the low bits of their pointers.
N_KNOWN = cython.declare(cython.Py_ssize_t, 256)


def read(
    log: tuple, columns: cython.const[cython.int][::1], stats: cython.ulonglong[::1], records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1], sums: tuple,
):  # fmt: skip
    """Keeps events as rows of `records`, with their values in `pool`, counts others in `stats`, and adds up calls.

    columns: for each first byte the column of stats that counts it; 0: it is kept; -1: it is left out. stats: a row of
    STATS_WIDTH for each buffer, in which FIRST_TS begins with the largest number; or none. sums: see
    `RunningSums`. An event that is damaged ends its buffer. The first s[N_ROWS] rows and s[N_POOL] values are set.
    Returns DONE, ROWS or POOL.
    """
    c: Cursor = Cursor(log, pool)
    s: cython.ulonglong[::1] = c.state
    calls_of: RunningSums = RunningSums(sums)
    has_stats: cython.bint = stats.shape[0] > 0
    n: cython.Py_ssize_t = s[N_ROWS]
    n_pool: cython.Py_ssize_t = s[N_POOL]
    room: cython.Py_ssize_t = records.shape[0] // RECORD_WIDTH
    if (
        columns.shape[0] < 256
        or n > room
        or n_pool > pool.shape[0]
        or (has_stats and stats.shape[0] < c.n_buffers * STATS_WIDTH)
    ):
        raise ValueError("read: an array has the wrong length")
    i: cython.int
    for i in range(256):
        if columns[i] >= STATS_WIDTH:
            raise ValueError("read: a column that stats do not have")
    skips_calls: cython.bint = columns[ENTER] != 0 and columns[LEAVE] != 0 and columns[EXC_LEAVE] != 0
    result: cython.int = DONE
    n_calls: cython.longlong
    n_enter: cython.longlong
    n_exc: cython.longlong
    with cython.nogil:
        while c.begin():
            of: cython.Py_ssize_t = (c.row - 1) * STATS_WIDTH
            calls_of.go_to_buffer(c.row - 1)
            c.n_room = pool.shape[0] if columns[c.data[c.at]] == 0 else 0  # values of other events are only counted
            if not c.next(n_pool):
                if has_stats:
                    stats[of + BAD] = c.damage
                    stats[of + BAD_AT] = c.event_at
                c.at = c.end
                continue
            c.lists.remember(c.data, 0, c.method)
            column: cython.int = columns[c.kind]
            if column == 0:
                if n == room or c.n_items > c.n_room:
                    result = ROWS if n == room else POOL
                    c.rewind()
                    break
                records[RECORD_WIDTH * n] = c.event_at
                records[RECORD_WIDTH * n + 1] = c.event_ts
                w: cython.ulonglong = c.row - 1
                w = w << 24 | cython.cast(cython.uint, c.declared)
                records[RECORD_WIDTH * n + 2] = w << 8 | c.kind
                records[RECORD_WIDTH * n + 3] = n_pool
                n += 1
                n_pool = c.n_items
            if has_stats:
                if column > 0:
                    stats[of + column] += 1
                stats[of + EVENTS] += 1
                if c.timed:
                    stats[of + FIRST_TS] = min(stats[of + FIRST_TS], c.event_ts)
                    stats[of + LAST_TS] = max(stats[of + LAST_TS], c.event_ts)
            if skips_calls and c.kind & 0xCF == 3 and c.kind != 3:
                n_calls, n_enter, n_exc = short_calls(c, calls_of)
                if has_stats and n_calls > 0:
                    stats[of + LAST_TS] = max(stats[of + LAST_TS], c.ts)
                    stats[of + EVENTS] += n_calls
                    stats[of + columns[ENTER]] += n_enter
                    stats[of + columns[LEAVE]] += n_calls - n_enter - n_exc
                    stats[of + columns[EXC_LEAVE]] += n_exc
        calls_of.go_to(-1)
    c.save()
    s[N_ROWS] = n
    s[N_POOL] = n_pool
    return result


@c_function
@cython.returns((cython.longlong, cython.longlong, cython.longlong))
def short_calls(c: Cursor, sums: RunningSums):
    """After an enter or leave, goes over those that follow it as far as they are short, and adds up it and them: how
    many follow, how many of these enter, and how many leave by an exception."""
    d: cython.const[cython.uchar][::1] = c.data
    p: cython.longlong = c.at
    last: cython.longlong = c.end - 8
    ts: cython.ulonglong = c.ts
    method: cython.ulonglong = c.method
    mask: cython.ulonglong = c.mask
    kind: cython.uint = c.kind
    n: cython.longlong = 0
    # ENTER has the bit 0x20, LEAVE 0x10, EXC_LEAVE both.
    n_20: cython.longlong = 0
    n_10: cython.longlong = 0
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    adds: cython.bint = sums.thread >= 0
    top: cython.Py_ssize_t = sums.top
    now: cython.longlong = sums.now
    in_callees: cython.longlong = sums.in_callees
    while True:
        if adds:
            if ts > LATEST_TS:
                sums.leave_out()
            elif kind == ENTER:
                top, now, in_callees = entered(sums, ts, method, top, now, in_callees)
            else:
                top, now, in_callees = left(sums, ts, method, top, now, in_callees)
            adds = sums.thread >= 0
        if p > last:
            break
        w: cython.ulonglong = load8(d, p)
        kind = w & 0xFF
        if kind & 0xCF != 3 or kind == 3:
            break
        delta, difference, length = decode_packed(w)
        if length == 0:
            break
        p += length
        ts = wrapped(ts + delta)
        method = (method + difference) & mask
        n += 1
        n_20 += kind >> 5
        n_10 += kind >> 4 & 1
    sums.top, sums.now, sums.in_callees = top, now, in_callees
    c.at = p
    c.ts = ts
    c.method = method
    return n, n - n_10, n_20 + n_10 - n


# ---------------------------------------------------------------- calls


def calls(
    log: tuple, names: tuple, shift_ns: cython.longlong, out_ts: cython.longlong[::1], out_key: cython.int[::1],
    out_frame: cython.int[::1], out_flags: cython.uchar[::1],
):  # fmt: skip
    """The calls of the buffers of one thread as recorded, for a `Balancer`, a piece at a time: from row 0 on, s[N_ROWS]
    of them: time (at most s[MAX_TS], moved by shift_ns), the method's number, the frame of enters, flags.

    Methods that are entered and not known get numbers, for which names have room, and want a frame: NAMES. s[N_IGNORED]
    counts leaves of methods that are not known: nothing has entered them. The buffers are whole. Returns DONE, ROWS or
    NAMES.
    """
    # Values of other events are not wanted: no items. The last part of a log is its state.
    s: cython.ulonglong[::1] = log[4]
    c: Cursor = Cursor(log, s[:0])
    d: cython.const[cython.uchar][::1] = c.data
    table: NameTable = NameTable(names)
    room: cython.Py_ssize_t = out_ts.shape[0]
    if (
        out_key.shape[0] != room
        or out_frame.shape[0] != room
        or out_flags.shape[0] != room
        or table.n_names[0] == table.last.shape[0]
    ):
        raise ValueError("calls: an array has the wrong length")
    # The latest methods that have one definition, and so one frame; at first, pointers that belong elsewhere.
    known = cython.declare(cython.ulonglong[256])
    known_number = cython.declare(cython.int[256])
    known_frame = cython.declare(cython.int[256])
    h: cython.Py_ssize_t
    for h in range(N_KNOWN):
        known[h] = (h + 1) << 3
    result: cython.int = ROWS
    n: cython.Py_ssize_t = 0
    max_ts: cython.ulonglong = s[MAX_TS]
    p: cython.longlong = c.at
    end: cython.longlong = c.end
    ts: cython.ulonglong = c.ts
    method: cython.ulonglong = c.method
    delta: cython.ulonglong
    difference: cython.ulonglong
    with cython.nogil:
        while n < room and result == ROWS:
            length: cython.Py_ssize_t = 0
            if p + 8 <= end:
                w: cython.ulonglong = load8(d, p)
                kind: cython.uint = w & 0xFF
                if kind & 0xCF == 3 and kind != 3:
                    delta, difference, length = decode_packed(w)
            if length == 0:
                c.at = p
                c.ts = ts
                c.method = method
                kind = 0
                if p >= end:
                    result = ROWS if c.begin() else DONE
                elif c.next(0):
                    kind = c.kind
                else:
                    c.at = end
                end = c.end
                length = c.at - p
                delta = wrapped(c.ts - ts)
                difference = wrapped(c.method - method)
                if kind & 0xCF != 3 or kind == 3:
                    p = c.at
                    ts = c.ts
                    method = c.method
                    continue
            p += length
            ts = wrapped(ts + delta)
            method = (method + difference) & c.mask
            h = (method >> 3) & (N_KNOWN - 1)
            number: cython.int = known_number[h]
            frame: cython.int = known_frame[h]
            if known[h] != method:
                number = table.add(method) if kind == ENTER else table.find(method)
                if number < 0:
                    s[N_IGNORED] += 1
                    continue
                frame = table.frame_at(number, ts)
                if frame < 0:
                    result = NAMES
                    p -= length
                    ts = wrapped(ts - delta)
                    method = (method - difference) & c.mask
                    continue
                if table.last[number] == number:
                    known[h] = method
                    known_number[h] = number
                    known_frame[h] = frame
            out_ts[n] = cython.cast(cython.longlong, ts if ts < max_ts else max_ts) + shift_ns
            out_key[n] = number
            out_frame[n] = frame
            out_flags[n] = 0 if kind == ENTER else LEAVES if kind == LEAVE else LEAVES | UNWOUND
            n += 1
    c.at = p
    c.ts = ts
    c.method = method
    c.save()
    s[N_ROWS] = n
    return result


# ---------------------------------------------------------------- sites


def sites(
    log: tuple, method_names: tuple, type_names: tuple, stack_nodes: tuple, pair_nodes: tuple, open_calls: tuple,
    roles: cython.const[cython.uchar][::1], allocations: tuple, others: tuple, items: cython.ulonglong[::1],
):  # fmt: skip
    """Where things happened in the buffers of one thread, a piece at a time.

    roles: for each first byte 1 of allocations, 2 of other events whose stacks are wanted, else 0. stack_nodes: pairs
    of a stack and a frame; pair_nodes: of a stack and the number of a type. open_calls: columns of the open calls,
    method, frame and stack; and of each method how many are open. allocations: columns of time, object, size, pair;
    others: their offsets and stacks. The stack of each is its own backtrace, or else the calls that are open then; -1
    where neither is known. s[N_ROWS] and s[N_OTHERS] rows are set; there is room for as many allocations and others
    together as for others.

    Returns DONE, ROWS, NAMES where methods are not known, which got numbers and want frames, or what is full: NODES of
    stacks, PAIRS, also for types, CALLS, POOL for items. Types that are not known get numbers, too.
    """
    c: Cursor = Cursor(log, items)
    s: cython.ulonglong[::1] = c.state
    methods: NameTable = NameTable(method_names)
    types: NameTable = NameTable(type_names)
    stacks: NodeTable = NodeTable(stack_nodes)
    pairs: NodeTable = NodeTable(pair_nodes)
    open_key: cython.int[::1] = open_calls[0]
    open_frame: cython.int[::1] = open_calls[1]
    open_stack: cython.int[::1] = open_calls[2]
    n_open: cython.int[::1] = open_calls[3]
    out_ts: cython.longlong[::1] = allocations[0]
    out_object: cython.ulonglong[::1] = allocations[1]
    out_size: cython.longlong[::1] = allocations[2]
    out_pair: cython.int[::1] = allocations[3]
    other_at: cython.longlong[::1] = others[0]
    other_stack: cython.int[::1] = others[1]
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
        or roles.shape[0] < 256
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
    for h in range(N_PAIRS):
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
            elif c.kind == LEAVE or c.kind == EXC_LEAVE:
                number = methods.find(c.method)
                if number >= 0 and n_open[number] > 0:
                    q: cython.Py_ssize_t = -1
                    while depth > 0 and q != number:
                        depth -= 1
                        q = open_key[depth]
                        n_open[q] -= 1
            elif roles[c.kind] != 0:
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
                if result == DONE and roles[c.kind] == 1:
                    h = mix_pair(stack, items[0]) & (N_PAIRS - 1)
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
                if result == DONE and roles[c.kind] == 1:
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

    read = plain_integers(read)
    calls = plain_integers(calls)
    sites = plain_integers(sites)
