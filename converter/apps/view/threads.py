"""Work beside the event loop, for which nobody waits when the process ends: a browser that stays in the foreground,
the conversion of a large recording."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


async def in_thread(function: Callable[[], Result]) -> Result:
    """Returns or raises what the function does. Its thread ends with the process, whatever it does."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)
