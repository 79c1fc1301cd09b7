"""Where files that belong to a recording are looked for: beside it, and in the folders of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from traceferry.files.source import Source


def paths_beside(sources: Iterable[Source], folders: Sequence[str], name: str) -> Iterator[tuple[str, str]]:
    """Yields (path, what the user has named there) of a file beside the inputs, then in the folders."""
    for source in sources:
        if source.path != "-":
            if source.bring is not None:
                source.bring(name)
            yield str(Path(source.path).parent / name), source.path
    for folder in folders:
        yield str(Path(folder) / name), folder
