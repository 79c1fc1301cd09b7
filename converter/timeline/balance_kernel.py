# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Balances the recorded enters and leaves of one thread, piece by piece. Cython's pure-Python mode: also runs
interpreted.

An enter that was lost is known only when its leave comes, and its place only later. So a pass over a thread can note
the leaves without an enter, and a second pass takes the enters that are missing: see `note_orphan`.
"""

import cython

from traceferry.kernels.calls import LEAVE, OPEN_AT_END, UNWOUND
from traceferry.kernels.functions import c_function

# Indices into `state`.
DEPTH = cython.declare(cython.int, 0)
NOW = cython.declare(cython.int, 1)
N_READ = cython.declare(cython.int, 2)
N_WRITTEN = cython.declare(cython.int, 3)
N_UNWOUND = cython.declare(cython.int, 4)
N_BACKWARDS = cython.declare(cython.int, 5)
MAX_BACKWARDS = cython.declare(cython.int, 6)
N_ORPHANS = cython.declare(cython.int, 7)
SEARCHED = cython.declare(cython.int, 8)
N_INSERTED = cython.declare(cython.int, 9)
LAST_ROW = cython.declare(cython.int, 10)
N_STATE = cython.declare(cython.int, 11)
STATE_SLOTS = {
    "depth": 0, "now": 1, "n_read": 2, "n_written": 3, "n_unwound": 4, "n_backwards": 5, "max_backwards": 6,
    "n_orphans": 7, "searched": 8, "n_inserted": 9, "last_row": 10, "size": 11,
}  # fmt: skip

# A row of `orphans`.
O_ROW = cython.declare(cython.int, 0)
O_KEY = cython.declare(cython.int, 1)
O_FRAME = cython.declare(cython.int, 2)
O_PLACE = cython.declare(cython.int, 3)
O_INSIDE = cython.declare(cython.int, 4)
O_NEXT = cython.declare(cython.int, 5)
O_WIDTH = cython.declare(cython.int, 6)
ORPHAN_COLUMNS = {"row": 0, "key": 1, "frame": 2, "place": 3, "inside": 4, "next": 5}

# Searching the whole stack in vain costs its depth each time: beyond this many steps, calls are counted by key.
PATIENCE = cython.declare(cython.longlong, 65536)


@c_function
def note_orphan(
    orphans: cython.longlong[::1],
    lists: cython.longlong[::1],
    nth: cython.Py_ssize_t,
    row: cython.longlong,
    key: cython.int,
    frame: cython.int,
    depth: cython.Py_ssize_t,
) -> cython.void:
    """Notes a leave without an enter in the list of the innermost open call.

    A call that is left later by a record of its own outlives the orphan, so the orphan lies inside it; calls above that
    are unwound by the orphan's leave. `place` is the row before which the missing enter belongs: the orphan's own, or
    the enter of the outermost call that it unwinds. `inside` is 0 where nothing outlives it: open since the start.
    """
    at: cython.Py_ssize_t = O_WIDTH * nth
    orphans[at + O_ROW] = row
    orphans[at + O_KEY] = key
    orphans[at + O_FRAME] = frame
    orphans[at + O_PLACE] = row
    orphans[at + O_INSIDE] = 0
    orphans[at + O_NEXT] = -1
    if lists[2 * depth] < 0:
        lists[2 * depth] = nth
    else:
        orphans[O_WIDTH * lists[2 * depth + 1] + O_NEXT] = nth
    lists[2 * depth + 1] = nth


@c_function
def outlived(orphans: cython.longlong[::1], lists: cython.longlong[::1], depth: cython.Py_ssize_t) -> cython.void:
    """The call at this depth ends by a record of its own."""
    nth: cython.longlong = lists[2 * depth]
    while nth >= 0:
        orphans[O_WIDTH * nth + O_INSIDE] = 1
        nth = orphans[O_WIDTH * nth + O_NEXT]


@c_function
def not_outlived(
    orphans: cython.longlong[::1], lists: cython.longlong[::1], depth: cython.Py_ssize_t, row: cython.longlong
) -> cython.void:
    """The call at this depth, entered in this row, never ends by itself: its first orphan unwinds it, and all of its
    orphans are its caller's."""
    first: cython.longlong = lists[2 * depth]
    if first < 0:
        return
    orphans[O_WIDTH * first + O_PLACE] = row
    if lists[2 * depth - 2] < 0:
        lists[2 * depth - 2] = first
    else:
        orphans[O_WIDTH * lists[2 * depth - 1] + O_NEXT] = first
    lists[2 * depth - 1] = lists[2 * depth + 1]


def balance_regular(
    ts: cython.const[cython.longlong][::1],
    key: cython.const[cython.int][::1],
    frame: cython.int[::1],
    flags: cython.const[cython.uchar][::1],
    open_key: cython.int[::1],
    open_frame: cython.int[::1],
    state: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Balances a piece in place, up to the first row that is not regular; returns how many rows that are.

    Regular rows enter, or leave the innermost open call, at times that do not fall: only frames of leaves are missing.
    Lengths: open_* the depth and n.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if state.shape[0] < N_STATE:
        raise ValueError("balance_regular: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[DEPTH])
    if (
        key.shape[0] != n
        or frame.shape[0] != n
        or flags.shape[0] != n
        or sp < 0
        or open_key.shape[0] < sp + n
        or open_frame.shape[0] < sp + n
    ):
        raise ValueError("balance_regular: an array has the wrong length")
    i: cython.Py_ssize_t = 0
    now: cython.longlong = int(state[NOW])
    counting: cython.bint = state[SEARCHED] > PATIENCE
    with cython.nogil:
        while i < n and not counting:
            # LEAVE is 1. The same for enters and leaves: a branch between them would often be guessed wrong.
            c: cython.int = key[i]
            q: cython.Py_ssize_t = sp - (flags[i] & LEAVE)
            open_key[sp] = c
            open_frame[sp] = frame[i]
            if q < 0 or open_key[q] != c or ts[i] < now:
                break
            now = ts[i]
            frame[i] = open_frame[q]
            sp = 2 * q - sp + 1
            i += 1
    state[DEPTH] = sp
    state[NOW] = now
    state[N_READ] += i
    state[N_WRITTEN] += i
    state[LAST_ROW] = state[N_WRITTEN] - 1 if i else state[LAST_ROW]
    return i


def balance(
    ts: cython.const[cython.longlong][::1],
    key: cython.const[cython.int][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    marks: cython.const[cython.longlong][::1],
    inserted: cython.const[cython.longlong][::1],
    open_key: cython.int[::1],
    open_frame: cython.int[::1],
    open_row: cython.longlong[::1],
    n_open: cython.int[::1],
    lists: cython.longlong[::1],
    orphans: cython.longlong[::1],
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    out_marks: cython.longlong[::1],
    state: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Balances one piece of a stream; returns how many rows it wrote.

    A leave closes the innermost open call of its key, with the frame of its enter, and the calls above that as UNWOUND.
    Time stamps that fall are raised. A leave without an open call of its key is left out: noted in `orphans` where that
    has capacity, else as if it were not in the stream.

    marks: rows of the piece, rising, -1 for the last row before it; out_marks: the rows of the whole output that they
    became. inserted: rows of (row of the stream, key, frame, flags), rising: enters that belong before that row.

    Lengths: out_* 2 n, the depth and 2 for each enter still to insert; open_* the depth, n and one for each enter
    still to insert; lists twice that and 2; orphans none, or a row for each orphan so far and n; n_open one for each
    key, zeros at the start. state: zeros at the start but NOW, the time before which nothing is.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    deepest: cython.Py_ssize_t = open_key.shape[0]
    capacity: cython.Py_ssize_t = out_ts.shape[0]
    if state.shape[0] < N_STATE:
        raise ValueError("balance: an array has the wrong length")
    sp: cython.Py_ssize_t = int(state[DEPTH])
    j: cython.Py_ssize_t = int(state[N_INSERTED])
    n_inserts: cython.Py_ssize_t = inserted.shape[0] // 4
    n_orphans: cython.longlong = int(state[N_ORPHANS])
    noting: cython.bint = orphans.shape[0] > 0
    if (
        key.shape[0] != n
        or frame.shape[0] != n
        or flags.shape[0] != n
        or out_marks.shape[0] < marks.shape[0]
        or sp < 0
        or j < 0
        or j > n_inserts
        or n_orphans < 0
        or (noting and n_inserts > 0)
        or deepest < sp + n + n_inserts - j
        or open_frame.shape[0] != deepest
        or open_row.shape[0] != deepest
        or lists.shape[0] < 2 * deepest + 2
        or capacity < 2 * (n + n_inserts - j) + sp
        or out_frame.shape[0] != capacity
        or out_flags.shape[0] != capacity
        or (noting and orphans.shape[0] < O_WIDTH * (n_orphans + n))
    ):
        raise ValueError("balance: an array has the wrong length")
    n_keys: cython.Py_ssize_t = n_open.shape[0]
    i: cython.Py_ssize_t
    largest: cython.longlong = -1
    smallest: cython.longlong = 0
    with cython.nogil:
        for i in range(n):
            largest = key[i] if key[i] > largest else largest
            smallest = key[i] if key[i] < smallest else smallest
    if smallest < 0 or largest >= n_keys:
        raise ValueError("balance: a key without a place in n_open")
    for i in range(4 * j, 4 * n_inserts, 4):
        if inserted[i + 1] < 0 or inserted[i + 1] >= n_keys:
            raise ValueError("balance: a key without a place in n_open")
    m: cython.Py_ssize_t = 0
    d: cython.Py_ssize_t
    now: cython.longlong = int(state[NOW])
    first_row: cython.longlong = int(state[N_READ])
    first_out: cython.longlong = int(state[N_WRITTEN])
    last_row: cython.longlong = int(state[LAST_ROW])
    searched: cython.longlong = int(state[SEARCHED])
    counting: cython.bint = searched > PATIENCE
    unwound: cython.longlong = 0
    backwards: cython.longlong = 0
    max_backwards: cython.longlong = int(state[MAX_BACKWARDS])
    next_insert: cython.longlong = inserted[4 * j] if j < n_inserts else -1
    k: cython.Py_ssize_t = 0
    n_marks: cython.Py_ssize_t = marks.shape[0]
    with cython.nogil:
        while k < n_marks and marks[k] < 0:
            out_marks[k] = last_row
            k += 1
        next_mark: cython.longlong = marks[k] if k < n_marks else -1
        i = -1
        while i + 1 < n:
            # Most records enter, or leave the innermost open call: without a branch between the two.
            regular: cython.Py_ssize_t = next_mark if k < n_marks else n
            if j < n_inserts and next_insert - first_row < regular:
                regular = next_insert - first_row
            i += 1
            while i < regular and ts[i] >= now:
                leaves: cython.int = flags[i] & LEAVE
                q: cython.Py_ssize_t = sp - leaves
                open_key[sp] = key[i]
                open_frame[sp] = frame[i]
                if q < 0 or open_key[q] != key[i]:
                    break
                if noting or counting:
                    open_row[sp] = first_row + i
                    lists[2 * sp + 2] = -1
                    if noting and lists[2 * q + 2] >= 0:
                        break
                    n_open[key[i]] += counting * (1 - 2 * leaves)
                now = ts[i]
                out_frame[m] = open_frame[q]
                out_ts[m] = now
                out_flags[m] = flags[i]
                sp = q + 1 - leaves
                last_row = first_out + m
                m += 1
                i += 1
            if i == n:
                break
            t: cython.longlong = ts[i]
            g: cython.uint = flags[i]
            c: cython.int = key[i]
            while next_insert == first_row + i:
                # It begins with the call that it encloses, or ends as soon as it began.
                if not g & LEAVE and t > now:
                    now = t
                open_key[sp] = inserted[4 * j + 1]
                open_frame[sp] = inserted[4 * j + 2]
                n_open[open_key[sp]] += counting
                out_ts[m] = now
                out_frame[m] = open_frame[sp]
                out_flags[m] = inserted[4 * j + 3]
                sp += 1
                m += 1
                j += 1
                next_insert = inserted[4 * j] if j < n_inserts else -1
            if not g & LEAVE:
                q = sp
                open_key[sp] = c
                open_frame[sp] = frame[i]
                open_row[sp] = first_row + i
                sp += 1
                if noting:
                    lists[2 * sp] = -1
                if counting:
                    n_open[c] += 1
            else:
                q = sp - 1
                if q < 0 or open_key[q] != c:
                    if counting and n_open[c] == 0:
                        q = -1
                    while q >= 0 and open_key[q] != c:
                        q -= 1
                if q < 0:
                    searched += sp
                    if searched > PATIENCE and not counting:
                        counting = True
                        for d in range(sp):
                            n_open[open_key[d]] += 1
                    if noting:
                        if n_orphans == 0:
                            lists[0] = -1
                        note_orphan(orphans, lists, n_orphans, first_row + i, c, frame[i], sp)
                    n_orphans += 1
                    if not noting:
                        continue
            if t >= now:
                now = t
            else:
                backwards += 1
                if now - t > max_backwards:
                    max_backwards = now - t
            if q < 0:
                continue
            if g & LEAVE:
                while sp > q + 1:
                    if noting and n_orphans > 0:
                        not_outlived(orphans, lists, sp, open_row[sp - 1])
                    sp -= 1
                    unwound += 1
                    if counting:
                        n_open[open_key[sp]] -= 1
                    out_ts[m] = now
                    out_frame[m] = open_frame[sp]
                    out_flags[m] = LEAVE | UNWOUND
                    m += 1
                if noting and n_orphans > 0:
                    outlived(orphans, lists, sp)
                sp -= 1
                if counting:
                    n_open[c] -= 1
            if i == next_mark:
                while k < n_marks and marks[k] == i:
                    out_marks[k] = first_out + m
                    k += 1
                next_mark = marks[k] if k < n_marks else -1
            last_row = first_out + m
            out_ts[m] = now
            out_frame[m] = open_frame[q]
            out_flags[m] = g
            m += 1
    state[DEPTH] = sp
    state[NOW] = now
    state[N_READ] = first_row + n
    state[N_WRITTEN] = first_out + m
    state[N_UNWOUND] += unwound
    state[N_BACKWARDS] += backwards
    state[MAX_BACKWARDS] = max_backwards
    state[N_ORPHANS] = n_orphans
    state[SEARCHED] = searched
    state[N_INSERTED] = j
    state[LAST_ROW] = last_row
    return m


def close(
    end_ts: cython.longlong,
    open_frame: cython.const[cython.int][::1],
    open_row: cython.const[cython.longlong][::1],
    lists: cython.longlong[::1],
    orphans: cython.longlong[::1],
    out_ts: cython.longlong[::1],
    out_frame: cython.int[::1],
    out_flags: cython.uchar[::1],
    state: cython.longlong[::1],
):
    """Leaves at end_ts what `balance` has left open, the innermost first. state[DEPTH] stays: the number of those
    calls. Lengths: out_* the depth, the others as `balance` has left them."""
    if state.shape[0] < N_STATE:
        raise ValueError("close: an array has the wrong length")
    n: cython.Py_ssize_t = int(state[DEPTH])
    noting: cython.bint = orphans.shape[0] > 0 and state[N_ORPHANS] > 0
    if (
        n < 0
        or out_ts.shape[0] < n
        or out_frame.shape[0] < n
        or out_flags.shape[0] < n
        or open_frame.shape[0] < n
        or open_row.shape[0] < n
        or lists.shape[0] < 2 * n + 2
        or (noting and orphans.shape[0] < O_WIDTH * state[N_ORPHANS])
    ):
        raise ValueError("close: an array has the wrong length")
    if end_ts < int(state[NOW]):
        end_ts = int(state[NOW])
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            sp: cython.Py_ssize_t = n - i
            if noting:
                not_outlived(orphans, lists, sp, open_row[sp - 1])
            out_ts[i] = end_ts
            out_frame[i] = open_frame[sp - 1]
            out_flags[i] = LEAVE | OPEN_AT_END
    state[N_WRITTEN] += n


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    balance = plain_integers(balance)
    balance_regular = plain_integers(balance_regular)
    close = plain_integers(close)
