"""How recordings are read: what the user chooses, what an importer gets, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, Protocol

from traceferry.files.decompress import DEFAULT_LIMIT, Limit
from traceferry.files.source import Source

if TYPE_CHECKING:
    from traceferry.common.report import Report
    from traceferry.model import Array, TraceBuilder
    from traceferry.symbolication.debug_files import DebugFiles
    from traceferry.symbolication.debuginfod import OnDownload, Servers
    from traceferry.symbolication.interface import FindSymbols
    from traceferry.timeline.ticks import Counter

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class LoadOptions:
    """Options for reading recordings, and for what of them is kept.

    Parameters
    ----------
    format : str, optional
        Name of the input format, as ``traceferry formats`` lists them. Detected for each input by default.
    time_range : tuple of (int or None, int or None), optional
        Keeps what happens from the first time on and before the second one, in ns after the start of the recording.
        None is open. Everything by default.
    min_duration_ns : int, default 0
        Leaves out calls that are shorter, in ns.
    max_events : int, optional
        Sums short calls in place, where there are more events than that: calls, samples, allocations and all others.
        Time and calls of each function and thread stay what they are. No limit by default.
    threads : str or sequence of str, default ()
        Keeps only these threads, by number, name or part of the name. All by default.
    embed_sources : bool, path or sequence of paths, default False
        Folders: the text of source files that the recording names and that are in one of them goes into the trace.
        True is the working folder.
    source_roots : path or sequence of paths, default ()
        As `embed_sources`, for copies of the folders in which the program was built: a file is also found by the end
        of its recorded path.
    clock_offset_ns : int, optional
        Added to the times of samples to bring them onto the clock of the jitted code, where the recorder used another
        clock. Determined from the recording by default.
    cycle_frequency : int, optional
        Ticks of the processor's counter in a second. XRay's logs have it in their headers; its profiles do not: there a
        tick is a nanosecond by default, or lasts as in a log of the same recording.
    sysroots : path or sequence of paths, default ()
        Copies of the recorded machine's file tree, in which its binaries are searched at their recorded paths.
    keep_cut_stacks_apart : bool, default True
        Puts unwound stacks that are not complete under a frame that gives the reason.
    guess_wait_stacks : bool, default False
        Gives waits of which the recording has no stack that of the thread's sample before, below a function that says
        so: perf's SWITCH records, for one, have none.
    decompress_limit : int, optional
        The largest decompressed size of an input, in bytes. By default 1000 times its size, at least 16 MiB and at
        most 16 GiB.
    debuginfod : sequence of str or Servers, default ()
        Addresses of servers that are asked for binaries and debug files that are not here, by build id; "" stands for
        those of the environment's ``DEBUGINFOD_URLS``. With one `symbolication.debuginfod.Servers` for several
        recordings, a server that fails is waited for once. Nothing is downloaded by default.
    on_download : callable, optional
        Called with the file's name, the bytes that came since, and all its bytes (0 is unknown): when a server is
        asked for it, and while it is downloaded.
    symbol_server : str, default ""
        Address of a symbol server (samply's, or Mozilla's) that is asked for names of addresses of profiles, where
        nothing else names them. None is asked by default.
    trace_processor : str, optional
        Path of trace_processor_shell, which reads Perfetto traces. Searched by default; nothing is downloaded.
    search_working_folder : bool, default True
        Looks for the program that an XRay log is named after in the working folder, too; else only beside the log.
    adds_calls : bool, default False
        Promises that calls are only added up afterwards, as for summaries: some formats are then read faster.
    """

    format: str | None = None
    time_range: tuple[int | None, int | None] | None = None
    min_duration_ns: int = 0
    max_events: int | None = None
    threads: str | Sequence[str] = ()
    embed_sources: bool | Paths = False
    source_roots: Paths = ()
    clock_offset_ns: int | None = None
    cycle_frequency: int | None = None
    sysroots: Paths = ()
    keep_cut_stacks_apart: bool = True
    guess_wait_stacks: bool = False
    decompress_limit: int | None = None
    debuginfod: Sequence[str] | Servers = ()
    on_download: OnDownload | None = None
    symbol_server: str = ""
    trace_processor: str | None = None
    search_working_folder: bool = True
    adds_calls: bool = False


class ImportContext(NamedTuple):
    """The facts that an importer is given beside its files. options: the user's; symbols: files that name functions;
    in_folders: the paths of those of them that are in a folder that the user names, and not named themselves;
    folders: where to look for more; embed_sources, source_roots, sysroots: those of the options, absolute and without
    links; limit: of what is compressed; counter: how a recording converts the processor's counter, for inputs whose
    times are such; span: when samples were recorded, as Reading has it, for inputs of programs that ran before and
    after; find_symbols: asked for symbols that no file of the user's has; servers: of debuginfod, None if the user
    names none; mapped: the companions as recorded processes mapped them, for inputs that do not know what the recorder
    called their process."""

    options: LoadOptions = LoadOptions()
    symbols: Sequence[Source] = ()
    in_folders: frozenset[str] = frozenset()
    folders: Sequence[str] = ()
    embed_sources: Sequence[str] = ()
    source_roots: Sequence[str] = ()
    sysroots: Sequence[str] = ()
    limit: Limit = DEFAULT_LIMIT
    counter: Counter | None = None
    span: tuple[int, int] | None = None
    find_symbols: FindSymbols | None = None
    servers: Servers | None = None
    mapped: Sequence[MappedFile] = ()

    def debug_files(self, report: Report) -> DebugFiles:
        """Returns what searches the debug information of stripped files, and reports what it finds."""
        from traceferry.symbolication.debug_files import DebugFiles

        server = None
        if self.servers is not None:
            from traceferry.symbolication.debuginfod import Debuginfod

            server = Debuginfod(self.servers, report, self.options.on_download)
        return DebugFiles(
            report, self.sysroots, self.folders, self.limit, server, [source.path for source in self.symbols]
        )


class Companion(NamedTuple):
    """A file that belongs to a recording. path: as recorded; format: the only importer that may read it, by name;
    ended: when the recording did, in ns of CLOCK_MONOTONIC, None where that is not known: what begins later is of
    another run; nth: of the files that were at this path, each in a container of its own, or one after the other."""

    path: str
    format: str
    ended: int | None = None
    nth: int = 0

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return PurePosixPath(self.path).name

    @property
    def shown(self) -> str:
        """The path, by which the report and packs call it."""
        return f"{self.path} ({self.nth + 1})" if self.nth else self.path


class MappedFile(NamedTuple):
    """A companion in the memory of a process. path, pid: as recorded; file: which of the files that were at this path,
    from 0; ts: when it was mapped, in ns on the recorder's clock, 0: before; memory: uint64 [n, 2], where the process
    had executable memory of no file, [begin, end), rising; empty where no other file has the name; program: which of
    those that the process ran, one after the other, from 0."""

    path: str
    pid: int
    file: int
    ts: int
    memory: Array
    program: int = 0


class Reading(Protocol):
    """Files of one format, decoded, on their way into a trace."""

    @property
    def companions(self) -> Sequence[Companion]:
        """Files of other formats that these refer to and that belong to the recording."""

    @property
    def counter(self) -> Counter | None:
        """The conversion of the processor's counter into ns, where these files tell."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The times of the first event and the last sample, in ns of CLOCK_MONOTONIC; None where they are not on it, or
        these files have no samples."""

    @property
    def mapped(self) -> Sequence[MappedFile]:
        """The companions, as recorded processes mapped them."""

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        """Maps what was decoded. Raises FormatError for symbols that belong to something else."""


class OneByOne(NamedTuple):
    """Files that are gone through when they are mapped, each alone. to_trace: adds one, and raises FormatError for what
    is none of the format."""

    sources: Sequence[Source]
    to_trace: Callable[[Source, TraceBuilder, ImportContext], None]
    companions: Sequence[Companion] = ()
    counter: None = None
    span: None = None
    mapped: Sequence[MappedFile] = ()

    def add_to(self, trace: TraceBuilder, context: ImportContext) -> None:
        for source in self.sources:
            self.to_trace(source, trace, context)
