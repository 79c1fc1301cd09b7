"""Encodes functions as the function infos of GSYM files: their line tables and inline trees."""

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, qsort
from libc.string cimport memset

from traceferry.native.memory cimport resized
from traceferry.symbolication._ranges cimport Range, Ranges

# The values of layout.InfoType.
cdef enum:
    END_OF_INFO
    LINE_TABLE
    INLINE_TREE

# Opcodes of the line table.
cdef enum:
    END_SEQUENCE
    SET_FILE
    ADVANCE_PC
    ADVANCE_LINE
    FIRST_SPECIAL

cdef enum:
    # Special opcodes have a byte for both differences: the more lines they reach, the fewer addresses.
    MAX_LINE_RANGE = 15
    # The file of the state in front of the first row.
    FIRST_FILE = 1
    # Inlined calls in each other.
    MAX_INLINED = 128
    # A place of a text or file is not known yet.
    NOT_ASKED = -1
    # Bytes of the longest LEB128 number.
    MAX_LEB = 10


cdef struct Row:
    uint64_t address
    uint32_t file
    uint32_t line


cdef struct Node:
    # Of the merged ranges, relative to the function.
    int64_t first_range
    int64_t end_range
    # The call around this one, -1: the function; -2: this one is left out.
    int64_t parent
    uint64_t name
    uint64_t file
    int32_t depth
    uint8_t has_children


cdef int by_number(const void* one, const void* other) noexcept nogil:
    cdef int64_t a = (<const int64_t*>one)[0]
    cdef int64_t b = (<const int64_t*>other)[0]
    return (a > b) - (a < b)


def check(table):
    """Raises ValueError for columns of a FunctionTable that do not belong together."""
    rows, calls = table.rows, table.calls
    first_range = calls.first_range
    same = (
        (table.name, table.start, table.size, table.first_row, table.end_row, table.first_call, table.end_call),
        (rows.address, rows.source, rows.line), (calls.begin, calls.end),
        (calls.name, calls.source, calls.line, calls.depth, first_range[1:]),
    )
    if any(len(column) != len(columns[0]) for columns in same for column in columns) or not len(first_range):
        raise ValueError("columns of one length are needed")
    bounds = (
        (table.first_row, table.end_row, len(rows.address)), (table.first_call, table.end_call, len(calls.name)),
        (first_range[:-1], first_range[1:], len(calls.begin)),
    )
    for first, end, most in bounds:
        if len(first) and (first.min() < 0 or (first > end).any() or end.max() > most):
            raise ValueError("rows outside of their columns")
    for numbers in (table.name, rows.source, calls.name, calls.source):
        if len(numbers) and not (-1 <= numbers.min() and numbers.max() < len(table.texts.held)):
            raise ValueError("a text of this number is missing")


@cython.final
cdef class Infos:
    """The function infos, each at a multiple of four. table: FunctionTable; tables: says where texts are and which
    numbers files have, by `string`, `file` and `row_file`, in the order in which they are asked for; offset_size: the
    bytes of a place of a text; big: the order of bytes."""

    cdef object texts
    cdef object tables
    cdef int offset_size
    cdef bint big
    cdef uint8_t* held
    cdef Py_ssize_t n
    cdef Py_ssize_t n_room
    cdef int64_t[::1] string_of
    cdef int64_t[::1] file_of
    cdef const int32_t[::1] name
    cdef const uint64_t[::1] start
    cdef const uint64_t[::1] size
    cdef const int64_t[::1] first_row
    cdef const int64_t[::1] end_row
    cdef const int64_t[::1] first_call
    cdef const int64_t[::1] end_call
    cdef const uint64_t[::1] row_address
    cdef const int32_t[::1] row_source
    cdef const uint32_t[::1] row_line
    cdef const int32_t[::1] call_name
    cdef const int32_t[::1] call_source
    cdef const uint32_t[::1] call_line
    cdef const int32_t[::1] call_depth
    cdef const int64_t[::1] first_range
    cdef const uint64_t[::1] range_begin
    cdef const uint64_t[::1] range_end
    # Of the function that is written.
    cdef Row* rows
    cdef int64_t* changes
    cdef Py_ssize_t n_row_room
    cdef Node* nodes
    cdef Py_ssize_t n_node_room
    cdef Ranges ranges
    cdef int64_t[MAX_INLINED + 2] around

    def __init__(self, table, tables, int offset_size, bint big):
        check(table)
        self.texts, self.tables, self.offset_size, self.big = table.texts.held, tables, offset_size, big
        self.name, self.start, self.size = table.name, table.start, table.size
        self.first_row, self.end_row = table.first_row, table.end_row
        self.first_call, self.end_call = table.first_call, table.end_call
        self.row_address, self.row_source, self.row_line = table.rows.address, table.rows.source, table.rows.line
        calls = table.calls
        self.call_name, self.call_source, self.call_line = calls.name, calls.source, calls.line
        self.call_depth, self.first_range = calls.depth, calls.first_range
        self.range_begin, self.range_end = calls.begin, calls.end
        self.string_of = np.full(len(self.texts) + 1, NOT_ASKED, np.int64)
        self.file_of = np.full(len(self.texts) + 1, NOT_ASKED, np.int64)
        self.ranges = Ranges()

    def __dealloc__(self):
        free(self.held)
        free(self.rows)
        free(self.changes)
        free(self.nodes)

    def write(self, const int64_t[::1] which):
        """Adds the infos of functions, by their numbers. Returns where each begins, int64."""
        cdef Py_ssize_t nth
        places = np.empty(which.shape[0], np.int64)
        cdef int64_t[::1] place = places
        for nth in range(which.shape[0]):
            if not 0 <= which[nth] < self.name.shape[0]:
                raise IndexError
            self.reserve(4)
            while self.n & 3:
                self.put(0)
            place[nth] = self.n
            self.add(which[nth])
        return places

    def content(self):
        """Returns the bytes of all infos."""
        return self.held[:self.n] if self.n else b""

    cdef int add(self, Py_ssize_t nth) except -1:
        cdef uint64_t name
        cdef Py_ssize_t n_rows
        name = self.string(self.name[nth])
        self.reserve(12)
        self.put_fixed(self.size[nth], 4)
        self.put_fixed(name, self.offset_size)
        n_rows = self.rows_of(nth)
        if n_rows:
            self.add_lines(nth, n_rows)
        if self.find_nodes(nth):
            self.add_tree(nth, name)
        self.reserve(8)
        self.put_fixed(END_OF_INFO, 4)
        self.put_fixed(0, 4)
        return 0

    cdef Py_ssize_t begin(self, int kind) except -1:
        """Begins data of a type. Returns where its length is filled in by `end`."""
        self.reserve(8)
        self.put_fixed(kind, 4)
        self.put_fixed(0, 4)
        return self.n - 4

    cdef int end(self, Py_ssize_t at) except -1:
        cdef Py_ssize_t n = self.n
        if n - at - 4 > 0xFFFFFFFF:
            raise OverflowError
        self.n = at
        self.put_fixed(n - at - 4, 4)
        self.n = n
        return 0

    # ------------------------------------------------ texts and files

    cdef int64_t string(self, int32_t text) except -2:
        cdef Py_ssize_t row = text if text >= 0 else self.string_of.shape[0] - 1
        if self.string_of[row] == NOT_ASKED:
            self.string_of[row] = self.tables.string(self.texts[text] if text >= 0 else "")
        return self.string_of[row]

    cdef int64_t file(self, int32_t source) except -2:
        """Returns the number of a file of a call, or of a row that has a source."""
        if source < 0:
            return 0
        if self.file_of[source] == NOT_ASKED:
            self.file_of[source] = self.tables.file(self.texts[source])
        return self.file_of[source]

    cdef int64_t row_file(self, int32_t source) except -2:
        cdef Py_ssize_t last = self.file_of.shape[0] - 1
        if source >= 0:
            return self.file(source)
        if self.file_of[last] == NOT_ASKED:
            self.file_of[last] = self.tables.row_file("")
        return self.file_of[last]

    # ------------------------------------------------ lines

    cdef Py_ssize_t rows_of(self, Py_ssize_t nth) except -1:
        """Finds the rows of a function, the first at its start: readers give up where an address has no row. Returns
        how many."""
        cdef uint64_t start = self.start[nth]
        cdef uint64_t size = self.size[nth]
        cdef uint64_t address, last
        cdef int64_t at
        cdef Py_ssize_t n = 1
        cdef Py_ssize_t room = self.end_row[nth] - self.first_row[nth] + 1
        if room == 1:
            return 0
        if room > self.n_row_room:
            self.n_row_room = 2 * room
            self.rows = <Row*>resized(self.rows, self.n_row_room * sizeof(Row))
            self.changes = <int64_t*>resized(self.changes, self.n_row_room * sizeof(int64_t))
        last = start
        for at in range(self.first_row[nth], self.end_row[nth]):
            address = self.row_address[at]
            if address < last or (size and address - start >= size):
                continue
            self.rows[n] = Row(address, <uint32_t>self.row_file(self.row_source[at]), self.row_line[at])
            last = address
            n += 1
        if n == 1:
            return 0
        if self.rows[1].address > start:
            self.rows[0] = Row(start, <uint32_t>self.row_file(-1), 0)
            return n
        # The place in front of them is not needed.
        for at in range(1, n):
            self.rows[at - 1] = self.rows[at]
        return n - 1

    cdef int add_lines(self, Py_ssize_t nth, Py_ssize_t n) except -1:
        """Adds the opcodes that make the rows, with the smallest and the largest difference of lines that one byte
        holds."""
        cdef int64_t low, high, change, n_lines
        cdef uint64_t address = self.start[nth]
        cdef uint64_t advance
        cdef uint32_t file = FIRST_FILE
        cdef uint32_t line = self.rows[0].line
        cdef Py_ssize_t at = self.begin(LINE_TABLE)
        cdef Py_ssize_t row
        low, high = self.special_lines(n)
        n_lines = high - low + 1
        self.reserve(4 * MAX_LEB)
        self.put_sleb(low)
        self.put_sleb(high)
        self.put_uleb(line)
        for row in range(n):
            advance, change = self.rows[row].address - address, <int64_t>self.rows[row].line - <int64_t>line
            self.reserve(4 * MAX_LEB)
            if self.rows[row].file != file:
                self.put(SET_FILE)
                self.put_uleb(self.rows[row].file)
            if low <= change <= high and advance < 256 and FIRST_SPECIAL + <int64_t>advance * n_lines + change - low < 256:
                self.put(<uint8_t>(FIRST_SPECIAL + <int64_t>advance * n_lines + change - low))
            else:
                if change:
                    self.put(ADVANCE_LINE)
                    self.put_sleb(change)
                self.put(ADVANCE_PC)
                self.put_uleb(advance)
            address, file, line = self.rows[row].address, self.rows[row].file, self.rows[row].line
        self.put(END_SEQUENCE)
        return self.end(at)

    cdef (int64_t, int64_t) special_lines(self, Py_ssize_t n_rows) noexcept nogil:
        """Returns (smallest, largest): the range of at most 15 lines that holds most of the changes between rows."""
        cdef Py_ssize_t n = n_rows - 1
        cdef Py_ssize_t nth
        cdef Py_ssize_t first = 0
        cdef Py_ssize_t most = 0
        cdef int64_t low = 0
        cdef int64_t high = 0
        for nth in range(n):
            self.changes[nth] = <int64_t>self.rows[nth + 1].line - <int64_t>self.rows[nth].line
        qsort(self.changes, n, sizeof(int64_t), by_number)
        for nth in range(n):
            if nth + 1 < n and self.changes[nth + 1] == self.changes[nth]:
                continue
            while self.changes[nth] - self.changes[first] >= MAX_LINE_RANGE:
                first += 1
            if nth + 1 - first > most:
                most, low, high = nth + 1 - first, self.changes[first], self.changes[nth]
        return low, high

    # ------------------------------------------------ inlined calls

    cdef bint find_nodes(self, Py_ssize_t nth) except -1:
        """Finds which calls are inside of the function, or of the call around them, whose first address is their base.
        Returns whether any is."""
        cdef int64_t first = self.first_call[nth]
        cdef int64_t n = self.end_call[nth] - first
        cdef int64_t row
        cdef bint is_any = False
        if n > self.n_node_room:
            self.n_node_room = 2 * n
            self.nodes = <Node*>resized(self.nodes, self.n_node_room * sizeof(Node))
        memset(self.around, 0xFF, sizeof(self.around))
        self.ranges.n = 0
        self.ranges.add(0, self.size[nth])
        for row in range(n):
            is_any |= self.find_node(self.start[nth], first, row)
        if is_any:
            self.name_nodes(first, n)
        return is_any

    cdef bint find_node(self, uint64_t start, int64_t first, int64_t row) except -1:
        cdef Node* node = &self.nodes[row]
        cdef int32_t depth = self.call_depth[first + row]
        cdef int64_t at
        cdef int64_t within = 0
        cdef int64_t within_end = 1
        cdef Range held
        node.parent, node.depth, node.has_children = -2, depth, False
        if not 0 < depth <= MAX_INLINED:
            return False
        self.around[depth] = -1
        if depth > 1:
            if self.around[depth - 1] < 0:
                return False
            within = self.nodes[self.around[depth - 1]].first_range
            within_end = self.nodes[self.around[depth - 1]].end_range
        node.first_range = self.ranges.n
        for at in range(self.first_range[first + row], self.first_range[first + row + 1]):
            # An end of 2^64 is 0, and so as far from the start as it is.
            held.begin, held.end = self.range_begin[at] - start, self.range_end[at] - start
            if held.begin < held.end and self.is_within(within, within_end, held):
                self.ranges.add(held.begin, held.end)
        self.ranges.merge_from(node.first_range)
        node.end_range = self.ranges.n
        if node.first_range == node.end_range:
            return False
        node.parent = -1
        if depth > 1:
            node.parent = self.around[depth - 1]
            self.nodes[node.parent].has_children = True
        self.around[depth] = row
        return True

    cdef bint is_within(self, int64_t low, int64_t high, Range held) noexcept nogil:
        """Whether one of merged ranges holds this one."""
        cdef int64_t first = low
        cdef int64_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.ranges.held[middle].begin <= held.begin:
                low = middle + 1
            else:
                high = middle
        return low > first and held.end <= self.ranges.held[low - 1].end

    cdef int name_nodes(self, int64_t first, int64_t n) except -1:
        """Finds the texts and files, those of what is inlined into a call before its own."""
        cdef int64_t row
        cdef int64_t last = -1
        for row in range(n):
            if self.nodes[row].parent == -2:
                continue
            while last >= 0 and self.nodes[last].depth >= self.nodes[row].depth:
                last = self.name_node(first, last)
            last = row
        while last >= 0:
            last = self.name_node(first, last)
        return 0

    cdef int64_t name_node(self, int64_t first, int64_t row) except -3:
        self.nodes[row].name = self.string(self.call_name[first + row])
        self.nodes[row].file = self.file(self.call_source[first + row])
        return self.nodes[row].parent

    cdef int add_tree(self, Py_ssize_t nth, uint64_t name) except -1:
        """Adds the inline tree. The function itself is the root of what is inlined into it."""
        cdef int64_t first = self.first_call[nth]
        cdef int64_t row
        cdef int64_t range_at, n_ranges
        cdef int32_t depth = 0
        cdef uint64_t base
        cdef Node* node
        cdef Py_ssize_t at = self.begin(INLINE_TREE)
        self.reserve(4 * MAX_LEB)
        self.put_uleb(1)
        self.put_uleb(0)
        self.put_uleb(self.size[nth])
        self.put(True)
        self.put_fixed(name, self.offset_size)
        self.put_uleb(0)
        self.put_uleb(0)
        for row in range(self.end_call[nth] - first):
            node = &self.nodes[row]
            if node.parent == -2:
                continue
            n_ranges = node.end_range - node.first_range
            self.reserve(MAX_INLINED + 5 * MAX_LEB + 2 * MAX_LEB * n_ranges)
            while depth > node.depth:
                # The end of what is inlined into a call.
                self.put(0)
                depth -= 1
            if depth < node.depth:
                depth = node.depth
            base = self.ranges.held[self.nodes[node.parent].first_range].begin if node.parent >= 0 else 0
            self.put_uleb(n_ranges)
            for range_at in range(node.first_range, node.end_range):
                self.put_uleb(self.ranges.held[range_at].begin - base)
                self.put_uleb(self.ranges.held[range_at].end - self.ranges.held[range_at].begin)
            self.put(node.has_children)
            self.put_fixed(node.name, self.offset_size)
            self.put_uleb(node.file)
            self.put_uleb(self.call_line[first + row])
        self.reserve(MAX_INLINED)
        while depth > 0:
            self.put(0)
            depth -= 1
        return self.end(at)

    # ------------------------------------------------ bytes

    cdef int reserve(self, Py_ssize_t n) except -1:
        """Makes room for so many bytes more."""
        if self.n_room - self.n < n:
            self.n_room = 2 * self.n_room + n + 4096
            self.held = <uint8_t*>resized(self.held, self.n_room)
        return 0

    cdef inline void put(self, uint8_t value) noexcept nogil:
        self.held[self.n] = value
        self.n += 1

    cdef inline void put_fixed(self, uint64_t value, int size) noexcept nogil:
        cdef int nth
        for nth in range(size):
            self.put(<uint8_t>(value >> 8 * (size - 1 - nth if self.big else nth)))

    cdef inline void put_uleb(self, uint64_t value) noexcept nogil:
        while value >= 0x80:
            self.put(<uint8_t>(value & 0x7F | 0x80))
            value >>= 7
        self.put(<uint8_t>value)

    cdef inline void put_sleb(self, int64_t value) noexcept nogil:
        while not -0x40 <= value < 0x40:
            self.put(<uint8_t>(value & 0x7F | 0x80))
            value >>= 7
        self.put(<uint8_t>(value & 0x7F))
