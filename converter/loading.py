"""Brings together what makes a trace: the inputs, files that belong to them, and symbols."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from traceferry import registry
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.report import Report
from traceferry.common.units import format_duration
from traceferry.files.answers import MACHINE, Keeping
from traceferry.files.decompress import COMPRESSED_SUFFIXES, DEFAULT_LIMIT, Limit, limit_of
from traceferry.files.named_files import is_empty, is_inside, open_named
from traceferry.files.pack import inputs_of, packed_source, unpacked_source
from traceferry.files.source import Source, open_source, paths_beside
from traceferry.model import Trace, TraceBuilder
from traceferry.reading import Companion, ImportContext, LoadOptions, Paths, Reading
from traceferry.symbolication.function_names import demangle_functions
from traceferry.timeline.apart import begin_together

if TYPE_CHECKING:
    from traceferry.symbolication.debuginfod import Servers
    from traceferry.symbolication.interface import FindSymbols

EXCERPT = 32
# A file that begins up to a second after a recording may be of it; one that begins a year later is on another clock.
SLACK_NS, YEAR_NS = 10**9, 365 * 86_400 * 10**9

Groups = dict[registry.Importer, list[Source]]
Readings = dict[registry.Importer, Reading]


def load_inputs(
    inputs: Paths,
    symbols: Paths,
    options: LoadOptions,
    find_symbols: FindSymbols | None,
    bring: Callable[[str, Report], None] | None,
    keeping: Keeping | None = None,
    folders: Paths = (),
) -> Trace:
    """Returns all of the inputs as one trace. The parameters are those of `load`; keeping: gets what a pack needs."""
    given = _as_list(inputs)
    paths = _distinct(given)
    if not paths:
        raise UsageError("no input is given")
    limit = limit_of(options.decompress_limit)
    trace = TraceBuilder()
    bring_here = None if bring is None else lambda name: bring(name, trace.report)
    sources = [replace(one, bring=bring_here) for path in paths for one in inputs_of(open_source(path, limit))]
    if keeping is not None:
        sources = [_kept(one, keeping) for one in sources]
    context = context_of(symbols, options, limit, find_symbols)
    context = context._replace(folders=[*context.folders, *_as_list(folders)])
    trace.report.note("input_repeated", len(given) - len(paths), detail=", ".join(sorted(_repeated(given, paths))))
    load_sources(sources, trace, context)
    note_unused(symbols, context, trace.report)
    return trace.done()


def load_sources(sources: list[Source], trace: TraceBuilder, context: ImportContext) -> None:
    """Reads recordings of one run, and what belongs to them, into a trace. Raises FormatError."""
    try:
        groups = _groups(sources, context.options.format)
        readings = _read(groups)
        found = companions(
            sources, readings.values(), context.folders, trace.report, context.limit, context.sysroots, context.symbols
        )
        taken = {one.path for one in found}
        symbols = [one for one in context.symbols if one.path not in taken]
        context = context._replace(symbols=_without_companions(symbols, trace.report))
        readings |= _read_found(found, groups, trace.report)
        sources += found
        for source in (*sources, *context.symbols):
            source.note_losses(trace.report)
        counter = next((r.counter for r in readings.values() if r.counter is not None), None)
        span = next((r.span for r in readings.values() if r.span is not None), None)
        mapped = [one for reading in readings.values() for one in reading.mapped]
        for importer in registry.IMPORTERS:
            if importer in readings:
                readings[importer].add_to(trace, context._replace(counter=counter, span=span, mapped=mapped))
        begin_together(trace)
        demangle_functions(trace, sources[0].answers)
    except FormatError as error:
        raise _with_excerpt(error, sources) from None


def _kept(source: Source, keeping: Keeping) -> Source:
    """Returns an input whose answers are kept. Raises UsageError for one of a pack."""
    if source.answers.is_kept:
        raise UsageError(f"{source.path}: it is of a pack, which holds what is found for it already")
    keeping.inputs.append(kept := replace(source, answers=keeping.of(source.path)))
    return kept


def narrowed(trace: Trace, options: LoadOptions) -> Trace:
    """Returns the threads, the range and the calls that the options ask for. Raises UsageError if there are none."""
    if options.threads:
        from traceferry.timeline.select import select_threads

        trace = select_threads(trace, _as_list(options.threads))
    if options.time_range is not None:
        trace = _in_range(trace, *options.time_range)
    if options.min_duration_ns > 0:
        from traceferry.timeline.select import select_lasting

        trace = select_lasting(trace, options.min_duration_ns)
    if options.max_events is None:
        return trace
    from traceferry.timeline.short_calls import select_events

    return select_events(trace, options.max_events)


def _in_range(trace: Trace, start_ns: int | None, end_ns: int | None) -> Trace:
    """Returns what lies between two times after the start of the recording. Raises UsageError if nothing does."""
    from traceferry.timeline.select import select_range

    begins, ends = trace.start_ts, trace.end_ts
    # Without an end, what happens last is in the range.
    start, end = start_ns or 0, ends - begins + 1 if end_ns is None else end_ns
    if start > ends - begins or end <= max(start, 0):
        asked = "ends where the recording starts, or before" if end <= 0 else f"starts at {format_duration(start)}"
        asked = "is empty" if end_ns is not None and 0 < end <= start else asked
        raise UsageError(f"the range {asked}; the recording lasts {format_duration(ends - begins)}")
    return select_range(trace, begins + start, begins + end)


# ---------------------------------------------------------------- what the user names


def _as_list(paths: Paths) -> list[str]:
    return [str(paths)] if isinstance(paths, (str, Path)) else [str(path) for path in paths]


def _distinct(paths: list[str]) -> list[str]:
    """Returns the paths without those that are a file that comes before."""
    return list({path if path == "-" else os.path.realpath(path): path for path in reversed(paths)}.values())[::-1]


def _repeated(given: list[str], paths: list[str]) -> set[str]:
    return {path for path in given if path not in paths or given.count(path) > 1}


def context_of(
    symbols: Paths, options: LoadOptions, limit: Limit, find_symbols: FindSymbols | None = None
) -> ImportContext:
    """Opens and resolves what the options name. Raises UsageError for what is not there."""
    symbols = _as_list(symbols)
    embedded = options.embed_sources
    if isinstance(embedded, bool):
        embedded = ["."] if embedded else []
    sources = _symbol_sources(symbols, limit)
    return ImportContext(
        options,
        symbols=sources,
        in_folders=frozenset(source.path for source in sources if source.path not in symbols),
        folders=[path for path in symbols if Path(path).is_dir()],
        embed_sources=_folders(embedded, "folder of source files"),
        source_roots=_folders(options.source_roots, "folder of source files"),
        sysroots=_folders(options.sysroots, "folder"),
        limit=limit,
        find_symbols=find_symbols,
        servers=_servers(options),
    )


def _servers(options: LoadOptions) -> Servers | None:
    if not options.debuginfod:
        return None
    from traceferry.symbolication.debuginfod import Servers, servers_of

    given = options.debuginfod
    return given if isinstance(given, Servers) else Servers(servers_of(_as_list(given), os.environ))


def note_unused(symbols: Paths, context: ImportContext, report: Report) -> None:
    """Reports what the user has named in vain, unless an importer has said why."""
    used = {os.path.realpath(place) for place in report.places("symbols_used", "files_read")}
    known = report.places("symbols_unused")
    for path in _as_list(symbols):
        real = os.path.realpath(path)
        if path not in known and not any(is_inside(place, real) for place in used):
            report.note("symbols_unused", where=path, detail=f"{path}: {_why_unused(path, context.symbols)}")


def _why_unused(path: str, symbols: Sequence[Source]) -> str:
    if Path(path).is_dir():
        n = sum(is_inside(source.path, path) for source in symbols)
        return (
            f"it holds no symbols of what was recorded, in {n} file{'s' if n > 1 else ''}"
            if n
            else "it has no file of symbols"
        )
    from traceferry.symbolication.choose import open_symbols

    try:
        opened = open_symbols(next(source for source in symbols if source.path == path))
    except FormatError as error:
        return error.message
    return f"nothing that was recorded is of its build, {opened.build_id or 'which is unknown'}"


def _folders(paths: Paths, what: str) -> list[str]:
    """Returns the paths, absolute and without links. Raises UsageError."""
    found = _as_list(paths)
    for path in found:
        if not Path(path).is_dir():
            raise UsageError(f"{path}: not a {what}")
    return [os.path.realpath(path) for path in found]


def _symbol_sources(paths: list[str], limit: Limit) -> list[Source]:
    if not paths:
        return []
    # What reads symbols takes longer to import than a small recording to convert.
    from traceferry.symbolication.archives import files_of
    from traceferry.symbolication.choose import symbol_files
    from traceferry.symbolication.other_objects import parts_of

    opened = (file for path in symbol_files(paths) for file in files_of(open_source(path, limit)))
    return [part for file in opened for part in parts_of(file)]


# ---------------------------------------------------------------- reading


def _groups(sources: Sequence[Source], format_name: str | None) -> Groups:
    groups: Groups = {}
    for source in sources:
        importer = registry.importer_named(format_name) if format_name else registry.detect(source)
        groups.setdefault(importer, []).append(source)
    return groups


def _read(groups: Groups, before: Groups | None = None) -> Readings:
    """Decodes the files. Formats of which some files were read before are read again, all together."""
    already = before or {}
    return {i: i.module.read([*already.get(i, ()), *sources]) for i, sources in groups.items()}


def _read_found(found: list[Source], groups: Groups, report: Report) -> Readings:
    """Decodes companions. Those that cannot be read leave the list; the report names them."""
    while True:
        try:
            return _read(_groups(found, None), groups)
        except FormatError as error:
            bad = next((source for source in found if source.path == error.path), None)
            if bad is None:
                raise
            found.remove(bad)
            report.note("companion_missing", where=bad.path, detail=str(error))


def _without_companions(symbols: Sequence[Source], report: Report) -> list[Source]:
    """Returns files of symbols without those that belong to no recording that is read, as the report tells."""
    importers = [importer for importer in registry.IMPORTERS if importer.completes]
    others: list[Source] = []
    for source in symbols:
        of = next((one for one in importers if one.module.sniff(source.data[: registry.HEAD_SIZE])), None)
        if of is None:
            others.append(source)
            continue
        detail = f"{source.path}: a {of.name} of no process that was recorded"
        report.note("symbols_unused", where=source.path, detail=detail)
    return others


def _with_excerpt(error: FormatError, sources: list[Source]) -> FormatError:
    """Adds the bytes around the offset."""
    source = next((s for s in sources if s.path == error.path), None)
    if source is not None and error.offset is not None:
        error.excerpt_at = max(0, min(error.offset, len(source.data)) - EXCERPT // 2) & ~15
        error.excerpt = bytes(source.data[error.excerpt_at : error.excerpt_at + EXCERPT])
    return error


# ---------------------------------------------------------------- companions


def companions(
    sources: Sequence[Source],
    readings: Iterable[Reading],
    folders: Sequence[str],
    report: Report,
    limit: Limit = DEFAULT_LIMIT,
    sysroots: Sequence[str] = (),
    symbols: Sequence[Source] = (),
) -> list[Source]:
    """Returns the files that the readings refer to and that are no inputs: among the files of symbols, at the recorded
    path, in a copy of the recorded machine's file tree and on this machine, next to the inputs, or in the folders of
    symbols. The report lists those that are missing."""
    by_name: dict[str, list[Companion]] = {}
    for companion in dict.fromkeys(companion for reading in readings for companion in reading.companions):
        by_name.setdefault(companion.name, []).append(companion)
    search = _Search(sources, folders, sysroots, symbols, by_name.keys(), limit, report)
    return [source for name, wanted in by_name.items() for source in _of_name(name, wanted, search)]


def _of_name(name: str, wanted: Sequence[Companion], search: _Search) -> list[Source]:
    """Returns the files of one name that are no inputs. In containers several processes have a file of that name each:
    which is whose, their content tells later."""
    given = [source for source in search.sources if search.is_meant(source, wanted[0])]
    for source in given:
        _is_of_run(source, wanted[0], search.report)
    if len(given) >= len(wanted):
        return []
    placed = {nth: _wanted_at(source.place, wanted) for nth, source in enumerate(given)}
    known = list(given)
    missing: list[Companion] = []
    for companion in wanted:
        if companion in placed.values():
            continue
        found = search.find(companion, known)
        if found is None:
            missing.append(companion)
        elif not _is_among(found, known):
            known.append(found)
    _note_missing(missing, list(placed.values()).count(None), search.report)
    return known[len(given) :]


def _note_missing(missing: Sequence[Companion], n_elsewhere: int, report: Report) -> None:
    """Reports files that were not found. n_elsewhere: how many of their name the user gives from another folder: each
    is one of them."""
    if not n_elsewhere:
        told = report.places("companion_of_other_run", "companion_empty")
        for companion in missing:
            if companion.path not in told:
                detail = f"{companion.path}{' of another process' * (companion.nth > 0)}"
                report.note("companion_missing", where=companion.shown, detail=detail)
        return
    shown = " or ".join(dict.fromkeys(companion.path for companion in missing))
    report.note("companion_missing", max(len(missing) - n_elsewhere, 0), where=shown, detail=shown)


def _wanted_at(place: str, wanted: Sequence[Companion]) -> Companion | None:
    """Returns the file that was recorded at the place of one that the user gives; of a pack, that may be relative."""
    ending = place if os.path.isabs(place) else f"/{place}"
    is_whole = ending == place
    return next((one for one in wanted if one.path == place or (not is_whole and one.path.endswith(ending))), None)


def _is_among(source: Source, known: Sequence[Source]) -> bool:
    """Whether it is one of these, or a copy: files of processes begin with their number and the time."""
    return any(source.data[: registry.HEAD_SIZE] == one.data[: registry.HEAD_SIZE] for one in known)


class _Search(NamedTuple):
    """The places of companions. sources: the inputs; symbols: files that the user gives as such; names: of all
    companions."""

    sources: Sequence[Source]
    folders: Sequence[str]
    sysroots: Sequence[str]
    symbols: Sequence[Source]
    names: Collection[str]
    limit: Limit
    report: Report

    def find(self, companion: Companion, known: Sequence[Source]) -> Source | None:
        """Returns the file, of a pack if one of the inputs is of one that has it. known: files of its name that are
        others, unless they are at its path."""
        key = f"companion {companion.format} {companion.shown}"
        all_answers = [source.answers.of("") for source in self.sources] or [MACHINE]
        answers = next((one for one in all_answers if one.knows(key)), all_answers[0])

        def find() -> Source | None:
            found = self._named(companion, known) or self._first_valid(self._candidates(companion), companion, known)
            if found is None:
                self._note_empty(companion)
            return replace(found, answers=answers.of(found.path)) if found is not None and answers.keeps else found

        def unpacked(value: Any) -> Source | None:
            if value is not None:
                return unpacked_source(value, answers, self.limit)
            places = [*self._in_trees(companion.path), *paths_beside((), self.folders, companion.name)]
            return self._named(companion, known) or self._first_valid(places, companion, known)

        return answers.ask(
            key, self.report, find, lambda found: packed_source(found) if found is not None else None, unpacked
        )

    def is_meant(self, source: Source, companion: Companion) -> bool:
        """Returns whether a file that the user gives is called as the companion or, renamed, can have been."""
        if source.name in self.names:
            return source.name == companion.name
        return _module_of(companion).was_called(source, companion.name)

    def _note_empty(self, companion: Companion) -> None:
        """Reports the file that is there and has nothing in it."""
        path = next((path for path, _ in self._candidates(companion) if is_empty(path)), None)
        if path is not None:
            self.report.note("companion_empty", where=companion.path, detail=path)

    def _candidates(self, companion: Companion) -> Iterator[tuple[str, str]]:
        """Yields paths, each with what the user has named there. A recorded path that is not absolute tells nothing:
        the program's folder is not known."""
        yield from self._in_trees(companion.path)
        if os.path.isabs(companion.path):
            yield companion.path, ""
        yield from paths_beside(self.sources, self.folders, companion.name)

    def _in_trees(self, recorded: str) -> list[tuple[str, str]]:
        """Returns a recorded path in each copy of the recorded machine's file tree, with that copy."""
        return [(f"{root.rstrip(os.sep)}{recorded}", root) for root in self.sysroots if os.path.isabs(recorded)]

    def _first_valid(
        self, candidates: Iterable[tuple[str, str]], companion: Companion, known: Sequence[Source]
    ) -> Source | None:
        """Opens the first of the files that has the companion's format: others only have such a name."""
        for path, beside in candidates:
            is_known_there = companion.nth == 0 and path == companion.path
            for name in (path, *(path + suffix for suffix in COMPRESSED_SUFFIXES)):
                source = open_named(name, self.report, beside=beside, limit=self.limit)
                if source is not None and self._is_right(source, companion, () if is_known_there else known):
                    self.report.note("companion_of_other_run", 0, where=companion.path)
                    return source
        return None

    def _named(self, companion: Companion, known: Sequence[Source]) -> Source | None:
        """Returns the first that is meant of the files that the user gives as symbols."""
        for source in self.symbols:
            if self.is_meant(source, companion) and self._is_right(source, companion, known):
                self.report.note("files_read", where=source.path, detail=source.path)
                return source
        return None

    def _is_right(self, source: Source, companion: Companion, others: Sequence[Source]) -> bool:
        return (
            _module_of(companion).sniff(source.data[: registry.HEAD_SIZE])
            and not _is_among(source, others)
            and _is_of_run(source, companion, self.report)
        )


def _module_of(companion: Companion) -> registry.CompanionModule:
    return cast("registry.CompanionModule", registry.importer_named(companion.format).module)


def _is_of_run(source: Source, companion: Companion, report: Report) -> bool:
    """Returns whether a file does not begin after the recording that refers to it has ended, which the report tells."""
    if companion.ended is None:
        return True
    began = _module_of(companion).began_at(source)
    # What is years later is on another clock.
    if began is None or not SLACK_NS < began - companion.ended < YEAR_NS:
        return True
    later = format_duration(began - companion.ended)
    detail = f"{source.path} begins {later} after the recording ended: another program of that number wrote over it"
    report.note("companion_of_other_run", where=companion.path, detail=detail)
    return False
