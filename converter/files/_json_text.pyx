"""Where the values of JSON text begin and end, without parsing them: brackets and quotes are matched, nothing else. And
lists of numbers as arrays."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.math cimport NAN
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

import numpy as np


cdef extern from "Python.h":
    double PyOS_string_to_double(const char* text, char** stop, void* overflow_exception) except? -1.0

cdef enum:
    MAX_DEPTH = 128
    CUT = -1
    TOO_DEEP = -2
    UNEXPECTED = -3

cdef unsigned char[256] IS_MARK  # quotes and brackets
cdef unsigned char[256] ENDS_SCALAR
for _c in range(256):
    IS_MARK[_c] = chr(_c) in '"[]{}'
    ENDS_SCALAR[_c] = chr(_c) in ',:[]{}" \t\r\n'

# Of fewer digits every number is an int64, and of a mantissa below 2**53 every float64 is exact.
cdef enum:
    MAX_DIGITS = 18
    MAX_EXPONENT = 22
    COLUMN_DEPTH = 2
    MOST_KEYS = 8
    LONG_LIST = 64
    MOST_INNER = 1 << 12
    OTHER = 0
    WHOLE = 1
    REAL = 2

# The same byte eight times, to look at eight bytes of text at once.
cdef uint64_t ONES = 0x0101010101010101
cdef uint64_t HIGH_BITS = 0x8080808080808080
cdef uint64_t LOW_BITS = 0x7F7F7F7F7F7F7F7F
cdef uint64_t QUOTES = 0x2222222222222222
cdef uint64_t COMMAS = 0x2C2C2C2C2C2C2C2C
# [ and { differ in this bit, as ] and } do.
cdef uint64_t CURLED = 0x2020202020202020
cdef uint64_t OPENING = 0x7B7B7B7B7B7B7B7B
cdef uint64_t CLOSING = 0x7D7D7D7D7D7D7D7D

cdef int64_t MAX_MANTISSA = 1 << 53
cdef double MAX_REAL = float(np.finfo(np.float64).max)
cdef double[MAX_EXPONENT + 1] POWER
for _c in range(MAX_EXPONENT + 1):
    POWER[_c] = float(f"1e{_c}")

MEANINGS = {CUT: "the JSON text ends too early", TOO_DEEP: f"values are nested more than {MAX_DEPTH} levels deep",
            UNEXPECTED: "this is no JSON text"}
ENDS_EARLY = MEANINGS[CUT]


cdef struct Text:
    const unsigned char* at
    Py_ssize_t size
    Py_ssize_t stopped  # where an error is
    # Where lists and objects right within a value begin and end, if there is space for them.
    Py_ssize_t* inner
    Py_ssize_t n_inner


cdef Py_ssize_t failed(Text* text, Py_ssize_t i, int why) noexcept nogil:
    text.stopped = i
    return why


cdef inline Py_ssize_t blank(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns where the white space from i on ends."""
    while i < text.size and (text.at[i] == 32 or 9 <= text.at[i] <= 10 or text.at[i] == 13):
        i += 1
    return i


cdef inline uint64_t zeros(uint64_t octets) noexcept nogil:
    """Returns whether one of eight bytes is 0, as what is not 0."""
    return (octets - ONES) & ~octets & HIGH_BITS


cdef inline Py_ssize_t next_mark(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns where the first quote or bracket from i on is, or the end of the text."""
    cdef uint64_t octets
    cdef uint64_t curled
    while i + 8 <= text.size:
        memcpy(&octets, text.at + i, 8)
        curled = octets | CURLED
        if zeros(octets ^ QUOTES) | zeros(curled ^ OPENING) | zeros(curled ^ CLOSING):
            break
        i += 8
    while i < text.size and not IS_MARK[text.at[i]]:
        i += 1
    return i


cdef inline Py_ssize_t count_commas(Text* text, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t n = 0
    cdef uint64_t octets
    while i + 8 <= end:
        memcpy(&octets, text.at + i, 8)
        octets ^= COMMAS
        # The high bit of each byte that is 0 now, and of no other.
        octets = ~(((octets & LOW_BITS) + LOW_BITS) | octets) & HIGH_BITS
        n += ((octets >> 7) * ONES) >> 56
        i += 8
    while i < end:
        n += text.at[i] == 44
        i += 1
    return n


cdef inline Py_ssize_t string(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns the end of the string whose quote is at i."""
    cdef Py_ssize_t begin = i
    cdef Py_ssize_t back
    cdef const void* found
    while True:
        found = memchr(text.at + i + 1, 34, text.size - i - 1)
        if found == NULL:
            return failed(text, begin, CUT)
        i = <const unsigned char*> found - text.at
        back = i - 1
        while back > begin and text.at[back] == 92:
            back -= 1
        if (i - back) & 1:
            return i + 1


cdef inline Py_ssize_t flat_list(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns the end of the list at i, if it is long and has neither strings nor lists nor objects; else 0. The C
    library finds one character in a fraction of the time in which a loop finds one of several."""
    cdef const unsigned char* first = text.at + i + 1
    cdef const void* end
    cdef Py_ssize_t size
    if i + LONG_LIST > text.size or IS_MARK[first[0]]:
        return 0
    end = memchr(first, 93, text.size - i - 1)
    if end == NULL:
        return 0
    size = <const unsigned char*> end - first
    if size < LONG_LIST or memchr(first, 34, size) or memchr(first, 91, size):
        return 0
    if memchr(first, 123, size) or memchr(first, 125, size):
        return 0
    return i + size + 2


cdef Py_ssize_t value(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns the end of the value that begins at i."""
    cdef unsigned char[MAX_DEPTH] closing
    cdef int depth = 0
    cdef unsigned char c
    cdef Py_ssize_t begin = i
    cdef Py_ssize_t behind
    cdef Py_ssize_t inner = i
    if i >= text.size:
        return failed(text, i, CUT)
    c = text.at[i]
    if c == 34:
        return string(text, i)
    if c != 123 and c != 91:
        while i < text.size and not ENDS_SCALAR[text.at[i]]:
            i += 1
        return i if i > begin else failed(text, i, UNEXPECTED)
    while True:
        i = next_mark(text, i)
        if i == text.size:
            return failed(text, i, CUT)
        c = text.at[i]
        if c == 34:
            i = string(text, i)
            if i < 0:
                return i
        elif c == 123 or c == 91:
            if depth == MAX_DEPTH:
                return failed(text, i, TOO_DEEP)
            if c == 91 and depth > 0:
                behind = flat_list(text, i)
                if behind > 0:
                    i = behind
                    continue
            if depth == 1:
                inner = i
            closing[depth] = c + 2
            depth += 1
            i += 1
        else:
            if closing[depth - 1] != c:
                return failed(text, i, UNEXPECTED)
            depth -= 1
            i += 1
            if depth == 0:
                return i
            if depth == 1 and text.inner != NULL and text.n_inner < MOST_INNER:
                text.inner[2 * text.n_inner], text.inner[2 * text.n_inner + 1] = inner, i
                text.n_inner += 1


cdef class JsonError(Exception):
    """The text is damaged. offset: where; found: the members or elements before."""

    cdef readonly str message
    cdef readonly Py_ssize_t offset
    cdef readonly list found

    def __init__(self, message, offset, found):
        self.message, self.offset, self.found = message, offset, found


def skip(const unsigned char[::1] data, Py_ssize_t begin):
    """Returns (where the value that begins at `begin`, or after white space there, begins; where it ends)."""
    cdef Text text = opened(data)
    begin = blank(&text, begin)
    cdef Py_ssize_t end = value(&text, begin)
    if end < 0:
        raise JsonError(MEANINGS[end], text.stopped, [])
    return begin, end


def members(const unsigned char[::1] data, Py_ssize_t begin, dict ends not None):
    """Returns ((key, begin, end) of the values of the members of the object at `begin`, its end). The keys are text
    with its quotes. ends: by where they begin, the ends of values that are known; those of lists and objects right
    within the members, of the first ones of many, are added."""
    cdef Py_ssize_t[2 * MOST_INNER] inner
    cdef Py_ssize_t i
    cdef Text text = opened(data)
    text.inner = inner
    found = parts(&text, begin, 123, ends)
    for i in range(text.n_inner):
        ends[inner[2 * i]] = inner[2 * i + 1]
    return found


def elements(const unsigned char[::1] data, Py_ssize_t begin, dict ends not None):
    """Returns (("", begin, end) of the elements of the list at `begin`, its end). ends: by where they begin, the ends
    of values that are known."""
    cdef Text text = opened(data)
    return parts(&text, begin, 91, ends)


def whole_elements(const unsigned char[::1] data, Py_ssize_t begin):
    """Returns, of the list at `begin`, or after white space there, (where its last whole element ends, or its bracket
    where none is; where the element begins within which the text ends, or the end of the text between two; -1: the list
    is whole)."""
    cdef Text text = opened(data)
    cdef Py_ssize_t i = blank(&text, begin)
    if i >= text.size or text.at[i] != 91:
        raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, [])
    i += 1
    cdef Py_ssize_t end = i
    cdef Py_ssize_t stop = 0
    with nogil:
        while True:
            i = blank(&text, i)
            if i < text.size and text.at[i] == 44:
                i = blank(&text, i + 1)
            if i >= text.size or text.at[i] == 93:
                break
            stop = value(&text, i)
            if stop < 0:
                break
            i = end = stop
    if stop < 0 and stop != CUT:
        raise JsonError(MEANINGS[stop], text.stopped, [])
    return end, -1 if stop >= 0 and i < text.size else i


cdef Text opened(const unsigned char[::1] data):
    cdef Text text
    text.size = data.shape[0]
    text.at = NULL
    if text.size:
        text.at = &data[0]
    text.stopped = text.n_inner = 0
    text.inner = NULL
    return text


cdef tuple parts(Text* text, Py_ssize_t i, unsigned char opening, dict ends):
    cdef Py_ssize_t begin
    cdef Py_ssize_t end
    cdef bytes key = b""
    cdef bint is_first = True
    found = []
    i = blank(text, i)
    if i >= text.size or text.at[i] != opening:
        raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
    i += 1
    while True:
        i = blank(text, i)
        if i < text.size and text.at[i] == opening + 2 and is_first:
            return found, i + 1
        if opening == 123:
            if i >= text.size or text.at[i] != 34:
                raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
            end = string(text, i)
            if end < 0:
                raise JsonError(MEANINGS[end], text.stopped, found)
            key = text.at[i:end]
            i = blank(text, end)
            if i >= text.size or text.at[i] != 58:
                raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
            i = blank(text, i + 1)
        begin = i
        end = ends.get(begin, -1) if ends else -1
        end = end if end > 0 else value(text, begin)
        if end < 0:
            raise JsonError(MEANINGS[end], text.stopped, [*found, (key, begin, begin)])
        found.append((key, begin, end))
        is_first = False
        i = blank(text, end)
        if i < text.size and text.at[i] == opening + 2:
            return found, i + 1
        if i >= text.size or text.at[i] != 44:
            raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
        i += 1


def without_columns(const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end, left_out):
    """Returns (the text of the object of objects at `begin`, whose lists of numbers and members left out are null; (key of the outer object,
    key of the inner one, numbers) of each of these lists). The keys, also those that are left out, are text with its quotes; numbers are int64, or
    float64 where some are null, which is NaN, or have fractions. What is no number but null, true, or false is not
    taken out, so that a parser sees it; the caller has found out that brackets match."""
    cdef Text text = opened(data[:end])
    cdef Py_ssize_t i = begin
    cdef Py_ssize_t kept = begin  # from where on the text is not copied yet
    cdef Py_ssize_t size = 0
    cdef int depth = 0
    cdef Py_ssize_t stop
    cdef unsigned char c
    cdef Py_ssize_t[COLUMN_DEPTH] key_begin
    cdef Py_ssize_t[COLUMN_DEPTH] key_end
    cdef unsigned char inner = 0  # the bracket of the value within the outer object
    key_begin[0] = key_begin[1] = key_end[0] = key_end[1] = begin
    # A null is longer than a list of one number may be.
    cdef char* rest = <char*> PyMem_Malloc(2 * (end - begin) + 8)
    if rest == NULL:
        raise MemoryError
    found = []
    try:
        while True:
            i = next_mark(&text, i)
            if i >= end:
                break
            c = text.at[i]
            if c == 34:
                stop = string(&text, i)
                if stop < 0:
                    break
                if 0 < depth <= COLUMN_DEPTH:
                    key_begin[depth - 1], key_end[depth - 1] = i, stop
                i = stop
                if depth == 1 and left_out and text.at[key_begin[0]:stop] in left_out:
                    i = blank(&text, i)
                    if i < end and text.at[i] == 58:
                        i = blank(&text, i + 1)
                        stop = value(&text, i)
                        if stop < 0:
                            break
                        memcpy(rest + size, text.at + kept, i - kept)
                        size += i - kept
                        memcpy(rest + size, b"null", 4)
                        size += 4
                        i = kept = stop
            elif c == 91 and depth == COLUMN_DEPTH and inner == 123:
                numbers, stop = list_of_numbers(&text, i)
                if numbers is None:
                    depth += 1
                    i += 1
                    continue
                found.append((text.at[key_begin[0]:key_end[0]], text.at[key_begin[1]:key_end[1]], numbers))
                memcpy(rest + size, text.at + kept, i - kept)
                size += i - kept
                memcpy(rest + size, b"null", 4)
                size += 4
                i = kept = stop
            else:
                if depth == COLUMN_DEPTH - 1:
                    inner = c
                depth += 1 if c == 123 or c == 91 else -1
                i += 1
        memcpy(rest + size, text.at + kept, end - kept)
        return rest[:size + end - kept], found
    finally:
        PyMem_Free(rest)


cdef tuple list_of_numbers(Text* text, Py_ssize_t i):
    """Returns (the numbers of the list at i, its end); None: it has another value, or none at all."""
    cdef const void* closing = memchr(text.at + i, 93, text.size - i)
    if closing == NULL:
        return None, i
    cdef Py_ssize_t end = <const unsigned char*> closing - text.at
    cdef Py_ssize_t n = 1
    cdef Py_ssize_t at = blank(text, i + 1)
    cdef Py_ssize_t nth
    cdef int kind
    cdef int64_t whole = 0
    cdef double real = 0
    cdef bint are_whole = True
    if at == end or text.at[at] == 34 or text.at[at] == 123 or text.at[at] == 91:
        return None, i
    n += count_commas(text, at, end)
    ints = np.empty(n, np.int64)
    cdef int64_t[::1] w = ints
    cdef double[::1] f = ints.view(np.float64)
    for nth in range(n):
        kind = short_number(text, &at, &whole, &real)
        if kind == OTHER:
            kind = padded_number(text, &at, &whole, &real, 44 if nth < n - 1 else 93)
            if kind == OTHER:
                return None, i
        if kind == WHOLE and are_whole:
            w[nth] = whole
            continue
        if are_whole:
            are_whole = False
            widen(w, f, nth)
        f[nth] = <double> whole if kind == WHOLE else real
    return (ints if are_whole else ints.view(np.float64)), end + 1


cdef inline int short_number(Text* text, Py_ssize_t* at, int64_t* whole, double* real) noexcept nogil:
    """Reads what most lists have: a number of few digits, or null, and the comma right behind it. Returns what it is;
    OTHER: it is something else, and `at` stays."""
    cdef const unsigned char* begin = text.at + at[0]
    cdef const unsigned char* i = begin
    cdef const unsigned char* point
    cdef uint64_t value = 0
    if begin[0] == 110:
        if text.size - at[0] < 5 or memcmp(begin, b"null,", 5) != 0:
            return OTHER
        real[0] = NAN
        at[0] += 5
        return REAL
    while <unsigned char> (i[0] - 48) < 10:
        value = value * 10 + <unsigned char> (i[0] - 48)
        i += 1
    if i == begin or (begin[0] == 48 and i - begin > 1):
        return OTHER
    if i[0] == 44:
        if i - begin > MAX_DIGITS:
            return OTHER
        whole[0] = <int64_t> value
        at[0] = i + 1 - text.at
        return WHOLE
    if i[0] != 46:
        return OTHER
    point = i
    i += 1
    while <unsigned char> (i[0] - 48) < 10:
        value = value * 10 + <unsigned char> (i[0] - 48)
        i += 1
    # Both are exact, so that their quotient is rounded once.
    if i[0] != 44 or i == point + 1 or i - begin > MAX_DIGITS or value >= <uint64_t> MAX_MANTISSA:
        return OTHER
    real[0] = <double> <int64_t> value / POWER[i - point - 1]
    at[0] = i + 1 - text.at
    return REAL


cdef void widen(int64_t[::1] w, double[::1] f, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        f[i] = <double> w[i]


cdef int padded_number(Text* text, Py_ssize_t* at, int64_t* whole, double* real, unsigned char closing) except -2:
    """Reads a number, or a word, with white space around it, and the character that has to be behind it."""
    at[0] = blank(text, at[0])
    cdef int kind = number(text, at, whole, real)
    at[0] = blank(text, at[0])
    if text.at[at[0]] != closing:
        return OTHER
    at[0] += 1
    return kind


cdef inline int number(Text* text, Py_ssize_t* at, int64_t* whole, double* real) except -2:
    """Reads a number, or a word; a list ends behind it. Returns what it is, and where it ends in `at`."""
    cdef const unsigned char* begin = text.at + at[0]
    cdef const unsigned char* i = begin
    cdef const unsigned char* first
    cdef uint64_t value = 0  # of more than MAX_DIGITS digits not the number
    cdef Py_ssize_t n_whole
    cdef Py_ssize_t n_digits
    cdef int exponent = 0
    cdef bint is_negative = i[0] == 45
    cdef char* stop
    i += is_negative
    first = i
    while <unsigned char> (i[0] - 48) < 10:
        value = value * 10 + <unsigned char> (i[0] - 48)
        i += 1
    n_whole = n_digits = i - first
    if n_whole == 0:
        return OTHER if is_negative else word(text, at, whole, real)
    if first[0] == 48 and n_whole > 1:
        return OTHER
    if i[0] != 46 and i[0] != 101 and i[0] != 69:
        whole[0] = -<int64_t> value if is_negative else <int64_t> value
        at[0] = i - text.at
        return WHOLE if n_digits <= MAX_DIGITS else OTHER
    if i[0] == 46:
        i += 1
        first = i
        while <unsigned char> (i[0] - 48) < 10:
            value = value * 10 + <unsigned char> (i[0] - 48)
            i += 1
        if i == first:
            return OTHER
        n_digits += i - first
        exponent = <int> min(i - first, MAX_DIGITS)
    if i[0] == 101 or i[0] == 69:
        i += 1
        i += i[0] == 43 or i[0] == 45
        first = i
        while <unsigned char> (i[0] - 48) < 10:
            i += 1
        if i == first:
            return OTHER
        n_digits = MAX_DIGITS + 1
    if n_digits <= MAX_DIGITS and value < <uint64_t> MAX_MANTISSA:
        # Both are exact, so that their quotient is rounded once.
        real[0] = <double> <int64_t> value / POWER[exponent]
        if is_negative:
            real[0] = -real[0]
    else:
        real[0] = PyOS_string_to_double(<const char*> begin, &stop, NULL)
        if not -MAX_REAL <= real[0] <= MAX_REAL:
            return OTHER
    at[0] = i - text.at
    return REAL


cdef int word(Text* text, Py_ssize_t* at, int64_t* whole, double* real) noexcept:
    cdef Py_ssize_t left = text.size - at[0]
    if left > 4 and memcmp(text.at + at[0], b"null", 4) == 0:
        real[0] = NAN
        at[0] += 4
        return REAL
    if left > 4 and memcmp(text.at + at[0], b"true", 4) == 0:
        whole[0] = 1
        at[0] += 4
        return WHOLE
    if left > 5 and memcmp(text.at + at[0], b"false", 5) == 0:
        whole[0] = 0
        at[0] += 5
        return WHOLE
    return OTHER


def numbers_in(const unsigned char[::1] data, Py_ssize_t begin):
    """Returns the numbers of the list at `begin`, as `without_columns` does; None: it has another value. The caller has
    found out that brackets match."""
    cdef Text text = opened(data)
    begin = blank(&text, begin)
    if begin >= text.size or text.at[begin] != 91:
        return None
    if text.at[blank(&text, begin + 1)] == 93:
        return np.empty(0, np.int64)
    return list_of_numbers(&text, begin)[0]


def lists_in(const unsigned char[::1] data, Py_ssize_t begin, Py_ssize_t end):
    """Returns (int64: the whole numbers of the lists in the list at `begin`, one list after the other; int64: where
    each list's end); None: it has another value. The caller has found out that brackets match, and that `end` is its
    end."""
    cdef Text text = opened(data)
    cdef Py_ssize_t at = blank(&text, begin)
    cdef Py_ssize_t i
    cdef Py_ssize_t n_numbers = 0
    cdef Py_ssize_t n_lists = 0
    cdef int64_t whole = 0
    cdef double real = 0
    if not 0 <= at < end <= text.size or text.at[at] != 91:
        return None
    for i in range(at, end):
        n_numbers += text.at[i] == 44
        n_lists += text.at[i] == 93
    found, ends = np.empty(n_numbers + 1, np.int64), np.empty(n_lists, np.int64)
    cdef int64_t[::1] flat = found
    cdef int64_t[::1] stops = ends
    n_numbers = n_lists = 0
    at = blank(&text, at + 1)
    if text.at[at] == 93:
        return found[:0], ends[:0]
    while text.at[at] == 91:
        at = blank(&text, at + 1)
        while text.at[at] != 93:
            if number(&text, &at, &whole, &real) != WHOLE:
                return None
            flat[n_numbers] = whole
            n_numbers += 1
            at = blank(&text, at)
            if text.at[at] == 44:
                at = blank(&text, at + 1)
                if text.at[at] == 93:
                    return None
            elif text.at[at] != 93:
                return None
        stops[n_lists] = n_numbers
        n_lists += 1
        at = blank(&text, at + 1)
        if text.at[at] == 93:
            return found[:n_numbers], ends[:n_lists]
        if text.at[at] != 44:
            return None
        at = blank(&text, at + 1)
    return None


def rows_in(const unsigned char[::1] data, Py_ssize_t begin, list keys):
    """Returns, of the objects in the list at `begin`: (float64, objects x keys: the numbers of these members, NaN where
    there is none; int64, likewise: where the value begins, -1: there is none; int64: where it ends). keys: with quotes.
    Elements that are no objects have no members. Raises JsonError for damaged text."""
    cdef Text text = opened(data)
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t n_keys = len(keys)
    cdef Py_ssize_t at = blank(&text, begin)
    cdef Py_ssize_t key
    cdef Py_ssize_t stop
    cdef Py_ssize_t nth
    cdef Py_ssize_t wanted
    cdef int64_t whole = 0
    cdef double real = 0
    cdef int kind
    cdef Py_ssize_t[MOST_KEYS] key_size
    cdef (const char*)[MOST_KEYS] key_text
    if n_keys > MOST_KEYS:
        raise ValueError("too many keys")
    for nth in range(n_keys):
        key_text[nth], key_size[nth] = keys[nth], len(keys[nth])
    if at >= text.size or text.at[at] != 91:
        raise JsonError(MEANINGS[UNEXPECTED], at, [])
    size = 1 << 10
    values, begins, ends = (np.empty((size, n_keys), kind) for kind in (np.float64, np.int64, np.int64))
    cdef double[:, ::1] v = values
    cdef int64_t[:, ::1] b = begins
    cdef int64_t[:, ::1] e = ends
    at = blank(&text, at + 1)
    while at < text.size and text.at[at] != 93:
        if n == v.shape[0]:
            values, begins, ends = (np.concatenate([one, np.empty_like(one)]) for one in (values, begins, ends))
            v, b, e = values, begins, ends
        v[n, :] = NAN
        b[n, :] = -1
        e[n, :] = -1
        n += 1
        if text.at[at] != 123:
            at = value(&text, at)
            check_end(&text, at)
        else:
            at = blank(&text, at + 1)
            while at < text.size and text.at[at] != 125:
                key = at
                stop = string(&text, at) if text.at[at] == 34 else failed(&text, at, UNEXPECTED)
                check_end(&text, stop)
                at = blank(&text, stop)
                if at >= text.size or text.at[at] != 58:
                    check_end(&text, failed(&text, at, UNEXPECTED))
                at = blank(&text, at + 1)
                wanted = -1
                for nth in range(n_keys):
                    if key_size[nth] == stop - key and memcmp(text.at + key, key_text[nth], stop - key) == 0:
                        wanted = nth
                stop = value(&text, at)
                check_end(&text, stop)
                if wanted >= 0:
                    b[n - 1, wanted], e[n - 1, wanted] = at, stop
                    v[n - 1, wanted] = NAN
                    if stop < text.size and (text.at[at] == 45 or 48 <= text.at[at] <= 57):
                        key = at
                        kind = number(&text, &key, &whole, &real)
                        if kind != OTHER and key == stop:
                            v[n - 1, wanted] = <double> whole if kind == WHOLE else real
                at = after_value(&text, stop, 125)
            at += 1
        at = after_value(&text, at, 93)
    if at >= text.size:
        check_end(&text, failed(&text, at, CUT))
    return values[:n], begins[:n], ends[:n]


cdef int check_end(Text* text, Py_ssize_t end) except -1:
    if end < 0:
        raise JsonError(MEANINGS[end], text.stopped, [])
    return 0


cdef Py_ssize_t after_value(Text* text, Py_ssize_t at, unsigned char closing) except -1:
    """Returns where the next value begins, or where the bracket is."""
    at = blank(text, at)
    if at < text.size and text.at[at] == 44:
        return blank(text, at + 1)
    if at >= text.size or text.at[at] != closing:
        check_end(text, failed(text, at, UNEXPECTED if at < text.size else CUT))
    return at
