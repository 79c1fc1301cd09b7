"""perf: tracepoints that begin and end something are intervals."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders.perf_data import PerfData
from recordings import SHARED
from support import load_checked

from traceferry.files.source import Source
from traceferry.model import Trace, TraceBuilder, laws
from traceferry.reading import ImportContext
from traceferry.registry import importer_named

START = 100_000_000_000
PID, A, B = 7, 8, 9
LIB = 0x40_0000
TYPE = "IDENTIFIER|IP|TID|TIME|CALLCHAIN|CPU|PERIOD"
NR = ("int __syscall_nr", "i")
EVENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "syscalls:sys_enter_futex": (NR, ("u32 * uaddr", "Q")),
    "syscalls:sys_exit_futex": (NR, ("long ret", "q")),
    "raw_syscalls:sys_enter": (("long id", "q"),),
    "raw_syscalls:sys_exit": (("long id", "q"), ("long ret", "q")),
    "block:block_rq_issue": (("dev_t dev", "I"), ("sector_t sector", "Q"), ("unsigned int nr_sector", "I")),
    "block:block_rq_complete": (
        ("dev_t dev", "I"), ("sector_t sector", "Q"), ("unsigned int nr_sector", "I"), ("int error", "i"),
    ),
    "irq:softirq_entry": (("unsigned int vec", "I"),),
    "irq:softirq_exit": (("unsigned int vec", "I"),),
    "lock:contention_begin": (("void * lock_addr", "Q"), ("unsigned int flags", "I")),
    "lock:contention_end": (("void * lock_addr", "Q"), ("int ret", "i")),
    "probe_app:work": (("int n", "i"),),
    "probe_app:work__return": (("u64 arg1", "Q"),),
    "sdt_db:query__start": (("int n", "i"),),
    "sdt_db:query__done": (("int n", "i"),),
    "uprobes:p_app_0x10": (("int n", "i"),),
    "uprobes:r_app_0x10": (("u64 arg1", "Q"),),
    "my:thing_begin": (("int a", "i"),),
    "my:thing_end": (("int a", "i"),),
}  # fmt: skip
NAMES = list(EVENTS)
UNCOMPARED = ("cpu", "__syscall_nr", "syscall")


class Recorded:
    def __init__(self, order: str = "<", without: str = "") -> None:
        self.data = PerfData(order, start=START).event(sample_type=TYPE, freq=997)
        self.names = [name for name in NAMES if name != without]
        for number, name in enumerate(self.names, 300):
            self.data.tracepoint(name, number, EVENTS[name], "x", sample_type=TYPE + "|RAW")
        self.data.comm(PID, PID, "app", ts=0).mmap2(PID, PID, LIB, 0x1000, 0, "/nowhere/libx.so", ts=0)
        for tid in (A, B):
            self.data.comm(PID, tid, f"worker-{tid}", ts=0)

    def at(self, ts: int, name: str, tid: int = A, cpu: int = 0, **fields: int) -> Recorded:
        self.data.sample(
            PID, tid, START + ts, LIB + ts, [LIB + ts], event=1 + self.names.index(name), cpu=cpu, fields=fields
        )
        return self

    def read(self) -> Trace:
        self.data.sample(PID, A, START + 1000, LIB).sample(PID, B, START + 1000, LIB)
        return read(self.data.bytes())


def read(data: bytes) -> Trace:
    trace = TraceBuilder()
    importer_named("perf").module.read([Source("perf.data", memoryview(data))]).add_to(trace, ImportContext())
    trace.sort()
    assert laws.check(trace) == []
    return trace


def markers(trace: Trace, tid: int = A) -> list[tuple[Any, ...]]:
    """(name, when, duration, the fields), by time"""
    found = []
    for _, thread in trace.threads:
        for kind, table in thread.load(trace).markers.items() if thread.tid == tid else ():
            columns = [table[field.key].tolist() for field in kind.fields if field.key not in UNCOMPARED]
            times = (table["ts"] - START).tolist(), table["dur"].tolist()
            found += [(kind.name, *row) for row in zip(*times, *columns, strict=True)]
    return sorted(found, key=lambda row: row[1])


def incomplete(trace: Trace) -> list[int]:
    return [issue.count for issue in trace.report if issue.kind == "interval_incomplete"]


@pytest.mark.parametrize("order", "<>", ids=["little", "big"])
def test_a_system_call_with_the_fields_of_both(order: str) -> None:
    recorded = Recorded(order).at(10, "syscalls:sys_enter_futex", __syscall_nr=202, uaddr=5)
    recorded.at(20, "syscalls:sys_enter_futex", B, __syscall_nr=202, uaddr=6)
    recorded.at(30, "syscalls:sys_exit_futex", B, __syscall_nr=202, ret=0)
    trace = recorded.at(50, "syscalls:sys_exit_futex", __syscall_nr=202, ret=-11).read()
    assert markers(trace) == [("syscalls:futex", 10, 40, 5, -11)]
    assert markers(trace, B) == [("syscalls:futex", 20, 10, 6, 0)]
    thread = next(thread for _, thread in trace.threads if thread.tid == A)
    ((kind, table),) = thread.load(trace).markers.items()
    assert kind.label == "uaddr={uaddr}, ret={ret}"
    stack = int(table["stack"][0])
    loaded = thread.load(trace).trace
    assert loaded.func_name(int(loaded.frames["func"][loaded.stacks["frame"][stack]])) == "libx.so+0xa"
    assert incomplete(trace) == []


# Numbers of futex: asm/unistd_64.h, asm/unistd_32.h, asm-generic/unistd.h, arm's.
@pytest.mark.parametrize(
    ("arch", "number", "name"),
    [("x86_64", 202, "futex"), ("aarch64", 98, "futex"), ("riscv64", 98, "futex"), ("i686", 240, "futex"),
     ("armv7l", 240, "futex"), ("ppc64le", 221, "futex"), ("s390x", 238, "futex"), ("x86_64", 9999, "system call 9999"),
     ("vax", 202, "system call 202"), ("", 202, "system call 202"), ("x86_64", -1, "system call -1")],
)  # fmt: skip
def test_system_calls_have_names(arch: str, number: int, name: str) -> None:
    recorded = Recorded().at(10, "raw_syscalls:sys_enter", id=number)
    recorded.at(20, "raw_syscalls:sys_exit", id=number, ret=0).data.feature(ARCH=arch)
    recorded.at(30, "raw_syscalls:sys_enter", id=number)
    trace = recorded.read()
    thread = next(thread for _, thread in trace.threads if thread.tid == A)
    loaded = thread.load(trace).markers.items()
    shown = {kind.name: (kind.label, table["syscall"].tolist()) for kind, table in loaded}
    assert shown == {
        "raw_syscalls": ("{syscall}, ret={ret}", [name]), "raw_syscalls (no end)": ("{syscall}", [name]),
    }  # fmt: skip


def test_halves() -> None:
    """The last begin is open; an end without a begin, and a begin whose end was lost, are as they were recorded."""
    recorded = Recorded().at(10, "raw_syscalls:sys_exit", id=1, ret=3).at(20, "raw_syscalls:sys_enter", id=5)
    recorded.at(30, "raw_syscalls:sys_enter", id=6).at(35, "raw_syscalls:sys_exit", id=7)
    recorded.at(40, "raw_syscalls:sys_enter", id=15).at(45, "raw_syscalls:sys_exit", id=-1, ret=9)
    trace = recorded.at(60, "raw_syscalls:sys_enter", id=231).read()
    assert markers(trace) == [
        ("raw_syscalls:sys_exit", 10, 0, 1, 3),
        ("raw_syscalls:sys_enter", 20, 0, 5),
        ("raw_syscalls:sys_enter", 30, 0, 6),
        ("raw_syscalls:sys_exit", 35, 0, 7, 0),
        ("raw_syscalls", 40, 5, 15, 9),
        ("raw_syscalls (no end)", 60, 940, 231),
    ]
    assert incomplete(trace) == [5]


def test_an_end_in_another_thread() -> None:
    recorded = Recorded().at(10, "block:block_rq_issue", dev=8, sector=100, nr_sector=8)
    recorded.at(11, "block:block_rq_issue", B, dev=9, sector=100, nr_sector=8)
    trace = recorded.at(70, "block:block_rq_complete", B, cpu=1, dev=8, sector=100, nr_sector=4, error=-5).read()
    assert markers(trace) == [("block:block_rq", 10, 60, 8, 100, 8, 4, -5)]
    assert markers(trace, B) == [("block:block_rq (no end)", 11, 989, 9, 100, 8)]


def test_interrupts_are_of_their_processor() -> None:
    recorded = Recorded().at(10, "irq:softirq_entry", vec=1).at(12, "irq:softirq_entry", B, 1, vec=1)
    recorded.at(13, "irq:softirq_entry", B, 1, vec=2).at(15, "irq:softirq_exit", B, 1, vec=2)
    trace = recorded.at(20, "irq:softirq_exit", B, 0, vec=1).at(25, "irq:softirq_exit", B, 1, vec=1).read()
    assert markers(trace) == [("irq:softirq", 10, 10, 1)]
    assert markers(trace, B) == [("irq:softirq", 12, 13, 1), ("irq:softirq", 13, 2, 2)]


def test_a_lock_is_told_twice_where_it_spins_first() -> None:
    recorded = Recorded().at(10, "lock:contention_begin", lock_addr=64, flags=33)
    recorded.at(15, "lock:contention_begin", lock_addr=64, flags=32).at(16, "lock:contention_begin", lock_addr=8)
    trace = recorded.at(20, "lock:contention_end", lock_addr=8).at(40, "lock:contention_end", lock_addr=64).read()
    assert [row[:4] for row in markers(trace)] == [
        ("lock:contention", 10, 30, 64),
        ("lock:contention_begin", 15, 0, 64),
        ("lock:contention", 16, 4, 8),
    ]
    assert incomplete(trace) == []


def test_a_probed_function_that_calls_itself() -> None:
    """Each call has its own return, the last one first; threads are apart."""
    name = "probe_app:work"
    recorded = Recorded().at(10, name, n=2).at(12, name, n=1).at(13, name, B, n=7).at(14, name, n=0)
    recorded.at(15, f"{name}__return", arg1=1).at(18, f"{name}__return", arg1=2).at(20, f"{name}__return", B, arg1=3)
    trace = recorded.at(25, f"{name}__return", arg1=4).read()
    assert markers(trace) == [(name, 10, 15, 2, 4), (name, 12, 6, 1, 2), (name, 14, 1, 0, 1)]
    assert markers(trace, B) == [(name, 13, 7, 7, 3)]
    assert incomplete(trace) == []


def test_calls_that_an_exception_left_and_calls_that_go_on() -> None:
    name = "probe_app:work"
    recorded = Recorded().at(5, f"{name}__return", arg1=9).at(10, name, n=1).at(12, name, n=2)
    trace = recorded.at(15, f"{name}__return", arg1=3).at(20, name, n=4).at(22, name, n=5).read()
    assert markers(trace) == [
        (f"{name}__return", 5, 0, 9), (name, 10, 0, 1), (name, 12, 3, 2, 3), (f"{name} (no end)", 20, 980, 4),
        (f"{name} (no end)", 22, 978, 5),
    ]  # fmt: skip
    assert incomplete(trace) == [4]


PROBES = {
    "of programs": ("sdt_db:query__start", "sdt_db:query__done", "sdt_db:query", {"n": 6}, (6,)),
    "without names": ("uprobes:p_app_0x10", "uprobes:r_app_0x10", "uprobes:app_0x10", {"arg1": 6}, (6,)),
}


@pytest.mark.parametrize(("begin", "end", "name", "ended", "more"), PROBES.values(), ids=PROBES)
def test_other_probes(begin: str, end: str, name: str, ended: dict[str, int], more: tuple[int, ...]) -> None:
    trace = Recorded().at(10, begin, n=1).at(30, end, **ended).read()
    assert markers(trace) == [(name, 10, 20, 1, *more)]


def test_what_is_not_declared_are_instants() -> None:
    trace = Recorded().at(10, "my:thing_begin", a=1).at(20, "my:thing_end", a=1).read()
    assert markers(trace) == [("my:thing_begin", 10, 0, 1), ("my:thing_end", 20, 0, 1)]
    alone = Recorded(without="irq:softirq_exit").at(10, "irq:softirq_entry", vec=1).read()
    assert markers(alone) == [("irq:softirq_entry", 10, 0, 1)]
    assert incomplete(alone) == []


def test_a_format_that_names_two_fields_alike() -> None:
    trace = Recorded().at(10, "block:block_rq_issue", dev=8, sector=9)
    trace.data.sample(PID, A, START + 1000, LIB)
    damaged = trace.data.bytes().replace(b"field:sector_t sector;", b"field:sector_t    dev;")
    assert [row[0] for row in markers(read(damaged))] == ["block:block_rq_issue"]


# ---------------------------------------------------------------- perf itself

LINE = re.compile(r"\s*(?P<tid>-?\d+) \[(?P<cpu>\d+)\]\s+(?P<ts>[\d.]+):\s+(?P<event>[\w:]+): (?P<text>.*)")
PROGRAM = """
import os, tempfile, threading, time
lock = threading.Lock()
def work():
    for _ in range(20):
        with lock: sum(range(2000))
        time.sleep(0.0002)
threads = [threading.Thread(target=work) for _ in range(3)]
[one.start() for one in threads]
[one.join() for one in threads]
with tempfile.TemporaryFile() as file:
    file.write(b"x" * 4096); file.flush(); os.fsync(file.fileno())
"""


def printed_by_perf(data: Path) -> list[re.Match[str]]:
    """LINE of each event."""
    command = ["perf", "script", "-i", str(data), "--ns", "-F", "tid,cpu,time,event,trace"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    return list(filter(None, map(LINE.match, printed.splitlines())))


def durations_of_perf(lines: Sequence[re.Match[str]], begin: str, end: str, key: str) -> Counter[int]:
    """Matched with a dictionary. key: a group of LINE, and what is in the text after it"""
    group, _, pattern = key.partition(" ")
    begun: dict[Any, tuple[int, str]] = {}
    found: Counter[int] = Counter()
    for m in lines:
        named = re.search(pattern, m["text"]) if pattern else None
        of = m[group] if group != "any" else "", named[1] if named else ""
        ts = int(m["ts"].replace(".", ""))
        if int(m["tid"]) <= 0 and group == "tid":
            continue  # several threads outside the pid namespace
        if re.fullmatch(begin, m["event"]):
            begun[of] = ts, _number(m)
        elif re.fullmatch(end, m["event"]) and of in begun:
            since, number = begun.pop(of)
            found[ts - since] += _number(m) in (number, "-1")
    return found


def _number(line: re.Match[str]) -> str:
    """The first and the last system call of perf itself are recorded by halves."""
    found = re.match(r"NR (-?\d+)", line["text"])
    return found[1] if found is not None else ""


def durations_of_ours(trace: Trace, name: str, least_tid: int = -1) -> Counter[int]:
    tables = [table for _, thread in trace.threads for kind, table in thread.load(trace).markers.items()
              if kind.name == name and thread.tid >= least_tid]  # fmt: skip
    return Counter(dur for table in tables for dur in table["dur"].tolist())


@pytest.mark.skipif(shutil.which("perf") is None or os.name != "posix" or os.getuid() != 0, reason="perf, as root")
def test_durations_are_those_of_perf_script(tmp_path: Path) -> None:
    data = tmp_path / "perf.data"
    events = "syscalls:sys_*_futex,raw_syscalls:*,irq:softirq_entry,irq:softirq_exit"
    command = ["perf", "record", "-q", "-a", "-m", "2M", "-o", str(data), "-e", events]
    done = subprocess.run([*command, "python3", "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or not data.exists():
        pytest.skip(f"perf records no tracepoints here: {done.stderr[:100]}")
    trace, lines = load_checked(data), printed_by_perf(data)
    for name, begin, end, key in (
        ("syscalls:futex", "syscalls:sys_enter_futex", "syscalls:sys_exit_futex", "tid"),
        ("raw_syscalls", "raw_syscalls:sys_enter", "raw_syscalls:sys_exit", "tid"),
        ("irq:softirq", "irq:softirq_entry", "irq:softirq_exit", r"cpu vec=(\d+)"),
    ):
        ours = durations_of_ours(trace, name, least_tid=1 if key == "tid" else -1)
        assert ours == durations_of_perf(lines, begin, end, key)
        assert ours.total() > 10


def test_requests_of_the_capture_are_those_of_perf_script() -> None:
    folder = SHARED / "captures" / "perf-events"
    if not folder.exists():
        pytest.skip("the captures are not here")
    trace = load_checked(folder / "io.data.zst")
    assert durations_of_ours(trace, "irq:softirq").total() > 0
    assert durations_of_ours(trace, "block:block_rq").total() > 0
