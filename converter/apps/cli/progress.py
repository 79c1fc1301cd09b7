"""The progress bars of commands that read a whole recording: of records, and of files that are downloaded for it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from traceferry.apps.cli.options import load_trace
from traceferry.common.shown_text import shown

if TYPE_CHECKING:
    from traceferry.model import Trace

PROGRESS_AFTER_S = 0.5


def _shows(quiet: bool) -> bool:
    """Whether somebody looks: never in a pipe or in CI."""
    return not quiet and sys.stderr.isatty() and "CI" not in os.environ


class Downloads:
    """A bar for each file that is downloaded, from the question to the last byte: `LoadOptions.on_download`."""

    def __init__(self, quiet: bool) -> None:
        self._shows = _shows(quiet)
        self._name = ""
        self._bar: Any = None

    def __call__(self, name: str, n_bytes: int, total: int) -> None:
        """n_bytes: that came since, 0 is the question; total: of the file, 0 is unknown."""
        if not self._shows:
            return
        if not n_bytes or name != self._name:
            self._open(name)
        self._bar.total = total or None
        self._bar.update(n_bytes)

    def _open(self, name: str) -> None:
        from tqdm import tqdm

        self.__exit__()
        self._name = name
        self._bar = tqdm(desc=shown(name), unit="B", unit_scale=True, leave=False)

    def __enter__(self) -> Downloads:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


class Progress:
    """A bar of records, once the work has taken half a second."""

    def __init__(self, quiet: bool) -> None:
        self._started = time.monotonic()
        self._shows = _shows(quiet)
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
        with Downloads(quiet) as downloads:
            trace = load_trace(arguments, adds_calls, downloads)
        progress.total = sum(thread.n_records for _, thread in trace.threads)
        yield trace, progress
