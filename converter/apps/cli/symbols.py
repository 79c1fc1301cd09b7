"""The command `symbols`: makes GSYM files, looks addresses up, compares symbols."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traceferry.apps.cli import coach
from traceferry.apps.cli.closed_pipe import to_the_end
from traceferry.apps.cli.command_parser import CommandParser, OneOutput
from traceferry.apps.cli.options import (
    DONE,
    FOUND,
    add_decompress_limit,
    add_fail_on,
    add_search_options,
    explain,
    not_negative,
)
from traceferry.apps.cli.progress import Downloads
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown

if TYPE_CHECKING:
    from traceferry.model import Array

# Characters of standard input that are read together.
INPUT_PIECE = 1 << 20


def add_to(symbols: CommandParser) -> None:
    explain(
        symbols,
        "Makes a GSYM file from a binary's debug information, from Breakpad symbols or from a recording's "
        "jitted code; prints the functions at addresses, with inlined ones; compares two files of symbols "
        "(exit status 1 if they differ).",
        examples="traceferry symbols app -o app.gsym\n"
        "traceferry symbols app.gsym --lookup 0x1234 0x5678\n"
        "traceferry symbols /usr/lib/libx.so.1 --debuginfod --lookup 0x1234\n"
        "traceferry symbols app.gsym --json --lookup - < addresses.txt\n"
        "traceferry symbols app.gsym --verify app",
    )
    symbols.input.add_argument(
        "source", metavar="SOURCE",
        help="an ELF, GSYM, Breakpad, Mach-O, PE or PDB file, or a recording of jitted code, or its pack",
    )  # fmt: skip
    symbols.output.add_argument(
        "-o", "--output", action=OneOutput, metavar="OUT.gsym", help="write its functions as GSYM"
    )
    symbols.selection.add_argument(
        "--lookup", nargs="+", metavar="ADDR",
        help="print the functions at these addresses, in hex, as linked; - reads addresses from standard input",
    )  # fmt: skip
    symbols.output.add_argument("--json", action="store_true", help="print look-ups as JSON, one object on each line")
    coach.add_verbosity(symbols)
    symbols.output.add_argument(
        "--verify", metavar="FILE", help="compare with this file at the start, middle and end of each function"
    )
    symbols.output.add_argument(
        "--limit", type=not_negative, default=20, metavar="N", help="print at most N differences"
    )
    symbols.selection.add_argument(
        "--at", metavar="TIME", help="for a recording: the code at this time after its start (default: the latest)"
    )
    symbols.symbols.add_argument(
        "--symbols", action="append", default=[], metavar="FILE-OR-DIR",
        help="where the debug file of a stripped SOURCE is; a folder means what fits, in it and in its folders "
        "(default: found as for convert)",
    )  # fmt: skip
    add_search_options(symbols)
    add_decompress_limit(symbols)
    add_fail_on(symbols)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.apps.cli import symbol_files
    from traceferry.common.report import Report
    from traceferry.common.units import parse_duration
    from traceferry.files.decompress import limit_of
    from traceferry.files.source import open_source
    from traceferry.loading import context_of, note_unused
    from traceferry.reading import LoadOptions
    from traceferry.symbolication.demangle import Demangler

    if arguments.json and not arguments.lookup:
        raise UsageError("--json needs --lookup")
    limit = limit_of(arguments.decompress_limit)
    source = open_source(arguments.source, limit)
    at_ns = None if arguments.at is None else parse_duration(arguments.at)
    report = Report()
    downloads = Downloads(arguments.quiet)
    options = LoadOptions(sysroots=arguments.sysroot, debuginfod=arguments.debuginfod, on_download=downloads)
    context = context_of(arguments.symbols, options, limit)
    files = symbol_files.Files(context, report)
    with downloads:
        symbols = files.open(source, at_ns)
    n_different = 0
    demangle = Demangler()
    if arguments.output:
        made = symbol_files.make_gsym(symbols, source, arguments.output)
        if not arguments.quiet:
            coach.tell(made)
    if arguments.lookup:
        addresses = _addresses(arguments.lookup, symbol_files.AT_ONCE)
        look_up = symbol_files.lookup_json if arguments.json else symbol_files.lookup_text
        with to_the_end():
            sys.stdout.writelines(look_up(symbols, source, addresses, demangle))
    if arguments.verify:
        other = files.open(open_source(arguments.verify, limit))
        n_compared, differences = symbol_files.verify(symbols, other, demangle)
        n_different = len(differences)
        with to_the_end():
            for difference in differences[: arguments.limit]:
                print(symbol_files.as_text(difference.address, difference.mine))
                print(shown(f"  {arguments.verify} has"), symbol_files.as_text(difference.address, difference.other))
            print(shown(f"{n_compared} addresses compared, {n_different} differ"))
    if not (arguments.output or arguments.lookup or arguments.verify):
        for line in symbol_files.describe(symbols, source):
            print(shown(line))
    for what in filter(None, (source.damage, source.limited)):
        print(shown(f"{arguments.source}: {what}"), file=sys.stderr)
    demangle.note_kept(report, symbols.path)
    note_unused(arguments.symbols, context, report)
    if not arguments.quiet:
        coach.tell_issues(issue for issue in report if arguments.verbose or issue.kind != "files_read")
    for offset, what in symbols.problems[: arguments.limit]:
        print(shown(f"{arguments.source}: damaged at offset {offset}: {what}"), file=sys.stderr)
    is_damaged = bool(symbols.problems or source.damage)
    is_missing = any(issue.kind == "debug_files_missing" for issue in report)
    is_lossy = is_damaged or ((bool(source.limited) or is_missing) and arguments.fail_on == "loss")
    return FOUND if n_different or (is_lossy and arguments.fail_on) else DONE


def _addresses(words: Sequence[str], at_once: int) -> Iterator[Array]:
    """Yields the addresses, at least so many at once, but for the last ones."""
    import numpy as np

    waiting: list[Array] = []
    for some in _as_they_come(words):
        waiting.append(some)
        if sum(map(len, waiting)) >= at_once:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)


def _as_they_come(words: Sequence[str]) -> Iterator[Array]:
    """Yields the addresses; "-" stands for the first word of each line of standard input."""
    import numpy as np

    for word in words:
        if word == "-":
            while text := sys.stdin.read(INPUT_PIECE):
                yield from _first_words(text + sys.stdin.readline())
        else:
            yield np.array([_address(word)], np.uint64)


def _first_words(text: str) -> Iterator[Array]:
    """Yields the addresses of whole lines. What the kernel cannot read, Python reads, or says why it cannot."""
    import numpy as np

    from traceferry.apps.cli._look_ups import first_words

    lines, at = text.encode(errors="surrogateescape"), 0
    while at < len(lines):
        found, at = first_words(lines, at)
        yield found
        if at < len(lines):
            end = lines.find(b"\n", at)
            line, at = (lines[at:end], end + 1) if end >= 0 else (lines[at:], len(lines))
            words = line.decode(errors="surrogateescape").split(maxsplit=1)
            yield np.array([_address(word) for word in words[:1]], np.uint64)


def _address(word: str) -> int:
    try:
        # Python reads 1_0, too.
        address = -1 if "_" in word else int(word, 16)
    except ValueError:
        address = -1
    if address < 0:
        raise UsageError(f"{word!r} is not a valid address: write it in hex, as 0x401000")
    if address >= 1 << 64:
        raise UsageError(f"{word!r} is not a valid address: it has more than 64 bits")
    return address
