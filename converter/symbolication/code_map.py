"""Which code object of a loaded trace lies at an address, and when; and what runs at each of its bytes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.model import Array, Trace, containing_interval, rows_by_key
from traceferry.symbolication.runs import Call


class CodeObject(NamedTuple):
    """row: of the trace's `code`; start: the address of its first byte; size: in bytes."""

    row: int
    start: int
    size: int


class FirstMapping(NamedTuple):
    """The first place of a code object: its bytes are those of that mapping. pid: of its process; ts: from when on."""

    address: int
    pid: int
    ts: int


class Snapshot:
    """Mappings that lie beside each other, by address. start, size: uint64; code: rows of the trace's `code`."""

    def __init__(self, trace: Trace, rows: Array) -> None:
        """rows: of the trace's `code_mappings`."""
        mappings = trace.code_mappings.take(rows)
        mappings = mappings.take(np.argsort(mappings["address"], kind="stable"))
        self.start: Array = mappings["address"]
        self.code: Array = mappings["code"]
        self.size: Array = trace.code["size"][self.code].astype(np.uint64)

    def __len__(self) -> int:
        return len(self.start)

    def rows(self, addresses: Array) -> Array:
        """Returns the mapping that holds each address (uint64); int64, -1 is none."""
        return containing_interval(self.start, self.size, addresses)

    def at(self, row: int) -> CodeObject:
        return CodeObject(int(self.code[row]), int(self.start[row]), int(self.size[row]))


class CodeMap:
    """The code objects of a trace: by address and time, and by library and address."""

    def __init__(self, trace: Trace) -> None:
        # Frames are made when they are asked for.
        self._trace = trace.opened()

    # ------------------------------------------------------------ which code object

    def in_library(self, lib: int, address: int) -> CodeObject | None:
        """Returns what holds a byte of a library of code objects; address: relative to the library's start."""
        libs, addresses, rows = self._by_library
        begin, end = bisect_left(libs, lib), bisect_right(libs, lib)
        # Code objects without bytes share their address with the next one.
        nth = bisect_right(addresses, address, begin, end) - 1
        if nth < begin:
            return None
        row, start = int(rows[nth]), int(addresses[nth])
        size = int(self._trace.code["size"][row])
        return CodeObject(row, start, size) if address < start + size else None

    def in_process(self, pid: int, ts: int, addresses: Sequence[int]) -> dict[int, CodeObject]:
        """Returns what of a process lay at absolute addresses then, by address."""
        rows = self._by_process.get(pid)
        if rows is None or not addresses:
            return {}
        there = Snapshot(self._trace, rows[self.are_alive(rows, ts)])
        found = there.rows(np.array(addresses, np.uint64)).tolist()
        return {address: there.at(row) for address, row in zip(addresses, found, strict=True) if row >= 0}

    def are_alive(self, rows: Array, ts: int) -> Array:
        """Whether each of these rows of `code_mappings` is one of the time."""
        start, end = (self._trace.code_mappings[name][rows] for name in ("start_ts", "end_ts"))
        found: Array = (start <= ts) & ((end < 0) | (ts < end))
        return found

    def first_mapping(self, code: int) -> FirstMapping | None:
        mappings = self._trace.code_mappings
        rows = np.flatnonzero(mappings["code"] == code)
        if not len(rows):
            return None
        first = rows[np.argmin(mappings["start_ts"][rows])]
        return FirstMapping(
            int(mappings["address"][first]), int(self._trace.code["pid"][code]), int(mappings["start_ts"][first])
        )

    @cached_property
    def _by_library(self) -> tuple[Array, Array, Array]:
        """Columns (lib, address in it, row) of the code objects that have a symbol: of others only the size is
        recorded."""
        trace = self._trace
        rows = np.flatnonzero(trace.code["symbol"] >= 0)
        symbol = trace.code["symbol"][rows]
        lib, address = trace.symbols["lib"][symbol], trace.symbols["address"][symbol]
        order = np.lexsort((address, lib))
        return lib[order], address[order], rows[order]

    @cached_property
    def _by_process(self) -> dict[int, Array]:
        """Maps pid → rows of `code_mappings`."""
        return rows_by_key(self._trace.code["pid"][self._trace.code_mappings["code"]])

    # ------------------------------------------------------------ what is in it

    def frames_at(self, code: int, offset: int) -> tuple[int, ...]:
        """Returns rows of the trace's frames, the outermost first."""
        return self._trace.code_reader(code).frames_at(self._trace, code, offset)

    def boundaries(self, code: int) -> Sequence[int]:
        """Returns the offsets at which the frames may change."""
        return self._trace.code_reader(code).boundaries(code)

    def bytes_of(self, code: int) -> memoryview:
        return self._trace.code_reader(code).bytes_of(code)

    def calls(self, stacks: Iterable[Iterable[int]]) -> dict[int, Call]:
        """Returns name, source and line of each frame."""
        trace, frames = self._trace, self._trace.frames
        rows = np.array(sorted({frame for stack in stacks for frame in stack}), np.int64)
        func, source = frames["func"][rows], frames["source"][rows]
        source = np.where(source >= 0, source, trace.funcs["source"][func])
        paths = np.append(trace.sources["path"], -1)[source]
        columns = (rows, trace.funcs["name"][func], paths, frames["line"][rows])
        return {
            row: (trace.strings[name], trace.strings[path], line)
            for row, name, path, line in zip(*(column.tolist() for column in columns), strict=True)
        }

    def sources_of(self, frames: Sequence[int]) -> list[int]:
        """Returns rows of the trace's sources: of the frames and of their functions, each once."""
        trace, rows = self._trace, list(frames)
        found = [*trace.frames["source"][rows], *trace.funcs["source"][trace.frames["func"][rows]]]
        return [source for source in dict.fromkeys(map(int, found)) if source >= 0]

    def name(self, code: int) -> str:
        """Returns the name that the compiler gave the code object."""
        return self._trace.strings[int(self._trace.symbols["name"][self._trace.code["symbol"][code]])]

    def function_and_tier(self, code: int) -> str:
        """Returns the function's name, with its tier: a function has a code object for each."""
        trace = self._trace
        tier = int(trace.code["tier"][code])
        name = trace.func_name(int(trace.code["func"][code]))
        return f"{name} [{trace.strings[int(trace.tiers['name'][tier])]}]" if tier >= 0 else name
