"""Which files of symbols there are: those of folders, buckets and single URLs, by build id and by name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from traceferry.apps.fleet import storage
from traceferry.common.errors import FormatError, UsageError
from traceferry.files.decompress import decompress, is_compressed
from traceferry.files.source import Source, open_source
from traceferry.symbolication.build_id import Bytes, build_id_of
from traceferry.symbolication.choose import (
    BREAKPAD_MAGIC,
    ELF_MAGIC,
    GSYM_MAGICS,
    LONGEST_MAGIC,
    SymbolIndex,
)

# What the build ids of a listing are read by: a change of this code makes a new index.
INDEX_VERSION = 1
# How many files are asked for their build id at once, and what of each is read first.
AT_ONCE = 16
HEAD_SIZE = 1 << 12
# Of a compressed file, how much is read and how much it may become: a build id stands near the beginning.
COMPRESSED_HEAD, HEAD_OF_COMPRESSED = 1 << 16, 1 << 20
NOT_THERE = (FileNotFoundError, PermissionError, NotADirectoryError)


class SymbolFile(NamedTuple):
    """A file of symbols. identity: what changes with its content; build_id: in hex, "" is unknown; name: without
    folders and without the suffix of a compression."""

    path: str
    size: int
    identity: str
    is_elf: bool
    build_id: str
    name: str

    @property
    def key(self) -> str:
        """The name that its symbols are kept under: the build id; without one, a hash of what identifies the
        content."""
        identified = json.dumps([self.path, self.size, self.identity]).encode()
        return self.build_id or f"content-{hashlib.sha256(identified).hexdigest()[:40]}"


class Listed(NamedTuple):
    """A file of a place."""

    url: str
    size: int
    identity: str


def listed(places: Sequence[str]) -> list[Listed]:
    """The files of the places, a folder's with those in the folders below it, by their names. Raises FileNotFoundError
    for a place that is not there."""
    found: list[Listed] = []
    for place in places:
        fs, path = storage.filesystem_of(place)
        about = storage.info(place)
        # Over HTTP everything is a file.
        if about["type"] == "file" and not place.endswith("/"):
            found.append(Listed(place, int(about["size"] or 0), storage.identity_of(about)))
            continue
        root = path.rstrip("/")
        for each, info in storage.files_of(fs, path):
            if info["type"] == "file" and info.get("size"):
                url = storage.joined(place, each.removeprefix(root).lstrip("/"))
                found.append(Listed(url, int(info["size"]), storage.identity_of(info)))
    return found


def symbol_index(places: Sequence[str], cache: str) -> tuple[SymbolIndex[SymbolFile], str]:
    """Returns (the files of symbols of the places, those that were made of binaries before binaries; what changes when
    one of the files does).

    They are kept in the cache under a hash of their listing: of a listing that another worker saw, no file is opened.
    Raises OSError if storage fails.
    """
    there = listed(places)
    text = json.dumps([INDEX_VERSION, there]).encode()
    identity = hashlib.sha256(text).hexdigest()
    url = storage.joined(cache, f"index/{identity}.json")
    try:
        known = [SymbolFile(*row) for row in json.loads(storage.read(url))]
    except (*NOT_THERE, ValueError, TypeError):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            known = [file for file in pool.map(identified, there) if file is not None]
        try:
            storage.write(url, json.dumps(known).encode())
        except Exception as error:
            if not is_of_storage(error):
                raise
    return SymbolIndex(sorted(known, key=lambda file: file.is_elf)), identity


def is_of_storage(error: Exception) -> bool:
    """Whether a file could not be read or written, for whatever reason."""
    return isinstance(error, OSError) or storage.is_transient(error)


# ---------------------------------------------------------------- one file


def identified(file: Listed) -> SymbolFile | None:
    """None: it holds no symbols. Of a file elsewhere only what is needed to know is read. Raises OSError."""
    if not file.size:
        return None
    data = RemoteBytes(file.url, file.size)
    try:
        if not is_compressed(data[:4]):
            return _described(file, data)
        begin = bytearray()
        decompress(data[:COMPRESSED_HEAD], begin, HEAD_OF_COMPRESSED)
        if not begin.startswith(GSYM_MAGICS):
            return _described(file, memoryview(begin))
        with TemporaryDirectory(prefix="traceferry-", ignore_cleanup_errors=True) as folder:
            return _described(file, here(file.url, file.size, Path(folder)).data)
    except FormatError:
        return None


def _described(file: Listed, data: Bytes) -> SymbolFile | None:
    magic, name = bytes(data[:LONGEST_MAGIC]), Source(storage.name_of(file.url), memoryview(b"")).name
    if magic.startswith(ELF_MAGIC):
        build_id = build_id_of(data)
    elif magic.startswith(GSYM_MAGICS):
        from traceferry.symbolication.gsym.tables import uuid_of

        build_id = uuid_of(data).hex()
    elif magic.startswith(BREAKPAD_MAGIC):
        from traceferry.symbolication.breakpad.reader import Breakpad

        build_id = Breakpad(Source(name, memoryview(data[:HEAD_SIZE]))).build_id
    else:
        return None
    return SymbolFile(file.url, file.size, file.identity, magic.startswith(ELF_MAGIC), build_id, name)


class RemoteBytes:
    """The bytes of a file elsewhere, of which parts are fetched as they are asked for, its head once. Raises OSError
    where they cannot be fetched."""

    def __init__(self, url: str, size: int) -> None:
        self._fs, self._path = storage.filesystem_of(url)
        self._size = size
        self._head = self._read(0, min(HEAD_SIZE, size))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, part: slice, /) -> bytes:
        begin, end, _ = part.indices(self._size)
        return self._head[begin:end] if end <= len(self._head) else self._read(begin, end)

    def _read(self, begin: int, end: int) -> bytes:
        if begin >= end:
            return b""
        data: bytes = storage.retrying(lambda: self._fs.cat_file(self._path, start=begin, end=end))
        if len(data) != end - begin:
            raise OSError(f"{len(data)} bytes came where {end - begin} are, at {begin}: the file was changed")
        return data


def here(url: str, size: int, folder: Path) -> Source:
    """The file, decompressed; of a file elsewhere a copy in the folder. Raises FormatError, OSError."""
    path = storage.brought(url, folder, size)
    try:
        return open_source(str(path))
    except UsageError as error:
        raise OSError(str(error)) from None
