"""Function infos of a GSYM file, whole: their lines, inlined calls, merged functions and call sites."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceferry.symbolication.gsym import gsym_kernel
from traceferry.symbolication.gsym.layout import INFO_SIZE, NODE_BYTES, RANGE_BYTES, Info, Layout, Problem
from traceferry.symbolication.gsym.tables import Tables
from traceferry.symbolication.gsym.texts import Texts
from traceferry.symbolication.interface import Function, Inline

CUT, OUTSIDE = gsym_kernel.DAMAGES[1], gsym_kernel.DAMAGES[3]


@dataclass(frozen=True)
class CallSite:
    """A call that a function makes. address: where it returns to; flags: INTERNAL_CALL, EXTERNAL_CALL; callees: names,
    or regular expressions of names, of what it can call."""

    address: int
    flags: int
    callees: tuple[str, ...]


class DamagedInfoError(Exception):
    """What is wrong with a function info."""


class Infos:
    """One for each pass through the file: how many bytes a pass decodes is bounded, since damaged infos can overlap.

    problems: what is damaged is added. `at`: the offset of an info; `end`: where the data that holds it ends, which for
    a function that was merged into another is inside the other's info.
    """

    def __init__(self, tables: Tables, problems: set[Problem]) -> None:
        self.texts = Texts(tables, problems)
        self._tables = tables
        self._problems = problems
        self._spent = np.zeros(1, np.uint64)

    def entries(self) -> Iterator[tuple[int, int]]:
        """(start of the function, offset of its info), for each whose offset is inside."""
        layout, order = self._tables.layout, self._tables.order
        n = layout.n_addresses
        starts = np.frombuffer(self._tables.data, f"{order}u{layout.address_size}", n, layout.addresses)
        offsets = np.frombuffer(self._tables.data, f"{order}u{layout.offset_size}", n, layout.offsets)
        for entry in range(n):
            at = layout.infos + int(offsets[entry])
            if at + INFO_SIZE <= layout.infos_end:
                yield (layout.base + int(starts[entry])) % (1 << 64), at
            else:
                self._note(layout.offsets + entry * layout.offset_size, OUTSIDE)

    def info(self, at: int, end: int | None = None) -> Info | None:
        """None where it is damaged."""
        out = np.empty(len(Info._fields), np.uint64)
        damage = gsym_kernel.parts(self._tables.data, self._within(end), at, self._spent, out)
        if damage:
            self._note(at, gsym_kernel.DAMAGES[damage])
            return None
        return Info(*out.tolist())

    def function(self, info: Info | None, at: int, start: int) -> Iterator[Function]:
        """The function that starts at `start`, unless its info, which is at `at`, is damaged."""
        if info is None:
            return
        try:
            lines = self._lines(info, start)
            inlines = self._inlines(info, start)
        except DamagedInfoError as error:
            self._note(at, str(error))
        else:
            yield Function(self.texts.name(info.name), start, info.size, lines, inlines)

    def _within(self, end: int | None) -> Layout:
        layout = self._tables.layout
        return layout if end is None else layout._replace(infos_end=end)

    def _lines(self, info: Info, start: int) -> list[tuple[int, str, int]]:
        most = info.line_table_end - info.line_table
        addresses, files, lines = np.empty(most, np.uint64), np.empty(most, np.uint32), np.empty(most, np.int32)
        where = (self._tables.data, self._tables.layout, info.line_table, info.line_table_end, start)
        n = _undamaged(gsym_kernel.rows(*where, addresses, files, lines)) if most else 0
        paths = map(self.texts.path, files[:n].tolist())
        return list(zip(addresses[:n].tolist(), paths, lines[:n].tolist(), strict=True))

    def _inlines(self, info: Info, start: int) -> tuple[Inline, ...]:
        """What is inlined into the function. The root of the tree is the function itself, and not called."""
        size = info.inlines_end - info.inlines
        if not size:
            return ()
        most, n_ranges = size // NODE_BYTES + 1, size // RANGE_BYTES + 1
        levels, lines = np.empty(most, np.int32), np.empty(most, np.int32)
        names, files = np.empty(most, np.uint64), np.empty(most, np.uint32)
        first = np.empty(most + 1, np.int64)
        starts, ends = np.empty(n_ranges, np.uint64), np.empty(n_ranges, np.uint64)
        where = (self._tables.data, self._tables.layout, info.inlines, info.inlines_end, start)
        n = _undamaged(gsym_kernel.nodes(*where, levels, names, files, lines, first, starts, ends))
        level_of, name_of, file_of, line_of = (column[:n].tolist() for column in (levels, names, files, lines))
        first_of = first[: n + 1].tolist()
        n_used = first_of[n]
        ranges = list(zip(starts[:n_used].tolist(), ends[:n_used].tolist(), strict=True))
        # By level, those whose parent is still to come: from the last node to the root.
        waiting: dict[int, list[Inline]] = {}
        for node in reversed(range(n)):
            level = level_of[node]
            inline = Inline(
                self.texts.name(name_of[node]),
                tuple(ranges[first_of[node] : first_of[node + 1]]),
                self.texts.path(file_of[node]),
                line_of[node],
                tuple(reversed(waiting.pop(level + 1, []))),
            )
            waiting.setdefault(level, []).append(inline)
        roots = waiting.get(0, [])
        return tuple(roots) if roots and roots[0].call_source else tuple(c for root in roots for c in root.children)

    def merged(self, info: Info | None) -> Iterator[tuple[int, int]]:
        """(offset, end) of the infos of the functions that were merged with the one of this info: u32 count; for each
        u32 bytes, then that many of an info."""
        if info is None or info.merged_end - info.merged < 4:
            return
        word = struct.Struct(self._tables.order + "I")
        (count,) = word.unpack_from(self._tables.data, info.merged)
        child = info.merged + 4
        for _ in range(count):
            if child + 4 > info.merged_end:
                return self._note(child, CUT)
            (size,) = word.unpack_from(self._tables.data, child)
            child += 4
            if size > info.merged_end - child:
                return self._note(child, CUT)
            yield child, child + size
            child += size

    def call_sites(self, at: int, start: int) -> Iterator[CallSite]:
        """u32 count; for each u64 return offset, u8 flags, u32 number of callees and as many string offsets; packed."""
        info = self.info(at)
        if info is None or info.call_sites_end - info.call_sites < 4:
            return
        data, order, string_size = self._tables.data, self._tables.order, self._tables.layout.string_size
        site = struct.Struct(order + "QBI")
        (count,) = struct.unpack_from(order + "I", data, info.call_sites)
        place = info.call_sites + 4
        for _ in range(count):
            if place + site.size > info.call_sites_end:
                return self._note(place, CUT)
            offset, flags, n_callees = site.unpack_from(data, place)
            place += site.size
            if n_callees > (info.call_sites_end - place) // string_size:
                return self._note(place, CUT)
            callees = np.frombuffer(data, f"{order}u{string_size}", n_callees, place).tolist()
            yield CallSite((start + offset) % (1 << 64), flags, tuple(self.texts.name(callee) for callee in callees))
            place += n_callees * string_size

    def _note(self, offset: int, what: str) -> None:
        self._problems.add(Problem(offset, what))


def _undamaged(n: int) -> int:
    """A kernel's result, which below 0 is damage."""
    if n < 0:
        raise DamagedInfoError(gsym_kernel.DAMAGES[-n])
    return n
