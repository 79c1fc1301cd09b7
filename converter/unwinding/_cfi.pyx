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
    # Those of an FDE; the longest seen has some hundred.
    MAX_CODE_SIZE = 1 << 16
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


cdef struct Fde:
    # first, size: of its code; code, stop: where its instructions are; cie: where its CIE is, then the CIE's number.
    uint64_t first
    uint64_t size
    int64_t code
    int64_t stop
    int64_t cie


_CIE = np.dtype("i8,i8,u8,i8,i4,i4,i4,i4,i4,i4")
_FDE = np.dtype([("first", "u8"), ("size", "u8"), ("code", "i8"), ("stop", "i8"), ("cie", "i8")])


cdef struct Registers:
    Rule cfa
    Rule rules[MAX_REGISTERS]


cdef class _Program:
    """Runs instructions, which its cursor reads: the rules that hold where it is, those behind the CIE's instructions,
    and those that were remembered. The cursor is damaged by an instruction that cannot be run.

    pc, rule: rows by rising address, of which each holds to the next: the number of a rule set, -1 for none.
    """

    cdef Cursor cursor
    cdef RuleSets sets
    cdef uint64_t n_registers
    cdef uint64_t code_factor
    cdef uint64_t data_factor
    cdef Registers present
    cdef Registers initial
    cdef Registers remembered[MAX_REMEMBERED]
    cdef int n_remembered
    cdef uint64_t[::1] pc
    cdef int32_t[::1] rule
    cdef Py_ssize_t n_rows

    def __cinit__(self, Cursor cursor, RuleSets sets, int n_registers, Py_ssize_t most_rows):
        self.cursor = cursor
        self.sets = sets
        self.n_registers = n_registers
        self.pc = np.empty(most_rows, np.uint64)
        self.rule = np.empty(most_rows, np.int32)

    cdef bint run(self, const Cie* cie, const Fde* fde) except -1 nogil:
        """Adds the rows of an FDE. Returns whether its instructions can be run; if not, there are no rules from there
        on."""
        cdef uint64_t pc = fde.first
        cdef uint64_t last = pc + fde.size
        cdef int64_t by
        self.code_factor = cie.code_factor
        self.data_factor = cie.data_factor
        memset(&self.present, 0, sizeof(Registers))
        self.n_remembered = 0
        self.cursor.begin(cie.code, cie.end)
        self.advance()
        self.initial = self.present
        self.n_remembered = 0
        if self.cursor.damage == 0:
            self.cursor.begin(fde.code, fde.stop)
        while self.cursor.damage == 0:
            by = self.advance()
            if self.cursor.damage == 0:
                self.add_row(pc, self.rule_set(cie))
                if by == 0 or <uint64_t>by >= last - pc:
                    break
                pc += by
        if self.cursor.damage != 0:
            self.add_row(pc, -1)
        self.add_row(last, -1)
        return self.cursor.damage == 0

    cdef void add_row(self, uint64_t pc, int rule) noexcept nogil:
        """Adds a row if it changes the rule set. What another row says of the same address is replaced."""
        cdef Py_ssize_t n = self.n_rows
        if n > 0 and self.pc[n - 1] == pc:
            n -= 1
        if rule != (self.rule[n - 1] if n > 0 else -1):
            self.pc[n] = pc
            self.rule[n] = rule
            n += 1
        self.n_rows = n

    cdef int64_t advance(self) except? -1 nogil:
        """Runs instructions until the location changes. Returns what to add to it, 0 at the end."""
        cdef int64_t by = 0
        while by == 0 and self.cursor.at < self.cursor.end and self.cursor.damage == 0:
            by = self.step()
        return by

    cdef int64_t step(self) except? -1 nogil:
        """Runs one instruction. Returns what to add to the location."""
        cdef int op = self.cursor.fixed(1)
        cdef uint64_t low = op & 0x3F
        if op >> 6 == 1:  # advance_loc
            return self.distance(low)
        if 0x02 <= op <= 0x04:  # advance_loc1, 2, 4
            return self.distance(self.cursor.fixed(1 << op - 2))
        if op >> 6 != 0:  # offset, restore: as offset_extended, restore_extended
            self.set_rule(0x05 if op >> 6 == 2 else 0x06, low)
        elif op == 0x0A:  # remember_state
            self.remember()
        elif op == 0x0B:  # restore_state
            self.recall()
        elif 0x0C <= op <= 0x0F or op == 0x12 or op == 0x13:
            self.define_cfa(op)
        elif 0x05 <= op <= 0x16 or op == 0x2F:
            self.set_rule(op, self.cursor.uleb())
        elif op == 0x2E:  # GNU_args_size
            self.cursor.uleb()
        elif op != 0x00 and op != 0x2D and op != 0x2C:  # nop, AArch64: negate_ra_state, ..._with_pc
            self.cursor.damage = CUT
        return 0

    cdef int64_t distance(self, uint64_t value) noexcept nogil:
        """Returns a factored advance, which is never negative."""
        return value * self.code_factor & INT64_MAX

    cdef void remember(self) noexcept nogil:
        """Pushes the rules, unless too many are pushed."""
        if self.n_remembered >= MAX_REMEMBERED:
            self.cursor.damage = CUT
        else:
            self.remembered[self.n_remembered] = self.present
            self.n_remembered += 1

    cdef void recall(self) noexcept nogil:
        """Pops the rules, if some are pushed."""
        if self.n_remembered <= 0:
            self.cursor.damage = CUT
        else:
            self.n_remembered -= 1
            self.present = self.remembered[self.n_remembered]

    cdef int define_cfa(self, int op) except -1 nogil:
        """Runs an instruction that is about the CFA. An expression has no offset to change. As in libgcc, a register or
        an offset may come first where there is no CFA yet: hand-written code does so (wasmtime's fibers)."""
        cdef Rule* cfa = &self.present.cfa
        if op == 0x0F:  # def_cfa_expression
            cfa[0] = Rule(self.expression(), 0, EXPRESSION)
            return 0
        if cfa.kind == EXPRESSION and op != 0x0C and op != 0x12:  # def_cfa, def_cfa_sf
            self.cursor.damage = CUT
        if op == 0x0C or op == 0x12 or op == 0x0D:  # def_cfa_register
            cfa.kind = CFA_REGISTER
            cfa.number = min(self.cursor.uleb(), self.n_registers)
        if op == 0x12 or op == 0x13:  # def_cfa_offset_sf
            cfa.value = self.cursor.sleb() * self.data_factor
        elif op != 0x0D:  # def_cfa_offset
            cfa.value = self.cursor.uleb()
        return 0

    cdef int set_rule(self, int op, uint64_t register) except -1 nogil:
        """Runs an instruction that is about a register; one that is not followed (of vectors) is passed over."""
        cdef Rule rule = Rule(0, register, SAME)
        if op == 0x05 or op == 0x14:  # offset_extended, val_offset
            rule.kind = OFFSET if op == 0x05 else VAL_OFFSET
            rule.value = self.cursor.uleb() * self.data_factor
        elif op == 0x11 or op == 0x15:  # offset_extended_sf, val_offset_sf
            rule.kind = OFFSET if op == 0x11 else VAL_OFFSET
            rule.value = self.cursor.sleb() * self.data_factor
        elif op == 0x2F:  # GNU_negative_offset_extended
            rule.kind = OFFSET
            rule.value = (0 - self.cursor.uleb()) * self.data_factor
        elif op == 0x07:
            rule.kind = UNDEFINED
        elif op == 0x09:
            rule.kind = REGISTER
            rule.value = min(self.cursor.uleb(), self.n_registers)
        elif op == 0x10 or op == 0x16:  # expression, val_expression
            rule.kind = EXPRESSION if op == 0x10 else VAL_EXPRESSION
            rule.value = self.expression()
        if register < self.n_registers:
            self.present.rules[register] = self.initial.rules[register] if op == 0x06 else rule  # restore_extended
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
    # CIEs by their places, rising, and FDEs.
    cdef int64_t[::1] cie_at
    cdef Cie[::1] cies
    cdef Fde[::1] fdes
    cdef Py_ssize_t n_cies
    cdef Py_ssize_t n_fdes
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
        # A record has at least a length and a pointer to a CIE.
        self.fdes = np.empty(data.shape[0] // 8, _FDE)
        cdef Py_ssize_t i
        with nogil:
            self.read_records()
            for i in range(self.n_fdes):
                self.read_fde(&self.fdes[i])

    def rows(self, RuleSets sets):
        """Returns rows (address, rule set), rising: a rule set holds from its address to the next row's; -1 is none.
        Each FDE ends with a row without a rule set, unless the next one begins there. And how many FDEs cannot be read:
        where it is their instructions, they end there, without a rule set."""
        cdef Fde[::1] fdes
        cdef Py_ssize_t i, n_bad
        found, n_bad = self.sound_fdes()
        fdes = found
        # An instruction makes one row at most.
        most_rows = int((found["stop"] - found["code"] + 2).sum())
        cdef _Program program = _Program(self.cursor, sets, self.n_registers, most_rows)
        with nogil:
            for i in range(fdes.shape[0]):
                n_bad += not program.run(&self.cies[fdes[i].cie], &fdes[i])
        n = program.n_rows
        return program.pc.base[:n].copy(), program.rule.base[:n].copy(), n_bad

    def ranges(self):
        """Returns (first address, end), uint64, of what each FDE describes, rising; none overlap."""
        found, _ = self.sound_fdes()
        return found["first"].copy(), found["first"] + found["size"]

    def records_at(self, const uint64_t[::1] addresses):
        """Returns (where the FDEs end that hold at addresses, or limit those that do; where their CIEs begin), int64,
        rising: offsets in the section. At least one FDE, if any holds code."""
        found, _ = self.sound_fdes()
        firsts = found["first"]
        holding = np.unique(np.searchsorted(firsts, addresses, "right") - 1)
        holding = holding[holding >= 0] if len(holding) and holding[-1] >= 0 else np.arange(min(len(found), 1))
        ends = firsts[holding] + found["size"][holding]
        behind = np.minimum(holding + 1, len(found) - 1)
        found = found[np.unique(np.concatenate((holding, behind[firsts[behind] == ends])))]
        return np.sort(found["stop"]), np.unique(self.cie_at.base[found["cie"]])

    cdef tuple sound_fdes(self):
        """Returns (the FDEs that hold code, by address; how many cannot be read)."""
        found = self.fdes.base[: self.n_fdes]
        is_sound = (found["code"] >= 0) & (found["stop"] - found["code"] <= MAX_CODE_SIZE)
        n_bad = int((~is_sound).sum())
        # Code that the linker discarded has an address of 0, or a size of 0.
        ends_after = found["first"] + found["size"] > found["first"]
        found = found[is_sound & (found["first"] > 0) & ends_after]
        found = found[np.argsort(found["first"], kind="stable")]
        # Of FDEs that overlap, the one that starts later holds: that is what a binary search finds.
        found["size"][:-1] = np.minimum(found["size"][:-1], np.diff(found["first"]))
        return found[found["size"] > 0], n_bad

    cdef int read_records(self) except -1 nogil:
        """Reads the CIEs, and where FDEs and their CIEs are. A length of 0 is passed over: linkers leave end markers in
        the middle."""
        cdef int64_t size = self.data.shape[0]
        cdef int64_t p = 0
        cdef int64_t field
        cdef int width
        cdef uint64_t length, pointer
        cdef Fde* fde
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
            self.cursor.begin(field + width, field + length)
            if pointer == (0 if not self.is_debug else UINT64_MAX if width == 8 else UINT32_MAX):
                self.add_cie(p)
            else:
                fde = &self.fdes[self.n_fdes]
                fde.code, fde.stop = field + width, field + length
                if self.is_debug:
                    fde.cie = min(pointer, <uint64_t>size)
                else:
                    fde.cie = field - <int64_t>pointer if pointer <= <uint64_t>field else size
                self.n_fdes += 1
            p = field + length
        self.is_cut = p < size
        return 0

    # ------------------------------------------------------------ CIEs

    cdef int add_cie(self, int64_t at) except -1 nogil:
        """Adds the CIE at whose contents the cursor is."""
        if self.n_cies == self.cies.shape[0]:
            with gil:
                self.cie_at = grown(self.cie_at.base, self.n_cies + 1)
                self.cies = grown(self.cies.base, self.n_cies + 1)
        self.read_cie(self.cursor, &self.cies[self.n_cies])
        self.cie_at[self.n_cies] = at
        self.n_cies += 1
        return 0

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
            and cursor.damage == 0
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
        """Skips a pointer of a DW_EH_PE encoding, to whatever it is relative."""
        cdef uint64_t place = self.address + self.cursor.at
        if encoding == DW_EH_PE_ALIGNED:
            self.cursor.skip((0 - place) % self.word + self.word)
        elif encoding != DW_EH_PE_OMIT:
            self.pointer(encoding & 0x0F)

    # ------------------------------------------------------------ FDEs

    cdef uint64_t pointer(self, int encoding) noexcept nogil:
        """Returns a pointer of a DW_EH_PE encoding, or sets the cursor's damage where it cannot be read."""
        cdef int low = encoding & 0x0F
        cdef uint64_t place = self.address + self.cursor.at
        cdef uint64_t value = 0
        if low == 1 or low == 9:
            value = self.cursor.leb(low == 9)
        elif low == 0:
            value = self.cursor.fixed(self.word)
        elif 2 <= (low & 7) <= 4:  # udata2, udata4, udata8, sdata2, sdata4, sdata8
            value = self.cursor.fixed_signed(1 << (low & 7) - 1) if low & 8 else self.cursor.fixed(1 << (low & 7) - 1)
        else:
            self.cursor.damage = CUT
        if encoding & 0xF0 == 0x10:
            value += place
        elif encoding & 0xF0 != 0:
            self.cursor.damage = CUT
        return value & UINT32_MAX if self.word == 4 else value

    cdef void read_fde(self, Fde* fde) noexcept nogil:
        """Reads what stands in front of the instructions of an FDE, whose contents begin at `code` as yet. code is then
        -1 where that cannot be read, or the CIE cannot be used."""
        cdef Py_ssize_t number = last_at(self.cie_at, 0, self.n_cies, fde.cie)
        cdef Cie* cie
        self.cursor.begin(fde.code, fde.stop)
        fde.code = -1
        fde.first = fde.size = 0
        if number < 0 or self.cie_at[number] != fde.cie or not self.cies[number].is_usable:
            return
        fde.cie = number
        cie = &self.cies[number]
        self.cursor.skip(cie.segment_size)
        fde.first = self.pointer(cie.encoding)
        fde.size = self.pointer(cie.encoding & 0x0F)
        if cie.has_data:
            self.cursor.skip(self.cursor.uleb())
        if self.cursor.damage == 0:
            fde.code = self.cursor.at
