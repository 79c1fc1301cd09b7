"""Compares a recording as traceferry reads it with what `perf script` prints, sample by sample and frame by frame.

    .venv/bin/python tests/perf_script.py perf.data [--symbols FILE-OR-DIR]... [--sysroot DIR]... [-n EXAMPLES]

Samples are matched by thread number and time, in nanoseconds, and compared in the names of thread and process and in
their whole stacks. Where they differ, the reason is one of REASONS, and the first few are printed. The status is 1
where perf and traceferry contradict each other: see CONTRADICTIONS.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from readers import perf_script
from readers.perf_script import UNKNOWN, Frame

import traceferry
from traceferry.model import Trace

REASONS = {
    "named here only": "perf has no name for a frame that has one here",
    "named by perf only": "a frame has a name in perf, and none here",
    "another name": "a frame has two names",
    "shorter here": "the stack ends earlier here",
    "longer here": "the stack ends earlier in perf",
    "other frames": "the stacks have other frames",
}
CONTRADICTIONS = ("another name", "other frames")
MAX_STACK = 1024
DEBUG_FILES = Path("/usr/lib/debug/.build-id")
ENDINGS = (
    "(truncated stack)", "(no unwind information", "(contradictory unwind information", "(callers on another stack",
)  # fmt: skip


class Own(NamedTuple):
    """A sample here: names are those of physical frames, the innermost first."""

    pid: int
    thread: str
    names: tuple[str, ...]


class Example(NamedTuple):
    reason: str
    tid: int
    ns: int
    own: tuple[str, ...]
    perf: tuple[str, ...]


@dataclass
class Comparison:
    """n_own, n_perf: samples of the sampling event; equal: stacks; reasons: why others differ; names: (perf's, own) of
    threads, and pids: of processes, where they differ."""

    n_own: int = 0
    n_perf: int = 0
    equal: int = 0
    missing: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    frames: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    names: Counter[tuple[str, str]] = field(default_factory=Counter)
    pids: Counter[tuple[int, int]] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)

    @property
    def is_contradicted(self) -> bool:
        differ = self.missing or self.names or self.pids or self.n_own != self.n_perf
        return bool(differ) or any(self.reasons[reason] for reason in CONTRADICTIONS)


# ---------------------------------------------------------------- perf's side


def perf_samples(path: Path) -> list[perf_script.Sample]:
    command = ["perf", "script", "-f", "-i", str(path), "--no-inline", "--ns", f"--max-stack={MAX_STACK}"]
    command += ["-F", "comm,pid,tid,time,event,ip,sym,symoff,dso"]
    printed = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", timeout=600, check=True)
    return list(perf_script.samples(printed.stdout.splitlines()))


def debug_files(path: Path) -> dict[str, Path]:
    """The files with debug information that perf takes names from, by the path of the file that was recorded."""
    command = ["perf", "buildid-list", "-i", str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    rows = (line.split(" ", 1) for line in printed.stdout.splitlines() if " " in line)
    files = {name: DEBUG_FILES / build_id[:2] / f"{build_id[2:]}.debug" for build_id, name in rows}
    return {name: file for name, file in files.items() if file.is_file()}


@cache
def addresses(*paths: Path) -> dict[str, set[int]]:
    """Where the symbols of files are, by their plain names: several may have one address."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    for path in paths:
        try:
            with open(path, "rb") as file:
                for section in ELFFile(file).iter_sections():
                    for symbol in section.iter_symbols() if isinstance(section, SymbolTableSection) else ():
                        if symbol["st_shndx"] != "SHN_UNDEF" and symbol.name:
                            found[plain(symbol.name)].add(symbol["st_value"])
        except (OSError, ELFError):
            continue
    return found


def plain(name: str) -> str:
    """A function's name without what tools write differently: versions, parts, arguments, templates."""
    name = re.sub(r"@@?[\w.]+$", "", name.strip())
    name = re.sub(r"\s*\[clone [^\]]*\]", "", name)
    name = re.sub(r"(\.(part|isra|constprop|cold|lto_priv|localalias|llvm)(\.\d+)*)+$", "", name)
    while (shorter := re.sub(r"<[^<>]*>", "", name)) != name:
        name = shorter
    name = name.replace("(anonymous namespace)", "").partition("(")[0] if not name.startswith("(") else name
    return name if name.startswith("operator ") else name.rpartition(" ")[2]


# ---------------------------------------------------------------- this side


def own_samples(trace: Trace) -> Iterator[tuple[int, int, Own]]:
    """(tid, ts, sample) of every sample of the sampling event."""
    paths: dict[int, tuple[str, ...]] = {-1: ()}
    depth, func = trace.frames["inline_depth"].tolist(), trace.frames["func"].tolist()
    columns = (trace.stacks["prefix"].tolist(), trace.stacks["frame"].tolist())
    for row, (prefix, frame) in enumerate(zip(*columns, strict=True)):
        name = trace.func_name(func[frame])
        is_frame = depth[frame] <= 0 and not name.startswith(ENDINGS)
        paths[row] = (name, *paths[prefix]) if is_frame else paths[prefix]
    for process, thread in trace.threads:
        if thread.sample_unit:
            continue
        data = thread.load(trace)
        since, names = data.states["ts"].tolist(), [trace.strings[value] for value in data.states["value"].tolist()]
        for ts, stack in zip(data.samples["ts"].tolist(), data.samples["stack"].tolist(), strict=True):
            nth = bisect_right(since, ts) - 1
            yield thread.tid, ts, Own(process.pid, names[nth] if nth >= 0 else thread.name, paths[stack])


# ---------------------------------------------------------------- both


def compare(path: Path, n_examples: int = 0, **options: Any) -> Comparison:
    """options: of LoadOptions, and `symbols`."""
    debug = debug_files(path)
    symbols = [*options.pop("symbols", ()), *debug.values()]
    trace = traceferry.load([path], symbols=symbols, options=traceferry.LoadOptions(**options))
    event = trace.sampling.name if trace.sampling is not None else ""
    perf = [sample for sample in perf_samples(path) if sample.event in (event, f"{event}:")]
    own: defaultdict[int, defaultdict[int, list[Own]]] = defaultdict(lambda: defaultdict(list))
    result = Comparison(n_perf=len(perf))
    for tid, ts, sample in own_samples(trace):
        own[tid][ts].append(sample)
        result.n_own += 1
    offset = _offset(own, perf)
    for theirs in perf:
        mine = own.get(theirs.tid, {}).get(theirs.ns + offset)
        if not mine:
            result.missing += 1
            continue
        _compare_one(mine.pop(0), theirs, debug, result, n_examples)
    return result


def _offset(own: dict[int, defaultdict[int, list[Own]]], perf: Sequence[perf_script.Sample]) -> int:
    """From the recording's clock to the trace's: the distance that most of the first samples have."""
    seen: Counter[int] = Counter()
    for sample in perf[:50]:
        seen.update(ts - sample.ns for ts in list(own.get(sample.tid, ()))[:50])
    return seen.most_common(1)[0][0] if seen else 0


def _compare_one(
    own: Own, perf: perf_script.Sample, debug: dict[str, Path], result: Comparison, n_examples: int
) -> None:
    if own.thread != perf.comm:
        result.names[perf.comm, own.thread] += 1
    if perf.pid is not None and own.pid != perf.pid:
        result.pids[perf.pid, own.pid] += 1
    # perf prints the ends of some chains as frames of address 0, and more of some stacks than lies in any memory.
    frames = [frame for frame in perf.frames if int(frame.ip, 16)]
    while len(frames) > len(own.names) and frames[-1].symbol == frames[-1].dso == UNKNOWN:
        frames.pop()
    reason = _reason(own.names, frames, debug, result.frames)
    if not reason:
        result.equal += 1
        return
    result.reasons[reason] += 1
    if sum(one.reason == reason for one in result.examples) < n_examples:
        named = tuple(frame.symbol if frame.symbol != UNKNOWN else f"{UNKNOWN} {frame.dso}" for frame in perf.frames)
        result.examples.append(Example(reason, perf.tid, perf.ns, own.names, named))


def _reason(
    own: Sequence[str], perf: Sequence[Frame], debug: dict[str, Path], seen: Counter[tuple[str, str, str]]
) -> str:
    """ "" where the stacks are equal. seen: counts frames that differ: (reason, perf's name, own)."""
    pairs = [(_agree(name, frame, debug), name, frame) for name, frame in zip(own, perf, strict=False)]
    differ = [(why, frame.symbol, name) for why, name, frame in pairs if why]
    if len(own) != len(perf):
        if any(why == "another name" for why, *_ in differ):
            return "other frames"
        return "shorter here" if len(own) < len(perf) else "longer here"
    seen.update((why, symbol, re.sub(r"0x[0-9a-f]+", "0x...", name)) for why, symbol, name in differ)
    return next((reason for reason in ("another name", *REASONS) if any(why == reason for why, *_ in differ)), "")


def _agree(own: str, perf: Frame, debug: dict[str, Path]) -> str:
    """ "" or why not. Code without a symbol has its file's name and an address here."""
    dso = PurePosixPath(perf.dso.removesuffix(" (deleted)")).name
    is_nameless = own == UNKNOWN or re.fullmatch(r".*\+0x[0-9a-f]+", own) is not None
    # perf 6.1 does not know of some relocations.
    if perf.symbol in (UNKNOWN, "@plt"):
        return "" if is_nameless else "named here only"
    if is_nameless:
        return "named by perf only" if own == UNKNOWN or own.startswith(dso) else "another name"
    if dso.startswith("perf-"):
        # Of what a compiler lists, the function's name is shown here.
        return "" if own in perf.symbol or own.startswith("(anonymous") else "another name"
    files = [Path(perf.dso), debug[perf.dso]] if perf.dso in debug else [Path(perf.dso)]
    mine, theirs, at = plain(own), plain(perf.symbol), addresses(*files)
    if mine == theirs or at.get(mine, set()) & at.get(theirs, set()) or (mine and mine in perf.symbol):
        return ""
    return "another name"


def report(path: Path, result: Comparison) -> Iterator[str]:
    yield f"{path}: {result.n_own} samples, {result.n_perf} in perf script, {result.missing} of them not here"
    yield f"  stacks: {result.equal} equal, {sum(result.reasons.values())} differ"
    for reason, count in result.reasons.most_common():
        yield f"    {count:6} {reason}: {REASONS[reason]}"
    for (reason, perf, own), count in result.frames.most_common(8):
        yield f"      {count:6} frames {reason}: perf {perf}, here {own}"
    for (perf, own), count in result.names.most_common(8):
        yield f"    {count:6} of thread {perf!r} in perf, {own!r} here"
    for (of_perf, of_own), count in result.pids.most_common(8):
        yield f"    {count:6} of process {of_perf} in perf, {of_own} here"
    for example in result.examples:
        yield f"  {example.reason}: thread {example.tid} at {example.ns} ns"
        yield f"    here {len(example.own)}: {' < '.join(example.own)}"
        yield f"    perf {len(example.perf)}: {' < '.join(example.perf)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, nargs="+")
    parser.add_argument("--symbols", action="append", default=[])
    parser.add_argument("--sysroot", action="append", default=[])
    parser.add_argument("-n", type=int, default=1, help="examples of each reason")
    given = parser.parse_args()
    if shutil.which("perf") is None:
        parser.error("perf is not installed")
    status = 0
    for path in given.recording:
        result = compare(path, given.n, symbols=given.symbols, sysroots=given.sysroot)
        print("\n".join(report(path, result)))
        status |= result.is_contradicted
    return status


if __name__ == "__main__":
    sys.exit(main())
