"""Branch stacks: entries of 24 bytes, u64 from, to and flags, the latest first; and the addresses in them."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from traceferry.model import schema
from traceferry.native.arrays import longer

from traceferry.native.bytes cimport u64
from traceferry.native.interning cimport intern_pair, slot_of_pair
from traceferry.native.search cimport last_at

cdef enum:
    ENTRY_SIZE = 24
    # What goes on for longer between two branches is no run of code: branches are missing between them.
    LONGEST_RUN = 1 << 20

cdef uint8_t MISPREDICTED = schema.BRANCH_MISPREDICTED
cdef uint8_t PREDICTED = schema.BRANCH_PREDICTED


cdef check(const uint8_t[::1] data, const int64_t[::1] at, const int32_t[::1] n):
    """Raises ValueError where a sample's branches are not inside the data. Returns how many there are."""
    cdef int64_t total = 0
    cdef Py_ssize_t i
    if at.shape[0] != n.shape[0]:
        raise ValueError("branches: columns of several lengths")
    for i in range(at.shape[0]):
        if n[i] < 0 or (n[i] and not 0 <= at[i] <= data.shape[0] - <int64_t>ENTRY_SIZE * n[i]):
            raise ValueError("branches: entries outside the data")
        total += n[i]
    return total


def entries(const uint8_t[::1] data not None, const int64_t[::1] at not None, const int32_t[::1] n not None, bint big):
    """Returns the entries of some samples, one behind the other: from, to, uint64.

    at, n: where in the data each sample's entries begin, and how many there are."""
    found = np.empty((2, check(data, at, n)), np.uint64)
    cdef uint64_t[:, ::1] words = found
    cdef Py_ssize_t used = 0
    cdef Py_ssize_t i, nth, word, p
    with nogil:
        for i in range(at.shape[0]):
            for nth in range(n[i]):
                p = at[i] + ENTRY_SIZE * nth
                for word in range(2):
                    words[word, used] = u64(data, p + 8 * word, big)
                used += 1
    return found


def count_known(
    const uint8_t[::1] data not None, const int64_t[::1] at not None, const int32_t[::1] n not None, bint big
):
    """Returns how many entries have an address that is not 0."""
    cdef int64_t known = 0
    cdef Py_ssize_t i, nth, p
    check(data, at, n)
    with nogil:
        for i in range(at.shape[0]):
            for nth in range(n[i]):
                p = at[i] + ENTRY_SIZE * nth
                known += u64(data, p, big) != 0 or u64(data, p + 8, big) != 0
    return known


def addresses(
    const uint8_t[::1] data not None, const int64_t[::1] at not None, const int32_t[::1] n not None,
    const int32_t[::1] space not None, uint64_t kernel_from, int32_t kernel_space, bint big
):
    """Returns (int32 spaces, uint64 addresses) of all branches and targets, each pair once. space: of each sample's
    program; from kernel_from on, addresses are of the space of the kernel."""
    cdef Py_ssize_t most = 0
    cdef Py_ssize_t size, i, nth, p, side
    cdef Py_ssize_t n_found = 0
    cdef int32_t one
    cdef uint64_t address
    check(data, at, n)
    if space.shape[0] != n.shape[0]:
        raise ValueError("branches: columns of several lengths")
    for i in range(n.shape[0]):
        most = max(most, n[i])
    size = 2 * most + 1024
    spaces_array, addresses_array = np.empty(size, np.int32), np.empty(size, np.uint64)
    cdef int32_t[::1] spaces = spaces_array
    cdef uint64_t[::1] found = addresses_array
    cdef int32_t[::1] slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
    for i in range(at.shape[0]):
        if n_found + 2 * n[i] > size:
            size *= 4
            spaces_array, addresses_array = longer(spaces_array, size), longer(addresses_array, size)
            spaces, found = spaces_array, addresses_array
            slots = np.full(1 << (2 * size - 1).bit_length(), -1, np.int32)
            for p in range(n_found):
                intern_pair(spaces, found, slots, p, spaces[p], found[p])
        with nogil:
            for nth in range(n[i]):
                for side in range(2):
                    address = u64(data, at[i] + ENTRY_SIZE * nth + 8 * side, big)
                    one = kernel_space if address >= kernel_from else space[i]
                    n_found += intern_pair(spaces, found, slots, n_found, one, address) == n_found
    return spaces_array[:n_found], addresses_array[:n_found]


# ---------------------------------------------------------------- what addresses stand for


@cython.final
cdef class Places:
    """What addresses of spaces stand for over time.

    spaces, addresses: each pair once. Of pair i, the versions first_version[i] to first_version[i + 1]: start (int64,
    rising, the first is for all that is before it, too) and stack (int32) of each, and of the innermost function there
    lib (int32) and address (int64), -1 for none.
    """

    cdef int32_t[::1] spaces
    cdef uint64_t[::1] addresses
    cdef int32_t[::1] slots
    cdef const int64_t[::1] first_version
    cdef const int64_t[::1] start
    cdef const int32_t[::1] stack
    cdef const int32_t[::1] lib
    cdef const int64_t[::1] address
    cdef uint64_t kernel_from
    cdef int32_t kernel_space

    def __cinit__(self, spaces, addresses, first_version, start, stack, lib, address, kernel_from, kernel_space):
        cdef Py_ssize_t n = len(spaces)
        cdef Py_ssize_t i
        self.spaces, self.addresses = np.array(spaces, np.int32), np.array(addresses, np.uint64)
        self.first_version, self.start, self.stack = first_version, start, stack
        self.lib, self.address = lib, address
        self.kernel_from, self.kernel_space = kernel_from, kernel_space
        lengths = {len(start), len(stack), len(lib), len(address)}
        if len(addresses) != n or len(first_version) != n + 1 or lengths != {first_version[n]}:
            raise ValueError("Places: columns of different lengths")
        if np.any(np.diff(first_version) < 1) or first_version[0] != 0:
            raise ValueError("Places: an address without a version")
        self.slots = np.full(1 << (2 * n).bit_length(), -1, np.int32)
        for i in range(n):
            intern_pair(self.spaces, self.addresses, self.slots, i, self.spaces[i], self.addresses[i])

    cdef Py_ssize_t version(self, int32_t space, uint64_t address, int64_t ts) noexcept nogil:
        """Returns the version of an address at a time (ns), -1 of one that is not there. space: of the program that
        ran."""
        cdef int32_t row
        cdef Py_ssize_t first
        space = self.kernel_space if address >= self.kernel_from else space
        row = self.slots[slot_of_pair(self.spaces, self.addresses, self.slots, space, address)]
        if row < 0:
            return -1
        first = self.first_version[row]
        return max(first, last_at(self.start, first, self.first_version[row + 1], ts))

    cdef bint is_run(self, Py_ssize_t start, Py_ssize_t end) noexcept nogil:
        """Whether a run of code ends in the library in which it starts, and not before. start, end: versions."""
        return 0 <= self.lib[start] == self.lib[end] and 0 <= self.address[start] <= self.address[end]

    def table(
        self, const uint8_t[::1] data not None, const int64_t[::1] at not None, const int32_t[::1] n not None,
        bint big, const int64_t[::1] ts not None, const int32_t[::1] space not None, const uint8_t[::1] is_any not None
    ):
        """Returns the columns of `branches` but ts, and of which sample each row is, the oldest of a sample first.
        Branches without addresses, which are 0, are left out.

        ts (ns), space: of each sample; is_any: whether all its branches were recorded, so that what is between two of
        them is a run of code."""
        cdef Py_ssize_t n_rows = check(data, at, n)
        cdef Py_ssize_t used = 0
        cdef Py_ssize_t i, nth, p, begin, end, before
        cdef uint64_t begin_address, end_address, before_address, flags
        if not at.shape[0] == ts.shape[0] == space.shape[0] == is_any.shape[0]:
            raise ValueError("branches: columns of several lengths")
        columns = (
            np.empty(n_rows, np.int64), np.empty(n_rows, np.int32), np.empty(n_rows, np.int32),
            np.empty(n_rows, np.int32), np.empty(n_rows, np.uint8), np.empty(n_rows, np.int64),
        )
        cdef int64_t[::1] of_sample = columns[0]
        cdef int32_t[::1] start = columns[1]
        cdef int32_t[::1] source = columns[2]
        cdef int32_t[::1] target = columns[3]
        cdef uint8_t[::1] outcome = columns[4]
        cdef int64_t[::1] cycles = columns[5]
        with nogil:
            for i in range(at.shape[0]):
                before = -1
                before_address = 0
                for nth in range(n[i] - 1, -1, -1):
                    p = at[i] + ENTRY_SIZE * nth
                    begin_address, end_address = u64(data, p, big), u64(data, p + 8, big)
                    begin = self.version(space[i], begin_address, ts[i]) if begin_address else -1
                    end = self.version(space[i], end_address, ts[i]) if end_address else -1
                    source[used] = self.stack[begin] if begin >= 0 else -1
                    target[used] = self.stack[end] if end >= 0 else -1
                    start[used] = -1
                    if (
                        is_any[i] and before >= 0 and begin >= 0 and self.stack[before] >= 0 and source[used] >= 0
                        and begin_address >= before_address and begin_address - before_address < LONGEST_RUN
                        and self.is_run(before, begin)
                    ):
                        start[used] = self.stack[before]
                    flags = u64(data, p + 16, big)
                    outcome[used] = outcome_of(flags, big)
                    cycles[used] = flags >> (44 if big else 4) & 0xFFFF
                    of_sample[used] = i
                    used += source[used] >= 0 or target[used] >= 0
                    before, before_address = end, end_address
        return [column[:used] for column in columns]


cdef uint8_t outcome_of(uint64_t flags, bint big) noexcept nogil:
    """Compilers of big-endian machines begin with the highest bit."""
    if flags >> (63 if big else 0) & 1:
        return MISPREDICTED
    return PREDICTED if flags >> (62 if big else 1) & 1 else 0
