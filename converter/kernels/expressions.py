"""DWARF expressions over registers and a copy of a part of the stack. Source: DWARF 5, section 2.5.

`memory` tells what is known: [0] its lowest address, [1] where its bytes are in d, [2] how many they are; [3] is set to
the first address that was asked for and is not known, [4] to why an evaluation failed (0: it did not).
"""

import cython

from traceferry.kernels.bytes import u16, u32, u64
from traceferry.kernels.leb128 import sleb, uleb

EXPR_ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
EXPR_LOW_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
EXPR_SIGN = cython.declare(cython.ulonglong, 0x8000000000000000)

# Why there is no value.
NO_MEMORY = cython.declare(cython.int, 1)
NO_REGISTER = cython.declare(cython.int, 2)
NOT_AN_EXPRESSION = cython.declare(cython.int, 3)

STACK_SIZE = cython.declare(cython.int, 64)
MAX_STEPS = cython.declare(cython.int, 1000)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def load(
    d: cython.const[cython.uchar][::1],
    memory: cython.ulonglong[::1],
    address: cython.ulonglong,
    width: cython.int,
    big: cython.bint,
) -> cython.ulonglong:
    """An integer of 1, 2, 4 or 8 bytes."""
    offset: cython.ulonglong = (address - memory[0]) & EXPR_ALL
    size: cython.ulonglong = width
    if offset >= memory[2] or memory[2] - offset < size:
        memory[3] = address
        memory[4] = NO_MEMORY
        return 0
    p: cython.Py_ssize_t = memory[1] + offset
    if width == 8:
        return u64(d, p, big)
    if width == 4:
        return u32(d, p, big)
    if width == 2:
        return u16(d, p, big)
    return d[p]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_less(a: cython.ulonglong, b: cython.ulonglong, word: cython.int) -> cython.bint:
    """As signed numbers of the machine's word."""
    if word == 4:
        a = (a & EXPR_LOW_32) << 32
        b = (b & EXPR_LOW_32) << 32
    return (a ^ EXPR_SIGN) < (b ^ EXPR_SIGN)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def evaluate(
    pool: cython.const[cython.uchar][::1],
    place: cython.longlong,
    length: cython.longlong,
    d: cython.const[cython.uchar][::1],
    memory: cython.ulonglong[::1],
    registers: cython.const[cython.ulonglong][::1],
    known: cython.ulonglong,
    n_registers: cython.int,
    start: cython.ulonglong,
    n_start: cython.int,
    word: cython.int,
    big: cython.bint,
    at: cython.longlong[::1],
    stack: cython.ulonglong[::1],
) -> cython.ulonglong:
    """The value on top at the end; 0 and memory[4] where there is none. The expression is pool[place:place + length];
    known: a bit for each register that has a value; start: what lies on the stack at first, if n_start is 1. at, stack:
    scratch, 1 and STACK_SIZE."""
    end: cython.longlong = place + length
    n: cython.int = n_start
    n_steps: cython.int = 0
    p: cython.longlong
    op: cython.int
    i: cython.int
    a: cython.ulonglong
    b: cython.ulonglong
    register: cython.ulonglong
    most: cython.ulonglong = n_registers
    words: cython.ulonglong = EXPR_LOW_32 if word == 4 else EXPR_ALL
    stack[0] = start
    at[0] = place
    while at[0] < end:
        n_steps += 1
        p = at[0]
        op = pool[p]
        at[0] = p + 1
        if n_steps > MAX_STEPS or n > STACK_SIZE - 2:
            memory[4] = NOT_AN_EXPRESSION
            return 0
        a = 0
        if 0x30 <= op <= 0x4F:  # lit0 to lit31
            a = op - 0x30
        elif 0x70 <= op <= 0x8F or op == 0x92:  # breg0 to breg31, bregx
            register = op - 0x70
            if op == 0x92:
                register = uleb(pool, at, end)
            b = sleb(pool, at, end)
            if register >= most or not known >> register & 1:
                memory[4] = NO_REGISTER
                return 0
            a = (registers[register] + b) & words
        elif op == 0x08 or op == 0x09:  # const1u, const1s
            at[0] = p + 2
            if p + 2 <= end:
                a = pool[p + 1]
                if op == 0x09 and a >> 7:
                    a |= EXPR_ALL << 8 & EXPR_ALL
        elif op == 0x0A or op == 0x0B:  # const2u, const2s
            at[0] = p + 3
            if p + 3 <= end:
                a = u16(pool, p + 1, big)
                if op == 0x0B and a >> 15:
                    a |= EXPR_ALL << 16 & EXPR_ALL
        elif op == 0x0C or op == 0x0D or (op == 0x03 and word == 4):  # const4u, const4s, addr
            at[0] = p + 5
            if p + 5 <= end:
                a = u32(pool, p + 1, big)
                if op == 0x0D and a >> 31:
                    a |= EXPR_ALL << 32 & EXPR_ALL
        elif op == 0x0E or op == 0x0F:  # const8u, const8s
            at[0] = p + 9
            if p + 9 <= end:
                a = u64(pool, p + 1, big)
        elif op == 0x10:  # constu
            a = uleb(pool, at, end)
        elif op == 0x11:  # consts
            a = sleb(pool, at, end)
        elif op == 0x12 or op == 0x14 or op == 0x15:  # dup, over, pick
            i = 0 if op == 0x12 else 1
            if op == 0x15:
                at[0] = p + 2
                i = pool[p + 1] if p + 2 <= end else STACK_SIZE
            if i >= n:
                memory[4] = NOT_AN_EXPRESSION
                return 0
            a = stack[n - 1 - i]
        elif op == 0x96:  # nop
            continue
        elif op == 0x13:  # drop
            if n < 1:
                memory[4] = NOT_AN_EXPRESSION
                return 0
            n -= 1
            continue
        elif op == 0x16 or op == 0x17:  # swap, rot
            i = 2 if op == 0x16 else 3
            if n < i:
                memory[4] = NOT_AN_EXPRESSION
                return 0
            a = stack[n - 1]
            stack[n - 1] = stack[n - 2]
            if i == 2:
                stack[n - 2] = a
            else:
                stack[n - 2] = stack[n - 3]
                stack[n - 3] = a
            continue
        elif op == 0x2F or op == 0x28:  # skip, bra
            at[0] = p + 3
            if p + 3 > end:
                break
            a = u16(pool, p + 1, big)
            i = a
            if i >> 15:
                i -= 0x10000
            if op == 0x28:
                if n < 1:
                    memory[4] = NOT_AN_EXPRESSION
                    return 0
                n -= 1
                if stack[n] == 0:
                    continue
            if p + 3 + i < place or p + 3 + i > end:
                memory[4] = NOT_AN_EXPRESSION
                return 0
            at[0] = p + 3 + i
            continue
        else:
            if n < 1:
                memory[4] = NOT_AN_EXPRESSION
                return 0
            n -= 1
            b = stack[n]
            if op == 0x06 or op == 0x94:  # deref, deref_size
                i = word
                if op == 0x94:
                    at[0] = p + 2
                    i = pool[p + 1] if p + 2 <= end else 0
                if not (i == 1 or i == 2 or i == 4 or i == 8):
                    memory[4] = NOT_AN_EXPRESSION
                    return 0
                a = load(d, memory, b & words, i, big)
                if memory[4] != 0:
                    return 0
            elif op == 0x23:  # plus_uconst
                a = (b + uleb(pool, at, end)) & words
            elif op == 0x19:  # abs
                a = (0 - b) & words if is_less(b, 0, word) else b
            elif op == 0x1F:  # neg
                a = (0 - b) & words
            elif op == 0x20:  # not
                a = b ^ words
            else:
                if n < 1:
                    memory[4] = NOT_AN_EXPRESSION
                    return 0
                n -= 1
                a = stack[n]
                if op == 0x1A:  # and
                    a = a & b
                elif op == 0x1C:  # minus
                    a = (a - b) & words
                elif op == 0x1E:  # mul
                    a = a * b & words
                elif op == 0x21:  # or
                    a = a | b
                elif op == 0x22:  # plus
                    a = (a + b) & words
                elif op == 0x24:  # shl
                    a = a << b & words if b < 64 else 0
                elif op == 0x25:  # shr
                    a = a >> b if b < 64 else 0
                elif op == 0x26:  # shra
                    if is_less(a, 0, word):
                        a = (a | words ^ EXPR_ALL) ^ EXPR_ALL
                        a = (a >> b if b < 64 else 0) ^ EXPR_ALL
                        a = a & words
                    else:
                        a = a >> b if b < 64 else 0
                elif op == 0x27:  # xor
                    a = a ^ b
                elif op == 0x29:  # eq
                    a = 1 if a == b else 0
                elif op == 0x2E:  # ne
                    a = 1 if a != b else 0
                elif op == 0x2A:  # ge
                    a = 0 if is_less(a, b, word) else 1
                elif op == 0x2B:  # gt
                    a = 1 if is_less(b, a, word) else 0
                elif op == 0x2C:  # le
                    a = 0 if is_less(b, a, word) else 1
                elif op == 0x2D:  # lt
                    a = 1 if is_less(a, b, word) else 0
                elif op == 0x1B or op == 0x1D:  # div (signed), mod
                    if b == 0:
                        memory[4] = NOT_AN_EXPRESSION
                        return 0
                    if op == 0x1D:
                        a = a % b
                    else:
                        i = 0
                        if is_less(a, 0, word):
                            a = (0 - a) & words
                            i = 1
                        if is_less(b, 0, word):
                            b = (0 - b) & words
                            i = 1 - i
                        a = a // b
                        if i:
                            a = (0 - a) & words
                else:
                    memory[4] = NOT_AN_EXPRESSION
                    return 0
        stack[n] = a & words
        n += 1
    if at[0] > end or n < 1:
        memory[4] = NOT_AN_EXPRESSION
        return 0
    return stack[n - 1]
