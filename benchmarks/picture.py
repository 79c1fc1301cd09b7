"""Measures what a person waits for: from the command to the first picture in each viewer, and its parts apart.

The parts of the command are commands of their own: `read` loads the recording and makes every table, `convert` writes
without compression, `compressed` is what a person types. A viewer's time begins when its page is opened and ends when
the flame graph or the timeline is drawn. The viewers are the real ones, as far as the environment names them:

    FXP_DIST             the folder of the built Firefox Profiler (or FXP: a folder with build/profiler/dist)
    PUI                  a folder with the built Perfetto UI in dist; needs the engine, too
    PERFETTO_TP_BIN      trace_processor_shell

What is not there is named in a line and left out. Times of parts are whole-process figures of one run each, medians of
`--rounds`: take them on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from common import CAPTURES, MB, TRACEFERRY, WORK, Command, Run, Targets, convert, in_turn, unpacked
from viewers import NotShownError, NotThereError, engine, firefox_picture, page_picture, perfetto_picture

FOLDER = WORK / "picture"
# Loads the recording and makes every table that an exporter asks for.
READ = """
import sys
from traceferry.api import load
trace = load(sys.argv[1], symbols=sys.argv[2:]).opened()
n_rows = 0
for _, thread in trace.threads:
    data = thread.load(trace)
    for table in (data.calls, data.samples, data.allocations, *data.other_samples.values(), *data.markers.values()):
        n_rows += sum(len(piece) for piece in table.pieces())
print(n_rows)
"""


@dataclass(frozen=True)
class Recording:
    """path: makes the file at the first call, None where it is missing; symbols: of the recorded program."""

    path: Callable[[], Path | None]
    symbols: tuple[Path, ...] = ()


def captured(*parts: str) -> Callable[[], Path | None]:
    """A recording of the captures with what lies beside it, decompressed once."""
    packed = CAPTURES.joinpath(*parts)

    def path() -> Path | None:
        return unpacked(packed, FOLDER / packed.parent.name) if packed.exists() else None

    return path


def made(*parts: str) -> Callable[[], Path | None]:
    """What another benchmark has recorded."""
    file = WORK.joinpath(*parts)
    return lambda: file if file.exists() else None


RECORDINGS = {
    "l100": Recording(
        captured("xray", "logs", "l100-fdr-c19-pie-bigmix.xray.zst"), (CAPTURES / "xray" / "bin19" / "bigmix-pie",)
    ),
    "small5m": Recording(
        captured("xray", "logs", "small5m-fdr-c19-pie-bigmix.xray.zst"), (CAPTURES / "xray" / "bin19" / "bigmix-pie",)
    ),
    "bigfp": Recording(captured("jit", "bigfp", "perf.data.zst")),
    "bigjit": Recording(captured("jit", "bigjit", "perf.data.zst")),
    "hotcalls": Recording(captured("mono", "large", "hotcalls.mlpd.zst")),
    "AllocStorm": Recording(made("mono", "AllocStorm.mlpd")),
    "unwinding": Recording(made("unwind", "big3.data")),
}
# What the project promises: seconds until a viewer shows a file, and until trace_processor has loaded it.
MOST_SECONDS = {("l100", "Firefox front-end, .json.gz"): 3.0, ("l100", "trace_processor, .pftrace"): 8.0}
MADE_BY = {"AllocStorm": "benchmarks/mono.py", "unwinding": "benchmarks/unwind.py"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the way from the command to a picture in each viewer.")
    parser.add_argument("recordings", nargs="*", metavar="RECORDING", help=f"of {', '.join(RECORDINGS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each part runs (default: 3)")
    parser.add_argument("--pictures", metavar="DIR", type=Path, help="keep a picture of each viewer in this folder")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION", help="for convert: --max-events=1M")
    parser.add_argument("--no-peer", action="store_true", help="only traceferry: no other converters")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    if unknown := [name for name in arguments.recordings if name not in RECORDINGS]:
        sys.exit(f"no recording is called {unknown[0]}: {', '.join(RECORDINGS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    measured, targets = 0, Targets()
    for name in arguments.recordings or RECORDINGS:
        path = RECORDINGS[name].path()
        if path is None:
            how = f": {MADE_BY[name]} makes it" if name in MADE_BY else ": set TRACEFERRY_SHARED"
            print(f"\n{name}: skipped: the recording is not there{how}")
            continue
        one = Measurement(name, path, RECORDINGS[name].symbols, arguments, targets)
        one.command_line()
        one.viewers()
        if not arguments.no_peer:
            one.peers()
        measured += 1
    return targets.status() if targets.n_met or targets.n_missed else int(measured == 0)


class Shown(NamedTuple):
    """A viewer's seconds. transfer: until the file was read; load: until the viewer had it; draw: until it was drawn;
    peak: bytes of its largest process."""

    transfer: float
    load: float
    draw: float
    peak: int


class Measurement:
    """One recording on its way into the viewers; prints a line for each part."""

    def __init__(
        self, name: str, source: Path, symbols: tuple[Path, ...], arguments: argparse.Namespace, targets: Targets
    ) -> None:
        self.name = name
        self._targets = targets
        self._source = source
        self._symbols = [str(path) for path in symbols]
        self._rounds = arguments.rounds
        self._pictures: Path | None = arguments.pictures
        self._options = [*arguments.option, *(word for path in self._symbols for word in ("--symbols", path))]
        print(f"\n{name}: {source.name}, {source.stat().st_size / MB:.0f} MB; median of {self._rounds}")
        print(f"{'':34}{'CPU s':>8}{'wall s':>8}{'peak MB':>9}{'file MB':>9}")

    def command_line(self) -> None:
        read = [sys.executable, "-c", READ, str(self._source), *self._symbols]
        commands = {"read": Command(read, WORK / "rows.txt", printed=True)}
        for suffix in ("json", "json.gz", "pftrace", "pftrace.gz", "html"):
            commands[suffix] = convert(self._source, suffix, *self._options)
        runs = in_turn(commands, self._rounds)
        self._print("read", runs["read"])
        for plain in ("json", "pftrace"):
            packed = runs[f"{plain}.gz"]
            self._print(f"convert, .{plain}", runs[plain])
            self._print(f"convert, .{plain}.gz", packed)
            shares = ", ".join(
                f"{part} {seconds:.2f}"
                for part, seconds in (
                    ("read", runs["read"].cpu),
                    ("convert", runs[plain].cpu - runs["read"].cpu),
                    ("compress", packed.cpu - runs[plain].cpu),
                )
            )
            print(f"{'':4}CPU s: {shares}")
        self._print("convert, .html", runs["html"])

    def viewers(self) -> None:
        """The files as a person makes them, in the viewers."""
        for what, suffix, show in (
            ("Firefox front-end, .json.gz", "json.gz", firefox_picture),
            ("Perfetto UI, .pftrace", "pftrace", perfetto_picture),
            ("page", "html", page_picture),
        ):
            with self._converted(suffix) as file:
                try:
                    self._shown(what, file, show)
                except NotThereError as reason:
                    print(f"  {what}: not shown: {reason}")
                except NotShownError as reason:
                    print(f"  {what}: failed: {reason}")
                    self._check(what, math.inf)
        with self._converted("pftrace") as file:
            self._engine("trace_processor, .pftrace", file)

    def peers(self) -> None:
        """Other ways of the same recording into Perfetto's engine."""
        for what, command, output in self._peers():
            output.unlink(missing_ok=True)
            with open(output if command[0] == "perf" else os.devnull, "wb") as printed:
                started = time.perf_counter()
                done = subprocess.run(command, stdout=printed, stderr=subprocess.DEVNULL, check=False)
            if done.returncode != 0 or not output.exists():
                print(f"  {what}: exit status {done.returncode}")
                continue
            print(f"  {what:32}{'':8}{time.perf_counter() - started:8.2f}{'':9}{output.stat().st_size / MB:9.1f}")
            self._engine(f"trace_processor, {output.suffix}", output)
            output.unlink()

    def _peers(self) -> Iterator[tuple[str, list[str], Path]]:
        xray = next((found for v in ("", "-19", "-18", "-17") if (found := shutil.which(f"llvm-xray{v}"))), None)
        if self._source.suffix == ".xray" and xray:
            output = FOLDER / "peer.json"
            options = ["-f", "trace_event", "-symbolize", "-m", *self._symbols] if self._symbols else []
            yield "llvm-xray convert", [xray, "convert", *options, str(self._source), "-o", str(output)], output
        if self._source.suffix == ".data" and shutil.which("perf"):
            output = FOLDER / "peer.txt"
            yield "perf script", ["perf", "script", "--no-inline", "-i", str(self._source)], output
        if self._source.suffix == ".data" and (samply := shutil.which("samply")):
            output = FOLDER / "peer.json.gz"
            yield "samply import", [samply, "import", "--save-only", "-o", str(output), str(self._source)], output

    @contextmanager
    def _converted(self, suffix: str) -> Iterator[Path]:
        output = FOLDER / f"{self.name}.{suffix}"
        command = [*TRACEFERRY, "convert", str(self._source), *self._options, "-o", str(output), "--quiet"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        try:
            yield output
        finally:
            output.unlink(missing_ok=True)

    def _shown(self, what: str, file: Path, show: Callable[[Path, Path | None], Any]) -> None:
        picture = self._pictures / f"{self.name}.{file.name.split('.', 1)[1]}.png" if self._pictures else None
        rounds = [Shown(*show(file, picture)) for _ in range(self._rounds)]
        transfer, load, draw, peak = (median(column) for column in zip(*rounds, strict=True))
        print(f"  {what:32}{'':8}{transfer + load + draw:8.2f}{peak / MB:9.0f}{file.stat().st_size / MB:9.1f}")
        print(f"{'':4}wall s: transfer {transfer:.2f}, load {load:.2f}, draw {draw:.2f}", flush=True)
        self._check(what, transfer + load + draw)

    def _engine(self, what: str, file: Path) -> None:
        try:
            command = Command(
                [engine(), "query", str(file), "select count(*) from slice"], WORK / "n.txt", printed=True
            )
        except NotThereError as reason:
            print(f"  {what}: not loaded: {reason}")
            return
        run = in_turn({what: command}, self._rounds)[what]
        self._print(what, run, file.stat().st_size)
        self._check(what, run.wall)

    def _check(self, what: str, seconds: float) -> None:
        if most := MOST_SECONDS.get((self.name, what)):
            self._targets.check(f"{self.name}, {what}: at most {most:.0f} s", f"{seconds:.2f} s", seconds <= most)

    def _print(self, what: str, run: Run, size: int | None = None) -> None:
        size = run.size if size is None else size
        shown_size = f"{size / MB:9.1f}" if re.search("convert|trace_processor", what) else ""
        print(f"  {what:32}{run.cpu:8.2f}{run.wall:8.2f}{run.peak / MB:9.0f}{shown_size}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
