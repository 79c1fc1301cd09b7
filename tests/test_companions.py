"""The files that a recording refers to: where they are found, and what happens without them.

A perf.data whose process mapped DUMP, with one sample in the code that the dump names `f`.
"""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import zstandard
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from support import load_checked, report_of
from test_perf_map import CODE, DUMP, LIB, LIB_SIZE, PID, SECOND, START, X, stacks

from traceferry.common.errors import FormatError
from traceferry.common.issue_kinds import ENDED_AT_STUBS, KINDS
from traceferry.common.report import Report
from traceferry.files.source import Source
from traceferry.loading import companions
from traceferry.model import Trace


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """In a folder of its own; its dump was recorded in the folder `made`, which is empty."""
    for folder in ("here", "made", "symbols"):
        (tmp_path / folder).mkdir()
    data = PerfData(start=START).event().mmap2(PID, PID, LIB, LIB_SIZE, 0, "/nowhere/libx.so", ts=0)
    data.mmap2(PID, PID, X, 4096, 0, str(tmp_path / "made" / DUMP), ts=START)
    data.sample(PID, PID, START + SECOND, CODE).sample(PID, PID, START + SECOND + 1, LIB)
    path = tmp_path / "here" / "perf.data"
    path.write_bytes(data.bytes())
    return path


@pytest.fixture
def on_monotonic(recording: Path) -> Path:
    """On the clock of dumps."""
    data = PerfData(start=START).event(clockid=1).mmap2(PID, PID, LIB, LIB_SIZE, 0, "/nowhere/libx.so", ts=0)
    data.mmap2(PID, PID, X, 4096, 0, str(recording.parents[1] / "made" / DUMP), ts=START)
    data.sample(PID, PID, START + SECOND, CODE).sample(PID, PID, START + SECOND + 1, LIB)
    recording.write_bytes(data.bytes())
    return recording


def dump(name: str = "f", pid: int = PID) -> bytes:
    return JitDump(pid=pid, start=START).load(name, CODE, ts=START + 5).bytes()


def loaded(*inputs: Path, symbols: list[Path] | None = None, sysroot: Path | None = None) -> Trace:
    return load_checked(list(inputs), symbols=symbols or [], sysroots=[sysroot] if sysroot else [])


def reported(trace: Trace) -> dict[str, int]:
    usual = (
        "code_unknown",
        "code_unrecorded",
        "files_read",
        "symbols_used",
        "symbols_unused",
        "names_missing",
        "kernel_elsewhere",
    )
    return {k: n for k, n in report_of(trace).items() if k not in usual}


PLACES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "where it was recorded": (f"made/{DUMP}", bytes),
    "there, compressed": (f"made/{DUMP}.zst", zstandard.compress),
    "beside": (f"here/{DUMP}", bytes),
    "beside, zstd": (f"here/{DUMP}.zst", zstandard.compress),
    "beside, gzip": (f"here/{DUMP}.gz", gzip.compress),
    "with the symbols": (f"symbols/{DUMP}", bytes),
    "with the symbols, compressed": (f"symbols/{DUMP}.zst", zstandard.compress),
}


@pytest.mark.parametrize(("place", "pack"), PLACES.values(), ids=PLACES)
def test_found(recording: Path, place: str, pack: Callable[[bytes], bytes]) -> None:
    root = recording.parents[1]
    (root / place).write_bytes(pack(dump()))
    trace = loaded(recording, symbols=[root / "symbols"])
    assert stacks(trace) == ["f", "libx.so+0x0"]
    assert reported(trace) == {}
    # A folder whose only use is a jitdump is not one that gave nothing.
    assert ("symbols_unused" in report_of(trace)) == (not place.startswith("symbols/"))
    assert [(i.format, i.path) for i in trace.inputs] == [("jitdump", Path(place).name), ("perf.data", "perf.data")]


ORDER = [f"made/{DUMP}", f"made/{DUMP}.zst", f"here/{DUMP}", f"here/{DUMP}.zst", f"symbols/{DUMP}"]


@pytest.mark.parametrize("nth", range(len(ORDER)), ids=ORDER)
def test_the_first_place_counts(recording: Path, nth: int) -> None:
    root = recording.parents[1]
    for number, place in list(enumerate(ORDER))[nth:]:
        data = dump(f"f{number}")
        (root / place).write_bytes(zstandard.compress(data) if place.endswith(".zst") else data)
    assert stacks(loaded(recording, symbols=[root / "symbols"]))[0] == f"f{nth}"


def later_dump(ns: int) -> bytes:
    """Of a program that begins so much later. At its address, which the code has again, is another function."""
    return JitDump(pid=PID, start=START).load("another", CODE, ts=START + ns).bytes()


@pytest.mark.parametrize("ns", [10 * SECOND, 9000 * SECOND])
def test_of_a_later_run(on_monotonic: Path, ns: int) -> None:
    """As in containers, where each program is the first: it names nothing, and the one that was kept is used."""
    root = on_monotonic.parents[1]
    (root / "made" / DUMP).write_bytes(later_dump(ns))
    trace = loaded(on_monotonic)
    assert stacks(trace) == ["[unknown]", "libx.so+0x0"]
    assert reported(trace) == {"companion_of_other_run": 1}
    assert trace.end_ts - trace.start_ts <= 2 * SECOND
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_of_other_run")
    assert f"made/{DUMP} begins " in issue.detail
    (root / "here" / DUMP).write_bytes(dump())
    trace = loaded(on_monotonic)
    assert (stacks(trace)[0], reported(trace)) == ("f", {})


def test_of_a_later_run_but_given(on_monotonic: Path) -> None:
    """What the user names is read; the report says what it is."""
    (on_monotonic.parent / DUMP).write_bytes(later_dump(10 * SECOND))
    trace = loaded(on_monotonic, on_monotonic.parent / DUMP)
    assert reported(trace)["companion_of_other_run"] == 1
    assert len(trace.inputs) == 2


@pytest.mark.parametrize("ns", [SECOND, 40 * 365 * 86_400 * SECOND])
def test_of_this_run(on_monotonic: Path, ns: int) -> None:
    """Times that are years apart are of different clocks."""
    (on_monotonic.parent / DUMP).write_bytes(later_dump(ns))
    assert "companion_of_other_run" not in reported(loaded(on_monotonic))


def test_of_a_recording_without_times(on_monotonic: Path) -> None:
    """It does not tell when it ended: the dump is taken for its own."""
    data = PerfData(start=START).event(sample_type="IP|TID").mmap2(PID, PID, LIB, LIB_SIZE, 0, "/nowhere/libx.so")
    data.mmap2(PID, PID, X, 4096, 0, str(on_monotonic.parents[1] / "made" / DUMP)).sample(PID, PID, START, CODE)
    on_monotonic.write_bytes(data.bytes())
    (on_monotonic.parent / DUMP).write_bytes(dump())
    trace = loaded(on_monotonic)
    assert (stacks(trace), reported(trace)) == (["f"], {"time_unknown": 1})


def test_of_a_program_that_starts_long_after_the_last_sample(on_monotonic: Path) -> None:
    """As with a rare event: the recording goes on until the last of what it tells."""
    data = PerfData(start=START).event(clockid=1).sample(PID, PID, START, LIB)
    data.mmap2(PID, PID, X, 4096, 0, str(on_monotonic.parents[1] / "made" / DUMP), ts=START + 10 * SECOND)
    on_monotonic.write_bytes(data.bytes())
    (on_monotonic.parent / DUMP).write_bytes(later_dump(11 * SECOND))
    assert "companion_of_other_run" not in reported(loaded(on_monotonic))


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_in_a_copy_of_the_file_tree(recording: Path, tmp_path: Path, suffix: str) -> None:
    """The user says that this is what the recorded machine had, so a file of this machine's does not come first."""
    made = tmp_path / "made" / DUMP
    made.write_bytes(dump("of this machine"))
    copied = tmp_path / "tree" / f"{made.relative_to('/')}{suffix}"
    copied.parent.mkdir(parents=True)
    copied.write_bytes(zstandard.compress(dump("of the tree")) if suffix else dump("of the tree"))
    assert stacks(loaded(recording, sysroot=tmp_path / "tree"))[0] == "of the tree"
    copied.unlink()
    assert stacks(loaded(recording, sysroot=tmp_path / "tree"))[0] == "of this machine"


def test_nowhere(recording: Path) -> None:
    """Its functions have no names, and the report says which file it was."""
    trace = loaded(recording)
    assert stacks(trace) == ["[unknown]", "libx.so+0x0"]
    assert reported(trace) == {"companion_missing": 1}
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_missing")
    assert issue.detail == str(recording.parents[1] / "made" / DUMP)


UNREADABLE: dict[str, bytes] = {
    "the beginning of a header": dump()[:39],
    "something else": b"\x7fELF" + bytes(100),
    "zeros": bytes(4096),
    "what could be XRay": b"\x03\0\1\0" + bytes(60),
    "a version of the future": dump()[:4] + b"\x09\0\0\0" + dump()[8:],
    "damaged compression": zstandard.compress(dump())[:6] + b"x" * 20,
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_not_readable(recording: Path, content: bytes) -> None:
    """As good as missing: the recording is read all the same."""
    (recording.parent / DUMP).write_bytes(content)
    trace = loaded(recording)
    assert stacks(trace) == ["[unknown]", "libx.so+0x0"]
    assert reported(trace) == {"companion_missing": 1}
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_missing")
    assert DUMP in issue.detail


def test_an_empty_one(recording: Path) -> None:
    """Of a process that ended before it wrote its buffer: it is there, and the report does not ask for it."""
    (recording.parent / DUMP).write_bytes(b"")
    trace = loaded(recording)
    assert stacks(trace) == ["[unknown]", "libx.so+0x0"]
    assert reported(trace) == {"companion_empty": 1}
    (issue,) = (issue for issue in trace.report if issue.kind == "companion_empty")
    assert issue.detail == str(recording.parent / DUMP)


def test_an_unreadable_one_does_not_hide_a_good_one(recording: Path) -> None:
    (recording.parents[1] / "made" / DUMP).write_bytes(b"")
    (recording.parent / DUMP).write_bytes(dump())
    assert stacks(loaded(recording))[0] == "f"


def test_an_unreadable_input_is_an_error_all_the_same(recording: Path) -> None:
    """The user named it."""
    bad = recording.parent / DUMP
    bad.write_bytes(dump()[:39])
    with pytest.raises(FormatError):
        loaded(recording, bad)


def test_a_folder_of_that_name(recording: Path) -> None:
    (recording.parent / DUMP).mkdir()
    assert reported(loaded(recording)) == {"companion_missing": 1}


GIVEN = {
    "plain": (f"made/{DUMP}", bytes), "compressed": (f"made/{DUMP}.zst", zstandard.compress),
    "elsewhere": (f"symbols/{DUMP}", bytes),
}  # fmt: skip


@pytest.mark.parametrize(("place", "pack"), GIVEN.values(), ids=GIVEN)
@pytest.mark.parametrize("first", [False, True], ids=["after the recording", "before it"])
def test_named_by_the_user(recording: Path, place: str, pack: Callable[[bytes], bytes], first: bool) -> None:
    """It is not opened a second time, not even where another of its name is beside the recording."""
    path = recording.parents[1] / place
    path.write_bytes(pack(dump()))
    (recording.parent / DUMP).write_bytes(dump("other"))
    trace = loaded(*([path, recording] if first else [recording, path]))
    assert stacks(trace)[0] == "f"
    assert len(trace.code) == 1
    assert reported(trace) == {}


@pytest.mark.parametrize(("place", "pack"), GIVEN.values(), ids=GIVEN)
def test_named_as_symbols(recording: Path, place: str, pack: Callable[[bytes], bytes]) -> None:
    """It is the one that is read, and was not in vain."""
    path = recording.parents[1] / place
    path.write_bytes(pack(dump()))
    (recording.parent / DUMP).write_bytes(dump("other"))
    trace = loaded(recording, symbols=[path])
    assert stacks(trace)[0] == "f"
    assert len(trace.code) == 1
    assert reported(trace) == {}


@pytest.mark.parametrize("is_symbols", [False, True], ids=["as an input", "as symbols"])
@pytest.mark.parametrize(("name", "pack"), [("app.dump", bytes), ("jit-1.dump", bytes), ("a.gz", gzip.compress)])
def test_named_by_the_user_and_renamed(
    recording: Path, name: str, pack: Callable[[bytes], bytes], is_symbols: bool
) -> None:
    """Its header tells whose it is. The library keeps the recorded name, by which the clocks are aligned."""
    path = recording.parents[1] / "symbols" / name
    path.write_bytes(pack(dump()))
    trace = loaded(recording, symbols=[path]) if is_symbols else loaded(recording, path)
    assert (stacks(trace)[0], reported(trace)) == ("f", {})
    assert trace.strings[int(trace.libs["name"][0])] == DUMP


@pytest.mark.parametrize("is_symbols", [False, True], ids=["as an input", "as symbols"])
def test_a_renamed_dump_of_another_process(recording: Path, is_symbols: bool) -> None:
    path = recording.parents[1] / "symbols" / "app.dump"
    path.write_bytes(dump(pid=8))
    trace = loaded(recording, symbols=[path]) if is_symbols else loaded(recording, path)
    assert reported(trace).get("companion_missing") == 1
    unused = [issue.detail for issue in trace.report if issue.kind == "symbols_unused"]
    assert unused == ([f"{path}: a jitdump of no process that was recorded"] if is_symbols else [])


def test_two_recordings_share_a_dump(recording: Path) -> None:
    second = recording.parent / "second.data"
    second.write_bytes(recording.read_bytes())
    (recording.parent / DUMP).write_bytes(dump())
    assert len(loaded(recording, second).code) == 1


def test_code_from_before_and_after_the_samples(on_monotonic: Path) -> None:
    """Of a program that had run when perf was attached, and went on for an hour: the time is that of the samples, and
    what was at an address last is there."""
    made = JitDump(pid=PID, start=START // 4).load("old", CODE, ts=START // 4)
    made.load("f", CODE, ts=START // 2).load("later", CODE, ts=START + 3600 * SECOND)
    (on_monotonic.parent / DUMP).write_bytes(made.bytes())
    trace = loaded(on_monotonic)
    assert stacks(trace)[0] == "f"
    assert reported(trace) == {"code_outside": 3}
    assert (trace.start_ts, trace.end_ts) == (START - 2, START + 2 * SECOND + 2)
    assert trace.code["loaded_at"].tolist() == [START - 2, START - 1, START + 2 * SECOND + 2]
    # A dump by itself has its own time.
    assert loaded(on_monotonic.parent / DUMP).code["loaded_at"].tolist()[0] == START // 4


@pytest.mark.parametrize(("mapped_at", "first"), [(0, START - 1), (START + 1, START // 2)])
def test_code_from_before_the_samples_of_the_schedulers_clock(recording: Path, mapped_at: int, first: int) -> None:
    """Which a dump tells the distance of that is mapped while perf records: such code keeps its time."""
    data = PerfData(start=START).event(clockid=None).mmap2(PID, PID, LIB, LIB_SIZE, 0, "/nowhere/libx.so", ts=0)
    data.mmap2(PID, PID, X, 4096, 0, str(recording.parent / DUMP), ts=mapped_at)
    data.sample(PID, PID, START, LIB).sample(PID, PID, START + SECOND, CODE)
    recording.write_bytes(data.bytes())
    (recording.parent / DUMP).write_bytes(JitDump(pid=PID, start=START // 2).load("f", CODE, ts=START // 2).bytes())
    assert loaded(recording).code["loaded_at"].tolist() == [first]


@pytest.mark.parametrize("clockid", [1, None], ids=["monotonic", "the scheduler's"])
def test_dumps_on_two_clocks(recording: Path, clockid: int | None) -> None:
    """One of them on the wall clock: it was mapped as its header was written."""
    data, apart = PerfData(start=START).event(clockid=clockid), 1_795_000_000 * SECOND
    for pid, ts in ((PID, START), (PID + 1, START + 7)):
        data.mmap2(pid, pid, X, 4096, 0, str(recording.parent / f"jit-{pid}.dump"), ts=ts)
        data.sample(pid, pid, START + SECOND, CODE)
    recording.write_bytes(data.bytes())
    for pid, name, begin in ((PID, "f", START), (PID + 1, "g", START + 7 + apart)):
        made = JitDump(pid=pid, start=begin, timestamp=begin).load(name, CODE, ts=begin + 5)
        (recording.parent / f"jit-{pid}.dump").write_bytes(made.bytes())
    trace = loaded(recording)
    assert "code_unknown" not in {issue.kind for issue in trace.report}
    assert sorted(trace.code["loaded_at"].tolist()) == [START + 5, START + 12]
    (aligned,) = (issue for issue in trace.report if issue.kind == "clock_aligned")
    assert aligned.details[0] == f"jit-{PID + 1}.dump was moved by {-apart} ns, by when it was mapped"


def test_what_the_user_says_of_clocks_comes_before_the_span(on_monotonic: Path) -> None:
    made = JitDump(pid=PID, start=START // 4).load("f", CODE, ts=START // 4)
    (on_monotonic.parent / DUMP).write_bytes(made.bytes())
    trace = load_checked([on_monotonic], clock_offset_ns=-START // 2)
    assert trace.code["loaded_at"].tolist() == [START // 4]
    assert stacks(trace)[0] == "f"


def test_a_dump_that_grows(recording: Path) -> None:
    """Its last record is only half written: everything before counts, and a load whose name is there."""
    whole = JitDump(pid=PID, start=START).load("f", CODE, ts=START + 5).load("g", CODE + 64)
    for cut in (1, 15, 16, 40, 60):
        (recording.parent / DUMP).write_bytes(whole.bytes()[:-cut])
        trace = loaded(recording)
        assert stacks(trace)[0] == "f"
        assert list(reported(trace)) == ["dump_unfinished", *["code_unfinished"] * (cut <= 16)]


# ---------------------------------------------------------------- a program that was killed

FILE = "/home/dev/long-enough/a.js"
OF_F = ((CODE, 1, 9, FILE), (CODE + 8, 2, 4, FILE))


def sampled(folder: Path, dump_bytes: bytes, *ips: int) -> Trace:
    data = PerfData(start=START).event().mmap2(PID, PID, X, 4096, 0, f"/gone/{DUMP}", ts=START)
    for ip in ips:
        data.sample(PID, PID, START + SECOND, ip)
    (folder / "perf.data").write_bytes(data.bytes())
    (folder / DUMP).write_bytes(dump_bytes)
    return loaded(folder / "perf.data")


def test_a_load_that_is_cut_behind_its_name_names_samples(tmp_path: Path) -> None:
    """With its lines and what describes it."""
    dump = JitDump(pid=PID, start=START).load("f", CODE).tier(1, 5, "Fast")
    dump.debug_info(CODE + 64, [(CODE + 68, 7, 2, "/a.c")]).load("g", CODE + 64)
    trace = sampled(tmp_path, dump.bytes()[:-3], CODE, CODE + 68)
    assert stacks(trace) == ["f", "g"]
    frame = trace.stacks["frame"][-1]
    assert (trace.frames["line"][frame], trace.frames["tier"][frame] >= 0) == (7, True)
    assert reported(trace) == {"dump_unfinished": 1, "code_unfinished": 1}


@pytest.mark.parametrize(
    ("name", "advice", "n_codes"),
    [
        ("stub ReportStubBlock<Unknown>", ENDED_AT_STUBS, 1),
        ("void [app] App::Run()", KINDS["dump_unfinished"].advice, 2),
    ],
)
def test_a_dump_of_dotnet_that_ends_at_stubs_is_told_why(name: str, advice: str, n_codes: int, tmp_path: Path) -> None:
    """The block of stubs is no code. Not where another load is cut: its program was killed."""
    dump = JitDump(pid=PID, start=START).load("stub InitThreadManagerPerfMapData<?>", CODE).load(name, CODE + 64)
    trace = sampled(tmp_path, dump.bytes()[:-3], CODE)
    assert [issue.advice for issue in trace.report if issue.kind == "dump_unfinished"] == [advice]
    assert len(trace.code) == n_codes


def unwritten(name: str, places: Sequence[tuple[int, int, int, str]], tail: int) -> bytes:
    """A dump of V8's that ends within the lines of code at CODE + 64, `tail` bytes before their end, or behind them
    within the record that follows."""
    moved = [(address + 64, *place) for address, *place in places]
    dump = JitDump.v8(pid=PID, start=START).debug_info(CODE, OF_F).load(name, CODE).debug_info(CODE + 64, moved)
    return dump.bytes()[:-tail] if tail else dump.bytes() + JitDump.v8().load("f", CODE).bytes()[40:60]


@pytest.mark.parametrize("tail", [0, 1, 30])
def test_lines_without_their_load_name_its_function(tail: int, tmp_path: Path) -> None:
    """By the code that begins at the same place; in a tier that is unknown. Its size is known as far as its lines."""
    trace = sampled(tmp_path, unwritten(f"JS:~f {FILE}:1:9", OF_F, tail), CODE + 64, CODE + 72)
    assert stacks(trace) == ["f", "[unknown]" if tail == 30 else "f"]
    assert trace.code["size"].tolist() == [16, 1 if tail == 30 else 9]
    assert (trace.code["tier"][0] >= 0, trace.code["tier"][1]) == (True, -1)
    assert reported(trace).keys() >= {"dump_unfinished", "code_unfinished"}


def test_lines_without_their_load_of_a_function_that_was_never_loaded(tmp_path: Path) -> None:
    places = [(CODE, 5, 1, FILE), (CODE + 8, 6, 1, FILE)]
    trace = sampled(tmp_path, unwritten(f"JS:~f {FILE}:1:9", places, 0), CODE + 64)
    assert stacks(trace) == [f"{FILE}:5"]


def test_a_dump_alone_has_what_its_records_say(tmp_path: Path) -> None:
    path = tmp_path / DUMP
    path.write_bytes(unwritten(f"JS:~f {FILE}:1:9", OF_F, 0))
    trace = loaded(path)
    assert (len(trace.code), "code_unfinished" in reported(trace)) == (1, False)


def test_a_dump_with_nothing_but_its_header(recording: Path) -> None:
    (recording.parent / DUMP).write_bytes(dump()[:40])
    trace = loaded(recording)
    assert stacks(trace)[0] == "[unknown]"
    assert reported(trace) == {}


def test_code_that_a_dump_does_not_have(tmp_path: Path) -> None:
    """The advice is not to let the runtime write one."""
    data = PerfData(start=START).event().comm(PID, PID, "app", ts=START)
    data.mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    data.sample(PID, PID, START + SECOND, CODE).sample(PID, PID, START + SECOND + 1, CODE + 2048)
    path = tmp_path / "perf.data"
    path.write_bytes(data.bytes())
    said = []
    for dumps in ([], [tmp_path / DUMP]):
        for one in dumps:
            one.write_bytes(dump())
        trace = loaded(path, *dumps)
        said += [issue.advice for issue in trace.report if issue.kind == "code_unrecorded"]
    assert stacks(trace) == ["f", "[code in //anon]"]
    assert ["jitdump has no record" in advice for advice in said] == [False, True]


def test_a_dump_of_another_process(recording: Path) -> None:
    """Named by the user: it is shown, and named as what it is. The right one is missing."""
    other = recording.parent / "jit-99.dump"
    other.write_bytes(dump("stranger", pid=99))
    trace = loaded(recording, other)
    assert stacks(trace)[0] == "[unknown]"
    assert reported(trace) == {"companion_missing": 1, "code_of_other_process": 1}
    assert sorted(process.pid for process in trace.processes) == [PID, 99]


def test_a_dump_that_the_recording_does_not_mention(tmp_path: Path) -> None:
    """For example, perf was attached after the process had mapped it."""
    (tmp_path / "perf.data").write_bytes(PerfData(start=START).event().sample(PID, PID, START + SECOND, CODE).bytes())
    (tmp_path / DUMP).write_bytes(dump())
    assert stacks(loaded(tmp_path / "perf.data")) == ["[unknown]"]
    assert stacks(loaded(tmp_path / "perf.data", tmp_path / DUMP)) == ["f"]


def test_a_recording_from_standard_input(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no beside; the recorded path and the folders count."""
    root = recording.parents[1]
    data = memoryview(recording.read_bytes())
    from traceferry.registry import importer_named

    readings = [importer_named("perf").module.read([Source("-", data)])]
    monkeypatch.chdir(root / "here")
    (root / "here" / DUMP).write_bytes(dump())
    report = Report()
    assert companions([Source("-", data)], readings, [], report) == []
    assert [issue.kind for issue in report] == ["companion_missing"]
    (found,) = companions([Source("-", data)], readings, [str(root / "here")], Report())
    assert found.name == DUMP


@pytest.mark.parametrize("name", ["jit-7.dump.txt", "myjit-7.dump", "jit-7.so", "jit-.x"])
def test_other_files_are_no_companions(tmp_path: Path, name: str) -> None:
    data = PerfData(start=START).event().mmap2(PID, PID, X, 4096, 0, f"/x/{name}", ts=START)
    (tmp_path / "perf.data").write_bytes(data.bytes())
    assert reported(loaded(tmp_path / "perf.data")) == {"no_samples": 1}


def test_a_path_that_cannot_be(tmp_path: Path) -> None:
    data = PerfData(start=START).event()
    for path in (
        "/" + "a" * 300 + "/jit-1.dump",
        "jit-2.dump",
        "/\udcff/jit-3.dump".encode("utf-8", "replace").decode(),
    ):
        data.mmap2(PID, PID, X, 4096, 0, path, ts=START)
    (tmp_path / "perf.data").write_bytes(data.bytes())
    assert reported(loaded(tmp_path / "perf.data")) == {"companion_missing": 3, "no_samples": 1}
