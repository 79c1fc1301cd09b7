"""Logs of Mono's profiler."""

from __future__ import annotations

import math
from functools import partial

from builders import mono
from builders.mono import Counter, Log

from growth_cases.case import CONVERTED, Case

METHOD, CLASS, VTABLE, OBJECT = 0x10000, 0x200000, 0x4000000, 0x10000000


def mono_threads(n: int) -> bytes:
    log = Log(17, 8).buffer().jit(METHOD, "Run")
    for tid in range(1, n + 1):
        log.buffer(tid).enter(METHOD).leave(METHOD)
    return log.bytes()


def mono_depth(n: int) -> bytes:
    log = Log(17, 8).buffer().jit(METHOD, "Run")
    for _ in range(n):
        log.enter(METHOD)
    for _ in range(n):
        log.leave(METHOD)
    return log.bytes()


def mono_functions(n: int) -> bytes:
    log = Log(17, 8).buffer()
    for k in range(n):
        log.jit(METHOD + 16 * k, f"Method{k}").enter(METHOD + 16 * k).leave(METHOD + 16 * k)
    return log.bytes()


def mono_vtables(n: int) -> bytes:
    log = Log(17, 8).buffer()
    for k in range(n):
        log.class_(CLASS + 64 * k, f"Class{k}").vtable(VTABLE + 64 * k, CLASS + 64 * k)
    return log.bytes()


def mono_exceptions(n: int) -> bytes:
    log = Log(17, 8).buffer()
    for k in range(n):
        log.throw(OBJECT + 64 * k)
    return log.bytes()


def mono_markers(n: int) -> bytes:
    """Locks, and domains that come and go."""
    log = Log(17, 8).buffer()
    for k in range(n):
        log.monitor(mono.CONTENTION, OBJECT + 64 * (k % 99)).monitor(mono.DONE, OBJECT + 64 * (k % 99))
        log.domain(k + 1).domain_name(k + 1, f"domain {k}").domain_unload(k + 1)
    return log.bytes()


def mono_counters(n: int) -> bytes:
    counters = [Counter(k, f"counter {k}") for k in range(1, n + 1)]
    log = Log(17, 8).buffer().counters_desc(counters)
    for moment in range(4):
        log.counters({k: 10 * moment + k for k in range(1, n + 1)}, ms=10 * moment)
    return log.bytes()


def mono_snapshots(n: int, in_one_buffer: bool = False) -> bytes:
    """By default, a buffer for each, as Mono writes them around collections."""
    log = Log(17, 8).buffer().class_(CLASS, "Node").vtable(VTABLE, CLASS)
    for _ in range(n):
        (log if in_one_buffer else log.buffer()).heap_start()
        for k in range(20):
            log.heap_object(OBJECT + 64 * k, VTABLE, 32, [(16, OBJECT + 64 * (k + 1))] if k < 19 else [])
        log.heap_end()
    return log.bytes()


def mono_objects(n: int) -> bytes:
    """A list, each element of which keeps all that follow."""
    log = Log(17, 8).buffer().class_(CLASS, "Node").vtable(VTABLE, CLASS).heap_start()
    for k in range(n):
        log.heap_object(OBJECT + 64 * k, VTABLE, 32, [(16, OBJECT + 64 * (k + 1))] if k < n - 1 else [])
    return log.heap_end().bytes()


def mono_allocations(n: int) -> bytes:
    """Of objects that all move with each of a few collections, from sites of their own."""
    log = Log(17, 8).buffer().class_(CLASS, "Node").vtable(VTABLE, CLASS).jit(METHOD, "Run")
    for k in range(1, n + 1):
        log.jit(METHOD + 16 * k, f"Method{k}")
    for k in range(n):
        log.alloc(VTABLE, OBJECT + 64 * k, 32, [METHOD, METHOD + 16 * (k + 1)])
    for nth in range(3):
        log.gc_event(mono.GC_START).gc_move([(at, at + 8) for at in range(OBJECT + 8 * nth, OBJECT + 64 * n, 64)])
        log.gc_event(mono.GC_END)
    return log.bytes()


def mono_samples(n: int) -> bytes:
    log = Log(17, 8).buffer().jit(METHOD, "Run", 0x40000000, 1 << 20)
    for k in range(n):
        log.sample(mono.MAIN, [0x40000000 + k % (1 << 20)], [METHOD], offsets=[(k % 99, 1)])
    return log.bytes()


def mono_threads_and_collections(n: int) -> bytes:
    """Both grow as the root, so that their product grows as n."""
    side = math.isqrt(n)
    log = Log(13, 8).buffer()
    for k in range(side):
        log.buffer(100 + k).alloc(VTABLE, OBJECT + 64 * k, 32)
    log.buffer()
    for _ in range(side):
        for event in range(8):
            log.gc_event(event)
    return log.bytes()


def mono_threads_and_records(n: int) -> bytes:
    """Each thread has as many buffers as there are threads."""
    side = math.isqrt(n)
    log = Log(17, 8).buffer().jit(METHOD, "Run")
    for k in range(n):
        log.buffer(100 + k % side).enter(METHOD).leave(METHOD)
    return log.bytes()


CASES = [
    Case("mono: threads", "mlpd", 50, mono_threads, CONVERTED),
    Case("mono: depth", "mlpd", 20_000, mono_depth, CONVERTED),
    Case("mono: functions", "mlpd", 2_000, mono_functions, CONVERTED),
    Case("mono: vtables", "mlpd", 2_000, mono_vtables, CONVERTED),
    Case("mono: uncaught exceptions", "mlpd", 4_000, mono_exceptions, CONVERTED),
    Case("mono: markers", "mlpd", 2_000, mono_markers, CONVERTED),
    Case("mono: counters", "mlpd", 1_000, mono_counters, CONVERTED),
    Case("mono: heap snapshots", "mlpd", 50, mono_snapshots, CONVERTED),
    Case("mono: heap snapshots in one buffer", "mlpd", 50, partial(mono_snapshots, in_one_buffer=True), CONVERTED),
    Case("mono: objects", "mlpd", 20_000, mono_objects, CONVERTED),
    Case("mono: allocations", "mlpd", 2_000, mono_allocations, CONVERTED),
    Case("mono: samples", "mlpd", 20_000, mono_samples, CONVERTED),
    Case("mono: threads x collections", "mlpd", 1_000, mono_threads_and_collections, CONVERTED),
    Case("mono: threads x records", "mlpd", 2_000, mono_threads_and_records, CONVERTED),
]
