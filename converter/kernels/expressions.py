"""DWARF expressions over registers and a copy of a part of the stack. Source: DWARF 5, section 2.5."""

import cython

from traceferry.kernels.bytes import u64
from traceferry.kernels.cursor import Cursor, number
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.integers import ALL, LOW_32

EXPR_SIGN = cython.declare(cython.ulonglong, 0x8000000000000000)

# Why there is no value.
NO_MEMORY = cython.declare(cython.int, 1)
NO_REGISTER = cython.declare(cython.int, 2)
NOT_AN_EXPRESSION = cython.declare(cython.int, 3)

MAX_VALUES = cython.declare(cython.int, 64)
MAX_STEPS = cython.declare(cython.int, 1000)


@cython.final
@cython.cclass
class Registers:
    """The registers of a frame, by DWARF number, below 64. known: a bit for each that has a value."""

    known: cython.ulonglong
    values: cython.ulonglong[64]

    def __init__(self):
        self.known = 0
        if not cython.compiled:
            self.values = [0] * 64

    @c_inline
    def has(self, register: cython.int) -> cython.bint:
        return (self.known >> register & 1) != 0

    @c_inline
    def forget(self, register: cython.int) -> cython.void:
        one: cython.ulonglong = 1
        self.known &= ~(one << register)

    @c_inline
    def set(self, register: cython.int, value: cython.ulonglong) -> cython.void:
        one: cython.ulonglong = 1
        self.values[register] = value
        self.known |= one << register


@cython.final
@cython.cclass
class Memory:
    """What is known of a stack: the `size` bytes from the address `low` on, which lie in data from `at` on.

    missing: the last address that was asked for and is not known; failure: why there is no value, 0: there is one.
    """

    data: cython.const[cython.uchar][::1]
    big: cython.bint
    low: cython.ulonglong
    at: cython.ulonglong
    size: cython.ulonglong
    missing: cython.ulonglong
    failure: cython.int

    def __init__(self, data: cython.const[cython.uchar][::1], big: cython.bint):
        self.data = data
        self.big = big
        self.begin(0, 0, 0)

    @c_inline
    def begin(self, low: cython.ulonglong, at: cython.ulonglong, size: cython.ulonglong) -> cython.void:
        """at, size: inside the data."""
        self.low = low
        self.at = at
        self.size = size
        self.missing = 0
        self.failure = 0

    @c_inline
    def load(self, address: cython.ulonglong, width: cython.ulonglong) -> cython.ulonglong:
        """An integer of 1, 2, 4 or 8 bytes."""
        offset: cython.ulonglong = (address - self.low) & ALL
        if offset >= self.size or self.size - offset < width:
            self.missing = address
            self.failure = NO_MEMORY
            return 0
        # Small enough to be inlined.
        if width == 8:
            return u64(self.data, self.at + offset, self.big)
        return number(self.data, self.at + offset, width, self.big)


@c_inline
def is_less(a: cython.ulonglong, b: cython.ulonglong, word: cython.int) -> cython.bint:
    """As signed numbers of the machine's word."""
    if word == 4:
        a = (a & LOW_32) << 32
        b = (b & LOW_32) << 32
    return (a ^ EXPR_SIGN) < (b ^ EXPR_SIGN)


@cython.final
@cython.cclass
class Evaluator:
    """Evaluates expressions, which lie in `pool`, for a machine of so many registers and words of 4 or 8 bytes.

    n_steps: how many operations may still be evaluated, of all expressions together.
    """

    memory: Memory
    code: Cursor
    n_steps: cython.longlong
    word: cython.int
    words: cython.ulonglong
    n_registers: cython.ulonglong
    place: cython.ulonglong
    n: cython.int
    stack: cython.ulonglong[64]

    def __init__(
        self, pool: cython.const[cython.uchar][::1], memory: Memory, word: cython.int, n_registers: cython.int
    ):
        self.memory = memory
        self.code = Cursor(pool, memory.big)
        self.word = word
        self.words = LOW_32 if word == 4 else ALL
        self.n_registers = n_registers
        self.n_steps = 0
        if not cython.compiled:
            self.stack = [0] * MAX_VALUES

    @c_function
    def run(
        self,
        place: cython.ulonglong,
        length: cython.ulonglong,
        registers: Registers,
        start: cython.ulonglong,
        n_start: cython.int,
    ) -> cython.ulonglong:
        """The value on top of the stack behind the expression pool[place:place + length]; 0 and memory.failure where
        there is none. start: what lies on the stack at first, if n_start is 1."""
        last: cython.longlong = self.n_steps - MAX_STEPS
        if last < 0:
            last = 0
        self.place = place
        self.code.begin(place, place + length)
        self.memory.failure = 0
        self.stack[0] = start
        self.n = n_start
        while self.code.at < self.code.end and self.memory.failure == 0 and self.code.damage == 0:
            if self.n_steps <= last or self.n > MAX_VALUES - 2:
                self.fail()
            else:
                self.n_steps -= 1
                self.step(registers)
        if self.code.damage != 0 or self.n < 1:
            self.fail()
        return self.stack[self.n - 1] if self.memory.failure == 0 else 0

    @c_inline
    def fail(self) -> cython.void:
        if self.memory.failure == 0:
            self.memory.failure = NOT_AN_EXPRESSION

    @c_inline
    def push(self, value: cython.ulonglong) -> cython.void:
        self.stack[self.n] = value & self.words
        self.n += 1

    @c_inline
    def pop(self) -> cython.ulonglong:
        if self.n < 1:
            self.fail()
            return 0
        self.n -= 1
        return self.stack[self.n]

    @c_function
    def step(self, registers: Registers) -> cython.void:
        """One operation."""
        op: cython.int = self.code.fixed(1)
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
            b: cython.ulonglong = self.pop()
            self.push(self.unary(op, b))
        elif op != 0x96:  # nop
            b = self.pop()
            self.push(self.binary(op, self.pop(), b))

    @c_function
    def based(self, op: cython.int, registers: Registers) -> cython.ulonglong:
        """A register and an offset."""
        register: cython.ulonglong = op - 0x70
        if op == 0x92:
            register = self.code.uleb()
        offset: cython.ulonglong = self.code.sleb()
        if register >= self.n_registers or not registers.has(register):
            if self.memory.failure == 0:
                self.memory.failure = NO_REGISTER
            return 0
        return (registers.values[register] + offset) & ALL

    @c_function
    def constant(self, op: cython.int) -> cython.ulonglong:
        if op == 0x10 or op == 0x11:  # constu, consts
            return self.code.leb(op == 0x11)
        if op == 0x03:  # addr
            return self.code.fixed(self.word)
        size: cython.ulonglong = 1 << (op - 0x08 >> 1)  # const1u, const1s, const2u ... const8s
        return self.code.fixed_signed(size) if op & 1 else self.code.fixed(size)

    @c_function
    def rearrange(self, op: cython.int) -> cython.void:
        n: cython.int = self.n
        i: cython.int = 0
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
            top: cython.ulonglong = self.stack[n - 1]
            self.stack[n - 1] = self.stack[n - 2]
            if op == 0x17:
                self.stack[n - 2] = self.stack[n - 3]
            self.stack[n - 1 - i] = top

    @c_function
    def branch(self, op: cython.int) -> cython.void:
        """skip, bra: the one always, the other unless 0 is on top."""
        is_taken: cython.bint = op == 0x2F
        distance: cython.ulonglong = self.code.fixed_signed(2)
        target: cython.ulonglong = (self.code.at + distance) & ALL
        if op == 0x28:
            is_taken = self.pop() != 0
        if is_taken:
            if target < self.place or target > self.code.end:
                self.fail()
            else:
                self.code.at = target

    @c_function
    def unary(self, op: cython.int, b: cython.ulonglong) -> cython.ulonglong:
        if op == 0x06:  # deref
            return self.memory.load(b, self.word)
        if op == 0x94:  # deref_size
            size: cython.ulonglong = self.code.fixed(1)
            if size == 1 or size == 2 or size == 4 or size == 8:
                return self.memory.load(b, size)
            self.fail()
            return 0
        if op == 0x23:  # plus_uconst
            return (b + self.code.uleb()) & ALL
        if op == 0x20:  # not
            return b ^ ALL
        if op == 0x1F or is_less(b, 0, self.word):  # neg, abs
            return (0 - b) & ALL
        return b

    @c_function
    def binary(self, op: cython.int, a: cython.ulonglong, b: cython.ulonglong) -> cython.ulonglong:
        """Of two numbers of the machine's word; what is beyond a word is dropped when the result is pushed."""
        word: cython.int = self.word
        if op == 0x22:  # plus
            return (a + b) & ALL
        if op == 0x1C:  # minus
            return (a - b) & ALL
        if op == 0x1A:  # and
            return a & b
        if op == 0x21:  # or
            return a | b
        if op == 0x27:  # xor
            return a ^ b
        if op == 0x1E:  # mul
            return a * b & ALL
        if op == 0x24:  # shl
            return a << b & ALL if b < 64 else 0
        if op == 0x25:  # shr
            return a >> b if b < 64 else 0
        if op == 0x26:  # shra
            if not is_less(a, 0, word):
                return a >> b if b < 64 else 0
            a = a ^ self.words
            return (a >> b if b < 64 else 0) ^ ALL
        if op == 0x29:  # eq
            return 1 if a == b else 0
        if op == 0x2E:  # ne
            return 1 if a != b else 0
        if op == 0x2A:  # ge
            return 0 if is_less(a, b, word) else 1
        if op == 0x2B:  # gt
            return 1 if is_less(b, a, word) else 0
        if op == 0x2C:  # le
            return 0 if is_less(b, a, word) else 1
        if op == 0x2D:  # lt
            return 1 if is_less(a, b, word) else 0
        if b == 0 or not (op == 0x1B or op == 0x1D):
            self.fail()
            return 0
        if op == 0x1D:  # mod
            return a % b
        return self.quotient(a, b)

    @c_function
    def quotient(self, a: cython.ulonglong, b: cython.ulonglong) -> cython.ulonglong:
        """Of signed numbers, towards 0."""
        is_negative: cython.bint = is_less(a, 0, self.word) != is_less(b, 0, self.word)
        if is_less(a, 0, self.word):
            a = (0 - a) & self.words
        if is_less(b, 0, self.word):
            b = (0 - b) & self.words
        return (0 - a // b) & ALL if is_negative else a // b
