"""The switches of one thread become rows of its states, in order of time."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from traceferry.native.places cimport are_places, begin_places

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

# How many rows can be put before a thread's first step.
cdef enum:
    ROOM = 2


cdef class StateRows:
    """Rows of a thread's states, by time. ts int64; state uint8; cpu int32; letter uint8: why it left its processor;
    left, wake int32: rows of the samples where it left, and where it was woken, -1 for none."""

    cdef object _columns
    cdef int64_t[::1] _ts
    cdef uint8_t[::1] _state, _letter
    cdef int32_t[::1] _cpu, _left, _wake
    cdef Py_ssize_t _begin, _end

    def __cinit__(self, Py_ssize_t most):
        kinds = np.int64, np.uint8, np.int32, np.uint8, np.int32, np.int32
        self._columns = [np.empty(ROOM + most, kind) for kind in kinds]
        self._ts, self._state, self._cpu, self._letter, self._left, self._wake = self._columns
        self._begin = self._end = ROOM

    @property
    def columns(self):
        """Returns (ts, state, cpu, letter, left, wake)."""
        return tuple(column[self._begin:self._end] for column in self._columns)

    def put_before(self, columns):
        """Puts rows before the first: at most two."""
        n = len(columns[0])
        if n > self._begin:
            raise ValueError("put_before: too many rows")
        self._begin -= n
        for column, values in zip(self._columns, columns, strict=True):
            column[self._begin:self._begin + n] = values

    cdef inline void add(
        self, int64_t ts, uint8_t state, int32_t cpu, uint8_t letter, int32_t left, int32_t wake
    ) noexcept nogil:
        cdef Py_ssize_t n = self._end
        self._ts[n], self._state[n], self._cpu[n] = ts, state, cpu
        self._letter[n], self._left[n], self._wake[n] = letter, left, wake
        self._end = n + 1


def steps_by_thread(
    const int32_t[::1] places not None, Py_ssize_t n_threads, const int64_t[::1] ts not None,
    const int64_t[::1] rows not None, const uint8_t[::1] letters not None
):
    """Returns what threads did at switches, thread by thread and in the order of the switches: (ends int64: where those
    of each thread end; ts int64, what uint8, row int32, letter uint8).

    places: of each switch the number of the thread that left, and that of the one that got the processor; ts: of every
    sample; rows: the sample of each switch; letters: why the former left; the latter has 0.
    """
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t n_steps = places.shape[0]
    cdef Py_ssize_t n_samples = ts.shape[0]
    cdef Py_ssize_t i, place, row, at
    if n_steps != 2 * n or letters.shape[0] != n:
        raise ValueError("steps_by_thread: columns of several lengths")
    for i in range(n):
        if not 0 <= rows[i] < n_samples:
            raise ValueError("steps_by_thread: a sample that there is not")
    if not are_places(places, n_threads):
        raise ValueError("steps_by_thread: a thread that there is not")
    ends_array, ts_array, what_array = np.zeros(n_threads, np.int64), np.empty(n_steps, np.int64), np.empty(n_steps, np.uint8)
    row_array, letter_array = np.empty(n_steps, np.int32), np.empty(n_steps, np.uint8)
    cdef int64_t[::1] ends = ends_array
    cdef int64_t[::1] ts_out = ts_array
    cdef uint8_t[::1] what_out = what_array
    cdef int32_t[::1] row_out = row_array
    cdef uint8_t[::1] letter_out = letter_array
    with nogil:
        begin_places(places, ends)
        for i in range(n_steps):
            place, row = places[i], rows[i >> 1]
            at = ends[place]
            ts_out[at], row_out[at] = ts[row], row
            what_out[at] = IN if i & 1 else OUT
            letter_out[at] = 0 if i & 1 else letters[i >> 1]
            ends[place] = at + 1
    return ends_array, ts_array, what_array, row_array, letter_array


def seen_running(
    const int64_t[::1] rows not None, const int32_t[:] event not None, const uint8_t[::1] tells_nothing not None,
    const int64_t[::1] ts not None, const int32_t[:] cpu not None
):
    """Returns when and where the samples in these rows say that their thread ran: (ts int64, cpu int32).

    event, ts, cpu: of every sample; tells_nothing: of each event, whether its samples say nothing of that.
    """
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t n_seen = 0
    cdef Py_ssize_t m = 0
    cdef Py_ssize_t i, row
    if {len(event), len(cpu)} != {len(ts)}:
        raise ValueError("seen_running: columns of several lengths")
    for i in range(n):
        if not 0 <= rows[i] < ts.shape[0] or not 0 <= event[rows[i]] < tells_nothing.shape[0]:
            raise ValueError("seen_running: a sample or an event that there is not")
        n_seen += not tells_nothing[event[rows[i]]]
    ts_array, cpu_array = np.empty(n_seen, np.int64), np.empty(n_seen, np.int32)
    cdef int64_t[::1] ts_out = ts_array
    cdef int32_t[::1] cpu_out = cpu_array
    with nogil:
        for i in range(n):
            row = rows[i]
            if not tells_nothing[event[row]]:
                ts_out[m], cpu_out[m] = ts[row], cpu[row]
                m += 1
    return ts_array, cpu_array


def states(steps, const uint8_t[::1] letters not None, seen, wakes, idle, int64_t end, bint tells_returns):
    """Returns the StateRows from a thread's first step on.

    steps: (ts int64, what uint8, letter uint8, cpu int32, left int32), by time; left: the row of the sample where it
    left, -1 for none; letters: Letter bits; seen: (ts int64, cpu int32) of the samples that say that it ran, by time;
    wakes: (ts int64, row int32, proof uint8) of when it was woken, by time; row: of the sample; proof: Proof bits, or
    None where the recording has all processors; idle: int64, of each step since when the processor of the next one had
    been idle then, or None where nothing tells; end: of the thread, not before its last step; tells_returns: whether the
    recording tells when threads go on.
    """
    cdef const int64_t[::1] ts = steps[0]
    cdef const uint8_t[::1] what = steps[1]
    cdef const uint8_t[::1] letter = steps[2]
    cdef const int32_t[::1] cpu = steps[3]
    cdef const int32_t[::1] left = steps[4]
    cdef const int64_t[::1] seen_ts = seen[0]
    cdef const int32_t[::1] seen_cpu = seen[1]
    cdef const int64_t[::1] wake_ts = wakes[0]
    cdef const int32_t[::1] wake_row = wakes[1]
    cdef const uint8_t[::1] proof = wakes[2]
    cdef const int64_t[::1] idle_since = idle
    cdef bint is_partial = proof is not None
    cdef bint has_idle = idle_since is not None
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t n_seen = seen_ts.shape[0]
    cdef Py_ssize_t n_wakes = wake_ts.shape[0]
    if {n} != {len(what), len(letter), len(cpu), len(left)} or len(seen_cpu) != n_seen or len(wake_row) != n_wakes:
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
                rows.add(now, RUNNING, cpu[i], letter[i], left[i], -1)
                if what[i] == IN and next_what == IN:
                    # It went on, and is not told to have left before it went on again.
                    back_at = now
                    while s < n_seen and seen_ts[s] < next_ts:
                        back_at = max(now, seen_ts[s])
                        s += 1
                    rows.add(back_at, UNKNOWN, cpu[i], letter[i], left[i], -1)
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
            rows.add(now, state, cpu[i], letter[i], left[i], -1)
            if is_woken:
                rows.add(woken_at, woken, cpu[i], letter[i], left[i], wake_row[w])
            if is_seen:
                rows.add(seen_at, RUNNING, back_cpu, letter[i], left[i], -1)
    return rows


def scheduling_columns(
    rows, int64_t offset, const int32_t[::1] reasons not None, const int32_t[::1] stacks not None,
    const int32_t[::1] wakers not None
):
    """Returns the columns of SCHEDULING, without those that hold nothing.

    rows: as StateRows.columns; offset: of their times; reasons: the text of each letter; stacks, wakers: of each
    sample, wakers: the thread that it is of.
    """
    cdef const int64_t[::1] ts = rows[0]
    cdef const uint8_t[::1] state = rows[1]
    cdef const uint8_t[::1] letter = rows[3]
    cdef const int32_t[::1] left = rows[4]
    cdef const int32_t[::1] wake = rows[5]
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t n_samples = stacks.shape[0]
    cdef bint has_left = False
    cdef bint is_woken = False
    cdef bint is_bad = False
    cdef Py_ssize_t i
    if {n} != {len(state), len(rows[2]), len(letter), len(left), len(wake)} or len(wakers) != n_samples:
        raise ValueError("scheduling_columns: columns of several lengths")
    ts_array, reason_array = np.empty(n, np.int64), np.empty(n, np.int32)
    stack_array, waker_array, waker_stack_array = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int32)
    cdef int64_t[::1] ts_out = ts_array
    cdef int64_t[::1] waker_out = waker_array
    cdef int32_t[::1] reason_out = reason_array
    cdef int32_t[::1] stack_out = stack_array
    cdef int32_t[::1] waker_stack_out = waker_stack_array
    with nogil:
        for i in range(n):
            if left[i] >= n_samples or wake[i] >= n_samples or letter[i] >= reasons.shape[0]:
                is_bad = True
                break
            ts_out[i] = ts[i] + offset
            reason_out[i] = reasons[letter[i]] if letter[i] and state[i] != RUNNING else -1
            stack_out[i] = waker_out[i] = waker_stack_out[i] = -1
            if left[i] >= 0:
                has_left = True
                stack_out[i] = stacks[left[i]]
            if wake[i] >= 0:
                is_woken = True
                waker_out[i] = wakers[wake[i]]
                waker_stack_out[i] = stacks[wake[i]]
    if is_bad:
        raise ValueError("scheduling_columns: a sample or a letter that there is not")
    found = {"ts": ts_array, "state": rows[1], "cpu": rows[2], "reason": reason_array}
    if has_left:
        found["stack"] = stack_array
    if is_woken:
        found |= {"waker": waker_array, "waker_stack": waker_stack_array}
    return found
