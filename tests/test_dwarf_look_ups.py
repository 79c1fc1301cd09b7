"""Look-ups of many addresses in the units of a file: together, and one address at a time."""

from collections.abc import Sequence

import numpy as np
import pytest
from builders.dwarf import HIGH_PC, LOW_PC, NAME, SUBPROGRAM, Die, Dwarf, Symbol, die

from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.elf import ElfSymbols


def function(name: str, low: int, size: int = 0x10) -> Die:
    return die(SUBPROGRAM, {NAME: name, LOW_PC: low, HIGH_PC: size})


def with_units(dwarf: Dwarf) -> Dwarf:
    """Three units with a function of 16 bytes each, at 0x1000, 0x1100 and 0x1200; the last does not say where its code
    is."""
    for name, low in (("one", 0x1000), ("two", 0x1100)):
        lines = dwarf.lines([(low, 0, 10), (low + 4, 1, 20)], end=0x10)
        dwarf.unit(function(name, low), low_pc=low, high_pc=0x10, stmt_list=lines)
    return dwarf.unit(function("three", 0x1200), stmt_list=dwarf.lines([(0x1200, 0, 30)], end=0x10))


def answers(symbols: ElfSymbols, addresses: Sequence[int]) -> list[list[tuple[str, str, int]]]:
    """Returns (name, source, line) of the frames at each address."""
    found = symbols.lookup(np.array(addresses, np.uint64))
    texts = [*found.texts, ""]
    columns = zip(found.name.tolist(), found.source.tolist(), found.line.tolist(), strict=True)
    frames = [(texts[name], texts[source], line) for name, source, line in columns]
    return [frames[begin:end] for begin, end in zip(found.first[:-1], found.first[1:], strict=True)]


def symbols_of(data: bytes, *, together: bool = True) -> ElfSymbols:
    symbols = ElfSymbols(Binary(Source("app", memoryview(data))))
    if not together:
        symbols._dwarf.__dict__["_bulk"] = None
    return symbols


@pytest.mark.parametrize("together", [True, False])
def test_addresses_in_several_units_have_their_frames_in_any_order(together: bool) -> None:
    found = answers(symbols_of(with_units(Dwarf()).elf(), together=together), [0x1208, 0x1104, 0x1003, 0x1100, 0x1010])
    assert found == [
        [("three", "/src/a.cc", 30)], [("two", "/src/b.h", 20)], [("one", "/src/a.cc", 10)],
        [("two", "/src/a.cc", 10)], [],
    ]  # fmt: skip


@pytest.mark.parametrize("together", [True, False])
def test_of_a_damaged_unit_there_are_the_symbols_and_of_the_others_the_frames(together: bool) -> None:
    dwarf = with_units(Dwarf())
    info = bytearray(dwarf.sections[".debug_info"])
    info[info.index(b"two\0") - 1] = 0x7F
    dwarf.sections[".debug_info"] = bytes(info)
    symbols = symbols_of(dwarf.elf([Symbol("second", 0x1100, 0x10)]), together=together)
    assert answers(symbols, [0x1000, 0x1104, 0x1200]) == [
        [("one", "/src/a.cc", 10)], [("second", "/src/b.h", 20)], [("three", "/src/a.cc", 30)],
    ]  # fmt: skip
    assert len(symbols.problems) == 1


@pytest.mark.parametrize("together", [True, False])
def test_of_code_that_no_unit_says_to_have_only_the_symbol_is_known(together: bool) -> None:
    symbols = symbols_of(with_units(Dwarf()).elf([Symbol("alone", 0x1300, 0x10)]), together=together)
    assert answers(symbols, [0x1204, 0x1304]) == [[("three", "/src/a.cc", 30)], [("alone", "", 0)]]
