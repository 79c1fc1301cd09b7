"""Reads the entries of .debug_info in bulk: where units have code, which function and which inlined calls hold
addresses, and where their names stand.

Only undamaged bytes in usual codings are read: in all other cases a method returns None, and the reader in Python, which
says what is damaged, answers in its place. Names of attributes and forms are those of units.py and forms.py.

Entries may be in the file that `dwz` moved to what several files have in common: these are numbered by their offsets
there, with the bit SHARED.
"""

import numpy as np

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memchr, memset, strcmp, strncmp

from traceferry.native.bytes cimport number
from traceferry.native.leb128 cimport leb, short_leb
from traceferry.native.memory cimport grown, resized
from traceferry.symbolication._ranges cimport Range

cdef uint64_t MAX_SIZE = <uint64_t>1 << 32
cdef uint64_t SHARED = <uint64_t>1 << SHARED_BIT
cdef enum:
    # Of units that are kept.
    MAX_TREES = 64


cdef struct Call:
    uint64_t entry
    uint64_t line
    uint64_t discriminator
    uint64_t file
    int64_t parent
    int64_t unit
    int64_t first_range
    int64_t end_range
    int32_t depth


@cython.final
cdef class Forms:
    """The sizes and meanings of forms, by their codes; and the numbers of attributes and kinds of entries."""

    def __init__(self, forms, slots, kinds):
        """forms: {code: (size, number of the meaning)}; slots: {DW_AT: number}; kinds: {DW_TAG: number}."""
        cdef int nth
        for nth in range(N_FORMS):
            self.sizes[nth], self.meanings[nth] = UNKNOWN, NOTHING
        for code, (size, meaning) in forms.items():
            nth = form_row(code)
            if nth < 0:
                raise ValueError("a form has no place")
            self.sizes[nth], self.meanings[nth] = size, meaning
        self.slots, self.kinds = slots, kinds


cdef int form_row(uint64_t form) noexcept nogil:
    if form < 0x30:
        return <int>form
    if form == 0x1F01 or form == 0x1F02:
        return <int>(0x30 + form - 0x1F01)
    if form == 0x1F20 or form == 0x1F21:
        return <int>(0x32 + form - 0x1F20)
    return -1


@cython.final
cdef class Table:
    """The abbreviations of a unit, by code."""

    def __dealloc__(self):
        free(self.attributes)
        free(self.shapes)
        free(self.index)


@cython.final
cdef class Entries:
    """The units of one .debug_info. All but `info` and `abbrev` may be empty. big: the order of bytes."""

    def __init__(self, sections, forms, bint big):
        """sections: info, abbrev, ranges, rnglists, addr, str_offsets, str, line_str."""
        views = [memoryview(section) for section in sections]
        (self.info_view, self.abbrev_view, self.ranges_view, self.rnglists_view, self.addr_view,
            self.str_offsets_view, self.str_view, self.line_str_view) = views
        self.n_info = self.info_view.shape[0]
        self.info = &self.info_view[0] if self.n_info else NULL
        self.forms = forms
        self.big = big
        self.tables = {}
        self.trees = {}
        self.lambdas = {}
        self.allowed = EFFORT * sum(len(view) for view in views)
        self.left = self.allowed
        self.unit = -1

    def __dealloc__(self):
        free(self.headers)

    # ------------------------------------------------ units

    def survey(self):
        """Reads the header and the first entry of each unit. Returns False where headers are damaged. Then `states` has
        what is known of each unit, and `code` its ranges: (unit, begin, end), int64 and uint64."""
        cdef Py_ssize_t nth
        cdef Py_ssize_t n
        if not self.find():
            return False
        cdef Ranges ranges = Ranges()
        states = np.empty(self.n_units, np.uint8)
        counts = np.empty(self.n_units, np.int64)
        cdef uint8_t[::1] state = states
        cdef int64_t[::1] count = counts
        for nth in range(self.n_units):
            n = ranges.n
            state[nth] = UNUSUAL
            if self.is_of_types(nth):
                state[nth] = WITHOUT_CODE
            elif self.begin(nth, whole=False):
                if self.is_partial():
                    state[nth] = WITHOUT_CODE
                elif self.is_split:
                    state[nth] = SPLIT
                elif self.ranges_of_entry(ranges):
                    state[nth] = READABLE
                else:
                    ranges.n = n
            count[nth] = ranges.n - n
        self.unit = -1
        self.states = states
        begins, ends = np.empty(ranges.n, np.uint64), np.empty(ranges.n, np.uint64)
        cdef uint64_t[::1] begin = begins
        cdef uint64_t[::1] end = ends
        for nth in range(ranges.n):
            begin[nth], end[nth] = ranges.held[nth].begin, ranges.held[nth].end
        self.code = np.repeat(np.arange(self.n_units), counts), begins, ends
        return True

    def find(self):
        """Reads the header of each unit. Returns False where these are damaged."""
        cdef uint64_t at = 0
        cdef Py_ssize_t n_room = 0
        self.n_units = 0
        while at < self.n_info:
            if self.n_units == n_room:
                n_room = 2 * n_room + 64
                self.headers = <Header*>resized(self.headers, n_room * sizeof(Header))
            if not self.spend(1) or not self.header_at(at, &self.headers[self.n_units]):
                return False
            at = self.headers[self.n_units].end
            self.n_units += 1
        return True

    def number_of(self, uint64_t offset):
        """Returns which unit begins there, -1 for none."""
        cdef Py_ssize_t nth
        for nth in range(self.n_units):
            if self.headers[nth].offset == offset:
                return nth
        return -1

    def share(self, Entries shared):
        """Texts and entries of the file that several share are those of `shared`, of which `find` has found the
        units; None: it is not here, and there are none."""
        self.shared, self.is_alone = shared, shared is None

    def complete(self, uint64_t low, uint64_t addr_base, uint64_t ranges_base):
        """The units are in a file of their own. What they have of that which they complete: its DW_AT_low_pc,
        DW_AT_addr_base and DW_AT_GNU_ranges_base."""
        self.is_completing = True
        self.outer_low, self.outer_addr_base, self.outer_ranges_base = low, addr_base, ranges_base

    @property
    def spent(self):
        """How much work was done since `renew`."""
        return self.allowed - self.left

    def offset_of(self, Py_ssize_t nth):
        """Returns where a unit begins."""
        if not 0 <= nth < self.n_units:
            raise IndexError
        return self.headers[nth].offset

    def root(self, Py_ssize_t nth):
        """Returns what the first entry of a unit says: (DW_AT_language, 0 if it does not; DW_AT_stmt_list, None; kind and
        value, as `names` has them, of DW_AT_comp_dir; whether GCC compiled it, from C or C++); None where it cannot be
        read."""
        cdef uint64_t code
        cdef uint64_t place = 0
        cdef int64_t at
        cdef int kind
        cdef const Shape* shape
        if not 0 <= nth < self.n_units:
            raise IndexError
        if not self.begin(nth, whole=True):
            return None
        code, at = leb(self.info_view, self.header.at, self.n_info, False)
        shape = self.table.of(code)
        if shape == NULL or self.attributes(shape, at) < 0:
            return None
        lines = None
        if self.values[STMT_LIST].meaning == NUMBER:
            lines = self.values[STMT_LIST].value
        kind = self.text(&self.values[COMP_DIR], &place)
        return None if kind == ELSEWHERE else (self.language, lines, kind, place, self.skips)

    cdef bint is_of_types(self, Py_ssize_t nth) noexcept nogil:
        """Whether a unit only holds a type."""
        return self.headers[nth].kind == UT_TYPE or self.headers[nth].kind == UT_SPLIT_TYPE

    cdef bint is_partial(self):
        """Whether the unit's first entry, which `begin` read, is a DW_TAG_partial_unit."""
        cdef uint64_t code
        cdef int64_t at
        code, at = leb(self.info_view, self.header.at, self.n_info, False)
        cdef const Shape* shape = self.table.of(code)
        return shape != NULL and shape.kind == PARTIAL

    cdef bint header_at(self, uint64_t at, Header* header) noexcept nogil:
        cdef uint64_t length
        cdef uint64_t size = 4
        header.offset = at
        if not self.has(at, 4):
            return False
        length, at = self.u(at, 4), at + 4
        if length == <uint64_t>0xFFFFFFFF:
            if not self.has(at, 8):
                return False
            size = 8
            length, at = self.u(at, 8), at + 8
        # Headers without the fields of units of other kinds.
        if length > self.n_info - at or length < 2:
            return False
        header.end = at + length
        header.offset_size = <uint8_t>size
        header.version = <uint8_t>self.u(at, 2) if self.u(at, 2) < 6 else 0
        at += 2
        if header.version < 2:
            return False
        header.kind = UT_COMPILE
        if header.end - at < (size + 2 if header.version >= 5 else size + 1):
            return False
        if header.version >= 5:
            header.kind, header.address_size = self.info[at], self.info[at + 1]
            header.abbrev = self.u(at + 2, size)
            at += 2 + size
            if header.kind == UT_TYPE or header.kind == UT_SPLIT_TYPE:
                at += 8 + size
            elif header.kind == UT_SKELETON or header.kind == UT_SPLIT_COMPILE:
                if not self.has(at, 8):
                    return False
                at += 8
        else:
            header.abbrev = self.u(at, size)
            header.address_size = self.info[at + size]
            at += size + 1
        header.at = at
        return header.address_size == 4 or header.address_size == 8

    cdef bint begin(self, Py_ssize_t nth, bint whole) except -1:
        """Goes to a unit and reads its first entry. whole: with all its abbreviations."""
        if nth == self.unit:
            return True
        self.unit = -1
        self.header = self.headers[nth]
        cdef uint64_t code
        cdef int64_t at
        code, at = leb(self.info_view, self.header.at, self.n_info, False)
        if at < 0 or not code:
            return False
        key = (self.header.abbrev, self.header.version, self.header.address_size, self.header.offset_size)
        self.table = self.tables.get(key)
        if self.table is None:
            self.table = Table()
            if not self.read_table(self.table, 0 if whole else code):
                return False
            if whole:
                self.tables[key] = self.table
        cdef const Shape* shape = self.table.of(code)
        if shape == NULL:
            return False
        self.low = self.addr_base = self.rnglists_base = self.language = 0
        self.str_offsets_base = 2 * self.header.offset_size if self.header.version >= 5 else 0
        if self.attributes(shape, at) < 0:
            return False
        cdef Value* values = self.values
        if values[STR_OFFSETS_BASE].meaning == NUMBER:
            self.str_offsets_base = values[STR_OFFSETS_BASE].value
        if values[ADDR_BASE].meaning == NUMBER:
            self.addr_base = values[ADDR_BASE].value
        if values[RNGLISTS_BASE].meaning == NUMBER:
            self.rnglists_base = values[RNGLISTS_BASE].value
        if self.is_completing:
            self.addr_base = self.outer_addr_base
            if self.rnglists_base == 0:
                # The only list of lists of such a unit stands behind its header.
                self.rnglists_base = 12 + 2 * (self.header.offset_size - 4)
        if values[LANGUAGE].meaning == NUMBER:
            self.language = values[LANGUAGE].value
        if values[LOW].meaning != NOTHING and not self.address(&values[LOW], &self.low):
            return False
        if self.is_completing:
            self.low = self.outer_low
        self.is_split = values[SPLIT_NAME].meaning != NOTHING
        self.skips = self.is_of_gcc(&values[PRODUCER])
        if whole:
            self.unit = nth
        return True

    cdef bint is_of_gcc(self, const Value* producer) noexcept nogil:
        """Whether GCC compiled C or C++, whose entries of types hold no code."""
        cdef const uint8_t[::1] text = self.str_view
        cdef uint64_t at = producer.value
        cdef const uint8_t* begin
        if producer.meaning == LINE_STR:
            text = self.line_str_view
        elif producer.meaning == TEXT:
            text = self.info_view
        elif producer.meaning != STR:
            return False
        if at > <uint64_t>text.shape[0] or <uint64_t>text.shape[0] - at < 5:
            return False
        begin = &text[at]
        return begin[0] == c'G' and begin[1] == c'N' and begin[2] == c'U' and begin[3] == c' ' and begin[4] == c'C'

    # ------------------------------------------------ abbreviations

    cdef bint read_table(self, Table table, uint64_t wanted) except -1:
        """Reads abbreviations, up to one of the code `wanted`, if that is not 0."""
        cdef const uint8_t[::1] data = self.abbrev_view
        cdef int64_t end = data.shape[0]
        cdef int64_t at = self.header.abbrev
        cdef uint64_t code, tag, name, form, value
        cdef uint64_t largest = 0
        cdef Py_ssize_t n_shapes = 0
        cdef Py_ssize_t n_attributes = 0
        cdef Py_ssize_t nth
        cdef int row
        cdef Shape* shape
        cdef Attribute* attribute
        cdef list codes = []
        if at < 0 or at >= end:
            return False
        while True:
            code, at = leb(data, at, end, False)
            if at < 0 or code > 1 << 24:
                return False
            if code == 0:
                break
            tag, at = leb(data, at, end, False)
            if at < 0 or at >= end:
                return False
            if table.n_shapes == n_shapes:
                n_shapes = 2 * n_shapes + 32
                table.shapes = <Shape*>resized(table.shapes, n_shapes * sizeof(Shape))
            shape = &table.shapes[table.n_shapes]
            table.n_shapes += 1
            largest = max(largest, code)
            codes.append(code)
            shape.kind = self.forms.kinds.get(tag, OTHER_KIND)
            shape.has_children = data[at] != 0
            at += 1
            shape.has_code = shape.has_sibling = False
            shape.first = table.n_attributes
            shape.size = 0
            while True:
                name, at = leb(data, at, end, False)
                if at < 0:
                    return False
                form, at = leb(data, at, end, False)
                if at < 0:
                    return False
                value = 0
                if form == IMPLICIT_CONST:
                    value, at = leb(data, at, end, True)
                    if at < 0:
                        return False
                if name == 0 and form == 0:
                    break
                row = form_row(form)
                if row < 0 or self.forms.sizes[row] == UNKNOWN or self.forms.sizes[row] == INDIRECT:
                    return False
                if table.n_attributes == n_attributes:
                    n_attributes = 2 * n_attributes + 128
                    table.attributes = <Attribute*>resized(table.attributes, n_attributes * sizeof(Attribute))
                attribute = &table.attributes[table.n_attributes]
                table.n_attributes += 1
                attribute.slot = self.forms.slots.get(name, NOT_READ)
                attribute.meaning = self.forms.meanings[row]
                attribute.is_constant = form == IMPLICIT_CONST
                attribute.constant = value
                attribute.size = self.size_of(self.forms.sizes[row])
                shape.has_code |= attribute.slot in (LOW, RANGES)
                shape.has_sibling |= attribute.slot == SIBLING
                shape.size = -1 if attribute.size < 0 or shape.size < 0 else shape.size + attribute.size
            shape.end = table.n_attributes
            if code == wanted:
                break
        if not self.spend(table.n_shapes + table.n_attributes) or largest > SPARSE * table.n_shapes + 1024:
            return False
        table.n_index = largest + 1
        table.index = <int32_t*>resized(table.index, table.n_index * sizeof(int32_t))
        memset(table.index, 0xFF, table.n_index * sizeof(int32_t))
        # Of equal codes the first.
        for nth in range(table.n_shapes - 1, -1, -1):
            code = codes[nth]
            table.index[code] = nth
        return True

    cdef int32_t size_of(self, int32_t size) noexcept nogil:
        if size == OF_ADDRESS or (size == OF_REF_ADDR and self.header.version <= 2):
            return self.header.address_size
        return self.header.offset_size if size == OF_OFFSET or size == OF_REF_ADDR else size

    # ------------------------------------------------ attributes

    cdef int64_t after(self, int32_t size, int64_t at) noexcept nogil:
        """Returns the place behind a value that has no fixed size; -1 where it ends beyond the section."""
        cdef uint64_t length
        cdef const void* end
        if size == ULEB or size == SLEB:
            return self.leb(at, False)[1]
        if size == STRING:
            if not self.has(at, 1):
                return -1
            end = memchr(&self.info[at], 0, min(self.n_info - at, <uint64_t>MAX_TEXT))
            return -1 if end == NULL else <const uint8_t*>end - self.info + 1
        if size == BLOCK_ULEB:
            length, at = self.leb(at, False)
        else:
            length = 1 if size == BLOCK_1 else 2 if size == BLOCK_2 else 4
            if not self.has(at, length):
                return -1
            length, at = self.u(at, length), at + length
        return at + <int64_t>length if at >= 0 and self.has(at, length) else -1

    cdef int64_t attributes(self, const Shape* shape, int64_t at) noexcept nogil:
        """Reads the attributes of an entry into `values`. Returns the place behind it, -1 where it is damaged."""
        cdef int32_t nth
        cdef int64_t next_
        cdef Value value
        cdef const Attribute* attribute
        memset(self.values, 0, sizeof(self.values))
        if not self.spend(1 + shape.end - shape.first):
            return -1
        for nth in range(shape.first, shape.end):
            attribute = &self.table.attributes[nth]
            if attribute.size >= 0:
                if not self.has(at, attribute.size):
                    return -1
                next_ = at + attribute.size
            else:
                next_ = self.after(attribute.size, at)
                if next_ < 0:
                    return -1
            if attribute.slot != NOT_READ and self.values[attribute.slot].meaning == NOTHING:
                value.meaning = attribute.meaning
                if attribute.is_constant:
                    value.value = attribute.constant
                elif 0 < attribute.size <= 8:
                    value.value = self.u(at, attribute.size)
                elif attribute.size == ULEB or attribute.size == SLEB:
                    value.value = self.leb(at, attribute.size == SLEB)[0]
                else:
                    value.value = at
                self.values[attribute.slot] = value
            at = next_
        return at

    cdef int64_t skipped(self, const Shape* shape, int64_t at) noexcept nogil:
        """Returns the place behind an entry, whose attributes begin at `at`; -1 where it is damaged."""
        cdef int32_t nth, size
        if shape.size >= 0:
            return at + shape.size if self.has(at, shape.size) else -1
        for nth in range(shape.first, shape.end):
            size = self.table.attributes[nth].size
            at = at + size if size >= 0 else self.after(size, at)
            if at < 0 or <uint64_t>at > self.n_info:
                return -1
        return at

    cdef bint address(self, const Value* value, uint64_t* found) noexcept nogil:
        """Whether the value is an address, which it then stores."""
        cdef uint64_t size = self.header.address_size
        cdef uint64_t at
        if value.meaning == ADDRESS:
            found[0] = value.value
            return True
        if value.meaning != ADDRESS_INDEX or value.value > self.n_info:
            return False
        at = self.addr_base + value.value * size
        if at > <uint64_t>self.addr_view.shape[0] or <uint64_t>self.addr_view.shape[0] - at < size:
            return False
        found[0] = number(self.addr_view, at, size, self.big)
        return True

    cdef int64_t sibling(self, uint64_t at) noexcept nogil:
        """Returns where the next entry is that is no child of the one whose attributes were read; -1: it does not
        say."""
        cdef Value* value = &self.values[SIBLING]
        if value.meaning != UNIT_REFERENCE or value.value > self.header.end - self.header.offset:
            return -1
        value.value += self.header.offset
        return value.value if at <= value.value <= self.header.end else -1

    # ------------------------------------------------ ranges

    cdef bint ranges_of_entry(self, Ranges ranges) except -1:
        """Adds the ranges of the entry whose attributes were read."""
        cdef uint64_t low
        cdef uint64_t high
        cdef Value* values = self.values
        if values[HIGH].meaning != NOTHING and values[LOW].meaning != NOTHING:
            if not self.address(&values[LOW], &low):
                return False
            if values[HIGH].meaning == NUMBER:
                high = low + values[HIGH].value
                if high < low:
                    return False
            elif not self.address(&values[HIGH], &high):
                return False
            ranges.add(low, high)
            return True
        cdef uint64_t at = values[RANGES].value
        cdef uint64_t size = self.header.offset_size
        cdef uint64_t place
        if values[RANGES].meaning == RANGE_INDEX:
            place = self.rnglists_base + at * size
            if at > self.n_info or not self.in_lists(place, size):
                return False
            at = self.rnglists_base + number(self.rnglists_view, place, size, self.big)
        elif values[RANGES].meaning != NUMBER:
            return values[RANGES].meaning == NOTHING
        if self.header.version >= 5:
            return self.rnglist(ranges, at)
        return self.range_list(ranges, at + self.outer_ranges_base if self.is_completing else at)

    cdef bint range_list(self, Ranges ranges, uint64_t at) except -1:
        cdef uint64_t size = self.header.address_size
        cdef uint64_t base = self.low
        cdef uint64_t largest = ~<uint64_t>0 if size == 8 else <uint64_t>0xFFFFFFFF
        cdef uint64_t begin, end
        while True:
            if at > <uint64_t>self.ranges_view.shape[0] or <uint64_t>self.ranges_view.shape[0] - at < 2 * size:
                return False
            begin = number(self.ranges_view, at, size, self.big)
            end = number(self.ranges_view, at + size, size, self.big)
            at += 2 * size
            if begin == 0 and end == 0:
                return True
            if not self.spend(1):
                return False
            if begin == largest:
                base = end
            else:
                if base + begin < base or base + end < base:
                    return False
                ranges.add(base + begin, base + end)

    cdef bint rnglist(self, Ranges ranges, uint64_t at) except -1:
        """Adds the ranges of a list of .debug_rnglists (DWARF 5, section 7.25)."""
        cdef uint64_t base = self.low
        cdef uint64_t low
        cdef uint64_t[2] numbers
        cdef uint8_t kind
        cdef int nth, n
        cdef int64_t next_
        cdef Value value
        # By kind, of each operand: x: the index of an address; a: an address; u: a number.
        cdef const char* operands
        cdef bytes all_operands = b"  x xxxuuua aaau"
        cdef const char* table = all_operands
        while True:
            if not self.in_lists(at, 1) or not self.spend(1):
                return False
            kind = self.rnglists_view[at]
            at += 1
            if kind == 0:
                return True
            if kind > 7:
                return False
            operands = &table[2 * kind]
            n = 2 if operands[1] != c' ' else 1
            for nth in range(n):
                if operands[nth] == c'a':
                    if not self.in_lists(at, self.header.address_size):
                        return False
                    numbers[nth] = number(self.rnglists_view, at, self.header.address_size, self.big)
                    at += self.header.address_size
                    continue
                numbers[nth], next_ = leb(self.rnglists_view, at, self.rnglists_view.shape[0], False)
                if next_ < 0:
                    return False
                at = next_
                if operands[nth] == c'x':
                    value.meaning, value.value = ADDRESS_INDEX, numbers[nth]
                    if not self.address(&value, &numbers[nth]):
                        return False
            if n == 1:
                base = numbers[0]
            else:
                if kind == 4:
                    numbers[0], numbers[1], low = base + numbers[0], base + numbers[1], base
                elif operands[1] == c'u':
                    numbers[1], low = numbers[0] + numbers[1], numbers[0]
                else:
                    low = 0
                if numbers[0] < low or numbers[1] < low:
                    return False
                ranges.add(numbers[0], numbers[1])

    # ------------------------------------------------ look-ups

    def renew(self):
        """Allows for the work of look-ups in all units again."""
        self.left = self.allowed

    def names(self, const int64_t[::1] units, const uint64_t[::1] entries):
        """Returns where the names of entries, each of a unit, are, and of which entry they are: (kind, value, entry),
        uint8 and uint64. kind: 0: there is none; 1: in .debug_info, 2: .debug_str, 3: .debug_line_str at `value`; 4: this
        reader does not find it; 16 more: in the file that several share; 32 more: has the names of its `contexts` in
        front."""
        cdef Py_ssize_t row
        self.check_units(units, entries.shape[0])
        kinds, values = np.empty(entries.shape[0], np.uint8), np.empty(entries.shape[0], np.uint64)
        targets = np.empty(entries.shape[0], np.uint64)
        cdef uint8_t[::1] kind = kinds
        cdef uint64_t[::1] value = values
        cdef uint64_t[::1] target = targets
        for row in range(entries.shape[0]):
            if not self.begin(units[row], whole=True):
                kind[row], value[row], target[row] = ELSEWHERE, 0, entries[row]
            else:
                kind[row] = self.name_of(entries[row], &value[row], &target[row])
        return kinds, values, targets

    cdef int check_units(self, const int64_t[::1] units, Py_ssize_t n) except -1:
        """Raises IndexError unless these are n units."""
        cdef Py_ssize_t row
        if units.shape[0] != n:
            raise IndexError
        for row in range(n):
            if not 0 <= units[row] < self.n_units:
                raise IndexError
        return 0

    cdef int name_of(self, uint64_t offset, uint64_t* found, uint64_t* target) except -1:
        cdef uint64_t language = self.language
        cdef uint64_t first_value = 0
        cdef int kind, step, slot
        cdef Entries file
        cdef int first_kind = NO_NAME
        cdef int64_t next_
        target[0] = offset
        found[0] = 0
        for step in range(MAX_ORIGINS):
            file = self.goes_to(offset)
            if file is None:
                return ELSEWHERE
            for slot in (MIPS_LINKAGE, LINKAGE):
                kind = self.text_in(file, slot, found)
                if kind != NO_NAME:
                    return kind
            if first_kind == NO_NAME:
                first_kind = self.text_in(file, NAME, &first_value)
                if first_kind == ELSEWHERE:
                    return ELSEWHERE
            next_ = self.origin_in(file)
            if next_ == -2:
                return ELSEWHERE
            if next_ < 0:
                break
            offset = next_
            if step == 0 and file.kind == INLINED and first_kind == NO_NAME:
                # A call has the name of what is called.
                target[0] = offset
        found[0] = first_value
        if first_kind == NO_NAME or language not in QUALIFIED_LANGUAGES or self.begins(first_kind, first_value, b"_Z"):
            return first_kind
        return QUALIFIED + first_kind

    cdef int entry_at(self, uint64_t offset) except -2:
        """Reads the attributes of an entry and returns its kind, -1 where it cannot be read."""
        cdef uint64_t code
        cdef int64_t at
        cdef const Shape* shape
        if not (self.unit >= 0 and self.header.at <= offset < self.header.end) and not self.go_to(offset):
            return -1
        code, at = leb(self.info_view, offset, self.n_info, False)
        shape = self.table.of(code) if at >= 0 else NULL
        if shape == NULL or self.attributes(shape, at) < 0:
            return -1
        self.kind = shape.kind
        return shape.kind

    cdef Entries goes_to(self, uint64_t entry):
        """Reads the attributes of an entry, of this file or the shared one, and returns that; None where it cannot be
        read."""
        cdef Entries file = self.shared if entry & SHARED else self
        return file if file is not None and file.entry_at(entry & ~SHARED) >= 0 else None

    cdef bint has_specification(self) noexcept nogil:
        """Whether the entry whose attributes were read specifies another, its declaration."""
        cdef int meaning = self.values[SPECIFICATION].meaning
        return meaning == REFERENCE or meaning == UNIT_REFERENCE or meaning == SHARED_REFERENCE

    cdef int64_t origin_in(self, Entries file) noexcept nogil:
        """Returns what `origin` does of the entry whose attributes were read in this file or the shared one."""
        cdef int64_t found = file.origin()
        # What the shared file refers to is in itself.
        return <int64_t>(<uint64_t>found | SHARED) if found >= 0 and file is not self else found

    cdef int64_t origin(self) noexcept nogil:
        """Returns which entry the one whose attributes were read specifies or instantiates; -1: none; -2: one of another
        file, which is not read."""
        cdef const Value* value = &self.values[SPECIFICATION if self.has_specification() else ORIGIN]
        if value.meaning == SHARED_REFERENCE:
            if self.shared is None or value.value >= self.shared.n_info:
                return -1 if self.is_alone else -2
            return <int64_t>(value.value | SHARED)
        if value.value > self.n_info:
            return -1
        if value.meaning == REFERENCE:
            return value.value
        return self.header.offset + value.value if value.meaning == UNIT_REFERENCE else -1

    def contexts(self, uint64_t entry):
        """Returns the names of the namespaces and classes around an entry, the innermost first: (kind, value) of each,
        as `names` has them, 5 for the number of a lambda; None where they cannot be read."""
        cdef list found = []
        cdef uint64_t value = 0
        cdef int kind
        cdef Entries file
        around = self.context(entry)
        for _ in range(MAX_CONTEXTS):
            if around is None:
                return None
            if around < 0:
                break
            origins = self.origins(around)
            if origins is None:
                return None
            for origin in origins:
                file = self.goes_to(origin)
                if file is None:
                    return None
                kind = self.text_in(file, NAME, &value)
                if kind == ELSEWHERE:
                    return None
                if kind != NO_NAME:
                    found.append((kind, value))
                    break
            else:
                number = self.number_of_lambda(around)
                if number is None:
                    return None
                if number:
                    found.append((LAMBDA, number))
            around = self.context(around)
        return found

    def instances(self, const int64_t[::1] units, const uint64_t[::1] entries):
        """Returns, as `DebugInfo.instance_of` has it, of which entries those are, each of a unit, that are given by their
        offsets: uint64, 0 where that cannot be read."""
        cdef Py_ssize_t row
        self.check_units(units, entries.shape[0])
        found = np.zeros(entries.shape[0], np.uint64)
        cdef uint64_t[::1] instance = found
        for row in range(entries.shape[0]):
            if self.begin(units[row], whole=True):
                instance[row] = self.instance_of(entries[row])
        return found

    cdef uint64_t instance_of(self, uint64_t entry) except? 0:
        cdef int64_t next_ = entry
        cdef uint64_t last = 0
        cdef Entries file
        for _ in range(MAX_ORIGINS):
            file = self.goes_to(next_)
            if file is None:
                return 0
            last = next_
            next_ = self.origin_in(file)
            if next_ < 0 or file.has_specification():
                break
        return last if next_ != -2 else 0

    def declaration(self, uint64_t entry):
        """Returns (in which line and column an entry is declared, in which column it is called), 0 is unknown; None
        where these cannot be read."""
        cdef uint64_t called = 0
        cdef Entries file
        cdef const Value* values
        origins = self.origins(entry)
        if origins is None:
            return None
        for origin in origins:
            file = self.goes_to(origin)
            if file is None:
                return None
            values = file.values
            if origin == entry and values[CALL_COLUMN].meaning == NUMBER:
                called = values[CALL_COLUMN].value
            if values[DECL_LINE].meaning == NUMBER:
                column = values[DECL_COLUMN].value if values[DECL_COLUMN].meaning == NUMBER else 0
                return values[DECL_LINE].value, column, called
        return 0, 0, called

    cdef _Tree tree(self):
        """Returns the entries of the unit; None where they cannot be read."""
        cdef _Tree found = self.trees.get(self.unit)
        if found is None:
            found = _Tree()
            if not found.read(self):
                return None
            if len(self.trees) == MAX_TREES:
                self.trees.clear()
            self.trees[self.unit] = found
        return found

    cdef number_of_lambda(self, uint64_t entry):
        """Returns which lambda of the entry around it an unnamed entry is, from 1; 0 if it is none: classes of lambdas
        have no name, and what can be called. None where it cannot be read."""
        cdef _Tree tree
        cdef Py_ssize_t row, above
        cdef Py_ssize_t of_around = -1
        cdef int n = 0
        if entry & SHARED:
            return self.shared.number_of_lambda(entry & ~SHARED)
        around = self.context(entry)
        if around is None or self.entry_at(entry) < 0:
            return None
        key = self.unit, around
        if key in self.lambdas:
            return self.lambdas[key].get(entry, 0)
        tree = self.tree()
        if tree is None:
            return None
        if around >= 0:
            of_around = tree.row_of(around)
            if of_around < 0:
                return None
        found = self.lambdas[key] = {}
        for row in range(tree.n):
            if tree.nodes[row].kind != TYPE:
                continue
            above = tree.nodes[row].parent
            while of_around >= 0 and above >= 0 and tree.nodes[above].kind == BLOCK:
                above = tree.nodes[above].parent
            if above != of_around:
                continue
            is_one = self.is_lambda(tree, row)
            if is_one is None:
                del self.lambdas[key]
                return None
            if is_one:
                n += 1
                found[tree.nodes[row].offset] = n
        return found.get(entry, 0)

    cdef is_lambda(self, _Tree tree, Py_ssize_t row):
        cdef uint64_t value = 0
        cdef int kind
        cdef Py_ssize_t child
        if self.entry_at(tree.nodes[row].offset) < 0:
            return None
        if self.text(&self.values[NAME], &value) != NO_NAME:
            return False
        for child in range(row + 1, tree.n):
            if tree.nodes[child].parent < row:
                break
            if tree.nodes[child].parent != row:
                continue
            if self.entry_at(tree.nodes[child].offset) < 0:
                return None
            kind = self.text(&self.values[NAME], &value)
            if kind == ELSEWHERE:
                return None
            if kind != NO_NAME and self.begins(kind, value, CALL_OPERATOR):
                return True
        return False

    cdef const uint8_t* text_at(self, int kind, uint64_t at) noexcept nogil:
        """Returns a text, which ends with a zero, as `text` finds it."""
        if kind >= IN_SHARED:
            return self.shared.text_at(kind - IN_SHARED, at)
        if kind == IN_INFO:
            return &self.info_view[at]
        return &self.str_view[at] if kind == IN_STR else &self.line_str_view[at]

    cdef bint are_same(self, int kind, uint64_t at, int other_kind, uint64_t other) noexcept nogil:
        """Whether two texts, as `text` finds them, are equal."""
        if kind == other_kind and at == other:
            return True
        return strcmp(<const char*>self.text_at(kind, at), <const char*>self.text_at(other_kind, other)) == 0

    cdef bint begins(self, int kind, uint64_t at, bytes wanted):
        """Whether a text, as `text` finds it, begins so."""
        return strncmp(<const char*>self.text_at(kind, at), wanted, len(wanted)) == 0

    cdef origins(self, uint64_t entry):
        """Returns the entry itself, then what it specifies or instantiates; None where these cannot be read."""
        cdef list found = []
        cdef int64_t next_ = entry
        cdef Entries file
        for _ in range(MAX_ORIGINS):
            file = self.goes_to(next_)
            if file is None:
                return None
            found.append(next_)
            next_ = self.origin_in(file)
            if next_ == -2:
                return None
            if next_ < 0:
                break
        return found

    cdef context(self, uint64_t entry):
        """Returns what is around the declaration of an entry, -1 for nothing, None where it cannot be read."""
        cdef int64_t row
        cdef uint64_t offset
        cdef _Tree tree
        cdef Entries file
        origins = self.origins(entry)
        if origins is None:
            return None
        for origin in reversed(origins):
            file = self.goes_to(origin)
            if file is None:
                return None
            tree = file.tree()
            if tree is None:
                return None
            offset = origin
            row = tree.row_of(offset & ~SHARED)
            if row < 0:
                continue
            if tree.nodes[row].kind == INLINED:
                continue
            row = tree.nodes[row].parent
            while row >= 0 and tree.nodes[row].kind == BLOCK:
                row = tree.nodes[row].parent
            if row >= 0 and tree.nodes[row].kind in (NAMESPACE, TYPE, UNION, SUBPROGRAM):
                return tree.nodes[row].offset | (offset & SHARED)
        return -1

    cdef bint go_to(self, uint64_t offset) except -1:
        """Goes to the unit that holds an offset."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n_units
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.headers[middle].offset <= offset:
                low = middle + 1
            else:
                high = middle
        if low == 0 or not self.begin(low - 1, whole=True):
            return False
        return self.header.at <= offset < self.header.end

    cdef int text_in(self, Entries file, int slot, uint64_t* found) noexcept nogil:
        """Returns what `text` does of an attribute that was read in this file or the shared one."""
        cdef int kind = file.text(&file.values[slot], found)
        return kind + IN_SHARED if file is not self and kind != NO_NAME and kind != ELSEWHERE else kind

    cdef int text(self, const Value* value, uint64_t* found) noexcept nogil:
        """Returns where a text is: NO_NAME: it is none, or empty."""
        cdef uint64_t size = self.header.offset_size
        cdef uint64_t at = value.value
        cdef int kind = IN_STR
        cdef const uint8_t[::1] data = self.str_view
        if value.meaning == NOTHING or (value.meaning == SHARED_TEXT and self.is_alone):
            return NO_NAME
        if value.meaning == STRING_INDEX:
            if at > self.n_info:
                return ELSEWHERE
            at = self.str_offsets_base + at * size
            if at > <uint64_t>self.str_offsets_view.shape[0] or <uint64_t>self.str_offsets_view.shape[0] - at < size:
                return ELSEWHERE
            at = number(self.str_offsets_view, at, size, self.big)
        elif value.meaning == TEXT:
            kind, data = IN_INFO, self.info_view
        elif value.meaning == LINE_STR:
            kind, data = IN_LINE_STR, self.line_str_view
        elif value.meaning == SHARED_TEXT and self.shared is not None:
            kind, data = IN_SHARED + IN_STR, self.shared.str_view
        elif value.meaning != STR:
            return ELSEWHERE
        if at >= <uint64_t>data.shape[0]:
            return ELSEWHERE
        if data[at] == 0:
            return NO_NAME
        if memchr(&data[at], 0, min(data.shape[0] - at, <uint64_t>MAX_TEXT)) == NULL:
            return ELSEWHERE
        found[0] = at
        return kind


cdef bytes CALL_OPERATOR = b"operator()"
# DW_LANG_* of C, C++ (to 23) and Objective C++: names have namespaces and classes in front.
cdef frozenset QUALIFIED_LANGUAGES = frozenset((0x02, 0x04, 0x11, 0x19, 0x1A, 0x21, 0x2A, 0x2B, 0x3A))


@cython.final
cdef class _Tree:
    """The entries of a unit that are of a kind, by their offsets."""

    def __dealloc__(self):
        free(self.nodes)

    cdef bint read(self, Entries entries) except -1:
        """Whether the entries of the unit could be read."""
        cdef int64_t at = entries.header.at
        cdef int64_t end = entries.header.end
        cdef int64_t offset
        cdef uint64_t code
        cdef const Shape* shape
        cdef int32_t parent = -1
        cdef int32_t row
        cdef list above = []
        if not entries.spend(end - at):
            return False
        while at < end:
            offset = at
            code, at = entries.leb(at, False)
            if at < 0:
                return False
            if code == 0:
                if not above:
                    break
                parent = above.pop()
                continue
            shape = entries.table.of(code)
            if shape == NULL:
                return False
            row = -1
            if shape.kind != OTHER_KIND:
                self.nodes = <Node*>grown(self.nodes, self.n, sizeof(Node))
                self.nodes[self.n] = Node(offset, parent, shape.kind)
                row = self.n
                self.n += 1
            at = entries.skipped(shape, at)
            if at < 0:
                return False
            if shape.has_children:
                above.append(parent)
                parent = row
        return True

    cdef Py_ssize_t row_of(self, uint64_t offset) noexcept nogil:
        """Returns the row of an entry, -1 where none begins there."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.nodes[middle].offset < offset:
                low = middle + 1
            else:
                high = middle
        return low if low < self.n and self.nodes[low].offset == offset else -1


@cython.final
cdef class LookUps:
    """Look-ups of many addresses (uint64) in units of `entries`, one after another. asked: rising; text: (begin,
    end) of sections with code, rising."""

    cdef Entries entries
    cdef const uint64_t[::1] all_asked
    cdef const uint64_t[:, ::1] text
    # Of each of them: the piece, and the innermost call, -1: none.
    cdef int64_t[::1] piece_of
    cdef int64_t[::1] call_of
    # Those that are asked for in the unit that is read, rising: their rows, and the same of these.
    cdef uint64_t* asked
    cdef int64_t* rows
    cdef int64_t* piece
    cdef int64_t* call
    cdef Py_ssize_t n
    cdef Py_ssize_t n_room
    cdef int64_t unit
    # Those of all units, and how many there were before this one.
    cdef Piece* pieces
    cdef Py_ssize_t n_pieces
    cdef Py_ssize_t n_pieces_before
    cdef Call* calls
    cdef Py_ssize_t n_calls
    cdef Py_ssize_t n_call_room
    cdef Ranges ranges
    # Of each level of children: the call that they are inlined into.
    cdef int64_t* levels
    cdef Py_ssize_t n_level_room
    cdef bint has_skipped
    cdef bint is_damaged

    def __init__(self, Entries entries, const uint64_t[::1] asked, const uint64_t[:, ::1] text):
        if text.shape[1] != 2:
            raise ValueError("text: pairs are needed")
        self.entries = entries
        self.all_asked = asked
        self.text = text
        self.piece_of = np.full(asked.shape[0], -1, np.int64)
        self.call_of = np.full(asked.shape[0], -1, np.int64)
        self.ranges = Ranges()

    def __dealloc__(self):
        free(self.asked)
        free(self.rows)
        free(self.piece)
        free(self.call)
        free(self.pieces)
        free(self.calls)
        free(self.levels)

    @property
    def is_found(self):
        """Of each address, whether a piece of a function holds it: bool."""
        return np.asarray(self.piece_of) >= 0

    def read(self, Py_ssize_t nth, const int64_t[::1] rows):
        """Looks in a unit for those of the addresses, given by their rows, rising, that are not found yet. Returns False
        where the unit's entries cannot be read: it then holds none."""
        cdef Py_ssize_t n_pieces = self.n_pieces
        cdef Py_ssize_t n_calls = self.n_calls
        cdef Py_ssize_t row
        if not 0 <= nth < self.entries.n_units:
            raise IndexError
        self.ask_for(rows)
        if self.n == 0:
            return True
        self.unit, self.n_pieces_before = nth, n_pieces
        if not self.entries.begin(nth, whole=True) or not self.find():
            self.n_pieces, self.n_calls = n_pieces, n_calls
            return False
        for row in range(self.n):
            self.piece_of[self.rows[row]], self.call_of[self.rows[row]] = self.piece[row], self.call[row]
        return True

    cdef int ask_for(self, const int64_t[::1] rows) except -1:
        """Asks for those of the addresses that are not found yet."""
        cdef Py_ssize_t n = rows.shape[0]
        cdef Py_ssize_t nth
        if n > self.n_room:
            self.asked = <uint64_t*>resized(self.asked, n * sizeof(uint64_t))
            self.rows = <int64_t*>resized(self.rows, n * sizeof(int64_t))
            self.piece = <int64_t*>resized(self.piece, n * sizeof(int64_t))
            self.call = <int64_t*>resized(self.call, n * sizeof(int64_t))
            self.n_room = n
        self.n = 0
        for nth in range(n):
            if not 0 <= rows[nth] < self.all_asked.shape[0]:
                raise IndexError
            if self.piece_of[rows[nth]] < 0:
                self.asked[self.n], self.rows[self.n] = self.all_asked[rows[nth]], rows[nth]
                self.piece[self.n] = self.call[self.n] = -1
                self.n += 1
        return 0

    cdef bint find(self) except -1:
        cdef Py_ssize_t nth, row
        self.has_skipped = self.is_damaged = False
        if not self.find_pieces(self.entries.skips):
            return False
        if self.has_skipped:
            for nth in range(self.n):
                if self.piece[nth] < 0:
                    self.n_pieces = self.n_pieces_before
                    for row in range(self.n):
                        self.piece[row] = -1
                    if not self.find_pieces(False):
                        return False
                    break
        for nth in range(self.n_pieces_before, self.n_pieces):
            if not self.find_calls(nth):
                return False
        return True

    cdef Py_ssize_t first_from(self, uint64_t address) noexcept nogil:
        """Returns the first address that is asked for and not below this one."""
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.n
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.asked[middle] < address:
                low = middle + 1
            else:
                high = middle
        return low

    cdef bint is_code(self, uint64_t address) noexcept nogil:
        cdef Py_ssize_t low = 0
        cdef Py_ssize_t high = self.text.shape[0]
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.text[middle, 0] <= address:
                low = middle + 1
            else:
                high = middle
        return low > 0 and address + 1 <= self.text[low - 1, 1]

    cdef bint find_pieces(self, bint skips) except -1:
        """Finds the function of each address."""
        cdef Entries entries = self.entries
        cdef const uint8_t* info = entries.info
        cdef int64_t at = entries.header.at
        cdef int64_t end = entries.header.end
        cdef int64_t offset, next_
        cdef uint64_t code
        cdef Py_ssize_t depth = 0
        cdef const Shape* shape
        cdef bint is_wanted, is_asked
        if not entries.spend(end - at):
            return False
        while at < end:
            offset = at
            if info[at] < 0x80:
                code, at = info[at], at + 1
            else:
                code, at = entries.leb(at, False)
                if at < 0:
                    return False
            if code == 0:
                if depth == 0:
                    break
                depth -= 1
                continue
            shape = entries.table.of(code)
            if shape == NULL:
                return False
            is_wanted = shape.kind == SUBPROGRAM and shape.has_code
            if not is_wanted and not (skips and shape.has_sibling and (shape.kind == SUBPROGRAM or shape.kind == TYPE or shape.kind == UNION)):
                at = entries.skipped(shape, at)
                if at < 0:
                    return False
                depth += shape.has_children
                continue
            at = entries.attributes(shape, at)
            if at < 0:
                return False
            is_asked = is_wanted and self.add_pieces(offset, at if shape.has_children else 0)
            if self.is_damaged:
                return False
            if not shape.has_children:
                continue
            next_ = entries.sibling(at) if skips and not is_asked else -1
            if next_ >= 0:
                self.has_skipped = True
                at = next_
            else:
                depth += 1
        return True

    cdef bint add_pieces(self, uint64_t entry, uint64_t children) except -1:
        """Whether addresses are asked for in the function whose attributes were read."""
        cdef Py_ssize_t nth, row, first
        cdef Range held
        cdef Piece* other
        cdef bint is_asked = False
        cdef bint is_better
        self.ranges.n = 0
        if not self.entries.ranges_of_entry(self.ranges):
            self.is_damaged = True
            return False
        for nth in range(self.ranges.n):
            held = self.ranges.held[nth]
            if held.begin >= held.end or held.end - held.begin >= MAX_SIZE or not self.is_code(held.begin):
                continue
            first = self.first_from(held.begin)
            if first == self.n or self.asked[first] >= held.end:
                continue
            is_asked = True
            self.pieces = <Piece*>grown(self.pieces, self.n_pieces, sizeof(Piece))
            self.pieces[self.n_pieces] = Piece(held.begin, held.end, entry, children, self.unit)
            for row in range(first, self.n):
                if self.asked[row] >= held.end:
                    break
                self.entries.left -= 1
                # Of several the last that begins, then the shortest, then the first.
                if self.piece[row] >= 0:
                    other = &self.pieces[self.piece[row]]
                    is_better = held.begin > other.begin or (held.begin == other.begin and held.end < other.end)
                    if not is_better:
                        continue
                self.piece[row] = self.n_pieces
            self.n_pieces += 1
        return is_asked

    cdef bint find_calls(self, Py_ssize_t nth) except -1:
        """Finds the inlined calls of the addresses of a piece."""
        cdef Entries entries = self.entries
        cdef Piece piece = self.pieces[nth]
        cdef const uint8_t* info = entries.info
        cdef int64_t at = piece.children
        cdef int64_t end = entries.header.end
        cdef int64_t offset, next_
        cdef int64_t call
        cdef uint64_t code
        cdef Py_ssize_t depth = 0
        # Below a child that is not looked into.
        cdef Py_ssize_t ignored = 0
        cdef Py_ssize_t first = self.first_from(piece.begin)
        cdef const Shape* shape
        while first < self.n and self.asked[first] < piece.end and self.piece[first] != nth:
            first += 1
        if piece.children == 0 or first == self.n or self.asked[first] >= piece.end:
            return True
        self.ranges.n = 0
        self.ranges.add(piece.begin, piece.end)
        self.set_level(0, -1)
        while at < end:
            offset = at
            if info[at] < 0x80:
                code, at = info[at], at + 1
            else:
                code, at = entries.leb(at, False)
                if at < 0:
                    return False
            if not entries.spend(1):
                return False
            if code == 0:
                if ignored:
                    ignored -= 1
                elif depth == 0:
                    return True
                else:
                    depth -= 1
                continue
            shape = entries.table.of(code)
            if shape == NULL:
                return False
            if ignored or (shape.kind != INLINED and not shape.has_children):
                at = entries.skipped(shape, at)
                if at < 0:
                    return False
                ignored += ignored > 0 and shape.has_children
                continue
            at = entries.attributes(shape, at)
            if at < 0:
                return False
            call = self.levels[depth]
            if shape.kind == INLINED:
                call = self.add_call(nth, offset, call)
                if call == -2:
                    return False
            elif shape.kind != BLOCK:
                call = -3
            if not shape.has_children:
                continue
            if call == -3:
                next_ = entries.sibling(at)
                if next_ >= 0:
                    at = next_
                else:
                    ignored = 1
                continue
            depth += 1
            self.set_level(depth, call)
        return True

    cdef int set_level(self, Py_ssize_t depth, int64_t call) except -1:
        if depth == self.n_level_room:
            self.n_level_room = 2 * depth + 64
            self.levels = <int64_t*>resized(self.levels, self.n_level_room * sizeof(int64_t))
        self.levels[depth] = call
        return 0

    cdef int64_t add_call(self, Py_ssize_t nth, uint64_t entry, int64_t parent) except -1000:
        """Returns the number of the call whose attributes were read; -3: none of the addresses is in it; -2: its ranges
        are damaged. parent: the call that it is inlined into, -1: the function."""
        cdef Py_ssize_t first = self.ranges.n
        cdef Py_ssize_t kept = first
        cdef Py_ssize_t row, at
        cdef Py_ssize_t within = self.calls[parent].first_range if parent >= 0 else 0
        cdef Py_ssize_t within_end = self.calls[parent].end_range if parent >= 0 else 1
        cdef int32_t depth = self.calls[parent].depth + 1 if parent >= 0 else 1
        cdef Range held
        cdef bint is_asked = False
        cdef Value* values = self.entries.values
        cdef uint64_t file = values[CALL_FILE].value if values[CALL_FILE].meaning == NUMBER else ~<uint64_t>0
        cdef uint64_t line = values[CALL_LINE].value if values[CALL_LINE].meaning == NUMBER else 0
        cdef uint64_t discriminator = values[DISCRIMINATOR].value if values[DISCRIMINATOR].meaning == NUMBER else 0
        if depth > MAX_INLINED:
            return -3
        if not self.entries.ranges_of_entry(self.ranges):
            return -2
        for row in range(first, self.ranges.n):
            held = self.ranges.held[row]
            if self.is_within(within, within_end, held):
                self.ranges.held[kept] = held
                kept += 1
        self.ranges.n = kept
        self.ranges.merge_from(first)
        for row in range(first, self.ranges.n):
            held = self.ranges.held[row]
            for at in range(self.first_from(held.begin), self.n):
                if self.asked[at] >= held.end:
                    break
                self.entries.left -= 1
                if self.piece[at] == nth and self.call[at] == parent:
                    self.call[at] = self.n_calls
                    is_asked = True
        if not is_asked or self.entries.left < 0:
            self.ranges.n = first
            return -3 if self.entries.left >= 0 else -2
        if self.n_calls == self.n_call_room:
            self.n_call_room = 2 * self.n_call_room + 64
            self.calls = <Call*>resized(self.calls, self.n_call_room * sizeof(Call))
        self.calls[self.n_calls] = Call(entry, line, discriminator, file, parent, self.unit, first, self.ranges.n, depth)
        self.n_calls += 1
        return self.n_calls - 1

    cdef bint is_within(self, Py_ssize_t low, Py_ssize_t high, Range held) noexcept nogil:
        """Whether one of merged ranges holds this one."""
        cdef Py_ssize_t first = low
        cdef Py_ssize_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.ranges.held[middle].begin <= held.begin:
                low = middle + 1
            else:
                high = middle
        return low > first and held.end <= self.ranges.held[low - 1].end

    def frames(self):
        """Returns (begin, end), uint64, of the piece that holds each address, 0 where none does; and (first, place), int64:
        the frames of the i-th address are of place[first[i]:first[i + 1]], rows of `places`, the innermost call first, the
        function last."""
        cdef Py_ssize_t n = self.all_asked.shape[0]
        cdef Py_ssize_t nth
        cdef int64_t call
        cdef int64_t row = 0
        cdef const Piece* piece
        begins, ends = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        firsts = np.zeros(n + 1, np.int64)
        cdef uint64_t[::1] begin = begins
        cdef uint64_t[::1] end = ends
        cdef int64_t[::1] first = firsts
        for nth in range(n):
            if self.piece_of[nth] >= 0:
                row += 1
                call = self.call_of[nth]
                while call >= 0:
                    row += 1
                    call = self.calls[call].parent
            first[nth + 1] = row
        places = np.empty(row, np.int64)
        cdef int64_t[::1] place = places
        row = 0
        for nth in range(n):
            if self.piece_of[nth] < 0:
                continue
            piece = &self.pieces[self.piece_of[nth]]
            begin[nth], end[nth] = piece.begin, piece.end
            call = self.call_of[nth]
            while call >= 0:
                place[row] = call
                row += 1
                call = self.calls[call].parent
            place[row] = self.n_calls + self.piece_of[nth]
            row += 1
        return begins, ends, firsts, places

    def places(self):
        """Returns columns of the calls and pieces that hold addresses: unit: int64; entry (its offset), file, line,
        discriminator: uint64: those of a call are where it is, those of a piece 2^64 - 1, 0 and 0."""
        cdef Py_ssize_t n = self.n_calls + self.n_pieces
        cdef Py_ssize_t row
        units = np.empty(n, np.int64)
        entries, files, lines, discriminators = (np.empty(n, np.uint64) for _ in range(4))
        cdef int64_t[::1] unit = units
        cdef uint64_t[::1] entry = entries
        cdef uint64_t[::1] file = files
        cdef uint64_t[::1] line = lines
        cdef uint64_t[::1] discriminator = discriminators
        for row in range(self.n_calls):
            unit[row], entry[row] = self.calls[row].unit, self.calls[row].entry
            file[row], line[row] = self.calls[row].file, self.calls[row].line
            discriminator[row] = self.calls[row].discriminator
        for row in range(self.n_pieces):
            unit[self.n_calls + row], entry[self.n_calls + row] = self.pieces[row].unit, self.pieces[row].entry
            file[self.n_calls + row], line[self.n_calls + row] = ~<uint64_t>0, 0
            discriminator[self.n_calls + row] = 0
        return units, entries, files, lines, discriminators
