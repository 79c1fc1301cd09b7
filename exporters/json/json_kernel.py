# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Number columns as JSON text. Cython's pure-Python mode: also runs interpreted.

Every function writes a comma behind each value, and returns the number of bytes. Capacity needed: 24 bytes a value.
"""

import cython

from traceferry.kernels.functions import c_inline

PAIRS = cython.declare(cython.uchar[200])
# Three digits, and how many of them there are without zeros at the end.
DECIMALS = cython.declare(cython.uchar[4000])

for _i in range(100):
    PAIRS[2 * _i] = 48 + _i // 10
    PAIRS[2 * _i + 1] = 48 + _i % 10
for _i in range(1000):
    DECIMALS[4 * _i] = 48 + _i // 100
    DECIMALS[4 * _i + 1] = 48 + _i // 10 % 10
    DECIMALS[4 * _i + 2] = 48 + _i % 10
    DECIMALS[4 * _i + 3] = 1 if _i % 100 == 0 else 2 if _i % 10 == 0 else 3


@c_inline
def put32(o: cython.uchar[::1], p: cython.Py_ssize_t, v: cython.uint) -> cython.Py_ssize_t:
    n: cython.Py_ssize_t
    r: cython.uint
    q: cython.Py_ssize_t
    if v < 10:
        o[p] = 48 + v
        return p + 1
    if v < 100:
        n = 2
    elif v < 1000:
        n = 3
    elif v < 10000:
        n = 4
    elif v < 100000:
        n = 5
    elif v < 1000000:
        n = 6
    elif v < 10000000:
        n = 7
    elif v < 100000000:
        n = 8
    elif v < 1000000000:
        n = 9
    else:
        n = 10
    q = p + n
    p = q
    while v >= 100:
        r = v % 100
        v //= 100
        p -= 2
        o[p] = PAIRS[2 * r]
        o[p + 1] = PAIRS[2 * r + 1]
    if v < 10:
        o[p - 1] = 48 + v
    else:
        o[p - 2] = PAIRS[2 * v]
        o[p - 1] = PAIRS[2 * v + 1]
    return q


@c_inline
def put64(o: cython.uchar[::1], p: cython.Py_ssize_t, v: cython.ulonglong) -> cython.Py_ssize_t:
    n: cython.Py_ssize_t = 1
    q: cython.Py_ssize_t
    w: cython.ulonglong = v
    if v >> 32 == 0:
        return put32(o, p, v)
    while w >= 10:
        n += 1
        w //= 10
    q = p + n
    while n:
        n -= 1
        o[p + n] = 48 + v % 10
        v //= 10
    return q


@c_inline
def put_decimals(o: cython.uchar[::1], p: cython.Py_ssize_t, ns: cython.uint) -> cython.Py_ssize_t:
    """The decimals of ns below 1000000 as ms, as many as they need. Writes up to 7 bytes."""
    high: cython.uint = ns // 1000
    low: cython.uint = ns % 1000
    if ns == 0:
        return p
    o[p] = 46
    o[p + 1] = DECIMALS[4 * high]
    o[p + 2] = DECIMALS[4 * high + 1]
    o[p + 3] = DECIMALS[4 * high + 2]
    if low == 0:
        return p + 1 + DECIMALS[4 * high + 3]
    o[p + 4] = DECIMALS[4 * low]
    o[p + 5] = DECIMALS[4 * low + 1]
    o[p + 6] = DECIMALS[4 * low + 2]
    return p + 4 + DECIMALS[4 * low + 3]


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
    v: cython.uint
    with cython.nogil:
        for i in range(a.shape[0]):
            if a[i] < 0:
                p = put_null(o, p)
            else:
                v = a[i]
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
    # The whole ms of the value before, which mostly are those of the next, too: where they are, and until which ns.
    begin: cython.Py_ssize_t = 0
    n_digits: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    ms: cython.longlong = -1
    ns: cython.longlong
    with cython.nogil:
        for i in range(a.shape[0]):
            if a[i] < 0:
                p = put_null(o, p)
            else:
                ns = a[i] - ms
                if ms >= 0 and 0 <= ns < 1000000:
                    for k in range(n_digits):
                        o[p + k] = o[begin + k]
                else:
                    ns = a[i] % 1000000
                    ms = a[i] - ns
                    n_digits = put64(o, p, ms // 1000000) - p
                begin = p
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
    v: cython.ulonglong
    with cython.nogil:
        for i in range(a.shape[0]):
            if a[i] == null:
                p = put_null(o, p)
            else:
                if a[i] < 0:
                    o[p] = 45
                    p += 1
                    # The smallest has no positive twin.
                    v = -(a[i] + 1)
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
    v: cython.uint
    t: cython.ulonglong
    with cython.nogil:
        for i in range(stack.shape[0]):
            o[p] = 91
            p += 1
            if stack[i] < 0:
                p = put_null(o, p)
            else:
                v = stack[i]
                p = put32(o, p, v)
            o[p] = 44
            t = ts[i] if ts[i] > 0 else 0
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
