# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Makes the hash table of names and looks pointers up in it. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.importers.mono.names_inlined import frame_at, hashed, id_of, is_checked
from traceferry.importers.mono.state_inlined import N_STATE


def enter_keys(
    new: cython.const[cython.ulonglong][::1],
    keys: cython.ulonglong[::1],
    ids: cython.int[::1],
):
    """Enters distinct pointers, numbered from 0 on, into an empty hash table: a power of two, more than them."""
    n: cython.Py_ssize_t = new.shape[0]
    size: cython.Py_ssize_t = keys.shape[0]
    if ids.shape[0] != size or size <= n or size & (size - 1):
        raise ValueError("enter_keys: an array has the wrong length")
    mask: cython.Py_ssize_t = size - 1
    h: cython.Py_ssize_t
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            h = hashed(new[i]) & mask
            while ids[h] >= 0:
                h = (h + 1) & mask
            keys[h] = new[i]
            ids[h] = i


def add_key(
    key: cython.ulonglong,
    number: cython.int,
    keys: cython.ulonglong[::1],
    ids: cython.int[::1],
):
    """Enters one more pointer, with its number, into a hash table that is not full."""
    size: cython.Py_ssize_t = keys.shape[0]
    if ids.shape[0] != size or size == 0 or size & (size - 1):
        raise ValueError("add_key: an array has the wrong length")
    h: cython.Py_ssize_t = hashed(key) & (size - 1)
    n: cython.Py_ssize_t = 0
    while ids[h] >= 0:
        h = (h + 1) & (size - 1)
        n += 1
        if n >= size - 1:
            raise ValueError("add_key: the table is full")
    keys[h] = key
    ids[h] = number


def frames_of(
    wanted: cython.const[cython.ulonglong][::1],
    ts: cython.const[cython.longlong][::1],
    keys: cython.const[cython.ulonglong][::1],
    ids: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    defined_at: cython.const[cython.int][::1],
    defined_ts: cython.const[cython.longlong][::1],
    defined: cython.const[cython.int][::1],
    found: cython.int[::1],
    s: cython.ulonglong[::1],
):
    """The frames of pointers at times. Returns the row of the first pointer that is not in the table, or how many."""
    n: cython.Py_ssize_t = wanted.shape[0]
    i: cython.Py_ssize_t
    number: cython.int
    if (
        s.shape[0] < N_STATE
        or ts.shape[0] != n
        or found.shape[0] != n
        or not is_checked(s, keys, ids, frames, defined_at, defined_ts, defined)
    ):
        raise ValueError("frames_of: an array has the wrong length")
    for i in range(n):
        number = id_of(keys, ids, wanted[i])
        if number < 0:
            return i
        found[i] = frame_at(frames, defined_at, defined_ts, defined, number, ts[i])
    return n


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    enter_keys = plain_integers(enter_keys)
    add_key = plain_integers(add_key)
    frames_of = plain_integers(frames_of)
