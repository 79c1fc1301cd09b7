"""Calls added up by thread and method while they are read, for a kernel that decodes them: see `running.py`.

The kernel's loop keeps `top`, `now` and `in_callees` of the thread at hand in variables of its own, and hands them
through `entered` and `left`: beside arrays of the same type, the C compiler would load attributes each time.
"""

import cython

from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.interning import intern_pair

# Columns of a thread: how many calls are open, what was irregular, what the innermost call has spent in its callees.
DEPTH_OF = cython.declare(cython.int, 0)
IGNORED = cython.declare(cython.int, 1)
UNWOUND_CALLS = cython.declare(cython.int, 2)
BACKWARDS = cython.declare(cython.int, 3)
LEFT_OUT = cython.declare(cython.int, 4)
NOW = cython.declare(cython.int, 5)
IN_CALLEES = cython.declare(cython.int, 6)
THREAD_WIDTH = cython.declare(cython.Py_ssize_t, 7)
THREAD_COLUMNS = {"depth": 0, "ignored": 1, "unwound": 2, "backwards": 3, "left_out": 4, "width": 7}
# Of an open call.
SLOT = cython.declare(cython.int, 0)
ENTERED = cython.declare(cython.int, 1)
IN_CALLEES_BEFORE = cython.declare(cython.int, 2)
OPEN_WIDTH = cython.declare(cython.Py_ssize_t, 3)
# Of a slot.
N_ENTERS = cython.declare(cython.int, 0)
IN_OUTERMOST_NS = cython.declare(cython.int, 1)
ON_TOP_NS = cython.declare(cython.int, 2)
N_ACTIVE = cython.declare(cython.int, 3)  # how many of its calls are open
N_OUTERMOST = cython.declare(cython.int, 4)
SLOT_WIDTH = cython.declare(cython.Py_ssize_t, 5)
# Of an outermost call: its slot, begin and end. So many of each slot are kept.
SPAN_WIDTH = cython.declare(cython.Py_ssize_t, 3)
MOST_SPANS = cython.declare(cython.longlong, 64)
N_AT_HAND = cython.declare(cython.Py_ssize_t, 256)


@cython.final
@cython.cclass
class RunningSums:
    """Adds up the calls of threads by method, as a `Balancer` balances them.

    thread_of: for each buffer the number of its thread; -1: its calls are not added. threads: a row of THREAD_WIDTH for
    each, zeros at first. open_calls: rows of OPEN_WIDTH, for each thread as many. Slots are pairs of a thread and a
    method: owner, method, sums (rows of SLOT_WIDTH, zeros at first); slots: their hash table, -1 at first. spans: rows
    of SPAN_WIDTH. counts: how many slots and spans there are.

    Left out is a thread whose calls are deeper than its rows, or come when all slots are used.
    """

    thread_of: cython.const[cython.int][::1]
    threads: cython.longlong[::1]
    open_calls: cython.longlong[::1]
    owner: cython.int[::1]
    method: cython.ulonglong[::1]
    sums: cython.longlong[::1]
    slots: cython.int[::1]
    spans: cython.longlong[::1]
    counts: cython.longlong[::1]
    n_slots: cython.int
    n_spans: cython.Py_ssize_t
    # The thread that is added to; -1: none. Its open calls are from `bottom` to `top`, and have that much room; its
    # latest slots are at hand by the low bits of their methods.
    thread: cython.int
    room: cython.Py_ssize_t
    bottom: cython.Py_ssize_t
    top: cython.Py_ssize_t
    now: cython.longlong
    in_callees: cython.longlong
    at_hand: cython.int[256]

    def __init__(self, arrays: tuple):
        """Of the arrays in that order. Raises ValueError where their lengths do not fit together."""
        i: cython.Py_ssize_t
        self.thread_of, self.threads, self.open_calls, self.owner, self.method = arrays[:5]
        self.sums, self.slots, self.spans, self.counts = arrays[5:]
        n: cython.Py_ssize_t = self.threads.shape[0] // THREAD_WIDTH
        room: cython.Py_ssize_t = self.owner.shape[0]
        n_slots: cython.Py_ssize_t = self.slots.shape[0]
        self.room = self.open_calls.shape[0] // n if n > 0 else 0
        if (
            self.room * n != self.open_calls.shape[0]
            or self.room % OPEN_WIDTH
            or self.method.shape[0] != room
            or self.sums.shape[0] != room * SLOT_WIDTH
            or n_slots < 2 * room
            or n_slots & (n_slots - 1)
            or self.counts.shape[0] < 2
            or not 0 <= self.counts[0] <= room
            or self.counts[1] < 0
        ):
            raise ValueError("sums: an array has the wrong length")
        for i in range(self.thread_of.shape[0]):
            if self.thread_of[i] >= n:
                raise ValueError("sums: a thread without a row")
        if not cython.compiled:
            self.at_hand = [-1] * N_AT_HAND
        self.n_slots = self.counts[0]
        self.n_spans = self.counts[1]
        self.top = 0
        self.now = 0
        self.in_callees = 0
        self.thread = -1

    @c_function
    def go_to(self, thread: cython.int) -> cython.void:
        """To another thread; -1 leaves the one it is at."""
        i: cython.Py_ssize_t
        if thread >= 0 and self.threads[THREAD_WIDTH * thread + LEFT_OUT]:
            thread = -1
        self.counts[0] = self.n_slots
        self.counts[1] = self.n_spans
        if thread == self.thread:
            return
        if self.thread >= 0:
            at: cython.Py_ssize_t = THREAD_WIDTH * self.thread
            self.threads[at + DEPTH_OF] = (self.top - self.bottom) // OPEN_WIDTH
            self.threads[at + NOW] = self.now
            self.threads[at + IN_CALLEES] = self.in_callees
        self.thread = thread
        if thread >= 0:
            at = THREAD_WIDTH * thread
            self.bottom = thread * self.room
            self.top = self.bottom + self.threads[at + DEPTH_OF] * OPEN_WIDTH
            self.now = self.threads[at + NOW]
            self.in_callees = self.threads[at + IN_CALLEES]
            for i in range(N_AT_HAND):
                self.at_hand[i] = -1

    @c_function
    def go_to_buffer(self, row: cython.Py_ssize_t) -> cython.void:
        self.go_to(self.thread_of[row] if row < self.thread_of.shape[0] else -1)

    @c_function
    def end(self, end_ts: cython.longlong) -> cython.void:
        """Ends the open calls of the thread."""
        now: cython.longlong = end_ts if end_ts > self.now else self.now
        while self.top > self.bottom:
            self.top, self.in_callees = ended(self, self.top, now, self.in_callees)

    @c_function
    def leave_out(self) -> cython.void:
        self.threads[THREAD_WIDTH * self.thread + LEFT_OUT] = 1
        self.thread = -1

    @c_function
    def slot_of(self, method: cython.ulonglong) -> cython.int:
        """The thread's slot of a method, which is new if it has to be; -1: all are used."""
        if self.n_slots == self.owner.shape[0]:
            return -1
        slot: cython.int = intern_pair(self.owner, self.method, self.slots, self.n_slots, self.thread, method)
        self.n_slots += slot == self.n_slots
        self.at_hand[(method >> 3) & (N_AT_HAND - 1)] = slot
        return slot

    @c_function
    def keep_span(self, top: cython.Py_ssize_t, now: cython.longlong) -> cython.void:
        """Of the open call at `top`, which ends now."""
        at: cython.Py_ssize_t = SPAN_WIDTH * self.n_spans
        if at + SPAN_WIDTH <= self.spans.shape[0]:
            self.spans[at] = self.open_calls[top + SLOT]
            self.spans[at + 1] = self.open_calls[top + ENTERED]
            self.spans[at + 2] = now
            self.n_spans += 1

    @c_function
    def leave_outer(self, ts: cython.longlong, method: cython.ulonglong) -> cython.void:
        """Of a call that is not the innermost: those above it are unwound. Of one that is not open: it is left out."""
        at: cython.Py_ssize_t = THREAD_WIDTH * self.thread
        slot: cython.int = self.slot_of(method)
        if slot < 0:
            self.leave_out()
        elif self.sums[SLOT_WIDTH * slot + N_ACTIVE] == 0:
            self.threads[at + IGNORED] += 1
        else:
            self.threads[at + BACKWARDS] += ts < self.now
            self.now = ts if ts >= self.now else self.now
            while self.open_calls[self.top - OPEN_WIDTH + SLOT] != slot:
                self.top, self.in_callees = ended(self, self.top, self.now, self.in_callees)
                self.threads[at + UNWOUND_CALLS] += 1
            self.top, self.in_callees = ended(self, self.top, self.now, self.in_callees)


@c_inline
@cython.returns((cython.Py_ssize_t, cython.longlong))
def ended(c: RunningSums, top: cython.Py_ssize_t, now: cython.longlong, in_callees: cython.longlong):
    """The innermost open call ends: `top` and `in_callees` after it."""
    top -= OPEN_WIDTH
    at: cython.Py_ssize_t = SLOT_WIDTH * c.open_calls[top + SLOT]
    dur: cython.longlong = now - c.open_calls[top + ENTERED]
    c.sums[at + ON_TOP_NS] += dur - in_callees
    c.sums[at + N_ACTIVE] -= 1
    if c.sums[at + N_ACTIVE] == 0:
        c.sums[at + IN_OUTERMOST_NS] += dur
        c.sums[at + N_OUTERMOST] += 1
        if c.sums[at + N_OUTERMOST] <= MOST_SPANS:
            c.keep_span(top, now)
    return top, c.open_calls[top + IN_CALLEES_BEFORE] + dur


@c_inline
@cython.returns((cython.Py_ssize_t, cython.longlong, cython.longlong))
def entered(
    c: RunningSums,
    ts: cython.longlong,
    method: cython.ulonglong,
    top: cython.Py_ssize_t,
    now: cython.longlong,
    in_callees: cython.longlong,
):
    """`top`, `now` and `in_callees` after the enter of a method; times that fall are raised."""
    slot: cython.int = c.at_hand[(method >> 3) & (N_AT_HAND - 1)]
    if slot < 0 or c.method[slot] != method:
        slot = c.slot_of(method)
    if slot < 0 or top - c.bottom == c.room:
        c.leave_out()
        return top, now, in_callees
    if ts >= now:
        now = ts
    else:
        c.threads[THREAD_WIDTH * c.thread + BACKWARDS] += 1
    c.sums[SLOT_WIDTH * slot + N_ENTERS] += 1
    c.sums[SLOT_WIDTH * slot + N_ACTIVE] += 1
    c.open_calls[top + SLOT] = slot
    c.open_calls[top + ENTERED] = now
    c.open_calls[top + IN_CALLEES_BEFORE] = in_callees
    return top + OPEN_WIDTH, now, 0


@c_inline
@cython.returns((cython.Py_ssize_t, cython.longlong, cython.longlong))
def left(
    c: RunningSums,
    ts: cython.longlong,
    method: cython.ulonglong,
    top: cython.Py_ssize_t,
    now: cython.longlong,
    in_callees: cython.longlong,
):
    """`top`, `now` and `in_callees` after the leave of a method."""
    if top > c.bottom and ts >= now and c.method[c.open_calls[top - OPEN_WIDTH + SLOT]] == method:
        top, in_callees = ended(c, top, ts, in_callees)
        return top, ts, in_callees
    c.top, c.now, c.in_callees = top, now, in_callees
    c.leave_outer(ts, method)
    return c.top, c.now, c.in_callees
