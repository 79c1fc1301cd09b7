"""The debug information of stripped files is found where distributions and linkers put it."""

from __future__ import annotations

import itertools
import lzma
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from builders import plt

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.source import Source, open_source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.debug_files import DebugFiles
from traceferry.symbolication.debug_links import alt_link, debug_link, mini_debug_info
from traceferry.symbolication.elf import ElfSymbols

BUILD_ID = bytes(range(0xA0, 0xB4))
OTHER_ID = bytes(20)
LAYOUT = plt.layouts()["x86-64 bfd"]
WORK = plt.Symbol("work", 0x1820, 8, ".text")
HIDDEN = plt.Symbol("hidden", 0x1828, 8, ".text")


def note(build_id: bytes) -> bytes:
    return struct.pack("<III4s", 4, len(build_id), 3, b"GNU\0") + build_id


def elf(*symbols: plt.Symbol, build_id: bytes = b"", more: Mapping[str, bytes] | None = None) -> bytes:
    notes = {".note.gnu.build-id": note(build_id)} if build_id else {}
    return plt.elf(LAYOUT, symbols, {**notes, **(more or {})})


def link_to(name: str, content: bytes) -> dict[str, bytes]:
    text = name.encode() + b"\0"
    return {".gnu_debuglink": text + bytes(-len(text) % 4) + struct.pack("<I", zlib.crc32(content))}


def binary_of(data: bytes, path: str = "/opt/app/libx.so") -> Binary:
    return Binary(Source(path, memoryview(data)))


PLACES = {
    "by build id": ("usr/lib/debug/.build-id/a0/a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3.debug", True),
    "beside it": ("opt/app/libx.debug", True),
    "in .debug": ("opt/app/.debug/libx.debug", True),
    "by path": ("usr/lib/debug/opt/app/libx.debug", True),
    "of another name": ("opt/app/other.debug", False),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("by", ["build id", "CRC", "another build", "another CRC"])
def test_where_a_debug_file_is_searched(tmp_path: Path, place: str, by: str) -> None:
    path, is_looked_at = PLACES[place]
    of_build = {"build id": BUILD_ID, "another build": OTHER_ID}.get(by, b"")
    debug = elf(WORK, HIDDEN, build_id=of_build)
    own_id = BUILD_ID if "build" in by else b""
    stripped = elf(build_id=own_id, more=link_to("libx.debug", debug if by != "another CRC" else b"else"))
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_bytes(debug)
    report = Report()
    files = DebugFiles(report, [str(tmp_path)])
    found = files.debug_file(binary_of(stripped), "/opt/app/libx.so", "libx.so")
    is_refused = is_looked_at and by in ("another build", "another CRC") and not (own_id == b"" and "build" in place)
    assert files.of_another_build(binary_of(stripped)) == (str(tmp_path / path) if is_refused else "")
    is_right = by == "build id" or (by == "CRC" and place != "by build id")
    assert (found is not None) == (is_looked_at and is_right)
    if found is not None:
        frames = ElfSymbols(found).lookup(np.array([0x1829], np.uint64))
        assert [frames.texts[nth] for nth in frames.name.tolist()] == ["hidden"]


def test_a_file_is_not_its_own_debug_file(tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(elf(build_id=BUILD_ID, more={".gnu_debuglink": b"libx.so\0" + bytes(4)}))
    binary = Binary(open_source(str(path)))
    assert DebugFiles(Report()).debug_file(binary, str(path), "libx.so") is None


def test_a_folder_of_symbols_with_build_ids(tmp_path: Path) -> None:
    path = tmp_path / ".build-id" / "a0" / "a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3.debug"
    path.parent.mkdir(parents=True)
    path.write_bytes(elf(WORK, build_id=BUILD_ID))
    files = DebugFiles(Report(), folders=[str(tmp_path)])
    found = files.debug_file(binary_of(elf(build_id=BUILD_ID)), "/opt/app/libx.so", "libx.so")
    assert found is not None
    assert found.path == str(path)


IN_CACHE = {
    "its debug file, as perf record --debuginfod keeps it": ("debug", True, True),
    "the program with its symbols, as perf buildid-cache --add takes it": ("elf", True, True),
    "a copy of the stripped one, as perf record makes it": ("elf", False, False),
}


@pytest.mark.parametrize(("name", "has_symbols", "is_found"), IN_CACHE.values(), ids=IN_CACHE)
def test_perfs_cache_names_a_stripped_binary(
    tmp_path: Path, name: str, has_symbols: bool, is_found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".debug" / ".build-id" / "a0" / "a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(elf(WORK, build_id=BUILD_ID) if has_symbols else elf(build_id=BUILD_ID))
    stripped = binary_of(elf(build_id=BUILD_ID))
    found = DebugFiles(Report()).debug_file(stripped, "/opt/app/libx.so", "libx.so")
    assert (found is not None and found.path == str(path)) == is_found


def test_what_dwz_shares_is_told_where_it_is_missing() -> None:
    """No .dwp has it."""
    report = Report()
    debug = binary_of(elf(build_id=OTHER_ID, more={".gnu_debugaltlink": b"x/common.debug\0" + BUILD_ID}))
    assert DebugFiles(report).alternative(debug) is None
    (issue,) = report
    assert (issue.kind, "common.debug" in issue.advice, "dwp" in issue.advice) == ("debug_files_missing", True, False)


@pytest.mark.parametrize("is_absolute", [False, True])
def test_what_dwz_shares_is_found(tmp_path: Path, is_absolute: bool) -> None:
    shared = tmp_path / "usr" / "lib" / "debug" / ".dwz" / "common.debug"
    shared.parent.mkdir(parents=True)
    shared.write_bytes(elf(WORK, build_id=BUILD_ID))
    path = "/usr/lib/debug/.dwz/common.debug" if is_absolute else "../.dwz/common.debug"
    beside = tmp_path / "usr" / "lib" / "debug" / "app"
    beside.mkdir()
    (beside / "x.debug").write_bytes(
        elf(build_id=OTHER_ID, more={".gnu_debugaltlink": path.encode() + b"\0" + BUILD_ID})
    )
    debug = Binary(open_source(str(beside / "x.debug")))
    found = DebugFiles(Report(), [str(tmp_path)]).alternative(debug)
    assert found is not None
    assert found.build_id == BUILD_ID.hex()


@pytest.mark.parametrize("section", ["", "x", "\0", "a/b\0\0\0\0\0\0\0\0\0", "libx.debug\0", "libx.debug\0\0\0\0\0"])
def test_damaged_links(section: str) -> None:
    more = {".gnu_debuglink": section.encode(), ".gnu_debugaltlink": section.replace("\0", "").encode() + b"\0"}
    assert debug_link(binary_of(elf(more=more))) is None
    assert alt_link(binary_of(elf(more=more))) is None


# ---------------------------------------------------------------- MiniDebugInfo


def names_at(data: bytes, *addresses: int) -> tuple[list[str], list[str]]:
    """Returns (the names of addresses, "" where there is none; what is reported as damaged)."""
    symbols = ElfSymbols(binary_of(data))
    found = symbols.lookup(np.array(addresses, np.uint64))
    first = found.first.tolist()
    names = [found.texts[found.name[begin]] if begin < end else "" for begin, end in itertools.pairwise(first)]
    return names, [what for _, what in symbols.problems]


def test_mini_debug_info_names_what_the_dynamic_symbols_do_not() -> None:
    packed = lzma.compress(elf(WORK, HIDDEN))
    assert names_at(elf(more={".gnu_debugdata": packed}), 0x1824, 0x182F, 0x1830) == (["work", "hidden", ""], [])
    # A table of its own goes before.
    assert names_at(elf(WORK, more={".gnu_debugdata": packed}), 0x1824, 0x182F) == (["work", ""], [])


DAMAGED = {
    "not xz": (b"no xz stream", "Input format not supported by decoder"),
    "cut": (lzma.compress(elf(WORK))[:-20], "it ends inside its compressed data"),
    "not ELF": (lzma.compress(b"no ELF"), "not a readable ELF file: Magic number does not match"),
    "too large": (lzma.compress(bytes(8 << 20)), "it holds more than 4194304 bytes"),
    "dictionary": (
        lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30, "preset": 0}]),
        "Memory usage limit exceeded",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_mini_debug_info_is_reported_and_does_without(case: str) -> None:
    packed, wanted = DAMAGED[case]
    data = elf(more={".gnu_debugdata": packed})
    with pytest.raises(FormatError):
        mini_debug_info(binary_of(data))
    names, problems = names_at(data, 0x1824)
    assert names == [""]
    assert len(problems) == 1
    assert wanted in problems[0]


def test_every_cut_of_mini_debug_info() -> None:
    packed = lzma.compress(elf(WORK))
    for size in range(0, len(packed), 7):
        names, problems = names_at(elf(more={".gnu_debugdata": packed[:size]}), 0x1824)
        assert names == [""]
        assert len(problems) == min(size, 1)
