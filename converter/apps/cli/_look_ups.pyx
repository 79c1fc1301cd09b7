"""Addresses from text, and what is found at them as text and as JSON."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

import cython
import numpy as np

from traceferry.native.number_text cimport put_decimal, put_prefixed_hex

cdef enum:
    MAX_DIGITS = 16
    # An address, an offset and what stands around them; a line number and what stands around a frame.
    AROUND_ADDRESS = 160
    AROUND_FRAME = 128


cdef inline int digit_of(uint8_t c) noexcept nogil:
    """Returns the value of a hexadecimal digit; -1: it is none."""
    if 48 <= c <= 57:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c <= 102 else -1


cdef inline bint is_space(uint8_t c) noexcept nogil:
    """Whether Python's str.split() splits there, among what is ASCII and no end of a line."""
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


def first_words(const uint8_t[::1] lines not None, Py_ssize_t at):
    """Reads the first word of each line from `at` on, an address in hex; empty lines have none. Returns the addresses,
    uint64, and where the first line begins that is not so, or the end. A line ends with \\n alone."""
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t size = lines.shape[0]
    cdef Py_ssize_t i
    cdef Py_ssize_t begin = at
    cdef Py_ssize_t first
    cdef uint64_t value
    if not 0 <= at <= size:
        raise ValueError("first_words: beyond the end")
    for i in range(at, size):
        n += lines[i] == c"\n"
    found = np.empty(n + 1, np.uint64)
    cdef uint64_t[::1] addresses = found
    n = 0
    with nogil:
        while begin < size:
            i = begin
            while i < size and lines[i] != c"\n" and is_space(lines[i]):
                i += 1
            if i < size and lines[i] != c"\n":
                if i + 1 < size and lines[i] == c"0" and lines[i + 1] | 32 == c"x":
                    i += 2
                first = i
                value = 0
                while i < size and digit_of(lines[i]) >= 0:
                    value = value << 4 | <uint64_t> digit_of(lines[i])
                    i += 1
                if not 0 < i - first <= MAX_DIGITS or i < size and not is_space(lines[i]):
                    break
                addresses[n] = value
                n += 1
            while i < size and lines[i] != c"\n":
                i += 1
            begin = i + 1
    return found[:n], min(begin, size)


@cython.final
cdef class Pieces:
    """Texts as bytes, numbered."""

    cdef bytes data
    cdef const uint8_t* text
    cdef int64_t[::1] at
    cdef int64_t n

    def __cinit__(self, list texts not None):
        self.data = b"".join(texts)
        self.text = self.data
        self.n = len(texts)
        sizes = np.zeros(self.n + 1, np.int64)
        sizes[1:] = [len(text) for text in texts]
        self.at = np.cumsum(sizes)

    cdef inline int64_t size(self, int64_t nth) noexcept nogil:
        return self.at[nth + 1] - self.at[nth]

    cdef inline uint8_t* put(self, uint8_t* o, int64_t nth) noexcept nogil:
        cdef int64_t size = self.size(nth)
        memcpy(o, self.text + self.at[nth], size)
        return o + size


cdef inline uint8_t* put(uint8_t* o, const char* text, Py_ssize_t n) noexcept nogil:
    memcpy(o, text, n)
    return o + n


@cython.final
cdef class Answers:
    """What is found at each address, as `Frames` has it. n_texts: names and sources are numbers below; a negative one is
    n_texts, the text that stands for what is unknown."""

    cdef const uint64_t[::1] addresses
    cdef const uint64_t[::1] start
    cdef const uint64_t[::1] size
    cdef const int64_t[::1] first
    cdef const int32_t[::1] name
    cdef const int32_t[::1] source
    cdef const int32_t[::1] line
    cdef int64_t n_texts

    def __cinit__(
        self, const uint64_t[::1] addresses not None, const uint64_t[::1] start not None,
        const uint64_t[::1] size not None, const int64_t[::1] first not None, const int32_t[::1] name not None,
        const int32_t[::1] source not None, const int32_t[::1] line not None, int64_t n_texts
    ):
        cdef Py_ssize_t n = addresses.shape[0]
        cdef Py_ssize_t n_frames = name.shape[0]
        cdef Py_ssize_t i
        if start.shape[0] != n or size.shape[0] != n or first.shape[0] != n + 1:
            raise ValueError("Answers: a column of addresses has the wrong length")
        if source.shape[0] != n_frames or line.shape[0] != n_frames:
            raise ValueError("Answers: a column of frames has the wrong length")
        if first[0] != 0 or first[n] != n_frames:
            raise ValueError("Answers: frames without an address")
        for i in range(n):
            if first[i] > first[i + 1]:
                raise ValueError("Answers: frames that end before they begin")
        for i in range(n_frames):
            if name[i] >= n_texts or source[i] >= n_texts:
                raise ValueError("Answers: no such text")
        self.addresses, self.start, self.size, self.first = addresses, start, size, first
        self.name, self.source, self.line, self.n_texts = name, source, line, n_texts

    cdef inline int64_t text_of(self, int32_t number) noexcept nogil:
        return number if number >= 0 else self.n_texts

    cdef Py_ssize_t longest(self, Pieces names, Pieces sources, Pieces ends) except -1:
        """Returns how many bytes the answers need at most, each frame with its name and source, each address with the
        name of its function once more. Checks that there are as many texts as are referred to."""
        cdef Py_ssize_t n = self.addresses.shape[0]
        cdef Py_ssize_t size = AROUND_ADDRESS * n
        cdef Py_ssize_t i
        if names.n != self.n_texts + 1 or sources.n != self.n_texts + 1:
            raise ValueError("Answers: not as many texts as there are numbers")
        if ends.n != 1 and ends.n != n:
            raise ValueError("Answers: an end for each address is needed, or one for all")
        with nogil:
            for i in range(self.name.shape[0]):
                size += names.size(self.text_of(self.name[i])) + sources.size(self.text_of(self.source[i])) + AROUND_FRAME
            for i in range(n):
                if self.first[i] < self.first[i + 1]:
                    size += names.size(self.text_of(self.name[self.first[i + 1] - 1]))
                size += ends.size(i if ends.n > 1 else 0)
        return size

    def as_text(self, Pieces names not None, Pieces sources not None, Pieces ends not None):
        """Returns uint8: a line for each frame, the innermost first, behind its address or as far to the right; behind
        the frames of each address its end."""
        found = np.empty(self.longest(names, sources, ends), np.uint8)
        cdef uint8_t[::1] text = found
        cdef uint8_t* begin = &text[0] if text.shape[0] else NULL
        cdef uint8_t* o = begin
        cdef uint8_t* lead
        cdef Py_ssize_t i, k, n_lead
        with nogil:
            for i in range(self.addresses.shape[0]):
                lead = o
                o = put(put_prefixed_hex(o, self.addresses[i]), b": ", 2)
                n_lead = o - lead
                if self.first[i] == self.first[i + 1]:
                    o = put(o, b"no symbol\n", 10)
                for k in range(self.first[i], self.first[i + 1]):
                    if k > self.first[i]:
                        memset(o, c" ", n_lead)
                        o += n_lead
                    o = names.put(o, self.text_of(self.name[k]))
                    o = put(o, b" [inlined]", 10) if k < self.first[i + 1] - 1 else self.put_offset(o, i)
                    if self.source[k] >= 0:
                        o = sources.put(put(o, b" at ", 4), self.source[k])
                        o[0] = c":"
                        o = self.put_line(o + 1, k)
                    o[0] = c"\n"
                    o += 1
                o = ends.put(o, i if ends.n > 1 else 0)
        return found[: o - begin]

    def as_json(self, Pieces names not None, Pieces sources not None, Pieces ends not None):
        """Returns uint8: an object for each address, of which `ends` has what is behind the frames. names: the members
        of an object that say the name; sources: values."""
        found = np.empty(self.longest(names, sources, ends), np.uint8)
        cdef uint8_t[::1] text = found
        cdef uint8_t* begin = &text[0] if text.shape[0] else NULL
        cdef uint8_t* o = begin
        cdef Py_ssize_t i, k
        with nogil:
            for i in range(self.addresses.shape[0]):
                o = put_prefixed_hex(put(o, b'{"address":"', 12), self.addresses[i])
                o = put(o, b'","function":', 13)
                o = self.put_function(o, i, names)
                o = put(o, b',"frames":[', 11)
                for k in range(self.first[i], self.first[i + 1]):
                    if k > self.first[i]:
                        o[0] = c","
                        o += 1
                    o[0] = c"{"
                    o = put(names.put(o + 1, self.text_of(self.name[k])), b',"source":', 10)
                    o = put(sources.put(o, self.text_of(self.source[k])), b',"line":', 8)
                    o = self.put_line(o, k) if self.line[k] else put(o, b"null", 4)
                    if k < self.first[i + 1] - 1:
                        o = put(o, b',"inlined":true}', 16)
                    else:
                        o = put(o, b',"inlined":false}', 17)
                o = ends.put(put(o, b"]", 1), i if ends.n > 1 else 0)
        return found[: o - begin]

    cdef inline uint8_t* put_offset(self, uint8_t* o, Py_ssize_t i) noexcept nogil:
        """Writes how far the address is behind the start of its function."""
        o = put(o, b" + ", 3)
        if self.addresses[i] < self.start[i]:
            o[0] = c"-"
            return put_decimal(o + 1, self.start[i] - self.addresses[i])
        return put_decimal(o, self.addresses[i] - self.start[i])

    cdef inline uint8_t* put_line(self, uint8_t* o, Py_ssize_t k) noexcept nogil:
        if self.line[k] < 0:
            o[0] = c"-"
            return put_decimal(o + 1, -<int64_t> self.line[k])
        return put_decimal(o, self.line[k])

    cdef inline uint8_t* put_function(self, uint8_t* o, Py_ssize_t i, Pieces names) noexcept nogil:
        """Writes the function at the i-th address: its name, and where it starts and its size, as far as these are
        known."""
        if self.first[i] == self.first[i + 1]:
            return put(o, b"null", 4)
        o[0] = c"{"
        o = put(names.put(o + 1, self.text_of(self.name[self.first[i + 1] - 1])), b',"start":', 9)
        if self.start[i] or self.size[i]:
            o[0] = c'"'
            o = put_prefixed_hex(o + 1, self.start[i])
            o[0] = c'"'
            o += 1
        else:
            o = put(o, b"null", 4)
        o = put(o, b',"size":', 8)
        o = put_decimal(o, self.size[i]) if self.size[i] else put(o, b"null", 4)
        o[0] = c"}"
        return o + 1
