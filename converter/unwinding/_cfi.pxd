"""Rule sets: how to find the caller's registers. Kinds of rules as DWARF 5, section 6.4.1, names them."""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

# UNSPECIFIED must be 0. Of a CFA: UNSPECIFIED, CFA_REGISTER or EXPRESSION.
cdef enum:
    UNSPECIFIED = 0
    UNDEFINED
    SAME
    OFFSET
    VAL_OFFSET
    REGISTER
    EXPRESSION
    VAL_EXPRESSION
    CFA_REGISTER

# Registers have DWARF numbers below.
cdef enum:
    MAX_REGISTERS = 64

# The place and the length of an expression in one value.
cdef enum:
    LENGTH_BITS = 16


cdef struct Rule:
    # number: of the register that the rule is for; of a CFA, the one from which it counts.
    int64_t value
    int32_t number
    int32_t kind


cdef struct RuleSet:
    # rules: first to first + n; column: of the return address.
    Rule cfa
    int64_t first
    int32_t n
    int16_t column
    int16_t is_signal


cdef class RuleSets:
    cdef RuleSet[::1] sets
    cdef Rule[::1] rules
    cdef uint8_t[::1] pool
    cdef int32_t[::1] slots
    cdef Py_ssize_t n_sets
    cdef Py_ssize_t n_rules
    cdef Py_ssize_t n_pool
    cdef dict expressions

    cdef int grow(self) except -1 with gil
    cdef int64_t pooled(self, const uint8_t[::1] data, uint64_t at, uint64_t length) except -1 with gil
    cdef Py_ssize_t slot_of(self, Py_ssize_t number) noexcept nogil
    cdef int64_t enter(self, Py_ssize_t n_rules) noexcept nogil

    cdef inline bint has_room(self) noexcept nogil:
        """Whether another set fits, with rules for all registers."""
        return self.n_sets < self.sets.shape[0] and self.n_rules + MAX_REGISTERS <= self.rules.shape[0]
