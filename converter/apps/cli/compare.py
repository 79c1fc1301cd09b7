"""The command `compare`: what changed between recordings, and whether it is more than noise."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from traceferry import registry
from traceferry.apps.cli import coach
from traceferry.apps.cli.closed_pipe import print_to_the_end, to_the_end
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.options import (
    DONE,
    RECORDING,
    add_recording_options,
    explain,
    is_mere_folder,
    not_negative,
    number,
    recording_in,
    recordings_in,
    size,
)
from traceferry.apps.cli.progress import loaded
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.report import Issue, Report
from traceferry.common.shown_text import shown
from traceferry.files.output import check_distinct, open_output

if TYPE_CHECKING:
    from traceferry.analysis.compare.comparison import Comparison, Options
    from traceferry.analysis.compare.gate import Outcome
    from traceferry.analysis.compare.runs import Run
    from traceferry.registry import WriteComparison

BREACHED = 3  # a gate failed
part = number(float, "number", lambda value: 0 < value < 1, "be above 0 and below 1")
METHODS = ("typical", "whole", "none")
# The kinds of issues that say which symbols were taken.
UNUSED = "symbols_unused"
OF_SYMBOLS = ("program_unverified", "program_unused", UNUSED)


def add_to(compare: CommandParser) -> None:
    explain(
        compare,
        "Compares one or several recordings (runs) of a program with those of another build of it: time, "
        "samples, calls, allocations, code size, pauses. Says of each difference whether it is more than noise; five "
        "runs on each side tell much more than one.",
        examples=f"traceferry compare base.{RECORDING} new.{RECORDING}\n"
        f"traceferry compare --base 'base/*' --new 'new/*' --fail-on 'self > 5%'\n"
        f"traceferry compare --base 'base/*' --new 'new/*' -o diff.html",
    )
    compare.input.add_argument(
        "recordings", nargs="*", metavar="BASE NEW",
        help="two recordings, or folders of several, each a run, or those that `aggregate` wrote: one of each build",
    )  # fmt: skip
    compare.input.add_argument(
        "--base", action="extend", nargs="+", default=[], metavar="GLOB",
        help="recordings of the base, each a run: files, folders of them, or patterns in quotes",
    )  # fmt: skip
    compare.input.add_argument(
        "--new", action="extend", nargs="+", default=[], metavar="GLOB", help="those to compare with"
    )
    compare.synonyms |= {
        "--vs": "--new", "--after": "--new", "--against": "--base", "--baseline": "--base", "--before": "--base",
        "--old": "--base",
    }  # fmt: skip
    add_recording_options(compare)
    for side in ("base", "new"):
        compare.symbols.add_argument(
            f"--{side}-symbols", action="append", default=[], metavar="FILE-OR-DIR",
            help=f"as --symbols, for the {side} side only",
        )  # fmt: skip
    compare.selection.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW",
        help="a function or class that got another name; * in OLD stands for any text, and in NEW for the same",
    )  # fmt: skip
    compare.rare.add_argument(
        "--normalise", choices=METHODS, default="typical",
        help="how runs of different length are brought to one level: by the typical function (default), by the whole, "
        "or not at all",
    )  # fmt: skip
    compare.selection.add_argument(
        "--leave-out-disturbed", action="store_true",
        help="compare without runs that lost samples or were much slower than the others of their side",
    )  # fmt: skip
    compare.rare.add_argument(
        "--alpha", type=part, default=0.01, metavar="P",
        help="how many of the changes that are called significant may be chance, as a part (default: 0.01)",
    )  # fmt: skip
    compare.rare.add_argument(
        "--margin", type=part, default=0.05, metavar="P",
        help="changes that are surely within this part count as the same (default: 0.05)",
    )  # fmt: skip
    compare.output.add_argument(
        "-o", "--output", action="append", default=[], metavar="OUT",
        help="a page with a differential flame graph (.html), or a file for a viewer (.json.gz, .pftrace); repeat the "
        "option for several",
    )  # fmt: skip
    compare.output.add_argument(
        "--fail-on", action="append", default=[], metavar="EXPR",
        help="exit status 3 if a significant change is beyond this: self > 5%%, total('main') > 50ms, calls > 0, "
        "allocated_bytes('Order') > 1%%, gc_pause.p99 > 10ms, code_size > 2%%, cache-misses('parse') > 5%%, "
        "ipc('parse') < 1.2; repeat the option for several",
    )  # fmt: skip
    compare.output.add_argument(
        "--strict", action="store_true",
        help="exit status 3 also where the data is too poor to decide --fail-on: for the row that it names; without a "
        "name, for the rows whose possible change is 1 percent of the whole or more",
    )  # fmt: skip
    compare.output.add_argument(
        "--json", metavar="FILE", nargs="?", const="-", help="write JSON (see FORMATS.md; default: -)"
    )
    compare.output.add_argument(
        "--markdown", metavar="FILE", nargs="?", const="-", help="write Markdown for the summary of a job (default: -)"
    )
    compare.rare.add_argument(
        "--markdown-limit", type=size, default=64_000, metavar="SIZE", help="its largest size (default: 64000)"
    )
    compare.output.add_argument(
        "--top", type=not_negative, default=20, metavar="N", help="the length of each list (default: 20)"
    )
    coach.add_verbosity(compare, "print no text, only the reasons of --fail-on")


def run(arguments: argparse.Namespace) -> int:
    from traceferry.analysis.compare.comparison import compare
    from traceferry.analysis.compare.gate import evaluate, parse

    gates = [parse(text) for text in arguments.fail_on]
    paths = _paths(arguments)
    options = replace(_options(arguments), events=frozenset(gate.metric for gate in gates))
    _check_outputs(arguments, paths)
    notes: list[list[list[Issue]]] = [[], []]
    runs = [_loaded(arguments, nth, side, notes[nth]) for nth, side in enumerate(paths)]
    if not arguments.quiet:
        with to_the_end():
            _print_notes(arguments, notes)
    comparison = compare(runs[0], runs[1], options)
    outcomes = [evaluate(gate, comparison) for gate in gates]
    _print(arguments, comparison, outcomes)
    _write_outputs(arguments, comparison)
    return status_of(outcomes, arguments.strict)


def status_of(outcomes: Sequence[Outcome], strict: bool) -> int:
    failing = ("failed", "undecided") if strict else ("failed",)
    return BREACHED if any(outcome.status in failing for outcome in outcomes) else DONE


def _options(arguments: argparse.Namespace) -> Options:
    from traceferry.analysis.compare.comparison import Options
    from traceferry.analysis.compare.matching import Renames
    from traceferry.analysis.compare.statistics import special

    special()
    return Options(
        arguments.alpha, arguments.margin, arguments.normalise, arguments.leave_out_disturbed, Renames(arguments.rename)
    )


def _paths(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Returns the recordings of both sides. Raises UsageError."""
    from traceferry.analysis.compare.runs import paths_of

    given = arguments.recordings
    if given and (arguments.base or arguments.new):
        raise UsageError("give two recordings, or --base and --new, not both")
    if given and len(given) != 2:
        are_given = "1 recording is given" if len(given) == 1 else f"{len(given)} recordings are given"
        folders = list(dict.fromkeys(os.path.dirname(path) for path in given))
        if len(folders) == 2 and all(map(is_mere_folder, folders)):
            # What a shell makes of base/* new/*.
            again = f"traceferry compare {shlex.join(folders)}"
            raise UsageError(f"{are_given}; two are compared; of two folders each recording is a run: {again}")
        raise UsageError(f"{are_given}; two are compared; for several runs: --base A... --new B...")
    if not given and not (arguments.base and arguments.new):
        raise UsageError("give two recordings, or --base and --new")
    base, new = (given[:1], given[1:]) if given else (arguments.base, arguments.new)
    return _runs_of(paths_of(base)), _runs_of(paths_of(new))


def _runs_of(paths: Sequence[str]) -> list[str]:
    """Returns the paths with the recordings of folders in their places; of a folder without any those of the folders in
    it. What has none at all may be a data set."""
    return [run for path in paths for run in (_runs_in(path) if is_mere_folder(path) else [path])]


def _runs_in(folder: str) -> list[str]:
    inside = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    of_each = [run for one in inside if is_mere_folder(one) for run in recordings_in(one)]
    return recordings_in(folder) or of_each or [folder]


def _loaded(arguments: argparse.Namespace, nth: int, paths: Sequence[str], notes: list[list[Issue]]) -> list[Run]:
    """Loads the runs of a side: recordings, and each combination of labels of a data set. What cannot be read ends the
    comparison: the path is in the message. notes: gets what the report of each recording says about symbols."""
    from traceferry.analysis.compare.runs import Run

    of_side = (arguments.base_symbols, arguments.new_symbols)[nth]
    runs = []
    for path in paths:
        if _is_data_set(path):
            from traceferry.apps.fleet.sides import runs_of

            runs += runs_of(path, bool(arguments.output))
            continue
        given = recording_in(path) if is_mere_folder(path) else path
        one = argparse.Namespace(**{**vars(arguments), "inputs": [given], "symbols": arguments.symbols + of_side})
        try:
            with loaded(one, arguments.quiet) as (trace, progress):
                runs.append(Run.of(path, trace, bool(arguments.output), progress))
                notes.append([issue for issue in trace.report if issue.kind in OF_SYMBOLS])
            # A trace refers to itself, and the collector is off: without this all of them stay in memory.
            del trace
            gc.collect()
        except FormatError as error:
            error.path = error.path or path
            raise
    return runs


def _print_notes(arguments: argparse.Namespace, notes: Sequence[Sequence[Sequence[Issue]]]) -> None:
    """Prints which programs were taken or left, and which of the user's symbols gave nothing to any recording. notes:
    of each side, of each recording."""
    report = Report()
    of_sides = arguments.base_symbols, arguments.new_symbols
    for issue in (issue for side in notes for of_one in side for issue in of_one if issue.kind != UNUSED):
        for detail in issue.details:
            report.note(issue.kind, where=detail, detail=detail)
    for path in dict.fromkeys([*arguments.symbols, *of_sides[0], *of_sides[1]]):
        given = [side for side, own in zip(notes, of_sides, strict=True) if path in arguments.symbols + own]
        said = [
            [text for issue in of_one if issue.kind == UNUSED for text in issue.details if text.startswith(f"{path}: ")]
            for side in given
            for of_one in side
        ]
        if said and all(said):
            report.note(UNUSED, where=path, detail=said[0][0])
    coach.tell_issues(report)


def _is_data_set(path: str) -> bool:
    if not os.path.isdir(path) and "://" not in path:
        return False
    from traceferry.apps.fleet import check_installed

    check_installed()
    from traceferry.apps.fleet.dataset import is_data_set

    return is_data_set(path)


def _check_outputs(arguments: argparse.Namespace, paths: tuple[list[str], list[str]]) -> None:
    """Raises UsageError for an output that cannot be written, before anything is read."""
    for output in arguments.output:
        _comparison_writer(output)
    files = [path for path in (arguments.json, arguments.markdown, *arguments.output) if path]
    if files.count("-") > 1:
        raise UsageError("only one output can be standard output")
    check_distinct([path for path in files if path != "-"], [*paths[0], *paths[1]])


def _comparison_writer(output: str) -> WriteComparison:
    """Returns what writes a comparison in the format of the output's suffix. Raises UsageError if there is none."""
    exporter = registry.exporter_for(output)
    if exporter.comparing is None:
        known = ", ".join(e.suffixes[0] for e in registry.EXPORTERS if e.comparing)
        raise UsageError(f"{output}: {exporter.name} has no comparisons; known: {known}")
    return exporter.comparing()


def _print(arguments: argparse.Namespace, comparison: Comparison, outcomes: Sequence[Outcome]) -> None:
    """Prints the text, unless standard output is taken by another output; then the reasons go to standard error."""
    import orjson

    from traceferry.analysis.compare.as_json import as_json
    from traceferry.analysis.compare.markdown import as_markdown
    from traceferry.analysis.compare.text import as_text

    makers: list[tuple[str | None, Callable[[], bytes]]] = [
        (arguments.json, lambda: orjson.dumps(as_json(comparison, outcomes), option=orjson.OPT_INDENT_2) + b"\n"),
        (arguments.markdown, lambda: as_markdown(comparison, outcomes, arguments.markdown_limit).encode()),
    ]
    for path, made in makers:
        if path is not None:
            with to_the_end(), open_output(path) as out:
                out.write(made())
    is_taken = "-" in (arguments.json, arguments.markdown)
    if not arguments.quiet and not is_taken:
        print_to_the_end(as_text(comparison, arguments.top, outcomes))
    elif arguments.quiet or is_taken:
        with to_the_end():
            for outcome in outcomes:
                if outcome.status != "passed":
                    print(outcome.as_text(), file=sys.stderr)


def _write_outputs(arguments: argparse.Namespace, comparison: Comparison) -> None:
    for output in arguments.output:
        with open_output(output) as out:
            _comparison_writer(output)(comparison, out)
        if not arguments.quiet:
            with to_the_end():
                print(shown(f"wrote {output}: open it in {registry.exporter_for(output).viewer}"), file=sys.stderr)
