"""Symbols that many workers share: of each build, GSYM is made once, kept in a folder or bucket."""

from __future__ import annotations

import hashlib
import io
import json
import os
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from traceferry.apps.fleet import storage
from traceferry.apps.fleet.places import NOT_THERE, SymbolFile, here, is_of_storage, symbol_index
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.report import Report
from traceferry.files.source import Source, open_source
from traceferry.symbolication.binary import Binary
from traceferry.symbolication.choose import GSYM_MAGICS, SymbolIndex, library_name, open_symbols
from traceferry.symbolication.debug_files import DebugFiles, stripped_binary
from traceferry.symbolication.debug_links import alt_link
from traceferry.symbolication.debuginfod import Debuginfod, Servers
from traceferry.symbolication.elf import ElfSymbols, named_functions
from traceferry.symbolication.gsym import writer
from traceferry.symbolication.gsym.reader import Gsym
from traceferry.symbolication.interface import FoundSymbols, Symbols
from traceferry.unwinding.skeleton import Skeleton, skeleton_of

# Opened libraries that a worker keeps: how many, and how many bytes of them.
MAX_OPEN = 256
MAX_BYTES = 1 << 29
# Of the report, what is said of parts of debug information.
OF_PARTS = ("debug_files_missing", "debuginfod_failed", "file_refused")
HEX = frozenset("0123456789abcdef")

Note = tuple[str, int, int | None, str]  # of the report: kind, count, offset, detail


@dataclass(frozen=True)
class _Opened:
    """A library, as it is kept. n_bytes: of the copy of its file, 0 for one of this machine; notes: for the report of
    each recording that uses it."""

    path: str
    symbols: Symbols
    binary: Binary | None
    debug: Binary | None
    n_bytes: int = 0
    notes: tuple[Note, ...] = ()
    stripped: Binary | None = None

    def anew(self) -> FoundSymbols:
        """Returns the symbols for one recording: the damage that look-ups meet is its own."""
        symbols = self.symbols
        if isinstance(symbols, Gsym):
            symbols = symbols.anew()
        elif isinstance(symbols, ElfSymbols):
            symbols = ElfSymbols(symbols.binary, symbols.linked)
        return FoundSymbols(symbols, self.binary, self.debug, self.stripped)


class SymbolStore:
    """Finds symbols by build id and name, for `load(find_symbols=store.find)`.

    places: URLs or paths of files, and of folders with all below them: ELF binaries and debug files, GSYM, Breakpad;
    cache: URL or path of a folder. In the cache are, for each build id, gsym/ID.gsym and gsym/ID.zip, which holds what
    else is needed of the binary; and index/HASH.json, the build ids of the places' files. Each appears whole: workers
    that make the same at once write the same bytes. What has no debug information, or lacks parts of it, is made again
    when the places have other files. A store can be pickled; it opens nothing before it is asked.

    sysroots, servers: copies of the recorded machine's file tree, and servers of debuginfod, where parts of the debug
    information of a file are searched.
    """

    def __init__(
        self,
        places: Sequence[str | Path],
        cache: str | Path,
        sysroots: Sequence[str] = (),
        servers: Servers | None = None,
    ) -> None:
        self.places = tuple(map(_absolute, map(str, places)))
        self.cache = _absolute(str(cache))
        self.sysroots = tuple(sysroots)
        self.servers = servers
        self._lock = threading.RLock()
        self._opened: OrderedDict[tuple[str, str], _Opened | None] = OrderedDict()

    def __reduce__(self) -> tuple[type[SymbolStore], tuple[object, ...]]:
        return SymbolStore, (self.places, self.cache, self.sysroots, self.servers)

    @cached_property
    def _listing(self) -> tuple[SymbolIndex[SymbolFile], str]:
        index, identity = symbol_index(self.places, self.cache)
        searched = json.dumps([identity, self.sysroots, self.servers.urls if self.servers is not None else ()])
        return index, hashlib.sha256(searched.encode()).hexdigest()

    @property
    def _index(self) -> SymbolIndex[SymbolFile]:
        return self._listing[0]

    def find(self, build_id: str, name: str, report: Report | None = None) -> FoundSymbols | None:
        """The symbols of a library, with the answers of the file in the places. build_id: in hex, "" is unknown; name:
        of its file, without folders; report: gets what is lost. None: the places have none. Raises FormatError if they
        have only other builds of that name; OSError if the storage fails."""
        build_id = build_id.lower() if HEX.issuperset(build_id.lower()) else ""
        asked = (build_id, "" if build_id else name)
        with self._lock:
            found = self._opened.get(asked)
            if found is None and (build_id, name) not in self._opened:
                found = self._find(build_id, name)
                asked = asked if found is not None else (build_id, name)
                self._opened[asked] = found
                self._limit()
            elif found is not None:
                self._opened.move_to_end(asked)
        if found is None:
            return None
        if report is not None:
            for kind, count, offset, detail in found.notes:
                report.note(kind, count, offset=offset, where=found.path, detail=f"{name}: {detail}")
        return found.anew()

    def _limit(self) -> None:
        while len(self._opened) > MAX_OPEN or (
            len(self._opened) > 1 and sum(one.n_bytes for one in self._opened.values() if one is not None) > MAX_BYTES
        ):
            self._opened.popitem(last=False)

    def _find(self, build_id: str, name: str) -> _Opened | None:
        found = self._cached(build_id) if build_id else None
        if found is not None:
            return found
        first = self._index.matching(build_id, name)
        if first is None:
            return None
        files = [first, *(file for file in self._index.of_build(first.build_id) if file is not first)]
        key = build_id if build_id and first.build_id else first.key
        return (self._cached(key) if key != build_id else None) or self._made(key, files)

    # ------------------------------------------------------------ the cache

    def _url(self, name: str) -> str:
        return storage.joined(self.cache, f"gsym/{name}")

    def _cached(self, key: str) -> _Opened | None:
        """Returns the library from the cache, if all of it is there."""
        try:
            about = _About.read(storage.read(self._url(f"{key}.zip")))
            if about is None or not self._is_final(about):
                return None
            return self._opened_gsym(self._url(f"{key}.gsym"), about)
        except NOT_THERE:
            return None

    def _is_final(self, about: _About) -> bool:
        """Whether the places have no more than when it was made."""
        try:
            return not about.listing or about.listing == self._listing[1]
        except NOT_THERE:
            return True

    def _opened_gsym(self, url: str, about: _About) -> _Opened | None:
        """Returns None if it cannot be read. What is elsewhere is copied to a file that nobody else sees."""
        try:
            if storage.info(url)["size"] != about.n_bytes:
                return None
            if storage.is_local(url):
                data, copied = open_source(url).data, 0
            else:
                with TemporaryDirectory(prefix="traceferry-", ignore_cleanup_errors=True) as folder:
                    data, copied = here(url, about.n_bytes, Path(folder)).data, about.n_bytes
            return _Opened(url, Gsym(Source(url, data)), *about.binaries(url), copied, about.notes, about.stripped)
        except (FormatError, UsageError):
            return None

    # ------------------------------------------------------------ making

    def _made(self, key: str, files: Sequence[SymbolFile]) -> _Opened | None:
        """GSYM of the first of the files that can be read, in the cache; where it cannot be made, that file itself."""
        with TemporaryDirectory(prefix="traceferry-", ignore_cleanup_errors=True) as folder:
            report = Report()
            given = self._open_all(files, Path(folder), report)
            if not given:
                return None
            # In the meantime another worker may have made it.
            found = self._cached(key)
            if found is not None:
                return found
            symbols = given[0][0]
            elves = [one.binary for one, *_ in given if isinstance(one, ElfSymbols)]
            binary = next((one for one in elves if not one.is_debug_file), None)
            debug = next((one for one in elves if one.is_debug_file), None)
            stripped = stripped_binary(symbols)
            made = Path(folder) / "made.gsym"
            try:
                _convert(*given[0][:2], made)
                missing = _missing_of(report)
                about = _About.of(
                    made.stat().st_size,
                    {"binary": binary, "debug": debug, "stripped": stripped},
                    (*_damage_of(symbols), *missing),
                    self._listing[1] if stripped is not None or missing else "",
                    given[0][2] if stripped is not None else "",
                )
            except (FormatError, UsageError) as error:
                note = ("symbols_not_converted", 1, None, f"{symbols.path}: {error}")
                return _Opened(symbols.path, symbols, binary, debug, notes=(note,), stripped=stripped)
            return self._kept(key, made, about)

    def _open_all(self, files: Sequence[SymbolFile], folder: Path, report: Report) -> list[tuple[Symbols, Source, str]]:
        """Those that can be read, with the path in the places, what was made of binaries before these, as `--symbols`
        takes them. report: gets which parts of their debug information are missing."""
        opened: list[tuple[Symbols, Source, str]] = []
        parts = folder / "parts"
        parts.mkdir()
        folders = [place for place in self.places if storage.is_local(place) and os.path.isdir(place)]
        given = [file.path for file in self._index.ending("") if storage.is_local(file.path)]
        server = Debuginfod(self.servers, report) if self.servers is not None else None
        searched = DebugFiles(report, self.sysroots, [*folders, str(parts)], server=server, given=given)
        for nth, file in enumerate(files):
            own = folder / str(nth)
            own.mkdir()
            try:
                source = here(file.path, file.size, own)
                symbols = open_symbols(source, searched.beside())
                if isinstance(symbols, ElfSymbols) and not storage.is_local(file.path):
                    self._bring_parts(symbols.binary, parts)
                opened.append((symbols, source, file.path))
            except FormatError:
                continue
        return sorted(opened, key=lambda one: isinstance(one[0], ElfSymbols) and not one[0].binary.is_debug_file)

    def _bring_parts(self, binary: Binary, folder: Path) -> None:
        """Copies files into a folder that have parts of the debug information of a file elsewhere: what `dwz` found in
        several, a package of split units, else all split units that there are."""
        names = {section.name for section in binary.sections}
        link = alt_link(binary)
        wanted = self._index.of_build(link.build_id) if link is not None else []
        if ".debug_addr" in names:
            packages = self._index.named(f"{binary.name}.dwp") + self._index.named(f"{library_name(binary.name)}.dwp")
            wanted += packages or self._index.ending(".dwo")
        for nth, file in enumerate(wanted):
            # What is found by its name is in a folder of the user's, whatever it is called there.
            own = folder if link is not None and file.build_id == link.build_id else folder / str(nth)
            own.mkdir(exist_ok=True)
            name = os.path.basename(link.path) if own is folder and link is not None else file.name
            if not (own / name).exists():
                storage.fetch(file.path, own / name)

    def _kept(self, key: str, made: Path, about: _About) -> _Opened:
        """Puts the library into the cache, for others, and returns it from the file itself."""
        url, notes = self._url(f"{key}.gsym"), about.notes
        data = open_source(str(made)).data
        try:
            # Where the second is, the first is, too.
            storage.write(self._url(f"{key}.zip"), about.packed)
            storage.put(made, url)
        except Exception as error:
            if not is_of_storage(error):
                raise
            notes += (("symbols_not_cached", 1, None, f"{url}: {str(error) or type(error).__name__}"),)
        copied = 0 if storage.is_local(url) else about.n_bytes
        return _Opened(url, Gsym(Source(url, data)), *about.binaries(url), copied, notes, about.stripped)


def _absolute(url: str) -> str:
    return os.path.abspath(url) if storage.is_local(url) else url


def _damage_of(symbols: Symbols) -> list[Note]:
    if not symbols.problems:
        return []
    offset, what = symbols.problems[0]
    return [("symbols_damaged", len(symbols.problems), offset, what)]


def _missing_of(report: Report) -> list[Note]:
    """Returns which parts of the debug information were not found, and why."""
    return [(one.kind, one.count, None, "; ".join(one.details)) for one in report if one.kind in OF_PARTS]


def _convert(symbols: Symbols, source: Source, made: Path) -> None:
    """GSYM as it is, anything else written as GSYM. Raises UsageError if GSYM cannot hold it."""
    if bytes(source.data[: len(GSYM_MAGICS[0])]) in GSYM_MAGICS:
        made.write_bytes(source.data)
        return
    big = isinstance(symbols, ElfSymbols) and not symbols.binary.little_endian
    with made.open("wb") as out:
        writer.write_fitting(
            out, named_functions(symbols), uuid=bytes.fromhex(symbols.build_id), base=symbols.base, big=big
        )


# ---------------------------------------------------------------- what GSYM does not hold


@dataclass(frozen=True)
class _About:
    """The facts that are kept beside GSYM, packed as a zip file. n_bytes: of the GSYM file; notes: what was lost when
    it was made; listing: of the places, where other files in them could give more, else ""; stripped_path: of the
    binary in the places if it has no debug information; members: skeletons of the binary, of its debug file, and of a
    stripped one that gave the names."""

    n_bytes: int
    notes: tuple[Note, ...]
    listing: str
    stripped_path: str
    members: dict[str, bytes]

    @classmethod
    def of(
        cls, n_bytes: int, files: Mapping[str, Binary | None], notes: Sequence[Note], listing: str, stripped_path: str
    ) -> _About:
        """files: by name of the member."""
        members = {name: skeleton_of(one, name != "stripped") for name, one in files.items() if one is not None}
        return cls(n_bytes, tuple(notes), listing, stripped_path, members)

    @classmethod
    def read(cls, packed: bytes) -> _About | None:
        """None: it is damaged."""
        try:
            with zipfile.ZipFile(io.BytesIO(packed)) as file:
                about = json.loads(file.read("about.json"))
                members = {name: file.read(name) for name in file.namelist() if name != "about.json"}
            notes = tuple((*note,) for note in about["notes"])
            return cls(int(about["n_bytes"]), notes, str(about["listing"]), str(about["stripped_path"]), members)
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError):
            return None

    @property
    def packed(self) -> bytes:
        facts = {"n_bytes": self.n_bytes, "notes": self.notes, "listing": self.listing}
        about = json.dumps({**facts, "stripped_path": self.stripped_path}).encode()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in {"about.json": about, **self.members}.items():
                # The same bytes at any time.
                file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return out.getvalue()

    def binaries(self, url: str) -> tuple[Binary | None, Binary | None]:
        found = [self.members.get(name) for name in ("binary", "debug")]
        binary, debug = (Skeleton(Source(url, memoryview(one))) if one is not None else None for one in found)
        return binary, debug

    @property
    def stripped(self) -> Binary | None:
        data = self.members.get("stripped")
        return Skeleton(Source(self.stripped_path, memoryview(data))) if data is not None else None
