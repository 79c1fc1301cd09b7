"""What trace_processor reads beside Perfetto's own traces: told apart by how it begins, and read."""

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
from test_perfetto_traces import engine

import traceferry
from traceferry.common.errors import FormatError
from traceferry.importers import perfetto
from traceferry.model import RUNNING, Trace
from traceferry.model.laws import check
from traceferry.timeline.off_cpu import Durations, durations

__all__ = ["engine"]

EVENTS = """\
             app-12    (   12) [000] d..1   100.000100: tracing_mark_write: B|12|draw
             app-12    (   12) [000] d..1   100.000500: tracing_mark_write: E|12
          <idle>-0     (-----) [001] d..2   100.000600: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=app next_pid=12 next_prio=120
             app-12    (   12) [001] d..2   100.000900: sched_switch: prev_comm=app prev_pid=12 prev_prio=120 \
prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
"""
HEADING = "# tracer: nop\n#\n#           TASK-PID    TGID   CPU#  ||||    TIMESTAMP  FUNCTION\n"
PAGE = f"""<!DOCTYPE html>
<html><head>{"<script>draw();</script>" * 100}</head><body>
<script class="trace-data" type="application/text">
{HEADING}{EVENTS}</script></body></html>
"""
SYSTRACE = {
    "heading": (HEADING + EVENTS).encode(),
    "no heading": EVENTS.encode(),
    "trace-cmd": b"cpus=2\n" + EVENTS.encode(),
    "page": PAGE.encode(),
    "atrace -z": b"TRACE:\n" + zlib.compress((HEADING + EVENTS).encode()),
}
NINJA = b"# ninja log v5\n1\t100\t0\ta.o\tdeadbeef\n5\t300\t0\tb.o\tdeadbee0\n"
ART = b"""*version
3
data-file-overflow=false
clock=dual
elapsed-time-usec=100
num-method-calls=2
clock-call-overhead-nsec=1
vm=art
pid=7
*threads
7\tmain
*methods
0x4\tapp.Main\trun\t()V\tMain.java
*end
"""
# Of pprof the first sample type, which is field 1 as packets are: (string 1, string 2).
PPROF = b"\x0a\x04\x08\x01\x10\x02\x12\x04\x08\x01\x10\x05\x32\x00\x32\x01a"


def fuchsia() -> bytes:
    """A trace in which thread 8 of process 7 has `work` of 400 ticks, which are nanoseconds."""

    def record(kind: int, words: int, rest: int) -> bytes:
        return struct.pack("<Q", kind | words << 4 | rest)

    def string(number: int, text: str) -> bytes:
        return record(2, 2, number << 16 | len(text) << 32) + text.encode().ljust(8, b"\0")

    thread = record(3, 3, 1 << 16) + struct.pack("<QQ", 7, 8)
    event = record(4, 3, 4 << 16 | 1 << 24 | 1 << 32 | 2 << 48) + struct.pack("<QQ", 100, 500)
    start = bytes.fromhex("1000044678541600") + record(1, 2, 0) + struct.pack("<Q", 10**9)
    return start + string(1, "cat") + string(2, "work") + thread + event


HOLDER = """
public class Holder {
  static int[][] kept = new int[77][];
  public static void main(String[] path) throws Exception {
    for (int i = 0; i < 77; i++) kept[i] = new int[1000];
    java.lang.management.ManagementFactory.getPlatformMXBean(com.sun.management.HotSpotDiagnosticMXBean.class)
      .dumpHeap(path[0], true);
  }
}
"""


def load(data: bytes, folder: Path) -> Trace:
    path = folder / "trace"
    path.write_bytes(data)
    trace = traceferry.load(path)
    assert check(trace) == []
    return trace


def calls_of(trace: Trace) -> list[tuple[int, str, int]]:
    """(thread, function, time) of each enter and leave."""
    found = []
    for _, thread in trace.threads:
        calls = thread.load(trace).calls
        names = [trace.func_name(int(func)) for func in trace.frames["func"][calls["frame"]]]
        found += [(thread.tid, name, int(ts)) for name, ts in zip(names, calls["ts"], strict=True)]
    return found


@pytest.mark.parametrize("kind", SYSTRACE)
def test_systrace(kind: str, tmp_path: Path) -> None:
    trace = load(SYSTRACE[kind], tmp_path)
    assert calls_of(trace) == [(12, "draw", 100_000_100_000), (12, "draw", 100_000_500_000)]
    (scheduling,) = [thread.load(trace).scheduling for _, thread in trace.threads if thread.tid == 12]
    assert [int(cpu) for cpu in scheduling["cpu"][scheduling["state"] == RUNNING]] == [1]


@pytest.mark.parametrize(
    ("letters", "blocked_us"), [("S", 600), ("D|K", 600), ("T", 600), ("X", 0), ("Z", 0), ("x", 0), ("X|Z", 0)]
)
def test_who_is_dead_does_not_wait(letters: str, blocked_us: int, tmp_path: Path) -> None:
    last = EVENTS.splitlines()[0].replace("100.000100", "100.001500")
    data = f"{HEADING}{EVENTS}{last}\n".replace("app-12 ", "app-13 ").replace("prev_state=S", f"prev_state={letters}")
    trace = load(data.encode(), tmp_path)
    ((thread, rows),) = [(t, t.load(trace).scheduling) for _, t in trace.threads if t.tid == 12]
    assert durations(rows, thread.end_ts) == Durations(300_000, 0, blocked_us * 1000, 0)


def test_what_a_thread_does_after_its_death_is_kept(tmp_path: Path) -> None:
    """When it ran is not known then."""
    last = EVENTS.splitlines()[0].replace("100.000100", "100.001500")
    data = f"{HEADING}{EVENTS}{last}\n".replace("prev_state=S", "prev_state=X")
    trace = load(data.encode(), tmp_path)
    ((thread, rows),) = [(t, t.load(trace).scheduling) for _, t in trace.threads if t.tid == 12]
    assert durations(rows, thread.end_ts).unknown == 600_000


def test_ninja(tmp_path: Path) -> None:
    assert {(name, ts) for _, name, ts in calls_of(load(NINJA, tmp_path))} == {
        ("a.o", 1_000_000), ("a.o", 100_000_000), ("b.o", 5_000_000), ("b.o", 300_000_000)
    }  # fmt: skip


def test_fuchsia(tmp_path: Path) -> None:
    assert calls_of(load(fuchsia(), tmp_path)) == [(8, "work", 100), (8, "work", 500)]


@pytest.mark.skipif(not shutil.which("javac"), reason="no JDK")
def test_heap_dump_of_java(tmp_path: Path) -> None:
    (tmp_path / "Holder.java").write_text(HOLDER)
    dump = tmp_path / "app.hprof"
    subprocess.run(["java", "-Xmx64m", tmp_path / "Holder.java", dump], check=True, timeout=60)
    trace = traceferry.load(dump)
    assert check(trace) == []
    opened = trace.opened()
    (graph,) = [snapshot.load(opened) for process in trace.processes for snapshot in process.heap_snapshots]
    of_class = graph.objects["class_name"] == opened.strings.intern("int[]")
    assert (graph.objects["size"][of_class] == 4000).sum() == 77
    holders = np.flatnonzero(graph.objects["class_name"] == opened.strings.intern("int[][]")).tolist()
    held = [graph.references[graph.offsets[one] : graph.offsets[one + 1]] for one in holders]
    assert 77 in [int(of_class[rows].sum()) for rows in held]


@pytest.mark.parametrize(
    "head",
    [ART, b"SIMPLEPERF\1\0", b"SLOW\3\0", b"JAVA PROFILE 1.0.3\0", b'<?xml version="1.0"?>\n<trace-query-result>\n',
     b"9,0,i,vers,36,214", b"=" * 56 + b"\n== dumpstate: 2021",
     b"\x0a\x00\x0a\x0b\x40\x00\xba\x04\x06\x08\x00\x10\x00\x18{"],
)  # fmt: skip
def test_beginnings(head: bytes) -> None:
    assert perfetto.sniff(memoryview(head))


@pytest.mark.parametrize("data", [PPROF, b"main;work 3\n"])
def test_what_is_of_others(data: bytes) -> None:
    """Formats with importers of their own."""
    assert not perfetto.sniff(memoryview(data))


@pytest.mark.parametrize("data", [b"<html><p>no trace</p></html>", b" text of 12 [0] words: x\n"])
def test_what_is_none(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"unrecognised|this is a page for a browser"):
        load(data, tmp_path)
