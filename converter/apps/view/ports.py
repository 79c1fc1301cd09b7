"""Sockets on the loopback interface; and who holds a port."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path

LOOPBACK = "127.0.0.1"
LISTENING = "0A"  # the state, in /proc/net/tcp
BACKLOG = 512


class PortTakenError(Exception):
    """The message says by whom, where the system tells."""


def listening_socket(port: int) -> socket.socket:
    """Listens on 127.0.0.1 only; port 0 is any free one. Raises PortTakenError, and OSError for a port that is not
    allowed."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two programs share the port
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((LOOPBACK, port))
        opened.listen(BACKLOG)
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRINUSE:
            holder = holder_of(port)
            raise PortTakenError(f"port {port} is taken" + (f" by {holder}" if holder else "")) from None
        raise
    return opened


def holder_of(port: int) -> str:
    """Names the program that listens on a port, as `trace_processor (process 123)`; "" if the system does not tell."""
    sockets = {f"socket:[{inode}]" for inode in _inodes_of(port)}
    if sockets:
        for process in Path("/proc").glob("[0-9]*"):
            # Other users' processes do not tell.
            with suppress(OSError):
                if any(os.readlink(handle) in sockets for handle in (process / "fd").iterdir()):
                    return f"{(process / 'comm').read_text().strip()} (process {process.name})"
    return ""


def _inodes_of(port: int) -> set[str]:
    """Returns the inodes of the sockets that listen on a port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found
