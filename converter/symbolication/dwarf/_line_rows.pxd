"""The rows of line programs, and the names of their files."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from traceferry.native.cursor cimport Cursor
from traceferry.native.memory cimport resized


cdef struct Row:
    uint64_t address
    uint32_t file
    uint32_t line
    uint32_t discriminator


# Its first row, the first behind it, the address at which it ends.
cdef struct Sequence:
    int64_t first_row
    int64_t end_row
    uint64_t end


cdef struct Place:
    uint64_t at
    uint64_t folder
    uint8_t kind


@cython.final
cdef class _Places:
    cdef Place* held
    cdef Py_ssize_t n
    cdef Py_ssize_t n_room

    cdef int add(self, Place place) except -1


@cython.final
cdef class LineRows:
    cdef const uint8_t[::1] data
    cdef Cursor cursor
    cdef readonly bint is_read
    cdef readonly int version
    cdef readonly uint64_t n_spent
    cdef uint64_t begin
    cdef uint64_t end
    cdef int offset_size
    cdef uint64_t step
    cdef int64_t line_base
    cdef uint64_t line_range
    cdef uint64_t opcode_base
    cdef uint64_t lengths_at
    cdef _Places folders
    cdef _Places files
    cdef Row* rows
    cdef int64_t n_rows
    cdef int64_t n_room
    # By their ends.
    cdef Sequence* sequences
    cdef Py_ssize_t n_sequences

    cdef inline int add_row(
        self, int64_t first, uint64_t address, uint64_t file, uint64_t line, uint64_t discriminator
    ) except -1:
        cdef Row* last
        if self.n_rows > first:
            last = &self.rows[self.n_rows - 1]
            if address <= last.address:
                if address == last.address:
                    last.file, last.line = <uint32_t>min(file, <uint64_t>0xFFFFFFFF), <uint32_t>line
                    last.discriminator = <uint32_t>discriminator
                return 0
        if self.n_rows == self.n_room:
            self.n_room = 2 * self.n_room + 256
            self.rows = <Row*>resized(self.rows, self.n_room * sizeof(Row))
        last = &self.rows[self.n_rows]
        last.address, last.file, last.line = address, <uint32_t>min(file, <uint64_t>0xFFFFFFFF), <uint32_t>line
        last.discriminator = <uint32_t>discriminator
        self.n_rows += 1
        return 0

    cdef bint read_header(self, uint64_t at) except -1
    cdef bint text(self, Place* place)
    cdef bint read_lists(self) except -1
    cdef bint read_table(self, _Places places) except -1
    cdef bint run(self) except -1
    cdef int64_t row_at(self, uint64_t begin, uint64_t end, uint64_t address) noexcept nogil
    cdef int64_t last_row(self, Py_ssize_t sequence, uint64_t address) noexcept nogil
