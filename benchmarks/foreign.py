"""Measures profiles of other tools as inputs, beside a Firefox profile of the same size and an empty Python.

Run by `make bench`. Each input is some 50 MB of the same made-up call tree: text of collapsed stacks, a profile of
speedscope with samples and one with events, one of V8, one of pprof. CPU time and memory are those of processes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import MB, ROOT, TRACEFERRY, WORK, Command, Run, Targets, in_turn

sys.path.insert(0, str(ROOT / "tests"))
from builders import stacks as builders

EMPTY = [sys.executable, "-c", "import numpy, orjson"]
SIZE = 50 * MB
N_FUNCTIONS, N_NODES, MOST_DEEP = 3_000, 100_000, 60
# Of the CPU time that a Firefox profile of that size takes, less that of an empty Python.
PART_OF_FIREFOX = 1.5
Json = dict[str, Any]


class Tree(NamedTuple):
    """parent, function: of each node, parents first; paths: the functions of each node's stack, outermost first."""

    parent: list[int]
    function: list[int]
    paths: list[list[int]]


def tree() -> Tree:
    """Returns the same tree in every run."""
    random = np.random.default_rng(1)
    parent, paths = [-1], [[0]]
    function = random.integers(0, N_FUNCTIONS, N_NODES).tolist()
    function[0] = 0
    at = random.random(N_NODES)
    for nth in range(1, N_NODES):
        # Most nodes continue one of the last: deep stacks that share their begin.
        above = int(nth - 1 - at[nth] ** 8 * (nth - 1))
        above = above if len(paths[above]) < MOST_DEEP else parent[above]
        parent.append(above)
        paths.append([*paths[above], function[nth]])
    return Tree(parent, function, paths)


def samples() -> Iterator[int]:
    """Yields nodes without end; one is often that of the sample before."""
    random = np.random.default_rng(2)
    while True:
        drawn = random.integers(0, N_NODES, 1 << 12)
        yield from np.repeat(drawn, random.geometric(0.5, len(drawn))).tolist()


def filled(size_of: Any) -> list[int]:
    """Returns so many samples that they fill the file. size_of: the bytes that the sample of a node takes."""
    found, size = list[int](), 0
    for node in samples():
        found.append(node)
        size += size_of(node)
        if size >= SIZE:
            return found
    raise AssertionError


def name(function: int) -> str:
    return f"module_{function % 97}::Type{function % 31}::function_{function}"


def make_collapsed(made: Tree, target: Path) -> None:
    names = [name(nth) for nth in range(N_FUNCTIONS)]
    lines = [";".join(names[one] for one in path) + " 3\n" for path in made.paths]
    target.write_text("".join(lines[node] for node in filled(lambda node: len(lines[node]))))


def make_speedscope(made: Tree, target: Path) -> None:
    texts = [json.dumps(path, separators=(",", ":")) for path in made.paths]
    listed = filled(lambda node: len(texts[node]) + 8)
    weights = ",".join(["0.001"] * len(listed))
    frames = json.dumps([{"name": name(nth), "file": f"f{nth % 50}.py", "line": nth} for nth in range(N_FUNCTIONS)])
    target.write_text(
        f'{{"$schema":"{builders.URL}","shared":{{"frames":{frames}}},"profiles":[{{"type":"sampled","name":"x",'
        f'"unit":"seconds","startValue":0,"endValue":{len(listed) / 1000},'
        f'"samples":[{",".join(texts[node] for node in listed)}],"weights":[{weights}]}}]}}'
    )


def make_events(made: Tree, target: Path) -> None:
    events, within, size, at = list[str](), list[int](), 0, 0
    for node in samples():
        path = made.paths[node]
        common = 0
        while common < min(len(path), len(within)) and path[common] == within[common]:
            common += 1
        at += 1
        steps = [("C", one) for one in reversed(within[common:])] + [("O", one) for one in path[common:]]
        events += [f'{{"type":"{kind}","frame":{one},"at":{at / 1000}}}' for kind, one in steps]
        size += 36 * len(steps)
        within = path
        if size >= SIZE:
            break
    events += [f'{{"type":"C","frame":{one},"at":{at / 1000}}}' for one in reversed(within)]
    frames = json.dumps([{"name": name(nth)} for nth in range(N_FUNCTIONS)])
    target.write_text(
        f'{{"$schema":"{builders.URL}","shared":{{"frames":{frames}}},"profiles":[{{"type":"evented","name":"x",'
        f'"unit":"milliseconds","startValue":0,"endValue":{at / 1000},"events":[{",".join(events)}]}}]}}'
    )


def make_cpuprofile(made: Tree, target: Path) -> None:
    below: list[list[int]] = [[] for _ in made.parent]
    for nth, above in enumerate(made.parent[1:], 1):
        below[above].append(nth + 1)
    nodes = []
    for nth, function in enumerate(made.function):
        ticks = [{"line": 1 + function + nth % 5, "ticks": 10}]
        node = builders.node(function, name(function) if nth else "(root)", below[nth], positionTicks=ticks)
        nodes.append(node | {"id": nth + 1})
    text = json.dumps(nodes, separators=(",", ":"))
    listed = list(zip(range((SIZE - len(text)) // 11), samples(), strict=False))
    root = {"startTime": 0, "endTime": 1000 * len(listed), "samples": [node + 1 for _, node in listed]}
    root |= {"timeDeltas": [1000 + nth % 17 for nth, _ in listed]}
    target.write_text(f'{{"nodes":{text},{json.dumps(root, separators=(",", ":"))[1:]}')


def make_pprof(made: Tree, target: Path) -> None:
    profile = builders.Pprof()
    numbers = [profile.location((name(nth), f"f{nth % 50}.go", nth)) for nth in range(N_FUNCTIONS)]
    values = builders.message((2, builders.varint(1) + builders.varint(10_000_000)))
    rows = []
    for path in made.paths:
        packed = b"".join(builders.varint(numbers[one]) for one in reversed(path))
        rows.append(builders.message((2, builders.message((1, packed)) + values)))
    listed = filled(lambda node: len(rows[node]))
    target.write_bytes(profile.data() + b"".join(rows[node] for node in listed))


def make_firefox(made: Tree, target: Path) -> None:
    """As samply writes it: stacks once, samples by time."""
    n = N_FUNCTIONS
    strings = [name(nth) for nth in range(n)]
    one = {
        "name": "x", "isMainThread": True, "pid": 1, "tid": 1, "registerTime": 0, "unregisterTime": None,
        "processType": "default", "processName": "x", "pausedRanges": [], "processStartupTime": 0,
        "processShutdownTime": None, "markers": {"length": 0, "category": [], "data": [], "endTime": [], "name": [],
                                                 "phase": [], "startTime": []},
        "frameTable": {
            "length": n, "func": [*range(n)], "address": [-1] * n, "category": [0] * n, "subcategory": [0] * n,
            "inlineDepth": [0] * n, "nativeSymbol": [None] * n, "line": [None] * n, "column": [None] * n,
            "innerWindowID": [None] * n, "implementation": [None] * n, "optimizations": [None] * n,
        },
        "funcTable": {
            "length": n, "name": [*range(n)], "isJS": [False] * n, "relevantForJS": [False] * n, "resource": [-1] * n,
            "fileName": [None] * n, "lineNumber": [None] * n, "columnNumber": [None] * n,
        },
        "nativeSymbols": {"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []},
        "resourceTable": {"length": 0, "lib": [], "name": [], "host": [], "type": []},
        "stackTable": {
            "length": N_NODES, "frame": made.function, "category": [0] * N_NODES, "subcategory": [0] * N_NODES,
            "prefix": [None if above < 0 else above for above in made.parent],
        },
        "stringArray": strings,
    }  # fmt: skip
    listed = filled(lambda _: 24)
    one["samples"] = {
        "length": len(listed), "weightType": "samples", "weight": [1] * len(listed), "stack": listed,
        "time": [float(nth) for nth in range(len(listed))], "threadCPUDelta": [1000] * len(listed),
    }  # fmt: skip
    meta = {
        "version": 24, "preprocessedProfileVersion": 49, "interval": 1, "startTime": 0, "processType": 0,
        "product": "made up", "stackwalk": 0,
        "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
        "markerSchema": [], "symbolicated": True,
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"},
    }  # fmt: skip
    target.write_text(json.dumps({"meta": meta, "libs": [], "threads": [one]}, separators=(",", ":")))


MAKERS = {
    "made-up.json": make_firefox, "made-up.folded": make_collapsed, "made-up.speedscope.json": make_speedscope,
    "made-up-events.speedscope.json": make_events, "made-up.cpuprofile": make_cpuprofile, "made-up.pb": make_pprof,
}  # fmt: skip


def make_all() -> list[Path]:
    made = tree()
    for file, make in MAKERS.items():
        if not (WORK / file).exists():
            make(made, WORK / file)
    return [WORK / file for file in MAKERS]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures profiles of other tools as inputs.")
    parser.add_argument("--rounds", type=int, default=3, help="how often each command runs (default: 3)")
    rounds = parser.parse_args().rounds
    WORK.mkdir(parents=True, exist_ok=True)
    # In another process, as what this one has needed counts for those that it starts.
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        files = other.submit(make_all).result()
    commands = {"python": Command(EMPTY)}
    commands |= {path.name: Command([*TRACEFERRY, "info", str(path)]) for path in files}
    runs: dict[str, Run] = in_turn(commands, rounds)
    for path in files:
        run = runs[path.name]
        print(f"{path.name:34}{path.stat().st_size / MB:6.1f} MB{run.cpu:8.2f} s of CPU{run.peak / MB:8.0f} MB")
    targets = Targets()
    empty, first = runs["python"].cpu, files[0].name
    for path in files[1:]:
        part = (runs[path.name].cpu - empty) / (runs[first].cpu - empty)
        targets.check(
            f"{path.name}: at most {PART_OF_FIREFOX} of a Firefox profile of its size, less Python", f"{part:.2f}",
            part <= PART_OF_FIREFOX,
        )  # fmt: skip
    return targets.status()


if __name__ == "__main__":
    sys.exit(main())
