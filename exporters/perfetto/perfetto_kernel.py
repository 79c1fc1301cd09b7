# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Perfetto packets of what there is much of: a thread's calls, samples, allocations and changes of its state, the
callstacks of samples, the objects of a heap.

Cython's pure-Python mode: also runs interpreted. Field numbers: protos/perfetto/trace, trace_packet.proto and
the messages that it names.
"""

import cython

LEAVE = cython.declare(cython.uint, 1)

# What a row of `scheduling` says, and what a GenericKernelTaskStateEvent does.
RUNNING = cython.declare(cython.int, 1)
PREEMPTED = cython.declare(cython.int, 2)
TASK_RUNNABLE = cython.declare(cython.int, 2)
TASK_RUNNING = cython.declare(cython.int, 3)
TASK_SLEEPS = cython.declare(cython.int, 4)

# Indices into `state`: of all kernels, of slices, of callstacks, of task_states.
ROW = cython.declare(cython.int, 0)
DEPTH = cython.declare(cython.int, 1)
LAST_TS = cython.declare(cython.int, 2)
ARGUMENT = cython.declare(cython.int, 3)
N_CUT = cython.declare(cython.int, 4)
N_FRAMES = cython.declare(cython.int, 1)
N_NEW = cython.declare(cython.int, 2)
RUNS = cython.declare(cython.int, 1)
LAST_CPU = cython.declare(cython.int, 2)
LAST_TIME = cython.declare(cython.int, 3)

# Columns of the totals of allocations.
ALLOCATED = cython.declare(cython.int, 0)
FREED = cython.declare(cython.int, 1)
N_ALLOCATED = cython.declare(cython.int, 2)
N_FREED = cython.declare(cython.int, 3)

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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size_of(v: cython.int) -> cython.Py_ssize_t:
    """Of the varint of a number that is not negative."""
    return 1 + (v > 0x7F) + (v > 0x3FFF) + (v > 0x1FFFFF) + (v > 0xFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def size_of_long(v: cython.ulonglong) -> cython.Py_ssize_t:
    """Of the varint of any number."""
    n: cython.Py_ssize_t = 1
    while v > 127:
        v >>= 7
        n += 1
    return n


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


def callstacks(
    stacks: cython.const[cython.int][::1],
    above: cython.const[cython.int][::1],
    run: cython.const[cython.int][::1],
    frame_iid: cython.int[::1],
    new_runs: cython.int[::1],
    first_iid: cython.int,
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes the interned callstacks of `stacks` from state[ROW] on until `out` is full; returns the number of bytes,
    or, if not one fits, the negative of what it needs.

    above: for each stack the one below it in the call path, always a smaller index; run: its frame. frame_iid: for each
    run the interned id of its frame; where it is 0, the next number after state[N_FRAMES], and the run is appended to
    new_runs at state[N_NEW]. The callstacks are numbered from first_iid on.
    """
    n: cython.Py_ssize_t = stacks.shape[0]
    n_stacks: cython.Py_ssize_t = run.shape[0]
    n_runs: cython.Py_ssize_t = frame_iid.shape[0]
    if above.shape[0] != n_stacks or new_runs.shape[0] < n_runs or state.shape[0] < 3 or first_iid < 1:
        raise ValueError("callstacks: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    n_frames: cython.longlong = int(state[N_FRAMES])
    n_new: cython.Py_ssize_t = int(state[N_NEW])
    if i < 0 or n_frames < 0 or n_frames > n_runs or n_new < 0:
        raise ValueError("callstacks: a state that cannot be")
    room: cython.Py_ssize_t = out.shape[0] - 24
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    node: cython.Py_ssize_t
    size: cython.Py_ssize_t
    f: cython.int
    iid: cython.int
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            node = stacks[i]
            size = 0
            while node >= 0:
                if node >= n_stacks or run[node] < 0 or run[node] >= n_runs or above[node] >= node:
                    bad = True
                    break
                f = frame_iid[run[node]]
                if f <= 0:
                    if n_new >= n_runs or n_frames >= n_runs:
                        bad = True
                        break
                    n_frames += 1
                    f = n_frames
                    frame_iid[run[node]] = f
                    new_runs[n_new] = run[node]
                    n_new += 1
                size += 1 + size_of(f)
                node = above[node]
            if bad:
                break
            if p + size > room:
                if p == 0:
                    p = -(size + 24)
                break
            iid = first_iid + i
            out[p] = 0x3A  # InternedData.callstacks
            p = varint(out, p + 1, 1 + size_of(iid) + size)
            out[p] = 0x08  # Callstack.iid
            p = varint(out, p + 1, iid) + size
            # From the leaf backwards: the root comes first.
            q = p
            node = stacks[i]
            while node >= 0:
                f = frame_iid[run[node]]
                q -= 1 + size_of(f)
                out[q] = 0x10  # Callstack.frame_ids
                varint(out, q + 1, f)
                node = above[node]
            i += 1
    state[ROW] = i
    state[N_FRAMES] = n_frames
    state[N_NEW] = n_new
    if bad:
        raise ValueError("callstacks: a stack that cannot be")
    return p


def counter_values(
    ts: cython.const[cython.longlong][::1],
    bits: cython.const[cython.ulonglong][::1],
    lead: cython.const[cython.uchar][::1],
    event: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Packets of a counter's values from row state[0] on until `out` is full; returns the number of bytes.

    bits: the values' doubles; lead: the packets' first fields, event: those of the track event, at most 48 bytes each.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    n_lead: cython.Py_ssize_t = lead.shape[0]
    n_event: cython.Py_ssize_t = event.shape[0]
    if bits.shape[0] != n or n_lead > 48 or n_event > 48 or state.shape[0] < 1 or state[0] < 0:
        raise ValueError("counter_values: an array has the wrong length")
    room: cython.Py_ssize_t = out.shape[0] - 160
    i: cython.Py_ssize_t = int(state[0])
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    j: cython.Py_ssize_t
    v: cython.ulonglong
    with cython.nogil:
        while i < n and p < room:
            out[p] = 0x0A  # Trace.packet
            q = p + 2
            for j in range(n_lead):
                out[q + j] = lead[j]
            q += n_lead
            out[q] = 0x40  # TracePacket.timestamp
            v = ts[i]
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
    state[0] = i
    return p


def plain_frames(
    names: cython.const[cython.int][::1],
    paths: cython.const[cython.int][::1],
    lines: cython.const[cython.int][::1],
    kinds: cython.const[cython.int][::1],
    mappings: cython.const[cython.int][::1],
    addresses: cython.const[cython.longlong][::1],
    iids: cython.const[cython.int][::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """InternedData.frames of frames that nothing is inlined into; returns the number of bytes.

    names, paths: indices of strings, whose interned ids are one more; negative is none. lines, kinds, mappings
    (interned ids): 0 is none; addresses: in the mapping. Room needed: 56 bytes a frame.
    """
    n: cython.Py_ssize_t = names.shape[0]
    if (
        paths.shape[0] != n
        or lines.shape[0] != n
        or kinds.shape[0] != n
        or mappings.shape[0] != n
        or addresses.shape[0] != n
        or out.shape[0] < 56 * n
        or iids.shape[0] != n
    ):
        raise ValueError("plain_frames: an array has the wrong length")
    i: cython.Py_ssize_t
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    v: cython.ulonglong
    with cython.nogil:
        for i in range(n):
            out[p] = 0x32  # InternedData.frames
            q = p + 2
            out[q] = 0x08  # Frame.iid
            v = iids[i]
            q = varint(out, q + 1, v)
            if names[i] >= 0:
                out[q] = 0x10  # Frame.function_name_id
                v = names[i]
                q = varint(out, q + 1, v + 1)
            if mappings[i] > 0:
                out[q] = 0x18  # Frame.mapping_id
                v = mappings[i]
                q = varint(out, q + 1, v)
                out[q] = 0x20  # Frame.rel_pc
                v = addresses[i]
                q = varint(out, q + 1, v)
            if paths[i] >= 0:
                out[q] = 0x28  # Frame.source_path_iid
                v = paths[i]
                q = varint(out, q + 1, v + 1)
                if lines[i] > 0:
                    out[q] = 0x30  # Frame.line_number
                    v = lines[i]
                    q = varint(out, q + 1, v)
            if kinds[i] > 0:
                out[q] = 0x38  # Frame.kind
                v = kinds[i]
                q = varint(out, q + 1, v)
            out[p + 1] = q - p - 2
            p = q
    return p


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
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes stack samples from state[ROW] on until `out` is full; returns the number of bytes.

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
        or state.shape[0] < 1
    ):
        raise ValueError("samples: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    if i < 0:
        raise ValueError("samples: a state that cannot be")
    room: cython.Py_ssize_t = out.shape[0] - 128
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    j: cython.Py_ssize_t
    s: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < room:
            s = stack[i]
            if s >= n_stacks or ts[i] < start:
                bad = True
                break
            out[p] = 0x0A
            q = p + 2
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
    state[ROW] = i
    if bad:
        raise ValueError("samples: a stack that is not there, or a time before the recording")
    return p


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
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
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes a thread's rows of `scheduling` from state[ROW] on until `out` is full; returns the number of bytes.

    lead: as for `samples`. state[RUNS]: whether the thread runs; state[LAST_CPU]: where it ran last, -1 at first;
    state[LAST_TIME]: of the row written last, -1 at first. trace_processor wants a thread to stop before it runs again,
    to stop where it ran, and not to do two things at one time. So of rows of one time only the last is written, and
    who runs and is said to run again stops a nanosecond before, if there is one.
    """
    n: cython.Py_ssize_t = ts.shape[0]
    if (
        scheduled.shape[0] != n
        or cpu.shape[0] != n
        or fields_at < 1
        or fields_at > lead.shape[0]
        or lead.shape[0] > 48
        or state.shape[0] < 4
    ):
        raise ValueError("task_states: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    runs: cython.bint = bool(state[RUNS])
    last_cpu: cython.int = int(state[LAST_CPU])
    last: cython.longlong = int(state[LAST_TIME])
    if i < 0:
        raise ValueError("task_states: a state that cannot be")
    room: cython.Py_ssize_t = out.shape[0] - 256
    p: cython.Py_ssize_t = 0
    s: cython.int
    time: cython.longlong
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < room:
            s = scheduled[i]
            if s > PREEMPTED or ts[i] < start or (s == RUNNING and cpu[i] < 0):
                bad = True
                break
            time = ts[i] - start
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
    state[ROW] = i
    state[RUNS] = runs
    state[LAST_CPU] = last_cpu
    state[LAST_TIME] = last
    if bad:
        raise ValueError("task_states: a state that cannot be, or a time before the recording")
    return p


def tally(
    stack: cython.const[cython.int][::1],
    size: cython.const[cython.longlong][::1],
    totals: cython.longlong[:, ::1],
) -> None:
    """Adds rows of `allocations` to the totals of their stacks: ALLOCATED and FREED bytes, N_ALLOCATED and N_FREED
    objects. Rows without a stack or a size are left out."""
    n: cython.Py_ssize_t = stack.shape[0]
    n_stacks: cython.Py_ssize_t = totals.shape[0]
    if size.shape[0] != n or totals.shape[1] != 4:
        raise ValueError("tally: an array has the wrong length")
    i: cython.Py_ssize_t
    s: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            s = stack[i]
            if s >= n_stacks:
                bad = True
                break
            if s >= 0 and size[i] > 0:
                totals[s, ALLOCATED] += size[i]
                totals[s, N_ALLOCATED] += 1
            elif s >= 0 and size[i] < 0:
                totals[s, FREED] -= size[i]
                totals[s, N_FREED] += 1
    if bad:
        raise ValueError("tally: a stack that is not there")


def heap_samples(
    stacks: cython.const[cython.int][::1],
    callstack_iid: cython.const[cython.int][::1],
    totals: cython.const[cython.longlong][:, ::1],
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes heap samples of `stacks` from state[ROW] on until `out` is full; returns the number of bytes.

    callstack_iid: for each stack; totals: as `tally` makes them.
    """
    n: cython.Py_ssize_t = stacks.shape[0]
    n_stacks: cython.Py_ssize_t = callstack_iid.shape[0]
    if totals.shape[0] != n_stacks or totals.shape[1] != 4 or state.shape[0] < 1 or state[ROW] < 0:
        raise ValueError("heap_samples: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    room: cython.Py_ssize_t = out.shape[0] - 64
    p: cython.Py_ssize_t = 0
    q: cython.Py_ssize_t
    s: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        while i < n and p < room:
            s = stacks[i]
            if s < 0 or s >= n_stacks or callstack_iid[s] < 1:
                bad = True
                break
            out[p] = 0x12  # ProcessHeapSamples.samples
            out[p + 2] = 0x08  # HeapSample.callstack_id
            q = varint(out, p + 3, callstack_iid[s])
            out[q] = 0x10  # HeapSample.self_allocated
            q = varint(out, q + 1, totals[s, ALLOCATED])
            out[q] = 0x18  # HeapSample.self_freed
            q = varint(out, q + 1, totals[s, FREED])
            out[q] = 0x28  # HeapSample.alloc_count
            q = varint(out, q + 1, totals[s, N_ALLOCATED])
            out[q] = 0x30  # HeapSample.free_count
            q = varint(out, q + 1, totals[s, N_FREED])
            out[p + 1] = q - p - 2
            p = q
            i += 1
    state[ROW] = i
    if bad:
        raise ValueError("heap_samples: a stack that cannot be")
    return p


def heap_objects(
    type_id: cython.const[cython.int][::1],
    size: cython.const[cython.longlong][::1],
    offsets: cython.const[cython.longlong][::1],
    references: cython.const[cython.int][::1],
    state: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Writes HeapGraph.objects from row state[ROW] on until `out` is full; returns the number of bytes, or, if not one
    fits, the negative of what it needs.

    An object's id is its row + 1. The rows that object i refers to are references[offsets[i]:offsets[i + 1]].
    """
    n: cython.Py_ssize_t = type_id.shape[0]
    n_references: cython.Py_ssize_t = references.shape[0]
    if size.shape[0] != n or offsets.shape[0] != n + 1 or state.shape[0] < 1 or state[ROW] < 0:
        raise ValueError("heap_objects: an array has the wrong length")
    i: cython.Py_ssize_t = int(state[ROW])
    p: cython.Py_ssize_t = 0
    r: cython.Py_ssize_t
    packed: cython.Py_ssize_t
    body: cython.Py_ssize_t
    reference: cython.longlong
    id_size: cython.Py_ssize_t
    is_first: cython.bint
    bad: cython.bint = False
    with cython.nogil:
        while i < n:
            if type_id[i] < 0 or size[i] < 0 or offsets[i] < 0 or offsets[i + 1] > n_references:
                bad = True
                break
            packed = 0
            for r in range(offsets[i], offsets[i + 1]):
                if references[r] < 0 or references[r] >= n:
                    bad = True
                    break
                packed += size_of_long(references[r] + 1)
            if bad:
                break
            # A packet's first object has its id, the others have their difference to the one before, which is 1.
            is_first = p == 0
            id_size = 1 + size_of_long(i + 1) if is_first else 2
            body = id_size + 1 + size_of(type_id[i]) + 1 + size_of_long(size[i])
            if packed:
                body += 1 + size_of_long(packed) + packed
            if p + body + 16 > out.shape[0]:
                if p == 0:
                    p = -(body + 16)
                break
            out[p] = 0x12  # HeapGraph.objects
            p = varint(out, p + 1, body)
            if is_first:
                out[p] = 0x08  # HeapGraphObject.id
                p = varint(out, p + 1, i + 1)
            else:
                out[p] = 0x38  # HeapGraphObject.id_delta
                out[p + 1] = 1
                p += 2
            out[p] = 0x10  # HeapGraphObject.type_id
            p = varint(out, p + 1, type_id[i])
            out[p] = 0x18  # HeapGraphObject.self_size
            p = varint(out, p + 1, size[i])
            if packed:
                out[p] = 0x2A  # HeapGraphObject.reference_object_id
                p = varint(out, p + 1, packed)
                for r in range(offsets[i], offsets[i + 1]):
                    reference = references[r]
                    p = varint(out, p, reference + 1)
            i += 1
    state[ROW] = i
    if bad:
        raise ValueError("heap_objects: an object that cannot be")
    return p


def reach(
    starts: cython.const[cython.int][::1],
    offsets: cython.const[cython.longlong][::1],
    references: cython.const[cython.int][::1],
    reached: cython.uchar[::1],
    begun: cython.int[::1],
    path: cython.int[::1],
) -> cython.Py_ssize_t:
    """Sets reached[i] to 1 for every object that references lead to from `starts`, in turn; into `begun` go those of
    the starts that were not reached when their turn came; returns how many.

    The rows that object i refers to are references[offsets[i]:offsets[i + 1]]. path: room for as many rows as objects.
    """
    n: cython.Py_ssize_t = reached.shape[0]
    n_starts: cython.Py_ssize_t = starts.shape[0]
    n_references: cython.Py_ssize_t = references.shape[0]
    if offsets.shape[0] != n + 1 or begun.shape[0] < n_starts or path.shape[0] < n:
        raise ValueError("reach: an array has the wrong length")
    i: cython.Py_ssize_t
    r: cython.Py_ssize_t
    one: cython.Py_ssize_t
    found: cython.Py_ssize_t
    n_begun: cython.Py_ssize_t = 0
    n_path: cython.Py_ssize_t
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n_starts):
            one = starts[i]
            if one < 0 or one >= n:
                bad = True
                break
            if reached[one]:
                continue
            reached[one] = 1
            begun[n_begun] = one
            n_begun += 1
            path[0] = one
            n_path = 1
            while n_path > 0 and not bad:
                n_path -= 1
                one = path[n_path]
                if offsets[one] < 0 or offsets[one + 1] > n_references:
                    bad = True
                    break
                for r in range(offsets[one], offsets[one + 1]):
                    found = references[r]
                    if found < 0 or found >= n:
                        bad = True
                        break
                    if not reached[found]:
                        reached[found] = 1
                        path[n_path] = found
                        n_path += 1
            if bad:
                break
    if bad:
        raise ValueError("reach: an object that is not there")
    return n_begun


# The same number, for the Python side.
ARGUMENT_ROOM = PER_ARGUMENT

if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    slices = plain_integers(slices)
    callstacks = plain_integers(callstacks)
    counter_values = plain_integers(counter_values)
    plain_frames = plain_integers(plain_frames)
    samples = plain_integers(samples)
    task_states = plain_integers(task_states)
    mark = plain_integers(mark)
    tally = plain_integers(tally)
    heap_samples = plain_integers(heap_samples)
    heap_objects = plain_integers(heap_objects)
    reach = plain_integers(reach)
