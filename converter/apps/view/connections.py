"""Connections to the server: how many may wait, and for how long. Whoever says nothing holds up nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket

# Far fewer than the files that a process may open.
MOST_WAITING = 128
# For a request's first line and headers, and between two requests.
SILENCE_SECONDS = 15
LOOK_SECONDS = 1
# Until other files are closed, where no more may be open.
NO_FILES_SECONDS = 0.1


class Connections:
    """Those that have not sent a whole request; that which waits longest is closed where there are too many."""

    def __init__(self, most: int = MOST_WAITING, silence: float = SILENCE_SECONDS) -> None:
        self._most = most
        self._silence = silence
        # Since when, the longest first.
        self._waiting: dict[asyncio.Transport, float] = {}

    async def accept(self, listening: socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Accepts connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except ConnectionError:
                continue
            except OSError:  # too many open files
                self._close_longest()
                await asyncio.sleep(NO_FILES_SECONDS)
                continue
            if len(self._waiting) >= self._most:
                self._close_longest()
            try:
                transport, _ = await loop.connect_accepted_socket(protocol, connection)
            except OSError:
                connection.close()
            else:
                self._waiting[transport] = loop.time()

    async def watch(self) -> None:
        """Closes those that are silent for too long, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = asyncio.get_running_loop().time()
            for transport in [one for one, since in self._waiting.items() if now - since > self._silence]:
                self._close(transport)

    @contextmanager
    def answering(self, transport: asyncio.Transport) -> Iterator[None]:
        """Keeps the connection from being closed as one that waits."""
        self._waiting.pop(transport, None)
        try:
            yield
        finally:
            self._waiting[transport] = asyncio.get_running_loop().time()

    def _close_longest(self) -> None:
        if self._waiting:
            self._close(next(iter(self._waiting)))

    def _close(self, transport: asyncio.Transport) -> None:
        del self._waiting[transport]
        # Also of what is closing and cannot send what it still has to.
        transport.abort()
