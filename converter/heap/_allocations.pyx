"""Allocations added up."""

from libc.stdint cimport int32_t, int64_t

from traceferry.native.saturating cimport minus, plus


def tally(const int32_t[::1] index, const int64_t[::1] size, int64_t[:, ::1] totals):
    """Adds rows of `allocations` to the totals of an index column, as their stacks: ALLOCATED and FREED bytes,
    N_ALLOCATED and N_FREED objects. Rows without an index or a size are left out."""
    cdef Py_ssize_t n = index.shape[0]
    cdef Py_ssize_t i, s
    if size.shape[0] != n or totals.shape[1] != N_TOTALS:
        raise ValueError("tally: an array has the wrong length")
    for i in range(n):
        if index[i] >= totals.shape[0]:
            raise ValueError("tally: invalid index")
    with nogil:
        for i in range(n):
            s = index[i]
            if s >= 0 and size[i] > 0:
                totals[s, ALLOCATED] = plus(totals[s, ALLOCATED], size[i])
                totals[s, N_ALLOCATED] += 1
            elif s >= 0 and size[i] < 0:
                totals[s, FREED] = plus(totals[s, FREED], minus(0, size[i]))
                totals[s, N_FREED] += 1
