"""The command `info`: what is in a recording."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from traceferry.apps.cli import answers, coach, options
from traceferry.apps.cli.closed_pipe import print_to_the_end
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.progress import loaded
from traceferry.common.shown_text import without_unshowable

if TYPE_CHECKING:
    from traceferry.model import Trace


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
    answers.add_to(info)
    coach.add_verbosity(info, "print no verdict and no report")
    options.add_fail_on(info)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.analysis.info.summary import summarize
    from traceferry.analysis.info.text import as_text

    if answers.asked(arguments):
        return _answer(arguments)
    with loaded(arguments, arguments.json or arguments.quiet, adds_calls=True) as (trace, progress):
        summary = summarize(trace, arguments.top, progress, arguments.sort, arguments.inputs)
    if arguments.json:
        import orjson

        print_to_the_end(as_json_text(orjson.dumps(summary, option=orjson.OPT_INDENT_2)))
        return coach.status_of(arguments, trace.report)
    if arguments.markdown:
        from traceferry.analysis.info.markdown import as_markdown

        print_to_the_end(as_markdown(summary, _names(trace), has_verdict=not arguments.quiet))
    else:
        shown = {"has_verdict": not arguments.quiet, "has_issues": arguments.verbose}
        print_to_the_end(as_text(summary, _names(trace), top=arguments.top, **shown))
    return coach.status_of(arguments, trace.report)


def _names(trace: Trace) -> list[str]:
    return [trace.func_name(func) for func in range(len(trace.funcs))]


def _answer(arguments: argparse.Namespace) -> int:
    with loaded(arguments, arguments.json or arguments.quiet) as (trace, progress):
        found = answers.answers(arguments, trace, progress)
    if arguments.json:
        import orjson

        print_to_the_end(as_json_text(orjson.dumps({"answers": found}, option=orjson.OPT_INDENT_2)))
    elif arguments.markdown:
        print_to_the_end(answers.as_markdown(found))
    else:
        print_to_the_end(answers.as_text(found))
    return coach.status_of(arguments, trace.report)


def as_json_text(data: bytes) -> str:
    """Returns JSON as text in which what a terminal would take for a command is escaped. Line ends stay."""
    return "\n".join(
        without_unshowable(line, lambda char: "".join(f"\\u{unit:04x}" for unit in _units(char)))
        for line in data.decode().split("\n")
    )


def _units(char: str) -> list[int]:
    """Returns the units of a character in UTF-16, as JSON escapes it."""
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
