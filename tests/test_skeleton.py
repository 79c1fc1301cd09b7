"""Skeletons of ELF files: what maps and unwinding read of them is what they read of the file."""

import glob
import random
import shutil
import subprocess
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from builders.cfi import EhFrame, advance, def_cfa_offset
from conftest import SHARED
from test_perf_map import PROGRAM
from test_unwind_captures import unpacked

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.libraries import LibraryFile
from traceferry.unwinding._cfi import RuleSets
from traceferry.unwinding.functions import function_ranges
from traceferry.unwinding.machine import X86_64
from traceferry.unwinding.modules import Module, Rows, Section, open_module
from traceferry.unwinding.pruned import pruned
from traceferry.unwinding.skeleton import Skeleton, skeleton_of

ROOT = SHARED / "captures/unwind/root"


def opened(data: bytes) -> Binary:
    return Binary(Source("tiny", memoryview(data)))


def module_of(binary: Binary, debug: Binary | None = None) -> object:
    try:
        module = open_module(binary, debug)
    except FormatError as error:
        return error.message
    sections = [
        (bytes(section.data), section.address, section.is_debug) for section in module.sections if len(section.data)
    ]
    return sections, [getattr(module, name) for name in Module._fields if name != "sections"]


def read_of(binary: Binary) -> object:
    loaded = [segment for segment in binary.segments if segment.type == "PT_LOAD"]
    places = [binary.relative(offset) for offset in range(0, 1 << 16, 777)]
    return binary.base, loaded, places, binary.arch, binary.build_id, binary.is_executable, module_of(binary)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc here to make a program")
    folder = tmp_path_factory.mktemp("skeleton")
    (folder / "tiny.c").write_text(PROGRAM)
    options = ["-g", "-O2", "-no-pie", "-Wl,-Ttext-segment=0x7000000", "-Wl,--build-id=sha1"]
    subprocess.run([compiler, *options, "tiny.c", "-o", "tiny"], check=True, cwd=folder)
    frames = ["-fno-asynchronous-unwind-tables", "-g", "-Wl,--build-id=sha1"]
    subprocess.run([compiler, *frames, "tiny.c", "-o", "debugframe"], check=True, cwd=folder)
    return folder


def test_a_program_and_its_debug_file(program: Path) -> None:
    for name in ("tiny", "debugframe"):
        data = (program / name).read_bytes()
        skeleton = skeleton_of(opened(data))
        assert len(skeleton) < len(data) // 2
        assert read_of(Skeleton(Source("tiny", memoryview(skeleton)))) == read_of(opened(data))
        assert Skeleton(Source("tiny", memoryview(skeleton))).code(0, 16) == b""


@pytest.mark.skipif(not ROOT.is_dir(), reason="no recorded binaries here")
def test_real_binaries() -> None:
    """Of x86-64, i386 and AArch64."""
    names = [
        "usr/lib/x86_64-linux-gnu/libc.so.6.zst",
        "usr/lib32/libc.so.6.zst",
        "usr/aarch64-linux-gnu/lib/libc.so.6.zst",
    ]
    for name in names:
        data = unpacked(ROOT / name)
        skeleton = skeleton_of(Binary(Source("tiny", memoryview(data))))
        assert read_of(opened(skeleton)) == read_of(opened(data))


def test_damaged_files_have_the_same_or_none(program: Path) -> None:
    data, rng = (program / "tiny").read_bytes(), random.Random(1)
    n_sections = 40 * 64
    damaged = [data[: rng.randrange(len(data))] for _ in range(60)]
    for _ in range(300):
        changed = bytearray(data)
        at = rng.choice((rng.randrange(64 + 13 * 56), len(data) - 1 - rng.randrange(n_sections)))
        changed[at] = rng.choice((0, 1, 0x7F, 0xFF))
        damaged.append(bytes(changed))
    n_same = 0
    for each in damaged:
        try:
            skeleton = skeleton_of(opened(each))
        except FormatError:
            continue
        assert read_of(opened(skeleton)) == read_of(opened(each))
        n_same += 1
    assert n_same > 150


# ---------------------------------------------------------------- call-frame information that is used


def libraries() -> list[Path]:
    found = [Path(path) for path in glob.glob("/usr/lib/*/libc.so.6") + glob.glob("/usr/lib/*/libstdc++.so.6")]
    return [*found, *sorted(ROOT.rglob("libc.so.6.zst"))][:5] if ROOT.is_dir() else found


def test_rows_at_used_addresses_are_those_of_the_whole() -> None:
    """Of real libraries: at these addresses, and what holds there begins where it began."""
    rng = random.Random(29)
    for path in libraries():
        data = unpacked(path) if path.suffix == ".zst" else path.read_bytes()
        whole = open_module(opened(data))
        sets = RuleSets()
        rows, _ = whole.rows(sets)
        for n_used in (0, 1, 7, 400):
            used = np.array(sorted(rng.choices(rows.pc.tolist(), k=n_used)), np.uint64)
            used += np.array([rng.randrange(-2, 40) for _ in range(n_used)], np.int64).astype(np.uint64)
            skeleton = skeleton_of(opened(data), used=used)
            pruned = open_module(opened(skeleton))
            few, problems = pruned.rows(sets)
            assert len(few.pc) < len(rows.pc) // 2
            assert rule_at(few, used).tolist() == rule_at(rows, used).tolist()
            assert not any(one.n_bad or one.is_cut for one in problems)
            extents = [LibraryFile(None, one, partial(function_ranges, one)) for one in map(opened, (data, skeleton))]
            found = [[column.tolist() for column in one.extents(used - np.uint64(one.binary.base))] for one in extents]
            assert found[0] == found[1]
            assert len(zlib.compress(skeleton)) < len(zlib.compress(skeleton_of(opened(data)))) // 2


def test_records_that_limit_each_other() -> None:
    """FDEs that overlap and that follow on each other, two CIEs, markers of an end, a damaged section."""
    frame = EhFrame()
    for start, size, augmentation in (
        (0x1000, 0x100, b"zR"), (0x1040, 0x10, b"zRS"), (0x1080, 0x80, b"zR"), (0x1100, 0x10, b"zR"),
    ):  # fmt: skip
        frame.fde(start, size, advance(4) + def_cfa_offset(16 + start % 0x100), augmentation)
        frame.data += bytes(4)
    whole, data = module_with(frame.data), memoryview(bytes(frame.data))
    sets = RuleSets()
    rows, _ = whole.rows(sets)
    for address in range(0xFF0, 0x1140):
        used = np.array([address], np.uint64)
        few, _ = module_with(pruned(whole.frames_of(whole.sections[0]), data, False, used)).rows(sets)
        assert rule_at(few, used).tolist() == rule_at(rows, used).tolist()
        assert len(few.pc) < len(rows.pc)
    bad = bytes(frame.fde(0x2000, 16, b"\x3f").data)
    assert pruned(module_with(bad).frames_of(module_with(bad).sections[0]), memoryview(bad), False, used) == bad


def module_with(data: bytes | bytearray) -> Module:
    return Module("app", X86_64, False, (Section(memoryview(bytes(data)), EhFrame().address),))


def rule_at(rows: Rows, addresses: np.ndarray) -> np.ndarray:
    at = np.searchsorted(rows.pc, addresses, "right") - 1
    return np.where(at >= 0, np.append(rows.rule, np.int32(-1))[at], -1)
