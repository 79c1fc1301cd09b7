"""Names that are in files of others: code that CoreCLR compiled ahead, and guests; files that are gone, or others."""

import os
import platform
import time
from pathlib import Path
from typing import Any

import pytest
from builders.dwarf import Dwarf, Symbol
from builders.perf_data import PerfData
from test_perf_map import CODE, LIB, LIB_SIZE, PID, START, USER, context_with, read, recorded, stack, stacks

import traceferry
from traceferry import packing
from traceferry.importers.perf import natives
from traceferry.libraries import recorded_files
from traceferry.model import Trace
from traceferry.reading import ImportContext

DLL = "/usr/share/dotnet/System.Linq.dll"
GUID = "{0123abcd-4567-89ab-cdef-0123456789ab}"
SIGNATURE = bytes(range(16))
R2RMAP = (
    f"FFFFFFFF 00 {SIGNATURE.hex().upper()}\nFFFFFFFE 00 1\nFFFFFFFD 00 2\nFFFFFFFC 00 3\nFFFFFFFB 00 1\n"
    "00001000 20 int32 [System.Linq]System.Linq.Enumerable::Count(class [System.Runtime]System.Object)\n"
    "00001020 10 System.Linq.Lookup`2<int, string>+Grouping::Clear()\n"
    "00001030 10 System.Collections.Generic.List`1<int, string> System.Linq.A::B(int32, bool)\n"
)
GUEST, GUEST_KERNEL, GUEST_USER = -2048, -2176, -2560
IN_GUEST = 0xFFFF_FFFF_8100_0000


def issues(trace: Trace, kind: str) -> list[tuple[str, str]]:
    return [(issue.detail, issue.advice) for issue in trace.report if issue.kind == kind]


# ---------------------------------------------------------------- compiled ahead


def with_image(folder: Path, address: str = f"0x00{LIB:x}") -> PerfData:
    """Samples in System.Linq.dll, of which the runtime told."""
    (folder / "perfinfo-7.map").write_text(
        f"ImageLoad;/app/Only.IL.dll;{GUID};(nil)\nImageLoad;/app/a;b.dll;{GUID};0\nnonsense\nImageLoad;;;\n"
        f"ImageLoad;{DLL};{GUID};{address}\n"
    )
    data = PerfData(start=START).event().comm(PID, PID, "app", ts=0)
    data.mmap2(PID, PID, LIB, LIB_SIZE, 0x200, DLL, ts=0)
    for at in (0x1000, 0x101F, 0x1020, 0x1030, 0x1040):
        data.sample(PID, PID, START, LIB + at)
    return data


AHEAD = [
    *["System.Linq.Enumerable.Count(System.Object)"] * 2, "System.Linq.Lookup<int, string>.Grouping.Clear()",
    "System.Linq.A.B(int32, bool)", "System.Linq.dll+0x1240",
]  # fmt: skip


@pytest.mark.parametrize("name", ["System.Linq.ni.r2rmap", f"System.Linq.ni.{GUID}.map"])
@pytest.mark.parametrize("place", ["beside", "symbols", "image"])
def test_code_that_was_compiled_ahead_has_names(name: str, place: str, tmp_path: Path) -> None:
    """What crossgen wrote is beside the recording, in a folder of the user's, or beside the image in a sysroot."""
    data = with_image(tmp_path)
    folder = {"beside": tmp_path, "symbols": tmp_path / "s", "image": (tmp_path / DLL[1:]).parent}[place]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(R2RMAP)
    context = ImportContext(folders=[str(tmp_path / "s")], sysroots=[str(tmp_path)])
    trace = read(data, path=str(tmp_path / "perf.data"), context=context)
    assert stacks(trace) == AHEAD
    tiers = {trace.strings[trace.tiers["name"][tier]] for tier in trace.frames["tier"].tolist() if tier >= 0}
    assert tiers == {"PreJIT"}


@pytest.mark.parametrize(("image", "is_named"), [
    (b"MZ..R2RM" + SIGNATURE, True), (b"MZ..R2RM" + bytes(16), False), (b"MZ..", True),
])  # fmt: skip
def test_a_map_of_another_build_is_refused(image: bytes, is_named: bool, tmp_path: Path) -> None:
    data = with_image(tmp_path)
    (tmp_path / "System.Linq.ni.r2rmap").write_text(R2RMAP)
    dll = tmp_path / DLL[1:]
    dll.parent.mkdir(parents=True)
    dll.write_bytes(image)
    trace = read(data, path=str(tmp_path / "perf.data"), context=ImportContext(sysroots=[str(tmp_path)]))
    assert (stacks(trace) == AHEAD) is is_named
    assert bool(issues(trace, "build_id_differs")) is not is_named
    assert not issues(trace, "files_unverified")


@pytest.mark.parametrize("address", ["(nil)", "0", "-10", "ffffffffffffffff", "text"])
def test_images_without_an_address_name_nothing(address: str, tmp_path: Path) -> None:
    """The report says what would."""
    data = with_image(tmp_path, address)
    (tmp_path / "System.Linq.ni.r2rmap").write_text(R2RMAP)
    trace = read(data, path=str(tmp_path / "perf.data"))
    assert stacks(trace)[0] == "System.Linq.dll+0x1200"
    ((detail, advice),) = issues(trace, "names_missing")
    assert detail == "System.Linq.dll (5 of 5 addresses): no file lists its functions"
    assert "DOTNET_ReadyToRun=0" in advice
    assert ".ni.r2rmap" in advice


def test_a_list_of_images_travels_in_a_pack(tmp_path: Path) -> None:
    data = with_image(tmp_path)
    (tmp_path / "System.Linq.ni.r2rmap").write_text(R2RMAP)
    (tmp_path / "perf.data").write_bytes(data.bytes())
    before = stacks(traceferry.load(str(tmp_path / "perf.data")))
    assert before == AHEAD
    pack = tmp_path / "app.tfpack"
    packing.write(packing.gather(tmp_path / "perf.data"), pack)
    for name in ("perfinfo-7.map", "System.Linq.ni.r2rmap", "perf.data"):
        (tmp_path / name).unlink()
    assert stacks(traceferry.load(str(pack))) == before


# ---------------------------------------------------------------- guests


def in_guest(*chain: int, mode: str = "guest_kernel") -> PerfData:
    return recorded().sample(PID, PID, START, chain[-1], list(chain), mode=mode)


def test_functions_of_a_guest_are_named_by_a_copy_of_its_kallsyms(tmp_path: Path) -> None:
    (tmp_path / "guest.kallsyms").write_text(
        f"{IN_GUEST:x} T _text\n{IN_GUEST + 0x10:x} t run_timers\n{IN_GUEST + 0x40:x} t probe\t[virtio_net]\n"
    )
    cases = {
        "run_timers": in_guest(GUEST_KERNEL, IN_GUEST + 0x18),
        "probe [virtio_net]": in_guest(GUEST, IN_GUEST + 0x40),
        "[guest user] > run_timers > _text": in_guest(GUEST_KERNEL, IN_GUEST, IN_GUEST + 0x18, GUEST_USER, 0x1000),
        "[guest kernel]": in_guest(GUEST_KERNEL, IN_GUEST - 1),
        "[guest user]": in_guest(GUEST_USER, 0x1000, mode="guest"),
        "libx.so+0x10 > run_timers": in_guest(GUEST_KERNEL, IN_GUEST + 0x18, USER, LIB + 0x10),
    }
    for wanted, data in cases.items():
        assert stack(read(data, path=str(tmp_path / "perf.data"))) == wanted
    leaf = recorded(sample_type="IP|TID|TIME|PERIOD").sample(PID, PID, START, IN_GUEST + 0x11, mode="guest_kernel")
    assert stack(read(leaf, path=str(tmp_path / "perf.data"))) == "run_timers"
    assert not issues(read(leaf, path=str(tmp_path / "perf.data")), "guest_names_missing")


def test_a_guest_without_names_is_reported(tmp_path: Path) -> None:
    trace = read(in_guest(GUEST_KERNEL, IN_GUEST), path=str(tmp_path / "perf.data"))
    assert stack(trace) == "[guest kernel]"
    ((_, advice),) = issues(trace, "guest_names_missing")
    assert "guest.kallsyms" in advice


def test_the_file_that_perf_kvm_was_given_names_a_guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(natives.platform, "node", lambda: "vm1")
    monkeypatch.setattr(natives.platform, "release", lambda: "6.1")
    symbols = tmp_path / "copied"
    symbols.write_text(f"{IN_GUEST:x} T idle\n")
    for words in ([f"--guestkallsyms={symbols}"], ["--guestkallsyms", str(symbols)]):
        data = in_guest(GUEST_KERNEL, IN_GUEST).feature(HOSTNAME="vm1", CMDLINE=["perf", "kvm", *words, "record"])
        assert stack(read(data)) == "idle"


def test_the_kernel_of_a_guest_hides_nothing_of_the_host() -> None:
    """perf lists it at the same addresses."""
    data = recorded().mmap2(PID, PID, LIB, LIB_SIZE, 0, "[guest.kernel.kallsyms]_text", ts=START)
    assert stack(read(data.sample(PID, PID, START + 1, LIB + 0x10))) == "libx.so+0x10"


# ---------------------------------------------------------------- files that are gone


def why(path: str, when: float | None = 1e9, build_id: str = "") -> tuple[str, str]:
    times = recorded_files.RecordedTimes(when, when) if when is not None else None
    files = recorded_files.RecordedFiles(traceferry.Report(), (), (), ImportContext().limit, times)
    return files.why_unnamed(path, build_id, None)


def test_what_is_gone_is_not_advised_to_be_taken_from_its_path(tmp_path: Path) -> None:
    """`--sysroot /` would take what is there now."""
    here = tmp_path / "app"
    here.write_bytes(b"new")
    reasons = [why("/x/app (deleted)"), why("/nowhere/app"), why(str(here)), why("/tmp/.mount_appAB/usr/bin/app")]
    reasons.append(why("/dev/shm/gone-names"))
    assert len({reason for reason, _ in reasons}) == 4
    assert not any("--sysroot /" in advice for _, advice in reasons)
    assert "--appimage-extract" in reasons[3][1]
    assert why(str(here), os.stat(here).st_ctime + 1)[0].startswith("it is no ELF file: a runtime's image")
    here.write_bytes(b"\x7fELF")
    assert why(str(here))[1] == recorded_files.IS_WITHOUT_ID
    assert why(str(here), os.stat(here).st_ctime + 1) == ("", "")
    assert why("/nowhere/app", None) == ("", "")
    assert why(str(here), None) == ("", recorded_files.IS_AT_ITS_PATH), "nobody knows which machine was recorded"


@pytest.mark.parametrize("build_id", ["", "ab"])
def test_what_a_program_compiled_into_a_temporary_file_and_deleted_cannot_be_given(build_id: str) -> None:
    """Advice to record its build id, and then to give the file, cannot be followed."""
    gone = ("the file was not found", recorded_files.IS_TEMPORARY)
    assert [why(path, build_id=build_id) for path in ("/tmp/gone/ecl.fas", "/var/tmp/gone.so (deleted)")] == [gone] * 2
    assert why("/tmp/gone/ecl.fas", None, build_id) != gone, "on another machine it may be there"
    assert why("/nowhere/app", build_id="ab") == ("the file was not found", recorded_files.OF_BUILD)


def test_a_deleted_file_is_named_by_a_copy_of_it(tmp_path: Path) -> None:
    """Called as it was; the kernel's words behind its path are not part of its name."""
    from builders import plt

    copy = tmp_path / "libx.so"
    copy.write_bytes(plt.elf(plt.layouts()["x86-64 bfd"], []))
    data = PerfData(start=START).event().mmap2(PID, PID, LIB, LIB_SIZE, 0, "/x/libx.so (deleted)", ts=0)
    data.sample(PID, PID, START, LIB + 0x1824)
    trace = read(data, context=context_with(copy))
    assert [trace.strings[name] for name in trace.libs["name"].tolist()] == ["libx.so (deleted)"]
    assert not issues(trace, "names_missing")
    ((detail, _),) = issues(read(data), "names_missing")
    assert "it was deleted or replaced" in detail


def test_code_of_a_memory_file_has_advice_of_its_own() -> None:
    data = recorded().mmap2(PID, PID, CODE, 4096, 0, "/memfd:tool (deleted)", ts=START)
    ((_, advice),) = issues(read(data.sample(PID, PID, START + 1, CODE)), "code_unrecorded")
    assert "--buildid-mmap" in advice
    assert "--symbols" in advice
    data = recorded().mmap2(PID, PID, CODE, 4096, 0, "//anon", ts=START)
    ((_, advice),) = issues(read(data.sample(PID, PID, START + 1, CODE)), "code_unrecorded")
    assert "--buildid-mmap" not in advice


# ---------------------------------------------------------------- another file at a path

HOUR = 3600
# device and inode of the mapping, device of the file here, seconds from the recording to the file's change; whether the
# program had another file
SEEN = {
    "the same file": ((8, 1), 7, (8, 1), -HOUR, False),
    "another file of the disk": ((8, 1), 9, (8, 1), -HOUR, True),
    "a file of a container": ((0, 46), 7, (8, 1), -HOUR, True),
    "replaced after the recording": ((8, 1), 9, (8, 1), HOUR, False),
    "another disk, which may have another number now": ((8, 17), 9, (8, 1), -HOUR, False),
    "btrfs, of which stat tells another device": ((0, 31), 7, (0, 33), -HOUR, False),
    "no inode": ((0, 0), 0, (8, 1), -HOUR, False),
}
BUILDS = {
    "of the file here, which perf read": ("12" * 20, {}, True),
    "of the container's": ("34" * 20, {}, False),
    "of the mapping": (None, {"build_id": b"\x12" * 20}, False),
}


def another_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, here: tuple[int, int] = (8, 1), changed: int = -HOUR,
    inode_changed: int | None = None, n_links: int = 1,
) -> tuple[PerfData, str]:  # fmt: skip
    """Returns a recording of this machine, and a library's path, whose file has the inode 7. changed, inode_changed:
    seconds from the recording to the last change of the content, and of the inode, which is the same by default."""
    library, now, real = folder / "libx.so", int(time.time()), os.stat
    library.write_bytes(Dwarf().elf([Symbol("f", 0x1000, 16)]))
    monkeypatch.setattr(recorded_files, "build_id_of", lambda data: "12" * 20)

    def stat(path: os.PathLike[str] | str, **options: Any) -> os.stat_result:
        found = real(path, **options)
        times = now, now + changed, now + (changed if inode_changed is None else inode_changed)
        ours = os.stat_result((found.st_mode, 7, os.makedev(*here), n_links, 0, 0, found.st_size, *times))
        return ours if path == str(library) else found

    monkeypatch.setattr(recorded_files.os, "stat", stat)
    data = recorded().feature(HOSTNAME=platform.node(), OSRELEASE=platform.release())
    return data.feature(CLOCK_DATA=(1, now * 10**9, START)), str(library)


# inode of the mapping, how many links the file has, seconds from the recording to the change of the content; whether
# the file names the function, where its inode was changed after the recording
LINKED = {
    "another link to the same file, as of perf's cache": (7, 2, -HOUR, True),
    "another file, with an old time of its content": (9, 2, -HOUR, False),
    "the same file, written since": (7, 2, HOUR, False),
    "the same file, of which only the inode changed": (7, 1, -HOUR, False),
}


@pytest.mark.parametrize(("inode", "n_links", "changed", "is_named"), LINKED.values(), ids=LINKED)
def test_a_link_to_a_file_changes_nothing(
    inode: int, n_links: int, changed: int, is_named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, library = another_file(tmp_path, monkeypatch, changed=changed, inode_changed=HOUR, n_links=n_links)
    trace = trace_with(data, library, device=(8, 1), inode=inode)
    names = {trace.func_name(func) for func in range(len(trace.funcs))}
    assert ("f" in names, not issues(trace, "names_missing")) == (is_named, is_named)


def trace_with(
    data: PerfData, library: str, context: ImportContext | None = None, path: str = "perf.data", **mapping: Any
) -> Trace:
    """Reads the recording with two samples in the library. path: of the recording's file."""
    data.mmap2(PID, PID, LIB, 0x1000, 0x1000, library, ts=0, **mapping)
    data.sample(PID, PID, START, LIB).sample(PID, PID, START + 1, LIB + 8)
    return read(data, context=context, path=path)


def others(trace: Trace) -> list[str]:
    return [detail for detail, _ in issues(trace, "file_is_another")]


@pytest.mark.parametrize(("device", "inode", "here", "changed", "is_another"), SEEN.values(), ids=SEEN)
def test_a_program_that_had_another_file_at_its_path(
    device: tuple[int, int], inode: int, here: tuple[int, int], changed: int, is_another: bool,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    data, library = another_file(tmp_path, monkeypatch, here, changed)
    found = others(trace_with(data, library, device=device, inode=inode))
    assert found == ([library] if is_another else [])


@pytest.mark.parametrize(("listed", "mapping", "is_another"), BUILDS.values(), ids=BUILDS)
def test_perf_takes_build_ids_of_what_is_at_the_path_for_perf(
    listed: str | None, mapping: dict[str, bytes], is_another: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, library = another_file(tmp_path, monkeypatch)
    if listed is not None:
        data.feature(BUILD_ID=[(PID, bytes.fromhex(listed), library)])
    assert others(trace_with(data, library, inode=9, **mapping)) == ([library] if is_another else [])


# The file that was mapped first at a path, and then: inode and generation; its device; whether the loss is told.
BUILT_AGAIN = {
    "another one": ((7, 5), (8, 5), {}, True),
    "another one that got the number of the first": ((7, 5), (7, 6), {}, True),
    "the same": ((7, 5), (7, 5), {}, False),
    "the same, mapped before the recording began": ((7, 0), (7, 6), {}, False),
    "one of a container": ((7, 5), (8, 5), {"device": (0, 50)}, False),
    "another one, each with its build id": ((7, 5), (8, 5), {"build_id": bytes(20)}, False),
}


@pytest.mark.parametrize(("first", "then", "mapping", "is_told"), BUILT_AGAIN.values(), ids=BUILT_AGAIN)
def test_a_program_that_is_built_again_while_it_is_recorded(
    first: tuple[int, int], then: tuple[int, int], mapping: dict[str, Any], is_told: bool
) -> None:
    """The recording itself tells: of another machine, too."""
    data = recorded()
    for nth, (inode, generation) in enumerate((first, then)):
        data.comm(PID + nth, PID + nth, "a.out", ts=START + nth)
        data.mmap2(
            PID + nth, PID + nth, LIB, 0x1000, 0, "/w/a.out", ts=START + nth, inode=inode, generation=generation,
            **mapping,
        )  # fmt: skip
        data.sample(PID + nth, PID + nth, START + nth + 5, LIB)
    assert others(read(data)) == (["/w/a.out"] if is_told else [])


# Hours from the start of a recording of two hours, whose file was written an hour later, to the last change of the
# content and of the inode of another file than was mapped; whether its build id is recorded; whether the loss is told
SINCE_THE_START = {
    "put there while it was recorded": (1, 1, True, True),
    "put there while it was recorded, without a build id": (1, 1, False, True),
    "linked from perf's cache when that ended": (-1, 2.5, True, True),
    "written when nothing happened any more, before perf ended": (2.5, 2.5, True, True),
    "written before the recording was copied, without a build id": (2.5, 2.5, False, False),
    "put there again after all": (-1, 4, True, False),
}


@pytest.mark.parametrize(
    ("changed", "inode_changed", "has_id", "is_another"), SINCE_THE_START.values(), ids=SINCE_THE_START
)
def test_a_file_counts_as_it_was_when_the_recording_ended(
    changed: float, inode_changed: float, has_id: bool, is_another: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The wall-clock time that perf record -k tells is that of the start."""
    hours = int(changed * HOUR), int(inode_changed * HOUR)
    data, library = another_file(tmp_path, monkeypatch, changed=hours[0], inode_changed=hours[1])
    if has_id:
        data.feature(BUILD_ID=[(PID, b"\x12" * 20, library)])
    data.sample(PID, PID, START + 2 * HOUR * 10**9)
    path, written = tmp_path / "perf.data", time.time() + 3 * HOUR
    path.touch()
    os.utime(path, (written, written))
    trace = trace_with(data, library, path=str(path), device=(8, 1), inode=9)
    names = {trace.func_name(func) for func in range(len(trace.funcs))}
    assert (bool(others(trace)), "f" in names) == (is_another, is_another or has_id)


@pytest.mark.parametrize("place", ["sysroot", "symbols"])
def test_the_file_that_the_program_had_can_be_given(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though perf recorded the build id of the other one."""
    data, library = another_file(tmp_path, monkeypatch)
    data.feature(BUILD_ID=[(PID, b"\x12" * 20, library)])
    copy = tmp_path / "copy" / library.lstrip("/")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(Dwarf().elf([Symbol("g", 0x1000, 16)]))
    given = ImportContext(sysroots=[str(tmp_path / "copy")]) if place == "sysroot" else context_with(copy)
    trace = trace_with(data, library, given, inode=9)
    assert stacks(trace) == ["g", "g"]
    assert not others(trace)


def test_functions_of_the_file_that_is_there_are_shown_with_a_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the same build, as below another root of the same distribution."""
    data, library = another_file(tmp_path, monkeypatch)
    trace = trace_with(data, library, inode=9)
    assert stacks(trace) == ["f", "f"]
    assert others(trace) == [library]
    assert not issues(trace, "files_unverified")
