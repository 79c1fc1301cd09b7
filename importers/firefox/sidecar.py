"""Map: the names that samply writes beside a profile: profile.json.gz → profile.json.syms.json.

    {"string_table": [...], "data": [{"debug_name", "debug_id", "code_id", "known_addresses": [[rva, row]],
      "symbol_table": [{"rva", "size", "symbol", "frames": [{"function", "file", "line"}]}]}]}

Strings are numbers of the table, frames stand innermost first. Source: samply/src/shared/symbol_precog.rs.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import Any

from traceferry.common.errors import FormatError
from traceferry.common.report import Report
from traceferry.files.decompress import COMPRESSED_SUFFIXES, Limit
from traceferry.files.json_text import JsonText
from traceferry.files.named_files import open_named
from traceferry.files.source import Source
from traceferry.importers.firefox.columns import text_of
from traceferry.libraries.library import Found

SUFFIX = ".syms.json"


class Sidecar:
    """The libraries of such a file, by debug name and id."""

    def __init__(self, content: dict[str, Any]) -> None:
        listed, strings = content.get("data"), content.get("string_table")
        self._strings = [text_of(one) for one in strings] if isinstance(strings, list) else []
        self._libraries: dict[tuple[str, str], _Library] = {}
        for one in listed if isinstance(listed, list) else []:
            if isinstance(one, dict):
                key = self._text(one.get("debug_name")), _digits(one.get("debug_id"))
                self._libraries[key] = _Library(one)

    @classmethod
    def beside(cls, source: Source, report: Report, limit: Limit) -> Sidecar | None:
        """Returns the file of a profile; None where there is none, or it is no JSON, which is reported."""
        if source.path == "-" or source.answers.is_kept:
            return None
        folder, name = Path(source.path).parent, Path(source.path).name
        for suffix in COMPRESSED_SUFFIXES:
            name = name.removesuffix(suffix)
        path = str(folder / (name + SUFFIX))
        found = open_named(path, report, beside=source.path, limit=limit)
        if found is None:
            return None
        try:
            text = JsonText(found.data, path)
            content = text.parsed(text.root())
        except FormatError as error:
            report.note("symbols_damaged", where=path, detail=str(error))
            return None
        report.note("symbols_used", where=path, detail=path)
        return cls(content if isinstance(content, dict) else {})

    def found(self, lib: Any, addresses: list[int]) -> list[Found]:
        """Returns what is at some addresses of a library; an empty list where the file does not have it."""
        held = lib if isinstance(lib, dict) else {}
        key = text_of(held.get("debugName")) or text_of(held.get("name")), _digits(held.get("breakpadId"))
        library = self._libraries.get(key)
        return [] if library is None else [self._at(library, address) for address in addresses]

    def _at(self, library: _Library, address: int) -> Found:
        row = library.row_of(address)
        if row is None:
            return [], 0
        listed = row.get("frames")
        frames = [
            (self._text(one.get("function")), self._text(one.get("file")), _line(one.get("line")))
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict)
        ][::-1]
        name = self._text(row.get("symbol"))
        frames = frames or [(name, "", 0)]
        outermost = frames[0]
        frames[0] = outermost[0] or name, *outermost[1:]
        return ([(one or "[unknown]", file, line) for one, file, line in frames], row["rva"])

    def _text(self, value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return self._strings[value] if 0 <= value < len(self._strings) else ""
        return text_of(value)


class _Library:
    def __init__(self, one: dict[str, Any]) -> None:
        rows = one.get("symbol_table")
        self._rows = [row if isinstance(row, dict) else {} for row in rows] if isinstance(rows, list) else []
        placed = [row for row in self._rows if isinstance(row.get("rva"), int)]
        self._sorted = sorted(placed, key=lambda row: int(row["rva"]))
        self._begins = [row["rva"] for row in self._sorted]
        known = one.get("known_addresses")
        self._known: dict[int, int] = {}
        for pair in known if isinstance(known, list) else []:
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(number, int) for number in pair):
                self._known[pair[0]] = pair[1]

    def row_of(self, address: int) -> dict[str, Any] | None:
        """Returns the row of an address that was looked up, else of the symbol that holds it."""
        nth = self._known.get(address, -1)
        if 0 <= nth < len(self._rows) and isinstance(self._rows[nth].get("rva"), int):
            return self._rows[nth]
        before = bisect_right(self._begins, address) - 1
        if before < 0:
            return None
        row = self._sorted[before]
        size = row.get("size")
        return row if isinstance(size, int) and address < row["rva"] + size else None


def _digits(value: Any) -> str:
    return text_of(value).replace("-", "").upper()


def _line(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < 1 << 31 else 0
