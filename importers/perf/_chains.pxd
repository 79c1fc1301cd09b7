"""Callchains in a tree: what several have in common at the root, each once."""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from traceferry.native.bytes cimport prefetch
from traceferry.native.hashing cimport GOLDEN
from traceferry.native.interning cimport intern_pair

# What hashes are multiplied with.
cdef enum:
    STEP = 0xD6E8FEB86659FD93
    OTHER = 0xA0761D6478BD642F
    OTHER_STEP = 0xE7037ED1A0B428DB


# 128 bits, which stand for what was hashed: to compare words themselves, which lie far from each other, would take
# longer than all else.
cdef struct Hash:
    uint64_t low
    uint64_t high


# A part of a callchain, up to the root. high: of its hash, hashed: the lowest 32 bits of that, a slot has those between
# them; parent: the node of the next address outwards, -1 is none; key: of its first address; last: the latest sample
# whose callchain it is as a whole, and, once all are collected, of all that end with it.
cdef struct Node:
    uint64_t high
    uint32_t hashed
    int32_t parent
    int32_t key
    int32_t last


cdef inline Hash hash_with(Hash outer, uint64_t word) noexcept nogil:
    """Returns the hash of a word and those outside of it: the multiplications of words do not wait for one another."""
    cdef uint64_t x = word * <uint64_t>GOLDEN
    cdef uint64_t y = word * <uint64_t>OTHER
    return Hash(
        outer.low * <uint64_t>STEP + (x ^ x >> 32) + 1, outer.high * <uint64_t>OTHER_STEP + (y ^ y >> 32) + 1
    )


cdef inline uint64_t mixed(uint64_t hashed, uint64_t other) noexcept nogil:
    cdef uint64_t x = (hashed ^ other * <uint64_t>STEP) * <uint64_t>GOLDEN
    x = (x ^ x >> 32) * <uint64_t>OTHER
    return x ^ x >> 29


cdef inline Hash hash_in(Hash hashed, int32_t own, int32_t mode) noexcept nogil:
    """Returns the hash of a node. hashed: of its words; own: the space of its process; mode: the space of its first
    address, and whether that is exact."""
    cdef uint64_t where = <uint64_t>own << 32 | <uint64_t>mode
    return Hash(mixed(hashed.low, where), mixed(hashed.high, where))


cdef class KeyTable:
    """Keys, each once, with the samples that have them first and last."""

    cdef list arrays
    cdef int32_t[::1] spaces
    cdef uint64_t[::1] addresses
    cdef int32_t[::1] first
    cdef int32_t[::1] last
    cdef int32_t[::1] slots
    cdef Py_ssize_t n
    cdef Py_ssize_t size

    cdef grow(self, Py_ssize_t size)

    cdef inline int32_t of(self, int32_t space, uint64_t address, int32_t sample) noexcept nogil:
        """Returns the number of a key. There must be space for it."""
        cdef int32_t key = intern_pair(self.spaces, self.addresses, self.slots, self.n, space, address)
        if key == self.n:
            self.first[key] = self.last[key] = sample
            self.n += 1
        return key


cdef class ChainTree:
    """Nodes, each behind its parent. A slot has, above the number of a node and 1, the high half of its hash; 0 is
    free."""

    cdef KeyTable keys
    cdef Node* nodes
    cdef uint64_t[::1] slots
    cdef Py_ssize_t n
    cdef Py_ssize_t size

    cdef int reserve(self, Py_ssize_t n) except -1

    cdef inline bint has_room(self, Py_ssize_t n) noexcept nogil:
        """Whether n nodes can be added at once."""
        return self.n + n <= self.size and self.keys.n + n <= self.keys.size

    cdef inline void prefetch_slot(self, Hash hashed) noexcept nogil:
        prefetch(&self.slots[hashed.low & (self.slots.shape[0] - 1)])

    cdef inline bint prefetch_node(self, Hash hashed) noexcept nogil:
        """Returns whether there probably is a node: one whose first slot is its own."""
        cdef uint64_t slot = self.slots[hashed.low & (self.slots.shape[0] - 1)]
        if slot == 0 or slot >> 32 != hashed.low >> 32:
            return False
        prefetch(&self.nodes[<uint32_t>slot - 1])
        return True

    cdef inline int32_t find(self, Hash hashed) noexcept nogil:
        """Returns a node, -1 where there is none."""
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef uint64_t h = hashed.low & mask
        cdef const Node* node
        while self.slots[h]:
            if self.slots[h] >> 32 == hashed.low >> 32:
                node = &self.nodes[<uint32_t>self.slots[h] - 1]
                if node.high == hashed.high and node.hashed == <uint32_t>hashed.low:
                    return <int32_t>(<uint32_t>self.slots[h] - 1)
            h = (h + 1) & mask
        return -1

    cdef inline int32_t add(self, Hash hashed, int32_t parent, int32_t key, int32_t sample) noexcept nogil:
        """Adds a node that is not there, for which there is room; returns its number."""
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef uint64_t h = hashed.low & mask
        while self.slots[h]:
            h = (h + 1) & mask
        self.nodes[self.n] = Node(hashed.high, <uint32_t>hashed.low, parent, key, sample)
        self.n += 1
        self.slots[h] = hashed.low >> 32 << 32 | <uint64_t>self.n
        return self.n - 1

    cdef void spread_samples(self) noexcept nogil
