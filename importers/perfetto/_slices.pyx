"""Slices within each other."""

from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np


def placed(
    const int64_t[::1] ts, const int64_t[::1] dur, const int64_t[::1] track, const int64_t[::1] depth,
    int64_t offset, int64_t first_ts, int64_t last_ts
):
    """Returns the begins and the ends of slices, int64, and of how many the end was moved: a slice ends with the one
    that it is in at the latest, which is the last of its track in front of it that is less deep.

    dur: less than 0 has no end; track: -1 is none; offset: added to times, which are moved between the two others."""
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t row
    cdef Py_ssize_t n_moved = 0
    cdef int64_t last_track = -1
    cdef int32_t outer
    if dur.shape[0] != n or track.shape[0] != n or depth.shape[0] != n:
        raise ValueError("columns of different lengths")
    for row in range(n):
        last_track = max(last_track, track[row])
    cdef int32_t[::1] last = np.full(last_track + 1, -1, np.int32)
    cdef int32_t[::1] parent = np.empty(n, np.int32)
    begins, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] begin = begins
    cdef int64_t[::1] end = ends
    with nogil:
        for row in range(n):
            begin[row] = min(max(ts[row] + offset, first_ts), last_ts)
            end[row] = last_ts if dur[row] < 0 else begin[row] + min(dur[row], last_ts - begin[row])
            if track[row] < 0:
                continue
            outer = last[track[row]]
            while outer >= 0 and depth[outer] >= depth[row]:
                outer = parent[outer]
            parent[row], last[track[row]] = outer, <int32_t> row
            if outer >= 0 and end[row] > end[outer]:
                end[row] = end[outer]
                n_moved += 1
        for row in range(n):
            end[row] = max(end[row], begin[row])
    return begins, ends, n_moved


def extent(const int64_t[::1] ts, const int64_t[::1] end, const int64_t[::1] rows, int64_t first, int64_t last):
    """Returns the first time and the last one of slices; first, last: the values where there are no rows."""
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t place
    cdef int64_t row
    if end.shape[0] != ts.shape[0]:
        raise ValueError("columns of different lengths")
    for place in range(n):
        row = rows[place]
        if not 0 <= row < ts.shape[0]:
            raise ValueError(f"no row {row}")
        first, last = min(first, ts[row]), max(last, end[row])
    return first, last


def nested(
    const int64_t[::1] ts, const int64_t[::1] end, const int32_t[::1] frame, const uint8_t[::1] of_enter,
    const uint8_t[::1] of_leave
):
    """Returns the begins and ends of slices as they follow each other, as calls: times, int64; frames, int32; flags,
    uint8. At one time, what ends comes before what begins, the innermost first. ts: rising, of equal ones the outer
    first; frame, of_enter, of_leave: of each slice, the flags of its begin and of its end. Raises ValueError where
    slices overlap without being nested."""
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t row, place
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t depth = 0
    if not end.shape[0] == frame.shape[0] == of_enter.shape[0] == of_leave.shape[0] == n:
        raise ValueError("columns of different lengths")
    times_array, frames_array = np.empty(2 * n, np.int64), np.empty(2 * n, np.int32)
    flags_array, open_array = np.empty(2 * n, np.uint8), np.empty(n, np.int32)
    cdef int64_t[::1] times = times_array
    cdef int32_t[::1] frames = frames_array
    cdef uint8_t[::1] flags = flags_array
    cdef int32_t[::1] opened = open_array
    with nogil:
        for place in range(n + 1):
            while depth and (place == n or end[opened[depth - 1]] <= ts[place]):
                depth -= 1
                row = opened[depth]
                times[at], frames[at], flags[at] = end[row], frame[row], of_leave[row]
                at += 1
            if place == n:
                break
            if end[place] < ts[place] or depth and end[place] > end[opened[depth - 1]]:
                break
            times[at], frames[at], flags[at] = ts[place], frame[place], of_enter[place]
            opened[depth] = <int32_t> place
            at, depth = at + 1, depth + 1
    if place < n:
        raise ValueError("slices overlap without being nested")
    return times_array, frames_array, flags_array
