"""GSYM symbol files, versions 1 and 2: look-ups, and whole functions.

Look-ups decode only the functions that they touch; a damaged part loses its function and is listed in `problems`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Array, distinct
from traceferry.symbolication.gsym._infos import DAMAGES, IS_OUTSIDE, Lookup
from traceferry.symbolication.gsym.infos import CallSite, Infos
from traceferry.symbolication.gsym.layout import HEADER, HEADER_REST, INFO_SIZE, InfoType, Problem
from traceferry.symbolication.gsym.tables import Tables, read_tables
from traceferry.symbolication.gsym.texts import Texts
from traceferry.symbolication.interface import Frames, Function, without_nameless_calls

__all__ = ["CallSite", "Gsym", "Problem"]

# The data of function infos, as `sizes` calls them.
PARTS = {
    InfoType.LINE_TABLE: "line tables",
    InfoType.INLINE_TREE: "inline trees",
    InfoType.MERGED_FUNCTIONS: "merged functions",
    InfoType.CALL_SITES: "call sites",
}


class Gsym:
    """The symbols of a GSYM file, or of GSYM data in a section of an ELF file.

    Raises FormatError when there is no GSYM header or its tables are not inside. After that nothing is raised:
    damaged parts have no frames, and are in `problems` once they were looked at.

    version: 1 or 2; little_endian: of its numbers; base: of its address table, which is the
    lowest loaded address.
    """

    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.name = source.name
        try:
            self._tables = read_tables(source.data)
        except FormatError as error:
            error.path = source.path
            raise
        self.version = self._tables.version
        self.little_endian = self._tables.order == "<"
        self.base = self._tables.base
        self.build_id = self._tables.uuid.hex()
        self._problems: set[Problem] = set()

    def anew(self) -> Gsym:
        """Returns the same file, of which nothing was looked at yet."""
        other = copy(self)
        other._problems = set()
        return other

    @property
    def gives(self) -> str:
        return "GSYM"

    @property
    def problems(self) -> Sequence[Problem]:
        """The damage that look-ups and `functions` met so far, by offset."""
        return sorted(self._problems)

    # ------------------------------------------------------------ look-ups

    def lookup(self, addresses: Array) -> Frames:
        """Returns the frames at addresses (uint64, in any order). Of functions that start at one address it is the
        first that holds the address. An address without a row in the line table has the function alone."""
        asked = np.ascontiguousarray(addresses, np.uint64)
        order = np.argsort(asked)
        return self._frames(find(self._tables, asked[order]), order, self._tables.infos_end)

    def merged(self, address: int) -> list[Frames]:
        """Returns what runs at an address, once for each function that was merged with the one there: first the one
        that `lookup` gives. [] where nothing is found."""
        found = find(self._tables, np.array([address], np.uint64))
        if not found.is_info[0]:
            return []
        order = np.zeros(1, np.int64)
        answers = [self._frames(found, order, self._tables.infos_end)]
        infos = self._infos()
        for at, end in infos.merged(infos.info(int(found.infos[0]))):
            answers.append(self._frames(found._replace(infos=np.array([at], np.int64)), order, end))
        return [frames for frames in answers if _holds(frames, address)]

    def call_sites(self, address: int) -> list[CallSite]:
        """Returns the calls, as far as they were written down, of the function that holds the address."""
        found, infos = find(self._tables, np.array([address], np.uint64)), self._infos()
        if not found.is_info[0]:
            return []
        return list(infos.call_sites(infos.info(int(found.infos[0])), int(found.starts[0])))

    def _infos(self) -> Infos:
        return Infos(self._tables, self._problems)

    def _frames(self, found: Found, order: Array, end: int) -> Frames:
        """Returns the frames in the order asked. order: which of the asked addresses each found one is; end: where the
        infos end."""
        lookup = Lookup(self._tables.decoder(), found.addresses, found.infos, found.starts, found.damage, end)
        self._note_damage(found)
        held = np.flatnonzero(found.is_info)
        asked, places, calls = order[held], lookup.places[held], lookup.calls
        n_frames, start, size = (np.zeros(len(order), kind) for kind in (np.int64, np.uint64, np.uint64))
        n_frames[asked], start[asked], size[asked] = 1 + places["n_calls"], found.starts[held], places["size"]
        first = np.concatenate(([0], np.cumsum(n_frames)))
        innermost, outermost = first[asked], first[asked + 1] - 1
        # The frame that each call is made in.
        caller = first[order[calls["nth"]] + 1] - 1 - calls["depth"]
        names, files, lines = (np.empty(first[-1], kind) for kind in (np.uint64, np.uint32, np.int32))
        names[outermost], names[caller - 1] = places["name"], calls["name"]
        files[innermost], files[caller] = places["file"], calls["file"]
        lines[innermost], lines[caller] = places["line"], calls["line"]
        texts = Texts(self._tables, self._problems)
        name, source = texts.indices(names, texts.name), texts.indices(files, texts.path)
        return without_nameless_calls(Frames(first, name, source, lines, start, size, texts.all))

    def _note_damage(self, found: Found) -> None:
        damaged = np.flatnonzero(found.damage)
        pairs = set(zip(found.infos[damaged].tolist(), found.damage[damaged].tolist(), strict=True))
        self._problems |= {Problem(offset, DAMAGES[what]) for offset, what in pairs}

    # ------------------------------------------------------------ whole functions

    def functions(self) -> Iterator[Function]:
        """Yields functions by address; equal addresses in the file's order, a function that was merged into another
        after that one."""
        infos = self._infos()
        for start, at in infos.entries():
            info = infos.info(at)
            yield from infos.function(info, at, start)
            for child, end in infos.merged(info):
                yield from infos.function(infos.info(child, end), child, start)

    def sizes(self) -> dict[str, int]:
        """Returns the bytes of each part. "other" is what sizes and names of functions need, the sections of version 2,
        and alignment; a string table of the ELF file's counts nothing."""
        tables, infos = self._tables, self._infos()
        header = HEADER + (HEADER_REST if tables.version == 1 else "")
        sizes = {
            "header": struct.calcsize("<" + header),
            "address table": tables.addresses.nbytes,
            "info offsets": tables.offsets.nbytes,
            "file table": 4 + tables.files.nbytes,
            "string table": len(tables.strings) if tables.owns_strings else 0,
        }
        described = (infos.info(at) for _, at in infos.entries())
        lengths = np.array([info.lengths for info in described if info is not None], np.int64).reshape(
            -1, len(InfoType)
        )
        sizes |= {name: int(lengths[:, kind].sum()) for kind, name in PARTS.items()}
        return {**sizes, "other": max(len(tables.data) - sum(sizes.values()), 0)}


class Found(NamedTuple):
    """The result of `find`, a row for each address: where its function info begins, -1: none; where its function
    starts; what is damaged. Where the offset of an info is outside, `infos` has the place of this offset."""

    addresses: Array
    infos: Array
    starts: Array
    damage: Array

    @property
    def is_info(self) -> Array:
        return np.asarray((self.infos >= 0) & (self.damage == 0))


def find(tables: Tables, addresses: Array) -> Found:
    """Returns what holds the sorted addresses: of functions that start at one address the first that reaches it; size 0
    reaches until the next function."""
    infos, damage = np.full(len(addresses), -1, np.int64), np.zeros(len(addresses), np.uint8)
    first = np.zeros(len(addresses), np.uint64)
    base, starts = np.uint64(tables.base), tables.starts
    following = np.searchsorted(starts, addresses - base, "right")
    asked = np.flatnonzero((addresses >= base) & (following > 0))
    following = following[asked]
    # The entries that start together, for each start that is asked for: mostly one.
    ends = distinct(following)
    n_entries = ends - np.searchsorted(starts, starts[ends - 1])
    entries = np.repeat(ends - np.cumsum(n_entries), n_entries) + np.arange(n_entries.sum())
    latest = np.repeat(np.append(starts, np.uint64(0))[ends] - np.uint64(1), n_entries)
    at = tables.infos + np.minimum(tables.offsets[entries], len(tables.data)).astype(np.int64)
    is_inside = at + INFO_SIZE <= tables.infos_end
    head = np.frombuffer(tables.data, np.uint8)[np.where(is_inside, at, 0)[:, None] + np.arange(INFO_SIZE)]
    size = np.where(is_inside, head.view(f"{tables.order}u4")[:, 0], 0).astype(np.uint64)
    # A size of 0, less 1, is the largest number.
    last = starts[entries] + np.minimum(size - np.uint64(1), latest - starts[entries])
    nth = np.searchsorted(np.maximum.accumulate(last), addresses[asked] - base)
    is_held = np.append(entries, len(starts))[nth] < following
    asked, nth = asked[is_held], nth[is_held]
    infos[asked] = np.where(is_inside, at, tables.offsets_at + entries * tables.offsets.itemsize)[nth]
    damage[asked] = np.where(is_inside, 0, IS_OUTSIDE)[nth]
    first[asked] = base + starts[entries[nth]]
    return Found(addresses, infos, first, damage)


def _holds(frames: Frames, address: int) -> bool:
    size = int(frames.size[0])
    return len(frames.name) > 0 and (size == 0 or address - int(frames.start[0]) < size)
