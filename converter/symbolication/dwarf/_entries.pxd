"""The units of a .debug_info that are read in bulk: kinds of entries, the attributes that are read, and their values."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from traceferry.native.bytes cimport number
from traceferry.native.leb128 cimport leb, short_leb
from traceferry.symbolication._ranges cimport Ranges

# The kinds of entries, as KINDS of entries.py numbers them.
cdef enum:
    OTHER_KIND
    SUBPROGRAM
    INLINED
    BLOCK
    TYPE
    PARTIAL
    NAMESPACE
    UNION

# The attributes that are read, as SLOTS of entries.py numbers them.
cdef enum:
    NOT_READ
    NAME
    LINKAGE
    MIPS_LINKAGE
    LOW
    HIGH
    RANGES
    SIBLING
    ORIGIN
    SPECIFICATION
    CALL_FILE
    CALL_LINE
    LANGUAGE
    PRODUCER
    STR_OFFSETS_BASE
    ADDR_BASE
    RNGLISTS_BASE
    SPLIT_NAME
    STMT_LIST
    COMP_DIR
    DECL_LINE
    DECL_COLUMN
    CALL_COLUMN
    DISCRIMINATOR
    DECL_FILE
    N_SLOTS

# The meanings of values, in the order of SIZES of forms.py.
cdef enum:
    NOTHING
    ADDRESS
    NUMBER
    TEXT
    STR
    LINE_STR
    REFERENCE
    UNIT_REFERENCE
    STRING_INDEX
    ADDRESS_INDEX
    RANGE_INDEX
    OTHER_MEANING
    SHARED_REFERENCE
    SHARED_TEXT

# How many bytes a value has that has no fixed number of them, as SIZE_CODES of entries.py says.
cdef enum:
    ULEB = -1
    SLEB = -2
    STRING = -3
    INDIRECT = -4
    BLOCK_ULEB = -5
    BLOCK_1 = -6
    BLOCK_2 = -7
    BLOCK_4 = -8
    OF_ADDRESS = -9
    OF_OFFSET = -10
    OF_REF_ADDR = -11
    UNKNOWN = -12

cdef enum:
    N_FORMS = 0x34
    IMPLICIT_CONST = 0x21
    MAX_INLINED = 128
    MAX_ORIGINS = 16
    MAX_CONTEXTS = 64
    MAX_TEXT = 1 << 16
    # Codes of abbreviations are found in an array, which is no longer than so many times what they need.
    SPARSE = 4
    # How much of everything is done for each byte of the sections.
    EFFORT = 8
    # The bit of entries, and of units, that are in the file that several share.
    SHARED_BIT = 62
    # DW_UT_*
    UT_COMPILE = 1
    UT_TYPE = 2
    UT_SKELETON = 4
    UT_SPLIT_COMPILE = 5
    UT_SPLIT_TYPE = 6

# How a name was found.
cdef enum:
    NO_NAME
    IN_INFO
    IN_STR
    IN_LINE_STR
    ELSEWHERE
    LAMBDA
    # What is added of texts in the file that several share, and of those that have others in front.
    IN_SHARED = 16
    QUALIFIED = 32

# What is known of a unit.
cdef enum:
    READABLE
    WITHOUT_CODE
    UNUSUAL
    SPLIT


cdef struct Attribute:
    uint8_t slot
    uint8_t meaning
    uint8_t is_constant
    int32_t size
    int64_t constant


cdef struct Shape:
    uint8_t kind
    uint8_t has_children
    uint8_t has_code
    uint8_t has_sibling
    int32_t first
    int32_t end
    # Of all attributes together; -1: it differs.
    int64_t size


cdef struct Value:
    uint64_t value
    uint8_t meaning


cdef struct Piece:
    uint64_t begin
    uint64_t end
    uint64_t entry
    # Where its first child is, 0 without any.
    uint64_t children
    int64_t unit


cdef struct Node:
    uint64_t offset
    # The row of the entry directly above, -1 where that is of another kind.
    int32_t parent
    uint8_t kind


cdef struct Header:
    uint64_t offset
    uint64_t end
    uint64_t at
    uint64_t abbrev
    uint8_t version
    uint8_t kind
    uint8_t address_size
    uint8_t offset_size


@cython.final
cdef class Forms:
    cdef int32_t[N_FORMS] sizes
    cdef uint8_t[N_FORMS] meanings
    cdef dict slots
    cdef dict kinds


@cython.final
cdef class Table:
    cdef Attribute* attributes
    cdef Shape* shapes
    cdef int32_t* index
    cdef Py_ssize_t n_index
    cdef Py_ssize_t n_attributes
    cdef Py_ssize_t n_shapes

    cdef inline const Shape* of(self, uint64_t code) noexcept nogil:
        """Returns NULL for a code that is not declared."""
        if code >= <uint64_t>self.n_index or self.index[code] < 0:
            return NULL
        return &self.shapes[self.index[code]]


@cython.final
cdef class _Tree:
    cdef Node* nodes
    cdef Py_ssize_t n

    cdef bint read(self, Entries entries) except -1
    cdef Py_ssize_t row_of(self, uint64_t offset) noexcept nogil


@cython.final
cdef class Entries:
    cdef const uint8_t[::1] info_view
    cdef const uint8_t[::1] abbrev_view
    cdef const uint8_t[::1] ranges_view
    cdef const uint8_t[::1] rnglists_view
    cdef const uint8_t[::1] addr_view
    cdef const uint8_t[::1] str_offsets_view
    cdef const uint8_t[::1] str_view
    cdef const uint8_t[::1] line_str_view
    cdef const uint8_t* info
    cdef uint64_t n_info
    cdef bint big
    cdef Forms forms
    cdef dict tables
    # By unit, which entries hold others.
    cdef dict trees
    # By unit and entry, the numbers of the lambdas in it.
    cdef dict lambdas
    cdef Header* headers
    cdef Py_ssize_t n_units
    # What may still be done.
    cdef int64_t left
    cdef int64_t allowed
    # Of each unit: READABLE...; offset and end of each.
    cdef readonly object states
    # (unit, begin, end) of each range of the units' code.
    cdef readonly object code
    # The unit that is read, and what its first entry says.
    cdef Py_ssize_t unit
    cdef Header header
    cdef Table table
    cdef uint64_t low
    cdef uint64_t str_offsets_base
    cdef uint64_t addr_base
    cdef uint64_t rnglists_base
    cdef uint64_t language
    cdef bint skips
    cdef bint is_split
    # Attributes of the entry that was read last, and its kind.
    cdef Value[N_SLOTS] values
    cdef int kind
    # The units of the file that several share, None: it is not read; is_alone: since it is not here.
    cdef readonly Entries shared
    cdef bint is_alone
    # Of a unit in a file of its own: what the one that it completes says.
    cdef bint is_completing
    cdef uint64_t outer_low
    cdef uint64_t outer_addr_base
    cdef uint64_t outer_ranges_base

    cdef inline bint has(self, uint64_t at, uint64_t size) noexcept nogil:
        return at <= self.n_info and self.n_info - at >= size

    cdef inline uint64_t u(self, uint64_t at, uint64_t size) noexcept nogil:
        return number(self.info_view, at, size, self.big)

    cdef inline bint spend(self, int64_t amount) noexcept nogil:
        self.left -= amount
        return self.left >= 0

    cdef inline (uint64_t, int64_t) leb(self, int64_t at, bint signed) noexcept nogil:
        if at + 8 <= <int64_t>self.n_info:
            return short_leb(self.info_view, at, self.n_info, signed)
        return leb(self.info_view, at, self.n_info, signed)

    cdef inline bint in_lists(self, uint64_t at, uint64_t size) noexcept nogil:
        return at <= <uint64_t>self.rnglists_view.shape[0] and <uint64_t>self.rnglists_view.shape[0] - at >= size

    cdef bint is_of_types(self, Py_ssize_t nth) noexcept nogil
    cdef bint is_partial(self)
    cdef bint header_at(self, uint64_t at, Header* header) noexcept nogil
    cdef bint begin(self, Py_ssize_t nth, bint whole) except -1
    cdef bint is_of_gcc(self, const Value* producer) noexcept nogil
    cdef bint read_table(self, Table table, uint64_t wanted) except -1
    cdef int32_t size_of(self, int32_t size) noexcept nogil
    cdef int64_t after(self, int32_t size, int64_t at) noexcept nogil
    cdef int64_t attributes(self, const Shape* shape, int64_t at) noexcept nogil
    cdef int64_t skipped(self, const Shape* shape, int64_t at) noexcept nogil
    cdef bint address(self, const Value* value, uint64_t* found) noexcept nogil
    cdef int64_t sibling(self, uint64_t at) noexcept nogil
    cdef bint ranges_of_entry(self, Ranges ranges) except -1
    cdef bint range_list(self, Ranges ranges, uint64_t at) except -1
    cdef bint rnglist(self, Ranges ranges, uint64_t at) except -1
    cdef int check_units(self, const int64_t[::1] units, Py_ssize_t n) except -1
    cdef int name_of(self, uint64_t offset, uint64_t* found, uint64_t* target) except -1
    cdef int entry_at(self, uint64_t offset) except -2
    cdef Entries goes_to(self, uint64_t entry)
    cdef uint64_t instance_of(self, uint64_t entry) except? 0
    cdef bint has_specification(self) noexcept nogil
    cdef int64_t origin(self) noexcept nogil
    cdef int64_t origin_in(self, Entries file) noexcept nogil
    cdef int text_in(self, Entries file, int slot, uint64_t* found) noexcept nogil
    cdef _Tree tree(self)
    cdef number_of_lambda(self, uint64_t entry)
    cdef is_lambda(self, _Tree tree, Py_ssize_t row)
    cdef const uint8_t* text_at(self, int kind, uint64_t at) noexcept nogil
    cdef bint are_same(self, int kind, uint64_t at, int other_kind, uint64_t other) noexcept nogil
    cdef bint begins(self, int kind, uint64_t at, bytes wanted)
    cdef origins(self, uint64_t entry)
    cdef context(self, uint64_t entry)
    cdef bint go_to(self, uint64_t offset) except -1
    cdef int text(self, const Value* value, uint64_t* found) noexcept nogil
