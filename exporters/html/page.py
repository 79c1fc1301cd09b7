"""The page: its markup, style and script, the data, and the embedded profiles, in this order, so that it shows itself
before all of it is read.

Nothing of a recording is markup or script: the data is compressed and encoded, and the script puts names into the
document as text. The policy in the page's head allows its own script and style by their hashes, and no request.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any

import orjson

import traceferry
from traceferry import registry
from traceferry.exporters.html.embed import Compressed, as_text, exported, first_that_fits, gzipped, text_size
from traceferry.exporters.html.recording import DETAILS, PageData
from traceferry.files.output import Output
from traceferry.model import Trace

# In the order in which they build on each other.
SCRIPTS = (
    "bytes.js", "handover.js", "format.js", "dom.js", "colors.js", "recording.js", "trees.js", "state.js", "table.js",
    "activity.js", "flame.js", "flame_view.js", "tables_view.js", "source_view.js", "summary.js", "main.js",
)  # fmt: skip
EMBEDDED = ("firefox", "perfetto")
# Compressed bytes of an embedded profile: beyond it, browsers take too long to read the page.
MOST_EMBEDDED = 100_000_000
# Characters of the encoded data, and how many more for each of the embedded profiles.
MOST_DATA = 150_000
DATA_PER_EMBEDDED = 0.01


def write(
    trace: Trace, out: Output, progress: Callable[[int], None] = lambda _: None, without: Collection[str] = ()
) -> None:
    """Writes the page. without: names of embedded formats that are left out. Loads each thread once, and once more for
    each embedded format."""
    wanted = [name for name in EMBEDDED if name not in without]
    share = Shared(progress, 1 + len(wanted))
    page = PageData.of(trace, share)
    profiles: dict[str, Compressed] = {}
    try:
        for name in wanted:
            exporter = registry.exporter_named(name)
            made = exported(exporter.module.write, trace, MOST_EMBEDDED, share)
            trace.report.note(
                "profile_not_embedded", made is None, where=name, detail=f"{exporter.viewer}: {_command(trace, name)}"
            )
            if made is not None:
                profiles[name] = made
        _write_page(trace, out, page, wanted, profiles)
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


def _write_page(trace: Trace, out: Output, page: PageData, wanted: list[str], profiles: dict[str, Compressed]) -> None:
    embedded = [_embedded(trace, name, profiles.get(name)) for name in wanted]
    budget = MOST_DATA + int(DATA_PER_EMBEDDED * sum(text_size(made.size) for made in profiles.values()))
    data = _packed(page, {"made_by": f"traceferry {traceferry.__version__}", "embedded": embedded}, budget)
    pieces = (
        _element(f"{name}-{nth}", piece, f' data-bytes="{len(piece)}"')
        for name, made in profiles.items()
        for nth, piece in enumerate(made.pieces())
    )
    write_document(out, SCRIPTS, data, pieces)


def write_document(out: Output, scripts: Sequence[str], data: bytes, pieces: Iterable[bytes] = ()) -> None:
    """The markup, the style, the data, which is compressed JSON, the modules of script/, and what they read later."""
    script, style = "\n" + "\n".join(_modules(scripts)), _text("style.css")
    head, body = (
        _text("page.html").replace("@STYLE@", style).replace("@POLICY@", _policy(script, style)).split("@CONTENT@")
    )
    out.write(head.encode())
    out.write(_element("data-0", data, f' data-bytes="{len(data)}"'))
    out.write(f"<script>{script}</script>\n".encode())
    for piece in pieces:
        out.write(piece)
    out.write(b'<script type="text/plain" id="end"></script>\n')
    out.write(body.encode())


def _packed(page: PageData, others: dict[str, Any], budget: int) -> bytes:
    """The data, compressed, with as much detail as there is room for."""
    detail, data = first_that_fits(DETAILS, lambda d: gzipped(orjson.dumps(page.shaped(d) | others)), budget)
    page.note_narrowed(detail)
    return data


def _embedded(trace: Trace, name: str, made: Compressed | None) -> dict[str, Any]:
    """What the page says of an embedded profile. size: of the compressed bytes, None if it is not embedded."""
    return {
        "name": name,
        "size": None if made is None else made.size,
        "file": _output_name(trace, name),
        "command": _command(trace, name),
    }


def _output_name(trace: Trace, name: str) -> str:
    suffix = registry.DEFAULT_SUFFIX[name]
    return (os.path.basename(trace.inputs[0].path) if trace.inputs else "recording") + suffix


def _command(trace: Trace, name: str) -> str:
    inputs = " ".join(os.path.basename(i.path) for i in trace.inputs) or "RECORDING"
    return f"traceferry convert {inputs} -o {_output_name(trace, name)}"


def _element(name: str, data: bytes, attributes: str) -> bytes:
    return f'<script type="text/plain" id="{name}"{attributes}>'.encode() + as_text(data) + b"</script>\n"


def _modules(names: Sequence[str]) -> Iterator[str]:
    yield '"use strict";\n(() => {\n'
    for name in names:
        yield f"// ================================================================ {name}\n"
        yield _text(f"script/{name}")
    yield "})();\n"


def _text(name: str) -> str:
    return files("traceferry.exporters.html").joinpath(name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
