"""Decode: the line programs of .debug_line (DWARF 5, section 6.2) as sequences of rows."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from traceferry.common.errors import FormatError
from traceferry.symbolication.dwarf.forms import ROW_EFFORT, Coding, Sections, number_at, sleb_at, text_at, uleb_at
from traceferry.symbolication.dwarf.units import length_at

# How many bytes of paths count as one byte of the sections.
PATH_BYTES = 16

# ---------------------------------------------------------------- layout

LNS_COPY = 1
LNS_ADVANCE_PC = 2
LNS_ADVANCE_LINE = 3
LNS_SET_FILE = 4
LNS_CONST_ADD_PC = 8
LNS_FIXED_ADVANCE_PC = 9
LNE_END_SEQUENCE = 1
LNE_SET_ADDRESS = 2
LNE_DEFINE_FILE = 3

LNCT_PATH = 1
LNCT_DIRECTORY_INDEX = 2

ADDRESS_MASK = (1 << 64) - 1
LINE_MASK = (1 << 32) - 1

Row = tuple[int, int, int]


@dataclass
class Sequence:
    """Rows of rising addresses, none twice. end: the first address behind them."""

    addresses: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    end: int = 0


# ---------------------------------------------------------------- decode


@dataclass
class LineTable:
    """files: paths, by number; sequences: by their ends; damage: why they are not all."""

    sections: Sections
    files: list[str] = field(default_factory=list)
    sequences: list[Sequence] = field(default_factory=list)
    damage: FormatError | None = None

    @cached_property
    def _ends(self) -> list[int]:
        return [sequence.end for sequence in self.sequences]

    def file(self, number: int | None) -> str:
        """Returns the path of a file; "" where there is none of this number."""
        return self.files[number] if number is not None and 0 <= number < len(self.files) else ""

    def rows(self, start: int, end: int) -> list[Row]:
        """Returns (address, file number, line) of [start, end): from `start` on, each until the next. [] where no
        sequence holds `start`."""
        rows: list[Row] = []
        nth = bisect_right(self._ends, start)
        while nth < len(self.sequences) and self.sequences[nth].addresses[0] < end:
            sequence = self.sequences[nth]
            if not rows and sequence.addresses[0] > start:
                break
            first = max(bisect_right(sequence.addresses, start) - 1, 0)
            last = bisect_right(sequence.addresses, end - 1)
            self.sections.spend(ROW_EFFORT * (last - first))
            for row in range(first, last):
                address = max(sequence.addresses[row], start)
                if rows and address < rows[-1][0]:
                    return rows
                rows.append((address, sequence.files[row], sequence.lines[row]))
            nth += 1
        return rows


def line_table_at(sections: Sections, at: int, comp_dir: str) -> LineTable:
    """Returns the program at `at` in .debug_line. Raises FormatError if its header is invalid."""
    program = _Program(sections, at, comp_dir)
    table = LineTable(sections, program.files)
    try:
        program.run()
    except FormatError as error:
        table.damage = FormatError(f"a line program is damaged: {error}", at, ".debug_line")
    table.sequences = sorted((s for s in program.sequences if s.addresses[0] < s.end), key=lambda s: s.end)
    return table


class _Program:
    """The program at `at` in .debug_line, of which the header is read. Relative paths begin in comp_dir.

    files: of each number its path, "" where there is none; sequences: those that `run` has made."""

    def __init__(self, sections: Sections, at: int, comp_dir: str) -> None:
        data, order = sections.line, sections.order
        self._sections = sections
        self._comp_dir = comp_dir
        self.sequences: list[Sequence] = []
        length, at, offset_size = length_at(data, at, order)
        sections.spend(length)
        self._end = at + length
        version = number_at(data, at, 2, order)
        if not 2 <= version <= 5:
            raise FormatError(f"line table version {version} is not supported", at, ".debug_line")
        at += 2
        address_size = 8
        if version >= 5:
            address_size = number_at(data, at, 1, order)
            at += 2
        self._coding = Coding(data, order, version, address_size, offset_size)
        self._begin = at + offset_size + number_at(data, at, offset_size, order)
        if not at < self._begin <= self._end:
            raise FormatError("the header ends beyond its program", at, ".debug_line")
        at += offset_size
        self._instruction_size = number_at(data, at, 1, order)
        at += 3 if version >= 4 else 2
        self._line_base = (number_at(data, at, 1, order) ^ 0x80) - 0x80
        self._line_range, opcode_base = number_at(data, at + 1, 1, order), number_at(data, at + 2, 1, order)
        # By opcode, from 1 on.
        self._opcode_lengths = bytes(data.bytes[at + 3 : at + 2 + opcode_base])
        if self._line_range == 0 or opcode_base == 0 or len(self._opcode_lengths) < opcode_base - 1:
            raise FormatError("the special opcodes are invalid", at, ".debug_line")
        at += 2 + opcode_base
        self.files = self._tables_at(at) if version >= 5 else self._lists_at(at)

    def run(self) -> None:
        """Makes the sequences. Every opcode takes a byte at least, so it ends."""
        section, order = self._coding.data, self._coding.order
        data = section.bytes
        step, line_base, line_range = self._instruction_size, self._line_base, self._line_range
        opcode_base = len(self._opcode_lengths) + 1
        const_add = (255 - opcode_base) // line_range * step
        at, end = self._begin, self._end
        address, file, line = 0, 1, 1
        sequence = Sequence()

        def add_row() -> None:
            addresses = sequence.addresses
            if addresses and address <= addresses[-1]:
                if address == addresses[-1]:
                    sequence.files[-1] = file
                    sequence.lines[-1] = line & LINE_MASK
                return
            addresses.append(address)
            sequence.files.append(file)
            sequence.lines.append(line & LINE_MASK)

        while at < end:
            opcode = data[at]
            at += 1
            if opcode >= opcode_base:
                advance, change = divmod(opcode - opcode_base, line_range)
                address = (address + advance * step) & ADDRESS_MASK
                line += line_base + change
                add_row()
            elif opcode == 0:
                length, at = uleb_at(section, at)
                if not 0 < length <= end - at:
                    raise FormatError("an extended opcode ends beyond the program", at, section.name)
                if data[at] == LNE_END_SEQUENCE:
                    if sequence.addresses:
                        sequence.end = address
                        self.sequences.append(sequence)
                    sequence = Sequence()
                    address, file, line = 0, 1, 1
                elif data[at] == LNE_SET_ADDRESS:
                    address = int.from_bytes(data[at + 1 : at + length], order) & ADDRESS_MASK
                elif data[at] == LNE_DEFINE_FILE:
                    self.files.append(text_at(section, at + 1)[0])
                at += length
            elif opcode == LNS_COPY:
                add_row()
            elif opcode == LNS_ADVANCE_PC:
                advance, at = uleb_at(section, at)
                address = (address + advance * step) & ADDRESS_MASK
            elif opcode == LNS_ADVANCE_LINE:
                change, at = sleb_at(section, at)
                line += change
            elif opcode == LNS_SET_FILE:
                file, at = uleb_at(section, at)
            elif opcode == LNS_CONST_ADD_PC:
                address = (address + const_add) & ADDRESS_MASK
            elif opcode == LNS_FIXED_ADVANCE_PC:
                address = (address + number_at(section, at, 2, order)) & ADDRESS_MASK
                at += 2
            else:
                for _ in range(self._opcode_lengths[opcode - 1]):
                    _, at = uleb_at(section, at)

    def _lists_at(self, at: int) -> list[str]:
        """Returns directories and files of versions 2 to 4: both lists begin with 1; directory 0 is comp_dir."""
        data = self._coding.data
        directories, files = [""], [""]
        name, at = text_at(data, at)
        while name:
            directories.append(name)
            name, at = text_at(data, at)
        name, at = text_at(data, at)
        while name:
            directory, at = uleb_at(data, at)
            for _ in ("time", "size"):
                _, at = uleb_at(data, at)
            files.append(self._path(directories, directory, name))
            name, at = text_at(data, at)
        return files

    def _tables_at(self, at: int) -> list[str]:
        """Returns directories and files of version 5: directory 0 is comp_dir itself, file 0 the unit's own."""
        rows, at = self._table_at(at)
        directories = [str(row.get(LNCT_PATH, "")) for row in rows]
        rows, at = self._table_at(at)
        return [
            self._path(directories, int(row.get(LNCT_DIRECTORY_INDEX, 0)), str(row.get(LNCT_PATH, ""))) for row in rows
        ]

    def _table_at(self, at: int) -> tuple[list[dict[int, Any]], int]:
        data = self._coding.data
        n_formats = number_at(data, at, 1, self._coding.order)
        at += 1
        formats = []
        for _ in range(n_formats):
            content, at = uleb_at(data, at)
            form, at = uleb_at(data, at)
            formats.append((content, form))
        count, at = uleb_at(data, at)
        if count > (len(data) - at if formats else 0):
            raise FormatError(f"{count} names do not fit into the header", at, ".debug_line")
        rows = []
        for _ in range(count):
            self._sections.spend(len(formats))
            row = {}
            for content, form in formats:
                meaning, value, at = self._coding.value_at(form, at)
                row[content] = self._sections.text(meaning, value) if meaning in self._sections.texts else value
            rows.append(row)
        return rows, at

    def _path(self, directories: list[str], directory: int, name: str) -> str:
        folder = directories[directory] if directory < len(directories) else ""
        is_in_folder_0 = self._coding.version >= 5 and directory == 0
        path = whole_path("" if is_in_folder_0 else self._comp_dir, folder, name)
        # A folder is written once, and is in the path of each of its files.
        self._sections.spend(len(path) // PATH_BYTES)
        return path


def whole_path(*parts: str) -> str:
    """Returns the path of a file, as the names of folders and its own say it: nothing is resolved."""
    path = ""
    for part in parts:
        if part.startswith("/") or not path:
            path = part
        elif part:
            path = f"{path.rstrip('/')}/{part}"
    return path
