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

# A packet without arguments: 2 + 1 + 10 (time) + 1 + 5 (sequence) + 2 + what is copied.
HEAD = cython.declare(cython.int, 24)
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
    begin: cython.const[cython.uchar][:, ::1],
    begin_length: cython.const[cython.int][::1],
    note: cython.const[cython.uchar][:, ::1],
    note_length: cython.const[cython.int][::1],
    sequence: cython.uint,
    max_depth: cython.longlong,
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes packets from row state[ROW] on until `out` is full; returns the number of bytes.

    begin: for each frame the fields of its begin event; note: for each value of flags the annotation it needs. Together
    they stay below 100 bytes. Calls deeper than max_depth are left out and counted in state[N_CUT]. The times are
    differences to the event before, from state[LAST_TS] on.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    n_arguments: cython.Py_ssize_t = argument_call.shape[0]
    if (
        frame.shape[0] != n
        or flags.shape[0] != n
        or argument_iid.shape[0] != n_arguments
        or argument_value.shape[0] != n_arguments
        or begin_length.shape[0] != begin.shape[0]
        or note.shape[0] < 256
        or note_length.shape[0] < 256
        or begin.shape[1] + note.shape[1] > 100
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
    room: cython.Py_ssize_t = out.shape[0] - 128
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    r: cython.Py_ssize_t
    j: cython.Py_ssize_t
    b: cython.Py_ssize_t
    f: cython.int
    g: cython.uint
    delta: cython.ulonglong
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < room:
            g = flags[i]
            f = frame[i]
            if f < 0 or f >= begin.shape[0] or ts[i] < last:
                bad = True
                break
            if g & LEAVE:
                depth -= 1
                if depth >= max_depth:
                    i += 1
                    continue
            else:
                depth += 1
                if depth > max_depth:
                    cut += 1
                    while a < n_arguments and argument_call[a] == i:
                        a += 1
                    i += 1
                    continue
            delta = ts[i] - last
            if a < n_arguments and argument_call[a] == i and not g & LEAVE:
                b = a
                while b < n_arguments and argument_call[b] == i:
                    b += 1
                if p + 160 + PER_ARGUMENT * (b - a) > out.shape[0]:
                    depth -= 1
                    break
                out[p] = 0x0A  # Trace.packet
                q = p + 5
                out[q] = 0x40  # TracePacket.timestamp
                q = varint(out, q + 1, delta)
                out[q] = 0x50  # TracePacket.trusted_packet_sequence_id
                q = varint(out, q + 1, sequence)
                out[q] = 0x5A  # TracePacket.track_event
                r = q + 5
                for j in range(begin_length[f]):
                    out[r + j] = begin[f, j]
                r += begin_length[f]
                for j in range(note_length[g]):
                    out[r + j] = note[g, j]
                r += note_length[g]
                while a < b:
                    out[r] = 0x22  # TrackEvent.debug_annotations
                    out[r + 2] = 0x08  # DebugAnnotation.name_iid
                    j = varint(out, r + 3, argument_iid[a])
                    out[j] = 0x18  # DebugAnnotation.uint_value
                    j = varint(out, j + 1, argument_value[a])
                    out[r + 1] = j - r - 2
                    r = j
                    a += 1
                length4(out, q + 1, r - q - 5)
                length4(out, p + 1, r - p - 5)
                p = r
            else:
                out[p] = 0x0A
                q = p + 2
                out[q] = 0x40
                q = varint(out, q + 1, delta)
                out[q] = 0x50
                q = varint(out, q + 1, sequence)
                out[q] = 0x5A
                r = q + 2
                if g & LEAVE:
                    out[r] = 0x48  # TrackEvent.type
                    out[r + 1] = 2  # TYPE_SLICE_END
                    r += 2
                else:
                    for j in range(begin_length[f]):
                        out[r + j] = begin[f, j]
                    r += begin_length[f]
                if note_length[g]:
                    for j in range(note_length[g]):
                        out[r + j] = note[g, j]
                    r += note_length[g]
                out[q + 1] = r - q - 2
                out[p + 1] = r - p - 2
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
