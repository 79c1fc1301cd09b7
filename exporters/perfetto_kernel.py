# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Perfetto packets of one thread's calls, on a packet sequence of their own with an incremental clock.

Cython's pure-Python mode: also runs interpreted. Field numbers: protos/perfetto/trace/trace_packet.proto and
track_event/track_event.proto.
"""

import cython

LEAVE = cython.declare(cython.uint, 1)

# Indices into `state`.
ROW = cython.declare(cython.int, 0)
DEPTH = cython.declare(cython.int, 1)
LAST_TS = cython.declare(cython.int, 2)
ARGUMENT = cython.declare(cython.int, 3)
N_CUT = cython.declare(cython.int, 4)

# Copied at once, needed or not: most packets' constant part fits.
FIXED = cython.declare(cython.int, 32)  # the length of `copied`
# An argument: 22 len, 08 iid, 18 value.
PER_ARGUMENT = cython.declare(cython.int, 24)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def varint(o: cython.uchar[::1], p: cython.Py_ssize_t, v: cython.ulonglong) -> cython.Py_ssize_t:
    while v > 127:
        o[p] = v & 127 | 128
        v >>= 7
        p += 1
    o[p] = v
    return p + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def length4(o: cython.uchar[::1], p: cython.Py_ssize_t, n: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """A varint of always four bytes, for a length that is known only afterwards."""
    o[p] = n & 127 | 128
    o[p + 1] = n >> 7 & 127 | 128
    o[p + 2] = n >> 14 & 127 | 128
    o[p + 3] = n >> 21 & 127
    return p + 4


def slices(
    ts: cython.const[cython.longlong][::1],
    frame: cython.const[cython.int][::1],
    flags: cython.const[cython.uchar][::1],
    argument_call: cython.const[cython.longlong][::1],
    argument_iid: cython.const[cython.int][::1],
    argument_value: cython.const[cython.ulonglong][::1],
    head: cython.const[cython.uchar][:, ::1],
    head_length: cython.const[cython.int][::1],
    event_at: cython.Py_ssize_t,
    note: cython.const[cython.uchar][:, ::1],
    note_length: cython.const[cython.int][::1],
    max_depth: cython.longlong,
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes packets from row state[ROW] on until `out` is full; returns the number of bytes.

    head: for each frame its begin packet without the time, which comes last, then one row for all end packets; both
    lengths in it are one byte, the fields of the track event begin at event_at. note: for each value of flags the
    annotation it needs. Calls deeper than max_depth are left out and counted in state[N_CUT]. The times are differences
    to the event before, from state[LAST_TS] on.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    n_arguments: cython.Py_ssize_t = argument_call.shape[0]
    n_frames: cython.Py_ssize_t = head.shape[0] - 1
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or argument_iid.shape[0] != n_arguments
        or argument_value.shape[0] != n_arguments
        or n_frames < 0
        or head_length.shape[0] != n_frames + 1
        or note.shape[0] < 256
        or note_length.shape[0] < 256
        or head.shape[1] < FIXED
        or head.shape[1] + note.shape[1] > 112
        or event_at > FIXED
        or state.shape[0] < 5
    ):
        raise ValueError("slices: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    a: cython.Py_ssize_t = int(state[ARGUMENT])
    depth: cython.longlong = int(state[DEPTH])
    last: cython.longlong = int(state[LAST_TS])
    cut: cython.longlong = 0
    if i < 0 or a < 0:
        raise ValueError("slices: a state that cannot be")
    room: cython.Py_ssize_t = out.shape[0] - 160
    next_argument: cython.longlong = argument_call[a] if a < n_arguments else -1
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    b: cython.Py_ssize_t
    row: cython.Py_ssize_t
    g: cython.uint
    leaves: cython.int
    short: cython.uint
    more1: cython.uint
    more2: cython.uint
    more3: cython.uint
    delta: cython.ulonglong
    copied = cython.declare(cython.uchar[32])
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < room:
            g = flags[i]
            row = frame[i]
            if row < 0 or row >= n_frames or ts[i] < last:
                bad = True
                break
            # Which way the next branch goes is as good as random in recorded calls; so are the lengths of the times.
            # Arithmetic instead of branches halves the time of the loop.
            leaves = g & LEAVE
            row = n_frames if leaves else row
            depth += 1 - 2 * leaves
            if depth + leaves > max_depth:
                cut += 1 - leaves
                while next_argument == i:
                    a += 1
                    next_argument = argument_call[a] if a < n_arguments else -1
                i += 1
                continue
            delta = ts[i] - last
            if next_argument != i and note_length[g] == 0:
                # By way of a local array, which overlaps neither: the C compiler copies 16 bytes at once.
                for j in range(32):
                    copied[j] = head[row, j]
                for j in range(32):
                    out[p + j] = copied[j]
                for j in range(32, head_length[row]):
                    out[p + j] = head[row, j]
                q = p + head_length[row]
                out[q] = 0x40  # TracePacket.timestamp
                if delta < 1 << 28:
                    short = delta
                    more1 = short > 0x7F
                    more2 = short > 0x3FFF
                    more3 = short > 0x1FFFFF
                    out[q + 1] = short & 127 | more1 << 7
                    out[q + 2] = short >> 7 & 127 | more2 << 7
                    out[q + 3] = short >> 14 & 127 | more3 << 7
                    out[q + 4] = short >> 21
                    q += 2 + more1 + more2 + more3
                else:
                    q = varint(out, q + 1, delta)
                out[p + 1] = q - p - 2
                p = q
                last = ts[i]
                i += 1
                continue
            b = a
            while b < n_arguments and argument_call[b] == i:
                b += 1
            if p + 160 + PER_ARGUMENT * (b - a) > out.shape[0]:
                depth -= 1 - 2 * leaves
                break
            # The same packet with lengths of four bytes: arguments may be many.
            out[p] = head[row, 0]
            q = p + 5
            for j in range(2, event_at - 1):
                out[q] = head[row, j]
                q += 1
            r = q + 4
            for j in range(event_at, head_length[row]):
                out[r] = head[row, j]
                r += 1
            for j in range(note_length[g]):
                out[r] = note[g, j]
                r += 1
            while a < b:
                out[r] = 0x22  # TrackEvent.debug_annotations
                out[r + 2] = 0x08  # DebugAnnotation.name_iid
                j = varint(out, r + 3, argument_iid[a])
                out[j] = 0x18  # DebugAnnotation.uint_value
                j = varint(out, j + 1, argument_value[a])
                out[r + 1] = j - r - 2
                r = j
                a += 1
            next_argument = argument_call[a] if a < n_arguments else -1
            length4(out, q, r - q - 4)
            out[r] = 0x40
            r = varint(out, r + 1, delta)
            length4(out, p + 1, r - p - 5)
            p = r
            last = ts[i]
            i += 1
    state[ROW] = i
    state[DEPTH] = depth
    state[LAST_TS] = last
    state[ARGUMENT] = a
    state[N_CUT] += cut
    if bad:
        raise ValueError("slices: a frame without a name, or time that falls")
    return p


# The same number, for the Python side.
ARGUMENT_ROOM = PER_ARGUMENT

if not cython.compiled:
    from converter.interpreted import plain_integers

    slices = plain_integers(slices)
