"""Text of strace as an input: what its lines become."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from builders.stacks import STRACE
from hypothesis import given
from hypothesis import strategies as st
from support import events_of, for_each, load_checked, report_of
from test_stack_profiles import path_of

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.importers.strace import layout
from traceferry.model import Trace
from traceferry.registry import detect

S = 10**9


def loaded(tmp_path: Path, *texts: str, names: tuple[str, ...] = ("x.txt",)) -> Trace:
    paths = []
    for name, text in zip(names, texts, strict=True):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    return load_checked(paths)


def calls(trace: Trace) -> dict[str, list[tuple[int, int, str]]]:
    """Returns (time since the first, duration, text) of each call, by thread."""
    found = {}
    for process, thread in trace.threads:
        rows = events_of(thread.load(trace)).get("system call", [])
        found[f"{process.name} {process.pid}/{thread.name} {thread.tid}"] = [
            (row["ts"] - trace.start_ts, row["dur"], f"{row['name']}({row['arguments']}) = {row['result']}")
            for row in rows
        ]  # fmt: skip
    return found


def only(trace: Trace) -> list[tuple[int, int, str]]:
    (found,) = calls(trace).values()
    return found


TIMES = {
    "-ttt": ("1700000000.25 close(3) = 0 <0.5>\n1700000002.25 close(4) = 0 <0.1>\n", [(0, S // 2), (2 * S, S // 10)]),
    "ns": ("1700000000.000000001 close(3) = 0 <0.000000007>\n", [(0, 7)]),
    "-tt": ("07:00:00.25 close(3) = 0 <0.5>\n07:00:02.25 close(4) = 0 <0.5>\n", [(0, S // 2), (2 * S, S // 2)]),
    "-t": ("07:00:00 close(3) = 0 <0.5>\n07:00:02 close(4) = 0 <0.5>\n", [(0, S // 2), (2 * S, S // 2)]),
    "over midnight": ("23:59:59.5 close(3) = 0 <0.1>\n00:00:00.5 close(4) = 0 <0.1>\n", [(0, S // 10), (S, S // 10)]),
    "-r": ("     0.000000 close(3) = 0 <0.1>\n     0.500000 close(4) = 0 <0.1>\n", [(0, S // 10), (S // 2, S // 10)]),
    "-r -tt": ("07:00:00.25 (+     0.000000) close(3) = 0 <0.5>\n", [(0, S // 2)]),
}  # fmt: skip


@for_each("case", TIMES)
def test_times(case: tuple[str, list[tuple[int, int]]], tmp_path: Path) -> None:
    trace = loaded(tmp_path, case[0])
    assert [(ts, dur) for ts, dur, _ in only(trace)] == case[1]
    assert not report_of(trace)


def test_seconds_since_1970_are_the_clocks(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "1700000000.25 close(3) = 0 <0.5>\n")
    assert (trace.start_ts, trace.unix_start_ns) == (1_700_000_000_250_000_000,) * 2


LINES = {
    "result padded": ("close(3)                                = 0", "close(3) = 0"),
    "error": ('open("a", 0) = -1 ENOENT (No such file)', 'open("a", 0) = -1 ENOENT (No such file)'),
    "text like a result": (r'write(1, "x \") = 3 <0.1>\n", 15) = 15', r'write(1, "x \") = 3 <0.1>\n", 15) = 15'),
    "no result": ("exit_group(0) = ?", "exit_group(0) = ?"),
    "numbers in the name": ("_llseek(3, 0) = 0", "_llseek(3, 0) = 0"),
    "number of the call, -n": ("[   3] close(3) = 0", "close(3) = 0"),
    "place of the instruction, -i": ("[00007f6bc5db89f0] close(3) = 0", "close(3) = 0"),
    "both, of a 32-bit program": ("[ 406] [f7fa5549] clock_gettime64(1, 0) = 0", "clock_gettime64(1, 0) = 0"),
}  # fmt: skip


@for_each("case", LINES)
def test_lines_of_calls(case: tuple[str, str], tmp_path: Path) -> None:
    assert [text for *_, text in only(loaded(tmp_path, f"1700000000.25 {case[0]} <0.5>\n"))] == [case[1]]


def test_unfinished_calls_last_until_they_are_resumed(tmp_path: Path) -> None:
    text = """12 1700000000.0 read(3,  <unfinished ...>
13 1700000000.1 write(1, "x", 1 <unfinished ...>
12 1700000000.2 --- SIGCHLD {si_signo=SIGCHLD} ---
12 1700000000.5 <... read resumed>"", 4096) = 0
13 1700000000.6 <... write resumed>) = 1 <0.25>
13 1700000000.7 futex(0x1, FUTEX_WAIT <unfinished ...>
13 1700000000.9 <... futex resumed> <unfinished ...>) = ?
13 1700000001.0 pause( <unfinished ...>
13 1700000001.5 +++ killed by SIGKILL +++
"""
    assert calls(loaded(tmp_path, text)) == {
        "x.txt 12/x.txt 12": [(0, S // 2, 'read(3, "", 4096) = 0')],
        "x.txt 13/x.txt 13": [
            (S // 10, S // 4, 'write(1, "x", 1) = 1'), (7 * S // 10, S // 5, "futex(0x1, FUTEX_WAIT) = ?"),
            (S, S // 2, "pause() = "),
        ],
    }  # fmt: skip


def test_threads_and_processes_are_those_that_clone_made(tmp_path: Path) -> None:
    trace = loaded(tmp_path, STRACE)
    assert {name: len(rows) for name, rows in calls(trace).items()} == {
        "sh 12/sh 12": 3, "sh 12/sh 13": 1, "ls 14/ls 14": 1,
    }  # fmt: skip
    assert [thread.is_main for _, thread in trace.threads] == [True, False, True]
    events = {name: rows for _, thread in trace.threads for name, rows in events_of(thread.load(trace)).items()}
    assert events["exit"][0]["how"] == "exited with 0"
    assert events["signal"][0]["name"] == "SIGCHLD"


def test_lines_without_a_number_are_of_the_only_thread(tmp_path: Path) -> None:
    """As strace writes to the terminal: threads have numbers while there are several."""
    text = """07:00:00.0 clone(child_stack=NULL, flags=SIGCHLDstrace: Process 13 attached
 <unfinished ...>
[pid    12] 07:00:00.1 <... clone resumed>, child_tidptr=0x7) = 13 <0.1>
[pid    13] 07:00:00.2 close(1) = 0 <0.1>
[pid    12] 07:00:00.3 wait4(-1,  <unfinished ...>
[pid    13] 07:00:00.4 +++ exited with 0 +++
07:00:00.5 <... wait4 resumed>NULL, 0, NULL) = 13 <0.2>
07:00:00.6 --- SIGCHLD {si_signo=SIGCHLD} ---
07:00:00.7 close(2) = 0 <0.1>
"""
    found = calls(loaded(tmp_path, text))
    assert {name: [call.partition("(")[0] for *_, call in rows] for name, rows in found.items()} == {
        "x.txt 12/x.txt 12": ["clone", "wait4", "close"], "x.txt 13/x.txt 13": ["close"],
    }  # fmt: skip


def test_files_of_ff_are_threads_of_one_run(tmp_path: Path) -> None:
    parent = "1700000000.0 clone3({flags=CLONE_VM|CLONE_THREAD}, 88) = 13 <0.1>\n"
    trace = loaded(tmp_path, parent, "1700000000.2 close(1) = 0 <0.1>\n", names=("out.12", "out.13"))
    assert list(calls(trace)) == ["out.12 12/out.12 12", "out.12 12/out.12 13"]


def test_names_of_threads(tmp_path: Path) -> None:
    """-Y writes them."""
    assert list(calls(loaded(tmp_path, "12<my app> 1700000000.0 close(1) = 0 <0.1>\n"))) == ["my app 12/my app 12"]


def test_stacks(tmp_path: Path) -> None:
    """-k writes them behind a call, also behind the rest of one."""
    stack = " > /usr/lib/libc.so.6(__read+0x14) [0xf7834]\n > /usr/bin/app(main+0x8) [0x8]\n > /usr/bin/app() [0x4]\n"
    text = f"12 1700000000.0 read(3,  <unfinished ...>\n13 1700000000.1 close(1) = 0 <0.1>\n{stack}"
    trace = loaded(tmp_path, f"{text}12 1700000000.2 <... read resumed>) = 0 <0.2>\n{stack}")
    rows = [row for _, thread in trace.threads for row in events_of(thread.load(trace))["system call"]]
    assert [path_of(trace, row["stack"]) for row in rows] == ["[app];main;__read"] * 2


def test_calls_without_durations_are_reported(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "1700000000.0 close(1) = 0\n1700000000.5 exit_group(0) = ?\n")
    assert ([dur for _, dur, _ in only(trace)], report_of(trace)) == ([0, 0], {"call_times_missing": 1})


def test_what_is_no_call_is_counted(tmp_path: Path) -> None:
    trace = loaded(tmp_path, "1700000000.0 close(1) = 0 <0.1>\nhello\nstrace: Process 13 attached\n")
    assert report_of(trace) == {"members_not_read": 1}


OTHERS = ["close(3) = 0\n", "main;a 5\n", "ls 12 5.5: cycles:\n", "1700000000.0 hello\n", ""]


@pytest.mark.parametrize("text", OTHERS)
def test_other_text_is_not_taken_for_it(text: str) -> None:
    assert not layout.sniffed(memoryview(text.encode()))


def test_detection_and_refusal(tmp_path: Path) -> None:
    assert detect(Source("x", memoryview(STRACE.encode()))).name == "strace"
    (tmp_path / "x").write_text('execve("/bin/ls", ["ls"], 0x7 /* 1 var */) = 0\n')
    with pytest.raises(FormatError, match="without times: strace -f -ttt -T"):
        load_checked([str(tmp_path / "x")])
    with pytest.raises(FormatError, match="no line is one of strace's"):
        load_checked([str(tmp_path / "x")], format="strace")


@pytest.mark.parametrize("piece", [" ", "a(", ") = ", ")   ", "<unfinished ...>", "1 ", " > a(b+0x1", "resumed>"])
def test_long_lines_take_no_long_time(piece: str) -> None:
    body = (piece * (layout.LONGEST // len(piece)))[: layout.LONGEST - 64].encode()
    begun = time.process_time()
    for line in (
        body,
        b"12 1700000000.0 " + body,
        b"12 1700000000.0 read(" + body,
        b"12 1700000000.0 <... read resumed>" + body,
    ):
        layout.line_of(line)
        layout.frame_of(line)
    assert time.process_time() - begun < 2


@given(st.binary(max_size=200) | st.text(" \t\n()<>[].=,0123456789+-abc", max_size=200).map(str.encode))
def test_any_bytes_behind_a_call(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "strace.txt"
    path.write_bytes(STRACE.encode() + data)
    load_checked([str(path)], format="strace")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_calls_are_those_that_strace_counts(tmp_path: Path) -> None:
    """Of a program that does the same each time."""
    program = ["sh", "-c", "true; (cd /; ls >/dev/null); sleep 0.01"]
    counted, log = tmp_path / "counts", tmp_path / "log"
    ran = subprocess.run(["strace", "-f", "-c", "-o", str(counted), *program], capture_output=True)
    if ran.returncode:
        pytest.skip("strace may not trace here")
    subprocess.run(["strace", "-f", "-ttt", "-T", "-o", str(log), *program], capture_output=True, check=True)
    rows = [line.split() for line in counted.read_text().splitlines()[2:-2]]
    expected = {row[-1]: int(row[3]) for row in rows}
    found: dict[str, int] = {}
    for name, *_ in (text.partition("(") for each in calls(load_checked([str(log)])).values() for *_, text in each):
        found[name] = found.get(name, 0) + 1
    # What never returns is counted by neither, or by one.
    assert {name: n for name, n in found.items() if name in expected} == expected


def test_arguments_are_any_bytes(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b'12 1700000000.0 open("\xff\xfe", 0) = 3 <0.1>\n')
    assert "open" in only(load_checked([str(tmp_path / "x")]))[0][2]
