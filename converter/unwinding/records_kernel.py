# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Call-frame information: finds the records of a section, and the code that each is about.

Cython's pure-Python mode: also runs interpreted. Sources: DWARF 5, section 6.4; LSB Core, "Exception Frames".
"""

import cython

from traceferry.kernels.bytes import u32, u64
from traceferry.kernels.cursor import Cursor
from traceferry.kernels.functions import c_function
from traceferry.kernels.integers import ALL, LOW_32
from traceferry.kernels.leb128 import CUT


def records(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    is_debug: cython.bint,
    state: cython.longlong[::1],
    place: cython.longlong[::1],
    start: cython.longlong[::1],
    end: cython.longlong[::1],
    cie: cython.longlong[::1],
):
    """Finds records: where their length field is (place), where their contents, behind the CIE pointer, start and end,
    and the place of their CIE, -1 for a CIE itself. Stops early when the columns are full: grow them and call again.

    state: where to go on, the number of records, whether a length was wrong (1: the rest of the section is not read).
    A length of 0 is passed over: linkers leave end markers in the middle.
    """
    n_max: cython.Py_ssize_t = start.shape[0]
    if place.shape[0] != n_max or end.shape[0] != n_max or cie.shape[0] != n_max or state.shape[0] < 3:
        raise ValueError("records: an array has the wrong length")
    if state[0] < 0 or state[1] < 0:
        raise ValueError("records: an invalid state")
    size: cython.longlong = d.shape[0]
    p: cython.longlong = int(state[0])
    n: cython.Py_ssize_t = int(state[1])
    with cython.nogil:
        while n < n_max and p + 4 <= size:
            length: cython.ulonglong = u32(d, p, big)
            if length == 0:
                p += 4
                continue
            field: cython.longlong = p + 4
            width: cython.int = 4
            if length == LOW_32:
                if p + 12 > size:
                    state[2] = 1
                    break
                length = u64(d, p + 4, big)
                field = p + 12
                width = 8
            if is_debug == 0:
                width = 4
            left: cython.ulonglong = size - field
            least: cython.ulonglong = width
            if length > left or length < least:
                state[2] = 1
                break
            pointer: cython.ulonglong = u64(d, field, big) if width == 8 else u32(d, field, big)
            place[n] = p
            start[n] = field + width
            end[n] = field + length
            if is_debug:
                if pointer == (ALL if width == 8 else LOW_32):
                    cie[n] = -1
                else:
                    cie[n] = pointer if pointer < ALL >> 1 else size
            elif pointer == 0:
                cie[n] = -1
            else:
                cie[n] = field - pointer
            n += 1
            p = field + length
        if n < n_max and 0 < size - p < 4:
            state[2] = 1
    state[0] = p
    state[1] = n


@c_function
def pointer(cursor: Cursor, encoding: cython.int, word: cython.int, address: cython.ulonglong) -> cython.ulonglong:
    """A pointer of DW_EH_PE encoding, or the cursor's damage where it cannot be read. address: of the section."""
    low: cython.int = encoding & 0x0F
    width: cython.int = 0
    at: cython.ulonglong = cursor.at
    if low == 1 or low == 9:
        value: cython.ulonglong = cursor.leb(low == 9)
    else:
        if low == 0:
            width = word
        elif low & 7 == 2 or low & 7 == 3 or low & 7 == 4:
            width = 1 << (low & 7) - 1
        else:
            cursor.damage = CUT
        value = cursor.fixed_signed(width) if low & 8 else cursor.fixed(width)
    if encoding & 0xF0 == 0x10:
        value = (value + address + at) & ALL
    elif encoding & 0xF0 != 0:
        cursor.damage = CUT
    return value & LOW_32 if word == 4 else value


def ranges(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    word: cython.int,
    address: cython.ulonglong,
    encoding: cython.const[cython.int][::1],
    segment_size: cython.const[cython.int][::1],
    has_data: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    first: cython.ulonglong[::1],
    size: cython.ulonglong[::1],
    code: cython.longlong[::1],
):
    """The address range of FDEs and where their instructions start (code; -1: unreadable). encoding, segment_size and
    has_data (augmentation data is there) are those of each FDE's CIE."""
    n: cython.Py_ssize_t = start.shape[0]
    if (
        end.shape[0] != n
        or encoding.shape[0] != n
        or segment_size.shape[0] != n
        or has_data.shape[0] != n
        or first.shape[0] != n
        or size.shape[0] != n
        or code.shape[0] != n
    ):
        raise ValueError("ranges: an array has the wrong length")
    i: cython.Py_ssize_t
    cursor: Cursor = Cursor(d, big)
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            if start[i] < 0 or start[i] > end[i] or end[i] > d.shape[0] or segment_size[i] < 0:
                bad = True
                break
            cursor.begin(start[i] + segment_size[i], end[i])
            first[i] = pointer(cursor, encoding[i], word, address)
            size[i] = pointer(cursor, encoding[i] & 0x0F, word, 0)
            if has_data[i]:
                cursor.skip(cursor.uleb())
            code[i] = cursor.at if cursor.damage == 0 else -1
    if bad:
        raise ValueError("ranges: a record outside the section")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    records = plain_integers(records)
    ranges = plain_integers(ranges)
