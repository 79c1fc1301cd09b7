"""What the flags of rows of `calls` say: see traceferry.model."""

import cython

LEAVE = cython.declare(cython.uint, 1)
UNWOUND = cython.declare(cython.uint, 4)
OPEN_AT_END = cython.declare(cython.uint, 8)
OPEN_AT_START = cython.declare(cython.uint, 16)
