"""JSON text of any size, of which only parts are parsed: where the members of its outermost object are is found by
matching brackets and quotes.

Every input is asked whether it is such a text: what parses one is imported when there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from traceferry.common.errors import FormatError
from traceferry.common.shown_text import encodable
from traceferry.files._json_text import (
    ENDS_EARLY,
    JsonError,
    elements,
    lists_in,
    members,
    numbers_in,
    rows_in,
    skip,
    whole_elements,
    without_columns,
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# White space before text: no file has more of it.
MAX_BLANK = 64
BLANK = b" \t\r\n"
MOST_REAL = sys.float_info.max


class Range(NamedTuple):
    """The bytes of a value, from begin to before end."""

    begin: int
    end: int


class JsonRows(NamedTuple):
    """Members of objects, a row each. numbers: float64, objects x keys, NaN where a member is no number; begins, ends:
    int64, likewise, where its value begins and ends, -1: there is none."""

    numbers: NDArray[Any]
    begins: NDArray[Any]
    ends: NDArray[Any]


def is_json(head: memoryview) -> bool:
    """Whether a file may be JSON text, whose outermost value is an object or a list."""
    return bytes(head[:MAX_BLANK]).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def is_page(head: memoryview) -> bool:
    """Whether a file is HTML."""
    return bytes(head[:MAX_BLANK]).lstrip()[:14].lower().startswith((b"<html", b"<!doctype html"))


def members_seen(data: memoryview, begin: int = 0) -> tuple[dict[str, int], bool]:
    """Returns (where the value of each member of the object at `begin` begins, whether the object is whole). Of damaged
    text these are the members before the damage; of another value there are none."""
    seen = _seen(data, begin)
    return {key: at.begin for key, at in seen.members.items()}, seen.end >= 0


class _Seen(NamedTuple):
    """An object that was looked at. end: where it ends, -1: the text is damaged; ends: of values within its members, by
    where they begin."""

    members: dict[str, Range]
    end: int
    ends: dict[int, int]


def _seen(data: memoryview, begin: int) -> _Seen:
    """Returns the values of the members of the object at `begin`."""
    global _seen_last
    last, at, found = _seen_last
    if last is None or last() is not data or at != begin:
        ends: dict[int, int] = {}
        try:
            inner, end = members(data, _after_mark(data, begin), ends)
            found = _Seen(_ranges(inner), end, ends)
        except JsonError as problem:
            found = _Seen(_ranges(problem.found), -1, {})
        _seen_last = ref(data), begin, found
    return found


# What was asked last: each format asks the same of a file, one after the other, and who reads it does.
_seen_last: tuple[ref[memoryview] | None, int, _Seen] = (None, 0, _Seen({}, -1, {}))


@dataclass(frozen=True)
class JsonText:
    """The text of a file. path: for errors, which are FormatError, with line, column and offset."""

    data: memoryview = field(repr=False)
    path: str = ""
    # Those of the outermost object, which are found together with its end.
    _of_root: dict[int, dict[str, Range]] = field(default_factory=dict, init=False, repr=False, compare=False)
    # By where they begin, the ends of values that were met on the way.
    _ends: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def root(self) -> Range:
        """Returns the outermost value. Raises FormatError for anything but white space behind it."""
        try:
            found = self._root()
        except JsonError as problem:
            raise self._error(problem.message, problem.offset) from None
        rest = bytes(self.data[found.end : found.end + MAX_BLANK]).lstrip(BLANK + b"\0")
        if rest:
            raise self._error("there is something behind the end of the JSON text", found.end)
        return found

    def _root(self) -> Range:
        begin = _after_mark(self.data, 0)
        begin += len(head := bytes(self.data[begin : begin + MAX_BLANK])) - len(head.lstrip(BLANK))
        seen = _seen(self.data, 0)
        if seen.end < 0:
            return Range(*skip(self.data, begin))  # a list, or text whose damage is told in the order of the text
        self._of_root[begin] = seen.members
        self._ends.update(seen.ends)
        return Range(begin, seen.end)

    def ends_early(self) -> bool:
        """Whether what is wrong with the text is that it ends too early."""
        try:
            self._root()
        except JsonError as problem:
            return problem.message == ENDS_EARLY
        return False

    def members(self, of: Range) -> dict[str, Range]:
        """Returns the values of an object's members; of two of one name, the later one."""
        if of.begin in self._of_root:
            return self._of_root[of.begin]
        try:
            return _ranges(members(self.data, of.begin, {})[0])
        except JsonError as problem:
            raise self._error(problem.message, problem.offset) from None

    def elements(self, of: Range) -> list[Range]:
        """Returns the elements of a list."""
        try:
            return [Range(begin, end) for _, begin, end in elements(self.data, of.begin, self._ends)[0]]
        except JsonError as problem:
            raise self._error(problem.message, problem.offset) from None

    def whole_elements(self, begin: int) -> tuple[int, int]:
        """Returns, of the list that begins at `begin`, or after white space there, (where its last whole element ends;
        where the element begins within which the text ends, or the end of the text between two; -1: the list is whole).
        Raises FormatError for text that is damaged before its end."""
        try:
            return whole_elements(self.data, begin)
        except JsonError as problem:
            raise self._error(problem.message, problem.offset) from None

    def is_list(self, of: Range) -> bool:
        return bytes(self.data[of.begin : of.begin + 1]) == b"["

    def is_object(self, of: Range) -> bool:
        return bytes(self.data[of.begin : of.begin + 1]) == b"{"

    def parsed(self, of: Range) -> Any:
        """Returns the value. Halves of surrogate pairs and bytes that are no UTF-8 are replaced, NaN and infinities are
        None."""
        import orjson

        text = self.data[of.begin : of.end]
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return self._parsed_leniently(of.begin, bytes(text).decode("utf-8", "replace"))

    def tables(self, of: Range, left_out: frozenset[bytes] = frozenset()) -> Any:
        """Returns the value. In an object of objects, lists of numbers are arrays: int64, or float64 where some are
        null, which is NaN, or have fractions. left_out: keys of members, with quotes, that may be None instead."""
        if not self.is_object(of):
            return self.parsed(of)
        import orjson

        rest, columns = without_columns(self.data, of.begin, of.end, left_out)
        try:
            value = orjson.loads(rest)
        except orjson.JSONDecodeError:
            return self.parsed(of)  # which tells where the error is
        for outer, inner, numbers in columns:
            table = value.get(_key(outer))
            if isinstance(table, dict):
                table[_key(inner)] = numbers
        return value

    def numbers(self, of: Range) -> NDArray[Any]:
        """Returns the elements of a list: int64, or float64 where some have fractions or are no numbers, which are NaN.
        Of another value there are none."""
        if not self.is_list(of):
            return np.empty(0, np.int64)
        found = numbers_in(self.data, of.begin)
        return np.array([_number(one) for one in self.parsed(of)], np.float64) if found is None else found

    def lists(self, of: Range) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns, of a list of lists of whole numbers, (int64: the numbers, one list after the other; int64: where
        each list's end). What is no whole number is -1; of what is no list there are none."""
        if not self.is_list(of):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if (found := lists_in(self.data, of.begin, of.end)) is not None:
            return found
        held = [one if isinstance(one, list) else [] for one in self.parsed(of)]
        flat = [_whole(number) for one in held for number in one]
        return np.array(flat, np.int64), np.cumsum([len(one) for one in held], dtype=np.int64)

    def rows(self, of: Range, *keys: str) -> JsonRows:
        """Returns these members of the objects in a list. Of another value there are no objects."""
        if not self.is_list(of):
            return JsonRows(*(np.empty((0, len(keys)), kind) for kind in (np.float64, np.int64, np.int64)))
        try:
            return JsonRows(*rows_in(self.data, of.begin, [f'"{key}"'.encode() for key in keys]))
        except JsonError as problem:
            raise self._error(problem.message, problem.offset) from None

    def described(self, offset: int) -> Iterator[str]:
        """Yields the members of the outermost object from `offset` on, with offset and size."""
        for name, at in self.members(self.root()).items():
            if at.begin >= offset:
                yield f"{at.begin:#010x} size={at.end - at.begin} {name}"

    def _parsed_leniently(self, begin: int, text: str) -> Any:
        import json

        try:
            return _encodable(json.loads(text, strict=False, parse_constant=lambda _: None))
        except json.JSONDecodeError as error:
            at = begin + len(text[: error.pos].encode("utf-8", "surrogatepass"))
            raise self._error(f"this is no JSON text: {error.msg}", at) from None
        except (ValueError, RecursionError) as error:
            raise self._error(f"this JSON text is not read: {error}", begin) from None

    def _error(self, message: str, offset: int) -> FormatError:
        before = bytes(self.data[:offset])
        line, column = before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1) + 1
        return FormatError(f"{message} (line {line}, column {column})", offset, path=self.path)


def _encodable(value: Any) -> Any:
    """Returns the value with texts that UTF-8 can hold."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(one) for one in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(one) for key, one in value.items()}
    return value


def _ranges(found: list[tuple[bytes, int, int]]) -> dict[str, Range]:
    return {_key(key): Range(begin, end) for key, begin, end in found}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) and abs(value) <= MOST_REAL else float("nan")


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 1 << 62 else -1


def _after_mark(data: memoryview, begin: int) -> int:
    return begin + len(BYTE_ORDER_MARK) if bytes(data[begin : begin + 3]) == BYTE_ORDER_MARK else begin


def _key(quoted: bytes) -> str:
    text = quoted[1:-1]
    if b"\\" not in text:
        return text.decode("utf-8", "replace")
    import json

    try:
        return encodable(str(json.loads(quoted.decode("utf-8", "replace"), strict=False)))
    except json.JSONDecodeError:
        return text.decode("utf-8", "replace")
