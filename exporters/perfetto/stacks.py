"""Callstacks, frames, mappings and symbols.

A *run* is what Perfetto calls one frame: a frame and all that is inlined into it. Its address says where it is, its
symbols, which follow at the file's end, name its functions. A frame of which no address is known is a run of its
own, without a mapping.

Every code object is a mapping, so addresses that are used again do not mix. Wherever two runs would share a mapping and
an address nevertheless, the later one has a mapping of its own.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from itertools import starmap
from typing import NamedTuple

import numpy as np

from traceferry.exporters.perfetto import stacks_kernel
from traceferry.exporters.perfetto.packets import (
    Interned,
    Packet,
    Packets,
    filled,
    in_pieces,
    interned_text,
    interned_texts,
)
from traceferry.exporters.perfetto.proto import VARINT, integer, message, text, varint
from traceferry.model import Array, GrowingTable, Table, Trace, distinct

ADDRESS_LIMIT = (1 << 64) - 1
# trace_processor takes 33 bytes for the text of a Breakpad id (src/trace_processor/util/build_id.cc).
MAX_BUILD_ID = 32


class Frame(IntEnum):
    """perfetto.protos.Frame"""

    IID = 1
    FUNCTION_NAME_ID = 2
    MAPPING_ID = 3
    REL_PC = 4
    SOURCE_PATH_IID = 5
    LINE_NUMBER = 6
    KIND = 7


# In front of the values of these fields.
IID, FUNCTION_NAME_ID, MAPPING_ID, REL_PC, SOURCE_PATH_IID, LINE_NUMBER, KIND = (
    varint(field << 3 | VARINT) for field in Frame
)


class Kind(IntEnum):
    """perfetto.protos.Frame.Kind"""

    UNKNOWN = 0
    NATIVE = 1
    KERNEL = 2
    INTERPRETED = 3
    JIT = 4
    GC = 5


class Mapping(IntEnum):
    """perfetto.protos.Mapping"""

    IID = 1
    BUILD_ID = 2
    START = 4
    END = 5
    PATH_STRING_IDS = 7


CATEGORY_KINDS = {"Kernel": Kind.KERNEL, "GC": Kind.GC}
INTERPRETER = "Interpreter"  # a family of tiers
PLAIN_PIECE = 1 << 14
# A callstack lists all of its frames, so that the size of all of them grows with the square of the depth. A deeper one
# keeps its outermost and its innermost frames, with a frame between them that says so.
MAX_DEPTH, INNERMOST = 512, 127
OUTERMOST = MAX_DEPTH - INNERMOST - 1
CUT = "[frames left out]"

Line = tuple[int, int, int]  # a function's name and its file, as indices of strings, -1 is none; line, 0 is unknown


class FrameRow(NamedTuple):
    """Of the table `frames`."""

    func: int
    category: int
    tier: int
    source: int
    line: int
    code: int
    lib: int
    address: int


class Module(NamedTuple):
    """The content of a mapping: a library from 0 on, or a code object from its start."""

    path: str
    build_id: bytes
    start: int
    end: int

    @property
    def name(self) -> str:
        """As trace_processor calls it (profile_packet_utils.cc, MakeMappingName)."""
        return self.path if self.path.startswith("/") else f"/{self.path}"


class Place(NamedTuple):
    """The address of a run. module: None where no address is known."""

    module: Module | None
    rel_pc: int
    kind: Kind
    lines: tuple[Line, ...]


class Runs:
    """The runs of a trace's stacks; stacks and frames may be added while threads are loaded.

    run: for each stack the run that ends with its leaf; above: the stack that ends where this run begins; depth: how
    many runs it has; outer: the stack of its OUTERMOST runs, it itself if it has no more.
    """

    def __init__(self, trace: Trace) -> None:
        self.run = np.empty(0, np.int32)
        self.above = np.empty(0, np.int32)
        self.depth = np.empty(0, np.int32)
        self.outer = np.empty(0, np.int32)
        self.frames: list[tuple[int, ...]] = []  # of each run, the outermost first
        self._trace = trace
        self._places: list[Place | None] = []
        self._outermost: list[Array] = []  # in pieces: of each run its frame, -1 where it has several
        self._plain: tuple[tuple[int, int], Array] | None = None
        self._numbers: dict[tuple[int, ...], int] = {}
        self._alone = np.empty(0, np.int32)  # the run of each frame alone
        self._rows: list[FrameRow] = []
        self._cells: dict[tuple[str, str], list[int]] = {}
        self._kinds: dict[tuple[int, int, bool, bool], Kind] = {}
        self._n_mappings = 0
        self._first_addresses: dict[int, int] = {}
        self._code_modules: dict[int, Module] = {}
        self._lib_modules: dict[int, Module] = {}
        # For each module and address: what is there, the first in the module itself.
        self._at: dict[tuple[Module, int], list[tuple[Line, ...]]] = {}
        self.symbols: dict[Module, dict[int, tuple[Line, ...]]] = {}

    # ------------------------------------------------------------ runs of stacks

    def update(self) -> None:
        """Takes in the stacks that were added since the last time."""
        trace = self._trace
        first = len(self.run)
        if first == len(trace.stacks):
            return
        frames = trace.frames.table()
        depth, address = frames["inline_depth"], frames["address"]
        # Without an address nothing tells that frames are at one address.
        depth = np.where((frames["code"] >= 0) | ((frames["lib"] >= 0) & (address >= 0)), depth, 0)
        prefix, frame = trace.stacks["prefix"][first:], trace.stacks["frame"][first:]
        self._alone = np.concatenate((self._alone, np.full(len(frames) - len(self._alone), -1, np.int32)))
        more = np.empty(len(frame), np.int32)
        self.run, self.above = np.concatenate((self.run, more)), np.concatenate((self.above, more))
        self.depth, self.outer = np.concatenate((self.depth, more)), np.concatenate((self.outer, more))

        level = np.where(prefix >= 0, depth[frame], 0)
        outer = np.flatnonzero(level == 0)
        self._number_alone(_distinct(frame[outer], len(frames)))
        self.run[first + outer] = self._alone[frame[outer]]
        self.above[first + outer] = prefix[outer]
        inner = np.flatnonzero(level)
        # Level by level: the frame that another is inlined into has its run by then.
        inner = inner[np.argsort(level[inner], kind="stable")]
        for rows in np.split(inner, np.flatnonzero(np.diff(level[inner])) + 1) if len(inner) else ():
            below, inlined = self.run[prefix[rows]].astype(np.int64), frame[rows]
            pairs, which = np.unique(below << 32 | inlined, return_inverse=True)
            numbers = [self._number((*self.frames[pair >> 32], pair & 0xFFFF_FFFF)) for pair in pairs.tolist()]
            self.run[first + rows] = np.array(numbers, np.int32)[which]
            self.above[first + rows] = self.above[prefix[rows]]
        stacks_kernel.cut_depths(self.above, first, OUTERMOST, self.depth, self.outer)

    def _number_alone(self, frames: Array) -> None:
        new = frames[self._alone[frames] < 0]
        first = len(self.frames)
        self._alone[new] = np.arange(first, first + len(new))
        self.frames += zip(new.tolist())  # a tuple of each
        self._places += [None] * len(new)
        self._outermost.append(new)

    def _number(self, frames: tuple[int, ...]) -> int:
        number = self._numbers.setdefault(frames, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frames)
            self._places.append(None)
            self._outermost.append(np.array([frames[0] if len(frames) == 1 else -1], np.int32))
        return number

    def plain(self) -> Array:
        """For each run its frame, if it is only one and nothing else can be at its address, else -1."""
        of = (len(self._trace.frames), len(self.frames))
        if self._plain is None or self._plain[0] != of:
            self._outermost = [np.concatenate([np.empty(0, np.int32), *self._outermost])]
            frame = self._outermost[0]
            self._plain = of, np.where((frame >= 0) & np.append(self._is_plain(), False)[frame], frame, -1)
        return self._plain[1]

    def _is_plain(self) -> Array:
        """Of each frame. In a library where something is inlined, or where two frames have one address, none is."""
        frames = self._trace.frames
        lib, address = frames["lib"], frames["address"]
        in_code, in_lib = frames["code"] >= 0, (lib >= 0) & (address >= 0)
        n_libs = len(self._trace.libs)
        rows = np.flatnonzero(in_lib)
        order = rows[np.lexsort((address[rows], lib[rows]))]
        again = (lib[order][1:] == lib[order][:-1]) & (address[order][1:] == address[order][:-1])
        is_simple = np.ones(n_libs + 1, bool)
        is_simple[lib[order][1:][again]] = False
        is_simple[lib[rows][frames["inline_depth"][rows] > 0]] = False
        return ~in_code & (~in_lib | is_simple[lib])

    def of_plain(self, rows: Table) -> tuple[Array, Array, Array, Array]:
        """(name, path, line, kind) of such frames, as columns: see `_line` and `_kind`."""
        trace = self._trace
        funcs = trace.funcs.table()
        func = rows["func"]
        own = np.append(funcs["source"], -1)[func]
        source = np.where(rows["source"] >= 0, rows["source"], own)
        first_line = np.where(rows["source"] >= 0, 0, np.append(funcs["line"], 0)[func])
        line = np.where(rows["line"] != 0, rows["line"], first_line)
        groups = rows["category"].astype(np.int64) << 33 | (rows["tier"] + 1).astype(np.int64) << 1 | (rows["lib"] >= 0)
        distinct, group = np.unique(groups, return_inverse=True)
        kinds = [self._new_kind(g >> 33, (g >> 1 & 0xFFFF_FFFF) - 1, False, bool(g & 1)) for g in distinct.tolist()]
        columns = (
            np.append(funcs["name"], -1)[func],
            np.append(trace.sources["path"], -1)[source],
            np.maximum(line, 0),
            np.array(kinds)[group],
        )
        names, paths, lines, of_kind = (column.astype(np.int32) for column in columns)
        return names, paths, lines, of_kind

    # ------------------------------------------------------------ places of runs

    def place(self, run: int) -> Place:
        place = self._places[run]
        if place is None:
            place = self._places[run] = self._new_place(self.frames[run])
        return place

    def _new_place(self, frames: tuple[int, ...]) -> Place:
        trace = self._trace
        rows = [self._row(frame) for frame in frames]
        outermost = rows[0]
        lines = tuple([self._line(row) for row in rows])
        kind = self._kind(outermost)
        if outermost.code >= 0:
            symbol = self._cell(trace.code, "symbol", outermost.code)
            start = self._cell(trace.symbols, "address", symbol) if symbol >= 0 else 0
            module, rel_pc = self._code_module(outermost.code), max(outermost.address - start, 0)
        elif outermost.lib >= 0 and outermost.address >= 0:
            module, rel_pc = self.lib_module(outermost.lib), outermost.address
        else:
            return Place(None, 0, kind, lines)
        return self._placed(module, rel_pc, kind, lines)

    def _placed(self, module: Module, rel_pc: int, kind: Kind, lines: tuple[Line, ...]) -> Place:
        others = self._at.setdefault((module, rel_pc), [])
        if lines not in others:
            others.append(lines)
        nth = others.index(lines)
        if nth:
            module = module._replace(path=f"{module.path} #{nth + 1}")
        if len(lines) > 1:
            self.symbols.setdefault(module, {})[rel_pc] = lines
        return Place(module, rel_pc, kind, lines)

    def _code_module(self, code: int) -> Module:
        """JIT [tier] name of the dump-number"""
        module = self._code_modules.get(code)
        if module is None:
            trace = self._trace
            tier, symbol = self._cell(trace.code, "tier", code), self._cell(trace.code, "symbol", code)
            lib = self._cell(trace.symbols, "lib", symbol) if symbol >= 0 else -1
            tier_name = f"[{self._text(trace.tiers, 'name', tier)}]" if tier >= 0 else ""
            lib_name = self._text(trace.libs, "name", lib) or "code"
            start = self._first_address(code)
            # Code without an address has an empty range, which overlaps no other.
            size = max(self._cell(trace.code, "size", code), 0) if start else 0
            path = " ".join(filter(None, ("JIT", tier_name, f"{lib_name}-{code}")))
            module = self._code_modules[code] = Module(path, b"", start, min(start + size, ADDRESS_LIMIT))
        return module

    def _first_address(self, code: int) -> int:
        mappings = self._trace.code_mappings
        if self._n_mappings < len(mappings):
            self._n_mappings = len(mappings)
            rows = zip(mappings["code"].tolist(), mappings["address"].tolist(), strict=True)
            # The last to be entered stays.
            self._first_addresses = dict(reversed(list(rows)))
        return self._first_addresses.get(code, 0)

    def lib_module(self, lib: int) -> Module:
        module = self._lib_modules.get(lib)
        if module is None:
            libs = self._trace.libs
            try:
                build_id = bytes.fromhex(self._text(libs, "code_id", lib))
            except ValueError:
                build_id = b""
            build_id = build_id if len(build_id) <= MAX_BUILD_ID else b""
            module = self._lib_modules[lib] = Module(self._text(libs, "name", lib), build_id, 0, 0)
        return module

    def _line(self, row: FrameRow) -> Line:
        """The function's own file and first line, where the frame does not say better."""
        trace = self._trace
        source, line = row.source, row.line
        name = self._cell(trace.funcs, "name", row.func) if row.func >= 0 else -1
        if source < 0 and row.func >= 0:
            source = self._cell(trace.funcs, "source", row.func)
            line = line or self._cell(trace.funcs, "line", row.func)
        path = self._cell(trace.sources, "path", source) if source >= 0 else -1
        return name, path, max(line, 0)

    def _kind(self, row: FrameRow) -> Kind:
        key = row.category, row.tier, row.code >= 0, row.lib >= 0
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = self._new_kind(*key)
        return kind

    def _new_kind(self, category: int, tier: int, has_code: bool, has_lib: bool) -> Kind:
        trace = self._trace
        by_category = CATEGORY_KINDS.get(self._text(trace.categories, "name", category))
        if by_category is not None:
            return by_category
        if self._text(trace.tiers, "family", tier) == INTERPRETER:
            return Kind.INTERPRETED
        if has_code or tier >= 0:
            return Kind.JIT
        return Kind.NATIVE if has_lib else Kind.UNKNOWN

    def _row(self, frame: int) -> FrameRow:
        if frame >= len(self._rows):
            columns = [self._trace.frames[name].tolist() for name in FrameRow._fields]
            self._rows = list(starmap(FrameRow, zip(*columns, strict=True)))
        return self._rows[frame]

    def _cell(self, table: GrowingTable, column: str, row: int) -> int:
        values = self._cells.get((table.spec.name, column))
        if values is None or row >= len(values):
            values = self._cells[table.spec.name, column] = table[column].tolist()
        return values[row]

    def _text(self, table: GrowingTable, column: str, row: int) -> str:
        return self._trace.strings[self._cell(table, column, row)] if row >= 0 else ""


class Callstacks:
    """What one sequence has interned of callstacks, frames and mappings."""

    def __init__(self, trace: Trace, packets: Packets, runs: Runs, sequence: int) -> None:
        self.iids = np.empty(0, np.int32)  # of each stack, 0 is none yet
        self._trace = trace
        self._packets = packets
        self._runs = runs
        self._sequence = sequence
        self._n = 0
        self._n_frames = 0
        self._cut_iid = 0  # of the frame CUT, 0 is none yet
        self._n_cut = 0
        self._frame_iids = np.empty(0, np.int32)  # of each run, 0 is none yet
        self._mapping_iids: dict[Module, int] = {}
        self._sent: dict[int, set[int]] = {field: set() for field in (Interned.FUNCTION_NAMES, Interned.SOURCE_PATHS)}

    def intern(self, stacks: Array) -> None:
        """Gives every one of these stacks its number in `iids`; -1 has none."""
        runs = self._runs
        runs.update()
        self.iids = _longer(self.iids, len(runs.run))
        self._frame_iids = _longer(self._frame_iids, len(runs.frames))
        new = _distinct(stacks[stacks >= 0], len(self.iids))
        new = new[self.iids[new] == 0]
        if len(new) == 0:
            return
        first = self._n + 1
        self._n += len(new)
        self.iids[new] = np.arange(first, first + len(new))

        self._note_cut(int(np.count_nonzero(runs.depth[new] > MAX_DEPTH)))
        new_runs = np.empty(len(runs.frames), np.int32)
        is_plain = runs.plain()
        kernel = partial(
            stacks_kernel.callstacks, new, runs.above, runs.run, runs.depth, runs.outer, MAX_DEPTH, INNERMOST,
            self._cut_iid, self._frame_iids, new_runs, first,
        )  # fmt: skip
        for piece, (n_frames,) in filled(kernel, len(new), self._n_frames):
            self._frames(new_runs[: n_frames - self._n_frames], n_frames, is_plain)
            self._n_frames = n_frames
            self._packets.write(message(Packet.INTERNED_DATA, bytes(piece)), sequence=self._sequence)

    def _note_cut(self, n: int) -> None:
        if n and not self._cut_iid:
            self._n_frames = self._cut_iid = self._n_frames + 1
            entries: list[bytes] = []
            name = self._string(Interned.FUNCTION_NAMES, self._trace.strings.intern(CUT), entries)
            frame = (integer(Frame.IID, self._cut_iid), integer(Frame.FUNCTION_NAME_ID, name))
            self._packets.intern(self._sequence, [*entries, message(Interned.FRAMES, *frame)])
        self._n_cut += n
        where, detail = f"{self._sequence}", f"deeper than {MAX_DEPTH}"
        self._trace.report.note("callstack_cut", self._n_cut, where=where, detail=detail)

    def _frames(self, runs: Array, last_iid: int, plain: Array) -> None:
        """Interns the frames that got the numbers up to last_iid. plain: see `Runs.plain`."""
        iids = np.arange(last_iid + 1 - len(runs), last_iid + 1, dtype=np.int32)
        frames = plain[runs]
        is_plain = frames >= 0
        self._plain_frames(frames[is_plain], iids[is_plain])
        self._placed_frames(runs[~is_plain].tolist(), iids[~is_plain].tolist())

    def _plain_frames(self, frames: Array, iids: Array) -> None:
        rows = self._trace.frames.table().take(frames)
        names, paths, lines, kinds = self._runs.of_plain(rows)
        entries: list[bytes] = []
        lib = np.where(rows["address"] >= 0, rows["lib"], -1)
        mapping_of_lib = np.zeros(len(self._trace.libs) + 1, np.int32)
        for used in distinct(lib[lib >= 0]).tolist():
            mapping_of_lib[used] = self._mapping(self._runs.lib_module(used), entries)
        mappings = mapping_of_lib[lib]
        for field, strings in ((Interned.FUNCTION_NAMES, names), (Interned.SOURCE_PATHS, paths)):
            self._strings(field, _distinct(strings[strings >= 0], len(self._trace.strings)).tolist(), entries)
        self._packets.intern(self._sequence, entries)
        for at in range(0, len(frames), PLAIN_PIECE):
            piece = slice(at, at + PLAIN_PIECE)
            text = bytearray(56 * len(frames[piece]))
            size = stacks_kernel.plain_frames(
                names[piece], paths[piece], lines[piece], kinds[piece], mappings[piece], rows["address"][piece],
                iids[piece], text,
            )  # fmt: skip
            entry = message(Packet.INTERNED_DATA, bytes(memoryview(text)[:size]))
            self._packets.write(entry, sequence=self._sequence)

    def _placed_frames(self, runs: list[int], iids: list[int]) -> None:
        entries: list[bytes] = []
        for iid, run in zip(iids, runs, strict=True):
            place = self._runs.place(run)
            name, path, line = place.lines[0]
            fields = IID + varint(iid)
            if name >= 0:
                fields += FUNCTION_NAME_ID + varint(self._string(Interned.FUNCTION_NAMES, name, entries))
            if place.module is not None:
                fields += MAPPING_ID + varint(self._mapping(place.module, entries)) + REL_PC + varint(place.rel_pc)
            if len(place.lines) == 1 and path >= 0:
                fields += SOURCE_PATH_IID + varint(self._string(Interned.SOURCE_PATHS, path, entries))
                if line:
                    fields += LINE_NUMBER + varint(line)
            if place.kind:
                fields += KIND + varint(place.kind)
            entries.append(message(Interned.FRAMES, fields))
        self._packets.intern(self._sequence, entries)

    def _string(self, field: Interned, index: int, entries: list[bytes]) -> int:
        """Its number is its index + 1."""
        self._strings(field, [index], entries)
        return index + 1

    def _strings(self, field: Interned, indices: list[int], entries: list[bytes]) -> None:
        """Interns those that are not yet."""
        new = [index for index in indices if index not in self._sent[field]]
        self._sent[field].update(new)
        entries += interned_texts(field, [index + 1 for index in new], map(self._trace.strings.__getitem__, new))

    def _mapping(self, module: Module, entries: list[bytes]) -> int:
        iid = self._mapping_iids.get(module)
        if iid is None:
            iid = self._mapping_iids[module] = len(self._mapping_iids) + 1
            entries.append(interned_text(Interned.MAPPING_PATHS, iid, module.path))
            fields = [integer(Mapping.IID, iid), integer(Mapping.START, module.start), integer(Mapping.END, module.end)]
            if module.build_id:
                entries.append(message(Interned.BUILD_IDS, integer(1, iid), message(2, module.build_id)))
                fields.append(integer(Mapping.BUILD_ID, iid))
            entries.append(message(Interned.MAPPINGS, *fields, integer(Mapping.PATH_STRING_IDS, iid)))
        return iid


def _distinct(indices: Array, n: int) -> Array:
    """Those that occur, rising. n: there are no larger ones. Sorting them would take many times as long."""
    occurs = np.zeros(n, bool)
    occurs[indices] = True
    return np.flatnonzero(occurs).astype(np.int32)


def _longer(iids: Array, n: int) -> Array:
    return iids if len(iids) == n else np.concatenate((iids, np.zeros(n - len(iids), np.int32)))


def write_symbols(trace: Trace, packets: Packets, runs: Runs, ts: int) -> None:
    """The functions of each run of more than one. trace_processor wants them after everything that has callstacks: ts
    is behind it."""
    sequence = packets.sequence()
    for module, addresses in runs.symbols.items():
        head = text(1, module.name) + (message(2, module.build_id) if module.build_id else b"")  # path, build_id
        parts: list[bytes] = []
        for rel_pc, lines in addresses.items():
            innermost_first = (message(2, *_line_fields(trace, line)) for line in reversed(lines))
            parts.append(message(3, integer(1, rel_pc), *innermost_first))  # address
        for piece in in_pieces(parts):
            packets.write_at(ts, message(Packet.MODULE_SYMBOLS, head, *piece), sequence=sequence)


def _line_fields(trace: Trace, line: Line) -> list[bytes]:
    """function_name, source_file_name, line_number"""
    name, path, number = line
    fields = [text(1, trace.strings[name])]
    if path >= 0:
        fields += [text(2, trace.strings[path]), integer(3, number)]
    return fields
