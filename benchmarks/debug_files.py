"""Measures names from debug files: 100,000 addresses of one large library, GSYM of debug files, and 50 libraries with a
debug file each.

Run by `make bench`. How it measures: common.py.

    python benchmarks/debug_files.py [--sysroot FOLDER] [--limit SECONDS]

The large library is OpenJDK's libjvm where its debug file is installed or in FOLDER (openjdk-17-dbg), which is a copy
of a file tree; else libc with libc6-dbg. `llvm-symbolizer` says what we say of the same addresses: names, lines and
inlined functions. Of samples without callers `perf report` reads the symbol table alone, and none of the compressed
sections: it is in the table, no target. (The decompression of libjvm's .debug_info takes twice the CPU time of all that
it does.) Equal work is what it does with call chains and `--sort srcline`: files and lines of all addresses, from debug
information, and inlined functions where its version has them for such chains. It is stopped after --limit seconds, and
what it has used until then is compared with our whole conversion of the same recording.
GSYM is made of the debug files of libc, of Python (python3.11-dbg), of gold (binutils-x86-64-linux-gnu-dbg, whose files
share one that llvm-gsymutil does not read) and of libjvm, as far as these are installed or in FOLDER, by us and by
`llvm-gsymutil --convert`, whose threads all count.
The 50 libraries are compiled by gcc: once stripped, with debug files by build id, once as they were.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from common import MB, OUTPUTS, ROOT, TRACEFERRY, WORK, Command, Run, Targets, in_turn, note, print_table, ratio

from traceferry.files.source import open_source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_files import path_of_build

sys.path.insert(0, str(ROOT / "tests"))
from builders.perf_data import PerfData

FOLDER = WORK / "debug_files"
DEBUG_FOLDER = "usr/lib/debug"
LIBC = ("usr/lib/*/libc.so.6", "lib/*/libc.so.6")
LIBRARIES = ("usr/lib/jvm/*/lib/server/libjvm.so", *LIBC)
OF_GSYM = {
    **{"libc6": LIBC, "python3": ("usr/bin/python3.[0-9]", "usr/bin/python3.[0-9][0-9]")},
    **{"gold": ("usr/bin/*-ld.gold",), "libjvm": LIBRARIES[:1]},
}
N_ADDRESSES = 100_000
CHAIN = 20  # addresses in each call chain
N_LIBRARIES, N_FUNCTIONS = 50, 150
BASE = 0x7F00_0000_0000
SYMBOLIZER, GSYMUTIL = "llvm-symbolizer-19", "llvm-gsymutil-19"
# What the project promises, as parts of another's CPU time.
OF_SYMBOLIZER, OF_WHOLE, OF_CHAINS, OF_GSYMUTIL = 1 / 2, 1.2, 1 / 2, 3
SOURCE = """
struct item {{ long value; struct item *next; }};
static inline long step(struct item *item, long x) {{ return item->value * x + (x >> 3); }}
{functions}
"""
FUNCTION = """
long work_{library}_{nth}(struct item *item, long x) {{
  for (; item; item = item->next) x += step(item, x) ^ {nth};
  return x;
}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sysroot", type=Path, default=Path("/"))
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS", help="of perf report with call chains")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    targets = Targets()
    large = with_debug_file(arguments.sysroot)
    if large is None or shutil.which("perf") is None:
        print("the large library is not measured: it, its debug file or perf is missing")
    else:
        compare_large(*large, arguments.sysroot, arguments.rounds, targets)
        compare_chains(large[0], arguments.sysroot, arguments.rounds, arguments.limit, targets)
    if shutil.which(GSYMUTIL) is None:
        print(f"GSYM of debug files is not compared: {GSYMUTIL} is missing (apt install llvm-19)")
    else:
        compare_gsym(arguments.sysroot, arguments.rounds, targets)
    if shutil.which("gcc") is None:
        print("50 libraries are not measured: gcc is missing")
    else:
        compare_many(arguments.rounds, targets)
    return targets.status()


def with_debug_file(root: Path, patterns: Iterable[str] = LIBRARIES) -> tuple[Path, Path] | None:
    """Returns a library and its debug file."""
    for pattern in patterns:
        for path in sorted(root.glob(pattern)):
            debug = Path(path_of_build(str(root / DEBUG_FOLDER), Binary(open_source(str(path))).build_id))
            if debug.is_file():
                return path, debug
    return None


# ---------------------------------------------------------------- one large library


def compare_large(library: Path, debug: Path, root: Path, rounds: int, targets: Targets) -> None:
    binary, asked = addresses_of(library)
    recorded = str(Path("/") / library.relative_to(root))
    recording, listed = FOLDER / "large.data", FOLDER / "addresses.txt"
    recording.write_bytes(recorded_at({recorded: (binary, asked)}))
    listed.write_text("".join(f"{address:#x}\n" for address in asked))
    peer = "perf report --stdio"
    answers = FOLDER / "answers.txt"
    sysroot = ["--sysroot", str(root)] if root != Path("/") else []
    symfs = ["--symfs", str(root)] if root != Path("/") else []
    commands = {
        peer: Command(["perf", "report", "--stdio", "-i", str(recording), *symfs], answers, printed=True),
        "Firefox .json": converted(recording, *sysroot),
        "look-ups": Command([*TRACEFERRY, "symbols", str(debug), "--lookup", "-"], answers, printed=True, given=listed),
    }
    if shutil.which(SYMBOLIZER):
        arguments = [SYMBOLIZER, "--obj", str(debug), "--output-style=LLVM"]
        commands = {SYMBOLIZER: Command(arguments, answers, printed=True, given=listed), **commands}
    else:
        print(f"no comparison with {SYMBOLIZER}: it is not installed (apt install llvm-19)")
    size = debug.stat().st_size / 1e6
    print(f"\n{library.name} with a debug file of {size:.0f} MB, {N_ADDRESSES} addresses; median of {rounds}")
    measured = in_turn(commands, rounds)
    print_table(measured, peer, N_ADDRESSES / 1e3, "k addresses")
    print("\ntargets")
    if SYMBOLIZER in measured:
        ours, theirs = measured["look-ups"].cpu, measured[SYMBOLIZER].cpu
        what = f"{library.name}: look-ups take at most {ratio(OF_SYMBOLIZER, 1)} of {SYMBOLIZER}'s CPU"
        targets.check(what, ratio(ours, theirs), ours <= OF_SYMBOLIZER * theirs)


def addresses_of(library: Path) -> tuple[Binary, list[int]]:
    binary = Binary(open_source(str(library)))
    text = next(section for section in binary.sections if section.name == ".text")
    chosen = random.Random(29)
    return binary, [chosen.randrange(text.address, text.address + text.size) for _ in range(N_ADDRESSES)]


def compare_chains(library: Path, root: Path, rounds: int, limit: float, targets: Targets) -> None:
    binary, asked = addresses_of(library)
    recording = FOLDER / "chains.data"
    recording.write_bytes(recorded_at({str(Path("/") / library.relative_to(root)): (binary, asked)}, CHAIN))
    sysroot = ["--sysroot", str(root)] if root != Path("/") else []
    symfs = ["--symfs", str(root)] if root != Path("/") else []
    ours = "Firefox .json of call chains"
    measured = in_turn({ours: converted(recording, *sysroot)}, rounds)
    peer = "perf report --stdio --sort sym,srcline"
    note(f"{peer}: at most {limit:.0f} s")
    theirs, is_whole = limited([*peer.split(), "--inline", "-i", str(recording), *symfs], limit)
    note("")
    print_table(measured, None, N_ADDRESSES / 1e3, "k addresses")
    print(f"{peer}: {theirs.cpu:.2f} s of CPU time in {theirs.wall:.0f} s{'' if is_whole else ', not at its end then'}")
    stopped = "" if is_whole else f", which was stopped after {limit:.0f} s"
    what = f"{library.name}: call chains take at most {ratio(OF_CHAINS, 1)} of the CPU of {peer}{stopped}"
    targets.check(what, ratio(measured[ours].cpu, theirs.cpu), measured[ours].cpu <= OF_CHAINS * theirs.cpu)


def limited(command: list[str], limit: float) -> tuple[Run, bool]:
    """Runs a command for at most `limit` seconds. Returns (what it and those that it started used, whether it came to
    its end)."""
    began = time.perf_counter()
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen(command, stdout=nothing, stderr=nothing, start_new_session=True)
        used = 0.0
        while child.poll() is None and time.perf_counter() - began < limit:
            used = max(used, cpu_of_session(child.pid))
            time.sleep(0.2)
        is_whole = child.poll() is not None
        if not is_whole:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return Run(used, time.perf_counter() - began, 0, 0), is_whole


def cpu_of_session(session: int) -> float:
    """Returns the seconds of processors that its processes have used, and those that they have waited for."""
    stats = (fields for status in Path("/proc").glob("[0-9]*/stat") if (fields := fields_of(status)))
    return sum(sum(map(int, fields[11:15])) for fields in stats if int(fields[3]) == session) / os.sysconf("SC_CLK_TCK")


def fields_of(status: Path) -> list[str]:
    """Returns what stands behind a process's name (man 5 proc); nothing of one that has ended."""
    try:
        return status.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def chains_of(addresses: list[int], n: int) -> Iterable[list[int]]:
    return (addresses[first : first + n] for first in range(0, len(addresses), n))


def recorded_at(asked: dict[str, tuple[Binary, list[int]]], chain: int = 1) -> bytes:
    """Returns a recording of some files, which are mapped one behind the other: a sample at each address, or with a
    call chain of so many."""
    kind = "IP|TID|TIME|CALLCHAIN|PERIOD" if chain > 1 else "IP|TID|TIME|PERIOD"
    data = PerfData().event("cpu-clock", freq=997, sample_type=kind).comm(7, 7, "app")
    at = BASE
    for path, (binary, addresses) in asked.items():
        code = next(segment for segment in binary.segments if segment.type == "PT_LOAD" and segment.flags & 1)
        shift = at + code.offset % 4096 - code.address
        data.mmap2(
            7, 7, at, code.size + 4096, code.offset & ~4095, path, build_id=bytes.fromhex(binary.build_id)
        )  # fmt: skip
        for one in chains_of([address + shift for address in addresses], chain):
            data.sample(7, 7, ip=one[0], period=1_003_009, **({"chain": one} if chain > 1 else {}))
        at += (code.size + 0x10000) & ~0xFFF
    return data.bytes()


def converted(recording: Path, *options: str) -> Command:
    out = FOLDER / f"{recording.stem}.{OUTPUTS['Firefox .json']}"
    return Command([*TRACEFERRY, "convert", str(recording), "-o", str(out), "--quiet", *options], out)


# ---------------------------------------------------------------- GSYM


def compare_gsym(root: Path, rounds: int, targets: Targets) -> None:
    """Makes GSYM of each debug file."""
    for package, patterns in OF_GSYM.items():
        found = with_debug_file(root, patterns)
        if found is None:
            print(f"\nGSYM of {package} is not measured: it or its debug file is missing")
            continue
        name, debug = found[0].name, found[1]
        ours, theirs = FOLDER / "ours.gsym", FOLDER / "theirs.gsym"
        convert = [GSYMUTIL, f"--convert={debug}", f"--out-file={theirs}", "--quiet"]
        commands = {
            GSYMUTIL: Command(convert, theirs),
            "traceferry symbols": Command([*TRACEFERRY, "symbols", str(debug), "-o", str(ours), "--quiet"], ours),
        }
        size = debug.stat().st_size / MB
        print(f"\nGSYM of {name}'s debug file, {size:.1f} MB; median of {rounds}")
        measured = in_turn(commands, rounds)
        print_table(measured, GSYMUTIL, size, "MB")
        mine, other = (measured[command].cpu for command in reversed(commands))
        what = f"{name}: GSYM takes at most {OF_GSYMUTIL} times the CPU of {GSYMUTIL}"
        targets.check(what, ratio(mine, other), mine <= OF_GSYMUTIL * other)


# ---------------------------------------------------------------- many libraries


def compare_many(rounds: int, targets: Targets) -> None:
    recordings = {}
    for kind in ("whole", "apart"):
        folder = FOLDER / kind
        if not (folder / "done").exists():
            compile_libraries(folder, apart=kind == "apart")
        asked = {}
        for path in sorted(folder.glob("usr/lib/*.so")):
            binary = Binary(open_source(str(path)))
            text = next(section for section in binary.sections if section.name == ".text")
            asked[f"/usr/lib/{path.name}"] = (binary, list(range(text.address, text.address + text.size, 64)))
        recordings[kind] = FOLDER / f"{kind}.data"
        recordings[kind].write_bytes(recorded_at(asked))
    names = {kind: f"{N_LIBRARIES} libraries, {kind}" for kind in recordings}
    commands = {names[kind]: converted(recordings[kind], "--sysroot", str(FOLDER / kind)) for kind in recordings}
    measured = in_turn(commands, rounds)
    print_table(measured, names["whole"], N_LIBRARIES, "libraries")
    whole, apart = (measured[names[kind]].cpu for kind in ("whole", "apart"))
    what = f"{N_LIBRARIES} debug files: at most {OF_WHOLE} times the CPU of where the libraries have all names"
    targets.check(what, f"{apart / whole:.2f} times", apart <= OF_WHOLE * whole)


def compile_libraries(folder: Path, *, apart: bool) -> None:
    target, debug = folder / "usr/lib", folder / DEBUG_FOLDER
    target.mkdir(parents=True, exist_ok=True)
    for number in range(N_LIBRARIES):
        functions = "".join(FUNCTION.format(library=number, nth=nth) for nth in range(N_FUNCTIONS))
        source, library = folder / "part.c", target / f"libpart{number}.so"
        source.write_text(SOURCE.format(functions=functions))
        flags = ["-O2", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id", "-o", str(library)]
        subprocess.run(["gcc", *flags, str(source)], check=True)
        if apart:
            path = Path(path_of_build(str(debug), Binary(open_source(str(library))).build_id))
            path.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["objcopy", "--only-keep-debug", str(library), str(path)], check=True)
            subprocess.run(["strip", str(library)], check=True)
    (folder / "done").touch()


if __name__ == "__main__":
    sys.exit(main())
