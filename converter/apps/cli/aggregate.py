"""The command `aggregate`: many recordings become tables, or one profile."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from traceferry.apps.cli import coach
from traceferry.apps.cli.command_parser import CommandParser, OneOutput
from traceferry.apps.cli.options import DONE, FOUND, RECORDING, add_recording_options, explain, load_options, number
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.shown_text import shown

SYMBOLS = "_symbols"  # in the output
# Of the options of `add_fleet_options`, their values where none is given.
NO_FLEET_OPTIONS = {
    "manifest": None, "symbol_cache": None, "workers": None, "worker_memory": "auto", "scheduler": None,
    "partition_size": None, "resume": False,
}  # fmt: skip
at_least_one = number(int, "whole number", lambda value: value >= 1, "be at least 1")

if TYPE_CHECKING:
    from traceferry.apps.fleet.engine import Counts
    from traceferry.apps.fleet.inputs import Found
    from traceferry.apps.fleet.run import Pool


def add_to(aggregate: CommandParser) -> None:
    explain(
        aggregate,
        "Adds up any number of recordings, on all processors or a Dask cluster, into a folder of Parquet "
        "tables: functions, stacks, markers, allocations, heap, code, recordings. A recording that cannot be read is a "
        "row with the reason. Needs the packages of traceferry[fleet].",
        examples=f"traceferry aggregate 'runs/{{service}}/{{host}}.{RECORDING}' --by service -o stats/\n"
        "traceferry aggregate 's3://bucket/{commit}/*.mlpd' -o s3://stats/mono/ --resume\n"
        "traceferry aggregate 'runs/*.mlpd' --merge fleet.html --merge fleet.json.gz",
    )
    aggregate.input.add_argument(
        "inputs", nargs="*", metavar="INPUT",
        help="recordings: files, folders, patterns in quotes or URLs; {name} in a pattern stands for any text without "
        "a slash and makes it a label",
    )  # fmt: skip
    aggregate.selection.add_argument(
        "--by", metavar="LABELS", help="labels whose combinations are kept apart, with commas (default: all)"
    )
    aggregate.output.add_argument(
        "-o", "--output", action=OneOutput, metavar="FOLDER", help="the folder or URL that gets the tables"
    )
    aggregate.output.add_argument(
        "--merge", action="append", default=[], metavar="FILE",
        help="write one profile of all recordings, a process for each combination of labels; repeat the option for "
        "several formats",
    )  # fmt: skip
    add_fleet_options(aggregate.add_argument_group("fleet"))
    add_recording_options(aggregate)
    coach.add_verbosity(aggregate)


def add_fleet_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--manifest", metavar="FILE",
        help="a table (.parquet, .csv, .jsonl) with a column `recording`; its other columns are labels",
    )  # fmt: skip
    parser.add_argument(
        "--symbol-cache", metavar="FOLDER",
        help="a folder or URL that keeps what was read of the folders of --symbols, once for each build (default: in "
        "the output)",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=at_least_one, metavar="N", help="processes to use (default: one per processor)"
    )
    parser.add_argument(
        "--worker-memory", default="auto", metavar="SIZE",
        help="the most memory of each, as 4GiB; one that needs more is started again (default: its share of the "
        "machine's)",
    )  # fmt: skip
    parser.add_argument("--scheduler", metavar="ADDRESS", help="use this Dask cluster instead: tcp://host:8786")
    parser.add_argument(
        "--partition-size", type=at_least_one, metavar="N",
        help="recordings that are done at once (default: by their number)",
    )  # fmt: skip
    parser.add_argument(
        "--resume", action="store_true",
        help="continue or update what is in the output: recordings that are as they were are not read again; keeps the "
        "intermediate results there for the next time",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from traceferry.apps.fleet import check_installed

    check_installed()
    if not arguments.output and not arguments.merge:
        raise UsageError("nothing would be written: -o FOLDER for tables, --merge FILE for one profile")
    if arguments.scheduler and not arguments.output:
        raise UsageError("--scheduler needs a folder that all workers reach: -o FOLDER")
    from tempfile import TemporaryDirectory

    from traceferry import registry
    from traceferry.apps.fleet.merge import merged_trace
    from traceferry.apps.fleet.run import run as run_fleet
    from traceferry.apps.fleet.tables import COLUMNS
    from traceferry.apps.fleet.work import Aggregation

    for path in arguments.merge:
        registry.exporter_for(path)
    found = find_recordings(arguments)
    by = tuple(arguments.by.split(",")) if arguments.by else found.labels
    work = Aggregation(reading_of(arguments, found, arguments.output), tuple(COLUMNS))
    with ExitStack() as kept:
        output = arguments.output or kept.enter_context(TemporaryDirectory(prefix="traceferry-"))
        counts = run_fleet(
            found, by, work, output, pool_of(arguments), leaf_size=arguments.partition_size, resume=arguments.resume,
            quiet=arguments.quiet,
        )  # fmt: skip
        if arguments.merge:
            from traceferry.api import save

            # Without a folder of the user's, the tables are in one whose name differs in each run.
            given = [*arguments.inputs, *([arguments.manifest] if arguments.manifest else [])]
            trace = merged_trace(output, arguments.output or ", ".join(map(str, given)))
            for path in arguments.merge:
                save(trace, path)
            coach.tell_losses(arguments, trace.report)
        return ended(arguments, counts, output, [*([arguments.output] if arguments.output else []), *arguments.merge])


def find_recordings(arguments: argparse.Namespace) -> Found:
    from traceferry.apps.fleet.inputs import find

    if not arguments.inputs and not arguments.manifest:
        raise UsageError("no recordings are given: name files, patterns in quotes, or --manifest FILE")
    found = find(arguments.inputs, arguments.manifest)
    if not arguments.quiet:
        for note in found.notes:
            print(shown(note), file=sys.stderr)
    return found


def reading_of(arguments: argparse.Namespace, found: Found, folder: str | None) -> Any:
    """folder: of the outputs, or its URL; None: there is none."""
    from traceferry.apps.fleet import storage
    from traceferry.apps.fleet.inputs import LABEL
    from traceferry.apps.fleet.work import Reading

    unknown = [name for url in arguments.symbols for name in LABEL.findall(url) if name not in found.labels]
    if unknown:
        labels = ", ".join(found.labels) or "none"
        raise UsageError(f"--symbols with {{{unknown[0]}}}: no such label; the inputs have: {labels}")
    # Workers may have another working folder; and one folder has one name, which counts for --resume.
    symbols = tuple(os.path.realpath(url) if storage.is_local(url) else url for url in arguments.symbols)
    output, given_cache = (storage.absolute(url) if url else "" for url in (folder, arguments.symbol_cache))
    cache = given_cache or (storage.joined(output, SYMBOLS) if output else "")
    # Which files those with labels are is known for each recording only.
    known = {url: storage.identities(url) for url in symbols if not LABEL.search(url)}
    missing = [url for url, identities in known.items() if not identities]
    if missing:
        raise UsageError(f"{missing[0]}: no such file or folder")
    if not arguments.quiet:
        _print_unreadable([url for url in known if storage.is_local(url) and os.path.isfile(url)])
    identities = tuple(f"{url} {each}" for url, of in known.items() for each in of)
    options = replace(
        load_options(arguments), embed_sources=list(map(os.path.realpath, arguments.embed_sources)),
        sysroots=list(map(os.path.realpath, arguments.sysroot)), search_working_folder=False,
        # The variable of this process counts, not that of the workers.
        debuginfod=arguments.debuginfod.urls if arguments.debuginfod else (),
    )  # fmt: skip
    return Reading(symbols, options, cache, identities)


def _print_unreadable(paths: Sequence[str]) -> None:
    """Prints which files of symbols cannot name anything, whatever the recordings."""
    from traceferry.common.report import Report
    from traceferry.files.source import open_source
    from traceferry.symbolication.choose import open_symbols

    report = Report()
    for path in paths:
        try:
            open_symbols(open_source(path))
        except FormatError as error:
            report.note("symbols_unused", where=path, detail=f"{path}: {error.message}")
    coach.tell_issues(report)


def pool_of(arguments: argparse.Namespace) -> Pool:
    from traceferry.apps.fleet.run import Pool

    # Python 3.13 tells how many a process may use.
    processors = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    return Pool(arguments.workers or processors, arguments.worker_memory, arguments.scheduler)


def ended(arguments: argparse.Namespace, counts: Counts, output: str, written: list[str]) -> int:
    """Prints what came out; returns the exit status."""
    from traceferry.apps.fleet.dataset import failures

    reasons = failures(output)
    for name, status, reason in reasons:
        print(shown(f"{name}: {status}: {reason}"), file=sys.stderr)
    if not arguments.quiet:
        reused = f", {counts.reused} of them as before" if counts.reused else ""
        of_all = "1 recording" if counts.done == 1 else f"{counts.done:,} recordings"
        counted = f"{of_all}{reused}, {len(reasons)} failed"
        print(shown(f"{counted}; wrote {', '.join(written)}"), file=sys.stderr)
    return FOUND if reasons else DONE
