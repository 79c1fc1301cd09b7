"""Call-frame information: a section's CIEs and FDEs become rows.

Sources: DWARF 5, section 6.4, for `.debug_frame`; LSB Core, "Exception Frames", for `.eh_frame` and the augmentations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from traceferry.model import Array, index_of
from traceferry.unwinding import cfi_inlined, cfi_kernel, records_kernel
from traceferry.unwinding.machine import Machine
from traceferry.unwinding.rows import ENTRY_COLUMNS, RULE_COLUMNS, Rows, RuleSets

DW_EH_PE_OMIT = 0xFF
# Of instructions, in bytes. Those of a CIE are run for each of its FDEs: compilers need some ten.
MAX_CODE_SIZE = 1 << 16  # of an FDE; the longest seen has some hundred
MAX_INITIAL_SIZE = 256  # of a CIE
LEB_BITS = 64
MAX_FACTOR = 1 << 32


@dataclass(frozen=True)
class Section:
    """data: its bytes; address: of the first one, as the linker wrote it; is_debug: `.debug_frame`, not `.eh_frame`."""

    data: memoryview
    address: int
    is_debug: bool = False


@dataclass(frozen=True)
class Problems:
    """n_bad: records that cannot be read; is_cut: a record's length was wrong, and the rest of the section is not
    read."""

    n_bad: int
    is_cut: bool


@dataclass(frozen=True)
class _Cie:
    code: int
    end: int
    code_factor: int
    data_factor: int
    column: int
    signal: bool
    encoding: int
    segment_size: int
    has_data: bool


def rows_of(section: Section, machine: Machine, big: bool, rules: RuleSets) -> tuple[Rows, Problems]:
    """The rows of a section, by link-time address; its rule sets go to `rules`. Any bytes give rows."""
    data = np.frombuffer(section.data, np.uint8)
    (place, start, end, cie_at), is_cut = _records(data, big, section.is_debug)
    is_cie = cie_at < 0
    cies = [
        _cie(section, begin, stop, machine)
        for begin, stop in zip(start[is_cie].tolist(), end[is_cie].tolist(), strict=True)
    ]
    fde = np.flatnonzero(~is_cie)
    number = index_of(place[is_cie], cie_at[fde])
    usable = np.array([cie is not None for cie in cies] + [False], bool)[number]
    n_bad = int((~usable).sum())
    fde, number = fde[usable], number[usable]
    columns = _columns(cies)
    first, size, code = _ranges(section, data, big, machine, columns, number, start[fde], end[fde])
    sound = (code >= 0) & (end[fde] - code <= MAX_CODE_SIZE)
    # Code that the linker discarded has an address of 0, or a size of 0.
    wanted = sound & (size > 0) & (first > 0) & (first + size > first)
    n_bad += int((~sound).sum())
    order = np.argsort(first[wanted], kind="stable")
    first, size, code = first[wanted][order], size[wanted][order], code[wanted][order]
    stop, number = end[fde][wanted][order], number[wanted][order]
    last = first + size
    if len(first) > 1:
        # Of FDEs that overlap, the one that starts later holds: that is what a binary search finds.
        last[:-1] = np.minimum(last[:-1], first[1:])
    kept = last > first
    rows, n_unreadable = _run(
        section, data, big, machine, columns, (first[kept], last[kept], code[kept], stop[kept], number[kept]), rules
    )
    return rows, Problems(n_bad + n_unreadable, is_cut)


def _records(data: Array, big: bool, is_debug: bool) -> tuple[list[Array], bool]:
    """Place, start, end and CIE of each record; and whether a length was wrong."""
    state = np.zeros(3, np.int64)
    columns = [np.empty(1024, np.int64) for _ in range(4)]
    while True:
        records_kernel.records(data, big, is_debug, state, *columns)
        n = int(state[1])
        if n < len(columns[0]):
            return [column[:n] for column in columns], bool(state[2])
        columns = [np.concatenate((column, np.empty(3 * len(column), np.int64))) for column in columns]


class _CutError(Exception):
    """A record ends inside of a number, or a number has more bytes than 64 bits need."""


class _Reader:
    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def byte(self) -> int:
        if self.at >= self.end:
            raise _CutError
        self.at += 1
        return self.data[self.at - 1]

    def uleb(self) -> int:
        value = 0
        for shift in range(0, LEB_BITS, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _CutError

    def sleb(self) -> int:
        start = self.at
        value = self.uleb()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

    def text(self) -> bytes:
        at = self.at
        while self.byte():
            pass
        return bytes(self.data[at : self.at - 1])


def _cie(section: Section, at: int, end: int, machine: Machine) -> _Cie | None:
    """None: it cannot be used."""
    try:
        return _read_cie(section, _Reader(section.data, at, end), machine)
    except _CutError:
        return None


def _read_cie(section: Section, reader: _Reader, machine: Machine) -> _Cie | None:
    version = reader.byte()
    augmentation = reader.text()
    if version not in (1, 3, 4):
        return None
    if augmentation == b"eh":
        reader.at += machine.word_size
    segment_size = 0
    if version == 4:
        if reader.byte() != machine.word_size:
            return None
        segment_size = reader.byte()
    code_factor, data_factor = reader.uleb(), reader.sleb()
    column = reader.byte() if version == 1 else reader.uleb()
    encoding, signal, code = 0, False, reader.at
    if augmentation.startswith(b"z"):
        length = reader.uleb()
        code = reader.at + length
        for letter in augmentation[1:]:
            if letter == ord("R"):
                encoding = reader.byte()
            elif letter == ord("P"):
                _skip_pointer(reader, reader.byte(), machine.word_size, section.address)
            elif letter == ord("L"):
                reader.byte()
            elif letter == ord("S"):
                signal = True
            elif letter != ord("B"):  # what is behind an unknown letter is not known either; its length is
                break
    elif augmentation not in (b"", b"eh"):
        return None
    if not 0 <= reader.end - code <= MAX_INITIAL_SIZE:
        return None
    if column >= machine.n_registers or not 0 < code_factor < MAX_FACTOR:
        return None
    if abs(data_factor) >= MAX_FACTOR or encoding == DW_EH_PE_OMIT:
        return None
    has_data = augmentation.startswith(b"z")
    return _Cie(code, reader.end, code_factor, data_factor, column, signal, encoding, segment_size, has_data)


def _skip_pointer(reader: _Reader, encoding: int, word_size: int, address: int) -> None:
    """encoding: DW_EH_PE_*."""
    if encoding == DW_EH_PE_OMIT:
        return
    if encoding == 0x50:  # aligned
        reader.at += -(address + reader.at) % word_size + word_size
    elif encoding & 0x0F in (1, 9):
        reader.uleb()
    else:
        reader.at += {0: word_size, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}.get(encoding & 0x0F, 0)


def _columns(cies: list[_Cie | None]) -> dict[str, Array]:
    """A row for each CIE; those that cannot be used have rows of zeros."""
    nothing = _Cie(0, 0, 1, 1, 0, False, 0, 0, False)
    rows = [cie or nothing for cie in cies]
    return {
        "code": np.array([cie.code for cie in rows], np.int64),
        "end": np.array([cie.end for cie in rows], np.int64),
        "code_factor": np.array([cie.code_factor for cie in rows], np.uint64),
        "data_factor": np.array([cie.data_factor for cie in rows], np.int64),
        "column": np.array([cie.column for cie in rows], np.int32),
        "signal": np.array([cie.signal for cie in rows], np.uint8),
        "encoding": np.array([cie.encoding for cie in rows], np.int32),
        "segment_size": np.array([cie.segment_size for cie in rows], np.int32),
        "has_data": np.array([cie.has_data for cie in rows], np.uint8),
    }


def _ranges(
    section: Section, data: Array, big: bool, machine: Machine, cies: dict[str, Array], cie: Array, start: Array,
    end: Array,
) -> tuple[Array, Array, Array]:  # fmt: skip
    first, size, code = (np.empty(len(start), t) for t in (np.uint64, np.uint64, np.int64))
    records_kernel.ranges(
        data, big, machine.word_size, section.address, cies["encoding"][cie], cies["segment_size"][cie],
        cies["has_data"][cie], start, end, first, size, code,
    )  # fmt: skip
    return first, size, code


def _run(
    section: Section, data: Array, big: bool, machine: Machine, cies: dict[str, Array], fdes: tuple[Array, ...],
    rules: RuleSets,
) -> tuple[Rows, int]:  # fmt: skip
    """(rows, how many FDEs had instructions that cannot be read)."""
    first_pc, last_pc, code, stop, cie = fdes
    n = len(first_pc)
    longest = int((stop - code).max()) + 3 if n else 0
    width = (machine.n_registers + 1) * (cfi_inlined.MAX_REMEMBERED + 2)
    kinds = np.zeros(width, np.uint8)
    values = np.zeros(width + cfi_inlined.MAX_REMEMBERED + 2, np.int64)
    state = np.zeros(5, np.int64)
    columns = (
        first_pc, last_pc, code, stop, cie.astype(np.int32), cies["code"], cies["end"], cies["code_factor"],
        cies["data_factor"], cies["column"], cies["signal"],
    )  # fmt: skip
    rows: list[Array] = [np.empty(8 * n + longest, np.uint64), np.empty(8 * n + longest, np.int32)]
    n_sets = 1024 + 2 * longest
    sets = {name: np.zeros(n_sets, t) for name, t in RULE_COLUMNS.items()}
    entries = {name: np.zeros(n_sets * machine.n_registers, t) for name, t in ENTRY_COLUMNS.items()}
    first = np.zeros(n_sets + 1, np.int64)
    slots = np.full(_power_of_two(2 * n_sets), -1, np.int32)
    while True:
        arguments: list[Any] = [
            data, big, machine.n_registers, *columns, state, *rows, *sets.values(), first,
            *entries.values(), slots, kinds, values,
        ]  # fmt: skip
        cfi_kernel.run(*arguments)
        if state[cfi_inlined.FDE] == n:
            break
        if state[cfi_inlined.N_ROWS] + longest > len(rows[0]):
            rows = [_longer(column, 2 * len(column) + longest) for column in rows]
        if state[cfi_inlined.N_RULES] + longest >= n_sets:
            # With empty slots, sets that are there may come again: equal sets of two numbers do no harm.
            n_sets = 4 * n_sets
            sets = {name: _longer(column, n_sets) for name, column in sets.items()}
            entries = {name: _longer(column, n_sets * machine.n_registers) for name, column in entries.items()}
            first = _longer(first, n_sets + 1)
            slots = np.full(_power_of_two(2 * n_sets), -1, np.int32)
    n_rows, n_rules, n_entries = state[[cfi_inlined.N_ROWS, cfi_inlined.N_RULES, cfi_inlined.N_ENTRIES]].tolist()
    offset = rules.add(
        {name: column[:n_rules] for name, column in sets.items()},
        {name: column[:n_entries] for name, column in entries.items()},
        first[: n_rules + 1],
        section.data,
    )
    rule = rows[1][:n_rows].copy()
    rule[rule >= 0] += offset
    return Rows(rows[0][:n_rows].copy(), rule), int(state[cfi_inlined.N_BAD])


def _longer(column: Array, n: int) -> Array:
    return np.concatenate((column, np.zeros(n - len(column), column.dtype)))


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
