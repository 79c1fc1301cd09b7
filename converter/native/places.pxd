"""Numbers of groups, 0 to n - 1, by which rows are put together: a counting sort."""

from libc.stdint cimport int32_t, int64_t


cdef inline bint are_places(const int32_t[::1] places, Py_ssize_t n_places) noexcept nogil:
    """Returns whether each is 0 to n_places - 1."""
    cdef Py_ssize_t i
    for i in range(places.shape[0]):
        if not 0 <= places[i] < n_places:
            return False
    return True


cdef inline void begin_places(const int32_t[::1] places, int64_t[::1] begins) noexcept nogil:
    """Writes where the rows of each place begin, one place after the other. begins: zeros, one for each place. Who puts
    the rows there and counts each up is left with where they end."""
    cdef Py_ssize_t i
    cdef int64_t count
    cdef int64_t following = 0
    for i in range(places.shape[0]):
        begins[places[i]] += 1
    for i in range(begins.shape[0]):
        count = begins[i]
        begins[i] = following
        following += count
