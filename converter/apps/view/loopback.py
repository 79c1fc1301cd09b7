"""Sockets on the loopback interface: those that the system lists, who holds a port, and whose program is at the other
end of a connection.

Every user of a machine can connect to 127.0.0.1, and others see addresses: in the browser's command line, or as the
host of a viewer. Linux lists sockets with their users (proc(5), /proc/net/tcp); elsewhere nobody tells.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from traceferry.common.errors import UsageError

LOOPBACK = "127.0.0.1"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")  # see proc(5)
LISTENING = "0A"  # a state
BACKLOG = 512
# Programs that pass connections on run as root, as those of virtual machines do. It can read everything anyway.
ROOT = 0
NO_LOGIN = 0xFFFF_FFFF
# A table that changes while it is read can lack a line.
READS = 3
Address = tuple[str, int]


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


# ---------------------------------------------------------------- who connects


class Peers:
    """others: users besides this one, and the one who logged in and became this one, who may connect. Threads may ask
    at once."""

    def __init__(self, others: Iterable[int] = ()) -> None:
        self._welcome = {*others, *_this_users()}
        self._lock = Lock()
        # Reading the tables takes long: many connections that come at once are looked for in one reading.
        self._sockets: list[Socket] = []
        self._read_at = 0
        self.are_known = _tells_users()
        self.refused: set[int] = set()

    def is_welcome(self, client: Address, port: int) -> bool:
        """Whether a connection from that address to this port of ours is to be answered. Where the system does not tell
        users, all are."""
        if not self.are_known:
            return True
        users = next(filter(None, (self._users_of(client, port) for _ in range(READS))), set())
        self.refused |= users - self._welcome
        return bool(users) and users <= self._welcome

    def _users_of(self, client: Address, port: int) -> set[int]:
        """Returns the users of a connection as they are now: earlier, the address may have been another's."""
        asked_at = time.monotonic_ns()
        with self._lock:
            if self._read_at <= asked_at:
                self._read_at = time.monotonic_ns()
                self._sockets = listed_sockets()
            return users_of(client, port, self._sockets)


def users_of(client: Address, port: int, sockets: Iterable[Socket]) -> set[int]:
    """Returns the users of the socket with the client's address that is connected to a port of 127.0.0.1; none if it is
    not listed."""
    near, far = _written(client), _written((LOOPBACK, port))
    # A socket of IPv6 has the same address at the end of a longer one.
    return {one.user for one in sockets if one.local.endswith(near) and one.remote.endswith(far)}


def _written(address: Address) -> str:
    """Returns an address as the tables have it: its 32 bits as a number of this machine, then the port."""
    return f"{int.from_bytes(socket.inet_aton(address[0]), sys.byteorder):08X}:{address[1]:04X}"


def _tells_users() -> bool:
    """Whether a connection of our own is listed as ours."""
    if not hasattr(os, "geteuid"):
        return False
    with suppress(OSError), socket.create_server((LOOPBACK, 0)) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection((LOOPBACK, port)) as client:
            return users_of(client.getsockname(), port, listed_sockets()) == {os.geteuid()}
    return False


def _this_users() -> set[int]:
    """Returns this user, and who became this user with su or sudo: the browser is theirs."""
    if not hasattr(os, "geteuid"):
        return set()
    found = {ROOT, os.geteuid()}
    with suppress(OSError, ValueError):
        found.add(int(Path("/proc/self/loginuid").read_text()))
    with suppress(ValueError):
        found.add(int(os.environ.get("SUDO_UID", "")))
    return found - {NO_LOGIN}


def user_numbered(text: str) -> int:
    """Returns the number of a user, given as name or number. Raises UsageError if there is no such user."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        import pwd

        return pwd.getpwnam(text).pw_uid
    except (ImportError, KeyError):
        raise UsageError(f"--allow-user {text}: this system has no such user") from None


def user_named(number: int) -> str:
    with suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(number).pw_name
    return str(number)
