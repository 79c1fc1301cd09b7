"""The command `traceferry`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from traceferry import registry
from traceferry.errors import FormatError, UsageError

DONE, LOSSY, FAILED = 0, 1, 2
PROGRESS_AFTER_S = 0.5


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done; 1 done, and the input had lost or damaged data; 2 nothing written."""
    arguments = _parser().parse_args(argv)
    # NumPy's linear algebra, which is not used here, would start a spinning thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with _no_garbage_collection():
            status = arguments.run(arguments)
        sys.stdout.flush()
        return int(status)
    except FormatError as error:
        print(f"traceferry: {error}", file=sys.stderr)
        for line in error.hex_lines():
            print(f"  {line}", file=sys.stderr)
    except UsageError as error:
        print(f"traceferry: {error}", file=sys.stderr)
    except BrokenPipeError:
        # Nobody reads on; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("traceferry: interrupted", file=sys.stderr)
    return FAILED


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """What a command makes lives until its end: looking for garbage among it takes up to a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# ---------------------------------------------------------------- the commands


def _convert(arguments: argparse.Namespace) -> int:
    from traceferry.api import save

    output, exporter = _output_of(arguments)
    with _Progress(arguments.quiet) as progress:
        trace = _load(arguments)
        progress.total = sum(thread.n_records for _, thread in trace.threads)
        with _report_to(trace, arguments.report):
            save(trace, output, format=exporter.name, progress=progress)
    if not arguments.quiet:
        for issue in trace.report:
            print(issue.as_text(), file=sys.stderr)
        if output != "-":
            print(f"wrote {output}: open it in {exporter.viewer}", file=sys.stderr)
    return LOSSY if trace.report.lossy else DONE


def _output_of(arguments: argparse.Namespace) -> tuple[str, registry.Exporter]:
    """The output's path and its format: from -o and its suffix, --to, or beside the first input."""
    if arguments.output is None:
        exporter = registry.exporter_named(arguments.to or registry.DEFAULT_EXPORTER)
        first = arguments.inputs[0]
        if first == "-":
            raise UsageError("standard input needs an output: -o OUT")
        return first + registry.DEFAULT_SUFFIX[exporter.name], exporter
    if arguments.to:
        return arguments.output, registry.exporter_named(arguments.to)
    if arguments.output == "-":
        raise UsageError("standard output needs a format: --to firefox, gecko or perfetto")
    return arguments.output, registry.exporter_for(arguments.output)


def _info(arguments: argparse.Namespace) -> int:
    from traceferry.summary.info import summarize
    from traceferry.summary.text import as_text

    with _Progress(arguments.json) as progress:
        trace = _load(arguments)
        progress.total = sum(thread.n_records for _, thread in trace.threads)
        summary = summarize(trace, arguments.top, progress, arguments.sort)
    if arguments.json:
        import orjson

        print(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    else:
        print(as_text(summary))
    return LOSSY if trace.report.lossy else DONE


def _dump(arguments: argparse.Namespace) -> int:
    from traceferry.io.source import open_source

    if arguments.model:
        from traceferry.model import describe

        print(describe())
        return DONE
    if arguments.input is None:
        raise UsageError("dump needs an input, or --model")
    source = open_source(arguments.input)
    importer = registry.importer_named(arguments.format) if arguments.format else registry.detect(source)
    for line in islice(importer.module.dump(source, arguments.offset), arguments.limit):
        print(line)
    return DONE


def _symbols(arguments: argparse.Namespace) -> int:
    from traceferry.cli.durations import parse_duration
    from traceferry.io.source import open_source
    from traceferry.symbols import tool

    source = open_source(arguments.source)
    at_ns = None if arguments.at is None else parse_duration(arguments.at)
    symbols = tool.open_any(source, at_ns)
    n_different = 0
    if arguments.output:
        print(tool.make_gsym(symbols, source, arguments.output), file=sys.stderr)
    if arguments.lookup:
        sys.stdout.writelines(tool.lookup_text(symbols, source, _addresses(arguments.lookup)))
    if arguments.verify:
        n_compared, differences = tool.verify(symbols, tool.open_any(open_source(arguments.verify), None))
        for difference in differences[: arguments.limit]:
            print(tool.as_text(difference.address, difference.mine))
            print(f"  {arguments.verify} has {tool.as_text(difference.address, difference.other)}")
        n_different = len(differences)
        print(f"{n_compared} addresses compared, {n_different} differ")
    if not (arguments.output or arguments.lookup or arguments.verify):
        for line in tool.describe(symbols, source):
            print(line)
    for offset, what in symbols.problems[: arguments.limit]:
        print(f"{arguments.source}: damaged at offset {offset}: {what}", file=sys.stderr)
    return LOSSY if n_different or symbols.problems else DONE


def _addresses(words: Sequence[str]) -> Iterator[int]:
    """"-" stands for the words of standard input."""
    for word in words:
        if word == "-":
            yield from (_address(words[0]) for line in sys.stdin if (words := line.split(maxsplit=1)))
        else:
            yield _address(word)


def _address(word: str) -> int:
    try:
        # Python reads 1_0, too.
        address = -1 if "_" in word else int(word, 16)
    except ValueError:
        address = -1
    if address < 0:
        raise UsageError(f"{word!r} is no address: write it in hex, as 0x401000")
    if address >= 1 << 64:
        raise UsageError(f"{word!r} is no address: it has more than 64 bits")
    return address


def _formats(arguments: argparse.Namespace) -> int:
    from traceferry.api import kernels_are_compiled

    print("reads")
    for importer in registry.IMPORTERS:
        print(f"  {importer.name:10} {importer.title}")
    print("writes")
    for exporter in registry.EXPORTERS:
        suffixes = " ".join(exporter.suffixes)
        print(f"  {exporter.name:10} {exporter.title}, for {exporter.viewer} ({suffixes}, each also with .gz)")
    print(f"kernels: {'compiled' if kernels_are_compiled() else 'interpreted, slow (install with a C compiler)'}")
    return DONE


def _load(arguments: argparse.Namespace) -> Any:
    from traceferry.api import load
    from traceferry.cli.durations import parse_duration, parse_range

    return load(
        arguments.inputs,
        symbols=arguments.symbols,
        format=arguments.format,
        time_range=parse_range(arguments.range) if arguments.range else None,
        min_duration_ns=parse_duration(arguments.min_duration) if arguments.min_duration else 0,
        threads=arguments.thread,
        embed_sources=arguments.embed_sources,
    )


@contextmanager
def _report_to(trace: Any, path: str | None) -> Iterator[None]:
    """Opens the report's file first: if it cannot be written, nothing is."""
    if path is None:
        yield
        return
    import orjson

    from traceferry.io.output import open_output

    with open_output(path) as out:
        yield
        issues = [issue.as_json() for issue in trace.report]
        out.write(orjson.dumps({"issues": issues}, option=orjson.OPT_INDENT_2) + b"\n")


class _Progress:
    """A bar on a terminal, once the work has taken half a second; never in a pipe or in CI."""

    def __init__(self, quiet: bool) -> None:
        self._started = time.monotonic()
        self._shows = not quiet and sys.stderr.isatty() and "CI" not in os.environ
        self._done = 0
        self._bar: Any = None
        self.total = 0

    def __call__(self, n_records: int) -> None:
        self._done += n_records
        if self._bar is not None:
            self._bar.update(n_records)
        elif self._shows and time.monotonic() - self._started > PROGRESS_AFTER_S:
            from tqdm import tqdm

            self._bar = tqdm(total=self.total, initial=self._done, unit=" records", unit_scale=True, leave=False)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


# ---------------------------------------------------------------- the words


def _parser() -> argparse.ArgumentParser:
    example = registry.IMPORTERS[0].example
    parser = argparse.ArgumentParser(
        prog="traceferry",
        description="Turns runtime recordings into traces for profiler.firefox.com and ui.perfetto.dev.",
        epilog="exit status: 0 done; 1 done, and the input had lost or damaged data; 2 nothing written",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    convert = commands.add_parser(
        "convert",
        help="make a file that a viewer opens",
        description="Converts one or several recordings into one file that a viewer opens.",
        epilog=f"examples:\n  traceferry convert {example}\n"
        f"  traceferry convert {example} -o out.pftrace --min-duration 10us\n"
        f"  traceferry convert {example} -o out.json.gz --range 1s,1.5s\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_input_options(convert)
    convert.add_argument(
        "-o", "--output", metavar="OUT",
        help="where to; the suffix chooses the format: .json, .gecko.json, .pftrace or .perfetto-trace, each also with "
        ".gz; - is standard output (default: beside the first input)",
    )  # fmt: skip
    convert.add_argument("--to", metavar="NAME", help="output format: " + ", ".join(e.name for e in registry.EXPORTERS))
    convert.add_argument("--report", metavar="FILE.json", help="write what was lost, repaired or guessed, as JSON")
    convert.add_argument("--quiet", action="store_true", help="say nothing but errors")
    convert.set_defaults(run=_convert)

    info = commands.add_parser(
        "info",
        help="say what is in a recording",
        description="Threads, counts, time, the functions with most time of their own, allocations, heap snapshots, "
        "counters, groups of events, code coverage, and what was lost.",
    )
    _add_input_options(info)
    info.add_argument("--json", action="store_true", help="as JSON, an interface for scripts (see FORMATS.md)")
    info.add_argument(
        "--top", type=_not_negative, default=20, metavar="N",
        help="how many functions, classes, sites... of each list (default: 20)",
    )  # fmt: skip
    info.add_argument(
        "--sort", choices=("self", "total", "calls", "samples"), default="self",
        help="which functions come first: by time of their own (the default), total time, calls or samples",
    )  # fmt: skip
    info.set_defaults(run=_info)

    dump = commands.add_parser(
        "dump",
        help="print the records of a recording",
        description="Prints the records as they stand in the file, a line each, with their offsets.",
    )
    dump.add_argument("input", nargs="?", metavar="INPUT", help="a recording; - is standard input")
    dump.add_argument("--from", dest="format", metavar="NAME", help="input format, instead of detecting it")
    dump.add_argument("--offset", type=_not_negative, default=0, metavar="N", help="start there; 0x1f is read as hex")
    dump.add_argument("--limit", type=_not_negative, default=None, metavar="N", help="at most so many lines")
    dump.add_argument("--model", action="store_true", help="print the tables of the model instead")
    dump.set_defaults(run=_dump)

    symbols = commands.add_parser(
        "symbols",
        help="make a GSYM file, look addresses up, check symbols",
        description="Makes a GSYM file of a binary's debug information, of Breakpad symbols or of a recording's jitted "
        "code; prints what runs at addresses, with inlined functions; checks one file of symbols against another.",
        epilog="examples:\n  traceferry symbols app -o app.gsym\n"
        "  traceferry symbols app.gsym --lookup 0x1234 0x5678\n"
        "  traceferry symbols app.gsym --verify app\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    symbols.add_argument(
        "source", metavar="SOURCE", help="an ELF, GSYM or Breakpad file, or a recording of jitted code"
    )
    symbols.add_argument("-o", "--output", metavar="OUT.gsym", help="write its functions as GSYM")
    symbols.add_argument(
        "--lookup", nargs="+", metavar="ADDR", help="print what runs there, in hex as linked; - reads standard input"
    )
    symbols.add_argument(
        "--verify", metavar="FILE", help="compare with this file at the start, middle and end of each function"
    )
    symbols.add_argument("--limit", type=_not_negative, default=20, metavar="N", help="print so many differences")
    symbols.add_argument(
        "--at", metavar="TIME", help="of a recording, the code of this time after its start (default: the latest)"
    )
    symbols.set_defaults(run=_symbols)

    formats = commands.add_parser("formats", help="list what it reads and writes")
    formats.set_defaults(run=_formats)
    return parser


def _add_input_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="recordings, also compressed (.gz, .zst); - is standard input"
    )
    parser.add_argument(
        "--symbols", action="append", default=[], metavar="FILE-OR-DIR",
        help="the program that was recorded, once more for each shared object in the order of their loading; or a "
        "folder of such files, and of others that the recording refers to",
    )  # fmt: skip
    parser.add_argument(
        "--from", dest="format", metavar="NAME",
        help="input format, instead of detecting it: " + ", ".join(i.name for i in registry.IMPORTERS),
    )  # fmt: skip
    parser.add_argument(
        "--embed-sources", action="store_true",
        help="put the text of source files that the recording names and that are found here into the output",
    )  # fmt: skip
    parser.add_argument(
        "--range", metavar="START,END", help="only this part, in time after the start: 1s,1.5s or 200ms, or ,3s"
    )
    parser.add_argument(
        "--thread", action="append", default=[], metavar="NAME-OR-TID",
        help="only this thread, and others if it is given again: the number, the name, or a part of the name",
    )  # fmt: skip
    parser.add_argument("--min-duration", metavar="DUR", help="leave out shorter calls: 10us")


def _not_negative(text: str) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value
