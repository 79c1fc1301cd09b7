"""Fuzzes the conversion of recordings of the Mono log profiler, with options. Run by `make fuzz`.

Seeds are recordings that the tests' builder makes, every event in the versions whose layouts differ and with both sizes
of pointers, and the beginnings of the small fixtures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from common import MAX_SEED, ROOT, run

sys.path.insert(0, str(ROOT / "tests"))

from builders import mono
from builders.mono import Counter, Log
from options import WithOptions

if TYPE_CHECKING:
    from traceferry.reading import ImportContext

# Whose layouts differ, and some between.
VERSIONS = (1, 2, 3, 4, 5, 6, 8, 10, 11, 13, 14, 15, 16, 17)
OTHER = 0x7F20
MAIN, INNER = 0x500, 0x540
TEXT, LIST = 0x2000, 0x2100
NURSERY, HEAP = 0x10000, 0x900000


# ---------------------------------------------------------------- stories


def calls(log: Log) -> Log:
    """A method that is jitted twice, calls of three threads' worth, an exception, clauses, a lock."""
    log.buffer().thread_name(mono.MAIN, "Main").jit(MAIN, "A:Main ()").jit(INNER, "(wrapper x) B:f ()", 0x40000100)
    log.enter(MAIN).enter(INNER).leave(INNER).enter(INNER).enter(0x580).throw(NURSERY).throw(NURSERY, [MAIN, INNER])
    log.clause(mono.CATCH, MAIN, 1, NURSERY).clause(mono.FINALLY, INNER).exc_leave(0x580).exc_leave(INNER)
    log.monitor(mono.CONTENTION, NURSERY, [MAIN]).monitor(mono.DONE, NURSERY).jit(INNER, "C:g ()", 0x40000100)
    log.enter(INNER).leave(MAIN).leave(MAIN)
    log.buffer(OTHER).enter(MAIN).monitor(mono.CONTENTION, NURSERY).monitor(mono.FAIL, NURSERY)
    if log.supports("monitor backtrace"):
        log.monitor(mono.DONE, NURSERY, [MAIN])
    if log.supports("thread load"):
        log.thread_unload(OTHER).thread(OTHER).buffer(OTHER).enter(INNER)
    return log


def allocations(log: Log) -> Log:
    """Objects that move, live in a heap shot, and die; handles and finalizers."""
    log.buffer().type_(TEXT, "System.String").type_(LIST, "List").jit(MAIN, "A:Main ()").enter(MAIN)
    log.alloc(TEXT, NURSERY, 24).alloc(LIST, NURSERY + 24, 40, [MAIN, INNER]).alloc(0x2222, NURSERY + 64, 9000)
    log.gc_event(mono.PRE_STOP_WORLD).gc_event(mono.POST_STOP_WORLD).gc_event(mono.GC_START)
    if log.supports("gc phases"):
        log.gc_event(mono.MARK_START).gc_event(mono.MARK_END)
    log.gc_move([(NURSERY, HEAP), (NURSERY + 24, HEAP + 24)]).gc_event(mono.GC_END).gc_resize(1 << 22)
    log.gc_event(mono.PRE_START_WORLD).gc_event(mono.POST_START_WORLD).alloc(TEXT, NURSERY, 32)
    log.handle_created(mono.PINNED, 0x30, HEAP).handle_destroyed(mono.PINNED, 0x30)
    if log.supports("handle backtrace"):
        log.handle_created(mono.WEAK, 0x31, HEAP, [MAIN]).handle_destroyed(mono.WEAK, 0x31, [MAIN])
    if log.supports("finalize"):
        log.finalize_start().finalize_object_start(HEAP).finalize_object_end(HEAP).finalize_end()
    shot(log)
    return log.gc_event(mono.GC_START, 1).gc_move([(HEAP, HEAP + 8)]).gc_event(mono.GC_END, 1)


def shot(log: Log) -> Log:
    """Two heap shots: references, one object in two records, roots of the version's kind."""
    log.buffer().type_(TEXT, "System.String").type_(LIST, "List")
    for _ in range(2):
        log.heap_start().heap_object(HEAP, TEXT, 24).heap_object(HEAP + 24, LIST, 40, [(16, HEAP), (24, HEAP + 24)], 1)
        log.heap_object(HEAP + 24, LIST, 0, [(32, HEAP + 64)])
        if log.supports("roots by kind"):
            log.roots_by_kind([(HEAP, 1, 5), (HEAP + 24, 0x200, 0)], 2)
        if log.supports("root region"):
            log.root_register(0x7000, 64, mono.STATIC, 0x1234, "C").roots_by_address([(0x7008, HEAP), (0x8000, HEAP)])
            log.root_unregister(0x7000)
        log.heap_end()
    return log


def samples(log: Log) -> Log:
    """With managed frames and without, in jitted code, native code and helpers."""
    log.buffer().jit(MAIN, "A:Main ()").jit(INNER, "B:f ()", 0x40000100)
    if log.supports("jit helper"):
        log.jit_helper(mono.HELPER, 0x50000000, 64).jit_helper(mono.SPECIFIC_TRAMPOLINE, 0x50000040, 64, "name")
    if log.supports("sample"):
        log.native_symbol(0x60000000, "poll", 16).sample(mono.MAIN, [0x60000004, 0x40000110, 0x40000000])
        log.sample(OTHER, [0x50000001, 0x12], ts=log.now - 500)
    if log.supports("native binary"):
        log.native_binary(0x61000000, "/lib/libc.so", 0x1000, 0x2000).sample(mono.MAIN, [0x61000010])
    if log.supports("managed frames"):
        log.sample(mono.MAIN, [0x40000110], [INNER, MAIN], offsets=[(1, 2), (3, 4)]).sample(OTHER, [], [0x999])
    return log


def counters(log: Log) -> Log:
    """Of every type; the first values come before their description."""
    if not log.supports("counters"):
        return log
    late = Counter(1, "methods", mono.INT, section=mono.JIT_SECTION)
    types = (mono.UINT, mono.WORD, mono.LONG, mono.ULONG, mono.DOUBLE, mono.STRING, mono.INTERVAL)
    log.buffer().counters({1: 5}, undescribed=[late])
    others = [Counter(2 + type_, f"c{type_}", type_, mono.TIME) for type_ in types]
    log.counters_desc([late, *others, Counter(12, "faults", mono.LONG, section=mono.PERF_SECTION, section_name="P")])
    for value in (7, 3):
        numbers = {2 + type_: value for type_ in types if type_ not in (mono.DOUBLE, mono.STRING)}
        log.counters({1: value, **numbers, 2 + mono.DOUBLE: value / 2, 2 + mono.STRING: "text", 12: value}, ms=value)
    return log.counters({2 + mono.STRING: None, 1: -value})


def metadata(log: Log) -> Log:
    """Loads, unloads and names of everything; coverage, sync points, the id of compiled code."""
    log.buffer().class_(TEXT, "T").image(0x1000, "a.dll", "mvid")
    if log.supports("class unload"):
        log.class_unload(TEXT, "T")
    if log.supports("image unload"):
        log.image_unload(0x1000, "a.dll")
    if log.supports("domain"):
        log.assembly(0x1100, "a").assembly_unload(0x1100, "a").domain(1).domain_name(1, "root").context(0x1200, 1)
        log.context_unload(0x1200, 1).domain_unload(1).thread(OTHER).thread_unload(OTHER)
    if log.supports("vtable"):
        log.vtable(LIST, TEXT, 1)
    if log.supports("coverage"):
        log.coverage_assembly("a", "guid", "a.dll", 2, 1, 1).coverage_class("a", "C", 2, 1, 1)
        log.coverage_method("a", "C", "m", "()", "/c.cs", 0x6000001, 1, 2)
        log.coverage_statement(1, 0, 3, 10, 5).coverage_statement(1, 8, 0, 11, 5)
    if log.supports("sync point"):
        log.sync_point(mono.WORLD_STOP)
    if log.supports("aot id"):
        log.aot_id("AOT")
    return log


STORIES: tuple[Callable[[Log], Log], ...] = (calls, allocations, shot, samples, counters, metadata)


def built() -> Iterator[tuple[str, Log]]:
    """A recording for each story, and one of all of them."""
    for version in VERSIONS:
        for pointer_size in (4, 8):
            tag = f"{version}-{pointer_size}"
            together = Log(version, pointer_size)
            for story in STORIES:
                yield f"{story.__name__}-{tag}", story(Log(version, pointer_size))
                story(together)
            yield f"all-{tag}", together
    yield "all-hybrid", counters(samples(calls(Log(15, hybrid=True))))


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.files.source import open_source

    for name, log in built():
        yield name, log.bytes()
    for path in sorted((ROOT / "fixtures" / "mono").rglob("*.mlpd*")):
        recorded = bytes(open_source(str(path)).data)
        for size in (1500, MAX_SEED):
            yield f"{path.name}-{size}", recorded[:size]


def adding_calls(context: ImportContext, choice: int) -> ImportContext:
    return context._replace(options=replace(context.options, adds_calls=choice & 1 == 1))


if __name__ == "__main__":
    run("mono", seeds, lambda importer: WithOptions(importer, adding_calls))
