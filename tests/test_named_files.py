"""Files that a recording names: which are read, which are refused, and what the report says of each."""

import gzip
import os
import platform
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from builders.jitdump import JitDump
from builders.perf_data import PerfData
from builders.xray import Fdr
from support import load_checked, report_of
from test_perf_map import CODE, LIB, PID, SECOND, START, stacks

import traceferry
from traceferry.apps import cli
from traceferry.common.report import Report
from traceferry.files import named_files
from traceferry.files.named_files import open_named, read_named
from traceferry.model import Trace

BUILD_ID = bytes(range(20))
STRANGER = 54321
needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


def details(trace: Trace, kind: str) -> list[str]:
    return [text for issue in trace.report if issue.kind == kind for text in issue.details]


def recording(folder: Path, data: PerfData | None = None) -> Path:
    """With one sample in `CODE`."""
    data = data or PerfData(start=START).event().comm(PID, PID, "app", ts=0)
    path = folder / "perf.data"
    path.write_bytes(data.sample(PID, PID, START + SECOND, CODE).bytes())
    return path


def map_line(name: str) -> str:
    return f"{CODE:x} 100 {name}\n"


# ---------------------------------------------------------------- what is opened


def test_a_file_is_read_and_reported(tmp_path: Path) -> None:
    (tmp_path / f"perf-{PID}.map").write_text(map_line("listed"))
    trace = load_checked(recording(tmp_path))
    assert stacks(trace) == ["listed"]
    assert details(trace, "files_read") == [str(tmp_path / f"perf-{PID}.map")]
    assert not trace.report.lossy


def test_only_regular_files(tmp_path: Path) -> None:
    """A FIFO without a writer would be waited for, a device never end; what procfs says is of this machine."""
    path = recording(tmp_path)
    listed = tmp_path / f"perf-{PID}.map"
    makers: list[Callable[[], None]] = [
        lambda: os.mkfifo(listed),
        lambda: listed.symlink_to("/dev/zero"),
        lambda: listed.symlink_to("/proc/self/environ"),
        lambda: listed.symlink_to("/sys/kernel/notes"),
    ]
    for make in makers:
        make()
        trace = load_checked(path)
        assert stacks(trace) == ["[unknown]"]
        assert [text.split(": ")[0] for text in details(trace, "file_refused")] == [str(listed)]
        assert details(trace, "files_read") == []
        assert trace.report.lossy
        listed.unlink()


def test_a_folder_or_nothing_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", tmp_path / ("x" * 300), "a\0b", "/proc/none", "\udcff"):
        report = Report()
        assert open_named(str(path), report) is None
        assert list(report) == []


def test_a_link_is_followed_to_a_regular_file(tmp_path: Path) -> None:
    (tmp_path / "there").write_text(map_line("listed"))
    (tmp_path / f"perf-{PID}.map").symlink_to(tmp_path / "there")
    assert stacks(load_checked(recording(tmp_path))) == ["listed"]


def test_the_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, report = tmp_path / "file", Report()
    path.write_bytes(b"12345")
    assert read_named(str(path), report, at_most=5) == "12345"
    assert read_named(str(path), report, at_most=4) is None
    monkeypatch.setattr(named_files, "MAX_SIZE", 4)
    assert open_named(str(path), report) is None
    assert {issue.kind for issue in report} == {"files_read", "file_refused"}


# ---------------------------------------------------------------- whose they are


@needs_owners
def test_files_of_others_are_not_trusted(tmp_path: Path) -> None:
    """Neither in the recording's folder, nor behind a link of someone else's; but where the recording is theirs."""
    path, listed = recording(tmp_path), tmp_path / f"perf-{PID}.map"
    listed.write_text(map_line("planted"))
    os.chown(listed, STRANGER, -1)
    trace = load_checked(path)
    assert stacks(trace) == ["[unknown]"]
    assert f"user {STRANGER}" in details(trace, "file_refused")[0]

    os.chown(path, STRANGER, -1)
    assert stacks(load_checked(path)) == ["planted"]
    os.chown(path, 0, -1)

    listed.rename(tmp_path / "target")
    os.chown(tmp_path / "target", 0, -1)
    listed.symlink_to(tmp_path / "target")
    os.chown(listed, STRANGER, -1, follow_symlinks=False)
    assert stacks(load_checked(path)) == ["[unknown]"]


@needs_owners
def test_files_of_root_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every user, whose own recording it is."""
    path = recording(tmp_path)
    (tmp_path / f"perf-{PID}.map").write_text(map_line("listed"))
    os.chown(path, STRANGER, -1)
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert stacks(load_checked(path)) == ["listed"]


@needs_owners
def test_who_called_sudo_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = tmp_path / f"perf-{PID}.map"
    listed.write_text(map_line("listed"))
    os.chown(listed, STRANGER, -1)
    monkeypatch.setenv("SUDO_UID", str(STRANGER))
    assert stacks(load_checked(recording(tmp_path))) == ["listed"]


@needs_owners
def test_the_folder_of_temporary_files_is_not_trusted_for_the_name_of_a_machine(tmp_path: Path) -> None:
    pid = 2**22 + os.getpid()  # of no process
    listed = Path(f"/tmp/perf-{pid}.map")
    data = PerfData(start=START).event().feature(HOSTNAME=platform.node()).comm(pid, pid, "app", ts=0)
    (tmp_path / "perf.data").write_bytes(data.sample(pid, pid, START + SECOND, CODE).bytes())
    try:
        listed.write_text(map_line("listed"))
        assert stacks(load_checked(tmp_path / "perf.data"), pid) == ["listed"]
        os.chown(listed, STRANGER, -1)
        assert stacks(load_checked(tmp_path / "perf.data"), pid) == ["[unknown]"]
    finally:
        listed.unlink()


# ---------------------------------------------------------------- dumps


def test_a_dump_is_opened_as_a_dump_only(tmp_path: Path) -> None:
    """Whatever else lies under such a name is not taken into the trace."""
    log = Fdr()
    other = log.buffer(1, 1, records=[log.new_cpu(0, 5), log.enter(1, 10), log.exit(1, 10)]).bytes()
    perf = PerfData(start=START).event().comm(99, 99, "stranger").sample(99, 99).bytes()
    data = PerfData(start=START).event().mmap2(PID, PID, CODE, 4096, 0, str(tmp_path / "jit-7"), ts=START)
    path = recording(tmp_path, data)
    for content in (other, perf, zstandard.compress(perf)):
        (tmp_path / "jit-7").write_bytes(content)
        trace = load_checked(path)
        assert [one.format for one in trace.inputs] == ["perf.data"]
        assert report_of(trace)["companion_missing"] == 1
        assert details(trace, "files_read") == [str(tmp_path / "jit-7")]


def test_a_recorded_path_that_is_not_absolute_is_not_that_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    data = PerfData(start=START).event().mmap2(PID, PID, CODE, 4096, 0, "jit-7.dump", ts=START)
    path = recording(tmp_path / "here", data)
    monkeypatch.chdir(tmp_path / "there")
    Path("jit-7.dump").write_bytes(JitDump(pid=PID, start=START).load("f", CODE, ts=START).bytes())
    assert report_of(load_checked(path))["companion_missing"] == 1


# ---------------------------------------------------------------- mapped files


ELF_HEADER = struct.pack("<7s9xHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
PT_LOAD, PT_NOTE = 1, 4


def elf(kind: int, at: int, content: bytes) -> bytes:
    """An ELF file with one segment."""
    segment = struct.pack("<IIQQQQQQ", kind, 5, at, at, at, len(content), len(content), 8)
    return (ELF_HEADER + segment).ljust(at, b"\0") + content


def build_note(build_id: bytes) -> bytes:
    return struct.pack("<III", 4, len(build_id), 3) + b"GNU\0" + build_id


def test_a_compressed_file_is_expanded_only_if_it_is_of_the_recorded_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    decompress = named_files.decompress

    def counted(raw: bytes, into: bytearray, at_most: int) -> object:
        outcome = decompress(raw, into, at_most)
        sizes.append(len(into))
        return outcome

    monkeypatch.setattr(named_files, "decompress", counted)
    monkeypatch.setattr("traceferry.files.source.decompress", counted)
    library = tmp_path / "lib.so"
    data = PerfData(start=START).event().mmap2(PID, PID, LIB, 4096, 0, str(library), ts=0, build_id=BUILD_ID)
    path = recording(tmp_path, data.sample(PID, PID, START + SECOND, LIB + 16))
    for compress in (gzip.compress, zstandard.compress):
        for build_id, expected in ((bytes(20), [1 << 20]), (BUILD_ID, [1 << 20, 4 << 20])):
            sizes.clear()
            content = elf(PT_NOTE, 0x80, build_note(build_id))
            library.write_bytes(compress(content + bytes((4 << 20) - len(content))))
            trace = load_checked(path)
            assert sizes == expected
            assert ("build_id_differs" in report_of(trace)) == (build_id != BUILD_ID)


def test_a_jitted_object_of_another_recording_is_not_taken(tmp_path: Path) -> None:
    """`perf inject` maps the code of its file, from 0x80 on; without a build id its place and size are compared."""
    path = tmp_path / f"jitted-{PID}-1.so"
    path.write_bytes(elf(PT_LOAD, 0x80, bytes(64)))
    for size in (64, 63, 65, 4096):
        data = PerfData(start=START).event().mmap2(PID, PID, CODE, size, 0x80, str(path), ts=0)
        trace = load_checked(recording(tmp_path, data))
        assert ("build_id_differs" in report_of(trace)) == (size != 64)


def test_a_jitted_object_of_a_copy_of_the_file_tree(tmp_path: Path) -> None:
    """A recording of a chroot or container: what is at the path on this machine is of another one."""
    path = tmp_path / f"jitted-{PID}-1.so"
    copied = tmp_path / "tree" / path.relative_to("/")
    copied.parent.mkdir(parents=True)
    data = PerfData(start=START).event().mmap2(PID, PID, CODE, 64, 0x80, str(path), ts=0)
    for here, there, differs in ((63, 64, False), (64, 63, False), (63, 63, True)):
        path.write_bytes(elf(PT_LOAD, 0x80, bytes(here)))
        copied.write_bytes(elf(PT_LOAD, 0x80, bytes(there)))
        trace = load_checked(recording(tmp_path, data), sysroots=[tmp_path / "tree"])
        assert ("build_id_differs" in report_of(trace)) == differs


# ---------------------------------------------------------------- source files


def dump_of(folder: Path, *files: str) -> Path:
    entries = [(CODE + nth, nth + 1, 0, file) for nth, file in enumerate(files)]
    path = folder / "jit-1.dump"
    path.write_bytes(JitDump().debug_info(CODE, entries).load("f", CODE).bytes())
    return path


def texts_in(trace: Trace) -> set[str]:
    for _, thread in trace.threads:
        thread.load(trace)
    return {trace.texts[text] for text in trace.sources["text"].tolist() if text >= 0}


def test_source_files_only_of_the_folders_that_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With links resolved; what lies elsewhere is reported, and its text nowhere."""
    for name in ("src", "src/sub", "more", "src-not", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.c").write_text(name)
    (tmp_path / "src" / "link.c").symlink_to(tmp_path / "secret" / "a.c")
    inside = [str(tmp_path / "src" / "a.c"), str(tmp_path / "src" / "sub" / ".." / "sub" / "a.c")]
    outside = [str(tmp_path / "src" / "link.c"), str(tmp_path / "src-not" / "a.c"), "/etc/passwd", "/proc/self/environ"]
    path = dump_of(tmp_path, *inside, *outside, str(tmp_path / "more" / "a.c"))

    trace = load_checked(path, embed_sources=tmp_path / "src")
    assert texts_in(trace) == {"src", "src/sub"}
    assert {Path(text).name for text in details(trace, "source_outside")} == {"a.c", "passwd", "environ"}
    (embedded,) = (issue for issue in trace.report if issue.kind == "sources_embedded")
    assert embedded.count == 2
    assert embedded.detail.startswith(f"{len('src') + len('src/sub')} characters of {inside[0]}, ")
    assert sorted(details(trace, "files_read")) == [inside[0], str(tmp_path / "src" / "sub" / "a.c")]

    monkeypatch.chdir(tmp_path / "more")
    assert texts_in(load_checked(path, embed_sources=True)) == {"more"}
    assert texts_in(load_checked(path, embed_sources=[tmp_path / "more", tmp_path / "src"])) == {
        "more", "src", "src/sub",
    }  # fmt: skip
    assert texts_in(load_checked(path)) == set()
    with pytest.raises(traceferry.UsageError, match="not a folder"):
        load_checked(path, embed_sources="nowhere")


def test_a_relative_name_is_one_in_the_folders(tmp_path: Path) -> None:
    (tmp_path / "src" / "lib").mkdir(parents=True)
    (tmp_path / "src" / "lib" / "a.c").write_text("text")
    (tmp_path / "b.c").write_text("not inside")
    path = dump_of(tmp_path, "lib/a.c", "../b.c")
    assert texts_in(load_checked(path, embed_sources=tmp_path / "src")) == {"text"}


def test_the_option_takes_a_folder_or_is_followed_by_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.c").write_text(f"text of {name}")
    path = str(dump_of(tmp_path, str(tmp_path / "one" / "one.c"), str(tmp_path / "two" / "two.c")))
    monkeypatch.chdir(tmp_path / "one")
    option, two = "--embed-sources", str(tmp_path / "two")
    for words, wanted in (
        ([path], set()),
        ([option, path], {"one"}),
        ([path, option], {"one"}),
        ([path, option, two], {"two"}),
        ([option, two, path], {"two"}),
        ([f"{option}={two}", path], {"two"}),
        ([option, two, option, path], {"one", "two"}),
    ):
        assert cli.main(["convert", *words, "-o", str(tmp_path / "out.json"), "--quiet"]) == 0
        output = (tmp_path / "out.json").read_text()
        assert {name for name in ("one", "two") if f"text of {name}" in output} == wanted
    assert cli.main(["convert", path, option, "nowhere", "-o", str(tmp_path / "x.json")]) == 2
