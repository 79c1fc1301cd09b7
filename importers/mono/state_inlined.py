"""The names of what the kernels of this folder take and give, and arithmetic modulo 2^64."""

import cython

# Where it is: in bytes of the file, and the values that later ones of the buffer are differences from.
AT = cython.declare(cython.int, 0)
END = cython.declare(cython.int, 1)
TS = cython.declare(cython.int, 2)
METHOD = cython.declare(cython.int, 3)
PTR_BASE = cython.declare(cython.int, 4)
OBJ_BASE = cython.declare(cython.int, 5)
# What the file is: its data version; the one that tells how counters are laid out; which bits a pointer has.
VERSION = cython.declare(cython.int, 6)
COUNTERS_VERSION = cython.declare(cython.int, 7)
PTR_MASK = cython.declare(cython.int, 8)
# The event that `step` has read: its first byte, time, fields, the place of its (first) text, how many items it has.
KIND = cython.declare(cython.int, 9)
EVENT_TS = cython.declare(cython.int, 10)
A = cython.declare(cython.int, 11)
B = cython.declare(cython.int, 12)
C = cython.declare(cython.int, 13)
D = cython.declare(cython.int, 14)
TEXT = cython.declare(cython.int, 15)
N_ITEMS = cython.declare(cython.int, 16)
BAD = cython.declare(cython.int, 17)
# Where it began, and what the differences were from then: to read it again.
EVENT_AT = cython.declare(cython.int, 18)
TS_BEFORE = cython.declare(cython.int, 19)
METHOD_BEFORE = cython.declare(cython.int, 20)
# Which buffer, and whether it is begun.
BUFFER = cython.declare(cython.int, 21)
BEGUN = cython.declare(cython.int, 22)
# What a kernel has written, and the pointer that it asks about.
N_ROWS = cython.declare(cython.int, 23)
N_POOL = cython.declare(cython.int, 24)
ASKED = cython.declare(cython.int, 25)
# Of calls: open ones, the latest time, leaves without an enter, calls closed by a leave below them, enters.
DEPTH = cython.declare(cython.int, 26)
NOW = cython.declare(cython.int, 27)
N_IGNORED = cython.declare(cython.int, 28)
N_UNWOUND = cython.declare(cython.int, 29)
N_BACKWARDS = cython.declare(cython.int, 30)
SEARCHED = cython.declare(cython.int, 31)
N_STACKS = cython.declare(cython.int, 32)
N_SECOND = cython.declare(cython.int, 33)
# Times of calls are lowered to this one.
MAX_TS = cython.declare(cython.int, 34)
# The lengths of the table of names when it was last looked through.
CHECKED = cython.declare(cython.int, 36)
N_STATE = cython.declare(cython.int, 40)

# Values of s[BAD].
CUT = cython.declare(cython.int, 1)
ENDLESS = cython.declare(cython.int, 2)
UNKNOWN_EVENT = cython.declare(cython.int, 3)
BAD_COUNT = cython.declare(cython.int, 4)
NO_ROOM = cython.declare(cython.int, 5)
UNKNOWN_VALUE = cython.declare(cython.int, 6)

# Why a kernel stopped.
DONE = cython.declare(cython.int, 0)
ROWS_FULL = cython.declare(cython.int, 1)
ITEMS_FULL = cython.declare(cython.int, 2)
POOL_FULL = cython.declare(cython.int, 3)
STACKS_FULL = cython.declare(cython.int, 4)
ASKS_METHOD = cython.declare(cython.int, 5)
DEPTH_FULL = cython.declare(cython.int, 6)
SECOND_FULL = cython.declare(cython.int, 7)

# A row of `buffers`: where its events begin and end, and the bases of its header.
B_AT = cython.declare(cython.int, 0)
B_END = cython.declare(cython.int, 1)
B_TIME = cython.declare(cython.int, 2)
B_PTR = cython.declare(cython.int, 3)
B_OBJ = cython.declare(cython.int, 4)
B_METHOD = cython.declare(cython.int, 5)
B_WIDTH = cython.declare(cython.int, 6)

# A row of `stats`: what `scan` says of a buffer.
S_FIRST_TS = cython.declare(cython.int, 0)
S_LAST_TS = cython.declare(cython.int, 1)
S_EVENTS = cython.declare(cython.int, 2)
S_ENTER = cython.declare(cython.int, 3)
S_LEAVE = cython.declare(cython.int, 4)
S_EXC_LEAVE = cython.declare(cython.int, 5)
S_ALLOC = cython.declare(cython.int, 6)
S_MOVES = cython.declare(cython.int, 7)
S_OBJECTS = cython.declare(cython.int, 8)
S_ROOTS = cython.declare(cython.int, 9)
S_HITS = cython.declare(cython.int, 10)
S_BAD = cython.declare(cython.int, 11)
S_BAD_AT = cython.declare(cython.int, 12)
S_WIDTH = cython.declare(cython.int, 13)

# A row of `records`: an event that is rare enough to be kept.
R_KIND = cython.declare(cython.int, 0)
R_BUFFER = cython.declare(cython.int, 1)
R_AT = cython.declare(cython.int, 2)
R_TS = cython.declare(cython.int, 3)
R_A = cython.declare(cython.int, 4)
R_TEXT = cython.declare(cython.int, 8)
R_ITEMS_AT = cython.declare(cython.int, 9)
R_N_ITEMS = cython.declare(cython.int, 10)
R_WIDTH = cython.declare(cython.int, 11)

ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
LOW32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def wrapped(value: cython.ulonglong) -> cython.ulonglong:
    """Modulo 2^64, as C counts anyway."""
    return value if cython.compiled else value & ALL
