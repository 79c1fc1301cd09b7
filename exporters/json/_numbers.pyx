"""Numbers as JSON text."""

cimport cython
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from traceferry.native.number_text cimport put_decimal, put_prefixed_hex

cdef enum:
    # The longest number, "-9223372036854775808,", and what `put4` and the copies of 16 bytes write beyond the last one.
    LONGEST = 24
    # In ns, to which no time is near.
    NO_TIME = 0xC000000000000000

# The texts of the numbers below 1000, the first character in the lowest byte: without zeros in front, with three
# digits, and without zeros at the end, as after a decimal point; and how long the first and the last are.
cdef uint32_t[1000] FIRST
cdef uint32_t[1000] MIDDLE
cdef uint32_t[1000] LAST
cdef uint8_t[1000] FIRST_LENGTH
cdef uint8_t[1000] LAST_LENGTH

for _i in range(1000):
    MIDDLE[_i] = 48 + _i // 100 | 48 + _i // 10 % 10 << 8 | 48 + _i % 10 << 16
    LAST[_i] = MIDDLE[_i]
    FIRST_LENGTH[_i] = 1 if _i < 10 else 2 if _i < 100 else 3
    LAST_LENGTH[_i] = 1 if _i % 100 == 0 else 2 if _i % 10 == 0 else 3
    FIRST[_i] = MIDDLE[_i] >> 8 * (3 - FIRST_LENGTH[_i])


cdef inline void put4(uint8_t* o, uint32_t text) noexcept nogil:
    """Writes four bytes, of which the text may need less: cheaper than to branch by its length, which is as good as
    random."""
    o[0] = text & 255
    o[1] = text >> 8 & 255
    o[2] = text >> 16 & 255
    o[3] = text >> 24


cdef inline uint8_t* put32(uint8_t* o, uint32_t v) noexcept nogil:
    cdef uint32_t high
    if v < 1000:
        put4(o, FIRST[v])
        return o + FIRST_LENGTH[v]
    if v < 1000000:
        high = v // 1000
        put4(o, FIRST[high])
        o += FIRST_LENGTH[high]
        put4(o, MIDDLE[v - 1000 * high])
        return o + 3
    high = v // 1000000
    v -= 1000000 * high
    if high < 1000:
        put4(o, FIRST[high])
        o += FIRST_LENGTH[high]
    else:
        o[0] = 48 + high // 1000
        put4(o + 1, MIDDLE[high % 1000])
        o += 4
    high = v // 1000
    put4(o, MIDDLE[high])
    put4(o + 3, MIDDLE[v - 1000 * high])
    return o + 6


cdef inline uint8_t* put64(uint8_t* o, uint64_t v) noexcept nogil:
    return put32(o, v) if v >> 32 == 0 else put_decimal(o, v)


cdef inline uint8_t* put_decimals(uint8_t* o, uint32_t ns) noexcept nogil:
    """Writes the decimals of ns below 1000000 as ms, as many as they need, and up to 8 bytes."""
    cdef uint32_t high = ns // 1000
    cdef uint32_t low = ns - 1000 * high
    if ns == 0:
        return o
    o[0] = c"."
    if low == 0:
        put4(o + 1, LAST[high])
        return o + 1 + LAST_LENGTH[high]
    put4(o + 1, MIDDLE[high])
    put4(o + 4, LAST[low])
    return o + 4 + LAST_LENGTH[low]


cdef struct Whole:
    # The whole ms of a time, in ns, and their text.
    uint64_t ns
    uint8_t[16] digits
    Py_ssize_t n_digits


cdef inline uint8_t* put_millis(uint8_t* o, uint64_t ns, Whole* before) noexcept nogil:
    """Writes ns as ms. before: of the time before, whose whole ms mostly are those of the next, too."""
    cdef uint64_t beyond = ns - before.ns
    if beyond < 1000000:
        memcpy(o, before.digits, 16)
    else:
        beyond = ns % 1000000
        before.ns = ns - beyond
        before.n_digits = put64(o, before.ns // 1000000) - o
        memcpy(before.digits, o, 16)
    return put_decimals(o + before.n_digits, beyond)


# In ps: a sum of doubles that is further off is corrected, by less than half a ns, so that a difference that is rounded
# to ns stays what it is.
cdef double FAR_OFF = 250
cdef double MOST_OFF = 400
# In ns: what is longer is written as it is.
cdef int64_t CORRECTED = 1 << 50


@cython.final
cdef class Differences:
    """Differences of times, for readers that add them up, be it as doubles of ms or as whole ns: the sum of millions of
    doubles is off by more than a ns, so a few differences have a fraction of a ns more or less. Sums of ns that are
    rounded are exact, those of doubles to half a ns for times up to some days."""

    # The sum as doubles have it, in ms, and as it is, in ns.
    cdef double sum_ms
    cdef int64_t sum_ns

    def millis(self, const int64_t[::1] values):
        """Returns the next differences, ns, in ms: float64. A negative one is 0."""
        cdef double[::1] out = np.empty(values.shape[0])
        cdef Py_ssize_t i
        cdef int64_t ns
        cdef int ps
        with nogil:
            for i in range(values.shape[0]):
                ns = values[i] if values[i] > 0 else 0
                ps = self.correction(ns)
                out[i] = (ns * 1000 + ps) / 1e9 if ps else ns / 1e6
        return np.asarray(out)

    cdef inline int correction(self, int64_t ns) noexcept nogil:
        """Adds a difference; returns by how many ps it is to be written longer."""
        cdef double before = self.sum_ms
        cdef double off
        cdef int ps
        self.sum_ns += ns
        self.sum_ms += ns / 1e6
        off = (self.sum_ms - self.sum_ns * 1e-6) * 1e9
        if -FAR_OFF < off < FAR_OFF or not 0 < ns < CORRECTED:
            return 0
        ps = <int>max(-MOST_OFF, min(MOST_OFF, -off))
        self.sum_ms = before + (ns * 1000 + ps) / 1e9
        return ps


cdef inline uint8_t* put_picos(uint8_t* o, uint64_t ps) noexcept nogil:
    """Writes ps as ms, with all nine decimals."""
    cdef uint32_t rest = ps % 1000000000
    o = put64(o, ps // 1000000000)
    o[0] = c"."
    put4(o + 1, MIDDLE[rest // 1000000])
    put4(o + 4, MIDDLE[rest // 1000 % 1000])
    put4(o + 7, MIDDLE[rest % 1000])
    return o + 10


cdef inline uint8_t* put_double(uint8_t* o, uint64_t ns, Whole* before) noexcept nogil:
    """Writes ns below 10**15 as a double of ms has them: "2.0", not "2", and "5e-6"."""
    if 0 < ns < 10:
        o[0] = 48 + ns
        memcpy(o + 1, b"e-6", 3)
        return o + 4
    o = put_millis(o, ns, before)
    if ns == before.ns:
        memcpy(o, b".0", 2)
        o += 2
    return o


cdef inline uint8_t* put_hex(uint8_t* o, uint64_t v) noexcept nogil:
    """Writes a text with a number, as Python's hex() does."""
    o[0] = c'"'
    o = put_prefixed_hex(o + 1, v)
    o[0] = c'"'
    return o + 1


cdef inline uint8_t* put_signed(uint8_t* o, int64_t v) noexcept nogil:
    if v < 0:
        o[0] = c"-"
        return put64(o + 1, -<uint64_t>v)
    return put64(o, v)


cdef inline uint8_t* put_null(uint8_t* o) noexcept nogil:
    memcpy(o, b"null", 4)
    return o + 4


# What a part of an object is: a text that is always the same, or that and a value of its column.
LITERAL, TEXT, INTEGER, MILLIS, HEX = range(5)
cdef enum Kind:
    IS_LITERAL, IS_TEXT, IS_INTEGER, IS_MILLIS, IS_HEX

cdef int64_t ABSENT_VALUE = -(1 << 63)
ABSENT = ABSENT_VALUE


cdef class NumberText:
    """Writes columns of numbers, a comma behind each value but the last. What a method returns holds until the next
    call."""

    cdef bytearray text

    def __cinit__(self):
        self.text = bytearray()

    cdef uint8_t* begin(self, Py_ssize_t n_numbers) except NULL:
        if len(self.text) < LONGEST * n_numbers:
            self.text = bytearray(LONGEST * n_numbers)
        return self.text

    cdef object written(self, const uint8_t* end):
        cdef const uint8_t* begin = self.text
        return memoryview(self.text)[: max(end - begin - 1, 0)]

    def ints(self, const int32_t[::1] values):
        """Writes integers; a negative one is null."""
        cdef uint8_t* o = self.begin(values.shape[0])
        cdef Py_ssize_t i
        with nogil:
            for i in range(values.shape[0]):
                o = put_null(o) if values[i] < 0 else put32(o, values[i])
                o[0] = c","
                o += 1
        return self.written(o)

    def longs(self, const int64_t[::1] values, int64_t null):
        """Writes integers; one that is `null` is null."""
        cdef uint8_t* o = self.begin(values.shape[0])
        cdef Py_ssize_t i
        with nogil:
            for i in range(values.shape[0]):
                if values[i] == null:
                    o = put_null(o)
                else:
                    o = put_signed(o, values[i])
                o[0] = c","
                o += 1
        return self.written(o)

    def millis(self, const int64_t[::1] values):
        """Writes ns as ms, exactly, with as many decimals as they need; a negative value is null."""
        cdef uint8_t* o = self.begin(values.shape[0])
        cdef Py_ssize_t i
        cdef Whole before
        before.ns = NO_TIME
        with nogil:
            for i in range(values.shape[0]):
                o = put_null(o) if values[i] < 0 else put_millis(o, values[i], &before)
                o[0] = c","
                o += 1
        return self.written(o)

    def differences(self, const int64_t[::1] values, Differences sums not None):
        """Writes the next differences, ns, as ms. A negative one is 0."""
        cdef uint8_t* o = self.begin(values.shape[0])
        cdef Py_ssize_t i
        cdef int64_t ns
        cdef int ps
        cdef Whole before
        before.ns = NO_TIME
        with nogil:
            for i in range(values.shape[0]):
                ns = values[i] if values[i] > 0 else 0
                ps = sums.correction(ns)
                o = put_picos(o, ns * 1000 + ps) if ps else put_millis(o, ns, &before)
                o[0] = c","
                o += 1
        return self.written(o)

    def texts(self, const int32_t[::1] nth, const uint8_t[::1] texts, const int64_t[::1] text_at):
        """Writes texts. nth: of each the place in `texts`, which are JSON, a comma behind each; text_at: where each begins
        and the last ends."""
        cdef Py_ssize_t n_texts = text_at.shape[0] - 1
        cdef Py_ssize_t i
        cdef int64_t size = 0
        cdef uint8_t* o
        for i in range(nth.shape[0]):
            if not 0 <= nth[i] < n_texts:
                raise ValueError("texts: there is no such text")
            if not 0 <= text_at[nth[i]] <= text_at[nth[i] + 1] <= texts.shape[0]:
                raise ValueError("texts: a text beyond the end")
            size += text_at[nth[i] + 1] - text_at[nth[i]]
        if len(self.text) < size:
            self.text = bytearray(size)
        o = self.text
        with nogil:
            for i in range(nth.shape[0]):
                o = put_text(o, texts, text_at, nth[i])
        return self.written(o)

    def sample_rows(self, const int32_t[::1] stack, const int64_t[::1] ts):
        """Writes rows [stack,ms,0]; a negative stack is null, and a time below 0 is 0."""
        if ts.shape[0] != stack.shape[0]:
            raise ValueError("sample_rows: columns of different lengths")
        cdef uint8_t* o = self.begin(2 * stack.shape[0])
        cdef Py_ssize_t i
        cdef Whole before
        before.ns = NO_TIME
        with nogil:
            for i in range(stack.shape[0]):
                o[0] = c"["
                if stack[i] < 0:
                    o = put_null(o + 1)
                else:
                    o = put32(o + 1, stack[i])
                o[0] = c","
                o = put_millis(o + 1, ts[i] if ts[i] > 0 else 0, &before)
                memcpy(o, b",0],", 4)
                o += 4
        return self.written(o)

    def objects(
        self, const uint8_t[::1] kinds, const int32_t[::1] needs, const int64_t[:, ::1] columns,
        const uint8_t[::1] texts, const int64_t[::1] text_at
    ):
        """Writes objects, a comma behind each but the last. kinds: of the parts of which all consist; each begins with
        the text of its number. columns: [part, object] values; of TEXT, numbers of texts. needs: where the value of
        this part is ABSENT, the part is left out; -1 is never. texts: JSON, one behind the other; text_at: where each
        begins and the last ends."""
        cdef Py_ssize_t n_parts = kinds.shape[0]
        cdef Py_ssize_t n_texts = text_at.shape[0] - 1
        cdef Py_ssize_t n = columns.shape[1]
        cdef Py_ssize_t i, k
        cdef int64_t v
        cdef int64_t size = 0
        cdef uint8_t* o
        cdef Whole before
        if needs.shape[0] != n_parts or columns.shape[0] != n_parts or n_texts < n_parts:
            raise ValueError("objects: parts without a column or a text")
        if text_at[0] != 0 or text_at[n_texts] > texts.shape[0]:
            raise ValueError("objects: texts beyond the end")
        for k in range(n_texts):
            if text_at[k] > text_at[k + 1]:
                raise ValueError("objects: a text that ends before it begins")
        for k in range(n_parts):
            if kinds[k] > IS_HEX or not -1 <= needs[k] < n_parts:
                raise ValueError("objects: no such part")
            size += n * (text_at[k + 1] - text_at[k] + LONGEST)
            if kinds[k] == IS_TEXT:
                for i in range(n):
                    v = columns[k, i]
                    if v == ABSENT_VALUE:
                        if needs[k] != k:
                            raise ValueError("objects: a text is absent")
                    elif not 0 <= v < n_texts:
                        raise ValueError("objects: a text beyond the end")
                    else:
                        size += text_at[v + 1] - text_at[v]
        if len(self.text) < size + n + LONGEST:
            self.text = bytearray(size + n + LONGEST)
        o = self.text
        before.ns = NO_TIME
        with nogil:
            for i in range(n):
                for k in range(n_parts):
                    if needs[k] >= 0 and columns[needs[k], i] == ABSENT_VALUE:
                        continue
                    o = put_text(o, texts, text_at, k)
                    v = columns[k, i]
                    if kinds[k] == IS_TEXT:
                        o = put_text(o, texts, text_at, v)
                    elif kinds[k] == IS_INTEGER:
                        o = put_signed(o, v)
                    elif kinds[k] == IS_MILLIS:
                        o = put_double(o, v, &before)
                    elif kinds[k] == IS_HEX:
                        o = put_hex(o, v)
                o[0] = c","
                o += 1
        return self.written(o)


cdef inline uint8_t* put_text(
    uint8_t* o, const uint8_t[::1] texts, const int64_t[::1] text_at, int64_t nth
) noexcept nogil:
    cdef int64_t n = text_at[nth + 1] - text_at[nth]
    if n:
        memcpy(o, &texts[text_at[nth]], n)
    return o + n
