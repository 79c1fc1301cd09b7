"""The command `info`: what is in a recording."""

from __future__ import annotations

import argparse

from traceferry.apps.cli import coach, options
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.progress import loaded


def add_to(info: CommandParser) -> None:
    options.explain(
        info,
        "Prints threads, counts, time, the functions with most self time, allocations, heap shots, "
        "counters, groups of events, code coverage, and what was lost.",
        examples=f"traceferry info {options.RECORDING} --top 50 --sort total\n"
        f"traceferry info {options.PROGRAM} --thread main\n"
        f"traceferry info {options.RECORDING} --json | jq .functions.top",
    )
    options.add_input_options(info)
    info.output.add_argument("--json", action="store_true", help="print JSON for scripts (see FORMATS.md)")
    info.output.add_argument(
        "--top", type=options.not_negative, default=20, metavar="N",
        help="the length of each list of functions, classes, sites... (default: 20)",
    )  # fmt: skip
    info.output.add_argument(
        "--sort", default="self", metavar="BY",
        help="the order of functions: self (time, default), total, calls, samples, or the name of an event",
    )  # fmt: skip
    coach.add_verbosity(info, "print no verdict and no report")
    options.add_fail_on(info)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.analysis.info.summary import summarize
    from traceferry.analysis.info.text import as_text

    with loaded(arguments, arguments.json or arguments.quiet, adds_calls=True) as (trace, progress):
        summary = summarize(trace, arguments.top, progress, arguments.sort, arguments.inputs)
    if arguments.json:
        import orjson

        print(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    else:
        names = [trace.func_name(func) for func in range(len(trace.funcs))]
        print(as_text(summary, names, has_verdict=not arguments.quiet, has_issues=arguments.verbose))
    return coach.status_of(arguments, trace.report)
