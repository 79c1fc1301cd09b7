"""The command `dump`: the records of a file, a line each."""

from __future__ import annotations

import argparse
import sys
from itertools import islice

from traceferry import registry
from traceferry.apps.cli import options
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown


def add_to(dump: CommandParser) -> None:
    options.explain(
        dump,
        "Prints the records in the order of the file, one on each line, with their offsets.",
        examples=f"traceferry dump {options.RECORDING} --limit 20\n"
        f"traceferry dump {options.RECORDING} --offset 0x1f40 --limit 5\n"
        "traceferry dump --model",
    )
    dump.input.add_argument("input", nargs="?", metavar="INPUT", help="a recording; - is standard input")
    options.add_format_option(dump)
    dump.selection.add_argument(
        "--offset", type=options.not_negative, default=0, metavar="N", help="start at this offset; 0x1f is hex"
    )
    dump.selection.add_argument(
        "--limit", type=options.not_negative, default=None, metavar="N", help="print at most N lines"
    )
    dump.output.add_argument("--model", action="store_true", help="print the tables of the model instead")
    options.add_decompress_limit(dump)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.files.decompress import limit_of
    from traceferry.files.pack import inputs_of
    from traceferry.files.source import open_source

    if arguments.model:
        from traceferry.model import describe

        print(describe())
        return options.DONE
    if arguments.input is None:
        raise UsageError("dump needs an input, or --model")
    source = inputs_of(open_source(arguments.input, limit_of(arguments.decompress_limit)))[0]
    importer = registry.importer_named(arguments.format) if arguments.format else registry.detect(source)
    for line in islice(importer.module.dump(source, arguments.offset), arguments.limit):
        print(shown(line))
    for what in filter(None, (source.damage, source.limited)):
        print(shown(f"{arguments.input}: {what}"), file=sys.stderr)
    return options.DONE
