"""The real recordings: where they lie, and which programs they are of.

Small ones are in fixtures/xray; the shared folder has all of them, and what other tools say about them.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import NEITHER, REPO, SHARED
from support import load_checked

from traceferry.model import Trace

ROOTS = [SHARED / "captures" / "xray", REPO / "fixtures" / "xray"]
NO_FILES = NEITHER.format("fixtures/xray")
LARGE = re.compile("l100|small5m")


def _plain(path: Path) -> str:
    return path.name.removesuffix(".zst")


@cache
def _files() -> dict[str, Path]:
    """Name without .zst → where it is; binaries with their folder's number in front. Shared ones win."""
    found: dict[str, Path] = {}
    for root in ROOTS:
        for path in sorted(root.rglob("*")):
            if path.is_file():
                compiler = re.fullmatch(r"(?:bin|clang-)(\d+)", path.parent.name)
                is_binary = compiler and "." not in _plain(path).removesuffix(".so")
                found.setdefault(f"{compiler[1]}/{_plain(path)}" if is_binary and compiler else _plain(path), path)
    return found


def names(pattern: str) -> list[Any]:
    """The recordings or witnesses whose name matches, for `parametrize`; the large ones are marked."""
    chosen = [name for name in _files() if re.fullmatch(pattern, name)]
    if not chosen:
        return [pytest.param("", marks=pytest.mark.skip(reason=NO_FILES))]
    return [pytest.param(n, marks=pytest.mark.large) if LARGE.search(n) else n for n in sorted(chosen)]


def path_of(name: str) -> Path:
    """Skips the test where there is no such file."""
    if name not in _files():
        pytest.skip(f"{name}: {NO_FILES}")
    return _files()[name]


def content(name: str) -> bytes:
    data = path_of(name).read_bytes()
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(data).read()
    return data


def binaries_of(log: str) -> list[Path]:
    """The programs of a log, by its name: [small5m-]fdr-c19-pie-pool[-tsc].xray."""
    if log.startswith("fork-"):
        return [path_of("19/daemon-pie")]
    match = re.search(r"c(\d+)(?:-(pie|nopie))?-([a-z]+)", log)
    assert match, log
    compiler, kind, program = match.groups()
    programs = ["dso_main", "libdso.so"] if program == "dso" else [f"{program}-{kind}"]
    return [path_of(f"{compiler}/{name}") for name in programs]


def loaded(log: str, **options: Any) -> Trace:
    return load_checked(path_of(log), symbols=binaries_of(log), **options)
