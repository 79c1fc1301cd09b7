"""Files that a recording refers to: found where it was made, beside it, or in the folders of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from traceferry.errors import FormatError, UsageError
from traceferry.io.decompress import COMPRESSED_SUFFIXES
from traceferry.io.source import Source, open_source
from traceferry.model import Trace
from traceferry.registry import Reading, detect


def companions(
    sources: Sequence[Source], readings: Iterable[Reading], folders: Sequence[str], trace: Trace
) -> list[Source]:
    """Opens what the readings refer to and the user has not named already; the report tells what is not there."""
    given = {source.name for source in sources}
    beside = [str(Path(source.path).parent) for source in sources if source.path != "-"]
    found: list[Source] = []
    for recorded in dict.fromkeys(path for reading in readings for path in reading.companions):
        name = Path(recorded).name
        if name in given:
            continue
        given.add(name)
        source = _first([recorded, *(str(Path(folder) / name) for folder in [*beside, *folders])])
        if source is None:
            trace.report.note("companion_missing", where=recorded, detail=recorded)
        else:
            found.append(source)
    return found


def _first(paths: Iterable[str]) -> Source | None:
    for path in paths:
        for candidate in (path, *(path + suffix for suffix in COMPRESSED_SUFFIXES)):
            try:
                if Path(candidate).is_file():
                    source = open_source(candidate)
                    detect(source)  # what only has such a name is not it
                    return source
            except (UsageError, FormatError, OSError, ValueError):
                continue
    return None
