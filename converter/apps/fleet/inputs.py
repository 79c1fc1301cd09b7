"""Which recordings there are: files, folders, patterns with labels, manifests."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from traceferry.apps.fleet import storage
from traceferry.apps.fleet.storage import Info
from traceferry.apps.fleet.tables import COLUMNS
from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later
from traceferry.files.decompress import COMPRESSED_SUFFIXES, without_compression
from traceferry.files.known_files import is_program
from traceferry.registry import EXPORTERS, IMPORTERS

LABEL = compiled_later(r"\{(\w+)\}")
# One part of a pattern: a label, or what stands for any text.
PART = compiled_later(r"\{(?P<label>\w+)\}|(?P<deep>\*\*/?)|(?P<star>\*)|(?P<one>\?)|(?P<set>\[[^]]+\])")
MAGIC = compiled_later(r"[*?\[{]")
ANYTHING = compiled_later(".*", re.DOTALL)
# By their names these belong to a recording in the same folder, where there is one: the code of JIT compilers.
COMPANION = compiled_later(rf"(jit-\d+\.dump|perf-\d+\.map)({'|'.join(map(re.escape, COMPRESSED_SUFFIXES))})?")
# Of a recording that is a folder.
FOLDER_MAIN = "data"
FOLDER_PART = compiled_later(r"data\.\d+")
# Of a manifest; its other columns are labels.
RECORDING_COLUMN = "recording"


# What is written beside recordings, and is none: tables of a data set, and what `convert` makes.
TABLE_FILE = compiled_later(rf"(?:.*/)?(?:{'|'.join(COLUMNS)})/part-\d+\.parquet")
LONGEST_NAME = 200
# What is no program, by its name.
RECORDED = tuple(suffix for importer in IMPORTERS for suffix in importer.suffixes)
CONVERTED = tuple(suffix + more for exporter in EXPORTERS for suffix in exporter.suffixes for more in ("", ".gz"))


@dataclass(frozen=True, slots=True)
class Recording:
    """urls: its files, of which the first names it; labels: in the order of `Found.labels`; size: in bytes, -1 is
    unknown; identity: what changes when the content of any file does, or of one beside it that belongs to it; path: its
    place below the fixed part of what the user named, without a leading slash and without ..; file: equal for all
    names of one recording, "" is the first URL."""

    urls: tuple[str, ...]
    labels: tuple[str, ...]
    size: int
    identity: str
    path: str
    file: str = ""

    @property
    def key(self) -> str:
        return self.file or self.urls[0]


@dataclass(frozen=True)
class Found:
    """labels: their names, sorted; recordings: by labels, then by name, one for each of its labels; notes: what was
    found and left out, as sentences."""

    labels: tuple[str, ...]
    recordings: tuple[Recording, ...]
    notes: tuple[str, ...] = ()


class Match(NamedTuple):
    """A recording that an input names. infos: of each URL, None is unknown; below: its place below the fixed part."""

    urls: tuple[str, ...]
    labels: dict[str, str]
    infos: Sequence[Info | None]
    below: str


def find(patterns: Sequence[str], manifest: str | None = None) -> Found:
    """Returns the recordings of patterns, files and folders, and those that a manifest lists.

    A pattern is a path or URL in which * stands for any text without a slash, ** for folders, and {name} for any text
    without a slash, which becomes the label. A recording that several inputs or links lead to is there once for each
    of its labels. Raises UsageError where an input has no recording, or labels do not fit.
    """
    listings = _Listings()
    matches: list[Match] = []
    names: dict[str, tuple[str, ...]] = {}
    for pattern in patterns:
        names[pattern] = () if _is_there(pattern) else tuple(sorted(set(LABEL.findall(pattern))))
        with storage.asked(pattern):
            of_pattern = list(_matches(pattern, listings))
        if not of_pattern:
            raise UsageError(f"{pattern}: no recording has such a name{_left_out(pattern)}")
        matches += of_pattern
    if manifest is not None:
        with storage.asked(manifest):
            names[manifest], rows = _listed(manifest, listings)
        matches += rows
    distinct = set(names.values())
    if len(distinct) > 1:
        texts = ", ".join(f"{given}: {' '.join(of) or 'none'}" for given, of in names.items())
        raise UsageError(f"the inputs have different labels: {texts}")
    of_all = distinct.pop() if distinct else ()
    found: dict[tuple[str, tuple[str, ...]], Recording] = {}
    notes = []
    for match in matches:
        recording = _recording(match, of_all, listings)
        known = found.setdefault((recording.key, recording.labels), recording)
        if known.urls != recording.urls:
            # The name that is no link.
            kept, left = sorted((known, recording), key=lambda each: (each.urls[0] != each.key, each.urls))
            found[recording.key, recording.labels] = kept
            notes.append(f"{left.urls[0]}: the same file as {kept.urls[0]}, which is taken once")
    notes += [f"{url}: may not be listed; files beside its recordings are not seen" for url in listings.refused]
    notes += [f"{path}: a program or library, which names the functions of a recording" for path in listings.programs]
    if listings.converted:
        n_more = len(listings.converted) - 1
        more = f", and {n_more:,} more like it" if n_more else ""
        notes.append(f"left out: {_by_suffix(min(listings.converted))}{more}")
    recordings = sorted(found.values(), key=lambda each: (each.labels, each.urls))
    return Found(of_all, tuple(recordings), tuple(sorted(notes)))


def _recording(match: Match, labels: Sequence[str], listings: _Listings) -> Recording:
    known = [info for info in match.infos if info is not None and info["type"] != "missing"]
    size = sum(int(info.get("size") or 0) for info in known) if len(known) == len(match.urls) else -1
    identities = [
        "missing" if info is None or info["type"] == "missing" else storage.identity_of(info) for info in match.infos
    ]
    beside = listings.beside(match.urls)
    return Recording(
        match.urls, tuple(match.labels[name] for name in labels), size,
        " ".join([*identities, *([beside] if beside else [])]), _inside(match.below),
        str((match.infos[0] or {}).get("real", "")),
    )  # fmt: skip


def _inside(path: str) -> str:
    """Returns the path with .. resolved, which never leads out of the folder where it is put; "..." stays."""
    parts: list[str] = []
    for part in (path.replace(os.sep, "/") if os.sep != "/" else path).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            # The question of a signed URL is longer than a name can be.
            short = part if len(os.fsencode(part)) <= LONGEST_NAME else part.partition("?")[0]
            parts.append(short.replace(":", "_") if os.name == "nt" else short)
    return "/".join(parts)


# ---------------------------------------------------------------- patterns


def _left_out(folder: str) -> str:
    """Returns how the files of a folder are named that are not taken because this program writes such, "" without
    any."""
    names = sorted(os.listdir(folder)) if storage.is_local(folder) and os.path.isdir(folder) else []
    first = next((name for name in names if _converted_suffix(name)), None)
    return f"; {_by_suffix(os.path.join(folder, first))}" if first else ""


def _by_suffix(path: str) -> str:
    """Returns what to do with a file that this program may have written."""
    folder, _, name = path.rpartition("/")
    pattern = shlex.quote(f"{folder}/*{_converted_suffix(name)}")
    return f"{name} may be what convert wrote: name such files by their suffix, {pattern}"


def _converted_suffix(name: str) -> str:
    """Returns the suffix with which this program writes such a file; "" of others, also of recordings whose suffix ends
    with one of those."""
    suffix = max((suffix for suffix in CONVERTED if name.endswith(suffix)), key=len, default="")
    is_recorded = any(len(one) > len(suffix) for one in RECORDED if without_compression(name).endswith(one))
    return "" if is_recorded else suffix


def _is_there(pattern: str) -> bool:
    """Whether a file has the characters of a pattern in its name."""
    return storage.is_local(pattern) and os.path.lexists(storage.filesystem_of(pattern)[1])


def _matches(pattern: str, listings: _Listings) -> Iterator[Match]:
    if storage.is_local(pattern):
        # Neither two slashes nor a dot between them change what is meant.
        pattern = re.sub(r"/(?:\.?/)+", "/", pattern)
    fs, path = storage.filesystem_of(pattern)
    magic = MAGIC.search(path)
    if magic is None or _is_there(pattern):
        info = _info_of_input(pattern)
        if info["type"] != "directory":
            yield Match(_urls(pattern, fs, [path]), {}, [info], path.rpartition("/")[2])
            return
        fixed = path.rstrip("/")
        regex, folder, depth, asked, with_hidden = ANYTHING, fixed or "/", None, "", False
    else:
        fixed = path[: magic.start()].rpartition("/")[0]
        regex, folder, asked, with_hidden = re.compile(_expression(path)), f"{fixed}/", path, "/." in path
        depth = None if "**" in path else path[len(fixed) :].lstrip("/").count("/") + 1
        # A recording that is a folder has its files one level below.
        if depth is not None and storage.is_of_this_machine(fs):
            depth += 1
    files = listings.of_folders(fs, storage.files_of(fs, folder, depth))
    found: dict[str, re.Match[str]] = {}
    for each in files:
        holder, _, name = each.rpartition("/")
        is_part = name == FOLDER_MAIN or FOLDER_PART.fullmatch(name)
        match = regex.fullmatch(each) or (regex.fullmatch(holder) if is_part else None)
        below = each.removeprefix(fixed).lstrip("/")
        if match is None or (_is_hidden(below) and not with_hidden):
            continue
        if _is_meant(each, asked):
            found[each] = match
        elif not TABLE_FILE.fullmatch(each):
            listings.converted.add(each)
    if magic is None and storage.is_of_this_machine(fs):
        # As they lie beside recordings that are named after them.
        programs = {each for each in found if _is_program(each)}
        listings.programs |= programs
        found = {each: match for each, match in found.items() if each not in programs}
    for paths in _grouped(found):
        below = paths[0].removeprefix(fixed).lstrip("/")
        yield Match(_urls(pattern, fs, paths), found[paths[0]].groupdict(), [files[each] for each in paths], below)


def _is_program(path: str) -> bool:
    if path.endswith(RECORDED):
        return False
    try:
        with open(path, "rb") as file:
            return is_program(file.read(4))
    except OSError:
        return False


def _info_of_input(given: str) -> Info:
    """Returns what is known of a file or folder. Raises UsageError if it is neither."""
    try:
        info = storage.info(given)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{given}: no such file or folder") from None
    if info["type"] == "other":
        raise UsageError(f"{given}: not a regular file")
    return info


def _is_meant(path: str, pattern: str) -> bool:
    """Whether a file may be a recording: what this program wrote is not, unless its suffix is asked for."""
    if TABLE_FILE.fullmatch(path):
        return pattern.endswith(".parquet")
    return not _converted_suffix(path) or pattern.endswith(tuple(s for s in CONVERTED if path.endswith(s)))


def _is_hidden(below: str) -> bool:
    """Also what a run keeps beside its results."""
    return any(part.startswith((".", "_")) for part in below.split("/") if part)


def _grouped(files: Iterable[str]) -> Iterator[list[str]]:
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


def _listed(manifest: str, known: _Listings) -> tuple[tuple[str, ...], list[Match]]:
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
    for nth, row in enumerate(rows):
        given = row[RECORDING_COLUMN]
        names = [given] if isinstance(given, str) else given
        if not names or not all(isinstance(name, str) and name for name in names):
            raise UsageError(f"{manifest}: row {nth + 1} has no {RECORDING_COLUMN}")
        urls = tuple(_absolute(name, folder) for name in names)
        if len(urls) == 1:
            urls = _with_parts(urls[0], known)
        values = {name: "" if row.get(name) is None else str(row[name]) for name in labels}
        below = names[0].partition("::")[0].rpartition("://")[2]
        matches.append(Match(urls, values, [known.info(url) for url in urls], below))
    return labels, matches


def _with_parts(url: str, known: _Listings) -> tuple[str, ...]:
    """Returns the files of a recording that is a folder; any other is a file itself."""
    info = known.info(url)
    if info is None or info["type"] != "directory":
        return (url,)
    fs, path = storage.filesystem_of(url)
    files = [each for each, _ in storage.files_of(fs, path, 1)]
    whole = [paths for paths in _grouped(files) if len(paths) > 1]
    return _urls(url, fs, whole[0]) if whole else (url,)


def _absolute(name: str, folder: str) -> str:
    if "://" in name or name.startswith("/") or os.path.isabs(name) or not folder:
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
    """Information on files; a folder is listed once, which is one question instead of one for each file. refused: those
    of which the store gives no list; programs, converted: files that are left out as
    such, and as what this program may have written."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.programs: set[str] = set()
        self.converted: set[str] = set()
        self._folders: dict[tuple[Any, str], dict[str, Info]] = {}
        self._beside: dict[str, str] = {}

    def of_folders(self, fs: Any, listed: Iterable[tuple[str, Info]]) -> dict[str, Info]:
        """Returns the files of a listing, by their paths, and keeps it. What is no regular file is none of them."""
        files = {path: info for path, info in listed if info["type"] in ("file", "missing")}
        for path, info in files.items():
            folder, _, name = path.rpartition("/")
            self._folders.setdefault((fs, folder), {})[name] = info
        return files

    def info(self, url: str) -> Info | None:
        """None if the file is not there."""
        try:
            found = None if storage.is_local(url) else self._files_in(storage.folder_of(url)).get(storage.name_of(url))
            return found or storage.info(url)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return None

    def beside(self, urls: Sequence[str]) -> str:
        """Returns what changes with the files that lie beside a recording and may belong to it: all such of its folder,
        since only the recording knows which; "" if there are none."""
        name, url = urls[0].partition("::")[0].rpartition("/")[2], storage.folder_of(urls[0])
        if COMPANION.fullmatch(name):
            return ""
        if len(urls) > 1 and name == FOLDER_MAIN:
            url = storage.folder_of(url)
        if url not in self._beside:
            files = sorted(self._files_in(url or "/").items())
            companions = [(name, info) for name, info in files if COMPANION.fullmatch(name) and info["type"] == "file"]
            text = " ".join(f"{name} {storage.identity_of(info)}" for name, info in companions)
            self._beside[url] = f"beside:{hashlib.sha256(text.encode()).hexdigest()[:32]}" if text else ""
        return self._beside[url]

    def _files_in(self, url: str) -> dict[str, Info]:
        """Returns the files directly in a folder, by name."""
        try:
            fs, path = storage.filesystem_of(url)
        except FileNotFoundError:  # of an archive
            return {}
        folder = path.rstrip("/")
        if (fs, folder) not in self._folders:
            files: dict[str, Info] = {}
            try:
                files = {path.rpartition("/")[2]: info for path, info in storage.files_of(fs, folder or "/", 1)}
            except NotImplementedError:
                pass
            except Exception as error:
                if not storage.is_refused(error):
                    raise
                self.refused.add(url)
            self._folders[fs, folder] = files
        return self._folders[fs, folder]
