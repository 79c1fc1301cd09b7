"""The time that a log takes grows as the log, whatever it is that there are many of."""

from collections.abc import Callable
from time import process_time

import pytest
from builders import mono

import traceferry
from traceferry.io.source import Source
from traceferry.registry import Options, importer_named


def vtables(n: int) -> mono.Log:
    log = mono.Log(17).buffer()
    for nth in range(n):
        log.class_(0x100000 + 16 * nth, f"C{nth}").vtable(0x900000 + 16 * nth, 0x100000 + 16 * nth, 1)
    return log


def uncaught_exceptions(n: int) -> mono.Log:
    log = mono.Log(17).buffer().jit(0x500, "A:f ()")
    for nth in range(n):
        log.throw(0x10000 + 8 * nth)
    for nth in range(n):
        log.clause(mono.CATCH, 0x500, 0, 0x9000000 + 8 * nth)
    return log


def threads_and_collections(n: int) -> mono.Log:
    """n threads that allocate before and after 10 n collections."""
    log = mono.Log(17)
    for base in (0x10000, 0x900000):
        for nth in range(n):
            log.buffer(0x7000 + 16 * nth).alloc(0x2000, base + 64 * nth, 24)
        for _ in range(10 * n if base == 0x10000 else 0):
            log.gc_event(mono.GC_START).gc_event(mono.GC_END).gc_event(mono.PRE_START_WORLD)
    return log


@pytest.mark.parametrize(("make", "n"), [(vtables, 4000), (uncaught_exceptions, 1500), (threads_and_collections, 60)])
def test_four_times_the_log_takes_less_than_eight_times_as_long(make: Callable[[int], mono.Log], n: int) -> None:
    def seconds(log: bytes) -> float:
        began = process_time()
        trace = traceferry.Trace()
        importer_named("mono").module.read([Source("app.mlpd", memoryview(log))]).add_to(trace, Options())
        for _, thread in trace.threads:
            thread.load()
        return process_time() - began

    once, four = make(n).bytes(), make(4 * n).bytes()
    seconds(once)
    assert min(seconds(four) for _ in range(2)) < 8 * min(seconds(once) for _ in range(2))
