"""The text of source files: what the trace holds; and files on disk that the trace names and that are in a folder of
the user's."""

from __future__ import annotations

from collections.abc import Sequence

from traceferry.common.errors import UsageError
from traceferry.files.source_files import text_in_roots
from traceferry.model import Trace


def source_text(trace: Trace, path: str, preferred: Sequence[int], roots: Sequence[str]) -> str:
    """Returns the text of a source file. preferred: rows of the trace's sources that are to be taken before others of
    this path; roots: the user's folders, absolute and without links.

    Raises UsageError where the trace does not name the file, or there is no text of it.
    """
    paths, texts = trace.sources["path"].tolist(), trace.sources["text"].tolist()
    rows = [row for row in (*preferred, *range(len(paths))) if trace.strings[paths[row]] == path]
    if not rows:
        raise UsageError(f"the recording does not name a source file {path}")
    text = next((texts[row] for row in rows if texts[row] >= 0), -1)
    if text >= 0:
        return trace.texts[text]
    found = text_in_roots(path, roots)
    if found is None:
        where = f"it is not in {', '.join(roots)}" if roots else "give its folder with --source-root"
        raise UsageError(f"the recording does not hold the text of {path}; {where}")
    return found[1]
