"""Texts within bytes: each once, and put together."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

import numpy as np

from traceferry.native.bytes cimport load8
from traceferry.native.hashing cimport GOLDEN, fill_slots

from traceferry.native.arrays import doubled

cdef enum:
    FIRST_TEXTS = 1 << 8


cdef inline uint64_t hash_of(const uint8_t[::1] d, int64_t at, int64_t end) noexcept nogil:
    cdef uint64_t h = <uint64_t> (end - at)
    cdef uint64_t rest = 0
    while at + 8 <= end:
        h = (h ^ load8(d, at)) * <uint64_t> GOLDEN
        h ^= h >> 32
        at += 8
    while at < end:
        rest = rest << 8 | d[at]
        at += 1
    h = (h ^ rest) * <uint64_t> GOLDEN
    return h ^ (h >> 32)


cdef class TextTable:
    """Texts of the same bytes, each once."""

    cdef const uint8_t[::1] data
    cdef int64_t[::1] begins
    cdef int64_t[::1] ends
    cdef uint64_t[::1] hashes
    cdef int32_t[::1] slots
    cdef int32_t n_texts

    def __cinit__(self, const uint8_t[::1] data not None):
        self.data = data
        self.begins = np.empty(FIRST_TEXTS, np.int64)
        self.ends, self.hashes = np.empty(FIRST_TEXTS, np.int64), np.empty(FIRST_TEXTS, np.uint64)
        self.slots = np.full(2 * FIRST_TEXTS, -1, np.int32)

    def __len__(self):
        return self.n_texts

    @property
    def begin(self):
        """int64: where each text begins, in the order in which they were met."""
        return np.asarray(self.begins)[:self.n_texts]

    @property
    def end(self):
        return np.asarray(self.ends)[:self.n_texts]

    def intern(self, const int64_t[::1] begins not None, const int64_t[::1] ends not None):
        """Returns the numbers of texts, int32."""
        cdef Py_ssize_t n = checked(self.data, begins, ends)
        cdef Py_ssize_t i = 0
        found = np.empty(n, np.int32)
        cdef int32_t[::1] numbers = found
        while i < n:
            with nogil:
                while i < n and self.n_texts < self.begins.shape[0]:
                    numbers[i] = self.number(begins[i], ends[i])
                    i += 1
            if i < n:
                self.grow()
        return found

    def intern_terminated(self, Py_ssize_t n):
        """Returns the numbers of the n texts that the data consists of, int32: each ends with a zero."""
        cdef Py_ssize_t size = self.data.shape[0]
        cdef Py_ssize_t i = 0
        cdef int64_t begin = 0
        cdef const uint8_t* zero = NULL
        found = np.empty(n, np.int32)
        cdef int32_t[::1] numbers = found
        while i < n:
            with nogil:
                while i < n and self.n_texts < self.begins.shape[0]:
                    zero = <const uint8_t*> memchr(&self.data[begin], 0, size - begin) if begin < size else NULL
                    if zero == NULL:
                        break
                    numbers[i] = self.number(begin, zero - &self.data[0])
                    i, begin = i + 1, zero - &self.data[0] + 1
            if i < n and self.n_texts < self.begins.shape[0]:
                break
            if i < n:
                self.grow()
        if i < n or begin != size:
            raise ValueError("another number of texts")
        return found

    cdef int32_t number(self, int64_t begin, int64_t end) noexcept nogil:
        cdef uint64_t h = hash_of(self.data, begin, end)
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef uint64_t at = h & mask
        cdef int32_t row = self.slots[at]
        while row >= 0:
            if self.hashes[row] == h and self.ends[row] - self.begins[row] == end - begin:
                if begin == end or memcmp(&self.data[self.begins[row]], &self.data[begin], end - begin) == 0:
                    return row
            at = (at + 1) & mask
            row = self.slots[at]
        row = self.n_texts
        self.begins[row], self.ends[row], self.hashes[row], self.slots[at] = begin, end, h, row
        self.n_texts = row + 1
        return row

    cdef int grow(self) except -1:
        self.begins, self.ends = doubled(np.asarray(self.begins)), doubled(np.asarray(self.ends))
        self.hashes = doubled(np.asarray(self.hashes))
        self.slots = np.full(2 * self.begins.shape[0], -1, np.int32)
        fill_slots(self.hashes, self.slots, self.n_texts)
        return 0


def joined(
    const uint8_t[::1] data not None, const int64_t[::1] begins not None, const int64_t[::1] ends not None,
    bytes around not None
):
    """Returns uint8: the texts one after the other, with around[0] in front, around[1] between and around[2] behind."""
    cdef Py_ssize_t n = checked(data, begins, ends)
    cdef Py_ssize_t i
    cdef int64_t size = n + 1 + (n == 0)
    cdef int64_t at = 1
    cdef const uint8_t[::1] marks = around
    if marks.shape[0] != 3:
        raise ValueError("three marks are needed")
    for i in range(n):
        size += ends[i] - begins[i]
    found = np.empty(size, np.uint8)
    cdef uint8_t[::1] text = found
    text[0], text[size - 1] = marks[0], marks[2]
    with nogil:
        for i in range(n):
            if i:
                text[at] = marks[1]
                at += 1
            if ends[i] > begins[i]:
                memcpy(&text[at], &data[begins[i]], ends[i] - begins[i])
                at += ends[i] - begins[i]
    return found


def measured(
    const uint8_t[::1] data not None, const int64_t[::1] begins not None, uint8_t end, Py_ssize_t most, uint8_t letter
):
    """Returns (the length of each text, at most `most`; how many of the byte `letter` it begins with): int64. A text ends
    at a zero, at the byte `end`, or with the data."""
    cdef Py_ssize_t n = begins.shape[0]
    cdef Py_ssize_t i
    cdef int64_t at, stop
    lengths, leads = np.empty(n, np.int64), np.empty(n, np.int64)
    cdef int64_t[::1] length = lengths
    cdef int64_t[::1] lead = leads
    for i in range(n):
        if not 0 <= begins[i] <= data.shape[0]:
            raise ValueError("outside of the data")
    with nogil:
        for i in range(n):
            at, stop = begins[i], min(begins[i] + most, data.shape[0])
            while at < stop and data[at] == letter and letter != end:
                at += 1
            lead[i] = at - begins[i]
            while at < stop and data[at] != 0 and data[at] != end:
                at += 1
            length[i] = at - begins[i]
    return lengths, leads


cdef Py_ssize_t checked(const uint8_t[::1] data, const int64_t[::1] begins, const int64_t[::1] ends) except -1:
    """Returns how many texts there are."""
    cdef Py_ssize_t i
    if begins.shape[0] != ends.shape[0]:
        raise ValueError("columns of different lengths")
    for i in range(begins.shape[0]):
        if not 0 <= begins[i] <= ends[i] <= data.shape[0]:
            raise ValueError("outside of the data")
    return begins.shape[0]
