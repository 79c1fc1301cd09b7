"""The command `convert`: recordings become one file that a viewer opens."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from traceferry import registry
from traceferry.apps.cli import aggregate, coach, options
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.progress import loaded
from traceferry.common.errors import UsageError
from traceferry.files.output import beside, check_distinct, open_output

if TYPE_CHECKING:
    from traceferry.analysis.verdict import Tally
    from traceferry.model import Trace

# Of one conversion, with their values where they are not given.
SINGLE_OPTIONS = {"report": None, "fail_on": None, "max_size": None, "jobs": None}


def add_to(convert: CommandParser) -> None:
    examples = [f"traceferry {importer.example} -o out.json.gz" for importer in registry.IMPORTERS]
    options.explain(
        convert,
        "Converts one or several recordings of one run into one file that a viewer opens. Losses are "
        "reported on standard error.",
        examples="\n".join(examples)
        + f"\ntraceferry {options.RECORDING} -o out.html"
        + f"\ntraceferry {options.RECORDING} -o out.pftrace --range 1s,1.5s"
        + f"\ntraceferry {options.PROGRAM} --symbols libapp.so --min-duration 10us",
    )
    options.add_input_options(convert, may_lack=True)
    convert.output.add_argument(
        "-o", "--output", action="append", default=[], metavar="OUT",
        help="the output; its suffix chooses the format: .json, .gecko.json, .pftrace, .perfetto-trace, .html, "
        ".pb (pprof), .folded or .afdo.txt, each also with .gz; - is standard output; repeat the option for several "
        "outputs (default: beside the first input)",
    )  # fmt: skip
    convert.output.add_argument(
        "--to", metavar="NAME", help="output format: " + ", ".join(e.name for e in registry.EXPORTERS)
    )
    held = sorted({name for e in registry.EXPORTERS for name in e.holds})
    convert.output.add_argument(
        "--without", action="append", default=[], choices=held, metavar="NAME",
        help=f"keep a page small: do not embed the file for this viewer; repeat the option for both: {', '.join(held)}",
    )  # fmt: skip
    options.add_max_size(convert)
    options.add_jobs(convert)
    convert.rare.add_argument(
        "--batch", action="store_true",
        help="convert each recording by itself, on all processors or a Dask cluster: inputs are files, folders, "
        "patterns in quotes or URLs, -o is a folder or URL, which also gets a table of the recordings (needs "
        "traceferry[fleet])",
    )  # fmt: skip
    aggregate.add_fleet_options(convert.add_argument_group("with --batch"))
    convert.output.add_argument(
        "--report", metavar="FILE.json", help="write what was lost, repaired or guessed, as JSON"
    )
    options.add_fail_on(convert)
    coach.add_verbosity(convert)


def run(arguments: argparse.Namespace) -> int:
    if arguments.batch:
        return _run_batch(arguments)
    _refuse(arguments, aggregate.NO_FLEET_OPTIONS, "works with --batch only")
    if not arguments.inputs:
        raise UsageError("no input is given")
    from traceferry.api import save

    outputs = _outputs_of(arguments)
    for _, exporter in outputs:
        exporter.writer(arguments.without)
    written = [output for output, _ in outputs]
    check_distinct([*written, *([arguments.report] if arguments.report else [])], arguments.inputs)
    with loaded(arguments, arguments.quiet) as (trace, progress):
        progress.total *= len(outputs)
        tally = _tally_of(arguments, trace)
        counted = trace if tally is None else tally.trace
        with report_to(arguments, trace, tally):
            for output, exporter in outputs:
                save(
                    counted, output, format=exporter.name, progress=progress, without=arguments.without,
                    max_size=arguments.max_size, jobs=arguments.jobs,
                )  # fmt: skip
    if tally is not None:
        coach.tell_verdict(arguments, trace, tally.samples)
    for output, exporter in outputs:
        if not arguments.quiet and output != "-":
            coach.tell(f"wrote {output}: open it in {exporter.viewer}")
    return coach.status_of(arguments, trace.report)


def _tally_of(arguments: argparse.Namespace, trace: Trace) -> Tally | None:
    """Returns what counts the samples for the verdict; None where nobody asks for that."""
    if arguments.quiet and arguments.report is None:
        return None
    from traceferry.analysis.verdict import Tally

    return Tally(trace)


def _refuse(arguments: argparse.Namespace, options: Mapping[str, object], why: str) -> None:
    """Raises UsageError if one of the options is given. options: with their values where they are not."""
    for option, unset in options.items():
        if getattr(arguments, option) != unset:
            raise UsageError(f"--{option.replace('_', '-')} {why}")


def _run_batch(arguments: argparse.Namespace) -> int:
    from traceferry.apps.fleet import check_installed

    _refuse(arguments, SINGLE_OPTIONS, "does not work with --batch, whose table of recordings has losses and failures")
    check_installed()
    from traceferry.apps.fleet.run import run as run_fleet
    from traceferry.apps.fleet.storage import absolute
    from traceferry.apps.fleet.work import Conversion

    if len(arguments.output) != 1:
        raise UsageError("--batch needs a folder for its outputs, and one only: -o FOLDER")
    (folder,) = arguments.output
    exporter = registry.exporter_named(arguments.to or registry.DEFAULT_EXPORTER)
    exporter.writer(arguments.without)
    found = aggregate.find_recordings(arguments)
    work = Conversion(
        aggregate.reading_of(arguments, found, folder), absolute(folder), exporter.name, exporter.default_suffix,
        tuple(arguments.without),
    )  # fmt: skip
    counts = run_fleet(
        found, found.labels, work, folder, aggregate.pool_of(arguments), leaf_size=arguments.partition_size,
        resume=arguments.resume, quiet=arguments.quiet,
    )  # fmt: skip
    return aggregate.ended(arguments, counts, folder, [folder])


def _outputs_of(arguments: argparse.Namespace) -> list[tuple[str, registry.Exporter]]:
    """Returns the outputs' paths and formats: from -o and its suffix, --to, or beside the first input."""
    if arguments.to and len(arguments.output) > 1:
        raise UsageError("--to chooses one format, and there are several outputs: leave it out, suffixes choose theirs")
    if not arguments.output:
        exporter = registry.exporter_named(arguments.to or registry.DEFAULT_EXPORTER)
        first = arguments.inputs[0]
        if first == "-":
            raise UsageError("standard input needs an output: -o OUT")
        return [(beside(first, exporter.default_suffix), exporter)]
    return [(output, _exporter_of(arguments, output)) for output in arguments.output]


def _exporter_of(arguments: argparse.Namespace, output: str) -> registry.Exporter:
    if arguments.to:
        return registry.exporter_named(arguments.to)
    if output == "-":
        raise UsageError("standard output needs a format: --to " + ", ".join(e.name for e in registry.EXPORTERS))
    return registry.exporter_for(output)


@contextmanager
def report_to(arguments: argparse.Namespace, trace: Trace, tally: Tally | None) -> Iterator[None]:
    """Opens the report's file first: if it cannot be written, neither is the output."""
    if arguments.report is None or tally is None:
        yield
        return
    import orjson

    from traceferry.analysis.verdict import verdict_of

    with open_output(arguments.report) as out:
        yield
        verdict = verdict_of(trace, tally.samples, arguments.inputs).as_json()
        found = {"verdict": verdict, "issues": [issue.as_json() for issue in trace.report]}
        out.write(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
