"""Which recordings there are: files, folders, patterns with labels, manifests."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from traceferry.errors import UsageError
from traceferry.fleet import storage
from traceferry.fleet.storage import Info

LABEL = re.compile(r"\{(\w+)\}")
# One part of a pattern: a label, or what stands for any text.
PART = re.compile(r"\{(?P<label>\w+)\}|(?P<deep>\*\*/?)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[[^]]+\])")
MAGIC = re.compile(r"[*?\[{]")
# By their names these belong to a recording in the same folder, where there is one: the code of JIT compilers.
COMPANION = re.compile(r"(jit-\d+\.dump|perf-\d+\.map)(\.gz|\.zst)?")
# Of a recording that is a folder.
FOLDER_MAIN = "data"
FOLDER_PART = re.compile(r"data\.\d+")
# Of a manifest; its other columns are labels.
RECORDING_COLUMN = "recording"


@dataclass(frozen=True, slots=True)
class Recording:
    """urls: its files, of which the first names it; labels: in the order of `Found.labels`; size: in bytes, -1 is
    unknown; identity: what changes when the content of any file does; path: its place below the fixed part of what the
    user named, without a leading slash."""

    urls: tuple[str, ...]
    labels: tuple[str, ...]
    size: int
    identity: str
    path: str


@dataclass(frozen=True)
class Found:
    """labels: their names, sorted; recordings: by labels, then by name."""

    labels: tuple[str, ...]
    recordings: tuple[Recording, ...]


def find(patterns: Sequence[str], manifest: str | None = None) -> Found:
    """The recordings of patterns, files and folders, and those that a manifest lists.

    A pattern is a path or URL in which * stands for any text without a slash, ** for folders, and {name} for any text
    without a slash, which becomes the label. Raises UsageError where one matches nothing, or labels do not fit.
    """
    found: dict[tuple[str, ...], tuple[dict[str, str], list[Info | None], str]] = {}
    names: dict[str, tuple[str, ...]] = {}
    for pattern in patterns:
        names[pattern] = tuple(sorted(set(LABEL.findall(pattern))))
        before = len(found)
        for urls, labels, infos, path in _matches(pattern):
            found.setdefault(urls, (labels, infos, path))
        if len(found) == before:
            raise UsageError(f"{pattern}: no file has such a name")
    if manifest is not None:
        label_names, rows = _listed(manifest)
        names[manifest] = label_names
        found.update((urls, (labels, infos, path)) for urls, labels, infos, path in rows)
    distinct = set(names.values())
    if len(distinct) > 1:
        texts = ", ".join(f"{given}: {' '.join(of) or 'none'}" for given, of in names.items())
        raise UsageError(f"the inputs have different labels: {texts}")
    of_all = distinct.pop() if distinct else ()
    recordings = [
        _recording(urls, tuple(labels[name] for name in of_all), infos, path)
        for urls, (labels, infos, path) in found.items()
    ]
    return Found(of_all, tuple(sorted(recordings, key=lambda r: (r.labels, r.urls))))


def _recording(urls: tuple[str, ...], labels: tuple[str, ...], infos: Sequence[Info | None], path: str) -> Recording:
    known = [info for info in infos if info is not None]
    size = sum(int(info.get("size") or 0) for info in known) if len(known) == len(urls) else -1
    identity = " ".join("missing" if info is None else storage.identity_of(info) for info in infos)
    return Recording(urls, labels, size, identity, path)


# ---------------------------------------------------------------- patterns

Match = tuple[tuple[str, ...], dict[str, str], list[Info | None], str]


def _matches(pattern: str) -> Iterator[Match]:
    """(urls, labels, information, path below the pattern's fixed part) of each recording."""
    fs, path = storage.filesystem_of(LABEL.sub("*", pattern))
    if not MAGIC.search(pattern):
        return (yield from _named(pattern, fs, path))
    _, of_pattern = storage.filesystem_of(pattern)
    regex = re.compile(_expression(of_pattern))
    fixed = of_pattern[: MAGIC.search(of_pattern).start()].rpartition("/")[0]  # type: ignore[union-attr]
    globbed: dict[str, Info] = storage.retrying(lambda: fs.glob(path, detail=True))
    files = {name: info for name, info in sorted(globbed.items()) if info["type"] == "file"}
    for paths in _grouped(files):
        match, below = regex.fullmatch(paths[0]), paths[0].removeprefix(fixed).lstrip("/")
        if match is not None and ("/." in of_pattern or not _is_hidden(below)):
            yield _urls(pattern, fs, paths), match.groupdict(), [files[each] for each in paths], below


def _named(given: str, fs: Any, path: str) -> Iterator[Match]:
    """A file, or all in a folder."""
    try:
        info: Info = storage.retrying(lambda: fs.info(path))
    except FileNotFoundError:
        raise UsageError(f"{given}: no such file or folder") from None
    if info["type"] != "directory":
        yield _urls(given, fs, [path]), {}, [info], path.rpartition("/")[2]
        return
    files = {name: info for name, info in storage.files_of(fs, path) if not _is_hidden(name.removeprefix(path))}
    for paths in _grouped(files):
        below = paths[0].removeprefix(path).lstrip("/")
        yield _urls(given, fs, paths), {}, [files[each] for each in paths], below


def _is_hidden(below: str) -> bool:
    """Also what a run keeps beside its results."""
    return any(part.startswith((".", "_")) for part in below.split("/") if part)


def _grouped(files: dict[str, Info]) -> Iterator[list[str]]:
    """The files of each recording, from those in the same folder."""
    folders: dict[str, list[str]] = {}
    for path in files:
        folders.setdefault(path.rpartition("/")[0], []).append(path)
    for paths in folders.values():
        names = {path: path.rpartition("/")[2] for path in paths}
        parts = [path for path in paths if FOLDER_PART.fullmatch(names[path])]
        main = [path for path in paths if names[path] == FOLDER_MAIN]
        if main and parts:
            yield [*main, *sorted(parts, key=lambda path: (len(path), path))]
            paths = [path for path in paths if path not in parts and path not in main]
        alone = [path for path in paths if not COMPANION.fullmatch(names[path])]
        yield from ([path] for path in (alone if alone or (main and parts) else paths))


def _urls(given: str, fs: Any, paths: Iterable[str]) -> tuple[str, ...]:
    if storage.is_local(given) or given.startswith(("file://", "local://")):
        return tuple(paths)
    first, chain, rest = given.partition("::")
    protocol = first.partition("://")[0] if "://" in first else storage.protocols(fs)[0]
    return tuple(f"{path if '://' in path else f'{protocol}://{path}'}{chain}{rest}" for path in paths)


def _expression(pattern: str) -> str:
    """The regular expression of a pattern with labels."""
    out, at, seen = [], 0, set()
    for part in PART.finditer(pattern):
        out.append(re.escape(pattern[at : part.start()]))
        at = part.end()
        label = part["label"]
        if label and label in seen:
            out.append(f"(?P={label})")
        elif label:
            seen.add(label)
            out.append(f"(?P<{label}>[^/]+)")
        elif part["deep"]:
            out.append("(?:.*/)?" if part["deep"].endswith("/") else ".*")
        else:
            out.append({"star": "[^/]*", "one": "[^/]", "set": part["set"]}[str(part.lastgroup)])
    return "".join(out) + re.escape(pattern[at:])


# ---------------------------------------------------------------- manifests


def _listed(manifest: str) -> tuple[tuple[str, ...], list[Match]]:
    """(names of the labels, the recordings) of a table with a column `recording`: a path or URL, or a list of those of
    one recording. Paths are relative to the manifest's folder."""
    rows = _rows_of(manifest)
    if not rows:
        raise UsageError(f"{manifest}: lists no recordings")
    if RECORDING_COLUMN not in rows[0]:
        raise UsageError(f"{manifest}: no column {RECORDING_COLUMN!r}; columns: {', '.join(rows[0])}")
    labels = tuple(sorted({name for row in rows for name in row} - {RECORDING_COLUMN}))
    folder = storage.folder_of(manifest)
    matches: list[Match] = []
    known = _Listings()
    for nth, row in enumerate(rows):
        given = row[RECORDING_COLUMN]
        names = [given] if isinstance(given, str) else given
        if not names or not all(isinstance(name, str) and name for name in names):
            raise UsageError(f"{manifest}: row {nth + 1} has no {RECORDING_COLUMN}")
        urls = tuple(_absolute(name, folder) for name in names)
        values = {name: "" if row.get(name) is None else str(row[name]) for name in labels}
        matches.append((urls, values, [known.info(url) for url in urls], names[0].rpartition("://")[2].lstrip("/")))
    return labels, matches


def _absolute(name: str, folder: str) -> str:
    if "://" in name or name.startswith("/") or not folder:
        return name if not storage.is_local(name) else storage.filesystem_of(name)[1]
    url = storage.joined(folder, name)
    return storage.filesystem_of(url)[1] if storage.is_local(url) else url


def _rows_of(manifest: str) -> list[dict[str, Any]]:
    import pyarrow
    from pyarrow import json, parquet

    try:
        data = storage.read(manifest)
        if manifest.endswith(".csv"):
            return _rows_of_csv(manifest, data)
        source = pyarrow.BufferReader(data)
        if manifest.endswith((".jsonl", ".ndjson", ".json")):
            table = json.read_json(source, json.ReadOptions(use_threads=False))
        elif manifest.endswith(".parquet"):
            table = parquet.ParquetFile(source, pre_buffer=False).read(use_threads=False)
        else:
            raise UsageError(f"{manifest}: a manifest ends with .parquet, .csv or .jsonl")
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise UsageError(f"{manifest}: cannot be read: {error}") from None
    rows: list[dict[str, Any]] = table.to_pylist()
    return [{name: _as_name(value) for name, value in row.items()} for row in rows]


def _rows_of_csv(manifest: str, data: bytes) -> list[dict[str, Any]]:
    """Returns the rows with all values as text: a label 007 is not the number 7."""
    text = io.StringIO(data.decode("utf-8-sig", "surrogateescape"), newline="")
    try:
        rows = list(csv.DictReader(text, strict=True))
    except csv.Error as error:
        raise UsageError(f"{manifest}: cannot be read: {error}") from None
    too_long = next((nth for nth, row in enumerate(rows) if None in row), None)
    if too_long is not None:
        raise UsageError(f"{manifest}: row {too_long + 1} has more values than there are columns")
    return rows


def _as_name(value: Any) -> Any:
    """Returns a value of a binary column as the name that it is."""
    if isinstance(value, list):
        return [_as_name(each) for each in value]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


class _Listings:
    """What is known of files; a folder is listed once, which is one question instead of one for each file."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, Info]] = {}

    def info(self, url: str) -> Info | None:
        """None if the file is not there."""
        fs, path = storage.filesystem_of(url)
        folder = path.rpartition("/")[0]
        key = f"{storage.protocols(fs)[0]}:{url.partition('::')[2]}:{folder}"
        if key not in self._folders:
            try:
                entries = storage.retrying(lambda: fs.ls(folder, detail=True))
            except (FileNotFoundError, NotADirectoryError, NotImplementedError):
                entries = []
            self._folders[key] = {entry["name"].rpartition("/")[2]: entry for entry in entries}
        found = self._folders[key].get(path.rpartition("/")[2])
        if found is not None:
            return found
        try:
            return storage.info(url)
        except (FileNotFoundError, PermissionError):
            return None
