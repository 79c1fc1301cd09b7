"""The library: load recordings into a Trace, save a Trace, or both at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from traceferry import registry
from traceferry.common.errors import within_limits
from traceferry.common.report import Report
from traceferry.files.output import default_jobs, open_output
from traceferry.loaded_trace import LoadedTrace
from traceferry.loading import load_inputs, narrowed
from traceferry.model import Trace, TraceBuilder
from traceferry.reading import LoadOptions, Paths

if TYPE_CHECKING:
    from traceferry.symbolication.interface import FindSymbols


@within_limits()
def load(
    inputs: Paths,
    *,
    symbols: Paths = (),
    options: LoadOptions | None = None,
    find_symbols: FindSymbols | None = None,
    bring: Callable[[str, Report], None] | None = None,
    folders: Paths = (),
) -> LoadedTrace:
    """Reads one or several recordings of one run into one trace on one clock.

    Parameters
    ----------
    inputs : path or sequence of paths
        The recordings, plain or compressed; "-" is standard input.
    symbols : path or sequence of paths, default ()
        Binaries, files of symbols, or folders of them, that name the functions.
    options : LoadOptions, optional
        How the recordings are read, and what of them is kept. By default, everything.
    find_symbols : callable, optional
        Finds symbols by build id and name. Asked after the files of `symbols` and before those that the recording
        names.
    bring : callable, optional
        Called with the name of each file that is looked for beside an input, before it is looked for, and the trace's
        report: copies it there, where the inputs are copies themselves.
    folders : path or sequence of paths, default ()
        Searched as folders of `symbols` are, but for files that name functions: `find_symbols` knows those.

    Returns
    -------
    LoadedTrace
        What was recorded. Its report lists what was lost; some losses are found only when a thread is loaded.

    Raises
    ------
    FormatError
        If an input cannot be read at all.
    UsageError
        If a file is missing, a name or thread is unknown, the time range lies outside the recording, or memory runs
        out.
    """
    options = options or LoadOptions()
    return LoadedTrace(narrowed(load_inputs(inputs, symbols, options, find_symbols, bring, folders=folders), options))


@within_limits()
def save(
    trace: Trace,
    output: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the word of the command line
    progress: Callable[[int], None] | None = None,
    without: Collection[str] = (),
    max_size: int | None = None,
    jobs: int | None = None,
) -> None:
    """Writes a trace for a viewer. The bytes do not depend on what the trace was used for before.

    Parameters
    ----------
    trace : Trace
        What to write. What the format cannot carry goes into its report.
    output : path
        The file; "-" is standard output.
    format : str, optional
        Name of the output format, as ``traceferry formats`` lists them. By default, the output's suffix tells.
    progress : callable, optional
        Called with the number of records that were written since the last call.
    without : collection of str, default ()
        What a page does not embed: "firefox", "perfetto" or both.
    max_size : int, optional
        Bytes of the output. Where it would be larger, short calls are summed in place until it is not; time and calls
        of each function and thread stay what they are.
    jobs : int, optional
        Threads that compress. By default as many as there are processors for this process, at most 8. The output's
        bytes do not depend on it.

    Raises
    ------
    UsageError
        If the output cannot be written; then nothing is left behind.
    """
    path = str(output)
    exporter = registry.exporter_named(format) if format else registry.exporter_for(path)
    save_by(exporter, trace, path, progress=progress, without=without, max_size=max_size, jobs=jobs)


@within_limits()
def save_by(
    exporter: registry.Exporter,
    trace: Trace,
    path: str,
    *,
    progress: Callable[[int], None] | None = None,
    without: Collection[str] = (),
    max_size: int | None = None,
    jobs: int | None = None,
) -> None:
    """Writes a trace as `save` does, by an exporter that no name stands for."""
    write, progress = exporter.writer(without), progress or (lambda _: None)
    if max_size is not None:
        from traceferry.fitting import save_within

        n_bytes = save_within(trace, path, write, progress, max_size, jobs or default_jobs())
    else:
        with open_output(path, jobs=jobs or default_jobs()) as out:
            write(TraceBuilder(trace), out, progress)
        n_bytes = out.n_bytes
    if n_bytes > exporter.viewer_limit:
        from traceferry.timeline import advice

        longer = f"write {exporter.longer_suffix}; or " if exporter.longer_suffix else ""
        trace.report.note(
            "output_too_large",
            where=exporter.name,
            detail=f"{n_bytes / 1e9:.1f} GB for {exporter.viewer}, uncompressed",
            advice=longer + advice.what_would_fit(trace, n_bytes, exporter.viewer_limit),
        )


def convert(
    inputs: Paths,
    output: str | Path,
    *,
    symbols: Paths = (),
    options: LoadOptions | None = None,
    format: str | None = None,  # noqa: A002 - as of `save`
    without: Collection[str] = (),
) -> Report:
    """Loads recordings and saves the trace.

    Parameters
    ----------
    inputs : path or sequence of paths
        The recordings, as of `load`.
    output : path
        The file; "-" is standard output.
    symbols : path or sequence of paths, default ()
        What names the functions, as of `load`.
    options : LoadOptions, optional
        How the recordings are read, and what of them is kept. By default, everything.
    format : str, optional
        Name of the output format, as of `save`.
    without : collection of str, default ()
        What a page does not embed, as of `save`.

    Returns
    -------
    Report
        What was lost, repaired or guessed.

    Raises
    ------
    FormatError
        If an input cannot be read at all.
    UsageError
        As of `load` and `save`.
    """
    trace = load(inputs, symbols=symbols, options=options)
    save(trace, output, format=format, without=without)
    return trace.report
