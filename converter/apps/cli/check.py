"""The command `check`: whether a recording gives a valid trace, and what of it was lost or damaged."""

from __future__ import annotations

import argparse

from traceferry.apps.cli import coach, options
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.common.shown_text import shown


def add_to(check: CommandParser) -> None:
    options.explain(
        check,
        "Reads a recording completely, checks the trace against the model's laws (balanced calls, rising "
        "times, valid indices...) and prints what was lost, repaired or guessed. Exit status 1 if a law is broken, "
        "which is a bug of traceferry, or if data is lost.",
        examples=f"traceferry check {options.RECORDING}\ntraceferry check {options.PROGRAM} --fail-on damage",
    )
    options.add_input_options(check)
    check.output.add_argument("-q", "--quiet", action="store_true", help="print nothing: the exit status tells")
    check.set_defaults(verbose=True)  # the report is what it prints
    options.add_fail_on(check, default="loss")


def run(arguments: argparse.Namespace) -> int:
    from traceferry.model import laws

    trace = options.load_trace(arguments)
    broken = laws.check(trace)
    status = options.FOUND if broken else coach.status_of(arguments, trace.report)
    found = "the trace is not valid" if broken else "data was lost or damaged" if status else "the trace is valid"
    if not arguments.quiet:
        for law in broken:
            print(shown(f"broken law: {law}"))
        for issue in trace.report:
            print(issue.as_text())
        print(shown(f"{'passed' if status == options.DONE else 'failed'}: {found}"))
    return status
