"""Map: file names become sources; their text is embedded in the dump, or read from disk where the user wants that."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from urllib.parse import unquote, urlsplit

from traceferry.importers.jitdump.decode import Dump
from traceferry.model import Trace

MAX_TEXT = 64 << 20


class SourceTexts:
    """Rows of the trace's sources for one dump. A file that is embedded twice is two sources: code that was loaded
    before the second one keeps the first."""

    def __init__(self, dump: Dump, trace: Trace, embed: bool) -> None:
        self._trace = trace
        self._folder = Path(dump.source.path).parent
        self._embed = embed
        self._embedded: dict[str, tuple[list[int], list[int]]] = {}
        self._rows: dict[str, int] = {"": -1}
        n_replaced = 0
        for source in dump.sources:
            numbers, rows = self._embedded.setdefault(source.path, ([], []))
            row = self._add(source.path, source.text)
            n_replaced += bool(rows) and rows[-1] != row
            numbers.append(source.nth)
            rows.append(row)
        trace.report.note("source_replaced", n_replaced, where=dump.name)

    def row(self, path: str, nth: int) -> int:
        """The source of that name for code whose record has the number nth; -1 for no name."""
        embedded = self._embedded.get(path)
        if embedded is not None:
            numbers, rows = embedded
            return rows[max(bisect_left(numbers, nth) - 1, 0)]
        row = self._rows.get(path)
        if row is None:
            row = self._rows[path] = self._add(path, self._read(path) if self._embed else None)
        return row

    def _add(self, path: str, text: str | None) -> int:
        return self._trace.sources.intern(
            path=self._trace.strings.intern(path), text=-1 if text is None else self._trace.texts.intern(text)
        )

    def _read(self, path: str) -> str | None:
        """The file at its path, or of its name beside the dump."""
        try:
            local = unquote(urlsplit(path).path) if path.startswith("file://") else path
        except ValueError:  # no host is written like that
            return None
        for candidate in (Path(local), self._folder / Path(local).name):
            try:
                if candidate.is_file() and candidate.stat().st_size <= MAX_TEXT:
                    return candidate.read_text("utf-8", "replace")
            except (OSError, ValueError):
                continue
        return None
