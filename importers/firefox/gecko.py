"""Decode: a thread of a Gecko profile, whose tables are rows, as the columns of a processed profile.

Source: docs-developer/gecko-profile-format.md and src/profile-logic/process-profile.ts of the Firefox Profiler.
"""

from __future__ import annotations

import re
from typing import Any

from traceferry.common.patterns import compiled_later
from traceferry.importers.firefox.columns import rows_to_columns
from traceferry.importers.firefox.document import Part

# "0x7fff1234"
ADDRESS = compiled_later(r"0x[0-9a-fA-F]{1,16}")
# "malloc (in libc.so.6) + 12", as written by a profiler that has looked up its symbols
IN_LIBRARY = compiled_later(r"(.+) \(in ([^)]*)\)(?: (\+ [0-9]+)?)?.*", re.DOTALL)
# "work (https://a.example/a.js:12:5)[3]", "(root)" is none
IN_FILE = compiled_later(r"(.*) \((.+?):([0-9]+)(?::([0-9]+))?\)(?:\[([0-9]+)\])?", re.DOTALL)
# "https://a.example/a.js:12", of code outside of functions, and what the viewer calls that
OUTSIDE = "(root scope) "
FILE_ONLY = compiled_later(r"([a-z-]+://.+?):([0-9]+)(?::([0-9]+))?(?:\[([0-9]+)\])?", re.DOTALL)
ARROW = " -> "
# Of markers of garbage collections, by type: the member with the ms of each phase.
PHASES_OF = {"GCSlice": "times", "GCMajor": "totals"}
PERCENTAGES = ("mmu_20ms", "mmu_50ms")
Table = dict[str, Any]


def thread_columns(thread: Table, part: Part) -> Table:
    """Returns the thread with tables of columns: functions and files are in its own tables."""
    tables = {name: rows_to_columns(value) for name, value in thread.items()}
    strings = thread.get("stringTable")
    if isinstance(strings, dict):
        strings = strings.get("_array")
    texts = [text if isinstance(text, str) else "" for text in strings] if isinstance(strings, list) else []
    frames = tables.get("frameTable")
    if isinstance(frames, dict):
        locations = frames.get("location")
        found = _Functions(texts, part)
        found.add_all(locations if isinstance(locations, list) else [])
        tables["frameTable"] = frames | found.of_frames | {"length": len(found.of_frames["func"])}
        tables["funcTable"] = found.functions
        tables["funcTable"]["length"] = len(found.functions["name"])
    marked = tables.get("markers")
    if isinstance(marked, dict) and isinstance(marked.get("data"), list):
        tables["markers"] = marked | {"data": [_processed(data) for data in marked["data"]]}
    return tables | {"stringArray": texts, "libs": part.libs, "pausedRanges": part.meta.get("pausedRanges")}


def _processed(data: Any) -> Any:
    """Returns the data of a marker as processed profiles have it: times of collections of garbage in µs."""
    timings = data.get("timings") if isinstance(data, dict) else None
    kind = data.get("type") if isinstance(timings, dict) else None
    if not isinstance(timings, dict) or kind not in ("GCSlice", "GCMajor"):
        return data
    old = PHASES_OF[kind]
    if not isinstance(timings.get(old), dict):
        return data
    phases = {phase: ms * 1000 if _is_number(ms) else ms for phase, ms in timings[old].items()}
    parts = {key: timings[key] / 100 for key in PERCENTAGES if _is_number(timings.get(key))}
    rest = {key: value for key, value in timings.items() if key != old}
    return data | {"timings": rest | {"phase_times": phases} | parts}


class _Functions:
    """The functions that locations name. Strings are added to `texts`."""

    def __init__(self, texts: list[str], part: Part) -> None:
        self._texts = texts
        self._number_of_text: dict[str, int] = {}
        self._func_of: dict[tuple[Any, ...], int] = {}
        self._frame_of: dict[int, tuple[int, int, int]] = {}
        self._libs = sorted(
            (lib["start"], lib["end"], _number(lib.get("offset")), nth)
            for nth, lib in enumerate(part.libs)
            if isinstance(lib, dict) and _is_whole(lib.get("start")) and _is_whole(lib.get("end"))
        )
        self.of_frames: Table = {"func": [], "address": [], "lib": []}
        self.functions: Table = {
            name: [] for name in ("name", "isJS", "resource", "fileName", "lineNumber", "columnNumber")
        }

    def add_all(self, locations: list[Any]) -> None:
        for location in locations:
            is_known = _is_whole(location) and 0 <= location < len(self._texts)
            number = location if is_known else -1
            if number not in self._frame_of:
                self._frame_of[number] = self._frame(self._texts[number] if number >= 0 else "")
            for name, value in zip(("func", "address", "lib"), self._frame_of[number], strict=True):
                self.of_frames[name].append(value)

    def _frame(self, location: str) -> tuple[int, int, int]:
        """Returns (function, address in the library, library) of a location."""
        if ADDRESS.fullmatch(location):
            address, lib = self._placed(int(location, 16))
            name = f"0x{address:x}" if lib >= 0 else location
            return self._func(name, lib), address if lib >= 0 else -1, lib
        if found := IN_LIBRARY.fullmatch(location):
            return self._func(found[1]), -1, -1
        if (found := IN_FILE.fullmatch(location)) and not found[2].startswith("0x"):
            return self._func(found[1], -1, True, _last(found[2]), *_place(found, 3)), -1, -1
        if found := FILE_ONLY.fullmatch(location):
            return self._func(OUTSIDE + _last(found[1]), -1, True, _last(found[1]), *_place(found, 2)), -1, -1
        return self._func(location), -1, -1

    def _placed(self, address: int) -> tuple[int, int]:
        """Returns (address relative to the library's start, the library), which is -1 where there is none."""
        for start, end, offset, nth in self._libs:
            if start <= address < end:
                return address - (start - offset), nth
        return address, -1

    def _func(
        self, name: str, lib: int = -1, is_js: bool = False, file: str = "", line: int | None = None,
        column: int | None = None,
    ) -> int:  # fmt: skip
        key = (name, lib, is_js, file, line, column)
        if key not in self._func_of:
            self._func_of[key] = len(self._func_of)
            row = (self._text(name), is_js, -1, self._text(file) if file else None, line, column)
            for column_of, value in zip(self.functions.values(), row, strict=True):
                column_of.append(value)
        return self._func_of[key]

    def _text(self, text: str) -> int:
        if text not in self._number_of_text:
            self._number_of_text[text] = len(self._texts)
            self._texts.append(text)
        return self._number_of_text[text]


def _place(found: re.Match[str], first: int) -> tuple[int | None, int | None]:
    line, column = found[first], found[first + 1]
    return int(line) if len(line) < 10 else None, int(column) if column and len(column) < 10 else None


def _last(file: str) -> str:
    return file.rpartition(ARROW)[2]


def _number(value: Any) -> int:
    return value if _is_whole(value) else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
