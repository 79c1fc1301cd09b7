# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Packets of what has a time and a few numbers: samples, changes of a thread's state, values of counters.

Cython's pure-Python mode: also runs interpreted. Field numbers: protos/perfetto/trace, trace_packet.proto and the
messages that it names.
"""

import cython

from traceferry.kernels.functions import c_inline
from traceferry.kernels.varints import varint

# What a row of `scheduling` says, and what a GenericKernelTaskStateEvent does.
RUNNING = cython.declare(cython.int, 1)
PREEMPTED = cython.declare(cython.int, 2)
TASK_RUNNABLE = cython.declare(cython.int, 2)
TASK_RUNNING = cython.declare(cython.int, 3)
TASK_SLEEPS = cython.declare(cython.int, 4)


def samples(
    ts: cython.const[cython.longlong][::1],
    stack: cython.const[cython.int][::1],
    weight: cython.const[cython.longlong][::1],
    cpu_ns: cython.const[cython.longlong][::1],
    execution_iid: cython.const[cython.int][::1],
    callstack_iid: cython.const[cython.int][::1],
    start: cython.longlong,
    lead: cython.const[cython.uchar][::1],
    fields_at: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    out: cython.uchar[::1],
) -> tuple:
    """Writes stack samples from `row` on until `out` is full; returns (number of bytes, the row to go on at).

    execution_iid: for each sample, 0 is none. callstack_iid: for each stack. The times are written relative to start.
    lead: the packet's first fields, with a byte for the sample's length before fields_at, and what all samples share.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    n_stacks: cython.Py_ssize_t = callstack_iid.shape[0]
    n_lead: cython.Py_ssize_t = lead.shape[0]
    if (
        stack.shape[0] != n
        or weight.shape[0] != n
        or cpu_ns.shape[0] != n
        or execution_iid.shape[0] != n
        or fields_at < 1
        or fields_at > n_lead
        or n_lead > 48
        or row < 0
    ):
        raise ValueError("samples: an array has the wrong length")
    i: cython.Py_ssize_t = row
    size: cython.Py_ssize_t = out.shape[0] - 128
    p: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < size:
            s: cython.Py_ssize_t = stack[i]
            if s >= n_stacks or ts[i] < start:
                bad = True
                break
            out[p] = 0x0A
            q: cython.Py_ssize_t = p + 2
            for j in range(n_lead):
                out[q + j] = lead[j]
            q += n_lead
            if execution_iid[i] > 0:
                out[q] = 0x20  # StackSample.execution_context_iid
                q = varint(out, q + 1, execution_iid[i])
            if s >= 0 and callstack_iid[s] > 0:
                out[q] = 0x30  # StackSample.callstack_iid
                q = varint(out, q + 1, callstack_iid[s])
            out[q] = 0x58  # StackSample.primary_weight
            q = varint(out, q + 1, weight[i] if weight[i] > 0 else 0)
            if cpu_ns[i] >= 0:
                out[q] = 0x6A  # StackSample.follower_descriptor_iids: 1
                out[q + 1] = 1
                out[q + 2] = 1
                out[q + 3] = 0x72  # StackSample.follower_weights
                j = varint(out, q + 5, cpu_ns[i])
                out[q + 4] = j - q - 5
                q = j
            out[p + 1 + fields_at] = q - p - 2 - fields_at
            out[q] = 0x40  # TracePacket.timestamp
            q = varint(out, q + 1, ts[i] - start)
            out[p + 1] = q - p - 2
            p = q
            i += 1
    if bad:
        raise ValueError("samples: invalid stack, or a time before the recording")
    return p, i


@c_inline
def task_state(
    out: cython.uchar[::1],
    p: cython.Py_ssize_t,
    lead: cython.const[cython.uchar][::1],
    fields_at: cython.Py_ssize_t,
    cpu: cython.int,
    task: cython.int,
    time: cython.longlong,
) -> cython.Py_ssize_t:
    q: cython.Py_ssize_t = p + 2
    j: cython.Py_ssize_t
    out[p] = 0x0A
    for j in range(lead.shape[0]):
        out[q + j] = lead[j]
    q += lead.shape[0]
    out[q] = 0x08  # GenericKernelTaskStateEvent.cpu
    q = varint(out, q + 1, cpu)
    out[q] = 0x20  # GenericKernelTaskStateEvent.state
    out[q + 1] = task
    q += 2
    out[p + 1 + fields_at] = q - p - 2 - fields_at
    out[q] = 0x40  # TracePacket.timestamp
    q = varint(out, q + 1, time)
    out[p + 1] = q - p - 2
    return q


def task_states(
    ts: cython.const[cython.longlong][::1],
    scheduled: cython.const[cython.uchar][::1],
    cpu: cython.const[cython.int][::1],
    start: cython.longlong,
    lead: cython.const[cython.uchar][::1],
    fields_at: cython.Py_ssize_t,
    row: cython.Py_ssize_t,
    runs: cython.bint,
    last_cpu: cython.int,
    last: cython.longlong,
    out: cython.uchar[::1],
) -> tuple:
    """Writes a thread's rows of `scheduling` from `row` on until `out` is full; returns (number of bytes, the row to go
    on at, runs, last_cpu, last).

    lead: as for `samples`. runs: whether the thread runs; last_cpu: where it ran last, -1 at first; last: the time of
    the row written last, -1 at first. trace_processor requires that a thread stops before it runs again, that it stops
    where it ran, and that it has one state at one time. So of rows of one time only the last is written, and a thread
    that runs and starts to run again stops a nanosecond before, if there is one.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if (
        scheduled.shape[0] != n
        or cpu.shape[0] != n
        or fields_at < 1
        or fields_at > lead.shape[0]
        or lead.shape[0] > 48
        or row < 0
    ):
        raise ValueError("task_states: an array has the wrong length")
    i: cython.Py_ssize_t = row
    size: cython.Py_ssize_t = out.shape[0] - 256
    p: cython.Py_ssize_t = 0
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < size:
            s: cython.int = scheduled[i]
            if s > PREEMPTED or ts[i] < start or (s == RUNNING and cpu[i] < 0):
                bad = True
                break
            time: cython.longlong = ts[i] - start
            if (i + 1 < n and ts[i + 1] == ts[i]) or (s == RUNNING and runs and time - 1 <= last):
                i += 1
                continue
            if s == RUNNING:
                if runs:
                    p = task_state(out, p, lead, fields_at, last_cpu, TASK_RUNNABLE, time - 1)
                last_cpu = cpu[i]
                p = task_state(out, p, lead, fields_at, last_cpu, TASK_RUNNING, time)
            elif s == PREEMPTED:
                p = task_state(out, p, lead, fields_at, last_cpu if last_cpu >= 0 else 0, TASK_RUNNABLE, time)
            else:
                p = task_state(out, p, lead, fields_at, last_cpu if last_cpu >= 0 else 0, TASK_SLEEPS, time)
            runs = s == RUNNING
            last = time
            i += 1
    if bad:
        raise ValueError("task_states: an unknown state, or a time before the recording")
    return p, i, runs, last_cpu, last


def counter_values(
    ts: cython.const[cython.longlong][::1],
    bits: cython.const[cython.ulonglong][::1],
    lead: cython.const[cython.uchar][::1],
    event: cython.const[cython.uchar][::1],
    row: cython.Py_ssize_t,
    out: cython.uchar[::1],
) -> tuple:
    """Writes a counter's values from `row` on until `out` is full; returns (number of bytes, the row to go on at).

    bits: the values' doubles; lead: the packets' first fields, event: those of the track event, at most 48 bytes each.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    n_lead: cython.Py_ssize_t = lead.shape[0]
    n_event: cython.Py_ssize_t = event.shape[0]
    if bits.shape[0] != n or n_lead > 48 or n_event > 48 or row < 0:
        raise ValueError("counter_values: an array has the wrong length")
    size: cython.Py_ssize_t = out.shape[0] - 160
    i: cython.Py_ssize_t = row
    p: cython.Py_ssize_t = 0
    j: cython.Py_ssize_t
    with cython.nogil:
        while i < n and p < size:
            out[p] = 0x0A  # Trace.packet
            q: cython.Py_ssize_t = p + 2
            for j in range(n_lead):
                out[q + j] = lead[j]
            q += n_lead
            out[q] = 0x40  # TracePacket.timestamp
            v: cython.ulonglong = ts[i]
            q = varint(out, q + 1, v)
            out[q] = 0x5A  # TracePacket.track_event
            out[q + 1] = n_event + 10
            q += 2
            for j in range(n_event):
                out[q + j] = event[j]
            q += n_event
            out[q] = 0xE1  # TrackEvent.double_counter_value
            out[q + 1] = 0x02
            q += 2
            v = bits[i]
            for j in range(8):
                out[q + j] = v >> 8 * j & 0xFF
            q += 8
            out[p + 1] = q - p - 2
            p = q
            i += 1
    return p, i


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    counter_values = plain_integers(counter_values)
    samples = plain_integers(samples)
    task_states = plain_integers(task_states)
