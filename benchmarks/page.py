"""Measures pages: how large they are beside the files that they hold, and how soon a browser shows them.

Run by `make bench`. Opening is measured in chromium, from disk: the time until something is painted and until the page
can be used, and how long one step of panning takes. Where there is no chromium, nothing is opened.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from common import CAPTURES, MB, TRACEFERRY, WORK, Command, Targets, convert, measure, unpacked
from speed import MARKERS, in_promised_seconds, markers

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
# Each with the folder where it is decompressed.
RECORDINGS = {
    "1 M samples": (CAPTURES / "jit" / "bigfp" / "perf.data.zst", WORK / "bigfp"),
    "0.2 M calls": (CAPTURES / "xray" / "logs" / "small5m-fdr-c19-pie-bigmix.xray.zst", WORK),
    "9.7 M calls": (CAPTURES / "xray" / "logs" / "l100-fdr-c19-pie-bigmix.xray.zst", WORK),
}
# What the project promises; seconds of CPU time until a page is written are those of `speed`.
WRITTEN_S = {"1 M samples": 2.0, "9.7 M calls": 5.0}
PAINT_S, READY_S, FRAME_MS = 1.5, 2.0, 16.0
# Times the CPU that writing the files that it holds takes, one by one.
CPU = 2.0
SIZE, SIZE_MORE = 1.25, 300_000
# Pages of about 5 MB are painted so soon.
PAINTED = 6_000_000
PAN = """() => { const { graph } = window.traceferryPage.flame; const began = performance.now();
    for (let i = 0; i < 30; i++) { graph.window = [i / 100, 0.5 + i / 100]; graph.layOut(); }
    return (performance.now() - began) / 30; }"""


PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the size of pages, and how soon a browser shows them.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each page is opened (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    WORK.mkdir(parents=True, exist_ok=True)
    there = {name: unpacked(packed, folder) for name, (packed, folder) in RECORDINGS.items() if packed.exists()}
    if not there:
        sys.exit("no recordings: set TRACEFERRY_SHARED to the folder that holds captures")
    print(f"\npages; opening: median of {arguments.rounds}")
    print(f"{'':14}{'CPU s':>9}{'of files':>9}{'page MB':>9}{'files MB':>10}{'paint s':>9}{'ready s':>9}{'pan ms':>8}")
    targets, measured = Targets(), []
    for name, path in there.items():
        page, cpu = converted(path, "html")
        parts = [converted(path, suffix) for suffix in held(page)]
        files, cpu_of_files = sum(part.stat().st_size for part, _ in parts), sum(cpu for _, cpu in parts)
        opened = [times_of(page) for _ in range(arguments.rounds)]
        paint, ready, pan = (statistics.median(column) for column in zip(*opened, strict=True))
        size = page.stat().st_size
        sizes = f"{size / MB:9.2f}{files / MB:10.2f}"
        print(f"{name:14}{cpu:9.2f}{cpu_of_files:9.2f}{sizes}{paint:9.2f}{ready:9.2f}{pan:8.1f}", flush=True)
        measured.append((name, cpu / cpu_of_files, size, files, paint, ready, pan))
    print("\ntargets")
    check_written(targets, there, arguments.rounds)
    for name, times, size, files, paint, ready, pan in measured:
        targets.check(f"{name}: at most {CPU:.0f} times the CPU of its files", f"{times:.2f}", times <= CPU)
        most = SIZE * files + SIZE_MORE
        targets.check(
            f"{name}: at most {SIZE} times the compressed files and 300 kB", f"{size / most:.2f}", size <= most
        )
        if ready == 0:
            print(f"  {name}: not opened: chromium is not installed (apt install chromium)")
        else:
            if size <= PAINTED:
                targets.check(f"{name}: painted within {PAINT_S} s", f"{paint:.2f} s", paint <= PAINT_S)
            targets.check(f"{name}: usable within {READY_S:.0f} s", f"{ready:.2f} s", ready <= READY_S)
            targets.check(f"{name}: a step of panning within {FRAME_MS:.0f} ms", f"{pan:.1f} ms", pan <= FRAME_MS)
    return targets.status()


def check_written(targets: Targets, there: dict[str, Path], rounds: int) -> None:
    """Checks how long it takes until pages are written."""
    if not MARKERS.exists():
        print("  not compared with the seconds that were promised: there are no profiles in captures/viewers/firefox")
        return
    text = markers()
    for name in [name for name in WRITTEN_S if name in there]:
        command = convert(there[name], "html")
        seconds = in_promised_seconds(partial(cpu_of, command), text, rounds)
        most = WRITTEN_S[name]
        targets.check(f"{name}: written within {most:.0f} s of CPU time", f"{seconds:.2f} s", seconds <= most)


def cpu_of(command: Command) -> float:
    return measure(command).cpu


def converted(path: Path, suffix: str) -> tuple[Path, float]:
    """The output, and the CPU time that it took."""
    output = WORK / f"page.{path.name.split('.')[0]}.{suffix}"
    before = _cpu_of_children()
    command = [*TRACEFERRY, "convert", str(path), "-o", str(output), "--quiet"]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return output, _cpu_of_children() - before


def held(page: Path) -> list[str]:
    """The suffixes of the files that a page holds."""
    from pages import data_of

    suffix_of = {"firefox": "json.gz", "perfetto": "pftrace.gz"}
    return [suffix_of[file["name"]] for file in data_of(page)["embedded"] if file["size"] is not None]


def times_of(page: Path) -> tuple[float, float, float]:
    """(s until something is painted, s until the page can be used, ms of a step of panning); 0 without a browser."""
    from pages import CHROMIUM, browser

    if CHROMIUM is None:
        return 0.0, 0.0, 0.0
    with browser() as opened:
        shown = opened.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        shown.goto(page.as_uri(), wait_until="commit")
        shown.wait_for_selector("html[data-ready]", timeout=120_000)
        return shown.evaluate(PAINT) / 1000, time.perf_counter() - began, shown.evaluate(PAN)


def _cpu_of_children() -> float:
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
