"""Files that belong to a recording: found at their recorded path, next to it, or in the folders of symbols."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from traceferry.common.report import Report
from traceferry.files.beside import paths_beside
from traceferry.files.decompress import COMPRESSED_SUFFIXES, DEFAULT_LIMIT, Limit
from traceferry.files.named_files import open_named
from traceferry.files.source import Source
from traceferry.model import Trace
from traceferry.reading import Companion, Reading
from traceferry.registry import HEAD_SIZE, importer_named


def companions(
    sources: Sequence[Source],
    readings: Iterable[Reading],
    folders: Sequence[str],
    trace: Trace,
    limit: Limit = DEFAULT_LIMIT,
) -> list[Source]:
    """Opens what the readings refer to and the user has not named already; the report lists missing files."""
    given = {source.name for source in sources}
    found: list[Source] = []
    for companion in dict.fromkeys(companion for reading in readings for companion in reading.companions):
        name = Path(companion.path).name
        if name in given:
            continue
        given.add(name)
        source = _first(_places(companion.path, sources, folders), companion, trace.report, limit)
        if source is None:
            trace.report.note("companion_missing", where=companion.path, detail=companion.path)
        else:
            found.append(source)
    return found


def _places(recorded: str, sources: Sequence[Source], folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    """A path that is not absolute tells nothing: the program's folder is not known."""
    if os.path.isabs(recorded):
        yield recorded, ""
    yield from paths_beside(sources, folders, Path(recorded).name)


def _first(places: Iterable[tuple[str, str]], companion: Companion, report: Report, limit: Limit) -> Source | None:
    """What only has such a name is not it."""
    sniff = importer_named(companion.format).module.sniff
    for path, beside in places:
        for candidate in (path, *(path + suffix for suffix in COMPRESSED_SUFFIXES)):
            source = open_named(candidate, report, beside=beside, limit=limit)
            if source is not None and sniff(source.data[:HEAD_SIZE]):
                return source
    return None
