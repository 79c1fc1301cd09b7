"""A page of our own with a button for each viewer, which opens it and hands it the trace by a message. Needed where the
browser keeps a public page from reaching this machine."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from traceferry.apps.view.viewers import Viewer
from traceferry.exporters.html import web


@dataclass(frozen=True)
class Button:
    """viewer_address: of the viewer that waits for a message; address_to_ask: the same with the address of the symbol
    server, which the viewer's host then sees; trace_path: on this server; file_name: what the viewer shows."""

    viewer: Viewer
    viewer_address: str
    address_to_ask: str
    trace_path: str
    file_name: str

    def as_json(self) -> dict[str, Any]:
        return {
            "viewer": self.viewer.name, "address": self.viewer_address, "asks": self.address_to_ask,
            "trace": self.trace_path, "name": self.file_name,
        }  # fmt: skip


def page(title: str, buttons: Sequence[Button], nonce: str) -> str:
    """Returns the page. nonce: of the content security policy."""
    import orjson

    # "<" could end the script.
    data = orjson.dumps([button.as_json() for button in buttons]).decode().replace("<", "\\u003c")
    values = {"TITLE": html.escape(title), "NONCE": nonce, "BUTTONS": data, "SCRIPT": script(),
              "ITEMS": "\n".join(map(_item, buttons))}  # fmt: skip
    return re.sub("@([A-Z]+)@", lambda found: values[found[1]], _text("page.html"))


def script() -> str:
    return web.text("handover.js") + _text("page.js")


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _item(button: Button) -> str:
    name, title = button.viewer.name, html.escape(button.viewer.title)
    item = f'<p><button type="button" id="{name}">Open in {title}</button></p>'
    if button.address_to_ask != button.viewer_address:
        item += f"""
<p><label><input type="checkbox" id="{name}-asks"> with source and instructions: {title} asks this server for them, and
its host sees the address to ask: this machine's port and random letters</label></p>"""
    return item


def policy(nonce: str) -> str:
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
