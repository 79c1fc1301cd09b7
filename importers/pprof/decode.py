"""Decode: the tables of a profile: texts, functions, places in the code, and what samples count."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from traceferry.files.source import Source
from traceferry.importers.pprof import layout
from traceferry.importers.pprof._messages import packed_numbers
from traceferry.importers.pprof.layout import Message, checked_fields, message

MOST_SAFE = 4096


class Line(NamedTuple):
    name: str
    path: str
    first_line: int
    line: int
    column: int


class Location(NamedTuple):
    """lines: the outermost function first; mapping: its number, 0 is none."""

    mapping: int
    address: int
    lines: list[Line]


class Mapping(NamedTuple):
    start: int
    offset: int
    path: str
    build_id: str


@dataclass
class Profile:
    """types: (name, unit) of what samples count; samples: where they are; numbers: of the profile's own fields;
    stopped: where the first damage is, -1: nowhere; unknown: how many references lead nowhere."""

    data: memoryview = field(repr=False)
    types: list[tuple[str, str]]
    period_type: tuple[str, str]
    samples: list[tuple[int, int]]
    mappings: dict[int, Mapping]
    locations: dict[int, Location]
    texts: list[str]
    comments: list[str]
    numbers: dict[int, int]
    stopped: int
    unknown: int = 0

    def text(self, number: int) -> str:
        if 0 <= number < len(self.texts):
            return self.texts[number]
        self.unknown += 1
        return ""

    def number(self, field: int) -> int:
        return self.numbers.get(field, 0)


def read_profile(source: Source) -> Profile:
    """Reads everything but the samples. Raises FormatError for another format."""
    data = source.data
    found, stopped = checked_fields(source)
    numbers, places, listed = dict[int, int](), defaultdict[int, list[tuple[int, int]]](list), list[int]()
    for number, kind, value, at, end in found:
        if kind == layout.BYTES:
            places[number].append((at, end))
        elif kind == layout.VARINT:
            numbers[number] = value
            listed += [value] if number == layout.COMMENT else []
    for begin, end in places[layout.COMMENT]:  # packed
        listed += packed_numbers(data, begin, end)
    texts = [bytes(data[begin:end]).decode("utf-8", "replace") for begin, end in places[layout.TEXT]]
    profile = Profile(data, [], ("", ""), places[layout.SAMPLE], {}, {}, texts, [], numbers, stopped)

    def messages(of: int) -> list[Message]:
        return [message(data, begin, end) for begin, end in places[of]]

    def type_of(one: Message) -> tuple[str, str]:
        return profile.text(one.number(1)), profile.text(one.number(2))

    profile.types = [type_of(one) for one in messages(layout.SAMPLE_TYPE)]
    profile.period_type = next((type_of(one) for one in messages(layout.PERIOD_TYPE)), ("", ""))
    profile.comments = [profile.text(number) for number in listed]
    for one in messages(layout.MAPPING):
        path, build_id = profile.text(one.number(5)), profile.text(one.number(6))
        profile.mappings[one.number(1)] = Mapping(one.number(2), one.number(4), path, build_id)
    functions = {one.number(1): one for one in messages(layout.FUNCTION)}
    for one in messages(layout.LOCATION):
        lines = [_line(profile, functions, message(data, *at)) for at in one.places.get(4, ())]
        profile.locations[one.number(1)] = Location(one.number(2), one.number(3), lines[::-1])
    return profile


def _line(profile: Profile, functions: dict[int, Message], one: Message) -> Line:
    function = functions.get(one.number(1))
    if function is None:
        profile.unknown += 1
        return Line("", "", 0, one.number(2), one.number(3))
    name = profile.text(function.number(2)) or profile.text(function.number(3))
    return Line(name, profile.text(function.number(4)), function.number(5), one.number(2), one.number(3))


def dropped(profile: Profile) -> tuple[dict[int, int], str]:
    """Returns (for each location with a function that drop_frames names: how many of its outermost functions stay; why
    nothing is left out although the profile asks for it). As Profile.Prune of pprof does it; patterns that could take
    long are not tried."""
    drop, keep = (profile.text(profile.number(number)) for number in (layout.DROP_FRAMES, layout.KEEP_FRAMES))
    if not drop:
        return {}, ""
    if not (_is_safe(drop) and _is_safe(keep)):
        return {}, "drop_frames"
    try:
        dropping, keeping = re.compile(f"(?:{drop})"), re.compile(f"(?:{keep})") if keep else None
    except (re.error, RecursionError, OverflowError):
        return {}, "drop_frames"
    found: dict[int, int] = {}
    for number, location in profile.locations.items():
        for nth, line in enumerate(location.lines):
            name = line.name[:256].partition("(")[0] or line.name[:256]
            if name and dropping.fullmatch(name) and not (keeping and keeping.fullmatch(name)):
                found[number] = nth
                break
    return found, ""


def _is_safe(pattern: str) -> bool:
    repeats = all(len(re.findall(r"[*+{]", part)) <= 1 for part in pattern.split("|"))
    return len(pattern) <= MOST_SAFE and repeats and not re.search(r"\)[*+{]", pattern)


def kept(locations: list[int], cut: dict[int, int]) -> tuple[list[int], int]:
    """Returns (the locations of a sample that stay, innermost first; how many functions of the first one, -1: all)."""
    found_user = False
    for nth in range(len(locations) - 1, -1, -1):
        stay = cut.get(locations[nth], -1)
        if stay < 0:
            found_user = True
        elif found_user:
            return (locations[nth + 1 :], -1) if stay == 0 else (locations[nth:], stay)
    return locations, -1
