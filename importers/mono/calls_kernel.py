# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes enters and leaves. Cython's pure-Python mode: also runs interpreted. See `scan_kernel`."""

import cython

from traceferry.importers.mono.events_inlined import are_inside, begin, step
from traceferry.importers.mono.fields_inlined import decode_packed, load8
from traceferry.importers.mono.names_inlined import frame_at, id_of, is_checked
from traceferry.importers.mono.state_inlined import (
    ASKED,
    ASKS_METHOD,
    AT,
    B_WIDTH,
    BAD,
    BEGUN,
    BUFFER,
    DONE,
    END,
    ITEMS_FULL,
    KIND,
    MAX_TS,
    METHOD,
    N_IGNORED,
    N_ROWS,
    N_STATE,
    NO_ROOM,
    PTR_MASK,
    ROWS_FULL,
    TS,
    wrapped,
)

LEAVES = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)


def calls(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    shift_ns: cython.longlong,
    out_ts: cython.longlong[::1],
    out_key: cython.int[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The enters and leaves of the buffers of one thread, as recorded, a piece at a time: from row 0 on, s[N_ROWS] of
    them: time (at most s[MAX_TS], moved by shift_ns), the method's number, its frame at that time (of enters), flags.

    s[N_IGNORED] counts leaves of methods that are not in the table: nothing has entered them. The buffers are whole.
    Returns DONE, ROWS_FULL, ASKS_METHOD (s[ASKED] is entered and not in the table) or ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out_ts.shape[0]
    if (
        s.shape[0] < N_STATE
        or out_key.shape[0] != room
        or out_frame.shape[0] != room
        or out_flags.shape[0] != room
        or not are_inside(buffers, n_buffers, d.shape[0])
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("calls: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    p: cython.Py_ssize_t = s[AT]
    end: cython.Py_ssize_t = s[END]
    after: cython.Py_ssize_t
    length: cython.Py_ssize_t
    n: cython.Py_ssize_t = 0
    w: cython.ulonglong
    delta: cython.ulonglong
    difference: cython.ulonglong
    kind: cython.uint
    ts: cython.ulonglong = s[TS]
    meth: cython.ulonglong = s[METHOD]
    new_ts: cython.ulonglong
    new_meth: cython.ulonglong
    mask: cython.ulonglong = s[PTR_MASK]
    max_ts: cython.ulonglong = s[MAX_TS]
    number: cython.int = -1
    known: cython.ulonglong = 0
    begun: cython.bint = s[BEGUN] != 0
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
                new_meth = (meth + difference) & mask
            elif p >= end:
                if begun:
                    row += 1
                    begun = False
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                begun = True
                p = s[AT]
                end = s[END]
                ts = s[TS]
                meth = s[METHOD]
                continue
            else:
                s[AT] = p
                s[TS] = ts
                s[METHOD] = meth
                if not step(d, s, items):
                    if s[BAD] == NO_ROOM:
                        result = ITEMS_FULL
                        break
                    p = end
                    continue
                kind = s[KIND]
                after = s[AT]
                new_ts = s[TS]
                new_meth = s[METHOD]
                if kind & 0xCF != 3 or kind == 3:
                    p = after
                    ts = new_ts
                    meth = new_meth
                    continue
            if n == room:
                result = ROWS_FULL
                break
            if number < 0 or known != new_meth:
                number = id_of(keys, ids, new_meth)
                known = new_meth
            if number >= 0:
                out_ts[n] = cython.cast(cython.longlong, new_ts if new_ts < max_ts else max_ts) + shift_ns
                out_key[n] = number
                if kind == 0x23:
                    out_frame[n] = frame_at(frames, defined_at, defined_ts, defined, number, new_ts)
                    out_flags[n] = 0
                else:
                    out_flags[n] = LEAVES if kind == 0x13 else LEAVES | UNWOUND
                n += 1
            elif kind == 0x23:
                s[ASKED] = new_meth
                result = ASKS_METHOD
                break
            else:
                s[N_IGNORED] += 1
            p = after
            ts = new_ts
            meth = new_meth
    s[BEGUN] = begun
    s[BUFFER] = row
    s[AT] = p
    s[END] = end
    s[TS] = ts
    s[METHOD] = meth
    s[N_ROWS] = n
    return result


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    calls = plain_integers(calls)
