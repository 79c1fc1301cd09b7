"""Map: samples whose stacks lack the caller of the innermost function, which keeps no frame pointer.

The kernel follows frame pointers (-g): what lies above the frame that %rbp points to is the return address into the
caller of the function that made this frame. Where the innermost function has not made one, as leaf functions of gcc
(with -mno-omit-leaf-frame-pointer still those that need no stack) and handwritten ones, its caller is in no stack.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceferry.importers.perf.layout import USER_MODE
from traceferry.importers.perf.recording import Samples
from traceferry.libraries.library import Library
from traceferry.model import Array, TraceBuilder, rows_by_key

# mov %rsp,%rbp in its two encodings, and lea N(%rsp),%rbp of Go until 1.20: from here on a function has its frame.
MAKES_FRAME = (b"\x48\x89\xe5", b"\x48\x8b\xec", b"\x48\x8d\x6c\x24", b"\x48\x8d\xac\x24")
MACHINE = "EM_X86_64"
COLD = ".cold"
# Of the functions that were sampled most, so many are looked at, and so many bytes of each.
MOST_FUNCTIONS, MOST_BYTES = 256, 4096


def n_without_caller(
    samples: Samples, event: int, stack: Array, trace: TraceBuilder, libraries: Sequence[Library]
) -> int:
    """Counts the samples of an event in code of programs before it makes a frame. stack: of each sample."""
    if not len(trace.symbols):
        return 0
    mine = stack[(samples.event == event) & (samples.cpumode == USER_MODE) & (stack >= 0)]
    n_of_stack = np.bincount(mine, minlength=len(trace.stacks))
    n_of_frame = np.bincount(trace.stacks["frame"], n_of_stack, len(trace.frames)).astype(np.int64)
    frames = np.flatnonzero(n_of_frame)
    n_samples = n_of_frame[frames]
    symbol, address = trace.frames["symbol"][frames], trace.frames["address"][frames]
    start = np.where(symbol >= 0, trace.symbols["address"][symbol], address)
    # Of what nothing is known begins where it was sampled.
    known = np.flatnonzero(address > start)
    library_of = {library.row: library for library in libraries if library.binary is not None}
    of_symbol = {number: known[mine] for number, mine in rows_by_key(symbol[known]).items()}
    most = sorted(of_symbol, key=lambda number: (-int(n_samples[of_symbol[number]].sum()), number))[:MOST_FUNCTIONS]
    n = 0
    for number in most:
        mine = of_symbol[number]
        library = library_of.get(int(trace.symbols["lib"][number]))
        # The cold part of a function is jumped to with the frame that the other part has made.
        is_part = COLD in trace.strings[int(trace.symbols["name"][number])]
        if library is not None and not is_part:
            n += int(n_samples[mine][_is_before_frame(library, int(start[mine[0]]), address[mine])].sum())
    return n


def _is_before_frame(library: Library, start: int, address: Array) -> Array:
    """Returns whether a function that begins at start has not made a frame yet at these of its addresses."""
    binary = library.binary
    if binary is None or binary.machine != MACHINE:
        return np.zeros(len(address), bool)
    code = binary.code(start, min(int(address.max()) - start, MOST_BYTES))
    made_at = min((at for at in map(code.find, MAKES_FRAME) if at >= 0), default=len(code))
    found: Array = address - start <= made_at
    return found
