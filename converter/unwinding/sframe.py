"""SFrame: the call-frame information that GNU as writes with --gsframe, as `.debug_frame` that says the same.

It tells of each address the CFA, the return address and the frame pointer, and of no other register. Facts: binutils'
include/sframe.h and libsframe of 2.40 (version 1), 2.41 to 2.45 (2) and 2.46 (3), the SFrame specification; the
flexible entries of version 3 also after the kernel's kernel/unwind/sframe.c. Fields have the byte order of the machine:

    header: u16 magic, u8 version, u8 flags, u8 ABI, s8 fixed offset of the frame pointer from the CFA, s8 that of the
        return address (0: not fixed), u8 size of what follows the header, u32 functions, u32 rows, u32 size of rows,
        u32 offset of the functions, u32 offset of the rows, both behind the header
    function, versions 1, 2: s32 start, u32 size, u32 offset of its rows, u32 number of rows, u8 info;
        2: also u8 size of a repeated block, u16 padding
    function, version 3: s64 start, u32 size, u32 offset of its rows, where u16 number of rows, u8 info, u8 type,
        u8 size of a repeated block precede them
    info: 0 to 3 the size of a row's start (1, 2, 4 bytes), 4 whether its rows hold in each block of the repeated size,
        7 whether it is the frame of a signal
    row: start in the function, u8 info, words: signed offsets
    row's info: 0 whether the CFA is of the stack pointer, 1 to 4 the number of words, 5, 6 their size (1, 2, 4 bytes)

Words of a row: the CFA's, the return address's unless that is fixed, the frame pointer's unless that is fixed. A row
without words is that of an outermost function. In a flexible function (type 1) each offset has a word before it: bit 0
whether it is from a register, else from the CFA, bit 1 whether the value is in memory there, from bit 3 on the
register; 0 stands for one that is where it was.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from traceferry.common.errors import FormatError
from traceferry.unwinding.machine import Machine

MAGIC = 0xDEE2
HEADER, FUNCTION_1, FUNCTION_2, FUNCTION_3, ATTRIBUTES = "HBBBbbBIIIII", "iIIIB", "iIIIBBH", "qII", "HBBB"
STARTS_FROM_FIELD = 4
ROW_STARTS = {0: "B", 1: "H", 2: "I"}
WORDS = {0: "b", 1: "h", 2: "i"}
REPEATED, SIGNAL, FLEXIBLE = 0x10, 0x80, 1
OF_REGISTER, IN_MEMORY = 1, 2
# Version 1 does not tell the size of a block: it is that of an entry of x86-64's PLT (libsframe 2.40).
PLT_ENTRY = 16
# Rows that repeated blocks may become: what the sizes say is not bounded by the bytes.
MAX_REPEATED = 1 << 14

# DWARF 5, 7.24 and 7.7.1.
ADVANCE_LOC4, DEF_CFA_SF, DEF_CFA_EXPRESSION, EXPRESSION, OFFSET_EXTENDED_SF = 0x04, 0x12, 0x0F, 0x10, 0x11
UNDEFINED, SAME_VALUE, VAL_EXPRESSION, NOP = 0x07, 0x08, 0x16, 0x00
OP_DEREF, OP_PLUS, OP_CONSTS, OP_BREG0 = 0x06, 0x22, 0x11, 0x70
CIE_VERSION, CIE_ID = 3, 0xFFFFFFFF


class Place(NamedTuple):
    """The place of a value. base: a DWARF register, CFA; is_saved: whether it is in memory there, not that address."""

    base: int
    offset: int
    is_saved: bool = True


CFA = -1


class Row(NamedTuple):
    """start: from the function's; return_address, frame_pointer: None where they are what they were; cfa: None in an
    outermost function."""

    start: int
    cfa: Place | None
    return_address: Place | None = None
    frame_pointer: Place | None = None


class Function(NamedTuple):
    """start: link address; info, kind, block: as the file has them; rows_at, n_rows: where its rows are."""

    start: int
    size: int
    info: int
    kind: int
    block: int
    rows_at: int
    n_rows: int


class Header(NamedTuple):
    order: str
    version: int
    flags: int
    fixed_frame_pointer: int
    fixed_return_address: int
    n_functions: int
    functions_at: int
    rows_at: int


def debug_frame_of(data: memoryview, address: int, machine: Machine, big: bool) -> tuple[bytes, int]:
    """Returns `.debug_frame` of an SFrame section that is linked at an address, and how many functions, or 1 for all,
    cannot be read. Any bytes give some."""
    order = ">" if big else "<"
    try:
        header = _header(data, order)
    except (FormatError, struct.error):
        return b"", 1
    frames = _Frames(order, machine)
    n_bad = 0
    for nth in range(header.n_functions):
        try:
            function = _function(data, address, header, nth)
            frames.add(function, list(_rows(data, header, function, machine)))
        except (FormatError, struct.error):
            n_bad += 1
    return bytes(frames.data), n_bad


def _header(data: memoryview, order: str) -> Header:
    magic, version, flags, _, pointer, fixed, more, n, _, _, functions_at, rows_at = struct.unpack_from(
        order + HEADER, data
    )
    if magic != MAGIC or version not in (1, 2, 3):
        raise FormatError("no SFrame section of versions 1 to 3", 0)
    begin = struct.calcsize(order + HEADER) + more
    size = struct.calcsize(order + {1: FUNCTION_1, 2: FUNCTION_2, 3: FUNCTION_3}[version])
    # No more functions than have room.
    n = min(n, max(0, len(data) - begin - functions_at) // size + 1)
    return Header(order, version, flags, pointer, fixed, n, begin + functions_at, begin + rows_at)


def _function(data: memoryview, address: int, header: Header, nth: int) -> Function:
    order = header.order
    form = order + {1: FUNCTION_1, 2: FUNCTION_2, 3: FUNCTION_3}[header.version]
    at = header.functions_at + nth * struct.calcsize(form)
    start, size, rows_at, *rest = struct.unpack_from(form, data, at)
    start += address + (at if header.flags & STARTS_FROM_FIELD else 0)
    rows_at += header.rows_at
    if header.version == 3:
        n_rows, info, kind, block = struct.unpack_from(order + ATTRIBUTES, data, rows_at)
        return Function(start, size, info, kind & 0x1F, block, rows_at + struct.calcsize(order + ATTRIBUTES), n_rows)
    n_rows, info = rest[:2]
    # Bit 7 of version 1 and 2 is not used.
    block = rest[2] if header.version == 2 else PLT_ENTRY
    return Function(start, size, info & 0x7F, 0, block, rows_at, n_rows)


def _rows(data: memoryview, header: Header, function: Function, machine: Machine) -> Iterator[Row]:
    """Yields the rows of a function, those of repeated blocks for each. Raises FormatError and struct.error."""
    at, found = function.rows_at, list[Row]()
    start_form = header.order + ROW_STARTS.get(function.info & 0xF, "")
    if len(start_form) < 2 or function.kind > FLEXIBLE:
        raise FormatError("an unknown kind of SFrame function", at)
    for _ in range(function.n_rows):
        (start,) = struct.unpack_from(start_form, data, at)
        at += struct.calcsize(start_form)
        (info,) = struct.unpack_from("B", data, at)
        word, n_words = WORDS.get(info >> 5 & 3, ""), info >> 1 & 0xF
        if not word or (found and start < found[-1].start):
            raise FormatError("an SFrame row that cannot be", at)
        words = struct.unpack_from(f"{header.order}{n_words}{word}", data, at + 1)
        at += 1 + struct.calcsize(f"{header.order}{n_words}{word}")
        made = _flexible if function.kind == FLEXIBLE else _plain
        found.append(made(start, info & 1 == 1, list(words), header, machine))
    if not function.info & REPEATED:
        yield from found
        return
    if function.block == 0 or function.size // function.block * len(found) > MAX_REPEATED:
        raise FormatError("an SFrame function of too many blocks", at)
    for begin in range(0, function.size, function.block):
        for row in found:
            if row.start < min(function.block, function.size - begin):
                yield row._replace(start=begin + row.start)


def _plain(start: int, is_of_stack_pointer: bool, words: list[int], header: Header, machine: Machine) -> Row:
    if not words:
        return Row(start, None)
    cfa = Place(machine.sp if is_of_stack_pointer else machine.frame_pointer, words.pop(0), False)
    # From version 2 on, the header tells a fixed one; x86-64's is that everywhere.
    fixed = [header.fixed_return_address, header.fixed_frame_pointer]
    places = [Place(CFA, offset) if offset else Place(CFA, words.pop(0)) if words else None for offset in fixed]
    if words:
        raise FormatError("an SFrame row of too many words")
    return Row(start, cfa, *places)


def _flexible(start: int, _: bool, words: list[int], header: Header, machine: Machine) -> Row:
    if not words:
        return Row(start, None)
    fixed = (0, header.fixed_return_address, header.fixed_frame_pointer)
    places: list[Place | None] = []
    for offset in fixed:
        places.append(Place(CFA, offset) if offset else None)
        if not words:
            continue
        control = words.pop(0)
        if control == 0:
            continue
        if not words:
            raise FormatError("an SFrame row without the offset that it announces")
        # Control words are not signed; registers are small.
        base = control >> 3 & 0x1F if control & OF_REGISTER else CFA
        if base >= machine.n_registers:
            raise FormatError(f"register {base}, which the machine does not have")
        places[-1] = Place(base, words.pop(0), bool(control & IN_MEMORY))
    if words or places[0] is None or places[0].base == CFA:
        raise FormatError("an SFrame row without a CFA, or of too many words")
    return Row(start, *places)


class _Frames:
    """Writes `.debug_frame`. Offsets are not factored."""

    def __init__(self, order: str, machine: Machine) -> None:
        self.data = bytearray()
        self._order = order
        self._machine = machine
        self._word = "Q" if machine.word_size == 8 else "I"
        self._cie_of: dict[bool, int] = {}

    def add(self, function: Function, rows: list[Row]) -> None:
        """Adds a function. Raises struct.error if it is outside of memory."""
        code, at = bytearray(), 0
        for row in rows:
            if row.start > at:
                code += struct.pack(f"{self._order}BI", ADVANCE_LOC4, row.start - at)
                at = row.start
            code += self._row(row)
        place = struct.pack(f"{self._order}2{self._word}", function.start, function.size)
        self._add(self._cie(bool(function.info & SIGNAL)), place + code)

    def _cie(self, is_signal: bool) -> int:
        """Returns where the CIE is: version, augmentation, factors, column of the return address."""
        if is_signal not in self._cie_of:
            self._cie_of[is_signal] = len(self.data)
            augmentation = b"S\0" if is_signal else b"\0"
            self._add(CIE_ID, bytes([CIE_VERSION, *augmentation, 1, 1]) + _uleb(self._machine.return_column))
        return self._cie_of[is_signal]

    def _add(self, pointer: int, body: bytes) -> None:
        body += bytes([NOP]) * (-len(body) % 8 + 4)
        self.data += struct.pack(f"{self._order}II", len(body) + 4, pointer) + body

    def _row(self, row: Row) -> bytes:
        column, frame_pointer = _uleb(self._machine.return_column), _uleb(self._machine.frame_pointer)
        cfa = row.cfa or Place(self._machine.sp, 0, False)
        if cfa.is_saved:
            code = bytes([DEF_CFA_EXPRESSION]) + _block(_address(cfa) + bytes([OP_DEREF]))
        else:
            code = bytes([DEF_CFA_SF]) + _uleb(cfa.base) + _sleb(cfa.offset)
        code += bytes([UNDEFINED]) + column if row.cfa is None else _saved(column, row.return_address)
        return code + _saved(frame_pointer, row.frame_pointer)


def _saved(register: bytes, place: Place | None) -> bytes:
    if place is None:
        return bytes([SAME_VALUE]) + register
    if place.base == CFA and place.is_saved:
        return bytes([OFFSET_EXTENDED_SF]) + register + _sleb(place.offset)
    return bytes([EXPRESSION if place.is_saved else VAL_EXPRESSION]) + register + _block(_address(place))


def _address(place: Place) -> bytes:
    """Returns the expression of an address. The CFA is on the stack when that of a register begins."""
    if place.base == CFA:
        return bytes([OP_CONSTS]) + _sleb(place.offset) + bytes([OP_PLUS])
    return bytes([OP_BREG0 + place.base]) + _sleb(place.offset)


def _block(code: bytes) -> bytes:
    return _uleb(len(code)) + code


def _uleb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _sleb(value: int) -> bytes:
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value & 0x7F])
