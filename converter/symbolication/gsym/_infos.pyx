"""Decodes the function infos of GSYM files: what is at addresses, line tables, inline trees.

Nothing is read outside the data, nor from the end on that is given with an info.
"""

import numpy as np

from traceferry.native.arrays import doubled
from traceferry.symbolication.gsym.layout import DamagedInfoError

cimport cython
from libc.stdint cimport INT32_MAX, UINT32_MAX, UINT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from traceferry.native.cursor cimport Cursor
from traceferry.native.leb128 cimport CUT
from traceferry.native.search cimport first_from

# What is damaged in a function info: CUT and ENDLESS of leb128.pxd, or one of these.
cdef enum:
    OUTSIDE = 3
    NO_NAME
    NO_STRING
    NO_FILE
    NO_RANGE
    TOO_DEEP
    OVERLAP

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
# Of these, by which Python code tells them apart.
IS_CUT, IS_OUTSIDE = CUT, OUTSIDE

# The values of layout.InfoType.
cdef enum:
    END_OF_INFO
    LINE_TABLE
    INLINE_TREE
    MERGED_FUNCTIONS
    CALL_SITES

# Opcodes of the line table.
cdef enum:
    END_SEQUENCE
    SET_FILE
    ADVANCE_PC
    ADVANCE_LINE
    FIRST_SPECIAL

cdef enum:
    # Inlined calls in each other.
    MAX_DEPTH = 128
    # Infos that lie over each other could otherwise be decoded without an end; a writer may let a few be the same.
    MAX_SPENT = 16


cdef inline int32_t line_of(uint64_t line) noexcept nogil:
    """Returns 0, which is unknown, also for what a signed number cannot hold."""
    return <int32_t>line if line <= INT32_MAX else 0


@cython.final
cdef class Decoder:
    """The infos of a file, for one pass through it: how many bytes it decodes is bounded. big: the order of bytes;
    offset_size: of a string's offset, in bytes, which is below n_strings; has_path: whether a file has one."""

    cdef const uint8_t[::1] data
    cdef bint big
    cdef uint64_t offset_size
    cdef uint64_t n_strings
    cdef uint64_t n_files
    cdef const uint8_t[::1] has_path
    # Bytes of infos that were decoded.
    cdef uint64_t spent

    def __cinit__(
        self, const uint8_t[::1] data, bint big, uint64_t offset_size, uint64_t n_strings,
        const uint8_t[::1] has_path
    ):
        self.data = data
        self.big = big
        self.offset_size = offset_size
        self.n_strings = n_strings
        self.n_files = has_path.shape[0]
        self.has_path = has_path

    def info(self, uint64_t at, uint64_t end):
        """Returns the function info at `at`, of which nothing is read from `end` on; its `damage` may say that it is
        not to be used."""
        if end > <uint64_t>self.data.shape[0]:
            raise ValueError("info: its end is outside the data")
        cdef Info info = Info(self)
        info.read(at, end)
        return info


cdef undamaged(list found, int damage):
    if damage != 0:
        raise DamagedInfoError(DAMAGES[damage])
    return found


@cython.final
cdef class Info:
    """A function info: u32 size, the name's string offset; then for each type of data u32 type, u32 length and that
    many bytes, until type 0. Infos need not be aligned. damage: of DAMAGES; unless it is 0, nothing else means
    anything."""

    cdef Decoder file
    cdef Cursor cursor
    cdef readonly int damage
    cdef readonly uint64_t size
    cdef readonly uint64_t name
    # Where the data of each type begins and ends, 0 without any.
    cdef uint64_t[CALL_SITES + 1] begins
    cdef uint64_t[CALL_SITES + 1] ends

    def __cinit__(self, Decoder file not None):
        self.file = file
        self.cursor = Cursor(file.data, file.big)

    cdef int read(self, uint64_t at, uint64_t end) noexcept nogil:
        """Reads the one at `at`. Returns the damage."""
        cdef uint64_t part, length
        cdef uint64_t type_ = LINE_TABLE
        self.begins[:] = [0, 0, 0, 0, 0]
        self.ends[:] = [0, 0, 0, 0, 0]
        self.cursor.begin(at, end)
        self.size = self.cursor.fixed(4)
        self.name = self.cursor.fixed(self.file.offset_size)
        if self.cursor.damage == 0 and self.name == 0:
            self.cursor.damage = NO_NAME
        elif self.cursor.damage == 0 and self.name >= self.file.n_strings:
            self.cursor.damage = NO_STRING
        while self.cursor.damage == 0 and type_ != END_OF_INFO:
            type_ = self.cursor.fixed(4)
            length = self.cursor.fixed(4)
            part = self.cursor.at
            self.cursor.skip(length)
            if self.cursor.damage == 0 and type_ <= CALL_SITES:
                self.begins[type_], self.ends[type_] = part, self.cursor.at
        if self.cursor.damage == 0:
            self.file.spent += self.cursor.at - at
            if self.file.spent // MAX_SPENT > <uint64_t>self.file.data.shape[0]:
                self.cursor.damage = OVERLAP
        self.damage = self.cursor.damage
        return self.damage

    def part(self, uint64_t type_):
        """Returns where the data of an InfoType begins and ends, equal without any."""
        if type_ > CALL_SITES:
            raise ValueError("part: the type is unknown")
        return self.begins[type_], self.ends[type_]

    @property
    def lengths(self):
        """How many bytes the data of each InfoType has."""
        return [self.ends[type_] - self.begins[type_] for type_ in range(CALL_SITES + 1)]

    def rows(self, uint64_t start):
        """Returns the line table of a function that starts at `start`: (address, number of the file, line) of each row.
        Raises DamagedInfoError."""
        rows = []
        cdef _LineTable table = _LineTable(self.file)
        if table.begin(self, start):
            while table.next():
                rows.append((table.address, <uint32_t>table.file, line_of(table.line)))
        return undamaged(rows, table.cursor.damage)

    def nodes(self, uint64_t start):
        """Returns the inline tree of a function that starts at `start`, parents before their children: for each node
        how deep it is, its name, call file, call line, and its ranges. Raises DamagedInfoError."""
        nodes = []
        cdef _InlineTree tree = _InlineTree(self.file)
        if tree.begin(self, start):
            while tree.next():
                ranges = []
                while tree.next_range():
                    ranges.append((tree.first, tree.end))
                nodes.append((tree.level, tree.name, <uint32_t>tree.call_file, line_of(tree.call_line), tuple(ranges)))
        return undamaged(nodes, tree.cursor.damage)


@cython.final
cdef class _LineTable:
    """The rows of a line table, one after the other. min_delta, line_range: what its special opcodes mean."""

    cdef Cursor cursor
    cdef uint64_t n_files
    cdef uint64_t address
    cdef uint64_t file
    cdef uint64_t line
    cdef uint64_t min_delta
    cdef uint64_t line_range

    def __cinit__(self, Decoder file not None):
        self.cursor = Cursor(file.data, file.big)
        self.n_files = file.n_files

    cdef bint begin(self, Info info, uint64_t start) noexcept nogil:
        """Begins the table of a function that starts at `start`. Returns whether it has one."""
        cdef uint64_t max_delta
        self.cursor.begin(info.begins[LINE_TABLE], info.ends[LINE_TABLE])
        if self.cursor.at == self.cursor.end:
            return False
        self.min_delta = self.cursor.sleb()
        max_delta = self.cursor.sleb()
        self.line_range = max_delta - self.min_delta + 1
        self.line = self.cursor.uleb() & UINT32_MAX
        self.file = 1
        self.address = start
        return True

    cdef inline bint next(self) noexcept nogil:
        """Goes on to the next row. Returns False where there is none, or cursor.damage says why not."""
        cdef uint64_t opcode
        while self.cursor.damage == 0:
            opcode = self.cursor.fixed(1)
            if opcode == END_SEQUENCE:
                return False
            if opcode == SET_FILE:
                self.file = self.cursor.uleb() & UINT32_MAX
            elif opcode == ADVANCE_LINE:
                self.line = (self.line + self.cursor.sleb()) & UINT32_MAX
            else:
                if opcode == ADVANCE_PC:
                    self.address += self.cursor.uleb()
                elif self.line_range == 0 or self.line_range >> 63:
                    self.cursor.damage = NO_RANGE
                else:
                    opcode -= FIRST_SPECIAL
                    self.line = (self.line + self.min_delta + opcode % self.line_range) & UINT32_MAX
                    self.address += opcode // self.line_range
                if self.cursor.damage == 0 and self.file >= self.n_files:
                    self.cursor.damage = NO_FILE
                return self.cursor.damage == 0
        return False


@cython.final
cdef class _InlineTree:
    """The nodes of an inline tree, one after the other, parents before their children, and the ranges of each.

    number: of the node, from 1 on; parent: its number; level: how deep the node is; first, end: its range that was
    read; n_ranges: how many are left.
    """

    cdef Decoder file
    cdef Cursor cursor
    cdef uint64_t number
    cdef uint64_t parent
    cdef uint64_t level
    cdef uint64_t name
    cdef uint64_t call_file
    cdef uint64_t call_line
    cdef uint64_t n_ranges
    cdef uint64_t first
    cdef uint64_t end
    # Where the next node begins, and what the ranges of this one count from.
    cdef uint64_t node_end
    cdef uint64_t origin
    # The open lists of siblings: how many, what the ranges in each count from, the number of their parent.
    cdef uint64_t depth
    cdef uint64_t[MAX_DEPTH + 1] origins
    cdef uint64_t[MAX_DEPTH + 1] parents

    def __cinit__(self, Decoder file not None):
        self.file = file
        self.cursor = Cursor(file.data, file.big)

    cdef bint begin(self, Info info, uint64_t start) noexcept nogil:
        """Begins the tree of a function that starts at `start`. Returns whether it has one."""
        self.cursor.begin(info.begins[INLINE_TREE], info.ends[INLINE_TREE])
        self.node_end = self.cursor.at
        self.number = self.depth = 0
        self.origins[0] = start
        self.parents[0] = 0
        return self.cursor.at != self.cursor.end

    cdef uint64_t next_ranges(self) noexcept nogil:
        """Goes on behind the number of the next node's ranges. Returns it; 0 where there is no node, or self.cursor.damage
        says why not. Lists of siblings end with a 0."""
        cdef uint64_t n
        if self.number > 0 and self.depth == 0:
            return 0
        self.cursor.at = self.node_end
        n = self.cursor.uleb()
        while n == 0 and self.cursor.damage == 0:
            if self.depth <= 1:
                return 0
            self.depth -= 1
            n = self.cursor.uleb()
        if self.cursor.damage == 0 and n > (self.cursor.end - self.cursor.at) // 2:
            self.cursor.damage = CUT
        return n if self.cursor.damage == 0 else 0

    cdef bint next(self) noexcept nogil:
        """Goes on to the next node, before its ranges. Returns False where there is none, or cursor.damage says why
        not."""
        cdef uint64_t n = self.next_ranges()
        cdef uint64_t level = self.depth
        cdef uint64_t ranges_at = self.cursor.at
        cdef uint64_t first
        cdef bint has_children
        if n == 0:
            return False
        self.level = level
        self.origin = self.origins[level]
        self.parent = self.parents[level]
        self.n_ranges = n
        self.number += 1
        first = self.origin + self.cursor.uleb()
        self.cursor.uleb()
        while n > 1 and self.cursor.damage == 0:
            self.cursor.uleb()
            self.cursor.uleb()
            n -= 1
        has_children = self.cursor.fixed(1) != 0
        self.name = self.cursor.fixed(self.file.offset_size)
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
        elif has_children:
            self.depth = level + 1
            self.origins[level + 1] = first
            self.parents[level + 1] = self.number
        return self.cursor.damage == 0

    cdef inline bint next_range(self) noexcept nogil:
        """Reads the node's next range: its first address and the one behind it."""
        if self.n_ranges == 0:
            return False
        self.n_ranges -= 1
        self.first = self.origin + self.cursor.uleb()
        self.end = self.first + self.cursor.uleb()
        if self.end < self.first:
            self.end = UINT64_MAX
        return True


# ---------------------------------------------------------------- look-ups

# What is known of an address: the size and name of its function, the file and line there; file 0: there is none.
cdef struct Place:
    uint64_t size
    uint64_t name
    uint32_t file
    int32_t line
    int64_t n_calls
    # The innermost node that holds the address, as far as nodes were read. A node holds an address only if its parent
    # does and no sibling before it.
    uint64_t node

# What is inlined at the nth address, and where it is called; depth: how many calls of this address are around it.
cdef struct Call:
    int64_t nth
    int64_t depth
    uint64_t name
    uint32_t file
    int32_t line

PLACE = np.dtype([("size", "u8"), ("name", "u8"), ("file", "u4"), ("line", "i4"), ("n_calls", "i8"), ("node", "u8")])
CALL = np.dtype([("nth", "i8"), ("depth", "i8"), ("name", "u8"), ("file", "u4"), ("line", "i4")])


@cython.final
cdef class Lookup:
    """What is at sorted addresses, of which is known where their infos and functions begin: each function is decoded
    once, nothing from `end` on, and its addresses are walked through with it. damage: what is damaged is set; neither
    there nor where the info is -1 anything is known.

    calls: what is inlined at the addresses, only where there is a line; a call without a path makes no frame."""

    cdef readonly object places
    cdef object table_of_calls
    cdef Py_ssize_t n_calls
    cdef Info info
    cdef _LineTable table
    cdef _InlineTree tree
    cdef const uint64_t[::1] addresses
    cdef const int64_t[::1] infos
    cdef const uint64_t[::1] starts
    cdef uint8_t[::1] damage
    cdef Place[::1] place
    cdef Call[::1] call

    def __cinit__(
        self, Decoder file not None, const uint64_t[::1] addresses, const int64_t[::1] infos,
        const uint64_t[::1] starts, uint8_t[::1] damage, uint64_t end
    ):
        cdef Py_ssize_t n = addresses.shape[0]
        if infos.shape[0] != n or starts.shape[0] != n or damage.shape[0] != n:
            raise ValueError("Lookup: an array has the wrong length")
        if end > <uint64_t>file.data.shape[0]:
            raise ValueError("Lookup: the end is outside the data")
        self.info, self.table, self.tree = Info(file), _LineTable(file), _InlineTree(file)
        self.addresses, self.infos, self.starts, self.damage = addresses, infos, starts, damage
        self.place = self.places = np.zeros(n, PLACE)
        self.call = self.table_of_calls = np.empty(1 << 10, CALL)
        with nogil:
            self.read_all(end)

    @property
    def calls(self):
        return self.table_of_calls[: self.n_calls]

    cdef int read_all(self, uint64_t end) except -1 nogil:
        cdef Py_ssize_t last, k, n_before
        cdef Py_ssize_t i = 0
        cdef int bad
        while i < self.addresses.shape[0]:
            last = self.end_of_function(i)
            if self.infos[i] >= 0 and self.damage[i] == 0:
                n_before = self.n_calls
                bad = self.info.read(<uint64_t>self.infos[i], end)
                if bad == 0:
                    bad = self.read_function(i, last)
                if bad != 0:
                    self.n_calls = n_before
                for k in range(i, last):
                    self.damage[k] = bad
                    self.place[k].size = self.info.size
                    self.place[k].name = self.info.name
            i = last
        return 0

    cdef Py_ssize_t end_of_function(self, Py_ssize_t i) noexcept nogil:
        """Returns how far the addresses are of the function that the i-th is of."""
        cdef Py_ssize_t end = i + 1
        while end < self.infos.shape[0] and self.infos[end] == self.infos[i] and self.starts[end] == self.starts[i]:
            end += 1
        return end

    cdef int read_function(self, Py_ssize_t i, Py_ssize_t end) except -1 nogil:
        """Finds lines and inlined calls of the addresses from i to `end`, which are of one function. Returns what is
        damaged."""
        cdef int bad = 0
        if self.table.begin(self.info, self.starts[i]):
            bad = self.find_lines(i, end)
            if bad == 0 and self.tree.begin(self.info, self.starts[i]):
                bad = self.find_calls(i, end)
        return bad

    cdef int find_lines(self, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
        """Finds the row of each address from i to `end`, the last before one that is behind the address. Returns what
        is damaged."""
        cdef uint32_t file = 0
        cdef int32_t line = 0
        cdef bint has_row = True
        while i < end and has_row:
            has_row = self.table.next()
            while i < end and (not has_row or self.addresses[i] < self.table.address):
                self.place[i].file = file
                self.place[i].line = line
                # What has no row is in no node.
                self.place[i].node = 0 if file != 0 else UINT64_MAX
                i += 1
            file = <uint32_t>self.table.file
            line = line_of(self.table.line)
        return self.table.cursor.damage

    cdef int find_calls(self, Py_ssize_t begin, Py_ssize_t end) except -1 nogil:
        """Adds the calls that are inlined around each address from `begin` to `end`. Returns what is damaged."""
        cdef Py_ssize_t i
        while self.tree.next():
            while self.tree.next_range():
                i = first_from(self.addresses, begin, end, self.tree.first)
                while i < end and self.addresses[i] < self.tree.end:
                    if self.place[i].node == self.tree.parent:
                        self.place[i].node = self.tree.number
                        if self.tree.file.has_path[self.tree.call_file]:
                            self.add_call(i)
                    i += 1
        return self.tree.cursor.damage

    cdef int add_call(self, Py_ssize_t i) except -1 nogil:
        if self.n_calls == self.call.shape[0]:
            with gil:
                self.call = self.table_of_calls = doubled(self.table_of_calls)
        self.call[self.n_calls] = Call(
            i, self.place[i].n_calls, self.tree.name, <uint32_t>self.tree.call_file, line_of(self.tree.call_line)
        )
        self.n_calls += 1
        self.place[i].n_calls += 1
        return 0
