"""Function infos of a GSYM file, whole: their lines, inlined calls, merged functions and call sites."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from traceferry.symbolication.gsym._infos import DAMAGES, IS_CUT, IS_OUTSIDE, Info
from traceferry.symbolication.gsym.layout import COUNT_SIZE, INFO_SIZE, DamagedInfoError, InfoType, Problem
from traceferry.symbolication.gsym.tables import Tables
from traceferry.symbolication.gsym.texts import Texts
from traceferry.symbolication.interface import Function, Inline


class CallSite(NamedTuple):
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
        self._decoder = tables.decoder()

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yields (start of the function, offset of its info), for each whose offset is inside."""
        tables = self._tables
        for entry, (address, offset) in enumerate(zip(tables.addresses.tolist(), tables.offsets.tolist(), strict=True)):
            at = tables.infos + offset
            if at + INFO_SIZE <= tables.infos_end:
                yield (tables.base + address) % (1 << 64), at
            else:
                self._note(tables.offsets_at + entry * tables.offsets.itemsize, DAMAGES[IS_OUTSIDE])

    def info(self, at: int, end: int | None = None) -> Info | None:
        """Returns None where it is damaged."""
        info = self._decoder.info(at, self._tables.infos_end if end is None else end)
        if info.damage:
            self._note(at, DAMAGES[info.damage])
            return None
        return info

    def function(self, info: Info | None, at: int, start: int) -> Iterator[Function]:
        """Yields the function that starts at `start`, unless its info, which is at `at`, is damaged."""
        if info is None:
            return
        try:
            lines = [(address, self.texts.path(file), line) for address, file, line in info.rows(start)]
            inlines = self._inlines(info, start)
        except DamagedInfoError as error:
            self._note(at, str(error))
        else:
            yield Function(self.texts.name(info.name), start, info.size, lines, inlines)

    def _inlines(self, info: Info, start: int) -> tuple[Inline, ...]:
        """Returns what is inlined into the function. The root of the tree is the function itself, and not called."""
        # By level, those whose parent is still to come: from the last node to the root.
        waiting: dict[int, list[Inline]] = {}
        for level, name, file, line, ranges in reversed(info.nodes(start)):
            children = tuple(reversed(waiting.pop(level + 1, [])))
            inline = Inline(self.texts.name(name), ranges, self.texts.path(file), line, children)
            waiting.setdefault(level, []).append(inline)
        roots = waiting.get(0, [])
        return tuple(roots) if roots and roots[0].call_source else tuple(c for root in roots for c in root.children)

    def merged(self, info: Info | None) -> Iterator[tuple[int, int]]:
        """Yields (offset, end) of the infos of the functions that were merged with the one of this info: u32 count; for
        each u32 bytes, then that many of an info."""
        for (size,), at in self._records(info, InfoType.MERGED_FUNCTIONS, "I", 1):
            yield at, at + size

    def call_sites(self, info: Info | None, start: int) -> Iterator[CallSite]:
        """Yields calls: u32 count; for each u64 return offset, u8 flags, u32 number of callees and as many string
        offsets; packed."""
        offset_of_string = self._tables.offsets.dtype
        for fields, at in self._records(info, InfoType.CALL_SITES, "QBI", offset_of_string.itemsize):
            offset, flags, n_callees = fields
            callees = np.frombuffer(self._tables.data, offset_of_string, n_callees, at).tolist()
            yield CallSite((start + offset) % (1 << 64), flags, tuple(self.texts.name(callee) for callee in callees))

    def _records(
        self, info: Info | None, kind: InfoType, form: str, item_size: int
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Yields (its fields, where its items begin) of each record of this data, of which there are as many as the u32
        in front says. The last field is the number of items."""
        at, end = info.part(kind) if info is not None else (0, 0)
        if end - at < COUNT_SIZE:
            return
        data, record = self._tables.data, struct.Struct(self._tables.order + form)
        (count,) = struct.unpack_from(self._tables.order + "I", data, at)
        at += COUNT_SIZE
        for _ in range(count):
            if record.size > end - at:
                return self._note(at, DAMAGES[IS_CUT])
            fields = record.unpack_from(data, at)
            at += record.size
            if fields[-1] > (end - at) // item_size:
                return self._note(at, DAMAGES[IS_CUT])
            yield fields, at
            at += fields[-1] * item_size

    def _note(self, offset: int, what: str) -> None:
        self._problems.add(Problem(offset, what))
