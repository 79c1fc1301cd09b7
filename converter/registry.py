"""The formats: the only place outside importers/ and exporters/ that names them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from traceferry.common.errors import FormatError, OtherContentError, UsageError
from traceferry.common.shown_text import shown
from traceferry.common.suggestions import did_you_mean
from traceferry.files.json_text import JsonText, is_json, is_page, members_seen

if TYPE_CHECKING:
    from traceferry.analysis.compare.comparison import Comparison
    from traceferry.files.output import Output
    from traceferry.files.source import Source
    from traceferry.model import TraceBuilder
    from traceferry.reading import Reading

HEAD_SIZE = 256
TEXT_HEAD_SIZE = 1 << 16
MAX_MEMBERS = 8
GB = 10**9
# Of Chromium's texts: 2^29 - 24 characters (v8's String::kMaxLength).
LONGEST_TEXT = (1 << 29) - 24
# Writes a trace and calls the last argument with numbers of records that are done. Losses go into the trace's report.
Write = Callable[["TraceBuilder", "Output", Callable[[int], None]], None]
WriteComparison = Callable[["Comparison", "Output"], None]


class ImporterModule(Protocol):
    """A package of importers/."""

    def sniff(self, head: memoryview) -> bool:
        """Whether a file that starts with head has this format. Strict where there is no magic number."""

    def read(self, sources: Sequence[Source]) -> Reading:
        """Decodes the files, together. Raises FormatError if nothing can be decoded."""

    def dump(self, source: Source, offset: int) -> Iterator[str]:
        """Yields the records from `offset` on, one per line."""


class CompanionModule(ImporterModule, Protocol):
    """A package of importers/ of files that belong to recordings of another format."""

    def began_at(self, source: Source) -> int | None:
        """Returns the time of the first record, in ns of CLOCK_MONOTONIC; None where there is none on that clock."""

    def was_called(self, source: Source, name: str) -> bool:
        """Returns whether a file can have had this name when it was recorded, by what is in it."""


class Importer(NamedTuple):
    """An input format. imported: imports the package; finds_symbols: whether it asks ImportContext.find_symbols: its
    recordings name libraries, by build id. Others have their names inside, or need the program itself; viewer: the name
    of the exporter whose viewer shows such a file as it is; completes: its files belong to recordings of other formats,
    its package is a CompanionModule."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    example: str
    imported: Callable[[], ImporterModule]
    finds_symbols: bool = False
    viewer: str = ""
    completes: bool = False

    @property
    def module(self) -> ImporterModule:
        return self.imported()


class Exporter(NamedTuple):
    """An output format. suffixes: without .gz, which every exporter takes; default_suffix: of an output that the user
    does not name; viewer_limit: bytes beyond which the viewer gives up; imported: imports what writes a trace without
    some of what is in `holds`; holds: the names of other exporters whose outputs are in this one's; longer_suffix: of a
    format that holds the same, of which the viewer takes more; comparing: imports what writes a comparison."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    default_suffix: str
    viewer: str
    viewer_limit: int
    imported: Callable[[Collection[str]], Write]
    holds: tuple[str, ...] = ()
    longer_suffix: str = ""
    comparing: Callable[[], WriteComparison] | None = None

    def writer(self, without: Collection[str] = ()) -> Write:
        """Returns what writes a trace, without those of the outputs that it holds. Raises UsageError for another
        name."""
        unknown = next((name for name in without if name not in self.holds), None)
        if unknown is not None:
            pages = ", ".join(self.holds)
            reason = f"it holds {pages}" if self.holds else "only a page (.html) holds files for viewers"
            raise UsageError(f"--without {unknown}: the output is of the format {self.name}, and {reason}")
        return self.imported(without)


# ---------------------------------------------------------------- imported when they are needed


def _jitdump() -> ImporterModule:
    from traceferry.importers import jitdump

    return jitdump


def _perf() -> ImporterModule:
    from traceferry.importers import perf

    return perf


def _mono() -> ImporterModule:
    from traceferry.importers import mono

    return mono


def _perfetto_traces() -> ImporterModule:
    from traceferry.importers import perfetto

    return perfetto


def _xray() -> ImporterModule:
    from traceferry.importers import xray

    return xray


def _firefox_profile() -> ImporterModule:
    from traceferry.importers import firefox

    return firefox


def _pprof_profile() -> ImporterModule:
    from traceferry.importers import pprof

    return pprof


def _speedscope() -> ImporterModule:
    from traceferry.importers import speedscope

    return speedscope


def _cpuprofile() -> ImporterModule:
    from traceferry.importers import cpuprofile

    return cpuprofile


def _hermes() -> ImporterModule:
    from traceferry.importers import hermes

    return hermes


def _strace() -> ImporterModule:
    from traceferry.importers import strace

    return strace


def _perfscript() -> ImporterModule:
    from traceferry.importers import perfscript

    return perfscript


def _collapsed() -> ImporterModule:
    from traceferry.importers import collapsed

    return collapsed


def _gecko(_: Collection[str]) -> Write:
    from traceferry.exporters import gecko

    return gecko.write


def _autofdo(_: Collection[str]) -> Write:
    from traceferry.exporters import autofdo

    return autofdo.write


def _firefox(_: Collection[str]) -> Write:
    from traceferry.exporters import firefox

    return firefox.write


def _jslb(_: Collection[str]) -> Write:
    from traceferry.exporters import jslb

    return jslb.write


def _pprof(_: Collection[str]) -> Write:
    from traceferry.exporters import pprof

    return pprof.write


def _folded(_: Collection[str]) -> Write:
    from traceferry.exporters import folded

    return folded.write


def _firefox_comparison() -> WriteComparison:
    from traceferry.exporters.firefox import comparison

    return comparison.write_comparison


def _perfetto(_: Collection[str]) -> Write:
    from traceferry.exporters import perfetto

    return perfetto.write


def _perfetto_comparison() -> WriteComparison:
    from traceferry.exporters.perfetto import comparison

    return comparison.write_comparison


def _html(without: Collection[str], is_served: bool = False) -> Write:
    from traceferry.exporters import html

    held = [exporter_named(name) for name in exporter_named("html").holds if name not in without]
    wanted = [html.Embeddable(one.name, one.default_suffix, one.viewer, one.writer()) for one in held]
    return partial(html.write, wanted=wanted, is_served=is_served)


def _html_comparison() -> WriteComparison:
    from traceferry.exporters.html import comparison

    return comparison.write_comparison


# ---------------------------------------------------------------- the formats

# In the order in which they are asked, and in which they add to a trace: XRay has no magic number, so it is asked last;
# samples look for the code that the JIT compilers made.
IMPORTERS = (
    Importer(
        "jitdump", "jitdump of JIT compilers: versions 1 and 2, with samply's extensions, either byte order",
        (".dump",), "jit-1234.dump", _jitdump, completes=True,
    ),
    Importer(
        "perf", "perf.data of Linux perf: files, pipes and directories, compressed or not, either byte order",
        (".data",), "perf.data", _perf, finds_symbols=True,
    ),
    Importer(
        "mono", "Mono log profiler (.mlpd): data versions 1 to 17, header versions 0.1 to 3.0, 4 and 8-byte pointers",
        (".mlpd",), "output.mlpd", _mono,
    ),
    Importer(
        "pprof", "profiles of pprof (profile.proto), as Go's: .pb.gz", (".pb", ".prof", ".pprof"), "cpu.pb.gz",
        _pprof_profile, finds_symbols=True,
    ),
    Importer(
        "hermes", "profiles of Hermes (React Native), and other samples in Chrome's trace format", (".json",),
        "hermes-profile.json", _hermes,
    ),
    Importer(
        "strace", "text of strace with times: system calls, signals, exits, with -k stacks", (), "strace.txt", _strace,
    ),
    Importer(
        "perfetto", "Perfetto traces, Chrome JSON, systrace, Fuchsia, ART: through trace_processor (see query)",
        (".pftrace", ".perfetto-trace"), "trace.pftrace", _perfetto_traces, viewer="perfetto",
    ),
    Importer(
        "xray", "LLVM XRay: FDR mode versions 1 to 5, basic mode versions 1 to 3, either byte order",
        (".xray",), "app.xray --symbols app", _xray,
    ),
    Importer(
        "firefox", "profiles of the Firefox Profiler: processed up to version 75 (JSON, JSLB), Gecko versions 3 to 36",
        (".json", ".jslb"), "profile.json.gz", _firefox_profile, finds_symbols=True,
        viewer="firefox",
    ),
    Importer(
        "speedscope", "speedscope's files: samples and events, every version", (".speedscope.json",),
        "profile.speedscope.json", _speedscope,
    ),
    Importer(
        "cpuprofile", "CPU profiles of V8: of node --cpu-prof and Chrome's DevTools; sampled heaps",
        (".cpuprofile", ".heapprofile"), "node.cpuprofile", _cpuprofile,
    ),
    Importer(
        "perfscript", "text of perf script: samples with stacks, as it prints them by default or with -F", (),
        "perf.txt", _perfscript,
    ),
    Importer(
        "collapsed", "collapsed stacks: of stackcollapse-*.pl, async-profiler, py-spy, rbspy, austin and others",
        (".folded", ".collapsed", ".txt"), "stacks.folded", _collapsed,
    ),
)  # fmt: skip

# A longer suffix before the shorter one that it ends with.
EXPORTERS = (
    Exporter(
        "gecko", "Gecko profile, raw format, version 36", (".gecko.json",), ".gecko.json.gz", "profiler.firefox.com",
        LONGEST_TEXT, _gecko,
    ),
    Exporter(
        "firefox", "Firefox Profiler, processed format, version 70", (".json",), ".json.gz", "profiler.firefox.com",
        LONGEST_TEXT, _firefox, longer_suffix=".jslb.gz", comparing=_firefox_comparison,
    ),
    Exporter(
        "jslb", "the same as JSLB, for what is too long for JSON in a browser", (".jslb",), ".jslb.gz",
        "profiler.firefox.com", 4 * GB, _jslb,
    ),
    Exporter(
        "perfetto", "Perfetto protobuf trace", (".pftrace", ".perfetto-trace"), ".pftrace", "ui.perfetto.dev",
        GB, _perfetto, comparing=_perfetto_comparison,
    ),
    Exporter(
        "pprof", "pprof profile: what functions have, for each measure", (".pb",), ".pb.gz", "go tool pprof",
        GB, _pprof,
    ),
    Exporter(
        "folded", "collapsed stacks, text: what each call path has", (".folded",), ".folded",
        "flamegraph.pl or speedscope", GB, _folded,
    ),
    Exporter(
        "autofdo", "sample profile of LLVM, text: which lines of native functions run, from branches (AutoFDO)",
        (".afdo.txt",), ".afdo.txt", "clang -fprofile-sample-use=", GB, _autofdo,
    ),
    Exporter(
        "html", "page that opens anywhere, with the files for both viewers inside", (".html",), ".html", "any browser",
        GB, _html, holds=("firefox", "perfetto"), comparing=_html_comparison,
    ),
)  # fmt: skip
DEFAULT_EXPORTER = "firefox"


class Unwritten(NamedTuple):
    """A format that people expect behind these suffixes, and which is not written. instead: what its viewers read."""

    suffixes: tuple[str, ...]
    title: str
    instead: str


# Suffixes without .gz; some of them end with those of formats that are written.
UNWRITTEN = (
    Unwritten((".speedscope.json",), "speedscope's format", "speedscope reads .folded and .pb.gz"),
    Unwritten(
        (".perfetto.json", ".trace.json", ".chrome.json", ".chrometrace.json", ".perfetto"), "Chrome's trace format",
        "ui.perfetto.dev reads .pftrace",
    ),
    Unwritten(
        (".cpuprofile", ".heapprofile", ".heapsnapshot"), "V8's format",
        "profiler.firefox.com reads .json.gz, and .html opens in any browser",
    ),
    Unwritten((".collapsed",), "a file of this suffix", "collapsed stacks are .folded"),
    Unwritten((".pprof", ".prof"), "a file of this suffix", "pprof reads .pb.gz"),
    Unwritten((".svg",), "a picture", ".html opens in any browser, and flamegraph.pl makes a picture of .folded"),
    Unwritten((".zst", ".xz", ".bz2"), "a file of this compression", "each format is also written with .gz"),
)  # fmt: skip


def importer_named(name: str) -> Importer:
    for importer in IMPORTERS:
        if importer.name == name:
            return importer
    raise _unknown("input format", name, [importer.name for importer in IMPORTERS])


def exporter_named(name: str) -> Exporter:
    for exporter in EXPORTERS:
        if exporter.name == name:
            return exporter
    raise _unknown("output format", name, [exporter.name for exporter in EXPORTERS])


def _unknown(what: str, name: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"unknown {what} {name!r}{did_you_mean(name, known)}; known formats: {', '.join(known)}")


def served_page() -> Exporter:
    """Returns what writes a page that asks the server from which it comes for sources and instructions."""
    return exporter_named("html")._replace(imported=partial(_html, is_served=True))


def exporter_for(path: str) -> Exporter:
    """Returns the format that the suffix of an output's name stands for. Raises UsageError."""
    plain = path.removesuffix(".gz")
    for other in UNWRITTEN:
        if plain.endswith(other.suffixes):
            raise UsageError(f"{path}: {other.title} is not written: {other.instead} (or use --to)")
    for exporter in EXPORTERS:
        if plain.endswith(exporter.suffixes):
            return exporter
    suffixes = ", ".join(s for e in EXPORTERS for s in e.suffixes)
    raise UsageError(f"{path}: no output format has this suffix; known: {suffixes}, each also with .gz (or use --to)")


def sniffed(head: memoryview) -> Importer | None:
    """Returns the format of a file that begins with these bytes, decompressed; None is unknown."""
    return next((importer for importer in IMPORTERS if importer.module.sniff(head)), None)


def detect(source: Source) -> Importer:
    """Returns the format, by the first bytes. Raises FormatError, also for damaged JSON of which what is left does not
    tell the format; the suffix only adds advice to its message."""
    head = source.data[:HEAD_SIZE]
    # The members of an object may stand in any order, and a page holds anything: these are told apart by all of them.
    head = source.data if is_json(head) or is_page(head) else head
    # The first line of text may be longer.
    text = source.data[:TEXT_HEAD_SIZE]
    found = sniffed(head) or (sniffed(text) if len(text) > len(head) else None)
    if found is not None:
        return found
    from traceferry.files.known_files import kind_of_unknown, known_file

    known = known_file(source.data, source.path)
    if known:
        raise OtherContentError(f"{known} (see: traceferry formats)", 0, path=source.path)
    if is_json(head):
        if not members_seen(head)[1]:
            JsonText(source.data, source.path).root()  # which tells where the text is damaged, if it is
        seen = ", ".join(shown(name) for name in list(members_seen(head)[0])[:MAX_MEMBERS])
        hint = f": JSON text with the members {seen}" if seen else ": JSON text that is no profile"
    else:
        # Any text may be called .txt.
        is_general = source.name.endswith(".txt")
        by_suffix = next((i for i in IMPORTERS if source.name.endswith(i.suffixes) and not is_general), None)
        name = by_suffix.name if by_suffix else ""
        hint = kind_of_unknown(head, source.path)
        hint += f"; its suffix is that of {name}: to read it as that, --from {name}" if name else ""
    raise FormatError(f"unrecognised input format{hint} (see: traceferry formats)", 0, path=source.path)
