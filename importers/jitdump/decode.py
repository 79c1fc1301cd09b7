"""Decode: a dump's bytes become loads, moves, line tables, inline tables, tiers and sources, in the specification's
terms."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.common.report import Problems
from traceferry.files.source import Source
from traceferry.importers.jitdump import _records
from traceferry.importers.jitdump.inlines import (
    InlineTable,
    Stack,
    is_variant_b,
    parse_a,
    parse_b,
    parse_c,
    parse_record_c,
)
from traceferry.importers.jitdump.layout import RECORD_HEADER_SIZE, Header, Id, Structs, read_header, structs
from traceferry.importers.jitdump.lines import BIAS, REACH, Lines, Record, n_whole, read_lines, same_beginning
from traceferry.importers.jitdump.unwinding import of_batch, unwinding_of_load
from traceferry.importers.jitdump.waiting import Waiting
from traceferry.model import Array, CodeUnwinding
from traceferry.symbolication.jit_names import without_tier

PIECE = 1 << 14
MAX_CUT = 1 << 20  # of a record whose size is damaged, all that follows seems to be left
UNNAMED = (1 << 64) - 1  # the index of code whose load was not written; no move names it
MAX_TS = 1 << 62
# Behind damage: how long the name of code may be with which records go on, and what is in front of it.
MAX_NAME, MAX_DESCRIPTION = 1 << 16, 1 << 16
DESCRIPTIONS = {Id.DEBUG_INFO, Id.UNWINDING_INFO, Id.INLINE_INFO, Id.DEBUG_INFO2, Id.TIER}


@dataclass(slots=True)
class Load:
    """A CODE_LOAD record. nth: its record's number in the file; pid: of the process that wrote it, which may be a fork;
    code_at: the offset of its bytes; tier: index into `Dump.tiers`, -1 is none; lines: index into the dump's line
    tables, -1 is none."""

    nth: int
    at: int
    ts: int
    pid: int
    tid: int
    address: int
    size: int
    index: int
    name: str
    code_at: int
    tier: int = -1
    lines: int = -1
    inlines: InlineTable | None = None


@dataclass(frozen=True, slots=True)
class Move:
    at: int
    ts: int
    index: int
    old_address: int
    new_address: int


class TierRecord(NamedTuple):
    tier_id: int
    color_index: int
    name: str


class EmbeddedSource(NamedTuple):
    """nth: its record's number in the file."""

    nth: int
    path: str
    text: str


@dataclass
class Dump:
    """A decoded jitdump. end_ts: the latest time stamp of a record; unwinding_at: where a load's UNWINDING_INFO is, by
    the load's number; unfinished: the code that a cut last record is about, None where it does not tell."""

    source: Source
    header: Header
    loads: list[Load] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    tiers: list[TierRecord] = field(default_factory=list)
    sources: list[EmbeddedSource] = field(default_factory=list)
    unwinding_at: dict[int, int] = field(default_factory=dict)
    lines: Lines = field(default_factory=Lines)
    unfinished: Load | None = None
    n_records: int = 0
    problems: Problems = field(default_factory=Problems)

    @property
    def name(self) -> str:
        return self.source.name

    def unwinding_of(self, load: Load) -> CodeUnwinding | None:
        """Returns the load's call-frame information, if there is any."""
        layout, at = structs(self.header.byte_order), self.unwinding_at.get(load.nth)
        if at is not None:
            return unwinding_of_load(self.source.data, layout, at, load.address, load.size)
        nth = bisect_left(self._unwinding, load.at) - 1
        return of_batch(self.source.data, layout, self._unwinding[nth], load.address) if nth >= 0 else None

    @cached_property
    def _unwinding(self) -> list[int]:
        """Returns where UNWINDING_INFO is, rising."""
        return sorted(self.unwinding_at.values())


def read_dump(source: Source) -> Dump:
    """Raises FormatError for an invalid header. Damage is skipped up to the next LOAD. A partial last record ends the
    dump: all before it counts; what is left of it is `unfinished`."""
    header = checked_header(source)
    dump = Dump(source, header)
    _Decoder(dump, structs(header.byte_order)).run()
    return dump


def checked_header(source: Source) -> Header:
    header = read_header(source.data)
    if header is None:
        message = "not a supported jitdump: expected magic JiTD and version 1 or 2"
        raise FormatError(message, 0, "header", path=source.path)
    return header


def scan(data: memoryview, header: Header, start: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yields pieces of (id uint32, offset int64, size uint32, time stamp uint64) of the whole records from `start`
    on."""
    at = start
    while True:
        ids, offsets, sizes, timestamps = _records.scan(data, at, header.byte_order == ">", PIECE)
        if not len(ids):
            return
        yield ids, offsets, sizes, timestamps
        at = int(offsets[-1]) + int(sizes[-1])


def next_whole(data: memoryview, header: Header, start: int) -> int:
    """Returns where records go on behind one at `start` that is damaged: at a LOAD of the header's process, or at what
    describes this LOAD in front of it. -1 where nothing follows.

    The numbers of a LOAD hold for one another, so that machine code and texts are not taken for one: its name ends
    where its code begins.
    """
    layout = structs(header.byte_order)
    pid = layout.word.pack(header.pid)
    for found in re.finditer(re.escape(pid), data[start + RECORD_HEADER_SIZE :]) if header.pid else ():
        at = start + found.start()
        if _is_load(data, layout, at):
            return _with_description(data, layout, start, at)
    return -1


def _is_load(data: memoryview, layout: Structs, at: int) -> bool:
    """Whether a whole LOAD is here."""
    record_id, size, _ = layout.record.unpack_from(data, at)
    name_at = at + RECORD_HEADER_SIZE + layout.load.size
    if record_id != Id.LOAD or name_at >= at + size or at + size > len(data):
        return False
    *_, code_size, _ = layout.load.unpack_from(data, at + RECORD_HEADER_SIZE)
    name_size = int(at + size - name_at - code_size - 1)
    return 0 < name_size <= MAX_NAME and bytes(data[name_at : name_at + name_size + 1]).find(0) == name_size


def _with_description(data: memoryview, layout: Structs, start: int, load_at: int) -> int:
    """Returns where the records begin that describe a LOAD, behind `start`: each ends where the next begins."""
    first = load_at
    for at in range(load_at - RECORD_HEADER_SIZE, max(start, load_at - MAX_DESCRIPTION), -1):
        record_id, size, _ = layout.record.unpack_from(data, at)
        if record_id in DESCRIPTIONS and at + size == first:
            first = at
    return first


def source_parts(record: memoryview, layout: Structs) -> tuple[bytes, bytes] | None:
    """Returns (path, text) of an EMBEDDED_SOURCE_FILE in either layout, or None."""
    payload = bytes(record)
    path_size, text_size = layout.pair32.unpack_from(payload) if len(payload) >= 8 else (0, 0)
    padding = len(payload) - 8 - path_size - text_size
    if path_size and 0 <= padding < 4 and not any(payload[len(payload) - padding :]):
        return payload[8 : 8 + path_size], payload[8 + path_size : 8 + path_size + text_size]
    path, nul, text = payload.partition(b"\0")
    return (path, text) if path and nul else None


class _Decoder:
    """Follows the records in their order. What stands before a load and describes it waits: in a `Waiting` for the load
    of its address, in `_pending_*` for the next one."""

    def __init__(self, dump: Dump, layout: Structs) -> None:
        self._dump = dump
        self._data = dump.source.data
        self._layout = layout
        self._nth = -1
        self._lines: Waiting[tuple[int, int, int]] = Waiting()
        self._inlines_b: Waiting[memoryview] = Waiting()
        self._pending_inlines: memoryview | None = None
        self._pending_stacks: list[tuple[int, Stack]] = []
        self._pending_tier = -1
        self._pending_unwinding = -1
        self._line_records: list[Record] = []
        self._note = dump.problems.add
        # The name of each kind of record, how many bytes it has at least, and what reads them.
        self._readers: dict[int, tuple[str, int, Callable[[memoryview, int, int], None]]] = {
            Id.MOVE: ("CODE_MOVE", layout.move.size, self._move),
            Id.DEBUG_INFO: ("CODE_DEBUG_INFO", layout.pair64.size, self._debug_info),
            Id.INLINE_INFO: ("", 0, self._inline_info),
            Id.DEBUG_INFO2: ("", 0, self._debug_info2),
            Id.TIER: ("JIT_TIER", layout.pair32.size, self._tier_or_variant_b),
            Id.EMBEDDED_SOURCE_FILE: ("", 0, self._embedded_source),
        }

    def run(self) -> None:
        dump = self._dump
        at = self._whole_records(dump.header.total_size)
        while (following := next_whole(self._data, dump.header, at)) >= 0:
            self._note("dump_damaged", 1, at, f"{following - at} bytes")
            self._forget()
            self._pending_stacks = []
            self._lines.take_all()
            self._inlines_b.take_all()
            self._pending_unwinding = -1
            at = self._whole_records(following)
        if at != len(self._data):
            self._note("dump_unfinished", 1, at)
            self._cut_record(at)
            self._load_of_lines()
        for record_at in sorted(self._lines.take_all() + self._inlines_b.take_all()):
            self._note("lines_without_code", 1, record_at)
        dump.lines = read_lines(dump.source, dump.header, self._line_records, dump.problems)
        self._name_by_lines()

    def _whole_records(self, start: int) -> int:
        """Reads records as long as they are whole. Returns where they end."""
        at = start
        for ids, offsets, sizes, timestamps in scan(self._data, self._dump.header, start):
            ends = offsets + sizes
            at = int(ends[-1])
            self._piece(ids, offsets, ends, np.minimum(timestamps, MAX_TS).astype(np.int64))
            self._dump.n_records += len(ids)
            self._dump.source.release(int(offsets[0]), at)
        return at

    # ------------------------------------------------------------ the records

    def _piece(self, ids: Array, begins: Array, ends: Array, timestamps: Array) -> None:
        """Reads some records in their order: loads together, what describes them is read one by one."""
        chosen = np.flatnonzero((ids != Id.UNWINDING_INFO) & (ids != Id.CLOSE))
        rows = (column[chosen].tolist() for column in (ids, begins, ends, timestamps))
        self._note_unwinding(ids, begins)
        loads = self._loads(*(column[ids == Id.LOAD] for column in (begins, ends)))
        for nth, record_id, begin, end, ts in zip((chosen + self._dump.n_records).tolist(), *rows, strict=True):
            if record_id == Id.LOAD:
                self._load(nth, begin, ts, *next(loads))
                continue
            self._nth = nth
            if record_id not in self._readers:
                self._note("unknown_record", 1, begin, f"id {record_id}")
                continue
            name, size, read = self._readers[record_id]
            payload = self._data[begin + RECORD_HEADER_SIZE : end]
            if len(payload) < size:
                self._note("bad_record", 1, begin, name)
            else:
                read(payload, begin, ts)

    def _note_unwinding(self, ids: Array, begins: Array) -> None:
        """Notes where UNWINDING_INFO is: it is of the next load."""
        loads, infos = np.flatnonzero(ids == Id.LOAD), np.flatnonzero(ids == Id.UNWINDING_INFO)
        if self._pending_unwinding >= 0 and len(loads):
            self._dump.unwinding_at[self._dump.n_records + int(loads[0])] = self._pending_unwinding
            self._pending_unwinding = -1
        following = np.searchsorted(loads, infos)
        placed = following < len(loads)
        numbers = (loads[following[placed]] + self._dump.n_records).tolist()
        self._dump.unwinding_at.update(zip(numbers, begins[infos[placed]].tolist(), strict=True))
        if len(infos) and not placed[-1]:
            self._pending_unwinding = int(begins[infos[-1]])

    def _loads(self, begins: Array, ends: Array) -> Iterator[tuple[int, int, int, int, int, int, int]]:
        """Yields (pid, tid, address, size, index, size of the name, offset of the code) of each."""
        fields = _records.loads(self._data, self._dump.header.byte_order == ">", begins, ends)
        return zip(*(column.tolist() for column in fields), strict=True)

    def _load(
        self, nth: int, begin: int, ts: int, pid: int, tid: int, address: int, size: int, index: int, name_size: int,
        code_at: int,
    ) -> None:  # fmt: skip
        if name_size < 0 or size >= 1 << 31:
            self._note("bad_record", 1, begin, "CODE_LOAD" if name_size < 0 else f"CODE_LOAD of {size} bytes")
            self._forget()
            self._lines.take(address, size)
            self._inlines_b.take(address, size)
            return
        at = begin + RECORD_HEADER_SIZE + self._layout.load.size
        name = str(self._data[at : at + name_size], "utf-8", "replace")
        load = Load(nth, begin, ts, pid, tid, address, size, index, name, code_at)
        self._attach(load)
        self._dump.loads.append(load)

    def _attach(self, load: Load) -> None:
        """Gives the load what described it, or the next one."""
        lines = self._lines.take(load.address, load.size)
        if lines is not None:
            load.lines = len(self._line_records)
            self._line_records.append(Record(*lines, load.address, load.size, load.name))
        if self._pending_tier >= 0 or self._pending_inlines is not None or self._pending_stacks or self._inlines_b:
            load.tier = self._pending_tier
            self._attach_inlines(load)
            self._forget()

    def _attach_inlines(self, load: Load) -> None:
        of_a, of_b, of_c = self._pending_inlines, self._inlines_b.take(load.address, load.size), self._stacks_of(load)
        variant = ""
        if of_a is not None:
            load.inlines, variant = parse_a(of_a, self._layout), "A"
        elif of_b is not None:
            load.inlines, variant = parse_b(of_b, self._layout), "B"
        elif of_c:
            load.inlines = parse_c(of_c, load.address)
        if load.inlines is None and variant:
            self._note("line_table_dropped", 1, load.at, f"variant {variant} of the inline records")
        if load.inlines is not None and load.inlines.n_cycles:
            self._note("inline_cycle", load.inlines.n_cycles, load.at)

    def _stacks_of(self, load: Load) -> list[tuple[int, Stack]]:
        """Takes the stacks of variant C that begin in the load's code, or a little before it."""
        begin, end = load.address - BIAS, load.address + max(load.size, 1)
        of_load = [one for one in self._pending_stacks if begin <= one[0] < end]
        self._pending_stacks = [one for one in self._pending_stacks if not begin <= one[0] < end]
        return of_load

    def _forget(self) -> None:
        self._pending_inlines = None
        self._pending_tier = -1

    # ------------------------------------------------------------ a program that was killed

    def _cut_record(self, begin: int) -> None:
        """Reads what is left of the last record: a load if its name is whole, and lines. Its code was compiled last: it
        is often the hottest."""
        left = self._data[begin : begin + MAX_CUT]
        if len(left) < RECORD_HEADER_SIZE:
            return
        record_id, size, ts = self._layout.record.unpack_from(left)
        if size <= len(self._data) - begin:
            return  # smaller than its header
        payload = left[RECORD_HEADER_SIZE:]
        if record_id == Id.DEBUG_INFO and len(payload) >= self._layout.pair64.size:
            self._debug_info(payload, begin, ts)
        elif record_id == Id.LOAD and len(payload) >= self._layout.load.size:
            name_size = bytes(payload[self._layout.load.size :]).find(0)
            if name_size >= 0:
                pid, tid, _, address, size, index = self._layout.load.unpack_from(payload)
                n_loads = len(self._dump.loads)
                self._load(self._dump.n_records, begin, min(ts, MAX_TS), pid, tid, address, size, index, name_size, -1)
                self._dump.unfinished = self._dump.loads.pop() if len(self._dump.loads) > n_loads else None

    def _load_of_lines(self) -> None:
        """Makes a load for lines whose own load was not written: they tell where its code begins."""
        left = self._lines.take_last()
        if left is None:
            return
        begin, end, n_entries = left
        record_at = begin - self._layout.pair64.size - RECORD_HEADER_SIZE
        _, _, ts = self._layout.record.unpack_from(self._data, record_at)
        address, _ = self._layout.pair64.unpack_from(self._data, record_at + RECORD_HEADER_SIZE)
        dump = self._dump
        n_entries = n_whole(dump.source, dump.header, Record(begin, end, n_entries, address, REACH, ""))
        if n_entries:
            nth, pid, tid = dump.n_records, dump.header.pid, dump.loads[-1].tid if dump.loads else dump.header.pid
            lines = len(self._line_records)
            dump.unfinished = Load(nth, record_at, min(ts, MAX_TS), pid, tid, address, 0, UNNAMED, "", -1, lines=lines)
            self._line_records.append(Record(begin, end, n_entries, address, REACH, ""))

    def _name_by_lines(self) -> None:
        """Its code goes as far as its lines, at least, and is of the function whose earlier code begins at the same
        place. The lines themselves may be those of the bytecode: its name would tell."""
        load, lines = self._dump.unfinished, self._dump.lines
        if load is None or load.index != UNNAMED or load.name or load.lines < 0:
            return
        offsets = lines.offsets_of(load.lines)
        if not len(offsets):
            self._dump.unfinished = None
            return
        file, line, _ = lines.at(load.lines, int(offsets[0]))
        twin = same_beginning(lines, load.lines)
        load.name = without_tier(self._line_records[twin].name) if twin >= 0 else f"{lines.file_names[file]}:{line}"
        load.size = max(int(offsets[-1]) + 1, 0)
        load.lines = -1

    # ------------------------------------------------------------ other records

    def _move(self, payload: memoryview, begin: int, ts: int) -> None:
        *_, old, new, _, index = self._layout.move.unpack_from(payload)
        self._dump.moves.append(Move(begin, ts, index, old, new))

    def _debug_info(self, payload: memoryview, begin: int, _: int) -> None:
        address, n_entries = self._layout.pair64.unpack_from(payload)
        at = begin + RECORD_HEADER_SIZE
        self._lines.add(address, begin, (at + self._layout.pair64.size, at + len(payload), n_entries))

    def _debug_info2(self, payload: memoryview, begin: int, _: int) -> None:
        self._pending_inlines = payload

    def _tier_or_variant_b(self, payload: memoryview, begin: int, _: int) -> None:
        if is_variant_b(payload, self._layout):
            address = self._layout.info2_b.unpack_from(payload)[0]
            self._inlines_b.add(address, begin, payload)
            return
        tier_id, color_index = self._layout.pair32.unpack_from(payload)
        name = bytes(payload[8:]).split(b"\0", 1)[0].decode("utf-8", "replace")
        self._pending_tier = len(self._dump.tiers)
        self._dump.tiers.append(TierRecord(tier_id, color_index, name))

    def _inline_info(self, payload: memoryview, begin: int, _: int) -> None:
        parsed = parse_record_c(payload, self._layout)
        if parsed is None:
            self._note("unknown_record", 1, begin, "id 5, an unsupported draft")
        else:
            self._pending_stacks.append(parsed)

    def _embedded_source(self, payload: memoryview, begin: int, _: int) -> None:
        parts = source_parts(payload, self._layout)
        if parts is None:
            self._note("bad_record", 1, begin, "EMBEDDED_SOURCE_FILE")
            return
        path, text = parts[0].decode("utf-8", "surrogateescape"), parts[1].decode("utf-8", "replace")
        self._dump.sources.append(EmbeddedSource(self._nth, path, text))
