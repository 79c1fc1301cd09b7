"""Numbers as text, where few are written or few have more than some digits."""

from libc.stdint cimport uint8_t, uint64_t


cdef inline uint8_t* put_decimal(uint8_t* o, uint64_t v) noexcept nogil:
    """Writes a number at o, at most 20 bytes. Returns what is behind it."""
    cdef Py_ssize_t n = 1
    cdef uint64_t w = v
    cdef uint8_t* end
    while w >= 10:
        n += 1
        w //= 10
    end = o + n
    while n:
        n -= 1
        o[n] = 48 + v % 10
        v //= 10
    return end


cdef inline uint8_t* put_prefixed_hex(uint8_t* o, uint64_t v) noexcept nogil:
    """Writes a number as Python's hex() does, at most 18 bytes. Returns what is behind it."""
    cdef Py_ssize_t n = 1
    cdef Py_ssize_t i
    cdef uint8_t digit
    while n < 16 and v >> 4 * n:
        n += 1
    o[0], o[1] = c"0", c"x"
    o += 2
    for i in range(n):
        digit = v >> 4 * (n - 1 - i) & 15
        o[i] = 48 + digit if digit < 10 else 87 + digit
    return o + n
