"""Refuses SQL that opens files.

The engine runs without `--allow-sql-file-access`, which switches off its own functions that write files, and is built
without SQLite's extensions. What is left opens files by itself, or runs SQL that is made of texts, in which anything
may stand; it is refused by its name. Source: perfetto, src/trace_processor (sqlite, plugins, perfetto_sql), v58.
"""

from __future__ import annotations

import re
from pathlib import Path

from traceferry.common.errors import UsageError
from traceferry.common.patterns import compiled_later

OPENS = "it opens files, which SQL may not: load what you need as a recording"
RUNS_TEXT = "it runs SQL that is made of text, which may open files: use CREATE PERFETTO FUNCTION or MACRO"
REFUSED = {
    "attach": OPENS,
    "detach": OPENS,
    "vacuum": OPENS,
    "load_extension": OPENS,
    "export_json": OPENS,
    "__intrinsic_file_write": OPENS,
    "temp_store_directory": OPENS,
    "data_store_directory": OPENS,
    # Programs and debug files, where the engine was built with LLVM's symbolizer.
    "__intrinsic_symbolize": OPENS,
    "__intrinsic_symbolize_agg": OPENS,
    "_callstack_frame_symbolize": OPENS,
    "create_function": RUNS_TEXT,
    "create_view_function": RUNS_TEXT,
    "run_metric": RUNS_TEXT,
    "import": "it runs SQL that is made of text, which may open files: use INCLUDE PERFETTO MODULE",
    "writable_schema": RUNS_TEXT,
}
WORD = compiled_later(rf"\b({'|'.join(REFUSED)})\b", re.IGNORECASE | re.ASCII)
# Where texts and comments end is not certain with these: a $variable(...) holds anything up to its bracket, as do names
# in brackets and backticks.
UNCERTAIN = compiled_later("\\$[^\\s()]*\\(|[\\[`\0]|\r(?!\n)")
# What is text for certain may be run: it is looked at, too.
TEXT = "'(?:[^']|'')*'"
RUN_TEXT = rf"\b(?:create_function|create_view_function|import)\s*\(\s*{TEXT}(?:\s*,\s*{TEXT})*\s*\)"
PARTS = compiled_later(
    rf"""(?P<run>{RUN_TEXT})|(?P<name>"(?:[^"]|"")*")|{TEXT}|--[^\n]*|/\*.*?(?:\*/|\Z)""",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)


def refuse_file_access(sql: str, where: str = "") -> None:
    """Raises UsageError if the SQL has one of the words that lead to files, but in texts and comments."""
    if not WORD.search(sql):
        return
    left = sql if UNCERTAIN.search(sql) else PARTS.sub(_what_counts, sql)
    if found := WORD.search(left):
        raise UsageError(f"{where}{found[1].upper()} is refused: {REFUSED[found[1].lower()]}")


def _what_counts(part: re.Match[str]) -> str:
    if part["name"]:
        return part[0]
    if part["run"] and len(WORD.findall(part[0])) > 1:
        return part[0]
    return " "


def refuse_files_of(package: str) -> None:
    """Raises UsageError if a module in the folder of an SQL package, DIR or DIR@NAME, has such words."""
    folder = Path(package.rpartition("@")[0] or package)
    for path in sorted(folder.rglob("*.sql")):
        try:
            text = path.read_text("utf-8", "surrogateescape")
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
        refuse_file_access(text, f"{path}: ")
