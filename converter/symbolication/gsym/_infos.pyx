"""Decodes the function infos of GSYM files: look-ups of addresses, line tables, inline trees.

Nothing is read outside the tables of the layout, nor from its infos_end on.
"""

import numpy as np

from traceferry.symbolication.gsym.layout import DamagedInfoError

cimport cython
from libc.stdint cimport INT32_MAX, UINT32_MAX, UINT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc

from traceferry.native.bytes cimport number
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

# InfoType.
cdef enum:
    LINE_TABLE = 1
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
    """The tables of a file; the fields are those of `layout.Layout`."""

    cdef const uint8_t[::1] data
    cdef bint big
    cdef uint64_t base
    cdef uint64_t addresses
    cdef uint64_t address_size
    cdef uint64_t n_addresses
    cdef uint64_t offsets
    cdef uint64_t offset_size
    cdef uint64_t infos
    cdef uint64_t infos_end
    cdef uint64_t string_size
    cdef uint64_t n_strings
    cdef uint64_t files
    cdef uint64_t n_files
    # Bytes of infos that `info` has decoded.
    cdef uint64_t spent

    def __cinit__(self, const uint8_t[::1] data, layout):
        """Raises ValueError where a table is not inside the data."""
        cdef uint64_t length = data.shape[0]
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

    cdef bint is_inside(self, uint64_t at, uint64_t n, uint64_t size) noexcept nogil:
        cdef uint64_t length = self.data.shape[0]
        return at <= length and n <= length and n * size <= length - at

    cdef inline uint64_t start_of(self, uint64_t entry) noexcept nogil:
        """Returns the start of an entry's function, less the base address."""
        return number(self.data, self.addresses + entry * self.address_size, self.address_size, self.big)

    cdef uint64_t first_from(self, uint64_t offset) noexcept nogil:
        """Returns the first entry of the address table that is not below `offset`."""
        cdef uint64_t middle
        cdef uint64_t low = 0
        cdef uint64_t high = self.n_addresses
        while low < high:
            middle = (low + high) // 2
            if self.start_of(middle) < offset:
                low = middle + 1
            else:
                high = middle
        return low

    cdef uint64_t first_after(self, uint64_t offset) noexcept nogil:
        return self.n_addresses if offset == UINT64_MAX else self.first_from(offset + 1)

    cdef inline uint64_t offset_at(self, uint64_t entry) noexcept nogil:
        """Returns where the offset of an entry's function info stands."""
        return self.offsets + entry * self.offset_size

    cdef int64_t info_of(self, uint64_t entry) noexcept nogil:
        """Returns where the function info of an entry begins; -1: outside."""
        cdef uint64_t offset = number(self.data, self.offset_at(entry), self.offset_size, self.big)
        cdef uint64_t end = self.infos_end
        if end < 4 or self.infos > end - 4 or offset > end - 4 - self.infos:
            return -1
        return <int64_t>(self.infos + offset)

    cdef inline bint has_path(self, uint64_t file) noexcept nogil:
        """Whether a file of the file table has a directory or a name."""
        cdef uint64_t at = self.files + file * self.string_size * 2
        return (
            number(self.data, at, self.string_size, self.big) != 0
            or number(self.data, at + self.string_size, self.string_size, self.big) != 0
        )

    cdef void find_in(
        self, const uint64_t[::1] addresses, int64_t[::1] infos, uint64_t[::1] starts, uint8_t[::1] damage
    ) noexcept nogil:
        cdef Py_ssize_t i
        cdef int64_t info
        cdef uint64_t offset, size
        # Entries from `entry` to `end` start at `start`; `until` is where the next ones do.
        cdef uint64_t entry = 0
        cdef uint64_t end = 0
        cdef uint64_t start = 0
        cdef uint64_t until = 0
        for i in range(addresses.shape[0]):
            infos[i] = -1
            starts[i] = 0
            damage[i] = 0
            if addresses[i] < self.base:
                continue
            offset = addresses[i] - self.base
            if offset >= until and end < self.n_addresses:
                end = self.first_after(offset)
                until = self.start_of(end) if end < self.n_addresses else UINT64_MAX
                if end > 0:
                    start = self.start_of(end - 1)
                    entry = self.first_from(start)
            while entry < end:
                info = self.info_of(entry)
                if info < 0:
                    damage[i] = OUTSIDE
                    infos[i] = <int64_t>self.offset_at(entry)
                    break
                size = number(self.data, <uint64_t>info, 4, self.big)
                if size == 0 or offset - start < size:
                    infos[i] = info
                    starts[i] = self.base + start
                    break
                entry += 1

    def find(self, const uint64_t[::1] addresses):
        """Returns for each of the sorted addresses where its function info begins, -1: none; where its function starts;
        and what is damaged. Of functions that start at one address it is the first that reaches the address; size 0
        reaches until the next function.

        Where the offset of an info is outside, the first column is where this offset stands.
        """
        n = addresses.shape[0]
        infos, starts, damage = np.empty(n, np.int64), np.empty(n, np.uint64), np.empty(n, np.uint8)
        cdef int64_t[::1] infos_view = infos
        cdef uint64_t[::1] starts_view = starts
        cdef uint8_t[::1] damage_view = damage
        with nogil:
            self.find_in(addresses, infos_view, starts_view, damage_view)
        return infos, starts, damage

    def info(self, uint64_t at, end=None):
        """Returns the function info at `at`, of which nothing is read from `end` on; its `damage` may say that it is
        not to be used."""
        cdef uint64_t until = self.infos_end if end is None else end
        if until > <uint64_t>self.data.shape[0]:
            raise ValueError("info: its end is outside the data")
        cdef Info info = Info(self)
        info.read(at, until, &self.spent)
        return info

    def rows(self, Info info not None, uint64_t start):
        """Returns the line table of a function that starts at `start`: (address, number of the file, line) of each row.
        Raises DamagedInfoError."""
        rows = []
        cdef _LineTable table = _LineTable(self)
        if info.lines_end > info.lines:
            table.begin(info.lines, self.checked_end(info.lines_end), start)
            while table.next():
                rows.append((table.address, <uint32_t>table.file, line_of(table.line)))
        return undamaged(rows, table.cursor.damage)

    def nodes(self, Info info not None, uint64_t start):
        """Returns the inline tree of a function that starts at `start`, parents before their children: for each node
        how deep it is, its name, call file, call line, and its ranges. Raises DamagedInfoError."""
        nodes = []
        cdef _InlineTree tree = _InlineTree(self)
        if info.inlines_end > info.inlines:
            tree.begin(info.inlines, self.checked_end(info.inlines_end), start)
            while tree.next():
                ranges = []
                while tree.next_range():
                    ranges.append((tree.first, tree.end))
                nodes.append((tree.level, tree.name, <uint32_t>tree.call_file, line_of(tree.call_line), tuple(ranges)))
        return undamaged(nodes, tree.cursor.damage)

    cdef uint64_t checked_end(self, uint64_t end) except? 0:
        if end > <uint64_t>self.data.shape[0]:
            raise ValueError("an info of another file")
        return end


cdef undamaged(list found, int damage):
    if damage != 0:
        raise DamagedInfoError(DAMAGES[damage])
    return found


@cython.final
cdef class Info:
    """A function info: u32 size, the name's string offset; then for each type of data u32 type, u32 length and that
    many bytes, until type 0. Infos need not be aligned. The fields say where it ends, and where the data of each type
    begins and ends, 0 without any. damage: of DAMAGES; unless it is 0, the fields mean nothing."""

    cdef Decoder file
    cdef Cursor cursor
    cdef readonly int damage
    cdef readonly uint64_t size
    cdef readonly uint64_t name
    cdef readonly uint64_t end
    cdef readonly uint64_t lines
    cdef readonly uint64_t lines_end
    cdef readonly uint64_t inlines
    cdef readonly uint64_t inlines_end
    cdef readonly uint64_t merged
    cdef readonly uint64_t merged_end
    cdef readonly uint64_t call_sites
    cdef readonly uint64_t call_sites_end

    def __cinit__(self, Decoder file not None):
        self.file = file
        self.cursor = Cursor(file.data, file.big)

    cdef int read(self, uint64_t at, uint64_t end, uint64_t* spent) noexcept nogil:
        """Reads the one at `at`. spent: the bytes of infos that were decoded before. Returns the damage."""
        self.cursor.begin(at, end)
        self.lines = self.lines_end = self.inlines = self.inlines_end = 0
        self.merged = self.merged_end = self.call_sites = self.call_sites_end = 0
        self.size = self.cursor.fixed(4)
        self.name = self.cursor.fixed(self.file.string_size)
        if self.cursor.damage == 0 and self.name == 0:
            self.cursor.damage = NO_NAME
        elif self.cursor.damage == 0 and self.name >= self.file.n_strings:
            self.cursor.damage = NO_STRING
        while self.cursor.damage == 0 and self.read_data():
            pass
        if self.cursor.damage == 0:
            spent[0] += self.end - at
            if spent[0] // MAX_SPENT > <uint64_t>self.file.data.shape[0]:
                self.cursor.damage = OVERLAP
        self.damage = self.cursor.damage
        return self.damage

    cdef bint read_data(self) noexcept nogil:
        """Reads where the data of the next type lies. Returns whether more follows."""
        cdef uint64_t type_ = self.cursor.fixed(4)
        cdef uint64_t length = self.cursor.fixed(4)
        cdef uint64_t at = self.cursor.at
        if self.cursor.damage != 0 or length > self.cursor.end - at:
            self.cursor.damage = CUT
            return False
        self.cursor.at = at + length
        if type_ == LINE_TABLE:
            self.lines, self.lines_end = at, at + length
        elif type_ == INLINE_TREE:
            self.inlines, self.inlines_end = at, at + length
        elif type_ == MERGED_FUNCTIONS:
            self.merged, self.merged_end = at, at + length
        elif type_ == CALL_SITES:
            self.call_sites, self.call_sites_end = at, at + length
        elif type_ == 0:
            self.end = self.cursor.at
        return type_ != 0


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

    cdef void begin(self, uint64_t at, uint64_t end, uint64_t start) noexcept nogil:
        """Begins the table from `at` to `end`, of a function that starts at `start`."""
        cdef uint64_t max_delta
        self.cursor.begin(at, end)
        self.min_delta = self.cursor.sleb()
        max_delta = self.cursor.sleb()
        self.line_range = max_delta - self.min_delta + 1
        self.line = self.cursor.uleb() & UINT32_MAX
        self.file = 1
        self.address = start

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

    number: of the node, from 1 on; parent: its number; level: how deep the node is; is_call: whether it has a call file
    and so makes a frame; first, end: its range that was read; n_ranges: how many are left.
    """

    cdef Decoder file
    cdef Cursor cursor
    cdef uint64_t number
    cdef uint64_t parent
    cdef uint64_t level
    cdef uint64_t name
    cdef uint64_t call_file
    cdef uint64_t call_line
    cdef bint is_call
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

    cdef void begin(self, uint64_t at, uint64_t end, uint64_t start) noexcept nogil:
        """Begins the tree from `at` to `end`, of a function that starts at `start`."""
        self.cursor.begin(at, end)
        self.node_end = at
        self.number = 0
        self.depth = 0
        self.origins[0] = start
        self.parents[0] = 0

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

# What is inlined at the nth address, and where it is called.
cdef struct Call:
    Py_ssize_t nth
    uint64_t name
    uint32_t file
    int32_t line


@cython.final
cdef class Lookup:
    """The frames at sorted addresses, with what `find` returned for these: each function is decoded once, and its
    addresses are walked through with it. A row for each address: the size and name of its function, and how many
    frames it has: inlined ones only where there is a line. None where `damage` says what is wrong."""

    cdef readonly object sizes
    cdef readonly object counts
    cdef Decoder file
    cdef Info info
    cdef _LineTable table
    cdef _InlineTree tree
    cdef const uint64_t[::1] addresses
    cdef const int64_t[::1] infos
    cdef const uint64_t[::1] starts
    cdef uint8_t[::1] damage
    cdef uint64_t[::1] size
    cdef uint64_t[::1] name
    # The innermost frame's file and line; file 0: there is none.
    cdef uint32_t[::1] files
    cdef int32_t[::1] lines
    cdef int32_t[::1] count
    # The innermost node that holds the address, as far as nodes were read. A node holds an address only if its parent
    # does and no sibling before it.
    cdef uint64_t[::1] inside
    # Those of each address from the outermost to the innermost.
    cdef Call* calls
    cdef Py_ssize_t n_calls
    cdef Py_ssize_t most_calls

    def __cinit__(
        self, Decoder file not None, const uint64_t[::1] addresses, const int64_t[::1] infos,
        const uint64_t[::1] starts, uint8_t[::1] damage
    ):
        cdef Py_ssize_t n = addresses.shape[0]
        if infos.shape[0] != n or starts.shape[0] != n or damage.shape[0] != n:
            raise ValueError("Lookup: an array has the wrong length")
        self.file, self.info, self.table, self.tree = file, Info(file), _LineTable(file), _InlineTree(file)
        self.addresses, self.infos, self.starts, self.damage = addresses, infos, starts, damage
        self.size = self.sizes = np.zeros(n, np.uint64)
        counts = np.zeros(n, np.int32)
        self.count = counts
        self.name = np.zeros(n, np.uint64)
        self.files = np.zeros(n, np.uint32)
        self.lines = np.zeros(n, np.int32)
        self.inside = np.empty(n, np.uint64)
        with nogil:
            self.read_all()
        # `frames` relies on its own.
        self.counts = counts.copy()

    def __dealloc__(self):
        free(self.calls)

    cdef int read_all(self) except -1 nogil:
        cdef Py_ssize_t end, k, n_before
        cdef Py_ssize_t i = 0
        cdef int bad
        cdef uint64_t spent = 0
        while i < self.addresses.shape[0]:
            end = self.end_of_function(i)
            if self.infos[i] >= 0 and self.damage[i] == 0:
                n_before = self.n_calls
                bad = self.info.read(<uint64_t>self.infos[i], self.file.infos_end, &spent)
                if bad == 0:
                    bad = self.read_function(i, end)
                if bad != 0:
                    self.n_calls = n_before
                for k in range(i, end):
                    self.damage[k] = bad
                    self.count[k] = self.count[k] + 1 if bad == 0 else 0
                    self.size[k] = self.info.size if bad == 0 else 0
                    self.name[k] = self.info.name
            i = end
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
        cdef Py_ssize_t k
        if self.info.lines_end > self.info.lines:
            self.table.begin(self.info.lines, self.info.lines_end, self.starts[i])
            bad = self.find_lines(i, end)
            if bad == 0 and self.info.inlines_end > self.info.inlines:
                for k in range(i, end):
                    # What has no row is in no node.
                    self.inside[k] = 0 if self.files[k] != 0 else UINT64_MAX
                self.tree.begin(self.info.inlines, self.info.inlines_end, self.starts[i])
                bad = self.find_calls(i, end)
        return bad

    cdef int find_lines(self, Py_ssize_t i, Py_ssize_t end) noexcept nogil:
        """Finds the row of each address from i to `end`, the last before one that is behind the address. Returns what
        is damaged."""
        cdef const uint64_t[::1] addresses = self.addresses
        cdef uint32_t file = 0
        cdef int32_t line = 0
        while i < end and self.table.next():
            while i < end and addresses[i] < self.table.address:
                self.files[i] = file
                self.lines[i] = line
                i += 1
            file = <uint32_t>self.table.file
            line = line_of(self.table.line)
        while i < end:
            self.files[i] = file
            self.lines[i] = line
            i += 1
        return self.table.cursor.damage

    cdef int find_calls(self, Py_ssize_t begin, Py_ssize_t end) except -1 nogil:
        """Adds the calls that are inlined around each address from `begin` to `end`. Returns what is damaged."""
        cdef const uint64_t[::1] addresses = self.addresses
        cdef uint64_t[::1] inside = self.inside
        cdef Py_ssize_t i
        while self.tree.next():
            while self.tree.next_range():
                i = first_from(addresses, begin, end, self.tree.first)
                while i < end and addresses[i] < self.tree.end:
                    if inside[i] == self.tree.parent:
                        inside[i] = self.tree.number
                        if self.tree.is_call:
                            self.add_call(i)
                    i += 1
        return self.tree.cursor.damage

    cdef int add_call(self, Py_ssize_t i) except -1 nogil:
        cdef Call* calls
        if self.n_calls == self.most_calls:
            self.most_calls = max(1 << 10, 2 * self.most_calls)
            calls = <Call*>realloc(self.calls, self.most_calls * sizeof(Call))
            if calls == NULL:
                self.most_calls = self.n_calls
                raise MemoryError
            self.calls = calls
        self.count[i] += 1
        self.calls[self.n_calls] = Call(
            i, self.tree.name, <uint32_t>self.tree.call_file, line_of(self.tree.call_line)
        )
        self.n_calls += 1
        return 0

    def frames(self, const int64_t[::1] first):
        """Returns the name, file and line of each frame, innermost first: those of the i-th address from first[i] on,
        which together fill the columns."""
        cdef Py_ssize_t n = self.addresses.shape[0]
        cdef int64_t n_frames = 0
        cdef Py_ssize_t i, nth
        if first.shape[0] != n:
            raise ValueError("frames: an array has the wrong length")
        for i in range(n):
            n_frames += self.count[i]
        for i in range(n):
            if not 0 <= first[i] <= n_frames - self.count[i]:
                raise ValueError("frames: a frame is outside")
        names, files, lines = np.empty(n_frames, np.uint64), np.empty(n_frames, np.uint32), np.empty(n_frames, np.int32)
        cdef uint64_t[::1] name_of = names
        cdef uint32_t[::1] file_of = files
        cdef int32_t[::1] line_of = lines
        # Of each address the last frame of which file and line are not written yet.
        cdef int64_t[::1] outermost = np.add(first, self.count) - 1
        cdef Call* call
        with nogil:
            for i in range(n):
                if self.count[i] > 0:
                    file_of[first[i]] = self.files[i]
                    line_of[first[i]] = self.lines[i]
                    name_of[outermost[i]] = self.name[i]
            for nth in range(self.n_calls):
                call = &self.calls[nth]
                i = outermost[call.nth]
                file_of[i] = call.file
                line_of[i] = call.line
                name_of[i - 1] = call.name
                outermost[call.nth] = i - 1
        return names, files, lines
