"""A running `view`: serves the site, opens the browser, and converts again what changes."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from socket import socket

from traceferry.apps.view.browser import has_display, leading_file, open_browser, ssh_line
from traceferry.apps.view.conversion import Conversion
from traceferry.apps.view.loopback import Peers
from traceferry.apps.view.site import Site
from traceferry.apps.view.threads import in_thread
from traceferry.apps.view.viewers import PAGE, Viewer
from traceferry.apps.view.watch import State, changes
from traceferry.common.errors import TraceferryError
from traceferry.common.shown_text import shown

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@dataclass(frozen=True)
class Session:
    """viewer: the one to open; by_page: through the page of our own; opens: in a browser; watched: the files
    that `convert` reads, none without --watch; seen: their state when they were read; convert: reads them again; peers:
    whose requests are answered; folder: a private one."""

    site: Site
    viewer: Viewer
    listening: socket
    by_page: bool
    opens: bool
    watched: Sequence[str]
    seen: State
    convert: Callable[[], Conversion]
    peers: Peers
    folder: Path

    def run(self) -> int | None:
        """Serves until a signal ends it; returns its number, None for Ctrl-C."""
        was_enabled = gc.isenabled()
        gc.enable()  # this runs for hours
        try:
            return asyncio.run(self._run())
        except KeyboardInterrupt:
            return None
        finally:
            if not was_enabled:
                gc.disable()

    async def _run(self) -> int | None:
        from traceferry.apps.view.server import Server

        stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        _stop_by_signals(stopped)
        async with Server(self.site, self.peers, self._shown).running(self.listening):
            tasks = [asyncio.create_task(self._show()), asyncio.create_task(self._watch())]
            for task in tasks:
                task.add_done_callback(lambda done: _stop_by_error(stopped, done))
            try:
                number = await stopped
            finally:
                for task in tasks:
                    task.cancel()
        return None if number == signal.SIGINT else number

    # ------------------------------------------------------------ the browser

    @property
    def _shown(self) -> str:
        """The address that is opened."""
        return self.site.page_address if self.by_page else self.site.address(self.viewer)

    async def _show(self) -> None:
        print(shown(self._shown), flush=True)
        wants = self.opens and has_display()
        if wants and not self.by_page and self.viewer is not PAGE:
            _tell(f"if the browser keeps {self.viewer.title} from this machine: {self.site.page_address}")
        if self.opens and not wants:
            port = self.listening.getsockname()[1]
            _tell("there is no display here; open the address above on your own machine, where this runs meanwhile:")
            _tell(f"  {ssh_line(port)}")
        _tell("Ctrl-C ends it")
        # Last: a browser can stay in the foreground.
        if wants and not await in_thread(lambda: open_browser(self._opening())):
            _tell("no browser could be started: open the address above in one")

    def _opening(self) -> str:
        """Returns an address that everybody may see, and that leads only this user on."""
        if self.peers.are_known:
            return self.site.origin + self.site.opening_path
        return leading_file(self.folder, self._shown)

    # ------------------------------------------------------------ --watch

    async def _watch(self) -> None:
        if not self.watched:
            return
        async for state in changes(self.watched, self.seen):
            gone = [path for path, now in zip(self.watched, state, strict=True) if now is None]
            if gone:
                _tell(f"{', '.join(gone)}: not there any more; what was converted before is still shown")
                continue
            started = time.monotonic()
            try:
                self.site.conversion = await in_thread(self.convert)
            except (TraceferryError, OSError) as error:
                _tell(f"{error}; what was converted before is still shown")
            else:
                _tell(f"converted again in {time.monotonic() - started:.1f} s: reload the page")


def _stop_by_error(stopped: asyncio.Future[int], task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None and not stopped.done():
        stopped.set_exception(error)


def _stop_by_signals(stopped: asyncio.Future[int]) -> None:
    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)

    loop = asyncio.get_running_loop()
    for number in STOPPING:
        # Such as SIGHUP under nohup.
        if signal.getsignal(number) is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(number, stop, number)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
            return


def _tell(text: str) -> None:
    print(shown(text), file=sys.stderr, flush=True)
