"""How CPU time and memory grow with what a recording holds: sizes x, 4x and 16x, for each importer, each exporter
and `info`.

    python benchmarks/growth.py [PART...]

PART: only the cases whose name contains it. An exponent of 1 is proportional growth, 2 is quadratic. What a run with
one element costs is subtracted; a case that takes less than NOTICEABLE at 16x has no exponent. The exit status is 1
if an exponent of CPU time is above LIMIT."""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from common import MB, TRACEFERRY, WORK, Command, convert, measure, note

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from builders.jitdump import JitDump
from builders.mono import Counter, Log
from builders.perf_data import PerfData
from builders.xray import Fdr

LIMIT = 1.1
NOTICEABLE = 0.25  # seconds
MEMORY_NOTICEABLE = 16 * MB
FACTORS = (1, 4, 16)
START = 1_000_000_000
METHOD, CLASS, VTABLE, OBJECT = 0x10000, 0x200000, 0x4000000, 0x10000000
CODE = 0x7F00_0000_0000
OUTPUTS = ("json.gz", "gecko.json", "pftrace", "info")


class Case(NamedTuple):
    name: str
    suffix: str
    x: int
    make: Callable[[int], bytes]


# ---------------------------------------------------------------- XRay


def xray_threads(n: int) -> bytes:
    log = Fdr()
    for tid in range(1, n + 1):
        log.buffer(tid, 7, (1_363, 0), [log.new_cpu(0, 1000 + tid), log.enter(1, 0), log.exit(1, 50)])
    return log.bytes()


def xray_depth(n: int) -> bytes:
    log = Fdr()
    calls = [log.enter(1 + k % 7, 10) for k in range(n)] + [log.exit(1 + k % 7, 10) for k in reversed(range(n))]
    return log.buffer(7, 7, (1_363, 0), [log.new_cpu(0, 1000), *calls]).bytes()


def xray_functions(n: int) -> bytes:
    log = Fdr()
    calls = [record for k in range(1, n + 1) for record in (log.enter(k, 10), log.exit(k, 10))]
    return log.buffer(7, 7, (1_363, 0), [log.new_cpu(0, 1000), *calls]).bytes()


def xray_markers(n: int) -> bytes:
    log = Fdr()
    events = [log.custom(b"event %d" % k, tsc=2000 + k) for k in range(n)]
    return log.buffer(7, 7, (1_363, 0), [log.new_cpu(0, 1000), *events]).bytes()


# ---------------------------------------------------------------- Mono


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


def mono_counters(n: int) -> bytes:
    counters = [Counter(k, f"counter {k}") for k in range(1, n + 1)]
    log = Log(17, 8).buffer().counters_desc(counters)
    for moment in range(4):
        log.counters({k: 10 * moment + k for k in range(1, n + 1)}, ms=10 * moment)
    return log.bytes()


def mono_snapshots(n: int) -> bytes:
    log = Log(17, 8).buffer().class_(CLASS, "Node").vtable(VTABLE, CLASS)
    for _ in range(n):
        log.heap_start()
        for k in range(20):
            log.heap_object(OBJECT + 64 * k, VTABLE, 32, [(16, OBJECT + 64 * (k + 1))] if k < 19 else [])
        log.heap_end()
    return log.bytes()


def mono_objects(n: int) -> bytes:
    log = Log(17, 8).buffer().class_(CLASS, "Node").vtable(VTABLE, CLASS).heap_start()
    for k in range(n):
        log.heap_object(OBJECT + 64 * k, VTABLE, 32, [(16, OBJECT + 64 * (k + 1))] if k < n - 1 else [])
    return log.heap_end().bytes()


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


# ---------------------------------------------------------------- jitdump and perf.data


def jitdump_functions(n: int) -> bytes:
    dump = JitDump()
    for k in range(n):
        dump.load(f"function{k}", CODE + 64 * k)
    return dump.bytes()


def perf_threads(n: int) -> bytes:
    data = PerfData(start=START).event().comm(7, 7, "app", ts=0)
    for tid in range(7, 7 + n):
        data.comm(7, tid, f"thread {tid}").sample(7, tid, None, CODE, [CODE])
    return data.bytes()


def perf_processes(n: int) -> bytes:
    data = PerfData(start=START).event()
    for pid in range(7, 7 + n):
        data.comm(pid, pid, f"process {pid}").mmap2(pid, pid, CODE, 1 << 16, 0, "/lib/libx.so")
        data.sample(pid, pid, None, CODE, [CODE, CODE + 16])
    return data.bytes()


def perf_mappings(n: int) -> bytes:
    data = PerfData(start=START).event().comm(7, 7, "app", ts=0)
    for k in range(n):
        at = CODE + (k << 16)
        data.mmap2(7, 7, at, 1 << 16, 0, f"/lib/lib{k}.so").sample(7, 7, None, at, [at])
    return data.bytes()


def perf_addresses(n: int) -> bytes:
    data = PerfData(start=START).event().comm(7, 7, "app", ts=0).mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    for k in range(n):
        data.sample(7, 7, None, CODE + 16 * k, [CODE + 16 * k])
    return data.bytes()


def perf_depth(n: int) -> bytes:
    """Stacks of 100 frames that all differ from each other near their root."""
    data = PerfData(start=START).event().comm(7, 7, "app", ts=0).mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    for k in range(n):
        data.sample(7, 7, None, CODE, [CODE + 16 * j for j in range(100)] + [CODE + 4096 * k])
    return data.bytes()


def perf_switches(n: int) -> bytes:
    data = PerfData(start=START).event(flags="sample_id_all context_switch").comm(7, 7, "app", ts=0)
    data.sample(7, 7, None, CODE, [CODE])
    for k in range(n):
        data.switch(7, 7, START + 1000 * k, out=bool(k % 2))
    return data.bytes()


CASES = [
    Case("xray: threads", "xray", 500, xray_threads),
    Case("xray: depth", "xray", 4_000, xray_depth),
    Case("xray: functions", "xray", 4_000, xray_functions),
    Case("xray: markers", "xray", 4_000, xray_markers),
    Case("mono: threads", "mlpd", 200, mono_threads),
    Case("mono: depth", "mlpd", 2_000, mono_depth),
    Case("mono: functions", "mlpd", 2_000, mono_functions),
    Case("mono: vtables", "mlpd", 2_000, mono_vtables),
    Case("mono: uncaught exceptions", "mlpd", 1_000, mono_exceptions),
    Case("mono: counters", "mlpd", 1_000, mono_counters),
    Case("mono: heap snapshots", "mlpd", 50, mono_snapshots),
    Case("mono: objects", "mlpd", 4_000, mono_objects),
    Case("mono: threads x collections", "mlpd", 1_000, mono_threads_and_collections),
    Case("jitdump: functions", "dump", 2_000, jitdump_functions),
    Case("perf: threads", "data", 500, perf_threads),
    Case("perf: processes", "data", 500, perf_processes),
    Case("perf: mappings", "data", 1_000, perf_mappings),
    Case("perf: addresses", "data", 4_000, perf_addresses),
    Case("perf: stacks", "data", 500, perf_depth),
    Case("perf: switches", "data", 4_000, perf_switches),
]


def command_for(output: str, source: Path) -> Command:
    return Command([*TRACEFERRY, "info", str(source)]) if output == "info" else convert(source, output)


def exponent(small: float, large: float, base: float, noticeable: float) -> float | None:
    """Of the growth from 4x to 16x; None where the larger is too little to tell."""
    if large - base < noticeable:
        return None
    return math.log((large - base) / max(small - base, noticeable / 16)) / math.log(FACTORS[2] / FACTORS[1])


def shown(value: float | None) -> str:
    return "small" if value is None else f"{value:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="*", help="only cases whose name contains it")
    parts = parser.parse_args().part
    WORK.mkdir(parents=True, exist_ok=True)
    above = []
    print(f"{'':30}{'output':>12}{'CPU s at x, 4x, 16x':>24}{'exponent':>10}{'peak MB':>20}{'exponent':>10}")
    for case in CASES:
        if parts and not any(part in case.name for part in parts):
            continue
        sources = []
        for n in (1, *(factor * case.x for factor in FACTORS)):
            sources.append(WORK / f"growth-{n}.{case.suffix}")
            sources[-1].write_bytes(case.make(n))
        for output in OUTPUTS:
            note(f"{case.name}: {output}")
            base, *runs = (measure(command_for(output, source)) for source in sources)
            time = exponent(runs[1].cpu, runs[2].cpu, base.cpu, NOTICEABLE)
            memory = exponent(runs[1].peak, runs[2].peak, base.peak, MEMORY_NOTICEABLE)
            note("")
            seconds = " ".join(f"{run.cpu:6.2f}" for run in runs)
            peaks = " ".join(f"{run.peak / MB:5.0f}" for run in runs)
            print(f"{case.name:30}{output:>12}{seconds:>24}{shown(time):>10}{peaks:>20}{shown(memory):>10}", flush=True)
            if time is not None and time > LIMIT:
                above.append(f"{case.name}, {output}: CPU time grows with exponent {time:.2f}, limit {LIMIT}")
        for source in sources:
            source.unlink()
    print("\n".join(above) or f"no exponent of CPU time above {LIMIT}")
    return bool(above)


if __name__ == "__main__":
    sys.exit(main())
