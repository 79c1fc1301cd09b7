"""What the flags of rows of `calls` say: see the same names in traceferry.model.schema."""

cdef enum:
    LEAVE = 1
    UNWOUND = 4
    OPEN_AT_END = 8
    OPEN_AT_START = 16
