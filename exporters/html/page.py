"""The page: its markup, style and script, the data, and the embedded profiles, in this order, so that it shows itself
before all of it is read.

Nothing of a recording is markup or script: the data is compressed and encoded, and the script puts names into the
document as text. The policy in the page's head allows its own script and style by their hashes, and no request; that of
a page which `view` serves allows requests to `view`.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, NamedTuple

import orjson

from traceferry.exporters.html import web
from traceferry.exporters.html.embed import BLOCK, Compressed, as_text, exported, first_that_fits, gzipped, text_size
from traceferry.exporters.html.recording import DETAILS, Detail, PageData
from traceferry.files.output import Output
from traceferry.model import Trace, TraceBuilder

# In the order in which they build on each other.
SCRIPTS = (
    "bytes.js", "handover.js", "format.js", "dom.js", "colors.js", "paths.js", "recording.js", "trees.js", "fold.js",
    "state.js", "help.js", "table.js", "activity.js", "heatmap.js", "flame.js", "costs.js", "threads_menu.js",
    "time_order.js", "flame_view.js", "hardware_tables.js", "tables_view.js", "stacked_chart.js",
    "memory_view.js", "served.js", "source_view.js", "instructions_view.js", "summary.js", "main.js",
)  # fmt: skip


class Embeddable(NamedTuple):
    """An exporter whose output a page holds, and the suffix and the viewer of that output."""

    name: str
    suffix: str
    viewer: str
    write: Callable[[TraceBuilder, Output, Callable[[int], None]], None]


# Compressed bytes of an embedded profile: beyond it, browsers take too long to read the page.
MOST_EMBEDDED = 100_000_000
# Characters of the encoded data, and how many more for each of the embedded profiles.
MOST_DATA = 150_000
DATA_PER_EMBEDDED = 0.01


def write(
    trace: TraceBuilder,
    out: Output,
    progress: Callable[[int], None],
    wanted: Sequence[Embeddable],
    is_served: bool = False,
) -> None:
    """Writes the page. wanted: what it holds; is_served: by a server, which it may ask for sources and instructions.
    Loads each thread once, and once more for each of `wanted`."""
    share = Shared(progress, 1 + len(wanted))
    page = PageData.of(trace, share, is_served)
    profiles: dict[str, Compressed] = {}
    try:
        for embeddable in wanted:
            made = exported(embeddable.write, trace, MOST_EMBEDDED, share)
            trace.report.note(
                "profile_not_embedded", made is None, where=embeddable.name,
                detail=f"{embeddable.viewer}: {_command(trace, embeddable.suffix)}",
            )  # fmt: skip
            if made is not None:
                profiles[embeddable.name] = made
        _write_page(trace, out, page, wanted, profiles, is_served)
    finally:
        for made in profiles.values():
            made.close()


class Shared:
    """Progress of work that goes through the records several times."""

    def __init__(self, progress: Callable[[int], None], times: int) -> None:
        self._progress = progress
        self._times = times
        self._done = 0

    def __call__(self, n_records: int) -> None:
        before = self._done // self._times
        self._done += n_records
        self._progress(self._done // self._times - before)


def _write_page(
    trace: TraceBuilder,
    out: Output,
    page: PageData,
    wanted: Sequence[Embeddable],
    profiles: dict[str, Compressed],
    is_served: bool,
) -> None:
    embedded = [_embedded(trace, embeddable, profiles.get(embeddable.name)) for embeddable in wanted]
    budget = MOST_DATA + int(DATA_PER_EMBEDDED * sum(text_size(made.size) for made in profiles.values()))
    detail, data = _packed(page, {"made_by": f"traceferry {version('traceferry')}", "embedded": embedded}, budget)
    elements = {"data-0": data} | ({"code-0": gzipped(orjson.dumps(page.code(detail)))} if is_served else {})
    pieces = (
        text
        for name, made in profiles.items()
        for nth, piece in enumerate(made.pieces())
        for text in _element(f"{name}-{nth}", piece)
    )
    write_document(out, SCRIPTS, elements, pieces, is_served)


def write_document(
    out: Output,
    scripts: Sequence[str],
    elements: Mapping[str, bytes],
    pieces: Iterable[bytes] = (),
    is_served: bool = False,
) -> None:
    """Writes markup, style, the data, which is compressed JSON, by the names of elements, scripts of web/, and what
    they read later."""
    script, style = "\n" + compacted(script_of(scripts)), compacted(web.text("style.css"))
    page = web.text("page.html").replace("@STYLE@", style).replace("@POLICY@", _policy(script, style, is_served))
    head, body = page.split("@CONTENT@")
    out.write(head.encode())
    for name, data in elements.items():
        for text in _element(name, data):
            out.write(text)
    out.write(f"<script>{script}</script>\n".encode())
    for piece in pieces:
        out.write(piece)
    out.write(b'<script type="text/plain" id="end"></script>\n')
    out.write(body.encode())


def _packed(page: PageData, others: dict[str, Any], budget: int) -> tuple[Detail, bytes]:
    """Returns as much detail as there is room for, and the data, compressed JSON."""
    page.limit(budget)
    detail, data = first_that_fits(DETAILS, lambda d: orjson.dumps(page.shaped(d) | others), page.estimated, budget)
    page.note_narrowed(detail)
    return detail, data


def _embedded(trace: Trace, embeddable: Embeddable, made: Compressed | None) -> dict[str, Any]:
    """Returns what the page says of an embedded profile. size: of the compressed bytes, None if it is not embedded."""
    return {
        "name": embeddable.name,
        "size": None if made is None else made.size,
        "file": _output_name(trace, embeddable.suffix),
        "command": _command(trace, embeddable.suffix),
    }


def _output_name(trace: Trace, suffix: str) -> str:
    return (os.path.basename(trace.inputs[0].path) if trace.inputs else "recording") + suffix


def _command(trace: Trace, suffix: str) -> str:
    inputs = " ".join(os.path.basename(i.path) for i in trace.inputs) or "RECORDING"
    return f"traceferry convert {inputs} -o {_output_name(trace, suffix)}"


def _element(name: str, data: bytes) -> Iterator[bytes]:
    """Yields the element of a page that has the data, in parts whose memory the allocator has at hand."""
    yield f'<script type="text/plain" id="{name}" data-bytes="{len(data)}">'.encode()
    for at in range(0, len(data), BLOCK):
        yield as_text(data[at : at + BLOCK])
    yield b"</script>\n"


def script_of(names: Sequence[str]) -> str:
    """Returns the scripts of web/ as one, whose names no other script sees."""
    parts = (f"// {'=' * 64} {name}\n\n{web.text(name)}" for name in names)
    return "\n".join(['"use strict";\n(() => {\n', *parts, "})();\n"])


def compacted(source: str) -> str:
    """Returns a script or style without indentation, and without lines that are comments only: a quarter less."""
    without_comments = re.sub(r"^ *(?:/\*.*?\*/|//.*?)\n", "", source, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ +|^\n", "", without_comments, flags=re.MULTILINE)


def _policy(script: str, style: str, is_served: bool) -> str:
    asking = "connect-src 'self'; " if is_served else ""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; {asking}"
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
