"""The switches of one thread become rows of its states, in order of time."""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

# As converter/model/schema.py and scheduling.py number them.
cdef enum:
    WAITING = 0
    RUNNING = 1
    PREEMPTED = 2
    RUNNABLE = 3
    UNKNOWN = 4
    IN = 0
    OUT = 1
    NOTHING = 2

# Properties of a letter.
cpdef enum Letter:
    COULD_RUN = 1
    HAS_ENDED = 2

# What a wake proves of a thread, of which the recording has some processors only.
cpdef enum Proof:
    WAITED = 1
    WAITS_HERE = 2

cdef enum:
    NEVER_TS = 0x7FFFFFFFFFFFFFFF


cdef class StateRows:
    """Rows of a thread's states. ts int64; state uint8; cpu, step, wake int32: the step that a row is of, and of the
    wakes the one by which it began, -1 for none."""

    cdef readonly object ts, state, cpu, step, wake
    cdef int64_t[::1] _ts
    cdef uint8_t[::1] _state
    cdef int32_t[::1] _cpu, _step, _wake
    cdef Py_ssize_t n

    def __cinit__(self, Py_ssize_t most):
        self.ts, self.state = np.empty(most, np.int64), np.empty(most, np.uint8)
        self.cpu, self.step, self.wake = (np.empty(most, np.int32) for _ in range(3))
        self._ts, self._state, self._cpu, self._step, self._wake = self.ts, self.state, self.cpu, self.step, self.wake

    cdef inline void add(
        self, int64_t ts, uint8_t state, int32_t cpu, Py_ssize_t step, int32_t wake
    ) noexcept nogil:
        self._ts[self.n], self._state[self.n], self._cpu[self.n] = ts, state, cpu
        self._step[self.n], self._wake[self.n] = step, wake
        self.n += 1

    cdef shorten(self):
        self.ts, self.state = self.ts[:self.n], self.state[:self.n]
        self.cpu, self.step, self.wake = self.cpu[:self.n], self.step[:self.n], self.wake[:self.n]


def states(
    const int64_t[::1] ts not None, const uint8_t[::1] what not None, const uint8_t[::1] letter not None,
    const int32_t[::1] cpu not None, const uint8_t[::1] letters not None, seen, wakes, idle, int64_t end,
    bint tells_returns
):
    """Returns the StateRows from a thread's first step on.

    ts, what, letter, cpu: of its steps, by time; letters: Letter bits; seen: (ts int64, cpu int32) of the samples that
    say that it ran, by time; wakes: (ts int64, proof uint8) of when it was woken, by time; proof: Proof bits, or None
    where the recording has all processors; idle: int64, of each step since when the processor of the next one had been
    idle then, or None where nothing tells; end: of the thread, not before its last step; tells_returns: whether the
    recording tells when threads go on.
    """
    cdef const int64_t[::1] seen_ts = seen[0]
    cdef const int32_t[::1] seen_cpu = seen[1]
    cdef const int64_t[::1] wake_ts = wakes[0]
    cdef const uint8_t[::1] proof = wakes[1]
    cdef const int64_t[::1] idle_since = idle
    cdef bint is_partial = proof is not None
    cdef bint has_idle = idle_since is not None
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t n_seen = seen_ts.shape[0]
    cdef Py_ssize_t n_wakes = wake_ts.shape[0]
    if {n} != {len(what), len(letter), len(cpu)} or len(seen_cpu) != n_seen:
        raise ValueError("states: columns of several lengths")
    if (is_partial and len(proof) != n_wakes) or (has_idle and len(idle_since) != n):
        raise ValueError("states: columns of several lengths")
    if n and int(np.max(letter)) >= len(letters):
        raise ValueError("states: a letter that there is not")
    cdef StateRows rows = StateRows(3 * n)
    cdef Py_ssize_t s = 0
    cdef Py_ssize_t w = 0
    cdef Py_ssize_t i
    cdef int64_t now, next_ts, seen_at, woken_at, back_at, until
    cdef int32_t back_cpu
    cdef uint8_t next_what, state, woken, properties
    cdef bint is_seen, is_missing, is_woken
    with nogil:
        for i in range(n):
            now = ts[i]
            next_ts = ts[i + 1] if i + 1 < n else end
            next_what = what[i + 1] if i + 1 < n else NOTHING
            while s < n_seen and seen_ts[s] <= now:
                s += 1
            while w < n_wakes and wake_ts[w] < now:
                w += 1
            if what[i] != OUT:
                rows.add(now, RUNNING, cpu[i], i, -1)
                if what[i] == IN and next_what == IN:
                    # It went on, and is not told to have left before it went on again.
                    back_at = now
                    while s < n_seen and seen_ts[s] < next_ts:
                        back_at = max(now, seen_ts[s])
                        s += 1
                    rows.add(back_at, UNKNOWN, cpu[i], i, -1)
                continue
            properties = letters[letter[i]]
            seen_at = seen_ts[s] if s < n_seen else NEVER_TS
            woken_at = wake_ts[w] if w < n_wakes else NEVER_TS
            is_seen = is_missing = False
            back_cpu = cpu[i + 1] if i + 1 < n else -1
            if not properties & HAS_ENDED:
                # It left, and is not told to have gone on.
                is_seen = next_what != IN and seen_at <= next_ts and (seen_at < next_ts or next_what == NOTHING)
                is_missing = next_what == OUT
                if is_missing and has_idle:
                    # It was woken where nothing else was to run.
                    back_at = max(woken_at, idle_since[i])
                    if back_at <= next_ts:
                        seen_at, is_seen, is_missing = back_at, True, False
                if is_seen and next_what != OUT:
                    back_cpu = seen_cpu[s]
            state = PREEMPTED if properties & COULD_RUN else WAITING
            if tells_returns and (is_missing or (is_seen and next_what != OUT)):
                state = UNKNOWN
            until = seen_at if is_seen else next_ts
            is_woken = state == WAITING and not properties & HAS_ENDED and woken_at <= until
            woken = RUNNABLE
            if is_partial and not properties & HAS_ENDED:
                # What was not recorded may have run it meanwhile.
                if not is_woken or not proof[w] & WAITED:
                    state = UNKNOWN
                if is_woken and not proof[w] & WAITS_HERE:
                    woken = UNKNOWN
            rows.add(now, state, cpu[i], i, -1)
            if is_woken:
                rows.add(woken_at, woken, cpu[i], i, w)
            if is_seen:
                rows.add(seen_at, RUNNING, back_cpu, i, -1)
    rows.shorten()
    return rows
