"""The packets of a trace, one after the other."""

from libc.stdint cimport int64_t, uint64_t, uint8_t

from traceferry.native.leb128 cimport leb

cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5
    # Of Trace, TracePacket, TrackDescriptor and ThreadDescriptor.
    PACKET = 1
    SEQUENCE = 10
    THREAD_DESCRIPTOR = 44
    TRACK_DESCRIPTOR = 60
    THREAD = 4
    PID = 1
    TID = 2


def whole_until(const uint8_t[::1] data):
    """Returns the offset behind the last packet, or other field, that is whole: that of the first one that is not, or
    the number of bytes."""
    cdef int64_t n = data.shape[0]
    cdef int64_t at = 0
    cdef int64_t end
    cdef uint64_t tag, value
    with nogil:
        while at < n:
            tag, end = leb(data, at, n, False)
            if end < 0:
                break
            if tag & 7 == VARINT or tag & 7 == BYTES:
                value, end = leb(data, end, n, False)
                if end < 0 or (tag & 7 == BYTES and value > <uint64_t> (n - end)):
                    break
                end += <int64_t> value if tag & 7 == BYTES else 0
            elif tag & 7 == FIXED64 or tag & 7 == FIXED32:
                end += 8 if tag & 7 == FIXED64 else 4
                if end > n:
                    break
            else:
                break
            at = end
    return at


cdef class _Field:
    """A field of a message that lies between two offsets: its number, its value or length, and where its content is."""

    cdef int64_t number, value, at, end

    cdef bint read(self, const uint8_t[::1] data, int64_t at, int64_t n) noexcept nogil:
        """Whether one is there, and whole."""
        cdef uint64_t tag, value = 0
        cdef int64_t end
        if at >= n:
            return False
        tag, end = leb(data, at, n, False)
        if end < 0:
            return False
        self.number = <int64_t> (tag >> 3)
        if tag & 7 == VARINT or tag & 7 == BYTES:
            value, end = leb(data, end, n, False)
            if end < 0 or (tag & 7 == BYTES and value > <uint64_t> (n - end)):
                return False
        elif tag & 7 != FIXED64 and tag & 7 != FIXED32:
            return False
        self.at, self.value = end, <int64_t> value
        if tag & 7 == BYTES:
            end += <int64_t> value
        elif tag & 7 != VARINT:
            end += 8 if tag & 7 == FIXED64 else 4
        self.end = end
        return self.end <= n


cdef class _ThreadNumbers:
    """What a descriptor of a thread says."""

    cdef int64_t pid, tid
    cdef bint is_there

    cdef void read(self, const uint8_t[::1] data, _Field descriptor, _Field field) noexcept nogil:
        """field: is overwritten."""
        cdef int64_t at = descriptor.at
        self.is_there = True
        while field.read(data, at, descriptor.end):
            if field.number == PID:
                self.pid = field.value
            elif field.number == TID:
                self.tid = field.value
            at = field.end


def threads_at(const uint8_t[::1] data, const int64_t[::1] places):
    """Returns a list of (process, thread): those that the last descriptor of its sequence names, for the packet around
    each place; None where there is none. places: rising."""
    cdef int64_t n = data.shape[0]
    cdef int64_t at = 0
    cdef int64_t inner, part, sequence
    cdef Py_ssize_t nth = 0
    cdef Py_ssize_t n_places = places.shape[0]
    cdef _Field packet = _Field()
    cdef _Field field = _Field()
    cdef _Field of_track = _Field()
    cdef _Field rest = _Field()
    cdef _ThreadNumbers thread = _ThreadNumbers()
    known = {}
    found = []
    while nth < n_places and packet.read(data, at, n):
        at = packet.end
        if packet.number != PACKET:
            continue
        sequence, thread.is_there = -1, False
        inner = packet.at
        while field.read(data, inner, packet.end):
            inner = field.end
            if field.number == SEQUENCE:
                sequence = field.value
            elif field.number == THREAD_DESCRIPTOR:
                thread.read(data, field, rest)
            elif field.number == TRACK_DESCRIPTOR:
                part = field.at
                while of_track.read(data, part, field.end):
                    part = of_track.end
                    if of_track.number == THREAD:
                        thread.read(data, of_track, rest)
        if thread.is_there:
            known[sequence] = thread.pid, thread.tid
        while nth < n_places and places[nth] < at:
            found.append(known.get(sequence))
            nth += 1
    return found + [None] * (n_places - nth)
