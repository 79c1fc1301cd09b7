"""From a frame of a stack to its caller's: by call-frame information, through a PLT, by the frame pointer.

The text of this module is compiled within unwind_kernel.py.
"""

import cython

from traceferry.kernels.bytes import u64
from traceferry.kernels.expressions import (
    NO_MEMORY,
    NO_REGISTER,
    Evaluator,
    Memory,
    Registers,
)
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.integers import ALL, LOW_32
from traceferry.unwinding.cfi_inlined import (
    CFA_REGISTER,
    EXPRESSION,
    LENGTH_BITS,
    OFFSET,
    REGISTER,
    SAME,
    UNDEFINED,
    VAL_EXPRESSION,
    VAL_OFFSET,
)
from traceferry.unwinding.tables_inlined import NO_RULE, Cache, Mappings, Modules, RuleSets
from traceferry.unwinding.unwind_inlined import (
    BAD_ADDRESS,
    BAD_CFA,
    BY_CFI,
    BY_FRAME_POINTER,
    BY_IP,
    BY_PLT,
    BY_SIGNAL,
    COMPLETE,
    ELSEWHERE,
    IS_KERNEL_MODE,
    IS_WHOLE_STACK,
    LOST_REGISTER,
    NO_CFI,
    TRUNCATED,
)

PAGE = cython.declare(cython.ulonglong, 4096)
# The usual size of a stack: what lies farther from the stack pointer is on another one.
FARTHEST = cython.declare(cython.ulonglong, 8388608)
# Behind an entry point: the first instructions of ld.so's _start have no call-frame information.
ENTRY_BYTES = cython.declare(cython.ulonglong, 64)

# How many operations of expressions a stack may need, besides one for each byte of its copy: a signal frame has some
# 50, a realigned one some 10.
FREE_STEPS = cython.declare(cython.longlong, 1024)

# Values of Walk.outcome.
GOES_ON = cython.declare(cython.int, 0)
ENDED = cython.declare(cython.int, 1)
IS_WANTED = cython.declare(cython.int, 2)
INVALID = cython.declare(cython.int, 3)


@cython.final
@cython.cclass
class Walk:
    """One frame of a stack, and the way to its caller's.

    pc, sp: of the frame; look: the address that is looked up, which for a return address is the byte before; mapping,
    rule: what is there. how: how pc was found; is_exact: whether it is an instruction's address and no return address;
    is_first: whether it is the sample's own. outcome: whether the walk goes on; end, module: how the stack ended.
    """

    word: cython.int
    width: cython.ulonglong
    words: cython.ulonglong
    mask: cython.ulonglong
    n_registers: cython.int
    pc_register: cython.int
    sp_register: cython.int
    fp_register: cython.int
    return_column: cython.int
    link_register: cython.int
    callee_saved: cython.ulonglong

    mappings: Mappings
    modules: Modules
    rules: RuleSets
    cache: Cache
    memory: Memory
    evaluator: Evaluator
    registers: Registers
    before: Registers

    flags: cython.int
    pc: cython.ulonglong
    sp: cython.ulonglong
    look: cython.ulonglong
    mapping: cython.longlong
    module: cython.longlong
    rule: cython.int
    how: cython.int
    is_exact: cython.bint
    is_first: cython.bint
    outcome: cython.int
    end: cython.int
    bad_module: cython.longlong
    # Why the return address is not known, 0: it is, or nothing says where it is; whether it lies on another stack.
    lost: cython.int
    is_lost_elsewhere: cython.bint

    def __init__(
        self,
        d: cython.const[cython.uchar][::1],
        big: cython.bint,
        machine: object,
        mappings: Mappings,
        modules: Modules,
        rules: RuleSets,
        cache: Cache,
    ):
        self.word = machine.word_size
        self.width = self.word
        self.words = LOW_32 if self.word == 4 else ALL
        self.mask = ALL >> 64 - machine.address_bits
        self.n_registers = machine.n_registers
        # On AArch64 the program counter has a number of its own, on the others it is the return column.
        self.pc_register = self.n_registers - 1
        self.sp_register = machine.sp
        self.fp_register = machine.frame_pointer
        self.return_column = machine.return_column
        self.link_register = machine.link_register
        self.callee_saved = machine.callee_saved_mask
        if not (
            (self.word == 4 or self.word == 8)
            and 1 <= self.n_registers <= 63
            and 0 <= self.sp_register < self.n_registers
            and 0 <= self.fp_register < self.n_registers
            and 0 <= self.return_column < self.n_registers
            and self.link_register < self.n_registers
        ):
            raise ValueError("unwind: a machine with other registers than it has")
        self.mappings = mappings
        self.modules = modules
        self.rules = rules
        self.cache = cache
        self.memory = Memory(d, big)
        self.evaluator = Evaluator(rules.pool, self.memory, self.word, self.n_registers)
        self.registers = Registers()
        self.before = Registers()

    # ------------------------------------------------------------ the first frame

    @c_function
    def begin(
        self,
        register_of: cython.const[cython.int][::1],
        registers_at: cython.ulonglong,
        dump_at: cython.ulonglong,
        dump_n: cython.ulonglong,
        flags: cython.int,
    ) -> cython.void:
        """A sample; see `unwind`."""
        k: cython.Py_ssize_t
        self.flags = flags
        self.end = COMPLETE
        self.bad_module = -1
        self.how = BY_IP
        self.is_exact = True
        self.is_first = True
        self.outcome = GOES_ON
        self.registers.known = 0
        for k in range(register_of.shape[0]):
            r: cython.int = register_of[k]
            if 0 <= r < self.n_registers:
                self.registers.set(r, u64(self.memory.data, registers_at + 8 * k, self.memory.big) & self.words)
        if not self.registers.has(self.pc_register) or not self.registers.has(self.sp_register):
            self.stop(LOST_REGISTER)
            return
        self.pc = self.registers.values[self.pc_register] & self.mask
        if self.return_column == self.pc_register:
            self.registers.forget(self.pc_register)
        self.sp = self.registers.values[self.sp_register]
        self.memory.begin(self.sp, dump_at, dump_n)
        self.evaluator.n_steps = dump_n + FREE_STEPS

    @c_inline
    def stop(self, end: cython.int) -> cython.void:
        self.outcome = ENDED
        self.end = end

    # ------------------------------------------------------------ look-up

    @c_inline
    def look_up(self) -> cython.void:
        """What is at pc."""
        look: cython.ulonglong = self.pc if self.is_exact else self.pc - 1
        slot: cython.ulonglong = self.cache.slot_of(look)
        self.look = look
        if self.cache.pc[slot] != look or look == 0:
            self.fill_slot(slot)
            if self.outcome != GOES_ON:
                return
        self.mapping = self.cache.mapping[slot]
        self.rule = self.cache.rule[slot]
        if self.mapping < 0 and not self.is_first:
            self.stop(BAD_ADDRESS)

    @c_function
    def fill_slot(self, slot: cython.ulonglong) -> cython.void:
        m: cython.longlong = self.mappings.at(self.look)
        rule: cython.int = NO_RULE
        module: cython.longlong = self.mappings.module[m] if m >= 0 else -1
        if module >= 0:
            if not self.modules.is_valid(module):
                self.outcome = INVALID
                return
            if self.modules.row_first[module] < 0:
                self.module = module
                self.outcome = IS_WANTED
                return
            rule = self.checked_rule(m, self.look)
        self.cache.pc[slot] = self.look
        self.cache.mapping[slot] = m
        self.cache.rule[slot] = rule

    @c_function
    def checked_rule(self, mapping: cython.longlong, address: cython.ulonglong) -> cython.int:
        """The rule set at an address in a mapping of a module."""
        link: cython.ulonglong = (address - self.mappings.bias[mapping]) & ALL
        rule: cython.int = self.modules.rule_at(self.mappings.module[mapping], link)
        if rule >= 0 and not self.rules.is_valid(rule, self.n_registers):
            self.outcome = INVALID
            return NO_RULE
        return rule

    # ------------------------------------------------------------ the caller

    @c_function
    def go_up(self) -> cython.void:
        """From a frame that was looked up to its caller's: pc, sp and registers."""
        is_never_called: cython.bint = False
        if self.rule < 0:
            self.module = self.mappings.module[self.mapping] if self.mapping >= 0 else -1
            if self.is_first and self.flags & IS_KERNEL_MODE and self.module >= 0:
                # Behind the last instruction of a function without a return: __restore_rt's system call.
                self.rule = self.checked_rule(self.mapping, self.look - 1)
            elif not self.is_exact and self.module >= 0:
                # A return address that begins what has information, with no call in front: a stack that makecontext
                # made begins so, in __start_context.
                is_never_called = self.checked_rule(self.mapping, self.pc) >= 0
            if self.outcome != GOES_ON:
                return
        if self.rule >= 0:
            self.by_rules()
        elif is_never_called or self.is_at_entry_point():
            self.stop(COMPLETE)
        elif self.is_first and self.module >= 0 and self.modules.is_in_plt(self.module, self.link_of(self.pc)):
            self.by_plt()
        else:
            self.by_frame_pointer()

    @c_inline
    def link_of(self, address: cython.ulonglong) -> cython.ulonglong:
        return (address - self.mappings.bias[self.mapping]) & ALL

    @c_inline
    def is_at_entry_point(self) -> cython.bint:
        entry_point: cython.ulonglong = self.modules.entry_point[self.module] if self.module >= 0 else 0
        return entry_point != 0 and (self.link_of(self.pc) - entry_point) & ALL < ENTRY_BYTES

    @c_inline
    def move(self, pc: cython.ulonglong, cfa: cython.ulonglong, how: cython.int, is_signal: cython.bint) -> cython.void:
        """To the caller, if it is plausible. cfa: its stack pointer."""
        pc &= self.mask
        if pc == 0:
            self.stop(COMPLETE)
        elif not is_signal and (cfa < self.sp or (cfa == self.sp and not self.is_first)):
            self.stop(BAD_CFA)
        self.sp = cfa
        self.pc = pc
        self.how = how
        self.is_exact = is_signal
        self.is_first = False

    # ------------------------------------------------------------ by call-frame information

    @c_inline
    def by_rules(self) -> cython.void:
        rule: cython.int = self.rule
        target: cython.int = self.rules.column[rule]
        is_signal: cython.bint = self.rules.signal[rule] != 0
        last: cython.int = -1
        r: cython.int
        e: cython.longlong
        cfa: cython.ulonglong = self.cfa()
        if self.outcome != GOES_ON:
            return
        self.before.known = self.registers.known
        for r in range(self.n_registers):
            self.before.values[r] = self.registers.values[r]
        if not is_signal:
            self.registers.known &= self.callee_saved
        # Without a rule the return address is in the link register, as long as nothing was called.
        if target == self.link_register and self.is_first and self.before.has(target):
            self.registers.set(target, self.before.values[target])
        self.registers.set(self.sp_register, cfa)
        self.lost = 0
        for e in range(self.rules.first[rule], self.rules.first[rule + 1]):
            if self.rules.entry_register[e] == target:
                last = self.rules.entry_kind[e]
            self.restore(e, cfa, target, is_signal)
        if last == UNDEFINED:
            self.stop(COMPLETE)
        elif self.lost != 0:
            self.stop(self.end_of(self.lost, self.is_lost_elsewhere))
        elif not self.registers.has(target):
            self.stop(LOST_REGISTER)
        else:
            if target == self.pc_register:
                self.registers.forget(target)
            cfa = self.registers.values[self.sp_register]
            self.move(self.registers.values[target], cfa, BY_SIGNAL if is_signal else BY_CFI, is_signal)

    @c_inline
    def cfa(self) -> cython.ulonglong:
        """The canonical frame address, or the end of the stack."""
        rule: cython.int = self.rule
        value: cython.ulonglong = self.rules.cfa_value[rule] & ALL
        r: cython.int = self.rules.cfa_register[rule]
        known: cython.ulonglong = self.registers.known
        if self.rules.cfa_kind[rule] == CFA_REGISTER:
            if not self.registers.has(r):
                self.stop(LOST_REGISTER)
            return self.registers.values[r] + value & self.words
        # The program counter is a register in expressions: the lazy PLT's has it.
        r = self.pc_register
        self.registers.set(r, self.look if self.return_column == r else self.registers.values[r])
        value = self.evaluated(value, self.registers, 0, 0)
        self.registers.known = known
        if self.memory.failure != 0:
            self.stop(self.end_of(self.memory.failure, self.is_missing_elsewhere()))
        return value

    @c_function
    def evaluated(
        self, expression: cython.ulonglong, registers: Registers, start: cython.ulonglong, n_start: cython.int
    ) -> cython.ulonglong:
        """expression: place and length in the pool, in one value."""
        length: cython.ulonglong = expression & (1 << LENGTH_BITS) - 1
        return self.evaluator.run(expression >> LENGTH_BITS, length, registers, start, n_start)

    @c_inline
    def restore(
        self, e: cython.longlong, cfa: cython.ulonglong, target: cython.int, is_signal: cython.bint
    ) -> cython.void:
        """The caller's value of the register that the entry e of the rule sets is about. target: the register of the
        return address."""
        r: cython.int = self.rules.entry_register[e]
        kind: cython.int = self.rules.entry_kind[e]
        value: cython.ulonglong = self.rules.entry_value[e] & ALL
        if kind == OFFSET:
            self.reload(r, cfa + value & self.words, target, is_signal)
        elif kind == VAL_OFFSET:
            self.registers.set(r, cfa + value & self.words)
        elif kind == EXPRESSION or kind == VAL_EXPRESSION:
            value = self.evaluated(value, self.before, cfa, 1)
            if self.memory.failure != 0:
                self.lose(r, target)
            elif kind == EXPRESSION:
                self.reload(r, value, target, is_signal)
            else:
                self.registers.set(r, value)
        elif kind == SAME:
            self.keep(r, r)
        elif kind == REGISTER and value < 64:
            self.keep(r, value)
        else:
            self.registers.forget(r)

    @c_inline
    def reload(self, r: cython.int, slot: cython.ulonglong, target: cython.int, is_signal: cython.bint) -> cython.void:
        """From where it was saved. Below the stack pointer: an epilogue has popped it already."""
        if slot < self.sp and self.sp - slot < PAGE and r != target and not is_signal:
            self.keep(r, r)
            return
        self.memory.failure = 0
        value: cython.ulonglong = self.memory.load(slot, self.width)
        if self.memory.failure == 0:
            self.registers.set(r, value)
        else:
            self.lose(r, target)

    @c_function
    def keep(self, r: cython.int, other: cython.int) -> cython.void:
        """What the other register was."""
        if self.before.has(other):
            self.registers.set(r, self.before.values[other])
        else:
            self.registers.forget(r)

    @c_function
    def lose(self, r: cython.int, target: cython.int) -> cython.void:
        self.registers.forget(r)
        if r == target:
            self.lost = self.memory.failure
            self.is_lost_elsewhere = self.is_missing_elsewhere()

    @c_function
    def is_missing_elsewhere(self) -> cython.bint:
        """Whether the address that is not known lies on another stack than the dump."""
        return self.memory.missing < self.memory.low or self.memory.missing - self.memory.low > FARTHEST

    @c_function
    def end_of(self, failure: cython.int, is_elsewhere: cython.bint) -> cython.int:
        """How a stack ends where a value cannot be had. Behind a dump that is shorter than it might be is no stack."""
        if failure == NO_MEMORY:
            return ELSEWHERE if is_elsewhere or self.flags & IS_WHOLE_STACK else TRUNCATED
        return LOST_REGISTER if failure == NO_REGISTER else BAD_CFA

    # ------------------------------------------------------------ without call-frame information

    @c_function
    def by_plt(self) -> cython.void:
        """A slot of a PLT has no frame: the return address is where the call has left it."""
        cfa: cython.ulonglong = self.sp
        if self.link_register >= 0:
            if not self.registers.has(self.link_register):
                self.stop(LOST_REGISTER)
                return
            value: cython.ulonglong = self.registers.values[self.link_register]
        else:
            self.memory.failure = 0
            value = self.memory.load(cfa, self.width)
            if self.memory.failure != 0:
                self.stop(TRUNCATED)
                return
            cfa += self.width
        self.registers.known &= self.callee_saved
        self.registers.set(self.sp_register, cfa)
        self.move(value, cfa, BY_PLT, False)

    @c_function
    def by_frame_pointer(self) -> cython.void:
        """Two words at the frame pointer: the caller's, and the return address, which must be in code."""
        slot: cython.ulonglong = self.registers.values[self.fp_register]
        self.stop(NO_CFI)
        self.bad_module = self.module if self.mapping >= 0 else -2
        if (
            not self.registers.has(self.fp_register)
            or slot & (self.width - 1)
            or slot < self.sp
            or (slot + 2 * self.width) & ALL < slot
        ):
            return
        self.memory.failure = 0
        fp: cython.ulonglong = self.memory.load(slot, self.width)
        value: cython.ulonglong = self.memory.load(slot + self.width, self.width) & self.mask
        if self.memory.failure != 0 or (value != 0 and self.mappings.at(value - 1) < 0):
            return
        self.outcome = GOES_ON
        self.end = COMPLETE
        self.bad_module = -1
        self.registers.known = 0
        self.registers.set(self.fp_register, fp)
        self.registers.set(self.sp_register, slot + 2 * self.width)
        self.move(value, slot + 2 * self.width, BY_FRAME_POINTER, False)
