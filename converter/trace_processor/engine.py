"""Finds trace_processor_shell, and says which version it is."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later

VARIABLE = "TRACEFERRY_TRACE_PROCESSOR"
PROGRAM = "trace_processor_shell"
OLDEST = 58
VERSION = compiled_later(r"Perfetto v(\d+)\.(\d+)")
ANSWERS_WITHIN_S = 20.0
HELP = (
    f"give --trace-processor PATH, set {VARIABLE}, put {PROGRAM} into PATH, or let --download fetch the build that the "
    "package perfetto names (pip install 'traceferry[perfetto]')"
)


class Engine(NamedTuple):
    """path: of the program; version: as v58.2; found: how, for people."""

    path: str
    version: str
    found: str


def find_engine(path: str | None = None, download: bool = False) -> Engine:
    """Returns the engine: from `path`, the environment, the cache of the package perfetto, or PATH; with `download`
    only, the package downloads and verifies its build. Raises UsageError where there is none, or one that is too
    old."""
    for candidate, found in _candidates(path):
        return _checked(candidate, found)
    if download:
        return _checked(_downloaded(), "downloaded by the package perfetto")
    raise UsageError(f"{PROGRAM}, which reads Perfetto traces and SQL, was not found: {HELP}")


def _candidates(path: str | None) -> Iterator[tuple[str, str]]:
    if path:
        yield path, "--trace-processor"
    if named := os.environ.get(VARIABLE):
        yield named, VARIABLE
    if cached := _cached():
        yield cached, "cache of the package perfetto"
    if on_path := shutil.which(PROGRAM):
        yield on_path, "PATH"


def _checked(path: str, found: str) -> Engine:
    try:
        done = subprocess.run(
            [path, "--version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWERS_WITHIN_S,
            check=False,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or str(error)
        if getattr(error, "errno", 0) == errno.ENOEXEC:
            why += " (incomplete, or built for another machine)"
        raise UsageError(f"{path} ({found}): cannot be run: {why}") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{path} ({found}): does not tell its version within {ANSWERS_WITHIN_S:.0f} s") from None
    match = VERSION.search(done.stdout)
    if match is None:
        raise UsageError(f"{path} ({found}): not {PROGRAM}: --version names no version of Perfetto")
    if int(match[1]) < OLDEST:
        raise UsageError(f"{path} ({found}): {match[0]} is too old: v{OLDEST} or newer is needed")
    return Engine(path, f"v{match[1]}.{match[2]}", found)


def _prebuilt() -> dict[str, Any] | None:
    """Returns what the package perfetto says of its build for this machine."""
    try:
        from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST
    except ImportError:
        return None
    import platform

    system, machine = sys.platform.lower(), platform.machine().lower()
    fits = (one for one in TRACE_PROCESSOR_SHELL_MANIFEST if one["platform"] == system and machine in one["machine"])
    return next(fits, None)


def _cached() -> str | None:
    prebuilt = _prebuilt()
    if prebuilt is None:
        return None
    root, suffix = os.path.splitext(prebuilt["file_name"])
    folder = Path.home() / ".local" / "share" / "perfetto" / "prebuilts"
    path = folder / f"{root}-{prebuilt['sha256'][:16]}{suffix}"
    return str(path) if path.is_file() else None


def _downloaded() -> str:
    prebuilt = _prebuilt()
    if prebuilt is None:
        raise UsageError(
            "--download needs the package perfetto, and a build for this machine: pip install 'traceferry[perfetto]'"
        )
    from perfetto.prebuilts.perfetto_prebuilts import download_or_get_cached

    try:
        with redirect_stdout(sys.stderr):  # on which the package tells what it does
            return str(download_or_get_cached(prebuilt["file_name"], prebuilt["url"], prebuilt["sha256"]))
    except Exception as error:  # whatever the package raises without a network, or for a file that is not the right one
        raise UsageError(f"{prebuilt['url']}: cannot be downloaded: {error}") from None
