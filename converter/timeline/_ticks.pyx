"""Ticks to nanoseconds."""

from libc.stdint cimport int64_t


def scale(const int64_t[::1] ticks, int64_t num, int64_t den, int64_t offset, int64_t[::1] out):
    """out = floor(ticks * num / den) + offset, exact. ticks >= 0; num * den and every result must be below 2^63.

    Neighbours are close: a difference to the value before needs one product, and its quotient is estimated in floating
    point and corrected by at most one.
    """
    cdef Py_ssize_t i
    cdef int64_t d, r, q
    if out.shape[0] != ticks.shape[0] or num <= 0 or den <= 0:
        raise ValueError("scale: an array has the wrong length, or an invalid ratio")
    cdef double inverse = num / <double>(den)
    # floor(base * num / den) and what is left over, 0 <= rest < den.
    cdef int64_t base = 0
    cdef int64_t whole = 0
    cdef int64_t rest = 0
    cdef int64_t near = 1 << 20
    with nogil:
        for i in range(ticks.shape[0]):
            d = ticks[i] - base
            if d < 0 or d >= near:
                base = ticks[i]
                whole = base // den
                r = (base - whole * den) * num
                whole *= num
                q = r // den
                whole += q
                rest = r - q * den
                out[i] = whole + offset
                continue
            r = d * num + rest
            q = <int64_t>(d * inverse)
            r -= q * den
            while r >= den:
                r -= den
                q += 1
            if r < 0:
                r += den
                q -= 1
            out[i] = whole + q + offset
