"""Map: samples in functions without a frame of their own, of which nothing but their instructions tells where the
caller is: machine code of programs, and of jitdumps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from traceferry.files.answers import checked
from traceferry.importers.perf.leaves import MACHINE, MOST_FUNCTIONS
from traceferry.importers.perf.regions import resolved_intervals
from traceferry.importers.perf.spaces import FIRST_PROGRAM, OF_CODE, OF_FILE, Memory
from traceferry.libraries.library import Library
from traceferry.model import Array, TraceBuilder, rows_by_key
from traceferry.unwinding.own_stack import Code, OwnStack

# Instructions of all functions that are read.
MOST_INSTRUCTIONS = 1 << 16
UNKNOWN, WITHOUT_FRAME = -1, -2
# No copy of a stack has more.
MOST_BYTES = 1 << 16


class _Function(NamedTuple):
    """rows: of the samples in it; start: of the function, address: of each sample, both as `code` reads it; begins:
    whether a function begins at an address."""

    rows: Array
    code: Code
    start: int
    address: Array
    begins: Callable[[int], bool]


def own_stacks(pc: Array, ts: Array, program: Array, memory: Memory, trace: TraceBuilder) -> Array:
    """Returns how many bytes of its own the function of each sample has on the stack: int32. UNKNOWN: it has a frame,
    or nothing tells; WITHOUT_FRAME: it has none, but nothing tells that it was called. pc: uint64; ts: on the
    recording's clock; program: its number."""
    own = np.full(len(pc), UNKNOWN, np.int32)
    kind, owner, offset = _resolved(pc, ts + memory.offset_ns, program, memory)
    functions = [*_of_files(kind, owner, offset, memory), *_of_code(kind, owner, offset, trace)]
    functions.sort(key=lambda function: -len(function.rows))
    n_read = 0
    for function in functions[:MOST_FUNCTIONS]:
        if n_read >= MOST_INSTRUCTIONS:
            break
        known = OwnStack(function.code, function.start, function.begins)
        n_read += known.n_read
        for row, address in zip(function.rows.tolist(), function.address.tolist(), strict=True):
            size = known.size_at(address)
            if size is not None and size <= MOST_BYTES:
                own[row] = size
            elif known.lacks_frame_at(address):
                own[row] = WITHOUT_FRAME
    return own


def of_answer(n: int, values: object) -> Array:
    """Returns what a pack has of `own_stacks` for n samples. Raises TypeError or ValueError for anything else."""
    sizes = [checked(value, int) for value in checked(values, list)]
    if len(sizes) != n or not all(WITHOUT_FRAME <= size <= MOST_BYTES for size in sizes):
        raise ValueError("sizes of other stacks")
    return np.array(sizes, np.int32)


def _resolved(pc: Array, ts: Array, program: Array, memory: Memory) -> tuple[Array, Array, Array]:
    """Returns what is at each address at its time: kind, owner and offset, as `AddressResolution` has them."""
    kind, owner, offset = np.zeros(len(pc), np.int8), np.zeros(len(pc), np.int64), np.zeros(len(pc), np.uint64)
    for number, rows in rows_by_key(program).items():
        mine = rows[np.argsort(pc[rows], kind="stable")]
        regions = memory.regions(FIRST_PROGRAM + number, pc[mine])
        found, _ = resolved_intervals(regions, pc[mine], ts[mine], ts[mine])
        known = found.region >= 0
        at, of = mine[found.key[known]], regions.take(found.region[known])
        kind[at], owner[at], offset[at] = of.kind, of.owner, pc[at] - of.base
    return kind, owner, offset


def _of_files(kind: Array, owner: Array, offset: Array, memory: Memory) -> Iterator[_Function]:
    rows = np.flatnonzero(kind == OF_FILE)
    for number, nth in rows_by_key(owner[rows]).items():
        library, mine = memory.natives.libraries[number], rows[nth]
        if library.binary is None or library.symbols is None or library.binary.machine != MACHINE:
            continue
        address, is_loaded = library.addresses(offset[mine])
        mine, address = mine[is_loaded], address[is_loaded]
        start = library.file.frames_at(address).start
        for begin, these in rows_by_key(start.astype(np.int64)).items():
            if begin > 0:
                yield _Function(mine[these], library.binary.code, begin, address[these], partial(_begins, library))


def _begins(library: Library, address: int) -> bool:
    return int(library.file.frames_at(np.array([address], np.uint64)).start[0]) == address


def _of_code(kind: Array, owner: Array, offset: Array, trace: TraceBuilder) -> Iterator[_Function]:
    rows = np.flatnonzero(kind == OF_CODE)
    for number, nth in rows_by_key(owner[rows]).items():
        code = trace.code_reader(number).bytes_of(number)
        yield _Function(rows[nth], _Bytes(code), 0, offset[rows[nth]], lambda _: False)


class _Bytes:
    """A code object's bytes by offset."""

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def __call__(self, address: int, size: int) -> bytes:
        return bytes(self._data[address : address + size]) if address >= 0 else b""
