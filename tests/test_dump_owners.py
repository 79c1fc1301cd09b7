"""Dumps of one name: of several processes, each the first in its container, and of two compilers in one process.

Processes 11 and 12 mapped a file jit-1.dump each and compiled a function: `first` and `second`.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from support import load_checked, report_of
from test_perf_map import SECOND, START, X, stacks

from traceferry import packing
from traceferry.model import Trace

FIRST, SECOND_PID = 11, 12
CODE_OF_FIRST, CODE_OF_SECOND = 0x7F00_0000_0000, 0x7F10_0000_0000
NAME = "jit-1.dump"
NAMED = {FIRST: ["first"], SECOND_PID: ["second"]}


def recorded(
    folder: Path,
    paths: tuple[Path, Path],
    *,
    codes: tuple[int, int] = (CODE_OF_FIRST, CODE_OF_SECOND),
    inodes: tuple[int, int] = (1, 2),
    tells_memory: bool = True,
) -> Path:
    """Both run at once, the second process from ten steps of the clock later on."""
    data = PerfData(start=START).event(clockid=1)
    for nth, (pid, code, inode) in enumerate(zip((FIRST, SECOND_PID), codes, inodes, strict=True)):
        data.comm(pid, pid, "node", START + 10 * nth, exec=True)
        data.mmap2(pid, pid, X, 4096, 0, str(paths[nth] / NAME), ts=START + 10 * nth + 1, inode=inode)
        if tells_memory:
            data.mmap2(pid, pid, code, 4096, 0, "//anon", ts=START + 10 * nth + 2)
    for pid, code in zip((FIRST, SECOND_PID), codes, strict=True):
        data.sample(pid, pid, START + SECOND, code)
    path = folder / "perf.data"
    path.write_bytes(data.bytes())
    return path


def dumps(codes: tuple[int, int] = (CODE_OF_FIRST, CODE_OF_SECOND), pid: int = 1) -> list[bytes]:
    return [
        JitDump(pid=pid, timestamp=START + nth).load(name, code, tid=pid, ts=START + 10 * nth + 3).bytes()
        for nth, (name, code) in enumerate(zip(("first", "second"), codes, strict=True))
    ]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Where the dumps are."""
    made = tmp_path / "one", tmp_path / "two"
    for folder, data in zip(made, dumps(), strict=True):
        folder.mkdir()
        (folder / NAME).write_bytes(data)
    (tmp_path / "here").mkdir()
    return made


def names(trace: Trace) -> dict[int, list[str]]:
    return {pid: stacks(trace, pid) for pid in (FIRST, SECOND_PID)}


def reported(trace: Trace) -> dict[str, int]:
    usual = ("files_read", "code_unrecorded", "names_missing", "kernel_elsewhere", "code_unknown", "symbols_used")
    return {kind: n for kind, n in report_of(trace).items() if kind not in usual}


def test_each_at_its_path(folders: tuple[Path, Path]) -> None:
    """They are two processes, each with its own code, as the recorder calls them."""
    trace = load_checked([recorded(folders[0].parent / "here", folders)])
    assert names(trace) == NAMED
    assert reported(trace) == {}
    assert sorted(trace.code["pid"].tolist()) == [FIRST, SECOND_PID]
    assert sorted((process.pid, len(process.counters)) for process in trace.processes) == [(11, 1), (12, 1)]
    threads = [(process.pid, thread.tid) for process, thread in trace.threads if not thread.sample_unit]
    assert sorted(threads) == [(11, 11), (12, 12)]


GONE = Path("/gone/one"), Path("/gone/two")
# Each container has a /tmp of its own.
OWN_TMP = Path("/tmp-of-a-container"), Path("/tmp-of-a-container")
Given = Callable[[Path, Path], tuple[list[Path], list[Path]]]
GIVEN: dict[str, Given] = {
    "as inputs": lambda one, two: ([one / NAME, two / NAME], []),
    "as inputs, the second one first": lambda one, two: ([two / NAME, one / NAME], []),
    "as files of symbols": lambda one, two: ([], [one / NAME, two / NAME]),
    "in folders of symbols": lambda one, two: ([], [two, one]),
    "one as an input, one in a folder": lambda one, two: ([two / NAME], [one]),
}


@pytest.mark.parametrize("recorded_at", [GONE, OWN_TMP], ids=["two folders", "two of one path"])
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_copied_from_elsewhere(folders: tuple[Path, Path], given: Given, recorded_at: tuple[Path, Path]) -> None:
    """The memory of the processes tells whose code it is."""
    inputs, symbols = given(*folders)
    path = recorded(folders[0].parent / "here", recorded_at)
    trace = load_checked([path, *inputs], symbols=symbols)
    assert names(trace) == NAMED
    assert reported(trace) == {}


@pytest.mark.parametrize("codes", [(CODE_OF_FIRST, CODE_OF_SECOND), (CODE_OF_FIRST, CODE_OF_FIRST)])
@pytest.mark.parametrize("tells_memory", [False, True])
@pytest.mark.parametrize("is_second_first", [False, True])
def test_what_else_tells_whose_they_are(
    folders: tuple[Path, Path], codes: tuple[int, int], tells_memory: bool, is_second_first: bool
) -> None:
    """Memory may be at the same addresses, or not be recorded. Then the folders tell, of copies, too."""
    for folder, data in zip(folders, reversed(dumps(codes)), strict=True):
        (folder / NAME).write_bytes(data)
    recorded_at = Path("/there/two"), Path("/there/one")
    path = recorded(folders[0].parent / "here", recorded_at, codes=codes, tells_memory=tells_memory)
    given = [folder / NAME for folder in folders]
    assert names(load_checked([path, *(reversed(given) if is_second_first else given)])) == NAMED


@pytest.mark.parametrize("is_second_first", [False, True])
def test_the_order_of_time_tells_where_nothing_else_does(folders: tuple[Path, Path], is_second_first: bool) -> None:
    path = recorded(folders[0].parent / "here", GONE, tells_memory=False)
    moved = [folders[nth].rename(folders[0].parent / name) / NAME for nth, name in enumerate(("b", "a"))]
    assert names(load_checked([path, *(reversed(moved) if is_second_first else moved)])) == NAMED


def test_renamed(folders: tuple[Path, Path]) -> None:
    """The memory of the processes tells whose code it is, here, too."""
    renamed = [(folder / NAME).rename(folder.parent / f"{folder.name}.dump") for folder in folders]
    trace = load_checked([recorded(folders[0].parent / "here", GONE), *renamed])
    assert (names(trace), reported(trace)) == (NAMED, {})


def test_one_of_two_is_not_there(folders: tuple[Path, Path]) -> None:
    (folders[0] / NAME).unlink()
    trace = load_checked([recorded(folders[0].parent / "here", folders)])
    assert names(trace)[SECOND_PID] == ["second"]
    assert "first" not in names(trace)[FIRST]
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_missing")
    assert (issue.count, issue.detail) == (1, str(folders[0] / NAME))


def test_one_of_two_is_given_from_elsewhere(folders: tuple[Path, Path]) -> None:
    """Which of the two is missing, its path does not tell."""
    trace = load_checked([recorded(folders[0].parent / "here", GONE), folders[1] / NAME])
    assert names(trace) == {FIRST: ["[code in //anon]"], SECOND_PID: ["second"]}
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_missing")
    assert (issue.count, issue.detail) == (1, f"/gone/one/{NAME} or /gone/two/{NAME}")


def test_one_of_two_of_one_path_is_not_there(folders: tuple[Path, Path]) -> None:
    """Each container had its own file there."""
    trace = load_checked([recorded(folders[0].parent / "here", (folders[1], folders[1]))])
    assert names(trace) == {FIRST: ["[code in //anon]"], SECOND_PID: ["second"]}
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_missing")
    assert (issue.count, issue.detail) == (1, f"{folders[1] / NAME} of another process")


def test_a_copy_beside_the_recording_is_one_of_them(folders: tuple[Path, Path]) -> None:
    """It is read once."""
    path = recorded(folders[0].parent / "here", GONE)
    shutil.copy(folders[1] / NAME, path.parent / NAME)
    trace = load_checked([path])
    assert (len(trace.code), names(trace)[SECOND_PID]) == (1, ["second"])
    assert reported(trace)["companion_missing"] == 1


def test_one_file_that_both_wrote(folders: tuple[Path, Path]) -> None:
    """The last one's code is in it, which is not taken for the first one's; the report says that this is lost."""
    here = folders[0].parent / "here"
    path = recorded(here, (folders[1], folders[1]), inodes=(1, 1), codes=(CODE_OF_SECOND, CODE_OF_SECOND))
    trace = load_checked([path])
    assert names(trace) == {FIRST: ["[code in //anon]"], SECOND_PID: ["second"]}
    assert reported(trace) == {"dump_overwritten": 1}
    (issue,) = (issue for issue in trace.report if issue.kind == "dump_overwritten")
    assert issue.detail == f"{folders[1] / NAME} of process {FIRST}"


def test_a_fork_that_the_recorder_found_running(folders: tuple[Path, Path]) -> None:
    """It has the mapping of its parent, and the parent's code."""
    data = PerfData(start=START).event(clockid=1)
    for pid in (FIRST, SECOND_PID):
        data.comm(pid, pid, "node", ts=0).mmap2(pid, pid, X, 4096, 0, str(folders[0] / "jit-11.dump"), ts=0)
        data.sample(pid, pid, START + SECOND, CODE_OF_FIRST)
    path = folders[0].parent / "here" / "perf.data"
    path.write_bytes(data.bytes())
    (folders[0] / "jit-11.dump").write_bytes(dumps(pid=FIRST)[0])
    trace = load_checked([path])
    assert names(trace) == {FIRST: ["first"], SECOND_PID: ["first"]}
    assert reported(trace) == {"code_outside": 1}


@pytest.mark.parametrize("is_given", [False, True])
def test_two_compilers_in_one_process(folders: tuple[Path, Path], is_given: bool) -> None:
    """Each writes jit-PID.dump to a folder of its choice."""
    data = PerfData(start=START).event(clockid=1).comm(1, 1, "python", START, exec=True)
    for nth, folder in enumerate(folders):
        data.mmap2(1, 1, X + 4096 * nth, 4096, 0, str(folder / NAME), ts=START + 1, inode=nth)
    data.sample(1, 1, START + SECOND, CODE_OF_FIRST).sample(1, 1, START + SECOND + 1, CODE_OF_SECOND)
    path = folders[0].parent / "here" / "perf.data"
    path.write_bytes(data.bytes())
    trace = load_checked([path, *(folder / NAME for folder in folders if is_given)])
    assert stacks(trace, 1) == ["first", "second"]
    assert reported(trace) == {}
    assert [process.pid for process in trace.processes] == [1]


@pytest.mark.parametrize("is_given", [False, True])
def test_in_a_pack(folders: tuple[Path, Path], is_given: bool) -> None:
    """It has both, and tells whose they are where neither the recording's folders nor the dumps are."""
    path = recorded(folders[0].parent / "here", folders, tells_memory=False)
    given = [folder / NAME for folder in folders if is_given]
    contents = packing.gather([path, *given])
    assert contents.missing == []
    packed = path.parent / "a.tfpack"
    packing.write(contents, packed)
    for folder in folders:
        shutil.rmtree(folder)
    trace = load_checked([packed])
    assert names(trace) == NAMED
    assert reported(trace) == {}


# ---------------------------------------------------------------- one process after another program


def executed(folder: Path, *, is_mapped_again: bool = False) -> list[Path]:
    """Process 11 runs node, and from ten steps of the clock on python, each with a dump. is_mapped_again: a second
    slice of the recording tells of the second dump, too."""
    paths = [folder / name for name in ("perf.data", "perf.data.2")[: 1 + is_mapped_again]]
    data = PerfData(start=START).event(clockid=1)
    for nth, (program, code) in enumerate((("node", CODE_OF_FIRST), ("python", CODE_OF_SECOND))):
        begun = START + 10 * nth
        data.comm(FIRST, FIRST, program, begun, exec=True)
        data.mmap2(FIRST, FIRST, X, 4096, 0, str(folder / program / "jit-11.dump"), ts=begun + 1, inode=nth + 1)
        data.mmap2(FIRST, FIRST, code, 4096, 0, "//anon", ts=begun + 2).sample(FIRST, FIRST, begun + 5, code)
        (folder / program).mkdir(parents=True)
    for program, made in zip(("node", "python"), dumps(pid=FIRST), strict=True):
        (folder / program / "jit-11.dump").write_bytes(made)
    paths[0].write_bytes(data.bytes())
    if is_mapped_again:
        data = PerfData(start=START).event(clockid=1).comm(FIRST, FIRST, "python", ts=0)
        data.mmap2(FIRST, FIRST, X, 4096, 0, str(folder / "python" / "jit-11.dump"), ts=0, inode=2)
        paths[1].write_bytes(data.sample(FIRST, FIRST, START + SECOND, CODE_OF_SECOND).bytes())
    return paths


@pytest.mark.parametrize("is_mapped_again", [False, True])
def test_two_programs_of_one_process(tmp_path: Path, is_mapped_again: bool) -> None:
    """What the second one compiled is its own, not of the first."""
    trace = load_checked(executed(tmp_path, is_mapped_again=is_mapped_again))
    found = {process.name: process for process in trace.processes}
    assert sorted(found) == ["node", "python"]
    for name, n_samples in (("node", 1), ("python", 1 + is_mapped_again)):
        process = found[name]
        (thread,) = (thread for thread in process.threads if not thread.sample_unit)
        data = thread.load(trace)
        assert (len(data.samples), sum(map(len, data.markers.values()))) == (n_samples, 1)
        assert [view.name for view in process.threads if view.sample_unit] == ["code size"]
        assert [counter.values["value"].tolist() for counter in process.counters] == [[16]]
    assert len({view.tid for _, view in trace.threads if view.sample_unit}) == 2


def test_a_process_with_the_number_of_one_that_ended(tmp_path: Path) -> None:
    """As one that executes another program."""
    data = PerfData(start=START).event(clockid=1)
    for nth, code in enumerate((CODE_OF_FIRST, CODE_OF_SECOND)):
        begun = START + 10 * nth
        data.fork(FIRST, FIRST, 1, 1, begun).sample(FIRST, FIRST, begun + 5, code)
        data.mmap2(FIRST, FIRST, X, 4096, 0, str(tmp_path / str(nth) / "jit-11.dump"), ts=begun + 1, inode=nth + 1)
        (tmp_path / str(nth)).mkdir()
        (tmp_path / str(nth) / "jit-11.dump").write_bytes(dumps(pid=FIRST)[nth])
    (tmp_path / "perf.data").write_bytes(data.bytes())
    trace = load_checked(tmp_path / "perf.data")
    assert [len(process.counters) for process in trace.processes if process.pid == FIRST] == [1, 1]
    assert stacks(trace, FIRST) == ["first", "second"]
