"""Fuzzes perf.data with a jitdump, symbols, a map file and options. Run by `make fuzz`.

The input is the recording; the dump is always the same: code that its samples hit, that moves and has inlined
functions. Which options there are depends on the input's checksum. Seeds are recordings that the tests' builder makes,
and the beginnings of the small fixtures.
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from common import MAX_SEED, ROOT, run

sys.path.insert(0, str(ROOT / "tests"))

from builders.jitdump import Function, Inlined, JitDump
from builders.perf_data import (
    AUXTRACE_INFO,
    BRANCH_ANY,
    BRANCH_CALL_STACK,
    BRANCH_HW_INDEX,
    CGROUP,
    CONTEXT_KERNEL,
    CONTEXT_USER,
    HARDWARE,
    KERNEL_MODE,
    MONOTONIC,
    MONOTONIC_RAW,
    NAMESPACES,
    RAW,
    SCHEDSTAT_CPU,
    SCHEDSTAT_DOMAIN,
    X86_64_REGS,
    PerfData,
)  # fmt: skip
from options import WithOptions, symbol_files

if TYPE_CHECKING:
    from traceferry.model import Trace
    from traceferry.reading import ImportContext

PID = 7
LIB, CODE, MAPPED, KERNEL = 0x40_0000, 0x7F00_0000_1000, 0x20_0000, 0xFFFF_FFFF_8100_0000
START = 100_000_000_000
TOP = (1 << 64) - 1
DUMP = "jit-7.dump"
EVERYTHING = "IDENTIFIER|IP|TID|TIME|CALLCHAIN|CPU|PERIOD"
FLAGS = "disabled inherit mmap comm task sample_id_all mmap2 comm_exec context_switch ksymbol"


# ---------------------------------------------------------------- the dump


def dump() -> bytes:
    inlined = [Inlined(Function("inner", "/a.c"), (2, 1), [(4, 8)])]
    built = JitDump(pid=PID, start=START).load("f", CODE, ts=START + 20)
    built.inline_tree_a(Function("outer", "/a.c"), [(0, "/a.c", 1, 0)], inlined).load("g", CODE + 64)
    built.debug_info(CODE + 128, [(CODE + 128, 3, 1, "/a.js"), (CODE + 132, 4, 1, "/a.js")]).load("h", CODE + 128)
    return built.move(CODE, CODE + 32, ts=START + 60).load("i", CODE + 60, ts=START + 70).bytes()


def add_dump(trace: Trace, context: ImportContext) -> None:
    from traceferry.files.source import Source
    from traceferry.importers import jitdump

    jitdump.read([Source(DUMP, memoryview(DUMP_BYTES))]).add_to(trace, context)


def options_of(context: ImportContext, choice: int) -> ImportContext:
    """Some of the symbols, the folder with a map file or not, and now and then an offset of the clocks."""
    from traceferry.files.source import Source

    symbols = [
        Source(f"libx.so.{nth}.sym", memoryview(data)) for nth, data in enumerate(SYMBOLS) if choice >> 5 + nth & 1
    ]
    folders = [MAP_FOLDER.name] if choice >> 12 & 1 else []
    offset = (choice >> 14) - (1 << 17) if choice >> 13 & 1 else None
    options = replace(context.options, clock_offset_ns=offset, guess_wait_stacks=bool(choice >> 9 & 1))
    return context._replace(options=options, symbols=symbols, folders=folders)


DUMP_BYTES = dump()
SYMBOLS = symbol_files("libx.so")
MAP_FOLDER = tempfile.TemporaryDirectory()
(Path(MAP_FOLDER.name) / f"perf-{PID}.map").write_text(f"{LIB:x} 20 JS:*f /a.js:1:2\n{LIB + 16:x} ffff g\n")


# ---------------------------------------------------------------- seeds


def story(data: PerfData) -> PerfData:
    data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, 0x10000, 0, "/nowhere/libx.so", ts=0)
    data.mmap(-1, 0, KERNEL, 0x100_0000, KERNEL, "[kernel.kallsyms]_text", misc=KERNEL_MODE, ts=0)
    data.mmap2(PID, PID, MAPPED, 4096, 0, f"/x/{DUMP}", ts=START + 10)
    data.sample(PID, PID, START + 30, CODE, [CONTEXT_USER, CODE, LIB + 9, 5])
    return data.sample(PID, PID, START + 50, KERNEL, [CONTEXT_KERNEL, KERNEL + 4, CONTEXT_USER, CODE + 69, LIB])


def tasks(data: PerfData) -> PerfData:
    data.fork(PID, 8, PID, PID, START + 41).comm(PID, 8, "worker", START + 42).sample(PID, 8, START + 65, CODE + 33)
    data.fork(9, 9, PID, PID, START + 43).sample(9, 9, START + 44, LIB).comm(9, 9, "ls", START + 45, exec=True)
    return data.sample(9, 9, START + 66, CODE + 129).exit(PID, 8, START + 80)


def rare(data: PerfData) -> PerfData:
    data.switch(PID, PID, START + 45, out=True, preempt=True).switch(PID, PID, START + 48, out=False)
    data.ksymbol(KERNEL + 0x20, 32, "bpf", ts=START + 49).mmap2(PID, PID, LIB + 64, 64, 0, "//anon", ts=START + 50)
    return data.lost(3, ts=START + 51).throttle(START + 52).sample(PID, PID, START + 90, CODE + 62)


def hardware(order: str, mode: str) -> Iterator[tuple[str, PerfData]]:
    """What only some processors record: branches, calls, accesses to memory, vector registers; and control groups."""
    for name, kinds in (("branches", BRANCH_ANY), ("calls", BRANCH_CALL_STACK | BRANCH_HW_INDEX)):
        data = PerfData(order, mode, start=START).event(
            "cycles", HARDWARE, 0, sample_type=EVERYTHING + "|BRANCH_STACK", branch_sample_type=kinds
        )
        flags = data.branch_flags
        data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, 0x10000, 0, "/nowhere/libx.so", ts=0)
        data.mmap2(PID, PID, MAPPED, 4096, 0, f"/x/{DUMP}", ts=START + 10)
        ways = [(LIB + 9, CODE, flags(True, 9)), (LIB + 64, LIB + 4, flags(False)), (CODE + 69, LIB + 32, 0)]
        for ts in (30, 65, 75):
            data.sample(PID, PID, START + ts, LIB + 5, branches=ways)
        yield name, data
    memory = PerfData(order, mode, start=START).event(
        "loads",
        RAW,
        1,
        sample_type=f"{EVERYTHING}|ADDR|WEIGHT_STRUCT|DATA_SRC|PHYS_ADDR|CGROUP|DATA_PAGE_SIZE|CODE_PAGE_SIZE",
    )
    memory.raw_record(CGROUP, 0, b"\x05" + bytes(7) + b"/abc\0\0\0\0" + bytes(40))
    memory.raw_record(NAMESPACES, 0, bytes(8) + b"\x07" + bytes(7 + 112 + 40))
    others = {
        "DATA_SRC": 0x1A04101042,
        "WEIGHT_STRUCT": 40 | 7 << 32,
        "PHYS_ADDR": 4096,
        "CGROUP": 5,
        "DATA_PAGE_SIZE": 1,
    }
    for value in (0x1A04101042, 0x228080142, 0):
        memory.sample(PID, PID, START + 40, LIB, addr=LIB, others=others | {"DATA_SRC": value})
    yield "memory", memory
    vectors = PerfData(order, mode, start=START).event(regs_user=3, stack_user=16, regs_intr=1)
    vectors.feature(ARCH="x86_64").raw_record(AUXTRACE_INFO, 0, b"\x01" + bytes(15)).auxtrace(bytes(16))
    yield "vectors", vectors.sample(PID, PID, START, LIB, [], regs=[1, 2], stack=bytes(16), vectors=(2, 2, 1, 1))


def with_lib(data: PerfData) -> PerfData:
    data.comm(PID, PID, "app", ts=0).comm(PID, 8, "worker", ts=0)
    return data.mmap2(PID, PID, LIB, 0x10000, 0, "/nowhere/libx.so", ts=0)


def of_kernel(order: str, mode: str) -> Iterator[tuple[str, PerfData]]:
    """Begins and ends that are pairs; what the scheduler has measured; time off the processor; values of groups."""
    raw = EVERYTHING + "|RAW"
    pairs = PerfData(order, mode, start=START)
    for nth, (begin, end, fields) in enumerate(PAIRED):
        pairs.tracepoint(begin, 200 + nth, fields, "x", sample_type=raw)
        pairs.tracepoint(end, 300 + nth, fields, "x", sample_type=raw)
    with_lib(pairs)
    for nth, (*_, fields) in enumerate(PAIRED):
        values = {declared.split()[-1]: 5 for declared, _ in fields}
        for place, event in enumerate((2 * nth, 2 * nth + 1, 2 * nth, 2 * nth, 2 * nth + 1)):
            pairs.sample(PID, 8, START + 40 + 7 * place + nth, LIB, [LIB], event=event, fields=values)
    yield "pairs", pairs
    measured = PerfData(order, mode, start=START)
    for nth, name in enumerate(MEASURED):
        amount = "runtime" if name == "runtime" else "delay"
        fields = [("pid_t pid", "i"), (f"u64 {amount}", "Q")]
        measured.tracepoint(f"sched:sched_stat_{name}", 200 + nth, fields, "x", sample_type=raw)
    with_lib(measured)
    for nth, (event, tid, amount) in enumerate(
        ((4, PID, 30), (1, 8, 20), (2, 8, 20), (3, 8, 5), (0, PID, 9), (4, PID, 2))
    ):
        values = {"pid": tid, "runtime" if MEASURED[event] == "runtime" else "delay": amount * 1000}
        measured.sample(PID, PID, START + 30_000 * (nth + 2), LIB, [LIB], event=event, fields=values)
    yield "measured", measured
    off = PerfData(order, mode, start=START).event(sample_type=raw, freq=997, flags=FLAGS)
    off.event("offcpu-time", 1, 10, sample_type=raw, period=1)
    numbers = (4000, 2, LIB + 9, LIB + 5, 77)
    block = struct.pack(order + "II5Q", PID, 8, *numbers)
    with_lib(off).sample(PID, PID, START + 30, LIB, [LIB], event=0)
    yield "off-cpu", off.sample(0, 0, START + 60, 0, [], event=1, raw=block)


PAIRED = (
    ("syscalls:sys_enter_futex", "syscalls:sys_exit_futex", [("int __syscall_nr", "i"), ("long ret", "q")]),
    ("raw_syscalls:sys_enter", "raw_syscalls:sys_exit", [("long id", "q")]),
    ("irq:softirq_entry", "irq:softirq_exit", [("unsigned int vec", "I")]),
    ("block:block_rq_issue", "block:block_rq_complete", [("dev_t dev", "I"), ("sector_t sector", "Q")]),
    ("lock:contention_begin", "lock:contention_end", [("void * lock_addr", "Q")]),
)  # fmt: skip
MEASURED = ("sleep", "blocked", "iowait", "wait", "runtime")


def built() -> Iterator[tuple[str, PerfData]]:
    parts: dict[str, Callable[[PerfData], PerfData]] = {"story": story, "tasks": tasks, "rare": rare}
    for order in "<>":
        for mode in ("file", "pipe"):
            tag = f"{'big' if order == '>' else 'little'}-{mode}"
            for name, add in parts.items():
                data = PerfData(order, mode, start=START).event(sample_type=EVERYTHING, freq=997, flags=FLAGS)
                yield f"{name}-{tag}", add(story(data) if name != "story" else data)
            two = PerfData(order, mode, start=START).event("cycles", HARDWARE, 0, sample_type=EVERYTHING, freq=99)
            two.event(sample_type=EVERYTHING, period=1_000_000).event(sample_type=EVERYTHING, period=9)
            story(two).sample(PID, PID, START + 60, LIB, event=1).sample(PID, PID, START + 61, LIB, event=2)
            yield f"events-{tag}", two
            point = PerfData(order, mode, start=START).event(sample_type=EVERYTHING, freq=997)
            point.tracepoint(
                "my:thing", 99, [("int n", "i"), ("char[] path", "loc")], "x", sample_type=EVERYTHING + "|RAW"
            )
            story(point).sample(PID, PID, START + 40, LIB, event=1, fields={"n": 5, "path": "/x"})
            yield f"tracepoint-{tag}", point
            waits = PerfData(order, mode, start=START).event(sample_type=EVERYTHING, freq=997, flags=FLAGS)
            waits.tracepoint(print_fmt='{ 1, "S" }, { 2, "D" }', sample_type=EVERYTHING + "|RAW")
            waits.tracepoint("sched:sched_waking", 98, [("pid_t pid", "i")], "x", sample_type=EVERYTHING + "|RAW")
            story(waits).comm(PID, 8, "worker", ts=0)
            for ts, prev, after in ((40, 0, PID), (52, PID, 8), (70, 8, PID), (80, PID, 0), (85, PID, 8)):
                fields = {"prev_pid": prev, "prev_state": ts % 3, "next_pid": after}
                waits.sample(PID, prev, START + ts, CODE, [CODE], event=1, fields=fields)
            waits.sample(PID, 8, START + 60, LIB, event=2, fields={"pid": PID}).lost(2, ts=START + 82)
            yield f"waits-{tag}", waits.switch(PID, 8, START + 71, out=True).switch(PID, PID, START + 72, out=False)
            recent = PerfData(order, mode, start=START).event(sample_type=EVERYTHING, freq=997, flags=FLAGS)
            recent.feature(E_MACHINE=struct.pack(order + "II", 62, 0), CLN_SIZE=struct.pack(order + "I", 64))
            recent.bpf_metadata("perf_trace", ("version", "7.1")).lost_samples(3, filtered=True).lost_samples(4)
            with_lib(recent).raw_record(SCHEDSTAT_CPU, 0, bytes(120)).raw_record(SCHEDSTAT_DOMAIN, 0, bytes(400))
            yield "recent", recent.sample(PID, PID, START + 30, LIB, [LIB])
            raw = PerfData(order, mode, start=START).event(clockid=MONOTONIC_RAW)
            yield f"clock-{tag}", story(raw.feature(CLOCK_DATA=(MONOTONIC, 10**18, START)))
            packed = story(PerfData(order, mode, start=START).event().begin_compressed()).end_compressed([50, 131])
            yield f"compressed-{tag}", packed
            dwarf = PerfData(order, mode, start=START).event(regs_user=X86_64_REGS, stack_user=16)
            registers = [0] * X86_64_REGS.bit_count()
            far = PerfData(order, mode, start=START).event().mmap2(PID, PID, LIB, 0x1000, TOP - 4, "/x/libx.so", ts=0)
            far.mmap2(PID, PID, TOP - 0x1000, 0x1000, TOP, "/x/libx.so", ts=0).sample(PID, PID, START, TOP - 9)
            yield f"far-{tag}", far.sample(PID, PID, START, LIB + 0x14)
            yield from ((f"{name}-{tag}", data) for name, data in hardware(order, mode))
            yield from ((f"{name}-{tag}", data) for name, data in of_kernel(order, mode))
            yield f"dwarf-{tag}", dwarf.sample(PID, PID, START, LIB, [], regs=registers, stack=bytes(16))


def seeds() -> Iterator[tuple[str, bytes]]:
    from traceferry.files.source import open_source

    for name, data in built():
        yield name, data.bytes()
        yield f"unfinalized-{name}", data.bytes(finalized=False)
    for path in sorted((ROOT / "fixtures" / "jit").glob("*/perf.data*")):
        recorded = bytes(open_source(str(path)).data)
        for size in (1500, MAX_SEED):
            yield f"{path.parent.name}-{size}", recorded[:size]


if __name__ == "__main__":
    run("perf", seeds, lambda importer: WithOptions(importer, options_of, add_dump))
