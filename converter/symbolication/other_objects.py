"""Programs and debug information of macOS and Windows, as far as symbolic reads them: Mach-O files, those of .dSYM
folders among them, PE files and PDB files.

Addresses are relative to where the image is loaded, so `base` is 0. A file for several processors is one for each.
symbolic does not list functions, nor say where they end: of a symbol table alone, the last function has no end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.model import Array
from traceferry.symbolication.build_id import DEBUG_ID_DIGITS, build_id_of_debug_id
from traceferry.symbolication.interface import NOTHING, Answer, Frames, Function, line_number, look_up

# MH_MAGIC and MH_MAGIC_64 in either byte order.
MACH_O_MAGICS = (b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf")
# FAT_MAGIC, then how many files are in it, both big-endian. Java's classes have a version there, at least 45.
FAT_MAGIC, MOST_PARTS = b"\xca\xfe\xba\xbe", 44
FAT_HEADER, FAT_PART = 8, struct.Struct(">8xII4x")
PE_MAGIC = b"MZ"
PDB_MAGIC = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS"
MAGICS = (*MACH_O_MAGICS, PE_MAGIC, PDB_MAGIC)
MAX_ADDRESS = 1 << 32
NO_START = (1 << 32) - 1
WANTED = "Mach-O, PE and PDB files are read with symbolic: pip install 'traceferry[symbols]'"


@cache
def has_symbolic() -> bool:
    """Whether symbolic is installed."""
    return find_spec("symbolic") is not None


def is_other_object(head: bytes) -> bool:
    """Whether a file begins as one of these: its first bytes, 32 at least."""
    return head.startswith(MAGICS) or is_of_several(head)


def is_of_several(head: bytes) -> bool:
    """Whether it is a file for several processors."""
    return head.startswith(FAT_MAGIC) and 0 < int.from_bytes(head[4:FAT_HEADER], "big") <= MOST_PARTS


def parts_of(source: Source) -> list[Source]:
    """Returns the files in one for several processors; any other as it is. Raises FormatError for one that ends too
    early."""
    head = bytes(source.data[:FAT_HEADER])
    if not is_of_several(head):
        return [source]
    parts = []
    for nth in range(int.from_bytes(head[4:], "big")):
        at = FAT_HEADER + nth * FAT_PART.size
        entry = bytes(source.data[at : at + FAT_PART.size])
        begin, size = FAT_PART.unpack(entry) if len(entry) == FAT_PART.size else (0, 0)
        if not size or begin + size > len(source.data):
            raise FormatError("a part of a Mach-O file ends beyond it", at, "fat_arch", path=source.path)
        parts.append(Source(source.path, source.data[begin : begin + size], limit=source.limit))
    return parts


class OtherObject:
    """Symbols of such a file. Raises FormatError if symbolic is not installed, or cannot read it."""

    base = 0

    def __init__(self, source: Source) -> None:
        if not has_symbolic():
            raise FormatError(WANTED, path=source.path)
        from symbolic import Archive
        from symbolic.exceptions import SymbolicError

        self.path, self.name = source.path, source.name
        try:
            # All of the library's errors are of this class.
            # What comes of the library points into these bytes.
            self._data = bytes(source.data)
            self._archive = Archive.from_bytes(self._data)
            self._object: Any = next(self._archive.iter_objects(), None)
            if self._object is None:
                raise FormatError("a Mach-O, PE or PDB file without a program in it", 0, path=source.path)
            digits = str(self._object.debug_id).replace("-", "")
            self.arch = str(self._object.arch)
            self._is_mach_o = str(self._object.file_format) == "macho"
            self._features = frozenset(self._object.features)
        except SymbolicError as error:
            raise FormatError(f"not a readable Mach-O, PE or PDB file: {error}", 0, path=source.path) from None
        # Breakpad's form: the UUID, and how often the debug information was written since the program was linked.
        self.debug_id = f"{digits[:DEBUG_ID_DIGITS]}{digits[DEBUG_ID_DIGITS:] or '0'}".upper()
        self._problems: set[tuple[int, str]] = set()

    @property
    def build_id(self) -> str:
        """The UUID: of Mach-O files as it is shown, which is their code id; of others as a build id with this debug id
        would have it."""
        if self._is_mach_o:
            return self.debug_id[:DEBUG_ID_DIGITS].lower()
        return build_id_of_debug_id(self.debug_id)

    @property
    def has_lines(self) -> bool:
        return "debug" in self._features

    @property
    def gives(self) -> str:
        return "debug information" if self.has_lines else "the symbol table"

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        return sorted(self._problems)

    def lookup(self, addresses: Array) -> Frames:
        return look_up(np.asarray(addresses, np.uint64), self._answer)

    def functions(self) -> Iterator[Function]:
        """Yields none: symbolic does not list them."""
        return iter(())

    def _answer(self, address: int) -> Answer:
        from symbolic.exceptions import SymbolicError

        if self._cache is None or address >= MAX_ADDRESS:
            return NOTHING
        try:
            found = [frame for frame in self._cache.lookup(address) if frame.symbol]
        except SymbolicError as error:
            self._problems.add((0, str(error)))
            return NOTHING
        if not found:
            return NOTHING
        start = int(found[-1].sym_addr)
        frames = [(frame.symbol, frame.full_path or "", line_number(frame.line)) for frame in found]
        return Answer(start if start != NO_START else 0, 0, frames)

    @cached_property
    def _cache(self) -> Any:
        from symbolic.exceptions import SymbolicError

        try:
            return self._object.make_symcache()
        except SymbolicError as error:
            self._problems.add((0, str(error)))
            return None
