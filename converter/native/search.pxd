"""Binary search in rising columns."""

from libc.stdint cimport int64_t, uint64_t


# What a column may hold.
ctypedef fused Sorted:
    int64_t
    uint64_t


cdef inline Py_ssize_t first_from(
    const uint64_t[::1] column, Py_ssize_t low, Py_ssize_t high, uint64_t value
) noexcept nogil:
    """Returns the first of column[low:high] that is not below value; high for none."""
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) >> 1
        if column[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline Py_ssize_t last_at(
    const Sorted[::1] column, Py_ssize_t low, Py_ssize_t high, Sorted value
) noexcept nogil:
    """Returns the last of column[low:high] that is not above value; low - 1 for none."""
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) >> 1
        if column[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1
