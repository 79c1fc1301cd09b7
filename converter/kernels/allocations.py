"""Columns of the totals of allocations: see `tally` of traceferry.heap._allocations."""

import cython

ALLOCATED = cython.declare(cython.int, 0)
FREED = cython.declare(cython.int, 1)
N_ALLOCATED = cython.declare(cython.int, 2)
N_FREED = cython.declare(cython.int, 3)
