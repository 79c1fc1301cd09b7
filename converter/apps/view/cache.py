"""The folder that a running `view` keeps its files in. It goes when the process ends; what a killed one has left goes
when the next one starts.

Folders are made and removed in a folder that belongs to this user and to this program alone: in any other, such as the
system's for temporary files, a name tells nothing about whose a folder is.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# In each folder, before anything else is; its process holds a lock on it.
LOCK = "lock"
PREFIX = "run-"
# A folder is lost to a process that takes it for abandoned, in the moment before it is locked.
TRIES = 100
OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@contextmanager
def cache_folder() -> Iterator[Path]:
    """Makes an empty folder that only this user can read, and removes it at the end. Raises OSError if none can be
    made."""
    folder, lock = _new_folder()
    try:
        with lock:
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _new_folder() -> tuple[Path, BinaryIO]:
    """Returns a folder, and its lock, which this process holds."""
    for parent in _parents():
        with suppress(OSError):
            _remove_abandoned(parent)
            return _locked_folder(parent)
    # No folder of our own: what is there is left alone.
    return _locked_folder(Path(tempfile.gettempdir()), "traceferry-")


def _locked_folder(parent: Path, prefix: str = PREFIX) -> tuple[Path, BinaryIO]:
    for _ in range(TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):  # removed as abandoned
            lock = open(folder / LOCK, "xb")  # noqa: SIM115 - for the caller to close
            if _take(lock) and _is_at(folder / LOCK, lock):
                return folder, lock
            lock.close()
    raise FileNotFoundError(f"{parent}: new folders in it vanish")


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether the open file is still the one of that name."""
    return os.path.samestat(os.stat(path), os.fstat(file.fileno()))


# ---------------------------------------------------------------- where


def _parents() -> Iterator[Path]:
    """Yields folders of this user that nobody else can write to: as the system wants it, or among temporary files."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(base):
        with suppress(OSError):
            os.makedirs(base, mode=0o700, exist_ok=True)
            yield _own(_own(_safe(Path(base)) / "traceferry") / "view")
    with suppress(OSError):
        yield _own(_safe(Path(tempfile.gettempdir())) / f"traceferry-{_user()}")


def _safe(path: Path) -> Path:
    """Returns the folder if other users cannot move what is this user's in it. Raises PermissionError if they can."""
    found = os.stat(path)
    if sys.platform != "win32" and (
        found.st_uid not in (0, os.geteuid()) or (found.st_mode & OTHERS_MAY_WRITE and not found.st_mode & stat.S_ISVTX)
    ):
        raise PermissionError(f"{path}: others may move what is in it")
    return path


def _own(path: Path) -> Path:
    """Makes the folder if it is not there, and returns it; nobody else can write to it from now on. Raises
    PermissionError if it is a link, or somebody else's."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    if sys.platform != "win32":
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(f"{path}: not a folder of this user")
        if found.st_mode & OTHERS_MAY_WRITE:
            path.chmod(stat.S_IMODE(found.st_mode) & ~OTHERS_MAY_WRITE)
    return path


def _user() -> str:
    return str(os.geteuid()) if sys.platform != "win32" else os.environ.get("USERNAME", "")


# ---------------------------------------------------------------- what others have left


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            try:
                with open(folder / LOCK, "rb+") as lock:
                    if _take(lock):
                        shutil.rmtree(folder, ignore_errors=True)
            except FileNotFoundError:
                _remove_without_lock(folder)


def _remove_without_lock(folder: Path) -> None:
    """Removes a folder in which there is no lock. That comes first, and goes at any time while a folder is removed:
    without it nothing lives, but in an empty folder, whose process makes another one."""
    try:
        folder.rmdir()
    except OSError:
        if not (folder / LOCK).exists():
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
