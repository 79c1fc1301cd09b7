# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Number columns as JSON text. Cython's pure-Python mode: also runs interpreted.

Every function writes a comma behind each value, and returns the number of bytes. Capacity needed: 24 bytes a value.
"""

import cython

from traceferry.kernels.functions import c_inline

# Texts of the numbers below 1000, the first character in the lowest byte: without zeros in front, with three digits,
# and without zeros at the end, as after a decimal point; and how long the first and the last are.
FIRST = cython.declare(cython.uint[1000])
MIDDLE = cython.declare(cython.uint[1000])
LAST = cython.declare(cython.uint[1000])
FIRST_LENGTH = cython.declare(cython.uchar[1000])
LAST_LENGTH = cython.declare(cython.uchar[1000])

for _i in range(1000):
    MIDDLE[_i] = 48 + _i // 100 | 48 + _i // 10 % 10 << 8 | 48 + _i % 10 << 16
    LAST[_i] = MIDDLE[_i]
    FIRST_LENGTH[_i] = 1 if _i < 10 else 2 if _i < 100 else 3
    LAST_LENGTH[_i] = 1 if _i % 100 == 0 else 2 if _i % 10 == 0 else 3
    FIRST[_i] = MIDDLE[_i] >> 8 * (3 - FIRST_LENGTH[_i])


@c_inline
def put4(o: cython.uchar[::1], p: cython.Py_ssize_t, text: cython.uint) -> cython.void:
    """Four bytes, of which the text may need less: cheaper than to branch by its length, which is as good as random."""
    o[p] = text & 255
    o[p + 1] = text >> 8 & 255
    o[p + 2] = text >> 16 & 255
    o[p + 3] = text >> 24


@c_inline
def put32(o: cython.uchar[::1], p: cython.Py_ssize_t, v: cython.uint) -> cython.Py_ssize_t:
    if v < 1000:
        put4(o, p, FIRST[v])
        return p + FIRST_LENGTH[v]
    if v < 1000000:
        high: cython.uint = v // 1000
        put4(o, p, FIRST[high])
        p += FIRST_LENGTH[high]
        put4(o, p, MIDDLE[v - 1000 * high])
        return p + 3
    high = v // 1000000
    v -= 1000000 * high
    if high < 1000:
        put4(o, p, FIRST[high])
        p += FIRST_LENGTH[high]
    else:
        o[p] = 48 + high // 1000
        put4(o, p + 1, MIDDLE[high % 1000])
        p += 4
    high = v // 1000
    put4(o, p, MIDDLE[high])
    put4(o, p + 3, MIDDLE[v - 1000 * high])
    return p + 6


@c_inline
def put64(o: cython.uchar[::1], p: cython.Py_ssize_t, v: cython.ulonglong) -> cython.Py_ssize_t:
    n: cython.Py_ssize_t = 1
    w: cython.ulonglong = v
    if v >> 32 == 0:
        return put32(o, p, v)
    while w >= 10:
        n += 1
        w //= 10
    q: cython.Py_ssize_t = p + n
    while n:
        n -= 1
        o[p + n] = 48 + v % 10
        v //= 10
    return q


@c_inline
def put_decimals(o: cython.uchar[::1], p: cython.Py_ssize_t, ns: cython.uint) -> cython.Py_ssize_t:
    """The decimals of ns below 1000000 as ms, as many as they need. Writes up to 8 bytes."""
    high: cython.uint = ns // 1000
    low: cython.uint = ns - 1000 * high
    if ns == 0:
        return p
    o[p] = 46
    if low == 0:
        put4(o, p + 1, LAST[high])
        return p + 1 + LAST_LENGTH[high]
    put4(o, p + 1, MIDDLE[high])
    put4(o, p + 4, LAST[low])
    return p + 4 + LAST_LENGTH[low]


@c_inline
def put_millis(o: cython.uchar[::1], p: cython.Py_ssize_t, ns: cython.ulonglong) -> cython.Py_ssize_t:
    """ns as ms with as many decimals as they need, at most 6: exact."""
    return put_decimals(o, put64(o, p, ns // 1000000), ns % 1000000)


@c_inline
def put_null(o: cython.uchar[::1], p: cython.Py_ssize_t) -> cython.Py_ssize_t:
    o[p] = 110
    o[p + 1] = 117
    o[p + 2] = 108
    o[p + 3] = 108
    return p + 4


def ints(a: cython.const[cython.int][::1], o: cython.uchar[::1]) -> cython.Py_ssize_t:
    """int32 values; a negative one is null."""
    if o.shape[0] < 24 * a.shape[0]:
        raise ValueError("ints: the output is too short")
    p: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(a.shape[0]):
            if a[i] < 0:
                p = put_null(o, p)
            else:
                v: cython.uint = a[i]
                p = put32(o, p, v)
            o[p] = 44
            p += 1
    return p


def millis(a: cython.const[cython.longlong][::1], o: cython.uchar[::1]) -> cython.Py_ssize_t:
    """int64 ns → ms; a negative one is null."""
    if o.shape[0] < 24 * a.shape[0]:
        raise ValueError("millis: the output is too short")
    p: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    # The whole ms of the value before, which mostly are those of the next, too, and their text.
    digits = cython.declare(cython.uchar[16])
    n_digits: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    ms: cython.longlong = -1000000
    for k in range(16):
        digits[k] = 0
    with cython.nogil:
        for i in range(a.shape[0]):
            if a[i] < 0:
                p = put_null(o, p)
            else:
                ns: cython.longlong = a[i] - ms
                if 0 <= ns < 1000000:
                    for k in range(16):
                        o[p + k] = digits[k]
                else:
                    ns = a[i] % 1000000
                    ms = a[i] - ns
                    n_digits = put64(o, p, ms // 1000000) - p
                    for k in range(16):
                        digits[k] = o[p + k]
                p = put_decimals(o, p + n_digits, ns)
            o[p] = 44
            p += 1
    return p


def longs(a: cython.const[cython.longlong][::1], null: cython.longlong, o: cython.uchar[::1]) -> cython.Py_ssize_t:
    """int64 values as they are; one that is `null` is null."""
    if o.shape[0] < 24 * a.shape[0]:
        raise ValueError("longs: the output is too short")
    p: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(a.shape[0]):
            if a[i] == null:
                p = put_null(o, p)
            else:
                if a[i] < 0:
                    o[p] = 45
                    p += 1
                    # The smallest has no positive twin.
                    v: cython.ulonglong = -(a[i] + 1)
                    v += 1
                else:
                    v = a[i]
                p = put64(o, p, v)
            o[p] = 44
            p += 1
    return p


def sample_rows(
    stack: cython.const[cython.int][::1], ts: cython.const[cython.longlong][::1], o: cython.uchar[::1]
) -> cython.Py_ssize_t:
    """Rows [stack,ms,0]; a negative stack is null. Capacity needed: 48 bytes a row."""
    if o.shape[0] < 48 * stack.shape[0] or ts.shape[0] != stack.shape[0]:
        raise ValueError("sample_rows: the output is too short")
    p: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(stack.shape[0]):
            o[p] = 91
            p += 1
            if stack[i] < 0:
                p = put_null(o, p)
            else:
                v: cython.uint = stack[i]
                p = put32(o, p, v)
            o[p] = 44
            t: cython.ulonglong = ts[i] if ts[i] > 0 else 0
            p = put_millis(o, p + 1, t)
            o[p] = 44
            o[p + 1] = 48
            o[p + 2] = 93
            o[p + 3] = 44
            p += 4
    return p


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    ints = plain_integers(ints)
    longs = plain_integers(longs)
    millis = plain_integers(millis)
    sample_rows = plain_integers(sample_rows)
