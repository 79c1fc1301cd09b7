"""Physical frames: what Perfetto calls a frame is one of the trace's frames with all that is inlined into it.

Its address says where it is; its symbols, which follow at the file's end, name its functions. A frame of which no
address is known is a physical frame of its own, without a mapping.

Every code object is a mapping, so addresses that are used again do not mix. Wherever two physical frames would share a
mapping and an address nevertheless, the later one has a mapping of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from traceferry.exporters.perfetto import fields as pb
from traceferry.exporters.perfetto._stacks import PhysicalStacks
from traceferry.model import Array, Table, Trace

ADDRESS_LIMIT = (1 << 64) - 1
# trace_processor takes 33 bytes for the text of a Breakpad id (src/trace_processor/util/build_id.cc).
MAX_BUILD_ID = 32
CATEGORY_KINDS = {"Kernel": pb.FrameKind.KIND_KERNEL, "GC": pb.FrameKind.KIND_GC}
INTERPRETER = "Interpreter"  # a family of tiers

Line = tuple[int, int, int]  # a function's name and its file, as indices of strings, -1 is none; line, 0 is unknown


class Module(NamedTuple):
    """The content of a mapping: a library from 0 on, or a code object from its start."""

    path: str
    build_id: bytes
    start: int
    end: int

    @property
    def name(self) -> str:
        """Returns what trace_processor calls it (profile_packet_utils.cc, MakeMappingName)."""
        return self.path if self.path.startswith("/") else f"/{self.path}"


class Location(NamedTuple):
    """The address of a physical frame, and the lines of its frames, the outermost first. module: None: it has none."""

    module: Module | None
    rel_pc: int
    kind: int
    lines: tuple[Line, ...]


class FrameColumns:
    """The trace's frames as Perfetto gets them, in columns.

    name, path, line: see `Line`; kind: a FrameKind; code; lib, -1 where the address is not known;
    rel_pc: relative to the start of the code object, or else of the library.
    """

    def __init__(self, trace: Trace) -> None:
        frames, funcs = trace.frames, trace.funcs
        func, has_source = frames["func"], frames["source"] >= 0
        # Index -1, none, finds the last element. The function's own file and first line, where a frame knows no better.
        source = np.where(has_source, frames["source"], np.append(funcs["source"], -1)[func])
        first_line = np.where(has_source, 0, np.append(funcs["line"], 0)[func])
        self._trace = trace
        self.n = len(frames)
        self.name = _int32(np.append(funcs["name"], -1)[func])
        self.path = _int32(np.append(trace.sources["path"], -1)[source])
        self.line = _int32(np.maximum(np.where(frames["line"] != 0, frames["line"], first_line), 0))
        self.kind = _kinds(trace)
        self.code = frames["code"]
        self.lib = _int32(np.where(frames["address"] >= 0, frames["lib"], -1))
        symbol = np.append(trace.code["symbol"], -1)[self.code]
        start = np.append(trace.symbols["address"], 0)[symbol]
        self._address = frames["address"]
        self.rel_pc = np.where(self.code >= 0, np.maximum(self._address - start, 0), self._address)
        # Without an address nothing tells that frames are at one address.
        self.inline_depth = _int32(np.where((self.code >= 0) | (self.lib >= 0), frames["inline_depth"], 0))

    @cached_property
    def lines(self) -> list[Line]:
        return list(zip(self.name.tolist(), self.path.tolist(), self.line.tolist(), strict=True))

    @cached_property
    def addresses(self) -> list[tuple[int, int, int, int]]:
        """Returns code, lib, rel_pc and kind of each frame."""
        return list(zip(*(column.tolist() for column in (self.code, self.lib, self.rel_pc, self.kind)), strict=True))

    @cached_property
    def code_objects(self) -> list[tuple[int, int, int, int]]:
        """Returns tier, library, size and first address (0 is none) of each code object."""
        code, mappings = self._trace.code, self._trace.code_mappings
        address = np.zeros(len(code), np.uint64)
        # Of several the last to be assigned stays.
        address[mappings["code"][::-1]] = mappings["address"][::-1]
        lib = np.append(self._trace.symbols["lib"], -1)[code["symbol"]]
        return list(zip(*(column.tolist() for column in (code["tier"], lib, code["size"], address)), strict=True))

    @cached_property
    def is_plain(self) -> Array:
        """Returns whether nothing else can be at a frame's address: in a library where something is inlined, or where
        two frames have one address, that is true of none."""
        rows = np.flatnonzero(self.lib >= 0)
        lib, address = self.lib[rows], self._address[rows]
        order = np.lexsort((address, lib))
        again = (lib[order][1:] == lib[order][:-1]) & (address[order][1:] == address[order][:-1])
        is_simple = np.ones(self.lib.max(initial=-1) + 2, bool)
        is_simple[lib[order][1:][again]] = False
        is_simple[lib[self.inline_depth[rows] > 0]] = False
        plain: Array = (self.code < 0) & ((self.lib < 0) | is_simple[self.lib])
        return plain


def _kinds(trace: Trace) -> Array:
    """Returns the FrameKind of each frame: its category's, or else its tier's, or else what it lies in says it."""
    frames, strings = trace.frames, trace.strings
    of_category = [
        CATEGORY_KINDS.get(strings[name], pb.FrameKind.KIND_UNKNOWN) for name in trace.categories["name"].tolist()
    ]
    of_tier = [
        pb.FrameKind.KIND_INTERPRETED if strings[family] == INTERPRETER else pb.FrameKind.KIND_JIT
        for family in trace.tiers["family"].tolist()
    ]
    native = np.where(frames["lib"] >= 0, pb.FrameKind.KIND_NATIVE, pb.FrameKind.KIND_UNKNOWN)
    otherwise = np.where(frames["code"] >= 0, pb.FrameKind.KIND_JIT, native)
    by_tier = np.where(frames["tier"] >= 0, np.array([*of_tier, 0])[frames["tier"]], otherwise)
    by_category = np.array([*of_category, pb.FrameKind.KIND_UNKNOWN])[frames["category"]]
    return _int32(np.where(by_category != pb.FrameKind.KIND_UNKNOWN, by_category, by_tier))


def _int32(values: Array) -> Array:
    return values.astype(np.int32, copy=False)


class PhysicalFrames:
    """The physical frames of a trace's stacks; stacks and frames may be added while threads are loaded.

    symbols: of each module, the lines at the addresses at which something is inlined.
    """

    def __init__(self, trace: Trace, kept: int) -> None:
        self.stacks = PhysicalStacks(kept)
        self.symbols: dict[Module, dict[int, tuple[Line, ...]]] = {}
        self._trace = trace
        self._columns: FrameColumns | None = None
        self._locations: dict[int, Location] = {}
        self._code_modules: dict[int, Module] = {}
        self._lib_modules: dict[int, Module] = {}
        # For each module and address: what is there, the first in the module itself.
        self._at: dict[tuple[Module, int], list[tuple[Line, ...]]] = {}

    @property
    def columns(self) -> FrameColumns:
        """Returns those of all frames that the trace has by now."""
        if self._columns is None or self._columns.n != len(self._trace.frames):
            self._columns = FrameColumns(self._trace)
        return self._columns

    def update(self) -> None:
        """Takes in the stacks that were added since the last time."""
        first = self.stacks.n_stacks
        if first < len(self._trace.stacks):
            stacks = self._trace.stacks
            self.stacks.append(stacks["prefix"][first:], stacks["frame"][first:], self.columns.inline_depth)

    def plain(self, frames: Array) -> Array:
        """Returns the trace's frame of each physical frame, -1 where others are in it or can be at its address."""
        single = self.stacks.single(frames)
        return np.where((single >= 0) & np.append(self.columns.is_plain, False)[single], single, -1)

    def locations(self, frames: Sequence[int]) -> list[Location]:
        """Returns where physical frames are."""
        known, columns = self._locations, self.columns
        lines, addresses = columns.lines, columns.addresses
        for frame in frames:
            if frame not in known:
                chain = self.stacks.chain(frame)
                of_chain = tuple([lines[of] for of in chain]) if len(chain) > 1 else (lines[chain[0]],)
                known[frame] = self._new_location(of_chain, addresses[chain[0]])
        return [known[frame] for frame in frames]

    def _new_location(self, lines: tuple[Line, ...], address: tuple[int, int, int, int]) -> Location:
        """address: as `FrameColumns.addresses` has it, of the outermost frame."""
        code, lib, rel_pc, kind = address
        if code < 0 and lib < 0:
            return Location(None, 0, kind, lines)
        module = self._code_module(code) if code >= 0 else self.lib_module(lib)
        others = self._at.get((module, rel_pc))
        if others is None:
            # Most are alone at their address.
            self._at[module, rel_pc] = [lines]
        elif lines not in others:
            others.append(lines)
        nth = others.index(lines) if others is not None else 0
        if nth:
            module = module._replace(path=f"{module.path} #{nth + 1}")
        if len(lines) > 1:
            self.symbols.setdefault(module, {})[rel_pc] = lines
        return Location(module, rel_pc, kind, lines)

    def _code_module(self, code: int) -> Module:
        """Returns the module of a code object: JIT [tier] name of the dump-number."""
        module = self._code_modules.get(code)
        if module is None:
            tier, lib, size, start = self.columns.code_objects[code]
            tier_name = f"[{self._text(self._trace.tiers, 'name', tier)}]" if tier >= 0 else ""
            lib_name = self._text(self._trace.libs, "name", lib) or "code"
            # Code without an address has an empty range, which overlaps no other.
            end = min(start + max(size, 0), ADDRESS_LIMIT) if start else 0
            path = " ".join(filter(None, ("JIT", tier_name, f"{lib_name}-{code}")))
            module = self._code_modules[code] = Module(path, b"", start, end)
        return module

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

    def _text(self, table: Table, column: str, row: int) -> str:
        return self._trace.strings[int(table[column][row])] if row >= 0 else ""
