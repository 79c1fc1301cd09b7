# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Packets of calls: the begin and end of slices.

Cython's pure-Python mode: also runs interpreted. Field numbers: protos/perfetto/trace, trace_packet.proto and the
messages that it names.
"""

import cython

from traceferry.kernels.calls import LEAVE
from traceferry.kernels.varints import length4, varint

# Copied at once, needed or not: most packets' constant part fits.
FIXED = cython.declare(cython.int, 32)  # the length of `copied`
# An argument: 22 len, 08 iid, 18 value.
PER_ARGUMENT = cython.declare(cython.int, 24)


def mark(indices: cython.const[cython.int][::1], marked: cython.uchar[::1]) -> None:
    """Sets marked[i] to 1 for every one of the indices."""
    n: cython.Py_ssize_t = indices.shape[0]
    n_marked: cython.Py_ssize_t = marked.shape[0]
    i: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            if indices[i] < 0 or indices[i] >= n_marked:
                bad = True
                break
            marked[indices[i]] = 1
    if bad:
        raise ValueError("mark: an index beyond the end")


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
    row: cython.Py_ssize_t,
    first_argument: cython.Py_ssize_t,
    depth: cython.longlong,
    last: cython.longlong,
    cut: cython.longlong,
    out: cython.uchar[::1],
) -> tuple:
    """Writes packets from `row` on until `out` is full; returns (number of bytes, the row and the argument to go on at,
    depth, last, cut). If not one fits, the number of bytes is the negative of what it needs.

    head: for each frame its begin packet without the time, which comes last, then one row for all end packets; both
    lengths in it are one byte, the fields of the track event begin at event_at. note: for each value of flags the
    annotation it needs. depth: of the open calls; last: the time of the event before, from which the times are
    differences; cut: how many calls were left out because they are deeper than max_depth.
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
        or row < 0
        or first_argument < 0
    ):
        raise ValueError("slices: an array has the wrong length")
    i: cython.Py_ssize_t = row
    a: cython.Py_ssize_t = first_argument
    capacity: cython.Py_ssize_t = out.shape[0] - 160
    next_argument: cython.longlong = argument_call[a] if a < n_arguments else -1
    p: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t
    copied = cython.declare(cython.uchar[32])
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < capacity:
            g: cython.uint = flags[i]
            f: cython.Py_ssize_t = frame[i]
            if f < 0 or f >= n_frames or ts[i] < last:
                bad = True
                break
            # Which way the next branch goes is as good as random in recorded calls; so are the lengths of the times.
            # Arithmetic instead of branches halves the time of the loop.
            leaves: cython.int = g & LEAVE
            f = n_frames if leaves else f
            depth += 1 - 2 * leaves
            if depth + leaves > max_depth:
                cut += 1 - leaves
                while next_argument == i:
                    a += 1
                    next_argument = argument_call[a] if a < n_arguments else -1
                i += 1
                continue
            delta: cython.ulonglong = ts[i] - last
            if next_argument != i and note_length[g] == 0:
                # By way of a local array, which overlaps neither: the C compiler copies 16 bytes at once.
                for j in range(32):
                    copied[j] = head[f, j]
                for j in range(32):
                    out[p + j] = copied[j]
                for j in range(32, head_length[f]):
                    out[p + j] = head[f, j]
                q: cython.Py_ssize_t = p + head_length[f]
                out[q] = 0x40  # TracePacket.timestamp
                if delta < 1 << 28:
                    short: cython.uint = delta
                    more1: cython.uint = short > 0x7F
                    more2: cython.uint = short > 0x3FFF
                    more3: cython.uint = short > 0x1FFFFF
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
            b: cython.Py_ssize_t = a
            while b < n_arguments and argument_call[b] == i:
                b += 1
            if p + 160 + PER_ARGUMENT * (b - a) > out.shape[0]:
                depth -= 1 - 2 * leaves
                if p == 0:
                    p = -(160 + PER_ARGUMENT * (b - a))
                break
            # The same packet with lengths of four bytes: arguments may be many.
            out[p] = head[f, 0]
            q = p + 5
            for j in range(2, event_at - 1):
                out[q] = head[f, j]
                q += 1
            r: cython.Py_ssize_t = q + 4
            for j in range(event_at, head_length[f]):
                out[r] = head[f, j]
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
    if bad:
        raise ValueError("slices: a frame without a name, or time that falls")
    return p, i, a, depth, last, cut


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    mark = plain_integers(mark)
    slices = plain_integers(slices)
