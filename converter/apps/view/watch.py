"""Tells when files have changed, and settled."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence

from traceferry.apps.view.threads import in_thread

POLL_SECONDS = 0.3

# Of each file: (inode, size, time of the last change), None where it is not there.
State = tuple[tuple[int, int, int] | None, ...]


def state_of(paths: Sequence[str]) -> State:
    return tuple(_state_of(path) for path in paths)


def _state_of(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not os.path.isdir(path):
        return status.st_ino, status.st_size, status.st_mtime_ns
    # A recording can be a folder, whose files grow.
    with os.scandir(path) as entries:
        sizes = [(entry.stat().st_size, entry.stat().st_mtime_ns) for entry in entries]
    return status.st_ino, sum(size for size, _ in sizes), max((time for _, time in sizes), default=0)


async def changes(paths: Sequence[str], seen: State) -> AsyncIterator[State]:
    """Yields each state that differs from the one before, once it stays the same for a moment: a recorder may still be
    writing. seen: the first to compare with."""
    latest = seen
    while True:
        await asyncio.sleep(POLL_SECONDS)
        now = await in_thread(lambda: state_of(paths))
        if now == latest != seen:
            seen = now
            yield now
        latest = now
