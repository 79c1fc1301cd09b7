"""`view --in page`: the page of a recording, or one that was made before, in the browser, without a server."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from traceferry.apps.cli import coach, options
from traceferry.apps.cli.progress import loaded
from traceferry.common.errors import UsageError

# What a page begins with.
BEGINNINGS = (b"<!doctype html", b"<html")
HEAD_SIZE = 64
SECONDS = 3600.0


def is_page(path: str) -> bool:
    """Whether a file is a page that a browser shows. What can be read only once, as a pipe, is left as it is."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_SIZE).lstrip().lower().startswith(BEGINNINGS)
    except OSError:
        return False


def show_made(arguments: argparse.Namespace) -> int:
    """Opens a page that was made before."""
    _open(arguments, Path(arguments.inputs[0]))
    return options.DONE


def show(arguments: argparse.Namespace) -> int:
    """Makes the page in a folder of this user's alone, opens it, and keeps it until Ctrl-C. Raises UsageError."""
    if arguments.watch:
        raise UsageError("--watch does not work with --in page: convert -o FILE.html again, and load the page anew")
    from traceferry.analysis.verdict import Tally
    from traceferry.api import save
    from traceferry.apps.view.cache import cache_folder

    with cache_folder() as folder:
        path = folder / "recording.html"
        with loaded(arguments, arguments.quiet) as (trace, progress):
            tally = Tally(trace)
            save(tally.trace, path, progress=progress)
        coach.tell_verdict(arguments, trace, tally.samples)
        _open(arguments, path)
        coach.tell("Ctrl-C ends it, and the page goes; convert -o FILE.html keeps one")
        try:
            while True:
                time.sleep(SECONDS)
        except KeyboardInterrupt:
            return options.DONE


def _open(arguments: argparse.Namespace, path: Path) -> None:
    """Prints the page's address, and opens it where a browser can show something."""
    from traceferry.apps.view.browser import has_display, open_browser
    from traceferry.common.shown_text import shown

    address = path.resolve().as_uri()
    print(shown(address), flush=True)
    if not arguments.no_open and has_display():
        open_browser(address)
