"""Arithmetic of int64 that ends at 2^63 - 1 instead of wrapping: damaged times and sizes add up to anything."""

from libc.stdint cimport INT64_MAX, int64_t


cdef inline int64_t plus(int64_t a, int64_t b) noexcept nogil:
    """Returns the sum of two numbers, neither negative."""
    return INT64_MAX if a > INT64_MAX - b else a + b


cdef inline int64_t minus(int64_t a, int64_t b) noexcept nogil:
    """Returns the difference a - b, 0 if b is larger."""
    if a <= b:
        return 0
    return INT64_MAX if b < 0 and a > INT64_MAX + b else a - b
