"""The names of rules, as rule sets hold them, and of the state of `cfi_kernel.run`."""

import cython

# Kinds of rules; UNSPECIFIED must be 0. Of a CFA: UNSPECIFIED, CFA_REGISTER or EXPRESSION.
UNSPECIFIED = cython.declare(cython.int, 0)
UNDEFINED = cython.declare(cython.int, 1)
SAME = cython.declare(cython.int, 2)
OFFSET = cython.declare(cython.int, 3)
VAL_OFFSET = cython.declare(cython.int, 4)
REGISTER = cython.declare(cython.int, 5)
EXPRESSION = cython.declare(cython.int, 6)
VAL_EXPRESSION = cython.declare(cython.int, 7)
CFA_REGISTER = cython.declare(cython.int, 8)

# An expression's place and length in one value.
LENGTH_BITS = cython.declare(cython.int, 16)
MAX_REMEMBERED = cython.declare(cython.int, 30)

# Indices into `state` of `run`.
FDE = cython.declare(cython.int, 0)
N_ROWS = cython.declare(cython.int, 1)
N_RULES = cython.declare(cython.int, 2)
N_ENTRIES = cython.declare(cython.int, 3)
N_BAD = cython.declare(cython.int, 4)
