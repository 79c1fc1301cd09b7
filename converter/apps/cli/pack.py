"""The command `pack`: a recording, and what is found for it here, in one file."""

from __future__ import annotations

import argparse
from dataclasses import replace

from traceferry.apps.cli import coach, options
from traceferry.apps.cli.command_parser import CommandParser, OneOutput
from traceferry.apps.cli.progress import Downloads
from traceferry.common.errors import UsageError
from traceferry.files.output import beside, check_distinct

SUFFIX = ".tfpack"


def add_to(pack: CommandParser) -> None:
    options.explain(
        pack,
        "Puts recordings of one run into one file, with their jitdumps and map files, and what names their functions "
        "and unwinds their stacks: of each binary only what the recordings use. All commands read that file on any "
        "machine as the recordings are read on this one.",
        examples=f"traceferry pack {options.RECORDING} -o app.tfpack\n"
        f"traceferry pack {options.PROGRAM} -o app.tfpack\n"
        f"traceferry pack {options.RECORDING} --embed-sources src -o app.tfpack\n"
        "traceferry convert app.tfpack -o out.html",
    )
    options.add_input_options(pack)
    pack.output.add_argument(
        "-o", "--output", action=OneOutput, metavar="OUT", help="the pack (default: beside the first input)"
    )
    pack.output.add_argument(
        "--whole", action="store_true", help="keep all functions of the binaries, not only those that are used"
    )
    coach.add_verbosity(pack)


def run(arguments: argparse.Namespace) -> int:
    for option in ("range", "thread", "min_duration", "max_events"):
        if getattr(arguments, option):
            raise UsageError(f"--{option.replace('_', '-')} does not work with pack: it keeps whole recordings")
    if arguments.output is None and arguments.inputs[0] == "-":
        raise UsageError("standard input needs an output: -o OUT")
    from traceferry import packing

    output = arguments.output or beside(arguments.inputs[0], SUFFIX)
    check_distinct([output], arguments.inputs)
    with Downloads(arguments.quiet) as downloads:
        contents = packing.gather(
            arguments.inputs,
            symbols=arguments.symbols,
            options=replace(options.load_options(arguments), on_download=downloads),
            whole=arguments.whole,
        )
    if not arguments.quiet:
        for line in contents.missing:
            coach.tell(f"not found: {line}")
    coach.tell_losses(arguments, contents.report)
    n_bytes = packing.write(contents, output)
    if not arguments.quiet:
        for name, size in contents.sizes.items():
            coach.tell(f"{size:>12,} bytes of {name}")
        coach.tell(f"wrote {output}: {n_bytes:,} bytes")
    return options.DONE
