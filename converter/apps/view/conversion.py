"""What is shown: recordings that are converted for a viewer when it first asks, or a file that was converted before."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from traceferry import registry
from traceferry.api import save_by
from traceferry.apps.view.viewers import FIREFOX, PAGE, PERFETTO, VIEWERS, Viewer
from traceferry.common.errors import FormatError, UsageError
from traceferry.common.shown_text import encodable
from traceferry.files.decompress import decompress, is_compressed
from traceferry.files.pack import is_pack
from traceferry.files.source import Source, await_bytes, opened, told_while_waiting
from traceferry.model import Trace

# The first byte of every packet of a Perfetto trace.
PERFETTO_PACKET = 0x0A
HEAD_SIZE = 4096
COMPRESSED_HEAD = 1 << 20


@dataclass
class Conversion:
    """One state of the inputs. title: for people; trace: None for a file that was converted before; folder: an empty
    one for its files; files: by the viewers' names; max_size: bytes of each of them."""

    title: str
    trace: Trace | None
    folder: Path
    files: dict[str, Path] = field(default_factory=dict)
    max_size: int | None = None
    _locks: dict[str, Lock] = field(default_factory=lambda: {name: Lock() for name in (*VIEWERS, PAGE.name)})

    @property
    def has_sources(self) -> bool:
        return self.trace is not None and len(self.trace.texts) > 0

    def offers(self, viewer: Viewer) -> bool:
        return self.trace is not None or viewer.name in self.files

    def file_for(self, viewer: Viewer, progress: Callable[[int], None] | None = None) -> Path:
        """Returns the file for a viewer, made at the first call; those of several viewers may be made at once. Raises
        UsageError if it cannot be made."""
        with self._locks[viewer.name]:
            if viewer.name not in self.files:
                if self.trace is None:
                    raise UsageError(f"{self.title} is not a file for {viewer.title}")
                path = self.folder / f"trace{viewer.suffix}"
                save_by(viewer.exporter, self.trace, str(path), progress=progress, max_size=self.max_size)
                self.files[viewer.name] = path
            return self.files[viewer.name]


def title_of(inputs: Sequence[str]) -> str:
    first = "standard input" if inputs[0] == "-" else encodable(Path(os.path.abspath(inputs[0])).name)
    return f"{first} and {len(inputs) - 1} more" if len(inputs) > 1 else first


# ---------------------------------------------------------------- files that were converted before


def is_recording(path: str, viewer: str = "") -> bool:
    """Whether an importer knows the file, or folder, and no viewer shows it as it is: a viewer's own file is one only
    for the other viewer. Raises UsageError if it cannot be read."""
    if os.path.isdir(path):
        return True
    head = Source(path, memoryview(_head(path)))
    if is_pack(head.data):
        return True
    found = next((one for one in registry.IMPORTERS if one.module.sniff(head.data[: registry.HEAD_SIZE])), None)
    found = found or next((one for one in registry.IMPORTERS if one.module.sniff(head.data)), None)
    return found is not None and (not found.viewer or (viewer or found.viewer) != found.viewer)


def viewer_of_file(path: str) -> Viewer:
    """Tells the viewer by the file's first bytes. Raises FormatError if these tell nothing."""
    head = _head(path)
    if head[:1] == bytes([PERFETTO_PACKET]):
        return PERFETTO
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        # Chrome's trace events are an object or a list.
        return PERFETTO if text[:1] == b"[" or b'"traceEvents"' in text else FIREFOX
    raise FormatError(
        "unrecognised: neither a recording (see: traceferry formats) nor a converted file; to show it all the same, "
        "name the viewer: --in firefox or --in perfetto",
        path=path,
    )


def handed_over(path: str, title: str, viewer: Viewer, folder: Path) -> Conversion:
    """Returns a file that the viewer takes as it is."""
    # A link under a name of its own: what else lies in the file's folder is not served.
    link = folder / "file"
    try:
        link.symlink_to(os.path.abspath(path))
    except OSError:  # not everyone may make links on Windows
        shutil.copyfile(path, link)
    return Conversion(title, None, folder, {viewer.name: link})


def _head(path: str) -> bytes:
    """Returns the first bytes, decompressed."""
    try:
        with open(path, "rb") as file:
            raw = file.read(COMPRESSED_HEAD)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not is_compressed(memoryview(raw)[:4]):
        return raw[:HEAD_SIZE]
    head = bytearray()
    decompress(raw, head, HEAD_SIZE)
    return bytes(head)


def readable_again(path: str, folder: Path) -> str:
    """Returns the path itself; or, of standard input ("-"), a FIFO or a device, that of a copy in the folder. Raises
    UsageError if it cannot be read."""
    try:
        if path != "-" and (os.path.isdir(path) or stat.S_ISREG(os.stat(path).st_mode)):
            return path
        with ExitStack() as kept:
            if path == "-":
                file: BinaryIO = sys.stdin.buffer
                with told_while_waiting("standard input"):
                    await_bytes(file)
            else:
                file = kept.enter_context(opened(path))
            handle, copy = tempfile.mkstemp(prefix="input-", dir=folder)
            with open(handle, "wb") as out:
                shutil.copyfileobj(file, out)
        return copy
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
