"""Shared by several commands: parsers, the options of inputs and their meaning, exit statuses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from traceferry import registry
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.common.errors import UsageError
from traceferry.files.decompress import decompress, is_compressed, without_compression
from traceferry.files.source import is_recording_folder

if TYPE_CHECKING:
    from traceferry.model import Trace
    from traceferry.reading import LoadOptions
    from traceferry.symbolication.debuginfod import OnDownload

# Of `view`: the viewers by name, and a page of its own.
VIEWERS, PAGE = ("firefox", "perfetto"), "page"
# Exit statuses.
DONE = 0
FOUND = 1  # what --fail-on, --verify or check looks for
FAILED = 2  # nothing was written

# Of the formats, for --help: a recording of samples or code, and one of calls with its program.
SAMPLES = next(importer for importer in registry.IMPORTERS if importer.finds_symbols and not importer.viewer)
RECORDING = SAMPLES.example
PROGRAM = next(importer.example for importer in registry.IMPORTERS if "--symbols" in importer.example)
NAMES_OF_ANYTHING = (".txt",)
# Of a folder whose names tell of no recording, so many files are looked at, so far; to say what they are, fewer.
FILES_SNIFFED, FILES_LOOKED_AT, HEAD = 1000, 16, 1 << 16
OF_INSTRUMENTS = ".trace"
SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
COUNT_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}

Number = TypeVar("Number", int, float)
FailOn = Literal["loss", "damage"]
FAIL_ON: tuple[FailOn, ...] = ("loss", "damage")


def explain(parser: CommandParser, description: str, examples: str) -> None:
    """Adds what --help says of a command. examples: of command lines, one in each line."""
    parser.explanation = description
    parser.epilog = "examples:" + "".join(f"\n  {example}" for example in examples.splitlines())


def add_input_options(parser: CommandParser, may_lack: bool = False) -> None:
    """Adds the inputs and how they are read. may_lack: whether something else can name the inputs."""
    parser.input.add_argument(
        "inputs",
        nargs="*" if may_lack else "+",
        metavar="INPUT",
        help="recordings, plain or compressed (.gz, .zst, .xz, .bz2); - is standard input",
    )
    add_recording_options(parser)


def add_recording_options(parser: CommandParser) -> None:
    """Adds the options of `load_options`."""
    parser.symbols.add_argument(
        "--symbols", action="append", default=[], metavar="FILE-OR-DIR",
        help="the recorded program; repeat the option for each shared object, in load order; a folder means those "
        "that fit, in it and in its folders (default: the program that a log is named after, beside it)",
    )  # fmt: skip
    add_format_option(parser)
    parser.symbols.add_argument(
        "--embed-sources", action="append", nargs="?", const=".", default=[], metavar="DIR",
        help="embed the text of source files that the recording names and that are in this folder; repeat the option "
        "for several folders (default: the working folder)",
    )  # fmt: skip
    parser.rare.add_argument(
        "--clock-offset", metavar="DUR",
        help="add this to the times of samples to get times on the clock of the jitted code: 1.5s or =-20ms",
    )  # fmt: skip
    parser.rare.add_argument(
        "--cycle-frequency", metavar="HZ",
        help="how fast the processor's counter ticks, as 2.1GHz or 2100MHz, where a recording does not tell (default: "
        "a tick is a nanosecond)",
    )  # fmt: skip
    add_search_options(parser)
    parser.rare.add_argument(
        "--keep-cut-stacks-apart",
        choices=("yes", "no"),
        default="yes",
        help="show incomplete unwound stacks under a frame that gives the reason (default: yes)",
    )
    parser.rare.add_argument(
        "--guess-wait-stacks", action="store_true",
        help="give waits without a stack that of the thread's sample before, below a function that says so",
    )  # fmt: skip
    parser.selection.add_argument(
        "--range", metavar="START,END",
        help="keep only this part, in time since the start of the recording: 1s,1.5s or 200ms, or ,3s",
    )  # fmt: skip
    parser.selection.add_argument(
        "--thread", action="append", default=[], metavar="NAME-OR-TID",
        help="keep only this thread, by number, name or part of the name; repeat the option for several",
    )  # fmt: skip
    parser.selection.add_argument("--min-duration", metavar="DUR", help="leave out shorter calls: 10us")
    parser.selection.add_argument(
        "--max-events", type=count, metavar="N",
        help="sum short calls in place where there are more events, as 500K or 2M; totals stay what they are",
    )  # fmt: skip
    parser.rare.add_argument(
        "--trace-processor", metavar="PATH",
        help="the trace_processor_shell that reads Perfetto traces and SQL (default: as `traceferry formats` tells)",
    )  # fmt: skip
    add_decompress_limit(parser)


def add_search_options(parser: CommandParser) -> None:
    """Adds where binaries and debug files are searched that are not where they were recorded."""
    parser.symbols.add_argument(
        "--sysroot", action="append", default=[], metavar="DIR",
        help="a copy of the recorded machine's file tree; its binaries are searched there at their recorded paths",
    )  # fmt: skip
    parser.symbols.add_argument(
        "--debuginfod", action="append", nargs="?", const="", default=[], metavar="URL",
        help="download binaries and debug files that are not here from this server, by build id (default: the servers "
        "of the variable DEBUGINFOD_URLS); without the option nothing is downloaded",
    )  # fmt: skip
    parser.symbols.add_argument(
        "--symbol-server", default="", metavar="URL",
        help="ask this symbol server for functions of profiles that are addresses, after all else: that of samply load "
        "(http://127.0.0.1:3000/TOKEN), or https://symbolication.services.mozilla.com for Mozilla's programs",
    )  # fmt: skip


def with_values(words: Sequence[str]) -> list[str]:
    """Gives --embed-sources and --debuginfod a value where what follows is an input: argparse takes any word for it."""
    words = list(words)
    for nth, (word, following) in enumerate(pairwise(words)):
        if word == "--embed-sources" and not _is_folder_of_sources(following):
            words[nth] = "--embed-sources=."
        if word == "--debuginfod" and "://" not in following:
            words[nth] = "--debuginfod="
    return words


def share_servers(arguments: argparse.Namespace) -> None:
    """Makes one object of the servers of --debuginfod: one that fails is waited for once by all that a command reads.

    Raises UsageError if no server is named."""
    urls = getattr(arguments, "debuginfod", ())
    if urls:
        from traceferry.symbolication.debuginfod import Servers, servers_of

        arguments.debuginfod = Servers(servers_of(urls, os.environ))


def look_into_folders(arguments: argparse.Namespace) -> None:
    """Puts the recording in place of a folder that holds one, where the command does not take folders itself.

    Raises UsageError for a folder with several recordings, or none."""
    takes_folders = getattr(arguments, "batch", hasattr(arguments, "manifest"))
    if hasattr(arguments, "inputs") and not takes_folders:
        arguments.inputs = [recording_in(path) if is_mere_folder(path) else path for path in arguments.inputs]


def is_mere_folder(path: str) -> bool:
    """Whether the path is a folder, and no recording in itself."""
    return os.path.isdir(path) and not is_recording_folder(Path(path))


def recording_in(folder: str) -> str:
    """Returns the only recording of a folder."""
    found = recordings_in(folder)
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(os.path.basename(path) for path in found[:5])
        raise UsageError(f"{folder}: a folder with {len(found)} recordings: name one of {names}...")
    if folder.rstrip("/").endswith(OF_INSTRUMENTS):
        raise UsageError(f"{folder}: this is a recording of Instruments: samply record APP records stacks there, too")
    from traceferry.files.known_files import known_file

    for path in sorted(Path(folder).iterdir())[:FILES_LOOKED_AT]:
        what = known_file(_head_of(str(path)), path.name) if path.is_file() else ""
        if what:
            raise UsageError(f"{folder}: a folder without a recording in it; of {path.name}, {what}")
    suffixes = ", ".join(dict.fromkeys(suffix for importer in registry.IMPORTERS for suffix in importer.suffixes))
    raise UsageError(f"{folder}: a folder without a recording in it (none of {suffixes})")


def _head_of(path: str) -> memoryview:
    """Returns the first bytes of a file, decompressed; of one that cannot be read, none."""
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD)
    except OSError:
        return memoryview(b"")
    if not is_compressed(head):
        return memoryview(head)
    decompress(head, inside := bytearray(), HEAD)
    return memoryview(inside)


def recordings_in(folder: str) -> list[str]:
    """Returns the recordings of a folder, sorted: of samples before the jitted code that they need, and before what is
    also an output, which may be this one's own, or a name of anything. Suffixes tell them, and where names have none,
    as recorders give them, the first bytes."""
    names = sorted(name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name)))
    plain = {name: without_compression(name) for name in names}
    outputs = tuple(suffix for exporter in registry.EXPORTERS for suffix in exporter.suffixes)
    suffixes = tuple(suffix for importer in registry.IMPORTERS for suffix in importer.suffixes)
    recorded = tuple(suffix for suffix in suffixes if suffix not in outputs and suffix not in NAMES_OF_ANYTHING)

    def with_suffix(wanted: tuple[str, ...]) -> list[str]:
        return [name for name in names if plain[name].endswith(wanted)]

    found = with_suffix(SAMPLES.suffixes)
    if not found:
        others = [name for name in names if not plain[name].endswith(suffixes + outputs)][:FILES_SNIFFED]
        formats = {name: _format_of(os.path.join(folder, name)) for name in others}
        of_samples = [name for name in others if formats[name] is SAMPLES]
        of_others = [name for name in others if formats[name]]
        found = of_samples or with_suffix(recorded) or of_others or with_suffix(suffixes)
    return [os.path.join(folder, name) for name in found]


def _format_of(path: str) -> registry.Importer | None:
    """Returns the format of a file by its first bytes; any text may look like those that are called by any name."""
    found = registry.sniffed(_head_of(path))
    return found if found is None or not set(found.suffixes) & set(NAMES_OF_ANYTHING) else None


def _is_folder_of_sources(path: str) -> bool:
    """Whether the path is meant as one. A recording can be a folder, too; what does not exist is taken for a mistyped
    folder."""
    return not os.path.exists(path) or (os.path.isdir(path) and not is_recording_folder(Path(path)))


def add_decompress_limit(parser: CommandParser) -> None:
    parser.rare.add_argument(
        "--decompress-limit", type=size, metavar="SIZE",
        help="the largest decompressed size of an input, as 500M or 20G, or none (default: 1000 times its size, "
        "at least 16 MiB, at most 16 GiB)",
    )  # fmt: skip


def add_format_option(parser: CommandParser) -> None:
    names = ", ".join(importer.name for importer in registry.IMPORTERS)
    parser.rare.add_argument("--from", dest="format", metavar="NAME", help=f"input format (default: detected): {names}")


def add_fail_on(parser: CommandParser, default: FailOn | None = None) -> None:
    parser.output.add_argument(
        "--fail-on", choices=FAIL_ON, default=default,
        help="exit status 1 if the input has lost or damaged data (loss), or only if it is damaged (damage); "
        f"default: {default or 'exit status 0 in either case'}",
    )  # fmt: skip


def load_trace(arguments: argparse.Namespace, adds_calls: bool = False, on_download: OnDownload | None = None) -> Trace:
    from traceferry.api import load

    options = replace(load_options(arguments, adds_calls), on_download=on_download)
    return load(arguments.inputs, symbols=arguments.symbols, options=options)


def load_options(arguments: argparse.Namespace, adds_calls: bool = False) -> LoadOptions:
    """Returns what the arguments say about how recordings are read. Raises UsageError for malformed times."""
    from traceferry.common.units import parse_duration, parse_frequency, parse_offset, parse_range
    from traceferry.reading import LoadOptions

    return LoadOptions(
        format=arguments.format,
        time_range=parse_range(arguments.range) if arguments.range else None,
        min_duration_ns=parse_duration(arguments.min_duration) if arguments.min_duration else 0,
        max_events=arguments.max_events,
        threads=arguments.thread,
        embed_sources=arguments.embed_sources,
        source_roots=getattr(arguments, "source_root", ()),
        clock_offset_ns=parse_offset(arguments.clock_offset) if arguments.clock_offset else None,
        cycle_frequency=parse_frequency(arguments.cycle_frequency) if arguments.cycle_frequency else None,
        sysroots=arguments.sysroot,
        keep_cut_stacks_apart=arguments.keep_cut_stacks_apart == "yes",
        guess_wait_stacks=arguments.guess_wait_stacks,
        decompress_limit=arguments.decompress_limit,
        debuginfod=arguments.debuginfod,
        symbol_server=arguments.symbol_server,
        trace_processor=arguments.trace_processor,
        adds_calls=adds_calls,
    )


def number(
    read: Callable[[str], Number], what: str, is_valid: Callable[[Number], bool], must: str
) -> Callable[[str], Number]:
    """Returns a type of arguments. what: what `read` raises ValueError for; must: what `is_valid` holds it to."""

    def value_of(text: str) -> Number:
        try:
            value = read(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a {what}") from None
        if not is_valid(value):
            raise argparse.ArgumentTypeError(f"must {must}")
        return value

    return value_of


not_negative = number(partial(int, base=0), "whole number", lambda value: value >= 0, "not be negative")


def size(text: str) -> int:
    """Returns bytes; K, M, G and T are powers of 1024."""
    if text == "none":
        return sys.maxsize
    return _with_unit(text, SIZE_UNITS, "a size: write it as 500M or 20G, or none")


def count(text: str) -> int:
    """Returns a number; K, M and G are powers of 1000."""
    return _with_unit(text, COUNT_UNITS, "a number of events: write it as 500000, 500K or 2M")


def _with_unit(text: str, units: dict[str, int], what: str) -> int:
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not (number.isascii() and number.isdigit()) or unit not in units:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return int(number) * units[unit]


def add_jobs(parser: CommandParser) -> None:
    parser.output.add_argument(
        "--jobs", type=number(int, "whole number", lambda n: n >= 1, "be at least 1"), metavar="N",
        help="threads that prepare and compress the output (default: the processors of this process, at most 8); its "
        "bytes are the same for any number",
    )  # fmt: skip


def add_max_size(parser: CommandParser) -> None:
    parser.output.add_argument(
        "--max-size", type=size, metavar="SIZE",
        help="sum short calls in place until the output has at most this size, as 50M; totals stay what they are",
    )  # fmt: skip
