"""Any uint64 addresses are answered, by every source of symbols, wherever in memory its code lies."""

import struct
from collections.abc import Iterator

import numpy as np
import pytest
from builders.breakpad import SymFile
from builders.dwarf import HIGH_PC, LOW_PC, NAME, SUBPROGRAM, Dwarf, Symbol, die
from builders.gsym import GsymFile
from builders.xray import ENTER, elf_with_instr_map

from traceferry.apps.cli.symbol_files import lookup_json, lookup_text, verify
from traceferry.files.source import Source
from traceferry.symbolication.choose import open_symbols
from traceferry.symbolication.demangle import Demangler
from traceferry.symbolication.interface import Symbols

END = 1 << 64
BASES = [0, 0x1000, 1 << 32, 1 << 63, END - 0x4000, END - 8, END - 1]
ADDRESSES = sorted({at % END for base in [*BASES, END] for at in (base - 1, base, base + 4, base + (1 << 31))})


def sources(base: int) -> Iterator[tuple[str, bytes]]:
    """A function at `base`, and a symbol without a size at the end of memory."""
    for version in (1, 2):
        file = GsymFile(version, address_size=8, base=base).function("f", base, 16, [(base, "a.c", 1)])
        yield f"gsym {version}", file.function("last", END - 1, 0).bytes()
    breakpad = SymFile().file(1, "a.c").func(base, 16, "f").line(base, 16, 3, 1)
    yield "breakpad", breakpad.public(END - 1, "last").bytes()
    dwarf = Dwarf(5).unit(die(SUBPROGRAM, {NAME: "f", LOW_PC: base, HIGH_PC: 16}))
    yield "elf", dwarf.elf([Symbol("f", base, 16), Symbol("last", END - 1, 0)])
    yield "elf loaded there", loaded_at(base)


def loaded_at(address: int) -> bytes:
    """An executable whose segments are all at this address."""
    data = bytearray(elf_with_instr_map([("main", 0x2000, [ENTER])]))
    (headers,), (n,) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<H", data, 56)
    for nth in range(n):
        if struct.unpack_from("<I", data, headers + 56 * nth)[0] == 1:
            struct.pack_into("<Q", data, headers + 56 * nth + 16, address)
    return bytes(data)


@pytest.mark.parametrize("base", BASES, ids=hex)
def test_any_addresses(base: int) -> None:
    for name, data in sources(base):
        source = Source(name, memoryview(data))
        symbols: Symbols = open_symbols(source)
        found = symbols.lookup(np.array(ADDRESSES, np.uint64))
        assert len(found.start) == len(ADDRESSES), name
        asked = [np.array(ADDRESSES, np.uint64)]
        (as_json,) = lookup_json(symbols, source, asked, Demangler())
        assert len(as_json.splitlines()) == len(ADDRESSES), name
        assert list(lookup_text(symbols, source, asked, Demangler())), name
        _, differences = verify(symbols, open_symbols(source), Demangler())
        assert not differences, name
