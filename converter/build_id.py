"""Build ids: of a file, and as the viewers want them."""

from __future__ import annotations

import struct

PT_NOTE = 4
NT_GNU_BUILD_ID = 3


def build_id_of(data: memoryview) -> str:
    """The build id of an ELF file in hex; "" if it has none. Only its program headers and notes are read, which costs
    far less than a library that reads all of it: most files of a recording are not those of this machine."""
    try:
        if bytes(data[:4]) != b"\x7fELF":
            return ""
        order = "<" if data[5] == 1 else ">"
        wide = data[4] == 2
        table_at, entry_size, n_entries = (
            (*struct.unpack_from(order + "Q", data, 32), *struct.unpack_from(order + "HH", data, 54))
            if wide
            else (*struct.unpack_from(order + "I", data, 28), *struct.unpack_from(order + "HH", data, 42))
        )
        for at in range(table_at, table_at + entry_size * n_entries, max(entry_size, 1)):
            if struct.unpack_from(order + "I", data, at)[0] == PT_NOTE:
                begin, size = (struct.unpack_from(order + ("Q" if wide else "I"), data, at + i)[0] for i in
                               ((8, 32) if wide else (4, 16)))  # fmt: skip
                found = build_id_in(bytes(data[begin : begin + size]), order)
                if found:
                    return found
    except (struct.error, IndexError):
        pass
    return ""


def build_id_in(notes: bytes, byte_order: str) -> str:
    """The build id among some ELF notes, in hex; "" if there is none."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(byte_order + "III", notes, at)
        begin = at + 12 + (name_size + 3 & ~3)
        if kind == NT_GNU_BUILD_ID and notes[at + 12 : at + 15] == b"GNU":
            return notes[begin : begin + size].hex()
        at = begin + (size + 3 & ~3)
    return ""


def debug_id_of(build_id: str) -> str:
    """Breakpad's form of a build id in hex: its first 16 bytes as a Microsoft GUID, and an age of 0."""
    raw = bytes.fromhex(build_id)[:16].ljust(16, b"\0")
    swapped = raw[3::-1] + raw[5:3:-1] + raw[7:5:-1] + raw[8:]
    return swapped.hex().upper() + "0"
