"""Decode: the three records that describe inlined functions become one kind of table, offset → stack of locations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from traceferry.importers.jitdump.layout import Structs
from traceferry.model import Array, distinct

MAX_DEPTH = 128  # of inlined calls; what is deeper is cut
FLAG_IS_JS = 1


class Function(NamedTuple):
    """file: "" is unknown; line and column: of its start, from 1, 0 is unknown; is_js: None if unknown."""

    name: str
    file: str
    line: int
    column: int
    is_js: bool | None = None


class SourceLocation(NamedTuple):
    """The place in a source where a function runs. file "", line 0 and column 0 are unknown; both count from 1."""

    function: Function
    file: str
    line: int
    column: int


Stack = tuple[SourceLocation, ...]

# The fields of a source position in variant B.
POSITION_B = (
    ("caller", "i4"), ("name", "u4"), ("file", "i4"), ("start_line", "u4"), ("start_column", "u4"), ("line", "u4"),
    ("column", "u4"),
)  # fmt: skip


# ---------------------------------------------------------------- variant A: DEBUG_INFO2


class _Call(NamedTuple):
    """A call of a function of the list, at a line of the caller's. calls: those in it."""

    function: int
    line: int
    column: int
    calls: _Calls


# The calls out of one function: (begin, end, call) for each range of offsets, by rising begin.
_Calls = list[tuple[int, int, _Call]]


@dataclass
class TableA:
    """Lines and calls apart: a line record gives the location inside the deepest call around it."""

    function_list: list[Function]
    outermost: _Calls
    line_starts: list[int]
    line_locations: list[tuple[str, int, int]]
    edges: list[int]
    n_cycles: int = 0

    def stack_at(self, offset: int) -> Stack:
        """Returns the locations of that byte, the outermost function first; () where the record says nothing."""
        function = self.function_list[0]
        locations: list[SourceLocation] = []
        calls = self.outermost
        while len(locations) < MAX_DEPTH:
            nth = bisect_right(calls, offset, key=itemgetter(0)) - 1
            if nth < 0 or offset >= calls[nth][1]:
                break
            call = calls[nth][2]
            locations.append(SourceLocation(function, function.file, call.line, call.column if call.line else 0))
            function, calls = self.function_list[call.function], call.calls
        nth = bisect_right(self.line_starts, offset) - 1
        file, line, column = self.line_locations[nth] if nth >= 0 else ("", 0, 0)
        return (*locations, SourceLocation(function, file, line, column))

    def boundaries(self) -> list[int]:
        """Returns the offsets at which the stack may change, rising."""
        return sorted({0, *self.line_starts, *self.edges})

    def functions(self) -> list[str]:
        """Returns the names of the inlined functions, each once."""
        return list(dict.fromkeys(f.name for f in self.function_list[1:]))


def parse_a(payload: memoryview, layout: Structs) -> TableA | None:
    """Returns None where the counts do not fit the payload or an index is outside its list."""
    fixed = layout.info2_a.size
    if len(payload) < fixed:
        return None
    n_files, files_size, n_names, names_size, n_functions, n_calls, n_ranges, n_lines = layout.info2_a.unpack_from(
        payload
    )
    needed = fixed + files_size + names_size + 20 * n_functions + 20 * n_calls + 8 * n_ranges + 16 * n_lines
    if needed > len(payload) or n_functions == 0:
        return None
    at = fixed
    files = _strings(payload[at : at + files_size], n_files)
    at += files_size
    names = _strings(payload[at : at + names_size], n_names)
    at += names_size
    if files is None or names is None:
        return None
    functions = list(layout.function_a.iter_unpack(payload[at : at + 20 * n_functions]))
    at += 20 * n_functions
    calls = list(layout.call_a.iter_unpack(payload[at : at + 20 * n_calls]))
    at += 20 * n_calls
    ranges = list(layout.pair32.iter_unpack(payload[at : at + 8 * n_ranges]))
    at += 8 * n_ranges
    lines = list(layout.line_a.iter_unpack(payload[at : at + 16 * n_lines]))
    if any(name >= n_names or file >= n_files for name, file, *_ in functions):
        return None
    if any(file >= n_files for _, file, _, _ in lines) or any(call[2] >= n_functions for call in calls):
        return None
    outermost = _call_tree(calls, ranges)
    if outermost is None:
        return None
    lines.sort(key=lambda line: line[0])
    return TableA(
        [
            Function(names[name], files[file], _i32(line), _from_zero(line, column), bool(flags & FLAG_IS_JS))
            for name, file, line, column, flags in functions
        ],
        outermost,
        [offset for offset, *_ in lines],
        [(files[file], _i32(line), _from_zero(line, column)) for _, file, line, column in lines],
        [edge for start, size in ranges for edge in (start, start + size)],
    )


def _call_tree(calls: list[tuple[int, ...]], ranges: list[tuple[int, ...]]) -> _Calls | None:
    """Returns the tree whose depth-first order the list is; None where depths jump or ranges run out."""
    # Of the call that is read and those around it, what they call; and of all.
    path: list[_Calls] = [[]]
    every = path.copy()
    at = 0
    for depth, n_ranges, function, line, column in calls:
        if depth >= len(path) or n_ranges > len(ranges) - at:
            return None
        call = _Call(function, _i32(line), _from_zero(line, column), [])
        path[depth] += [(start, start + size, call) for start, size in ranges[at : at + n_ranges]]
        path[depth + 1 :] = [call.calls]
        every.append(call.calls)
        at += n_ranges
    for siblings in every:
        siblings.sort(key=itemgetter(0))
    return every[0]


def _from_zero(line: int, column: int) -> int:
    """Returns (line, column): variant A counts columns from 0; without a line there is no column."""
    return _i32(column + 1) if line else 0


def _i32(value: int) -> int:
    return value if 0 <= value < 1 << 31 else 0


# ---------------------------------------------------------------- variants B and C


@dataclass
class TableC:
    """offsets: rising; from each on, and until the next, the stack of the same index holds."""

    offsets: list[int]
    stacks: list[Stack]
    n_cycles: int = 0

    def stack_at(self, offset: int) -> Stack:
        nth = bisect_right(self.offsets, offset) - 1
        return self.stacks[nth] if nth >= 0 else ()

    def boundaries(self) -> list[int]:
        return sorted({0, *self.offsets})

    def functions(self) -> list[str]:
        return list(dict.fromkeys(location.function.name for stack in self.stacks for location in stack[1:]))


def is_variant_b(payload: memoryview, layout: Structs) -> bool:
    """Whether it is variant B, which shares a number with TIER: decides by the structure, without reading the lists."""
    if len(payload) < layout.info2_b.size:
        return False
    _, n_offsets, n_positions, n_strings = layout.info2_b.unpack_from(payload)
    strings_at = layout.info2_b.size + 8 * n_offsets + layout.position_b.size * n_positions
    return strings_at <= len(payload) and _ends_exactly(payload[strings_at:], n_strings)


def _ends_exactly(text: memoryview, n_strings: int) -> bool:
    """Whether n_strings NULs end the strings, and only zeros follow."""
    data = bytes(text)
    if data.count(0) < n_strings:
        return False
    at = 0
    for _ in range(n_strings):
        at = data.index(0, at) + 1
    return not any(data[at:])


@dataclass
class TableB:
    """Positions that name their callers. offsets (rising) and position_at: which position holds from where on;
    positions: rows of POSITION_B."""

    offsets: Array
    position_at: Array
    positions: Array
    strings: list[str]
    n_cycles: int
    _known: dict[int, tuple[int, SourceLocation]] = field(default_factory=dict)

    def stack_at(self, offset: int) -> Stack:
        nth = int(np.searchsorted(self.offsets, offset, "right")) - 1
        locations: list[SourceLocation] = []
        seen: set[int] = set()
        at = int(self.position_at[nth]) if nth >= 0 else -1
        while at >= 0 and at not in seen and len(locations) < MAX_DEPTH:
            seen.add(at)
            known = self._known.get(at)
            at, location = self._read(at) if known is None else known
            locations.append(location)
        return tuple(reversed(locations))

    def _read(self, at: int) -> tuple[int, SourceLocation]:
        """Returns (the position of the caller, what is at this one), which many stacks share."""
        caller, name, file_index, start_line, start_column, line, column = self.positions[at].item()
        file = self.strings[file_index] if file_index >= 0 else ""
        function = Function(self.strings[name], file, _i32(start_line), _i32(start_column))
        self._known[at] = caller, SourceLocation(function, file, _i32(line), _i32(column))
        return self._known[at]

    def boundaries(self) -> list[int]:
        return sorted({0, *self.offsets.tolist()})

    def functions(self) -> list[str]:
        callers: list[int] = self.positions["caller"].tolist()
        is_used = bytearray(len(callers))
        for at in self.position_at.tolist():
            while at >= 0 and not is_used[at]:
                is_used[at] = 1
                at = callers[at]
        names: list[int] = self.positions["name"].tolist()
        inlined = (name for name, caller, used in zip(names, callers, is_used, strict=True) if used and caller >= 0)
        return list(dict.fromkeys(self.strings[name] for name in inlined))


# The inlined functions at each byte, from one record or the records of one code object.
InlineTable = TableA | TableB | TableC


def parse_b(payload: memoryview, layout: Structs) -> TableB | None:
    """Reads a payload that `is_variant_b`; None where an index is outside its list."""
    order = layout.info2_b.format[0]
    _, n_offsets, n_positions, n_strings = layout.info2_b.unpack_from(payload)
    at = layout.info2_b.size
    offsets = np.frombuffer(payload, np.dtype(order + "u4"), 2 * n_offsets, at).reshape(-1, 2).astype(np.int64)
    at += 8 * n_offsets
    position = np.dtype([(name, order + kind) for name, kind in POSITION_B])
    positions = np.frombuffer(payload, position, n_positions, at)
    strings = _strings(payload[at + position.itemsize * n_positions :], n_strings)
    limits = {"caller": n_positions, "name": n_strings, "file": n_strings}
    if strings is None or np.any(offsets[:, 1] >= n_positions):
        return None
    if any(np.any(positions[name] >= limit) for name, limit in limits.items()):
        return None
    offsets = offsets[np.argsort(offsets[:, 0], kind="stable")]
    used = distinct(offsets[:, 1])
    n_cycles = int(_never_ends(positions["caller"])[used].sum())
    return TableB(offsets[:, 0], offsets[:, 1], positions, strings, n_cycles)


def _never_ends(callers: Array) -> Array:
    """Whether each position's callers go in a circle: after as many steps as there are positions there is still one.
    Each round doubles the steps."""
    nowhere = len(callers)
    step = np.append(np.where(callers < 0, nowhere, callers), nowhere).astype(np.int64)
    for _ in range(nowhere.bit_length()):
        step = step[step]
    never: Array = step[:-1] != nowhere
    return never


def parse_c(records: Sequence[tuple[int, Stack]], address: int) -> TableC:
    """Joins stacks. records: (address, stack) of the records of one code object."""
    known = sorted(((start - address, stack) for start, stack in records if stack), key=lambda record: record[0])
    return TableC([offset for offset, _ in known], [stack for _, stack in known])


def parse_record_c(payload: memoryview, layout: Structs) -> tuple[int, Stack] | None:
    """Returns (address, stack) of one record, or None where it does not parse exactly."""
    if len(payload) < layout.pair64.size:
        return None
    address, n_entries = layout.pair64.unpack_from(payload)
    data = bytes(payload)
    if n_entries > (len(data) - layout.pair64.size) // 10:
        return None
    at = layout.pair64.size
    locations: list[SourceLocation] = []
    for _ in range(n_entries):
        if at + 8 > len(data):
            return None
        line, column = layout.pair32.unpack_from(data, at)
        name_end = data.find(0, at + 8)
        file_end = data.find(0, name_end + 1)
        if name_end < 0 or file_end < 0:
            return None
        file = data[name_end + 1 : file_end].decode("utf-8", "surrogateescape")
        function = Function(data[at + 8 : name_end].decode("utf-8", "replace"), file, 0, 0)
        locations.append(SourceLocation(function, file, _i32(line), _i32(column)))
        at = file_end + 1
    if any(data[at:]):
        return None
    return address, tuple(reversed(locations[:MAX_DEPTH]))


def _strings(text: memoryview, count: int) -> list[str] | None:
    """Returns `count` NUL-terminated strings, of which some name files; None where there are fewer."""
    parts = bytes(text).split(b"\0", count) if count <= len(text) else []
    return [part.decode("utf-8", "surrogateescape") for part in parts[:count]] if len(parts) > count else None
