"""Branch stacks: entries of 24 bytes, u64 from, to and flags, the latest first; and the addresses in them."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from traceferry.native.bytes cimport u64
from traceferry.native.interning cimport intern_pair

from traceferry.native.arrays import longer

cdef enum:
    ENTRY_SIZE = 24


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
    """Returns the entries of some samples, one behind the other: from, to, flags, uint64.

    at, n: where in the data each sample's entries begin, and how many there are."""
    found = np.empty((3, check(data, at, n)), np.uint64)
    cdef uint64_t[:, ::1] words = found
    cdef Py_ssize_t used = 0
    cdef Py_ssize_t i, nth, word, p
    with nogil:
        for i in range(at.shape[0]):
            for nth in range(n[i]):
                p = at[i] + ENTRY_SIZE * nth
                for word in range(3):
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
