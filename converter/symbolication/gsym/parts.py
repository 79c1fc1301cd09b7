"""Of a GSYM file that is elsewhere: which of its bytes look-ups need.

Bytes that were not fetched are zeros, and an info of zeros is one that ends at once, so everything is fetched before
it is decoded: answers are those that the whole file gives, damaged or not.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from traceferry.files.sparse import SparseFile
from traceferry.model import Array
from traceferry.symbolication.gsym._infos import IS_CUT, Decoder
from traceferry.symbolication.gsym.layout import INFO_SIZE
from traceferry.symbolication.gsym.tables import Tables

# Functions that start together are tried one after the other. After so many all infos are fetched.
MAX_ROUNDS = 8
# How far an info is thought to reach at most, until it says so.
MAX_GUESS = 1 << 16


class Parts:
    """tables: of the file."""

    def __init__(self, tables: Tables, file: SparseFile) -> None:
        self._tables = tables
        self._file = file
        self._rounds = 0
        self._has_tables = False

    def need_tables(self) -> None:
        """The tables of addresses, of info offsets and of files, which every look-up may read everywhere."""
        if self._has_tables:
            return
        layout = self._tables.layout
        tables = (
            (layout.addresses, layout.n_addresses * layout.address_size),
            (layout.offsets, layout.n_addresses * layout.offset_size),
            (layout.files, layout.n_files * layout.string_size * 2),
        )
        starts, sizes = np.array(tables, np.int64).T
        self._file.need_all(starts, starts + sizes)
        # Of an info's size in two blocks half could be there, and the kernel would take that for the size.
        at = self._infos
        self._need(at[at % self._file.block > self._file.block - INFO_SIZE], INFO_SIZE)
        self._has_tables = True

    def need_sizes(self, infos: Array) -> bool:
        """The sizes of functions, by the places of their infos. Returns whether one was missing: then another function
        that starts there can be the one that holds the address."""
        layout = self._tables.layout
        if not self._need(infos, INFO_SIZE):
            return False
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            self._file.need(layout.infos, layout.infos_end)
        return True

    def need_infos(self, infos: Array) -> None:
        """These infos whole. Infos follow each other, in any order, but nothing says so: an info that goes on where the
        next one begins is fetched until its end."""
        layout = self._tables.layout
        decoder = Decoder(self._tables.data, layout)
        at = np.unique(infos)
        edges = np.append(self._infos, layout.infos_end)
        ends = np.minimum(edges[np.searchsorted(edges, at, "right")], at + MAX_GUESS)
        while len(at):
            self._file.need_all(at, ends)
            is_cut = np.zeros(len(at), bool)
            for nth, (begin, end) in enumerate(zip(at.tolist(), ends.tolist(), strict=True)):
                is_cut[nth] = decoder.info(begin, end).damage == IS_CUT and end < layout.infos_end
            at, ends = at[is_cut], ends[is_cut]
            ends = np.minimum(ends + np.maximum(ends - at, self._file.block), layout.infos_end)

    @cached_property
    def _infos(self) -> Array:
        """Where infos begin, rising, each place once: int64."""
        layout = self._tables.layout
        form = f"{self._tables.order}u{layout.offset_size}"
        offsets = np.frombuffer(self._tables.data, form, layout.n_addresses, layout.offsets)
        last = layout.infos_end - INFO_SIZE - layout.infos
        return np.unique(offsets[offsets <= last].astype(np.int64)) + layout.infos if last >= 0 else NONE

    def _need(self, starts: Array, size: int) -> bool:
        return self._file.need_all(starts, starts + size)


NONE = np.zeros(0, np.int64)


def need_strings(tables: Tables, offsets: Array, size: int) -> None:
    """So many bytes from each of these offsets of the string table on. offsets: uint64, anything."""
    if tables.file is not None:
        end = len(tables.strings)
        starts = np.minimum(offsets, np.uint64(end)).astype(np.int64) + tables.strings_at
        tables.file.need_all(starts, np.minimum(starts + size, tables.strings_at + end))


def need_paths(tables: Tables, files: Array, size: int) -> None:
    """The same of directories and names of these files of the file table. files: uint32, anything."""
    if tables.file is not None:
        layout = tables.layout
        entries = np.frombuffer(
            tables.data, f"{tables.order}u{layout.string_size}", 2 * layout.n_files, layout.files
        ).reshape(-1, 2)
        need_strings(tables, np.unique(entries[files[files < layout.n_files]]).astype(np.uint64), size)
