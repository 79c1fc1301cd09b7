"""Fuzzes jitdumps with samply's extensions, and options. Run by `make fuzz`.

Seeds are dumps that the tests' builder makes, of each kind of record alone and of all together, and the beginnings of
the small fixtures.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from common import MAX_SEED, ROOT, run

sys.path.insert(0, str(ROOT / "tests"))

from builders.jitdump import V8_FREED, Function, Inlined, JitDump
from options import WithOptions

if TYPE_CHECKING:
    from traceferry.reading import ImportContext

CODE = 0x7F00_0000_1000
FILE = "/home/dev/long-enough/a.js"


def built() -> Iterator[tuple[str, JitDump]]:
    """A dump for each kind of record."""
    entries = [(CODE, 3, 7, FILE), (CODE + 4, 4, 2, FILE), (CODE + 8, 5, 1, "/b.js")]
    tree = [Inlined(Function("g", "/b.js", 5), (2, 4), [(4, 8)], [Inlined(Function("h", "/a.js"), (6, 1), [(6, 2)])])]
    name = f"JS:*f {FILE}:3:7"
    for order in "<>":
        for v8 in (False, True):

            def new(order: str = order, v8: bool = v8) -> JitDump:
                return (JitDump.v8 if v8 else JitDump)(version=2, byte_order=order)

            tag = f"{'big' if order == '>' else 'little'}{'-v8' if v8 else ''}"
            yield f"lines-{tag}", new().debug_info(CODE, entries).load(name, CODE)
            yield f"same-file-{tag}", new().debug_info(CODE, entries, same_file_marker=True).load("f", CODE)
            freed = new().debug_info(CODE, entries[:2], freed=V8_FREED)
            yield f"freed-{tag}", freed.load(name, CODE)
            # What V8 has of its bytecode, and a table of machine code beside it.
            bytecode = [(CODE + 4 * row, row, 1, FILE) for row in range(12)]
            both = new().debug_info(CODE, bytecode, freed=V8_FREED).load(f"JS:^f {FILE}:3:7", CODE, 60)
            both.debug_info(CODE, bytecode[:9]).load("JS:^f :1:18", CODE, 60)
            yield f"bytecode-{tag}", both.debug_info(CODE + 64, [(CODE + 64, 2, 2, "/b.js")]).load(name, CODE + 64)
            ticks = JitDump(version=1, byte_order=order, flags=1, timestamp=5).load("f", CODE, ts=7)
            yield f"ticks-{tag}", ticks.load("g", CODE + 8, ts=9).move(CODE + 8, CODE + 64, ts=11)
            moves = new().load(name, CODE).load("g", CODE + 64).move(CODE, CODE + 60).move(CODE + 60, CODE, index=9)
            yield f"moves-{tag}", moves.load("h", CODE + 8).close()
            lines_a = [(0, "/a.js", 1, 0), (4, "/b.js", 6, 1)]
            yield f"a-{tag}", new().inline_tree_a(Function("f", "/a.js", 1), lines_a, tree).load("f", CODE)
            stacks = {4: [("f", "/a.js", 1, 2)], 8: [("f", "/a.js", 1, 2), ("map", None, 0, 0)]}
            yield f"b-{tag}", new().inline_stacks_b(CODE, stacks).load("f", CODE)  # type: ignore[arg-type]
            deep = [(nth - 1, 0, 1, 0, 0, nth + 1, 1) for nth in range(132)]
            chain = new().debug_info2_b(CODE, [(0, 131), (4, 127), (8, 1)], deep, ["f", "/a.js"])
            yield f"chain-{tag}", chain.load("f", CODE)
            c = new().inline_info_c(CODE, [(1, 1, "f", "/a.js")]).inline_info_c(CODE + 4, [(2, 3, "g", "/b.js")] * 2)
            yield f"c-{tag}", c.load("f", CODE)
            tiers = new().tier(1, 5, "Fast").load("f", CODE).tier(1, 99, "").load(name, CODE + 64)
            sources = tiers.source("/a.js", "old").debug_info(CODE, entries).load("g", CODE).source("/a.js", "new")
            yield f"tiers-{tag}", sources.source("/b.js", "text", nul_terminated_variant=True).unwinding().unknown()


def options_of(context: ImportContext, choice: int) -> ImportContext:
    """Sources of this project's folder or none, and now and then a counter that converts time stamps."""
    from traceferry.timeline.ticks import Counter

    counter = Counter(choice >> 3 & 63, choice, choice << 32) if choice >> 9 & 1 else None
    return context._replace(embed_sources=[str(ROOT)] if choice >> 10 & 1 else [], counter=counter)


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.files.source import open_source

    together = JitDump().bytes()
    for name, dump in built():
        yield name, dump.bytes()
        if "little" in name and "chain" not in name:
            together += dump.bytes()[40:]
    yield "all", together
    for path in sorted((ROOT / "fixtures" / "jit").glob("*/*.dump.zst")):
        data = bytes(open_source(str(path)).data)
        for size in (400, 1500, MAX_SEED):
            yield f"{path.parent.name}-{path.name}-{size}", data[:size]


if __name__ == "__main__":
    run("jitdump", seeds, lambda importer: WithOptions(importer, options_of))
