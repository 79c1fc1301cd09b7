"""Files in any storage that fsspec reaches: read, and written so that no reader ever sees a part of one.

A URL is a path of this machine or what fsspec takes: s3://bucket/name, memory://name, zip://name::s3://bucket/file.zip.
"""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from traceferry.common.errors import UsageError

ATTEMPTS = 8
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
# Asking again does not help: the file is not there, or the user must not read it.
FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)
# Answers of HTTP: the request is at fault; though not if it came too slowly, too early or too often.
CLIENT_ERRORS = range(400, 500)
PASSING_ANSWERS = frozenset({408, 425, 429})
# Errors of the network that are no OSError, by the package that raises them.
NETWORK_PACKAGES = ("aiohttp", "aiobotocore", "botocore", "urllib3", "requests", "gcsfs", "google", "azure")
# Stores in which a file appears once all of it is there.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "memory"})

Result = TypeVar("Result")
Info = Mapping[str, Any]


class ShortReadError(OSError):
    """A connection ended before the whole file had come."""


def retrying(action: Callable[[], Result], attempts: int = ATTEMPTS) -> Result:
    """The result; an error of storage or network is tried again after a pause, which grows."""
    for attempt in range(attempts):
        try:
            return action()
        except Exception as error:
            if attempt == attempts - 1 or not is_transient(error):
                raise
            time.sleep(min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S) * random.uniform(0.5, 1))
    raise AssertionError("unreachable")


def is_transient(error: Exception) -> bool:
    """Whether trying again may help."""
    if isinstance(error, FINAL) or is_refused(error):
        return False
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in NETWORK_PACKAGES


def is_refused(error: Exception) -> bool:
    """Whether the user may not do what was asked for, or the server does not do it."""
    answer = getattr(error, "status", None)
    of_http = isinstance(answer, int) and answer in CLIENT_ERRORS and answer not in PASSING_ANSWERS
    return of_http or isinstance(error, PermissionError)


def filesystem_of(url: str) -> tuple[Any, str]:
    """Returns fsspec's file system, and the path in it. Raises UsageError for a store that is not known, or of which
    the package is missing."""
    from fsspec.core import url_to_fs

    try:
        found: tuple[Any, str] = url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise UsageError(f"{url}: {error}") from None
    return found


@contextmanager
def asked(url: str) -> Iterator[None]:
    """Raises UsageError for what a store answers instead of what is asked for."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not is_transient(error):
            raise
        raise UsageError(f"{url}: {error}") from None


def is_local(url: str) -> bool:
    return "://" not in url and "::" not in url


def joined(folder: str, name: str) -> str:
    """The URL of a file in a folder. A chained URL gets the name in its first part."""
    first, chain, rest = folder.partition("::")
    return f"{first if first.endswith('://') else first.rstrip('/') + '/'}{name}{chain}{rest}"


def folder_of(url: str) -> str:
    """The URL of the folder in which a file is; of a chained one's first part."""
    first, chain, rest = url.partition("::")
    scheme, mark, path = first.rpartition("://")
    return f"{scheme}{mark}{path.rpartition('/')[0]}{chain}{rest}"


def name_of(url: str) -> str:
    """Returns the name of a file as a copy of it on this machine can have it: without a question, which may be longer
    than names can be, and never the name of a folder."""
    first = url.partition("::")[0]
    path = first.partition("?")[0] if first.startswith(("http://", "https://")) else first
    name = path.replace(os.sep, "/").rpartition("/")[2]
    return "recording" if name in ("", ".", "..") else name.replace(":", "_") if os.name == "nt" else name


def protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def is_of_this_machine(fs: Any) -> bool:
    return "file" in protocols(fs)


def absolute(url: str) -> str:
    """Returns the URL as a worker of another working folder must have it."""
    return str(filesystem_of(url)[1]) if is_local(url) else url


def info(url: str) -> Info:
    """Returns what is known of a file or folder; of a link, that to which it leads. Raises FileNotFoundError."""
    fs, path = filesystem_of(url)
    if is_of_this_machine(fs):
        return _info_here(path, os.path.realpath(path))
    found: Info = retrying(lambda: fs.info(path))
    return found


def _info_here(path: str, real: str) -> Info:
    """real: the path without links."""
    status = os.stat(path)
    kind = "directory" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
    return {"name": path, "type": kind, "size": status.st_size, "mtime": status.st_mtime_ns, "real": real}


def identity_of(found: Info) -> str:
    """Returns a text that changes when the content does: the ETag, or a checksum, else size and time."""
    for key in ("ETag", "etag", "md5Hash", "content_md5", "crc32c", "CRC"):
        if found.get(key):
            return f"{key.lower()}:{found[key]}".replace('"', "")
    modified = next((found[key] for key in ("mtime", "LastModified", "last_modified", "updated", "mtime_ns")
                     if found.get(key) is not None), "")  # fmt: skip
    return f"time:{modified}:{found.get('size')}"


def read(url: str) -> bytes:
    """Raises FileNotFoundError."""
    fs, path = filesystem_of(url)
    data: bytes = retrying(lambda: fs.cat_file(path))
    return data


def fetch(url: str, target: Path, size: int | None = None) -> None:
    """Copies a file to this machine. size: what it must have. Raises FileNotFoundError."""
    fs, path = filesystem_of(url)

    def copy() -> None:
        fs.get_file(path, str(target))
        # Some libraries take the end of a connection for the end of the file.
        if size is not None and target.stat().st_size != size:
            raise ShortReadError(f"{url}: {target.stat().st_size} of {size} bytes came")

    try:
        retrying(copy)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def brought(url: str, folder: Path, size: int | None = None) -> Path:
    """Returns a file on this machine: itself, or a copy in the folder."""
    if is_local(url):
        return Path(url)
    target = folder / name_of(url)
    fetch(url, target, size)
    return target


def write(url: str, data: bytes) -> None:
    """The file appears, or is replaced, once all of it is there."""
    _make(url, lambda fs, path: fs.pipe_file(path, data))


def put(source: Path, url: str) -> None:
    """Writes as `write` does, from a file of this machine, which may then be gone."""
    _make(url, lambda fs, path: (fs.mv if is_of_this_machine(fs) else fs.put_file)(str(source), path))


def _make(url: str, write_to: Callable[[Any, str], object]) -> None:
    """write_to: gets the file system, and the path to which the content is written first."""
    fs, path = filesystem_of(url)
    if OBJECT_STORES & set(protocols(fs)):
        retrying(lambda: write_to(fs, path))
        return
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name[:40]}.{os.urandom(4).hex()}.part"
    move, attempts = (os.replace, 1) if is_of_this_machine(fs) else (fs.mv, ATTEMPTS)
    with suppress(NotImplementedError, FileExistsError):
        fs.makedirs(folder, exist_ok=True)
    try:
        retrying(lambda: write_to(fs, temporary), attempts)
        retrying(lambda: move(temporary, path), attempts)
    except BaseException:
        with suppress(Exception):
            fs.rm(temporary)
        raise


def remove(url: str) -> None:
    """A file or a folder with all that is in it; nothing happens if it is not there."""
    fs, path = filesystem_of(url)

    def delete() -> None:
        with suppress(FileNotFoundError):
            fs.rm(path, recursive=True)

    retrying(delete)
    fs.invalidate_cache()


def names_in(url: str) -> list[str]:
    """The names of the files directly in a folder, sorted; [] where there is none."""
    fs, path = filesystem_of(url)
    fs.invalidate_cache()

    def listed() -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = fs.ls(path, detail=True)
            return found
        except (FileNotFoundError, NotADirectoryError):
            return []

    return sorted(entry["name"].rpartition("/")[2] for entry in retrying(listed) if entry["type"] == "file")


def identities(url: str) -> list[str]:
    """Returns texts that change when a file, or one in a folder or below, does; [] where there is none."""
    fs, path = filesystem_of(url)
    if not retrying(lambda: fs.exists(path)):
        return []
    if not retrying(lambda: fs.isdir(path)):
        return [identity_of(info(url))]
    return [f"{name.removeprefix(path)} {identity_of(about)}" for name, about in files_of(fs, path)]


def files_of(fs: Any, folder: str, depth: int | None = None) -> Iterator[tuple[str, Info]]:
    """Yields (path, information) of all files in a folder and so many levels of folders, or all, sorted. Links are
    followed, but not into a folder that they are in; one that leads nowhere has the type "missing". A folder that is
    not there has none. Raises what a store answers that refuses to list one."""
    if is_of_this_machine(fs):
        yield from sorted(_files_here(folder, os.path.realpath(folder), depth, frozenset()))
        return
    # By default, fsspec leaves out folders of which the list cannot be had.
    options = {} if depth is None else {"maxdepth": depth, "on_error": "raise"}
    try:
        found: dict[str, Info] = retrying(lambda: fs.find(folder, detail=True, **options))
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from sorted(found.items())


def _files_here(folder: str, real: str, depth: int | None, above: frozenset[str]) -> Iterator[tuple[str, Info]]:
    """real: the folder without links; above: those in which it is. One that must not be read has no files."""
    if depth == 0 or real in above:
        return
    above |= {real}
    try:
        entries = list(os.scandir(folder))
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = f"{folder.rstrip('/')}/{entry.name}"
        own = os.path.realpath(path) if entry.is_symlink() else os.path.join(real, entry.name)
        try:
            if entry.is_dir():
                yield from _files_here(path, own, None if depth is None else depth - 1, above)
            else:
                yield path, _info_here(path, own)
        except OSError:  # a link that leads nowhere, or to itself
            yield path, {"name": path, "type": "missing", "size": None, "real": own}
