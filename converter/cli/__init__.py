"""The command `traceferry`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from traceferry.cli import convert, dump, formats, info, symbols
from traceferry.cli.options import FAILED, with_values
from traceferry.errors import FormatError, UsageError

COMMANDS = (convert, info, dump, symbols, formats)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done; 1 done, and the input had lost or damaged data; 2 nothing written."""
    arguments = _parser().parse_args(with_values(sys.argv[1:] if argv is None else argv))
    # NumPy's linear algebra, which is not used here, would start a spinning thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with _no_garbage_collection():
            status = arguments.run(arguments)
        sys.stdout.flush()
        return int(status)
    except FormatError as error:
        print(f"traceferry: {error}", file=sys.stderr)
        for line in error.hex_lines():
            print(f"  {line}", file=sys.stderr)
    except UsageError as error:
        print(f"traceferry: {error}", file=sys.stderr)
    except BrokenPipeError:
        # Nobody reads on; the interpreter must not complain about it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("traceferry: interrupted", file=sys.stderr)
    return FAILED


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """What a command makes lives until its end: looking for garbage among it takes up to a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="traceferry",
        description="Turns runtime recordings into traces for profiler.firefox.com and ui.perfetto.dev.",
        epilog="exit status: 0 done; 1 done, and the input had lost or damaged data; 2 nothing written",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_to(commands)
    return parser
