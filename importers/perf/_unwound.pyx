"""Callchains of samples whose stacks were unwound."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

cdef uint64_t USER = <uint64_t>-512
cdef uint64_t USER_DEFERRED = <uint64_t>-640
cdef uint64_t GUEST = <uint64_t>-2048


def with_user_parts(chains, const int64_t[::1] rows not None, stacks, const uint64_t[::1] endings not None):
    """Returns new callchains, (nth, chain, start, n): that of the sample rows[nth[i]] is chain[start[i]:start[i] + n[i]].
    It is what was recorded in front of the user's part, then the frames of the stack, then GUEST and the ending, if that
    is not 0. There is none where it would not be better than what was recorded: where the stack has no caller, and the
    user's part has one.

    chains: as recorded, of all samples: (chain, start, n): uint64, int64, int32. stacks: of the rows: (first, pc,
    is_exact): int64 [n + 1], uint64, uint8: USER stands in front of a frame that is exact. nth, start, n: int64."""
    cdef const uint64_t[::1] recorded = chains[0]
    cdef const int64_t[::1] start = chains[1]
    cdef const int32_t[::1] length = chains[2]
    cdef const int64_t[::1] first = stacks[0]
    cdef const uint64_t[::1] pc = stacks[1]
    cdef const uint8_t[::1] is_exact = stacks[2]
    cdef Py_ssize_t n = rows.shape[0]
    cdef Py_ssize_t nth, at, frame
    cdef Py_ssize_t n_kept = 0
    cdef int64_t row, n_frames
    cdef int64_t size = 0
    if start.shape[0] != length.shape[0] or pc.shape[0] != is_exact.shape[0]:
        raise ValueError("columns of several lengths")
    if first.shape[0] != n + 1 or endings.shape[0] != n:
        raise ValueError("not a stack for each sample")
    keys, starts, sizes, befores = (np.empty(n, np.int64) for _ in range(4))
    cdef int64_t[::1] key = keys
    cdef int64_t[::1] start_of = starts
    cdef int64_t[::1] size_of = sizes
    cdef int64_t[::1] before = befores
    for nth in range(n):
        row = rows[nth]
        if not 0 <= row < start.shape[0]:
            raise ValueError("a sample that is not there")
        if not (0 <= length[row] <= recorded.shape[0] and 0 <= start[row] <= recorded.shape[0] - length[row]):
            raise ValueError("a callchain outside the data")
        if not 0 <= first[nth] <= first[nth + 1] <= pc.shape[0]:
            raise ValueError("a stack outside the data")
        at = 0
        while at < length[row] and recorded[start[row] + at] != USER and recorded[start[row] + at] != USER_DEFERRED:
            at += 1
        n_frames = first[nth + 1] - first[nth]
        if n_frames > 1 or (n_frames == 1 and length[row] - at <= 2):
            key[n_kept], before[n_kept], start_of[n_kept] = nth, at, size
            size += at + n_frames + 2 * (endings[nth] != 0)
            for frame in range(first[nth], first[nth + 1]):
                size += is_exact[frame] != 0
            size_of[n_kept] = size - start_of[n_kept]
            n_kept += 1
    made = np.empty(size, np.uint64)
    cdef uint64_t[::1] chain = made
    size = 0
    for nth in range(n_kept):
        row = rows[key[nth]]
        for at in range(before[nth]):
            chain[size] = recorded[start[row] + at]
            size += 1
        for frame in range(first[key[nth]], first[key[nth] + 1]):
            if is_exact[frame]:
                chain[size] = USER
                size += 1
            chain[size] = pc[frame]
            size += 1
        if endings[key[nth]]:
            chain[size], chain[size + 1] = GUEST, endings[key[nth]]
            size += 2
    return keys[:n_kept], made, starts[:n_kept], sizes[:n_kept]
