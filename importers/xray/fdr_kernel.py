# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes the records of one FDR buffer into columns. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.kernels.bytes import u16, u32, u64

# Indices into `state`, which carries the position from call to call.
POS = cython.declare(cython.int, 0)
END = cython.declare(cython.int, 1)
TICK = cython.declare(cython.int, 2)
N_ROWS = cython.declare(cython.int, 3)
N_AUX = cython.declare(cython.int, 4)
STATUS = cython.declare(cython.int, 5)
N_IDS = cython.declare(cython.int, 6)
MIN_TICK = cython.declare(cython.int, 7)
MAX_TICK = cython.declare(cython.int, 8)

# Values of state[STATUS].
WHOLE = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
UNKNOWN_KIND = cython.declare(cython.int, 2)
BAD_SIZE = cython.declare(cython.int, 3)
ROWS_FULL = cython.declare(cython.int, 4)
AUX_FULL = cython.declare(cython.int, 5)
IDS_FULL = cython.declare(cython.int, 6)
END_OF_BUFFER = cython.declare(cython.int, 7)


def decode(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    version: cython.int,
    state: cython.longlong[::1],
    id_keys: cython.uint[::1],
    id_values: cython.int[::1],
    kind_values: cython.const[cython.uchar][::1],
    ticks: cython.longlong[::1],
    value: cython.int[::1],
    kind: cython.uchar[::1],
    aux_kind: cython.uchar[::1],
    aux_row: cython.longlong[::1],
    aux_ticks: cython.longlong[::1],
    aux_value: cython.ulonglong[::1],
):
    """Reads records from state[POS] to state[END], appending at state[N_ROWS] and state[N_AUX].

    A function record is one row: ticks, value (what id_values holds for its id), kind (what kind_values, 4 long, holds
    for its kind). A metadata record that is not
    about time is one aux row: kind; row, the number of function rows before it; ticks; value: the argument, the CPU,
    the tid, the pid, or the offset of an event or wall time in d.

    id_keys, id_values: open addressing, a power of two long, key 0xffffffff is free; a new id gets state[N_IDS].
    Stops with a STATUS; ROWS_FULL, AUX_FULL and IDS_FULL (half full) ask for longer arrays and another call. CUT: the
    rest is shorter than its record (an event whose payload is cut is still an aux row).
    """
    n_cap: cython.Py_ssize_t = ticks.shape[0]
    a_cap: cython.Py_ssize_t = aux_kind.shape[0]
    n_slots: cython.Py_ssize_t = id_keys.shape[0]
    if (
        value.shape[0] < n_cap
        or kind.shape[0] < n_cap
        or aux_row.shape[0] < a_cap
        or aux_ticks.shape[0] < a_cap
        or aux_value.shape[0] < a_cap
        or id_values.shape[0] != n_slots
        or kind_values.shape[0] < 4
        or n_slots < 2
        or n_slots & (n_slots - 1)
        or state.shape[0] < 9
    ):
        raise ValueError("decode: an array has the wrong length")
    p: cython.Py_ssize_t = int(state[POS])
    end: cython.Py_ssize_t = int(state[END])
    n: cython.Py_ssize_t = int(state[N_ROWS])
    m: cython.Py_ssize_t = int(state[N_AUX])
    n_ids: cython.int = int(state[N_IDS])
    tick: cython.ulonglong = int(state[TICK])
    low: cython.ulonglong = int(state[MIN_TICK])
    high: cython.ulonglong = int(state[MAX_TICK])
    if p < 0 or end > d.shape[0] or n < 0 or m < 0:
        raise ValueError("decode: the state is outside the data")
    # No counter gets to bit 62. Without the bits above, ticks fit int64 and do not wrap, whatever the bytes are.
    mask62: cython.ulonglong = 0x3FFFFFFFFFFFFFFF
    hash_mask: cython.uint = n_slots - 1
    half: cython.int = n_slots // 2
    golden: cython.uint = 2654435769
    shift: cython.uint = 32
    while (1 << (32 - shift)) < n_slots:
        shift -= 1
    free: cython.uint = 0xFFFFFFFF
    two32: cython.ulonglong = 0x100000000
    near: cython.ulonglong = 0x10000000000
    status: cython.int = 0
    # Between two absolute time stamps ticks do not fall: the first and the last row of a run are its bounds.
    run: cython.Py_ssize_t = n
    with cython.nogil:
        while p < end:
            if (d[p] & 0x80) if big else (d[p] & 1):
                if p + 16 > end:
                    status = CUT
                    break
                k: cython.uint = d[p] & 0x7F if big else d[p] >> 1
                if k == 2 or k == 3:
                    if n > run:
                        if ticks[run] < low:
                            low = ticks[run]
                        if ticks[n - 1] > high:
                            high = ticks[n - 1]
                    run = n
                if k == 3:
                    tick = u64(d, p + 1, big) & mask62
                    p += 16
                    continue
                if k == 1:
                    status = END_OF_BUFFER
                    break
                if k > 9 or k == 7:
                    status = UNKNOWN_KIND
                    break
                if m >= a_cap:
                    status = AUX_FULL
                    break
                q: cython.Py_ssize_t = p + 16
                stamp: cython.ulonglong = tick
                if k == 0 or k == 9:
                    aux_value[m] = u32(d, p + 1, big)
                elif k == 2:
                    tick = u64(d, p + 3, big) & mask62
                    stamp = tick
                    aux_value[m] = u16(d, p + 1, big)
                elif k == 4:
                    aux_value[m] = p
                elif k == 6:
                    aux_value[m] = u64(d, p + 1, big)
                else:
                    w: cython.uint = u32(d, p + 1, big)
                    if w > 0x7FFFFFFF:
                        status = BAD_SIZE
                        break
                    size: cython.int = w
                    if version >= 5:
                        delta: cython.ulonglong = u32(d, p + 5, big)
                        if delta > 0x7FFFFFFF:
                            # Back in time: no writer does it, but the bytes may.
                            delta = tick if tick < two32 - delta else two32 - delta
                            if n > run:
                                if ticks[run] < low:
                                    low = ticks[run]
                                if ticks[n - 1] > high:
                                    high = ticks[n - 1]
                            run = n
                            tick -= delta
                        else:
                            tick += delta
                        stamp = tick
                    else:
                        # Its own time counts for the bounds where it is near: some writers never store it.
                        stamp = u64(d, p + 5, big) & mask62
                        if stamp > high and stamp > tick and stamp - tick < near:
                            high = stamp
                    aux_value[m] = p
                    q = p + 16 + size
                    if tick < low:
                        low = tick
                    if tick > high:
                        high = tick
                aux_kind[m] = k
                aux_row[m] = n
                aux_ticks[m] = stamp
                m += 1
                if q > end:
                    p = end
                    status = CUT
                    break
                p = q
                continue
            if p + 8 > end:
                status = CUT
                break
            if n >= n_cap:
                status = ROWS_FULL
                break
            w = u32(d, p, big)
            if big:
                k = w >> 28
                f: cython.uint = w & 0x0FFFFFFF
            else:
                k = w >> 1 & 7
                f = w >> 4
            if k > 3:
                status = UNKNOWN_KIND
                break
            h: cython.uint = (f * golden & free) >> shift
            while id_keys[h] != f and id_keys[h] != free:
                h = (h + 1) & hash_mask
            if id_keys[h] == free:
                if n_ids >= half:
                    status = IDS_FULL
                    break
                id_keys[h] = f
                id_values[h] = n_ids
                n_ids += 1
            tick += u32(d, p + 4, big)
            ticks[n] = tick
            value[n] = id_values[h]
            kind[n] = kind_values[k]
            n += 1
            p += 8
        if n > run:
            if ticks[run] < low:
                low = ticks[run]
            if ticks[n - 1] > high:
                high = ticks[n - 1]
    state[POS] = p
    state[N_ROWS] = n
    state[N_AUX] = m
    state[N_IDS] = n_ids
    state[TICK] = tick
    state[MIN_TICK] = low
    state[MAX_TICK] = high
    state[STATUS] = status


# The same numbers, for the Python side.
STATE_SLOTS = {"pos": POS, "end": END, "tick": TICK, "n_rows": N_ROWS, "n_aux": N_AUX, "status": STATUS,
               "n_ids": N_IDS, "min_tick": MIN_TICK, "max_tick": MAX_TICK}  # fmt: skip
STATUS_CODES = {"whole": WHOLE, "cut": CUT, "unknown_kind": UNKNOWN_KIND, "bad_size": BAD_SIZE,
                "rows_full": ROWS_FULL, "aux_full": AUX_FULL, "ids_full": IDS_FULL,
                "end_of_buffer": END_OF_BUFFER}  # fmt: skip


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    decode = plain_integers(decode)
