"""Finds the records of a stream, and decodes samples into columns."""

cimport cython
from libc.stdint cimport UINT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from traceferry.native.bytes cimport prefetch, u16, u32, u64
from traceferry.native.search cimport first_from

from traceferry.native.arrays import doubled

# Types of records: RecordType of layout.py.
cdef enum:
    SAMPLE = 9
    HEADER_TRACING_DATA = 66
    AUXTRACE = 71


cpdef enum SampleType:
    """Bits of attr.sample_type: what a sample holds. Not in the order in which it holds them, which `parse` has."""
    IP = 1 << 0
    TID = 1 << 1
    TIME = 1 << 2
    ADDR = 1 << 3
    READ = 1 << 4
    CALLCHAIN = 1 << 5
    ID = 1 << 6
    CPU = 1 << 7
    PERIOD = 1 << 8
    STREAM_ID = 1 << 9
    RAW = 1 << 10
    BRANCH_STACK = 1 << 11
    REGS_USER = 1 << 12
    STACK_USER = 1 << 13
    WEIGHT = 1 << 14
    DATA_SRC = 1 << 15
    IDENTIFIER = 1 << 16
    TRANSACTION = 1 << 17
    REGS_INTR = 1 << 18
    PHYS_ADDR = 1 << 19
    AUX = 1 << 20
    CGROUP = 1 << 21
    DATA_PAGE_SIZE = 1 << 22
    CODE_PAGE_SIZE = 1 << 23
    WEIGHT_STRUCT = 1 << 24


cdef enum:
    FROM_BRANCH_STACK = 0x1FEF800  # all that comes behind RAW
    # PERF_SAMPLE_REGS_ABI_SIMD: vector registers follow the others.
    ABI_SIMD = 4

cdef enum:
    # No clock gets to bit 62; beyond it lies what was not recorded.
    TIMES_END = 0x4000000000000000

# How many bytes ahead memory is asked for. A record says where the next one is: the processor itself would wait for each
# of them. Records of callchains are some 200 bytes long, so 512 bytes were too few where memory is slow.
cdef enum:
    AHEAD = 2048
    CACHE_LINE = 64


@cython.final
cdef class RecordScanner:
    """Finds the records from an offset on: offsets of samples, offsets and types of all others.

    begin: of the first record; n_expected: for how many samples there is memory at first.

    position: of the first record that was not found yet. is_bad: that record is smaller than its header; is_cut: what
    is left is shorter than its record. sample_bytes: the size of all samples.
    """

    cdef const uint8_t[::1] _data
    cdef bint _big
    cdef object _sample_at, _other_at, _other_type
    cdef Py_ssize_t _n_others
    cdef readonly Py_ssize_t position, n_samples
    cdef readonly int64_t sample_bytes
    cdef readonly bint is_bad, is_cut

    def __cinit__(self, const uint8_t[::1] data not None, bint big, Py_ssize_t begin, Py_ssize_t n_expected):
        if begin < 0 or n_expected < 1:
            raise ValueError("RecordScanner: the stream begins before the data, or expects nothing")
        self._data = data
        self._big = big
        self.position = begin
        self._sample_at = np.empty(n_expected, np.int64)
        self._other_at = np.empty(256, np.int64)
        self._other_type = np.empty(256, np.int32)

    @property
    def sample_at(self):
        return self._sample_at[:self.n_samples]

    @property
    def other_at(self):
        return self._other_at[:self._n_others]

    @property
    def other_type(self):
        return self._other_type[:self._n_others]

    def scan(self, Py_ssize_t end):
        """Goes on to `end`, or to the first record that is bad or cut."""
        if end > self._data.shape[0]:
            raise ValueError("scan: the end is outside the data")
        self.is_bad = self.is_cut = False
        while self._find(end):
            if self.n_samples == len(self._sample_at):
                self._sample_at = doubled(self._sample_at)
            if self._n_others == len(self._other_at):
                self._other_at, self._other_type = doubled(self._other_at), doubled(self._other_type)

    cdef bint _find(self, Py_ssize_t end) except -1:
        """Returns whether a column is full."""
        cdef const uint8_t[::1] d = self._data
        cdef bint big = self._big
        cdef int64_t[::1] sample_at = self._sample_at
        cdef int64_t[::1] other_at = self._other_at
        cdef int32_t[::1] other_type = self._other_type
        cdef Py_ssize_t p = self.position
        cdef Py_ssize_t n = self.n_samples
        cdef Py_ssize_t m = self._n_others
        cdef Py_ssize_t n_most = sample_at.shape[0]
        cdef Py_ssize_t m_most = other_at.shape[0]
        cdef int64_t n_bytes = self.sample_bytes
        cdef bint is_full = False
        cdef uint32_t kind, size
        cdef uint64_t header, after
        with nogil:
            while p < end:
                if end - p < 8:
                    self.is_cut = True
                    break
                prefetch(&d[min(p + AHEAD, end - 1)])
                header = u64(d, p, big)
                kind = header >> 32 if big else header
                size = header & 0xFFFF if big else header >> 48
                if size < 8:
                    self.is_bad = True
                    break
                if size > end - p:
                    self.is_cut = True
                    break
                if kind == SAMPLE:
                    if n >= n_most:
                        is_full = True
                        break
                    sample_at[n] = p
                    n_bytes += size
                    n += 1
                    p += size
                    continue
                after = bytes_after(d, p, kind, size, big)
                if after > <uint64_t>(end - p - size):
                    self.is_cut = True
                    break
                if m >= m_most:
                    is_full = True
                    break
                other_at[m] = p
                other_type[m] = min(kind, 0x7FFFFFFF)
                m += 1
                p += size + after
        self.position = p
        self.n_samples = n
        self._n_others = m
        self.sample_bytes = n_bytes
        return is_full


cdef inline uint64_t bytes_after(
    const uint8_t[::1] d, Py_ssize_t p, uint32_t kind, uint32_t size, bint big
) noexcept nogil:
    """Returns how many bytes of data follow a record."""
    if kind == HEADER_TRACING_DATA and size >= 12:
        return (<uint64_t>u32(d, p + 8, big) + 7) // 8 * 8
    if kind == AUXTRACE and size >= 16:
        return u64(d, p + 8, big)
    return 0


# ---------------------------------------------------------------- samples

# What is known of an event. n_regs_user, n_regs_intr: how many registers its samples hold; has_hw_idx, has_counters: of
# branch stacks; period: of samples that record none; sample_id_size: bytes at the end of other records, 0 if not
# sample_id_all; words_size: bytes of the words that a sample begins with.
cdef packed struct Layout:
    uint64_t sample_type
    uint64_t read_format
    uint64_t n_regs_user
    uint64_t n_regs_intr
    uint64_t has_hw_idx
    uint64_t has_counters
    uint64_t period
    uint64_t sample_id_size
    uint64_t words_size

# The same for NumPy.
LAYOUT = np.dtype([(name, np.uint64) for name in (
    "sample_type", "read_format", "n_regs_user", "n_regs_intr", "has_hw_idx", "has_counters", "period",
    "sample_id_size", "words_size",
)])

# One sample. UINT64_MAX where a number is not recorded; the offsets *_at, and chain_n, are 0 then.
cdef struct Sample:
    uint64_t time, pid, tid, cpu, period, addr, ip
    uint64_t read_at, chain_at, chain_n, raw_at, raw_size
    uint64_t user_at, user_abi, user_size, user_n
    # Of events with FROM_BRANCH_STACK alone.
    uint64_t branch_at, branch_n, weight, data_src, phys_addr, cgroup, data_page_size, code_page_size


# What is left of a record: the bytes from `at` to `end`.
cdef struct Rest:
    Py_ssize_t at
    Py_ssize_t end
    bint big


cdef inline bint skip(Rest* rest, uint64_t n, uint64_t size) noexcept nogil:
    """Goes behind n items of so many bytes. Returns whether they are there."""
    if n > <uint64_t>(rest.end - rest.at) // size:
        return False
    rest.at += n * size
    return True


cdef inline bint take(const uint8_t[::1] d, Rest* rest, uint64_t* word) noexcept nogil:
    """Reads the next u64. Returns whether it is there."""
    if rest.end - rest.at < 8:
        return False
    word[0] = u64(d, rest.at, rest.big)
    rest.at += 8
    return True


cdef inline uint64_t bits(uint64_t kinds, uint64_t one, uint64_t other, uint64_t third) noexcept nogil:
    """Returns how many of three sets of bits have one that is set."""
    return (kinds & one != 0) + (kinds & other != 0) + (kinds & third != 0)


cdef bint skip_registers(const uint8_t[::1] d, Rest* rest, uint64_t n_registers, uint64_t* abi) noexcept nogil:
    """Reads the ABI, and goes behind the registers. Returns whether they are there.

    With ABI_SIMD, u16 nr_vectors, vector_qwords, nr_pred, pred_qwords and so many words follow them, as in
    include/uapi/linux/perf_event.h.
    """
    cdef uint64_t n
    cdef Py_ssize_t q
    if not take(d, rest, abi):
        return False
    if not abi[0]:
        return True
    if not skip(rest, n_registers, 8):
        return False
    if not abi[0] & ABI_SIMD:
        return True
    q = rest.at
    if not skip(rest, 1, 8):
        return False
    n = <uint64_t>u16(d, q, rest.big) * u16(d, q + 2, rest.big)
    n += <uint64_t>u16(d, q + 4, rest.big) * u16(d, q + 6, rest.big)
    return skip(rest, n, 8)


cdef inline bint take_if(const uint8_t[::1] d, Rest* rest, uint64_t kinds, uint64_t* word) noexcept nogil:
    """Reads the next u64 where one of the bits is set. Returns whether it is there."""
    return not kinds or take(d, rest, word)


cdef bint from_branch_stack(
    const uint8_t[::1] d, Rest rest, const Layout* layout, bint has_hw_idx, Sample* sample
) noexcept nogil:
    """Reads the fields of a sample from BRANCH_STACK on. Returns whether they fit into it."""
    cdef uint64_t kinds = layout.sample_type
    cdef uint64_t n = 0
    cdef uint64_t abi = 0
    cdef Py_ssize_t registers = 0
    sample.user_at = 0
    sample.branch_at = sample.branch_n = sample.weight = sample.data_src = sample.phys_addr = sample.cgroup = 0
    sample.data_page_size = sample.code_page_size = 0
    if kinds & BRANCH_STACK:
        if not take(d, &rest, &n) or (has_hw_idx and not skip(&rest, 1, 8)):
            return False
        sample.branch_at, sample.branch_n = rest.at, n
        if not skip(&rest, n, 32 if layout.has_counters else 24):
            return False
    if kinds & REGS_USER:
        registers = rest.at
        if not skip_registers(d, &rest, layout.n_regs_user, &sample.user_abi):
            return False
    if kinds & STACK_USER:
        if not take(d, &rest, &n):
            return False
        if n:
            sample.user_size = n
            if not skip(&rest, n, 1) or not take(d, &rest, &n):
                return False
            sample.user_n = min(n, sample.user_size)
            sample.user_at = registers if sample.user_n else 0
    if not take_if(d, &rest, kinds & (WEIGHT | WEIGHT_STRUCT), &sample.weight):
        return False
    if not take_if(d, &rest, kinds & DATA_SRC, &sample.data_src) or not take_if(d, &rest, kinds & TRANSACTION, &n):
        return False
    if kinds & REGS_INTR and not skip_registers(d, &rest, layout.n_regs_intr, &abi):
        return False
    if not take_if(d, &rest, kinds & PHYS_ADDR, &sample.phys_addr):
        return False
    if not take_if(d, &rest, kinds & CGROUP, &sample.cgroup):
        return False
    if not take_if(d, &rest, kinds & DATA_PAGE_SIZE, &sample.data_page_size):
        return False
    if not take_if(d, &rest, kinds & CODE_PAGE_SIZE, &sample.code_page_size):
        return False
    if kinds & AUX:
        return take(d, &rest, &n) and skip(&rest, n, 1)
    return True


cdef bint parse(const uint8_t[::1] d, Rest rest, const Layout* layout, Sample* sample) noexcept nogil:
    """Reads a sample; rest: behind its header. Returns whether what its event says fits into it."""
    cdef uint64_t kinds = layout.sample_type
    cdef uint64_t n = 0
    cdef bint big = rest.big
    cdef Py_ssize_t q = rest.at
    if not skip(&rest, layout.words_size, 1):
        return False
    sample.ip = sample.addr = sample.read_at = sample.chain_at = sample.chain_n = 0
    sample.raw_at = sample.raw_size = sample.user_at = 0
    sample.time = sample.pid = sample.tid = sample.cpu = UINT64_MAX
    sample.period = layout.period
    if kinds & IDENTIFIER:
        q += 8
    if kinds & IP:
        sample.ip = u64(d, q, big)
        q += 8
    if kinds & TID:
        sample.pid = u32(d, q, big)
        sample.tid = u32(d, q + 4, big)
        q += 8
    if kinds & TIME:
        sample.time = u64(d, q, big)
        q += 8
    if kinds & ADDR:
        sample.addr = u64(d, q, big)
        q += 8
    q += 8 * bits(kinds, ID, STREAM_ID, 0)
    if kinds & CPU:
        sample.cpu = u32(d, q, big)
        q += 8
    if kinds & PERIOD:
        sample.period = u64(d, q, big)
        q += 8
    if kinds & READ:
        sample.read_at = rest.at
        if not skip_read(d, &rest, layout.read_format):
            return False
    if kinds & CALLCHAIN:
        if not take(d, &rest, &sample.chain_n):
            return False
        sample.chain_at = rest.at
        if not skip(&rest, sample.chain_n, 8):
            return False
    if kinds & RAW:
        if rest.end - rest.at < 4:
            return False
        sample.raw_size = u32(d, rest.at, big)
        rest.at += 4
        sample.raw_at = rest.at
        if not skip(&rest, sample.raw_size, 1):
            return False
    if kinds & FROM_BRANCH_STACK == 0:
        return True
    if kinds & BRANCH_STACK and layout.has_hw_idx:
        if from_branch_stack(d, rest, layout, True, sample):
            return True
        # The kernel leaves hw_idx out where there was no branch stack to write; perf expects it all the same.
        if rest.end - rest.at < 8 or u64(d, rest.at, big):
            return False
    return from_branch_stack(d, rest, layout, False, sample)


cdef inline bint skip_read(const uint8_t[::1] d, Rest* rest, uint64_t read_format) noexcept nogil:
    """Goes behind the values of READ: see ReadFormat of layout.py."""
    cdef uint64_t times = (read_format & 1) + (read_format >> 1 & 1)
    cdef uint64_t width = 1 + (read_format >> 2 & 1) + (read_format >> 4 & 1)
    cdef uint64_t n = 1
    if read_format & 8 and not take(d, rest, &n):
        return False
    return skip(rest, times, 8) and skip(rest, n, 8 * width)


@cython.final
cdef class SampleDecoder:
    """Decodes samples into rows of columns.

    table: the events; columns: by name, of one length. `offset` holds the offsets of the samples before; event, cpu,
    addr, read_at, raw_at with raw_size, user_at with user_abi, user_size and user_n, branch_at with branch_n, weight, data_src,
    phys_addr, cgroup, data_page_size and code_page_size may be left out. chain_from: -1 copies
    callchains into `chain`; else all samples are at a multiple of 8 from this offset in the data, and so chain_start
    counts.

    n_rows: how many samples were decoded; n_chain: how many entries of callchains were copied. n_bad, n_no_event: how
    many are too short for what their event says, and of how many no event has the id; first_bad, first_no_event: the
    offset of the first of these.
    """

    cdef const uint8_t[::1] _data
    cdef bint _big
    cdef const Layout[::1] _layouts
    cdef Py_ssize_t _id_at
    cdef const uint64_t[::1] _ids
    cdef const int32_t[::1] _id_events
    cdef uint64_t[::1] _chain, _addr, _ip
    cdef int64_t[::1] _offset, _ts, _period, _chain_start, _read_at, _raw_at, _user_at
    cdef int32_t[::1] _pid, _tid, _event, _cpu, _chain_n, _raw_size, _user_size, _user_n
    cdef uint8_t[::1] _cpumode, _user_abi
    cdef int64_t[::1] _branch_at
    cdef int32_t[::1] _branch_n
    cdef uint64_t[::1] _weight, _data_src, _phys_addr, _cgroup, _data_page_size, _code_page_size
    cdef bint _has_rest
    cdef Py_ssize_t _chain_from
    cdef readonly Py_ssize_t n_rows, n_chain
    cdef readonly int64_t n_bad, first_bad, n_no_event, first_no_event

    def __cinit__(
        self, const uint8_t[::1] data not None, bint big, table, dict columns not None, uint64_t[::1] chain not None,
        Py_ssize_t chain_from
    ):
        self._data, self._big = data, big
        self._layouts, self._ids, self._id_events = table.layouts, table.ids, table.id_events
        if len(self._layouts) < 1 or len(self._ids) != len(self._id_events):
            raise ValueError("SampleDecoder: no event, or not an event for each id")
        if len(set(map(len, columns.values()))) != 1:
            raise ValueError("SampleDecoder: columns of several lengths")
        self._id_at = table.id_at if len(self._layouts) > 1 else -1
        self._chain, self._chain_from = chain, chain_from
        self._offset, self._ts, self._period = columns["offset"], columns["ts"], columns["period"]
        self._pid, self._tid, self._cpumode = columns["pid"], columns["tid"], columns["cpumode"]
        self._chain_start, self._chain_n, self._ip = columns["chain_start"], columns["chain_n"], columns["ip"]
        self._event, self._cpu, self._addr = columns.get("event"), columns.get("cpu"), columns.get("addr")
        self._read_at = columns.get("read_at")
        self._raw_at, self._user_at = columns.get("raw_at"), columns.get("user_at")
        if "raw_at" in columns:
            self._raw_size = columns["raw_size"]
        if "user_at" in columns:
            self._user_abi, self._user_size, self._user_n = columns["user_abi"], columns["user_size"], columns["user_n"]
        self._branch_at, self._branch_n = columns.get("branch_at"), columns.get("branch_n")
        self._weight, self._data_src = columns.get("weight"), columns.get("data_src")
        self._phys_addr, self._cgroup = columns.get("phys_addr"), columns.get("cgroup")
        self._data_page_size, self._code_page_size = columns.get("data_page_size"), columns.get("code_page_size")
        rest = ("branch_at", "weight", "data_src", "phys_addr", "cgroup", "data_page_size", "code_page_size")
        self._has_rest = any(name in columns for name in rest)

    def decode(self, Py_ssize_t begin, Py_ssize_t end):
        """Decodes the samples begin to end, which are later than those before: their rows follow."""
        if begin < self.n_rows or end > self._offset.shape[0]:
            raise ValueError("decode: there are no such samples")
        cdef const uint8_t[::1] d = self._data
        cdef bint big = self._big
        cdef Sample sample
        cdef Rest rest
        cdef Py_ssize_t nth, p, size
        cdef Py_ssize_t event = 0
        cdef uint64_t latest = 0
        cdef uint64_t wanted
        cdef bint is_full = False
        rest.big = big
        with nogil:
            for nth in range(begin, end):
                p = self._offset[nth]
                size = u16(d, p + 6, big) if 0 <= p <= d.shape[0] - 8 else 0
                if size < 8 or size > d.shape[0] - p:
                    self._note_bad(p)
                    continue
                prefetch(&d[min(p + AHEAD, d.shape[0] - 1)])
                prefetch(&d[min(p + AHEAD + CACHE_LINE, d.shape[0] - 1)])
                rest.at, rest.end = p + 8, p + size
                if self._id_at >= 0:
                    if self._id_at > rest.end - rest.at - 8:
                        self._note_bad(p)
                        continue
                    # perf takes the first event for the id 0.
                    wanted = u64(d, rest.at + self._id_at, big)
                    if wanted != latest:
                        latest = wanted
                        event = self._event_of(wanted) if wanted else 0
                    if event < 0:
                        if self.n_no_event == 0:
                            self.first_no_event = p
                        self.n_no_event += 1
                        continue
                if not parse(d, rest, &self._layouts[event], &sample):
                    self._note_bad(p)
                elif not self._copy_chain(d, &sample):
                    is_full = True
                    break
                else:
                    self._write(p, u16(d, p + 4, big) & 7, event, &sample)
        if is_full:
            raise ValueError("decode: callchains are longer than their column")

    cdef inline void _note_bad(self, Py_ssize_t at) noexcept nogil:
        if self.n_bad == 0:
            self.first_bad = at
        self.n_bad += 1

    cdef Py_ssize_t _event_of(self, uint64_t wanted) noexcept nogil:
        """Returns the event with this id, -1 for none."""
        cdef Py_ssize_t nth = first_from(self._ids, 0, self._ids.shape[0], wanted)
        if nth == self._ids.shape[0] or self._ids[nth] != wanted:
            return -1
        return self._id_events[nth] if self._id_events[nth] < self._layouts.shape[0] else -1

    cdef inline bint _copy_chain(self, const uint8_t[::1] d, const Sample* sample) noexcept nogil:
        """Returns whether there was space for it."""
        cdef Py_ssize_t n = sample.chain_n
        cdef Py_ssize_t m = self.n_chain
        cdef Py_ssize_t q = sample.chain_at
        cdef Py_ssize_t i
        self._chain_start[self.n_rows] = m if self._chain_from < 0 or n == 0 else (q - self._chain_from) >> 3
        if self._chain_from >= 0 or n == 0:
            return True
        if n > self._chain.shape[0] - m:
            return False
        for i in range(n):
            self._chain[m + i] = u64(d, q + 8 * i, self._big)
        self.n_chain += n
        return True

    cdef inline void _write(self, Py_ssize_t at, int cpumode, Py_ssize_t event, const Sample* sample) noexcept nogil:
        cdef Py_ssize_t n = self.n_rows
        self._chain_n[n] = sample.chain_n
        self._ts[n] = sample.time if sample.time < TIMES_END else -1
        self._pid[n] = <int32_t><uint32_t>sample.pid
        self._tid[n] = <int32_t><uint32_t>sample.tid
        self._period[n] = sample.period if sample.period < TIMES_END else 0
        self._ip[n] = sample.ip
        self._cpumode[n] = cpumode
        if self._event is not None:
            self._event[n] = event
        if self._cpu is not None:
            self._cpu[n] = <int32_t><uint32_t>sample.cpu
        if self._addr is not None:
            self._addr[n] = sample.addr
        if self._read_at is not None:
            self._read_at[n] = sample.read_at if sample.read_at else -1
        if self._raw_at is not None:
            self._raw_at[n] = sample.raw_at if sample.raw_at else -1
            self._raw_size[n] = sample.raw_size if sample.raw_at else -1
        if self._user_at is not None:
            self._user_at[n] = sample.user_at if sample.user_at else -1
            self._user_abi[n] = (sample.user_abi if sample.user_abi < 0xFF else 0xFF) if sample.user_at else 0
            self._user_size[n] = sample.user_size if sample.user_at else 0
            self._user_n[n] = sample.user_n if sample.user_at else 0
        if self._has_rest:
            self._write_rest(n, self._layouts[event].sample_type & FROM_BRANCH_STACK != 0, sample)
        # After everything that was read: a row is not behind the sample that it is of.
        self._offset[n] = at
        self.n_rows = n + 1

    cdef void _write_rest(self, Py_ssize_t n, bint has_rest, const Sample* sample) noexcept nogil:
        """Writes what comes behind RAW; has_rest: whether the sample's event has anything of it."""
        if self._branch_at is not None and self._branch_n is not None:
            self._branch_at[n] = sample.branch_at if has_rest and sample.branch_n else -1
            self._branch_n[n] = sample.branch_n if has_rest else 0
        if self._weight is not None:
            self._weight[n] = sample.weight if has_rest else 0
        if self._data_src is not None:
            self._data_src[n] = sample.data_src if has_rest else 0
        if self._phys_addr is not None:
            self._phys_addr[n] = sample.phys_addr if has_rest else 0
        if self._cgroup is not None:
            self._cgroup[n] = sample.cgroup if has_rest else 0
        if self._data_page_size is not None:
            self._data_page_size[n] = sample.data_page_size if has_rest else 0
        if self._code_page_size is not None:
            self._code_page_size[n] = sample.code_page_size if has_rest else 0
