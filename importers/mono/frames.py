"""Map: methods and classes become functions and frames."""

from __future__ import annotations

import numpy as np

from traceferry.heap.views import class_frame
from traceferry.importers.mono.decode import Log
from traceferry.importers.mono.layout import Event, Metadata
from traceferry.importers.mono.names import Names
from traceferry.model import Array, Trace

MANAGED, WRAPPER, NATIVE = ("Managed", "yellow"), ("Wrapper", "lightblue"), ("Native", "grey")
# What sampling leaves in the code fields of methods that it saw first is not one.
LOWEST_CODE, LARGEST_CODE = 4096, 1 << 24


class Frames:
    """The frames of one log. methods and types: by pointer and time; a type is a class, from data version 15 on a
    vtable."""

    def __init__(self, trace: Trace, log: Log) -> None:
        self._trace = trace
        self._log = log
        rows = log.records.of(Event.JIT)
        frames = self._interned(rows, self._method)
        self.methods = Names(log.records["method"][rows], log.records.ts[rows], frames, self._nameless_method)
        self.jitted = rows
        self.jitted_frames = frames
        rows = log.records.metadata(Event.LOAD, Metadata.CLASS)
        classes = self._interned(rows, self._class)
        self.classes = Names(log.records["pointer"][rows], log.records.ts[rows], classes, self._nameless_class)
        self.types = self._vtables() if log.layout.events >= 15 else self.classes

    def class_names(self, frames: Array) -> Array:
        """Strings, of frames of classes."""
        names: Array = self._trace.funcs["name"][self._trace.frames["func"][frames]]
        return names

    def native(self, name: str) -> int:
        return self._frame(name, "function", NATIVE)

    def _vtables(self) -> Names:
        records = self._log.records
        rows = records.metadata(Event.LOAD, Metadata.VTABLE)
        frames = self.classes.at(records["class"][rows], records.ts[rows])
        return Names(records["pointer"][rows], records.ts[rows], frames, self._nameless_class)

    def _interned(self, rows: Array, make: object) -> Array:
        texts = [self._log.text(at) for at in self._log.records["name"][rows].tolist()]
        return np.array([make(text) for text in texts], np.int32)  # type: ignore[operator]

    def _method(self, name: str) -> int:
        return self._frame(name, "function", WRAPPER if name.startswith("(wrapper ") else MANAGED)

    def _class(self, name: str) -> int:
        return class_frame(self._trace, self._trace.strings.intern(name))

    def _nameless_method(self, pointer: int) -> int:
        return self._frame(f"[method {pointer:#x}]", "function", MANAGED)

    def _nameless_class(self, pointer: int) -> int:
        return self._class(f"[class {pointer:#x}]")

    def _frame(self, name: str, kind: str, category: tuple[str, str]) -> int:
        trace, intern = self._trace, self._trace.strings.intern
        func = trace.funcs.intern(name=intern(name), kind=intern(kind))
        number = trace.categories.intern(name=intern(category[0]), color=intern(category[1]))
        return trace.frames.intern(func=func, category=number)


def has_code(log: Log, rows: Array) -> Array:
    """A mask: the JIT records with a plausible code address and size."""
    code, size = log.records["code"][rows], log.records["size"][rows]
    highest = min(log.layout.pointer_mask, 1 << 47)
    return (code >= LOWEST_CODE) & (code < highest) & (size > 0) & (size < LARGEST_CODE)


def leaves(trace: Trace, stacks: Array, frames: Array) -> Array:
    """The stacks with one more frame each; int32."""
    keys = (stacks.astype(np.int64) << 32) | frames
    different, which = np.unique(keys, return_inverse=True)
    intern = trace.stacks.intern
    made = [intern(prefix=key >> 32, frame=key & 0xFFFFFFFF) for key in different.tolist()]
    leaves_of: Array = np.array(made, np.int32)[which.ravel()]
    return leaves_of
