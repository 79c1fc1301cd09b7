"""Where functions begin and end, by call-frame information: compilers write it for each, and no tool strips it."""

from __future__ import annotations

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.model import Array
from traceferry.symbolication.binary import Binary
from traceferry.unwinding.modules import open_module


def function_ranges(binary: Binary | None, debug: Binary | None = None) -> tuple[Array, Array]:
    """Returns (start, end) of each function that the call-frame information of a file describes: uint64, rising, as
    linked; none of a file or a processor that is not known. debug: the file with its debug information."""
    nothing = np.zeros(0, np.uint64)
    try:
        module = open_module(binary, debug) if binary is not None else None
    except FormatError:
        module = None
    for section in module.sections if module is not None else ():
        first, end = module.frames_of(section).ranges()
        if len(first):
            return first, end
    return nothing, nothing
