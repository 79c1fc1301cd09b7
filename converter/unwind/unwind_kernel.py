# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Unwinds the user stacks of samples. Cython's pure-Python mode: also runs interpreted.

A sample has registers and a copy of the top of its stack. Frame by frame, the address is looked up among the mappings
of its process, then among the rows of the module there; the rule set of the row gives the caller's registers.
"""

import cython

from traceferry.kernels.expressions import NO_MEMORY, NO_REGISTER, NOT_AN_EXPRESSION, STACK_SIZE, evaluate, load
from traceferry.unwind.cfi_inlined import (
    CFA_REGISTER,
    EXPRESSION,
    LENGTH_BITS,
    OFFSET,
    REGISTER,
    SAME,
    UNDEFINED,
    UNSPECIFIED,
    VAL_EXPRESSION,
    VAL_OFFSET,
)
from traceferry.unwind.unwind_inlined import (
    ADDRESS_BITS,
    BAD_ADDRESS,
    BAD_CFA,
    BIG,
    BY_CFI,
    BY_FRAME_POINTER,
    BY_IP,
    BY_PLT,
    BY_SIGNAL,
    CALLEE_SAVED,
    COMPLETE,
    ELSEWHERE,
    FRAME_POINTER,
    IS_KERNEL_MODE,
    IS_WHOLE_STACK,
    LIMIT,
    LINK_REGISTER,
    LOST_REGISTER,
    N_FRAMES,
    N_REGISTERS,
    NO_CFI,
    RETURN_COLUMN,
    SAMPLE,
    SP,
    TRUNCATED,
    WANTED,
    WORD,
)

ALL_ONES = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
LOW_32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
UNWIND_GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)

PAGE = cython.declare(cython.ulonglong, 4096)
# The usual size of a stack: what lies farther from the stack pointer is on another one.
FARTHEST = cython.declare(cython.ulonglong, 8388608)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def last_at(column: cython.const[cython.ulonglong][::1], low: cython.longlong, high: cython.longlong,
            value: cython.ulonglong) -> cython.longlong:  # fmt: skip
    """The last of column[low:high], which rises, that is not above value; low - 1 for none."""
    middle: cython.longlong
    while low < high:
        middle = (low + high) >> 1
        if column[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_elsewhere(memory: cython.ulonglong[::1]) -> cython.bint:
    """Whether the address that is not known lies on another stack than the dump."""
    return memory[3] < memory[0] or memory[3] - memory[0] > FARTHEST


def unwind(
    d: cython.const[cython.uchar][::1],
    machine: cython.const[cython.longlong][::1],
    registers_at: cython.const[cython.longlong][::1],
    register_of: cython.const[cython.int][::1],
    dump_at: cython.const[cython.longlong][::1],
    dump_n: cython.const[cython.longlong][::1],
    flags: cython.const[cython.uchar][::1],
    map_start: cython.const[cython.ulonglong][::1],
    map_end: cython.const[cython.ulonglong][::1],
    map_bias: cython.const[cython.ulonglong][::1],
    map_module: cython.const[cython.int][::1],
    row_first: cython.const[cython.longlong][::1],
    row_last: cython.const[cython.longlong][::1],
    entry_point: cython.const[cython.ulonglong][::1],
    plt_first: cython.const[cython.longlong][::1],
    plt_start: cython.const[cython.ulonglong][::1],
    plt_end: cython.const[cython.ulonglong][::1],
    row_pc: cython.const[cython.ulonglong][::1],
    row_rule: cython.const[cython.int][::1],
    cfa_kind: cython.const[cython.uchar][::1],
    cfa_register: cython.const[cython.uchar][::1],
    cfa_value: cython.const[cython.longlong][::1],
    column: cython.const[cython.uchar][::1],
    signal: cython.const[cython.uchar][::1],
    first: cython.const[cython.longlong][::1],
    entry_register: cython.const[cython.uchar][::1],
    entry_kind: cython.const[cython.uchar][::1],
    entry_value: cython.const[cython.longlong][::1],
    pool: cython.const[cython.uchar][::1],
    cache_pc: cython.ulonglong[::1],
    cache_map: cython.int[::1],
    cache_rule: cython.int[::1],
    max_frames: cython.longlong,
    state: cython.longlong[::1],
    pc_out: cython.ulonglong[::1],
    how_out: cython.uchar[::1],
    n_out: cython.int[::1],
    end_out: cython.uchar[::1],
    module_out: cython.int[::1],
    registers: cython.ulonglong[::1],
    before: cython.ulonglong[::1],
    memory: cython.ulonglong[::1],
    at: cython.longlong[::1],
    stack: cython.ulonglong[::1],
):
    """Unwinds the samples from state[SAMPLE] on, which belong to one address space that does not change.

    machine: words, in the order of the names above. Of a sample: registers_at, where its registers are in d, in
    machine words of 8 bytes, register_of[i] being the DWARF number of the i-th, -1 for none; dump_at, dump_n: the bytes
    of the stack, from the stack pointer on; flags. map_*: the executable mappings, by address, without overlaps: bias
    is what an address has more than in its module's file; module -1: none. Of a module: its rows row_first to row_last
    of row_pc and row_rule, row_first -1: not yet known; entry_point (0: none); PLT sections plt_first[m] to
    plt_first[m + 1] of plt_start and plt_end. Rule sets as `cfi_kernel.run` makes them.

    For each sample n_out frames, innermost first, appended at state[N_FRAMES] to pc_out and how_out; end_out; and
    module_out: where it ended for want of call-frame information, -1 no module, -2 no mapping.

    Stops early at a sample when pc_out might not do (max_frames each), or when a module is met whose rows are not
    known: then state[WANTED] is the module, else -1.

    cache_*: direct-mapped, a power of two long, 0 in cache_pc is free: empty it when mappings or modules change.
    registers, before: scratch, n_registers long; memory 5, at 1, stack STACK_SIZE.
    """
    n: cython.Py_ssize_t = registers_at.shape[0]
    n_maps: cython.longlong = map_start.shape[0]
    n_modules: cython.Py_ssize_t = row_first.shape[0]
    n_rows: cython.longlong = row_pc.shape[0]
    n_rules: cython.Py_ssize_t = signal.shape[0]
    n_entries: cython.longlong = entry_register.shape[0]
    room: cython.longlong = pc_out.shape[0]
    if machine.shape[0] < 9 or state.shape[0] < 3:
        raise ValueError("unwind: an array has the wrong length")
    word: cython.int = int(machine[WORD])
    big: cython.bint = machine[BIG] != 0
    n_registers: cython.int = int(machine[N_REGISTERS])
    sp_register: cython.int = int(machine[SP])
    fp_register: cython.int = int(machine[FRAME_POINTER])
    return_column: cython.int = int(machine[RETURN_COLUMN])
    link_register: cython.int = int(machine[LINK_REGISTER])
    callee_saved: cython.ulonglong = int(machine[CALLEE_SAVED])
    mask: cython.ulonglong = ALL_ONES >> 64 - int(machine[ADDRESS_BITS])
    i: cython.Py_ssize_t = int(state[SAMPLE])
    n_frames: cython.longlong = int(state[N_FRAMES])
    if (
        dump_at.shape[0] != n
        or dump_n.shape[0] != n
        or flags.shape[0] != n
        or n_out.shape[0] != n
        or end_out.shape[0] != n
        or module_out.shape[0] != n
        or map_end.shape[0] != n_maps
        or map_bias.shape[0] != n_maps
        or map_module.shape[0] != n_maps
        or row_last.shape[0] != n_modules
        or entry_point.shape[0] != n_modules
        or plt_first.shape[0] != n_modules + 1
        or plt_end.shape[0] != plt_start.shape[0]
        or row_rule.shape[0] != n_rows
        or cfa_kind.shape[0] != n_rules
        or cfa_register.shape[0] != n_rules
        or cfa_value.shape[0] != n_rules
        or column.shape[0] != n_rules
        or first.shape[0] != n_rules + 1
        or entry_kind.shape[0] != n_entries
        or entry_value.shape[0] != n_entries
        or how_out.shape[0] != room
        or cache_map.shape[0] != cache_pc.shape[0]
        or cache_rule.shape[0] != cache_pc.shape[0]
        or cache_pc.shape[0] & (cache_pc.shape[0] - 1)
        or cache_pc.shape[0] < 1
        or not (word == 4 or word == 8)
        or n_registers < 1
        or n_registers > 63
        or not 0 <= sp_register < n_registers
        or not 0 <= fp_register < n_registers
        or not 0 <= return_column < n_registers
        or link_register >= n_registers
        or registers.shape[0] < n_registers
        or before.shape[0] < n_registers
        or memory.shape[0] < 5
        or at.shape[0] < 1
        or stack.shape[0] < STACK_SIZE
        or max_frames < 1
        or i < 0
        or n_frames < 0
    ):
        raise ValueError("unwind: an array has the wrong length")
    k: cython.Py_ssize_t
    for k in range(n_modules):
        if row_first[k] >= 0 and (row_last[k] < row_first[k] or row_last[k] > n_rows):
            raise ValueError("unwind: rows outside the table")
        if plt_first[k] < 0 or plt_first[k + 1] < plt_first[k] or plt_first[k + 1] > plt_start.shape[0]:
            raise ValueError("unwind: PLT sections outside the table")
    for k in range(n_rules):
        if first[k] < 0 or first[k + 1] < first[k] or first[k + 1] > n_entries or column[k] >= n_registers:
            raise ValueError("unwind: a rule set outside the table")
        if cfa_register[k] >= n_registers:
            raise ValueError("unwind: a rule of no register")
    for k in range(n_entries):
        if entry_register[k] >= n_registers:
            raise ValueError("unwind: a rule of no register")
    n_recorded: cython.Py_ssize_t = register_of.shape[0]
    known: cython.ulonglong
    was_known: cython.ulonglong
    one: cython.ulonglong = 1
    pc: cython.ulonglong
    sp: cython.ulonglong
    cfa: cython.ulonglong
    value: cython.ulonglong
    look: cython.ulonglong
    link: cython.ulonglong
    width: cython.ulonglong = word
    words: cython.ulonglong = LOW_32 if word == 4 else ALL_ONES
    slot: cython.ulonglong
    cache_mask: cython.ulonglong = cache_pc.shape[0] - 1
    m: cython.int
    r: cython.int
    target: cython.int
    kind: cython.int
    rule: cython.int
    module: cython.int
    how: cython.int
    end: cython.int
    bad_module: cython.int
    depth: cython.longlong
    e: cython.longlong
    j: cython.longlong
    place: cython.longlong
    length: cython.longlong
    is_exact: cython.bint
    is_signal: cython.bint
    is_first: cython.bint
    has_slot: cython.bint
    is_whole: cython.bint
    lies_elsewhere: cython.bint = False
    wanted: cython.longlong = -1
    bad: cython.bint = False
    with cython.nogil:
        while i < n and n_frames + max_frames <= room:
            if (
                registers_at[i] < 0
                or registers_at[i] > d.shape[0] - 8 * n_recorded
                or dump_at[i] < 0
                or dump_n[i] < 0
                or dump_n[i] > d.shape[0]
                or dump_at[i] > d.shape[0] - dump_n[i]
            ):
                bad = True
                break
            known = 0
            memory[0] = 0
            memory[1] = 0
            memory[2] = d.shape[0]
            memory[4] = 0
            for k in range(n_recorded):
                r = register_of[k]
                if 0 <= r < n_registers:
                    slot = registers_at[i] + 8 * k
                    registers[r] = load(d, memory, slot, 8, big) & words
                    known |= one << r
            depth = 0
            end = COMPLETE
            bad_module = -1
            how = BY_IP
            # On AArch64 the program counter is 32, on the others it is the return column.
            r = n_registers - 1
            if not (known >> r & 1) or not (known >> sp_register & 1):
                end = LOST_REGISTER
                n_out[i] = 0
                end_out[i] = end
                module_out[i] = -1
                i += 1
                continue
            pc = registers[r] & mask
            known &= ~(one << r) if return_column == r else ALL_ONES
            sp = registers[sp_register]
            memory[0] = sp
            memory[1] = dump_at[i]
            memory[2] = dump_n[i]
            # Beyond a dump that is shorter than it might be, there is no stack.
            is_whole = flags[i] & IS_WHOLE_STACK != 0
            is_exact = True
            is_first = True
            while True:
                # ---- the frame at pc
                if depth >= max_frames:
                    end = LIMIT
                    break
                look = pc if is_exact else pc - 1
                slot = (look * UNWIND_GOLDEN & ALL_ONES) >> 40 & cache_mask
                if cache_pc[slot] == look and look != 0:
                    m = cache_map[slot]
                    rule = cache_rule[slot]
                else:
                    m = last_at(map_start, 0, n_maps, look)
                    if m >= 0 and look >= map_end[m]:
                        m = -1
                    rule = -1
                    if m >= 0 and map_module[m] >= 0:
                        module = map_module[m]
                        if module >= n_modules:
                            bad = True
                            break
                        if row_first[module] < 0:
                            wanted = module
                            break
                        link = (look - map_bias[m]) & ALL_ONES
                        j = last_at(row_pc, row_first[module], row_last[module], link)
                        if j >= row_first[module]:
                            rule = row_rule[j]
                            if rule >= n_rules:
                                bad = True
                                break
                    cache_pc[slot] = look
                    cache_map[slot] = m
                    cache_rule[slot] = rule
                if m < 0 and depth > 0:
                    end = BAD_ADDRESS
                    break
                pc_out[n_frames + depth] = pc
                how_out[n_frames + depth] = how
                depth += 1
                module = map_module[m] if m >= 0 else -1
                if rule < 0 and is_first and flags[i] & IS_KERNEL_MODE and module >= 0 and row_first[module] >= 0:
                    # Behind the last instruction of a function without a return: __restore_rt's system call.
                    link = (look - 1 - map_bias[m]) & ALL_ONES
                    j = last_at(row_pc, row_first[module], row_last[module], link)
                    if j >= row_first[module]:
                        rule = row_rule[j]
                        if rule >= n_rules:
                            bad = True
                            break
                # ---- its caller
                if rule >= 0:
                    is_signal = signal[rule] != 0
                    if cfa_kind[rule] == CFA_REGISTER:
                        r = cfa_register[rule]
                        if not known >> r & 1:
                            end = LOST_REGISTER
                            break
                        value = cfa_value[rule] & ALL_ONES
                        cfa = registers[r] + value & words
                    else:
                        place = cfa_value[rule] >> LENGTH_BITS
                        length = cfa_value[rule] & (1 << LENGTH_BITS) - 1
                        if place < 0 or place > pool.shape[0] - length:
                            bad = True
                            break
                        # The program counter is a register in expressions: the lazy PLT's has it.
                        if return_column == n_registers - 1:
                            registers[return_column] = look
                        memory[4] = 0
                        cfa = evaluate(
                            pool, place, length, d, memory, registers, known | one << n_registers - 1, n_registers, 0,
                            0, word, big, at, stack,
                        )  # fmt: skip
                        if memory[4] != 0:
                            end = (
                                BAD_CFA if memory[4] == NOT_AN_EXPRESSION
                                else LOST_REGISTER if memory[4] == NO_REGISTER
                                else TRUNCATED
                            )  # fmt: skip
                            if end == TRUNCATED and (is_whole or is_elsewhere(memory)):
                                end = ELSEWHERE
                            break
                    was_known = known
                    for r in range(n_registers):
                        before[r] = registers[r]
                    if not is_signal:
                        known &= callee_saved
                    value = 0
                    target = column[rule]
                    # An unspecified return address is that in the link register, as long as nothing was called.
                    kind = UNSPECIFIED
                    if target == link_register and is_first and was_known >> target & 1:
                        known |= one << target
                    known &= ~(one << sp_register)
                    registers[sp_register] = cfa
                    known |= one << sp_register
                    for e in range(first[rule], first[rule + 1]):
                        r = entry_register[e]
                        if r == target:
                            kind = entry_kind[e]
                        memory[4] = 0
                        if entry_kind[e] == OFFSET or entry_kind[e] == EXPRESSION:
                            if entry_kind[e] == OFFSET:
                                value = entry_value[e] & ALL_ONES
                                slot = cfa + value & words
                            else:
                                place = entry_value[e] >> LENGTH_BITS
                                length = entry_value[e] & (1 << LENGTH_BITS) - 1
                                if place < 0 or place > pool.shape[0] - length:
                                    bad = True
                                    break
                                slot = evaluate(
                                    pool, place, length, d, memory, before, was_known, n_registers, cfa, 1, word, big,
                                    at, stack,
                                )  # fmt: skip
                            if memory[4] == 0:
                                # A slot below the stack pointer: an epilogue has popped the register already.
                                if slot < sp and sp - slot < PAGE and r != target and not is_signal:
                                    registers[r] = before[r]
                                    known |= was_known & one << r
                                    continue
                                value = load(d, memory, slot, word, big)
                        elif entry_kind[e] == VAL_OFFSET:
                            value = entry_value[e] & ALL_ONES
                            value = cfa + value & words
                        elif entry_kind[e] == REGISTER:
                            j = entry_value[e]
                            if j < 0 or j >= n_registers or not was_known >> j & 1:
                                known &= ~(one << r)
                                continue
                            value = before[j]
                        elif entry_kind[e] == VAL_EXPRESSION:
                            place = entry_value[e] >> LENGTH_BITS
                            length = entry_value[e] & (1 << LENGTH_BITS) - 1
                            if place < 0 or place > pool.shape[0] - length:
                                bad = True
                                break
                            value = evaluate(
                                pool, place, length, d, memory, before, was_known, n_registers, cfa, 1, word, big, at,
                                stack,
                            )  # fmt: skip
                        elif entry_kind[e] == SAME:
                            registers[r] = before[r]
                            known |= was_known & one << r
                            continue
                        else:
                            known &= ~(one << r)
                            continue
                        if memory[4] != 0:
                            if r == target:
                                kind = memory[4]
                                kind = -kind
                                lies_elsewhere = is_elsewhere(memory)
                            known &= ~(one << r)
                            continue
                        registers[r] = value
                        known |= one << r
                    if bad:
                        break
                    if kind == UNDEFINED:
                        break
                    if kind < 0:
                        if kind == -NO_MEMORY:
                            end = ELSEWHERE if is_whole or lies_elsewhere else TRUNCATED
                        else:
                            end = LOST_REGISTER if kind == -NO_REGISTER else BAD_CFA
                        break
                    if not known >> target & 1:
                        end = LOST_REGISTER
                        break
                    value = registers[target] & mask
                    how = BY_SIGNAL if is_signal else BY_CFI
                    if target == n_registers - 1:
                        known &= ~(one << target)
                elif module >= 0 and entry_point[module] != 0 and (
                    (pc - map_bias[m] - entry_point[module]) & ALL_ONES
                ) < 64:
                    break
                else:
                    is_signal = False
                    has_slot = False
                    if is_first and module >= 0:
                        link = (pc - map_bias[m]) & ALL_ONES
                        for j in range(plt_first[module], plt_first[module + 1]):
                            if plt_start[j] <= link < plt_end[j]:
                                has_slot = True
                    if has_slot:
                        how = BY_PLT
                        if link_register >= 0:
                            if not known >> link_register & 1:
                                end = LOST_REGISTER
                                break
                            value = registers[link_register] & mask
                            cfa = sp
                        else:
                            memory[4] = 0
                            value = load(d, memory, sp, word, big)
                            if memory[4] != 0:
                                end = TRUNCATED
                                break
                            cfa = sp + width
                        known &= callee_saved
                    else:
                        bad_module = module if m >= 0 else -2
                        end = NO_CFI
                        if not known >> fp_register & 1:
                            break
                        slot = registers[fp_register]
                        if slot & (width - 1) or slot < sp or slot + 2 * width < slot:
                            break
                        memory[4] = 0
                        look = load(d, memory, slot, word, big)
                        value = load(d, memory, slot + width, word, big) & mask
                        if memory[4] != 0:
                            break
                        r = last_at(map_start, 0, n_maps, (value - 1) & ALL_ONES)
                        if value != 0 and (r < 0 or value - 1 >= map_end[r]):
                            break
                        end = COMPLETE
                        bad_module = -1
                        if value == 0:
                            break
                        cfa = slot + 2 * width
                        known = one << fp_register
                        registers[fp_register] = look
                        how = BY_FRAME_POINTER
                    registers[sp_register] = cfa
                    known |= one << sp_register
                # ---- is it plausible?
                cfa = registers[sp_register]
                if value == 0:
                    break
                if not is_signal and (cfa < sp or (cfa == sp and not is_first)):
                    end = BAD_CFA
                    break
                sp = cfa
                pc = value
                is_exact = is_signal
                is_first = False
            if bad or wanted >= 0:
                break
            n_out[i] = depth
            end_out[i] = end
            module_out[i] = bad_module
            n_frames += depth
            i += 1
    state[SAMPLE] = i
    state[N_FRAMES] = n_frames
    state[WANTED] = wanted
    if bad:
        raise ValueError("unwind: a sample, a module or an expression outside the data")


if not cython.compiled:
    from traceferry.kernels.interpreted import plain_integers

    unwind = plain_integers(unwind)
