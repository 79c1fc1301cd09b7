"""Fuzzes the conversion of XRay logs and profiles, with programs and options. Run by `make fuzz`.

Seeds are the small fixtures, and their first kilobytes, and profiles of both byte orders.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from common import MAX_SEED, ROOT, run

sys.path.insert(0, str(ROOT / "tests"))

from builders.xray import Profile, elf_with_instr_map
from options import WithOptions, symbol_files

if TYPE_CHECKING:
    from traceferry.reading import ImportContext

ENTER, EXIT = 0, 1
PROGRAMS = [
    elf_with_instr_map([(f"_Z1fi{k}", at, [(ENTER, at), (EXIT, at + 32)]) for k, at in enumerate(starts)])
    for starts in (range(0x10_0000, 0x10_0400, 64), [0x20_0000])
]
FREQUENCIES = [None, None, 1, 2_596_120_000]
OTHERS = symbol_files("app")


def options_of(context: ImportContext, choice: int) -> ImportContext:
    """One program, two, or none; now and then symbols that have no functions of XRay, which are refused."""
    from traceferry.files.source import Source

    chosen = [data for nth, data in enumerate(PROGRAMS) if choice >> 5 + nth & 1]
    if choice >> 7 & 15 == 0:
        chosen.append(OTHERS[choice >> 11 & 3])
    symbols = [Source(f"app{nth}", memoryview(data)) for nth, data in enumerate(chosen)]
    frequency = FREQUENCIES[choice >> 13 & 3]
    return context._replace(symbols=symbols, options=replace(context.options, cycle_frequency=frequency))


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.files.source import open_source

    paths = [((1,), 0, 0), ((2, 1), 7, 400), ((1,), 1, 9), ((3, 2), 4, -30), ((), 1, 5), ((4, 3, 2, 1), 1, 5)]
    for big in (False, True):
        yield f"profile-{big}", Profile(big, pid=5).block(5, paths).block(6, paths[:2]).bytes()
    for path in sorted((ROOT / "fixtures" / "xray").rglob("*.xray*")):
        if path.suffix in (".xray", ".zst"):
            data = bytes(open_source(str(path)).data)
            for size in (200, 1000, MAX_SEED):
                yield f"{path.name}-{size}", data[:size]


if __name__ == "__main__":
    run("xray", seeds, lambda importer: WithOptions(importer, options_of))
