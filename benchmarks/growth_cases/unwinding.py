"""Stacks that are unwound from stack dumps."""

from __future__ import annotations

import struct
from pathlib import Path

from builders import cfi, perf_data
from builders.jitdump import JitDump
from builders.perf_data import PerfData

from growth_cases.case import CODE, CONVERTED, START, Case


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


def frame_information(n: int) -> bytes:
    """n in 8 bytes, and the .eh_frame of n functions."""
    functions = [cfi.Function(0x1000 + 256 * k, (3, 12), 2, k % 2 == 0) for k in range(n)]
    return struct.pack("<Q", n) + bytes(cfi.program(functions).data)


def unwind(path: Path) -> None:
    """A stack in each function."""
    import numpy as np

    from traceferry.unwinding._unwinder import Unwinder
    from traceferry.unwinding.machine import X86_64, UserStacks
    from traceferry.unwinding.modules import Module, Section
    from traceferry.unwinding.spaces import AddressSpace

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
    Unwinder([module], stacks).unwind(np.arange(n), space)


UNWOUND = {"pftrace": CONVERTED["pftrace"]}
CASES = [
    Case("perf: unwound stacks", "data", 1_000, perf_unwound_stacks, UNWOUND),
    Case("perf: unwound, mappings", "data", 1_000, perf_unwound_mappings, UNWOUND),
    Case("perf: unwound, processes", "data", 200, perf_unwound_processes, UNWOUND),
    Case("perf: unwound, jitted code", "data", 500, perf_unwound_code, UNWOUND, {"jit-7.dump": jitdump_unwinding}),
    Case("unwinding: functions", "bin", 1_000, frame_information, {"stacks": unwind}),
]
