"""Profiles of stacks that others recorded: their totals and functions are what these programs say of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from outputs import saved
from support import for_each, load_checked

from traceferry.model import LEAVE, Trace

FIXTURES = Path(__file__).parent.parent / "fixtures" / "stacks"


class Said(NamedTuple):
    """events: what each adds up to; functions: what some have themselves of the samples of the first event; damage:
    kinds of the report but that times were made."""

    events: dict[str, int]
    functions: dict[str, int]
    damage: frozenset[str] = frozenset()


# Of Go and gperftools: go tool pprof -top. Of others: the sum of the numbers in the file, or what it printed.
SAID = {
    "go-cpu.pb.gz": Said(
        {"samples": 52, "cpu": 520_000_000}, {"time.Now": 39, "time.now": 9, "main.busy": 2, "main.main": 0}),
    "go-heap.pb.gz": Said({"inuse_space (bytes)": 5_742_213}, {}),
    "go-mutex.pb.gz": Said({"delay (ns)": 114_838_378}, {}),
    "gperftools.pb.gz": Said(
        {"samples": 135, "cpu": 540_000_000}, {"inner": 133, "fill": 0}, frozenset({"names_missing"})),
    "heaptrack.folded": Said({"samples": 1001}, {"fill": 1000, "main": 0}),
    "austin-wall.austin": Said({"time (ns)": 995_848_000}, {}),
    "austin-memory.austin": Said({"memory (bytes)": 4_087_808}, {}),
    "py-spy.folded": Said({"samples": 39}, {}),
    "py-spy.speedscope.json": Said({"samples": 25}, {}),
    "excimer.folded": Said({"samples": 79}, {}),
    # What passed between the first and the last sample, and once more the mean of it.
    "node.cpuprofile": Said({"wall-clock": 538_871_677}, {"fib": 86, "(garbage collector)": 6}),
    "node.heapprofile": Said({"bytes": 65_728}, {}),
    "bun.cpuprofile": Said({"wall-clock": 507_490_178}, {"fib": 186, "fill": 5}),
    "deno.cpuprofile": Said({"wall-clock": 519_556_332}, {"fib": 372, "fill": 8}),
}  # fmt: skip


def sums(trace: Trace) -> tuple[dict[str, int], Counter[str]]:
    """Returns (the weights of each event, the samples that functions have of the first one)."""
    whole, own = Counter[str](), Counter[str]()
    for _, thread in trace.threads:
        data = thread.load(trace)
        for row, table in {0: data.samples, **data.other_samples}.items():
            whole[trace.events[row].name] += int(table["weight"].sum())
            if row == 0:
                n_samples = trace.events[row].n_samples(table).tolist()
                for stack, n in zip(table["stack"].tolist(), n_samples, strict=True):
                    if stack >= 0:
                        own[trace.func_name(int(trace.frames["func"][trace.stacks["frame"][stack]]))] += n
    return dict(whole), own


@for_each("name", {name: name for name in SAID})
def test_what_is_read_is_what_its_writer_says(name: str) -> None:
    trace = load_checked([str(FIXTURES / name)])
    whole, own = sums(trace)
    said = SAID[name]
    assert {event: whole.get(event) for event in said.events} == said.events
    assert {function: own[function] for function in said.functions} == said.functions
    assert {issue.kind for issue in trace.report} - {"times_made"} == said.damage


def test_each_row_of_memray_is_bytes() -> None:
    held = json.loads((FIXTURES / "memray.speedscope.json").read_text())
    trace = load_checked([str(FIXTURES / "memray.speedscope.json")])
    whole, _ = sums(trace)
    # 1 ms for each row, and not for each byte.
    assert trace.end_ts - trace.start_ts < 100_000_000
    names = {"bytes": "bytes", "none": "samples"}
    assert whole == {names[one["unit"]]: sum(one["weights"]) for one in held["profiles"]}


def test_calls_of_pyinstrument_last_as_long_as_it_says() -> None:
    """It prints 0.529 s for the whole of the program."""
    trace = load_checked([str(FIXTURES / "pyinstrument.speedscope.json")])
    ((_, thread),) = trace.threads
    calls = thread.load(trace).calls
    assert (int(calls["ts"][-1]) - int(calls["ts"][0])) / 1e9 == pytest.approx(0.529464, abs=1e-6)
    assert int((calls["flags"] & LEAVE != 0).sum()) * 2 == len(calls)
    # Its tree has [self] where a function runs itself, which is no call.
    assert {trace.func_name(int(trace.frames["func"][frame])) for frame in set(calls["frame"].tolist())} == {
        "<module>", "main", "start", "wait", "lock.acquire", "work", "fib", "dumps", "sleep",
    }  # fmt: skip


@for_each("name", {name: name for name in SAID})
def test_collapsed_stacks_of_it_have_the_same_amounts(name: str, tmp_path: Path) -> None:
    trace = load_checked([str(FIXTURES / name)])
    target = saved(trace, tmp_path / "x.folded")
    written = [line.rsplit(" ", 1) for line in target.read_text().splitlines()]
    with_stack = sum(sums(trace)[1].values())
    assert sum(int(number) for _, number in written) == with_stack
    again = load_checked([str(target)])
    assert sum(sums(again)[1].values()) == with_stack
