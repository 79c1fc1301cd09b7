"""The declarations of layout.Event, resolved once for the versions of a file into steps that a cursor follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import dropwhile, takewhile
from typing import NamedTuple

import numpy as np

from traceferry.common.patterns import compiled_later
from traceferry.importers.mono._cursor import ENCODINGS, N_SELECTED, STEP, Cursor
from traceferry.importers.mono.layout import LATEST, METADATA, MONITORS, Event
from traceferry.model import Array

FAIL = ENCODINGS["fail"], 0, 0
FIELD = compiled_later(r"(\*?)(\w+):([\w=]+?)([@#].*)?")


class Layout(NamedTuple):
    """events: the data version that tells how events are laid out; counters: the one for counters. They differ in logs
    of a branch of 2017 that says 15."""

    events: int
    counters: int
    pointer_size: int

    @property
    def pointer_mask(self) -> int:
        return (1 << 8 * self.pointer_size) - 1


class Field(NamedTuple):
    """encoding: its name; parameter: of the encoding; kept: whether the value is; repeated: whether it is one of a
    group."""

    name: str
    encoding: str
    parameter: int
    repeated: bool

    @property
    def is_kept(self) -> bool:
        return self.name != "_"

    @property
    def is_listed(self) -> bool:
        return self.repeated or self.encoding == "values"


def _has(versions: str | None, layout: Layout) -> bool:
    """versions: `@13-`, `@-12`, `#6-12`; None: all."""
    since, _, until = (versions or "@-")[1:].partition("-")
    version = layout.counters if (versions or "@")[0] == "#" else layout.events
    return int(since or 1) <= version <= int(until or LATEST)


def fields_of(text: str, layout: Layout) -> list[Field]:
    """Returns the fields that a declaration has in these versions."""
    found: list[Field] = []
    for word in text.split():
        match = FIELD.fullmatch(word)
        assert match is not None, word
        star, name, encoding, versions = match.groups()
        if _has(versions, layout):
            encoding, _, parameter = encoding.partition("=")
            found.append(Field(name, encoding or "constant", int(parameter or 0), bool(star)))
    return found


def _places_of(declarations: Sequence[Sequence[Field]]) -> dict[str, Array]:
    """Returns what `Program.place_of` gives for each name, and for "", which no field has."""
    found: defaultdict[str, Array] = defaultdict(lambda: np.full(len(declarations), -1, np.int8))
    for nth, fields in enumerate(declarations):
        for place, name in enumerate(f.name for f in fields if f.is_kept and not f.is_listed):
            if found[name][nth] < 0:
                found[name][nth] = place
    return {**found, "": np.full(len(declarations), -1, np.int8)}


class Program:
    """The declarations as a `Cursor` follows them: steps, and starts, the first step for each first byte, then for each
    `what` of metadata. By the number of a declaration, which is the parameter of its last step: fields; n_single,
    int64: how many of its values are of single fields, which come before those of lists."""

    def __init__(self, layout: Layout) -> None:
        self.fields: list[list[Field]] = []
        self._layout = layout
        self._n_single: list[int] = []
        self._steps: list[tuple[int, int, int]] = []
        starts = [self._add([*self._time(kind), FAIL]) for kind in range(256)]
        declared = [(int(event), text) for event in Event for text in event.fields]
        for kind, text in (*declared, *MONITORS.items()):
            versions, _, fields = text.partition(" ") if text.startswith("@") else (None, "", text)
            if _has(versions, layout):
                starts[kind] = self._declare(kind, fields)
        for kind in (Event.NAME, Event.LOAD, Event.UNLOAD):
            starts[kind] = self._add([*self._time(kind), (ENCODINGS["select"], len(starts), 1)])
            unknown = self._add([(ENCODINGS["pointer"], 0, 0), FAIL])
            starts += [unknown] * N_SELECTED
            for kinds, what, since, text in METADATA:
                if kind in kinds and since <= layout.events:
                    starts[what - N_SELECTED] = self._declare(kind, f"pointer:pointer {text}", selected=True)
        self.n_single = np.array(self._n_single, np.int64)
        self.starts = np.array(starts, np.int32)
        self.steps = np.array(self._steps, STEP)
        self._places = _places_of(self.fields)

    def cursor(self, data: memoryview, buffers: Array, n_lists: int = 0) -> Cursor:
        """Returns what reads the events of a file's buffers. n_lists: so many backtraces are known by their bytes."""
        return Cursor(data, buffers, self.steps, self.starts, self._layout.pointer_mask, n_lists)

    def place_of(self, name: str) -> Array:
        """Returns which of its values the single field is, int8 for each declaration; -1 where it has no such field."""
        return self._places.get(name, self._places[""])

    def _time(self, kind: int) -> list[tuple[int, int, int]]:
        """Whether the time follows the first byte."""
        untimed = kind in (Event.HEAP_OBJECT, Event.HEAP_ROOT) or kind & 15 == 9
        untimed |= kind & 15 == 7 and kind != Event.UBIN
        return [(ENCODINGS["delta"], 0, 0)] if self._layout.events >= 13 or not untimed else []

    def _declare(self, kind: int, text: str, selected: bool = False) -> int:
        fields = fields_of(text, self._layout)
        steps = [] if selected else self._time(kind)
        for nth, field in enumerate(fields):
            if field.repeated and not fields[nth - 1].repeated:
                steps.append((ENCODINGS["repeat"], _next_group(fields[nth:]), 0))
            parameter = _next_group(fields[nth:]) if field.encoding == "count" else field.parameter
            steps.append((ENCODINGS[field.encoding], parameter, int(field.is_kept)))
        declared = [Field("what", "byte", 0, False), *fields] if selected else fields
        n_single = sum(f.is_kept and not f.is_listed for f in declared)
        steps.append((ENCODINGS["end"], len(self.fields), n_single))
        self.fields.append(declared)
        self._n_single.append(n_single)
        return self._add(steps)

    def _add(self, steps: list[tuple[int, int, int]]) -> int:
        self._steps += steps
        return len(self._steps) - len(steps)


@cache
def program_of(layout: Layout) -> Program:
    """Returns the same one for all logs of these versions: resolving it takes longer than reading a small log."""
    return Program(layout)


def _next_group(fields: list[Field]) -> int:
    """Returns how many fields the first group among these has."""
    rest = dropwhile(lambda field: not field.repeated, fields)
    return sum(1 for _ in takewhile(lambda field: field.repeated, rest))
