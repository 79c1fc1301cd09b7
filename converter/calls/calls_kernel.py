# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Kernels over the stream of enters and leaves of one thread. Cython's pure-Python mode: also runs interpreted.

Every function states what its arrays must hold; the callers in `traceferry.calls.balance` allocate them so.
"""

import cython

from traceferry.kernels.saturating import minus, plus

LEAVE = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)
OPEN_AT_END = cython.declare(cython.uint, 8)
OPEN_AT_START = cython.declare(cython.uint, 16)
NOT_FOUND = cython.declare(cython.uint, 128)

# Indices into the `state` of `match` and the `counts` of `adopt`.
N_ROWS = cython.declare(cython.int, 0)
N_UNWOUND = cython.declare(cython.int, 1)
DEPTH = cython.declare(cython.int, 2)
N_BACKWARDS = cython.declare(cython.int, 3)
N_ORPHANS = cython.declare(cython.int, 4)
MAX_BACKWARDS = cython.declare(cython.int, 5)
NOW = cython.declare(cython.int, 6)
LAST_ROW = cython.declare(cython.int, 7)
SEARCHED = cython.declare(cython.int, 8)

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


def match(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    stack: cython.longlong[::1],
    n_open: cython.int[::1],
    marks: cython.const[cython.longlong][::1],
    out_marks: cython.longlong[::1],
    state: cython.longlong[::1],
):
    """Matches one piece of a raw stream, appending at out_*[state[N_ROWS]].

    A leave closes the innermost open frame of its id, and the frames above that as UNWOUND. A leave without an open
    frame of its id is written with NOT_FOUND, for the caller to give it an enter. Time stamps that fall are raised.
    marks: rows of the piece, rising, -1 for the last row of the piece before; out_marks: their rows in the output.

    Room needed in out_*: two for each row so far, in stack one for each enter so far; n_open: one for each frame, zeros
    at the start. state: 9, zeros at the start but NOW, the first ts. The stack holds output rows.
    """
    if state.shape[0] < 9:
        raise ValueError("match: an array has the wrong length")
    n: cython.Py_ssize_t = ts.shape[0]
    m: cython.Py_ssize_t = int(state[N_ROWS])
    sp: cython.Py_ssize_t = int(state[DEPTH])
    room: cython.Py_ssize_t = out_ts.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or out_frame.shape[0] != room
        or out_flags.shape[0] != room
        or m < 0
        or sp < 0
        or room - m < n + sp + n
        or stack.shape[0] < sp + n
        or out_marks.shape[0] < marks.shape[0]
    ):
        raise ValueError("match: an array has the wrong length")
    i: cython.Py_ssize_t
    q: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    n_marks: cython.Py_ssize_t = marks.shape[0]
    next_mark: cython.longlong
    t: cython.longlong
    now: cython.longlong = int(state[NOW])
    last_row: cython.longlong = int(state[LAST_ROW])
    f: cython.int
    g: cython.uint
    unwound: cython.longlong = 0
    backwards: cython.longlong = 0
    max_backwards: cython.longlong = int(state[MAX_BACKWARDS])
    orphans: cython.longlong = 0
    # Searching the whole stack for nothing costs its depth each time. Streams that do it often get n_open, the number
    # of open calls of each frame, from then on.
    searched: cython.longlong = int(state[SEARCHED])
    counting: cython.bint = searched > 65536
    bad: cython.bint = False
    with cython.nogil:
        while k < n_marks and marks[k] < 0:
            out_marks[k] = last_row
            k += 1
        next_mark = marks[k] if k < n_marks else -1
        for i in range(n):
            t = ts[i]
            if t < now:
                backwards += 1
                if now - t > max_backwards:
                    max_backwards = now - t
            else:
                now = t
            f = frame[i]
            g = flags[i]
            if counting and (f < 0 or f >= n_open.shape[0]):
                bad = True
                break
            if not g & LEAVE:
                stack[sp] = m
                sp += 1
                if counting:
                    n_open[f] += 1
            elif sp > 0 and out_frame[stack[sp - 1]] == f:
                sp -= 1
                if counting:
                    n_open[f] -= 1
            else:
                q = sp - 1
                if counting and n_open[f] == 0:
                    q = -1
                while q >= 0 and out_frame[stack[q]] != f:
                    q -= 1
                if q < 0:
                    orphans += 1
                    g |= NOT_FOUND
                    searched += sp
                    if searched > 65536 and not counting:
                        counting = True
                        for q in range(sp):
                            f = out_frame[stack[q]]
                            if f < 0 or f >= n_open.shape[0]:
                                bad = True
                                break
                            n_open[f] += 1
                        if bad:
                            break
                        f = frame[i]
                else:
                    if counting:
                        n_open[f] -= 1
                    while sp > q + 1:
                        sp -= 1
                        unwound += 1
                        if counting:
                            n_open[out_frame[stack[sp]]] -= 1
                        out_ts[m] = now
                        out_frame[m] = out_frame[stack[sp]]
                        out_flags[m] = LEAVE | UNWOUND
                        m += 1
                    sp -= 1
            if i == next_mark:
                while k < n_marks and marks[k] == i:
                    out_marks[k] = m
                    k += 1
                next_mark = marks[k] if k < n_marks else -1
            last_row = m
            out_ts[m] = now
            out_frame[m] = f
            out_flags[m] = g
            m += 1
    if bad:
        raise ValueError("match: a frame without a place in n_open")
    state[N_ROWS] = m
    state[DEPTH] = sp
    state[NOW] = now
    state[LAST_ROW] = last_row
    state[SEARCHED] = searched
    state[N_UNWOUND] += unwound
    state[N_BACKWARDS] += backwards
    state[N_ORPHANS] += orphans
    state[MAX_BACKWARDS] = max_backwards


def close(
    end_ts: cython.longlong,
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    stack: cython.const[cython.longlong][::1],
    state: cython.longlong[::1],
):
    """Leaves at end_ts what `match` has left open; state[DEPTH] stays, the number of those calls."""
    if state.shape[0] < 9:
        raise ValueError("close: an array has the wrong length")
    m: cython.Py_ssize_t = int(state[N_ROWS])
    sp: cython.Py_ssize_t = int(state[DEPTH])
    room: cython.Py_ssize_t = out_ts.shape[0]
    if out_frame.shape[0] != room or out_flags.shape[0] != room:
        raise ValueError("close: an array has the wrong length")
    if sp < 0 or m < 0 or room - m < sp or stack.shape[0] < sp:
        raise ValueError("close: an array has the wrong length")
    if end_ts < int(state[NOW]):
        end_ts = int(state[NOW])
    with cython.nogil:
        while sp > 0:
            sp -= 1
            out_ts[m] = end_ts
            out_frame[m] = out_frame[stack[sp]]
            out_flags[m] = LEAVE | OPEN_AT_END
            m += 1
    state[N_ROWS] = m


def adopt(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    stack: cython.longlong[::1],
    exact: cython.uchar[::1],
    enter_at: cython.longlong[::1],
    marks: cython.const[cython.longlong][::1],
    out_marks: cython.longlong[::1],
    counts: cython.longlong[::1],
):
    """Finds the place of each leave that `match` marked NOT_FOUND, and of the enter that it needs.

    A frame that is left later by a record of its own outlives the orphan, so the orphan is above it; frames above
    that were unwound by the orphan's leave. enter_at[k], for the k-th orphan: the output row before which its enter
    belongs; -1 where nothing outlives it, so that it was open since the thread's start. Its leave keeps NOT_FOUND.

    Room needed: out_* and exact n + 1, stack n + 1, enter_at one for each orphan, counts 6.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or out_ts.shape[0] < n
        or out_frame.shape[0] < n
        or out_flags.shape[0] < n
        or stack.shape[0] < n + 1
        or exact.shape[0] < n
        or out_marks.shape[0] < marks.shape[0]
        or counts.shape[0] < 6
    ):
        raise ValueError("adopt: an array has the wrong length")
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    sp: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t = 0
    o: cython.Py_ssize_t = 0
    n_marks: cython.Py_ssize_t = marks.shape[0]
    place: cython.longlong
    g: cython.uint
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n - 1, -1, -1):
            g = flags[i]
            if g & NOT_FOUND:
                continue
            if g & LEAVE:
                stack[sp] = 0 if g & (UNWOUND | OPEN_AT_END) else 1
                sp += 1
            elif sp == 0:
                bad = True
                break
            else:
                sp -= 1
                exact[i] = stack[sp]
        if sp != 0:
            bad = True
        sp = 0
        # From here the stack holds 2 * output row + exact.
        for i in range(n):
            if bad:
                break
            g = flags[i]
            while k < n_marks and marks[k] == i:
                out_marks[k] = m
                k += 1
            if g & NOT_FOUND:
                place = m
                while sp > 0 and not stack[sp - 1] & 1:
                    sp -= 1
                    place = stack[sp] >> 1
                    out_ts[m] = ts[i]
                    out_frame[m] = out_frame[place]
                    out_flags[m] = LEAVE | UNWOUND
                    m += 1
                if o >= enter_at.shape[0] or m >= out_ts.shape[0]:
                    bad = True
                    break
                enter_at[o] = place if sp > 0 else -1
                o += 1
            elif g & (UNWOUND | OPEN_AT_END):
                # An orphan's leave may have taken it already: then the innermost open frame is another one.
                if sp == 0 or stack[sp - 1] & 1 or out_frame[stack[sp - 1] >> 1] != frame[i]:
                    continue
                sp -= 1
            elif g & LEAVE:
                sp -= 1
            else:
                stack[sp] = 2 * m + exact[i]
                sp += 1
            if m >= out_ts.shape[0]:
                bad = True
                break
            out_ts[m] = ts[i]
            out_frame[m] = frame[i]
            out_flags[m] = g
            m += 1
        counts[N_ROWS] = m
        counts[N_ORPHANS] = o
    if bad:
        raise ValueError("adopt: the stream is not balanced")


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
    for each open call, when it was entered, and the ns that its caller had spent in callees until then. Room needed in
    them: the depth and one for each row. state: 2, zeros at a stream's start: the depth, and the ns that the innermost
    open call has spent in callees. Every frame must be an index of func_of_frame, every function of sums.
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
    at: cython.Py_ssize_t
    f: cython.int
    dur: cython.longlong
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            f = frame[i]
            if f < 0 or f >= n_frames:
                bad = True
                break
            f = func_of_frame[f]
            if f < 0 or f >= n_funcs:
                bad = True
                break
            at = 4 * f
            if flags[i] & LEAVE:
                if sp == 0:
                    bad = True
                    break
                sp -= 1
                dur = minus(ts[i], entered[sp])
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

    Room needed: entered the depth and one for each row, counts one for each limit; state: 1, the depth.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < 1:
        raise ValueError("count_lasting: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[OPEN])
    n_limits: cython.Py_ssize_t = limits.shape[0]
    if flags.shape[0] != n or sp < 0 or entered.shape[0] < sp + n or counts.shape[0] < n_limits:
        raise ValueError("count_lasting: an array has the wrong length")
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    dur: cython.longlong
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
                dur = ts[i] - entered[sp]
                k = 0
                while k < n_limits and dur >= limits[k]:
                    k += 1
                if k > 0:
                    counts[k - 1] += 1
    state[OPEN] = sp
    if bad:
        raise ValueError("count_lasting: the stream is not balanced")


def cut(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    start_ts: cython.longlong,
    end_ts: cython.longlong,
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
    """Writes the calls of a piece of a balanced stream of which some part lies in [start_ts, end_ts], cut to it.

    out_row: which row of the stream each was. An enter before the range is written when the range begins.

    Room needed: open_* and out_* the depth and one for each row. state: 4, zeros at a stream's start: the depth, how
    many of the open calls are written, the rows written for this piece, the rows read so far.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < 4:
        raise ValueError("cut: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[OPEN])
    kept: cython.Py_ssize_t = int(state[KEPT])
    room: cython.Py_ssize_t = open_ts.shape[0]
    out_room: cython.Py_ssize_t = out_ts.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or sp < 0
        or kept < 0
        or kept > sp
        or room < sp + n
        or open_frame.shape[0] != room
        or open_flags.shape[0] != room
        or open_row.shape[0] != room
        or out_room < sp + n
        or out_frame.shape[0] != out_room
        or out_flags.shape[0] != out_room
        or out_row.shape[0] != out_room
    ):
        raise ValueError("cut: an array has the wrong length")
    row: cython.longlong = int(state[READ])
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    t: cython.longlong
    g: cython.uint
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            t = ts[i]
            g = flags[i]
            if t >= start_ts:
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
                if t < start_ts or t > end_ts:
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
                if t > end_ts:
                    t = end_ts
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
    room: cython.Py_ssize_t = open_ts.shape[0]
    out_room: cython.Py_ssize_t = out_ts.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or sp < 0
        or kept < 0
        or kept > sp
        or room < sp + n
        or open_frame.shape[0] != room
        or open_flags.shape[0] != room
        or open_row.shape[0] != room
        or out_room < sp + n
        or out_frame.shape[0] != out_room
        or out_flags.shape[0] != out_room
        or out_row.shape[0] != out_room
    ):
        raise ValueError("keep_lasting: an array has the wrong length")
    row: cython.longlong = int(state[READ])
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    t: cython.longlong
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            t = ts[i]
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


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    match = plain_integers(match)
    close = plain_integers(close)
    adopt = plain_integers(adopt)
    totals = plain_integers(totals)
    count_lasting = plain_integers(count_lasting)
    cut = plain_integers(cut)
    keep_lasting = plain_integers(keep_lasting)
