# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes moved objects, and what heap shots list. Cython's pure-Python mode: also runs interpreted. See
`scan_kernel`."""

import cython

from traceferry.importers.mono.events_inlined import again, are_inside, begin, step
from traceferry.importers.mono.state_inlined import (
    AT,
    B_WIDTH,
    BAD,
    BEGUN,
    BUFFER,
    DONE,
    END,
    EVENT_TS,
    ITEMS_FULL,
    KIND,
    N_ITEMS,
    N_POOL,
    N_ROWS,
    N_SECOND,
    N_STATE,
    NO_ROOM,
    POOL_FULL,
    ROWS_FULL,
    SECOND_FULL,
    VERSION,
    A,
    B,
    C,
)


def moves(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    out: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """The moved objects in the buffers, a piece at a time: s[N_ROWS] rows of time, old and new address.

    Returns DONE, ROWS_FULL or ITEMS_FULL; there must be room for the largest event.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    room: cython.Py_ssize_t = out.shape[0] // 3
    if s.shape[0] < N_STATE or not are_inside(buffers, n_buffers, d.shape[0]):
        raise ValueError("moves: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    n_pairs: cython.Py_ssize_t
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            if s[KIND] != 0x31:
                continue
            n_pairs = s[N_ITEMS] >> 1
            if n + n_pairs > room:
                result = ROWS_FULL
                again(s)
                break
            for i in range(n_pairs):
                out[3 * n] = s[EVENT_TS]
                out[3 * n + 1] = items[2 * i]
                out[3 * n + 2] = items[2 * i + 1]
                n += 1
    s[BUFFER] = row
    s[N_ROWS] = n
    return result


def heap(
    d: cython.const[cython.uchar][::1],
    buffers: cython.const[cython.ulonglong][::1],
    objects: cython.ulonglong[::1],
    references: cython.ulonglong[::1],
    held: cython.ulonglong[::1],
    items: cython.ulonglong[::1],
    s: cython.ulonglong[::1],
):
    """What heap shots list in parts of buffers: s[N_ROWS] rows of `objects`: time, address, class, size, how many
    references; those one after the other in `references`, s[N_POOL]; and s[N_SECOND] rows of `held`, the roots:
    time, and address of the root, object, 0 (from version 15 on) or object, kind, something more.

    Returns DONE, ROWS_FULL, POOL_FULL (of references), SECOND_FULL (of roots) or ITEMS_FULL.
    """
    n_buffers: cython.Py_ssize_t = buffers.shape[0] // B_WIDTH
    if s.shape[0] < N_STATE or s[N_POOL] > references.shape[0] or not are_inside(buffers, n_buffers, d.shape[0]):
        raise ValueError("heap: an array has the wrong length")
    result: cython.int = DONE
    row: cython.Py_ssize_t = s[BUFFER]
    n: cython.Py_ssize_t = s[N_ROWS]
    n_held: cython.Py_ssize_t = s[N_SECOND]
    i: cython.Py_ssize_t
    width: cython.Py_ssize_t = 2 if s[VERSION] >= 15 else 3
    n_items: cython.Py_ssize_t
    with cython.nogil:
        while result == DONE:
            if s[BEGUN] == 0 or s[AT] >= s[END]:
                if s[BEGUN] != 0:
                    row += 1
                    s[BEGUN] = 0
                if row >= n_buffers:
                    break
                begin(s, buffers, row)
                continue
            if not step(d, s, items):
                if s[BAD] == NO_ROOM:
                    result = ITEMS_FULL
                    break
                s[AT] = s[END]
                continue
            n_items = s[N_ITEMS]
            if s[KIND] == 0x26:
                if 5 * (n + 1) > objects.shape[0]:
                    result = ROWS_FULL
                elif cython.cast(cython.Py_ssize_t, s[N_POOL]) + n_items > references.shape[0]:
                    result = POOL_FULL
                else:
                    objects[5 * n] = s[EVENT_TS]
                    objects[5 * n + 1] = s[A]
                    objects[5 * n + 2] = s[B]
                    objects[5 * n + 3] = s[C]
                    objects[5 * n + 4] = n_items
                    for i in range(n_items):
                        references[s[N_POOL] + i] = items[i]
                    s[N_POOL] += n_items
                    n += 1
            elif s[KIND] == 0x36:
                if 4 * (n_held + n_items // width) > held.shape[0]:
                    result = SECOND_FULL
                else:
                    for i in range(n_items // width):
                        held[4 * n_held] = s[EVENT_TS]
                        held[4 * n_held + 1] = items[width * i]
                        held[4 * n_held + 2] = items[width * i + 1]
                        held[4 * n_held + 3] = items[width * i + 2] if width == 3 else 0
                        n_held += 1
            if result != DONE:
                again(s)
    s[BUFFER] = row
    s[N_ROWS] = n
    s[N_SECOND] = n_held
    return result


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    moves = plain_integers(moves)
    heap = plain_integers(heap)
