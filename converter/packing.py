"""Packs of recordings: what is found for them here becomes one file, which is read anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceferry import registry
from traceferry.common.errors import FormatError, UsageError, within_limits
from traceferry.common.report import Note, Report
from traceferry.files.answers import Blob, Keeping
from traceferry.files.output import ANYBODY, Output, open_output
from traceferry.files.pack import archive_of, write_pack
from traceferry.files.source import Source
from traceferry.loading import load_inputs
from traceferry.model import Trace, TraceBuilder
from traceferry.reading import LoadOptions, Paths

# The mode of a file that nobody else may read.
PRIVATE = 0o600
ZEROS = bytes(64)
# Of parts of a pack: by the first word of the question that they answer.
KINDS_OF_PARTS = {
    "": "recordings",
    "companion": "jitdumps",
    "library": "names",
    "program": "names",
    "map": "map files",
    "kernel": "kernel symbols",
    "source": "sources",
}


@dataclass(frozen=True)
class Contents:
    """The contents of a pack. missing: what was not found, a line each; sizes: bytes before compression, by kind of
    part, without long runs of zeros; members: of the archive; report: what was lost, repaired or guessed; mode: of a
    file with them, which those may read who may read all recordings in it."""

    missing: list[str]
    sizes: dict[str, int]
    members: Mapping[str, bytes | memoryview]
    report: Report
    mode: int = PRIVATE


@within_limits()
def gather(inputs: Paths, *, symbols: Paths = (), options: LoadOptions | None = None, whole: bool = False) -> Contents:
    """Reads recordings of one run, with all that belongs to them.

    Parameters
    ----------
    inputs : path or sequence of paths
        The recordings, as of `load`.
    symbols : path or sequence of paths, default ()
        What names the functions, as of `load`.
    options : LoadOptions, optional
        How the recordings are read. A range, threads and the least duration say nothing here: a pack has everything.
    whole : bool, default False
        Keeps all functions of the libraries, not only those that the recordings have.

    Returns
    -------
    Contents
        What `write` takes.

    Raises
    ------
    FormatError
        If an input cannot be read at all.
    UsageError
        If a file is missing, or an input is of a pack.
    """
    keeping = Keeping(keeps_whole=whole)
    trace = load_inputs(inputs, symbols, options or LoadOptions(), None, None, keeping)
    if keeping.inputs and options is not None and (options.embed_sources or options.source_roots):
        _read_through(trace)
    found = {key: _answer(*one, key, trace.report) for key, one in sorted(keeping.asked.items())}
    answers = {key: one for key, one in found.items() if one is not None}
    members = archive_of(keeping.inputs, answers)
    mode = _mode_of([*(source.path for source in keeping.inputs), *_companions(answers)])
    return Contents(list(_missing(answers)), _sizes(keeping.inputs, answers), members, trace.report, mode)


def write(contents: Contents, output: str | Path) -> int:
    """Writes a pack and returns its size in bytes, compressed. path: "-" is standard output.

    The same contents give the same bytes. Raises UsageError if it cannot be written; then nothing is left behind."""
    with open_output(str(output), contents.mode) as out:
        write_pack(out, contents.members)
    return out.n_bytes


def _companions(answers: Mapping[str, Any]) -> Iterator[str]:
    """Yields the paths of files that are in the pack as they are."""
    for key, (_, value) in answers.items():
        if key.startswith("companion ") and value is not None:
            yield value["path"]


def _mode_of(paths: Sequence[str]) -> int:
    """Returns the mode of a file that has what these have. A pipe tells nobody else."""
    mode = ANYBODY
    for path in paths:
        try:
            inside = [one.path for one in os.scandir(path)] if os.path.isdir(path) else []
            for one in (path, *inside):
                mode &= os.stat(one).st_mode
        except OSError:
            return PRIVATE
    return mode | PRIVATE


def _answer(notes: list[Note], value_of: Callable[[], Any], key: str, report: Report) -> list[Any] | None:
    """Returns an answer as a pack holds it; None of one that it cannot hold, which is reported."""
    try:
        return [notes, value_of()]
    except (FormatError, UsageError) as error:
        report.note("pack_incomplete", where=key, detail=f"{key}: {error}")
        return None


def _read_through(trace: Trace) -> None:
    """Asks what is asked only when threads are read and outputs written: for texts of source files."""
    exporter = registry.exporter_named(registry.DEFAULT_EXPORTER)
    exporter.writer()(TraceBuilder(trace), Output(_Nowhere(), gzip=False), lambda _: None)


class _Nowhere:
    def write(self, data: bytes | bytearray | memoryview, /) -> None:
        """Forgets what is written."""


# ---------------------------------------------------------------- what the user is told


def _missing(answers: Mapping[str, Any]) -> Iterator[str]:
    for key, (_, value) in answers.items():
        kind, *about = key.rpartition(": ")[2].split(" ")
        if kind == "companion" and value is None:
            yield f"{' '.join(about[1:])}: the {about[0]} that the recording names"
        if kind == "library" and value["symbols"] is None and value["n_asked"]:
            id_ = f"build id {value['build_id']}" if value["build_id"] else "no build id is recorded"
            yield f"{value['name']} ({id_}): names of {value['n_asked']} addresses"


def _sizes(inputs: Sequence[Source], answers: Mapping[str, Any]) -> dict[str, int]:
    sizes = dict.fromkeys(KINDS_OF_PARTS.values(), 0)
    sizes["recordings"] = sum(len(part) for source in inputs for part in (source.data, *source.parts))
    for key, (_, value) in answers.items():
        kind = key.rpartition(": ")[2].split(" ")[0]
        for name, n_bytes in _blobs(value):
            part = "call frames and segments" if name.endswith(".elf") else KINDS_OF_PARTS.get(kind, "names")
            sizes[part] = sizes.get(part, 0) + n_bytes
    return {name: n_bytes for name, n_bytes in sizes.items() if n_bytes}


def _blobs(value: Any) -> Iterator[tuple[str, int]]:
    if isinstance(value, Blob):
        # Between call frames that are used there are zeros, which take no room.
        is_sparse = value.name.endswith(".elf")
        yield value.name, sum(map(len, bytes(value.data).split(ZEROS))) if is_sparse else len(value.data)
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _blobs(one)
