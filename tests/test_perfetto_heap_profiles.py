"""Heap profiles of Perfetto traces, as heapprofd's: they are shown and compared as those of pprof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import load_checked
from test_perfetto_traces import engine

from traceferry.analysis.info.summary import summarize
from traceferry.apps.cli import main
from traceferry.model import Trace

__all__ = ["engine"]

# heap: by stacks, bytes and objects that were allocated, and that were freed.
Heap = dict[str, tuple[int, int, int, int]]
HEAP: Heap = {"main;work;malloc": (5000, 50, 0, 0), "main;malloc": (1000, 10, 400, 4)}


def heap_trace(folder: Path, heap: Heap, name: str = "libc.malloc", file: str = "x.pftrace") -> Path:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no package perfetto")
    trace = protos.Trace()
    snapshot = trace.packet.add(trusted_packet_sequence_id=1)
    for clock in range(1, 7):
        snapshot.clock_snapshot.clocks.add(clock_id=clock, timestamp=1000)
    process = trace.packet.add(trusted_packet_sequence_id=1, timestamp=1000).process_tree.processes.add(pid=100, ppid=1)
    process.cmdline.append("app")
    data: Any = trace.packet.add(trusted_packet_sequence_id=2, timestamp=2000, sequence_flags=1).profile_packet
    functions = sorted({function for stack in heap for function in stack.split(";")})
    for iid, text in enumerate([*functions, "app"], start=1):
        data.strings.add(iid=iid, str=text.encode())
    data.mappings.add(iid=1, path_string_ids=[len(functions) + 1], start=0, end=4096)
    for iid in range(1, len(functions) + 1):
        data.frames.add(iid=iid, function_name_id=iid, mapping_id=1, rel_pc=16 * iid)
    dump = data.process_dumps.add(pid=100, heap_name=name, timestamp=2000)
    for iid, (stack, (allocated, n_allocated, freed, n_freed)) in enumerate(heap.items(), start=1):
        data.callstacks.add(iid=iid, frame_ids=[1 + functions.index(function) for function in stack.split(";")])
        dump.samples.add(
            callstack_id=iid, self_allocated=allocated, alloc_count=n_allocated, self_freed=freed, free_count=n_freed
        )
    (folder / file).write_bytes(trace.SerializeToString())
    return folder / file


def events_of(trace: Trace) -> dict[str, int]:
    return {row["name"]: row["weight"] for row in summarize(trace)["events"]["recorded"]}


def test_info_shows_what_is_not_freed_by_function(tmp_path: Path) -> None:
    trace = load_checked(heap_trace(tmp_path, HEAP))
    summary = summarize(trace)
    assert events_of(trace) == {
        "unreleased memory of libc.malloc (bytes)": 5600, "allocated memory of libc.malloc": 6000,
        "unreleased objects of libc.malloc": 56, "allocated objects of libc.malloc": 60,
    }  # fmt: skip
    rows = {row["name"]: (row["samples"], row["total_samples"]) for row in summary["functions"]["top"]}
    assert rows == {"malloc": (5600, 5600), "main": (0, 5600), "work": (0, 5000)}
    threads = [(process["name"], thread) for process in summary["processes"] for thread in process["threads"]]
    assert [(name, thread["name"]) for name, thread in threads if thread["samples"]] == [("app", "libc.malloc")]


def test_a_heap_of_which_all_was_freed(tmp_path: Path) -> None:
    """The events are those of other runs."""
    trace = load_checked(heap_trace(tmp_path, {"main;malloc": (64, 1, 64, 1)}))
    assert list(events_of(trace).values()) == [0, 64, 0, 1]


def test_the_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(heap_trace(tmp_path, HEAP)), "--tree"]) == 0
    assert "5 kB   89.3%" in capsys.readouterr().out


GATES = {
    "self > 10%": "failed", "total('work') > 10%": "failed",
    "events('allocated objects of libc.malloc') > 10%": "failed", "total('main') > 90%": "passed",
}  # fmt: skip


def test_gates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side, factor in (("base", 1), ("new", 3)):
        (tmp_path / side).mkdir()
        for nth in range(4):
            heap = {"main;work;malloc": (5000 * factor + nth, 50 * factor, 0, 0), "main;malloc": (9000, 90, nth, 1)}
            heap_trace(tmp_path / side, heap, file=f"{nth}.pftrace")
    sides = [str(tmp_path / side) for side in ("base", "new")]
    gates = [word for gate in GATES for word in ("--fail-on", gate)]
    assert main(["compare", *sides, *gates, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)["gates"]
    assert {gate["expression"]: gate["status"] for gate in found} == GATES
