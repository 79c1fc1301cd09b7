"""GSYM function infos in plain Python, as the oracle of the compiled writer: it shares no code with it."""

import struct
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from traceferry.symbolication.interface import Function, Inline

Ranges = Sequence[tuple[int, int]]
MAX_INLINED = 128


def uleb(value: int) -> bytes:
    return bytes((value,)) if value < 0x80 else bytes((value & 0x7F | 0x80,)) + uleb(value >> 7)


def sleb(value: int) -> bytes:
    return bytes((value & 0x7F,)) if -0x40 <= value < 0x40 else bytes((value & 0x7F | 0x80,)) + sleb(value >> 7)


class Tables:
    """Texts and files in the order in which they are asked for."""

    def __init__(self) -> None:
        self.strings, self.files = {"": 0}, {"": 0}
        self.n_strings, self.n_files = 1, 1
        self.unknown = 0

    def string(self, text: str) -> int:
        if text not in self.strings:
            self.strings[text] = self.n_strings
            self.n_strings += len(text.replace("\0", "\ufffd").encode(errors="replace")) + 1
        return self.strings[text]

    def file(self, path: str) -> int:
        if path not in self.files:
            folder, _, name = path.rpartition("/")
            self.files[path], self.n_files = self.n_files, self.n_files + 1
            is_plain = not folder or ("\\" in folder and "/" not in folder)
            for part in ("", path) if is_plain else (folder, name):
                self.string(part)
        return self.files[path]

    def row_file(self, path: str) -> int:
        if not path and not self.unknown:
            self.unknown, self.n_files = self.n_files, self.n_files + 1
        return self.file(path) if path else self.unknown


def infos(functions: Iterable[Function], order: str, offset: str) -> list[bytes]:
    """The infos of functions in this order. order, offset: how struct packs numbers, and places of texts."""
    tables = Tables()
    return [info(function, tables, order, offset) for function in functions]


def info(function: Function, tables: Tables, order: str, offset: str) -> bytes:
    data = struct.pack(f"{order}I{offset}", function.size, tables.string(function.name))
    rows = rows_of(function, tables)
    parts = [(1, line_table(function.start, rows))] if rows else []
    whole = ((function.start, function.start + function.size),)
    children = nodes(function.inlines, whole, 1, tables, order + offset)
    if children:
        root = Inline(function.name, whole, "", 0)
        parts.append((2, node(root, whole, function.start, children, tables, order + offset)))
    for kind, part in [*parts, (0, b"")]:
        data += struct.pack(order + "II", kind, len(part)) + part
    return data


def rows_of(function: Function, tables: Tables) -> list[tuple[int, int, int]]:
    end = function.start + function.size if function.size else 1 << 64
    rows: list[tuple[int, int, int]] = []
    for address, source, line in function.lines:
        if function.start <= address < end and (not rows or address >= rows[-1][0]):
            rows.append((address, tables.row_file(source), line % (1 << 32)))
    begins_late = bool(rows) and rows[0][0] > function.start
    return [(function.start, tables.row_file(""), 0), *rows] if begins_late else rows


def line_table(start: int, rows: Sequence[tuple[int, int, int]]) -> bytes:
    low, high = special_lines([b[2] - a[2] for a, b in pairwise(rows)])
    address, file, line = start, 1, rows[0][2]
    table = sleb(low) + sleb(high) + uleb(line)
    for row_address, row_file, row_line in rows:
        advance, change = row_address - address, row_line - line
        table += b"\1" + uleb(row_file) if row_file != file else b""
        special = 4 + advance * (high - low + 1) + change - low
        if low <= change <= high and special <= 255:
            table += bytes((special,))
        else:
            table += (b"\3" + sleb(change) if change else b"") + b"\2" + uleb(advance)
        address, file, line = row_address, row_file, row_line
    return table + b"\0"


def special_lines(changes: Sequence[int]) -> tuple[int, int]:
    counts = Counter(changes)
    best = (0, 0, 0)
    for high in sorted(counts):
        inside = [change for change in counts if high - 15 < change <= high]
        held = sum(counts[change] for change in inside)
        if held > best[0]:
            best = (held, min(inside), high)
    return best[1:]


def holder(ranges: Ranges, begin: int, end: int) -> bool:
    nth = bisect_right(ranges, begin, key=lambda held: held[0]) - 1
    return nth >= 0 and end <= ranges[nth][1]


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for begin, end in sorted(one for one in ranges if one[0] < one[1]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def nodes(calls: Iterable[Inline], around: Ranges, depth: int, tables: Tables, packed: str) -> bytes:
    found = b""
    for call in calls if depth <= MAX_INLINED else ():
        ranges = joined(one for one in call.ranges if holder(around, *one))
        if ranges:
            children = nodes(call.children, ranges, depth + 1, tables, packed)
            found += node(call, ranges, around[0][0], children, tables, packed)
    return found


def node(call: Inline, ranges: Ranges, base: int, children: bytes, tables: Tables, packed: str) -> bytes:
    data = uleb(len(ranges)) + b"".join(uleb(begin - base) + uleb(end - begin) for begin, end in ranges)
    data += bytes((bool(children),)) + struct.pack(packed, tables.string(call.name))
    data += uleb(tables.file(call.call_source)) + uleb(call.call_line % (1 << 32))
    return data + children + (b"\0" if children else b"")
