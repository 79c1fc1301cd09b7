"""Seconds that the project promises are those of one machine; on a slower one, as many more are allowed as orjson needs
there for a text of markers."""

from __future__ import annotations

import gzip
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from common import CAPTURES, WORK

FIREFOX = CAPTURES / "viewers" / "firefox"
MARKERS = FIREFOX / "mathic--profile.json.gz"
# The seconds that orjson needs of a text: the shortest of several.
PARSE = """
import sys, time
import orjson
text, seconds = open(sys.argv[1], "rb").read(), []
for _ in range(7):
    value, start = None, time.process_time()
    value = orjson.loads(text)
    seconds.append(time.process_time() - start)
print(min(seconds))
"""
# What orjson takes for the markers where the seconds were promised.
PARSE_SECONDS = 0.16


def text_of(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def repeated(source: Path, times: int, target: Path) -> tuple[Path, int]:
    """Returns a profile with its threads so often, and the bytes of the largest thread and of what is shared: the
    stacks of each thread among it, as the trace has all of them, and as today's versions of the format share them."""
    profile = json.loads(gzip.decompress(source.read_bytes()))
    threads: list[dict[str, Any]] = []
    for nth in range(times):
        for thread in profile["threads"]:
            stacks, n_frames = thread["stackTable"], thread["frameTable"]["length"]
            frame = [
                nth % n_frames if prefix is None else frame
                for frame, prefix in zip(stacks["frame"], stacks["prefix"], strict=True)
            ]
            threads.append(thread | {"tid": str(1000 + len(threads)), "stackTable": stacks | {"frame": frame}})
    texts = [text_of(thread) for thread in threads]
    rest = text_of(profile | {"threads": []})
    target.write_text(rest.replace('"threads":[]', f'"threads":[{",".join(texts)}]'))
    n_stacks = sum(len(text_of(thread["stackTable"])) for thread in threads)
    return target, len(rest) + max(map(len, texts)) + n_stacks


def apart(make: Callable[..., Any], *arguments: Any) -> Any:
    """Returns what a function returns in another process: what this one has needed counts for those that it starts."""
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        return other.submit(make, *arguments).result()


def markers() -> Path:
    """Returns the text that orjson is measured with: 321 k markers."""
    path, _ = apart(repeated, MARKERS, 76, WORK / "markers.json")
    return Path(path)


def parse_seconds(path: Path) -> float:
    """Returns the CPU time that orjson needs for a text."""
    command = [sys.executable, "-c", PARSE, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def slower(parse: float) -> float:
    """Returns how many times as long this machine takes. parse: the seconds of orjson here."""
    return max(parse / PARSE_SECONDS, 1.0)


def in_promised_seconds(seconds_of: Callable[[], float], text: Path, rounds: int) -> float:
    """Returns the seconds that something would take where they were promised: the median, each beside orjson's, as the
    machine may be another one a minute later. text: of `markers`."""
    return statistics.median(seconds_of() / slower(parse_seconds(text)) for _ in range(rounds))
