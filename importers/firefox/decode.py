"""Decode: a file becomes a Profile: what is shared is parsed at once, a thread when it is asked for, and only the last
one is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traceferry.common.errors import FormatError
from traceferry.files.source import Source, release
from traceferry.importers.firefox.document import Lazy, Members, Part, root_of
from traceferry.importers.firefox.gecko import thread_columns
from traceferry.importers.firefox.layout import NEWEST_GECKO, NEWEST_PROCESSED, OLDEST_GECKO, UNUSED_OF_PROFILE

MAX_PROCESSES = 4096
OLD = "Gecko profiles before version 3 (2016) are not read"
SAMPLES = frozenset((b'"samples"',))
TABLES_OF_STACKS = frozenset((b'"stackTable"', b'"frameTable"', b'"funcTable"', b'"nativeSymbols"', b'"resourceTable"'))
TABLES = ("stackTable", "frameTable", "funcTable", "samples", "markers")


@dataclass(frozen=True)
class ThreadText:
    """A thread that is not parsed yet."""

    lazy: Lazy = field(repr=False)
    part: Part = field(repr=False)

    @property
    def path(self) -> str:
        return self.lazy.name

    def release(self) -> None:
        """Announces that it is not read again."""
        release(self.lazy.text.data, *self.lazy.at)


@dataclass
class Profile:
    """A file. is_gecko: which of the two formats; version: of it, 0 is none; meta: of all; shared: the tables that
    threads share; counters: parsed, with the part that they are of; unused: members that are not read, with their
    number."""

    source: Source
    is_gecko: bool
    version: int
    parts: list[Part]
    threads: list[ThreadText]
    shared: Members
    counters: list[tuple[Part, Any]]
    unused: dict[str, int]
    _latest: tuple[int, Members] = field(default=(-1, {}), repr=False)

    @property
    def meta(self) -> Members:
        return self.parts[0].meta

    def thread(self, nth: int, left_out: frozenset[bytes] = frozenset()) -> Members:
        """Returns a thread's members, with tables of columns; of one that is no object, nothing. left_out: the keys,
        with quotes, of members that are not needed any more."""
        if self._latest[0] != nth:
            self._latest = (-1, {})  # before the next is parsed
            text = self.threads[nth]
            value = text.lazy.value() if self.is_gecko else text.lazy.tables(left_out)
            members = value if isinstance(value, dict) else {}
            self._latest = nth, thread_columns(members, text.part) if self.is_gecko else members
        return self._latest[1]


def read_profile(source: Source) -> Profile:
    """Raises FormatError for what is no profile, or one of an unknown version."""
    root = root_of(source)
    members = root.members()
    if "profileJSON" in members:
        raise members["profileJSON"].error(OLD)
    if "threads" not in members and "profile" in members:
        members = members["profile"].members()
    threads = members.get("threads")
    elements = threads.elements() if threads is not None else None
    if threads is None or elements is None:
        what = "is no list" if threads is not None else "is missing"
        raise FormatError(f"threads {what}", (threads or root).offset, "threads", path=source.path)
    lazy_meta = members["meta"].members() if "meta" in members else {}
    version = _number(lazy_meta.get("preprocessedProfileVersion"))
    is_gecko = version == 0 and _is_gecko(members, elements)
    if is_gecko:
        return _read_gecko(source, members, lazy_meta)
    _check_version(lazy_meta.get("preprocessedProfileVersion"), version, NEWEST_PROCESSED)
    lazy_shared = members.get("shared")
    tables = lazy_shared.tables() if lazy_shared is not None else None
    shared = tables if isinstance(tables, dict) else {}
    _check_tables(shared, elements, threads)
    part = Part(_object(members.get("meta")), _list(members.get("libs")))
    counters = [(part, counter) for counter in _list(members.get("counters"))]
    unused = {name: _size(members[name]) for name in UNUSED_OF_PROFILE if name in members}
    texts = [ThreadText(element, part) for element in elements]
    return Profile(source, False, version, [part], texts, shared, counters, {k: n for k, n in unused.items() if n})


def _check_version(lazy: Lazy | None, version: int, newest: int, oldest: int = 0) -> None:
    if lazy is not None and version > newest:
        name = "version" if oldest else "preprocessedProfileVersion"
        message = f"written for version {version} of the Firefox Profiler; this reads up to {newest}"
        raise FormatError(message, lazy.offset, f"meta.{name}", path=lazy.text.path)
    if lazy is not None and version < oldest:
        raise FormatError(OLD, lazy.offset, "meta.version", path=lazy.text.path)


def _check_tables(shared: Members, elements: list[Lazy], threads: Lazy) -> None:
    """Refuses a profile of which no thread has stacks."""
    if not elements or "stackTable" in shared:
        return
    if all(_problem_of(element) for element in elements):
        raise threads.error(f"no thread can be read: {_problem_of(elements[0])}")


def _problem_of(thread: Lazy) -> str:
    members = thread.members()
    if "stackTable" not in members:
        return f"{thread.name}.stackTable is missing"
    columns = members["stackTable"].members()
    frame = columns.get("frame")
    if frame is None:
        return f"{thread.name}.stackTable.frame is missing"
    is_column = frame.is_list or frame.members() or "schema" in columns
    if not is_column:
        return f"{thread.name}.stackTable.frame is no list"
    return _problem_of_lengths(columns, f"{thread.name}.stackTable")


def _problem_of_lengths(columns: dict[str, Lazy], path: str) -> str:
    """Tells of a stack table whose columns have different lengths, but for one that declares how many rows count."""
    lengths: dict[str, int] = {
        name: len(columns[name].value()) for name in ("frame", "prefix", "prefixOffset")
        if name in columns and columns[name].is_list
    }  # fmt: skip
    fewest = min(lengths, key=lambda name: lengths[name], default="")
    declared = _number(columns.get("length"))
    if not lengths or lengths[fewest] == max(lengths.values()) or 0 < declared <= lengths[fewest]:
        return ""
    return f"{path}.{fewest} has {lengths[fewest]} values, another column {max(lengths.values())}"


def _is_gecko(members: dict[str, Lazy], threads: list[Lazy]) -> bool:
    """Whether tables are rows with a schema; of a profile without threads, whether it lists processes."""
    if not threads or "processes" in members:
        return "processes" in members
    first = threads[0].members()
    return not first or any("schema" in first[name].members() for name in TABLES if name in first)


# ---------------------------------------------------------------- Gecko profiles


def _read_gecko(source: Source, members: dict[str, Lazy], lazy_meta: dict[str, Lazy]) -> Profile:
    version = _number(lazy_meta.get("version"))
    _check_version(lazy_meta.get("version"), version, NEWEST_GECKO, OLDEST_GECKO)
    profile = Profile(source, True, version, [], [], {}, [], {})
    _add_process(profile, members)
    for name in ("pages", "profilerOverhead", "profilingLog", "profileGatheringLog"):
        if name in members and (n := _size(members[name])):
            profile.unused[name] = n
    return profile


def _add_process(profile: Profile, members: dict[str, Lazy]) -> None:
    """Adds the threads of a process and of those within it."""
    if len(profile.parts) == MAX_PROCESSES:
        return
    meta, libs = _object(members.get("meta")), _libs(members.get("libs"))
    start = meta.get("startTime")
    shift_ms = 0.0
    if profile.parts and isinstance(start, (int, float)):
        first = profile.parts[0].meta.get("startTime")
        shift_ms = float(start - first) if isinstance(first, (int, float)) else 0.0
    part = Part(meta | {"pausedRanges": _value(members.get("pausedRanges"))}, libs, shift_ms)
    profile.parts.append(part)
    profile.counters += [(part, counter) for counter in _list(members.get("counters"))]
    for element in (members["threads"].elements() or []) if "threads" in members else []:
        process = element.embedded()
        if process is None:
            profile.threads.append(ThreadText(element, part))
        else:
            _add_process(profile, process.members())
    for element in (members["processes"].elements() or []) if "processes" in members else []:
        _add_process(profile, element.members())


def _libs(lazy: Lazy | None) -> list[Any]:
    """Old profiles have them as JSON text."""
    if lazy is None:
        return []
    within = lazy.embedded()
    return _list(within or lazy)


# ---------------------------------------------------------------- values


def _value(lazy: Lazy | None) -> Any:
    return lazy.value() if lazy is not None else None


def _object(lazy: Lazy | None) -> Members:
    value = _value(lazy)
    return value if isinstance(value, dict) else {}


def _list(lazy: Lazy | None) -> list[Any]:
    value = _value(lazy)
    return value if isinstance(value, list) else []


def _number(lazy: Lazy | None) -> int:
    value = _value(lazy)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return int(value) if is_number and abs(value) < 1 << 31 else 0


def _size(lazy: Lazy) -> int:
    """Returns how many elements or members a value has."""
    elements = lazy.elements()
    return len(lazy.members()) if elements is None else len(elements)
