"""Dumps of JIT compilers, and several at once."""

from __future__ import annotations

from collections.abc import Iterator

from builders.jitdump import Function, Inlined, JitDump

from growth_cases.case import CODE, CONVERTED, OUTPUT, SEVERAL, TO_GSYM, Case, Run


def jitdump_functions(n: int) -> bytes:
    dump = JitDump()
    for k in range(n):
        dump.load(f"function{k}", CODE + 64 * k)
    return dump.bytes()


def jitdump_depth(n: int) -> bytes:
    """Inlined calls in one another, down to the 128 levels that are read, and a few at each level."""
    dump = JitDump()
    for k in range(max(n // 128, 1)):
        tree: list[Inlined] = []
        for level in reversed(range(128)):
            tree = [Inlined(Function(f"f{level}", "/a.js", level), (level, 1), [(level, 512 - level)], tree)]
        lines = [(offset, "/a.js", offset, 0) for offset in range(512)]
        dump.inline_tree_a(Function("f", "/a.js"), lines, tree).load(f"outer{k}", CODE + 1024 * k, 512)
    return dump.bytes()


def jitdump_lines(n: int) -> bytes:
    """Of one function."""
    entries = [(CODE + 4 * k, k % 5000, 1, f"/{k % 50}.js") for k in range(n)]
    return JitDump().debug_info(CODE, entries).load("f", CODE, 4 * n).bytes()


def jitdump_moves(n: int) -> bytes:
    """Markers, and a place for each, of few functions; the counter of live bytes has as many values."""
    dump = JitDump()
    at = [CODE + (k << 32) for k in range(8)]
    for k, address in enumerate(at):
        dump.load(f"f{k}", address)
    for k in range(n):
        address = at[k % 8]
        dump.move(address, address + 16)
        at[k % 8] += 16
    return dump.bytes()


def jitdump_threads(n: int) -> bytes:
    dump = JitDump()
    for k in range(n):
        dump.load(f"f{k % 99}", CODE + 64 * k, tid=1000 + k)
    return dump.bytes()


def jitdump_again(n: int) -> bytes:
    """Every load replaces the one before."""
    dump = JitDump()
    for k in range(n):
        dump.load(f"f{k % 99}", CODE)
    return dump.bytes()


def jitdumps(n: int) -> Iterator[tuple[str, bytes]]:
    """Of processes."""
    for pid in range(1000, 1000 + n):
        yield f"several-{pid}.dump", JitDump(pid=pid).load("f", CODE).load("g", CODE + 64).bytes()


def jitdump_sources(n: int) -> bytes:
    dump = JitDump(version=2)
    for k in range(n):
        dump.source(f"/{k}.js", f"text {k}\n" * 4).debug_info(CODE + 64 * k, [(CODE + 64 * k, 2, 1, f"/{k}.js")])
        dump.load(f"f{k}", CODE + 64 * k)
    return dump.bytes()


SEVERAL_DUMPS: dict[str, list[str] | Run] = {
    "pftrace": ["convert", SEVERAL, "-o", f"{OUTPUT}.pftrace", "--quiet"],
    "info": ["info", SEVERAL],
}
CASES = [
    Case("jitdump: functions", "dump", 2_000, jitdump_functions, CONVERTED | TO_GSYM),
    Case("jitdump: depth", "dump", 512, jitdump_depth, CONVERTED | TO_GSYM),
    Case("jitdump: lines", "dump", 8_000, jitdump_lines, CONVERTED | TO_GSYM),
    Case("jitdump: markers", "dump", 8_000, jitdump_moves, CONVERTED),
    Case("jitdump: sources", "dump", 1_000, jitdump_sources, CONVERTED),
    Case("jitdump: threads", "dump", 500, jitdump_threads, CONVERTED),
    Case("jitdump: code replaced", "dump", 6_000, jitdump_again, CONVERTED),
    Case("jitdump: processes", "dump", 50, jitdump_threads, SEVERAL_DUMPS, several=jitdumps),
]
