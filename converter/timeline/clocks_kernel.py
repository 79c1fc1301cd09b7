# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Ticks to nanoseconds. Cython's pure-Python mode: also runs interpreted."""

import cython


def scale(
    ticks: cython.const[cython.longlong][::1],
    num: cython.longlong,
    den: cython.longlong,
    offset: cython.longlong,
    out: cython.longlong[::1],
):
    """out = floor(ticks * num / den) + offset, exact. ticks >= 0; num * den and every result must be below 2^63.

    Neighbours are close: a difference to the value before needs one product, and its quotient is estimated in floating
    point and corrected by at most one.
    """
    if out.shape[0] != ticks.shape[0] or num <= 0 or den <= 0:
        raise ValueError("scale: an array has the wrong length, or an invalid ratio")
    inverse: cython.double = num / cython.cast(cython.double, den)
    # floor(base * num / den) and what is left over, 0 <= rest < den.
    base: cython.longlong = 0
    whole: cython.longlong = 0
    rest: cython.longlong = 0
    near: cython.longlong = 1 << 20
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(ticks.shape[0]):
            d: cython.longlong = ticks[i] - base
            if d < 0 or d >= near:
                base = ticks[i]
                whole = base // den
                r: cython.longlong = (base - whole * den) * num
                whole *= num
                q: cython.longlong = r // den
                whole += q
                rest = r - q * den
                out[i] = whole + offset
                continue
            r = d * num + rest
            q = cython.cast(cython.longlong, d * inverse)
            r -= q * den
            while r >= den:
                r -= den
                q += 1
            if r < 0:
                r += den
                q -= 1
            out[i] = whole + q + offset


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    scale = plain_integers(scale)
