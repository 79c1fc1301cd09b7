"""The methods of _expressions.pxd that are too long to be inlined."""

from libc.stdint cimport UINT32_MAX, UINT64_MAX

cdef enum:
    MAX_STEPS = 1000


cdef class Memory:
    def __cinit__(self, const uint8_t[::1] data, bint big):
        self.data = data
        self.big = big
        self.begin(0, 0, 0)


cdef class Evaluator:
    def __cinit__(self, Memory memory, int word, int n_registers):
        self.memory = memory
        self.code = Cursor(b"", memory.big)
        self.word = word
        self.word_mask = UINT32_MAX if word == 4 else UINT64_MAX
        self.n_registers = n_registers

    cdef void read_from(self, const uint8_t[::1] pool):
        """Takes the bytes in which expressions lie."""
        self.code.data = pool

    cdef uint64_t evaluate(
        self, uint64_t at, uint64_t length, const Registers* registers, const uint64_t* start
    ) noexcept nogil:
        """Returns the value on top of the stack behind the expression pool[at:at + length]; 0, and sets memory.failure,
        where there is none. start: what lies on the stack at first, NULL for nothing."""
        cdef int64_t last = max(self.n_steps - MAX_STEPS, 0)
        self.begin = at
        self.code.begin(at, at + length)
        self.memory.failure = 0
        self.n = 0
        if start != NULL:
            self.push(start[0])
        while self.code.at < self.code.end and self.memory.failure == 0 and self.code.damage == 0:
            if self.n_steps <= last or self.n > MAX_VALUES - 2:
                self.fail()
            else:
                self.n_steps -= 1
                self.step(registers)
        if self.code.damage != 0 or self.n < 1:
            self.fail()
        return self.stack[self.n - 1] if self.memory.failure == 0 else 0

    cdef void step(self, const Registers* registers) noexcept nogil:
        """Evaluates one operation."""
        cdef uint64_t b
        cdef int op = self.code.fixed(1)
        if 0x30 <= op <= 0x4F:  # lit0 to lit31
            self.push(op - 0x30)
        elif 0x70 <= op <= 0x8F or op == 0x92:  # breg0 to breg31, bregx
            self.push(self.based(op, registers))
        elif 0x08 <= op <= 0x11 or op == 0x03:
            self.push(self.constant(op))
        elif 0x12 <= op <= 0x17:
            self.rearrange(op)
        elif op == 0x28 or op == 0x2F:
            self.branch(op)
        elif op == 0x06 or op == 0x94 or op == 0x23 or op == 0x19 or op == 0x1F or op == 0x20:
            b = self.pop()
            self.push(self.unary(op, b))
        elif op != 0x96:  # nop
            b = self.pop()
            self.push(self.binary(op, self.pop(), b))

    cdef uint64_t based(self, int op, const Registers* registers) noexcept nogil:
        """Returns the sum of a register and an offset."""
        cdef uint64_t register = self.code.uleb() if op == 0x92 else op - 0x70
        cdef uint64_t offset = self.code.sleb()
        if register >= self.n_registers or not is_known(registers, register):
            if self.memory.failure == 0:
                self.memory.failure = NO_REGISTER
            return 0
        return registers.values[register] + offset

    cdef uint64_t constant(self, int op) noexcept nogil:
        """Returns the number that follows the operation."""
        cdef uint64_t size
        if op == 0x10 or op == 0x11:  # constu, consts
            return self.code.leb(op == 0x11)
        if op == 0x03:  # addr
            return self.code.fixed(self.word)
        size = 1 << (op - 0x08 >> 1)  # const1u, const1s, const2u ... const8s
        return self.code.fixed_signed(size) if op & 1 else self.code.fixed(size)

    cdef void rearrange(self, int op) noexcept nogil:
        """Copies, drops or moves values of the stack."""
        cdef int n = self.n
        cdef int i = 0
        cdef uint64_t top
        if op == 0x14:  # over
            i = 1
        elif op == 0x15:  # pick
            i = self.code.fixed(1)
        elif op == 0x16 or op == 0x17:  # swap, rot
            i = op - 0x15
        if i >= n:
            self.fail()
        elif op == 0x13:  # drop
            self.n = n - 1
        elif op < 0x16:  # dup, over, pick
            self.push(self.stack[n - 1 - i])
        else:
            top = self.stack[n - 1]
            self.stack[n - 1] = self.stack[n - 2]
            if op == 0x17:
                self.stack[n - 2] = self.stack[n - 3]
            self.stack[n - 1 - i] = top

    cdef void branch(self, int op) noexcept nogil:
        """Evaluates skip and bra: the one always jumps, the other unless 0 is on top."""
        cdef uint64_t distance = self.code.fixed_signed(2)
        cdef uint64_t target = self.code.at + distance
        if op == 0x28 and self.pop() == 0:
            return
        if target < self.begin or target > self.code.end:
            self.fail()
        else:
            self.code.at = target

    cdef uint64_t unary(self, int op, uint64_t b) noexcept nogil:
        """Returns the result of an operation on one value; what is beyond a word is dropped when it is pushed."""
        cdef uint64_t size
        if op == 0x06:  # deref
            return self.memory.load(b, self.word)
        if op == 0x94:  # deref_size
            size = self.code.fixed(1)
            if size == 1 or size == 2 or size == 4 or size == 8:
                return self.memory.load(b, size)
            self.fail()
            return 0
        if op == 0x23:  # plus_uconst
            return b + self.code.uleb()
        if op == 0x20:  # not
            return ~b
        return 0 - b if op == 0x1F or self.signed(b) < 0 else b  # neg, abs

    cdef int64_t signed(self, uint64_t value) noexcept nogil:
        """Returns a number of the machine's word as a signed one."""
        return <int64_t>(value << 32) >> 32 if self.word == 4 else <int64_t>value

    cdef uint64_t binary(self, int op, uint64_t a, uint64_t b) noexcept nogil:
        """Returns the result of an operation on two numbers of the machine's word."""
        cdef int64_t x = self.signed(a)
        cdef int64_t y = self.signed(b)
        if op == 0x22:  # plus
            return a + b
        if op == 0x1C:  # minus
            return a - b
        if op == 0x1A:  # and
            return a & b
        if op == 0x21:  # or
            return a | b
        if op == 0x27:  # xor
            return a ^ b
        if op == 0x1E:  # mul
            return a * b
        if op == 0x24:  # shl
            return a << b if b < 64 else 0
        if op == 0x25:  # shr
            return a >> b if b < 64 else 0
        if op == 0x26:  # shra
            return <uint64_t>(x >> min(b, 63))
        if op == 0x29:  # eq
            return a == b
        if op == 0x2E:  # ne
            return a != b
        if op == 0x2A:  # ge
            return x >= y
        if op == 0x2B:  # gt
            return x > y
        if op == 0x2C:  # le
            return x <= y
        if op == 0x2D:  # lt
            return x < y
        if b == 0 or not (op == 0x1B or op == 0x1D):
            self.fail()
            return 0
        if op == 0x1D:  # mod
            return a % b
        # div, towards 0
        a = magnitude(x) // magnitude(y)
        return 0 - a if (x < 0) != (y < 0) else a


cdef uint64_t magnitude(int64_t value) noexcept nogil:
    return 0 - <uint64_t>value if value < 0 else value
