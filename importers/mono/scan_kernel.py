# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Goes through all events of Mono log profiler recordings: counts them, keeps the rare ones, gives them one by one.
Cython's pure-Python mode: also runs interpreted.

The kernels of this folder go through buffers with `step`; where an enter or leave is short enough to lie in eight
bytes, which is nearly always, they decode it at once instead.

A kernel carries its position in `s`, an array of N_STATE unsigned numbers, from call to call. It returns why it
stopped; called again, with more room or the answer to what it asked, it goes on where it was.
"""

import cython

from traceferry.importers.mono.events_inlined import again, are_inside, begin, is_timed, step
from traceferry.importers.mono.fields_inlined import decode_packed, load8
from traceferry.importers.mono.state_inlined import (
    ALL,
    AT,
    B_WIDTH,
    BAD,
    BEGUN,
    BUFFER,
    DONE,
    END,
    EVENT_AT,
    EVENT_TS,
    ITEMS_FULL,
    KIND,
    METHOD,
    N_ITEMS,
    N_POOL,
    N_ROWS,
    N_STATE,
    NO_ROOM,
    POOL_FULL,
    PTR_MASK,
    R_A,
    R_AT,
    R_BUFFER,
    R_ITEMS_AT,
    R_KIND,
    R_N_ITEMS,
    R_TEXT,
    R_TS,
    R_WIDTH,
    ROWS_FULL,
    S_ALLOC,
    S_BAD,
    S_BAD_AT,
    S_ENTER,
    S_EVENTS,
    S_EXC_LEAVE,
    S_FIRST_TS,
    S_HITS,
    S_LAST_TS,
    S_LEAVE,
    S_MOVES,
    S_OBJECTS,
    S_ROOTS,
    S_WIDTH,
    TEXT,
    TS,
    VERSION,
    A,
    wrapped,
)

# ---------------------------------------------------------------- the first pass


def scan(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    stats: cython.ulonglong[::1],
    records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    kinds: cython.longlong[::1],
    s: cython.ulonglong[::1],
):
    """Goes through all buffers: counts events for each buffer in `stats` and by first byte in `kinds` (256), and keeps
    those that are rare as rows of `records`, with their items in `pool`: all but enters, leaves, allocations, moves,
    objects and roots of heap shots, and samples.

    An event that is damaged ends its buffer. Returns why it stopped: ROWS_FULL, POOL_FULL, ITEMS_FULL (s[N_ITEMS] are
    needed) or DONE.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    if (
        s.shape[0] < N_STATE
        or kinds.shape[0] < 256
        or stats.shape[0] < n_buffers * S_WIDTH
        or not are_inside(buffers, n_buffers, d.shape[0])
    ):
        raise ValueError("scan: an array has the wrong length")
    result: cython.int = DONE
    of: cython.Py_ssize_t
    row: cython.Py_ssize_t = s[BUFFER]
    p: cython.Py_ssize_t
    safe: cython.Py_ssize_t
    w: cython.ulonglong
    kind: cython.uint
    ts: cython.ulonglong
    meth: cython.ulonglong
    mask: cython.ulonglong = s[PTR_MASK]
    first: cython.ulonglong
    last: cython.ulonglong
    n: cython.longlong
    n_enter: cython.longlong
    n_exc: cython.longlong
    delta: cython.ulonglong
    difference: cython.ulonglong
    length: cython.Py_ssize_t
    with cython.nogil:
        while row < n_buffers:
            of = row * S_WIDTH
            if s[BEGUN] == 0:
                begin(s, buffers, row)
                stats[of + S_FIRST_TS] = ALL
            while s[AT] < s[END]:
                p = s[AT]
                safe = s[END] - 8
                ts = s[TS]
                meth = s[METHOD]
                first = stats[of + S_FIRST_TS]
                last = stats[of + S_LAST_TS]
                n = 0
                n_enter = 0
                n_exc = 0
                while p <= safe:
                    w = load8(d, p)
                    kind = w & 0xFF
                    if kind & 0xCF != 3 or kind == 3:
                        break
                    delta, difference, length = decode_packed(w)
                    if length == 0:
                        break
                    p += length
                    ts += delta
                    meth += difference
                    if n == 0 and ts < first:
                        first = ts
                    n += 1
                    n_enter += kind == 0x23
                    n_exc += kind == 0x33
                if n > 0 and ts > last:
                    last = ts
                s[AT] = p
                s[TS] = wrapped(ts)
                s[METHOD] = meth & mask
                stats[of + S_FIRST_TS] = first
                stats[of + S_LAST_TS] = last
                stats[of + S_ENTER] += n_enter
                stats[of + S_LEAVE] += n - n_enter - n_exc
                stats[of + S_EXC_LEAVE] += n_exc
                stats[of + S_EVENTS] += n
                kinds[0x23] += n_enter
                kinds[0x13] += n - n_enter - n_exc
                kinds[0x33] += n_exc
                if s[AT] >= s[END]:
                    break
                if not step(d, s, items):
                    if s[BAD] == NO_ROOM:
                        result = ITEMS_FULL
                        break
                    stats[of + S_BAD] = s[BAD]
                    stats[of + S_BAD_AT] = s[EVENT_AT]
                    break
                result = keep(s, stats, of, row, records, pool, items)
                if result != DONE:
                    again(s)
                    break
                kinds[s[KIND]] += 1
            if result != DONE:
                break
            row += 1
            s[BEGUN] = 0
    s[BUFFER] = row
    return result


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def keep(
    s: cython.ulonglong[::1],
    stats: cython.ulonglong[::1],
    of: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    records: cython.ulonglong[::1],
    pool: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
) -> cython.int:
    """Counts the event that was read, and keeps it if it is rare."""
    kind: cython.uint = s[KIND]
    n: cython.Py_ssize_t = s[N_ITEMS]
    at: cython.Py_ssize_t
    i: cython.Py_ssize_t
    bulk: cython.int = 0
    if kind == 0x23:
        bulk = S_ENTER
    elif kind == 0x13:
        bulk = S_LEAVE
    elif kind == 0x33:
        bulk = S_EXC_LEAVE
    elif kind == 0x00 or kind == 0x10:
        bulk = S_ALLOC
    elif kind == 0x31:
        bulk = S_MOVES
    elif kind == 0x26:
        bulk = S_OBJECTS
    elif kind == 0x36:
        bulk = S_ROOTS
    elif kind == 0x07:
        bulk = S_HITS
    if bulk:
        stats[of + bulk] += 1
    else:
        at = s[N_ROWS] * R_WIDTH
        if at + R_WIDTH > records.shape[0]:
            return ROWS_FULL
        if cython.cast(cython.Py_ssize_t, s[N_POOL]) + n > pool.shape[0]:
            return POOL_FULL
        records[at + R_KIND] = kind
        records[at + R_BUFFER] = row
        records[at + R_AT] = s[EVENT_AT]
        records[at + R_TS] = s[EVENT_TS]
        for i in range(4):
            records[at + R_A + i] = s[A + i]
        records[at + R_TEXT] = s[TEXT]
        records[at + R_ITEMS_AT] = s[N_POOL]
        records[at + R_N_ITEMS] = n
        for i in range(n):
            pool[s[N_POOL] + i] = items[i]
        s[N_POOL] += n
        s[N_ROWS] += 1
    stats[of + S_EVENTS] += 1
    # A heap shot's objects and the like have no time of their own before version 13.
    if is_timed(kind, s[VERSION]) or kind == 0x07:
        if s[EVENT_TS] < stats[of + S_FIRST_TS]:
            stats[of + S_FIRST_TS] = s[EVENT_TS]
        if s[EVENT_TS] > stats[of + S_LAST_TS]:
            stats[of + S_LAST_TS] = s[EVENT_TS]
    return DONE


# ---------------------------------------------------------------- one by one


def events(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    out: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The next event of the buffers, for those who print them: `out` (8) gets its offset, first byte, time, A to D
    and the place of its text, s[N_ITEMS] items are in `items`. Returns DONE where there is none left, ROWS_FULL for an
    event, ITEMS_FULL, or POOL_FULL for one that is damaged, which ends its buffer: s[BAD] says how."""
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    if s.shape[0] < N_STATE or out.shape[0] < 8 or not are_inside(buffers, n_buffers, d.shape[0]):
        raise ValueError("events: an array has the wrong length")
    i: cython.int
    while s[BEGUN] == 0 or s[AT] >= s[END]:
        if s[BEGUN] != 0:
            s[BUFFER] += 1
            s[BEGUN] = 0
        if s[BUFFER] >= n_buffers:
            return DONE
        begin(s, buffers, s[BUFFER])
    if step(d, s, items):
        out[0] = s[EVENT_AT]
        out[1] = s[KIND]
        out[2] = s[EVENT_TS]
        for i in range(4):
            out[3 + i] = s[A + i]
        out[7] = s[TEXT]
        return ROWS_FULL
    if s[BAD] == NO_ROOM:
        return ITEMS_FULL
    s[AT] = s[END]
    return POOL_FULL


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    scan = plain_integers(scan)
    events = plain_integers(events)
