"""Unwinds the user stacks of samples, each of which has registers and a copy of the top of its stack.

Frame by frame, the address is looked up among the mappings of its process, then among the rows of the module there; the
rule set of the row gives the caller's registers.
"""

cimport cython
from libc.stdint cimport UINT32_MAX, UINT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from traceferry.native.arrays import grown

from traceferry.native.bytes cimport u64
from traceferry.native.hashing cimport GOLDEN
from traceferry.native.search cimport last_at
from traceferry.unwinding._cfi cimport (
    CFA_REGISTER,
    EXPRESSION,
    LENGTH_BITS,
    MAX_REGISTERS,
    OFFSET,
    REGISTER,
    SAME,
    UNDEFINED,
    VAL_EXPRESSION,
    VAL_OFFSET,
    Rule,
    RuleSet,
    RuleSets,
)
from traceferry.unwinding._expressions cimport (
    NO_MEMORY,
    NO_REGISTER,
    Evaluator,
    Memory,
    Registers,
    forget,
    is_known,
    set_register,
)


cpdef enum End:
    """How a stack ended. TRUNCATED: behind a copy that is as long as what was asked for; NOT_COPIED: behind one that is
    shorter; ELSEWHERE: on another stack."""
    COMPLETE
    TRUNCATED
    NOT_COPIED
    ELSEWHERE
    NO_CFI
    BAD_ADDRESS
    BAD_CFA
    LOST_REGISTER


cpdef enum How:
    """How a frame's address was found: the sample's own, by call-frame information, by that of a signal frame, in a
    PLT, by the frame pointer, behind the part of the stack that the function's instructions say is its own."""
    BY_IP
    BY_CFI
    BY_SIGNAL
    BY_PLT
    BY_FRAME_POINTER
    BY_OWN_STACK


cpdef enum Flag:
    """What is known of a sample. IS_SHORT_COPY: of its stack fewer bytes were copied than asked for. The kernel ends the
    copy at the first page that is not in memory: behind the stack, or in it where nothing was written yet, as in an array
    of which a function uses the beginning."""
    IS_KERNEL_MODE = 1
    IS_SHORT_COPY = 2


cdef enum:
    # A return address takes a word of the stack, but for that of the first frame, which a register may hold.
    FREE_FRAMES = 2
    PAGE = 4096
    # The usual size of a stack: what lies farther from the stack pointer is on another one.
    FARTHEST = 8388608
    # More than what the kernel puts between a signal's frame and the stack that it interrupted, vector registers too.
    SIGNAL_FRAME = 16384
    # Behind an entry point: the first instructions of ld.so's _start have no call-frame information.
    ENTRY_BYTES = 64
    # How many operations of expressions a stack may need, besides one for each byte of its copy: a signal frame has
    # some 50, a realigned one some 10.
    FREE_STEPS = 1024
    CACHE_BITS = 14
    NO_RULE = -1


# ---------------------------------------------------------------- what is looked up


cdef struct Module:
    # Its rows, and its PLT sections, are first to last of those of all modules. is_read: whether what is here is known.
    int64_t row_first
    int64_t row_last
    int64_t plt_first
    int64_t plt_last
    uint64_t entry_point
    int64_t is_musl
    int64_t is_read


@cython.final
cdef class _Modules:
    """The rows of modules, which are read when they are first needed, their entry points and PLT sections. A PLT section
    is two elements of plt, its start and end."""

    cdef object sources
    cdef dict problems
    cdef RuleSets rule_sets
    cdef Module[::1] modules
    cdef uint64_t[::1] row_pc
    cdef int32_t[::1] row_rule
    cdef Py_ssize_t n_rows
    cdef uint64_t[::1] plt
    cdef Py_ssize_t n_plt

    def __cinit__(self, sources):
        self.sources = sources
        self.problems = {}
        self.rule_sets = RuleSets()
        self.modules = np.zeros(len(sources), "i8,i8,i8,i8,u8,i8,i8")
        self.row_pc = np.zeros(0, np.uint64)
        self.row_rule = np.zeros(0, np.int32)
        self.plt = np.zeros(0, np.uint64)

    cdef int read(self, Py_ssize_t number) except -1:
        """Reads the rows of a module."""
        cdef Module* module = &self.modules[number]
        source = self.sources[number]
        module.row_first, module.plt_first = self.n_rows, self.n_plt
        if source is not None:
            rows, self.problems[number] = source.rows(self.rule_sets)
            if len(rows.rule) != len(rows.pc) or rows.rule.max(initial=-1) >= self.rule_sets.n_sets:
                raise ValueError("rows of other rule sets than there are")
            self.row_pc = with_more(self.row_pc.base, self.n_rows, rows.pc)
            self.row_rule = with_more(self.row_rule.base, self.n_rows, rows.rule)
            self.n_rows += len(rows.pc)
            plt = np.array(source.plt, np.uint64).ravel()
            self.plt = with_more(self.plt.base, self.n_plt, plt)
            self.n_plt += len(plt) // 2 * 2
            module.entry_point = source.entry_point
            module.is_musl = source.is_musl
        module.row_last, module.plt_last = self.n_rows, self.n_plt
        module.is_read = True
        return 0

    cdef int rule_at(self, Py_ssize_t number, uint64_t address) noexcept nogil:
        """Returns the rule set for an address as it is in the module's file, or NO_RULE."""
        cdef Module* module = &self.modules[number]
        cdef Py_ssize_t row = last_at(self.row_pc, module.row_first, module.row_last, address)
        return self.row_rule[row] if row >= module.row_first else NO_RULE

    cdef bint is_in_plt(self, Py_ssize_t number, uint64_t address) noexcept nogil:
        """Whether an address as it is in the module's file is in a PLT section."""
        cdef Py_ssize_t i
        for i in range(self.modules[number].plt_first, self.modules[number].plt_last, 2):
            if self.plt[i] <= address < self.plt[i + 1]:
                return True
        return False


cdef object with_more(object array, Py_ssize_t n, object values):
    """Returns the array, or a longer copy, with values behind its first n elements."""
    array = grown(array, n + len(values))
    array[n : n + len(values)] = values
    return array


cdef struct Found:
    # What is at an address, in one generation of the mappings.
    uint64_t address
    uint32_t generation
    int32_t rule
    int64_t mapping


# ---------------------------------------------------------------- from frame to frame


@cython.final
cdef class _Walk:
    """One frame of a stack, and the way to its caller's.

    pc, sp: of the frame; lookup_address: the address that is looked up, which for a return address is the byte before;
    mapping, rule: what is there. how: how pc was found; is_exact: whether it is an instruction's address and no return
    address; is_first: whether it is the sample's own; is_on_other_stack: whether a signal interrupted it on another stack
    than the one that was copied; own: how many bytes of its own the sample's function has on the stack, -1 is unknown;
    is_by_sp: whether the caller's frame lies so far behind the stack pointer, however far.
    goes_on: whether the stack has not ended; end, bad_module: how it
    ended.
    """

    cdef int word
    cdef uint64_t word_mask
    cdef uint64_t address_mask
    cdef int n_registers
    cdef int pc_register
    cdef int sp_register
    cdef int fp_register
    cdef int return_column
    cdef int link_register
    cdef uint64_t callee_saved

    # The executable mappings of an address space, by address, without overlaps. bias: what an address has more than in
    # its module's file; module_of: -1 for none.
    cdef const uint64_t[::1] start_of
    cdef const uint64_t[::1] end_of
    cdef const uint64_t[::1] bias_of
    cdef const int32_t[::1] module_of
    cdef _Modules modules
    cdef RuleSets rule_sets
    cdef Found cache[1 << CACHE_BITS]
    cdef uint32_t generation
    cdef Memory memory
    cdef Evaluator evaluator
    cdef Registers registers
    cdef Registers before

    cdef int flags
    cdef int64_t own
    cdef uint64_t pc
    cdef uint64_t sp
    cdef uint64_t lookup_address
    cdef Py_ssize_t mapping
    cdef Py_ssize_t module
    cdef int rule
    cdef int how
    cdef bint is_exact
    cdef bint is_first
    cdef bint is_on_other_stack
    cdef bint is_by_sp
    cdef bint goes_on
    cdef int end
    cdef Py_ssize_t bad_module
    # Why the return address is not known, 0: it is, or nothing says where it is; whether it lies on another stack.
    cdef int lost
    cdef bint is_lost_elsewhere

    def __cinit__(self, machine, Memory memory, _Modules modules):
        self.word = machine.word_size
        self.word_mask = UINT32_MAX if self.word == 4 else UINT64_MAX
        self.address_mask = UINT64_MAX >> (64 - <int>machine.address_bits)
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
            and 1 <= self.n_registers < MAX_REGISTERS
            and 0 <= self.sp_register < self.n_registers
            and 0 <= self.fp_register < self.n_registers
            and 0 <= self.return_column < self.n_registers
            and self.link_register < self.n_registers
        ):
            raise ValueError("a machine with other registers than it has")
        self.memory = memory
        self.modules = modules
        self.rule_sets = modules.rule_sets
        self.evaluator = Evaluator(memory, self.word, self.n_registers)

    cdef int enter(self, space) except -1:
        """Goes into an AddressSpace."""
        self.start_of, self.end_of, self.bias_of, self.module_of = space.columns()
        n = self.start_of.shape[0]
        if self.end_of.shape[0] != n or self.bias_of.shape[0] != n or self.module_of.shape[0] != n:
            raise ValueError("mappings: an array has the wrong length")
        self.generation += 1
        return 0

    cdef Py_ssize_t mapping_at(self, uint64_t address) noexcept nogil:
        """Returns the mapping that holds an address, -1 for none."""
        cdef Py_ssize_t m = last_at(self.start_of, 0, self.start_of.shape[0], address)
        return m if m >= 0 and address < self.end_of[m] else -1

    # ------------------------------------------------------------ the first frame

    cdef void begin(
        self, const int32_t[::1] register_of, uint64_t registers_at, uint64_t dump_at, uint64_t dump_n, int flags,
        int64_t own,
    ) noexcept nogil:
        """Goes to the first frame of a sample; see `UserStacks`."""
        cdef Py_ssize_t k
        cdef int r
        self.flags = flags
        self.own = own
        self.end = COMPLETE
        self.bad_module = -1
        self.how = BY_IP
        self.is_exact = True
        self.is_first = True
        self.is_on_other_stack = False
        self.is_by_sp = False
        self.goes_on = True
        self.registers.known = 0
        for k in range(register_of.shape[0]):
            r = register_of[k]
            if 0 <= r < self.n_registers:
                set_register(
                    &self.registers, r, u64(self.memory.data, registers_at + 8 * k, self.memory.big) & self.word_mask
                )
        if not is_known(&self.registers, self.pc_register) or not is_known(&self.registers, self.sp_register):
            self.stop(LOST_REGISTER)
            return
        self.pc = self.registers.values[self.pc_register] & self.address_mask
        if self.return_column == self.pc_register:
            forget(&self.registers, self.pc_register)
        self.sp = self.registers.values[self.sp_register]
        self.memory.begin(self.sp, dump_at, dump_n)
        self.evaluator.n_steps = dump_n + FREE_STEPS

    cdef void stop(self, int end) noexcept nogil:
        self.goes_on = False
        self.end = end

    # ------------------------------------------------------------ look-up

    cdef inline int look_up(self) except -1 nogil:
        """Finds the mapping and the rule set at pc. Only the first frame may be in no mapping."""
        cdef uint64_t address = self.pc if self.is_exact else self.pc - 1
        cdef Found* found = &self.cache[(address * <uint64_t>GOLDEN) >> (64 - CACHE_BITS)]
        self.lookup_address = address
        if found.address != address or found.generation != self.generation:
            self.find(address, found)
        self.mapping = found.mapping
        self.rule = found.rule
        if self.mapping < 0 and not self.is_first:
            self.stop(COMPLETE if self.is_argument_count() else BAD_ADDRESS)
        return 0

    cdef int find(self, uint64_t address, Found* found) except -1 nogil:
        """Looks up what the cache does not have."""
        cdef Py_ssize_t mapping = self.mapping_at(address)
        cdef Py_ssize_t module = self.module_of[mapping] if mapping >= 0 else -1
        cdef int rule = NO_RULE
        if module >= self.modules.modules.shape[0]:
            raise ValueError("a mapping of a module that is not there")
        if module >= 0:
            if not self.modules.modules[module].is_read:
                with gil:
                    self.modules.read(module)
                    self.evaluator.read_from(self.rule_sets.pool)
            rule = self.rule_at(mapping, address)
        found.address = address
        found.generation = self.generation
        found.mapping = mapping
        found.rule = rule
        return 0

    cdef int rule_at(self, Py_ssize_t mapping, uint64_t address) noexcept nogil:
        """Returns the rule set at an address in a mapping of a module, whose rows are known, or NO_RULE."""
        return self.modules.rule_at(self.module_of[mapping], address - self.bias_of[mapping])

    # ------------------------------------------------------------ the caller

    cdef void go_up(self) noexcept nogil:
        """Goes from a frame that was looked up to its caller's: pc, sp and registers."""
        cdef bint is_never_called = False
        self.is_by_sp = False
        if self.rule < 0:
            self.module = self.module_of[self.mapping] if self.mapping >= 0 else -1
            if self.is_first and self.flags & IS_KERNEL_MODE and self.module >= 0:
                # Behind the last instruction of a function without a return: __restore_rt's system call.
                self.rule = self.rule_at(self.mapping, self.lookup_address - 1)
            elif not self.is_exact and self.module >= 0:
                # A return address that begins what has information, with no call in front: a stack that makecontext
                # made begins so, in __start_context.
                is_never_called = self.rule_at(self.mapping, self.pc) >= 0
        if self.rule >= 0:
            self.by_rules()
        elif is_never_called or self.is_at_entry_point():
            self.stop(COMPLETE)
        elif self.is_first and self.module >= 0 and self.modules.is_in_plt(self.module, self.link_address()):
            self.by_plt()
        elif not (self.is_first and self.own >= 0 and self.by_own_stack()):
            self.by_frame_pointer()

    cdef uint64_t link_address(self) noexcept nogil:
        """Returns pc as an address in its module's file."""
        return self.pc - self.bias_of[self.mapping]

    cdef bint is_at_entry_point(self) noexcept nogil:
        cdef uint64_t entry_point = self.modules.modules[self.module].entry_point if self.module >= 0 else 0
        return entry_point != 0 and self.link_address() - entry_point < ENTRY_BYTES

    cdef bint is_argument_count(self) noexcept nogil:
        """Whether pc is no return address, but argc, behind which argv lies with a 0 at its end: so the stack of a process
        begins, and nobody calls the function at its entry point, which a program without a C library may have in C."""
        cdef uint64_t n = self.pc
        cdef uint64_t argument, end
        if n >= self.memory.size // self.word:
            return False
        self.memory.failure = 0
        argument = self.memory.load(self.sp, self.word)
        end = self.memory.load(self.sp + n * self.word, self.word)
        return self.memory.failure == 0 and argument > self.sp and argument - self.sp <= FARTHEST and end == 0

    cdef inline void move(self, uint64_t pc, uint64_t cfa, int how, bint is_signal) noexcept nogil:
        """Goes to the caller, if it is plausible. cfa: its stack pointer."""
        pc &= self.address_mask
        if pc == 0:
            self.stop(COMPLETE)
        elif not is_signal and (cfa < self.sp or (cfa == self.sp and not self.is_first)):
            self.stop(BAD_CFA)
        elif is_signal and (cfa < self.memory.low or cfa - self.memory.low > self.memory.size):
            self.is_on_other_stack = (
                self.flags & IS_SHORT_COPY != 0 or cfa < self.sp or cfa - self.sp > SIGNAL_FRAME
            )
        self.sp = cfa
        self.pc = pc
        self.how = how
        self.is_exact = is_signal
        self.is_first = False

    # ------------------------------------------------------------ by call-frame information

    cdef inline void by_rules(self) noexcept nogil:
        """Goes to the caller as the rule set says."""
        cdef RuleSet* rules = &self.rule_sets.sets[self.rule]
        cdef int target = rules.column
        cdef bint is_signal = rules.is_signal != 0
        cdef int last = -1
        cdef Rule* rule
        cdef int64_t i
        cdef int r
        cdef uint64_t cfa
        self.is_by_sp = rules.cfa.kind == CFA_REGISTER and rules.cfa.number == self.sp_register
        cfa = self.cfa(&rules.cfa)
        if not self.goes_on:
            return
        self.before.known = self.registers.known
        for r in range(self.n_registers):
            self.before.values[r] = self.registers.values[r]
        if not is_signal:
            self.registers.known &= self.callee_saved
        # Without a rule the return address is in the link register, as long as nothing was called.
        if target == self.link_register and self.is_first:
            self.keep(target, target)
        set_register(&self.registers, self.sp_register, cfa)
        self.lost = 0
        for i in range(rules.first, rules.first + rules.n):
            rule = &self.rule_sets.rules[i]
            if rule.number == target:
                last = rule.kind
            self.restore(rule, cfa, target, is_signal)
        if last == UNDEFINED:
            self.stop(COMPLETE)
        elif self.lost != 0:
            self.stop(self.ending(self.lost, self.is_lost_elsewhere))
        elif not is_known(&self.registers, target):
            self.stop(LOST_REGISTER)
        else:
            if target == self.pc_register:
                forget(&self.registers, target)
            cfa = self.registers.values[self.sp_register]
            self.move(self.registers.values[target], cfa, BY_SIGNAL if is_signal else BY_CFI, is_signal)

    cdef inline uint64_t cfa(self, const Rule* rule) noexcept nogil:
        """Returns the canonical frame address, or ends the stack."""
        cdef uint64_t known = self.registers.known
        cdef int r = self.pc_register
        cdef uint64_t value
        if rule.kind == CFA_REGISTER:
            if not is_known(&self.registers, rule.number):
                self.stop(LOST_REGISTER)
            return self.registers.values[rule.number] + <uint64_t>rule.value & self.word_mask
        # The program counter is a register in expressions: the lazy PLT's has it.
        set_register(
            &self.registers, r, self.lookup_address if self.return_column == r else self.registers.values[r]
        )
        value = self.evaluated(rule, &self.registers, NULL)
        self.registers.known = known
        if self.memory.failure != 0:
            self.stop(self.ending(self.memory.failure, self.is_missing_elsewhere()))
        return value

    cdef uint64_t evaluated(self, const Rule* rule, const Registers* registers, const uint64_t* start) noexcept nogil:
        """Returns the value of a rule's expression."""
        cdef uint64_t length = rule.value & (1 << LENGTH_BITS) - 1
        return self.evaluator.evaluate(rule.value >> LENGTH_BITS, length, registers, start)

    cdef inline void restore(self, const Rule* rule, uint64_t cfa, int target, bint is_signal) noexcept nogil:
        """Sets the register that the rule is for to the caller's value. target: the register of the return address."""
        cdef int r = rule.number
        cdef int kind = rule.kind
        cdef uint64_t value = rule.value
        if kind == OFFSET:
            self.reload(r, cfa + value & self.word_mask, target, is_signal)
        elif kind == VAL_OFFSET:
            set_register(&self.registers, r, cfa + value & self.word_mask)
        elif kind == EXPRESSION or kind == VAL_EXPRESSION:
            value = self.evaluated(rule, &self.before, &cfa)
            if self.memory.failure != 0:
                self.lose(r, target)
            elif kind == EXPRESSION:
                self.reload(r, value, target, is_signal)
            else:
                set_register(&self.registers, r, value)
        elif kind == SAME:
            self.keep(r, r)
        elif kind == REGISTER:
            self.keep(r, value)
        else:
            forget(&self.registers, r)

    cdef inline void reload(self, int r, uint64_t slot, int target, bint is_signal) noexcept nogil:
        """Sets a register to what was saved. Below the stack pointer: an epilogue has popped it already."""
        cdef uint64_t value
        if slot < self.sp and self.sp - slot < PAGE and r != target and not is_signal:
            self.keep(r, r)
            return
        self.memory.failure = 0
        value = self.memory.load(slot, self.word)
        if self.memory.failure == 0:
            set_register(&self.registers, r, value)
        else:
            self.lose(r, target)

    cdef void keep(self, int r, int other) noexcept nogil:
        """Sets a register to what the other was in the frame below."""
        if is_known(&self.before, other):
            set_register(&self.registers, r, self.before.values[other])
        else:
            forget(&self.registers, r)

    cdef void lose(self, int r, int target) noexcept nogil:
        """Forgets a register whose value cannot be had."""
        forget(&self.registers, r)
        if r == target:
            self.lost = self.memory.failure
            self.is_lost_elsewhere = self.is_missing_elsewhere()

    cdef bint is_missing_elsewhere(self) noexcept nogil:
        """Whether the address that is not known lies on another stack than the dump."""
        if self.is_on_other_stack or self.is_by_sp:
            return self.is_on_other_stack
        return self.memory.missing < self.memory.low or self.memory.missing - self.memory.low > FARTHEST

    cdef int ending(self, int failure, bint is_elsewhere) noexcept nogil:
        """Returns how a stack ends where a value cannot be had."""
        if failure == NO_MEMORY:
            return ELSEWHERE if is_elsewhere else NOT_COPIED if self.flags & IS_SHORT_COPY else TRUNCATED
        return LOST_REGISTER if failure == NO_REGISTER else BAD_CFA

    # ------------------------------------------------------------ without call-frame information

    cdef void by_plt(self) noexcept nogil:
        """Goes to the caller from a slot of a PLT, which has no frame: the return address is where the call has left
        it."""
        cdef uint64_t cfa = self.sp
        cdef uint64_t value
        if self.link_register >= 0:
            if not is_known(&self.registers, self.link_register):
                self.stop(LOST_REGISTER)
                return
            value = self.registers.values[self.link_register]
        else:
            self.memory.failure = 0
            value = self.memory.load(cfa, self.word)
            if self.memory.failure != 0:
                self.stop(self.ending(NO_MEMORY, self.is_missing_elsewhere()))
                return
            cfa += self.word
        self.registers.known &= self.callee_saved
        set_register(&self.registers, self.sp_register, cfa)
        self.move(value, cfa, BY_PLT, False)

    cdef bint by_own_stack(self) noexcept nogil:
        """Goes to the caller by the return address behind the function's own part of the stack, if that is in code. Returns
        whether it is."""
        cdef uint64_t cfa = self.sp + self.own + self.word
        cdef uint64_t value
        self.memory.failure = 0
        value = self.memory.load(cfa - self.word, self.word) & self.address_mask
        if self.memory.failure != 0 or value == 0 or self.mapping_at(value - 1) < 0:
            return False
        self.registers.known &= self.callee_saved
        set_register(&self.registers, self.sp_register, cfa)
        self.move(value, cfa, BY_OWN_STACK, False)
        return True

    cdef void by_frame_pointer(self) noexcept nogil:
        """Goes to the caller by two words at the frame pointer: the caller's, and the return address, which must be in
        code. Where those of a frame say 0, that is the outermost one (System V ABI of x86-64, section 3.4.1), as
        Go's runtime.goexit is; musl's threads begin with a 0 in the register, too."""
        cdef uint64_t slot = self.registers.values[self.fp_register]
        cdef uint64_t cfa = slot + 2 * self.word
        cdef uint64_t fp, value
        if slot == 0 and is_known(&self.registers, self.fp_register) and (
            self.how == BY_FRAME_POINTER
            or (not self.is_first and self.module >= 0 and self.modules.modules[self.module].is_musl)
        ):
            self.stop(COMPLETE)
            return
        self.stop(NO_CFI)
        self.bad_module = self.module if self.mapping >= 0 else -2
        if not is_known(&self.registers, self.fp_register) or slot & (self.word - 1) or slot < self.sp or cfa < slot:
            return
        self.memory.failure = 0
        fp = self.memory.load(slot, self.word)
        value = self.memory.load(slot + self.word, self.word) & self.address_mask
        if self.memory.failure != 0:
            # Behind the copy of the stack is more of it: what the frame pointer of a caller says is believed.
            if not self.is_first and not self.is_missing_elsewhere():
                self.stop(self.ending(NO_MEMORY, False))
                self.bad_module = -1
            return
        if value != 0 and self.mapping_at(value - 1) < 0:
            return
        self.goes_on = True
        self.end = COMPLETE
        self.bad_module = -1
        self.registers.known = 0
        set_register(&self.registers, self.fp_register, fp)
        set_register(&self.registers, self.sp_register, cfa)
        self.move(value, cfa, BY_FRAME_POINTER, False)


# ---------------------------------------------------------------- stacks


@cython.final
cdef class Chains:
    """Callchains, innermost first: of stack i, first[i] to first[i + 1] of pc (uint64) and how (uint8, How). end
    (uint8, End): how each ended; module (int32): for want of whose call-frame information, -1 nobody's, -2 no
    mapping."""

    cdef readonly object first
    cdef readonly object end
    cdef readonly object module
    cdef uint64_t[::1] pcs
    cdef uint8_t[::1] hows
    cdef Py_ssize_t n

    def __cinit__(self, Py_ssize_t n_stacks):
        self.first = np.zeros(n_stacks + 1, np.int64)
        self.end = np.zeros(n_stacks, np.uint8)
        self.module = np.zeros(n_stacks, np.int32)
        self.pcs = np.zeros(16 * n_stacks, np.uint64)
        self.hows = np.zeros(16 * n_stacks, np.uint8)

    @property
    def pc(self):
        return self.pcs.base[: self.n]

    @property
    def how(self):
        return self.hows.base[: self.n]

    cdef inline int add(self, uint64_t pc, int how) except -1 nogil:
        """Adds a frame."""
        if self.n == self.pcs.shape[0]:
            with gil:
                self.pcs = grown(self.pcs.base, self.n + 1)
                self.hows = grown(self.hows.base, self.n + 1)
        self.pcs[self.n] = pc
        self.hows[self.n] = how
        self.n += 1
        return 0


@cython.final
cdef class Unwinder:
    """Unwinds stacks, which are UserStacks, in the code of modules, which are numbered as address spaces name them.

    problems: of the call-frame information of each module that was needed.
    """

    cdef readonly dict problems
    cdef _Walk walk
    cdef const int32_t[::1] register_of
    cdef const int64_t[::1] registers_at
    cdef const int64_t[::1] dump_at
    cdef const int64_t[::1] dump_n
    cdef const uint8_t[::1] flags
    cdef const int32_t[::1] own

    def __cinit__(self, modules, stacks):
        cdef _Modules known = _Modules(modules)
        self.problems = known.problems
        self.walk = _Walk(stacks.machine, Memory(stacks.data, stacks.big), known)
        self.register_of = stacks.register_of
        self.registers_at = stacks.registers_at
        self.dump_at = stacks.dump_at
        self.dump_n = stacks.dump_n
        self.flags = stacks.flags
        n = self.registers_at.shape[0]
        self.own = stacks.own if stacks.own is not None else np.full(n, -1, np.int32)
        if not self.dump_at.shape[0] == self.dump_n.shape[0] == self.flags.shape[0] == self.own.shape[0] == n:
            raise ValueError("stacks: an array has the wrong length")

    def unwind(self, const int64_t[::1] rows, space):
        """Returns the Chains of the stacks `rows`, while the AddressSpace is as it is now."""
        cdef Py_ssize_t n = rows.shape[0]
        cdef Chains chains = Chains(n)
        cdef int64_t[::1] first = chains.first
        cdef uint8_t[::1] end = chains.end
        cdef int32_t[::1] module = chains.module
        cdef Py_ssize_t i
        self.walk.enter(space)
        with nogil:
            for i in range(n):
                self.unwind_one(self.walk, rows[i], chains)
                first[i + 1] = chains.n
                end[i] = self.walk.end
                module[i] = self.walk.bad_module
        return chains

    cdef int unwind_one(self, _Walk walk, int64_t row, Chains chains) except -1 nogil:
        """Adds the frames of a stack."""
        cdef int64_t size = walk.memory.data.shape[0]
        cdef int64_t depth = 0
        cdef int64_t most
        if not 0 <= row < self.registers_at.shape[0]:
            raise IndexError("a stack that is not there")
        most = self.dump_n[row] // walk.word + FREE_FRAMES
        if (
            not 0 <= self.registers_at[row] <= size - 8 * self.register_of.shape[0]
            or not 0 <= self.dump_n[row] <= size
            or not 0 <= self.dump_at[row] <= size - self.dump_n[row]
        ):
            raise ValueError("a stack outside the data")
        walk.begin(
            self.register_of, self.registers_at[row], self.dump_at[row], self.dump_n[row], self.flags[row], self.own[row]
        )
        while walk.goes_on:
            if depth >= most:
                walk.stop(BAD_CFA)
                break
            walk.look_up()
            if not walk.goes_on:
                break
            chains.add(walk.pc, walk.how)
            depth += 1
            walk.go_up()
        return 0
