"""The names of what `unwind_kernel.unwind` takes and gives."""

import cython

# How a stack ended.
COMPLETE = cython.declare(cython.int, 0)
TRUNCATED = cython.declare(cython.int, 1)
ELSEWHERE = cython.declare(cython.int, 2)
NO_CFI = cython.declare(cython.int, 3)
BAD_ADDRESS = cython.declare(cython.int, 4)
BAD_CFA = cython.declare(cython.int, 5)
LOST_REGISTER = cython.declare(cython.int, 6)
LIMIT = cython.declare(cython.int, 7)

# How a frame's address was found: the sample's own, by call-frame information, by that of a signal frame, in a PLT, by
# the frame pointer.
BY_IP = cython.declare(cython.int, 0)
BY_CFI = cython.declare(cython.int, 1)
BY_SIGNAL = cython.declare(cython.int, 2)
BY_PLT = cython.declare(cython.int, 3)
BY_FRAME_POINTER = cython.declare(cython.int, 4)

# Indices into `state`.
SAMPLE = cython.declare(cython.int, 0)
N_FRAMES = cython.declare(cython.int, 1)
WANTED = cython.declare(cython.int, 2)

# Flags of samples.
IS_KERNEL_MODE = cython.declare(cython.int, 1)
IS_WHOLE_STACK = cython.declare(cython.int, 2)
