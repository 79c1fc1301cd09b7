"""The instrumentation map of a binary: which function each id of a log is."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from traceferry.common.errors import FormatError

if TYPE_CHECKING:
    from traceferry.symbolication.binary import Binary

SECTION = "xray_instr_map"


def function_addresses(binary: Binary) -> list[int]:
    """Returns link-time addresses of the instrumented functions; the one with id n is at n - 1.

    An entry is two words (sled, function), u8 kind, u8 always_instrument, u8 version and padding: 32 bytes with 64-bit
    words, 16 with 32-bit ones. Version 2 words are relative to themselves; before, they are absolute, and in a
    position-independent file 0 with a RELATIVE relocation. An id counts runs of entries with equal function.

    Raises FormatError if the binary has no map, or one of another shape.
    """
    section = binary.section(SECTION)
    if section is None:
        raise _error(binary, "it has no xray_instr_map: not built with -fxray-instrument, or not the linked file")
    map_at, data = section
    word = binary.word_size
    size = 4 * word
    if len(data) % size:
        raise _error(binary, f"its xray_instr_map of {len(data)} bytes is not a multiple of {size}-byte entries")
    entry = struct.Struct(("<" if binary.little_endian else ">") + ("QQBBB" if word == 8 else "IIBBB"))
    mask = (1 << 8 * word) - 1
    entries = [(at, *entry.unpack_from(data, at)) for at in range(0, len(data), size)]
    absolute = [at for at, _, function, _, _, version in entries if version < 2 and function == 0]
    addends = binary.relative_relocations(map_at, map_at + len(data)) if absolute else {}
    addresses: list[int] = []
    for at, _, function, _, _, version in entries:
        at_function = map_at + at + word
        if version >= 2:
            function = (function + at_function) & mask
        elif function == 0:
            function = addends.get(at_function, 0)
        if not addresses or addresses[-1] != function:
            addresses.append(function)
    return addresses


def _error(binary: Binary, message: str) -> FormatError:
    return FormatError(f"as symbols: {message}", None, SECTION, path=binary.path)
