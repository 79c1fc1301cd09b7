"""DWARF expressions over registers and a copy of a part of the stack. Source: DWARF 5, section 2.5."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from traceferry.native.bytes cimport number, u64
from traceferry.native.cursor cimport Cursor

cdef enum:
    MAX_REGISTERS = 64
    MAX_VALUES = 64

# Why there is no value.
cdef enum:
    NO_MEMORY = 1
    NO_REGISTER
    NOT_AN_EXPRESSION


cdef struct Registers:
    # The registers of a frame, by DWARF number. known: a bit for each that has a value.
    uint64_t known
    uint64_t values[MAX_REGISTERS]


cdef inline bint is_known(const Registers* registers, int register) noexcept nogil:
    return (registers.known >> register & 1) != 0


cdef inline void forget(Registers* registers, int register) noexcept nogil:
    registers.known &= ~(<uint64_t>1 << register)


cdef inline void set_register(Registers* registers, int register, uint64_t value) noexcept nogil:
    registers.values[register] = value
    registers.known |= <uint64_t>1 << register


cdef class Memory:
    """The `size` bytes of a stack from the address `low` on, which lie in data from `at` on.

    missing: the last address that was asked for and is not known; failure: why there is no value, 0: there is one.
    """

    cdef const uint8_t[::1] data
    cdef bint big
    cdef uint64_t low
    cdef uint64_t at
    cdef uint64_t size
    cdef uint64_t missing
    cdef int failure

    cdef inline void begin(self, uint64_t low, uint64_t at, uint64_t size) noexcept nogil:
        """Goes to another stack. at, size: inside the data."""
        self.low = low
        self.at = at
        self.size = size
        self.missing = 0
        self.failure = 0

    cdef inline uint64_t load(self, uint64_t address, uint64_t width) noexcept nogil:
        """Returns an integer of 1, 2, 4 or 8 bytes; 0, and sets `failure`, where it is not known."""
        cdef uint64_t offset = address - self.low
        if offset >= self.size or self.size - offset < width:
            self.missing = address
            self.failure = NO_MEMORY
            return 0
        # Small enough to be inlined.
        if width == 8:
            return u64(self.data, self.at + offset, self.big)
        return number(self.data, self.at + offset, width, self.big)


cdef class Evaluator:
    """Evaluates expressions for a machine of so many registers and words of 4 or 8 bytes.

    n_steps: how many operations may still be evaluated, of all expressions together.
    """

    cdef Memory memory
    cdef Cursor code
    cdef int64_t n_steps
    cdef int word
    cdef uint64_t word_mask
    cdef uint64_t n_registers
    cdef uint64_t begin
    cdef int n
    cdef uint64_t stack[MAX_VALUES]

    cdef void read_from(self, const uint8_t[::1] pool)
    cdef uint64_t evaluate(
        self, uint64_t at, uint64_t length, const Registers* registers, const uint64_t* start
    ) noexcept nogil
    cdef void step(self, const Registers* registers) noexcept nogil
    cdef uint64_t based(self, int op, const Registers* registers) noexcept nogil
    cdef uint64_t constant(self, int op) noexcept nogil
    cdef void rearrange(self, int op) noexcept nogil
    cdef void branch(self, int op) noexcept nogil
    cdef uint64_t unary(self, int op, uint64_t b) noexcept nogil
    cdef uint64_t binary(self, int op, uint64_t a, uint64_t b) noexcept nogil
    cdef int64_t signed(self, uint64_t value) noexcept nogil

    cdef inline void fail(self) noexcept nogil:
        if self.memory.failure == 0:
            self.memory.failure = NOT_AN_EXPRESSION

    cdef inline void push(self, uint64_t value) noexcept nogil:
        self.stack[self.n] = value & self.word_mask
        self.n += 1

    cdef inline uint64_t pop(self) noexcept nogil:
        if self.n < 1:
            self.fail()
            return 0
        self.n -= 1
        return self.stack[self.n]
