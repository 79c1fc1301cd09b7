# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Kernels over the text of a Breakpad symbol file. Cython's pure-Python mode: also runs interpreted.

A record is a line. Its fields stand between spaces; the last one, a name, can hold spaces itself.
"""

import cython

from traceferry.kernels.functions import c_function, c_inline

NEWLINE = cython.declare(cython.uchar, 10)
RETURN = cython.declare(cython.uchar, 13)
SPACE = cython.declare(cython.uchar, 32)
LETTER_M = cython.declare(cython.uchar, 109)
HEX = cython.declare(cython.int, 16)
DECIMAL = cython.declare(cython.int, 10)
# 16 hex digits are 64 bits; no decimal number of a file needs as many.
MAX_DIGITS = cython.declare(cython.int, 16)
# Nest levels count from 0.
MAX_LEVELS = cython.declare(cython.ulonglong, 128)
ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

# The words that records begin with, as numbers of their last eight letters.
WORD_FILE = cython.declare(cython.ulonglong, 0x46494C45)
WORD_INLINE_ORIGIN = cython.declare(cython.ulonglong, 0x455F4F524947494E)
WORD_FUNC = cython.declare(cython.ulonglong, 0x46554E43)
WORD_PUBLIC = cython.declare(cython.ulonglong, 0x5055424C4943)
WORD_INLINE = cython.declare(cython.ulonglong, 0x494E4C494E45)
WORD_INFO = cython.declare(cython.ulonglong, 0x494E464F)
WORD_MODULE = cython.declare(cython.ulonglong, 0x4D4F44554C45)
WORD_STACK = cython.declare(cython.ulonglong, 0x535441434B)

# Kinds of lines, and indices into `counts`. A line that no record looks like is DAMAGED from the start.
SKIPPED = cython.declare(cython.int, 0)
FILE = cython.declare(cython.int, 1)
INLINE_ORIGIN = cython.declare(cython.int, 2)
FUNC = cython.declare(cython.int, 3)
PUBLIC = cython.declare(cython.int, 4)
LINE = cython.declare(cython.int, 5)
INLINE = cython.declare(cython.int, 6)
RANGE = cython.declare(cython.int, 7)
DAMAGED = cython.declare(cython.int, 8)
N_COUNTS = cython.declare(cython.int, 9)

# What reading one record comes to.
TAKEN = cython.declare(cython.int, 0)
BAD = cython.declare(cython.int, 1)
IS_FULL = cython.declare(cython.int, 2)


@c_inline
def digit_of(letter: cython.uchar) -> cython.int:
    """What a hex digit counts; 16 for any other letter."""
    if 48 <= letter <= 57:
        return letter - 48
    if 97 <= letter <= 102:
        return letter - 87
    if 65 <= letter <= 70:
        return letter - 55
    return 16


@c_inline
def line_end(text: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    n: cython.Py_ssize_t = text.shape[0]
    while at < n and text[at] != NEWLINE:
        at += 1
    return at


@c_function
def kind_of(text: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
    """By the first word of the line; an empty line is skipped."""
    if at == end:
        return SKIPPED
    word: cython.ulonglong = 0
    p: cython.Py_ssize_t = at
    while p < end and text[p] != SPACE:
        word = (word << 8 | text[p]) & ALL
        p += 1
    if word == WORD_FUNC:
        return FUNC
    if word == WORD_INLINE:
        return INLINE
    if word == WORD_FILE:
        return FILE
    if word == WORD_INLINE_ORIGIN:
        return INLINE_ORIGIN
    if word == WORD_PUBLIC:
        return PUBLIC
    if word == WORD_STACK or word == WORD_INFO or word == WORD_MODULE:
        return SKIPPED
    return LINE if digit_of(text[at]) < HEX else DAMAGED


@c_function
def after_word(
    text: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Past a record's first word, and the word `m` if it is next: several symbols are this code."""
    while at < end and text[at] != SPACE:
        at += 1
    if at + 2 < end and text[at + 1] == LETTER_M and text[at + 2] == SPACE:
        at += 2
    return at


@c_function
def numbers(
    text: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    base: cython.int,
    first: cython.int,
    last: cython.int,
    fields: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """The next words of a line as numbers, into fields[first:last]. The offset after them; -1 if they are none, or if
    at is -1."""
    if at < 0:
        return -1
    field: cython.int
    for field in range(first, last):
        while at < end and text[at] == SPACE:
            at += 1
        begin: cython.Py_ssize_t = at
        value: cython.ulonglong = 0
        while at < end and text[at] != SPACE:
            digit: cython.int = digit_of(text[at])
            if digit >= base or at - begin >= MAX_DIGITS:
                return -1
            value = value * base + digit
            at += 1
        if at == begin:
            return -1
        fields[field] = value
    return at


@c_function
def take_named(
    text: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    table: cython.ulonglong[:, ::1],
    kind: cython.int,
    fields: cython.ulonglong[::1],
    counts: cython.longlong[::1],
) -> cython.int:
    """FILE and INLINE_ORIGIN: number name."""
    row: cython.Py_ssize_t = counts[kind]
    at = numbers(text, after_word(text, at, end), end, DECIMAL, 0, 1, fields)
    if at < 0:
        return BAD
    if row == table.shape[0]:
        return IS_FULL
    table[row, 0] = fields[0]
    table[row, 1] = min(at + 1, end)
    table[row, 2] = end
    counts[kind] = row + 1
    return TAKEN


@c_function
def take_code(
    text: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    table: cython.ulonglong[:, ::1],
    kind: cython.int,
    fields: cython.ulonglong[::1],
    counts: cython.longlong[::1],
) -> cython.int:
    """FUNC: [m] address size parameter_size name. PUBLIC: the same without size."""
    row: cython.Py_ssize_t = counts[kind]
    fields[1] = 0
    at = numbers(text, after_word(text, at, end), end, HEX, 0, 1, fields)
    if kind == FUNC:
        at = numbers(text, at, end, HEX, 1, 2, fields)
    at = numbers(text, at, end, HEX, 2, 3, fields)
    if at < 0 or fields[1] > ALL - fields[0]:
        return BAD
    if row == table.shape[0]:
        return IS_FULL
    table[row, 0] = fields[0]
    table[row, 1] = fields[1]
    table[row, 2] = min(at + 1, end)
    table[row, 3] = end
    counts[kind] = row + 1
    return TAKEN


@c_function
def take_line(
    text: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    function: cython.Py_ssize_t,
    lines: cython.ulonglong[:, ::1],
    fields: cython.ulonglong[::1],
    counts: cython.longlong[::1],
) -> cython.int:
    """address size line filenum"""
    row: cython.Py_ssize_t = counts[LINE]
    p: cython.Py_ssize_t = numbers(text, at, end, HEX, 0, 2, fields)
    p = numbers(text, p, end, DECIMAL, 2, 4, fields)
    if p != end or fields[1] > ALL - fields[0]:
        return BAD
    if row == lines.shape[0]:
        return IS_FULL
    lines[row, 0] = fields[0]
    lines[row, 1] = fields[1]
    lines[row, 2] = fields[2]
    lines[row, 3] = fields[3]
    lines[row, 4] = function
    lines[row, 5] = at
    counts[LINE] = row + 1
    return TAKEN


@c_function
def take_inline(
    text: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    function: cython.Py_ssize_t,
    inlines: cython.ulonglong[:, ::1],
    ranges: cython.ulonglong[:, ::1],
    fields: cython.ulonglong[::1],
    counts: cython.longlong[::1],
) -> cython.int:
    """INLINE: inline_nest_level call_site_line call_site_file_num origin_num [address size]+"""
    row: cython.Py_ssize_t = counts[INLINE]
    nth: cython.Py_ssize_t = counts[RANGE]
    p: cython.Py_ssize_t = numbers(text, after_word(text, at, end), end, DECIMAL, 0, 4, fields)
    if p < 0 or p == end or fields[0] >= MAX_LEVELS:
        return BAD
    if row == inlines.shape[0]:
        return IS_FULL
    inlines[row, 0] = fields[0]
    inlines[row, 1] = fields[1]
    inlines[row, 2] = fields[2]
    inlines[row, 3] = fields[3]
    inlines[row, 4] = function
    inlines[row, 5] = at
    while p < end:
        p = numbers(text, p, end, HEX, 0, 2, fields)
        if p < 0 or fields[1] > ALL - fields[0]:
            return BAD
        if nth == ranges.shape[0]:
            return IS_FULL
        ranges[nth, 0] = fields[0]
        ranges[nth, 1] = fields[1]
        ranges[nth, 2] = row
        nth += 1
    counts[INLINE] = row + 1
    counts[RANGE] = nth
    return TAKEN


def count(text: cython.const[cython.uchar][::1], counts: cython.longlong[::1]):
    """How many records of each kind the text can hold at most; RANGE: in all INLINE records together; DAMAGED: all
    lines. counts: 9."""
    if counts.shape[0] != N_COUNTS:
        raise ValueError("count: an array has the wrong length")
    n: cython.Py_ssize_t = text.shape[0]
    at: cython.Py_ssize_t = 0
    p: cython.Py_ssize_t
    n_lines: cython.longlong = 0
    n_spaces: cython.longlong = 0
    kind: cython.int
    for kind in range(N_COUNTS):
        counts[kind] = 0
    while at < n:
        end: cython.Py_ssize_t = line_end(text, at)
        kind = kind_of(text, at, end)
        counts[kind] += 1
        n_lines += 1
        if kind == INLINE:
            for p in range(at, end):
                if text[p] == SPACE:
                    n_spaces += 1
        at = end + 1
    counts[RANGE] = n_spaces // 2
    counts[DAMAGED] = n_lines


def scan(
    text: cython.const[cython.uchar][::1],
    files: cython.ulonglong[:, ::1],
    origins: cython.ulonglong[:, ::1],
    functions: cython.ulonglong[:, ::1],
    publics: cython.ulonglong[:, ::1],
    lines: cython.ulonglong[:, ::1],
    inlines: cython.ulonglong[:, ::1],
    ranges: cython.ulonglong[:, ::1],
    damaged: cython.longlong[::1],
    fields: cython.ulonglong[::1],
    counts: cython.longlong[::1],
):
    """The records, a row each, in the file's order. Tables are as long as `count` says; counts: 9, becomes how
    many rows there are.

    files, origins: number, where the name begins and ends; functions, publics: address, size, where the name begins and
    ends; lines: address, size, line, file number, row of its function, offset of its record; inlines: nest level,
    call line, call file number, origin number, row of its function, offset of its record; ranges: address, size, row of
    inlines; damaged: offsets of the lines that are no records, and of those whose function is none. fields: 4, scratch.

    Raises ValueError where a table is too short.
    """
    if (
        counts.shape[0] != N_COUNTS
        or fields.shape[0] != 4
        or files.shape[1] != 3
        or origins.shape[1] != 3
        or functions.shape[1] != 4
        or publics.shape[1] != 4
        or lines.shape[1] != 6
        or inlines.shape[1] != 6
        or ranges.shape[1] != 3
    ):
        raise ValueError("scan: an array has the wrong length")
    n: cython.Py_ssize_t = text.shape[0]
    function: cython.Py_ssize_t = -1
    at: cython.Py_ssize_t = 0
    n_damaged: cython.Py_ssize_t = 0
    kind: cython.int
    for kind in range(N_COUNTS):
        counts[kind] = 0
    while at < n:
        end: cython.Py_ssize_t = line_end(text, at)
        following: cython.Py_ssize_t = end + 1
        if end > at and text[end - 1] == RETURN:
            end -= 1
        kind = kind_of(text, at, end)
        outcome: cython.int = BAD
        if kind == LINE:
            if function >= 0:
                outcome = take_line(text, at, end, function, lines, fields, counts)
        elif kind == INLINE:
            if function >= 0:
                outcome = take_inline(text, at, end, function, inlines, ranges, fields, counts)
        elif kind == FUNC:
            outcome = take_code(text, at, end, functions, FUNC, fields, counts)
            function = counts[FUNC] - 1 if outcome == TAKEN else -1
        elif kind == PUBLIC:
            outcome = take_code(text, at, end, publics, PUBLIC, fields, counts)
        elif kind == FILE:
            outcome = take_named(text, at, end, files, FILE, fields, counts)
        elif kind == INLINE_ORIGIN:
            outcome = take_named(text, at, end, origins, INLINE_ORIGIN, fields, counts)
        elif kind == SKIPPED:
            outcome = TAKEN
        if outcome == BAD:
            if n_damaged == damaged.shape[0]:
                outcome = IS_FULL
            else:
                damaged[n_damaged] = at
                n_damaged += 1
        if outcome == IS_FULL:
            raise ValueError("scan: a table is too short")
        at = following
    counts[DAMAGED] = n_damaged


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    count = plain_integers(count)
    scan = plain_integers(scan)
