"""The files of the libraries that an input names: functions at addresses, and their machine code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from traceferry.model import NativeFunction
from traceferry.symbols.binary import Binary
from traceferry.symbols.interface import Symbols
from traceferry.symbols.shown import shown_frames

ADDRESSES = 1 << 64


class LibraryFile(NamedTuple):
    """symbols: what names its functions; binary: the ELF file with its code; None where they are not available."""

    symbols: Symbols | None
    binary: Binary | None


class LibraryFiles:
    """A LibraryReader. files: by the libraries' rows."""

    def __init__(self, files: Mapping[int, LibraryFile]) -> None:
        self._files = dict(files)

    def functions_at(self, lib: int, addresses: Sequence[int]) -> list[NativeFunction | None]:
        symbols = self._files[lib].symbols if lib in self._files else None
        if symbols is None or not addresses:
            return [None] * len(addresses)
        base = symbols.base
        found = symbols.lookup(np.array([(address + base) % ADDRESSES for address in addresses], np.uint64))
        frames, first = shown_frames(found), found.first.tolist()
        columns = zip(first[:-1], first[1:], found.start.tolist(), found.size.tolist(), strict=True)
        return [
            NativeFunction(tuple(frames[begin:end][::-1]), start - base, size) if begin < end else None
            for begin, end, start, size in columns
        ]

    def bytes_of(self, lib: int, address: int, size: int) -> bytes:
        binary = self._files[lib].binary if lib in self._files else None
        return binary.code(address, size) if binary is not None else b""

    def holder_of(self, pid: int, ts: int, address: int) -> tuple[int, int] | None:
        """Not recorded."""
        return None
