# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Follows calls as stacks, and interns call paths. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.kernels.calls import LEAVE
from traceferry.kernels.interning import intern_pair

# Of packed times: more ns than fit beside a bit.
LONG = cython.declare(cython.longlong, 0xFFFE)

# Indices into the `state` of `walk_calls`.
ROW = cython.declare(cython.int, 0)
N_OUT = cython.declare(cython.int, 1)
DEPTH = cython.declare(cython.int, 2)
LAST = cython.declare(cython.int, 3)
LAST_TS = cython.declare(cython.int, 4)
N_SAMPLES = cython.declare(cython.int, 5)
SAMPLE_TS = cython.declare(cython.int, 6)
SAMPLE = cython.declare(cython.int, 7)
N_STACKS = cython.declare(cython.int, 8)

# What the row before was, in LAST.
NO_ROW = cython.declare(cython.int, 0)
ENTER_ROW = cython.declare(cython.int, 1)
LEAVE_ROW = cython.declare(cython.int, 2)


def walk_calls(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    longest: cython.longlong,
    state: cython.longlong[::1],
    path: cython.int[::1],
    stack_prefix: cython.int[::1],
    stack_frame: cython.int[::1],
    slots: cython.int[::1],
    out_ts: cython.longlong[::1],
    out_stack: cython.int[::1],
):
    """Follows a piece of a balanced stream of calls and writes each stack that lasts, -1 when none is open, with the
    time from which it does.

    A state of no duration is left out, but for a call that begins and ends at once, which would not be seen at all.
    One that lasts for more than `longest` is written again where it ends. The state after the last row is not written:
    the next piece shows whether it lasts.

    Stops early when the table of stacks (stack_prefix, or slots half full) or the path is full: grow it and call again.
    state, all 0 at first: the row to go on at, how many were written, the depth, whether the row before entered or left
    and when, how many states lasted, the last one's time and stack, the number of stacks. The caller puts the first two
    back for each piece. out_*: as long as 2 n.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    size: cython.Py_ssize_t = stack_prefix.shape[0]
    deepest: cython.Py_ssize_t = path.shape[0]
    n_slots: cython.Py_ssize_t = slots.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or out_ts.shape[0] < 2 * n
        or out_stack.shape[0] < 2 * n
        or stack_frame.shape[0] != size
        or n_slots & (n_slots - 1)
        or n_slots < 2 * size
        or state.shape[0] < 9
    ):
        raise ValueError("walk_calls: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    m: cython.Py_ssize_t = int(state[N_OUT])
    depth: cython.Py_ssize_t = int(state[DEPTH])
    last: cython.int = int(state[LAST])
    last_ts: cython.longlong = int(state[LAST_TS])
    n_samples: cython.longlong = int(state[N_SAMPLES])
    sample_ts: cython.longlong = int(state[SAMPLE_TS])
    sample: cython.int = int(state[SAMPLE])
    n_stacks: cython.Py_ssize_t = int(state[N_STACKS])
    if i < 0 or m < 0 or m > 2 * i or depth < 0 or depth > deepest or n_stacks < 0 or n_stacks > size:
        raise ValueError("walk_calls: invalid state")
    top: cython.int = path[depth - 1] if depth > 0 else -1
    bad: cython.bint = False
    with cython.nogil:
        while i < n and n_stacks < size and depth < deepest:
            leaves: cython.bint = (flags[i] & LEAVE) != 0
            if last != NO_ROW and (ts[i] != last_ts or (leaves and last == ENTER_ROW)):
                if n_samples > 0 and last_ts - sample_ts > longest:
                    out_ts[m] = last_ts
                    out_stack[m] = sample
                    m += 1
                out_ts[m] = last_ts
                out_stack[m] = top
                m += 1
                sample_ts = last_ts
                sample = top
                n_samples += 1
            last_ts = ts[i]
            if leaves:
                if depth == 0:
                    bad = True
                    break
                last = LEAVE_ROW
                depth -= 1
                top = path[depth - 1] if depth > 0 else -1
            else:
                last = ENTER_ROW
                top = intern_pair(stack_prefix, stack_frame, slots, n_stacks, top, frame[i])
                n_stacks += top == n_stacks
                path[depth] = top
                depth += 1
            i += 1
    state[ROW] = i
    state[N_OUT] = m
    state[DEPTH] = depth
    state[LAST] = last
    state[LAST_TS] = last_ts
    state[N_SAMPLES] = n_samples
    state[SAMPLE_TS] = sample_ts
    state[SAMPLE] = sample
    state[N_STACKS] = n_stacks
    if bad:
        raise ValueError("walk_calls: the stream is not balanced")


def pack_times(
    ts: cython.const[cython.longlong][::1],
    stack: cython.const[cython.int][::1],
    state: cython.longlong[::1],
    out: cython.ushort[::1],
    long_ns: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Of samples, as `walk_calls` writes them, for each the time until the next in two bytes: (ns << 1) + 1 while calls
    are open, else ns << 1; or LONG and 1 or 0, and the ns in long_ns. Returns how many were written.

    One comes when the next sample is known: state, zeros at first: how many samples there were, the last one's time,
    whether a call was open then; and how many long_ns this piece has. out, long_ns: as long as the piece.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if stack.shape[0] != n or out.shape[0] < n or long_ns.shape[0] < n or state.shape[0] < 4:
        raise ValueError("pack_times: an array has the wrong length")
    m: cython.Py_ssize_t = 0
    n_long: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t = 1 if state[0] == 0 and n > 0 else 0
    last_ts: cython.longlong = ts[0] if first else int(state[1])
    is_open: cython.longlong = stack[0] >= 0 if first else int(state[2])
    with cython.nogil:
        for i in range(first, n):
            ns: cython.longlong = ts[i] - last_ts
            if ns >= LONG >> 1:
                long_ns[n_long] = ns
                n_long += 1
                out[m] = LONG | is_open
            else:
                out[m] = ns << 1 | is_open
            m += 1
            last_ts = ts[i]
            is_open = stack[i] >= 0
    state[0] += n
    state[1] = last_ts
    state[2] = is_open
    state[3] = n_long
    return m


def unpack_times(
    packed: cython.const[cython.ushort][::1],
    long_ns: cython.const[cython.longlong][::1],
    ts: cython.longlong,
    out_ts: cython.longlong[::1],
    out_ns: cython.longlong[::1],
) -> cython.longlong:
    """The times of samples, the first at ts, and for how long a call is open from there on: 0 where none is. Returns
    the next sample's time. out_*: as long as packed."""
    n: cython.Py_ssize_t = packed.shape[0]
    n_long: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    for i in range(n):
        n_long += packed[i] >= LONG
    if out_ts.shape[0] != n or out_ns.shape[0] != n or long_ns.shape[0] != n_long:
        raise ValueError("unpack_times: an array has the wrong length")
    n_long = 0
    with cython.nogil:
        for i in range(n):
            if packed[i] >= LONG:
                ns: cython.longlong = long_ns[n_long]
                n_long += 1
            else:
                ns = packed[i] >> 1
            out_ts[i] = ts
            out_ns[i] = ns if packed[i] & 1 else 0
            ts += ns
    return ts


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    pack_times = plain_integers(pack_times)
    unpack_times = plain_integers(unpack_times)
    walk_calls = plain_integers(walk_calls)
