# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes events that happen on a stack: allocations, throws and others, samples. Cython's pure-Python mode: also runs
interpreted. See `scan_kernel`."""

import cython

from traceferry.importers.mono.events_inlined import again, are_inside, begin, step
from traceferry.importers.mono.names_inlined import frame_at, hashed, id_of, is_checked
from traceferry.importers.mono.state_inlined import (
    ASKED,
    ASKS_METHOD,
    AT,
    B_WIDTH,
    BAD,
    BEGUN,
    BUFFER,
    DEPTH,
    DEPTH_FULL,
    DONE,
    END,
    EVENT_AT,
    EVENT_TS,
    ITEMS_FULL,
    KIND,
    LOW32,
    N_ITEMS,
    N_POOL,
    N_ROWS,
    N_STACKS,
    N_STATE,
    NO_ROOM,
    POOL_FULL,
    ROWS_FULL,
    STACKS_FULL,
    TS,
    A,
    B,
    C,
)

# ---------------------------------------------------------------- stacks


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def stack_of(
    prefix: cython.int,
    frame: cython.int,
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    s: cython.ulonglong[::1],
) -> cython.int:
    """The number of a stack, which is new if it has to be; -1 where there is no room."""
    key: cython.ulonglong = cython.cast(cython.uint, prefix) & LOW32
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    n: cython.Py_ssize_t = s[N_STACKS]
    h: cython.Py_ssize_t
    found: cython.int
    key = (key << 32) | cython.cast(cython.uint, frame)
    h = hashed(key ^ (key >> 29)) & mask
    found = slots[h]
    while found >= 0 and not (stack_prefix[found] == prefix and stack_frame[found] == frame):
        h = (h + 1) & mask
        found = slots[h]
    if found >= 0:
        return found
    if n >= stack_prefix.shape[0]:
        return -1
    stack_prefix[n] = prefix
    stack_frame[n] = frame
    slots[h] = n
    s[N_STACKS] = n + 1
    return n


def enter_stacks(
    stack_prefix: cython.const[cython.int][::1],
    stack_frame: cython.const[cython.int][::1],
    n: cython.Py_ssize_t,
    slots: cython.int[::1],
):
    """Enters the first n stacks into an empty hash table: a power of two, at least twice as many as there is room
    for."""
    room: cython.Py_ssize_t = stack_prefix.shape[0]
    if stack_frame.shape[0] != room or n > room or slots.shape[0] < 2 * room or slots.shape[0] & (slots.shape[0] - 1):
        raise ValueError("enter_stacks: an array has the wrong length")
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    h: cython.Py_ssize_t
    i: cython.Py_ssize_t
    key: cython.ulonglong
    with cython.nogil:
        for i in range(n):
            key = cython.cast(cython.uint, stack_prefix[i]) & LOW32
            key = (key << 32) | cython.cast(cython.uint, stack_frame[i])
            h = hashed(key ^ (key >> 29)) & mask
            while slots[h] >= 0:
                h = (h + 1) & mask
            slots[h] = i


# ---------------------------------------------------------------- allocations, throws and others


def sites(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    open_ids: cython.int[::1],
    open_frames: cython.int[::1],
    open_stacks: cython.int[::1],
    n_open: cython.int[::1],
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    out: cython.ulonglong[::1],
    out_stack: cython.int[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """Where things happened in the buffers of one thread: a row for each allocation, throw, clause, monitor and handle
    event: in `out` its offset, first byte, time, class (of an allocation), object and size; in `out_stack` the stack,
    which is the event's own backtrace, or else the calls that are open then; -1 where neither is known.

    A piece at a time, as `calls`; n_open as there. Also returns STACKS_FULL and, for items, ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out_stack.shape[0]
    deepest: cython.Py_ssize_t = open_ids.shape[0]
    depth: cython.Py_ssize_t = s[DEPTH] if s.shape[0] >= N_STATE else -1
    if (
        depth < 0
        or depth > deepest
        or open_frames.shape[0] != deepest
        or open_stacks.shape[0] != deepest
        or n_open.shape[0] < frames.shape[0]
        or out.shape[0] < 6 * room
        or stack_frame.shape[0] != stack_prefix.shape[0]
        or s[N_STACKS] > stack_prefix.shape[0]
        or slots.shape[0] < 2 * stack_prefix.shape[0]
        or slots.shape[0] & (slots.shape[0] - 1)
        or slots.shape[0] == 0
        or not are_inside(buffers, n_buffers, d.shape[0])
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("sites: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    i: cython.Py_ssize_t
    kind: cython.uint
    ts: cython.ulonglong
    number: cython.int
    stack: cython.int
    low: cython.uint
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            ts = s[TS]
            kind = s[KIND]
            low = kind & 15
            if kind == 0x23:
                number = id_of(keys, ids, s[A])
                if number < 0:
                    s[ASKED] = s[A]
                    result = ASKS_METHOD
                elif depth == deepest:
                    result = DEPTH_FULL
                else:
                    open_ids[depth] = number
                    open_frames[depth] = frame_at(frames, defined_at, defined_ts, defined, number, ts)
                    open_stacks[depth] = -1
                    n_open[number] += 1
                    depth += 1
            elif kind == 0x13 or kind == 0x33:
                number = id_of(keys, ids, s[A])
                if number >= 0 and n_open[number] > 0:
                    q = -1
                    while depth > 0 and q != number:
                        depth -= 1
                        q = open_ids[depth]
                        n_open[q] -= 1
            elif low == 0 or (kind & 0x7F) == 0x04 or kind == 0x14 or low == 5 or (low == 1 and 0x41 <= kind <= 0x71):
                if n == room:
                    result = ROWS_FULL
                    again(s)
                    break
                stack = -1
                if s[N_ITEMS] > 0:
                    for i in range(s[N_ITEMS]):
                        number = id_of(keys, ids, items[i])
                        if number < 0:
                            s[ASKED] = items[i]
                            result = ASKS_METHOD
                            break
                        number = frame_at(frames, defined_at, defined_ts, defined, number, ts)
                        stack = stack_of(stack, number, stack_prefix, stack_frame, slots, s)
                        if stack < 0:
                            result = STACKS_FULL
                            break
                else:
                    q = depth
                    while q > 0 and open_stacks[q - 1] < 0:
                        q -= 1
                    stack = open_stacks[q - 1] if q > 0 else -1
                    while q < depth:
                        stack = stack_of(stack, open_frames[q], stack_prefix, stack_frame, slots, s)
                        if stack < 0:
                            result = STACKS_FULL
                            break
                        open_stacks[q] = stack
                        q += 1
                if result == DONE:
                    out[6 * n] = s[EVENT_AT]
                    out[6 * n + 1] = kind
                    out[6 * n + 2] = ts
                    out[6 * n + 3] = s[A]
                    out[6 * n + 4] = s[B]
                    out[6 * n + 5] = s[C]
                    out_stack[n] = stack
                    n += 1
            if result != DONE:
                again(s)
    s[BUFFER] = row
    s[DEPTH] = depth
    s[N_ROWS] = n
    return result


# ---------------------------------------------------------------- samples


def hits(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    out: cython.ulonglong[::1],
    out_stack: cython.int[::1],
    pool: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The samples in the buffers: a row of time, thread, place and number of its addresses in `pool`, the leaf first;
    and in `out_stack` the stack of its managed frames, -1 where it has none. The first s[N_ROWS] rows and s[N_POOL]
    addresses of pool are set.

    Returns DONE, ROWS_FULL, POOL_FULL, STACKS_FULL, ASKS_METHOD or ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out_stack.shape[0]
    if (
        s.shape[0] < N_STATE
        or out.shape[0] < 4 * room
        or stack_frame.shape[0] != stack_prefix.shape[0]
        or s[N_STACKS] > stack_prefix.shape[0]
        or s[N_POOL] > pool.shape[0]
        or slots.shape[0] < 2 * stack_prefix.shape[0]
        or slots.shape[0] & (slots.shape[0] - 1)
        or slots.shape[0] == 0
        or not are_inside(buffers, n_buffers, d.shape[0])
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("hits: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = s[N_ROWS]
    i: cython.Py_ssize_t
    n_addresses: cython.Py_ssize_t
    number: cython.int
    stack: cython.int
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            if s[KIND] != 0x07:
                continue
            n_addresses = s[C]
            if n >= room:
                result = ROWS_FULL
            elif cython.cast(cython.Py_ssize_t, s[N_POOL]) + n_addresses > pool.shape[0]:
                result = POOL_FULL
            stack = -1
            i = s[N_ITEMS]
            while result == DONE and i > n_addresses:
                i -= 1
                number = id_of(keys, ids, items[i])
                if number < 0:
                    s[ASKED] = items[i]
                    result = ASKS_METHOD
                    break
                number = frame_at(frames, defined_at, defined_ts, defined, number, s[EVENT_TS])
                stack = stack_of(stack, number, stack_prefix, stack_frame, slots, s)
                if stack < 0:
                    result = STACKS_FULL
            if result != DONE:
                again(s)
                break
            out[4 * n] = s[EVENT_TS]
            out[4 * n + 1] = s[B]
            out[4 * n + 2] = s[N_POOL]
            out[4 * n + 3] = n_addresses
            for i in range(n_addresses):
                pool[s[N_POOL] + i] = items[i]
            s[N_POOL] += n_addresses
            out_stack[n] = stack
            n += 1
    s[BUFFER] = row
    s[N_ROWS] = n
    return result


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    enter_stacks = plain_integers(enter_stacks)
    sites = plain_integers(sites)
    hits = plain_integers(hits)
