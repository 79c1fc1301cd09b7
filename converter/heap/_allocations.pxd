"""Columns of the totals of allocations: see `tally`."""

cdef enum:
    ALLOCATED
    FREED
    N_ALLOCATED
    N_FREED
    N_TOTALS
