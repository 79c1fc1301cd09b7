"""The text of perf script as an input: what its lines become, by line, and against the recordings that it was made of.
Reads ../shared, where it is."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from builders.stacks import PERF_SCRIPT
from conftest import shared
from hypothesis import given
from hypothesis import strategies as st
from readers import perf_script
from support import for_each, load_checked, report_of
from test_stack_profiles import path_of, stacks_of
from test_unwind_captures import unpacked

from traceferry.analysis.info.summary import summarize
from traceferry.analysis.info.text import as_text
from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.perfscript import layout
from traceferry.model import Trace
from traceferry.registry import detect


def loaded(tmp_path: Path, text: str | bytes, name: str = "perf.txt") -> Trace:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_checked([str(path)])


class Line(NamedTuple):
    """What a line of a sample says."""

    comm: str
    pid: int
    tid: int
    cpu: int
    ts: int
    period: int
    event: str


LINES = {
    "default": ("ls  12 [003] 5.000001: 250000 cycles: ", Line("ls", -1, 12, 3, 5_000_001_000, 250_000, "cycles")),
    "pid": ("ls 11/12 [003] 5.000001: 2 cycles:u: ", Line("ls", 11, 12, 3, 5_000_001_000, 2, "cycles:u")),
    "nanoseconds": ("ls 12 5.000000001: cycles: ", Line("ls", -1, 12, -1, 5_000_000_001, -1, "cycles")),
    "no event": ("ls 12 5.000001: ", Line("ls", -1, 12, -1, 5_000_001_000, -1, "")),
    "no time": ("ls 12", Line("ls", -1, 12, -1, -1, -1, "")),
    "no time, event": ("ls 11/12 7 cpu-clock:pppH: ", Line("ls", 11, 12, -1, -1, 7, "cpu-clock:pppH")),
    "spaces": (" tokio rt 2 w 12 [000] 5.5: cycles: ", Line("tokio rt 2 w", -1, 12, 0, 5_500_000_000, -1, "cycles")),
    "no name": ("        12 [000] 5.5: cycles: ", Line("", -1, 12, 0, 5_500_000_000, -1, "cycles")),
    "processor unknown": ("ls 12 [-01] 5.5: cycles: ", Line("ls", -1, 12, -1, 5_500_000_000, -1, "cycles")),
    "idle": ("swapper 0 [000] 5.5: cycles: ", Line("swapper", -1, 0, 0, 5_500_000_000, -1, "cycles")),
    "flags of latency": ("ls 12 [000] d..2. 5.5: sched:x: ", Line("ls", -1, 12, 0, 5_500_000_000, -1, "sched:x")),
    "simpleperf": ("A b\t12 [003] 5.8374:\t\t9 cpu-clock:", Line("A b", -1, 12, 3, 5_008_374_000, 9, "cpu-clock")),
    "event with slashes": ("ls 12 5.5: 1 cpu/r3c/u: ", Line("ls", -1, 12, -1, 5_500_000_000, 1, "cpu/r3c/u")),
}  # fmt: skip


@for_each("case", LINES)
def test_lines_of_samples(case: tuple[str, Line]) -> None:
    header = layout.header_of(case[0].encode())
    assert header is not None
    assert header[:-1] == case[1]


FRAMES = {
    "offset": ("\t 401136 main+0x1a (/usr/bin/work)", "main"),
    "no offset": ("\t 401136 main (/usr/bin/work)", "main"),
    "no file": ("\t 401136 main", "main"),
    "offset in the file": ("\t 401136 main+0x1a (/usr/bin/work+0x1136)", "main"),
    "C++": ("\t 401136 std::map<int, A (*)(B)>::at(int const&) const+0x1a (/usr/bin/work)",
            "std::map<int, A (*)(B)>::at(int const&) const"),
    "version": ("\t 401136 clock_gettime@@GLIBC_2.17+0x1a (/usr/lib/libc.so.6)", "clock_gettime"),
    "deleted": ("\t 401136 main+0x1a (/tmp/a (b) c (deleted))", "main"),
    "no name": ("\t 401136 [unknown] (/usr/lib/libssl.so.3)", "[libssl.so.3]"),
    "nothing": ("\t 401136 [unknown] ([unknown])", "[unknown]"),
    "memory": ("\t 401136 [unknown] (//anon)", "[code in //anon]"),
    "generated": ("\t 401136 [unknown] (/tmp/perf-7.map)", "[code in /tmp/perf-7.map]"),
    "kernel": ("\t ffffffff81000000 do_syscall_64+0x5 ([kernel.kallsyms])", "do_syscall_64"),
    "of V8": ("\t 401136 JS:*fib /w/n.js:2:13+0x4 (/tmp/perf-7.map)", "fib"),
}  # fmt: skip


@for_each("case", FRAMES)
def test_lines_of_frames(case: tuple[str, str], tmp_path: Path) -> None:
    trace = loaded(tmp_path, f"ls 7 5.5: 1 cycles: \n{case[0]}\n\n")
    assert [trace.func_name(n) for n in range(len(trace.funcs))] == [case[1]]
    assert report_of(trace).keys() <= {"names_not_in_text"}


CATEGORIES = {
    "([kernel.kallsyms])": "Kernel", "([nf_tables])": "Kernel", "(/lib/modules/6.1/kernel/fs/ext4/ext4.ko)": "Kernel",
    "(/usr/bin/work)": "Native", "([vdso])": "System library", "([unknown])": "Other",
}  # fmt: skip


@pytest.mark.parametrize("file", CATEGORIES)
def test_categories_are_by_file(file: str, tmp_path: Path) -> None:
    trace = loaded(tmp_path, f"ls 7 5.5: 1 cycles: \n\t 12 f {file}\n\n")
    (category,) = trace.frames["category"]
    assert category_name(trace, category) == CATEGORIES[file]


def category_name(trace: Trace, category: int) -> str:
    return trace.strings[trace.categories["name"][category]]


def test_the_kernels_addresses_tell_where_they_are(tmp_path: Path) -> None:
    """perf script -F ip,sym leaves out the files."""
    trace = loaded(tmp_path, "ls 7\n\tffffffff81000000 do_syscall_64\n\t    00401136 main\n\n" * 2)
    names = {trace.func_name(f): category_name(trace, c) for f, c in
             zip(trace.frames["func"], trace.frames["category"], strict=True)}  # fmt: skip
    assert names == {"do_syscall_64": "Kernel", "main": "Other"}
    assert report_of(trace) == {"times_made": 2}


def test_inlined_functions_belong_to_the_next_line_that_is_not(tmp_path: Path) -> None:
    trace = loaded(tmp_path, PERF_SCRIPT)
    assert stacks_of(trace) == {"node 10/node 12": {"do_work;call(int);inner(int)": 1_001_001}}
    depth = {trace.func_name(f): int(d) for f, d in
             zip(trace.frames["func"], trace.frames["inline_depth"], strict=True)}  # fmt: skip
    assert depth == {"do_work": 0, "call(int)": 0, "inner(int)": 1}


def test_lines_of_sources(tmp_path: Path) -> None:
    """perf script -F +srcline; in the place of an unknown one stands the file with an offset, or ??."""
    text = PERF_SCRIPT.replace("inner(int) (inlined)\n", "inner(int) (inlined)\n  work.cc:12 (discriminator 3)\n")
    text = text.replace("libwork.so)\n", "libwork.so)\n  /src/a b.cc:9\n").replace(
        "kallsyms])\n", "kallsyms])\n  ??:0\n"
    )
    trace = loaded(tmp_path, text + PERF_SCRIPT)
    assert stacks_of(trace)["node 10/node 12"] == {
        "do_work;call(int):9;inner(int):12": 1_001_001, "do_work;call(int);inner(int)": 1_001_001,
    }  # fmt: skip
    assert not report_of(trace)


def test_frames_without_callchains_stand_behind_the_event(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "ls 7/8 5.5: 3 cycles:  401136 main+0x4 (/usr/bin/ls)\n" * 2)
    assert stacks_of(trace) == {"ls 7/ls 8": {"main": 6}}


def test_events_are_samples_and_tracepoints_markers_too(tmp_path: Path) -> None:
    said = "prev_comm=ls prev_pid=8 ==> next_comm=x"
    text = f"ls 7/8 [001] 5.5: sched:sched_switch: {said}\n\t ff f ([kernel.kallsyms])\n\n"
    trace = loaded(tmp_path, text + PERF_SCRIPT.replace("node  10/12", "ls 7/8"))
    assert [(event.name, event.kind, event.unit) for event in trace.events] == [
        ("cpu-clock:pppH", "clock", "ns"), ("sched:sched_switch", "tracepoint", "count"),
    ]  # fmt: skip
    ((_, thread),) = trace.threads
    ((marker_type, rows),) = thread.load(trace).markers.items()
    assert (marker_type.name, list(rows["fields"]), rows["cpu"].tolist()) == ("sched:sched_switch", [said], [1])
    assert path_of(trace, int(rows["stack"][0])) == "f"


def test_names_that_perf_did_not_have(tmp_path: Path) -> None:
    text = PERF_SCRIPT.replace("call(int)+0x11", "[unknown]").replace("    7f00c2a1 inner(int) (inlined)\n\t", "")
    trace = loaded(tmp_path, (text + "\n") * 20)
    assert report_of(trace) == {"names_not_in_text": 1}
    (first, *_) = as_text(summarize(trace)).split("\n\n")[1].splitlines()
    assert first == "names are missing for 100 % of the samples"


def test_threads_of_a_text_without_processes(tmp_path: Path) -> None:
    trace = loaded(tmp_path, PERF_SCRIPT.replace("10/12", "12") + PERF_SCRIPT.replace("10/12", "13"), "w.txt")
    assert [process.name for process in trace.processes] == ["w.txt"]
    assert [(t.name, t.tid) for _, t in trace.threads] == [("node", 12), ("node", 13)]


def test_a_thread_is_what_it_was_called_last(tmp_path: Path) -> None:
    trace = loaded(tmp_path, PERF_SCRIPT.replace("node", "sh") + PERF_SCRIPT.replace("11222", "11223"))
    assert [thread.name for _, thread in trace.threads] == ["node"]


SIMPLEPERF = """\
Gecko\t12 [007] 5.999000:\t\t1000000 task-clock:u:
        b3cea6c4\tLock::unlock(int) (/system/lib/libc.so)
        9a3a607f\tbase.odex[+41107f] (/data/app/base.odex)

Gecko\t12 [007] 6.1000:\t\t1000000 task-clock:u:
        b3cea535\tshould trace() (/system/lib/libc.so)

"""


@pytest.mark.parametrize(
    "change", [("", ""), ("        b", "\tb"), ("\t12", "\t11/12")], ids=["old", "tab", "processes"]
)
def test_text_of_simpleperf(change: tuple[str, str], tmp_path: Path) -> None:
    """Of its scripts of several versions."""
    text = SIMPLEPERF.replace(*change) if change[0] else SIMPLEPERF
    assert layout.sniffed(memoryview(text.encode()))
    trace = loaded(tmp_path, text)
    (stacks,) = stacks_of(trace).values()
    assert stacks == {"base.odex[+41107f];Lock::unlock(int)": 1_000_000, "should trace()": 1_000_000}
    ((_, thread),) = trace.threads
    first, second = thread.load(trace).samples["ts"].tolist()
    assert second - first == 2_000_000
    assert not list(trace.report)


def test_what_is_no_sample_is_counted(tmp_path: Path) -> None:
    text = f"""# ========
# captured on    : Sat Nov 28 07:00:00 2026
#
Warning:
42 out of order events recorded.
{PERF_SCRIPT}node  10/10  11222.5: PERF_RECORD_MMAP2 10/12: [0x40000(0x1000) @ 0 fe:01 2 3]: r-xp /usr/bin/node
node  10/12  11222.6:   1 cpu-clock:pppH:   7f001000 |OP LOAD
\t  7f00c2a1 call(int)+0x11 (/usr/lib/libwork.so)
"""
    trace = loaded(tmp_path, text)
    (issue,) = trace.report
    assert (issue.kind, issue.count) == ("members_not_read", 4)
    assert issue.detail == "lines of no sample; records beside samples; words behind the events of samples"


RECORDS = {
    "a thread gets a name, with a time": "node  10 11222.4: PERF_RECORD_COMM: worker:10/12",
    "a thread that ran before, which has no time": "node  0     0.000000: PERF_RECORD_COMM: node:10/10",
    "an exec": "node  10 11222.4: PERF_RECORD_COMM exec: node:10/10",
    "a fork": "node  10 11222.4: PERF_RECORD_FORK(10:12):(10:10)",
    "a switch": "node  10 11222.4: PERF_RECORD_SWITCH OUT",
    "lost samples": "node  10 11222.4: PERF_RECORD_LOST_SAMPLES  lost 3",
}


@pytest.mark.parametrize("line", RECORDS.values(), ids=RECORDS)
def test_records_beside_samples_are_no_samples(line: str, tmp_path: Path) -> None:
    """--show-task-events and the like: time would begin with one that has none."""
    samples = loaded(tmp_path, PERF_SCRIPT, "samples.txt")
    trace = loaded(tmp_path, f"{line}\n{PERF_SCRIPT}")
    assert [event.key for event in trace.events] == [event.key for event in samples.events]
    assert stacks_of(trace) == stacks_of(samples)
    assert trace.end_ts - trace.start_ts == samples.end_ts - samples.start_ts


def test_pieces_end_with_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(PERF_SCRIPT.replace("inner", f"inner{n}") for n in range(20))
    whole = stacks_of(loaded(tmp_path, text))
    monkeypatch.setattr(layout, "PIECE", len(PERF_SCRIPT) + 9)
    assert stacks_of(loaded(tmp_path, text)) == whole


LONG = [b" ", b"a ", b"1 ", b" (/", b" ([", b"  a:1", b"+0x1", b"[1] "]


@pytest.mark.parametrize("piece", LONG)
def test_long_lines_take_no_long_time(piece: bytes) -> None:
    line = piece * (layout.LONGEST // len(piece))
    begun = time.process_time()
    assert (layout.header_of(line), layout.header_of(b"ls 12 5.5: " + line + b"x" * layout.LONGEST)) == (None, None)
    layout.frame_of(b"401136 " + line)
    layout.SOURCE.fullmatch(line)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("text", ["ls 7 5.5: cycles: \n", "main;a 5\n", "ls 7\nls 8\n", "a 5.5: 1\n\t x\n"])
def test_other_text_is_not_taken_for_it(text: str) -> None:
    assert not layout.sniffed(memoryview(text.encode()))


def test_detection_and_refusal(tmp_path: Path) -> None:
    assert detect(Source("x", memoryview(PERF_SCRIPT.encode()))).name == "perfscript"
    path = tmp_path / "x"
    path.write_text("Dear reader\n")
    with pytest.raises(FormatError, match="no line is a sample"):
        load_checked([str(path)], format="perfscript")


@given(st.binary(max_size=200) | st.text(" \t\n/[]():+.,0123456789abcdefx", max_size=200).map(str.encode))
def test_any_bytes_behind_a_sample(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(PERF_SCRIPT.encode() + data)
    load_checked([str(path)], format="perfscript")


@pytest.mark.parametrize("name", ["mix-gcc-pie", "nocfi", "node24", "threads", "sig"])
def test_texts_are_read_as_an_independent_reader_does(name: str, tmp_path: Path) -> None:
    """Samples, times, names and lengths of stacks, by thread and event."""
    text = unpacked(shared(f"captures/unwind/{name}/perf-script.txt.zst"))
    expected = Counter(
        (sample.tid, sample.event, sample.ns, len(sample.frames)) for sample in
        perf_script.samples(text.decode("utf-8", "surrogateescape").splitlines())
    )  # fmt: skip
    assert read(loaded(tmp_path, text)) == expected


def read(trace: Trace) -> Counter[tuple[int, str, int, int]]:
    """Returns thread, event, time and length of the stack of all samples."""
    depth = [0] * (len(trace.stacks) + 1)
    for row, prefix in enumerate(trace.stacks["prefix"].tolist()):
        depth[row] = depth[prefix] + 1
    found: Counter[tuple[int, str, int, int]] = Counter()
    for _, thread in trace.threads:
        data = thread.load(trace)
        for row, event in enumerate(trace.events):
            table = data.samples if row == 0 else data.other_samples.get(row)
            if table is not None:
                columns = (table["ts"].tolist(), table["stack"].tolist())
                found.update((thread.tid, event.name, ts, depth[stack]) for ts, stack in zip(*columns, strict=True))
    return found


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.parametrize("name", ["group", "io", "multi", "sched"])
def test_a_recording_and_its_text_have_the_same_samples(name: str, tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(unpacked(shared(f"captures/perf-events/{name}.data.zst")))
    fields = "comm,pid,tid,time,event,period,ip,sym,dso"
    command = ["perf", "script", "-f", "-i", str(path), "--ns", "--no-inline", "-F", fields]
    printed = subprocess.run(command, capture_output=True, timeout=600, check=True).stdout
    of_text, of_recording = (totals(one) for one in (loaded(tmp_path, printed), load_checked([str(path)])))
    assert of_text
    assert of_text.items() <= of_recording.items()


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.parametrize("records", [[], ["--show-task-events"]])
def test_times_since_the_line_before_are_added_up(records: list[str], tmp_path: Path) -> None:
    """The times of records beside samples, too. Those since the first line are what they say."""
    recording = tmp_path / "perf.data"
    recording.write_bytes(unpacked(shared("captures/perf-events/sched.data.zst")))

    def told(*options: str) -> tuple[list[int], dict[str, int]]:
        command = ["perf", "script", "-f", "-i", str(recording), "--ns", "--no-inline", *records, *options]
        text = subprocess.run(command, capture_output=True, timeout=600, check=True).stdout
        trace = loaded(tmp_path, text)
        ts = sorted(ts - trace.start_ts for _, _, ts, _ in read(trace).elements())
        return ts, {issue.kind: issue.count for issue in trace.report}

    times, issues = told()
    assert "differences_added" not in issues
    assert told("--reltime") == (times, issues)
    assert told("--deltatime") == (times, issues | {"differences_added": len(times)})


def test_few_times_that_fall_are_no_differences(tmp_path: Path) -> None:
    """Two texts of --reltime, one behind the other."""
    lines = [f"ls 12 {nth / 1000:.6f}: cycles: \n\t 55d0 work (/bin/ls)\n\n" for nth in (*range(20), *range(20))]
    assert "differences_added" not in {issue.kind for issue in loaded(tmp_path, "".join(lines)).report}


@pytest.mark.parametrize(
    ("seconds", "n_samples"),
    [("0.0 9999999999.0 5.0", 2), ("0.0 4000000000.0 5.0 4000000000.0 3.0 4000000000.0 1.0", 7)],
    ids=["a time that no recording has", "differences that are too large together"],
)
def test_times_beyond_all_recordings(seconds: str, n_samples: int, tmp_path: Path) -> None:
    lines = [f"ls 12 {each}: cycles: \n\t 55d0 work (/bin/ls)\n\n" for each in seconds.split()]
    trace = loaded(tmp_path, "".join(lines))
    assert sum(read(trace).values()) == n_samples
    assert ("members_not_read" in {issue.kind for issue in trace.report}) == (n_samples < len(lines))


def totals(trace: Trace) -> dict[tuple[int | None, str], tuple[int, int]]:
    """Returns how many samples there are, and what they weigh, by thread and event. perf prints no member of a group
    whose value did not change."""
    found: defaultdict[tuple[int | None, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, thread in trace.threads:
        data = thread.load(trace)
        for row, event in enumerate(trace.events):
            table = data.samples if row == 0 else data.other_samples.get(row)
            if table is not None and len(table):
                weight = table["weight"]
                of = thread.tid, event.name
                found[of] = found[of][0] + int((weight > 0).sum()), found[of][1] + int(weight.sum())
    return found
