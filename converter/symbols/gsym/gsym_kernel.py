# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Decodes function infos of GSYM files. Cython's pure-Python mode: also runs interpreted.

`find` says in which function info each address is, `count` how many frames it has, `fill` which: together they decode
each function that is touched once and walk through its addresses with it. `parts`, `rows` and `nodes` decode one
function whole.

`s` is an array of N_STATE unsigned numbers: first the layout of the file, which the caller writes, then what the kernel
notes for itself. Addresses are sorted. Outside the layout's tables nothing is read from s[INFOS_END] on.
"""

import cython

# ---------------------------------------------------------------- the state

# The layout. Whether numbers are big endian; the header's base address; the address table; the table of info offsets,
# what these count from and where infos end; the size of a string offset and of the string table; the file table.
BIG = cython.declare(cython.int, 0)
BASE = cython.declare(cython.int, 1)
ADDRESSES = cython.declare(cython.int, 2)
ADDRESS_SIZE = cython.declare(cython.int, 3)
N_ADDRESSES = cython.declare(cython.int, 4)
OFFSETS = cython.declare(cython.int, 5)
OFFSET_SIZE = cython.declare(cython.int, 6)
INFOS = cython.declare(cython.int, 7)
INFOS_END = cython.declare(cython.int, 8)
STRING_SIZE = cython.declare(cython.int, 9)
N_STRINGS = cython.declare(cython.int, 10)
FILES = cython.declare(cython.int, 11)
N_FILES = cython.declare(cython.int, 12)
# Where it reads, until where, and what was wrong there.
AT = cython.declare(cython.int, 13)
END = cython.declare(cython.int, 14)
BAD = cython.declare(cython.int, 15)
# How many bytes of infos were decoded.
SPENT = cython.declare(cython.int, 16)
# The function info: its fields, where it ends, and where the data of each type begins and ends.
SIZE = cython.declare(cython.int, 17)
NAME = cython.declare(cython.int, 18)
INFO_END = cython.declare(cython.int, 19)
LINES_AT = cython.declare(cython.int, 20)
LINES_END = cython.declare(cython.int, 21)
INLINES_AT = cython.declare(cython.int, 22)
INLINES_END = cython.declare(cython.int, 23)
PARTS_END = cython.declare(cython.int, 28)
# The row of the line table, and what its special opcodes mean.
ROW_ADDRESS = cython.declare(cython.int, 28)
ROW_FILE = cython.declare(cython.int, 29)
ROW_LINE = cython.declare(cython.int, 30)
MIN_DELTA = cython.declare(cython.int, 31)
LINE_RANGE = cython.declare(cython.int, 32)
# The node of the inline tree: its number from 1 on, its parent's, how deep it is; its fields; whether it has a call
# file and so makes a frame; where it ends; how many lists of siblings are open behind it.
NODE = cython.declare(cython.int, 33)
PARENT = cython.declare(cython.int, 34)
LEVEL = cython.declare(cython.int, 35)
NODE_NAME = cython.declare(cython.int, 36)
CALL_FILE = cython.declare(cython.int, 37)
CALL_LINE = cython.declare(cython.int, 38)
IS_CALL = cython.declare(cython.int, 39)
NODE_END = cython.declare(cython.int, 40)
DEPTH = cython.declare(cython.int, 41)
# Its ranges: what they count from, how many are left, the one that was read.
RANGES_FROM = cython.declare(cython.int, 42)
RANGES_LEFT = cython.declare(cython.int, 43)
RANGE_START = cython.declare(cython.int, 44)
RANGE_END = cython.declare(cython.int, 45)
# For each open list of siblings: what their ranges count from, the number of their parent.
PATH = cython.declare(cython.int, 46)
N_STATE = cython.declare(cython.int, 310)
MAX_DEPTH = cython.declare(cython.ulonglong, 128)

# Values of s[BAD] and of `damage`.
OUTSIDE = cython.declare(cython.int, 1)
CUT = cython.declare(cython.int, 2)
ENDLESS = cython.declare(cython.int, 3)
NO_NAME = cython.declare(cython.int, 4)
NO_STRING = cython.declare(cython.int, 5)
NO_FILE = cython.declare(cython.int, 6)
NO_RANGE = cython.declare(cython.int, 7)
TOO_DEEP = cython.declare(cython.int, 8)
OVERLAP = cython.declare(cython.int, 9)
NO_ROOM = cython.declare(cython.int, 10)

# InfoType.
LINE_TABLE = cython.declare(cython.ulonglong, 1)
CALL_SITES = cython.declare(cython.ulonglong, 4)

# Opcodes of the line table.
END_SEQUENCE = cython.declare(cython.ulonglong, 0)
SET_FILE = cython.declare(cython.ulonglong, 1)
ADVANCE_PC = cython.declare(cython.ulonglong, 2)
ADVANCE_LINE = cython.declare(cython.ulonglong, 3)
FIRST_SPECIAL = cython.declare(cython.ulonglong, 4)

ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
TOP = cython.declare(cython.ulonglong, 0x8000000000000000)
LOW32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
MAX_LINE = cython.declare(cython.ulonglong, 0x7FFFFFFF)
# Infos that lie over each other could otherwise be decoded without an end; a writer may let a few be the same.
MAX_SPENT = cython.declare(cython.ulonglong, 16)


@cython.cfunc
@cython.exceptval(check=False)
def is_sound(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.bint:
    """Whether the tables of the layout lie inside the data."""
    length: cython.ulonglong = d.shape[0]
    return (
        s.shape[0] >= N_STATE
        and s[INFOS_END] <= length
        and s[N_ADDRESSES] <= length
        and s[N_FILES] <= length
        and 1 <= s[ADDRESS_SIZE] <= 8
        and 1 <= s[OFFSET_SIZE] <= 8
        and 1 <= s[STRING_SIZE] <= 8
        and s[ADDRESSES] <= length
        and s[N_ADDRESSES] * s[ADDRESS_SIZE] <= length - s[ADDRESSES]
        and s[OFFSETS] <= length
        and s[N_ADDRESSES] * s[OFFSET_SIZE] <= length - s[OFFSETS]
        and s[FILES] <= length
        and s[N_FILES] * s[STRING_SIZE] * 2 <= length - s[FILES]
    )


# ---------------------------------------------------------------- numbers


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def wrapped(value: cython.ulonglong) -> cython.ulonglong:
    """Modulo 2^64, as C counts anyway."""
    return value if cython.compiled else value & ALL


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def number(
    d: cython.const[cython.uchar][::1], at: cython.ulonglong, size: cython.ulonglong, big: cython.ulonglong
) -> cython.ulonglong:
    value: cython.ulonglong = 0
    i: cython.ulonglong
    if big:
        for i in range(size):
            value = value << 8 | d[at + i]
    else:
        for i in range(size):
            value = value << 8 | d[at + size - 1 - i]
    return value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def fixed(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], size: cython.ulonglong) -> cython.ulonglong:
    """The number of so many bytes at s[AT]."""
    at: cython.ulonglong = s[AT]
    if at > s[END] or s[END] - at < size:
        s[BAD] = CUT
        return 0
    s[AT] = at + size
    return number(d, at, size, s[BIG])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def uleb(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    at: cython.ulonglong = s[AT]
    end: cython.ulonglong = s[END]
    value: cython.ulonglong = 0
    shift: cython.int = 0
    b: cython.ulonglong
    while at < end:
        b = d[at]
        at += 1
        value |= (b & 0x7F) << shift
        shift += 7
        if b < 128:
            s[AT] = at
            return wrapped(value)
        if shift > 63:
            s[BAD] = ENDLESS
            return 0
    s[BAD] = CUT
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def sleb(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.ulonglong:
    """In two's complement."""
    at: cython.ulonglong = s[AT]
    end: cython.ulonglong = s[END]
    value: cython.ulonglong = 0
    shift: cython.int = 0
    b: cython.ulonglong
    while at < end:
        b = d[at]
        at += 1
        value |= (b & 0x7F) << shift
        shift += 7
        if b < 128:
            s[AT] = at
            if b & 0x40 and shift < 64:
                value |= ALL << shift
            return wrapped(value)
        if shift > 63:
            s[BAD] = ENDLESS
            return 0
    s[BAD] = CUT
    return 0


# ---------------------------------------------------------------- the tables


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def start_of(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], entry: cython.ulonglong) -> cython.ulonglong:
    """Of a function, less the base address."""
    return number(d, s[ADDRESSES] + entry * s[ADDRESS_SIZE], s[ADDRESS_SIZE], s[BIG])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_from(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], offset: cython.ulonglong
) -> cython.ulonglong:
    """The first entry of the address table that is not below `offset`."""
    low: cython.ulonglong = 0
    high: cython.ulonglong = s[N_ADDRESSES]
    middle: cython.ulonglong
    while low < high:
        middle = (low + high) // 2
        if start_of(d, s, middle) < offset:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_after(
    d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], offset: cython.ulonglong
) -> cython.ulonglong:
    return s[N_ADDRESSES] if offset == ALL else first_from(d, s, offset + 1)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def info_of(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], entry: cython.ulonglong) -> cython.longlong:
    """Where the function info of an entry begins; -1: outside."""
    offset: cython.ulonglong = number(d, s[OFFSETS] + entry * s[OFFSET_SIZE], s[OFFSET_SIZE], s[BIG])
    end: cython.ulonglong = s[INFOS_END]
    if end < 4 or s[INFOS] > end - 4 or offset > end - 4 - s[INFOS]:
        return -1
    return cython.cast(cython.longlong, s[INFOS] + offset)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def has_path(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], file: cython.ulonglong) -> cython.bint:
    """Whether a file of the file table has a directory or a name."""
    size: cython.ulonglong = s[STRING_SIZE]
    at: cython.ulonglong = s[FILES] + file * size * 2
    return number(d, at, size, s[BIG]) != 0 or number(d, at + size, size, s[BIG]) != 0


def find(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    addresses: cython.const[cython.ulonglong][::1],
    infos: cython.longlong[::1],
    starts: cython.ulonglong[::1],
    damage: cython.uchar[::1],
):
    """For each address where its function info begins, -1: none, and where its function starts. Of functions that start
    at one address it is the first that reaches the address; size 0 reaches until the next function.

    Where the offset of an info is outside, `damage` says so and `infos` is where this offset stands.
    """
    n: cython.Py_ssize_t = addresses.shape[0]
    if not is_sound(d, s) or infos.shape[0] != n or starts.shape[0] != n or damage.shape[0] != n:
        raise ValueError("find: an array has the wrong length")
    base: cython.ulonglong = s[BASE]
    # Entries from `entry` to `end` start at `start`; `until` is where the next ones do.
    entry: cython.ulonglong = 0
    end: cython.ulonglong = 0
    start: cython.ulonglong = 0
    until: cython.ulonglong = 0
    offset: cython.ulonglong
    size: cython.ulonglong
    info: cython.longlong
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(n):
            infos[i] = -1
            starts[i] = 0
            damage[i] = 0
            if addresses[i] < base:
                continue
            offset = addresses[i] - base
            if offset >= until and end < s[N_ADDRESSES]:
                end = first_after(d, s, offset)
                until = start_of(d, s, end) if end < s[N_ADDRESSES] else ALL
                if end > 0:
                    start = start_of(d, s, end - 1)
                    entry = first_from(d, s, start)
            while entry < end:
                info = info_of(d, s, entry)
                if info < 0:
                    damage[i] = OUTSIDE
                    infos[i] = cython.cast(cython.longlong, s[OFFSETS] + entry * s[OFFSET_SIZE])
                    break
                size = number(d, cython.cast(cython.ulonglong, info), 4, s[BIG])
                if size == 0 or offset - start < size:
                    infos[i] = info
                    starts[i] = wrapped(base + start)
                    break
                entry += 1


# ---------------------------------------------------------------- a function info


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def begin_info(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], info: cython.ulonglong) -> cython.bint:
    """Reads size and name, and finds the data of each type."""
    i: cython.int
    type_: cython.ulonglong
    length: cython.ulonglong
    s[BAD] = 0
    s[AT] = info
    s[END] = s[INFOS_END]
    for i in range(LINES_AT, PARTS_END):
        s[i] = 0
    s[SIZE] = fixed(d, s, 4)
    s[NAME] = fixed(d, s, s[STRING_SIZE])
    if s[BAD] == 0 and s[NAME] == 0:
        s[BAD] = NO_NAME
    elif s[BAD] == 0 and s[NAME] >= s[N_STRINGS]:
        s[BAD] = NO_STRING
    while s[BAD] == 0:
        type_ = fixed(d, s, 4)
        length = fixed(d, s, 4)
        if s[BAD] != 0 or length > s[END] - s[AT]:
            s[BAD] = CUT
            break
        if LINE_TABLE <= type_ <= CALL_SITES:
            s[LINES_AT + 2 * (type_ - 1)] = s[AT]
            s[LINES_END + 2 * (type_ - 1)] = s[AT] + length
        s[AT] += length
        if type_ == 0:
            s[INFO_END] = s[AT]
            break
    if s[BAD] == 0:
        s[SPENT] += s[INFO_END] - info
        if s[SPENT] // MAX_SPENT > cython.cast(cython.ulonglong, d.shape[0]):
            s[BAD] = OVERLAP
    return s[BAD] == 0


def parts(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    info: cython.ulonglong,
    out: cython.ulonglong[::1],
) -> cython.int:
    """Size, name, end of the function info at `info`, then begin and end of its line table, inline tree, merged
    functions and call sites: 11 numbers. Returns what is damaged, 0: nothing."""
    if not is_sound(d, s) or out.shape[0] != 11:
        raise ValueError("parts: an array has the wrong length")
    i: cython.int
    if begin_info(d, s, info):
        for i in range(11):
            out[i] = s[SIZE + i]
    return s[BAD]


# ---------------------------------------------------------------- the line table


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def begin_rows(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1], start: cython.ulonglong) -> cython.void:
    max_delta: cython.ulonglong
    s[BAD] = 0
    s[AT] = s[LINES_AT]
    s[END] = s[LINES_END]
    s[MIN_DELTA] = sleb(d, s)
    max_delta = sleb(d, s)
    s[LINE_RANGE] = wrapped(max_delta - s[MIN_DELTA] + 1)
    s[ROW_LINE] = uleb(d, s) & LOW32
    s[ROW_FILE] = 1
    s[ROW_ADDRESS] = start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def next_row(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.bint:
    """Goes on to the next row. False: there is none, or s[BAD] says why not."""
    opcode: cython.ulonglong
    while s[BAD] == 0:
        opcode = fixed(d, s, 1)
        if opcode == END_SEQUENCE:
            return False
        if opcode == SET_FILE:
            s[ROW_FILE] = uleb(d, s) & LOW32
        elif opcode == ADVANCE_LINE:
            s[ROW_LINE] = wrapped(s[ROW_LINE] + sleb(d, s)) & LOW32
        else:
            if opcode == ADVANCE_PC:
                s[ROW_ADDRESS] = wrapped(s[ROW_ADDRESS] + uleb(d, s))
            elif s[LINE_RANGE] == 0 or s[LINE_RANGE] >= TOP:
                s[BAD] = NO_RANGE
            else:
                opcode -= FIRST_SPECIAL
                s[ROW_LINE] = wrapped(s[ROW_LINE] + s[MIN_DELTA] + opcode % s[LINE_RANGE]) & LOW32
                s[ROW_ADDRESS] = wrapped(s[ROW_ADDRESS] + opcode // s[LINE_RANGE])
            if s[BAD] == 0 and s[ROW_FILE] >= s[N_FILES]:
                s[BAD] = NO_FILE
            return s[BAD] == 0
    return False


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def line_of(line: cython.ulonglong) -> cython.int:
    """0 is unknown, as is what a signed number cannot hold."""
    return cython.cast(cython.int, line) if line <= MAX_LINE else 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def place_rows(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    addresses: cython.const[cython.ulonglong][::1],
    start: cython.ulonglong,
    i: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    files: cython.uint[::1],
    lines: cython.int[::1],
) -> cython.bint:
    """The row of each address from i to `end`, the last before one that is behind the address; file 0: it has none."""
    file: cython.uint = 0
    line: cython.int = 0
    begin_rows(d, s, start)
    while i < end and next_row(d, s):
        while i < end and addresses[i] < s[ROW_ADDRESS]:
            files[i] = file
            lines[i] = line
            i += 1
        file = cython.cast(cython.uint, s[ROW_FILE])
        line = line_of(s[ROW_LINE])
    while i < end:
        files[i] = file
        lines[i] = line
        i += 1
    return s[BAD] == 0


def rows(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    at: cython.ulonglong,
    end: cython.ulonglong,
    start: cython.ulonglong,
    addresses: cython.ulonglong[::1],
    files: cython.uint[::1],
    lines: cython.int[::1],
) -> cython.Py_ssize_t:
    """The line table that lies from `at` to `end`, of a function that starts at `start`. Returns how many rows it has;
    below 0: what is damaged. A row for each byte is room enough."""
    room: cython.Py_ssize_t = addresses.shape[0]
    if not is_sound(d, s) or end > s[INFOS_END] or files.shape[0] != room or lines.shape[0] != room:
        raise ValueError("rows: an array has the wrong length")
    n: cython.Py_ssize_t = 0
    s[LINES_AT] = at
    s[LINES_END] = end
    begin_rows(d, s, start)
    while next_row(d, s):
        if n >= room:
            raise ValueError("rows: no room")
        addresses[n] = s[ROW_ADDRESS]
        files[n] = cython.cast(cython.uint, s[ROW_FILE])
        lines[n] = line_of(s[ROW_LINE])
        n += 1
    return n if s[BAD] == 0 else -cython.cast(cython.Py_ssize_t, s[BAD])


# ---------------------------------------------------------------- the inline tree


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def begin_nodes(s: cython.ulonglong[::1], start: cython.ulonglong) -> cython.void:
    s[BAD] = 0
    s[NODE_END] = s[INLINES_AT]
    s[END] = s[INLINES_END]
    s[NODE] = 0
    s[DEPTH] = 0
    s[PATH] = start
    s[PATH + 1] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def next_node(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.bint:
    """Goes on to the next node, parents before their children, and to before its ranges. False: there is none, or
    s[BAD] says why not."""
    if s[NODE] > 0 and s[DEPTH] == 0:
        return False
    s[AT] = s[NODE_END]
    n: cython.ulonglong = uleb(d, s)
    while n == 0 and s[BAD] == 0:
        if s[DEPTH] <= 1:
            return False
        s[DEPTH] -= 1
        n = uleb(d, s)
    if s[BAD] == 0 and n > (s[END] - s[AT]) // 2:
        s[BAD] = CUT
    if s[BAD] != 0:
        return False
    level: cython.ulonglong = s[DEPTH]
    s[LEVEL] = level
    s[RANGES_FROM] = s[PATH + 2 * level]
    s[PARENT] = s[PATH + 2 * level + 1]
    s[RANGES_LEFT] = n
    s[NODE] += 1
    ranges_at: cython.ulonglong = s[AT]
    first: cython.ulonglong = wrapped(s[RANGES_FROM] + uleb(d, s))
    uleb(d, s)
    while n > 1 and s[BAD] == 0:
        uleb(d, s)
        uleb(d, s)
        n -= 1
    has_children: cython.bint = fixed(d, s, 1) != 0
    s[NODE_NAME] = fixed(d, s, s[STRING_SIZE])
    s[CALL_FILE] = uleb(d, s)
    s[CALL_LINE] = uleb(d, s)
    s[NODE_END] = s[AT]
    s[AT] = ranges_at
    if s[BAD] != 0:
        return False
    if s[NODE_NAME] >= s[N_STRINGS]:
        s[BAD] = NO_STRING
    elif s[CALL_FILE] >= s[N_FILES]:
        s[BAD] = NO_FILE
    elif has_children and level >= MAX_DEPTH:
        s[BAD] = TOO_DEEP
    else:
        s[IS_CALL] = has_path(d, s, s[CALL_FILE])
        if has_children:
            s[DEPTH] = level + 1
            s[PATH + 2 * level + 2] = first
            s[PATH + 2 * level + 3] = s[NODE]
    return s[BAD] == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def next_range(d: cython.const[cython.uchar][::1], s: cython.ulonglong[::1]) -> cython.bint:
    """The node's next range: its first address and the one behind it."""
    if s[RANGES_LEFT] == 0:
        return False
    s[RANGES_LEFT] -= 1
    s[RANGE_START] = wrapped(s[RANGES_FROM] + uleb(d, s))
    s[RANGE_END] = wrapped(s[RANGE_START] + uleb(d, s))
    if s[RANGE_END] < s[RANGE_START]:
        s[RANGE_END] = ALL
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def first_address(
    addresses: cython.const[cython.ulonglong][::1],
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    address: cython.ulonglong,
) -> cython.Py_ssize_t:
    """The first from low to high that is not below `address`, or high."""
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if addresses[middle] < address:
            low = middle + 1
        else:
            high = middle
    return low


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def begin_inside(
    files: cython.const[cython.uint][::1],
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inside: cython.ulonglong[::1],
) -> cython.void:
    """Every address is in no node yet, and never comes into one where it has no row."""
    i: cython.Py_ssize_t
    for i in range(begin, end):
        inside[i] = 0 if files[i] != 0 else ALL


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def count_calls(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    addresses: cython.const[cython.ulonglong][::1],
    start: cython.ulonglong,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inside: cython.ulonglong[::1],
    frames: cython.int[::1],
) -> cython.bint:
    """Adds to `frames` the calls that are inlined around each address from `begin` to `end`. inside: the innermost node
    so far: a node holds an address only if its parent does and no sibling before it."""
    i: cython.Py_ssize_t
    parent: cython.ulonglong
    begin_nodes(s, start)
    while next_node(d, s):
        parent = s[PARENT]
        while next_range(d, s):
            i = first_address(addresses, begin, end, s[RANGE_START])
            while i < end and addresses[i] < s[RANGE_END]:
                if inside[i] == parent:
                    inside[i] = s[NODE]
                    frames[i] += cython.cast(cython.int, s[IS_CALL])
                i += 1
    return s[BAD] == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def fill_calls(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    addresses: cython.const[cython.ulonglong][::1],
    start: cython.ulonglong,
    begin: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    inside: cython.ulonglong[::1],
    first: cython.const[cython.longlong][::1],
    outermost: cython.longlong[::1],
    name: cython.ulonglong[::1],
    source: cython.uint[::1],
    line: cython.int[::1],
) -> cython.bint:
    """Writes the calls that `count_calls` counted. first: the innermost frame of each address; outermost: the last that
    was not written yet."""
    i: cython.Py_ssize_t
    frame: cython.longlong
    parent: cython.ulonglong
    begin_nodes(s, start)
    while next_node(d, s):
        parent = s[PARENT]
        while next_range(d, s):
            i = first_address(addresses, begin, end, s[RANGE_START])
            while i < end and addresses[i] < s[RANGE_END]:
                if inside[i] == parent:
                    inside[i] = s[NODE]
                    if s[IS_CALL] != 0:
                        frame = outermost[i]
                        if frame <= first[i]:
                            s[BAD] = NO_ROOM
                            return False
                        source[frame] = cython.cast(cython.uint, s[CALL_FILE])
                        line[frame] = line_of(s[CALL_LINE])
                        name[frame - 1] = s[NODE_NAME]
                        outermost[i] = frame - 1
                i += 1
    return s[BAD] == 0


def nodes(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    at: cython.ulonglong,
    end: cython.ulonglong,
    start: cython.ulonglong,
    level: cython.int[::1],
    name: cython.ulonglong[::1],
    file: cython.uint[::1],
    line: cython.int[::1],
    first_range: cython.longlong[::1],
    range_start: cython.ulonglong[::1],
    range_end: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """The inline tree that lies from `at` to `end`, of a function that starts at `start`, parents before their
    children: how deep each node is, its name, call file, call line, and which ranges are its own: from first_range of
    it to that of the next. Returns how many nodes; below 0: what is damaged. A node for each 10 bytes and a range for
    each 2 are room enough."""
    room: cython.Py_ssize_t = name.shape[0]
    n_ranges: cython.Py_ssize_t = range_start.shape[0]
    if (
        not is_sound(d, s)
        or end > s[INFOS_END]
        or level.shape[0] != room
        or file.shape[0] != room
        or line.shape[0] != room
        or first_range.shape[0] != room + 1
        or range_end.shape[0] != n_ranges
    ):
        raise ValueError("nodes: an array has the wrong length")
    n: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    s[INLINES_AT] = at
    s[INLINES_END] = end
    first_range[0] = 0
    begin_nodes(s, start)
    while next_node(d, s):
        if n >= room or s[RANGES_LEFT] > cython.cast(cython.ulonglong, n_ranges - m):
            raise ValueError("nodes: no room")
        level[n] = cython.cast(cython.int, s[LEVEL])
        name[n] = s[NODE_NAME]
        file[n] = cython.cast(cython.uint, s[CALL_FILE])
        line[n] = line_of(s[CALL_LINE])
        while next_range(d, s):
            range_start[m] = s[RANGE_START]
            range_end[m] = s[RANGE_END]
            m += 1
        n += 1
        first_range[n] = m
    return n if s[BAD] == 0 else -cython.cast(cython.Py_ssize_t, s[BAD])


# ---------------------------------------------------------------- frames


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def end_of_function(
    infos: cython.const[cython.longlong][::1], starts: cython.const[cython.ulonglong][::1], i: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """How far the addresses are of the function that the i-th is of."""
    end: cython.Py_ssize_t = i + 1
    while end < infos.shape[0] and infos[end] == infos[i] and starts[end] == starts[i]:
        end += 1
    return end


def count(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    addresses: cython.const[cython.ulonglong][::1],
    infos: cython.const[cython.longlong][::1],
    starts: cython.const[cython.ulonglong][::1],
    sizes: cython.ulonglong[::1],
    names: cython.ulonglong[::1],
    files: cython.uint[::1],
    lines: cython.int[::1],
    frames: cython.int[::1],
    inside: cython.ulonglong[::1],
    damage: cython.uchar[::1],
):
    """For each address, with what `find` gave: its function's size and name, its row's file (0: it has no row) and
    line, and how many frames it has: inlined ones only where there is a row. None where `damage` says what is wrong."""
    n: cython.Py_ssize_t = addresses.shape[0]
    if (
        not is_sound(d, s)
        or infos.shape[0] != n
        or starts.shape[0] != n
        or sizes.shape[0] != n
        or names.shape[0] != n
        or files.shape[0] != n
        or lines.shape[0] != n
        or frames.shape[0] != n
        or inside.shape[0] != n
        or damage.shape[0] != n
    ):
        raise ValueError("count: an array has the wrong length")
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    end: cython.Py_ssize_t
    good: cython.bint
    s[SPENT] = 0
    with cython.nogil:
        while i < n:
            end = end_of_function(infos, starts, i)
            for k in range(i, end):
                sizes[k] = 0
                names[k] = 0
                files[k] = 0
                lines[k] = 0
                frames[k] = 0
            if infos[i] < 0 or damage[i] != 0:
                i = end
                continue
            good = begin_info(d, s, cython.cast(cython.ulonglong, infos[i]))
            if good and s[LINES_END] > s[LINES_AT]:
                good = place_rows(d, s, addresses, starts[i], i, end, files, lines)
                if good and s[INLINES_END] > s[INLINES_AT]:
                    begin_inside(files, i, end, inside)
                    good = count_calls(d, s, addresses, starts[i], i, end, inside, frames)
            for k in range(i, end):
                if good:
                    sizes[k] = s[SIZE]
                    names[k] = s[NAME]
                    frames[k] += 1
                else:
                    damage[k] = cython.cast(cython.uchar, s[BAD])
                    frames[k] = 0
            i = end


def fill(
    d: cython.const[cython.uchar][::1],
    s: cython.ulonglong[::1],
    addresses: cython.const[cython.ulonglong][::1],
    infos: cython.const[cython.longlong][::1],
    starts: cython.const[cython.ulonglong][::1],
    names: cython.const[cython.ulonglong][::1],
    files: cython.const[cython.uint][::1],
    lines: cython.const[cython.int][::1],
    frames: cython.const[cython.int][::1],
    inside: cython.ulonglong[::1],
    first: cython.const[cython.longlong][::1],
    outermost: cython.longlong[::1],
    name: cython.ulonglong[::1],
    source: cython.uint[::1],
    line: cython.int[::1],
):
    """The frames that `count` counted, innermost first: those of the i-th address from first[i] on. outermost: a
    number for each address, for its own use."""
    n: cython.Py_ssize_t = addresses.shape[0]
    room: cython.longlong = name.shape[0]
    if (
        not is_sound(d, s)
        or infos.shape[0] != n
        or starts.shape[0] != n
        or names.shape[0] != n
        or files.shape[0] != n
        or lines.shape[0] != n
        or frames.shape[0] != n
        or inside.shape[0] != n
        or first.shape[0] != n
        or outermost.shape[0] != n
        or source.shape[0] != room
        or line.shape[0] != room
    ):
        raise ValueError("fill: an array has the wrong length")
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    end: cython.Py_ssize_t
    deepest: cython.int
    good: cython.bint = True
    s[SPENT] = 0
    with cython.nogil:
        while i < n and good:
            end = end_of_function(infos, starts, i)
            deepest = 0
            for k in range(i, end):
                if frames[k] < 0 or first[k] < 0 or first[k] > room - frames[k]:
                    good = False
                    break
                if frames[k] == 0:
                    continue
                deepest = max(deepest, frames[k])
                source[first[k]] = files[k]
                line[first[k]] = lines[k]
                outermost[k] = first[k] + frames[k] - 1
                name[outermost[k]] = names[k]
            if good and deepest > 1:
                begin_inside(files, i, end, inside)
                good = begin_info(d, s, cython.cast(cython.ulonglong, infos[i])) and fill_calls(
                    d, s, addresses, starts[i], i, end, inside, first, outermost, name, source, line
                )
            i = end
    if not good:
        raise ValueError("fill: not what was counted")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    find = plain_integers(find)
    parts = plain_integers(parts)
    rows = plain_integers(rows)
    nodes = plain_integers(nodes)
    count = plain_integers(count)
    fill = plain_integers(fill)
