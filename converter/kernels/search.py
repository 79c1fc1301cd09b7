"""Binary search in rising columns."""

import cython

from traceferry.kernels.functions import c_inline

# What a column may hold.
Sorted = cython.fused_type(cython.longlong, cython.ulonglong)


@c_inline
def first_from(
    column: cython.const[cython.ulonglong][::1],
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    value: cython.ulonglong,
) -> cython.Py_ssize_t:
    """The first of column[low:high] that is not below value; high for none."""
    while low < high:
        middle: cython.Py_ssize_t = (low + high) >> 1
        if column[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@c_inline
def last_at(
    column: cython.const[Sorted][::1], low: cython.Py_ssize_t, high: cython.Py_ssize_t, value: Sorted
) -> cython.Py_ssize_t:
    """The last of column[low:high] that is not above value; low - 1 for none."""
    while low < high:
        middle: cython.Py_ssize_t = (low + high) >> 1
        if column[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1
