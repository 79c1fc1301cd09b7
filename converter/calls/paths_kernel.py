# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Follows calls as stacks, and interns call paths. Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.kernels.interning import intern_pair

LEAVE = cython.declare(cython.uint, 1)

# Indices into `state`, for both walks.
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
    leaves: cython.bint
    bad: cython.bint = False
    with cython.nogil:
        while i < n and n_stacks < size and depth < deepest:
            leaves = (flags[i] & LEAVE) != 0
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


def time_calls(
    ts: cython.const[cython.longlong][::1],
    flags: cython.const[cython.uchar][::1],
    longest: cython.longlong,
    state: cython.longlong[::1],
    out_ts: cython.longlong[::1],
    out_ns: cython.longlong[::1],
):
    """The times of what `walk_calls` writes, and for how long a call is open from there on: 0 where none is, and where
    a state is said again. The last state is written when the next one is known.

    state: as of `walk_calls`, of the last state only whether calls are open. out_*: as long as 2 n.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if flags.shape[0] != n or out_ts.shape[0] < 2 * n or out_ns.shape[0] < 2 * n or state.shape[0] < 9:
        raise ValueError("time_calls: an array has the wrong length")
    m: cython.Py_ssize_t = 0
    depth: cython.longlong = int(state[DEPTH])
    last: cython.int = int(state[LAST])
    last_ts: cython.longlong = int(state[LAST_TS])
    n_samples: cython.longlong = int(state[N_SAMPLES])
    sample_ts: cython.longlong = int(state[SAMPLE_TS])
    is_open: cython.bint = int(state[SAMPLE]) != 0
    leaves: cython.bint
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            leaves = (flags[i] & LEAVE) != 0
            if last != NO_ROW and (ts[i] != last_ts or (leaves and last == ENTER_ROW)):
                if n_samples > 0:
                    out_ts[m] = sample_ts
                    out_ns[m] = last_ts - sample_ts if is_open else 0
                    m += 1
                    if last_ts - sample_ts > longest:
                        out_ts[m] = last_ts
                        out_ns[m] = 0
                        m += 1
                sample_ts = last_ts
                is_open = depth > 0
                n_samples += 1
            last_ts = ts[i]
            if leaves:
                last = LEAVE_ROW
                depth -= 1
            else:
                last = ENTER_ROW
                depth += 1
    state[N_OUT] = m
    state[DEPTH] = depth
    state[LAST] = last
    state[LAST_TS] = last_ts
    state[N_SAMPLES] = n_samples
    state[SAMPLE_TS] = sample_ts
    state[SAMPLE] = 1 if is_open else 0


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    time_calls = plain_integers(time_calls)
    walk_calls = plain_integers(walk_calls)
