# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Goes through the buffers of Mono log profiler recordings. Cython's pure-Python mode: also runs interpreted.

A kernel keeps its place in `s`, an array of N_STATE unsigned numbers, from call to call. It returns why it stopped;
called again, with a longer array where one was full, it goes on where it was.
"""

import cython

from traceferry.importers.mono.cursor_inlined import (
    DONE,
    ENTER,
    EXC_LEAVE,
    LEAVE,
    MAX_TS,
    N_IGNORED,
    N_POOL,
    N_ROWS,
    NAMES,
    POOL,
    ROWS,
    Cursor,
)
from traceferry.importers.mono.names_inlined import NameTable, slot_of
from traceferry.importers.mono.packed_inlined import decode_packed, load8
from traceferry.importers.mono.sums_inlined import (
    DEPTH_OF,
    IN_CALLEES,
    NOW,
    OPEN_WIDTH,
    THREAD_WIDTH,
    CallSums,
    ended,
    short_calls,
)
from traceferry.kernels.integers import wrapped

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
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    steps: cython.const[cython.int][::1],
    starts: cython.const[cython.int][::1],
    columns: cython.const[cython.int][::1],
    stats: cython.ulonglong[::1],
    records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1],
    sums: tuple,
    s: cython.ulonglong[::1],
):
    """Keeps events as rows of `records`, with their values in `pool`, counts others in `stats`, and adds up calls.

    columns: for each first byte the column of stats that counts it; 0: it is kept; -1: it is left out. stats: a row of
    STATS_WIDTH for each buffer, in which FIRST_TS begins with the largest number; or none. sums: see
    `CallSums`. An event that is damaged ends its buffer. The first s[N_ROWS] rows and s[N_POOL] values are set.
    Returns DONE, ROWS or POOL.
    """
    c: Cursor = Cursor(d, buffers, steps, starts, pool, s)
    calls_of: CallSums = CallSums(sums)
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
            calls_of.go_to(c.row - 1)
            c.n_room = pool.shape[0] if columns[d[c.at]] == 0 else 0  # values of other events are only counted
            if not c.next(n_pool):
                if has_stats:
                    stats[of + BAD] = c.damage
                    stats[of + BAD_AT] = c.event_at
                c.at = c.end
                continue
            c.remember(0)
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
                n_calls, n_enter, n_exc = short_calls(d, c, calls_of)
                if has_stats and n_calls > 0:
                    if c.ts > stats[of + LAST_TS]:
                        stats[of + LAST_TS] = c.ts
                    stats[of + EVENTS] += n_calls
                    stats[of + columns[ENTER]] += n_enter
                    stats[of + columns[LEAVE]] += n_calls - n_enter - n_exc
                    stats[of + columns[EXC_LEAVE]] += n_exc
        calls_of.go_to(-1)
    c.save(s)
    s[N_ROWS] = n
    s[N_POOL] = n_pool
    return result


def end_calls(
    thread: cython.longlong,
    end_ts: cython.longlong,
    sums: tuple,
) -> None:
    """Ends the open calls of a thread that is not left out: see `CallSums`."""
    c: CallSums = CallSums(sums)
    at: cython.Py_ssize_t = THREAD_WIDTH * thread
    if thread < 0 or at >= c.threads.shape[0]:
        raise ValueError("end_calls: a thread without a row")
    top: cython.Py_ssize_t = thread * c.room + c.threads[at + DEPTH_OF] * OPEN_WIDTH
    now: cython.longlong = max(end_ts, c.threads[at + NOW])
    in_callees: cython.longlong = c.threads[at + IN_CALLEES]
    while top > thread * c.room:
        top, in_callees = ended(c, top, now, in_callees)
    c.threads[at + DEPTH_OF] = 0
    c.counts[1] = c.n_spans


# ---------------------------------------------------------------- calls


def calls(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    steps: cython.const[cython.int][::1],
    starts: cython.const[cython.int][::1],
    names: tuple,
    shift_ns: cython.longlong,
    out_ts: cython.longlong[::1],
    out_key: cython.int[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    s: cython.ulonglong[::1],
):
    """The calls of the buffers of one thread as recorded, for a `Balancer`, a piece at a time: from row 0 on, s[N_ROWS]
    of them: time (at most s[MAX_TS], moved by shift_ns), the method's number, the frame of enters, flags.

    Methods that are entered and not known get numbers, for which names have room, and want a frame: NAMES. s[N_IGNORED]
    counts leaves of methods that are not known: nothing has entered them. The buffers are whole. Returns DONE, ROWS or
    NAMES.
    """
    c: Cursor = Cursor(d, buffers, steps, starts, s[:0], s)
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
    number: cython.int
    frame: cython.int
    max_ts: cython.ulonglong = s[MAX_TS]
    p: cython.longlong = c.at
    end: cython.longlong = c.end
    ts: cython.ulonglong = c.ts
    method: cython.ulonglong = c.method
    w: cython.ulonglong
    kind: cython.uint
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    with cython.nogil:
        while n < room and result == ROWS:
            length = 0
            if p + 8 <= end:
                w = load8(d, p)
                kind = w & 0xFF
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
            number = known_number[h]
            frame = known_frame[h]
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
    c.save(s)
    s[N_ROWS] = n
    return result


# ---------------------------------------------------------------- names


def enter_names(names: tuple) -> None:
    """Enters the pointers of a table without used slots, each with its first definition."""
    table: NameTable = NameTable(names)
    h: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(table.n_names[0]):
            h = slot_of(table.keys, table.ids, table.pointers[i])
            if table.ids[h] < 0:
                table.keys[h] = table.pointers[i]
                table.ids[h] = i


def find_names(
    wanted: cython.const[cython.ulonglong][::1],
    ts: cython.const[cython.longlong][::1],
    names: tuple,
    found: cython.int[::1],
) -> cython.Py_ssize_t:
    """The numbers of pointers at times; those that are not known get one. Returns the row of the first for which the
    table is full, or how many they are."""
    table: NameTable = NameTable(names)
    n: cython.Py_ssize_t = wanted.shape[0]
    i: cython.Py_ssize_t
    number: cython.int
    if ts.shape[0] != n or found.shape[0] != n:
        raise ValueError("find_names: an array has the wrong length")
    for i in range(n):
        number = table.add(wanted[i])
        if number < 0:
            return i
        found[i] = table.definition_at(number, ts[i])
    return n


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    read = plain_integers(read)
    end_calls = plain_integers(end_calls)
    calls = plain_integers(calls)
    enter_names = plain_integers(enter_names)
    find_names = plain_integers(find_names)
