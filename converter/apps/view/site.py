"""What is served: fixed paths behind an unguessable prefix, and perhaps a copy of a viewer at the root."""

from __future__ import annotations

import mimetypes
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traceferry.apps.view.conversion import Conversion
from traceferry.apps.view.page import Button
from traceferry.apps.view.symbol_server import SymbolServer
from traceferry.apps.view.viewers import NO_SERVER, PAGE, VIEWERS, Viewer, address, receiving_address
from traceferry.common.errors import UsageError
from traceferry.model import Trace

TOKEN_BYTES = 24
INDEX = "index.html"
MAX_VIEWER_FILES = 100_000


@dataclass
class Site:
    """conversion: the last good one, replaced under --watch; origin: of this server; copied: the viewer of which there
    is a copy at the root, and viewer_files its files, by path."""

    conversion: Conversion
    source_roots: Sequence[str] = ()
    copied: Viewer | None = None
    viewer_files: dict[str, Path] = field(default_factory=dict)
    allowed_origins: Sequence[str] = ()
    origin: str = ""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(TOKEN_BYTES))
    # In the browser's command line, for everybody to see: it gives nothing to others.
    opening: str = field(default_factory=lambda: f"open-{secrets.token_urlsafe(TOKEN_BYTES)}")
    _symbols: tuple[Trace, SymbolServer] | None = None

    @property
    def prefix(self) -> str:
        return f"/{self.token}"

    @property
    def server(self) -> str:
        """The symbol server's address, with which those of everything of the recording begin."""
        return self.origin + self.prefix

    @property
    def opening_path(self) -> str:
        return f"/{self.opening}"

    def symbols(self) -> SymbolServer | None:
        """Returns what answers about the trace that is shown now; None for a file that was converted before."""
        trace = self.conversion.trace
        if trace is None:
            return None
        if self._symbols is None or self._symbols[0] is not trace:
            self._symbols = (trace, SymbolServer(trace, self.source_roots))
        return self._symbols[1]

    def viewer_file(self, path: str) -> Path | None:
        """Returns a file of the copy of a viewer at the root; its index for the addresses of views inside it, which are
        no files."""
        found = self.viewer_files.get(path)
        is_view = "." not in path.rpartition("/")[2] and not path.startswith(self.prefix)
        return found or (self.viewer_files.get("/") if is_view else None)

    # ------------------------------------------------------------ addresses

    def trace_path(self, viewer: Viewer) -> str:
        """Returns a path that is the same for every state of the inputs, and has no names: the host of a viewer may see
        it."""
        suffix = "" if self.conversion.trace is None else viewer.suffix
        return f"{self.prefix}/trace{suffix}"

    def viewer_of_path(self, path: str) -> Viewer | None:
        known = (*VIEWERS.values(), PAGE)
        return next((v for v in known if self.conversion.offers(v) and path == self.trace_path(v)), None)

    def address(self, viewer: Viewer) -> str:
        trace_url = self.origin + self.trace_path(viewer)
        if viewer is PAGE:
            return trace_url
        return address(viewer, self.viewer_origin(viewer), trace_url, self.server, self.conversion.has_sources)

    @property
    def page_address(self) -> str:
        return f"{self.server}/"

    def viewer_origin(self, viewer: Viewer) -> str:
        return self.origin if self.viewer_files else viewer.origin

    def buttons(self) -> list[Button]:
        """Returns a button for each viewer that can show what was converted."""
        shown = self.conversion
        symbol_server = NO_SERVER if shown.trace is None else self.server
        return [
            Button(
                viewer.name,
                receiving_address(viewer, self.viewer_origin(viewer), NO_SERVER, shown.has_sources),
                receiving_address(viewer, self.viewer_origin(viewer), symbol_server, shown.has_sources),
                self.trace_path(viewer),
                shown.title,
            )
            for viewer in VIEWERS.values()
            if shown.offers(viewer) and self.copied in (None, viewer)
        ]


def viewer_files(folder: str) -> dict[str, Path]:
    """Maps URL paths to the files in the folder of a viewer. Raises UsageError if it is none."""
    root = Path(folder)
    if not (root / INDEX).is_file():
        raise UsageError(f"{folder}: not the folder of a viewer: it has no {INDEX}")
    files: dict[str, Path] = {}
    for parent, _, names in os.walk(root):
        for name in names:
            path = Path(parent) / name
            if path.is_file():
                files["/" + path.relative_to(root).as_posix()] = path
        if len(files) > MAX_VIEWER_FILES:
            raise UsageError(f"{folder}: not the folder of a viewer: it has more than {MAX_VIEWER_FILES} files")
    files["/"] = root / INDEX
    return files


# What a browser must be told right; the system's table may lack it.
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".css": "text/css",
         ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml", ".json": "application/json"}  # fmt: skip


def content_type(path: Path) -> str:
    return TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
