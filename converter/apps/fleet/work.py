"""What is done with one recording: its files are brought here, read, and added up or converted."""

from __future__ import annotations

import gc
import hashlib
import json
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import orjson

from traceferry import registry
from traceferry.analysis.compare.runs import MADE
from traceferry.analysis.totals.collect import Collected, collect
from traceferry.analysis.totals.details import Details
from traceferry.analysis.totals.idle import Busy
from traceferry.analysis.totals.portable import Totals, portable
from traceferry.analysis.totals.rows import Rows
from traceferry.analysis.totals.trees import Trees
from traceferry.api import load, save
from traceferry.apps.fleet import storage
from traceferry.apps.fleet.forest import forest_of
from traceferry.apps.fleet.inputs import LABEL, Recording
from traceferry.apps.fleet.symbols import SymbolStore
from traceferry.apps.fleet.tables import COLUMNS, COUNT, RECORDINGS, TEXT
from traceferry.common.errors import ExhaustedError, FormatError, OtherContentError, UsageError, within_limits
from traceferry.common.report import Report
from traceferry.common.shown_text import encodable
from traceferry.files.decompress import COMPRESSED_SUFFIXES, limit_of
from traceferry.files.pack import is_pack
from traceferry.files.source import is_recording_folder, open_source
from traceferry.model import Trace, sums
from traceferry.reading import LoadOptions
from traceferry.symbolication.debuginfod import Servers
from traceferry.symbolication.interface import FindSymbols

# For so long, what lies beside a recording is taken to be as it was.
LISTED_S = 60
LARGEST = sums.LARGEST
NOTHING: dict[str, Any] = {TEXT: "", COUNT: 0, "float64": 0.0}
# What a recording came to.
DONE, DAMAGED, MISSING, UNAVAILABLE, REFUSED, MEMORY, KILLED, FAILED = (
    "done", "damaged", "missing", "unavailable", "refused", "out of memory", "killed", "failed",
)  # fmt: skip
# With these, another attempt may end otherwise though the recording is the same.
PASSING = frozenset({MISSING, UNAVAILABLE, MEMORY, KILLED, FAILED})


@dataclass(frozen=True)
class Reading:
    """The options by which recordings are read: what `load` takes. symbols: files and folders, {label} stands for a
    recording's label; symbol_cache: the folder in which each build's symbols are kept; symbols_identity: what changes
    when one of those files does."""

    symbols: tuple[str, ...] = ()
    options: LoadOptions = field(default_factory=LoadOptions)
    symbol_cache: str = ""
    symbols_identity: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """row: of the table `recordings`, without labels; totals: empty if nothing was added up."""

    row: dict[str, Any]
    totals: Totals = field(default_factory=Totals)


class Work(Protocol):
    """The work that is done with each recording. It must be picklable; `description` is equal for equal results."""

    @property
    def tables(self) -> Sequence[str]: ...

    @property
    def description(self) -> str: ...

    def of(self, recording: Recording, labels: Sequence[str]) -> Result: ...


@dataclass(frozen=True)
class Aggregation:
    """Adds a recording up."""

    reading: Reading
    tables: tuple[str, ...]

    @property
    def description(self) -> str:
        return _described("aggregate", self.reading, self.tables)

    def of(self, recording: Recording, labels: Sequence[str]) -> Result:
        with opened(recording, labels, self.reading) as (loaded, row):
            busy = Busy(loaded)
            trace = busy.trace.opened()
            details, trees = Details(trace), Trees(trace, n_buckets=1)
            collected = collect(trace, trees, details=details)
            row |= facts_of(trace, collected.n_samples, details)
            row |= {"events": _events_of(collected), "idle_samples": busy.n_idle}
            functions = Rows(Totals().functions.columns)
            totals = replace(portable(collected, with_tree=False), functions=functions, tree=forest_of(trace, trees))
            return Result(row, totals)


@dataclass(frozen=True)
class Conversion:
    """Writes a recording for a viewer. output: the folder; exporter: its name; without: what a page does not embed."""

    reading: Reading
    output: str
    exporter: str
    suffix: str
    without: tuple[str, ...] = ()

    @property
    def tables(self) -> Sequence[str]:
        return ("recordings",)

    @property
    def description(self) -> str:
        return _described("convert", self.reading, self.output, self.exporter, self.suffix, self.without)

    def output_of(self, recording: Recording) -> str:
        return storage.joined(self.output, recording.path + self.suffix)

    def of(self, recording: Recording, labels: Sequence[str]) -> Result:
        with opened(recording, labels, self.reading) as (trace, row), TemporaryDirectory(prefix="traceferry-") as here:
            # Named as the target, which decides on compression.
            written = Path(here) / f"converted{self.suffix}"
            save(trace, written, format=self.exporter, without=self.without, jobs=1)
            storage.put(written, self.output_of(recording))
            return Result(row | facts_of(trace))


def _described(*parts: Any) -> str:
    from traceferry import __version__

    words = [
        part if isinstance(part, (str, tuple)) else [part.symbols, asdict(part.options), part.symbols_identity]
        for part in parts
    ]
    return json.dumps([__version__, *words], sort_keys=True, default=str)


def result_of(work: Work, recording: Recording, labels: Sequence[str]) -> Result:
    """The result, or a row that says why there is none. Nothing is raised but what ends the process."""
    # What a recording needs lives until its end: looking for garbage among it takes a tenth of the time.
    gc.disable()
    try:
        with within_limits():
            return work.of(recording, labels)
    except OtherContentError as error:
        return _without(recording, REFUSED, error)
    except FormatError as error:
        return _without(recording, DAMAGED, error)
    except ExhaustedError as error:
        return _without(recording, MEMORY, error)
    except UsageError as error:
        return _without(recording, REFUSED, error)
    except FileNotFoundError as error:
        return _without(recording, MISSING, error)
    # Of one recording among thousands no error may end the run: the row says which, and where.
    except Exception as error:
        return _without(recording, UNAVAILABLE if storage.is_transient(error) else FAILED, error)
    finally:
        # A trace refers to itself: without this it stays in memory.
        gc.collect()
        gc.enable()


def killed(recording: Recording) -> Result:
    """Returns the result of a recording whose workers were ended each time."""
    reason = "each worker that read it was ended; --worker-memory gives it more memory"
    return Result(row_of(recording) | {"status": KILLED, "reason": reason})


def _without(recording: Recording, status: str, error: BaseException) -> Result:
    text = str(error) or type(error).__name__
    # Where a file was brought to is no part of its name.
    here = getattr(error, "path", None)
    if here and here not in recording.urls:
        text = text.replace(here, recording.urls[0])
    text = text.removeprefix(f"{recording.urls[0]}: ")
    if status == FAILED:
        raised = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {text} ({Path(raised.filename).name}:{raised.lineno})"
    return Result(row_of(recording) | {"status": status, "reason": encodable(text)})


def row_of(recording: Recording) -> dict[str, Any]:
    """The row of a recording of which nothing else is known."""
    nothing = {name: NOTHING[of] for name, of in COLUMNS[RECORDINGS].items()}
    named = {"recording": encodable(recording.urls[0]), "size": max(recording.size, 0)}
    return nothing | named | {"time_ns": None, "events": "[]", "losses": "{}", "status": DONE}


def facts_of(trace: Trace, n_samples: int = 0, details: Details | None = None) -> dict[str, Any]:
    """Returns what the row says of a trace that was read to its end."""
    losses: dict[str, int] = {}
    for issue in trace.report:
        if issue.severity != "info":
            losses[issue.kind] = min(losses.get(issue.kind, 0) + issue.count, LARGEST)
    sampling, first = trace.sampling, trace.inputs[0] if trace.inputs else None
    is_timed = all(issue.kind not in MADE for issue in trace.report)
    started = {} if trace.unix_start_ns is None else {"time_ns": sums.limited(trace.unix_start_ns)}
    return {
        **started,
        "seconds": sums.limited(trace.end_ts - trace.start_ts) / 1e9 if is_timed else 0.0,
        "format": "" if first is None else first.format,
        "producer": "" if first is None else first.producer,
        "event": "" if sampling is None else sampling.name,
        "unit": "" if sampling is None else sampling.unit,
        "interval_ns": 0 if sampling is None else sampling.interval_ns,
        "samples": n_samples,
        "idle_samples": 0,
        "sample_weight": 0 if details is None else details.sample_weight,
        "losses": orjson.dumps(losses, option=orjson.OPT_SORT_KEYS).decode(),
    }


def _events_of(collected: Collected) -> str:
    """Returns the events that were recorded, the main one first, as JSON."""
    events = collected.trace.events
    found = [
        {
            "event": event.name, "unit": event.unit, "kind": event.kind, "period": event.period,
            "leader": events[event.leader].name if event.leader >= 0 else None, "is_scaled": event.is_scaled,
            "samples": of.samples, "weight": of.weight,
        }
        for event, of in zip(events, collected.of_events, strict=True)
    ]  # fmt: skip
    return orjson.dumps(found).decode()


# ---------------------------------------------------------------- files


@contextmanager
def opened(recording: Recording, labels: Sequence[str], reading: Reading) -> Iterator[tuple[Trace, dict[str, Any]]]:
    """The trace, whose files stay until the end, and its row so far."""
    with ExitStack() as kept:
        folder = Path(kept.enter_context(TemporaryDirectory(prefix="traceferry-")))
        files = _localized(recording, folder)
        inputs: list[str | Path] = [*files]
        holder = files[0].parent
        if len(files) > 1 and is_recording_folder(holder) and files[0].name == "data":
            inputs = [holder]
        row = row_of(recording) | {"hash": _hash_of(files)}
        of_label = dict(zip(labels, recording.labels, strict=True))
        given = [LABEL.sub(lambda found: of_label[found[1]], text) for text in reading.symbols]
        symbols, folders, find_symbols = _symbols(given, reading, files[0], folder)
        elsewhere = [url for url in folders if not storage.is_local(url)]
        trace = load(
            inputs,
            symbols=symbols,
            find_symbols=find_symbols,
            bring=_bring_beside(recording, folder, elsewhere),
            folders=[url for url in folders if url not in elsewhere] + ([str(folder)] if elsewhere else []),
            options=replace(reading.options, debuginfod=_servers_of(reading.options) or ()),
        )
        # The inputs have the names that the user gave.
        named = {str(path): url for path, url in zip(files, recording.urls, strict=True)}
        renamed = [each._replace(path=named.get(each.path, each.path)) for each in trace.inputs]
        yield Trace(trace, inputs=renamed), row


def _localized(recording: Recording, folder: Path) -> list[Path]:
    """The files on this machine: themselves, or copies in the folder."""
    if all(storage.is_local(url) for url in recording.urls):
        for url in recording.urls:
            if not Path(url).exists():
                raise FileNotFoundError(f"{url}: no such file")
            if not Path(url).is_file():
                raise UsageError(f"{url}: not a regular file")
        return [Path(url) for url in recording.urls]
    files: list[Path] = []
    if len(recording.urls) > 1:
        # What lies beside a recording that is a folder is not in it.
        folder /= "recording"
        folder.mkdir()
    for url in recording.urls:
        files.append(folder / storage.name_of(url))
        size = recording.size if len(recording.urls) == 1 and recording.size >= 0 else None
        storage.fetch(url, files[-1], size)
    return files


def _bring_beside(recording: Recording, folder: Path, more: Sequence[str]) -> Callable[[str, Report], None] | None:
    """Returns a function that copies a file of a name from beside the recording into the folder, or from other folders
    elsewhere."""
    there = list(more)
    if not storage.is_local(recording.urls[0]):
        holder = storage.folder_of(recording.urls[0])
        there.insert(0, storage.folder_of(holder) if len(recording.urls) > 1 else holder)
    if not there:
        return None

    def bring(name: str, report: Report) -> None:
        for place in there:
            names = _names_beside(place, int(time.monotonic() / LISTED_S))
            if names is None:
                report.note("beside_refused", where=place, detail=place)
                continue
            for each in (name, *(name + suffix for suffix in COMPRESSED_SUFFIXES)):
                if each in names and not (folder / each).exists():
                    storage.fetch(storage.joined(place, each), folder / each)

    return bring


@lru_cache(maxsize=64)
def _names_beside(folder: str, _: int) -> frozenset[str] | None:
    """Listed once for a while: a folder may hold many recordings, and samples of a whole machine ask for a file of each
    process. None: files are given to all who know their names, and the list of names is not."""
    try:
        return frozenset(storage.names_in(folder))
    except Exception as error:
        if not storage.is_refused(error):
            raise
        return None


def _symbols(
    given: Sequence[str], reading: Reading, recording: Path, folder: Path
) -> tuple[list[str], list[str], FindSymbols | None]:
    """Returns (files on this machine that name functions, folders that are searched, what finds more files that do):
    folders are searched by build id, where the recording has such, and else brought here."""
    folders = [url for url in given if _is_folder(url)]
    files = [url for url in given if url not in folders]
    if folders and reading.symbol_cache and _has_build_ids(recording, reading.options.format):
        options = reading.options
        given_roots = options.sysroots
        sysroots = tuple(map(str, [given_roots] if isinstance(given_roots, (str, Path)) else given_roots))
        store = _store(tuple(folders), reading.symbol_cache, sysroots, _servers_of(options))
        return _brought(files, folder), folders, store.find
    return _brought([*files, *folders], folder), [], None


def _servers_of(options: LoadOptions) -> Servers | None:
    """Returns this process's servers: one that fails is waited for once in each worker."""
    urls = tuple(options.debuginfod.urls if isinstance(options.debuginfod, Servers) else options.debuginfod)
    return _servers(urls) if urls else None


def _is_folder(url: str) -> bool:
    fs, path = storage.filesystem_of(url)
    return bool(storage.retrying(lambda: fs.isdir(path)))


def _has_build_ids(recording: Path, format_name: str | None) -> bool:
    if format_name is not None:
        return registry.importer_named(format_name).finds_symbols
    source = open_source(str(recording), limit_of(registry.HEAD_SIZE))
    return is_pack(source.data) or registry.detect(source).finds_symbols


# The stores of all recordings that this process reads.
_store = lru_cache(maxsize=8)(SymbolStore)
_servers = lru_cache(maxsize=8)(Servers)


def _brought(given: Sequence[str], folder: Path) -> list[str]:
    """Paths on this machine."""
    paths = []
    for nth, url in enumerate(given):
        own = folder / f"symbols-{nth}"
        own.mkdir()
        if storage.is_local(url) or not _is_folder(url):
            paths.append(str(storage.brought(url, own)))
            continue
        for name in storage.names_in(url):
            storage.fetch(storage.joined(url, name), own / name)
        paths.append(str(own))
    return paths


def _hash_of(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return f"sha256:{digest.hexdigest()}"
