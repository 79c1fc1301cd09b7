# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Call-frame information: runs the instructions of FDEs into rows.

Cython's pure-Python mode: also runs interpreted. Sources: DWARF 5, section 6.4; LSB Core, "Exception Frames";
AADWARF64.

A *rule set* says how to find the caller's registers: the CFA, and for each register that has a rule its kind and value.
Equal rule sets are one.
"""

import cython

from traceferry.kernels.cursor import Cursor
from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.hashing import GOLDEN
from traceferry.kernels.integers import ALL, as_signed
from traceferry.kernels.leb128 import CUT
from traceferry.unwinding.cfi_inlined import (
    CFA_REGISTER,
    EXPRESSION,
    FDE,
    LENGTH_BITS,
    MAX_REMEMBERED,
    N_BAD,
    N_ENTRIES,
    N_ROWS,
    N_RULES,
    OFFSET,
    REGISTER,
    SAME,
    UNDEFINED,
    UNSPECIFIED,
    VAL_EXPRESSION,
    VAL_OFFSET,
)


@c_inline
def scaled(value: cython.ulonglong, factor: cython.longlong) -> cython.longlong:
    """A factored offset. factor: below 2^32 in size."""
    by: cython.ulonglong = factor & ALL
    return as_signed(value * by & ALL)


@cython.final
@cython.cclass
class Rules:
    """The rules at one place of an FDE's instructions, which cursor reads.

    kinds, values: of each register and, last, of the CFA: first the present rules, then those of the CIE, then the
    remembered ones. Behind all values: the registers of the CFAs, of the present rules and of the remembered ones.
    """

    cursor: Cursor
    n_registers: cython.ulonglong
    width: cython.int
    kinds: cython.uchar[::1]
    values: cython.longlong[::1]
    cfa_register: cython.Py_ssize_t
    n_remembered: cython.int
    code_factor: cython.ulonglong
    data_factor: cython.longlong

    def __init__(self, cursor: Cursor, n_registers: cython.int, kinds: cython.uchar[::1], values: cython.longlong[::1]):
        self.cursor = cursor
        self.n_registers = n_registers
        self.width = n_registers + 1
        self.cfa_register = self.width * (MAX_REMEMBERED + 2)
        if kinds.shape[0] < self.cfa_register or values.shape[0] < self.cfa_register + MAX_REMEMBERED + 2:
            raise ValueError("run: an array has the wrong length")
        self.kinds = kinds
        self.values = values

    @c_function
    def begin(self, code_factor: cython.ulonglong, data_factor: cython.longlong) -> cython.void:
        i: cython.int
        for i in range(self.width):
            self.kinds[i] = UNSPECIFIED
            self.values[i] = 0
        self.values[self.cfa_register] = 0
        self.n_remembered = 0
        self.code_factor = code_factor
        self.data_factor = data_factor

    @c_function
    def copy(self, source: cython.Py_ssize_t, target: cython.Py_ssize_t) -> cython.void:
        """From one of the sets of rules to another: 0 the present ones, 1 those of the CIE, 2 and on the remembered."""
        i: cython.Py_ssize_t
        for i in range(self.width):
            self.kinds[self.width * target + i] = self.kinds[self.width * source + i]
            self.values[self.width * target + i] = self.values[self.width * source + i]

    @c_function
    def has_cfa(self) -> cython.bint:
        kind: cython.int = self.kinds[self.n_registers]
        n: cython.longlong = self.n_registers
        return kind == EXPRESSION or (kind == CFA_REGISTER and self.values[self.cfa_register] < n)

    @c_inline
    def advance(self) -> cython.longlong:
        """Runs instructions until the location changes: what to add to it, 0 at the end, -1 if one cannot be read."""
        by: cython.longlong = 0
        while by == 0 and self.cursor.at < self.cursor.end:
            by = self.step()
            if self.cursor.damage != 0:
                by = -1
        return by

    @c_inline
    def step(self) -> cython.longlong:
        """One instruction: what to add to the location, -1 if it cannot be read."""
        op: cython.int = self.cursor.fixed(1)
        high: cython.int = op >> 6
        register: cython.ulonglong = op & 0x3F
        if high == 1:  # advance_loc
            return as_signed(register * self.code_factor & ALL >> 1)
        if high == 2:  # offset
            value: cython.ulonglong = self.cursor.uleb()
            self.put(register, OFFSET, scaled(value, self.data_factor))
            return 0
        if high == 3:  # restore
            self.put_initial(register)
            return 0
        if op == 0x00 or op == 0x2D or op == 0x2C:  # nop, AArch64: negate_ra_state, ..._with_pc
            return 0
        if op == 0x02 or op == 0x03 or op == 0x04:  # advance_loc1, 2, 4
            value = self.cursor.fixed(1 << op - 2)
            return as_signed(value * self.code_factor & ALL >> 1)
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

    @c_inline
    def put(self, register: cython.ulonglong, kind: cython.int, value: cython.longlong) -> cython.void:
        """The rule of a register; that of one which is not followed (of vectors) is passed over."""
        if register < self.n_registers:
            self.kinds[register] = kind
            self.values[register] = value

    @c_inline
    def put_initial(self, register: cython.ulonglong) -> cython.void:
        if register < self.n_registers:
            self.put(register, self.kinds[self.width + register], self.values[self.width + register])

    @c_function
    def remember(self) -> cython.longlong:
        if self.n_remembered >= MAX_REMEMBERED:
            return -1
        self.n_remembered += 1
        self.copy(0, self.n_remembered + 1)
        self.values[self.cfa_register + self.n_remembered + 1] = self.values[self.cfa_register]
        return 0

    @c_function
    def recall(self) -> cython.longlong:
        if self.n_remembered <= 0:
            return -1
        self.copy(self.n_remembered + 1, 0)
        self.values[self.cfa_register] = self.values[self.cfa_register + self.n_remembered + 1]
        self.n_remembered -= 1
        return 0

    @c_inline
    def offset(self, is_factored: cython.bint) -> cython.longlong:
        """Of a CFA: unsigned, or signed and factored."""
        value: cython.ulonglong = self.cursor.leb(is_factored)
        return scaled(value, self.data_factor) if is_factored else as_signed(value)

    @c_inline
    def define_cfa(self, op: cython.int) -> cython.longlong:
        cfa: cython.Py_ssize_t = self.n_registers
        if op == 0x0F:  # def_cfa_expression
            self.kinds[cfa] = EXPRESSION
            self.values[cfa] = self.expression()
            self.values[self.cfa_register] = 0
            return 0
        if op == 0x0C or op == 0x12:  # def_cfa, def_cfa_sf
            self.kinds[cfa] = CFA_REGISTER
        elif self.kinds[cfa] != CFA_REGISTER:
            return -1
        if op == 0x0C or op == 0x12 or op == 0x0D:  # def_cfa_register
            register: cython.ulonglong = self.cursor.uleb()
            self.values[self.cfa_register] = as_signed(min(register, self.n_registers))
        if op != 0x0D:  # def_cfa_offset, def_cfa_offset_sf
            self.values[cfa] = self.offset(op == 0x12 or op == 0x13)
        return 0

    @c_function
    def define_register(self, op: cython.int) -> cython.longlong:
        register: cython.ulonglong = self.cursor.uleb()
        if op == 0x05 or op == 0x14:  # offset_extended, val_offset
            value: cython.ulonglong = self.cursor.uleb()
            self.put(register, OFFSET if op == 0x05 else VAL_OFFSET, scaled(value, self.data_factor))
        elif op == 0x11 or op == 0x15:  # offset_extended_sf, val_offset_sf
            value = self.cursor.sleb()
            self.put(register, OFFSET if op == 0x11 else VAL_OFFSET, scaled(value, self.data_factor))
        elif op == 0x2F:  # GNU_negative_offset_extended
            value = self.cursor.uleb()
            self.put(register, OFFSET, scaled((0 - value) & ALL, self.data_factor))
        elif op == 0x06:  # restore_extended
            self.put_initial(register)
        elif op == 0x07:
            self.put(register, UNDEFINED, 0)
        elif op == 0x08:
            self.put(register, SAME, 0)
        elif op == 0x09:
            value = self.cursor.uleb()
            self.put(register, REGISTER, as_signed(min(value, self.n_registers)))
        else:  # expression, val_expression
            self.put(register, EXPRESSION if op == 0x10 else VAL_EXPRESSION, self.expression())
        return 0

    @c_function
    def expression(self) -> cython.longlong:
        """The place and length of an expression, which is passed over."""
        length: cython.ulonglong = self.cursor.uleb()
        place: cython.longlong = self.cursor.at
        if length >> LENGTH_BITS:
            self.cursor.damage = CUT
            return 0
        self.cursor.skip(length)
        return place << LENGTH_BITS | as_signed(length)


@c_function
def rule_set(
    n_registers: cython.int,
    return_column: cython.int,
    is_signal: cython.int,
    kinds: cython.const[cython.uchar][::1],
    values: cython.const[cython.longlong][::1],
    state: cython.longlong[::1],
    cfa_kind: cython.uchar[::1],
    cfa_register: cython.uchar[::1],
    cfa_value: cython.longlong[::1],
    column: cython.uchar[::1],
    signal: cython.uchar[::1],
    first: cython.longlong[::1],
    entry_register: cython.uchar[::1],
    entry_kind: cython.uchar[::1],
    entry_value: cython.longlong[::1],
    slots: cython.int[::1],
) -> cython.longlong:
    """The number of the present rules; one more set fits."""
    base: cython.Py_ssize_t = (n_registers + 1) * (MAX_REMEMBERED + 2)
    n_rules: cython.longlong = state[N_RULES]
    n: cython.longlong = first[n_rules]
    mask: cython.ulonglong = slots.shape[0] - 1
    h: cython.ulonglong = return_column * 2 + is_signal
    i: cython.int
    # Written where it will stand if it is new.
    cfa_kind[n_rules] = kinds[n_registers]
    cfa_register[n_rules] = values[base] if kinds[n_registers] == CFA_REGISTER else 0
    cfa_value[n_rules] = values[n_registers]
    column[n_rules] = return_column
    signal[n_rules] = is_signal
    part: cython.ulonglong = values[n_registers] & ALL
    h = (h * 64 + cfa_register[n_rules] + cfa_kind[n_rules] ^ part) * GOLDEN & ALL
    for i in range(n_registers):
        if kinds[i] != UNSPECIFIED:
            entry_register[n] = i
            entry_kind[n] = kinds[i]
            entry_value[n] = values[i]
            part = values[i] & ALL
            h = ((h ^ h >> 29) + i * 16 + kinds[i] ^ part) * GOLDEN & ALL
            n += 1
    h = (h ^ h >> 31) & mask
    while True:
        s: cython.int = slots[h]
        if s < 0:
            break
        if (
            cfa_kind[s] == cfa_kind[n_rules]
            and cfa_register[s] == cfa_register[n_rules]
            and cfa_value[s] == cfa_value[n_rules]
            and column[s] == column[n_rules]
            and signal[s] == signal[n_rules]
            and first[s + 1] - first[s] == n - first[n_rules]
        ):
            j: cython.longlong = 0
            while j < n - first[n_rules]:
                if (
                    entry_register[first[s] + j] != entry_register[first[n_rules] + j]
                    or entry_kind[first[s] + j] != entry_kind[first[n_rules] + j]
                    or entry_value[first[s] + j] != entry_value[first[n_rules] + j]
                ):
                    break
                j += 1
            if j == n - first[n_rules]:
                return s
        h = (h + 1) & mask
    slots[h] = n_rules
    first[n_rules + 1] = n
    state[N_RULES] = n_rules + 1
    state[N_ENTRIES] = n
    return n_rules


def run(
    d: cython.const[cython.uchar][::1],
    big: cython.bint,
    n_registers: cython.int,
    fde_first: cython.const[cython.ulonglong][::1],
    fde_end: cython.const[cython.ulonglong][::1],
    fde_code: cython.const[cython.longlong][::1],
    fde_stop: cython.const[cython.longlong][::1],
    fde_cie: cython.const[cython.int][::1],
    cie_code: cython.const[cython.longlong][::1],
    cie_stop: cython.const[cython.longlong][::1],
    cie_code_factor: cython.const[cython.ulonglong][::1],
    cie_data_factor: cython.const[cython.longlong][::1],
    cie_column: cython.const[cython.int][::1],
    cie_signal: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    row_pc: cython.ulonglong[::1],
    row_rule: cython.int[::1],
    cfa_kind: cython.uchar[::1],
    cfa_register: cython.uchar[::1],
    cfa_value: cython.longlong[::1],
    column: cython.uchar[::1],
    signal: cython.uchar[::1],
    first: cython.longlong[::1],
    entry_register: cython.uchar[::1],
    entry_kind: cython.uchar[::1],
    entry_value: cython.longlong[::1],
    slots: cython.int[::1],
    kinds: cython.uchar[::1],
    values: cython.longlong[::1],
):
    """Runs the instructions of FDEs, sorted by address and without overlaps, into rows (address, rule set), rising: a
    rule holds from its address to the next row's; -1 is no rule. Each FDE ends with a row without a rule, unless the
    next one begins there.

    Rule sets are cfa_kind, cfa_register, cfa_value, column (of the return address), signal, and the entries first[i] to
    first[i + 1] of entry_*. slots: open addressing over them, a power of two long, -1 is free. kinds, values: scratch,
    (n_registers + 1) * (MAX_REMEMBERED + 2), values MAX_REMEMBERED + 2 longer.

    state: the FDE to go on at, the numbers of rows, of rule sets and of entries, and how many FDEs had instructions
    that cannot be read: there they end, without a rule. Stops before an FDE for which rows, rule sets, entries or slots
    might not do: grow them and call again.
    """
    n: cython.Py_ssize_t = fde_first.shape[0]
    n_cies: cython.Py_ssize_t = cie_code.shape[0]
    size: cython.Py_ssize_t = row_pc.shape[0]
    rules: cython.Py_ssize_t = cfa_kind.shape[0]
    entries: cython.Py_ssize_t = entry_register.shape[0]
    if (
        fde_end.shape[0] != n
        or fde_code.shape[0] != n
        or fde_stop.shape[0] != n
        or fde_cie.shape[0] != n
        or cie_stop.shape[0] != n_cies
        or cie_code_factor.shape[0] != n_cies
        or cie_data_factor.shape[0] != n_cies
        or cie_column.shape[0] != n_cies
        or cie_signal.shape[0] != n_cies
        or row_rule.shape[0] != size
        or cfa_register.shape[0] != rules
        or cfa_value.shape[0] != rules
        or column.shape[0] != rules
        or signal.shape[0] != rules
        or first.shape[0] != rules + 1
        or entry_kind.shape[0] != entries
        or entry_value.shape[0] != entries
        or slots.shape[0] & (slots.shape[0] - 1)
        or slots.shape[0] < 2 * rules
        or n_registers < 1
        or n_registers > 63
        or state.shape[0] < 5
    ):
        raise ValueError("run: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(n_cies):
        if cie_code[i] < 0 or cie_code[i] > cie_stop[i] or cie_stop[i] > d.shape[0]:
            raise ValueError("run: a CIE outside the section")
        if cie_column[i] < 0 or cie_column[i] >= n_registers:
            raise ValueError("run: a return address in no register")
    f: cython.Py_ssize_t = int(state[FDE])
    n_rows: cython.Py_ssize_t = int(state[N_ROWS])
    if f < 0 or n_rows < 0 or state[N_RULES] < 0 or state[N_RULES] > rules or state[N_ENTRIES] > entries:
        raise ValueError("run: an invalid state")
    cursor: Cursor = Cursor(d, big)
    present: Rules = Rules(cursor, n_registers, kinds, values)
    outside: cython.bint = False
    with cython.nogil:
        while f < n:
            c: cython.Py_ssize_t = fde_cie[f]
            stop: cython.longlong = fde_stop[f]
            if c < 0 or c >= n_cies or fde_code[f] < 0 or fde_code[f] > stop or stop > d.shape[0]:
                outside = True
                break
            # An instruction makes one row, and so one rule set, at most.
            most: cython.longlong = stop - fde_code[f] + 3
            if (
                n_rows + most > size
                or state[N_RULES] + most >= rules
                or state[N_ENTRIES] + most * n_registers > entries
            ):
                break
            present.begin(cie_code_factor[c], cie_data_factor[c])
            cursor.begin(cie_code[c], cie_stop[c])
            by: cython.longlong = present.advance()
            present.copy(0, 1)
            present.n_remembered = 0
            pc: cython.ulonglong = fde_first[f]
            last: cython.int = -2
            if n_rows > 0 and row_pc[n_rows - 1] == pc:
                n_rows -= 1
                if n_rows > 0:
                    last = row_rule[n_rows - 1]
            if by >= 0:
                cursor.begin(fde_code[f], stop)
            while by >= 0:
                by = present.advance()
                if by < 0:
                    break
                rule: cython.int = -1
                if present.has_cfa():
                    rule = rule_set(
                        n_registers, cie_column[c], cie_signal[c], kinds, values, state, cfa_kind, cfa_register,
                        cfa_value, column, signal, first, entry_register, entry_kind, entry_value, slots,
                    )  # fmt: skip
                if rule != last:
                    row_pc[n_rows] = pc
                    row_rule[n_rows] = rule
                    n_rows += 1
                    last = rule
                forward: cython.ulonglong = by
                if (cursor.at >= cursor.end and by == 0) or forward >= fde_end[f] - pc:
                    break
                pc += forward
            if by < 0:
                state[N_BAD] += 1
                if last != -1:
                    row_pc[n_rows] = pc
                    row_rule[n_rows] = -1
                    n_rows += 1
                    last = -1
            if last != -1:
                row_pc[n_rows] = fde_end[f]
                row_rule[n_rows] = -1
                n_rows += 1
            f += 1
    state[FDE] = f
    state[N_ROWS] = n_rows
    if outside:
        raise ValueError("run: an FDE outside the section")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    run = plain_integers(run)
