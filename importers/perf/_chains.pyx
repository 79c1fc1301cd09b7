"""Callchains that many samples have: a thread waits at the same places again and again, and what each chain consists of
need be found once."""

from libc.stdint cimport int32_t, uint8_t, uint64_t

import numpy as np

from traceferry.native.hashing cimport fill_slots

from traceferry.native.arrays import longer


cdef class ChainTable:
    def __cinit__(self, const uint64_t[::1] words not None):
        self.words = words
        self.chain_array = np.empty(0, np.uint8)
        self.hash_array = np.empty(0, np.uint64)
        self.key_array = np.empty(0, np.int32)
        self.grow(0)

    cdef int grow(self, Py_ssize_t n_keys) except -1:
        """Makes room for more callchains, of which the next one has so many keys."""
        cdef uint8_t[::1] held
        if self.n == self.size:
            self.size = max(4 * self.size, 1 << 10)
            self.chain_array = longer(self.chain_array, self.size * sizeof(Chain))
            held = self.chain_array
            self.chains = <Chain*>&held[0]
            self.hash_array = longer(self.hash_array, self.size)
            self.hashes = self.hash_array
            self.slots = np.full(2 * self.size, -1, np.int32)
            fill_slots(self.hashes, self.slots, self.n)
        if self.n_keys + n_keys > len(self.key_array):
            self.key_array = longer(self.key_array, max(4 * len(self.key_array), self.n_keys + n_keys, 1 << 14))
            self.keys = self.key_array
        return 0
