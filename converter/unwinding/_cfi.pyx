"""Call-frame information: a section's CIEs and FDEs, and what the instructions of FDEs say of each address.

Sources: DWARF 5, section 6.4, for `.debug_frame`; LSB Core, "Exception Frames", for `.eh_frame` and the augmentations;
AADWARF64.
"""

from libc.stdint cimport INT64_MAX, UINT32_MAX, UINT64_MAX
from libc.string cimport memcmp, memset

import numpy as np

from traceferry.native.arrays import grown

from traceferry.native.bytes cimport u32, u64
from traceferry.native.cursor cimport Cursor
from traceferry.native.hashing cimport GOLDEN
from traceferry.native.leb128 cimport CUT
from traceferry.native.search cimport last_at

cdef enum:
    MAX_REMEMBERED = 30
    # Bytes of instructions of a CIE, which are run for each of its FDEs: compilers need some ten.
    MAX_INITIAL_SIZE = 256
    DW_EH_PE_OMIT = 0xFF
    DW_EH_PE_ALIGNED = 0x50

_RULE = np.dtype([("value", np.int64), ("number", np.int32), ("kind", np.int32)])
_RULE_SET = np.dtype(
    [("cfa", _RULE), ("first", np.int64), ("n", np.int32), ("column", np.int16), ("is_signal", np.int16)]
)


# ---------------------------------------------------------------- rule sets


cdef class RuleSets:
    """All rule sets that modules share, each once: its CFA, and a rule for each register that has one.

    Values of rules that are expressions are place << LENGTH_BITS | length in a pool of their bytes. slots: open
    addressing, a power of two and longer than `sets`.
    """

    def __cinit__(self):
        self.sets = np.zeros(1, _RULE_SET)
        self.rules = np.zeros(1, _RULE)
        self.pool = np.zeros(1, np.uint8)
        self.slots = np.full(2, -1, np.int32)
        self.expressions = {}

    @property
    def arrays(self):
        """Returns sets, rules and pool; not copies."""
        return self.sets.base[: self.n_sets], self.rules.base[: self.n_rules], self.pool.base[: self.n_pool]

    cdef int grow(self) except -1 with gil:
        """Makes room for another set with rules for all registers."""
        cdef Py_ssize_t s
        self.rules = grown(self.rules.base, self.n_rules + MAX_REGISTERS)
        if self.n_sets == self.sets.shape[0]:
            self.sets = grown(self.sets.base, self.n_sets + 1)
            self.slots = np.full(4 * self.n_sets, -1, np.int32)
            for s in range(self.n_sets):
                self.slots[self.slot_of(s)] = s
        return 0

    cdef int64_t pooled(self, const uint8_t[::1] data, uint64_t at, uint64_t length) except -1 with gil:
        """Returns the place and length in the pool of an expression that stands at data[at:at + length]."""
        cdef uint64_t i
        code = bytes(data[at : at + length])
        if code not in self.expressions:
            self.expressions[code] = self.n_pool << LENGTH_BITS | length
            self.pool = grown(self.pool.base, self.n_pool + length)
            for i in range(length):
                self.pool[self.n_pool + i] = data[at + i]
            self.n_pool += length
        return self.expressions[code]

    cdef Py_ssize_t slot_of(self, Py_ssize_t number) noexcept nogil:
        """Returns where the rule set, or one that is equal, is in `slots`, or the free slot where it belongs."""
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef RuleSet* wanted = &self.sets[number]
        cdef Rule* rule = &wanted.cfa
        cdef uint64_t h = wanted.column * 2 + wanted.is_signal
        cdef RuleSet* found
        cdef Py_ssize_t i
        for i in range(-1, wanted.n):
            if i >= 0:
                rule = &self.rules[wanted.first + i]
            h = ((h ^ h >> 29) + rule.number * 16 + rule.kind ^ <uint64_t>rule.value) * <uint64_t>GOLDEN
        h = (h ^ h >> 31) & mask
        while self.slots[h] >= 0:
            found = &self.sets[self.slots[h]]
            if (
                found.n == wanted.n
                and found.column == wanted.column
                and found.is_signal == wanted.is_signal
                and memcmp(&found.cfa, &wanted.cfa, sizeof(Rule)) == 0
                and memcmp(&self.rules[found.first], &self.rules[wanted.first], found.n * sizeof(Rule)) == 0
            ):
                break
            h = (h + 1) & mask
        return h

    cdef int64_t enter(self, Py_ssize_t n_rules) noexcept nogil:
        """Returns the number of the rule set that stands behind the others, with n_rules behind their rules: that of an
        equal one, or its own, which then is one more."""
        cdef Py_ssize_t h
        self.sets[self.n_sets].first = self.n_rules
        self.sets[self.n_sets].n = n_rules
        h = self.slot_of(self.n_sets)
        if self.slots[h] < 0:
            self.slots[h] = self.n_sets
            self.n_sets += 1
            self.n_rules += n_rules
        return self.slots[h]


# ---------------------------------------------------------------- the instructions of FDEs


cdef struct Cie:
    # code, end: where its instructions are.
    int64_t code
    int64_t end
    uint64_t code_factor
    int64_t data_factor
    int32_t column
    int32_t encoding
    int32_t segment_size
    int32_t has_data
    int32_t is_signal
    int32_t is_usable


_CIE = np.dtype("i8,i8,u8,i8,i4,i4,i4,i4,i4,i4")


cdef class _RowTable:
    """Rows by rising address, of which each holds to the next: the number of a rule set, -1 for none."""

    cdef uint64_t[::1] pc
    cdef int32_t[::1] rule
    cdef Py_ssize_t n

    def __cinit__(self, Py_ssize_t size):
        self.pc = np.empty(size, np.uint64)
        self.rule = np.empty(size, np.int32)

    cdef void add(self, uint64_t pc, int rule) noexcept nogil:
        """Adds a row if it changes the rule set. What another row says of the same address is replaced."""
        cdef Py_ssize_t n = self.n
        if n > 0 and self.pc[n - 1] == pc:
            n -= 1
        if rule != (self.rule[n - 1] if n > 0 else -1):
            self.pc[n] = pc
            self.rule[n] = rule
            n += 1
        self.n = n


cdef struct Registers:
    Rule cfa
    Rule rules[MAX_REGISTERS]


cdef class _Program:
    """Runs instructions, which its cursor reads: the rules that hold where it is, those behind the CIE's instructions,
    and those that were remembered."""

    cdef Cursor cursor
    cdef RuleSets sets
    cdef uint64_t n_registers
    cdef uint64_t code_factor
    cdef uint64_t data_factor
    cdef Registers present
    cdef Registers initial
    cdef Registers remembered[MAX_REMEMBERED]
    cdef int n_remembered

    def __cinit__(self, Cursor cursor, RuleSets sets, int n_registers):
        self.cursor = cursor
        self.sets = sets
        self.n_registers = n_registers

    cdef int64_t begin(self, const Cie* cie) except? -1 nogil:
        """Runs the instructions of a CIE. Returns -1 if they cannot be read."""
        cdef int64_t by
        self.code_factor = cie.code_factor
        self.data_factor = cie.data_factor
        memset(&self.present, 0, sizeof(Registers))
        self.n_remembered = 0
        self.cursor.begin(cie.code, cie.end)
        by = self.advance()
        self.initial = self.present
        self.n_remembered = 0
        return by

    cdef int64_t advance(self) except? -1 nogil:
        """Runs instructions until the location changes. Returns what to add to it, 0 at the end, -1 if an instruction
        cannot be read."""
        cdef int64_t by = 0
        while by == 0 and self.cursor.at < self.cursor.end:
            by = self.step()
            if self.cursor.damage != 0:
                return -1
        return by

    cdef int64_t step(self) except? -1 nogil:
        """Runs one instruction. Returns what to add to the location, -1 if the instruction cannot be read."""
        cdef int op = self.cursor.fixed(1)
        cdef int high = op >> 6
        cdef uint64_t low = op & 0x3F
        if high == 1:  # advance_loc
            return self.distance(low)
        if high == 2:  # offset
            self.put(low, OFFSET, self.cursor.uleb() * self.data_factor)
            return 0
        if high == 3:  # restore
            self.restore(low)
            return 0
        if op == 0x00 or op == 0x2D or op == 0x2C:  # nop, AArch64: negate_ra_state, ..._with_pc
            return 0
        if op == 0x02 or op == 0x03 or op == 0x04:  # advance_loc1, 2, 4
            return self.distance(self.cursor.fixed(1 << op - 2))
        if op == 0x2E:  # GNU_args_size
            self.cursor.uleb()
            return 0
        if op == 0x0A or op == 0x0B:
            return self.remember() if op == 0x0A else self.recall()
        if op == 0x0C or op == 0x0D or op == 0x0E or op == 0x0F or op == 0x12 or op == 0x13:
            return self.define_cfa(op)
        if op < 0x05 or (op > 0x16 and op != 0x2F):
            return -1
        return self.define_register(op)

    cdef int64_t distance(self, uint64_t value) noexcept nogil:
        """Returns a factored advance, which is never negative."""
        return value * self.code_factor & INT64_MAX

    cdef void put(self, uint64_t register, int kind, int64_t value) noexcept nogil:
        """Sets the rule of a register; that of one which is not followed (of vectors) is passed over."""
        if register < self.n_registers:
            self.present.rules[register] = Rule(value, register, kind)

    cdef void restore(self, uint64_t register) noexcept nogil:
        """Sets the CIE's rule of a register."""
        if register < self.n_registers:
            self.present.rules[register] = self.initial.rules[register]

    cdef int64_t remember(self) noexcept nogil:
        """Pushes the rules. Returns 0, or -1 where too many are pushed."""
        if self.n_remembered >= MAX_REMEMBERED:
            return -1
        self.remembered[self.n_remembered] = self.present
        self.n_remembered += 1
        return 0

    cdef int64_t recall(self) noexcept nogil:
        """Pops the rules. Returns 0, or -1 where none are pushed."""
        if self.n_remembered <= 0:
            return -1
        self.n_remembered -= 1
        self.present = self.remembered[self.n_remembered]
        return 0

    cdef int64_t define_cfa(self, int op) except? -1 nogil:
        """Runs an instruction that is about the CFA. Returns 0, or -1 where there is no offset to change."""
        cdef Rule* cfa = &self.present.cfa
        if op == 0x0F:  # def_cfa_expression
            cfa[0] = Rule(self.expression(), 0, EXPRESSION)
            return 0
        if op == 0x0C or op == 0x12:  # def_cfa, def_cfa_sf
            cfa.kind = CFA_REGISTER
        elif cfa.kind != CFA_REGISTER:
            return -1
        if op == 0x0C or op == 0x12 or op == 0x0D:  # def_cfa_register
            cfa.number = min(self.cursor.uleb(), self.n_registers)
        if op == 0x12 or op == 0x13:  # def_cfa_offset_sf
            cfa.value = self.cursor.sleb() * self.data_factor
        elif op != 0x0D:  # def_cfa_offset
            cfa.value = self.cursor.uleb()
        return 0

    cdef int64_t define_register(self, int op) except? -1 nogil:
        """Runs an instruction that is about a register. Returns 0."""
        cdef uint64_t register = self.cursor.uleb()
        if op == 0x05 or op == 0x14:  # offset_extended, val_offset
            self.put(register, OFFSET if op == 0x05 else VAL_OFFSET, self.cursor.uleb() * self.data_factor)
        elif op == 0x11 or op == 0x15:  # offset_extended_sf, val_offset_sf
            self.put(register, OFFSET if op == 0x11 else VAL_OFFSET, self.cursor.sleb() * self.data_factor)
        elif op == 0x2F:  # GNU_negative_offset_extended
            self.put(register, OFFSET, (0 - self.cursor.uleb()) * self.data_factor)
        elif op == 0x06:  # restore_extended
            self.restore(register)
        elif op == 0x07 or op == 0x08:
            self.put(register, UNDEFINED if op == 0x07 else SAME, 0)
        elif op == 0x09:
            self.put(register, REGISTER, min(self.cursor.uleb(), self.n_registers))
        else:  # expression, val_expression
            self.put(register, EXPRESSION if op == 0x10 else VAL_EXPRESSION, self.expression())
        return 0

    cdef int64_t expression(self) except -1 nogil:
        """Returns the place and length of an expression in the pool."""
        cdef uint64_t length = self.cursor.uleb()
        cdef uint64_t at = self.cursor.at
        if length >> LENGTH_BITS:
            self.cursor.damage = CUT
        else:
            self.cursor.skip(length)
        return self.sets.pooled(self.cursor.data, at, length) if self.cursor.damage == 0 else 0

    cdef int rule_set(self, const Cie* cie) except -2 nogil:
        """Returns the number of the rule set that holds, -1 where there is no CFA."""
        cdef Rule* cfa = &self.present.cfa
        cdef RuleSet* target
        cdef Py_ssize_t n = 0
        cdef uint64_t i
        if cfa.kind == UNSPECIFIED or (cfa.kind == CFA_REGISTER and <uint64_t>cfa.number >= self.n_registers):
            return -1
        if not self.sets.has_room():
            self.sets.grow()
        target = &self.sets.sets[self.sets.n_sets]
        target.cfa = cfa[0]
        target.column = cie.column
        target.is_signal = cie.is_signal
        for i in range(self.n_registers):
            if self.present.rules[i].kind != UNSPECIFIED:
                self.sets.rules[self.sets.n_rules + n] = self.present.rules[i]
                n += 1
        return self.sets.enter(n)

    cdef bint run(
        self, const Cie* cie, uint64_t first, uint64_t last, int64_t code, int64_t stop, _RowTable rows
    ) except -1 nogil:
        """Adds the rows of the FDE from first to last whose instructions stand from code to stop. Returns whether they
        can be read; if not, there are no rules from there on."""
        cdef uint64_t pc = first
        cdef int64_t by = self.begin(cie)
        if by >= 0:
            self.cursor.begin(code, stop)
        while by >= 0:
            by = self.advance()
            if by < 0:
                break
            rows.add(pc, self.rule_set(cie))
            if by == 0 or <uint64_t>by >= last - pc:
                break
            pc += by
        if by < 0:
            rows.add(pc, -1)
        rows.add(last, -1)
        return by >= 0


# ---------------------------------------------------------------- a section


cdef class FrameSection:
    """The records of `.eh_frame`, or of `.debug_frame` (is_debug).

    address: of its first byte, as the linker wrote it; word: the bytes of an address. is_cut: whether a record's length
    was wrong, and the rest of the section is not read.
    """

    cdef Cursor cursor
    cdef const uint8_t[::1] data
    cdef bint big
    cdef bint is_debug
    cdef int word
    cdef int n_registers
    cdef uint64_t address
    cdef const int64_t[::1] cie_at
    cdef Cie[::1] cies
    cdef readonly bint is_cut

    def __cinit__(
        self, const uint8_t[::1] data, uint64_t address, bint is_debug, bint big, int word, int n_registers
    ):
        if not 1 <= n_registers < MAX_REGISTERS:
            raise ValueError("a machine with other registers than it has")
        self.cursor = Cursor(data, big)
        self.data = data
        self.big = big
        self.is_debug = is_debug
        self.word = word
        self.n_registers = n_registers
        self.address = address
        self.cie_at = np.zeros(0, np.int64)
        self.cies = np.zeros(0, _CIE)

    def records(self):
        """Returns columns: where each record is, where its contents, behind the CIE pointer, start and end, and where
        its CIE is, -1 for a CIE itself. A length of 0 is passed over: linkers leave end markers in the middle."""
        cdef int64_t size = self.data.shape[0]
        # A record has at least a length and a pointer to a CIE.
        columns = [np.empty(size // 8, np.int64) for _ in range(4)]
        cdef int64_t[::1] at = columns[0]
        cdef int64_t[::1] start = columns[1]
        cdef int64_t[::1] end = columns[2]
        cdef int64_t[::1] cie = columns[3]
        cdef int64_t n = 0
        cdef int64_t p = 0
        cdef int64_t field
        cdef int width
        cdef uint64_t length, pointer
        with nogil:
            while p + 4 <= size:
                length = u32(self.data, p, self.big)
                if length == 0:
                    p += 4
                    continue
                field = p + 4
                width = 4
                if length == UINT32_MAX:
                    if p + 12 > size:
                        break
                    length = u64(self.data, p + 4, self.big)
                    field = p + 12
                    width = 8 if self.is_debug else 4
                if length > <uint64_t>(size - field) or length < <uint64_t>width:
                    break
                pointer = u64(self.data, field, self.big) if width == 8 else u32(self.data, field, self.big)
                at[n] = p
                start[n] = field + width
                end[n] = field + length
                if pointer == (0 if not self.is_debug else UINT64_MAX if width == 8 else UINT32_MAX):
                    cie[n] = -1
                elif self.is_debug:
                    cie[n] = min(pointer, <uint64_t>size)
                else:
                    cie[n] = field - <int64_t>pointer if pointer <= <uint64_t>field else size
                n += 1
                p = end[n - 1]
        self.is_cut = p < size
        return tuple([column[:n] for column in columns])

    # ------------------------------------------------------------ CIEs

    def read_cies(self, const int64_t[::1] at, const int64_t[::1] start, const int64_t[::1] end):
        """Reads the CIEs of the section, which are where `records` found them, rising."""
        cdef Py_ssize_t i
        if start.shape[0] != at.shape[0] or end.shape[0] != at.shape[0]:
            raise ValueError("read_cies: an array has the wrong length")
        self.cie_at = at
        self.cies = np.zeros(at.shape[0], _CIE)
        for i in range(at.shape[0]):
            if not 0 <= start[i] <= end[i] <= self.data.shape[0]:
                raise ValueError("read_cies: a record outside the section")
            self.cursor.begin(start[i], end[i])
            self.read_cie(self.cursor, &self.cies[i])
            if self.cursor.damage != 0:
                self.cies[i].is_usable = False

    cdef void read_cie(self, Cursor cursor, Cie* cie) noexcept nogil:
        """Reads the CIE where the cursor is; is_usable: whether all is known that its FDEs need."""
        cdef int version = cursor.fixed(1)
        cdef uint64_t augmentation = cursor.at
        cdef uint64_t size, column, size_of_data
        while cursor.fixed(1) != 0:
            pass
        size = cursor.at - 1 - augmentation
        if cursor.damage != 0 or (version != 1 and version != 3 and version != 4):
            return
        cie.has_data = size > 0 and self.data[augmentation] == c"z"
        if size == 2 and self.data[augmentation] == c"e" and self.data[augmentation + 1] == c"h":
            cursor.skip(self.word)
        elif size > 0 and not cie.has_data:
            return
        if version == 4:
            if cursor.fixed(1) != <uint64_t>self.word:
                return
            cie.segment_size = cursor.fixed(1)
        cie.code_factor = cursor.uleb()
        cie.data_factor = <int64_t>cursor.sleb()
        column = cursor.fixed(1) if version == 1 else cursor.uleb()
        cie.column = min(column, <uint64_t>MAX_REGISTERS)
        cie.code = cursor.at
        if cie.has_data:
            size_of_data = cursor.uleb()
            if size_of_data > cursor.end - cursor.at:
                return
            cie.code = cursor.at + size_of_data
            self.read_augmentation(cie, augmentation + 1, augmentation + size)
        cie.end = cursor.end
        cie.is_usable = (
            0 <= cie.end - cie.code <= MAX_INITIAL_SIZE
            and cie.column < self.n_registers
            and 0 < cie.code_factor <= UINT32_MAX
            and -<int64_t>UINT32_MAX <= cie.data_factor <= UINT32_MAX
            and cie.encoding != DW_EH_PE_OMIT
        )

    cdef void read_augmentation(self, Cie* cie, uint64_t letter, uint64_t end) noexcept nogil:
        """Reads the augmentation data of the letters from data[letter] on."""
        while letter < end:
            if self.data[letter] == c"R":
                cie.encoding = self.cursor.fixed(1)
            elif self.data[letter] == c"P":
                self.skip_pointer(self.cursor.fixed(1))
            elif self.data[letter] == c"L":
                self.cursor.fixed(1)
            elif self.data[letter] == c"S":
                cie.is_signal = True
            elif self.data[letter] != c"B":
                break  # what is behind an unknown letter is not known either; the length of all is
            letter += 1

    cdef void skip_pointer(self, int encoding) noexcept nogil:
        """Skips a pointer of a DW_EH_PE encoding."""
        cdef int low = encoding & 0x0F
        cdef uint64_t place = self.address + self.cursor.at
        if encoding == DW_EH_PE_ALIGNED:
            self.cursor.skip((0 - place) % self.word + self.word)
        elif low == 1 or low == 9:
            self.cursor.uleb()
        elif encoding != DW_EH_PE_OMIT:
            self.cursor.skip(self.width_of(encoding))

    # ------------------------------------------------------------ FDEs

    cdef int width_of(self, int encoding) noexcept nogil:
        """Returns the bytes of a pointer of a DW_EH_PE encoding without LEB128; 0 for those that are reserved."""
        cdef int low = encoding & 0x0F
        if low == 0:
            return self.word
        return 1 << (low & 7) - 1 if 2 <= (low & 7) <= 4 else 0

    cdef uint64_t pointer(self, Cursor cursor, int encoding, uint64_t address) noexcept nogil:
        """Returns a pointer of a DW_EH_PE encoding, or sets the cursor's damage where it cannot be read. address: of
        the section."""
        cdef int low = encoding & 0x0F
        cdef int width = self.width_of(encoding)
        cdef uint64_t at = cursor.at
        cdef uint64_t value
        if low == 1 or low == 9:
            value = cursor.leb(low == 9)
        else:
            if width == 0:
                cursor.damage = CUT
            value = cursor.fixed_signed(width) if low & 8 else cursor.fixed(width)
        if encoding & 0xF0 == 0x10:
            value += address + at
        elif encoding & 0xF0 != 0:
            cursor.damage = CUT
        return value & UINT32_MAX if self.word == 4 else value

    def ranges(self, const int64_t[::1] start, const int64_t[::1] end, const int64_t[::1] cie_at):
        """Returns columns of FDEs, of which the arguments say where they and their CIEs are: first address, size, where
        the instructions start (-1: the FDE cannot be read), and the number of the CIE."""
        cdef Py_ssize_t n = start.shape[0]
        if end.shape[0] != n or cie_at.shape[0] != n:
            raise ValueError("ranges: an array has the wrong length")
        columns = [np.empty(n, dtype) for dtype in (np.uint64, np.uint64, np.int64, np.int32)]
        cdef uint64_t[::1] first = columns[0]
        cdef uint64_t[::1] size = columns[1]
        cdef int64_t[::1] code = columns[2]
        cdef int32_t[::1] number = columns[3]
        cdef Cursor cursor = self.cursor
        cdef Cie* cie
        cdef Py_ssize_t i, c
        with nogil:
            for i in range(n):
                if not 0 <= start[i] <= end[i] <= self.data.shape[0]:
                    raise ValueError("ranges: a record outside the section")
                first[i] = size[i] = 0
                code[i] = number[i] = -1
                c = last_at(self.cie_at, 0, self.cie_at.shape[0], cie_at[i])
                if c < 0 or self.cie_at[c] != cie_at[i] or not self.cies[c].is_usable:
                    continue
                cie = &self.cies[c]
                cursor.begin(start[i], end[i])
                cursor.skip(cie.segment_size)
                first[i] = self.pointer(cursor, cie.encoding, self.address)
                size[i] = self.pointer(cursor, cie.encoding & 0x0F, 0)
                if cie.has_data:
                    cursor.skip(cursor.uleb())
                code[i] = cursor.at if cursor.damage == 0 else -1
                number[i] = c
        return tuple(columns)

    def rows(
        self, const uint64_t[::1] first, const uint64_t[::1] last, const int64_t[::1] code, const int64_t[::1] stop,
        const int32_t[::1] cie, RuleSets sets,
    ):
        """Runs the instructions of FDEs, sorted by address and without overlaps, each from code to stop.

        Returns rows (address, rule set), rising: a rule set holds from its address to the next row's; -1 is none. Each
        FDE ends with a row without a rule set, unless the next one begins there. And how many FDEs had instructions
        that cannot be read: there they end, without a rule set.
        """
        cdef Py_ssize_t n = first.shape[0]
        cdef Py_ssize_t most = 0
        cdef Py_ssize_t i
        cdef int n_bad = 0
        if last.shape[0] != n or code.shape[0] != n or stop.shape[0] != n or cie.shape[0] != n:
            raise ValueError("rows: an array has the wrong length")
        for i in range(n):
            if not 0 <= code[i] <= stop[i] <= self.data.shape[0] or not 0 <= cie[i] < self.cies.shape[0]:
                raise ValueError("rows: an FDE outside the section")
            if not self.cies[cie[i]].is_usable:
                raise ValueError("rows: an FDE of a CIE that cannot be used")
            most += stop[i] - code[i] + 2  # an instruction makes one row at most
        cdef _RowTable rows = _RowTable(most)
        cdef _Program program = _Program(self.cursor, sets, self.n_registers)
        with nogil:
            for i in range(n):
                n_bad += not program.run(&self.cies[cie[i]], first[i], last[i], code[i], stop[i], rows)
        return rows.pc.base[: rows.n].copy(), rows.rule.base[: rows.n].copy(), n_bad
