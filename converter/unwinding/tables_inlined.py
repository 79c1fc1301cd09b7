"""What the unwinding kernel looks up: mappings, rows of modules, rule sets. Compiled within unwind_kernel.py.

Each is made of columns, at a cost that does not depend on their length: what a row refers to is checked when the row is
first used. ValueError: a column has the wrong length.
"""

import cython

from traceferry.kernels.functions import c_function, c_inline
from traceferry.kernels.hashing import GOLDEN
from traceferry.kernels.integers import ALL
from traceferry.kernels.search import last_at
from traceferry.unwinding.cfi_inlined import EXPRESSION, LENGTH_BITS, VAL_EXPRESSION

NO_RULE = cython.declare(cython.int, -1)


@cython.final
@cython.cclass
class Mappings:
    """The executable mappings of an address space, by address, without overlaps. bias: what an address has more than in
    its module's file; module: -1 for none."""

    start: cython.const[cython.ulonglong][::1]
    end: cython.const[cython.ulonglong][::1]
    bias: cython.const[cython.ulonglong][::1]
    module: cython.const[cython.int][::1]

    def __init__(
        self,
        start: cython.const[cython.ulonglong][::1],
        end: cython.const[cython.ulonglong][::1],
        bias: cython.const[cython.ulonglong][::1],
        module: cython.const[cython.int][::1],
    ):
        n: cython.Py_ssize_t = start.shape[0]
        if end.shape[0] != n or bias.shape[0] != n or module.shape[0] != n:
            raise ValueError("unwind: an array has the wrong length")
        self.start = start
        self.end = end
        self.bias = bias
        self.module = module

    @c_inline
    def at(self, address: cython.ulonglong) -> cython.longlong:
        """The mapping that holds an address; -1: none does."""
        m: cython.longlong = last_at(self.start, 0, self.start.shape[0], address)
        return m if m >= 0 and address < self.end[m] else -1


@cython.final
@cython.cclass
class Modules:
    """Of each module: the rows row_first to row_last of row_pc and row_rule, row_first -1: not yet known; entry_point,
    0 for none; its PLT sections plt_first[m] to plt_first[m + 1] of plt_start and plt_end."""

    row_first: cython.const[cython.longlong][::1]
    row_last: cython.const[cython.longlong][::1]
    entry_point: cython.const[cython.ulonglong][::1]
    plt_first: cython.const[cython.longlong][::1]
    plt_start: cython.const[cython.ulonglong][::1]
    plt_end: cython.const[cython.ulonglong][::1]
    row_pc: cython.const[cython.ulonglong][::1]
    row_rule: cython.const[cython.int][::1]

    def __init__(
        self,
        row_first: cython.const[cython.longlong][::1],
        row_last: cython.const[cython.longlong][::1],
        entry_point: cython.const[cython.ulonglong][::1],
        plt_first: cython.const[cython.longlong][::1],
        plt_start: cython.const[cython.ulonglong][::1],
        plt_end: cython.const[cython.ulonglong][::1],
        row_pc: cython.const[cython.ulonglong][::1],
        row_rule: cython.const[cython.int][::1],
    ):
        n: cython.Py_ssize_t = row_first.shape[0]
        if (
            row_last.shape[0] != n
            or entry_point.shape[0] != n
            or plt_first.shape[0] != n + 1
            or plt_end.shape[0] != plt_start.shape[0]
            or row_rule.shape[0] != row_pc.shape[0]
        ):
            raise ValueError("unwind: an array has the wrong length")
        self.row_first = row_first
        self.row_last = row_last
        self.entry_point = entry_point
        self.plt_first = plt_first
        self.plt_start = plt_start
        self.plt_end = plt_end
        self.row_pc = row_pc
        self.row_rule = row_rule

    @c_function
    def is_valid(self, m: cython.longlong) -> cython.bint:
        """Whether there is such a module, and its rows and PLT sections are in the tables."""
        return (
            0 <= m < self.row_first.shape[0]
            and (self.row_first[m] < 0 or self.row_first[m] <= self.row_last[m] <= self.row_pc.shape[0])
            and 0 <= self.plt_first[m] <= self.plt_first[m + 1] <= self.plt_start.shape[0]
        )

    @c_inline
    def rule_at(self, module: cython.longlong, link: cython.ulonglong) -> cython.int:
        """The rule set for an address as it is in the module's file, or NO_RULE."""
        row: cython.longlong = last_at(self.row_pc, self.row_first[module], self.row_last[module], link)
        return self.row_rule[row] if row >= self.row_first[module] else NO_RULE

    @c_function
    def is_in_plt(self, module: cython.longlong, link: cython.ulonglong) -> cython.bint:
        i: cython.longlong
        for i in range(self.plt_first[module], self.plt_first[module + 1]):
            if self.plt_start[i] <= link < self.plt_end[i]:
                return True
        return False


@cython.final
@cython.cclass
class RuleSets:
    """As `cfi_kernel.run` makes them; the expressions of all lie in one pool."""

    cfa_kind: cython.const[cython.uchar][::1]
    cfa_register: cython.const[cython.uchar][::1]
    cfa_value: cython.const[cython.longlong][::1]
    column: cython.const[cython.uchar][::1]
    signal: cython.const[cython.uchar][::1]
    first: cython.const[cython.longlong][::1]
    entry_register: cython.const[cython.uchar][::1]
    entry_kind: cython.const[cython.uchar][::1]
    entry_value: cython.const[cython.longlong][::1]
    pool: cython.const[cython.uchar][::1]

    def __init__(
        self,
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
    ):
        n: cython.Py_ssize_t = signal.shape[0]
        if (
            cfa_kind.shape[0] != n
            or cfa_register.shape[0] != n
            or cfa_value.shape[0] != n
            or column.shape[0] != n
            or first.shape[0] != n + 1
            or entry_kind.shape[0] != entry_register.shape[0]
            or entry_value.shape[0] != entry_register.shape[0]
        ):
            raise ValueError("unwind: an array has the wrong length")
        self.cfa_kind = cfa_kind
        self.cfa_register = cfa_register
        self.cfa_value = cfa_value
        self.column = column
        self.signal = signal
        self.first = first
        self.entry_register = entry_register
        self.entry_kind = entry_kind
        self.entry_value = entry_value
        self.pool = pool

    @c_function
    def is_valid(self, rule: cython.longlong, n_registers: cython.int) -> cython.bint:
        """Whether there is such a rule set, and its registers and expressions are there."""
        e: cython.longlong
        if (
            not 0 <= rule < self.signal.shape[0]
            or self.cfa_register[rule] >= n_registers
            or self.column[rule] >= n_registers
            or (self.cfa_kind[rule] == EXPRESSION and not self.is_in_pool(self.cfa_value[rule]))
            or not 0 <= self.first[rule] <= self.first[rule + 1] <= self.entry_register.shape[0]
        ):
            return False
        for e in range(self.first[rule], self.first[rule + 1]):
            if self.entry_register[e] >= n_registers:
                return False
            if self.entry_kind[e] == EXPRESSION or self.entry_kind[e] == VAL_EXPRESSION:
                if not self.is_in_pool(self.entry_value[e]):
                    return False
        return True

    @c_inline
    def is_in_pool(self, value: cython.longlong) -> cython.bint:
        """Of an expression's place and length in one value."""
        place: cython.longlong = value >> LENGTH_BITS
        return 0 <= place <= self.pool.shape[0] - (value & (1 << LENGTH_BITS) - 1)


@cython.final
@cython.cclass
class Cache:
    """Direct-mapped: for addresses that were looked up their mapping and rule set. A power of two long; 0 in pc is
    free. To be emptied when mappings or modules change."""

    pc: cython.ulonglong[::1]
    mapping: cython.int[::1]
    rule: cython.int[::1]

    def __init__(self, pc: cython.ulonglong[::1], mapping: cython.int[::1], rule: cython.int[::1]):
        n: cython.Py_ssize_t = pc.shape[0]
        if n < 1 or n & (n - 1) or mapping.shape[0] != n or rule.shape[0] != n:
            raise ValueError("unwind: an array has the wrong length")
        self.pc = pc
        self.mapping = mapping
        self.rule = rule

    @c_inline
    def slot_of(self, pc: cython.ulonglong) -> cython.ulonglong:
        mask: cython.ulonglong = self.pc.shape[0] - 1
        return (pc * GOLDEN & ALL) >> 40 & mask
