"""perf.data: samples, switches, mappings, and the code that JIT compilers dumped beside it."""

from __future__ import annotations

from collections.abc import Iterator

from builders import perf_data
from builders.perf_data import PerfData

from growth_cases.case import CODE, CONVERTED, KERNEL, START, Case
from growth_cases.jitdump import jitdump_functions, jitdumps


def perf(**options: str) -> PerfData:
    return PerfData(start=START).event(**options).comm(7, 7, "app", ts=0)  # type: ignore[arg-type]


def perf_threads(n: int) -> bytes:
    data = perf()
    for tid in range(7, 7 + n):
        data.comm(7, tid, f"thread {tid}").sample(7, tid, None, CODE, [CODE])
    return data.bytes()


def perf_thread_names(n: int) -> bytes:
    """Each thread has a name that is not another's with other numbers, and a function of its own."""
    data = perf().mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    letters = str.maketrans("0123456789", "abcdefghij")
    for tid in range(7, 7 + n):
        at = CODE + 64 * tid
        data.comm(7, tid, f"thread {tid}".translate(letters)).sample(7, tid, None, at, [at, CODE, CODE + 64])
    return data.bytes()


def perf_thread_stacks(n: int) -> bytes:
    """Each thread has twenty stacks that no other has."""
    data = perf().mmap2(7, 7, CODE, 1 << 40, 0, "/lib/libx.so")
    for tid in range(7, 7 + n):
        data.comm(7, tid, "thread")
        for k in range(20):
            data.sample(7, tid, None, CODE, [CODE + 16 * k, CODE + 4096 * tid])
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


CASES = [
    Case("perf: threads", "data", 100, perf_threads, CONVERTED),
    Case("perf: threads with stacks of their own", "data", 200, perf_thread_stacks, CONVERTED),
    Case("perf: processes", "data", 100, perf_processes, CONVERTED),
    Case("perf: forks", "data", 100, perf_forks, CONVERTED),
    Case("perf: mappings", "data", 2_000, perf_mappings, CONVERTED),
    Case("perf: mappings replaced", "data", 4_000, perf_mapped_again, CONVERTED),
    Case("perf: addresses", "data", 4_000, perf_addresses, CONVERTED),
    Case("perf: stacks", "data", 1_000, perf_stacks, CONVERTED),
    Case("perf: depth", "data", 10_000, perf_depth, CONVERTED),
    Case("perf: markers", "data", 20_000, perf_markers, CONVERTED),
    Case("perf: events", "data", 100, perf_events, CONVERTED),
    Case("perf: switches", "data", 20_000, perf_switches, CONVERTED),
    Case("perf: kernel modules", "data", 1_000, perf_modules, CONVERTED),
    Case("perf: jitted code", "data", 2_000, perf_jitted, CONVERTED, {"jit-1000.dump": jitdump_functions}),
    Case("perf: programs", "data", 100, perf_programs, CONVERTED),
    Case("perf: mappings without samples", "data", 2_000, perf_memory_only, CONVERTED),
    Case("perf: map file", "data", 4_000, perf_addresses, CONVERTED, {"perf-7.map": perf_map_file}),
    Case("perf: dumps", "data", 50, perf_dumps, CONVERTED, several=dumps_beside),
]
