# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Finds the records of a stream, and decodes samples into columns.
Cython's pure-Python mode: also runs interpreted."""

import cython

from traceferry.kernels.bytes import u16, u32, u64
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.search import first_from

# Indices into the `state` of walk, which carries the position from call to call.
POS = cython.declare(cython.int, 0)
END = cython.declare(cython.int, 1)
N_SAMPLES = cython.declare(cython.int, 2)
N_OTHERS = cython.declare(cython.int, 3)
SAMPLE_BYTES = cython.declare(cython.int, 4)
STATUS = cython.declare(cython.int, 5)

# Values of state[STATUS].
WHOLE = cython.declare(cython.int, 0)
CUT = cython.declare(cython.int, 1)
BAD_SIZE = cython.declare(cython.int, 2)
SAMPLES_FULL = cython.declare(cython.int, 3)
OTHERS_FULL = cython.declare(cython.int, 4)

# Indices into the `found` of samples.
N_ROWS = cython.declare(cython.int, 0)
N_CHAIN = cython.declare(cython.int, 1)
N_BAD = cython.declare(cython.int, 2)
FIRST_BAD = cython.declare(cython.int, 3)
N_NO_EVENT = cython.declare(cython.int, 4)
FIRST_NO_EVENT = cython.declare(cython.int, 5)

# What `layouts` holds for each event, WIDTH numbers: sample_type; read_format; the numbers of bits in
# sample_regs_user and sample_regs_intr; 1 if branch stacks have hw_idx, plus 2 if they have counters; the period of
# samples that record none; the bytes of sample_id, 0 if not sample_id_all; the bytes of the words a sample begins with.
SAMPLE_TYPE = cython.declare(cython.int, 0)
READ_FORMAT = cython.declare(cython.int, 1)
N_REGS_USER = cython.declare(cython.int, 2)
N_REGS_INTR = cython.declare(cython.int, 3)
BRANCHES = cython.declare(cython.int, 4)
PERIOD_ELSE = cython.declare(cython.int, 5)
SAMPLE_ID_SIZE = cython.declare(cython.int, 6)
WORDS_SIZE = cython.declare(cython.int, 7)
WIDTH = cython.declare(cython.int, 8)

# Indices into `fields`: one sample. UNKNOWN where it is not recorded;
# *_at, n_* are 0 then.
F_TIME = cython.declare(cython.int, 0)
F_PID = cython.declare(cython.int, 1)
F_TID = cython.declare(cython.int, 2)
F_CPU = cython.declare(cython.int, 3)
F_PERIOD = cython.declare(cython.int, 4)
F_ADDR = cython.declare(cython.int, 5)
F_IP = cython.declare(cython.int, 6)
F_CHAIN_AT = cython.declare(cython.int, 7)
F_CHAIN_N = cython.declare(cython.int, 8)
F_RAW_AT = cython.declare(cython.int, 9)
F_RAW_SIZE = cython.declare(cython.int, 10)
F_USER_AT = cython.declare(cython.int, 11)
F_USER_ABI = cython.declare(cython.int, 12)
F_USER_SIZE = cython.declare(cython.int, 13)
F_USER_N = cython.declare(cython.int, 14)
N_FIELDS = cython.declare(cython.int, 15)

UNKNOWN = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
UNKNOWN32 = cython.declare(cython.uint, 0xFFFFFFFF)
# No clock gets to bit 62; beyond it lies what was not recorded.
TIMES_END = cython.declare(cython.ulonglong, 0x4000000000000000)
TWO32 = cython.declare(cython.longlong, 0x100000000)


@c_inline
def signed(value: cython.ulonglong) -> cython.int:
    """The i32 that the lower half of value is."""
    low: cython.longlong = value & UNKNOWN32
    return low - TWO32 if low > 0x7FFFFFFF else low


@c_inline
def event_of(
    wanted: cython.ulonglong, ids: cython.const[cython.ulonglong][::1], id_events: cython.const[cython.int][::1]
) -> cython.int:
    """-1 if no event has this id."""
    nth: cython.Py_ssize_t = first_from(ids, 0, ids.shape[0], wanted)
    return id_events[nth] if nth < ids.shape[0] and ids[nth] == wanted else -1


@c_function
def rest_fits(
    d: cython.const[cython.uchar][::1],
    q: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    big: cython.bint,
    layouts: cython.const[cython.ulonglong][::1],
    at: cython.Py_ssize_t,
    hw_idx: cython.bint,
    fields: cython.ulonglong[::1],
) -> cython.bint:
    """The fields of a sample from BRANCH_STACK on."""
    kinds: cython.ulonglong = layouts[at + SAMPLE_TYPE]
    registers: cython.ulonglong = 0
    if kinds & 0x800:  # BRANCH_STACK
        if end - q < 8:
            return False
        nr: cython.ulonglong = u64(d, q, big)
        q += 8
        if hw_idx:
            if end - q < 8:
                return False
            q += 8
        words: cython.ulonglong = 4 if layouts[at + BRANCHES] & 2 else 3
        size: cython.ulonglong = end - q
        if nr > size // (8 * words):
            return False
        q += 8 * words * nr
    if kinds & 0x1000:  # REGS_USER
        if end - q < 8:
            return False
        registers = q
        fields[F_USER_ABI] = u64(d, q, big)
        words = layouts[at + N_REGS_USER] if fields[F_USER_ABI] else 0
        q += 8
        size = end - q
        if words > size // 8:
            return False
        q += 8 * words
    if kinds & 0x2000:  # STACK_USER
        if end - q < 8:
            return False
        size = u64(d, q, big)
        q += 8
        if size:
            nr = end - q
            if nr < 8 or size > nr - 8:
                return False
            q += size
            fields[F_USER_SIZE] = size
            fields[F_USER_N] = min(u64(d, q, big), size)
            fields[F_USER_AT] = registers if fields[F_USER_N] else 0
            q += 8
    words = 0
    if kinds & 0x1004000:  # WEIGHT or WEIGHT_STRUCT
        words += 1
    if kinds & 0x8000:  # DATA_SRC
        words += 1
    if kinds & 0x20000:  # TRANSACTION
        words += 1
    size = end - q
    if words > size // 8:
        return False
    q += 8 * words
    if kinds & 0x40000:  # REGS_INTR
        if end - q < 8:
            return False
        words = layouts[at + N_REGS_INTR] if u64(d, q, big) else 0
        q += 8
        size = end - q
        if words > size // 8:
            return False
        q += 8 * words
    words = 0
    if kinds & 0x80000:  # PHYS_ADDR
        words += 1
    if kinds & 0x200000:  # CGROUP
        words += 1
    if kinds & 0x400000:  # DATA_PAGE_SIZE
        words += 1
    if kinds & 0x800000:  # CODE_PAGE_SIZE
        words += 1
    size = end - q
    if words > size // 8:
        return False
    q += 8 * words
    if kinds & 0x100000:  # AUX
        if end - q < 8:
            return False
        nr = end - q - 8
        if u64(d, q, big) > nr:
            return False
    return True


@c_function
def parse(
    d: cython.const[cython.uchar][::1],
    p: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    big: cython.bint,
    layouts: cython.const[cython.ulonglong][::1],
    at: cython.Py_ssize_t,
    fields: cython.ulonglong[::1],
) -> cython.bint:
    """One sample, from p to end, into fields. False if what its event says does not fit into it."""
    kinds: cython.ulonglong = layouts[at + SAMPLE_TYPE]
    q: cython.Py_ssize_t = p + 8
    size: cython.ulonglong = end - q
    if size < layouts[at + WORDS_SIZE]:
        return False
    if kinds & 0x10000:  # IDENTIFIER
        q += 8
    fields[F_IP] = 0
    if kinds & 1:  # IP
        fields[F_IP] = u64(d, q, big)
        q += 8
    fields[F_PID] = fields[F_TID] = UNKNOWN
    if kinds & 2:  # TID
        fields[F_PID] = u32(d, q, big)
        fields[F_TID] = u32(d, q + 4, big)
        q += 8
    fields[F_TIME] = UNKNOWN
    if kinds & 4:  # TIME
        fields[F_TIME] = u64(d, q, big)
        q += 8
    fields[F_ADDR] = 0
    if kinds & 8:  # ADDR
        fields[F_ADDR] = u64(d, q, big)
        q += 8
    if kinds & 0x40:  # ID
        q += 8
    if kinds & 0x200:  # STREAM_ID
        q += 8
    fields[F_CPU] = UNKNOWN
    if kinds & 0x80:  # CPU
        fields[F_CPU] = u32(d, q, big)
        q += 8
    fields[F_PERIOD] = layouts[at + PERIOD_ELSE]
    if kinds & 0x100:  # PERIOD
        fields[F_PERIOD] = u64(d, q, big)
        q += 8
    if kinds & 0x10:  # READ
        formats: cython.ulonglong = layouts[at + READ_FORMAT]
        words: cython.ulonglong = (formats & 1) + (formats >> 1 & 1)
        nr: cython.ulonglong = 1 + (formats >> 2 & 1) + (formats >> 4 & 1)
        size = end - q
        if formats & 8:  # GROUP
            words += 1
            if size < 8 * words or u64(d, q, big) > (size - 8 * words) // (8 * nr):
                return False
            words += nr * u64(d, q, big)
        else:
            words += nr
        if size < 8 * words:
            return False
        q += 8 * words
    fields[F_CHAIN_AT] = fields[F_CHAIN_N] = 0
    if kinds & 0x20:  # CALLCHAIN
        if end - q < 8:
            return False
        nr = u64(d, q, big)
        q += 8
        size = end - q
        if nr > size // 8:
            return False
        fields[F_CHAIN_AT] = q
        fields[F_CHAIN_N] = nr
        q += 8 * nr
    fields[F_RAW_AT] = fields[F_RAW_SIZE] = 0
    if kinds & 0x400:  # RAW
        if end - q < 4:
            return False
        nr = u32(d, q, big)
        q += 4
        size = end - q
        if nr > size:
            return False
        fields[F_RAW_AT] = q
        fields[F_RAW_SIZE] = nr
        q += nr
    fields[F_USER_AT] = 0
    if kinds & 0x1FEF800 == 0:  # nothing from BRANCH_STACK on
        return True
    if kinds & 0x800 and layouts[at + BRANCHES] & 1:
        # The kernel leaves hw_idx out where there was no branch stack to write; perf expects it all the same.
        return rest_fits(d, q, end, big, layouts, at, True, fields) or (
            end - q >= 8 and u64(d, q, big) == 0 and rest_fits(d, q, end, big, layouts, at, False, fields)
        )
    return rest_fits(d, q, end, big, layouts, at, False, fields)


def walk(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    state: cython.longlong[::1],
    counts: cython.longlong[::1],
    sample_at: cython.longlong[::1],
    other_at: cython.longlong[::1],
    other_type: cython.int[::1],
):
    """Finds the records from state[POS] to state[END]: offsets of samples, offsets and types of all others, appended
    at state[N_SAMPLES] and state[N_OTHERS]. state[SAMPLE_BYTES]: the size of all samples.

    counts: how many of each type there are; the last slot is for the types from there on. Stops with a STATUS;
    SAMPLES_FULL and OTHERS_FULL ask for longer columns and another call. CUT: the rest is shorter than its record.
    """
    n_cap: cython.Py_ssize_t = sample_at.shape[0]
    m_cap: cython.Py_ssize_t = other_at.shape[0]
    if other_type.shape[0] < m_cap or counts.shape[0] < 1 or state.shape[0] < 6:
        raise ValueError("walk: an array has the wrong length")
    p: cython.Py_ssize_t = int(state[POS])
    end: cython.Py_ssize_t = int(state[END])
    n: cython.Py_ssize_t = int(state[N_SAMPLES])
    m: cython.Py_ssize_t = int(state[N_OTHERS])
    n_bytes: cython.longlong = int(state[SAMPLE_BYTES])
    if p < 0 or end > d.shape[0] or n < 0 or m < 0:
        raise ValueError("walk: the state is outside the data")
    last: cython.uint = counts.shape[0] - 1
    highest: cython.uint = 0x7FFFFFFF
    status: cython.int = 0
    with cython.nogil:
        while p < end:
            if end - p < 8:
                status = CUT
                break
            kind: cython.uint = u32(d, p, big)
            size: cython.uint = u16(d, p + 6, big)
            if size < 8:
                status = BAD_SIZE
                break
            if size > end - p:
                status = CUT
                break
            after: cython.ulonglong = 0
            if kind == 66 and size >= 12:  # HEADER_TRACING_DATA
                after = u32(d, p + 8, big)
                after = (after + 7) // 8 * 8
            elif kind == 71 and size >= 16:  # AUXTRACE
                after = u64(d, p + 8, big)
            left: cython.ulonglong = end - p - size
            if after > left:
                status = CUT
                break
            if kind == 9:
                if n >= n_cap:
                    status = SAMPLES_FULL
                    break
                sample_at[n] = p
                n_bytes += size
                n += 1
            else:
                if m >= m_cap:
                    status = OTHERS_FULL
                    break
                other_at[m] = p
                other_type[m] = kind if kind < highest else highest
                m += 1
            counts[kind if kind < last else last] += 1
            p += size + after
    state[POS] = p
    state[N_SAMPLES] = n
    state[N_OTHERS] = m
    state[SAMPLE_BYTES] = n_bytes
    state[STATUS] = status


def samples(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    at: cython.const[cython.longlong][::1],
    layouts: cython.const[cython.ulonglong][::1],
    id_at: cython.int,
    ids: cython.const[cython.ulonglong][::1],
    id_events: cython.const[cython.int][::1],
    chain_from: cython.int,
    fields: cython.ulonglong[::1],
    found: cython.longlong[::1],
    chain: cython.ulonglong[::1],
    ts: cython.longlong[::1],
    pid: cython.int[::1],
    tid: cython.int[::1],
    event: cython.int[::1],
    cpu: cython.int[::1],
    period: cython.longlong[::1],
    addr: cython.ulonglong[::1],
    ip: cython.ulonglong[::1],
    cpumode: cython.uchar[::1],
    chain_start: cython.longlong[::1],
    chain_n: cython.int[::1],
    offset: cython.longlong[::1],
    raw_at: cython.longlong[::1],
    raw_size: cython.int[::1],
    user_at: cython.longlong[::1],
    user_abi: cython.uchar[::1],
    user_size: cython.int[::1],
    user_n: cython.int[::1],
):
    """A row for each sample in `at` that can be read; found says how many, and how many cannot: because they are too
    short for what their event says, or because no event has their id. event, cpu, addr, raw_at (with raw_size) and
    user_at (with user_abi, user_size, user_n) may be empty: then they are not wanted. offset may be the array that `at`
    is.

    id_at: where in a sample its id is, after the header, -1 if nowhere: then all are of the first event. ids: rising.
    fields: scratch, for one sample. chain_from: -1 copies callchains into chain, long enough for an entry for
    each 8 bytes of samples; else all samples are at a multiple of 8 from this offset in d, and so chain_start counts.
    """
    n_at: cython.Py_ssize_t = at.shape[0]
    n_events: cython.Py_ssize_t = layouts.shape[0] // WIDTH
    n_chain: cython.Py_ssize_t = chain.shape[0]
    has_event: cython.bint = event.shape[0] > 0
    has_cpu: cython.bint = cpu.shape[0] > 0
    has_addr: cython.bint = addr.shape[0] > 0
    has_raw: cython.bint = raw_at.shape[0] > 0
    has_stack: cython.bint = user_at.shape[0] > 0
    if (
        n_events < 1
        or id_events.shape[0] != ids.shape[0]
        or fields.shape[0] < N_FIELDS
        or found.shape[0] < 6
        or ts.shape[0] < n_at
        or pid.shape[0] < n_at
        or tid.shape[0] < n_at
        or (has_event and event.shape[0] < n_at)
        or (has_cpu and cpu.shape[0] < n_at)
        or period.shape[0] < n_at
        or (has_addr and addr.shape[0] < n_at)
        or ip.shape[0] < n_at
        or cpumode.shape[0] < n_at
        or chain_start.shape[0] < n_at
        or chain_n.shape[0] < n_at
        or offset.shape[0] < n_at
        or (has_raw and raw_at.shape[0] < n_at)
        or (has_raw and raw_size.shape[0] < n_at)
        or (has_stack and user_at.shape[0] < n_at)
        or (has_stack and user_abi.shape[0] < n_at)
        or (has_stack and user_size.shape[0] < n_at)
        or (has_stack and user_n.shape[0] < n_at)
    ):
        raise ValueError("samples: an array has the wrong length")
    nth: cython.Py_ssize_t
    i: cython.Py_ssize_t
    e: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    n_bad: cython.longlong = 0
    first_bad: cython.longlong = -1
    n_no_event: cython.longlong = 0
    first_no_event: cython.longlong = -1
    known: cython.ulonglong = 0
    with cython.nogil:
        for nth in range(n_at):
            p: cython.Py_ssize_t = at[nth]
            size: cython.uint = 0
            if p >= 0 and p + 8 <= d.shape[0]:
                size = u16(d, p + 6, big)
            end: cython.Py_ssize_t = p + size
            if size < 8 or end > d.shape[0] or (n_events > 1 and id_at >= 0 and p + id_at + 16 > end):
                if n_bad == 0:
                    first_bad = p
                n_bad += 1
                continue
            if n_events > 1 and id_at >= 0:
                # perf takes the first event for the id 0.
                wanted: cython.ulonglong = u64(d, p + 8 + id_at, big)
                if wanted != known:
                    known = wanted
                    e = event_of(wanted, ids, id_events) if wanted else 0
                if e < 0 or e >= n_events:
                    if n_no_event == 0:
                        first_no_event = p
                    n_no_event += 1
                    continue
            if not parse(d, p, end, big, layouts, e * WIDTH, fields):
                if n_bad == 0:
                    first_bad = p
                n_bad += 1
                continue
            n_ips: cython.Py_ssize_t = fields[F_CHAIN_N]
            q: cython.Py_ssize_t = fields[F_CHAIN_AT]
            chain_start[n] = m
            if n_ips and chain_from >= 0:
                chain_start[n] = (q - chain_from) >> 3
            elif n_ips:
                if n_ips > n_chain - m:
                    break
                if big:
                    for i in range(n_ips):
                        chain[m + i] = u64(d, q + 8 * i, True)
                else:
                    for i in range(n_ips):
                        chain[m + i] = u64(d, q + 8 * i, False)
                m += n_ips
            chain_n[n] = n_ips
            value: cython.ulonglong = fields[F_TIME]
            ts[n] = value if value < TIMES_END else -1
            pid[n] = signed(fields[F_PID])
            tid[n] = signed(fields[F_TID])
            value = fields[F_PERIOD]
            period[n] = value if value < TIMES_END else 0
            ip[n] = fields[F_IP]
            cpumode[n] = u16(d, p + 4, big) & 7
            if has_event:
                event[n] = e
            if has_cpu:
                cpu[n] = signed(fields[F_CPU])
            if has_addr:
                addr[n] = fields[F_ADDR]
            if has_raw:
                raw_at[n] = raw_size[n] = -1
                if fields[F_RAW_AT]:
                    raw_at[n] = fields[F_RAW_AT]
                    raw_size[n] = fields[F_RAW_SIZE]
            if has_stack:
                user_at[n] = -1
                user_abi[n] = user_size[n] = user_n[n] = 0
                if fields[F_USER_AT]:
                    user_at[n] = fields[F_USER_AT]
                    value = fields[F_USER_ABI]
                    user_abi[n] = value if value < 0xFF else 0xFF
                    user_size[n] = fields[F_USER_SIZE]
                    user_n[n] = fields[F_USER_N]
            # After everything that was read: offset may be `at`.
            offset[n] = p
            n += 1
    found[N_ROWS] = n
    found[N_CHAIN] = m
    found[N_BAD] = n_bad
    found[FIRST_BAD] = first_bad
    found[N_NO_EVENT] = n_no_event
    found[FIRST_NO_EVENT] = first_no_event


# The same numbers, for the Python side.
STATE_SLOTS = {"pos": POS, "end": END, "n_samples": N_SAMPLES, "n_others": N_OTHERS, "sample_bytes": SAMPLE_BYTES,
               "status": STATUS}  # fmt: skip
STATUS_CODES = {"whole": WHOLE, "cut": CUT, "bad_size": BAD_SIZE, "samples_full": SAMPLES_FULL,
                "others_full": OTHERS_FULL}  # fmt: skip
FOUND_SLOTS = {"n_rows": N_ROWS, "n_chain": N_CHAIN, "n_bad": N_BAD, "first_bad": FIRST_BAD,
               "n_no_event": N_NO_EVENT, "first_no_event": FIRST_NO_EVENT}  # fmt: skip
FIELDS_SIZE = N_FIELDS + 0
LAYOUT_WIDTH = WIDTH + 0
SAMPLE_ID_SIZE_AT = SAMPLE_ID_SIZE + 0


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    walk = plain_integers(walk)
    samples = plain_integers(samples)
