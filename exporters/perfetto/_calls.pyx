"""Packets of calls: the begin and end of slices."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from traceferry.exporters.perfetto._packets cimport OutputBuffer, integer, length4, varint
from traceferry.exporters.perfetto.fields cimport (
    DebugAnnotation_name_iid,
    DebugAnnotation_uint_value,
    TracePacket_timestamp,
    TrackEvent_debug_annotations,
)
from traceferry.native.call_flags cimport LEAVE

cdef enum:
    # Copied at once, needed or not: most packets' constant part fits.
    FIXED = 32
    # Both of a packet's constant parts, at most.
    WIDEST = 112
    # More than a packet without arguments takes.
    LONGEST = 160
    # The bytes of an argument: tag and length, name_iid, value.
    PER_ARGUMENT = 24


cdef class SliceWriter:
    """Writes the calls of one thread, a piece after the other, as slices whose times are differences.

    n_cut: how many calls were left out because they are deeper than max_depth.
    """

    cdef OutputBuffer out
    cdef const uint8_t[:, ::1] head
    cdef const int32_t[::1] head_length
    cdef Py_ssize_t event_at
    cdef const uint8_t[:, ::1] note
    cdef const int32_t[::1] note_length
    cdef int64_t max_depth
    cdef int64_t depth
    cdef int64_t last
    cdef readonly int64_t n_cut

    def __init__(
        self, OutputBuffer out not None, const uint8_t[:, ::1] note not None, const int32_t[::1] note_length not None,
        int64_t max_depth, int64_t start_ts
    ):
        """note: for each value of `flags` the annotation that it needs, of note_length bytes."""
        if note.shape[0] != 256 or not are_lengths(note_length, note):
            raise ValueError("SliceWriter: an array has the wrong length")
        self.out = out
        self.note = note
        self.note_length = note_length
        self.max_depth = max_depth
        self.last = start_ts

    def set_heads(self, const uint8_t[:, ::1] head not None, const int32_t[::1] head_length not None, int event_at):
        """Sets each frame's begin packet without the time, which comes last, and after them the one of all end packets.
        Both lengths in it are one byte; the fields of the track event begin at event_at."""
        if (
            head.shape[0] == 0
            or head.shape[1] < FIXED
            or head.shape[1] + self.note.shape[1] > WIDEST
            or not 3 <= event_at <= FIXED
            or not are_lengths(head_length, head)
        ):
            raise ValueError("set_heads: an array has the wrong length")
        self.head = head
        self.head_length = head_length
        self.event_at = event_at

    def write(
        self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags,
        const int64_t[::1] argument_call, const int32_t[::1] argument_iid, const uint64_t[::1] argument_value
    ):
        """Writes the events of some rows of `calls`, and their arguments: the row of each, which rise, the interned id
        of its name, and its value."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t n_arguments = argument_call.shape[0]
        cdef Py_ssize_t n_frames = self.head.shape[0] - 1
        if (
            frame.shape[0] != n
            or flags.shape[0] != n
            or argument_iid.shape[0] != n_arguments
            or argument_value.shape[0] != n_arguments
        ):
            raise ValueError("write: columns of different lengths")
        cdef const uint8_t[:, ::1] head = self.head
        cdef const int32_t[::1] head_length = self.head_length
        cdef const int32_t[::1] note_length = self.note_length
        cdef OutputBuffer out = self.out
        cdef Py_ssize_t a = 0
        cdef int64_t next_argument = argument_call[0] if n_arguments else -1
        cdef int64_t depth = self.depth
        cdef int64_t last = self.last
        cdef int64_t max_depth = self.max_depth
        cdef uint8_t* o = out.data
        cdef Py_ssize_t p = out.n
        cdef Py_ssize_t capacity = out.size - LONGEST
        cdef Py_ssize_t i, j, b, q, f
        cdef uint32_t g, short, more1, more2, more3
        cdef uint64_t delta
        cdef int leaves
        cdef uint8_t[FIXED] copied
        with nogil:
            for i in range(n):
                g = flags[i]
                f = frame[i]
                if f < 0 or f >= n_frames or ts[i] < last:
                    with gil:
                        raise ValueError("write: a frame without a name, or time that falls")
                # Which way the next branch goes is as good as random in recorded calls; so are the lengths of the
                # times. Arithmetic instead of branches halves the time of the loop.
                leaves = g & LEAVE
                f = n_frames if leaves else f
                depth += 1 - 2 * leaves
                if depth + leaves > max_depth:
                    self.n_cut += 1 - leaves
                    while next_argument == i:
                        a += 1
                        next_argument = argument_call[a] if a < n_arguments else -1
                    continue
                delta = ts[i] - last
                last = ts[i]
                if p > capacity:
                    out.n = p
                    out.make_room(LONGEST)
                    o = out.data
                    p = out.n
                    capacity = out.size - LONGEST
                if next_argument != i and note_length[g] == 0:
                    # By way of a local array, which overlaps neither: the C compiler copies 16 bytes at once.
                    memcpy(copied, &head[f, 0], FIXED)
                    memcpy(o + p, copied, FIXED)
                    for j in range(FIXED, head_length[f]):
                        o[p + j] = head[f, j]
                    q = p + head_length[f]
                    o[q] = TracePacket_timestamp
                    if delta < 1 << 28:
                        short = delta
                        more1 = short > 0x7F
                        more2 = short > 0x3FFF
                        more3 = short > 0x1FFFFF
                        o[q + 1] = short & 127 | more1 << 7
                        o[q + 2] = short >> 7 & 127 | more2 << 7
                        o[q + 3] = short >> 14 & 127 | more3 << 7
                        o[q + 4] = short >> 21
                        q += 2 + more1 + more2 + more3
                    else:
                        q = varint(o, q + 1, delta)
                    o[p + 1] = q - p - 2
                    p = q
                    continue
                b = a
                while b < n_arguments and argument_call[b] == i:
                    b += 1
                out.n = p
                out.reserve(LONGEST + PER_ARGUMENT * (b - a))
                o = out.data
                p = out.n
                capacity = out.size - LONGEST
                p += self.put_long(o + p, f, g, delta, argument_iid[a:b], argument_value[a:b])
                a = b
                next_argument = argument_call[a] if a < n_arguments else -1
        self.depth = depth
        self.last = last
        out.n = p
        out.flush()

    cdef Py_ssize_t put_long(
        self, uint8_t* o, Py_ssize_t f, uint32_t flags, uint64_t delta, const int32_t[::1] iid,
        const uint64_t[::1] value
    ) noexcept nogil:
        """Writes the packet with what its flags and arguments say, and lengths of four bytes: arguments may be many.
        Returns its size."""
        cdef Py_ssize_t p = 5
        cdef Py_ssize_t event, argument, j
        o[0] = self.head[f, 0]
        for j in range(2, self.event_at - 1):
            o[p] = self.head[f, j]
            p += 1
        event = p
        p += 4
        for j in range(self.event_at, self.head_length[f]):
            o[p] = self.head[f, j]
            p += 1
        for j in range(self.note_length[flags]):
            o[p] = self.note[flags, j]
            p += 1
        for j in range(iid.shape[0]):
            o[p] = TrackEvent_debug_annotations
            argument = p
            p = integer(o, p + 2, DebugAnnotation_name_iid, iid[j])
            p = integer(o, p, DebugAnnotation_uint_value, value[j])
            o[argument + 1] = p - argument - 2
        length4(o, event, p - event - 4)
        p = integer(o, p, TracePacket_timestamp, delta)
        length4(o, 1, p - 5)
        return p


cdef bint are_lengths(const int32_t[::1] lengths, const uint8_t[:, ::1] rows) noexcept nogil:
    """Whether these are lengths of the rows."""
    cdef Py_ssize_t i
    if lengths.shape[0] != rows.shape[0]:
        return False
    for i in range(lengths.shape[0]):
        if not 0 <= lengths[i] <= rows.shape[1]:
            return False
    return True
