"""The command `symbols`: makes GSYM files, looks addresses up, compares symbols."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from traceferry.cli.options import DONE, LOSSY, add_decompress_limit, not_negative
from traceferry.errors import UsageError


def add_to(commands: Any) -> None:
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
    symbols.add_argument("--limit", type=not_negative, default=20, metavar="N", help="print so many differences")
    symbols.add_argument(
        "--at", metavar="TIME", help="of a recording, the code of this time after its start (default: the latest)"
    )
    add_decompress_limit(symbols)
    symbols.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.durations import parse_duration
    from traceferry.io.decompress import limit_of
    from traceferry.io.source import open_source
    from traceferry.symbols import tool

    limit = limit_of(arguments.decompress_limit)
    source = open_source(arguments.source, limit)
    at_ns = None if arguments.at is None else parse_duration(arguments.at)
    symbols = tool.open_any(source, at_ns)
    n_different = 0
    if arguments.output:
        print(tool.make_gsym(symbols, source, arguments.output), file=sys.stderr)
    if arguments.lookup:
        sys.stdout.writelines(tool.lookup_text(symbols, source, _addresses(arguments.lookup)))
    if arguments.verify:
        n_compared, differences = tool.verify(symbols, tool.open_any(open_source(arguments.verify, limit), None))
        for difference in differences[: arguments.limit]:
            print(tool.as_text(difference.address, difference.mine))
            print(f"  {arguments.verify} has {tool.as_text(difference.address, difference.other)}")
        n_different = len(differences)
        print(f"{n_compared} addresses compared, {n_different} differ")
    if not (arguments.output or arguments.lookup or arguments.verify):
        for line in tool.describe(symbols, source):
            print(line)
    for what in filter(None, (source.damage, source.limited)):
        print(f"{arguments.source}: {what}", file=sys.stderr)
    for offset, what in symbols.problems[: arguments.limit]:
        print(f"{arguments.source}: damaged at offset {offset}: {what}", file=sys.stderr)
    return LOSSY if n_different or symbols.problems or source.damage or source.limited else DONE


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
