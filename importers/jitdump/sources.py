"""Map: file names become sources; their text is embedded in the dump, or read from disk where the user wants that."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path

from traceferry.files.named_files import is_inside, read_named
from traceferry.files.source_files import MAX_TEXT, local_path, real_file, text_in_roots
from traceferry.importers.jitdump.decode import Dump
from traceferry.model import Trace


class SourceTexts:
    """Rows of the trace's sources for one dump. A file that is embedded twice is two sources: code that was loaded
    before the second one keeps the first.

    folders: where the files lie whose text may be read; roots: the same, in which a file is also found by the end of
    its path; both absolute and without links.
    """

    def __init__(self, dump: Dump, trace: Trace, folders: Sequence[str], roots: Sequence[str] = ()) -> None:
        self._trace = trace
        self._dump = dump
        self._folders = folders
        self._roots = roots
        self._embedded: dict[str, tuple[list[int], list[int]]] = {}
        self._rows: dict[str, int] = {"": -1}
        self._read_paths: set[str] = set()
        self._listed = ""
        self._n_characters = 0
        n_replaced = 0
        for source in dump.sources:
            numbers, rows = self._embedded.setdefault(source.path, ([], []))
            row = self._add(source.path, source.text)
            n_replaced += bool(rows) and rows[-1] != row
            numbers.append(source.nth)
            rows.append(row)
        trace.report.note("source_replaced", n_replaced, where=dump.name)
        trace.grows(self)

    def mark(self) -> tuple[dict[str, int], set[str], str, int]:
        return dict(self._rows), set(self._read_paths), self._listed, self._n_characters

    def cut(self, mark: tuple[dict[str, int], set[str], str, int]) -> tuple[dict[str, int], set[str], str, int]:
        """Does what `model.Grown` says: files that were read since are read again."""
        rest = self._rows, self._read_paths, self._listed, self._n_characters
        self.put_back((dict(mark[0]), set(mark[1]), *mark[2:]))
        return rest

    def put_back(self, rest: tuple[dict[str, int], set[str], str, int]) -> None:
        """Does what `model.Grown` says."""
        self._rows, self._read_paths, self._listed, self._n_characters = rest

    def row(self, path: str, nth: int) -> int:
        """Returns the source of that name for code whose record has the number nth; -1 for no name."""
        embedded = self._embedded.get(path)
        if embedded is not None:
            numbers, rows = embedded
            return rows[max(bisect_left(numbers, nth) - 1, 0)]
        row = self._rows.get(path)
        if row is None:
            row = self._rows[path] = self._add(path, self._read(path) if self._folders or self._roots else None)
        return row

    def _add(self, path: str, text: str | None) -> int:
        return self._trace.sources.intern(
            path=self._trace.strings.intern(path), text=-1 if text is None else self._trace.texts.intern(text)
        )

    def _read(self, path: str) -> str | None:
        """Returns the first of the candidates that lies in a folder of the user's, all links resolved."""
        report = self._trace.report
        for candidate in self._candidates(path):
            real = real_file(candidate)
            if not real:
                continue
            folder = next((folder for folder in self._folders if is_inside(real, folder)), None)
            if folder is None:
                report.note("source_outside", where=real, detail=real)
                continue
            text = read_named(real, report, at_most=MAX_TEXT, beside=folder)
            if text is not None:
                self._note_read(real, len(text))
                return text
        found = text_in_roots(path, self._roots)
        if found is None:
            return None
        self._note_read(found[0], len(found[1]))
        return found[1]

    def _note_read(self, path: str, n_characters: int) -> None:
        """Notes a file. Files are read until the last thread is loaded: each time the note is replaced by one of
        all."""
        if path in self._read_paths:
            return
        self._read_paths.add(path)
        self._n_characters += n_characters
        self._listed += f", {path}" if self._listed else path
        detail = f"{self._n_characters} characters of {self._listed}"
        self._trace.report.note("sources_embedded", len(self._read_paths), where=self._dump.name, detail=detail)

    def _candidates(self, path: str) -> Iterator[str]:
        """Yields the file at its path, from each folder if that is not absolute; then the file of its name beside the
        dump."""
        if not self._folders:
            return
        local = local_path(path)
        if not local:
            return
        if os.path.isabs(local):
            yield local
        else:
            yield from (os.path.join(folder, local) for folder in self._folders)
        if self._dump.source.path != "-":
            yield str(Path(self._dump.source.path).parent / Path(local).name)
