"""Files of symbols by themselves, with recordings whose samples they name, and the kernel's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from builders import dwarf
from builders.breakpad import SymFile
from builders.gsym import Call, GsymFile

from growth_cases.case import BESIDE, CODE, KERNEL, TO_GSYM, Case, converted
from growth_cases.perf import perf, perf_addresses


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


SYMBOLISED = {"pftrace": converted("--symbols", "libx.so.sym")["pftrace"]}
OF_FOLDER = {"pftrace": converted("--symbols", BESIDE)["pftrace"]}


def symbols(kind: str, x: int, make: Callable[[int], bytes]) -> list[Case]:
    """A file of symbols by itself, and a recording whose samples it names."""
    return [
        Case(f"{kind}: functions", "sym", x, make, TO_GSYM, {"standard input": addresses}),
        Case(f"{kind}: samples", "data", x, perf_addresses, SYMBOLISED, {"libx.so.sym": make}),
    ]


CASES = [
    *symbols("gsym", 4_000, gsym),
    *symbols("breakpad", 4_000, breakpad),
    *symbols("dwarf", 1_000, dwarf_units),
    *symbols("elf", 4_000, elf),
    Case("symbols: files", "data", 50, libraries, OF_FOLDER, several=symbol_files),
    Case("kallsyms: functions", "txt", 10_000, kallsyms, {"look-ups": look_up_in_kernel}),
]
