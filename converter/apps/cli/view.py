"""The command `view`: recordings on the screen, in a viewer in the browser."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from traceferry.apps.cli import coach, options, view_page
from traceferry.apps.cli.command_parser import CommandParser
from traceferry.apps.cli.options import PAGE, VIEWERS
from traceferry.apps.cli.progress import loaded
from traceferry.apps.cli.termination import Terminated
from traceferry.common.errors import UsageError
from traceferry.common.shown_text import shown

if TYPE_CHECKING:
    from socket import socket

    from traceferry.apps.view.conversion import Conversion
    from traceferry.apps.view.viewers import Viewer

MAX_PORT = 65535


def add_to(view: CommandParser) -> None:
    options.explain(
        view,
        "Converts recordings and opens them in the browser: in profiler.firefox.com with the source and "
        "the instructions of jitted and native functions, or in ui.perfetto.dev, or as a page. A file that was "
        "converted before is shown as it is. Nothing of it leaves this machine: the files are served to its browser "
        "only. Ctrl-C ends it.",
        examples=f"traceferry view {options.PROGRAM}\ntraceferry view {options.RECORDING} --in perfetto\n"
        f"traceferry view {options.RECORDING} --watch --source-root src\ntraceferry view out.json.gz",
    )
    options.add_input_options(view)
    view.output.add_argument(
        "--in", dest="viewer", choices=(*VIEWERS, PAGE), help="the viewer, or a page of its own (default: firefox)"
    )
    options.add_max_size(view)
    view.output.add_argument("--no-open", action="store_true", help="print the address, open no browser")
    view.output.add_argument("--watch", action="store_true", help="convert again when an input changes")
    coach.add_verbosity(view)
    view.rare.add_argument(
        "--viewer", dest="viewer_folder", metavar="DIR",
        help="serve the viewer from this folder, for machines without a network",
    )  # fmt: skip
    view.symbols.add_argument(
        "--source-root", action="append", default=[], metavar="DIR",
        help="show source files that the recording names and that are in this folder; repeat the option for several",
    )  # fmt: skip
    view.rare.add_argument(
        "--allow-origin", action="append", default=[], type=_origin, metavar="ORIGIN",
        help="also answer pages of this origin, as https://profiler.example; repeat the option for several",
    )  # fmt: skip
    view.rare.add_argument(
        "--allow-user", action="append", default=[], metavar="USER",
        help="also answer programs of this user of the machine, a name or a number; repeat the option for several",
    )  # fmt: skip
    view.rare.add_argument("--port", type=_port, default=0, metavar="PORT",
        help="the port on 127.0.0.1 (default: a free one, or 9001)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if len(arguments.inputs) == 1 and view_page.is_page(arguments.inputs[0]):
        return view_page.show(arguments)
    if arguments.viewer == PAGE and arguments.viewer_folder:
        raise UsageError("--viewer serves a copy of a viewer, with --in firefox or --in perfetto; a page needs none")
    from traceferry.apps.view.cache import cache_folder
    from traceferry.apps.view.loopback import Peers, user_numbered
    from traceferry.apps.view.session import Session
    from traceferry.apps.view.site import Site, viewer_files
    from traceferry.apps.view.watch import state_of

    roots = [_folder(path) for path in arguments.source_root]
    copy = viewer_files(arguments.viewer_folder) if arguments.viewer_folder else {}
    peers = Peers(user_numbered(text) for text in arguments.allow_user)
    with cache_folder() as folder:
        recordings = _Recordings(arguments, folder)
        viewer = recordings.viewer
        listening, by_page = _listening(arguments.port, viewer, bool(copy))
        with listening:
            watched = recordings.paths if arguments.watch else []
            seen = state_of(watched)
            site = Site(recordings.convert(), roots, viewer if copy else None, copy, arguments.allow_origin)
            site.origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
            number = Session(
                site,
                viewer,
                listening,
                by_page,
                not arguments.no_open,
                watched,
                seen,
                recordings.convert,
                peers,
                folder,
            ).run()
    if number is not None:
        raise Terminated(number)
    return options.DONE


class _Recordings:
    """The inputs, and what is made of them. viewer: the one to show them in."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        from traceferry.apps.view.conversion import is_recording, readable_again, title_of, viewer_of_file
        from traceferry.apps.view.viewers import PAGE as SERVED_PAGE
        from traceferry.apps.view.viewers import VIEWERS as BY_NAME

        self._folder = folder
        self._title = title_of(arguments.inputs)
        self._latest: Path | None = None
        self._n = 0
        arguments.inputs = [readable_again(path, folder) for path in arguments.inputs]
        self._arguments = arguments
        first = arguments.inputs[0]
        self._is_converted = (
            len(arguments.inputs) == 1
            and not arguments.format
            and arguments.viewer != PAGE
            and not is_recording(first, arguments.viewer)
        )
        if self._is_converted:
            _refuse_selection(arguments)
        wanted = arguments.viewer or ("" if self._is_converted else VIEWERS[0])
        named = {**BY_NAME, PAGE: SERVED_PAGE}
        self.viewer = named[wanted] if wanted else viewer_of_file(first)

    @property
    def paths(self) -> list[str]:
        return [*self._arguments.inputs, *self._arguments.symbols]

    def convert(self) -> Conversion:
        """Converts for the viewer that is shown; the files of the conversion before go. Raises TraceferryError."""
        from traceferry.analysis.verdict import Tally
        from traceferry.apps.view.conversion import Conversion, handed_over

        self._n += 1
        own = self._folder / str(self._n)
        own.mkdir()
        try:
            if self._is_converted:
                made = handed_over(self._arguments.inputs[0], self._title, self.viewer, own)
            else:
                with loaded(self._arguments, self._arguments.quiet) as (trace, progress):
                    tally = Tally(trace)
                    made = Conversion(self._title, tally.trace, own, max_size=self._arguments.max_size)
                    made.file_for(self.viewer, progress)
                coach.tell_verdict(self._arguments, trace, tally.samples)
        except BaseException:
            shutil.rmtree(own, ignore_errors=True)
            raise
        if self._latest is not None:
            shutil.rmtree(self._latest, ignore_errors=True)
        self._latest = own
        return made


def _refuse_selection(arguments: argparse.Namespace) -> None:
    selecting = {"--range": arguments.range, "--thread": arguments.thread, "--min-duration": arguments.min_duration,
                 "--max-events": arguments.max_events, "--max-size": arguments.max_size,
                 "--embed-sources": arguments.embed_sources}  # fmt: skip
    used = [option for option, value in selecting.items() if value]
    if used:
        raise UsageError(f"{arguments.inputs[0]}: not a recording, so {used[0]} has nothing to choose from")


def _folder(path: str) -> str:
    """Returns the path, absolute and without links. Raises UsageError."""
    if not os.path.isdir(path):
        raise UsageError(f"{path}: not a folder of source files")
    return os.path.realpath(path)


def _listening(port: int, viewer: Viewer, has_copy: bool) -> tuple[socket, bool]:
    """Returns a socket, and whether the viewer cannot load from it, so that a page must hand it the trace."""
    from traceferry.apps.view.loopback import PortTakenError, listening_socket

    needed = 0 if has_copy else viewer.port
    try:
        if port or not needed:
            return listening_socket(port), needed not in (0, port)
    except PortTakenError as error:
        raise UsageError(f"{error}: choose another one with --port") from None
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {error.strerror or error}") from None
    try:
        return listening_socket(needed), False
    except (PortTakenError, OSError) as error:
        reason = f"{error}, and {viewer.title} loads from no other port of this machine"
        print(shown(f"{reason}: a page with a button hands it the trace instead"), file=sys.stderr)
        return listening_socket(0), True


def _origin(text: str) -> str:
    parts = urlsplit(text)
    try:
        is_origin = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        is_origin = False
    if not is_origin or text != f"{parts.scheme}://{parts.netloc}" or "@" in parts.netloc:
        raise argparse.ArgumentTypeError(f"{text!r} is not an origin: write it as https://profiler.example")
    return text


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 1 to {MAX_PORT}")
    return int(text)
