"""The folder that a running `view` keeps its files in. It goes when the process ends; what a killed one has left goes
when the next one starts."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# In each folder; its process holds a lock on it.
LOCK = "lock"
PREFIX = "run-"


@contextmanager
def cache_folder() -> Iterator[Path]:
    """A new empty folder that only this user can read, removed at the end."""
    parent = _parent()
    _remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    try:
        with open(folder / LOCK, "wb") as lock:
            _take(lock)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parent() -> Path:
    """As the system wants it, or among temporary files where that cannot be written."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(base):
        folder = Path(base) / "traceferry" / "view"
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    return Path(tempfile.gettempdir())


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError), open(folder / LOCK, "rb+") as lock:
            if _take(lock):
                shutil.rmtree(folder, ignore_errors=True)


def _take(lock: BinaryIO) -> bool:
    """Whether the lock is this process's now. The system takes it back when the process ends, however it does."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
