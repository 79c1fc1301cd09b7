"""The command `dump`: the records of a file, a line each."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from typing import Any

from traceferry import registry
from traceferry.cli.options import DONE, LOSSY, add_decompress_limit, not_negative
from traceferry.errors import UsageError


def add_to(commands: Any) -> None:
    dump = commands.add_parser(
        "dump",
        help="print the records of a recording",
        description="Prints the records as they stand in the file, a line each, with their offsets.",
    )
    dump.add_argument("input", nargs="?", metavar="INPUT", help="a recording; - is standard input")
    dump.add_argument("--from", dest="format", metavar="NAME", help="input format, instead of detecting it")
    dump.add_argument("--offset", type=not_negative, default=0, metavar="N", help="start there; 0x1f is read as hex")
    dump.add_argument("--limit", type=not_negative, default=None, metavar="N", help="at most so many lines")
    dump.add_argument("--model", action="store_true", help="print the tables of the model instead")
    add_decompress_limit(dump)
    dump.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.io.decompress import limit_of
    from traceferry.io.source import open_source

    if arguments.model:
        from traceferry.model import describe

        print(describe())
        return DONE
    if arguments.input is None:
        raise UsageError("dump needs an input, or --model")
    source = open_source(arguments.input, limit_of(arguments.decompress_limit))
    importer = registry.importer_named(arguments.format) if arguments.format else registry.detect(source)
    for line in islice(importer.module.dump(source, arguments.offset), arguments.limit):
        print(line)
    for what in filter(None, (source.damage, source.limited)):
        print(f"{arguments.input}: {what}", file=sys.stderr)
    return LOSSY if source.damage or source.limited else DONE
