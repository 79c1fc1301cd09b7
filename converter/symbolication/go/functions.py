"""Decode: the functions of a program of Go, with what is inlined into them."""

from __future__ import annotations

import struct
from bisect import bisect_right
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.model import Array
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.go.layout import INLINED_DATA, INLINED_INDEX, Module, Tables, damaged, find_module
from traceferry.symbolication.interface import line_number
from traceferry.symbolication.runs import Call
from traceferry.symbolication.symbol_table import Texts

NONE = 0xFFFF_FFFF
# Calls inlined into each other; what is deeper is cut.
MAX_DEPTH = 64
# Functions that tell whether an address is that of the inlined calls of a module; how many calls of each are looked at,
# and how many functions.
WITNESSES, CALLS_OF_EACH, LOOKED_AT = 32, 16, 4096
# What begins a program, in front of the name of the system.
ENTRY = "_rt0_"


class ByPc(NamedTuple):
    """A value by address, from the beginning of a function: ends: rising, each of the value at its place."""

    ends: list[int]
    values: list[int]

    def value(self, offset: int) -> int:
        """Returns -1 where there is none."""
        nth = bisect_right(self.ends, offset)
        return self.values[nth] if nth < len(self.values) else -1


class ByPcTables:
    """Tables of values by address, each decoded once. Those of undamaged files share no bytes: together they have no
    more than the file."""

    def __init__(self, data: bytes, begin: int, quantum: int) -> None:
        self._data = data
        self._begin = begin
        self._quantum = quantum
        self._left = len(data)
        self._known = {0: ByPc([], [])}

    def at(self, offset: int) -> ByPc:
        """Returns the table that begins there; 0 is none."""
        if offset not in self._known:
            self._known[offset] = self._decoded(self._begin + offset)
        return self._known[offset]

    def _decoded(self, begin: int) -> ByPc:
        """A table is pairs of differences: of the value, from -1 on, in zigzag coding, and of the address. A difference
        of 0 of the value, but in the first pair, is its end."""
        data, at, end = self._data, begin, min(len(self._data), begin + self._left)
        ends: list[int] = []
        values: list[int] = []
        value, pc, shift, coded, is_value = -1, 0, 0, 0, True
        while at < end:
            byte = data[at]
            at += 1
            coded |= (byte & 0x7F) << shift
            shift += 7
            if byte & 0x80 and shift < 35:
                continue
            if is_value:
                if not coded and ends:
                    break
                value += ~(coded >> 1) if coded & 1 else coded >> 1
            else:
                pc += coded * self._quantum
                ends.append(pc)
                values.append(value)
            is_value, shift, coded = not is_value, 0, 0
        self._left -= max(at - begin, 0)
        return ByPc(ends, values)


class Inlined(NamedTuple):
    """A call that was inlined. source, line: of the call; parent: what it is inlined into, the number of another such
    call, -1 for the function itself."""

    name: str
    source: str
    line: int
    parent: int


class Record(NamedTuple):
    """The description of a function. name: where its name is; files, lines, inlined: its tables; unit: where the
    numbers of its files begin; calls: where the calls that are inlined into it are, NONE if there are none."""

    name: int
    files: ByPc
    lines: ByPc
    inlined: ByPc
    unit: int
    calls: int


class GoModule:
    """The functions of a module. start: uint64 [n + 1]: where functions begin, and the last ends, rising.

    Raises FormatError where nothing tells where the code is of which the tables speak.
    """

    def __init__(self, binary: Binary, tables: Tables) -> None:
        self._binary = binary
        self._header = tables.header
        self._data = tables.data
        self._order = "<" if binary.little_endian else ">"
        self._text_at = Texts(tables.data).at
        self._pcs = ByPcTables(tables.data, self._header.pcs_at, self._header.quantum)
        offsets, self._record_at = self._index()
        self._module: Module | None = None
        if self._header.since >= 18:
            self._module = find_module(binary, tables, int(offsets[0]))
            offsets += np.uint64(self._text(offsets) % (1 << 64))
        # What does not rise is damaged, and no function is empty.
        self.start = np.maximum.accumulate(offsets)
        self.is_function = (self._record_at > 0) & (self.start[1:] > self.start[:-1])

    def __len__(self) -> int:
        return len(self._record_at)

    def rows(self, addresses: Array) -> Array:
        """Returns (int64) the function that holds each address (uint64), -1 where none does."""
        nth = np.searchsorted(self.start, addresses, "right") - 1
        is_held = np.append(self.is_function, False)[nth] & (nth >= 0)
        found: Array = np.where(is_held, nth, -1)
        return found

    def record(self, row: int) -> Record:
        header = self._header
        at = int(self._record_at[row]) + (4 if header.since >= 18 else header.word)
        name, _, _, _, files, lines, n_tables, *unit = self._integers(at, 8 if header.since > 2 else 7)
        # Behind the line of the function's first line come four bytes: its kind, flags, and how many addresses.
        at += 4 * (7 + len(unit) + (header.since >= 20))
        n_data = self._data[at + 3] if at + 3 < len(self._data) else 0
        at += 4
        inlined, calls = 0, NONE
        if n_tables > INLINED_INDEX and n_data > INLINED_DATA[header.since]:
            (inlined,) = self._integers(at + 4 * INLINED_INDEX, 1)
            calls = self._data_of(at + 4 * n_tables, INLINED_DATA[header.since])
        at_pc = self._pcs.at
        return Record(name, at_pc(files), at_pc(lines), at_pc(inlined), unit[0] if unit else 0, calls)

    def name(self, record: Record) -> str:
        return self._text_at(self._header.names_at + record.name)

    def place(self, record: Record, offset: int) -> tuple[str, int]:
        """Returns (source, line) at a place in a function."""
        return self._source(record, record.files.value(offset)), line_number(record.lines.value(offset))

    def call(self, record: Record, number: int) -> Inlined | None:
        """Returns an entry of the calls that are inlined into a function; None where there is none."""
        fields = self._fields(record.calls, number, self._calls_begin) if self._calls_begin is not None else None
        if fields is None:
            return None
        if self._header.since >= 20:
            _, name, pc, _ = fields
            place, parent = self.place(record, pc), record.inlined.value(pc)
        else:
            parent, _, file, line, name, _ = fields
            place = self._source(record, file), line_number(line)
        return Inlined(self._text_at(self._header.names_at + name), *place, parent)

    # ------------------------------------------------ bytes

    def _integers(self, at: int, n: int) -> tuple[int, ...]:
        """Returns n u32, 0 for those that lie outside."""
        data = self._data[at : at + 4 * n]
        return struct.unpack(f"{self._order}{n}I", data.ljust(4 * n, b"\0"))

    def _source(self, record: Record, number: int) -> str:
        """Returns the path of a file, "" where it is not known."""
        header = self._header
        if number < 0:
            return ""
        if header.since == 2:
            # The address behind the last function is followed by where the files are.
            (files,) = self._integers(header.index_at + header.n_functions * header.index_entry + header.word, 1)
            (offset,) = self._integers(files + 4 * number, 1)
            return self._text_at(offset)
        (offset,) = self._integers(header.units_at + 4 * (record.unit + number), 1)
        return self._text_at(header.files_at + offset) if record.unit != NONE and offset != NONE else ""

    def _data_of(self, at: int, number: int) -> int:
        """Returns an entry of the array that begins there, of other data of a function: an address; since Go 1.18 from
        a place that the module's description names."""
        header = self._header
        if header.since >= 18:
            return self._integers(at + 4 * number, 1)[0]
        at += -at % header.word + number * header.word
        data = self._data[at : at + header.word].ljust(header.word, b"\0")
        return int.from_bytes(data, "little" if self._binary.little_endian else "big") or NONE

    def _fields(self, calls: int, number: int, begin: int) -> tuple[int, ...] | None:
        size = self._header.inlined_size
        if calls == NONE or number < 0:
            return None
        data = self._binary.code(begin + calls + number * size - self._binary.base, size)
        form = "B3xiii" if self._header.since >= 20 else "hBxiiii"
        return struct.unpack(self._order + form, data) if len(data) == size else None

    # ------------------------------------------------ where the code is, and the inlined calls

    def _index(self) -> tuple[Array, Array]:
        """Returns (where functions begin, and the last ends, uint64; where they are described, int64, 0 where that is
        nowhere)."""
        header = self._header
        kind = f"{self._order}u{header.index_entry // 2}"
        words = np.frombuffer(self._data, kind, 2 * header.n_functions + 1, header.index_at).astype(np.uint64)
        record = words[1::2]
        is_inside = (record > 0) & (record < np.uint64(len(self._data) - header.functions_at))
        at = np.where(is_inside, record + np.uint64(header.functions_at), np.uint64(0))
        return words[0::2].copy(), at.astype(np.int64)

    def _text(self, offsets: Array) -> int:
        """Returns where the code begins, which the header does not say since Go 1.26: a description of the module does,
        or the entry point, at which there must be a function with its name. offsets: of functions."""
        if self._module is not None:
            return self._module.text
        if self._header.text:
            return self._header.text
        for text, _ in self._binary.code_ranges:
            row = int(np.searchsorted(offsets, np.uint64(max(self._binary.entry_point - text, 0))))
            is_there = row < len(self) and text + int(offsets[row]) == self._binary.entry_point
            if is_there and self.name(self.record(row)).startswith(ENTRY):
                return text
        raise damaged("nothing tells where the code begins")

    @cached_property
    def _calls_begin(self) -> int | None:
        """Returns the address from which inlined calls are told: 0 up to Go 1.17; since then one of those that the
        module's description has, the one at which there are such calls. None where it is not known."""
        candidates = (0,) if self._header.since < 18 else self._module.words if self._module is not None else ()
        rows = np.flatnonzero(self.is_function)[:LOOKED_AT].tolist()
        records = ((int(self.start[row + 1] - self.start[row]), self.record(row)) for row in rows)
        witnesses = [(size, one) for size, one in records if one.calls != NONE and one.inlined.ends][:WITNESSES]
        if not witnesses:
            return None
        fits = (begin for begin in dict.fromkeys(candidates) if all(self._are_calls(begin, *one) for one in witnesses))
        return next(fits, None)

    def _are_calls(self, begin: int, size: int, record: Record) -> bool:
        """Whether calls that may be inlined into the function are there. size: of the function."""
        numbers = sorted({number for number in record.inlined.values if number >= 0})[:CALLS_OF_EACH]
        for number in numbers:
            fields = self._fields(record.calls, number, begin)
            if fields is None:
                return False
            if self._header.since >= 20:
                _, name, pc, first_line = fields
                is_possible = 0 <= pc < size and first_line >= 0
            else:
                parent, _, _, line, name, pc = fields
                is_possible = -1 <= parent < number and line >= 0 and 0 <= pc < size
            at = self._header.names_at + name
            if not is_possible or name <= 0 or self._data[at - 1 : at] != b"\0" or not self._text_at(at):
                return False
        return True


class GoFunction:
    """One function. boundaries: where other frames may begin, 0 first; name: of its symbol, if it has one."""

    def __init__(self, module: GoModule, row: int, name: str) -> None:
        self._module = module
        self._record = record = module.record(row)
        self.start = int(module.start[row])
        self.size = int(module.start[row + 1]) - self.start
        self.name = name or module.name(record)
        self._calls: dict[int, Inlined | None] = {}

    def boundaries(self) -> list[int]:
        record = self._record
        ends = {end for table in (record.files, record.lines, record.inlined) for end in table.ends}
        return [0, *sorted(end for end in ends if 0 < end < self.size)]

    def frames(self, offset: int) -> tuple[Call, ...]:
        """Returns the frames at a place of the function, the outermost first."""
        place, number = self._module.place(self._record, offset), self._record.inlined.value(offset)
        frames: list[Call] = []
        while number >= 0 and len(frames) < MAX_DEPTH and (call := self._call(number)) is not None:
            frames.append((call.name, *place))
            place, number = (call.source, call.line), call.parent
        return ((self.name, *place), *reversed(frames))

    def _call(self, number: int) -> Inlined | None:
        if number not in self._calls:
            self._calls[number] = self._module.call(self._record, number)
        return self._calls[number]
