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
    if binary is None:
        return nothing, nothing
    try:
        module = open_module(binary, debug)
    except FormatError:
        return nothing, nothing
    ranges = (module.frames_of(section).ranges() for section in module.sections)
    return next((found for found in ranges if len(found[0])), (nothing, nothing))
