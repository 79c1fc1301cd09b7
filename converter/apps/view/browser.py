"""Opens an address in the user's browser, or says how to reach it from another machine.

All users of a machine see the browser's command line. So it has an address that leads only this user on to the one that
is meant; or, where the system does not tell who asks, that of a file that only this user can read.
"""

from __future__ import annotations

import getpass
import html
import os
import platform
import sys
import webbrowser
from pathlib import Path


def has_display() -> bool:
    """Whether a browser could show something here. $BROWSER is taken at its word."""
    if sys.platform in ("win32", "darwin") or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(address: str) -> bool:
    """Opens the address; whether a browser took it."""
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False


def leading_file(folder: Path, address: str) -> str:
    """Writes a page that leads to the address and that nobody else can read; returns its URL. folder: without such a
    file."""
    path = folder / "open.html"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(LEADING_PAGE.format(address=html.escape(address)))
    return path.as_uri()


LEADING_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>traceferry</title>
<p><a href="{address}">Open the viewer</a></p>
</html>
"""


def ssh_line(port: int) -> str:
    """Returns the command that makes a port of this machine reachable on the user's own. Both ends have the same
    number, since it is part of the addresses."""
    # "client client-port server server-port"
    connection = os.environ.get("SSH_CONNECTION", "").split()
    host, ssh_port = (connection[2], connection[3]) if len(connection) == 4 else (platform.node(), "22")
    other_port = f"-p {ssh_port} " if ssh_port != "22" else ""
    return f"ssh -N {other_port}-L {port}:127.0.0.1:{port} {_user()}{host}"


def _user() -> str:
    try:
        return f"{getpass.getuser()}@"
    except (OSError, KeyError, ImportError):  # a user without a name
        return ""
