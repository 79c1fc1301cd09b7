# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Interns call paths. Cython's pure-Python mode: also runs interpreted."""

import cython

LEAVE = cython.declare(cython.uint, 1)
GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
ALL_BITS = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# Indices into `state`.
ROW = cython.declare(cython.int, 0)
DEPTH = cython.declare(cython.int, 1)
N_STACKS = cython.declare(cython.int, 2)
N_OUT = cython.declare(cython.int, 3)


def rehash(
    prefix: cython.const[cython.int][::1],
    frame: cython.const[cython.int][::1],
    n: cython.Py_ssize_t,
    slots: cython.int[::1],
):
    """Enters the first n stacks into slots: a power of two long, more than n, all -1."""
    if n > prefix.shape[0] or n > frame.shape[0] or n >= slots.shape[0] or slots.shape[0] & (slots.shape[0] - 1):
        raise ValueError("rehash: an array has the wrong length")
    mask: cython.ulonglong = slots.shape[0] - 1
    h: cython.ulonglong
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            h = mix(prefix[i], frame[i]) & mask
            while slots[h] >= 0:
                h = (h + 1) & mask
            slots[h] = i


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def mix(prefix: cython.int, frame: cython.int) -> cython.ulonglong:
    a: cython.uint = prefix + 1
    b: cython.uint = frame + 1
    x: cython.ulonglong = a
    x = (x << 32 | b) * GOLDEN & ALL_BITS
    return x ^ x >> 29


def walk_calls(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    path: cython.int[::1],
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    out_ts: cython.longlong[::1],
    out_stack: cython.int[::1],
):
    """Follows a balanced stream of calls and writes the stack after each change that lasts, -1 when none is open.

    A state of no duration is left out, but for a call that begins and ends at once, which would not be seen at all.
    Stops early when the table of stacks is full (stack_prefix, or slots half full): grow it and call again. state: the
    row to go on at, the depth, the number of stacks, the number of samples written. Room needed: path n / 2 + 1,
    out_* n.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    room: cython.Py_ssize_t = stack_prefix.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or path.shape[0] < n // 2 + 1
        or out_ts.shape[0] < n
        or out_stack.shape[0] < n
        or stack_frame.shape[0] != room
        or n_slots & (n_slots - 1)
        or n_slots < 2 * room
        or state.shape[0] < 4
    ):
        raise ValueError("walk_calls: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    depth: cython.Py_ssize_t = int(state[DEPTH])
    n_stacks: cython.Py_ssize_t = int(state[N_STACKS])
    m: cython.Py_ssize_t = int(state[N_OUT])
    if i < 0 or depth < 0 or depth > path.shape[0] or n_stacks < 0 or n_stacks > room or m < 0 or m > i:
        raise ValueError("walk_calls: a state that cannot be")
    mask: cython.ulonglong = n_slots - 1
    h: cython.ulonglong
    top: cython.int = path[depth - 1] if depth > 0 else -1
    s: cython.int
    f: cython.int
    leaves: cython.bint
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            leaves = (flags[i] & LEAVE) != 0
            if leaves:
                if depth == 0:
                    bad = True
                    break
                depth -= 1
                top = path[depth - 1] if depth > 0 else -1
            else:
                f = frame[i]
                h = mix(top, f) & mask
                s = slots[h]
                while s >= 0 and not (stack_prefix[s] == top and stack_frame[s] == f):
                    h = (h + 1) & mask
                    s = slots[h]
                if s < 0:
                    if n_stacks >= room:
                        break
                    if depth >= path.shape[0]:
                        bad = True
                        break
                    s = n_stacks
                    slots[h] = s
                    stack_prefix[s] = top
                    stack_frame[s] = f
                    n_stacks += 1
                if depth >= path.shape[0]:
                    bad = True
                    break
                path[depth] = s
                depth += 1
                top = s
            i += 1
            if i == n or ts[i] != ts[i - 1] or (not leaves and (flags[i] & LEAVE) != 0):
                out_ts[m] = ts[i - 1]
                out_stack[m] = top
                m += 1
    state[ROW] = i
    state[DEPTH] = depth
    state[N_STACKS] = n_stacks
    state[N_OUT] = m
    if bad:
        raise ValueError("walk_calls: the stream is not balanced")


if not cython.compiled:
    from converter.interpreted import plain_integers

    rehash = plain_integers(rehash)
    walk_calls = plain_integers(walk_calls)
