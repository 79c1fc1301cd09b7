"""What samples say of accesses to memory (perf mem, perf record -d -W), control groups and pages. Recordings are built;
`perf script`, where it is installed, reads the same files."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from builders.perf_data import (
    CGROUP,
    DUMMY,
    HARDWARE,
    NAMESPACES,
    RAW,
    SCHEDSTAT_CPU,
    SCHEDSTAT_DOMAIN,
    SOFTWARE,
    PerfData,
)
from support import data_of, load_checked
from test_perf_map import LIB, PID, START, path_text, read, recorded, reported

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.files.source import open_source
from traceferry.importers.perf import dump
from traceferry.importers.perf.accesses import source_of
from traceferry.model import Trace

needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
LOADS = "cpu/mem-loads/"
TYPES = "IP|TID|TIME|ADDR|CALLCHAIN|PERIOD|DATA_SRC"


def source(
    op: int = 2, lvl: int = 1, snoop: int = 1, lock: int = 0, tlb: int = 1, number: int = 0, remote: int = 0,
    snoopx: int = 0, blocked: int = 0, hops: int = 0,
) -> int:  # fmt: skip
    """A data_src of its parts, as perf_event.h has them."""
    parts = (op, 0), (lvl, 5), (snoop, 19), (lock, 24), (tlb, 26), (number, 33), (remote, 37), (snoopx, 38)
    return sum(value << at for value, at in (*parts, (blocked, 40), (hops, 43)))


# perf 6.1's union and names: op, lvl, snoop, lock, dtlb, lvl_num, remote, snoopx, blk, hops.
SOURCES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "L1 hit, old bits alone": (source(lvl=2 | 8), ("load", "L1", "", "", "", "", False)),
    "L1 hit": (source(lvl=2 | 8, number=1, tlb=2 | 8), ("load", "L1", "", "", "hit L1", "", False)),
    "L3 miss": (source(lvl=4 | 0x40), ("load", "L3 miss", "", "", "", "", False)),
    "RAM": (source(lvl=2 | 0x80, number=13, snoop=2), ("load", "RAM", "", "none", "", "", False)),
    "remote RAM, old": (source(lvl=2 | 0x100), ("load", "Remote RAM", "", "", "", "", False)),
    "remote RAM": (source(number=13, remote=1), ("load", "Remote RAM", "", "", "", "", False)),
    "remote cache, modified": (
        source(lvl=2 | 0x400, snoop=0x10), ("load", "Remote cache", "", "hit modified", "", "", False)),
    "cache of another node": (
        source(number=11, remote=1, hops=2), ("load", "Remote cache", "another node", "", "", "", False)),
    "several, old": (source(lvl=2 | 0x20 | 0x40), ("load", "L2 or L3", "", "", "", "", False)),
    "store, locked": (
        source(4, 2 | 8, lock=2, number=1), ("store", "L1", "", "", "", "", True)),
    "forwarded": (source(number=3, snoopx=1), ("load", "L3", "", "forwarded", "", "", False)),
    "walked, blocked": (
        source(lvl=2 | 0x10, tlb=4 | 0x20, blocked=2 | 4),
        ("load", "LFB", "", "", "miss hardware walker", "data address", False)),
    "persistent": (source(number=14), ("load", "PMEM", "", "", "", "", False)),
    "CXL": (source(number=9), ("load", "CXL", "", "", "", "", False)),
    "not available": (source(1, lock=1, blocked=1, number=15), ("", "", "", "", "", "", False)),
    "nothing": (0, ("", "", "", "", "", "", False)),
}  # fmt: skip


@pytest.mark.parametrize(("value", "wanted"), SOURCES.values(), ids=SOURCES)
def test_sources(value: int, wanted: tuple[Any, ...]) -> None:
    assert tuple(source_of(value)) == wanted


def loads(order: str = "<", more: str = "", **options: Any) -> PerfData:
    given = {"name": LOADS, "type": RAW, "config": 0x1CD, "period": 10} | options
    return recorded(order, sample_type=TYPES + more, **given)


L3, RAM = source(lvl=2 | 0x40, number=3), source(lvl=2 | 0x80, number=13)


def sampled(data: PerfData, *others: dict[str, int]) -> PerfData:
    for nth, each in enumerate(others):
        data.sample(PID, PID, START + nth, LIB + 0x10, [LIB + 0x10, LIB + 0x51], addr=0x7000 + nth, others=each)
    return data


def leaves(trace: Trace) -> list[tuple[str, str]]:
    """(stack, category of the leaf) of each sample."""
    frame = trace.stacks["frame"]
    return [
        (path_text(trace, stack), trace.strings[int(trace.categories["name"][trace.frames["category"][frame[stack]]])])
        for stack in data_of(trace, PID).samples["stack"].tolist()
    ]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("kind", "high"), [("WEIGHT", 0), ("WEIGHT_STRUCT", 7 << 32 | 3 << 48)])
def test_accesses_have_levels_and_latencies(order: str, kind: str, high: int) -> None:
    others = [{"DATA_SRC": L3, kind: 40 | high}, {"DATA_SRC": RAM, kind: 400 | high}, {"DATA_SRC": L3, kind: 60 | high}]
    trace = read(sampled(loads(order, f"|{kind}"), *others, {"DATA_SRC": 0}))
    path = "libx.so+0x50 > libx.so+0x10"
    assert leaves(trace) == [(path, "Memory: L3"), (path, "Memory: RAM"), (path, "Memory: L3"), (path, "Native")]
    assert [(event.name, event.unit, event.kind, event.leader) for event in trace.events] == [
        (LOADS, "count", "memory", -1), (f"{LOADS} latency", "cycles", "memory", 0),
    ]  # fmt: skip
    data = data_of(trace, PID)
    assert data.samples["weight"].tolist() == [10] * 4
    assert data.other_samples[1]["weight"].tolist() == [40, 400, 60, 0]
    ((_, markers),) = data.markers.items()
    assert markers["level"].tolist() == ["L3", "RAM", "L3", ""]
    assert markers["latency"].tolist() == [40, 400, 60, 0]
    assert markers["addr"].tolist() == [0x7000, 0x7001, 0x7002, 0x7003]
    if high:
        assert markers["instruction_latency"].tolist() == [7, 7, 7, 0]
        assert markers["stage_cycles"].tolist() == [3, 3, 3, 0]
    assert reported(trace) == {}


def test_sums_by_function_and_level() -> None:
    others = [{"DATA_SRC": L3, "WEIGHT": 40}, {"DATA_SRC": RAM, "WEIGHT": 400}, {"DATA_SRC": L3, "WEIGHT": 60}]
    summary = summarize(read(sampled(loads(more="|WEIGHT"), *others)))
    (found,) = summary["accesses"]
    assert (found["event"], found["samples"], found["latency"], found["mean_latency"]) == (LOADS, 3, 500, 500 / 3)
    assert found["levels"] == [
        {"level": "RAM", "samples": 1, "latency": 400, "mean_latency": 400},
        {"level": "L3", "samples": 2, "latency": 100, "mean_latency": 50},
    ]
    assert [(row["function"], row["level"], row["samples"]) for row in found["functions"]] == [
        ("libx.so+0x10", "RAM", 1), ("libx.so+0x10", "L3", 2),
    ]  # fmt: skip
    assert f"accesses to memory of {LOADS}, by function and level:" in as_text(summary)


def test_accesses_without_latencies() -> None:
    trace = read(sampled(loads(), {"DATA_SRC": L3}, {"DATA_SRC": RAM}))
    (found,) = summarize(trace)["accesses"]
    assert len(trace.events) == 1
    assert [(row["level"], row["samples"], row["latency"]) for row in found["levels"]] == [
        ("L3", 1, None),
        ("RAM", 1, None),
    ]
    assert "by function and level:" in as_text(summarize(trace))


def test_latencies_without_sources() -> None:
    """perf record -W."""
    data = recorded(name="cycles", type=HARDWARE, config=0, sample_type="IP|TID|TIME|PERIOD|WEIGHT")
    trace = read(data.sample(PID, PID, START, LIB, others={"WEIGHT": 9}).sample(PID, PID, START + 1, LIB))
    assert [(event.name, event.kind) for event in trace.events] == [
        ("cycles", "hardware"),
        ("cycles latency", "memory"),
    ]
    (found,) = summarize(trace)["accesses"]
    assert [(row["level"], row["samples"], row["mean_latency"]) for row in found["levels"]] == [(None, 2, 9)]


@pytest.mark.parametrize("event", [{"type": SOFTWARE}, {"type": HARDWARE}], ids=["software", "hardware"])
def test_events_that_cannot_tell(event: dict[str, int]) -> None:
    """perf record --call-graph dwarf asks every event for DATA_SRC."""
    trace = read(sampled(loads(**event), {"DATA_SRC": L3}))
    assert not any(event.kind == "memory" for event in trace.events)
    assert not any(name.startswith("Memory") for _, name in leaves(trace))


def test_physical_addresses_and_pages() -> None:
    data = loads(more="|PHYS_ADDR|DATA_PAGE_SIZE|CODE_PAGE_SIZE")
    pages = {"DATA_PAGE_SIZE": 4096, "CODE_PAGE_SIZE": 1 << 21}
    sampled(data, {"PHYS_ADDR": 1 << 40, **pages}, pages, {"DATA_PAGE_SIZE": 1 << 21})
    trace = read(data)
    ((_, markers),) = data_of(trace, PID).markers.items()
    assert markers["phys_addr"].tolist() == [1 << 40, 0, 0]
    assert markers["data_page_size"].tolist() == [4096, 4096, 1 << 21]
    assert trace.attributes["data_page_sizes"] == "4096 bytes: 2, 2097152 bytes: 1"
    assert trace.attributes["code_page_sizes"] == "2097152 bytes: 2"
    assert reported(trace) == {}


PERFS_NAMES = {"Local RAM": "RAM", "Remote RAM (1 hop)": "Remote RAM", "Remote Cache (1 hop)": "Remote cache",
    "Remote node, same socket Any cache": "Remote cache", "LFB/MAB": "LFB", "Remote N/A": "Remote"}  # fmt: skip


def perfs_level(text: str) -> str:
    """What perf says of old bits and numbers, "L3 or L3 hit", in our words."""
    names = [PERFS_NAMES.get(name, name) for name in text.removesuffix(" hit").split(" or ")]
    if names[0] == "Remote":
        return f"Remote {names[1]}"
    known = list(dict.fromkeys(name for name in names if name != "N/A"))
    return " or ".join(known)


@needs_perf
def test_the_same_accesses_in_perf_script(tmp_path: Path) -> None:
    """Addresses, latencies, operations and levels: ADDR DATA_SRC |OP LOAD|LVL L3 hit|SNP None|TLB N/A... WEIGHT."""
    others = [{"DATA_SRC": value, "WEIGHT": 40 + nth} for nth, (value, _) in enumerate(SOURCES.values())]
    data = sampled(loads(more="|WEIGHT"), *others).feature(ARCH="x86_64", HOSTNAME="here")
    (tmp_path / "perf.data").write_bytes(data.bytes())
    command = ["perf", "script", "-i", "perf.data", "-F", "addr,weight,data_src"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60).stdout
    lines = re.findall(r"(\w+) +\w+ \|OP ([^|]*)\|LVL ([^|]*)\|.*?(\d+)$", text, re.MULTILINE)
    theirs = [
        (int(addr, 16), op.lower() if op in ("LOAD", "STORE") else "", perfs_level(level), int(weight))
        for addr, op, level, weight in lines
    ]
    ((_, markers),) = data_of(read(data), PID).markers.items()
    columns = (markers[name].tolist() for name in ("addr", "operation", "level", "latency"))
    assert theirs == list(zip(*columns, strict=True))


# ---------------------------------------------------------------- control groups, namespaces


@pytest.mark.parametrize("order", "<>")
def test_cgroups_and_namespaces_of_processes(order: str) -> None:
    data = recorded(order, sample_type="IP|TID|TIME|CGROUP")
    for number, name in ((5, "/"), (6, "/docker/abc")):
        data.raw_record(CGROUP, 0, struct.pack(order + "Q", number) + name.encode().ljust(16, b"\0") + bytes(16))
    namespaces = struct.pack(order + "iiQ", PID, PID, 4) + struct.pack(order + "8Q", *range(8))
    data.raw_record(NAMESPACES, 0, namespaces + bytes(16))
    for nth, group in enumerate((5, 6, 6)):
        data.sample(PID, PID, START + nth, LIB, others={"CGROUP": group})
    data.sample(8, 8, START, LIB, others={"CGROUP": 99})
    trace = read(data)
    assert {process.pid: (process.cgroup, process.namespaces) for process in trace.processes} == {
        PID: ("/docker/abc", "net:[1] uts:[3] ipc:[5] pid:[7]"), 8: ("", ""),
    }  # fmt: skip
    assert "app 7 in /docker/abc" in as_text(summarize(trace))


# ---------------------------------------------------------------- nothing to show


def test_why_there_are_no_samples() -> None:
    def why(data: PerfData) -> str:
        (issue,) = (issue for issue in read(data).report if issue.kind == "no_samples")
        return issue.detail

    dummy = recorded(name="dummy", type=SOFTWARE, config=DUMMY)
    assert why(dummy).startswith("its event is dummy")
    assert why(recorded()) == "cpu-clock did not occur, or nothing ran, while it was recorded"
    assert why(recorded().stat(1, 5)).startswith("perf stat counted nothing")
    begun = PerfData(start=START).event().comm(PID, PID, "perf-exec")
    assert why(begun).startswith("perf could not start the program")
    assert "did not occur" in why(begun.comm(PID, PID, "app", exec=True))
    for kind in (SCHEDSTAT_CPU, SCHEDSTAT_DOMAIN):
        assert why(recorded().raw_record(kind, 0, bytes(32))).startswith("perf sched stats record writes statistics")


# ---------------------------------------------------------------- what perf of 2026 writes


@pytest.mark.parametrize("order", "<>", ids=["little", "big"])
def test_what_programs_of_bpf_say_of_themselves(order: str) -> None:
    data = recorded(order).bpf_metadata("perf_trace", ("version", "7.1"), ("commit", "0123abcd"))
    trace = read(data.sample(PID, PID, START, LIB))
    assert trace.attributes["bpf perf_trace version"] == "7.1"
    assert trace.attributes["bpf perf_trace commit"] == "0123abcd"
    assert reported(trace) == {}


def test_statistics_beside_samples_are_named() -> None:
    """u64 timestamp; u32 cpu; u16 version; the numbers of one line of /proc/schedstat"""
    data = recorded().raw_record(SCHEDSTAT_CPU, 0, bytes(120)).raw_record(SCHEDSTAT_CPU, 0, bytes(120))
    data.raw_record(SCHEDSTAT_DOMAIN, 0, bytes(400)).sample(PID, PID, START, LIB)
    (issue,) = (issue for issue in read(data).report if issue.kind == "records_not_read")
    named = [f"statistics of perf sched stats ({name})" for name in ("SCHEDSTAT_CPU", "SCHEDSTAT_DOMAIN")]
    assert (issue.count, issue.detail) == (3, "; ".join(named))


@pytest.mark.parametrize("mode", ["file", "pipe"])
def test_features_that_say_nothing_of_samples(mode: str, tmp_path: Path) -> None:
    """E_MACHINE: u32 e_machine, e_flags; CLN_SIZE: u32, the size of a line of the cache. In a pipe they are records."""
    data = recorded(mode=mode).feature(E_MACHINE=struct.pack("<II", 62, 0), CLN_SIZE=struct.pack("<I", 64))
    path = tmp_path / "perf.data"
    path.write_bytes(data.feature(HOSTNAME="host").sample(PID, PID, START, LIB).bytes())
    trace = load_checked(path)
    assert reported(trace) == {}
    assert trace.attributes["hostname"] == "host"
    shown = "\n".join(dump(open_source(str(path)), 0))
    assert all((name in shown) == (mode == "pipe") for name in ("E_MACHINE", "CLN_SIZE"))
