# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Call-frame information: runs the instructions of FDEs into rows.

Cython's pure-Python mode: also runs interpreted. Sources: DWARF 5, section 6.4; LSB Core, "Exception Frames";
AADWARF64.

A *rule set* says how to find the caller's registers: the CFA, and for each register that has a rule its kind and value.
Equal rule sets are one.
"""

import cython

from traceferry.kernels.bytes import u16, u32
from traceferry.kernels.leb128 import as_signed, sleb, uleb
from traceferry.unwind.cfi_inlined import (
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

CFI_GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
CFI_ALL = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def expression_at(
    d: cython.const[cython.uchar][::1], at: cython.longlong[::1], end: cython.longlong
) -> cython.longlong:
    """The place and length of an expression, at[0] moved past it; -1: it does not fit."""
    length: cython.ulonglong = uleb(d, at, end)
    if at[0] > end:
        return -1
    left: cython.ulonglong = end - at[0]
    if length > left or length >> LENGTH_BITS:
        return -1
    place: cython.longlong = at[0] << LENGTH_BITS | length
    at[0] += length
    return place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def scaled(value: cython.ulonglong, factor: cython.longlong) -> cython.longlong:
    """A factored offset. factor: below 2^32 in size."""
    low: cython.ulonglong = value
    by: cython.ulonglong = factor & CFI_ALL
    return as_signed(low * by & CFI_ALL)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def step(
    d: cython.const[cython.uchar][::1],
    at: cython.longlong[::1],
    end: cython.longlong,
    big: cython.bint,
    word: cython.int,
    code_factor: cython.ulonglong,
    data_factor: cython.longlong,
    n_registers: cython.int,
    kinds: cython.uchar[::1],
    values: cython.longlong[::1],
) -> cython.longlong:
    """One instruction at at[0], on the rules kinds[0:] and values[0:]: what to add to the location, -1 if it cannot be
    read. at[1]: how many states are remembered; kinds, values: the present rules, those of the CIE, the remembered
    ones, each n_registers + 1 long, the last for the CFA; values of CFA registers behind all of them."""
    width: cython.int = n_registers + 1
    cfa: cython.int = n_registers
    cfa_register: cython.Py_ssize_t = width * (MAX_REMEMBERED + 2)
    p: cython.longlong = at[0]
    op: cython.int = d[p]
    high: cython.int = op >> 6
    register: cython.ulonglong = op & 0x3F
    value: cython.ulonglong
    place: cython.longlong
    i: cython.int
    known: cython.ulonglong = n_registers
    at[0] = p + 1
    if high == 1:  # advance_loc
        value = register
        return as_signed(value * code_factor & CFI_ALL >> 1)
    if high == 2:  # offset
        value = uleb(d, at, end)
        if register < known:
            kinds[register] = OFFSET
            values[register] = scaled(value, data_factor)
        return 0
    if high == 3:  # restore
        if register < known:
            kinds[register] = kinds[width + register]
            values[register] = values[width + register]
        return 0
    if op == 0x00 or op == 0x2D or op == 0x2C:  # nop, AArch64: negate_ra_state, ..._with_pc
        return 0
    if op == 0x02 or op == 0x03 or op == 0x04:  # advance_loc1, 2, 4
        i = 1 if op == 2 else 2 if op == 3 else 4
        if p + 1 + i > end:
            return -1
        at[0] = p + 1 + i
        value = d[p + 1] if i == 1 else u16(d, p + 1, big) if i == 2 else u32(d, p + 1, big)
        return as_signed(value * code_factor & CFI_ALL >> 1)
    if op == 0x0A:  # remember_state
        if at[1] >= MAX_REMEMBERED:
            return -1
        at[1] += 1
        for i in range(width):
            kinds[width * (at[1] + 1) + i] = kinds[i]
            values[width * (at[1] + 1) + i] = values[i]
        values[cfa_register + at[1] + 1] = values[cfa_register]
        return 0
    if op == 0x0B:  # restore_state
        if at[1] <= 0:
            return -1
        for i in range(width):
            kinds[i] = kinds[width * (at[1] + 1) + i]
            values[i] = values[width * (at[1] + 1) + i]
        values[cfa_register] = values[cfa_register + at[1] + 1]
        at[1] -= 1
        return 0
    if op == 0x2E:  # GNU_args_size
        uleb(d, at, end)
        return 0
    if op == 0x0E or op == 0x13:  # def_cfa_offset, ..._sf
        if kinds[cfa] != CFA_REGISTER:
            return -1
        if op == 0x13:
            value = sleb(d, at, end)
            values[cfa] = scaled(value, data_factor)
        else:
            value = uleb(d, at, end)
            values[cfa] = as_signed(value)
        return 0
    if op == 0x0F:  # def_cfa_expression
        place = expression_at(d, at, end)
        if place < 0:
            return -1
        kinds[cfa] = EXPRESSION
        values[cfa] = place
        values[cfa_register] = 0
        return 0
    if op < 0x05 or (op > 0x16 and op != 0x2F):
        return -1
    register = uleb(d, at, end)
    if at[0] > end:
        return -1
    if op == 0x0C or op == 0x12:  # def_cfa, def_cfa_sf
        if op == 0x12:
            value = sleb(d, at, end)
            values[cfa] = scaled(value, data_factor)
        else:
            value = uleb(d, at, end)
            values[cfa] = as_signed(value)
        kinds[cfa] = CFA_REGISTER
        values[cfa_register] = register if register < known else known
        return 0
    if op == 0x0D:  # def_cfa_register
        if kinds[cfa] != CFA_REGISTER:
            return -1
        values[cfa_register] = register if register < known else known
        return 0
    # What follows is about a register; those that are not followed (vectors) are read and passed over.
    i = UNSPECIFIED
    place = 0
    if op == 0x05 or op == 0x14:  # offset_extended, val_offset
        value = uleb(d, at, end)
        place = scaled(value, data_factor)
        i = OFFSET if op == 0x05 else VAL_OFFSET
    elif op == 0x11 or op == 0x15:  # offset_extended_sf, val_offset_sf
        value = sleb(d, at, end)
        place = scaled(value, data_factor)
        i = OFFSET if op == 0x11 else VAL_OFFSET
    elif op == 0x2F:  # GNU_negative_offset_extended
        value = uleb(d, at, end)
        place = scaled((0 - value) & CFI_ALL, data_factor)
        i = OFFSET
    elif op == 0x06:  # restore_extended
        if register < known:
            i = kinds[width + register]
            place = values[width + register]
    elif op == 0x07:
        i = UNDEFINED
    elif op == 0x08:
        i = SAME
    elif op == 0x09:
        value = uleb(d, at, end)
        i = REGISTER
        place = as_signed(value if value < known else known)
    elif op == 0x10 or op == 0x16:  # expression, val_expression
        place = expression_at(d, at, end)
        if place < 0:
            return -1
        i = EXPRESSION if op == 0x10 else VAL_EXPRESSION
    if register < known:
        kinds[register] = i
        values[register] = place
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
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
    """The number of the present rules; there is room for one more set."""
    base: cython.Py_ssize_t = (n_registers + 1) * (MAX_REMEMBERED + 2)
    n_rules: cython.longlong = state[N_RULES]
    n: cython.longlong = first[n_rules]
    mask: cython.ulonglong = slots.shape[0] - 1
    h: cython.ulonglong = return_column * 2 + is_signal
    part: cython.ulonglong
    i: cython.int
    j: cython.longlong
    s: cython.int
    # Written where it will stand if it is new.
    cfa_kind[n_rules] = kinds[n_registers]
    cfa_register[n_rules] = values[base] if kinds[n_registers] == CFA_REGISTER else 0
    cfa_value[n_rules] = values[n_registers]
    column[n_rules] = return_column
    signal[n_rules] = is_signal
    part = values[n_registers] & CFI_ALL
    h = (h * 64 + cfa_register[n_rules] + cfa_kind[n_rules] ^ part) * CFI_GOLDEN & CFI_ALL
    for i in range(n_registers):
        if kinds[i] != UNSPECIFIED:
            entry_register[n] = i
            entry_kind[n] = kinds[i]
            entry_value[n] = values[i]
            part = values[i] & CFI_ALL
            h = ((h ^ h >> 29) + i * 16 + kinds[i] ^ part) * CFI_GOLDEN & CFI_ALL
            n += 1
    h = (h ^ h >> 31) & mask
    while True:
        s = slots[h]
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
            j = 0
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
    word: cython.int,
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
    at: cython.longlong[::1],
):
    """Runs the instructions of FDEs, sorted by address and without overlaps, into rows (address, rule set), rising: a
    rule holds from its address to the next row's; -1 is no rule. Each FDE ends with a row without a rule, unless the
    next one begins there.

    Rule sets are cfa_kind, cfa_register, cfa_value, column (of the return address), signal, and the entries first[i] to
    first[i + 1] of entry_*. slots: open addressing over them, a power of two long, -1 is free. kinds, values: scratch,
    (n_registers + 1) * (MAX_REMEMBERED + 2), values MAX_REMEMBERED + 2 longer; at: scratch, 2.

    state: the FDE to go on at, the numbers of rows, of rule sets and of entries, and how many FDEs had instructions
    that cannot be read: there they end, without a rule. Stops before an FDE for which rows, rule sets, entries or slots
    might not do: grow them and call again.
    """
    n: cython.Py_ssize_t = fde_first.shape[0]
    n_cies: cython.Py_ssize_t = cie_code.shape[0]
    room: cython.Py_ssize_t = row_pc.shape[0]
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
        or row_rule.shape[0] != room
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
        or kinds.shape[0] < (n_registers + 1) * (MAX_REMEMBERED + 2)
        or values.shape[0] < (n_registers + 1) * (MAX_REMEMBERED + 2) + MAX_REMEMBERED + 2
        or at.shape[0] < 2
        or state.shape[0] < 5
    ):
        raise ValueError("run: an array has the wrong length")
    i: cython.Py_ssize_t
    for i in range(n_cies):
        if cie_code[i] < 0 or cie_code[i] > cie_stop[i] or cie_stop[i] > d.shape[0]:
            raise ValueError("run: a CIE outside the section")
        if cie_column[i] < 0 or cie_column[i] >= n_registers:
            raise ValueError("run: a return address in no register")
    width: cython.int = n_registers + 1
    base: cython.Py_ssize_t = width * (MAX_REMEMBERED + 2)
    f: cython.Py_ssize_t = int(state[FDE])
    n_rows: cython.Py_ssize_t = int(state[N_ROWS])
    if f < 0 or n_rows < 0 or state[N_RULES] < 0 or state[N_RULES] > rules or state[N_ENTRIES] > entries:
        raise ValueError("run: an invalid state")
    c: cython.Py_ssize_t
    j: cython.int
    pc: cython.ulonglong
    stop: cython.longlong
    advance: cython.longlong
    forward: cython.ulonglong
    most: cython.longlong
    rule: cython.int
    last: cython.int
    outside: cython.bint = False
    with cython.nogil:
        while f < n:
            c = fde_cie[f]
            stop = fde_stop[f]
            if c < 0 or c >= n_cies or fde_code[f] < 0 or fde_code[f] > stop or stop > d.shape[0]:
                outside = True
                break
            # An instruction makes one row, and so one rule set, at most.
            most = stop - fde_code[f] + 3
            if (
                n_rows + most > room
                or state[N_RULES] + most >= rules
                or state[N_ENTRIES] + most * n_registers > entries
            ):
                break
            for j in range(width):
                kinds[j] = UNSPECIFIED
                values[j] = 0
            values[base] = 0
            at[0] = cie_code[c]
            at[1] = 0
            advance = 0
            while at[0] < cie_stop[c] and advance == 0:
                advance = step(
                    d, at, cie_stop[c], big, word, cie_code_factor[c], cie_data_factor[c], n_registers, kinds, values
                )
                if at[0] > cie_stop[c]:
                    advance = -1
            for j in range(width):
                kinds[width + j] = kinds[j]
                values[width + j] = values[j]
            pc = fde_first[f]
            last = -2
            if n_rows > 0 and row_pc[n_rows - 1] == pc:
                n_rows -= 1
                if n_rows > 0:
                    last = row_rule[n_rows - 1]
            at[0] = fde_code[f]
            at[1] = 0
            while advance >= 0:
                advance = 0
                while at[0] < stop and advance == 0:
                    advance = step(
                        d, at, stop, big, word, cie_code_factor[c], cie_data_factor[c], n_registers, kinds, values
                    )
                    if at[0] > stop:
                        advance = -1
                if advance < 0:
                    break
                if kinds[n_registers] == UNSPECIFIED or (
                    kinds[n_registers] == CFA_REGISTER and values[base] >= n_registers
                ):
                    rule = -1
                else:
                    rule = rule_set(
                        n_registers, cie_column[c], cie_signal[c], kinds, values, state, cfa_kind, cfa_register,
                        cfa_value, column, signal, first, entry_register, entry_kind, entry_value, slots,
                    )  # fmt: skip
                if rule != last:
                    row_pc[n_rows] = pc
                    row_rule[n_rows] = rule
                    n_rows += 1
                    last = rule
                forward = advance
                if (at[0] >= stop and advance == 0) or forward >= fde_end[f] - pc:
                    break
                pc += forward
            if advance < 0:
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
