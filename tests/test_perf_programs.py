"""What ran when: a process for each program, a thread for each use of a number, and the names that threads had."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from readers import perfetto
from support import load_checked, report_of, states_of
from test_perf_map import (
    CHILD,
    CODE,
    LIB,
    LIB_PATH,
    LIB_SIZE,
    PID,
    SECOND,
    START,
    A,
    X,
    lives,
    mapped_x,
    read,
    recorded,
    stacks,
)

import traceferry
from traceferry import packing
from traceferry.importers.perf import map_files
from traceferry.model import Trace
from traceferry.reading import ImportContext

Steps = Callable[[PerfData], PerfData]


def sampled(trace: Trace) -> list[tuple[int, str, int, str, int]]:
    """Process, its name, thread, its name, number of samples."""
    return [(p.pid, p.name, t.tid, t.name, len(t.load(trace).samples)) for p, t in trace.threads]


def chain() -> PerfData:
    """A process that executes a program, then another one, which changes its name twice; a sample under each name."""
    data = recorded().sample(PID, PID, START + 10, A)
    for ts, name in ((20, "one"), (40, "two")):
        data.comm(PID, PID, name, START + ts, exec=True).sample(PID, PID, START + ts + 10, A)
    for ts, name in ((60, "renamed"), (80, "last")):
        data.comm(PID, PID, name, START + ts).sample(PID, PID, START + ts + 10, A)
    return data.exit(PID, PID, START + 100)


def test_each_program_is_a_process() -> None:
    trace = read(chain())
    assert sampled(trace) == [(PID, "app", PID, "app", 1), (PID, "one", PID, "one", 1), (PID, "two", PID, "last", 3)]
    assert [(start, end) for *_, start, end in lives(trace)] == [(10, 20), (20, 40), (40, 100)]
    states = [
        (ts - START, value) for _, thread in trace.threads for ts, _, value in states_of(trace, thread.load(trace))
    ]
    assert states == [(40, "two"), (60, "renamed"), (80, "last")]
    assert [thread.former_names for _, thread in trace.threads] == [(), (), ("two", "renamed")]
    (issue,) = (issue for issue in trace.report if issue.kind == "thread_renamed")
    assert (issue.count, issue.details) == (2, (f"thread {PID}: two, renamed, last",))


def test_each_program_is_a_process_in_the_viewers(tmp_path: Path) -> None:
    source = tmp_path / "perf.data"
    source.write_bytes(chain().bytes())
    trace = traceferry.load([source])
    for suffix in (".json", ".gecko.json", ".pftrace"):
        traceferry.save(trace, tmp_path / f"out{suffix}")
    for suffix in (".json", ".gecko.json"):
        threads = json.loads((tmp_path / f"out{suffix}").read_bytes())["threads"]
        found = [(str(t["pid"]), t["processName"], t["tid"], samples_of(t)) for t in threads]
        assert found == [("7", "app", PID, 1), ("7.1", "one", PID, 1), ("7.2", "two", PID, 3)]
        assert sum("Thread name" in json.dumps(thread) for thread in threads) == 1
    written = perfetto.read(tmp_path / "out.pftrace")
    names = {process.pid: process.name for process in written.processes.values()}
    assert Counter(names[sample.pid] for sample in written.samples) == {"app": 1, "one (7)": 1, "two (7)": 3}
    threads = {(t.pid, t.tid): t.name for t in written.threads.values()}
    assert {(sample.pid, sample.tid) for sample in written.samples} <= threads.keys()
    assert sorted(threads.values()) == ["app", "last (7)", "one (7)"]


def samples_of(thread: dict[str, Any]) -> int:
    samples = thread["samples"]
    return samples["length"] if "length" in samples else len(samples["data"])


# ---------------------------------------------------------------- numbers that are used again

REUSED: dict[str, Steps] = {
    "after its end": lambda d: d.exit(CHILD, CHILD, START + 40).fork(CHILD, CHILD, PID, PID, START + 50),
    "its end was lost": lambda d: d.fork(CHILD, CHILD, PID, PID, START + 50),
}


@pytest.mark.parametrize("steps", REUSED.values(), ids=REUSED)
def test_a_process_number_that_a_fork_uses_again(steps: Steps) -> None:
    """The second child executes nothing: it has its parent's name and memory, not the first one's."""
    data = recorded().fork(CHILD, CHILD, PID, PID, START + 10).comm(CHILD, CHILD, "ls", START + 20, exec=True)
    mapped_x(data, CHILD, 25, "/bin/ls").sample(CHILD, CHILD, START + 30, X).sample(CHILD, CHILD, START + 31, A)
    steps(data).sample(CHILD, CHILD, START + 60, A).sample(CHILD, CHILD, START + 61, X)
    trace = read(data)
    assert stacks(trace, CHILD) == ["ls+0x0", "[unknown]", "libx.so+0x10", "[unknown]"]
    assert sampled(trace) == [
        (PID, "app", PID, "app", 0), (CHILD, "ls", CHILD, "ls", 2), (CHILD, "app", CHILD, "app", 2),
    ]  # fmt: skip
    assert report_of(trace).keys() <= {"code_unknown", "names_missing"}


@pytest.mark.parametrize(
    ("comm", "executes", "name"),
    [
        ("MainThread", "/opt/bin/node", "node"),
        ("node-MainThread", "/opt/bin/node", "node"),
        ("CrBrowserMain", "/usr/lib/chromium/chromium", "chromium"),
        ("gunicorn", "/usr/bin/python3.11", "gunicorn"),
        ("MainThread", "/usr/lib/libnode.so.115", "MainThread"),
        ("MainThread", "//anon", "MainThread"),
    ],
)
def test_a_process_that_ran_already_and_whose_main_thread_has_a_name_of_its_own(
    comm: str, executes: str, name: str
) -> None:
    data = recorded().comm(PID, PID, comm, ts=0).comm(PID, PID + 1, "worker", ts=0)
    data.mmap2(PID, PID, 0x10000, 0x1000, 0, "/lib/ld-linux-x86-64.so.2", ts=0)
    data.mmap2(PID, PID, 0x20000, 0x1000, 0, executes, ts=0)
    data.fork(PID + 5, PID + 5, PID, PID, ts=START).comm(PID + 5, PID + 5, comm, ts=START)
    for tid in (PID, PID + 1):
        data.sample(PID, tid, START, A)
    data.sample(PID + 5, PID + 5, START + 1, A)
    trace = read(data)
    assert [process.name for process in trace.processes if process.pid in (PID, PID + 5)] == [name, name]
    names = [thread.name for process, thread in trace.threads if process.pid == PID]
    assert names == [comm, "worker"]


def test_a_grandchild_of_a_process_whose_number_was_used_before() -> None:
    """Its memory is the later one's."""
    data = recorded().fork(6, 6, PID, PID, START + 10).comm(6, 6, "ls", START + 20, exec=True).exit(6, 6, START + 30)
    data.fork(6, 6, PID, PID, START + 40).fork(CHILD, CHILD, 6, 6, START + 50).sample(CHILD, CHILD, START + 60, A)
    assert stacks(read(data), CHILD) == ["libx.so+0x10"]


def test_a_thread_number_that_is_used_again() -> None:
    data = recorded().fork(PID, 9, PID, PID, START + 10).comm(PID, 9, "first", START + 11)
    data.sample(PID, 9, START + 20, A).exit(PID, 9, START + 30).fork(PID, 9, PID, PID, START + 40)
    data.sample(PID, 9, START + 50, A).sample(PID, 9, START + 60, A)
    trace = read(data)
    assert sampled(trace)[1:] == [(PID, "app", 9, "first", 1), (PID, "app", 9, "app", 2)]
    assert [lives(trace)[nth][-2:] for nth in (1, 2)] == [(10, 30), (40, 60)]


def test_code_belongs_to_the_program_that_ran_when_it_was_loaded() -> None:
    data = recorded().fork(CHILD, CHILD, PID, PID, START + 10).sample(CHILD, CHILD, START + 30, CODE)
    data.exit(CHILD, CHILD, START + 40).fork(CHILD, CHILD, PID, PID, START + 50).sample(CHILD, CHILD, START + 60, CODE)
    trace = read(data, JitDump(pid=CHILD, start=START).load("f", CODE, ts=START + 20))
    assert stacks(trace, CHILD) == ["f", "[unknown]"]


# ---------------------------------------------------------------- programs and names


def test_another_thread_executes_a_program() -> None:
    """All threads end, and the one that executes it has the number of the process from then on."""
    data = (
        recorded().fork(PID, 9, PID, PID, START + 10).comm(PID, 9, "worker", START + 11).sample(PID, 9, START + 20, A)
    )
    data.exit(PID, PID, START + 30).comm(PID, PID, "ls", START + 31, exec=True).sample(PID, PID, START + 40, A)
    trace = read(data)
    assert sampled(trace) == [(PID, "app", PID, "app", 0), (PID, "app", 9, "worker", 1), (PID, "ls", PID, "ls", 1)]
    assert lives(trace)[1][-2:] == (10, 31)


def test_a_child_that_was_sampled_before_it_executed_its_program() -> None:
    """As vfork's is: both are shown. Where nothing was seen before, there is one process, from the fork on."""

    def child(*times: int) -> Trace:
        data = recorded().fork(CHILD, CHILD, PID, PID, START + 10).comm(CHILD, CHILD, "ls", START + 20, exec=True)
        for ts in times:
            data.sample(CHILD, CHILD, START + ts, A)
        return read(data)

    assert sampled(child(15, 30))[1:] == [(CHILD, "app", CHILD, "app", 1), (CHILD, "ls", CHILD, "ls", 1)]
    assert sampled(child(30))[1:] == [(CHILD, "ls", CHILD, "ls", 1)]
    assert lives(child(30))[1][-2:] == (10, 30)


@pytest.mark.parametrize(("ts", "is_told"), [(30, False), (15, True)])
def test_names_that_nothing_was_sampled_under_are_not_told(ts: int, is_told: bool) -> None:
    """A new thread names itself before it does much else."""
    data = recorded().fork(PID, 9, PID, PID, START + 10).comm(PID, 9, "worker", START + 20)
    trace = read(data.sample(PID, 9, START + ts, A))
    assert [len(thread.load(trace).states) for _, thread in trace.threads] == [0, 2 * is_told]
    assert ("thread_renamed" in report_of(trace)) == is_told


def test_a_process_has_the_files_whose_code_it_mapped_and_those_of_what_it_is_a_copy_of() -> None:
    data = recorded().mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH, ts=START).sample(PID, PID, START + 1, A)
    data.fork(CHILD, CHILD, PID, PID, START + 10)
    data.mmap2(CHILD, CHILD, LIB + 2 * LIB_SIZE, LIB_SIZE, 0, "/y/own.so", ts=START + 20)
    data.sample(CHILD, CHILD, START + 30, A).comm(CHILD, CHILD, "ls", START + 40, exec=True)
    data.mmap2(CHILD, CHILD, LIB, LIB_SIZE, 0, "/bin/ls", ts=START + 50).sample(CHILD, CHILD, START + 60, A)
    files = [[file for file in process.files if not file.startswith("[")] for process in read(data).processes]
    assert files == [[Path(LIB_PATH).name], [Path(LIB_PATH).name, "own.so"], ["ls"]]


# When the sample was taken, and what its caller is then: ns since START, text.
EXECUTING = {
    "before": (15, "libx.so+0x10"),
    "while the kernel sets up the new memory": (25, "libx.so+0x10"),
    "after the kernel has mapped the vdso, which it does last": (45, "libx.so+0x10"),
    "after the program itself has mapped something": (55, "[unknown]"),
}


@pytest.mark.parametrize(("ts", "caller"), EXECUTING.values(), ids=EXECUTING)
def test_the_system_call_that_executes_a_program_has_its_caller(ts: int, caller: str) -> None:
    """The samples are of the new program already, whose memory does not have the caller any more. Shells and builds
    spend much of their time there."""
    data = recorded().fork(CHILD, CHILD, PID, PID, START + 10).comm(CHILD, CHILD, "ls", START + 20, exec=True)
    for at, start, path in ((30, LIB + 2 * LIB_SIZE, "/bin/ls"), (40, LIB + 4 * LIB_SIZE, "[vdso]")):
        data.mmap2(CHILD, CHILD, start, LIB_SIZE, 0, path, ts=START + at)
    data.mmap2(CHILD, CHILD, LIB + 6 * LIB_SIZE, LIB_SIZE, 0, "/lib/libc.so.6", ts=START + 50)
    data.sample(CHILD, CHILD, START + ts, LIB + 0x10, [LIB + 0x10])
    assert stacks(read(data), CHILD) == [caller]


def test_what_the_recorder_found_running_has_no_copy_of_its_parents_memory() -> None:
    """perf -a and -p tell of forks that were long ago, at the time 0."""
    data = recorded().fork(CHILD, CHILD, PID, PID, 0).comm(CHILD, CHILD, "daemon", ts=0)
    trace = read(data.sample(CHILD, CHILD, START + 10, A))
    assert stacks(trace, CHILD) == ["[unknown]"]


def test_a_thread_that_recorder_and_kernel_both_tell_of() -> None:
    """It began while the recorder looked for what runs."""
    data = recorded().fork(PID, 9, PID, PID, 0).comm(PID, 9, "worker", ts=0).fork(PID, 9, PID, PID, START + 10)
    trace = read(data.sample(PID, 9, START + 20, A))
    assert sampled(trace) == [(PID, "app", PID, "app", 0), (PID, "app", 9, "worker", 1)]


def test_old_recordings_that_give_times_only_to_forks() -> None:
    """The child's parent has mapped its files before, and the child knows its own by no time."""
    flags = "disabled inherit mmap comm task mmap2"
    data = PerfData(start=START).event(flags=flags).comm(PID, PID, "app").mmap2(PID, PID, LIB, LIB_SIZE, 0, LIB_PATH)
    data.fork(6, 6, PID, PID, START + 10).fork(CHILD, CHILD, PID, PID, START + 20).comm(CHILD, CHILD, "ls", exec=True)
    data.mmap2(CHILD, CHILD, X, 0x1000, 0, "/bin/ls")
    data.sample(6, 6, START + 30, A).sample(CHILD, CHILD, START + 30, X)
    trace = read(data)
    assert (stacks(trace, 6), stacks(trace, CHILD)) == (["libx.so+0x10"], ["ls+0x0"])


# ---------------------------------------------------------------- perf-PID.map


def listed(folder: Path, data: PerfData, pid: int = PID, at: int = CODE) -> Trace:
    """The trace of a recording beside which a list is, written at WRITTEN."""
    path = folder / f"perf-{pid}.map"
    path.write_text(f"{at:x} 40 listed\n")
    os.utime(path, ns=(WRITTEN, WRITTEN))
    return read(data, path=str(folder / "perf.data"))


WRITTEN = 1_700_000_000 * SECOND


def saved(folder: Path, data: PerfData) -> Path:
    path = folder / "perf.data"
    path.write_bytes(data.bytes())
    return path


def with_memory(seconds: int) -> PerfData:
    """A program that starts so many seconds after WRITTEN, and runs in memory without a file."""
    data = PerfData(start=START).event().feature(CLOCK_DATA=(1, WRITTEN + seconds * SECOND, START + 10))
    data.comm(PID, PID, "app", START + 10, exec=True).mmap2(PID, PID, CODE, 4096, CODE, "//anon", ts=START + 20)
    return data.sample(PID, PID, START + 30, CODE + 4)


@pytest.mark.parametrize(("seconds", "wanted"), [(-60, "listed"), (0, "listed"), (60, "[code in //anon]")])
def test_a_list_that_is_older_than_the_program(seconds: int, wanted: str, tmp_path: Path) -> None:
    trace = listed(tmp_path, with_memory(seconds))
    assert stacks(trace) == [wanted]
    details = [detail for issue in trace.report if issue.kind == "map_stale" for detail in issue.details]
    stale = f"{tmp_path / 'perf-7.map'}: written 60 s before app began"
    assert details == ([stale] if wanted == "[code in //anon]" else [])


# Seconds from the recording's end to the last change of the list, whether the process ended in it; the name.
LATER = {
    "while it was recorded": (-1, True, "listed"),
    "after its end, by a process that went on": (3600, False, "listed"),
    "after its end, by another process of that number": (3600, True, "[code in //anon]"),
}


@pytest.mark.parametrize(("seconds", "has_ended", "wanted"), LATER.values(), ids=LATER)
def test_a_list_that_was_written_where_programs_write_it(
    seconds: int, has_ended: bool, wanted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers of processes are used again. Copies elsewhere, as beside the recording, may be newer than that."""
    monkeypatch.setattr(map_files, "FOLDER", str(tmp_path / "tmp"))
    data = recorded().feature(HOSTNAME=platform.node())
    data.mmap2(PID, PID, CODE, 4096, CODE, "//anon", ts=START).sample(PID, PID, START + 30, CODE + 4)
    path = saved(tmp_path, data.exit(PID, PID, START + 40) if has_ended else data)
    (tmp_path / "tmp").mkdir()
    (written := tmp_path / "tmp" / f"perf-{PID}.map").write_text(f"{CODE:x} 40 listed\n")
    for file, at in ((path, WRITTEN), (written, WRITTEN + seconds * SECOND)):
        os.utime(file, ns=(at, at))
    trace = read(data, path=str(path))
    assert (stacks(trace), "map_stale" in report_of(trace)) == ([wanted], wanted != "listed")


def test_a_list_of_a_process_that_ran_before_the_recording_or_on_an_unknown_clock(tmp_path: Path) -> None:
    """Its beginning is not known."""
    data = recorded().feature(CLOCK_DATA=(1, WRITTEN + 60 * SECOND, START))
    assert stacks(listed(tmp_path, data.sample(PID, PID, START + 30, CODE))) == ["listed"]
    data = recorded().comm(PID, PID, "app", START + 10, exec=True).sample(PID, PID, START + 30, CODE)
    assert stacks(listed(tmp_path, data)) == ["listed"]


def test_a_child_runs_what_its_parent_listed(tmp_path: Path) -> None:
    """And what it lists itself comes first."""
    data = recorded().fork(CHILD, CHILD, PID, PID, START + 10).sample(CHILD, CHILD, START + 30, CODE)
    assert stacks(listed(tmp_path, data), CHILD) == ["listed"]
    (tmp_path / f"perf-{CHILD}.map").write_text(f"{CODE:x} 40 its own\n")
    assert stacks(listed(tmp_path, data), CHILD) == ["its own"]


def test_a_list_from_within_a_container(tmp_path: Path) -> None:
    """There the process is 1: nothing is guessed, but the report tells, and the user may say so."""
    trace = listed(tmp_path, with_memory(-60), pid=1)
    assert stacks(trace) == ["[code in //anon]"]
    (issue,) = (issue for issue in trace.report if issue.kind == "map_of_other_number")
    assert (issue.count, issue.details) == (1, ("perf-1.map lists 1 addresses of process 7",))
    assert trace.report.places("map_of_other_number") == {str(tmp_path / "perf-1.map")}
    given = load_checked(saved(tmp_path, with_memory(-60)), [tmp_path / "perf-1.map"])
    assert stacks(given) == ["listed"]
    assert {"map_of_other_number", "symbols_unused"}.isdisjoint(report_of(given))
    other = listed(tmp_path, with_memory(-60), pid=1, at=CODE + 0x100)
    assert "map_of_other_number" not in report_of(other)


def test_lists_that_are_given_name_the_processes_whose_code_they_list(tmp_path: Path) -> None:
    """Of two processes in containers, each the first one there, and of one whose list has its number."""
    data = recorded()
    for nth, pid in enumerate((PID, CHILD, 9)):
        at = CODE + nth * 0x10000
        data.mmap2(pid, pid, at, 4096, at, "//anon", ts=START + 20).sample(pid, pid, START + 30, at + 4)
        for folder in ("a", "b", "c"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "abc"[nth] / f"perf-{9 if pid == 9 else 1}.map").write_text(f"{at:x} 40 of {pid}\n")
    trace = load_checked(saved(tmp_path, data), sorted(tmp_path.glob("*/perf-*.map")))
    assert [stacks(trace, pid) for pid in (PID, CHILD, 9)] == [[f"of {PID}"], [f"of {CHILD}"], ["of 9"]]


def test_a_given_list_that_is_of_nothing_recorded(tmp_path: Path) -> None:
    """It is a list all the same, which the message does not deny."""
    given = tmp_path / "perf-1.map"
    given.write_text(f"{CODE:x} 40 listed\n")
    path = saved(tmp_path, recorded().sample(PID, PID, START, A))
    (issue,) = (one for one in load_checked(path, [given]).report if one.kind == "symbols_unused")
    assert issue.detail == f"{given}: nothing that it lists is in the memory of a recorded process"


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_given_list_of_what_a_process_executes_last(tmp_path: Path, is_packed: bool) -> None:
    """`sh -c "exec node app.js"`, as the entry scripts of containers do. The shell before has samples, too, and no
    memory in which code could be."""
    data = PerfData(start=START).event().comm(PID, PID, "sh", START + 1, exec=True).sample(PID, PID, START + 2, A)
    data.comm(PID, PID, "node", START + 10, exec=True)
    data.mmap2(PID, PID, CODE, 4096, CODE, "//anon", ts=START + 20).sample(PID, PID, START + 30, CODE + 4)
    data.fork(CHILD, CHILD, PID, PID, START + 40).sample(CHILD, CHILD, START + 50, CODE + 4)
    given = tmp_path / "perf-1.map"
    given.write_text(f"{CODE:x} 40 listed\n")
    inputs, symbols = [saved(tmp_path, data)], [given]
    if is_packed:
        packing.write(packing.gather(inputs, symbols=symbols), tmp_path / "a.tfpack")
        inputs, symbols = [tmp_path / "a.tfpack"], []
    trace = load_checked(inputs, symbols)
    assert (stacks(trace), stacks(trace, CHILD)) == (["[unknown]", "listed"], ["listed"])
    assert "symbols_unused" not in report_of(trace)


def test_a_list_where_programs_write_them_is_told_of_if_it_is_of_the_recordings_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "tmp"
    own.mkdir()
    monkeypatch.setattr(map_files, "FOLDER", str(own))
    path = saved(tmp_path, with_memory(-60).feature(HOSTNAME=platform.node()))
    (own / "perf-1.map").write_text(f"{CODE:x} 40 listed\n")
    assert report_of(load_checked(path))["map_of_other_number"] == 1
    os.utime(own / "perf-1.map", (1_600_000_000, 1_600_000_000))
    assert "map_of_other_number" not in report_of(load_checked(path))


def test_a_list_in_the_recorded_machines_file_tree(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/perf-7.map").write_text(f"{CODE:x} 40 listed\n")
    assert stacks(read(with_memory(-60), context=ImportContext(sysroots=[str(tmp_path)]))) == ["listed"]


SEVERAL = {
    "two functions": (("JS:*f /a.js:1:1", "JS:*g /a.js:9:1"), 0, 2),
    "of which one is in the other": (("JS:*f /a.js:1:1", "JS:*g /a.js:9:1"), 4, 2),
    "one function in two tiers": (("JS:~f /a.js:1:1", "JS:*f /a.js:1:1"), 0, 0),
    "behind one another": (("JS:*f /a.js:1:1", "JS:*g /a.js:9:1"), 0x40, 0),
}  # fmt: skip


@pytest.mark.parametrize(("names", "apart", "n"), SEVERAL.values(), ids=SEVERAL)
def test_an_address_that_a_list_has_several_times(tmp_path: Path, names: tuple[str, str], apart: int, n: int) -> None:
    """The list has no times: the last name is shown, as perf does, and the report counts the samples."""
    data = with_memory(-60).sample(PID, PID, START + 31, CODE + 4)
    for at in (CODE + 2, CODE + 0x80):
        data.sample(PID, PID, START + 32, at)
    lines = zip((CODE, CODE + apart), names, strict=True)
    (tmp_path / "perf-7.map").write_text("".join(f"{at:x} 40 {name}\n" for at, name in lines))
    trace = read(data, path=str(tmp_path / "perf.data"))
    assert stacks(trace)[:2] == ["g" if n else "f"] * 2
    found = [(one.count, one.detail) for one in trace.report if one.kind == "map_ambiguous"]
    assert found == ([(n + (apart == 0), f"{n + (apart == 0)} samples of app 7")] if n else [])
    if n:
        (tmp_path / "jit-7.dump").write_bytes(JitDump(pid=PID, start=START).load("of the dump", CODE).bytes())
        of_dump = load_checked([saved(tmp_path, data), tmp_path / "jit-7.dump"])
        assert "map_ambiguous" not in report_of(of_dump)


# ---------------------------------------------------------------- process 0


def test_the_idle_task() -> None:
    trace = read(recorded().sample(0, 0, START + 10, 0xFFFF_FFFF_8100_0000, mode="kernel"))
    assert sampled(trace)[0] == (0, "swapper", 0, "swapper", 1)


OUTSIDE: dict[str, Steps] = {
    "executes a program": lambda d: d.comm(0, 0, "ls", START + 5, exec=True),
    "maps a file": lambda d: d.mmap2(0, 0, LIB, LIB_SIZE, 0, LIB_PATH, ts=START + 5),
    "forks": lambda d: d.fork(0, 0, 0, 0, START + 5),
    "runs": lambda d: d,
}


@pytest.mark.parametrize("steps", OUTSIDE.values(), ids=OUTSIDE)
def test_tasks_outside_of_the_recorders_pid_namespace(steps: Steps) -> None:
    """All of them are process 0: none of their maps and names holds for the others."""
    trace = read(steps(recorded()).sample(0, 0, START + 10, A))
    assert sampled(trace)[0] == (0, "outside the pid namespace", 0, "outside the pid namespace", 1)
    assert stacks(trace, 0) == ["[unknown]"]
    assert report_of(trace)["outside_namespace"] == 1
