"""Comparisons of two recordings."""

from __future__ import annotations

from collections.abc import Callable

from growth_cases.case import INPUT, OUTPUT, Case, Run
from growth_cases.jitdump import jitdump_functions
from growth_cases.perf import perf_markers, perf_stacks, perf_thread_names
from growth_cases.xray import xray_depth, xray_functions, xray_threads


def compared(name: str, suffix: str, x: int, make: Callable[[int], bytes]) -> Case:
    """With a recording of as much, as text and as a page."""
    both = ["compare", "base", INPUT]
    runs: dict[str, list[str] | Run] = {"text": both, "html": [*both, "-o", f"{OUTPUT}.html", "--quiet"]}
    return Case(f"compare: {name}", suffix, x, make, runs, {"base": make})


CASES = [
    compared("functions", "xray", 4_000, xray_functions),
    compared("depth", "xray", 1_000, xray_depth),
    compared("threads", "xray", 50, xray_threads),
    compared("thread names", "data", 100, perf_thread_names),
    compared("stacks", "data", 2_000, perf_stacks),
    compared("code", "dump", 2_000, jitdump_functions),
    compared("markers", "data", 10_000, perf_markers),
]
