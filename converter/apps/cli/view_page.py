"""`view FILE.html`: a page that was made before, in the browser, without a server."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from traceferry.apps.cli import options
from traceferry.common.errors import UsageError

# What a page begins with.
BEGINNINGS = (b"<!doctype html", b"<html")
HEAD_SIZE = 64


def is_page(path: str) -> bool:
    """Whether a file is a page that a browser shows. What can be read only once, as a pipe, is left as it is."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_SIZE).lstrip().lower().startswith(BEGINNINGS)
    except OSError:
        return False


def show(arguments: argparse.Namespace) -> int:
    """Prints the page's address, and opens it where a browser can show something. Raises UsageError."""
    from traceferry.apps.view.browser import has_display, open_browser
    from traceferry.common.shown_text import shown

    page = Path(arguments.inputs[0])
    if arguments.watch:
        raise UsageError(f"{page}: a page that was made before: --watch needs the recording")
    address = page.resolve().as_uri()
    print(shown(address), flush=True)
    if not arguments.no_open and has_display():
        open_browser(address)
    return options.DONE
