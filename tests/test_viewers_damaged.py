"""Others' profiles, cut and with bytes changed: a valid trace, or an error that says where."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SHARED

import traceferry
from traceferry.common.errors import FormatError
from traceferry.files.source import open_source
from traceferry.model import Trace
from traceferry.model.laws import check

VIEWERS = SHARED / "captures" / "viewers"
KINDS = ("firefox", "firefox-ladder", "gecko", "collapsed", "cpuprofile", "heapprofile", "pprof", "speedscope")
LARGEST = 1_500_000  # bytes; what is larger takes seconds each time
ALL = os.environ.get("TRACEFERRY_CUTS") == "all"
N_CUTS, N_FLIPS = (200, 2000) if ALL else (8, 24)


def files() -> Iterator[Path]:
    for kind in KINDS:
        folder = VIEWERS / kind
        yield from sorted(folder.iterdir()) if folder.is_dir() else ()


def damaged(data: bytes, seed: str) -> Iterator[bytes]:
    """The same ones in every run."""
    chosen = random.Random(seed)
    for _ in range(N_CUTS):
        yield data[: chosen.randrange(len(data))]
    for _ in range(N_FLIPS):
        at = chosen.randrange(len(data))
        yield data[:at] + bytes([data[at] ^ 1 << chosen.randrange(8)]) + data[at + 1 :]


@pytest.mark.parametrize("path", [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in files()])
def test_damaged_files_of_others(path: Path, tmp_path: Path) -> None:
    data = bytes(open_source(str(path)).data)
    if len(data) > LARGEST and not ALL:
        pytest.skip(f"larger than {LARGEST} bytes: make large tries it")
    target = tmp_path / path.name.removesuffix(".gz")
    for content in damaged(data, path.name):
        target.write_bytes(content)
        found = outcome(target)
        if isinstance(found, FormatError):
            assert found.offset is None or 0 <= found.offset <= len(content)
        else:
            assert check(found) == []


def outcome(path: Path) -> Trace | FormatError:
    try:
        return traceferry.load(path)
    except FormatError as error:
        return error


def test_there_are_files_where_there_are_shared_recordings() -> None:
    if not VIEWERS.exists():
        pytest.skip(f"{VIEWERS.name} is absent")
    assert [*files()]
