"""The progress bar of commands that read a whole recording."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from traceferry.apps.cli.options import load_trace

if TYPE_CHECKING:
    from traceferry.model import Trace

PROGRESS_AFTER_S = 0.5


class Progress:
    """A bar on a terminal, once the work has taken half a second; never in a pipe or in CI."""

    def __init__(self, quiet: bool) -> None:
        self._started = time.monotonic()
        self._shows = not quiet and sys.stderr.isatty() and "CI" not in os.environ
        self._done = 0
        self._bar: Any = None
        self.total = 0

    def __call__(self, n_records: int) -> None:
        self._done += n_records
        if self._bar is not None:
            self._bar.update(n_records)
        elif self._shows and time.monotonic() - self._started > PROGRESS_AFTER_S:
            from tqdm import tqdm

            self._bar = tqdm(total=self.total, initial=self._done, unit=" records", unit_scale=True, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def loaded(arguments: argparse.Namespace, quiet: bool, adds_calls: bool = False) -> Iterator[tuple[Trace, Progress]]:
    """Loads what the arguments name, and shows what is done with it as a bar."""
    with Progress(quiet) as progress:
        trace = load_trace(arguments, adds_calls)
        progress.total = sum(thread.n_records for _, thread in trace.threads)
        yield trace, progress
