"""Packets of calls: the begin and end of slices."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from traceferry.exporters.perfetto._packets cimport OutputBuffer, put_integer, length4, put_varint
from traceferry.exporters.perfetto cimport fields as pb
from traceferry.native.call_flags cimport LEAVE

cdef enum:
    # Copied at once, needed or not: most packets' constant part fits.
    FIXED = 32
    # A packet's constant part with its length, and what its flags add, at most.
    HEAD = 80
    NOTE = 32
    # More than a packet without arguments takes.
    LONGEST = 160
    # The bytes of an argument: tag and length, name_iid, value.
    PER_ARGUMENT = 24


cdef class Rows:
    """Short texts in rows of one width."""

    cdef uint8_t[:, ::1] text
    cdef int32_t[::1] length

    def __cinit__(self, texts, int width):
        cdef Py_ssize_t i
        cdef bytes text
        self.text = np.zeros((len(texts), width), np.uint8)
        self.length = np.zeros(len(texts), np.int32)
        for i, text in enumerate(texts):
            if len(text) > width:
                raise ValueError("Rows: a text that is too long")
            memcpy(&self.text[i, 0], <const char*>text, len(text))
            self.length[i] = len(text)


cdef class SliceWriter:
    """Writes the calls of one thread, a piece after the other, as slices whose times are differences.

    n_cut: how many calls were left out because they are deeper than max_depth.
    """

    cdef OutputBuffer out
    cdef bytes lead
    cdef Py_ssize_t n_lead
    cdef Rows head
    cdef Rows note
    cdef int64_t max_depth
    cdef int64_t depth
    cdef int64_t last
    cdef readonly int64_t n_cut

    def __init__(self, OutputBuffer out not None, bytes lead not None, notes, int64_t max_depth, int64_t start_ts):
        """lead: the fields of a packet before the event; notes: those that an event has of each value of `flags`."""
        if len(notes) != 256:
            raise ValueError("SliceWriter: not a note for each value of flags")
        self.out = out
        self.lead = b"\x0a\0" + lead + bytes([pb.TracePacket_track_event])
        self.n_lead = len(self.lead)
        self.note = Rows(notes, NOTE)
        self.max_depth = max_depth
        self.last = start_ts
        self.set_events([b""])

    def set_events(self, events):
        """Sets the fields of the begin events of all frames, and after them those of all end events."""
        # Whole packets but for the time, which comes last; both lengths in them are one byte.
        self.head = Rows([b"".join([self.lead, bytes([len(event)]), event]) for event in events], HEAD)

    def write(
        self, const int64_t[::1] ts, const int32_t[::1] frame, const uint8_t[::1] flags,
        const int64_t[::1] argument_call, const int32_t[::1] argument_iid, const uint64_t[::1] argument_value,
        const uint8_t[::1] text, const int64_t[::1] text_at
    ):
        """Writes the events of some rows of `calls`, and their arguments: the row of each, which rise, the interned id
        of its name, and its value; or, where the id is 0, the fields of the event in text[text_at[i]:text_at[i + 1]]."""
        cdef Py_ssize_t n = ts.shape[0]
        cdef Py_ssize_t n_arguments = argument_call.shape[0]
        cdef Py_ssize_t n_frames = self.head.length.shape[0] - 1
        if (
            frame.shape[0] != n
            or flags.shape[0] != n
            or argument_iid.shape[0] != n_arguments
            or argument_value.shape[0] != n_arguments
            or text_at.shape[0] != n_arguments + 1
            or text_at[0] < 0
            or text_at[n_arguments] > text.shape[0]
            or np.any(np.diff(text_at) < 0)
        ):
            raise ValueError("write: columns of different lengths")
        cdef const uint8_t[:, ::1] head = self.head.text
        cdef const int32_t[::1] head_length = self.head.length
        cdef const int32_t[::1] note_length = self.note.length
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
                    o[q] = pb.TracePacket_timestamp
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
                        q = put_varint(o, q + 1, delta)
                    o[p + 1] = q - p - 2
                    p = q
                    continue
                b = a
                while b < n_arguments and argument_call[b] == i:
                    b += 1
                out.n = p
                out.reserve(LONGEST + PER_ARGUMENT * (b - a) + text_at[b] - text_at[a])
                o = out.data
                p = out.n
                capacity = out.size - LONGEST
                p += self.put_long(o + p, f, g, delta, argument_iid[a:b], argument_value[a:b], text, text_at[a : b + 1])
                a = b
                next_argument = argument_call[a] if a < n_arguments else -1
        self.depth = depth
        self.last = last
        out.n = p
        out.flush()

    cdef Py_ssize_t put_long(
        self, uint8_t* o, Py_ssize_t f, uint32_t flags, uint64_t delta, const int32_t[::1] iid,
        const uint64_t[::1] value, const uint8_t[::1] text, const int64_t[::1] text_at
    ) noexcept nogil:
        """Writes the packet with what its flags and arguments say, and lengths of four bytes: arguments may be many.
        Returns its size."""
        cdef const uint8_t* head = &self.head.text[f, 0]
        # Behind the one for its length.
        cdef Py_ssize_t event_at = self.n_lead + 1
        cdef Py_ssize_t n_event = self.head.length[f] - event_at
        cdef Py_ssize_t n_note = self.note.length[flags]
        cdef Py_ssize_t event = self.n_lead + 3
        cdef Py_ssize_t p = event + 4
        cdef Py_ssize_t argument, j, k
        o[0] = head[0]
        memcpy(o + 5, head + 2, self.n_lead - 2)
        memcpy(o + p, head + event_at, n_event)
        memcpy(o + p + n_event, &self.note.text[flags, 0], n_note)
        p += n_event + n_note
        for j in range(iid.shape[0]):
            if iid[j] == 0:
                for k in range(text_at[j], text_at[j + 1]):
                    o[p] = text[k]
                    p += 1
                continue
            o[p] = pb.TrackEvent_debug_annotations
            argument = p
            p = put_integer(o, p + 2, pb.DebugAnnotation_name_iid, iid[j])
            p = put_integer(o, p, pb.DebugAnnotation_uint_value, value[j])
            o[argument + 1] = p - argument - 2
        length4(o, event, p - event - 4)
        p = put_integer(o, p, pb.TracePacket_timestamp, delta)
        length4(o, 1, p - 5)
        return p
