"""The protobuf wire format, as much of it as packets need, and packets of what has a time and a few numbers: samples,
changes of a thread's state.

Importing the generated classes would take a good part of the time in which a small recording is converted. Tests read
every packet back with the protobuf library. A tag is a field's number << 3 | wire type: see fields.py.
"""

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_AsUnsignedLongLongMask

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from traceferry.exporters.perfetto._packets cimport put_integer, put_varint, size_of
from traceferry.exporters.perfetto cimport fields as pb

cdef enum:
    PIECE = 1 << 18
    # More than the longest packet here: their lengths are written in one byte.
    LONGEST = 128
    # Counters beside the first of a sample, so that the packet is shorter than that.
    MOST_FOLLOWERS = 6
    # Messages that are shorter are written at once.
    SHORT = 512
    # The wire type of a tag.
    FIXED64 = 1
    # Around a message of `write_rows`, and an integer field of it, at most.
    AROUND = 10
    LONGEST_FIELD = 11

cdef int64_t ABSENT_VALUE = -(1 << 63)
ABSENT = np.int64(ABSENT_VALUE)


def varint(value):
    """Returns a number as a varint, a negative one in two's complement of 64 bits."""
    cdef uint8_t[10] o
    return PyBytes_FromStringAndSize(<char*>o, put_varint(o, 0, PyLong_AsUnsignedLongLongMask(value)))


cdef class Message:
    """A kind of messages. tags: of its fields, by their names."""

    cdef dict tags

    def __cinit__(self, **tags):
        self.tags = tags

    def __call__(self, **values):
        """Returns fields, serialised in this order: of integers, texts, and bytes of messages. None is no field, a list
        or tuple is a field for each element."""
        cdef uint8_t[SHORT] o
        cdef Py_ssize_t p = 0
        cdef list parts = []
        cdef int tag
        for name, value in values.items():
            tag = self.tags[name]
            if isinstance(value, (list, tuple)):
                for one in value:
                    p = put_field(o, p, parts, tag, one)
            elif value is not None:
                p = put_field(o, p, parts, tag, value)
        written = PyBytes_FromStringAndSize(<char*>o, p)
        return b"".join([*parts, written]) if parts else written

    def text(self, int64_t iid, **texts):
        """Returns fields that are an InternedString with this number, each of a text or bytes."""
        return b"".join([interned_string(self.tags[name], iid, value) for name, value in texts.items()])

    def texts(self, str name not None, list iids not None, list texts not None):
        """Returns a list of what `text` does of the field `name`, for each number and its text."""
        cdef int tag = self.tags[name]
        return [interned_string(tag, iid, value) for iid, value in zip(iids, texts, strict=True)]

    def rows(self, Message around not None, str name not None, **columns):
        """Returns a list of what `write_rows` writes, for each row."""
        cdef Rows rows = Rows(self, around, name, columns)
        cdef uint8_t[SHORT] o
        return [PyBytes_FromStringAndSize(<char*>o, rows.put(o, i)) for i in range(rows.values.shape[0])]

    def write_rows(self, OutputBuffer out not None, Message around not None, str name not None, **columns):
        """Writes a message of less than 128 bytes for each row, as the field `name` of the message around. columns: the
        values of integer fields, ABSENT where there is none."""
        cdef Rows rows = Rows(self, around, name, columns)
        cdef Py_ssize_t i
        with nogil:
            for i in range(rows.values.shape[0]):
                out.reserve(AROUND + 127)
                out.n += rows.put(out.data + out.n, i)
        out.flush()


cdef class Rows:
    """Messages of integer fields, as `Message.write_rows` takes them."""

    cdef const int64_t[:, ::1] values
    cdef const int32_t[::1] tags
    cdef uint8_t tag

    def __cinit__(self, Message message, Message around, str name, dict columns):
        self.tag = around.tags[name]
        self.values = np.stack(list(columns.values()), axis=1, dtype=np.int64)
        self.tags = np.array([message.tags[name] for name in columns], np.int32)
        if len(columns) * LONGEST_FIELD > 127:
            raise ValueError("write_rows: too many columns")

    cdef inline Py_ssize_t put(self, uint8_t* o, Py_ssize_t i) noexcept nogil:
        """Writes a row where there is room for it; returns how many bytes it takes."""
        cdef Py_ssize_t column
        cdef Py_ssize_t p = 2
        o[0] = self.tag
        for column in range(self.tags.shape[0]):
            if self.values[i, column] != ABSENT_VALUE:
                p = put_integer(o, p, self.tags[column], self.values[i, column])
        o[1] = p - 2
        return p


cdef bytes interned_string(int tag, int64_t iid, value):
    """Returns a field that is an InternedString of a text or bytes."""
    cdef uint8_t[4 * LONGEST_FIELD] o
    cdef bytes data = (<str>value).encode("utf-8", "replace") if isinstance(value, str) else value
    cdef bytes written
    cdef Py_ssize_t p
    p = put_integer(o, 0, tag, 2 + size_of(iid) + size_of(len(data)) + len(data))
    p = put_integer(o, p, pb.InternedString_iid, iid)
    p = put_integer(o, p, pb.InternedString_str, len(data))
    written = PyBytes_FromStringAndSize(NULL, p + len(data))
    memcpy(<char*>written, o, p)
    memcpy(<char*>written + p, <const char*>data, len(data))
    return written


cdef inline Py_ssize_t put_field(uint8_t* o, Py_ssize_t p, list parts, int tag, value) except -1:
    """Writes a field at o[p], which has SHORT bytes, and returns the offset behind it. What is too long is added to
    parts, after what stands before it."""
    cdef uint64_t number
    if p > SHORT - 2 * LONGEST_FIELD:
        parts.append(PyBytes_FromStringAndSize(<char*>o, p))
        p = 0
    # Lone surrogates cannot be written; nothing else is lost.
    data = (<str>value).encode("utf-8", "replace") if isinstance(value, str) else value
    if isinstance(data, bytes) and p + LONGEST_FIELD + len(<bytes>data) <= SHORT:
        p = put_integer(o, p, tag, len(<bytes>data))
        memcpy(o + p, <const char*>(<bytes>data), len(<bytes>data))
        return p + len(<bytes>data)
    if isinstance(data, (bytes, memoryview)):
        p = put_integer(o, p, tag, len(data))
        parts.append(PyBytes_FromStringAndSize(<char*>o, p))
        parts.append(data)
        return 0
    number = PyLong_AsUnsignedLongLongMask(data)
    p = put_varint(o, p, tag)
    return put_fixed64(o, p, number) if tag & 7 == FIXED64 else put_varint(o, p, number)


cdef inline Py_ssize_t put_fixed64(uint8_t* o, Py_ssize_t p, uint64_t v) noexcept nogil:
    cdef int i
    for i in range(8):
        o[p + i] = v >> 8 * i & 0xFF
    return p + 8


cdef class OutputBuffer:
    """Bytes on their way to `write`, which takes them in large pieces; each holds until it returns."""

    def __init__(self, write, Py_ssize_t size=PIECE):
        self.flush()
        self.sink = write
        self.text = bytearray(size)
        self.data = self.text
        self.size = size

    def flush(self):
        """Writes what waits."""
        cdef Py_ssize_t n = self.n
        self.n = 0
        if n:
            self.sink(memoryview(self.text)[:n])

    cdef int make_room(self, Py_ssize_t n) except -1 nogil:
        with gil:
            self.flush()
            if self.size < n:
                self.text = bytearray(n)
                self.data = self.text
                self.size = n
        return 0


def mark(const int32_t[::1] indices, uint8_t[::1] marked):
    """Sets marked[i] to 1 for every one of the indices."""
    cdef Py_ssize_t n_marked = marked.shape[0]
    cdef Py_ssize_t i
    with nogil:
        for i in range(indices.shape[0]):
            if not 0 <= indices[i] < n_marked:
                with gil:
                    raise ValueError("mark: an index beyond the end")
            marked[indices[i]] = 1


def executions_of(
    const int32_t[:] cpu not None, const int32_t[:] stack not None, const int32_t[:] frame not None,
    const int32_t[:] category not None, const int32_t[::1] modes not None, int32_t n_cpus, int32_t n_modes,
):
    """Returns (processor + 1) * n_modes + mode of each sample, int32, where a processor that is not one of n_cpus is -1,
    and the mode of what has no stack is 0. frame: of each stack; category: of each frame; modes: of each category, and
    behind them that of none. Raises IndexError."""
    cdef Py_ssize_t n = stack.shape[0]
    cdef Py_ssize_t n_found = 0
    cdef Py_ssize_t i
    cdef int32_t of, mode
    found = np.empty(n, np.int32)
    cdef int32_t[::1] out = found
    if cpu.shape[0] != n:
        raise ValueError("executions_of: processors and stacks of different lengths")
    with nogil:
        for i in range(n):
            mode = 0
            if stack[i] >= 0:
                of = frame[stack[i]] if stack[i] < frame.shape[0] else -1
                if not 0 <= of < category.shape[0] or not -1 <= category[of] < modes.shape[0] - 1:
                    break
                mode = modes[category[of] if category[of] >= 0 else modes.shape[0] - 1]
            out[i] = (cpu[i] + 1 if 0 <= cpu[i] < n_cpus else 0) * n_modes + mode
            n_found += 1
    if n_found < n:
        raise IndexError(f"stack {stack[n_found]} of {frame.shape[0]}")
    return found


cdef Py_ssize_t put_followers(uint8_t* o, Py_ssize_t p, const int64_t[::1] amounts) noexcept nogil:
    """Writes which counters have counted, and how much: both packed, with lengths of one byte. Returns the end."""
    cdef Py_ssize_t k, q
    cdef Py_ssize_t n = 0
    q = put_varint(o, p, pb.StackSample_follower_descriptor_iids) + 1
    for k in range(amounts.shape[0]):
        if amounts[k] >= 0:
            o[q + n] = k + 1
            n += 1
    if n == 0:
        return p
    o[q - 1] = n
    p = q + n
    q = put_varint(o, p, pb.StackSample_follower_weights) + 1
    p = q
    for k in range(amounts.shape[0]):
        if amounts[k] >= 0:
            p = put_varint(o, p, amounts[k])
    o[q - 1] = p - q
    return p


def write_samples(
    OutputBuffer out not None, int sequence, int task_iid, int64_t start_ts, const int64_t[::1] ts,
    const int64_t[::1] weight, const int64_t[:, ::1] followers, const int32_t[::1] execution_iid,
    const int32_t[::1] stack, const int32_t[::1] callstack_iid
):
    """Writes stack samples of one thread at times relative to start_ts, which are not before it.

    followers: for each sample what the counters 1, 2... counted, at most MOST_FOLLOWERS of them; -1 is unknown. execution_iid: for
    each sample, 0 is none; callstack_iid: for each stack.
    """
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t n_stacks = callstack_iid.shape[0]
    cdef Py_ssize_t n_followers = followers.shape[1]
    if weight.shape[0] != n or followers.shape[0] != n or execution_iid.shape[0] != n or stack.shape[0] != n:
        raise ValueError("write_samples: columns of different lengths")
    if n_followers > MOST_FOLLOWERS:
        raise ValueError("write_samples: too many counters")
    cdef uint8_t* o
    cdef Py_ssize_t i, p, sample
    with nogil:
        for i in range(n):
            if ts[i] < start_ts or stack[i] >= n_stacks:
                with gil:
                    raise ValueError("write_samples: an invalid stack, or a time before the recording")
            out.reserve(LONGEST)
            o = out.data + out.n
            o[0] = pb.Trace_packet
            p = put_integer(o, 2, pb.TracePacket_trusted_packet_sequence_id, sequence)
            p = sample = put_varint(o, p, pb.TracePacket_stack_sample) + 1
            p = put_integer(o, p, pb.StackSample_task_context_iid, task_iid)
            if execution_iid[i] > 0:
                p = put_integer(o, p, pb.StackSample_execution_context_iid, execution_iid[i])
            if stack[i] >= 0 and callstack_iid[stack[i]] > 0:
                p = put_integer(o, p, pb.StackSample_callstack_iid, callstack_iid[stack[i]])
            p = put_integer(o, p, pb.StackSample_primary_weight, weight[i] if weight[i] > 0 else 0)
            p = put_followers(o, p, followers[i])
            o[sample - 1] = p - sample
            p = put_integer(o, p, pb.TracePacket_timestamp, ts[i] - start_ts)
            o[1] = p - 2
            out.n += p
    out.flush()


def write_track_events(
    OutputBuffer out not None, bytes before not None, bytes between not None, bytes head not None,
    const int64_t[::1] ts, const int32_t[::1] nth, list bodies not None
):
    """Writes a packet for each row: the fields `before`, its time, the fields `between`, and an event of a track, which
    is the fields `head` and those of one of the bodies (bytes). nth: which."""
    cdef Py_ssize_t n = ts.shape[0]
    cdef Py_ssize_t n_bodies = len(bodies)
    cdef Py_ssize_t n_around = len(before) + len(between) + LONGEST
    cdef bytes body
    cdef uint8_t* o
    cdef Py_ssize_t i, p, size, n_event
    if nth.shape[0] != n:
        raise ValueError("write_track_events: columns of different lengths")
    for i in range(n):
        if not 0 <= nth[i] < n_bodies:
            raise ValueError("write_track_events: a body beyond the end")
        body = bodies[nth[i]]
        n_event = len(head) + len(body)
        size = len(before) + 1 + size_of(ts[i]) + len(between) + 1 + size_of(n_event) + n_event
        out.reserve(n_around + n_event)
        o = out.data + out.n
        p = put_integer(o, 0, pb.Trace_packet, size)
        p = put_bytes(o, p, before)
        p = put_integer(o, p, pb.TracePacket_timestamp, ts[i])
        p = put_bytes(o, p, between)
        p = put_integer(o, p, pb.TracePacket_track_event, n_event)
        p = put_bytes(o, p, head)
        p = put_bytes(o, p, body)
        out.n += p
    out.flush()


cdef inline Py_ssize_t put_bytes(uint8_t* o, Py_ssize_t p, bytes data) noexcept:
    memcpy(o + p, <const char*>data, len(data))
    return p + len(data)


def write_task_states(
    OutputBuffer out not None, int sequence, int64_t tid, int64_t start_ts, const int64_t[::1] ts,
    const uint8_t[::1] states, const int32_t[::1] cpu, const int64_t[::1] waker
):
    """Writes a thread's rows of `scheduling` at times relative to start_ts, which are not before it. states: Perfetto's
    names of them; waker: the thread that ends a wait, -1 is none.

    TraceProcessor requires that a thread stops before it runs again, that it stops where it ran, and that it has one
    state at one time. So of rows of one time only the last is written, and a thread that runs and starts to run again
    stops a nanosecond before, if there is one. It knows who woke a thread from events of ftrace alone.
    """
    cdef Py_ssize_t n = ts.shape[0]
    if states.shape[0] != n or cpu.shape[0] != n or waker.shape[0] != n:
        raise ValueError("write_task_states: columns of different lengths")
    cdef Py_ssize_t i
    cdef bint runs = False
    cdef int last_cpu = 0
    cdef int64_t time
    cdef int64_t last = -1
    cdef int running = pb.GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_RUNNING
    with nogil:
        for i in range(n):
            if ts[i] < start_ts or (states[i] == running and cpu[i] < 0):
                with gil:
                    raise ValueError("write_task_states: an unknown processor, or a time before the recording")
            time = ts[i] - start_ts
            if waker[i] >= 0 and states[i] != running and not runs:
                put_waking(out, sequence, tid, cpu[i], waker[i], ts[i])
                last = time
                continue
            if (i + 1 < n and ts[i + 1] == ts[i]) or (states[i] == running and runs and time - 1 <= last):
                continue
            if states[i] == running:
                if runs:
                    put_task_state(
                        out, sequence, tid, last_cpu, pb.GenericKernelTaskStateEventTaskStateEnum_TASK_STATE_RUNNABLE,
                        time - 1
                    )
                last_cpu = cpu[i]
            put_task_state(out, sequence, tid, last_cpu, states[i], time)
            runs = states[i] == running
            last = time
    out.flush()


cdef int put_waking(
    OutputBuffer out, int sequence, int64_t tid, int cpu, int64_t waker, int64_t time
) except -1 nogil:
    """Writes ftrace's sched_waking, on the clock BOOT. All lengths are below 128."""
    cdef uint8_t* o
    cdef Py_ssize_t p, bundle, event, waking
    out.reserve(LONGEST)
    o = out.data + out.n
    o[0] = pb.Trace_packet
    p = put_integer(o, 2, pb.TracePacket_trusted_packet_sequence_id, sequence)
    p = bundle = put_varint(o, p, pb.TracePacket_ftrace_events) + 1
    p = put_integer(o, p, pb.FtraceEventBundle_cpu, cpu if cpu > 0 else 0)
    p = event = put_varint(o, p, pb.FtraceEventBundle_event) + 1
    p = put_integer(o, p, pb.FtraceEvent_timestamp, time)
    p = put_integer(o, p, pb.FtraceEvent_pid, waker)
    p = waking = put_varint(o, p, pb.FtraceEvent_sched_waking) + 1
    p = put_integer(o, p, pb.SchedWakingFtraceEvent_pid, tid)
    p = put_integer(o, p, pb.SchedWakingFtraceEvent_success, 1)
    o[waking - 1] = p - waking
    o[event - 1] = p - event
    o[bundle - 1] = p - bundle
    o[1] = p - 2
    out.n += p
    return 0


cdef int put_task_state(
    OutputBuffer out, int sequence, int64_t tid, int cpu, int state, int64_t time
) except -1 nogil:
    cdef uint8_t* o
    cdef Py_ssize_t p, event
    out.reserve(LONGEST)
    o = out.data + out.n
    o[0] = pb.Trace_packet
    p = put_integer(o, 2, pb.TracePacket_trusted_packet_sequence_id, sequence)
    p = event = put_varint(o, p, pb.TracePacket_generic_kernel_task_state_event) + 1
    p = put_integer(o, p, pb.GenericKernelTaskStateEvent_tid, tid)
    p = put_integer(o, p, pb.GenericKernelTaskStateEvent_cpu, cpu)
    p = put_integer(o, p, pb.GenericKernelTaskStateEvent_state, state)
    o[event - 1] = p - event
    p = put_integer(o, p, pb.TracePacket_timestamp, time)
    o[1] = p - 2
    out.n += p
    return 0
