"""The events of a log, declared: what follows the first byte of each, and in which data versions.

A declaration is a row of (first byte, first version, last version, fields). A field is `name:encoding`, with `@14-`
from data version 14 on, `@-12` until 12, `@13-13` in 13 only; `_` is a field that is not kept, and `*` one of the group
that is repeated as often as the count before it says. Encodings are those of `cursor_inlined`, and

    small      a byte from version 13 on, uleb before
    word       of counters: a byte in versions 13 and 14, uleb else
    numbers    of counters: index, type, which is a word, and value of each, until an index is 0
    backtrace  the outermost caller first: methods from version 13 on, pointers before
    text=5     a text, if the event's first field is 5
    =1         not in the file: the value is 1

`Program` resolves the declarations once for the versions of a file, into arrays that the kernels interpret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import dropwhile, takewhile

import numpy as np

from traceferry.importers.mono import cursor_inlined as cursor
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.kernels.known_lists import LIST_WIDTH
from traceferry.model import Array

LATEST = 17
ALLOCATION = "type:pointer object:object size:size"
HANDLE = "type:uleb handle:uleb"
EVENTS: tuple[tuple[int, int, int, str], ...] = (
    (Event.ALLOC, 1, LATEST, ALLOCATION),  # type: a class, from version 15 on a vtable; likewise in HEAP_OBJECT
    (Event.ALLOC_BT, 1, LATEST, f"{ALLOCATION} frames:backtrace"),
    (Event.GC_EVENT, 1, LATEST, "event:small generation:small"),
    (Event.GC_RESIZE, 1, LATEST, "size:size"),
    (Event.GC_MOVE, 1, LATEST, "_:count *moves:object"),  # old and new places in turn
    (Event.HANDLE_CREATED, 1, LATEST, f"{HANDLE} object:object"),
    (Event.HANDLE_DESTROYED, 1, LATEST, HANDLE),
    (Event.HANDLE_CREATED_BT, 1, LATEST, f"{HANDLE} object:object frames:backtrace"),
    (Event.HANDLE_DESTROYED_BT, 1, LATEST, f"{HANDLE} frames:backtrace"),
    (Event.FINALIZE_START, 13, LATEST, ""),
    (Event.FINALIZE_END, 13, LATEST, ""),
    (Event.FINALIZE_OBJECT_START, 13, LATEST, "object:object"),
    (Event.FINALIZE_OBJECT_END, 13, LATEST, "object:object"),
    (Event.LEAVE, 1, LATEST, "method:method"),
    (Event.ENTER, 1, LATEST, "method:method"),
    (Event.EXC_LEAVE, 1, LATEST, "method:method"),
    (Event.JIT, 1, LATEST, "method:method code:pointer size:uleb name:text"),
    (Event.THROW, 1, LATEST, "object:object"),
    (Event.THROW_BT, 1, LATEST, "object:object frames:backtrace"),
    (Event.CLAUSE, 1, LATEST, "type:small index:uleb method:method object:object@14-"),
    (0x05, 14, LATEST, "event:byte object:object"),
    (0x85, 14, LATEST, "event:byte object:object frames:backtrace"),
    # Before version 14, the event of a monitor stands in the first byte, and only contentions have backtraces.
    *((0x05 | event << 4, 1, 13, f"event:={event} object:object") for event in range(4)),
    *((0x85 | event << 4, 1, 13, f"event:={event} object:object") for event in (0, 2, 3)),
    (0x95, 1, 13, "event:=1 object:object frames:backtrace"),
    (Event.HEAP_START, 1, LATEST, ""),
    (Event.HEAP_END, 1, LATEST, ""),
    (Event.HEAP_OBJECT, 1, LATEST,
     "object:object type:pointer size:size generation:byte@16- _:count *_:uleb@2- *references:object"),
    (Event.HEAP_ROOT, 3, 14, "_:count collections:uleb *object:object *kind:uleb@-12 *kind:byte@13-13 *kind:uleb@14- "
     "*extra:uleb"),
    (Event.HEAP_ROOT, 15, LATEST, "_:count *address:pointer *object:object"),
    (Event.ROOT_REGISTER, 15, LATEST, "start:pointer size:uleb source:byte key:pointer name:text"),
    (Event.ROOT_UNREGISTER, 15, LATEST, "start:pointer"),
    (Event.HIT, 4, LATEST, "type:uleb@-12 _:time@-12 type:byte@13-13 thread:pointer@11- n_ips:count *ips:pointer "
     "_:count@6- *methods:method@6- *_:sleb@6-12 *_:sleb@6-12"),
    (Event.USYM, 4, LATEST, "address:pointer size:uleb name:text"),
    (Event.UBIN, 4, 15, "address:signed@-13 address:pointer@14- offset:uleb size:uleb name:text"),
    (Event.COUNTERS_DESC, 5, LATEST,
     "_:count *section:section *name:text *type:word *unit:word *variance:word *index:uleb"),
    (Event.COUNTERS, 5, LATEST, "ms:uleb@-12 values:numbers"),
    (Event.JITHELPER, 8, LATEST, "type:small address:pointer size:size name:text=6@-13 name:text=5@14-"),
    (Event.COVERAGE_ASSEMBLY, 10, 15, "name:text guid:text file:text methods:uleb whole:uleb partial:uleb"),
    (Event.COVERAGE_METHOD, 10, 15,
     "assembly:text class:text name:text signature:text file:text token:uleb number:uleb statements:uleb"),
    (Event.COVERAGE_STATEMENT, 10, 15, "number:uleb offset:uleb times:uleb line:uleb column:uleb"),
    (Event.COVERAGE_CLASS, 10, 15, "assembly:text name:text methods:uleb whole:uleb partial:uleb"),
    (Event.SYNC_POINT, 13, LATEST, "kind:byte"),
    (Event.AOT_ID, 16, LATEST, "text:text"),
)  # fmt: skip
# Of NAME, LOAD and UNLOAD; in front of these stand `what:byte pointer:pointer`.
METADATA: tuple[tuple[tuple[int, ...], Metadata, int, str], ...] = (
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.CLASS, 1, "image:pointer _:uleb@-12 name:text"),
    ((Event.NAME, Event.UNLOAD), Metadata.IMAGE, 1, "_:uleb@-12 name:text"),
    ((Event.LOAD,), Metadata.IMAGE, 1, "_:uleb@-12 name:text mvid:text@16-"),
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.ASSEMBLY, 1, "image:pointer@14- _:uleb@-12 name:text"),
    ((Event.NAME,), Metadata.DOMAIN, 1, "_:uleb@-12 name:text"),
    ((Event.LOAD, Event.UNLOAD), Metadata.DOMAIN, 1, "_:uleb@-12"),
    ((Event.NAME,), Metadata.THREAD, 1, "_:uleb@-12 name:text"),
    ((Event.LOAD, Event.UNLOAD), Metadata.THREAD, 1, "_:uleb@-12"),
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.CONTEXT, 1, "_:uleb@-12 domain:pointer"),
    ((Event.NAME, Event.LOAD, Event.UNLOAD), Metadata.VTABLE, 15, "domain:pointer class:pointer"),
)
FIELD = re.compile(r"(\*?)(\w+):([\w=]+?)(?:@(\d*)-(\d*))?")
# Encodings of more than one step, by the version that each is for: (until which version, fields).
MACROS = {
    "small": ((12, "{}:uleb"), (LATEST, "{}:byte")),
    "word": ((12, "{}:uleb"), (14, "{}:byte"), (LATEST, "{}:uleb")),
    "backtrace": ((12, "_:uleb _:count *{}:pointer"), (LATEST, "_:count *{}:method")),
    "numbers": ((12, "{}:values=0"), (14, "{}:values=1"), (LATEST, "{}:values=0")),
}
OF_COUNTERS = ("word", "numbers")


@dataclass(frozen=True)
class Layout:
    """events: the data version that tells how events are laid out; counters: the one for counters. They differ in logs
    of a branch of 2017 that says 15."""

    events: int
    counters: int
    pointer_size: int

    @property
    def pointer_mask(self) -> int:
        return (1 << 8 * self.pointer_size) - 1


@dataclass(frozen=True)
class Field:
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


def fields_of(text: str, layout: Layout) -> list[Field]:
    """The fields that a declaration has in these versions."""
    found: list[Field] = []
    for word in text.split():
        match = FIELD.fullmatch(word)
        assert match is not None, word
        star, name, encoding, since, until = match.groups()
        if not int(since or 1) <= layout.events <= int(until or LATEST):
            continue
        if encoding in MACROS:
            version = layout.counters if encoding in OF_COUNTERS else layout.events
            steps = next(steps for last, steps in MACROS[encoding] if version <= last)
            found += fields_of(" ".join(star + step for step in steps.format(name).split()), layout)
        else:
            encoding, _, parameter = encoding.partition("=")
            found.append(Field(name, encoding or "constant", int(parameter or 0), bool(star)))
    return found


class Program:
    """What the kernels interpret. steps: int32, flat rows of (encoding, parameter, whether the value is kept); starts:
    int32, the first row for each first byte, then for each `what` of metadata. By the number of a declaration, which is
    the parameter of its last step, END: fields; n_single, int64: how many of its values are of single fields, which
    come before those of lists."""

    def __init__(self, layout: Layout) -> None:
        self.fields: list[list[Field]] = []
        self.kinds: list[int] = []
        self._layout = layout
        self._n_single: list[int] = []
        self._steps: list[tuple[int, int, int]] = []
        starts = [self._add([*self._time(kind), (cursor.FAIL, 0, 0)]) for kind in range(256)]
        for kind, since, until, text in EVENTS:
            if since <= layout.events <= until:
                starts[kind] = self._declare(kind, text)
        for kind in (Event.NAME, Event.LOAD, Event.UNLOAD):
            starts[kind] = self._add([*self._time(kind), (cursor.SELECT, len(starts), 1)])
            unknown = self._add([(cursor.POINTER, 0, 0), (cursor.FAIL, 0, 0)])
            starts += [unknown] * (cursor.N_SELECTED)
            for kinds, what, since, text in METADATA:
                if kind in kinds and since <= layout.events:
                    starts[what - cursor.N_SELECTED] = self._declare(kind, f"pointer:pointer {text}", selected=True)
        self.n_single = np.array(self._n_single, np.int64)
        self.starts = np.array(starts, np.int32)
        self.steps = np.array(self._steps, np.int32).ravel()
        self._places: dict[str, Array] = {}

    def state(self, n_lists: int = 0) -> Array:
        """What a kernel begins with; n_lists: so many backtraces may be known by their bytes."""
        state = np.zeros(cursor.N_STATE + n_lists * LIST_WIDTH, np.uint64)
        state[cursor.MASK] = self._layout.pointer_mask
        return state

    def place_of(self, name: str) -> Array:
        """int8: for each declaration, which of its values the field is; -1 where it has no such field."""
        if name not in self._places:
            names = [[field.name for field in fields if field.is_kept] for fields in self.fields]
            self._places[name] = np.array([of.index(name) if name in of else -1 for of in names], np.int8)
        return self._places[name]

    def _time(self, kind: int) -> list[tuple[int, int, int]]:
        """Whether the time follows the first byte."""
        untimed = kind in (Event.HEAP_OBJECT, Event.HEAP_ROOT) or kind & 15 == 9
        untimed |= kind & 15 == 7 and kind != Event.UBIN
        return [(cursor.DELTA, 0, 0)] if self._layout.events >= 13 or not untimed else []

    def _declare(self, kind: int, text: str, selected: bool = False) -> int:
        fields = fields_of(text, self._layout)
        steps = [] if selected else self._time(kind)
        for nth, field in enumerate(fields):
            if field.repeated and not fields[nth - 1].repeated:
                steps.append((cursor.REPEAT, _next_group(fields[nth:]), 0))
            parameter = _next_group(fields[nth:]) if field.encoding == "count" else field.parameter
            steps.append((cursor.ENCODINGS[field.encoding], parameter, int(field.is_kept)))
        declared = [Field("what", "byte", 0, False), *fields] if selected else fields
        n_single = sum(f.is_kept and not f.is_listed for f in declared)
        steps.append((cursor.END, len(self.fields), n_single))
        self.fields.append(declared)
        self._n_single.append(n_single)
        self.kinds.append(kind)
        return self._add(steps)

    def _add(self, steps: list[tuple[int, int, int]]) -> int:
        self._steps += steps
        return len(self._steps) - len(steps)


def _next_group(fields: list[Field]) -> int:
    """How many fields the first group among these has."""
    rest = dropwhile(lambda field: not field.repeated, fields)
    return sum(1 for _ in takewhile(lambda field: field.repeated, rest))
