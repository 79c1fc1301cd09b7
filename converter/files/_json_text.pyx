"""Where the values of JSON text begin and end, without parsing them: brackets and quotes are matched, nothing else."""

from libc.string cimport memchr

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

MEANINGS = {CUT: "the JSON text ends too early", TOO_DEEP: f"values are nested more than {MAX_DEPTH} levels deep",
            UNEXPECTED: "this is no JSON text"}


cdef struct Text:
    const unsigned char* at
    Py_ssize_t size
    Py_ssize_t stopped  # where an error is


cdef Py_ssize_t failed(Text* text, Py_ssize_t i, int why) noexcept nogil:
    text.stopped = i
    return why


cdef inline Py_ssize_t blank(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns where the white space from i on ends."""
    while i < text.size and (text.at[i] == 32 or 9 <= text.at[i] <= 10 or text.at[i] == 13):
        i += 1
    return i


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


cdef Py_ssize_t value(Text* text, Py_ssize_t i) noexcept nogil:
    """Returns the end of the value that begins at i."""
    cdef unsigned char[MAX_DEPTH] closing
    cdef int depth = 0
    cdef unsigned char c
    cdef Py_ssize_t begin = i
    if i >= text.size:
        return failed(text, i, CUT)
    c = text.at[i]
    if c == 34:
        return string(text, i)
    if c != 123 and c != 91:
        while i < text.size and not ENDS_SCALAR[text.at[i]]:
            i += 1
        return i if i > begin else failed(text, i, UNEXPECTED)
    while i < text.size:
        c = text.at[i]
        if not IS_MARK[c]:
            i += 1
        elif c == 34:
            i = string(text, i)
            if i < 0:
                return i
        elif c == 123 or c == 91:
            if depth == MAX_DEPTH:
                return failed(text, i, TOO_DEEP)
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
    return failed(text, i, CUT)


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


def members(const unsigned char[::1] data, Py_ssize_t begin):
    """Returns (key, begin, end) of the values of the members of the object at `begin`. The keys are text with its
    quotes."""
    return parts(data, begin, 123)


def elements(const unsigned char[::1] data, Py_ssize_t begin):
    """Returns ("", begin, end) of the elements of the list at `begin`."""
    return parts(data, begin, 91)


cdef Text opened(const unsigned char[::1] data):
    cdef Text text
    text.size = data.shape[0]
    text.at = NULL
    if text.size:
        text.at = &data[0]
    text.stopped = 0
    return text


cdef list parts(const unsigned char[::1] data, Py_ssize_t i, unsigned char opening):
    cdef Text text = opened(data)
    cdef Py_ssize_t begin
    cdef Py_ssize_t end
    cdef bytes key = b""
    cdef bint is_first = True
    found = []
    i = blank(&text, i)
    if i >= text.size or text.at[i] != opening:
        raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
    i += 1
    while True:
        i = blank(&text, i)
        if i < text.size and text.at[i] == opening + 2 and is_first:
            return found
        if opening == 123:
            if i >= text.size or text.at[i] != 34:
                raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
            end = string(&text, i)
            if end < 0:
                raise JsonError(MEANINGS[end], text.stopped, found)
            key = text.at[i:end]
            i = blank(&text, end)
            if i >= text.size or text.at[i] != 58:
                raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
            i = blank(&text, i + 1)
        begin = i
        end = value(&text, begin)
        if end < 0:
            raise JsonError(MEANINGS[end], text.stopped, [*found, (key, begin, begin)])
        found.append((key, begin, end))
        is_first = False
        i = blank(&text, end)
        if i < text.size and text.at[i] == opening + 2:
            return found
        if i >= text.size or text.at[i] != 44:
            raise JsonError(MEANINGS[CUT if i >= text.size else UNEXPECTED], i, found)
        i += 1
