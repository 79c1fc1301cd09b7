"""XRay: basic mode, flight data recorder mode, and the binary that names its functions."""

from __future__ import annotations

import math

from builders.xray import Basic, Fdr, elf_with_instr_map

from growth_cases.case import CONVERTED, Case, converted


def xray_log(records: list[bytes]) -> bytes:
    log = Fdr()
    return log.buffer(7, 7, (1_363, 0), [log.new_cpu(0, 1000), *records]).bytes()


def xray_threads(n: int) -> bytes:
    log = Fdr()
    for tid in range(1, n + 1):
        log.buffer(tid, 7, (1_363, 0), [log.new_cpu(0, 1000 + tid), log.enter(1, 0), log.exit(1, 50)])
    return log.bytes()


def xray_processes(n: int) -> bytes:
    log = Fdr()
    for pid in range(1, n + 1):
        log.buffer(pid, pid, (1_363, 0), [log.new_cpu(0, 1000 + pid), log.enter(1, 0), log.exit(1, 50)])
    return log.bytes()


def xray_depth(n: int) -> bytes:
    log = Fdr()
    calls = [log.enter(1 + k % 7, 10) for k in range(n)] + [log.exit(1 + k % 7, 10) for k in reversed(range(n))]
    return xray_log(calls)


def xray_functions(n: int) -> bytes:
    log = Fdr()
    return xray_log([record for k in range(1, n + 1) for record in (log.enter(k, 10), log.exit(k, 10))])


def xray_markers(n: int) -> bytes:
    log = Fdr()
    return xray_log([log.custom(b"event %d" % k, tsc=2000 + k) for k in range(n)])


def xray_leaves(n: int) -> bytes:
    """Calls that began before the recording."""
    log = Fdr()
    return xray_log([log.exit(1 + k % 999, 10) for k in range(n)])


def xray_buffers(n: int) -> bytes:
    """Threads, each with as many buffers as there are threads: both grow as the root."""
    log, side = Fdr(), math.isqrt(n)
    for k in range(n):
        records = [log.new_cpu(k % 8, 1000 + 1000 * k), log.enter(1, 0), log.exit(1, 50)]
        log.buffer(1 + k % side, 7, (1_363, 0), records)
    return log.bytes()


def xray_basic(n: int) -> bytes:
    """Calls of threads whose number grows as the root."""
    log, side = Basic(), math.isqrt(n)
    for k in range(n):
        log.enter(1 + k % 99, 1000 + 10 * k, 1 + k % side, 7).exit(1 + k % 99, 1005 + 10 * k, 1 + k % side, 7)
    return log.bytes()


def xray_binary(n: int) -> bytes:
    functions = [
        (f"_Z{len(str(k)) + 1}f{k}v", at, [(0, at), (1, at + 32)])
        for k, at in enumerate(range(0x10_0000, 0x10_0000 + 64 * n, 64))
    ]
    return elf_with_instr_map(functions)


CASES = [
    Case("xray: threads", "xray", 50, xray_threads, CONVERTED),
    Case("xray: processes", "xray", 50, xray_processes, CONVERTED),
    Case("xray: depth", "xray", 20_000, xray_depth, CONVERTED),
    Case("xray: functions", "xray", 4_000, xray_functions, CONVERTED),
    Case("xray: markers", "xray", 4_000, xray_markers, CONVERTED),
    Case("xray: leaves without enters", "xray", 40_000, xray_leaves, CONVERTED),
    Case("xray: threads x buffers", "xray", 2_000, xray_buffers, CONVERTED),
    Case("xray: basic", "xray", 10_000, xray_basic, CONVERTED),
    Case("xray: symbols", "xray", 1_000, xray_functions, converted("--symbols", "app"), {"app": xray_binary}),
]
