"""Signals that end the process: incomplete outputs are removed first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Windows has no SIGHUP.
SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(BaseException):
    """Ends everything that was begun, as KeyboardInterrupt does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._number = number

    def end_process(self) -> None:
        """Ends by the signal itself, so that the parent process sees its status."""
        signal.signal(self._number, signal.SIG_DFL)
        os.kill(os.getpid(), self._number)


@contextmanager
def terminable() -> Iterator[None]:
    """Makes such a signal raise Terminated inside, unless it is ignored, as SIGHUP under nohup. Only the main thread
    can set that up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    changed = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second one must not stop the cleaning up
    raise Terminated(number)
