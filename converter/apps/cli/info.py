"""The command `info`: what is in a recording."""

from __future__ import annotations

import argparse
from typing import Any

from traceferry.apps.cli.options import (
    PROGRAM,
    RECORDING,
    add_command,
    add_fail_on,
    add_input_options,
    load_trace,
    not_negative,
    status_of,
)
from traceferry.apps.cli.progress import Progress


def add_to(commands: Any) -> None:
    info = add_command(
        commands,
        "info",
        run,
        summary="summarize a recording",
        description="Prints threads, counts, time, the functions with most self time, allocations, heap snapshots, "
        "counters, groups of events, code coverage, and what was lost.",
        examples=f"traceferry info {RECORDING} --top 50 --sort total\n"
        f"traceferry info {PROGRAM} --thread main\n"
        f"traceferry info {RECORDING} --json | jq .functions.top",
    )
    add_input_options(info)
    info.add_argument("--json", action="store_true", help="print JSON for scripts (see FORMATS.md)")
    info.add_argument(
        "--top", type=not_negative, default=20, metavar="N",
        help="the length of each list of functions, classes, sites... (default: 20)",
    )  # fmt: skip
    info.add_argument(
        "--sort", choices=("self", "total", "calls", "samples"), default="self",
        help="the order of functions: by self time (default), total time, calls or samples",
    )  # fmt: skip
    add_fail_on(info)


def run(arguments: argparse.Namespace) -> int:
    from traceferry.analysis.info.summary import summarize
    from traceferry.analysis.info.text import as_text

    with Progress(arguments.json) as progress:
        trace = load_trace(arguments, adds_calls=True)
        progress.total = sum(thread.n_records for _, thread in trace.threads)
        summary = summarize(trace, arguments.top, progress, arguments.sort)
    if arguments.json:
        import orjson

        print(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    else:
        print(as_text(summary))
    return status_of(trace.report, arguments.fail_on)
