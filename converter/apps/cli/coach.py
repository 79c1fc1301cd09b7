"""What a command says on standard error of what it read: a verdict, and with --verbose the whole report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from traceferry.apps.cli.closed_pipe import to_the_end
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.options import DONE, FOUND
from traceferry.common.issue_kinds import KINDS
from traceferry.common.report import Issue, Report
from traceferry.common.shown_text import shown

if TYPE_CHECKING:
    from traceferry.analysis.totals.sums_of_trace import SampleTotals
    from traceferry.model import Trace


def add_verbosity(parser: CommandParser, quiet: str = "print errors only") -> None:
    """Adds -q and -v. quiet: what the first does."""
    parser.output.add_argument("-q", "--quiet", action="store_true", help=quiet)
    parser.output.add_argument(
        "-v", "--verbose", action="store_true",
        help="print all that was lost, repaired or guessed, and the files that were read",
    )  # fmt: skip


def tell(line: str) -> None:
    """Prints a line in which names of a recording may stand."""
    print(shown(line), file=sys.stderr)


def tell_verdict(arguments: argparse.Namespace, trace: Trace, samples: SampleTotals) -> None:
    """Prints what the recording is worth and what to do next; the report, where it is asked for."""
    from traceferry.analysis.verdict import verdict_of

    if arguments.quiet:
        return
    for line in verdict_of(trace, samples, arguments.inputs).lines():
        tell(line)
    tell_issues(issue for issue in trace.report if arguments.verbose or KINDS[issue.kind].is_told)


def tell_losses(arguments: argparse.Namespace, report: Report) -> None:
    """Prints what was lost or is damaged, and what is told anyway; all of the report, where it is asked for."""
    if not arguments.quiet:
        tell_issues(
            issue for issue in report
            if arguments.verbose or issue.severity != "info" or KINDS[issue.kind].is_told
        )  # fmt: skip


def tell_issues(issues: Iterable[Issue]) -> None:
    for issue in issues:
        print(issue.as_text(), file=sys.stderr)


def status_of(arguments: argparse.Namespace, report: Report) -> int:
    """Returns the exit status; prints why it is not 0, unless the report was printed."""
    failing = failing_issues(arguments, report)
    if failing and not arguments.verbose:
        with to_the_end():
            tell_issues(failing)
    return FOUND if failing else DONE


def failing_issues(arguments: argparse.Namespace, report: Report) -> list[Issue]:
    """Returns what --fail-on looks for."""
    severities = {"loss": ("loss", "error"), "damage": ("error",)}.get(arguments.fail_on, ())
    return [issue for issue in report if issue.severity in severities and not KINDS[issue.kind].of_output]
