"""Map: the files of line programs that compiled code reads to their paths."""

from __future__ import annotations

from traceferry.symbolication.dwarf._line_rows import LineRows
from traceferry.symbolication.dwarf.forms import Sections, text_at
from traceferry.symbolication.dwarf.lines import PATH_BYTES, whole_path

TEXT_SECTIONS = ("", "debug_str", "debug_line_str")
# The first files of numbers that count from 0 on: before, 0 is none.
FROM_0 = 5


class Paths:
    """Paths of files: most units have many in common. sections: of the file with the line programs."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._found: dict[tuple[object, ...], str] = {}

    def of(self, rows: LineRows, number: int, folder: str) -> str:
        """Returns the path of a file of a program; "" where there is none of this number. folder: the compiler's.
        Raises FormatError where it cannot be read."""
        place = rows.name(number, False)
        if place is None or (number == 0 and rows.version < FROM_0):
            return ""
        kind, at, folder_number = place
        of_folder = rows.name(folder_number, True)
        is_in_folder_0 = rows.version >= FROM_0 and folder_number == 0
        key = (kind, at, of_folder, "" if is_in_folder_0 else folder)
        path = self._found.get(key)
        if path is None:
            in_folder = self._text(*of_folder[:2]) if of_folder is not None else ""
            path = whole_path("" if is_in_folder_0 else folder, in_folder, self._text(kind, at))
            # A folder is written once, and is in the path of each of its files.
            self._sections.spend(len(path) // PATH_BYTES)
            self._found[key] = path
        return path

    def _text(self, kind: int, at: int) -> str:
        if kind:
            return self._sections.text(TEXT_SECTIONS[kind], at)
        return text_at(self._sections.line, at)[0] if at < len(self._sections.line) else ""
