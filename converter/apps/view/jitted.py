"""The code objects of a trace: by library and address, and by process, time and absolute address."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from traceferry.model import Array, NativeFunction, Trace, rows_by_key


@dataclass(frozen=True)
class CodeObject:
    """row: of the trace's `code`; start: of its first byte, relative to its library's start; size: in bytes."""

    row: int
    start: int
    size: int


@dataclass(frozen=True)
class Placed:
    """Where a code object lay first: its bytes are those of that place. pid, ts: of what process, and from when."""

    address: int
    pid: int
    ts: int


class CodeObjects:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        # Code of which only the size is recorded has no symbol.
        rows = np.flatnonzero(trace.code["symbol"] >= 0)
        symbol = trace.code["symbol"][rows]
        lib, address = trace.symbols["lib"][symbol], trace.symbols["address"][symbol]
        order = np.lexsort((address, lib))
        self._rows: Array = rows[order]
        self._lib: Array = lib[order]
        self._address: Array = address[order]

    def at(self, lib: int, address: int) -> CodeObject | None:
        """What holds a byte of a library of code objects; address: relative to the library's start."""
        begin, end = bisect_left(self._lib, lib), bisect_right(self._lib, lib)
        # Code objects without bytes share their address with the next one.
        nth = bisect_right(self._address, address, begin, end) - 1
        if nth < begin:
            return None
        row, start = int(self._rows[nth]), int(self._address[nth])
        size = int(self._trace.code["size"][row])
        return CodeObject(row, start, size) if address < start + size else None

    def function_at(self, code: CodeObject, offset: int) -> NativeFunction:
        frames = self._frames_at(code, offset)
        return NativeFunction(tuple(self._shown(frame) for frame in frames), code.start, code.size)

    def sources_at(self, code: CodeObject, offset: int) -> list[int]:
        """Rows of the trace's sources, of the frames of a byte and of their functions."""
        trace = self._trace
        frames = self._frames_at(code, offset)
        funcs = [int(trace.frames["func"][frame]) for frame in frames]
        rows = [int(trace.frames["source"][f]) for f in frames] + [int(trace.funcs["source"][f]) for f in funcs]
        return [row for row in dict.fromkeys(rows) if row >= 0]

    def bytes_of(self, code: CodeObject) -> memoryview:
        return self._trace.code_reader(code.row).bytes_of(code.row)

    def placed(self, code: CodeObject) -> Placed | None:
        mappings = self._trace.code_mappings
        rows = np.flatnonzero(mappings["code"] == code.row)
        if not len(rows):
            return None
        first = rows[np.argmin(mappings["start_ts"][rows])]
        pid = int(self._trace.code["pid"][code.row])
        return Placed(int(mappings["address"][first]), pid, int(mappings["start_ts"][first]))

    def names_at(self, pid: int, ts: int, addresses: Sequence[int]) -> dict[int, str]:
        """Absolute address → what of a process lay there then."""
        begin, end, start_ts, end_ts, code = self._by_process.get(pid, NOWHERE)
        alive = (start_ts <= ts) & ((end_ts < 0) | (ts < end_ts))
        order = np.flatnonzero(alive)[np.argsort(begin[alive], kind="stable")]
        begin, end, code = begin[order], end[order], code[order]
        asked = np.array(addresses, np.uint64)
        nth = np.searchsorted(begin, asked, "right").astype(np.int64) - 1
        held = np.flatnonzero(nth >= 0)
        held = held[asked[held] < end[nth[held]]]
        return {int(asked[i]): with_offset(self._name(int(code[nth[i]])), int(asked[i] - begin[nth[i]])) for i in held}

    # ------------------------------------------------------------

    @cached_property
    def _by_process(self) -> dict[int, tuple[Array, ...]]:
        """pid → begin, end (uint64), start_ts, end_ts, code of its mappings."""
        mappings = self._trace.code_mappings.table()
        code, begin = mappings["code"], mappings["address"]
        end = begin + self._trace.code["size"][code].astype(np.uint64)
        pid = self._trace.code["pid"][code]
        columns = (begin, end, mappings["start_ts"], mappings["end_ts"], code)
        return {one: tuple(column[rows] for column in columns) for one, rows in rows_by_key(pid).items()}

    def _frames_at(self, code: CodeObject, offset: int) -> tuple[int, ...]:
        return self._trace.code_reader(code.row).frames_at(code.row, offset)

    def _shown(self, frame: int) -> tuple[str, str, int]:
        trace = self._trace
        func, source = int(trace.frames["func"][frame]), int(trace.frames["source"][frame])
        source = source if source >= 0 else int(trace.funcs["source"][func])
        path = trace.strings[int(trace.sources["path"][source])] if source >= 0 else ""
        return trace.func_name(func), path, int(trace.frames["line"][frame])

    def _name(self, row: int) -> str:
        """The function's, with its tier: a function has a code object for each."""
        trace = self._trace
        tier = int(trace.code["tier"][row])
        name = trace.func_name(int(trace.code["func"][row]))
        return f"{name} [{trace.strings[int(trace.tiers['name'][tier])]}]" if tier >= 0 else name


NOWHERE = tuple(np.zeros(0, dtype) for dtype in (np.uint64, np.uint64, np.int64, np.int64, np.int64))


def with_offset(name: str, offset: int) -> str:
    return f"{name}+{offset:#x}" if offset else name
