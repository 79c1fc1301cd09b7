"""Callchains that many samples have."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp

from traceferry.native.hashing cimport GOLDEN

# How many callchains are remembered, and keys of them: as many as a processor has cache for. Another is read where it
# stands, far from those before.
cpdef enum Remembered:
    MOST_CHAINS = 1 << 14
    MOST_KEYS = 1 << 20


# A callchain: where it is in the words of all, and where its keys begin among those of all; space: of its
# process; last_ts: when a later sample had it last, -1 where none did.
cdef struct Chain:
    Py_ssize_t start
    Py_ssize_t first_key
    int64_t last_ts
    int32_t length
    int32_t space
    int32_t n_keys


cdef inline uint64_t hash_of(const uint64_t* words, Py_ssize_t n, int32_t space) noexcept nogil:
    """Two halves at a time, as each multiplication waits for the one before."""
    cdef uint64_t a = <uint64_t>(n ^ <Py_ssize_t>space << 32)
    cdef uint64_t b = GOLDEN
    cdef Py_ssize_t k
    for k in range(0, n - 1, 2):
        a = (a ^ words[k]) * <uint64_t>GOLDEN
        b = (b ^ words[k + 1]) * <uint64_t>GOLDEN
        a ^= a >> 32
        b ^= b >> 29
    if n & 1:
        a = (a ^ words[n - 1]) * <uint64_t>GOLDEN
    a = (a ^ b ^ a >> 31) * <uint64_t>GOLDEN
    return a ^ a >> 32


cdef class ChainTable:
    """Callchains, each once, with their hashes and the keys that they consist of, the root's first. words: of all
    callchains."""

    cdef const uint64_t[::1] words
    cdef object chain_array, hash_array, key_array
    cdef Chain* chains
    cdef uint64_t[::1] hashes
    cdef int32_t[::1] keys
    cdef int32_t[::1] slots
    cdef Py_ssize_t n
    cdef Py_ssize_t size
    cdef Py_ssize_t n_keys

    cdef inline Py_ssize_t slot_of(self, Py_ssize_t start, int32_t length, int32_t space, uint64_t hashed) noexcept nogil:
        """Returns the slot where a callchain stands, or the free one where it belongs."""
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef uint64_t h = hashed & mask
        cdef int32_t row = self.slots[h]
        cdef Chain* known
        while row >= 0:
            known = &self.chains[row]
            if self.hashes[row] == hashed and known.length == length and known.space == space and not memcmp(
                &self.words[known.start], &self.words[start], length * sizeof(uint64_t)
            ):
                break
            h = (h + 1) & mask
            row = self.slots[h]
        return h

    cdef inline int32_t add(self, Py_ssize_t slot, uint64_t hashed, Chain chain) noexcept nogil:
        """Adds a callchain, for which there is room, and the number of its keys; returns its row. slot: where it belongs."""
        cdef int32_t row = self.n
        self.slots[slot] = row
        self.hashes[row] = hashed
        self.chains[row] = chain
        self.n += 1
        self.n_keys += chain.n_keys
        return row

    cdef inline bint has_room(self, Py_ssize_t n_keys) noexcept nogil:
        """Whether a callchain of so many keys can be added at once."""
        return self.n < self.size and self.n_keys + n_keys <= self.keys.shape[0]

    cdef inline bint is_full(self, Py_ssize_t n_keys) noexcept nogil:
        """Whether such a callchain will never be added."""
        return self.n >= MOST_CHAINS or self.n_keys + n_keys > MOST_KEYS

    cdef int grow(self, Py_ssize_t n_keys) except -1
