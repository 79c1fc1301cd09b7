# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Kernels over the stream of enters and leaves of one thread. Cython's pure-Python mode: also runs interpreted.

Every function states what its arrays must hold; the callers in `converter.calls` allocate them so.
"""

import cython

LEAVE = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)
OPEN_AT_END = cython.declare(cython.uint, 8)
NOT_FOUND = cython.declare(cython.uint, 128)

# Written by `match` into `out`; indices into its `counts`.
N_ROWS = cython.declare(cython.int, 0)
N_UNWOUND = cython.declare(cython.int, 1)
N_OPEN = cython.declare(cython.int, 2)
N_BACKWARDS = cython.declare(cython.int, 3)
N_ORPHANS = cython.declare(cython.int, 4)
MAX_BACKWARDS = cython.declare(cython.int, 5)


def match(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    end_ts: cython.longlong,
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    stack: cython.longlong[::1],
    n_open: cython.int[::1],
    marks: cython.const[cython.longlong][::1],
    out_marks: cython.longlong[::1],
    counts: cython.longlong[::1],
):
    """Balances a raw stream: every enter gets its leave.

    A leave closes the innermost open frame of its id, and the frames above that as UNWOUND. A leave without an open
    frame of its id is written with NOT_FOUND, for the caller to give it an enter. What is open at the end is left at
    `end_ts`. Time stamps that fall are raised. marks: rows of the input, rising; out_marks: their rows in the output.

    Room needed: out_* 2 * n, stack n + 1, counts 6, n_open one zero for each frame. The stack holds output rows.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or out_ts.shape[0] < 2 * n
        or out_frame.shape[0] < 2 * n
        or out_flags.shape[0] < 2 * n
        or stack.shape[0] < n + 1
        or out_marks.shape[0] < marks.shape[0]
        or counts.shape[0] < 6
    ):
        raise ValueError("match: an array has the wrong length")
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t = 0
    sp: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    n_marks: cython.Py_ssize_t = marks.shape[0]
    next_mark: cython.longlong = marks[0] if n_marks > 0 else -1
    t: cython.longlong
    now: cython.longlong = ts[0] if n > 0 else 0
    f: cython.int
    g: cython.uint
    unwound: cython.longlong = 0
    backwards: cython.longlong = 0
    max_backwards: cython.longlong = 0
    orphans: cython.longlong = 0
    # Searching the whole stack for nothing costs its depth each time. Streams that do it often get n_open, the number
    # of open calls of each frame, from then on.
    counting: cython.bint = False
    searched: cython.longlong = 0
    for i in range(n):
        if frame[i] < 0 or frame[i] >= n_open.shape[0]:
            raise ValueError("match: a frame without a place in n_open")
    with cython.nogil:
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
            if i == next_mark:
                while k < n_marks and marks[k] == i:
                    out_marks[k] = m
                    k += 1
                next_mark = marks[k] if k < n_marks else -1
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
                            n_open[out_frame[stack[q]]] += 1
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
            out_ts[m] = now
            out_frame[m] = f
            out_flags[m] = g
            m += 1
        counts[N_OPEN] = sp
        if end_ts < now:
            end_ts = now
        while sp > 0:
            sp -= 1
            out_ts[m] = end_ts
            out_frame[m] = out_frame[stack[sp]]
            out_flags[m] = LEAVE | OPEN_AT_END
            m += 1
        counts[N_ROWS] = m
        counts[N_UNWOUND] = unwound
        counts[N_BACKWARDS] = backwards
        counts[N_ORPHANS] = orphans
        counts[MAX_BACKWARDS] = max_backwards


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
    stack: cython.int[::1],
    active: cython.longlong[::1],
    entered: cython.longlong[::1],
    n_calls: cython.longlong[::1],
    total_ns: cython.longlong[::1],
    self_ns: cython.longlong[::1],
):
    """Adds up a balanced stream for each function: enters, time in outermost activations, time on top of the stack.

    Room needed: stack n / 2 + 1; active, entered, n_calls, total_ns and self_ns one value for each function, active
    all zero. Every frame must be an index of func_of_frame, every function of the rest.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if frame.shape[0] != n or flags.shape[0] != n or stack.shape[0] < n // 2 + 1:
        raise ValueError("totals: an array has the wrong length")
    n_funcs: cython.Py_ssize_t = active.shape[0]
    if (
        entered.shape[0] < n_funcs
        or n_calls.shape[0] < n_funcs
        or total_ns.shape[0] < n_funcs
        or self_ns.shape[0] < n_funcs
    ):
        raise ValueError("totals: a table of functions is too short")
    i: cython.Py_ssize_t
    sp: cython.Py_ssize_t = 0
    f: cython.int
    last: cython.longlong = 0
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            if sp > 0:
                self_ns[stack[sp - 1]] += ts[i] - last
            last = ts[i]
            f = frame[i]
            if f < 0 or f >= func_of_frame.shape[0]:
                bad = True
                break
            f = func_of_frame[f]
            if f < 0 or f >= n_funcs:
                bad = True
                break
            if not flags[i] & LEAVE:
                if sp >= stack.shape[0]:
                    bad = True
                    break
                stack[sp] = f
                sp += 1
                n_calls[f] += 1
                if active[f] == 0:
                    entered[f] = last
                active[f] += 1
            else:
                if sp == 0:
                    bad = True
                    break
                sp -= 1
                active[f] -= 1
                if active[f] == 0:
                    total_ns[f] += last - entered[f]
    if bad:
        raise ValueError("totals: the stream is not balanced")


def long_enough(
    ts: cython.const[cython.longlong][::1],
    flags: cython.const[cython.uchar][::1],
    min_ns: cython.longlong,
    stack: cython.longlong[::1],
    keep: cython.uchar[::1],
):
    """keep[row] = 1 for the rows of a balanced stream whose call lasts at least min_ns.

    Room needed: stack n / 2 + 1, keep n.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if flags.shape[0] != n or keep.shape[0] < n or stack.shape[0] < n // 2 + 1:
        raise ValueError("long_enough: an array has the wrong length")
    i: cython.Py_ssize_t
    sp: cython.Py_ssize_t = 0
    j: cython.longlong
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            if not flags[i] & LEAVE:
                if sp >= stack.shape[0]:
                    bad = True
                    break
                stack[sp] = i
                sp += 1
            else:
                if sp == 0:
                    bad = True
                    break
                sp -= 1
                j = stack[sp]
                keep[i] = 1 if ts[i] - ts[j] >= min_ns else 0
                keep[j] = keep[i]
    if bad:
        raise ValueError("long_enough: the stream is not balanced")
