"""Skeletons of ELF files: what maps and unwinding read of them is what they read of the file."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import SHARED
from test_perf_map import PROGRAM
from test_unwind_captures import unpacked

from traceferry.common.errors import FormatError
from traceferry.files.source import Source
from traceferry.symbolication.binary import Binary
from traceferry.unwinding.modules import Module, open_module
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
    return sections, [getattr(module, name) for name in Module.__dataclass_fields__ if name != "sections"]


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
    for _ in range(600):
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
    assert n_same > 300
