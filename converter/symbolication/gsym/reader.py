"""GSYM symbol files, versions 1 and 2: look-ups, and whole functions.

Look-ups decode only the functions that they touch; a damaged part loses its function and is listed in `problems`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Array
from traceferry.symbolication.gsym._infos import DAMAGES, Decoder, Lookup
from traceferry.symbolication.gsym.infos import CallSite, Infos
from traceferry.symbolication.gsym.layout import HEADER_V1, HEADER_V2, Problem
from traceferry.symbolication.gsym.tables import read_tables
from traceferry.symbolication.gsym.texts import Texts
from traceferry.symbolication.interface import Frames, Function

__all__ = ["CallSite", "Gsym", "Problem"]


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
        self.little_endian = not self._tables.layout.big
        self.base = self._tables.layout.base
        self.build_id = self._tables.uuid.hex()
        self._decoder = Decoder(self._tables.data, self._tables.layout)
        self._problems: set[Problem] = set()

    def anew(self) -> Gsym:
        """Returns the same file, of which nothing was looked at yet."""
        other = copy(self)
        other._problems = set()
        return other

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
        return self._frames(self._decoder, self._find(asked[order]), order)

    def merged(self, address: int) -> list[Frames]:
        """Returns what runs at an address, once for each function that was merged with the one there: first the one
        that `lookup` gives. [] where nothing is found."""
        found = self._find(np.array([address], np.uint64))
        if found.infos[0] < 0 or found.damage[0]:
            return []
        order = np.zeros(1, np.int64)
        answers = [self._frames(self._decoder, found, order)]
        infos = self._infos()
        for at, end in infos.merged(infos.info(int(found.infos[0]))):
            child = replace(found, infos=np.array([at], np.int64))
            decoder = Decoder(self._tables.data, self._tables.layout._replace(infos_end=end))
            answers.append(self._frames(decoder, child, order))
        return [frames for frames in answers if _holds(frames, address)]

    def call_sites(self, address: int) -> list[CallSite]:
        """Returns the calls, as far as they were written down, of the function that holds the address."""
        found = self._find(np.array([address], np.uint64))
        if found.infos[0] < 0 or found.damage[0]:
            return []
        return list(self._infos().call_sites(int(found.infos[0]), int(found.starts[0])))

    def _infos(self) -> Infos:
        return Infos(self._tables, self._problems)

    def _find(self, addresses: Array) -> Found:
        """Returns what holds the addresses, which are sorted."""
        return Found(addresses, *self._decoder.find(addresses))

    def _frames(self, decoder: Decoder, found: Found, order: Array) -> Frames:
        """Returns the frames in the order asked. order: which of the asked addresses each found one is."""
        n = len(order)
        lookup = Lookup(decoder, found.addresses, found.infos, found.starts, found.damage)
        self._note_damage(found)
        first = np.zeros(n + 1, np.int64)
        first[1:][order] = lookup.counts
        np.cumsum(first, out=first)
        names, files, lines = lookup.frames(first[:-1][order])
        start, size = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        start[order], size[order] = np.where(lookup.counts > 0, found.starts, 0), lookup.sizes
        texts = Texts(self._tables, self._problems)
        return Frames(first, texts.names_of(names), texts.paths_of(files), lines, start, size, texts.all)

    def _note_damage(self, found: Found) -> None:
        damaged = np.flatnonzero(found.damage)
        pairs = np.stack((found.infos[damaged], found.damage[damaged].astype(np.int64)), axis=1)
        self._problems |= {Problem(offset, DAMAGES[what]) for offset, what in np.unique(pairs, axis=0).tolist()}

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
        tables, layout, infos = self._tables, self._tables.layout, self._infos()
        sizes = {
            "header": struct.calcsize("<" + (HEADER_V1 if tables.version == 1 else HEADER_V2)),
            "address table": layout.address_size * layout.n_addresses,
            "info offsets": layout.offset_size * layout.n_addresses,
            "file table": 4 + 2 * layout.string_size * layout.n_files,
            "string table": len(tables.strings) if tables.owns_strings else 0,
            "line tables": 0,
            "inline trees": 0,
            "merged functions": 0,
            "call sites": 0,
        }
        for _, at in infos.entries():
            info = infos.info(at)
            if info is not None:
                sizes["line tables"] += info.lines_end - info.lines
                sizes["inline trees"] += info.inlines_end - info.inlines
                sizes["merged functions"] += info.merged_end - info.merged
                sizes["call sites"] += info.call_sites_end - info.call_sites
        return {**sizes, "other": max(len(tables.data) - sum(sizes.values()), 0)}


@dataclass(frozen=True)
class Found:
    """The result of `find` for sorted addresses; a row for each."""

    addresses: Array
    infos: Array
    starts: Array
    damage: Array


def _holds(frames: Frames, address: int) -> bool:
    size = int(frames.size[0])
    return len(frames.name) > 0 and (size == 0 or address - int(frames.start[0]) < size)
