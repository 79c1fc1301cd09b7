# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Goes through the buffers of Mono log profiler recordings. Cython's pure-Python mode: also runs interpreted.

A kernel keeps its place in `s`, an array of N_STATE unsigned numbers, from call to call. It returns why it stopped;
called again, with a longer array where one was full, it goes on where it was.
"""

import cython

from traceferry.calls.running_inlined import RunningSums, entered, left
from traceferry.importers.mono.cursor_inlined import (
    DEPTH,
    DONE,
    ENTER,
    EXC_LEAVE,
    IRREGULAR,
    LATEST_TS,
    LEAVE,
    MAX_TS,
    N_IGNORED,
    N_POOL,
    N_ROWS,
    NAMES,
    POOL,
    ROWS,
    Cursor,
    decode_packed,
)
from traceferry.kernels.functions import c_function
from traceferry.kernels.integers import wrapped
from traceferry.kernels.names import NameTable
from traceferry.kernels.words import load8

# Columns of `stats`, a row for each buffer; further ones count events.
FIRST_TS = cython.declare(cython.int, 0)
LAST_TS = cython.declare(cython.int, 1)
EVENTS = cython.declare(cython.int, 2)
BAD = cython.declare(cython.int, 3)
BAD_AT = cython.declare(cython.int, 4)
STATS_WIDTH = cython.declare(cython.int, 13)
# Columns of `records`: offset, time, first byte | declaration << 8 | buffer << 32, where its values are in the pool.
RECORD_WIDTH = cython.declare(cython.int, 4)
WIDTHS = {"stats": 13, "record": 4}

# Flags of a call.
LEAVES = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)

# Methods whose frames are kept at hand, by the low bits of their pointers.
N_KNOWN = cython.declare(cython.Py_ssize_t, 256)


def read(
    log: tuple,
    columns: cython.const[cython.int][::1],
    stats: cython.ulonglong[::1],
    records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1],
    sums: tuple,
):
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
    of: cython.Py_ssize_t
    column: cython.int
    w: cython.ulonglong
    n_calls: cython.longlong
    n_enter: cython.longlong
    n_exc: cython.longlong
    with cython.nogil:
        while c.begin():
            of = (c.row - 1) * STATS_WIDTH
            calls_of.go_to_buffer(c.row - 1)
            c.n_room = pool.shape[0] if columns[c.data[c.at]] == 0 else 0  # values of other events are only counted
            if not c.next(n_pool):
                if has_stats:
                    stats[of + BAD] = c.damage
                    stats[of + BAD_AT] = c.event_at
                c.at = c.end
                continue
            c.lists.remember(c.data, 0, c.method)
            column = columns[c.kind]
            if column == 0:
                if n == room or c.n_items > c.n_room:
                    result = ROWS if n == room else POOL
                    c.rewind()
                    break
                records[RECORD_WIDTH * n] = c.event_at
                records[RECORD_WIDTH * n + 1] = c.event_ts
                w = c.row - 1
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
                    if c.event_ts < stats[of + FIRST_TS]:
                        stats[of + FIRST_TS] = c.event_ts
                    if c.event_ts > stats[of + LAST_TS]:
                        stats[of + LAST_TS] = c.event_ts
            if skips_calls and c.kind & 0xCF == 3 and c.kind != 3:
                n_calls, n_enter, n_exc = short_calls(c, calls_of)
                if has_stats and n_calls > 0:
                    if c.ts > stats[of + LAST_TS]:
                        stats[of + LAST_TS] = c.ts
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
    w: cython.ulonglong
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
        w = load8(d, p)
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
    log: tuple,
    names: tuple,
    shift_ns: cython.longlong,
    open_key: cython.int[::1],
    open_frame: cython.int[::1],
    now: cython.longlong,
    out_ts: cython.longlong[::1],
    out_key: cython.int[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
):
    """The calls of the buffers of one thread, a piece at a time: from row 0 on, s[N_ROWS] of them: time (at most
    s[MAX_TS], moved by shift_ns), frame, flags.

    open_key, open_frame: the s[DEPTH] open calls and room for one for each row; now: when the latest one began or
    ended. As long as time does not fall and each leave is of the innermost open call, as almost everywhere, rows are
    balanced; what is not so stops the kernel: IRREGULAR. Without open_key rows are as recorded, for a `Balancer`: with
    out_key, the method's number, and a frame for enters only.

    Methods that are entered and not known get numbers, and want a frame: NAMES. s[N_IGNORED] counts leaves of methods
    that are not known: nothing has entered them. The buffers are whole. Returns DONE, ROWS, NAMES or IRREGULAR.
    """
    s: cython.ulonglong[::1] = log[4]
    c: Cursor = Cursor(log, s[:0])
    d: cython.const[cython.uchar][::1] = c.data
    table: NameTable = NameTable(names)
    pointers: cython.ulonglong[::1] = table.pointers
    frames: cython.int[::1] = table.frames
    room: cython.Py_ssize_t = out_ts.shape[0]
    balanced: cython.bint = open_key.shape[0] > 0
    depth: cython.Py_ssize_t = s[DEPTH] if balanced else 0
    if (
        out_frame.shape[0] != room
        or out_flags.shape[0] != room
        or (open_key.shape[0] < depth + room if balanced else out_key.shape[0] != room)
        or open_frame.shape[0] != open_key.shape[0]
    ):
        raise ValueError("calls: an array has the wrong length")
    # The latest methods that have one definition, and so one frame.
    known = cython.declare(cython.int[256])
    h: cython.Py_ssize_t
    for h in range(N_KNOWN):
        known[h] = -1
    result: cython.int = DONE
    n: cython.Py_ssize_t = 0
    number: cython.int
    frame: cython.int
    max_ts: cython.ulonglong = s[MAX_TS]
    p: cython.longlong = c.at
    end: cython.longlong = c.end
    after: cython.longlong
    ts: cython.ulonglong = c.ts
    method: cython.ulonglong = c.method
    new_ts: cython.ulonglong
    new_method: cython.ulonglong
    t: cython.longlong
    w: cython.ulonglong
    kind: cython.uint
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    with cython.nogil:
        while True:
            length = 0
            if p + 8 <= end:
                w = load8(d, p)
                kind = w & 0xFF
                if kind & 0xCF == 3 and kind != 3:
                    delta, difference, length = decode_packed(w)
            if length != 0:
                after = p + length
                new_ts = wrapped(ts + delta)
                new_method = (method + difference) & c.mask
            else:
                c.at = p
                c.ts = ts
                c.method = method
                if p >= end:
                    if not c.begin():
                        break
                    p = c.at
                    end = c.end
                    ts = c.ts
                    method = c.method
                    continue
                if not c.next(0):
                    p = end
                    continue
                kind = c.kind
                after = c.at
                new_ts = c.ts
                new_method = c.method
                if kind & 0xCF != 3 or kind == 3:
                    p = after
                    ts = new_ts
                    method = new_method
                    continue
            if n == room:
                result = ROWS
                break
            t = cython.cast(cython.longlong, new_ts if new_ts < max_ts else max_ts) + shift_ns
            if t < now and balanced:
                result = IRREGULAR
                break
            if kind == ENTER:
                h = (new_method >> 3) & (N_KNOWN - 1)
                number = known[h]
                if number >= 0 and pointers[number] == new_method:
                    frame = frames[number]
                else:
                    number = table.add(new_method)
                    frame = table.frame_at(number, new_ts)
                    if frame < 0:
                        result = NAMES
                        break
                    if table.last[number] == number:
                        known[h] = number
                if balanced:
                    open_key[depth] = number
                    open_frame[depth] = frame
                    depth += 1
                else:
                    out_key[n] = number
                out_frame[n] = frame
                out_flags[n] = 0
                out_ts[n] = t
                now = t
                n += 1
            elif depth > 0 and pointers[open_key[depth - 1]] == new_method:
                depth -= 1
                out_frame[n] = open_frame[depth]
                out_flags[n] = LEAVES if kind == LEAVE else LEAVES | UNWOUND
                out_ts[n] = t
                now = t
                n += 1
            else:
                number = table.find(new_method)
                if number < 0:
                    s[N_IGNORED] += 1
                elif balanced:
                    result = IRREGULAR
                    break
                else:
                    out_key[n] = number
                    out_flags[n] = LEAVES if kind == LEAVE else LEAVES | UNWOUND
                    out_ts[n] = t
                    n += 1
            p = after
            ts = new_ts
            method = new_method
    c.at = p
    c.ts = ts
    c.method = method
    c.save()
    s[N_ROWS] = n
    if balanced:
        s[DEPTH] = depth
    return result


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    read = plain_integers(read)
    calls = plain_integers(calls)
