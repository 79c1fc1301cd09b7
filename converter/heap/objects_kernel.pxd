cdef extern from *:
    """
    #if defined(__GNUC__)
    #define traceferry_prefetch(address) __builtin_prefetch(address, 1)
    #else
    #define traceferry_prefetch(address) ((void)(address))
    #endif
    """
    void prefetch "traceferry_prefetch" (const void *) noexcept nogil
