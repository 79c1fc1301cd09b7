"""Lists of SLEB128 differences that were read before, found again by their bytes: backtraces come again and again."""

import cython

from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.hashing import ALL_BITS, GOLDEN
from traceferry.kernels.integers import wrapped
from traceferry.kernels.words import load8

# Columns of a row: the first value; how many there are, 0 in a free row; the last one; the caller's number; the bytes
# in between.
FIRST = cython.declare(cython.int, 0)
COUNT_OF = cython.declare(cython.int, 1)
LAST = cython.declare(cython.int, 2)
NUMBER = cython.declare(cython.int, 3)
BYTES = cython.declare(cython.int, 4)
LIST_WIDTH = cython.declare(cython.int, 12)
# Of each of eight bytes the highest bit, and the lowest.
HIGHEST = cython.declare(cython.ulonglong, 0x8080808080808080)
LOWEST = cython.declare(cython.ulonglong, 0x0101010101010101)


@cython.final
@cython.cclass
class KnownLists:
    """rows: a power of two of rows of LIST_WIDTH, zeros at first, or none."""

    rows: cython.ulonglong[::1]
    n_rows: cython.Py_ssize_t
    # The list that was looked for last and is not known: its count, or 0, and row; where its second value begins, how
    # many words it has and the last of them.
    n_wanted: cython.longlong
    row: cython.Py_ssize_t
    at: cython.longlong
    first: cython.ulonglong
    n_words: cython.Py_ssize_t
    end: cython.ulonglong

    def __init__(self, rows: cython.ulonglong[::1]):
        self.rows = rows
        self.n_rows = rows.shape[0] // LIST_WIDTH
        self.n_wanted = 0
        if self.n_rows & (self.n_rows - 1) or rows.shape[0] != self.n_rows * LIST_WIDTH:
            raise ValueError("an array has the wrong length")

    @c_inline
    def last(self, row: cython.Py_ssize_t) -> cython.ulonglong:
        return self.rows[row + LAST]

    @c_inline
    def number(self, row: cython.Py_ssize_t) -> cython.ulonglong:
        return self.rows[row + NUMBER]

    @c_inline
    @cython.returns((cython.Py_ssize_t, cython.longlong))
    def find(self, d: cython.const[cython.uchar][::1], p: cython.longlong, n: cython.longlong, first: cython.ulonglong):
        """Of a list of n values, of which the second begins at p: where its row begins, and where it ends. There are 8
        LIST_WIDTH bytes from p on. -1: it is not known, and `remember` may be called when it has been read."""
        h: cython.ulonglong = wrapped((first ^ n) * GOLDEN)
        left: cython.longlong = n - 1
        n_words: cython.Py_ssize_t = 0
        # Each value ends with a byte below 0x80. So many words are whole, and have `left` ends less.
        while True:
            w: cython.ulonglong = load8(d, p + 8 * n_words)
            ends: cython.ulonglong = ~w & HIGHEST
            count: cython.longlong = ((ends >> 7) * LOWEST & ALL_BITS) >> 56
            if count >= left:
                break
            left -= count
            h = wrapped((h ^ w) * GOLDEN)
            h = h ^ h >> 32
            n_words += 1
            if n_words == LIST_WIDTH - BYTES - 1:
                return -1, 0
        # Of the last word the bytes up to the last end.
        while left > 1:
            ends &= ends - 1
            left -= 1
        ends = ends & (~ends + 1)
        ends = ends | (ends - 1) if left > 0 else 0
        w &= ends
        h = wrapped((h ^ w) * GOLDEN)
        row: cython.Py_ssize_t = LIST_WIDTH * ((h >> 32) & (self.n_rows - 1))
        k: cython.Py_ssize_t = n_words if self.rows[row + FIRST] == first and self.rows[row + COUNT_OF] == n else -1
        if k >= 0 and self.rows[row + BYTES + k] == w:
            while k > 0 and self.rows[row + BYTES + k - 1] == load8(d, p + 8 * (k - 1)):
                k -= 1
            if k == 0:
                return row, p + 8 * n_words + (((ends & LOWEST) * LOWEST & ALL_BITS) >> 56)
        self.n_wanted = n
        self.row = row
        self.at = p
        self.first = first
        self.n_words = n_words
        self.end = w
        return -1, 0

    @c_function
    def remember(
        self, d: cython.const[cython.uchar][::1], number: cython.longlong, last: cython.ulonglong
    ) -> cython.void:
        """The list that was looked for, if it can be found again, with a number and its last value."""
        k: cython.Py_ssize_t
        if self.n_wanted == 0:
            return
        row: cython.Py_ssize_t = self.row
        self.rows[row + FIRST] = self.first
        self.rows[row + COUNT_OF] = self.n_wanted
        self.rows[row + LAST] = last
        self.rows[row + NUMBER] = number
        for k in range(self.n_words):
            self.rows[row + BYTES + k] = load8(d, self.at + 8 * k)
        self.rows[row + BYTES + self.n_words] = self.end
