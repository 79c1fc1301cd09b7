"""Symbols beside a recording: fixtures show the same names on every machine, also on one without the libraries."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from builders.gsym import Call, GsymFile
from builders.perf_data import KERNEL_MODE, PerfData
from conftest import REPO
from support import load_checked, report_of

from traceferry.files import named_files
from traceferry.importers.perf import kallsyms
from traceferry.libraries import vdso
from traceferry.model import Trace

FIXTURES = REPO / "fixtures" / "jit"
# What has no name, in FIXTURES/NAME/perf.data.zst: samples whose leaf has none, samples with any such frame, and the
# distinct frames. See the README beside them: PHP was stripped, `[unknown]` is where nothing is mapped.
UNNAMED = {"java17": (0, 17, 2), "php82": (278, 718, 127), "wasmtime": (5, 1127, 9)}


def hide_this_machine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Nothing that a recording names can be read but what is in a folder."""
    opened: Callable[..., object] = named_files._checked

    def checked(path: str, *rest: object) -> object:
        if Path(path).resolve().parent != folder.resolve():
            raise FileNotFoundError(path)
        return opened(path, *rest)

    monkeypatch.setattr(named_files, "_checked", checked)
    monkeypatch.setattr(vdso, "own_vdso", lambda: b"")
    monkeypatch.setattr(kallsyms, "KALLSYMS", folder / "kallsyms")


def functions_of(trace: Trace) -> Counter[str]:
    """How many stacks end in each function."""
    funcs = trace.frames["func"][trace.stacks["frame"]]
    return Counter(trace.strings[name] for name in trace.funcs["name"][funcs].tolist())


@pytest.mark.parametrize("name", UNNAMED)
def test_a_fixture_has_the_same_names_on_a_machine_without_its_libraries(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recording = FIXTURES / name / "perf.data.zst"
    # Who records with the same build has it in perf's cache.
    monkeypatch.setenv("HOME", str(tmp_path))
    here = functions_of(load_checked(recording))
    hide_this_machine(monkeypatch, recording.parent)
    assert functions_of(load_checked(recording)) == here


@pytest.mark.parametrize("name", UNNAMED)
def test_how_many_samples_of_a_fixture_have_a_frame_without_a_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(REPO / "benchmarks")
    import names

    recording = FIXTURES / name / "perf.data.zst"
    counts = names.hidden_counts_of(recording)
    assert (counts["leaf"], counts["any"], counts["frames"]) == UNNAMED[name]
    for module in ("names", "common"):
        sys.modules.pop(module, None)


def test_every_recording_with_samples_among_the_fixtures_is_counted() -> None:
    assert {path.parent.name for path in FIXTURES.glob("*/perf.data*")} == set(UNNAMED)


# ---------------------------------------------------------------- symbols beside any recording

BUILD_ID, OTHER_ID = bytes(range(20)), bytes(range(1, 21))
LIB, KERNEL = 0x40_0000, 0xFFFF_FFFF_8100_0000


def symbols(build_id: bytes, base: int = 0) -> bytes:
    """At base + 0x100 a function with another inlined."""
    file = GsymFile(base=base, uuid=build_id)
    inlined = Call("inlined", [(base + 0x108, base + 0x110)])
    file.function("work", base + 0x100, 0x40, lines=[(base + 0x100, "a.c", 7)], inlines=[inlined])
    return file.bytes()


def recording(folder: Path, build_id: bytes | None) -> Trace:
    """One sample in a library, which is on no machine, and in the kernel, each with this build id."""
    data = PerfData().event().comm(7, 7, "app", ts=0)
    data.mmap2(7, 7, LIB, 0x10000, 0, "/nowhere/libx.so", build_id=build_id, ts=0)
    data.mmap(-1, 0, KERNEL, 0x1000000, KERNEL, "[kernel.kallsyms]_text", misc=KERNEL_MODE, ts=0)
    if build_id is not None:
        data.feature(BUILD_ID=[(-1, build_id, "[kernel.kallsyms]", KERNEL_MODE)])
    data.sample(7, 7, 5, LIB + 0x120).sample(7, 7, 6, KERNEL + 0x109, mode="kernel")
    (folder / "perf.data").write_bytes(data.bytes())
    return load_checked(folder / "perf.data")


@pytest.mark.parametrize("base", [0, 0x4000])
def test_a_file_beside_the_recording_names_the_library_of_its_build(tmp_path: Path, base: int) -> None:
    (tmp_path / "libx.so.gsym").write_bytes(symbols(BUILD_ID, base))
    trace = recording(tmp_path, BUILD_ID)
    assert set(functions_of(trace)) == {"work", "[kernel.kallsyms]+0x109"}
    used = trace.report.places("symbols_used")
    assert [Path(place).name for place in used] == ["libx.so.gsym"]


def test_a_file_of_another_build_names_nothing_and_the_report_has_both_ids(tmp_path: Path) -> None:
    (tmp_path / "libx.so.gsym").write_bytes(symbols(OTHER_ID))
    trace = recording(tmp_path, BUILD_ID)
    assert "libx.so+0x120" in functions_of(trace)
    (said,) = [entry for entry in trace.report if entry.kind == "build_id_differs"]
    assert BUILD_ID.hex() in said.detail
    assert OTHER_ID.hex() in said.detail


def test_without_a_recorded_build_id_the_name_tells_and_the_report_says_so(tmp_path: Path) -> None:
    (tmp_path / "libx.so.gsym").write_bytes(symbols(OTHER_ID))
    (tmp_path / "[kernel.kallsyms].gsym").write_bytes(symbols(OTHER_ID))
    trace = recording(tmp_path, None)
    assert set(functions_of(trace)) == {"work", "[kernel.kallsyms]+0x109"}
    assert report_of(trace)["files_unverified"] == 1


@pytest.mark.parametrize("base", [0, KERNEL])
def test_a_file_beside_the_recording_names_the_recorded_kernel(tmp_path: Path, base: int) -> None:
    (tmp_path / "[kernel.kallsyms].gsym").write_bytes(symbols(BUILD_ID, base))
    trace = recording(tmp_path, BUILD_ID)
    # Inlined functions of the kernel are not shown.
    assert set(functions_of(trace)) == {"libx.so+0x120", "work"}
    (tmp_path / "[kernel.kallsyms].gsym").write_bytes(symbols(OTHER_ID, base))
    assert "[kernel.kallsyms]+0x109" in functions_of(recording(tmp_path, BUILD_ID))


@pytest.mark.parametrize("bytes_beside", [b"", b"MYSG", b"GSYM" + bytes(40), symbols(BUILD_ID)[:60]])
def test_what_is_no_gsym_file_is_as_none(tmp_path: Path, bytes_beside: bytes) -> None:
    (tmp_path / "libx.so.gsym").write_bytes(bytes_beside)
    assert "libx.so+0x120" in functions_of(recording(tmp_path, BUILD_ID))
