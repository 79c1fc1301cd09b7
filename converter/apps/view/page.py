"""A page of our own with a button for each viewer, which opens it and hands it the trace by a message. Needed where the
browser keeps a public page from reaching this machine."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from traceferry.apps.view.viewers import Viewer


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
    """nonce: of the content security policy."""
    import orjson

    # "<" could end the script.
    data = orjson.dumps([button.as_json() for button in buttons]).decode().replace("<", "\\u003c")
    items = "\n".join(map(_item, buttons))
    handover = files("traceferry.exporters.html").joinpath("script", "handover.js").read_text(encoding="utf-8")
    script = handover + SCRIPT.replace("BUTTONS", data)
    return PAGE.format(title=html.escape(title), items=items, script=script, nonce=nonce)


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


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style nonce="{nonce}">
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em; color: #222; }}
button {{ font: inherit; padding: 0.6em 1.2em; cursor: pointer; }}
</style>
<h1>{title}</h1>
<p>The trace stays on this machine: the viewer runs in the browser, and this page hands it the bytes.</p>
{items}
<p id="state" role="status"></p>
<script nonce="{nonce}">{script}</script>
</html>
"""

# handover.js comes before it.
SCRIPT = """
const state = document.getElementById("state");

async function traceOf(path) {
  const response = await fetch(path);
  if (!response.ok) {
    throw new Error(await response.text() || `The server answered ${response.status}.`);
  }
  return response.arrayBuffer();
}

async function hand(button) {
  state.textContent = "Loading...";
  const asks = document.getElementById(`${button.viewer}-asks`)?.checked;
  const viewer = {...VIEWERS[button.viewer], url: asks ? button.asks : button.address};
  await handOver(viewer, traceOf(button.trace), button.name);
  state.textContent = "The viewer has the trace.";
}

for (const button of BUTTONS) {
  document.getElementById(button.viewer).addEventListener("click", () =>
    hand(button).catch((error) => { state.textContent = error.message; }));
}
"""
