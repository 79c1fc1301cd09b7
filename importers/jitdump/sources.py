"""Map: file names become sources; their text is embedded in the dump, or read from disk where the user wants that."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traceferry.common.report import Report
from traceferry.files.answers import Blob, checked
from traceferry.files.named_files import is_inside, read_named
from traceferry.files.source_files import MAX_TEXT, local_path, real_file, text_in_roots
from traceferry.importers.jitdump.decode import Dump
from traceferry.model import TraceBuilder


@dataclass
class _Read:
    """The sources that were read from disk for one trace. rows: the source of each path; paths: of the files, in their
    order; n_characters: of all of them."""

    rows: dict[str, int]
    paths: dict[str, None] = field(default_factory=dict)
    n_characters: int = 0

    def copy(self) -> _Read:
        return _Read(dict(self.rows), dict(self.paths), self.n_characters)


class SourceTexts:
    """Rows of a trace's sources for one dump. A file that is embedded twice is two sources: code that was loaded
    before the second one keeps the first.

    folders: where the files lie whose text may be read; roots: the same, in which a file is also found by the end of
    its path; both absolute and without links.
    """

    def __init__(self, dump: Dump, trace: TraceBuilder, folders: Sequence[str], roots: Sequence[str] = ()) -> None:
        self._dump = dump
        self._folders = folders
        self._roots = roots
        self._embedded: dict[str, tuple[list[int], list[int]]] = {}
        self._read_at_load = trace.kept(self, lambda: _Read({"": -1}))
        n_replaced = 0
        for source in dump.sources:
            numbers, rows = self._embedded.setdefault(source.path, ([], []))
            row = _add(trace, source.path, source.text)
            n_replaced += bool(rows) and rows[-1] != row
            numbers.append(source.nth)
            rows.append(row)
        trace.report.note("source_replaced", n_replaced, where=dump.name)

    def row(self, trace: TraceBuilder, path: str, nth: int) -> int:
        """Returns the source of that name for code whose record has the number nth; -1 for no name."""
        embedded = self._embedded.get(path)
        if embedded is not None:
            numbers, rows = embedded
            return rows[max(bisect_left(numbers, nth) - 1, 0)]
        read = trace.kept(self, self._read_at_load.copy)
        row = read.rows.get(path)
        if row is None:
            text = self._text_of(trace.report, path, read)
            row = read.rows[path] = _add(trace, path, text)
        return row

    def _text_of(self, report: Report, path: str, read: _Read) -> str | None:
        """Returns the text of a pack, if the recording is of one that has it, else from the user's folders."""
        answers, key = self._dump.source.answers, f"source {path}"
        if not (self._folders or self._roots or answers.knows(key)):
            return None
        return answers.ask(key, report, lambda: self._text(report, path, read), _packed, _unpacked)

    def _text(self, report: Report, path: str, read: _Read) -> str | None:
        """Returns the text of the first of the candidates that lies in a folder of the user's, all links resolved."""
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
                self._note_read(report, read, real, text)
                return text
        found = text_in_roots(path, self._roots)
        if found is None:
            return None
        self._note_read(report, read, *found)
        return found[1]

    def _note_read(self, report: Report, read: _Read, path: str, text: str) -> None:
        """Reports all files that were read: there may be more until the last thread is loaded."""
        if path in read.paths:
            return
        read.paths[path] = None
        read.n_characters += len(text)
        detail = f"{read.n_characters} characters of {', '.join(read.paths)}"
        report.note("sources_embedded", len(read.paths), where=self._dump.name, detail=detail)

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


def _packed(text: str | None) -> Any:
    return Blob("source", text.encode("utf-8", "replace")) if text is not None else None


def _unpacked(value: Any) -> str | None:
    return bytes(checked(value, memoryview)).decode("utf-8", "replace") if value is not None else None


def _add(trace: TraceBuilder, path: str, text: str | None) -> int:
    return trace.sources.intern(path=trace.strings.intern(path), text=-1 if text is None else trace.texts.intern(text))
