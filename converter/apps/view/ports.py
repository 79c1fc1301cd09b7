"""Sockets on the loopback interface, those that the system lists, and who holds a port."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LOOPBACK = "127.0.0.1"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # see proc(5)
LISTENING = "0A"  # a state
BACKLOG = 512


class Socket(NamedTuple):
    """One end of a connection, as the system's tables have it. user: who made it."""

    local: str
    remote: str
    state: str
    user: int
    inode: str

    @property
    def port(self) -> int:
        return int(self.local.rpartition(":")[2], 16)


def listed_sockets() -> list[Socket]:
    """Returns the TCP sockets that the system lists."""
    found = []
    for table in TABLES:
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
                fields = line.split()
                found.append(Socket(fields[1], fields[2], fields[3], int(fields[7]), fields[9]))
    return found


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
    sockets = {f"socket:[{one.inode}]" for one in listed_sockets() if one.state == LISTENING and one.port == port}
    if sockets:
        for process in Path("/proc").glob("[0-9]*"):
            # Other users' processes do not tell.
            with suppress(OSError):
                if any(os.readlink(handle) in sockets for handle in (process / "fd").iterdir()):
                    return f"{(process / 'comm').read_text().strip()} (process {process.name})"
    return ""
