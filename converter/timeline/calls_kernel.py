# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Kernels over balanced calls of one thread. Cython's pure-Python mode: also runs interpreted.

Every function states what its arrays must hold; the callers in `traceferry.timeline.balance` allocate them so.
"""

import cython

from traceferry.kernels.calls import LEAVE, OPEN_AT_END, OPEN_AT_START
from traceferry.kernels.functions import c_function
from traceferry.kernels.saturating import minus, plus
from traceferry.timeline.running_inlined import THREAD_WIDTH, RunningSums

# Indices into the `state` of the kernels over balanced streams.
OPEN = cython.declare(cython.int, 0)
CALLEES = cython.declare(cython.int, 1)
KEPT = cython.declare(cython.int, 1)
WRITTEN = cython.declare(cython.int, 2)
READ = cython.declare(cython.int, 3)

# Places among the four `sums` of a function.
CALLS = cython.declare(cython.int, 0)
TOTAL_NS = cython.declare(cython.int, 1)
SELF_NS = cython.declare(cython.int, 2)
ACTIVE = cython.declare(cython.int, 3)


def totals(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    func_of_frame: cython.const[cython.int][::1],
    entered: cython.longlong[::1],
    in_callees: cython.longlong[::1],
    sums: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Adds up a piece of a balanced stream for each function: enters, time in outermost activations, time on top. Sums
    of times end at 2^63 - 1.

    sums: four values for each function: enters, total ns, self ns, how often it is open now. entered and in_callees:
    for each open call, when it was entered, and the ns that its caller had spent in callees until then.
    Lengths: the depth and one for each row. state: 2, zeros at a stream's start: the depth, and the ns that the
    innermost open call has spent in callees. Every frame must be an index of func_of_frame, every function of sums.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < 2:
        raise ValueError("totals: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[OPEN])
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or sp < 0
        or entered.shape[0] < sp + n
        or in_callees.shape[0] < sp + n
    ):
        raise ValueError("totals: an array has the wrong length")
    n_frames: cython.Py_ssize_t = func_of_frame.shape[0]
    n_funcs: cython.Py_ssize_t = sums.shape[0] // 4
    callees: cython.longlong = int(state[CALLEES])
    i: cython.Py_ssize_t = 0
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            f: cython.int = frame[i]
            if f < 0 or f >= n_frames:
                bad = True
                break
            f = func_of_frame[f]
            if f < 0 or f >= n_funcs:
                bad = True
                break
            at: cython.Py_ssize_t = 4 * f
            if flags[i] & LEAVE:
                if sp == 0:
                    bad = True
                    break
                sp -= 1
                dur: cython.longlong = minus(ts[i], entered[sp])
                sums[at + SELF_NS] = plus(sums[at + SELF_NS], minus(dur, callees))
                callees = plus(in_callees[sp], dur)
                sums[at + ACTIVE] -= 1
                if sums[at + ACTIVE] == 0:
                    sums[at + TOTAL_NS] = plus(sums[at + TOTAL_NS], dur)
                i += 1
            elif i + 1 < n and flags[i + 1] & LEAVE:
                # Most calls call nothing: these need no place among the open ones.
                dur = minus(ts[i + 1], ts[i])
                sums[at + CALLS] += 1
                sums[at + SELF_NS] = plus(sums[at + SELF_NS], dur)
                if sums[at + ACTIVE] == 0:
                    sums[at + TOTAL_NS] = plus(sums[at + TOTAL_NS], dur)
                callees = plus(callees, dur)
                i += 2
            else:
                sums[at + CALLS] += 1
                sums[at + ACTIVE] += 1
                entered[sp] = ts[i]
                in_callees[sp] = callees
                callees = 0
                sp += 1
                i += 1
    state[OPEN] = sp
    state[CALLEES] = callees
    if bad:
        raise ValueError("totals: the stream is not balanced")


def count_lasting(
    ts: cython.const[cython.longlong][::1],
    flags: cython.const[cython.uchar][::1],
    limits: cython.const[cython.longlong][::1],
    entered: cython.longlong[::1],
    counts: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """counts[k]: increased by the calls of a piece of a balanced stream that last at least limits[k] ns, but not
    limits[k + 1]; limits rise.

    Lengths: entered the depth and one for each row, counts one for each limit; state: 1, the depth.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < 1:
        raise ValueError("count_lasting: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[OPEN])
    n_limits: cython.Py_ssize_t = limits.shape[0]
    if flags.shape[0] != n or sp < 0 or entered.shape[0] < sp + n or counts.shape[0] < n_limits:
        raise ValueError("count_lasting: an array has the wrong length")
    i: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            if not flags[i] & LEAVE:
                entered[sp] = ts[i]
                sp += 1
            elif sp == 0:
                bad = True
                break
            else:
                sp -= 1
                dur: cython.longlong = ts[i] - entered[sp]
                k: cython.Py_ssize_t = 0
                while k < n_limits and dur >= limits[k]:
                    k += 1
                if k > 0:
                    counts[k - 1] += 1
    state[OPEN] = sp
    if bad:
        raise ValueError("count_lasting: the stream is not balanced")


@c_function
def fit(
    ts: cython.longlong[::1],
    frame: cython.int[::1],
    flags: cython.uchar[::1],
    row: cython.longlong[::1],
    n: cython.Py_ssize_t,
) -> cython.bint:
    """Whether these columns have n rows at least."""
    capacity: cython.Py_ssize_t = ts.shape[0]
    return n <= capacity == frame.shape[0] == flags.shape[0] == row.shape[0]


def cut(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    start_ts: cython.longlong,
    stop_ts: cython.longlong,
    open_ts: cython.longlong[::1],
    open_frame: cython.int[::1],
    open_flags: cython.uchar[::1],
    open_row: cython.longlong[::1],
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    out_row: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Writes the calls of a piece of a balanced stream of which some part lies in [start_ts, stop_ts), cut to it.

    out_row: which row of the stream each was. An enter before the range is written when the range begins. A call that
    ends at start_ts is not in the range, unless one that it makes begins then.

    Lengths: open_* and out_* the depth and one for each row. state: 4, zeros at a stream's start: the depth, how
    many of the open calls are written, the rows written for this piece, the rows read so far.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < 4:
        raise ValueError("cut: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[OPEN])
    kept: cython.Py_ssize_t = int(state[KEPT])
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or not 0 <= kept <= sp
        or not fit(open_ts, open_frame, open_flags, open_row, sp + n)
        or not fit(out_ts, out_frame, out_flags, out_row, sp + n)
    ):
        raise ValueError("cut: an array has the wrong length")
    row: cython.longlong = int(state[READ])
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            t: cython.longlong = ts[i]
            g: cython.uint = flags[i]
            if t > start_ts or (t == start_ts and not g & LEAVE):
                while kept < sp and open_ts[kept] < start_ts:
                    out_ts[m] = start_ts
                    out_frame[m] = open_frame[kept]
                    out_flags[m] = open_flags[kept] | OPEN_AT_START
                    out_row[m] = open_row[kept]
                    m += 1
                    kept += 1
            if not g & LEAVE:
                open_ts[sp] = t
                open_frame[sp] = frame[i]
                open_flags[sp] = g
                open_row[sp] = row
                sp += 1
                if t < start_ts or t >= stop_ts:
                    row += 1
                    continue
                kept = sp
            elif sp == 0:
                bad = True
                break
            else:
                sp -= 1
                if kept <= sp:
                    row += 1
                    continue
                kept = sp
                if t > stop_ts:
                    t = stop_ts
                    g |= OPEN_AT_END
            out_ts[m] = t
            out_frame[m] = frame[i]
            out_flags[m] = g
            out_row[m] = row
            m += 1
            row += 1
    state[OPEN] = sp
    state[KEPT] = kept
    state[WRITTEN] = m
    state[READ] = row
    if bad:
        raise ValueError("cut: the stream is not balanced")


def keep_lasting(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    min_ns: cython.longlong,
    open_ts: cython.longlong[::1],
    open_frame: cython.int[::1],
    open_flags: cython.uchar[::1],
    open_row: cython.longlong[::1],
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    out_row: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Writes the calls of a piece of a balanced stream that last at least min_ns.

    An enter is written as soon as the call has lasted so long: its callers have been written then, and nothing that
    comes before it in the stream can follow. The arrays are those of `cut`.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < 4:
        raise ValueError("keep_lasting: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[OPEN])
    kept: cython.Py_ssize_t = int(state[KEPT])
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or not 0 <= kept <= sp
        or not fit(open_ts, open_frame, open_flags, open_row, sp + n)
        or not fit(out_ts, out_frame, out_flags, out_row, sp + n)
    ):
        raise ValueError("keep_lasting: an array has the wrong length")
    row: cython.longlong = int(state[READ])
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            t: cython.longlong = ts[i]
            if not flags[i] & LEAVE:
                open_ts[sp] = t
                open_frame[sp] = frame[i]
                open_flags[sp] = flags[i]
                open_row[sp] = row
                sp += 1
            elif sp == 0:
                bad = True
                break
            while kept < sp and t - open_ts[kept] >= min_ns:
                out_ts[m] = open_ts[kept]
                out_frame[m] = open_frame[kept]
                out_flags[m] = open_flags[kept]
                out_row[m] = open_row[kept]
                m += 1
                kept += 1
            if flags[i] & LEAVE:
                sp -= 1
                if kept > sp:
                    kept = sp
                    out_ts[m] = t
                    out_frame[m] = frame[i]
                    out_flags[m] = flags[i]
                    out_row[m] = row
                    m += 1
            row += 1
    state[OPEN] = sp
    state[KEPT] = kept
    state[WRITTEN] = m
    state[READ] = row
    if bad:
        raise ValueError("keep_lasting: the stream is not balanced")


def end_running(thread: cython.int, end_ts: cython.longlong, sums: tuple) -> None:
    """Ends the open calls of a thread that is not left out: see `RunningSums`."""
    c: RunningSums = RunningSums(sums)
    if not 0 <= thread < c.threads.shape[0] // THREAD_WIDTH:
        raise ValueError("end_running: a thread without a row")
    c.go_to(thread)
    c.end(end_ts)
    c.go_to(-1)


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    totals = plain_integers(totals)
    count_lasting = plain_integers(count_lasting)
    cut = plain_integers(cut)
    keep_lasting = plain_integers(keep_lasting)
    end_running = plain_integers(end_running)
