"""Function infos of a GSYM file, whole: their lines, inlined calls, merged functions and call sites."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traceferry.symbolication.gsym._infos import DAMAGES, IS_CUT, IS_OUTSIDE, Decoder, Info
from traceferry.symbolication.gsym.layout import INFO_SIZE, DamagedInfoError, Problem
from traceferry.symbolication.gsym.tables import Tables
from traceferry.symbolication.gsym.texts import Texts
from traceferry.symbolication.interface import Function, Inline


@dataclass(frozen=True)
class CallSite:
    """A call that a function makes. address: where it returns to; flags: INTERNAL_CALL, EXTERNAL_CALL; callees: names,
    or regular expressions of names, of what it can call."""

    address: int
    flags: int
    callees: tuple[str, ...]


class Infos:
    """One for each pass through the file: how many bytes a pass decodes is bounded, since damaged infos can overlap.

    problems: what is damaged is added. `at`: the offset of an info; `end`: where the data that holds it ends, which for
    a function that was merged into another is inside the other's info.
    """

    def __init__(self, tables: Tables, problems: set[Problem]) -> None:
        self.texts = Texts(tables, problems)
        self._tables = tables
        self._problems = problems
        self._decoder = Decoder(tables.data, tables.layout)

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yields (start of the function, offset of its info), for each whose offset is inside."""
        layout, order = self._tables.layout, self._tables.order
        n = layout.n_addresses
        starts = np.frombuffer(self._tables.data, f"{order}u{layout.address_size}", n, layout.addresses)
        offsets = np.frombuffer(self._tables.data, f"{order}u{layout.offset_size}", n, layout.offsets)
        for entry in range(n):
            at = layout.infos + int(offsets[entry])
            if at + INFO_SIZE <= layout.infos_end:
                yield (layout.base + int(starts[entry])) % (1 << 64), at
            else:
                self._note(layout.offsets + entry * layout.offset_size, DAMAGES[IS_OUTSIDE])

    def info(self, at: int, end: int | None = None) -> Info | None:
        """Returns None where it is damaged."""
        info = self._decoder.info(at, end)
        if info.damage:
            self._note(at, DAMAGES[info.damage])
            return None
        return info

    def function(self, info: Info | None, at: int, start: int) -> Iterator[Function]:
        """Yields the function that starts at `start`, unless its info, which is at `at`, is damaged."""
        if info is None:
            return
        try:
            lines = self._lines(info, start)
            inlines = self._inlines(info, start)
        except DamagedInfoError as error:
            self._note(at, str(error))
        else:
            yield Function(self.texts.name(info.name), start, info.size, lines, inlines)

    def _lines(self, info: Info, start: int) -> list[tuple[int, str, int]]:
        rows = self._decoder.rows(info, start)
        return [(address, self.texts.path(file), line) for address, file, line in rows]

    def _inlines(self, info: Info, start: int) -> tuple[Inline, ...]:
        """Returns what is inlined into the function. The root of the tree is the function itself, and not called."""
        # By level, those whose parent is still to come: from the last node to the root.
        waiting: dict[int, list[Inline]] = {}
        for level, name, file, line, ranges in reversed(self._decoder.nodes(info, start)):
            children = tuple(reversed(waiting.pop(level + 1, [])))
            inline = Inline(self.texts.name(name), ranges, self.texts.path(file), line, children)
            waiting.setdefault(level, []).append(inline)
        roots = waiting.get(0, [])
        return tuple(roots) if roots and roots[0].call_source else tuple(c for root in roots for c in root.children)

    def merged(self, info: Info | None) -> Iterator[tuple[int, int]]:
        """Yields (offset, end) of the infos of the functions that were merged with the one of this info: u32 count; for
        each u32 bytes, then that many of an info."""
        if info is None or info.merged_end - info.merged < 4:
            return
        word = struct.Struct(self._tables.order + "I")
        (count,) = word.unpack_from(self._tables.data, info.merged)
        child = info.merged + 4
        for _ in range(count):
            if child + 4 > info.merged_end:
                return self._note(child, DAMAGES[IS_CUT])
            (size,) = word.unpack_from(self._tables.data, child)
            child += 4
            if size > info.merged_end - child:
                return self._note(child, DAMAGES[IS_CUT])
            yield child, child + size
            child += size

    def call_sites(self, at: int, start: int) -> Iterator[CallSite]:
        """Yields calls: u32 count; for each u64 return offset, u8 flags, u32 number of callees and as many string
        offsets; packed."""
        info = self.info(at)
        if info is None or info.call_sites_end - info.call_sites < 4:
            return
        data, order, string_size = self._tables.data, self._tables.order, self._tables.layout.string_size
        site = struct.Struct(order + "QBI")
        (count,) = struct.unpack_from(order + "I", data, info.call_sites)
        position = info.call_sites + 4
        for _ in range(count):
            if position + site.size > info.call_sites_end:
                return self._note(position, DAMAGES[IS_CUT])
            offset, flags, n_callees = site.unpack_from(data, position)
            position += site.size
            if n_callees > (info.call_sites_end - position) // string_size:
                return self._note(position, DAMAGES[IS_CUT])
            callees = np.frombuffer(data, f"{order}u{string_size}", n_callees, position).tolist()
            yield CallSite((start + offset) % (1 << 64), flags, tuple(self.texts.name(callee) for callee in callees))
            position += n_callees * string_size

    def _note(self, offset: int, what: str) -> None:
        self._problems.add(Problem(offset, what))
