"""See `_running.pxd`."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from traceferry.native.interning cimport intern_pair

cdef ThreadState a_thread
cdef OpenCall an_open_call
cdef MethodSums some_sums
cdef Span a_span
THREAD_STATE = np.asarray(<ThreadState[:1]>&a_thread).dtype
OPEN_CALL = np.asarray(<OpenCall[:1]>&an_open_call).dtype
METHOD_SUMS = np.asarray(<MethodSums[:1]>&some_sums).dtype
SPAN = np.asarray(<Span[:1]>&a_span).dtype


cdef class RunningSums:
    def __cinit__(
        self, const int32_t[::1] thread_of, Py_ssize_t n_threads, Py_ssize_t deepest, Py_ssize_t n_slots,
        Py_ssize_t n_spans
    ):
        """thread_of: for each buffer the number of its thread; -1: its calls are not added. deepest: so many open calls
        of each thread, n_slots: so many pairs of thread and method, n_spans: so many spans have room."""
        cdef Py_ssize_t i
        cdef Py_ssize_t size = 1
        if min(n_threads, deepest, n_slots, n_spans) < 0 or n_slots > 1 << 30:
            raise ValueError("RunningSums: a negative number, or too many slots")
        for i in range(thread_of.shape[0]):
            if thread_of[i] >= n_threads:
                raise ValueError("RunningSums: a buffer of a thread that is not there")
        self.thread_of = thread_of
        self.threads = np.zeros(n_threads, THREAD_STATE)
        self.open_calls = np.empty(n_threads * deepest, OPEN_CALL)
        self.owner = np.empty(n_slots, np.int32)
        self.method = np.empty(n_slots, np.uint64)
        self.sums = np.zeros(n_slots, METHOD_SUMS)
        while size < 2 * n_slots:
            size *= 2
        self.slots = np.full(size, -1, np.int32)
        self.spans = np.empty(n_spans, SPAN)
        self.room = deepest
        self.thread = -1

    def losses(self, int32_t thread):
        """Returns by name what was irregular in a thread, and how many of its calls are open."""
        if not 0 <= thread < self.threads.shape[0]:
            raise ValueError("losses: a thread that is not there")
        return self.threads[thread]

    def closed(self, int32_t thread, int64_t end_ts):
        """Ends the open calls of a thread that is not left out. Returns its methods, their sums, and the spans of their
        outermost calls, with the methods' indices as slots."""
        if not 0 <= thread < self.threads.shape[0]:
            raise ValueError("closed: a thread that is not there")
        self.go_to(thread)
        self.end(end_ts)
        self.go_to(-1)
        sums = np.asarray(self.sums)
        own = np.flatnonzero(np.asarray(self.owner)[:self.n_slots] == thread)
        own = own[sums["n_enters"][own] > 0]
        rank = np.full(self.n_slots, -1, np.int64)
        rank[own] = np.arange(len(own))
        spans = np.asarray(self.spans)[:self.n_spans].copy()
        spans["slot"] = rank[spans["slot"]]
        return np.asarray(self.method)[own], sums[own], spans[spans["slot"] >= 0]

    cdef void go_to(self, int32_t thread) noexcept nogil:
        """Goes to another thread; -1 leaves the one it is at."""
        cdef Py_ssize_t i
        cdef ThreadState* state
        if thread >= 0 and self.threads[thread].left_out:
            thread = -1
        if thread == self.thread:
            return
        if self.thread >= 0:
            state = &self.threads[self.thread]
            state.depth = self.top - self.bottom
            state.now = self.now
            state.in_callees = self.in_callees
        self.thread = thread
        if thread >= 0:
            state = &self.threads[thread]
            self.bottom = thread * self.room
            self.top = self.bottom + state.depth
            self.now = state.now
            self.in_callees = state.in_callees
            for i in range(N_AT_HAND):
                self.at_hand[i] = -1

    cdef void go_to_buffer(self, Py_ssize_t row) noexcept nogil:
        """Goes to the thread of a buffer."""
        self.go_to(self.thread_of[row] if row < self.thread_of.shape[0] else -1)

    cdef void end(self, int64_t end_ts) noexcept nogil:
        """Ends the open calls of the thread."""
        cdef int64_t now = end_ts if end_ts > self.now else self.now
        while self.top > self.bottom:
            self.top, self.in_callees = ended(self, self.top, now, self.in_callees)

    cdef void leave_out(self) noexcept nogil:
        """Leaves out the thread from here on."""
        self.threads[self.thread].left_out = 1
        self.thread = -1

    cdef int32_t slot_of(self, uint64_t method) noexcept nogil:
        """Returns the thread's slot of a method, which is new if it has to be; -1: all are used."""
        cdef int32_t slot
        if self.n_slots == self.owner.shape[0]:
            return -1
        slot = intern_pair(self.owner, self.method, self.slots, self.n_slots, self.thread, method)
        self.n_slots += slot == self.n_slots
        self.at_hand[(method >> 3) & (N_AT_HAND - 1)] = slot
        return slot

    cdef void keep_span(self, Py_ssize_t top, int64_t now) noexcept nogil:
        """Keeps the span of the open call at `top`, which ends now."""
        if self.n_spans < self.spans.shape[0]:
            self.spans[self.n_spans] = Span(self.open_calls[top].slot, self.open_calls[top].entered, now)
            self.n_spans += 1

    cdef void leave_outer(self, int64_t ts, uint64_t method) noexcept nogil:
        """Leaves a method that is not the innermost: the calls above it are unwound. Of one that is not open, the leave
        is ignored."""
        cdef int32_t slot = self.slot_of(method)
        cdef ThreadState* state = &self.threads[self.thread]
        if slot < 0:
            self.leave_out()
        elif self.sums[slot].n_active == 0:
            state.ignored += 1
        else:
            state.backwards += ts < self.now
            self.now = ts if ts >= self.now else self.now
            while self.open_calls[self.top - 1].slot != slot:
                self.top, self.in_callees = ended(self, self.top, self.now, self.in_callees)
                state.unwound += 1
            self.top, self.in_callees = ended(self, self.top, self.now, self.in_callees)
