"""Calls added up by thread and method while they are read, for a loop that decodes them.

That loop keeps `top`, `now` and `in_callees` of the thread at hand in variables of its own, and hands them through
`entered` and `left`: beside arrays of the same type, the C compiler would load attributes each time.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef enum:
    N_AT_HAND = 256
    # So many spans of outermost calls are kept of each slot.
    SPANS_OF_SLOT = 64


cdef struct OpenCall:
    int64_t slot
    int64_t entered
    int64_t in_callees  # what its caller had spent in callees before


cdef struct Span:
    int64_t slot
    int64_t begin
    int64_t end


cdef struct MethodSums:
    int64_t n_enters
    int64_t in_outermost_ns
    int64_t on_top_ns
    int64_t n_active  # how many of its calls are open
    int64_t n_outermost


cdef struct ThreadState:
    int64_t depth
    int64_t ignored
    int64_t unwound
    int64_t backwards
    int64_t left_out
    int64_t now
    int64_t in_callees


cdef class RunningSums:
    """Adds up the calls of threads by method, as a `Balancer` balances them. Slots are pairs of a thread and a method.

    A thread is left out if its calls are deeper than there is room for, or come when all slots are used.
    """

    cdef const int32_t[::1] thread_of
    cdef ThreadState[::1] threads
    cdef OpenCall[::1] open_calls
    cdef int32_t[::1] owner
    cdef uint64_t[::1] method
    cdef MethodSums[::1] sums
    cdef int32_t[::1] slots
    cdef Span[::1] spans
    cdef int32_t n_slots
    cdef Py_ssize_t n_spans
    # The thread that is added to; -1: none. Its open calls are from `bottom` to `top`, and have that much room; its
    # latest slots are at hand by the low bits of their methods.
    cdef int32_t thread
    cdef Py_ssize_t room
    cdef Py_ssize_t bottom
    cdef Py_ssize_t top
    cdef int64_t now
    cdef int64_t in_callees
    cdef int32_t[N_AT_HAND] at_hand

    cdef void go_to(self, int32_t thread) noexcept nogil
    cdef void go_to_buffer(self, Py_ssize_t row) noexcept nogil
    cdef void leave_out(self) noexcept nogil
    cdef void end(self, int64_t end_ts) noexcept nogil
    cdef int32_t slot_of(self, uint64_t method) noexcept nogil
    cdef void keep_span(self, Py_ssize_t top, int64_t now) noexcept nogil
    cdef void leave_outer(self, int64_t ts, uint64_t method) noexcept nogil


cdef inline (Py_ssize_t, int64_t) ended(
    RunningSums c, Py_ssize_t top, int64_t now, int64_t in_callees
) noexcept nogil:
    """Ends the innermost open call; returns `top` and `in_callees` after it."""
    top -= 1
    cdef OpenCall* call = &c.open_calls[top]
    cdef MethodSums* sums = &c.sums[call.slot]
    cdef int64_t dur = now - call.entered
    sums.on_top_ns += dur - in_callees
    sums.n_active -= 1
    if sums.n_active == 0:
        sums.in_outermost_ns += dur
        sums.n_outermost += 1
        if sums.n_outermost <= SPANS_OF_SLOT:
            c.keep_span(top, now)
    return top, call.in_callees + dur


cdef inline (Py_ssize_t, int64_t, int64_t) entered(
    RunningSums c, int64_t ts, uint64_t method, Py_ssize_t top, int64_t now, int64_t in_callees
) noexcept nogil:
    """Enters a method at a time, which is raised to `now` if it is before; returns `top`, `now` and `in_callees` after
    it."""
    cdef int32_t slot = c.at_hand[(method >> 3) & (N_AT_HAND - 1)]
    if slot < 0 or c.method[slot] != method:
        slot = c.slot_of(method)
    if slot < 0 or top - c.bottom == c.room:
        c.leave_out()
        return top, now, in_callees
    if ts >= now:
        now = ts
    else:
        c.threads[c.thread].backwards += 1
    cdef MethodSums* sums = &c.sums[slot]
    sums.n_enters += 1
    sums.n_active += 1
    cdef OpenCall* call = &c.open_calls[top]
    call.slot = slot
    call.entered = now
    call.in_callees = in_callees
    return top + 1, now, 0


cdef inline (Py_ssize_t, int64_t, int64_t) left(
    RunningSums c, int64_t ts, uint64_t method, Py_ssize_t top, int64_t now, int64_t in_callees
) noexcept nogil:
    """Leaves a method; returns `top`, `now` and `in_callees` after it."""
    if top > c.bottom and ts >= now and c.method[c.open_calls[top - 1].slot] == method:
        top, in_callees = ended(c, top, ts, in_callees)
        return top, ts, in_callees
    c.top, c.now, c.in_callees = top, now, in_callees
    c.leave_outer(ts, method)
    return c.top, c.now, c.in_callees
