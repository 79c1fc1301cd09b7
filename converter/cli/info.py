"""The command `info`: what is in a recording."""

from __future__ import annotations

import argparse
from typing import Any

from traceferry.cli.options import add_input_options, load_trace, not_negative, status_of
from traceferry.cli.progress import Progress


def add_to(commands: Any) -> None:
    info = commands.add_parser(
        "info",
        help="say what is in a recording",
        description="Threads, counts, time, the functions with most time of their own, allocations, heap snapshots, "
        "counters, groups of events, code coverage, and what was lost.",
    )
    add_input_options(info)
    info.add_argument("--json", action="store_true", help="as JSON, an interface for scripts (see FORMATS.md)")
    info.add_argument(
        "--top", type=not_negative, default=20, metavar="N",
        help="how many functions, classes, sites... of each list (default: 20)",
    )  # fmt: skip
    info.add_argument(
        "--sort", choices=("self", "total", "calls", "samples"), default="self",
        help="which functions come first: by time of their own (the default), total time, calls or samples",
    )  # fmt: skip
    info.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.summary.info import summarize
    from traceferry.summary.text import as_text

    with Progress(arguments.json) as progress:
        trace = load_trace(arguments)
        progress.total = sum(thread.n_records for _, thread in trace.threads)
        summary = summarize(trace, arguments.top, progress, arguments.sort)
    if arguments.json:
        import orjson

        print(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    else:
        print(as_text(summary))
    return status_of(trace.report)
