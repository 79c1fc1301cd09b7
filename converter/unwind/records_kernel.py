# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Call-frame information: finds the records of a section, and the code that each is about.

Cython's pure-Python mode: also runs interpreted. Sources: DWARF 5, section 6.4; LSB Core, "Exception Frames".
"""

import cython

from traceferry.kernels.bytes import u16, u32, u64
from traceferry.kernels.leb128 import sleb, uleb

CFI_ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
CIE_64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
CIE_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)


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
    room: cython.Py_ssize_t = start.shape[0]
    if place.shape[0] != room or end.shape[0] != room or cie.shape[0] != room or state.shape[0] < 3:
        raise ValueError("records: an array has the wrong length")
    if state[0] < 0 or state[1] < 0:
        raise ValueError("records: an invalid state")
    size: cython.longlong = d.shape[0]
    p: cython.longlong = int(state[0])
    n: cython.Py_ssize_t = int(state[1])
    length: cython.ulonglong
    field: cython.longlong
    pointer: cython.ulonglong
    left: cython.ulonglong
    least: cython.ulonglong
    width: cython.int
    with cython.nogil:
        while n < room and p + 4 <= size:
            length = u32(d, p, big)
            if length == 0:
                p += 4
                continue
            field = p + 4
            width = 4
            if length == CIE_32:
                if p + 12 > size:
                    state[2] = 1
                    break
                length = u64(d, p + 4, big)
                field = p + 12
                width = 8
            if is_debug == 0:
                width = 4
            left = size - field
            least = width
            if length > left or length < least:
                state[2] = 1
                break
            pointer = u64(d, field, big) if width == 8 else u32(d, field, big)
            place[n] = p
            start[n] = field + width
            end[n] = field + length
            if is_debug:
                if pointer == (CIE_64 if width == 8 else CIE_32):
                    cie[n] = -1
                else:
                    cie[n] = pointer if pointer < CIE_64 >> 1 else size
            elif pointer == 0:
                cie[n] = -1
            else:
                cie[n] = field - pointer
            n += 1
            p = field + length
        if n < room and 0 < size - p < 4:
            state[2] = 1
    state[0] = p
    state[1] = n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def pointer_at(
    d: cython.const[cython.uchar][::1],
    at: cython.longlong[::1],
    end: cython.longlong,
    encoding: cython.int,
    word: cython.int,
    big: cython.bint,
    address: cython.ulonglong,
) -> cython.ulonglong:
    """A pointer of DW_EH_PE encoding, at[0] moved past it, or past `end` where it cannot be read. address: of d[0]."""
    p: cython.longlong = at[0]
    low: cython.int = encoding & 0x0F
    width: cython.int = 0
    value: cython.ulonglong = 0
    if low == 1:
        value = uleb(d, at, end)
    elif low == 9:
        value = sleb(d, at, end)
    else:
        if low == 0:
            width = word
        elif low == 2 or low == 10:
            width = 2
        elif low == 3 or low == 11:
            width = 4
        elif low == 4 or low == 12:
            width = 8
        if width == 0 or p + width > end:
            at[0] = end + 1
            return 0
        at[0] = p + width
        if width == 2:
            value = u16(d, p, big)
            if low == 10 and value >> 15:
                value |= CFI_ALL << 16 & CFI_ALL
        elif width == 4:
            value = u32(d, p, big)
            if low == 11 and value >> 31:
                value |= CFI_ALL << 32 & CFI_ALL
        else:
            value = u64(d, p, big)
    at_address: cython.ulonglong = p
    if encoding & 0xF0 == 0x10:
        value = (value + address + at_address) & CFI_ALL
    elif encoding & 0xF0 != 0:
        at[0] = end + 1
        return 0
    return value & CIE_32 if word == 4 else value


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
    at: cython.longlong[::1],
):
    """The address range of FDEs and where their instructions start (code; -1: unreadable). encoding, segment_size and
    has_data (augmentation data is there) are those of each FDE's CIE. at: scratch, 1 long."""
    n: cython.Py_ssize_t = start.shape[0]
    if (
        end.shape[0] != n
        or encoding.shape[0] != n
        or segment_size.shape[0] != n
        or has_data.shape[0] != n
        or first.shape[0] != n
        or size.shape[0] != n
        or code.shape[0] != n
        or at.shape[0] < 1
    ):
        raise ValueError("ranges: an array has the wrong length")
    i: cython.Py_ssize_t
    stop: cython.longlong
    length: cython.ulonglong
    left: cython.ulonglong
    bad: cython.bint = False
    with cython.nogil:
        for i in range(n):
            stop = end[i]
            code[i] = -1
            first[i] = 0
            size[i] = 0
            if start[i] < 0 or start[i] > stop or stop > d.shape[0] or segment_size[i] < 0:
                bad = True
                break
            at[0] = start[i] + segment_size[i]
            if at[0] > stop:
                continue
            first[i] = pointer_at(d, at, stop, encoding[i], word, big, address)
            if at[0] > stop:
                continue
            size[i] = pointer_at(d, at, stop, encoding[i] & 0x0F, word, big, 0)
            if at[0] > stop:
                continue
            if has_data[i]:
                length = uleb(d, at, stop)
                if at[0] > stop:
                    continue
                left = stop - at[0]
                if length > left:
                    continue
                at[0] += length
            code[i] = at[0]
    if bad:
        raise ValueError("ranges: a record outside the section")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    records = plain_integers(records)
    ranges = plain_integers(ranges)
