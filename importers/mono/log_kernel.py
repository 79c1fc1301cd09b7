# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Goes through the buffers of Mono log profiler recordings. Cython's pure-Python mode: also runs interpreted.

A kernel keeps its place in `s`, an array of N_STATE unsigned numbers, from call to call. It returns why it stopped;
called again, with a longer array where one was full, it goes on where it was.
"""

import cython

from traceferry.calls.running_inlined import RunningSums, entered, left
from traceferry.importers.mono.cursor_inlined import (
    DONE,
    ENTER,
    EXC_LEAVE,
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
    log: tuple,
    names: tuple,
    shift_ns: cython.longlong,
    out_ts: cython.longlong[::1],
    out_key: cython.int[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
):
    """The calls of the buffers of one thread as recorded, for a `Balancer`, a piece at a time: from row 0 on, s[N_ROWS]
    of them: time (at most s[MAX_TS], moved by shift_ns), the method's number, the frame of enters, flags.

    Methods that are entered and not known get numbers, for which names have room, and want a frame: NAMES. s[N_IGNORED]
    counts leaves of methods that are not known: nothing has entered them. The buffers are whole. Returns DONE, ROWS or
    NAMES.
    """
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


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    read = plain_integers(read)
    calls = plain_integers(calls)
