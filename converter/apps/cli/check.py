"""The command `check`: whether a recording gives a valid trace, and what of it was lost or damaged."""

from __future__ import annotations

import argparse

from traceferry.apps.cli import coach, options
from traceferry.apps.cli.closed_pipe import to_the_end
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.common.shown_text import shown


def add_to(check: CommandParser) -> None:
    options.explain(
        check,
        "Reads a recording completely, checks the trace against the model's laws (balanced calls, rising "
        "times, valid indices...) and prints what the recording is worth, what to do next, and what was lost. Exit "
        "status 1 if a law is broken, which is a bug of traceferry, or if data is lost.",
        examples=f"traceferry check {options.RECORDING}\ntraceferry check {options.PROGRAM} --fail-on damage",
    )
    options.add_input_options(check)
    coach.add_verbosity(check, "print nothing: the exit status tells")
    options.add_fail_on(check, default="loss")


def run(arguments: argparse.Namespace) -> int:
    from traceferry.analysis.verdict import Tally, verdict_of
    from traceferry.model import laws

    tally = Tally(options.load_trace(arguments))
    report = tally.trace.report
    broken = laws.check(tally.trace)
    has_failed = bool(broken) or bool(coach.failing_issues(arguments, report))
    found = "the trace is not valid" if broken else "data was lost or damaged" if has_failed else "the trace is valid"
    if not arguments.quiet:
        printed = [issue for issue in report if arguments.verbose or issue.severity != "info"]
        n_more = len(list(report)) - len(printed)
        notes = "note" if n_more == 1 else "notes"
        more = f"; {n_more} {notes} on what was repaired or guessed: --verbose" if n_more else ""
        with to_the_end():
            for line in verdict_of(tally.trace, tally.samples, arguments.inputs).lines():
                print(shown(line))
            for law in broken:
                print(shown(f"broken law: {law}"))
            for issue in printed:
                print(issue.as_text())
            print(shown(f"{'failed' if has_failed else 'passed'}: {found}{more}"))
    return options.FOUND if has_failed else options.DONE
