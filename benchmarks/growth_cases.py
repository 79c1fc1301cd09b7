"""What `growth.py` measures: recordings and files of symbols in which one dimension grows."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from builders import cfi, dwarf, mono, perf_data
from builders.breakpad import SymFile
from builders.gsym import Call, GsymFile
from builders.jitdump import Function, Inlined, JitDump
from builders.mono import Counter, Log
from builders.perf_data import PerfData
from builders.xray import Basic, Fdr, elf_with_instr_map

START = 1_000_000_000
METHOD, CLASS, VTABLE, OBJECT = 0x10000, 0x200000, 0x4000000, 0x10000000
CODE, KERNEL = 0x7F00_0000_0000, 0xFFFF_FFFF_8000_0000
INPUT, OUTPUT, SEVERAL, BESIDE = "INPUT", "OUTPUT", "SEVERAL", "BESIDE"
Run = Callable[[Path], object]


class Case(NamedTuple):
    """make: the input of n elements; beside: further files that are made of n, and several: files whose number is n;
    runs: what is measured of it, arguments of the command, in which INPUT, OUTPUT and names of files beside are
    replaced, SEVERAL by all files of `several`, BESIDE by the folder of all; or a function."""

    name: str
    suffix: str
    x: int
    make: Callable[[int], bytes]
    runs: Mapping[str, list[str] | Run]
    beside: Mapping[str, Callable[[int], bytes]] = {}
    several: Callable[[int], Iterator[tuple[str, bytes]]] | None = None


def converted(*options: str) -> dict[str, list[str] | Run]:
    """By every exporter, and summarised. The page: without what the other exporters write into it."""
    alone = ["--without", "firefox", "--without", "perfetto"]
    outputs: dict[str, list[str]] = {"json.gz": [], "gecko.json": [], "pftrace": [], "html": alone}
    runs: dict[str, list[str] | Run] = {
        suffix: ["convert", INPUT, *options, *more, "-o", f"{OUTPUT}.{suffix}", "--quiet"]
        for suffix, more in outputs.items()
    }
    return runs | {"info": ["info", INPUT, *options]}


def compared(name: str, suffix: str, x: int, make: Callable[[int], bytes]) -> Case:
    """With a recording of as much, as text and as a page."""
    both = ["compare", "base", INPUT]
    runs: dict[str, list[str] | Run] = {"text": both, "html": [*both, "-o", f"{OUTPUT}.html", "--quiet"]}
    return Case(f"compare: {name}", suffix, x, make, runs, {"base": make})


# ---------------------------------------------------------------- XRay


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


def mono_snapshots(n: int) -> bytes:
    log = Log(17, 8).buffer().class_(CLASS, "Node").vtable(VTABLE, CLASS)
    for _ in range(n):
        log.heap_start()
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
    for k in range(n):
        log.alloc(VTABLE, OBJECT + 64 * k, 32, [METHOD, METHOD + 16 * k])
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


# ---------------------------------------------------------------- jitdump


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


# ---------------------------------------------------------------- perf.data


def perf(**options: str) -> PerfData:
    return PerfData(start=START).event(**options).comm(7, 7, "app", ts=0)  # type: ignore[arg-type]


def perf_threads(n: int) -> bytes:
    data = perf()
    for tid in range(7, 7 + n):
        data.comm(7, tid, f"thread {tid}").sample(7, tid, None, CODE, [CODE])
    return data.bytes()


def perf_processes(n: int) -> bytes:
    data = perf()
    for pid in range(7, 7 + n):
        data.comm(pid, pid, f"process {pid}").mmap2(pid, pid, CODE, 1 << 16, 0, "/lib/libx.so")
        data.sample(pid, pid, None, CODE, [CODE, CODE + 16])
    return data.bytes()


def perf_forks(n: int) -> bytes:
    """Each process is a child of the one before, in a memory with 20 mappings."""
    data = perf()
    for k in range(20):
        data.mmap2(7, 7, CODE + (k << 16), 1 << 16, 0, f"/lib/lib{k}.so")
    for pid in range(8, 8 + n):
        data.fork(pid, pid, pid - 1, pid - 1).sample(pid, pid, None, CODE, [CODE, CODE + (5 << 16)])
    return data.bytes()


def perf_mappings(n: int) -> bytes:
    data = perf()
    for k in range(n):
        at = CODE + (k << 16)
        data.mmap2(7, 7, at, 1 << 16, 0, f"/lib/lib{k}.so").sample(7, 7, None, at, [at])
    return data.bytes()


def perf_mapped_again(n: int) -> bytes:
    """Every mapping replaces the one before."""
    data = perf()
    for k in range(n):
        data.mmap2(7, 7, CODE, 1 << 16, 0, f"/lib/lib{k % 100}.so").sample(7, 7, None, CODE + 8, [CODE + 8])
    return data.bytes()


def perf_addresses(n: int) -> bytes:
    data = perf().mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    for k in range(n):
        data.sample(7, 7, None, CODE + 16 * k, [CODE + 16 * k])
    return data.bytes()


def perf_stacks(n: int) -> bytes:
    """Stacks of 100 frames that all differ from each other near their root."""
    data = perf().mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    for k in range(n):
        data.sample(7, 7, None, CODE, [CODE + 16 * j for j in range(100)] + [CODE + 4096 * k])
    return data.bytes()


def perf_depth(n: int) -> bytes:
    """Samples of stacks that are n / 20 deep; a record holds 8,000 frames."""
    data = perf().mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    chain = [CODE + 16 * k for k in range(max(n // 20, 1))]
    for k in range(20):
        data.sample(7, 7, None, CODE, [CODE + 16 * k, *chain])
    return data.bytes()


def perf_markers(n: int) -> bytes:
    data = perf(sample_type="IDENTIFIER|IP|TID|TIME|CALLCHAIN|CPU|PERIOD")
    fields = [("int n", "i"), ("char[] path", "loc")]
    data.tracepoint("my:thing", 99, fields, "x", sample_type="IDENTIFIER|IP|TID|TIME|CALLCHAIN|CPU|PERIOD|RAW")
    for k in range(n):
        data.sample(7, 7, None, CODE, event=1, fields={"n": k, "path": f"/file{k}"})
    return data.bytes()


def perf_events(n: int) -> bytes:
    kinds = "IDENTIFIER|IP|TID|TIME|PERIOD"
    data = PerfData(start=START)
    for k in range(n):
        data.event(f"event{k}", perf_data.RAW, k, sample_type=kinds)
    data.comm(7, 7, "app", ts=0)
    for k in range(n):
        data.sample(7, 7, None, CODE, event=k)
    return data.bytes()


def perf_switches(n: int) -> bytes:
    data = perf(flags="sample_id_all context_switch").sample(7, 7, None, CODE, [CODE])
    for k in range(n):
        data.switch(7, 7, START + 1000 * k, out=bool(k % 2))
    return data.bytes()


def perf_modules(n: int) -> bytes:
    """Of the kernel, and code that it loads."""
    data = perf()
    for k in range(n):
        at = KERNEL + (k << 12)
        data.mmap(-1, 0, at, 4096, 0, f"[module{k}]", misc=perf_data.KERNEL_MODE)
        data.ksymbol(at + 0x800, 64, f"bpf_{k}").sample(7, 7, None, at, [at, at + 0x800], mode="kernel")
    return data.bytes()


def perf_jitted(n: int) -> bytes:
    """Samples in the code of the dump beside it."""
    data = PerfData(start=START).event().comm(1000, 1000, "app", ts=0)
    data.mmap2(1000, 1000, 0x20_0000, 4096, 0, "/x/jit-1000.dump", ts=START)
    for k in range(n):
        data.sample(1000, 1000, START + 2000 * (n + k), CODE + 64 * k, [CODE + 64 * k, CODE + 64 * (n - 1 - k)])
    return data.bytes()


def perf_programs(n: int) -> bytes:
    """That one process executes in turn, each with a mapping of its own."""
    data = perf()
    for k in range(n):
        data.comm(7, 7, f"program {k}", exec=True).mmap2(7, 7, CODE, 1 << 16, 0, f"/bin/program{k}")
        data.sample(7, 7, None, CODE, [CODE])
    return data.bytes()


def perf_memory_only(n: int) -> bytes:
    """Mappings in which no sample is, of a process and its children."""
    data = perf()
    for k in range(n):
        data.mmap2(7, 7, CODE + (k << 16), 1 << 16, 0, f"/lib/lib{k % 100}.so")
    for pid in range(8, 12):
        data.fork(pid, pid, 7, 7).sample(pid, pid, None, CODE, [CODE])
    return data.bytes()


def perf_map_file(n: int) -> bytes:
    return "".join(f"{CODE + 64 * k:x} 40 function{k}\n" for k in range(n)).encode()


def perf_dumps(n: int) -> bytes:
    """Processes, each of which has compiled code."""
    data = PerfData(start=START).event()
    for pid in range(1000, 1000 + n):
        data.comm(pid, pid, f"process {pid}").mmap2(pid, pid, 0x20_0000, 4096, 0, f"/x/jit-{pid}.dump", ts=START)
    for k in range(n):
        pid = 1000 + k
        data.sample(pid, pid, START + 2000 * (n + k), CODE + 8, [CODE + 8, CODE + 72])
    return data.bytes()


def dumps_beside(n: int) -> Iterator[tuple[str, bytes]]:
    for name, data in jitdumps(n):
        yield name.replace("several", "jit"), data


def with_stack(data: PerfData, at: int) -> None:
    """A sample whose user stack is to be unwound: code at `at`, and a frame pointer to nothing."""
    registers = [0] * perf_data.X86_64_REGS.bit_count()
    registers[7:9] = [0x7000, at]
    data.sample(7, 7, None, at, [], regs=registers, stack=struct.pack("<4Q", 0, at, at, at))


def perf_unwound() -> PerfData:
    flags = "disabled inherit mmap comm task sample_id_all mmap2 exclude_callchain_user"
    data = PerfData(start=START).event(flags=flags, regs_user=perf_data.X86_64_REGS, stack_user=32)
    return data.comm(7, 7, "app", ts=0)


def perf_unwound_stacks(n: int) -> bytes:
    data = perf_unwound().mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    for k in range(n):
        with_stack(data, CODE + 16 * k)
    return data.bytes()


def perf_unwound_mappings(n: int) -> bytes:
    """A sample after each mapping."""
    data = perf_unwound()
    for k in range(n):
        data.mmap2(7, 7, CODE + (k << 16), 1 << 16, 0, f"/lib/lib{k % 100}.so")
        with_stack(data, CODE + (k << 16))
    return data.bytes()


def perf_unwound_processes(n: int) -> bytes:
    """Each begins with the 20 mappings of the one before."""
    data = perf_unwound()
    for k in range(20):
        data.mmap2(7, 7, CODE + (k << 16), 1 << 16, 0, f"/lib/lib{k}.so")
    with_stack(data, CODE)
    registers = [0] * perf_data.X86_64_REGS.bit_count()
    registers[7:9] = [0x7000, CODE]
    for pid in range(8, 8 + n):
        data.fork(pid, pid, pid - 1, pid - 1)
        data.sample(pid, pid, None, CODE, [], regs=registers, stack=struct.pack("<4Q", 0, CODE, CODE, CODE))
    return data.bytes()


def perf_unwound_code(n: int) -> bytes:
    """A sample after each load of the dump beside it."""
    data = perf_unwound().mmap2(7, 7, 0x20_0000, 4096, 0, "/x/jit-7.dump", ts=START)
    registers = [0] * perf_data.X86_64_REGS.bit_count()
    for k in range(n):
        at = CODE + 64 * k + 8
        registers[7:9] = [0x7000, at]
        data.sample(7, 7, START + 1000 * k + 500, at, [], regs=registers, stack=struct.pack("<4Q", 0, at, at, at))
    return data.bytes()


def jitdump_unwinding(n: int) -> bytes:
    dump = JitDump(pid=7)
    for k in range(n):
        frame = cfi.EhFrame(64).fde(0, 64, b"")
        dump.unwinding(bytes(frame.data), ts=START + 1000 * k)
        dump.load(f"function{k}", CODE + 64 * k, 64, ts=START + 1000 * k)
    return dump.bytes()


# ---------------------------------------------------------------- symbols


def breakpad(n: int) -> bytes:
    file = SymFile("0" * 33, name="libx.so")
    for k in range(max(n // 20, 1)):
        file.file(k, f"/src/{k}.c").origin(k, f"inner{k}")
    for k in range(n):
        file.func(64 * k, 64, f"function{k}").inline(0, 3, k // 20, k // 20, (64 * k + 8, 8))
        file.line(64 * k, 32, k, k // 20).line(64 * k + 32, 32, k + 1, k // 20).public(64 * k, f"public{k}")
    return file.bytes()


def gsym(n: int) -> bytes:
    file = GsymFile(address_size=8, base=0, uuid=b"")
    for k in range(n):
        lines = [(64 * k, f"/src/{k // 20}.c", k), (64 * k + 32, f"/src/{k // 20}.c", k + 1)]
        file.function(f"function{k}", 64 * k, 64, lines, [Call(f"inner{k // 20}", [(64 * k + 8, 64 * k + 16)])])
    return file.bytes()


def dwarf_units(n: int) -> bytes:
    """A unit for every 20 functions, each of which has lines and an inlined call."""
    file = dwarf.Dwarf(4)
    for k in range(0, n, 20):
        functions = range(k, min(k + 20, n))
        at = file.lines([(64 * f, 1, f + 1) for f in functions], end=64 * len(functions))
        within = {"low_pc": 64 * k, "high_pc": 64 * len(functions)}
        file.unit(*(dwarf_function(f) for f in functions), stmt_list=at, comp_dir="/src", **within)
    return file.elf(text=(0, 64 * n))


def dwarf_function(k: int) -> dwarf.Die:
    call = {dwarf.CALL_FILE: 1, dwarf.CALL_LINE: k}
    inner = {dwarf.NAME: f"inner{k}", dwarf.LOW_PC: 64 * k + 8, dwarf.HIGH_PC: 8, **call}
    outer = {dwarf.NAME: f"function{k}", dwarf.LOW_PC: 64 * k, dwarf.HIGH_PC: 64}
    return dwarf.die(dwarf.SUBPROGRAM, outer, dwarf.die(dwarf.INLINED, inner))


def elf(n: int) -> bytes:
    return dwarf.Dwarf().elf([dwarf.Symbol(f"_Z{len(str(k)) + 1}f{k}v", 64 * k, 64) for k in range(1, n + 1)])


def addresses(n: int) -> bytes:
    return "".join(f"{64 * k + 12:#x}\n" for k in range(n)).encode()


def kallsyms(n: int) -> bytes:
    """The text of /proc/kallsyms, half of it of modules that have 50 functions each."""
    of_kernel = [f"{KERNEL + 64 * k:016x} t function{k}\n" for k in range(n)]
    of_modules = [f"{KERNEL + 64 * (n + k):016x} t f{k}\t[module{k // 50}]\n" for k in range(n)]
    return "".join(of_kernel + of_modules).encode()


def look_up_in_kernel(path: Path) -> None:
    import numpy as np

    from traceferry.importers.perf.kallsyms import KernelSymbols

    text = path.read_bytes()
    n = text.count(b"\n") // 2
    symbols = KernelSymbols(text)
    symbols.lookup("", np.uint64(KERNEL) + np.uint64(64) * np.arange(n, dtype=np.uint64))
    for module in range(n // 50):
        at = np.arange(n + 50 * module, n + 50 * module + 50, dtype=np.uint64)
        symbols.lookup(f"module{module}", np.uint64(KERNEL) + np.uint64(64) * at)


def libraries(n: int) -> bytes:
    data = perf()
    for k in range(n):
        at = CODE + (k << 16)
        data.mmap2(7, 7, at, 1 << 16, 0, f"/lib/lib{k}.so", build_id=k.to_bytes(20, "big"))
        data.sample(7, 7, None, at, [at])
    return data.bytes()


def symbol_files(n: int) -> Iterator[tuple[str, bytes]]:
    """A file for each library, which are told apart by their build ids."""
    for k in range(n):
        file = SymFile(k.to_bytes(20, "big")[:16].hex() + "0", name=f"lib{k}.so")
        yield f"lib{k}.so.sym", file.func(0, 64, f"function{k}").bytes()


def frame_information(n: int) -> bytes:
    """n in 8 bytes, and the .eh_frame of n functions."""
    functions = [cfi.Function(0x1000 + 256 * k, (3, 12), 2, k % 2 == 0) for k in range(n)]
    return struct.pack("<Q", n) + bytes(cfi.program(functions).data)


def unwind(path: Path) -> None:
    """A stack in each function."""
    import numpy as np

    from traceferry.unwind.cfi import Section
    from traceferry.unwind.machine import X86_64
    from traceferry.unwind.modules import Module
    from traceferry.unwind.spaces import AddressSpace
    from traceferry.unwind.unwinder import Unwinder, UserStacks

    data, base, size = path.read_bytes(), 0x1000_0000, 512
    (n,) = struct.unpack_from("<Q", data)
    dumps, recorded = [], []
    for k in range(n):
        stack = cfi.Stack(top=0x8000_0000)
        stack.call(cfi.Function(base + 0x1000 + 256 * k, (3, 12), 2, k % 2 == 0), k)
        stack.call(cfi.Function(base + 0x1000 + 256 * (n - 1 - k), (3, 12), 2, (n - 1 - k) % 2 == 0), k)
        registers, dump, _ = stack.sample()
        recorded.append(b"".join(struct.pack("<Q", registers.get(r, 0)) for r in range(cfi.RIP + 1)))
        dumps.append(dump.ljust(size, b"\0"))
    width = 8 * (cfi.RIP + 1)
    starts = np.arange(n, dtype=np.int64) * (width + size)
    bytes_of = np.frombuffer(b"".join(r + d for r, d in zip(recorded, dumps, strict=True)), np.uint8)
    stacks = UserStacks(
        X86_64, False, bytes_of, np.arange(X86_64.n_registers, dtype=np.int32), starts, starts + width,
        np.full(n, size), np.zeros(n, np.uint8),
    )  # fmt: skip
    space = AddressSpace()
    space.map(base, base + (1 << 40), base, 0)
    module = Module("app", X86_64, False, (Section(memoryview(data)[8:], 0x8000, False),))
    Unwinder([module]).unwind(stacks, np.arange(n), space)


# ---------------------------------------------------------------- all of them

CONVERTED = converted()
TO_GSYM: dict[str, list[str] | Run] = {
    "gsym": ["symbols", INPUT, "-o", f"{OUTPUT}.gsym"],
    "look-ups": ["symbols", INPUT, "--lookup", "-"],
}
SYMBOLISED = {"pftrace": converted("--symbols", "libx.so.sym")["pftrace"]}
UNWOUND = {"pftrace": CONVERTED["pftrace"]}
SEVERAL_DUMPS: dict[str, list[str] | Run] = {
    "pftrace": ["convert", SEVERAL, "-o", f"{OUTPUT}.pftrace", "--quiet"],
    "info": ["info", SEVERAL],
}
OF_FOLDER = {"pftrace": converted("--symbols", BESIDE)["pftrace"]}


def symbols(kind: str, x: int, make: Callable[[int], bytes]) -> list[Case]:
    """A file of symbols by itself, and a recording whose samples it names."""
    return [
        Case(f"{kind}: functions", "sym", x, make, TO_GSYM, {"standard input": addresses}),
        Case(f"{kind}: samples", "data", x, perf_addresses, SYMBOLISED, {"libx.so.sym": make}),
    ]


CASES = [
    Case("xray: threads", "xray", 50, xray_threads, CONVERTED),
    Case("xray: processes", "xray", 50, xray_processes, CONVERTED),
    Case("xray: depth", "xray", 4_000, xray_depth, CONVERTED),
    Case("xray: functions", "xray", 4_000, xray_functions, CONVERTED),
    Case("xray: markers", "xray", 4_000, xray_markers, CONVERTED),
    Case("xray: leaves without enters", "xray", 10_000, xray_leaves, CONVERTED),
    Case("xray: threads x buffers", "xray", 2_000, xray_buffers, CONVERTED),
    Case("xray: basic", "xray", 10_000, xray_basic, CONVERTED),
    Case("xray: symbols", "xray", 2_000, xray_functions, converted("--symbols", "app"), {"app": xray_binary}),
    Case("mono: threads", "mlpd", 50, mono_threads, CONVERTED),
    Case("mono: depth", "mlpd", 2_000, mono_depth, CONVERTED),
    Case("mono: functions", "mlpd", 2_000, mono_functions, CONVERTED),
    Case("mono: vtables", "mlpd", 2_000, mono_vtables, CONVERTED),
    Case("mono: uncaught exceptions", "mlpd", 1_000, mono_exceptions, CONVERTED),
    Case("mono: markers", "mlpd", 1_000, mono_markers, CONVERTED),
    Case("mono: counters", "mlpd", 1_000, mono_counters, CONVERTED),
    Case("mono: heap snapshots", "mlpd", 50, mono_snapshots, CONVERTED),
    Case("mono: objects", "mlpd", 4_000, mono_objects, CONVERTED),
    Case("mono: allocations", "mlpd", 2_000, mono_allocations, CONVERTED),
    Case("mono: samples", "mlpd", 4_000, mono_samples, CONVERTED),
    Case("mono: threads x collections", "mlpd", 1_000, mono_threads_and_collections, CONVERTED),
    Case("mono: threads x records", "mlpd", 2_000, mono_threads_and_records, CONVERTED),
    Case("jitdump: functions", "dump", 2_000, jitdump_functions, CONVERTED | TO_GSYM),
    Case("jitdump: depth", "dump", 512, jitdump_depth, CONVERTED | TO_GSYM),
    Case("jitdump: lines", "dump", 2_000, jitdump_lines, CONVERTED | TO_GSYM),
    Case("jitdump: markers", "dump", 2_000, jitdump_moves, CONVERTED),
    Case("jitdump: sources", "dump", 1_000, jitdump_sources, CONVERTED),
    Case("jitdump: threads", "dump", 500, jitdump_threads, CONVERTED),
    Case("jitdump: code replaced", "dump", 2_000, jitdump_again, CONVERTED),
    Case("jitdump: processes", "dump", 50, jitdump_threads, SEVERAL_DUMPS, several=jitdumps),
    Case("perf: threads", "data", 100, perf_threads, CONVERTED),
    Case("perf: processes", "data", 100, perf_processes, CONVERTED),
    Case("perf: forks", "data", 100, perf_forks, CONVERTED),
    Case("perf: mappings", "data", 2_000, perf_mappings, CONVERTED),
    Case("perf: mappings replaced", "data", 1_000, perf_mapped_again, CONVERTED),
    Case("perf: addresses", "data", 4_000, perf_addresses, CONVERTED),
    Case("perf: stacks", "data", 1_000, perf_stacks, CONVERTED),
    Case("perf: depth", "data", 10_000, perf_depth, CONVERTED),
    Case("perf: markers", "data", 2_000, perf_markers, CONVERTED),
    Case("perf: events", "data", 100, perf_events, CONVERTED),
    Case("perf: switches", "data", 4_000, perf_switches, CONVERTED),
    Case("perf: kernel modules", "data", 1_000, perf_modules, CONVERTED),
    Case("perf: jitted code", "data", 2_000, perf_jitted, CONVERTED, {"jit-1000.dump": jitdump_functions}),
    Case("perf: programs", "data", 500, perf_programs, CONVERTED),
    Case("perf: mappings without samples", "data", 2_000, perf_memory_only, CONVERTED),
    Case("perf: map file", "data", 4_000, perf_addresses, CONVERTED, {"perf-7.map": perf_map_file}),
    Case("perf: dumps", "data", 50, perf_dumps, CONVERTED, several=dumps_beside),
    Case("perf: unwound stacks", "data", 1_000, perf_unwound_stacks, UNWOUND),
    Case("perf: unwound, mappings", "data", 1_000, perf_unwound_mappings, UNWOUND),
    Case("perf: unwound, processes", "data", 200, perf_unwound_processes, UNWOUND),
    Case("perf: unwound, jitted code", "data", 500, perf_unwound_code, UNWOUND, {"jit-7.dump": jitdump_unwinding}),
    *symbols("gsym", 4_000, gsym),
    *symbols("breakpad", 4_000, breakpad),
    *symbols("dwarf", 1_000, dwarf_units),
    *symbols("elf", 4_000, elf),
    Case("symbols: files", "data", 50, libraries, OF_FOLDER, several=symbol_files),
    Case("kallsyms: functions", "txt", 10_000, kallsyms, {"look-ups": look_up_in_kernel}),
    Case("unwinding: functions", "bin", 1_000, frame_information, {"stacks": unwind}),
    compared("functions", "xray", 4_000, xray_functions),
    compared("depth", "xray", 1_000, xray_depth),
    compared("threads", "xray", 50, xray_threads),
    compared("stacks", "data", 500, perf_stacks),
    compared("code", "dump", 2_000, jitdump_functions),
    compared("markers", "data", 2_000, perf_markers),
]
