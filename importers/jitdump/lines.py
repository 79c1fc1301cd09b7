"""Decode: the line tables of DEBUG_INFO records, corrected for what V8 and LLVM write."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.common.report import Problems
from traceferry.files.source import Source
from traceferry.importers.jitdump._records import LineEntries
from traceferry.importers.jitdump.layout import DEBUG_ENTRY_SIZE, V8_PADDING, Header
from traceferry.model import Array

# V8 and LLVM add the size of the ELF header that perf once put before the code.
BIAS = 0x40
# How far from its code an entry can point: BEAM's first ones lie before it. What is further is no address.
REACH = 1 << 30
# V8 frees a file name before it writes it; malloc's links then stand in its first bytes.
OVERWRITTEN = 16
PADDING = 8
# What V8's baseline compiler loads: its tables are those of the bytecode.
BYTECODE_TABLES = "JS:^"
FIRST_ENTRIES = 8  # of a table, which tell a function's file
# In a V8 name: the file before `:line:column`.
NAMED_POSITION = compiled_later(r":\d+:\d+$")


COLUMNS = ("starts", "stops", "offsets", "lines", "columns", "files")
WINDOW = 1 << 25  # bytes of a file that are in memory at once


class Record(NamedTuple):
    """A DEBUG_INFO record and the load it describes: entries in [begin, end)."""

    begin: int
    end: int
    n_entries: int
    address: int
    size: int
    name: str


@dataclass
class Lines:
    """The entries of all records: those of record r are rows starts[r] to stops[r], by rising offset.

    offsets (relative to the code's first byte; the last entry at or before a byte holds), lines and columns: int32, 0
    is unknown; files: int32, an index into file_names. first_files: of each record the first file that has a name.
    """

    starts: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    stops: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    offsets: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    lines: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    columns: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    files: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    file_names: list[str] = field(default_factory=list)
    first_files: list[str] = field(default_factory=list)

    def offsets_of(self, record: int) -> Array:
        return self.offsets[int(self.starts[record]) : int(self.stops[record])]

    def at(self, record: int, offset: int) -> tuple[int, int, int]:
        """Returns (file, line, column) of a byte; (-1, 0, 0) before the first entry."""
        begin, end = int(self.starts[record]), int(self.stops[record])
        # numpy's own would make a copy of all offsets, as 64-bit numbers, for each look-up.
        row = bisect_right(self.offsets, offset, begin, end) - 1
        if row < begin:
            return -1, 0, 0
        return int(self.files[row]), int(self.lines[row]), int(self.columns[row])


def read_lines(source: Source, header: Header, records: Sequence[Record], problems: Problems) -> Lines:
    """Decodes the records' entries. problems: gets what was corrected or dropped."""
    if not records:
        return Lines()
    begins = np.array([record.begin for record in records], np.int64)
    ends = np.array([record.end for record in records], np.int64)
    claimed = np.array([min(record.n_entries, record.end - record.begin) for record in records], np.int64)
    of_bytecode = np.array([_is_of_bytecode(record, header) for record in records], bool)
    claimed[of_bytecode] = np.minimum(claimed[of_bytecode], FIRST_ENTRIES)
    # No more than the bytes can hold.
    counts = np.minimum(claimed, (ends - begins) // (DEBUG_ENTRY_SIZE + 1))
    bases = np.array([record.address for record in records], np.uint64)
    table, index, is_sorted = _entries(source, header.byte_order == ">", begins, ends, counts, bases)
    n_read = len(table.offsets)
    is_file = _repair(source.data, header, records, table, index, claimed, problems)
    is_sorted[table.starts >= n_read] = 0
    table.file_names = [
        name.decode("utf-8", "surrogateescape") if used else ""
        for name, used in zip(index, is_file.tolist(), strict=True)
    ]
    table.first_files = _first_files(table)
    # V8's baseline compiler hands out the bytecode's table for its own: seen by comparing with --print-bytecode.
    dropped = np.flatnonzero(of_bytecode & (counts > 0))
    table.stops[dropped] = table.starts[dropped]
    if len(dropped):
        problems.add("bytecode_lines", len(dropped), records[int(dropped[0])].begin)
    _sort(table, is_sorted)
    _remove_bias(table, header, records, problems)
    return table


def n_whole(source: Source, header: Header, record: Record) -> int:
    """Returns how many of the record's entries are whole, and near its code."""
    most = min(record.n_entries, (record.end - record.begin) // (DEBUG_ENTRY_SIZE + 1))
    begin, end, count = (np.array([number], np.int64) for number in (record.begin, record.end, most))
    base = np.array([record.address], np.uint64)
    return len(LineEntries(source.data, header.byte_order == ">", begin, end, count, base, REACH).offsets)


def same_beginning(table: Lines, record: int) -> int:
    """Returns the last record before it whose first entry is at the same place in the same file; -1: there is none."""
    has_rows = np.flatnonzero(table.stops[:record] > table.starts[:record])
    firsts, first = table.starts[has_rows], int(table.starts[record])
    is_same = np.ones(len(has_rows), bool)
    for column in (table.files, table.lines, table.columns):
        is_same &= column[firsts] == column[first]
    return int(has_rows[is_same][-1]) if is_same.any() else -1


def _entries(
    source: Source, big: bool, begins: Array, ends: Array, counts: Array, bases: Array
) -> tuple[Lines, dict[bytes, int], Array]:
    """Reads a part of the file after the other, of which only what the entries say stays in memory. Returns the
    records' entries, the names of files that these refer to, and whether each record's offsets never fall."""
    parts: list[Lines] = []
    index: dict[bytes, int] = {}
    is_sorted: list[Array] = []
    n_rows = first = 0
    while first < len(begins):
        last = max(int(np.searchsorted(begins, begins[first] + WINDOW)), first + 1)
        these = slice(first, last)
        read = LineEntries(source.data, big, begins[these], ends[these], counts[these], bases[these], REACH)
        spans = zip(read.run_at.tolist(), read.run_size.tolist(), strict=True)
        names = (bytes(source.data[at : at + size]) for at, size in spans)
        file_of_run = np.array([index.setdefault(name, len(index)) for name in names], np.int32)
        files = file_of_run[read.runs] if len(file_of_run) else read.runs
        parts.append(Lines(read.starts + n_rows, read.stops + n_rows, read.offsets, read.lines, read.columns, files))
        is_sorted.append(read.is_sorted)
        source.release(int(begins[first]), int(ends[last - 1]))
        n_rows, first = n_rows + len(read.offsets), last
    starts, stops, offsets, lines, columns, files = (
        np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS
    )
    return Lines(starts, stops, offsets, lines, columns, files), index, np.concatenate(is_sorted)


def _is_of_bytecode(record: Record, header: Header) -> bool:
    return header.pad1 == V8_PADDING and record.name.startswith(BYTECODE_TABLES)


def _first_files(table: Lines) -> list[str]:
    """Returns for each record the first file that has a name; "" where none of the first entries has."""
    names = table.file_names
    found: list[str] = []
    for start, stop in zip(table.starts.tolist(), table.stops.tolist(), strict=True):
        files = table.files[start : min(start + FIRST_ENTRIES, stop)].tolist()
        found.append(next((names[file] for file in files if names[file]), ""))
    return found


# ---------------------------------------------------------------- damaged names


def _repair(
    data: memoryview, header: Header, records: Sequence[Record], table: Lines, index: dict[bytes, int],
    claimed: Array, problems: Problems,
) -> Array:  # fmt: skip
    """Reads records whose walk ended early, or whose names are overwritten, again with the name of the next load; they
    get new rows behind the others. Returns whether each name is one of a row that holds: others are no files."""
    n = len(table.offsets)
    is_v8 = header.pad1 == V8_PADDING
    whole = table.stops - table.starts
    is_odd = whole < claimed
    some = np.flatnonzero(whole)
    overwritten = np.array([_is_overwritten(name) for name in index], bool)
    is_odd[some] |= overwritten[table.files[table.starts[some]]]
    replaced: list[slice] = []
    added: list[tuple[Array, ...]] = []
    for r in np.flatnonzero(is_odd).tolist():
        before = slice(int(table.starts[r]), int(table.stops[r]))
        found = _with_name_of_load(data, header, records[r]) if is_v8 else None
        if found is not None:
            name, rows = found
            end = n + records[r].n_entries
            added.append((*rows, np.full(records[r].n_entries, index.setdefault(name, len(index)), np.int32)))
            table.starts[r], table.stops[r] = n, end
            replaced.append(before)
            n = end
            problems.add("file_name_repaired", 1, records[r].begin)
            continue
        if is_v8 and whole[r] and overwritten[table.files[table.starts[r]]]:
            # Behind the first NUL of such a name, nothing is what it seems.
            table.stops[r] = table.starts[r]
            replaced.append(before)
            reason = "damaged file names"
        elif whole[r] < claimed[r]:
            reason = "incomplete entries"
        else:
            continue
        if not _is_of_bytecode(records[r], header):
            problems.add("line_table_dropped", 1, records[r].begin, reason)
    if not replaced:
        return np.ones(len(index), bool)
    uses = np.bincount(table.files, minlength=len(index))
    for rows_before in replaced:
        uses -= np.bincount(table.files[rows_before], minlength=len(index))
    for *_, files in added:
        uses += np.bincount(files, minlength=len(index))
    columns = (table.offsets, table.lines, table.columns, table.files)
    table.offsets, table.lines, table.columns, table.files = (
        np.concatenate(parts) for parts in zip(columns, *added, strict=True)
    )
    return uses > 0


def _is_overwritten(name: bytes) -> bool:
    head = name[:OVERWRITTEN]
    try:
        return not head.decode().isprintable()
    except UnicodeDecodeError as error:
        # A character may go on behind them.
        is_cut = len(name) > OVERWRITTEN and error.reason == "unexpected end of data"
        return not (is_cut and head[: error.start].decode().isprintable())


def _with_name_of_load(
    data: memoryview, header: Header, record: Record
) -> tuple[bytes, tuple[Array, Array, Array]] | None:
    """Returns (file name, (offsets, lines, columns)) if the entries have the one length that the load's file name gives
    them.

    The name's first bytes are overwritten; the rest must be the load's.
    """
    for name in _files_of(record.name):
        stride = DEBUG_ENTRY_SIZE + len(name) + 1
        size = record.end - record.begin
        if record.n_entries == 0 or not 0 <= size - record.n_entries * stride < PADDING:
            continue
        entries = np.frombuffer(data, np.uint8, record.n_entries * stride, record.begin).reshape(-1, stride)
        tail = np.frombuffer(name[OVERWRITTEN:] + b"\0", np.uint8)
        if np.any(entries[:, stride - len(tail) :] != tail):
            continue
        order = header.byte_order
        addresses = np.ascontiguousarray(entries[:, :8]).view(order + "u8")[:, 0].astype(np.uint64)
        numbers = np.ascontiguousarray(entries[:, 8:16]).view(order + "i4")
        offsets = (addresses - np.uint64(record.address)).view(np.int64)
        if np.any((offsets < 0) | (offsets > record.size + BIAS)):
            continue
        numbers = np.maximum(numbers, 0).astype(np.int32)
        return name, (offsets.astype(np.int32), numbers[:, 0], numbers[:, 1])
    return None


def _files_of(name: str) -> list[bytes]:
    """Returns what the file may be in `JS:*function file:line:column`, where both may have spaces in them."""
    position = NAMED_POSITION.search(name)
    if position is None:
        return []
    words = name[: position.start()].split(" ")
    return [" ".join(words[nth:]).encode() for nth in range(1, min(len(words), 64))]


# ---------------------------------------------------------------- order and bias


def _sort(table: Lines, is_sorted: Array) -> None:
    """Sorts by offset within each record; of entries at one address the last stays last, which is the one that
    holds."""
    for r in np.flatnonzero(is_sorted == 0).tolist():
        rows = slice(int(table.starts[r]), int(table.stops[r]))
        order = np.argsort(table.offsets[rows], kind="stable")
        for column in (table.offsets, table.lines, table.columns, table.files):
            column[rows] = column[rows][order]


def _remove_bias(table: Lines, header: Header, records: Sequence[Record], problems: Problems) -> None:
    """Corrects that V8 and LLVM count from 0x40 bytes before the code: no entry is below that, and some point beyond
    their code."""
    has_rows = np.flatnonzero(table.stops > table.starts)
    if len(has_rows) == 0:
        return
    lowest = table.offsets[table.starts[has_rows]]
    highest = table.offsets[table.stops[has_rows] - 1]
    sizes = np.array([record.size for record in records], np.int64)[has_rows]
    beyond = np.any(highest >= sizes)
    if lowest.min() >= BIAS and (beyond or header.pad1 == V8_PADDING):
        table.offsets -= BIAS
        problems.add("line_bias", len(has_rows), None, f"{len(has_rows)} line tables")
