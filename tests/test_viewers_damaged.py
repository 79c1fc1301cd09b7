"""Others' profiles, cut and with bytes changed: a valid trace, or an error that says where."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import NO_SHARED, SHARED, or_skipped

import traceferry
from traceferry.common.errors import FormatError
from traceferry.files.source import open_source
from traceferry.model.laws import check

VIEWERS = SHARED / "captures" / "viewers"
KINDS = ("firefox", "firefox-ladder", "gecko", "collapsed", "cpuprofile", "heapprofile", "pprof", "speedscope")
ALL = os.environ.get("TRACEFERRY_CUTS") == "all"
# Of each file; `make large` tries all, in most of an hour.
N_CUTS, N_CHANGES = (200, 2000) if ALL else (3, 5)
# Bytes; what is larger takes seconds each time.
LARGEST = 10_000_000 if ALL else 1_500_000


def files() -> Iterator[Path]:
    for kind in KINDS:
        folder = VIEWERS / kind
        yield from sorted(folder.iterdir()) if folder.is_dir() else ()


def damaged(data: bytes, seed: str) -> Iterator[tuple[str, bytes]]:
    """Yields (what is wrong, the bytes), the same in every run. Every other changed byte has one bit changed."""
    chosen = random.Random(seed)
    for _ in range(N_CUTS):
        at = chosen.randrange(len(data))
        yield f"cut at {at}", data[:at]
    for nth in range(N_CHANGES):
        at = chosen.randrange(len(data))
        new = data[at] ^ (1 << chosen.randrange(8) if nth % 2 else chosen.randrange(1, 256))
        yield f"byte {at} is {new:#04x}", data[:at] + bytes([new]) + data[at + 1 :]


@pytest.mark.parametrize("path", or_skipped(pytest.param(p, id=f"{p.parent.name}/{p.name}") for p in files()))
def test_files_of_others_cut_anywhere(path: Path, tmp_path: Path) -> None:
    data = bytes(open_source(str(path)).data)
    if len(data) > LARGEST:
        pytest.skip(f"larger than {LARGEST} bytes: make large tries it")
    target = tmp_path / path.name.removesuffix(".gz")
    for what, content in damaged(data, path.name):
        target.write_bytes(content)
        assert outcome(target, len(content)) == [], what


def outcome(path: Path, size: int) -> list[str]:
    """What is wrong with the trace, or with the error."""
    try:
        return check(traceferry.load(path))
    except FormatError as error:
        return [] if error.offset is not None and 0 <= error.offset <= size else [f"offset {error.offset}: {error}"]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def test_there_are_files_where_there_are_shared_recordings() -> None:
    if not VIEWERS.exists():
        pytest.skip(f"captures/viewers: {NO_SHARED}")
    assert [*files()]
