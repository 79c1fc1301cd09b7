"""Decode: the tables of a profile: texts, functions, places in the code, and what samples count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from traceferry.files.source import Source
from traceferry.importers.pprof import layout
from traceferry.importers.pprof._messages import lists, numbers, parts
from traceferry.importers.pprof.layout import checked_fields
from traceferry.model import Array

MOST_SAFE = 4096
# What the samples of a profile without any count, if it does not tell.
NO_SAMPLES = ("samples", "count")
# So many samples are decoded at a time.
PIECE = 1 << 16
Places = tuple[Array, Array]


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

    @property
    def has_names(self) -> bool:
        """Whether it tells a function's name. Of older formats, go tool pprof -proto may write lines without."""
        return any(line.name for line in self.lines)


class Mapping(NamedTuple):
    start: int
    offset: int
    path: str
    build_id: str


class Samples(NamedTuple):
    """The samples of a part of the profile. locations: int64, numbers, one sample after the other, the innermost first
    in each; ends: int64, where each sample's end; values: int64, samples x types, what is missing is 0; labels: int64,
    rows of (the sample, key, text, number); are_bad: bool, samples that are damaged or have too few or many values."""

    locations: Array
    ends: Array
    values: Array
    labels: Array
    are_bad: Array


@dataclass
class Profile:
    """types: (name, unit) of what samples count; samples: where they begin and end; numbers: of its own fields;
    stopped: where the first damage is, -1: nowhere; unknown: how many references lead nowhere."""

    data: memoryview = field(repr=False)
    types: list[tuple[str, str]]
    period_type: tuple[str, str]
    samples: Places
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

    def pieces(self) -> Iterator[Samples]:
        """Yields the samples, so many at a time that memory stays bounded."""
        begins, ends = self.samples
        for first in range(0, len(begins), PIECE):
            yield self._piece((begins[first : first + PIECE], ends[first : first + PIECE]))

    def _piece(self, places: Places) -> Samples:
        locations, ends, are_whole = lists(self.data, *places, 1)
        flat, stops, are_whole_too = lists(self.data, *places, 2)
        n_values = np.diff(stops, prepend=0)
        nth = np.arange(len(flat)) - np.repeat(stops - n_values, n_values)
        is_known = nth < len(self.types)
        values = np.zeros((len(stops), len(self.types)), np.int64)
        values[np.repeat(np.arange(len(stops)), n_values)[is_known], nth[is_known]] = flat[is_known]
        sample, begins, ends_of_labels = parts(self.data, *places, 3)
        said = numbers(self.data, begins, ends_of_labels, np.array([1, 2, 3]))
        labels = np.column_stack([sample, said])
        are_bad = ~are_whole | ~are_whole_too | (n_values != len(self.types))
        return Samples(locations, ends, values, labels, are_bad)


def read_profile(source: Source) -> Profile:
    """Reads everything but the samples. Raises FormatError for another format."""
    data = source.data
    found, stopped = checked_fields(source)

    def places(of: int) -> Places:
        held = found[(found[:, 0] == of) & (found[:, 1] == layout.BYTES)]
        return np.ascontiguousarray(held[:, 3]), np.ascontiguousarray(held[:, 4])

    def rows(of: int, *fields: int) -> list[list[int]]:
        found: list[list[int]] = numbers(data, *places(of), np.array(fields)).tolist()
        return found

    at_texts = np.column_stack(places(layout.TEXT)).tolist()
    texts = [bytes(data[begin:end]).decode("utf-8", "replace") for begin, end in at_texts]
    own = dict(found[found[:, 1] == layout.VARINT][:, [0, 2]].tolist())
    profile = Profile(data, [], ("", ""), places(layout.SAMPLE), {}, {}, texts, [], own, stopped)
    text = profile.text
    types = [(text(name), text(unit)) for name, unit in rows(layout.SAMPLE_TYPE, 1, 2)]
    profile.types = types or [NO_SAMPLES]
    profile.period_type = next(((text(name), text(unit)) for name, unit in rows(layout.PERIOD_TYPE, 1, 2)), ("", ""))
    comments, *_ = lists(data, np.array([0]), np.array([len(data)]), layout.COMMENT)
    profile.comments = [text(number) for number in comments.tolist()]
    for number, start, offset, path, build_id in rows(layout.MAPPING, 1, 2, 4, 5, 6):
        profile.mappings[number] = Mapping(start, offset, text(path), text(build_id))
    functions = {
        number: (text(name) or text(system_name), text(path), line)
        for number, name, system_name, path, line in rows(layout.FUNCTION, 1, 2, 3, 4, 5)
    }
    owners, begins, ends = parts(data, *places(layout.LOCATION), 4)
    lines: list[list[Line]] = [[] for _ in places(layout.LOCATION)[0]]
    places_in = numbers(data, begins, ends, np.array([1, 2, 3])).tolist()
    for owner, (function, at_line, column) in zip(owners.tolist(), places_in, strict=True):
        profile.unknown += function not in functions
        lines[owner].append(Line(*functions.get(function, ("", "", 0)), at_line, column))
    for nth, (number, mapping, address) in enumerate(rows(layout.LOCATION, 1, 2, 3)):
        profile.locations[number] = Location(mapping, address, lines[nth][::-1])
    return profile


def cuts(profile: Profile) -> tuple[dict[int, int], str]:
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
