"""Memory of the C library, for arrays of structures that an object owns."""

from libc.stdlib cimport realloc


cdef inline void* resized(void* memory, size_t size) except NULL:
    """Returns the memory, which may be NULL, with another size, to be freed by the caller."""
    memory = realloc(memory, size if size else 1)
    if memory == NULL:
        raise MemoryError
    return memory


cdef inline void* grown(void* held, Py_ssize_t n, size_t size) except NULL:
    """Returns the memory with room for one more of this size where n are held: it doubles."""
    if n == 0 or (n >= 16 and n & (n - 1) == 0):
        return resized(held, max(2 * n, 16) * size)
    return held
