"""The parts of a GSYM file as kernels read them: the tables, a function info, its line table, its inline tree.

Nothing is read outside the tables of the layout, nor from its infos_end on. The text of this module is compiled within
gsym_kernel.py.
"""

import cython

from traceferry.kernels.cursor import Cursor, number
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.integers import ALL, wrapped
from traceferry.kernels.leb128 import CUT

# What is damaged in a function info, by Cursor.damage; and what find(), rows() and others return of it.
DAMAGES = (
    "",
    "it ends too early",
    "a number in it does not end",
    "its offset is outside the function infos",
    "it has no name",
    "a string in it is outside the string table",
    "a file in it is outside the file table",
    "its line table has no range of lines",
    "its inlined calls are nested too deep",
    "the function infos lie over each other",
)
OUTSIDE = cython.declare(cython.int, 3)
NO_NAME = cython.declare(cython.int, 4)
NO_STRING = cython.declare(cython.int, 5)
NO_FILE = cython.declare(cython.int, 6)
NO_RANGE = cython.declare(cython.int, 7)
TOO_DEEP = cython.declare(cython.int, 8)
OVERLAP = cython.declare(cython.int, 9)

# InfoType.
LINE_TABLE = cython.declare(cython.ulonglong, 1)
INLINE_TREE = cython.declare(cython.ulonglong, 2)
MERGED_FUNCTIONS = cython.declare(cython.ulonglong, 3)
CALL_SITES = cython.declare(cython.ulonglong, 4)

# Opcodes of the line table.
END_SEQUENCE = cython.declare(cython.ulonglong, 0)
SET_FILE = cython.declare(cython.ulonglong, 1)
ADVANCE_PC = cython.declare(cython.ulonglong, 2)
ADVANCE_LINE = cython.declare(cython.ulonglong, 3)
FIRST_SPECIAL = cython.declare(cython.ulonglong, 4)

TOP = cython.declare(cython.ulonglong, 0x8000000000000000)
LOW32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
MAX_LINE = cython.declare(cython.ulonglong, 0x7FFFFFFF)
# Inlined calls in each other.
MAX_DEPTH = cython.declare(cython.ulonglong, 128)
# Infos that lie over each other could otherwise be decoded without an end; a writer may let a few be the same.
MAX_SPENT = cython.declare(cython.ulonglong, 16)


@c_inline
def line_of(line: cython.ulonglong) -> cython.int:
    """0 is unknown, as is what a signed number cannot hold."""
    return cython.cast(cython.int, line) if line <= MAX_LINE else 0


@cython.final
@cython.cclass
class File:
    """The layout of a file, whose fields layout.py describes, and its tables. spent: bytes of infos decoded so far."""

    data: cython.const[cython.uchar][::1]
    big: cython.bint
    base: cython.ulonglong
    addresses: cython.ulonglong
    address_size: cython.ulonglong
    n_addresses: cython.ulonglong
    offsets: cython.ulonglong
    offset_size: cython.ulonglong
    infos: cython.ulonglong
    infos_end: cython.ulonglong
    string_size: cython.ulonglong
    n_strings: cython.ulonglong
    files: cython.ulonglong
    n_files: cython.ulonglong
    spent: cython.ulonglong

    def __init__(self, data: cython.const[cython.uchar][::1], layout: object):
        """Raises ValueError where a table is not inside the data."""
        length: cython.ulonglong = data.shape[0]
        self.data = data
        self.big = layout.big
        self.base = layout.base
        self.addresses = layout.addresses
        self.address_size = layout.address_size
        self.n_addresses = layout.n_addresses
        self.offsets = layout.offsets
        self.offset_size = layout.offset_size
        self.infos = layout.infos
        self.infos_end = layout.infos_end
        self.string_size = layout.string_size
        self.n_strings = layout.n_strings
        self.files = layout.files
        self.n_files = layout.n_files
        self.spent = 0
        if not (
            self.infos_end <= length
            and self.infos <= length
            and 1 <= self.address_size <= 8
            and 1 <= self.offset_size <= 8
            and 1 <= self.string_size <= 8
            and self.is_inside(self.addresses, self.n_addresses, self.address_size)
            and self.is_inside(self.offsets, self.n_addresses, self.offset_size)
            and self.is_inside(self.files, self.n_files, self.string_size * 2)
        ):
            raise ValueError("a table of the layout is outside the data")

    @c_function
    def is_inside(self, at: cython.ulonglong, n: cython.ulonglong, size: cython.ulonglong) -> cython.bint:
        length: cython.ulonglong = self.data.shape[0]
        return at <= length and n <= length and n * size <= length - at

    @c_inline
    def start_of(self, entry: cython.ulonglong) -> cython.ulonglong:
        """Of a function, less the base address."""
        return number(self.data, self.addresses + entry * self.address_size, self.address_size, self.big)

    @c_function
    def first_from(self, offset: cython.ulonglong) -> cython.ulonglong:
        """The first entry of the address table that is not below `offset`."""
        low: cython.ulonglong = 0
        high: cython.ulonglong = self.n_addresses
        while low < high:
            middle: cython.ulonglong = (low + high) // 2
            if self.start_of(middle) < offset:
                low = middle + 1
            else:
                high = middle
        return low

    @c_function
    def first_after(self, offset: cython.ulonglong) -> cython.ulonglong:
        return self.n_addresses if offset == ALL else self.first_from(offset + 1)

    @c_inline
    def place_of_info(self, entry: cython.ulonglong) -> cython.ulonglong:
        """Where the offset of an entry's function info stands."""
        return self.offsets + entry * self.offset_size

    @c_function
    def info_of(self, entry: cython.ulonglong) -> cython.longlong:
        """Where the function info of an entry begins; -1: outside."""
        offset: cython.ulonglong = number(self.data, self.place_of_info(entry), self.offset_size, self.big)
        end: cython.ulonglong = self.infos_end
        if end < 4 or self.infos > end - 4 or offset > end - 4 - self.infos:
            return -1
        return cython.cast(cython.longlong, self.infos + offset)

    @c_inline
    def has_path(self, file: cython.ulonglong) -> cython.bint:
        """Whether a file of the file table has a directory or a name."""
        at: cython.ulonglong = self.files + file * self.string_size * 2
        return (
            number(self.data, at, self.string_size, self.big) != 0
            or number(self.data, at + self.string_size, self.string_size, self.big) != 0
        )


@cython.final
@cython.cclass
class Info:
    """A function info: its fields, where it ends, and where the data of each type begins and ends, 0 without any."""

    file: File
    cursor: Cursor
    size: cython.ulonglong
    name: cython.ulonglong
    end: cython.ulonglong
    lines: cython.ulonglong
    lines_end: cython.ulonglong
    inlines: cython.ulonglong
    inlines_end: cython.ulonglong
    merged: cython.ulonglong
    merged_end: cython.ulonglong
    call_sites: cython.ulonglong
    call_sites_end: cython.ulonglong

    def __init__(self, file: File):
        self.file = file
        self.cursor = Cursor(file.data, file.big)

    @c_function
    def read(self, at: cython.ulonglong) -> cython.int:
        """The one at `at`. Returns what is damaged, 0: nothing."""
        self.cursor.begin(at, self.file.infos_end)
        self.lines = self.lines_end = self.inlines = self.inlines_end = 0
        self.merged = self.merged_end = self.call_sites = self.call_sites_end = 0
        self.size = self.cursor.fixed(4)
        self.name = self.cursor.fixed(self.file.string_size)
        if self.cursor.damage == 0 and self.name == 0:
            self.cursor.damage = NO_NAME
        elif self.cursor.damage == 0 and self.name >= self.file.n_strings:
            self.cursor.damage = NO_STRING
        while self.cursor.damage == 0:
            type_: cython.ulonglong = self.cursor.fixed(4)
            length: cython.ulonglong = self.cursor.fixed(4)
            if self.cursor.damage != 0 or length > self.cursor.end - self.cursor.at:
                self.cursor.damage = CUT
                break
            if type_ == LINE_TABLE:
                self.lines = self.cursor.at
                self.lines_end = self.cursor.at + length
            elif type_ == INLINE_TREE:
                self.inlines = self.cursor.at
                self.inlines_end = self.cursor.at + length
            elif type_ == MERGED_FUNCTIONS:
                self.merged = self.cursor.at
                self.merged_end = self.cursor.at + length
            elif type_ == CALL_SITES:
                self.call_sites = self.cursor.at
                self.call_sites_end = self.cursor.at + length
            self.cursor.at += length
            if type_ == 0:
                self.end = self.cursor.at
                break
        if self.cursor.damage == 0:
            self.file.spent += self.end - at
            if self.file.spent // MAX_SPENT > cython.cast(cython.ulonglong, self.file.data.shape[0]):
                self.cursor.damage = OVERLAP
        return self.cursor.damage


@cython.final
@cython.cclass
class Rows:
    """The rows of a line table, one after the other. min_delta, line_range: what its special opcodes mean."""

    cursor: Cursor
    n_files: cython.ulonglong
    address: cython.ulonglong
    file: cython.ulonglong
    line: cython.ulonglong
    min_delta: cython.ulonglong
    line_range: cython.ulonglong

    def __init__(self, file: File):
        self.cursor = Cursor(file.data, file.big)
        self.n_files = file.n_files

    @c_function
    def begin(self, at: cython.ulonglong, end: cython.ulonglong, start: cython.ulonglong) -> cython.void:
        """The table from `at` to `end`, of a function that starts at `start`."""
        self.cursor.begin(at, end)
        self.min_delta = self.cursor.sleb()
        max_delta: cython.ulonglong = self.cursor.sleb()
        self.line_range = wrapped(max_delta - self.min_delta + 1)
        self.line = self.cursor.uleb() & LOW32
        self.file = 1
        self.address = start

    @c_inline
    def next(self) -> cython.bint:
        """Goes on to the next row. False: there is none, or cursor.damage says why not."""
        while self.cursor.damage == 0:
            opcode: cython.ulonglong = self.cursor.fixed(1)
            if opcode == END_SEQUENCE:
                return False
            if opcode == SET_FILE:
                self.file = self.cursor.uleb() & LOW32
            elif opcode == ADVANCE_LINE:
                self.line = wrapped(self.line + self.cursor.sleb()) & LOW32
            else:
                if opcode == ADVANCE_PC:
                    self.address = wrapped(self.address + self.cursor.uleb())
                elif self.line_range == 0 or self.line_range >= TOP:
                    self.cursor.damage = NO_RANGE
                else:
                    opcode -= FIRST_SPECIAL
                    self.line = wrapped(self.line + self.min_delta + opcode % self.line_range) & LOW32
                    self.address = wrapped(self.address + opcode // self.line_range)
                if self.cursor.damage == 0 and self.file >= self.n_files:
                    self.cursor.damage = NO_FILE
                return self.cursor.damage == 0
        return False


@cython.final
@cython.cclass
class Nodes:
    """The nodes of an inline tree, one after the other, parents before their children, and the ranges of each.

    number: of the node, from 1 on; parent: its number; level: how deep the node is; is_call: whether it has a call file
    and so makes a frame; first, end: its range that was read; n_ranges: how many are left.
    """

    file: File
    cursor: Cursor
    number: cython.ulonglong
    parent: cython.ulonglong
    level: cython.ulonglong
    name: cython.ulonglong
    call_file: cython.ulonglong
    call_line: cython.ulonglong
    is_call: cython.bint
    n_ranges: cython.ulonglong
    first: cython.ulonglong
    end: cython.ulonglong
    # Where the next node begins, and what the ranges of this one count from.
    node_end: cython.ulonglong
    origin: cython.ulonglong
    # The open lists of siblings, at most MAX_DEPTH and the root's: how many, what the ranges in each count from, the
    # number of their parent.
    depth: cython.ulonglong
    origins: cython.ulonglong[129]
    parents: cython.ulonglong[129]

    def __init__(self, file: File):
        self.file = file
        self.cursor = Cursor(file.data, file.big)
        if not cython.compiled:
            self.origins = [0] * (MAX_DEPTH + 1)
            self.parents = [0] * (MAX_DEPTH + 1)

    @c_function
    def begin(self, at: cython.ulonglong, end: cython.ulonglong, start: cython.ulonglong) -> cython.void:
        """The tree from `at` to `end`, of a function that starts at `start`."""
        self.cursor.begin(at, end)
        self.node_end = at
        self.number = 0
        self.depth = 0
        self.origins[0] = start
        self.parents[0] = 0

    @c_function
    def next(self) -> cython.bint:
        """Goes on to the next node, before its ranges. False: there is none, or cursor.damage says why not."""
        if self.number > 0 and self.depth == 0:
            return False
        self.cursor.at = self.node_end
        n: cython.ulonglong = self.cursor.uleb()
        while n == 0 and self.cursor.damage == 0:
            if self.depth <= 1:
                return False
            self.depth -= 1
            n = self.cursor.uleb()
        if self.cursor.damage == 0 and n > (self.cursor.end - self.cursor.at) // 2:
            self.cursor.damage = CUT
        if self.cursor.damage != 0:
            return False
        level: cython.ulonglong = self.depth
        self.level = level
        self.origin = self.origins[level]
        self.parent = self.parents[level]
        self.n_ranges = n
        self.number += 1
        ranges_at: cython.ulonglong = self.cursor.at
        first: cython.ulonglong = wrapped(self.origin + self.cursor.uleb())
        self.cursor.uleb()
        while n > 1 and self.cursor.damage == 0:
            self.cursor.uleb()
            self.cursor.uleb()
            n -= 1
        has_children: cython.bint = self.cursor.fixed(1) != 0
        self.name = self.cursor.fixed(self.file.string_size)
        self.call_file = self.cursor.uleb()
        self.call_line = self.cursor.uleb()
        self.node_end = self.cursor.at
        self.cursor.at = ranges_at
        if self.cursor.damage != 0:
            return False
        if self.name >= self.file.n_strings:
            self.cursor.damage = NO_STRING
        elif self.call_file >= self.file.n_files:
            self.cursor.damage = NO_FILE
        elif has_children and level >= MAX_DEPTH:
            self.cursor.damage = TOO_DEEP
        else:
            self.is_call = self.file.has_path(self.call_file)
            if has_children:
                self.depth = level + 1
                self.origins[level + 1] = first
                self.parents[level + 1] = self.number
        return self.cursor.damage == 0

    @c_inline
    def next_range(self) -> cython.bint:
        """Reads the node's next range: its first address and the one behind it."""
        if self.n_ranges == 0:
            return False
        self.n_ranges -= 1
        self.first = wrapped(self.origin + self.cursor.uleb())
        self.end = wrapped(self.first + self.cursor.uleb())
        if self.end < self.first:
            self.end = ALL
        return True
