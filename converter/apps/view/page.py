"""A page of our own with a button for each viewer, which opens it and hands it the trace by a message. Needed where the
browser keeps a public page from reaching this machine."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from traceferry.apps.view.viewers import VIEWERS
from traceferry.exporters.html import web


class Button(NamedTuple):
    """A button as page.js has it. viewer: its name; address: of the viewer that waits for a message; asks: the same
    with the address of the symbol server, which the viewer's host then sees; trace: a path on this server; name: what
    the viewer shows."""

    viewer: str
    address: str
    asks: str
    trace: str
    name: str


def page(title: str, buttons: Sequence[Button], nonce: str) -> str:
    """Returns the page. nonce: of the content security policy."""
    import orjson

    # "<" could end the script.
    data = orjson.dumps([button._asdict() for button in buttons]).decode().replace("<", "\\u003c")
    values = {"TITLE": html.escape(title), "NONCE": nonce, "BUTTONS": data, "SCRIPT": script(),
              "ITEMS": "\n".join(map(_item, buttons))}  # fmt: skip
    return re.sub("@([A-Z]+)@", lambda found: values[found[1]], _text("page.html"))


def script() -> str:
    return web.text("handover.js") + _text("page.js")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _item(button: Button) -> str:
    name, title = button.viewer, html.escape(VIEWERS[button.viewer].title)
    item = f'<p><button type="button" id="{name}">Open in {title}</button></p>'
    if button.asks != button.address:
        item += f"""
<p><label><input type="checkbox" id="{name}-asks"> with source and instructions: {title} asks this server for them, and
its host sees the address to ask: this machine's port and random letters</label></p>"""
    return item


def policy(nonce: str) -> str:
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
