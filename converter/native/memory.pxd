"""Memory of the C library, for arrays of structures that an object owns."""

from libc.stdlib cimport realloc


cdef inline void* resized(void* memory, size_t size) except NULL:
    """Returns the memory, which may be NULL, with another size, to be freed by the caller."""
    memory = realloc(memory, size if size else 1)
    if memory == NULL:
        raise MemoryError
    return memory
