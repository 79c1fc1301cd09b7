"""The formats: the only place outside importers/ and exporters/ that names them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from traceferry.common.errors import FormatError, UsageError
from traceferry.files.output import Output
from traceferry.files.source import Source
from traceferry.reading import Reading

if TYPE_CHECKING:
    from traceferry.analysis.compare.comparison import Comparison
    from traceferry.model import Trace

HEAD_SIZE = 256


class ImporterModule(Protocol):
    """What a module of importers/ offers."""

    def sniff(self, head: memoryview) -> bool:
        """Whether a file that starts with head has this format. Strict where there is no magic number."""

    def read(self, sources: Sequence[Source]) -> Reading:
        """Decodes the files, together. Raises FormatError if nothing can be decoded."""

    def dump(self, source: Source, offset: int) -> Iterator[str]:
        """The records from `offset` on, one per line."""


class ExporterModule(Protocol):
    """What a module of exporters/ offers."""

    def write(self, trace: Trace, out: Output, progress: Callable[[int], None]) -> None:
        """Streams the trace. Losses go into the trace's report."""


class ComposedModule(Protocol):
    """What a module of exporters/ offers whose output holds those of other exporters."""

    def write(self, trace: Trace, out: Output, progress: Callable[[int], None], without: Collection[str]) -> None:
        """As that of ExporterModule. without: names of the other exporters whose outputs are left out."""


class ComparingModule(Protocol):
    """What a module exporters/NAME/comparison.py offers."""

    def write_comparison(self, comparison: Comparison, out: Output) -> None:
        """Writes what changed, as this format shows it."""


class Importer(NamedTuple):
    """finds_symbols: whether it asks Options.find_symbols: its recordings name libraries, by build id. Others have
    their names inside, or need the program itself."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    example: str
    finds_symbols: bool = False

    @property
    def module(self) -> ImporterModule:
        return cast(ImporterModule, import_module(f"traceferry.importers.{self.name}"))


class Exporter(NamedTuple):
    """suffixes: without .gz, which every exporter takes; viewer_limit: bytes beyond which the viewer gives up; holds:
    the names of other exporters whose outputs are in this one's; compares: whether its package has a module
    `comparison`."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    viewer: str
    viewer_limit: int
    holds: tuple[str, ...] = ()
    compares: bool = False

    @property
    def module(self) -> ExporterModule:
        return cast(ExporterModule, import_module(f"traceferry.exporters.{self.name}"))

    @property
    def comparing(self) -> ComparingModule:
        return cast(ComparingModule, import_module(f"traceferry.exporters.{self.name}.comparison"))

    def writer(self, without: Collection[str] = ()) -> Callable[[Trace, Output, Callable[[int], None]], None]:
        """What writes a trace, without those of the outputs that it holds. Raises UsageError for another name."""
        unknown = next((name for name in without if name not in self.holds), None)
        if unknown is not None:
            raise UsageError(f"{self.name} holds no {unknown!r}" + (f"; it holds {self.holds}" if self.holds else ""))
        if not self.holds:
            return self.module.write
        return partial(cast(ComposedModule, self.module).write, without=without)


# In the order in which they are asked, and in which they add to a trace: XRay has no magic number, so it is asked last;
# samples look for the code that the JIT compilers made.
IMPORTERS = (
    Importer(
        "jitdump",
        "jitdump of JIT compilers: versions 1 and 2, with samply's extensions, either byte order",
        (".dump",),
        "jit-1234.dump",
    ),
    Importer(
        "perf",
        "perf.data of Linux perf: files, pipes and directories, compressed or not, either byte order",
        (".data",),
        "perf.data",
        finds_symbols=True,
    ),
    Importer(
        "mono",
        "Mono log profiler (.mlpd): data versions 1 to 17, header versions 0.1 to 3.0, 4 and 8-byte pointers",
        (".mlpd",),
        "output.mlpd",
    ),
    Importer(
        "xray",
        "LLVM XRay: FDR mode versions 1 to 5, basic mode versions 1 to 3, either byte order",
        (".xray",),
        "app.xray --symbols app",
    ),
)

GB = 10**9
# A longer suffix before the shorter one that it ends with.
EXPORTERS = (
    Exporter("gecko", "Gecko profile, raw format, version 36", (".gecko.json",), "profiler.firefox.com", GB),
    Exporter(
        "firefox", "Firefox Profiler, processed format, version 70", (".json",), "profiler.firefox.com", GB,
        compares=True,
    ),
    Exporter(
        "perfetto", "Perfetto protobuf trace", (".pftrace", ".perfetto-trace"), "ui.perfetto.dev", GB, compares=True
    ),
    Exporter(
        "html", "page that opens anywhere, with both of these inside", (".html",), "any browser", GB,
        holds=("firefox", "perfetto"), compares=True,
    ),
)  # fmt: skip
DEFAULT_EXPORTER = "firefox"
DEFAULT_SUFFIX = {"firefox": ".json.gz", "gecko": ".gecko.json.gz", "perfetto": ".pftrace", "html": ".html"}


def importer_named(name: str) -> Importer:
    for importer in IMPORTERS:
        if importer.name == name:
            return importer
    raise UsageError(f"unknown input format {name!r}; known formats: {', '.join(i.name for i in IMPORTERS)}")


def exporter_named(name: str) -> Exporter:
    for exporter in EXPORTERS:
        if exporter.name == name:
            return exporter
    raise UsageError(f"unknown output format {name!r}; known formats: {', '.join(e.name for e in EXPORTERS)}")


def exporter_for(path: str) -> Exporter:
    """By the suffix of an output's name."""
    plain = path.removesuffix(".gz")
    for exporter in EXPORTERS:
        if plain.endswith(exporter.suffixes):
            return exporter
    suffixes = ", ".join(s for e in EXPORTERS for s in e.suffixes)
    raise UsageError(f"{path}: no output format has this suffix; known: {suffixes}, each also with .gz (or use --to)")


def detect(source: Source) -> Importer:
    """By the first bytes. Raises FormatError; the suffix only adds advice to its message."""
    head = source.data[:HEAD_SIZE]
    for importer in IMPORTERS:
        if importer.module.sniff(head):
            return importer
    by_suffix = next((i for i in IMPORTERS if source.name.endswith(i.suffixes)), None)
    hint = f"; its suffix is that of {by_suffix.name}: to read it as that, --from {by_suffix.name}" if by_suffix else ""
    raise FormatError(f"unrecognised input format{hint} (see: traceferry formats)", 0, path=source.path)
