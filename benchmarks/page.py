"""Measures pages: how large they are beside the files that they hold, and how soon a browser shows them.

Run by `make bench`. Opening is measured in chromium, from disk: the time until the page can be used, and how long it
takes to lay out and draw one step of panning. Nothing is opened where there is no chromium.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

from common import CAPTURES, MB, TRACEFERRY, WORK, Targets

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
RECORDINGS = {
    "1 M samples": CAPTURES / "jit" / "bigfp" / "perf.data.zst",
    "0.2 M calls": CAPTURES / "xray" / "logs" / "small5m-fdr-c19-pie-bigmix.xray.zst",
    "9.7 M calls": CAPTURES / "xray" / "logs" / "l100-fdr-c19-pie-bigmix.xray.zst",
}
# What the project promises.
READY_S, FRAME_MS = 2.0, 16.0
SIZE, SIZE_MORE = 1.15, 300_000
PAN = """() => { const { graph } = window.traceferryPage.flame; const began = performance.now();
    for (let i = 0; i < 30; i++) { graph.window = [i / 100, 0.5 + i / 100]; graph.layOut(); }
    return (performance.now() - began) / 30; }"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures the size of pages, and how soon a browser shows them.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each page is opened (default: 3)")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        sys.exit("at least one round is needed")
    WORK.mkdir(parents=True, exist_ok=True)
    there = {name: path for name, path in RECORDINGS.items() if path.exists()}
    if not there:
        sys.exit("no recordings: set TRACEFERRY_SHARED to the folder that holds captures")
    print(f"\npages; opening: median of {arguments.rounds}")
    print(f"{'':14}{'CPU s':>9}{'page MB':>9}{'files MB':>10}{'ready s':>9}{'pan ms':>8}")
    targets, measured = Targets(), []
    for name, path in there.items():
        page, cpu = converted(path, "html")
        files = sum(converted(path, suffix)[0].stat().st_size for suffix in held(page))
        opened = [times_of(page) for _ in range(arguments.rounds)]
        ready, pan = (statistics.median(column) for column in zip(*opened, strict=True))
        size = page.stat().st_size
        print(f"{name:14}{cpu:9.2f}{size / MB:9.2f}{files / MB:10.2f}{ready:9.2f}{pan:8.1f}", flush=True)
        measured.append((name, size, files, ready, pan))
    print("\ntargets")
    for name, size, files, ready, pan in measured:
        most = SIZE * files + SIZE_MORE
        targets.check(
            f"{name}: at most {SIZE} times the compressed files and 300 kB", f"{size / most:.2f}", size <= most
        )
        if ready == 0:
            print(f"  {name}: not opened: chromium is not installed (apt install chromium)")
        else:
            targets.check(f"{name}: usable within {READY_S:.0f} s", f"{ready:.2f} s", ready <= READY_S)
            targets.check(f"{name}: a step of panning within {FRAME_MS:.0f} ms", f"{pan:.1f} ms", pan <= FRAME_MS)
    return targets.status()


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


def times_of(page: Path) -> tuple[float, float]:
    """(s until the page can be used, ms of a step of panning); 0 without a browser."""
    from pages import CHROMIUM, browser

    if CHROMIUM is None:
        return 0.0, 0.0
    with browser() as opened:
        shown = opened.new_page(viewport={"width": 1280, "height": 900})
        began = time.perf_counter()
        shown.goto(page.as_uri(), wait_until="commit")
        shown.wait_for_selector("html[data-ready]", timeout=120_000)
        return time.perf_counter() - began, shown.evaluate(PAN)


def _cpu_of_children() -> float:
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
