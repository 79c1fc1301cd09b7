"""The library: load recordings into a Trace, save a Trace, or both at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceferry import registry
from traceferry.common.errors import FormatError, UsageError, within_limits
from traceferry.common.report import Report
from traceferry.common.units import format_duration
from traceferry.files.decompress import Limit, limit_of
from traceferry.files.output import open_output
from traceferry.files.source import Source, open_source
from traceferry.loading import companions
from traceferry.model import Trace
from traceferry.reading import Options, Reading
from traceferry.timeline import advice
from traceferry.timeline.select import select_lasting, select_range, select_threads

if TYPE_CHECKING:
    from traceferry.symbolication.interface import FindSymbols

Paths = str | Path | Sequence[str | Path]
EXCERPT = 32


@within_limits()
def load(
    inputs: Paths,
    *,
    symbols: Paths = (),
    format: str | None = None,  # noqa: A002 - the word of the command line
    time_range: tuple[int | None, int | None] | None = None,
    min_duration_ns: int = 0,
    threads: str | Sequence[str] = (),
    embed_sources: bool | Paths = False,
    source_roots: Paths = (),
    clock_offset_ns: int | None = None,
    sysroot: Paths = (),
    keep_cut_stacks_apart: bool = True,
    decompress_limit: int | None = None,
    adds_calls: bool = False,
    find_symbols: FindSymbols | None = None,
    bring: Callable[[str], None] | None = None,
) -> Trace:
    """Reads one or several recordings into one trace on one clock.

    inputs: files, "-" is standard input; symbols: binaries, or folders of them, that name the functions; format: the
    input format's name instead of detecting it; time_range: (start, end) in ns after the start of the recording, None
    is open; what happens at the end is not in it; min_duration_ns: leaves out shorter calls; threads: numbers or names
    of the only threads to keep, see `select_threads`; embed_sources: folders; the text of source files that the
    recording names and that are in one of them goes into the trace; True is the working folder; source_roots: the same
    for copies of the folders in which the program was built: a file is found by the end of its path, too;
    clock_offset_ns: what brings the times of samples onto the clock of the jitted code, where the recorder used another
    clock; sysroot: folders that are the file tree of the recorded machine, where its binaries are looked for;
    keep_cut_stacks_apart: unwound stacks that are not complete stand under a frame that says why; decompress_limit: how
    many bytes a compressed input may hold, by default 1000 times its size, at least 16 MiB and at most 16 GiB;
    adds_calls: for a trace of which the calls are only added up, as by `summarize`: quicker for some formats;
    find_symbols: what finds symbols by build id and name, asked after the files of `symbols` and before those that the
    recording names; bring: called with the name of each file that is looked for beside an input, before it is looked
    for: copies it there where the inputs are copies themselves.

    Raises FormatError if an input cannot be read at all; UsageError if a file is missing, a name or thread is unknown,
    or the range lies outside the recording, and if memory runs out. Losses are in `trace.report`; some are found only
    when a thread is loaded.
    """
    given = _as_list(inputs)
    paths = _distinct(given)
    if not paths:
        raise UsageError("no input is given")
    limit = limit_of(decompress_limit)
    sources = [open_source(path, limit) for path in paths]
    if bring is not None:
        sources = [replace(source, bring=bring) for source in sources]
    symbol_paths = _as_list(symbols)
    folders = [path for path in symbol_paths if Path(path).is_dir()]
    options = Options(
        _symbol_sources(symbol_paths, limit), folders, _embedded_folders(embed_sources),
        _embedded_folders(_as_list(source_roots)), clock_offset_ns, _folders(_as_list(sysroot), "folder"),
        keep_cut_stacks_apart,
        limit=limit, adds_calls=adds_calls, find_symbols=find_symbols,
    )  # fmt: skip
    trace = Trace()
    trace.report.note("input_repeated", len(given) - len(paths), detail=", ".join(sorted(_repeated(given, paths))))
    try:
        groups = _groups(sources, format)
        readings = _read(groups)
        found = companions(sources, readings.values(), folders, trace, limit)
        readings |= _read_found(found, groups, trace)
        sources += found
        counter = next((r.counter for r in readings.values() if r.counter is not None), None)
        options = replace(options, counter=counter)
        _note_losses(trace, [*sources, *options.symbols])
        for importer in registry.IMPORTERS:
            if importer in readings:
                readings[importer].add_to(trace, options)
    except FormatError as error:
        raise _with_excerpt(error, sources) from None
    trace.sort()
    _note_interpreted(trace.report)
    trace.mark_loaded()
    if threads:
        trace = select_threads(trace, [threads] if isinstance(threads, str) else threads)
    if time_range is not None:
        trace = _in_range(trace, *time_range)
    return select_lasting(trace, min_duration_ns) if min_duration_ns > 0 else trace


@within_limits()
def save(
    trace: Trace,
    output: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    progress: Callable[[int], None] | None = None,
    without: Collection[str] = (),
) -> None:
    """Writes the trace; the output's suffix, or `format`, chooses how. "-" is standard output.

    progress: called with the number of records done since the last call; without: what a page does not embed,
    "firefox" or "perfetto". Raises UsageError if the output cannot be
    written; then nothing is left behind. What the format cannot carry goes into `trace.report`. The bytes do not depend
    on what the trace was used for before.
    """
    path = str(output)
    exporter = registry.exporter_named(format) if format else registry.exporter_for(path)
    write = exporter.writer(without)
    with trace.as_loaded(), open_output(path) as out:
        write(trace, out, progress or (lambda _: None))
    if out.n_bytes > exporter.viewer_limit:
        trace.report.note(
            "output_too_large",
            where=exporter.name,
            detail=f"{out.n_bytes / 1e9:.1f} GB for {exporter.viewer}, uncompressed",
            advice=advice.what_would_fit(trace, out.n_bytes, exporter.viewer_limit),
        )


def convert(
    inputs: Paths,
    output: str | Path,
    *,
    symbols: Paths = (),
    input_format: str | None = None,
    output_format: str | None = None,
    time_range: tuple[int | None, int | None] | None = None,
    min_duration_ns: int = 0,
    threads: str | Sequence[str] = (),
    embed_sources: bool | Paths = False,
    clock_offset_ns: int | None = None,
    sysroot: Paths = (),
    keep_cut_stacks_apart: bool = True,
    decompress_limit: int | None = None,
    without: Collection[str] = (),
) -> Report:
    """`load`, then `save`; returns the report of both."""
    trace = load(
        inputs,
        symbols=symbols,
        format=input_format,
        time_range=time_range,
        min_duration_ns=min_duration_ns,
        threads=threads,
        embed_sources=embed_sources,
        clock_offset_ns=clock_offset_ns,
        sysroot=sysroot,
        keep_cut_stacks_apart=keep_cut_stacks_apart,
        decompress_limit=decompress_limit,
    )
    save(trace, output, format=output_format, without=without)
    return trace.report


def _in_range(trace: Trace, start_ns: int | None, end_ns: int | None) -> Trace:
    """start_ns, end_ns: after the start of the recording. Raises UsageError if nothing lies between."""
    begins, ends = trace.start_ts, trace.end_ts
    # Without an end, what happens last is in the range.
    start, end = start_ns or 0, ends - begins + 1 if end_ns is None else end_ns
    if start > ends - begins or end <= max(start, 0):
        asked = "ends where the recording starts, or before" if end <= 0 else f"starts at {format_duration(start)}"
        asked = "is empty" if end_ns is not None and 0 < end <= start else asked
        raise UsageError(f"the range {asked}; the recording lasts {format_duration(ends - begins)}")
    return select_range(trace, begins + start, begins + end)


def _distinct(paths: list[str]) -> list[str]:
    """Without those that are a file that comes before."""
    return list({path if path == "-" else os.path.realpath(path): path for path in reversed(paths)}.values())[::-1]


def _repeated(given: list[str], paths: list[str]) -> set[str]:
    return {path for path in given if path not in paths or given.count(path) > 1}


def _as_list(paths: Paths) -> list[str]:
    return [str(paths)] if isinstance(paths, (str, Path)) else [str(path) for path in paths]


def _embedded_folders(given: bool | Paths) -> list[str]:
    paths = ["."] if given is True else [] if given is False else _as_list(given)
    return _folders(paths, "folder of source files")


def _folders(paths: Sequence[str], what: str) -> list[str]:
    """Returns the paths, absolute and without links. Raises UsageError."""
    for path in paths:
        if not Path(path).is_dir():
            raise UsageError(f"{path}: not a {what}")
    return [os.path.realpath(path) for path in paths]


Groups = dict[registry.Importer, list[Source]]


def _groups(sources: Sequence[Source], format: str | None) -> Groups:  # noqa: A002
    groups: Groups = {}
    for source in sources:
        importer = registry.importer_named(format) if format else registry.detect(source)
        groups.setdefault(importer, []).append(source)
    return groups


def _read(groups: Groups, before: Groups | None = None) -> dict[registry.Importer, Reading]:
    """Formats of which some files were read before are read again, all together."""
    already = before or {}
    return {i: i.module.read([*already.get(i, ()), *sources]) for i, sources in groups.items()}


def _read_found(found: list[Source], groups: Groups, trace: Trace) -> dict[registry.Importer, Reading]:
    """As _read, without those files that cannot be read: the report names them, and they leave the list."""
    while True:
        try:
            return _read(_groups(found, None), groups)
        except FormatError as error:
            bad = next((source for source in found if source.path == error.path), None)
            if bad is None:
                raise
            found.remove(bad)
            trace.report.note("companion_missing", where=bad.path, detail=str(error))


def _note_losses(trace: Trace, sources: Sequence[Source]) -> None:
    for source in sources:
        source.note_losses(trace.report)


def _symbol_sources(paths: list[str], limit: Limit) -> list[Source]:
    if not paths:
        return []
    # What reads symbols takes longer to import than a small recording to convert.
    from traceferry.symbolication.choose import symbol_files

    return [open_source(path, limit) for path in symbol_files(paths)]


def _with_excerpt(error: FormatError, sources: list[Source]) -> FormatError:
    """Adds the bytes around the offset."""
    source = next((s for s in sources if s.path == error.path), None)
    if source is not None and error.offset is not None:
        error.excerpt_at = max(0, min(error.offset, len(source.data)) - EXCERPT // 2) & ~15
        error.excerpt = bytes(source.data[error.excerpt_at : error.excerpt_at + EXCERPT])
    return error


def _note_interpreted(report: Report) -> None:
    if not kernels_are_compiled():
        report.note("kernels_interpreted")


def kernels_are_compiled() -> bool:
    from traceferry.timeline import calls_kernel

    return not str(calls_kernel.__file__).endswith(".py")
