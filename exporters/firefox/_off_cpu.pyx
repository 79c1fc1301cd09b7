"""Rows of scheduling become the times that a thread was off the processors: a wait and the time from its end to the next
run are one."""

from libc.stdint cimport INT64_MIN, int32_t, int64_t, uint8_t

import numpy as np

# As converter/model/schema.py numbers them.
cdef enum:
    WAITING = 0
    RUNNING = 1
    RUNNABLE = 3

# As exporters/json/_numbers.pyx has it.
cdef int64_t ABSENT = INT64_MIN


cdef class OffCpu:
    """Rows, by time. ts, dur int64, in ns; state uint8 and reason int32: of the row that it began with; cpu, moved
    int64: the processor that it was taken off, and the one that it ran on next, where that is another; runnable int64:
    how long it could have run; woken_at int64, waker int64, waker_stack int32: of the row that tells of it. ABSENT
    stands where cpu, moved and runnable have nothing to tell."""

    cdef readonly object ts, dur, state, reason, cpu, moved, runnable, woken_at, waker, waker_stack


def off_cpu_rows(
    const int64_t[:] ts not None, const uint8_t[:] state not None, const int32_t[:] cpu not None,
    const int32_t[:] reason not None, const int64_t[:] waker not None, const int32_t[:] waker_stack not None,
    int64_t end_ts
):
    """Returns the OffCpu of a thread. ts and so on: its rows of SCHEDULING; end_ts: of the thread."""
    cdef Py_ssize_t n = ts.shape[0]
    if {n} != {len(state), len(cpu), len(reason), len(waker), len(waker_stack)}:
        raise ValueError("off_cpu_rows: columns of several lengths")
    # A row is off the processors and no part of the one before, or none.
    cdef Py_ssize_t most = 0
    cdef Py_ssize_t m = 0
    cdef Py_ssize_t i, after
    cdef int64_t end
    for i in range(n):
        most += state[i] != RUNNING and not (i and state[i] == RUNNABLE and state[i - 1] == WAITING)
    ts_array, dur_array, cpu_array, moved_array, runnable_array, woken_array, waker_array = (
        np.empty(most, np.int64) for _ in range(7)
    )
    state_array = np.empty(most, np.uint8)
    reason_array, stack_array = np.empty(most, np.int32), np.empty(most, np.int32)
    cdef int64_t[::1] ts_out = ts_array
    cdef int64_t[::1] dur_out = dur_array
    cdef int64_t[::1] cpu_out = cpu_array
    cdef int64_t[::1] moved_out = moved_array
    cdef int64_t[::1] runnable_out = runnable_array
    cdef int64_t[::1] woken_out = woken_array
    cdef int64_t[::1] waker_out = waker_array
    cdef uint8_t[::1] state_out = state_array
    cdef int32_t[::1] reason_out = reason_array
    cdef int32_t[::1] stack_out = stack_array
    with nogil:
        i = 0
        while i < n:
            if state[i] == RUNNING:
                i += 1
                continue
            after = i + (state[i] == WAITING and i + 1 < n and state[i + 1] == RUNNABLE)
            end = ts[after + 1] if after + 1 < n else max(end_ts, ts[n - 1])
            ts_out[m] = ts[i]
            dur_out[m] = end - ts[i]
            state_out[m] = state[i]
            reason_out[m] = reason[i]
            cpu_out[m] = cpu[i] if cpu[i] >= 0 else ABSENT
            moved_out[m] = ABSENT
            if after + 1 < n and state[after + 1] == RUNNING and cpu[after + 1] >= 0 and cpu[after + 1] != cpu[i]:
                moved_out[m] = cpu[after + 1]
            runnable_out[m] = end - ts[after] if state[after] == RUNNABLE and end != ts[after] else ABSENT
            woken_out[m] = ts[after]
            waker_out[m] = waker[after]
            stack_out[m] = waker_stack[after]
            m += 1
            i = after + 1
    cdef OffCpu found = OffCpu()
    found.ts, found.dur, found.state, found.reason, found.cpu = ts_array, dur_array, state_array, reason_array, cpu_array
    found.moved, found.runnable, found.woken_at = moved_array, runnable_array, woken_array
    found.waker, found.waker_stack = waker_array, stack_array
    return found
